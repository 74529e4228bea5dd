# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""What vendor tools that list all their cards in one answer have in common: how they are asked, and how text is split.

``ask`` tries the forms of a tool in their order until one can be read; ``ask_each`` asks for each card that is missing
on its own, all at the same time, so that one sick card hides no other. The rest are pure: text in, values out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from . import pci, text
from .model import TOOL_ABSENT, TOOL_FAILED, TOOL_HUNG, TOOL_OK, TOOL_UNREADABLE, Device, Driver, Health, Tool
from .parallel import command_of, run_all
from .runner import Result
from .vendors.base import Answer, Unreadable

# GT/s of the PCIe generations 1 to 7.
_GENERATIONS = (2.5, 5.0, 8.0, 16.0, 32.0, 64.0, 128.0)
# A document starts a line. "[WARN" is text, an opening bracket before a value is data.
_DOCUMENT = re.compile(r"^[\[{](?=\s*(?:[\"\[{}\]\d]|$))", re.MULTILINE)
_DRM_NODE = re.compile(r"/(?:card|renderD)\d+$")
_PROCESS = re.compile(r"^(?P<number>\d{1,9})\s+(?P<pid>\d{1,9})\s+(?P<name>\S.*?)\s+(?P<memory>\d{1,9})\s*(?:MiB|MB)?$")
# What a line of XML, of a table, of JSON begins with.
_DATA = ("<", "|", "+", "{", "}", '"')
_PASSED_THROUGH = ("vfio-pci", "pci-stub")
_BADNESS = ("ok", "unknown", "warning", "critical")

Reasons = Iterable[tuple[str, str]]


@dataclass
class Reply:
    """What one answer holds: ``attached`` is the tool's own count of cards, ``notes`` text around the data."""

    devices: list[Device] = field(default_factory=list)
    attached: int | None = None
    tool_version: str | None = None
    driver_version: str | None = None
    notes: str = ""


@dataclass
class Form:
    """One way to ask for all cards: the arguments of the tool, and what reads the answer or raises Unreadable."""

    arguments: tuple[str, ...]
    read: Callable[[str], Reply]


def address(word: object) -> str | None:
    """Return the canonical PCI address; None where the tool printed none or damaged one."""
    try:
        return pci.normalise(str(word)) if word is not None else None
    except ValueError:
        return None


def generation_gts(value: object) -> float | None:
    """Return the speed of a PCIe generation ("4", 4); None for what is no generation (-1, N/A)."""
    found = text.integer(value)
    return _GENERATIONS[found - 1] if found is not None and 0 < found <= len(_GENERATIONS) else None


def json_documents(output: str) -> tuple[list, str]:
    """Return the JSON documents of an answer and the text around them; Unreadable when one is cut off or none is."""
    decoder = json.JSONDecoder()
    output = text.whole_characters(output)
    documents: list = []
    around = []
    position = 0
    for start in _DOCUMENT.finditer(output):
        if start.start() < position:
            continue  # a line within the document before
        try:
            document, end = decoder.raw_decode(output, start.start())
        except (ValueError, RecursionError) as exc:
            raise Unreadable(f"the JSON is damaged: {exc}") from exc
        documents.append(document)
        around.append(output[position : start.start()])
        position = end
    if not documents:
        raise Unreadable("no JSON in the answer")
    around.append(output[position:])
    return documents, "\n".join(part.strip() for part in around if part.strip())


def entry(values: object, *path: str) -> object:
    """Return what stands at ``path`` of nested dictionaries, None where anything on the way is missing or none."""
    for key in path:
        values = values.get(key) if isinstance(values, dict) else None
    return None if isinstance(values, (dict, list)) else values


def csv_rows(lines: Iterable[str]) -> list[list[str]]:
    """Return the rows of CSV lines; Unreadable for what the reader refuses (NUL, an endless field)."""
    # Imported when needed: most tools speak something else.
    import csv

    try:
        return list(csv.reader(lines, skipinitialspace=True))
    except csv.Error as exc:
        raise Unreadable(f"the CSV is damaged: {exc}") from exc


def rows(output: str) -> list[list[str]]:
    """Return the cells of each ``| a | b |`` line, stripped; borders are left out."""
    found = []
    for line in text.plain(output).splitlines():
        line = line.strip()
        if len(line) > 1 and line[0] == line[-1] == "|" and line.strip("|-=+ "):
            found.append([cell.strip() for cell in line[1:-1].split("|")])
    return found


def process(words: str) -> tuple[int, dict] | None:
    """Return the card's number and the process of a row ``number pid name memory``; None for "no process found"."""
    found = _PROCESS.match(words.strip())
    if not found:
        return None
    memory = text.size_bytes(found["memory"], "MiB")
    return int(found["number"]), {"pid": int(found["pid"]), "name": text.clean(found["name"]), "memory_bytes": memory}


def sick(fields: Iterable[tuple[str, object]]) -> list[tuple[str, str]]:
    """Return (state, reason) for the fields that are supported but can't be read now, by what stands there."""
    words: dict[str, list[str]] = {}
    for name, value in fields:
        if text.state_of(value) == text.UNREADABLE:
            words.setdefault(str(value).strip(), []).append(name)
    return [
        ("critical" if "reset" in word.lower() else "warning", f"{word}: {', '.join(dict.fromkeys(names))}")
        for word, names in words.items()
    ]


def worst(found: list[tuple[str, str]], proofs: int) -> Health:
    """Return the worst of (state, reason) pairs; without any, ``ok`` needs a value that proves it."""
    if found:
        return Health(
            max((state for state, _reason in found), key=_BADNESS.index), [reason for _state, reason in found]
        )
    return Health("ok" if proofs else "unknown")


def reason_of(said: str, reasons: Reasons) -> str | None:
    """Return the word for the first of ``reasons`` (lower-case text -> word) that is said."""
    low = said.lower()
    return next((word for mark, word in reasons if mark in low), None)


def note_failure(answer: Answer, tool: Tool, result: Result, reasons: Reasons, why: str = "") -> None:
    """Set the state of a tool of whose answer nothing can be used, and keep what it said."""
    command = command_of(result)
    tool.rc = result.rc
    tool.excerpt = text.excerpt(tool.excerpt, result.stdout, result.stderr)
    if result.hung:
        tool.state = TOOL_HUNG
        answer.errors.append(f"{command}: no answer in time")
        return
    # Words in the fields of a damaged answer are not the tool's words.
    speech = [line for line in result.stdout.splitlines() if not line.strip().startswith(_DATA)]
    tool.reason = tool.reason or reason_of("\n".join([*speech, result.stderr, why]), reasons)
    if tool.reason == "no_devices":
        # A complete answer: the tool works and has no card (also where a container was given none).
        tool.state, answer.count = TOOL_OK, 0
        return
    tool.state = TOOL_FAILED if tool.reason or result.rc else TOOL_UNREADABLE
    said = text.excerpt(result.stderr, limit=300) or why or text.excerpt(result.stdout, limit=300)
    answer.errors.append(f"{command}: {said or f'rc {result.rc}, nothing printed'}")


def ask(
    runner,
    program: list[str],
    forms: list[Form],
    tool: Tool,
    answer: Answer,
    timeout: float,
    reasons: Reasons,
) -> None:
    """Ask for all cards, in one form after the other until one can be read.

    Sets the state of ``tool`` and, when the answer is complete, ``answer.count``. What a form that failed had said
    stays in the excerpt and the errors. A tool that hangs or names its cause is not asked in another form.
    """
    for form in forms:
        result = runner.run([*program, *form.arguments], timeout)
        tool.command, tool.rc = command_of(result), result.rc
        if result.hung:
            note_failure(answer, tool, result, reasons)
            return
        try:
            reply = form.read(result.stdout)
        except Unreadable as exc:
            note_failure(answer, tool, result, reasons, str(exc))
            if tool.reason:
                return
            continue
        take(answer, tool, reply, result)
        return


def take(answer: Answer, tool: Tool, reply: Reply, result: Result) -> None:
    """Take an answer for all cards; it is complete when it describes as many as the tool says there are."""
    tool.state = TOOL_OK
    tool.version = tool.version or reply.tool_version
    answer.devices.extend(reply.devices)
    around = text.excerpt(reply.notes, result.stderr)
    if around:
        tool.excerpt = text.excerpt(tool.excerpt, around)
        answer.errors.append(f"{command_of(result)}: {around}")
    if reply.attached is not None and reply.attached > len(reply.devices):
        tool.state = TOOL_FAILED
        answer.errors.append(
            f"{command_of(result)}: {reply.attached} cards are attached, {len(reply.devices)} described"
        )
        return
    answer.count = len(answer.devices)
    if not answer.devices:
        tool.reason = "no_devices"


def ask_each(
    runner,
    program: list[str],
    commands: dict[str | int, tuple[str, ...]],
    read: Callable[[str], Reply],
    known: list[str],
    tool: Tool,
    answer: Answer,
    timeout: float,
) -> None:
    """Ask for cards on their own, all at the same time; ``commands`` are arguments by address, or by the tool's number.

    A card that hangs is put into ``answer.hung``: by its address, and where only its number is known by the address
    that no other card claims, where there is but one way to put the numbers to the addresses of the bus (``known``).
    """
    results = run_all(runner, [[*program, *arguments] for arguments in commands.values()], timeout)
    numbers = []
    for key, result in zip(commands, results):
        if result.hung:
            tool.state = TOOL_HUNG
            answer.errors.append(f"{command_of(result)}: no answer in time")
            tool.excerpt = text.excerpt(tool.excerpt, f"{command_of(result)}: no answer in time")
            if isinstance(key, str):
                answer.hung.append(key)
            else:
                numbers.append(key)
            continue
        try:
            reply = read(result.stdout)
        except Unreadable as exc:
            said = text.excerpt(result.stderr, limit=300) or str(exc)
            answer.errors.append(f"{command_of(result)}: {said}")
            continue
        tool.version = tool.version or reply.tool_version
        for device in reply.devices:
            if isinstance(key, int):
                device.index = key
            elif device.pci_address is None and len(reply.devices) == 1:
                device.pci_address = key
            _add(answer, device)
    left = [one for one in known if one not in {device.pci_address for device in answer.devices}]
    if numbers and len(numbers) == len(left):
        answer.hung.extend(left)
    if answer.devices:
        answer.count = len(answer.devices)
        if tool.state in (TOOL_FAILED, TOOL_UNREADABLE) and answer.count >= len(known):
            tool.state = TOOL_OK  # each alone made up for the answer for all; its text stays as evidence
    answer.devices.sort(key=lambda device: (device.index is None, device.index or 0))


def _add(answer: Answer, device: Device) -> None:
    """Add a device that has not answered yet."""
    for other in answer.devices:
        if device.pci_address is not None and device.pci_address == other.pci_address:
            return
        if device.pci_address is None and device.index is not None and device.index == other.index:
            return
    answer.devices.append(device)


def not_ours(tool: Tool, answer: Answer, functions: list[pci.Function]) -> None:
    """Take a program that can't be read for another vendor's of the same name, where no card of ours is there."""
    if not functions and tool.state in (TOOL_FAILED, TOOL_UNREADABLE) and tool.reason is None:
        tool.state, tool.rc = TOOL_ABSENT, None
        answer.errors.clear()


def expected(functions: list[pci.Function]) -> list[str]:
    """Return the addresses of the cards that the tool should know; one that is given to a guest is the guest's."""
    return [function.address for function in functions if function.driver not in _PASSED_THROUGH]


def missing(functions: list[pci.Function], answer: Answer) -> list[str]:
    """Return the addresses of the cards that should have answered and have not."""
    known = {device.pci_address for device in answer.devices}
    return [place for place in expected(functions) if place not in known]


def unasked_numbers(functions: list[pci.Function], answer: Answer) -> list[int]:
    """Return the numbers that a tool must give to the cards on the bus and under which none has answered yet."""
    known = {device.index for device in answer.devices}
    numbers = range(len(expected(functions))) if missing(functions, answer) else ()
    return [number for number in numbers if number not in known]


def driver_of(runner, vendor: str, modules: tuple[str, ...], answer: Answer) -> Driver:
    """Return what the kernel tells of its module; where that tells no version, the one that the tool tells."""
    loaded = [module for module in modules if runner.glob(f"/sys/module/{module}")]
    told = (text.clean(runner.read(f"/sys/module/{module}/version")) for module in loaded)
    version = next((word for word in told if word), None)
    version = version or next((device.driver_version for device in answer.devices if device.driver_version), None)
    return Driver(vendor, kernel_version=version, loaded=bool(loaded))


def drm_nodes(runner, device: Device) -> list[str]:
    """Return the DRM nodes of a card that exist on this host."""
    if device.pci_address is None:
        return []
    paths = runner.glob(f"/sys/bus/pci/devices/{device.pci_address}/drm/*")
    nodes = ["/dev/dri/" + path.rpartition("/")[2] for path in paths if _DRM_NODE.search(path)]
    return [node for node in nodes if runner.glob(node)]
