# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""How vendor tools are asked, and what their text has in common.

One bounded command is one ``question``; what comes of it is a state of the tool: absent, hung, failed (it says why it
can't), unreadable (it says something else), ok. On it stand three ways to ask:

- ``ask``: for all cards, in one form after the other until one can be read;
- ``ask_each`` and ``ask_missing``: for each card on its own, all at once, so that one sick card hides no other;
- ``ask_once``: a tool of which no way is known to ask one card alone; when it hangs, it hangs for all (``take_all``).

A vendor file gives commands and pure parsers, which raise ``Unreadable`` for what they can't prove. The rest of this
file is pure: text in, values out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from . import pci, text
from .model import (
    TOOL_ABSENT,
    TOOL_FAILED,
    TOOL_HUNG,
    TOOL_OK,
    TOOL_UNREADABLE,
    Device,
    Driver,
    Ecc,
    Health,
    Readings,
    Tool,
)
from .parallel import command_of, run_all
from .runner import Result
from .vendors.base import Answer, Unreadable

# What a tool says (a regular expression, any case) and the word of ``Tool.reason`` for it; the first that is found.
Reasons = Sequence[tuple[str, str]]

# After a vendor's own.
REASONS: Reasons = (
    (r"permission denied|operation not permitted|must be run as root|insufficient permissions", "no_permission"),
    (r"no (?:\w+ ){0,2}(?:devices?|cards?|chips?) (?:were |was )?(?:found|detected)", "no_devices"),
    (r"driver (?:is )?not (?:loaded|installed|found)|(?:load|insmod|modprobe) (?:the )?driver", "driver_not_loaded"),
)
# Stands for the tool's number of a card in the arguments of a form for one card.
NUMBER = "<number>"
# GT/s of the PCIe generations 1 to 7.
_GENERATIONS = (2.5, 5.0, 8.0, 16.0, 32.0, 64.0, 128.0)
# A document starts a line. "[WARN" is text, an opening bracket within a sentence too.
_DOCUMENT = r"(?m)^[ \t]*[\[{](?=\s*(?:[\"\[{}\]\d-]|$))"
_DRM_NODE = r"/(?:card|renderD)\d+$"
_PROCESS = r"^(?P<number>\d{1,9})\s+(?P<pid>\d{1,9})\s+(?P<name>\S.*?)\s+(?P<memory>\d{1,9})\s*(?:MiB|MB)?$"
# What a line of XML, of a table, of JSON begins with.
_DATA = ("<", "|", "+", "{", "}", '"')
_PASSED_THROUGH = ("vfio-pci", "pci-stub")
BADNESS = ("ok", "unknown", "warning", "critical")


@dataclass
class Reply:
    """What one answer holds.

    ``attached`` is the tool's own count of cards; ``around`` is text beside the data, ``notes`` name what in the
    data could not be read.
    """

    devices: list[Device] = field(default_factory=list)
    attached: int | None = None
    tool_version: str | None = None
    driver_version: str | None = None
    around: str = ""
    notes: list[str] = field(default_factory=list)


@dataclass
class Form:
    """One way to ask for all cards: the arguments of the tool, and what reads the answer or raises Unreadable."""

    arguments: tuple[str, ...]
    read: Callable[[str], Reply]


# What a command came to


def reason_of(said: str, reasons: Reasons) -> str | None:
    """Return the word for the first of ``reasons``, and of those that are common to all tools, that is said."""
    return next((word for mark, word in (*reasons, *REASONS) if re.search(mark, said, re.IGNORECASE)), None)


def speech(result: Result) -> str:
    """Return what a tool says in words: words in the fields of a damaged answer are not the tool's words."""
    lines = [line for line in result.stdout.splitlines() if not line.strip().startswith(_DATA)]
    return "\n".join([*lines, result.stderr]).strip()


def beside(result: Result, around: str = "") -> str:
    """Return what a command said beside its data; one that ended with an exit code and no word said that."""
    return text.excerpt(around, result.stderr) or (f"exit code {result.rc} and no text" if result.rc else "")


def tell_beside(answer: Answer, result: Result, card: str = "") -> None:
    """Add what a command said beside an answer that could be used: words, or nothing but an exit code."""
    said = beside(result)
    if said:
        add_error(answer, result, said, card)


def add_error(answer: Answer, result: Result, words: str = "", card: str = "") -> None:
    """Add an error: the card where one was asked for, the command, and what it said or that it did not come back."""
    said = "no answer in time" if result.hung else words or f"exit code {result.rc} and no text"
    answer.errors.append(": ".join([card, command_of(result), said] if card else [command_of(result), said]))


def settle(tool: Tool, result: Result, reason: str | None = None) -> None:
    """Set the state of a tool of whose answer nothing can be used, and keep what it printed."""
    tool.rc, tool.command = result.rc, command_of(result)
    tool.excerpt = text.excerpt(tool.excerpt, result.stdout, result.stderr)
    if result.hung:
        tool.state = TOOL_HUNG
        return
    tool.reason = tool.reason or reason
    # Bytes that are no text are damaged, whatever the exit code says; words that come with one are the tool's reason.
    refused = result.rc and not text.garbled(result.stdout)
    tool.state = TOOL_FAILED if tool.reason or refused else TOOL_UNREADABLE


def note_failure(answer: Answer, tool: Tool, result: Result, reasons: Reasons = (), why: str = "") -> None:
    """Settle a tool of whose answer nothing can be used, by what it says; ``why`` says what is wrong with the rest."""
    said = speech(result)
    settle(tool, result, reason_of(f"{said}\n{why}", reasons))
    words = text.excerpt(result.stderr, limit=300)
    if tool.state == TOOL_FAILED:
        words = words or text.excerpt(said, limit=300)
    if result.stdout.strip() or not result.rc:
        words = words or why
    add_error(answer, result, words)


def note_hang(answer: Answer, tool: Tool, result: Result) -> None:
    """Note that a tool did not come back for one card; what it told of others stays."""
    tool.state = TOOL_HUNG
    add_error(answer, result)
    tool.excerpt = text.excerpt(tool.excerpt, answer.errors[-1])


def has_none(tool: Tool, answer: Answer) -> bool:
    """Take "no devices" for a complete answer: the tool works and has no card (a container may have none)."""
    if tool.reason != "no_devices" or tool.state == TOOL_OK:
        return False
    tool.state, answer.count = TOOL_OK, 0
    answer.errors.pop()
    return True


def not_ours(tool: Tool, answer: Answer, functions: list[pci.Function]) -> None:
    """Take a program that can't be read for another vendor's of the same name, where no card of ours is there."""
    if not functions and tool.state in (TOOL_FAILED, TOOL_UNREADABLE) and tool.reason is None:
        tool.state, tool.rc = TOOL_ABSENT, None
        answer.errors.clear()


# Ways to ask


def question(
    runner,
    argv: list[str],
    read: Callable[[str], Reply],
    tool: Tool,
    answer: Answer,
    timeout: float,
    reasons: Reasons = (),
) -> Reply | None:
    """Run one command and read what it prints; None, and the state of ``tool``, when nothing can be used."""
    result = runner.run(argv, timeout)
    tool.command, tool.rc = command_of(result), result.rc
    if result.hung:
        note_failure(answer, tool, result)
        return None
    try:
        reply = read(text.plain(result.stdout))
    except Unreadable as exc:
        note_failure(answer, tool, result, reasons, str(exc))
        return None
    tool.state, tool.version = TOOL_OK, tool.version or reply.tool_version
    around = beside(result, reply.around)
    for words in [around, *reply.notes] if around else reply.notes:
        add_error(answer, result, words)
    if reply.notes and not reply.devices:
        settle(tool, result)
        tool.state = TOOL_UNREADABLE
        return None
    tool.excerpt = text.excerpt(tool.excerpt, around, *reply.notes)
    if not reply.devices and not reply.attached:
        tool.reason = "no_devices"
    return reply


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
        reply = question(runner, [*program, *form.arguments], form.read, tool, answer, timeout, reasons)
        if reply:
            take(answer, tool, reply)
        if reply or has_none(tool, answer) or tool.reason or tool.state == TOOL_HUNG:
            return


def take(answer: Answer, tool: Tool, reply: Reply) -> None:
    """Take an answer for all cards; it is complete when it describes as many as the tool says there are."""
    answer.devices.extend(reply.devices)
    if reply.attached is not None and reply.attached > len(reply.devices):
        tool.state = TOOL_FAILED
        answer.errors.append(f"{tool.command}: {reply.attached} cards are attached, {len(reply.devices)} described")
        return
    answer.count = len(answer.devices)


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
            note_hang(answer, tool, result)
            if isinstance(key, str):
                answer.hung.append(key)
            else:
                numbers.append(key)
            continue
        try:
            reply = read(result.stdout)
        except Unreadable as exc:
            add_error(answer, result, text.excerpt(result.stderr, limit=300) or str(exc))
            continue
        tell_beside(answer, result)
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


def ask_missing(
    runner,
    program: list[str],
    form: Form,
    functions: list[pci.Function],
    tool: Tool,
    answer: Answer,
    timeout: float,
) -> None:
    """Ask for each card of the bus that has not answered, by its ``NUMBER``, unless the tool has named its cause."""
    numbers = unasked_numbers(functions, answer) if tool.reason is None else []
    if numbers:
        commands: dict[str | int, tuple[str, ...]] = {
            number: tuple(str(number) if word == NUMBER else word for word in form.arguments) for number in numbers
        }
        ask_each(runner, program, commands, form.read, expected(functions), tool, answer, timeout)


def ask_once(
    answer: Answer,
    runner,
    vendor: str,
    command: list[str],
    read: Callable[[str], Reply],
    timeout: float,
    reasons: Reasons = (),
) -> Reply | None:
    """Put one question to a tool, which is added to ``answer``; None when it is absent or nothing could be used."""
    tool = Tool(command[0], vendor, state=TOOL_ABSENT, command=" ".join(command))
    answer.tools.append(tool)
    program = runner.which(command[0])
    if program is None:
        return None
    return question(runner, [program, *command[1:]], read, tool, answer, timeout, reasons)


def take_all(answer: Answer, reply: Reply | None, functions: list[pci.Function]) -> None:
    """Take what was read. Where every tool that is there hung, all cards count as hung."""
    asked = [tool for tool in answer.tools if tool.state != TOOL_ABSENT]
    if reply is None:
        if asked and all(tool.state == TOOL_HUNG for tool in asked):
            answer.hung = [function.address for function in functions]
        return
    answer.devices, answer.count = reply.devices, len(reply.devices)
    # An earlier command that failed did no harm where a later one made up for it; its text stays.
    source = next(tool for tool in answer.tools if tool.state == TOOL_OK)
    for device in answer.devices:
        device.driver_version = device.driver_version or reply.driver_version
        if device.source == "sysfs":
            device.source = f"{source.name} {source.version or ''}".strip()


# Which cards should answer


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


# What the kernel tells


def add_driver(
    runner, vendor: str, modules: tuple[str, ...], answer: Answer, cards: Sequence[pci.Function | Device]
) -> Driver | None:
    """Add the kernel module of the vendor, where it is loaded or has ``cards`` to drive; return it where it was added.

    Where the kernel tells no version, the one that the tool tells counts.
    """
    loaded = [module for module in modules if runner.glob(f"/sys/module/{module}")]
    versions = [text.clean(runner.read(f"/sys/module/{module}/version")) for module in loaded]
    versions += [device.driver_version for device in answer.devices]
    # Where nobody named a module, nothing says whether it is there.
    driver = Driver(vendor, kernel_version=next(filter(None, versions), None), loaded=bool(loaded) if modules else None)
    for device in answer.devices:
        device.driver_version = device.driver_version or driver.kernel_version
    if not loaded and not cards:
        return None
    answer.drivers.append(driver)
    return driver


def drm_nodes(runner, device: Device) -> list[str]:
    """Return the DRM nodes of a card that exist on this host."""
    if device.pci_address is None:
        return []
    paths = runner.glob(f"/sys/bus/pci/devices/{device.pci_address}/drm/*")
    nodes = ["/dev/dri/" + path.rpartition("/")[2] for path in paths if re.search(_DRM_NODE, path)]
    return [node for node in nodes if runner.glob(node)]


def nodes_below(runner, address: str | None, name: str) -> list[str]:
    """Return the device nodes that the kernel itself hangs below a PCI function; ``name`` is a regular expression.

    The kernel writes the ``/`` of a name as ``!`` (``tenstorrent!0``).
    """
    if not address:
        return []
    paths = runner.glob(f"/sys/bus/pci/devices/{address}/*/*/dev")
    names = [path.split("/")[-2].replace("!", "/") for path in paths]
    return [f"/dev/{one}" for one in names if re.fullmatch(name, one) and runner.glob(f"/dev/{one}")]


# Values


def address_of(word: object) -> str | None:
    """Return the canonical PCI address; None where the tool printed none or damaged one."""
    try:
        return pci.normalise(str(word)) if word is not None else None
    except ValueError:
        return None


def generation_gts(value: object) -> float | None:
    """Return the speed of a PCIe generation ("4", 4); None for what is no generation (-1, N/A)."""
    found = text.integer(value)
    return _GENERATIONS[found - 1] if found is not None and 0 < found <= len(_GENERATIONS) else None


def percent(value: object) -> float | None:
    """Return a share that a tool gives in percent; None for what is none (below 0, above 100)."""
    found = text.number(value)
    return found if found is not None and 0 <= found <= 100 else None


def entry(values: object, *path: str) -> object:
    """Return what stands at ``path`` of nested dictionaries, None where anything on the way is missing or none."""
    for key in path:
        values = values.get(key) if isinstance(values, dict) else None
    return None if isinstance(values, (dict, list)) else values


def process(words: str) -> tuple[int, dict] | None:
    """Return the card's number and the process of a row ``number pid name memory``; None for "no process found"."""
    found = re.match(_PROCESS, single(words))
    if not found:
        return None
    memory = text.size_bytes(found["memory"], "MiB")
    return int(found["number"]), {"pid": int(found["pid"]), "name": text.clean(found["name"]), "memory_bytes": memory}


# Forms of text


def cells_of(line: str, mark: str = "|") -> list[str]:
    """Return the cells of a row of a table that is drawn with ``|``, with single blanks."""
    return [single(cell) for cell in line.strip().strip(mark).split(mark)]


def rows(output: str) -> list[list[str]]:
    """Return the cells of each ``| a | b |`` line, with single blanks; borders are left out."""
    found = []
    for line in text.plain(output).splitlines():
        line = line.strip()
        if len(line) > 1 and line[0] == line[-1] == "|" and line.strip("|-=+ "):
            found.append([single(cell) for cell in line[1:-1].split("|")])
    return found


def single(cell: str) -> str:
    """Return the words of a cell with one blank between them."""
    # A column is as wide as its widest word. Thousands of blanks would keep an expression that parts words at them busy
    # for minutes, trying each.
    return " ".join(cell.split())


def csv_rows(lines: Iterable[str]) -> list[list[str]]:
    """Return the rows of CSV lines; Unreadable for what the reader refuses (NUL, an endless field)."""
    # Imported when needed: most tools speak something else.
    import csv

    try:
        return list(csv.reader(lines, skipinitialspace=True))
    except csv.Error as exc:
        raise Unreadable(f"the CSV is damaged: {exc}") from exc


def split_json(output: str) -> tuple[list, str]:
    """Return the JSON documents of an answer, if any, and the text around them; Unreadable if one is cut off."""
    output = text.whole_characters(output)
    decoder = json.JSONDecoder()
    begin = re.compile(_DOCUMENT)
    documents: list = []
    around = []
    position = 0
    while start := begin.search(output, position):
        try:
            document, end = decoder.raw_decode(output, start.end() - 1)
        except (ValueError, RecursionError) as exc:
            raise Unreadable(f"the JSON is damaged or cut off: {exc}") from exc
        documents.append(document)
        around.append(output[position : start.start()])
        position = end
    around.append(output[position:])
    return documents, "\n".join(part.strip() for part in around if part.strip())


def json_documents(output: str) -> tuple[list, str]:
    """Return the JSON documents of an answer and the text around them; Unreadable if one is cut off or none there."""
    documents, around = split_json(output)
    if not documents:
        raise Unreadable("no JSON in the answer")
    return documents, around


# Health, where the tool has no word for it


def sick(fields: Iterable[tuple[str, object]]) -> list[tuple[str, str]]:
    """Return (state, reason) for the fields that are supported but can't be read now, by what stands there."""
    words: dict[str, list[str]] = {}
    for name, value in fields:
        if text.state_of(value) == text.UNREADABLE:
            words.setdefault(str(value).strip(), []).append(name)
    return sick_reasons(words)


def sick_reasons(words: dict[str, list[str]]) -> list[tuple[str, str]]:
    """Return (state, reason) for each word that stands where a value should, with the names of those fields."""
    return [
        ("critical" if "reset" in word.lower() else "warning", f"{word}: {', '.join(dict.fromkeys(names))}")
        for word, names in words.items()
    ]


def worst(found: list[tuple[str, str]], proofs: int) -> Health:
    """Return the worst of (state, reason) pairs; without any, ``ok`` needs a value that proves it."""
    if found:
        return Health(max((state for state, _reason in found), key=BADNESS.index), [reason for _state, reason in found])
    return Health("ok" if proofs else "unknown")


def sick_words(cells: Sequence[object]) -> list[str]:
    """Return the words that stand where a value is supported but can't be read now, each once."""
    return list(dict.fromkeys(str(cell).strip() for cell in cells if text.state_of(cell) == text.UNREADABLE))


def live_health(readings: Readings, ecc: Ecc, unreadable: Sequence[str] = ()) -> Health:
    """Return the health that live values prove.

    ``ok`` needs a value that was measured just now and no counter that is raised; ``unreadable`` are fields that are
    supported but can't be read.
    """
    errors = ecc.uncorrected_volatile or 0
    if errors > 0:
        return Health("critical", [f"{errors} uncorrected memory errors since the driver was loaded"])
    if unreadable:
        return Health("warning", [f"can't be read: {', '.join(unreadable)}"])
    measured = (readings.temperature_c, readings.power_watts, readings.utilization_percent)
    if all(value is None for value in measured):
        return Health("unknown", ["no live values: temperature, power and use cannot be read"])
    return Health("ok")
