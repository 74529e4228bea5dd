# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""The light at a card's place: which file of the kernel turns it on, and whether it did.

Three kinds, the nearest to the card first: native enclosure management of PCIe (``<address>:enclosure:locate``,
Linux 6.13), a component of an enclosure whose device is the card or a bridge above it, and the attention indicator of a
hotplug slot (``/sys/bus/pci/slots/<name>/attention``, which is only there when the slot has the indicator).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from . import pci, registry
from .runner import Runner
from .slot_names import place_of
from .vendors.base import Vendor

ROOT = "/sys/bus/pci"


@dataclass
class Place:
    """A card that was looked for: where it is, and what it is called. ``address`` is None when nothing tells it."""

    address: str | None
    slot: str | None = None
    serial: str | None = None

    @property
    def name(self) -> str:
        """Return the card as a person would name it."""
        told = [f"slot {self.slot}" if self.slot else "", f"serial {self.serial}" if self.serial else ""]
        return ", ".join(one for one in (self.address, *told) if one)


@dataclass
class Light:
    """One indicator. ``others`` are cards that share it, so that it does not tell one from the other."""

    path: str
    name: str
    others: list[str] = field(default_factory=list)


def is_address(word: str) -> bool:
    """Tell whether a word is the address of a PCI function."""
    try:
        return pci.normalise(word) is not None
    except ValueError:
        return False


def on_bus(runner: Runner, root: str = ROOT, declared_vendors: dict | None = None) -> dict:
    """Return as much of an observation as the bus tells: the addresses of the cards."""
    cards: list[dict] = []
    own: list[Vendor] = []
    if declared_vendors:
        # Imported when needed: few sites declare a vendor.
        from .vendors.declared import Declared, problems

        sound = not problems(declared_vendors, registry.PCI_VENDORS)
        own = [Declared(name, entry) for name, entry in declared_vendors.items()] if sound else []
    for function in pci.functions(runner, root, detailed=lambda one: False):
        vendor = registry.PCI_VENDORS.get(function.vendor)
        known = [*own, registry.VENDORS[vendor]] if vendor else own
        if any(one.owns(function) for one in known):
            cards.append({"pci_address": function.address, "slot": {}, "serial": None, "uuid": None})
    return {"devices": cards, "unanswered": []}


def find(word: str, observation: Mapping, record: Mapping | None = None) -> list[Place]:
    """Return the cards that a slot, serial, UUID or address names, from what answers, else from the slot record."""
    address = pci.normalise(word) if is_address(word) else None
    seen = []
    for one in [*(observation.get("devices") or []), *(observation.get("unanswered") or [])]:
        label = place_of(one)
        seen.append((Place(one.get("pci_address"), label, one.get("serial")), one.get("uuid")))
    known = []
    for label, cards in [*((record or {}).get("slots") or {}).items(), (None, (record or {}).get("unplaced") or [])]:
        known += [(Place(one.get("pci_address"), label, one.get("serial")), one.get("uuid")) for one in cards]
    for places in (seen, known):
        exact = [place for place, uuid in places if word in (place.slot, place.serial, uuid)]
        found = exact or [place for place, _uuid in places if address and place.address == address]
        found = found or [place for place, _uuid in places if word.lower() == (place.slot or "").lower()]
        if found:
            return found
    return []


def lights(runner: Runner, address: str, cards: Iterable[str] = (), root: str = ROOT) -> list[Light]:
    """Return the indicators at the place of a card, all of the nearest kind and bridge that has any.

    ``cards`` are the addresses of all cards of the host. A card that is gone from the bus still has its slot.
    """
    path = runner.realpath(os.path.join(root, "devices", address))
    chain = [address, *_above(path)]
    below = {card: runner.realpath(os.path.join(root, "devices", card)) for card in cards}
    for position, one in enumerate(chain):
        own = path if not position else path[: path.index(f"/{one}/") + len(one) + 1]
        found = [
            Light(led, f"enclosure light of {one}")
            for led in runner.glob(f"/sys/class/leds/{one}:enclosure:locate/brightness")
        ]
        for device in [] if found else runner.glob("/sys/class/enclosure/*/*/device"):
            component = os.path.dirname(device)
            if runner.realpath(device) == own and runner.glob(f"{component}/locate"):
                found.append(Light(f"{component}/locate", f"enclosure place {os.path.basename(component)}"))
        for slot in [] if found else pci.slot_table(runner, root):
            attention = os.path.join(root, "slots", slot["name"], "attention")
            if slot["address"] == pci.normalise_device(one) and runner.glob(attention):
                found.append(Light(attention, f"attention indicator of slot {slot['name']}"))
        if found:
            place = pci.normalise_device(one)
            shared = [
                card
                for card, where in below.items()
                if card != address and (f"/{one}/" in where or pci.normalise_device(card) == place)
            ]
            for light in found:
                light.others = sorted(shared, key=pci.sort_key)
            return found
    return []


def _above(path: str) -> list[str]:
    """Return the addresses of the bridges above a device, the nearest first."""
    found = []
    for name in reversed(path.split("/")[:-1]):
        try:
            address = pci.normalise(name) if ":" in name and "." in name else None
        except ValueError:
            address = None
        if address is None:
            break
        found.append(address)
    return found


def switch(runner: Runner, light: Light, on: bool) -> str | None:
    """Turn an indicator on or off; return why it is not as it should be, None when it is.

    What was written is read back: a file that takes a value without a light behind it is no light.
    """
    wanted = "1" if on else "0"
    problem = runner.write(light.path, wanted)
    if problem:
        return f"{light.path} can't be written: {problem}"
    now = runner.read(light.path)
    # 2 is "blinking" where the slot does so by itself.
    if now == wanted or (on and now == "2"):
        return None
    return f"{light.path} was written, but reads {now!r}"
