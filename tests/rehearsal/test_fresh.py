# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make rehearsal` in a new clone with neither `.venv` nor `.cache`, then again, against the promised times."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FIRST_SECONDS = 12 * 60
AGAIN_SECONDS = 3 * 60


@pytest.fixture(scope="module")
def clone(shell, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fresh") / "clone"
    assert shell("git", "clone", "-q", ROOT, folder).returncode == 0
    yield folder
    done = shell("make", "clean", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert not (folder / ".cache").exists()


def rehearse(shell, clone: Path) -> float:
    """Run it as a person would; return the seconds it took."""
    started = time.monotonic()
    done = shell("make", "rehearsal", cwd=clone, seconds=FIRST_SECONDS + 60)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    report = re.search(r"Report: (\S+/report\.html)", done.stdout)
    assert report, done.stdout[-2000:]
    assert "<html" in Path(report.group(1)).read_text(encoding="utf-8")
    return time.monotonic() - started


def test_a_clone_becomes_a_cluster_with_a_report_and_again_faster(shell, clone) -> None:
    first, again = rehearse(shell, clone), rehearse(shell, clone)
    print(f"first {first:.0f} s, again {again:.0f} s")
    assert first <= FIRST_SECONDS
    assert again <= AGAIN_SECONDS


def test_the_lines_it_ends_with_work(shell, clone) -> None:
    assert shell("ssh", "-F", ".cache/rehearsal/ssh/config", "gpu-01", "hostname", cwd=clone).stdout == "gpu-01\n"
    broken = shell("make", "inject", "HOST=gpu-01", "FAULT=card_lost", "SLOT=SXM5", cwd=clone)
    assert broken.returncode == 0, broken.stdout
    assert shell("make", "verify", cwd=clone).returncode != 0
    assert shell("make", "heal", "HOST=gpu-01", cwd=clone).returncode == 0
    healed = shell("make", "verify", cwd=clone)
    assert healed.returncode == 0, healed.stdout
