# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Kunlunxin: xpu_smi with its machine readable line, its old table, and the table of the newer xpu-smi.

Order: ``xpu_smi -m`` (one line a device: address, serial, temperature, memory, model), then the table ``xpu_smi``,
then ``xpu-smi``. Intel ships an xpu-smi too; which one stands first in the path is chance. So ``xpu-smi`` is asked only
where the bus shows a Kunlunxin device, and its answer counts only with the title of Kunlunxin's table; Intel's program
counts as not installed.

Of the machine readable line only the columns are taken that the tables of the same product prove: power is printed
in watts by one generation and in milliwatts by another, so it is left out there.

Sources: recorded output of 4.31 (R300) and of P800 (both programs).
"""

from __future__ import annotations

import re
import shlex

from .. import pci, text
from ..model import TOOL_ABSENT, TOOL_HUNG, TOOL_OK, Device, Ecc, Link, Readings
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

# Columns of the line, counted from 0; there are 32 in the one recorded generation.
_LINE = {"address": 0, "serial": 3, "temperature": 4, "used": 17, "total": 18, "model": 21}
_LEAST = 22
_COLUMNS = ("DevID", "PCI Addr", "Model", "SN", "INODE", "UseRate", "L3", "Memory")
_TITLE = re.compile(r"\bXPU-SMI\s+Driver Version:\s*(\S+)\s+XPU-RT Version:\s*(\S+)")
_HEAD = ("XPU Name Persistence-M", "Bus-Id Disp.A", "Volatile Uncorr. ECC")
_NAMED = re.compile(r"^(?P<index>\d{1,4})\s+(?P<name>\S.*?)\s+(?P<mode>\S+)$")
_STATE = re.compile(r"^(?P<fan>\S+)\s+(?P<temperature>\S+)\s+(?P<level>\S+)\s+(?P<power>\S+)\s*/\s*(?P<limit>\S+)$")
_INTEL = re.compile(r"Intel(?:\(R\))? XPU System Management Interface", re.IGNORECASE)
_REASONS = ((r"no available xpu device", "no_devices"),)


def read_lines(output: str) -> Reply:
    """Return the devices of ``xpu_smi -m``: a line each, columns apart by blanks, the model in quotes.

    A line that begins with an address and has not the columns that are known is named in the notes, and its device left
    out; Unreadable when no line is one.
    """
    reading = Reply()
    seen = False
    for line in output.splitlines():
        try:
            words = shlex.split(line)
        except ValueError:
            words = line.split()[:1]  # a quotation that does not end: the line was cut off
        address = address_of(words[0]) if words and ":" in words[0] else None
        if address is None:
            continue
        seen = True
        row = {name: words[place] for name, place in _LINE.items()} if len(words) >= _LEAST else {}
        sizes = [text.whole_number(row.get(name)) for name in ("used", "total")]
        # A name where the name should be, and numbers where sizes and a temperature should be: else the columns have
        # moved.
        hot = row.get("temperature")
        numbers = None not in sizes and (text.whole_number(hot) is not None or text.clean(hot) is None)
        if not numbers or not re.search("[A-Za-z]", row.get("model", "")):
            reading.notes.append(f"not the columns that are known: {text.excerpt(line, limit=200)}")
            continue
        readings = Readings(
            temperature_c=text.celsius(row["temperature"]),
            memory_used_bytes=text.size_bytes(row["used"], "MiB"),
        )
        reading.devices.append(
            Device(
                vendor="kunlunxin",
                model=text.clean(row["model"]),
                serial=text.identifier(row["serial"]),
                pci_address=address,
                memory_bytes=text.size_bytes(row["total"], "MiB"),
                health=live_health(readings, Ecc(), sick_words(words)),
                readings=readings,
            )
        )
    if not seen:
        raise Unreadable("no line of xpu_smi -m in the answer")
    return reading


def read_old_table(output: str) -> Reply:
    """Return the devices of the table of ``xpu_smi``; Unreadable when it is cut off or lacks a column."""
    versions = dict(re.findall(r"^(Runtime|Driver) Version:\s*(\S+)", output, re.MULTILINE))
    reading = Reply(tool_version=text.clean(versions.get("Runtime")), driver_version=text.clean(versions.get("Driver")))
    part, columns, rules = "", [""], 0
    parts: dict[str, int] = {}
    for line in output.splitlines():
        if re.match(r"^\s+[A-Z]+\s*$", line):
            part, columns, rules = line.strip(), [], 0
        elif re.fullmatch(r"-{20,}\s*", line):
            rules += 1
            parts[part] = rules
        elif part and line.lstrip().startswith("|"):
            cells = cells_of(line)
            if not columns:
                columns = cells
            elif part == "DEVICES":
                reading.devices.append(_old_row(cells, columns))
            elif part == "PROCESSES":
                _add_process(reading.devices, dict(zip(columns, cells)))
    if parts.get("DEVICES") != 3:  # above and below the head, and at the end
        raise Unreadable("no whole table DEVICES in the answer")
    return reading


def _old_row(cells: list[str], columns: list[str]) -> Device:
    row = dict(zip(columns, cells))
    address = address_of(row.get("PCI Addr"))
    index = text.whole_number(row.get("DevID"))
    if len(cells) != len(columns) or not set(_COLUMNS) <= set(columns) or address is None or index is None:
        raise Unreadable(f"no device: {text.excerpt(' | '.join(cells), limit=200)}")
    used, _slash, total = row["Memory"].partition("/")
    unit = total.split()[-1] if total.split() else None
    readings = Readings(
        utilization_percent=percent(row["UseRate"]), memory_used_bytes=text.size_bytes(used.strip(), unit)
    )
    return Device(
        index=index,
        vendor="kunlunxin",
        model=text.clean(row["Model"]),
        serial=text.identifier(row["SN"]),
        pci_address=address,
        device_nodes=[row["INODE"]] if re.fullmatch(r"/dev/xpu\d+", row["INODE"]) else [],
        memory_bytes=text.size_bytes(total),
        link=Link(under_load=readings.utilization_percent > 0 if readings.utilization_percent is not None else None),
        health=live_health(readings, Ecc(), sick_words(cells)),
        readings=readings,
    )


def _add_process(found: list[Device], row: dict[str, str]) -> None:
    index, pid = text.whole_number(row.get("DevID")), text.whole_number(row.get("PID"))
    for device in found:
        if pid is not None and device.index == index:
            memory = text.size_bytes(row.get("Memory"))
            device.processes.append({"pid": pid, "name": text.clean(row.get("Command")), "memory_bytes": memory})


def read_table(output: str) -> Reply:
    """Return the devices of the table of ``xpu-smi``, three rows each; Unreadable when it is another program's."""
    lines = [line.strip() for line in output.splitlines() if line.strip().startswith(("|", "+"))]
    title = next((found for found in (_TITLE.search(line) for line in lines) if found), None)
    if title is None:
        raise Unreadable("no title of Kunlunxin's XPU-SMI in the answer")
    if not re.fullmatch(r"\+[-+]+\+", lines[-1]) or len(lines[-1]) < len(lines[0]):
        raise Unreadable("the table has no end")
    rows = [cells_of(line) for line in lines if line.startswith("|") and not re.match(r"\|[-=]", line)]
    rows = [cells for cells in rows if len(cells) == 3]
    head = tuple(" ".join(cell.split()) for cell in rows[0]) if rows else ()
    if head != _HEAD:
        raise Unreadable(f"other columns than are known: {' | '.join(head)}")
    if len(rows) % 3:
        raise Unreadable("a device has not three rows")
    reading = Reply(driver_version=text.clean(title[1]))
    for first, second, _third in zip(rows[3::3], rows[4::3], rows[5::3]):
        reading.devices.append(_row(first, second))
    return reading


def _row(first: list[str], second: list[str]) -> Device:
    named, state = _NAMED.match(first[0]), _STATE.match(second[0])
    address = address_of(first[1].split()[0]) if first[1].split() else None
    used, _slash, total = second[1].partition("/")
    if named is None or state is None or address is None:
        raise Unreadable(f"no device: {text.excerpt(' | '.join(first), ' | '.join(second), limit=300)}")
    use = percent(second[2].split()[0] if second[2].split() else None)
    readings = Readings(
        temperature_c=text.celsius(state["temperature"]),
        power_watts=text.watts(state["power"]),
        power_limit_watts=text.watts(state["limit"]),
        utilization_percent=use,
        memory_used_bytes=text.size_bytes(used),
    )
    ecc = Ecc(uncorrected_volatile=text.whole_number(first[2]))
    sick = sick_words([first[2], *state.groups(), *second[1:]])
    if not first[2] or not text.counted(first[2]):
        sick.append(f"{_HEAD[2]} {first[2]}".strip())
    return Device(
        index=int(named["index"]),
        vendor="kunlunxin",
        model=text.clean(named["name"]),
        pci_address=address,
        memory_bytes=text.size_bytes(total),
        link=Link(under_load=None if use is None else use > 0),
        health=live_health(readings, ecc, sick),
        ecc=ecc,
        readings=readings,
    )


_VERSIONS = (
    VersionSource("driver_kernel", "kunlunxin", FILE, "/sys/module/kunlun/version", r"^(\d\S*)"),
    VersionSource("driver_kernel", "kunlunxin", FILE, "/sys/module/xpu_driver/version", r"^(\d\S*)"),
)


# As the vendor starts a container; no source names a kind, this one is ours.
_CONTAINER = ContainerAccess(kind="kunlunxin.com/xpu", control_nodes=("/dev/xpuctrl",))


class Kunlunxin(Vendor):
    """Kunlunxin XPUs (the vendor id is Baidu's)."""

    name = "kunlunxin"
    pci_vendors = ("1d22",)
    # "xpu_driver" before release 4.0.
    kernel_modules = ("kunlun", "xpu_driver")
    versions = _VERSIONS
    container = _CONTAINER

    def query(self, runner, functions: list[pci.Function], timeout_seconds: float) -> Answer:
        """Ask xpu_smi, and xpu-smi where that is not there; see the module."""
        answer = Answer()
        reading = ask_once(answer, runner, self.name, ["xpu_smi", "-m"], read_lines, timeout_seconds, _REASONS)
        first = answer.tools[0]
        # Asked again only where the tool came back without saying why it can't: for the same release, another form.
        if reading is None and first.rc is not None and first.reason is None:
            reading = ask_once(answer, runner, self.name, ["xpu_smi"], read_old_table, timeout_seconds, _REASONS)
        if first.state == TOOL_ABSENT and functions and runner.which("xpu-smi"):
            reading = ask_once(answer, runner, self.name, ["xpu-smi"], read_table, timeout_seconds, _REASONS)
            _leave_to_intel(answer)
        take_all(answer, reading, functions)
        add_driver(runner, self.name, self.kernel_modules, answer, functions)
        return answer

    def device_nodes(self, runner, device: Device) -> list[str]:
        """Return /dev/xpuN as the tool or the kernel ties it to the card; the number of the card is not N by rule."""
        nodes = [node for node in device.device_nodes if runner.glob(node)]
        return nodes or nodes_below(runner, device.pci_address, r"xpu\d+")


def _leave_to_intel(answer: Answer) -> None:
    """Take Intel's program of the same name for not installed; what it said is no fault of this host."""
    tool = answer.tools[-1]
    if tool.state not in (TOOL_OK, TOOL_HUNG) and _INTEL.search(tool.excerpt):
        tool.state, tool.reason, tool.excerpt = TOOL_ABSENT, None, "this xpu-smi is Intel's"
        answer.errors.pop()
