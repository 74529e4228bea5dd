# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Iluvatar CoreX: ixsmi, whose XML looks like that of nvidia-smi but is not the same.

A healthy host costs one command, ``ixsmi -q -x``. Where the XML is damaged, the table (``ixsmi``) is read; what is
missing then is asked card by card (``-q -x -i N``), N being the tool's number, which the bus does not know.

A BI-V150 carries two chips with a PCI function, a UUID and a number each, and one serial: two devices. Power of the
whole board is told by every second chip, or by both; it is the board's, so a device gets its own chip's power or none.

Recorded: XML of drivers 4.2.0 and 4.4.0, the table of 4.1.0. Never recorded: a sick card, an error text, a process row
of the table. The count of ``ecc_errors`` is taken for that since the driver was loaded, as the XML does not say.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .. import pci, text
from ..model import TOOL_ABSENT, Device, Ecc, Health, Link, Readings, Tool
from ..runner import Runner
from ..tools import (
    NUMBER,
    Form,
    Reply,
    add_driver,
    address_of,
    ask,
    ask_missing,
    generation_gts,
    rows,
    sick,
    worst,
)
from ..xml_answer import xml_tree
from .base import FILE, Answer, Unreadable, Vendor, VersionSource

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

# The tool does not find its own library unless it is told where that is.
LIBRARIES = "LD_LIBRARY_PATH=/usr/local/corex/lib64:/usr/local/corex/lib"

_REASONS = (
    ("driver/library version mismatch", "driver_library_mismatch"),
    ("couldn't communicate with the", "driver_not_loaded"),
    ("driver not loaded", "driver_not_loaded"),
    ("permission denied", "no_permission"),
    ("insufficient permissions", "no_permission"),
    ("no devices were found", "no_devices"),
)
_HEADER = re.compile(r"IX-ML:\s*(\S+)\s+Driver Version:\s*(\S+)")


def parse_query(output: str) -> Reply:
    """Return the devices of ``ixsmi -q -x``; Unreadable when it is cut off, damaged or something else."""
    root, around = xml_tree(output, "ixsmi_log")
    driver = text.clean(root.findtext("driver_version"))
    devices = [_device(gpu, index, driver) for index, gpu in enumerate(root.findall("gpu"))]
    return Reply(devices, text.whole_number(root.findtext("attached_gpus")), driver, driver, around)


def _device(gpu: Element, index: int, driver: str | None) -> Device:
    def told(path: str) -> str | None:
        return text.clean(gpu.findtext(path))

    minor, ids = text.whole_number(told("minor_number")), told("pci/pci_device_id") or ""
    busy = text.number(told("utilization/gpu_util"))
    return Device(
        index=index,
        vendor="iluvatar",
        model=told("product_name"),
        serial=text.identifier(gpu.findtext("serial")),
        uuid=text.identifier(gpu.findtext("uuid")),
        # Some releases leave the address out of the PCI part.
        pci_address=address_of(told("pci/pci_bus_id")) or address_of(gpu.get("id")),
        pci_id=f"{ids[4:]}:{ids[:4]}".lower() if re.fullmatch("[0-9A-Fa-f]{4}1E3E", ids, re.I) else None,
        device_nodes=[f"/dev/iluvatar{minor}"] if minor is not None else [],
        driver_version=driver,
        firmware_version=told("vbios_version"),
        memory_bytes=text.size_bytes(told("memory_usage/total")),
        link=Link(
            speed_gts=generation_gts(told("pci/pci_gpu_link_info/pcie_gen/current_link_gen")),
            width=pci.width(told("pci/pci_gpu_link_info/link_widths/current_link_width")),
            max_speed_gts=generation_gts(told("pci/pci_gpu_link_info/pcie_gen/max_link_gen")),
            max_width=pci.width(told("pci/pci_gpu_link_info/link_widths/max_link_width")),
            under_load=None if busy is None else busy > 0,
        ),
        health=_health(gpu),
        ecc=Ecc(
            corrected_volatile=text.whole_number(told("ecc_errors/single_bit")),
            uncorrected_volatile=text.whole_number(told("ecc_errors/double_bit")),
        ),
        readings=Readings(
            temperature_c=text.celsius(told("temperature/gpu_temp")),
            temperature_limit_c=text.celsius(told("temperature/gpu_temp_slow_threshold")),
            memory_temperature_c=text.celsius(told("temperature/memory_temp")),
            power_watts=text.watts(told("power_readings/gpu_power_draw")),
            power_limit_watts=text.watts(told("power_readings/current_gpu_power_limit")),
            utilization_percent=busy,
            memory_used_bytes=text.size_bytes(told("memory_usage/used")),
        ),
        processes=[
            {
                "pid": pid,
                "name": text.clean(process.findtext("process_name")),
                "memory_bytes": text.size_bytes(process.findtext("used_memory")),
            }
            for process in gpu.findall("processes/process_info")
            for pid in [text.whole_number(process.findtext("pid"))]
            if pid is not None
        ],
        source=f"ixsmi {driver}" if driver else "ixsmi",
    )


def _health(gpu: Element) -> Health:
    """Return the health that the answer proves: a count of uncorrected errors that is 0."""
    # Names of programs may say anything.
    parts = [part for part in gpu if part.tag != "processes"]
    found = sick((element.tag, element.text) for part in parts for element in part.iter())
    errors = text.whole_number(gpu.findtext("ecc_errors/double_bit"))
    if errors:
        found.append(("critical", f"{errors} uncorrected memory errors"))
    return worst(found, 0 if errors is None else 1)


def parse_table(output: str) -> Reply:
    """Return the devices of plain ``ixsmi``: two rows each; Unreadable for a row that is neither."""
    table = rows(output)
    header = next((found for cells in table for found in [_HEADER.search(cells[0])] if found), None)
    if header is None:
        raise Unreadable("no header of ixsmi in the answer")
    version, driver = (text.clean(word) for word in header.groups())
    devices: list[Device] = []
    upper: list[str] | None = None
    ended = False
    for cells in table:
        if cells[0].startswith("Processes:"):
            ended = True
            break
        if len(cells) != 3 or cells[1].startswith(("Bus-Id", "Memory-Usage")):
            continue
        if upper is None:
            upper = cells
        else:
            devices.append(_from_rows(upper, cells, version, driver))
            upper = None
    if upper is not None or not ended:
        raise Unreadable("the table has no end")
    return Reply(devices, tool_version=version, driver_version=driver)


def _from_rows(upper: list[str], lower: list[str], version: str | None, driver: str | None) -> Device:
    """Return the device of ``0 Name | address | clocks`` and ``Fan Temp Perf Pwr | used / total | util mode``."""
    number, _blank, name = upper[0].partition(" ")
    index, place = text.whole_number(number), address_of(upper[1])
    values = re.fullmatch(r"(\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s*/\s*(\S+)", lower[0])
    used, slash, total = lower[1].partition("/")
    if index is None or place is None or not values or not slash or not lower[2]:
        raise Unreadable(f"not a device: {text.excerpt(' | '.join(upper + lower), limit=200)}")
    busy = text.number(lower[2].split()[0])
    return Device(
        index=index,
        vendor="iluvatar",
        model=text.clean(name),
        pci_address=place,
        driver_version=driver,
        memory_bytes=text.size_bytes(total),
        link=Link(under_load=None if busy is None else busy > 0),
        # The power of the table is that of the board, printed once for its chips.
        readings=Readings(
            temperature_c=text.celsius(values[2]),
            utilization_percent=busy,
            memory_used_bytes=text.size_bytes(used),
        ),
        source=f"ixsmi {version or ''}".strip(),
    )


_VERSIONS = (VersionSource("driver_kernel", "iluvatar", FILE, "/sys/module/iluvatar/version", r"^(\d\S*)"),)


class Iluvatar(Vendor):
    """Iluvatar CoreX BI and MR."""

    name = "iluvatar"
    pci_vendors = ("1e3e",)
    kernel_modules = ("iluvatar",)
    versions = _VERSIONS

    def query(self, runner: Runner, functions: list[pci.Function], timeout_seconds: float) -> Answer:
        """Ask ixsmi; see the module for the order."""
        answer = Answer()
        tool = Tool("ixsmi", self.name, state=TOOL_ABSENT, command="ixsmi -q -x")
        answer.tools.append(tool)
        path, env = runner.which("ixsmi"), runner.which("env")
        if path is not None:
            program = [env, LIBRARIES, path] if env and runner.glob("/usr/local/corex/lib*") else [path]
            forms = [Form(("-q", "-x"), parse_query), Form((), parse_table)]
            ask(runner, program, forms, tool, answer, timeout_seconds, _REASONS)
            alone = Form(("-q", "-x", "-i", NUMBER), parse_query)
            ask_missing(runner, program, alone, functions, tool, answer, timeout_seconds)
        nodes = set(runner.glob("/dev/iluvatar[0-9]*"))
        for device in answer.devices:
            device.device_nodes = [node for node in device.device_nodes if node in nodes]
        add_driver(runner, self.name, self.kernel_modules, answer, functions)
        return answer

    def device_nodes(self, runner: Runner, device: Device) -> list[str]:
        """Return /dev/iluvatarN; N is the minor number, which only the tool tells."""
        return device.device_nodes
