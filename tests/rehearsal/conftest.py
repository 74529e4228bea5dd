# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the proving ground itself. They change this machine: packages, containers, networks. Root on Debian only."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def pytest_collection_modifyitems(items) -> None:
    """Skip all of it where no hosts can be made: containers with systemd need root, their root file system Debian.

    CI is such a machine, and the summary of a run counts what was skipped.
    """
    if os.geteuid() == 0 and "ID=debian" in Path("/etc/os-release").read_text(encoding="utf-8").splitlines():
        return
    for item in items:
        item.add_marker(pytest.mark.skip(reason="test hosts need root on a Debian machine"))


@pytest.fixture(scope="session")
def script():
    """Return tools/rehearsal_hosts.py as a module."""
    found = importlib.util.spec_from_file_location("rehearsal_hosts", ROOT / "tools/rehearsal_hosts.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def shell():
    """Return a function that runs a command in the checkout and returns what became of it."""

    # As a person's shell: what steers the run of these tests is not for the commands that they try.
    base = {k: v for k, v in os.environ.items() if not k.startswith(("ACCEL_", "ANSIBLE_", "MAKE"))}

    def run(*argv, seconds: float = 300, cwd: Path = ROOT, **environment: str):
        return subprocess.run(
            [str(word) for word in argv],
            cwd=cwd,
            env={**base, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    return run
