# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Cambricon: the table of cnmon, as 4.20 and 5.10 draw it.

A healthy host costs one command. The table has neither serial nor UUID, so the place (PCI address) identifies a card.
``cnmon info -j`` would tell a UUID, but it writes a file of a fixed name into the directory it runs in and no real one
was ever seen to hold a parser against, so it is left out; so is /proc/driver/cambricon, whose form is not known.

The table of 4.20 has no Bus-Id. A row can then not be told to be this or that card; but where there are as many rows as
cards on the bus, what all rows say alike (model, driver, firmware, size) holds for each card, and no more than that is
taken over. Readings of single cards are left out then.

Sources: recorded output of both releases.
"""

from __future__ import annotations

import re
from dataclasses import replace

from .. import pci, text
from ..model import Device, Ecc, Health, Link, Readings
from ..tools import (
    Reply,
    add_driver,
    address_of,
    ask_once,
    cells_of,
    live_health,
    nodes_below,
    percent,
    sick_words,
    take_all,
)
from .base import FILE, Answer, ContainerAccess, Unreadable, Vendor, VersionSource

_TITLE = re.compile(r"\bCNMON\s+v(\S+)(?:.*\bDriver\s+v(\S+))?")
# The table is 81 characters wide. A longer line is none of it, and the expressions below would take long for it.
_WIDEST = 400
_BORDER = re.compile(r"^\+[-+]*\+$")
# The columns of both layouts; other ones are not known, so nothing below them can be believed.
_WITH_BUS = ["Card VF Name Firmware", "Bus-Id", "Util Ecc-Error"]
_WITHOUT_BUS = ["Card VF Name Firmware", "Inited Driver", "Util Ecc-Error"]
_FIRST = re.compile(r"^(?P<card>\d{1,4})\s+(?P<vf>\S+)\s+(?P<name>\S.*?)\s+v?(?P<firmware>\S+)$")
_SECOND = re.compile(r"^(?P<fan>\S+)\s+(?P<temperature>\S+)\s+(?P<power>.+?)\s*/\s*(?P<limit>.+)$")
_USAGE = re.compile(r"^(?P<used>.+?)\s*/\s*(?P<total>.+)$")
_PROCESS = re.compile(r"^(?P<card>\d{1,4})\s+\S+\s+(?P<pid>\d{1,10})\s+(?P<name>.+?)(?:\s+(?P<memory>\d+ ?[KMGT]iB))?$")
_REASONS = ((r"cndev.*(?:init|load).*fail|can(?:'|no)t (?:find|open).*cambricon", "driver_not_loaded"),)


def read_table(output: str) -> Reply:
    """Return the cards of the table, two rows each; Unreadable when it is cut off or has other columns."""
    lines = [line.strip() for line in output.splitlines() if line.strip().startswith(("|", "+"))]
    title = next((found for found in (_TITLE.search(line[:_WIDEST]) for line in lines) if found), None)
    if title is None:
        raise Unreadable("no title of CNMON in the answer")
    borders = [line for line in lines if _BORDER.match(line)]
    # The processes come last; without them a card may be missing.
    ended = bool(borders) and lines[-1] == borders[-1] and len(borders[-1]) == len(borders[0])
    if not ended or not any("Processes:" in line for line in lines):
        raise Unreadable("the table has no end")
    reading = Reply(tool_version=text.clean(title[1]), driver_version=text.clean(title[2]))
    columns: list[str] = []
    first: list[str] | None = None  # upper row of a card whose lower row has not come yet
    part = ""
    for line in lines:
        if _BORDER.match(line) or line.startswith("|="):
            continue
        if len(line) > _WIDEST:
            if part == "processes":
                continue
            raise Unreadable(f"a line of {len(line)} characters in the table")
        cells = cells_of(line)
        if cells[0].startswith("Processes"):
            part = "processes"
        elif cells[0].startswith("Card ") and part != "processes":
            columns = [" ".join(cell.split()) for cell in cells]
            if columns not in (_WITH_BUS, _WITHOUT_BUS):
                raise Unreadable(f"other columns than are known: {' | '.join(columns)}")
            part = "head"
        elif part == "head":
            part = "cards"  # the second line of the head
        elif part == "cards" and first is None:
            first = cells
        elif part == "cards" and first is not None:
            reading.devices.append(_card(first, cells, columns))
            first = None
        elif part == "processes":
            _add_process(reading.devices, cells)
    if first is not None or part in ("", "head"):
        raise Unreadable("a card has no second row")
    return reading


def _card(upper: list[str], lower: list[str], columns: list[str]) -> Device:
    """Return the card of two rows; Unreadable when they are something else."""
    head = _FIRST.match(upper[0])
    usage = _USAGE.match(lower[1]) if len(lower) == 3 else None
    state = _SECOND.match(lower[0])
    if len(upper) != 3 or head is None or usage is None or state is None:
        raise Unreadable(f"no card: {text.excerpt(' | '.join(upper), ' | '.join(lower), limit=300)}")
    address, driver_version = None, None
    if columns == _WITH_BUS:
        address = address_of(upper[1])
        if address is None:
            raise Unreadable(f"no address: {text.excerpt(upper[1], limit=100)}")
    else:
        driver_version = text.clean(upper[1].split()[-1].lstrip("v")) if upper[1].split() else None
    use, _blank, errors = upper[2].partition(" ")
    readings = Readings(
        temperature_c=text.celsius(state["temperature"]),
        power_watts=text.watts(state["power"]),
        power_limit_watts=text.watts(state["limit"]),
        utilization_percent=percent(use),
        memory_used_bytes=text.size_bytes(usage["used"]),
    )
    ecc = Ecc(uncorrected_volatile=text.whole_number(errors))
    sick = sick_words([use, errors.strip(), *state.groups(), *usage.groups()])
    if not errors.strip() or not text.counted(errors):
        sick.append(f"Ecc-Error {errors.strip()}".strip())
    health = live_health(readings, ecc, sick)
    # On ("Inited") is the one word of 4.20 for a card that works.
    if columns == _WITHOUT_BUS and not upper[1].startswith("On "):
        health = Health("critical", [f"not initialised: {text.excerpt(upper[1], limit=60)}"])
    return Device(
        index=int(head["card"]),
        vendor="cambricon",
        model=text.clean(head["name"]),
        pci_address=address,
        driver_version=driver_version,
        firmware_version=text.clean(head["firmware"]),
        memory_bytes=text.size_bytes(usage["total"]),
        link=Link(under_load=readings.utilization_percent > 0 if readings.utilization_percent is not None else None),
        health=health,
        ecc=ecc,
        readings=readings,
    )


def _add_process(found: list[Device], cells: list[str]) -> None:
    process = _PROCESS.match(" | ".join(cells))
    if not process:
        return
    for device in found:
        if device.index == int(process["card"]):
            memory = text.size_bytes(process["memory"])
            device.processes.append({"pid": int(process["pid"]), "name": process["name"], "memory_bytes": memory})


def placed(found: list[Device], functions: list[pci.Function]) -> list[Device]:
    """Return cards without an address as the cards of the bus, with what all of them say alike; see the module."""
    if not found or any(device.pci_address for device in found) or len(found) != len(functions):
        return found
    if len(found) == 1:
        return [replace(found[0], pci_address=functions[0].address)]

    def common(name: str):
        values = {getattr(device, name) for device in found}
        return values.pop() if len(values) == 1 else None

    states = {device.health.state for device in found}
    health = Health(states.pop()) if len(states) == 1 and "ok" in states else None
    reasons = [f"card {device.index}: {reason}" for device in found for reason in device.health.reasons]
    return [
        Device(
            vendor="cambricon",
            model=common("model"),
            pci_address=function.address,
            driver_version=common("driver_version"),
            firmware_version=common("firmware_version"),
            memory_bytes=common("memory_bytes"),
            health=health or Health("unknown", ["this release of cnmon names no addresses", *reasons]),
        )
        for function in functions
    ]


_VERSIONS = (
    VersionSource("driver_kernel", "cambricon", FILE, "/sys/module/cambricon_drv/version", r"^v?(\d\S*)"),
    VersionSource("runtime", "neuware", FILE, "/usr/local/neuware/version.txt", r"(?i)version\s+v?(\d\S*)"),
)


# As the vendor starts a container; the kind has the name of its resource in Kubernetes.
_CONTAINER = ContainerAccess(kind="cambricon.com/mlu", control_nodes=("/dev/cambricon_ctl",), paths=("/usr/bin/cnmon",))


class Cambricon(Vendor):
    """Cambricon MLUs."""

    name = "cambricon"
    pci_vendors = ("cabc",)
    pci_classes = ("1200",)
    kernel_modules = ("cambricon_drv",)
    versions = _VERSIONS
    container = _CONTAINER

    def query(self, runner, functions: list[pci.Function], timeout_seconds: float) -> Answer:
        """Ask cnmon for its table."""
        answer = Answer()
        reading = ask_once(answer, runner, self.name, ["cnmon"], read_table, timeout_seconds, _REASONS)
        if reading:
            reading.devices = placed(reading.devices, functions)
        take_all(answer, reading, functions)
        add_driver(runner, self.name, self.kernel_modules, answer, functions)
        return answer

    def device_nodes(self, runner, device: Device) -> list[str]:
        """Return /dev/cambricon_devN as the kernel ties it to the card, else by the number that cnmon gives it."""
        nodes = nodes_below(runner, device.pci_address, r"cambricon_dev\d+")
        return nodes or (runner.glob(f"/dev/cambricon_dev{device.index}") if device.index is not None else [])
