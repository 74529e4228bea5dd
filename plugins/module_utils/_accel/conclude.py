# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""From what every host handed over to one verdict: parts, the run, its lines. Pure functions.

A part is what the verifications of one host and layer found (docs/data.md, "Parts and reports"). What a part
does not say is unknown: a host without one was not reached, a role that is missing in it did not finish.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from . import hints, images, judge, slots
from .model import CRITICAL, FAIL, LAYERS, NOT_APPLICABLE, PASS, SEVERITIES, UNKNOWN, VERDICTS, WARNING

SCHEMA = 1

# Findings named in the line of a layer; the report has all of them.
_NAMED = 5

_LINES = {
    "en": {
        "line": "{layer}: {verdict} ({fail} fail, {unknown} unknown, {warnings} warnings, {pass} pass)",
        "nothing": "{layer}: {verdict} (nothing was judged)",
        "named": "{line}: {names}",
        "more": "{n} more",
        "comma": ", ",
        "no_part": "no result of {roles}",
        "garbled": "{file} is not readable: {why}",
        PASS: "pass",
        FAIL: "fail",
        UNKNOWN: "unknown",
    },
    "zh": {
        "line": "{layer}：{verdict}（不通过 {fail}，无法判定 {unknown}，警告 {warnings}，通过 {pass}）",
        "nothing": "{layer}：{verdict}（没有任何判定）",
        "named": "{line}：{names}",
        "more": "另有 {n} 条",
        "comma": "，",
        "no_part": "缺少 {roles} 的结果",
        "garbled": "{file} 无法读取：{why}",
        PASS: "通过",
        FAIL: "不通过",
        UNKNOWN: "无法判定",
    },
}


def _words(language: str) -> dict:
    return _LINES.get(language, _LINES["en"])


# ---------------------------------------------------------------------------------------------- parts


def finding_problem(finding: object) -> str | None:
    """Return what is wrong with a finding, None when it is one. The sentence names the finding."""
    if not isinstance(finding, dict):
        return f"a finding is an object, not {type(finding).__name__}: {finding!r:.200}"
    name = f"finding {finding.get('check')!r} of {finding.get('host')!r} {finding.get('subject')!r}"
    for key in ("check", "host", "subject", "verdict", "hint", "layer", "severity", "message"):
        if not isinstance(finding.get(key), str):
            return f"{name}: {key} must be text, it is {finding.get(key)!r}"
    if finding["check"] not in hints.CHECKS:
        return f"{name}: no such check"
    if finding["hint"] not in hints.CAUSES or hints.check_of(finding["hint"]) != finding["check"]:
        return f"{name}: {finding['hint']!r} is no cause of this check"
    for key, allowed in (("verdict", VERDICTS), ("severity", SEVERITIES), ("layer", LAYERS)):
        if finding[key] not in allowed:
            return f"{name}: {key} {finding[key]!r} is none of {', '.join(allowed)}"
    if not isinstance(finding.get("vendor"), (str, type(None))):
        return f"{name}: vendor must be text or null, it is {finding['vendor']!r}"
    if not isinstance(finding.get("evidence", []), list):
        return f"{name}: evidence must be a list"
    cards = finding.get("cards", [])
    if not isinstance(cards, list) or not all(isinstance(one, str) for one in cards):
        return f"{name}: cards must be a list of texts"
    blocked_by = finding.get("blocked_by")
    if blocked_by is not None and (not isinstance(blocked_by, str) or blocked_by not in hints.CHECKS):
        return f"{name}: blocked_by {blocked_by!r} is no check"
    if not isinstance(finding.get("at"), (str, type(None))):
        return f"{name}: at must be text, it is {finding['at']!r}"
    try:
        json.dumps(finding, allow_nan=False)
    except (TypeError, ValueError) as exc:
        return f"{name}: can't be written as JSON ({exc})"
    return None


def part_problems(part: dict) -> list[tuple[tuple, str]]:
    """Return what makes a body no part, as (place inside it, sentence), the way ``record.load`` takes it."""
    found: list[tuple[tuple, str]] = []
    for key, kind in (("host", str), ("layer", str), ("roles", list), ("findings", list), ("observed", dict)):
        if not isinstance(part.get(key), kind):
            found.append(((key,), f"{key!r} must be {kind.__name__}"))
    if found:
        return found
    for number, finding in enumerate(part["findings"]):
        problem = finding_problem(finding)
        if problem:
            found.append((("findings", number), problem))
    return found


def merge_part(
    old: dict | None, host: str, layer: str, role: str, findings: list[dict], observed: dict | None = None
) -> dict:
    """Return the part of a host and layer with what ``role`` says now; what it said before is replaced.

    Each finding carries its ``role``, so that several roles share a layer.
    """
    old = old or {}
    kept = [one for one in old.get("findings") or [] if one.get("role") != role]
    roles = [name for name in old.get("roles") or [] if name != role]
    return {
        "schema": SCHEMA,
        "host": host,
        "layer": layer,
        "roles": [*roles, role],
        "findings": [*kept, *({**one, "role": role} for one in findings)],
        "observed": {**(old.get("observed") or {}), **(observed or {})},
    }


def path_name_problem(name: object, what: str) -> str | None:
    """Return why a name can't be part of a path below the reports, None when it can."""
    text = str(name) if isinstance(name, str) else ""
    if not text or text in (".", "..") or len(text) > 200:
        return f"{what} {name!r} can't name a directory"
    if any(sign in text for sign in "/\\") or any(ord(sign) < 32 or ord(sign) == 127 for sign in text):
        return f"{what} {name!r} must not hold a slash, a backslash or a control character"
    return None


# ---------------------------------------------------------------------------------------------- the run


def conclude(
    site: str,
    run_id: str,
    hosts: list[str],
    expected: list[dict],
    parts: Mapping[str, Mapping[str, dict]],
    declared: Mapping[str, dict],
    baselines: Mapping[str, dict | None],
    part_errors: Mapping[str, Mapping[str, str]] | None = None,
    declared_errors: Mapping[str, str] | None = None,
    baseline_errors: Mapping[str, str] | None = None,
    now: str | None = None,
    language: str = "en",
    started_at: str = "",
) -> dict:
    """Judge the run: ``{"verdict", "counts", "lines", "run"}``; ``run`` is what report and findings.json keep.

    ``hosts`` are those that the run must speak of, ``expected`` the ``{role, layer}`` that each of them should have
    handed over. ``parts`` are ``{host: {layer: part}}``, ``part_errors`` ``{host: {file: why}}`` those that could
    not be read. ``declared`` are the ``cluster_*`` variables of each host, ``baselines`` the accepted slot records of
    the site, of other hosts too; the ``*_errors`` say why there is none.
    """
    part_errors, declared_errors = part_errors or {}, declared_errors or {}
    moment = judge.parse_time(now)
    at = moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment else judge.now_utc()
    hosts = list(dict.fromkeys([*hosts, *sorted({*parts, *part_errors} - {*hosts}, key=judge.natural)]))
    findings: list[dict] = []
    observations: dict[str, dict] = {}
    told = {
        host: part["observed"]["devices"]
        for host in hosts
        for part in parts.get(host, {}).values()
        if "devices" in part["observed"]
    }
    everywhere = judge.answering(told)
    for host in hosts:
        own = parts.get(host, {})
        said = [dict(one) for layer in own for one in own[layer]["findings"]]
        for one in said:
            one.pop("role", None)
        observation = told.get(host)
        if observation is not None:
            observations[host] = judge.placed(observation, baselines.get(host), everywhere)
            said = _renamed(said, observation, observations[host], language)
        findings += _once(said + _reachable(host, own, part_errors.get(host, {}), expected, said, at, language))
    findings += judge.judge_slots(baselines, {}, observations, declared, baseline_errors, now=at, language=language)
    about = {
        host: {
            "node_type": declared.get(host, {}).get("cluster_node_type"),
            "declared": declared.get(host, {}),
            "observation": observation,
            "error": declared_errors.get(host),
        }
        for host, observation in observations.items()
    }
    findings += judge.judge_driver_versions(about, now=at, language=language)
    findings = images.across(findings, parts, at, language)
    findings = _of_one_fact(findings, at, language)
    findings = [_explained(one, language) for one in sorted(findings, key=sort_key)]
    run = build_run(
        site, run_id, hosts, expected, findings, observations, declared, baselines, parts, at, language, started_at
    )
    return {
        "verdict": run["verdict"],
        "counts": run["counts"],
        "lines": [line(layer, findings, language) for layer in run["layers"]],
        "run": run,
    }


def _renamed(findings: list[dict], seen: object, placed: dict, language: str) -> list[dict]:
    """Return findings that call silent cards as the accepted baseline does.

    The host itself could not know: a card that does not answer does not tell its slot, nor its serial.
    """
    subjects: dict[str, str] = {}
    names: dict[str, str] = {}
    before = {card.address: card for card in judge.cards_of(seen, language)}
    for card in judge.cards_of(placed, language):
        old = before.get(card.address)
        if card.address and old and old.state != "ok":
            subjects[old.subject] = card.subject
            names[old.name] = card.name
    renamed = []
    for one in findings:
        message, evidence = one["message"], one.get("evidence") or []
        told = one.get("cards") or []
        cards = [subjects.get(card, card) for card in told]
        if told:
            # Names may be as short as "3", which other words of the message hold too: they are put in all at once.
            comma = judge.words(language)["comma"]
            message = message.replace(comma.join(told), comma.join(cards))
            evidence = [_renamed_lines(piece, subjects) for piece in evidence]
        for old_name, name in () if told else names.items():
            message = message.replace(old_name, name)
        subject = one["subject"]
        if one["check"].startswith("device.") and subject != one["host"]:
            subject = subjects.get(subject, subject)
        renamed.append({**one, "subject": subject, "message": message, "cards": cards, "evidence": evidence})
    return renamed


def _renamed_lines(piece: dict, subjects: Mapping[str, str]) -> dict:
    """Return evidence about several cards, in which each line begins with the name of its card, by their new names."""
    lines = []
    for line in str(piece.get("excerpt") or "").split("\n"):
        name, colon, rest = line.partition(": ")
        lines.append(f"{subjects.get(name, name)}{colon}{rest}" if colon else line)
    return {**piece, "excerpt": "\n".join(lines)}


def _reachable(
    host: str,
    parts: Mapping[str, dict],
    errors: Mapping[str, str],
    expected: list[dict],
    said: list[dict],
    now: str,
    language: str,
) -> list[dict]:
    say = _words(language)
    if not parts and not errors:
        return [judge.finding("host.reachable.unreachable", host, language=language, now=now)]
    missing = [one["role"] for one in expected if one["role"] not in parts.get(one["layer"], {}).get("roles", [])]
    crashed = any(one["check"] == "host.reachable" for one in said)
    if crashed and len(missing) == len(expected):
        missing = []  # what broke before the first role explains why none said anything
    detail = [say["garbled"].format(file=file, why=why) for file, why in sorted(errors.items())]
    if missing:
        detail.append(say["no_part"].format(roles=say["comma"].join(missing)))
    if detail:
        evidence = [{"command": file, "excerpt": judge.excerpt(why)} for file, why in sorted(errors.items())]
        words = "; ".join(detail)
        return [judge.finding("host.reachable.incomplete", host, None, language, now, evidence=evidence, detail=words)]
    if crashed:
        return []  # a role crashed, and said so
    return [judge.finding("host.reachable.ok", host, language=language, now=now)]


def _once(findings: list[dict]) -> list[dict]:
    """Return findings of a host with one ``host.reachable`` for all roles that broke or did not finish."""
    reached = [one for one in findings if one["check"] == "host.reachable"]
    if len(reached) < 2:
        return findings
    message = "; ".join(dict.fromkeys(one["message"] for one in reached))
    evidence = [piece for one in reached for piece in one.get("evidence") or []]
    return [one for one in findings if one["check"] != "host.reachable"] + [
        {**reached[0], "message": message, "evidence": evidence}
    ]


def _of_one_fact(findings: list[dict], now: str, language: str) -> list[dict]:
    """Return findings in which one fact is told once, by the check that knows most of it.

    ``device.driver_stack`` knows the pin and the packages, so it says which side of a mismatch is wrong; that module
    and library differ, that the version is another than the declared one, or that device files name libraries that
    were replaced, is the same fact seen from one side. ``device.slot`` knows which card is another, or elsewhere, than
    the accepted record says, and with that why a device file gives another. Where the stack finds the driver of one
    piece, a device file of another version is what is wrong, and ``container.cdi`` says which file. What is wrong with
    a registry on its own host (``registry.service``) is not wrong with each node that asks it.
    """
    judged, drifted, stale, moved, registries = set(), set(), set(), set(), set()
    for one in findings:
        if one["verdict"] == FAIL and one["check"] == "registry.service":
            registries |= {(one["subject"], cause) for cause in _OF_REGISTRY.get(one["hint"], ())}
        if one["verdict"] == FAIL and one["check"] == "device.slot":
            moved.add(one["host"])
        if one["verdict"] == FAIL and one["check"] == "device.driver_stack":
            if one["subject"] in ("module", "library"):
                judged.add(one["host"])
            if one["subject"] in ("module", "library", "packages"):
                drifted.add(one["host"])
        if one["verdict"] == FAIL and one["hint"] in _DRIVER_OF_FILES:
            stale.add(one["host"])
    kept = []
    for one in findings:
        host, cause = one["host"], None
        if one["verdict"] == FAIL and host in judged and one["hint"] in _SAME_FACT:
            cause, owner = _SAME_FACT[one["hint"]], "device.driver_stack"
        elif one["verdict"] == FAIL and host in drifted and one["hint"] in _DRIVER_OF_FILES:
            cause, owner = "container.cdi.follows", "device.driver_stack"
        elif one["verdict"] == FAIL and host in moved and one["hint"] in _CARDS_OF_FILES:
            cause, owner = "container.cdi.moved", "device.slot"
        elif host in stale and one["hint"] == "device.driver_stack.cdi_stale":
            cause, owner = "device.driver_stack.follows", "container.cdi"
        elif one["verdict"] == FAIL and (one["subject"], one["hint"]) in registries:
            cause, owner = "container.registry.follows", "registry.service"
        if cause:
            values = {"expected": one["expected"], "observed": one["observed"], "evidence": one["evidence"]}
            one = judge.finding(cause, host, one["subject"], language, now, blocked_by=owner, **values)
        kept.append(one)
    return kept


_SAME_FACT = {
    "device.driver.library_mismatch": "device.driver.follows",
    "device.driver.not_loaded": "device.driver.follows",
    "device.driver_version.differs": "device.driver_version.follows",
}
_CARDS_OF_FILES = ("container.cdi.replaced", "container.cdi.renumbered", "container.cdi.lacking")
# What nodes find of a registry, by what its own host says of it.
_OF_REGISTRY = {
    "registry.service.down": ("container.registry.unreachable", "container.registry.error"),
    "registry.service.certificate": (
        "container.registry.expired",
        "container.registry.not_yet_valid",
        "container.registry.name_mismatch",
    ),
}
_DRIVER_OF_FILES = ("container.cdi.driver_version", "container.cdi.missing_library")


def _explained(finding: dict, language: str) -> dict:
    """Return a finding with the title of its check and, where there is something to do, what."""
    title = hints.CHECKS[finding["check"]]["title"]
    wanted = language if language in title else "en"
    done = finding["verdict"] in (PASS, NOT_APPLICABLE)
    todo = "" if done else hints.hint_text(finding["hint"], language, finding.get("vendor"))
    return {**finding, "title": title[wanted], "hint_text": todo}


_RANK = {(FAIL, CRITICAL): 0, (UNKNOWN, CRITICAL): 1, (FAIL, WARNING): 2, (UNKNOWN, WARNING): 3}
_QUIET = {PASS: 4, NOT_APPLICABLE: 5}
_CHECK_ORDER = {check: number for number, check in enumerate(hints.CHECKS)}


def sort_key(finding: dict) -> tuple:
    """Return the key that puts the worst first, causes before consequences, then by host, slot and check."""
    rank = _QUIET.get(finding["verdict"], _RANK.get((finding["verdict"], finding["severity"]), 1))
    return (
        rank,
        bool(finding.get("blocked_by")),
        judge.natural(finding["host"]),
        finding["subject"] != finding["host"],
        judge.natural(finding["subject"]),
        _CHECK_ORDER.get(finding["check"], len(_CHECK_ORDER)),
    )


def count(findings: list[dict]) -> dict:
    """Return how many findings there are of each kind; they add up.

    ``fail`` and ``unknown`` are those that decide the verdict; ``warnings`` are the fails and unknowns that don't.
    """
    counts = {PASS: 0, FAIL: 0, UNKNOWN: 0, NOT_APPLICABLE: 0, "warnings": 0}
    for one in findings:
        if one["verdict"] in (PASS, NOT_APPLICABLE):
            counts[one["verdict"]] += 1
        elif one["severity"] == WARNING:
            counts["warnings"] += 1
        else:
            counts[FAIL if one["verdict"] == FAIL else UNKNOWN] += 1
    return counts


def line(layer: dict, findings: list[dict], language: str = "en") -> str:
    """Return one line of a layer for the end of a run: verdict, counts, and the first causes by name."""
    say = _words(language)
    if not any(layer["counts"].values()):
        return say["nothing"].format(layer=layer["layer"], verdict=say[layer["verdict"]])
    told = say["line"].format(layer=layer["layer"], **{**layer["counts"], "verdict": say[layer["verdict"]]})
    causes = [
        one
        for one in findings
        if one["layer"] == layer["layer"]
        and one["verdict"] in (FAIL, UNKNOWN)
        and one["severity"] == CRITICAL
        and not one.get("blocked_by")
    ]
    if not causes:
        return told
    names = [" ".join(dict.fromkeys((one["host"], one["subject"], one["check"]))) for one in causes[:_NAMED]]
    if len(causes) > _NAMED:
        names.append(say["more"].format(n=len(causes) - _NAMED))
    return say["named"].format(line=told, names=say["comma"].join(names))


def build_run(
    site: str,
    run_id: str,
    hosts: list[str],
    expected: list[dict],
    findings: list[dict],
    observations: Mapping[str, object],
    declared: Mapping[str, dict],
    baselines: Mapping[str, dict | None],
    parts: Mapping[str, Mapping[str, dict]],
    now: str,
    language: str,
    started_at: str = "",
) -> dict:
    """Return the run as the report takes it (docs/data.md, "Parts and reports")."""
    wanted = {one["layer"] for one in expected} | {one["layer"] for one in findings}
    layers = []
    for name in LAYERS:
        own = [one for one in findings if one["layer"] == name]
        if name in wanted:
            layers.append({"layer": name, "verdict": judge.verdict(own), "counts": count(own)})
    verdict = judge.verdict(findings)
    # A layer that should have been judged and was not keeps the run from passing.
    if verdict == PASS and any(layer["verdict"] != PASS for layer in layers):
        verdict = UNKNOWN
    by_host: dict[str, list[dict]] = {host: [] for host in hosts}
    for one in findings:
        by_host.setdefault(one["host"], []).append(one)
    everywhere = judge.answering(observations)
    # A run may have any name, and one that looks like a time was not always given when the run started.
    started = judge.parse_time(started_at) or judge.parse_time(
        run_id.partition("Z-")[0] + "Z" if "Z-" in run_id else run_id
    )
    times = sorted(one["at"] for one in findings if one.get("at"))
    return {
        "schema": SCHEMA,
        "site": site,
        "run_id": run_id,
        "started_at": started.strftime("%Y-%m-%dT%H:%M:%SZ") if started else (times or [now])[0],
        "finished_at": now,
        "language": language,
        "verdict": verdict,
        "counts": count(findings),
        "layers": layers,
        "hosts": [
            {
                "host": host,
                "node_type": str(declared.get(host, {}).get("cluster_node_type") or "") or None,
                "vendor": _vendor(declared.get(host, {}), observations.get(host)),
                "reachable": bool(parts.get(host)),
                "slots": cards(
                    host, observations.get(host), baselines.get(host), by_host[host], now, language, everywhere
                ),
            }
            for host in hosts
        ],
        "findings": findings,
    }


def _vendor(declared: dict, observation: object) -> str | None:
    if declared.get("cluster_accelerator_vendor"):
        return str(declared["cluster_accelerator_vendor"])
    devices = observation.get("devices") if isinstance(observation, dict) else None
    found = [one.get("vendor") for one in devices or [] if isinstance(one, dict) and one.get("vendor")]
    return found[0] if found else None


def cards(
    host: str,
    observation: object,
    baseline: dict | None,
    findings: list[dict],
    now: str,
    language: str = "en",
    everywhere: Collection[str] = (),
) -> list[dict]:
    """Return every card of a host for the map: those seen, those lost, and those that a baseline remembers.

    ``everywhere`` are the identities that answer on any host: a silent card here is none of them.
    Each has label, address, serial, uuid, model, the verdict of its own findings (warnings don't turn it) and those
    findings in short.
    """
    accepted = baseline if baseline and not slots.problems(baseline) else None
    entries: list[tuple[str | None, dict]]
    if isinstance(observation, dict):
        known = judge.without(accepted, observation, everywhere)
        try:
            spots = slots.cards(slots.build_record(observation, host, now, known))
            entries = [(spot.slot, spot.card) for spot in spots]
        except (ValueError, TypeError, AttributeError, KeyError):
            # Not fit for a record, but what can be told of the cards must not vanish from the map.
            entries = [
                (card.label, {**card.device, "pci_address": card.address})
                for card in judge.cards_of(observation, language)
            ]
    else:
        entries = [(spot.slot, spot.card) for spot in slots.cards(accepted)] if accepted else []
    # Where the bus can't be read no slot is proven; findings then call a card as the record of its host does.
    called = {card.address: card.subject for card in judge.cards_of(observation, language) if card.address}
    shown = []
    for label, card in sorted(
        entries, key=lambda item: (judge.natural(item[0]), str(item[1].get("pci_address") or ""))
    ):
        address = card.get("pci_address")
        name = called.get(str(address), address)
        if label is None and name != address:
            label = name
        own = [
            one
            for one in findings
            if (one["subject"] != host and one["subject"] in (label, address))
            or {label, address} & set(one.get("cards") or [])
        ]
        shown.append(
            {
                "label": label,
                "address": address,
                "serial": card.get("serial"),
                "uuid": card.get("uuid"),
                "model": card.get("model"),
                "verdict": judge.verdict(own),
                "checks": [
                    {key: one[key] for key in ("check", "verdict", "severity", "hint", "message")} for one in own
                ],
            }
        )
    return shown
