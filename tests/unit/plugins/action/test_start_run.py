# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every run has a folder of its own."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest
from ansible_collections.accel.cluster.plugins.action.start_run import claim
from ansible_collections.accel.cluster.plugins.module_utils._accel import conclude

SECOND = "20261130T010203Z"


def test_runs_of_one_second_never_share_a_folder(tmp_path):
    reports = str(tmp_path / "site/reports")
    with ThreadPoolExecutor(8) as pool:
        names = list(pool.map(lambda _number: claim(reports, SECOND), range(24)))
    assert sorted(names) == sorted([SECOND, *(f"{SECOND}-{number}" for number in range(2, 25))])
    assert sorted(os.listdir(reports)) == sorted(names)
    assert stat.S_IMODE(os.stat(os.path.join(reports, SECOND)).st_mode) == 0o755


def test_a_run_that_was_broken_off_keeps_its_folder(tmp_path):
    (tmp_path / SECOND).mkdir()
    assert claim(str(tmp_path), SECOND) == f"{SECOND}-2"


def test_a_place_that_can_not_be_written_is_an_error(tmp_path):
    (tmp_path / "site").write_text("a file")
    with pytest.raises(OSError, match="site"):
        claim(str(tmp_path / "site/reports"), SECOND)


def test_a_numbered_run_tells_its_time():
    run = conclude.build_run("lab", f"{SECOND}-2", [], [], [], {}, {}, {}, {}, "2026-11-30T01:09:00Z", "en")
    assert run["started_at"] == "2026-11-30T01:02:03Z"
