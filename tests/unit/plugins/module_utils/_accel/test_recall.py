# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the record of a host still knows of cards that do not answer."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import slots
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import (
    Device,
    Link,
    Observation,
    SlotName,
    Tool,
    as_dict,
)
from ansible_collections.accel.cluster.plugins.module_utils._accel.recall import recall

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
