# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""A vendor that a site declares in its inventory: PCI ids, one command, where each value stands in its answer.

The command is a list of words that no shell reads, with the time limit of every vendor command. Its answer is JSON (a
list of mappings, or a mapping of them by name, found along a path of keys) or CSV (columns by the names in the header,
or by their numbers where there is no header). Text in other forms needs a file of its own beside this one. Without a
command the cards are those of the bus.

``declarations.py`` says what a declaration may hold.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping

from .. import declarations, pci, text
from ..model import Device, Ecc, Health, Link, Readings, Repair
from ..tools import Reply, add_driver, address_of, ask_once, json_documents, live_health, nodes_below, take_all
from .base import Answer, Unreadable, Vendor

_SCALES = {"mC": 0.001, "mW": 0.001, "fraction": 100.0}
_MEASURES = {"temperature": text.celsius, "power": text.watts}
_OWN_UNIT = re.compile(r"[^\d\s.+-]")
_PARTS = {"readings": Readings(), "ecc": Ecc(), "repair": Repair()}


# A table of another kind, or a tool that ran wild: judging each of a hundred thousand "cards" would take minutes.
_MOST = 1024


class Declared(Vendor):
    """A vendor made of one declaration that ``declarations.problems`` has nothing to say about."""

    def __init__(self, name: str, declared: dict) -> None:
        self.name = name
        self.pci_vendors = tuple(declared["pci_vendors"])
        self.pci_classes = tuple(declared.get("pci_classes") or Vendor.pci_classes)
        self.kernel_modules = tuple(declared.get("kernel_modules") or ())
        self.replaces: str | None = declared.get("replaces")
        self._devices = tuple(declared.get("pci_devices") or ())
        self._declared = declared

    def owns(self, function: pci.Function) -> bool:
        """Tell whether a function is one of its cards: by vendor and class, and by device id where any is declared."""
        return super().owns(function) and (not self._devices or function.device in self._devices)

    def query(self, runner, functions: list[pci.Function], timeout_seconds: float) -> Answer:
        """Run the declared command, if there is one."""
        answer = Answer()
        if self._declared.get("command"):
            reading = ask_once(answer, runner, self.name, list(self._declared["command"]), self.read, timeout_seconds)
            take_all(answer, reading, functions)
        add_driver(runner, self.name, self.kernel_modules, answer, functions)
        return answer

    def device_nodes(self, runner, device: Device) -> list[str]:
        """Return the declared node: as the kernel ties it to the card, else by the number that the tool gives it."""
        pattern = self._declared.get("device_nodes")
        if not pattern:
            return []
        name = re.escape(pattern[len("/dev/") :]).replace(re.escape("{index}"), r"\d+")
        nodes = nodes_below(runner, device.pci_address, name)
        if nodes or ("{index}" in pattern and device.index is None):
            return nodes
        return runner.glob(pattern.replace("{index}", str(device.index)))

    def read(self, output: str) -> Reply:
        """Return the devices of an answer; Unreadable when the declared list or columns are not in it.

        An entry without a PCI address is named in the notes; the others count.
        """
        layout = _json_rows if self._declared["format"] == declarations.JSON else _csv_rows
        reading = Reply()
        for number, row in enumerate(layout(output, self._declared, reading)):
            if number == _MOST:
                raise Unreadable(f"more than {_MOST} entries: no host has so many cards")
            device = self._device(row)
            if device is None:
                reading.notes.append(f"no PCI address: {text.excerpt(str(row), limit=200)}")
            else:
                reading.devices.append(device)
        return reading

    def _device(self, row: Mapping[str, object]) -> Device | None:
        told = {name: self._value(name, row.get(name)) for name in self._declared["fields"]}
        address = told.pop("pci_address")
        if address is None:
            return None
        device = Device(vendor=self.name, pci_address=str(address))
        for name, value in told.items():
            homes = [part for part, blank in _PARTS.items() if hasattr(blank, name)]
            if name != "health":
                setattr(getattr(device, homes[0]) if homes else device, name, value)
        use = device.readings.utilization_percent
        device.link = Link(under_load=None if use is None else use > 0)
        device.health = self._health(device, row)
        return device

    def _value(self, name: str, value: object):
        """Return one value in the unit of its field; None where the tool tells none, or one that is none."""
        kind, unit = declarations.FIELDS[name], declarations.unit_of(self._declared["fields"][name])
        if kind == "address":
            return address_of(value)
        if kind == "identifier":
            return text.identifier(value)
        if kind == "text":
            return text.clean(value)
        if kind == "count":
            return text.whole_number(value)
        if kind == "size":
            plain = None if unit is None else text.size_bytes(value, unit)
            return text.size_bytes(value) if plain is None else plain
        number = text.number(value)
        if kind in _MEASURES and _OWN_UNIT.search(str(value)):
            return _MEASURES[kind](value)
        if number is not None and unit in _SCALES:
            number = round(number * _SCALES[unit], 3)
        return None if kind == "share" and number is not None and not 0 <= number <= 100 else number

    def _health(self, device: Device, row: Mapping[str, object]) -> Health:
        sick = [str(value).strip() for value in row.values() if text.state_of(value) == text.UNREADABLE]
        counters = [name for name in self._declared["fields"] if name.startswith("uncorrected_")]
        sick += [f"{name} {row[name]}" for name in counters if not text.counted(row.get(name))]
        health = live_health(device.readings, device.ecc, list(dict.fromkeys(sick)))
        if "health" not in self._declared["fields"]:
            return health
        word = text.clean(row.get("health"))
        if word is None:
            # A tool that is to say so and doesn't proves nothing.
            said = Health("unknown", ["the tool tells no health"])
            return health if health.state in ("critical", "warning") else said
        if word.lower() in [one.lower() for one in self._declared["healthy"]]:
            return health if health.state in ("critical", "warning") else Health("ok")
        return Health("critical", [f"the tool says of its health: {word}", *health.reasons])


def _json_rows(output: str, declared: dict, reading: Reply) -> Iterator[dict[str, object]]:
    """Return field -> value of each entry of the declared list."""
    documents, reading.around = json_documents(output)
    steps = [step for step in (declared.get("path") or "").split(".") if step]
    found = [_along(document, steps) for document in documents]
    lists = [listing for listing in (_listing(one) for one in found) if listing is not None]
    if len(lists) != 1:
        raise Unreadable(f"{len(lists)} lists of cards at {declared.get('path') or 'the top'!r} in the answer")
    for entry in lists[0]:
        if not isinstance(entry, dict):
            reading.notes.append(f"no card: {text.excerpt(str(entry), limit=200)}")
            continue
        yield {name: _told(entry, str(declarations.key_of(one))) for name, one in declared["fields"].items()}


def _listing(found: object) -> list | None:
    """Return the entries of a list, or of a mapping that holds cards by name ("card0"); None for anything else."""
    if isinstance(found, dict) and found and all(isinstance(one, dict) for one in found.values()):
        return list(found.values())
    return found if isinstance(found, list) else None


def _along(found: object, steps: list[str]) -> object:
    for step in steps:
        found = found.get(step) if isinstance(found, dict) else None
    return found


def _told(entry: dict, key: str) -> object:
    """Return one value: the key as it stands, else the keys that its dots part. What is no single value is none."""
    found = entry[key] if key in entry else _along(entry, key.split("."))
    return None if isinstance(found, (dict, list)) else found


def _csv_rows(output: str, declared: dict, reading: Reply) -> Iterator[dict[str, object]]:
    """Return field -> value of each row.

    Lines before the header are no rows; one of another length is a note, and so is a last one that no line break ends:
    half a serial number would name another card.
    """
    columns = {name: declarations.key_of(told) for name, told in declared["fields"].items()}
    whole = output[: output.rfind("\n") + 1]
    if len(whole) < len(output):
        reading.notes.append(f"cut off: {text.excerpt(output[len(whole) :], limit=200)}")
    try:
        rows = list(csv.reader(whole.replace("\0", "").splitlines(), skipinitialspace=True))
    except csv.Error as exc:
        raise Unreadable(f"the CSV is damaged: {exc}") from exc
    rows = [[cell.strip() for cell in row] for row in rows if any(cell.strip() for cell in row)]
    numbered = all(isinstance(column, int) for column in columns.values())
    places = {name: column for name, column in columns.items() if isinstance(column, int)}
    length = None
    if not numbered:
        head = next((place for place, row in enumerate(rows) if set(columns.values()) <= set(row)), None)
        if head is None:
            raise Unreadable(f"no header with the columns {', '.join(str(one) for one in columns.values())}")
        places = {name: rows[head].index(str(column)) for name, column in columns.items()}
        length = len(rows[head])
        reading.notes.extend(text.excerpt(", ".join(row), limit=200) for row in rows[:head])
        rows = rows[head + 1 :]
    elif not rows:
        raise Unreadable("no row in the answer")
    for row in rows:
        if len(row) <= max(places.values()) or (length is not None and len(row) != length):
            reading.notes.append(f"not a row of the declared columns: {text.excerpt(', '.join(row), limit=200)}")
            continue
        yield {name: row[place] for name, place in places.items()}


class Known(Mapping[str, Vendor]):
    """The vendors of the collection without those that are replaced, and the declared ones."""

    def __init__(self, built_in: Mapping[str, Vendor], declared: Mapping[str, Declared]) -> None:
        self._built_in, self._declared = built_in, declared
        gone = {one.replaces for one in declared.values()} | set(declared)
        self._names = [name for name in built_in if name not in gone] + list(declared)

    def __getitem__(self, name: str) -> Vendor:
        if name in self._declared:
            return self._declared[name]
        if name in self._names:
            return self._built_in[name]
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def problems(declared: object, ids: Mapping[str, str]) -> list[str]:
    """Return what is wrong with the declarations in words; ``ids`` are PCI vendor ids of the collection by name."""
    built_in: dict[str, list[str]] = {}
    for one, name in ids.items():
        built_in.setdefault(name, []).append(one)
    return [
        f"declared vendor {one.path or one.value}: {text.excerpt(str(one.value), limit=80)}; accepted: {one.accepted}"
        for one in declarations.problems(declared, built_in)
    ]


def known(built_in: Mapping[str, Vendor], declared: Mapping[str, dict]) -> Known:
    """Return all vendors of a host; the declarations have nothing wrong with them."""
    return Known(built_in, {name: Declared(name, entry) for name, entry in declared.items()})
