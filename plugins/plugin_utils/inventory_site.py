# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This plugin util is PRIVATE to the collection: its names may change in any release.
"""Everything that an inventory declares, and what is wrong with it: for the run's own and for a proposed one."""

from __future__ import annotations

import os
import zoneinfo
from dataclasses import dataclass
from pathlib import Path

import yaml
from ansible.errors import AnsibleError
from ansible.inventory.helpers import sort_groups
from ansible.inventory.manager import InventoryManager
from ansible_collections.accel.cluster.plugins.module_utils._accel import contract, contract_values, registry
from ansible_collections.accel.cluster.plugins.plugin_utils import inventory_files
from ansible_collections.accel.cluster.plugins.plugin_utils.inventory_secrets import secrets_in_clear
from ansible_collections.accel.cluster.plugins.plugin_utils.template_values import is_template

_ROLES = Path(__file__).resolve().parents[2] / "roles"
_CONNECTION = ("ansible_connection", "ansible_host", "ansible_port")


@dataclass
class Judged:
    """An inventory as it was read: the site, its files, the defaults of all roles, complaints and notes."""

    site: contract.Site
    files: inventory_files.InventoryFiles
    defaults: dict
    complaints: list[contract.Complaint]
    notes: list[str]


def judge(sources: list[str], loader, templar, hostvars=None, extra_vars=None) -> Judged:
    """Read and judge the inventory of ``sources``.

    ``hostvars`` are those of the run, which belong to its own inventory; of another inventory they are read here.
    """
    specs, defaults = _roles(loader)
    inventory, unread = _inventory(sources, loader)
    if hostvars is None:
        # Imported when needed: a run has them already.
        from ansible.vars.hostvars import HostVars
        from ansible.vars.manager import VariableManager

        hostvars = HostVars(inventory, VariableManager(loader=loader, inventory=inventory), loader)
    files = inventory_files.read(sources)
    extra_vars = extra_vars or {}
    site = _site(
        specs,
        extra_vars,
        groups={
            name: contract.Group([one.name for one in group.child_groups], [one.name for one in group.get_hosts()])
            for name, group in inventory.groups.items()
        },
        hosts=_hosts(inventory, files, hostvars, templar, specs, defaults, extra_vars),
        variables=files.variables(),
        group_files=files.group_files,
        host_files=files.host_files,
        stands=files.stands,
    )
    complaints, notes = contract.judge(site)
    return Judged(site, files, defaults, [*unread, *files.complaints, *secrets_in_clear(files), *complaints], notes)


def judge_command_line(loader, templar, variables: dict, extra_vars: dict) -> list[contract.Complaint]:
    """Return what is wrong with ``extra_vars``; ``variables`` are those of a host, which they may refer to."""
    specs, defaults = _roles(loader)
    own = templar.copy_with_new_env(available_variables={**defaults, **variables})
    known = contract.Site(specs=specs).known_variables()
    said = {name: _said(own, value, known[name]) for name, value in extra_vars.items() if name in known}
    return contract.judge_command_line(_site(specs, extra_vars, hosts={contract.COMMAND_LINE: said}))


def _site(specs, extra_vars, variables=(), **more):
    """Return a ``Site`` with what is known everywhere, and with the names that were given with ``-e``."""
    mentions = [contract.Mention(name, owner=contract.COMMAND_LINE) for name in extra_vars]
    return contract.Site(
        specs=specs,
        vendors=tuple(registry.VENDORS),
        time_zones=frozenset(zoneinfo.available_timezones()),
        variables=[*variables, *mentions],
        **more,
    )


def _roles(loader):
    """Return role -> variable -> option of all argument specifications, and the defaults of all roles."""
    specs, defaults = {}, {}
    for path in sorted(_ROLES.glob("*/meta/argument_specs.yml")):
        # Our own files, and no templates: Ansible's loader, which notes every value's line, takes far longer.
        entries = yaml.load(path.read_bytes(), Loader=inventory_files.LOADER)["argument_specs"].values()
        options = (entry.get("options") or {} for entry in entries)
        specs[path.parts[-3]] = {name: option for one in options for name, option in one.items()}
    for path in sorted(_ROLES.glob("*/defaults/main.yml")):
        defaults.update(loader.load_from_file(str(path), trusted_as_template=True) or {})
    return specs, defaults


def _inventory(sources, loader):
    """Parse the sources once more: variables tell nothing of groups below groups, nor of sources left out."""
    inventory = InventoryManager(loader=loader, sources=sources, parse=False)
    unread = []
    for source in sources:
        if not inventory.parse_source(source, cache=True):
            problem = "Ansible can't read it as an inventory and goes on without it"
            unread.append(contract.Complaint([inventory_files.shorter(source)], problem, "a readable inventory"))
    inventory.reconcile_inventory()
    return inventory, unread


def _hosts(inventory, files, hostvars, templar, specs, defaults, extra_vars):
    """Return host -> variable -> ``Declared`` for all that the inventory or the command line declares."""
    known = contract.Site(specs=specs).known_variables()
    hosts = {}
    for name, host in inventory.hosts.items():
        raw = hostvars.raw_get(name)
        # Defaults are there for declared values that refer to them; they are not judged.
        own = templar.copy_with_new_env(available_variables={**defaults, **raw, "hostvars": hostvars})
        places = files.places(name, [group.name for group in sort_groups(host.get_groups())])
        hosts[name] = {}
        for variable in (*sorted(known.keys() & set(raw)), *(one for one in _CONNECTION if one in raw)):
            if variable in extra_vars:
                declared = _said(own, raw[variable], known.get(variable, {}))
                declared.place = contract.COMMAND_LINE
            else:
                declared = templated(own, raw[variable])
                if variable in places:
                    declared.place, declared.scope = places[variable].place, places[variable].kind
            hosts[name][variable] = declared
    return hosts


def _said(templar, value, option):
    """Return a value that was given with ``-e`` as ``Declared``."""
    declared = templated(templar, value)
    declared.value = contract_values.truth_said(declared.value, option)
    return declared


def templated(templar, value):
    """Return a value as ``Declared``, worked out as for a role; ``error`` where that can't be done."""
    # Nine values in ten are plain, and there are thousands in a large inventory.
    if isinstance(value, (int, float)) or (isinstance(value, str) and not is_template(value)):
        return contract.Declared(value)
    try:
        return contract.Declared(templar.template(value))
    except AnsibleError as exc:
        return contract.Declared(None, error=str(exc).splitlines()[0][:200])


def below_inventory(path: str, sources: list[str]) -> str:
    """Return why a path must not be used: Ansible would read what is written there as part of the inventory."""
    wanted, here = os.path.realpath(path), os.path.realpath(os.curdir)
    for source in sources:
        if "," in source or not os.path.exists(source):
            continue
        folder = os.path.realpath(source if os.path.isdir(source) else os.path.dirname(os.path.abspath(source)))
        # A project that keeps hosts.yml in its root has everything "below the inventory".
        if os.path.isfile(source) and os.path.commonpath([folder, here]) == folder:
            folders = [os.path.join(folder, "group_vars"), os.path.join(folder, "host_vars")]
        else:
            folders = [folder]
        if any(os.path.commonpath([one, wanted]) == one for one in folders):
            return "below the inventory"
    return ""
