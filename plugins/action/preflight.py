# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge the whole inventory on the controller; plugins/modules/preflight.py has the documentation."""

from __future__ import annotations

import os
import tempfile
import zoneinfo
from pathlib import Path

import yaml
from ansible import constants
from ansible.context import CLIARGS
from ansible.errors import AnsibleError
from ansible.inventory.helpers import sort_groups
from ansible.inventory.manager import InventoryManager
from ansible.plugins.action import ActionBase
from ansible.utils.vars import load_extra_vars
from ansible_collections.accel.cluster.plugins.module_utils._accel import contract, registry
from ansible_collections.accel.cluster.plugins.plugin_utils import inventory_files
from ansible_collections.accel.cluster.plugins.plugin_utils.inventory_secrets import secrets_in_clear
from ansible_collections.accel.cluster.plugins.plugin_utils.template_values import is_template

_ROLES = Path(__file__).resolve().parents[2] / "roles"
_CONNECTION = ("ansible_connection", "ansible_host", "ansible_port")
_COMMAND_LINE = "command line"
_SITE_DIR_FORM = "a directory outside the inventory that can be written to, such as /srv/accel/sites/lab"


class ActionModule(ActionBase):
    """Refuses a bad inventory: reads, judges and writes nothing but a probe in the site directory."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp=None, task_vars=None):
        """Return ``complaints`` and ``notes``; fail when there is any complaint."""
        result = super().run(tmp, task_vars)
        self.validate_argument_spec(argument_spec={})
        sources = [str(source) for source in CLIARGS.get("inventory") or constants.DEFAULT_HOST_LIST]
        specs, defaults = self._roles()
        inventory, unread = self._inventory(sources)
        files = inventory_files.read(sources)
        site = contract.Site(
            groups={
                name: contract.Group([one.name for one in group.child_groups], [one.name for one in group.get_hosts()])
                for name, group in inventory.groups.items()
            },
            hosts=self._hosts(inventory, files, task_vars["hostvars"], specs, defaults),
            specs=specs,
            vendors=tuple(registry.VENDORS),
            time_zones=frozenset(zoneinfo.available_timezones()),
            variables=files.variables() + [contract.Mention(name, _COMMAND_LINE) for name in self._extra_vars()],
            group_files=files.group_files,
            host_files=files.host_files,
            stands=files.stands,
        )
        complaints, notes = contract.judge(site)
        everything = [*unread, *files.complaints, *secrets_in_clear(files), *complaints]
        # Of a site that is refused anyway, not even its directory is made.
        everything += self._site_directory(site, defaults, sources, self._task.check_mode or bool(everything))
        result.update(
            changed=False,
            msg=f"The inventory is sound: {len(site.hosts)} hosts, {len(files.texts)} files",
            complaints=[one.as_dict() for one in contract.merged(everything)],
            notes=notes,
        )
        if everything:
            result.update(failed=True, msg=_message(result["complaints"]))
        else:
            self._display.display("\n".join([f"{result['msg']}.", *notes]))
        return result

    def _roles(self):
        """Return role -> variable -> option of all argument specifications, and the defaults of all roles."""
        specs, defaults = {}, {}
        for path in sorted(_ROLES.glob("*/meta/argument_specs.yml")):
            # Our own files, and no templates: Ansible's loader, which notes every value's line, takes far longer.
            entries = yaml.load(path.read_bytes(), Loader=inventory_files.LOADER)["argument_specs"].values()
            options = (entry.get("options") or {} for entry in entries)
            specs[path.parts[-3]] = {name: option for one in options for name, option in one.items()}
        for path in sorted(_ROLES.glob("*/defaults/main.yml")):
            defaults.update(self._loader.load_from_file(str(path), trusted_as_template=True) or {})
        return specs, defaults

    def _extra_vars(self):
        return load_extra_vars(self._loader)

    def _inventory(self, sources):
        """Parse the sources once more: variables tell nothing of groups below groups, nor of sources left out."""
        inventory = InventoryManager(loader=self._loader, sources=sources, parse=False)
        unread = []
        for source in sources:
            if not inventory.parse_source(source, cache=True):
                problem = "Ansible can't read it as an inventory and goes on without it"
                unread.append(contract.Complaint([inventory_files.shorter(source)], problem, "a readable inventory"))
        inventory.reconcile_inventory()
        return inventory, unread

    def _hosts(self, inventory, files, hostvars, specs, defaults):
        """Return host -> variable -> ``Declared`` for all that the inventory or the command line declares."""
        known = {name for options in specs.values() for name in options}
        hosts = {}
        for name, host in inventory.hosts.items():
            raw = hostvars.raw_get(name)
            # Defaults are there for declared values that refer to them; they are not judged.
            templar = self._templar.copy_with_new_env(available_variables={**defaults, **raw, "hostvars": hostvars})
            places = files.places(name, [group.name for group in sort_groups(host.get_groups())])
            hosts[name] = {}
            for variable in (*sorted(known & set(raw)), *(one for one in _CONNECTION if one in raw)):
                declared = _templated(templar, raw[variable])
                if variable in self._extra_vars():
                    declared.place = _COMMAND_LINE
                elif variable in places:
                    declared.place, declared.scope = places[variable].place, places[variable].kind
                hosts[name][variable] = declared
        return hosts

    def _site_directory(self, site, defaults, sources, look_only):
        """Yield what is wrong with the directories that hosts write records and reports to; one, if all is well."""
        seen = set()
        for values in site.hosts.values():
            declared = values.get("cluster_site_dir")
            if declared is None:
                own = {name: one.value for name, one in values.items() if not one.error}
                templar = self._templar.copy_with_new_env(available_variables={**defaults, **own})
                declared = _templated(templar, defaults["cluster_site_dir"])
            # A wrong type or a relative path is complained about as such.
            path = declared.value
            if declared.error or not isinstance(path, str) or not path.startswith("/") or path in seen:
                continue
            seen.add(path)
            problem = _below_inventory(path, sources) or _not_writable(path, look_only)
            if problem:
                text = f'cluster_site_dir is "{path}", {problem}'
                yield contract.Complaint(["inventory"], text, _SITE_DIR_FORM, "cluster_site_dir", declared.place)


def _templated(templar, value):
    """Return a value as ``Declared``, worked out as for a role; ``error`` where that can't be done."""
    # Nine values in ten are plain, and there are thousands in a large inventory.
    if isinstance(value, (int, float)) or (isinstance(value, str) and not is_template(value)):
        return contract.Declared(value)
    try:
        return contract.Declared(templar.template(value))
    except AnsibleError as exc:
        return contract.Declared(None, error=str(exc).splitlines()[0][:200])


def _below_inventory(path, sources):
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


def _not_writable(path, look_only):
    """Return why a directory can't be written to, or nothing; where it is only looked at, without making it."""
    existing = path
    while not os.path.exists(existing):
        existing = os.path.dirname(existing)
    if not os.path.isdir(existing):
        return f"but {existing} is no directory"
    if look_only:
        return "" if os.access(existing, os.W_OK | os.X_OK) else f"but {existing} can't be written to"
    try:
        os.makedirs(path, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path, prefix=".preflight-") as probe:
            probe.write(b"\0" * 4096)  # a full file system shows only when something is written
            probe.flush()
    except OSError as exc:
        return f"but nothing can be written there: {exc.strerror}"
    return ""


def _message(complaints):
    lines = [f"{number}. {one['message']}" for number, one in enumerate(complaints, 1)]
    count = "1 thing is" if len(lines) == 1 else f"{len(lines)} things are"
    return "\n".join([f"{count} wrong with the inventory; nothing was changed, no host was asked.", *lines])
