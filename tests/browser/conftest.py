# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One browser for all tests; the collection is made importable as for the unit tests."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import cdp
import pytest

UNIT = Path(__file__).resolve().parents[1] / "unit/conftest.py"
_spec = importlib.util.spec_from_file_location("accel_unit_conftest", UNIT)
_spec.loader.exec_module(importlib.util.module_from_spec(_spec))


@pytest.fixture(scope="session")
def browser():
    """Return a browser; skip where there is none."""
    program = cdp.find_chromium()
    if not program:
        pytest.skip("no Chromium on this machine (Debian: apt install chromium)")
    with cdp.Browser(program) as started:
        yield started


@pytest.fixture
def page(browser):
    """Return a new page."""
    new = browser.page()
    yield new
    new.close()
