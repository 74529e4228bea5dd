# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Answers of vendor tools that are XML."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .vendors.base import Unreadable

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_PROCESS_NAME = r"(?s)(<process_name>)((?:(?!</?process_name>).)*)(</process_name>)"
_NOT_XML = "[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]"
_NAME = r"[A-Za-z_][A-Za-z0-9_.-]*"
_NOT_PLAIN = r"<>&\x00-\x1f\ud800-\udfff\ufffe\uffff"
# A line without the blanks around it: an element with its text, begin or end of one that holds others, or bare text.
_LINE = re.compile(
    rf"<({_NAME})>([^{_NOT_PLAIN}]*)</\1>"
    rf'|<({_NAME})(?: id="([^"{_NOT_PLAIN}]*)")?>|</({_NAME})>|([^{_NOT_PLAIN}]*)'
)


@dataclass
class Fields:
    """The texts of all elements below one element, by path ("pci/pci_bus_id"); "" for an element without text.

    Looked up in a tree each path costs a search, and an answer for 64 cards is asked for some six thousand of them. Of
    elements with the same path the first counts, the others are in ``again``. Elements that stand side by side, such as
    cards and processes, have fields of their own: ``parts``, by path. ``id`` is the attribute.
    """

    id: str = ""
    texts: dict[str, str] = field(default_factory=dict)
    again: list[tuple[str, str]] = field(default_factory=list)
    parts: dict[str, list[Fields]] = field(default_factory=dict)

    def findtext(self, path: str) -> str | None:
        """Return the text of the first element at ``path``, None where there is none."""
        return self.texts.get(path)

    def at(self, path: str) -> list[Fields]:
        """Return the elements at ``path``, which is one that ends with a name that stands side by side."""
        return self.parts.get(path, [])

    def words(self) -> set[str]:
        """Return all different texts."""
        found = set(self.texts.values())
        found.update(word for _path, word in self.again)
        for parts in self.parts.values():
            found.update(*(part.words() for part in parts))
        return found

    def everything(self) -> Iterator[tuple[str, str]]:
        """Return all paths with their texts."""
        yield from self.texts.items()
        yield from self.again
        for above, parts in self.parts.items():
            for part in parts:
                yield from ((f"{above}/{path}", word) for path, word in part.everything())


class _Builder:
    """Fields as they grow, element by element. Each method tells whether that can stand here."""

    def __init__(self, side_by_side: Container[str]) -> None:
        self.here = Fields()
        self.above = ""
        self.outer: list[tuple[str, Fields, str]] = []
        self._side_by_side = side_by_side

    def leaf(self, name: str, word: str) -> bool:
        path = self.above + name
        if path not in self.here.texts:
            self.here.texts[path] = word
        elif word:
            self.here.again.append((path, word))
        return True

    def begin(self, name: str, ident: str) -> bool:
        path = self.above + name
        self.here.texts.setdefault(path, "")
        self.outer.append((name, self.here, self.above))
        if name in self._side_by_side:
            part = Fields(ident)
            self.here.parts.setdefault(path, []).append(part)
            self.here, self.above = part, ""
        else:
            self.above = f"{path}/"
        return True

    def say(self, _name: str, word: str) -> bool:
        """Take a text that stands between elements: that of the innermost one, which has just begun."""
        path = self.above[:-1]
        if self.here.texts.get(path) != "" or next(reversed(self.here.texts)) != path:
            return False
        self.here.texts[path] = word
        return True

    def aside(self, word: str | None) -> None:
        """Keep a text that stands after an element: it is no value, and may say something."""
        if word and word.strip():
            self.here.again.append((self.above[:-1], word.strip()))

    def blank(self, _name: str, _word: str) -> bool:
        return True

    def end(self, name: str, _word: str) -> bool:
        if not self.outer or self.outer[-1][0] != name:
            return False
        _name, self.here, self.above = self.outer.pop()
        return True


def _of_lines(body: str, root: str, side_by_side: Container[str]) -> Fields | None:
    """Return the fields of a document that has one element a line and nothing to decode; None for any other.

    Tools print it so, and a thousand different lines make up the twenty thousand of an answer for 64 cards: each is
    looked at once, in half the time that a tree of elements takes.
    """
    first, last = f"<{root}>", f"</{root}>"
    if not body.startswith(first):
        return None
    builder = _Builder(side_by_side)
    above, texts = builder.above, builder.here.texts
    # By what lies above: a path that is put together once is also looked up faster.
    known: dict[str, dict[str, tuple[Callable[[str, str], bool] | None, str, str]]] = {}
    here = known.setdefault(above, {})
    for line in body[len(first) : -len(last)].split("\n"):
        step = here.get(line)
        if step is None:
            found = _LINE.fullmatch(line.strip())
            if not found:
                return None
            leaf, word, begin, ident, end, between = found.groups("")
            if leaf in side_by_side:
                return None
            if leaf:
                step = None, above + leaf, word.strip()
            elif begin:
                step = builder.begin, begin, ident
            elif end:
                step = builder.end, end, ""
            else:
                step = builder.say if between else builder.blank, "", between
            here[line] = step
        act, name, word = step
        if act is None:  # by far the most frequent: done without a call
            if name not in texts:
                texts[name] = word
            elif word:
                builder.here.again.append((name, word))
            continue
        if not act(name, word):
            return None
        if builder.above != above or builder.here.texts is not texts:
            above, texts = builder.above, builder.here.texts
            here = known.setdefault(above, {})
    return None if builder.outer else builder.here


def of_tree(root: Element, side_by_side: Container[str]) -> Fields:
    """Return the fields of any document."""
    builder = _Builder(side_by_side)
    open_elements = [(root, iter(root))]
    while open_elements:
        element, children = open_elements[-1]
        child = next(children, None)
        if child is None:
            open_elements.pop()
            if open_elements:
                builder.end(element.tag, "")
                builder.aside(element.tail)
        elif len(child) or child.tag in side_by_side:
            builder.begin(child.tag, child.get("id") or "")
            word = (child.text or "").strip()
            if word and not builder.say("", word):
                builder.aside(word)
            open_elements.append((child, iter(child)))
        else:
            builder.leaf(child.tag, (child.text or "").strip())
            builder.aside(child.tail)
    return builder.here


def read_fields(output: str, root: str, side_by_side: Container[str]) -> tuple[Fields, str]:
    """Return the fields of the element ``root`` of an answer and the text around it; Unreadable as ``xml_tree``.

    ``side_by_side`` are the names of elements of which several are expected next to each other. Tabs in texts are lost.
    """
    body, around = _cut_out(output, root)
    found = _of_lines(body, root, side_by_side)
    # Tabs indent the document, and cost the parser a third of its time. Names of programs lose theirs too.
    return (found or of_tree(_tree(body.replace("\t", "")), side_by_side)), around


def leave_out(output: str, name: str) -> str:
    """Return the text without the elements ``name``: long, read by nobody, and none within another."""
    first, *rest = output.split(f"<{name}>")
    return first + "".join(piece.partition(f"</{name}>")[2] or piece for piece in rest)


def xml_tree(output: str, root: str) -> tuple[Element, str]:
    """Return the element ``root`` of an answer and the text around it; Unreadable when it is not there in full."""
    body, around = _cut_out(output, root)
    return _tree(body), around


def _cut_out(output: str, root: str) -> tuple[str, str]:
    begin, closing = output.find(f"<{root}"), f"</{root}>"
    end = output.rfind(closing)
    if begin < 0 or end < begin:
        raise Unreadable(f"no complete {root} in the answer")
    around = re.sub(r"<[?!][^<>]*>", "", output[:begin]) + output[end + len(closing) :]
    return output[begin : end + len(closing)], around.strip()


def _tree(body: str) -> Element:
    # Imported when needed: what a tool usually prints needs no tree.
    from xml.etree import ElementTree

    try:
        return ElementTree.fromstring(body)
    except ElementTree.ParseError:
        pass
    # Names of processes are printed as they are: "&", "<" or control characters in one break the document.
    from html import escape, unescape

    body = re.sub(_PROCESS_NAME, lambda m: m[1] + escape(unescape(m[2])) + m[3], re.sub(_NOT_XML, "", body))
    try:
        return ElementTree.fromstring(body)
    except ElementTree.ParseError as exc:
        raise Unreadable(f"the XML is damaged: {exc}") from exc
