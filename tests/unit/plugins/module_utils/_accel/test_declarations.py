# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is refused of a vendor that a site declares: everything at once, with what was meant."""

from __future__ import annotations

from copy import deepcopy

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel.declarations import FIELDS, KEYS, UNITS, problems
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import Device, Ecc, Readings, Repair

BUILT_IN = {"nvidia": ["10de"], "amd": ["1002"]}
SOUND = {
    "pci_vendors": ["1eed"],
    "pci_devices": ["15a3"],
    "pci_classes": ["1200"],
    "kernel_modules": ["acme"],
    "device_nodes": "/dev/acme{index}",
    "command": ["acme-smi", "list"],
    "format": "json",
    "path": "cards",
    "healthy": ["OK"],
    "fields": {"pci_address": "bdf", "health": "state", "memory_bytes": {"key": "mem", "unit": "MiB"}},
}


def wrong(declared) -> list[tuple]:
    return [(one.path, one.suggestion) for one in problems(declared, BUILT_IN)]


def changed(**changes) -> list[tuple]:
    entry = deepcopy(SOUND)
    for name, value in changes.items():
        if value == "absent":
            del entry[name]
        else:
            entry[name] = value
    return wrong({"acme": entry})


def test_sound_declarations():
    assert set(SOUND) | {"replaces"} == set(KEYS)
    assert changed() == []
    assert wrong({}) == []
    assert wrong({"acme": {"pci_vendors": ["1eed"]}}) == []


def test_every_field_is_one_of_a_card():
    names = {name for part in (Device(), Readings(), Ecc(), Repair()) for name in vars(part)}
    assert set(FIELDS) <= names
    assert set(UNITS) <= set(FIELDS.values())


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"pci_vendors": "absent"}, [("acme.pci_vendors", "")]),
        ({"pci_vendors": "1eed"}, [("acme.pci_vendors", "")]),
        ({"pci_vendors": ["0x1EED"]}, [("acme.pci_vendors[0]", '"1eed"')]),
        ({"pci_vendors": [1234]}, [("acme.pci_vendors[0]", '"1234"')]),  # YAML made a number of it
        ({"pci_vendors": [1e52]}, [("acme.pci_vendors[0]", "")]),
        ({"pci_devices": ["15A3", "15a"]}, [("acme.pci_devices[0]", '"15a3"'), ("acme.pci_devices[1]", "")]),
        ({"pci_classes": ["120000"]}, [("acme.pci_classes[0]", "")]),
        ({"comand": ["x"]}, [("acme.comand", "command")]),
        ({"command": "acme-smi list --json"}, [("acme.command", "['acme-smi', 'list', '--json']")]),
        ({"command": ["acme-smi list"]}, [("acme.command[0]", "['acme-smi', 'list']")]),
        ({"command": ["acme-smi|tee"]}, [("acme.command[0]", "")]),
        ({"command": []}, [("acme.command", "")]),
        ({"command": ["acme-smi", 1]}, [("acme.command[1]", "")]),
        ({"command": ["acme-smi", "a\nb"]}, [("acme.command[1]", "")]),
        ({"format": "jsn"}, [("acme.format", "json")]),
        ({"format": "absent"}, [("acme.format", "")]),
        ({"format": "csv"}, [("acme.path", "")]),
        ({"path": ["cards"]}, [("acme.path", "")]),
        ({"fields": "absent"}, [("acme.fields", "")]),
        ({"fields": {}}, [("acme.fields.pci_address", ""), ("acme.fields.health", "")]),
        ({"healthy": "OK"}, [("acme.healthy", "")]),
        ({"healthy": [True]}, [("acme.healthy[0]", "")]),
        ({"healthy": "absent"}, [("acme.healthy", "")]),
        ({"kernel_modules": ["acme", ""]}, [("acme.kernel_modules[1]", "")]),
        ({"device_nodes": "acme{index}"}, [("acme.device_nodes", "")]),
        ({"device_nodes": "/dev/acme{number}"}, [("acme.device_nodes", "")]),
        ({"replaces": "nvida"}, [("acme.replaces", "nvidia")]),
    ],
)
def test_what_is_refused(changes, found):
    assert changed(**changes) == found


@pytest.mark.parametrize(
    ("told", "found"),
    [
        ({"serial_number": "sn"}, [("acme.fields.serial_number", "serial")]),
        ({"temprature_c": "t"}, [("acme.fields.temprature_c", "temperature_c")]),
        ({"serial": 5}, [("acme.fields.serial", "")]),  # a number of a column, in JSON
        ({"serial": ["a", "b"]}, [("acme.fields.serial", "")]),
        ({"serial": {"key": "sn", "unt": "x"}}, [("acme.fields.serial.unt", "unit")]),
        ({"serial": {"key": "sn", "unit": "MiB"}}, [("acme.fields.serial.unit", "")]),
        ({"power_watts": {"key": "p", "unit": "watts"}}, [("acme.fields.power_watts.unit", "W")]),
        ({"memory_used_bytes": {"key": "m", "unit": "mb"}}, [("acme.fields.memory_used_bytes.unit", "MiB")]),
        ({"utilization_percent": {"key": "u", "unit": "%"}}, [("acme.fields.utilization_percent.unit", "percent")]),
        ({"temperature_c": {"unit": "C"}}, [("acme.fields.temperature_c", "")]),
    ],
)
def test_fields_that_are_refused(told, found):
    assert changed(fields={**SOUND["fields"], **told}) == found


def test_columns_are_named_or_numbered():
    entry = {"pci_vendors": ["1eed"], "command": ["x"], "format": "csv", "fields": {"pci_address": 0, "serial": 3}}
    assert wrong({"acme": entry}) == []
    entry["fields"]["serial"] = "sn"
    assert wrong({"acme": entry}) == [("acme.fields", "")]
    entry["fields"]["serial"] = -1
    assert wrong({"acme": entry}) == [("acme.fields.serial", "")]


def test_an_answer_without_a_command_is_refused():
    entry = {"pci_vendors": ["1eed"], "format": "json", "fields": {"pci_address": "bdf"}}
    assert wrong({"acme": entry}) == [("acme.format", ""), ("acme.fields", "")]


@pytest.mark.parametrize(
    ("declared", "found"),
    [
        ({"nvidia": {"pci_vendors": ["1eed"]}}, [("", "")]),
        ({"acme": {"pci_vendors": ["10de"]}}, [("acme.pci_vendors[0]", "")]),
        ({"acme": {"pci_vendors": ["10de"], "replaces": "amd"}}, [("acme.pci_vendors[0]", "")]),
        ({"nvidia": {"pci_vendors": ["10de"], "replaces": "nvidia"}}, []),
        ({"acme": {"pci_vendors": ["10de"], "replaces": "nvidia"}}, []),
        ({"a": {"pci_vendors": ["1eed"]}, "b": {"pci_vendors": ["1eed"]}}, [("b.pci_vendors", "")]),
        (
            {"a": {"pci_vendors": ["1eed"]}, "b": {"pci_vendors": ["1eed"], "pci_devices": ["0001"]}},
            [("b.pci_vendors", "")],
        ),
        (
            {
                "a": {"pci_vendors": ["1eed"], "pci_devices": ["0002"]},
                "b": {"pci_vendors": ["1eed"], "pci_devices": ["0001"]},
            },
            [],
        ),
        (
            {
                "a": {"pci_vendors": ["10de"], "replaces": "nvidia"},
                "b": {"pci_vendors": ["1eed"], "replaces": "nvidia"},
            },
            [("b.replaces", "")],
        ),
        ({"Acme AI": {"pci_vendors": ["1eed"]}}, [("", "acme_ai")]),
        ({7: {"pci_vendors": ["1eed"]}}, [("", "")]),
        ({"acme": ["1eed"]}, [("acme", "")]),
        (["acme"], [("", "")]),
    ],
)
def test_names_and_ids_that_belong_to_others(declared, found):
    assert wrong(declared) == found


def test_everything_is_said_at_once():
    assert len(changed(pci_vendors=["10de", "x"], command="x y", format="xml", device_nodes=5, colour="red")) == 6


def test_nonsense_is_no_traceback():
    for value in (None, 5, "x", [], {}, [None], {"a": 1}, [[]], True):
        for key in KEYS:
            problems({"acme": {**SOUND, key: value}}, BUILT_IN)
        problems(value, BUILT_IN)
        problems({"acme": value}, BUILT_IN)
