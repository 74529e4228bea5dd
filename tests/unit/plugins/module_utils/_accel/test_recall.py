# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the record of a host still knows of cards that do not answer."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import judge, metrics, shown, slots
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import (
    Device,
    Link,
    Observation,
    SlotName,
    Tool,
    as_dict,
)
from ansible_collections.accel.cluster.plugins.module_utils._accel.recall import recall
from ansible_collections.accel.cluster.plugins.module_utils._accel.slot_names import place_of

ADDRESSES = ["0000:18:00.0", "0000:2a:00.0", "0000:3a:00.0"]


def device(number, **fields):
    told = {
        "vendor": "nvidia",
        "model": "NVIDIA H100 80GB HBM3",
        "serial": f"09901000000{number:02}",
        "uuid": f"GPU-{number:04}",
        "identity": "uuid",
        "pci_address": ADDRESSES[number],
        "slot": SlotName(f"SXM{number + 1}", "vendor"),
        "firmware_version": "96.00",
        "source": "nvidia-smi 570.86.15",
        **fields,
    }
    return Device(**told)


def entry(number, slot=None, **fields):
    empty = dict.fromkeys(("model", "serial", "uuid", "firmware_version", "reason", "numa_node", "last"))
    return {
        **empty,
        "pci_address": ADDRESSES[number],
        "vendor": "nvidia",
        "pci_id": "10de:2330",
        "state": "lost",
        "slot": slot or SlotName(),
        "link": Link(),
        **fields,
    }


def seen(devices, unanswered=()):
    tools = [Tool("nvidia-smi", "nvidia", "570.86.15")]
    return as_dict(Observation(devices=devices, unanswered=list(unanswered), count=len(devices), tools=tools))


@pytest.fixture
def record():
    """Return the record of the host while all its cards answered."""
    return slots.build_record(seen([device(number) for number in range(3)]), "gpu-01", "2026-11-01T00:00:00Z")


def test_a_lost_card_keeps_its_place_and_its_serial(record):
    now = seen([device(0), device(2)], [entry(1, SlotName(None, None, [{"label": "2", "source": "sysfs"}]))])
    recall(now, record, "gpu-01")
    (lost,) = now["unanswered"]
    assert lost["slot"] == {"label": "SXM2", "source": "vendor", "candidates": [{"label": "2", "source": "sysfs"}]}
    assert (lost["serial"], lost["uuid"]) == ("0990100000001", "GPU-0001")
    assert (lost["model"], lost["firmware_version"]) == ("NVIDIA H100 80GB HBM3", "96.00")
    assert lost["last"] == {
        "serial": "0990100000001",
        "uuid": "GPU-0001",
        "model": "NVIDIA H100 80GB HBM3",
        "firmware_version": "96.00",
        "slot": "SXM2",
    }


def test_a_whole_host_that_does_not_answer_keeps_its_places(record):
    told = [SlotName(str(number + 1), "sysfs") for number in range(3)]
    now = seen([], [entry(number, told[number], state="not_reported") for number in range(3)])
    recall(now, record, "gpu-01")
    assert [one["slot"]["label"] for one in now["unanswered"]] == ["SXM1", "SXM2", "SXM3"]
    assert now["unanswered"][0]["slot"]["candidates"] == [{"label": "1", "source": "sysfs"}]


def test_cards_that_only_the_bus_shows_keep_their_places(record):
    empty = {"serial": None, "uuid": None, "model": None, "firmware_version": None, "source": "sysfs"}
    now = seen([device(number, slot=SlotName(str(number + 1), "sysfs"), **empty) for number in range(3)])
    recall(now, record, "gpu-01")
    assert [one["slot"]["label"] for one in now["devices"]] == ["SXM1", "SXM2", "SXM3"]
    assert [one["serial"] for one in now["devices"]] == [None] * 3  # what did not answer must not look answered


def test_what_is_declared_goes_before_what_is_recorded(record):
    now = seen([device(0)], [entry(1, SlotName("left", "declared"))])
    recall(now, record, "gpu-01")
    assert now["unanswered"][0]["slot"] == {"label": "left", "source": "declared", "candidates": []}
    assert now["unanswered"][0]["serial"] == "0990100000001"


def test_what_the_tool_still_tells_goes_before_what_is_recorded(record):
    now = seen([device(0)], [entry(1, serial="0990100000077")])
    recall(now, record, "gpu-01")
    assert now["unanswered"][0]["serial"] == "0990100000077"
    assert now["unanswered"][0]["last"]["serial"] == "0990100000001"


def test_a_card_that_answers_elsewhere_is_not_the_silent_one(record):
    moved = device(1, pci_address=ADDRESSES[2], slot=SlotName("SXM3", "vendor"))
    now = seen([device(0), moved], [entry(1)])
    recall(now, record, "gpu-01")
    (silent,) = now["unanswered"]
    assert silent["slot"]["label"] == "SXM2"  # the place is still the place
    assert (silent["serial"], silent["uuid"], silent["last"]) == (None, None, None)


def test_two_chips_of_one_board_are_two_cards():
    pair = [device(0, serial="B1"), device(1, serial="B1")]
    record = slots.build_record(seen(pair), "gpu-01", "2026-11-01T00:00:00Z")
    now = seen([device(0, serial="B1")], [entry(1)])
    recall(now, record, "gpu-01")
    assert (now["unanswered"][0]["uuid"], now["unanswered"][0]["serial"]) == ("GPU-0001", "B1")


UNTRUSTED = {
    "no record": lambda record: None,
    "an empty record": lambda record: {"host": "gpu-01", "slots": {}, "unplaced": []},
    "a record of other cards": lambda record: slots.build_record(
        seen([device(n, serial=f"x{n}", uuid=f"GPU-x{n}") for n in range(3)]), "gpu-01", "2026-11-01T00:00:00Z"
    ),
    "addresses that changed": lambda record: slots.build_record(
        seen([device(n, pci_address=ADDRESSES[n - 1]) for n in range(3)]), "gpu-01", "2026-11-01T00:00:00Z"
    ),
}


@pytest.mark.parametrize("name", UNTRUSTED)
def test_nothing_is_recalled_from(record, name):
    now = seen([device(0)], [entry(1), entry(2)])
    before = copy.deepcopy(now)
    recall(now, UNTRUSTED[name](record), "gpu-01")
    assert now == before


def test_a_name_that_a_card_has_is_not_given_twice(record):
    now = seen([device(0), device(2, slot=SlotName("SXM2", "declared"), pci_address="0000:5d:00.0")], [entry(1)])
    recall(now, record, "gpu-01")
    assert now["unanswered"][0]["slot"]["label"] is None


def test_the_record_of_a_cloned_disk_is_not_used(record):
    """No card answers, so that no serial tells the difference: every address fits."""
    now = seen([], [entry(number) for number in range(3)])
    before = copy.deepcopy(now)
    recall(now, record, "gpu-02")
    assert now["unanswered"] == before["unanswered"]
    assert now["errors"] == ["the slot record is that of gpu-01, not of gpu-02: it is not used"]


# ---------------------------------------------------------------------------------------- a bus that can't be read


def no_bus(*devices, **fields):
    """Return cards that answer on a host whose bus nobody could look at, so that no source names a slot."""
    now = seen([device(number, slot=SlotName(), **fields) for number in devices])
    assert now["bus_count"] is None
    return now


def places(observation):
    return [place_of(one) for one in observation["devices"]]


def test_a_card_that_tells_who_it_is_has_the_recorded_place_as_a_candidate(record):
    now = no_bus(2, 0)
    recall(now, record, "gpu-01")
    assert places(now) == ["SXM3", "SXM1"]
    assert now["devices"][0]["slot"] == {
        "label": None,
        "source": None,
        "candidates": [{"label": "SXM3", "source": "record"}],
    }
    # The record of now has them where they were, and is one.
    again = slots.build_record(now, "gpu-01", "2026-11-30T00:00:00Z", record)
    assert slots.problems(again) == []


def test_the_serial_does_where_there_is_no_uuid_and_the_address_does_not(record):
    now = no_bus(1, uuid=None)
    recall(now, record, "gpu-01")
    assert places(now) == ["SXM2"]
    now = no_bus(1, uuid=None, serial=None)
    recall(now, record, "gpu-01")
    assert places(now) == [None]
    # Another card at the address is not the one that is known there; it came with those that are.
    now = seen([device(0, slot=SlotName()), device(1, slot=SlotName(), uuid="GPU-9999", serial="0990100000099")])
    recall(now, record, "gpu-01")
    assert places(now) == ["SXM1", None]


def test_two_cards_with_one_serial_are_told_apart_by_nothing(record):
    now = seen([device(number, slot=SlotName(), uuid=None, serial="0990100000001") for number in (0, 1)])
    recall(now, record, "gpu-01")
    assert places(now) == [None, None]


def test_where_the_bus_was_read_a_card_without_a_slot_has_none(record):
    now = {**no_bus(0, 1), "bus_count": 2}
    recall(now, record, "gpu-01")
    assert places(now) == [None, None]


def test_the_record_of_another_host_names_nothing(record):
    now = no_bus(0)
    recall(now, record, "gpu-02")
    assert places(now) == [None]


def test_findings_and_lines_name_the_slot_and_the_place_is_still_not_proven(record):
    now = no_bus(0, 1, 2)
    recall(now, record, "gpu-01")
    found = judge.judge_devices("gpu-01", now, {"cluster_accelerator_vendor": "nvidia", "cluster_accelerator_count": 3})
    assert {one["subject"] for one in found if one["check"] == "device.health"} == {"SXM1", "SXM2", "SXM3"}
    lines = shown.show_devices(now).splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["SXM1", "SXM2", "SXM3"]
    assert 'slot="SXM2"' in metrics.render(now, 0, found, 3, 1.0)
    before = judge.judge_slots({"gpu-01": record}, {}, {"gpu-01": no_bus(0, 1, 2)}, {})
    after = judge.judge_slots({"gpu-01": record}, {}, {"gpu-01": now}, {})
    # What the record adds changes nothing of what is proven.
    assert [(one["subject"], one["verdict"], one["hint"]) for one in after] == [
        (one["subject"], one["verdict"], one["hint"]) for one in before
    ]


@pytest.mark.parametrize("slot", [None, "SXM1", {}, {"label": None, "candidates": None}, {"candidates": ["x"]}])
def test_a_slot_of_another_shape_is_no_place(slot):
    assert place_of({"slot": slot}) is None
