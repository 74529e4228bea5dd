# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Vendors that a site declares: what their tools say in JSON and CSV, and how they stand beside the known ones."""

from __future__ import annotations

import json

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import declarations, probe, registry
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import Device, Readings
from ansible_collections.accel.cluster.plugins.module_utils._accel.pci import Function
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors.declared import Declared, known, problems
from doubles import HANG, RecordedRunner

MIB = 1024**2
CARDS = ("0000:19:00.0", "0000:1a:00.0")
BUILT_IN = {"nvidia": ["10de"], "amd": ["1002"]}
ACME = {
    "pci_vendors": ["1eed"],
    "command": ["acme-smi", "list", "--json"],
    "format": "json",
    "path": "data.cards",
    "kernel_modules": ["acme"],
    "device_nodes": "/dev/acme{index}",
    "healthy": ["OK", "true"],
    "fields": {
        "index": "id",
        "model": "name",
        "serial": "board.sn",
        "uuid": "chip.uid",
        "pci_address": "bdf",
        "health": "state",
        "memory_bytes": {"key": "mem", "unit": "MiB"},
        "memory_used_bytes": {"key": "used"},
        "temperature_c": {"key": "sensors.temp", "unit": "mC"},
        "power_watts": {"key": "power", "unit": "mW"},
        "utilization_percent": {"key": "use", "unit": "fraction"},
        "uncorrected_volatile": "ecc",
        "retired_pages": "pages",
        "firmware_version": "fw.version",
    },
}
TABLE = {
    "pci_vendors": ["1eed"],
    "pci_devices": ["15a3"],
    "command": ["acme-smi", "--csv"],
    "format": "csv",
    "fields": {"pci_address": "pci.bus_id", "serial": "serial", "temperature_c": "temp", "model": "name"},
}


def card(number: int, **changes) -> dict:
    return {
        "id": number,
        "name": "Acme 9000",
        "board": {"sn": f"AC{number:05}"},
        "chip": {"uid": f"d4f1-{number}"},
        "bdf": CARDS[number % 2].upper(),
        "state": "ok",
        "mem": 16384,
        "used": "512 MiB",
        "sensors": {"temp": 41500},
        "power": "96250",
        "use": 0.25,
        "ecc": 0,
        "pages": "3",
        "fw.version": "2.4.3",
        **changes,
    }


def snapshot(*cards) -> str:
    return json.dumps({"data": {"cards": list(cards)}})


def ask(declared: dict, answer, **more):
    runner = RecordedRunner({tuple(declared["command"]): answer}, **more)
    vendor = Declared("acme", declared)
    return vendor.query(runner, [Function(one, vendor="1eed") for one in CARDS], 7), runner


def test_the_declarations_here_are_sound():
    assert declarations.problems({"acme": ACME}, BUILT_IN) == []
    assert declarations.problems({"acme": TABLE}, BUILT_IN) == []


def test_json_with_nested_keys_and_units():
    answer, runner = ask(ACME, (0, snapshot(card(0), card(1, use=0)), ""), files={"/sys/module/acme/version": "3.1\n"})
    assert (runner.calls, runner.timeouts) == ([("acme-smi", "list", "--json")], [7])
    first, second = answer.devices
    assert (answer.count, first.vendor, first.source) == (2, "acme", "acme-smi")
    assert (first.index, first.model, first.serial, first.uuid) == (0, "Acme 9000", "AC00000", "d4f1-0")
    assert (first.pci_address, first.firmware_version, first.driver_version) == ("0000:19:00.0", "2.4.3", "3.1")
    assert first.memory_bytes == 16384 * MIB
    assert first.readings == Readings(
        temperature_c=41.5, power_watts=96.25, utilization_percent=25, memory_used_bytes=512 * MIB
    )
    assert (first.ecc.uncorrected_volatile, first.repair.retired_pages) == (0, 3)
    assert [one.link.under_load for one in (first, second)] == [True, False]
    assert [one.health.state for one in (first, second)] == ["ok", "ok"]
    assert [(one.kernel_version, one.loaded) for one in answer.drivers] == [("3.1", True)]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"power": "96.25 W", "sensors": {"temp": "41.5 C"}}, (96.25, 41.5)),  # its own unit goes before the declared
        ({"power": "96250 mW", "sensors": {"temp": "41500"}}, (96.25, 41.5)),
        ({"power": "96 V", "sensors": {"temp": "314.65 K"}}, (None, None)),
        ({"power": "96,250", "sensors": {"temp": "41,5"}}, (None, None)),
    ],
)
def test_units_of_the_tool(changes, told):
    answer, _runner = ask(ACME, (0, snapshot(card(0, **changes), card(1)), ""))
    now = answer.devices[0].readings
    assert (now.power_watts, now.temperature_c) == told


def test_nothing_in_use_is_a_size():
    declared = {**ACME, "fields": {**ACME["fields"], "memory_used_bytes": {"key": "used", "unit": "MiB"}}}
    answer, _runner = ask(declared, (0, snapshot(card(0, used=0), card(1, used="0 MiB")), ""))
    assert [one.readings.memory_used_bytes for one in answer.devices] == [0, 0]


@pytest.mark.parametrize(
    ("changes", "state", "reason"),
    [
        ({"state": "FAULT"}, "critical", "the tool says of its health: FAULT"),
        ({"state": True}, "ok", None),
        ({"state": "N/A"}, "unknown", "the tool tells no health"),
        ({"ecc": 4}, "critical", "4 uncorrected memory errors since the driver was loaded"),
        ({"power": "ERR!"}, "warning", "can't be read: ERR!"),
        ({"ecc": "1,024"}, "warning", "can't be read: uncorrected_volatile 1,024"),
        ({"ecc": "4 errors"}, "warning", "can't be read: uncorrected_volatile 4 errors"),
        ({"ecc": -1}, "warning", "can't be read: uncorrected_volatile -1"),
        ({"ecc": "N/A"}, "ok", None),
    ],
)
def test_health(changes, state, reason):
    answer, _runner = ask(ACME, (0, snapshot(card(0, **changes), card(1)), ""))
    assert [one.health.state for one in answer.devices] == [state, "ok"]
    assert answer.devices[0].health.reasons == ([reason] if reason else [])


def test_cards_by_name_and_a_list_at_the_top():
    answer, _runner = ask(ACME, (0, json.dumps({"data": {"cards": {"card0": card(0), "card1": card(1)}}}), ""))
    assert [one.serial for one in answer.devices] == ["AC00000", "AC00001"]
    top = {name: value for name, value in ACME.items() if name != "path"}
    answer, _runner = ask(top, (0, "[warn] slow\n" + json.dumps([card(0)]), ""))
    assert ([one.serial for one in answer.devices], answer.errors) == (
        ["AC00000"],
        ["acme-smi list --json: [warn] slow"],
    )


@pytest.mark.parametrize("broken", [None, 5, {}, {"bdf": "N/A"}, {"bdf": "1a:00"}, {"bdf": {}}])
def test_one_entry_that_is_none_hides_no_other(broken):
    answer, _runner = ask(ACME, (0, snapshot(card(0), broken), ""))
    assert (answer.count, len(answer.errors), answer.tools[0].state) == (1, 1, "ok")


@pytest.mark.parametrize("output", ["", "{}", "[]", '{"data": {"cards": 5}}', '{"data": [', "Acme 9000  OK\n"])
def test_an_answer_without_the_declared_list_is_unreadable(output):
    answer, _runner = ask(ACME, (0, output, ""))
    assert (answer.count, answer.tools[0].state, answer.tools[0].excerpt) == (None, "unreadable", output.strip())


def test_an_empty_list_means_no_card():
    answer, _runner = ask(ACME, (0, snapshot(), ""))
    assert (answer.count, answer.tools[0].reason) == (0, "no_devices")


def test_several_documents_with_a_list_are_no_answer():
    answer, _runner = ask(ACME, (0, f"{snapshot(card(0))}\n{snapshot(card(1))}\n", ""))
    assert (answer.count, answer.tools[0].state) == (None, "unreadable")


CSV = """# acme-smi 2.1
name, pci.bus_id, serial, temp
Acme 1, 00000000:19:00.0, X1, 40
Acme 1, 00000000:1A:00.0, X2, N/A
"""


def test_csv_by_the_names_in_its_header():
    answer, _runner = ask(TABLE, (0, CSV, ""))
    assert [(one.pci_address, one.serial, one.model, one.readings.temperature_c) for one in answer.devices] == [
        ("0000:19:00.0", "X1", "Acme 1", 40),
        ("0000:1a:00.0", "X2", "Acme 1", None),
    ]
    assert [one.health.state for one in answer.devices] == ["ok", "unknown"]
    assert answer.errors == ["acme-smi --csv: # acme-smi 2.1"]
    moved = "temp,serial,extra,pci.bus_id,name\n41,X1,?,0000:19:00.0,Acme 1\n"
    assert ask(TABLE, (0, moved, ""))[0].devices[0].serial == "X1"


def test_csv_without_a_header():
    columns = {**TABLE, "fields": {"serial": 2, "pci_address": 0}}
    assert declarations.problems({"acme": columns}, BUILT_IN) == []
    answer, _runner = ask(columns, (0, '19:00.0,"a, b",X1\n1a:00.0,c,X2\n', ""))
    assert [(one.pci_address, one.serial) for one in answer.devices] == [(CARDS[0], "X1"), (CARDS[1], "X2")]


@pytest.mark.parametrize("row", ["Acme 1, 0000:1a:00.0, X2\n", "Acme 1, 0000:1a:00.0, X2, 4, 5\n", "Acme, x, X2, 4\n"])
def test_one_row_that_is_none_hides_no_other(row):
    text = "name,pci.bus_id,serial,temp\nAcme 1,0000:19:00.0,X1,40\n"
    answer, _runner = ask(TABLE, (0, text + row, ""))
    assert ([one.serial for one in answer.devices], len(answer.errors)) == (["X1"], 1)


def test_csv_that_was_cut_off():
    """With the serial in the last column each cut would be another serial."""
    text = "name,pci.bus_id,temp,serial\nAcme 1,0000:19:00.0,40,AC0017\nAcme 1,0000:1a:00.0,41,AC0018"
    for end in range(len(text)):
        answer, _runner = ask(TABLE, (0, text[:end], ""))
        assert {one.serial for one in answer.devices} <= {"AC0017", "AC0018"}, end
        # A header alone is an answer: no cards.
        assert answer.count == (len(answer.devices) or (0 if text[end - 1] == "\n" else None)), end


@pytest.mark.parametrize("output", ["", "name,serial\nAcme,X1\n", "\ufffd\ufffd\n", '"' + "x" * 200000 + "\n"])
def test_csv_without_the_declared_columns_is_unreadable(output):
    answer, _runner = ask(TABLE, (0, output, ""))
    assert (answer.count, answer.tools[0].state) == (None, "unreadable")


def test_hang_refusal_and_absence():
    hung, _runner = ask(ACME, HANG)
    assert (hung.count, hung.hung, hung.tools[0].state) == (None, list(CARDS), "hung")
    refused, _runner = ask(ACME, (1, "", "acme-smi: permission denied\n"))
    assert (refused.tools[0].state, refused.tools[0].reason) == ("failed", "no_permission")
    absent, _runner = ask(ACME, (0, "", ""), tools=())
    assert (absent.tools[0].state, absent.errors) == ("absent", [])


def test_many_cards():
    answer, _runner = ask(ACME, (0, snapshot(*(card(n, bdf=f"{n:02x}:00.0") for n in range(64))), ""))
    assert answer.count == len({one.pci_address for one in answer.devices}) == 64


def test_no_host_has_thousands_of_cards():
    cards = [card(number, bdf=f"{number // 32:02x}:{number % 32:02x}.0") for number in range(1025)]
    answer, _runner = ask(ACME, (0, snapshot(*cards), ""))
    assert (answer.count, answer.tools[0].state) == (None, "unreadable")
    answer, _runner = ask(ACME, (0, snapshot(*cards[:1024]), ""))
    assert answer.count == 1024


def test_numbers_that_are_none():
    for value in ("9" * 400, "9" * 5000, "\u00b2", [], {}, "-3"):
        answer, _runner = ask(ACME, (0, snapshot(card(0, mem=value, ecc=value, use=value)), ""))
        json.dumps([answer.devices[0].memory_bytes, answer.devices[0].readings.__dict__], allow_nan=False)
        assert answer.devices[0].ecc.uncorrected_volatile is None


def test_device_nodes():
    files = {"/dev/acme0": "", "/dev/acme1": ""}
    vendor = Declared("acme", ACME)
    assert vendor.device_nodes(RecordedRunner(files=files), Device(index=1)) == ["/dev/acme1"]
    assert vendor.device_nodes(RecordedRunner(files=files), Device(index=None)) == []
    files[f"/sys/bus/pci/devices/{CARDS[0]}/acme/acme1/dev"] = "235:1"
    assert vendor.device_nodes(RecordedRunner(files=files), Device(index=0, pci_address=CARDS[0])) == ["/dev/acme1"]
    assert Declared("acme", TABLE).device_nodes(RecordedRunner(files=files), Device(index=0)) == []


# --------------------------------------------------------------------------------------- beside the known vendors


def bus(*functions: str) -> dict:
    """Return the files of a bus: "address vendor device"."""
    files = {}
    for one in functions:
        address, vendor, device = one.split()
        home = f"/sys/bus/pci/devices/{address}/"
        files.update({home + "vendor": f"0x{vendor}", home + "device": f"0x{device}", home + "class": "0x120000"})
    return files


def test_cards_of_a_declared_vendor_are_observed():
    runner = RecordedRunner(
        {("acme-smi", "list", "--json"): (0, snapshot(card(0)), "")},
        bus("0000:19:00.0 1eed 15a3", "0000:1a:00.0 1eed 15a3", "0000:2a:00.0 15b3 1021"),
    )
    seen = probe.observe(runner, declared_vendors={"acme": ACME})
    assert (seen.count, seen.bus_count) == (1, 2)
    assert [(one.pci_address, one.identity, one.pci_id) for one in seen.devices] == [
        ("0000:19:00.0", "uuid", "1eed:15a3")
    ]
    assert [(one["pci_address"], one["vendor"]) for one in seen.unanswered] == [("0000:1a:00.0", "acme")]
    assert seen.errors == []
    assert probe.observe(runner).bus_count == 0


def test_without_a_command_the_bus_is_all():
    seen = probe.observe(
        RecordedRunner(files=bus("0000:19:00.0 1eed 15a3")), declared_vendors={"acme": {"pci_vendors": ["1eed"]}}
    )
    assert (seen.count, seen.bus_count) == (None, 1)
    assert [(one.vendor, one.source, one.pci_address) for one in seen.devices] == [("acme", "sysfs", "0000:19:00.0")]


def test_device_ids_tell_two_vendors_apart():
    one = {"pci_vendors": ["1eed"], "pci_devices": ["0001"]}
    two = {"pci_vendors": ["1eed"], "pci_devices": ["0002"]}
    runner = RecordedRunner(files=bus("0000:19:00.0 1eed 0002", "0000:1a:00.0 1eed 0001", "0000:1b:00.0 1eed 0003"))
    seen = probe.observe(runner, declared_vendors={"one": one, "two": two})
    assert sorted((device.pci_address, device.vendor) for device in seen.devices) == [
        ("0000:19:00.0", "two"),
        ("0000:1a:00.0", "one"),
    ]


def test_a_vendor_that_is_replaced_is_not_asked():
    mine = {**ACME, "pci_vendors": ["10de"], "replaces": "nvidia"}
    answers = {("acme-smi", "list", "--json"): (0, snapshot(card(0)), ""), ("nvidia-smi", "-q", "-x"): (0, "", "")}
    for name in ("acme", "nvidia"):
        runner = RecordedRunner(answers, bus("0000:19:00.0 10de 2330"))
        seen = probe.observe(runner, declared_vendors={name: mine})
        assert [(one.vendor, one.serial) for one in seen.devices] == [(name, "AC00000")]
        assert runner.calls == [("acme-smi", "list", "--json")]


def test_declarations_with_anything_wrong_are_not_used():
    runner = RecordedRunner(files=bus("0000:19:00.0 1eed 15a3", "0000:18:00.0 10de 2330"))
    seen = probe.observe(runner, declared_vendors={"acme": {"pci_vendors": ["1eed"]}, "bad": {"pci_vendors": ["10de"]}})
    assert seen.bus_count == 1
    accepted = "an id that is not nvidia's, or replaces: nvidia"
    assert seen.errors == [f"declared vendor bad.pci_vendors[0]: 10de; accepted: {accepted}"]


def test_vendors_of_the_collection_are_still_made_only_when_asked_for():
    class Refusing(dict):
        def __getitem__(self, name):
            raise AssertionError(name)

    both = known(Refusing(nvidia=1, amd=2), {"acme": TABLE})
    assert (list(both), len(both), both["acme"].name) == (["nvidia", "amd", "acme"], 3, "acme")
    with pytest.raises(KeyError):
        both["houmo"]


def test_a_declared_vendor_can_be_named():
    runner = RecordedRunner({("acme-smi", "list", "--json"): (0, snapshot(card(0)), "")}, {})
    seen = probe.observe(runner, vendors=["acme"], declared_vendors={"acme": ACME})
    assert (seen.count, seen.errors) == (1, [])


# --------------------------------------------------------------------------------------------- what tools really say


@pytest.mark.parametrize("layout", ["json", "csv"])
@pytest.mark.parametrize("name", ["houmo/hm_smi_2xLQ50.txt", "xdx/xdxsmi_1.6.21_2xR1900.txt"])
def test_recorded_text_is_neither_json_nor_csv(recordings, name, layout):
    """Both print blocks of "name : value": such a vendor is declared without a command, or gets a file of its own."""
    fields = {"pci_address": "BDF" if "houmo" in name else "Bus Id"}
    declared = {"pci_vendors": ["1eed"], "command": ["smi"], "format": layout, "fields": fields}
    assert problems({"acme": declared}, registry.PCI_VENDORS) == []
    text = (recordings / name).read_text(encoding="utf-8")
    answer, _runner = ask(declared, (0, text, ""))
    assert (answer.count, answer.devices, answer.tools[0].state) == (None, [], "unreadable")
    assert answer.tools[0].excerpt.startswith(text.strip()[:50])


def test_recorded_json_of_a_known_vendor_read_by_a_declaration(recordings):
    declared = {
        "pci_vendors": ["1e52"],
        "replaces": "tenstorrent",
        "command": ["tt-smi", "-s"],
        "format": "json",
        "path": "device_info",
        "fields": {
            "pci_address": "board_info.bus_id",
            "serial": "board_info.board_id",
            "power_watts": "telemetry.power",
            "firmware_version": "firmwares.fw_bundle_version",
        },
    }
    assert problems({"acme": declared}, registry.PCI_VENDORS) == []
    text = (recordings / "tenstorrent/tt-smi_s_single_n150_gpu.json").read_text(encoding="utf-8")
    (one,) = Declared("acme", declared).read(text).devices
    assert (one.pci_address, one.serial, one.readings.power_watts, one.firmware_version) == (
        "0000:01:00.0",
        "100018611902010",
        12,
        "80.17.0.0",
    )


def test_recorded_csv_of_a_known_vendor_read_by_a_declaration(recordings):
    """Two rows without a header; there is no address in them, so no card can be placed."""
    declared = {
        "pci_vendors": ["1eed"],
        "command": ["hl-smi"],
        "format": "csv",
        "fields": {"pci_address": 0, "uuid": 1},
    }
    text = (recordings / "habana/hl-smi_Q_csv_HL-325L_1.22.1.csv").read_text(encoding="utf-8")
    answer, _runner = ask(declared, (0, text, ""))
    assert (answer.count, answer.tools[0].state) == (None, "unreadable")
