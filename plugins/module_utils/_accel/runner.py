# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""All input and output of the probes: bounded commands and small file reads.

A command that does not end in time is reported as hung and left behind when it cannot be killed:
a process in uninterruptible sleep on a sick device would otherwise take the whole run with it.
"""

from __future__ import annotations

import glob
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from typing import IO

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
READ_FILE_BYTES = 1 << 20
# How long the open files of all processes are looked through.
HOLDERS_SECONDS = 5.0


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


class Runner:
    """Runs on the host it is created on. Tests pass a double with the same methods."""

    def which(self, name: str) -> str | None:
        """Return the path of a program, None when it is not installed."""
        search = os.pathsep.join([os.environ.get("PATH", ""), *EXTRA_PATH])
        return shutil.which(name, path=search)

    def run(self, argv: list[str], timeout_seconds: float) -> Result:
        """Run ``argv`` in its own process group with the C locale; never raises for its outcome."""
        environment = dict(os.environ, LC_ALL="C", LANGUAGE="C")
        # Output goes to files, not pipes: a grandchild that survives the kill would keep a pipe open.
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            try:
                process = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    env=environment,
                    start_new_session=True,
                )
            except OSError as exc:
                return Result(list(argv), 127, "", str(exc))
            end = time.monotonic() + timeout_seconds
            with _Ending(process) as ending:
                while not ending.within(max(0.0, min(0.1, end - time.monotonic()))):
                    if _size(out) + _size(err) > FLOOD_BYTES:
                        self._kill(process)
                        said = f"{_text(err)}\nended: it wrote more than {FLOOD_BYTES >> 20} MiB"
                        return Result(list(argv), process.returncode, _text(out), said)
                    if time.monotonic() >= end:
                        self._kill(process)
                        return Result(list(argv), None, _text(out), _text(err), hung=True)
            return Result(list(argv), process.returncode, _text(out), _text(err))

    @staticmethod
    def _kill(process: subprocess.Popen[bytes]) -> None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except OSError:
            pass
        try:
            process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            pass  # uninterruptible: leave it to init

    def read(self, path: str) -> str | None:
        """Return the text of a small file, stripped; None when it cannot be read."""
        found = _bytes_of(path)
        return None if found is None else found.decode("utf-8", "replace").strip()

    def read_bytes(self, path: str) -> bytes | None:
        """Return the bytes of a small file (a DMI table); None when it cannot be read."""
        return _bytes_of(path)

    def write(self, path: str, text: str) -> str | None:
        """Write a value into a file of the kernel; return why it could not be, None when it was."""
        try:
            # Not created: a file of the kernel is there or is not.
            with open(path, "r+b", buffering=0) as handle:
                handle.write(text.encode())
        except OSError as exc:
            return exc.strerror or str(exc)
        return None

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

    def realpath(self, path: str) -> str:
        """Return the path with every symbolic link resolved."""
        return os.path.realpath(path)


class BoundedRunner(Runner):
    """A runner whose commands share one time limit: what is asked after its end counts as hung."""

    def __init__(self, limit_seconds: float) -> None:
        """Start the clock."""
        self._end = time.monotonic() + limit_seconds

    def run(self, argv: list[str], timeout_seconds: float) -> Result:
        """Run ``argv`` for as long as it may take, but not longer than what is left."""
        left = self._end - time.monotonic()
        if left <= 0:
            return Result(list(argv), None, "", "the time for all commands was over", hung=True)
        return super().run(argv, min(timeout_seconds, left))


def _bytes_of(path: str) -> bytes | None:
    # Some hundred files of the kernel are read a query: without a buffer that is twice as fast.
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = part = os.read(handle, 1 << 14)
        while part and len(found) < READ_FILE_BYTES:
            part = os.read(handle, 1 << 14)
            found += part
        return found[:READ_FILE_BYTES]
    except OSError:
        return None
    finally:
        os.close(handle)


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


def _size(handle: IO[bytes]) -> int:
    return os.fstat(handle.fileno()).st_size


def _text(handle: IO[bytes]) -> str:
    handle.seek(0)
    return handle.read(READ_BYTES).decode("utf-8", "replace")
