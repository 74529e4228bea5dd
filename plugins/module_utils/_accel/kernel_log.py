# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""The kernel log of this boot: what it says of accelerators, what each code asks for, what follows from what.

``parse`` is pure. Lines may come from ``journalctl -k -b`` (short-iso, short, json), ``dmesg`` (with or without
``-T``) or ``/dev/kmsg``. Only the last boot in them counts: old lines keep a repaired node drained for ever.

An event is ``{"at", "vendor", "code", "pci_address", "pid", "message", "count", "cause"}``. ``code`` is a word and a
number as people say it ("xid 79", "sxid 20034", "ras uncorrectable", "aer fatal"). ``cause`` is the code of the event
that this one follows from, None for one that stands for itself. ``at`` is the time as the log has it.

Sources of the actions: NVIDIA, "XID Errors" (docs.nvidia.com/deploy/xid-errors) and "GPU Memory Error Management";
the messages of the Linux driver amdgpu (amdgpu_ras.c, amdgpu_device.c, amdgpu_job.c) and of the kernel's AER
(drivers/pci/pcie/aer.c); the fault codes of Ascend MindCluster.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from . import pci, text

# What an event asks for, the worst last. ``ignore``: of an application or for information, no fault of the hardware.
ACTIONS = ("ignore", "watch", "reset", "replace")

LINES = 50000
EVENTS = 200
# The kernel cuts its messages off there (LOG_LINE_MAX, kernel/printk/printk.c); what is longer is no line of its log.
LONGEST = 1024
COMMAND = ("journalctl", "-k", "-b", "-o", "short-iso", "--no-pager", "-q", "-n", str(LINES))
CONTAINER_FILE = "/run/systemd/container"
_WITHIN_SECONDS = 120.0


@dataclass(frozen=True)
class Meaning:
    """What a code asks for, and the check that shows the same fact where the card still tells it."""

    action: str
    check: str | None
    words: str


_MEMORY, _ECC, _COUNT, _PORTS = "device.memory_repair", "device.ecc", "device.count", "device.ports"

# The number alone decides here; for the codes of _BY_TEXT the text does. Not listed: ``watch``.
MEANINGS = {
    "xid 13": Meaning("ignore", None, "graphics engine exception of an application"),
    "xid 31": Meaning("ignore", None, "memory page fault of an application"),
    "xid 32": Meaning("watch", None, "invalid or corrupted push buffer stream"),
    "xid 38": Meaning("reset", None, "driver firmware error"),
    "xid 43": Meaning("ignore", None, "an application's channel was stopped after its own error"),
    "xid 45": Meaning("ignore", None, "channels were cleaned up after an earlier error or the end of a process"),
    "xid 46": Meaning("reset", None, "the GPU stopped processing"),
    "xid 48": Meaning("reset", _ECC, "double-bit memory error"),
    "xid 61": Meaning("reset", None, "internal micro-controller breakpoint"),
    "xid 62": Meaning("reset", None, "internal micro-controller halt"),
    "xid 63": Meaning("reset", _MEMORY, "a page or row is marked for repair, which takes effect after a reset"),
    "xid 64": Meaning("replace", _MEMORY, "memory repair failed"),
    "xid 68": Meaning("watch", None, "video processor exception"),
    "xid 69": Meaning("ignore", None, "graphics engine class error of an application"),
    "xid 74": Meaning("reset", _PORTS, "NVLink error"),
    "xid 79": Meaning("reset", _COUNT, "the GPU has fallen off the bus"),
    "xid 92": Meaning("watch", _ECC, "high rate of corrected memory errors"),
    "xid 94": Meaning("watch", _ECC, "contained memory error: only the application that hit it ended"),
    "xid 95": Meaning("reset", _ECC, "uncontained memory error"),
    "xid 109": Meaning("reset", None, "context switch timeout"),
    "xid 110": Meaning("reset", None, "security fault"),
    "xid 119": Meaning("reset", None, "the GPU's system processor does not answer (GSP RPC timeout)"),
    "xid 120": Meaning("reset", None, "error of the GPU's system processor (GSP)"),
    "xid 121": Meaning("watch", None, "corrected error of the chip-to-chip link"),
    "xid 137": Meaning("ignore", None, "NVLink privilege error, from a fault of an application on a peer"),
    "xid 140": Meaning("reset", _ECC, "unrecovered memory error"),
    "xid 143": Meaning("reset", None, "initialisation of the GPU failed"),
    "xid 171": Meaning("reset", _ECC, "uncorrected memory error (DRAM)"),
    "xid 172": Meaning("reset", _ECC, "uncorrected memory error (SRAM)"),
    "ras uncorrectable": Meaning("reset", _ECC, "uncorrectable memory errors"),
    "ras deferred": Meaning("watch", None, "deferred memory errors"),
    "ras correctable": Meaning("ignore", None, "corrected memory errors; device.ecc judges their number"),
    "ras poison": Meaning("reset", _ECC, "poisoned data was consumed"),
    "ras threshold": Meaning("replace", _MEMORY, "more memory pages are bad than the vendor allows"),
    "gpu reset": Meaning("watch", None, "the driver reset the GPU"),
    "gpu reset failed": Meaning("reset", None, "the driver could not reset the GPU"),
    "gpu init failed": Meaning("reset", None, "initialisation of the GPU failed"),
    "ring timeout": Meaning("watch", None, "a job did not end in time"),
    "bus lost": Meaning("reset", _COUNT, "the GPU has fallen off the bus"),
    # The vendor starts the job anew after a multi-bit error; the memory it came from is still in use then. Each is told
    # by two numbers (event and black box of the driver, dms_event.c). Other codes of this vendor: ascend_codes.py.
    "ascend 0x80e01801": Meaning("reset", _ECC, "multi-bit error of the on-chip memory"),
    "ascend 0xa8028802": Meaning("reset", _ECC, "multi-bit error of the on-chip memory"),
    "ascend 0x80e18401": Meaning("ignore", _MEMORY, "rows of the on-chip memory are isolated"),
    "ascend 0xa4028801": Meaning("ignore", _MEMORY, "rows of the on-chip memory are isolated"),
    "ascend 0x80e18402": Meaning("replace", _MEMORY, "64 rows of the on-chip memory are isolated"),
    "ascend 0xa8028801": Meaning("replace", _MEMORY, "64 rows of the on-chip memory are isolated"),
    "aer corrected": Meaning("watch", None, "corrected PCIe errors"),
    "aer nonfatal": Meaning("watch", None, "uncorrected PCIe errors, not fatal"),
    "aer fatal": Meaning("reset", None, "fatal PCIe error"),
}
# What the text says goes before the number: NVLink 144 to 150 are Nonfatal or Fatal, switches say the same.
_NVLINK5 = {f"xid {number}" for number in range(144, 151)}
_UNKNOWN_CODE = Meaning("watch", None, "not in the table")

# Codes of these vendors are numbers; the other codes are the words of MEANINGS.
_CODE_FORM = re.compile(r"^(?:xid (?:0|[1-9]\d{0,4})|sxid (?:0|[1-9]\d{0,5})|ascend 0x[0-9a-f]{8})$")
CODE_WORDS = tuple(code for code in MEANINGS if not _CODE_FORM.match(code))
CODE_FORM = f"xid 79, sxid 20034, ascend 0x80e01801, or one of {', '.join(CODE_WORDS)}"

# Codes that follow from others: the code, and what may have caused it (None: any other event of the card).
_FOLLOWS: dict[str, tuple[str, ...] | None] = {
    "xid 45": None,
    "xid 43": None,
    "xid 154": None,
    "gpu reset": ("ring timeout", "ras uncorrectable", "ras poison"),
    "gpu reset failed": ("ring timeout", "ras uncorrectable", "ras poison"),
    "ras poison": ("ras uncorrectable",),
    "xid 48": ("xid 79",),
    "xid 63": ("xid 48", "xid 94", "xid 95", "xid 171"),
    "xid 94": ("xid 48", "xid 171", "xid 172"),
    "xid 95": ("xid 48", "xid 171", "xid 172"),
    "xid 119": ("xid 79",),
    "xid 120": ("xid 79",),
}

# One cheap look at each line; everything below is for those that pass.
_RELEVANT = re.compile(
    r"NVRM|SXid|fallen off|amdgpu|AER:|PCIe Bus Error|ascend|davinci|devdrv|Linux version|-- Boot|^\{", re.IGNORECASE
)
_BOOT = re.compile(r"-- Boot [0-9a-f]|(?:\bkernel: |\] |;|^)Linux version \d")
_ISO = re.compile(r"^(\d{4}-\d\d-\d\dT[\d:]{8}(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?) \S+ kernel: (.*)$")
# Compiled when they are used: a healthy host has lines of one vendor's driver at most.
_SHORT = r"^([A-Z][a-z]{2} [ \d]\d [\d:]{8}) \S+ kernel: (.*)$"
_DMESG = r"^(?:<\d+>)?\[([^\]]+)\]\s(.*)$"
# No more digits than a time has: int() refuses thousands of them, and a digit of another alphabet is none.
_KMSG = r"^[0-9]+,[0-9]+,([0-9]{1,20}),[^;]*;(.*)$"

_ADDRESS = r"(?P<address>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-7])?)"
_XID = rf"(?i)NVRM: Xid \(PCI:{_ADDRESS}\): (?P<number>\d{{1,5}})(?:,\s*(?P<rest>.*))?$"
_SXID = rf"(?i)nvswitch\d*: SXid \(PCI:{_ADDRESS}\): (?P<number>\d{{1,6}}), (?P<rest>(?:Non-fatal|Fatal).*)$"
_GPU_IS = rf"(?i)NVRM: (?:The NVIDIA )?GPU (?:at )?(?:PCI:)?{_ADDRESS}"
_PID = r"\bpid=['`<]*(\d{1,9})"
_CAUSED = r"(?i)caused by (?:a )?previous xid (\d{1,5})"
_AMD = rf"(?i)amdgpu {_ADDRESS}: (?P<rest>.*)$"
_AMD_CODES = (
    (r"(?i)\b[1-9]\d* (?:new )?uncorrectable hardware errors detected", "ras uncorrectable"),
    (r"(?i)\b[1-9]\d* (?:new )?deferred hardware errors detected", "ras deferred"),
    (r"(?i)\b[1-9]\d* (?:new )?correctable hardware errors detected", "ras correctable"),
    (r"(?i)poison (?:is )?consum", "ras poison"),
    (r"(?i)exceeds? (?:the )?(?:bad page )?threshold|bad page threshold.*exceed", "ras threshold"),
    (r"(?i)GPU reset end with ret = -|GPU reset.*fail", "gpu reset failed"),
    (r"(?i)GPU reset begin", "gpu reset"),
    (r"(?i)\bring \S+ timeout", "ring timeout"),
    (r"(?i)device lost from bus", "bus lost"),
    (r"(?i)Fatal error during GPU init|hw_init of IP block .* failed", "gpu init failed"),
)
_KIND = r"(?P<kind>Correct\w+|Uncorrect\w+ \((?:Non-)?Fatal\))"
_AER_RECEIVED = rf"(?i)AER: (?:Multiple )?{_KIND} error (?:message )?received(?: from)?:? {_ADDRESS}"
_AER_DEVICE = rf"(?i)\b{_ADDRESS}: (?:AER: )?PCIe Bus Error: severity={_KIND}"
# The driver's fault codes are eight hexadecimal digits that begin with 8 ("0x80e01801").
_ASCEND = r"(?i)(?:ascend|davinci|devdrv).*?\b(?:error|fault|event)[ _]?(?:code|id)\W{1,4}(?:0x)?(8[0-9a-f]{7})\b"
_FATAL = r"(?i)(?<!non)(?<!non-)\bfatal"


def _split(line: str) -> tuple[str | None, str]:
    """Return the time of a line as it stands there, and its message."""
    if line.startswith("{"):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            return None, ""
        message = entry.get("MESSAGE")
        if isinstance(message, list):  # bytes that are no UTF-8
            message = bytes(one for one in message if isinstance(one, int) and 0 <= one < 256).decode(
                "utf-8", "replace"
            )
        stamp = entry.get("__REALTIME_TIMESTAMP") or entry.get("_SOURCE_REALTIME_TIMESTAMP")
        at = f"@{int(stamp) / 1e6:.3f}" if re.fullmatch("[0-9]{1,20}", str(stamp or "")) else None
        return at, str(message or "")
    for form in (_ISO, _SHORT, _DMESG):
        found = re.match(form, line)
        if found:
            return found[1].strip(), found[2]
    found = re.match(_KMSG, line)
    if found:
        return f"{int(found[1]) / 1e6:.6f}", found[2]
    return None, line


def _seconds(at: str | None) -> float | None:
    """Return a time as seconds, on whatever clock the log has; None where it is no number or ISO time."""
    if at is None:
        return None
    if re.fullmatch(r"@?[0-9]{1,20}(?:\.[0-9]+)?", at):
        return float(at.lstrip("@"))
    from datetime import datetime

    word = re.sub(r"([+-]\d\d)(\d\d)$", r"\1:\2", at.replace("Z", "+00:00").replace(",", "."))
    try:
        return datetime.fromisoformat(word).timestamp()
    except (ValueError, OverflowError):
        return None


def parse(output: str) -> list[dict]:
    """Return the events of the last boot in a kernel log, in their order, equal ones put together.

    At most EVENTS of each action: those that came first are causes, so the last are left out, and a flood of one
    application's errors hides no fault of a card.
    """
    events: list[dict] = []
    by_key: dict[tuple, dict] = {}
    kept = dict.fromkeys(ACTIONS, 0)
    gpu: str | None = None
    for raw in output.splitlines():
        if not _RELEVANT.search(raw):
            continue
        at, message = _split(raw)
        if _BOOT.search(raw) or message.startswith("Linux version "):
            events, by_key, gpu, kept = [], {}, None, dict.fromkeys(ACTIONS, 0)
            continue
        message = message[:LONGEST]
        named = re.search(_GPU_IS, message) if "gpu" in message.lower() else None
        gpu = _address(named["address"]) if named else gpu
        event = _event(message, gpu)
        if event is None:
            continue
        action = _tone(event)
        key = (event["code"], event["pci_address"], event["pid"], action)
        known = by_key.get(key)
        if known:
            known["count"] += 1
        elif kept[action] < EVENTS:
            event["at"] = at
            kept[action] += 1
            by_key[key] = event
            events.append(event)
    _attribute(events)
    return events


def _tone(event: dict) -> str:
    """Return what tells two events of one code apart: how bad the text says that it is."""
    return meaning(event).action


def _event(message: str, gpu: str | None) -> dict | None:
    """Return the event of one message, None for one that says nothing of these devices."""
    low = message.lower()
    found = re.search(_XID, message) if "xid" in low else None
    if found:
        rest = found["rest"] or ""
        pid = re.search(_PID, rest)
        return _made("nvidia", f"xid {int(found['number'])}", found["address"], message, pid[1] if pid else None)
    found = re.search(_SXID, message) if "sxid" in low else None
    if found:
        return _made("nvidia", f"sxid {int(found['number'])}", found["address"], message)
    if "fallen off the bus" in low and ("nvrm" in low or "nvidia" in low):
        # The driver may say it without a number, over several lines of which only the first names the card.
        named = re.search(_GPU_IS, message)
        return _made("nvidia", "xid 79", named["address"] if named else gpu, message)
    found = re.search(_AMD, message) if "amdgpu" in low else None
    if found:
        code = next((word for pattern, word in _AMD_CODES if re.search(pattern, found["rest"])), None)
        if code:
            return _made("amd", code, found["address"], message)
    found = re.search(_AER_RECEIVED, message) if "aer:" in low else None
    if not found and "pcie bus error" in low:
        found = re.search(_AER_DEVICE, message)
    if found:
        kind = found["kind"].lower()
        code = "corrected" if kind.startswith("correct") else "nonfatal" if "non-fatal" in kind else "fatal"
        return _made("pci", f"aer {code}", found["address"], message)
    found = re.search(_ASCEND, message) if any(word in low for word in ("ascend", "davinci", "devdrv")) else None
    if found:
        place = re.search(_ADDRESS, message, re.IGNORECASE)
        return _made("ascend", f"ascend 0x{found[1].lower()}", place["address"] if place else None, message)
    return None


def _made(vendor: str, code: str, address: str | None, message: str, pid: str | None = None) -> dict:
    return {
        "at": None,
        "vendor": vendor,
        "code": code,
        "pci_address": _address(address),
        "pid": int(pid) if pid else None,
        "message": text.excerpt(message, limit=300),
        "count": 1,
        "cause": None,
    }


def _address(word: str | None) -> str | None:
    """Return the canonical address; a Xid line has no function ("PCI:0000:97:00"), which then is the first."""
    if not word:
        return None
    try:
        return pci.normalise(word if "." in word else f"{word}.0")
    except ValueError:
        return None


def _attribute(events: list[dict]) -> None:
    """Name the cause of each event that follows from another one of the same card."""
    for number, event in enumerate(events):
        told = re.search(_CAUSED, event["message"])
        if told:
            event["cause"] = f"xid {int(told[1])}"
            continue
        if event["code"] not in _FOLLOWS:
            continue
        causes = _FOLLOWS[event["code"]]
        for other in reversed(events[:number]):
            if other["pci_address"] != event["pci_address"] or other["code"] == event["code"]:
                continue
            now, then = _seconds(event["at"]), _seconds(other["at"])
            if now is not None and then is not None and now - then > _WITHIN_SECONDS:
                continue
            if causes is None and other["code"] in _FOLLOWS and _FOLLOWS[other["code"]] is None:
                # 154 after 45 after 79: all follow from the first.
                event["cause"] = other["cause"]
            elif causes is None or other["code"] in causes:
                event["cause"] = other["cause"] or other["code"]
            if event["cause"]:
                break


def meaning(event: dict, overrides: dict | None = None) -> Meaning:
    """Return what an event asks for. ``overrides`` are actions of the site by code; they go before the table.

    A code that is not in the table is to be watched: nobody may drop what he does not know.
    """
    code, message = str(event.get("code") or ""), str(event.get("message") or "")
    known = MEANINGS.get(code) or _listed(code) or _UNKNOWN_CODE
    if code in _NVLINK5 or code.startswith("sxid "):
        action = "reset" if re.search(_FATAL, message) else "watch"
        known = Meaning(
            action, _PORTS if code in _NVLINK5 else None, "NVLink error" if code in _NVLINK5 else "NVSwitch error"
        )
    if code == "xid 154":
        # "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
        wanted = message.rpartition(" to ")[2].lower()
        known = Meaning(
            "reset" if "re" in wanted and "none" not in wanted else "ignore", None, "recovery action changed"
        )
    chosen = (overrides or {}).get(code)
    if chosen in ACTIONS:
        return Meaning(str(chosen), known.check, known.words)
    return known


def _listed(code: str) -> Meaning | None:
    """Return what the vendor's own list says of a code."""
    if not code.startswith("ascend "):
        return None
    # Imported when needed: few hosts have these cards, and fewer such a code.
    from .ascend_codes import look_up

    found = look_up(code)
    return Meaning(found[0], None, found[1]) if found else None


def is_code(code: object) -> bool:
    """Tell whether this is how events and tools name a code; numbers need not be in a table."""
    return isinstance(code, str) and (code in MEANINGS or bool(_CODE_FORM.match(code)))


def override_problem(overrides: object) -> str | None:
    """Return why the site's table can't be used, None when it can."""
    if overrides in (None, ""):
        return None
    if not isinstance(overrides, dict):
        return f"cluster_kernel_event_actions is {overrides!r}, no mapping"
    for code, action in overrides.items():
        if not is_code(code):
            return f"cluster_kernel_event_actions: {code!r} is no code; {CODE_FORM}"
        if action not in ACTIONS:
            return f"cluster_kernel_event_actions: {code}: {action!r} is none of {', '.join(ACTIONS)}"
    return None


def read(runner, timeout_seconds: float) -> tuple[dict, list[dict]]:
    """Return ``{"state", "source", "reason"}`` of the log and its events.

    ``state`` is ok, unknown, or shared: a container without a kernel log of its own sees at most that of its
    machine, whose events are not its own.
    """
    reason = "neither journalctl nor dmesg is installed"
    for command in (COMMAND, ("dmesg",)):
        if command[0] == "dmesg" and runner.read(CONTAINER_FILE) is not None:
            return {"state": "shared", "source": None, "reason": "this host is a container: it shares its kernel"}, []
        path = runner.which(command[0])
        if path is None:
            continue
        result = runner.run([path, *command[1:]], timeout_seconds)
        source = " ".join(command)
        if result.hung:
            reason = f"{source}: no answer in time"
        elif result.stdout.strip() and not result.rc:
            return {"state": "ok", "source": source, "reason": None}, parse(result.stdout)
        else:
            # A kernel that booted said something: nothing at all is no good news but a missing right or log.
            said = text.excerpt(result.stderr, limit=200) or f"rc {result.rc}, nothing printed"
            reason = f"{source}: {said}"
    return {"state": "unknown", "source": None, "reason": reason}, []
