# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said in two places must be the same: defaults and their description, entry points and files, vendors."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest
import yaml
from ansible_collections.accel.cluster.plugins.module_utils._accel import contract, pci, registry
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors.base import Vendor

ROOT = Path(__file__).resolve().parents[2]
ROLES = sorted(path for path in (ROOT / "roles").iterdir() if path.is_dir())
EMULATOR = ROOT / "roles/emulator/files"
REHEARSAL = ROOT / "inventories/rehearsal"


def load(path: Path) -> dict:
    return (yaml.safe_load(path.read_text(encoding="utf-8")) or {}) if path.exists() else {}


def entries(role: Path) -> dict:
    return load(role / "meta/argument_specs.yml")["argument_specs"]


def included(role: Path) -> set[str]:
    """Task files that a file of the same role takes in: they are no entry points."""
    found = set()
    for path in role.glob("tasks/*.yml"):
        waiting = list(load_tasks(path))
        for task in waiting:
            for block in ("block", "rescue", "always"):
                waiting += task.get(block, [])
            for word in ("import_tasks", "include_tasks"):
                name = task.get(f"ansible.builtin.{word}")
                if name:
                    found.add(Path(name["file"] if isinstance(name, dict) else name).stem)
    return found


def load_tasks(path: Path) -> list[dict]:
    return yaml.safe_load(path.read_text(encoding="utf-8")) or []


def duplicates(ports: dict[str, int]) -> list[tuple[str, ...]]:
    """Names of variables that name the same port."""
    by_port: dict[int, list[str]] = {}
    for name, port in ports.items():
        by_port.setdefault(port, []).append(name)
    return [tuple(names) for names in by_port.values() if len(names) > 1]


@pytest.fixture(params=ROLES, ids=lambda path: path.name)
def role(request) -> Path:
    return request.param


def test_every_default_is_described_with_its_value_and_nothing_else_is(role):
    described = {}
    for options in (entry.get("options") or {} for entry in entries(role).values()):
        for name, option in options.items():
            if not option.get("required") and name.startswith(f"{role.name}_"):
                assert "default" in option, f"{name} has no default in the description"
                # An entry point may repeat a variable, but not with another default.
                assert described.setdefault(name, option["default"]) == option["default"], name
    assert described == load(role / "defaults/main.yml")


def test_every_option_bears_the_name_of_its_role(role):
    # An entry point may name variables of the contract that it reads; the contract's default holds.
    shared = load(ROOT / "roles/cluster/defaults/main.yml")
    for entry in entries(role).values():
        for name, option in (entry.get("options") or {}).items():
            assert name.startswith(f"{role.name}_") or shared[name] == option["default"], name


def test_every_entry_point_is_described_and_has_a_file(role):
    files = {path.stem for path in role.glob("tasks/*.yml")}
    wanted = files - included(role)
    if role.name == "cluster":
        wanted.add("contract")  # data, no tasks: see the role's README
    assert set(entries(role)) >= wanted, "a task file that is neither included nor an entry point"
    assert set(entries(role)) <= files | {"contract"}, "an entry point without a task file"


def test_every_description_says_what_it_is_about(role):
    for name, entry in entries(role).items():
        assert entry.get("short_description") and entry.get("description"), name
        for option, about in (entry.get("options") or {}).items():
            assert about.get("description") and about.get("type"), option


def test_every_role_has_a_readme_and_says_where_it_runs(role):
    assert (role / "README.md").stat().st_size > 300
    info = load(role / "meta/main.yml")["galaxy_info"]
    assert info["license"] == "GPL-3.0-or-later"
    assert info["min_ansible_version"] == "2.19.0"


def test_a_table_of_contents_is_short(role):
    main = role / "tasks/main.yml"
    assert not main.exists() or len(main.read_text(encoding="utf-8").splitlines()) <= 40


def test_equal_ports_are_seen():
    assert duplicates({"cluster_port_a": 9400, "cluster_port_b": 9100, "cluster_port_c": 9400}) == [
        ("cluster_port_a", "cluster_port_c")
    ]


def test_no_two_services_share_a_port():
    defaults = load(ROOT / "roles/cluster/defaults/main.yml")
    assert duplicates({name: value for name, value in defaults.items() if name.startswith("cluster_port_")}) == []


def test_declared_links_are_those_that_a_link_can_have():
    options = entries(ROOT / "roles/cluster")["contract"]["options"]
    assert options["cluster_accelerator_link_width"]["choices"] == [0, *pci._WIDTHS]
    assert options["cluster_accelerator_link_speed_gts"]["choices"] == [0, *pci._SPEEDS]


@pytest.mark.parametrize("name", sorted(registry.VENDORS))
def test_every_vendor_is_complete(name):
    vendor = registry.VENDORS[name]
    assert vendor.name == name
    assert vendor.pci_vendors
    for one in (*vendor.pci_vendors, *vendor.pci_classes, *vendor.pci_excluded):
        assert len(one) == 4 and int(one, 16) and one == one.lower()
    assert vendor.kernel_modules or name == "denglin"  # no source names that one
    # The base class only says that they must be there.
    assert type(vendor).query is not Vendor.query
    assert type(vendor).device_nodes is not Vendor.device_nodes


def test_vendors_do_not_share_an_id():
    ids = [one for vendor in registry.VENDORS.values() for one in vendor.pci_vendors]
    assert len(ids) == len(set(ids))


def test_playbooks_name_groups_of_the_contract_only():
    for path in (ROOT / "playbooks").rglob("*.yml"):
        for play in load_tasks(path):
            pattern = str(play.get("hosts", "all"))
            if "{{" in pattern:
                continue  # the host to break, named on the command line
            words = set(pattern.replace("!", "").split(":"))
            assert words <= {"all", "localhost", *contract.GROUPS}, path


def _emulator_models():
    sys.path.insert(0, str(EMULATOR))
    return importlib.import_module("accel_emulator.models")


@pytest.mark.parametrize("node_type", ["h100_nodes", "mi300x_nodes", "ascend910b_nodes"])
def test_the_rehearsal_declares_what_its_hosts_are_given(node_type):
    declared = load(REHEARSAL / "group_vars" / node_type / "cluster.yml")
    models = _emulator_models()
    profiles = [one for one in models.PROFILES.values() if one["model"] in declared["cluster_accelerator_models"]]
    assert len(profiles) == 1, "no one profile of the emulator fits"
    profile, model = profiles[0], models.MODELS[profiles[0]["model"]]
    assert declared["cluster_node_type"] == node_type
    assert declared["cluster_accelerator_vendor"] == profile["vendor"] == model["vendor"]
    assert declared["cluster_accelerator_count"] == len(profile["cards"])
    assert declared["cluster_accelerator_link_speed_gts"] == model["link_speed_gts"]
    assert declared["cluster_accelerator_link_width"] == model["link_width"]
    given = load(REHEARSAL / "group_vars" / node_type / "emulator.yml").get("emulator_driver_version")
    assert declared["cluster_driver_version"] == (given or profile["driver_version"])
    # Vendors keep some memory for themselves; the tolerance is 10 %.
    assert 0.95 <= model["memory_mib"] / 1024 / declared["cluster_accelerator_memory_gib"] <= 1


def test_the_changelog_tells_of_releases_only():
    version = load(ROOT / "galaxy.yml")["version"]
    releases = list(load(ROOT / "changelogs/changelog.yaml")["releases"])
    told = re.findall(r"^v(\d\S*)\n=+$", (ROOT / "CHANGELOG.rst").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(told) == sorted(releases)
    # What waits belongs to a version that is still to come: with the first fragment after a release galaxy.yml gets it.
    waiting = [path.name for path in (ROOT / "changelogs/fragments").glob("*.yml")]
    assert (version in releases) == (not waiting)
