# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role and the playbook refuse, before they touch anything."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HOSTS = """
box ansible_connection=local ansible_python_interpreter={python} emulator_profile=nvidia_h100_8
rack ansible_connection=local ansible_python_interpreter={python} emulator_cards='["..."]'
plain ansible_connection=local ansible_python_interpreter={python}
"""
PLAY = """
- hosts: box
  gather_facts: false
  tasks:
    - name: Pretend to be that machine
      ansible.builtin.set_fact:
        virtualization_type: "{{ pretended_type }}"
        virtualization_role: "{{ pretended_role }}"
        cacheable: true
    - name: Ask for cards
      ansible.builtin.include_role:
        name: accel.cluster.emulator
        tasks_from: "{{ entry }}"
"""
FAULTS = (
    "card_lost, card_hung, cards_swapped, card_replaced, link_downtrained, ecc, remap_pending, xid79, throttle, "
    "port_down, partitioned, process_holding, tool_garbage, tool_truncated, tool_foreign, driver_library_mismatch"
)


@pytest.fixture
def refused(tmp_path):
    """Return a function: run a playbook on this machine as host "box", which must fail, and give what it said."""
    program = shutil.which(
        "ansible-playbook", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    )
    if not program:
        pytest.skip("ansible-playbook is not installed")
    (tmp_path / "hosts").write_text(HOSTS.format(python=sys.executable))
    (tmp_path / "play.yml").write_text(PLAY)
    (tmp_path / "ansible.cfg").write_text("[defaults]\n")
    environment = dict(
        os.environ,
        ANSIBLE_CONFIG=str(tmp_path / "ansible.cfg"),
        ANSIBLE_CALLBACK_RESULT_FORMAT="json",
        ANSIBLE_COLLECTIONS_PATH=next(path for path in sys.path if (Path(path) / "ansible_collections/accel").exists()),
        ANSIBLE_LOCAL_TEMP=str(tmp_path / "temp"),
        ANSIBLE_INJECT_FACT_VARS="false",
    )

    def run(playbook: str, **extra: str) -> str:
        words = [program, "-i", str(tmp_path / "hosts"), playbook]
        for name, value in extra.items():
            words += ["-e", f"{name}={value}"]
        done = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
        assert done.returncode == 2, done.stdout + done.stderr
        assert "changed=0" in done.stdout
        return done.stdout

    return run


@pytest.mark.parametrize(
    ("entry", "kind", "role", "says"),
    [
        (
            "main",
            "kvm",
            "host",
            "box gets no emulated cards, because they would hide real ones: it is kvm (host), accepted",
        ),
        ("main", "NA", "NA", "box gets no emulated cards, because they would hide real ones: it is NA (NA), accepted"),
        ("main", "kvm", "guest", "it is kvm (guest), accepted as guest: container, podman, docker, "),
        (
            "main",
            "podman",
            "guest",
            "/etc/accel/rehearsal is missing, which only the create step of the rehearsal writes",
        ),
        (
            "inject",
            "podman",
            "guest",
            "/etc/accel/rehearsal is missing, which only the create step of the rehearsal writes",
        ),
    ],
)
def test_the_role_refuses_what_may_have_real_cards(refused, entry, kind, role, says) -> None:
    if Path("/etc/accel/rehearsal").exists():
        pytest.skip("this machine is a test host: the role would not refuse it")
    told = refused("play.yml", pretended_type=kind, pretended_role=role, entry=entry)
    assert says in told
    assert "emulator : install" not in told
    assert "inject | Change" not in told


@pytest.mark.parametrize(
    ("asked", "complaints"),
    [
        ({}, ["inject_host is missing; accepted: box, rack", f"inject_fault is missing; accepted: {FAULTS}"]),
        (
            {"inject_host": "bix", "inject_fault": "melted"},
            [
                "inject_host=bix is not in the inventory; accepted: box, rack",
                f"inject_fault=melted; accepted: {FAULTS}",
            ],
        ),
        (
            {"inject_host": "plain", "inject_fault": "card_lost", "inject_slot": "SXM5"},
            ["plain has no emulated cards; accepted: box, rack"],
        ),
        ({"inject_host": "plain", "inject_state": "absent"}, ["plain has no emulated cards; accepted: box, rack"]),
        (
            {"inject_host": "all", "inject_fault": "card_lost", "inject_slot": "SXM5"},
            ["plain has no emulated cards; accepted: box, rack"],
        ),
        ({"inject_host": "box", "inject_fault": "card_lost"}, ["card_lost takes inject_slot"]),
        (
            {"inject_host": "box", "inject_fault": "cards_swapped", "inject_slot": "SXM1"},
            ["cards_swapped takes inject_slot and inject_slot_b"],
        ),
        (
            {"inject_host": "box", "inject_fault": "driver_library_mismatch", "inject_slot": "SXM1"},
            ["driver_library_mismatch takes no slot"],
        ),
        (
            {"inject_host": "box", "inject_fault": "card_lost", "inject_slot": "SXM1", "inject_state": "maybe"},
            ["inject_state=maybe; accepted: present, absent"],
        ),
    ],
)
def test_the_playbook_says_all_that_is_wrong_with_a_call(refused, asked, complaints) -> None:
    told = refused("accel.cluster.rehearsal.inject", **asked)
    assert f'"msg": "{"; ".join(complaints)}"' in told


CHANGE = """
- hosts: box
  gather_facts: false
  tasks:
    - name: Break it
      ansible.builtin.include_role:
        name: accel.cluster.emulator
        tasks_from: change
      vars:
        emulator_inject_fault: card_lost
        emulator_inject_slot: SXM9
        __emulator_program: "{{ program }}"
"""


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (None, "box shows no cards yet; playbook accel.cluster.rehearsal.create gives it some"),
        (
            "echo \"slot: 'SXM9' names no card; accepted: SXM1, SXM2, or an address\" >&2; exit 1",
            "box: slot: 'SXM9' names no card; accepted: SXM1, SXM2, or an address",
        ),
        ("exit 3", "box: accel-emulator ended with 3 and said nothing"),
    ],
    ids=["not installed", "refused", "silent"],
)
def test_what_a_host_can_not_show_is_said_in_one_sentence(refused, tmp_path, body, says) -> None:
    program = tmp_path / "accel-emulator"
    if body:
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)
    (tmp_path / "change.yml").write_text(CHANGE)
    told = refused("change.yml", program=str(program))
    assert [json.loads(line.partition("=> ")[2])["msg"] for line in told.splitlines() if '"msg": ' in line] == [says]
