# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""NVIDIA: nvidia-smi, its XML in all generations (v6 to v13), its CSV, its list, its error texts.

A healthy host costs one command, ``nvidia-smi -q -x``, and one with boards in sockets a second, ``nvidia-smi nvlink
-s``, for the XML has no NVLink. When that fails, hangs or can't be read, each card is
asked alone by its address, at the same time, so that one lost or sick card never hides the others (the option
``-i`` answers for healthy cards since driver 319); CSV is the last resort where the XML is damaged. The
exit code decides nothing: the same message has been seen with different codes.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from .. import pci, text
from ..model import (
    NOT_SPLITTABLE,
    TOOL_ABSENT,
    TOOL_FAILED,
    TOOL_HUNG,
    TOOL_OK,
    TOOL_UNREADABLE,
    WHOLE,
    Device,
    Driver,
    Ecc,
    Health,
    Link,
    Readings,
    Repair,
    Tool,
)
from ..parallel import command_of, run_all
from ..runner import Result, Runner
from ..tools import (
    add_error,
    address_of,
    beside,
    generation_gts,
    note_hang,
    reason_of,
    settle,
    sick_reasons,
    worst,
)
from ..xml_answer import Fields, leave_out, read_fields
from .base import (
    COMMAND,
    FILE,
    LINK,
    PACKAGE,
    Answer,
    ContainerAccess,
    FabricManager,
    Stack,
    Unreadable,
    Vendor,
    VersionSource,
)

CSV_FIELDS = (
    "index",
    "name",
    "serial",
    "uuid",
    "pci.bus_id",
    "driver_version",
    "vbios_version",
    "memory.total",
    "pstate",
    "utilization.gpu",
    "ecc.errors.uncorrected.volatile.total",
)

# Text of the tool -> word of ``Tool.reason``, the first that matches.
_REASONS = (
    ("driver/library version mismatch", "driver_library_mismatch"),
    ("couldn't communicate with the nvidia driver", "driver_not_loaded"),
    ("driver not loaded", "driver_not_loaded"),
    ("couldn't find libnvidia-ml.so", "library_missing"),
    ("insufficient permissions", "no_permission"),
    ("no devices were found", "no_devices"),
)
# Patterns are compiled when they are used; most are for trouble, and a healthy host need not pay for them.
# "... for GPU0000:17:00.0: Unknown Error", "... for GPU 0000:BA:00.0: GPU is lost. ..." and, from driver
# 550 on, "... for GPU1: 0000:34:00.0: Unknown Error".
_NO_HANDLE = (
    r"(?i)unable to determine the device handle for GPU(?:\s*\d{1,3}:(?=\s))?\s*"
    r"(?P<address>[0-9a-f]+:[0-9a-f]+:[0-9a-f.]+)"
)
_INFOROM = r"(?i)inforom is corrupted at gpu (?P<address>[0-9a-f:.]+)"
_LIBRARY = r"NVML library version:\s*([\d.]+)"
_KERNEL_MODULE = r"Kernel Module\b.*?\s(\d+\.[\d.]+)\s"
_LIST_GPU = r"^GPU (?P<index>\d+): (?P<name>.+?) \(UUID: (?P<uuid>[^)]+)\)"
_LIST_MIG = r"^\s+MIG (?P<profile>\S+)\s+Device\s+(?P<index>\d{1,9}): \(UUID: (?P<uuid>[^)]+)\)"
_SICK = re.compile(text.SICK_WORDS, re.IGNORECASE)
# Elements of which a host, a card or a list has several.
_SIDE_BY_SIDE = ("gpu", "mig_device", "process_info")
# Names of programs may say anything.
_SAY_ANYTHING = ("processes/", "accounted_processes/")
_MINOR = r"(?m)^Device Minor:\s*(\d+)"

# Boards that sit in numbered sockets. On every other board NVML gives a module number too (all ten PCIe
# cards of one recorded host say 1, two NVL cards say 4), which names no place.
_SOCKETED = re.compile(r"SXM|HBM3|\b(?:H20|H200|H800|B200|B300|GB200|GB300)\b", re.IGNORECASE)
_SUPERCHIP = re.compile(r"\bGB\d")
_NOT_SOCKETED = re.compile(r"PCIe|\bNVL\b", re.IGNORECASE)


@dataclass
class Query:
    """What one ``-q -x`` answer holds. ``notes`` is text that stood around the XML, ``attached`` its own count."""

    driver_version: str | None = None
    attached: int | None = None
    devices: list[Device] = field(default_factory=list)
    lost: dict[str, Device] = field(default_factory=dict)
    notes: str = ""


@dataclass
class Failure:
    """What an error text says: a word for the cause, lost addresses, the version of the library."""

    reason: str | None = None
    lost: list[str] = field(default_factory=list)
    library_version: str | None = None


def parse_failure(output: str) -> Failure:
    """Return what nvidia-smi's error text names. An address that is none is left to the raw text."""
    if not output.strip():
        return Failure()
    failure = Failure(reason=reason_of(output, _REASONS))
    for found in re.finditer(_NO_HANDLE, output):
        address = address_of(found["address"])
        if address and address not in failure.lost:
            failure.lost.append(address)
    library = re.search(_LIBRARY, output)
    failure.library_version = library[1] if library else None
    return failure


def parse_query(output: str) -> Query:
    """Return the devices of ``nvidia-smi -q -x``; Unreadable when it is cut off, damaged or something else.

    Elements are always taken by their full path: names repeat under different parents, and they moved and
    were renamed between driver generations. A device of which a field says "GPU is lost" is listed as lost.
    """
    # Lists of clocks are more than half of the document.
    root, notes = read_fields(leave_out(output, "supported_clocks"), "nvidia_smi_log", _SIDE_BY_SIDE)
    query = Query(
        driver_version=text.clean(root.findtext("driver_version")),
        attached=text.integer(root.findtext("attached_gpus")),
        notes=notes,
    )
    if not root.at("gpu") and query.attached != 0:
        # A later generation may name its cards otherwise: that is not a host without cards.
        raise Unreadable("no gpu in the answer, and it does not say that there is none")
    corrupted = {address_of(found["address"]) for found in re.finditer(_INFOROM, notes)}
    # Looking at every field is for hosts where one of them says something.
    any_sick = any(map(_SICK.search, root.words()))
    gpus = root.at("gpu")
    all_sick = [_sick_fields(gpu) if any_sick else {} for gpu in gpus]
    counters = [_counters(gpu) for gpu in gpus]
    devices = [
        _device(gpu, index, query.driver_version, all_sick[index], counters[index]) for index, gpu in enumerate(gpus)
    ]
    _note_untold(counters, devices)
    for device, sick in zip(devices, all_sick):
        if any("is lost" in word.lower() for word in sick):
            if device.pci_address:
                query.lost[device.pci_address] = device
            continue
        if device.pci_address and device.pci_address in corrupted:
            device.health.reasons.append("infoROM is corrupted")
            if device.health.state != "critical":
                device.health.state = "warning"
        query.devices.append(device)
    return query


def _sick_fields(gpu: Fields) -> dict[str, list[str]]:
    """Return the fields that are supported but can't be read now, by what stands there instead of a value."""
    sick: dict[str, list[str]] = {}
    for path, word in gpu.everything():
        if word and not path.startswith(_SAY_ANYTHING) and _SICK.search(word):
            sick.setdefault(word.strip(), []).append(path.rpartition("/")[2])
    return sick


def _device(
    gpu: Fields,
    index: int,
    driver_version: str | None,
    sick: dict[str, list[str]],
    counters: dict[str, int | None],
) -> Device:
    def told(*paths: str) -> str | None:
        return next((word for word in (text.clean(gpu.findtext(path)) for path in paths) if word), None)

    minor = told("minor_number")
    ids = told("pci/pci_device_id") or ""
    ecc, repair = _ecc(counters), _repair(gpu, counters)
    return Device(
        index=index,
        vendor="nvidia",
        model=told("product_name"),
        serial=text.identifier(gpu.findtext("serial")),
        uuid=text.identifier(gpu.findtext("uuid")),
        pci_address=address_of(told("pci/pci_bus_id") or gpu.id),
        pci_id=f"{ids[4:]}:{ids[:4]}".lower() if re.fullmatch("[0-9A-Fa-f]{4}10DE", ids, re.I) else None,
        module_id=text.integer(told("platformInfo/module_id", "gpu_module_id", "module_id")),
        device_nodes=[f"/dev/nvidia{minor}"] if minor and minor.isdigit() else [],
        driver_version=driver_version,
        firmware_version=told("vbios_version"),
        memory_bytes=text.size_bytes(told("fb_memory_usage/total")),
        link=_link(gpu),
        logical=_mig_devices(gpu),
        partition_mode=_mig_mode(gpu, driver_version),
        health=_health(gpu, sick, ecc, repair),
        ecc=ecc,
        repair=repair,
        readings=_readings(gpu),
        processes=_processes(gpu),
        source=f"nvidia-smi {driver_version}" if driver_version else "nvidia-smi",
    )


def _link(gpu: Fields) -> Link:
    """Return the link as the tool tells it; sysfs, which knows the bridges too, goes before it."""

    def generation(*names: str) -> float | None:
        for name in names:
            speed = generation_gts(gpu.findtext(f"pci/pci_gpu_link_info/pcie_gen/{name}"))
            if speed:
                return speed
        return None

    return Link(
        # max_link_gen is what card and host can do together, max_device_link_gen the card alone.
        speed_gts=generation("device_current_link_gen", "current_link_gen"),
        max_speed_gts=generation("max_device_link_gen", "max_link_gen"),
        width=pci.width(gpu.findtext("pci/pci_gpu_link_info/link_widths/current_link_width")),
        max_width=pci.width(gpu.findtext("pci/pci_gpu_link_info/link_widths/max_link_width")),
        under_load=under_load(gpu.findtext("performance_state"), gpu.findtext("utilization/gpu_util")),
    )


def under_load(pstate: str | None, utilisation: str | None) -> bool | None:
    """Tell whether the card works, so that its link must run at full speed; None when that is not told.

    Performance states P0 to P2 are those of work. Data-centre cards rest in P0, so the utilisation must be
    above zero too; in the lower states the card may save power on its link although something runs.
    """
    level = re.fullmatch(r"P(\d{1,3})", text.clean(pstate) or "")
    busy = text.number(utilisation)
    if busy == 0 or (level and int(level[1]) > 2):
        return False
    return None if busy is None else True


def _processes(gpu: Fields) -> list[dict]:
    found = []
    for process in gpu.at("processes/process_info"):
        pid = text.whole_number(process.findtext("pid"))
        if pid is not None:
            found.append(
                {
                    "pid": pid,
                    "name": text.clean(process.findtext("process_name")),
                    "memory_bytes": text.size_bytes(process.findtext("used_memory")),
                }
            )
    return found


def _mig_devices(gpu: Fields) -> list[dict]:
    """Return the MIG instances. The XML names them by number; their UUIDs come from ``-L``."""
    return [
        {
            "kind": "mig",
            "index": text.integer(instance.findtext("index")),
            "uuid": text.identifier(instance.findtext("uuid")),
            "profile": None,
            "memory_bytes": text.size_bytes(instance.findtext("fb_memory_usage/total")),
        }
        for instance in gpu.at("mig_devices/mig_device")
    ]


def _mig_mode(gpu: Fields, driver_version: str | None) -> str | None:
    """Return the mode that the card runs in; a pending one begins with the next reset.

    Drivers that know MIG (450 and later) have the section for every card; older ones can't split any.
    """
    word = gpu.findtext("mig_mode/current_mig")
    if word is None:
        release = text.number(driver_version)
        return NOT_SPLITTABLE if release is not None and release < 450 else None
    if text.state_of(word) == text.UNSUPPORTED:
        return NOT_SPLITTABLE
    return {"enabled": "MIG", "disabled": WHOLE}.get(word.strip().lower())


# Path, the values that are well, and how bad anything else is; None where a check of its own judges the value, which
# then only proves that the card tells about itself. Values that are not supported say nothing.
_HEALTH_WORDS = (
    ("remapped_rows/remapped_row_failure", ("no",), None),
    ("remapped_rows/remapped_row_pending", ("no",), None),
    ("retired_pages/pending_retirement", ("no",), None),
    ("retired_pages/pending_blacklist", ("no",), None),
    ("ecc_errors/aggregate/sram_threshold_exceeded", ("no",), None),
    ("ecc_errors/channel_repair_pending", ("no",), None),
    ("ecc_errors/tpc_repair_pending", ("no",), None),
    ("gpu_reset_status/reset_required", ("no",), "critical"),
    ("gpu_recovery_action", ("none",), "critical"),
    ("fabric/health/summary", ("healthy",), "warning"),
    # "throttle" became "event" with driver 535.
    *(
        (f"clocks_{word}_reasons/clocks_{word}_reason_{name}", ("not active",), None)
        for word in ("event", "throttle")
        for name in ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown")
    ),
)
# What a memory repair that waits for a reset makes the driver ask for: said once, as the repair.
_ASKS_FOR_RESET = ("gpu_reset_status/reset_required", "gpu_recovery_action")


def _health(gpu: Fields, sick: dict[str, list[str]], ecc: Ecc, repair: Repair) -> Health:
    """Return the health that the answer proves: ``ok`` needs a field that says so.

    Fields that are not supported prove nothing; a field that is supported but can't be read (``ERR!``,
    ``Unknown Error``) is a sign of a sick card. Memory errors, repair and throttling are judged by checks of their
    own and only count as proof that the card tells about itself.
    """
    found = sick_reasons(sick)
    repair_waits = repair.state in ("reset", "replace")
    proofs = int(ecc.uncorrected_volatile is not None)
    for path, well, severity in _HEALTH_WORDS:
        word = (gpu.findtext(path) or "").strip()
        if word.lower() in well or (severity is None and word.lower() in ("yes", "active")):
            proofs += 1
        elif severity and text.state_of(word) == text.VALUE and not (repair_waits and path in _ASKS_FOR_RESET):
            found.append((severity, f"{path}: {word}"))
    return worst(found, proofs)


# Names by generation: single and double bit (up to Volta), SRAM and DRAM (Ampere), SRAM by kind (Hopper and later).
_CORRECTED = ("dram_correctable", "sram_correctable", "single_bit/total")
_SRAM_UNCORRECTED = ("sram_uncorrectable", "sram_uncorrectable_parity", "sram_uncorrectable_secded")
_UNCORRECTED = ("dram_uncorrectable", *_SRAM_UNCORRECTED, "double_bit/total")


def _counts_of(span: str, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"ecc_errors/{span}/{name}" for name in names)


_CORRECTED_VOLATILE = _counts_of("volatile", _CORRECTED)
_UNCORRECTED_VOLATILE = _counts_of("volatile", _UNCORRECTED)
_CORRECTED_AGGREGATE = _counts_of("aggregate", _CORRECTED)
_UNCORRECTED_AGGREGATE = _counts_of("aggregate", _UNCORRECTED)
_SRAM_UNCORRECTED_AGGREGATE = _counts_of("aggregate", _SRAM_UNCORRECTED)
_REMAPPED_ROWS = ("remapped_rows/remapped_row_corr", "remapped_rows/remapped_row_unc")
_RETIRED_PAGES = (
    "retired_pages/multiple_single_bit_retirement/retired_count",
    "retired_pages/double_bit_retirement/retired_count",
)
_COUNTERS = (
    *_CORRECTED_VOLATILE,
    *_UNCORRECTED_VOLATILE,
    *_CORRECTED_AGGREGATE,
    *_UNCORRECTED_AGGREGATE,
    *_REMAPPED_ROWS,
    *_RETIRED_PAGES,
)


def _counters(gpu: Fields) -> dict[str, int | None]:
    """Return the counters that the product has, by path; None is one that can't be read."""
    found: dict[str, int | None] = {}
    for path in _COUNTERS:
        word = gpu.texts.get(path)
        number = text.count(word) if word else None
        if number is not None or (word and text.uncounted(word)):
            found[path] = number
    return found


def _sum(counters: dict[str, int | None], paths: tuple[str, ...]) -> int | None:
    """Return the sum of the counters that the product has, None when it has none, or one that can't be read."""
    counts = [counters[path] for path in paths if path in counters]
    return sum(count or 0 for count in counts) if counts and None not in counts else None


def _note_untold(counters: list[dict[str, int | None]], devices: list[Device]) -> None:
    """Note the counters that others of a card's model tell and it does not; one whose ECC is off tells none at all."""
    told: dict[str | None, set[str]] = {}
    for device, own in zip(devices, counters):
        told.setdefault(device.model, set()).update(own)
    for device, own in zip(devices, counters):
        if own:
            device.ecc.unread += sorted(told[device.model] - set(own))


def _ecc(counters: dict[str, int | None]) -> Ecc:
    return Ecc(
        corrected_volatile=_sum(counters, _CORRECTED_VOLATILE),
        uncorrected_volatile=_sum(counters, _UNCORRECTED_VOLATILE),
        corrected_aggregate=_sum(counters, _CORRECTED_AGGREGATE),
        uncorrected_aggregate=_sum(counters, _UNCORRECTED_AGGREGATE),
        sram_uncorrected_aggregate=_sum(counters, _SRAM_UNCORRECTED_AGGREGATE),
        unread=[path for path, count in counters.items() if count is None],
    )


_REPAIR_FAILED = ("remapped_rows/remapped_row_failure", "ecc_errors/aggregate/sram_threshold_exceeded")
_REPAIR_WAITS = (
    "remapped_rows/remapped_row_pending",
    "retired_pages/pending_retirement",
    "retired_pages/pending_blacklist",
    "ecc_errors/channel_repair_pending",
    "ecc_errors/tpc_repair_pending",
)
_REPAIR_PARTS = ("remapped_rows", "retired_pages")


def _repair(gpu: Fields, counters: dict[str, int | None]) -> Repair:
    """Return the state of the memory repair: retired pages up to Volta, remapped rows since Ampere.

    A card that prints N/A for all of it has none; one whose answer has no such part told nothing, and one that says
    neither yes nor no to one of the questions left it open. Rows that were remapped earlier are history (NVIDIA, "GPU
    Memory Error Management").
    """
    words = {path: (gpu.findtext(path) or "").strip() for path in (*_REPAIR_FAILED, *_REPAIR_WAITS, *_REPAIR_PARTS)}
    states = {text.state_of(word) for word in words.values()}
    answers = [word.lower() for path, word in words.items() if word and path not in _REPAIR_PARTS]
    # Both kinds of repair are asked about in one go, so what is open is judged part by part.
    open_parts = [
        part
        for part in _REPAIR_PARTS
        if len({word.lower() == "no" for path, word in words.items() if word and path.startswith(f"{part}/")}) > 1
    ]
    if any(words[path].lower() == "yes" for path in _REPAIR_FAILED):
        state = "replace"
    elif any(words[path].lower() == "yes" for path in _REPAIR_WAITS):
        state = "reset"
    elif open_parts or any(word not in ("yes", "no") and text.state_of(word) != text.UNSUPPORTED for word in answers):
        state = "unknown"
    elif any(word.lower() == "no" for path, word in words.items() if path.split("/")[0] in _REPAIR_PARTS):
        state = "ok"
    elif any(part in gpu.texts for part in _REPAIR_PARTS) and states == {text.UNSUPPORTED}:
        state = "not_supported"
    else:
        state = "unknown"
    return Repair(state, _sum(counters, _REMAPPED_ROWS), _sum(counters, _RETIRED_PAGES))


# Name of the reason in the XML -> its bit (nvml.h, nvmlClocksEventReasons) and the word for it.
_THROTTLES = (
    ("gpu_idle", 0x1, "idle"),
    ("applications_clocks_setting", 0x2, "application_clocks"),
    ("sw_power_cap", 0x4, "power_cap"),
    ("hw_slowdown", 0x8, "hardware"),
    ("sync_boost", 0x10, "sync_boost"),
    ("sw_thermal_slowdown", 0x20, "thermal"),
    ("hw_thermal_slowdown", 0x40, "thermal"),
    ("hw_power_brake_slowdown", 0x80, "power_brake"),
    ("display_clocks_setting", 0x100, "display"),
    ("display_clock_setting", 0x100, "display"),
)


# Of these one is enough to be wrong, whatever the others say.
_HARD = 0x8 | 0x20 | 0x40 | 0x80
_THROTTLE_PATHS = tuple(
    (f"clocks_{kind}_reasons/clocks_{kind}_reason_{name}", bit)
    for kind in ("event", "throttle")
    for name, bit, _word in _THROTTLES
)


def throttle_words(mask: int) -> list[str]:
    """Return the words of a bit mask. "hw_slowdown" comes with the reason that it stands for; alone it is one."""
    found = list(dict.fromkeys(word for _name, bit, word in _THROTTLES if mask & bit))
    return [word for word in found if word != "hardware" or not mask & 0xC0]


def _throttle_mask(gpu: Fields) -> int | None:
    """Return the bits of what is active; None where nothing is told, or not enough to say that nothing is wrong."""
    mask, told, clear = 0, 0, 0
    for path, bit in _THROTTLE_PATHS:
        word = gpu.texts.get(path)
        if word:
            word = word.strip().lower()
            told += 1
            clear += word in ("active", "not active")
            mask |= bit if word == "active" else 0
    return mask if clear and (clear == told or mask & _HARD) else None


def _readings(gpu: Fields) -> Readings:
    def number(*paths: str) -> float | None:
        return next((found for found in (text.number(gpu.findtext(path)) for path in paths) if found is not None), None)

    now = number("temperature/gpu_temp")
    limit = number("temperature/gpu_temp_slow_threshold")
    left, slow = number("temperature/gpu_temp_tlimit"), number("temperature/gpu_temp_slow_tlimit_threshold")
    if limit is None and None not in (now, left, slow):
        # Hopper and later tell how many degrees are left, and at how many left the card slows down.
        limit = now + left - slow  # type: ignore[operator]
    mask = _throttle_mask(gpu)
    power = ("gpu_power_readings", "power_readings")
    return Readings(
        temperature_c=now,
        temperature_limit_c=limit,
        memory_temperature_c=number("temperature/memory_temp"),
        power_watts=number(
            *(f"{part}/{name}" for part in power for name in ("power_draw", "instant_power_draw", "average_power_draw"))
        ),
        power_limit_watts=number(
            *(
                f"{part}/{name}"
                for part in power
                for name in ("current_power_limit", "enforced_power_limit", "power_limit")
            )
        ),
        utilization_percent=number("utilization/gpu_util"),
        memory_used_bytes=text.size_bytes(text.clean(gpu.findtext("fb_memory_usage/used"))),
        throttles=None if mask is None else throttle_words(mask),
        throttle_mask=mask,
    )


_NVLINK_GPU = re.compile(r"^GPU (?P<index>\d+): .*\(UUID: (?P<uuid>[^)]+)\)")
_NVLINK_LINK = re.compile(r"^\s+Link (?P<index>\d{1,3}):\s*(?P<state><inactive>|(?P<speed>\d+(?:\.\d+)?) GB/s)")


def parse_nvlink(output: str) -> dict[str, list[dict]]:
    """Return the links of ``nvidia-smi nvlink -s`` by the UUID of their card; speeds are printed in GB/s."""
    cards: dict[str, list[dict]] = {}
    ports: list[dict] | None = None
    for line in output.splitlines():
        card, link = _NVLINK_GPU.match(line), _NVLINK_LINK.match(line)
        if card:
            ports = cards.setdefault(card["uuid"], [])
        elif link and ports is not None:
            speed = float(link["speed"]) * 8 if link["speed"] else None
            state = "up" if speed else "down"
            ports.append(
                {"kind": "nvlink", "index": int(link["index"]), "state": state, "speed_gbps": speed, "peer": None}
            )
    return cards


def parse_csv(output: str, fields: tuple[str, ...] = CSV_FIELDS) -> list[Device]:
    """Return the devices of ``--query-gpu=<fields> --format=csv,noheader,nounits``; Unreadable if a row is not one.

    Cells are taken by their place: the header names fields otherwise than they are asked for. Commas in
    names are not quoted, so a row with too many or too few cells can't be read. Nor can one without an end: half a
    number is another number.
    """
    devices = []
    if output.strip() and not output.endswith("\n"):
        raise Unreadable(f"the last row has no end: {text.excerpt(output[output.rfind(chr(10)) + 1 :], limit=200)}")
    for line in output.splitlines():
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split(",")]
        row = dict(zip(fields, cells))
        address = address_of(row.get("pci.bus_id", ""))
        if len(cells) != len(fields) or address is None:
            raise Unreadable(f"not a row of {len(fields)} values: {text.excerpt(line, limit=200)}")
        device = Device(
            index=text.integer(row.get("index")),
            vendor="nvidia",
            model=text.clean(row.get("name")),
            serial=text.identifier(row.get("serial")),
            uuid=text.identifier(row.get("uuid")),
            pci_address=address,
            driver_version=text.clean(row.get("driver_version")),
            firmware_version=text.clean(row.get("vbios_version")),
            memory_bytes=text.size_bytes(row.get("memory.total"), unit="MiB"),
            link=Link(under_load=under_load(row.get("pstate"), row.get("utilization.gpu"))),
            source="nvidia-smi",
        )
        errors = text.whole_number(row.get("ecc.errors.uncorrected.volatile.total"))
        sick = sorted({cell for cell in cells if text.state_of(cell) == text.UNREADABLE})
        device.ecc.uncorrected_volatile = errors
        if any("requires reset" in cell.lower() for cell in sick):
            device.health = Health("critical", ["the card requires a reset"])
        elif sick:
            device.health = Health("warning", [f"can't be read: {', '.join(sick)}"])
        elif errors is not None:
            device.health = Health("ok")
        devices.append(device)
    if not devices:
        raise Unreadable("no row in the answer")
    return devices


def parse_list(output: str) -> dict[str, list[dict]]:
    """Return the MIG instances of ``nvidia-smi -L`` by the UUID of their card: ``{"index", "uuid", "profile"}``."""
    cards: dict[str, list[dict]] = {}
    instances: list[dict] | None = None
    for line in output.splitlines():
        card, instance = re.match(_LIST_GPU, line), re.match(_LIST_MIG, line)
        if card:
            instances = cards.setdefault(card["uuid"], [])
        elif instance and instances is not None:
            uuid = text.identifier(instance["uuid"])
            instances.append({"index": int(instance["index"]), "uuid": uuid, "profile": instance["profile"]})
    return cards


def slot_labels(devices: list[Device]) -> dict[str, str]:
    """Return socket names ("SXM3", on superchips "MODULE3") by address.

    Only boards in numbered sockets have one, and a number that several of them say names no place.
    """
    socketed = [
        device
        for device in devices
        if device.pci_address
        and device.module_id is not None
        and _SOCKETED.search(device.model or "")
        and not _NOT_SOCKETED.search(device.model or "")
    ]
    # A card that is described twice is one.
    numbers = Counter(number for _address, number in {(device.pci_address, device.module_id) for device in socketed})
    return {
        device.pci_address or "": f"{'MODULE' if _SUPERCHIP.search(device.model or '') else 'SXM'}{device.module_id}"
        for device in socketed
        if numbers[device.module_id] == 1
    }


_RELEASE = r"(?:^|\.so\.)(\d+\.[\d.]*\d)$"
# What the collection writes says it itself; it may be written where there is no libcuda.
_DEVICE_FILE = r"(?:libcuda\.so\.|ACCEL_DRIVER_VERSION=)(\d+\.[\d.]*\d)"
# The library's name has the full number, of which NVML itself prints two parts; the device file (CDI) names the
# libraries that it was made with, so a stale one shows.
_VERSIONS = (
    VersionSource("driver_kernel", "nvidia", FILE, "/sys/module/nvidia/version", _RELEASE),
    VersionSource(
        "driver_kernel", "nvidia", FILE, "/proc/driver/nvidia/version", r"Kernel Module\b.*?\s(\d+\.[\d.]+)\s"
    ),
    VersionSource("driver_library", "nvidia", LINK, "/usr/lib/*/libnvidia-ml.so.1", _RELEASE),
    VersionSource("driver_library", "nvidia", LINK, "/usr/lib64/libnvidia-ml.so.1", _RELEASE),
    VersionSource(
        "fabric_manager", "nvidia", COMMAND, "nv-fabricmanager --version", r"(?i)version is\s*:\s*(\d[\d.]*)"
    ),
    VersionSource("cdi", "nvidia", FILE, "/etc/cdi/*nvidia*", _DEVICE_FILE),
    VersionSource("cdi", "nvidia", FILE, "/var/run/cdi/*nvidia*", _DEVICE_FILE),
    VersionSource(
        "runtime", "cuda", FILE, "/usr/local/cuda/version.json", r'"cuda"\s*:\s*\{[^{}]*"version"\s*:\s*"([^"\s]+)"'
    ),
    VersionSource("runtime", "cuda", FILE, "/usr/local/cuda/version.txt", r"CUDA Version (\d\S*)"),  # before 11.1
    VersionSource("collectives", "nccl", LINK, "/usr/lib/*/libnccl.so.2", _RELEASE),
    VersionSource("collectives", "nccl", LINK, "/usr/lib64/libnccl.so.2", _RELEASE),
    VersionSource("collectives", "nccl", PACKAGE, "libnccl2", r"^(\d+\.\d+\.\d+)"),
    VersionSource("container_toolkit", "nvidia-ctk", COMMAND, "nvidia-ctk --version", r"version v?(\d\S*)"),
    VersionSource("container_toolkit", "nvidia-ctk", PACKAGE, "nvidia-container-toolkit", r"^(\d+\.\d+\.\d+)"),
)

# Debian calls the file of its module nvidia-current.ko, the open one nvidia-current-open.ko; both load as nvidia. The
# names of switches: A100 and H100 systems of the recordings (1af1, 22a3), V100 (1ac2). Those of later boards are not on
# the host's bus, so that they are to be declared.
_STACK = Stack(
    modules=("nvidia", "nvidia-current", "nvidia-current-open"),
    wrong_modules=("nouveau", "nova_core", "nvidiafb"),
    fabric_manager=FabricManager(
        service="nvidia-fabricmanager",
        package=r"(?:cuda-drivers|nvidia)-fabric-?manager\b",
        switches=("1ac2", "1af1", "22a3"),
        log="/var/log/fabricmanager.log",
        mismatch=r"(?i)interface version (\d[\d.]*\d) don't match with driver version",
    ),
)


# What nvidia-ctk hands to a container for computing; its own names are in the toolkit's documentation.
_CONTAINER = ContainerAccess(
    kind="nvidia.com/gpu",
    control_nodes=("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"),
    libraries=(
        "libcuda.so.1",
        "libcudadebugger.so.1",
        "libnvcuvid.so.1",
        "libnvidia-allocator.so.1",
        "libnvidia-cfg.so.1",
        "libnvidia-encode.so.1",
        "libnvidia-gpucomp.so.*",
        "libnvidia-ml.so.1",
        "libnvidia-nvvm.so.*",
        "libnvidia-opencl.so.1",
        "libnvidia-ptxjitcompiler.so.1",
    ),
    paths=("/usr/bin/nvidia-smi",),
    # Three digits at least: libraries of other packages stand beside them (libnvidia-container.so.1.17.8).
    library_version=r"/lib(?:cuda|cudadebugger|nvcuvid|nvidia-[\w-]+)\.so\.(\d{3,}\.[\d.]*\d)$",
)


class Nvidia(Vendor):
    """NVIDIA GPUs. NVSwitches carry the same vendor id but are bridges (class 0680), so they are no devices."""

    name = "nvidia"
    pci_vendors = ("10de",)
    kernel_modules = ("nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm", "nvidia_peermem")
    splits = True
    versions = _VERSIONS
    stack = _STACK
    container = _CONTAINER

    def query(self, runner: Runner, functions: list[pci.Function], timeout_seconds: float) -> Answer:
        """Ask nvidia-smi; see the module for the order."""
        answer = Answer()
        driver = _driver(runner)
        if driver.loaded or functions:
            answer.drivers.append(driver)
        program = runner.which("nvidia-smi")
        tool = Tool("nvidia-smi", self.name, state=TOOL_ABSENT, command="nvidia-smi -q -x")
        answer.tools.append(tool)
        if program is None:
            return answer
        result = runner.run([program, "-q", "-x"], timeout_seconds)
        tool.rc = result.rc
        complete = self._take(answer, tool, result)
        counted = complete
        if not complete and tool.reason is None:
            counted = self._ask_alone(runner, program, answer, tool, functions, timeout_seconds)
        if complete or (counted and answer.devices):
            answer.count = len(answer.devices)
        self._name_instances(runner, program, answer, timeout_seconds)
        answer.slot_labels = slot_labels(answer.devices)
        nodes = set(runner.glob("/dev/nvidia[0-9]*"))
        for device in answer.devices:
            device.device_nodes = [node for node in device.device_nodes if node in nodes]
            driver.kernel_version = driver.kernel_version or device.driver_version
            # The library refuses a kernel module of another release, so an answer proves they are the same.
            driver.library_version = driver.library_version or device.driver_version
            driver.loaded = True
        return answer

    def _take(self, answer: Answer, tool: Tool, result: Result) -> bool:
        """Take the answer for all cards into ``answer`` and ``tool``; tell whether it is complete."""
        if result.hung:
            settle(tool, result)
            add_error(answer, result)
            return False
        failure = parse_failure(_speech(result))
        answer.lost.extend(failure.lost)
        try:
            query = parse_query(result.stdout)
        except Unreadable as exc:
            tool.excerpt = text.excerpt(result.stdout, result.stderr)
            # Beside a card that is named as lost, "no devices" means that this answer has none: the others are asked.
            none_there = failure.reason == "no_devices" and not failure.lost
            tool.reason = None if failure.reason == "no_devices" and failure.lost else failure.reason
            for driver in answer.drivers:
                driver.library_version = failure.library_version
            if none_there:
                # A complete answer: the driver runs and has no card (also where a container was given none).
                tool.state = TOOL_OK
                return True
            if failure.reason or failure.lost or not _is_damaged(result):
                tool.state = TOOL_FAILED
                answer.errors.append(f"{tool.command}: {tool.excerpt or f'exit code {result.rc} and no text'}")
            else:
                tool.state = TOOL_UNREADABLE
                answer.errors.append(f"{tool.command}: {exc}")
            return False
        tool.state, tool.version = TOOL_OK, query.driver_version
        self._add(answer, query)
        around = beside(result, query.notes)
        if around:
            tool.excerpt = around
            answer.errors.append(f"{tool.command}: {around}")
        described = len(answer.devices) + len(answer.lost)
        if query.attached is not None and query.attached > described:
            tool.state = TOOL_FAILED
            answer.errors.append(f"{tool.command}: {query.attached} cards are attached, {described} described")
            return False
        return True

    @staticmethod
    def _add(answer: Answer, query: Query) -> None:
        known = {device.pci_address for device in answer.devices if device.pci_address}
        answer.devices.extend(device for device in query.devices if device.pci_address not in known)
        answer.lost.extend(address for address in query.lost if address not in answer.lost)
        answer.last.update(query.lost)

    def _ask_alone(
        self,
        runner: Runner,
        program: str,
        answer: Answer,
        tool: Tool,
        functions: list[pci.Function],
        timeout_seconds: float,
    ) -> bool:
        """Ask each card that has not answered by its address, all at the same time; tell whether all can be counted."""
        known = {device.pci_address for device in answer.devices} | set(answer.lost)
        # A card that is passed through to a guest is not the driver's; asking for it only costs time.
        asked = [f.address for f in functions if f.address not in known and f.driver != "vfio-pci"]
        commands = [[program, "-q", "-x", "-i", address] for address in asked]
        damaged: list[str] = []
        unread: list[str] = []
        for address, result in zip(asked, run_all(runner, commands, timeout_seconds)):
            if result.hung:
                note_hang(answer, tool, result)
                answer.hung.append(address)
                continue
            failure = parse_failure(_speech(result))
            answer.lost.extend(lost for lost in failure.lost if lost not in answer.lost)
            try:
                query = parse_query(result.stdout)
            except Unreadable as exc:
                if not failure.lost and not failure.reason:
                    damaged.append(address)
                    unread += [address] if _is_damaged(result) else []
                add_error(answer, result, text.excerpt(_speech(result), limit=300) or str(exc))
                continue
            for device in query.devices:
                device.index = None  # the place in an answer of one says nothing
            tool.version = tool.version or query.driver_version
            self._add(answer, query)
        if damaged:
            self._ask_csv(runner, program, answer, timeout_seconds)
        answer.devices.sort(key=lambda device: pci.sort_key(device.pci_address or "ffffffff:ff:1f.7"))
        told = {device.pci_address for device in answer.devices} | set(answer.lost)
        if any(address not in told for address in unread):
            # They may be well: what was said of them could not be read.
            tool.state = TOOL_UNREADABLE if tool.state != TOOL_HUNG else tool.state
            return False
        return True

    def _ask_csv(self, runner: Runner, program: str, answer: Answer, timeout_seconds: float) -> None:
        """Ask for a few values as CSV where the XML is damaged."""
        command = [f"--query-gpu={','.join(CSV_FIELDS)}", "--format=csv,noheader,nounits"]
        result = runner.run([program, *command], timeout_seconds)
        try:
            devices = parse_csv("" if result.hung else result.stdout)
        except Unreadable as exc:
            add_error(answer, result, str(exc))
            return
        self._add(answer, Query(devices=[device for device in devices if device.pci_address not in answer.lost]))

    @staticmethod
    def _name_instances(runner: Runner, program: str, answer: Answer, timeout_seconds: float) -> None:
        """Ask for the UUIDs of MIG instances, where there are any: the XML leaves them out."""
        if not any(not instance["uuid"] for device in answer.devices for instance in device.logical):
            return
        result = runner.run([program, "-L"], timeout_seconds)
        if result.hung:
            add_error(answer, result)
        named = parse_list(result.stdout)
        for device in answer.devices:
            by_index = {instance["index"]: instance for instance in named.get(device.uuid or "", [])}
            for instance in device.logical:
                instance.update(by_index.get(instance["index"], {}))

    def ask_ports(self, runner: Runner, devices: list[Device], timeout_seconds: float, well: bool) -> list[str]:
        """Ask for NVLink, which the XML leaves out; only boards in sockets always have it."""
        program = runner.which("nvidia-smi")
        wanted = [
            device
            for device in devices
            if _SOCKETED.search(device.model or "") and not _NOT_SOCKETED.search(device.model or "")
        ]
        if program is None or not wanted:
            return []
        commands = [[program, "nvlink", "-s"]]
        if not well:
            # A card that hangs or is lost must not take the links of the others with it.
            commands = [[*commands[0], "-i", device.pci_address] for device in wanted if device.pci_address]
        problems = []
        for result in run_all(runner, commands, timeout_seconds):
            links = {} if result.hung else parse_nvlink(result.stdout)
            for device in wanted:
                device.ports = links.get(device.uuid or "", device.ports)
            if not links:
                said = "no answer in time" if result.hung else text.excerpt(_speech(result), limit=200) or "no link"
                problems.append(f"{command_of(result)}: {said}")
        return problems

    def device_nodes(self, runner: Runner, device: Device) -> list[str]:
        """Return /dev/nvidiaN; N is the minor number, not the index."""
        if device.device_nodes or not device.pci_address:
            return device.device_nodes
        told = runner.read(f"/proc/driver/nvidia/gpus/{device.pci_address}/information") or ""
        minor = re.search(_MINOR, told)
        return runner.glob(f"/dev/nvidia{minor[1]}") if minor else []


def _is_damaged(result: Result) -> bool:
    """Tell whether an answer without cards is a document or bytes, or a success: no words of a tool that failed."""
    return result.rc == 0 or "<" in result.stdout or text.garbled(result.stdout)


def _speech(result: Result) -> str:
    """Return what the tool says in words: all but the XML, whose fields hold words of errors too."""
    before, _begin, rest = result.stdout.partition("<?xml" if "<?xml" in result.stdout else "<nvidia_smi_log")
    after = rest.rpartition("</nvidia_smi_log>")[2] if "</nvidia_smi_log>" in rest else ""
    return "\n".join((before, after, result.stderr)).strip()


def _driver(runner: Runner) -> Driver:
    """Return what the kernel tells of its module, without asking any tool."""
    version = text.clean(runner.read("/sys/module/nvidia/version"))
    if version is None:
        found = re.search(_KERNEL_MODULE, f"{runner.read('/proc/driver/nvidia/version') or ''} ")
        version = found[1] if found else None
    loaded = version is not None or bool(runner.glob("/sys/module/nvidia"))
    return Driver("nvidia", kernel_version=version, loaded=loaded)
