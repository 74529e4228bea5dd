# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Intel data-centre GPU: xpu-smi, its JSON, its CSV and its tables.

A healthy host costs four commands at the same time (``-v``, ``discovery -j``, ``health -l -j`` and one line of ``dump``
for each card), then ``discovery -d N -j`` for each card, all at the same time. Where the list can't be read, it is
asked as CSV (``discovery --dump``); where that fails too, or a card is left out, each card of the bus is asked by its
address, as a table when its JSON can't be read. So one sick card never hides the others.

Another maker (Kunlunxin) ships a program called xpu-smi. What counts is the version, which names the parts of this
one, or a list that can be read; without either, and without a card of Intel, the program is somebody else's.

A UUID made of nothing but the address and the ids of the card names no card, so it is none.

Recorded (the vendor's guide, 1.x): the table of one card, a CSV list of other columns, ``dump``, ``-v``. The JSON is
read after the guide and the published source of 1.x: never recorded, nor is a sick card; 2.x is not known to differ.
"""

from __future__ import annotations

import re
from collections import Counter

from .. import pci, text
from ..model import TOOL_ABSENT, TOOL_HUNG, TOOL_OK, Device, Health, Link, Readings, Tool
from ..parallel import command_of, run_all
from ..runner import Runner
from ..tools import (
    add_driver,
    address_of,
    csv_rows,
    drm_nodes,
    entry,
    generation_gts,
    has_none,
    json_documents,
    missing,
    not_ours,
    note_failure,
    note_hang,
    rows,
    sick,
    worst,
)
from .base import LINK, PACKAGE, PACKAGE_VERSION, Answer, ContainerAccess, Unreadable, Vendor, VersionSource

VERSION = ("-v",)
LIST = ("discovery", "-j")
HEALTH = ("health", "-l", "-j")
# Utilisation, power, temperature of the chip and of the memory, memory in use; all cards, once.
DUMP = ("dump", "-d", "-1", "-m", "0,1,3,4,18", "-n", "1")
# The numbers of the columns up to 14 are the same in all releases of the guide.
CSV = ("discovery", "--dump", "1,2,4,5,8,9,11,12,13,14")

# Families of discrete cards by the first digits of their device id: DG1, Flex and Arc A (DG2), Max (Ponte Vecchio),
# Arctic Sound, Battlemage. Graphics of processors have others.
DISCRETE = ("490", "56", "0b6", "0bd", "020", "e2")

_REASONS = (
    ("level zero initialization error", "driver_not_ready"),
    ("permission denied", "no_permission"),
    ("no device discovered", "no_devices"),
)
_ITS_OWN_VERSION = re.compile(r"Level Zero Version|Build ID|^CLI:", re.MULTILINE)
_CLI_VERSION = re.compile(r"^\s*Version:\s*(\S+)", re.MULTILINE)
_MADE_UUID = re.compile(r"00000000-0000-[0-9a-f]{4}-0000-[0-9a-f]{4}[0-9a-f]{4}8086")

# What a table or a CSV calls it -> key of the JSON.
_LABELS = {
    "Device ID": "device_id",
    "Device Name": "device_name",
    "UUID": "uuid",
    "Serial Number": "serial_number",
    "Driver Version": "driver_version",
    "Firmware Version": "gfx_firmware_version",
    "GFX Firmware Version": "gfx_firmware_version",
    "GFX Firmware Status": "gfx_firmware_status",
    "PCI Device ID": "pci_device_id",
    "PCI BDF Address": "pci_bdf_address",
    "PCI Slot": "pci_slot",
    "PCIe Generation": "pcie_generation",
    "PCIe Max Link Width": "pcie_max_link_width",
    "OAM Socket ID": "oam_socket_id",
    "Memory Physical Size": "memory_physical_size",
}
_COMPONENTS = ("core_temperature", "memory_temperature", "power", "memory", "fabric_port", "xe_link_port", "frequency")
_DUMPED = {
    "gpu utilization (%)": "utilization_percent",
    "average % utilization of all gpu engines": "utilization_percent",
    "gpu power (w)": "power_watts",
    "gpu core temperature (celsius degree)": "temperature_c",
    "gpu memory temperature (celsius degree)": "memory_temperature_c",
}


def parse_json_list(output: str) -> list[dict]:
    """Return the entries of ``discovery -j`` or ``health -l -j``; Unreadable for an error and for something else."""
    cards = _document(output).get("device_list")
    if not isinstance(cards, list) or not all(isinstance(card, dict) for card in cards):
        raise Unreadable("no list of devices in the answer")
    return cards


def parse_json_card(output: str) -> dict:
    """Return the entry of ``discovery -d N -j``; Unreadable when it is none."""
    card = _document(output)
    if address_of(card.get("pci_bdf_address")) is None:
        raise Unreadable("no address of a device in the answer")
    return card


def _document(output: str) -> dict:
    documents, _notes = json_documents(output)
    document = documents[0]
    if not isinstance(document, dict):
        raise Unreadable("the JSON is no object")
    if "error" in document:
        raise Unreadable(f"{document['error']} (errno {document.get('errno')})")
    return document


def _words_around(output: str) -> str:
    """Return what stands around the JSON of an answer, nothing where there is no JSON."""
    try:
        return json_documents(output)[1]
    except Unreadable:
        return ""


def parse_csv(output: str) -> list[dict]:
    """Return the entries of ``discovery --dump`` by the names of its columns; Unreadable for a row that is none."""
    lines = _whole_lines(output)
    begin = next((n for n, line in enumerate(lines) if line.startswith("Device ID,")), None)
    if begin is None:
        raise Unreadable("no head of a list in the answer")
    head, *table = csv_rows(lines[begin:])
    cards = []
    for row in table:
        if len(row) != len(head) or text.whole_number(row[0]) is None:
            raise Unreadable(f"not a row of {len(head)} values: {text.excerpt(','.join(row), limit=200)}")
        cards.append({_LABELS.get(name.strip(), name.strip()): value for name, value in zip(head, row)})
    return cards


def _whole_lines(output: str) -> list[str]:
    """Return the lines that hold anything; Unreadable where the last has no end: its last value may be cut off."""
    if output.strip() and not output.endswith("\n"):
        raise Unreadable("the last row has no end")
    return [line for line in output.splitlines() if line.strip()]


def parse_table(output: str) -> dict:
    """Return the entry of ``discovery -d N`` as a table; Unreadable without a device or without an end."""
    lines = text.plain(output).strip().splitlines()
    card: dict[str, str] = {}
    for cells in rows(output):
        if len(cells) == 2 and text.whole_number(cells[0]) is not None:
            card["device_id"] = cells[0]
        label, colon, value = cells[-1].partition(":")
        if colon and label in _LABELS and len(cells) == 2:
            card.setdefault(_LABELS[label], value.strip())
    if address_of(card.get("pci_bdf_address")) is None or not lines[-1].startswith("+--"):
        raise Unreadable("no complete table of a device in the answer")
    return card


def parse_dump(output: str) -> dict[int, Readings]:
    """Return what ``dump`` measured by the number of the device, by the names of the columns."""
    lines = _whole_lines(output)
    begin = next((n for n, line in enumerate(lines) if line.startswith("Timestamp,")), None)
    if begin is None:
        raise Unreadable("no head of a dump in the answer")
    head, *table = ([cell.strip() for cell in row] for row in csv_rows(lines[begin:]))
    found: dict[int, Readings] = {}
    for row in table:
        number = text.whole_number(row[1]) if len(row) == len(head) else None
        if number is None:
            raise Unreadable(f"not a row of {len(head)} values: {text.excerpt(','.join(row), limit=200)}")
        readings = found.setdefault(number, Readings())
        for name, value in zip(head, row):
            if name.lower() in _DUMPED:
                setattr(readings, _DUMPED[name.lower()], text.number(value))
            elif name.lower() == "gpu memory used (mib)":
                readings.memory_used_bytes = text.size_bytes(value, "MiB")
    return found


def device(card: dict, health: dict | None, measured: Readings | None) -> Device:
    """Return one device from its entry of ``discovery``, of ``health`` and of ``dump``."""

    def told(name: str) -> str | None:
        return text.clean(entry(card, name))

    chip = re.fullmatch(r"0x([0-9a-f]{1,4})", (told("pci_device_id") or "").lower())
    readings = measured or Readings()
    size = text.whole_number(told("memory_physical_size_byte"))
    limit = text.number(entry(health, "core_temperature", "throttle_threshold"))
    readings.temperature_limit_c = limit if limit is not None and limit > 0 else None
    busy = readings.utilization_percent
    return Device(
        index=text.whole_number(entry(card, "device_id")),
        vendor="intel",
        model=told("device_name"),
        serial=text.identifier(entry(card, "serial_number")),
        uuid=_uuid(text.identifier(entry(card, "uuid"))),
        pci_address=address_of(told("pci_bdf_address")),
        pci_id=f"8086:{chip[1].zfill(4)}" if chip else None,
        module_id=text.whole_number(told("oam_socket_id")),
        driver_version=told("driver_version"),
        firmware_version=told("gfx_firmware_version"),
        memory_bytes=size if size is not None else text.size_bytes(told("memory_physical_size")),
        link=Link(
            max_speed_gts=generation_gts(told("pcie_generation")),
            max_width=pci.width(told("pcie_max_link_width")),
            under_load=None if busy is None else busy > 0,
        ),
        health=_health(card, health),
        readings=readings,
        source="xpu-smi",
    )


def _uuid(word: str | None) -> str | None:
    return None if word is None or _MADE_UUID.fullmatch(word.lower()) else word


def _health(card: dict, health: dict | None) -> Health:
    """Return the worst component that the tool names; only components that it calls ok prove anything."""
    found = sick(card.items())
    proofs = 0
    # All that have a state: a release may know of more than these.
    for name in dict.fromkeys([*_COMPONENTS, *(health or {})]):
        state = str(entry(health, name, "status") or "").strip().lower()
        if state == "ok":
            proofs += name in _COMPONENTS
        elif text.state_of(state) in (text.VALUE, text.UNREADABLE):
            said = text.clean(entry(health, name, "description")) or state
            known = state in ("warning", "critical") or text.state_of(state) == text.UNREADABLE
            worse = ("critical" if state == "critical" else "warning") if known else "unknown"
            found.append((worse, f"{name.replace('_', ' ')}: {said}"))
    status = text.clean(entry(card, "gfx_firmware_status")) or ""
    if "bad state" in status.lower():
        found.append(("critical", f"firmware: {status}"))
    return worst(found, proofs)


def slot_labels(devices: list[Device], slots: dict[str, str]) -> dict[str, str]:
    """Return names of places by address: the socket of a module ("OAM3"), else the slot as the tool names it.

    A name that several cards share is none, nor is a socket 0 of a single card.
    """
    sockets = Counter(one.module_id for one in devices)
    names = Counter(slots.values())
    labels = {}
    for one in devices:
        place, socket = one.pci_address or "", one.module_id
        if place and socket is not None and sockets[socket] == 1 and (socket > 0 or len(devices) > 1):
            labels[place] = f"OAM{socket}"
        elif place in slots and names[slots[place]] == 1:
            labels[place] = slots[place]
    return labels


# Names of the packages: Intel's repositories, then Debian's and Fedora's. Of oneAPI "latest" is a link.
_VERSIONS = (
    VersionSource("driver_library", "level-zero", PACKAGE, "libze1", PACKAGE_VERSION),
    VersionSource("driver_library", "level-zero", PACKAGE, "level-zero", PACKAGE_VERSION),
    VersionSource("runtime", "compute-runtime", PACKAGE, "libze-intel-gpu1", PACKAGE_VERSION),
    VersionSource("runtime", "compute-runtime", PACKAGE, "intel-level-zero-gpu", PACKAGE_VERSION),
    VersionSource("runtime", "compute-runtime", PACKAGE, "intel-level-zero", PACKAGE_VERSION),
    VersionSource("collectives", "oneccl", LINK, "/opt/intel/oneapi/ccl/latest", r"/ccl/(\d[\d.]*)$"),
)


# The kind is that of Intel's driver for Kubernetes; the libraries (level-zero) belong to the image.
_CONTAINER = ContainerAccess(kind="intel.com/gpu")


class Intel(Vendor):
    """Intel discrete GPUs (Max, Flex, Arc).

    The vendor id is that of processors and chipsets too, whose graphics sit on bus 00. So a display device counts when
    it sits elsewhere, or when its id is that of a discrete family (a guest may see its card on bus 00). Neural
    processors of client chips are class 1200 and count never.
    """

    name = "intel"
    pci_vendors = ("8086",)
    pci_classes = ("0300", "0302", "0380")
    kernel_modules = ("xe", "i915")
    versions = _VERSIONS
    container = _CONTAINER

    def owns(self, function: pci.Function) -> bool:
        """Tell whether a function is a discrete card; see the class."""
        return super().owns(function) and (
            function.device.startswith(DISCRETE) or pci.sort_key(function.address)[1] != 0
        )

    def query(self, runner: Runner, functions: list[pci.Function], timeout_seconds: float) -> Answer:
        """Ask xpu-smi; see the module for the order."""
        answer = Answer()
        tool = Tool("xpu-smi", self.name, state=TOOL_ABSENT, command=f"xpu-smi {' '.join(LIST)}")
        answer.tools.append(tool)
        path = runner.which("xpu-smi")
        if path is not None:
            _Query(runner, path, functions, timeout_seconds, tool, answer).ask()
        # A server's own display may be driven by these modules too.
        if functions or answer.devices:
            add_driver(runner, self.name, self.kernel_modules, answer, functions or answer.devices)
        return answer

    def device_nodes(self, runner: Runner, device: Device) -> list[str]:
        """Return the DRM nodes of the card."""
        return drm_nodes(runner, device)


class _Query:
    """One run through the commands; collects into ``answer``."""

    def __init__(self, runner, path: str, functions: list[pci.Function], timeout: float, tool: Tool, answer: Answer):
        self.runner = runner
        self.path = path
        self.functions = functions
        self.timeout = timeout
        self.tool = tool
        self.answer = answer
        self.slots: dict[str, str] = {}

    def ask(self) -> None:
        """Ask for the list, then for each card."""
        tool, answer = self.tool, self.answer
        version, listed, health, dump = self._run([VERSION, LIST, HEALTH, DUMP])
        tool.rc = listed.rc
        ours = bool(_ITS_OWN_VERSION.search(version.stdout))
        found = _CLI_VERSION.search(version.stdout) if ours else None
        tool.version = text.clean(found[1]) if found else None
        cards = self._list(listed)
        if cards is None and not ours and not version.hung:
            not_ours(tool, answer, self.functions)
        if tool.state == TOOL_ABSENT or tool.reason:
            return
        components = {
            text.whole_number(entry(one, "device_id")): one for one in self._read(health, parse_json_list, [])
        }
        measured = self._read(dump, parse_dump, {})
        for card in self._details(cards or []):
            self._add(card, components, measured)
        if cards is not None:
            answer.count = len(answer.devices)
            tool.reason = None if cards else "no_devices"
        self._ask_missing(components, measured)
        if answer.devices:
            answer.count = len(answer.devices)
            if tool.state not in (TOOL_OK, TOOL_HUNG) and not missing(self.functions, answer):
                tool.state = TOOL_OK  # each alone made up for the list; its text stays as evidence
        answer.devices.sort(key=lambda one: (one.index is None, one.index or 0))
        for one in answer.devices:
            one.source = f"xpu-smi {tool.version or ''}".strip()
        answer.slot_labels = slot_labels(answer.devices, self.slots)

    def _run(self, arguments: list[tuple[str, ...]]) -> list:
        return run_all(self.runner, [[self.path, *one] for one in arguments], self.timeout)

    def _list(self, listed) -> list[dict] | None:
        """Return the cards of the list, None when there is none that can be read."""
        tool, answer = self.tool, self.answer
        cards = None
        if listed.hung:
            note_failure(answer, tool, listed, _REASONS)
            return None
        try:
            cards = parse_json_list(listed.stdout)
        except Unreadable as exc:
            note_failure(answer, tool, listed, _REASONS, str(exc))
            if has_none(tool, answer) or tool.reason:
                return None
            (dumped,) = self._run([CSV])
            try:
                cards = parse_csv(dumped.stdout)
            except Unreadable as exc_csv:
                said = "no answer in time" if dumped.hung else str(exc_csv)
                answer.errors.append(f"{command_of(dumped)}: {said}")
                return None
        tool.state = TOOL_OK
        around = text.excerpt(_words_around(listed.stdout), listed.stderr)
        if around:
            tool.excerpt = text.excerpt(tool.excerpt, around)
            answer.errors.append(f"{command_of(listed)}: {around}")
        # A card that serves guests shows their functions too; they are no cards.
        return [card for card in cards if str(entry(card, "device_function_type") or "physical").lower() == "physical"]

    def _read(self, result, parse, otherwise):
        """Return what the parser makes of an answer; an error and ``otherwise`` when it can't be read."""
        try:
            return parse("" if result.hung else result.stdout)
        except Unreadable as exc:
            said = "no answer in time" if result.hung else text.excerpt(result.stderr, limit=300) or str(exc)
            self.answer.errors.append(f"{command_of(result)}: {said}")
            return otherwise

    def _details(self, cards: list[dict]) -> list[dict]:
        """Return the entries with what each card says of itself; one that hangs on it is put into ``hung``."""
        named = [card for card in cards if text.whole_number(entry(card, "device_id")) is not None]
        results = self._run([("discovery", "-d", str(card["device_id"]), "-j") for card in named])
        whole = [card for card in cards if card not in named]
        for card, result in zip(named, results):
            place = address_of(entry(card, "pci_bdf_address"))
            if result.hung:
                self._hang(result, place, card)
                continue
            more = self._read(result, parse_json_card, {})
            whole.append({**card, **{key: value for key, value in more.items() if value not in (None, "")}})
        return whole

    def _hang(self, result, place: str | None, card: dict) -> None:
        note_hang(self.answer, self.tool, result)
        if place:
            self.answer.hung.append(place)
            if card:
                self.answer.last[place] = device(card, None, None)

    def _ask_missing(self, components: dict, measured: dict[int, Readings]) -> None:
        """Ask each card of the bus that has not answered by its address; as a table where its JSON can't be read."""
        places = [place for place in missing(self.functions, self.answer) if place not in self.answer.hung]
        damaged = []
        for place, result in zip(places, self._run([("discovery", "-d", place, "-j") for place in places])):
            if result.hung:
                self._hang(result, place, {})
                continue
            card = self._read(result, parse_json_card, None)
            if card is None:
                damaged.append(place)
            else:
                self._add(card, components, measured)
        for result in self._run([("discovery", "-d", place) for place in damaged]):
            card = self._read(result, parse_table, None)
            if card is not None:
                self._add(card, components, measured)

    def _add(self, card: dict, components: dict, measured: dict[int, Readings]) -> None:
        number = text.whole_number(entry(card, "device_id"))
        found = device(card, components.get(number), measured.get(number) if number is not None else None)
        # The tool lists a card that its library does not see, without a number.
        if found.pci_address and found.pci_address not in {one.pci_address for one in self.answer.devices}:
            slot = text.clean(entry(card, "pci_slot"))
            if slot and slot != "0":
                self.slots[found.pci_address] = slot
            self.answer.devices.append(found)
