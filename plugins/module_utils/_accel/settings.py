# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Settings files that others write too: JSON is merged, never replaced; where a file can't be read, and why.

What podman reads needs no merging: podman 4.3 (Debian 12) and later read drop-in files in
``/etc/containers/containers.conf.d`` and ``/etc/containers/registries.conf.d`` (containers.conf(5),
containers-registries.conf.d(5)). ``storage.conf`` has no such folder there, and Docker has none at all.
"""

from __future__ import annotations

import copy
import json
import re

from . import record
from .vendors.base import Unreadable

try:
    import tomllib  # type: ignore[import-not-found, unused-ignore]
except ImportError:  # Python before 3.11: then only the engine itself can say it
    tomllib = None  # type: ignore[assignment, unused-ignore]

APPEND, REPLACE = "append", "replace"


def parse_json(output: str) -> dict:
    """Return the mapping of a JSON file, {} for an empty one; Unreadable names line and fault, or a doubled key."""
    if not output.strip():
        return {}
    try:
        body = json.loads(output)
        found = record.faults(output)
    except json.JSONDecodeError as exc:
        raise Unreadable(f"line {exc.lineno} column {exc.colno}: {exc.msg}") from None
    except (ValueError, RecursionError) as exc:
        raise Unreadable(f"line 1: {type(exc).__name__}") from None
    if found:
        raise Unreadable(f"line {found[0][0]}: {found[0][1]}")
    if not isinstance(body, dict):
        raise Unreadable(f"line 1: it is {record.kind_of(body)}, not an object")
    return body


def merged(old: dict, new: dict, lists: str = APPEND) -> dict:
    """Return ``old`` with what ``new`` says: mappings key by key, anything else as in ``new``.

    Lists get the entries that they lack (``append``) or are taken as they are (``replace``). Keys that ``new`` does
    not name stay, in their order.
    """
    result = copy.deepcopy(old)
    for key, value in new.items():
        before = result.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            result[key] = merged(before, value, lists)
        elif isinstance(before, list) and isinstance(value, list) and lists == APPEND:
            result[key] = before + [one for one in value if one not in before]
        else:
            result[key] = copy.deepcopy(value)
    return result


def text_of(body: dict, like: str = "") -> str:
    """Return the text of a merged file, indented as the one it was made from."""
    found = re.search(r"^\{\s*\n([ \t]+)\"", like)
    return json.dumps(body, indent=found[1] if found else 4, ensure_ascii=False) + "\n"


def problem_of(output: str, path: str) -> str | None:
    """Return what is wrong with the syntax of a settings file (JSON, else TOML), None where nothing is.

    LookupError where this Python can't read TOML.
    """
    if path.endswith(".json"):
        try:
            parse_json(output)
        except Unreadable as exc:
            return str(exc)
        return None
    if tomllib is None:
        raise LookupError("Python before 3.11 reads no TOML")
    try:
        tomllib.loads(output)
    except (tomllib.TOMLDecodeError, RecursionError) as exc:
        told = re.fullmatch(r"(.*) \(at (line \d+, column \d+|end of document)\)", str(exc))
        end = f"line {output.count(chr(10)) + 1}"
        return f"{end if told and told[2].startswith('end') else told[2]}: {told[1]}" if told else str(exc)[:200]
    return None
