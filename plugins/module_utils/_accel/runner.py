# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""All input and output of the probes: bounded commands and bounded reads of small files.

A command that does not end in time is reported as hung and left behind when it cannot be killed:
a process in uninterruptible sleep on a sick device would otherwise take the whole run with it. The read of a
file of a dead card can sleep like that too; see ``reader.py``.
"""

from __future__ import annotations

import fcntl
import glob
import os
import select
import shutil
import signal
import stat
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO

from . import reader
from .reader import Blocked, Reader

# Directories searched besides PATH: vendors install here without touching PATH.
EXTRA_PATH = (
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
    "/opt/rocm/bin",
    "/usr/local/dcmi",
    "/opt/hyhal/bin",
    "/usr/local/hyhal/bin",
    "/usr/local/corex/bin",
)


# What is read of an answer, and what ends a command that never stops writing before it fills the file system.
READ_BYTES = 8 << 20
FLOOD_BYTES = 64 << 20
# How long the open files of all processes are looked through.
HOLDERS_SECONDS = 5.0
# How long one file may take: the kernel answers in microseconds, a card that wakes up in a second. When so much was
# lost with files that did not answer, the others get little: a dead switch has many cards behind it.
READ_SECONDS = 5.0
READ_SECONDS_LOST = 20.0
READ_SECONDS_LEAST = 0.5


@dataclass
class Result:
    """Outcome of one command. ``rc`` is None when it hung; text is decoded with replacement."""

    argv: list[str]
    rc: int | None
    stdout: str
    stderr: str
    hung: bool = False

    @property
    def command(self) -> str:
        """Return the command as one line, for evidence."""
        return " ".join(self.argv)


class Running:
    """The commands that run now. Each is in a session of its own, so that it would live on when this process ends.

    ``status`` is what the process ends with since it was told to end; from then on no command is started.
    """

    def __init__(self) -> None:
        """Begin without any."""
        self.status = 0
        self._at_once = False
        self._running: set[subprocess.Popen[bytes]] = set()
        # The threads that are just starting one, which nobody could kill yet.
        self._starting: set[int] = set()

    def start(self, argv: list[str], out: IO[bytes], err: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start a command with the C locale; OSError when it can't be, SystemExit when this process is to end."""
        environment = dict(os.environ, LC_ALL="C", LANGUAGE="C")
        self.go_on()
        thread = threading.get_ident()
        self._starting.add(thread)
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=environment,
                start_new_session=True,
            )
            self._running.add(process)
        finally:
            self._starting.discard(thread)
        if self.status:
            _kill(process)
            self.go_on()
        return process

    def go_on(self) -> None:
        """Raise SystemExit, in whatever thread, when this process was told to end."""
        if self.status:
            raise SystemExit(self.status)

    def ended(self, process: subprocess.Popen[bytes]) -> None:
        """Forget a command that has ended, or that can't be killed."""
        self._running.discard(process)

    def stop(self, status: int) -> None:
        """Kill all commands and readers, for good: this process ends."""
        self.status = status
        for process in list(self._running):
            _kill(process)
        reader.stop()

    def end_with_signals(self, at_once: bool = False) -> None:
        """Have the signals that end this process end its commands first, where nobody else has a use for them.

        ``at_once``: without going back through what is under way. There Python may be where it shows an exception and
        goes on, as in a callback; but a module has files of its own to remove.
        """
        self._at_once = self._at_once or at_once
        if threading.current_thread() is not threading.main_thread():
            return  # nor is it allowed to
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                signal.signal(number, self._told_to_end)

    def _told_to_end(self, number: int, _frame: object) -> None:
        status = 128 + number  # as a shell tells it
        if self.status:
            os._exit(status)  # once more: whatever is waited for, it is not waited for any longer
        idle = not self._running and not self._starting
        self.stop(status)
        if threading.get_ident() in self._starting:
            return  # start() goes on from here, when it knows what to kill
        if self._at_once and not self._starting:
            os._exit(status)
        if idle and number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(status)


RUNNING = Running()


class Runner:
    """Runs on the host it is created on. Tests pass a double with the same methods.

    ``blocked`` are the files that did not answer in time, and those of the same folders that were not asked after that.
    """

    def __init__(self) -> None:
        self.blocked: list[str] = []
        self._reader = Reader()
        self._ahead: dict[str, bytes | None] = {}
        self._dead: set[str] = set()
        self._lost = 0.0
        RUNNING.end_with_signals()

    def which(self, name: str) -> str | None:
        """Return the path of a program, None when it is not installed."""
        search = os.pathsep.join([os.environ.get("PATH", ""), *EXTRA_PATH])
        return shutil.which(name, path=search)

    def run(self, argv: list[str], timeout_seconds: float) -> Result:
        """Run ``argv`` in its own process group with the C locale; never raises for its outcome."""
        # Output goes to files, not pipes: a grandchild that survives the kill would keep a pipe open.
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            try:
                process = RUNNING.start(argv, out, err)
            except OSError as exc:
                return Result(list(argv), 127, "", str(exc))
            end = time.monotonic() + timeout_seconds
            try:
                with _Ending(process) as ending:
                    while not ending.within(max(0.0, min(0.1, end - time.monotonic()))):
                        RUNNING.go_on()
                        if _size(out) + _size(err) > FLOOD_BYTES:
                            _end(process)
                            said = f"{_text(err)}\nended: it wrote more than {FLOOD_BYTES >> 20} MiB"
                            return Result(list(argv), process.returncode, _text(out), said)
                        if time.monotonic() >= end:
                            _end(process)
                            return Result(list(argv), None, _text(out), _text(err), hung=True)
            except BaseException:
                _end(process)  # also when this is interrupted
                raise
            finally:
                RUNNING.ended(process)
            return Result(list(argv), process.returncode, _text(out), _text(err))

    def read_ahead(self, paths: list[str]) -> None:
        """Read files that ``read`` will be asked for, once each: in one exchange instead of many.

        When one of them does not answer at once, all are left to ``read``, which waits longer and tells for what.
        """
        try:
            self._ahead.update(zip(paths, self._reader.read_all(paths, READ_SECONDS_LEAST)))
        except Blocked:
            pass

    def read(self, path: str) -> str | None:
        """Return the text of a small file, stripped; None when it cannot be read, or does not answer (``blocked``)."""
        data = self._bytes(path)
        return None if data is None else data.decode("utf-8", "replace").strip()

    def read_bytes(self, path: str) -> bytes | None:
        """Return the bytes of a small file (a DMI table); None as in ``read``."""
        return self._bytes(path)

    def _bytes(self, path: str) -> bytes | None:
        if path in self._ahead:
            return self._ahead.pop(path)
        try:
            return self._bounded(path, lambda seconds: self._reader.read(path, seconds))
        except Blocked:
            return None

    def write(self, path: str, text: str) -> str | None:
        """Write a value into a file of the kernel; return why it could not be, None when it was."""
        try:
            problem = self._bounded(path, lambda seconds: self._reader.write(path, text, seconds))
        except Blocked:
            return "no answer in time"
        return None if problem is None else problem.decode("utf-8", "replace")

    def _bounded(self, path: str, ask: Callable[[float], bytes | None]) -> bytes | None:
        """Return what a file says; Blocked, now and for all other files of its folder, when it does not in time."""
        folder = os.path.dirname(path)
        if folder in self._dead:
            self.blocked.append(path)
            raise Blocked
        seconds = max(READ_SECONDS_LEAST, min(READ_SECONDS, READ_SECONDS_LOST - self._lost))
        try:
            return ask(seconds)
        except Blocked:
            self._lost += seconds
            self._dead.add(folder)
            self.blocked.append(path)
            raise

    def hung_reads(self) -> list[str]:
        """Return in words which files did not answer, one sentence a folder."""
        folders: dict[str, list[str]] = {}
        for path in self.blocked:
            folders.setdefault(os.path.dirname(path), []).append(os.path.basename(path))
        return [
            f"{folder}/{names[0]}: no answer in time"
            + (f"; not read either: {', '.join(dict.fromkeys(names[1:]))}" if names[1:] else "")
            for folder, names in folders.items()
        ]

    def glob(self, pattern: str) -> list[str]:
        """Return the matching paths, sorted."""
        return sorted(glob.glob(pattern))

    def holders(self, wanted: frozenset[str], seconds: float = HOLDERS_SECONDS) -> tuple[dict[str, list[int]], bool]:
        """Return the processes that have one of the ``wanted`` device nodes open, by node, and whether all were seen.

        Ends after ``seconds``: a host may have a hundred thousand open files. Processes that end meanwhile, and
        those of others where this is not root, can't be looked into; the latter make the answer incomplete.
        """
        found: dict[str, list[int]] = {}
        complete = True
        end = time.monotonic() + seconds
        for folder in glob.glob("/proc/[0-9]*"):
            if time.monotonic() > end:
                return found, False
            try:
                names = os.listdir(f"{folder}/fd")
            except PermissionError:
                complete = False
                continue
            except OSError:
                continue
            for name in names:
                try:
                    target = os.readlink(f"{folder}/fd/{name}")
                except OSError:
                    continue
                if target in wanted:
                    pids = found.setdefault(target, [])
                    pid = int(folder[len("/proc/") :])
                    if pid not in pids:
                        pids.append(pid)
        return found, complete

    def lock_holder(self, path: str) -> int | None:
        """Return the process that has locked a file, 0 where that is one of another container; None when none has."""
        try:
            with open(path, "rb") as file:
                asked = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
                kind, *_range, pid = struct.unpack("hhqqi", fcntl.fcntl(file, fcntl.F_GETLK, asked))
        except OSError:
            return None
        return None if kind == fcntl.F_UNLCK else max(pid, 0)

    def access(self, path: str) -> tuple[int, int] | None:
        """Return permission bits and owner of what a path leads to, None where there is nothing."""
        try:
            told = os.stat(path)
        except (OSError, ValueError):
            return None
        return stat.S_IMODE(told.st_mode), told.st_uid

    def realpath(self, path: str) -> str:
        """Return the path with every symbolic link resolved."""
        return os.path.realpath(path)


class BoundedRunner(Runner):
    """A runner whose commands share one time limit: what is asked after its end counts as hung."""

    def __init__(self, limit_seconds: float) -> None:
        """Start the clock."""
        super().__init__()
        self._end = time.monotonic() + limit_seconds

    def run(self, argv: list[str], timeout_seconds: float) -> Result:
        """Run ``argv`` for as long as it may take, but not longer than what is left."""
        left = self._end - time.monotonic()
        if left <= 0:
            return Result(list(argv), None, "", "the time for all commands was over", hung=True)
        return super().run(argv, min(timeout_seconds, left))


class _Ending:
    """Waits for the end of a process without looking again and again, which adds up to 50 ms to each command."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._handle: int | None = None
        try:
            self._handle = os.pidfd_open(process.pid)
        except (AttributeError, OSError):
            pass  # Linux before 5.3, or its headers when Python was built

    def __enter__(self) -> _Ending:
        return self

    def __exit__(self, *_unused: object) -> None:
        if self._handle is not None:
            os.close(self._handle)

    def within(self, seconds: float) -> bool:
        """Wait for at most ``seconds``; tell whether the process has ended."""
        if self._handle is not None:
            waiter = select.poll()
            waiter.register(self._handle, select.POLLIN)
            if not waiter.poll(seconds * 1000):
                return False
            seconds = 1.0  # it has ended; what is left is to collect it
        try:
            self._process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return False
        return True


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a command with all that it has started, unless it has ended: then its number may be that of another."""
    try:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        pass


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a command and wait for its end."""
    _kill(process)
    try:
        process.wait(timeout=2)
    except subprocess.TimeoutExpired:
        pass  # uninterruptible: leave it to init


def _size(handle: IO[bytes]) -> int:
    return os.fstat(handle.fileno()).st_size


def _text(handle: IO[bytes]) -> str:
    handle.seek(0)
    return handle.read(READ_BYTES).decode("utf-8", "replace")
