# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The benchmark compares a query with the commands that it asks, no others."""

from __future__ import annotations

import importlib.util
import re

import pytest
from checkout import ROOT
from emulated import Emulated


@pytest.fixture(scope="module")
def bench():
    spec = importlib.util.spec_from_file_location("bench", ROOT / "tests/bench/bench.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("host", "profile"), [("gpu-01", "nvidia_h100_8"), ("gpu-03", "amd_mi300x_8"), ("npu-01", "ascend_910b_8")]
)
def test_the_benchmark_runs_what_a_query_asks(bench, tmp_path, host, profile):
    emulated = Emulated(tmp_path, profile)
    emulated.observe()
    asked = {" ".join([argv[0].rpartition("/")[2], *argv[1:]]) for argv in emulated.asked}
    compared = {one for line in bench.VENDOR_COMMANDS[host] for one in re.split(" & ?", line) if one != "wait"}
    assert {one for one in asked if not one.startswith("journalctl")} == compared
