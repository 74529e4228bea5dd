# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cambricon: the tables of cnmon."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import Device, Health, Readings
from ansible_collections.accel.cluster.plugins.module_utils._accel.pci import Function
from ansible_collections.accel.cluster.plugins.module_utils._accel.tools import Unreadable
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors.cambricon import (
    Cambricon,
    placed,
    read_table,
)
from doubles import RecordedRunner

OWN = Path(__file__).resolve().parents[5] / "recordings/cambricon"
MIB = 1024**2
NEW, OLD = "cnmon_5.10_2xMLU370-X8.txt", "cnmon_4.20_2xMLU370-X4.txt"


def own(name: str) -> str:
    return (OWN / name).read_text()


def ask(output: str, *addresses: str, files=None):
    runner = RecordedRunner({("cnmon",): (0, output, "")}, files)
    return Cambricon().query(runner, [Function(one, vendor="cabc") for one in addresses], 10)


def test_recorded_4_20(recordings):
    # Read by eye. There is no address in this layout.
    reading = read_table((recordings / "cambricon/cnmon_v4.20.11_3xMLU370-X4.txt").read_text())
    assert (reading.tool_version, reading.driver_version, reading.notes) == ("4.20.11", None, [])
    assert [
        (one.index, one.model, one.firmware_version, one.driver_version, one.pci_address, one.memory_bytes)
        for one in reading.devices
    ] == [(number, "MLU370-X4", "1.1.6", "4.20.11", None, 23308 * MIB) for number in (0, 1, 2)]
    assert [(one.readings.temperature_c, one.readings.power_watts) for one in reading.devices] == [
        (32, 30),
        (33, 25),
        (30, 26),
    ]
    assert {one.readings.power_limit_watts for one in reading.devices} == {150}
    assert [one.health.state for one in reading.devices] == ["ok"] * 3
    assert {one.ecc.uncorrected_volatile for one in reading.devices} == {None}  # N/A is not 0


def test_recorded_5_10(recordings):
    reading = read_table((recordings / "cambricon/cnmon_v5.10.13_2xMLU370-X8.txt").read_text())
    assert (reading.tool_version, reading.driver_version) == ("5.10.13", "5.10.13")
    assert [
        (one.index, one.model, one.pci_address, one.firmware_version, one.memory_bytes) for one in reading.devices
    ] == [
        (0, "MLU370-X8", "0000:39:00.0", "1.1.6", 23374 * MIB),
        (1, "MLU370-X8", "0000:3d:00.0", "1.1.6", 23374 * MIB),
    ]
    first, second = (one.readings for one in reading.devices)
    assert first == Readings(
        temperature_c=32, power_watts=106, power_limit_watts=250, utilization_percent=0, memory_used_bytes=0
    )
    assert (second.temperature_c, second.power_watts) == (39, 106)
    assert [one.processes for one in reading.devices] == [[], []]


def test_values_of_a_working_card():
    answer = ask(own(NEW), "0000:5a:00.0", "0000:5e:00.0")
    busy, idle = answer.devices
    assert (busy.pci_address, busy.link.under_load, idle.link.under_load) == ("0000:5a:00.0", True, False)
    assert busy.readings.memory_used_bytes == 21044 * MIB
    assert busy.processes == [{"pid": 48211, "name": "python3 pretrain.py --resume", "memory_bytes": 21044 * MIB}]
    assert (busy.serial, busy.uuid, busy.driver_version, busy.source) == (None, None, "5.10.22", "cnmon 5.10.22")
    assert busy.ecc.uncorrected_volatile == 0


def test_memory_errors_are_critical_on_the_right_card():
    answer = ask(own(NEW).replace("| 0%                  0 |", "| 0%                  7 |"), "0000:5a:00.0")
    assert [one.health.state for one in answer.devices] == ["ok", "critical"]
    assert answer.devices[1].health.reasons == ["7 uncorrected memory errors since the driver was loaded"]


def test_a_card_that_cannot_be_read_hides_no_other():
    sick = own(NEW).replace("|  0%   40C         97 W/ 250 W |     0 MiB", "|  N/A  ERR!      ERR!/ 250 W |     0 MiB")
    answer = ask(sick, "0000:5a:00.0", "0000:5e:00.0")
    assert [one.health.state for one in answer.devices] == ["ok", "warning"]
    assert answer.devices[1].health.reasons == ["can't be read: ERR!"]
    assert answer.devices[1].readings.temperature_c is None


def test_a_long_line_is_refused_at_once():
    text = own(NEW)
    row = next(line for line in text.splitlines() if "W/ 250 W" in line)
    started = time.process_time()
    with pytest.raises(Unreadable, match="characters in the table"):
        read_table(text.replace(row, row.replace(" ", " " * 5000)))
    assert time.process_time() - started < 1
    long = text.replace("python3 pretrain.py --resume", "python3 " + "x " * 5000)
    assert [one.processes for one in read_table(long).devices] == [[], []]


def test_rows_without_an_address_give_only_what_holds_for_each_card():
    text = own(OLD)
    answer = ask(text, "0000:17:00.0", "0000:65:00.0")
    assert answer.count == 2
    assert [(one.pci_address, one.model, one.memory_bytes) for one in answer.devices] == [
        ("0000:17:00.0", "MLU370-X4", 22842 * MIB),
        ("0000:65:00.0", "MLU370-X4", 22842 * MIB),
    ]
    assert [(one.driver_version, one.health.state, one.readings) for one in answer.devices] == [
        ("4.20.18", "ok", Readings())
    ] * 2
    # One card only can be no other.
    alone = ask(text[: text.index("| 1     /")] + text[text.index("\n\n+---") :], "0000:17:00.0")
    assert alone.devices[0].readings.temperature_c == 37
    # More on the bus than in the table: which is missing can't be told.
    answer = ask(text, "0000:17:00.0", "0000:65:00.0", "0000:ca:00.0")
    assert (answer.count, {one.pci_address for one in answer.devices}) == (2, {None})


def test_a_sick_row_without_an_address_makes_no_card_healthy():
    answer = ask(own(OLD).replace("On          v4.20.18", "Off         v4.20.18", 1), "0000:17:00.0", "0000:65:00.0")
    assert [one.health.state for one in answer.devices] == ["unknown", "unknown"]
    assert "card 0: not initialised: Off v4.20.18" in answer.devices[1].health.reasons
    # All of them sick is no "ok" either.
    sick = [Device(index=n, health=Health("critical", ["x"])) for n in range(2)]
    assert {one.health.state for one in placed(sick, [Function("0000:17:00.0"), Function("0000:65:00.0")])} == {
        "unknown"
    }


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Card  VF  Name       Firmware", "Card  Name  VF       Firmware"),
        ("Bus-Id | Util", "Serial | Util"),
        ("0000:5E:00.0", "0000:5E:--.-"),
        ("| 1     /   MLU370-X8    v1.1.8 |", "|"),
        ("|  0%   40C         97 W/ 250 W |     0 MiB/ 46952 MiB | N/A           Default |\n", ""),
    ],
)
def test_columns_that_moved_are_not_believed(old, new):
    text = own(NEW)
    assert old in text
    with pytest.raises(Unreadable):
        read_table(text.replace(old, new))


def test_no_cards_and_many_cards():
    text = own(NEW)
    first, last = text.index("| 0     /"), text.index("\n\n+---")
    border = "+-------------------------------+----------------------+-----------------------+\n"
    none = ask(text[: first - len(border)] + border + text[last:])
    assert (none.count, none.devices, none.tools[0].reason) == (0, [], "no_devices")
    row = text[first : text.index("| 1     /")]
    many = "".join(row.replace("| 0  ", f"| {n:<3}", 1).replace("0000:5A", f"0000:{n:02X}") for n in range(64))
    answer = ask(text[:first] + many.rstrip("\n") + text[last:])
    assert answer.count == 64
    assert [one.pci_address for one in answer.devices][::63] == ["0000:00:00.0", "0000:3f:00.0"]


def test_addresses_in_every_spelling():
    text = own(NEW).replace("        0000:5A:00.0", "    0000000A:5A:00.0")
    assert [one.pci_address for one in read_table(text).devices] == ["000a:5a:00.0", "0000:5e:00.0"]


def test_device_nodes():
    files = {"/dev/cambricon_dev0": "", "/dev/cambricon_dev1": "", "/dev/cambricon_ctl": ""}
    vendor = Cambricon()
    assert vendor.device_nodes(RecordedRunner(files=files), Device(index=1, pci_address="0000:5e:00.0")) == [
        "/dev/cambricon_dev1"
    ]
    assert vendor.device_nodes(RecordedRunner(files=files), Device(index=2)) == []
    files["/sys/bus/pci/devices/0000:5e:00.0/cambricon/cambricon_dev0/dev"] = "240:0"
    assert vendor.device_nodes(RecordedRunner(files=files), Device(index=1, pci_address="0000:5e:00.0")) == [
        "/dev/cambricon_dev0"
    ]
