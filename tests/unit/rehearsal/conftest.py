# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scripts of tools/ as modules."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[3] / "tools"


def load(name: str):
    """Return a new module from a script of tools/."""
    found = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture
def hosts(tmp_path):
    """Return tools/rehearsal_hosts.py with a cache of its own."""
    module = load("rehearsal_hosts")
    module.CACHE = tmp_path / "cache"
    return module


@pytest.fixture
def runner(tmp_path):
    """Return tools/run_tests.py with logs and results of its own."""
    module = load("run_tests")
    module.ROOT = tmp_path
    module.LOGS = tmp_path / "logs"
    module.RESULTS = tmp_path / "results"
    return module
