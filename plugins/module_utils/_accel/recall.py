# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""What the slot record of a host still knows of cards that do not answer: their place and their serial."""

from __future__ import annotations

from .model import FOREIGN_RECORD_ERROR
from .slot_names import RECORD, source_rank

_IDENTITY = ("serial", "uuid", "model", "firmware_version")


def recall(observation: dict, record: dict | None, host: str) -> None:
    """Fill in the slot, and in ``last`` the identity, of cards that do not answer, by their address.

    ``observation`` is an ``Observation`` as a dictionary, ``record`` a slot record, ``host`` the name of this host in
    the inventory. A vendor's own numbers of places come with the answer, so a card that stopped answering would
    otherwise lose its name. Nothing is recalled where a card that answers sits in another slot than the record has
    for its address (addresses changed), where none of those that answer is in the record, or where it is that of
    another host (it came with a cloned disk): a wrong serial would have the wrong card pulled.
    """
    if record and record["host"] != host:
        observation["errors"].append(f"{FOREIGN_RECORD_ERROR}{record['host']}, not of {host}: it is not used")
        return
    known = {}
    for label, cards in [*((record or {}).get("slots") or {}).items(), (None, (record or {}).get("unplaced") or [])]:
        for card in cards:
            if card.get("pci_address"):
                known[card["pci_address"]] = (label, card)
    answered = [device for device in observation["devices"] if device["source"] != "sysfs"]
    for device in answered:
        label = device["slot"]["label"]
        if label and known.get(device["pci_address"], (None, {}))[0] not in (None, label):
            return
    present = {device[key] for device in answered for key in ("serial", "uuid")} - {None}
    if present and not any(present & {card.get("serial"), card.get("uuid")} for _label, card in known.values()):
        return
    if observation["bus_count"] is None:
        _name_answered(answered, list(known.values()))
    taken = {device["slot"]["label"] for device in answered}
    silent = [device for device in observation["devices"] if device["source"] == "sysfs"]
    for entry in [*observation["unanswered"], *silent]:
        label, card = known.get(entry["pci_address"], (None, None))
        if card is None:
            continue
        if label not in taken:
            entry["slot"] = _slot(entry["slot"], label, card.get("slot_source"))
        # A card that answers somewhere else is not the one that is silent here. Boards with two chips share
        # their serial, so the chip's own identity goes first.
        if "last" in entry and (card.get("uuid") or card.get("serial")) not in present:
            entry["last"] = {**{key: card.get(key) for key in _IDENTITY}, "slot": label}
            for key in _IDENTITY:
                entry[key] = entry[key] or card.get(key)


def _name_answered(answered: list[dict], known: list[tuple[str | None, dict]]) -> None:
    """Add the recorded place, as a candidate, to cards whose place nobody could look up: the PCI bus can't be read.

    Only what the card itself says (UUID, else a serial that no other card has) tells which one it is; an address does
    not. It stays a candidate: that the card sits there still is not proven by it.
    """
    for device in answered:
        if device["slot"]["label"]:
            continue
        for key in ("uuid", "serial"):
            alike = [one for one in answered if device[key] and one[key] == device[key]]
            labels = {label for label, card in known if card.get(key) == device[key]}
            if device[key] and labels:
                label = labels.pop()
                if label and not labels and len(alike) == 1:
                    device["slot"]["candidates"].append({"label": label, "source": RECORD})
                break


def _slot(told: dict, label: str, source: str | None) -> dict:
    """Return the recorded name where it is from a better source than what is told now."""
    if label is None or source_rank(told["source"]) <= source_rank(source):
        return told
    others = [{"label": told["label"], "source": told["source"]}] if told["label"] not in (None, label) else []
    others += [one for one in told["candidates"] if one["label"] != label]
    return {"label": label, "source": source, "candidates": others}
