# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Intel Gaudi: hl-smi, its CSV, its listing and its table.

A healthy host costs two commands that run at the same time: ``hl-smi -Q <fields> -f csv,noheader`` for what identifies
the cards and their counters, ``hl-smi -L`` for what only it tells (state of the module, link, throttling, replaced
rows). Either makes up for the other. The table is read where neither can be; it has no serial. Where they hang or
leave a card out, each card is asked by its address, so that one sick card never hides the others.

Recorded: CSV of 1.22 (other fields than are asked for here), the firmware line of the listing, tables of 1.12, 1.17 and
1.21. The listing is read after one that a user published (1.12); the names of the CSV fields are those of the vendor's
guide. Never recorded: a sick card, a process row, a CSV cell with an error in it.
"""

from __future__ import annotations

import re
from collections import Counter

from .. import pci, text
from ..model import TOOL_ABSENT, TOOL_FAILED, TOOL_OK, Device, Ecc, Health, Link, Readings, Repair, Tool
from ..parallel import command_of, run_all
from ..runner import Result, Runner
from ..tools import (
    Form,
    Reply,
    add_driver,
    address_of,
    ask,
    ask_each,
    expected,
    has_none,
    missing,
    note_failure,
    note_hang,
    rows,
    sick,
    take,
    worst,
)
from .base import FILE, PACKAGE, PACKAGE_VERSION, Answer, ContainerAccess, Unreadable, Vendor, VersionSource

CSV_FIELDS = (
    "index",
    "module_id",
    "bus_id",
    "serial",
    "uuid",
    "name",
    "driver_version",
    "memory.total",
    "memory.used",
    "temperature.aip",
    "utilization.aip",
    "power.draw",
    "power.max",
    "ecc.errors.corrected.volatile.total",
    "ecc.errors.uncorrected.volatile.total",
    "ecc.errors.corrected.aggregate.total",
    "ecc.errors.uncorrected.aggregate.total",
)
QUERY = ("-Q", ",".join(CSV_FIELDS), "-f", "csv,noheader")
LISTING = ("-L",)

_REASONS = (
    ("permission denied", "no_permission"),
    # One sentence for two causes; the module of the kernel tells which.
    ("no aips available", "no_devices"),
    ("driver is not loaded", "driver_not_loaded"),
)
_BLOCK = re.compile(r"^\[(?P<index>\d{1,9})\] AIP(?: \(\w+\))? (?P<address>[0-9a-fA-F:.]+)\s*$")
_LIST_HEAD = re.compile(r"^(Driver Version|HL-SMI Version|Attached AIPs)\s*:\s*(\S+)", re.MULTILINE)
_TABLE_HEAD = re.compile(r"^\|\s*(HL-SMI Version|Driver Version):\s*(\S+)\s*\|", re.MULTILINE)
_FIRMWARE = re.compile(r"\bhl-gaudi\S+")
_UPPER = re.compile(r"(?P<index>\d{1,9})\s+(?P<name>\S.*?)\s+(?P<persistence>\S+)")
_LOWER = re.compile(r"(?P<fan>\S+)\s+(?P<heat>\S+)\s+(?P<perf>\S+)\s+(?P<power>\S+)\s*/\s*(?P<limit>\S+)")
_PROCESS = re.compile(r"(\d{1,9})\s+(\d{1,9})\s+\S+\s+(\S.*?)\s+(\d{1,9}\s*MiB)")
# Mezzanine cards; those of the other names are PCIe cards, whose module number names no place.
_MEZZANINE = re.compile(r"^HL-\d(?:05|25)")
_UNCORRECTED = ("ecc.errors.uncorrected.volatile.total", "ecc.errors.uncorrected.aggregate.total")
_THROTTLES = {"HW Slowdown": "hardware", "Thermal Slowdown": "thermal", "Power Slowdown": "power_brake"}


def parse_csv(output: str, fields: tuple[str, ...] = CSV_FIELDS) -> dict[str, dict[str, str]]:
    """Return the cells of each row of ``-Q <fields> -f csv,noheader`` by address; Unreadable if a row is not one.

    Cells carry units ("98304 MiB"). Nothing is quoted, so a row with more or fewer cells can't be read.
    """
    if output.strip() and not output.endswith("\n"):
        raise Unreadable("the last row has no end")
    cards: dict[str, dict[str, str]] = {}
    for line in output.splitlines():
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split(",")]
        card = dict(zip(fields, cells))
        # Without an address (other fields) the number stands for the card.
        key = address_of(card.get("bus_id")) if "bus_id" in fields else card.get("index")
        if len(cells) != len(fields) or key is None or text.whole_number(card.get("index")) is None or key in cards:
            raise Unreadable(f"not a row of {len(fields)} values: {text.excerpt(line, limit=200)}")
        cards[key] = card
    if not cards:
        raise Unreadable("no row in the answer")
    return cards


def parse_list(output: str) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """Return the fields of each card of ``-L`` by address, and those of its head; Unreadable without any card.

    Names repeat under different parents, so a field is named by its path ("PCI/AIP Link Info/Link Speed/Max"). A value
    may stand on the line below its name. A last line without an end was cut off. Where the last card tells less than
    the first, or not of replaced rows, so may its last section have been: half of its sensors is not what it has.
    """
    output = output[: output.rfind("\n") + 1]
    cards: dict[str, dict[str, str]] = {}
    fields: dict[str, str] | None = None
    stack: list[tuple[int, str]] = []
    for line in text.plain(output).expandtabs().splitlines():
        block = _BLOCK.match(line)
        if block:
            place = address_of(block["address"])
            if place is None or place in cards:
                raise Unreadable(f"not a device: {text.excerpt(line, limit=200)}")
            fields, stack = cards.setdefault(place, {"index": block["index"]}), []
            continue
        if fields is None or not line.strip():
            continue
        indent, (key, value) = len(line) - len(line.lstrip()), text.name_and_value(line)
        while stack and stack[-1][0] >= indent:
            stack.pop()
        path = [name for _indent, name in stack]
        if value is None:
            stack.append((indent, key))
        else:
            fields.setdefault("/".join([*path, key] if key else path), value)
    if not cards:
        raise Unreadable("no card in the answer")
    first, last = next(iter(cards.values())), fields or {}
    if set(first) - set(last) or "Replaced Rows/Pending" not in last:
        # "Power Readings (54V PSU)" and "(12V PSU)" are one section.
        ended = list(last)[-1].partition("/")
        for name in [name for name in last if ended[1] and name.startswith(ended[0].partition(" (")[0])]:
            del last[name]
    return cards, dict(_LIST_HEAD.findall(output))


def device(row: dict[str, str], listed: dict[str, str], place: str | None, driver: str | None) -> Device:
    """Return one device from its CSV row and its part of the listing, either of which may be empty."""

    def told(name: str, *paths: str) -> str | None:
        values = [row.get(name), *(listed.get(path) for path in paths)]
        return next((word for word in map(text.clean, values) if word), None)

    ids = re.fullmatch(r"0x1da3([0-9a-f]{4})", listed.get("PCI/Device Id", "").lower())
    firmware = _FIRMWARE.search(listed.get("Firmware [SPI] Version", ""))
    busy = text.number(told("utilization.aip"))
    ecc = Ecc(
        corrected_volatile=text.whole_number(row.get("ecc.errors.corrected.volatile.total")),
        uncorrected_volatile=text.whole_number(row.get("ecc.errors.uncorrected.volatile.total")),
        corrected_aggregate=text.whole_number(row.get("ecc.errors.corrected.aggregate.total")),
        uncorrected_aggregate=text.whole_number(row.get("ecc.errors.uncorrected.aggregate.total")),
    )
    repair = _repair(listed)
    throttles = _throttles(listed)
    version = driver or told("driver_version")
    return Device(
        index=text.whole_number(told("index", "index")),
        vendor="gaudi",
        model=told("name", "Product Name"),
        serial=text.identifier(told("serial", "Serial Number")),
        # The place of the chip on its wafer: long, and of this chip alone.
        uuid=text.identifier(told("uuid", "AIP UUID")),
        pci_address=place,
        pci_id=f"1da3:{ids[1]}" if ids else None,
        module_id=text.whole_number(told("module_id", "Module ID")),
        driver_version=version,
        firmware_version=firmware[0] if firmware else None,
        memory_bytes=text.size_bytes(told("memory.total", "Memory Usage/Total")),
        link=Link(
            speed_gts=pci.speed_gts(listed.get("PCI/AIP Link Info/Link Speed/Current")),
            width=pci.width(listed.get("PCI/AIP Link Info/Link Width/Current")),
            max_speed_gts=pci.speed_gts(listed.get("PCI/AIP Link Info/Link Speed/Max")),
            max_width=pci.width(listed.get("PCI/AIP Link Info/Link Width/Max")),
            under_load=None if busy is None else busy > 0,
        ),
        health=_health({**listed, **row}, listed.get("Module status"), ecc, repair, throttles),
        ecc=ecc,
        repair=repair,
        readings=Readings(
            temperature_c=_first(text.celsius(row.get("temperature.aip")), _hottest(listed, "On Chip")),
            memory_temperature_c=_hottest(listed, "HBM"),
            power_watts=_first(text.watts(row.get("power.draw")), _power(listed, "Power Draw")),
            power_limit_watts=_first(text.watts(row.get("power.max")), _power(listed, "Power Limit")),
            utilization_percent=busy,
            memory_used_bytes=text.size_bytes(told("memory.used", "Memory Usage/Used")),
            throttles=throttles,
        ),
        source="hl-smi",
    )


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)


def _hottest(listed: dict[str, str], sensor: str) -> float | None:
    """Return the highest of a kind of sensors ("[ 5] HBM 0 Temp"), None where one that is there can't be read."""
    pattern = re.compile(r"Temperature/\[[^\]]*\] " + sensor)
    told = [value for name, value in listed.items() if pattern.match(name) and text.state_of(value) != text.UNSUPPORTED]
    heats = [heat for heat in map(text.celsius, told) if heat is not None]
    return max(heats, default=None) if len(heats) == len(told) else None


def _power(listed: dict[str, str], name: str) -> float | None:
    """Return the sum over the supplies of 54 V and 12 V, None unless each of them tells a number."""
    watts = [text.watts(value) for path, value in listed.items() if re.match(rf"Power Readings.*/{name}$", path)]
    told = [one for one in watts if one is not None]
    return sum(told) if told and len(told) == len(watts) else None


def _throttles(listed: dict[str, str]) -> list[str] | None:
    words = {name: listed.get(f"Clocks Throttle Reasons/{name}", "").lower() for name in _THROTTLES}
    if not any(word in ("active", "not active") for word in words.values()):
        return None
    return [_THROTTLES[name] for name, word in words.items() if word == "active"]


def _repair(listed: dict[str, str]) -> Repair:
    counts = [text.whole_number(listed.get(f"Replaced Rows/{kind} Bit ECC")) for kind in ("Single", "Double")]
    known = [count for count in counts if count is not None]
    pending = listed.get("Replaced Rows/Pending", "").lower()
    rows_replaced = sum(known) if len(known) == len(counts) else None
    return Repair({"no": "ok", "yes": "reset"}.get(pending, "unknown"), rows_replaced)


def _health(
    fields: dict[str, str], module: str | None, ecc: Ecc, repair: Repair, throttles: list[str] | None
) -> Health:
    """Return the health that the answer proves: a count of errors that is 0, or a module that is operational.

    The latter stands before the bad news of the listing, so it proves something where the end of the listing is there.
    """
    found = sick(fields.items())
    state = text.clean(module)
    if state and state.lower() != "operational":
        found.append(("critical", f"the module is {state}"))
    elif module is not None and state is None:
        found.append(("unknown", f"the tool says of the module: {module or 'nothing'}"))
    unclear = [name for name in _UNCORRECTED if not text.counted(fields.get(name))]
    found += [("unknown", f"{name} is no number: {fields[name]}") for name in unclear]
    if ecc.uncorrected_volatile:
        found.append(("critical", f"{ecc.uncorrected_volatile} uncorrected memory errors since the driver was loaded"))
    if repair.state == "reset":
        found.append(("warning", "rows of the memory are replaced at the next reset"))
    found += [("warning", f"throttled: {word}") for word in throttles or ()]
    return worst(found, (state is not None and repair.state != "unknown") + (ecc.uncorrected_volatile is not None))


def parse_table(output: str) -> Reply:
    """Return the devices of plain ``hl-smi``: two rows each; Unreadable for a row that is neither.

    The last column of the upper row counts ECC errors up to 1.20; as "Uncor-Events" (1.21) it counts more than those.
    """
    head = {name: text.clean(word) for name, word in _TABLE_HEAD.findall(output)}
    table = rows(output)
    titles = next((cells for cells in table if len(cells) == 3 and cells[0].startswith("AIP ")), None)
    if titles is None or not head or not titles[1].startswith("Bus-Id") or not titles[2].startswith("Volatile Unco"):
        raise Unreadable("no table of hl-smi in the answer")
    devices: list[Device] = []
    upper: list[str] | None = None
    ended = False
    for cells in table:
        if cells[0].startswith("Compute Processes:"):
            ended = True
        elif ended:
            found = _PROCESS.fullmatch(cells[0])
            for one in devices:
                if found and one.index == int(found[1]):
                    memory = text.size_bytes(found[4])
                    one.processes.append({"pid": int(found[2]), "name": text.clean(found[3]), "memory_bytes": memory})
        elif len(cells) != 3 or cells is titles or cells[1].startswith("Memory-Usage"):
            continue
        elif upper is None:
            upper = cells
        else:
            devices.append(_from_rows(upper, cells, head, "ECC" in titles[2]))
            upper = None
    if upper is not None or not ended:
        raise Unreadable("the table has no end")
    return Reply(devices, tool_version=head.get("HL-SMI Version"), driver_version=head.get("Driver Version"))


def _from_rows(upper: list[str], lower: list[str], head: dict[str, str | None], counts_ecc: bool) -> Device:
    first, second = _UPPER.fullmatch(upper[0]), _LOWER.fullmatch(lower[0])
    place = address_of((upper[1].split() or [""])[0])
    used, slash, total = lower[1].partition("/")
    load = lower[2].split()
    if not first or not second or place is None or not slash or not load:
        raise Unreadable(f"not a device: {text.excerpt(' | '.join(upper + lower), limit=200)}")
    busy = text.number(load[0])
    events = text.whole_number(upper[2])
    found = sick([*second.groupdict().items(), ("memory", used), ("load", load[0]), ("errors", upper[2])])
    if events:
        kind = "uncorrected memory errors" if counts_ecc else "uncorrectable events"
        found.append(("critical" if counts_ecc else "warning", f"{events} {kind} since the driver was loaded"))
    return Device(
        index=int(first["index"]),
        vendor="gaudi",
        model=text.clean(first["name"]),
        pci_address=place,
        driver_version=head.get("Driver Version"),
        firmware_version=None,
        memory_bytes=text.size_bytes(total),
        link=Link(under_load=None if busy is None else busy > 0),
        health=worst(found, int(events is not None)),
        ecc=Ecc(uncorrected_volatile=events if counts_ecc else None),
        readings=Readings(
            temperature_c=text.celsius(second["heat"]),
            power_watts=text.watts(second["power"]),
            power_limit_watts=text.watts(second["limit"]),
            utilization_percent=busy,
            memory_used_bytes=text.size_bytes(used),
        ),
        source=f"hl-smi {head.get('HL-SMI Version') or ''}".strip(),
    )


def slot_labels(devices: list[Device]) -> dict[str, str]:
    """Return ``OAM<n>`` by address for mezzanine cards, when all of them say different numbers."""
    cards = [one for one in devices if one.module_id is not None and _MEZZANINE.match(one.model or "")]
    counts = Counter(one.module_id for one in cards)
    if any(count > 1 for count in counts.values()):
        return {}
    return {one.pci_address: f"OAM{one.module_id}" for one in cards if one.pci_address}


# The packages of one release have one number. HCCL and the runtime are parts of the graph compiler's package.
_VERSIONS = (
    VersionSource("firmware_package", "habanalabs", PACKAGE, "habanalabs-firmware", PACKAGE_VERSION),
    VersionSource("driver_kernel", "gaudi", FILE, "/sys/module/habanalabs/version", r"^(\d\S*)"),
    VersionSource("driver_library", "gaudi", PACKAGE, "habanalabs-thunk", PACKAGE_VERSION),
    VersionSource("runtime", "synapse", PACKAGE, "habanalabs-graph", PACKAGE_VERSION),
    VersionSource("collectives", "hccl-gaudi", PACKAGE, "habanalabs-graph", PACKAGE_VERSION),
    VersionSource(
        "container_toolkit", "habana-container-runtime", PACKAGE, "habanalabs-container-runtime", PACKAGE_VERSION
    ),
)


# The kind is that of Intel's driver for Kubernetes; a card's control node is its own, none is common.
_CONTAINER = ContainerAccess(kind="intel.com/gaudi")


class Gaudi(Vendor):
    """Intel Gaudi, and Goya before it."""

    name = "gaudi"
    pci_vendors = ("1da3",)
    pci_classes = ("1200",)
    kernel_modules = ("habanalabs",)
    versions = _VERSIONS
    container = _CONTAINER

    def query(self, runner: Runner, functions: list[pci.Function], timeout_seconds: float) -> Answer:
        """Ask hl-smi; see the module for the order."""
        answer = Answer()
        tool = Tool("hl-smi", self.name, state=TOOL_ABSENT, command=f"hl-smi {' '.join(QUERY)}")
        answer.tools.append(tool)
        path = runner.which("hl-smi")
        if path is not None:
            _ask(runner, path, functions, tool, answer, timeout_seconds)
            for one in answer.devices:
                one.source = f"hl-smi {tool.version or ''}".strip()
            answer.slot_labels = slot_labels(answer.devices)
        driver = add_driver(runner, self.name, self.kernel_modules, answer, functions)
        if tool.reason == "no_devices" and not (driver and driver.loaded):
            tool.state, tool.reason, answer.count = TOOL_FAILED, "driver_not_loaded", None
            answer.errors.append(f"{tool.command}: {tool.excerpt}")
        return answer

    def device_nodes(self, runner: Runner, device: Device) -> list[str]:
        """Return /dev/accel/accelN (older drivers: /dev/hlN) and its control node."""
        if device.pci_address is None:
            return []
        base = f"/sys/bus/pci/devices/{device.pci_address}"
        names = [path.rpartition("/")[2] for path in runner.glob(f"{base}/accel/accel*")]
        nodes = [f"/dev/accel/{name}" for name in names]
        nodes += ["/dev/" + path.rpartition("/")[2] for path in runner.glob(f"{base}/habanalabs/hl*")]
        return [node for node in nodes if runner.glob(node)]


def _ask(
    runner: Runner, path: str, functions: list[pci.Function], tool: Tool, answer: Answer, timeout_seconds: float
) -> None:
    queried, listed = run_all(runner, [[path, *QUERY], [path, *LISTING]], timeout_seconds)
    tool.rc = queried.rc
    table, listing = _read(queried, parse_csv), _read(listed, parse_list)
    cards, head = listing if isinstance(listing, tuple) else ({}, {})
    known = expected(functions)
    if isinstance(table, dict) or cards:
        tool.version = text.clean(head.get("HL-SMI Version"))
        row_of = table if isinstance(table, dict) else {}
        driver = text.clean(head.get("Driver Version"))
        places = [*row_of, *(place for place in cards if place not in row_of)]
        devices = [device(row_of.get(one, {}), cards.get(one, {}), one, driver) for one in places]
        tool.command, tool.state = command_of(queried if row_of else listed), TOOL_OK
        take(answer, tool, Reply(devices, text.whole_number(head.get("Attached AIPs"))))
        for failed, result in ((table, queried), (listing, listed)):
            if isinstance(failed, str):
                answer.errors.append(f"{command_of(result)}: {failed}")
                tool.excerpt = text.excerpt(tool.excerpt, result.stdout, result.stderr)
        if listed.hung:
            _ask_listing(runner, path, tool, answer, timeout_seconds)
    else:
        note_failure(answer, tool, queried, _REASONS, str(table))
        has_none(tool, answer)
        if not queried.hung and tool.reason is None:
            ask(runner, [path], [Form((), parse_table)], tool, answer, timeout_seconds, _REASONS)
    if tool.reason is None:
        alone: dict[str | int, tuple[str, ...]] = {
            place: (*QUERY, "-i", place) for place in missing(functions, answer) if place not in answer.hung
        }
        if alone:
            ask_each(runner, [path], alone, _one_row, known, tool, answer, timeout_seconds)


def _read(result: Result, parse):
    """Return what the parser makes of an answer, or why it makes nothing of it."""
    if result.hung:
        return "no answer in time"
    try:
        return parse(result.stdout)
    except Unreadable as exc:
        return text.excerpt(result.stderr, limit=300) or str(exc)


def _one_row(output: str) -> Reply:
    return Reply([device(row, {}, place, None) for place, row in parse_csv(output).items()])


def _ask_listing(runner: Runner, path: str, tool: Tool, answer: Answer, timeout_seconds: float) -> None:
    """Ask each card for its part of the listing, where the whole hangs; a card that hangs keeps what it told before."""
    by_place = {one.pci_address: one for one in answer.devices if one.pci_address}
    commands = [[path, *LISTING, "-i", place] for place in by_place]
    for place, result in zip(by_place, run_all(runner, commands, timeout_seconds)):
        if result.hung:
            note_hang(answer, tool, result)
            answer.hung.append(place)
            answer.last[place] = by_place[place]
            continue
        listing = _read(result, parse_list)
        if isinstance(listing, str):
            answer.errors.append(f"{command_of(result)}: {listing}")
            continue
        _add_listing(by_place[place], listing[0].get(place, {}))
    answer.devices = [one for one in answer.devices if one.pci_address not in answer.hung]
    answer.count = len(answer.devices)
    if not answer.hung:
        tool.state = TOOL_OK


def _add_listing(one: Device, listed: dict[str, str]) -> None:
    """Add to a device what only the listing tells."""
    more = device({}, listed, one.pci_address, one.driver_version)
    one.pci_id, one.firmware_version = more.pci_id, more.firmware_version
    one.repair, one.readings.throttles = more.repair, more.readings.throttles
    one.readings.memory_temperature_c = more.readings.memory_temperature_c
    one.link = Link(
        more.link.speed_gts, more.link.width, more.link.max_speed_gts, more.link.max_width, None, one.link.under_load
    )
    if more.health.state in ("warning", "critical") or one.health.state == "unknown":
        reasons = [*one.health.reasons, *more.health.reasons]
        one.health = Health(max(one.health.state, more.health.state, key=_rank), reasons)


def _rank(state: str) -> int:
    return ("unknown", "ok", "warning", "critical").index(state)
