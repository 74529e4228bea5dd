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

import errno
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from . import pci, registry
from .runner import Runner
from .slot_names import place_of
from .vendors.base import Vendor

ROOT = "/sys/bus/pci"

WORDS = {
    "en": {
        "comma": ", ",
        "semicolon": "; ",
        "slot": "slot {0}",
        "serial": "serial {0}",
        "led": "enclosure light of {0}",
        "enclosure": "enclosure place {0}",
        "attention": "attention indicator of slot {0}",
        "on": "{light} of {card} is on",
        "off": "{light} of {card} is off",
        "not_on": "{light} of {card} is not on: {why}",
        "not_off": "{light} of {card} is not off: {why}",
        "shared": "; it is the light of {0} too",
        "no_card": "no card of this node is {0!r}; accelctl devices lists them",
        "silent": "; these cards tell neither serial nor UUID: {0}. If it is one of them, give the address",
        "no_bus": "; the PCI bus could not be read",
        "no_address": "nothing tells the address of {0}, so its light can't be looked for",
        "no_light": "no light is known at {0}: neither an enclosure nor a slot of the kernel has one",
        "several": "several lights claim {0}: {1}; none was touched",
        "not_written": "{0} can't be written: {1}",
        "root": " (try as root)",
        "deaf": "{0} was written, but reads {1!r}",
    },
    "zh": {
        "comma": "，",
        "semicolon": "；",
        "slot": "槽位 {0}",
        "serial": "序列号 {0}",
        "led": "{0} 机箱定位灯",
        "enclosure": "机箱位 {0} 定位灯",
        "attention": "槽位 {0} 提示灯",
        "on": "{card} 的{light}：已点亮",
        "off": "{card} 的{light}：已熄灭",
        "not_on": "{card} 的{light}未点亮：{why}",
        "not_off": "{card} 的{light}未熄灭：{why}",
        "shared": "；该灯也属于 {0}",
        "no_card": "本节点没有加速卡 {0!r}；可用 accelctl devices 列出",
        "silent": "；以下加速卡未给出序列号与 UUID：{0}。若要找的是其中之一，请改用地址",
        "no_bus": "；无法读取 PCI 总线",
        "no_address": "无法得知 {0} 的地址，因此无法查找其定位灯",
        "no_light": "{0} 处没有已知的灯：机箱与内核槽位均未提供",
        "several": "有多个灯对应 {0}：{1}；未作任何操作",
        "not_written": "无法写入 {0}：{1}",
        "root": "（请以 root 执行）",
        "deaf": "已写入 {0}，但读回为 {1!r}",
    },
}


@dataclass
class Place:
    """A card that was looked for: where it is, and what it is called. ``address`` is None when nothing tells it."""

    address: str | None
    slot: str | None = None
    serial: str | None = None

    def name(self, say: dict) -> str:
        """Return the card as a person would name it."""
        told = [(key, value) for key, value in (("slot", self.slot), ("serial", self.serial)) if value]
        names = [self.address, *(say[key].format(value) for key, value in told)]
        return say["comma"].join(one for one in names if one)


@dataclass
class Light:
    """One indicator: what ``kind`` it is (a key of WORDS) and where.

    ``others`` are cards that share it, so that it does not tell one from the other.
    """

    path: str
    kind: str
    place: str
    others: list[str] = field(default_factory=list)

    def name(self, say: dict) -> str:
        """Return the indicator as a person would name it."""
        return say[self.kind].format(self.place)


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
        found = [Light(led, "led", one) for led in runner.glob(f"/sys/class/leds/{one}:enclosure:locate/brightness")]
        for device in [] if found else runner.glob("/sys/class/enclosure/*/*/device"):
            component = os.path.dirname(device)
            if runner.realpath(device) == own and runner.glob(f"{component}/locate"):
                found.append(Light(f"{component}/locate", "enclosure", os.path.basename(component)))
        for slot in [] if found else pci.slot_table(runner, root):
            attention = os.path.join(root, "slots", slot["name"], "attention")
            if slot["address"] == pci.normalise_device(one) and runner.glob(attention):
                found.append(Light(attention, "attention", slot["name"]))
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


def switch(runner: Runner, light: Light, on: bool, say: dict) -> str | None:
    """Turn an indicator on or off; return why it is not as it should be, None when it is.

    What was written is read back: a file that takes a value without a light behind it is no light.
    """
    wanted = "1" if on else "0"
    problem = runner.write(light.path, wanted)
    if problem:
        return say["not_written"].format(light.path, problem) + (say["root"] if problem in _NOT_ALLOWED else "")
    now = runner.read(light.path)
    # 2 is "blinking" where the slot does so by itself.
    if now == wanted or (on and now == "2"):
        return None
    return say["deaf"].format(light.path, now)


_NOT_ALLOWED = (os.strerror(errno.EACCES), os.strerror(errno.EPERM))


def answer(
    runner: Runner, word: str, on: bool, observation: Mapping, record: Mapping | None, language: str = "en"
) -> tuple[list[str], list[str]]:
    """Turn the light at the card that ``word`` names on or off; return what was done, and what was not and why."""
    say = WORDS[language]
    places = find(word, observation, record)
    if not places:
        return [], [_no_card(word, observation, say)]
    names = say["semicolon"].join(place.name(say) for place in places)
    ours = {place.address for place in places if place.address}
    if not ours:
        return [], [say["no_address"].format(names)]
    seen = [*observation["devices"], *observation["unanswered"]]
    cards = [one["pci_address"] for one in seen if one["pci_address"]]
    found = {light.path: light for address in sorted(ours) for light in lights(runner, address, cards)}
    if not found:
        return [], [say["no_light"].format(names)]
    if len(found) > 1 and len(ours) == 1:
        return [], [say["several"].format(names, say["comma"].join(found))]
    done, failed = [], []
    for light in found.values():
        problem = switch(runner, light, on, say)
        values = {"light": light.name(say), "card": names, "why": problem}
        if problem:
            failed.append(say["not_on" if on else "not_off"].format(**values))
            continue
        others = [card for card in light.others if card not in ours]
        shared = say["shared"].format(say["comma"].join(others)) if others else ""
        done.append(say["on" if on else "off"].format(**values) + shared)
    return done, failed


def _no_card(word: str, observation: Mapping, say: dict) -> str:
    """Return that a card is not known, and what keeps that from being a proof that it is not there."""
    told = say["no_card"].format(word)
    seen = [*observation["devices"], *observation["unanswered"]]
    silent = [one for one in seen if not one["serial"] and not one["uuid"]]
    if silent and not is_address(word):
        places = (Place(one["pci_address"], place_of(one)).name(say) for one in silent)
        told += say["silent"].format(say["comma"].join(places))
    return told + (say["no_bus"] if observation.get("bus_count", 0) is None else "")
