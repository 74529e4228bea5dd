# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make ``ansible_collections.accel.cluster`` importable from a plain checkout."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

if "ansible_collections" not in ROOT.parts:
    # A symlink of our own, not the one of the rehearsal: plain pytest must work on a new clone.
    _home = Path(tempfile.mkdtemp(prefix="accel-unit-"))
    (_home / "ansible_collections/accel").mkdir(parents=True)
    (_home / "ansible_collections/accel/cluster").symlink_to(ROOT)
    sys.path.insert(0, str(_home))
    atexit.register(shutil.rmtree, _home, ignore_errors=True)


@pytest.fixture(scope="session")
def recordings() -> Path:
    """Return the folder of recordings of real tools; skip where none is handed."""
    folder = os.environ.get("ACCEL_RECORDINGS")
    if not folder:
        pytest.skip("ACCEL_RECORDINGS is not set: recordings of real tools are not in the repository")
    return Path(folder)


@pytest.fixture(scope="session")
def cases() -> Path:
    """Return the folder of small inputs with the right answer."""
    return ROOT / "tests/cases"
