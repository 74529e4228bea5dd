# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what the bus and the tool say to the verdict: what the probe tells is what the judges understand.

Three cards in sockets that only the vendor's tool can name (SXM3, SXM1, SXM2); the kernel calls them 21 to 23.
"""

from __future__ import annotations

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import conclude, judge, kernel_log, probe, slots
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import as_dict
from doubles import HANG
from test_probe import ALL, LINKS, HostRunner, document
from trees import END, FULL, Tree, slot_structure

NOW = "2026-11-30T12:00:00Z"
CARDS = {"0000:18:00.0": 3, "0000:2a:00.0": 1, "0000:3a:00.0": 2}
LOADED = {"/sys/module/nvidia/version": "570.86.15"}
DECLARED = {
    "cluster_accelerator_vendor": "nvidia",
    "cluster_accelerator_models": ["NVIDIA H100 80GB HBM3"],
    "cluster_accelerator_count": 3,
    "cluster_accelerator_memory_gib": 80,
}
LOST = "Unable to determine the device handle for GPU 0000:2A:00.0: Unknown Error\n"
OF_A_CARD = (
    "device.model",
    "device.partition",
    "device.memory",
    "device.slot",
    "device.memory_repair",
    "device.ecc",
    "device.health",
    "device.temperature",
    "device.throttle",
    "device.ports",
    "device.kernel_log",
)
JOURNAL = {kernel_log.COMMAND: (0, "2026-11-30T11:00:00+0000 gpu-01 kernel: Linux version 6.1.0-28-amd64\n", "")}


def card(address, serial=None):
    module = CARDS[address]
    return (
        f'<gpu id="0000{address.upper()}"><product_name>NVIDIA H100 80GB HBM3</product_name>'
        f"<serial>{serial or f'16504230{module:05}'}</serial><uuid>GPU-{serial or module}-0001</uuid>"
        f"<gpu_module_id>{module}</gpu_module_id><gpu_recovery_action>None</gpu_recovery_action>"
        "<mig_mode><current_mig>Disabled</current_mig></mig_mode>"
        "<fb_memory_usage><total>81559 MiB</total></fb_memory_usage>"
        "<remapped_rows><remapped_row_pending>No</remapped_row_pending></remapped_rows>"
        "<ecc_errors><volatile><dram_uncorrectable>0</dram_uncorrectable></volatile></ecc_errors>"
        "<temperature><gpu_temp>40 C</gpu_temp><gpu_temp_slow_threshold>85 C</gpu_temp_slow_threshold></temperature>"
        "<clocks_event_reasons><clocks_event_reason_gpu_idle>Active</clocks_event_reason_gpu_idle>"
        "</clocks_event_reasons>"
        "<performance_state>P0</performance_state><utilization><gpu_util>90 %</gpu_util></utilization></gpu>"
    )


def links(*addresses):
    return "".join(
        f"GPU {CARDS[address]}: NVIDIA H100 80GB HBM3 (UUID: GPU-{CARDS[address]}-0001)\n\t Link 0: 26.562 GB/s\n"
        for address in addresses
    )


ALONE = {(*LINKS, "-i", address): (0, links(address), "") for address in CARDS}
HEALTHY = {LINKS: (0, links(*CARDS), ""), ALL: (0, document(*(card(address) for address in CARDS)), "")}


@pytest.fixture
def bus(tmp_path):
    tree = Tree(tmp_path)
    for number, address in enumerate(CARDS):
        tree.add(f"0000:0{number}:01.0", pci_class="0x060400", link=FULL)
        tree.add(f"0000:0{number}:01.0/{address}", link=FULL)
        tree.slot(str(21 + number), address[:-2])
    return tree


def verified(tree, answers, files=None, tools=None):
    """Return {(check, subject): (verdict, cause, blocked_by)} and the messages by check, of a run on this host."""
    baseline = slots.build_record(observed(tree, HEALTHY, LOADED), "gpu-01", NOW)
    observation = observed(tree, answers, LOADED if files is None else files, tools)
    found = judge.judge_devices("gpu-01", observation, DECLARED, now=NOW)
    part = conclude.merge_part(None, "gpu-01", "device", "driver", found, {"devices": observation})
    outcome = conclude.conclude(
        site="one",
        run_id="20261130T120000Z",
        hosts=["gpu-01"],
        expected=[{"role": "driver", "layer": "device"}],
        parts={"gpu-01": {"device": part}},
        declared={"gpu-01": DECLARED},
        baselines={"gpu-01": baseline},
        now=NOW,
    )
    findings = outcome["run"]["findings"]
    state = {
        (f["check"], f["subject"]): (f["verdict"], f["hint"].rpartition(".")[2], f["blocked_by"]) for f in findings
    }
    assert len(state) == len(findings)
    return state, {f["check"]: f["message"] for f in findings if f["subject"] == "gpu-01"}


def observed(tree, answers, files, tools=None, **more):
    answers = {**ALONE, LINKS: HEALTHY[LINKS], **JOURNAL, **answers}
    tools = None if tools is None else {*tools, "journalctl"}
    runner = HostRunner(tree, answers, files, tools)
    table = str(tree.home / "DMI")
    return as_dict(probe.observe(runner, root=str(tree.root), dmi_path=table, timeout_seconds=7, **more))


def turned(tree, *arguments, **more):
    before, after = verified(tree, HEALTHY)[0], verified(tree, *arguments, **more)[0]
    return {key: after.get(key) for key in before.keys() | after.keys() if before.get(key) != after.get(key)}


def of(slot, *checks, by):
    return {(check, slot): ("unknown", "blocked", by) for check in checks}


def test_all_is_well(bus):
    state = verified(bus, HEALTHY)[0]
    processes = {key: state.pop(key) for key in list(state) if key[0] == "device.processes"}
    assert set(processes.values()) == {("not_applicable", "allowed", None)} and len(processes) == 3
    assert set(state.values()) == {("pass", "ok", None)}
    assert {subject for check, subject in state} == {"gpu-01", "SXM1", "SXM2", "SXM3"}


def test_card_lost(bus):
    answers = {
        ALL: (2, LOST, ""),
        **{(*ALL, "-i", a): (0, document(card(a)), "") for a in CARDS},
        (*ALL, "-i", "0000:2a:00.0"): (2, LOST, ""),
    }
    assert turned(bus, answers) == {
        ("device.count", "gpu-01"): ("fail", "lost", None),
        **of("SXM1", *OF_A_CARD, "device.link_width", "device.link_speed", by="device.count"),
    }
    assert verified(bus, answers)[1]["device.count"] == (
        "2 of 3 cards answer; on the bus but lost: 0000:2a:00.0 (slot SXM1, serial 1650423000001)"
    )


def emptied(tree):
    """Return the tree without a bus, as a container shows it whose /sys is not mounted."""
    (tree.root / "devices").rename(tree.root / "elsewhere")
    (tree.root / "devices").mkdir()
    return tree


def test_a_bus_that_is_not_mounted_passes_nothing(bus):
    baseline = slots.build_record(observed(bus, HEALTHY, LOADED), "gpu-01", NOW)
    observation = observed(emptied(bus), HEALTHY, LOADED)
    assert (observation["count"], observation["bus_count"]) == (3, None)
    found = judge.judge_devices("gpu-01", observation, DECLARED, now=NOW)
    told = {f["check"]: f["hint"] for f in found if f["subject"] == "gpu-01"}
    assert told["device.count"] == "device.count.bus_unreadable"
    judged = judge.judge_slots({"gpu-01": baseline}, {}, {"gpu-01": observation}, {"gpu-01": DECLARED}, now=NOW)
    assert {f["hint"] for f in judged} == {"device.slot.ok"}


def test_a_card_lost_where_the_bus_is_not_mounted_empties_no_slot(bus):
    baseline = slots.build_record(observed(bus, HEALTHY, LOADED), "gpu-01", NOW)
    observation = observed(emptied(bus), {ALL: (2, LOST, "")}, LOADED)
    found = judge.judge_devices("gpu-01", observation, DECLARED, now=NOW)
    assert "0 of 3" not in "".join(f["message"] for f in found)
    judged = judge.judge_slots({"gpu-01": baseline}, {}, {"gpu-01": observation}, {"gpu-01": DECLARED}, now=NOW)
    assert {f["verdict"] for f in judged} == {"unknown"} and len(judged) == 3


def test_card_hung(bus):
    answers = {
        ALL: HANG,
        **{(*ALL, "-i", a): (0, document(card(a)), "") for a in CARDS},
        (*ALL, "-i", "0000:3a:00.0"): HANG,
    }
    assert turned(bus, answers) == {
        ("device.query", "gpu-01"): ("unknown", "hung", None),
        ("device.count", "gpu-01"): ("unknown", "blocked", "device.query"),
        **of("SXM2", *OF_A_CARD, "device.link_speed", by="device.query"),
    }
    assert "0000:3a:00.0 (slot SXM2" in verified(bus, answers)[1]["device.query"]


def test_driver_library_mismatch(bus):
    text = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.124\n"
    expected = {
        ("device.driver", "gpu-01"): ("fail", "library_mismatch", None),
        ("device.query", "gpu-01"): ("unknown", "blocked", "device.driver"),
        ("device.count", "gpu-01"): ("unknown", "blocked", "device.driver"),
    }
    for slot in ("SXM1", "SXM2", "SXM3"):
        expected.update(of(slot, *OF_A_CARD, by="device.driver"))
    assert turned(bus, {ALL: (18, text, "")}) == expected
    assert verified(bus, {ALL: (18, text, "")})[1]["device.driver"] == (
        "user-space library 570.124 does not fit the loaded kernel module 570.86.15"
    )


def test_no_tool(bus):
    changed = turned(bus, {}, tools=[])
    assert changed[("device.query", "gpu-01")] == ("fail", "absent", None)
    assert changed[("device.count", "gpu-01")] == ("unknown", "blocked", "device.query")
    assert changed[("device.slot", "SXM1")] == ("unknown", "blocked", "device.query")
    assert ("device.driver", "gpu-01") not in changed and ("device.link_width", "SXM1") not in changed


def test_a_tool_that_prints_rubbish(bus):
    answers = {ALL: (0, "<nvidia_smi_log><gpu", ""), **{(*ALL, "-i", a): (0, "<nvidia_smi_log>", "") for a in CARDS}}
    runner = HostRunner(bus, {**answers, ("nvidia-smi",): (0, "", "")}, LOADED)
    runner.run = _any_csv(runner.run)
    observation = as_dict(probe.observe(runner, root=str(bus.root), dmi_path="/none", timeout_seconds=7))
    found = judge.judge_devices("gpu-01", observation, DECLARED, now=NOW)
    query = next(f for f in found if f["check"] == "device.query")
    assert query["hint"] == "device.query.unreadable"
    assert "<nvidia_smi_log><gpu" in query["evidence"][0]["excerpt"]


def _any_csv(run):
    """Answer the last resort, a CSV query, with nothing."""

    def answer(argv, timeout_seconds):
        if any(word.startswith("--query-gpu=") for word in argv):
            argv = [argv[0]]
        return run(argv, timeout_seconds)

    return answer


def test_a_wrong_declared_slot_map_passes_no_slot(bus):
    baseline = slots.build_record(observed(bus, HEALTHY, LOADED), "gpu-01", NOW)
    observation = observed(bus, HEALTHY, LOADED, declared_slots={"0000:18:00.0": ""})
    looked_at = {"gpu-01": judge.placed(observation, baseline)}
    (found,) = judge.judge_slots({"gpu-01": baseline}, {}, looked_at, {"gpu-01": DECLARED}, now=NOW)
    assert (found["hint"], found["verdict"]) == ("device.slot.unknown", "unknown")
    assert "'0000:18:00.0': '' has no name" in found["message"]
    told = {f["hint"] for f in judge.judge_devices("gpu-01", observation, DECLARED, now=NOW)}
    assert "device.observation.errors" in told


def test_a_slot_table_that_lies_is_no_warning(bus):
    entries = [slot_structure(f"SLOT {number}", 4, number, 0, 0x18, 0) for number in (1, 2)]
    (bus.home / "DMI").write_bytes(b"".join(entries) + END)
    observation = observed(bus, HEALTHY, LOADED)
    assert observation["errors"] == ["slot table unusable: same address for every slot"]
    found = judge.judge_devices("gpu-01", observation, DECLARED, now=NOW)
    assert {f["verdict"] for f in found} == {"pass", "not_applicable"}
    assert "device.observation.ok" in {f["hint"] for f in found}


def test_swapped_replaced_and_narrow(bus):
    one, two, three = CARDS
    swapped = document(card(one, "1650423000001"), card(two, "1650423000003"), card(three))
    baseline_like = {ALL: (0, swapped.replace("GPU-1650423000001", "GPU-1").replace("GPU-1650423000003", "GPU-3"), "")}
    assert turned(bus, baseline_like) == {
        ("device.slot", "SXM1"): ("fail", "swapped", None),
        ("device.slot", "SXM3"): ("fail", "swapped", None),
    }
    other = links(*CARDS).replace("GPU-1-0001", "GPU-1659999000009-0001")
    replaced = {ALL: (0, document(card(one), card(two, "1659999000009"), card(three)), ""), LINKS: (0, other, "")}
    assert turned(bus, replaced) == {("device.slot", "SXM1"): ("fail", "replaced", None)}
    before = verified(bus, HEALTHY)[0]
    (bus.root / "devices/0000:3a:00.0/current_link_width").write_text("8\n")
    after = verified(bus, HEALTHY)[0]
    assert {key: after[key] for key in after if after[key] != before[key]} == {
        ("device.link_width", "SXM2"): ("fail", "narrow", None)
    }
