# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Preflight asks no host, on hosts that would answer: ssh is replaced by one that leaves a mark and then connects."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
testinfra_hosts = ["ansible://scheduler_controllers"]


@pytest.fixture
def play(tmp_path):
    """Return a function that runs one ansible command on the rehearsal's inventory: its result, and who was asked."""
    mark = tmp_path / "asked"
    ssh = tmp_path / "ssh"
    ssh.write_text(f'#!/bin/sh\necho "$*" >>\'{mark}\'\nexec /usr/bin/ssh "$@"\n', encoding="utf-8")
    ssh.chmod(0o755)
    environment = {
        **os.environ,
        "ANSIBLE_FORCE_COLOR": "0",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_SSH_EXECUTABLE": str(ssh),
        "ANSIBLE_SSH_CONTROL_PATH_DIR": str(tmp_path / "cp"),
    }

    def run(program: str, *argv: str):
        command = [program, "--inventory", str(ROOT / "inventories/rehearsal"), *argv]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        return done, mark.read_text(encoding="utf-8") if mark.exists() else ""

    return run


def test_a_sound_inventory_passes_and_no_host_is_asked(host, play) -> None:
    done, asked = play("ansible-playbook", "accel.cluster.preflight")
    assert done.returncode == 0, done.stdout + done.stderr
    assert asked == ""


def test_a_bad_value_is_refused_and_no_host_is_asked(host, play) -> None:
    done, asked = play("ansible-playbook", "accel.cluster.site", "--extra-vars", "cluster_query_timeout_seconds=soon")
    assert done.returncode == 2
    assert (
        '1. ctl-01, gpu-01, gpu-02, gpu-03 and 1 more (command line): cluster_query_timeout_seconds is "soon"; '
        "accepted: a whole number from 1 to 3600, such as 8\n"
    ) in done.stderr + done.stdout
    assert asked == ""


def test_the_mark_is_left_when_a_host_is_asked(host, play) -> None:
    done, asked = play("ansible", host.check_output("hostname"), "--module-name", "ansible.builtin.ping")
    assert done.returncode == 0, done.stdout + done.stderr
    assert asked != ""
