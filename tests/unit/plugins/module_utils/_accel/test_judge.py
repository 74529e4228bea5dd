# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every cause comes out where it should, on the right subject, and nothing else does."""

from __future__ import annotations

import copy
import itertools
import json

import observations as seen
import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import hints, judge, slots
from ansible_collections.accel.cluster.plugins.module_utils._accel import versions as odd_rows
from observations import ADDRESSES, DECLARED, NOW, SLOTS

# What only a card that answers tells, whatever the bus shows.
CONDITIONS = (
    "device.memory_repair",
    "device.ecc",
    "device.health",
    "device.temperature",
    "device.throttle",
    "device.ports",
    "device.kernel_log",
    "device.processes",
)
TOLD_BY_THE_CARD = ("device.model", "device.partition", "device.memory", *CONDITIONS)
CARD_CHECKS = (*TOLD_BY_THE_CARD, "device.link_width", "device.link_speed")


THROTTLES = "cluster_throttles_allowed"
PARTITIONS = "cluster_accelerator_partitions"
PARTS = [{"kind": "mig", "index": number, "uuid": f"MIG-{number}", "profile": "3g.40gb"} for number in range(2)]


def links(down=(), slow=(), off=()):
    """Return the 18 links of a card, some down, some with half their lanes, some switched off."""
    ports = copy.deepcopy(seen.device(6)["ports"])
    for number in down:
        ports[number].update(state="down", speed_gbps=None)
    for number in slow:
        ports[number].update(speed_gbps=106.25)
    for number in off:
        ports[number].update(state="disabled", speed_gbps=None)
    return ports


def devices(observation, declared=None, **more):
    return judge.judge_devices("gpu-01", observation, {**DECLARED, **(declared or {})}, now=NOW, **more)


def state(findings):
    """Return {(check, subject): (verdict, cause, blocked_by)}; every finding has a key of its own."""
    told = {}
    for one in findings:
        key = (one["check"], one["subject"])
        assert key not in told, f"two findings for {key}"
        told[key] = (one["verdict"], one["hint"].rpartition(".")[2], one["blocked_by"])
    return told


def turned(before, after):
    """Return what is not as it was."""
    before, after = state(before), state(after)
    return {key: after.get(key) for key in before.keys() | after.keys() if before.get(key) != after.get(key)}


def one(findings, check, subject=None):
    found = [f for f in findings if f["check"] == check and subject in (None, f["subject"])]
    assert len(found) == 1, found
    return found[0]


def altered(path, value, number=6):
    """Return a healthy host with one field of one card (default: SXM5) changed; ``...`` removes it."""
    observation = seen.healthy()
    target = observation["devices"][number]
    *above, last = path.split(".")
    for key in above:
        target = target[key]
    if value is ...:
        del target[last]
    else:
        target[last] = value
    return observation


BLOCKED_BY_COUNT = ("unknown", "blocked", "device.count")
BLOCKED_BY_QUERY = ("unknown", "blocked", "device.query")
BLOCKED_BY_DRIVER = ("unknown", "blocked", "device.driver")


def test_a_healthy_host_passes_every_check():
    findings = devices(seen.healthy())
    assert {f["verdict"] for f in findings} == {"pass"}
    # Driver, query, count and the log of the host, and 12 of each card.
    assert len(findings) == 4 + 8 * 13
    assert {f["check"] for f in findings if f["subject"] == "SXM5"} == set(CARD_CHECKS)
    assert judge.verdict(findings) == "pass"
    assert one(findings, "device.count")["expected"] == 8
    assert not any(f["evidence"] for f in findings)


def test_cards_come_in_the_order_of_their_slots():
    subjects = list(dict.fromkeys(f["subject"] for f in devices(seen.healthy())))
    assert subjects == ["gpu-01", "SXM1", "SXM2", "SXM3", "SXM4", "SXM5", "SXM6", "SXM7", "SXM8"]
    assert sorted(["SXM10", "SXM2", None, "SXM1"], key=judge.natural) == ["SXM1", "SXM2", "SXM10", None]
    # A digit to str.isdigit() and to nothing else, and more digits than int() takes.
    assert sorted(["5\u00b2", "5", "9" * 5000], key=judge.natural) == ["5", "5\u00b2", "9" * 5000]


# ---------------------------------------------------------------------------------------------- the six faults


def test_card_lost():
    found = devices(seen.card_lost(seen.healthy()))
    assert turned(devices(seen.healthy()), found) == {
        ("device.count", "gpu-01"): ("fail", "lost", None),
        **{(check, "SXM5"): BLOCKED_BY_COUNT for check in CARD_CHECKS},
    }
    count = one(found, "device.count")
    assert (count["expected"], count["observed"]) == (8, 7)
    assert count["message"] == "7 of 8 cards answer; on the bus but lost: 0000:ba:00.0 (slot SXM5)"
    assert count["evidence"][0]["command"] == "nvidia-smi -q -x"
    assert "Unable to determine the device handle" in count["evidence"][0]["excerpt"]


def test_card_hung():
    found = devices(seen.card_hung(seen.healthy()))
    assert turned(devices(seen.healthy()), found) == {
        ("device.query", "gpu-01"): ("unknown", "hung", None),
        ("device.count", "gpu-01"): BLOCKED_BY_QUERY,
        **{(check, "SXM3"): BLOCKED_BY_QUERY for check in CARD_CHECKS if check != "device.link_width"},
    }
    assert "0000:5d:00.0 (slot SXM3)" in one(found, "device.query")["message"]


def test_card_hung_when_the_count_could_not_be_told_and_the_tool_gave_no_state_for_it():
    observation = seen.card_hung(seen.healthy())
    observation["count"] = None
    observation["unanswered"][0]["state"] = "not_reported"
    assert turned(devices(seen.healthy()), devices(observation)) == turned(
        devices(seen.healthy()), devices(seen.card_hung(seen.healthy()))
    )


def test_a_tool_that_hung_does_not_matter_when_another_answered_for_every_card():
    observation = seen.healthy()
    observation["tools"].insert(0, {"name": "amd-smi", "vendor": "amd", "state": "hung"})
    observation["tools"].insert(0, {"name": "nvidia-smi", "vendor": "nvidia", "state": "hung"})
    assert turned(devices(seen.healthy()), devices(observation)) == {}


def test_everything_hung():
    observation = seen.healthy()
    observation.update(
        count=None,
        devices=[],
        unanswered=[seen.silence(observation, n, "hung", link=True)["unanswered"][0] for n in range(8)],
    )
    observation["tools"][0].update(state="hung", rc=None)
    expected = {
        ("device.query", "gpu-01"): ("unknown", "hung", None),
        ("device.count", "gpu-01"): BLOCKED_BY_QUERY,
    }
    for slot in SLOTS:
        expected.update({(c, slot): BLOCKED_BY_QUERY for c in CARD_CHECKS if c != "device.link_width"})
    assert turned(devices(seen.healthy()), devices(observation)) == expected


def test_link_downtrained():
    found = devices(seen.downtrained(seen.healthy(), 6))
    assert turned(devices(seen.healthy()), found) == {("device.link_width", "SXM5"): ("fail", "narrow", None)}
    width = one(found, "device.link_width", "SXM5")
    assert (width["expected"], width["observed"], width["severity"]) == (16, 8, "critical")
    assert width["message"] == "0000:ba:00.0 (slot SXM5, serial 165040100006) runs at x8, it can do x16"
    assert "width 8 of 16" in width["evidence"][0]["excerpt"]


@pytest.mark.parametrize("listed_as", ["both", "devices", "unanswered"])
def test_driver_library_mismatch(listed_as):
    observation = seen.driver_library_mismatch(seen.healthy())
    # Whether a silent card is among the devices (what the bus shows), the unanswered, or both.
    if listed_as == "devices":
        observation["unanswered"] = []
    if listed_as == "unanswered":
        observation["devices"] = []
    found = devices(observation)
    expected = {
        ("device.driver", "gpu-01"): ("fail", "library_mismatch", None),
        ("device.query", "gpu-01"): BLOCKED_BY_DRIVER,
        ("device.count", "gpu-01"): BLOCKED_BY_DRIVER,
    }
    for slot in SLOTS:
        expected.update({(c, slot): BLOCKED_BY_DRIVER for c in TOLD_BY_THE_CARD})
    assert turned(devices(seen.healthy()), found) == expected
    driver = one(found, "device.driver")
    assert (driver["expected"], driver["observed"]) == ("570.86.15", "570.124")
    assert driver["message"] == "user-space library 570.124 does not fit the loaded kernel module 570.86.15"
    assert "version mismatch" in driver["evidence"][0]["excerpt"]


def baseline_of(observation, host="gpu-01"):
    return slots.build_record(observation, host, NOW)


def slot_findings(observation, baseline=None, language="en"):
    return judge.judge_slots(
        {"gpu-01": baseline or baseline_of(seen.healthy())},
        {},
        {"gpu-01": observation},
        {"gpu-01": DECLARED},
        now=NOW,
        language=language,
    )


def test_slots_of_a_healthy_host():
    found = slot_findings(seen.healthy())
    assert state(found) == {("device.slot", slot): ("pass", "ok", None) for slot in SLOTS}
    assert one(found, "device.slot", "SXM5")["expected"] == "165040100006"


def test_cards_swapped():
    found = slot_findings(seen.swapped(seen.healthy(), 1, 7))  # SXM2 and SXM7
    assert turned(slot_findings(seen.healthy()), found) == {
        ("device.slot", "SXM2"): ("fail", "swapped", None),
        ("device.slot", "SXM7"): ("fail", "swapped", None),
    }
    here = one(found, "device.slot", "SXM2")
    assert (here["expected"], here["observed"]) == ("165040100001", "165040100007")
    assert here["message"] == ("slot SXM2 holds the card of slot SXM7, serial 165040100007: the two were exchanged")
    assert one(found, "device.slot", "SXM7")["message"] == (
        "slot SXM7 holds the card of slot SXM2, serial 165040100001: the two were exchanged"
    )


def test_card_replaced():
    found = slot_findings(seen.replaced(seen.healthy(), 6))
    assert turned(slot_findings(seen.healthy()), found) == {("device.slot", "SXM5"): ("fail", "replaced", None)}
    assert one(found, "device.slot", "SXM5")["message"] == (
        "slot SXM5 holds another card: serial 1659999000001 instead of serial 165040100006"
    )


@pytest.mark.parametrize(
    ("fault", "slot", "blocker"),
    [(seen.card_lost, "SXM5", "device.count"), (seen.card_hung, "SXM3", "device.query")],
)
def test_the_slot_of_a_silent_card_is_blocked(fault, slot, blocker):
    found = slot_findings(fault(seen.healthy()))
    assert turned(slot_findings(seen.healthy()), found) == {("device.slot", slot): ("unknown", "blocked", blocker)}


def test_the_slot_of_a_lost_card_names_the_serial_to_pull():
    lost = one(slot_findings(seen.card_lost(seen.healthy())), "device.slot", "SXM5")
    assert lost["expected"] == "165040100006"
    assert lost["message"] == "the card in slot SXM5 could not be identified; accepted there: serial 165040100006"


def test_a_lost_card_that_does_not_tell_its_slot_is_found_by_the_accepted_address():
    observation = seen.card_lost(seen.healthy())
    observation["unanswered"][0]["slot"] = {"label": None, "source": None, "candidates": []}
    found = slot_findings(observation)
    assert turned(slot_findings(seen.healthy()), found) == {("device.slot", "SXM5"): BLOCKED_BY_COUNT}


@pytest.mark.parametrize("listed_as", ["both", "devices", "unanswered"])
def test_slots_behind_a_driver_that_does_not_work_are_all_blocked(listed_as):
    observation = seen.driver_library_mismatch(seen.healthy())
    if listed_as == "devices":
        observation["unanswered"] = []
    if listed_as == "unanswered":
        observation["devices"] = []
    found = slot_findings(observation)
    assert state(found) == {("device.slot", slot): BLOCKED_BY_DRIVER for slot in SLOTS}


# ---------------------------------------------------------------------------------------------- causes of the host


def tool(**values):
    def change(observation):
        observation["tools"][0].update(values)

    return change


def silent_host(observation, **of_the_tool):
    """Nothing answered: what is on the bus is all there is."""
    changed = seen.driver_library_mismatch(observation)
    changed["tools"][0].update(reason=None, excerpt="")
    changed["tools"][0].update(of_the_tool)
    return changed


@pytest.mark.parametrize(
    ("observation", "cause", "verdict", "words"),
    [
        (silent_host(seen.healthy(), state="hung"), "device.query.hung", "unknown", "no answer in time"),
        (
            silent_host(seen.healthy(), state="unreadable", excerpt="\x1b[31m???"),
            "device.query.unreadable",
            "unknown",
            "the answer of nvidia-smi could not be read",
        ),
        (silent_host(seen.healthy(), state="failed", rc=255), "device.query.failed", "unknown", "(nvidia-smi)"),
        (silent_host(seen.healthy(), state="absent"), "device.query.absent", "fail", "no vendor tool is installed"),
        (silent_host(seen.healthy(), reason="driver_not_loaded"), "device.driver.not_loaded", "fail", "not loaded"),
        (silent_host(seen.healthy(), reason="driver_not_ready"), "device.driver.not_ready", "fail", "not initialise"),
        (
            silent_host(seen.healthy(), reason="library_missing"),
            "device.driver.no_library",
            "fail",
            "its library is not",
        ),
        (
            silent_host(seen.healthy(), reason="in_use_elsewhere"),
            "device.driver.in_use_elsewhere",
            "unknown",
            "held by another",
        ),
    ],
)
def test_a_host_that_tells_nothing(observation, cause, verdict, words):
    found = devices(observation)
    told = next(f for f in found if f["hint"] == cause)
    assert (told["verdict"], told["severity"], told["subject"]) == (verdict, "critical", "gpu-01")
    assert words in told["message"]
    blocker = told["check"]
    assert state(found)["device.count", "gpu-01"] == ("unknown", "blocked", blocker)
    assert {f["blocked_by"] for f in found if f["check"] in ("device.model", "device.memory")} == {blocker}
    # sysfs tells the width whatever the tools do.
    assert {f["verdict"] for f in found if f["check"] == "device.link_width"} == {"pass"}


def test_the_kernel_knows_that_the_module_is_not_loaded_when_no_tool_says_so():
    observation = silent_host(seen.healthy(), state="absent")
    observation["drivers"] = [{"vendor": "nvidia", "loaded": False, "kernel_version": None, "library_version": None}]
    assert one(devices(observation), "device.driver")["hint"] == "device.driver.not_loaded"


def test_a_tool_that_answers_without_a_module_is_no_proof_of_the_driver():
    observation = seen.healthy()
    observation["drivers"] = [{"vendor": "nvidia", "loaded": False, "kernel_version": None, "library_version": None}]
    assert one(devices(observation), "device.driver")["hint"] == "device.driver.unknown"
    observation["drivers"][0]["loaded"] = None
    assert one(devices(observation), "device.driver")["hint"] == "device.driver.ok"


def test_a_tool_that_hangs_is_named_where_nobody_named_a_module():
    observation = silent_host(seen.healthy(), state="hung")
    observation["drivers"] = [{"vendor": "acme", "loaded": None, "kernel_version": None, "library_version": None}]
    assert one(devices(observation), "device.query")["hint"] == "device.query.hung"


def test_nothing_known_of_the_driver():
    observation = silent_host(seen.healthy(), state="absent")
    observation["drivers"] = []
    driver = one(devices(observation), "device.driver")
    assert (driver["verdict"], driver["hint"]) == ("unknown", "device.driver.unknown")


def test_the_second_tool_of_a_vendor_is_good_enough():
    observation = seen.healthy()
    observation["tools"].insert(
        0, {"name": "nvidia-x", "vendor": "nvidia", "state": "failed", "reason": "driver_not_ready", "rc": 1}
    )
    assert turned(devices(seen.healthy()), devices(observation)) == {}


def without(*numbers, listed=False):
    """Return a host that lacks cards; ``listed``: they are on the bus, but the tool has none of them."""
    observation = seen.healthy()
    if listed:
        for number in numbers:
            observation = seen.silence(observation, number, "not_reported", link=True)
        return observation
    observation["devices"] = [card for card in observation["devices"] if card["index"] not in numbers]
    observation.update(count=8 - len(numbers), bus_count=8 - len(numbers))
    return observation


def test_count_missing_is_a_fact_of_the_bus_whatever_the_tool_says():
    count = one(devices(without(6)), "device.count")
    assert (count["hint"], count["verdict"]) == ("device.count.missing", "fail")
    assert count["message"] == "7 cards are on the bus, 8 are declared"
    hung = without(6)
    hung.update(count=None)
    hung["tools"][0]["state"] = "hung"
    assert one(devices(hung), "device.count")["hint"] == "device.count.missing"


def test_count_not_reported():
    found = devices(without(6, listed=True))
    assert turned(devices(seen.healthy()), found) == {
        ("device.count", "gpu-01"): ("fail", "not_reported", None),
        **{(c, "SXM5"): BLOCKED_BY_COUNT for c in CARD_CHECKS if c != "device.link_width"},
    }
    assert one(found, "device.count")["message"] == (
        "7 of 8 cards answer; on the bus but not reported by the vendor tool: 0000:ba:00.0 (slot SXM5)"
    )


def test_a_tool_that_lists_no_card_at_all():
    observation = without(*range(8), listed=True)
    observation["tools"][0].update(reason="no_devices", excerpt="No devices were found")
    found = devices(observation)
    assert state(found)["device.count", "gpu-01"] == ("fail", "not_reported", None)
    assert state(found)["device.query", "gpu-01"] == ("pass", "ok", None)


def test_count_surplus():
    count = one(devices(seen.healthy(), {"cluster_accelerator_count": "7"}), "device.count")
    assert (count["hint"], count["expected"], count["observed"]) == ("device.count.surplus", 7, 8)


@pytest.mark.parametrize("declared", ["eight", "", None, 0, "8.5", True, -8, [8]])
def test_a_count_that_is_no_number_is_unknown(declared):
    count = one(devices(seen.healthy(), {"cluster_accelerator_count": declared}), "device.count")
    assert (count["verdict"], count["hint"]) == ("unknown", "device.count.undeclared")
    assert repr(declared) in count["message"]


def test_one_lost_card_of_which_the_tool_tells_no_more_than_that():
    # Case 01: the whole answer is one sentence about one card.
    observation = silent_host(seen.healthy(), state="failed", rc=15)
    observation["unanswered"][6]["state"] = "lost"
    found = devices(observation)
    told = state(found)
    assert told["device.count", "gpu-01"] == ("fail", "lost", None)
    assert told["device.query", "gpu-01"] == ("unknown", "failed", None)
    assert told["device.health", "SXM5"] == BLOCKED_BY_COUNT
    assert told["device.health", "SXM1"] == BLOCKED_BY_QUERY


@pytest.mark.parametrize("change", ["none", "absent"])
def test_a_bus_that_nobody_could_read_is_no_pass(change):
    observation = seen.healthy()
    if change == "none":
        observation["bus_count"] = None
    else:
        del observation["bus_count"]
    found = devices(observation)
    assert turned(devices(seen.healthy()), found) == {("device.count", "gpu-01"): ("unknown", "bus_unreadable", None)}
    told = one(found, "device.count")
    assert (told["severity"], told["expected"], told["observed"]) == ("critical", 8, 8)
    assert told["message"] == "the PCI bus could not be read, so nobody counted the cards there (8 of 8 answer)"
    assert {"command": "/sys/bus/pci/devices", "excerpt": "nothing can be read there"} in told["evidence"]
    assert judge.verdict(found) == "unknown"


@pytest.mark.parametrize("bus", [0, 1, 7])
def test_a_bus_that_shows_less_than_what_answers_is_no_pass(bus):
    observation = {**seen.healthy(), "bus_count": bus}
    found = devices(observation)
    assert turned(devices(seen.healthy()), found) == {("device.count", "gpu-01"): ("unknown", "bus_short", None)}
    told = one(found, "device.count")
    assert (told["severity"], told["expected"], told["observed"]) == ("critical", 8, bus)
    assert told["message"] == f"{bus} cards are on the bus, but 8 answer: not all of the bus could be seen"


def test_a_bus_that_shows_less_than_what_answers_proves_no_card_missing():
    observation = {**without(6), "bus_count": 5}
    assert one(devices(observation), "device.count")["hint"] == "device.count.bus_short"


def test_more_cards_than_declared_are_too_many_whatever_the_bus():
    observation = {**seen.healthy(), "bus_count": None}
    count = one(devices(observation, {"cluster_accelerator_count": "7"}), "device.count")
    assert (count["hint"], count["observed"]) == ("device.count.surplus", 8)


def test_a_lost_card_on_a_bus_that_nobody_could_read():
    """The tool speaks of one card only, and without the bus no other can be asked for: their number is not 0."""
    observation = silent_host(seen.healthy(), state="failed", rc=15)
    observation.update(bus_count=None, devices=[], unanswered=[{**observation["unanswered"][6], "state": "lost"}])
    found = devices(observation)
    count = one(found, "device.count")
    assert (count["hint"], count["expected"], count["observed"]) == ("device.count.lost", 8, None)
    assert count["message"] == "an unknown number of 8 cards answer; on the bus but lost: 0000:ba:00.0 (slot SXM5)"
    assert one(found, "device.query")["verdict"] == "unknown"
    slots_found = slot_findings(observation)
    assert {f["verdict"] for f in slots_found} == {"unknown"}
    assert state(slots_found) == {
        ("device.slot", slot): BLOCKED_BY_COUNT if slot == "SXM5" else BLOCKED_BY_QUERY for slot in SLOTS
    }
    other = one(slots_found, "device.slot", "SXM1")
    assert other["message"].endswith("accepted there: serial 165040100002") and other["expected"] == "165040100002"


def test_no_slot_is_empty_where_nobody_could_look():
    observation = {**without(6), "bus_count": None}
    found = slot_findings(observation)
    assert turned(slot_findings(seen.healthy()), found) == {("device.slot", "SXM5"): BLOCKED_BY_COUNT}
    # What is seen is told all the same: the card that is not missed at its place moved.
    observation["devices"][5]["slot"] = {"label": "SXM5", "source": "vendor", "candidates": []}
    observation["devices"][5]["pci_address"] = ADDRESSES[6]
    assert one(slot_findings(observation), "device.slot", "SXM5")["hint"] == "device.slot.moved"


def test_a_host_of_which_nothing_was_seen_has_one_slot_finding():
    observation = {**without(*range(8)), "count": None, "bus_count": None}
    (found,) = slot_findings(observation)
    assert (found["hint"], found["subject"]) == ("device.slot.unknown", "gpu-01")
    assert "the PCI bus could not be read" in found["message"]


NO_CARDS = {"cluster_accelerator_count": "0", "cluster_accelerator_vendor": ""}


def test_a_host_without_cards_and_without_a_bus_is_a_warning():
    """A container or a small virtual machine shows no bus at all: no reason to fail a run, and no proof either."""
    nothing = {"devices": [], "count": None, "bus_count": None, "unanswered": [], "tools": [], "errors": []}
    found = devices(nothing, NO_CARDS)
    assert state(found) == {("device.count", "gpu-01"): ("unknown", "no_bus", None)}
    assert found[0]["severity"] == "warning"
    assert judge.judge_slots({}, {}, {"ctl-01": nothing}, {"ctl-01": NO_CARDS}, now=NOW) == []
    assert state(devices({**nothing, "count": 2}, NO_CARDS)) == {("device.count", "gpu-01"): ("fail", "surplus", None)}


def test_a_host_without_cards_gets_one_finding():
    empty = {"devices": [], "count": None, "bus_count": 0, "unanswered": [], "tools": []}
    found = devices(empty, NO_CARDS)
    assert state(found) == {("device.count", "gpu-01"): ("pass", "ok", None)}
    assert (found[0]["expected"], found[0]["observed"]) == (0, 0)


def test_a_host_that_should_have_no_cards_and_has_some():
    assert state(devices(seen.healthy(), NO_CARDS)) == {("device.count", "gpu-01"): ("fail", "surplus", None)}


def test_a_host_without_cards_that_was_not_looked_at_is_unknown():
    assert judge.verdict(devices({}, NO_CARDS)) == "unknown"


# ---------------------------------------------------------------------------------------------- causes of a card

CAUSES_OF_A_CARD = [
    # what is wrong with SXM5, what is declared otherwise, cause, severity, expected, observed
    (("model", "NVIDIA A100-SXM4-80GB"), {}, "device.model.other", "critical", ["NVIDIA H100 80GB HBM3"],
     "NVIDIA A100-SXM4-80GB"),
    (("model", None), {}, "device.model.unknown", "critical", ["NVIDIA H100 80GB HBM3"], None),
    (("index", 6), {"cluster_accelerator_models": []}, "device.model.undeclared", "critical", None,
     "NVIDIA H100 80GB HBM3"),
    (("index", 6), {"cluster_accelerator_models": 5}, "device.model.unknown", "critical", None,
     "NVIDIA H100 80GB HBM3"),
    (("memory_bytes", 68719476736), {}, "device.memory.small", "critical", 80.0, 64.0),
    (("memory_bytes", None), {}, "device.memory.unknown", "critical", 80.0, None),
    (("memory_bytes", "[N/A]"), {}, "device.memory.unknown", "critical", 80.0, None),
    (("memory_bytes", "inf"), {}, "device.memory.unknown", "critical", 80.0, None),
    (("memory_bytes", 0), {}, "device.memory.unknown", "critical", 80.0, None),
    (("index", 6), {"cluster_accelerator_memory_gib": 0}, "device.memory.undeclared", "critical", None, 79.65),
    (("index", 6), {"cluster_accelerator_memory_gib": "lots"}, "device.memory.unknown", "critical", None, 79.65),
    (("index", 6), {"cluster_accelerator_memory_gib": "nan"}, "device.memory.unknown", "critical", None, 79.65),
    (("index", 6), {"cluster_tolerance_memory_percent": "ten"}, "device.memory.unknown", "critical", None, 79.65),
    (("health", {"state": "warning", "reasons": ["row remap pending"]}), {}, "device.health.warning", "warning", "ok",
     "row remap pending"),
    (("health", {"state": "critical", "reasons": ["uncorrectable ECC", "Xid 48"]}), {}, "device.health.critical",
     "critical", "ok", "uncorrectable ECC; Xid 48"),
    (("health", {"state": "critical", "reasons": ["0x80e3a201"], "codes": ["ascend 0x80e3a201"]}), {},
     "device.health.replace", "critical", "ok", "0x80e3a201"),
    (("health", {"state": "unknown", "reasons": []}), {}, "device.health.unknown", "critical", "ok", "nothing told it"),
    (("health", {"state": "fine"}), {}, "device.health.unknown", "critical", "ok", "nothing told it"),
    (("health", None), {}, "device.health.unknown", "critical", "ok", "nothing told it"),
    (("link.width", 8), {}, "device.link_width.narrow", "critical", 16, 8),
    (("link.width", None), {}, "device.link_width.unknown", "critical", 16, None),
    (("link.max_width", None), {}, "device.link_width.unknown", "critical", None, 16),
    (("index", 6), {"cluster_accelerator_link_width": "inf"}, "device.link_width.unknown", "critical", None, 16),
    (("index", 6), {"cluster_accelerator_link_width": "wide"}, "device.link_width.unknown", "critical", None, 16),
    (("index", 6), {"cluster_link_width_judged": "no"}, "device.link_width.disabled", "critical", None, 16),
    (("link.speed_gts", 5.0), {}, "device.link_speed.slow", "critical", 32.0, 5.0),
    (("link.speed_gts", None), {}, "device.link_speed.unknown", "warning", 32.0, None),
    (("link.max_speed_gts", None), {}, "device.link_speed.unknown", "warning", None, 32.0),
    (("link.limited_by", "0000:97:01.0"), {}, "device.link_speed.limited", "critical", 32.0, 32.0),
    (("link.unread_hop", "0000:97:01.0"), {}, "device.link_speed.unknown", "warning", 32.0, 32.0),
    (("index", 6), {"cluster_accelerator_link_speed_gts": "64"}, "device.link_speed.below_declared", "critical", 64.0,
     32.0),
    (("index", 6), {"cluster_accelerator_link_speed_gts": "fast"}, "device.link_speed.unknown", "warning", 32.0, 32.0),
    (("repair.state", "reset"), {}, "device.memory_repair.reset", "critical", None, "reset"),
    (("repair.state", "replace"), {}, "device.memory_repair.replace", "critical", None, "replace"),
    (("ecc.sram_uncorrected_aggregate", 5), {}, "device.memory_repair.replace", "critical", 4.0, 5),
    (("ecc.sram_uncorrected_aggregate", 4), {"cluster_limit_sram_uncorrected": 3}, "device.memory_repair.replace",
     "critical", 3.0, 4),
    (("ecc.sram_uncorrected_aggregate", 4), {"cluster_limit_sram_uncorrected": "few"}, "device.memory_repair.unknown",
     "warning", None, "ok"),
    (("repair.state", "unknown"), {}, "device.memory_repair.unknown", "warning", None, None),
    (("repair", None), {}, "device.memory_repair.unknown", "warning", None, None),
    (("ecc.uncorrected_volatile", 2), {}, "device.ecc.uncorrected", "critical", 0, 2),
    (("ecc.uncorrected_volatile", None), {}, "device.ecc.unknown", "warning", None, None),
    (("ecc", None), {}, "device.ecc.unknown", "warning", None, None),
    (("ecc.unread", ["ecc_errors/volatile/sram_correctable"]), {}, "device.ecc.unknown", "warning", None, None),
    (("ecc.corrected_volatile", 1001), {}, "device.ecc.corrected", "warning", 1000.0, 1001),
    (("ecc.corrected_volatile", 1), {"cluster_limit_ecc_corrected_volatile": 0}, "device.ecc.corrected", "warning",
     0.0, 1),
    (("ecc.corrected_volatile", 1), {"cluster_limit_ecc_corrected_volatile": -1}, "device.ecc.unknown", "warning",
     None, 1),
    (("readings.temperature_c", 82.0), {}, "device.temperature.hot", "warning", 87.0, 82.0),
    (("readings.temperature_c", 95.0), {}, "device.temperature.hot", "warning", 87.0, 95.0),
    (("readings.temperature_c", None), {}, "device.temperature.unknown", "warning", None, None),
    (("readings.temperature_limit_c", None), {}, "device.temperature.unknown", "warning", None, 61.0),
    (("index", 6), {"cluster_margin_temperature_celsius": "nan"}, "device.temperature.unknown", "warning", None, 61.0),
    (("readings.throttles", ["hardware"]), {}, "device.throttle.hardware", "critical", DECLARED[THROTTLES], "hardware"),
    (("readings.throttles", ["idle", "power_brake"]), {}, "device.throttle.hardware", "critical", DECLARED[THROTTLES],
     "power_brake"),
    (("readings.throttles", ["thermal"]), {}, "device.throttle.slowed", "warning", DECLARED[THROTTLES], "thermal"),
    (("readings.throttles", ["power_cap"]), {THROTTLES: ["idle"]}, "device.throttle.slowed", "warning", ["idle"],
     "power_cap"),
    (("readings.throttles", None), {}, "device.throttle.unknown", "warning", None, None),
    (("readings.throttles", ["idle"]), {THROTTLES: ["sleep"]}, "device.throttle.unknown", "warning", None, ["idle"]),
    (("ports", links(down=[3])), {}, "device.ports.down", "critical", 18, 17),
    (("ports", links(down=range(18))), {}, "device.ports.down", "critical", 18, 0),
    (("ports", links(slow=[3])), {}, "device.ports.slow", "critical", 212.5, 18),
    (("ports", links()[:17]), {}, "device.ports.fewer", "critical", 18, 17),
    (("ports", []), {}, "device.ports.unknown", "warning", 18, None),
    (("ports", links(off=[3, 4])), {}, "device.ports.fewer", "critical", 18, 16),
    (("partition_mode", None), {}, "device.partition.unknown", "warning", 1, None),
    (("partition_mode", "CPX"), {}, "device.partition.split", "critical", 1, "CPX (0 partitions)"),
    (("logical", PARTS), {PARTITIONS: ""}, "device.partition.split", "critical", 1, "2 partitions"),
    (("logical", PARTS), {PARTITIONS: "all"}, "device.partition.unknown", "warning", None, "2 partitions"),
    (("logical", PARTS), {PARTITIONS: -1}, "device.partition.unknown", "warning", None, "2 partitions"),
    (("logical", PARTS), {PARTITIONS: "3"}, "device.partition.count", "critical", 3, "2 partitions"),
    (("logical", []), {PARTITIONS: 2}, "device.partition.whole", "critical", 2, "whole"),
    (("logical", PARTS), {PARTITIONS: "0"}, "device.partition.not_judged", "critical", None, "2 partitions"),
    (("processes", [{"pid": 4711, "name": "python3", "memory_bytes": None, "source": "open"}]), {},
     "device.processes.held", "critical", 0, 1),
    (("device_nodes", []), {}, "device.processes.no_node", "warning", None, None),
]  # fmt: skip


@pytest.mark.parametrize(("field", "declared", "cause", "severity", "expected", "observed"), CAUSES_OF_A_CARD)
def test_a_cause_of_a_card(field, declared, cause, severity, expected, observed):
    found = devices(altered(*field), declared)
    together = [f for f in found if f["hint"] == cause and f["cards"]]
    if together:
        # A value of the site that can't be used leaves the same gap on every card.
        assert declared and [len(f["cards"]) for f in together] == [8]
        assert "8 cards (SXM1, SXM2, SXM3" in together[0]["message"]
        return
    told = one(found, hints.check_of(cause), "SXM5")
    assert (told["hint"], told["severity"]) == (cause, severity)
    assert (told["verdict"], told["expected"], told["observed"]) == (hints.CAUSES[cause].verdict, expected, observed)
    assert "0000:ba:00.0" in told["message"] and "SXM5" in told["message"]
    if not declared:
        # The fault of one card is the fault of this card only.
        assert turned(devices(seen.healthy()), found) == {
            (told["check"], "SXM5"): (told["verdict"], cause.rpartition(".")[2], None)
        }
    chinese = one(devices(altered(*field), declared, language="zh"), told["check"], "SXM5")
    assert (chinese["hint"], chinese["verdict"]) == (cause, told["verdict"])
    assert chinese["message"] != told["message"]
    assert "0000:ba:00.0（槽位 SXM5，序列号 165040100006）" in chinese["message"]


def test_a_width_below_the_declared_one():
    observation = altered("link.max_width", 8)
    observation["devices"][6]["link"]["width"] = 8
    width = one(devices(observation), "device.link_width", "SXM5")
    assert (width["hint"], width["expected"], width["observed"]) == ("device.link_width.below_declared", 16, 8)


def test_a_narrow_link_names_the_bridge_once():
    observation = altered("link.limited_by", "0000:97:01.0")
    observation["devices"][6]["link"]["width"] = 8
    found = devices(observation)
    assert one(found, "device.link_width", "SXM5")["message"].endswith(
        "it can do x16; the bridge 0000:97:01.0 limits it"
    )
    assert one(found, "device.link_speed", "SXM5")["verdict"] == "pass"


def test_memory_within_the_tolerance_and_models_in_another_spelling():
    assert one(devices(altered("memory_bytes", 72 * judge.GIB)), "device.memory", "SXM5")["verdict"] == "pass"
    assert one(devices(altered("memory_bytes", 72 * judge.GIB - 1)), "device.memory", "SXM5")["verdict"] == "fail"
    strict = {"cluster_tolerance_memory_percent": 0}
    assert (
        one(devices(altered("memory_bytes", 80 * judge.GIB - 1), strict), "device.memory", "SXM5")["verdict"] == "fail"
    )
    assert one(devices(altered("model", "nvidia  H100 80GB HBM3")), "device.model", "SXM5")["verdict"] == "pass"


@pytest.mark.parametrize("key", ["unanswered", "errors", "drivers", "tools"])
def test_what_an_observation_may_lack(key):
    """The count and the devices were told: these keys only say more where something is wrong."""
    observation = seen.healthy()
    del observation[key]
    assert turned(devices(seen.healthy()), devices(observation)) == {}


def test_an_observation_without_a_count_is_no_pass():
    observation = seen.healthy()
    del observation["count"]
    found = devices(observation)
    assert turned(devices(seen.healthy()), found) == {
        ("device.query", "gpu-01"): ("unknown", "failed", None),
        ("device.count", "gpu-01"): BLOCKED_BY_QUERY,
    }
    assert judge.verdict(found) == "unknown"


def test_an_observation_without_devices_passes_no_card():
    observation = seen.healthy()
    del observation["devices"]
    assert {f["subject"] for f in devices(observation)} == {"gpu-01"}


@pytest.mark.parametrize("key", ["model", "memory_bytes", "health", "link", "source"])
def test_what_a_card_lacks_is_no_pass(key):
    told = {f["check"]: f["verdict"] for f in devices(altered(key, ...)) if f["subject"] == "SXM5"}
    lacking = {
        "model": {"device.model"},
        "memory_bytes": {"device.memory"},
        "health": {"device.health"},
        "link": {"device.link_width", "device.link_speed"},
        "source": {*TOLD_BY_THE_CARD, "device.link_speed"},
    }[key]
    assert {check for check, verdict in told.items() if verdict != "pass"} == lacking
    assert {told[check] for check in lacking} == {"unknown"}


@pytest.mark.parametrize("garbage", [None, [], "no", 7, {}, {"devices": "x", "tools": 5, "count": "8"}])
def test_an_observation_that_is_none_is_unknown(garbage):
    found = devices(garbage)
    assert judge.verdict(found) == "unknown"
    assert "pass" not in {f["verdict"] for f in found}
    json.dumps(found, allow_nan=False)


def test_a_card_without_slot_is_called_by_its_address_and_one_without_both_is_not_forgotten():
    observation = altered("slot", {"label": None, "source": None, "candidates": []})
    observation["devices"][5].update(pci_address=None, slot=None)
    subjects = {f["subject"] for f in devices(observation)}
    assert "0000:ba:00.0" in subjects and "device 5" in subjects


def test_devices_that_share_a_slot_are_called_by_their_addresses():
    observation = seen.healthy()
    for number in (0, 1):
        observation["devices"][number]["slot"]["label"] = "NPU1"
    found = devices(observation)
    assert {"0000:18:00.0", "0000:2a:00.0"} <= {subject for check, subject in state(found)}
    assert "NPU1" not in {f["subject"] for f in found}


# ---------------------------------------------------------------------------------------------- errors

DAMAGED = "/var/lib/accel/records/slots.json line 1 column 14: not valid JSON"
WRONG_MAP = "declared slot map not used: declared slot '0000:18:00.0': '' has no name"
BOGUS = "slot table unusable: same address for every slot"


@pytest.mark.parametrize("declared", [{}, {"cluster_accelerator_count": "0", "cluster_accelerator_vendor": ""}])
def test_an_error_that_nothing_else_tells_is_a_counted_warning(declared):
    observation = {**seen.healthy(), "errors": [DAMAGED, BOGUS, "b\nc"]}
    if declared:
        observation.update(devices=[], count=None, bus_count=0)
    told = one(devices(observation, declared), "device.observation")
    assert (told["hint"], told["verdict"], told["severity"]) == ("device.observation.errors", "unknown", "warning")
    assert told["subject"] == "gpu-01" and told["observed"] == 2
    assert told["message"].endswith(f": {DAMAGED}; b c")
    assert told["evidence"] == [{"command": "", "excerpt": DAMAGED}, {"command": "", "excerpt": "b\nc"}]
    assert judge.verdict(devices(observation, declared)) == "pass"


def test_many_errors_are_all_evidence_and_few_are_named():
    observation = {**seen.healthy(), "errors": [f"error {number}" for number in range(9)]}
    told = one(devices(observation), "device.observation")
    assert told["message"].endswith(": error 0; error 1; error 2 and 6 more") and len(told["evidence"]) == 9


def test_an_unbelievable_slot_table_of_the_firmware_is_ordinary():
    found = devices({**seen.healthy(), "errors": [BOGUS]})
    assert turned(devices(seen.healthy()), found) == {("device.observation", "gpu-01"): ("pass", "ok", None)}
    assert BOGUS in one(found, "device.observation")["message"]


def test_an_error_that_another_finding_carries_is_not_told_twice():
    observation = seen.card_lost(seen.healthy())
    observation["errors"] = ["nvidia-smi -q -x: " + observation["tools"][0]["excerpt"], "0000:ba:00.0: no answer"]
    found = devices(observation)
    assert "device.observation" not in {f["check"] for f in found}
    assert "0000:ba:00.0: no answer" in [piece["excerpt"] for piece in one(found, "device.count")["evidence"]]


@pytest.mark.parametrize(
    "error", [DAMAGED, WRONG_MAP, "the slot record is that of gpu-07, not of gpu-01: it is not used"]
)
@pytest.mark.parametrize("fault", [seen.card_lost, seen.driver_library_mismatch])
def test_what_has_nothing_to_do_with_the_tools_is_told_beside_a_fault_of_a_card(error, fault):
    observation = {**fault(seen.healthy()), "errors": ["0000:ba:00.0: no answer", error]}
    told = one(devices(observation), "device.observation")
    assert (told["hint"], told["observed"]) == ("device.observation.errors", 1)
    assert told["message"].endswith(f": {error}")


def test_what_a_tool_said_is_told_beside_a_fault_that_the_bus_shows():
    observation = {**seen.downtrained(seen.healthy(), 6), "errors": ["0000:ba:00.0: no answer"]}
    assert one(devices(observation), "device.observation")["verdict"] == "unknown"


@pytest.mark.parametrize("errors", [None, "no", [], {}])
def test_no_errors_are_no_finding(errors):
    assert turned(devices(seen.healthy()), devices({**seen.healthy(), "errors": errors})) == {}


def test_a_wrong_declared_slot_map_proves_no_slot():
    """No slot is named then, and the names of the baseline would make all of them pass."""
    observation = seen.healthy()
    for card in observation["devices"]:
        card["slot"] = {"label": None, "source": None, "candidates": []}
    observation["errors"] = [WRONG_MAP]
    for looked_at in (observation, placed(observation)):
        (found,) = slot_findings(looked_at)
        assert (found["hint"], found["severity"], found["subject"]) == ("device.slot.unknown", "critical", "gpu-01")
        assert "has no name" in found["message"] and found["evidence"]
    assert slot_findings({**seen.healthy(), "errors": [DAMAGED, BOGUS]})[0]["hint"] == "device.slot.ok"


# ---------------------------------------------------------------------------------------------- vendors

AMD = {
    "cluster_accelerator_vendor": "amd",
    "cluster_accelerator_models": ["AMD Instinct MI300X"],
    "cluster_accelerator_memory_gib": 192,
    "cluster_accelerator_link_speed_gts": 64,
    "cluster_driver_version": "6.12.12",
}


@pytest.mark.parametrize("models", [AMD["cluster_accelerator_models"], [], None])
def test_cards_of_another_vendor_than_declared_fail_once_each(models):
    found = devices(seen.healthy(), {**AMD, "cluster_accelerator_models": models})
    bad = {(f["check"], f["subject"], f["hint"]) for f in found if f["verdict"] not in ("pass", "not_applicable")}
    assert bad == {("device.model", slot, "device.model.other_vendor") for slot in SLOTS}
    told = one(found, "device.model", "SXM5")
    assert (told["verdict"], told["severity"]) == ("fail", "critical")
    assert (told["expected"], told["observed"]) == ("amd", "nvidia")
    assert told["message"] == (
        "0000:ba:00.0 (slot SXM5, serial 165040100006) is a card of nvidia, declared is the vendor amd"
    )
    # What is declared of a product says nothing of another vendor's.
    assert {f["hint"] for f in found if f["check"] == "device.memory"} == {"device.memory.undeclared"}
    versions = judge.judge_driver_versions({"gpu-01": about_of(seen.healthy(), AMD)}, now=NOW)
    assert state(versions) == {("device.driver_version", "gpu-01"): ("unknown", "blocked", "device.model")}


def about_of(observation, declared):
    return {"node_type": "h100", "declared": {**DECLARED, **declared}, "observation": observation}


def test_another_vendors_driver_that_does_not_work_is_a_consequence():
    found = devices(seen.driver_library_mismatch(seen.healthy()), AMD)
    roots = {(f["hint"], f["subject"]) for f in found if f["verdict"] in ("fail", "unknown") and not f["blocked_by"]}
    assert roots == {("device.model.other_vendor", slot) for slot in SLOTS}
    told = state(found)
    for check in ("device.driver", "device.query", "device.count"):
        assert told[check, "gpu-01"] == ("unknown", "blocked", "device.model")
    assert told["device.health", "SXM5"] == ("unknown", "blocked", "device.model")


@pytest.mark.parametrize("vendor", ["nvida", 5, "nvidia amd", ["nvidia"], True, "none", 0])
def test_a_vendor_that_is_no_vendor_is_unknown(vendor):
    found = devices(seen.healthy(), {"cluster_accelerator_vendor": vendor})
    assert turned(devices(seen.healthy()), found) == {
        ("device.model", slot): ("unknown", "unknown", None) for slot in SLOTS
    }
    assert (
        f"cluster_accelerator_vendor is {vendor!r}, none of nvidia, amd, ascend"
        in one(found, "device.model", "SXM1")["message"]
    )


@pytest.mark.parametrize("vendor", ["NVIDIA", " nvidia "])
def test_a_vendor_in_another_spelling_is_the_vendor(vendor):
    assert turned(devices(seen.healthy()), devices(seen.healthy(), {"cluster_accelerator_vendor": vendor})) == {}


@pytest.mark.parametrize("vendor", ["", None])
def test_where_no_vendor_is_declared_none_is_judged(vendor):
    assert turned(devices(seen.healthy()), devices(seen.healthy(), {"cluster_accelerator_vendor": vendor})) == {}


def test_what_the_kernel_said_of_a_lost_card_hides_no_evidence():
    observation = seen.card_lost(seen.healthy())
    observation["errors"] = [f"nvidia-smi -q -x: {observation['tools'][0]['excerpt']}"]
    observation["kernel_events"] = [seen.event("xid 79")]
    found = devices(observation)
    (lost,) = [one for one in found if one["hint"] == "device.count.lost"]
    assert len(lost["evidence"]) == 2
    assert not [one for one in found if one["check"] == "device.observation"]


def test_a_vendor_that_the_site_declares_is_one():
    observation = seen.healthy()
    for card in observation["devices"]:
        card["vendor"] = "acme"
    declared = {"cluster_accelerator_vendor": "acme", "cluster_vendors": {"acme": {"pci_vendors": ["1eed"]}}}
    models = [one for one in devices(observation, declared) if one["check"] == "device.model"]
    assert [one["verdict"] for one in models] == ["pass"] * 8


def test_a_card_that_tells_no_vendor_is_not_taken_for_the_declared_one():
    found = devices(altered("vendor", None))
    assert turned(devices(seen.healthy()), found) == {("device.model", "SXM5"): ("unknown", "unknown", None)}


def with_a_stranger(state="ok", instead=False):
    """Return a healthy host with a card of another vendor, beside its eight or instead of one of them."""
    observation = without(6) if instead else seen.healthy()
    card = {**seen.device(6), "vendor": "amd", "model": "AMD Instinct MI300X", "serial": "A1", "uuid": "A-1"}
    card.update(pci_address="0000:c1:00.0", driver_version="6.12.12", slot={"label": "OAM1", "source": "sysfs"})
    observation["bus_count"] += 1
    observation["drivers"].append({"vendor": "amd", "kernel_version": "6.12.12", "loaded": True})
    if state == "ok":
        observation["count"] += 1
        observation["tools"].append({"name": "amd-smi", "vendor": "amd", "state": "ok"})
    else:
        # Its tool is not installed: only the bus tells of the card, and the tools together tell no number.
        card.update(source="sysfs", model=None, serial=None, uuid=None, health={"state": "unknown", "reasons": []})
        observation["count"] = None
        observation["tools"].append({"name": "amd-smi", "vendor": "amd", "state": "absent"})
    observation["devices"].append(card)
    return observation


@pytest.mark.parametrize("instead", [False, True])
@pytest.mark.parametrize("answers", ["ok", "absent"])
def test_one_card_of_another_vendor_is_one_cause(answers, instead):
    found = devices(with_a_stranger(answers, instead))
    roots = {
        (f["hint"], f["subject"], f["observed"])
        for f in found
        if f["verdict"] in ("fail", "unknown") and not f["blocked_by"]
    }
    wrong = {("device.model.other_vendor", "OAM1", "amd")}
    if instead and answers == "absent":
        # The seven that answer are not eight, whatever the bus shows.
        wrong.add(("device.count.not_reported", "gpu-01", 7))
    assert roots == wrong
    assert {f["blocked_by"] for f in found if f["blocked_by"]} <= {"device.model"}
    versions = judge.judge_driver_versions({"gpu-01": about_of(with_a_stranger(answers, instead), {})}, now=NOW)
    assert state(versions) == {("device.driver_version", "gpu-01"): ("pass", "ok", None)}


def test_a_card_of_another_vendor_hides_none_that_is_silent():
    observation = seen.silence(with_a_stranger(), 6, "not_reported", link=True)
    count = one(devices(observation), "device.count")
    assert (count["hint"], count["expected"], count["observed"]) == ("device.count.not_reported", 8, 7)
    assert "OAM1" not in count["message"] and "SXM5" in count["message"]
    lost = one(devices(seen.card_lost(with_a_stranger())), "device.count")
    assert (lost["hint"], lost["expected"], lost["observed"]) == ("device.count.lost", 8, 7)


def test_cards_too_many_are_told_where_no_other_vendor_explains_them():
    found = devices(with_a_stranger(), {"cluster_accelerator_count": 7})
    told = one(found, "device.count")
    assert (told["hint"], told["expected"], told["observed"]) == ("device.count.surplus", 7, 8)


# ---------------------------------------------------------------------------------------------- speed and load


def idle(speed=2.5):
    observation = altered("link.speed_gts", speed)
    observation["devices"][6]["link"]["under_load"] = False
    return observation


def reading(**values):
    return {ADDRESSES[6]: {"speed_gts": 32.0, "width": 16, "at": "2026-11-29T12:00:00Z", **values}}


@pytest.mark.parametrize(
    ("readings", "cause"),
    [
        (None, "no_reading"),
        ({}, "no_reading"),
        (reading(), "ok"),
        ({"schema": 1, "links": reading()}, "ok"),
        (reading(speed_gts=8.0), "slow"),
        (reading(at="2026-11-23T12:00:00Z"), "ok"),  # 168 hours to the second
        (reading(at="2026-11-23T11:59:59Z"), "no_reading"),  # a second too old
        (reading(at="2026-11-30T13:00:00Z"), "no_reading"),  # the clock went back
        (reading(at="yesterday"), "no_reading"),
        (reading(at=None), "no_reading"),
        (reading(speed_gts="N/A"), "no_reading"),
        (reading(identity="GPU-01-6"), "ok"),
        (reading(identity="165040100006"), "ok"),
        (reading(identity="GPU-of-the-card-before"), "no_reading"),
        ("garbage", "no_reading"),
        ({ADDRESSES[6]: "garbage"}, "no_reading"),
    ],
)
def test_an_idle_card_is_judged_by_a_young_reading_of_itself(readings, cause):
    found = devices(idle(), link_readings=readings)
    speed = one(found, "device.link_speed", "SXM5")
    assert speed["hint"] == f"device.link_speed.{cause}"
    assert turned(devices(seen.healthy()), found) == (
        {} if cause == "ok" else {("device.link_speed", "SXM5"): (speed["verdict"], cause, None)}
    )


def test_no_reading_is_a_counted_unknown_that_fails_no_run():
    found = devices(idle())
    speed = one(found, "device.link_speed", "SXM5")
    assert (speed["verdict"], speed["severity"]) == ("unknown", "warning")
    assert judge.verdict(found) == "pass"


@pytest.mark.parametrize("age", ["a week", "nan", "inf", None, -1, 0])
def test_an_age_that_is_no_number_lets_no_reading_count(age):
    found = devices(idle(), {"cluster_link_reading_max_age_hours": age}, link_readings=reading())
    assert one(found, "device.link_speed", "SXM5")["hint"] == "device.link_speed.no_reading"


def test_what_a_card_shows_under_load_now_counts_more_than_an_old_reading():
    found = devices(altered("link.speed_gts", 16.0), link_readings=reading())
    assert one(found, "device.link_speed", "SXM5")["hint"] == "device.link_speed.slow"


def test_case_07(cases):
    """Cards of case 07: sysfs as it is there, load from the power states, the bridge from the kernel's line."""
    folder = cases / "07-pcie-idle-vs-downtrained"
    load = {}
    for line in (folder / "pstate.csv").read_text().splitlines():
        fields = [field.strip() for field in line.split(",")]
        if fields and ":" in fields[0]:
            load[fields[0].lower()[-12:]] = fields[1] == "P0"
    right = {
        "0000:18:00.0": {"device.link_width": "pass", "device.link_speed": "unknown"},
        "0000:2a:00.0": {"device.link_width": "pass", "device.link_speed": "pass"},
        "0000:3a:00.0": {"device.link_width": "fail"},
        "0000:5d:00.0": {"device.link_width": "pass", "device.link_speed": "fail"},
        "0000:9a:00.0": {"device.link_width": "pass", "device.link_speed": "fail"},
        "0000:ab:00.0": {"device.link_width": "fail"},
    }
    observation = {**seen.healthy(), "devices": [], "count": 6, "bus_count": 6}
    for number, address in enumerate(sorted(right)):
        files = next(path for path in (folder / "sysfs").iterdir() if path.name.replace("_", ":") == address)
        read = {path.name: path.read_text().split()[0] for path in files.iterdir()}
        card = {**seen.device(number), "pci_address": address}
        card["link"] = {
            "speed_gts": float(read["current_link_speed"]),
            "width": int(read["current_link_width"]),
            "max_speed_gts": float(read["max_link_speed"]),
            "max_width": int(read["max_link_width"]),
            "limited_by": "0000:97:01.0" if address == "0000:9a:00.0" else None,
            "under_load": load[address],
        }
        card["slot"] = {"label": None}
        observation["devices"].append(card)
    declared = {"cluster_accelerator_count": 6, "cluster_accelerator_link_speed_gts": 0}
    found = devices(observation, declared)
    # Two idle cards are told of together.
    found += [{**f, "subject": card} for f in found for card in f["cards"]]
    for address, verdicts in right.items():
        for check, verdict in verdicts.items():
            assert one(found, check, address)["verdict"] == verdict, (address, check)
    assert "0000:97:01.0" in one(found, "device.link_speed", "0000:9a:00.0")["message"]


# ---------------------------------------------------------------------------------------------- slots


def test_a_slot_without_its_card():
    found = slot_findings(without(6))
    assert turned(slot_findings(seen.healthy()), found) == {("device.slot", "SXM5"): ("fail", "missing", None)}
    assert one(found, "device.slot", "SXM5")["message"] == "slot SXM5 is empty; accepted there: serial 165040100006"


def test_a_card_that_nobody_accepted():
    found = slot_findings(seen.healthy(), baseline_of(without(6)))
    assert turned(slot_findings(seen.healthy()), found) == {("device.slot", "SXM5"): ("fail", "new", None)}
    assert "serial 165040100006" in one(found, "device.slot", "SXM5")["message"]


def test_a_card_that_moved_to_another_slot():
    observation = without(6)
    observation["devices"][5]["slot"] = {"label": "SXM5", "source": "vendor", "candidates": []}  # was in SXM6
    found = slot_findings(observation, baseline_of(without(6)))
    assert turned(slot_findings(without(6), baseline_of(without(6))), found) == {
        ("device.slot", "SXM5"): ("fail", "moved", None),
        ("device.slot", "SXM6"): ("fail", "moved", None),
    }
    words = "serial 165040100005 was accepted in slot SXM6 and is now in slot SXM5"
    assert {f["message"] for f in found if f["verdict"] == "fail"} == {words}


def test_a_card_that_went_to_another_host_is_moved_on_both():
    one_less, one_more = without(6), seen.healthy(host=2)
    one_more["devices"][6] = seen.device(6, host=1)
    baselines = {
        "gpu-01": baseline_of(seen.healthy(1)),
        "gpu-02": baseline_of(without_slot(seen.healthy(2), 6), "gpu-02"),
    }
    found = judge.judge_slots(
        baselines, {}, {"gpu-01": one_less, "gpu-02": one_more}, {"gpu-01": DECLARED, "gpu-02": DECLARED}, now=NOW
    )
    bad = {(f["host"], f["subject"], f["hint"]) for f in found if f["verdict"] != "pass"}
    assert bad == {("gpu-01", "SXM5", "device.slot.moved"), ("gpu-02", "SXM5", "device.slot.moved")}
    assert next(f for f in found if f["host"] == "gpu-02" and f["verdict"] == "fail")["message"] == (
        "serial 165040100006 was accepted in gpu-01 slot SXM5 and is now in slot SXM5"
    )


def two_hosts(first, second):
    baselines = {f"gpu-0{number}": baseline_of(seen.healthy(number), f"gpu-0{number}") for number in (1, 2)}
    return judge.judge_slots(
        baselines, {}, {"gpu-01": first, "gpu-02": second}, {"gpu-01": DECLARED, "gpu-02": DECLARED}, now=NOW
    )


def test_a_new_card_in_the_slot_of_one_that_went_to_another_host_is_told():
    """Where the old one went is told where it is now; the new one would be told nowhere."""
    other = seen.healthy(2)
    other["devices"][6] = seen.device(6, host=1)
    found = two_hosts(seen.replaced(seen.healthy(1), 6), other)
    bad = {(f["host"], f["subject"]): (f["hint"], f["message"]) for f in found if f["verdict"] != "pass"}
    assert bad == {
        ("gpu-01", "SXM5"): (
            "device.slot.new",
            "slot SXM5 holds a card that no baseline knows: serial 1659999000001",
        ),
        ("gpu-02", "SXM5"): (
            "device.slot.moved",
            (
                "serial 165040100006 was accepted in gpu-01 slot SXM5 and is now in slot SXM5; "
                "serial 165040200006, accepted here, was not found"
            ),
        ),
    }


def test_a_card_that_two_places_show_is_not_called_unknown_to_the_baselines():
    other = seen.healthy(2)
    other["devices"][6] = seen.device(6, host=1)
    found = two_hosts(seen.healthy(1), other)
    (bad,) = [f for f in found if f["verdict"] != "pass"]
    assert (bad["host"], bad["subject"], bad["hint"]) == ("gpu-02", "SXM5", "device.slot.duplicate")
    assert bad["message"] == "slot SXM5 holds serial 165040100006, which another place shows too"


def without_slot(observation, number):
    observation["devices"] = [card for card in observation["devices"] if card["index"] != number]
    observation.update(count=7, bus_count=7)
    return observation


def test_a_card_of_a_host_that_is_not_in_this_run_is_moved_not_new():
    one_more = without_slot(seen.healthy(2), 6)
    one_more["devices"].append(seen.device(6, host=1))
    baselines = {
        "gpu-01": baseline_of(seen.healthy(1)),
        "gpu-02": baseline_of(without_slot(seen.healthy(2), 6), "gpu-02"),
    }
    found = judge.judge_slots(baselines, {}, {"gpu-02": one_more}, {"gpu-02": DECLARED}, now=NOW)
    assert {f["host"] for f in found} == {"gpu-02"}
    assert one(found, "device.slot", "SXM5")["hint"] == "device.slot.moved"


def test_a_card_that_answers_without_a_place_is_no_pass():
    lost_its_name = altered("slot", {"label": None, "source": None, "candidates": [{"label": "3", "source": "sysfs"}]})
    lost_its_name["devices"][6]["pci_address"] = "0000:5e:00.0"  # so that nothing says that it stayed
    found = slot_findings(lost_its_name)
    told = one(found, "device.slot", "SXM5")
    assert (told["hint"], told["verdict"], told["severity"]) == ("device.slot.unknown", "unknown", "critical")
    assert told["message"] == (
        "SXM5 could not be compared with the accepted cards: "
        "serial 165040100006 answers, but nothing tells in which slot it sits"
    )
    assert one(found, "device.slot", "0000:5e:00.0")["hint"] == "device.slot.unplaced"
    # Nor when it changed otherwise: what changed is told of a place that it may not be in.
    for field in ("serial", "firmware_version"):
        lost_its_name["devices"][6][field] = "other"
        assert one(slot_findings(lost_its_name), "device.slot", "SXM5")["hint"] == "device.slot.unknown"


@pytest.mark.parametrize("numbers", [[6], list(range(8))], ids=["one card", "all cards"])
def test_a_lesser_name_of_its_place_moves_no_card(numbers):
    """The vendor's answer was damaged and the kernel names the places: SXM5 is 7 there."""
    observation = seen.healthy()
    for number in numbers:
        observation["devices"][number]["slot"] = {"label": str(number + 1), "source": "sysfs", "candidates": []}
    assert turned(slot_findings(seen.healthy()), slot_findings(placed(observation))) == {}


@pytest.mark.parametrize("change", [{"uuid": "GPU-99-9", "serial": "1659999000001"}, {"pci_address": "0000:5e:00.0"}])
def test_another_card_or_place_is_no_other_name(change):
    observation = altered("slot", {"label": "7", "source": "sysfs", "candidates": []})
    observation["devices"][6].update(change)
    found = slot_findings(placed(observation))
    assert {f["hint"] for f in found if f["verdict"] == "fail"} & {"device.slot.moved", "device.slot.new"}


def placed(observation):
    return judge.placed(observation, baseline_of(seen.healthy()))


def test_other_firmware_is_a_warning():
    found = slot_findings(altered("firmware_version", "96.00.89.00.01"))
    assert turned(slot_findings(seen.healthy()), found) == {("device.slot", "SXM5"): ("fail", "firmware_changed", None)}
    told = one(found, "device.slot", "SXM5")
    assert (told["severity"], told["expected"], told["observed"]) == ("warning", "96.00.74.00.01", "96.00.89.00.01")
    assert judge.verdict(found) == "pass"


def exchanged_serials(observation, one, other):
    """Return the host with two cards that tell each other's serial and keep their UUIDs."""
    first, second = observation["devices"][one], observation["devices"][other]
    first["serial"], second["serial"] = second["serial"], first["serial"]
    return observation


def test_serials_that_changed_places_while_the_uuids_stayed_are_no_pass():
    found = slot_findings(exchanged_serials(seen.healthy(), 0, 6))  # SXM4 and SXM5
    assert turned(slot_findings(seen.healthy()), found) == {
        ("device.slot", "SXM4"): ("fail", "serial_differs", None),
        ("device.slot", "SXM5"): ("fail", "serial_differs", None),
    }
    told = one(found, "device.slot", "SXM5")
    assert (told["severity"], told["expected"], told["observed"]) == ("critical", "165040100006", "165040100000")
    assert told["message"] == (
        "slot SXM5 holds the accepted card by its UUID, its serial is 165040100000 instead of 165040100006; "
        "165040100000 was accepted in slot SXM4"
    )
    assert [piece["excerpt"] for piece in told["evidence"]] == [
        "gpu-01 SXM5: serial 165040100000, serial 165040100006 -> 165040100000 (changed)"
    ]


def test_a_serial_that_no_baseline_knows_contradicts_as_well():
    told = one(slot_findings(altered("serial", "1659999000001")), "device.slot", "SXM5")
    assert (told["hint"], told["verdict"]) == ("device.slot.serial_differs", "fail")
    assert told["message"].endswith("its serial is 1659999000001 instead of 165040100006")


@pytest.mark.parametrize(("accepted", "now"), [(None, "165040100006"), ("165040100006", None)])
def test_a_serial_that_one_side_does_not_tell_contradicts_nothing(accepted, now):
    found = slot_findings(altered("serial", now), baseline_of(altered("serial", accepted)))
    assert turned(slot_findings(seen.healthy()), found) == {}


def test_a_card_that_told_nothing_when_it_was_accepted_is_learned():
    nameless = altered("serial", None)
    nameless["devices"][6].update(uuid=None)
    assert turned(slot_findings(seen.healthy()), slot_findings(seen.healthy(), baseline_of(nameless))) == {}


def two_boards():
    """Return a host whose first four chips are two boards, each with one serial."""
    host = seen.healthy()
    for number, card in enumerate(host["devices"][:4]):
        label = f"NPU{number // 2 + 1}"
        card.update(serial=f"B{number // 2 + 1}", slot={"label": label, "source": "vendor", "candidates": []})
    return host


def test_boards_of_two_chips_whose_serials_changed_places():
    changed = two_boards()
    for card in changed["devices"][:4]:
        card["serial"] = {"B1": "B2", "B2": "B1"}[card["serial"]]
    found = slot_findings(changed, baseline_of(two_boards()))
    assert {f["subject"]: (f["hint"], f["expected"], f["observed"]) for f in found if f["verdict"] != "pass"} == {
        "NPU1": ("device.slot.serial_differs", "B1", "B2"),
        "NPU2": ("device.slot.serial_differs", "B2", "B1"),
    }


def test_what_changed_of_the_first_chip_hides_nothing_of_the_second():
    changed = two_boards()
    first, second = changed["devices"][:2]
    first["firmware_version"], second["serial"] = "96.00.89.00.01", "B2"
    found = slot_findings(changed, baseline_of(two_boards()))
    assert one(found, "device.slot", "NPU1")["hint"] == "device.slot.serial_differs"
    assert len(one(found, "device.slot", "NPU1")["evidence"]) == 2
    first.update(firmware_version="96.00.74.00.01", uuid="another way to write it")
    second.update(firmware_version="96.00.89.00.01", serial="B1")
    assert one(slot_findings(changed, baseline_of(two_boards())), "device.slot", "NPU1")["hint"] == (
        "device.slot.firmware_changed"
    )


def test_a_card_whose_slot_nobody_can_tell():
    observation = altered("slot", {"label": None, "source": None, "candidates": [{"label": "12", "source": "sysfs"}]})
    found = slot_findings(observation, baseline_of(observation))
    told = one(found, "device.slot", "0000:ba:00.0")
    assert (told["hint"], told["verdict"], told["severity"]) == ("device.slot.unplaced", "unknown", "warning")
    assert told["message"] == (
        "no believable slot name for serial 165040100006 at 0000:ba:00.0; "
        "sources disagree or are not unique: 12 (sysfs)"
    )
    assert len([f for f in found if f["verdict"] == "pass"]) == 7


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ({"serial": None}, "uuid GPU-01-6 at 0000:ba:00.0"),
        ({"serial": None, "uuid": None}, "the card at 0000:ba:00.0"),
        ({"pci_address": None}, "serial 165040100006"),
    ],
)
def test_a_card_without_a_slot_is_called_by_the_best_that_it_tells(told, name):
    observation = altered("slot", {"label": None, "source": None, "candidates": []})
    observation["devices"][6].update(told)
    found = slot_findings(observation, baseline_of(without(6)))
    (unplaced,) = [f for f in found if f["hint"] == "device.slot.unplaced"]
    assert unplaced["message"] == f"no believable slot name for {name}"


def test_a_silent_card_without_a_slot_is_named_as_well():
    silent = seen.card_lost(seen.healthy())
    silent["unanswered"][0].update(slot={"label": None, "source": None, "candidates": []}, serial="165040100006")
    found = slot_findings(silent, baseline_of(without(6)))
    (blocked,) = [f for f in found if f["hint"] == "device.slot.blocked"]
    assert (
        blocked["message"] == "0000:ba:00.0 (serial 165040100006) could not be identified, and nothing tells its slot"
    )


def test_no_baseline_is_one_critical_unknown_for_the_host():
    found = judge.judge_slots({}, {}, {"gpu-01": seen.healthy()}, {"gpu-01": DECLARED}, now=NOW)
    assert state(found) == {("device.slot", "gpu-01"): ("unknown", "no_baseline", None)}
    assert found[0]["severity"] == "critical"
    assert judge.verdict(found) == "unknown"


def test_a_damaged_baseline_is_unknown_and_harms_no_other_host():
    observed = {"gpu-01": seen.healthy(1), "gpu-02": seen.healthy(2)}
    baselines = {"gpu-01": {"schema": 1, "slots": []}, "gpu-02": baseline_of(seen.healthy(2), "gpu-02")}
    found = judge.judge_slots(baselines, {}, observed, {}, now=NOW)
    assert [f["hint"] for f in found if f["host"] == "gpu-01"] == ["device.slot.unknown"]
    assert {f["verdict"] for f in found if f["host"] == "gpu-02"} == {"pass"}
    unread = judge.judge_slots({}, {}, {"gpu-01": seen.healthy()}, {}, {"gpu-01": "line 3: not valid"}, now=NOW)
    assert unread[0]["hint"] == "device.slot.unknown" and "line 3" in unread[0]["message"]


def test_an_address_that_is_none_makes_the_slots_unknown_not_a_crash():
    found = slot_findings(altered("pci_address", "somewhere"))
    assert [f["hint"] for f in found] == ["device.slot.unknown"]
    assert "somewhere" in found[0]["message"]


def test_three_cards_that_went_round_are_told_by_the_card_that_is_in_the_slot_now():
    observation = seen.healthy()
    first, second, third = (observation["devices"][number] for number in (0, 1, 2))  # SXM4, SXM2, SXM1
    for key in ("serial", "uuid"):
        first[key], second[key], third[key] = third[key], first[key], second[key]
    found = slot_findings(observation)
    assert {f["subject"]: f["message"] for f in found if f["verdict"] != "pass"} == {
        "SXM4": "serial 165040100002 was accepted in slot SXM1 and is now in slot SXM4",
        "SXM2": "serial 165040100000 was accepted in slot SXM4 and is now in slot SXM2",
        "SXM1": "serial 165040100001 was accepted in slot SXM2 and is now in slot SXM1",
    }


def test_a_card_that_does_not_say_which_one_it_is_is_neither_accepted_nor_replaced():
    observation = altered("serial", None)
    observation["devices"][6].update(uuid=None)
    found = slot_findings(observation)
    assert turned(slot_findings(seen.healthy()), found) == {("device.slot", "SXM5"): ("unknown", "unknown", None)}
    assert "neither serial nor UUID" in one(found, "device.slot", "SXM5")["message"]


def test_hosts_without_cards_have_no_slots_to_judge():
    empty = {"devices": [], "count": None, "bus_count": 0, "unanswered": [], "tools": []}
    assert judge.judge_slots({}, {}, {"ctl-01": empty}, {"ctl-01": NO_CARDS}, now=NOW) == []


def test_two_chips_of_one_board_one_of_them_lost():
    board = seen.healthy()
    for number in (0, 1):
        board["devices"][number].update(serial="1650400000000")
        board["devices"][number]["slot"] = {"label": "NPU1", "source": "vendor", "candidates": []}
    lost = seen.silence(board, 1, "lost", link=False)
    found = slot_findings(lost, baseline_of(board))
    assert turned(slot_findings(board, baseline_of(board)), found) == {("device.slot", "NPU1"): BLOCKED_BY_COUNT}


# ---------------------------------------------------------------------------------------------- driver versions


def versions(**hosts):
    """Judge hosts given as name=(node type, declared version, kernel version)."""
    told = {}
    for name, (kind, declared, version) in hosts.items():
        observation = seen.healthy()
        observation["drivers"][0].update(kernel_version=version, library_version=version)
        if version is None:
            for card in observation["devices"]:
                card["driver_version"] = None
        told[name] = {
            "node_type": kind,
            "declared": {**DECLARED, "cluster_driver_version": declared},
            "observation": observation,
        }
    found = judge.judge_driver_versions(told, now=NOW)
    assert all(f["check"] == "device.driver_version" and f["subject"] == f["host"] for f in found)
    return {f["host"]: f["hint"].rpartition(".")[2] for f in found}, found


def test_one_version_in_a_type():
    assert versions(a=("h100", "", "570.1"), b=("h100", "", "570.1"))[0] == {"a": "ok", "b": "ok"}
    assert versions(a=("h100", "", "570.1"), b=("h200", "", "580.1"))[0] == {"a": "ok", "b": "ok"}


def test_the_one_that_is_not_as_most_are():
    told, found = versions(a=("h100", "", "570.1"), b=("h100", "", "570.2"), c=("h100", "", "570.1"))
    assert told == {"a": "ok", "b": "differs", "c": "ok"}
    assert found[1]["message"] == "driver 570.2 instead of 570.1 (what most nodes of the type h100 run: 2 of 3)"


def test_a_declared_version_counts_more_than_the_many():
    told, found = versions(a=("h100", "570.2", "570.1"), b=("h100", "570.2", "570.2"), c=("h100", "570.2", "570.1"))
    assert told == {"a": "differs", "b": "ok", "c": "differs"}
    assert (found[0]["expected"], found[0]["observed"]) == ("570.2", "570.1")


LONG, OTHER, SHORT = "570.124.06", "570.124.04", "570.124"
DIFFER = {"a": "differs", "b": "differs"}
SPLIT = {"a": "no_majority", "b": "no_majority"}


@pytest.mark.parametrize(
    ("declared", "told", "causes"),
    [
        # A short form is one version with the long one that it begins, declared or told.
        (SHORT, (LONG, LONG), {"a": "ok", "b": "ok"}),
        (LONG, (SHORT, LONG), {"a": "ok", "b": "ok"}),
        ("", (SHORT, LONG), {"a": "ok", "b": "ok"}),
        ("", (SHORT, LONG, "570.86.15"), {"a": "ok", "b": "ok", "c": "differs"}),
        (SHORT, (LONG, "570.86.15"), {"a": "ok", "b": "differs"}),
        ("570", (LONG, LONG), DIFFER),
        # It fits several releases, of which the nodes are to run one all the same.
        (SHORT, (LONG, LONG, OTHER), {"a": "ok", "b": "ok", "c": "differs"}),
        (SHORT, (LONG, OTHER), SPLIT),
        (SHORT, (LONG, LONG, OTHER, "570.86.15"), {"a": "ok", "b": "ok", "c": "differs", "d": "differs"}),
        # Those of another driver have no say in which of them it is.
        (SHORT, (LONG, "570.86.15", "570.86.15"), {"a": "ok", "b": "differs", "c": "differs"}),
        # One that may be either proves nothing, and counts for neither.
        ("", (LONG, LONG, OTHER, SHORT), {"a": "ok", "b": "ok", "c": "differs", "d": "unknown"}),
        (SHORT, (LONG, OTHER, SHORT), {**SPLIT, "c": "unknown"}),
        (LONG, (LONG, OTHER, SHORT), {"a": "ok", "b": "differs", "c": "unknown"}),
        ("580.1", (LONG, OTHER, SHORT), {**DIFFER, "c": "differs"}),
    ],
)
def test_short_forms_of_a_version(declared, told, causes):
    """The rule of odd_versions (text.same_version)."""
    found = versions(**{name: ("h100", declared, version) for name, version in zip("abcd", told)})[0]
    assert found == causes


def test_what_is_said_of_short_forms():
    many = versions(a=("h100", SHORT, LONG), b=("h100", SHORT, LONG), c=("h100", SHORT, OTHER))[1]
    most = "what most nodes of the type h100 run: 2 of 3"
    assert many[0]["message"] == f"driver 570.124.06 ({most})"
    assert many[2]["message"] == f"driver 570.124.04 instead of 570.124.06 ({most})"
    split = versions(a=("h100", SHORT, LONG), b=("h100", SHORT, OTHER), c=("h100", SHORT, SHORT))[1]
    assert split[0]["message"] == (
        "driver 570.124.06, and nobody knows whether that is right: no version is that of most nodes of the type h100: "
        "570.124.04 x1, 570.124.06 x1"
    )
    assert (split[2]["verdict"], split[2]["observed"]) == ("unknown", SHORT)
    assert "570.124 may be 570.124.04, 570.124.06" in split[2]["message"]


def test_cards_that_tell_the_version_of_one_driver_in_two_forms_do_not_disagree():
    observation = seen.healthy()
    observation["drivers"][0]["kernel_version"] = None
    for number, card in enumerate(observation["devices"]):
        card["driver_version"] = LONG if number else SHORT
    declared = {**DECLARED, "cluster_driver_version": LONG}
    about = {"gpu-01": {"node_type": "h100", "declared": declared, "observation": observation}}
    assert [f["verdict"] for f in judge.judge_driver_versions(about, now=NOW)] == ["pass"]
    observation["devices"][1]["driver_version"] = OTHER
    assert [f["verdict"] for f in judge.judge_driver_versions(about, now=NOW)] == ["fail"]


def test_an_even_split_names_nobody_the_odd_one_and_passes_nobody():
    told, found = versions(a=("h100", "", "570.1"), b=("h100", "", "570.2"))
    assert told == SPLIT
    assert {(f["verdict"], f["severity"], f["expected"]) for f in found} == {("unknown", "critical", None)}
    assert "570.1 x1" in found[0]["message"] and "570.2 x1" in found[0]["message"]
    assert judge.verdict(found) == "unknown"


def test_the_most_common_version_is_that_of_nobody_where_most_run_another():
    hosts = {name: ("h100", "", version) for name, version in zip("abcd", ("570.1", "570.1", "570.2", "570.3"))}
    assert set(versions(**hosts)[0].values()) == {"no_majority"}


def test_a_version_that_nobody_tells_is_unknown_and_counts_for_none():
    told, found = versions(a=("h100", "", None), b=("h100", "", "570.1"), c=("h100", "", "570.1"))
    assert told == {"a": "unknown", "b": "ok", "c": "ok"}
    assert found[1]["message"] == "driver 570.1 (what most nodes of the type h100 run: 2 of 3)"


def test_what_a_few_nodes_tell_is_not_what_most_of_them_run():
    told, found = versions(a=("h100", "", None), b=("h100", "", "570.1"))
    assert told == {"a": "unknown", "b": "no_majority"}
    assert found[1]["message"] == (
        "driver 570.1, and nobody knows whether that is right: only 1 of 2 nodes of the type h100 told theirs"
    )


RELEASES = ("570.1", "570.1.1", "570.1.2", "570.2", None)


@pytest.mark.parametrize("pin", ["", "570.1", "570.1.1"])
def test_the_judge_and_the_filter_have_one_rule(pin):
    """Any few hosts: one is off for the judge where odd_versions names it, and passes only where that may."""
    for size in (1, 2, 3, 4):
        for combination in itertools.product(RELEASES, repeat=size):
            told = dict(zip("abcd", combination))
            judged = versions(**{host: ("h100", pin, version) for host, version in told.items()})[0]
            rows = {
                host: [] if version is None else [odd_rows._row("driver_kernel", "nvidia", None, version, "a file")]
                for host, version in told.items()
            }
            entries = odd_rows.odd({host: {"versions": own} for host, own in rows.items()}, {"driver": pin or None})
            if not entries:
                assert set(judged.values()) == {"unknown"}
                continue
            odd = {row["host"] for row in entries[0]["odd"]}
            assert {host for host, cause in judged.items() if cause == "differs"} == odd, (pin, told)
            if set(judged.values()) == {"ok"}:
                assert entries[0]["verdict"] == "pass", (pin, told)
            if entries[0]["verdict"] == "pass":
                assert set(judged.values()) == {"ok"}, (pin, told)


def of_driver(kernel, library, declared="", **more):
    """Judge a host whose tool answers, by what runs in the kernel and what programs load."""
    observation = seen.healthy()
    observation["drivers"][0].update(kernel_version=kernel, library_version=library, **more)
    about = {"node_type": "h100", "declared": {**DECLARED, "cluster_driver_version": declared}}
    (found,) = judge.judge_driver_versions({"gpu-01": {**about, "observation": observation}}, now=NOW)
    return found


@pytest.mark.parametrize("declared", ["", "570.124", "570.124.06", "570.124.10"])
def test_a_library_of_another_release_than_the_loaded_module_differs(declared):
    """A short form fits both of them. Ascend's tool answers all the same, until the next restart."""
    found = of_driver("570.124.06", "570.124.10", declared)
    assert (found["hint"], found["observed"]) == ("device.driver_version.differs", "570.124.06, 570.124.10")
    assert "the loaded module and the library of one node differ" in found["message"]


@pytest.mark.parametrize("library", ["570.124", "570.124.06", None])
def test_a_library_that_may_be_of_the_loaded_release_does_not_differ(library):
    assert of_driver("570.124.06", library, "570.124")["verdict"] == "pass"


def test_a_library_of_a_vendor_that_tells_no_module_is_compared_with_none():
    assert of_driver(None, "2.1.0")["observed"] == "570.86.15"


def test_the_kernel_tells_the_version_also_behind_a_mismatch():
    healthy, broken = seen.healthy(), seen.driver_library_mismatch(seen.healthy())
    told = {
        name: {"node_type": "h100", "declared": DECLARED, "observation": observation}
        for name, observation in (("gpu-01", broken), ("gpu-02", healthy))
    }
    assert {f["verdict"] for f in judge.judge_driver_versions(told, now=NOW)} == {"pass"}


@pytest.mark.parametrize(
    ("state", "reason", "blocker"),
    [
        ("failed", "driver_not_loaded", "device.driver"),
        ("failed", "driver_not_ready", "device.driver"),
        ("hung", None, "device.query"),
        ("unreadable", None, "device.query"),
    ],
)
def test_a_version_that_no_card_tells_is_a_consequence(state, reason, blocker):
    """Where only the cards tell it, as with Ascend and AMD's in-kernel driver."""
    observation = {"devices": [], "count": None, "bus_count": 8, "drivers": [{"vendor": "nvidia", "loaded": True}]}
    observation["tools"] = [{"name": "smi", "vendor": "nvidia", "state": state, "reason": reason}]
    told = {"gpu-01": {"node_type": "h100", "declared": DECLARED, "observation": observation}}
    (found,) = judge.judge_driver_versions(told, now=NOW)
    assert (found["hint"], found["verdict"]) == ("device.driver_version.blocked", "unknown")
    assert found["blocked_by"] == blocker


def test_hosts_of_no_cards_variables_that_fail_and_hosts_that_were_not_seen():
    told = {
        "ctl-01": {"node_type": "", "declared": NO_CARDS, "observation": {"devices": []}},
        "gpu-01": {"node_type": None, "declared": {}, "observation": seen.healthy(), "error": "'x' is undefined"},
        "gpu-02": {"node_type": "h100", "declared": DECLARED, "observation": None},
    }
    found = judge.judge_driver_versions(told, now=NOW)
    assert {f["host"]: f["hint"] for f in found} == {
        "ctl-01": "device.driver_version.not_applicable",
        "gpu-01": "device.driver_version.unknown",
    }
    assert "'x' is undefined" in found[1]["message"]


# ---------------------------------------------------------------------------------------------- verdict and text


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-30T01:02:03Z", "2026-11-30T01:02:03Z"),
        ("20261130T010203Z", "2026-11-30T01:02:03Z"),
        ("2026-11-30T09:02:03+08:00", "2026-11-30T01:02:03Z"),
        ("2026-11-30T01:02:03", "2026-11-30T01:02:03Z"),
        ("yesterday", None),
        (None, None),
        (1796000000, None),
    ],
)
def test_times_are_utc(text, moment):
    told = judge.parse_time(text)
    assert (told and told.strftime("%Y-%m-%dT%H:%M:%SZ")) == moment


@pytest.mark.parametrize(
    ("findings", "verdict"),
    [
        ([], "unknown"),
        ([("pass", "critical")], "pass"),
        ([("not_applicable", "critical"), ("pass", "critical")], "pass"),
        ([("pass", "critical"), ("unknown", "critical")], "unknown"),
        ([("unknown", "critical"), ("fail", "critical")], "fail"),
        ([("pass", "critical"), ("fail", "warning")], "pass"),
        ([("pass", "critical"), ("unknown", "warning")], "pass"),
        ([("fail", "warning"), ("unknown", "critical")], "unknown"),
        ([("green", "critical")], "unknown"),
        ([("fail", "urgent")], "fail"),
        ([(None, None)], "unknown"),
    ],
)
def test_verdict(findings, verdict):
    assert judge.verdict({"verdict": v, "severity": s} for v, s in findings) == verdict


def pcie_only(**values):
    """Return a host whose cards are PCIe boards that repair no memory."""
    observation = seen.healthy()
    for card in observation["devices"]:
        card.update(model="NVIDIA L40S", repair={"state": "not_supported"}, ecc={}, **values)
    return observation


def everything(language):
    """Return findings of every cause that this file has a fault for."""
    moved = without(6)
    moved["devices"][5]["slot"] = {"label": "SXM5", "source": "vendor", "candidates": []}
    wide = altered("link.max_width", 8)
    wide["devices"][6]["link"]["width"] = 8
    unplaced = altered("slot", {"label": None, "source": None, "candidates": []})
    observations = [
        seen.healthy(),
        seen.card_lost(seen.healthy()),
        seen.card_hung(seen.healthy()),
        seen.driver_library_mismatch(seen.healthy()),
        *(silent_host(seen.healthy(), state=word) for word in ("absent", "unreadable", "failed")),
        *(
            silent_host(seen.healthy(), reason=word)
            for word in ("driver_not_loaded", "driver_not_ready", "library_missing", "in_use_elsewhere")
        ),
        {**silent_host(seen.healthy(), state="absent"), "drivers": []},
        without(6),
        without(6, listed=True),
        moved,
        wide,
        unplaced,
        idle(),
        seen.swapped(seen.healthy(), 1, 7),
        seen.replaced(seen.healthy(), 6),
        altered("firmware_version", "1"),
        altered("pci_address", "somewhere"),
        altered("ecc", {"corrected_volatile": 0, "uncorrected_volatile": 3}),
        {**seen.healthy(), "holders_complete": False},
        {**seen.healthy(), "kernel_log": {"state": "unknown", "reason": "no journal"}},
        {**seen.healthy(), "kernel_log": {"state": "shared"}},
        *({**seen.healthy(), "kernel_events": [seen.event(code)]} for code in ("xid 32", "xid 62", "xid 64", "xid 13")),
        pcie_only(ports=[]),
        pcie_only(ports=links(down=range(18))),
        {**seen.healthy(), "bus_count": None},
        {**seen.healthy(), "bus_count": 7},
        {**seen.card_lost(seen.healthy()), "bus_count": None, "count": None},
    ]
    found = devices({"bus_count": None}, NO_CARDS, language=language)
    for observation in observations:
        found += devices(observation, language=language)
        found += slot_findings(observation, language=language)
    for field, declared in (case[:2] for case in CAUSES_OF_A_CARD):
        found += devices(altered(*field), declared, language=language)
    split = altered("logical", PARTS)
    split["devices"][6]["ports"] = []
    found += devices(split, {PARTITIONS: 2}, language=language)
    found += devices(seen.healthy(), {"cluster_processes_allowed": "yes"}, language=language)
    found += devices(seen.driver_library_mismatch(seen.healthy()), AMD, language=language)
    for error in ([DAMAGED], [BOGUS]):
        found += devices({**seen.healthy(), "errors": error}, language=language)
    for count in ("eight", "7"):
        found += devices(seen.healthy(), {"cluster_accelerator_count": count}, language=language)
    found += slot_findings(seen.healthy(), baseline_of(without(6)), language)
    found += slot_findings(exchanged_serials(seen.healthy(), 0, 6), language=language)
    found += slot_findings(unplaced, baseline_of(unplaced), language)
    found += judge.judge_slots({}, {}, {"gpu-01": seen.healthy()}, {}, now=NOW, language=language)
    twin = {"gpu-01": seen.healthy(), "gpu-02": seen.healthy(2)}
    twin["gpu-02"]["devices"][6] = seen.device(6, host=1)
    accepted = {host: baseline_of(seen.healthy(int(host[-1])), host) for host in twin}
    found += judge.judge_slots(accepted, {}, twin, {}, now=NOW, language=language)
    other = {"gpu-02": seen.healthy(), "gpu-03": seen.driver_library_mismatch(seen.healthy()), "ctl-01": {"count": 0}}
    other["gpu-02"]["drivers"][0].update(kernel_version="570.2", library_version="570.2")
    other["gpu-03"]["drivers"] = []
    other["gpu-05"] = altered("driver_version", None, 0)
    other["gpu-05"].update(drivers=[], devices=other["gpu-05"]["devices"][:1])
    about = {
        host: {"node_type": "h100", "declared": NO_CARDS if host == "ctl-01" else DECLARED, "observation": observation}
        for host, observation in {"gpu-01": seen.healthy(), "gpu-04": seen.healthy(), **other}.items()
    }
    found += judge.judge_driver_versions(about, now=NOW, language=language)
    return found + judge.judge_driver_versions(
        {host: about[host] for host in ("gpu-01", "gpu-02")}, now=NOW, language=language
    )


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_cause_comes_out_and_no_message_has_a_gap(language):
    found = everything(language)
    others = ("device.driver_stack.", "device.version_lock.")  # test_stack.py
    assert {f["hint"] for f in found} == {
        cause
        for cause in hints.CAUSES
        if cause.startswith("device.") and not cause.startswith(others)
        if not cause.endswith(".follows")  # comes with what else is judged of the host: test_conclude.py
    }
    for told in found:
        message = told["message"]
        assert "?" not in message and "{" not in message and "None" not in message, told
        chinese = any("\u4e00" <= sign <= "\u9fff" for sign in message) or "：" in message
        assert chinese == (language == "zh"), message
        spec = hints.CAUSES[told["hint"]]
        assert (told["verdict"], told["severity"], told["layer"]) == (spec.verdict, spec.severity, "device")
        assert (told["blocked_by"] is not None) == told["hint"].endswith(".blocked")


def test_an_unknown_language_is_english():
    assert [f["message"] for f in devices(seen.healthy(), language="fr")] == [
        f["message"] for f in devices(seen.healthy())
    ]


def test_findings_can_be_kept_and_the_observation_is_not_touched():
    observation = seen.card_lost(seen.healthy())
    before = copy.deepcopy(observation)
    found = devices(observation) + slot_findings(observation)
    assert observation == before
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert {f["at"] for f in found} == {NOW}


def test_evidence_is_short_and_keeps_its_end():
    long = "first line\n" + "x" * 5000 + "\nlast line"
    observation = silent_host(seen.healthy(), state="unreadable", excerpt=long)
    excerpt = one(devices(observation), "device.query")["evidence"][0]["excerpt"]
    assert len(excerpt) <= 2000
    assert excerpt.startswith("first line") and excerpt.endswith("last line")
