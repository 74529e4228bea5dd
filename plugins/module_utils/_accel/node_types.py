# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""What one host showed (``Look``), and which hosts are of equal hardware (``NodeType``). Pure functions.

Hosts are of one kind where vendor and model of most of their cards are the same. Of one kind, those with fewer
cards are siblings with cards missing, unless they look like another server model. How many cards a host has comes
from the PCI bus, never from a tool alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from . import pci
from .contract import GROUPS
from .model import SLOT_TABLE_ERROR, dict_of
from .slot_names import natural

ANSWERED, SILENT, FAILED, NOT_ASKED = "answered", "silent", "failed", "not_asked"

# A host with more than this part of the cards of its like is one of them with cards missing; one with fewer may be
# another server model.
_LIKELY_PART = 0.5
# So many hosts with exactly the same cards are the norm, even where a single one has a card more.
_NORM = 3
_GIB = 1 << 30
# No count and no measure of a card is as large; what is, no arithmetic with floats takes.
_LARGEST = 1 << 63
# Ansible would run these as a template, on the controller.
_TEMPLATE = re.compile(r"\{[{%#]")


@dataclass
class Card:
    """One card as a host shows it. ``state`` is ok, lost, not_reported, or bus where no tool was asked.

    ``address`` is "" where none could be read: such a card has no place, and is like no card of another host.
    """

    address: str = ""
    index: int | None = None
    vendor: str = ""
    pci_id: str | None = None
    model: str | None = None
    serial: str | None = None
    uuid: str | None = None
    memory_gib: float | None = None
    width: int | None = None
    max_width: int | None = None
    max_speed: float | None = None
    limited_by: str | None = None
    slot: str | None = None
    slot_source: str | None = None
    state: str = "ok"
    reason: str | None = None
    partitions: int = 0
    sick: str = ""
    driver: str | None = None
    source: str = ""
    ports: dict = field(default_factory=dict)

    @property
    def place(self) -> str:
        """Return the address without its function: what the bus counts."""
        return self.address.rsplit(".", 1)[0]


@dataclass
class Look:
    """What one host showed. ``count`` is the number of its cards on the bus, None where nobody could look."""

    host: str
    state: str = ANSWERED
    why: str = ""
    cards: list[Card] = field(default_factory=list)
    vendor: str = ""
    vendors: dict = field(default_factory=dict)
    pci_id: str | None = None
    model: str | None = None
    count: int | None = None
    tool_count: int | None = None
    bus_read: bool = False
    tools: list[dict] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    versions: dict = field(default_factory=dict)
    zone: str | None = None
    clock: str | None = None
    strange: list[str] = field(default_factory=list)
    _places: frozenset | None = None

    def own(self) -> list[Card]:
        """Return the cards of the vendor that the node type will speak of."""
        return [card for card in self.cards if card.vendor == self.vendor]

    def places(self) -> frozenset:
        """Return where the bus shows cards of the kind that most cards are of."""
        if self._places is None:  # asked for over and over where hosts are compared
            self._places = frozenset(
                card.place for card in self.own() if card.place and card.pci_id and card.pci_id == self.pci_id
            )
        return self._places


@dataclass
class NodeType:
    """Hosts of equal hardware. ``full`` are those that show all its cards, ``layout`` where these sit."""

    name: str = ""
    looks: list[Look] = field(default_factory=list)
    count: int | None = None
    layout: frozenset = frozenset()

    @property
    def vendor(self) -> str:
        return self.looks[0].vendor

    @property
    def hosts(self) -> list[str]:
        return [look.host for look in self.looks]

    def full(self) -> list[Look]:
        return [look for look in self.looks if look.count is not None and look.count == self.count]


# ------------------------------------------------------------------------------------------------------ one host


def look_at(host: str, observed: object) -> Look:
    """Return what a host showed, from what the modules returned for it.

    ``observed``: ``cards`` (accelerator_info), ``versions`` (version_info), ``baseline`` (baseline_info), each as
    returned, and ``error``, what went wrong where asking it broke. A value that is not of the kind that the module
    returns is unknown and told in ``errors``: one host's odd answer must not cost the others their survey.
    """
    answers = dict_of(observed)
    told = dict_of(answers.get("cards"))
    error = " ".join(str(answers.get("error") or "").split())[:300]
    if not isinstance(told.get("devices"), list):
        failed = error or (told.get("failed") and " ".join(str(told.get("msg") or "?").split())[:300])
        return Look(host, FAILED, str(failed)) if failed else Look(host, SILENT)
    look = Look(host)
    cards = _Answer(told, "accelerator_info", look.errors)
    look.tool_count = cards.whole("count")
    bus_count = cards.whole("bus_count")
    look.bus_read = bus_count is not None
    look.tools = [one.told for one in cards.answers("tools")]
    look.errors += [one for one in cards.texts("errors") if not one.startswith(SLOT_TABLE_ERROR)]
    versions = _Answer(dict_of(answers.get("versions")), "version_info", look.errors)
    rows = [one.told for one in versions.answers("versions")]
    look.versions = {"versions": rows} if isinstance(versions.told.get("versions"), list) else {}
    look.errors += versions.texts("errors")
    if error:
        look.errors.append(error)
    look.cards = [_answered(one, look) for one in cards.answers("devices")]
    look.cards += [_unanswered(one, look) for one in cards.answers("unanswered")]
    look.cards.sort(key=lambda card: pci.sort_key(card.address) if card.address else (1 << 40,))
    baseline = _Answer(dict_of(answers.get("baseline")), "baseline_info", look.errors)
    look.zone = baseline.text("time_zone", look)
    clock = baseline.below("clock")
    # A host that follows its own clock, or none, names no server.
    if clock.told.get("synchronised") and not clock.told.get("local"):
        look.clock = clock.text("reference", look)
    _kind(look, bus_count)
    return look


class _Answer:
    """Reads values of one mapping that a module returned; None, and a word in ``errors``, where it is another kind."""

    def __init__(self, told: dict, module: str, errors: list[str], path: str = "") -> None:
        self.told, self.module, self.errors, self.path = told, module, errors, path

    def _read(self, name: str, kind: type | tuple[type, ...]) -> Any:
        value = self.told.get(name)
        fits = isinstance(value, kind) and not isinstance(value, bool)
        if fits and isinstance(value, (int, float)):
            fits = 0 <= value < _LARGEST
        if value is not None and not fits:
            self.errors.append(f"{self.module}: {self.path}{name} is {value!r:.80}, which can't be read")
        return value if fits else None

    def whole(self, name: str) -> int | None:
        return self._read(name, int)

    def number(self, name: str) -> float | None:
        return self._read(name, (int, float))

    def text(self, name: str, look: Look) -> str | None:
        """Return a text that may stand in an inventory."""
        value = self._read(name, str)
        return None if value is None else _plain(value, look)

    def texts(self, name: str) -> list[str]:
        return [str(one) for one in self._read(name, list) or []]

    def below(self, name: str) -> _Answer:
        """Return the reader of a mapping within this one."""
        return _Answer(self._read(name, dict) or {}, self.module, self.errors, f"{self.path}{name}.")

    def answers(self, name: str) -> list[_Answer]:
        """Return the readers of the mappings in a list."""
        found = []
        for one in self._read(name, list) or []:
            if isinstance(one, dict):
                found.append(_Answer(one, self.module, self.errors))
            else:
                self.errors.append(f"{self.module}: {self.path}{name} has {one!r:.80}, which can't be read")
        return found


def _answered(device: _Answer, look: Look) -> Card:
    card = _card(device, look)
    memory = device.number("memory_bytes")
    card.memory_gib = memory / _GIB if memory else None
    card.source = device.text("source", look) or ""
    card.state = "bus" if card.source == "sysfs" else "ok"
    card.index = device.whole("index")
    # Two chips on one function are no partitions.
    card.partitions = len([part for part in device.answers("logical") if part.told.get("kind") != "chip"])
    card.driver = device.text("driver_version", look)
    health = device.below("health")
    if health.told.get("state") == "critical":
        card.sick = " ".join("; ".join(health.texts("reasons")).split())[:200] or "critical"
    for port in device.answers("ports"):
        kind = str(port.told.get("kind") or "")
        card.ports[kind] = card.ports.get(kind, 0) + 1
    return card


def _unanswered(entry: _Answer, look: Look) -> Card:
    card = _card(entry, look)
    card.state = "lost" if entry.told.get("state") == "lost" else "not_reported"
    card.reason = entry.text("reason", look)
    return card


def _card(one: _Answer, look: Look) -> Card:
    link, slot = one.below("link"), one.below("slot")
    return Card(
        address=_address(one, look),
        vendor=one.text("vendor", look) or "",
        pci_id=one.text("pci_id", look),
        model=one.text("model", look),
        serial=one.text("serial", look),
        uuid=one.text("uuid", look),
        width=link.whole("width"),
        max_width=link.whole("max_width"),
        max_speed=link.number("max_speed_gts"),
        limited_by=link.text("limited_by", look),
        slot=slot.text("label", look),
        slot_source=slot.text("source", look),
    )


def _address(one: _Answer, look: Look) -> str:
    """Return where a card sits, "" where that can't be read; what stands there instead is told."""
    told = one.text("pci_address", look)
    try:
        return pci.normalise(told or "") or ""
    except ValueError:
        look.errors.append(f"accelerator_info: pci_address is {told!r:.80}, which can't be read")
        return ""


def _plain(value: str, look: Look) -> str | None:
    """Return a text that may stand in an inventory; None, noted on the look, for one that would be run there."""
    text = value.strip()
    if _TEMPLATE.search(text) or not text.isprintable():
        look.strange.append("".join(sign if sign.isprintable() else "?" for sign in text)[:80])
        return None
    return text or None


def _kind(look: Look, bus_count: int | None) -> None:
    """Say of which vendor and model most cards are, and how many of that vendor the bus shows."""
    vendors = Counter(card.vendor for card in look.cards)
    look.vendors = dict(vendors)
    if not look.cards:
        look.count = bus_count
        return
    look.vendor = most_frequent(vendors)
    own = look.own()
    ids = Counter(card.pci_id for card in own if card.pci_id)
    look.pci_id = most_frequent(ids) if ids else None
    models = Counter(card.model for card in own if card.model and card.pci_id == look.pci_id)
    look.model = most_frequent(models) if models else None
    if bus_count is not None:
        # A card that left the bus may still be spoken of; only what the bus shows is counted.
        shown = {card.place for card in own if card.address and card.pci_id}
        look.count = bus_count if len(vendors) == 1 else min(bus_count, len(shown))


def most_frequent(counter: Counter) -> str:
    """Return what is there most often, of equals the first by name."""
    return min(counter, key=lambda key: (-counter[key], natural(key)))


# ---------------------------------------------------------------------------------------------------- node types


def group(looks: Iterable[Look]) -> list[NodeType]:
    """Return hosts of equal hardware, largest count first; every host with cards is in exactly one."""
    kinds: dict[tuple, list[Look]] = {}
    unsure = []
    for look in looks:
        if not look.cards:
            continue
        if look.model is not None and look.pci_id is not None:
            kinds.setdefault((look.vendor, look.pci_id, look.model), []).append(look)
        else:
            unsure.append(look)
    for look in unsure:
        # No tool, or no bus: the half that is known must fit; of several fitting kinds the one with most hosts.
        fitting = [
            key
            for key in kinds
            if key[0] == look.vendor
            and (look.pci_id in (None, key[1]))
            and (look.model in (None, key[2]))
            and None not in key
        ]
        key = (look.vendor, look.pci_id, look.model)
        if fitting and (look.pci_id, look.model) != (None, None):
            key = min(fitting, key=lambda one: (-len(kinds[one]), natural(one[2])))
        kinds.setdefault(key, []).append(look)
    found = []
    for key in sorted(kinds, key=lambda one: tuple(natural(part) for part in one)):
        found += _by_count(sorted(kinds[key], key=lambda look: natural(look.host)))
    for node_type in found:
        node_type.looks.sort(key=lambda look: natural(look.host))
        node_type.layout = _layout(node_type)
    return found


def _by_count(looks: list[Look]) -> list[NodeType]:
    """Split hosts of one kind by the number of their cards, unless a host is a sibling with cards missing."""
    found: list[NodeType] = []
    sized = [look for look in looks if look.count is not None]
    left_over: list[Look] = []
    for size in sorted({_size(look) for look in sized}, reverse=True):
        own = [look for look in sized if _size(look) == size]
        alone: list[Look] = []
        alike = Counter(look.places() for look in own)
        for look in own:
            home = _home(look.places(), alike[look.places()], found)
            (home.looks if home else alone).append(look)
        if len(alone) == 1 and any(_likely(size, one) for one in found):
            left_over += alone
        elif alone:
            found.append(NodeType(looks=alone))
    left_over += _strays(found)
    for node_type in found:
        node_type.count = _count(node_type)
    for look in left_over:
        likely = [one for one in found if _likely(_size(look), one)] or found
        max(likely, key=lambda one: len(one.looks)).looks.append(look)
    for look in looks:
        if look.count is None:
            # The tool's number proves no count, but tells which of several types a host is likely to be of.
            told = [one for one in found if one.count == look.tool_count] or found
            if told:
                max(told, key=lambda one: len(one.looks)).looks.append(look)
            else:
                found.append(NodeType(looks=[look]))
    return found


def _size(look: Look) -> int:
    """Return how many cards of its main kind a host shows; all it shows where their ids are not known."""
    return len(look.places()) or (look.count or 0)


def _likely(size: int, node_type: NodeType) -> bool:
    """Tell whether a host with so many cards may be one of a type."""
    return size > _LIKELY_PART * _size(node_type.looks[0])


def _home(places: frozenset, alike: int, found: list[NodeType]) -> NodeType | None:
    """Return the type with more cards that a host is one of, with cards missing: all it has sit where theirs do.

    ``alike`` hosts have cards at these very places. Two of them with half the cards or fewer are more likely another
    model (sizes of virtual machines are made so), and many of them are the norm.
    """
    for node_type in found:
        if not places or not any(places < one for one in {look.places() for look in node_type.looks}):
            continue
        other_model = alike > 1 and not _likely(len(places), node_type)
        norm = alike >= _NORM and alike > len(node_type.looks)
        if not other_model and not norm:
            return node_type
    return None


def _strays(found: list[NodeType]) -> list[Look]:
    """Take out, and return, single hosts that have all that the norm has and a card more."""
    strays = []
    for node_type in list(found):
        only = node_type.looks[0]
        norms = [
            one
            for one in found
            if len(one.looks) >= _NORM
            and one.looks[0].places() < only.places()
            and _likely(_size(one.looks[0]), node_type)
        ]
        if len(node_type.looks) == 1 and norms:
            strays.append(only)
            found.remove(node_type)
    return strays


def _count(node_type: NodeType) -> int:
    """Return the number of cards: of the main kind as the best host shows them, of others as most such hosts do."""
    best = max(_size(look) for look in node_type.looks)
    rest = Counter((look.count or 0) - best for look in node_type.looks if _size(look) == best)
    return best + min(rest, key=lambda extra: (-rest[extra], extra))


def _layout(node_type: NodeType) -> frozenset:
    """Return where cards sit on most hosts that show all of them, best of those where each tells its place."""
    full = [look for look in node_type.full() if look.places()]
    told = [look for look in full if all(card.place for card in look.own())]
    together = frozenset(place for look in full for place in look.places())
    if not told and full and len(together) <= (node_type.count or 0):
        return together  # each host lacks other places, and all are of one server model
    seen = Counter(look.places() for look in told or full)
    return min(seen, key=lambda one: (-seen[one], sorted(one))) if seen else frozenset()


def name_types(node_types: list[NodeType], taken: Iterable[str]) -> None:
    """Give each type a name of vendor, model and count that Ansible takes and nothing else has."""
    used = {"all", "ungrouped", *GROUPS, *taken}
    for node_type in node_types:
        base = _slug(node_type)
        name, number = base, 2
        while name in used:
            name, number = f"{base}_{number}", number + 1
        used.add(name)
        node_type.name = name


def _slug(node_type: NodeType) -> str:
    first = node_type.looks[0]
    models = Counter(look.model for look in node_type.looks if look.model)
    model = _words(most_frequent(models)) if models else ""
    # "NVIDIA H100" of nvidia is nvidia_h100, not nvidia_nvidia_h100.
    vendor = _words(first.vendor) or "cards"
    model = re.sub(rf"^{re.escape(vendor)}_", "", model) or _words((first.pci_id or "").partition(":")[2])
    name = "_".join(part for part in (vendor, model[:40].strip("_")) if part)
    name = name if name[0].isalpha() else f"cards_{name}"
    return name if node_type.count is None else f"{name}_x{node_type.count}"


def _words(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
