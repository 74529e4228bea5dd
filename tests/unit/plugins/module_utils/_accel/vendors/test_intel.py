# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Intel: what xpu-smi prints, refuses, cuts off or hangs on, and what of Intel's is a card."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import Device, Link, Readings
from ansible_collections.accel.cluster.plugins.module_utils._accel.pci import Function
from ansible_collections.accel.cluster.plugins.module_utils._accel.tools import Unreadable
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors.intel import (
    CSV,
    DUMP,
    HEALTH,
    LIST,
    VERSION,
    Intel,
    device,
    parse_csv,
    parse_dump,
    parse_json_card,
    parse_json_list,
    parse_table,
    slot_labels,
)
from doubles import HANG, RecordedRunner

OWN = Path(__file__).resolve().parents[5] / "recordings/intel"
MIB = 1024**2
PLACES = ("0000:29:00.0", "0000:9a:00.0")
NO_LIST = (1, '{"error": "Error", "errno": 3}\n', "")


def own(name: str) -> str:
    return (OWN / name).read_text()


LISTED = own("discovery_1.2_2xMax1550.json")


def cmd(*arguments: str) -> tuple[str, ...]:
    return ("xpu-smi", *arguments)


def card(number) -> tuple[str, ...]:
    return cmd("discovery", "-d", str(number), "-j")


def healthy(changes: dict | None = None) -> dict:
    return {
        cmd(*VERSION): (0, own("version.txt"), ""),
        cmd(*LIST): (0, LISTED, ""),
        cmd(*HEALTH): (0, own("health-l.json"), ""),
        cmd(*DUMP): (0, own("dump.csv"), ""),
        card(0): (0, own("discovery-d0.json"), ""),
        card(1): (0, own("discovery-d1.json"), ""),
        **(changes or {}),
    }


def ask(answers: dict, places=PLACES, files=None, **more):
    runner = RecordedRunner(answers, files, **more)
    functions = [Function(place, vendor="8086", device="0bd5", pci_class="038000") for place in places]
    return Intel().query(runner, functions, 10), runner


# -------------------------------------------------------------------------------------------------- what is a card


@pytest.mark.parametrize(
    ("place", "chip", "pci_class", "owned"),
    [
        ("0000:29:00.0", "0bd5", "038000", True),  # Max 1550
        ("0000:4d:00.0", "56c0", "038000", True),  # Flex 170
        ("0000:03:00.0", "e20b", "030000", True),  # Arc B580
        ("0000:00:05.0", "56c0", "038000", True),  # of a guest
        ("0000:03:00.0", "6789", "030000", True),  # a family to come, not on bus 00
        ("0000:00:02.0", "a780", "030000", False),  # graphics of a processor
        ("0000:00:02.0", "7d55", "030000", False),
        ("0000:00:0b.0", "7d1d", "120000", False),  # neural processor of a client chip
        ("0000:6a:01.0", "0b25", "088000", False),  # data streaming accelerator of a Xeon
        ("0000:6b:00.0", "4940", "0b4000", False),  # QuickAssist
        ("0000:00:00.0", "09a2", "088000", False),
        ("0000:17:00.0", "159b", "020000", False),  # network card
    ],
)
def test_what_is_a_card(place, chip, pci_class, owned):
    assert Intel().owns(Function(place, vendor="8086", device=chip, pci_class=pci_class)) is owned


# ---------------------------------------------------------------------------------------------------- healthy hosts


def test_a_healthy_host():
    answer, runner = ask(healthy(), files={"/sys/module/xe/refcnt": "9"})
    assert len(runner.calls) == len(set(runner.calls)) == 6
    # The function of a guest is no card.
    assert (answer.count, answer.errors, answer.hung) == (2, [], [])
    (tool,) = answer.tools
    assert (tool.state, tool.version, tool.reason) == ("ok", "1.2.39.20240906", None)
    one = answer.devices[0]
    assert (one.index, one.pci_address, one.pci_id, one.module_id) == (0, "0000:29:00.0", "8086:0bd5", 0)
    assert (one.model, one.serial) == ("Intel(R) Data Center GPU Max 1550", "LQAC20305122")
    assert (one.driver_version, one.firmware_version, one.memory_bytes) == ("1.3.30872", "PVC2_1.23374", 137438953472)
    assert one.link == Link(None, None, 32.0, 16, None, False)
    assert one.readings == Readings(
        temperature_c=38.5,
        temperature_limit_c=105.0,
        power_watts=214.61,
        utilization_percent=0.0,
        memory_used_bytes=int(1966.25 * MIB),
    )
    assert (one.health.state, one.health.reasons) == ("ok", [])
    assert one.source == "xpu-smi 1.2.39.20240906"
    assert [(driver.kernel_version, driver.loaded) for driver in answer.drivers] == [("1.3.30872", True)]


def test_a_sick_component():
    sick = ask(healthy())[0].devices[1]
    assert sick.health.state == "critical"
    assert sick.health.reasons == [
        "core temperature: Find an unhealthy temperature sensor. Its temperature is 112.",
        "xe link port: Port 3 is degraded.",
    ]
    assert sick.link.under_load is True


def test_a_threshold_that_is_not_set():
    one = device({"pci_bdf_address": PLACES[0]}, {"core_temperature": {"status": "Ok", "throttle_threshold": -1}}, None)
    assert (one.readings.temperature_limit_c, one.health.state) == (None, "ok")


def test_a_uuid_made_of_the_address_names_no_card():
    first, second = ask(healthy())[0].devices
    assert (first.uuid, second.uuid) == (None, "01000000-0000-0000-2c41-9f3a5d7708ab")
    assert (first.serial, second.serial) == ("LQAC20305122", None)


def test_names_of_places():
    def labels(sockets, slots):
        cards = [Device(pci_address=f"0000:{n:02x}:00.0", module_id=one) for n, one in enumerate(sockets)]
        return slot_labels(cards, {f"0000:{n:02x}:00.0": one for n, one in enumerate(slots) if one})

    assert ask(healthy())[0].slot_labels == {PLACES[0]: "OAM0", PLACES[1]: "OAM3"}
    assert labels([None, None], ["Riser 1, slot 1", "Riser 2, slot 1"]) == {
        "0000:00:00.0": "Riser 1, slot 1",
        "0000:01:00.0": "Riser 2, slot 1",
    }
    assert labels([None, None], ["Riser 1", "Riser 1"]) == {}
    assert labels([0], [None]) == {}
    assert labels([2, 2], [None, "5"]) == {"0000:01:00.0": "5"}


def test_sixty_four_cards():
    cards = [{"device_id": n, "pci_bdf_address": f"{n // 32:08X}:{n % 32:02X}:00.0"} for n in range(64)]
    answers = healthy({cmd(*LIST): (0, json.dumps({"device_list": cards}), "")})
    answers.update({card(n): (0, json.dumps(one), "") for n, one in enumerate(cards)})
    answer, _runner = ask(answers, ())
    assert (answer.count, answer.devices[63].pci_address) == (64, "0001:1f:00.0")


def test_no_cards():
    answer, _runner = ask(healthy({cmd(*LIST): (0, '{"device_list": []}', "")}), ())
    assert (answer.count, answer.devices, answer.tools[0].reason) == (0, [], "no_devices")
    answer, _runner = ask(healthy({cmd(*LIST): (0, "No device discovered\n", "")}), ())
    assert (answer.count, answer.tools[0].state, answer.tools[0].reason) == (0, "ok", "no_devices")


# ------------------------------------------------------------------------------------------------ name of another tool


LOOK_ALIKE = {cmd(*VERSION): (0, "XPU-SMI 5.0.21\n", "")}
for _arguments in (LIST, HEALTH, DUMP, CSV):
    LOOK_ALIKE[cmd(*_arguments)] = (2, "", "xpu-smi: unrecognized command\n")


def test_the_program_of_another_vendor_is_not_ours():
    answer, _runner = ask(LOOK_ALIKE, ())
    assert [(tool.state, tool.version) for tool in answer.tools] == [("absent", None)]
    assert (answer.count, answer.devices, answer.errors, answer.drivers) == (None, [], [], [])


def test_the_program_of_another_vendor_beside_our_card():
    answers = dict(LOOK_ALIKE)
    for place in PLACES:
        answers[card(place)] = answers[cmd("discovery", "-d", place)] = (2, "", "unrecognized command\n")
    answer, _runner = ask(answers)
    assert (answer.tools[0].state, answer.count) == ("failed", None)


def test_our_program_that_fails_is_ours():
    answers = healthy({cmd(*LIST): NO_LIST, cmd(*CSV): (1, "", "Error\n")})
    answer, _runner = ask(answers, ())
    assert (answer.tools[0].state, answer.tools[0].version) == ("failed", "1.2.39.20240906")


# -------------------------------------------------------------------------------------------------- when a form fails


def test_the_csv_makes_up_for_the_list():
    answer, runner = ask(healthy({cmd(*LIST): (0, LISTED[:200], ""), cmd(*CSV): (0, own("discovery--dump.csv"), "")}))
    assert cmd(*CSV) in runner.calls
    assert (answer.count, answer.tools[0].state) == (2, "ok")
    assert answer.tools[0].excerpt.startswith('{\n    "device_list"')
    assert [one.serial for one in answer.devices] == ["LQAC20305122", None]
    assert answer.devices[0].health.state == "ok"


def test_each_card_makes_up_for_list_and_csv():
    answers = healthy({cmd(*LIST): NO_LIST, cmd(*CSV): (1, "", "Error\n")})
    answers[card(PLACES[0])] = (0, own("discovery-d0.json"), "")
    answers[card(PLACES[1])] = (1, "json is not supported\n", "")
    answers[cmd("discovery", "-d", PLACES[1])] = (0, own("discovery-d_table.txt"), "")
    answer, _runner = ask(answers)
    assert (answer.count, answer.tools[0].state) == (2, "ok")
    assert [one.index for one in answer.devices] == [0, 1]
    flex = answer.devices[1]
    assert (flex.model, flex.serial, flex.pci_id) == ("Intel(R) Data Center GPU Flex 170", "LQAC13401234", "8086:56c0")
    assert (flex.uuid, flex.memory_bytes) == ("00000000-0000-0000-6769-df256e271362", 14248 * MIB)
    assert flex.link == Link(None, None, None, None, None, True)  # -1 is no generation and no width
    assert flex.firmware_version == "DG02_1.3267"


def test_without_health_and_dump():
    answer, _runner = ask(healthy({cmd(*HEALTH): NO_LIST, cmd(*DUMP): (1, "", "no permission for metrics\n")}))
    assert (answer.count, [one.health.state for one in answer.devices]) == (2, ["unknown", "unknown"])
    assert answer.devices[0].readings == Readings()
    assert len(answer.errors) == 2


def test_one_hung_card_keeps_what_it_told_before():
    answer, _runner = ask(healthy({card(1): HANG}))
    assert (answer.count, answer.hung, answer.tools[0].state) == (1, [PLACES[1]], "hung")
    assert answer.last[PLACES[1]].uuid == "01000000-0000-0000-2c41-9f3a5d7708ab"


def test_one_hung_card_hides_no_other_where_the_list_hangs():
    answers = healthy({cmd(*LIST): HANG, cmd(*HEALTH): HANG, cmd(*DUMP): HANG})
    answers.update({card(PLACES[0]): (0, own("discovery-d0.json"), ""), card(PLACES[1]): HANG})
    answer, runner = ask(answers)
    assert (answer.count, answer.hung, answer.tools[0].state) == (1, [PLACES[1]], "hung")
    assert cmd(*CSV) not in runner.calls


def test_everything_hangs():
    answers = dict.fromkeys([*healthy(), card(PLACES[0]), card(PLACES[1])], HANG)
    answer, runner = ask(answers)
    assert (answer.count, answer.devices, answer.hung) == (None, [], list(PLACES))
    assert (answer.tools[0].state, len(runner.calls)) == ("hung", 6)


def test_a_card_that_its_library_does_not_see():
    cards = json.loads(LISTED)
    cards["device_list"][1] = {"pci_bdf_address": PLACES[1], "gfx_firmware_status": "GPU in bad state"}
    answer, _runner = ask(healthy({cmd(*LIST): (0, json.dumps(cards), "")}))
    assert (answer.devices[1].index, answer.devices[1].health.state) == (None, "critical")
    assert answer.devices[1].health.reasons == ["firmware: GPU in bad state"]


def test_not_installed():
    answer, runner = ask({})
    assert [(tool.name, tool.state) for tool in answer.tools] == [("xpu-smi", "absent")]
    assert (answer.count, runner.calls, len(answer.drivers)) == (None, [], 1)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((1, '{"error": "Level Zero Initialization Error", "errno": 40}\n', ""), "driver_not_ready"),
        ((1, "", "open /dev/dri/card1: Permission denied\n"), "no_permission"),
    ],
)
def test_known_errors(answer, reason):
    seen, runner = ask(healthy({cmd(*LIST): answer}))
    assert (seen.count, seen.devices, len(runner.calls)) == (None, [], 4)
    assert (seen.tools[0].state, seen.tools[0].reason) == ("failed", reason)
    assert seen.tools[0].excerpt


# --------------------------------------------------------------------------------------------- unpleasant answers

GARBAGE = {
    "empty": "",
    "html": "<html><title>502 Bad Gateway</title></html>\n",
    "binary": bytes(range(256)).decode("latin-1") * 20,
    "brackets": "[" * 100000,
    "a_list": "[1, 2]\n",
    "no_list": '{"device_list": "N/A"}\n',
    "nulls_in_list": '{"device_list": [null]}\n',
    "short_row": 'Device ID,Device Name\n0,"x","y"\n',
    "endless_cell": "Device ID,Device Name\n0," + "x" * 200000 + "\n",
    "nulls": "\0" * 4000,
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_no_answer_and_kept(name):
    commands = [*healthy(), cmd(*CSV), *(card(place) for place in PLACES)]
    commands += [cmd("discovery", "-d", place) for place in PLACES]
    answer, _runner = ask(dict.fromkeys(commands, (0, GARBAGE[name], "")))
    assert (answer.count, answer.devices, answer.tools[0].state) == (None, [], "unreadable")
    if GARBAGE[name].strip("\0"):
        assert answer.tools[0].excerpt


@pytest.mark.parametrize("word", ["N/A", "", "-", "ERR!", "unknown", "-1", None, [], {}, True, "\ufffd"])
def test_placeholders_are_no_values(word):
    values = dict.fromkeys(json.loads(own("discovery-d0.json")), word)
    one = device({**values, "pci_bdf_address": PLACES[0]}, {"core_temperature": {"status": word}, "power": word}, None)
    assert (one.index, one.pci_id, one.module_id, one.memory_bytes) == (None, None, None, None)
    assert one.link == Link()
    assert one.health.state == ("warning" if word == "ERR!" else "unknown")


@pytest.mark.parametrize("entry", [{"device_id": [1]}, {"device_id": {}, "pci_bdf_address": 7}, {"device_id": True}])
def test_wrong_types_are_no_traceback(entry):
    listed = (0, json.dumps({"device_list": [entry]}), "")
    answer, _runner = ask(healthy({cmd(*LIST): listed, cmd(*HEALTH): listed}), ())
    assert answer.devices == []


@pytest.mark.parametrize(
    ("more", "state"),
    [
        ({"memory": {"status": "Degraded"}}, "unknown"),
        ({"memory": {"status": "ERR!"}}, "warning"),
        ({"pcie_link": {"status": "Critical", "description": "The link is down."}}, "critical"),
        ({"pcie_link": {"status": "Ok"}}, "ok"),
        ({"fabric_port": {"status": "Unknown"}}, "ok"),  # as of a card without such ports
    ],
)
def test_a_state_or_a_component_that_is_not_known_is_no_good_news(more, state):
    card = {"device_id": 0, "pci_bdf_address": PLACES[0]}
    well = {"device_id": 0, "power": {"status": "Ok"}, "memory": {"status": "Ok"}}
    assert device(card, {**well, **more}, None).health.state == state
    assert device(card, {"device_id": 0, "pcie_link": {"status": "Ok"}}, None).health.state == "unknown"


def test_words_around_the_list_are_told():
    answer, _runner = ask(healthy({cmd(*LIST): (0, f"WARNING: old firmware\n{LISTED}", "")}))
    assert (answer.count, answer.tools[0].state) == (2, "ok")
    assert "WARNING: old firmware" in answer.tools[0].excerpt
    assert [error for error in answer.errors if "old firmware" in error] == [
        "xpu-smi discovery -j: WARNING: old firmware"
    ]


def test_moved_columns_are_followed_by_name():
    lines = [line.split(", ") for line in own("dump.csv").splitlines()]
    moved = "".join(", ".join([*row[:2], *row[2:][::-1]]) + "\n" for row in lines)
    assert parse_dump(moved) == parse_dump(own("dump.csv"))


def test_a_cut_answer_is_never_taken_for_a_whole_one():
    for end in range(0, len(LISTED.rstrip()), 40):
        with pytest.raises(Unreadable):
            parse_json_list(LISTED[:end])
    whole = own("discovery-d0.json").rstrip()
    for end in range(0, len(whole), 40):
        with pytest.raises(Unreadable):
            parse_json_card(whole[:end])
    table = own("discovery-d_table.txt").rstrip()
    for end in range(0, table.rindex("\n"), 40):
        with pytest.raises(Unreadable):
            parse_table(table[:end])


def test_device_nodes():
    base = "/sys/bus/pci/devices/0000:29:00.0/drm"
    files = dict.fromkeys(["/dev/dri/card1", "/dev/dri/renderD128", f"{base}/card1/dev", f"{base}/renderD128/dev"], "")
    nodes = Intel().device_nodes(RecordedRunner(files=files), Device(pci_address="0000:29:00.0"))
    assert nodes == ["/dev/dri/card1", "/dev/dri/renderD128"]
    assert Intel().device_nodes(RecordedRunner(), Device()) == []


# ----------------------------------------------------------------------------------------------------- recordings


def test_recorded_card(recordings):
    told = parse_table((recordings / "intel/xpu-smi_discovery-d.txt").read_text())
    one = device(told, None, None)
    assert (one.index, one.model, one.pci_address) == (0, "Intel(R) Graphics [0x020a]", "0000:4d:00.0")
    # Unknown, and made of the device id alone.
    assert (one.serial, one.uuid) == (None, None)
    assert (one.driver_version, one.firmware_version) == ("16929133", "ATS0_1.1")
    assert (one.memory_bytes, one.link) == (32768 * MIB, Link(None, None, 16.0, 16))
    assert told["pci_slot"] == "Riser 1, slot 1"
    assert one.health.state == "unknown"


def test_recorded_csv(recordings):
    found = parse_csv((recordings / "intel/xpu-smi_discovery--dump.csv.txt").read_text())
    assert [(one["device_id"], one["device_name"]) for one in found] == [
        ("0", "Intel(R) Graphics [0x56c0]"),
        ("1", "Intel(R) Graphics [0x56c0]"),
    ]


def test_recorded_dump(recordings):
    measured = parse_dump((recordings / "intel/xpu-smi_dump.csv.txt").read_text())
    assert measured == {0: Readings(power_watts=14.61, utilization_percent=0.0)}  # the last of five lines


def test_recorded_version(recordings):
    version = (recordings / "intel/xpu-smi_version.txt").read_text()
    answer, _runner = ask(healthy({cmd(*VERSION): (0, version, "")}))
    assert answer.tools[0].version == "1.0.0.20211217"


@pytest.mark.parametrize("name", ["xpu-smi_diag-l1.txt", "xpu-smi_ps.txt", "xpu-smi_topology-d0.txt"])
def test_recorded_answers_to_other_questions(recordings, name):
    text = (recordings / "intel" / name).read_text()
    for read in (parse_json_list, parse_json_card, parse_csv, parse_dump, parse_table):
        with pytest.raises(Unreadable):
            read(text)
