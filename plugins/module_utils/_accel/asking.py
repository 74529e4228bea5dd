# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""One question to a vendor tool that answers for all cards at once, and what such tools have in common.

Made for vendors of which no way is known to ask one card alone: a tool that hangs then hangs for all of them. A vendor
file gives the command and a pure parser; the parser raises ``Unreadable`` for what it can't prove.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

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
from .parallel import command_of
from .runner import Result
from .vendors.base import Answer, Unreadable

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

Reasons = Sequence[tuple[str, str]]

# Text of a tool (a regular expression) -> word of ``Tool.reason``, the first that matches. A vendor's own go before.
REASONS: Reasons = (
    (r"permission denied|operation not permitted|must be run as root|insufficient permissions", "no_permission"),
    (r"no (?:\w+ ){0,2}(?:devices?|cards?|chips?) (?:were |was )?(?:found|detected)", "no_devices"),
    (r"driver (?:is )?not (?:loaded|installed|found)|(?:load|insmod|modprobe) (?:the )?driver", "driver_not_loaded"),
)


@dataclass
class Reading:
    """One answer that could be read: its devices, what could not be read in it, and versions where they are told."""

    devices: list[Device] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    version: str | None = None
    driver_version: str | None = None


def ask(
    answer: Answer,
    runner,
    vendor: str,
    command: list[str],
    parse: Callable[[str], Reading],
    timeout_seconds: float,
    reasons: Reasons = (),
) -> Reading | None:
    """Run one command, parse what it prints, and add the ``Tool`` to ``answer``; None when nothing could be used."""
    program = runner.which(command[0])
    tool = Tool(command[0], vendor, state=TOOL_ABSENT, command=" ".join(command))
    answer.tools.append(tool)
    if program is None:
        return None
    result = runner.run([program, *command[1:]], timeout_seconds)
    tool.rc, tool.command = result.rc, command_of(result)
    if result.hung:
        tool.state, tool.excerpt = TOOL_HUNG, text.excerpt(result.stdout, result.stderr)
        answer.errors.append(f"{tool.command}: no answer in time")
        return None
    try:
        reading = parse(text.plain(result.stdout))
    except Unreadable as exc:
        _refused(answer, tool, result, str(exc), reasons)
        return None
    tool.state, tool.version = TOOL_OK, reading.version
    if not reading.devices:
        tool.reason = "no_devices"
    tool.excerpt = text.excerpt(result.stderr, *reading.notes)
    if reading.notes and not reading.devices:
        tool.state, tool.reason = TOOL_UNREADABLE, None
        tool.excerpt = text.excerpt(result.stdout, result.stderr)
    answer.errors.extend(f"{tool.command}: {note}" for note in reading.notes)
    return reading if tool.state == TOOL_OK else None


def _refused(answer: Answer, tool: Tool, result: Result, why: str, reasons: Reasons) -> None:
    """Set the state of a tool of whose answer nothing can be used, and keep what it said."""
    said = f"{result.stdout}\n{result.stderr}"
    tool.excerpt = text.excerpt(result.stdout, result.stderr)
    tool.reason = next((word for mark, word in [*reasons, *REASONS] if re.search(mark, said, re.IGNORECASE)), None)
    tool.state = TOOL_FAILED if tool.reason or result.rc else TOOL_UNREADABLE
    spoken = text.excerpt(said, limit=300) or f"exit code {result.rc} and no text"
    answer.errors.append(f"{tool.command}: {spoken if tool.state == TOOL_FAILED else why}")


def take(answer: Answer, reading: Reading | None, functions: list[pci.Function]) -> None:
    """Put what was read into ``answer``. Where every tool that is there hung, all cards count as hung."""
    asked = [tool for tool in answer.tools if tool.state != TOOL_ABSENT]
    if reading is None:
        if asked and all(tool.state == TOOL_HUNG for tool in asked):
            answer.hung = [function.address for function in functions]
        return
    answer.devices, answer.count = reading.devices, len(reading.devices)
    # An earlier command that failed did no harm where a later one made up for it; its text stays.
    source = next(tool for tool in answer.tools if tool.state == TOOL_OK)
    for device in answer.devices:
        device.driver_version = device.driver_version or reading.driver_version
        if device.source == "sysfs":
            device.source = f"{source.name} {source.version or ''}".strip()


def driver(runner, vendor: str, modules: tuple[str, ...], answer: Answer, functions: list[pci.Function]) -> None:
    """Add the kernel module of the vendor to ``answer``, where it is loaded or has cards to drive."""
    versions = (text.clean(runner.read(f"/sys/module/{name}/version")) for name in modules)
    told = (device.driver_version for device in answer.devices)
    found = Driver(
        vendor,
        kernel_version=next((version for version in (*versions, *told) if version), None),
        loaded=any(runner.glob(f"/sys/module/{name}") for name in modules),
    )
    if found.loaded or functions:
        answer.drivers.append(found)
    for device in answer.devices:
        device.driver_version = device.driver_version or found.kernel_version


def nodes_below(runner, address: str | None, name: str) -> list[str]:
    """Return the device nodes that the kernel itself hangs below a PCI function; ``name`` is a regular expression.

    The kernel writes the ``/`` of a name as ``!`` (``tenstorrent!0``).
    """
    if not address:
        return []
    paths = runner.glob(f"/sys/bus/pci/devices/{address}/*/*/dev")
    names = [os.path.basename(os.path.dirname(path)).replace("!", "/") for path in paths]
    return [f"/dev/{one}" for one in names if re.fullmatch(name, one) and runner.glob(f"/dev/{one}")]


def address_of(word: object) -> str | None:
    """Return the canonical address; None where the tool printed none or damaged one."""
    try:
        return pci.normalise(str(word)) if word is not None else None
    except ValueError:
        return None


def live_health(readings: Readings, ecc: Ecc, sick: Sequence[str] = ()) -> Health:
    """Return the health that live values prove, for tools that have no word for it.

    ``ok`` needs a value that was measured just now and no counter that is raised; ``sick`` are fields that are
    supported but can't be read.
    """
    errors = ecc.uncorrected_volatile or 0
    if errors > 0:
        return Health("critical", [f"{errors} uncorrected memory errors since the driver was loaded"])
    if sick:
        return Health("warning", [f"can't be read: {', '.join(sick)}"])
    measured = (readings.temperature_c, readings.power_watts, readings.utilization_percent)
    if all(value is None for value in measured):
        return Health("unknown", ["no live values: temperature, power and use cannot be read"])
    return Health("ok")


def sick_words(cells: Sequence[object]) -> list[str]:
    """Return the words that stand where a value is supported but can't be read now, each once."""
    return list(dict.fromkeys(str(cell).strip() for cell in cells if text.state_of(cell) == text.UNREADABLE))


def percent(value: object) -> float | None:
    """Return a share that a tool gives in percent; None for what is none (below 0, above 100)."""
    found = text.number(value)
    return found if found is not None and 0 <= found <= 100 else None


def cells_of(line: str, mark: str = "|") -> list[str]:
    """Return the cells of a row of a table that is drawn with ``|``."""
    return [cell.strip() for cell in line.strip().strip(mark).split(mark)]


def json_documents(output: str) -> tuple[list, str]:
    """Return the JSON documents of an answer and the text around them; Unreadable when one is cut off, or none there.

    A document starts a line: an opening bracket within a sentence is text.
    """
    output = text.whole_characters(output)
    decoder = json.JSONDecoder()
    documents: list = []
    around = []
    position = 0
    for start in re.finditer(r"^[ \t]*[\[{](?=\s*(?:[\"\[{}\]\d-]|$))", output, re.MULTILINE):
        if start.end() - 1 < position:
            continue  # a line within the document before
        try:
            document, end = decoder.raw_decode(output, start.end() - 1)
        except (ValueError, RecursionError) as exc:
            raise Unreadable(f"the JSON is damaged or cut off: {exc}") from exc
        documents.append(document)
        around.append(output[position : start.start()])
        position = end
    around.append(output[position:])
    if not documents:
        raise Unreadable("no JSON in the answer")
    return documents, "\n".join(part.strip() for part in around if part.strip())


def xml_tree(output: str, root: str) -> tuple[Element, str]:
    """Return the element ``root`` of an answer and the text around it; Unreadable when it is not there in full."""
    # Imported when needed: most hosts never parse XML.
    from xml.etree import ElementTree

    begin, closing = output.find(f"<{root}"), f"</{root}>"
    end = output.rfind(closing)
    if begin < 0 or end < begin:
        raise Unreadable(f"no complete {root} in the answer")
    around = re.sub(r"<[?!][^>]*>", "", output[:begin]) + output[end + len(closing) :]
    body = re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "", output[begin : end + len(closing)])
    try:
        return ElementTree.fromstring(body), around.strip()
    except ElementTree.ParseError as exc:
        raise Unreadable(f"the XML is damaged: {exc}") from exc
