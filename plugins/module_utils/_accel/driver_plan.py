# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""What would be done to bring a driver's packages to their declared versions, and why it must not be done.

Asked before anything of the host is touched: the repositories that are to be configured are read into a temporary
directory, beside the lists that the host has, and the real resolver is run there as a simulation. So the answer is the
same in check mode and on a host that has none of it yet. A host that is as declared asks no repository.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from . import apt, boot, pci, registry, stack
from .runner import Runner
from .text import excerpt

LISTS = "/var/lib/apt/lists"
PARTS = "/etc/apt/sources.list.d"
ARCHIVES = "/var/cache/apt/archives"
# Room that is left beside what the packages need, in bytes; a build of a module takes more.
_SPARE, _SPARE_BUILD = 64 << 20, 1 << 30
# Only the lists are the trial's own: holds, preferences and packages are the host's.
_OWN_LISTS = """\
Dir::State::lists "{folder}/lists";
Dir::Cache "{folder}/cache";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
Dir::Etc::sourceparts "{folder}/sources";
APT::Sandbox::User "root";
"""
# A source that can't be read is an error here, and the host's others are not asked.
_OWN_SOURCES = (
    "-o", "Dir::Etc::sourcelist=/dev/null", "-o", "APT::Get::List-Cleanup=0", "-o", "APT::Update::Error-Mode=any",
)  # fmt: skip

# What apt says of a source, and what that means to whoever declared it.
_REASONS = (
    (r"(?:NO_PUBKEY|ERRSIG) \w+", "the repository is signed with a key that it was not declared with"),
    (r"(?:EXPKEYSIG|EXPSIG|KEYEXPIRED) \w+", "the key or the signature of the repository has expired"),
    (r"REVKEYSIG \w+", "the key of the repository was revoked"),
    (r"is not signed", "the repository is not signed"),
    (r"File not found - \S+/Packages", "the folder has no index (apt-ftparchive packages . > Packages makes it)"),
)


@dataclass
class Plan:
    """What would be done. ``versions`` are exact, ``changes`` has a sentence for each package that would change.

    ``refused`` has one for each reason not to do it; ``unheld`` are packages of the set that are not held, or to come.
    ``versions`` have installed packages too that would bring another kernel than the declared; ``remove`` are kernels
    that would boot in its place. ``fabric_manager`` is its service where the cards need it, "" where they do not.
    """

    versions: dict[str, str] = field(default_factory=dict)
    changes: list[str] = field(default_factory=list)
    unheld: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    remove: list[str] = field(default_factory=list)
    fabric_manager: str = ""


@dataclass
class Wanted:
    """What is declared: packages with full or short versions, sources as deb822, what may be done to get there."""

    packages: Mapping[str, str]
    sources: str = ""
    own_file: str = ""
    nodes: Sequence[str] = ()
    downgrade_allowed: bool = False
    in_use_allowed: bool = False
    # What concerns module and kernel; without a vendor nothing is known of them.
    vendor: str = ""
    fabric_manager: bool | None = None  # None: the switches on the bus tell
    kernel_removal_allowed: bool = False
    reboot_allowed: bool = False
    module_signed: bool = False


def make(runner: Runner, wanted: Wanted, timeout_seconds: float) -> Plan:
    """Return what is to be done; nothing of the host is written."""
    plan = Plan()
    every, problem = apt.installed(runner, timeout_seconds)
    if problem:
        plan.refused.append(problem)
        return plan
    there = {one.name: one for one in every if one.status == "installed"}
    wanted = replace(wanted, packages=_with_fabric_manager(runner, wanted, plan))
    kernels = boot.plan(runner, wanted.packages, there, wanted.kernel_removal_allowed, timeout_seconds)
    wanted = replace(wanted, packages={**wanted.packages, **kernels.keep})
    plan.refused += kernels.refused
    plan.remove = list(kernels.remove)
    plan.changes = [f"{name} {version} -> (none)" for name, version in kernels.remove.items()]
    plan.unheld = [name for name in wanted.packages if name not in there or not there[name].held]
    open_ones = [name for name in wanted.packages if not wanted.packages[name]]
    if open_ones:
        plan.refused.append(f"no version is declared of {', '.join(open_ones)}")
        return plan
    fitting = [
        name for name in wanted.packages if name in there and stack.fits(there[name].version, wanted.packages[name])
    ]
    if len(fitting) == len(wanted.packages):
        plan.versions = {name: there[name].version for name in wanted.packages}
        return plan
    plan.refused += _state_of_dpkg(runner, every)
    plan.refused += in_use(runner, wanted.nodes, wanted.in_use_allowed)
    plan.refused += _taken(runner, wanted)
    with tempfile.TemporaryDirectory(prefix="accel-plan-") as folder:
        _resolve(runner, wanted, there, folder, plan, timeout_seconds)
    return plan


def _state_of_dpkg(runner: Runner, every: Sequence[apt.Package]) -> list[str]:
    broken = [f"{one.full} ({one.status})" for one in every if one.status in apt.BROKEN]
    found = [f"packages are half installed: {', '.join(broken)}; run dpkg --configure -a"] if broken else []
    busy = apt.locked(runner)
    return found + ([f"another package manager is at work: {busy}"] if busy else [])


def in_use(runner: Runner, patterns: Sequence[str], allowed: bool) -> list[str]:
    """Return who has cards open: a job whose libraries are exchanged under it fails at its next start of a process."""
    nodes = frozenset(path for pattern in patterns for path in runner.glob(pattern))
    if allowed or not nodes:
        return []
    held, complete = runner.holders(nodes)
    pids = sorted({pid for one in held.values() for pid in one})
    if not pids:
        return [] if complete else ["whether a process holds the cards could not be told"]
    names = [f"{runner.read(f'/proc/{pid}/comm') or '?'} ({pid})" for pid in pids[:5]]
    more = f" and {len(pids) - 5} more" if len(pids) > 5 else ""
    return [f"the cards are in use by {', '.join(names)}{more}; drain the node, or set driver_in_use_allowed"]


def _with_fabric_manager(runner: Runner, wanted: Wanted, plan: Plan) -> dict[str, str]:
    """Return the packages without a fabric manager where no switch is on the board; refuse a board that lacks one."""
    facts = registry.VENDORS[wanted.vendor].stack.fabric_manager if wanted.vendor else None
    if facts is None:
        return dict(wanted.packages)
    named = [name for name in wanted.packages if re.match(facts.package, name)]
    needed = wanted.fabric_manager
    if needed is None:
        known = registry.VENDORS[wanted.vendor]
        bus = pci.functions(runner, detailed=lambda one: False)
        switches = sum(one.vendor in known.pci_vendors and one.device in facts.switches for one in bus)
        needed = switches > 0
        if not bus and named:
            plan.refused.append("the PCI bus could not be read: declare driver_fabric_manager, required or none")
        if needed and not named:
            plan.refused.append(
                f"the board has {switches} switches, and no fabric manager is in the set: name its package in "
                "driver_packages, or set driver_fabric_manager to none where the image brings it"
            )
    elif needed and not named:
        plan.refused.append("driver_fabric_manager is required, and no package of it is in the set")
    plan.fabric_manager = facts.service if needed and named else ""
    return {name: one for name, one in wanted.packages.items() if needed or name not in named}


def _taken(runner: Runner, wanted: Wanted) -> list[str]:
    """Return which other drivers have the cards: after the installation they would still have them."""
    if not wanted.vendor:
        return []
    found = []
    for driver, cards in boot.taken(runner, wanted.vendor).items():
        if driver in registry.VENDORS[wanted.vendor].stack.wrong_modules:
            if wanted.reboot_allowed and not boot.shared_kernel(runner):
                continue
            way = "only a reboot takes them away: set driver_reboot_allowed, or unload it"
        else:
            way = "it hands them on to a virtual machine or a program"
        found.append(f"{driver} has the cards {', '.join(cards)}; {way}")
    return found


def _resolve(
    runner: Runner, wanted: Wanted, there: Mapping[str, apt.Package], folder: str, plan: Plan, timeout_seconds: float
) -> None:
    conf = _own_lists(runner, wanted, folder)
    if wanted.sources:
        parts = f"Dir::Etc::sourceparts={folder}/own"
        argv = ["apt-get", "-c", conf, *_OWN_SOURCES, "-o", parts, "-q", "update"]
        problem = apt.problem_of(runner.run(argv, timeout_seconds))
        if problem:
            plan.refused.append(f"{reason(problem)}: {_plain(problem, folder)}")
            return
    names = list(wanted.packages)
    told = runner.run(["apt-cache", "-c", conf, "policy", *names], timeout_seconds)
    if apt.problem_of(told):
        plan.refused.append(_plain(apt.problem_of(told), folder))
        return
    policy = apt.parse_policy(told.stdout)
    for name, version in wanted.packages.items():
        known = list(policy[name].versions) if name in policy else []
        found = [one for one in known if stack.fits(one, version)]
        if len(found) == 1:
            plan.versions[name] = found[0]
        elif found:
            plan.refused.append(f"{name} {version} fits {' and '.join(found)}: declare one of them in full")
        else:
            has = f"it has {', '.join(known)}" if known else "it has none"
            plan.refused.append(f"the repository does not have {name} {version}; {has}")
    if len(plan.versions) < len(wanted.packages):
        return
    exact = [f"{name}={version}" for name, version in plan.versions.items()]
    argv = ["apt-get", "-c", conf, "--simulate", "-q", "--no-install-recommends", "--allow-downgrades"]
    done = runner.run([*argv, "--allow-change-held-packages", "install", *exact], timeout_seconds)
    if apt.problem_of(done):
        plan.refused.append(_plain(apt.problem_of(done), folder))
        return
    steps = apt.parse_simulation(done.stdout)
    _judge(runner, wanted, there, steps, plan, timeout_seconds)
    _room(runner, steps, conf, plan, timeout_seconds)


def _own_lists(runner: Runner, wanted: Wanted, folder: str) -> str:
    """Write what apt is to read in place of the host's sources; return the path of its configuration."""
    for name in ("lists/partial", "cache/archives/partial", "sources", "own"):
        os.makedirs(f"{folder}/{name}")
    for path in runner.glob(f"{LISTS}/*"):
        if not os.path.isdir(path) and os.path.basename(path) != "lock":
            os.symlink(path, f"{folder}/lists/{os.path.basename(path)}")
    for path in runner.glob(f"{PARTS}/*"):
        if path != wanted.own_file:
            os.symlink(path, f"{folder}/sources/{os.path.basename(path)}")
    for place in ("sources", "own") if wanted.sources else ():
        with open(f"{folder}/{place}/accel-driver.sources", "w", encoding="utf-8") as file:
            file.write(wanted.sources)
    conf = f"{folder}/apt.conf"
    with open(conf, "w", encoding="utf-8") as file:
        file.write(_OWN_LISTS.format(folder=folder))
    return conf


def _judge(
    runner: Runner,
    wanted: Wanted,
    there: Mapping[str, apt.Package],
    steps: Sequence[apt.Step],
    plan: Plan,
    timeout_seconds: float,
) -> None:
    """Tell what the steps change, and refuse those that nobody asked for."""
    for step in steps:
        name = step.name.partition(":")[0]
        if step.action in ("Remv", "Purg"):
            plan.refused.append(f"{name} {step.old or ''} would be removed".replace("  ", " "))
            continue
        if step.action != "Inst":
            continue
        plan.changes.append(f"{name} {step.old or '(none)'} -> {step.new}")
        if name not in wanted.packages and name in there and there[name].held:
            plan.refused.append(f"{name} {step.old} is held by somebody else and would become {step.new}")
        if step.old and not wanted.downgrade_allowed:
            argv = ["dpkg", "--compare-versions", str(step.new), "lt", step.old]
            if runner.run(argv, timeout_seconds).rc == 0:
                plan.refused.append(f"{name} would go back from {step.old} to {step.new}: set driver_downgrade_allowed")
    coming = [step.name.partition(":")[0] for step in steps if step.action == "Inst"]
    for kernel in boot.missing_headers(runner, coming, wanted.packages):
        plan.refused.append(f"kernel {kernel} may boot next and has no headers to build the module with")
    if boot.builds_module(coming) and not wanted.module_signed and not boot.shared_kernel(runner):
        problem = boot.unsigned(runner, timeout_seconds)
        if problem:
            plan.refused.append(f"{problem}; where another key signs the module, set driver_module_signed")


def _room(runner: Runner, steps: Sequence[apt.Step], conf: str, plan: Plan, timeout_seconds: float) -> None:
    coming = [f"{step.name}={step.new}" for step in steps if step.action == "Inst" and step.new]
    if not coming:
        return
    told = runner.run(["apt-cache", "-c", conf, "show", *coming], timeout_seconds)
    if apt.problem_of(told):
        plan.refused.append("how much room the packages need could not be told: " + excerpt(apt.problem_of(told)))
        return
    unpacked = sum(int(one) << 10 for one in re.findall(r"(?m)^Installed-Size: (\d+)$", told.stdout))
    packed = sum(int(one) for one in re.findall(r"(?m)^Size: (\d+)$", told.stdout))
    built = any("-dkms" in one for one in coming)
    need = {"/usr": unpacked, ARCHIVES: packed, "/var/lib": _SPARE_BUILD if built else 0}
    rooms: dict[int, list] = {}
    for path, size in need.items():
        try:
            device, free = os.stat(path).st_dev, os.statvfs(path)
        except OSError:
            continue
        room = rooms.setdefault(device, [path, free.f_bavail * free.f_frsize, _SPARE])
        room[2] += size
    for path, left, size in rooms.values():
        if left < size:
            plan.refused.append(f"the file system of {path} has {left >> 20} MiB left, {size >> 20} MiB are needed")


def reason(problem: str) -> str:
    """Return in words why the repositories could not be read, from what apt said."""
    found = (words for pattern, words in _REASONS if re.search(pattern, problem))
    return next(found, "the repository could not be read")


def _plain(text: str, folder: str) -> str:
    """Return what apt said without the places of the trial, which are gone when it is read."""
    text = re.sub(r" -o [\w:]+=\S+", "", text.replace(f" -c {folder}/apt.conf", ""))
    return excerpt(text.replace(folder, ""), limit=600)
