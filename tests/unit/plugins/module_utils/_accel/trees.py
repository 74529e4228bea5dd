# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCI trees and SMBIOS tables for the tests, in the form in which the kernel shows them."""

from __future__ import annotations

import struct

# Current and maximum speed, current and maximum width.
FULL = ("32.0 GT/s PCIe", "32.0 GT/s PCIe", "16", "16")


class Tree:
    """Builds a PCI tree as sysfs shows it: real directories below devices/, links in bus/pci/devices."""

    def __init__(self, home):
        self.home = home
        self.root = home / "bus/pci"
        (self.root / "devices").mkdir(parents=True)
        (self.root / "slots").mkdir()

    def add(self, path, vendor="0x10de", device="0x2330", pci_class="0x030200", link=None, **files):
        """Add the last of ``path`` ("0000:97:01.0/0000:9a:00.0"); link = (speed, max speed, width, max width)."""
        place = self.home / "devices/pci0000:00" / path
        place.mkdir(parents=True, exist_ok=True)
        files.update(vendor=vendor, device=device)
        files["class"] = pci_class
        if link:
            files.update(zip(("current_link_speed", "max_link_speed", "current_link_width", "max_link_width"), link))
        for name, content in files.items():
            (place / name).write_text(f"{content}\n")
        entry = self.root / "devices" / place.name
        if not entry.exists():
            entry.symlink_to(place)
        return place

    def slot(self, name, address):
        """Add a slot of the kernel; ``address`` is that of a device, without a function."""
        (self.root / "slots" / name).mkdir()
        (self.root / "slots" / name / "address").write_text(f"{address}\n")


def structure(kind, formatted, *strings):
    """Return one SMBIOS structure: header, formatted area, string set."""
    tail = b"".join(s.encode() + b"\0" for s in strings) or b"\0"
    return struct.pack("<BBH", kind, 4 + len(formatted), 0x20) + formatted + tail + b"\0"


def slot_structure(name, usage, ident, segment, bus, device, function=0, extra=b""):
    """Return a type 9 structure of SMBIOS 2.6 (17 bytes), longer with ``extra``; usage 3 available, 4 in use."""
    body = struct.pack("<BBBBBHBBHBB", 1, 0xB6, 0x0D, usage, 4, ident, 0x0C, 0x01, segment, bus, device << 3 | function)
    return structure(9, body + extra, name)


END = structure(127, b"")
