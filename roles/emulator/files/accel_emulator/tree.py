# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring a directory to a wanted content, touching only what differs.

A tree maps a relative path to bytes (a file), text (a symbolic link) or None (a directory).
"""

from __future__ import annotations

import os
import shutil
import stat


def sync(root: str, tree: dict, check: bool = False) -> list[str]:
    """Make ``root`` hold ``tree`` and nothing else; return the paths that differed.

    Files are replaced in one step, so that a reader finds the old or the new content, and the directory
    itself stays: it may be the source of a bind mount. ``check``: only tell.
    """
    wanted_dirs = {""}
    for path, content in tree.items():
        parent = os.path.dirname(path)
        while parent not in wanted_dirs:
            wanted_dirs.add(parent)
            parent = os.path.dirname(parent)
        if content is None:
            wanted_dirs.add(path)
    changed: list[str] = []
    present: dict[str, os.stat_result] = {}
    for folder, names, files in os.walk(root):
        inside = os.path.relpath(folder, root)
        inside = "" if inside == "." else inside
        for name in list(names) + files:
            path = os.path.join(inside, name)
            status = os.lstat(os.path.join(folder, name))
            is_dir = stat.S_ISDIR(status.st_mode)
            if (path in wanted_dirs) if is_dir else isinstance(tree.get(path), (bytes, str)):
                present[path] = status
                continue
            changed.append(path)
            if is_dir:
                names.remove(name)
                if not check:
                    shutil.rmtree(os.path.join(folder, name))
            elif not check:
                os.unlink(os.path.join(folder, name))
    for path in sorted(wanted_dirs):
        if path not in present and not os.path.isdir(os.path.join(root, path)):
            changed.append(path)
            if not check:
                os.makedirs(os.path.join(root, path), exist_ok=True)
    for path, content in tree.items():
        if content is None or _same(os.path.join(root, path), content, present.get(path)):
            continue
        changed.append(path)
        if not check:
            _put(os.path.join(root, path), content)
    return changed


def _same(path: str, content: object, status: os.stat_result | None) -> bool:
    if status is None:
        return False
    if isinstance(content, str):
        return stat.S_ISLNK(status.st_mode) and os.readlink(path) == content
    if not stat.S_ISREG(status.st_mode) or status.st_size != len(content):  # type: ignore[arg-type]
        return False
    with open(path, "rb") as handle:
        return handle.read() == content


def _put(path: str, content: object) -> None:
    fresh = f"{path}.new"
    if os.path.lexists(fresh):
        os.unlink(fresh)
    if isinstance(content, str):
        os.symlink(content, fresh)
    else:
        with open(fresh, "wb") as handle:
            handle.write(content)  # type: ignore[arg-type]
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    os.replace(fresh, path)
