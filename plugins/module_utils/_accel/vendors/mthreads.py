# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Moore Threads: mthreads-gmi, its JSON and its table.

A healthy host costs one command, ``mthreads-gmi -q --json``. Releases without JSON, and those whose JSON is damaged,
are read from the table (``mthreads-gmi``), which knows neither serial nor UUID. What is missing then is asked card by
card (``-q -i N --json``), N being the tool's number.

Recorded: the tables of 1.14.0 and 2.4.1. The JSON is read after excerpts that users published (driver 3.3.5-server);
its keys may end in a blank, its numbers are strings with units, and the driver's version stands only at the top. Never
recorded: an error count, a process row, ``-q`` as text. The tool has no word for health, so live values that can be
read prove no more than that a card answers.
"""

from __future__ import annotations

import re
from collections import Counter

from .. import pci, text
from ..model import TOOL_ABSENT, Device, Health, Link, Readings, Tool
from ..runner import Runner
from ..tools import (
    NUMBER,
    Form,
    Reply,
    add_driver,
    address_of,
    ask,
    ask_missing,
    drm_nodes,
    entry,
    generation_gts,
    json_documents,
    process,
    sick,
    single,
    worst,
)
from .base import FILE, PACKAGE, PACKAGE_VERSION, Answer, Unreadable, Vendor, VersionSource

# "failed to initialize mtml" is said right after the driver was loaded, and to users who may not open the nodes.
_REASONS = (
    ("permission denied", "no_permission"),
    ("failed to initialize mtml", "driver_not_ready"),
    ("no mt gpu device found", "no_devices"),
)
_HEADER = re.compile(r"mthreads-gmi:(\S+)\s+Driver Version:(\S+)")
_LANES = re.compile(r"(\d{1,3})x\((\d{1,3})x\)")
_MEMORY = re.compile(r"(\S+)\s+(\S+?)\((\S+?)\)")
_SLOT = re.compile(r"(?P<number>\d{1,9})(?:\((?P<name>[^)]+)\))?")


def parse_query(output: str) -> Reply:
    """Return the devices of ``mthreads-gmi -q --json``; Unreadable when it is cut off or something else."""
    documents, around = json_documents(output)
    root = next((one for one in map(_stripped, documents) if isinstance(one, dict) and "GPU" in one), None)
    cards = root["GPU"] if root else None
    if root is None or not isinstance(cards, list) or not all(isinstance(card, dict) for card in cards):
        raise Unreadable("no list of GPUs in the answer")
    driver = text.clean(root.get("Driver Version"))
    devices = [_device(card, driver) for card in cards]
    return Reply(devices, text.whole_number(root.get("Attached GPUs")), None, driver, around)


def _stripped(values: object) -> object:
    """Return nested values with the blanks taken off their keys ("Power Draw ")."""
    if isinstance(values, dict):
        return {str(key).strip(): _stripped(value) for key, value in values.items()}
    return [_stripped(value) for value in values] if isinstance(values, list) else values


def _device(card: dict, driver: str | None) -> Device:
    def told(*path: str) -> str | None:
        return text.clean(entry(card, *path))

    index = text.whole_number(told("Index"))
    place = told("PCI", "Bus ID")
    vendor, chip = (_id(told("PCI", f"{part} ID")) for part in ("Vendor", "Device"))
    busy = text.number(told("Utilization", "Gpu"))
    readings = Readings(
        temperature_c=text.celsius(told("Temperature", "GPU Current Temp")),
        power_watts=text.watts(told("Power Readings", "Power Draw")),
        power_limit_watts=text.watts(told("Power Readings", "Current Power Limit")),
        utilization_percent=busy,
        memory_used_bytes=text.size_bytes(told("FB Memory Usage", "Used")),
    )
    slot = _SLOT.fullmatch(told("PCI", "Slot ID(Name)") or "")
    return Device(
        index=index,
        vendor="mthreads",
        model=told("Product Name"),
        serial=text.identifier(entry(card, "Serial Number")),
        uuid=text.identifier(entry(card, "GPU UUID")),
        pci_address=address_of(place),
        pci_id=f"{vendor}:{chip}" if vendor and chip else None,
        module_id=int(slot["number"]) if slot else None,
        driver_version=driver,
        firmware_version=told("MTBios Version"),
        memory_bytes=text.size_bytes(told("FB Memory Usage", "Total")),
        link=Link(
            speed_gts=generation_gts(told("PCI", "GPU Link Info", "PCIe Generation", "Current")),
            width=pci.width(told("PCI", "GPU Link Info", "Link Width", "Current")),
            max_speed_gts=generation_gts(told("PCI", "GPU Link Info", "PCIe Generation", "Max")),
            max_width=pci.width(told("PCI", "GPU Link Info", "Link Width", "Max")),
            under_load=None if busy is None else busy > 0,
        ),
        health=_health(list(_fields(card)), readings),
        readings=readings,
        source="mthreads-gmi",
    )


def _id(word: str | None) -> str | None:
    found = re.fullmatch(r"0x([0-9a-f]{4})", (word or "").lower())
    return found[1] if found else None


def _fields(values: dict):
    """Yield the name and value of each field, however deep."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _fields(value)
        elif not isinstance(value, list):
            yield name, value


def _health(fields: list[tuple[str, object]], readings: Readings) -> Health:
    live = [readings.temperature_c, readings.power_watts, readings.utilization_percent]
    return worst(sick(fields), sum(value is not None for value in live))


def parse_table(output: str) -> Reply:
    """Return the devices of plain ``mthreads-gmi``: three lines each, of three, three and two cells.

    The first holds number and name, address, load and memory; the second kind and (since 2.x) performance state, lanes,
    temperature; the third the ECC mode. Unreadable for a line that is none of these and for a table that has no end.
    """
    header = _HEADER.search(output)
    if header is None:
        raise Unreadable("no header of mthreads-gmi in the answer")
    version, driver = (text.clean(word) for word in header.groups())
    devices: list[Device] = []
    lines: list[list[str]] = []
    part = "title"
    for line in text.plain(output).splitlines():
        words = line.strip()
        if words == "Processes:":
            part = "processes"
        elif part == "processes":
            found = process(words)
            for device in devices:
                if found and device.index == found[0]:
                    device.processes.append(found[1])
        elif words.startswith("+---"):
            part = "devices"
        elif part == "devices" and words.strip("-"):
            lines.append([single(cell) for cell in line.split("|")])
            if len(lines) == 3:
                devices.append(_from_lines(lines, version, driver))
                lines = []
    if lines or part != "processes":
        raise Unreadable("the table has no end")
    return Reply(devices, tool_version=version, driver_version=driver)


def _from_lines(lines: list[list[str]], version: str | None, driver: str | None) -> Device:
    number, _blank, name = lines[0][0].partition(" ")
    index = text.whole_number(number)
    place = address_of(lines[0][1]) if len(lines[0]) > 1 else None
    if index is None or place is None or [len(cells) for cells in lines] != [3, 3, 2]:
        raise Unreadable(f"not a device: {text.excerpt(str(lines), limit=200)}")
    load, lanes = _MEMORY.fullmatch(lines[0][2]), _LANES.fullmatch(lines[1][1])
    busy = text.number(load[1]) if load else None
    heat = (lines[1][2].split() or [""])[0]
    readings = Readings(
        temperature_c=text.celsius(heat),
        utilization_percent=busy,
        memory_used_bytes=text.size_bytes(load[2]) if load else None,
    )
    return Device(
        index=index,
        vendor="mthreads",
        model=text.clean(name),
        pci_address=place,
        driver_version=driver,
        memory_bytes=text.size_bytes(load[3]) if load else None,
        link=Link(
            width=pci.width(lanes[1]) if lanes else None,
            max_width=pci.width(lanes[2]) if lanes else None,
            under_load=None if busy is None else busy > 0,
        ),
        health=_health([("memory", lines[0][2]), ("temperature", lines[1][2]), ("ecc", lines[2][1])], readings),
        readings=readings,
        source=f"mthreads-gmi {version or ''}".strip(),
    )


def slot_labels(devices: list[Device]) -> dict[str, str]:
    """Return the number of the slot by address; 0 and a number of several cards name no place."""
    counts = Counter(device.module_id for device in devices)
    return {
        device.pci_address: str(device.module_id)
        for device in devices
        if device.pci_address and device.module_id and counts[device.module_id] == 1
    }


_VERSIONS = (
    VersionSource("driver_kernel", "mthreads", FILE, "/sys/module/mtgpu/version", r"^(\d\S*)"),
    VersionSource(
        "runtime",
        "musa",
        FILE,
        "/usr/local/musa/version.json",
        r'"musa_toolkits"\s*:\s*\{[^{}]*"version"\s*:\s*"([^"\s]+)"',
    ),
    VersionSource("container_toolkit", "mt-container-toolkit", PACKAGE, "mt-container-toolkit", PACKAGE_VERSION),
)


class Mthreads(Vendor):
    """Moore Threads MTT. Their audio functions have the same vendor id, but are no display devices."""

    name = "mthreads"
    pci_vendors = ("1ed5",)
    kernel_modules = ("mtgpu",)
    versions = _VERSIONS

    def query(self, runner: Runner, functions: list[pci.Function], timeout_seconds: float) -> Answer:
        """Ask mthreads-gmi; see the module for the order."""
        answer = Answer()
        tool = Tool("mthreads-gmi", self.name, state=TOOL_ABSENT, command="mthreads-gmi -q --json")
        answer.tools.append(tool)
        path = runner.which("mthreads-gmi")
        if path is not None:
            forms = [Form(("-q", "--json"), parse_query), Form((), parse_table)]
            ask(runner, [path], forms, tool, answer, timeout_seconds, _REASONS)
            alone = Form(("-q", "-i", NUMBER, "--json"), parse_query)
            ask_missing(runner, [path], alone, functions, tool, answer, timeout_seconds)
            answer.slot_labels = slot_labels(answer.devices)
        add_driver(runner, self.name, self.kernel_modules, answer, functions)
        return answer

    def device_nodes(self, runner: Runner, device: Device) -> list[str]:
        """Return the DRM nodes of the card; which /dev/mtgpu.N is its own, nothing tells."""
        return drm_nodes(runner, device)
