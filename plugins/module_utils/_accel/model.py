# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""The shapes that cross from room to room: one for every vendor, check and report.

Everything here is plain data. ``as_dict`` gives what modules return and records keep; the keys
are the field names, types never vary and lists are always lists. docs/data.md shows each shape.
"""

from __future__ import annotations

from dataclasses import dataclass, field

# Verdicts of a finding. ``unknown`` (could not be measured) never counts as a pass.
PASS = "pass"
FAIL = "fail"
UNKNOWN = "unknown"
NOT_APPLICABLE = "not_applicable"
VERDICTS = (PASS, FAIL, UNKNOWN, NOT_APPLICABLE)

CRITICAL = "critical"
WARNING = "warning"
SEVERITIES = (CRITICAL, WARNING)

LAYERS = ("device", "network", "storage", "application", "monitoring")

# States of a vendor tool.
TOOL_OK = "ok"
TOOL_ABSENT = "absent"
TOOL_FAILED = "failed"
TOOL_HUNG = "hung"
TOOL_UNREADABLE = "unreadable"

# How errors of an observation begin that mean something to the judges: a declared map that was not used proves no
# slot; that firmware has no believable table is ordinary on real servers.
SLOT_MAP_ERROR = "declared slot map not used: "
SLOT_TABLE_ERROR = "slot table unusable: "
# What no tool is to blame for: the map, and records, which are named by their path where they are damaged.
FOREIGN_RECORD_ERROR = "the slot record is that of "
HOST_ERRORS = (SLOT_MAP_ERROR, FOREIGN_RECORD_ERROR, "/")

# Where a slot name came from, in the order of trust.
SLOT_SOURCES = ("declared", "vendor", "sysfs", "dmi")


@dataclass
class Link:
    """PCIe link of a device. Speeds in GT/s, widths in lanes, None where nothing answered."""

    speed_gts: float | None = None
    width: int | None = None
    max_speed_gts: float | None = None
    max_width: int | None = None
    # Address of the bridge above the device that holds the link below what the device can do.
    limited_by: str | None = None
    # True when the device was working while the link was read, False when idle, None when not told.
    under_load: bool | None = None
    # Address of the nearest bridge above the device whose files did not answer: what it leaves is not known.
    unread_hop: str | None = None


@dataclass
class SlotName:
    """Name of the physical slot, which source gave it, and what other sources said."""

    label: str | None = None
    source: str | None = None
    # Each: {"label": ..., "source": ...}; sources that disagree, or rivals none of which is unique.
    candidates: list[dict] = field(default_factory=list)


@dataclass
class Health:
    """State of a device: ok, warning, critical or unknown, and the reasons in words.

    ``codes`` are the fault codes that the device tells now, as ``kernel_log.meaning`` knows them ("ascend 0x80e01801");
    the reason that a code stands for holds its number.
    """

    state: str = "unknown"
    reasons: list[str] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)


# What keeps a device below its clocks, whatever the vendor calls it.
THROTTLES = ("idle", "application_clocks", "power_cap", "sync_boost", "thermal", "power_brake", "hardware", "display")

# State of the memory repair of a device: nothing to do; repaired after a reset or reboot; can't be repaired any
# more; this product can't repair; not told.
REPAIRS = ("ok", "reset", "replace", "not_supported", "unknown")

# What a device says of its partitions where it is not split.
WHOLE, NOT_SPLITTABLE = "whole", "not_splittable"


@dataclass
class Ecc:
    """Memory errors as counted by the device, None where it does not count them.

    ``volatile`` since the driver was loaded, ``aggregate`` over the life of the device. ``sram`` are errors in
    caches and registers, where no row can be remapped. ``unread`` names counters that the device has and that could not
    be read: what else was counted proves nothing then.
    """

    corrected_volatile: int | None = None
    uncorrected_volatile: int | None = None
    corrected_aggregate: int | None = None
    uncorrected_aggregate: int | None = None
    sram_uncorrected_aggregate: int | None = None
    unread: list[str] = field(default_factory=list)


@dataclass
class Repair:
    """Memory repair: rows remapped or pages retired so far, and ``state``, one of REPAIRS."""

    state: str = "unknown"
    remapped_rows: int | None = None
    retired_pages: int | None = None


@dataclass
class Readings:
    """What the device measured when it was asked, None where it was not told.

    Limits are the device's own: ``temperature_limit_c`` is where it slows down. ``throttles`` are words of THROTTLES
    that are active, None where nothing is told of them; ``throttle_mask`` is the vendor's own bit mask.
    """

    temperature_c: float | None = None
    temperature_limit_c: float | None = None
    memory_temperature_c: float | None = None
    power_watts: float | None = None
    power_limit_watts: float | None = None
    utilization_percent: float | None = None
    memory_used_bytes: int | None = None
    throttles: list[str] | None = None
    throttle_mask: int | None = None


@dataclass
class Device:
    """One physical device (chip with its own PCI function), as far as anything answered.

    ``serial`` names the board, which two or four devices may share. ``identity`` says which of
    uuid, serial, address identifies the device: the first that is present and unique on the host.
    Sizes are in bytes. ``logical`` lists partitions (MIG instances, compute partitions, vNPUs), each with ``kind``,
    ``index``, ``uuid`` and ``profile``. ``partition_mode`` is the vendor's word for how it is split ("MIG", "CPX",
    "vNPU"), WHOLE where it says that it is not, NOT_SPLITTABLE where this product can't be, None where nothing tells.
    ``ports`` are its links to other devices (NVLink, xGMI, HCCS), each
    ``{"kind", "index", "state": "up" | "down" | "disabled" | "unknown", "speed_gbps", "peer"}``;
    ``ports_told`` is False where they were asked for and not told, or not gathered: then an empty list does not
    mean "none".
    """

    index: int | None = None
    vendor: str = ""
    model: str | None = None
    serial: str | None = None
    uuid: str | None = None
    identity: str = "address"
    pci_address: str | None = None
    pci_id: str | None = None
    slot: SlotName = field(default_factory=SlotName)
    module_id: int | None = None
    numa_node: int | None = None
    device_nodes: list[str] = field(default_factory=list)
    driver_version: str | None = None
    firmware_version: str | None = None
    memory_bytes: int | None = None
    link: Link = field(default_factory=Link)
    logical: list[dict] = field(default_factory=list)
    partition_mode: str | None = None
    health: Health = field(default_factory=Health)
    ecc: Ecc = field(default_factory=Ecc)
    repair: Repair = field(default_factory=Repair)
    readings: Readings = field(default_factory=Readings)
    ports: list[dict] = field(default_factory=list)
    ports_told: bool = True
    processes: list[dict] = field(default_factory=list)
    source: str = "sysfs"


@dataclass
class Tool:
    """One vendor tool as it was found: state ok, absent, failed, hung or unreadable.

    ``reason`` is a word for a known cause (driver_library_mismatch, driver_not_loaded,
    driver_not_ready, library_missing, in_use_elsewhere, no_permission, no_devices), None when none is known.
    ``excerpt`` is the raw text that is kept as evidence.
    """

    name: str
    vendor: str = ""
    version: str | None = None
    state: str = TOOL_OK
    reason: str | None = None
    rc: int | None = None
    excerpt: str = ""
    command: str = ""


@dataclass
class Driver:
    """Kernel module and user-space library of one vendor, as far as each tells its version."""

    vendor: str
    kernel_version: str | None = None
    library_version: str | None = None
    loaded: bool | None = None


@dataclass
class Observation:
    """What a host shows: the return value of ``accelerator_info``.

    ``count`` is the number of physical devices the vendor tools answered for (None when they
    could not tell), ``bus_count`` what PCI shows (None when the bus could not be read, which is
    not 0), ``unanswered`` the devices on the bus that did not answer:
    ``{"pci_address", "vendor", "pci_id", "state": "lost" | "not_reported", "reason",
    "model", "serial", "uuid", "firmware_version", "slot": SlotName, "link": Link, "numa_node", "last"}``.
    ``kernel_log`` is ``{"state": "ok" | "unknown" | "shared" | "not_gathered", "source", "reason"}``,
    ``kernel_events`` what kernel_log.py found in it. ``holders_complete`` is False when not all processes could be
    asked what they have open, None when none were.
    """

    devices: list[Device] = field(default_factory=list)
    count: int | None = None
    bus_count: int | None = None
    logical_count: int | None = None
    unanswered: list[dict] = field(default_factory=list)
    tools: list[Tool] = field(default_factory=list)
    drivers: list[Driver] = field(default_factory=list)
    kernel_log: dict = field(default_factory=lambda: {"state": "not_gathered", "source": None, "reason": None})
    kernel_events: list[dict] = field(default_factory=list)
    holders_complete: bool | None = None
    errors: list[str] = field(default_factory=list)


@dataclass
class Finding:
    """One judged difference between what should be and what is.

    ``check`` is the stable dotted id, ``hint`` is ``<check>.<cause>``, a key of ``hints.CAUSES``.
    ``subject`` is the slot name of a card (its PCI address when it has none) or the host. ``cards`` are such names
    where one finding of the host is about several of its cards.
    ``blocked_by`` names the failed check that made this one unknown.
    ``vendor`` is that of the card, or of all cards of the host: what to do differs by it. None where there is no one.
    """

    check: str
    host: str
    subject: str
    verdict: str
    hint: str
    layer: str = "device"
    severity: str = CRITICAL
    expected: object = None
    observed: object = None
    message: str = ""
    evidence: list[dict] = field(default_factory=list)
    blocked_by: str | None = None
    cards: list[str] = field(default_factory=list)
    vendor: str | None = None
    at: str | None = None


def as_dict(thing: object) -> dict:
    """Return a dataclass of this file as plain dictionaries and lists."""
    # What is in them is plain data: copying each word, as ``dataclasses.asdict`` does, takes three times as long.
    return {name: _plain(value) for name, value in vars(thing).items()}


def _plain(value: object) -> object:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return as_dict(value) if hasattr(value, "__dataclass_fields__") else value


def dict_of(value: object) -> dict:
    """Return a value that should be a dictionary, an empty one for any other."""
    return value if isinstance(value, dict) else {}


def dicts_of(value: object) -> list[dict]:
    """Return the dictionaries of a value that should be a list of them."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, (list, tuple)) else []


def to_int(value: object) -> int | None:
    """Return a declared number as int ("8" stays a string in an inventory), None when it is none."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return value
    try:
        return int(str(value).strip())
    except ValueError:
        return None


def to_float(value: object) -> float | None:
    """Return a declared number as float, None when it is none."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(str(value).strip())
    except ValueError:
        return None
