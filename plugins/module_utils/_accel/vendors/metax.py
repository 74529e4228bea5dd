# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""MetaX: mx-smi, and ht-smi, which is the same program under the name of another maker.

A healthy host costs one command, the plain table. Where it can't be read, the listing of ``--show-temperature
--show-memory --show-usage`` is; what is missing then is asked card by card with ``-i N``, N being the tool's number.
Neither form tells a serial or UUID.

The table has two layouts: the card's number and name in one column with what it draws (2.2.8), or a column for the
board and one for the chip (2.2.9 and later). The number of the board is kept as ``module_id``: that it names a place is
not proven. Another maker (Moffett) ships a program called mx-smi too: only the header of this one makes an answer.

Recorded: the tables of mx-smi 2.2.8 and 2.2.9 and of ht-smi 2.3.1, the listing of 2.2.6 and 2.3.4. Never recorded: a
sick card, a process row, an error text, the JSON that newer releases are said to have.
"""

from __future__ import annotations

import re

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
    not_ours,
    process,
    rows,
    sick,
    worst,
)
from .base import FILE, Answer, ContainerAccess, Unreadable, Vendor, VersionSource

PROGRAMS = ("mx-smi", "ht-smi")
LISTING = ("--show-temperature", "--show-memory", "--show-usage")

_REASONS = (("permission denied", "no_permission"),)
_HEADER = re.compile(r"(?P<tool>[MH][XT]-SMI) (?P<version>\S+)\s+Kernel Mode Driver Version: (?P<driver>\S+)")
_LISTED = re.compile(r"^(?P<tool>[mh][xt]-smi)\s+version:\s*(?P<version>\S+)", re.MULTILINE)
_BIOS = re.compile(r"BIOS Version: (\S+)")
_ATTACHED = re.compile(r"^Attached GPUs\s*:\s*(\d{1,9})\s*$", re.MULTILINE)
_OLD_UPPER = re.compile(r"(?P<index>\d{1,9})\s+(?P<name>\S.*?)\s+(?P<persistence>\S+)")
_OLD_LOWER = re.compile(r"(?P<heat>\S+)\s+(?P<power>\S+)\s*/\s*(?P<limit>\S+)\s+(?P<perf>\S+)")
_NEW_BOARD = re.compile(r"(?P<board>\d{1,9})\s+(?P<name>\S.*)")
_NEW_POWER = re.compile(r"(?P<power>\S+)\s*/\s*(?P<limit>\S+)")
_MEMORY = re.compile(r"(?P<used>\S+)/(?P<total>\S+) (?P<unit>[KMG]iB)")
_BLOCK = re.compile(r"^GPU#(?P<index>\d{1,9})\s+(?P<name>\S+)\s+(?P<address>\S+)\s*$")


def parse_table(output: str) -> Reply:
    """Return the devices of the plain table, in either layout; Unreadable for a row that is no device.

    The layout is told by the titles of the columns; a table whose titles are others is not guessed at.
    """
    table = rows(output)
    header = _HEADER.search(output)
    titles = [" ".join(cells) for cells in table if cells[0].startswith(("GPU ", "Board "))]
    if header is None or not titles:
        raise Unreadable("no table of MetaX in the answer")
    bios = _BIOS.search(output)
    firmware = text.clean(bios[1]) if bios else None
    if re.match(r"GPU\s+NAME\s+Persistence-M Bus-id GPU-Util", titles[0]):
        width, read = 3, _old_device
    elif re.match(r"Board\s+Name GPU\s+Persist-M Bus-id GPU-Util", titles[0]):
        width, read = 4, _new_device
    else:
        raise Unreadable(f"the columns are others: {text.excerpt(titles[0], limit=200)}")
    devices: list[Device] = []
    upper: list[str] | None = None
    ended = False
    for cells in table:
        if cells[0].startswith("Process:"):
            ended = True
        elif ended:
            found = process(cells[0])
            for device in devices:
                if found and device.index == found[0]:
                    device.processes.append(found[1])
        elif len(cells) == 1 or cells[0].startswith(("GPU ", "Board ", "Temp ", "Pwr:")):
            continue
        elif len(cells) != width:
            raise Unreadable(f"not a row of {width} cells: {text.excerpt(' | '.join(cells), limit=200)}")
        elif upper is None:
            upper = cells
        else:
            device = read(upper, cells)
            device.driver_version, device.firmware_version = text.clean(header["driver"]), firmware
            device.source = f"{header['tool'].lower()} {text.clean(header['version']) or ''}".strip()
            devices.append(device)
            upper = None
    if upper is not None or not ended:
        raise Unreadable("the table has no end")
    attached = _ATTACHED.search(output)
    versions = text.clean(header["version"]), text.clean(header["driver"])
    return Reply(devices, int(attached[1]) if attached else None, *versions)


def _old_device(upper: list[str], lower: list[str]) -> Device:
    """Return the device of ``number name mode | address | load mode`` and ``heat power perf | memory | state``."""
    first, second = _OLD_UPPER.fullmatch(upper[0]), _OLD_LOWER.fullmatch(lower[0])
    if not first or not second:
        raise _no_device(upper, lower)
    cells = (upper[1], upper[2], lower[1], lower[2])
    return _device(first["index"], first["name"], cells, second["heat"], second["power"], second["limit"])


def _new_device(upper: list[str], lower: list[str]) -> Device:
    """Return the device of ``board name | number mode | address | load`` and ``power | heat perf | memory | state``."""
    first, power = _NEW_BOARD.fullmatch(upper[0]), _NEW_POWER.fullmatch(lower[0])
    number, heat = upper[1].split(), lower[1].split()
    if not first or not power or len(number) != 2 or len(heat) != 2:
        raise _no_device(upper, lower)
    cells = (upper[2], upper[3], lower[2], lower[3])
    device = _device(number[0], first["name"], cells, heat[0], power["power"], power["limit"])
    device.module_id = int(first["board"])
    return device


def _no_device(upper: list[str], lower: list[str]) -> Unreadable:
    return Unreadable(f"not a device: {text.excerpt(' | '.join([*upper, *lower]), limit=200)}")


def _device(number: str, name: str, cells: tuple[str, ...], heat: str, power: str, limit: str) -> Device:
    """Return the device; ``cells`` are its address, load and mode, memory, and state."""
    place, load, memory, state = cells
    index, memory_found = text.whole_number(number), _MEMORY.fullmatch(memory)
    where = address_of(place)
    if index is None or where is None:
        raise Unreadable(f"not a device: {text.excerpt(f'{number} {name} {place}', limit=200)}")
    busy = text.number(load.split()[0]) if load else None
    sizes = (
        [text.size_bytes(f"{memory_found[part]} {memory_found['unit']}") for part in ("used", "total")]
        if (memory_found)
        else [None, None]
    )
    cells_told = {
        "temperature": heat,
        "power": power,
        "power limit": limit,
        "load": load,
        "memory": memory,
        "state": state,
    }
    found = sick(cells_told.items())
    # The tool has one word for a card that can be used; "not available" is no placeholder here.
    usable = state.lower() == "available"
    if not usable and state.lower() not in ("", "-", "n/a", "na"):
        found.append(("critical", f"the tool calls the card {state}"))
    return Device(
        index=index,
        vendor="metax",
        model=text.clean(name),
        pci_address=where,
        memory_bytes=sizes[1],
        link=Link(under_load=None if busy is None else busy > 0),
        health=worst(found, int(usable)),
        readings=Readings(
            temperature_c=text.celsius(heat),
            power_watts=text.watts(power),
            power_limit_watts=text.watts(limit),
            utilization_percent=busy,
            memory_used_bytes=sizes[0],
        ),
    )


def parse_listing(output: str) -> Reply:
    """Return the devices of ``--show-temperature --show-memory --show-usage``; Unreadable without its end.

    Names of sensors and the degree sign differ by release ("hotspot : 44.00 °C", "hotspot(sensor1) : 45.75 C").
    """
    header = _LISTED.search(output)
    if header is None or not output.rstrip().endswith("End of Log"):
        raise Unreadable("no complete listing of MetaX in the answer")
    blocks: list[tuple[re.Match, dict[str, str]]] = []
    for line in text.plain(output).splitlines():
        block, (name, value) = _BLOCK.match(line), text.name_and_value(line)
        if block:
            blocks.append((block, {}))
        elif line[:1].isspace() and name and value is not None and blocks:
            blocks[-1][1].setdefault(name, value)
        elif line.startswith("GPU#"):
            raise Unreadable(f"not a device: {text.excerpt(line, limit=200)}")
    attached = _ATTACHED.search(output)
    if not blocks and (attached is None or int(attached[1])):
        raise Unreadable("no card in the answer")
    version = text.clean(header["version"])
    source = f"{header['tool']} {version or ''}".strip()
    devices = [_listed(block, fields, source) for block, fields in blocks]
    return Reply(devices, int(attached[1]) if attached else None, version)


def _listed(block: re.Match, fields: dict[str, str], source: str) -> Device:
    where = address_of(block["address"])
    if where is None:
        raise Unreadable(f"not a device: {text.excerpt(block[0], limit=200)}")
    heat = next((value for name, value in fields.items() if name.startswith("hotspot")), None)
    busy = text.number(fields.get("GPU"))
    readings = Readings(
        temperature_c=text.celsius(heat),
        utilization_percent=busy,
        memory_used_bytes=text.size_bytes(fields.get("vram used")),
    )
    return Device(
        index=int(block["index"]),
        vendor="metax",
        # The listing writes MXN260 for what the table calls MetaX N260.
        model=text.clean(re.sub(r"^MX(?=[A-Z]\d)", "MetaX ", block["name"])),
        pci_address=where,
        memory_bytes=text.size_bytes(fields.get("vram total")),
        link=Link(under_load=None if busy is None else busy > 0),
        # It does not tell the state of the card.
        health=worst(sick(fields.items()), 0) if fields else Health(),
        readings=readings,
        source=source,
    )


# "Version:3.3.0.15", or the number alone.
_VERSIONS = (
    VersionSource("driver_kernel", "metax", FILE, "/sys/module/metax/version", r"^(\d\S*)"),
    VersionSource("driver_library", "metax", FILE, "/opt/mxdriver/Version.txt", r"(?mi)^(?:version\s*:\s*)?(\d\S*)"),
    VersionSource("runtime", "maca", FILE, "/opt/maca/[Vv]ersion.txt", r"(?mi)^(?:version\s*:\s*)?(\d\S*)"),
)


# No source names a kind: the one here has the name of the vendor's resource in Kubernetes.
_CONTAINER = ContainerAccess(kind="metax-tech.com/gpu", control_nodes=("/dev/mxcd", "/dev/mxnd", "/dev/mxgd"))


class Metax(Vendor):
    """MetaX C and N series, and cards that other makers sell with them. 9999 really is their vendor id."""

    name = "metax"
    pci_vendors = ("9999",)
    kernel_modules = ("metax",)
    versions = _VERSIONS
    container = _CONTAINER

    def query(self, runner: Runner, functions: list[pci.Function], timeout_seconds: float) -> Answer:
        """Ask mx-smi, or ht-smi where there is no mx-smi."""
        answer = Answer()
        found = [(name, path) for name in PROGRAMS for path in [runner.which(name)] if path]
        name, path = found[0] if found else (PROGRAMS[0], None)
        tool = Tool(name, self.name, state=TOOL_ABSENT, command=name)
        answer.tools.append(tool)
        if path is not None:
            forms = [Form((), parse_table), Form(LISTING, parse_listing)]
            ask(runner, [path], forms, tool, answer, timeout_seconds, _REASONS)
            not_ours(tool, answer, functions)
            alone = Form((*LISTING, "-i", NUMBER), parse_listing)
            ask_missing(runner, [path], alone, functions, tool, answer, timeout_seconds)
        add_driver(runner, self.name, self.kernel_modules, answer, functions)
        return answer

    def device_nodes(self, runner: Runner, device: Device) -> list[str]:
        """Return the DRM nodes of the card; /dev/mxcd, mxnd and mxgd are common to all."""
        return drm_nodes(runner, device)
