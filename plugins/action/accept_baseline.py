# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Accept records as the baseline, on the controller; documented in plugins/modules/accept_baseline.py."""

from __future__ import annotations

import getpass
import glob
import json
import os
import re

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.accel.cluster.plugins.module_utils._accel import record, slots
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import to_int

ARGUMENTS = {
    "kind": {"type": "str", "choices": ["slots"], "default": "slots"},
    "site_dir": {"type": "path", "required": True},
    "hosts": {"type": "list", "elements": "str", "required": True},
    "records": {"type": "dict", "required": True},
    "declared_counts": {"type": "dict", "default": {}},
    "reason": {"type": "str", "default": ""},
    "by": {"type": "str"},
}


class ActionModule(ActionBase):
    """Reads and writes files of the site; no host is connected to, so it also runs when they are dead."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp=None, task_vars=None):
        """Return what differs, and accept it when a reason is given."""
        result = super().run(tmp, task_vars)
        _unused, options = self.validate_argument_spec(argument_spec=ARGUMENTS)
        try:
            result.update(accept(options, self._task.check_mode))
        except record.RecordError as exc:
            raise AnsibleActionFail(str(exc)) from None  # Ansible would append the cause, the same text
        for host in result["left_alone"]:
            self._display.warning(f"{host} gave no record: its baseline is left alone, its cards are not judged")
        if result["changed"]:
            self._display.display(result["msg"])  # who accepts something must see what
        return result


def accept(options: dict, check_mode: bool) -> dict:
    """Compare, refuse or write; return the result of the task."""
    site = options["site_dir"]
    records = handed_records(options["records"])
    baselines = stored_baselines(site)
    declared = {str(host): count for host, count in options["declared_counts"].items()}
    comparison = slots.compare_cluster(baselines, records)
    differing = [host for host in sorted(comparison, key=slots.natural) if slots.differs(comparison[host])]
    difference = slots.difference_lines(comparison)
    refused = {host: why for host, why in slots.refusals(records, declared).items() if host in differing}
    fine = [host for host in differing if host not in refused]
    # A host that is declared to have no cards is not expected to give a record.
    expected = {host for host in options["hosts"] if to_int(declared.get(host)) != 0 or host in baselines}
    result: dict = {
        "changed": False,
        "difference": difference,
        "comparison": comparison,
        "refused": refused,
        "fine": fine,
        "left_alone": sorted(expected - set(records), key=slots.natural),
        "accepted": [],
        "history": [],
        "diff": [],
    }
    reason = options["reason"].strip()
    if not records and expected:
        return {
            **result,
            "failed": True,
            "msg": f"No host gave a record ({len(expected)} were asked): nothing is accepted.",
        }
    if refused:
        return {**result, "failed": True, "msg": _refusal(refused, fine)}
    if not differing:
        return {**result, "msg": "The cards are as accepted."}
    told = "\n".join(["The cards differ from the accepted baseline:", *(f"  {line}" for line in difference)])
    if not reason and not check_mode:
        advice = "Nothing is accepted yet. If this is right, say why: -e accept_reason='SXM5 replaced, ticket 4711'"
        return {**result, "failed": True, "msg": f"{told}\n{advice}"}

    accepted = {"at": record.now_utc(), "by": options["by"] or login_name(), "reason": reason}
    bodies = {host: slots.as_baseline(records[host], accepted) for host in differing}
    result.update(
        changed=True,
        msg=f"{told}\n{'Would be accepted' if check_mode else 'Accepted'} for {', '.join(differing)}.",
        accepted=differing,
        history=[
            {**event, **accepted}
            for host in differing
            for event in slots.history_events(host, comparison[host], first=baselines.get(host) is None)
        ],
        diff=[_diff(baseline_path(site, host), baselines.get(host), body) for host, body in bodies.items()],
    )
    if not check_mode:
        write(site, bodies, result["history"])
    return result


def handed_records(handed: dict) -> dict:
    """Return the records as plain data; RecordError names the host whose record is none."""
    records = json.loads(json.dumps(handed))
    for host, body in records.items():
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", host):
            raise record.RecordError(f"{host!r} is no name that a file can have")
        try:
            slots.check(body, f"the record handed for {host}", host)
        except ValueError as exc:
            raise record.RecordError(str(exc)) from exc
    return records


def baseline_path(site: str, host: str) -> str:
    """Return the file of a host's baseline."""
    return os.path.join(site, "baselines", "slots", f"{host}.json")


def stored_baselines(site: str) -> dict:
    """Return all baselines of the site, by host: also those of hosts that are not asked, whose cards may have moved."""
    baselines = {}
    for path in sorted(glob.glob(baseline_path(glob.escape(site), "*"))):
        host = os.path.basename(path)[: -len(".json")]
        body = record.load(path, slots.problems)
        if body and body["host"] != host:
            raise record.RecordError(f"{path} is the baseline of {body['host']}. It is left untouched.")
        baselines[host] = body
    return baselines


def login_name() -> str:
    """Return who runs this: behind sudo, the person who called it."""
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):  # a user id without an account, as in some containers
        return f"uid {os.getuid()}"


def write(site: str, bodies: dict, events: list) -> None:
    """Write baselines and history, or nothing: what may fail for lack of space is done before anything is replaced."""
    staged: dict = {}
    try:
        for host, body in bodies.items():
            path = baseline_path(site, host)
            staged[path] = record.stage(path, body)
        record.append_history(os.path.join(site, "history.jsonl"), events)
    except record.RecordError:
        for temporary in staged.values():
            record.discard(temporary)
        raise
    for path, temporary in staged.items():
        record.commit(temporary, path)


def _diff(path: str, before: dict | None, after: dict) -> dict:
    return {
        "before": record.canonical(before) if before else "",
        "after": record.canonical(after),
        "before_header": path,
        "after_header": path,
    }


def _refusal(refused: dict, fine: list) -> str:
    lines = ["A baseline is not learned from a broken host; nothing is accepted."]
    lines += [f"  {host}: {'; '.join(why)}" for host, why in refused.items()]
    if fine:
        lines.append(f"Fine are {', '.join(fine)}; to accept them alone: --limit {','.join(fine)}")
    return "\n".join(lines)
