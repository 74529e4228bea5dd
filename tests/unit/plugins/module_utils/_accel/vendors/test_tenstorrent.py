# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tenstorrent: snapshots of tt-smi."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import Device, Readings
from ansible_collections.accel.cluster.plugins.module_utils._accel.pci import Function
from ansible_collections.accel.cluster.plugins.module_utils._accel.tools import Unreadable
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors.tenstorrent import Tenstorrent, read_snapshot
from doubles import RecordedRunner

OWN = Path(__file__).resolve().parents[5] / "recordings/tenstorrent/tt-smi-s_3.0_n300_p150.json"
CARDS = ("0000:41:00.0", "0000:82:00.0")


def snapshot() -> dict:
    return json.loads(OWN.read_text())


def ask(document) -> object:
    output = document if isinstance(document, str) else json.dumps(document, indent=4)
    runner = RecordedRunner({("tt-smi", "-s"): (0, output, "")})
    return Tenstorrent().query(runner, [Function(one, vendor="1e52") for one in CARDS], 10)


def recorded(recordings, name: str):
    return read_snapshot((recordings / "tenstorrent" / name).read_text(encoding="utf-8"))


def test_recorded_blackhole_cards(recordings):
    reading = recorded(recordings, "tt-smi_s_blackhole_8xp150.json")
    ends = ("5018", "5002", "5009", "500f", "4064", "5006", "4087", "402f")
    assert [(one.pci_address, one.serial, one.model) for one in reading.devices] == [
        (f"0000:{bus}:00.0", f"000004123191{end}", "p150b")
        for bus, end in zip(("01", "21", "41", "61", "81", "a1", "c1", "e1"), ends)
    ]
    # Nothing but the board is told in this one.
    assert {one.health.state for one in reading.devices} == {"unknown"}
    assert (reading.tool_version, reading.driver_version) == (None, None)


def test_recorded_blackhole_galaxy(recordings):
    reading = recorded(recordings, "tt-smi_s_blackhole_galaxy.json")
    assert (reading.tool_version, reading.driver_version, len(reading.devices)) == ("5.2.0", "2.8.0", 32)
    assert {one.serial for one in reading.devices} == {"0000047131831011"}
    assert len({one.uuid for one in reading.devices}) == 32
    first, second = reading.devices[:2]
    assert (first.pci_address, first.uuid, first.model) == ("0000:01:00.0", "30da68d3319cdf5f", "tt-galaxy-bh")
    assert (second.pci_address, second.uuid) == ("0000:02:00.0", "0afa174e22393ea0")  # 0xafa174e has seven digits
    # thm_limit is 110, therm_trip_l1_limit 90: it slows down at the lower one.
    assert first.readings == Readings(temperature_c=45.4, temperature_limit_c=90, power_watts=39, power_limit_watts=130)
    assert (first.firmware_version, first.health.state, first.link.width) == ("19.5.0.0", "ok", None)


def test_recorded_wormhole_galaxy(recordings):
    reading = recorded(recordings, "tt-smi_s_galaxy.json")
    assert (reading.tool_version, reading.driver_version, len(reading.devices)) == ("3.0.26", "2.3.0", 32)
    first = reading.devices[0]
    assert (first.pci_address, first.model, first.serial, first.uuid) == (
        "0000:c1:00.0",
        "tt-galaxy-wh L",
        "100035100000000",
        None,
    )
    assert (first.readings.temperature_limit_c, first.readings.power_limit_watts) == (75, 170)
    assert [one.pci_address for one in reading.devices][-1] == "0000:48:00.0"
    assert [one.logical for one in reading.devices] == [[]] * 32


def test_recorded_single_card(recordings):
    reading = recorded(recordings, "tt-smi_s_single_n150_gpu.json")
    (one,) = reading.devices
    assert (one.index, one.pci_address, one.model, one.serial) == (0, "0000:01:00.0", "n150 L", "100018611902010")
    assert one.readings == Readings(temperature_c=54.3, temperature_limit_c=75, power_watts=12, power_limit_watts=100)
    assert (one.firmware_version, one.driver_version, reading.driver_version) == ("80.17.0.0", None, "1.33")


def test_recorded_boards_with_two_chips(recordings):
    reading = recorded(recordings, "tt-smi_s_valid_multiple_devices.json")
    assert [(one.pci_address, one.serial, [part["index"] for part in one.logical]) for one in reading.devices] == [
        ("0000:c1:00.0", "10001451172208f", [0, 4]),
        ("0000:01:00.0", "100014511722053", [1, 5]),
        ("0000:02:00.0", "10001451172209c", [2, 6]),
        ("0000:41:00.0", "100014511722058", [3, 7]),
    ]
    assert {(part["kind"], part["profile"]) for one in reading.devices for part in one.logical} == {
        ("chip", "n300 L"),
        ("chip", "n300 R"),
    }
    # Keys of the second were changed by a test author: what is not known is not told.
    assert reading.devices[1].readings == Readings()
    assert reading.devices[1].health.state == "ok"  # its memory still says so


def test_recorded_empty_host(recordings):
    answer = ask((recordings / "tenstorrent/tt-smi_s_empty_device_info.json").read_text())
    assert (answer.count, answer.tools[0].state, answer.tools[0].reason) == (0, "ok", "no_devices")


def test_values():
    answer = ask(snapshot())
    two, one = answer.devices
    assert answer.count == 2
    assert (two.pci_address, two.serial, two.driver_version, two.source) == (
        "0000:41:00.0",
        "100014511733001",
        "2.1.0",
        "tt-smi 3.0.30",
    )
    assert [part["profile"] for part in two.logical] == ["n300 L", "n300 R"]
    assert (one.uuid, one.readings.temperature_limit_c) == ("0afa174e22393ea0", 90)
    assert [device.health.state for device in answer.devices] == ["ok", "ok"]


@pytest.mark.parametrize(("entry", "device"), [(0, 0), (1, 1), (2, 0)])
def test_memory_that_did_not_train_is_critical(entry, device):
    document = snapshot()
    document["device_info"][entry]["board_info"]["dram_status"] = False
    states = [one.health.state for one in ask(document).devices]
    assert states == ["critical" if number == device else "ok" for number in range(2)]


def test_a_chip_whose_board_is_lost():
    document = snapshot()
    del document["device_info"][0]
    answer = ask(document)
    assert [one.pci_address for one in answer.devices] == ["0000:82:00.0"]
    assert answer.errors == ["tt-smi -s: chip 1 of board 100014511733001: 0 chips with an address are on that board"]


@pytest.mark.parametrize(
    "change",
    [{"bus_id": "nonsense"}, {"bus_id": "0000:41:00"}, {"board_type": None}, {"bus_id": 5}],
)
def test_an_entry_that_is_none_hides_no_other(change):
    document = snapshot()
    del document["device_info"][2]
    document["device_info"][0]["board_info"].update(change)
    answer = ask(document)
    assert [one.pci_address for one in answer.devices] == ["0000:82:00.0"]
    assert len(answer.errors) == 1


def test_wrong_types_are_no_traceback():
    document = snapshot()
    document["device_info"][1].update(telemetry=[], limits="N/A", firmwares=None, smbus_telem=7)
    document["host_info"] = document["host_sw_vers"] = "N/A"
    one = ask(document).devices[1]
    assert (one.readings, one.firmware_version, one.uuid, one.driver_version) == (Readings(), None, None, None)


def test_placeholders_are_no_values():
    document = snapshot()
    document["device_info"][1]["board_info"]["board_id"] = "0000000000000000"
    document["device_info"][1]["smbus_telem"].update(ASIC_ID_HIGH="0x0", ASIC_ID_LOW="0x0")
    document["device_info"][1]["telemetry"].update(asic_temperature="N/A", power=None)
    one = ask(document).devices[1]
    assert (one.serial, one.uuid, one.readings.temperature_c, one.readings.power_watts) == (None, None, None, None)


def test_several_documents():
    text = OWN.read_text()
    assert ask('{"log": "starting"}\n' + text).count == 2
    with pytest.raises(Unreadable):
        read_snapshot(text + text)


def test_many_cards_and_addresses_in_every_spelling():
    document = snapshot()
    entry = document["device_info"][1]
    document["device_info"] = [
        {**entry, "board_info": {**entry["board_info"], "bus_id": f"0000000F:{n:02X}:00.0"}} for n in range(64)
    ]
    answer = ask(document)
    assert answer.count == 64
    assert answer.devices[63].pci_address == "000f:3f:00.0"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("No Tenstorrent driver detected! Please install driver", "driver_not_loaded"),
        ("No chips detected!", "no_devices"),
    ],
)
def test_known_errors(said, reason):
    runner = RecordedRunner({("tt-smi", "-s"): (1, said + "\n", "")})
    answer = Tenstorrent().query(runner, [Function(CARDS[0])], 10)
    assert (answer.count, answer.tools[0].state, answer.tools[0].reason) == (None, "failed", reason)


def test_device_nodes():
    files = {"/dev/tenstorrent/0": "", "/dev/tenstorrent/1": ""}
    files["/sys/bus/pci/devices/0000:82:00.0/tenstorrent/tenstorrent!0/dev"] = "239:0"
    runner = RecordedRunner(files=files)
    assert Tenstorrent().device_nodes(runner, Device(index=1, pci_address="0000:82:00.0")) == ["/dev/tenstorrent/0"]
    assert Tenstorrent().device_nodes(runner, Device(index=1, pci_address="0000:41:00.0")) == []
