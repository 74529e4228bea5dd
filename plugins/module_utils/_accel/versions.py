# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Which versions a host runs, from firmware to container toolkit, and which host of many is the odd one out.

A version is a row ``{"component", "name", "subject", "version", "source"}``. ``version`` None with a ``source`` could
not be read there, and ``errors`` says why; None without a source is not installed. Where a vendor's software
tells its version is in the vendor's file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from . import packages, registry
from .parallel import command_of, run_all
from .runner import Result, Runner
from .slot_names import natural, place_of
from .text import equal_or_same, excerpt, majority, one_release, same_version
from .vendors.base import COMMAND, LINK, PACKAGE, VersionSource

COMPONENTS = (
    "firmware",
    "firmware_package",
    "driver_kernel",
    "driver_library",
    "fabric_manager",
    "cdi",
    "runtime",
    "collectives",
    "container_toolkit",
    "image",
    "kernel",
    "os",
    "python",
)
# What is installed in one transaction with the driver and has its version (case 19 of tests/cases): a pin for
# ``driver`` holds for all of these.
DRIVER_SET = ("driver_kernel", "driver_library", "fabric_manager", "cdi")
# Hosts without switches need no fabric manager, hosts without containers no device file.
_OPTIONAL = ("fabric_manager", "cdi")

PINNED, MAJORITY, NO_MAJORITY = "pinned", "majority", "no_majority"
OS_RELEASE = "/etc/os-release"
KERNEL_RELEASE = "/proc/sys/kernel/osrelease"
# What the node was installed from, where its builder says so: os-release(5), DGX OS, Ubuntu's cloud images. DGX OS adds
# a line with each upgrade, so that the last one counts.
_IMAGES = (
    (OS_RELEASE, r"(?m)^IMAGE_VERSION=[\"']?([^\"'\s]+)"),
    ("/etc/dgx-release", r"(?m)^DGX_OTA_VERSION=[\"']?([^\"'\s]+)"),
    ("/etc/dgx-release", r"(?m)^DGX_SWBUILD_VERSION=[\"']?([^\"'\s]+)"),
    ("/etc/cloud/build.info", r"(?m)^serial:\s*(\S+)"),
)


# ------------------------------------------------------------------------------------------------------- one host


def observe(
    runner: Runner,
    observation: Mapping,
    python: tuple[str, str],
    vendors: Sequence[str] = (),
    timeout_seconds: float = 10,
) -> dict:
    """Return ``{"versions": rows, "errors": sentences}`` of this host.

    ``observation`` is what ``accelerator_info`` returned: its cards tell their firmware, its drivers what no file
    tells; its vendors and those in ``vendors`` are looked for. ``python`` is version and path of the interpreter
    that modules run on. Each command may take ``timeout_seconds``; all run at the same time.
    """
    rows = card_rows(observation)
    errors: list[str] = []
    known = _vendors(observation, vendors, errors)
    wanted = [source.where for name in known for source in registry.VENDORS[name].versions if source.how == PACKAGE]
    installed = packages.read(runner, list(dict.fromkeys(wanted)), timeout_seconds)
    errors += installed.problems
    for name in known:
        drivers = observation.get("drivers") or []
        rows += of_vendor(runner, name, registry.VENDORS[name].versions, drivers, installed, errors, timeout_seconds)
    kernel = runner.read(KERNEL_RELEASE)
    rows.append(_row("kernel", "linux", version=kernel or None, source=KERNEL_RELEASE))
    release = runner.read(OS_RELEASE)
    rows.append(_image(runner, release))
    system, version = parse_os_release(release or "")
    rows.append(_row("os", system, version=version, source=OS_RELEASE))
    for path, value in ((KERNEL_RELEASE, kernel), (OS_RELEASE, version)):
        if not value:
            errors.append(f"{path} tells no version")
    rows.append(_row("python", "python", version=python[0], source=python[1]))
    errors += runner.hung_reads()
    order = {component: number for number, component in enumerate(COMPONENTS)}
    rows.sort(key=lambda row: (order[row["component"]], natural(row["name"] or ""), natural(row["subject"] or "")))
    return {"versions": rows, "errors": errors}


def of_vendor(
    runner: Runner,
    vendor: str,
    sources: Sequence[VersionSource],
    drivers: Iterable[Mapping],
    installed: packages.Installed,
    errors: list[str],
    timeout_seconds: float,
) -> list[dict]:
    """Return what ``sources`` of one vendor tell, and what its tool told of the ``drivers`` where they do not."""
    rows: list[dict] = []
    commands = [source for source in sources if source.how == COMMAND and runner.which(source.words[0])]
    argvs = [[runner.which(source.words[0]) or "", *source.words[1:]] for source in commands]
    results = dict(zip(commands, run_all(runner, argvs, timeout_seconds)))
    found: dict[tuple[str, str], list[dict]] = {}
    for source in sources:
        key = (source.component, source.name)
        told = found.setdefault(key, [])
        if not any(row["version"] for row in told):
            told += _ask(runner, source, results.get(source), installed, errors)
    for driver in drivers:
        if driver.get("vendor") == vendor:
            _add_driver(found, vendor, driver, errors)
    for (component, product), told in found.items():
        readable = [row for row in told if row["version"]]
        rows += readable or told[:1] or [_row(component, product)]
    return rows


def card_rows(observation: Mapping) -> list[dict]:
    """Return the firmware (NVIDIA: the VBIOS) of each card; nobody read that of one that does not answer."""
    rows, models = [], {}
    silent = list(observation.get("unanswered") or [])
    for device in observation.get("devices") or []:
        if device.get("source") == "sysfs":
            silent.append(device)
            continue
        model = device.get("model") or device.get("pci_id") or device.get("vendor")
        models[device.get("pci_id")] = model
        rows.append(_row("firmware", model, _label(device), device.get("firmware_version"), device.get("source")))
    for entry in silent:
        known = entry.get("model") or (models.get(entry["pci_id"]) if entry.get("pci_id") else None)
        if known:  # else it is compared with no card; device.query says why it is silent
            rows.append(_row("firmware", known, _label(entry), source="sysfs"))
    return rows


def _label(card: Mapping) -> str | None:
    return place_of(card) or card.get("pci_address") or card.get("uuid")


def _image(runner: Runner, release: str | None) -> dict:
    """Return which image the node was installed from; most images do not say so, which is as good as none."""
    for path, pattern in _IMAGES:
        told = re.findall(pattern, (release if path == OS_RELEASE else runner.read(path)) or "")
        if told:
            return _row("image", "base", version=told[-1], source=path)
    silent = next((path for path, _pattern in _IMAGES if path in runner.blocked), None if release else OS_RELEASE)
    return _row("image", "base", source=silent)


def parse_os_release(text: str) -> tuple[str | None, str | None]:
    """Return ("debian", "12") from os-release(5), None for what it does not tell (testing has no VERSION_ID)."""
    values = {}
    for line in text.splitlines():
        key, sign, value = line.partition("=")
        if sign:
            values[key.strip()] = value.strip().strip("\"'")
    return values.get("ID") or None, values.get("VERSION_ID") or values.get("VERSION_CODENAME") or None


def extract(output: str, pattern: str) -> str | None:
    """Return the version that a pattern finds, its groups joined by dots; None when it finds none."""
    found = re.search(pattern, output)
    return ".".join(found.groups()) if found else None


def _row(
    component: str, name: str | None, subject: str | None = None, version: str | None = None, source: str | None = None
) -> dict:
    return {"component": component, "name": name, "subject": subject, "version": version, "source": source}


def _vendors(observation: Mapping, named: Sequence[str], errors: list[str]) -> list[str]:
    shown = [*(observation.get("devices") or []), *(observation.get("unanswered") or [])]
    wanted = [*named, *(one.get("vendor") for one in [*shown, *(observation.get("drivers") or [])])]
    for name in named:
        if name not in registry.VENDORS:
            errors.append(f"vendor {name!r} is not known; known are {', '.join(registry.VENDORS)}")
    return [name for name in registry.VENDORS if name in wanted]


def _ask(
    runner: Runner, source: VersionSource, result: Result | None, installed: packages.Installed, errors: list[str]
) -> list[dict]:
    """Return what one source tells: a row for each version, one without a version where it can't be read, or none."""
    told: list[tuple[str, str]] = []
    if source.how == PACKAGE:
        if source.where not in installed.versions:
            # Not found by a database that could not be asked is not known; why, is told once for all packages.
            return [_row(source.component, source.name, source="packages")] if installed.problems else []
        number, program = installed.versions[source.where]
        told = [(f"{program} {source.where}", number)]
    elif source.how == COMMAND:
        if result is None:
            return []
        said = f"{result.stdout}\n{result.stderr}"
        if result.hung or result.rc != 0:
            how = "no answer in time" if result.hung else f"ended with {result.rc}"
            errors.append(f"{source.component}: {command_of(result)}: {how}: {excerpt(said, limit=300)}".rstrip(": "))
            return [_row(source.component, source.name, source=command_of(result))]
        told = [(command_of(result), said)]
    else:
        for path in runner.glob(source.where):
            text = runner.realpath(path) if source.how == LINK else runner.read(path)
            told.append((path, text or ""))
    rows: dict[str | None, dict] = {}
    for where, text in told:
        version = extract(text, source.pattern)
        if version is None and where not in runner.blocked:
            errors.append(f"{source.component}: {where} tells no version: {excerpt(text, limit=200) or 'it is empty'}")
        rows.setdefault(version, _row(source.component, source.name, version=version, source=where))
    several = len([version for version in rows if version]) > 1
    for row in rows.values():
        row["subject"] = row["source"] if several else None
    return list(rows.values())


def _add_driver(found: dict[tuple[str, str], list[dict]], vendor: str, driver: Mapping, errors: list[str]) -> None:
    """Fill in what the vendor's tool told of the driver where no file did; say so where they disagree."""
    for component, key in (("driver_kernel", "kernel_version"), ("driver_library", "library_version")):
        version = driver.get(key)
        if not version:
            continue
        rows = next((told for (one, _name), told in found.items() if one == component), None)
        if rows is None:
            rows = found.setdefault((component, vendor), [])
        known = [row["version"] for row in rows if row["version"]]
        if not known:
            rows[:] = [_row(component, rows[0]["name"] if rows else vendor, version=version, source="accelerator_info")]
        elif not any(same_version(one, version) for one in known):
            errors.append(f"{component}: {rows[0]['source']} says {', '.join(known)}, the vendor's tool {version}")


# ----------------------------------------------------------------------------------------------------- many hosts


def odd(hosts: Mapping[str, object], pins: Mapping | None = None) -> list[dict]:
    """Name the odd ones out: one entry for each component and product that any host has, or that is declared.

    ``hosts`` is ``{host: what observe returned}``, best of one node type; a host without an answer is told nowhere.
    ``pins`` are declared versions by component, each a text or ``{name: version}``; ``driver`` holds for DRIVER_SET.
    What is expected is the pin, else what more than half of those tell that could, where these are more than half of
    all hosts. Short forms are one version with the long ones that they begin (``text.same_version``); where they
    would fit several, nothing is proven. Hosts that fit a pin that is a short form, but differ from each other in full,
    are held against what more than half of these tell, which is then expected.

    Entry: ``component``, ``name``, ``verdict`` (pass, fail, unknown), ``expected`` (None: not installed, or nobody
    knows), ``basis`` (pinned, majority, no_majority), ``count`` of what was told, ``odd`` rows with their ``host`` and
    what is ``expected`` there (of a library, what is loaded on that host), ``not_told`` hosts whose version is not
    known: they could not read it, or have no row of it at all.
    """
    pins = pins or {}
    groups = grouped(hosts, pins)
    if hosts:
        groups.update({key: [] for key in _pinned(pins, {component for component, _name in groups})})
    order = {component: number for number, component in enumerate(COMPONENTS)}
    keys = sorted(groups, key=lambda key: (order[key[0]], natural(key[1] or "")))
    judged = [_judge(key, groups[key], _without(key, groups, hosts), _pin(pins, *key)) for key in keys]
    entries = [entry for entry in judged if entry is not None]
    _hold_together([entry for entry in entries if pins.get(entry["component"]) in (None, "")], groups)
    return entries


def _hold_together(entries: list[dict], groups: Mapping[tuple[str, str | None], list[dict]]) -> None:
    """Name what is of one piece with the kernel module of its host, and is not of its release.

    A short pin fits several releases, and hosts may all be wrong in one way. Not where the module is odd itself, nor
    what has a pin of its own.
    """
    off = {(entry["component"], row["host"]) for entry in entries for row in entry["odd"]}
    for entry in entries:
        component, name = entry["component"], entry["name"]
        if component not in DRIVER_SET[1:]:
            continue
        loaded: dict[str, list[str]] = {}
        for row in groups.get((DRIVER_SET[0], name), ()):
            if row["version"] and (DRIVER_SET[0], row["host"]) not in off:
                loaded.setdefault(row["host"], []).append(row["version"])
        for row in groups[component, name]:
            module = loaded.get(row["host"], [])
            fits = any(equal_or_same(_release(row["version"]), _release(one)) for one in module)
            if row["version"] and module and not fits and (component, row["host"]) not in off:
                entry["odd"].append(_odd_row(row, module[0]))
                entry["verdict"] = "fail"
        entry["odd"].sort(key=_by_host)


def _release(version: str | None) -> str | None:
    """Return a version without its build: Gaudi's module carries a commit ("1.21.0-ca59b5a"), its package a number."""
    return version.partition("-")[0] if version else version


def _odd_row(row: Mapping, expected: str | None) -> dict:
    return {**{name: row.get(name) for name in ("host", "subject", "version", "source")}, "expected": expected}


def _by_host(row: Mapping) -> tuple:
    return (natural(row["host"]), natural(row["subject"] or ""))


def grouped(hosts: Mapping[str, object], pins: Mapping | None = None) -> dict[tuple[str, str | None], list[dict]]:
    """Return the rows of all hosts by component and product, each with its ``host``.

    A host runs one system, so that those of another one than most stand with them, as ``ubuntu 22.04``.
    """
    rows = [{**row, "host": host} for host, answer in hosts.items() for row in rows_of(answer) or []]
    _under_one_name([row for row in rows if row["component"] == "os"], (pins or {}).get("os"))
    groups: dict[tuple[str, str | None], list[dict]] = {}
    for row in rows:
        groups.setdefault((row["component"], row["name"]), []).append(row)
    return groups


def _under_one_name(rows: list[dict], pin: object) -> None:
    """Call all systems what most are, of those that are declared; what another is called goes to its version."""
    for row in rows:
        if row["version"] and not row["name"]:
            row["name"] = "linux"  # os-release(5)
    named = [row for row in rows if row["name"]]
    by_name = [name for name, version in pin.items() if version] if isinstance(pin, Mapping) else []
    # A declared version says which system is meant, where it names none.
    declared = [row for row in named if row["name"] in by_name or same_version(row["version"], str(pin).strip())]
    counts = Counter(by_name if by_name and not declared else (row["name"] for row in declared or named))
    main = min(counts, key=lambda name: (-counts[name], natural(name)), default=None)
    numbered = {row["name"] for row in named if row["version"]}
    for row in rows:
        if row["name"] == main or row["name"] in by_name:
            continue
        # A rolling system has no version; its name says all.
        if row["version"] or (row["name"] and row["name"] not in numbered):
            row["version"] = " ".join(part for part in (row["name"], row["version"]) if part)
        row["name"] = main


# The names of these stand for one another: a host may have cards of another model, or another system that is declared.
_ALIKE = ("firmware", "os")


def _without(key: tuple[str, str | None], groups: Mapping, hosts: Mapping[str, object]) -> list[str]:
    """Return the hosts that say nothing of a product, not even that it is not there."""
    having = {row["host"] for row in groups[key]}
    for other in groups:
        if other[0] == key[0] and key[0] in _ALIKE:
            having |= {row["host"] for row in groups[other] if row["version"]}
    return [host for host in hosts if host not in having]


def _pinned(pins: Mapping, told: Collection[str]) -> list[tuple[str, str | None]]:
    """Return what is declared of components that nobody tells."""
    wanted = {name: pin for name, pin in pins.items() if name in COMPONENTS}
    # Not every vendor's software tells of both; of one that tells of neither, nobody looked.
    if not {"driver_kernel", "driver_library"} & {*told, *wanted}:
        wanted["driver_kernel"] = pins.get("driver")
    found: list[tuple[str, str | None]] = []
    for component, pin in wanted.items():
        if component not in told and pin not in (None, ""):
            found += [(component, name) for name in (pin if isinstance(pin, Mapping) else [None])]
    return found


def rows_of(answer: object) -> list[dict] | None:
    """Return the rows of what ``observe`` returned, each value a text or None; None where a host did not answer."""
    rows = answer.get("versions") if isinstance(answer, Mapping) else None
    if not isinstance(rows, list):
        return None
    known = [row for row in rows if isinstance(row, Mapping) and row.get("component") in COMPONENTS]
    texts = [{key: None if row.get(key) is None else str(row[key]) for key in _row("", None)} for row in known]
    return [{**row, "version": row["version"] or None} for row in texts]


def _pin(pins: Mapping, component: str, name: str | None) -> tuple[str | None, bool]:
    """Return the declared version, and whether a host may lack the component all the same."""
    pin, optional = pins.get(component), False
    if pin in (None, "") and component in DRIVER_SET:
        pin, optional = pins.get("driver"), component in _OPTIONAL
    if isinstance(pin, Mapping):
        pin = pin.get(name)
    return (str(pin).strip() or None) if pin is not None else None, optional


def _judge(
    key: tuple[str, str | None], rows: list[dict], without: list[str], pin: tuple[str | None, bool]
) -> dict | None:
    unreadable = [row["host"] for row in rows if row.get("version") is None and row.get("source") is not None]
    told = [row for row in rows if row.get("version") is not None or row.get("source") is None]
    wanted, optional = pin
    if not any(row.get("version") for row in told) and not unreadable and (wanted is None or optional):
        return None  # nobody has it, nobody asked for it
    not_told = [*unreadable, *without]
    expected: str | None = wanted
    if wanted is not None:
        basis = PINNED
        # Not there is not another version: the in-kernel driver has none. Whoever must have it is told as unknown.
        absent = [row["host"] for row in told if row.get("version") is None]
        not_told += [] if optional else absent
        off = [row for row in told if row["version"] is not None and not same_version(row["version"], wanted)]
        fitting = [row for row in told if same_version(row["version"], wanted)]
        # A short form fits several releases, of which hosts are to run one all the same.
        if not one_release(row["version"] for row in fitting):
            agreed, common = majority([row["version"] for row in fitting])
            basis, expected = (PINNED, common) if agreed else (NO_MAJORITY, wanted)
            off += [row for row in fitting if agreed and not equal_or_same(row["version"], common)]
    else:
        agreed, expected = majority([row.get("version") for row in told])
        telling = {row["host"] for row in told}
        if 2 * len(telling) <= len(telling.union(not_told)):
            agreed, expected = False, None  # what most of a few tell is not what most hosts have
        basis = MAJORITY if agreed else NO_MAJORITY
        off = [row for row in told if not equal_or_same(row.get("version"), expected)] if agreed else []
    unknown = bool(not_told) or basis == NO_MAJORITY
    return {
        "component": key[0],
        "name": key[1],
        "verdict": "fail" if off else "unknown" if unknown else "pass",
        "expected": expected,
        "basis": basis,
        "count": len(told),
        "odd": sorted((_odd_row(row, expected) for row in off), key=_by_host),
        "not_told": sorted(dict.fromkeys(not_told), key=natural),
    }
