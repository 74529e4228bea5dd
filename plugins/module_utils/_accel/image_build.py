# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Build one image as its recipe says, push it, and read back what the registry made of it.

Everything lies in a folder of its own, storage and all; where a build was killed, the next one removes it. An image is
worth nothing before ``build`` has returned: nothing refers to it until its digest is accepted.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from . import apt, images, registries
from .model import dicts_of
from .text import excerpt

LOCK = "/etc/accel/image.lock"
_LABEL = "org.opencontainers.image."
# What documentation costs every node, layer by layer; licences stay.
_LEAN = (
    "path-exclude=/usr/share/man/*",
    "path-exclude=/usr/share/doc/*",
    "path-include=/usr/share/doc/*/copyright",
    "path-exclude=/usr/share/locale/*",
)
# Every package with its version, from what the image itself knows of them. Python's from their metadata, not by Python:
# a minimal one can't tell them, and there may be several.
_LIST_PACKAGES = (
    "if command -v dpkg-query >/dev/null; then dpkg-query -W -f 'deb ${binary:Package} ${Version}\\n'; "
    "else rpm -qa --queryformat 'rpm %{NAME} %{EVR}\\n'; fi"
)
_LIST_PYTHON = (
    "find / -xdev -type f '(' -path '*.dist-info/METADATA' -o -path '*.egg-info/PKG-INFO' -o -name '*.egg-info' ')' "
    """-exec awk 'FNR == 1 { name = version = ""; over = 0 } /^$/ { over = 1 } over { next } """
    """/^Name: / { name = $2 } /^Version: / { version = $2 } """
    """name && version { print "python", name, version; over = 1 }' {} +"""
)
_APT = (
    "export DEBIAN_FRONTEND=noninteractive; apt-get update -q -o APT::Update::Error-Mode=any && "
    'apt-get install -qy --no-install-recommends --allow-downgrades "$@" && apt-get clean && '
    "rm -rf /var/lib/apt/lists/*"
)


class Problem(Exception):
    """Why there is no image; its text is the whole message."""


@dataclass
class Work:
    """What a build needs beside its recipe. ``base`` is the image to start from with its digest, "" for none.

    ``files`` are the staged files of the recipe, in its order. ``room_bytes`` is what the image may be large.
    """

    folder: str
    recipe: Mapping
    recipe_hash: str
    base: str
    files: Sequence[str]
    push_address: str
    push_login: tuple[str, str]
    login: tuple[str, str]
    scheme: str = "https"
    ca_file: str = ""
    room_bytes: int | None = None
    free_gib: float = 0
    timeout_seconds: float = 3600
    created: str = ""


def build(runner, work: Work) -> dict:
    """Return digest, size and package list of the pushed image; Problem where there is none."""
    builder = _Builder(runner, work)
    clean(runner, work.folder)
    try:
        free = shutil.disk_usage(work.folder).free / (1 << 30)
        if free < work.free_gib:
            raise Problem(f"{free:.1f} GiB are free in {work.folder}, image_free_gib is {work.free_gib:g}")
        os.makedirs(builder.folder, mode=0o700)
        return builder.all_of()
    except OSError as exc:
        raise Problem(f"{work.folder} can't be written: {exc.strerror or exc}") from None
    finally:
        clean(runner, work.folder)


def clean(runner, folder: str) -> None:
    """Remove what a build has left, mounts first: removing what is mounted there would remove what is below it."""
    inside = os.path.join(folder, "run")
    for path in mounts_below(runner.read("/proc/self/mounts") or "", inside):
        runner.run(["umount", "--lazy", path], 30)
    if not mounts_below(runner.read("/proc/self/mounts") or "", inside):
        shutil.rmtree(inside, ignore_errors=True)


def mounts_below(mounts: str, folder: str) -> list[str]:
    """Return what is mounted in a folder, by /proc/mounts, the deepest first."""
    rows = [line.split(" ") for line in mounts.splitlines()]
    paths = [re.sub(r"\\([0-7]{3})", lambda one: chr(int(one[1], 8)), row[1]) for row in rows if len(row) > 2]
    return sorted((path for path in paths if path.startswith(folder + "/")), key=len, reverse=True)


class _Builder:
    def __init__(self, runner, work: Work) -> None:
        self.runner, self.work = runner, work
        self.folder = os.path.join(work.folder, "run")
        self.container = ""
        wanted = images.reference(str(work.recipe["name"]))
        if wanted is None:
            raise Problem(f"{work.recipe['name']} is no image")
        self.wanted = wanted

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def all_of(self) -> dict:
        """Build, push, read back."""
        self._start()
        recipe = self.work.recipe
        for one, staged in zip(dicts_of(recipe["files"]), self.work.files):
            mode = str(one.get("mode", "0644"))
            self.tool("copy", "--quiet", "--chmod", mode, "--chown", "0:0", self.container, staged, one["dest"])
        if recipe["packages"]:
            self.inside(_APT, "-", *(f"{name}={version}" for name, version in recipe["packages"].items()))
        if recipe["python_packages"]:
            index = ["--index-url", recipe["python_index"]] if recipe["python_index"] else []
            pinned = [f"{name}=={version}" for name, version in recipe["python_packages"].items()]
            words = ["--no-cache-dir", "--disable-pip-version-check", "--root-user-action=ignore", *index, *pinned]
            # Debian's pip of 13 and newer asks to be told that nobody else manages these; older ones know no such word.
            self.inside('PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip install "$@"', "-", *words)
        for command in recipe["commands"]:
            self.inside(command)
        lock = self._lock()
        self._label(lock)
        name = f"localhost/accel-build:{self.work.recipe_hash[:12]}"
        self.tool("commit", "--quiet", "--format", "oci", "--rm", self.container, name)
        size = self._size(name)
        digest = self._push(name)
        return {"digest": digest, "size_bytes": size, "lock": lock}

    def _start(self) -> None:
        recipe, work = self.work.recipe, self.work
        if not recipe["base"]:
            # By its digest, as nodes would: what the registry gives for a name may change between two questions.
            self._login(self.wanted.registry, work.login)
            words = ["--authfile", self.path("login.json"), "--cert-dir", self._trusted(), "--pull-always"]
            self.container = self.tool("from", "--quiet", *words, work.base).strip()
            return
        base = recipe["base"]
        sources = self.path("sources.list")
        with open(sources, "w", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in base["sources"] or self._own_sources(base["suite"])))
        packages = ["ca-certificates", *base["packages"]]
        argv = ["mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", f"--include={','.join(packages)}"]
        argv += [f"--dpkgopt={word}" for word in _LEAN]
        self.command([*argv, base["suite"], self.path("base.tar"), sources])
        self.container = self.tool("from", "--quiet", "scratch").strip()
        self.tool("add", "--quiet", self.container, self.path("base.tar"), "/")
        self.tool("config", "--cmd", "/bin/bash", self.container)
        os.unlink(self.path("base.tar"))

    def _own_sources(self, suite: str) -> list[str]:
        """Return the sources of the building host for a release of its distribution."""
        told = self.command(["apt-get", "indextargets", "--format", apt.SOURCES_FORMAT, "Created-By: Packages"])
        lines = apt.parse_sources(told, suite)
        if not lines:
            raise Problem(
                f"this host has no source of {suite}: run apt-get update here, or name base.sources in the recipe"
            )
        return lines

    def _lock(self) -> list[str]:
        """Write the list of packages into the image and return it; Problem where it is not what was asked for."""
        told = self.inside(_LIST_PACKAGES) + self.inside(_LIST_PYTHON)
        lock = sorted({line.strip() for line in told.splitlines() if line.strip()})
        there = {tuple(line.split(" ", 2)[:2]): line.split(" ", 2)[2] for line in lock if line.count(" ") == 2}
        for kind, key in (("deb", "packages"), ("python", "python_packages")):
            for name, version in self.work.recipe[key].items():
                found = next((it for (its, one), it in there.items() if its == kind and _same(kind, one, name)), None)
                if found != version:
                    raise Problem(f"{name} is {found or 'not there'} in the built image, {version} is declared")
        text = f"# Packages of {self.work.recipe['name']}, recipe {self.work.recipe_hash}\n" + "\n".join(lock) + "\n"
        with open(self.path("image.lock"), "w", encoding="utf-8") as file:
            file.write(text)
        self.tool("copy", "--quiet", "--chmod", "0444", "--chown", "0:0", self.container, self.path("image.lock"), LOCK)
        return lock

    def _label(self, lock: Sequence[str]) -> None:
        recipe, work = self.work.recipe, self.work
        labels = {
            _LABEL + "ref.name": str(recipe["name"]),
            _LABEL + "version": str(self.wanted.tag),
            _LABEL + "created": work.created,
            "accel.recipe": work.recipe_hash,
            "accel.packages": str(len(lock)),
        }
        base = images.reference(work.base)
        if base and base.digest:
            labels.update({_LABEL + "base.name": base.name, _LABEL + "base.digest": base.digest})
        for key in ("packages", "python_packages"):
            labels.update({f"accel.version.{name}": version for name, version in recipe[key].items()})
        labels.update(recipe["labels"])
        words = [word for key, value in labels.items() for word in ("--label", f"{key}={value}")]
        words += [word for key, value in recipe["environment"].items() for word in ("--env", f"{key}={value}")]
        self.tool("config", *words, self.container)

    def _size(self, name: str) -> int:
        told = json.loads(self.tool("inspect", "--type", "image", name))
        try:
            # Of the layers as they lie here; the registry will have them compressed, and some of them already.
            size = sum(int(one["size"]) for one in json.loads(told["Manifest"])["layers"])
        except (KeyError, TypeError, ValueError):
            raise Problem(f"buildah does not tell how large {name} is") from None
        room = self.work.room_bytes
        if room is not None and size > room:
            raise Problem(
                f"the image has {size / (1 << 30):.2f} GiB, {max(room, 0) / (1 << 30):.2f} GiB are left to images "
                "(cluster_registry_storage_limit_gib, cluster_registry_storage_free_gib): nothing was pushed"
            )
        return size

    def _push(self, name: str) -> str:
        work = self.work
        self._login(work.push_address, work.push_login)
        words = ["--authfile", self.path("login.json"), "--cert-dir", self._trusted()]
        if work.scheme == "http":
            words.append("--tls-verify=false")
        target = f"docker://{work.push_address}/{self.wanted.repository}:{self.wanted.tag}"
        told = self.path("digest")
        self.tool("push", "--quiet", *words, "--format", "oci", "--digestfile", told, name, target)
        with open(told, encoding="utf-8") as file:
            pushed = file.read().strip()
        # As nodes will: from the service that only reads, by their login, the digest worked out from the bytes.
        answer = registries.check(
            self.wanted.registry, work.scheme, [work.ca_file] if work.ca_file else (), *work.login,
            [str(work.recipe["name"])], 60,
        )  # fmt: skip
        row: dict = next(iter(answer["images"]), {})
        if answer["state"] != "ok" or row.get("state") != "ok":
            why = answer["problem"] or row.get("problem")
            raise Problem(f"{self.wanted.registry} does not give back what was pushed: {answer['state']} {why}")
        if row["digest"] != pushed:
            raise Problem(f"{pushed} was pushed, {self.wanted.registry} gives {row['digest']}")
        return pushed

    def _trusted(self) -> str:
        folder = self.path("trusted")
        os.makedirs(folder, exist_ok=True)
        if self.work.ca_file:
            shutil.copyfile(self.work.ca_file, os.path.join(folder, "ca.crt"))
        return folder

    def _login(self, address: str, login: tuple[str, str]) -> None:
        """Write a login for one registry alone, where nobody else reads it and nothing outlives the build."""
        pair = base64.b64encode(":".join(login).encode()).decode("ascii")
        with open(self.path("login.json"), "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), 0o600)
            json.dump({"auths": {address: {"auth": pair}} if login[0] else {}}, file)

    def tool(self, *words: str) -> str:
        """Run buildah with a storage of its own and return what it said."""
        # Overlays can't be stacked on an overlay, which is what the root of a container often is.
        kind = self.runner.run(["stat", "--file-system", "--format=%T", self.folder], 30).stdout.strip()
        driver = "vfs" if kind in ("overlayfs", "overlay", "tmpfs") else "overlay"
        argv = ["buildah", "--root", self.path("storage"), "--runroot", self.path("runroot"), "--storage-driver"]
        return self.command([*argv, driver, *words], f"buildah {words[0]}")

    def inside(self, script: str, *words: str) -> str:
        """Run a script of the shell in the image that is being built."""
        # Needs neither a runtime nor control groups, so it works in containers too. What it runs is the site's own.
        argv = ["run", "--isolation", "chroot", self.container, "--", "/bin/sh", "-ec", script, *words]
        return self.tool(*argv)

    def command(self, argv: list[str], shown: str = "") -> str:
        """Run a command in bounded time; Problem says what it said."""
        shown = shown or argv[0]
        result = self.runner.run(argv, self.work.timeout_seconds)
        if result.hung:
            raise Problem(f"{shown} was ended: it took longer than {self.work.timeout_seconds:g} s")
        if result.rc != 0:
            said = excerpt(result.stderr, result.stdout, limit=1500)
            raise Problem(f"{shown} ended with {result.rc}: {said}")
        return result.stdout


def _same(kind: str, one: str, name: str) -> bool:
    """Tell whether two names mean one package: Python takes - _ . for the same, dpkg adds an architecture."""
    if kind == "deb":
        return one == name or one.partition(":")[0] == name
    return re.sub("[-_.]+", "-", one).lower() == re.sub("[-_.]+", "-", name).lower()
