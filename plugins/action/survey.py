# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Propose an inventory from what all hosts showed; documented in plugins/modules/survey.py."""

from __future__ import annotations

import json
import os
import shutil
from datetime import datetime, timezone

from ansible import constants
from ansible.context import CLIARGS
from ansible.errors import AnsibleActionFail
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.action import ActionBase
from ansible_collections.accel.cluster.plugins.action import start_run
from ansible_collections.accel.cluster.plugins.module_utils._accel import conclude, doubts, hints, record, survey
from ansible_collections.accel.cluster.plugins.plugin_utils import inventory_site, proposal

ARGUMENTS = {
    "site_dir": {"type": "path", "required": True},
    "hosts": {"type": "list", "elements": "str", "required": True},
    "cards": {"type": "dict", "required": True},
    "versions": {"type": "dict", "default": {}},
    "baselines": {"type": "dict", "default": {}},
    "errors": {"type": "dict", "default": {}},
    "language": {"type": "raw", "default": "en"},
}

# What the surveyed inventory says of the whole site is kept; nobody can see it from a host.
DECLARED = (
    "cluster_name",
    "cluster_scenario",
    "cluster_networks",
    "cluster_vendors",
    "cluster_time_servers",
)
# How hosts are reached, without anything that may be a secret or the path of one.
CONNECTION = ("ansible_host", "ansible_port", "ansible_user", "ansible_connection")


class ActionModule(ActionBase):
    """Writes a folder of the site; no host is connected to, so it also runs when all of them are dead."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp=None, task_vars=None):
        """Return where the proposal lies and its doubts; a doubt is no failure of this task."""
        result = super().run(tmp, task_vars)
        options = self.validate_argument_spec(argument_spec=ARGUMENTS)[1]
        site_dir = str(options["site_dir"])
        sources = [str(source) for source in CLIARGS.get("inventory") or constants.DEFAULT_HOST_LIST]
        if inventory_site.below_inventory(site_dir, sources):
            raise AnsibleActionFail(
                f"{site_dir} (cluster_site_dir) lies below the inventory, where Ansible would read what is written. "
                "Name another with -e cluster_site_dir=/srv/accel/sites/lab"
            )
        language = str(options["language"])
        if language not in hints.LANGUAGES:
            known = ", ".join(hints.LANGUAGES)
            self._display.warning(f"{language!r} is no language of proposals ({known}): the proposal is in English")
            language = "en"
        groups, hostvars = task_vars["groups"], task_vars["hostvars"]
        hosts = [str(host) for host in options["hosts"]]
        everybody = [str(host) for host in groups["all"]]
        observations = {host: _observed(options, host) for host in hosts}
        proposed = survey.propose(
            observations,
            not_asked=[host for host in everybody if host not in observations],
            groups=groups,
            declared=read_declared(everybody, hostvars),
            language=language,
        )
        connections = {host: read_connection(host, hostvars) for host in proposed["hosts"]}
        folder = self._write(site_dir, proposed, observations, connections)
        # The proposal is the product of the run and no state of a host, so this never counts as a change.
        result.update(
            changed=False,
            folder=folder,
            node_types={name: one["hosts"] for name, one in proposed["node_types"].items()},
            doubts=proposed["doubts"],
            lines=proposal.lines(proposed, folder),
        )
        return result

    def _write(self, site_dir, proposed, observations, connections):
        """Claim a folder and fill it; on any error nothing of it is left."""
        base = os.path.join(site_dir, "survey")
        try:
            run_id = start_run.claim(base, datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ"))
        except OSError as exc:
            raise AnsibleActionFail(f"{base} can't take the proposal: {record.reason(exc)}.") from None
        folder = os.path.join(base, run_id)
        try:
            for path, text in proposal.files(proposed, run_id, connections).items():
                write(os.path.join(folder, path), text)
            proposed["doubts"] += self._refusals(folder, proposed["language"])
            for host, told in observations.items():
                if conclude.path_name_problem(host, "host") is None:
                    body = {"schema": survey.SCHEMA, "host": host, "observed_at": record.now_utc(), **(told or {})}
                    record.write(os.path.join(folder, "observed", f"{host}.json"), json.loads(json.dumps(body)))
            record.write(os.path.join(folder, "survey.json"), json.loads(json.dumps(proposed)))
            # Last, because it says that the rest is whole.
            write(os.path.join(folder, proposal.TODO), proposal.todo(proposed, run_id, folder))
        except (OSError, record.RecordError) as exc:
            shutil.rmtree(folder, ignore_errors=True)
            why = record.reason(exc) if isinstance(exc, OSError) else str(exc)
            raise AnsibleActionFail(f"{folder} can't take the proposal: {why}. Nothing of it was kept.") from None
        return folder

    def _refusals(self, folder, language):
        """Return what preflight will say of the proposal, as doubts: it is judged by the same code."""
        source = os.path.join(folder, proposal.INVENTORY)
        judged = inventory_site.judge([source], DataLoader(), self._templar)
        found = []
        for one in inventory_site.contract.merged(judged.complaints):
            doubt = {
                "doubt": "contract.refused",
                "node_type": None,
                "hosts": [],
                "slots": [],
                "seen": one.line().replace(f"{inventory_site.inventory_files.shorter(folder)}/", ""),
                "siblings": "",
            }
            found.append(doubts.explain(doubt, language))
        return found


def _observed(options: dict, host: str) -> dict:
    """Return what was registered of a host, by the name that ``survey.look_at`` knows it by."""
    told = {
        "cards": options["cards"].get(host),
        "versions": options["versions"].get(host),
        "baseline": options["baselines"].get(host),
        "error": options["errors"].get(host),
    }
    return {name: value for name, value in told.items() if value}


def read_declared(hosts: list, hostvars) -> dict:
    """Return what the surveyed inventory says of the whole site: what all hosts for which it is declared have alike."""
    found: dict = {}
    for name in DECLARED:
        told = [read_variable(hostvars, host, name) for host in hosts]
        told = [value for value in told if value is not None]
        if told and told[0] and all(value == told[0] for value in told):
            found[name] = told[0]
    return found


def read_connection(host: str, hostvars) -> dict:
    """Return the variables that a host is reached by, where they say more than its name."""
    told = {name: read_variable(hostvars, host, name) for name in CONNECTION}
    usual = {"ansible_host": host, "ansible_port": 22, "ansible_connection": "ssh"}
    return {name: value for name, value in told.items() if value and value != usual.get(name)}


def read_variable(hostvars, host: str, name: str):
    """Return a variable as plain data; None where it is not set or can't be worked out."""
    try:
        variables = hostvars[host]
        return json.loads(json.dumps(variables[name])) if name in variables else None
    except Exception:  # whatever a template of the site may raise; it is then left to a person
        return None


def write(path: str, text: str) -> None:
    """Write a file of the proposal, readable by all as an inventory is."""
    record.make_directory(os.path.dirname(path))
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(text)
    os.chmod(path, 0o644)
