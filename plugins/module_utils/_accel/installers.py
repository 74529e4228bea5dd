# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Drivers that come as programs that install them (``.run``): what is there, what would run, and running it.

No package manager knows what such a program did, so three things stand in for it: its checksum before it runs, a
journal that is there for as long as it runs, and the version that is read back afterwards. A journal that was left says
that a program was ended halfway; what it left may tell the right version and lack half of its files.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from . import boot, driver_plan
from .parallel import command_of
from .runner import Runner
from .text import excerpt, whole_characters

STATE_DIR = "/var/lib/accel/installers"
VERSION_PATTERN = r"(?mi)^\s*version\s*=\s*\"?([^\s\"]+)"
# What programs that tell versions say where nothing is installed (modinfo, for one).
ABSENT_PATTERN = r"(?i)not found|no such file|not installed"
# Unpacked, such a file has several times its size; makeself writes how much into its head.
_UNPACKED = re.compile(rb"(?:OLDUSKB=|Uncompressed size: )(\d+)")
_UNPACKED_FACTOR = 4
_HEAD_BYTES = 1 << 16
_CHUNK_BYTES = 1 << 20
_SPARE_BYTES = 64 << 20


@dataclass(frozen=True)
class Installer:
    """One program, as declared. ``version`` is what ``version_file`` or ``version_command`` tells when it is done.

    ``upgrade_arguments`` are for a host that has another version, where one with ``upgrade_first`` runs before the
    others. ``target`` lies on the file system that is installed to, with ``room_mib`` wanted there; 0 estimates it.
    ``builds_module`` wants headers of the kernels.
    """

    name: str
    file: str = ""
    sha256: str = ""
    version: str = ""
    arguments: tuple[str, ...] = ()
    upgrade_arguments: tuple[str, ...] = ()
    version_file: str = ""
    version_command: tuple[str, ...] = ()
    version_pattern: str = VERSION_PATTERN
    absent_pattern: str = ABSENT_PATTERN
    success_statuses: tuple[int, ...] = (0,)
    upgrade_first: bool = False
    target: str = "/usr/local"
    room_mib: int = 0
    builds_module: bool = False
    timeout_seconds: int = 1800


@dataclass(frozen=True)
class Told:
    """The version that is installed, None where nothing is; with a ``problem``, neither is known."""

    version: str | None = None
    problem: str = ""


@dataclass(frozen=True)
class Run:
    """A program that is to run. ``before`` is the version that it finds."""

    installer: Installer
    before: str | None
    argv: tuple[str, ...]


@dataclass
class Plan:
    """What would run, the versions that are there, and each reason not to do it."""

    runs: list[Run] = field(default_factory=list)
    versions: dict[str, str | None] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)

    @property
    def changes(self) -> list[str]:
        """Say what would run."""
        return [
            f"{one.installer.name} {one.before or '(none)'} -> {one.installer.version}: {' '.join(one.argv[1:])}"
            for one in self.runs
        ]


@dataclass(frozen=True)
class Allowed:
    """What may be done, and the device nodes that no process may have open meanwhile."""

    nodes: Sequence[str] = ()
    downgrade: bool = False
    in_use: bool = False
    repeat: bool = False


# --------------------------------------------------------------------------------------------------------------- pure


def declared(rows: Iterable[Mapping]) -> list[Installer]:
    """Return installers from mappings; what a mapping leaves out or has as None has its default."""
    known = Installer.__dataclass_fields__
    made = []
    for row in rows:
        values = {name: value for name, value in row.items() if name in known and value is not None}
        for name in ("arguments", "upgrade_arguments", "version_command", "success_statuses"):
            if name in values:
                values[name] = tuple(values[name])
        made.append(Installer(**{**values, "name": str(values.get("name") or "")}))
    return made


def complaints(wanted: Sequence[Installer]) -> list[str]:
    """Return what is missing or wrong in a declaration."""
    found = []
    names = [one.name for one in wanted]
    for name in sorted({name for name in names if names.count(name) > 1}):
        found.append(f"two installers have the name {name}")
    for one in wanted:
        # It becomes the name of a file.
        if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", one.name):
            found.append(f"{one.name!r} is no name of an installer")
        if not one.version:
            found.append(f"no version is declared of {one.name}")
        if not os.path.isabs(one.file):
            found.append(f"{one.name}: file has to be an absolute path, it is {one.file!r}")
        if not re.fullmatch(r"[0-9a-fA-F]{64}", one.sha256):
            found.append(f"{one.name}: sha256 has to have 64 hexadecimal digits")
        if bool(one.version_file) == bool(one.version_command):
            found.append(f"{one.name}: declare either version_file or version_command, which tells what is installed")
        for what, pattern in (("version_pattern", one.version_pattern), ("absent_pattern", one.absent_pattern)):
            try:
                groups = re.compile(pattern).groups
            except re.error as error:
                found.append(f"{one.name}: {what}: {error}")
                continue
            if what == "version_pattern" and groups != 1:
                found.append(f"{one.name}: version_pattern needs one group, which is the version")
    return found


def equal(one: str | None, other: str | None) -> bool:
    """Tell whether two versions are the same; names of files and version files differ in rc1 and RC1."""
    return bool(one and other) and str(one).casefold() == str(other).casefold()


def older(one: str, other: str) -> bool:
    """Tell whether a version comes before another: 8.2.RC1 before 8.2.0, 25.0.rc1 before 25.0.rc1.1 and 25.0."""
    return _order(one) < _order(other)


def _order(version: str) -> list[tuple]:
    # A word stands before the end, and that before a number, so that a candidate comes before its release.
    parts = re.findall(r"\d+|[a-z]+", version.casefold())
    return [(2, int(part), "") if part.isdigit() else (0, 0, part) for part in parts] + [(1, 0, "")]


def read_journal(text: str | None) -> str:
    """Say in words what a journal that was left tells."""
    try:
        entry = json.loads(whole_characters(text or ""))
        words = f"version {entry['version']} was started {entry['started']}"
        return words + (f" and {entry['ended']}" if entry.get("ended") else " and did not end")
    except (ValueError, KeyError, TypeError, RecursionError):
        return "its journal can't be read"


# ------------------------------------------------------------------------------------------------------------- probes


def told(runner: Runner, one: Installer, timeout_seconds: float) -> Told:
    """Return which version is installed."""
    if one.version_file:
        paths = runner.glob(one.version_file)
        texts = [(path, runner.read(path)) for path in paths]
    else:
        program = runner.which(one.version_command[0])
        if program is None:
            return Told()
        result = runner.run([program, *one.version_command[1:]], timeout_seconds)
        said = f"{result.stdout}\n{result.stderr}"
        if result.hung:
            return Told(problem=f"{command_of(result)}: no answer in time")
        if result.rc and re.search(one.absent_pattern, said):
            return Told()
        if result.rc:
            return Told(problem=f"{command_of(result)} ended with {result.rc}: {excerpt(said, limit=200)}")
        texts = [(command_of(result), said)]
    found = {}
    for path, text in texts:
        match = re.search(one.version_pattern, text or "")
        if match is None:
            return Told(problem=f"{path} tells no version: {excerpt(text, limit=200) or 'it is empty'}")
        found[match[1]] = path
    if len(found) > 1:
        return Told(problem="several are installed: " + ", ".join(f"{found[one]} says {one}" for one in sorted(found)))
    return Told(next(iter(found), None))


def journals(runner: Runner, state_dir: str = STATE_DIR) -> dict[str, str]:
    """Return what the journals say that were left, by the name of the installer."""
    found = {}
    for path in runner.glob(f"{state_dir}/*.json"):
        found[os.path.basename(path)[: -len(".json")]] = read_journal(runner.read(path))
    return found


def observe(runner: Runner, wanted: Sequence[Installer], timeout_seconds: float, state_dir: str = STATE_DIR) -> list:
    """Return what is there of each installer, and whether a package has the file that tells its version.

    ``owner`` is the package, "" where there is none, None where no package database told.
    """
    left = journals(runner, state_dir)
    rows = []
    for one in wanted:
        seen = told(runner, one, timeout_seconds)
        paths = runner.glob(one.version_file) if one.version_file else []
        rows.append(
            {
                "name": one.name,
                "version": seen.version,
                "problem": seen.problem,
                "unfinished": left.pop(one.name, ""),
                "owner": _owner(runner, paths[0], timeout_seconds) if paths else None,
            }
        )
    return rows + [
        {"name": name, "version": None, "problem": "", "unfinished": words, "owner": None}
        for name, words in left.items()
    ]


def _owner(runner: Runner, path: str, timeout_seconds: float) -> str | None:
    """Return the package that has a file, "" where none has, None where that was not told."""
    asked = [("dpkg-query", "--search"), ("rpm", "-qf")]
    answers = []
    for program, option in asked:
        found = runner.which(program)
        if not found:
            continue
        result = runner.run([found, option, path], timeout_seconds)
        if result.rc == 0:
            words = result.stdout.strip()
            return words.partition(":")[0] if program == "dpkg-query" else words
        answers.append(not result.hung and re.search(r"no path found|not owned by any", result.stdout + result.stderr))
    return "" if answers and all(answers) else None


def plan(
    runner: Runner,
    wanted: Sequence[Installer],
    allowed: Allowed,
    timeout_seconds: float = 60,
    state_dir: str = STATE_DIR,
) -> Plan:
    """Return what is to be done; nothing of the host is written, and of the programs none is started."""
    made = Plan(refused=complaints(wanted))
    if made.refused:
        return made
    left = journals(runner, state_dir)
    for one in wanted:
        seen = told(runner, one, timeout_seconds)
        made.versions[one.name] = seen.version
        unfinished = left.pop(one.name, "")
        if unfinished and not allowed.repeat:
            made.refused.append(
                f"{one.name} was not finished: {unfinished}; what it left is not known to be whole. Look at "
                f"{state_dir}/{one.name}.log, then have it run again with driver_repeat_allowed"
            )
        elif seen.problem:
            made.refused.append(f"which version of {one.name} is installed is not known: {seen.problem}")
        elif unfinished or not equal(seen.version, one.version):
            arguments = one.upgrade_arguments or one.arguments if seen.version else one.arguments
            # By the shell: the folder may be mounted noexec, and the file needs no mode.
            made.runs.append(Run(one, seen.version, ("/bin/sh", one.file, *arguments)))
    made.runs.sort(key=lambda run: not (run.before and run.installer.upgrade_first))
    made.refused += [
        f"{name} is declared no longer, and was not finished: {words}; see to it and remove {state_dir}/{name}.json"
        for name, words in left.items()
    ]
    if made.runs:
        _refuse(runner, made, allowed)
    return made


def _refuse(runner: Runner, made: Plan, allowed: Allowed) -> None:
    for one in made.runs:
        installer = one.installer
        before, after = one.before or "", installer.version
        if before and older(after, before) and not allowed.downgrade:
            made.refused.append(
                f"{installer.name} would go back from {before} to {after}: set driver_downgrade_allowed"
            )
        busy = _running(runner, installer.file)
        if busy:
            made.refused.append(f"{installer.file} is running already, as process {busy}")
        problem = checked(installer)
        if problem:
            made.refused.append(problem)
        if installer.builds_module:
            made.refused += [
                f"kernel {kernel} may boot next and has no headers to build the module of {installer.name} with"
                for kernel in boot.missing_headers(runner, [f"{installer.name}-dkms"])
            ]
    made.refused += _rooms([one.installer for one in made.runs])
    made.refused += driver_plan.in_use(runner, allowed.nodes, allowed.in_use)


def _running(runner: Runner, path: str) -> str:
    """Return the process that runs a file: a connection that broke leaves it at work."""
    for entry in runner.glob("/proc/[0-9]*/cmdline"):
        if path in (runner.read(entry) or "").split("\0"):
            return entry.split("/")[2]
    return ""


def checked(one: Installer) -> str:
    """Return why the file is not the declared one, "" when it is."""
    digest = hashlib.sha256()
    try:
        with open(one.file, "rb") as file:
            for chunk in iter(lambda: file.read(_CHUNK_BYTES), b""):
                digest.update(chunk)
    except OSError as error:
        return f"{one.name}: {one.file} can't be read: {error.strerror}"
    if digest.hexdigest() == one.sha256.lower():
        return ""
    return f"{one.name}: {one.file} has the checksum {digest.hexdigest()}, declared is {one.sha256.lower()}"


def _rooms(coming: Sequence[Installer]) -> list[str]:
    """Return which file systems have too little room: for the unpacked file, and for what is installed of it."""
    temporary = os.environ.get("TMPDIR", "/tmp")
    rooms: dict[int, list] = {}
    for one in coming:
        unpacked = _unpacked(one.file)
        # Unpacked is one after the other, installed are all.
        for path, size in ((temporary, unpacked), (one.target, one.room_mib << 20 or unpacked)):
            while not os.path.isdir(path):
                path = os.path.dirname(path) or "/"
            try:
                device, free = os.stat(path).st_dev, os.statvfs(path)
            except OSError:
                continue
            room = rooms.setdefault(device, [path, free.f_bavail * free.f_frsize, 0, 0])
            if path == temporary:
                room[2] = max(room[2], size)
            else:
                room[3] += size
    return [
        f"the file system of {path} has {left >> 20} MiB left, {need + _SPARE_BYTES >> 20} MiB are needed"
        for path, left, need in ((path, left, passing + staying) for path, left, passing, staying in rooms.values())
        if left < need + _SPARE_BYTES
    ]


def _unpacked(path: str) -> int:
    """Return how many bytes a file has unpacked, from its head; nothing of it is run."""
    try:
        with open(path, "rb") as file:
            found = _UNPACKED.search(file.read(_HEAD_BYTES))
        return int(found[1]) << 10 if found else os.path.getsize(path) * _UNPACKED_FACTOR
    except OSError:
        return 0


# ------------------------------------------------------------------------------------------------------------ changes


def carry_out(runner: Runner, made: Plan, timeout_seconds: float = 60, state_dir: str = STATE_DIR) -> str:
    """Run what is planned, in its order; return why it did not come out, "" when it did.

    After the first that fails nothing more is run: the next may need it.
    """
    os.makedirs(state_dir, mode=0o755, exist_ok=True)
    for one in made.runs:
        problem = _run(runner, one, timeout_seconds, state_dir)
        made.versions[one.installer.name] = told(runner, one.installer, timeout_seconds).version
        if problem:
            return problem
    return ""


def _run(runner: Runner, one: Run, timeout_seconds: float, state_dir: str) -> str:
    installer = one.installer
    journal, log = f"{state_dir}/{installer.name}.json", f"{state_dir}/{installer.name}.log"
    # Once more: one that ran before it may have taken minutes.
    problem = checked(installer)
    if problem:
        return problem
    entry = {"version": installer.version, "file": installer.file, "sha256": installer.sha256, "started": _now()}
    _write(journal, json.dumps(entry))
    result = runner.run(list(one.argv), installer.timeout_seconds)
    _write(log, f"{result.command}\n{result.stdout}\n{result.stderr}")
    if result.hung:
        problem = f"did not end within {installer.timeout_seconds} s and was killed"
    elif result.rc not in installer.success_statuses:
        problem = f"ended with {result.rc}"
    else:
        seen = told(runner, installer, timeout_seconds)
        if not equal(seen.version, installer.version):
            problem = f"ended well, but then installed is {seen.version or seen.problem or 'nothing'}"
    if problem:
        _write(journal, json.dumps({**entry, "ended": problem}))
        return (
            f"{installer.name} {installer.version} {problem}. It said: "
            f"{excerpt(result.stderr, result.stdout[-1500:], limit=1500) or 'nothing'} (all of it: {log})"
        )
    os.unlink(journal)
    return ""


def _write(path: str, text: str) -> None:
    """Write a file that is there after a power cut too."""
    with open(path, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
