# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts that fail or fall silent while they are verified: the run goes on, and its report is true."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from ansible_collections.accel.cluster.plugins.module_utils._accel import judge

COLLECTIONS = Path(judge.__file__).absolute().parents[6]


def play(tmp_path, host, *arguments):
    """Run a playbook on one host that is given by its variables."""
    variables = {"cluster_site_dir": str(tmp_path / "site"), "cluster_name": "lab", **host}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"cluster_hosts": {"hosts": {"gpu-01": variables}}}))
    (tmp_path / "ansible.cfg").write_text("[defaults]\n")  # not that of the checkout, nor of the user
    environment = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
        "ANSIBLE_CONFIG": str(tmp_path / "ansible.cfg"),
        "ANSIBLE_HOME": str(tmp_path / "ansible"),
        "ANSIBLE_INJECT_FACT_VARS": "false",
    }
    command = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "hosts.yml", *arguments]
    return subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=180, check=False
    )


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("echo this Python is broken >&2; exit 1", "this Python is broken"),
        # A node whose kernel stopped answers nothing, and nothing closes the connection.
        ("exec sleep 120", "Timed out after 2 second"),
    ],
    ids=["fails", "freezes"],
)
def test_a_host_that_fails_its_first_question_is_in_the_report(tmp_path, program, words):
    interpreter = tmp_path / "python"
    interpreter.write_text(f"#!/bin/sh\n{program}\n")
    interpreter.chmod(0o755)
    host = {"ansible_connection": "local", "ansible_python_interpreter": str(interpreter)}
    done = play(tmp_path, host, "accel.cluster.verify", "-e", '{"acceptance_timeout_seconds": 2}')
    (findings,) = (tmp_path / "site/reports").glob("*/findings.json")
    body = json.loads(findings.read_text())
    assert done.returncode != 0
    assert body["run"]["verdict"] == "unknown"
    assert [(one["check"], one["hint"]) for one in body["findings"]] == [
        ("host.reachable", "host.reachable.crashed")
    ], done.stdout
    assert words in body["findings"][0]["message"] + body["findings"][0]["evidence"][0]["excerpt"]


@pytest.mark.parametrize("role", ["baseline", "driver"])
def test_a_host_that_dies_between_two_questions_is_not_judged_by_its_silence(tmp_path, role):
    (tmp_path / "play.yml").write_text(
        f"""
- hosts: cluster_hosts
  gather_facts: false
  ignore_unreachable: true
  tasks:
    - ansible.builtin.set_fact:
        ansible_facts: {{os_family: Debian, distribution: Debian, distribution_major_version: "12",
                        virtualization_type: podman, virtualization_role: guest, virtualization_tech_guest: [podman]}}
    - ansible.builtin.include_role:
        name: accel.cluster.{role}
        tasks_from: verify
"""
    )
    # Port 1 of the loopback refuses at once.
    dead = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}
    done = play(tmp_path, dead, "play.yml", "-e", "cluster_run_id=20261130T010203Z")
    assert "Leave out a host that does not answer any more" in done.stdout, done.stdout + done.stderr
    assert "UNREACHABLE!" in done.stdout and "failed=0" in done.stdout, done.stdout
    assert not list(tmp_path.glob("site/reports/**/*.json"))


@pytest.mark.parametrize(
    ("arguments", "names"),
    [([], r"\d{8}T\d{6}Z(-2)?"), (["-e", "acceptance_run_id=rack-7"], "rack-7")],
    ids=["named by the time", "named on the command line"],
)
def test_each_run_claims_its_folder(tmp_path, arguments, names):
    """Two runs of one ansible-playbook; the hosts need not answer for that."""
    started = """
- hosts: cluster_hosts
  gather_facts: false
  tasks:
    - ansible.builtin.include_role:
        name: accel.cluster.acceptance
        tasks_from: start
    - ansible.builtin.assert:
        that: acceptance_started.folder is directory
"""
    (tmp_path / "play.yml").write_text(started * 2)
    done = play(tmp_path, {"ansible_host": "127.0.0.1", "ansible_port": 1}, "play.yml", *arguments)
    assert done.returncode == 0, done.stdout
    folders = sorted(one.name for one in (tmp_path / "site/reports").iterdir())
    assert len(folders) == (1 if arguments else 2)
    assert all(re.fullmatch(names, folder) for folder in folders)
