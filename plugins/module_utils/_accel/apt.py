# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""What dpkg and apt have, what changed it, and what they would do and are forbidden to do.

That an upgrade is forbidden is tried, not read (``try_upgrade``): a preference in a file whose name apt ignores, or a
hold that its configuration overrules, reads well and stops nothing; and where no repository has anything newer, nothing
was stopped. apt-get(8), apt_preferences(5), dpkg-query(1).
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from .parallel import command_of
from .runner import Result, Runner
from .text import excerpt

# Want, status and error flag of dpkg, then what the package is. "source" tells which packages are upgraded together.
LIST_FORMAT = (
    "${db:Status-Want}\\t${db:Status-Status}\\t${db:Status-Eflag}\\t${Package}\\t${binary:Package}\\t${Version}\\t"
    "${source:Package}\\n"
)
# Whoever changes packages holds these; what is read meanwhile is neither the old nor the new state.
LOCKS = ("/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock")
HISTORY = ("/var/log/apt/history.log.1.gz", "/var/log/apt/history.log")
_HISTORY_BYTES = 1 << 19
# What ``apt-get indextargets --format`` is to say of each index, and whose archives are those of a system.
SOURCES_FORMAT = "$(ORIGIN) $(RELEASE) $(COMPONENT) $(REPO_URI)"
DISTRIBUTIONS = ("Debian", "Ubuntu")
_BLACKLIST = "Unattended-Upgrade::Package-Blacklist::"

# What dpkg calls a package that is neither there nor gone.
BROKEN = ("half-configured", "half-installed", "unpacked", "triggers-awaited")

REFUSED, UPGRADED, UNKNOWN = "refused", "upgraded", "unknown"
# Behind a version, it is newer than that one and older than the next release of anybody.
TRIAL = "+accel.trial"
# What the resolver looks at. Those with relations name the versions of packages that are offered beside this one.
_KEPT = ("Package", "Architecture", "Multi-Arch", "Essential", "Priority", "Section", "Maintainer", "Description")
_RELATIONS = ("Pre-Depends", "Depends", "Recommends", "Provides", "Conflicts", "Breaks", "Replaces")
# The trial's own places: nothing of the host is written, and of its repositories none is asked. Without them, a release
# that the host prefers by name would be an error.
_OWN_PLACES = """\
Dir::State::lists "{folder}/lists";
Dir::Cache "{folder}/cache";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "/dev/null";
APT::Default-Release "";
"""
_UNLOCKED = """\
APT::Ignore-Hold "true";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
"""


@dataclass(frozen=True)
class Package:
    """A package that dpkg knows. ``full`` names the architecture too where several may be installed side by side."""

    name: str
    full: str
    version: str
    status: str  # of dpkg: installed, config-files, half-configured...
    held: bool = False
    source: str = ""


@dataclass(frozen=True)
class Policy:
    """What apt would install of a package, and the priority of each version that it knows."""

    installed: str | None
    candidate: str | None
    versions: dict[str, int | None]


@dataclass(frozen=True)
class Step:
    """One line of a simulated run: Inst, Conf, Remv or Purg, versions None where it names none."""

    action: str
    name: str
    old: str | None = None
    new: str | None = None


@dataclass(frozen=True)
class Change:
    """What one transaction did to a package; ``action`` is the word of the log (Install, Upgrade, Remove...)."""

    action: str
    name: str
    old: str | None
    new: str | None


@dataclass
class Transaction:
    """One entry of apt's history: when, by which command, asked for by whom, and what it changed."""

    start: str = ""
    command: str = ""
    by: str = ""
    changes: list[Change] = field(default_factory=list)


@dataclass
class Trial:
    """What came of trying to upgrade packages.

    ``upgraded`` and ``removed`` are names of the packages tried that apt would upgrade or remove, ``unpinned`` those
    for which no preference keeps the version that is installed. ``problem`` says why the state is unknown.
    """

    state: str = UNKNOWN
    upgraded: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    unpinned: list[str] = field(default_factory=list)
    problem: str = ""
    evidence: list[dict] = field(default_factory=list)


# ------------------------------------------------------------------------------------------------------------ parsers


def parse_packages(output: str) -> list[Package]:
    """Return the packages of ``dpkg-query -W`` with LIST_FORMAT."""
    found = []
    for line in output.splitlines():
        fields = line.split("\t")
        if len(fields) == 7:
            want, status, flag, name, full, version, source = fields
            # A package that must be installed anew is as broken as one that is half there.
            status = "half-installed" if flag == "reinstreq" else status
            found.append(Package(name, full, version, status, held=want == "hold", source=source))
    return found


def parse_policy(output: str) -> dict[str, Policy]:
    """Return what ``apt-cache policy NAME...`` says by package; one that apt does not know is not there."""
    found: dict[str, Policy] = {}
    for block in re.split(r"(?m)^(?=\S)", output):
        name, _colon, rest = block.partition(":\n")
        if not rest:
            continue
        told = dict(re.findall(r"(?m)^  (Installed|Candidate): (\S+)$", rest))
        versions = re.findall(r"(?m)^ (?:\*\*\*|   ) (\S+)(?: (-?\d{1,9}))?$", rest)
        installed, candidate = (_none(told.get(word)) for word in ("Installed", "Candidate"))
        found[name] = Policy(installed, candidate, {version: int(rank) if rank else None for version, rank in versions})
    return found


def _none(word: str | None) -> str | None:
    return None if word in (None, "(none)") else word


def parse_simulation(output: str) -> list[Step]:
    """Return the steps of ``apt-get --simulate``."""
    line = re.compile(r"(?m)^(Inst|Conf|Remv|Purg) (\S+)(?: \[([^\]\s]+)\])?(?: \((\S+))?")
    return [Step(action, name, old or None, new or None) for action, name, old, new in line.findall(output)]


def parse_sources(output: str, suite: str) -> list[str]:
    """Return the sources of a release, its updates and security updates as lines of apt, from ``apt-get indextargets``.

    ``SOURCES_FORMAT`` asks for each index with the origin that its signed Release file states: a vendor's repository
    for the same release is none of the distribution.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for line in output.splitlines():
        origin, release, component, uri = (line.split(" ") + 4 * [""])[:4]
        if origin in DISTRIBUTIONS and release in (suite, f"{suite}-updates", f"{suite}-security") and uri:
            components = found.setdefault((uri, release), [])
            if component not in components:
                components.append(component)
    return [f"deb {uri} {release} {' '.join(components)}" for (uri, release), components in found.items()]


def parse_blacklist(output: str) -> list[str]:
    """Return the expressions of packages that unattended-upgrade leaves alone, from ``apt-config dump``."""
    lines = (line.partition(" ") for line in output.splitlines())
    return [value.rstrip(";").strip('"') for name, _blank, value in lines if name == _BLACKLIST]


def blacklisted(name: str, expressions: Iterable[str]) -> bool:
    """Tell whether unattended-upgrade leaves a package alone: it matches from the beginning of the name."""
    for expression in expressions:
        try:
            if re.match(expression, name):
                return True
        except re.error:
            continue  # it matches nothing there either
    return False


def parse_history(output: str) -> list[Transaction]:
    """Return the transactions of /var/log/apt/history.log, in its order."""
    found = []
    for block in re.split(r"\n\s*\n", output):
        entry = Transaction()
        for line in block.splitlines():
            word, _colon, rest = line.partition(": ")
            if word == "Start-Date":
                entry.start = " ".join(rest.split())
            elif word == "Commandline":
                entry.command = rest.strip()
            elif word == "Requested-By":
                entry.by = rest.split(" (")[0].strip()
            elif word in ("Install", "Upgrade", "Downgrade", "Reinstall", "Remove", "Purge"):
                entry.changes += _changes(word, rest)
        if entry.changes:
            found.append(entry)
    return found


def _changes(action: str, rest: str) -> Iterator[Change]:
    """Return what a line such as ``a:amd64 (1, 2), b:all (1)`` says, without an expression: a line may be long."""
    for piece in rest.split("), "):
        name, found, told = piece.strip().partition(" (")
        if found and not set(" ,(") & set(name):
            yield _change(action, name, told.rstrip(")"))


def _change(action: str, name: str, told: str) -> Change:
    versions = [word for word in told.split(", ") if word != "automatic"] or [""]
    name = name.partition(":")[0]
    if action in ("Remove", "Purge"):
        return Change(action, name, versions[0], None)
    return Change(action, name, versions[0] if len(versions) > 1 else None, versions[-1])


def brought(history: Sequence[Transaction], name: str, version: str | None) -> Transaction | None:
    """Return the last transaction that left a package at ``version`` (None: removed), None when none is known."""
    for entry in reversed(history):
        for change in entry.changes:
            if change.name == name:
                return entry if change.new == version else None
    return None


def starter(entry: Transaction) -> str:
    """Return what started a transaction, such as ``unattended-upgrade 2025-03-11``."""
    words = entry.command.split()
    command = " ".join([os.path.basename(words[0]), *words[1:]]) if words else "?"
    by = f" ({entry.by})" if entry.by else ""
    return f"{excerpt(command, limit=120)}{by} {entry.start.partition(' ')[0]}".strip()


# -------------------------------------------------------------------------------------------------------------- probes


def installed(runner: Runner, timeout_seconds: float) -> tuple[list[Package], str]:
    """Return every package that dpkg knows, and why that can't be believed, "" when it can."""
    program = runner.which("dpkg-query")
    if program is None:
        return [], "dpkg-query is not installed"
    result = runner.run([program, "-W", f"-f={LIST_FORMAT}"], timeout_seconds)
    packages = parse_packages(result.stdout)
    return packages, problem_of(result) or ("" if packages else "dpkg-query knows no package")


def history(runner: Runner, timeout_seconds: float) -> list[Transaction]:
    """Return the last transactions that apt logged, of this month and the one before."""
    told = []
    for path in HISTORY:
        if runner.glob(path):
            argv = ["gzip", "-cd", path] if path.endswith(".gz") else ["tail", "-c", str(_HISTORY_BYTES), path]
            told.append(runner.run(argv, timeout_seconds).stdout)
    return parse_history("\n\n".join(told))


def locked(runner: Runner) -> str:
    """Return in words who changes packages now, "" when nobody does."""
    for path in LOCKS:
        holder = runner.lock_holder(path)
        if holder is not None:
            return f"{path} is held by process {holder or '?'}"
    return ""


def problem_of(result: Result) -> str:
    """Return why a command's answer can't be believed, "" when it can."""
    if result.hung:
        return f"{command_of(result)}: no answer in time"
    if result.rc:
        said = excerpt(result.stderr, result.stdout, limit=400)
        return f"{command_of(result)} ended with {result.rc}: {said}".rstrip(": ")
    return ""


def try_upgrade(runner: Runner, names: Collection[str], packages: Sequence[Package], timeout_seconds: float) -> Trial:
    """Offer apt a newer version of each package in ``names`` that is installed, and see what it would do.

    ``packages`` is what ``installed`` returned. Offered are also the other packages that were built from the same
    sources: a repository has them all newer at once, and none of them would go without the others. The control of the
    trial is the same without holds and preferences: where apt would not even then upgrade every package, something else
    keeps it, and the trial has shown nothing.
    """
    there = [one for one in packages if one.status == "installed"]
    tried = [one for one in there if one.name in names]
    busy = locked(runner)
    if busy or not tried:
        return Trial(problem=busy or "none of the packages is installed")
    sources = {one.source for one in tried}
    offered = [one for one in there if one.source in sources or one.name in names]
    try:
        # Some hosts have little room below /tmp; what is written are a few kilobytes.
        with tempfile.TemporaryDirectory(prefix="accel-trial-") as folder:
            return _try(runner, tried, offered, folder, timeout_seconds)
    except OSError as error:
        return Trial(problem=str(error))


def _try(runner: Runner, tried: list[Package], offered: list[Package], folder: str, timeout_seconds: float) -> Trial:
    told = runner.run(["dpkg-query", "--status", *(one.full for one in offered)], timeout_seconds)
    if problem_of(told):
        return Trial(problem=problem_of(told))
    for name, text in (
        ("Packages", offer(told.stdout)),
        ("locked.conf", _OWN_PLACES.format(folder=folder)),
        ("unlocked.conf", _OWN_PLACES.format(folder=folder) + _UNLOCKED),
    ):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    names = {one.full: one.name for one in tried}

    def ask(program: str, conf: str, *words: str) -> Result:
        source = ["--with-source", f"{folder}/Packages"]
        return runner.run([program, "-c", f"{folder}/{conf}.conf", *source, *words], timeout_seconds)

    control = ask("apt-get", "unlocked", "--simulate", "-q", "dist-upgrade")
    upgrade = ask("apt-get", "locked", "--simulate", "-q", "dist-upgrade")
    policy = ask("apt-cache", "locked", "policy", *names)
    for result in (control, upgrade, policy):
        if problem_of(result):
            return Trial(problem=problem_of(result).replace(folder, ""))
    wanted = set(names.values())
    would = _touched(control, wanted, "Inst")
    missed = sorted(wanted - would)
    if missed:
        problem = f"even without holds and preferences apt would not upgrade {', '.join(missed)}"
        return Trial(problem=problem, evidence=[_evidence(control, "control")])
    upgraded, removed = _touched(upgrade, wanted, "Inst"), _touched(upgrade, wanted, "Remv", "Purg")
    # apt names the architecture of those that are not the host's own only.
    said = parse_policy(policy.stdout)
    unpinned = {name for full, name in names.items() if not _pinned(said.get(full) or said.get(name))}
    return Trial(
        state=UPGRADED if upgraded or removed else REFUSED,
        upgraded=sorted(upgraded),
        removed=sorted(removed - upgraded),
        unpinned=sorted(unpinned),
        evidence=[_evidence(upgrade, "trial")],
    )


def _evidence(result: Result, what: str) -> dict:
    return {"command": f"apt-get --simulate dist-upgrade ({what})", "rc": result.rc, "excerpt": excerpt(result.stdout)}


def _touched(result: Result, names: Collection[str], *actions: str) -> set[str]:
    steps = parse_simulation(result.stdout)
    return {step.name.partition(":")[0] for step in steps if step.action in actions}.intersection(names)


def _pinned(policy: Policy | None) -> bool:
    """Tell whether a preference keeps the installed version; only from 1000 on, no other version goes before it."""
    if policy is None or policy.installed is None or policy.candidate != policy.installed:
        return False
    return (policy.versions.get(policy.installed) or 0) >= 1000


def offer(status: str) -> str:
    """Return a Packages file with each package of ``dpkg-query --status`` at a newer version.

    Where packages ask for each other at just these versions, they ask for the newer ones, as their next release will.
    """
    stanzas = [_fields(block) for block in re.split(r"\n\s*\n", status.strip())]
    stanzas = [fields for fields in stanzas if "Package" in fields and "Version" in fields]
    known = {fields["Version"] for fields in stanzas}

    def newer(found: re.Match) -> str:
        return f"({found[1]} {found[2]}{TRIAL})" if found[2] in known else found[0]

    lines = []
    for fields in stanzas:
        lines += [f"{name}: {fields[name]}" for name in _KEPT if name in fields]
        lines.append(f"Version: {fields['Version']}{TRIAL}")
        lines += [
            f"{name}: " + re.sub(r"\(\s*(=|<=)\s*([^\s)]+)\s*\)", newer, fields[name])
            for name in _RELATIONS
            if name in fields
        ]
        lines += [f"Filename: ./{fields['Package']}.deb", "Size: 1", ""]
    return "\n".join(lines)


def _fields(block: str) -> dict[str, str]:
    """Return the fields of a stanza; of one with several lines, the first."""
    pairs = (line.partition(":") for line in block.splitlines() if line and not line[0].isspace())
    return {name: value.strip() for name, _colon, value in pairs}
