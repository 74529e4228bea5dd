# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""The operating system baseline of a host: read it, and hold it against what is declared.

Every value that could not be read is None, and None is judged ``unknown``, never a pass.
"""

from __future__ import annotations

import math

from . import hints
from . import packages as package_database
from . import text as text_of
from .model import NOT_APPLICABLE, Finding, as_dict

# Words of /proc/<pid>/limits and how this collection names them. memlock is told in bytes there.
LIMIT_ROWS = {"Max open files": "nofile", "Max locked memory": "memlock_kib"}


def parse_limits(text: str) -> dict:
    """Return soft limits ``{"nofile": 1048576, "memlock_kib": "unlimited"}`` from /proc/<pid>/limits."""
    limits: dict = {}
    for line in text.splitlines():
        for words, name in LIMIT_ROWS.items():
            if not line.startswith(words):
                continue
            value = (line[len(words) :].split() or [""])[0]
            number = text_of.whole_number(value)
            if value == "unlimited":
                limits[name] = value
            elif number is not None:
                limits[name] = number // 1024 if name == "memlock_kib" else number
    return limits


def parse_tracking(text: str) -> dict | None:
    """Return the clock from ``chronyc -c tracking``, None when the line is not one.

    ``{"reference": "10.0.0.1", "stratum": 9, "offset_milliseconds": 0.02, "synchronised": True,
    "local": False}``. Columns as in chronyc(1): reference id, name, stratum, time, system offset in
    seconds, ..., leap status last. Reference id 7F7F0101 is the local clock.
    """
    rows = [line.split(",") for line in text.splitlines() if line.count(",") == 13]
    if len(rows) != 1:
        return None
    row = rows[0]
    try:
        stratum, offset = int(row[2]), float(row[4])
    except ValueError:
        return None
    if not math.isfinite(offset):
        return None  # "nan" is above no tolerance, so it would pass
    return {
        "reference": row[1] or row[0],
        "stratum": stratum,
        "offset_milliseconds": round(offset * 1000, 3),
        "synchronised": row[13] != "Not synchronised",
        "local": row[0].upper() == "7F7F0101",
    }


def parse_huge_page_policy(text: str) -> str | None:
    """Return the chosen word of ``always [madvise] never``, None when none is marked."""
    for word in text.split():
        if word.startswith("[") and word.endswith("]"):
            return word[1:-1]
    return None


def read_time_zone(runner) -> str | None:
    """Return the zone that /etc/localtime points at, None when it is no link into the zone database."""
    target = runner.realpath("/etc/localtime")
    for root in ("/usr/share/zoneinfo/posix/", "/usr/share/zoneinfo/"):
        if target.startswith(root):
            return target[len(root) :]
    return None


def observe(runner, kernel_parameters: list[str], packages: list[str], timeout_seconds: float = 10) -> dict:
    """Read the baseline of this host; see ``baseline_info`` for the shape."""
    errors: list[str] = []

    def ask(argv: list[str]) -> str | None:
        if runner.which(argv[0]) is None:
            errors.append(f"{argv[0]} is not installed")
            return None
        result = runner.run(argv, timeout_seconds)
        if result.hung or result.rc != 0:
            how = "gave no answer in time" if result.hung else f"ended with {result.rc}"
            errors.append(f"{result.command} {how}: {(result.stderr or result.stdout).strip()[:300]}")
            return None
        return result.stdout

    parameters = {name: runner.read("/proc/sys/" + name.replace(".", "/")) for name in kernel_parameters}
    # What a service gets that systemd starts now: the file that declares it may not be in force yet.
    limits = ask(["systemd-run", "--quiet", "--wait", "--pipe", "--collect", "cat", "/proc/self/limits"])
    tracking = ask(["chronyc", "-c", "tracking"])
    installed = package_database.read(runner, packages, timeout_seconds)
    errors += installed.problems
    policy = runner.read("/sys/kernel/mm/transparent_hugepage/enabled")
    zone = read_time_zone(runner)
    errors += runner.hung_reads()
    return {
        # Tabs and runs of blanks are how the kernel separates several numbers of one parameter.
        "kernel_parameters": {k: None if v is None else " ".join(v.split()) for k, v in parameters.items()},
        "limits": parse_limits(limits) if limits is not None else {},
        "clock": parse_tracking(tracking) if tracking is not None else None,
        "packages": {name: told[0] for name, told in installed.versions.items()} if not installed.problems else None,
        "time_zone": zone,
        "transparent_hugepages": parse_huge_page_policy(policy) if policy is not None else None,
        "errors": errors,
    }


def judge(host: str, observed: dict, declared: dict, language: str = "en", now: str | None = None) -> list[dict]:
    """Hold what ``observe`` read against what is declared; return findings.

    ``declared`` has kernel_parameters, packages, limits {nofile, memlock_kib}, transparent_hugepages,
    time_servers, time_local_stratum, time_zone, clock_offset_milliseconds, shared_kernel.
    """
    shared = bool(declared.get("shared_kernel"))
    evidence = [{"excerpt": text} for text in observed.get("errors") or []]
    findings: list[Finding] = []

    def add(check: str, cause: str, expected: object, seen: object, **params: object) -> None:
        hint = f"baseline.{check}.{cause}"
        spec = hints.CAUSES[hint]
        findings.append(
            Finding(
                check=f"baseline.{check}",
                host=host,
                subject=host,
                verdict=spec.verdict,
                severity=spec.severity,
                hint=hint,
                expected=expected,
                observed=seen,
                message=hints.text(hint, language, host=host, expected=expected, observed=seen, **params),
                evidence=evidence if spec.verdict not in ("pass", NOT_APPLICABLE) else [],
                at=now,
            )
        )

    def compare(check: str, expected: dict, seen: dict | None) -> None:
        """Judge a mapping: unknown when any value could not be read, fail when any differs."""
        seen = seen or {}
        differing = {k: seen.get(k) for k, v in expected.items() if seen.get(k) is not None and not _equal(v, seen[k])}
        unread = [k for k in expected if seen.get(k) is None]
        if differing:
            add(check, "differs", {k: expected[k] for k in differing}, differing, names=", ".join(sorted(differing)))
        elif unread:
            add(check, "unknown", {k: expected[k] for k in unread}, None, names=", ".join(sorted(unread)))
        else:
            add(check, "ok", expected, seen)

    wanted = declared.get("kernel_parameters") or {}
    own_scope = {"kernel.numa_balancing": "numa_balancing", "vm.nr_hugepages": "hugepages"}
    seen = observed.get("kernel_parameters") or {}
    network = {k: v for k, v in wanted.items() if k.startswith("net.")}
    general = {k: v for k, v in wanted.items() if k not in network and k not in own_scope}
    if shared:
        # Of net.*, a container sees only what its kernel keeps for each network namespace.
        network = {k: v for k, v in network.items() if seen.get(k) is not None}
        compare("kernel_parameters", network, seen)
    else:
        compare("kernel_parameters", {**general, **network}, seen)
    for name, check in own_scope.items():
        if shared:
            add(check, "shared_kernel", wanted.get(name), None)
        elif name in wanted:
            compare(check, {name: wanted[name]}, seen)
    if shared:
        add("transparent_hugepages", "shared_kernel", declared.get("transparent_hugepages"), None)
    else:
        policy = {"transparent_hugepages": declared.get("transparent_hugepages")}
        compare("transparent_hugepages", policy, {"transparent_hugepages": observed.get("transparent_hugepages")})

    compare("limits", declared.get("limits") or {}, observed.get("limits"))
    compare("time_zone", {"time_zone": declared.get("time_zone")}, {"time_zone": observed.get("time_zone")})

    packages = declared.get("packages") or []
    if observed.get("packages") is None:
        add("packages", "unknown", packages, None, names=", ".join(packages))
    else:
        missing = sorted(set(packages) - set(observed["packages"]))
        add("packages", "differs" if missing else "ok", packages, observed["packages"], names=", ".join(missing))

    _judge_clock(add, observed.get("clock"), declared)
    return [as_dict(finding) for finding in findings]


def _judge_clock(add, clock: dict | None, declared: dict) -> None:
    tolerance = declared.get("clock_offset_milliseconds")
    expected = {"offset_milliseconds": tolerance, "servers": declared.get("time_servers")}
    serves_itself = not declared.get("time_servers") and int(declared.get("time_local_stratum") or 0) > 0
    if clock is None:
        add("clock", "unknown", expected, None, names="chronyc")
    elif not clock["synchronised"] or (clock["local"] and not serves_itself):
        add("clock", "unsynchronised", expected, clock)
    elif abs(clock["offset_milliseconds"]) > float(tolerance or 0):
        add("clock", "skewed", expected, clock)
    else:
        add("clock", "ok", expected, clock)


def _equal(expected: object, seen: object) -> bool:
    """Compare by what is meant: 1 and "1" are one value, as are runs of blanks."""
    return " ".join(str(expected).split()) == " ".join(str(seen).split())
