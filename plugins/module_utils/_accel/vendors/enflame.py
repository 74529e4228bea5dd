# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Enflame: efsmi -q, whose keys grew from release to release, and the table for what old releases leave out.

A healthy host costs one command, ``efsmi -q``. Where its answer has no serial numbers (before 1.4), the table
``efsmi`` is asked too, for serial, firmware, driver and power; both are joined by address. Where ``-q`` can't be used
at all, the table stands alone.

Levels of the text are not believed: the lines below "Link Info" are indented or not, by release. Names are unique
within a section, so a value is known by its section (a line without a value) and its name. "Slot" of ``efsmi list`` is
the type of the link and no place.

Sources: recorded output of a release before 1.4 and of the table of 1.2; the keys of 1.4 (Driver Info, Device Info,
Power Info) as third-party programs read them.
"""

from __future__ import annotations

import re

from .. import pci, text
from ..model import Device, Ecc, Health, Link, Readings
from ..tools import (
    Reply,
    add_driver,
    address_of,
    ask_once,
    cells_of,
    generation_gts,
    live_health,
    nodes_below,
    percent,
    sick_words,
    take_all,
)
from .base import FILE, Answer, Unreadable, Vendor, VersionSource

_DEVICE = re.compile(r"^DEV ID (\d{1,4})\s*$")
_TITLE = re.compile(r"\bEFSMI\s+V(\S+)\s+Driver Ver:\s*(\S+)")
# "00:01:00.0": the domain with two digits.
_SHORT = re.compile(r"^([0-9a-f]{2}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])$", re.IGNORECASE)
_UPPER = re.compile(r"^(?P<index>\d{1,4})\s+(?P<name>\S.*)$")
_BUS = re.compile(r"^(?P<bus>\S+)\s+(?P<ecc>\S+)$")
_LOWER = re.compile(r"^(?P<temperature>\S+(?: C)?)\s+(?P<level>\S+)\s+(?P<power>\S+)\s+(?P<limit>\S+)$")
_SIZES = {("Device Mem Info", "Total Size"), ("Device Mem Info", "Mem Size")}
_HEALTHY = ("true", "ok", "good", "healthy", "normal")
_COLUMNS = ("DEV NAME", "FW VER", "BUS-ID ECC", "TEMP Dpm Pwr(Usage/Cap)", "Mem GCU Virt", "DUsed SN")


def read_query(output: str) -> Reply:
    """Return the devices of ``efsmi -q``; Unreadable when none is there.

    A device without an address, or whose entry ends before its memory, is named in the notes and left out: what
    stands before that (its serial) may have been cut. So may a last line that ends in neither a break nor a unit.
    """
    reading = Reply()
    entries: list[tuple[int, dict[tuple[str, str], str]]] = []
    section = ""
    whole = output if output.rstrip(" ").endswith(("\n", "%")) else output[: output.rfind("\n") + 1]
    for line in whole.splitlines():
        found = _DEVICE.match(line)
        if found:
            entries.append((int(found[1]), {}))
            section = ""
            continue
        name, value = text.name_and_value(line)
        if not entries or not line[:1].isspace() or not name[:1].isalpha():
            continue
        if value is not None:
            entries[-1][1].setdefault((section, name), value)
        # A heading below a heading ("Link Info") opens no section of its own: its lines may stand at any level.
        elif name != "Link Info":
            section = name
    if not entries:
        raise Unreadable("no device in the answer of efsmi -q")
    for index, fields in entries:
        device = _device(index, fields)
        if device.pci_address is None or not {("Device Mem Info", name) for name in ("Total Size", "Mem Size")} & {
            *fields
        }:
            reading.notes.append(f"DEV ID {index} has no whole entry")
            continue
        reading.devices.append(device)
    return reading


def _device(index: int, fields: dict[tuple[str, str], str]) -> Device:
    def told(section: str, *names: str) -> str | None:
        return next((fields[section, name] for name in names if (section, name) in fields), None)

    parts = [told("PCIe Info", name) for name in ("Domain", "Bus", "Dev", "Func")]
    ids = [told("PCIe Info", name) or "" for name in ("Vendor ID", "Device ID")]
    use = percent(told("Device Usage Info", "GCU Usage"))
    readings = Readings(
        temperature_c=text.celsius(told("Temperature Info", "GCU Temp")),
        power_watts=text.watts(told("Power Info", "Cur Power")),
        power_limit_watts=text.watts(told("Power Info", "Power Capa")),
        utilization_percent=use,
        memory_used_bytes=text.size_bytes(told("Device Mem Info", "Used Size", "Mem Usage")),
    )
    health = live_health(readings, Ecc(), sick_words(list(fields.values())))
    # By its name alone: in a section that is called otherwise it is no better news.
    words = [value for (_section, name), value in fields.items() if name == "Health"]
    # Releases before 1.4, which tell none, have no such section.
    if not words and health.state == "ok" and any(section == "Device Info" for section, _name in fields):
        health = Health("unknown", ["the tool tells no health"])
    for word in words:
        if text.clean(word) is None and health.state == "ok":
            health = Health("unknown", [f"the tool says of its health: {word or 'nothing'}"])
        elif text.clean(word) is not None and word.lower() not in _HEALTHY:
            health = Health("critical", [f"the tool says of its health: {word}"])
    return Device(
        index=index,
        vendor="enflame",
        model=text.clean(told("Device Info", "Dev Name")),
        serial=text.identifier(told("Device Info", "Dev SN")),
        uuid=text.identifier(told("Device Info", "Dev UUID")),
        pci_address=address_of("{}:{}:{}.{}".format(*parts)) if all(parts) else None,
        pci_id=":".join(ids).lower() if all(re.fullmatch("[0-9A-Fa-f]{4}", one) for one in ids) else None,
        driver_version=text.clean(told("Driver Info", "Ver")),
        memory_bytes=text.size_bytes(told("Device Mem Info", "Total Size", "Mem Size")),
        link=Link(
            speed_gts=generation_gts(told("PCIe Info", "Cur Link Speed")),
            width=pci.width((told("PCIe Info", "Cur Link Width") or "").lstrip("xX")),
            max_speed_gts=generation_gts(told("PCIe Info", "Max Link Speed")),
            max_width=pci.width((told("PCIe Info", "Max Link Width") or "").lstrip("xX")),
            under_load=None if use is None else use > 0,
        ),
        health=health,
        readings=readings,
    )


def read_table(output: str) -> Reply:
    """Return the devices of the table, two rows each; Unreadable when it is cut off or has other columns."""
    lines = [line.strip() for line in output.splitlines() if line.strip().startswith(("|", "+"))]
    title = next((found for found in (_TITLE.search(line) for line in lines) if found), None)
    if title is None:
        raise Unreadable("no title of EFSMI in the answer")
    if not re.fullmatch(r"\+-+\+", lines[-1]) or len(lines[-1]) < len(lines[0]):
        raise Unreadable("the table has no end")
    rows = [cells for cells in (cells_of(line) for line in lines) if len(cells) == 3]
    head = tuple(" ".join(cell.split()) for cells in rows[:2] for cell in cells)
    if head != _COLUMNS:
        raise Unreadable(f"other columns than are known: {' | '.join(head)}")
    reading = Reply(tool_version=text.clean(title[1]), driver_version=text.clean(title[2]))
    if len(rows) % 2:
        raise Unreadable("a device has no second row")
    for upper, lower in zip(rows[2::2], rows[3::2]):
        reading.devices.append(_row(upper, lower))
    return reading


def _row(upper: list[str], lower: list[str]) -> Device:
    head, bus, state = _UPPER.match(upper[0]), _BUS.match(upper[2]), _LOWER.match(lower[0])
    use, _blank, serial = lower[2].partition(" ")
    address = _table_address(bus["bus"]) if bus else None
    if head is None or state is None or address is None:
        raise Unreadable(f"no device: {text.excerpt(' | '.join(upper), ' | '.join(lower), limit=300)}")
    readings = Readings(
        temperature_c=text.celsius(state["temperature"]),
        power_watts=text.watts(state["power"]),
        power_limit_watts=text.watts(state["limit"]),
        utilization_percent=percent(use),
    )
    return Device(
        index=int(head["index"]),
        vendor="enflame",
        model=text.clean(head["name"]),
        serial=text.identifier(serial),
        pci_address=address,
        firmware_version=text.clean(upper[1]),
        memory_bytes=text.size_bytes(lower[1].split()[0] if lower[1].split() else None),
        link=Link(under_load=readings.utilization_percent > 0 if readings.utilization_percent is not None else None),
        health=live_health(readings, Ecc(), sick_words([*upper, use, serial, *state.groups()])),
        readings=readings,
    )


def _table_address(word: str) -> str | None:
    short = _SHORT.match(word)
    return address_of(f"00{short[1]}:{short[2]}" if short else word)


def join(found: list[Device], rows: list[Device]) -> None:
    """Add to the devices of ``-q`` what only the table tells; the address says which row is whose."""
    by_address = {row.pci_address: row for row in rows}
    for device in found:
        row = by_address.get(device.pci_address)
        if row is None:
            continue
        device.model = device.model or row.model
        device.serial = device.serial or row.serial
        device.firmware_version = device.firmware_version or row.firmware_version
        now, then = device.readings, row.readings
        now.power_watts = then.power_watts if now.power_watts is None else now.power_watts
        now.power_limit_watts = then.power_limit_watts if now.power_limit_watts is None else now.power_limit_watts


_VERSIONS = (VersionSource("driver_kernel", "enflame", FILE, "/sys/module/enflame/version", r"^(\d\S*)"),)


class Enflame(Vendor):
    """Enflame GCUs."""

    name = "enflame"
    pci_vendors = ("1e36",)
    kernel_modules = ("enflame",)
    versions = _VERSIONS

    def query(self, runner, functions: list[pci.Function], timeout_seconds: float) -> Answer:
        """Ask ``efsmi -q``, and the table where serials are missing in it or it can't be used; see the module."""
        answer = Answer()
        reading = ask_once(answer, runner, self.name, ["efsmi", "-q"], read_query, timeout_seconds)
        first = answer.tools[0]
        wanted = reading is None or any(device.serial is None for device in reading.devices)
        # A tool that hangs, is not there or says that it can't do so again.
        if wanted and first.rc is not None and first.reason is None:
            table = ask_once(answer, runner, self.name, ["efsmi"], read_table, timeout_seconds)
            if reading and table:
                join(reading.devices, table.devices)
                first.version, reading.driver_version = table.tool_version, table.driver_version
            reading = reading or table
        take_all(answer, reading, functions)
        add_driver(runner, self.name, self.kernel_modules, answer, functions)
        return answer

    def device_nodes(self, runner, device: Device) -> list[str]:
        """Return /dev/gcuN as the kernel ties it to the card, else by the number that efsmi gives the card."""
        nodes = nodes_below(runner, device.pci_address, r"gcu\d+")
        return nodes or (runner.glob(f"/dev/gcu{device.index}") if device.index is not None else [])
