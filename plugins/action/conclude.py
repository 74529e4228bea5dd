# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge across hosts and write the report; documented in plugins/modules/conclude.py."""

from __future__ import annotations

import glob
import json
import os
import tempfile

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.accel.cluster.plugins.module_utils._accel import conclude, hints, record, slots
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import LAYERS
from ansible_collections.accel.cluster.plugins.plugin_utils import report

ARGUMENTS = {
    # Site and language come from the inventory, and no value of them may cost the run its report.
    "site": {"type": "raw", "required": True},
    "site_dir": {"type": "path", "required": True},
    "run_id": {"type": "str", "required": True},
    "started_at": {"type": "str", "default": ""},
    "hosts": {"type": "list", "elements": "str", "required": True},
    "expected": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "role": {"type": "str", "required": True},
            "layer": {"type": "str", "required": True, "choices": list(LAYERS)},
        },
    },
    "language": {"type": "raw", "default": "en"},
    "template": {"type": "path", "required": True},
}

# What is declared of a host and needed across hosts; all else was judged where the host was asked.
DECLARED = (
    "cluster_node_type",
    "cluster_accelerator_vendor",
    "cluster_accelerator_count",
    "cluster_driver_version",
)


class ActionModule(ActionBase):
    """Reads and writes files of the site; no host is connected to, so it also runs when all of them are dead."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp=None, task_vars=None):
        """Return the verdict, after the report was written; a bad verdict is no failure of this task."""
        result = super().run(tmp, task_vars)
        options = self.validate_argument_spec(argument_spec=ARGUMENTS)[1]
        problem = conclude.path_name_problem(options["run_id"], "run_id")
        if problem:
            raise AnsibleActionFail(problem)
        hosts = [str(host) for host in options["hosts"]]
        site_dir, run_id = str(options["site_dir"]), str(options["run_id"])
        language = str(options["language"])
        if language not in hints.LANGUAGES:
            known = ", ".join(hints.LANGUAGES)
            self._display.warning(f"{language!r} is no language of reports ({known}): the report is in English")
            language = "en"
        folder = os.path.join(site_dir, "reports", run_id)
        parts, part_errors = read_parts(folder)
        baselines, baseline_errors = read_baselines(site_dir)
        declared, declared_errors = read_declared({*hosts, *parts}, task_vars["hostvars"])
        outcome = conclude.conclude(
            site=str(options["site"] or os.path.basename(site_dir)),
            run_id=run_id,
            started_at=str(options["started_at"]),
            hosts=hosts,
            expected=[{key: str(one[key]) for key in ("role", "layer")} for one in options["expected"]],
            parts=parts,
            declared=declared,
            baselines=baselines,
            part_errors=part_errors,
            declared_errors=declared_errors,
            baseline_errors=baseline_errors,
            now=record.now_utc(),
            language=language,
        )
        run = outcome["run"]
        write_report(folder, run, str(options["template"]), run["language"])
        result.update(
            changed=False,
            verdict=outcome["verdict"],
            counts=outcome["counts"],
            lines=outcome["lines"],
            report=os.path.join(folder, "report.html"),
        )
        return result


def read_parts(folder: str) -> tuple[dict, dict]:
    """Return the parts ``{host: {layer: part}}`` of a run and, as ``{host: {file: why}}``, those that are none."""
    parts: dict = {}
    errors: dict = {}
    for path in sorted(glob.glob(os.path.join(glob.escape(folder), "parts", "*", "*.json"))):
        host, layer = os.path.basename(os.path.dirname(path)), os.path.basename(path)[: -len(".json")]
        name = os.path.relpath(path, folder)
        try:
            part = record.load(path, conclude.part_problems)
            if part is None:
                raise record.RecordError("it went away while it was read")
            if layer not in LAYERS or (part["host"], part["layer"]) != (host, layer):
                raise record.RecordError(f"it is the part {part['layer']} of {part['host']}")
            if any(one["host"] != host for one in part["findings"]):
                raise record.RecordError("it has findings of another host")
        except record.RecordError as exc:
            errors.setdefault(host, {})[name] = str(exc).replace(path, name)
            continue
        parts.setdefault(host, {})[layer] = part
    return parts, errors


def read_baselines(site_dir: str) -> tuple[dict, dict]:
    """Return all accepted slot records of the site by host, and why one can't be used.

    All of them: a card that is missing here may be one that was accepted on a host that is not in this run.
    """
    baselines: dict = {}
    errors: dict = {}
    for path in sorted(glob.glob(os.path.join(glob.escape(site_dir), "baselines", "slots", "*.json"))):
        host = os.path.basename(path)[: -len(".json")]
        try:
            body = record.load(path, slots.problems)
            if body and body["host"] != host:
                raise record.RecordError(f"{path} is the baseline of {body['host']}.")
        except record.RecordError as exc:
            errors[host] = str(exc)
            continue
        baselines[host] = body
    return baselines, errors


def read_declared(hosts: set, hostvars) -> tuple[dict, dict]:
    """Return ``{host: {variable: value}}`` of what is declared, and why a host's can't be had.

    Each variable is templated when it is read, so one that fails costs only its own host the judgement.
    """
    declared: dict = {}
    errors: dict = {}
    for host in sorted(hosts):
        declared[host] = {}
        if host not in hostvars:
            continue
        variables = hostvars[host]
        for name in DECLARED:
            if name not in variables:
                continue
            try:
                declared[host][name] = json.loads(json.dumps(variables[name]))
            except Exception as exc:  # whatever a template of the site may raise
                errors[host] = f"{name}: {exc}"
    return declared, errors


def write_report(folder: str, run: dict, template: str, language: str) -> None:
    """Write findings.json, junit.xml and report.html; the findings first, they must not be lost to a bad template."""
    body = {
        "schema": conclude.SCHEMA,
        "run": {key: value for key, value in run.items() if key != "findings"},
        "findings": run["findings"],
    }
    try:
        record.write(os.path.join(folder, "findings.json"), body)
    except (record.RecordError, ValueError) as exc:
        raise AnsibleActionFail(str(exc)) from None  # Ansible would append the cause, the same text
    for name, make in (
        ("junit.xml", lambda: report.junit(run)),
        ("report.html", lambda: report.render(run, template, language)),
    ):
        path = os.path.join(folder, name)
        try:
            write_text(path, make())
        except Exception as exc:
            raise AnsibleActionFail(
                f"{path} could not be written: {exc}. The findings are in {os.path.join(folder, 'findings.json')}."
            ) from exc


def write_text(path: str, text: str) -> None:
    """Write a file whole or not at all."""
    handle, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=os.path.dirname(path))
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            os.fchmod(file.fileno(), 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
