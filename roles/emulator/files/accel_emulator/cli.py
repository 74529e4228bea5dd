# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command ``accel-emulator``: apply the state, inject faults into it, heal it. Answers are JSON."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import sys

from . import host, state

STATE = "/etc/accel/emulator.yml"
MARKER = "/etc/accel/rehearsal"


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return 0, or 1 with complaints on the error stream."""
    options = _parser().parse_args(argv)
    try:
        answer = options.run(options)
    except state.StateError as exc:
        print(exc, file=sys.stderr)
        return 1
    except OSError as exc:
        print(f"accel-emulator: {exc}", file=sys.stderr)
        return 1
    print(answer if isinstance(answer, str) else json.dumps(answer))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="accel-emulator", description="Accelerator cards of a test host.")
    commands = parser.add_subparsers(required=True)

    def command(name: str, run, text: str) -> argparse.ArgumentParser:
        one = commands.add_parser(name, help=text, description=text)
        one.set_defaults(run=run)
        return one

    one = command("apply", _apply, "bring the host to its state")
    one.add_argument("--check", action="store_true", help="only tell what would change")
    one = command("check", _check, "say what is wrong with a state file")
    one.add_argument("file")
    command("load", _load, "load the driver's module anew, in the version that is installed")
    command("show", _show, "list the cards as they show themselves now")
    command("faults", _list_faults, "list the faults that can be injected")
    for name, run, text in (
        ("inject", _inject, "add a fault to the state and apply it"),
        ("heal", _heal, "take a fault, or all, out of the state and apply it"),
    ):
        one = command(name, run, text)
        one.add_argument("--fault", default="", help=", ".join(state.FAULTS))
        one.add_argument("--slot", default="", help="slot label, its number, or the address")
        one.add_argument("--slot-b", default="", help="the other slot of cards_swapped")
        one.add_argument("--check", action="store_true", help="only tell what would change")
    return parser


def _read(path: str = STATE) -> tuple[str, dict]:
    with open(path, encoding="utf-8") as handle:
        text = handle.read()
    return text, state.load(text)


def _apply(options: argparse.Namespace) -> dict:
    return _applied(_read()[1], options.check)


def _load(_options: argparse.Namespace) -> dict:
    host.unload()
    return _applied(_read()[1], False)


def _shown(declared: dict, check: bool) -> state.Host:
    """Return the host that a state declares, with the module that is loaded."""
    vendor = state.expand(declared).vendor
    return state.expand(declared, host.loaded(vendor, state.declared_version(declared), check))


def _applied(declared: dict, check: bool) -> dict:
    state.expand(declared)
    if not os.path.exists(MARKER):
        raise OSError(f"{MARKER} is missing: this is no test host, its real cards must not be hidden")
    os.makedirs(host.RUN, exist_ok=True)
    with open(f"{host.RUN}/lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = _shown(declared, check)
        outcome = host.apply(wanted, check)
    return {
        "changed": bool(outcome.changes),
        "changes": len(outcome.changes),
        "first": outcome.changes[:5],
        "notes": outcome.notes,
        "faults": wanted.faults,
    }


def _check(options: argparse.Namespace) -> dict:
    return {"cards": len(state.expand(_read(options.file)[1]).cards)}


def _show(_options: argparse.Namespace) -> dict:
    wanted = _shown(_read()[1], True)
    return {
        "vendor": wanted.vendor,
        "driver_version": wanted.driver_version,
        "library_version": wanted.library_version,
        "driver_ready": wanted.driver_ready,
        "faults": wanted.faults,
        "cards": [
            {
                "index": card.index,
                "slot": card.slot,
                "kernel_slot": None if wanted.slot_scheme == "none" else str(card.sysfs_slot),
                "address": card.address,
                "model": card.model,
                "serial": card.serial,
                "uuid": card.uuid,
                "health": card.health,
                "lost": card.lost,
                "hung": card.hung,
                "busy": card.busy,
                "link": {
                    "speed_gts": card.speed_gts,
                    "width": card.width,
                    "max_speed_gts": card.link_speed_gts,
                    "max_width": card.link_width,
                },
            }
            for card in wanted.cards
        ],
    }


def _list_faults(_options: argparse.Namespace) -> str:
    slots = {0: "", 1: "--slot S", 2: "--slot S --slot-b T"}
    return "\n".join(f"{name:<24}{slots[count]:<22}{text}" for name, (count, text) in state.FAULTS.items())


def _inject(options: argparse.Namespace) -> dict:
    text, declared = _read()
    shown = state.expand({**declared, "faults": []})
    entry = state.make_fault(shown.vendor, shown.cards, options.fault, options.slot, options.slot_b)
    faults = list(declared.get("faults") or [])
    return _changed(text, declared, faults if entry in faults else [*faults, entry], options.check)


def _heal(options: argparse.Namespace) -> dict:
    text, declared = _read()
    faults = list(declared.get("faults") or [])
    if not options.fault:
        return _changed(text, declared, [], options.check)
    if options.slot or options.slot_b or state.FAULTS.get(options.fault, (0,))[0] == 0:
        shown = state.expand({**declared, "faults": []})
        gone = [state.make_fault(shown.vendor, shown.cards, options.fault, options.slot, options.slot_b)]
    else:
        if options.fault not in state.FAULTS:
            raise state.StateError([f"fault: {options.fault!r} is unknown; accepted: {', '.join(state.FAULTS)}"])
        gone = [one for one in faults if one["fault"] == options.fault]
    return _changed(text, declared, [one for one in faults if one not in gone], options.check)


def _changed(text: str, declared: dict, faults: list[dict], check: bool) -> dict:
    """Write the faults into the state when they differ, and apply it in any case."""
    fresh = {**declared, "faults": faults}
    state.expand(fresh)
    if faults == (declared.get("faults") or []):
        return _applied(fresh, check)
    if not check:
        with open(f"{STATE}.new", "w", encoding="utf-8") as handle:
            handle.write(state.with_faults(text, fresh))
        os.replace(f"{STATE}.new", STATE)
    return {**_applied(fresh, check), "changed": True}
