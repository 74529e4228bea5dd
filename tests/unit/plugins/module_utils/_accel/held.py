# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which recordings the tests hold to values: those with which a test fails when what stands in them is changed.

    python held.py ANSWER.json TEST...    with ACCEL_RECORDINGS; a process of its own, because it runs pytest

That a test names or reads a recording says little. So each test that takes the fixture ``recordings`` runs again for
every file that it read: with every digit of that file another one, then with those of a part of it only, then with
nothing in it. Only an assertion that fails counts: a parser that refuses the change proves no value.
"""

from __future__ import annotations

import builtins
import io
import json
import os
import sys
from pathlib import Path

import pytest

OTHER_DIGITS = bytes.maketrans(b"0123456789", b"1234567890")
PARTS = 32
PASSED, FAILED, REFUSED = "passed", "failed", "refused"


def other_digits(data: bytes, start: int = 0, end: int = PARTS) -> bytes:
    """Return a file with other digits in some parts of it."""
    start, end = (len(data) * one // PARTS for one in (start, end))
    return data[:start] + data[start:end].translate(OTHER_DIGITS) + data[end:]


class Held:
    """A plugin of pytest: ``read`` is what tests read, ``held`` what they hold; ``unsteady`` tests fail undamaged."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.realpath(folder) + os.sep
        self.read: set[str] = set()
        self.held: set[str] = set()
        self.unsteady: list[str] = []
        self._opened: set[str] = set()
        self._damaged, self._damage = "", None
        self._open = io.open
        io.open = builtins.open = self.open

    def open(self, file, mode="r", *more, **named):
        """Open a file, or the damaged form of one."""
        path = "" if isinstance(file, int) else os.path.realpath(file)
        if not path.startswith(self.folder) or "r" not in mode:
            return self._open(file, mode, *more, **named)
        name = path[len(self.folder) :]
        self._opened.add(name)
        if name != self._damaged:
            return self._open(file, mode, *more, **named)
        with self._open(file, "rb") as handle:
            damaged = io.BytesIO(self._damage(handle.read()))
        if "b" in mode:
            return damaged
        return io.TextIOWrapper(damaged, encoding=named.get("encoding") or "utf-8", errors=named.get("errors"))

    def pytest_collection_modifyitems(self, items):
        """Keep the tests that read recordings."""
        items[:] = [one for one in items if "recordings" in one.fixturenames]

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem):
        """Run a test as it is, then with each of its files damaged."""

        def run(damage=None, name: str = "") -> str:
            self._damage, self._damaged = damage, name
            try:
                pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames})
            except AssertionError:
                return FAILED
            except (Exception, pytest.fail.Exception):
                return REFUSED
            finally:
                self._damaged = ""
            return PASSED

        self._opened = set()
        if run() != PASSED:
            self.unsteady.append(pyfuncitem.nodeid)
            return True
        self.read |= self._opened
        for name in sorted(self._opened - self.held):
            outcome = run(other_digits, name)
            # A parser that refuses the whole may take it with a part of it changed.
            for part in range(PARTS) if outcome == REFUSED else ():
                if outcome != FAILED:
                    outcome = run(lambda data, part=part: other_digits(data, part, part + 1), name)
            if outcome == FAILED or run(lambda _data: b"", name) == FAILED:
                self.held.add(name)
        return True


if __name__ == "__main__":
    plugin = Held(os.environ["ACCEL_RECORDINGS"])
    status = pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[2:]], plugins=[plugin])
    answer = {"read": sorted(plugin.read), "held": sorted(plugin.held), "unsteady": plugin.unsteady, "status": status}
    Path(sys.argv[1]).write_text(json.dumps(answer), encoding="utf-8")
