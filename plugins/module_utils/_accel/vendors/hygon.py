# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Hygon DCU: hy-smi, or the rocm-smi of its DTK, which is older and speaks the same.

A healthy host costs one command: each start of the tool takes about a second, so all is asked at once, as JSON. The
same values as CSV, then the plain table, are read where that fails; the table has no addresses, so its cards are only
counted. What is missing then is asked card by card (``-d N``), N being the tool's number, which old releases count from
1. Cards are called GPU, DCU or HCU, by release, in keys, columns and line heads alike.

Some releases leave out the commas between the values of power, which makes the JSON invalid; they are put back where a
value and the next key stand side by side, as nothing else can stand there. A key may be empty.

rocm-smi is asked only where a card of Hygon is on the bus or its driver is loaded: elsewhere it is AMD's.

Recorded: JSON of DTK 24.04 and of hy-smi 1.25, CSV of DTK 22.10, text lines of a newer one, tables of ROCm 4.0, DTK
23.10 and of a BW101. Never recorded: serial and address in one answer, a sick card, an error text, an error count. The
tool has no word for health, so live values that can be read prove no more than that a card answers.
"""

from __future__ import annotations

import re

from .. import pci, text
from ..model import TOOL_ABSENT, Device, Link, Readings, Tool
from ..runner import Runner
from ..tools import (
    NUMBER,
    Form,
    Reply,
    add_driver,
    address_of,
    ask,
    ask_missing,
    csv_rows,
    drm_nodes,
    json_documents,
    not_ours,
    sick,
    worst,
)
from .base import FILE, Answer, ContainerAccess, Unreadable, Vendor, VersionSource

OPTIONS = (
    "--showid",
    "--showproductname",
    "--showserial",
    "--showuniqueid",
    "--showbus",
    "--showvbios",
    "--showdriverversion",
    "--showmeminfo",
    "vram",
    "--showtemp",
    "--showpower",
    "--showuse",
)

_REASONS = (
    ("permission denied", "no_permission"),
    ("driver not initialized", "driver_not_loaded"),
    ("not found in modules", "driver_not_loaded"),
)
_CARD = re.compile(r"card(\d{1,9})")
_TEXT_LINE = re.compile(r"^(?:GPU|DCU|HCU)\[(\d{1,9})\][ \t]*:([^:\n]+):(.*)$", re.MULTILINE)
_NO_COMMA = re.compile(r'(:\s*"[^"\\\n]*")\s*(?="[^"\\\n]+"\s*:)')
_USE = re.compile(r"(?:gpu|dcu|hcu) use \(%\)")
_MEMORY = re.compile(r"vram total (used )?memory \((\w+)\)")
_HEADS = ("gpu", "dcu", "hcu")


def parse(output: str) -> Reply:
    """Return the cards of an answer to OPTIONS, as JSON (several documents are joined), CSV or text lines."""
    cards: dict[int, dict[str, str]] = {}
    driver = None
    around = ""
    lines = _TEXT_LINE.findall(output)
    if re.search(r"^device,", output, re.MULTILINE):
        _read_csv(output, cards)
    elif lines:
        if not output.endswith("\n"):
            raise Unreadable("the last line has no end")
        for number, key, value in lines:
            cards.setdefault(int(number), {})[key.strip().lower()] = value.strip()
    else:
        documents, around = json_documents(_NO_COMMA.sub(r"\1, ", output))
        for document in documents:
            if not isinstance(document, dict):
                raise Unreadable("the JSON is no list of cards")
            for name, values in document.items():
                found = _CARD.fullmatch(name)
                if not isinstance(values, dict):
                    continue
                folded = {str(k).lower(): str(v) for k, v in values.items() if not isinstance(v, (dict, list))}
                if found:
                    cards.setdefault(int(found[1]), {}).update(folded)
                elif name == "system":
                    driver = text.clean(folded.get("driver version"))
    if not cards:
        raise Unreadable("no card in the answer")
    return Reply([_device(number, card, driver) for number, card in sorted(cards.items())], around=around)


def _read_csv(output: str, cards: dict[int, dict[str, str]]) -> None:
    """Read the rows below a head that begins with "device"; there may be several, and empty lines before them."""
    if not output.endswith("\n"):
        raise Unreadable("the last row has no end")
    head: list[str] = []
    for row in csv_rows(line for line in output.splitlines() if line.strip()):
        if row[0] == "device":
            head = [cell.strip().lower() for cell in row]
            continue
        found = _CARD.fullmatch(row[0].strip())
        if not head:
            continue  # words before the data
        if not found or len(row) != len(head):
            raise Unreadable(f"not a row of {len(head)} values: {text.excerpt(','.join(row), limit=200)}")
        cards.setdefault(int(found[1]), {}).update(zip(head, row))


def _device(index: int, card: dict[str, str], driver: str | None) -> Device:
    def told(*names: str) -> str | None:
        return next((word for word in (text.clean(card.get(name)) for name in names) if word), None)

    sizes = {
        bool(found[1]): (value, found[2]) for key, value in card.items() for found in [_MEMORY.fullmatch(key)] if found
    }
    total, used = (text.size_bytes(*sizes[which]) if which in sizes else None for which in (False, True))
    busy = text.number(next((value for key, value in card.items() if _USE.fullmatch(key)), None))
    device_id = re.fullmatch(r"(?:0x)?([0-9a-f]{4})", (told("device id", "gpu id") or "").lower())
    heat = told("temperature (sensor junction) (c)", "temperature (sensor edge) (c)", "temperature (sensor core) (c)")
    readings = Readings(
        temperature_c=text.celsius(heat),
        memory_temperature_c=text.celsius(told("temperature (sensor mem) (c)")),
        power_watts=text.watts(told("average graphics package power (w)")),
        utilization_percent=busy,
        memory_used_bytes=used,
    )
    live = (readings.temperature_c, readings.power_watts, busy)
    return Device(
        index=index,
        vendor="hygon",
        model=told("card series", "card model"),
        serial=text.identifier(card.get("serial number")),
        uuid=_unique_id(card.get("unique id")),
        pci_address=address_of(told("pci bus")),
        pci_id=f"1d94:{device_id[1]}" if device_id else None,
        driver_version=driver or told("driver version"),
        firmware_version=told("vbios version"),
        memory_bytes=total,
        link=Link(under_load=None if busy is None else busy > 0),
        health=worst(sick(card.items()), sum(value is not None for value in live)),
        readings=readings,
        source="hy-smi",
    )


def _unique_id(word: str | None) -> str | None:
    """Return the chip's number in one spelling: with and without 0x, in either case, by release."""
    word = text.identifier(word)
    if word is None:
        return None
    found = re.fullmatch(r"(?:0x)?([0-9a-f]{8,16})", word.lower())
    return found[1] if found else word


def parse_table(output: str) -> Reply:
    """Return the cards of the plain table, by the heads of its columns; Unreadable for a row with more or fewer."""
    heads: list[str] = []
    devices: list[Device] = []
    ended = False
    for line in text.plain(output).splitlines():
        cells = line.split()
        if cells and cells[0].lower() in _HEADS and "Temp" in cells:
            heads = [cell.lower() for cell in cells]
        elif re.search(r"=\s*End of (?:ROCm )?SMI Log\s*=", line):
            ended = True
        elif heads and cells and not line.strip().startswith("="):
            number = text.whole_number(cells[0])
            if len(cells) != len(heads) or number is None:
                raise Unreadable(f"not a row of {len(heads)} values: {text.excerpt(line, limit=200)}")
            devices.append(_from_row(number, dict(zip(heads, cells))))
    if not heads or not ended:
        raise Unreadable("no complete table in the answer")
    return Reply(devices)


def _from_row(number: int, row: dict[str, str]) -> Device:
    busy = text.number(next((row[f"{head}%"] for head in _HEADS if f"{head}%" in row), None))
    readings = Readings(
        temperature_c=text.celsius(row.get("temp")),
        power_watts=text.watts(row.get("avgpwr")),
        power_limit_watts=text.watts(row.get("pwrcap")),
        utilization_percent=busy,
    )
    live = (readings.temperature_c, readings.power_watts, busy)
    return Device(
        index=number,
        vendor="hygon",
        link=Link(under_load=None if busy is None else busy > 0),
        health=worst(sick(row.items()), sum(value is not None for value in live)),
        readings=readings,
        source="hy-smi",
    )


# DTK keeps ROCm's files, with its own number in them.
_VERSIONS = (
    VersionSource("driver_kernel", "hygon", FILE, "/sys/module/hydcu/version", r"^(\d\S*)"),
    VersionSource("driver_kernel", "hygon", FILE, "/sys/module/hycu/version", r"^(\d\S*)"),
    VersionSource("runtime", "dtk", FILE, "/opt/dtk/.info/rocm_version", r"^(\d[\w.]*)"),
    VersionSource("runtime", "dtk", FILE, "/opt/dtk/.info/version", r"^(\d[\w.]*)"),
    VersionSource("runtime", "dtk", FILE, "/opt/dtk/.info/version-dev", r"^(\d[\w.]*)"),
)


# As the vendor starts a container; no source names a kind, this one is ours.
_CONTAINER = ContainerAccess(
    kind="hygon.com/dcu", control_nodes=("/dev/kfd", "/dev/mkfd"), paths=("/opt/hyhal", "/usr/local/hyhal")
)


class Hygon(Vendor):
    """Hygon DCU. The vendor makes processors too, whose bridges and encryption functions are of other classes."""

    name = "hygon"
    pci_vendors = ("1d94",)
    pci_classes = ("0380", "0b40", "1200")
    kernel_modules = ("hydcu", "hycu")
    versions = _VERSIONS
    container = _CONTAINER

    def query(self, runner: Runner, functions: list[pci.Function], timeout_seconds: float) -> Answer:
        """Ask hy-smi, or rocm-smi where there is no hy-smi."""
        answer = Answer()
        path = runner.which("hy-smi")
        name = "hy-smi"
        if path is None and (functions or any(runner.glob(f"/sys/module/{one}") for one in self.kernel_modules)):
            path = runner.which("rocm-smi")
            name = "rocm-smi" if path else name
        tool = Tool(name, self.name, state=TOOL_ABSENT, command=f"{name} {' '.join(OPTIONS)} --json")
        answer.tools.append(tool)
        if path is not None:
            forms = [Form((*OPTIONS, "--json"), parse), Form((*OPTIONS, "--csv"), parse), Form((), parse_table)]
            ask(runner, [path], forms, tool, answer, timeout_seconds, _REASONS)
            not_ours(tool, answer, functions)
            # The table does not say which card is which, so that nobody is missing by address there.
            told = not answer.devices or any(device.pci_address for device in answer.devices)
            if told:
                alone = Form(("-d", NUMBER, *OPTIONS, "--json"), parse)
                ask_missing(runner, [path], alone, functions, tool, answer, timeout_seconds)
            for device in answer.devices:
                device.source = name
        add_driver(runner, self.name, self.kernel_modules, answer, functions)
        return answer

    def device_nodes(self, runner: Runner, device: Device) -> list[str]:
        """Return the DRM nodes of the card; /dev/kfd and /dev/mkfd are common to all."""
        return drm_nodes(runner, device)
