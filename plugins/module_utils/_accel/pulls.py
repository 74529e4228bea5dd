# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Bring images to a host: by digest, bounded, and so that a pull that breaks off leaves nothing that is in the way.

A tag is never pulled: whoever may push can move it. It is put onto the image here, after the digest was proven.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence

from . import containers, images
from .text import excerpt

PULL, TAG, HELD = "pull", "tag", "held"
LOCK = "/run/lock/accel-container-images.lock"
# Where a pull keeps what it has received: beside the storage, so that both are on the file system that was measured.
SCRATCH = "accel-pull-"


class Refused(Exception):
    """An image can't be brought here; the text says which and why."""


def plan(held: Sequence[Mapping], words: Sequence[str]) -> list[dict]:
    """Return what is to be done for each pinned image, ``{"reference", "name", "tag", "digest", "action"}``.

    ``action`` is pull, tag or held. ValueError for an image without a digest.
    """
    steps = []
    for word in words:
        wanted = images.reference(word)
        if wanted is None or not wanted.digest:
            raise ValueError(f"{word} has no digest: an image is pulled by nothing else")
        action = HELD
        if wanted.digest not in images.held(held, wanted)[1]:
            action = PULL
        elif wanted.tag and wanted.digest not in (images.digests_of_tag(held, wanted) or ()):
            action = TAG
        steps.append(
            {
                "reference": word,
                "name": wanted.name,
                "tag": wanted.tag,
                "digest": wanted.digest,
                "action": action,
            }
        )
    return steps


def look(runner, engine: str, timeout_seconds: float) -> tuple[dict, list[dict]]:
    """Return what ``containers.observe`` says of the engine and the images that it holds; Refused where it can't."""
    seen = containers.observe(runner, engine, timeout_seconds=timeout_seconds)
    about = seen["engine"]
    if about["state"] != "ok":
        raise Refused(f"{engine} is {about['state']}: {about['problem'] or 'it is not installed'}")
    if seen["images"] is None:
        raise Refused(f"{engine} did not list its images: {'; '.join(seen['errors'])}")
    return about, seen["images"]


def carry_out(
    runner,
    about: Mapping,
    step: Mapping,
    auth_file: str | None,
    free_gib: float,
    timeout_seconds: float,
) -> None:
    """Pull and tag one image as planned; Refused says what kept it from being done."""
    pinned = f"{step['name']}@{step['digest']}"
    if step["action"] == PULL:
        _refuse_full(runner, about, pinned, free_gib)
        folder = os.path.dirname(str(about["storage_path"]).rstrip("/"))
        scratch = tempfile.mkdtemp(prefix=SCRATCH, dir=folder)
        try:
            done = runner.run(_pull(about, pinned, auth_file, scratch), timeout_seconds)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        if done.hung:
            raise Refused(f"{pinned} did not come within {timeout_seconds:g} s (container_pull_timeout_seconds)")
        if done.rc != 0:
            raise Refused(f"{pinned} did not come: {_reason(done.stderr) or f'ended with {done.rc}'}")
    if step["tag"] and step["action"] != HELD:
        done = runner.run([about["path"], "tag", pinned, f"{step['name']}:{step['tag']}"], 60)
        if done.hung or done.rc != 0:
            raise Refused(f"{pinned} could not be tagged {step['tag']}: {_reason(done.stderr) or 'no answer in time'}")


def _pull(about: Mapping, pinned: str, auth_file: str | None, scratch: str) -> list[str]:
    path = str(about["path"])
    if about["name"] == "docker":
        # Its logins are in a file config.json of a folder; what it receives, the daemon keeps.
        settings = ["--config", os.path.dirname(auth_file)] if auth_file else []
        return [path, *settings, "pull", "--quiet", pinned]
    settings = ["--authfile", auth_file] if auth_file else []
    return ["env", f"TMPDIR={scratch}", path, "pull", "--quiet", *settings, pinned]


def _refuse_full(runner, about: Mapping, pinned: str, free_gib: float) -> None:
    room = runner.run(["df", "-B1", "--output=avail", str(about["storage_path"])], 20)
    free = re.findall(r"^\s*(\d{1,20})\s*$", room.stdout, re.MULTILINE | re.ASCII)
    if len(free) != 1:
        raise Refused(f"{pinned} was not pulled: how much is free on {about['storage_path']} is not known")
    if int(free[0]) < free_gib * containers.GIB:
        raise Refused(
            f"{pinned} was not pulled: {int(free[0]) / containers.GIB:.1f} GiB are free on {about['storage_path']}, "
            f"{free_gib:g} GiB must be (container_storage_free_gib)"
        )


def _reason(words: str) -> str:
    """Return the last of what an engine complains about: podman tells each retry, Docker the progress."""
    told = [line for line in words.strip().splitlines() if line.strip()]
    return excerpt(told[-1], limit=600) if told else ""


def tidy(about: Mapping) -> None:
    """Remove what a pull that was killed had received. Only for whoever has the lock: then nobody pulls."""
    folder = os.path.dirname(str(about["storage_path"]).rstrip("/"))
    try:
        names = [name for name in os.listdir(folder) if name.startswith(SCRATCH)]
    except OSError:
        return
    for name in names:
        shutil.rmtree(os.path.join(folder, name), ignore_errors=True)


class Alone:
    """One run at a time on a host; Refused after waiting as long as a pull may take."""

    def __init__(self, timeout_seconds: float, path: str = LOCK) -> None:
        """Keep the limit; the lock is taken by entering."""
        self.timeout, self.path = timeout_seconds, path

    def __enter__(self) -> Alone:
        """Wait for the lock."""
        self.file = open(self.path, "a", encoding="utf-8")
        end = time.monotonic() + self.timeout
        while True:
            try:
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return self
            except OSError as exc:
                if exc.errno not in (errno.EAGAIN, errno.EACCES):
                    raise
            if time.monotonic() >= end:
                self.file.close()
                raise Refused(f"another run has pulled images here for more than {self.timeout:g} s ({self.path})")
            time.sleep(0.5)  # flock has no time limit of its own

    def __exit__(self, *_unused: object) -> None:
        """Give the lock back."""
        self.file.close()
