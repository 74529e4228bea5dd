# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""From what the hosts of a site show to a proposed inventory and its doubts. Pure functions.

Hosts of one node type are compared card by card. A host that differs is proposed with the type of its siblings, and
a doubt says what was seen and what the siblings have: a count is never learned from a broken machine in silence.
What nobody told is unknown and is left to a person. docs/data.md ("Survey") shows the shapes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from . import doubts as texts
from . import pci, registry, versions
from .contract import ACCELERATOR_NODES, ALL_HOSTS, GROUPS
from .model import TOOL_ABSENT, TOOL_OK
from .node_types import ANSWERED, NOT_ASKED, Card, Look, NodeType, group, look_at, most_frequent, name_types
from .slot_names import natural

SCHEMA = 1

# What hosts are for, beside having cards.
_PURPOSES = tuple(name for name in GROUPS if name not in (ALL_HOSTS, ACCELERATOR_NODES))
# What verify tolerates by default (cluster_tolerance_memory_percent).
_MEMORY_TOLERANCE = 0.10
# Names that a host gives by itself, at every look; all others have to be proven once.
_STRONG_SOURCES = ("declared", "vendor")
# Components of which a host that differs is worth a doubt; Python is the system's.
_COMPARED = tuple(one for one in versions.COMPONENTS if one != "python")


class _Doubts:
    """Collects doubts; those that differ only in their hosts become one."""

    def __init__(self) -> None:
        self.found: dict[tuple, dict] = {}

    def add(
        self,
        doubt: str,
        hosts: str | Iterable[str] = (),
        node_type: str | None = None,
        slots: Iterable[str] = (),
        seen: object = None,
        siblings: object = None,
    ) -> None:
        told = "" if seen is None else str(seen), "" if siblings is None else str(siblings)
        key = (doubt, node_type, tuple(slots), *told)
        one = self.found.setdefault(
            key,
            {
                "doubt": doubt,
                "node_type": node_type,
                "hosts": [],
                "slots": list(key[2]),
                "seen": told[0],
                "siblings": told[1],
            },
        )
        names = [hosts] if isinstance(hosts, str) else list(hosts)
        one["hosts"] += [host for host in names if host not in one["hosts"]]

    def all(self, language: str) -> list[dict]:
        order = sorted(
            self.found.values(),
            key=lambda one: (texts.ORDER[one["doubt"]], one["node_type"] or "", natural((one["hosts"] or [""])[0])),
        )
        return [texts.explain(one, language) for one in order]


# ------------------------------------------------------------------------------------------------------- comparing


class _Survey:
    """One node type compared card by card: fills ``found`` and returns the proposed values."""

    def __init__(self, node_type: NodeType, found: _Doubts, language: str) -> None:
        self.type, self.found, self.language = node_type, found, language
        self.say = texts.words(language)
        self.slots = self._slot_map()
        self.strangers = self._strangers()

    def doubt(self, name: str, hosts: str | Iterable[str], **more) -> None:
        self.found.add(name, hosts, self.type.name, **more)

    def siblings(self, host: str, value: Callable[[Look], object]) -> str:
        """Return what the other hosts have, most frequent first: "8 on gpu-01, gpu-03"; nothing where none is."""
        told: dict[str, list[str]] = {}
        for look in self.type.looks:
            seen = value(look)
            if look.host != host and seen is not None:
                told.setdefault(str(seen), []).append(look.host)
        parts = sorted(told, key=lambda one: (-len(told[one]), natural(one)))
        return "; ".join(self.say["of"].format(one, texts.listed(told[one], self.language, 3)) for one in parts[:3])

    def cards(self) -> list[tuple[Look, Card]]:
        """Return all cards of the main kind that answered."""
        return [(look, card) for look in self.type.looks for card in self._kin(look) if card.state == "ok"]

    def _kin(self, look: Look) -> list[Card]:
        return [card for card in look.own() if look.pci_id is None or card.pci_id in (look.pci_id, None)]

    def slot_of(self, card: Card) -> str:
        """Return how to call the place of a card: its slot, what siblings call its address, else the address."""
        return card.slot or self.slots.get(card.place, {}).get("label") or card.address or self.name_of(card)

    def name_of(self, card: Card) -> str:
        """Return what tells a card without an address from others of its host: its index, serial or UUID."""
        known = [] if card.index is None else [self.say["index"].format(card.index)]
        if card.serial or card.uuid:
            known.append((self.say["serial"] if card.serial else self.say["uuid"]).format(card.serial or card.uuid))
        return self.say["comma"].join(one.strip() for one in known) or self.say["unknown"]

    def slots_of(self, cards: Iterable[Card]) -> list[str]:
        """Return how to call the places of cards, SXM2 before SXM10."""
        return sorted((self.slot_of(card) for card in cards), key=natural)

    def beside(self, look: Look, card: Card) -> str:
        """Return what the siblings have at the place of a card."""

        def there(other: Look) -> str | None:
            for one in other.own():
                if (card.place and one.place == card.place) or (card.slot and one.slot == card.slot):
                    return one.model or one.pci_id if one.state in ("ok", "bus") else one.state
            return None

        return self.siblings(look.host, there)

    def _slot_map(self) -> dict[str, dict]:
        """Return place -> label, source, and how many hosts call it so, of the layout that most hosts have."""
        found = {}
        for place in sorted(self.type.layout, key=pci.sort_key):
            told: Counter = Counter(
                (card.slot, card.slot_source)
                for look in self.type.looks
                for card in look.own()
                if card.place == place and card.slot
            )
            label, source = min(told, key=lambda one: (-told[one], natural(one[0]))) if told else (None, None)
            address = next(card.address for look in self.type.full() for card in look.own() if card.place == place)
            found[place] = {"address": address, "label": label, "source": source, "hosts": told[(label, source)]}
        return found

    # ------------------------------------------------------------------------------------------------ count

    def compare_counts(self, others: list[NodeType]) -> None:
        say, mine = self.say, self.type
        if len(mine.looks) == 1:
            self.doubt("type.alone", mine.hosts)
        for look in mine.looks:
            self._count_of(look)
        if mine.count is None:
            told = sorted({str(look.tool_count) for look in mine.looks if look.tool_count is not None})
            self.doubt("count.unknown", mine.hosts, seen=texts.listed(told, self.language))
            return
        like_it = [
            other
            for other in others
            if other is not mine and other.count is not None and other.looks[0].model == mine.looks[0].model
            and other.vendor == mine.vendor and other.looks[0].pci_id == mine.looks[0].pci_id
        ]  # fmt: skip
        if like_it:
            other_counts = "; ".join(
                say["of"].format(other.count, texts.listed(other.hosts, self.language)) for other in like_it
            )
            seen = say["of"].format(mine.count, texts.listed(mine.hosts, self.language))
            self.doubt("count.several", (), seen=seen, siblings=other_counts)
        if mine.count > 1 and mine.count % 2:
            self.doubt("count.odd", (), seen=mine.count)
        self._gap()

    def _count_of(self, look: Look) -> None:
        say = self.say
        if look.count is None:
            known = self.siblings(look.host, lambda one: one.count)
            self.doubt("host.bus_unread", look.host, siblings=known)
        elif self.type.count is not None and look.count - self._extra(look) != self.type.count:
            missing = [self.slots[one]["label"] or self.slots[one]["address"] for one in self._missing(look)]
            counts = self.siblings(look.host, lambda one: None if one.count is None else say["cards"].format(one.count))
            name = "count.fewer" if look.count < self.type.count else "count.more"
            self.doubt(
                name,
                look.host,
                slots=missing if name == "count.fewer" else (),
                seen=say["cards"].format(look.count),
                siblings=counts,
            )
        named = [card for card in look.own() if card.state in ("lost", "not_reported", "bus")]
        both = look.count is not None and look.tool_count is not None
        if both and look.tool_count != look.count and not named and len(look.vendors) == 1:
            self.doubt("count.tool", look.host, seen=look.tool_count, siblings=look.count)

    def _extra(self, look: Look) -> int:
        """Return how many cards more than its siblings a host has that are doubted as strangers."""
        return len(self.strangers[look.host]) if (look.count or 0) > (self.type.count or 0) else 0

    def _missing(self, look: Look) -> list[str]:
        """Return the places of the layout that a host lacks; none where it is not that layout."""
        own = look.places()
        return [one for one in self.slots if one not in own] if own < self.type.layout else []

    def _gap(self) -> None:
        """Doubt a row of numbered slots with a hole in it: all hosts may lack the same card."""
        rows: dict[str, set[int]] = {}
        for slot in self.slots.values():
            found = re.fullmatch(r"(\D*)(\d{1,4})", str(slot["label"] or ""))
            if found and slot["source"] in _STRONG_SOURCES:
                rows.setdefault(found[1], set()).add(int(found[2]))
        for prefix, numbers in rows.items():
            holes = sorted(set(range(min(numbers), max(numbers) + 1)) - numbers)
            # Numbers far apart are no row.
            if holes and len(holes) < len(numbers):
                seen = f"{prefix}{min(numbers)} - {prefix}{max(numbers)}"
                named = texts.listed([f"{prefix}{number}" for number in holes], self.language)
                self.doubt("count.gap", (), seen=seen, siblings=named)

    # ------------------------------------------------------------------------------------------------ cards

    def compare_cards(self) -> None:
        say = self.say
        for look in self.type.looks:
            self._tools(look)
            if len(look.vendors) > 1:
                several = texts.listed((say["of"].format(n, name) for name, n in look.vendors.items()), self.language)
                self.doubt("host.several_vendors", look.host, seen=several, siblings=self.type.vendor)
            self._silent(look)
            for card in look.own():
                if card.sick:
                    self.doubt("card.sick", look.host, slots=[self.slot_of(card)], seen=card.sick)
            self._placeless(look)
            for card in self.strangers[look.host]:
                others = self.siblings(look.host, lambda one: one.model)
                self.doubt(
                    "card.stranger",
                    look.host,
                    slots=[self.slot_of(card)],
                    seen=card.model or card.pci_id,
                    siblings=others,
                )
        self._partitions()
        self._models()

    def _placeless(self, look: Look) -> None:
        """Doubt each card whose address could not be read, with the places where only the siblings show one."""
        left = sorted(self.type.layout - look.places(), key=pci.sort_key)
        having = [one.host for one in self.type.looks if left and one.places() >= set(left)]
        there, hosts = texts.listed(left, self.language, 4), texts.listed(having, self.language, 3)
        for card in look.cards:
            if not card.address:
                self.doubt(
                    "card.no_address",
                    look.host,
                    slots=[card.slot] if card.slot else (),
                    seen=self.name_of(card),
                    siblings=self.say["of"].format(there, hosts) if having and card.vendor == look.vendor else None,
                )

    def _silent(self, look: Look) -> None:
        """Doubt each card that did not answer; those that one cause silenced, such as a driver, together."""
        silent: dict[tuple[str, str], list[Card]] = {}
        for card in look.own():
            if card.state in ("lost", "not_reported") and card not in self._hanging(look):
                name = "card.lost" if card.state == "lost" else "card.silent"
                # Nothing on the bus told whose it is.
                name = "card.off_bus" if card.state == "lost" and not card.pci_id else name
                silent.setdefault((name, card.reason or card.address or self.say["no_reason"]), []).append(card)
        for (name, why), cards in silent.items():
            seen = [why, *(self._known_of(cards[0]) if len(cards) == 1 else ())]
            others = self.beside(look, cards[0])
            self.doubt(name, look.host, slots=self.slots_of(cards), seen=self.say["comma"].join(seen), siblings=others)

    def _known_of(self, card: Card) -> list[str]:
        """Return what is still known of a silent card: its last serial, and who names its slot."""
        known = [self.say["last_serial"].format(card.serial)] if card.serial else []
        slot = self.slot_of(card)
        if not card.slot and slot != card.address:
            named = [look.host for look in self.type.full() for other in look.own() if other.slot == slot]
            known.append(self.say["as_siblings"].format(texts.listed(dict.fromkeys(named), self.language, 1)))
        return known

    def _strangers(self) -> dict[str, list[Card]]:
        """Return host -> cards of the vendor that most hosts of the type have none like."""
        # What most hosts have beside their main kind belongs to the type.
        having: Counter = Counter(
            pci_id for look in self.type.looks for pci_id in {card.pci_id for card in look.own() if card.pci_id}
        )
        usual = {pci_id for pci_id, hosts in having.items() if 2 * hosts > len(self.type.looks)}
        usual |= {look.pci_id for look in self.type.looks}
        return {
            look.host: [card for card in look.own() if card.pci_id and card.pci_id not in usual]
            for look in self.type.looks
        }

    def _own_tools(self, look: Look) -> list[dict]:
        return [tool for tool in look.tools if tool.get("vendor") in (self.type.vendor, None, "")]

    def _blind(self, look: Look) -> dict | None:
        """Return the tool that is to blame for it that no card of a host answered, None where one did."""
        own = self._own_tools(look)
        if any(tool.get("state") == TOOL_OK for tool in own) or any(card.state == "ok" for card in look.own()):
            return None
        return min(own, key=lambda tool: tool.get("state") == TOOL_ABSENT, default=None)

    def _hanging(self, look: Look) -> list[Card]:
        """Return the silent cards of which a broken tool says enough: nothing else is wrong with them that is known."""
        tool = self._blind(look)
        known = (None, "hung", tool.get("reason")) if tool else ()
        return [card for card in look.own() if card.state == "not_reported" and card.reason in known]

    def _consequences(self, look: Look) -> str:
        """Return in words what is not known of a host because its tool does not answer."""
        what = {
            "hangs_cards": bool(self._hanging(look)),
            "hangs_model": look.model is None,
            "hangs_slots": any(card.state == "bus" and card.slot is None for card in look.own()),
        }
        return self.say["comma"].join(self.say[name] for name, hangs in what.items() if hangs)

    def _tools(self, look: Look) -> None:
        own, blind = self._own_tools(look), self._blind(look)
        for tool in own:
            name = str(tool.get("name") or "?")
            state = tool.get("state")
            if state == TOOL_OK or (state == TOOL_ABSENT and any(one.get("state") == TOOL_OK for one in own)):
                continue
            others = self.siblings(look.host, partial(_tool_version, name=name))
            seen = name
            if state != TOOL_ABSENT:
                said = "; ".join(str(error) for error in look.errors if str(error).startswith(name)) or name
                seen = f"{_short(said)}: {tool.get('reason') or state}"
            hanging = self._hanging(look) if tool is blind else []
            consequences = self._consequences(look) if tool is blind else ""
            if consequences:
                seen = self.say["hangs"].format(seen, consequences)
            kind = "tool.absent" if state == TOOL_ABSENT else "tool.failed"
            self.doubt(kind, look.host, slots=self.slots_of(hanging), seen=seen, siblings=others)

    def _partitions(self) -> None:
        def split(look: Look) -> str | None:
            return self.say["partitions"].format(sum(card.partitions for card in look.own()))

        usual: Counter = Counter(split(look) for look in self.type.looks)
        most = most_frequent(usual)
        for look in self.type.looks:
            if split(look) != most and any(card.state == "ok" for card in look.own()):
                self.doubt("card.partitions", look.host, seen=split(look), siblings=self.siblings(look.host, split))

    def _models(self) -> None:
        models = self.models()
        for look in self.type.looks:
            if look.model is None and self._blind(look) is None:
                ids = look.pci_id or self.say["unknown"]
                known = self.siblings(look.host, lambda one: one.model)
                self.doubt("model.unknown", look.host, seen=ids, siblings=known)
            for card in self._kin(look):
                if card.model and card.model not in models:
                    self.doubt(
                        "card.model",
                        look.host,
                        slots=[self.slot_of(card)],
                        seen=card.model,
                        siblings=self.beside(look, card) or texts.listed(models, self.language),
                    )

    def models(self) -> list[str]:
        """Return the models of the type: those that most of its hosts with a model have."""
        having = Counter(model for look in self.type.looks for model in {card.model for card in look.own()} if model)
        asked = len([look for look in self.type.looks if look.model])
        main: Counter = Counter(look.model for look in self.type.looks if look.model)
        usual = [model for model in having if 2 * having[model] > asked]
        strangers = {card.model for cards in self.strangers.values() for card in cards}
        usual = [model for model in usual if model not in strangers or len(self.type.looks) == 1]
        # On one host, or on two that do not agree, only what most cards are.
        if len(self.type.looks) == 1:
            look = self.type.looks[0]
            ids = {card.model: card.pci_id for card in look.own()}
            usual = [model for model in usual if model == look.model or ids[model] != look.pci_id]
        return sorted(usual, key=natural) or ([most_frequent(main)] if main else [])

    # ------------------------------------------------------------------------------- memory, links, slots

    def memory(self) -> tuple[int | None, str]:
        told = [(look, card) for look, card in self.cards() if card.memory_gib]
        if not told:
            return None, self.say["no_memory"]
        sizes = Counter(round(card.memory_gib or 0) for _look, card in told)
        size = min(sizes, key=lambda one: (-sizes[one], -one))
        for look in self.type.looks:
            off: dict[int, list[Card]] = {}
            for card in self._kin(look):
                if card.memory_gib and abs(card.memory_gib - size) > _MEMORY_TOLERANCE * size:
                    off.setdefault(round(card.memory_gib), []).append(card)
            for seen, cards in off.items():
                self.doubt(
                    "card.memory",
                    look.host,
                    slots=self.slots_of(cards),
                    seen=seen,
                    siblings=self.siblings(look.host, _memory),
                )
        exact = Counter(round(card.memory_gib or 0, 1) for _look, card in told if round(card.memory_gib or 0) == size)
        told_most = min(exact, key=lambda one: (-exact[one], one))
        return size, self.say["from_memory"].format(told_most, sizes[size], len(told))

    def link(self) -> dict[str, tuple[object, str]]:
        """Return variable -> (value, source) of speed and width; None where no card told it."""
        say = self.say
        cards = [(look, card) for look in self.type.looks for card in self._kin(look)]
        speeds = Counter(card.max_speed for _look, card in cards if card.max_speed)
        widths = Counter(card.max_width for _look, card in cards if card.max_width)
        speed = min(speeds, key=lambda one: (-speeds[one], -one)) if speeds else None
        width = min(widths, key=lambda one: (-widths[one], -one)) if widths else None
        runs = Counter(card.width for _look, card in cards if card.width)
        usual = min(runs, key=lambda one: (-runs[one], -one)) if runs else None
        if usual and width and usual < width:
            self.doubt("link.narrow", (), seen=usual, siblings=width)
        self._links(usual)
        told = len(cards)
        return {
            "cluster_accelerator_link_speed_gts": (
                int(speed) if speed and speed == int(speed) else speed,
                say["from_max_speed"].format(speeds[speed], told) if speed else say["no_link"],
            ),
            "cluster_accelerator_link_width": (
                width,
                say["from_max_width"].format(widths[width], told, runs[width]) if width else say["no_link"],
            ),
        }

    def _links(self, usual: int | None) -> None:
        """Doubt links of another width than most have, and those that a bridge above holds down."""
        say = self.say
        for look in self.type.looks:
            odd: dict[int, list[Card]] = {}
            held: dict[str, list[Card]] = {}
            for card in self._kin(look):
                if usual and card.width and card.width != usual:
                    odd.setdefault(card.width, []).append(card)
                elif card.limited_by:
                    held.setdefault(card.limited_by, []).append(card)
            for width, cards in odd.items():
                seen, others = say["lanes"].format(width), self.siblings(look.host, partial(_lanes, say=say))
                self.doubt("link.width", look.host, slots=self.slots_of(cards), seen=seen, siblings=others)
            for bridge, cards in held.items():
                others = self.siblings(look.host, partial(_limits, say=say))
                self.doubt("link.limited", look.host, slots=self.slots_of(cards), seen=bridge, siblings=others)

    def devices_per_slot(self) -> int:
        """Return how many devices sit on one board: where every serial of a host is shared by as many."""
        told: Counter = Counter()
        for look in self.type.looks:
            boards: dict[str, list[Card]] = {}
            for card in look.own():
                if card.serial:
                    boards.setdefault(card.serial, []).append(card)
            sizes = {len(cards) for cards in boards.values()}
            one_place = all(len({card.slot for card in cards}) == 1 for cards in boards.values())
            told[sizes.pop() if len(sizes) == 1 and one_place else 1] += 1
        usual = min(told, key=lambda one: (-told[one], one)) if told else 1
        return usual if usual in (2, 4) else 1

    def compare_slots(self) -> None:
        for look in self.type.looks:
            own = look.places()
            strange = sorted(own - self.type.layout, key=pci.sort_key)
            # A card that is only missing is doubted as such.
            if strange and self.type.layout:
                missing = sorted(self.type.layout - own, key=pci.sort_key)
                seen, wanted = (texts.listed(one, self.language, 4) for one in (strange, missing))
                self.doubt("layout.differs", look.host, seen=seen, siblings=wanted)
            unnamed: list[Card] = []
            weak: dict[str, list[str]] = {}
            for card in look.own():
                known = self.slots.get(card.place)
                if card.state not in ("ok", "bus"):
                    continue  # told of as lost or silent
                if card.slot is None:
                    unnamed.append(card)
                elif card.slot_source not in _STRONG_SOURCES:
                    weak.setdefault(str(card.slot_source), []).append(card.slot)
                if known and card.slot and known["label"] and card.slot != known["label"]:
                    others = self.siblings(look.host, partial(_label_at, place=card.place))
                    self.doubt("slot.differs", look.host, slots=[card.address], seen=card.slot, siblings=others)
            if unnamed and self._blind(look) is None:
                places = [card.place for card in unnamed if card.place]
                others = self.siblings(look.host, partial(_labels_at, places=places, language=self.language))
                named = [card.address or self.name_of(card) for card in unnamed]
                self.doubt("slot.none", look.host, slots=named, siblings=others)
            for source, slots in weak.items():
                self.doubt("slot.weak", look.host, slots=sorted(slots, key=natural), seen=source)

    # -------------------------------------------------------------------------------------------- versions

    def compare_versions(self) -> list[dict]:
        """Return what ``versions.odd`` says of the hosts that answered, with a doubt for each that differs."""
        answers = {look.host: _version_rows(look) for look in self.type.looks}
        entries = versions.odd(answers)
        groups = versions.grouped(answers)
        told = []
        for entry in entries:
            rows = groups[entry["component"], entry["name"]]
            shown = _told(rows, entry["not_told"], self.say, self.language)
            told.append({"component": entry["component"], "name": entry["name"], "seen": shown})
            if entry["component"] not in _COMPARED:
                continue
            what = " ".join(part for part in (entry["component"], entry["name"]) if part)
            for row in entry["odd"]:
                said, wanted = (one or self.say["nobody"] for one in (row["version"], row["expected"]))
                seen = f"{what} {said}"
                if entry["component"] == "os":
                    seen, wanted = f"os {_system(answers[row['host']])}", f"{entry['name']} {wanted}"
                self.doubt(
                    "version.differs",
                    row["host"],
                    slots=[row["subject"]] if row["subject"] and entry["component"] == "firmware" else (),
                    seen=seen,
                    siblings=wanted,
                )
            # Where all that tell one tell the same, only the others are in doubt, and told as such.
            known = [row["version"] for row in rows if row["version"] or not row["source"]]
            if entry["basis"] == versions.NO_MAJORITY and len(answers) > 1 and not versions.majority(known)[0]:
                self.doubt("version.no_majority", (), seen=f"{what}: {shown}")
        return told

    def driver_version(self) -> tuple[str | None, str]:
        """Return the driver version of most hosts, and where it comes from."""
        told = []
        for look in self.type.looks:
            own = {card.driver for card in look.own() if card.driver}
            if len(own) == 1:
                told.append(own.pop())
        agreed, version = versions.majority(told) if told else (False, None)
        if not agreed or version is None:
            return None, self.say["no_driver"]
        alike = len([one for one in told if versions.same_version(one, version)])
        return version, self.say["from_versions"].format(alike, len(self.type.looks))


def _short(text: object) -> str:
    return " ".join(str(text).split())[:300]


def _usual(values: Iterable) -> object:
    """Return the most frequent value, None of none."""
    seen = Counter(values)
    return min(seen, key=lambda one: (-seen[one], natural(one))) if seen else None


def _memory(look: Look) -> object:
    return _usual(round(card.memory_gib) for card in look.own() if card.memory_gib)


def _lanes(look: Look, say: Mapping) -> str | None:
    lanes = _usual(card.width for card in look.own() if card.width)
    return None if lanes is None else say["lanes"].format(lanes)


def _limits(look: Look, say: Mapping) -> str:
    held = [card.limited_by for card in look.own() if card.limited_by]
    return str(held[0]) if held else say["nobody"]


def _label_at(look: Look, place: str) -> str | None:
    return next((card.slot for card in look.own() if card.place == place and card.slot), None)


def _labels_at(look: Look, places: list[str], language: str) -> str | None:
    labels = [_label_at(look, place) for place in places]
    return texts.listed((label or "-" for label in labels), language) if any(labels) else None


def _tool_version(look: Look, name: str) -> str | None:
    for tool in look.tools:
        if tool.get("name") == name and tool.get("state") == TOOL_OK:
            return f"{name} {tool.get('version') or ''}".strip()
    return None


def _version_rows(look: Look) -> dict:
    """Return the rows of version_info; where it did not answer, the driver that the cards tell."""
    if look.versions:
        return look.versions
    driver = _usual(card.driver for card in look.own() if card.driver)
    if driver is None:
        return {}
    vendor = registry.VENDORS.get(look.vendor)
    names = [one.name for one in vendor.versions if one.component == "driver_kernel"] if vendor else []
    name = names[0] if names else look.vendor
    row = {"component": "driver_kernel", "name": name, "subject": None, "version": driver, "source": "cards"}
    return {"versions": [row]}


def _system(answer: Mapping) -> str:
    """Return "ubuntu 22.04" of the answer of a host."""
    rows = [row for row in versions.rows_of(answer) or [] if row["component"] == "os"]
    return " ".join(part for row in rows[:1] for part in (row["name"], row["version"]) if part)


def _told(rows: Sequence[Mapping], not_told: Sequence[str], say: Mapping, language: str) -> str:
    """Return "570.86.15 on gpu-01, gpu-02; 570.124 on gpu-03; unknown on gpu-04" of one component."""
    told: dict[str, list[str]] = {}
    known = [(row["version"] or say["nobody"], row["host"]) for row in rows if row["version"] or not row["source"]]
    for version, host in [*known, *((say["unknown"], host) for host in not_told)]:
        if host not in told.setdefault(version, []):
            told[version].append(host)
    order = sorted(told, key=lambda one: (-len(told[one]), natural(one)))
    return "; ".join(say["of"].format(one, texts.listed(told[one], language, 3)) for one in order)


# ------------------------------------------------------------------------------------------------------ the whole


def propose(
    observations: Mapping[str, Mapping | None],
    not_asked: Sequence[str] = (),
    groups: Mapping[str, Sequence[str]] | None = None,
    declared: Mapping | None = None,
    language: str = "en",
) -> dict:
    """Return the proposed inventory and its doubts as plain data.

    ``observations`` is host -> what ``look_at`` takes, of every host that was to be asked; ``not_asked`` are the
    others of the inventory. ``groups`` are the groups of the surveyed inventory, ``declared`` what it says of the
    whole site. Every host is in ``hosts`` of the result, and each with cards in exactly one of ``node_types``.
    """
    groups, declared = groups or {}, declared or {}
    looks = {str(host): look_at(str(host), told) for host, told in observations.items()}
    for host in not_asked:
        looks.setdefault(str(host), Look(str(host), NOT_ASKED))
    looks = dict(sorted(looks.items(), key=lambda one: natural(one[0])))
    found = _Doubts()
    node_types = group(look for look in looks.values() if look.state == ANSWERED)
    name_types(node_types, looks)
    in_type = {look.host: node_type.name for node_type in node_types for look in node_type.looks}
    for look in looks.values():
        _doubt_host(look, look.host in in_type, groups, found, language)
    _doubt_twins(looks.values(), in_type, found, language)
    proposed = {one.name: _type(one, node_types, found, language) for one in node_types}
    site = _site(looks, node_types, groups, declared, found, language)
    return {
        "schema": SCHEMA,
        "language": language,
        "hosts": {
            host: {
                "state": look.state,
                "why": look.why,
                "node_type": in_type.get(host),
                "cards": look.count,
                "answered": look.tool_count,
                "groups": [
                    name
                    for name in GROUPS
                    if name not in (ALL_HOSTS, ACCELERATOR_NODES) and host in groups.get(name, ())
                ],
            }
            for host, look in looks.items()
        },
        "node_types": proposed,
        "site": site,
        "doubts": found.all(language),
    }


def _doubt_host(look: Look, typed: bool, groups: Mapping, found: _Doubts, language: str) -> None:
    if look.state != ANSWERED:
        found.add(f"host.{look.state}", look.host, seen=look.why)
        return
    if not typed and look.count is None:
        found.add("host.bus_unread", look.host)
    elif not typed and look.host in groups.get(ACCELERATOR_NODES, ()):
        found.add("host.no_cards", look.host)
    elif not typed and not any(look.host in groups.get(name, ()) for name in _PURPOSES):
        found.add("host.no_group", look.host, seen=texts.listed(_PURPOSES, language))
    for text in dict.fromkeys(look.strange):
        found.add("value.strange", look.host, seen=text)
    # What a tool said that failed is told with it.
    failed = tuple(str(tool.get("name")) for tool in look.tools if tool.get("state") not in (TOOL_OK, TOOL_ABSENT))
    for error in dict.fromkeys(str(one) for one in look.errors):
        if not (typed and failed and error.startswith(failed)):
            found.add("host.unread", look.host, seen=_short(error))


def _doubt_twins(looks: Iterable[Look], in_type: Mapping, found: _Doubts, language: str) -> None:
    """Doubt serials and UUIDs that more than one place tells; devices of one board share its serial rightly."""
    say = texts.words(language)
    for kind in ("serial", "uuid"):
        told: dict[tuple, list[tuple[Look, Card]]] = {}
        for look in looks:
            for card in look.cards:
                value = getattr(card, kind)
                if value:
                    told.setdefault((card.vendor, value), []).append((look, card))
        for (_vendor, value), places in told.items():
            hosts = list(dict.fromkeys(look.host for look, _card in places))
            if len(hosts) == 1 and (len(places) == 1 or (kind == "serial" and _boards(places[0][0], value))):
                continue
            found.add(
                "card.twin",
                hosts,
                in_type.get(hosts[0]),
                slots=[one for one in (card.slot or card.address for _look, card in places) if one],
                seen=say[kind].format(value),
            )


def _boards(look: Look, serial: str) -> bool:
    """Tell whether a shared serial is that of a board: as many devices share it as every other of the host."""
    sizes = Counter(card.serial for card in look.cards if card.serial)
    return sizes[serial] in (2, 4) and len(set(sizes.values())) == 1


def _type(node_type: NodeType, others: list[NodeType], found: _Doubts, language: str) -> dict:
    """Return one node type with its values, each with its source, and what nobody told."""
    survey = _Survey(node_type, found, language)
    say = survey.say
    survey.compare_counts(others)
    survey.compare_cards()
    survey.compare_slots()
    memory = survey.memory()
    link = survey.link()
    told = survey.compare_versions()
    driver = survey.driver_version()
    models = survey.models()
    sources = texts.listed(
        dict.fromkeys(card.source for _look, card in survey.cards() if card.source), language, most=2
    )
    having = len([look for look in node_type.looks if look.model])
    from_tool = say["from_last"].format(having, len(node_type.looks))
    if sources:
        from_tool = say["from_tool"].format(sources, having, len(node_type.looks))
    counts = Counter(look.count for look in node_type.looks)
    shown = "; ".join(
        say["of"].format(
            say["unknown"] if count is None else count,
            texts.listed([look.host for look in node_type.looks if look.count == count], language, 3),
        )
        for count, _hosts in counts.most_common()
    )
    ids = sorted({look.pci_id for look in node_type.looks if look.pci_id})
    values: dict[str, tuple[object, str]] = {
        "cluster_node_type": (node_type.name, say["from_name"]),
        "cluster_accelerator_vendor": (
            node_type.vendor,
            say["from_pci"].format(texts.listed(ids, language)) if ids else sources or say["unknown"],
        ),
        "cluster_accelerator_models": (
            models or None,
            from_tool if models else say["no_model"],
        ),
        "cluster_accelerator_count": (
            node_type.count,
            say["from_bus"].format(shown) if node_type.count is not None else say["no_count"],
        ),
        "cluster_accelerator_memory_gib": memory,
        **link,
    }
    boards = survey.devices_per_slot()
    if boards > 1:
        values["cluster_accelerator_devices_per_slot"] = (boards, say["from_board"].format(boards))
    values["cluster_driver_version"] = driver
    values["cluster_fabric_port_count"] = (None, say["no_ports"])
    values["cluster_fabric_port_gbps"] = (None, say["no_ports"])
    ports: Counter = Counter()
    for _look, card in survey.cards():
        for kind, number in card.ports.items():
            ports[(kind, number)] += 1
    partitions = Counter(card.partitions for _look, card in survey.cards() if card.partitions)
    return {
        "hosts": node_type.hosts,
        "pci_ids": ids,
        "values": {
            name: {"value": value, "source": source} for name, (value, source) in values.items() if value is not None
        },
        "unknown": {name: source for name, (value, source) in values.items() if value is None},
        "slots": list(survey.slots.values()),
        "slot_hosts": len(node_type.looks),
        "versions": told,
        "ports": [say["link_kind"].format(kind, number) for (kind, number), _cards in ports.most_common(3)],
        "partitions": [sum(size * cards for size, cards in partitions.items()), sum(partitions.values())],
    }


def _scenario(looks: Mapping, node_types: list[NodeType], groups: Mapping, say: Mapping) -> tuple[str, str]:
    """Return what the site is likely to be for, and why: several kinds of cards serve several ends, gateways serve."""
    nodes = sum(len(one.looks) for one in node_types)
    kinds = len({(one.vendor, one.looks[0].model or one.looks[0].pci_id) for one in node_types})
    if nodes == 1 and len(looks) == 1:
        return "single_node", say["from_scenario"].format(nodes)
    if kinds > 1:
        return "mixed", say["from_scenario_kinds"].format(nodes, kinds)
    if any(host in looks for host in groups.get("gateway_nodes", ())):
        return "inference", say["from_scenario_gateways"].format(nodes)
    return "multi_node", say["from_scenario"].format(nodes)


def _site(
    looks: Mapping, node_types: list[NodeType], groups: Mapping, declared: Mapping, found: _Doubts, language: str
) -> dict:
    say = texts.words(language)
    values: dict[str, tuple[object, str]] = {}
    name = declared.get("cluster_name")
    values["cluster_name"] = (name or "cluster", say["from_inventory"] if name else say["from_default"])
    scenario = declared.get("cluster_scenario")
    if scenario:
        values["cluster_scenario"] = (scenario, say["from_inventory"])
    else:
        values["cluster_scenario"] = _scenario(looks, node_types, groups, say)
    values["cluster_language"] = (language, say["from_run"])
    unknown = {}
    for variable in ("cluster_networks", "cluster_vendors"):
        if declared.get(variable):
            values[variable] = (declared[variable], say["from_inventory"])
    if "cluster_networks" not in values:
        unknown["cluster_networks"] = say["no_networks"]
    clocks = Counter(look.clock for look in looks.values() if look.clock)
    if declared.get("cluster_time_servers"):
        values["cluster_time_servers"] = (declared["cluster_time_servers"], say["from_inventory"])
    else:
        used = texts.listed((clock for clock, _hosts in clocks.most_common()), language) or say["nobody"]
        unknown["cluster_time_servers"] = say["no_time_servers"].format(used)
    zones = Counter(look.zone for look in looks.values() if look.zone)
    if zones:
        zone = most_frequent(zones)
        values["cluster_time_zone"] = (zone, say["from_hosts"].format(zones[zone], sum(zones.values())))
        for look in looks.values():
            if look.zone and look.zone != zone:
                found.add("zone.differs", look.host, seen=look.zone, siblings=zone)
    else:
        unknown["cluster_time_zone"] = say["no_zone"]
    return {
        "values": {variable: {"value": value, "source": source} for variable, (value, source) in values.items()},
        "unknown": unknown,
    }
