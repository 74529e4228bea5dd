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
import select
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, NoReturn, TextIO

# What only some commands need is imported there: Slurm and the exporter start this every minute on every node.
from .model import as_dict, to_float
from .reader import MOST_BYTES, Blocked, read_whole
from .runner import RUNNING, BoundedRunner, Runner
from .shown import EXIT_CRITICAL, EXIT_OK, EXIT_UNKNOWN, exit_status, health_line, show_devices, show_findings

NODE_FILE = "/etc/accel/node.json"
LANGUAGES = ("en", "zh")
_SLOTS = "cluster_accelerator_slots"
_VENDORS = "cluster_vendors"
# What a shell tells of a program that the terminal interrupted.
EXIT_INTERRUPTED = 130
COMMANDS = {
    "devices": "one line a card",
    "slots": "the record of which card sits in which slot",
    "check": "what is not right, and what to do about it",
    "health": "one line and an exit status, as Slurm's HealthCheckProgram",
    "metrics": "metrics of every card, as Prometheus reads them",
    "explain": "CHECK: what a check can end with, and what to do then",
    "locate": "SLOT, SERIAL or ADDRESS: turn on the light at that card; --off turns it off",
}
# Which commands take an option: one that a command does not use is refused, for whoever wrote it waits for its effect.
_ASKS = ("devices", "slots", "check", "health", "metrics", "locate")
TAKEN_BY = {
    "json": ("devices", "slots", "check", "health"),
    "timeout": _ASKS,
    "limit": _ASKS,
    "keep": ("check",),
    "language": ("check", "health", "explain", "locate"),
    "off": ("locate",),
}
# slurmd ends its HealthCheckProgram after 60 seconds (slurm.conf), and Prometheus gives up sooner or later too.
LIMIT_SECONDS = {"health": 50.0, "metrics": 50.0, "locate": 50.0}
# What a person waits for may take as long as so many commands that hang, and at least as long as those above. The timer
# of the agent ends its check after four.
COMMANDS_THAT_HANG = 3
LEAST_SECONDS = 50.0
# After its limit a command has so much time to judge and to tell.
GRACE = 5.0
NODE_FILE_SECONDS = 10.0
# When the question for all cards hangs, each is asked alone: the first must not use up the time of the second.
SHARE = 0.4


class NodeFileError(Exception):
    """The node file can't be used; the message says which file and why. ``absent``: there is none."""

    absent = False


class Answer(NamedTuple):
    """What a command ends with. A ``verdict`` is told by the status alone, too, where the text can't be written."""

    status: int
    text: str = ""
    verdict: bool = False


def tell(answer: Answer) -> int:
    """Write an answer on standard output; return the exit status. What can't be told is unknown, save for a verdict."""
    problem = _write(sys.stdout, answer.text) if answer.text else None
    if problem is None:
        return answer.status
    if problem:
        complain(f"the answer can't be written: {problem}")
    return answer.status if answer.verdict else EXIT_UNKNOWN


def complain(text: str) -> None:
    """Write a line on standard error; where that can't be done, nobody is left to be told."""
    _write(sys.stderr, f"accelctl: {text}")


def _write(stream: TextIO | None, text: str) -> str | None:
    """Write a line; return why it could not be, in words (none where nobody reads on), None when it was."""
    if stream is None:
        return "the stream is closed"
    try:
        stream.write(text + "\n")
        stream.flush()
        return None
    except BrokenPipeError:
        problem = ""
    except (OSError, ValueError) as exc:
        problem = getattr(exc, "strerror", None) or str(exc)
    # Python would try again when it ends, complain, and end with 120.
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError):
        pass
    return problem


def load_node(path: str) -> dict:
    """Return ``{"host", "records_dir", "language", "declared"}`` from the node file.

    Raises NodeFileError when it is missing, is no JSON, lacks a key or has a value of another type.
    """
    try:
        node = json.loads(read_whole(path, MOST_BYTES, NODE_FILE_SECONDS).decode("utf-8"))
    except OSError as exc:
        error = NodeFileError(f"{path}: {exc.strerror}; run the playbook accel.cluster.agent")
        error.absent = isinstance(exc, (FileNotFoundError, NotADirectoryError))
        raise error from exc
    except Blocked as exc:
        raise NodeFileError(f"{path}: no answer within {NODE_FILE_SECONDS:g} s") from exc
    except (ValueError, RecursionError) as exc:
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


def observe(node: dict, timeout_seconds: float, runner: Runner) -> dict:
    """Ask the cards of this host; see ``accelerator_info`` for the shape."""
    from . import probe, recall, record, slots

    declared = node["declared"]
    observation = as_dict(
        probe.observe(
            runner,
            timeout_seconds=timeout_seconds,
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
    from . import judge, links, record

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
    host, declared, language = node["host"], node["declared"], node.get("language", "en")
    findings = judge.judge_devices(host, observation, declared, link_readings=readings, now=now, language=language)
    # The most common version of a node type shows on the controller only; a declared one is known here too.
    findings += judge.judge_declared_driver_version(host, observation, declared, now, language)
    return findings, trouble


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        # 2, which argparse ends with, means that a card is in a critical state.
        _write(sys.stderr, f"{self.format_usage()}{self.prog}: {message}")
        self.exit(EXIT_UNKNOWN)

    def print_help(self, file: object = None) -> None:
        self.exit(tell(Answer(EXIT_OK, self.format_help().rstrip())))


def _seconds(word: str) -> float:
    value = to_float(word)
    if value is None or not 0 < value <= threading.TIMEOUT_MAX:
        raise argparse.ArgumentTypeError(f"{word!r} is no number of seconds above 0")
    return value


def main(argv: list[str] | None = None, runner: Runner | None = None) -> int:
    """Run one command; print text or JSON; return the exit status.

    Whatever breaks is unknown: Python itself would end with 1, which means that there is only a warning. A program that
    is interrupted has no status of its own, but that of the signal.
    """
    if runner is None:
        _open_streams()
        RUNNING.end_with_signals(at_once=True)
    if hasattr(sys.stdout, "reconfigure"):
        # A letter that the locale of slurmd does not know must not make an unknown of a critical card.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        return tell(_answer(_options(argv), runner))
    except KeyboardInterrupt:
        if runner is None:
            RUNNING.stop(EXIT_INTERRUPTED)
        return EXIT_INTERRUPTED
    except Exception as exc:
        complain(_in_words(exc))
        return EXIT_UNKNOWN


def _answer(options: argparse.Namespace, runner: Runner | None) -> Answer:
    """Return what a command answers, or that it broke; health says that in its line, too."""
    try:
        return _run(options, runner)
    except Exception as exc:
        words = _in_words(exc)
    complain(words)
    line = health_line(EXIT_UNKNOWN, [], f"accelctl health: {words}") if options.command == "health" else ""
    return Answer(EXIT_UNKNOWN, line)


def _in_words(exc: Exception) -> str:
    return f"{type(exc).__name__}: {exc}".rstrip(": ")


def _open_streams() -> None:
    """Open what the caller closed, on nothing: a file would get its number, and be taken for the stream."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            try:
                os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
            except OSError:
                pass  # nothing is better then either


def _all_answered(observation: dict) -> int:
    """Return the exit status of a look at the cards: that two numbers are both not known makes them not equal.

    Nor do equal numbers say that all answered: a card that answers without its address makes up for a silent one.
    """
    count = observation["count"]
    all_did = count is not None and count == observation["bus_count"] and not observation["unanswered"]
    return EXIT_OK if all_did else EXIT_UNKNOWN


def _options(argv: list[str] | None) -> argparse.Namespace:
    parser = _Parser(
        prog="accelctl",
        description="What this node knows of its accelerator cards.",
        epilog="\n".join(f"{name:9} {about}" for name, about in COMMANDS.items())
        + "\n\nexit status: 0 ok, 1 warning, 2 critical, 3 unknown or a wrong call; 130, 143 interrupted",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=list(COMMANDS), metavar="COMMAND", help=", ".join(COMMANDS))
    parser.add_argument(
        "subject", nargs="?", metavar="WHAT", help="explain: a check; locate: a slot, serial or address"
    )
    about = {name: ", ".join(commands) for name, commands in TAKEN_BY.items()}
    parser.add_argument("--json", action="store_true", help=f"{about['json']}: print JSON, as the modules return it")
    parser.add_argument(
        "--timeout", type=_seconds, metavar="SECONDS", help="time limit of each vendor command (not for explain)"
    )
    parser.add_argument(
        "--limit", type=_seconds, metavar="SECONDS", help="time limit of all vendor commands together (not for explain)"
    )
    parser.add_argument("--keep", action="store_true", help=f"{about['keep']}: keep the readings of working links")
    parser.add_argument(
        "--language",
        choices=LANGUAGES,
        help=f"{about['language']}: of messages and hints; that of the site when left out",
    )
    parser.add_argument("--off", action="store_true", help=f"{about['off']}: turn the light off")
    parser.add_argument("--node-file", default=NODE_FILE, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    takes = options.command in ("explain", "locate")
    if takes and not options.subject:
        parser.error(f"{options.command} needs {'a check' if options.command == 'explain' else 'a card'}")
    if options.subject and not takes:
        parser.error(f"{options.command} takes no {options.subject!r}")
    for name, commands in TAKEN_BY.items():
        if getattr(options, name) not in (None, False) and options.command not in commands:
            parser.error(f"{options.command} takes no --{name} (only {about[name]})")
    return options


def _run(options: argparse.Namespace, runner: Runner | None) -> Answer:
    problem, absent = "", False
    try:
        node = load_node(options.node_file)
    except NodeFileError as exc:
        import platform

        problem, absent = str(exc), exc.absent
        # Looking needs no declaration; judging does.
        node = {"host": platform.node(), "records_dir": "", "declared": {}, "language": LANGUAGES[0]}
    node["language"] = options.language or node["language"]
    if options.command == "explain":
        return _explain(options.subject, node["language"])
    judges = options.command in ("check", "health")
    if problem and (judges or not absent):
        complain(problem)
    if problem and judges:
        line = health_line(EXIT_UNKNOWN, [], problem) if options.command == "health" else ""
        return Answer(EXIT_UNKNOWN, line, verdict=True)
    limit = limit_of(options, node)
    with _bounded(options.command, limit, runner is None):
        timeout = min(_timeout(options, node), limit * SHARE)
        return _ask(options, node, timeout, runner or BoundedRunner(limit), declares=not problem)


def _timeout(options: argparse.Namespace, node: dict) -> float:
    return options.timeout or to_float(node["declared"].get("cluster_query_timeout_seconds")) or 60.0


def limit_of(options: argparse.Namespace, node: dict) -> float:
    """Return how many seconds all vendor commands may take together."""
    hanging = COMMANDS_THAT_HANG * _timeout(options, node)
    return options.limit or LIMIT_SECONDS.get(options.command) or max(LEAST_SECONDS, hanging)


@contextmanager
def _bounded(command: str, limit: float, real: bool) -> Iterator[None]:
    """End the whole program a little after its limit: the read of a file of a sick device can hang as well."""
    if not real:
        yield
        return
    decided = threading.Lock()

    def end() -> None:
        if not decided.acquire(blocking=False):
            return
        try:
            RUNNING.stop(EXIT_UNKNOWN)
            words = f"{command}: no answer within {limit:g} s"
            if command == "health":
                _write_at_once(1, f"UNKNOWN accelctl {words}\n")
            _write_at_once(2, f"accelctl: {words}\n")
        finally:
            os._exit(EXIT_UNKNOWN)

    watch = threading.Timer(min(limit + GRACE, threading.TIMEOUT_MAX), end)
    watch.daemon = True
    watch.start()
    try:
        yield
    finally:
        watch.cancel()
        decided.acquire()  # what has just begun to end the program does so, and nothing else is said


def _write_at_once(number: int, text: str) -> None:
    """Write to a stream that may be one that nobody reads, or that a thread which hangs holds."""
    try:
        if select.select([], [number], [], 0)[1]:
            os.write(number, text.encode())
    except OSError:
        pass


def _ask(options: argparse.Namespace, node: dict, timeout: float, runner: Runner, declares: bool) -> Answer:
    if options.command == "locate":
        return _locate(options.subject, not options.off, node, timeout, runner)
    started = time.monotonic()
    observation = observe(node, timeout, runner)
    seconds = time.monotonic() - started
    if options.command == "devices":
        text = json.dumps(observation, indent=2, sort_keys=True) if options.json else show_devices(observation)
        return Answer(_all_answered(observation), text)
    if options.command == "slots":
        return _slots(options, node, observation)
    findings: list[dict] = []
    trouble = ""
    if declares:
        findings, trouble = check(node, observation, options.keep)
    status = exit_status(findings)
    if trouble:
        complain(trouble)
        status = status if status == EXIT_CRITICAL else EXIT_UNKNOWN
    if options.command == "metrics":
        from .metrics import render
        from .model import to_int

        declared = to_int(node["declared"].get("cluster_accelerator_count"))
        # What is wrong is in the metrics; a collector throws away what a program that failed has printed.
        return Answer(EXIT_OK, render(observation, status, findings, declared, round(seconds, 3)).rstrip("\n"))
    if options.json:
        text = json.dumps({"host": node["host"], "status": status, "findings": findings}, indent=2, sort_keys=True)
    elif options.command == "health":
        text = health_line(status, findings, trouble, node["language"])
    else:
        text = show_findings(findings, node["language"])
    return Answer(status, text, verdict=True)


def _slots(options: argparse.Namespace, node: dict, observation: dict) -> Answer:
    from . import record, slots

    try:
        # The record on the node still knows the serial of a card that is lost now.
        path = os.path.join(node["records_dir"], "slots.json")
        known = record.load(path, slots.problems) if node["records_dir"] else None
    except record.RecordError as exc:
        complain(str(exc))
        return Answer(EXIT_UNKNOWN)
    body = slots.build_record(observation, node["host"], record.now_utc(), known)
    text = json.dumps(body, indent=2, sort_keys=True) if options.json else show_devices(observation)
    return Answer(_all_answered(observation), text)


def _explain(check_id: str, language: str) -> Answer:
    from .explain import explain, no_such_check

    text = explain(check_id, language)
    if text is None:
        complain(no_such_check(check_id, language))
        return Answer(EXIT_UNKNOWN)
    return Answer(EXIT_OK, text)


def _locate(word: str, on: bool, node: dict, timeout: float, runner: Runner) -> Answer:
    """Turn the light at a card on or off; unknown where there is none, or where it is not as it should be."""
    from . import locate, record, slots

    # An address needs no vendor tool, which may hang over the very card that is looked for.
    if locate.is_address(word):
        observation = locate.on_bus(runner, declared_vendors=node["declared"].get(_VENDORS) or None)
    else:
        observation = observe(node, timeout, runner)
    known = None
    try:
        # A card that is gone from the bus is in the record only.
        path = os.path.join(node["records_dir"], "slots.json")
        known = record.load(path, slots.problems) if node["records_dir"] else None
    except record.RecordError as exc:
        complain(str(exc))
    if known and known["host"] != node["host"]:
        known = None
    done, failed = locate.answer(runner, word, on, observation, known, node["language"])
    for problem in failed:
        complain(problem)
    return Answer(EXIT_UNKNOWN if failed else EXIT_OK, "\n".join(done))
