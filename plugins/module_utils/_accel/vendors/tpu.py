# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Google TPU: the PCI bus, and the tables of tpu-info.

The bus tells nearly everything that is known: the product by its device id (v2 and v3 by the subsystem id), the node by
the accel class or the IOMMU group. There is no serial number and no unique id, so the place identifies a chip.
``tpu-info`` lists chips by device node, which ties a row to an address; it tells the processes and, while libtpu runs a
workload, memory and duty cycle. Its second table numbers chips its own way: "8, 9, 12, 13" for /dev/vfio/0 to 3 has
been seen. It is believed only where its numbers are those of the nodes; else only what all rows say alike (the size of
the memory) is taken. That a workload is absent is no fault, and nothing here is a word for health: it stays unknown
without live values.

Google's vendor id is also that of network functions and disks of its machines, so the device id decides.

Sources: samples in the documentation of tpu-info; ids as tpu-info and JAX list them. No sysfs of a real host was seen.
"""

from __future__ import annotations

import os
import re

from .. import pci, text
from ..model import Device, Ecc, Readings
from ..tools import Reply, add_driver, ask_once, cells_of, live_health, nodes_below, percent, take_all
from .base import Answer, ContainerAccess, Unreadable, Vendor

_MODELS = {
    "005e": "TPU v4",
    "0062": "TPU v5p",
    "0063": "TPU v5e",
    "006f": "TPU v6e",
    "0076": "TPU v7x",
}
# v2 and v3 have one device id.
_BY_SUBSYSTEM = {("0027", "004e"): "TPU v2", ("0027", "004f"): "TPU v3"}
_CHIPS = ["Chip", "Type", "Devices", "PID"]
_USE = ["Chip", "HBM Usage (GiB)", "Duty cycle"]
# Tables are drawn with lines of another alphabet where a terminal is believed to be.
_LINES = str.maketrans({"│": "|", "┃": "|", "║": "|"})


def model_of(function: pci.Function) -> str | None:
    """Return the product that a device id stands for, None where it is not known."""
    return _MODELS.get(function.device) or _BY_SUBSYSTEM.get((function.device, function.subsystem_device))


def read_tables(output: str) -> Reply:
    """Return the chips of tpu-info; ``device_nodes`` is what ties each to an address. Unreadable without the list."""
    tables: dict[str, list[list[str]]] = {}
    title = ""
    lines = [line.strip() for line in output.translate(_LINES).splitlines()]
    for word in lines:
        # A row that does not end was cut: half a number is another number.
        if word.startswith("|") and word.endswith("|") and not re.fullmatch(r"[|\-+\s]+", word):
            tables.setdefault(title, []).append(cells_of(word))
        elif re.match(r"^[A-Za-z]", word):
            title = word
    chips = tables.get("TPU Chips", [])
    if not chips or chips[0] != _CHIPS:
        raise Unreadable("no table of TPU chips in the answer")
    # A table without a frame has no end of its own; something, at least a blank line, follows this one.
    if title == "TPU Chips" and lines[-1].startswith("|"):
        raise Unreadable("the table of TPU chips was cut off")
    reading = Reply()
    version = re.search(r"(?m)^Libtpu version:\s*(\S+)", output)
    reading.driver_version = text.clean(version[1]) if version else None
    for row in chips[1:]:
        node = re.fullmatch(r"/dev/(?:vfio/|accel)(\d{1,6})", row[0])
        if len(row) != len(_CHIPS) or node is None:
            reading.notes.append(f"no chip: {text.excerpt(' | '.join(row), limit=200)}")
            continue
        pid = text.whole_number(row[3])
        reading.devices.append(
            Device(
                index=int(node[1]),
                vendor="tpu",
                model=text.clean(re.sub(r"\s+chip$", "", row[1])),
                device_nodes=[row[0]],
                processes=[{"pid": pid, "name": None, "memory_bytes": None}] if pid is not None else [],
            )
        )
    use = tables.get("TPU Runtime Utilization", [])
    _add_use(reading.devices, [row for row in use[1:] if len(row) == 3] if use and use[0] == _USE else [])
    return reading


def _add_use(found: list[Device], rows: list[list[str]]) -> None:
    totals = {text.size_bytes(row[1].partition("/")[2]) for row in rows}
    if len(totals) == 1 and len(rows) == len(found):
        size = totals.pop()
        for device in found:
            device.memory_bytes = size
    by_number = {text.whole_number(row[0]): row for row in rows}
    for device in found:
        if set(by_number) == {one.index for one in found}:
            row = by_number[device.index]
            device.readings = Readings(
                utilization_percent=percent(row[2]), memory_used_bytes=text.size_bytes(row[1].partition("/")[0])
            )
            share = device.readings.utilization_percent
            device.link.under_load = None if share is None else share > 0
        device.health = live_health(device.readings, Ecc())


# A chip that is driven from user space needs the node of VFIO too. The kind has the name of the resource in Kubernetes.
_CONTAINER = ContainerAccess(kind="google.com/tpu", control_nodes=("/dev/vfio/vfio",))


class Tpu(Vendor):
    """Google TPUs of cloud machines; the Edge TPU (another vendor id) is none of them."""

    name = "tpu"
    pci_vendors = ("1ae0",)
    # Their class is not told by any source, and a class of none (ff00) would not surprise.
    pci_classes = ()
    # Newer chips (v6e, v7x) are driven from user space.
    kernel_modules = ("vfio_pci",)
    container = _CONTAINER

    def owns(self, function: pci.Function) -> bool:
        """Tell whether a function is a TPU: the device id alone says so."""
        return function.vendor in self.pci_vendors and (function.device in _MODELS or function.device == "0027")

    def query(self, runner, functions: list[pci.Function], timeout_seconds: float) -> Answer:
        """Ask tpu-info, and name the products of the bus; see the module."""
        answer = Answer()
        reading = ask_once(answer, runner, self.name, ["tpu-info"], read_tables, timeout_seconds)
        nodes = {node: one.address for one in functions for node in _nodes(runner, one.address)}
        libtpu = reading.driver_version if reading else None
        if reading:
            reading.driver_version = None  # that of libtpu, which is no driver
            for device in reading.devices:
                device.pci_address = nodes.get(device.device_nodes[0])
        take_all(answer, reading, functions)
        answered = {device.pci_address for device in answer.devices}
        if reading is None and answer.tools[0].rc is None and not answer.hung:
            # Without the tool the bus is all there is, and it knows the products.
            answer.devices = [
                Device(vendor=self.name, model=model_of(one), pci_address=one.address)
                for one in functions
                if one.address not in answered and one.responding
            ]
        add_driver(runner, self.name, self.kernel_modules, answer, functions)
        for known in answer.drivers:
            known.library_version = libtpu
        return answer

    def device_nodes(self, runner, device: Device) -> list[str]:
        """Return /dev/accelN, or /dev/vfio/N where the chip is driven from user space."""
        nodes = _nodes(runner, device.pci_address) if device.pci_address else device.device_nodes
        return [node for node in nodes if runner.glob(node)]


def _nodes(runner, address: str) -> list[str]:
    nodes = nodes_below(runner, address, r"accel\d+")
    group = os.path.basename(runner.realpath(f"/sys/bus/pci/devices/{address}/iommu_group"))
    return nodes or ([f"/dev/vfio/{group}"] if group.isdigit() else [])
