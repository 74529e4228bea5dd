# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bringing a directory to a wanted content."""

from __future__ import annotations

import os

from accel_emulator.tree import sync

WANTED = {"devices": None, "tree/a/vendor": b"0x10de\n", "tree/a/driver": "../../drivers/nvidia", "empty/deep": None}


def listing(root) -> dict:
    found: dict = {}
    for folder, names, files in os.walk(root):
        for name in names + files:
            path = os.path.join(folder, name)
            inside = os.path.relpath(path, root)
            if os.path.islink(path):
                found[inside] = os.readlink(path)
            elif os.path.isdir(path):
                found[inside] = None
            else:
                with open(path, "rb") as handle:
                    found[inside] = handle.read()
    return found


def test_a_new_directory_gets_everything(tmp_path) -> None:
    root = tmp_path / "bus"
    assert sync(str(root), WANTED)
    assert listing(root) == {**WANTED, "tree": None, "tree/a": None, "empty": None}


def test_a_second_time_nothing_differs_and_nothing_is_written(tmp_path) -> None:
    sync(str(tmp_path), WANTED)
    before = os.stat(tmp_path / "tree/a/vendor").st_mtime_ns, os.lstat(tmp_path / "tree/a/driver").st_ino
    assert sync(str(tmp_path), WANTED) == []
    assert (os.stat(tmp_path / "tree/a/vendor").st_mtime_ns, os.lstat(tmp_path / "tree/a/driver").st_ino) == before


def test_only_what_differs_is_touched_and_leftovers_go(tmp_path) -> None:
    sync(str(tmp_path), {**WANTED, "tree/a/stale": b"1", "tree/b/vendor": b"2", "old": "somewhere"})
    assert sorted(sync(str(tmp_path), {**WANTED, "tree/a/vendor": b"0x1002\n"})) == [
        "old",
        "tree/a/stale",
        "tree/a/vendor",
        "tree/b",
    ]
    assert listing(tmp_path)["tree/a/vendor"] == b"0x1002\n"
    assert "tree/b" not in listing(tmp_path)


def test_a_directory_stays_the_same_one(tmp_path) -> None:
    # It is the source of a bind mount: another directory in its place would not be seen.
    sync(str(tmp_path), WANTED)
    before = os.stat(tmp_path).st_ino, os.stat(tmp_path / "tree").st_ino
    sync(str(tmp_path), {**WANTED, "tree/a/vendor": b"0x1002\n", "tree/c/vendor": b"3"})
    assert (os.stat(tmp_path).st_ino, os.stat(tmp_path / "tree").st_ino) == before


def test_things_of_another_kind_are_replaced(tmp_path) -> None:
    sync(str(tmp_path), {"a": b"file", "b/inside": b"1", "c": "link", "d": None})
    sync(str(tmp_path), {"a/inside": b"2", "b": b"file", "c": b"file", "d": "link"})
    assert listing(tmp_path) == {"a": None, "a/inside": b"2", "b": b"file", "c": b"file", "d": "link"}


def test_a_check_tells_and_touches_nothing(tmp_path) -> None:
    sync(str(tmp_path), WANTED)
    before = listing(tmp_path)
    changes = sync(str(tmp_path), {"tree/a/vendor": b"other", "new": b"1"}, check=True)
    assert {"tree/a/vendor", "new", "devices", "empty"} <= set(changes)
    assert listing(tmp_path) == before
