# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Detect the devices, ask their vendors, join both: one ``Observation`` of a host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from . import pci, registry, text
from .model import (
    SLOT_MAP_ERROR,
    TOOL_ABSENT,
    TOOL_OK,
    TOOL_UNREADABLE,
    Device,
    Ecc,
    Health,
    Link,
    Observation,
    Readings,
    Repair,
    SlotName,
    Tool,
)
from .parallel import beside
from .runner import Runner
from .slot_names import name_slots
from .vendors.base import Answer, Vendor

# What may be left out. Slots and links are read from sysfs, the others come with the vendor's answer.
GATHER = ("processes", "links", "slots", "health", "kernel_log")

# A device that is given to a guest belongs to the guest: the host's vendor tool cannot see it.
_PASSED_THROUGH = ("vfio-pci", "pci-stub")
_BADNESS = ("ok", "unknown", "warning", "critical")


def observe(
    runner: Runner,
    vendors: Iterable[str] | None = None,
    timeout_seconds: float = 60,
    gather: Iterable[str] = GATHER,
    declared_slots: dict | None = None,
    root: str = "/sys/bus/pci",
    dmi_path: str = "/sys/firmware/dmi/tables/DMI",
    declared_vendors: dict | None = None,
) -> Observation:
    """Return what this host shows of its accelerators.

    ``vendors`` are names of ``registry.VENDORS`` (none: all); those named are asked even when the bus shows
    no device of theirs. ``timeout_seconds`` limits each command. ``declared_slots`` maps addresses to slot
    names, or the other way round; ``declared_vendors`` are vendors that the site declares, by name, and with anything
    wrong in them none of them is known. Nothing is raised for what a host or a tool says: what could not be read
    is in ``errors``, and the tool has the state that tells why.
    """
    observation = Observation()
    gather = tuple(gather)
    named = [str(name).lower() for name in vendors or ()]
    known, by_id = _known(declared_vendors, observation)
    observation.errors.extend(unknown_vendors(named, known))
    wanted = [name for name in known if not named or name in named]

    def owner(function: pci.Function) -> str | None:
        names = by_id.get(function.vendor, [])
        if function.vendor in registry.CHIPSET_IDS and function.pci_class[:4] not in Vendor.pci_classes:
            names = [name for name in names if name in (declared_vendors or {})]
        return next((name for name in names if name in wanted and known[name].owns(function)), None)

    owned: dict[str, list[pci.Function]] = {name: [] for name in wanted}
    shown = pci.functions(runner, root, detailed=lambda one: owner(one) is not None)
    for function in shown:
        its_owner = owner(function)
        if its_owner:
            owned[its_owner].append(function)
    functions = [function for own in owned.values() for function in own]
    # Every machine has bridges at least. A bus without any function (not mounted, hidden in a container), and a
    # function that does not tell whose it is, were not looked at: that is no number of cards, least of all 0.
    stuck = {function.address for function in functions if any(function.address in one for one in runner.blocked)}
    if shown and all(function.vendor and function.pci_class for function in shown):
        observation.bus_count = len({pci.normalise_device(function.address) for function in functions})

    log = None
    if "kernel_log" in gather and functions:
        # Beside the vendors' tools, which take longer.
        log = beside(lambda: _read_log(runner, timeout_seconds))
    vendor_labels: dict[str, str | None] = {}
    counts: list[int | None] = []
    logical_known = True
    for name, own in owned.items():
        if functions and not own and name not in named:
            continue  # others are here, this one is not: no reason to load it and to wait for its tool
        vendor = known[name]
        answer = _ask(runner, vendor, own, timeout_seconds)
        absent = all(tool.state == TOOL_ABSENT for tool in answer.tools)
        if absent and not own and name not in named:
            continue
        counts.append(answer.count)
        logical_known = logical_known and answer.logical_known
        vendor_labels.update(answer.slot_labels)
        observation.tools.extend(answer.tools)
        observation.drivers.extend(answer.drivers)
        observation.errors.extend(answer.errors)
        # One that its tool calls lost is lost: that its files block as well is no more than a consequence.
        answer.hung += [one.address for one in own if one.address in stuck and one.address not in answer.lost]
        _join(runner, vendor, own, answer, absent, observation)

    if counts and None not in counts:
        observation.count = sum(count for count in counts if count is not None)
        told = all(
            device.logical or device.partition_mode is not None or not known[device.vendor].splits
            for device in observation.devices
        )
        if told and logical_known:
            observation.logical_count = sum(map(logical_devices, observation.devices))
    observation.errors.extend(_identify(observation.devices))
    if "links" in gather:
        _ask_ports(runner, known, observation, timeout_seconds)
    if "processes" in gather and observation.devices:
        from . import holders

        problem = holders.add(runner, observation.devices)
        observation.holders_complete = problem is None
        if problem:
            observation.errors.append(problem)
    # A host whose cards all left the bus still has their driver: there the log says most.
    if "kernel_log" in gather and not log and observation.tools:
        log = beside(lambda: _read_log(runner, timeout_seconds))
    if log:
        observation.kernel_log, observation.kernel_events = log.result()
    if "slots" in gather:
        _name_slots(runner, root, dmi_path, functions, declared_slots, vendor_labels, observation)
    _leave_out(observation, gather)
    observation.errors.extend(runner.hung_reads())
    return observation


def logical_devices(device: Device) -> int:
    """Return how many logical devices a card is: its parts, and each chip that is not split; one that is whole is one.

    A card that MIG is switched on for, and that has no instances, is none: no program finds a device on it.
    """
    chips = {part.get("index") for part in device.logical if part.get("kind") == "chip"}
    parts = [part for part in device.logical if part.get("kind") != "chip"]
    if not device.logical:
        return 0 if device.partition_mode == "MIG" else 1
    return len(parts) + len(chips - {part.get("chip") for part in parts})


def _read_log(runner: Runner, timeout_seconds: float) -> tuple[dict, list[dict]]:
    # Imported when needed, as all that not every query asks for: each file costs every host its compilation.
    from . import kernel_log

    return kernel_log.read(runner, timeout_seconds)


def wrong_declarations(declared_vendors: dict | None) -> list[str]:
    """Return what is wrong with the vendors that a site declares, in words."""
    if not declared_vendors:
        return []
    # Imported when needed: few sites declare a vendor.
    from .vendors import declared

    return declared.problems(declared_vendors, registry.PCI_VENDORS)


def unknown_vendors(named: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return in words which of the named vendors are not ``known``."""
    known = list(known)
    return [
        f"vendor {name!r} is not known; known are {', '.join(known)}" for name in named if name.lower() not in known
    ]


def _known(
    declared_vendors: dict | None, observation: Observation
) -> tuple[Mapping[str, Vendor], dict[str, list[str]]]:
    """Return the vendors by name and their names by PCI vendor id, those of the site among them."""
    known, by_id = registry.VENDORS, {one: [name] for one, name in registry.PCI_VENDORS.items()}
    wrong = wrong_declarations(declared_vendors)
    observation.errors.extend(wrong)
    if wrong or not declared_vendors:
        return known, by_id
    from .vendors import declared

    known = declared.known(known, declared_vendors)
    by_id = {one: [name for name in names if name in known] for one, names in by_id.items()}
    for name in declared_vendors:
        for one in known[name].pci_vendors:
            # One of that name may have replaced a vendor of the collection.
            by_id[one] = [name, *(other for other in by_id.get(one, ()) if other != name)]
    return known, by_id


def _ask(runner: Runner, vendor: Vendor, functions: list[pci.Function], timeout_seconds: float) -> Answer:
    """Return the vendor's answer; a vendor file that breaks on something new must not hide the others."""
    try:
        answer = vendor.query(runner, functions, timeout_seconds)
        _once(vendor, answer)
        return answer
    except Exception as exc:
        message = f"{vendor.name}: {type(exc).__name__}: {exc}"
        tool = Tool(vendor.name, vendor.name, state=TOOL_UNREADABLE, excerpt=text.excerpt(message))
        return Answer(tools=[tool], errors=[message])


def _once(vendor: Vendor, answer: Answer) -> None:
    """Make one of devices with one address: they are no two cards, and which entry is right nobody knows."""
    kept: dict[str, Device] = {}
    for device in list(answer.devices):
        place = device.pci_address
        first = kept.setdefault(place, device) if place else device
        if place is None or first is device:
            continue
        answer.devices = [one for one in answer.devices if one is not device]
        answer.count = None if answer.count is None else answer.count - 1
        answer.slot_labels.pop(place, None)
        answer.errors.append(f"{vendor.name}: {place} is described twice")
        first.serial = first.serial if first.serial == device.serial else None
        first.uuid = first.uuid if first.uuid == device.uuid else None
        worst = max((first.health, device.health), key=lambda health: _BADNESS.index(health.state))
        bad = worst.state in ("warning", "critical")
        first.health = worst if bad else Health("unknown", ["the tool describes this address twice"])


def _ask_ports(runner: Runner, vendors: Mapping[str, Vendor], observation: Observation, timeout_seconds: float) -> None:
    """Ask each vendor for the links between its devices; without an answer they stay untold."""
    for name in dict.fromkeys(device.vendor for device in observation.devices):
        own = [device for device in observation.devices if device.vendor == name and device.source != "sysfs"]
        well = all(tool.state == TOOL_OK for tool in observation.tools if tool.vendor == name)
        try:
            problems = vendors[name].ask_ports(runner, own, timeout_seconds, well) if own else []
        except (ValueError, TypeError, KeyError, AttributeError, IndexError) as exc:
            problems = [f"{name}: links between cards: {type(exc).__name__}: {exc}"]
        observation.errors.extend(problems)
        for device in own if problems else ():
            device.ports_told = bool(device.ports)


def _join(
    runner: Runner, vendor: Vendor, own: list[pci.Function], answer: Answer, absent: bool, observation: Observation
) -> None:
    """Join the vendor's devices with what the bus shows, and note who did not answer."""
    by_address = {function.address: function for function in own}
    by_device = {pci.normalise_device(function.address): function for function in own}
    answered = set()
    for device in answer.devices:
        # Where a tool's function number is its own (partitions), the device is what counts.
        address = device.pci_address or ""
        function = by_address.get(address) or (by_device.get(pci.normalise_device(address)) if address else None)
        if function:
            answered.add(function.address)
            _add_bus(device, function)
            if not function.responding and function.driver not in _PASSED_THROUGH:
                _doubt(device)
        device.device_nodes = device.device_nodes or vendor.device_nodes(runner, device)
        observation.devices.append(device)
    silent = [function for function in own if function.address not in answered]
    if absent:
        observation.devices.extend(_from_bus(runner, vendor, function) for function in silent)
        return
    bound = any(function.driver for function in own)
    for function in silent:
        passed = function.driver in _PASSED_THROUGH
        lost = function.address in answer.lost or (not function.responding and not passed)
        reason = None
        if passed:
            reason = f"bound to {function.driver}"
        elif function.address in answer.hung:
            reason = "hung"
        elif not lost:
            # Only where the bus tells drivers at all does a missing one mean something.
            told = next((tool.reason for tool in answer.tools if tool.reason), None)
            reason = told or ("no driver is bound" if bound and function.driver is None else None)
        observation.unanswered.append(_unanswered(vendor, function, lost, reason, answer.last.get(function.address)))
    for address in answer.lost:
        if address not in by_address:  # gone from the bus too, but the tool still speaks of it
            gone = pci.Function(address)
            observation.unanswered.append(_unanswered(vendor, gone, True, None, answer.last.get(address)))


def _doubt(device: Device) -> None:
    """Take nothing for well that a tool says of a card whose config space reads as ones: it may be off the bus."""
    device.link = Link(under_load=device.link.under_load)
    if device.health.state == "ok":
        device.health.state = "unknown"
    device.health.reasons.append("its PCI config space reads as ones, as that of a card that is off the bus")


def _add_bus(device: Device, function: pci.Function) -> None:
    """Add what sysfs knows better: ids, NUMA node, the link with its bridges."""
    device.pci_address = function.address
    device.pci_id = f"{function.vendor}:{function.device}"
    device.numa_node = function.numa_node
    told, seen = device.link, pci.with_load(function, device.link.under_load)
    device.link = Link(
        speed_gts=seen.speed_gts or told.speed_gts,
        width=seen.width or told.width,
        max_speed_gts=seen.max_speed_gts or told.max_speed_gts,
        max_width=seen.max_width or told.max_width,
        limited_by=seen.limited_by,
        unread_hop=seen.unread_hop,
        under_load=told.under_load,
    )


def _from_bus(runner: Runner, vendor: Vendor, function: pci.Function) -> Device:
    """Return a device of which only the bus tells."""
    device = Device(vendor=vendor.name, pci_address=function.address)
    _add_bus(device, function)
    device.device_nodes = vendor.device_nodes(runner, device)
    return device


def _unanswered(vendor: Vendor, function: pci.Function, lost: bool, reason: str | None, last: Device | None) -> dict:
    return {
        "pci_address": function.address,
        "vendor": vendor.name,
        "pci_id": f"{function.vendor}:{function.device}" if function.vendor else None,
        "state": "lost" if lost else "not_reported",
        "reason": reason,
        "model": last.model if last else None,
        "serial": last.serial if last else None,
        "uuid": last.uuid if last else None,
        "firmware_version": last.firmware_version if last else None,
        "slot": SlotName(),
        "link": function.link,
        "numa_node": function.numa_node,
        "last": None,
    }


def _identify(devices: list[Device]) -> list[str]:
    """Say what identifies each device: the first of uuid, serial and address that is there and unique.

    Returns in words which devices name one UUID: it is in the world once, so one of them is not what it says.
    """
    uuids = Counter(device.uuid for device in devices)
    twins = {
        uuid: [device.pci_address or f"number {device.index}" for device in devices if device.uuid == uuid]
        for uuid, times in uuids.items()
        if uuid is not None and times > 1
    }
    serials = Counter(device.serial for device in devices)
    for device in devices:
        if device.uuid is not None and uuids[device.uuid] > 1:
            device.uuid = None
        if device.uuid is not None:
            device.identity = "uuid"
        elif device.serial is not None and serials[device.serial] == 1:
            device.identity = "serial"
        else:
            device.identity = "address"
    return [f"one UUID, {uuid}, is told of {', '.join(places)}" for uuid, places in twins.items()]


def _name_slots(
    runner: Runner,
    root: str,
    dmi_path: str,
    functions: list[pci.Function],
    declared: dict | None,
    vendor_labels: dict[str, str | None],
    observation: Observation,
) -> None:
    from . import dmi

    table, warning = dmi.believable(dmi.parse_slots(runner.read_bytes(dmi_path) or b""), functions)
    if warning:
        observation.errors.append(warning)
    on_bus = pci.slot_table(runner, root)
    boards: dict[str, str | None] = {device.pci_address or "": device.serial for device in observation.devices}
    try:
        names = name_slots(functions, declared, vendor_labels, on_bus, table, boards)
    except ValueError as exc:
        # A declared map that is wrong must not be taken for no map: no slot is named at all then.
        observation.errors.append(f"{SLOT_MAP_ERROR}{exc}")
        return
    for device in observation.devices:
        device.slot = names.get(device.pci_address or "", device.slot)
    # A card of which the tool told less than of others of its kind (its answer was damaged, and another form made up
    # for it) has no number of the vendor; what the kernel calls its place would look as if it had moved there.
    numbered = {(device.vendor, device.model) for device in observation.devices if device.slot.source == "vendor"}
    for device in observation.devices:
        if device.slot.source in ("sysfs", "dmi") and (device.vendor, device.model) in numbered:
            told = {"label": device.slot.label, "source": device.slot.source}
            device.slot = SlotName(candidates=[told, *device.slot.candidates])
    used = {(device.vendor, device.slot.source) for device in observation.devices}
    for entry in observation.unanswered:
        slot = names.get(entry["pci_address"], entry["slot"])
        # The vendor's own numbers come with the answer. What the kernel or the firmware calls the place of a
        # silent card is another naming ("3" for "SXM3"), unless the cards that answered are named so too.
        if slot.source in ("sysfs", "dmi") and not {(entry["vendor"], "sysfs"), (entry["vendor"], "dmi")} & used:
            slot = SlotName(candidates=[{"label": slot.label, "source": slot.source}, *slot.candidates])
        entry["slot"] = slot


def _leave_out(observation: Observation, gather: tuple[str, ...]) -> None:
    for device in observation.devices:
        if "processes" not in gather:
            device.processes = []
        if "links" not in gather:
            device.link = Link()
            device.ports, device.ports_told = [], False
        if "health" not in gather:
            device.health, device.ecc, device.repair, device.readings = Health(), Ecc(), Repair(), Readings()
    if "links" not in gather:
        for entry in observation.unanswered:
            entry["link"] = Link()
