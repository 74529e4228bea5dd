# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Google TPU: tables that name nodes, and the bus that names places."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import Device, Readings
from ansible_collections.accel.cluster.plugins.module_utils._accel.pci import Function
from ansible_collections.accel.cluster.plugins.module_utils._accel.tools import Unreadable
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors.tpu import Tpu, model_of, read_tables
from doubles import RecordedRunner

OWN = Path(__file__).resolve().parents[5] / "recordings/tpu"
GIB = 1024**3
CARDS = ("0000:00:04.0", "0000:00:05.0")
# The groups are numbered the other way round than the addresses.
GROUPS = {
    f"/sys/bus/pci/devices/{address}/iommu_group": f"/sys/kernel/iommu_groups/{1 - n}"
    for n, address in enumerate(CARDS)
}
NODES = {"/dev/vfio/0": "", "/dev/vfio/1": "", "/dev/vfio/vfio": ""}


def own(name: str) -> str:
    return (OWN / name).read_text(encoding="utf-8")


def functions(device: str = "006f"):
    return [Function(one, vendor="1ae0", device=device) for one in CARDS]


def ask(answer, files=None, links=None, **more):
    files, links = NODES if files is None else files, GROUPS if links is None else links
    runner = RecordedRunner({("tpu-info",): answer}, files, links=links, **more)
    return Tpu().query(runner, functions(), 10), runner


def test_recorded_tables(recordings):
    reading = read_tables((recordings / "google/tpu-info_v6e_4chips.txt").read_text(encoding="utf-8"))
    assert reading.driver_version == "0.0.19.dev20250721+nightly"
    assert [(one.index, one.model, one.device_nodes) for one in reading.devices] == [
        (number, "TPU v6e", [f"/dev/vfio/{number}"]) for number in range(4)
    ]
    assert {one.memory_bytes for one in reading.devices} == {int(31.25 * GIB)}
    assert [one.readings for one in reading.devices] == [
        Readings(utilization_percent=100, memory_used_bytes=int(used * GIB)) for used in (18.45, 10.40, 10.40, 10.40)
    ]
    assert [[one["pid"] for one in device.processes] for device in reading.devices] == [[1469584]] * 4


def test_recorded_tables_with_two_numberings(recordings):
    """Chips 8, 9, 12, 13 of the second table may be any of /dev/vfio/0 to 3: their use is nobody's."""
    reading = read_tables((recordings / "google/tpu-info_streaming_v6e.txt").read_text(encoding="utf-8"))
    assert [one.device_nodes for one in reading.devices] == [[f"/dev/vfio/{number}"] for number in range(4)]
    assert {one.memory_bytes for one in reading.devices} == {int(31.25 * GIB)}
    assert [one.readings for one in reading.devices] == [Readings()] * 4
    assert {one.health.state for one in reading.devices} == {"unknown"}


def test_rows_are_placed_by_their_node():
    answer, _runner = ask((0, own("tpu-info_2xv6e.txt"), ""))
    assert [(one.pci_address, one.readings.utilization_percent) for one in answer.devices] == [
        ("0000:00:05.0", 87.5),
        ("0000:00:04.0", 0),
    ]
    assert [one.link.under_load for one in answer.devices] == [True, False]
    assert [one.health.state for one in answer.devices] == ["ok", "ok"]
    assert (answer.count, answer.drivers[0].library_version, answer.devices[0].driver_version) == (2, "0.0.21", None)


def test_idle_chips_in_a_table_with_frames():
    nodes = {"/dev/accel0": "", "/dev/accel1": ""}
    for number, address in enumerate(CARDS):
        nodes[f"/sys/bus/pci/devices/{address}/accel/accel{number}/dev"] = f"120:{number}"
    answer, _runner = ask((0, own("tpu-info_idle_lines.txt"), ""), nodes, {})
    assert [(one.pci_address, one.model, one.processes) for one in answer.devices] == [
        ("0000:00:04.0", "TPU v4", []),
        ("0000:00:05.0", "TPU v4", []),
    ]
    assert {(one.health.state, one.memory_bytes) for one in answer.devices} == {("unknown", None)}


def test_without_the_tool_the_bus_names_the_products():
    answer, _runner = ask((0, "", ""), tools=())
    assert [(one.pci_address, one.model, one.health.state) for one in answer.devices] == [
        ("0000:00:04.0", "TPU v6e", "unknown"),
        ("0000:00:05.0", "TPU v6e", "unknown"),
    ]
    assert answer.count is None


@pytest.mark.parametrize(
    ("device", "subsystem", "model"),
    [
        ("0027", "004e", "TPU v2"),
        ("0027", "004f", "TPU v3"),
        ("0027", "ffff", None),
        ("005e", "", "TPU v4"),
        ("0062", "", "TPU v5p"),
        ("0063", "", "TPU v5e"),
        ("006f", "", "TPU v6e"),
        ("0076", "", "TPU v7x"),
    ],
)
def test_products(device, subsystem, model):
    function = Function("0000:00:04.0", vendor="1ae0", device=device, subsystem_device=subsystem, pci_class="ff0000")
    assert (model_of(function), Tpu().owns(function)) == (model, True)


@pytest.mark.parametrize("device", ["0042", "001f", "0065"])
def test_networks_and_disks_of_google_are_no_devices(device):
    assert not Tpu().owns(Function("0000:00:03.0", vendor="1ae0", device=device, pci_class="020000"))


def test_columns_that_moved_are_not_believed():
    text = own("tpu-info_2xv6e.txt")
    with pytest.raises(Unreadable):
        read_tables(text.replace("| Chip        | Type         |", "| Type        | Chip         |", 1))
    moved = read_tables(text.replace("| Chip | HBM Usage (GiB)       |", "| Chip | Duty                  |"))
    assert [one.readings for one in moved.devices] == [Readings()] * 2
    odd = read_tables(text.replace("/dev/vfio/1 ", "/dev/vfio/? "))
    assert ([one.index for one in odd.devices], len(odd.notes)) == ([0], 1)


def test_no_chips_and_many_chips():
    text = own("tpu-info_2xv6e.txt")
    head, rest = text.split("| /dev/vfio/0", 1)
    tail = rest[rest.index("\n\n") :]
    none, _runner = ask((0, head.rstrip("\n") + tail, ""))
    assert (none.count, none.tools[0].reason) == (0, "no_devices")
    rows = "".join(f"| /dev/vfio/{n} | TPU v6e chip | 1       | None |\n" for n in range(64)).rstrip()
    assert ask((0, head + rows + tail, ""))[0].count == 64


def test_device_nodes():
    runner = RecordedRunner(files=NODES, links=GROUPS)
    assert Tpu().device_nodes(runner, Device(pci_address=CARDS[0])) == ["/dev/vfio/1"]
    assert Tpu().device_nodes(runner, Device(pci_address="0000:00:06.0")) == []
