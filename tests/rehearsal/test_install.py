# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection as others get it: the built tarball and a git URL, each used outside of the checkout."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tarball(shell, tmp_path_factory) -> Path:
    """Build the collection from what is committed, as a release is."""
    folder = tmp_path_factory.mktemp("tarball")
    clone = folder / "clone"
    assert shell("git", "clone", "-q", ROOT, clone).returncode == 0
    done = shell("ansible-galaxy", "collection", "build", clone, "--output-path", folder, cwd=folder)
    assert done.returncode == 0, done.stderr
    return next(folder.glob("accel-cluster-*.tar.gz"))


@pytest.fixture(params=["tarball", "git"])
def installed(request, shell, tmp_path, tarball) -> Path:
    """Return an empty folder with the collection installed into its `collections`."""
    source = tarball if request.param == "tarball" else f"git+file://{ROOT}"
    # Its dependencies come with the package `ansible`; no server is asked.
    argv = ["ansible-galaxy", "collection", "install", source, "--no-deps", "-p", tmp_path / "collections"]
    # An empty configuration: nothing of the checkout's is in sight.
    (tmp_path / "ansible.cfg").touch()
    done = shell(*argv, cwd=tmp_path, ANSIBLE_CONFIG=str(tmp_path / "ansible.cfg"))
    assert done.returncode == 0, done.stderr
    return tmp_path


def run(shell, folder: Path, *argv, **environment: str):
    """Run a program of Ansible on the installed collection only."""
    config = {"ANSIBLE_CONFIG": str(folder / "ansible.cfg"), "ANSIBLE_COLLECTIONS_PATH": str(folder / "collections")}
    return shell(*argv, cwd=folder, **config, **environment)


def test_the_tarball_has_what_runs_and_not_what_tests_it(tarball) -> None:
    with tarfile.open(tarball) as archive:
        tops = {name.split("/")[0] for name in archive.getnames()}
        # FILES.json lists every file with its checksum; a second look at what was packed.
        listed = {row["name"] for row in json.load(archive.extractfile("FILES.json"))["files"]}
    assert tops >= {
        "plugins",
        "roles",
        "playbooks",
        "meta",
        "docs",
        "inventories",
        "README.md",
        "LICENSE",
        "MANIFEST.json",
    }
    assert not tops & {"tests", "extensions", ".ci", ".cache", ".venv", "sites", ".git"}
    assert "plugins/modules/accelerator_info.py" in listed


def test_preflight_accepts_a_site_and_refuses_a_wrong_count(shell, installed) -> None:
    inventory = installed / "collections/ansible_collections/accel/cluster/inventories/multi_node"
    argv = ["ansible-playbook", "-i", inventory, "accel.cluster.preflight"]
    done = run(shell, installed, *argv)
    assert done.returncode == 0, done.stdout + done.stderr
    wrong = run(shell, installed, *argv, "-e", "cluster_accelerator_count=eight")
    assert wrong.returncode != 0
    assert "cluster_accelerator_count" in wrong.stdout + wrong.stderr


def test_a_module_works_on_this_machine(shell, installed) -> None:
    argv = ["ansible", "localhost", "-c", "local", "-m", "accel.cluster.accelerator_info"]
    done = run(shell, installed, *argv, ANSIBLE_LOAD_CALLBACK_PLUGINS="1", ANSIBLE_STDOUT_CALLBACK="ansible.posix.json")
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads(done.stdout)["plays"][0]["tasks"][0]["hosts"]["localhost"]
    assert isinstance(answer["devices"], list)
    assert answer["errors"] == []
