# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Containers on a host: the engine, its settings, its images, its registries, its devices (CDI); read and judged."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from . import cdi, images, judge, registries, settings
from . import registry as vendors
from .model import dict_of, dicts_of, to_float
from .text import excerpt, whole_characters
from .vendors.base import ContainerAccess, Unreadable

ENGINES = ("podman", "docker")
# Files and drop-in folders that an engine reads; those of Docker's daemon come with its own check.
SETTINGS = {
    "podman": (
        "/etc/containers/containers.conf",
        "/etc/containers/containers.conf.d/*.conf",
        "/etc/containers/registries.conf",
        "/etc/containers/registries.conf.d/*.conf",
        "/etc/containers/storage.conf",
    ),
    "docker": ("/etc/docker/daemon.json",),
}
# Where an engine looks for the CA of a registry, by the registry's address.
CERTIFICATES = {
    "podman": ("/etc/containers/certs.d", "/etc/docker/certs.d"),
    "docker": ("/etc/docker/certs.d",),
}
# Where a proxy for engines is set: what a login shell has, what systemd gives to the service, and what
# podman gives to itself (env).
PROXIES = {
    "podman": (
        "/etc/environment",
        "/etc/systemd/system/podman.service.d/*.conf",
        "/etc/containers/containers.conf",
        "/etc/containers/containers.conf.d/*.conf",
    ),
    "docker": ("/etc/systemd/system/docker.service.d/*.conf",),
}
_PROXY = re.compile(r"(?i)\b(https?_proxy|no_proxy)=(\"[^\"\n]*\"|'[^'\n]*'|[^\s\"'\n]*)")
GIB = 1 << 30


def observe(
    runner,
    engine: str | None = None,
    checks: Sequence[Mapping] = (),
    declared_images: Sequence[str] = (),
    timeout_seconds: float = 20,
) -> dict:
    """Read what this host has of containers; see ``container_info`` for the shape.

    ``checks`` are registries to ask: address, scheme, ca_file, ca_content, username, password, auth_file.
    """
    errors: list[str] = []
    names = [engine] if engine else [one for one in ENGINES if runner.which(one)] or [ENGINES[0]]
    name = str(names[0])
    about, proxies = _engine(runner, name, timeout_seconds)
    held = _images(runner, name, timeout_seconds, errors) if about["state"] == "ok" else None
    proxies += _proxies(runner, name)
    asked = []
    for one in checks:
        address = str(one["address"])
        files = [str(one["ca_file"])] if one.get("ca_file") else _ca_files(runner, name, address)
        files = [] if one.get("ca_content") else files
        mine = [word for word in declared_images if word.startswith(address + "/")]
        login = (one.get("username"), one.get("password"))
        if one.get("auth_file"):
            login = registries.login_of(runner.read(str(one["auth_file"])) or "", address) or (None, None)
        answer = registries.check(
            address,
            str(one.get("scheme") or "https"),
            files,
            *login,
            mine,
            timeout_seconds,
            one.get("ca_content"),
        )
        proxied = [row for row in proxies if row[answer["scheme"]] and not images.bypasses(row["none"], address)]
        asked.append({**answer, "ca_files": files, "proxied_by": [row["source"] for row in proxied]})
    read = {
        "engine": about,
        "settings": _settings(runner, name, about),
        "proxies": proxies,
        "images": held,
        "registries": asked,
        "cdi": cdi.observe(runner),
    }
    return {**read, "errors": errors + runner.hung_reads()}


def _engine(runner, name: str, timeout_seconds: float) -> tuple[dict, list[dict]]:
    path = runner.which(name)
    about: dict = {
        "name": name,
        "path": path,
        "state": "absent",
        "problem": None,
        "version": None,
        "storage_driver": None,
        "storage_path": None,
        "runtime": None,
        "free_bytes": None,
        "size_bytes": None,
    }
    if path is None:
        return about, []
    words = ["info", "--format", "json"] if name == "podman" else ["info", "--format", "{{json .}}"]
    result = runner.run([path, *words], timeout_seconds)
    if result.hung:
        return {**about, "state": "hung", "problem": f"{name} info gave no answer in time"}, []
    try:
        told = read_info(result.stdout)
    except Unreadable as exc:
        failed = result.rc != 0 or not result.stdout.strip()
        problem = excerpt(result.stderr, limit=600) or str(exc)
        return {**about, "state": "failed" if failed else "unreadable", "problem": problem}, []
    proxy = told.pop("proxy")
    about.update(told)
    if told["problem"] or result.rc:
        return {**about, "state": "failed", "problem": told["problem"] or excerpt(result.stderr, limit=600)}, []
    about["state"] = "ok"
    if about["storage_path"]:
        room = runner.run(["df", "-B1", "--output=size,avail", about["storage_path"]], timeout_seconds)
        sizes = re.findall(r"^\s*(\d{1,20})\s+(\d{1,20})\s*$", room.stdout, re.MULTILINE | re.ASCII)
        if len(sizes) == 1:
            about["size_bytes"], about["free_bytes"] = int(sizes[0][0]), int(sizes[0][1])
    return about, [proxy] if proxy["http"] or proxy["https"] else []


def read_info(output: str) -> dict:
    """Return what ``podman info --format json`` or ``docker info --format '{{json .}}'`` tells.

    ``problem`` is what Docker's client says of a daemon that it can't reach, ``proxy`` a row as ``proxies`` has them.
    """
    try:
        body = json.loads(whole_characters(output))
    except (ValueError, RecursionError) as exc:
        raise Unreadable(f"info is no JSON: {str(exc)[:100]}") from None
    if not isinstance(body, dict):
        raise Unreadable("info is no mapping")
    store, host = dict_of(body.get("store")), dict_of(body.get("host"))
    complaints = body.get("ServerErrors")
    return {
        "version": _word(dict_of(body.get("version")).get("Version") or body.get("ServerVersion")),
        "storage_driver": _word(store.get("graphDriverName") or body.get("Driver")),
        "storage_path": _word(store.get("graphRoot") or body.get("DockerRootDir")),
        "runtime": _word(dict_of(host.get("ociRuntime")).get("name") or body.get("DefaultRuntime")),
        "problem": excerpt(*map(str, complaints)) if isinstance(complaints, list) and complaints else None,
        "proxy": _proxy_row(
            "docker info",
            {"http": body.get("HttpProxy"), "https": body.get("HttpsProxy"), "none": body.get("NoProxy")},
        ),
    }


def _word(value: object) -> str | None:
    return str(value) if value else None


def _images(runner, name: str, timeout_seconds: float, errors: list[str]) -> list[dict] | None:
    path = runner.which(name)
    words = ["images", "--format", "json"]
    if name == "docker":
        listed = runner.run([path, "image", "ls", "--quiet", "--no-trunc"], timeout_seconds)
        numbers = list(dict.fromkeys(listed.stdout.split()))
        if listed.rc != 0:
            errors.append(f"docker image ls: {excerpt(listed.stderr, limit=300) or 'no answer in time'}")
            return None
        if not numbers:
            return []
        words = ["image", "inspect", *numbers]
    result = runner.run([path, *words], timeout_seconds)
    try:
        if result.rc != 0:
            raise Unreadable(excerpt(result.stderr, limit=300) or "no answer in time")
        return images.read_images(result.stdout)
    except Unreadable as exc:
        errors.append(f"{name} {' '.join(words[:2])}: {exc}")
        return None


def _settings(runner, name: str, about: Mapping) -> list[dict]:
    """Return the settings files of an engine: state ok, broken, unreadable or unchecked (by this Python)."""
    rows = []
    for path in [path for pattern in SETTINGS[name] for path in runner.glob(pattern)]:
        text = runner.read(path)
        row: dict = {"path": path, "state": "ok", "problem": None}
        if text is None:
            row.update(state="unreadable", problem="it can't be read")
        else:
            try:
                row["problem"] = settings.problem_of(text, path)
                row["state"] = "broken" if row["problem"] else "ok"
            except LookupError as exc:
                row.update(state="unchecked", problem=str(exc))
        # An engine that starts has read its files; one that does not may say which file was the reason.
        complaint = str(about.get("problem") or "")
        if row["state"] == "unchecked" and about.get("state") == "ok":
            row.update(state="ok", problem=None)
        elif row["state"] == "unchecked" and path in complaint:
            row.update(state="broken", problem=excerpt(complaint, limit=300))
        rows.append(row)
    return rows


def read_proxies(output: str) -> dict:
    """Return the proxies that a file of environment lines or a systemd drop-in sets: http, https and none.

    The last line of each counts; names and passwords of a proxy are taken out.
    """
    found: dict[str, str] = {}
    for line in output.splitlines():
        if not line.lstrip().startswith(("#", ";")):
            for name, value in _PROXY.findall(line):
                found[name.lower()] = value.strip("\"'")
    return {"http": found.get("http_proxy"), "https": found.get("https_proxy"), "none": found.get("no_proxy")}


def _proxy_row(source: str, told: Mapping) -> dict:
    row = {"source": source}
    for key in ("http", "https"):
        row[key] = re.sub(r"//[^/@]*@", "//", str(told.get(key) or ""))
    return {**row, "none": str(told.get("none") or "")}


def _proxies(runner, name: str) -> list[dict]:
    rows = []
    for path in [path for pattern in PROXIES[name] for path in runner.glob(pattern)]:
        row = _proxy_row(path, read_proxies(runner.read(path) or ""))
        if row["http"] or row["https"]:
            rows.append(row)
    return rows


def _ca_files(runner, name: str, address: str) -> list[str]:
    return [path for folder in CERTIFICATES[name] for path in runner.glob(f"{folder}/{address}/*.crt")]


# ---------------------------------------------------------------------------------------------------------- judging

# State of a registry that was asked -> cause of container.registry.
_STATES = {
    "ok": "ok",
    "unreachable": "unreachable",
    "timeout": "unreachable",
    "plain_http": "scheme",
    "speaks_tls": "scheme",
    "ca_file": "ca_file",
    "ca_foreign": "ca_foreign",
    "expired": "expired",
    "not_yet_valid": "not_yet_valid",
    "name_mismatch": "name_mismatch",
    "login_needed": "login",
    "login_refused": "login",
    "forbidden": "forbidden",
    "tls": "error",
    "error": "error",
}


def judge_host(
    host: str,
    observation: Mapping,
    declared: Mapping,
    devices: Mapping | None = None,
    language: str = "en",
    now: str | None = None,
) -> list[dict]:
    """Hold what ``observe`` read against what is declared; return findings.

    ``declared`` are the ``cluster_*`` variables and ``images`` (words), ``registries`` (addresses),
    ``storage_free_gib``, ``cdi`` (whether cards are handed over by CDI), ``cdi_kind`` (of a vendor that the collection
    does not know).
    ``devices`` is what ``accelerator_info`` returned.
    """
    common: dict = {"language": language, "now": now}
    found = _judge_engine(host, observation, declared, common)
    blocker = "container.engine" if found[0]["verdict"] != "pass" and _is_down(observation) else None
    found += _judge_registries(host, observation, declared, common)
    about = {"images": declared.get("images") or [], "observation": observation, "blocked_by": blocker}
    found += images.judge_hosts({host: about}, now, language)
    found.append(_judge_cdi(host, observation, declared, devices, common))
    return found


def _is_down(observation: Mapping) -> bool:
    return dict_of(observation.get("engine")).get("state") != "ok"


def _judge_engine(host: str, observation: Mapping, declared: Mapping, common: dict) -> list[dict]:
    engine = dict_of(observation.get("engine"))
    broken = [one for one in dicts_of(observation.get("settings")) if one.get("state") == "broken"]
    state, name = engine.get("state"), engine.get("name") or "/".join(ENGINES)
    told = f"{name} {engine.get('version') or ''}".strip()
    values = {**common, "observed": told, "engine": told, "detail": str(engine.get("problem") or "")}
    values["evidence"] = [{"command": f"{name} info", "excerpt": values["detail"]}]
    wanted = to_float(declared.get("storage_free_gib"))
    free = engine.get("free_bytes")
    if broken:
        words = "; ".join(f"{one.get('path')} {one.get('problem')}" for one in broken)
        cause, values["detail"] = "settings", words
    elif state in ("absent", "failed", "hung"):
        cause = str(state)
    elif state != "ok":
        cause = "unknown"
    elif wanted and not isinstance(free, int):
        cause, values["detail"] = "unknown", f"df {engine.get('storage_path')}"
    elif wanted and isinstance(free, int) and free < wanted * GIB:
        cause, values["detail"] = "disk_full", str(engine.get("storage_path"))
        values.update(expected=wanted, observed=round(free / GIB, 1))
    else:
        cause = "ok"
    return [judge.finding(f"container.engine.{cause}", host, **values)]


def _judge_registries(host: str, observation: Mapping, declared: Mapping, common: dict) -> list[dict]:
    """Judge each registry that is declared or was asked; its address is the subject."""
    asked = {str(one.get("address")): one for one in dicts_of(observation.get("registries"))}
    found = []
    for address in dict.fromkeys([*map(str, declared.get("registries") or []), *asked]):
        answer = asked.get(address, {})
        cause = _STATES.get(str(answer.get("state")), "unknown")
        state, problem = answer.get("state"), str(answer.get("problem") or "")
        detail = {"plain_http": "https -> http", "speaks_tls": "http -> https"}.get(str(state), problem)
        if cause in ("ok", "unreachable") and answer.get("proxied_by"):
            cause, detail = "no_proxy", ", ".join(map(str, answer["proxied_by"]))
        rows = dicts_of(answer.get("images"))
        for state, own in (
            ("corrupt", "corrupt"),
            ("refused", "forbidden"),
            ("absent", "image_absent"),
            ("error", "error"),
        ):
            bad = [one for one in rows if one.get("state") == state]
            if cause == "ok" and bad:
                cause = own
                detail = "; ".join(f"{one.get('reference')}: {one.get('problem')}" for one in bad)
        values = {**common, "detail": detail, "observed": answer.get("state")}
        evidence = [{"command": f"{answer.get('scheme')}://{address}/v2/", "excerpt": problem or detail}]
        found.append(judge.finding(f"container.registry.{cause}", host, address, evidence=evidence, **values))
    return found or [judge.finding("container.registry.not_applicable", host, **common)]


def _judge_cdi(host: str, observation: Mapping, declared: Mapping, devices: Mapping | None, common: dict) -> dict:
    vendor = str(declared.get("cluster_accelerator_vendor") or "")
    if not declared.get("cdi") or judge.has_no_accelerators(dict(declared)):
        return judge.finding("container.cdi.not_applicable", host, **common)
    access = vendors.VENDORS[vendor].container if vendor in vendors.VENDORS else ContainerAccess()
    kind = str(declared.get("cdi_kind") or access.kind)
    seen = observation.get("cdi")
    values = {**common, "expected": kind or None}
    if not kind:
        return judge.finding("container.cdi.unknown", host, detail=f"{vendor}: cdi_kind", **values)
    if not isinstance(seen, dict):
        return judge.finding("container.cdi.unknown", host, detail="/etc/cdi", **values)
    engine = dict_of(observation.get("engine"))
    cards = [one for one in dicts_of(dict_of(devices).get("devices")) if one.get("vendor") == vendor]
    problems = cdi.problems(seen, {**(devices or {}), "devices": cards}, kind, access, engine)
    state = judge.state_of(devices or {}, dict(declared))
    blocker = "device.driver" if state.driver_blocks else "device.query" if state.query != "ok" else None
    if devices is None:
        blocker = "device.query"
    values["evidence"] = [{"command": cause, "excerpt": words} for cause, words in problems]
    values["observed"] = [f"{cause}: {words}" for cause, words in problems]
    cause = problems[0][0] if problems else "ok"
    if blocker and cause in ("ok", "shadowed"):
        return judge.finding("container.cdi.blocked", host, blocked_by=blocker, **values)
    detail = "; ".join(words for own, words in problems if own == cause)
    return judge.finding(f"container.cdi.{cause}", host, detail=detail, kind=kind, **values)
