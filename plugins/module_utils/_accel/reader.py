# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Files read and written by a process of its own, because the file of a dead card can block whoever touches it.

The reader is left behind when it does not answer. A thread would not do: a process does not end while one of its
threads sleeps uninterruptibly in the kernel, and the module would hang as it ends.
"""

from __future__ import annotations

import atexit
import errno
import json
import os
import select
import signal
import stat
import struct
import threading
import time
from io import FileIO

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


# What a regular file is not.
_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def check_kind(mode: int) -> None:
    """Raise OSError for what is no file: reading it may wait for somebody, never end, or do something."""
    for is_one, name in _KINDS:
        if is_one(mode):
            raise OSError(errno.EINVAL, f"it is {name}, not a file")


def _read_whole(path: str, most: int) -> bytes:
    """Return all bytes of a regular file; OSError tells why not."""
    check_kind(os.stat(path).st_mode)  # to open a device can do something already
    # What took its place meanwhile is not waited for.
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        now = os.fstat(handle)
        check_kind(now.st_mode)
        found = bytearray()
        while now.st_size <= most and len(found) <= most:  # some files of the kernel have no size
            part = os.read(handle, 1 << 20)
            if not part:
                return bytes(found)
            found += part
    finally:
        os.close(handle)
    raise OSError(errno.EFBIG, "it is larger than any record")


def _try_whole(path: str, most: int) -> bytes:
    """Return the bytes of a regular file behind a 0, or the number of an error with its words behind."""
    try:
        return _HEADER.pack(0) + _read_whole(path, most)
    except OSError as exc:
        return _HEADER.pack(exc.errno or errno.EIO) + (exc.strerror or str(exc)).encode()
    except ValueError as exc:  # a NUL in the name
        return _HEADER.pack(errno.EINVAL) + str(exc).encode()
    except MemoryError:
        return _HEADER.pack(errno.ENOMEM) + os.strerror(errno.ENOMEM).encode()


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
        self._pid = self._owner = 0
        self._requests: FileIO | None = None
        self._replies = -1
        self._lock = threading.Lock()

    def read(self, path: str, seconds: float) -> bytes | None:
        """Return the bytes of a small file, None when it cannot be read; Blocked when it does not answer."""
        return self._ask(["read", path], seconds)

    def read_all(self, paths: list[str], seconds: float) -> list[bytes | None]:
        """Return the bytes of files that are asked for at once; Blocked when one of them does not answer."""
        data = self._ask(["all", *paths], seconds) or b""
        answers: list[bytes | None] = []
        for _path in paths:
            (size,) = _HEADER.unpack_from(data)
            data = data[_HEADER.size :]
            answers.append(data[:size] if size >= 0 else None)
            data = data[max(0, size) :]
        return answers

    def write(self, path: str, text: str, seconds: float) -> bytes | None:
        """Write a value; return why it could not be, None when it was; Blocked when the file does not answer."""
        return self._ask(["write", path, text], seconds)

    def read_whole(self, path: str, most: int, seconds: float) -> bytes:
        """Return all bytes of a file; Blocked when it does not answer.

        OSError tells why it can't be read, also of what is no regular file, or has more bytes than ``most``.
        """
        data = self._ask(["whole", path, str(most)], seconds) or b""
        (number,) = _HEADER.unpack_from(data)
        if number:
            raise OSError(number, data[_HEADER.size :].decode("utf-8", "replace"), path)
        return data[_HEADER.size :]

    def _ask(self, words: list[str], seconds: float) -> bytes | None:
        with self._lock:
            if self._pid and self._owner != os.getpid():
                self._leave()  # this process is a copy of the one that it answers
            for _attempt in range(2):
                if (not self._pid and not self._start()) or self._requests is None:
                    return _serve(words)  # no process can be started; then the file is touched from here
                try:
                    asked = memoryview(json.dumps(words).encode() + b"\n")
                    while asked:
                        asked = asked[self._requests.write(asked) :]
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
        theirs, requests = os.pipe()
        self._replies, back = os.pipe()
        try:
            self._pid = os.fork()
        except OSError:
            for one in (theirs, requests, self._replies, back):
                os.close(one)
            return False
        if not self._pid:
            try:
                os.close(requests)
                os.close(self._replies)
                for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
                    signal.signal(number, signal.SIG_DFL)  # what the parent does then is not for its copy to do
                _loop(theirs, back)
            finally:
                os._exit(0)  # nothing of what the parent has begun is ended here
        self._owner = os.getpid()
        self._requests = FileIO(requests, "w")
        _processes.add(self._pid)
        os.close(theirs)
        os.close(back)
        return True

    def _reply(self, end: float) -> bytes | None:
        (size,) = _HEADER.unpack(self._take(_HEADER.size, end))
        return self._take(size, end) if size >= 0 else None

    def _take(self, size: int, end: float) -> bytes:
        data = bytearray()
        while len(data) < size:
            ready, _unused, _none = select.select([self._replies], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise Blocked
            more = os.read(self._replies, min(size - len(data), 1 << 20))
            if not more:
                raise EOFError
            data += more
        return bytes(data)

    def _leave(self, wait: int = os.WNOHANG) -> None:
        """Give the process up, without waiting: it may not be one that can be killed."""
        pid, self._pid = self._pid, 0
        _processes.discard(pid)
        try:
            os.close(self._replies)
            if self._requests:
                self._requests.close()
        except OSError:
            pass
        try:
            if self._owner == os.getpid():
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, wait)
        except OSError:
            pass

    def close(self) -> None:
        """End the process; one that still answers is idle, and dies at once."""
        if self._pid:
            self._leave(wait=0)

    def __del__(self) -> None:
        self.close()


_files = Reader()
# Not left to __del__, which comes when half of this module is gone.
atexit.register(_files.close)


def read_whole(path: str, most: int, seconds: float) -> bytes:
    """Return all bytes of a regular file, as ``Reader.read_whole`` does, with the one reader that is there for such."""
    return _files.read_whole(path, most, seconds)


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
    with os.fdopen(requests, "rb") as asked, os.fdopen(replies, "wb") as told:
        for line in asked:
            told.write(_told(_serve(json.loads(line))))
            told.flush()


def _told(answer: bytes | None) -> bytes:
    return _HEADER.pack(-1 if answer is None else len(answer)) + (answer or b"")


def _serve(words: list[str]) -> bytes | None:
    """Do one thing with one file, or read all."""
    what, *rest = words
    if what == "read":
        return _read_file(rest[0])
    if what == "all":
        return b"".join(_told(_read_file(path)) for path in rest)
    if what == "whole":
        return _try_whole(rest[0], int(rest[1]))
    return _write_file(rest[0], rest[1])
