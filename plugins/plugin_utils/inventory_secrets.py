# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This plugin util is PRIVATE to the collection: its names may change in any release.
"""Secrets in clear in the files of an inventory. Complaints name file, line and variable, never the value.

Accepted is what a reader of the file can't use: a value from ansible-vault, a lookup, or a variable
that is made of these. A variable that a secret takes its value from is followed to its definition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml
from ansible_collections.accel.cluster.plugins.module_utils._accel import confidential
from ansible_collections.accel.cluster.plugins.module_utils._accel.contract import Complaint
from ansible_collections.accel.cluster.plugins.plugin_utils.inventory_files import (
    VAULT_HEADER,
    Definition,
    InventoryFiles,
    line_of,
    pairs_of,
    shorter,
)
from ansible_collections.accel.cluster.plugins.plugin_utils.template_values import ingredients, is_template

_VAULT_TAGS = ("!vault", "!vault-encrypted")
_ACCEPTED = "!vault (ansible-vault encrypt_string), a lookup, or a variable that is one of these"
_NO_SECRET_TAGS = ("tag:yaml.org,2002:null", "tag:yaml.org,2002:bool")
_NUMBER_TAGS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
# Everybody knows these values.
_KNOWN_TO_ALL = ("inventory_hostname", "inventory_hostname_short", "ansible_host", "ansible_hostname", "group_names")
# One word behind the name: more is a sentence, and so is Chinese, which writes them without blanks.
_COMMENT = re.compile(r"^\s*[#;]+\s*(?:-\s*)?([^\W\d][\w-]*)\s*[:=：]\s*[\"']?([^\s\"'<!|>][^\s\"'一-鿿]*)[\"']?\s*$")
_OPEN_KEY = re.compile(r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----")


def secrets_in_clear(found: InventoryFiles) -> list[Complaint]:
    """Return one complaint for each secret that stands in clear in the files that were read."""
    search = _Search(found)
    for definition in found.definitions:
        search.definition(definition)
    for path, text in found.texts.items():
        search.text(path, text)
    return search.complaints


class _Search:
    """One search through all files; remembers which lines it has complained about."""

    def __init__(self, found: InventoryFiles) -> None:
        self.complaints: list[Complaint] = []
        self._by_name: dict[str, list[Definition]] = {}
        self._lines: set[tuple[str, int]] = set()
        for definition in found.definitions:
            self._by_name.setdefault(definition.name, []).append(definition)

    def definition(self, one: Definition) -> None:
        """Search one variable, at any depth."""
        for name, line, node, secret in _leaves(one.name, one.line, one.node, False, frozenset()):
            reason = self._reason(name, node, secret)
            if reason:
                last = node.end_mark.line + 1 if isinstance(node, yaml.Node) else line
                if (one.file, line) not in self._lines:
                    place = f"{shorter(one.file)}:{line}"
                    self.complaints.append(Complaint([one.subject], f"{name} {reason}", _ACCEPTED, one.name, place))
                self._lines.update((one.file, covered) for covered in range(line, last + 1))

    def text(self, path: str, text: str) -> None:
        """Search for what no YAML or INI reader sees: private keys in leftovers, values that were commented out."""
        for number, line in enumerate(text.splitlines(), 1):
            problem = ""
            comment = _COMMENT.match(line)
            if _OPEN_KEY.search(line):
                problem = "a private key stands here in clear"
            elif comment and self._reason(comment[1], comment[2], confidential.is_secret_name(comment[1])):
                problem = f"{comment[1]} is a secret in clear, in a comment"
            if problem and (path, number) not in self._lines:
                place = f"{shorter(path)}:{number}"
                self.complaints.append(Complaint(["inventory"], problem, _ACCEPTED, place=place))

    def _reason(self, name: str, node: object, secret: bool) -> str:
        """Return why the value of ``name`` is a secret in clear, or nothing."""
        text, kind = _scalar(node)
        if not text or text.startswith(VAULT_HEADER):
            return ""
        if confidential.holds_secret(text):
            return "holds a secret in clear"
        last_name = name.rsplit(".", 1)[-1]
        if not secret or kind in _NO_SECRET_TAGS or confidential.is_open_value(last_name, text):
            return ""
        if kind in _NUMBER_TAGS and confidential.is_counted_name(last_name):
            return ""
        # A tag alone encrypts nothing.
        if not is_template(text) or kind in ("!unsafe", *_VAULT_TAGS):
            return "is a secret in clear"
        return self._template_reason(text, frozenset())

    def _template_reason(self, text: str, seen: frozenset[str]) -> str:
        made_of = ingredients(text)
        if made_of is None:
            return "is a secret made by a template that can't be read"
        if made_of.literal:
            return "is a secret of which a part stands in clear in its template"
        for path in made_of.variables:
            if path[0] in _KNOWN_TO_ALL:
                return f"is a secret made of {path[0]}, which everybody knows"
            place = self._open_definition(path, seen)
            if place:
                return f"is a secret that takes its value from {'.'.join(path)}, which is in clear ({place})"
        return ""

    def _open_definition(self, path: tuple[str, ...], seen: frozenset[str]) -> str:
        """Return where a variable is defined in clear, or nothing; what no file defines can't be told.

        One whose own name says secret is complained about where it is defined, and not here again.
        """
        if path[0] in seen:
            return ""
        for one in self._by_name.get(path[0], []):
            node = _inside(one.node, path[1:])
            for _name, line, leaf, secret in _leaves(one.name, one.line, node, False, frozenset()):
                text, kind = _scalar(leaf)
                if secret or not text or kind in _NO_SECRET_TAGS or text.startswith(VAULT_HEADER):
                    continue
                template = is_template(text) and kind not in ("!unsafe", *_VAULT_TAGS)
                if not template or self._template_reason(text, seen | {path[0]}):
                    return f"{shorter(one.file)}:{line}"
        return ""


def _leaves(
    name: str, line: int, node: object, secret: bool, above: frozenset[int]
) -> Iterator[tuple[str, int, object, bool]]:
    """Yield name, line, value of every scalar at or below a node, and whether its name, or one above, says secret."""
    if id(node) in above:
        return  # an alias that leads back to where it stands
    last_name = name.rsplit(".", 1)[-1]
    secret = confidential.is_secret_name(last_name) or (secret and not confidential.is_about(last_name))
    above = above | {id(node)}
    if isinstance(node, yaml.MappingNode):
        named = _name_of_pair(node)
        for key, value in pairs_of(node):
            as_pair = key.value == "value" and confidential.is_secret_name(named)
            label = f"{name}.{named}" if as_pair else f"{name}.{key.value}"
            yield from _leaves(label, line_of(key), value, secret or as_pair, above)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _leaves(name, line_of(value), value, secret, above)
    elif node is not None:
        yield name, line, node, secret


def _name_of_pair(node: yaml.MappingNode) -> str:
    """Return the name in ``{name: DB_PASSWORD, value: ...}``, the form of environment lists, or nothing."""
    for key, value in pairs_of(node):
        if key.value in ("name", "key") and isinstance(value, yaml.ScalarNode):
            return value.value
    return ""


def _scalar(node: object) -> tuple[str, str]:
    """Return text and YAML tag of a value; the text of an INI file has no tag."""
    if isinstance(node, yaml.ScalarNode):
        return node.value.strip(), node.tag
    text = str(node or "").strip()
    if text.lower() in ("true", "false", "yes", "no", "none", "null"):
        return text, _NO_SECRET_TAGS[0]
    return text, _NUMBER_TAGS[0] if text.isdigit() else ""


def _inside(node: object, path: tuple[str, ...]) -> object:
    """Return what lies at a path below a node; None when it can't be told."""
    for step in path:
        found = [value for key, value in pairs_of(node) if key.value == step]
        if not found:
            return node if isinstance(node, yaml.ScalarNode) else None
        node = found[0]
    return node
