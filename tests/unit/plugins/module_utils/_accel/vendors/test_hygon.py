# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hygon: what hy-smi and the rocm-smi of DTK print, refuse, cut off or hang on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import Device, Readings
from ansible_collections.accel.cluster.plugins.module_utils._accel.pci import Function
from ansible_collections.accel.cluster.plugins.module_utils._accel.tools import Unreadable
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors.hygon import (
    OPTIONS,
    Hygon,
    parse,
    parse_table,
)
from doubles import HANG, RecordedRunner

OWN = Path(__file__).resolve().parents[5] / "recordings/hygon"
MIB = 1024**2
JSON, CSV, TABLE = ("hy-smi", *OPTIONS, "--json"), ("hy-smi", *OPTIONS, "--csv"), ("hy-smi",)
PLACES = ("0000:09:00.0", "0000:36:00.0")


def own(name: str) -> str:
    return (OWN / name).read_text()


WHOLE, ROWS, PLAIN = own("all_1.26_2xBW.json"), own("all_dtk22.10_2xZ100.csv"), own("table_dtk24.04_2x.txt")
CARDS = json.loads(WHOLE.replace('""Average', '", "Average'))


def alone(number: int, answer) -> dict:
    return {("hy-smi", "-d", str(number), *OPTIONS, "--json"): answer}


def only(number: int) -> str:
    return json.dumps({f"card{number}": CARDS[f"card{number}"]})


def ask(answers: dict, places=PLACES, files=None, **more):
    runner = RecordedRunner(answers, files, **more)
    functions = [Function(place, vendor="1d94", device="6320", pci_class="0b4000") for place in places]
    return Hygon().query(runner, functions, 10), runner


# ---------------------------------------------------------------------------------------------------- healthy hosts


def test_a_healthy_host_costs_one_command():
    answer, runner = ask({JSON: (0, WHOLE, "")}, files={"/sys/module/hycu/version": "6.3.13"})
    assert runner.calls == [JSON]
    assert (answer.count, answer.errors, answer.tools[0].state) == (2, [], "ok")
    one = answer.devices[0]
    assert (one.index, one.model, one.pci_address, one.pci_id) == (0, "BW", "0000:09:00.0", "1d94:6320")
    # The chip's number has one spelling, whatever the release prints.
    assert (one.serial, one.uuid) == ("TCH19625050401", "71a0fa8866904061")
    assert (one.driver_version, one.firmware_version, one.memory_bytes) == ("6.3.13", "113-BW-017", 65520 * MIB)
    assert one.readings == Readings(
        temperature_c=57.0,
        memory_temperature_c=51.0,
        power_watts=91.0,
        utilization_percent=0.0,
        memory_used_bytes=64169 * MIB,
    )
    assert (one.health.state, one.link.under_load, one.source) == ("ok", False, "hy-smi")
    assert [(driver.kernel_version, driver.loaded) for driver in answer.drivers] == [("6.3.13", True)]


def test_commas_that_the_tool_forgets_are_put_back():
    with pytest.raises(ValueError, match="delimiter"):
        json.loads(WHOLE)
    assert parse(WHOLE).devices == parse(json.dumps(CARDS)).devices


def test_a_sick_card():
    sick = parse(WHOLE).devices[1]
    assert (sick.health.state, sick.health.reasons) == ("warning", ["Unknown Error: temperature (sensor junction) (c)"])
    assert sick.readings == Readings(utilization_percent=37.5, memory_used_bytes=3 * MIB)
    assert sick.link.under_load is True


def test_the_older_tool_counts_from_one():
    answer, _runner = ask({("rocm-smi", *OPTIONS, "--json"): (0, ROWS, "")}, ("0000:04:00.0", "0000:26:00.0"))
    assert (answer.count, answer.tools[0].name, answer.tools[0].state) == (2, "rocm-smi", "ok")
    assert [(one.index, one.serial, one.uuid, one.pci_address) for one in answer.devices] == [
        (1, "TGC211230007", "abcdef0123456789", "0000:04:00.0"),
        (2, None, None, "0000:26:00.0"),
    ]
    assert [(one.memory_bytes, one.pci_id) for one in answer.devices] == [(17163091968, "1d94:54b7")] * 2
    assert answer.devices[1].readings == Readings(47.0, None, None, 112.0, None, 12.0, 1097152000)
    assert answer.devices[0].source == "rocm-smi"


def test_the_tool_of_another_vendor_is_not_asked():
    answer, runner = ask({}, (), tools={"rocm-smi"})
    assert (answer.tools[0].name, answer.tools[0].state, runner.calls) == ("hy-smi", "absent", [])
    assert answer.drivers == []
    loaded = {("rocm-smi", *OPTIONS, "--json"): (0, WHOLE, "")}
    answer, _runner = ask(loaded, (), files={"/sys/module/hydcu/refcnt": "0"})
    assert answer.count == 2


def test_sixty_four_cards_and_domains():
    cards = {
        f"card{n}": {**CARDS["card0"], "PCI Bus": f"{n // 32:08X}:{n % 32:02X}:00.0", "Serial Number": f"T{n}"}
        for n in range(63, -1, -1)
    }
    answer, _runner = ask({JSON: (0, json.dumps(cards), "")}, ())
    assert (answer.count, [one.index for one in answer.devices]) == (64, list(range(64)))
    assert answer.devices[63].pci_address == "0001:1f:00.0"


# -------------------------------------------------------------------------------------------------- when a form fails


def test_csv_and_then_the_table():
    places = ("0000:04:00.0", "0000:26:00.0")
    answer, runner = ask({JSON: (0, WHOLE[:300], ""), CSV: (0, ROWS, "")}, places)
    assert (runner.calls, answer.count, answer.tools[0].state) == ([JSON, CSV], 2, "ok")
    assert answer.tools[0].excerpt.startswith('{"card0"')
    answer, runner = ask({JSON: (0, "?", ""), CSV: (2, "", "unknown option\n"), TABLE: (0, PLAIN, "")})
    assert (runner.calls, answer.count, answer.tools[0].state) == ([JSON, CSV, TABLE], 2, "ok")
    # It does not tell which card is which.
    assert [(one.index, one.pci_address) for one in answer.devices] == [(0, None), (1, None)]
    assert answer.devices[0].readings == Readings(46.0, None, None, 51.0, 400.0, 0.0)
    assert [one.health.state for one in answer.devices] == ["ok", "warning"]
    assert answer.devices[1].health.reasons == ["ERR!: temp"]


def test_a_card_that_is_left_out_is_asked_alone():
    answer, runner = ask({JSON: (0, only(0), ""), **alone(1, (0, only(1), ""))})
    assert runner.calls == [JSON, ("hy-smi", "-d", "1", *OPTIONS, "--json")]
    assert (answer.count, [one.pci_address for one in answer.devices]) == (2, list(PLACES))


def test_one_hung_card_does_not_hide_the_other():
    answer, runner = ask({JSON: HANG, **alone(0, (0, only(0), "")), **alone(1, HANG)})
    assert (answer.count, answer.hung) == (1, [PLACES[1]])
    assert (answer.devices[0].serial, answer.tools[0].state) == ("TCH19625050401", "hung")
    assert CSV not in runner.calls


def test_everything_hangs():
    answer, _runner = ask({JSON: HANG, **alone(0, HANG), **alone(1, HANG)})
    assert (answer.count, answer.devices, answer.hung) == (None, [], list(PLACES))


def test_not_installed():
    answer, runner = ask({})
    assert [(tool.name, tool.state) for tool in answer.tools] == [("hy-smi", "absent")]
    assert (answer.count, runner.calls) == (None, [])


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("ERROR:root:Driver not initialized (hydcu not found in modules)\n", "driver_not_loaded"),
        ("PermissionError: [Errno 13] Permission denied: '/dev/kfd'\n", "no_permission"),
    ],
)
@pytest.mark.parametrize("rc", [0, 1])
def test_known_errors(said, reason, rc):
    answer, runner = ask({JSON: (rc, "", said)})
    assert (answer.count, answer.devices, runner.calls) == (None, [], [JSON])
    assert (answer.tools[0].state, answer.tools[0].reason) == ("failed", reason)


# --------------------------------------------------------------------------------------------- unpleasant answers

GARBAGE = {
    "empty": "",
    "html": "<html><title>502 Bad Gateway</title></html>\n",
    "binary": bytes(range(256)).decode("latin-1") * 20,
    "brackets": "[" * 100000,
    "a_list": "[1, 2]\n",
    "no_cards": '{"card0": "N/A", "cardX": {}, "system": {}}\n',
    "short_row": "device,PCI Bus,DCU use (%)\ncard0,0000:09:00.0\n",
    "endless_cell": "device,PCI Bus\ncard0," + "x" * 200000 + "\n",
    "table_with_a_longer_row": PLAIN.replace("Normal\n1", "Normal  x\n1"),
    "nulls": "\0" * 4000,
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_no_answer_and_kept(name):
    junk = (0, GARBAGE[name], "")
    answer, _runner = ask({JSON: junk, CSV: junk, TABLE: junk, **alone(0, junk), **alone(1, junk)})
    assert (answer.count, answer.devices, answer.tools[0].state) == (None, [], "unreadable")
    if GARBAGE[name].strip("\0"):
        assert answer.tools[0].excerpt


@pytest.mark.parametrize("word", ["N/A", "", "-", "ERR!", "None", "\ufffd"])
def test_placeholders_are_no_values(word):
    card = dict.fromkeys(CARDS["card0"], word)
    (one,) = parse(json.dumps({"card0": card})).devices
    assert (one.pci_address, one.pci_id, one.memory_bytes, one.link.under_load) == (None, None, None, None)
    assert one.readings == Readings()
    assert one.health.state == ("warning" if word == "ERR!" else "unknown")


@pytest.mark.parametrize("card", [{"PCI Bus": 9}, {"Serial Number": ["x"]}, {"HCU use (%)": {}}, {"Device ID": True}])
def test_wrong_types_are_no_traceback_and_never_healthy(card):
    (one,) = parse(json.dumps({"card0": card})).devices
    assert (one.pci_address, one.health.state) == (None, "unknown")


def test_warnings_before_the_data():
    warning = "WARNING: low-power state\n"
    answer, _runner = ask({JSON: (0, warning + WHOLE, "")})
    assert (answer.count, answer.errors[0].endswith("WARNING: low-power state")) == (2, True)
    assert len(parse(warning + ROWS).devices) == 2


def test_a_cut_answer_is_never_taken_for_a_whole_one():
    for end in range(0, len(WHOLE.rstrip()), 40):
        with pytest.raises(Unreadable):
            parse(WHOLE[:end])
    for end in range(0, PLAIN.index("End of"), 40):
        with pytest.raises(Unreadable):
            parse_table(PLAIN[:end])


def test_device_nodes():
    files = dict.fromkeys(["/dev/dri/card1", "/dev/kfd", "/sys/bus/pci/devices/0000:09:00.0/drm/card1/dev"], "")
    assert Hygon().device_nodes(RecordedRunner(files=files), Device(pci_address="0000:09:00.0")) == ["/dev/dri/card1"]


# ----------------------------------------------------------------------------------------------------- recordings


def test_recorded_json(recordings):
    (one,) = parse((recordings / "hygon/rocm-smi_dtk24.04.3.json").read_text()).devices
    assert (one.index, one.model, one.serial, one.uuid) == (0, "DCU xxxx", "TPXxxxx", "7100fa8866904061")
    assert (one.pci_id, one.pci_address, one.memory_bytes) == ("1d94:6210", None, 65520 * MIB)
    assert one.readings == Readings(39.0, None, 44.0, 80.0, None, 0.0, 2 * MIB)


def test_recorded_separate_documents_are_joined(recordings):
    found = parse((recordings / "hygon/hy-smi_separate-calls_BW.jsonl").read_text()).devices
    assert [(one.index, one.pci_address, one.memory_bytes, one.readings.memory_used_bytes) for one in found] == [
        (0, "0000:09:00.0", 65520 * MIB, 20413 * MIB),
        (1, "0000:36:00.0", 65520 * MIB, 3 * MIB),
    ]
    assert [one.readings.utilization_percent for one in found] == [0.0, 0.0]


def test_recorded_csv(recordings):
    found = parse((recordings / "hygon/rocm-smi_csv_dtk22.10.1_4xDCU.txt").read_text()).devices
    assert [(one.index, one.readings.utilization_percent) for one in found] == [(1, 0), (2, 0), (3, 0), (4, 0)]


def test_recorded_text_lines(recordings):
    found = parse((recordings / "hygon/rocm-smi_showuse_8xHCU_text.txt").read_text()).devices
    assert [one.readings.utilization_percent for one in found] == [0, 0, 0, 15, 0, 0, 0, 0]
    used = [3, 3, 3, 12058, 3, 3, 3, 5042]
    assert [one.readings.memory_used_bytes for one in found] == [size * MIB for size in used]
    assert [one.index for one in found] == list(range(8))


def table_rows(path: Path) -> list[tuple]:
    return [
        (
            one.index,
            one.readings.temperature_c,
            one.readings.power_watts,
            one.readings.power_limit_watts,
            one.readings.utilization_percent,
        )
        for one in parse_table(path.read_text()).devices
    ]


def test_recorded_tables(recordings):
    assert table_rows(recordings / "hygon/hy-smi_table_BW101.txt") == [(0, 46, 51, 400, 0)]
    assert table_rows(recordings / "hygon/rocm-smi_table_dtk23.10.1_4x.txt") == [
        (0, 30, 38, 280, 0),
        (1, 30, 41, 280, 0),
        (2, 29, 38, 280, 0),
        (3, 29, 39, 280, 0),
    ]
    assert table_rows(recordings / "hygon/rocm-smi_table_rocm4.0.1-dtk_4x.txt") == [
        (0, 50, 23, 300, 0),
        (1, 48, 25, 300, 0),
        (2, 48, 24, 300, 0),
        (3, 49, 27, 300, 0),
    ]


def test_recorded_answer_of_another_tool(recordings):
    text = (recordings / "hygon/rocminfo_dtk24.04.3.txt").read_text()
    for read in (parse, parse_table):
        with pytest.raises(Unreadable):
            read(text)
