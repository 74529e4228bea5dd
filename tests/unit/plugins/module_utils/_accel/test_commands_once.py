# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No command of a vendor's tool runs twice in one query: a tool may take seconds, and a sick card makes it minutes.

Whatever the tools answer, in every combination: whole answers of every form, cards that hang, are refused or lost,
damage, words. What a command answers depends on the command alone, so that a query can be told again.
"""

from __future__ import annotations

import fnmatch
import re
import threading
import zlib
from collections import Counter
from pathlib import Path

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import pci, registry
from ansible_collections.accel.cluster.plugins.module_utils._accel.runner import Result
from doubles import HANG

RECORDINGS = Path(__file__).resolve().parents[4] / "recordings"
ADDRESS = re.compile(r"\b(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\b", re.IGNORECASE)
# On the bus, and in no recording: a card that no answer describes.
LOST = "00ff:e1:00.0"
SAID = (
    (1, "", "Permission denied\n"),
    (6, "No devices were found\n", ""),
    (1, "", "driver not loaded\n"),
    (3, "", ""),
    (0, "", ""),
    (0, "a layout of tomorrow\n", ""),
)
SEEDS = 400
# Numbers that may be tried where a tool lists none; not all of them are cards.
NODES = [f"/dev/davinci{number}" for number in range(4)]
# How a command asks for one card.
OF_ONE = re.compile(r"^(?:-i|-g|-d|-c|-id)$|[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")


class Counting:
    """Answers each command with what ``choose`` gives for it, and counts the commands."""

    def __init__(self, choose):
        self.choose = choose
        self.calls = Counter()
        self._lock = threading.Lock()

    def which(self, name):
        return "/usr/bin/" + name

    def run(self, argv, timeout_seconds):
        with self._lock:
            self.calls[tuple(argv)] += 1
        answer = self.choose(argv)
        if answer == HANG:
            return Result(list(argv), None, "", "", hung=True)
        return Result(list(argv), *answer)

    def read(self, path):
        return None

    def glob(self, pattern):
        return [node for node in NODES if fnmatch.fnmatchcase(node, pattern)]

    def realpath(self, path):
        return path


def recordings(vendor):
    return [path.read_text(encoding="utf-8") for path in sorted((RECORDINGS / vendor).iterdir())]


def addresses(texts):
    """Return the addresses of the cards that the recordings describe, and one that none does."""
    found = {pci.normalise(word) for text in texts for word in ADDRESS.findall(text)}
    return [*sorted(found), LOST]


def twice(name, places, choose):
    """Return the commands that one query, with the links after it, ran more than once, and how many ran at all."""
    vendor, runner = registry.VENDORS[name], Counting(choose)
    answer = vendor.query(runner, [pci.Function(place) for place in places], 1)
    well = all(tool.state == "ok" for tool in answer.tools)
    vendor.ask_ports(runner, answer.devices, 1, well)
    return [" ".join(argv) for argv, count in runner.calls.items() if count > 1], len(runner.calls)


@pytest.fixture(params=sorted(registry.VENDORS))
def vendor(request):
    return request.param


def test_every_recording_with_cards_that_answer_otherwise(vendor):
    texts = recordings(vendor)
    places = addresses(texts)
    outcomes = [HANG, *SAID, *((0, text, "") for text in texts), *((0, text[: len(text) // 2], "") for text in texts)]
    ran = 0
    for text in texts:
        for outcome in outcomes:
            for alone in (True, False):

                def choose(argv, whole=(0, text, ""), other=outcome, alone=alone):
                    of_one = any(OF_ONE.search(word) for word in argv[1:])
                    return other if of_one == alone else whole

                again, commands = twice(vendor, places, choose)
                assert not again
                ran += commands
    assert ran


def test_every_command_answers_as_it_likes(vendor):
    texts = recordings(vendor)
    places = addresses(texts)
    whole = [(0, text, "") for text in texts]
    # As many that hang as that answer: what is asked only when two others fail is reached too.
    outcomes = [*len(whole) * [HANG], *SAID, *whole, *((1, text, "warning\n") for text in texts)]
    for seed in range(SEEDS):

        def choose(argv, seed=seed):
            return outcomes[zlib.crc32(f"{seed} {argv}".encode()) % len(outcomes)]

        assert not twice(vendor, places, choose)[0], seed


def test_a_command_that_runs_twice_is_seen(vendor, monkeypatch):
    made = registry.VENDORS[vendor]
    once = made.query

    def two_times(runner, functions, timeout_seconds):
        once(runner, functions, timeout_seconds)
        return once(runner, functions, timeout_seconds)

    monkeypatch.setattr(made, "query", two_times)
    assert twice(vendor, [LOST], lambda argv: (0, "", ""))[0]
