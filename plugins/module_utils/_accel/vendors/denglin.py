# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Denglin: dlsmi query --xml-format.

A healthy host costs one command. The XML has no declaration and elements of its own names, though it looks like
another vendor's. Four chips of one board are four devices: each has its own address and UUID, all have the serial
number of the board. The product name of a chip ends in its position on the board ("KS38 QUAD-3"), which is taken off,
so that a site declares one model. A link of four lanes is right for such a chip.

The name of the kernel module is not known, nor is that of the device nodes; these are found where the kernel hangs them
below the PCI function.

Source: recorded output of 2.2.1.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .. import pci, text
from ..model import TOOL_FAILED, Device, Ecc, Health, Link, Readings, Repair
from ..tools import (
    Reply,
    add_driver,
    address_of,
    ask_once,
    generation_gts,
    live_health,
    nodes_below,
    percent,
    sick_words,
    take_all,
)
from ..xml_answer import xml_tree
from .base import Answer, Unreadable, Vendor

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_POSITION = re.compile(r"^(?P<product>.+)-(?P<position>\d)$")
# Element below clocks_throttle_reasons -> word of ``model.THROTTLES``.
_THROTTLES = {
    "idle": "idle",
    "applications_clocks_setting": "application_clocks",
    "sw_power_cap": "power_cap",
    "hw_slowdown": "hardware",
    "hw_thermal_slowdown": "thermal",
    "hw_power_brake_slowdown": "power_brake",
    "sync_boost": "sync_boost",
    "sw_thermal_slowdown": "thermal",
    "display_clock_setting": "display",
}
# Of these the card is not as it should be; the others are a choice or rest.
_FAULTS = ("hardware", "thermal", "power_brake")


def read_query(output: str) -> Reply:
    """Return the devices of the XML; Unreadable when it is cut off, damaged or something else.

    Elements are taken by their full path: names repeat below different parents.
    """
    root, around = xml_tree(output, "dlsmi_log")
    version = text.clean(root.findtext("driver_version"))
    reading = Reply(around=around, tool_version=version, driver_version=version)
    chips = root.findall("gpu")
    attached = text.whole_number(root.findtext("attached_gpus"))
    if attached is None:
        raise Unreadable("no number of attached devices in the answer")
    if attached != len(chips):
        reading.notes.append(f"{attached} devices are attached, {len(chips)} described")
    for index, chip in enumerate(chips):
        device = _device(chip, index)
        if device.pci_address is None:
            reading.notes.append(f"device {index} tells no address")
        else:
            reading.devices.append(device)
    return reading


def _device(chip: Element, index: int) -> Device:
    def told(path: str) -> str | None:
        return text.clean(chip.findtext(path))

    ids = told("pci/device_id") or ""
    name = _POSITION.match(told("product_name") or "")
    several = name is not None and (told("multigpu_board") or "").lower() == "yes"
    readings = _readings(chip)
    ecc = Ecc(
        corrected_volatile=text.whole_number(told("ecc_errors/volatile/single_bit/total")),
        uncorrected_volatile=text.whole_number(told("ecc_errors/volatile/double_bit/total")),
        corrected_aggregate=text.whole_number(told("ecc_errors/aggregate/single_bit/total")),
        uncorrected_aggregate=text.whole_number(told("ecc_errors/aggregate/double_bit/total")),
    )
    repair = _repair(chip)
    use = readings.utilization_percent
    return Device(
        index=index,
        vendor="denglin",
        model=name["product"] if name and several else told("product_name"),
        serial=text.identifier(chip.findtext("serial_number")),
        uuid=text.identifier(chip.findtext("uuid")),
        pci_address=address_of(told("pci/bus_id") or chip.get("id")),
        pci_id=f"{ids[6:]}:{ids[2:6]}".lower() if re.fullmatch("0x[0-9A-Fa-f]{4}1E27", ids, re.I) else None,
        module_id=int(name["position"]) if name and several else None,
        firmware_version=told("fw_version") or told("vbios_version"),
        memory_bytes=text.size_bytes(told("memory_usage/total")),
        link=Link(
            speed_gts=generation_gts(told("pci/gpu_link_info/pcie_generation/current")),
            width=pci.width(told("pci/gpu_link_info/link_width/current")),
            max_speed_gts=generation_gts(told("pci/gpu_link_info/pcie_generation/max")),
            max_width=pci.width(told("pci/gpu_link_info/link_width/max")),
            under_load=None if use is None else use > 0,
        ),
        health=_health(chip, readings, ecc, repair),
        ecc=ecc,
        repair=repair,
        readings=readings,
        processes=_processes(chip),
    )


def _readings(chip: Element) -> Readings:
    words = {name: (chip.findtext(f"clocks_throttle_reasons/{name}") or "").strip().lower() for name in _THROTTLES}
    told = [name for name, word in words.items() if word in ("active", "not active")]
    active = [_THROTTLES[name] for name in told if words[name] == "active"]
    return Readings(
        temperature_c=text.celsius(chip.findtext("temperature/gpu_current_temp")),
        temperature_limit_c=text.celsius(chip.findtext("temperature/gpu_slowdown_temp")),
        memory_temperature_c=text.celsius(chip.findtext("temperature/memory_current_temp")),
        power_watts=text.watts(chip.findtext("power_readings/power_draw")),
        power_limit_watts=text.watts(chip.findtext("power_readings/power_limit")),
        utilization_percent=percent(chip.findtext("utilization/gpu")),
        memory_used_bytes=text.size_bytes(chip.findtext("memory_usage/used")),
        throttles=list(dict.fromkeys(active)) if told else None,
    )


def _repair(chip: Element) -> Repair:
    """Return the retired pages: those for double-bit and for many single-bit errors together."""
    counts = [
        text.whole_number(chip.findtext(f"retired_pages/{name}")) for name in ("single_bit_ecc", "double_bit_ecc")
    ]
    pending = (chip.findtext("retired_pages/pending") or "").strip().lower()
    known = [count for count in counts if count is not None]
    state = {"yes": "reset", "no": "ok"}.get(pending, "unknown")
    return Repair(state=state, retired_pages=sum(known) if len(known) == len(counts) else None)


def _health(chip: Element, readings: Readings, ecc: Ecc, repair: Repair) -> Health:
    fields = [e.text for part in chip if part.tag not in ("processes", "accounting_processes") for e in part.iter()]
    sick = sick_words(fields)
    for path in ("ecc_errors/volatile/double_bit/total", "ecc_errors/aggregate/double_bit/total"):
        if not text.counted(chip.findtext(path)):
            sick.append(f"{path} {chip.findtext(path)}")
    pending = chip.findtext("retired_pages/pending")
    if repair.state == "unknown" and text.state_of(pending) not in (text.UNSUPPORTED, text.UNREADABLE):
        sick.append(f"retired_pages/pending {pending}")
    health = live_health(readings, ecc, sick)
    if health.state == "ok" and chip.find("ecc_errors/volatile/double_bit/total") is None:
        # Where a chip counts none, the tool says so (N/A).
        health = Health("unknown", ["the tool tells nothing of memory errors"])
    reasons = [f"slowed down: {word}" for word in readings.throttles or () if word in _FAULTS]
    if repair.state == "reset":
        reasons.append("memory pages wait for a reset to be retired")
    if reasons:
        health = Health("critical" if health.state == "critical" else "warning", health.reasons + reasons)
    return health


def _processes(chip: Element) -> list[dict]:
    """Return the processes, as far as an entry tells a pid; how one looks in full was never seen."""
    found = []
    for entry in chip.findall("processes/*"):
        pid = text.whole_number(entry.findtext("pid"))
        if pid is not None:
            name, memory = entry.findtext("process_name"), entry.findtext("used_memory")
            found.append({"pid": pid, "name": text.clean(name), "memory_bytes": text.size_bytes(memory)})
    return found


class Denglin(Vendor):
    """Denglin GPGPUs."""

    name = "denglin"
    pci_vendors = ("1e27",)

    def query(self, runner, functions: list[pci.Function], timeout_seconds: float) -> Answer:
        """Ask dlsmi once, for everything."""
        answer = Answer()
        reading = ask_once(answer, runner, self.name, ["dlsmi", "query", "--xml-format"], read_query, timeout_seconds)
        take_all(answer, reading, functions)
        if reading and any("are attached" in note for note in reading.notes):
            answer.tools[0].state = TOOL_FAILED
        add_driver(runner, self.name, self.kernel_modules, answer, functions)
        return answer

    def device_nodes(self, runner, device: Device) -> list[str]:
        """Return the nodes that the kernel hangs below the function; their name is not known."""
        return nodes_below(runner, device.pci_address, r"dl\w*\d+")
