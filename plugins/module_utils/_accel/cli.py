# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""``accelctl``: what a node knows of its cards, without Ansible.

Exit status: 0 ok, 1 warning, 2 critical, 3 unknown. What the node should have is read from
``/etc/accel/node.json``, which the role ``agent`` writes from the inventory.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import threading
from typing import NoReturn, TextIO

from . import hints, judge, links, probe, recall, record, slots
from .model import CRITICAL, FAIL, UNKNOWN, WARNING, as_dict, to_float
from .runner import Runner
from .slot_names import natural

NODE_FILE = "/etc/accel/node.json"
LANGUAGES = ("en", "zh")
_SLOTS = "cluster_accelerator_slots"
_VENDORS = "cluster_vendors"
EXIT_OK, EXIT_WARNING, EXIT_CRITICAL, EXIT_UNKNOWN = 0, 1, 2, 3


class NodeFileError(Exception):
    """The node file can't be used; the message says which file and why."""


def say(text: str, stream: TextIO | None = None) -> None:
    """Write a line for whoever ran the program, on standard output unless told otherwise."""
    (stream or sys.stdout).write(text + "\n")


def load_node(path: str) -> dict:
    """Return ``{"host", "records_dir", "language", "declared"}`` from the node file.

    Raises NodeFileError when it is missing, is no JSON, lacks a key or has a value of another type.
    """
    try:
        with open(path, encoding="utf-8") as handle:
            node = json.load(handle)
    except OSError as exc:
        raise NodeFileError(f"{path}: {exc.strerror}; run the playbook accel.cluster.agent") from exc
    except ValueError as exc:
        raise NodeFileError(f"{path}: not valid JSON: {exc}") from exc
    missing = (
        [key for key in ("host", "records_dir", "declared") if key not in node] if isinstance(node, dict) else [""]
    )
    if missing:
        raise NodeFileError(f"{path}: lacks {', '.join(missing) or 'everything'}; run the playbook accel.cluster.agent")
    kinds = (("host", str), ("records_dir", str), ("declared", dict))
    wrong = [key for key, kind in kinds if not isinstance(node[key], kind)]
    if not wrong:
        limit, named = node["declared"].get("cluster_query_timeout_seconds"), node["declared"].get(_SLOTS)
        wrong += [] if limit in (None, "") or (to_float(limit) or 0) > 0 else ["cluster_query_timeout_seconds"]
        wrong += [] if named in (None, "") or isinstance(named, dict) else [_SLOTS]
        wrong += [] if isinstance(node["declared"].get(_VENDORS, {}), dict) else [_VENDORS]
    if wrong:
        raise NodeFileError(f"{path}: {', '.join(wrong)} can't be used; run the playbook accel.cluster.agent")
    if node.get("language") not in LANGUAGES:
        node["language"] = LANGUAGES[0]
    return node


def exit_status(findings: list[dict]) -> int:
    """Return the exit status: critical fail > critical unknown > any other fail > ok.

    No finding at all is unknown. What is not known and of severity warning is shown and counted, and no more: the link
    of a card that is idle is such a thing, and a node is not taken out of service for it.
    """
    if not findings:
        return EXIT_UNKNOWN
    serious = [f["verdict"] for f in findings if f["severity"] == CRITICAL]
    if FAIL in serious:
        return EXIT_CRITICAL
    if UNKNOWN in serious:
        return EXIT_UNKNOWN
    return EXIT_WARNING if any(f["verdict"] == FAIL for f in findings) else EXIT_OK


def observe(node: dict, timeout_seconds: float | None, runner: Runner) -> dict:
    """Ask the cards of this host; see ``accelerator_info`` for the shape."""
    declared = node["declared"]
    limit = timeout_seconds or float(declared.get("cluster_query_timeout_seconds") or 60)
    observation = as_dict(
        probe.observe(
            runner,
            timeout_seconds=limit,
            declared_slots=declared.get(_SLOTS) or None,
            declared_vendors=declared.get(_VENDORS) or None,
        )
    )
    if node["records_dir"]:
        try:
            known = record.load(os.path.join(node["records_dir"], "slots.json"), slots.problems)
            recall.recall(observation, known, node["host"])
        except record.RecordError as exc:
            observation["errors"].append(str(exc))
    return observation


def check(node: dict, observation: dict, keep: bool) -> tuple[list[dict], str]:
    """Judge the cards; with ``keep``, readings of working links are kept for the next judgement.

    Returns the findings, and why the kept readings can't be read or written, or nothing: they are a help for one
    check, so without them all the others are judged as well.
    """
    path = os.path.join(node["records_dir"], "links.json")
    now = record.now_utc()
    kept: dict = {}
    trouble = ""
    try:
        kept = links.load(path)
    except record.RecordError as exc:
        trouble = str(exc)
    readings = links.merge(kept, observation, now)
    if keep and readings != kept and not trouble:
        try:
            links.save(path, readings)
        except record.RecordError as exc:
            trouble = str(exc)
    findings = judge.judge_devices(
        node["host"],
        observation,
        node["declared"],
        link_readings=readings,
        now=now,
        language=node.get("language", "en"),
    )
    return findings, trouble


def show_devices(observation: dict) -> str:
    """Return one line a card, in slot order; of one that does not answer, what is known of it."""
    cards = [(device, device["health"]["state"]) for device in observation["devices"]]
    cards += [(card, card["state"]) for card in observation["unanswered"]]
    rows: list[tuple[str, ...]] = [("SLOT", "ADDRESS", "VENDOR", "MODEL", "SERIAL", "STATE")]
    for card, state in sorted(cards, key=lambda one: natural(one[0]["slot"]["label"])):
        model = card["model"] or card["pci_id"]
        told = (card["slot"]["label"], card["pci_address"], card["vendor"], model, card["serial"], state)
        rows.append(tuple(word or "-" for word in told))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def show_findings(findings: list[dict], language: str) -> str:
    """Return what is not a pass, the critical first, each hint once behind all that it is about, and the counts.

    What is a warning is called so, whatever its verdict, as in the report of a run.
    """
    lines = []
    counts: dict[str, int] = {}
    causes: dict[tuple[bool, str, bool], list[str]] = {}
    for finding in findings:
        verdict = finding["verdict"]
        warning = verdict in (FAIL, UNKNOWN) and finding["severity"] == WARNING
        kind = "warning" if warning else verdict
        counts[kind] = counts.get(kind, 0) + 1
        if verdict in (FAIL, UNKNOWN):
            told = f"{kind:8}{finding['check']}  {finding['subject']}: {finding['message']}"
            causes.setdefault((warning, finding["hint"], bool(finding["blocked_by"])), []).append(told)
    for (_warning, cause, blocked), told_all in sorted(causes.items(), key=lambda one: one[0][0]):
        lines += told_all if blocked else [*told_all, f"        {hints.CAUSES[cause].hint[language]}"]
    lines.append(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())) or "nothing was checked")
    return "\n".join(lines)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        # 2, which argparse ends with, means that a card is in a critical state.
        self.exit(EXIT_UNKNOWN, f"{self.format_usage()}{self.prog}: {message}\n")


def _seconds(word: str) -> float:
    value = to_float(word)
    if value is None or not 0 < value <= threading.TIMEOUT_MAX:
        raise argparse.ArgumentTypeError(f"{word!r} is no number of seconds above 0")
    return value


def main(argv: list[str] | None = None, runner: Runner | None = None) -> int:
    """Run one command; print text or JSON; return the exit status.

    Whatever breaks is unknown: Python itself would end with 1, which means that there is only a warning.
    """
    try:
        status = _run(argv, runner or Runner())
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Nobody reads on; the interpreter must not complain about it once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Exception as exc:
        say(f"accelctl: {type(exc).__name__}: {exc}", sys.stderr)
    return EXIT_UNKNOWN


def _run(argv: list[str] | None, runner: Runner) -> int:
    parser = _Parser(prog="accelctl", description="What this node knows of its accelerator cards.")
    parser.add_argument("command", choices=["devices", "slots", "check"])
    parser.add_argument("--json", action="store_true", help="print JSON, as the modules return it")
    parser.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="time limit of each vendor command")
    parser.add_argument("--keep", action="store_true", help="check: keep the readings of working links")
    parser.add_argument("--node-file", default=NODE_FILE, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    try:
        node = load_node(options.node_file)
    except NodeFileError as exc:
        if options.command == "check" or os.path.exists(options.node_file):
            say(f"accelctl: {exc}", sys.stderr)
        if options.command == "check":
            return EXIT_UNKNOWN
        # Looking needs no declaration; judging does.
        node = {"host": platform.node(), "records_dir": "", "declared": {}}
    observation = observe(node, options.timeout, runner)
    if options.command == "devices":
        say(json.dumps(observation, indent=2, sort_keys=True) if options.json else show_devices(observation))
        return EXIT_OK if observation["count"] == observation["bus_count"] else EXIT_UNKNOWN
    if options.command == "slots":
        try:
            # The record on the node still knows the serial of a card that is lost now.
            path = os.path.join(node["records_dir"], "slots.json")
            known = record.load(path, slots.problems) if node["records_dir"] else None
        except record.RecordError as exc:
            say(f"accelctl: {exc}", sys.stderr)
            return EXIT_UNKNOWN
        body = slots.build_record(observation, node["host"], record.now_utc(), known)
        say(json.dumps(body, indent=2, sort_keys=True) if options.json else show_devices(observation))
        return EXIT_OK if observation["count"] == observation["bus_count"] else EXIT_UNKNOWN
    findings, trouble = check(node, observation, options.keep)
    status = exit_status(findings)
    if trouble:
        say(f"accelctl: {trouble}", sys.stderr)
        status = status if status == EXIT_CRITICAL else EXIT_UNKNOWN
    if options.json:
        say(json.dumps({"host": node["host"], "status": status, "findings": findings}, indent=2, sort_keys=True))
    else:
        say(show_findings(findings, node.get("language", "en")))
    return status
