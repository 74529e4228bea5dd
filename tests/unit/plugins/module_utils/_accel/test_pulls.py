# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images are pulled by digest, each once, and a pull that breaks off leaves nothing of its own."""

from __future__ import annotations

import os
import threading

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import pulls
from ansible_collections.accel.cluster.plugins.module_utils._accel.runner import Result

A, B = ("sha256:" + one * 64 for one in "ab")
NAME = "reg.example:5000/ai/train"
WORD = f"{NAME}:1@{A}"


def image(digest, *names):
    return {"names": list(names), "digests": [f"{NAME}@{digest}"]}


@pytest.mark.parametrize(
    ("held", "word", "action"),
    [
        ([], WORD, "pull"),
        ([image(B, f"{NAME}:1")], WORD, "pull"),
        ([image(A, f"{NAME}:1")], WORD, "held"),
        ([image(A, f"{NAME}@{A}")], WORD, "tag"),
        ([image(A, f"{NAME}@{A}"), image(B, f"{NAME}:1")], WORD, "tag"),
        ([image(A, f"{NAME}@{A}")], f"{NAME}@{A}", "held"),
    ],
)
def test_what_is_to_be_done(held, word, action):
    assert [step["action"] for step in pulls.plan(held, [word])] == [action]


def test_nothing_is_pulled_by_its_tag():
    with pytest.raises(ValueError, match="has no digest"):
        pulls.plan([], [f"{NAME}:1"])


class Engine:
    """A runner that remembers what it was asked, and answers as it is told."""

    def __init__(self, free=100 << 30, pull=(0, ""), tag=(0, "")):
        self.free, self.answers, self.asked, self.scratch = free, {"pull": pull, "tag": tag}, [], []

    def run(self, argv, timeout_seconds):
        if argv[0] == "df":
            return Result(argv, 0, f"    Avail\n{self.free}\n" if self.free is not None else "", "")
        self.asked.append((argv, timeout_seconds))
        if argv[0] == "env":
            folder = argv[1].partition("=")[2]
            with open(os.path.join(folder, "blob"), "w") as file:
                file.write("half")
            self.scratch.append(folder)
        rc, err = self.answers["tag" if "tag" in argv else "pull"]
        return Result(argv, rc, "", err, hung=rc is None)


@pytest.fixture
def about(tmp_path):
    (tmp_path / "storage").mkdir()
    return {"name": "podman", "path": "/usr/bin/podman", "storage_path": str(tmp_path / "storage")}


def carry_out(engine, about, **more):
    (step,) = pulls.plan([], [more.pop("word", WORD)])
    pulls.carry_out(engine, {**about, **more}, step, "/etc/login/config.json", 20, 60)


def test_podman_pulls_the_digest_and_tags_it_here(about, tmp_path):
    engine = Engine()
    carry_out(engine, about)
    (pull, limit), (tag, _limit) = engine.asked
    assert limit == 60 and pull[2:] == [
        "/usr/bin/podman", "pull", "--quiet", "--authfile", "/etc/login/config.json", f"{NAME}@{A}"
    ]  # fmt: skip
    assert tag == ["/usr/bin/podman", "tag", f"{NAME}@{A}", f"{NAME}:1"]
    assert engine.scratch and os.path.dirname(engine.scratch[0]) == str(tmp_path)
    assert os.listdir(tmp_path) == ["storage"]


def test_docker_reads_its_login_from_a_folder(about):
    engine = Engine()
    carry_out(engine, about, name="docker", path="/usr/bin/docker", word=f"{NAME}@{A}")
    ((pull, _limit),) = engine.asked
    assert pull == ["/usr/bin/docker", "--config", "/etc/login", "pull", "--quiet", f"{NAME}@{A}"]


@pytest.mark.parametrize(
    ("engine", "says"),
    [
        (Engine(pull=(125, "Trying to pull\nError: no space left on device\n")), "no space left on device"),
        (Engine(pull=(None, "")), "did not come within 60 s"),
        (Engine(pull=(125, "")), "ended with 125"),
        (Engine(free=(20 << 30) - 1), "20 GiB must be"),
        (Engine(free=None), "is not known"),
        (Engine(tag=(125, "Error: x")), "could not be tagged"),
    ],
)
def test_what_goes_wrong_is_said_and_leaves_nothing(engine, says, about, tmp_path):
    with pytest.raises(pulls.Refused, match=says):
        carry_out(engine, about)
    assert os.listdir(tmp_path) == ["storage"]
    if engine.free != 100 << 30:
        assert engine.asked == []


def test_what_a_killed_pull_left_is_removed_and_nothing_else(about, tmp_path):
    for name in ("accel-pull-1", "volumes"):
        (tmp_path / name).mkdir()
    pulls.tidy(about)
    assert sorted(os.listdir(tmp_path)) == ["storage", "volumes"]


def test_two_runs_wait_for_each_other(tmp_path):
    path, order = str(tmp_path / "lock"), []
    with pulls.Alone(1, path):
        with pytest.raises(pulls.Refused, match="another run"), pulls.Alone(0.1, path):
            order.append("never")

        def later():
            with pulls.Alone(30, path):
                order.append("second")

        thread = threading.Thread(target=later)
        thread.start()
        order.append("first")
    thread.join(30)
    assert order == ["first", "second"]
