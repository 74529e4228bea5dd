# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Which card sits in which slot: names from four sources, the record of a host, records compared.

A slot is a place, a card is a thing with an identity. A card is the same card where its UUID is the
same; where a side has none, its serial; where a side has neither, its place. Never its index, and never
its address alone while it has anything better: both change from boot to boot.

A board may carry two or four devices (chips, each with its own PCI function and UUID) that share its
serial. Devices are compared one by one; what moved, came or went together is told as one board.

docs/data.md shows the shapes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from . import pci
from .model import to_int
from .record import kind_of
from .slot_names import declared_slots, device_of, natural, source_rank

SCHEMA = 1

# What a comparison lists, in the order in which it is told.
KINDS = ("missing", "new", "moved", "swapped", "replaced", "changed", "unplaced")

# Why a card is not present: it is on the bus but dead, it is there but its tool gave no answer for it,
# something is there that does not say which card it is, nothing is there, nobody could look.
LOST = "lost"
NOT_REPORTED = "not_reported"
NOT_IDENTIFIED = "not_identified"
GONE = "gone"
NOT_SEEN = "not_seen"


def apply_declared(observation: dict, declared: dict | None) -> None:
    """Put a declared map over the slot names of an observation that was made without it.

    What was there becomes a candidate; a name that the map gives to one board is taken from others.
    """
    known = declared_slots(declared)
    entries = [*observation.get("devices", []), *observation.get("unanswered", [])]
    holders: dict[str, set] = {}
    named: dict[int, str] = {}
    for entry in entries:
        address = _plain_address(entry) or ""
        label = known.get(address) or known.get(device_of(address))
        if label:
            named[id(entry)] = label
            holders.setdefault(label, set()).update({device_of(address), entry.get("serial") or device_of(address)})
    for entry in entries:
        old = entry.get("slot") or {}
        mine = {device_of(_plain_address(entry) or ""), entry.get("serial")}
        label = named.get(id(entry))
        if label is None and mine & holders.get(old.get("label") or "", mine):
            continue
        losers = [{"label": old["label"], "source": old.get("source")}] if old.get("label") not in (None, label) else []
        losers += [one for one in old.get("candidates") or [] if one.get("label") != label]
        entry["slot"] = {"label": label, "source": "declared" if label else None, "candidates": losers}


# ---------------------------------------------------------------------------------------------------
# The record of a host
# ---------------------------------------------------------------------------------------------------


def build_record(observation: dict, host: str, at: str, previous: dict | None = None) -> dict:
    """Return the slot record of a host from what it shows and from what was recorded before.

    ``observation`` has the shape of ``model.Observation``. A card that was recorded and is not seen any more
    stays with ``present: false``, its last identity and the reason as ``state``, until another card sits in its slot.
    One that is seen elsewhere on the host is kept only there. One that answers where it was, named by a lesser source
    than before, keeps its name. A record of another host (a cloned disk) is no record of this one.
    """
    earlier = cards(previous) if previous and previous.get("host") == host else []
    shown = [_shown(host, device) for device in observation.get("devices", [])]
    silent = [_shown(host, entry, entry.get("state") or LOST) for entry in observation.get("unanswered", [])]

    pairs, earlier, _unused = _pair(earlier, shown)
    _keep_names(pairs, shown)
    # A device without any identity where a card with one was known, or with one of another kind (the serial is gone,
    # and a chip id is told instead): its tool is gone or sick. Not proof of another card, nor of the same one.
    for spot in list(shown):
        if not any(spot is now for _unused, now in pairs):
            match = _place_match(spot, earlier)
            if match and not match.anonymous and _no_kind_in_common(match, spot) and _models_agree(match, spot):
                spot.card.update(uuid=None, serial=None, identity="address", present=False, state=NOT_IDENTIFIED)
                shown.remove(spot)
                silent.append(spot)

    # What did not answer is known by what its tool last said of it, else by its place.
    known, earlier, _unused = _pair(earlier, [spot for spot in silent if not spot.anonymous])
    for exact in (True, False):
        for spot in silent:
            if spot.anonymous and not any(spot is one for _unused, one in known):
                match = _place_match(spot, earlier, exact)
                if match is not None:
                    earlier = [one for one in earlier if one is not match]
                    known.append((match, spot))
    for before, spot in known:
        _remember(spot, before)

    kept = [*shown, *silent]
    stayed = {id(now) for before, now in [*pairs, *known] if before.slot == now.slot}
    newcomers = [now for now in kept if id(now) not in stayed and (now.present or not now.anonymous)]
    for spot in earlier:
        if spot.slot is None and spot.anonymous:
            continue  # only an address was known of it, and addresses change: nothing to remember it by
        others = [now for now in newcomers if now.slot == spot.slot and (not spot.serial or now.serial != spot.serial)]
        if spot.slot is None or not others:
            kept.append(_Spot(host, spot.slot, dict(spot.card, present=False, state=_absence(observation, spot))))

    kept.sort(key=lambda spot: (_address_key(spot.card), str(spot.uuid or "")))
    # A UUID that several cards show names none of them: a damaged answer must not make a record that is none.
    told = Counter(spot.uuid for spot in kept)
    for spot in kept:
        if spot.uuid is not None and told[spot.uuid] > 1:
            spot.card.update(
                uuid=None, identity="address" if spot.card["identity"] == "uuid" else spot.card["identity"]
            )
    record: dict = {
        "schema": SCHEMA,
        "host": host,
        "observed_at": at,
        "tool": _tool(observation),
        "slots": {},
        "unplaced": [spot.card for spot in kept if spot.slot is None],
    }
    for spot in kept:
        if spot.slot is not None:
            record["slots"].setdefault(spot.slot, []).append(spot.card)
    return record


def _absence(observation: dict, spot: _Spot) -> str:
    """Return why a card that is not seen is not present: only a bus that was read tells that nothing is there."""
    looked = observation.get("bus_count", 0) is not None
    return GONE if looked or spot.card.get("state") == GONE else NOT_SEEN


def _shown(host: str, entry: dict, state: str | None = None) -> _Spot:
    slot = entry.get("slot") or {}
    card = {
        "serial": entry.get("serial") or None,
        "uuid": entry.get("uuid") or None,
        "identity": entry.get("identity") or "address",
        "vendor": entry.get("vendor") or None,
        "model": entry.get("model") or None,
        "firmware_version": entry.get("firmware_version") or None,
        "pci_address": _plain_address(entry),
        "slot_source": slot.get("source"),
        "candidates": slot.get("candidates") or [],
        "present": state is None,
        "state": state,
    }
    return _Spot(host, slot.get("label") or None, card)


def _keep_names(pairs: list[tuple[_Spot, _Spot]], shown: list[_Spot]) -> None:
    """Give cards that stayed at their address the slot they had, where only a lesser source names it now.

    The tool's full answer was damaged, and a form without the vendor's number made up for it: what the kernel calls
    "7" is still SXM5. A name that was declared and is not any more is given up, and none is given to two places.
    """
    renamed = [
        (before, now)
        for before, now in pairs
        if now.address
        and now.address == before.address
        and before.card.get("slot_source") != "declared"
        and source_rank(now.card["slot_source"]) > source_rank(before.card.get("slot_source"))
    ]
    taken = {spot.slot for spot in shown if not any(spot is now for _unused, now in renamed)}
    for before, now in renamed:
        if before.slot in taken:
            continue
        told = [{"label": now.slot, "source": now.card["slot_source"]}] if now.slot not in (None, before.slot) else []
        others = [one for one in now.card["candidates"] if one.get("label") != before.slot]
        now.slot = before.slot
        now.card.update(slot_source=before.card.get("slot_source"), candidates=[*told, *others])


def _remember(spot: _Spot, before: _Spot) -> None:
    """Fill in what is known from before of a card that does not answer."""
    for key in ("serial", "uuid", "model", "firmware_version"):
        spot.card[key] = spot.card.get(key) or before.card.get(key)
    spot.card["identity"] = before.card.get("identity") or spot.card["identity"]
    if spot.slot is None:
        spot.slot = before.slot
        spot.card["slot_source"] = before.card.get("slot_source")


def _plain_address(entry: dict) -> str | None:
    address = entry.get("pci_address")
    return pci.normalise(str(address)) if address else None


def _address_key(card: dict) -> tuple:
    try:
        return pci.sort_key(pci.normalise(card.get("pci_address") or "") or "ffffffff:ff:1f.7")
    except ValueError:
        return (0,)


def _place_match(spot: _Spot, earlier: list[_Spot], exact: bool = False) -> _Spot | None:
    """Return the earlier card that sat where ``spot`` is: same slot and address, else (not exact) either.

    An address counts only where no slot contradicts it: a lost card's neighbours may be renumbered.
    """
    same_slot = [one for one in earlier if spot.slot is not None and one.slot == spot.slot]
    same_address = [one for one in earlier if one.address and one.address == spot.address]
    both = [one for one in same_slot if one in same_address]
    if both or exact:
        return both[0] if both else None
    loose = same_slot or [one for one in same_address if spot.slot is None or one.slot is None]
    return loose[0] if loose else None


def _tool(observation: dict) -> dict:
    """Return name and version of the tool that answered, else of the first that was asked."""
    tools = observation.get("tools") or []
    answered = [tool for tool in tools if tool.get("state") == "ok"]
    for tool in answered or tools:
        return {"name": tool.get("name"), "version": tool.get("version")}
    return {"name": "sysfs", "version": None}


_TEXTS = ("serial", "uuid", "pci_address")
_OPTIONAL_TEXTS = ("identity", "vendor", "model", "firmware_version", "slot_source", "state")


def problems(body: dict) -> list[tuple[tuple, str]]:
    """Return what makes a body no slot record: (place inside it, sentence)."""
    found: list[tuple[tuple, str]] = []
    wanted = (("host", str), ("observed_at", str), ("tool", dict), ("slots", dict), ("unplaced", list))
    for key, kind in wanted:
        if key not in body:
            found.append(((), f"the key {key!r} is missing"))
        elif not isinstance(body[key], kind):
            found.append(((key,), f"{key!r} must be {kind_of(kind())}, this is {kind_of(body[key])}"))
    if found:
        return found
    for label, entries in body["slots"].items():
        if not isinstance(entries, list):
            found.append((("slots", label), f"slot {label!r} must be a list of cards, this is {kind_of(entries)}"))
            continue
        for number, card in enumerate(entries):
            found += [(("slots", label, number, *where), text) for where, text in _card_problems(card)]
    for number, card in enumerate(body["unplaced"]):
        found += [(("unplaced", number, *where), text) for where, text in _card_problems(card)]
    return found or _twice(body)


def _twice(body: dict) -> list[tuple[tuple, str]]:
    """Return the chips that a record has in two places: one of them is wrong, and nothing tells which."""
    places: list[tuple[tuple, str, dict]] = []
    for label, here in body["slots"].items():
        places += [(("slots", label, number), label, card) for number, card in enumerate(here)]
    places += [(("unplaced", number), "unplaced", card) for number, card in enumerate(body["unplaced"])]
    seen: dict[str, str] = {}
    found: list[tuple[tuple, str]] = []
    for where, place, card in places:
        uuid = card["uuid"]
        if uuid in seen:
            found.append(((*where, "uuid"), f"{uuid} is in {seen[uuid]} already; a chip is in one place"))
        elif uuid is not None:
            seen[uuid] = place
    return found


def check(body: object, name: str, host: str) -> None:
    """Refuse data that is no slot record of ``host``; ValueError names it as ``name``, and the place."""
    if not isinstance(body, dict):
        raise ValueError(f"{name} must be an object, this is {kind_of(body)}")
    if isinstance(body.get("schema"), bool) or body.get("schema") != SCHEMA:
        raise ValueError(f"{name} has schema {body.get('schema')!r}; this version reads {SCHEMA}")
    for where, sentence in problems(body):
        raise ValueError(f"{name} is not valid: {' '.join([*map(str, where), sentence])}")
    if body["host"] != host:
        raise ValueError(f"{name} is that of host {body['host']}, not of {host}")


def _card_problems(card: object) -> list[tuple[tuple, str]]:
    if not isinstance(card, dict):
        return [((), f"a card must be an object, this is {kind_of(card)}")]
    found: list[tuple[tuple, str]] = []
    for key in _TEXTS:
        if key not in card:
            found.append(((), f"a card's key {key!r} is missing (null stands for none)"))
    for key in (*_TEXTS, *_OPTIONAL_TEXTS):
        value = card.get(key)
        if value is not None and not isinstance(value, str):
            found.append(((key,), f"{key!r} must be a text or null, this is {kind_of(value)}"))
        elif value == "":
            found.append(((key,), f"{key!r} is empty (null stands for none)"))
    if not isinstance(card.get("present", True), bool):
        found.append((("present",), f"'present' must be true or false, this is {kind_of(card['present'])}"))
    address = card.get("pci_address")
    if isinstance(address, str) and address:
        try:
            pci.normalise(address)
        except ValueError as exc:
            found.append((("pci_address",), str(exc)))
    return found


# ---------------------------------------------------------------------------------------------------
# Records compared
# ---------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Spot:
    """One card where one record puts it."""

    host: str
    slot: str | None
    card: dict

    @property
    def place(self) -> tuple[str, str | None]:
        return (self.host, self.slot)

    @property
    def uuid(self) -> str | None:
        return self.card.get("uuid")

    @property
    def serial(self) -> str | None:
        return self.card.get("serial")

    @property
    def address(self) -> str | None:
        return _plain_address(self.card)

    @property
    def anonymous(self) -> bool:
        return not self.uuid and not self.serial

    @property
    def present(self) -> bool:
        return self.card.get("present") is not False

    @property
    def name(self) -> str:
        """Return the identity that cards are looked up by."""
        return f"uuid {self.uuid}" if self.uuid else f"serial {self.serial}"


def cards(record: dict | None, host: str | None = None) -> list[_Spot]:
    """Return every card of a record where it sits, the unplaced ones with slot None."""
    if not record:
        return []
    name = host or record.get("host") or ""
    placed = [_Spot(name, label, card) for label, entries in record["slots"].items() for card in entries]
    return placed + [_Spot(name, None, card) for card in record["unplaced"]]


Pairs = list  # of (before, now)


def _pair(before: list[_Spot], now: list[_Spot]) -> tuple[Pairs, list[_Spot], list[_Spot]]:
    """Find each card of ``before`` in ``now``; return pairs and what is left over on either side.

    1. by UUID; 2. by serial, where a side has no UUID (another tool answered this time); 3. by serial, slot
    and address, where the UUIDs differ: a tool that writes the UUID another way, not another board;
    4. without any identity, by slot, and 5. by address: the best there is for such a card.
    """
    pairs: Pairs = []
    stages: list[tuple[Callable, Callable]] = [
        (lambda one: one.uuid, lambda old, new: True),
        (lambda one: one.serial, lambda old, new: not (old.uuid and new.uuid)),
        (lambda one: one.serial and one.slot and (one.place, one.serial, one.address), lambda old, new: True),
        (lambda one: one.anonymous and one.slot and one.place, _models_agree),
        (lambda one: one.anonymous and one.address and (one.host, one.address), _models_agree),
    ]
    for key, allowed in stages:
        waiting: dict[object, list[_Spot]] = {}
        for new in now:
            if key(new):
                waiting.setdefault(key(new), []).append(new)
        # The nearest first, so that two equal names are not crossed.
        for near in (2, 1, 0):
            for old in before:
                rest = waiting.get(key(old)) if key(old) else None
                match = next((new for new in rest or () if _near(old, new) >= near and allowed(old, new)), None)
                if match is not None and rest is not None:
                    rest.remove(match)
                    pairs.append((old, match))
            done = {id(old) for old, _unused in pairs}
            before = [old for old in before if id(old) not in done]
        done = {id(new) for _unused, new in pairs}
        now = [new for new in now if id(new) not in done]
    return pairs, before, now


def _same_identity(old: _Spot, new: _Spot) -> bool:
    if old.uuid and new.uuid:
        return old.uuid == new.uuid
    return bool(old.serial) and old.serial == new.serial


def _near(old: _Spot, new: _Spot) -> int:
    if old.place != new.place:
        return 0
    return 2 if old.address == new.address else 1


def _no_kind_in_common(old: _Spot, new: _Spot) -> bool:
    """Tell whether two cards have no kind of identity that both of them tell."""
    return not (old.uuid and new.uuid) and not (old.serial and new.serial)


def _models_agree(old: _Spot, new: _Spot) -> bool:
    models = {old.card.get("model"), new.card.get("model")} - {None}
    return len(models) < 2


@dataclass
class Difference:
    """One difference between baseline and record, the same shape for every kind.

    ``from_*`` is the place in the baseline (None for a new card), ``to_*`` the place now (None for a
    missing card); both are the same for replaced and changed cards. ``old`` and ``new`` are boards as the
    baseline and the record know them: for moved and changed ones the same board twice, for swapped ones
    the board that was in the first place and the one that is there now.
    ``reason`` tells missing cards apart (lost, not_reported, not_identified, gone), and odd ones:
    ``duplicate`` (a new card that another place shows too), ``baseline_outdated`` (a moved card that
    another host's baseline already has). ``fields`` names what changed.
    """

    from_host: str | None = None
    from_slot: str | None = None
    to_host: str | None = None
    to_slot: str | None = None
    old: dict | None = None
    new: dict | None = None
    reason: str | None = None
    fields: list[str] = field(default_factory=list)


Board = list  # of (before or None, now or None)


def compare(baseline: dict | None, record: dict) -> dict[str, list[dict]]:
    """Return what differs on one host judged alone, by kind: see ``KINDS`` and ``Difference``."""
    host = record["host"]
    return compare_cluster({host: baseline}, {host: record})[host]


def compare_cluster(
    baselines: dict[str, dict | None], records: dict[str, dict | None]
) -> dict[str, dict[str, list[dict]]]:
    """Return what differs on each host that has a record, all hosts judged together.

    A card in exactly one kind, besides ``changed`` and ``unplaced``, which may come on top:

    - moved: it is present, in another place than its baseline says;
    - swapped: two boards moved, each into the place of the other;
    - missing: it is in the baseline of a host that was observed, and present on no observed host;
    - new: it is present and in nobody's baseline;
    - replaced: a missing one of which nothing is left, and a new one in its slot, taken together;
    - changed: the same card with another firmware, or that tells its identity another way;
    - unplaced: it is present and nobody can say in which slot.

    A host without a record was not observed: its cards are not missing, and one of them that shows up
    elsewhere has moved. A difference that concerns two observed hosts is listed under both.
    """
    observed = {host for host, record in records.items() if record}
    before = [spot for host, baseline in sorted(baselines.items()) for spot in cards(baseline, host)]
    everything = [spot for host, record in sorted(records.items()) for spot in cards(record, host)]
    now = [spot for spot in everything if spot.present]
    absent = [spot for spot in everything if not spot.present]
    result: dict[str, dict[str, list[dict]]] = {host: {kind: [] for kind in KINDS} for host in sorted(observed)}

    def add(kind: str, difference: Difference, *hosts: str | None) -> None:
        for host in sorted({host for host in hosts if host in observed}, key=str):
            result[str(host)][kind].append(asdict(difference))

    pairs, lacking, extra = _pair(before, now)
    found = {new.name: (old, new) for old, new in pairs if not old.anonymous and not new.anonymous}
    found.update({old.name: (old, new) for old, new in pairs if not old.anonymous and not new.anonymous})

    # A card that tells who it is, where one without identity was accepted: learned, not replaced.
    for new in list(extra):
        old = next((one for one in lacking if one.anonymous and one.slot and one.place == new.place), None)
        if old is not None and _models_agree(old, new):
            lacking.remove(old)
            extra.remove(new)
            pairs.append((old, new))

    moves: list[tuple[_Spot, _Spot]] = []
    for old, new in pairs:
        fields = _changed_fields(old, new)
        if fields:
            add("changed", _difference([(old, new)], fields=fields), new.host)
        if old.place != new.place and not (old.host == new.host and new.slot is None):
            moves.append((old, new))
    _tell_moves(moves, add)

    for new in now:
        if new.slot is None:
            old = next((old for old, one in pairs if one is new), None)
            add("unplaced", _difference([(old, new)]), new.host)

    # Baselines or records that name one card twice: an old baseline of a host that was down when the
    # move was accepted, an old record of one that is down now.
    gone: list[tuple[_Spot, str]] = []
    for old in lacking:
        twin = None if old.anonymous else found.get(old.name)
        if twin and twin[0].place != old.place:
            if twin[1].place != old.place:
                add("moved", _difference([(old, twin[1])], reason="baseline_outdated"), old.host)
        elif old.host in observed:
            gone.append((old, _why_missing(old, absent, extra)))
    fresh: list[tuple[_Spot, str | None]] = []
    for new in extra:
        twin = None if new.anonymous else found.get(new.name)
        fresh.append((new, "duplicate" if twin and twin[1].place != new.place else None))
    _tell_gone_and_new(gone, fresh, add)

    for comparison in result.values():
        for kind in KINDS:
            comparison[kind].sort(key=_order)
    return result


def _changed_fields(old: _Spot, new: _Spot) -> list[str]:
    fields = []
    for key in ("serial", "uuid", "firmware_version"):
        before, now = old.card.get(key), new.card.get(key)
        learned = key != "firmware_version" and old.anonymous and not new.anonymous
        if now and before != now and (before or learned):
            fields.append(key)
    return fields


def _why_missing(old: _Spot, absent: list[_Spot], extra: list[_Spot]) -> str:
    """Return the reason that the host's record gives, or that what sits in its place suggests.

    Takes a device that does not say who it is out of ``extra``: it is not news beside the missing card.
    """
    mine = [spot for spot in absent if spot.host == old.host]
    same = [spot for spot in mine if _same_identity(spot, old)]
    silent = _place_match(old, [spot for spot in mine if spot.anonymous])
    for spot in same or ([silent] if silent else []):
        return str(spot.card.get("state") or LOST)
    nameless = _place_match(old, [spot for spot in extra if spot.anonymous and spot.host == old.host])
    if nameless and not old.anonymous and _models_agree(old, nameless):
        extra.remove(nameless)
        return NOT_IDENTIFIED
    return GONE


def _boards(items: list[tuple[_Spot | None, _Spot | None]]) -> list[Board]:
    """Put devices of one serial together; a device without one is a board of its own."""
    boards: dict[object, Board] = {}
    for old, new in items:
        one = new or old
        serial = one.serial if one else None
        boards.setdefault(serial or id(one), []).append((old, new))
    return sorted(boards.values(), key=lambda board: [_card_order(old or new) for old, new in board])


def _card_order(spot: _Spot) -> tuple:
    return (str(spot.serial or ""), str(spot.uuid or ""), _address_key(spot.card))


def _tell_moves(moves: list[tuple[_Spot, _Spot]], add: Callable) -> None:
    routes: dict[tuple, list] = {}
    for old, new in moves:
        routes.setdefault((old.place, new.place), []).append((old, new))
    boards = {route: _boards(items) for route, items in routes.items()}
    for (start, end), going in boards.items():
        coming = boards.get((end, start), [])
        if start[1] is not None and end[1] is not None and _place_order(start) < _place_order(end):
            while going and coming:
                away, back = going.pop(0), coming.pop(0)
                swapped = _difference(away)
                swapped.new = _board([new for _unused, new in back])
                add("swapped", swapped, start[0], end[0])
    for (start, end), left in boards.items():
        for board in left:
            add("moved", _difference(board), start[0], end[0])


def _tell_gone_and_new(gone: list, fresh: list, add: Callable) -> None:
    """Tell missing and new boards, and as replaced a pair of them in one slot."""
    places = {spot.place for spot, _unused in [*gone, *fresh]}
    for place in sorted(places, key=_place_order):
        left = _boards([(old, None) for old, reason in gone if old.place == place and reason == GONE])
        came = _boards([(None, new) for new, reason in fresh if new.place == place and reason is None])
        if place[1] is not None:
            for old in list(left):
                # Two chips of one board that differ are a lost and a found one, not another board.
                new = next((board for board in came if not _one_serial(old, board)), None)
                if new is not None:
                    left.remove(old)
                    came.remove(new)
                    add("replaced", _difference([*old, *new]), place[0])
        for board in left:
            add("missing", _difference(board, reason=GONE), place[0])
        for board in came:
            add("new", _difference(board), place[0])
        for reason in sorted({why for old, why in gone if old.place == place and why != GONE}):
            for board in _boards([(old, None) for old, why in gone if old.place == place and why == reason]):
                add("missing", _difference(board, reason=reason), place[0])
        for new, why in fresh:
            if new.place == place and why is not None:
                add("new", _difference([(None, new)], reason=why), place[0])


def _one_serial(old: Board, new: Board) -> bool:
    return bool(old[0][0].serial) and old[0][0].serial == new[0][1].serial


def _difference(board: Board, reason: str | None = None, fields: list[str] | None = None) -> Difference:
    old, new = [old for old, _unused in board if old], [new for _unused, new in board if new]
    told = Difference(reason=reason, fields=fields or [], old=_board(old), new=_board(new))
    if old:
        told.from_host, told.from_slot = old[0].place
    if new:
        told.to_host, told.to_slot = new[0].place
    return told


def _board(spots: list[_Spot]) -> dict | None:
    """Return what identifies a board: its serial, its devices' UUIDs and addresses, model and firmware."""
    if not spots:
        return None
    spots = sorted(spots, key=_card_order)
    return {
        "serial": spots[0].serial,
        "uuids": [spot.uuid for spot in spots if spot.uuid],
        "pci_addresses": [spot.address for spot in spots if spot.address],
        "model": spots[0].card.get("model"),
        "firmware_version": spots[0].card.get("firmware_version"),
    }


def _place_order(place: tuple[str | None, str | None]) -> tuple:
    return (natural(place[0]), place[1] is None, natural(place[1]))


def _order(entry: dict) -> tuple:
    start, end = (entry["from_host"], entry["from_slot"]), (entry["to_host"], entry["to_slot"])
    addresses = (entry["old"] or entry["new"] or {}).get("pci_addresses") or []
    first = start if entry["from_host"] is not None else end
    return (_place_order(first), _place_order(end), addresses)


def differs(comparison: dict[str, list[dict]]) -> bool:
    """Tell whether a comparison lists anything."""
    return any(comparison[kind] for kind in KINDS)


def card_name(board: dict | None) -> str:
    """Return how a board is named in sentences: serial, else UUID, else address."""
    board = board or {}
    if board.get("serial"):
        return f"serial {board['serial']}"
    if board.get("uuids"):
        return f"uuid {', '.join(board['uuids'])}"
    return f"card at {', '.join(board.get('pci_addresses') or ['an unknown address'])}"


def describe(kind: str, entry: dict) -> str:
    """Return one difference as one line: ``gpu-01 SXM5: serial A -> B (replaced)``."""
    start = _place(entry["from_host"], entry["from_slot"])
    end = _place(entry["to_host"], entry["to_slot"])
    old, new = entry["old"], entry["new"]
    if kind == "missing":
        return f"{start}: {card_name(old)} (missing, {entry['reason'].replace('_', ' ')})"
    if kind == "new":
        return f"{end}: {card_name(new)} (new{', seen in another place too' if entry['reason'] else ''})"
    if kind == "moved":
        return f"{start} -> {end}: {card_name(new)} (moved)"
    if kind == "swapped":
        return f"{start} <-> {end}: {card_name(old)} and {card_name(new)} (swapped)"
    if kind == "replaced":
        kind_of_name, name = card_name(new).split(" ", 1)
        short = card_name(old).startswith(f"{kind_of_name} ")  # "serial A -> B", but "serial A -> uuid B"
        return f"{start}: {card_name(old)} -> {name if short else card_name(new)} (replaced)"
    if kind == "unplaced":
        return f"{entry['to_host']}: {card_name(new)} at {', '.join(new['pci_addresses'])} (slot not known)"
    values = [(key, _value(old, key), _value(new, key)) for key in entry["fields"]]
    return f"{end}: {card_name(new)}, " + ", ".join(f"{key} {was} -> {now}" for key, was, now in values) + " (changed)"


def _place(host: str | None, slot: str | None) -> str:
    return f"{host} {slot or '(no slot)'}"


def _value(board: dict, key: str) -> str:
    value = ", ".join(board["uuids"]) if key == "uuid" else board.get(key)
    return str(value or "none")


def difference_lines(comparisons: dict[str, dict[str, list[dict]]]) -> list[str]:
    """Return the differences of all hosts as lines, each once even when it concerns two hosts."""
    lines: dict[str, None] = {}
    for host in sorted(comparisons, key=natural):
        for kind in KINDS:
            lines.update({describe(kind, entry): None for entry in comparisons[host][kind]})
    return list(lines)


# ---------------------------------------------------------------------------------------------------
# Accepting
# ---------------------------------------------------------------------------------------------------


def refusals(records: dict[str, dict], declared: dict[str, object]) -> dict[str, list[str]]:
    """Return why records are not fit to be baselines, by host: a baseline is not learned from a broken host.

    A card whose last trace is nothing but a memory (``gone``) does not count against a host on which
    as many cards answer as are declared: it was taken out. Nor does one that answers on another host.
    """
    spots = [spot for host, record in records.items() for spot in cards(record, host)]
    where: dict[str, list[_Spot]] = {}
    for spot in spots:
        if spot.present and spot.uuid:
            where.setdefault(spot.name, []).append(spot)
    found: dict[str, list[str]] = {}
    for host in sorted(records, key=natural):
        mine = [spot for spot in spots if spot.host == host]
        present = [spot for spot in mine if spot.present]
        wanted, why = to_int(declared.get(host)), []
        if wanted is None:
            why.append("the number of cards is not declared (cluster_accelerator_count)")
        elif len(present) != wanted:
            fewer = len(present) < wanted
            why.append(
                f"{len(present)} of {wanted} declared cards answer"
                if fewer
                else f"{len(present)} cards answer, only {wanted} are declared"
            )
        complete = wanted is not None and len(present) >= wanted
        for spot in mine:
            if spot.present:
                if spot.slot is None:
                    why.append(f"{_spoken(spot)} has no slot name; declare it in cluster_accelerator_slots")
                others = [one for one in where.get(spot.name, []) if one is not spot]
                why += [f"{_spoken(spot)} is reported by {one.host} {one.slot or ''} too".strip() for one in others]
            elif any(one.present and one.host != host and _same_identity(one, spot) for one in spots):
                continue
            elif not complete or spot.card.get("state") != GONE:
                why.append(f"{_spoken(spot)} is {str(spot.card.get('state') or LOST).replace('_', ' ')}")
        if why:
            found[host] = why
    return found


def _spoken(spot: _Spot) -> str:
    board = _board([spot]) or {}
    at = f" at {spot.address}" if spot.address and not spot.anonymous else ""
    return f"{spot.slot + ': ' if spot.slot else ''}{card_name(board)}{at}"


def as_baseline(record: dict, accepted: dict) -> dict:
    """Return a record as the baseline that a person accepts with it: the cards that are present in a slot."""
    body = dict(record, accepted=accepted, slots={}, unplaced=[])
    for spot in cards(record):
        if spot.present and spot.slot is not None:
            body["slots"].setdefault(spot.slot, []).append(spot.card)
    return body


def history_events(host: str, comparison: dict[str, list[dict]], first: bool = False) -> list[dict]:
    """Return what happened at the slots of one host: one event a slot and difference, without time and reason.

    ``old_*`` left the slot, ``new_*`` came into it. ``first`` names the events of a host that had no
    baseline: its cards were installed.
    """
    events = []
    for kind in KINDS:
        for entry in comparison[kind]:
            start, end = (entry["from_host"], entry["from_slot"]), (entry["to_host"], entry["to_slot"])
            old, new = entry["old"], entry["new"]
            if kind == "missing":
                told = [(start, "missing", old, None)]
            elif kind == "new":
                told = [(end, "installed" if first else "new", None, new)]
            elif kind == "moved":
                told = [(start, "moved", old, None), (end, "moved", None, new)]
            elif kind == "swapped":
                told = [(start, "swapped", old, new), (end, "swapped", new, old)]
            elif kind == "replaced":
                told = [(start, "replaced", old, new)]
            elif kind == "changed":
                told = [(end, "firmware" if entry["fields"] == ["firmware_version"] else "identity", old, new)]
            else:
                continue  # nothing happened to a card whose slot is not known
            events += [_event(host, slot, event, was, now) for (at, slot), event, was, now in told if at == host]
    return events


def _event(host: str, slot: str | None, event: str, old: dict | None, new: dict | None) -> dict:
    told: dict = {"host": host, "slot": slot, "event": event}
    for side, board in (("old", old), ("new", new)):
        told[f"{side}_serial"] = board["serial"] if board else None
        told[f"{side}_uuids"] = board["uuids"] if board else []
        told[f"{side}_firmware_version"] = board["firmware_version"] if board else None
    return told
