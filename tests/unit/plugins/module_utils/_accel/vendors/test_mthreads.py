# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Moore Threads: what mthreads-gmi prints, refuses, cuts off or hangs on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import Device, Link, Readings
from ansible_collections.accel.cluster.plugins.module_utils._accel.pci import Function
from ansible_collections.accel.cluster.plugins.module_utils._accel.tools import Unreadable
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors.mthreads import (
    Mthreads,
    parse_query,
    parse_table,
    slot_labels,
)
from doubles import HANG, RecordedRunner

OWN = Path(__file__).resolve().parents[5] / "recordings/mthreads"
MIB = 1024**2
ALL, TABLE = ("mthreads-gmi", "-q", "--json"), ("mthreads-gmi",)
PLACES = ("0000:2a:00.0", "0000:3a:00.0", "0001:4b:00.0")


def own(name: str) -> str:
    return (OWN / name).read_text()


WHOLE = own("q_3.3_3xS5000.json")
PLAIN = own("table_2.3_2xS4000.txt")


def alone(number: int, answer) -> dict:
    return {("mthreads-gmi", "-q", "-i", str(number), "--json"): answer}


def only(*numbers: int, attached: int | None = None) -> str:
    document = json.loads(WHOLE)
    document["GPU"] = [document["GPU"][number] for number in numbers]
    document["Attached GPUs"] = str(len(numbers) if attached is None else attached)
    return json.dumps(document, indent=4)


def ask(answers: dict, places=PLACES, files=None, **more):
    runner = RecordedRunner(answers, files, **more)
    functions = [Function(place, vendor="1ed5", device="0400", pci_class="030200") for place in places]
    return Mthreads().query(runner, functions, 10), runner


# ---------------------------------------------------------------------------------------------------- healthy hosts


def test_a_healthy_host_costs_one_command():
    answer, runner = ask({ALL: (0, WHOLE, "")}, files={"/sys/module/mtgpu/refcnt": "9"})
    assert runner.calls == [ALL]
    assert (answer.count, answer.errors, answer.tools[0].state) == (3, [], "ok")
    one = answer.devices[0]
    assert (one.index, one.model, one.pci_address, one.pci_id) == (0, "MTT S5000", "0000:2a:00.0", "1ed5:0400")
    assert (one.serial, one.uuid) == ("MY10YL225BF07001", "2f0d1a77-aa01-4475-893c-2eeca9e30a01")
    assert (one.driver_version, one.firmware_version, one.memory_bytes) == ("3.3.5-server", "4.3.41", 81920 * MIB)
    assert one.link == Link(16.0, 8, 32.0, 16, None, True)
    assert one.readings == Readings(
        temperature_c=57.0,
        power_watts=396.66,  # the key ends in a blank
        power_limit_watts=950.0,
        utilization_percent=42.0,
        memory_used_bytes=1024 * MIB,
    )
    assert one.health.state == "ok"
    assert answer.slot_labels == {PLACES[0]: "5"}
    assert [(driver.kernel_version, driver.loaded) for driver in answer.drivers] == [("3.3.5-server", True)]


def test_what_is_no_value():
    silent, sick = ask({ALL: (0, WHOLE, "")})[0].devices[1:]
    assert (silent.readings, silent.health.state) == (Readings(utilization_percent=0.0), "ok")
    assert (sick.pci_address, sick.serial, sick.uuid, sick.memory_bytes) == ("0001:4b:00.0", None, None, None)
    assert (sick.health.state, sick.health.reasons) == ("warning", ["ERR!: Total, GPU Current Temp"])


def test_slot_numbers_that_name_no_place():
    def labels(*numbers):
        return slot_labels([Device(pci_address=f"0000:{n:02x}:00.0", module_id=one) for n, one in enumerate(numbers)])

    assert labels(0, 1, None, 2) == {"0000:01:00.0": "1", "0000:03:00.0": "2"}
    assert labels(3, 3) == {}


def test_sixty_four_cards():
    document = json.loads(only(0))
    cards = [json.loads(json.dumps(document["GPU"][0])) for _n in range(64)]
    for number, card in enumerate(cards):
        card["Index"], card["PCI"]["Bus ID"] = str(number), f"{number // 32:08X}:{number % 32:02X}:00.0"
    document.update({"GPU": cards, "Attached GPUs": "64"})
    answer, _runner = ask({ALL: (0, json.dumps(document), "")}, ())
    assert (answer.count, answer.devices[63].pci_address) == (64, "0001:1f:00.0")


def test_no_cards():
    answer, _runner = ask({ALL: (0, only(), "")}, ())
    assert (answer.count, answer.devices, answer.tools[0].reason) == (0, [], "no_devices")
    answer, _runner = ask({ALL: (0, "Error: No MT GPU device found.\n", "")}, ())
    assert (answer.count, answer.tools[0].state, answer.tools[0].reason) == (0, "ok", "no_devices")


# -------------------------------------------------------------------------------------------------- when a form fails


def test_the_table_makes_up_for_a_release_without_json():
    places = ("0000:12:00.0", "0000:5c:00.0")
    answer, runner = ask({ALL: (1, "", "unrecognized option '--json'\n"), TABLE: (0, PLAIN, "")}, places)
    assert runner.calls == [ALL, TABLE]
    assert (answer.count, answer.tools[0].state, answer.tools[0].version) == (2, "ok", "2.3.3")
    assert answer.errors == ["mthreads-gmi -q --json: unrecognized option '--json'"]
    busy, silent = answer.devices
    assert (busy.index, busy.model, busy.pci_address) == (0, "MTT S4000", "0000:12:00.0")
    assert (busy.driver_version, busy.memory_bytes) == ("3.3.5-server", 49152 * MIB)
    assert busy.readings == Readings(temperature_c=48.0, utilization_percent=35.0, memory_used_bytes=1111 * MIB)
    assert busy.processes == [{"pid": 12345, "name": "python3 train.py --name a", "memory_bytes": 1024 * MIB}]
    assert (busy.link.width, silent.link.width, silent.link.max_width) == (16, 4, 16)
    assert (silent.pci_address, silent.readings, silent.health.state) == ("0000:5c:00.0", Readings(), "unknown")


def test_an_answer_that_describes_too_few_is_completed():
    answer, runner = ask({ALL: (0, only(0, 2, attached=3), ""), **alone(1, (0, only(1), ""))})
    assert runner.calls == [ALL, ("mthreads-gmi", "-q", "-i", "1", "--json")]
    assert [one.pci_address for one in answer.devices] == list(PLACES)
    assert (answer.count, answer.tools[0].state) == (3, "ok")


def test_one_hung_card_does_not_hide_the_others():
    answers = {ALL: HANG, **alone(0, (0, only(0), "")), **alone(1, HANG), **alone(2, (0, only(2), ""))}
    answer, runner = ask(answers)
    assert (answer.count, answer.hung) == (2, ["0000:3a:00.0"])
    assert [one.index for one in answer.devices] == [0, 2]
    assert (answer.tools[0].state, TABLE in runner.calls) == ("hung", False)


def test_everything_hangs():
    answer, _runner = ask({ALL: HANG, **alone(0, HANG), **alone(1, HANG), **alone(2, HANG)})
    assert (answer.count, answer.devices, answer.hung) == (None, [], list(PLACES))


def test_not_installed():
    answer, runner = ask({})
    assert [(tool.name, tool.state) for tool in answer.tools] == [("mthreads-gmi", "absent")]
    assert (answer.count, runner.calls) == (None, [])


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("Error: failed to initialize mtml\n", "driver_not_ready"),
        ("open /dev/mtgpu.0: Permission denied\n", "no_permission"),
    ],
)
@pytest.mark.parametrize("rc", [0, 1])
def test_known_errors(said, reason, rc):
    answer, runner = ask({ALL: (rc, said, "")})
    assert (answer.count, answer.devices, runner.calls) == (None, [], [ALL])
    assert (answer.tools[0].state, answer.tools[0].reason) == ("failed", reason)
    assert said.strip() in answer.tools[0].excerpt


# --------------------------------------------------------------------------------------------- unpleasant answers

GARBAGE = {
    "empty": "",
    "html": "<html><title>502 Bad Gateway</title></html>\n",
    "binary": bytes(range(256)).decode("latin-1") * 20,
    "brackets": "[" * 100000,
    "no_list": '{"GPU": {}}\n',
    "nulls_in_list": '{"GPU": [null]}\n',
    "a_list": "[1, 2]\n",
    "moved_columns": PLAIN.replace(
        "|00000000:12:00.0    |35%   1111MiB(49152MiB)", "|35%  1111MiB(49152MiB) |00000000:12:00.0"
    ),
    "nulls": "\0" * 4000,
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_no_answer_and_kept(name):
    junk = (0, GARBAGE[name], "")
    answer, _runner = ask({ALL: junk, TABLE: junk, **alone(0, junk), **alone(1, junk), **alone(2, junk)})
    assert (answer.count, answer.devices, answer.tools[0].state) == (None, [], "unreadable")
    if GARBAGE[name].strip("\0"):
        assert answer.tools[0].excerpt


@pytest.mark.parametrize(
    "card", [{}, {"Index": [1]}, {"PCI": "N/A", "Utilization": 7}, {"Index": True, "PCI": {"Bus ID": 3}}]
)
def test_wrong_types_are_no_traceback_and_never_healthy(card):
    (one,) = parse_query(json.dumps({"GPU": [card]})).devices
    assert (one.index, one.pci_address, one.health.state) == (None, None, "unknown")


def test_words_around_the_document_are_kept():
    answer, _runner = ask({ALL: (0, f"WARNING: old firmware\n{WHOLE}", "")})
    assert (answer.count, answer.errors) == (3, ["mthreads-gmi -q --json: WARNING: old firmware"])


def test_a_cut_answer_is_never_taken_for_a_whole_one():
    for end in range(0, len(WHOLE.rstrip()), 40):
        with pytest.raises(Unreadable):
            parse_query(WHOLE[:end])
    for end in range(0, PLAIN.index("Processes:"), 40):
        with pytest.raises(Unreadable):
            parse_table(PLAIN[:end])


def test_device_nodes():
    files = dict.fromkeys(["/dev/dri/card1", "/sys/bus/pci/devices/0000:2a:00.0/drm/card1/dev"], "")
    assert Mthreads().device_nodes(RecordedRunner(files=files), Device(pci_address="0000:2a:00.0")) == [
        "/dev/dri/card1"
    ]


# ----------------------------------------------------------------------------------------------------- recordings


def test_recorded_table_1_14(recordings):
    reply = parse_table((recordings / "mthreads/mthreads-gmi_table_1.14.0_S80_x4-of-x16.txt").read_text())
    assert (reply.tool_version, reply.driver_version) == ("1.14.0", "2.7.0")
    (one,) = reply.devices
    assert (one.index, one.model, one.pci_address, one.memory_bytes) == (0, "MTT S80", "0000:04:00.0", 16384 * MIB)
    assert one.link == Link(None, 4, None, 16, None, False)
    assert one.readings == Readings(temperature_c=49.0, utilization_percent=0.0, memory_used_bytes=2 * MIB)
    assert one.processes == []


def test_recorded_table_2_4(recordings):
    reply = parse_table((recordings / "mthreads/mthreads-gmi_table_2.4.1_8xS5000.txt").read_text())
    assert (reply.tool_version, reply.driver_version) == ("2.4.1", "5.1.0-server")
    buses, heats = ["18", "3a", "4b", "5c", "9a", "ba", "ca", "da"], [48, 48, 49, 48, 48, 50, 48, 49]
    assert [(one.index, one.pci_address, one.readings.temperature_c) for one in reply.devices] == [
        (n, f"0000:{bus}:00.0", heat) for n, (bus, heat) in enumerate(zip(buses, heats))
    ]
    assert {(one.model, one.memory_bytes, one.link.width, one.link.max_width) for one in reply.devices} == {
        ("MTT S5000", 81920 * MIB, 16, 16)
    }
