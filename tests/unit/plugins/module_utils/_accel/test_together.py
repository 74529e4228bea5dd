# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nobody knows of any card of a host is one finding that names them all; nothing unknown gets lost."""

from __future__ import annotations

import copy

import observations as seen
import pytest
import test_conclude
from ansible_collections.accel.cluster.plugins.module_utils._accel import conclude, judge, shown
from test_judge import devices, one

SLOTS = sorted(seen.SLOTS)


def without(path, *numbers):
    """Return a host of which these cards do not tell a value."""
    observation = seen.healthy()
    section, _dot, key = path.partition(".")
    for number in numbers or range(8):
        observation["devices"][number][section][key] = None if key != "state" else "unknown"
    return observation


def told(observation, check, declared=None):
    return {f["subject"]: (f["verdict"], f["cards"]) for f in devices(observation, declared) if f["check"] == check}


GAPS = {
    "device.memory_repair": "repair.state",
    "device.ecc": "ecc.uncorrected_volatile",
    "device.temperature": "readings.temperature_limit_c",
    "device.throttle": "readings.throttles",
}


@pytest.mark.parametrize("check", GAPS)
def test_what_no_card_tells_is_one_unknown_that_names_every_card(check):
    observation = without(GAPS[check])
    found = devices(observation)
    assert told(observation, check) == {"gpu-01": ("unknown", SLOTS)}
    (gap,) = [f for f in found if f["check"] == check]
    assert (gap["severity"], gap["blocked_by"]) == ("warning", None)
    assert "8 cards (SXM1, SXM2, SXM3, SXM4, SXM5, SXM6, SXM7, SXM8)" in gap["message"]
    if gap["evidence"]:
        assert all(f"SXM{number}: " in gap["evidence"][0]["excerpt"] for number in range(1, 9))
    assert conclude.finding_problem(gap) is None
    # Findings of the host come first, and every other check has each card still.
    assert found.index(gap) < min(found.index(f) for f in found if f["subject"] in SLOTS)
    assert {f["subject"] for f in found if f["check"] == "device.model"} == set(SLOTS)
    assert judge.verdict(found) == judge.verdict(devices(seen.healthy()))


@pytest.mark.parametrize("check", GAPS)
def test_what_some_cards_do_not_tell_is_a_finding_of_each(check):
    assert told(without(GAPS[check], 6), check) == {
        slot: ("unknown" if slot == "SXM5" else "pass", []) for slot in SLOTS
    }
    some = told(without(GAPS[check], 0, 1, 2, 3, 4, 5, 6), check)
    assert [subject for subject, (verdict, _cards) in some.items() if verdict == "unknown"] == [
        slot for slot in SLOTS if slot != "SXM7"
    ]


def test_a_silent_card_has_its_own_finding_and_keeps_the_others_together():
    observation = seen.card_hung(without("readings.throttles"))
    state = told(observation, "device.throttle")
    assert state["gpu-01"] == ("unknown", [slot for slot in SLOTS if slot != "SXM3"])
    assert state["SXM3"] == ("unknown", [])
    assert one(devices(observation), "device.throttle", "SXM3")["blocked_by"] == "device.query"


def test_cards_of_two_models_are_told_apart():
    observation = without("readings.throttles", 0, 1, 2, 3)
    for number in range(4, 8):
        observation["devices"][number]["model"] = "NVIDIA H200"
    assert told(observation, "device.throttle")["gpu-01"] == ("unknown", ["SXM1", "SXM2", "SXM3", "SXM4"])


def test_two_gaps_of_one_check_are_not_two_findings_of_one_subject():
    observation = without("readings.temperature_limit_c", 0, 1, 2, 3)
    for number in range(4, 8):
        observation["devices"][number]["model"] = "NVIDIA H200"
        observation["devices"][number]["readings"]["temperature_c"] = None
    found = [f for f in devices(observation) if f["check"] == "device.temperature"]
    assert len({(f["host"], f["subject"]) for f in found}) == len(found) == 5
    assert sorted([card for f in found for card in f["cards"]] + [f["subject"] for f in found if not f["cards"]]) == (
        SLOTS
    )


def test_idle_cards_are_told_of_together_whatever_the_others_do():
    observation = seen.healthy()
    for number in (1, 2, 3):
        observation["devices"][number]["link"].update(speed_gts=2.5, under_load=False)
    state = told(observation, "device.link_speed")
    assert state["gpu-01"] == ("unknown", ["SXM1", "SXM2", "SXM3"])
    assert [state[slot] for slot in SLOTS[3:]] == [("pass", [])] * 5


def test_one_card_and_what_is_critical_stay_as_they_are():
    observation = without("readings.throttles", 6)
    observation.update(devices=[observation["devices"][6]], count=1, bus_count=1)
    assert told(observation, "device.throttle", {"cluster_accelerator_count": 1}) == {"SXM5": ("unknown", [])}
    # What decides the verdict is told of each card.
    assert told(without("health.state"), "device.health") == {slot: ("unknown", []) for slot in SLOTS}


def test_chinese_names_them_too():
    (gap,) = [f for f in devices(without("readings.throttles"), language="zh") if f["check"] == "device.throttle"]
    assert "8 张卡（SXM1，SXM2" in gap["message"]


def test_the_cards_of_a_conclusion_carry_what_is_not_known_of_them():
    observation = without("readings.throttles")
    found = devices(observation)
    cards = conclude.cards("gpu-01", observation, None, found, seen.NOW)
    assert [card["label"] for card in cards] == SLOTS
    for card in cards:
        assert [one["verdict"] for one in card["checks"] if one["check"] == "device.throttle"] == ["unknown"]


def test_cards_that_are_renamed_are_renamed_in_the_list_too():
    """A driver that does not work: the cards are on the bus, idle, and known by address until a baseline names them."""
    observation = seen.driver_library_mismatch(seen.healthy())
    for card in observation["devices"]:
        card["link"].update(speed_gts=2.5, under_load=False)
        card["slot"] = {"label": None, "source": None, "candidates": []}
    for entry in observation["unanswered"]:
        entry["slot"] = {"label": None, "source": None, "candidates": []}
    named = copy.deepcopy(observation)
    for number, card in enumerate(named["devices"]):
        card["slot"] = {"label": seen.SLOTS[number], "source": "baseline", "candidates": []}
    for entry in named["unanswered"]:
        entry["slot"] = {"label": seen.SLOTS[seen.ADDRESSES.index(entry["pci_address"])], "source": "baseline"}
    (gap,) = [f for f in devices(observation) if f["hint"] == "device.link_speed.no_reading"]
    assert set(gap["cards"]) == set(seen.ADDRESSES)
    (after,) = conclude._renamed([gap], observation, named, "en")
    assert sorted(after["cards"]) == SLOTS
    assert "SXM5" in after["message"] and "0000:" not in after["message"]


@pytest.mark.parametrize("cards", ["SXM1", [1], None])
def test_a_list_of_cards_that_is_none_is_refused(cards):
    (gap,) = [f for f in devices(without("readings.throttles")) if f["check"] == "device.throttle"]
    assert "cards must be a list of texts" in (conclude.finding_problem({**gap, "cards": cards}) or "")


def test_the_node_shows_one_line_for_it():
    lines = shown.show_findings(devices(without("readings.throttles")), "en").splitlines()
    assert sum(line.startswith("unknown (warning)") for line in lines) == 1
    assert "1 unknown" in lines[-1]


def test_the_cards_of_one_gap_are_called_as_the_baseline_does():
    """A silent card has the kernel's short name ("3") until the baseline tells its place."""
    observation = seen.driver_library_mismatch(seen.healthy())
    for number, entries in enumerate(zip(observation["devices"], observation["unanswered"])):
        for entry in entries:
            entry["slot"] = {"label": str(number + 1), "source": "sysfs", "candidates": []}
            entry["link"] = {**entry["link"], "speed_gts": 2.5, "under_load": None}
    (gap,) = [f for f in test_conclude.cluster(gpu_01=observation)["run"]["findings"] if f["cards"]]
    assert gap["cards"] == list(seen.SLOTS)
    assert f"of 8 cards ({', '.join(seen.SLOTS)}), idle at 2.5 of 32 GT/s" in gap["message"]
    lines = [line.partition(": ")[0] for piece in gap["evidence"] for line in piece["excerpt"].split("\n")]
    assert lines == list(seen.SLOTS)


def of_vendors(*vendors):
    """Return a host whose cards do not tell why they throttle, card by card of these vendors."""
    observation = without("readings.throttles")
    for device, vendor in zip(observation["devices"], vendors * 8):
        device["vendor"] = vendor
    return observation


@pytest.mark.parametrize(
    ("vendor", "tool", "foreign"), [("nvidia", "nvidia-smi", "amd-smi"), ("amd", "amd-smi", "nvidia-smi")]
)
def test_what_to_do_is_told_for_the_vendor_of_the_card(vendor, tool, foreign):
    found = devices(of_vendors(vendor), {"cluster_accelerator_vendor": vendor})
    (gap,) = [f for f in found if f["check"] == "device.throttle"]
    assert gap["vendor"] == vendor
    assert conclude.finding_problem(gap) is None and conclude.finding_problem({**gap, "vendor": 5})
    for told in (shown.show_findings([gap], "en"), conclude._explained(gap, "en")["hint_text"]):
        assert tool in told and foreign not in told


def test_an_ascend_card_is_sent_to_no_tool_that_it_has_not():
    found = devices(of_vendors("ascend"), {"cluster_accelerator_vendor": "ascend"})
    (gap,) = [f for f in found if f["check"] == "device.throttle"]
    assert "nvidia-smi" not in shown.show_findings([gap], "en") + conclude._explained(gap, "en")["hint_text"]


def test_cards_of_two_vendors_are_not_put_together():
    """What to do differs, and so does what is known of their tools."""
    found = [f for f in devices(of_vendors("nvidia", "amd")) if f["check"] == "device.throttle"]
    assert {f["vendor"] for f in found} == {"nvidia", "amd"}
    lines = shown.show_findings(found, "en")
    assert "nvidia-smi -q -d PERFORMANCE" in lines and "amd-smi metric --throttle" in lines


@pytest.mark.parametrize(
    ("declared", "vendors", "told"),
    [("amd", ("amd",), "amd"), (None, ("amd",), "amd"), (None, ("amd", "nvidia"), None), ("nvidia", ("amd",), "amd")],
)
def test_a_finding_of_the_host_is_of_the_vendor_of_its_cards(declared, vendors, told):
    observation = of_vendors(*vendors)
    found = devices(observation, {"cluster_accelerator_vendor": declared})
    assert {f["vendor"] for f in found if f["check"] == "device.count"} == {told}
