# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What happens to the text of a tool on its way: each mutation takes a source of chance and a text, and returns a text.

The source of chance is a ``random.Random``, Hypothesis' own among them, so that it can shrink what it found.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

PLACEHOLDERS = (
    "N/A", "[N/A]", "[Not Supported]", "Not Supported", "[Unknown Error]", "Unknown Error", "ERR!", "GPU is lost",
    "[GPU requires reset]", "-", "--", "/", "NA", "", "0", "None", "null", "true", "unknown", "REDACTED", "Not Found",
    "0xFFFFFFFF", "65535", "0000:00:00.0", "00000000-0000-0000-0000-000000000000", "{}", "[]", "\"",
)  # fmt: skip
NUMBERS = (
    "9" * 400, "9" * 5000, "-1", "-9999999999", "NaN", "nan", "Infinity", "-inf", "1e999", "-0", "0x7f", "1_000",
    "1.2.3", "18446744073709551616", "\u00b2", "\u0663\u0664", "3.", ".5", "+7", "1,024",
    "00000000000000000000000000000001",
)  # fmt: skip
ODD = ("\x00", "\ufffd", "\r", "\r\n", "\x1b[4m", "\x1b[", "\u2028", "\x85", "\ufeff", "\u0130", "\t", "|", ":", "\x0c")
# A lone half of a character can come in JSON only: what a tool prints is decoded with replacement before.
JSON_VALUES = ("null", "true", "[]", "{}", "NaN", '""', "[[]]", '{"a": {}}', "-1", "1e400", '"\\ud800"', '"\\u0000"')
MOST = 400_000  # no mutation makes a text longer

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_WORD = re.compile(r"[^\s|,:<>\"{}\[\]]+")
_VALUE = re.compile(r":\s*(\"[^\"\n]*\"|-?[\d.]+|null|true|false)")


def _spot(rng: Random, text: str) -> int:
    return rng.randrange(len(text) + 1)


def _match(rng: Random, pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """Return one match, without finding all of a long text: the next one after a spot by chance."""
    return pattern.search(text, _spot(rng, text)) or pattern.search(text)


def truncate(rng: Random, text: str) -> str:
    return text[: _spot(rng, text)] if rng.randrange(4) else text[_spot(rng, text) :]


def cut_within_line(rng: Random, text: str) -> str:
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]
    return "\n".join(lines)


def delete(rng: Random, text: str) -> str:
    at = _spot(rng, text)
    return text[:at] + text[at + 1 + rng.randrange(8) :]


def insert(rng: Random, text: str) -> str:
    at = _spot(rng, text)
    return text[:at] + rng.choice(ODD + PLACEHOLDERS + NUMBERS) * (1 + rng.randrange(3)) + text[at:]


def overwrite(rng: Random, text: str) -> str:
    at = _spot(rng, text)
    return text[:at] + chr(rng.randrange(256)) + text[at + 1 :]


def duplicate_line(rng: Random, text: str) -> str:
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    count = 1 + rng.randrange(4)
    return "\n".join(lines[: at + count] + lines[at:])


def drop_lines(rng: Random, text: str) -> str:
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    return "\n".join(lines[:at] + lines[at + 1 + rng.randrange(4) :])


def move_lines(rng: Random, text: str) -> str:
    lines = text.split("\n")
    at, to = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[at], lines[to] = lines[to], lines[at]
    return "\n".join(lines)


def swap_columns(rng: Random, text: str) -> str:
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    sign = next((one for one in ("|", ",", "\t", ":") if one in lines[at]), None)
    cells = lines[at].split(sign) if sign else lines[at].split(" ")
    one, two = rng.randrange(len(cells)), rng.randrange(len(cells))
    cells[one], cells[two] = cells[two], cells[one]
    lines[at] = (sign or " ").join(cells)
    return "\n".join(lines)


def drop_column(rng: Random, text: str) -> str:
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    sign = next((one for one in ("|", ",", "\t", ":") if one in lines[at]), " ")
    cells = lines[at].split(sign)
    del cells[rng.randrange(len(cells))]
    lines[at] = sign.join(cells)
    return "\n".join(lines)


def odd_number(rng: Random, text: str) -> str:
    found = _match(rng, _NUMBER, text)
    return text[: found.start()] + rng.choice(NUMBERS) + text[found.end() :] if found else text


def placeholder(rng: Random, text: str) -> str:
    found = _match(rng, _WORD, text)
    return text[: found.start()] + rng.choice(PLACEHOLDERS) + text[found.end() :] if found else text


def placeholder_between_tags(rng: Random, text: str) -> str:
    at = text.find(">", _spot(rng, text)) + 1
    end = text.find("<", at)
    return text[:at] + rng.choice(PLACEHOLDERS + NUMBERS) + text[end:] if 0 < at < end else text


def json_value(rng: Random, text: str) -> str:
    found = _match(rng, _VALUE, text)
    if not found:
        return text
    return text[: found.start(1)] + rng.choice(JSON_VALUES) + text[found.end(1) :]


def nest(rng: Random, text: str) -> str:
    depth = rng.choice((2, 50, 3000))
    opening, closing = rng.choice((("[", "]"), ('{"a": ', "}"), ("<a>", "</a>")))
    if rng.randrange(2):
        return opening * depth + text + closing * depth
    found = _match(rng, _VALUE, text)
    at = found.start(1) if found else _spot(rng, text)
    return text[:at] + opening * depth + "1" + closing * (depth if rng.randrange(3) else 0) + text[at:]


def several_documents(rng: Random, text: str) -> str:
    between = rng.choice(("", "\n", "\nWARNING: something\n", "\n\x00\n", "\n---\n"))
    return text + between + (text if rng.randrange(2) else text[: _spot(rng, text)])


def change_case(rng: Random, text: str) -> str:
    at = _spot(rng, text)
    end = at + rng.choice((10, 200, len(text)))
    part = text[at:end]
    return text[:at] + rng.choice((part.upper(), part.lower(), part.swapcase())) + text[end:]


def line_ends(rng: Random, text: str) -> str:
    return text.replace("\n", rng.choice(("\r\n", "\r", "\n\n", "\x00\n", " ", "")))


def blanks(rng: Random, text: str) -> str:
    return text.replace(" " * (1 + rng.randrange(3)), rng.choice((" ", "\t", "", "\u00a0")))


def bad_bytes(rng: Random, text: str) -> str:
    raw = bytearray(text.encode("utf-8", "replace"))
    for _unused in range(1 + rng.randrange(4)):
        raw.insert(rng.randrange(len(raw) + 1), 0x80 + rng.randrange(0x80))
    return raw.decode("utf-8", "replace")  # as the runner does


def inflate(rng: Random, text: str) -> str:
    """Make one part very long: an expression that backtracks shows itself only then."""
    at = _spot(rng, text)
    part = text[at : at + rng.choice((1, 2, 10, 80))] or rng.choice((" ", "0", "a:", "-", "\n", "\t", "<", "["))
    return text[:at] + part * (rng.choice((20_000, 100_000)) // len(part)) + text[at:]


ALL: tuple[Callable[[Random, str], str], ...] = (
    truncate, cut_within_line, delete, insert, overwrite, duplicate_line, drop_lines, move_lines, swap_columns,
    drop_column, odd_number, placeholder, placeholder_between_tags, json_value, several_documents, change_case,
    line_ends, blanks, bad_bytes,
)  # fmt: skip
# These cost a parser a thousand times what the others do, so they are taken more seldom.
HEAVY = (nest, inflate)


def mutate(rng: Random, text: str) -> str:
    """Return the text after one to four mutations."""
    for _unused in range(1 + rng.randrange(4)):
        kind = rng.choice(HEAVY) if not rng.randrange(150) else rng.choice(ALL)
        text = kind(rng, text)[:MOST]
    return text
