# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep the findings of a host on the controller; documented in plugins/modules/findings.py."""

from __future__ import annotations

import json
import os

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.accel.cluster.plugins.module_utils._accel import conclude, judge, record
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import LAYERS

ARGUMENTS = {
    "site_dir": {"type": "path", "required": True},
    "run_id": {"type": "str", "required": True},
    "layer": {"type": "str", "required": True, "choices": list(LAYERS)},
    "role": {"type": "str", "required": True},
    "findings": {"type": "list", "elements": "raw", "default": []},
    "observed": {"type": "dict", "default": {}},
    "crashed": {"type": "raw"},
}


class ActionModule(ActionBase):
    """Writes one file of the site; no host is connected to."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp=None, task_vars=None):
        """Write the part of this host and layer, with what other roles wrote kept."""
        result = super().run(tmp, task_vars)
        options = self.validate_argument_spec(argument_spec=ARGUMENTS)[1]
        # A part is the product of a verify run, not a state of the host: it never counts as a change, and check
        # mode, which verifies too, needs it as much.
        try:
            language = str(self._templar.template(task_vars.get("cluster_language", "en")))
        except Exception:  # whatever a template of the site may raise; findings in English are better than none
            language = "en"
        try:
            path, part = hand_over(options, task_vars["inventory_hostname"], language)
        except (ValueError, record.RecordError) as exc:
            raise AnsibleActionFail(str(exc)) from None  # Ansible would append the cause, the same text
        result.update(changed=False, part=path, verdict=judge.verdict(part["findings"]))
        return result


def hand_over(options: dict, host: str, language: str) -> tuple[str, dict]:
    """Write what ``options`` say of ``host``; return the file and what is in it now.

    ValueError names what is wrong with the arguments, RecordError what is wrong with the file.
    """
    for name, what in ((options["run_id"], "run_id"), (host, "host")):
        problem = conclude.path_name_problem(name, what)
        if problem:
            raise ValueError(problem)
    if not options["role"]:
        raise ValueError("role is empty")
    findings = [_plain(finding) for finding in options["findings"]]
    for finding in findings:
        problem = conclude.finding_problem(finding)
        if problem is None and finding["host"] != host:
            problem = f"finding {finding['check']!r} speaks of {finding['host']!r}, this is {host!r}"
        if problem:
            raise ValueError(f"{problem}. Nothing was written.")
    layer = options["layer"]
    path = os.path.join(options["site_dir"], "reports", options["run_id"], "parts", host, f"{layer}.json")
    old = record.load(path, conclude.part_problems)
    if options["crashed"] is not None:
        detail = str(options["crashed"]).strip() or "?"
        # What the role had handed over before it broke stays.
        kept = [one for one in (old or {}).get("findings", []) if one.get("role") == options["role"]]
        findings += [one for one in kept if one["check"] != "host.reachable"]
        findings.append(
            judge.finding(
                "host.reachable.crashed",
                host,
                language=language,
                now=judge.now_utc(),
                evidence=[{"command": f"verify of role {options['role']}", "excerpt": judge.excerpt(detail)}],
                role=options["role"],
                detail=detail.splitlines()[0][:200],
            )
        )
    part = conclude.merge_part(old, host, layer, options["role"], findings, _plain(options["observed"]))
    record.write(path, part)
    return path, part


def _plain(value: object) -> object:
    """Return plain data; what JSON can't hold is left as it is, so that the check of findings names it."""
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError):
        return value
