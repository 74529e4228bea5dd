# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Serials and unique ids that follow from words: the same on every run and every machine.

A template says how those of a vendor look: ``{d8}`` stands for eight decimal digits, ``{h4}`` and ``{H4}`` for four
hexadecimal ones in small or capital letters; the rest is as it is.
"""

from __future__ import annotations

import hashlib
import re

_TOKEN = re.compile(r"\{([dhH])(\d+)\}")
_CLASSES = {"d": "[0-9]", "h": "[0-9a-f]", "H": "[0-9A-F]"}


def digits(count: int, *words: str) -> str:
    """Return decimal digits that follow from the words."""
    return str(int(hashlib.sha256("/".join(words).encode()).hexdigest(), 16))[-count:]


def hexes(count: int, *words: str) -> str:
    """Return hexadecimal digits that follow from the words."""
    return hashlib.sha256("/".join(words).encode()).hexdigest()[:count]


def fill(template: str, *words: str) -> str:
    """Return an id of the template's form that follows from the words."""

    def one(found: re.Match) -> str:
        count, at = int(found[2]), str(found.start())
        if found[1] == "d":
            return digits(count, *words, at)
        return hexes(count, *words, at) if found[1] == "h" else hexes(count, *words, at).upper()

    return _TOKEN.sub(one, template)


def pattern(template: str) -> re.Pattern:
    """Return what an id of the template's form matches."""
    parts, end = [], 0
    for found in _TOKEN.finditer(template):
        parts += [re.escape(template[end : found.start()]), f"{_CLASSES[found[1]]}{{{found[2]}}}"]
        end = found.end()
    return re.compile("".join([*parts, re.escape(template[end:])]) + r"\Z")
