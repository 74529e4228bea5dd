# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Files read and written by a process of its own, because the file of a dead card can block whoever touches it.

The reader is left behind when it does not answer. A thread would not do: a process does not end while one of its
threads sleeps uninterruptibly in the kernel, and the module would hang as it ends.
"""

from __future__ import annotations

import json
import os
import select
import signal
import struct
import threading
import time

MOST_BYTES = 1 << 20
# Before what the reader sends back: the number of bytes that follow, below 0 for none at all.
_HEADER = struct.Struct("!q")


# The processes of all readers, for the end of this one: one that waits for a file does not see it.
_processes: set[int] = set()
_stopped = threading.Event()


class Blocked(Exception):
    """The file did not answer in time."""


def stop() -> None:
    """Kill all readers, for good: this process ends."""
    _stopped.set()
    for pid in list(_processes):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass


def _read_file(path: str) -> bytes | None:
    """Return the bytes of a small file, None when it cannot be read."""
    # Some hundred files of the kernel are read a query: without a buffer that is twice as fast.
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, ValueError):  # a NUL in the name
        return None
    try:
        found = part = os.read(handle, 1 << 14)
        while part and len(found) < MOST_BYTES:
            part = os.read(handle, 1 << 14)
            found += part
        return found[:MOST_BYTES]
    except OSError:
        return None
    finally:
        os.close(handle)


def _write_file(path: str, text: str) -> bytes | None:
    """Write a value into a file of the kernel; return why it could not be, None when it was."""
    try:
        # Not created: a file of the kernel is there or is not.
        with open(path, "r+b", buffering=0) as handle:
            handle.write(text.encode())
    except OSError as exc:
        return (exc.strerror or str(exc)).encode()
    return None


class Reader:
    """Starts its process when it is first asked, and a new one after one that was left behind."""

    def __init__(self) -> None:
        self._pid = 0
        self._requests = self._replies = -1
        self._lock = threading.Lock()

    def read(self, path: str, seconds: float) -> bytes | None:
        """Return the bytes of a small file, None when it cannot be read; Blocked when it does not answer."""
        return self._ask([path], seconds)

    def read_all(self, paths: list[str], seconds: float) -> list[bytes | None]:
        """Return the bytes of files that are asked for at once; Blocked when one of them does not answer."""
        data = self._ask(["", *paths], seconds) or b""
        answers: list[bytes | None] = []
        for _path in paths:
            (size,) = _HEADER.unpack_from(data)
            data = data[_HEADER.size :]
            answers.append(data[:size] if size >= 0 else None)
            data = data[max(0, size) :]
        return answers

    def write(self, path: str, text: str, seconds: float) -> bytes | None:
        """Write a value; return why it could not be, None when it was; Blocked when the file does not answer."""
        return self._ask([path, text], seconds)

    def _ask(self, words: list[str], seconds: float) -> bytes | None:
        with self._lock:
            for _attempt in range(2):
                if not self._pid and not self._start():
                    return _serve(words)  # no process can be started; then the file is touched from here
                try:
                    os.write(self._requests, json.dumps(words).encode() + b"\n")
                    return self._reply(time.monotonic() + seconds)
                except (OSError, EOFError):
                    self._leave()  # it died: that says nothing of the file, so another one is asked
                    if _stopped.is_set():
                        break
                except BaseException:
                    self._leave()  # also when this is interrupted: its answer must not be taken for that to the next
                    raise
            raise Blocked

    def _start(self) -> bool:
        theirs, self._requests = os.pipe()
        self._replies, back = os.pipe()
        try:
            self._pid = os.fork()
        except OSError:
            for one in (theirs, self._requests, self._replies, back):
                os.close(one)
            return False
        if not self._pid:
            try:
                os.close(self._requests)
                os.close(self._replies)
                for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
                    signal.signal(number, signal.SIG_DFL)  # what the parent does then is not for its copy to do
                _loop(theirs, back)
            finally:
                os._exit(0)  # nothing of what the parent has begun is ended here
        _processes.add(self._pid)
        os.close(theirs)
        os.close(back)
        return True

    def _reply(self, end: float) -> bytes | None:
        (size,) = _HEADER.unpack(self._take(_HEADER.size, end))
        return self._take(size, end) if size >= 0 else None

    def _take(self, size: int, end: float) -> bytes:
        data = b""
        while len(data) < size:
            ready, _unused, _none = select.select([self._replies], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise Blocked
            more = os.read(self._replies, size - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def _leave(self, wait: int = os.WNOHANG) -> None:
        """Give the process up, without waiting: it may not be one that can be killed."""
        pid, self._pid = self._pid, 0
        _processes.discard(pid)
        try:
            os.close(self._requests)
            os.close(self._replies)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, wait)
        except OSError:
            pass

    def __del__(self) -> None:
        # One that still answers is idle, and dies at once.
        if self._pid:
            self._leave(wait=0)


def _loop(requests: int, replies: int) -> None:
    """Serve until the parent is gone, with nothing of it kept open: who waits for the end of its output would wait."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in (requests, replies):
            try:
                os.close(int(name))
            except OSError:
                pass  # that of the listing itself
    with os.fdopen(requests, "rb") as asked:
        for line in asked:
            answer = _serve(json.loads(line))
            data = _told(answer)
            while data:
                data = data[os.write(replies, data) :]


def _told(answer: bytes | None) -> bytes:
    return _HEADER.pack(-1 if answer is None else len(answer)) + (answer or b"")


def _serve(words: list[str]) -> bytes | None:
    """Read one file, write one, or (after an empty word) read all."""
    if len(words) == 1:
        return _read_file(words[0])
    if not words[0]:
        return b"".join(_told(_read_file(path)) for path in words[1:])
    return _write_file(words[0], words[1])
