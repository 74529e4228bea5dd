# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Building an image: what is asked of buildah, and that nothing but an image as declared comes out."""

from __future__ import annotations

import json
import os
import stat

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import image_build, image_recipes
from ansible_collections.accel.cluster.plugins.module_utils._accel.runner import Result

REGISTRY = "ctl-01:5000"
DIGEST, OTHER = "sha256:" + 64 * "a", "sha256:" + 64 * "b"
BASE = {
    "name": f"{REGISTRY}/train/base:1",
    "base": {
        "suite": "bookworm",
        "sources": ["deb http://mirror.example.org/debian bookworm main"],
        "packages": ["bash"],
    },
}
TRAIN = {
    "name": f"{REGISTRY}/train/loop:2",
    "from": BASE["name"],
    "packages": {"libnuma1": "2.0.16-1"},
    "python_packages": {"Some_Tool": "1.2"},
    "files": [{"src": "/a/loop.py", "dest": "/opt/loop.py", "mode": "0755"}],
    "commands": ["true"],
    "environment": {"NCCL_DEBUG": "WARN"},
    "labels": {"team": "vision"},
}
DEBS = "deb bash 5.2.15-2\ndeb libnuma1:amd64 2.0.16-1\n"


class Tools:
    """Answers as mmdebstrap and buildah do, and keeps what it was asked."""

    def __init__(
        self, debs=DEBS, python="python some-tool 1.2\n", fails="", hangs="", pushed=DIGEST, mounts="", sources=""
    ):
        self.debs, self.python, self.fails, self.hangs, self.pushed = debs, python, fails, hangs, pushed
        self.mounts, self.calls, self.logins, self.files, self.sources = mounts, [], [], {}, sources

    def read(self, path):
        return self.mounts

    def run(self, argv, timeout_seconds):
        self.calls.append(argv)
        words = argv[argv.index("--storage-driver") + 2 :] if argv[0] == "buildah" else argv
        word = words[0]
        if self.hangs == word:
            return Result(argv, None, "", "", hung=True)
        if self.fails == word:
            return Result(argv, 1, "", f"{word} broke")
        said = ""
        if word == "stat":
            said = "ext2/ext3\n"
        elif word == "apt-get":
            said = self.sources
        elif word == "mmdebstrap":
            with open(argv[-2], "w", encoding="utf-8") as file:
                file.write("tar")
            with open(argv[-1], encoding="utf-8") as file:
                self.files["sources"] = file.read()
        elif word == "from":
            said = "working-container\n"
        elif word == "run":
            script = words[words.index("-ec") + 1]
            said = self.debs if "dpkg-query" in script else self.python if "dist-info" in script else ""
        elif word == "copy" and words[-1] == image_build.LOCK:
            with open(words[-2], encoding="utf-8") as file:
                self.files["lock"] = file.read()
        elif word == "inspect":
            said = json.dumps({"Manifest": json.dumps({"layers": [{"size": 5 << 30}, {"size": 1 << 30}]})})
        elif word == "push":
            with open(words[words.index("--digestfile") + 1], "w", encoding="utf-8") as file:
                file.write(self.pushed)
        if "--authfile" in words:
            path = words[words.index("--authfile") + 1]
            with open(path, encoding="utf-8") as file:
                self.logins.append((word, list(json.load(file)["auths"]), stat.S_IMODE(os.stat(path).st_mode)))
        return Result(argv, 0, said, "")

    def said(self, word: str) -> list[list[str]]:
        """Return what buildah was asked with this word."""
        rows = [argv[argv.index("--storage-driver") + 2 :] for argv in self.calls if argv[0] == "buildah"]
        return [row for row in rows if row[0] == word]


@pytest.fixture
def registry(monkeypatch):
    """Return what the registry answers to the one who reads back."""
    answer = {"state": "ok", "problem": None, "images": [{"state": "ok", "digest": DIGEST, "problem": None}]}
    asked = []

    def check(*words):
        asked.append(words)
        return answer

    monkeypatch.setattr(image_build.registries, "check", check)
    answer["asked"] = asked
    return answer


def build(tmp_path, tools, recipe=None, **more) -> dict:
    recipe = image_recipes.normal(recipe or TRAIN)
    work = image_build.Work(
        folder=str(tmp_path),
        recipe=recipe,
        recipe_hash=64 * "1",
        base=f"{REGISTRY}/train/base@{DIGEST}" if recipe["from"] else "",
        files=["/staged/file-0"],
        push_address="127.0.0.1:5001",
        push_login=("builder", "secret-b"),
        login=("node", "secret-n"),
        created="2026-11-30T22:00:00Z",
        **more,
    )
    return image_build.build(tools, work)


def test_an_image_is_built_pushed_and_read_back(tmp_path, registry):
    tools = Tools()
    told = build(tmp_path, tools)
    assert told["digest"] == DIGEST and told["size_bytes"] == 6 << 30
    assert told["lock"] == ["deb bash 5.2.15-2", "deb libnuma1:amd64 2.0.16-1", "python some-tool 1.2"]
    assert tools.files["lock"].splitlines()[1:] == told["lock"]
    (pulled,), (pushed,) = tools.said("from"), tools.said("push")
    assert pulled[-1] == f"{REGISTRY}/train/base@{DIGEST}" and "--pull-always" in pulled
    assert pushed[-1] == "docker://127.0.0.1:5001/train/loop:2"
    assert tools.logins == [("from", [REGISTRY], 0o600), ("push", ["127.0.0.1:5001"], 0o600)]
    assert not [argv for argv in tools.calls if "secret" in " ".join(argv)]
    assert tools.said("copy")[0][-2:] == ["/staged/file-0", "/opt/loop.py"]
    labels = " ".join(tools.said("config")[-1])
    for word in ("accel.version.libnuma1=2.0.16-1", f"base.digest={DIGEST}", "team=vision", "NCCL_DEBUG=WARN"):
        assert word in labels
    (asked,) = registry["asked"]
    assert asked[0] == REGISTRY and asked[3:5] == ("node", "secret-n") and asked[5] == [TRAIN["name"]]
    assert os.listdir(tmp_path) == []


OWN = "Debian bookworm main http://mirror.example.org/debian/\nVendor bookworm main http://vendor.example.org/\n"


@pytest.mark.parametrize(
    ("told", "sources"),
    [(OWN, "deb http://mirror.example.org/debian/ bookworm main\n"), (OWN.replace("bookworm", "trixie"), None)],
)
def test_a_base_without_sources_has_those_of_the_building_host(tmp_path, registry, told, sources):
    tools = Tools(python="", sources=told)
    recipe = {**BASE, "base": {"suite": "bookworm", "packages": ["bash"]}}
    if sources:
        build(tmp_path, tools, recipe)
        assert tools.files["sources"] == sources
        return
    with pytest.raises(image_build.Problem, match="no source of bookworm"):
        build(tmp_path, tools, recipe)
    assert not [argv for argv in tools.calls if argv[0] == "mmdebstrap"]


def test_a_base_is_made_of_its_sources(tmp_path, registry):
    tools = Tools(python="")
    assert build(tmp_path, tools, BASE)["lock"] == ["deb bash 5.2.15-2", "deb libnuma1:amd64 2.0.16-1"]
    assert tools.files["sources"] == "deb http://mirror.example.org/debian bookworm main\n"
    (argv,) = [argv for argv in tools.calls if argv[0] == "mmdebstrap"]
    assert "--include=ca-certificates,bash" in argv and "bookworm" in argv
    assert tools.said("from") == [["from", "--quiet", "scratch"]]


@pytest.mark.parametrize("word", ["mmdebstrap", "from", "add", "run", "copy", "config", "commit", "inspect", "push"])
def test_each_step_that_fails_is_named_and_nothing_is_left(tmp_path, registry, word):
    with pytest.raises(image_build.Problem, match=f"{word} ended with 1: {word} broke"):
        build(tmp_path, Tools(fails=word, python=""), BASE)
    assert os.listdir(tmp_path) == []
    with pytest.raises(image_build.Problem, match=f"{word} was ended: it took longer than 3600 s"):
        build(tmp_path, Tools(hangs=word, python=""), BASE)


@pytest.mark.parametrize(
    ("tools", "words"),
    [
        (Tools(debs="deb libnuma1 2.0.17-1\n"), "libnuma1 is 2.0.17-1 in the built image, 2.0.16-1 is declared"),
        (Tools(debs="deb bash 1\n"), "libnuma1 is not there in the built image"),
        (Tools(python=""), "Some_Tool is not there"),
        (Tools(pushed=OTHER), f"{OTHER} was pushed, {REGISTRY} gives {DIGEST}"),
    ],
)
def test_what_is_not_as_declared_is_no_image(tmp_path, registry, tools, words):
    with pytest.raises(image_build.Problem, match=words):
        build(tmp_path, tools)


def test_a_registry_that_does_not_give_it_back_is_named(tmp_path, registry):
    registry["images"] = [{"state": "absent", "digest": None, "problem": "HTTP 404"}]
    with pytest.raises(image_build.Problem, match="does not give back what was pushed: ok HTTP 404"):
        build(tmp_path, Tools())
    registry.update(state="login_refused", problem="HTTP 401", images=[])
    with pytest.raises(image_build.Problem, match="login_refused HTTP 401"):
        build(tmp_path, Tools())


def test_what_the_registry_has_no_room_for_is_not_pushed(tmp_path, registry):
    tools = Tools()
    with pytest.raises(image_build.Problem, match=r"the image has 6.00 GiB, 5.00 GiB are left .*nothing was pushed"):
        build(tmp_path, tools, room_bytes=5 << 30)
    assert tools.said("push") == []


def test_without_room_nothing_is_begun(tmp_path, registry):
    tools = Tools()
    with pytest.raises(image_build.Problem, match="image_free_gib is 1e"):
        build(tmp_path, tools, free_gib=1e9)
    assert tools.calls == []


def test_what_a_killed_build_left_goes_first_its_mounts_before_it(tmp_path, registry):
    left = tmp_path / "run/storage/overlay/merged"
    left.mkdir(parents=True)
    (left / "of_another").write_text("x")
    tools = Tools(mounts=f"overlay {left} overlay rw 0 0\nproc /proc proc rw 0 0\nproc {left}/proc proc rw 0 0\n")
    with pytest.raises(image_build.Problem, match="can't be written"):
        build(tmp_path, tools)
    assert [argv[-1] for argv in tools.calls if argv[0] == "umount"][:2] == [f"{left}/proc", str(left)]
    # What is still mounted is not removed: it may be the root of something else.
    assert (left / "of_another").exists()
    assert build(tmp_path, Tools())["digest"] == DIGEST
    assert os.listdir(tmp_path) == []
