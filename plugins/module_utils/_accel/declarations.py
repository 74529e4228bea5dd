# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""What a site declares of a vendor that the collection does not know: the keys, what each accepts, what is wrong.

Pure: preflight asks for everything that is wrong before a host is touched, modules ask once more before they run a
command. ``vendors/declared.py`` makes a vendor of what is sound.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

CSV, JSON = "csv", "json"

# Field of a card -> what kind of value it is.
FIELDS = {
    "index": "count",
    "model": "text",
    "serial": "identifier",
    "uuid": "identifier",
    "pci_address": "address",
    "module_id": "count",
    "driver_version": "text",
    "firmware_version": "text",
    "health": "text",
    "memory_bytes": "size",
    "memory_used_bytes": "size",
    "temperature_c": "temperature",
    "temperature_limit_c": "temperature",
    "memory_temperature_c": "temperature",
    "power_watts": "power",
    "power_limit_watts": "power",
    "utilization_percent": "share",
    "corrected_volatile": "count",
    "uncorrected_volatile": "count",
    "corrected_aggregate": "count",
    "uncorrected_aggregate": "count",
    "remapped_rows": "count",
    "retired_pages": "count",
}
# Units that a number may be in, where it does not carry its own; the first is meant where none is declared, but a
# size without any unit is nothing.
UNITS: dict[str, tuple[str, ...]] = {
    "size": ("B", "KiB", "MiB", "GiB"),
    "temperature": ("C", "mC"),
    "power": ("W", "mW"),
    "share": ("percent", "fraction"),
}
KEYS = (
    "pci_vendors",
    "pci_devices",
    "pci_classes",
    "kernel_modules",
    "device_nodes",
    "command",
    "format",
    "path",
    "fields",
    "healthy",
    "replaces",
)
# What a command needs so that its answer can be read.
_WITH_COMMAND = ("format", "fields")
_NAME = re.compile(r"^[a-z][a-z0-9_]{0,31}$")
_HEX = re.compile(r"^[0-9a-f]{4}$")
_NODES = re.compile(r"^/dev/[\w/.-]*(?:\{index\})?$")

_NAME_FORM = "lower-case letters, digits and _, a letter first, such as acme"
_HEX_FORM = 'four lower-case hex digits in quotes, such as "1002", for YAML reads some as numbers'
_COMMAND_FORM = "a list of words, the program first; no shell reads it"
_KEY_FORM = "the name of a column or key, or {key: ..., unit: ...}"
_NODES_FORM = "a path below /dev, with {index} where the number of the card stands, such as /dev/acme{index}"


@dataclass
class Wrong:
    """One thing that is refused: the path to it, the value, the form that is accepted, what was meant."""

    path: str
    value: object
    accepted: str
    suggestion: str = ""


def problems(declared: object, built_in: Mapping[str, Iterable[str]]) -> list[Wrong]:
    """Return everything that is wrong; ``built_in`` are the vendors of the collection with their PCI vendor ids.

    A name or PCI id of the collection needs ``replaces``: two that read one card would report it twice, and an id that
    was misspelt into that of another vendor would take its cards away unseen.
    """
    if not isinstance(declared, dict):
        return [Wrong("", declared, "a mapping from the name of each vendor to what it is")]
    known = {name: set(ids) for name, ids in built_in.items()}
    found: list[Wrong] = []
    for name, entry in declared.items():
        if not isinstance(name, str) or not _NAME.match(name):
            meant = re.sub(r"[^a-z0-9]+", "_", str(name).lower()).strip("_")
            found.append(Wrong("", name, f"as the name of a vendor {_NAME_FORM}", meant if _NAME.match(meant) else ""))
        elif not isinstance(entry, dict):
            found.append(Wrong(name, entry, f"a mapping with the keys {', '.join(KEYS)}"))
        else:
            found += [Wrong(f"{name}.{one.path}", one.value, one.accepted, one.suggestion) for one in _entry(entry)]
            found += _taken(name, entry, known)
    return [*found, *_shared(declared)]


def _entry(entry: dict) -> Iterator[Wrong]:
    for key in entry:
        if key not in KEYS:
            yield Wrong(str(key), entry[key], f"only the keys {', '.join(KEYS)}", _similar(str(key), KEYS))
    if not entry.get("pci_vendors"):
        yield Wrong("pci_vendors", entry.get("pci_vendors"), f"the PCI vendor ids of its cards, each {_HEX_FORM}")
    for key in ("pci_vendors", "pci_devices", "pci_classes"):
        yield from _ids(key, entry.get(key))
    for key in ("kernel_modules", "healthy"):
        yield from _words(key, entry.get(key), "a list of words")
    nodes = entry.get("device_nodes")
    if nodes is not None and not (isinstance(nodes, str) and _NODES.match(nodes)):
        yield Wrong("device_nodes", nodes, _NODES_FORM)
    yield from _command(entry)
    if entry.get("format") not in (None, CSV, JSON):
        yield Wrong("format", entry["format"], f"{JSON} or {CSV}", _similar(str(entry["format"]).lower(), (JSON, CSV)))
    path = entry.get("path")
    if path is not None and (not isinstance(path, str) or entry.get("format") == CSV):
        yield Wrong("path", path, "the keys that lead to the list of cards, joined by dots, in JSON only")
    yield from _fields(entry)


def _ids(key: str, value: object) -> Iterator[Wrong]:
    if value is None:
        return
    if not isinstance(value, list):
        yield Wrong(key, value, f"a list, each entry {_HEX_FORM}")
        return
    for place, one in enumerate(value):
        if not isinstance(one, str) or not _HEX.match(one):
            meant = one.lower()[2:] if isinstance(one, str) and one.lower().startswith("0x") else str(one).lower()
            yield Wrong(f"{key}[{place}]", one, _HEX_FORM, f'"{meant}"' if _HEX.match(meant) else "")


def _words(key: str, value: object, accepted: str) -> Iterator[Wrong]:
    if value is None:
        return
    if not isinstance(value, list) or not value:
        yield Wrong(key, value, accepted)
        return
    for place, word in enumerate(value):
        if not isinstance(word, str) or not word.strip() or not word.isprintable():
            yield Wrong(f"{key}[{place}]", word, "a word, quoted where YAML would read a number or a truth")


def _command(entry: dict) -> Iterator[Wrong]:
    command = entry.get("command")
    if command is None:
        for key in ("format", "path", "fields", "healthy"):
            if key in entry:
                yield Wrong(key, entry[key], "only with a command, whose answer it describes")
        return
    for key in _WITH_COMMAND:
        if key not in entry:
            yield Wrong(key, None, f"{JSON} or {CSV}" if key == "format" else f"a mapping from {', '.join(FIELDS)}")
    if isinstance(command, str) and command.strip():
        yield Wrong("command", command, _COMMAND_FORM, str(_split(command)))
        return
    yield from _words("command", command, _COMMAND_FORM)
    program = command[0] if isinstance(command, list) and command else None
    if isinstance(program, str) and re.search(r"\s", program.strip()):
        yield Wrong("command[0]", program, "the program alone, its options as words of their own", str(_split(program)))
    elif isinstance(program, str) and re.search(r"[|;&<>$`]", program):
        yield Wrong("command[0]", program, f"a program; {_COMMAND_FORM}")


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def _fields(entry: dict) -> Iterator[Wrong]:
    fields = entry.get("fields")
    if fields is None or "command" not in entry:
        return
    if not isinstance(fields, dict):
        yield Wrong("fields", fields, f"a mapping from {', '.join(FIELDS)}")
        return
    for name, told in fields.items():
        if name not in FIELDS:
            accepted = f"only the fields {', '.join(FIELDS)}"
            yield Wrong(f"fields.{name}", told, accepted, _similar(str(name), FIELDS))
        else:
            yield from _source(f"fields.{name}", told, FIELDS[name], entry.get("format"))
    if "pci_address" not in fields:
        yield Wrong("fields.pci_address", None, "where the tool tells the PCI address, which ties a card to its place")
    keys = [key_of(told) for told in fields.values()] if entry.get("format") == CSV else []
    if any(isinstance(key, int) for key in keys) and not all(isinstance(key, int) for key in keys):
        yield Wrong("fields", keys, "either names of columns, or numbers of columns where there is no header")
    if entry.get("healthy") is not None and "health" not in fields:
        yield Wrong("fields.health", None, "where the tool tells the word that healthy judges")
    if "health" in fields and entry.get("healthy") is None:
        yield Wrong("healthy", None, "the words of the field health that mean a card is well")


def _source(path: str, told: object, kind: str, layout: object) -> Iterator[Wrong]:
    if isinstance(told, dict):
        for key in told:
            if key not in ("key", "unit"):
                yield Wrong(f"{path}.{key}", told[key], "only the keys key, unit", _similar(str(key), ("key", "unit")))
        unit, units = told.get("unit"), UNITS.get(kind, ())
        if unit is not None and unit not in units:
            accepted = f"one of {', '.join(units)}" if units else "no unit for this field"
            yield Wrong(f"{path}.unit", unit, accepted, _unit_meant(unit, units))
    key = key_of(told)
    number = isinstance(key, int) and not isinstance(key, bool) and key >= 0 and layout == CSV
    if not number and not (isinstance(key, str) and key.strip()):
        accepted = f"{_KEY_FORM}; in {CSV} also its number, counted from 0, where there is no header"
        yield Wrong(path, told, accepted)


def key_of(told: object) -> object:
    """Return the key or column of a field, which may stand alone or beside its unit."""
    return told.get("key") if isinstance(told, dict) else told


def unit_of(told: object) -> str | None:
    """Return the declared unit of a field, None where none is declared."""
    return told.get("unit") if isinstance(told, dict) else None


def _unit_meant(unit: object, units: Iterable[str]) -> str:
    word = str(unit).lower()
    meant = {"mb": "MiB", "gb": "GiB", "kb": "KiB", "%": "percent", "bytes": "B", "byte": "B", "watts": "W"}
    meant.update({one.lower(): one for one in units if one not in ("mW", "mC")})
    return meant.get(word, "") if meant.get(word, "") in units else ""


def _taken(name: str, entry: dict, known: Mapping[str, set[str]]) -> Iterator[Wrong]:
    """Complain about what belongs to a vendor of the collection, unless the entry replaces it."""
    replaced = entry.get("replaces")
    if replaced is not None and not (isinstance(replaced, str) and replaced in known):
        yield Wrong(f"{name}.replaces", replaced, f"one of {', '.join(known)}", _similar(str(replaced), known))
        return
    if name in known and replaced != name:
        accepted = f"another name; the collection knows {name} (replaces: {name} reads its cards by this declaration)"
        yield Wrong("", name, accepted)
    ids = entry.get("pci_vendors")
    for place, one in enumerate(ids if isinstance(ids, list) else []):
        owners = (other for other, owned in known.items() if isinstance(one, str) and one in owned)
        owner = next((other for other in owners if other != replaced), None)
        if owner and owner != name:
            yield Wrong(f"{name}.pci_vendors[{place}]", one, f"an id that is not {owner}'s, or replaces: {owner}")


def _shared(declared: dict) -> Iterator[Wrong]:
    """Complain where two declared vendors claim one card, and where two replace one vendor."""
    seen: list[tuple[str, set[str], set[str]]] = []
    replaced: dict[str, str] = {}
    for name, entry in declared.items():
        if not isinstance(entry, dict):
            continue
        vendors, devices = _texts(entry.get("pci_vendors")), _texts(entry.get("pci_devices"))
        for other, their_vendors, their_devices in seen:
            both = vendors & their_vendors
            # Without device ids a vendor takes all that have its id.
            if both and (not devices or not their_devices or devices & their_devices):
                accepted = f"ids of its own; {other} has {min(both)} too (pci_devices tells two apart)"
                yield Wrong(f"{name}.pci_vendors", sorted(vendors), accepted)
        seen.append((str(name), vendors, devices))
        known = entry.get("replaces")
        if isinstance(known, str) and replaced.setdefault(known, str(name)) != str(name):
            yield Wrong(f"{name}.replaces", known, f"one declaration for each vendor; {replaced[known]} replaces it")


def _texts(value: object) -> set[str]:
    return {one for one in value if isinstance(one, str)} if isinstance(value, list) else set()


def _similar(name: str, known: Iterable[str]) -> str:
    # Imported when needed: a sound declaration means nothing else.
    import difflib

    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return found[0] if found else ""
