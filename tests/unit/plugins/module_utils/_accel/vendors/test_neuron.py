# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""AWS Neuron: neuron-ls as JSON and as a table, and the driver's own tree."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import Device, Ecc
from ansible_collections.accel.cluster.plugins.module_utils._accel.pci import Function
from ansible_collections.accel.cluster.plugins.module_utils._accel.tools import Unreadable
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors.neuron import Neuron, read_json, read_table
from doubles import HANG, RecordedRunner

OWN = Path(__file__).resolve().parents[5] / "recordings/neuron"
GIB = 1024**3
JSON, TABLE = ("neuron-ls", "-j"), ("neuron-ls",)
CARDS = ("0000:90:00.0", "0000:a7:00.0")
TREE = "/sys/devices/virtual/neuron_device/neuron"


def own(name: str) -> str:
    return (OWN / name).read_text()


def tree(number: int, serial: str, memory: str = "0", sram: str = "0") -> dict:
    return {
        f"{TREE}{number}/info/serial_number": f"{serial}\n",
        f"{TREE}{number}/info/architecture/device_name": "Trainium2\n",
        f"{TREE}{number}/stats/hardware/mem_ecc_uncorrected": f"{memory}\n",
        f"{TREE}{number}/stats/hardware/sram_ecc_uncorrected": f"{sram}\n",
    }


def ask(answers: dict, files=None):
    runner = RecordedRunner(answers, files)
    return Neuron().query(runner, [Function(one, vendor="1d0f", device="7364") for one in CARDS], 10), runner


@pytest.mark.parametrize("name", ["neuron-ls_topology_trn2n.txt", "neuron-ls_wide_trn2n.txt"])
def test_recorded_tables(recordings, name):
    reading = read_table((recordings / "aws" / name).read_text(encoding="utf-8"))
    # Read by eye: devices 0 to 15, whose buses follow no order.
    buses = ["cc", "b5", "b6", "cb", "6f", "58", "59", "6e", "9b", "84", "85", "9a", "f8", "e1", "e2", "f7"]
    assert [(one.index, one.pci_address) for one in reading.devices] == [
        (number, f"0000:{bus}:00.0") for number, bus in enumerate(buses)
    ]
    assert {one.memory_bytes for one in reading.devices} == {96 * GIB}
    assert [port["peer"][5:7] for port in reading.devices[0].ports] == ["f8", "cb", "6f", "b5"]  # 12, 3, 4, 1
    assert [port["peer"][5:7] for port in reading.devices[15].ports] == ["9a", "e2", "cb", "f8"]  # 11, 14, 3, 12
    pids = [[one["pid"] for one in device.processes] for device in reading.devices]
    assert pids == [[268911]] * 16 if "wide" in name else pids == [[]] * 16


def test_recorded_tree(recordings):
    """The listing in the documentation names the files that are read, and no others are."""
    listing = (recordings / "aws/neuron-sysfs-tree.txt").read_text(encoding="utf-8")
    names = {path.rpartition("/")[2] for path in tree(0, "x")}
    assert all(f" {name}\n" in listing for name in names)


@pytest.mark.parametrize("odd", ["", "Input/output error", "1,024", "-1"])
def test_a_counter_that_is_there_and_no_number_is_no_good_news(odd):
    for files in (tree(0, "a", memory=odd), tree(0, "a", sram=odd)):
        answer, _runner = ask({JSON: (0, own("neuron-ls_2xTrn2.json"), "")}, files)
        assert answer.devices[0].health.state == "unknown"
        assert "ecc_uncorrected" in answer.devices[0].health.reasons[0]


def test_json_and_tree():
    files = {**tree(0, "8a2f7c0011d3"), **tree(1, "8a2f7c0011d9"), "/sys/module/neuron/version": "2.21.37.0"}
    answer, runner = ask({JSON: (0, own("neuron-ls_2xTrn2.json"), "")}, files)
    assert runner.calls == [JSON]
    first, second = answer.devices
    assert (first.index, first.pci_address, first.serial, first.model) == (
        0,
        "0000:a7:00.0",
        "8a2f7c0011d3",
        "Trainium2",
    )
    # Newer releases print the domain.
    assert (second.index, second.pci_address, second.serial) == (1, "0000:90:00.0", "8a2f7c0011d9")
    assert {one.memory_bytes for one in answer.devices} == {96 * GIB}
    assert first.processes == [{"pid": 52311, "name": "python3 train.py --tp 4", "memory_bytes": None}]
    assert first.ports == [
        {"kind": "neuronlink", "index": 0, "state": "unknown", "speed_gbps": None, "peer": "0000:90:00.0"}
    ]
    assert [(one.health.state, one.ecc.uncorrected_volatile) for one in answer.devices] == [("ok", 0), ("ok", 0)]
    assert (first.driver_version, answer.drivers[0].kernel_version) == ("2.21.37.0", "2.21.37.0")


@pytest.mark.parametrize(("memory", "sram"), [("2", "0"), ("0", "1")])
def test_memory_errors_are_critical_on_the_right_card(memory, sram):
    files = {**tree(0, "8a2f7c0011d3"), **tree(1, "8a2f7c0011d9", memory, sram)}
    answer, _runner = ask({JSON: (0, own("neuron-ls_2xTrn2.json"), "")}, files)
    assert [one.health.state for one in answer.devices] == ["ok", "critical"]
    assert answer.devices[1].ecc == Ecc(uncorrected_volatile=int(memory))


def test_without_the_tree_nothing_is_proven():
    answer, _runner = ask({JSON: (0, own("neuron-ls_2xTrn2.json"), "")})
    assert {(one.serial, one.model, one.health.state) for one in answer.devices} == {(None, None, "unknown")}
    assert answer.devices[0].health.reasons == ["the driver shows no error counters"]


def test_the_table_where_the_json_is_damaged():
    answers = {JSON: (0, "[{", ""), TABLE: (0, own("neuron-ls_all-procs_2xTrn2.txt"), "")}
    answer, _runner = ask(answers, tree(0, "8a2f7c0011d3"))
    assert [(one.pci_address, one.serial) for one in answer.devices] == [
        ("0000:a7:00.0", "8a2f7c0011d3"),
        ("0000:90:00.0", None),
    ]
    # A row without a number is one more process of the device above.
    assert [[one["pid"] for one in device.processes] for device in answer.devices] == [[52311, 52390], [52390]]


def test_files_of_a_driver_that_hangs_are_not_read():
    class NoFiles(RecordedRunner):
        def read(self, path):
            assert not path.startswith(TREE)
            return super().read(path)

    answer = Neuron().query(NoFiles({JSON: HANG}, tree(0, "x")), [Function(one) for one in CARDS], 10)
    assert answer.hung == list(CARDS)


def test_one_entry_that_is_none_hides_no_other():
    entries = json.loads(own("neuron-ls_2xTrn2.json"))
    for broken in (
        None,
        5,
        {},
        {"neuron_device": 1},
        {"neuron_device": "x", "bdf": "a7:00.0"},
        {**entries[1], "bdf": "?"},
    ):
        reading = read_json(json.dumps([entries[0], broken]))
        assert [one.index for one in reading.devices] == [0]
        assert len(reading.notes) == 1


def test_wrong_types_are_no_traceback():
    entry = {
        "neuron_device": 0,
        "bdf": "a7:00.0",
        "memory_size": {},
        "connected_to": {"a": 1},
        "neuron_processes": [1, {}],
    }
    one = read_json(json.dumps([entry])).devices[0]
    assert (one.memory_bytes, one.ports, one.processes) == (None, [], [])


def test_several_documents_are_no_answer():
    text = own("neuron-ls_2xTrn2.json")
    with pytest.raises(Unreadable):
        read_json(text + text)


def test_no_devices_and_many_devices():
    none, _runner = ask({JSON: (0, "[]\n", "")})
    assert (none.count, none.tools[0].reason) == (0, "no_devices")
    entry = json.loads(own("neuron-ls_2xTrn2.json"))[0]
    many = [{**entry, "neuron_device": n, "bdf": f"{n:02x}:00.0", "connected_to": [n + 1]} for n in range(64)]
    answer, _runner = ask({JSON: (0, json.dumps(many), "")})
    assert answer.count == 64
    assert answer.devices[0].ports[0]["peer"] == "0000:01:00.0"
    assert answer.devices[63].ports[0]["peer"] is None


def test_columns_that_moved_are_not_believed():
    text = own("neuron-ls_all-procs_2xTrn2.txt")
    for old, new in (("|   PCI   |", "|   BUS   |"), ("a7:00.0", "a7-00.0"), ("| 0      |", "|        |")):
        assert old in text
        with pytest.raises(Unreadable):
            read_table(text.replace(old, new))


@pytest.mark.parametrize(
    ("device", "pci_class", "owned"),
    [
        ("7364", "088000", True),
        ("7064", "088000", True),
        ("7564", "120000", True),
        ("8061", "010802", False),  # EBS
        ("ec20", "020000", False),  # ENA
        ("efa2", "020000", False),  # EFA
        ("1111", "030000", False),  # the display
        ("7364", "020000", False),
    ],
)
def test_disks_and_networks_of_amazon_are_no_devices(device, pci_class, owned):
    function = Function("0000:00:1e.0", vendor="1d0f", device=device, pci_class=pci_class)
    assert Neuron().owns(function) is owned


def test_device_nodes():
    runner = RecordedRunner(files={"/dev/neuron0": "", "/dev/neuron1": ""})
    assert Neuron().device_nodes(runner, Device(index=1)) == ["/dev/neuron1"]
    assert Neuron().device_nodes(runner, Device(pci_address=CARDS[0])) == []
