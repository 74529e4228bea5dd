# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gaudi: what hl-smi prints, refuses, cuts off or hangs on."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import Device, Ecc, Link, Readings, Repair
from ansible_collections.accel.cluster.plugins.module_utils._accel.pci import Function
from ansible_collections.accel.cluster.plugins.module_utils._accel.tools import Unreadable
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors.gaudi import (
    LISTING,
    QUERY,
    Gaudi,
    device,
    parse_csv,
    parse_list,
    parse_table,
    slot_labels,
)
from doubles import HANG, RecordedRunner

OWN = Path(__file__).resolve().parents[5] / "recordings/gaudi"
MIB = 1024**2
ALL, LIST, TABLE = ("hl-smi", *QUERY), ("hl-smi", *LISTING), ("hl-smi",)
PLACES = ("0000:4d:00.0", "0000:4e:00.0", "0000:b3:00.0")
LOADED = {"/sys/module/habanalabs/version": "1.22.0-1a2b3c4"}


def own(name: str) -> str:
    return (OWN / name).read_text()


ROWS = own("Q_csv_1.22_3xHL-325L.csv")
BLOCKS = own("L_1.22_3xHL-325L.txt")


def healthy(**changes) -> dict:
    answers = {ALL: (0, ROWS, ""), LIST: (0, BLOCKS, "")}
    answers.update({{"all": ALL, "list": LIST, "table": TABLE}[name]: answer for name, answer in changes.items()})
    return answers


def alone(place: str, answer, what=QUERY) -> dict:
    return {("hl-smi", *what, "-i", place): answer}


def ask(answers: dict, places=PLACES, files=None, **more):
    runner = RecordedRunner(answers, LOADED if files is None else files, **more)
    functions = [Function(place, vendor="1da3", device="1060", pci_class="120000") for place in places]
    return Gaudi().query(runner, functions, 10), runner


def row(number: int) -> str:
    return ROWS.splitlines()[number] + "\n"


# ---------------------------------------------------------------------------------------------------- healthy hosts


def test_a_healthy_host_costs_two_commands():
    answer, runner = ask(healthy())
    assert sorted(runner.calls) == sorted([ALL, LIST])
    assert (answer.count, answer.lost, answer.hung, answer.errors) == (3, [], [], [])
    (tool,) = answer.tools
    assert (tool.state, tool.reason, tool.version) == ("ok", None, "hl-1.22.0-fw-61.0.2.0")
    assert answer.drivers[0].kernel_version == "1.22.0-1a2b3c4"
    first = answer.devices[0]
    assert (first.index, first.module_id, first.pci_address, first.pci_id) == (0, 5, "0000:4d:00.0", "1da3:1060")
    assert (first.model, first.serial, first.uuid) == ("HL-325L", "AN44002117", "01P4-HL3090A0-18-U4A101-11-05-02")
    assert (first.driver_version, first.firmware_version) == ("1.22.0-1a2b3c4", "hl-gaudi3-1.22.0-fw-61.0.2-sec-9")
    assert first.memory_bytes == 131072 * MIB
    assert first.link == Link(16.0, 8, 32.0, 16, None, False)
    assert first.ecc == Ecc(3, 0, 41, 2, None)
    assert first.repair == Repair("ok", 3, None)
    assert first.readings == Readings(
        temperature_c=37.0,
        memory_temperature_c=43.0,
        power_watts=231.0,
        power_limit_watts=850.0,
        utilization_percent=0.0,
        memory_used_bytes=672 * MIB,
        throttles=[],
    )
    assert (first.health.state, first.health.reasons) == ("ok", [])
    assert first.source == "hl-smi hl-1.22.0-fw-61.0.2.0"


def test_throttling_replaced_rows_and_a_dead_module():
    answer, _runner = ask(healthy())
    assert [one.health.state for one in answer.devices] == ["ok", "warning", "critical"]
    assert answer.devices[1].health.reasons == [
        "rows of the memory are replaced at the next reset",
        "throttled: thermal",
    ]
    assert answer.devices[1].readings.throttles == ["thermal"]
    assert answer.devices[1].repair == Repair("reset", 3, None)
    assert answer.devices[1].link.under_load is True
    assert answer.devices[2].health.reasons == ["the module is Malfunctioning"]
    assert answer.devices[2].ecc == Ecc()
    assert answer.devices[2].readings.power_watts == 231.0  # of the listing: 190 + 41, as the row says N/A


def test_uncorrected_errors_are_critical():
    answer, _runner = ask(healthy(all=(0, ROWS.replace("850 W, 3, 0, 41, 2", "850 W, 3, 1, 41, 2"), "")))
    assert answer.devices[0].health.state == "critical"
    assert answer.devices[0].health.reasons == ["1 uncorrected memory errors since the driver was loaded"]


def test_module_numbers_name_sockets():
    answer, _runner = ask(healthy())
    assert answer.slot_labels == {PLACES[0]: "OAM5", PLACES[1]: "OAM7", PLACES[2]: "OAM0"}
    cards = [Device(pci_address=place, model="HL-338", module_id=n) for n, place in enumerate(PLACES)]
    assert slot_labels(cards) == {}  # PCIe cards
    twins = [Device(pci_address=place, model="HL-225", module_id=1) for place in PLACES]
    assert slot_labels(twins) == {}


def test_upper_case_and_long_domains_are_one_address():
    rows = ROWS.replace("0000:4d:00.0", "00000000:4D:00.0").replace("0000:b3:00.0", "00010000:B3:00.0")
    assert list(parse_csv(rows)) == ["0000:4d:00.0", "0000:4e:00.0", "10000:b3:00.0"]


def test_sixty_four_cards():
    cells = row(0).split(", ")
    rows = "".join(
        ", ".join([str(n), str(n), f"{n // 32:04x}:{n % 32:02x}:00.0", f"AN{n}", f"01P4-{n + 1}", *cells[5:]])
        for n in range(64)
    )
    answer, _runner = ask(healthy(all=(0, rows, ""), list=(1, "", "")), ())
    assert (answer.count, len(answer.devices), answer.devices[63].pci_address) == (64, 64, "0001:1f:00.0")


def test_device_nodes():
    base = "/sys/bus/pci/devices/0000:4d:00.0"
    nodes = ["/dev/accel/accel3", "/dev/accel/accel_controlD3", "/dev/hl3"]
    files = dict.fromkeys(
        [*nodes, f"{base}/accel/accel3/dev", f"{base}/accel/accel_controlD3/dev", f"{base}/habanalabs/hl3/dev"], ""
    )
    runner = RecordedRunner(files=files)
    assert Gaudi().device_nodes(runner, Device(pci_address="0000:4d:00.0")) == nodes
    assert Gaudi().device_nodes(runner, Device(pci_address="0000:4e:00.0")) == []
    assert Gaudi().device_nodes(runner, Device()) == []


# -------------------------------------------------------------------------------------------------- when a form fails


def test_the_listing_alone_is_enough():
    answer, runner = ask(healthy(all=(1, "", "invalid query type\n")))
    assert (answer.count, answer.tools[0].state) == (3, "ok")
    assert [one.serial for one in answer.devices] == ["AN44002117", "AN44002131", "AN44002009"]
    assert answer.devices[0].readings.power_limit_watts == 850.0  # 800 + 50
    assert answer.devices[0].readings.temperature_c == 39.0  # the hottest sensor of the chip
    assert answer.errors == [f"hl-smi {' '.join(QUERY)}: invalid query type"]
    assert len(runner.calls) == 2


def test_the_rows_alone_are_enough():
    answer, runner = ask(healthy(list=(1, "", "unknown option\n")))
    assert (answer.count, answer.tools[0].state) == (3, "ok")
    assert [one.health.state for one in answer.devices] == ["ok", "ok", "unknown"]
    assert answer.devices[0].firmware_version is None
    assert len(runner.calls) == 2


def test_the_table_is_the_last_resort():
    junk = (0, "?\n", "")
    answer, runner = ask(
        healthy(all=junk, list=junk, table=(0, own("table_1.19_2xHL-225.txt"), "")), ("0000:3a:00.0", "0000:5d:00.0")
    )
    assert runner.calls[2:] == [TABLE]
    assert (answer.count, answer.tools[0].state, answer.tools[0].excerpt) == (2, "ok", "?")
    busy, sick = answer.devices
    assert (busy.index, busy.pci_address, busy.model, busy.serial) == (0, "0000:3a:00.0", "HL-225", None)
    assert (busy.memory_bytes, busy.readings.memory_used_bytes) == (98304 * MIB, 20768 * MIB)
    assert (busy.readings.power_watts, busy.readings.power_limit_watts) == (95.0, 600.0)
    assert (busy.readings.temperature_c, busy.readings.utilization_percent) == (31.0, 12.0)
    assert busy.processes == [{"pid": 71234, "name": "python3 train.py", "memory_bytes": 20000 * MIB}]
    assert (busy.health.state, sick.health.state) == ("ok", "critical")
    assert (sick.ecc.uncorrected_volatile, sick.readings.power_watts, sick.processes) == (4, None, [])


def test_events_are_more_than_memory_errors():
    table = own("table_1.19_2xHL-225.txt").replace("Volatile Uncorr. ECC |", "Volatile Uncor-Events|")
    sick = parse_table(table).devices[1]
    assert (sick.ecc.uncorrected_volatile, sick.health.state) == (None, "warning")
    assert sick.health.reasons == ["4 uncorrectable events since the driver was loaded"]


def test_a_card_that_is_left_out_is_asked_alone():
    answer, runner = ask(
        {**healthy(all=(0, row(0) + row(2), ""), list=(1, "", "")), **alone(PLACES[1], (0, row(1), ""))}
    )
    assert runner.calls[2:] == [("hl-smi", *QUERY, "-i", PLACES[1])]
    assert [one.index for one in answer.devices] == [0, 1, 2]
    assert answer.count == 3


def test_one_hung_card_does_not_hide_the_others():
    answers = {**healthy(all=HANG, list=HANG), **alone(PLACES[1], HANG)}
    answers.update({**alone(PLACES[0], (0, row(0), "")), **alone(PLACES[2], (0, row(2), ""))})
    answer, runner = ask(answers)
    assert (answer.count, answer.hung) == (2, [PLACES[1]])
    assert [one.serial for one in answer.devices] == ["AN44002117", "AN44002009"]
    assert answer.tools[0].state == "hung"
    assert TABLE not in runner.calls  # it would only hang once more


def test_a_card_that_hangs_on_its_listing_keeps_what_it_told_before():
    one = BLOCKS[: BLOCKS.index("[1] AIP")]
    other = BLOCKS[: BLOCKS.index("[0] AIP")] + BLOCKS[BLOCKS.index("[2] AIP") :]
    answers = {
        **healthy(list=HANG),
        **alone(PLACES[0], (0, one, ""), LISTING),
        **alone(PLACES[1], HANG, LISTING),
        **alone(PLACES[2], (0, other, ""), LISTING),
    }
    answer, _runner = ask(answers)
    assert (answer.count, answer.hung, answer.last[PLACES[1]].serial) == (2, [PLACES[1]], "AN44002131")
    assert [one.health.state for one in answer.devices] == ["ok", "critical"]
    assert answer.devices[0].firmware_version == "hl-gaudi3-1.22.0-fw-61.0.2-sec-9"
    assert answer.devices[0].link == Link(16.0, 8, 32.0, 16, None, False)
    assert answer.tools[0].state == "hung"


def test_everything_hangs():
    answers = healthy(all=HANG, list=HANG)
    for place in PLACES:
        answers.update(alone(place, HANG))
    answer, runner = ask(answers)
    assert (answer.count, answer.devices, answer.hung) == (None, [], list(PLACES))
    assert (answer.tools[0].state, len(runner.calls)) == ("hung", 5)


def test_not_installed():
    answer, runner = ask({})
    assert [(tool.name, tool.state) for tool in answer.tools] == [("hl-smi", "absent")]
    assert (answer.count, answer.devices, runner.calls) == (None, [], [])


NONE = "habanalabs driver is not loaded or no AIPs available, aborting...\n"


@pytest.mark.parametrize(
    ("said", "files", "expected"),
    [
        (NONE, {}, ("failed", "driver_not_loaded", None)),
        (NONE, LOADED, ("ok", "no_devices", 0)),
        ("open /dev/accel/accel0: Permission denied\n", LOADED, ("failed", "no_permission", None)),
    ],
)
def test_known_errors(said, files, expected):
    answer, runner = ask(healthy(all=(1, "", said), list=(1, "", said)), files=files)
    (tool,) = answer.tools
    assert (tool.state, tool.reason, answer.count) == expected
    assert (answer.devices, len(runner.calls)) == ([], 2)
    assert said.strip() in tool.excerpt


# --------------------------------------------------------------------------------------------- unpleasant answers

GARBAGE = {
    "empty": "",
    "blank": " \n\n",
    "html": "<html><title>502 Bad Gateway</title></html>\n",
    "binary": bytes(range(256)).decode("latin-1") * 20,
    "replaced": "\ufffd\ufffd, \ufffd\n" * 20,
    "rows_of_others": "0, 1, 2\n1, 2, 3\n",
    "moved_columns": "\n".join(", ".join(line.split(", ")[::-1]) for line in ROWS.splitlines()),
    "no_address": ROWS.replace("0000:4e:00.0", "N/A"),
    "twice": row(0) + row(0),
    "nulls": "\0" * 4000,
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_no_answer_and_kept(name):
    junk = (0, GARBAGE[name], "")
    answers = healthy(all=junk, list=junk, table=junk)
    for place in PLACES:
        answers.update(alone(place, junk))
    answer, _runner = ask(answers)
    assert (answer.count, answer.devices) == (None, [])
    assert answer.tools[0].state == "unreadable"
    if GARBAGE[name].strip("\0 \n"):
        assert answer.tools[0].excerpt


@pytest.mark.parametrize("word", ["N/A", "NA", "-", "", "[Not Supported]", "ERR!", "unknown", "\ufffd"])
def test_placeholders_are_no_values(word):
    cells = row(0).split(", ")
    # The serial and everything that is measured.
    changed = [word if n in (3, *range(7, 17)) else cell for n, cell in enumerate(cells)]
    (one,) = [
        device(values, {}, place, None) for place, values in parse_csv(", ".join(changed).rstrip() + "\n").items()
    ]
    assert one.ecc == Ecc()
    assert one.readings == Readings()
    assert (one.memory_bytes, one.link.under_load) == (None, None)
    assert one.serial in (None, "\ufffd")
    assert one.health.state == ("warning" if word == "ERR!" else "unknown")


def test_rows_that_were_cut_off():
    for end in range(1, len(ROWS) - 5, 7):
        try:
            cards = parse_csv(ROWS[:end])
        except Unreadable:
            continue
        assert len(cards) == ROWS[:end].count("\n") + (not ROWS[:end].endswith("\n"))


def test_a_listing_that_was_cut_off_is_not_complete():
    for end in range(0, BLOCKS.index("[2] AIP"), 101):
        answer, _runner = ask(healthy(all=(1, "", ""), list=(0, BLOCKS[:end], ""), table=(1, "", "")), ())
        assert answer.count is None, end
        assert answer.tools[0].state != "ok"
    last = parse_list(BLOCKS[: BLOCKS.index("AN44002009") + 4])[0]["0000:b3:00.0"]
    assert "Serial Number" not in last  # half a serial would name another card


@pytest.mark.parametrize("end", [10, 700, 1100, 1500])
def test_a_table_that_was_cut_off(end):
    with pytest.raises(Unreadable):
        parse_table(own("table_1.19_2xHL-225.txt")[:end].rpartition("| Compute")[0] or "x")


def test_a_table_with_other_columns_is_not_guessed_at():
    with pytest.raises(Unreadable):
        parse_table(own("table_1.19_2xHL-225.txt").replace("Bus-Id        Disp.A", "Disp.A        Bus-Id"))


# ----------------------------------------------------------------------------------------------------- recordings


def test_recorded_csv(recordings):
    fields = (
        "index",
        "uuid",
        "name",
        "driver_version",
        "memory.total",
        "memory.used",
        "memory.free",
        "power.draw",
        "power.max",
        "temperature.aip",
        "utilization.aip",
    )
    cards = parse_csv((recordings / "habana/hl-smi_Q_csv_HL-325L_1.22.1.csv").read_text(), fields)
    found = [device(card, {}, None, None) for card in cards.values()]
    assert [(one.index, one.uuid, one.model, one.driver_version) for one in found] == [
        (0, "01P4-HL3090A0-18-U4V193-22-07-00", "HL-325L", "1.22.1-97ec1a4"),
        (1, "01P4-HL3090A0-18-U4V298-03-04-04", "HL-325L", "1.22.1-97ec1a4"),
    ]
    assert [one.memory_bytes for one in found] == [131072 * MIB] * 2
    assert [one.readings.memory_used_bytes for one in found] == [672 * MIB] * 2
    assert [(one.readings.power_watts, one.readings.power_limit_watts) for one in found] == [(226, 850), (230, 850)]
    assert [(one.readings.temperature_c, one.readings.utilization_percent) for one in found] == [(36, 0), (39, 0)]


def test_recorded_firmware_line(recordings):
    line = (recordings / "habana/hl-smi_L_spi-firmware.txt").read_text()
    listed = parse_list(f"[0] AIP (accel0) 0000:4d:00.0\n        {line.rstrip()}\n")[0]["0000:4d:00.0"]
    assert device({}, listed, "0000:4d:00.0", None).firmware_version == "hl-gaudi2-1.16.0-fw-50.1.2-sec-9"


def table_rows(path: Path) -> list[tuple]:
    return [
        (
            one.index,
            one.pci_address,
            one.readings.temperature_c,
            one.readings.power_watts,
            one.readings.memory_used_bytes // MIB,
            one.readings.utilization_percent,
        )
        for one in parse_table(path.read_text()).devices
    ]


def test_recorded_tables(recordings):
    # Read by eye; the order is that of the modules, not of the bus.
    assert table_rows(recordings / "habana/hl-smi_table_1.12.1_8xGaudi2.txt") == [
        (0, "0000:43:00.0", 30, 84, 768, 0),
        (1, "0000:44:00.0", 28, 87, 768, 0),
        (2, "0000:1a:00.0", 30, 93, 768, 1),
        (3, "0000:19:00.0", 27, 93, 768, 0),
        (4, "0000:b3:00.0", 26, 93, 768, 0),
        (5, "0000:b4:00.0", 27, 91, 768, 0),
        (6, "0000:cc:00.0", 27, 98, 768, 2),
        (7, "0000:cd:00.0", 27, 85, 768, 0),
    ]
    assert table_rows(recordings / "habana/hl-smi_table_1.17.1_2xHL-225.txt") == [
        (0, "0000:4d:00.0", 31, 95, 768, 0),
        (1, "0000:b4:00.0", 28, 85, 768, 0),
    ]
    assert table_rows(recordings / "habana/hl-smi_table_1.21.1_8xGaudi2.txt") == [
        (0, "0000:33:00.0", 35, 525, 94963, 88),
        (1, "0000:34:00.0", 34, 80, 768, 0),
        (2, "0000:4e:00.0", 25, 81, 90351, 0),
        (3, "0000:9a:00.0", 23, 83, 90356, 0),
        (4, "0000:9b:00.0", 28, 91, 90353, 0),
        (5, "0000:b3:00.0", 29, 82, 90352, 0),
        (6, "0000:b4:00.0", 23, 85, 82507, 0),
        (7, "0000:4d:00.0", 27, 92, 85926, 0),
    ]


def test_recorded_versions_models_and_errors(recordings):
    old = parse_table((recordings / "habana/hl-smi_table_1.12.1_8xGaudi2.txt").read_text())
    new = parse_table((recordings / "habana/hl-smi_table_1.21.1_8xGaudi2.txt").read_text())
    assert (old.tool_version, old.driver_version) == ("hl-1.12.1-fw-46.0.5.0", "1.12.1-cb7a7bc")
    assert (new.tool_version, new.driver_version) == ("hl-1.21.1-fw-59.2.3.0", "1.21.1-bfcec49")
    for one in [*old.devices, *new.devices]:
        assert (one.model, one.serial, one.uuid, one.processes) == ("HL-225", None, None, [])
        assert (one.memory_bytes, one.readings.power_limit_watts) == (98304 * MIB, 600.0)
    assert {one.ecc.uncorrected_volatile for one in old.devices} == {0}
    assert {one.ecc.uncorrected_volatile for one in new.devices} == {None}
    assert [one.health.state for one in new.devices] == ["warning"] + ["ok"] * 5 + ["warning", "ok"]
    assert new.devices[6].health.reasons == ["176 uncorrectable events since the driver was loaded"]


def test_recorded_head_without_cards_is_no_answer(recordings):
    with pytest.raises(Unreadable):
        parse_table((recordings / "habana/hl-smi_table_header_1.20.0.txt").read_text())
