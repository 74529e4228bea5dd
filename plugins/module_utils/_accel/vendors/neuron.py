# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""AWS Trainium and Inferentia: neuron-ls -j, its table where the JSON can't be used, and the driver's sysfs tree.

A healthy host costs one command. ``neuron-ls`` ties the number of a device to its address; serial number, product name
and error counters stand below that number in /sys/devices/virtual/neuron_device, which tells no address. So without
neuron-ls a device is known by the bus alone. Newer releases print the domain of an address, older ones leave it out.

Amazon's vendor id is also that of disks (EBS) and network functions (ENA, EFA), and the class of the devices is one
of a clock or a sensor (0880), so the device id decides.

Sources: neuron-ls and sysfs guide of the AWS Neuron documentation, recorded output, ids of the driver (neuron-driver).
"""

from __future__ import annotations

import re

from .. import pci, text
from ..model import TOOL_HUNG, Device, Ecc, Health
from ..tools import Reply, add_driver, address_of, ask_once, cells_of, json_documents, take_all
from .base import FILE, PACKAGE, PACKAGE_VERSION, Answer, ContainerAccess, Unreadable, Vendor, VersionSource

# Inf1, Trn1, Inf2, Trn2, Trn3.
_DEVICES = ("7064", "7065", "7066", "7067", "7164", "7264", "7364", "7564", "7565")
_TREE = "/sys/devices/virtual/neuron_device"
_COLUMNS = {"NEURON DEVICE", "NEURON MEMORY", "CONNECTED DEVICES", "PCI BDF"}
_REASONS = ((r"neuron (?:kernel )?(?:driver|module).*not|nrt_init failed", "driver_not_loaded"),)
# Below stats/hardware; sram and memory errors that nothing repairs.
_ERRORS = ("mem_ecc_uncorrected", "sram_ecc_uncorrected")


def read_json(output: str) -> Reply:
    """Return the devices of ``neuron-ls -j``: a list with one mapping a device.

    An entry without number or address is named in the notes; the others count.
    """
    documents, around = json_documents(output)
    listing = documents[0]
    if len(documents) != 1 or not isinstance(listing, list):
        raise Unreadable("the answer is not one list of devices")
    reading = Reply(around=around)
    peers: list[tuple[Device, list]] = []
    for entry in listing:
        fields = entry if isinstance(entry, dict) else {}
        index, address = text.whole_number(fields.get("neuron_device")), address_of(fields.get("bdf"))
        if index is None or address is None:
            reading.notes.append(f"no device: {text.excerpt(str(entry), limit=200)}")
            continue
        device = Device(
            index=index,
            vendor="neuron",
            pci_address=address,
            memory_bytes=text.whole_number(fields.get("memory_size")),
            processes=_processes(fields.get("neuron_processes")),
        )
        reading.devices.append(device)
        peers.append((device, fields.get("connected_to") or []))
    _connect(peers)
    return reading


def _processes(entries: object) -> list[dict]:
    found = []
    for entry in entries if isinstance(entries, list) else []:
        pid = text.whole_number(entry.get("pid")) if isinstance(entry, dict) else None
        if pid is not None:
            found.append({"pid": pid, "name": text.clean(entry.get("command")), "memory_bytes": None})
    return found


def read_table(output: str) -> Reply:
    """Return the devices of the table of neuron-ls (plain, wide, with topology below); Unreadable when it is cut off.

    Names of columns stand on two lines. A row without a number is one more process of the device above.
    """
    lines = [line.strip() for line in output.splitlines() if line.strip().startswith(("|", "+"))]
    rules = [place for place, line in enumerate(lines) if re.fullmatch(r"\+[-+]+\+", line)]
    if len(rules) < 3 or rules[-1] != len(lines) - 1 or len(lines[-1]) != len(lines[0]):
        raise Unreadable("no whole table in the answer of neuron-ls")
    head = [cells_of(line) for line in lines[rules[0] + 1 : rules[1]]]
    columns = [" ".join(" ".join(parts).split()) for parts in zip(*head)]
    if not set(columns) >= _COLUMNS:
        raise Unreadable(f"other columns than are known: {' | '.join(columns)}")
    reading = Reply()
    peers: list[tuple[Device, list]] = []
    for line in lines[rules[1] + 1 :]:
        cells = cells_of(line)
        if not line.startswith("|"):
            continue
        row = dict(zip(columns, cells))
        index, address = text.whole_number(row.get("NEURON DEVICE")), address_of(row.get("PCI BDF") or None)
        if len(cells) < len(columns) or (not row["NEURON DEVICE"] and not reading.devices):
            raise Unreadable(f"no device: {text.excerpt(line, limit=200)}")
        if row["NEURON DEVICE"]:
            if index is None or address is None:
                raise Unreadable(f"no device: {text.excerpt(line, limit=200)}")
            memory = text.size_bytes(row["NEURON MEMORY"])
            reading.devices.append(Device(index=index, vendor="neuron", pci_address=address, memory_bytes=memory))
            peers.append((reading.devices[-1], row["CONNECTED DEVICES"].split(",")))
        pid = text.whole_number(row.get("PID"))
        if pid is not None:
            name = text.clean(row.get("COMMAND"))
            reading.devices[-1].processes.append({"pid": pid, "name": name, "memory_bytes": None})
    _connect(peers)
    return reading


def _connect(peers: list[tuple[Device, list]]) -> None:
    """Set the ports: the tool lists which devices are connected, not whether the link between them runs."""
    addresses = {device.index: device.pci_address for device, _numbers in peers}
    for device, numbers in peers:
        known = [text.whole_number(number) for number in numbers] if isinstance(numbers, list) else []
        device.ports = [
            {
                "kind": "neuronlink",
                "index": place,
                "state": "unknown",
                "speed_gbps": None,
                "peer": addresses.get(number),
            }
            for place, number in enumerate(known)
            if number is not None
        ]


def add_tree(runner, device: Device) -> None:
    """Add what the driver tells of a device by its number: serial, product name, error counters, health.

    Counters are the driver's, so they count from when it was loaded. A counter that can be read proves that the device
    answers its driver.
    """
    home = f"{_TREE}/neuron{device.index}"
    device.serial = text.identifier(runner.read(f"{home}/info/serial_number"))
    device.model = text.clean(runner.read(f"{home}/info/architecture/device_name"))
    files = {name: f"{home}/stats/hardware/{name}" for name in _ERRORS}
    errors = {name: text.whole_number(runner.read(path)) for name, path in files.items()}
    device.ecc = Ecc(uncorrected_volatile=errors["mem_ecc_uncorrected"])
    raised = [f"{count} {name}" for name, count in errors.items() if count]
    if raised:
        device.health = Health("critical", [f"errors since the driver was loaded: {', '.join(raised)}"])
    elif unread := [name for name, count in errors.items() if count is None and runner.glob(files[name])]:
        device.health = Health("unknown", [f"can't be read: {', '.join(unread)}"])
    elif any(count is not None for count in errors.values()):
        device.health = Health("ok")
    else:
        device.health = Health("unknown", ["the driver shows no error counters"])


_VERSIONS = (
    VersionSource("driver_kernel", "neuron", FILE, "/sys/module/neuron/version", r"^(\d\S*)"),
    VersionSource("driver_kernel", "neuron", PACKAGE, "aws-neuronx-dkms", PACKAGE_VERSION),
    VersionSource("runtime", "neuron", PACKAGE, "aws-neuronx-runtime-lib", PACKAGE_VERSION),
    VersionSource("collectives", "neuron", PACKAGE, "aws-neuronx-collectives", PACKAGE_VERSION),
    VersionSource("container_toolkit", "neuron-oci-hook", PACKAGE, "aws-neuronx-oci-hook", PACKAGE_VERSION),
)


# The kind has the name of the vendor's resource in Kubernetes; the libraries belong to the image.
_CONTAINER = ContainerAccess(kind="aws.amazon.com/neuron")


class Neuron(Vendor):
    """AWS Trainium and Inferentia."""

    name = "neuron"
    pci_vendors = ("1d0f",)
    pci_classes = ("0880", "1200")
    kernel_modules = ("neuron",)
    versions = _VERSIONS
    container = _CONTAINER

    def owns(self, function: pci.Function) -> bool:
        """Tell whether a function is a Neuron device; see the module for why the device id decides."""
        return super().owns(function) and function.device in _DEVICES

    def query(self, runner, functions: list[pci.Function], timeout_seconds: float) -> Answer:
        """Ask neuron-ls for its JSON, for its table where that can't be read, and the driver for the rest."""
        answer = Answer()
        reading = ask_once(answer, runner, self.name, ["neuron-ls", "-j"], read_json, timeout_seconds, _REASONS)
        first = answer.tools[0]
        if reading is None and first.rc is not None and first.reason is None:
            reading = ask_once(answer, runner, self.name, ["neuron-ls"], read_table, timeout_seconds, _REASONS)
        take_all(answer, reading, functions)
        # A tool that hung waits for the driver; its files would too.
        if not any(tool.state == TOOL_HUNG for tool in answer.tools):
            for device in answer.devices:
                add_tree(runner, device)
        add_driver(runner, self.name, self.kernel_modules, answer, functions)
        return answer

    def device_nodes(self, runner, device: Device) -> list[str]:
        """Return /dev/neuronN; N is the number that neuron-ls gives the device."""
        return runner.glob(f"/dev/neuron{device.index}") if device.index is not None else []
