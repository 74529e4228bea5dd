# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""YAML as programs write it for programs: blocks of mappings and lists with one-line values, nothing else.

There is no YAML in Python's own library, and the hosts have no other. What is not read here (anchors, tags, text over
several lines, lists in brackets) is refused with its line and never guessed at.
"""

from __future__ import annotations

import json
import re

from .text import whole_characters
from .vendors.base import Unreadable

# Deeper than any file that this reads; Python's own limit is not far above.
MOST_DEPTH = 40

_KEY = re.compile(r"([A-Za-z0-9_.][A-Za-z0-9_./-]*|\"[^\"\\]*\"|'[^']*'):(?: +(.*))?$")
_REFUSED = ("&", "*", "!", "|", ">", "{", "[", "]", "}", "%", "@", "`", "?", ",", "#")


class _Line:
    def __init__(self, number: int, indent: int, words: str) -> None:
        self.number, self.indent, self.words = number, indent, words


def parse(output: str) -> object:
    """Return mappings, lists and texts (numbers and truth values stay texts); None for an empty value.

    Unreadable names the line of what this does not read.
    """
    reading = _Reading(_lines(output))
    if not reading.lines:
        raise Unreadable("line 1: there is nothing in it")
    value = reading.node(reading.lines[0].indent, 0)
    if reading.at < len(reading.lines):
        raise _refused(reading.lines[reading.at])
    return value


def _lines(output: str) -> list[_Line]:
    found: list[_Line] = []
    for number, raw in enumerate(output.split("\n"), 1):
        words = raw.rstrip(" \r")
        indent = len(words) - len(words.lstrip(" "))
        words = words[indent:]
        if not words or words.startswith("#") or (words == "---" and not found):
            continue
        if "\t" in words or not words.isprintable() or (indent == 0 and words.startswith(("---", "..."))):
            raise _refused(_Line(number, indent, words))
        found.append(_Line(number, indent, words))
    return found


def _refused(line: _Line) -> Unreadable:
    return Unreadable(f"line {line.number}: not read here: {line.words[:80]!r}")


class _Reading:
    def __init__(self, lines: list[_Line]) -> None:
        self.lines = lines
        self.at = 0

    def _here(self, indent: int) -> _Line | None:
        """Return the line that is next, where it belongs to a block of this indentation."""
        line = self.lines[self.at] if self.at < len(self.lines) else None
        return line if line and line.indent == indent else None

    def node(self, indent: int, depth: int) -> object:
        line = self.lines[self.at]
        if depth > MOST_DEPTH:
            raise _refused(line)
        if _is_item(line):
            return self._items(indent, depth)
        if _KEY.match(line.words):
            return self._mapping(indent, depth)
        raise _refused(line)

    def _items(self, indent: int, depth: int) -> list:
        found: list = []
        line = self._here(indent)
        while line and _is_item(line):
            rest = line.words[1:].lstrip(" ")
            inner = indent + len(line.words) - len(rest)
            if not rest:
                self.at += 1
                found.append(self._below(indent, depth))
            elif rest.startswith("- ") or rest == "-" or _KEY.match(rest):
                # What stands behind the dash begins a block that is as far in as it is.
                line.indent, line.words = inner, rest
                found.append(self.node(inner, depth + 1))
            else:
                self.at += 1
                found.append(_scalar(line, rest))
            line = self._here(indent)
        return found

    def _mapping(self, indent: int, depth: int) -> dict:
        found: dict = {}
        line = self._here(indent)
        while line and not _is_item(line):
            key = _KEY.match(line.words)
            if not key:
                raise _refused(line)
            name = key[1].strip("\"'")
            if name in found:
                raise Unreadable(f"line {line.number}: the key {name!r} stands there twice")
            self.at += 1
            if key[2] and not key[2].startswith("#"):
                found[name] = _scalar(line, key[2])
            else:
                # A list may begin below its key without being further in.
                after = self._here(indent)
                found[name] = self.node(indent, depth + 1) if after and _is_item(after) else self._below(indent, depth)
            line = self._here(indent)
        return found

    def _below(self, indent: int, depth: int) -> object:
        line = self.lines[self.at] if self.at < len(self.lines) else None
        return self.node(line.indent, depth + 1) if line and line.indent > indent else None


def _is_item(line: _Line) -> bool:
    return line.words == "-" or line.words.startswith("- ")


def _scalar(line: _Line, words: str) -> object:
    empty: dict[str, object] = {"[]": [], "{}": {}, "null": None, "~": None}
    if words in empty:
        return empty[words]
    if words.startswith('"'):
        try:
            value = json.loads(whole_characters(words))
        except ValueError:
            raise _refused(line) from None
        if not isinstance(value, str):
            raise _refused(line)
        return value
    if words.startswith("'"):
        if not re.fullmatch(r"'(?:[^']|'')*'", words):
            raise _refused(line)
        return words[1:-1].replace("''", "'")
    plain = words.split(" #")[0].rstrip()
    if plain.startswith(_REFUSED) or plain.startswith("- ") or ": " in plain or plain.endswith(":"):
        raise _refused(line)
    return plain
