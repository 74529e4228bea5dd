# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the collection observes on an emulated host: healthy, and with each fault. Nothing but the fault may show."""

from __future__ import annotations

import pytest
from accel_emulator import kernel_log, state
from ansible_collections.accel.cluster.plugins.module_utils._accel import judge
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import as_dict

PROFILES = {"nvidia_h100_8": "SXM5", "amd_mi300x_8": "OAM5", "ascend_910b_8": "NPU5"}
# Slot -> address: server models, so written down here once more.
ADDRESSES = {"SXM5": "0000:ba:00.0", "OAM5": "0000:a6:00.0", "NPU5": "0000:42:00.0"}
OTHERS = {"SXM5": ("SXM6", "0000:db:00.0"), "OAM5": ("OAM0", "0000:46:00.0"), "NPU5": ("NPU4", "0000:c1:00.0")}


@pytest.fixture(params=sorted(PROFILES))
def profile(request) -> str:
    return request.param


def by_address(observation) -> dict:
    return {device.pci_address: device for device in observation.devices}


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


@pytest.mark.parametrize("version", ["550.90.07", "570.86.15", "580.105.08", "590.48.01"])
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


# What the faults turn on SXM5 of the emulated H100 host, and nothing else anywhere.
CONDITIONS = {
    "ecc": {"device.ecc": ("fail", "uncorrected", None)},
    "remap_pending": {
        "device.memory_repair": ("fail", "reset", None),
        "device.ecc": ("unknown", "blocked", "device.memory_repair"),
        "device.kernel_log": ("unknown", "blocked", "device.memory_repair"),
    },
    "xid79": {"device.kernel_log": ("fail", "reset", None)},
    "throttle": {"device.throttle": ("fail", "hardware", None)},
    "process_holding": {"device.processes": ("fail", "held", None)},
}


# The same on slot 5 of the emulated Ascend host: its tool tells fault codes, which the counters explain.
ASCEND_CONDITIONS = {
    "ecc": {
        "device.ecc": ("fail", "uncorrected", None),
        "device.health": ("unknown", "blocked", "device.ecc"),
    },
    "remap_pending": {
        "device.memory_repair": ("fail", "reset", None),
        "device.ecc": ("unknown", "blocked", "device.memory_repair"),
        "device.health": ("unknown", "blocked", "device.memory_repair"),
    },
}
DECLARED = {
    "nvidia": {"cluster_accelerator_models": ["NVIDIA H100 80GB HBM3"], "cluster_accelerator_memory_gib": 80},
    "ascend": {"cluster_accelerator_models": ["910B3"], "cluster_accelerator_memory_gib": 64},
    "amd": {"cluster_accelerator_models": ["AMD Instinct MI300X"], "cluster_accelerator_memory_gib": 192},
}


def judged(observation, vendor="nvidia") -> dict:
    declared = {
        "cluster_accelerator_vendor": vendor,
        "cluster_accelerator_count": 8,
        "cluster_processes_allowed": False,
        **DECLARED[vendor],
    }
    found = judge.judge_devices("box", as_dict(observation), declared)
    return {(f["check"], f["subject"]): (f["verdict"], f["hint"].rpartition(".")[2], f["blocked_by"]) for f in found}


@pytest.mark.parametrize("version", ["550.90.07", "570.86.15", "580.95.05", "590.48.01"])
def test_a_healthy_host_passes_whatever_it_is_judged_by(show, version) -> None:
    told = judged(show("nvidia_h100_8", driver_version=version).observe())
    idle = {key: value for key, value in told.items() if value[0] != "pass"}
    assert {(key[0], value) for key, value in idle.items()} == {("device.link_speed", ("unknown", "no_reading", None))}
    assert told["device.ports", "SXM5"] == told["device.kernel_log", "box"] == ("pass", "ok", None)


@pytest.mark.parametrize(
    ("name", "vendor", "gaps"),
    [
        ("nvidia_h100_8", "nvidia", {"device.link_speed"}),
        ("amd_mi300x_8", "amd", {"device.link_speed", "device.ports"}),
        ("ascend_910b_8", "ascend", {"device.link_speed", "device.temperature", "device.throttle"}),
    ],
)
def test_what_the_tools_never_tell_of_an_idle_host_is_a_handful_of_unknowns(show, name, vendor, gaps) -> None:
    declared = {"cluster_accelerator_vendor": vendor, "cluster_accelerator_count": 8, **DECLARED[vendor]}
    found = judge.judge_devices("box", as_dict(show(name).observe()), declared)
    told = [one for one in found if one["verdict"] != "pass" and one["verdict"] != "not_applicable"]
    assert {one["check"] for one in told} == gaps
    assert {(one["subject"], one["verdict"], len(one["cards"])) for one in told} == {("box", "unknown", 8)}


@pytest.mark.parametrize("fault", CONDITIONS)
def test_a_condition_turns_exactly_its_checks(show, fault) -> None:
    before = judged(show("nvidia_h100_8").observe())
    after = judged(show("nvidia_h100_8", {"fault": fault, "slot": "SXM5"}).observe())
    assert {key: after.get(key) for key in before.keys() | after.keys() if before.get(key) != after.get(key)} == {
        (check, "SXM5"): told for check, told in CONDITIONS[fault].items()
    }


@pytest.mark.parametrize("fault", ASCEND_CONDITIONS)
def test_a_condition_of_an_ascend_card_turns_exactly_its_checks(show, fault) -> None:
    before = judged(show("ascend_910b_8").observe(), "ascend")
    after = judged(show("ascend_910b_8", {"fault": fault, "slot": "NPU5"}).observe(), "ascend")
    assert before["device.ecc", "5"] == before["device.memory_repair", "5"] == ("pass", "ok", None)
    assert {key: after.get(key) for key in before.keys() | after.keys() if before.get(key) != after.get(key)} == {
        (check, "5"): told for check, told in ASCEND_CONDITIONS[fault].items()
    }


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


@pytest.mark.parametrize("fault", ["ecc", "remap_pending", "xid79", "throttle"])
def test_a_fault_that_a_vendor_can_not_show_is_refused(show, fault) -> None:
    shown_on = ", ".join(state.OF_VENDORS[fault])
    with pytest.raises(state.StateError, match=f"{fault} is shown on {shown_on} only, this is amd"):
        show("amd_mi300x_8", {"fault": fault, "slot": "OAM5"})


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
