# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Names of slots, from four sources: the declared map, the vendor, the kernel, the firmware.

In a file of its own because every query of the cards needs the names, and few need the records of ``slots.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from . import pci
from .model import SLOT_SOURCES, SlotName


def declared_slots(declared: dict | None) -> dict[str, str]:
    """Return a declared map as {address: label}, whichever way round it was written.

    Addresses may leave the function out: every function of that device is meant, and the key stays
    without one. ValueError names an entry that holds no address, or no label.
    """
    labels: dict[str, str] = {}
    for left, right in (declared or {}).items():
        place, label = _address(left), right
        if place is None:
            place, label = _address(right), left
        if place is None:
            raise ValueError(f"declared slot {left!r}: {right!r} names no PCI address (like 0000:18:00.0)")
        name = "" if label is None else str(label).strip()
        if not name:
            raise ValueError(f"declared slot {left!r}: {right!r} has no name")
        if labels.setdefault(place, name) != name:
            raise ValueError(f"{place} is declared twice: {labels[place]!r} and {name!r}")
    return labels


def _address(text: object) -> str | None:
    """Return a function's address, or a device's where no function is told; None when it is neither."""
    for reader in (pci.normalise, pci.normalise_device):
        try:
            return reader(str(text))
        except ValueError:
            continue
    return None


def device_of(address: str) -> str:
    return address.rsplit(".", 1)[0]


def source_rank(source: object) -> int:
    """Return how little the source of a slot name is trusted: 0 for the declared map, the highest for none."""
    return SLOT_SOURCES.index(source) if source in SLOT_SOURCES else len(SLOT_SOURCES)


# Where a place is known from that nobody could look at now: a candidate of a card that answers, never its label.
RECORD = "record"


def place_of(entry: Mapping) -> str | None:
    """Return what the slot of a card is called: its name, else the one that the record of the host has for it."""
    slot = entry.get("slot")
    if not isinstance(slot, Mapping):
        return None
    candidates = slot.get("candidates")
    others = [one for one in candidates if isinstance(one, Mapping)] if isinstance(candidates, list) else []
    recorded = (one.get("label") for one in others if one.get("source") == RECORD)
    return slot.get("label") or next(recorded, None)


def name_slots(
    functions: Iterable,
    declared: dict | None,
    vendor_labels: dict[str, str | None] | None,
    sysfs_slots: Iterable[dict],
    dmi_slots: Iterable,
    boards: dict[str, str | None] | None = None,
) -> dict[str, SlotName]:
    """Return the slot name of each ``pci.Function`` of ``functions``, by address.

    Sources in the order of trust: the declared map, the vendor's own label, a sysfs slot of the device or
    of a bridge above it (the nearest level that has any), the same in the believable part of a DMI table,
    none. What a source gives counts only when it is one label, and when no other card has it: a riser or a switch
    behind one slot puts several cards into it, a tool may number all of them 1. Devices that share a board
    may share a slot; ``boards`` gives their serials by address (functions of one device share a board
    anyway; one whose serial nobody told, because it is lost, may belong to the only board that is known).
    Labels that lost, from whichever source, stay as candidates.
    """
    functions = list(functions)
    known = declared_slots(declared)
    sysfs = _sysfs_names(sysfs_slots)
    dmi = _dmi_names(dmi_slots)
    says: dict[str, dict[str, list[str]]] = {source: {} for source in SLOT_SOURCES}
    for function in functions:
        address = function.address
        label = known.get(address) or known.get(device_of(address))
        says["declared"][address] = [label] if label else []
        label = str((vendor_labels or {}).get(address) or "").strip()
        says["vendor"][address] = [label] if _names_something(label) else []
        says["sysfs"][address] = _nearest(function, sysfs)
        says["dmi"][address] = _nearest(function, dmi)

    chosen: dict[str, tuple[str, str]] = {}
    for source in SLOT_SOURCES:
        holders: dict[str, list[str]] = {}
        for address, (label, _unused) in chosen.items():
            holders.setdefault(label, []).append(address)
        claimants: dict[str, list[str]] = {}
        for address, labels in says[source].items():
            for label in labels:
                claimants.setdefault(label, []).append(address)
        for address, labels in says[source].items():
            if address in chosen or len(labels) != 1:
                continue
            rivals = holders.get(labels[0], []) + claimants[labels[0]]
            # What an operator declares is not second-guessed.
            if source == "declared" or _one_board({*rivals, address}, boards or {}):
                chosen[address] = (labels[0], source)

    return {
        function.address: _slot_name(
            chosen.get(function.address), {source: says[source][function.address] for source in SLOT_SOURCES}
        )
        for function in functions
    }


def _slot_name(chosen: tuple[str, str] | None, said: dict[str, list[str]]) -> SlotName:
    label, source = chosen or (None, None)
    candidates = [{"label": one, "source": name} for name in SLOT_SOURCES for one in said[name] if one != label]
    return SlotName(label, source, candidates)


def _names_something(name: str) -> bool:
    # Slot number 0 is what firmware says for "none"; the kernel makes the second one 0-1 (below).
    return bool(name) and not re.fullmatch(r"0(-\d+)?", name)


def _sysfs_names(slots: Iterable[dict]) -> dict[str, list[str]]:
    """Return the names that a device address has; more than one where none is to be believed.

    The kernel makes a name that is taken unique by appending a number (make_slot_name in
    drivers/pci/slot.c): with "5" and "5-1" the firmware gave two slots the number 5, and which of the two
    got it is chance. Both are then listed for both addresses, so that neither is unique.
    """
    families: dict[str, list[str]] = {}
    found: list[tuple[str, str]] = []
    for slot in slots:
        name, address = str(slot["name"]), pci.normalise_device(str(slot["address"]))
        if address and _names_something(name):
            found.append((address, name))
            families.setdefault(re.sub(r"-\d+$", "", name), []).append(name)
    names: dict[str, set[str]] = {}
    for address, name in found:
        base = re.sub(r"-\d+$", "", name)
        names.setdefault(address, set()).update(families[base] if base in families[base] else [name])
    return {address: sorted(several, key=natural) for address, several in names.items()}


def _dmi_names(slots: Iterable) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for slot in slots:
        # The function number of firmware tables is often wrong: the device is what counts.
        address = pci.normalise_device(str(slot.address)) if slot.address else None
        if address and slot.designation and slot.designation not in names.get(address, ()):
            names.setdefault(address, []).append(slot.designation)
    return names


def _nearest(function, names: dict[str, list[str]]) -> list[str]:
    """Return the names at the device itself, else at the nearest bridge above it that has any."""
    for address in (function.address, *function.ancestors):
        if device_of(address) in names:
            return names[device_of(address)]
    return []


def _one_board(addresses: set[str], boards: dict[str, str | None]) -> bool:
    if len({device_of(address) for address in addresses}) == 1:
        return True
    serials = {boards.get(address) for address in addresses} - {None}
    return len(serials) == 1


def natural(text: object) -> tuple:
    """Return the key that sorts SXM2 before SXM10, and nothing (None) last."""
    if text is None or text == "":
        return (1,)
    parts = re.split(r"(\d{1,18})", str(text).lower())
    return (0, tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part))
