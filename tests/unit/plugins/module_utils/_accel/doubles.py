# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runners that answer from a table, or with one text, instead of running anything.

Tests import them with ``from doubles import RecordedRunner``; conftest.py puts this folder on the path.
"""

from __future__ import annotations

import fnmatch
import threading
from pathlib import PurePosixPath

from ansible_collections.accel.cluster.plugins.module_utils._accel.runner import Result

HANG = "hang"


class RecordedRunner:
    """Has the methods of ``runner.Runner``.

    answers  argv as a tuple -> (rc, stdout, stderr) or ``HANG``; the program is given by its name, whatever
             path ``which`` found it at. A command that is not in the table fails the test: an unexpected call is
             a finding.
    files    path -> text (or bytes); ``read`` strips as the real one does.
    tools    names that are installed; by default the programs of ``answers``.
    held     device node -> pids that have it open; the key "incomplete" stands for processes that can't be asked.
    locks    path -> process that has locked it.
    links    path -> path it resolves to; every other path resolves to itself.
    modes    path -> (permission bits, owner); every other file is 0644 and root's.
    blocked  files that do not answer, see ``Runner``; a test that wants some reads with a real runner.
    """

    def __init__(self, answers=None, files=None, tools=None, links=None, held=None, modes=None):
        """Keep the tables; ``calls`` collects what was asked, as tuples."""
        self.held = dict(held or {})
        self.modes = dict(modes or {})
        self.answers = dict(answers or {})
        self.files = dict(files or {})
        self.tools = {argv[0] for argv in self.answers} if tools is None else set(tools)
        self.links = dict(links or {})
        self.locks: dict[str, int] = {}
        self.calls: list[tuple[str, ...]] = []
        self.blocked: list[str] = []
        self.timeouts: list[float] = []
        self._lock = threading.Lock()

    def which(self, name):
        """Return a path for an installed program, None otherwise."""
        return "/usr/bin/" + name if name in self.tools else None

    def run(self, argv, timeout_seconds):
        """Return the recorded answer; rc 127 for a program that is not installed."""
        key = (PurePosixPath(argv[0]).name, *argv[1:])
        with self._lock:  # vendors may ask for several devices at the same time
            self.calls.append(key)
            self.timeouts.append(timeout_seconds)
        if key[0] not in self.tools:
            return Result(list(argv), 127, "", "No such file or directory")
        if key not in self.answers:
            raise AssertionError("command is not in the recording: " + " ".join(key))
        answer = self.answers[key]
        if answer == HANG:
            return Result(list(argv), None, "", "", hung=True)
        rc, out, err = answer
        return Result(list(argv), rc, out, err)

    def read_ahead(self, paths):
        """Do nothing: ``read`` costs nothing here."""

    def read(self, path):
        """Return the stripped text of a recorded file, None when there is none."""
        content = self.files.get(path)
        if isinstance(content, bytes):
            content = content.decode("utf-8", "replace")
        return None if content is None else content.strip()

    def read_bytes(self, path):
        """Return the bytes of a recorded file, None when there is none."""
        content = self.files.get(path)
        return content.encode() if isinstance(content, str) else content

    def glob(self, pattern):
        """Return recorded files, links and the folders above them that match, sorted; ``*`` stops at ``/``."""
        paths = set()
        for path in [*self.files, *self.links]:
            paths.add(path)
            paths.update(str(parent) for parent in PurePosixPath(path).parents)
        depth = pattern.count("/")
        return sorted(path for path in paths if path.count("/") == depth and _matches(path, pattern))

    def holders(self, wanted, seconds=5.0):
        """Return who has the nodes open, and whether all processes could be asked."""
        return {node: list(pids) for node, pids in self.held.items() if node in wanted}, "incomplete" not in self.held

    def hung_reads(self):
        """Return which files did not answer, in words."""
        return [f"{path}: no answer in time" for path in self.blocked]

    def lock_holder(self, path):
        """Return who has locked a file."""
        return self.locks.get(path)

    def access(self, path):
        """Return permission bits and owner."""
        return self.modes.get(path, (0o644, 0)) if self.glob(path) else None

    def realpath(self, path):
        """Return what the path resolves to."""
        return self.links.get(path, path)


def _matches(path, pattern):
    pairs = zip(path.split("/"), pattern.split("/"))  # equally long: glob compared the depth
    return all(fnmatch.fnmatchcase(part, wanted) for part, wanted in pairs)


class OneAnswer:
    """Answers every command with one text."""

    def __init__(self, text):
        self.text = text

    def which(self, name):
        # Kunlunxin's newer program is asked only where the older one is not there.
        return None if name == "xpu_smi" and "XPU-SMI" in self.text else "/usr/bin/" + name

    def run(self, argv, timeout_seconds):
        return Result(list(argv), 0, self.text, "")

    def read(self, path):
        return None

    def glob(self, pattern):
        return []

    def realpath(self, path):
        return path
