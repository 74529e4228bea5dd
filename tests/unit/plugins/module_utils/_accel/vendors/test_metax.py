# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MetaX: what mx-smi and ht-smi print, refuse, cut off or hang on."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import Device, Readings
from ansible_collections.accel.cluster.plugins.module_utils._accel.pci import Function
from ansible_collections.accel.cluster.plugins.module_utils._accel.tools import Unreadable
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors.metax import (
    LISTING,
    Metax,
    parse_listing,
    parse_table,
)
from doubles import HANG, RecordedRunner

OWN = Path(__file__).resolve().parents[5] / "recordings/metax"
MIB = 1024**2
TABLE, LIST = ("mx-smi",), ("mx-smi", *LISTING)
PLACES = ("0000:01:00.0", "0000:21:00.0")


def own(name: str) -> str:
    return (OWN / name).read_text()


OLD, NEW, SHOW = own("table_2.2.7_2xN260.txt"), own("table_2.3.1_3xC500X.txt"), own("show_2.3.1_2xN260.txt")


def alone(number: int, answer) -> dict:
    return {(*LIST, "-i", str(number)): answer}


def only(number: int) -> str:
    begin, middle, end = SHOW.index("GPU#0"), SHOW.index("GPU#1"), SHOW.index("End of Log")
    return SHOW[:begin] + (SHOW[begin:middle], SHOW[middle:end])[number] + SHOW[end:]


def ask(answers: dict, places=PLACES, files=None, **more):
    runner = RecordedRunner(answers, files, **more)
    functions = [Function(place, vendor="9999", device="4000", pci_class="030200") for place in places]
    return Metax().query(runner, functions, 10), runner


# ---------------------------------------------------------------------------------------------------- healthy hosts


def test_a_healthy_host_costs_one_command():
    answer, runner = ask({TABLE: (0, OLD, "")})
    assert runner.calls == [TABLE]
    assert (answer.count, answer.errors, answer.tools[0].state, answer.tools[0].version) == (2, [], "ok", "2.2.7")
    one, other = answer.devices
    assert (one.index, one.model, one.pci_address, one.module_id) == (0, "MetaX N260", "0000:01:00.0", None)
    assert (one.driver_version, one.firmware_version, one.memory_bytes) == ("3.0.9", "1.25.0.0", 65536 * MIB)
    assert one.readings == Readings(
        temperature_c=41.0,
        power_watts=29.0,
        power_limit_watts=225.0,
        utilization_percent=7.0,
        memory_used_bytes=4096 * MIB,
    )
    assert one.processes == [{"pid": 40123, "name": "python3 serve.py", "memory_bytes": 3400 * MIB}]
    assert (one.link.under_load, other.link.under_load, other.readings.power_watts) == (True, False, None)
    assert (one.health.state, one.source) == ("ok", "mx-smi 2.2.7")


def test_the_new_layout_and_two_chips_of_one_board():
    reply = parse_table(NEW)
    assert [(one.index, one.module_id, one.pci_address) for one in reply.devices] == [
        (0, 0, "0000:0e:00.0"),
        (1, 0, "0000:0f:00.0"),
        (2, 1, "0000:35:00.0"),
    ]
    assert (reply.attached, reply.tool_version, reply.driver_version) == (3, "2.3.1", "3.8.0")
    assert {one.firmware_version for one in reply.devices} == {"1.31.0.0"}
    assert reply.devices[1].readings.utilization_percent == 64.0


def test_a_card_that_is_not_available_is_critical():
    good, bad, sick = parse_table(NEW).devices
    assert (good.health.state, bad.health.state, sick.health.state) == ("ok", "critical", "warning")
    assert bad.health.reasons == ["the tool calls the card Not Available"]
    assert (sick.health.reasons, sick.readings.temperature_c) == (["ERR!: temperature"], None)


def test_the_program_of_another_maker():
    answers = {("ht-smi",): (0, NEW.replace("MX-SMI", "HT-SMI").replace("MetaX C500X", "  Mars X201"), "")}
    answer, _runner = ask(answers, ())
    assert (answer.count, answer.tools[0].name, answer.devices[0].model) == (3, "ht-smi", "Mars X201")
    assert answer.devices[0].source == "ht-smi 2.3.1"


def test_a_program_of_another_vendor_is_not_ours():
    said = {TABLE: (2, "mx-smi: Moffett system management\n", ""), LIST: (2, "usage: mx-smi\n", "")}
    answer, _runner = ask(said, ())
    assert (answer.tools[0].state, answer.errors, answer.count) == ("absent", [], None)
    answer, _runner = ask({**said, **alone(0, (2, "", "")), **alone(1, (2, "", ""))})
    assert answer.tools[0].state == "failed"  # cards of ours are there


def test_sixty_four_cards():
    begin, end = (
        NEW.index("| 0    MetaX"),
        NEW.index("+------------------+-----------------+", NEW.index("| 0    MetaX")),
    )
    row = NEW[begin:end]
    body = "".join(
        row.replace("| 0           Off", f"| {n:<2}          Off").replace("0000:0e", f"{n // 32:04X}:{n % 32:02X}")
        for n in range(64)
    )
    reply = parse_table(NEW[:begin].replace(": 3\n", ": 64\n") + body + NEW[NEW.index("\n\n+-----") :])
    assert (len(reply.devices), reply.attached, reply.devices[63].pci_address) == (64, 64, "0001:1f:00.0")


def test_no_cards():
    begin, end = OLD.index("| 0       MetaX"), OLD.index("\n+---", OLD.index("| 1       MetaX")) + 1
    answer, _runner = ask(
        {TABLE: (0, (OLD[:begin] + OLD[end:]).replace("GPUs                                     : 2", "GPUs : 0"), "")},
        (),
    )
    assert (answer.count, answer.devices, answer.tools[0].reason) == (0, [], "no_devices")


# -------------------------------------------------------------------------------------------------- when a form fails


def test_the_listing_makes_up_for_a_table_with_other_columns():
    changed = OLD.replace("| Bus-id              |", "| Serial              |")
    answer, runner = ask({TABLE: (0, changed, ""), LIST: (0, SHOW, "")})
    assert runner.calls == [TABLE, LIST]
    assert (answer.count, answer.tools[0].state) == (2, "ok")
    assert "the columns are others" in answer.errors[0]
    first, second = answer.devices
    assert (first.model, first.pci_address, first.memory_bytes) == ("MetaX N260", "0000:01:00.0", 65536 * MIB)
    assert first.readings == Readings(temperature_c=45.75, utilization_percent=12.0, memory_used_bytes=684476 * 1024)
    assert (second.readings.temperature_c, second.health.state) == (None, "unknown")


def test_an_answer_that_describes_too_few_is_completed():
    begin, end = OLD.index("| 1       MetaX"), OLD.index("+---", OLD.index("| 1       MetaX"))
    answer, runner = ask({TABLE: (0, OLD[:begin] + OLD[end:], ""), **alone(1, (0, only(1), ""))})
    assert runner.calls == [TABLE, (*LIST, "-i", "1")]
    assert [(one.index, one.pci_address) for one in answer.devices] == [(0, PLACES[0]), (1, PLACES[1])]
    assert (answer.count, answer.tools[0].state) == (2, "ok")


def test_one_hung_card_does_not_hide_the_other():
    answer, runner = ask({TABLE: HANG, **alone(0, HANG), **alone(1, (0, only(1), ""))})
    assert (answer.count, answer.hung) == (1, [PLACES[0]])
    assert answer.devices[0].pci_address == PLACES[1]
    assert (answer.tools[0].state, LIST in runner.calls) == ("hung", False)


def test_everything_hangs():
    answer, _runner = ask({TABLE: HANG, **alone(0, HANG), **alone(1, HANG)})
    assert (answer.count, answer.devices, answer.hung) == (None, [], list(PLACES))


def test_not_installed():
    answer, runner = ask({})
    assert [(tool.name, tool.state) for tool in answer.tools] == [("mx-smi", "absent")]
    assert (answer.count, runner.calls) == (None, [])


def test_no_permission():
    answer, runner = ask({TABLE: (1, "", "open /dev/mxcd: Permission denied\n")})
    assert (answer.count, runner.calls) == (None, [TABLE])
    assert (answer.tools[0].state, answer.tools[0].reason) == ("failed", "no_permission")


# --------------------------------------------------------------------------------------------- unpleasant answers

GARBAGE = {
    "empty": "",
    "html": "<html><title>502 Bad Gateway</title></html>\n",
    "binary": bytes(range(256)).decode("latin-1") * 20,
    "replaced": OLD.replace("MetaX N260", "\ufffd" * 10).replace("0000:01", "\ufffd\ufffd\ufffd\ufffd:01"),
    "header_only": OLD[: OLD.index("| GPU     NAME")],
    "three_cells_of_four": NEW.replace("| 0           Off |", "  0           Off |"),
    "four_cells_of_three": OLD.replace("| Available            |", "| Available | Available |"),
    "no_address": OLD.replace("0000:21:00.0", "N/A         "),
    "nulls": "\0" * 4000,
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_no_answer_and_kept(name):
    junk = (0, GARBAGE[name], "")
    answer, _runner = ask({TABLE: junk, LIST: junk, **alone(0, junk), **alone(1, junk)})
    assert (answer.count, answer.devices, answer.tools[0].state) == (None, [], "unreadable")
    if GARBAGE[name].strip("\0"):
        assert answer.tools[0].excerpt


@pytest.mark.parametrize("word", ["N/A", "NA", "-", "ERR!"])
def test_placeholders_are_no_values(word):
    table = OLD.replace("41C ", f"{word:<4}").replace("29W", word).replace("| 7% ", f"| {word} ")
    one = parse_table(table).devices[0]
    assert (one.readings.temperature_c, one.readings.power_watts, one.readings.utilization_percent) == (
        None,
        None,
        None,
    )
    assert one.link.under_load is None
    assert one.health.state == ("warning" if word == "ERR!" else "ok")


def test_warnings_before_the_table():
    assert len(parse_table(f"warning: firmware is old\n| see the log |\n{OLD}").devices) == 2


def test_a_cut_answer_is_never_taken_for_a_whole_one():
    for whole in (OLD, NEW):
        for end in range(0, whole.index("| Process:"), 40):
            with pytest.raises(Unreadable):
                parse_table(whole[:end])
    for end in range(0, len(SHOW.rstrip()), 40):
        with pytest.raises(Unreadable):
            parse_listing(SHOW[:end])


def test_device_nodes():
    files = dict.fromkeys(["/dev/dri/renderD130", "/sys/bus/pci/devices/0000:01:00.0/drm/renderD130/dev"], "")
    nodes = Metax().device_nodes(RecordedRunner(files=files), Device(pci_address="0000:01:00.0"))
    assert nodes == ["/dev/dri/renderD130"]


# ----------------------------------------------------------------------------------------------------- recordings


def rows(reply) -> list[tuple]:
    return [
        (one.index, one.pci_address, one.readings.power_watts, one.readings.temperature_c, one.health.state)
        for one in reply.devices
    ]


def test_recorded_old_table(recordings):
    reply = parse_table((recordings / "metax/mx-smi_table_2.2.8_2xN260.txt").read_text())
    assert (reply.attached, reply.tool_version, reply.driver_version) == (2, "2.2.8", "3.0.11")
    assert rows(reply) == [(0, "0000:01:00.0", 29, 37, "ok"), (1, "0000:21:00.0", 33, 37, "ok")]
    one = reply.devices[0]
    assert (one.model, one.firmware_version, one.module_id) == ("MetaX N260", "1.26.1.0", None)
    assert (one.memory_bytes, one.readings.memory_used_bytes) == (65536 * MIB, 666 * MIB)
    assert (one.readings.power_limit_watts, one.processes) == (225.0, [])


def test_recorded_new_table(recordings):
    reply = parse_table((recordings / "metax/mx-smi_table_2.2.9_8xC500.txt").read_text())
    assert (reply.attached, reply.tool_version, reply.driver_version) == (8, "2.2.9", "3.4.4")
    assert rows(reply) == [
        (0, "0000:0e:00.0", 57, 35, "ok"),
        (1, "0000:0f:00.0", 58, 37, "ok"),
        (2, "0000:10:00.0", 58, 36, "ok"),
        (3, "0000:12:00.0", 60, 35, "ok"),
        (4, "0000:35:00.0", 57, 33, "ok"),
        (5, "0000:36:00.0", 56, 34, "ok"),
        (6, "0000:37:00.0", 55, 34, "ok"),
        (7, "0000:38:00.0", 56, 36, "ok"),
    ]
    assert [one.module_id for one in reply.devices] == list(range(8))
    assert {(one.model, one.firmware_version, one.memory_bytes) for one in reply.devices} == {
        ("MetaX C500", "1.30.0.0", 65536 * MIB)
    }
    assert {one.readings.memory_used_bytes for one in reply.devices} == {826 * MIB}


def test_recorded_table_of_another_maker(recordings):
    reply = parse_table((recordings / "metax/ht-smi_table_2.3.1_Mars-X201.txt").read_text())
    assert (reply.attached, reply.tool_version, reply.driver_version) == (1, "2.3.1", "3.8.1")
    assert rows(reply) == [(0, "0000:98:00.0", 38, 44, "ok")]
    assert (reply.devices[0].model, reply.devices[0].firmware_version) == ("Mars X201", "1.31.1.0")
    assert reply.devices[0].readings.memory_used_bytes == 858 * MIB


def test_recorded_listings(recordings):
    old = parse_listing((recordings / "metax/mx-smi_show-temp-mem-usage_2.2.6_N260.txt").read_text())
    new = parse_listing((recordings / "metax/mx-smi_show_2.3.4_2xN260.txt").read_text())
    assert [(one.attached, one.tool_version) for one in (old, new)] == [(1, "2.2.6"), (2, "2.3.4")]
    assert [
        (one.index, one.pci_address, one.readings.temperature_c, one.readings.memory_used_bytes)
        for one in [*old.devices, *new.devices]
    ] == [
        (0, "0000:0f:00.0", 44.0, 61215720 * 1024),
        (0, "0000:0c:00.0", 45.75, 684476 * 1024),
        (1, "0000:0f:00.0", 44.25, 684476 * 1024),
    ]
    for one in [*old.devices, *new.devices]:
        assert (one.model, one.memory_bytes) == ("MetaX N260", 67108864 * 1024)
        assert (one.readings.utilization_percent, one.health.state) == (0.0, "unknown")


def test_recorded_topology_is_no_answer(recordings):
    text = (recordings / "metax/mx-smi_topo-m_8xC500.txt").read_text()
    for parse in (parse_table, parse_listing):
        with pytest.raises(Unreadable):
            parse(text)
