# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the collection observes on an emulated host: healthy, and with each fault. Nothing but the fault may show."""

from __future__ import annotations

import pytest
from accel_emulator import kernel_log, state
from ansible_collections.accel.cluster.plugins.module_utils._accel import judge
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import as_dict
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors import amd_xgmi
from emulated import by_address

PROFILES = {"nvidia_h100_8": "SXM5", "amd_mi300x_8": "OAM5", "ascend_910b_8": "NPU5"}
# Slot -> address: server models, so written down here once more.
ADDRESSES = {"SXM5": "0000:ba:00.0", "OAM5": "0000:a6:00.0", "NPU5": "0000:42:00.0"}
OTHERS = {"SXM5": ("SXM6", "0000:db:00.0"), "OAM5": ("OAM0", "0000:46:00.0"), "NPU5": ("NPU4", "0000:c1:00.0")}


@pytest.fixture(params=sorted(PROFILES))
def profile(request) -> str:
    return request.param


def test_a_healthy_host_answers_in_full(show, profile) -> None:
    shown = show(profile)
    told = shown.observe()
    assert (told.count, told.bus_count, told.unanswered, told.errors) == (8, 8, [], [])
    assert [tool.state for tool in told.tools] == ["ok"]
    assert [(driver.kernel_version, driver.loaded) for driver in told.drivers] == [(shown.host.driver_version, True)]
    for card in shown.host.cards:
        device = by_address(told)[card.address]
        assert (device.index, device.model, device.serial) == (card.index, card.model, card.serial)
        assert device.health.state == "ok"
        assert device.numa_node == card.numa_node
        assert device.memory_bytes == card.memory_mib << 20
        assert device.link.under_load is False
        assert device.device_nodes
        assert device.firmware_version == card.firmware_version
    assert len({device.slot.label for device in told.devices}) == 8
    assert None not in {device.slot.label for device in told.devices}


def test_slots_are_told_by_the_source_that_the_vendor_has(show) -> None:
    labels = {
        name: {device.pci_address: (device.slot.label, device.slot.source) for device in show(name).observe().devices}
        for name in PROFILES
    }
    assert labels["nvidia_h100_8"]["0000:ba:00.0"] == ("SXM5", "vendor")
    assert labels["amd_mi300x_8"]["0000:05:00.0"] == ("OAM3", "vendor")
    assert labels["ascend_910b_8"]["0000:c1:00.0"] == ("4", "sysfs")


def test_a_busy_card_reads_at_full_speed(show, profile) -> None:
    slot = PROFILES[profile]
    told = by_address(show(profile, cards=[{"slot": slot, "busy": True}]).observe())
    busy = told.pop(ADDRESSES[slot])
    assert (busy.link.speed_gts, busy.link.under_load) == (32.0, True)
    assert {(device.link.speed_gts, device.link.under_load) for device in told.values()} == {(2.5, False)}


@pytest.mark.parametrize("state", ["warning", "critical"])
def test_a_sick_card_says_so_and_no_other(show, profile, state) -> None:
    slot = PROFILES[profile]
    told = by_address(show(profile, cards=[{"slot": slot, "health": state}]).observe())
    sick = told.pop(ADDRESSES[slot])
    # What has a check of its own is no reason of the health.
    said = (sick.repair.state, sick.ecc.uncorrected_volatile, sick.health.state)
    assert (
        said
        == {
            ("nvidia_h100_8", "warning"): ("reset", 0, "ok"),
            ("nvidia_h100_8", "critical"): ("replace", 4, "ok"),
            ("amd_mi300x_8", "warning"): (sick.repair.state, 0, "warning"),
            ("amd_mi300x_8", "critical"): (sick.repair.state, 4, "ok"),
            ("ascend_910b_8", "warning"): ("reset", 0, "warning"),
            ("ascend_910b_8", "critical"): ("ok", 4, "critical"),
        }[profile, state]
    )
    assert bool(sick.health.reasons) == (sick.health.state != "ok")
    assert {device.health.state for device in told.values()} == {"ok"}
    assert {device.ecc.uncorrected_volatile or 0 for device in told.values()} == {0}


def test_a_lost_card_is_on_the_bus_and_does_not_answer(show, profile) -> None:
    slot = PROFILES[profile]
    told = show(profile, {"fault": "card_lost", "slot": slot}).observe()
    assert told.bus_count == 8
    assert told.count == 7
    assert [one["pci_address"] for one in told.unanswered] == [ADDRESSES[slot]]
    assert len(told.devices) == 7
    assert {device.health.state for device in told.devices} == {"ok"}


def test_nvidia_names_the_lost_card(show) -> None:
    told = show("nvidia_h100_8", {"fault": "card_lost", "slot": "SXM5"}).observe()
    assert [one["state"] for one in told.unanswered] == ["lost"]
    (tool,) = told.tools
    assert "GPU is lost" in tool.excerpt
    assert tool.rc == 15


def test_a_hung_card_hangs_the_tool_but_not_the_others(show, profile) -> None:
    slot = PROFILES[profile]
    told = show(profile, {"fault": "card_hung", "slot": slot}).observe()
    assert any(tool.state == "hung" for tool in told.tools)
    assert [one["pci_address"] for one in told.unanswered] == [ADDRESSES[slot]]
    assert len(told.devices) == 7
    assert (told.unanswered[0]["link"].width, told.unanswered[0]["link"].max_width) == (16, 16)


def test_swapped_cards_change_places_and_nothing_else(show, profile) -> None:
    slot = PROFILES[profile]
    other, other_address = OTHERS[slot]
    before = by_address(show(profile).observe())
    after = by_address(show(profile, {"fault": "cards_swapped", "slot": slot, "slot_b": other}).observe())
    here, there = ADDRESSES[slot], other_address
    assert (after[here].serial, after[there].serial) == (before[there].serial, before[here].serial)
    assert (after[here].uuid, after[there].uuid) == (before[there].uuid, before[here].uuid)
    for address in before:
        assert (after[address].index, after[address].slot) == (before[address].index, before[address].slot)
        assert after[address].link == before[address].link
        if address not in (here, there):
            assert after[address] == before[address]


def test_a_replaced_card_has_another_serial_in_its_slot(show, profile) -> None:
    slot = PROFILES[profile]
    before = by_address(show(profile).observe())
    after = by_address(show(profile, {"fault": "card_replaced", "slot": slot}).observe())
    replaced, was = after.pop(ADDRESSES[slot]), before.pop(ADDRESSES[slot])
    assert replaced.serial not in {was.serial, *(device.serial for device in before.values())}
    assert (replaced.slot, replaced.model, replaced.link) == (was.slot, was.model, was.link)
    assert after == before


def test_a_narrow_link_is_the_only_thing_that_differs(show, profile) -> None:
    slot = PROFILES[profile]
    before = by_address(show(profile).observe())
    after = by_address(show(profile, {"fault": "link_downtrained", "slot": slot}).observe())
    narrow, was = after.pop(ADDRESSES[slot]), before.pop(ADDRESSES[slot])
    assert (narrow.link.width, narrow.link.max_width) == (8, 16)
    assert (narrow.serial, narrow.slot, narrow.health) == (was.serial, was.slot, was.health)
    assert after == before


def test_a_mismatched_driver_leaves_only_what_the_bus_tells(show, profile) -> None:
    shown = show(profile, {"fault": "driver_library_mismatch"})
    told = shown.observe()
    assert (told.count, told.bus_count) == (None, 8)
    reason = {
        "nvidia_h100_8": "driver_library_mismatch",
        "amd_mi300x_8": "driver_not_loaded",
        "ascend_910b_8": "driver_not_ready",
    }
    assert {tool.reason for tool in told.tools} == {reason[profile]}
    links = [device.link for device in told.devices] + [one["link"] for one in told.unanswered]
    assert [(link.width, link.max_width) for link in links] == [(16, 16)] * 8


def test_nvidia_tells_both_versions_of_a_mismatch(show) -> None:
    told = show("nvidia_h100_8", {"fault": "driver_library_mismatch"}).observe()
    assert [(driver.kernel_version, driver.library_version) for driver in told.drivers] == [("570.86.15", "570.124")]


def test_two_faults_at_once_both_show(show) -> None:
    told = show(
        "nvidia_h100_8", {"fault": "link_downtrained", "slot": "SXM1"}, {"fault": "card_lost", "slot": "SXM5"}
    ).observe()
    assert [one["pci_address"] for one in told.unanswered] == ["0000:ba:00.0"]
    assert by_address(told)["0000:5d:00.0"].link.width == 8


@pytest.mark.parametrize("version", ["535.261.03", "550.90.07", "570.86.15", "580.105.08", "590.48.01"])
def test_every_generation_of_nvidia_smi_is_read_the_same(show, version) -> None:
    told = show("nvidia_h100_8", driver_version=version).observe()
    assert (told.count, told.errors) == (8, [])
    assert {device.driver_version for device in told.devices} == {version}
    assert by_address(told)["0000:ba:00.0"].module_id == 5


@pytest.mark.parametrize("version", ["6.8.5", "6.10.5", "6.12.12", "6.14.14", "6.16.6"])
def test_every_generation_of_amd_smi_is_read_the_same(show, version) -> None:
    told = show("amd_mi300x_8", driver_version=version).observe()
    assert (told.count, told.errors) == (8, [])
    assert by_address(told)["0000:05:00.0"].slot.label == "OAM3"
    assert {device.health.state for device in told.devices} == {"ok"}


def test_rocm_smi_alone_answers_for_all_cards(show) -> None:
    shown = show("amd_mi300x_8", cards=[{"slot": "OAM0", "health": "critical"}])
    del shown.answers["amd-smi"]
    told = shown.observe()
    assert told.count == 8
    assert {device.serial for device in told.devices} == {card.serial for card in shown.host.cards}
    assert by_address(told)["0000:46:00.0"].ecc.uncorrected_volatile == 4


def test_graphics_and_compute_devices_of_amd_lead_to_the_card(show) -> None:
    shown = show("amd_mi300x_8", cards=[{"slot": "OAM3", "uuid": "67ff74a1-0000-1000-80e6-b5bb3c3ce0db"}])
    real = shown.realpath("/sys/class/drm/renderD128")
    assert real == "/sys/bus/pci/tree/pci0000:02/0000:02:01.0/0000:03:00.0/0000:04:01.0/0000:05:00.0/drm/renderD128"
    assert shown.read(f"{real}/dev") == "226:128"
    node = shown.read("/sys/class/kfd/kfd/topology/nodes/2/properties").splitlines()
    # Bus 5, device 0: 5 << 8. The chip's serial, as a decimal number.
    assert {"location_id 1280", "domain 0", "drm_render_minor 128", f"unique_id {0x67E6B5BB3C3CE0DB}"} <= set(node)
    assert shown.read("/sys/class/kfd/kfd/topology/nodes/0/gpu_id") == "0"


def test_modules_and_kernel_files_name_the_driver(show) -> None:
    nvidia = show("nvidia_h100_8", cards=[{"slot": "SXM5", "uuid": "GPU-11111111-2222-3333-4444-555555555555"}])
    assert nvidia.read("/sys/module/nvidia/version") == "570.86.15"
    assert "Kernel Module  570.86.15  " in nvidia.read("/proc/driver/nvidia/version")
    card = nvidia.read("/proc/driver/nvidia/gpus/0000:ba:00.0/information").splitlines()
    assert "GPU UUID:        GPU-11111111-2222-3333-4444-555555555555" in card
    assert "Device Minor:    6" in card
    assert show("ascend_910b_8").read("/usr/local/Ascend/driver/version.info").startswith("Version=25.2.0\n")


# What the faults turn on one card of an emulated host, and nothing else anywhere.
BY_REPAIR = ("unknown", "blocked", "device.memory_repair")
SPLIT = {"device.partition": ("fail", "split", None)}
CONDITIONS = {
    "nvidia_h100_8": {
        "ecc": {"device.ecc": ("fail", "uncorrected", None)},
        "remap_pending": {
            "device.memory_repair": ("fail", "reset", None),
            "device.ecc": BY_REPAIR,
            "device.kernel_log": BY_REPAIR,
        },
        "xid79": {"device.kernel_log": ("fail", "reset", None)},
        "throttle": {"device.throttle": ("fail", "hardware", None)},
        "port_down": {"device.ports": ("fail", "down", None)},
        "partitioned": {**SPLIT, "device.ports": ("unknown", "blocked", "device.partition")},
        "process_holding": {"device.processes": ("fail", "held", None)},
    },
    "amd_mi300x_8": {
        "ecc": {
            "device.ecc": ("fail", "uncorrected", None),
            "device.kernel_log": ("unknown", "blocked", "device.ecc"),
        },
        "xid79": {"device.kernel_log": ("fail", "reset", None)},
        "throttle": {"device.throttle": ("fail", "hardware", None)},
        "partitioned": SPLIT,
        "process_holding": {"device.processes": ("fail", "held", None)},
    },
    "ascend_910b_8": {
        # The tool tells fault codes, which the counters explain.
        "ecc": {
            "device.ecc": ("fail", "uncorrected", None),
            "device.health": ("unknown", "blocked", "device.ecc"),
        },
        "remap_pending": {
            "device.memory_repair": ("fail", "reset", None),
            "device.ecc": BY_REPAIR,
            "device.health": BY_REPAIR,
        },
        "partitioned": SPLIT,
        "process_holding": {"device.processes": ("fail", "held", None)},
    },
}
SUBJECTS = {"nvidia_h100_8": "SXM5", "amd_mi300x_8": "OAM5", "ascend_910b_8": "5"}
DECLARED = {
    "nvidia_h100_8": ("nvidia", "NVIDIA H100 80GB HBM3", 80),
    "amd_mi300x_8": ("amd", "AMD Instinct MI300X", 192),
    "ascend_910b_8": ("ascend", "910B3", 64),
}


def findings(observation, profile: str = "nvidia_h100_8") -> list[dict]:
    vendor, model, gib = DECLARED[profile]
    declared = {
        "cluster_accelerator_vendor": vendor,
        "cluster_accelerator_count": 8,
        "cluster_accelerator_models": [model],
        "cluster_accelerator_memory_gib": gib,
        "cluster_processes_allowed": False,
    }
    return judge.judge_devices("box", as_dict(observation), declared)


def judged(observation, profile: str = "nvidia_h100_8") -> dict:
    return {
        (f["check"], f["subject"]): (f["verdict"], f["hint"].rpartition(".")[2], f["blocked_by"])
        for f in findings(observation, profile)
    }


def turned(show, profile: str, fault: dict) -> dict:
    """Return what a fault turns; what was said of a card that now says nothing is None."""
    before, after = judged(show(profile).observe(), profile), judged(show(profile, fault).observe(), profile)
    return {key: after.get(key) for key in before.keys() | after.keys() if before.get(key) != after.get(key)}


@pytest.mark.parametrize("version", ["535.261.03", "550.90.07", "570.86.15", "580.95.05", "590.48.01"])
def test_a_healthy_host_passes_whatever_it_is_judged_by(show, version) -> None:
    told = judged(show("nvidia_h100_8", driver_version=version).observe())
    idle = {key: value for key, value in told.items() if value[0] != "pass"}
    assert {(key[0], value) for key, value in idle.items()} == {("device.link_speed", ("unknown", "no_reading", None))}
    assert told["device.ports", "SXM5"] == told["device.kernel_log", "box"] == ("pass", "ok", None)


@pytest.mark.parametrize(
    ("profile", "gaps"),
    [
        ("nvidia_h100_8", {"device.link_speed"}),
        ("amd_mi300x_8", {"device.link_speed"}),
        ("ascend_910b_8", {"device.link_speed", "device.temperature", "device.throttle"}),
    ],
)
def test_what_the_tools_never_tell_of_an_idle_host_is_a_handful_of_unknowns(show, profile, gaps) -> None:
    told = [
        one for one in findings(show(profile).observe(), profile) if one["verdict"] not in ("pass", "not_applicable")
    ]
    assert {one["check"] for one in told} == gaps
    assert {(one["subject"], one["verdict"], len(one["cards"])) for one in told} == {("box", "unknown", 8)}


@pytest.mark.parametrize(
    ("profile", "fault"), [(profile, fault) for profile, faults in CONDITIONS.items() for fault in faults]
)
def test_a_condition_turns_exactly_its_checks(show, profile, fault) -> None:
    subject = SUBJECTS[profile]
    assert turned(show, profile, {"fault": fault, "slot": PROFILES[profile]}) == {
        (check, subject): told for check, told in CONDITIONS[profile][fault].items()
    }


@pytest.mark.parametrize(
    ("profile", "ends"),
    [("nvidia_h100_8", {"SXM5"}), ("amd_mi300x_8", {"OAM3", "OAM5"}), ("ascend_910b_8", {"4", "5"})],
)
def test_a_link_that_is_down_is_down_at_both_ends(show, profile, ends) -> None:
    """NVLink ends at a switch; AMD and Ascend link each card with each other one."""
    assert turned(show, profile, {"fault": "port_down", "slot": PROFILES[profile]}) == {
        ("device.ports", subject): ("fail", "down", None) for subject in ends
    }


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("6.8.5", ("unknown", "unknown", None)),
        ("6.10.5", ("unknown", "unknown", None)),
        ("6.12.12", ("fail", "down", None)),
        ("6.14.14", ("fail", "down", None)),
        ("6.16.6", ("fail", "down", None)),
    ],
)
def test_xgmi_is_told_by_newer_releases_only(show, version, told) -> None:
    shown = show("amd_mi300x_8", {"fault": "port_down", "slot": "OAM5"}, driver_version=version)
    assert judged(shown.observe(), "amd_mi300x_8")["device.ports", "OAM5"] == told
    rc, text, _err = shown.smi("amd-smi", "xgmi")
    assert rc == 0
    assert {address: len(ports) for address, ports in amd_xgmi.parse_xgmi(text).items()} == {
        card.address: 0 if told[0] == "unknown" else 7 if version >= "6.14" else 8 for card in shown.host.cards
    }


def test_links_that_no_card_tells_are_unknown(show, monkeypatch) -> None:
    shown = show("ascend_910b_8")
    answer = shown.smi
    refused = (255, "", "This device does not support querying hccs.\n")
    monkeypatch.setattr(shown, "smi", lambda *argv: refused if "hccs" in argv else answer(*argv))
    told = judged(shown.observe(), "ascend_910b_8")
    assert told["device.ports", "box"] == ("unknown", "unknown", None)


@pytest.mark.parametrize(
    ("profile", "mode", "parts", "first"),
    [
        ("nvidia_h100_8", "MIG", 7, {"kind": "mig", "index": 0, "profile": "1g.10gb"}),
        ("amd_mi300x_8", "CPX", 8, {"kind": "partition", "id": 0, "mode": "CPX", "pci_address": "0000:a6:00.0"}),
        ("ascend_910b_8", "vNPU", 2, {"kind": "vnpu", "index": 212, "profile": "vir10_3c_32g"}),
    ],
)
def test_a_split_card_counts_as_one_card_and_as_its_parts(show, profile, mode, parts, first) -> None:
    told = show(profile, {"fault": "partitioned", "slot": PROFILES[profile]}).observe()
    assert (told.count, told.bus_count, told.logical_count, told.errors) == (8, 8, 7 + parts, [])
    devices = by_address(told)
    split = devices.pop(ADDRESSES[PROFILES[profile]])
    assert (split.partition_mode, len(split.logical)) == (mode, parts)
    assert first.items() <= split.logical[0].items()
    assert len({str(one) for one in split.logical}) == parts
    assert {(device.partition_mode, len(device.logical)) for device in devices.values()} == {("whole", 0)}
    whole = by_address(show(profile).observe())[split.pci_address]
    assert (split.serial, split.uuid, split.slot, split.memory_bytes) == (
        whole.serial,
        whole.uuid,
        whole.slot,
        whole.memory_bytes,
    )


GARBAGE = {"tool_garbage": "accel", "tool_truncated": "", "tool_foreign": "99"}


@pytest.mark.parametrize("fault", GARBAGE)
def test_what_a_tool_prints_and_nobody_can_read_is_kept(show, profile, fault) -> None:
    shown = show(profile, {"fault": fault})
    told = shown.observe()
    assert (told.count, told.bus_count, told.devices) == (None, 8, [])
    assert {(tool.state, tool.reason) for tool in told.tools} == {("unreadable", None)}
    # What the bus shows of them stays.
    assert sorted(one["pci_address"] for one in told.unanswered) == sorted(card.address for card in shown.host.cards)
    assert {(one["state"], one["link"].width, one["link"].max_width) for one in told.unanswered} == {
        ("not_reported", 16, 16)
    }
    found = findings(told, profile)
    by_cause: dict = {}
    for one in found:
        by_cause.setdefault((one["check"], one["hint"].rpartition(".")[2], one["blocked_by"]), set()).add(
            one["subject"]
        )
    assert by_cause.pop(("device.query", "unreadable", None)) == {"box"}
    assert by_cause.pop(("device.driver", "ok", None)) == by_cause.pop(("device.kernel_log", "ok", None)) == {"box"}
    assert by_cause.pop(("device.count", "blocked", "device.query")) == {"box"}
    assert len(by_cause.pop(("device.link_width", "ok", None))) == 8
    assert {(cause, blocker) for _check, cause, blocker in by_cause} == {("blocked", "device.query")}
    assert {len(subjects) for subjects in by_cause.values()} == {8}
    query = next(one for one in found if one["check"] == "device.query")
    raw = {"nvidia_h100_8": "570.86.15", "amd_mi300x_8": "AMD Instinct MI300X", "ascend_910b_8": "25.2.0"}[profile]
    expected = raw if fault == "tool_truncated" else GARBAGE[fault]
    assert any(expected in piece["excerpt"] for piece in query["evidence"])


def test_the_kernel_log_says_why_a_card_is_lost(show) -> None:
    told = show("nvidia_h100_8", {"fault": "card_lost", "slot": "SXM5"}).observe()
    assert [(event["code"], event["pci_address"], event["cause"]) for event in told.kernel_events] == [
        ("xid 79", "0000:ba:00.0", None),
        ("xid 154", "0000:ba:00.0", "xid 79"),
    ]
    # A lost card does not tell its slot either.
    assert judged(told)["device.kernel_log", "0000:ba:00.0"] == ("unknown", "blocked", "device.count")


@pytest.mark.parametrize("fault", ["card_lost", "card_hung"])
def test_the_others_keep_their_links(show, fault) -> None:
    told = by_address(show("nvidia_h100_8", {"fault": fault, "slot": "SXM5"}).observe())
    assert len(told) == 7
    assert {len(device.ports) for device in told.values()} == {18}


@pytest.mark.parametrize("name", ["amd_mi300x_8", "ascend_910b_8"])
def test_a_held_card_of_any_vendor_has_a_holder(show, name) -> None:
    slot = PROFILES[name]
    told = by_address(show(name, {"fault": "process_holding", "slot": slot}).observe())
    assert [one["pid"] for one in told.pop(ADDRESSES[slot]).processes] == [4711]
    assert not any(device.processes for device in told.values())


@pytest.mark.parametrize(
    ("name", "fault"),
    [("amd_mi300x_8", "remap_pending"), ("ascend_910b_8", "xid79"), ("ascend_910b_8", "throttle")],
)
def test_a_fault_that_a_vendor_can_not_show_is_refused(show, name, fault) -> None:
    with pytest.raises(state.StateError, match=f"{fault} is not shown on {name.partition('_')[0]}; accepted: ") as told:
        show(name, {"fault": fault, "slot": PROFILES[name]})
    accepted = str(told.value).rpartition("accepted: ")[2].split(", ")
    assert {"card_lost", "partitioned", "tool_foreign"} < set(accepted) and fault not in accepted
    for one in accepted:
        slots, _text = state.FAULTS[one]
        other = {"amd_mi300x_8": "OAM1", "ascend_910b_8": "NPU1"}[name]
        show(name, {"fault": one, **dict(zip(("slot", "slot_b"), (PROFILES[name], other)[:slots]))})


def test_the_journal_gets_the_kernels_lines_in_its_export_format() -> None:
    told = kernel_log.export(["one", "two"], "m" * 32, "b" * 32, "box", 1764500000.0, 99.0).decode()
    first, second, rest = told.split("\n\n")
    assert rest == ""
    assert first.splitlines() == [
        "__REALTIME_TIMESTAMP=1764499999999999",
        "__MONOTONIC_TIMESTAMP=98999999",
        "_BOOT_ID=" + "b" * 32,
        "_MACHINE_ID=" + "m" * 32,
        "_HOSTNAME=box",
        "_TRANSPORT=kernel",
        "SYSLOG_FACILITY=0",
        "SYSLOG_IDENTIFIER=kernel",
        "PRIORITY=4",
        "MESSAGE=one",
    ]
    assert second.splitlines()[0] == "__REALTIME_TIMESTAMP=1764500000000000"
