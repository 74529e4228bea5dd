# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Put what a state declares in its place on this host: trees, mounts, device nodes, tools.

Everything but the tools' links lies in ``/run`` and is gone when the host stops; the service applies the
state anew at every start.
"""

from __future__ import annotations

import json
import marshal
import os
import stat
import subprocess
import time
from dataclasses import dataclass, field

from . import kernel_log, models, views
from .nvidia_smi import installed_library
from .state import Host
from .tree import sync
from .views import BIND, View

RUN = "/run/accel-emulator"
HOME = "/usr/local/lib/accel-emulator"
BIN = "/usr/local/bin"
# The kernel's null device: whoever opens such a node reads nothing and does no harm. Real drivers have majors of
# their own, which a container could reach the machine's real card through.
_HARMLESS = os.makedev(1, 3)
_IMPORTER = "/usr/lib/systemd/systemd-journal-remote"
_HOLDER = "accel-emulator-holder-"
# Tools that Debian packages too, where its files lie: the real one would find no card.
_PACKAGED = {"nvidia-smi": "/usr/lib/nvidia/current/nvidia-smi"}


@dataclass
class Outcome:
    """What an apply changed, and what it could not do as intended."""

    changes: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def apply(host: Host, check: bool = False) -> Outcome:
    """Bring this host to what is to be shown; ``check`` only tells what would change."""
    outcome = Outcome()
    before = _manifest()
    wanted = views.views(host)
    for target in [one for one in before["mounts"] if one not in {view.target for view in wanted}]:
        outcome.changes.append(f"mount {target}")
        if not check:
            _run("umount", "-l", target)
    owned = {view.name: sorted({path.split("/")[0] for path in view.tree}) for view in wanted}
    for view in wanted:
        _show(view, before["owned"].get(view.name, []), outcome, check)
    _answers(views.answers(host), outcome, check)
    nodes = views.device_nodes(host)
    _nodes(nodes, before["nodes"], outcome, check)
    _tools(sorted(views.answers(host)), outcome, check)
    lines = kernel_log.messages(host)
    logged = _kernel_log(lines, before["kernel_log"], outcome, check)
    held = views.held_nodes(host)
    _holders(held, before["held"], outcome, check)
    if not check:
        manifest = {
            "mounts": [view.target for view in wanted],
            "owned": owned,
            "nodes": nodes,
            "held": held,
            "kernel_log": lines if logged else [],
            "notes": outcome.notes,
        }
        _write(f"{RUN}/manifest.json", json.dumps(manifest, indent=1).encode())
    return outcome


def loaded(vendor: str, declared: str, check: bool = False) -> str:
    """Return the version of the driver's module: that of the packages when the host started, else the declared one.

    Packages that change while it runs leave it alone, as they do on a real host, until the host starts anew or ``load``
    is asked for. It is kept with the declared version that it was made with: another one is another driver.
    """
    if vendor != "nvidia":
        return declared
    path = f"{RUN}/loaded"
    try:
        with open(path, encoding="utf-8") as handle:
            before, _blank, version = handle.read().strip().partition(" ")
        if before == declared and version:
            return version
    except OSError:
        pass
    installed = installed_library()
    version = installed if models.branch(vendor, installed) else declared
    if not check:
        _write(path, f"{declared} {version}\n".encode())
    return version


def unload() -> None:
    """Forget which module was loaded: the next apply loads what is installed."""
    try:
        os.unlink(f"{RUN}/loaded")
    except FileNotFoundError:
        pass


def _manifest() -> dict:
    """Return what the last apply since the host's start left; nothing after a start."""
    empty: dict = {"mounts": [], "owned": {}, "nodes": [], "held": [], "kernel_log": [], "notes": []}
    try:
        with open(f"{RUN}/manifest.json", "rb") as handle:
            return {**empty, **json.load(handle)}
    except (OSError, ValueError):
        return empty


def _run(*argv: str) -> str:
    """Run a command; return what it complained of, an empty text when it was content."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return (done.stderr.strip() or f"rc {done.returncode}") if done.returncode else ""


def _mounted(target: str) -> str | None:
    """Return the options of the uppermost mount at a path, with its type in front; None when there is none."""
    found = None
    with open("/proc/self/mountinfo", encoding="utf-8") as handle:
        for line in handle:
            head, _dash, tail = line.partition(" - ")
            if head.split()[4] == target:
                found = tail.strip()
    return found


def _show(view: View, owned_before: list[str], outcome: Outcome, check: bool) -> None:
    source = f"{RUN}/{view.name}"
    if view.kind == BIND:
        outcome.changes += [f"{view.target}/{path}" for path in sync(source, view.tree, check)]
        _bind(view, source, outcome, check)
        return
    upper, work = f"{source}/upper", f"{source}/work"
    if f"upperdir={upper}" not in (_mounted(view.target) or ""):
        outcome.changes.append(f"mount {view.target}")
        if check:
            return
        os.makedirs(upper, exist_ok=True)
        os.makedirs(work, exist_ok=True)
        options = f"lowerdir={view.target},upperdir={upper},workdir={work}"
        complaint = _run("mount", "-t", "overlay", "accel-emulator", "-o", options, view.target)
        if complaint:
            _without_overlay(view, complaint, outcome)
            return
    # Through the mount and not in the upper directory: changes there under a live overlay are undefined.
    branches: dict[str, dict] = {}
    for path, content in view.tree.items():
        top, _slash, rest = path.partition("/")
        branches.setdefault(top, {})[rest] = content
    for top in sorted(set(owned_before) - set(branches)):
        outcome.changes.append(f"{view.target}/{top}")
        if not check:
            sync(f"{view.target}/{top}", {})
            os.rmdir(f"{view.target}/{top}")
    for top, branch in branches.items():
        outcome.changes += [f"{view.target}/{top}/{path}" for path in sync(f"{view.target}/{top}", branch, check)]


def _without_overlay(view: View, complaint: str, outcome: Outcome) -> None:
    """Fall back to a bind mount where nothing else is needed of the directory; else leave it alone."""
    if view.name != "module":
        outcome.notes.append(f"{view.target} stays as it is: an overlay is refused ({complaint})")
        return
    outcome.notes.append(f"{view.target} shows the emulated modules only: an overlay is refused ({complaint})")
    sync(f"{RUN}/{view.name}/bind", view.tree)
    _bind(view, f"{RUN}/{view.name}/bind", outcome, False)


def _bind(view: View, source: str, outcome: Outcome, check: bool) -> None:
    try:
        if os.path.samefile(source, view.target):
            return
    except OSError:
        pass
    outcome.changes.append(f"mount {view.target}")
    if check:
        return
    if not os.path.isdir(view.target):
        os.makedirs(view.target)
    complaint = _run("mount", "--bind", source, view.target)
    if complaint:
        raise OSError(f"can't show {view.target}: {complaint}")


def _answers(answers: dict[str, dict], outcome: Outcome, check: bool) -> None:
    folder = f"{RUN}/answers"
    for tool, data in answers.items():
        try:
            with open(f"{folder}/{tool}", "rb") as handle:
                if marshal.load(handle) == data:
                    continue
        except (OSError, ValueError, EOFError):
            pass
        outcome.changes.append(f"answers of {tool}")
        if not check:
            os.makedirs(folder, exist_ok=True)
            _write(f"{folder}/{tool}", marshal.dumps(data))
    for tool in os.listdir(folder) if os.path.isdir(folder) else []:
        if tool not in answers:
            outcome.changes.append(f"answers of {tool}")
            if not check:
                os.unlink(f"{folder}/{tool}")


def _nodes(wanted: list[str], before: list[str], outcome: Outcome, check: bool) -> None:
    for name in before:
        if name not in wanted and os.path.lexists(f"/dev/{name}"):
            outcome.changes.append(f"/dev/{name}")
            if not check:
                os.unlink(f"/dev/{name}")
    for name in wanted:
        path = f"/dev/{name}"
        try:
            if stat.S_ISCHR(os.lstat(path).st_mode):
                continue
        except OSError:
            pass
        outcome.changes.append(path)
        if not check:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.mknod(path, 0o666 | stat.S_IFCHR, _HARMLESS)
            os.chmod(path, 0o666)


def _tools(wanted: list[str], outcome: Outcome, check: bool) -> None:
    for tool in views.all_tools():
        path, target = f"{BIN}/{tool}", f"{HOME}/bin/{tool}"
        present = os.readlink(path) if os.path.islink(path) else None
        if (present == target) == (tool in wanted):
            continue
        if present is None and os.path.lexists(path):
            outcome.notes.append(f"{path} is not ours and stays")
            continue
        outcome.changes.append(path)
        if check:
            continue
        if present:
            os.unlink(path)
        if tool in wanted:
            os.symlink(target, path)
    for tool, path in _PACKAGED.items():
        if tool in wanted:
            _in_its_place(path, f"{HOME}/bin/{tool}", outcome, check)


def _in_its_place(path: str, target: str, outcome: Outcome, check: bool) -> None:
    """Answer for a packaged tool under its own path too; dpkg puts the real one aside, now and when it comes later."""
    if os.path.islink(path) and os.readlink(path) == target:
        return
    outcome.changes.append(path)
    if check:
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    aside = f"{path}.real"
    complaint = _run("dpkg-divert", "--local", "--rename", "--divert", aside, "--add", path)
    if complaint:
        outcome.notes.append(f"{path} stays as it is: {complaint}")
        return
    os.symlink(target, f"{path}.new")
    os.replace(f"{path}.new", path)


def _kernel_log(lines: list[str], before: list[str], outcome: Outcome, check: bool) -> bool:
    """Bring the lines into a journal file of this host alone; tell whether they are there.

    The whole file is replaced: lines of a fault that was healed must be gone. It lies in /run like all the rest.
    """
    machine_id = _line("/etc/machine-id")
    path = f"/run/log/journal/{machine_id}/accel-kernel.journal"
    if lines == before and os.path.exists(path):
        return True
    if not os.path.exists(_IMPORTER):
        outcome.notes.append(f"no kernel log is shown: {_IMPORTER} is missing (package systemd-journal-remote)")
        return False
    outcome.changes.append(path)
    if check:
        return False
    os.makedirs(os.path.dirname(path), exist_ok=True)
    boot_id = _line("/proc/sys/kernel/random/boot_id").replace("-", "")
    uptime = time.clock_gettime(time.CLOCK_MONOTONIC)
    entries = kernel_log.export(lines, machine_id, boot_id, os.uname().nodename, time.time(), uptime)
    new = f"{os.path.dirname(path)}/accel-kernel-new.journal"
    for old in (path, new):
        if os.path.exists(old):
            os.unlink(old)
    command = [_IMPORTER, f"--output={new}", "--split-mode=none", "-"]
    done = subprocess.run(command, input=entries, capture_output=True, check=False)
    if done.returncode or not os.path.exists(new):
        said = done.stderr.decode("utf-8", "replace").strip() or f"rc {done.returncode}"
        outcome.notes.append(f"no kernel log is shown: {said}")
        return False
    os.replace(new, path)
    return True


def _unit(node: str) -> str:
    return _HOLDER + node.replace("/", "-")


def _line(path: str) -> str:
    with open(path, encoding="utf-8") as handle:
        return handle.read().strip()


def _holders(wanted: list[str], before: list[str], outcome: Outcome, check: bool) -> None:
    """Let a real process have each of the wanted nodes open, as a service of its own that survives this command."""
    for name in before:
        if name not in wanted:
            outcome.changes.append(f"holder of /dev/{name}")
            if not check:
                _run("systemctl", "stop", _unit(name))
    for name in wanted:
        unit = _unit(name)
        if name in before and not _run("systemctl", "--quiet", "is-active", unit):
            continue
        outcome.changes.append(f"holder of /dev/{name}")
        if not check:
            holding = f"exec sleep infinity <>/dev/{name}"
            complaint = _run("systemd-run", "--quiet", "--collect", f"--unit={unit}", "/bin/sh", "-c", holding)
            if complaint:
                raise OSError(f"can't hold /dev/{name}: {complaint}")


def _write(path: str, content: bytes) -> None:
    with open(f"{path}.new", "wb") as handle:
        handle.write(content)
    os.replace(f"{path}.new", path)
