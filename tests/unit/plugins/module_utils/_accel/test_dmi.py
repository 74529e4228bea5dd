# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slot tables of the firmware, raw and as dmidecode prints them, and when they lie."""

from __future__ import annotations

import struct

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import dmi
from ansible_collections.accel.cluster.plugins.module_utils._accel.pci import Function
from trees import END, slot_structure, structure


def test_a_raw_table_is_read():
    table = (
        structure(0, b"\x01\x02" + b"\0" * 12, "A firmware vendor", "7.1")
        + slot_structure("SLOT 5", 4, 5, 0, 0x41, 0, 4)
        + structure(2, b"\0" * 8)
        + slot_structure("SLOT 6", 3, 6, 0x1F, 0x5D, 0x1E, 1, extra=b"\x0d\x00")
        + slot_structure("M.2", 4, 0x107, 0xFFFF, 0xFF, 0x1F, 7)
        + END
        + slot_structure("after the end", 4, 9, 0, 0x99, 0)
    )
    assert dmi.parse_slots(table) == [
        dmi.DmiSlot("SLOT 5", 5, "in_use", "0000:41:00.4", "0xb6"),
        dmi.DmiSlot("SLOT 6", 6, "available", "001f:5d:1e.1", "0xb6"),
        dmi.DmiSlot("M.2", 263, "in_use", None, "0xb6"),
    ]


def test_an_old_short_structure_has_no_address():
    short = structure(9, struct.pack("<BBBBBHB", 1, 0x06, 5, 4, 3, 2, 4), "PCI1")  # SMBIOS 2.0, 12 bytes
    assert dmi.parse_slots(short + END) == [dmi.DmiSlot("PCI1", 2, "in_use", None, "0x06")]


@pytest.mark.parametrize("name_index", [0, 2, 255])
def test_a_designation_that_is_not_there(name_index):
    broken = bytearray(slot_structure("SLOT 5", 4, 5, 0, 0x41, 0))
    broken[4] = name_index
    (slot,) = dmi.parse_slots(bytes(broken) + END)
    assert slot.designation == ""
    assert slot.address == "0000:41:00.0"


def test_a_cut_table_gives_what_is_whole():
    first, second = slot_structure("SLOT 5", 4, 5, 0, 0x41, 0), slot_structure("SLOT 6", 4, 6, 0, 0x5D, 0)
    whole = first + second + END
    for length in range(len(whole)):
        names = [slot.designation for slot in dmi.parse_slots(whole[:length])]
        if length < len(first):
            assert names == []
        elif length < len(first) + len(second):
            assert names == ["SLOT 5"]
        else:
            assert names == ["SLOT 5", "SLOT 6"]


@pytest.mark.parametrize("junk", [b"", b"\0", b"\xff" * 4096, bytes(range(256)) * 4, b"\x09\x00\x00\x00" * 64])
def test_junk_is_no_table(junk):
    assert dmi.parse_slots(junk) == []


def cards(*addresses, above=()):
    return [Function(address=address, ancestors=list(above)) for address in addresses]


def case_06(cases, which):
    """Return the parsed dmidecode text and the cards of one set of case 06."""
    folder = cases / "06-dmidecode-slot-bogus"
    slots = dmi.parse_dmidecode((folder / f"{which}_dmidecode_t9.txt").read_text())
    return slots, cards(*(folder / f"{which}_cards.txt").read_text().split())


def test_case_06a_one_address_for_all(cases):
    slots, present = case_06(cases, "a")
    assert [slot.designation for slot in slots] == ["PCIE1", "PCIE2"]
    assert dmi.believable(slots, present) == ([], "slot table unusable: same address for every slot")


def test_case_06b_only_the_function_differs(cases):
    slots, present = case_06(cases, "b")
    kept, warning = dmi.believable(slots, present)
    assert [(slot.designation, slot.address) for slot in kept] == [
        ("SLOT 5", "0000:41:00.4"),
        ("SLOT 6", "0000:5d:00.1"),
    ]
    assert warning is None


SLOTS = [
    dmi.DmiSlot("SLOT 1", usage="in_use", address="0000:41:00.0"),
    dmi.DmiSlot("SLOT 2", usage="available", address="0000:5d:00.0"),
]


def test_available_with_a_card_in_it_condemns_the_table():
    kept, warning = dmi.believable(SLOTS, cards("0000:41:00.0", "0000:5d:00.0"))
    assert kept == []
    assert "'SLOT 2'" in warning and "0000:5d:00.0" in warning


def test_available_with_a_card_below_it_condemns_the_table():
    kept, warning = dmi.believable(SLOTS, cards("0000:60:00.0", above=["0000:5d:00.0"]))
    assert kept == []
    assert "0000:60:00.0" in warning


def test_available_and_empty_is_believed():
    assert dmi.believable(SLOTS, cards("0000:41:00.0")) == (SLOTS, None)


def test_addresses_for_nothing_are_left_out():
    nothing = [
        dmi.DmiSlot(f"empty {n}", usage="available", address=a)
        for n, a in enumerate(
            ["0000:ff:1f.7", "00ff:ff:1f.7", "0000:ff:00.0", "0000:00:00.0", "0000:00:1f.7", None, "0000:ff:1f.7"]
        )
    ]
    kept, warning = dmi.believable([*nothing, SLOTS[0]], cards("0000:41:00.0"))
    assert kept == [SLOTS[0]]
    assert warning is None


def test_a_single_slot_is_no_repetition():
    assert dmi.believable(SLOTS[:1], cards("0000:41:00.0")) == (SLOTS[:1], None)


# What real firmware writes; the expected values are read from the files by eye.
RECORDED = [
    ("dmidecode-t9_asus_pcie5_excerpt.txt", 3, "PCIEX16_1", 0, "0000:00:01.1", "PCI Express 5 x16"),
    ("dmidecode-t9_cisco_excerpt.txt", 5, "SlotID:MRAID", 12, "0000:18:00.0", "x8 PCI Express 3 x8"),
    ("dmidecode_dell_PowerEdge-C4140.txt", 7, "PCIe Slot 4", 4, "0000:3b:00.0", "x16 PCI Express 3"),
    ("dmidecode_dell_PowerEdge-R750.txt", 14, "PCIe Slot 6", None, "0000:98:00.0", "x16 <OUT OF SPEC>"),
    ("dmidecode-t9_function-not-zero.txt", 3, "CPU1 Slot2 PCI-E 3.0 X16", 2, "0000:3b:00.4", "x16 PCI Express 3 x16"),
]


@pytest.mark.parametrize(("name", "count", "designation", "ident", "address", "kind"), RECORDED)
def test_recordings(recordings, name, count, designation, ident, address, kind):
    slots = dmi.parse_dmidecode((recordings / "kernel" / name).read_text(errors="replace"))
    assert len(slots) == count
    assert dmi.DmiSlot(designation, ident, "in_use", address, kind) in slots


def test_a_recorded_table_with_one_address(recordings):
    name = "kernel/dmidecode-grep_8gpu_all-slots-ff1f7.txt"
    slots = dmi.parse_dmidecode((recordings / name).read_text(errors="replace"))
    assert len(slots) == 15
    assert dmi.believable(slots, cards("0000:41:00.0")) == ([], dmi.SAME_ADDRESS)


def test_a_recorded_table_that_calls_full_slots_available(recordings):
    slots = dmi.parse_dmidecode((recordings / "kernel/dmidecode_huawei_2288H-V5.txt").read_text(errors="replace"))
    kept, warning = dmi.believable(slots, cards("0000:3a:00.0"))
    assert kept == []
    assert "'SLOT1'" in warning
