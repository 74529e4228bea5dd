# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the emulator's package importable as it is on a test host."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "roles/emulator/files"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from accel_emulator import nvidia_smi
from emulated import Emulated


@pytest.fixture(autouse=True)
def no_packages(monkeypatch):
    """Leave out what the machine of the tests has installed."""
    monkeypatch.setattr(nvidia_smi, "LIBRARIES", ())


@pytest.fixture
def show(tmp_path):
    """Return a function: profile, faults and more of the state -> the host as real software would meet it."""
    return lambda profile, *faults, **more: Emulated(tmp_path, profile, *faults, **more)
