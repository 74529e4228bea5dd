# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection asks for what it uses: less would break a site, more is more for a site to get."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import re
import sys
from pathlib import Path

import ansible_collections
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[2]
DECLARED = yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))["dependencies"]
# Collections that may be used at all: those that the package `ansible` brings.
BROUGHT = {
    f"{path.parts[-3]}.{path.parts[-2]}": path
    for one in ansible_collections.__path__
    for path in Path(one).glob("*/*/MANIFEST.json")
}
OUR_CONTROLLER_CODE = ("action", "filter", "plugin_utils", "lookup", "callback", "module_utils", "modules")


def used_collections(root: Path) -> set[str]:
    """Return the collections that roles, playbooks and plugins below a folder name by something of theirs."""
    found = set()
    for path in [one for part in ("roles", "playbooks", "plugins") for one in (root / part).rglob("*")]:
        if path.suffix not in (".yml", ".j2", ".py"):
            continue
        text = re.sub(r"(?m)^\s*#.*$", "", path.read_text(encoding="utf-8"))
        # Python names a collection by its import; ansible.utils.vars is a module of ansible-core there.
        form = (
            r"ansible_collections\.([a-z]\w*\.[a-z]\w*)" if path.suffix == ".py" else r"\b([a-z]\w*\.[a-z]\w*)\.[a-z]"
        )
        found |= {name for name in re.findall(form, text) if name in BROUGHT}
    return found


def brought_along(package: str) -> set[str]:
    """Return a package and all that it needs in turn."""
    found, waiting = set(), [package]
    while waiting:
        name = waiting.pop().lower()
        if name not in found:
            found.add(name)
            needed = map(Requirement, importlib.metadata.requires(name) or ())
            waiting += [one.name for one in needed if not one.marker or one.marker.evaluate({"extra": ""})]
    return found


def imported(root: Path) -> set[str]:
    """Return the packages that plugins below a folder import, but for Python's own and what Ansible brings."""
    owners = importlib.metadata.packages_distributions()
    known = {"ansible", *brought_along("ansible-core")}
    found = set()
    for path in [one for part in OUR_CONTROLLER_CODE for one in (root / "plugins" / part).rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module]
            for name in (one.partition(".")[0] for one in names):
                if name not in sys.stdlib_module_names and name != "ansible_collections":
                    found |= {owner.lower() for owner in owners.get(name, [name])} - known
    return found


def test_galaxy_asks_for_the_collections_that_are_used():
    assert used_collections(ROOT) == set(DECLARED)


@pytest.mark.parametrize("name", DECLARED)
def test_the_tests_run_with_a_release_that_galaxy_allows(name):
    version = json.loads(BROUGHT[name].read_text(encoding="utf-8"))["collection_info"]["version"]
    assert version in SpecifierSet(DECLARED[name])


def test_requirements_ask_for_the_packages_that_are_used():
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    asked = {Requirement(line).name for line in lines if line and not line.startswith("#")}
    # `ansible` for the collections above.
    assert asked == {"ansible-core", "ansible", *imported(ROOT)}


@pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md"])
def test_readers_are_told_to_install_what_is_used(page):
    (line,) = re.findall(r"^\$ pip install ('ansible.*)$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert {Requirement(word.strip("'")).name for word in line.split()} == {"ansible", *imported(ROOT)}


def test_a_use_that_nobody_declared_is_seen(tmp_path):
    tasks = """
        # containers.podman.podman_image
        - community.crypto.x509_certificate:
            path: "{{ one | ansible.utils.ipaddr }}"
    """
    plugin = """
import json, netaddr
from ansible.utils.vars import one
from ansible_collections.ansible.posix.plugins import two
    """
    for name, text in (("roles/one/tasks/main.yml", tasks), ("plugins/filter/one.py", plugin)):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert used_collections(tmp_path) == {"community.crypto", "ansible.utils", "ansible.posix"}
    assert imported(tmp_path) == {"netaddr"}
