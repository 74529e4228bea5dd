# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers with one damaged number in them: never an exception, which would hide all cards of the host."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import pci, registry, slots
from ansible_collections.accel.cluster.plugins.module_utils._accel.judge import judge_devices
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import as_dict
from ansible_collections.accel.cluster.plugins.module_utils._accel.runner import Result

RECORDINGS = Path(__file__).resolve().parents[4] / "recordings"
ADDRESSES = [f"0000:{bus}:00.0" for bus in ("18", "2a", "3a", "5d")]
FILES = [path for path in sorted(RECORDINGS.glob("*/*")) if path.parent.name in registry.VENDORS]
# Too long to be finite, too long for int(), a digit to str.isdigit() but to nothing else, no number in JSON.
DAMAGE = ("9" * 400, "9" * 5000, "\u00b2", "NaN")


class OneAnswer:
    """Answers every command with one text."""

    def __init__(self, text):
        self.text = text

    def which(self, name):
        return "/usr/bin/" + name

    def run(self, argv, timeout_seconds):
        return Result(list(argv), 0, self.text, "")

    def read(self, path):
        return None

    def glob(self, pattern):
        return []

    def realpath(self, path):
        return path


def query(vendor, text):
    functions = [pci.Function(address) for address in ADDRESSES]
    return registry.VENDORS[vendor].query(OneAnswer(text), functions, 1)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_one_damaged_number_is_survived(path):
    text = path.read_text(encoding="utf-8")
    numbers = list(re.finditer(r"\d+", text))
    for found in numbers[:: max(1, len(numbers) // 12)]:
        for damage in DAMAGE:
            answer = query(path.parent.name, text[: found.start()] + damage + text[found.end() :])
            seen = {"devices": [as_dict(device) for device in answer.devices], "count": answer.count, "bus_count": 4}
            json.dumps(seen, allow_nan=False)
            assert judge_devices("gpu-01", seen, {"cluster_accelerator_vendor": path.parent.name})
            assert not slots.problems(slots.build_record(seen, "gpu-01", "2026-11-30T01:02:03Z"))


def test_there_are_recordings_of_every_vendor():
    assert {path.parent.name for path in FILES} == set(registry.VENDORS)
