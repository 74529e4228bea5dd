# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Declarations that a role can't carry out: refused before anything is asked, with every reason, in what is printed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
DEBIAN = {"os_family": "Debian", "distribution": "Debian", "distribution_release": "bookworm"}
OTHER = {"os_family": "RedHat", "distribution": "Rocky", "distribution_release": "Blue Onyx"}
# Of the family, but no machine that runs these tests has its archive.
COUSIN = {"os_family": "Debian", "distribution": "Elsewhere", "distribution_release": "nowhere"}

DRIVER = {"cluster_accelerator_vendor": "nvidia", "cluster_driver_version": "535.261.03"}
PROGRAMS = [{"name": "driver", "file": "/x.run", "sha256": "0" * 64, "version": "1"}]
REGISTRY = {
    "cluster_registry_address": "ctl-01:5000",
    "cluster_registry_username": "node",
    "cluster_registry_password": "not-a-real-password",
    "cluster_registry_push_username": "builder",
    "cluster_registry_push_password": "nor-is-this-one-here",
}
LENGTH = "cluster_registry_password and cluster_registry_push_password need 16 characters and no line break"
NO_CA = "cluster_registry_ca_file /nonexistent/ca.crt is no file of the controller: run the playbook registry first"
NAMES = "cluster_registry_username and cluster_registry_push_username must be two names, of letters, digits, . _ -"

# By name: role, system, what is declared, every reason that has to be given
CASES = {
    "packages-elsewhere": (
        "driver",
        OTHER,
        {**DRIVER, "driver_source": "repository", "driver_packages": {"x": "1"}, "driver_repository_uri": "https://a"},
        [
            "driver_source=repository works with apt only, this is Rocky; driver_source=installers works there",
            "driver_repository_uri and driver_repository_key belong to driver_source=repository",
        ],
    ),
    "vendor-without-list": (
        "driver",
        DEBIAN,
        {"cluster_accelerator_vendor": "metax", "driver_source": "host"},
        ["no packages are known for the vendor metax: name them in driver_packages"],
    ),
    "no-archive": (
        "driver",
        COUSIN,
        {**DRIVER, "driver_source": "distribution", "driver_packages": {"x": "1"}},
        ["the host has no source of its distribution for nowhere: run apt-get update, or set driver_distribution_uri"],
    ),
    "programs-unnamed": (
        "driver",
        OTHER,
        {**DRIVER, "driver_source": "installers"},
        ["driver_installers has to name the programs of driver_source=installers"],
    ),
    "programs-and-packages": (
        "driver",
        DEBIAN,
        {
            **DRIVER,
            "driver_source": "installers",
            "driver_installers": PROGRAMS,
            "driver_packages": {"x": "1"},
            "driver_kernel_packages": {"linux-image-6.1.0-1-amd64": "1"},
        },
        [
            "driver_packages are not installed by driver_source=installers, which runs driver_installers only",
            "driver_kernel_packages are not installed by driver_source=installers either: pin the kernel in your image",
        ],
    ),
    "packages-and-programs": (
        "driver",
        DEBIAN,
        {**DRIVER, "driver_source": "host", "driver_installers": PROGRAMS},
        ["driver_installers belongs to driver_source=installers: the parts would come from two sources"],
    ),
    "repository-without-key": (
        "driver",
        DEBIAN,
        {**DRIVER, "driver_source": "repository", "driver_repository_uri": "https://mirror.example.org/x"},
        ["driver_repository_uri and driver_repository_key belong to driver_source=repository"],
    ),
    "directory-unnamed": (
        "driver",
        DEBIAN,
        {**DRIVER, "driver_source": "directory"},
        ["driver_directory belongs to driver_source=directory"],
    ),
    "engine-elsewhere": (
        "container",
        OTHER,
        {"container_engine": "docker", "container_blocked_registries": ["registry.example.org"]},
        [
            "no packages are known for Rocky",
            "container_blocked_registries is for podman, Docker can not be told that",
        ],
    ),
    "ca-not-there": (
        "container",
        DEBIAN,
        {
            **REGISTRY,
            "cluster_registry_ca_file": "/nonexistent/ca.crt",
            "container_blocked_registries": ["ctl-01:5000"],
        },
        [
            NO_CA,
            "container_blocked_registries names the registry of the site, ctl-01:5000",
        ],
    ),
    "registry-everything": (
        "registry",
        OTHER,
        {
            "cluster_registry_address": "ctl-01",
            "cluster_registry_push_address": "local",
            "cluster_registry_scheme": "http",
            "registry_certificate_file": "/c",
            "registry_renew_days": 365,
        },
        [
            "the registry is known for Debian only, this is Rocky",
            "cluster_registry_address must be a name and a port, such as ctl-01:5000",
            "cluster_registry_push_address must be an address and a port, such as 127.0.0.1:5001",
            "a registry that is set up here speaks https: change cluster_registry_scheme",
            NAMES,
            LENGTH,
            "registry_certificate_file and registry_certificate_key_file belong together",
            "registry_renew_days must be less than registry_certificate_days and registry_ca_days",
        ],
    ),
    "one-account-for-both": ("registry", DEBIAN, {**REGISTRY, "cluster_registry_push_username": "node"}, [NAMES]),
    "short-password": ("registry", DEBIAN, {**REGISTRY, "cluster_registry_password": "short"}, [LENGTH]),
    "broken-password": (
        "registry",
        DEBIAN,
        {**REGISTRY, "cluster_registry_push_password": "sixteen and more\nof two lines"},
        [LENGTH],
    ),
}
PLAY = [
    {
        "hosts": "all",
        "gather_facts": False,
        "tasks": [
            {"ansible.builtin.set_fact": {"cacheable": True, **{name: f"{{{{ system.{name} }}}}" for name in DEBIAN}}},
            {"ansible.builtin.set_fact": {"cacheable": True, "distribution_major_version": "0"}},
            {"ansible.builtin.include_role": {"name": "accel.cluster.{{ role }}", "tasks_from": "preflight"}},
        ],
    }
]


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> str:
    """Return what one run over all cases prints, each case a host."""
    home = tmp_path_factory.mktemp("refusals")
    hosts = {
        name: {"role": role, "system": system, "cluster_site_dir": str(home), **declared}
        for name, (role, system, declared, _reasons) in CASES.items()
    }
    inventory = {
        "all": {
            "hosts": hosts,
            "vars": {"ansible_connection": "local", "ansible_python_interpreter": sys.executable},
        }
    }
    (home / "hosts.yml").write_text(yaml.safe_dump(inventory), encoding="utf-8")
    (home / "play.yml").write_text(yaml.safe_dump(PLAY), encoding="utf-8")
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": os.pathsep.join(sys.path),
        "ANSIBLE_HOME": str(home),
        "ANSIBLE_FORCE_COLOR": "0",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
        "LC_ALL": "C.UTF-8",
    }
    command = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", str(home / "hosts.yml")]
    done = subprocess.run(
        [*command, str(home / "play.yml")],
        cwd=home,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", CASES)
def test_it_is_refused_with_every_reason_and_no_other(name, printed) -> None:
    _role, _system, _declared, reasons = CASES[name]
    assert json.dumps(f"{name}: {'; '.join(reasons)}") in printed, [
        line for line in printed.splitlines() if f"[{name}]" in line
    ]


def test_no_password_is_printed(printed) -> None:
    for secret in (REGISTRY["cluster_registry_password"], "nor-is-this-one-here", "sixteen and more"):
        assert secret not in printed
