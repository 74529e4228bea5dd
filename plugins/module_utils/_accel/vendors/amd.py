# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""AMD: amd-smi, then rocm-smi; what neither tells comes from sysfs (the probe's part).

A healthy host costs two commands that run at the same time, ``amd-smi static --json`` and ``metric --json``.
``list`` is asked only where ``static`` leaves out the addresses (some releases do) or fails. What failed for
all is asked again for each card on its own (``-g``, by number or, where no number is known, by address), so
that one sick card does not hide the others. The exit code of neither tool can be trusted (0 with the driver
absent has been seen), so only what can be read counts.

One card is one ``Device``. A card that is split (DPX, QPX, CPX) is listed once a partition; the partitions
differ in the function number of the reported address, which PCI does not know, so entries are put together by
domain:bus:device. Bad pages of the memory come from the file of the kernel that ``amd-smi bad-pages`` prints, which
saves a command a host. Integrated graphics are judged by their PCI class like any other function of the vendor.

Sources: the amd-smi and rocm-smi documentation and change log (ROCm/amdsmi), recorded output of ROCm 5 to 7.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass, field

from .. import pci, text
from ..model import (
    NOT_SPLITTABLE,
    TOOL_ABSENT,
    TOOL_HUNG,
    TOOL_OK,
    TOOL_UNREADABLE,
    WHOLE,
    Device,
    Ecc,
    Health,
    Link,
    Readings,
    Repair,
    Tool,
)
from ..parallel import command_of, run_all
from ..tools import add_driver, add_error, address_of, drm_nodes, reason_of, settle, split_json, tell_beside
from . import amd_xgmi
from .base import COMMAND, FILE, PACKAGE, PACKAGE_VERSION, Answer, ContainerAccess, Unreadable, Vendor, VersionSource

ROCM_SMI_OPTIONS = (
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
    "--showuse",
    "--json",
)

# Text of the tools -> word of ``Tool.reason``, the first that matches.
_REASONS = (
    (
        "not found in modules|drivers? not (?:initialized|loaded)|STATUS_(?:NOT_INIT|DRIVER_NOT_LOADED)",
        "driver_not_loaded",
    ),
    ("unable to detect any gpu|no (?:amd )?gpus? (?:detected|found)", "no_devices"),
    ("permission denied|STATUS_NO_PERM|requires? elevation|must be run as root", "no_permission"),
)

# Of these the other tool would say the same.
_DRIVER_REASONS = ("driver_not_loaded", "driver_not_ready")

# Sensor as rocm-smi names it -> as amd-smi does.
_ROCM_SENSORS = {"junction": "hotspot", "edge": "edge", "memory": "mem"}

_BLOCK_LINE = re.compile(r"^(\s*)([^:\s][^:]*):(?:\s+(.*))?$")
_BAD_PAGE = re.compile(r"0x[0-9a-fA-F]{1,16} : 0x[0-9a-fA-F]{1,16} : ([RPF])")
_XCP = re.compile(r"^amdgpu_xcp[._]\d+$")
_DEVICE_KEYS = ("gpu", "cpu", "ai_nic", "nic")
_UNSPLIT = "SPX"
# The products with compute partitions; neither tool nor driver tells a mode of any other.
_SPLITTABLE = re.compile(r"\bMI3\d\d")


@dataclass
class Reading:
    """One answer of a tool: entries by the number of the GPU, each as the tool's JSON has it.

    ``whole`` is False when the answer is no listing at all or was cut off; such entries are not to be
    trusted and are left out. ``around`` is the text before, between and after the data.
    """

    entries: dict[int, dict] = field(default_factory=dict)
    whole: bool = False
    around: str = ""


def read(output: str) -> Reading:
    """Return the GPU entries of ``amd-smi list|static|metric``, JSON or text.

    The JSON root is a list (up to 6.x) or ``{"gpu_data": [...]}`` (7.x); there may be several documents with
    text around them. Entries of one GPU are joined; those of CPUs and NICs are no GPUs and are skipped.
    """
    try:
        documents, around = split_json(output)
    except Unreadable:
        return Reading(around=output)
    if not documents:
        entries = _blocks(output)
        return Reading(entries, bool(entries), "" if entries else output)
    reading = Reading(around=around)
    for document in documents:
        rows = document
        if isinstance(document, dict):
            rows = document.get("gpu_data", [document])
        if not isinstance(rows, list):
            continue
        known = [row for row in rows if isinstance(row, dict) and any(key in row for key in _DEVICE_KEYS)]
        reading.whole = reading.whole or bool(known) or not rows
        for row in known:
            if "gpu" not in row:
                continue
            index = text.whole_number(row["gpu"])
            if index is None:
                return Reading(around=output)
            reading.entries.setdefault(index, {}).update(row)
    return reading


def _blocks(output: str) -> dict[int, dict]:
    """Return the entries of the text form: ``GPU: 0`` and indented ``KEY: value`` lines below it."""
    entries: dict[int, dict] = {}
    stack: list[tuple[int, dict]] = []
    for line in output.splitlines():
        found = _BLOCK_LINE.match(line)
        if not found:
            continue
        indent, key, value = len(found[1]), found[2].strip(), (found[3] or "").strip()
        if not indent:
            stack = []  # CPU, AI_NIC and everything else at the margin ends the GPU before it
            index = text.whole_number(value)
            if key.upper() == "GPU" and index is not None:
                stack = [(0, entries.setdefault(index, {}))]
            continue
        if not stack:
            continue
        while len(stack) > 1 and stack[-1][0] >= indent:
            stack.pop()
        name = key.lower().replace(" ", "_")
        if value:
            stack[-1][1][name] = value
        else:
            child: dict = {}
            stack[-1][1][name] = child
            stack.append((indent, child))
    return entries


def told(entry: object, *path: str) -> str | None:
    """Return one value of an entry as text: ``{"value": 16, "unit": "GT/s"}`` and 16 alike.

    "N/A" may stand where an object is expected; whatever is not there gives None.
    """
    for key in path:
        entry = entry.get(key) if isinstance(entry, dict) else None
    if isinstance(entry, dict):
        value, unit = entry.get("value"), entry.get("unit")
        if value is None or isinstance(value, (dict, list)):
            return None
        return f"{value} {unit}" if unit and text.clean(value) is not None else str(value)
    return None if entry is None or isinstance(entry, list) else str(entry)


def read_rocm(output: str) -> Reading:
    """Return the cards of ``rocm-smi --json`` in the shape of amd-smi's entries (static and metric in one).

    ``cardN`` counts DRM cards, comes unsorted and is only an index. Keys changed their case in 6.1
    ("Card series", "Card Series") and some their name ("GPU ID", "Device ID").
    """
    try:
        documents, around = split_json(output)
    except Unreadable:
        return Reading(around=output)
    reading = Reading(around=around)
    for document in documents:
        if not isinstance(document, dict):
            continue
        system = document.get("system")
        driver = _folded(system).get("driver version") if isinstance(system, dict) else None
        for name, card in document.items():
            found = re.match(r"^card(\d{1,9})$", str(name))
            if found and isinstance(card, dict):
                reading.whole = True
                reading.entries.setdefault(int(found[1]), {}).update(_rocm_entry(int(found[1]), _folded(card), driver))
    return reading


def _folded(values: dict) -> dict[str, str]:
    return {str(key).lower(): str(value) for key, value in values.items() if not isinstance(value, (dict, list))}


def _rocm_entry(index: int, card: dict[str, str], driver: str | None) -> dict:
    # A model may be an id ("0x0c34"), which is no name.
    names = [card.get(key) for key in ("device name", "card series", "card model")]
    memory, used = card.get("vram total memory (b)"), card.get("vram total used memory (b)")
    return {
        "gpu": index,
        "asic": {
            "market_name": next((n for n in names if text.clean(n) and not str(n).startswith("0x")), None),
            "device_id": card.get("device id") or card.get("gpu id"),
            "asic_serial": card.get("unique id"),
        },
        "bus": {"bdf": card.get("pci bus")},
        "board": {"product_serial": card.get("serial number")},
        "vbios": {"version": card.get("vbios version")},
        "driver": {"version": driver},
        "vram": {"size": f"{memory} B" if text.clean(memory) else None},
        "temperature": {name: card.get(f"temperature (sensor {key}) (c)") for key, name in _ROCM_SENSORS.items()},
        "usage": {"gfx_activity": card.get("gpu use (%)")},
        "mem_usage": {"used_vram": f"{used} B" if text.clean(used) else None},
    }


def count_render_nodes(paths: list[str], known: list[str] | None = None) -> tuple[int, int]:
    """Return (cards, logical devices) from what ``/sys/class/drm/renderD*/device`` resolve to.

    A partition but the first is a platform device, ``amdgpu_xcp.N`` or (newer) ``amdgpu_xcp_N``; neither is a
    card. ``known`` leaves out the render nodes of other vendors.
    """
    cards, partitions = set(), 0
    for path in paths:
        name = os.path.basename(path)
        if _XCP.match(name):
            partitions += 1
            continue
        address = address_of(name)
        if address and (known is None or address in known):
            cards.add(address)
    return len(cards), len(cards) + partitions


def short_cards(counts: dict[str, int], expected_logical: int | None = None) -> dict[str, int]:
    """Return how many partitions are missing of each card, from the number listed of each.

    Cards in one mode have equally many: as many as the card with most, or as ``expected_logical`` (all
    that the kernel made) shared out.
    """
    wanted = max(counts.values(), default=0)
    if counts and expected_logical:
        wanted = max(wanted, expected_logical // len(counts))
    return {address: wanted - listed for address, listed in counts.items() if listed < wanted}


def devices(entries: dict[int, dict], metrics: dict[int, dict], known: list[str], source: str) -> list[Device]:
    """Return one ``Device`` a card. ``known`` are the vendor's addresses on the bus.

    An address that PCI knows is a device; one that it does not know is a partition of the device with the same
    domain:bus:device. Of several entries the first value wins: only the first partition carries them all.
    """
    cards: dict[str, list[int]] = {}
    for index in sorted(entries):
        cards.setdefault(_card_of(entries[index], index, known), []).append(index)
    result = []
    for key, indexes in cards.items():
        indexes.sort(key=lambda index: (_partition_id(entries[index]) or 0, index))
        result.append(_device(key, indexes, entries, metrics, source))
    return sorted(result, key=lambda device: device.index if device.index is not None else 0)


def slot_labels(found: list[Device]) -> dict[str, str]:
    """Return ``OAM<n>`` by address: the number of the socket on the base board.

    A number that several cards share names no place, nor does the 0 of a single card.
    """
    ids = Counter(device.module_id for device in found)
    return {
        device.pci_address: f"OAM{device.module_id}"
        for device in found
        if device.pci_address
        and device.module_id is not None
        and ids[device.module_id] == 1
        and (device.module_id > 0 or len(found) > 1)
    }


def _reported(entry: dict) -> str | None:
    """Return the address that the tool gives: ``static`` has it below "bus", ``list`` at the top."""
    return address_of(told(entry, "bus", "bdf")) or address_of(told(entry, "bdf"))


def _card_of(entry: dict, index: int, known: list[str]) -> str:
    """Return the address that stands for the card of an entry, ``gpu <index>`` when it names none."""
    address = _reported(entry)
    if address is None:
        return f"gpu {index}"
    if address in known:
        return address
    card = pci.normalise_device(address)
    return next((other for other in known if pci.normalise_device(other) == card), f"{card}.0")


def _partition_id(entry: dict) -> int | None:
    return text.integer(told(entry, "partition", "partition_id") or told(entry, "partition_id"))


def _partition(
    index: int | None, number: int | None, mode: str | None, memory_mode: str | None, address: str | None
) -> dict:
    return {
        "kind": "partition",
        "index": index,
        "id": number,
        "mode": mode,
        "memory_mode": memory_mode,
        "pci_address": address,
    }


def _device(key: str, indexes: list[int], entries: dict[int, dict], metrics: dict[int, dict], source: str) -> Device:
    members = [entries[index] for index in indexes]

    def first(*path: str) -> str | None:
        return next((word for word in (text.clean(told(member, *path)) for member in members) if word), None)

    def mode(member: dict, *names: str) -> str | None:
        return next((text.clean(told(member, "partition", n)) for n in names if told(member, "partition", n)), None)

    alone = len(indexes) == 1
    logical = [
        _partition(
            index,
            _partition_id(member),
            mode(member, "compute_partition", "accelerator_partition", "accelerator_type"),
            mode(member, "memory_partition"),
            _reported(member),
        )
        for index, member in zip(indexes, members)
    ]
    mode_told = logical[0]["mode"]
    if alone and mode_told in (None, _UNSPLIT):
        logical = []
    oam = text.integer(first("asic", "oam_id"))
    oam = oam if oam is not None and 0 <= oam < 0xFFFF else None
    size = first("vram", "size")
    if size is None:
        totals = (told(metrics.get(index), "mem_usage", "total_vram") for index in indexes)
        size = next((total for total in totals if text.clean(total)), None)
    return Device(
        index=indexes[0],
        vendor="amd",
        model=first("asic", "market_name") or first("board", "product_name"),
        serial=text.identifier(first("board", "product_serial")),
        uuid=_unique_id(first("asic", "asic_serial")),
        pci_address=None if key.startswith("gpu ") else key,
        pci_id=_pci_id(first("asic", "device_id")),
        module_id=oam,
        numa_node=_node(first("numa", "node")),
        driver_version=first("driver", "version"),
        firmware_version=first("ifwi", "version")
        or first("vbios", "version")
        or first("ifwi", "part_number")
        or first("vbios", "part_number"),
        memory_bytes=text.size_bytes(size) or text.size_bytes(size, "MB"),
        link=_link(members[0], metrics.get(indexes[0])),
        logical=logical,
        partition_mode=WHOLE if mode_told == _UNSPLIT else mode_told,
        health=_health([metrics.get(index) for index in indexes]),
        ecc=_ecc([metrics.get(index) for index in indexes]),
        repair=_repair(members),
        readings=_readings(members[0], metrics.get(indexes[0])),
        source=source,
    )


def _unique_id(word: str | None) -> str | None:
    """Return the chip's number in one spelling: amd-smi, rocm-smi and sysfs differ in case and leading zeros."""
    word = text.identifier(word)
    if word is None:
        return None
    try:
        number = int(word, 16)
    except ValueError:
        return word
    return f"0x{number:016x}" if number else None


def _pci_id(device: str | None) -> str | None:
    found = re.match(r"^(?:0x)?([0-9a-f]{1,4})$", (device or "").lower())
    return f"1002:{found[1].zfill(4)}" if found else None


def _node(word: str | None) -> int | None:
    node = text.integer(word)
    return node if node is not None and node >= 0 else None


def _link(entry: dict, metric: dict | None) -> Link:
    """Return what the tool told of the link; sysfs, where it answers, knows better."""

    def speed(*path: str, of: dict | None) -> float | None:
        found = text.number(told(of, *path))
        # Given in GT/s, by some releases in MT/s.
        return pci.speed_gts(found / 1000 if found and found >= 1000 else found)

    activity = text.number(told(metric, "usage", "gfx_activity"))
    return Link(
        speed_gts=speed("pcie", "speed", of=metric),
        width=pci.width(told(metric, "pcie", "width")),
        max_speed_gts=speed("bus", "max_pcie_speed", of=entry),
        max_width=pci.width(told(entry, "bus", "max_pcie_width")),
        under_load=None if activity is None else activity > 0,
    )


def _health(metrics: list[dict | None]) -> Health:
    """Return what the tool concludes itself; ok only when live values were read.

    Uncorrectable errors and retired pages are judged by checks of their own. Error counts are those since the driver
    was loaded. Cards without ECC print N/A, which is no fault.
    """
    deferred = [text.integer(told(metric, "ecc", "total_deferred_count")) for metric in metrics]
    warning = [f"{count} deferred memory errors since the driver was loaded" for count in deferred if count]
    if warning:
        return Health("warning", _unique(warning))
    if not any(metrics):
        return Health("unknown", ["no live values: the tool gave none for this card"])
    if not any(_is_live(metric) for metric in metrics):
        return Health("unknown", ["no live values: temperature, power and use cannot be read"])
    return Health("ok")


def _ecc(metrics: list[dict | None]) -> Ecc:
    """Return the counts since the driver was loaded, the highest that any partition shows: they share the memory."""

    names = ("total_correctable_count", "total_uncorrectable_count")
    words = {name: [told(metric, "ecc", name) for metric in metrics] for name in names}

    def highest(name: str) -> int | None:
        counts = [text.count(word) for word in words[name]]
        return max((count for count in counts if count is not None), default=None)

    return Ecc(
        corrected_volatile=highest(names[0]),
        uncorrected_volatile=highest(names[1]),
        unread=[name for name in names if any(map(text.uncounted, words[name]))],
    )


def _repair(members: list[dict]) -> Repair:
    """Return the state of the page retirement, as far as this release tells whether its threshold is passed."""
    words = [(told(member, "ras", "bad_page_threshold_exceeded") or "").lower() for member in members]
    if any(word in ("true", "yes") for word in words):
        return Repair("replace")
    return Repair("ok" if any(word in ("false", "no") for word in words) else "unknown")


def read_bad_pages(output: str) -> dict[str, int]:
    """Return how many pages of the memory are bad, by what became of each: R, P or F; Unreadable for other text.

    The kernel's ``ras/gpu_vram_bad_pages``, a line a page: ``0x0001a2b3 : 0x00001000 : R`` (page, size, flag). R is
    retired, P will be when the driver is loaded again, F could not be. Source: amdgpu_ras.c; ``amd-smi bad-pages``
    prints the same file as RETIRED, PENDING and UN_RES.
    """
    counts = dict.fromkeys("RPF", 0)
    for line in filter(None, map(str.strip, output.splitlines())):
        found = _BAD_PAGE.fullmatch(line)
        if not found:
            raise Unreadable(f"not a bad page: {text.excerpt(line, limit=100)}")
        counts[found[1]] += 1
    return counts


def _add_bad_pages(runner, device: Device, answer: Answer) -> None:
    """Add the retired pages of a card. They are history; a page that still has to be retired waits for a reset.

    Where the file is there and can't be read, a page may wait, whatever the tool says of its threshold.
    """
    path = f"/sys/bus/pci/devices/{device.pci_address}/ras/gpu_vram_bad_pages"
    told_pages = runner.read(path) if device.pci_address else None
    if told_pages is None and not runner.glob(path):
        return
    try:
        if told_pages is None:
            raise Unreadable("it can't be read")
        counts = read_bad_pages(told_pages)
    except Unreadable as exc:
        answer.errors.append(f"{path}: {exc}")
        if device.repair.state == "ok":
            device.repair.state = "unknown"
        return
    device.repair.retired_pages = counts["R"]
    # The tool's own word for "too many" stays.
    if device.repair.state != "replace":
        device.repair.state = "reset" if counts["P"] or counts["F"] else "ok"


# Violation of ``metric``'s section "throttle" (ROCm 6.3 and later) -> the word for it.
_VIOLATIONS = (
    ("prochot", "hardware"),
    ("ppt", "power_cap"),
    ("socket_thermal", "thermal"),
    ("vr_thermal", "thermal"),
    ("hbm_thermal", "thermal"),
)


def _throttles(metric: dict | None) -> list[str] | None:
    states = {
        name: (told(metric, "throttle", f"{name}_violation_status") or "").lower().replace("_", " ")
        for name, _word in _VIOLATIONS
    }
    if any(state in ("active", "not active") for state in states.values()):
        return _unique([word for name, word in _VIOLATIONS if states[name] == "active"])
    # Older releases say only whether, not why: that it is throttled tells too little to judge.
    return [] if (told(metric, "power", "throttle_status") or "").upper() == "UNTHROTTLED" else None


def _readings(entry: dict, metric: dict | None) -> Readings:
    def number(of: dict | None, *paths: tuple[str, ...]) -> float | None:
        return next((found for found in (text.number(told(of, *path)) for path in paths) if found is not None), None)

    used = told(metric, "mem_usage", "used_vram")
    return Readings(
        temperature_c=number(metric, ("temperature", "hotspot"), ("temperature", "edge")),
        temperature_limit_c=number(
            entry, ("limit", "slowdown_hotspot_temperature"), ("limit", "slowdown_edge_temperature")
        ),
        memory_temperature_c=number(metric, ("temperature", "mem")),
        power_watts=number(metric, ("power", "socket_power")),
        power_limit_watts=number(entry, ("limit", "socket_power_limit"), ("limit", "socket_power")),
        utilization_percent=number(metric, ("usage", "gfx_activity")),
        memory_used_bytes=text.size_bytes(used) or text.size_bytes(used, "MB"),
        throttles=_throttles(metric),
    )


def _is_live(metric: dict | None) -> bool:
    for part in ("temperature", "power", "usage"):
        values = (metric or {}).get(part)
        if isinstance(values, dict) and any(text.number(told(values, key)) is not None for key in values):
            return True
    return False


def _unique(words: list[str]) -> list[str]:
    return list(dict.fromkeys(words))


# Only the DKMS driver has a version file. The name of librccl has the number of ROCm, not that of RCCL; the header
# is there where programs are built.
_VERSIONS = (
    VersionSource("driver_kernel", "amdgpu", FILE, "/sys/module/amdgpu/version", r"^(\d\S*)"),
    VersionSource("firmware_package", "amdgpu", PACKAGE, "amdgpu-dkms-firmware", PACKAGE_VERSION),
    VersionSource("runtime", "rocm", FILE, "/opt/rocm/.info/version", r"^(\d[\w.]*)"),
    VersionSource("runtime", "rocm", FILE, "/opt/rocm-*/.info/version", r"^(\d[\w.]*)"),
    VersionSource("runtime", "rocm", PACKAGE, "rocm-core", r"^(?:\d+:)?(\d+\.\d+\.\d+)"),
    VersionSource(
        "collectives",
        "rccl",
        FILE,
        "/opt/rocm/include/rccl/rccl.h",
        r"#define NCCL_MAJOR (\d+)\s+#define NCCL_MINOR (\d+)\s+#define NCCL_PATCH (\d+)",
    ),
    VersionSource("collectives", "rccl", PACKAGE, "rccl", r"^(\d+\.\d+\.\d+)"),
    VersionSource("container_toolkit", "amd-ctk", COMMAND, "amd-ctk --version", r"version v?(\d\S*)"),
    VersionSource("container_toolkit", "amd-ctk", PACKAGE, "amd-container-toolkit", PACKAGE_VERSION),
)


# The libraries of ROCm belong to the image.
_CONTAINER = ContainerAccess(kind="amd.com/gpu", control_nodes=("/dev/kfd",))


class Amd(Vendor):
    """AMD Instinct and Radeon."""

    name = "amd"
    pci_vendors = ("1002",)
    kernel_modules = ("amdgpu",)
    splits = True
    versions = _VERSIONS
    container = _CONTAINER

    def query(self, runner, functions, timeout_seconds: float) -> Answer:
        """Ask amd-smi, and rocm-smi where amd-smi gave nothing and nothing says that it cannot either."""
        known = [function.address for function in functions]
        answer = Answer()
        _ask_amd_smi(runner, known, timeout_seconds, answer)
        tool = answer.tools[-1]
        # A driver that hangs or is not there does so for both tools.
        if answer.count is None and tool.state != TOOL_HUNG and tool.reason not in _DRIVER_REASONS:
            _ask_rocm_smi(runner, known, timeout_seconds, answer)
        _judge_partitions(runner, known, answer)
        for device in answer.devices:
            _add_bad_pages(runner, device, answer)
        answer.slot_labels = slot_labels(answer.devices)
        # Only the DKMS driver has a version file; the one of the kernel itself has no version of its own.
        add_driver(runner, self.name, self.kernel_modules, answer, functions)
        return answer

    def ask_ports(self, runner, devices: list[Device], timeout_seconds: float, well: bool) -> list[str]:
        """Ask for xGMI."""
        return amd_xgmi.ask(runner, devices, timeout_seconds, well)

    def device_nodes(self, runner, device: Device) -> list[str]:
        """Return the DRM nodes of the card; /dev/kfd is common to all and belongs to none."""
        return drm_nodes(runner, device)


def _ask_amd_smi(runner, known: list[str], timeout_seconds: float, answer: Answer) -> None:
    path = runner.which("amd-smi")
    if path is None:
        answer.tools.append(Tool("amd-smi", vendor="amd", state=TOOL_ABSENT))
        return
    static, metric = run_all(runner, [[path, "static", "--json"], [path, "metric", "--json"]], timeout_seconds)
    tool = _tool("amd-smi", path, runner, static)
    answer.tools.append(tool)
    reading, live = read(static.stdout), read(metric.stdout)
    entries, metrics = reading.entries, live.entries
    if not reading.whole:
        _judge_failure(runner, answer, tool, static)
        if tool.reason:
            return  # the driver says so for every card
    elif not static.hung:
        tell_beside(answer, static)
    addressed = all(_reported(entry) for entry in entries.values())
    if not static.hung and not (reading.whole and addressed):
        # ``list`` would hang where ``static`` did.
        listed = read(runner.run([path, "list", "--json"], timeout_seconds).stdout)
        for index, row in listed.entries.items():
            entries[index] = {**row, **entries.get(index, {})}  # what ``static`` told stays
    if reading.whole and not entries:  # the tool works and says that there is none
        tool.reason, answer.count = "no_devices", 0
        tool.excerpt = text.excerpt(static.stdout, static.stderr)
        return
    hung: dict[str, str] = {}
    if not reading.whole:
        heads = _heads(entries, known) or {address: address for address in known}
        _ask_each(runner, path, "static", heads, entries, timeout_seconds, answer, hung)
    if not entries and not hung:
        return
    if not live.entries:
        answer.errors.append(f"{command_of(metric)} failed, each card was asked on its own: {_said(metric)}")
        heads = {card: head for card, head in _heads(entries, known).items() if card not in hung}
        _ask_each(runner, path, "metric", heads, metrics, timeout_seconds, answer, hung)
    elif not metric.hung:
        tell_beside(answer, metric)
    for found in devices(entries, metrics, known, f"amd-smi {tool.version or ''}".strip()):
        if (found.pci_address or f"gpu {found.index}") not in hung:
            answer.devices.append(found)
        elif found.pci_address:
            answer.last[found.pci_address] = found
    if answer.devices:
        answer.count = len(answer.devices)
    answer.hung.extend(card for card in hung if not card.startswith("gpu "))
    if reading.whole:
        tool.excerpt = text.excerpt(reading.around)
    if hung:
        tool.state = TOOL_HUNG
        lines = [f"{command}: no answer within {timeout_seconds:g} s" for command in hung.values()]
        tool.excerpt = text.excerpt(tool.excerpt, *lines)
    elif answer.devices:
        tool.state = TOOL_OK


def _heads(entries: dict[int, dict], known: list[str]) -> dict[str, int | str]:
    """Return the number of the first entry of each card."""
    heads: dict[str, int | str] = {}
    for index in sorted(entries):
        heads.setdefault(_card_of(entries[index], index, known), index)
    return heads


def _ask_each(
    runner,
    path: str,
    what: str,
    heads: dict[str, int | str],
    into: dict[int, dict],
    timeout_seconds: float,
    answer: Answer,
    hung: dict[str, str],
) -> None:
    """Ask for each card by its number or address; add to ``into``, a card that hangs to ``hung`` with its command."""
    commands = [[path, what, "-g", str(head), "--json"] for head in heads.values()]
    for (card, head), result in zip(heads.items(), run_all(runner, commands, timeout_seconds)):
        told_of = read(result.stdout).entries
        index = next(iter(told_of), None) if isinstance(head, str) else head
        if result.hung:
            hung[card] = command_of(result)
            add_error(answer, result, card=card)
        elif index is None or index not in told_of:
            add_error(answer, result, _said(result), card)
        else:
            tell_beside(answer, result, card)
            named = {"bdf": card} if isinstance(head, str) else {}
            into[index] = {**named, **into.get(index, {}), **told_of[index]}


def _ask_rocm_smi(runner, known: list[str], timeout_seconds: float, answer: Answer) -> None:
    path = runner.which("rocm-smi")
    if path is None:
        answer.tools.append(Tool("rocm-smi", vendor="amd", state=TOOL_ABSENT))
        return
    result = runner.run([path, *ROCM_SMI_OPTIONS], timeout_seconds)
    tool = _tool("rocm-smi", path, runner, result)
    answer.tools.append(tool)
    reading = read_rocm(result.stdout)
    if result.hung or not reading.entries:
        _judge_failure(runner, answer, tool, result)
        return
    for index, entry in reading.entries.items():
        entry["ecc"] = _error_counts(runner, _card_of(entry, index, known))
    answer.devices = devices(reading.entries, reading.entries, known, f"rocm-smi {tool.version or ''}".strip())
    answer.count = len(answer.devices)
    # Its exit code says that one of all that was asked for is not supported, which most cards have.
    tool.excerpt = text.excerpt(reading.around)


def _error_counts(runner, address: str) -> dict:
    """Return the kernel's error counts of a card ("ue: 0", "ce: 0" a block), which rocm-smi has no JSON for.

    Where a block can't be read, only errors that others counted are told: the rest may not be 0.
    """
    total: dict[str, int] = {}
    whole = True
    for path in runner.glob(f"/sys/bus/pci/devices/{address}/ras/*_err_count"):
        counts = re.findall(r"\b(ue|ce|de):\s*(\d{1,18})\b", runner.read(path) or "")
        whole = whole and bool(counts)
        for kind, count in counts:
            total[kind] = total.get(kind, 0) + int(count)
    told_counts = total if whole else {kind: count for kind, count in total.items() if count}
    return {
        "total_correctable_count": told_counts.get("ce"),
        "total_uncorrectable_count": told_counts.get("ue"),
        "total_deferred_count": told_counts.get("de"),
    }


def _judge_partitions(runner, known: list[str], answer: Answer) -> None:
    """Name the cards whose partitions are not all listed; fill in a mode that the tool did not tell."""
    by_mode: dict[str | None, list[Device]] = {}
    for device in answer.devices:
        if device.logical and all(part["mode"] for part in device.logical):
            by_mode.setdefault(device.logical[0]["mode"], []).append(device)
            continue
        mode = text.clean(runner.read(f"/sys/bus/pci/devices/{device.pci_address}/current_compute_partition"))
        device.partition_mode = device.partition_mode or (WHOLE if mode == _UNSPLIT else mode)
        if device.partition_mode is None and device.model and not _SPLITTABLE.search(device.model):
            device.partition_mode = NOT_SPLITTABLE
        if not device.logical and mode not in (None, _UNSPLIT):
            # One entry of a card that the kernel calls split: the tool lists its first partition only.
            device.logical = [_partition(device.index, None, None, None, device.pci_address)]
        for part in device.logical:
            part["mode"] = part["mode"] or mode
        if device.logical:
            by_mode.setdefault(device.logical[0]["mode"], []).append(device)
    if not by_mode:
        return
    expected = None
    if len(by_mode) == 1 and sum(len(cards) for cards in by_mode.values()) == len(answer.devices):
        nodes = [runner.realpath(path) for path in runner.glob("/sys/class/drm/renderD*/device")]
        cards, logical = count_render_nodes(nodes, known)
        expected = logical if cards == len(answer.devices) else None
    for same_mode in by_mode.values():
        named = {device.pci_address or f"gpu {device.index}": device for device in same_mode}
        counts = {name: len(device.logical) for name, device in named.items()}
        for name, missing in short_cards(counts, expected).items():
            reason = f"{counts[name]} of {counts[name] + missing} partitions are listed"
            answer.errors.append(f"{name}: {reason}")
            health = named[name].health
            health.reasons.append(reason)
            if health.state == "ok":
                health.state = "warning"


def _tool(name: str, path: str, runner, result) -> Tool:
    """Return the tool with the release of ROCm it belongs to: asking it for its version costs a command."""
    root = re.match(r"^(.*/rocm[^/]*)/", runner.realpath(path))
    release = runner.read((root[1] if root else "/opt/rocm") + "/.info/version")
    version = re.match(r"\d[\w.]*", release or "")
    return Tool(name, vendor="amd", version=version[0] if version else None, rc=result.rc, command=command_of(result))


def _judge_failure(runner, answer: Answer, tool: Tool, result) -> None:
    """Settle a tool of whose answer nothing can be used."""
    reason = reason_of(f"{result.stdout}\n{result.stderr}", _REASONS)
    if reason == "driver_not_loaded" and runner.glob("/sys/module/amdgpu"):
        # Said of whatever keeps the library from its start; the kernel knows better whether the module is there.
        reason = "driver_not_ready"
    settle(tool, result, reason)
    if tool.reason is None and not result.hung and re.search(r"^[\[{](?!\w)", result.stdout, re.MULTILINE):
        tool.state = TOOL_UNREADABLE  # a document was begun: damaged, whatever the exit code says
    add_error(answer, result, _said(result))


def _said(result) -> str:
    """Return the last line of an answer: a traceback ends with what it is about."""
    lines = [line.strip() for line in (result.stderr + "\n" + result.stdout).splitlines() if line.strip()]
    named = [line for line in lines if "AMDSMI_STATUS" in line]
    if result.hung:
        return "no answer in time"
    return text.excerpt((named or lines or [f"rc {result.rc}, nothing printed"])[-1], limit=300)
