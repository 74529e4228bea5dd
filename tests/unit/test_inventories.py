# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole inventories through the real ansible-playbook: the example sites pass, the bad ones are refused untouched.

Programs that would connect to a host are replaced by one that leaves a mark, so "no host was asked" is seen.
"""

# A complaint stands here as it is printed, in one line or in two pieces.
# ruff: noqa: E501, ISC004

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from ansible_collections.accel.cluster.plugins.module_utils._accel import contract

ROOT = Path(__file__).resolve().parents[2]
BAD = ROOT / "tests/unit/inventories"
PLAYBOOK = "accel.cluster.preflight"
SECRET = "correct-horse-battery"
GROUPS = (
    "accepted: one of cluster_hosts, accelerator_nodes, scheduler_controllers, registry_hosts, storage_servers, "
    "monitoring_servers, login_nodes, gateway_nodes, or a node type below accelerator_nodes"
)
ADDRESS = "accepted: an IP address such as 192.0.2.11 or a host name such as gpu-01.example.org, and nothing else"

MISSPELT_GROUP = (
    f"group acelerator_nodes (hosts.yml:7): no playbook knows this group below cluster_hosts; {GROUPS}; "
    "did you mean accelerator_nodes?"
)
BAD_ADDRESS = f'gpu-02 (host_vars/gpu-02/connection.yml:2): ansible_host is "192.0.2.256"; {ADDRESS}'
COUNT = (
    'gpu-01, gpu-02 (group_vars/h100_nodes/cluster.yml:5): cluster_accelerator_count is "eight"; '
    "accepted: a whole number from 0 to 128, such as 8; did you mean 8?"
)
CLEAR = (
    "group scheduler_controllers (group_vars/scheduler_controllers/scheduler_database.yml:3): "
    "site_database_password is a secret in clear; "
    "accepted: !vault (ansible-vault encrypt_string), a lookup, or a variable that is one of these"
)
REFUSED = {
    "unknown_group": [MISSPELT_GROUP],
    "bad_address": [BAD_ADDRESS],
    "duplicate_slot": [
        "gpu-01, gpu-02 (group_vars/h100_nodes/cluster.yml:7): the slot of 0000:18:00.0, 0000:3a:00.0 in "
        'cluster_accelerator_slots is "SXM1"; accepted: a slot of its own for each card'
    ],
    "count_as_word": [COUNT],
    "secret_in_clear": [CLEAR],
    "everything": [
        "gpu-02 (host_vars/gpu-02/cluster.yml:3): cluster_language stands twice in one mapping, first in line 2; "
        "accepted: each key once",
        CLEAR,
        MISSPELT_GROUP,
        BAD_ADDRESS,
        "group h100_nodes (group_vars/h100_nodes/cluster.yml:10): cluster_acelerator_memory_gib is no variable of the "
        "collection, so nothing reads it; accepted: one that ansible-doc -t role accel.cluster.cluster lists; "
        "for your own another prefix than cluster_; did you mean cluster_accelerator_memory_gib?",
        COUNT,
        "gpu-01, gpu-02 (group_vars/h100_nodes/cluster.yml:7): the slot of 0000:18:00.0, 0000:3a:00.0 in "
        'cluster_accelerator_slots is "SXM1"; accepted: a slot of its own for each card',
        'gpu-02 (host_vars/gpu-02/cluster.yml:3): cluster_language is "en_GB"; accepted: one of en, zh; did you mean en?',
        'gpu-02 (host_vars/gpu-02/cluster.yml:3): cluster_language is "en_GB", but "en" for ctl-01, gpu-01; '
        "accepted: one value for the whole site, in group_vars/all/cluster.yml",
    ],
}


class Site:
    """A copy of an inventory in a project of its own, and a way to run playbooks on it."""

    def __init__(self, folder: Path, inventory: Path) -> None:
        self.folder = folder
        self.mark = folder / "a host was asked"
        self.inventory = folder / "inventories" / inventory.name
        shutil.copytree(inventory, self.inventory)
        if inventory.name == "everything":
            # Not in the repository: linters of YAML refuse a key that stands twice, as they should.
            path = self.inventory / "host_vars/gpu-02/cluster.yml"
            path.write_text(path.read_text(encoding="utf-8") + "cluster_language: en_GB\n", encoding="utf-8")
        programs = folder / "programs"
        programs.mkdir()
        for name in ("ssh", "scp", "sftp", "sshpass"):
            (programs / name).write_text(f"#!/bin/sh\necho \"$0 $*\" >>'{self.mark}'\nexit 255\n", encoding="utf-8")
            (programs / name).chmod(0o755)
        collections = next(path for path in sys.path if (Path(path) / "ansible_collections/accel/cluster").exists())
        self.environment = {
            "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(folder),
            "LC_ALL": "C.UTF-8",
            "ANSIBLE_COLLECTIONS_PATH": collections,
            "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
            "ANSIBLE_NOCOLOR": "1",
        }

    def play(self, *arguments: str, playbook: str = PLAYBOOK) -> subprocess.CompletedProcess:
        # The directory is the inventory, and the current one: what runs write must not land there.
        directory = json.dumps({"cluster_site_dir": f"{self.folder}/sites"})
        command = [sys.executable, "-m", "ansible", "playbook", "-i", str(self.inventory), playbook]
        command += ["--extra-vars", directory, *arguments]
        return subprocess.run(
            command, cwd=self.inventory, env=self.environment, capture_output=True, text=True, timeout=120, check=False
        )


@pytest.fixture
def site(request, tmp_path) -> Site:
    inventory = request.param
    made = Site(tmp_path, inventory)
    if inventory.name == "rehearsal":
        # What the playbook that makes the hosts leaves behind.
        hosts = ["ctl-01", "gpu-01", "gpu-02", "gpu-03", "npu-01"]
        state = {
            "networks": {"management": "10.99.0.0/24", "fabric": "10.99.1.0/24"},
            "ssh": {"id_ed25519": "/nowhere/key", "known_hosts": "/nowhere/known_hosts"},
            "hosts": {name: {"address": f"10.99.0.{number}"} for number, name in enumerate(hosts, 11)},
        }
        (tmp_path / ".cache/rehearsal").mkdir(parents=True)
        (tmp_path / ".cache/rehearsal/hosts.json").write_text(json.dumps(state), encoding="utf-8")
    return made


def complaints(done: subprocess.CompletedProcess) -> list[str]:
    """The numbered lines that a person reads; numbers are checked and taken off."""
    shown = re.findall(r"^(\d+)\. (.*)$", done.stderr + done.stdout, re.MULTILINE)
    assert [int(number) for number, _line in shown] == list(range(1, len(shown) + 1))
    return [line for _number, line in shown]


EXAMPLES = sorted(path.parent for path in (ROOT / "inventories").glob("*/hosts.yml"))


def test_every_kind_of_site_has_an_example():
    assert [path.name for path in EXAMPLES] == ["inference", "mixed", "multi_node", "rehearsal", "single_node"]


@pytest.mark.parametrize("site", EXAMPLES, ids=lambda path: path.name, indirect=True)
def test_example_sites_pass(site):
    done = site.play()
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^localhost +: ok=1 +changed=0 +unreachable=0 +failed=0 ", done.stdout, re.MULTILINE)
    assert done.stdout.count("\nTASK [") == 1
    assert not site.mark.exists()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example_sites_hold_no_variables_in_hosts_yml(path):
    def variables(group: dict | None) -> list:
        found = [group["vars"]] if group and "vars" in group else []
        found += [host for host in ((group or {}).get("hosts") or {}).values() if host]
        return found + [one for child in ((group or {}).get("children") or {}).values() for one in variables(child)]

    groups = yaml.safe_load((path / "hosts.yml").read_text(encoding="utf-8"))
    assert [one for group in groups.values() for one in variables(group)] == []
    assert set(contract.GROUPS[1:]) == set(groups["cluster_hosts"]["children"])


@pytest.mark.parametrize("site", [BAD / name for name in REFUSED], ids=lambda path: path.name, indirect=True)
def test_bad_inventories_are_refused_and_nothing_is_touched(site):
    done = site.play()
    assert done.returncode == 2
    assert complaints(done) == REFUSED[site.inventory.name]
    assert SECRET not in done.stdout + done.stderr
    assert not site.mark.exists()


@pytest.mark.parametrize("site", [BAD / "count_as_word"], ids=["count_as_word"], indirect=True)
@pytest.mark.parametrize(
    "arguments", [["--limit", "ctl-01"], ["--check"], ["--tags", "baseline"], ["-vvv"]], ids="_".join
)
def test_no_option_leaves_anything_out(site, arguments):
    # The count is wrong for gpu-01 and gpu-02, whatever the run is limited to.
    done = site.play(*arguments)
    assert done.returncode == 2
    assert COUNT in complaints(done)
    assert not site.mark.exists()


@pytest.mark.parametrize("site", [BAD / "secret_in_clear"], ids=["secret_in_clear"], indirect=True)
def test_secret_is_not_shown_at_the_highest_verbosity(site):
    done = site.play("-vvvvvv", "--diff")
    assert CLEAR in complaints(done)
    assert SECRET not in done.stdout + done.stderr


@pytest.mark.parametrize("site", [BAD / "bad_address"], ids=["bad_address"], indirect=True)
def test_plays_after_it_do_not_run(site):
    (site.folder / "site.yml").write_text(
        "- import_playbook: accel.cluster.preflight\n"
        "- hosts: cluster_hosts\n  gather_facts: false\n  tasks:\n    - ansible.builtin.ping:\n"
        "- hosts: localhost\n  gather_facts: false\n  tasks:\n    - ansible.builtin.debug: {msg: went on}\n",
        encoding="utf-8",
    )
    done = site.play(playbook=str(site.folder / "site.yml"))
    assert done.returncode == 2
    assert complaints(done) == [BAD_ADDRESS]
    assert "went on" not in done.stdout
    assert not site.mark.exists()


@pytest.mark.parametrize("site", [BAD / "sound"], ids=["sound"], indirect=True)
def test_the_mark_is_left_when_a_host_is_asked(site):
    # Without this, "no host was asked" above could not fail.
    (site.folder / "ping.yml").write_text(
        "- hosts: cluster_hosts\n  gather_facts: false\n  tasks:\n    - ansible.builtin.ping:\n", encoding="utf-8"
    )
    done = site.play(playbook=str(site.folder / "ping.yml"))
    assert done.returncode == 4
    assert "192.0.2.11" in site.mark.read_text(encoding="utf-8")


@pytest.mark.parametrize("site", [BAD / "sound"], ids=["sound"], indirect=True)
def test_misspelt_cluster_hosts_is_no_empty_success(site):
    hosts = site.inventory / "hosts.yml"
    hosts.write_text(hosts.read_text(encoding="utf-8").replace("cluster_hosts", "cluster_hots"), encoding="utf-8")
    done = site.play()
    assert done.returncode == 2
    assert complaints(done) == [
        "inventory: no host is in the group cluster_hosts; accepted: every host below cluster_hosts",
        f"group cluster_hots (hosts.yml:2): no playbook knows this group; {GROUPS}; did you mean cluster_hosts?",
    ]


@pytest.mark.parametrize("site", [BAD / "sound"], ids=["sound"], indirect=True)
def test_unreadable_inventory_is_no_empty_success(site):
    (site.inventory / "hosts.yml").write_text("cluster_hosts: [\n", encoding="utf-8")
    done = site.play()
    assert done.returncode == 2
    assert "hosts.yml:2: is no YAML that can be read; accepted: a mapping of variables" in complaints(done)


# What is given with -e


FRENCH = 'command line: cluster_language is "fr"; accepted: one of en, zh'


@pytest.mark.parametrize("playbook", ["verify", "survey", "accept_baseline"])
@pytest.mark.parametrize("site", [BAD / "sound"], ids=["sound"], indirect=True)
def test_a_wrong_word_on_the_command_line_is_refused_before_any_host_is_asked(site, playbook):
    done = site.play("-e", "cluster_language=fr", playbook=f"accel.cluster.{playbook}")
    assert done.returncode == 2, done.stdout + done.stderr
    assert complaints(done) == [FRENCH]
    assert not site.mark.exists()
    assert not (site.folder / "sites").exists()


@pytest.mark.parametrize("site", [BAD / "count_as_word"], ids=["count_as_word"], indirect=True)
def test_verify_speaks_of_hosts_whose_inventory_is_wrong(site):
    # That a count is wrong is in the report; only what this very call says wrong keeps it from being written.
    done = site.play("-e", "cluster_language=zh", playbook="accel.cluster.verify")
    assert done.returncode == 2, done.stdout + done.stderr
    assert complaints(done) == []
    (report,) = (site.folder / "sites/reports").glob("*/findings.json")
    assert json.loads(report.read_text(encoding="utf-8"))["run"]["language"] == "zh"
