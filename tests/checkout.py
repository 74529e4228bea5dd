# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make ``ansible_collections.accel.cluster`` importable from a plain checkout, for tests that no pytest runs too."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def make_importable() -> None:
    """Put a folder on the path in which the checkout has the name that Ansible gives it; once is enough."""
    if "ansible_collections" in ROOT.parts or any(Path(one, "ansible_collections/accel").is_dir() for one in sys.path):
        return
    # A symlink of our own, not the one of the rehearsal: a new clone has none.
    home = Path(tempfile.mkdtemp(prefix="accel-unit-"))
    (home / "ansible_collections/accel").mkdir(parents=True)
    (home / "ansible_collections/accel/cluster").symlink_to(ROOT)
    sys.path.insert(0, str(home))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
