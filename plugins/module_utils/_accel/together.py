# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Say once of a host what nobody knows of any of its cards.

A value that a vendor's tool never tells is one gap in what is known, not one a card: eight warnings for it hide the
warning that matters. It stays unknown, and the finding names every card that it is about. A card of which alone
something is not known has a finding of its own, because there it may be the card. Pure functions.
"""

from __future__ import annotations

from collections.abc import Sequence

from .model import UNKNOWN, WARNING

# An idle card is ordinary, whatever its siblings do.
_ORDINARY = ("device.link_speed.no_reading",)


def tell(found: list[dict], cards: Sequence, say: dict) -> list[dict]:
    """Return the findings of a host with equal gaps of its cards put together.

    ``cards`` are what the judge made of the host (``name``, ``subject``, ``state``, ``device``), ``say`` its words. A
    finding about several cards has the host as its subject, and theirs in ``cards``. Only warnings that wait for
    no other check are put together, those of at least two cards, and those of all cards of a model that answer.
    """
    by_subject = {card.subject: card for card in cards}
    groups: dict[tuple[str, str | None, str], list[dict]] = {}
    for one in found:
        card = by_subject.get(one["subject"])
        if card and (one["verdict"], one["severity"], one["blocked_by"]) == (UNKNOWN, WARNING, None):
            # The words without the name: what is said of each of them. What to do then differs by vendor.
            groups.setdefault((one["hint"], one["vendor"], one["message"].replace(card.name, "\0")), []).append(one)
    merged: dict[str, list[dict]] = {}
    for (hint, _vendor, _text), group in sorted(groups.items(), key=lambda item: -len(item[1])):
        # Of a check there is one finding a subject; cards that lack something else keep their own.
        check = group[0]["check"]
        if len(group) > 1 and check not in merged and (hint in _ORDINARY or _all_alike(group, cards)):
            merged[check] = group
    gone = {id(one) for group in merged.values() for one in group}
    first = next((number for number, one in enumerate(found) if one["subject"] in by_subject), len(found))
    together = [_one(group, by_subject, say) for group in merged.values()]
    return [*found[:first], *together, *(one for one in found[first:] if id(one) not in gone)]


def _all_alike(group: list[dict], cards: Sequence) -> bool:
    """Tell whether these are all the cards of their models that answer."""
    subjects = {one["subject"] for one in group}
    models = {card.device.get("model") for card in cards if card.subject in subjects}
    return all(card.subject in subjects for card in cards if card.state == "ok" and card.device.get("model") in models)


def _one(group: list[dict], by_subject: dict, say: dict) -> dict:
    """Return one finding for a group: what all have in common, and the evidence of each behind its name."""
    first = group[0]
    subjects = [one["subject"] for one in group]
    name = say["cards"].format(len(subjects), say["comma"].join(subjects))
    lines: dict[str, list[str]] = {}
    for one in group:
        for piece in one["evidence"]:
            lines.setdefault(str(piece.get("command") or ""), []).append(f"{one['subject']}: {piece.get('excerpt')}")
    same = {
        key: first[key] if all(one[key] == first[key] for one in group) else None for key in ("expected", "observed")
    }
    return {
        **first,
        **same,
        "subject": first["host"],
        "cards": subjects,
        "message": first["message"].replace(by_subject[first["subject"]].name, name),
        "evidence": [{"command": command, "excerpt": "\n".join(told)[:2000]} for command, told in lines.items()],
    }
