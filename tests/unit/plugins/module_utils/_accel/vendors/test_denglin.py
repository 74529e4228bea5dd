# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Denglin: the XML of dlsmi."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import probe
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import Device, Ecc, Link, Readings, Repair
from ansible_collections.accel.cluster.plugins.module_utils._accel.pci import Function
from ansible_collections.accel.cluster.plugins.module_utils._accel.tools import Unreadable
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors.denglin import Denglin, read_query
from doubles import RecordedRunner

OWN = Path(__file__).resolve().parents[5] / "recordings/denglin/dlsmi-query_2.2_3xKS38-QUAD.xml"
QUERY = ("dlsmi", "query", "--xml-format")
MIB = 1024**2


def ask(output: str):
    runner = RecordedRunner({QUERY: (0, output, "")})
    functions = [Function(f"0000:4{digit}:00.0", vendor="1e27", device="0006") for digit in "abc"]
    return Denglin().query(runner, functions, 10)


def test_recorded_query(recordings):
    reading = read_query((recordings / "denglin/dlsmi-query_2.2.1_2xKS38-QUAD.xml").read_text(encoding="utf-8"))
    assert (reading.tool_version, reading.driver_version, reading.notes) == ("2.2.1-rc3", "2.2.1-rc3", [])
    one, other = "GDF00189C01DE25300141", "GDF00189C01DE25300105"
    assert [
        (
            chip.pci_address,
            chip.serial,
            chip.uuid,
            chip.module_id,
            chip.readings.temperature_c,
            chip.readings.power_watts,
        )
        for chip in reading.devices
    ] == [
        ("0000:1e:00.0", one, "GPU-be21b2e7-f219-1666-711f-d9b646c1f00b", 3, 53, 6.29),
        ("0000:1f:00.0", one, "GPU-be21b2e7-f219-1666-711f-d9b646c1f002", 2, 49, 6.31),
        ("0000:20:00.0", one, "GPU-be21b2e7-f219-1666-711f-d9b646c1f0f0", 0, 53, 5.65),
        ("0000:21:00.0", one, "GPU-be21b2e7-f219-1666-711f-d9b646c1f0f9", 1, 42, 5.74),
        ("0000:2d:00.0", other, "GPU-67033772-2e45-e6fc-18e5-5d42e0bedb2c", 3, 55, 6.93),
        ("0000:2e:00.0", other, "GPU-67033772-2e45-e6fc-18e5-5d42e0bedb29", 2, 53, 6.03),
        ("0000:2f:00.0", other, "GPU-67033772-2e45-e6fc-18e5-5d42e0bedb23", 0, 55, 5.91),
        ("0000:30:00.0", other, "GPU-67033772-2e45-e6fc-18e5-5d42e0bedb26", 1, 43, 5.88),
    ]
    for chip in reading.devices:
        assert (chip.model, chip.pci_id, chip.firmware_version) == ("KS38 QUAD", "1e27:0006", "0.3.16")
        assert chip.link == Link(speed_gts=16.0, width=4, max_speed_gts=16.0, max_width=4, under_load=False)
        assert (chip.memory_bytes, chip.readings.power_limit_watts) == (32768 * MIB, 26)
        assert (chip.ecc, chip.repair, chip.readings.throttles) == (Ecc(), Repair(), [])  # N/A, Not Active
        assert (chip.health.state, chip.processes) == ("ok", [])
    assert reading.devices[0].readings == Readings(
        temperature_c=53,
        temperature_limit_c=106,
        memory_temperature_c=53,
        power_watts=6.29,
        power_limit_watts=26,
        utilization_percent=0,
        memory_used_bytes=293 * MIB,
        throttles=[],
    )


def test_counters_repair_and_throttling():
    idle, hot, sick = ask(OWN.read_text()).devices
    assert (idle.readings.throttles, idle.health.state) == (["idle"], "ok")
    assert hot.readings.throttles == ["thermal"]  # two elements say so
    assert hot.repair == Repair(state="reset", retired_pages=2)
    assert hot.ecc == Ecc(4, 0, 4, 0)
    assert (hot.health.state, hot.health.reasons) == (
        "warning",
        ["slowed down: thermal", "memory pages wait for a reset to be retired"],
    )
    assert (hot.link.under_load, sick.link.speed_gts, sick.link.max_speed_gts) == (True, 2.5, 16.0)
    assert (sick.repair.state, sick.ecc.uncorrected_volatile, sick.health.state) == ("ok", 2, "critical")


def test_chips_of_a_board_are_told_apart_by_their_uuid():
    devices = ask(OWN.read_text()).devices
    probe._identify(devices)
    assert [(one.identity, one.serial) for one in devices] == [("uuid", "GDF00189C01DE25400260")] * 3


def test_a_field_that_cannot_be_read_is_a_sign():
    text = OWN.read_text().replace("<power_draw>6.10 W<", "<power_draw>Unknown Error<")
    assert [one.health.state for one in ask(text).devices] == ["warning", "warning", "critical"]


def test_fewer_described_than_attached():
    text = OWN.read_text().replace("<attached_gpus>3<", "<attached_gpus>4<")
    answer = ask(text)
    assert (answer.count, answer.tools[0].state) == (3, "failed")
    assert answer.errors == ["dlsmi query --xml-format: 4 devices are attached, 3 described"]


def test_a_device_without_an_address_hides_no_other():
    text = OWN.read_text().replace("00000000:4B:00.0", "N/A")
    answer = ask(text)
    assert [one.pci_address for one in answer.devices] == ["0000:4a:00.0", "0000:4c:00.0"]
    assert answer.errors == ["dlsmi query --xml-format: device 1 tells no address"]


def test_placeholders_are_no_values():
    text = (
        OWN.read_text().replace("GDF00189C01DE25400260", "N/A").replace("GPU-0a9e41c7-55d2-7b10-9c3e-11d2c8f0a401", "0")
    )
    assert [(one.serial, one.uuid is None) for one in ask(text).devices] == [(None, True), (None, False), (None, False)]


def test_a_name_of_one_chip_stays_whole():
    text = OWN.read_text().replace("<multigpu_board>Yes", "<multigpu_board>No")
    first = ask(text).devices[0]
    assert (first.model, first.module_id) == ("KS38 QUAD-3", None)


def test_processes_as_far_as_they_tell_a_pid():
    listing = "<processes><process_info><pid>811</pid></process_info><process_info/></processes>"
    text = OWN.read_text().replace("<processes>None</processes>", listing, 1)
    assert ask(text).devices[0].processes == [{"pid": 811, "name": None, "memory_bytes": None}]


def test_no_devices_and_many_devices():
    text = OWN.read_text()
    head, entry = text[: text.index("\t<gpu ")], text[text.index("\t<gpu ") : text.index("\t</gpu>\n") + 8]
    none = ask(head.replace(">3<", ">0<") + "</dlsmi_log>\n")
    assert (none.count, none.tools[0].reason) == (0, "no_devices")
    chips = "".join(entry.replace(":4A:", f":{n:02X}:") for n in range(64))
    assert ask(head.replace(">3<", ">64<") + chips + "</dlsmi_log>\n").count == 64


@pytest.mark.parametrize("old", ["<attached_gpus>3</attached_gpus>", "dlsmi_log>", "</pci>"])
def test_damaged_xml_is_not_believed(old):
    with pytest.raises(Unreadable):
        read_query(OWN.read_text().replace(old, "", 1 if old == "</pci>" else -1))


def test_device_nodes():
    files = {"/dev/dlgpu0": "", "/sys/bus/pci/devices/0000:4a:00.0/denglin/dlgpu0/dev": "235:0"}
    assert Denglin().device_nodes(RecordedRunner(files=files), Device(pci_address="0000:4a:00.0")) == ["/dev/dlgpu0"]
    assert Denglin().device_nodes(RecordedRunner(files=files), Device(pci_address="0000:4b:00.0")) == []
