# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The digests of built images that a site keeps."""

from __future__ import annotations

import json

import pytest
from ansible_collections.accel.cluster.plugins.action import image_lock
from ansible_collections.accel.cluster.plugins.module_utils._accel import record

REGISTRY = "ctl-01:5000"
DIGEST, OTHER = "sha256:" + 64 * "a", "sha256:" + 64 * "b"
NAME = f"{REGISTRY}/train/base:1"


@pytest.fixture
def options(tmp_path) -> dict:
    """Return a site with one recipe, which has a file."""
    file = tmp_path / "loop.py"
    file.write_text("print(1)\n")
    base = {"suite": "bookworm", "sources": ["deb http://mirror.example.org/debian bookworm main"]}
    recipe = {"name": NAME, "base": base, "files": [{"src": str(file), "dest": "/opt/loop.py"}]}
    site = tmp_path / "site"
    return {"site_dir": str(site), "recipes": [recipe], "registry": REGISTRY, "name": None, "digest": None}


def accept(options, digest=DIGEST, check_mode=False) -> dict:
    return image_lock.answer({**options, "name": NAME, "digest": digest}, check_mode)


def kept(options) -> dict:
    return image_lock.answer(options, False)["kept"]


def test_a_digest_is_accepted_once_with_a_line_in_the_history(options, tmp_path):
    assert [one["name"] for one in image_lock.answer(options, False)["build"]] == [NAME]
    told = accept(options)
    assert told["changed"] and DIGEST in told["diff"][0]["after"]
    assert kept(options) == {NAME: DIGEST}
    assert not accept(options)["changed"]
    (line,) = (tmp_path / "site/history.jsonl").read_text().splitlines()
    assert json.loads(line)["event"] == "image_accepted" and json.loads(line)["digest"] == DIGEST


def test_check_mode_writes_nothing(options, tmp_path):
    assert accept(options, check_mode=True)["changed"]
    assert not (tmp_path / "site").exists()


def test_a_tag_means_one_image_for_ever(options):
    accept(options)
    with pytest.raises(record.RecordError, match=f"means {DIGEST} since .* it can't mean {OTHER}"):
        accept(options, OTHER)
    assert kept(options) == {NAME: DIGEST}


def test_a_file_that_changed_is_a_recipe_that_changed(options, tmp_path):
    accept(options)
    (tmp_path / "loop.py").write_text("print(2)\n")
    told = image_lock.answer(options, False)
    assert told["build"] == [] and "give it a new tag" in told["refused"][0]
    with pytest.raises(record.RecordError):
        accept(options)


def test_a_file_that_is_not_there_is_told(options, tmp_path):
    (tmp_path / "loop.py").unlink()
    assert "loop.py can't be read" in image_lock.answer(options, False)["refused"][0]


@pytest.mark.parametrize("digest", ["", "latest", DIGEST[:-1], DIGEST + "\n"])
def test_what_is_no_digest_is_not_accepted(options, digest):
    with pytest.raises(record.RecordError, match="is no digest"):
        accept(options, digest)


def test_a_name_without_a_recipe_is_not_accepted(options):
    with pytest.raises(record.RecordError, match="has no recipe"):
        image_lock.answer({**options, "name": f"{REGISTRY}/other:1", "digest": DIGEST}, False)


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": 1}', '{"schema": 1, "images": {"a": {"digest": "x"}}}'])
def test_a_list_that_was_damaged_is_named_and_left(options, tmp_path, text):
    path = tmp_path / "site/baselines/images.json"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    for ask in (lambda: image_lock.answer(options, False), lambda: accept(options)):
        with pytest.raises(record.RecordError, match=r"images.json line 1"):
            ask()
    assert path.read_text() == text


def test_a_full_disk_accepts_nothing(options, monkeypatch):
    def full(*_unused):
        raise record.RecordError("no space is left on the device")

    monkeypatch.setattr(image_lock.record, "write", full)
    with pytest.raises(record.RecordError, match="no space"):
        accept(options)
    assert kept(options) == {}
