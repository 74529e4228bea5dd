# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Accepting a baseline: when it asks for a reason, what it refuses, what it writes and what it leaves alone."""

from __future__ import annotations

import copy
import errno
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from ansible.errors import AnsibleActionFail
from ansible_collections.accel.cluster.plugins.action import accept_baseline as action
from ansible_collections.accel.cluster.plugins.module_utils._accel import record


def rec(host, **cards):
    """Return the record of a host from SXM1="serial", or ("serial", {more})."""
    body = {"schema": 1, "host": host, "observed_at": "2026-11-30T01:02:03Z", "tool": {}, "slots": {}, "unplaced": []}
    for number, (label, told) in enumerate(cards.items()):
        serial, more = (told, {}) if isinstance(told, str) else told
        card = {"serial": serial, "uuid": f"GPU-{serial}", "pci_address": f"0000:{number + 16:02x}:00.0", **more}
        if label == "unplaced":
            body["unplaced"].append(card)
        else:
            body["slots"][label] = [card]
    return body


LOST = {"present": False, "state": "lost"}
TWO_HOSTS = {"gpu-01": rec("gpu-01", SXM1="A", SXM2="B"), "gpu-02": rec("gpu-02", SXM1="C", SXM2="D")}


class Task:
    action = "accel.cluster.accept_baseline"
    async_val = 0

    def __init__(self, args, check_mode):
        self.args, self.check_mode = args, check_mode


class Connection:
    """Fails the test when anything of a connection is used."""

    class _shell:
        tmpdir = "none"


@pytest.fixture
def site(tmp_path):
    return tmp_path / "site"


@pytest.fixture
def accept(site, monkeypatch):
    """Return a function that runs the action once; warnings are in ``_warnings`` of its result."""
    times = (f"2026-12-01T{hour:02}:{minute:02}:{second:02}Z" for hour, minute, second in
             itertools.product(range(24), range(60), range(60)))  # fmt: skip
    monkeypatch.setattr(record, "now_utc", lambda: next(times))

    def once(records, hosts=None, declared=None, check=False, **options):
        hosts = hosts or sorted(records)
        args = {
            "site_dir": str(site),
            "hosts": hosts,
            "records": copy.deepcopy(records),
            "declared_counts": declared or dict.fromkeys(hosts, 2),
            "by": "kim",
            **options,
        }
        plugin = action.ActionModule(Task(args, check), Connection(), None, None, None)
        warnings, said = [], []
        display = type("Display", (), {"warning": staticmethod(warnings.append), "display": staticmethod(said.append)})
        monkeypatch.setattr(plugin, "_display", display)
        result = plugin.run(task_vars={})
        assert said == ([result["msg"]] if result["changed"] else []), "who accepts something must see what"
        result["_warnings"] = warnings
        return result

    return once


def tree(site):
    """Return every file of the site with its text."""
    return {str(path.relative_to(site)): path.read_text() for path in site.rglob("*") if path.is_file()}


def history(site):
    keys = ("at", "by", "reason", "host", "slot", "event", "old_serial", "new_serial")
    return [tuple(event[key] for key in keys[3:]) for event in record.read_history(str(site / "history.jsonl"))]


def test_the_first_acceptance_wants_a_reason_and_writes_nothing_without(accept, site):
    result = accept(TWO_HOSTS)
    assert result["failed"] is True and result["changed"] is False
    assert result["difference"] == [
        "gpu-01 SXM1: serial A (new)",
        "gpu-01 SXM2: serial B (new)",
        "gpu-02 SXM1: serial C (new)",
        "gpu-02 SXM2: serial D (new)",
    ]
    assert "  gpu-02 SXM2: serial D (new)\n" in result["msg"] and "-e accept_reason=" in result["msg"]
    assert accept(TWO_HOSTS, reason=" ")["failed"] is True
    assert not site.exists()


def test_the_first_acceptance_with_a_reason(accept, site):
    result = accept(TWO_HOSTS, reason="rack 7 built")
    assert "failed" not in result and result["changed"] is True
    assert result["accepted"] == ["gpu-01", "gpu-02"]
    assert sorted(tree(site)) == ["baselines/slots/gpu-01.json", "baselines/slots/gpu-02.json", "history.jsonl"]
    assert json.loads(tree(site)["baselines/slots/gpu-01.json"]) == {
        **TWO_HOSTS["gpu-01"],
        "accepted": {"at": "2026-12-01T00:00:00Z", "by": "kim", "reason": "rack 7 built"},
    }
    assert history(site) == [
        ("gpu-01", "SXM1", "installed", None, "A"),
        ("gpu-01", "SXM2", "installed", None, "B"),
        ("gpu-02", "SXM1", "installed", None, "C"),
        ("gpu-02", "SXM2", "installed", None, "D"),
    ]
    event = record.read_history(str(site / "history.jsonl"))[0]
    assert (event["at"], event["by"], event["reason"]) == ("2026-12-01T00:00:00Z", "kim", "rack 7 built")
    assert result["history"][0] == event


def test_a_second_run_needs_no_reason_and_changes_nothing(accept, site):
    accept(TWO_HOSTS, reason="first")
    before = tree(site)
    records = copy.deepcopy(TWO_HOSTS)
    records["gpu-01"].update(observed_at="2027-01-01T00:00:00Z", tool={"name": "nvidia-smi", "version": "999"})
    records["gpu-01"]["slots"]["SXM1"][0]["pci_address"] = "0000:77:00.0"
    for reason in ("", "again"):
        result = accept(records, reason=reason)
        assert (result["changed"], result["difference"], result["diff"]) == (False, [], [])
        assert "failed" not in result
    assert tree(site) == before


def test_only_the_baselines_that_differ_are_written(accept, site):
    accept(TWO_HOSTS, reason="first")
    before = tree(site)
    records = {**TWO_HOSTS, "gpu-02": rec("gpu-02", SXM1="C", SXM2="X")}
    result = accept(records, reason="SXM2 replaced, ticket 4711")
    after = tree(site)
    assert result["difference"] == ["gpu-02 SXM2: serial D -> X (replaced)"]
    assert after["baselines/slots/gpu-01.json"] == before["baselines/slots/gpu-01.json"]
    assert json.loads(after["baselines/slots/gpu-02.json"])["accepted"]["reason"] == "SXM2 replaced, ticket 4711"
    assert history(site)[4:] == [("gpu-02", "SXM2", "replaced", "D", "X")]
    assert [one["after_header"] for one in result["diff"]] == [str(site / "baselines/slots/gpu-02.json")]
    assert result["diff"][0]["before"] == before["baselines/slots/gpu-02.json"]
    assert result["diff"][0]["after"] == after["baselines/slots/gpu-02.json"]
    serials = record.history_of_serial(str(site / "history.jsonl"), "D")
    assert [event["event"] for event in serials] == ["installed", "replaced"]


def test_check_mode_shows_the_difference_without_a_reason_and_writes_nothing(accept, site):
    result = accept(TWO_HOSTS, check=True)
    assert result["changed"] is True and "failed" not in result
    assert len(result["difference"]) == 4 and "Would be accepted" in result["msg"]
    assert result["diff"][0]["before"] == "" and '"serial": "A"' in result["diff"][0]["after"]
    assert not site.exists()
    accept(TWO_HOSTS, reason="first")
    before = tree(site)
    assert accept(TWO_HOSTS, check=True)["changed"] is False
    assert accept({**TWO_HOSTS, "gpu-01": rec("gpu-01", SXM1="B", SXM2="A")}, check=True)["changed"] is True
    assert tree(site) == before


def test_a_card_that_changed_hosts_moved(accept, site):
    accept(TWO_HOSTS, reason="first")
    records = {"gpu-01": rec("gpu-01", SXM1="A"), "gpu-02": rec("gpu-02", SXM1="C", SXM2="D", SXM3="B")}
    result = accept(records, declared={"gpu-01": 1, "gpu-02": "3"}, reason="B to gpu-02")
    assert result["difference"] == ["gpu-01 SXM2 -> gpu-02 SXM3: serial B (moved)"]
    assert history(site)[4:] == [("gpu-01", "SXM2", "moved", "B", None), ("gpu-02", "SXM3", "moved", None, "B")]
    assert accept(records, declared={"gpu-01": 1, "gpu-02": 3})["difference"] == []


def test_a_host_that_did_not_answer_is_left_alone_and_named(accept, site):
    accept(TWO_HOSTS, reason="first")
    before = tree(site)
    # B was moved to gpu-02 while gpu-01 is down.
    now = {"gpu-02": rec("gpu-02", SXM1="C", SXM2="D", SXM3="B")}
    declared = {"gpu-01": 2, "gpu-02": 3}
    result = accept(now, hosts=["gpu-01", "gpu-02"], declared=declared, reason="B to gpu-02")
    assert result["left_alone"] == ["gpu-01"]
    assert result["_warnings"] == ["gpu-01 gave no record: its baseline is left alone, its cards are not judged"]
    assert result["difference"] == ["gpu-01 SXM2 -> gpu-02 SXM3: serial B (moved)"]
    assert tree(site)["baselines/slots/gpu-01.json"] == before["baselines/slots/gpu-01.json"]
    assert history(site)[4:] == [("gpu-02", "SXM3", "moved", None, "B")]
    # When it is back, the rest of the move is told, once.
    now["gpu-01"], declared["gpu-01"] = rec("gpu-01", SXM1="A"), 1
    result = accept(now, declared=declared, reason="gpu-01 is back")
    assert result["difference"] == ["gpu-01 SXM2 -> gpu-02 SXM3: serial B (moved)"]
    assert history(site)[5:] == [("gpu-01", "SXM2", "moved", "B", None)]
    assert accept(now, declared=declared)["difference"] == []


def test_nobody_answered(accept, site):
    result = accept({}, hosts=["gpu-01", "gpu-02"], reason="x")
    assert result["failed"] is True and result["msg"] == "No host gave a record (2 were asked): nothing is accepted."
    assert result["left_alone"] == ["gpu-01", "gpu-02"]
    assert not site.exists()


def test_a_host_without_cards_need_not_give_a_record(accept):
    result = accept(TWO_HOSTS, hosts=["gpu-01", "gpu-02", "login"], declared={"gpu-01": 2, "gpu-02": 2, "login": "0"},
                    reason="first")  # fmt: skip
    assert result["changed"] is True and result["left_alone"] == []


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (rec("gpu-01", SXM1="A"), ["1 of 2 declared cards answer"]),
        (
            rec("gpu-01", SXM1="A", SXM2=("B", LOST)),
            ["1 of 2 declared cards answer", "SXM2: serial B at 0000:11:00.0 is lost"],
        ),
        (
            rec("gpu-01", SXM1="A", unplaced="B"),
            ["serial B at 0000:11:00.0 has no slot name; declare it in cluster_accelerator_slots"],
        ),
        (rec("gpu-01", SXM1="A", SXM2="B", SXM3="X"), ["3 cards answer, only 2 are declared"]),
    ],
)
def test_a_baseline_is_not_learned_from_a_broken_host(accept, site, body, why):
    for check in (False, True):
        result = accept({**TWO_HOSTS, "gpu-01": body}, reason="first", check=check)
        assert result["failed"] is True and result["changed"] is False
        assert result["refused"] == {"gpu-01": why} and result["fine"] == ["gpu-02"]
        assert result["msg"] == (
            "A baseline is not learned from a broken host; nothing is accepted.\n"
            f"  gpu-01: {'; '.join(why)}\n"
            "Fine are gpu-02; to accept them alone: --limit gpu-02"
        )
    assert not site.exists()


def test_a_host_as_accepted_is_not_refused_for_another_ones_fault(accept):
    accept(TWO_HOSTS, reason="first")
    # The declaration is wrong now, but nothing of this host is to be accepted.
    result = accept(TWO_HOSTS, declared={"gpu-01": 9, "gpu-02": 2})
    assert result["changed"] is False and result["refused"] == {} and "failed" not in result


def test_a_host_without_a_declared_count_is_refused(accept):
    result = accept(TWO_HOSTS, declared={"gpu-01": 2}, reason="first")
    assert result["refused"] == {"gpu-02": ["the number of cards is not declared (cluster_accelerator_count)"]}


def test_a_card_that_is_only_remembered_does_not_enter_the_baseline(accept, site):
    accept(TWO_HOSTS, reason="first")
    gone = {"present": False, "state": "gone"}
    records = {**TWO_HOSTS, "gpu-01": rec("gpu-01", SXM1="A", SXM2=("B", gone))}
    result = accept(records, declared={"gpu-01": 1, "gpu-02": 2}, reason="B sent in for repair")
    assert result["difference"] == ["gpu-01 SXM2: serial B (missing, gone)"]
    assert list(json.loads(tree(site)["baselines/slots/gpu-01.json"])["slots"]) == ["SXM1"]
    assert history(site)[4:] == [("gpu-01", "SXM2", "missing", "B", None)]
    assert accept(records, declared={"gpu-01": 1, "gpu-02": 2})["difference"] == []


def test_an_invalid_baseline_is_refused_with_its_line_and_left_untouched(accept, site):
    accept(TWO_HOSTS, reason="first")
    path = site / "baselines/slots/gpu-02.json"
    path.write_text("<<<<<<< HEAD\n" + path.read_text())
    before = tree(site)
    # Also when only the other host is asked: its cards could have come from there.
    with pytest.raises(AnsibleActionFail, match=rf"{re.escape(str(path))} line 1 column 1: not valid JSON"):
        accept({"gpu-01": rec("gpu-01", SXM1="A", SXM2="X")}, reason="x")
    assert tree(site) == before


def test_a_baseline_under_another_name_is_refused(accept, site):
    accept(TWO_HOSTS, reason="first")
    os.rename(site / "baselines/slots/gpu-02.json", site / "baselines/slots/gpu-03.json")
    with pytest.raises(AnsibleActionFail, match=r"gpu-03.json is the baseline of gpu-02. It is left untouched"):
        accept(TWO_HOSTS, reason="x")


@pytest.mark.parametrize(
    ("records", "says"),
    [
        ({"gpu-01": {}}, "the record handed for gpu-01 has schema None"),
        ({"gpu-01": None}, "the record handed for gpu-01 must be an object, this is null"),
        ({"gpu-01": rec("gpu-09")}, "the record handed for gpu-01 is that of host gpu-09, not of gpu-01"),
        ({"../x": rec("../x")}, "'../x' is no name that a file can have"),
    ],
)
def test_what_is_no_record_of_that_host_is_refused(accept, records, says):
    with pytest.raises(AnsibleActionFail, match=re.escape(says)):
        accept(records, reason="x")


def test_a_file_in_the_place_of_the_site_is_told(accept, site):
    site.write_text("")
    with pytest.raises(AnsibleActionFail, match="cannot be read: a part of the path is a file, not a directory"):
        accept(TWO_HOSTS, reason="first")
    assert site.read_text() == ""


def test_a_full_disk_leaves_baselines_and_history_as_they_were(accept, site):
    site.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=44k", "tmpfs", str(site)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.strip()}")
    try:
        accept(TWO_HOSTS, reason="first")
        before = tree(site)
        # The plan and the baselines still fit, the history does not: neither may change.
        with pytest.raises(AnsibleActionFail, match=r"history.jsonl cannot be written: no space is left on the device"):
            accept({**TWO_HOSTS, "gpu-01": rec("gpu-01", SXM1="B", SXM2="A")}, reason="x" * 5000)
        assert tree(site) == before
    finally:
        subprocess.run(["umount", str(site)], check=True)


class Killed(BaseException):
    """Stands for SIGKILL: no handler of errors sees it."""


CALLS = ("mkdir", "mkstemp", "write", "fsync", "replace", "unlink")


def kill_at(monkeypatch, turn, torn=None):
    """Kill at the given call that changes a disk; with ``torn``, in a write that has written so many bytes."""
    count = 0

    def wrap(name, real):
        def call(*args, **more):
            nonlocal count
            count += 1
            if count == turn:
                if name == "write" and torn is not None:
                    real(args[0], args[1][:torn])
                raise Killed
            return real(*args, **more)

        return call

    for name in CALLS:
        owner = record.tempfile if name == "mkstemp" else os
        monkeypatch.setattr(owner, name, wrap(name, getattr(owner, name)))


@pytest.fixture
def unsynced(monkeypatch):
    """Sync nothing: hundreds of acceptances would wait for the disk, and a killed process loses nothing it wrote."""
    monkeypatch.setattr(os, "fsync", lambda _handle: None)


NOW = {
    "gpu-01": rec("gpu-01", SXM1="B", SXM2="A"),
    "gpu-02": rec("gpu-02", SXM1="C", SXM2="X"),
    "gpu-03": rec("gpu-03", SXM1="E", SXM2="F"),
}
EVENTS = [
    ("gpu-01", "SXM1", "swapped", "A", "B"),
    ("gpu-01", "SXM2", "swapped", "B", "A"),
    ("gpu-02", "SXM2", "replaced", "D", "X"),
    ("gpu-03", "SXM1", "installed", None, "E"),
    ("gpu-03", "SXM2", "installed", None, "F"),
]


@pytest.mark.usefixtures("unsynced")
@pytest.mark.parametrize("torn", [None, 0, 1, 400])
@pytest.mark.parametrize("reason", ["new cards", ""])
def test_an_acceptance_killed_at_any_step_is_completed_by_the_next(accept, site, monkeypatch, torn, reason):
    for turn in range(1, 100):
        shutil.rmtree(site, ignore_errors=True)
        accept(TWO_HOSTS, reason="first")
        with monkeypatch.context() as patch:
            kill_at(patch, turn, torn)
            try:
                accept(NOW, reason="new cards")
                break
            except Killed:
                pass
        if not reason:
            first = accept(NOW)  # without a reason, what was decided is completed and no more
            decided = "failed" not in first
            assert decided == bool(first["changed"]) == bool(first["_warnings"]) or not first["difference"], turn
            if not decided:
                assert history(site)[4:] == [] and not list(site.rglob(".*")), turn
        accept(NOW, reason="new cards")
        assert sorted(tree(site)) == [
            *(f"baselines/slots/gpu-0{number}.json" for number in (1, 2, 3)),
            "history.jsonl",
        ], turn
        assert history(site)[4:] == EVENTS, turn
        for host, body in NOW.items():
            kept = json.loads(tree(site)[f"baselines/slots/{host}.json"])
            assert kept["slots"] == body["slots"], turn
            events = [one for one in record.read_history(str(site / "history.jsonl")) if one["host"] == host]
            assert kept["accepted"] == {key: events[-1][key] for key in ("at", "by", "reason")}, turn
    assert turn > 20, "nothing was killed"


@pytest.mark.usefixtures("unsynced")
def test_a_completion_that_is_killed_is_completed_too(accept, site, monkeypatch):
    accept(TWO_HOSTS, reason="first")
    for first in range(10, 100, 3):  # what comes before the tenth is no completion
        for second in range(1, 100, 2):
            shutil.rmtree(site)
            accept(TWO_HOSTS, reason="first")
            killed = 0
            for turn in (first, second):
                with monkeypatch.context() as patch:
                    kill_at(patch, turn)
                    try:
                        accept(NOW, reason="new cards")
                    except Killed:
                        killed += 1
            accept(NOW, reason="new cards")
            assert history(site)[4:] == EVENTS and not list(site.rglob(".*")), (first, second)
            if killed < 2:
                break
        if not killed:
            return
    pytest.fail("it was killed at every step")


def killed(*_args) -> None:
    raise Killed


def test_what_a_killed_run_decided_is_told_and_counts_as_a_change(accept, site, monkeypatch):
    accept(TWO_HOSTS, reason="first")
    with monkeypatch.context() as patch:
        patch.setattr(record, "add_events", killed)
        with pytest.raises(Killed):
            accept(NOW, reason="new cards")
    assert (site / "acceptance.json").exists()
    looked = accept(NOW, check=True)
    assert looked["changed"] is True and looked["difference"] == [] and "would be completed" in looked["_warnings"][0]
    assert (site / "acceptance.json").exists()
    done = accept(NOW)
    assert (done["changed"], done["difference"]) == (True, [])
    assert done["_warnings"] == done["completed"]
    (sentence,) = done["completed"]
    assert sentence.startswith("An acceptance that was broken off is completed for gpu-01, gpu-02, gpu-03: ")
    assert sentence.endswith("that of 2026-12-01T00:00:01Z by kim, 'new cards'")
    assert accept(NOW)["changed"] is False


def test_a_plan_that_is_none_is_refused_and_left_untouched(accept, site):
    accept(TWO_HOSTS, reason="first")
    plan = {"schema": 1, "accepted": {}, "history": [], "baselines": {"../x": rec("../x")}}
    for text in ("{", json.dumps(plan), json.dumps({**plan, "baselines": []}), json.dumps({**plan, "history": [1]})):
        (site / "acceptance.json").write_text(text)
        before = tree(site)
        for more in ({"reason": "x"}, {}, {"check": True}):
            with pytest.raises(AnsibleActionFail, match=r"acceptance.json line 1 .* left untouched"):
                accept(NOW, **more)
        assert tree(site) == before


@pytest.mark.usefixtures("unsynced")
@pytest.mark.parametrize("call", ["write", "mkstemp"])
def test_a_disk_that_fills_up_at_any_step_accepts_all_or_nothing(accept, site, monkeypatch, call):
    accept(TWO_HOSTS, reason="first")
    before = tree(site)
    owner = os if call == "write" else record.tempfile
    for turn in range(1, 100):
        count = 0
        real = getattr(owner, call)

        def full(*args, real=real, turn=turn, **more):
            nonlocal count
            count += 1
            if count == turn:
                raise OSError(errno.ENOSPC, "full")
            return real(*args, **more)

        with monkeypatch.context() as patch:
            patch.setattr(owner, call, full)
            try:
                accept(NOW, reason="new cards")
                break
            except AnsibleActionFail as exc:
                assert "no space is left on the device" in str(exc)
        assert tree(site) == before, turn
    assert turn > 1 and history(site)[4:] == EVENTS


def test_two_acceptances_take_turns_and_the_second_sees_the_first(accept, site, monkeypatch):
    accept(TWO_HOSTS, reason="first")
    compare = action.accept

    def other_first(*args):
        monkeypatch.setattr(action, "accept", compare)
        found = compare(*args)
        accept(NOW, reason="new cards")  # between the look of this run and its lock
        return found

    monkeypatch.setattr(action, "accept", other_first)
    assert accept(NOW, reason="new cards")["msg"] == "The cards are as accepted."
    assert history(site)[4:] == EVENTS


def test_who_accepts_is_the_person_behind_sudo(accept, monkeypatch):
    monkeypatch.setenv("SUDO_USER", "kim")
    assert action.login_name() == "kim"
    monkeypatch.delenv("SUDO_USER")
    monkeypatch.setenv("LOGNAME", "lee")
    assert action.login_name() == "lee"
    assert accept(TWO_HOSTS, reason="first", by=None)["history"][0]["by"] == "lee"


def test_unknown_options_are_refused(accept):
    with pytest.raises(AnsibleActionFail, match="reasn"):
        accept(TWO_HOSTS, reasn="typo")


def test_a_playbook_runs_it_with_dead_hosts_and_templates(tmp_path, site, accept):
    """One real run: values from templates are plain data in the files, and no host is connected to."""
    root = Path(action.__file__).resolve().parents[2]
    home = tmp_path / "ansible_collections/accel"
    home.mkdir(parents=True)
    (home / "cluster").symlink_to(root)
    (tmp_path / "records.json").write_text(json.dumps(TWO_HOSTS))
    plays = yaml.safe_load((root / "playbooks/accept_baseline.yml").read_text())
    reason = plays[-1]["tasks"][0]["vars"]["driver_accept_reason"]
    (tmp_path / "play.yml").write_text(
        f"""
- hosts: all
  gather_facts: false
  tasks:
    - accel.cluster.accept_baseline:
        site_dir: {site}
        hosts: "{{{{ ansible_play_hosts_all }}}}"
        records: "{{{{ lookup('ansible.builtin.file', '{tmp_path}/records.json') | from_json }}}}"
        declared_counts: "{{{{ dict(ansible_play_hosts_all | zip([2, 2])) }}}}"
        reason: {json.dumps(reason)}
      run_once: true
"""
    )
    (tmp_path / "ansible.cfg").write_text("")
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(tmp_path)}
    environment["ANSIBLE_CONFIG"] = str(tmp_path / "ansible.cfg")
    command = [sys.executable, "-m", "ansible", "playbook", "-i", "gpu-01,gpu-02,", str(tmp_path / "play.yml")]

    def play(*more):
        done = subprocess.run(
            [*command, "-e", "ansible_host=192.0.2.1", *more],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    rc, out = play()
    assert rc == 2 and "gpu-01 SXM1: serial A (new)" in out and "accept_reason=" in out, out
    rc, out = play("--check", "--diff")
    assert rc == 0 and "changed=1" in out and '+        "serial": "A",' in out, out
    assert not site.exists()
    (site / "history.jsonl").mkdir(parents=True)
    rc, out = play("-e", "accept_reason=no place for it")
    assert rc == 2 and "there is a directory of that name" in out, out
    # Once where it is shown, once in the result: Ansible appends a cause to its text, which would be the same.
    assert out.count("there is a directory of that name") == 2, out
    (site / "history.jsonl").rmdir()
    # As the documents show it: the shell leaves no quotes for Ansible, which takes the first word only.
    rc, out = play("-e", "accept_reason=rack 7 built")
    assert rc == 0 and "changed=1" in out, out
    assert json.loads(tree(site)["baselines/slots/gpu-01.json"])["accepted"]["reason"] == "rack 7 built"
    assert accept(TWO_HOSTS)["difference"] == []
    assert json.loads(tree(site)["baselines/slots/gpu-01.json"])["slots"] == TWO_HOSTS["gpu-01"]["slots"]
