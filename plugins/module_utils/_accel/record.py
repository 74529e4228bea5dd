# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Records as files: canonical JSON, "same but for the clock", written whole or not at all.

A record that cannot be trusted is never repaired, guessed at or overwritten: it is refused with its
line, and a person decides. The history is a file of JSON lines that only grows.
"""

from __future__ import annotations

import errno
import fcntl
import glob
import json
import math
import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from json.decoder import scanstring  # type: ignore[attr-defined]

from . import reader

# Keys that say when something was looked at, not what was seen.
CLOCK_FIELDS = frozenset({"observed_at", "measured_at"})

# The cards of ten thousand nodes in one file have half of it.
MOST_BYTES = 64 << 20
# A disk answers in milliseconds; a file system whose server is gone never does.
MOST_SECONDS = 10.0

_BLANK = re.compile(r"[ \t\r\n]*")
_UNTOUCHED = "It is left untouched; correct it, or move it away to start anew."

# A place inside a JSON body, outermost key first.
Path = tuple  # of str and int


class RecordError(Exception):
    """A record that cannot be read or written; the text names the file, and the line where there is one."""


def now_utc() -> str:
    """Return the time as ``2026-11-30T01:02:03Z``."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def canonical(body: object) -> str:
    """Return the one text of a body: sorted keys, two spaces, a newline at the end."""
    return json.dumps(body, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def same(old: object, new: object) -> bool:
    """Tell whether two bodies differ in nothing but the clock fields, at any depth."""
    return without_clock(old) == without_clock(new)


def without_clock(body: object) -> object:
    """Return the body without its clock fields."""
    if isinstance(body, dict):
        return {key: without_clock(value) for key, value in body.items() if key not in CLOCK_FIELDS}
    if isinstance(body, (list, tuple)):
        return [without_clock(value) for value in body]
    return body


# Reading


def load(
    path: str, problems: Callable[[dict], Iterable[tuple[Path, str]]] | None = None, schema: int = 1
) -> dict | None:
    """Return the record in ``path``, None when there is no such file.

    ``problems`` names what is wrong with a body of this kind: (place inside the body, sentence).
    RecordError for whatever is not such a record.
    """
    try:
        raw = reader.read_whole(path, MOST_BYTES, MOST_SECONDS)
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise RecordError(f"{path} cannot be read: {reason(exc)}.") from exc
    except reader.Blocked as exc:
        raise RecordError(f"{path} cannot be read: no answer within {MOST_SECONDS:g} s.") from exc
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as exc:
        line = raw.count(b"\n", 0, exc.start) + 1
        column = exc.start - raw.rfind(b"\n", 0, exc.start)
        raise RecordError(f"{path} line {line} column {column}: not UTF-8 text. {_UNTOUCHED}") from exc
    return parse(text, path, problems, schema)


def parse(
    text: str, path: str, problems: Callable[[dict], Iterable[tuple[Path, str]]] | None = None, schema: int = 1
) -> dict:
    """Return the record that ``text`` is; RecordError names ``path``, line and column of what is wrong."""
    places: dict[Path, int] = {}
    try:
        body = json.loads(text)
        found = _walk(text, _blank(text, 0), (), places)[1]
    except json.JSONDecodeError as exc:
        raise RecordError(
            f"{path} line {exc.lineno} column {exc.colno}: not valid JSON ({exc.msg}). {_UNTOUCHED}"
        ) from exc
    except ValueError as exc:
        raise RecordError(f"{path}: not valid JSON ({exc}). {_UNTOUCHED}") from exc
    except RecursionError as exc:
        raise RecordError(f"{path}: nested too deep to be a record. {_UNTOUCHED}") from exc
    except MemoryError as exc:
        raise RecordError(f"{path}: there is not enough memory to read it. {_UNTOUCHED}") from exc
    for where, sentence in _shape(body, schema) or (problems(body) if problems else ()):
        while where and where not in places:
            where = where[:-1]
        found.append((places.get(where, 0), sentence))
    if found:
        offset, sentence = min(found, key=lambda one: one[0])
        line, column = text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
        more = f" ({len(found) - 1} more after it)" if len(found) > 1 else ""
        raise RecordError(f"{path} line {line} column {column}: {sentence}{more}. {_UNTOUCHED}")
    return body


def _shape(body: object, schema: int) -> list[tuple[Path, str]]:
    if not isinstance(body, dict):
        return [((), f"a record is an object, this is {kind_of(body)}")]
    if "schema" not in body:
        return [((), "the key 'schema' is missing")]
    number = body["schema"]
    if isinstance(number, bool) or number != schema:
        return [(("schema",), f"schema {json.dumps(number)} is not one this version reads (it reads {schema})")]
    return []


def kind_of(value: object) -> str:
    """Return the JSON word for the type of a value, with its article."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    kinds = ((dict, "an object"), (list, "a list"), (str, "a text"), (int, "a number"), (float, "a number"))
    return next((word for kind, word in kinds if isinstance(value, kind)), type(value).__name__)


def _blank(text: str, position: int) -> int:
    found = _BLANK.match(text, position)
    return found.end() if found else position


def faults(document: str) -> list[tuple[int, str]]:
    """Return the faults of a valid JSON text that json.loads lets pass (a key twice, NaN): line and sentence."""
    return [(document.count("\n", 0, at) + 1, told) for at, told in _walk(document, _blank(document, 0), (), {})[1]]


def _writable(value: str) -> bool:
    """Tell whether a text can be written: JSON can name half a character (\\ud800), which UTF-8 has no form for."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _walk(text: str, position: int, where: Path, places: dict[Path, int]) -> tuple[int, list[tuple[int, str]]]:
    """Note where each value of a JSON text starts; return the end, and the faults that json.loads lets pass.

    It takes the last of two equal keys without a word, which is how a badly merged baseline would lose
    a slot, and it takes NaN, which no other reader does.
    """
    places[where] = position
    faults: list[tuple[int, str]] = []
    if text[position] not in "{[":
        constant = re.compile("NaN|-?Infinity").match(text, position)
        if constant:
            faults.append((position, f"{constant.group()} is no JSON number"))
        value, end = json.JSONDecoder().raw_decode(text, position)
        if isinstance(value, float) and math.isinf(value) and not constant:
            faults.append((position, f"{text[position:end][:40]} is too large for a number"))
        if isinstance(value, str) and not _writable(value):
            faults.append((position, f"{text[position:end][:40]} holds half a character"))
        return end, faults
    closing, names, count = "}" if text[position] == "{" else "]", set(), 0
    position = _blank(text, position + 1)
    while text[position] != closing:
        step: str | int = count
        if closing == "}":
            start = position
            step, position = scanstring(text, position + 1, True)
            if not _writable(str(step)):
                faults.append((start, f"the key {text[start:position][:40]} holds half a character"))
            if step in names:
                faults.append((start, f"the key {step!r} stands there twice"))
            names.add(step)
            position = _blank(text, _blank(text, position) + 1)  # over the colon
        position, below = _walk(text, position, (*where, step), places)
        faults += below
        count += 1
        position = _blank(text, position)
        if text[position] == ",":
            position = _blank(text, position + 1)
    return position + 1, faults


# Writing

_REASONS = {
    errno.ENOSPC: "no space is left on the device",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ENOTDIR: "a part of the path is a file, not a directory",
    errno.EEXIST: "a part of the path is a file, not a directory",
    errno.EISDIR: "there is a directory of that name",
}


def reason(exc: OSError) -> str:
    """Return why a file operation failed, in words."""
    return _REASONS.get(exc.errno or 0, exc.strerror or str(exc))


def write(path: str, body: object, mode: int = 0o644) -> None:
    """Write a record atomically; RecordError when it cannot be, with the old one as it was."""
    commit(stage(path, body, mode), path)


def stage(path: str, body: object, mode: int = 0o644) -> str:
    """Write a body beside ``path``, safely on disk, and return the name of that file for ``commit``.

    Everything that is likely to fail (no space, read-only) fails here, before anything is replaced.
    """
    content = canonical(body).encode("utf-8")
    if len(content) > MOST_BYTES:
        raise RecordError(f"{path} cannot be written: it would be larger than any record. What was there is intact.")
    temporary = None
    try:
        directory = make_directory(os.path.dirname(path) or ".")
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        handle, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=directory)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
    except BaseException as exc:  # an interrupt leaves nothing behind either
        if temporary is not None:
            discard(temporary)
        if not isinstance(exc, OSError):
            raise
        raise RecordError(f"{path} cannot be written: {reason(exc)}. What was there before is intact.") from exc
    return temporary


def commit(temporary: str, path: str) -> None:
    """Put a staged file in the place of the old one."""
    try:
        os.replace(temporary, path)
    except OSError as exc:
        discard(temporary)
        raise RecordError(f"{path} cannot be written: {reason(exc)}. What was there before is intact.") from exc
    _sync_directory(os.path.dirname(path) or ".")


def discard(temporary: str) -> None:
    """Remove a staged file."""
    try:
        os.unlink(temporary)
    except OSError:
        pass  # a leftover hidden file harms nobody; the error that led here is the one to tell


def remove(path: str) -> None:
    """Remove a record for good; RecordError when it cannot be."""
    try:
        os.unlink(path)
    except OSError as exc:
        raise RecordError(f"{path} cannot be removed: {reason(exc)}.") from exc
    _sync_directory(os.path.dirname(path) or ".")


def leftovers(path: str) -> list[str]:
    """Return what killed runs staged for ``path``, whose name may be a pattern, and neither committed nor discarded.

    Only where nobody stages at the time: what another run is about to commit looks the same.
    """
    folder, name = os.path.split(path)
    eight = "?" * 8  # signs are what mkstemp adds
    return sorted(glob.glob(os.path.join(glob.escape(folder), f".{name}.{eight}")))


def make_directory(path: str) -> str:
    """Create a directory and what is missing above it, readable by all whatever the umask says."""
    if not os.path.isdir(path):
        make_directory(os.path.dirname(os.path.abspath(path)))
        try:
            os.mkdir(path)
            os.chmod(path, 0o755)
        except FileExistsError:
            if not os.path.isdir(path):  # someone else was faster is fine, a file is not
                raise
    return path


def _sync_directory(path: str) -> None:
    # The rename itself must survive a power cut too; not every file system can sync a directory.
    try:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)


# History


@contextmanager
def locked_history(path: str) -> Iterator[int]:
    """Open a history for ``add_events`` and hold its lock: of several runs on one site, one at a time."""
    try:
        make_directory(os.path.dirname(path) or ".")
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK, 0o644)
    except OSError as exc:
        raise RecordError(f"{path} cannot be written: {reason(exc)}.") from exc
    try:
        _check_kind(handle, path, "written")
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    finally:
        os.close(handle)


def _check_kind(handle: int, path: str, verb: str) -> None:
    try:
        reader.check_kind(os.fstat(handle).st_mode)
    except OSError as exc:
        raise RecordError(f"{path} cannot be {verb}: {reason(exc)}.") from exc


def append_history(path: str, events: list[dict]) -> None:
    """Append one line an event. All of them or none: what a full disk cut short is taken back."""
    if events:
        with locked_history(path) as handle:
            add_events(handle, path, events)


def add_events(handle: int, path: str, events: list[dict]) -> None:
    """Append to a history that is locked what does not stand there yet, in one write.

    So the same call is right after a run that was killed before, in, or after its write: whole lines are not repeated,
    and a line that was cut short is continued.
    """
    lines = [(json.dumps(event, sort_keys=True, ensure_ascii=False) + "\n").encode("utf-8") for event in events]
    size = os.fstat(handle).st_size
    try:
        *whole, cut = _read_all(handle, size).split(b"\n")
        there = Counter(whole)
        missing = []
        for line in lines:
            if there[line[:-1]]:
                there[line[:-1]] -= 1
            else:
                missing.append(line)
        if not missing:
            return
        content = b"".join(missing)
        if cut:  # a line that was left open must not swallow ours
            content = content[len(cut) :] if content.startswith(cut) else b"\n" + content
        _write_all(handle, content)
        os.fsync(handle)
    except OSError as exc:
        os.ftruncate(handle, size)
        raise RecordError(f"{path} cannot be written: {reason(exc)}. No line was added.") from exc


def _read_all(handle: int, size: int) -> bytes:
    content = b""
    while len(content) < size:
        piece = os.pread(handle, size - len(content), len(content))
        if not piece:
            break
        content += piece
    return content


def _write_all(handle: int, content: bytes) -> None:
    written = os.write(handle, content)
    while written < len(content):  # a full disk takes a part first and fails the second time
        written += os.write(handle, content[written:])


def read_history(path: str) -> list[dict]:
    """Return all events, oldest first; RecordError names the first line that is none."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with open(handle, encoding="utf-8", errors="replace") as file:
            reader.check_kind(os.fstat(handle).st_mode)
            lines = file.read().split("\n")
    except FileNotFoundError:
        return []
    except OSError as exc:
        raise RecordError(f"{path} cannot be read: {reason(exc)}.") from exc
    events = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            event = json.loads(line)
        except (ValueError, RecursionError) as exc:
            raise RecordError(f"{path} line {number}: not valid JSON ({exc}). {_UNTOUCHED}") from exc
        if not isinstance(event, dict):
            raise RecordError(f"{path} line {number}: an event is an object, this is {kind_of(event)}. {_UNTOUCHED}")
        events.append(event)
    return events


def history_of_slot(path: str, host: str, slot: str) -> list[dict]:
    """Return what happened at one place: the cards that came and went."""
    return [event for event in read_history(path) if event.get("host") == host and event.get("slot") == slot]


def history_of_serial(path: str, serial: str) -> list[dict]:
    """Return what happened to one card, by its serial or, for chips without one, by their UUID."""
    return [event for event in read_history(path) if serial in _names(event)]


def _names(event: dict) -> list:
    uuids = (event.get("old_uuids") or []) + (event.get("new_uuids") or [])
    return [name for name in (event.get("old_serial"), event.get("new_serial"), *uuids) if name]
