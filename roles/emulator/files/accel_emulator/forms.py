# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tools of the catalogue's vendors have in common: which cards answer, what they measure, how it is laid out.

A tool's answers are rendered when the state changes; ``whole`` and ``alone`` choose among them. A lost card has left
the driver: it is missing from every list, and asked alone it does not exist. A hung card hangs whoever asks it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .state import Card, Host

Reply = tuple  # rc (None: the tool hangs), stdout, stderr
HANG = (None, "", "")
_GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}


@dataclass
class Now:
    """What a card measures: share of time at work, memory in use, temperature, power."""

    load: int
    used_mib: int
    celsius: int
    watts: float


def now(card: Card) -> Now:
    """Return the readings of a card, which follow from its load and its number."""
    if card.busy:
        return Now(97, card.memory_mib * 4 // 5, 61 + card.index % 4, round(card.power_watts * 0.92 + card.index, 1))
    return Now(0, 66 + card.index, 34 + card.index % 4, round(card.power_watts * 0.2 + card.index, 1))


def generation(speed_gts: float) -> int:
    """Return the PCIe generation of a speed."""
    return _GENERATIONS[speed_gts]


def errors(card: Card) -> int:
    """Return the count of uncorrected memory errors, where that is what a critical card has."""
    return 4 if card.health == "critical" else 1 if card.ecc else 0


def long_address(card: Card) -> str:
    """Return the address with a domain of eight digits, in capital letters."""
    domain, rest = card.address.split(":", 1)
    return f"{domain.zfill(8)}:{rest}".upper()


def entries(host: Host, describe: Callable[[Card], dict]) -> list[dict]:
    """Return one entry a card: its number, address, state, and what ``describe`` tells of it."""
    return [
        {
            "index": card.index,
            "address": card.address,
            "state": "lost" if card.lost else "hung" if card.hung else "ok",
            **describe(card),
        }
        for card in host.cards
    ]


def present(data: dict) -> list[dict]:
    """Return the entries of cards that have not left the driver."""
    return [card for card in data["cards"] if card["state"] != "lost"]


def whole(data: dict, say: Callable[[list[dict]], str]) -> Reply:
    """Answer for all cards; one that hangs keeps the answer from coming."""
    cards = present(data)
    return HANG if any(card["state"] == "hung" for card in cards) else (0, say(cards), "")


def alone(data: dict, word: str, say: Callable[[list[dict]], str], absent: Reply) -> Reply:
    """Answer for the card that a number or an address names, ``absent`` where there is none."""
    named = [card for card in present(data) if word.lower() in (str(card["index"]), card["address"])]
    if not named:
        return absent
    return HANG if named[0]["state"] == "hung" else (0, say(named), "")


def asked(data: dict, word: str | None, say: Callable[[list[dict]], str], absent: Reply) -> Reply:
    """Answer for the card that is named, for all where none is."""
    return whole(data, say) if word is None else alone(data, word, say, absent)


def take_option(words: list[str], *names: str) -> str | None:
    """Take an option with its value out of a command line; return the value, None where it is not there."""
    for name in names:
        if name in words[:-1]:
            at = words.index(name)
            value = words[at + 1]
            del words[at : at + 2]
            return value
    return None


def clock(moment: float | None, form: str) -> str:
    """Return a time of day as a tool prints it; now, where none is given."""
    return time.strftime(form, time.gmtime(time.time() if moment is None else moment))


def as_json(value: object, indent: int = 4) -> str:
    """Return JSON as most tools print it."""
    return json.dumps(value, indent=indent) + "\n"


def join(part: str, cards: list[dict]) -> str:
    """Return one part of every card, one after the other."""
    return "".join(card[part] for card in cards)


def xml(nodes: list, pad: str, depth: int = 1) -> str:
    """Return nested (tag, value) pairs as XML; a value is a text or a list of pairs, a tag may carry attributes."""
    lines = []
    for tag, value in nodes:
        closing = tag.split()[0]
        if isinstance(value, list):
            inner = xml(value, pad, depth + 1)
            lines.append(f"{pad * depth}<{tag}>\n{inner}{pad * depth}</{closing}>\n")
        else:
            lines.append(f"{pad * depth}<{tag}>{value}</{closing}>\n")
    return "".join(lines)
