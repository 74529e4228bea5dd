# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kunlunxin: xpu_smi and xpu-smi, and the other program of that name."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import Device, Readings
from ansible_collections.accel.cluster.plugins.module_utils._accel.pci import Function
from ansible_collections.accel.cluster.plugins.module_utils._accel.tools import Unreadable
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors.kunlunxin import (
    Kunlunxin,
    read_lines,
    read_old_table,
    read_table,
)
from doubles import RecordedRunner

OWN = Path(__file__).resolve().parents[5] / "recordings/kunlunxin"
MIB = 1024**2
LINES, OLD, NEW = ("xpu_smi", "-m"), ("xpu_smi",), ("xpu-smi",)
CARDS = ("0000:1a:00.0", "0000:3c:00.0")


def own(name: str) -> str:
    return (OWN / name).read_text()


def ask(answers: dict, *addresses: str, files=None):
    runner = RecordedRunner(answers, files)
    return Kunlunxin().query(runner, [Function(one, vendor="1d22") for one in addresses], 10), runner


def test_recorded_lines(recordings):
    reading = read_lines((recordings / "kunlunxin/xpu_smi-m_2xP800-OAM.txt").read_text())
    assert [(one.pci_address, one.serial, one.model, one.memory_bytes) for one in reading.devices] == [
        ("0000:03:00.0", "02K15K624CV00304", "P800 OAM", 98304 * MIB),
        ("0000:05:00.0", "02K15K624CV0030V", "P800 OAM", 98304 * MIB),
    ]
    assert [one.readings for one in reading.devices] == [
        Readings(temperature_c=36, memory_used_bytes=90440 * MIB),
        Readings(temperature_c=39, memory_used_bytes=90440 * MIB),
    ]
    assert {one.health.state for one in reading.devices} == {"ok"}


def test_recorded_old_table(recordings):
    reading = read_old_table((recordings / "kunlunxin/xpu_smi_4.31_2xR300.txt").read_text())
    assert (reading.tool_version, reading.driver_version) == ("4.31", "4.0")
    # The serial is masked in the recording, and the same for both.
    assert [(one.index, one.pci_address, one.model, one.serial, one.device_nodes) for one in reading.devices] == [
        (0, "0000:53:00.0", "R300", "02Kxxx", ["/dev/xpu0"]),
        (1, "0000:56:00.0", "R300", "02Kxxx", ["/dev/xpu1"]),
    ]
    assert [one.readings for one in reading.devices] == [Readings(utilization_percent=0, memory_used_bytes=0)] * 2
    assert {one.memory_bytes for one in reading.devices} == {32768 * MIB}


def test_recorded_new_table(recordings):
    reading = read_table((recordings / "kunlunxin/xpu-smi_table_515.58_4xP800.txt").read_text())
    assert reading.driver_version == "515.58"
    assert [
        (one.index, one.pci_address, one.readings.temperature_c, one.readings.power_watts) for one in reading.devices
    ] == [
        (0, "0000:03:00.0", 39, 91),
        (1, "0000:16:00.0", 38, 94),
        (2, "0000:1c:00.0", 44, 93),
        (3, "0000:2e:00.0", 44, 94),
    ]
    assert [one.readings.memory_used_bytes for one in reading.devices] == [31058 * MIB, 0, 0, 0]
    for one in reading.devices:
        assert (one.model, one.memory_bytes, one.serial) == ("P800 OAM", 98304 * MIB, None)
        assert (one.readings.power_limit_watts, one.ecc.uncorrected_volatile, one.health.state) == (400, 0, "ok")


def test_the_machine_readable_line_is_enough():
    files = {"/sys/module/kunlun/version": "5.0.21.4"}
    answer, runner = ask({LINES: (0, own("xpu_smi-m_2xP800-OAM.txt"), "")}, *CARDS, files=files)
    assert runner.calls == [LINES]
    assert [(one.pci_address, one.serial, one.driver_version) for one in answer.devices] == [
        ("0000:1a:00.0", "02K21M801CV00912", "5.0.21.4"),
        ("0000:3c:00.0", "02K21M801CV00957", "5.0.21.4"),
    ]
    assert answer.drivers[0].kernel_version == "5.0.21.4"
    assert [one.state for one in answer.tools] == ["ok"]


def test_the_table_where_the_line_is_not_known():
    # The nodes are numbered the other way round than the devices: the tool says which is whose.
    answers = {LINES: (1, "", "unknown option -m"), OLD: (0, own("xpu_smi_4.31_2xR300.txt"), "")}
    answer, _runner = ask(answers, "0000:3e:00.0", "0000:88:00.0")
    assert [(one.pci_address, one.serial, one.device_nodes) for one in answer.devices] == [
        ("0000:3e:00.0", "02K31A520", ["/dev/xpu1"]),
        ("0000:88:00.0", "02K31A533", ["/dev/xpu0"]),
    ]
    assert [one.link.under_load for one in answer.devices] == [True, False]
    assert [one.state for one in answer.tools] == ["failed", "ok"]


def test_processes_of_the_old_table():
    row = "|     0 | 7731 |       2 |  0 | 512 MB | python3 train.py |\n"
    text = own("xpu_smi_4.31_2xR300.txt").rstrip()
    rule = text[text.rindex("\n") + 1 :]
    found = read_old_table(text[: -len(rule)] + row + rule + "\n").devices
    assert found[0].processes == [{"pid": 7731, "name": "python3 train.py", "memory_bytes": 512 * MIB}]
    assert found[1].processes == []


def test_errors_in_the_new_table():
    answer, _runner = ask({NEW: (0, own("xpu-smi_515_2xP800.txt"), "")}, *CARDS)
    assert [one.health.state for one in answer.devices] == ["ok", "critical"]
    assert answer.devices[1].ecc.uncorrected_volatile == 3
    assert [(one.name, one.state) for one in answer.tools] == [("xpu_smi", "absent"), ("xpu-smi", "ok")]


INTEL = (
    "Intel(R) XPU System Management Interface -- v1.2\nIntel(R) XPU System Management Interface provides the "
    "device info.\n\nUsage: xpu-smi [Options]\n  xpu-smi -v\n  xpu-smi discovery\n"
)


@pytest.mark.parametrize("rc", [0, 1])
def test_the_program_of_intel_is_no_answer_and_no_fault(rc):
    answer, _runner = ask({NEW: (rc, INTEL, "")}, *CARDS)
    assert (answer.count, answer.devices, answer.errors) == (None, [], [])
    assert [(one.name, one.state) for one in answer.tools] == [("xpu_smi", "absent"), ("xpu-smi", "absent")]
    assert answer.tools[1].excerpt == "this xpu-smi is Intel's"


def test_the_program_of_intel_is_left_alone_where_no_card_is_on_the_bus():
    answer, runner = ask({NEW: (0, INTEL, "")})
    assert (runner.calls, [one.name for one in answer.tools]) == ([], ["xpu_smi"])


def test_one_damaged_line_costs_only_its_device():
    good, other = own("xpu_smi-m_2xP800-OAM.txt").splitlines()
    for damaged in (other[:90], other.replace(" 98304 0 1.0", " 1.0"), other.replace('"P800 OAM"', '"P800 OA')):
        reading = read_lines(f"warning: busy\n{good}\n{damaged}\n")
        assert [one.serial for one in reading.devices] == ["02K21M801CV00912"]
        assert len(reading.notes) == 1
    moved = read_lines(other.replace("02K21M801CV00957 38", "38 02K21M801CV00957"))
    assert (moved.devices, len(moved.notes)) == ([], 1)


def test_placeholders_are_no_serials():
    text = own("xpu_smi-m_2xP800-OAM.txt").replace("02K21M801CV00912", "N/A").replace("02K21M801CV00957", "0000000000")
    assert [one.serial for one in read_lines(text).devices] == [None, None]


@pytest.mark.parametrize(
    ("parse", "name", "old", "new"),
    [
        (read_table, "xpu-smi_515_2xP800.txt", "Bus-Id        Disp.A", "Disp.A        Bus-Id"),
        (read_table, "xpu-smi_515_2xP800.txt", "00000000:3C:00.0", "N/A"),
        (read_table, "xpu-smi_515_2xP800.txt", "|                               |      0MiB /    96MiB |", "|"),
        (read_old_table, "xpu_smi_4.31_2xR300.txt", "|   SN   |", "|"),
        (read_old_table, "xpu_smi_4.31_2xR300.txt", "0000:88:00.0", "N/A"),
    ],
)
def test_columns_that_moved_are_not_believed(parse, name, old, new):
    text = own(name)
    assert old in text
    with pytest.raises(Unreadable):
        parse(text.replace(old, new, 1))


def test_many_cards():
    line = own("xpu_smi-m_2xP800-OAM.txt").splitlines()[0]
    text = "".join(f"{line.replace(':1A:', f':{n:02X}:').replace('00912', f'{n:05}')}\n" for n in range(64))
    answer, _runner = ask({LINES: (0, text, "")})
    assert answer.count == len({one.serial for one in answer.devices}) == 64


def test_device_nodes():
    files = {"/dev/xpu0": "", "/dev/xpu1": "", "/dev/xpuctrl": ""}
    assert Kunlunxin().device_nodes(RecordedRunner(files=files), Device(device_nodes=["/dev/xpu1"])) == ["/dev/xpu1"]
    # Not by the number of the card: one card may have two nodes.
    assert Kunlunxin().device_nodes(RecordedRunner(files=files), Device(index=1, pci_address=CARDS[1])) == []
    files[f"/sys/bus/pci/devices/{CARDS[1]}/xpu/xpu1/dev"] = "243:1"
    runner = RecordedRunner(files=files)
    assert Kunlunxin().device_nodes(runner, Device(index=0, pci_address=CARDS[1])) == ["/dev/xpu1"]
