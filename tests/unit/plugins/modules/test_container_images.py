# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module against an engine of a few lines: what is missing is pulled once, what fails is said."""

from __future__ import annotations

import json

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.accel.cluster.plugins.module_utils._accel import pulls
from ansible_collections.accel.cluster.plugins.modules import container_images

A, B = ("sha256:" + one * 64 for one in "ab")
NAME = "reg.example:5000/ai/train"
FIRST, SECOND = f"{NAME}:1@{A}", f"{NAME}:2@{B}"


@pytest.fixture
def engine(monkeypatch, tmp_path):
    """Return an engine that pulls what it is asked for, unless told otherwise."""
    state = {"held": [], "refuses": "", "forgets": False, "state": "ok"}

    def observe(runner, name, **_more):
        about = {"name": name, "path": "/x", "state": state["state"], "problem": None, "storage_path": f"{tmp_path}/s"}
        return {"engine": about, "images": [dict(one) for one in state["held"]], "errors": []}

    def carry_out(runner, about, step, auth_file, free_gib, timeout_seconds):
        if step["reference"] == state["refuses"]:
            raise pulls.Refused(f"{step['name']} did not come")
        if not state["forgets"] and step["action"] != "held":
            one = {"names": [f"{step['name']}:{step['tag']}"], "digests": [f"{step['name']}@{step['digest']}"]}
            state["held"].append(one)

    monkeypatch.setattr(pulls.containers, "observe", observe)
    monkeypatch.setattr(pulls, "carry_out", carry_out)
    monkeypatch.setattr(pulls, "LOCK", f"{tmp_path}/lock")
    monkeypatch.setattr(pulls.Alone.__init__, "__defaults__", (f"{tmp_path}/lock",))
    return state


def run(capsys, *words, **more):
    with patch_module_args({"images": list(words), **more}), pytest.raises(SystemExit) as ended:
        container_images.main()
    return json.loads(capsys.readouterr().out), ended.value.code


def test_each_image_is_pulled_once(capsys, engine):
    told, code = run(capsys, FIRST, SECOND)
    assert (code, told["changed"]) == (0, True)
    assert [one["action"] for one in told["images"]] == ["pull", "pull"]
    assert told["diff"]["before"] == f"# {FIRST}\n# {SECOND}\n"
    assert told["diff"]["after"] == f"{FIRST}\n{SECOND}\n"
    told, _code = run(capsys, FIRST, SECOND)
    assert told["changed"] is False and told["diff"]["before"] == told["diff"]["after"]


def test_check_mode_says_it_and_pulls_nothing(capsys, engine):
    told, _code = run(capsys, FIRST, _ansible_check_mode=True)
    assert told["changed"] is True and engine["held"] == []


def test_one_that_does_not_come_is_said_with_what_came_before(capsys, engine):
    engine["refuses"] = SECOND
    told, code = run(capsys, FIRST, SECOND)
    assert code == 1 and told["failed"] and "did not come" in told["msg"]
    assert told["changed"] is True and [one["reference"] for one in told["images"]] == [FIRST]


def test_an_engine_that_says_it_pulled_is_not_believed(capsys, engine):
    engine["forgets"] = True
    told, code = run(capsys, FIRST)
    assert code == 1 and "does not hold it" in told["msg"]


@pytest.mark.parametrize(
    ("words", "more", "says"),
    [
        ([f"{NAME}:1"], {}, "has no digest"),
        ([FIRST], {"pull_timeout_seconds": 0}, "pull_timeout_seconds must be 1 or more"),
    ],
)
def test_what_can_not_be_is_refused(capsys, engine, words, more, says):
    told, code = run(capsys, *words, **more)
    assert code == 1 and says in told["msg"] and not engine["held"]


def test_an_engine_that_does_not_answer_is_said(capsys, engine):
    engine["state"] = "hung"
    told, code = run(capsys, FIRST)
    assert code == 1 and told["msg"].startswith("podman is hung")
