# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The SMBIOS tables of a host, as firmware leaves them for ``dmidecode``.

Structures and numbers: SMBIOS reference specification 3.3 (DSP0134).
"""

from __future__ import annotations

import struct
import uuid

from . import pci
from .state import Host

_PCIE_GEN5_X16, _X16, _IN_USE, _AVAILABLE, _LONG = 0xC3, 0x0D, 0x04, 0x03, 0x04


def _structure(kind: int, handle: int, body: bytes, *strings: str) -> bytes:
    """Return one structure: header, formatted area, strings, and the two zero bytes at the end."""
    texts = b"".join(text.encode("ascii", "replace") + b"\0" for text in strings)
    return struct.pack("<BBH", kind, 4 + len(body), handle) + body + (texts or b"\0") + b"\0"


def slot_rows(host: Host) -> list[tuple[str, int, str | None]]:
    """Return the slot table: designation, id, address of the function in it (None: empty)."""
    found = pci.functions(host)
    cards = sorted(host.cards, key=lambda card: card.slot_number)
    rows: list[tuple[str, int, str | None]] = [(card.slot, card.sysfs_slot, card.address) for card in cards]
    nics = [one.address for one in found if one.pci_id == "15b3:1021"]
    rows += [(f"PCIe Slot {41 + number}", 41 + number, address) for number, address in enumerate(nics)]
    return [*rows, (f"PCIe Slot {41 + len(nics)}", 41 + len(nics), None)]


def table(host: Host) -> bytes:
    """Return the structures: BIOS, system, base board, chassis, slots, end of table."""
    identity = uuid.uuid5(uuid.NAMESPACE_DNS, f"{host.serial}.rehearsal").bytes_le
    parts = [
        _structure(
            0,
            0x0000,
            struct.pack("<BBHBBQBBBBBBH", 1, 2, 0xF000, 3, 0xFF, 0x08, 0x03, 0x0D, 1, 4, 0xFF, 0xFF, 32),
            host.manufacturer,
            "1.4.2",
            "03/21/2025",
        ),
        _structure(
            1,
            0x0001,
            struct.pack("<BBBB", 1, 2, 3, 4) + identity + struct.pack("<BBB", 6, 0, 0),
            host.manufacturer,
            host.product,
            "1.0",
            host.serial,
        ),
        _structure(
            2,
            0x0002,
            struct.pack("<BBBBBBBHBB", 1, 2, 3, 4, 0, 0x09, 0, 0x0003, 0x0A, 0),
            host.manufacturer,
            f"{host.product} base board",
            "A1",
            f"{host.serial}B",
        ),
        _structure(
            3,
            0x0003,
            struct.pack("<BBBBBBBBBIBBBB", 1, 0x17, 0, 2, 0, 3, 3, 3, 2, 0, 8, 4, 0, 0),
            host.manufacturer,
            host.serial,
        ),
    ]
    for number, (name, slot_id, address) in enumerate(slot_rows(host)):
        # An empty slot has all ones where a function would be named.
        segment, bus, device = 0, 0xFF, 0xFF
        if address:
            domain, bus_text, rest = address.split(":")
            segment, bus = int(domain, 16), int(bus_text, 16)
            device = int(rest.split(".")[0], 16) << 3 | int(rest.split(".")[1])
        body = struct.pack(
            "<BBBBBHBBHBBBB", 1, _PCIE_GEN5_X16, _X16, _IN_USE if address else _AVAILABLE, _LONG, slot_id, 0x04, 0x01,
            segment & 0xFFFF, bus, device, 16, 0,
        )  # fmt: skip
        parts.append(_structure(9, 0x0900 + number, body, name))
    parts.append(_structure(127, 0x7F00, b""))
    return b"".join(parts)


def entry_point(length: int) -> bytes:
    """Return the 64-bit entry point for a table of ``length`` bytes."""
    # The address is that of a file that sysfs gives out separately; readers of the file ignore it.
    head = struct.pack("<5sBBBBBBBIQ", b"_SM3_", 0, 24, 3, 3, 0, 1, 0, length, 0x1000)
    return head[:5] + bytes([-sum(head) & 0xFF]) + head[6:]


def tree(host: Host) -> dict[str, bytes | str | None]:
    """Return what lies under ``/sys/firmware``."""
    structures = table(host)
    return {"dmi/tables/DMI": structures, "dmi/tables/smbios_entry_point": entry_point(len(structures))}
