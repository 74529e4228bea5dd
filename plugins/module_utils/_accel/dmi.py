# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""The firmware's slot table (SMBIOS type 9), and whether to believe it.

Layout: DMTF DSP0134 (SMBIOS reference specification) 7.10 "System Slots". The table is read raw,
so that a host needs no dmidecode; the parser of dmidecode's text is for collected output.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from . import pci
from .model import SLOT_TABLE_ERROR

SLOT_TYPE = 9
END_OF_TABLE = 127
_USAGES = {1: "other", 2: "unknown", 3: "available", 4: "in_use", 5: "unavailable"}
# Buses and devices that firmware writes for "nothing here": no card can be there.
_NOWHERE = ("ff:00", "ff:1f", "00:00", "00:1f")
SAME_ADDRESS = f"{SLOT_TABLE_ERROR}same address for every slot"


@dataclass
class DmiSlot:
    """One slot as the firmware describes it. ``usage``: in_use, available, unavailable, other, unknown.

    ``address`` is canonical; it may name any function of the card or a bridge above it, and is None
    where the firmware gives none. ``type`` is the code of the specification ("0xb6") or dmidecode's words.
    """

    designation: str
    id: int | None = None
    usage: str = "unknown"
    address: str | None = None
    type: str | None = None


def parse_slots(table: bytes) -> list[DmiSlot]:
    """Return the slots of a raw SMBIOS structure table; what is cut off or malformed ends the list."""
    slots = []
    at = 0
    while at + 4 <= len(table):
        kind, length = table[at], table[at + 1]
        if length < 4 or at + length > len(table):
            break
        formatted = table[at : at + length]
        # The strings follow the formatted area, each ended by a zero, the set by one more.
        end = table.find(b"\0\0", at + length)
        if end < 0:
            break
        if kind == SLOT_TYPE and length >= 9:
            slots.append(_slot(formatted, table[at + length : end].split(b"\0")))
        if kind == END_OF_TABLE:
            break
        at = end + 2
    return slots


def _slot(formatted: bytes, strings: list[bytes]) -> DmiSlot:
    number = formatted[4]
    named = strings[number - 1] if 0 < number <= len(strings) else b""
    slot = DmiSlot(
        designation=named.decode("ascii", "replace").strip(),
        usage=_USAGES.get(formatted[7], "unknown"),
        type=f"0x{formatted[5]:02x}",
    )
    if len(formatted) >= 0x0B:
        slot.id = int.from_bytes(formatted[9:11], "little")
    if len(formatted) >= 0x11:  # segment, bus and device came with SMBIOS 2.6
        segment, bus, devfn = int.from_bytes(formatted[0x0D:0x0F], "little"), formatted[0x0F], formatted[0x10]
        if (segment, bus, devfn) != (0xFFFF, 0xFF, 0xFF):  # all ones: not a PCI slot
            slot.address = pci.normalise(f"{segment:04x}:{bus:02x}:{devfn >> 3:02x}.{devfn & 7}")
    return slot


def parse_dmidecode(text: str) -> list[DmiSlot]:
    """Return the slots of ``dmidecode`` or ``dmidecode -t 9`` output, also of one that grep has thinned."""
    slots: list[DmiSlot] = []
    current: DmiSlot | None = None
    for line in text.splitlines():
        key, _colon, value = (part.strip() for part in line.partition(":"))
        if line.startswith("Handle "):
            current = None
        elif key == "Designation":
            current = DmiSlot(designation=value)
            slots.append(current)
        elif current is None:
            continue
        elif key == "Type":
            current.type = value
        elif key == "ID":
            current.id = int(value) if value.isdecimal() and len(value) < 10 else None
        elif key == "Current Usage":
            word = value.lower().replace(" ", "_")
            current.usage = word if word in _USAGES.values() else "unknown"
        elif key == "Bus Address":
            try:
                current.address = pci.normalise(value)
            except ValueError:
                current.address = None
    return slots


def believable(slots: Iterable[DmiSlot], functions: Iterable[pci.Function]) -> tuple[list[DmiSlot], str | None]:
    """Return the entries that can name a place, and a warning when the whole table is not to be believed.

    ``functions`` are the cards that are really there. A table lies when it gives one address for all of
    several slots, or calls a slot available that has a card in or below it: then nothing of it is kept.
    Single entries without an address or with one that stands for "nothing here" are left out.
    """
    addressed = [slot for slot in slots if slot.address]
    if len(addressed) > 1 and len({slot.address for slot in addressed}) == 1:
        return [], SAME_ADDRESS
    kept = [slot for slot in addressed if (slot.address or "")[-7:-2] not in _NOWHERE]
    occupied = {}
    for function in functions:
        for address in (function.address, *function.ancestors):
            occupied[pci.normalise_device(address)] = function.address
    for slot in kept:
        card = occupied.get(pci.normalise_device(slot.address or ""))
        if slot.usage == "available" and card:
            return [], f"{SLOT_TABLE_ERROR}slot {slot.designation!r} is called available, but {card} is there"
    return kept, None
