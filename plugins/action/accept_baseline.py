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

# A host that can name a file.
HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


class ActionModule(ActionBase):
    """Reads and writes files of the site; no host is connected to, so it also runs when they are dead."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp=None, task_vars=None):
        """Return what differs, and accept it when a reason is given."""
        result = super().run(tmp, task_vars)
        _unused, options = self.validate_argument_spec(argument_spec=ARGUMENTS)
        try:
            result.update(run_once(options, self._task.check_mode))
        except record.RecordError as exc:
            raise AnsibleActionFail(str(exc)) from None  # Ansible would append the cause, the same text
        for sentence in result["completed"]:
            self._display.warning(sentence)
        for host in result["left_alone"]:
            self._display.warning(f"{host} gave no record: its baseline is left alone, its cards are not judged")
        if result["changed"]:
            self._display.display(result["msg"])  # who accepts something must see what
        return result


def run_once(options: dict, check_mode: bool) -> dict:
    """Complete what an earlier run left half done, then compare, refuse or write; return the result of the task."""
    site = options["site_dir"]
    records = handed_records(options["records"])
    completed: list = []
    if check_mode:
        unfinished = record.load(plan_path(site), plan_problems)
        completed += [told(unfinished, "would be")] if unfinished else []
    elif os.path.exists(plan_path(site)) or leftovers(site):
        with record.locked_history(history_path(site)) as history:
            completed += finish(site, history)
    accepted = {"at": record.now_utc(), "by": options["by"] or login_name(), "reason": options["reason"].strip()}
    result, plan = accept(options, records, accepted, check_mode)
    if plan and not check_mode:
        with record.locked_history(history_path(site)) as history:
            completed += finish(site, history)
            # Again, because another run may have accepted something before this one got the lock.
            result, plan = accept(options, records, accepted, check_mode)
            if plan:
                write(site, plan, history)
    return {**result, "changed": result["changed"] or bool(completed), "completed": completed}


def accept(options: dict, records: dict, accepted: dict, check_mode: bool) -> tuple[dict, dict | None]:
    """Compare; return the result of the task and, where something is to be accepted, the plan that ``write`` takes.

    ``accepted`` is when, by whom and why.
    """
    site = options["site_dir"]
    baselines = stored_baselines(site)
    unfinished = record.load(plan_path(site), plan_problems) or {"baselines": {}}
    baselines.update(unfinished["baselines"])  # what the next run completes, before it compares
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
    if not records and expected:
        msg = f"No host gave a record ({len(expected)} were asked): nothing is accepted."
        return {**result, "failed": True, "msg": msg}, None
    if refused:
        return {**result, "failed": True, "msg": _refusal(refused, fine)}, None
    if not differing:
        return {**result, "msg": "The cards are as accepted."}, None
    differences = "\n".join(["The cards differ from the accepted baseline:", *(f"  {line}" for line in difference)])
    if not accepted["reason"] and not check_mode:
        advice = "Nothing is accepted yet. If this is right, say why: -e accept_reason='SXM5 replaced, ticket 4711'"
        return {**result, "failed": True, "msg": f"{differences}\n{advice}"}, None

    bodies = {host: slots.as_baseline(records[host], accepted) for host in differing}
    result.update(
        changed=True,
        msg=f"{differences}\n{'Would be accepted' if check_mode else 'Accepted'} for {', '.join(differing)}.",
        accepted=differing,
        history=[
            {**event, **accepted}
            for host in differing
            for event in slots.history_events(host, comparison[host], first=baselines.get(host) is None)
        ],
        diff=[_diff(baseline_path(site, host), baselines.get(host), body) for host, body in bodies.items()],
    )
    return result, {"schema": 1, "accepted": accepted, "baselines": bodies, "history": result["history"]}


def handed_records(handed: dict) -> dict:
    """Return the records as plain data; RecordError names the host whose record is none."""
    records = json.loads(json.dumps(handed))
    for host, body in records.items():
        if not HOST.fullmatch(host):
            raise record.RecordError(f"{host!r} is no name that a file can have")
        try:
            slots.check(body, f"the record handed for {host}", host)
        except ValueError as exc:
            raise record.RecordError(str(exc)) from exc
    return records


def baseline_path(site: str, host: str) -> str:
    """Return the file of a host's baseline."""
    return os.path.join(site, "baselines", "slots", f"{host}.json")


def history_path(site: str) -> str:
    """Return the file of what was accepted, and when. Its lock is the one of all acceptances of the site."""
    return os.path.join(site, "history.jsonl")


def plan_path(site: str) -> str:
    """Return the file that is there while an acceptance is carried out, and after one that was killed."""
    return os.path.join(site, "acceptance.json")


def plan_problems(plan: dict) -> list[tuple[tuple, str]]:
    """Return what makes a body no plan of an acceptance, the way ``record.load`` takes it."""
    for key, kind in (("accepted", dict), ("baselines", dict), ("history", list)):
        if not isinstance(plan.get(key), kind):
            return [((key,), f"{key!r} must be {kind.__name__}")]
    found: list[tuple[tuple, str]] = []
    for host, body in plan["baselines"].items():
        if not isinstance(body, dict) or body.get("host") != host or not HOST.fullmatch(host):
            found.append((("baselines", host), f"this is no baseline of {host}"))
        else:
            found += [(("baselines", host, *where), sentence) for where, sentence in slots.problems(body)]
    for number, event in enumerate(plan["history"]):
        if not isinstance(event, dict):
            found.append((("history", number), f"an event is an object, this is {record.kind_of(event)}"))
    return found


def leftovers(site: str) -> list:
    """Return the hidden files of acceptances that were killed."""
    return record.leftovers(baseline_path(site, "*")) + record.leftovers(plan_path(site))


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


def write(site: str, plan: dict, history: int) -> None:
    """Carry out a plan whole or not at all, with the history locked.

    The plan is on disk before anything else changes: a run that is killed after that is completed by the next one, and
    one that is killed before has done nothing. What may fail for lack of space is done before anything is replaced.
    """
    record.write(plan_path(site), plan)
    try:
        staged = prepare(site, plan, history)
    except record.RecordError:
        record.remove(plan_path(site))
        raise
    settle(site, staged)


def finish(site: str, history: int) -> list:
    """Complete the acceptance that a killed run had decided, drop what was only prepared; return what to tell."""
    for path in leftovers(site):
        record.discard(path)
    plan = record.load(plan_path(site), plan_problems)
    if plan is None:
        return []
    # Where this fails the plan stays: its events may stand in the history already.
    settle(site, prepare(site, plan, history))
    return [told(plan, "is")]


def told(plan: dict, verb: str) -> str:
    """Return what is said of an acceptance that a killed run left."""
    at, by, reason = (plan["accepted"].get(key) for key in ("at", "by", "reason"))
    hosts = ", ".join(sorted(plan["baselines"], key=slots.natural))
    return f"An acceptance that was broken off {verb} completed for {hosts}: that of {at} by {by}, {reason!r}"


def prepare(site: str, plan: dict, history: int) -> dict:
    """Stage the baselines of a plan and add its events to the history; return ``{file: staged file}``."""
    staged: dict = {}
    try:
        for host, body in plan["baselines"].items():
            path = baseline_path(site, host)
            staged[path] = record.stage(path, body)
        record.add_events(history, history_path(site), plan["history"])
    except record.RecordError:
        for temporary in staged.values():
            record.discard(temporary)
        raise
    return staged


def settle(site: str, staged: dict) -> None:
    """Put the staged baselines in place; then nothing is left to be done of the plan."""
    for path, temporary in staged.items():
        record.commit(temporary, path)
    record.remove(plan_path(site))


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
