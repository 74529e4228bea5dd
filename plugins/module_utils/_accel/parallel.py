# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Commands of vendor tools, several at the same time: one that hangs costs its time limit once, not once a card."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .runner import Result

if TYPE_CHECKING:
    from concurrent.futures import Future

# As many as a node has cards: they mostly wait, for the driver or for each other's lock.
LIMIT = 8


def run_all(runner, commands: list[list[str]], timeout_seconds: float, limit: int = LIMIT) -> list[Result]:
    """Return the results of ``commands`` in their order, at most ``limit`` of them running at a time."""
    if len(commands) < 2:
        return [runner.run(argv, timeout_seconds) for argv in commands]
    # Imported when needed: a host with one command needs no threads.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=min(limit, len(commands))) as pool:
        return list(pool.map(lambda argv: runner.run(argv, timeout_seconds), commands))


def beside(action: Callable[[], Any]) -> Future[Any]:
    """Run ``action`` beside what follows; ``result()`` waits for it and returns or raises what came of it."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(max_workers=1).submit(action)


def command_of(result: Result) -> str:
    """Return the command as a person would type it, without the folder that the tool was found in."""
    return " ".join([os.path.basename(result.argv[0]), *result.argv[1:]])
