# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Huawei Ascend: npu-smi, which speaks text only; without it the devices come from sysfs (the probe's part).

What it costs on a healthy host: ``npu-smi info`` (the table), then, all at the same time, ``info -t board -i N`` for
each NPU and, where the table has no column with the device number, ``info -m``, then, again at the same time,
``info -t ecc -i N`` for those that answered: 18 commands for 8 NPUs with one chip. An NPU that is not OK is also asked
for its fault codes (``-t health``).
A chip's own number (``-t board -i N -c C``) is asked only where the board's serial does not tell its chips apart:
several chips, or no serial. When the table cannot be used, ``info -l`` names the NPUs, ``-t health`` and ``-t memory``
give their state and size, and the chips are asked for their names. One NPU that refuses or hangs never hides the
others: where one hangs, table and list often do too, so the numbers of the device nodes are tried as NPU ids (they are
equal on servers with one chip an NPU).

Words: a *card* is an NPU id, a *chip* two rows of the table. One ``Device`` is one PCI function: two chips with two
Bus-Ids (910C, 310) are two devices that share a serial, two chips with one Bus-Id (310P duo) are one device with two
entries in ``logical``. ``Device.module_id`` is the NPU id, which npu-smi wants after ``-i``; ``Device.index`` is the
number of its ``/dev/davinciN`` where that is told, else the NPU id.

Sources: npu-smi reference of several releases, recorded output of 1.9.3 to 25.5; the layouts differ in columns, widths
and separators, so tables are split on ``|`` and never by position.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from .. import pci, text
from ..model import (
    TOOL_ABSENT,
    TOOL_FAILED,
    TOOL_HUNG,
    TOOL_OK,
    TOOL_UNREADABLE,
    Device,
    Driver,
    Ecc,
    Health,
    Link,
    Readings,
    Repair,
    Tool,
)
from ..parallel import command_of, run_all
from ..runner import Result
from ..tools import BADNESS, add_error, address_of, cells_of, reason_of, settle, tell_beside
from . import ascend_links
from .base import FILE, Answer, ContainerAccess, Vendor, VersionSource

VERSION_FILE = "/usr/local/Ascend/driver/version.info"

# Return codes of the DCMI library -> word of ``Tool.reason``.
# -8005: driver not there, upgraded without a restart, or not visible to this user or container.
# -8020: a container or process holds the device.
_CODES = {-8005: "driver_not_ready", -8020: "in_use_elsewhere"}
_CODE = re.compile(r"\bret(?:urn)?(?: code)? is (-\d{1,9})\b")
_REASONS = ((r"not permitted|no permission", "no_permission"),)

_HEADER = re.compile(r"npu-smi\s+(\S+)\s+Version:\s*(\S+)")
_BORDER = re.compile(r"^\+[-=+]*\+$")
# No more digits than a size has: a run of garbage would be tried from each of them. "1,234" is none.
_USAGE = re.compile(r"(?<![0-9.,'])([0-9]{1,12})\s*/\s*([0-9]{1,12})(?![0-9]|[.,'][0-9])")
_MAP_COLUMNS = ("NPU ID", "Chip ID", "Chip Logic ID", "Chip Phy-ID", "Slot ID", "Chip Name")
# Only OK passes; what is not known here is unknown.
_HEALTH = {"ok": "ok", "warning": "warning", "alarm": "critical", "critical": "critical"}
_MOST_CHIPS = 64  # of one board; the boards of today have one or two
# With so many isolated rows of multi-bit errors a chip has none left (fault 0x80e18402 of the driver).
_MOST_ISOLATED = 64
# "HBM Double Bit Error Count"; a 310 prints "Double-bit Error Count" and has nothing but DDR.
_COUNTER = re.compile(
    r"^(?:(?:DDR|HBM) )?(Single|Double)[ -]bit"
    r" (Error Count|Aggregate Total Err Cnt|Isolated Pages Count|Next-Isolated Pages Count)$",
    re.IGNORECASE,
)
_FAULT_CODE = re.compile(r"^(?:0x)?([0-9A-F]{4,8})$", re.IGNORECASE)
_NO_SUCH_TYPE = re.compile(r"not support", re.IGNORECASE)


@dataclass
class Chip:
    """One row pair of the table. Sizes in MB (of 2**20 bytes) as printed, None where not told."""

    npu: int
    chip: int
    phy_id: int | None = None
    name: str | None = None
    health: str = ""
    bdf: str | None = None
    power_w: float | None = None
    sick: list[str] = field(default_factory=list)  # words that stand where a value should
    temp_c: int | None = None
    aicore_percent: int | None = None
    memory_used_mb: int | None = None
    memory_total_mb: int | None = None
    hbm_used_mb: int | None = None
    hbm_total_mb: int | None = None


@dataclass
class Table:
    """The answer of ``npu-smi info``. ``state``: ok, unreadable, or the word for a known error text.

    ``chips`` and ``processes`` (``npu``, ``chip``, ``pid``, ``name``, ``memory_mb``) are empty unless ok.
    """

    state: str
    code: int | None = None
    tool_version: str | None = None
    driver_version: str | None = None
    chips: list[Chip] = field(default_factory=list)
    processes: list[dict] = field(default_factory=list)

    @property
    def cards(self) -> int | None:
        """Return the number of NPUs, None when it could not be told."""
        return len({chip.npu for chip in self.chips}) if self.state == TOOL_OK else None


def read_table(output: str) -> Table:
    """Return what ``npu-smi info`` says.

    A device is two rows: ``NPU Name | Health | Power Temp`` and ``Chip [Phy-ID] | Bus-Id | AICore Memory [HBM]``.
    A table that was cut off, or that holds a row that is neither of these, is unreadable as a whole.
    """
    lines = [line.rstrip() for line in text.plain(output).splitlines()]
    lines = [line.strip() for line in lines if line.lstrip().startswith(("|", "+"))]
    header = next((found for found in (_HEADER.search(line) for line in lines) if found), None)
    if header is None:
        code = error_code(output)
        known = _CODES.get(code) if code is not None else None
        return Table(known or TOOL_UNREADABLE, code)
    versions = text.clean(header[1]), text.clean(header[2])
    table = Table(TOOL_OK, None, *versions)
    try:
        _fill(table, lines)
    except ValueError:
        return Table(TOOL_UNREADABLE, None, *versions)
    return table


def _fill(table: Table, lines: list[str]) -> None:
    """Fill in chips and processes; ValueError for a row that does not fit and for a missing end."""
    borders = [line for line in lines if _BORDER.match(line)]
    # The last border ends the table. Cut within, it is shorter than the one before.
    if len(borders) < 3 or lines[-1] != borders[-1] or len(borders[-1]) < len(borders[-2]):
        raise ValueError("the table has no end")
    first: list[str] | None = None  # upper row of a device whose lower row has not come yet
    part = "title"
    for line in lines:
        if _BORDER.match(line):
            continue
        cells = cells_of(line)
        words = " ".join(cells)
        if _HEADER.search(words):
            continue
        if re.search(r"\bHealth\b.*\bPower", words):
            part = "devices"
        elif "Process id" in words:
            part = "processes"
        elif part == "devices" and not re.search(r"\bBus-Id\b", words):
            if first is None:
                first = cells
            else:
                table.chips.append(_chip(first, cells))
                first = None
        elif part == "processes":
            table.processes.extend(_process(cells))
    if first is not None or part == "title":
        raise ValueError("a device has no second row")
    if len({(chip.npu, chip.chip) for chip in table.chips}) < len(table.chips):
        raise ValueError("a chip is listed twice")


def _chip(upper: list[str], lower: list[str]) -> Chip:
    """Return the chip of two rows; ValueError when they are something else (process rows look alike)."""
    if len(upper) < 3 or len(lower) < 3 or not re.match(r"\D", upper[1]):
        raise ValueError(f"no device: {upper}")
    npu, _unused, name = upper[0].partition(" ")
    ids = lower[0].split()
    values = upper[2].split()
    usage = _USAGE.findall(lower[2])
    if not 1 <= len(ids) <= 2 or not usage:
        raise ValueError(f"no chip: {lower}")
    # With one pair it is the device memory (310P); HBM, where there is any, is the second.
    memory, hbm = usage[0], usage[1] if len(usage) > 1 else (None, None)
    if len(usage) != lower[2].count("/"):
        memory = hbm = (None, None)  # which of the pairs is left, nobody can tell
    return Chip(
        npu=int(npu),
        chip=int(ids[0]),
        phy_id=int(ids[1]) if len(ids) == 2 else None,
        name=text.clean(name),
        health=upper[1],
        bdf=pci.normalise(lower[1]),
        power_w=text.number(values[0]) if values else None,
        sick=re.findall(text.SICK_WORDS, f"{upper[2]} {lower[2]}", re.IGNORECASE),
        temp_c=text.integer(values[1]) if len(values) > 1 else None,
        aicore_percent=text.integer(lower[2].split()[0]),
        memory_used_mb=_count(memory[0]),
        memory_total_mb=_count(memory[1]),
        hbm_used_mb=_count(hbm[0]),
        hbm_total_mb=_count(hbm[1]),
    )


def _count(word: str | None) -> int | None:
    return int(word) if word is not None else None


def _process(cells: list[str]) -> list[dict]:
    """Return the process of a row, none for "No running processes found in NPU 0"."""
    try:
        npu, chip = (int(word) for word in cells[0].split())
        pid = int(cells[1])
    except (ValueError, IndexError):
        return []
    # A name may hold the separator.
    name, memory = "|".join(cells[2:-1]), text.integer(cells[-1])
    return [{"npu": npu, "chip": chip, "pid": pid, "name": name, "memory_mb": memory}]


def error_code(output: str) -> int | None:
    """Return the code of "... ret is -8005", None when there is none."""
    found = _CODE.search(output)
    return int(found[1]) if found else None


def read_fields(output: str) -> dict[str, str]:
    """Return the ``Name : value`` lines of ``-t board`` and ``-t health``; the first of a name counts.

    A value may hold colons (an address); blanks before the names and around the colon differ by release.
    """
    fields: dict[str, str] = {}
    for line in text.plain(output).splitlines():
        found = _field(line)
        if found:
            fields.setdefault(*found)
    return fields


def _field(line: str) -> tuple[str, str] | None:
    """Return name and value of a ``Name : value`` line, None when it is none."""
    name, value = text.name_and_value(line)
    return (name, value) if value is not None and re.match("[A-Za-z]", name) else None


def read_list(output: str) -> list[int]:
    """Return the NPU ids of ``npu-smi info -l``; none when they are not as many as it says there are."""
    found = re.findall(r"^[ \t]*NPU ID[ \t]*:[ \t]*(\d{1,9})\s*$", text.plain(output), re.MULTILINE)
    ids = list(dict.fromkeys(int(word) for word in found))
    fields = read_fields(output)
    total = text.integer(fields.get("Total Count") or fields.get("Card Count"))
    return ids if total in (None, len(ids)) else []


def read_health(output: str) -> list[str]:
    """Return the words of ``-t health``, one a chip ("Health" or "Health Status", by release)."""
    words = (
        next((value for name, value in lines if name in ("Health", "Health Status")), "")
        for lines in _sections(output).values()
    )
    return [word for word in words if word and len(word.split()) == 1]


def _sections(output: str) -> dict[int, list[tuple[str, str]]]:
    """Return names and values by chip; a line that goes on has no name.

    "Chip ID" ends the lines of a chip; where no "Chip Count" comes first, an answer has one chip and leaves both out.
    The board's own controller ends its lines with "Chip Name : MCU", and is no chip.
    """
    sections: dict[int, list[tuple[str, str]]] = {}
    lines: list[tuple[str, str]] = []
    counted = False
    for line in text.plain(output).splitlines():
        name, value = text.name_and_value(line)
        counted = counted or name == "Chip Count"
        if value is None or name in ("NPU ID", "Chip Count"):
            continue
        number = text.whole_number(value) if name == "Chip ID" else None
        if number is not None and number < _MOST_CHIPS:
            sections.setdefault(number, lines)
            lines = []
        elif (name, value.lower()) == ("Chip Name", "mcu"):
            lines = []
        else:
            lines.append((name, value))
    return sections or ({0: lines} if lines and not counted else {})


def read_ecc(output: str) -> dict[int, dict[str, int | None]]:
    """Return the counters of ``-t ecc`` by chip, those of DDR and HBM together.

    Keys: "single error count", "double next-isolated pages count" and so on. None is a counter that can't be read; one
    that this release does not have is missing.
    """
    return {chip: _counters(lines) for chip, lines in _sections(output).items()}


def _counters(lines: list[tuple[str, str]]) -> dict[str, int | None]:
    parts: dict[str, list[int | None]] = {}
    for name, value in lines:
        found = _COUNTER.match(name)
        if found:
            parts.setdefault(f"{found[1]} {found[2]}".lower(), []).append(text.whole_number(value))
    return {name: _total(values) for name, values in parts.items()}


def _total(values: list[int | None]) -> int | None:
    """Return the sum; where a part is not known, only errors that were counted are one: the rest may not be 0."""
    known = sum(value for value in values if value is not None)
    return known if values and (known or None not in values) else None


def read_codes(output: str) -> dict[int, list[tuple[str, str]]]:
    """Return the fault codes of ``-t health`` by chip, each with the words of the tool where they can be told apart."""
    told: dict[int, list[tuple[str, str]]] = {}
    for chip, lines in _sections(output).items():
        codes: list[str] = []
        words: list[str] = []
        last = ""
        for name, value in lines:
            last = name or last
            if name == "Error Code":
                found = (_FAULT_CODE.match(word) for word in value.split())
                codes = [f"0x{one[1].lower():0>8}" for one in found if one]
            elif last == "Error Information" and value:
                words.append(value)
        if codes:
            named = words if len(words) == len(codes) else [""] * len(codes)
            told[chip] = list(zip(codes, named))
    return told


def read_memory(output: str) -> list[int]:
    """Return the sizes of ``-t memory`` in MB, one a chip: that of the HBM where there is any, else that of the DDR."""
    sizes: list[int] = []
    parts: dict[str, int] = {}
    # "Chip ID" ends the lines of a chip.
    for line in [*text.plain(output).splitlines(), "Chip ID : end"]:
        field_name, value = _field(line) or ("", "")
        name, _blank, unit = field_name.partition(" Capacity(")
        if unit == "MB)":
            parts[name] = text.whole_number(value) or 0
        elif field_name == "Chip ID" and parts:
            sizes.append(parts.get("HBM") or parts.get("DDR") or 0)
            parts = {}
    return sizes


def read_map(output: str) -> dict[tuple[int, int], int | None]:
    """Return device numbers by (NPU, chip) from ``npu-smi info -m``; the MCU of a card is no chip.

    The columns differ by release: with a Phy-ID that is the device number, else the logic id, which is the same
    unless this is a container that sees only some devices.
    """
    numbers: dict[tuple[int, int], int | None] = {}
    columns: list[str] = []
    for line in text.plain(output).splitlines():
        if "NPU ID" in line and "Chip ID" in line:
            columns = sorted((name for name in _MAP_COLUMNS if name in line), key=line.index)
            continue
        words = line.split(None, len(columns) - 1) if columns else []
        if len(words) < len(columns) or not words:
            continue
        row = dict(zip(columns, words))
        npu, chip = text.whole_number(row.get("NPU ID")), text.whole_number(row.get("Chip ID"))
        number = text.whole_number(row.get("Chip Phy-ID", row.get("Chip Logic ID")))
        if npu is not None and chip is not None and row.get("Chip Name", "").strip().lower() != "mcu":
            numbers[npu, chip] = number
    return numbers


def die_id(fields: dict[str, str]) -> str | None:
    """Return the chip's own number; which die names it differs by generation."""
    for name in ("VDie ID", "Die ID", "DDie ID", "NDie ID"):
        word = text.identifier(fields.get(name))
        if word:
            return "-".join(word.split())
    return None


@dataclass
class Told:
    """What was told besides the table: the boards' fields by NPU id; die ids, counters and fault codes by chip."""

    boards: dict[int, dict] = field(default_factory=dict)
    dies: dict[tuple[int, int], str] = field(default_factory=dict)
    counters: dict[tuple[int, int], dict[str, int | None]] = field(default_factory=dict)
    codes: dict[tuple[int, int], list[tuple[str, str]]] = field(default_factory=dict)


def devices(table: Table, told: Told, source: str) -> list[Device]:
    """Return one ``Device`` a PCI function.

    Chips without a Bus-Id take the board's address, and with it are one device a board.
    """
    found: dict[tuple, list[Chip]] = {}
    for chip in table.chips:
        address = chip.bdf or address_of(told.boards.get(chip.npu, {}).get("PCIe Bus Info"))
        found.setdefault((chip.npu, address), []).append(chip)
    return [_device(key[1], rows, table, told, source) for key, rows in found.items()]


def _device(address: str | None, rows: list[Chip], table: Table, told: Told, source: str) -> Device:
    head = rows[0]
    board, dies = told.boards.get(head.npu, {}), told.dies
    counters = [told.counters.get((row.npu, row.chip), {}) for row in rows]
    sizes = [row.hbm_total_mb or row.memory_total_mb or 0 for row in rows]
    logical = [
        {"kind": "chip", "index": row.phy_id, "id": row.chip, "uuid": dies.get((row.npu, row.chip))} for row in rows
    ]
    loads = [row.aicore_percent for row in rows if row.aicore_percent is not None]
    return Device(
        index=head.phy_id if head.phy_id is not None else head.npu,
        vendor="ascend",
        model=head.name or text.clean(board.get("Chip Name")),
        serial=text.identifier(board.get("Serial Number")),
        uuid=dies.get((head.npu, head.chip)),
        pci_address=address,
        pci_id=_pci_id(board),
        module_id=head.npu,
        driver_version=text.clean(board.get("Software Version")) or table.driver_version,
        firmware_version=text.clean(board.get("Firmware Version")),
        memory_bytes=sum(sizes) * 1024**2 if all(sizes) else None,
        link=Link(under_load=any(loads) if any(loads) or len(loads) == len(rows) else None),
        logical=logical if len(rows) > 1 else [],
        health=_health(rows, board, told.codes),
        ecc=_ecc(counters),
        repair=_repair(counters),
        readings=_readings(rows, loads),
        processes=[
            {"pid": one["pid"], "name": one["name"], "memory_bytes": text.size_bytes(one["memory_mb"], "MB")}
            for one in table.processes
            if any((one["npu"], one["chip"]) == (row.npu, row.chip) for row in rows)
        ],
        source=source,
    )


def _readings(rows: list[Chip], loads: list[int]) -> Readings:
    """Return what the table has: the hottest chip, the sums of power and memory. It tells no limits.

    Of a board with a chip whose temperature can't be read nobody knows how hot it is; so it is with the rest. Only
    power is told by the first chip alone on some boards ("-" for the others).
    """
    heat = [row.temp_c for row in rows if row.temp_c is not None]
    power = [row.power_w for row in rows if row.power_w is not None]
    used = [
        row.hbm_used_mb if row.hbm_total_mb else row.memory_used_mb if row.memory_total_mb else None for row in rows
    ]
    told = [size for size in used if size is not None]
    return Readings(
        temperature_c=float(max(heat)) if len(heat) == len(rows) else None,
        power_watts=sum(power) if power else None,
        utilization_percent=float(max(loads)) if len(loads) == len(rows) else None,
        memory_used_bytes=sum(told) * 1024**2 if len(told) == len(rows) else None,
    )


def _sum_of(counters: list[dict[str, int | None]], *names: str) -> int | None:
    """Return the sum of counters over the chips of a device, see ``_total``."""
    return _total([chip.get(name) for chip in counters for name in names])


def _ecc(counters: list[dict[str, int | None]]) -> Ecc:
    """Return the errors that the tool counts now ("current") and over the life of the chip."""
    return Ecc(
        corrected_volatile=_sum_of(counters, "single error count"),
        uncorrected_volatile=_sum_of(counters, "double error count"),
        corrected_aggregate=_sum_of(counters, "single aggregate total err cnt"),
        uncorrected_aggregate=_sum_of(counters, "double aggregate total err cnt"),
        unread=sorted({name for chip in counters for name, count in chip.items() if count is None}),
    )


def _repair(counters: list[dict[str, int | None]]) -> Repair:
    """Return the isolated pages, and whether more of them wait ("next-isolated") for a reset of the NPU or a reboot.

    A release that does not tell those that wait leaves it open whether an error of now is one of them.
    """
    isolated = _sum_of(counters, "single isolated pages count", "double isolated pages count")
    waiting = _sum_of(counters, "single next-isolated pages count", "double next-isolated pages count")
    bad = ("double isolated pages count", "double next-isolated pages count")
    worst = max((sum(chip.get(name) or 0 for name in bad) for chip in counters), default=0)
    told = isolated is not None and (waiting == 0 or _sum_of(counters, "double error count") == 0)
    state = "replace" if worst >= _MOST_ISOLATED else "reset" if waiting else "ok" if told else "unknown"
    return Repair(state=state, retired_pages=isolated)


def _health(rows: list[Chip], board: dict[str, str], codes: dict[tuple[int, int], list[tuple[str, str]]]) -> Health:
    """Return the state of the worst chip; the words and fault codes of those that are not OK are the reasons.

    A board that gave no answer of its own leaves the health of its chips unknown at best.
    """
    states = {_HEALTH.get(row.health.lower(), "unknown") for row in rows}
    reasons = []
    numbers = []
    for row in rows:
        own = codes.get((row.npu, row.chip), [])
        numbers += [f"ascend {number}" for number, _words in own]
        says = f"NPU {row.npu} chip {row.chip} says {row.health or 'nothing'}"
        reasons += [f"{says}: {number}" + (f" ({words})" if words else "") for number, words in own]
        if row.health.upper() != "OK" and not own:
            reasons.append(says)
        if row.sick:
            states.add("warning")
            reasons.append(f"NPU {row.npu} chip {row.chip}: can't be read: {', '.join(row.sick)}")
    if not board:
        states.add("unknown")
        reasons.append(f"NPU {rows[0].npu} does not tell about its board")
    compatible = board.get("Compatibility", "").strip()
    if compatible.upper() != "OK" and text.state_of(compatible) != text.UNSUPPORTED:
        states.add("warning")
        reasons.append(f"driver and firmware: compatibility is {compatible}")
    return Health(max(states, key=BADNESS.index), reasons, list(dict.fromkeys(numbers)))


def slot_labels(found: list[Device], boards: dict[int, dict]) -> dict[str, str]:
    """Return "Slot ID" by address; 0 and NA (all modules) name no place, nor does a number of several boards."""
    numbers = {npu: text.integer(board.get("Slot ID")) for npu, board in boards.items()}
    counts = Counter(numbers.values())
    labels = {}
    for device in found:
        number = numbers.get(device.module_id) if device.module_id is not None else None
        if device.pci_address and number and counts[number] == 1:
            labels[device.pci_address] = str(number)
    return labels


def _pci_id(board: dict[str, str]) -> str | None:
    ids = [re.match(r"^0x([0-9a-f]{1,4})$", board.get(f"PCI {part} ID", "").lower()) for part in ("Vendor", "Device")]
    return ":".join(found[1].zfill(4) for found in ids if found) if all(ids) else None


# What runs in the kernel only the boards tell; these files tell what is installed.
_CANN = "/usr/local/Ascend/ascend-toolkit/latest/version.cfg"
_NNAE = "/usr/local/Ascend/nnae/latest/version.cfg"
# What the installers write beside what they install; older releases have no version.cfg.
_TOOLKIT_INSTALL = "/usr/local/Ascend/ascend-toolkit/latest/*/ascend_toolkit_install.info"
_NNAE_INSTALL = "/usr/local/Ascend/nnae/latest/ascend_nnae_install.info"
_DOCKER_INSTALL = "/usr/local/Ascend/Ascend-Docker-Runtime/ascend_docker_runtime_install.info"
_RUNNING = r"(?m)^{}_running_version=\[[^\]:]*:([^\]\s]+)\]"
_VERSIONS = (
    VersionSource("driver_library", "ascend", FILE, VERSION_FILE, r"(?m)^Version=(\S+)"),
    VersionSource("firmware_package", "ascend", FILE, "/usr/local/Ascend/firmware/version.info", r"(?m)^Version=(\S+)"),
    VersionSource("runtime", "cann", FILE, _CANN, _RUNNING.format("toolkit")),
    VersionSource("runtime", "cann", FILE, _NNAE, _RUNNING.format("runtime")),
    VersionSource("runtime", "cann", FILE, _TOOLKIT_INSTALL, r"(?m)^version=(\S+)"),
    VersionSource("runtime", "cann", FILE, _NNAE_INSTALL, r"(?m)^version=(\S+)"),
    VersionSource("collectives", "hccl", FILE, _CANN, _RUNNING.format("hccl")),
    VersionSource("collectives", "hccl", FILE, _NNAE, _RUNNING.format("hccl")),
    VersionSource("container_toolkit", "ascend-docker-runtime", FILE, _DOCKER_INSTALL, r"(?m)^version=v?(\S+)"),
)


# As the vendor's guide starts a container without its runtime. The vendor names no kind: this one is ours.
_CONTAINER = ContainerAccess(
    kind="huawei.com/npu",
    control_nodes=("/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc"),
    paths=(
        "/usr/local/dcmi",
        "/usr/local/bin/npu-smi",
        "/usr/local/Ascend/driver/lib64",
        VERSION_FILE,
        "/etc/ascend_install.info",
    ),
)


class Ascend(Vendor):
    """Huawei Ascend NPUs."""

    name = "ascend"
    pci_vendors = ("19e5",)
    # The server's own display controller has the same vendor; NPUs are processing accelerators.
    pci_classes = ("1200",)
    # As named by the drivers of 2021 to 2025.
    kernel_modules = ("drv_pcie_host", "drv_davinci_intf_host", "ascend_adapter")
    splits = True
    versions = _VERSIONS
    container = _CONTAINER

    def query(self, runner, functions, timeout_seconds: float) -> Answer:
        """Ask npu-smi about the table and the boards."""
        answer = Answer()
        path = runner.which("npu-smi")
        if path is None:
            answer.tools.append(Tool("npu-smi", vendor="ascend", state=TOOL_ABSENT))
        else:
            _Query(runner, path, [function.address for function in functions], timeout_seconds, answer).ask()
            answer.errors += ascend_links.add_vnpus(runner, answer.devices, timeout_seconds)
            silent = {function.address for function in functions} - {one.pci_address for one in answer.devices}
            lost = ascend_links.ownerless_vnpus(runner, answer.devices) if silent else []
            if lost:
                answer.logical_known = False
                nodes = ", ".join(f"/dev/vdavinci{number}" for number in lost)
                answer.errors.append(f"{nodes}: vNPUs of a chip that does not answer, so that nobody can count them")
        driver = _driver(runner, self.kernel_modules, answer)
        if driver.loaded or functions:
            answer.drivers.append(driver)
        return answer

    def ask_ports(self, runner, devices: list[Device], timeout_seconds: float, well: bool) -> list[str]:
        """Ask each chip for its HCCS links."""
        return ascend_links.ask_hccs(runner, devices, timeout_seconds)

    def device_nodes(self, runner, device: Device) -> list[str]:
        """Return /dev/davinciN of each chip, N being the physical number."""
        numbers = [part["index"] for part in device.logical if part["kind"] == "chip"] or [device.index]
        nodes = [f"/dev/davinci{number}" for number in numbers if number is not None]
        return [node for node in nodes if runner.glob(node)]


def _driver(runner, modules: tuple[str, ...], answer: Answer) -> Driver:
    """Return the driver: the board tells what runs, the file what is installed; they differ until a restart."""
    installed = re.search(r"^Version=(\S+)", runner.read(VERSION_FILE) or "", re.MULTILINE)
    return Driver(
        "ascend",
        kernel_version=next((device.driver_version for device in answer.devices if device.driver_version), None),
        library_version=installed[1] if installed else None,
        loaded=any(runner.glob(f"/sys/module/{name}") for name in modules),
    )


class _Query:
    """One run through the commands; collects into ``answer``."""

    def __init__(self, runner, path: str, known: list[str], timeout_seconds: float, answer: Answer):
        self.runner = runner
        self.path = path
        self.known = known
        self.timeout = timeout_seconds
        self.answer = answer
        self.told = Told()
        self.hung: dict[int, str] = {}  # NPU id -> the command that did not come back
        self.asked: set[int] = set()  # NPU ids whose boards were asked
        self.health_asked: set[int] = set()  # of these, those whose health was asked with the board
        self.refused: dict[int, Result] = {}  # guessed NPU id -> what was said instead of a board
        self.numbers: dict[tuple[int, int], int | None] | None = None  # (NPU, chip) -> device number, once asked

    def ask(self) -> None:
        """Ask for the table, then for what it does not tell."""
        info = self._run("info")
        table = read_table(info.stdout + "\n" + info.stderr)
        tool = Tool("npu-smi", vendor="ascend", version=table.tool_version, rc=info.rc, command=command_of(info))
        self.answer.tools.append(tool)
        usable = table.state == TOOL_OK and not info.hung
        if usable and not table.chips:
            tool.reason, self.answer.count = "no_devices", 0
            tool.excerpt = text.excerpt(info.stdout, info.stderr)
            return
        if not usable:
            _judge_failure(self.answer, tool, table, info)
            if tool.reason:
                return  # the driver says so for every NPU
            table = Table(TOOL_OK, tool_version=table.tool_version, driver_version=table.driver_version)
        else:
            tell_beside(self.answer, info)
        if info.hung:
            self._ask_boards(table, [], self._node_numbers(), guessed=True)
        else:
            self._ask_boards(table, list(dict.fromkeys(chip.npu for chip in table.chips)), [])
        if len(self._addresses(table)) + len(self.hung) < max(1, len(self.known)):
            self._ask_boards(table, [], self._listed())
        self._ask_dies(table)
        self._ask_errors(table)
        self._name_hung(table)
        answer = self.answer
        for device in devices(table, self.told, f"npu-smi {table.tool_version or ''}".strip()):
            if device.module_id not in self.hung:
                answer.devices.append(device)
            elif device.pci_address:
                answer.last[device.pci_address] = device
        if answer.devices:
            answer.count = len(answer.devices)
        if not usable and answer.count and answer.count >= len(self.known):
            # The boards made up for the table in full; its text stays as evidence.
            tool.state = TOOL_OK
        answer.slot_labels = slot_labels(answer.devices, self.told.boards)
        if self.hung:
            lines = [f"{command}: no answer within {self.timeout:g} s" for command in self.hung.values()]
            tool.state, tool.excerpt = TOOL_HUNG, text.excerpt(tool.excerpt, *lines)

    def _run(self, *arguments: str):
        return self.runner.run([self.path, *arguments], self.timeout)

    def _addresses(self, table: Table) -> set[str]:
        """Return the addresses of the chips that are known so far."""
        boards = {npu: address_of(board.get("PCIe Bus Info")) for npu, board in self.told.boards.items()}
        return {address for address in (chip.bdf or boards.get(chip.npu) for chip in table.chips) if address}

    def _node_numbers(self) -> list[int]:
        found = (re.search(r"davinci(\d+)$", path) for path in self.runner.glob("/dev/davinci[0-9]*"))
        return sorted(int(match[1]) for match in found if match)

    def _listed(self) -> list[int]:
        """Return the NPUs that ``info -l`` knows and that have not been asked yet."""
        listed = self._run("info", "-l")
        if listed.hung:
            add_error(self.answer, listed)
        npus = read_list(_whole_lines(listed.stdout))
        for npu in npus:
            if npu in self.refused:  # it was no wrong guess
                self._note_refusal(npu, self.refused[npu])
        return [npu for npu in npus if npu not in self.asked]

    def _ask_boards(self, table: Table, seen: list[int], unseen: list[int], guessed: bool = False) -> None:
        """Ask the boards of NPUs, health and memory of those that the table does not show, and the device numbers.

        ``guessed`` ids need not exist, so that a refusal is no error.
        """
        npus = [*seen, *unseen]
        self.asked.update(npus)
        self.health_asked.update(unseen)
        commands: list[list[str]] = [[self.path, "info", "-t", "board", "-i", str(npu)] for npu in npus]
        commands += [[self.path, "info", "-t", what, "-i", str(npu)] for what in ("health", "memory") for npu in unseen]
        mapped = self.numbers is None and (bool(unseen) or any(chip.phy_id is None for chip in table.chips))
        if mapped:
            commands.append([self.path, "info", "-m"])
        results = run_all(self.runner, commands, self.timeout)
        if mapped:
            self.numbers = read_map(_whole_lines(results.pop().stdout))
        boards, rest = results[: len(npus)], results[len(npus) :]
        for npu, result in zip(npus, boards):
            fields = self._fields(npu, result, guessed)
            if fields:
                self.told.boards[npu] = fields
        for npu, health, memory in zip(unseen, rest[: len(unseen)], rest[len(unseen) :]):
            if npu not in self.told.boards:
                continue
            for result in (health, memory):
                if result.hung:
                    self._fields(npu, result)
            said = _whole_lines(health.stdout)
            words, sizes = read_health(said), read_memory(_whole_lines(memory.stdout))
            self.told.codes.update({(npu, chip): told for chip, told in read_codes(said).items()})
            count = text.integer(self.told.boards[npu].get("Chip Count")) or 1
            # A damaged number would be as many chips.
            count = count if count <= _MOST_CHIPS else 1
            for chip in range(max(count, len(words[:_MOST_CHIPS]))):
                name, word = _chip_name(self.told.boards[npu]), words[chip] if chip < len(words) else ""
                size = sizes[chip] if chip < len(sizes) else None
                table.chips.append(Chip(npu, chip, name=name, health=word, memory_total_mb=size))
        for row in table.chips:
            if row.phy_id is None:
                row.phy_id = (self.numbers or {}).get((row.npu, row.chip))

    def _ask_dies(self, table: Table) -> None:
        """Ask for chips' own numbers where the board's serial does not tell them apart, and for names not told yet."""
        wanted = []
        numberless = set()
        chips = Counter(chip.npu for chip in table.chips)
        for row in table.chips:
            board = self.told.boards.get(row.npu)
            if board is None or row.npu in self.hung:
                continue
            die = die_id(board)
            if die and chips[row.npu] == 1:
                self.told.dies[row.npu, row.chip] = die
            elif chips[row.npu] > 1 or text.identifier(board.get("Serial Number")) is None:
                numberless.add((row.npu, row.chip))
            if row.name is None or (row.npu, row.chip) in numberless:
                wanted.append(row)
        commands = [[self.path, "info", "-t", "board", "-i", str(row.npu), "-c", str(row.chip)] for row in wanted]
        for row, result in zip(wanted, run_all(self.runner, commands, self.timeout)):
            fields = self._fields(row.npu, result)
            row.bdf = row.bdf or address_of(fields.get("PCIe Bus Info"))
            row.name = row.name or _chip_name(fields)
            die = die_id(fields)
            # A number that a healthy host is not asked for would make this another card.
            if die and (row.npu, row.chip) in numberless:
                self.told.dies[row.npu, row.chip] = die

    def _ask_errors(self, table: Table) -> None:
        """Ask the NPUs that answered for their memory errors, and those that are not OK for their fault codes."""
        npus = [npu for npu in dict.fromkeys(chip.npu for chip in table.chips) if npu not in self.hung]
        sick = {chip.npu for chip in table.chips if chip.health.upper() != "OK"} - self.health_asked
        wanted = [("ecc", npu) for npu in npus] + [("health", npu) for npu in npus if npu in sick]
        commands = [[self.path, "info", "-t", what, "-i", str(npu)] for what, npu in wanted]
        for (what, npu), result in zip(wanted, run_all(self.runner, commands, self.timeout)):
            # That a product has no such counters is no error; device.ecc says that they are not known.
            said = _whole_lines(result.stdout)
            if not result.hung and "NPU ID" not in said and _NO_SUCH_TYPE.search(result.stdout + result.stderr):
                continue
            if not self._fields(npu, result):
                continue
            if what == "ecc":
                self.told.counters.update({(npu, chip): told for chip, told in read_ecc(said).items()})
            else:
                self.told.codes.update({(npu, chip): told for chip, told in read_codes(said).items()})

    def _name_hung(self, table: Table) -> None:
        """Put the addresses of the NPUs that hang into the answer."""
        boards = {npu: address_of(board.get("PCIe Bus Info")) for npu, board in self.told.boards.items()}
        places = [(chip.npu, chip.bdf or boards.get(chip.npu)) for chip in table.chips if chip.npu in self.hung]
        self.answer.hung = list(dict.fromkeys(address for _unused, address in places if address))
        # One without any row has the address that is left over, where only one reading is possible.
        left = [address for address in self.known if address not in self._addresses(table)]
        if len(left) == len(set(self.hung) - {npu for npu, _unused in places}):
            self.answer.hung += left

    def _fields(self, npu: int, result, guessed: bool = False) -> dict[str, str]:
        """Return the fields of a board or chip; none, and an error, when it hangs or refuses."""
        fields = read_fields(_whole_lines(result.stdout))
        if result.hung:
            self.hung[npu] = command_of(result)
            add_error(self.answer, result, card=f"NPU {npu}")
            return {}
        if "NPU ID" not in fields:
            if guessed:
                self.refused[npu] = result
            else:
                self._note_refusal(npu, result)
            return {}
        return fields

    def _note_refusal(self, npu: int, result: Result) -> None:
        add_error(self.answer, result, text.excerpt(result.stdout, result.stderr, limit=300), card=f"NPU {npu}")


def _chip_name(fields: dict[str, str]) -> str | None:
    return text.clean(fields.get("Chip Name"))


def _whole_lines(output: str) -> str:
    """Return the output without a last line that was cut off: half a serial would name another card."""
    return output[: output.rfind("\n") + 1]


def _judge_failure(answer: Answer, tool: Tool, table: Table, result) -> None:
    """Settle a tool whose table cannot be used."""
    said = result.stdout + result.stderr
    reason = table.state if table.state not in (TOOL_OK, TOOL_UNREADABLE) else reason_of(said, _REASONS)
    settle(tool, result, reason)
    if table.code is not None and not result.hung:
        tool.state = TOOL_FAILED
    elif table.tool_version is not None and tool.reason is None and not result.hung:
        tool.state = TOOL_UNREADABLE  # a table was begun: damaged, whatever the exit code says
    add_error(answer, result, f"{tool.state}: {text.excerpt(said, limit=300)}")
