# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Answers of vendor tools that are XML."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from .vendors.base import Unreadable

_PROCESS_NAME = r"(?s)(<process_name>)((?:(?!</?process_name>).)*)(</process_name>)"
_NOT_XML = "[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]"


class Fields:
    """The fields of one element by their path ("pci/pci_bus_id"), as ``Element.findtext`` gives them.

    There each path costs a search in Python, and an answer for 64 cards has some six thousand of them. So a part of the
    element is listed once, when a field in it is first asked for.
    """

    def __init__(self, element: ElementTree.Element) -> None:
        """Keep the element; nothing is read yet."""
        self.element = element
        # Path -> the first element of each name below it, and all elements below it.
        self._parts: dict[str, tuple[dict[str, ElementTree.Element], list[ElementTree.Element]]] = {}

    def _part(self, path: str) -> tuple[dict[str, ElementTree.Element], list[ElementTree.Element]]:
        parents = self.at(path) if path else [self.element]
        below = [child for parent in parents for child in parent]
        self._parts[path] = {child.tag: child for child in reversed(below)}, below
        return self._parts[path]

    def at(self, path: str) -> list[ElementTree.Element]:
        """Return the elements at ``path``; a name may stand more than once."""
        above, _slash, name = path.rpartition("/")
        first, below = self._parts.get(above) or self._part(above)
        if name not in first:
            return []
        return [first[name]] if len(first) == len(below) else [one for one in below if one.tag == name]

    def findtext(self, path: str) -> str | None:
        """Return the text of the first element at ``path``, "" for an empty one, None where there is none."""
        above, _slash, name = path.rpartition("/")
        found = (self._parts.get(above) or self._part(above))[0].get(name)
        return None if found is None else found.text or ""


def leave_out(output: str, name: str) -> str:
    """Return the text without the elements ``name``: long, read by nobody, and none within another."""
    first, *rest = output.split(f"<{name}>")
    return first + "".join(piece.partition(f"</{name}>")[2] or piece for piece in rest)


def without_tabs(output: str) -> str:
    """Return the text without tabs: they indent it, and cost the parser a third of its time.

    Names of programs lose theirs too, which are there to be read by people.
    """
    return output.replace("\t", "")


def xml_tree(output: str, root: str) -> tuple[ElementTree.Element, str]:
    """Return the element ``root`` of an answer and the text around it; Unreadable when it is not there in full."""
    begin, closing = output.find(f"<{root}"), f"</{root}>"
    end = output.rfind(closing)
    if begin < 0 or end < begin:
        raise Unreadable(f"no complete {root} in the answer")
    around = re.sub(r"<[?!][^<>]*>", "", output[:begin]) + output[end + len(closing) :]
    body = output[begin : end + len(closing)]
    try:
        return ElementTree.fromstring(body), around.strip()
    except ElementTree.ParseError:
        pass
    # Names of processes are printed as they are: "&", "<" or control characters in one break the document.
    from html import escape, unescape

    body = re.sub(_PROCESS_NAME, lambda m: m[1] + escape(unescape(m[2])) + m[3], re.sub(_NOT_XML, "", body))
    try:
        return ElementTree.fromstring(body), around.strip()
    except ElementTree.ParseError as exc:
        raise Unreadable(f"the XML is damaged: {exc}") from exc
