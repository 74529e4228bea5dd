# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""What every vendor's text has in common: words for "no value", numbers with units, excerpts.

"No value" is four different things, and only one of them is a fault:

- ``UNSUPPORTED``: this product has no such value (``N/A``, ``[Not Supported]``, ``-``);
- ``UNREADABLE``: it has one that cannot be read now (``Unknown Error``, ``ERR!``): a sign of a sick device;
- ``PLACEHOLDER``: something stands there that is no value (``0000000000000``, ``unknown``, all-zero UUID);
- an absent key, which arrives here as None or an empty text and counts as unsupported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

VALUE = "value"
UNSUPPORTED = "unsupported"
UNREADABLE = "unreadable"
PLACEHOLDER = "placeholder"

_UNSUPPORTED = {
    "",
    "n/a",
    "na",
    "-",
    "--",
    "/",
    "none",
    "null",
    "not supported",
    "not applicable",
    "not available",
    "not found",
    "0xffff",
    "0xffffffff",
    "65535",
    "4294967295",
    "18446744073709551615",
    "requested functionality has been deprecated",
}
# The largest number that a field can hold stands for none, with its unit behind it too; a memory may have 65535 MiB.
_LARGEST = re.compile(
    r"(?:65535(?:\.0+)?\s*(?:\u00b0?c|m?w|%|mhz|rpm)|(?:4294967295|18446744073709551615)(?:\.0+)?\s*[a-z/%]+)"
)
# One search instead of one a word: every field of every answer comes by here.
SICK_WORDS = "unknown error|err!|gpu is lost|requires? reset|reset required"
# Healthy cards say this too, of values that the driver gives to nobody.
_UNREADABLE = re.compile(f"{SICK_WORDS}|insufficient permissions")
_PLACEHOLDER = {"unknown", "redacted", "not specified", "default string", "to be filled by o.e.m.", "xxx"}

# Left out before str.isprintable is asked, which says no to them.
_LAID_OUT = dict.fromkeys(map(ord, "\n\t"))
_ON_PURPOSE = dict.fromkeys(map(ord, "\n\t\r\x1b"))
_ANSI = r"\x1b\[[0-9;?]*[A-Za-z]"
_SURROGATE = r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
# Digits of ASCII only, and no more of them than any tool prints: "\u00b2" is a digit to Python that int() refuses,
# and a run of garbage would become infinity. A number that is none must not cost the host all its cards.
_DIGITS = re.compile(r"[0-9]{1,25}")
# What follows must not make another number of it: "1,234" is a thousand in one country and a little more than one in
# another, as are "1.234,5" and "1'234"; "0x1f" and "1e3" are no decimals.
_NUMBER = re.compile(
    r"(?<![0-9])[-+]?[0-9]{1,25}(?![0-9])(?:\.[0-9]+)?(?![0-9])(?P<odd>[.,'\u2019][0-9]|[eE][-+]?[0-9]|)"
)
_HEX = re.compile(r"0[xX][0-9a-fA-F]")
# A digit is no unit: tried as one, a long run of digits would take time that grows with its square.
_UNIT = r"[-+]?[0-9.]+(?![0-9.])\s*(\S.*)?"
_WATTS = {"": 1.0, "w": 1.0, "watt": 1.0, "watts": 1.0, "mw": 0.001, "kw": 1000.0}
_CELSIUS = {"": 1.0, "c": 1.0, "\u2103": 1.0, "celsius": 1.0, "celsius degree": 1.0, "deg c": 1.0, "mc": 0.001}
_SIZE = re.compile(r"^\s*([0-9]{1,25}(?:\.[0-9]+)?)\s*([KMGTP]?)(i?)B\s*$", re.IGNORECASE)


def state_of(value: object) -> str:
    """Return VALUE, UNSUPPORTED, UNREADABLE or PLACEHOLDER for one field of a tool's answer."""
    return _state("" if value is None else str(value))


@lru_cache(maxsize=1024)  # the same few words stand in most fields of most cards
def _state(word: str) -> str:
    word = word.strip().strip("[]").strip().lower()
    if word in _UNSUPPORTED or (word[0] in "641" and _LARGEST.fullmatch(word)):
        return UNSUPPORTED
    if _UNREADABLE.search(word):
        return UNREADABLE
    # A row of zeros, x or zeros with dashes names nothing: boards without a serial, an empty UUID.
    if word in _PLACEHOLDER or (len(word) > 2 and not word.strip("0-x")):
        return PLACEHOLDER
    return VALUE


def clean(value: object) -> str | None:
    """Return the text of a field, stripped; None when it holds no value of any of the kinds above."""
    if state_of(value) != VALUE:
        return None
    return str(value).strip()


def identifier(value: object) -> str | None:
    """Return a serial or UUID; None when it holds none. Zeros, even behind a prefix (GPU-0000...), name nothing."""
    word = clean(value)
    if word is None or not re.sub(r"^(?:[A-Za-z]+-)?", "", word).strip("0-"):
        return None
    return word


def number(value: object) -> float | None:
    """Return the first number of a field ("16 GT/s", "97 %", "1x"), None when there is none, or one that is unclear."""
    word = clean(value)
    found = _NUMBER.search(word) if word else None
    if found is None or found["odd"] or _HEX.match(found.string, found.start()):
        return None
    return float(found.group())


def watts(value: object) -> float | None:
    """Return a power in watts ("95W", "91000 mW", "95"); None for one in any other unit."""
    return _measure(value, _WATTS)


def celsius(value: object) -> float | None:
    """Return a temperature in degrees Celsius ("44.00 \u00b0C", "44C", "44"); None for one in any other unit."""
    return _measure(value, _CELSIUS)


def _measure(value: object, units: dict[str, float]) -> float | None:
    found = number(value)
    told = re.fullmatch(_UNIT, str(value).strip()) if found is not None else None
    # A degree sign in another encoding arrives as characters that were replaced.
    factor = units.get((told[1] or "").lower().strip("\u00b0\ufffd ")) if told else None
    return None if found is None or factor is None else round(found * factor, 3)


def integer(value: object) -> int | None:
    """Return the first number of a field as int, None when there is none."""
    found = number(value)
    return None if found is None else int(found)


def count(value: object) -> int | None:
    """Return a counter: a field of digits, but not the largest that 32 or 64 bits hold, which stands for none."""
    found = whole_number(value)
    return None if found in (0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF) else found


def uncounted(value: object) -> bool:
    """Tell whether a counter stands there and holds no number; one that the product does not have is none to read."""
    word = "" if value is None else str(value).strip()
    return count(word) is None and (bool(_DIGITS.fullmatch(word)) or state_of(word) != UNSUPPORTED)


def whole_number(value: object) -> int | None:
    """Return a field that is nothing but digits as int, None for any other."""
    word = "" if value is None else str(value).strip()
    return int(word) if _DIGITS.fullmatch(word) else None


def counted(value: object) -> bool:
    """Tell whether a counter holds a number, or says that there is none to tell; "12 errors" is neither."""
    return whole_number(value) is not None or state_of(value) in (UNSUPPORTED, UNREADABLE)


def size_bytes(value: object, unit: str | None = None) -> int | None:
    """Return a memory size in bytes ("81559 MiB", "64 GB"); ``unit`` where the field carries none.

    "MB" of vendor tools means 2**20 bytes in every tool seen so far; both spellings are taken so.
    """
    word = clean(value)
    if word is None:
        return None
    found = _SIZE.match(word if unit is None else f"{word} {unit}")
    if not found:
        return None
    power = " KMGTP".index(found.group(2).upper() or " ")
    return int(float(found.group(1)) * 1024**power)


def same_version(one: str | None, other: str | None) -> bool:
    """Tell whether two versions name one release: 570.124 and 570.124.06 do, 570.86.15 and 570.124 do not.

    NVML prints the short form of the number that the package carries in full
    (case 03 of tests/cases).
    """
    if not one or not other:
        return False
    left, right = one.split("."), other.split(".")
    shared = min(len(left), len(right))
    return shared >= min(2, max(len(left), len(right))) and left[:shared] == right[:shared]


def majority(versions: Sequence[str | None]) -> tuple[bool, str | None]:
    """Return whether more than half tell one version, and that version; None is one too: not installed."""
    best: dict[str | None, int] = {}
    for version in dict.fromkeys(versions):
        alike = [told for told in versions if equal_or_same(told, version)]
        # A short form may stand for two releases; then it decides nothing.
        if one_release(alike) and 2 * len(alike) > len(versions):
            best[version] = len(alike)
    if not best or not all(equal_or_same(one, other) for one in best for other in best):
        return False, None
    return True, max(best, key=lambda version: (best[version], len(version or "")))


def one_release(versions: Iterable[str | None]) -> bool:
    """Tell whether all of them may be one: no two of them differ, not even where a short form fits both."""
    distinct = set(versions)
    return all(equal_or_same(one, other) for one in distinct for other in distinct)


def equal_or_same(one: str | None, other: str | None) -> bool:
    return one == other or same_version(one, other)


def whole_characters(text: str) -> str:
    """Return JSON text without half characters (``\\ud800``), which no file and no other tool takes."""
    return re.sub(_SURROGATE, r"\\ufffd", text) if "\\u" in text else text


def plain(text: str) -> str:
    """Return text without terminal colours: some tools underline even when no terminal listens."""
    return re.sub(_ANSI, "", text)


def name_and_value(line: str) -> tuple[str, str | None]:
    """Return ("Bus Id", "0000:18:00.0") of a line "  Bus Id   : 0000:18:00.0"; None where it has no colon.

    Not by an expression: one that allows blanks on both sides of both takes seconds for a long line of them.
    """
    name, colon, value = line.partition(":")
    return name.strip(), value.strip() if colon else None


def garbled(output: str) -> bool:
    """Tell whether there is something in an answer that no tool prints on purpose: control characters, broken bytes."""
    return "\ufffd" in output or not output.translate(_ON_PURPOSE).isprintable()


def excerpt(*parts: str | None, limit: int = 2000) -> str:
    """Return the raw text that is kept as evidence: joined, printable, head and tail when too long."""
    text = "\n".join(part.strip() for part in parts if part and part.strip())
    if len(text) > limit:
        half = limit // 2
        text = f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"
    if text.translate(_LAID_OUT).isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)
