# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every run has a folder of its own."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from ansible.errors import AnsibleActionFail
from ansible_collections.accel.cluster.plugins.action import start_run
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


def test_a_run_with_a_name_of_its_own_started_when_it_started():
    outcome = conclude.conclude(
        "lab", SECOND, [], [], {}, {}, {}, now="2026-11-30T01:09:00Z", started_at="2026-11-30T01:08:00Z"
    )
    assert outcome["run"]["started_at"] == "2026-11-30T01:08:00Z"


class Task:
    action = "accel.cluster.start_run"
    async_val = 0
    check_mode = False

    def __init__(self, **args):
        self.args = args


class Connection:
    """Fails the test when anything of a connection is used."""

    class _shell:
        tmpdir = "none"


def start(site, **options):
    return start_run.ActionModule(Task(site_dir=str(site), **options), Connection(), None, None, None).run(task_vars={})


@pytest.mark.parametrize("run_id", ["", "mine"])
def test_a_run_leaves_nothing_but_its_folder(tmp_path, run_id):
    started = start(tmp_path, run_id=run_id)
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")] == [
        "reports",
        f"reports/{started['run_id']}",
    ]


@pytest.mark.parametrize("run_id", ["", "mine"])
def test_a_disk_that_has_no_room_for_a_report_is_told_before_any_host_is_asked(tmp_path, run_id):
    """A folder needs no room, so a run on a full disk lost all hosts one by one and ended without a word of why."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", str(disk)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.strip()}")
    try:
        with pytest.raises(AnsibleActionFail) as told:
            start(disk / "site", run_id=run_id)
        assert str(told.value) == (
            f"{disk}/site/reports can't take the report of a run: no space is left on the device. No host was asked."
        )
        assert os.listdir(disk / "site/reports") == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_folder_that_was_there_stays_when_the_disk_is_full(tmp_path, monkeypatch):
    (tmp_path / "reports/mine").mkdir(parents=True)

    def full(_handle):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(AnsibleActionFail, match="no space is left on the device"):
        start(tmp_path, run_id="mine")
    assert os.listdir(tmp_path / "reports") == ["mine"] and os.listdir(tmp_path / "reports/mine") == []
