# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""What the package databases of a host (dpkg, rpm) have installed. One command a database, whatever is asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from .parallel import command_of, run_all
from .runner import Result
from .text import excerpt

# Both print lines of status, name, version; dpkg also knows packages of which only the configuration is left.
DATABASES = (
    ("dpkg-query", "-W", "-f=${db:Status-Status} ${Package} ${Version}\\n"),
    ("rpm", "-q", "--qf", "installed %{NAME} %{VERSION}-%{RELEASE}\\n"),
)
_ABSENT = re.compile(r"no packages found matching|is not installed")


@dataclass
class Installed:
    """Installed packages: name -> version and the program that told it.

    ``problems`` says which database could not be asked; what is not in ``versions`` is not known then.
    """

    versions: dict[str, tuple[str, str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def parse_packages(output: str) -> dict[str, str]:
    """Return installed packages and versions from lines of status, package, version."""
    found = {}
    for line in output.splitlines():
        fields = line.split()
        if len(fields) == 3 and fields[0] == "installed":
            found[fields[1]] = fields[2]
    return found


def read(runner, names: Sequence[str], timeout_seconds: float) -> Installed:
    """Ask every database of this host for ``names``; one that refuses or hangs is a problem, not an empty one."""
    installed = Installed()
    if not names:
        return installed
    paths = [(runner.which(words[0]), words) for words in DATABASES]
    commands = [[path, *words[1:], *names] for path, words in paths if path]
    if not commands:
        installed.problems.append("neither dpkg-query nor rpm is installed")
    for result in run_all(runner, commands, timeout_seconds):
        program = command_of(result).partition(" ")[0]
        for name, version in parse_packages(result.stdout).items():
            installed.versions.setdefault(name, (version, program))
        problem = _problem(result)
        if problem:
            installed.problems.append(f"{program}: {problem}")
    return installed


def _problem(result: Result) -> str:
    """Return why an answer can't be believed; that a package is not installed is an answer."""
    if result.hung:
        return "no answer in time"
    # A status, a name and a version; anything else is a complaint.
    lines = [*result.stderr.splitlines(), *(line for line in result.stdout.splitlines() if len(line.split()) != 3)]
    strange = [line for line in lines if line.strip() and not _ABSENT.search(line)]
    if result.rc and (strange or not any(_ABSENT.search(line) for line in lines)):
        return f"ended with {result.rc}: {excerpt(*strange, limit=300)}".rstrip(": ")
    return ""
