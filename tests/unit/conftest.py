# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make ``ansible_collections.accel.cluster`` importable from a plain checkout."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from checkout import ROOT, make_importable

make_importable()

# Ignored where a shell started this in the background, and so in all that the tests start: some are to be interrupted.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


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
