# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Iluvatar: what ixsmi prints, refuses, cuts off or hangs on."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import Device, Ecc, Link, Readings
from ansible_collections.accel.cluster.plugins.module_utils._accel.pci import Function
from ansible_collections.accel.cluster.plugins.module_utils._accel.tools import Unreadable
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors.iluvatar import (
    LIBRARIES,
    Iluvatar,
    parse_query,
    parse_table,
)
from doubles import HANG, RecordedRunner

OWN = Path(__file__).resolve().parents[5] / "recordings/iluvatar"
MIB = 1024**2
ALL, TABLE = ("ixsmi", "-q", "-x"), ("ixsmi",)
PLACES = ("0000:26:00.0", "0000:29:00.0")


def own(name: str) -> str:
    return (OWN / name).read_text()


WHOLE = own("q-x_4.3.0_2chip_BI-V150.xml")
PLAIN = own("table_4.2.0_2xBI-V150.txt")


def alone(number: int, answer) -> dict:
    return {(*ALL, "-i", str(number)): answer}


def only(number: int) -> str:
    """Return the document with one of its two cards."""
    begin, middle, end = WHOLE.index("        <gpu id="), WHOLE.rindex("        <gpu id="), WHOLE.index("</ixsmi_log>")
    cards = (WHOLE[begin:middle], WHOLE[middle:end])
    return (WHOLE[:begin] + cards[number] + WHOLE[end:]).replace("<attached_gpus>2", "<attached_gpus>1")


def ask(answers: dict, places=PLACES, files=None, **more):
    runner = RecordedRunner(answers, files, **more)
    functions = [Function(place, vendor="1e3e", device="0003", pci_class="120000") for place in places]
    return Iluvatar().query(runner, functions, 10), runner


# ---------------------------------------------------------------------------------------------------- healthy hosts


def test_a_healthy_host_costs_one_command():
    files = {"/dev/iluvatar0": "", "/sys/module/iluvatar/version": "4.3.0"}
    answer, runner = ask({ALL: (0, WHOLE, "")}, files=files)
    assert runner.calls == [ALL]
    assert (answer.count, answer.errors, answer.tools[0].state, answer.tools[0].version) == (2, [], "ok", "4.3.0")
    one = answer.devices[0]
    assert (one.index, one.model, one.pci_address, one.pci_id) == (0, "Iluvatar BI-V150", "0000:26:00.0", "1e3e:0003")
    assert (one.driver_version, one.firmware_version, one.memory_bytes) == ("4.3.0", "2.1.0", 32768 * MIB)
    assert one.device_nodes == ["/dev/iluvatar0"]
    assert answer.devices[1].device_nodes == []  # it is not there
    assert one.link == Link(8.0, 8, 16.0, 16, None, True)
    assert one.ecc == Ecc(corrected_volatile=6, uncorrected_volatile=0)
    assert one.readings == Readings(
        temperature_c=41.0,
        temperature_limit_c=100.0,
        memory_temperature_c=44.0,
        power_watts=73.0,
        power_limit_watts=205.0,
        utilization_percent=55.0,
        memory_used_bytes=1024 * MIB,
    )
    assert one.processes == [{"pid": 4000, "name": 'python3 -c "a < b & c"', "memory_bytes": 900 * MIB}]
    assert (one.health.state, one.health.reasons) == ("ok", [])
    assert [(driver.kernel_version, driver.loaded) for driver in answer.drivers] == [("4.3.0", True)]


def test_two_chips_of_one_board_stay_two_devices():
    first, second = parse_query(WHOLE).devices
    assert first.serial == second.serial == "2426005681001A"
    assert [first.uuid, second.uuid] == [
        "GPU-5fe225c8-c806-40f5-9132-90c020e4a001",
        "GPU-a1c65686-2223-4310-9cc7-6079e42ea002",
    ]
    # The power of the board is not that of the chip.
    assert (first.readings.power_watts, second.readings.power_watts) == (73.0, None)


def test_a_sick_chip():
    sick = parse_query(WHOLE).devices[1]
    assert sick.ecc == Ecc(corrected_volatile=6, uncorrected_volatile=2)
    assert sick.health.state == "critical"
    assert sick.health.reasons == ["ERR!: gpu_temp", "2 uncorrected memory errors"]
    assert sick.readings.temperature_c is None


def test_the_library_is_where_the_loader_does_not_look():
    answers = {("env", LIBRARIES, "/usr/bin/ixsmi", "-q", "-x"): (0, WHOLE, "")}
    answer, _runner = ask(answers, files={"/usr/local/corex/lib64/libixml.so": ""}, tools={"ixsmi", "env"})
    assert answer.count == 2


def test_sixty_four_chips_and_domains():
    card = only(0)
    begin, end = card.index("        <gpu id="), card.index("</ixsmi_log>")
    body = "".join(
        card[begin:end].replace("00000000:26:00.0", f"0001{n // 32:04X}:{n % 32:02X}:00.0") for n in range(64)
    )
    reply = parse_query(card[:begin].replace("<attached_gpus>1", "<attached_gpus>64") + body + card[end:])
    assert (len(reply.devices), reply.attached) == (64, 64)
    assert reply.devices[63].pci_address == "10001:1f:00.0"


def test_no_cards():
    begin, end = WHOLE.index("        <gpu id="), WHOLE.index("</ixsmi_log>")
    empty = (WHOLE[:begin] + WHOLE[end:]).replace("<attached_gpus>2", "<attached_gpus>0")
    answer, _runner = ask({ALL: (0, empty, "")}, ())
    assert (answer.count, answer.devices) == (0, [])
    assert (answer.tools[0].state, answer.tools[0].reason) == ("ok", "no_devices")


# -------------------------------------------------------------------------------------------------- when a form fails


def test_the_table_makes_up_for_damaged_xml():
    answer, runner = ask({ALL: (0, WHOLE[:2000], ""), TABLE: (0, PLAIN, "")})
    assert runner.calls == [ALL, TABLE]
    assert (answer.count, answer.tools[0].state) == (2, "ok")
    assert answer.tools[0].excerpt.startswith("<?xml")
    assert answer.errors == ["ixsmi -q -x: no complete ixsmi_log in the answer"]
    idle, busy = answer.devices
    assert (idle.index, idle.pci_address, idle.model) == (0, "0000:26:00.0", "Iluvatar BI-V150")
    assert (busy.readings.utilization_percent, busy.link.under_load, idle.link.under_load) == (71.0, True, False)
    assert busy.readings.memory_used_bytes == 2116 * MIB
    assert busy.readings.power_watts is None  # of the board
    assert busy.health.state == "unknown"  # the table counts no errors


def test_an_answer_that_describes_too_few_is_completed():
    lacking = only(0).replace("<attached_gpus>1", "<attached_gpus>2")
    answer, runner = ask({ALL: (0, lacking, ""), **alone(1, (0, only(1), ""))})
    assert runner.calls == [ALL, (*ALL, "-i", "1")]
    assert [(one.index, one.pci_address) for one in answer.devices] == [(0, PLACES[0]), (1, PLACES[1])]
    assert (answer.count, answer.tools[0].state) == (2, "ok")
    assert answer.errors == ["ixsmi -q -x: 2 cards are attached, 1 described"]


def test_one_hung_chip_does_not_hide_the_other():
    answer, runner = ask({ALL: HANG, **alone(0, (0, only(0), "")), **alone(1, HANG)})
    assert (answer.count, answer.hung) == (1, [PLACES[1]])
    assert answer.devices[0].uuid == "GPU-5fe225c8-c806-40f5-9132-90c020e4a001"
    assert (answer.tools[0].state, TABLE in runner.calls) == ("hung", False)


def test_a_card_of_a_guest_is_not_asked_and_not_missed():
    runner = RecordedRunner({ALL: HANG, **alone(0, (0, only(0), ""))})
    functions = [
        Function(PLACES[0], vendor="1e3e", driver="iluvatar"),
        Function(PLACES[1], vendor="1e3e", driver="vfio-pci"),
    ]
    answer = Iluvatar().query(runner, functions, 10)
    assert (answer.count, answer.hung, runner.calls) == (1, [], [ALL, (*ALL, "-i", "0")])


def test_everything_hangs():
    answer, _runner = ask({ALL: HANG, **alone(0, HANG), **alone(1, HANG)})
    assert (answer.count, answer.devices, answer.hung) == (None, [], list(PLACES))
    assert answer.tools[0].state == "hung"


def test_not_installed():
    answer, runner = ask({})
    assert [(tool.name, tool.state) for tool in answer.tools] == [("ixsmi", "absent")]
    assert (answer.count, runner.calls, answer.drivers[0].loaded) == (None, [], False)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("IXSMI has failed because it couldn't communicate with the ILUVATAR driver.\n", "driver_not_loaded"),
        ("Failed to initialize IXML: Driver/library version mismatch\n", "driver_library_mismatch"),
        ("/dev/iluvatar0: Permission denied\n", "no_permission"),
    ],
)
@pytest.mark.parametrize("rc", [0, 255])
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
    "of_nvidia": "<nvidia_smi_log><gpu/></nvidia_smi_log>",
    "open": "<ixsmi_log>" * 3000,
    "crossed": "<ixsmi_log><gpu></ixsmi_log></gpu></ixsmi_log>",
    "moved_columns": PLAIN.replace("| 00000000:26:00.0     | 1500MHz   1600MHz    |", "| 1500MHz | 00000000:26:00.0 |"),
    "nulls": "\0" * 4000,
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_no_answer_and_kept(name):
    junk = (0, GARBAGE[name], "")
    answer, _runner = ask({ALL: junk, TABLE: junk, **alone(0, junk), **alone(1, junk)})
    assert (answer.count, answer.devices, answer.tools[0].state) == (None, [], "unreadable")
    if GARBAGE[name].strip("\0"):
        assert answer.tools[0].excerpt


@pytest.mark.parametrize("word", ["N/A", "-", "", "[Not Supported]", "Unknown Error", "\ufffd"])
def test_placeholders_are_no_values(word):
    text = WHOLE.replace("73 W", word).replace(">0</double_bit>", f">{word}</double_bit>").replace("55 %", word)
    one = parse_query(text).devices[0]
    assert (one.readings.power_watts, one.ecc.uncorrected_volatile, one.link.under_load) == (None, None, None)
    assert one.health.state == ("warning" if word == "Unknown Error" else "unknown")


def test_words_around_the_document_are_kept():
    answer, _runner = ask({ALL: (0, f"warning: fan\n{WHOLE}", "libixml: old\n")})
    assert (answer.count, answer.tools[0].state) == (2, "ok")
    assert answer.errors == ["ixsmi -q -x: warning: fan\nlibixml: old"]


def test_a_cut_answer_is_never_taken_for_a_whole_one():
    for end in range(0, len(WHOLE.rstrip()), 60):
        with pytest.raises(Unreadable):
            parse_query(WHOLE[:end])
    for end in range(0, PLAIN.index("| Processes"), 60):
        with pytest.raises(Unreadable):
            parse_table(PLAIN[:end])


def test_device_nodes():
    device = Device(device_nodes=["/dev/iluvatar3"])
    assert Iluvatar().device_nodes(RecordedRunner(), device) == ["/dev/iluvatar3"]
    assert Iluvatar().device_nodes(RecordedRunner(), Device(pci_address=PLACES[0])) == []


# ----------------------------------------------------------------------------------------------------- recordings


def test_recorded_xml_4_2(recordings):
    reply = parse_query((recordings / "iluvatar/ixsmi-q-x_4.2.0_2xMR-V100.xml").read_text())
    assert (reply.attached, reply.driver_version) == (2, "4.2.0")
    assert [(one.pci_address, one.serial, one.uuid, one.pci_id) for one in reply.devices] == [
        ("0000:0c:00.0", "23490256585496", "GPU-1ac807aa-cbcd-5579-8591-d59d436d6eca", "1e3e:0002"),
        ("0000:0f:00.0", "23490258505496", "GPU-be5622c9-df8e-56fb-8586-86e94d57c938", "1e3e:0002"),
    ]
    first = reply.devices[0]
    assert (first.model, first.memory_bytes, first.firmware_version) == ("Iluvatar MR-V100", 32768 * MIB, None)
    assert first.link == Link(16.0, 16, 16.0, 16, None, False)
    assert first.readings == Readings(44.0, 100.0, None, 37.0, 150.0, 0.0, 27780 * MIB)
    assert (first.ecc, first.health.state) == (Ecc(0, 0), "ok")
    assert [process["pid"] for one in reply.devices for process in one.processes] == [21039, 22550]
    assert reply.devices[1].processes[0]["memory_bytes"] == 27600 * MIB


def test_recorded_xml_4_4_two_chips_of_one_board(recordings):
    reply = parse_query((recordings / "iluvatar/ixsmi-q-x_4.4.0_2chip_BI-V150S.xml").read_text())
    # The address stands only at the card.
    assert [(one.pci_address, one.serial, one.uuid) for one in reply.devices] == [
        ("0000:26:00.0", "2426005680215E", "GPU-5fe225c8-c806-50f5-9132-90c020e40005"),
        ("0000:29:00.0", "2426005680215E", "GPU-a1c65686-2223-5310-9cc7-6079e42e3b35"),
    ]
    assert [one.firmware_version for one in reply.devices] == ["2.0.0", "2.0.0"]
    assert [one.link for one in reply.devices] == [Link(16.0, 16, None, None, None, False)] * 2
    assert reply.devices[0].readings == Readings(35.0, None, 34.0, 13.0, 205.0, 0.0, 68 * MIB)
    assert reply.devices[1].readings == Readings(33.0, None, 33.0, 13.0, 205.0, 0.0, 68 * MIB)


def test_recorded_table(recordings):
    reply = parse_table((recordings / "iluvatar/ixsmi_table_4.1.0_16xBI-V150.txt").read_text())
    assert (reply.tool_version, reply.driver_version) == ("4.1.0", "4.1.0")
    buses = ["13", "16", "1c", "1f", "27", "2a", "34", "37", "3d", "40", "48", "4b", "54", "57", "64", "67"]
    heats = [32, 30, 31, 31, 30, 31, 31, 31, 32, 32, 31, 31, 30, 32, 30, 30]
    assert [(one.index, one.pci_address, one.readings.temperature_c) for one in reply.devices] == [
        (n, f"0000:{bus}:00.0", heat) for n, (bus, heat) in enumerate(zip(buses, heats))
    ]
    assert {(one.model, one.memory_bytes, one.readings.memory_used_bytes) for one in reply.devices} == {
        ("Iluvatar BI-V150", 32768 * MIB, 116 * MIB)
    }


def test_recorded_xml_cut_anywhere(recordings):
    whole = (recordings / "iluvatar/ixsmi-q-x_4.2.0_2xMR-V100.xml").read_text().rstrip()
    for end in range(0, len(whole), 97):
        with pytest.raises(Unreadable):
            parse_query(whole[:end])
