# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Enflame: efsmi -q of two generations, and the table that fills its gaps."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import Device, Link, Readings
from ansible_collections.accel.cluster.plugins.module_utils._accel.pci import Function
from ansible_collections.accel.cluster.plugins.module_utils._accel.tools import Unreadable
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors.enflame import (
    Enflame,
    read_query,
    read_table,
)
from doubles import HANG, RecordedRunner

OWN = Path(__file__).resolve().parents[5] / "recordings/enflame"
MIB = 1024**2
QUERY, TABLE = ("efsmi", "-q"), ("efsmi",)


def own(name: str) -> str:
    return (OWN / name).read_text(encoding="utf-8")


def ask(answers: dict, *addresses: str):
    runner = RecordedRunner(answers)
    return Enflame().query(runner, [Function(one, vendor="1e36") for one in addresses], 10), runner


def test_recorded_query_before_1_4(recordings):
    reading = read_query((recordings / "enflame/efsmi-q_older_2xS60.txt").read_text(encoding="utf-8"))
    assert [(one.index, one.pci_address, one.pci_id, one.memory_bytes) for one in reading.devices] == [
        (0, "0000:0c:00.0", "1e36:c035", 42976 * MIB),
        (1, "0000:0f:00.0", "1e36:c035", 42976 * MIB),
    ]
    for one in reading.devices:
        assert one.link == Link(speed_gts=32.0, width=16, max_speed_gts=32.0, max_width=16, under_load=False)
        assert one.readings == Readings(temperature_c=39, utilization_percent=0, memory_used_bytes=1129 * MIB)
        assert (one.serial, one.uuid, one.model, one.health.state) == (None, None, None, "ok")
    assert reading.notes == []


def test_recorded_table_1_2(recordings):
    reading = read_table((recordings / "enflame/efsmi_1.2.0.301_2xS60.txt").read_text(encoding="utf-8"))
    assert (reading.tool_version, reading.driver_version) == ("1.2.0.301", "1.2.0.301")
    assert [
        (one.index, one.model, one.serial, one.pci_address, one.firmware_version, one.memory_bytes)
        for one in reading.devices
    ] == [
        (0, "S60", "A073640510015", "0000:01:00.0", "33.6.2", 49120 * MIB),
        (1, "S60", "C807J40510285", "0000:09:00.0", "33.6.5", 42976 * MIB),
    ]
    assert [(one.readings.temperature_c, one.readings.power_watts) for one in reading.devices] == [(39, 105), (46, 128)]
    assert {one.readings.power_limit_watts for one in reading.devices} == {300}


def test_the_topology_is_no_table_of_devices(recordings):
    text = (recordings / "enflame/efsmi_topo-m_10xS60.txt").read_text(encoding="utf-8")
    for parse in (read_query, read_table):
        with pytest.raises(Unreadable):
            parse(text)


def test_1_4_tells_everything_in_one_command():
    answer, runner = ask({QUERY: (0, own("efsmi-q_1.4_2xS60.txt"), "")}, "0000:4b:00.0", "0000:4f:00.0")
    assert runner.calls == [QUERY]
    first, second = answer.devices
    assert (first.model, first.serial, first.uuid) == ("S60", "B2C7550410031", "TR7C52018844")
    assert (first.driver_version, first.pci_address, first.memory_bytes) == ("1.4.1.7", "0000:4b:00.0", 42976 * MIB)
    assert first.readings == Readings(
        temperature_c=41,
        power_watts=104,
        power_limit_watts=300,
        utilization_percent=0,
        memory_used_bytes=29 * MIB,
    )
    assert (first.link.speed_gts, first.link.max_speed_gts) == (16.0, 32.0)
    # The lines below Link Info may be indented; upper case is the same address; the tool itself says that it is sick.
    assert second.pci_address == "0000:4f:00.0"
    assert second.link == Link(speed_gts=32.0, width=8, max_speed_gts=32.0, max_width=16, under_load=True)
    assert [one.health.state for one in answer.devices] == ["ok", "critical"]
    assert second.health.reasons == ["the tool says of its health: False"]


def test_serials_of_an_old_release_come_from_the_table():
    answers = {QUERY: (0, own("efsmi-q_1.2_2xS60.txt"), ""), TABLE: (0, own("efsmi_1.2_2xS60.txt"), "")}
    answer, runner = ask(answers, "0000:31:00.0", "0000:3a:00.0")
    assert runner.calls == [QUERY, TABLE]
    assert [(one.pci_address, one.serial, one.model, one.firmware_version) for one in answer.devices] == [
        ("0000:31:00.0", "B1D2240610077", "S60", "33.7.1"),
        ("0000:3a:00.0", "B1D2240610093", "S60", "33.7.1"),
    ]
    assert [(one.memory_bytes, one.readings.power_watts) for one in answer.devices] == [
        (42976 * MIB, 101),
        (49120 * MIB, 133),
    ]
    assert {(one.driver_version, one.source) for one in answer.devices} == {("1.2.0.415", "efsmi 1.2.0.415")}


@pytest.mark.parametrize("table", [HANG, (1, "", "oops"), (0, "nonsense", "")])
def test_cards_without_serial_when_the_table_fails(table):
    answer, _runner = ask({QUERY: (0, own("efsmi-q_1.2_2xS60.txt"), ""), TABLE: table}, "0000:31:00.0")
    assert answer.count == 2
    assert [one.serial for one in answer.devices] == [None, None]
    assert len(answer.errors) == 1


def test_an_entry_that_was_cut_off_costs_only_itself():
    text = own("efsmi-q_1.4_2xS60.txt")
    answer, _runner = ask({QUERY: (0, text[: text.index("Dev SN                  : B2C7550410044") + 31], "")})
    assert [one.serial for one in answer.devices] == ["B2C7550410031"]
    assert answer.errors == ["efsmi -q: DEV ID 1 has no whole entry"]


def test_placeholders_are_no_values():
    text = own("efsmi-q_1.4_2xS60.txt").replace("B2C7550410031    ", "0000000000000").replace("TR7C52018844", "N/A")
    one = read_query(text.replace("41 ℃", "N/A").replace("104 W", "-")).devices[0]
    assert (one.serial, one.uuid, one.readings.temperature_c, one.readings.power_watts) == (None, None, None, None)
    assert one.health.state == "ok"
    sick = read_query(text.replace("41 ℃", "ERR!")).devices[0]
    assert (sick.health.state, sick.health.reasons) == ("warning", ["can't be read: ERR!"])


def test_bytes_that_are_no_text():
    text = own("efsmi-q_1.4_2xS60.txt").encode().replace("℃".encode(), b"\xa1\xe6").decode("utf-8", "replace")
    assert [one.readings.temperature_c for one in read_query(text).devices] == [41, 68]


def test_columns_that_moved_are_not_believed():
    table = own("efsmi_1.2_2xS60.txt")
    for old, new in (("BUS-ID      ECC", "ECC      BUS-ID"), ("00:3a:00.0 ", "           "), ("DUsed", "DTemp")):
        assert old in table
        with pytest.raises(Unreadable):
            read_table(table.replace(old, new))


def test_many_cards():
    text = own("efsmi-q_1.4_2xS60.txt")
    head, entry = text[: text.index("DEV ID 0")], text[text.index("DEV ID 0") : text.index("DEV ID 1")]
    cards = [entry.replace("DEV ID 0", f"DEV ID {n}").replace(": 4b", f": {n:02x}") for n in range(64)]
    answer, _runner = ask({QUERY: (0, head + "".join(cards), "")})
    assert answer.count == 64
    assert answer.devices[63].pci_address == "0000:3f:00.0"


def test_device_nodes():
    runner = RecordedRunner(files={"/dev/gcu0": "", "/dev/gcu1": "", "/dev/gcuctl": ""})
    assert Enflame().device_nodes(runner, Device(index=1, pci_address="0000:4f:00.0")) == ["/dev/gcu1"]
    assert Enflame().device_nodes(runner, Device(index=7)) == []
