# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This plugin util is PRIVATE to the collection: its names may change in any release.
"""What the result of a template is made of: texts that stand in it, variables, or lookups.

The template is parsed, never run. What decides only which way it goes (a condition, the index of a
list, the arguments of most filters) is no part of its result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from jinja2 import Environment, TemplateSyntaxError, nodes

_ENVIRONMENT = Environment(extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"], autoescape=False)
_LOOKUPS = ("lookup", "query", "q")
_VARIABLE_LOOKUPS = ("vars", "ansible.builtin.vars")
_VARIABLE_TABLES = ("hostvars", "vars")
# Filters whose arguments may become the result.
_VALUE_FILTERS = ("combine", "d", "default", "join", "ternary", "union")
# Words that stand before a secret in a header and are none.
_SCHEMES = ("", "basic", "bearer", "token")


@dataclass
class Ingredients:
    """Whether texts stand in a template that become part of its result, and paths of the variables that do."""

    literal: bool = False
    variables: list[tuple[str, ...]] = field(default_factory=list)


def is_template(text: str) -> bool:
    """Tell whether Ansible would run a text as a template."""
    return "{{" in text or "{%" in text


def ingredients(text: str) -> Ingredients | None:
    """Return what the result of a template is made of; None when it is no template that can be read."""
    try:
        tree = _ENVIRONMENT.parse(text)
    except TemplateSyntaxError:
        return None
    found = Ingredients()
    for part in _parts(tree):
        if isinstance(part, tuple):
            found.variables.append(part)
        else:
            found.literal = True
    return found


def _parts(node: nodes.Node | None) -> Iterator[str | tuple[str, ...]]:
    """Yield texts (as ``"literal"``) and variables (as paths) that the result of a node may be made of."""
    if node is None:
        return
    if isinstance(node, nodes.TemplateData):
        yield from _literal(node.data)
    elif isinstance(node, nodes.Const):
        if node.value is not None and not isinstance(node.value, bool):
            yield from _literal(str(node.value))
    elif isinstance(node, (nodes.Name, nodes.Getattr, nodes.Getitem)):
        yield from _variable(node)
    elif isinstance(node, nodes.Call):
        yield from _call(node)
    elif isinstance(node, nodes.Filter):
        yield from _parts(node.node)
        if node.name.rsplit(".", 1)[-1] in _VALUE_FILTERS:
            for value in (*node.args, *(pair.value for pair in node.kwargs)):
                yield from _parts(value)
    elif isinstance(node, nodes.CondExpr):
        yield from _parts(node.expr1)
        yield from _parts(node.expr2)
    elif isinstance(node, nodes.If):
        for child in (*node.body, *node.elif_, *node.else_):
            yield from _parts(child)
    elif isinstance(node, nodes.For):
        for child in (*node.body, *node.else_):
            yield from _parts(child)
    elif isinstance(node, nodes.Assign):
        yield from _parts(node.node)
    elif isinstance(node, nodes.Pair):
        yield from _parts(node.value)
    elif not isinstance(node, (nodes.Compare, nodes.Not, nodes.Test)):
        for child in node.iter_child_nodes():
            yield from _parts(child)


def _literal(text: str) -> Iterator[str]:
    """Yield when a text tells something: joining marks and the scheme of a header do not."""
    if text.strip().lower() not in _SCHEMES and any(letter.isalnum() for letter in text):
        yield "literal"


def _variable(node: nodes.Node) -> Iterator[str | tuple[str, ...]]:
    """Yield the path of ``a.b['c']``; of ``hostvars[x].a`` that of ``a``."""
    path: list[str] = []
    while isinstance(node, (nodes.Getattr, nodes.Getitem)):
        if isinstance(node, nodes.Getattr):
            path.insert(0, node.attr)
        else:
            path.insert(0, str(node.arg.value) if isinstance(node.arg, nodes.Const) else "*")
        node = node.node
    if not isinstance(node, nodes.Name):
        yield from _parts(node)
        return
    whole = (node.name, *path)
    if node.name in _VARIABLE_TABLES:
        whole = whole[2:] if node.name == "hostvars" else whole[1:]
    if whole:
        yield whole


def _call(node: nodes.Call) -> Iterator[str | tuple[str, ...]]:
    """Yield what a lookup, or the method of a value, gives."""
    if isinstance(node.node, nodes.Name) and node.node.name in _LOOKUPS:
        names = [argument.value for argument in node.args if isinstance(argument, nodes.Const)]
        if names and names[0] in _VARIABLE_LOOKUPS:
            for name in names[1:]:
                yield (str(name),)
        for pair in node.kwargs:
            if pair.key == "default":
                yield from _parts(pair.value)
    elif isinstance(node.node, nodes.Getattr):
        yield from _parts(node.node.node)
        if node.node.attr in ("get", "join", "format"):
            for argument in node.args[1 if node.node.attr == "get" else 0 :]:
                yield from _parts(argument)
