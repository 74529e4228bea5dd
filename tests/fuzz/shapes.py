# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hold a value against a type as it is written in the code: ``int | None``, ``dict[str, list[dict]]``, dataclasses.

A type is taken apart once, into a function; the place of what is wrong is put together on the way out, so that a value
that fits costs little: most of the time of the fuzzer would go here.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache

# Below an untyped ``dict`` or ``list`` lies what a tool's JSON may hold.
PLAIN = (str, int, float, bool, type(None))

# What is wrong: where it lies below the value that was given, and what is there.
Wrong = tuple[str, str]
Check = Callable[[object], "Wrong | None"]


def problem(value: object, hint: object, where: str = "result") -> str | None:
    """Return what is wrong with ``value`` as a ``hint``, None when nothing is.

    Numbers must be finite and texts writable as UTF-8: JSON and the records take nothing else.
    """
    wrong = _check_of(hint)(value)
    return f"{where}{wrong[0]} is {wrong[1]}" if wrong else None


@cache
def _check_of(hint: object) -> Check:
    """Return the function that judges values of one type."""
    if hint in (typing.Any, object):
        return _plain
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return _one_of([_check_of(one) for one in typing.get_args(hint)])
    if hint is None or hint is type(None):
        return lambda value: None if value is None else ("", f"{value!r}, not None")
    if is_dataclass(hint):
        return _later(lambda: _fields_of(hint))  # it may hold others of its kind
    origin, inner = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin is dict:
        return _of_class(dict, _dict(*map(_check_of, inner)) if inner else _raw)
    if origin is tuple and inner and inner[-1] is not Ellipsis:
        return _of_class(tuple, _parts([_check_of(one) for one in inner]))
    if origin in (list, tuple, set):
        return _of_class(origin, _each(_check_of(inner[0]) if inner else _raw))
    if origin in (str, float, bool, int):
        return _of_class(origin, _plain)
    if origin is bytes:
        return _of_class(bytes, lambda value: None)
    return lambda value: None if isinstance(value, origin) else ("", f"{value!r}, not {origin}")


def _fields_of(hint: type) -> Check:
    told = typing.get_type_hints(hint)
    return _fields(hint, [(one.name, _check_of(told[one.name])) for one in fields(hint)])


def _later(make: Callable[[], Check]) -> Check:
    made = cache(make)

    def check(value: object) -> Wrong | None:
        return made()(value)

    return check


def _of_class(kind: type, inner: Check) -> Check:
    def check(value: object) -> Wrong | None:
        return inner(value) if value.__class__ is kind else ("", f"{value!r}, not {kind.__name__}")

    return check


def _one_of(checks: list[Check]) -> Check:
    def check(value: object) -> Wrong | None:
        first = None
        for one in checks:
            wrong = one(value)
            if wrong is None:
                return None
            first = first or wrong
        return first

    return check


def _fields(kind: type, checks: list[tuple[str, Check]]) -> Check:
    def check(value: object) -> Wrong | None:
        for name, one in checks:
            wrong = one(getattr(value, name))
            if wrong:
                return f".{name}{wrong[0]}", wrong[1]
        return None

    return _of_class(kind, check)


def _dict(key: Check, kind: Check) -> Check:
    def check(value: dict) -> Wrong | None:
        for name, one in value.items():
            wrong = key(name)
            if wrong:
                return f", a key{wrong[0]},", wrong[1]
            wrong = kind(one)
            if wrong:
                return f"[{name!r}]{wrong[0]}", wrong[1]
        return None

    return check


def _each(kind: Check) -> Check:
    def check(value: typing.Iterable) -> Wrong | None:
        for number, one in enumerate(value):
            wrong = kind(one)
            if wrong:
                return f"[{number}]{wrong[0]}", wrong[1]
        return None

    return check


def _parts(kinds: list[Check]) -> Check:
    def check(value: tuple) -> Wrong | None:
        if len(value) != len(kinds):
            return "", f"{value!r}, of {len(value)} parts, not {len(kinds)}"
        for number, (kind, one) in enumerate(zip(kinds, value)):
            wrong = kind(one)
            if wrong:
                return f"[{number}]{wrong[0]}", wrong[1]
        return None

    return check


def _raw(value: object) -> Wrong | None:
    """Judge what is kept of a tool's JSON as it was: a number without end is for the reader to refuse."""
    # Not by recursion: the reader of JSON takes more levels than this could.
    left = [(value, "")]
    while left:
        one, place = left.pop()
        wrong = None
        if one.__class__ is dict:
            wrong = next(filter(None, map(_check_of(str), one)), None)
            left += [(inner, f"{place}[{name!r}]") for name, inner in one.items()]
        elif one.__class__ is list:
            left += [(inner, f"{place}[]") for inner in one]
        elif not isinstance(one, float):
            wrong = _plain(one)
        if wrong:
            return f"{place}{wrong[0]}", wrong[1]
    return None


def _plain(value: object) -> Wrong | None:
    """Judge a value without a declared type."""
    if isinstance(value, str):
        return None if value.isascii() or _utf8(value) else ("", f"{value!r}, which can't be written as UTF-8")
    if isinstance(value, float):
        return None if math.isfinite(value) else ("", f"{value!r}")
    if isinstance(value, PLAIN):
        return None
    if is_dataclass(value):
        return _check_of(type(value))(value)
    if value.__class__ is dict:
        return _raw(value)
    if value.__class__ in (list, tuple):
        return _each(_raw)(value)
    return "", f"{value!r}, not plain data"


def _utf8(value: str) -> bool:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
