# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state file: read, validate, expand to the host that is to be shown.

State is what a person declares: a profile or cards, and faults. A ``Host`` is what follows from it: every
card with all it shows, faults worked in. Faults change nothing for good: taking one out of the list
brings back what was there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from . import ids, models
from .ids import digits, hexes

SCHEMA = 1

# fault: (number of slots it takes, what it does)
FAULTS: dict[str, tuple[int, str]] = {
    "card_lost": (1, "the card fell off the bus: its config space reads as ones, the vendor tool calls it lost"),
    "card_hung": (1, "the vendor tool hangs as soon as it asks this card"),
    "cards_swapped": (2, "two cards exchanged their slots"),
    "card_replaced": (1, "another card, with another serial, sits in the slot"),
    "link_downtrained": (1, "the link of the card came up with half its lanes"),
    "ecc": (1, "an uncorrected memory error that no row can be remapped for"),
    "remap_pending": (1, "a row of the memory waits for its remapping, which a reset brings"),
    "xid79": (1, "the kernel log says that the card has fallen off the bus, while its tool still answers"),
    "throttle": (1, "the server's power brake slows the card down"),
    "port_down": (1, "one link of the card to another card is down"),
    "partitioned": (1, "the card is split: MIG instances, compute partitions (CPX), vNPUs"),
    "process_holding": (1, "a process that the vendor tool does not list has the device node open"),
    "tool_garbage": (0, "the vendor tool prints bytes that are no text, and calls it a success"),
    "tool_truncated": (0, "every answer of the vendor tool ends in its middle, and it calls that a success"),
    "tool_foreign": (0, "the vendor tool prints the form of a release that nobody knows, and fails"),
    "driver_library_mismatch": (0, "user space and kernel module of the driver do not fit"),
}

# What not every vendor's tool and kernel module tell of.
OF_VENDORS = {
    "remap_pending": ("nvidia", "ascend"),
    "xid79": ("nvidia", "amd"),
    "throttle": ("nvidia", "amd"),
}

HEALTH = ("ok", "warning", "critical")
SLOT_SCHEMES = ("card", "bridge", "none")
WIRINGS = ("switched", "direct")
SYSTEM_BUS = 0xF0  # where the rest of the server sits when no profile says

_ADDRESS = re.compile(r"^[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]$")
_SLOT = re.compile(r"^[A-Za-z][A-Za-z0-9_-]*?([0-9]+)$")
_UUID = {
    "nvidia": re.compile(r"^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"),
    "amd": re.compile(r"^[0-9a-f]{2}ff[0-9a-f]{4}-0000-1000-80[0-9a-f]{2}-[0-9a-f]{12}$"),
    "ascend": re.compile(r"^[0-9A-F]{8}( [0-9A-F]{8}){4}$"),
}

_KEYS = {
    "schema", "profile", "seed", "vendor", "driver_version", "tool_version", "slot_scheme", "wiring",
    "manufacturer", "product", "cards", "faults",
}  # fmt: skip
_CARD_KEYS = {
    "slot", "index", "address", "model", "pci_id", "serial", "uuid", "memory_mib", "firmware_version", "numa_node",
    "link_speed_gts", "link_width", "health", "busy",
}  # fmt: skip


class StateError(Exception):
    """The state can't be shown; the message has one complaint a line."""

    def __init__(self, complaints: list[str]) -> None:
        super().__init__("\n".join(complaints))
        self.complaints = complaints


@dataclass
class Card:
    """One card in its slot, as it shows itself.

    ``speed_gts``/``width`` is what the link runs at now, ``link_speed_gts``/``link_width`` what it can do.
    ``slot_number`` is the vendor's number of the slot, ``sysfs_slot`` the kernel's. ``uuid`` names the chip
    in the vendor's own form.
    """

    index: int
    slot: str
    slot_number: int
    sysfs_slot: int
    address: str
    numa_node: int
    model: str
    pci_id: str
    subsystem: str
    pci_class: int
    revision: int
    serial: str
    uuid: str
    memory_mib: int
    firmware_version: str
    link_speed_gts: float
    link_width: int
    bars_mib: tuple[int, ...]
    architecture: str
    part_number: str
    power_watts: int
    clocks_mhz: tuple[int, int]
    compute_units: int = 0
    chips: int = 1
    l3_mib: int = 0
    health: str = "ok"
    busy: bool = False
    speed_gts: float = 0.0
    width: int = 0
    lost: bool = False
    hung: bool = False
    downtrained: bool = False
    ecc: bool = False
    remap_pending: bool = False
    fallen: bool = False
    throttled: bool = False
    held: bool = False
    port_down: bool = False
    split: bool = False

    # What goes with the card when it is moved to another slot.
    MOVES = (
        "model",
        "pci_id",
        "subsystem",
        "pci_class",
        "revision",
        "serial",
        "uuid",
        "memory_mib",
        "firmware_version",
        "link_speed_gts",
        "link_width",
        "bars_mib",
        "architecture",
        "part_number",
        "power_watts",
        "clocks_mhz",
        "compute_units",
        "chips",
        "l3_mib",
        "health",
    )


@dataclass
class Host:
    """Everything that is to be shown on one host."""

    vendor: str
    seed: str
    driver_version: str
    library_version: str
    tool_version: str
    driver_ready: bool
    slot_scheme: str
    wiring: str
    system_bus: int
    manufacturer: str
    product: str
    serial: str
    garbage: str = ""
    cards: list[Card] = field(default_factory=list)
    faults: list[dict] = field(default_factory=list)


def load(text: str) -> dict:
    """Return the state file as a dictionary; StateError when it is no YAML mapping."""
    import yaml  # only the command needs it; the vendor tools start without

    try:
        state = yaml.safe_load(text)
    except yaml.YAMLError as exc:
        raise StateError([f"not valid YAML: {exc}"]) from exc
    if not isinstance(state, dict):
        raise StateError(["the state is no mapping"])
    return state


def with_faults(text: str, state: dict) -> str:
    """Return the text of a state file with the faults of ``state`` in place of those in it.

    Only the last block changes, in the form the role writes it: a fault that was injected and healed leaves the
    file as it was, and the role finds nothing to do.
    """
    lines = text.splitlines(keepends=True)
    at = next((number for number, line in enumerate(lines) if line.startswith("faults:")), len(lines))
    if any(line[:1] not in (" ", "-", "#", "\n") for line in lines[at + 1 :]):
        import yaml

        head = {key: value for key, value in state.items() if key != "faults"}
        lines, at = [yaml.safe_dump(head, sort_keys=False, allow_unicode=True, width=120)], 1
    block = "faults:\n" if state["faults"] else "faults: []\n"
    for fault in state["faults"]:
        block += "".join(
            f"{'  - ' if not number else '    '}{key}: {value}\n" for number, (key, value) in enumerate(fault.items())
        )
    return "".join(lines[:at]) + block


def make_serial(vendor: str, *words: str) -> str:
    """Return a board serial in the length and with the beginning that the vendor's have."""
    if vendor in models.MAKERS:
        return ids.fill(models.MAKERS[vendor].serial, "serial", *words)
    head, count = {"nvidia": ("165", 10), "amd": ("6925", 8), "ascend": ("1024", 8)}[vendor]
    return head + digits(count, "serial", *words)


def make_uuid(vendor: str, pci_id: str, *words: str) -> str:
    """Return the unique id of a chip in the vendor's form."""
    if vendor in models.MAKERS:
        return ids.fill(models.MAKERS[vendor].uuid, "uuid", *words)
    one = hexes(40, "uuid", *words)
    if vendor == "nvidia":
        return f"GPU-{one[:8]}-{one[8:12]}-{one[12:16]}-{one[16:20]}-{one[20:32]}"
    if vendor == "amd":
        # amdsmi spreads the 64 bits of the chip's serial over a UUID that also holds the device id.
        return f"{one[:2]}ff{pci_id[5:]}-0000-1000-80{one[2:4]}-{one[4:16]}"
    return " ".join(one[at : at + 8].upper() for at in range(0, 40, 8))


def asic_serial(card: Card) -> str:
    """Return the 64-bit chip serial inside an AMD uuid, as ``0x...``."""
    return "0x" + (card.uuid[:2] + card.uuid[21:23] + card.uuid[24:36]).upper()


def temperature_c(card: Card) -> int:
    """Return how hot an AMD card is at its hottest place."""
    return (58 if card.busy else 38) + card.index % 4


def watts_drawn(card: Card) -> int:
    """Return what an AMD card draws."""
    return card.power_watts * 9 // 10 if card.busy else 134 + card.index


def declared_version(state: dict) -> str:
    """Return the version of the driver that a state declares, itself or by its profile."""
    profile = models.PROFILES.get(state.get("profile") or "", {})
    return str(state.get("driver_version") or profile.get("driver_version") or "")


def expand(state: dict, loaded: str = "") -> Host:
    """Return the host that a state declares; StateError with every complaint at once.

    ``loaded`` is the version of the driver's module where that is another one than the state declares.
    """
    complaints = [
        f"{key}: not a key of the state; accepted: {', '.join(sorted(_KEYS))}" for key in state if key not in _KEYS
    ]
    profile = models.PROFILES.get(state.get("profile") or "", {})
    if state.get("profile") and not profile:
        complaints.append(f"profile: {state['profile']!r} is unknown; accepted: {', '.join(models.PROFILES)}")
    vendor = state.get("vendor") or profile.get("vendor") or ""
    if vendor not in models.VENDORS:
        complaints.append(f"vendor: {vendor!r} is unknown; accepted: {', '.join(models.VENDORS)}")
        raise StateError(complaints)
    if profile and profile["vendor"] != vendor:
        complaints.append(f"vendor: {vendor!r}, but profile {state['profile']} is of {profile['vendor']}")
        raise StateError(complaints)
    if state.get("schema", SCHEMA) != SCHEMA:
        complaints.append(f"schema: {state['schema']!r} is not known here; accepted: {SCHEMA}")

    version = loaded or declared_version(state)
    branch = models.branch(vendor, version)
    if branch is None:
        accepted = ", ".join(f"{known}.*" for known in models.DRIVERS[vendor])
        complaints.append(f"driver_version: {version!r} has no known output format; accepted for {vendor}: {accepted}")
    chosen = {}
    for key, accepted in (("slot_scheme", SLOT_SCHEMES), ("wiring", WIRINGS)):
        chosen[key] = state.get(key) or profile.get(key) or accepted[0]
        if chosen[key] not in accepted:
            complaints.append(f"{key}: {chosen[key]!r} is unknown; accepted: {', '.join(accepted)}")

    seed = str(state.get("seed") or "accel")
    cards = _cards(state, vendor, profile, seed, complaints)
    if not complaints:
        complaints += _overlaps(cards, chosen["wiring"], profile.get("system_bus", SYSTEM_BUS))
    faults = _faults(state, vendor, cards, complaints) if not complaints else []
    if complaints:
        raise StateError(complaints)
    host = Host(
        vendor=vendor, seed=seed, driver_version=version, library_version=version,
        tool_version=str(state.get("tool_version") or ""), driver_ready=True,
        slot_scheme=chosen["slot_scheme"], wiring=chosen["wiring"], system_bus=profile.get("system_bus", SYSTEM_BUS),
        manufacturer=str(state.get("manufacturer") or profile.get("manufacturer") or "Accel Rehearsal"),
        product=str(state.get("product") or profile.get("product") or "AR-1"),
        serial="AR" + digits(8, "host", seed), cards=cards, faults=faults,
    )  # fmt: skip
    for fault in faults:
        _work_in(host, fault, branch or "")
    for card in host.cards:
        # Drivers of some vendors lower the speed of an idle link; lanes stay.
        card.speed_gts = card.link_speed_gts if card.busy or vendor in models.MAKERS else 2.5
        card.width = max(1, card.link_width // 2) if card.downtrained else card.link_width
    return host


def _cards(state: dict, vendor: str, profile: dict, seed: str, complaints: list[str]) -> list[Card]:
    """Return the cards of the profile with the declared ones laid over them, or the declared ones alone."""
    wanted: dict[str, dict] = {}
    label = models.SLOT_LABELS[vendor]
    for index, address, number, node in profile.get("cards", ()):
        name = label.format(number)
        wanted[name] = {
            "slot": name, "index": index, "address": address, "numa_node": node, "model": profile["model"],
        }  # fmt: skip
    declared = state.get("cards") or []
    if not isinstance(declared, list) or not all(isinstance(one, dict) for one in declared):
        complaints.append("cards: not a list of mappings")
        return []
    seen_slots: set[str] = set()
    for position, one in enumerate(declared):
        where = f"cards[{position}]"
        name = str(one.get("slot") or "")
        complaints += [
            f"{where}.{key}: not a key of a card; accepted: {', '.join(sorted(_CARD_KEYS))}"
            for key in one
            if key not in _CARD_KEYS
        ]
        if not _SLOT.match(name):
            complaints.append(f"{where}.slot: {name!r} is no slot; accepted: letters and then a number, like SXM5")
        elif name in seen_slots:
            complaints.append(f"{where}.slot: {name!r} is declared twice")
        elif profile and name not in wanted:
            complaints.append(
                f"{where}.slot: {name!r} is not in profile {state['profile']}; it has: {', '.join(wanted)}"
            )
        else:
            wanted.setdefault(name, {"index": position, "numa_node": 0}).update(
                {key: value for key, value in one.items() if key in _CARD_KEYS}
            )
        seen_slots.add(name)
    if not wanted and not complaints:
        complaints.append("cards: neither a profile nor a card is declared")
    base = profile.get("slot_base", 0)
    cards = [card for card in (_card(one, vendor, seed, base, complaints) for one in wanted.values()) if card]
    for what in ("index", "address", "slot_number", "uuid"):
        seen: dict[object, str] = {}
        for card in cards:
            value = getattr(card, what)
            if value in seen:
                complaints.append(f"cards: {card.slot} and {seen[value]} have the same {what}, {value!r}")
            seen[value] = card.slot
    return sorted(cards, key=lambda card: card.index)


def _card(one: dict, vendor: str, seed: str, base: int, complaints: list[str]) -> Card | None:
    name = str(one["slot"])
    before = len(complaints)
    model = models.MODELS.get(str(one.get("model") or ""))
    if model is None or model["vendor"] != vendor:
        known = ", ".join(key for key, value in models.MODELS.items() if value["vendor"] == vendor)
        complaints.append(f"cards {name}.model: {one.get('model')!r} is unknown; accepted for {vendor}: {known}")
        return None
    facts = {key: value for key, value in model.items() if key != "vendor"}
    facts.update(
        {
            key: one[key]
            for key in ("pci_id", "memory_mib", "firmware_version", "link_speed_gts", "link_width")
            if key in one
        }
    )
    address = str(one.get("address") or "")
    if not _ADDRESS.match(address):
        complaints.append(f"cards {name}.address: {address!r} is no address; accepted: lower-case, like 0000:18:00.0")
    uuid = str(one.get("uuid") or make_uuid(vendor, facts["pci_id"], seed, name))
    shape = _UUID[vendor] if vendor in _UUID else ids.pattern(models.MAKERS[vendor].uuid)
    if not shape.match(uuid):
        example = make_uuid(vendor, facts["pci_id"], "example")
        complaints.append(f"cards {name}.uuid: {uuid!r} is no {vendor} id; accepted: like {example}")
    accepted = ("ok", *models.MAKERS[vendor].health) if vendor in models.MAKERS else HEALTH
    if one.get("health", "ok") not in accepted:
        complaints.append(f"cards {name}.health: {one['health']!r} is unknown; accepted: {', '.join(accepted)}")
    if facts["link_speed_gts"] not in (2.5, 5.0, 8.0, 16.0, 32.0, 64.0):
        complaints.append(f"cards {name}.link_speed_gts: {facts['link_speed_gts']!r}; accepted: 2.5 5 8 16 32 64")
    if facts["link_width"] not in (1, 2, 4, 8, 16):
        complaints.append(f"cards {name}.link_width: {facts['link_width']!r}; accepted: 1 2 4 8 16")
    numbers = {}
    for key, fallback, highest in (
        ("index", 0, 255),
        ("numa_node", 0, 63),
        ("memory_mib", facts["memory_mib"], 1 << 24),
    ):
        value = one.get(key, fallback)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= highest:
            complaints.append(f"cards {name}.{key}: {value!r}; accepted: a whole number from 0 to {highest}")
        numbers[key] = value
    if len(complaints) > before:
        return None
    facts.update(memory_mib=numbers["memory_mib"], link_speed_gts=float(facts["link_speed_gts"]))
    number = int(re.sub(r"^.*?([0-9]+)$", r"\1", name))
    return Card(
        index=numbers["index"],
        slot=name,
        slot_number=number,
        sysfs_slot=base + number,
        address=address,
        numa_node=numbers["numa_node"],
        model=str(one["model"]),
        serial=str(one.get("serial") or make_serial(vendor, seed, board_of(number, facts.get("chips", 1), name))),
        uuid=uuid,
        health=one.get("health", "ok"),
        busy=bool(one.get("busy", False)),
        **facts,
    )


def peers(host: Host, card: Card) -> dict[str, bool]:
    """Return the cards that a card of a full mesh has a link to, by address, and whether that link is up.

    A link that is down is down at both its ends; the one of a card with such a fault leads to the first other card.
    """
    present = [one for one in host.cards if not one.lost]

    def others(of: Card) -> list[Card]:
        return [one for one in present if one is not of]

    cut = {frozenset((one.address, others(one)[0].address)) for one in present if one.port_down and others(one)}
    return {one.address: frozenset((card.address, one.address)) not in cut for one in others(card)}


def board_of(number: int, chips: int, name: str) -> str:
    """Return the name of the board in a slot: chips of one board sit in slots that follow each other."""
    return name if chips == 1 else f"board{number // chips}"


def bus_of(address: str) -> int:
    """Return the bus number of a canonical address."""
    return int(address.split(":")[1], 16)


def _overlaps(cards: list[Card], wiring: str, system_bus: int) -> list[str]:
    """Complain of cards whose bridges would need the same buses (only with declared addresses)."""
    complaints = []
    taken: dict[tuple[str, int], str] = {
        ("0000", bus): "the rest of the server" for bus in range(system_bus + (wiring == "direct"), system_bus + 0x0C)
    }
    for card in cards:
        bus = bus_of(card.address)
        if bus < (3 if wiring == "switched" else 1):
            complaints.append(f"cards {card.slot}.address: bus {bus:02x} leaves no room for the bridges above it")
        for one in range(bus - 3, bus + 2) if wiring == "switched" else [bus]:
            key = (card.address.split(":")[0], one)
            if key in taken:
                complaints.append(f"cards {card.slot}.address: bus {one:02x} is taken by {taken[key]}")
                break
            taken[key] = card.slot
    return complaints


def in_order(cards: list[Card]) -> list[str]:
    """Return the labels of the slots in the order of their numbers."""
    return [card.slot for card in sorted(cards, key=lambda one: one.slot_number)]


def find_slot(cards: list[Card], word: str) -> str | None:
    """Return the slot that a label, a slot number or an address names; None when it names none or several."""
    named = [
        card.slot for card in cards if word.lower() in (card.slot.lower(), card.address.lower(), str(card.slot_number))
    ]
    return named[0] if len(named) == 1 else None


def shown_on(vendor: str) -> list[str]:
    """Return the faults that cards of a vendor can show."""
    if vendor in models.MAKERS:
        return list(models.MAKERS[vendor].shows)
    return [fault for fault in FAULTS if vendor in OF_VENDORS.get(fault, (vendor,))]


def make_fault(vendor: str, cards: list[Card], fault: str, slot: str = "", slot_b: str = "") -> dict:
    """Return one entry for ``faults``, its slots named in full; StateError says what is accepted."""
    shown = shown_on(vendor)
    if fault not in shown:
        what = f"{fault} is not shown on {vendor}" if fault in FAULTS else f"{fault!r} is unknown"
        raise StateError([f"fault: {what}; accepted: {', '.join(shown)}"])
    count = FAULTS[fault][0]
    given = [word for word in (slot, slot_b) if word]
    if len(given) != count:
        needs = {0: "no slot", 1: "one slot", 2: "two slots (slot and slot_b)"}[count]
        raise StateError([f"fault: {fault} takes {needs}, given: {', '.join(given) or 'none'}"])
    names = []
    for word in given:
        name = find_slot(cards, str(word))
        if name is None:
            raise StateError([f"slot: {word!r} names no card; accepted: {', '.join(in_order(cards))}, or an address"])
        names.append(name)
    boards = {board_of(card.slot_number, card.chips, card.slot) for card in cards if card.slot in names}
    if len(set(names)) != count or (count == 2 and len(boards) != count):
        raise StateError([f"slot_b: {slot_b!r} is the same card as slot; {fault} takes two different ones"])
    names.sort()  # a swap of A with B is one with B and A
    entry = {"fault": fault}
    entry.update(zip(("slot", "slot_b"), names))
    return entry


def _faults(state: dict, vendor: str, cards: list[Card], complaints: list[str]) -> list[dict]:
    faults: list[dict] = []
    declared = state.get("faults") or []
    if not isinstance(declared, list) or not all(isinstance(one, dict) for one in declared):
        complaints.append("faults: not a list of mappings")
        return []
    for position, one in enumerate(declared):
        extra = set(one) - {"fault", "slot", "slot_b"}
        if extra:
            complaints.append(f"faults[{position}]: {', '.join(sorted(extra))}: accepted keys are fault, slot, slot_b")
            continue
        try:
            words = [str(one.get(name) or "") for name in ("fault", "slot", "slot_b")]
            entry = make_fault(vendor, cards, *words)
        except StateError as exc:
            complaints += [f"faults[{position}].{text}" for text in exc.complaints]
            continue
        if entry not in faults:
            faults.append(entry)
    # Cards are first put where they sit; what ails a slot ails the card that is there then.
    order = list(FAULTS)
    first = ("card_replaced", "cards_swapped")
    return sorted(faults, key=lambda one: (one["fault"] not in first, order.index(one["fault"])))


# Fault -> the mark that it leaves on its card.
_MARKS = {
    "link_downtrained": "downtrained",
    "ecc": "ecc",
    "remap_pending": "remap_pending",
    "xid79": "fallen",
    "throttle": "throttled",
    "process_holding": "held",
    "port_down": "port_down",
    "partitioned": "split",
}


def _work_in(host: Host, fault: dict, branch: str) -> None:
    at = {card.slot: position for position, card in enumerate(host.cards)}
    name = fault["fault"]
    if name == "driver_library_mismatch":
        if host.vendor == "nvidia":
            host.library_version = models.NVIDIA_BRANCHES[branch][2]
            if host.library_version == host.driver_version:
                host.library_version = f"{branch}.{int(host.driver_version.split('.')[1]) + 9}.02"
        else:
            host.driver_ready = False
        return
    if name.startswith("tool_"):
        host.garbage = name
        return
    position = at[fault["slot"]]
    card = host.cards[position]
    if name == "card_lost":
        card.lost = True
    elif name == "card_hung":
        card.hung = True
    elif name in _MARKS:
        setattr(card, _MARKS[name], True)
    elif name == "card_replaced":
        for one in _board(host, card):
            serial_of = board_of(one.slot_number, one.chips, one.slot)
            one.serial = make_serial(host.vendor, host.seed, serial_of, "replacement")
            one.uuid = make_uuid(host.vendor, one.pci_id, host.seed, one.slot, "replacement")
    elif name == "cards_swapped":
        for here, there in zip(_board(host, card), _board(host, host.cards[at[fault["slot_b"]]])):
            mine = {key: getattr(here, key) for key in Card.MOVES}
            theirs = {key: getattr(there, key) for key in Card.MOVES}
            host.cards[at[here.slot]] = replace(here, **theirs)
            host.cards[at[there.slot]] = replace(there, **mine)


def _board(host: Host, card: Card) -> list[Card]:
    """Return the chips that share a board with a card, in the order of their slots."""
    name = board_of(card.slot_number, card.chips, card.slot)
    mates = [one for one in host.cards if board_of(one.slot_number, one.chips, one.slot) == name]
    return sorted(mates, key=lambda one: one.slot_number)
