# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hold a value against a type as it is written in the code: ``int | None``, ``dict[str, list[dict]]``, dataclasses."""

from __future__ import annotations

import math
import types
import typing
from dataclasses import fields, is_dataclass
from functools import cache

# Below an untyped ``dict`` or ``list`` lies what a tool's JSON may hold.
PLAIN = (str, int, float, bool, type(None))


@cache
def hints_of(kind: type) -> dict:
    """Return the types of a dataclass' fields; resolving them costs more than a parser does."""
    told = typing.get_type_hints(kind)
    return {one.name: told[one.name] for one in fields(kind)}


def problem(value: object, hint: object, where: str = "result") -> str | None:
    """Return what is wrong with ``value`` as a ``hint``, None when nothing is.

    Numbers must be finite and texts writable as UTF-8: JSON and the records take nothing else.
    """
    if hint in (typing.Any, object):
        return _plain(value, where)
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        told = [problem(value, one, where) for one in typing.get_args(hint)]
        return None if None in told else told[0]
    if hint is None or hint is type(None):
        return None if value is None else f"{where} is {value!r}, not None"
    if is_dataclass(hint):
        if value.__class__ is not hint:
            return f"{where} is {value!r}, not a {hint.__name__}"
        return _first(problem(getattr(value, name), kind, f"{where}.{name}") for name, kind in hints_of(hint).items())
    origin, inner = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin is dict:
        return _dict(value, inner, where)
    if origin in (list, tuple, set):
        return _sequence(value, origin, inner, where)
    if origin in (str, bytes, bool, int, float):
        if value.__class__ is not origin:
            return f"{where} is {value!r}, not {origin.__name__}"
        return _plain(value, where) if origin is not bytes else None
    return None if isinstance(value, origin) else f"{where} is {value!r}, not {origin}"


def _dict(value: object, inner: tuple, where: str) -> str | None:
    if value.__class__ is not dict:
        return f"{where} is {value!r}, not dict"
    if not inner:
        return _raw(value, where)
    key, kind = inner
    return _first(problem(one, key, f"a key of {where}") for one in value) or _first(
        problem(one, kind, f"{where}[{name!r}]") for name, one in value.items()
    )


def _raw(value: object, where: str) -> str | None:
    """Judge what is kept of a tool's JSON as it was: a number without end is for the reader to refuse."""
    # Not by recursion: the reader of JSON takes more levels than this could.
    left = [(value, where)]
    while left:
        one, place = left.pop()
        wrong = None
        if one.__class__ is dict:
            wrong = _first(problem(name, str, f"a key of {place}") for name in one)
            left += [(inner, f"{place}[{name!r}]") for name, inner in one.items()]
        elif one.__class__ is list:
            left += [(inner, f"{place}[]") for inner in one]
        elif not isinstance(one, float):
            wrong = _plain(one, place)
        if wrong:
            return wrong
    return None


def _sequence(value: object, origin: type, inner: tuple, where: str) -> str | None:
    if value.__class__ is not origin:
        return f"{where} is {value!r}, not {origin.__name__}"
    if origin is tuple and inner and inner[-1] is not Ellipsis:
        if len(value) != len(inner):
            return f"{where} has {len(value)} parts, not {len(inner)}"
        return _first(problem(one, kind, f"{where}[{n}]") for n, (one, kind) in enumerate(zip(value, inner)))
    if not inner:
        return _first(_raw(one, f"{where}[{n}]") for n, one in enumerate(value))
    kind = inner[0]
    return _first(problem(one, kind, f"{where}[{n}]") for n, one in enumerate(value))


def _plain(value: object, where: str) -> str | None:
    """Judge a value without a declared type."""
    if isinstance(value, str):
        return None if value.isascii() or _utf8(value) else f"{where} is {value!r}, which can't be written as UTF-8"
    if isinstance(value, float):
        return None if math.isfinite(value) else f"{where} is {value!r}"
    if is_dataclass(value):
        return problem(value, type(value), where)
    if value.__class__ is dict:
        return _raw(value, where)
    if value.__class__ in (list, tuple):
        return _sequence(value, type(value), (), where)
    return None if isinstance(value, PLAIN) else f"{where} is {value!r}, not plain data"


def _utf8(value: str) -> bool:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _first(told: typing.Iterable[str | None]) -> str | None:
    return next((one for one in told if one), None)
