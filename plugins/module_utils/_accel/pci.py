# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""PCI: the one address normaliser, the functions on the bus, their links and what limits them.

The canonical address is the kernel's: lower-case ``dddd:bb:dd.f``, at least four digits of domain
and none too many (VMD and Grace systems have domains above ffff), the function always there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from . import text
from .model import Link
from .runner import Runner

# "GPU0000:07:00.0", "GPU 0000:BA:00.0", "PCI:0019:01:00", "00000000:18:00.0", "18:00.0", "0000:41:00"
_ADDRESS = re.compile(
    r"^(?P<prefix>(?:GPU|NPU|PCI)[\s:]*)?"
    r"(?:(?P<domain>[0-9a-f]{4,8}):)?(?P<bus>[0-9a-f]{2}):(?P<device>[0-9a-f]{2})(?:\.(?P<function>[0-9a-f]))?$",
    re.IGNORECASE,
)
_CANONICAL = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]")
# Compiled when it is used: only a diagnosis reads the kernel log.
_BANDWIDTH = (
    r"(?P<address>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]): (?P<gbps>\d{1,9}(?:\.\d{1,9})?) Gb/s "
    r"available PCIe bandwidth, "
    r"limited by (?P<speed>[\d.]+) ?GT/s(?: PCIe)? x(?P<width>\d+) link at (?P<hop>[0-9a-f:.]+)"
    r"(?: \(capable of (?P<cgbps>\d{1,9}(?:\.\d{1,9})?) Gb/s with (?P<cspeed>[\d.]+) ?GT/s(?: PCIe)? "
    r"x(?P<cwidth>\d+) link\))?"
)
# All a link can have (PCI Express base specification); anything else, such as the 63 lanes that
# a config space of all ones shows, is no reading.
_WIDTHS = (1, 2, 4, 8, 12, 16, 32)
_SPEEDS = (2.5, 5.0, 8.0, 16.0, 32.0, 64.0, 128.0)


def _split(address: str) -> tuple[str, str, str, str | None, bool] | None:
    """Return domain, bus, device, function and "had a prefix"; None for "no value"; ValueError if malformed."""
    word = str(address).strip()
    if text.state_of(word) != text.VALUE:
        return None
    found = _ADDRESS.match(word)
    if found:
        domain, bus = int(found["domain"] or "0", 16), int(found["bus"], 16)
        device, function = int(found["device"], 16), found["function"]
        if device <= 0x1F and (function is None or function in "01234567"):
            return f"{domain:04x}", f"{bus:02x}", f"{device:02x}", function, bool(found["prefix"])
    raise ValueError(f"not a PCI address: {word!r}")


def normalise(address: str) -> str | None:
    """Return any spelling of a function's address as ``dddd:bb:dd.f``.

    None for the words that stand for "none" (NA, [N/A]); ValueError, with the text, for anything
    malformed. A line of the kernel (``PCI:0019:01:00``) leaves function 0 out; a bare address without
    a function names a device (see ``normalise_device``) and is refused here.
    """
    # By far the most frequent: sysfs prints four digits of the domain, NVIDIA eight, both capital letters or not.
    low = address.lower()
    if _CANONICAL.fullmatch(low):
        if low[4] == ":":
            return low
        if low.find(":") == 8 and low.startswith("0000"):
            return low[4:]
    parts = _split(address)
    if parts is None:
        return None
    domain, bus, device, function, prefixed = parts
    if function is None:
        if not prefixed:
            raise ValueError(f"not a PCI address: {address.strip()!r} has no function")
        function = "0"
    return f"{domain}:{bus}:{device}.{function}"


def normalise_device(address: str) -> str | None:
    """Return any spelling, with or without a function, as the device ``dddd:bb:dd`` (any function of it)."""
    parts = _split(address)
    return None if parts is None else ":".join(parts[:3])


@dataclass
class Function:
    """One PCI function as sysfs shows it. Ids are lower-case hex without 0x, addresses canonical.

    ``ancestors`` are the bridges from the nearest up to the root port, ``hops`` their links by address.
    ``responding`` is False when the config space reads as all ones: the card is off the bus (or
    powered down under vfio-pci). ``driver`` is the kernel driver bound to it.
    """

    address: str
    vendor: str = ""
    device: str = ""
    subsystem_vendor: str = ""
    subsystem_device: str = ""
    pci_class: str = ""
    numa_node: int | None = None
    path: str = ""
    driver: str | None = None
    link: Link = field(default_factory=Link)
    ancestors: list[str] = field(default_factory=list)
    hops: dict[str, Link] = field(default_factory=dict)
    responding: bool = True


def functions(
    runner: Runner, root: str = "/sys/bus/pci", detailed: Callable[[Function], bool] | None = None
) -> list[Function]:
    """Return every function under ``root``/devices, by address.

    ``detailed`` chooses those whose link, NUMA node, driver and bridges are read too (default: all):
    a node has some hundred functions and each file is a system call, the link files even a read from
    the hardware.
    """
    found: dict[str, Function] = {}
    entries = runner.glob(os.path.join(root, "devices", "*"))
    runner.read_ahead([f"{entry}/{name}" for entry in entries for name in _ID_FILES])
    for entry in entries:
        try:
            address = normalise(os.path.basename(entry))
        except ValueError:
            continue
        if address is not None:
            vendor, device, pci_class = (runner.read(f"{entry}/{name}") for name in _ID_FILES)
            found[entry] = Function(address, _hex(vendor, 4), _hex(device, 4), pci_class=_hex(pci_class, 6))
    chosen = {entry: one for entry, one in found.items() if detailed is None or detailed(one)}
    bridges: dict[str, str] = {}
    for entry, function in chosen.items():
        function.path = runner.realpath(entry)
        function.ancestors = _ancestors(function.path, bridges)
    runner.read_ahead(
        [f"{entry}/{name}" for entry in chosen for name in (*_DETAIL_FILES, *_LINK_FILES)]
        + [f"{path}/{name}" for path in bridges.values() for name in _LINK_FILES]
    )
    links = {address: _read_link(runner, path)[0] for address, path in bridges.items()}
    unread = {address for address, path in bridges.items() if any(one.startswith(f"{path}/") for one in runner.blocked)}
    for entry, function in chosen.items():
        _read_details(runner, entry, function)
        function.hops = {address: links[address] for address in function.ancestors}
        function.link.limited_by = limiting_hop(function)
        function.link.unread_hop = next((one for one in function.ancestors if one in unread), None)
    return sorted(found.values(), key=lambda one: sort_key(one.address))


def sort_key(address: str) -> tuple[int, ...]:
    """Return the key that sorts canonical addresses as numbers: domain 10000 comes after ffff."""
    return tuple(int(part, 16) for part in re.split("[:.]", address))


def _ancestors(path: str, bridges: dict[str, str]) -> list[str]:
    """Return the bridges above a device, the nearest first, and add their paths to ``bridges``.

    The tree may lie anywhere (a bind mount, a copy): only the parents of the real path are trusted.
    """
    above = []
    parent = os.path.dirname(path)
    while parent not in ("/", "") and _CANONICAL.fullmatch(os.path.basename(parent)):
        above.append(os.path.basename(parent))
        bridges.setdefault(above[-1], parent)
        parent = os.path.dirname(parent)
    return above


def _read_details(runner: Runner, entry: str, function: Function) -> None:
    subsystem_vendor, subsystem_device, node = (runner.read(f"{entry}/{name}") for name in _DETAIL_FILES)
    function.subsystem_vendor = _hex(subsystem_vendor, 4)
    function.subsystem_device = _hex(subsystem_device, 4)
    number = text.integer(node)
    function.numa_node = number if number is not None and number >= 0 else None
    # A link that is not there resolves to itself.
    driver = os.path.basename(runner.realpath(f"{entry}/driver"))
    function.driver = driver if driver != "driver" else None
    function.link, function.responding = _read_link(runner, entry)


def _hex(value: str | None, digits: int) -> str:
    """Return "0x10de" as "10de"; an empty text when unreadable."""
    word = (value or "").strip().lower()
    if word.startswith("0x"):
        word = word[2:]
    return word.zfill(digits) if word else ""


def _read_link(runner: Runner, path: str) -> tuple[Link, bool]:
    """Return the link of one device and whether its config space answers."""
    told = {name: runner.read(f"{path}/{name}") for name in _LINK_FILES}
    # 6 bits of ones in the link registers, or the kernel's own "unknown" (0xff).
    responding = not any(told[name] in ("63", "255") for name in ("current_link_width", "max_link_width"))
    if not responding:
        return Link(), False
    return (
        Link(
            speed_gts=speed_gts(told["current_link_speed"]),
            width=width(told["current_link_width"]),
            max_speed_gts=speed_gts(told["max_link_speed"]),
            max_width=width(told["max_link_width"]),
        ),
        True,
    )


_ID_FILES = ("vendor", "device", "class")
_DETAIL_FILES = ("subsystem_vendor", "subsystem_device", "numa_node")
_LINK_FILES = ("current_link_speed", "max_link_speed", "current_link_width", "max_link_width")


def speed_gts(value: object) -> float | None:
    """Return "32.0 GT/s PCIe" as 32.0; None for "Unknown" and for what no PCIe generation runs at."""
    found = text.number(value)
    return found if found in _SPEEDS else None


def width(value: object) -> int | None:
    """Return "16" or "16x" as 16; None for 0 (no link), 63 (config space unreadable) and other non-widths."""
    found = text.integer(value)
    return found if found in _WIDTHS else None


def limiting_hop(function: Function, under_load: bool | None = None) -> str | None:
    """Return the bridge above the device that holds its path below what the device itself can do.

    Judged per bridge is what it can give at any time: its maximum speed and its current width
    (a link keeps its lanes when idle). Its current speed only counts under load, because drivers lower
    the speed of an idle path. The link between the device and the port right above it is the device's
    own: when it is narrow or slow although the port could do more, the device's link is the culprit,
    not the port. The bridge that leaves the least is named; of equals (both ends of one link show the
    same) the one that could not do more, then the nearest.
    """
    own = function.link
    worst: tuple[float, float, int, str] | None = None
    for position, address in enumerate(function.ancestors):
        hop = function.hops.get(address)
        if hop is None:
            continue
        lanes, speed = hop.max_width, hop.max_speed_gts
        able = share = _share(own, lanes, speed)
        if position > 0:
            share = _share(own, hop.width or lanes, (under_load and hop.speed_gts) or speed)
        if share < 1.0:
            worst = min(worst or (2.0, 0.0, 0, ""), (share, able, position, address))
    return worst[3] if worst else None


def _share(own: Link, lanes: int | None, speed: float | None) -> float:
    """Return which part of the device's own best such a link carries; what is not known takes nothing away."""
    share = 1.0
    if lanes and own.max_width:
        share *= min(1.0, lanes / own.max_width)
    if speed and own.max_speed_gts:
        share *= min(1.0, speed / own.max_speed_gts)
    return share


def with_load(function: Function, under_load: bool | None) -> Link:
    """Return the link of the device, with the load it was read under and the hop that limits it then."""
    return replace(function.link, under_load=under_load, limited_by=limiting_hop(function, under_load))


def parse_bandwidth_lines(kernel_log: str) -> dict[str, dict]:
    """Return what the kernel said of limited paths, by the address of the device it spoke of.

    Each: ``limited_by``, ``speed_gts``, ``width``, ``gbps`` of the limiting link, and ``capable_speed_gts``,
    ``capable_width``, ``capable_gbps`` of the device (None where the line stops early). The last line of
    a device counts. Source: ``__pcie_print_link_status`` of the kernel, which walks the bridges itself;
    it reads current speeds when a driver binds, so a low speed there may be that of an idle card.
    """
    lines: dict[str, dict] = {}
    for found in re.finditer(_BANDWIDTH, kernel_log, re.IGNORECASE):
        try:
            address, hop = normalise(found["address"]), normalise(found["hop"])
        except ValueError:
            continue
        if address and hop:
            lines[address] = {
                "limited_by": hop,
                "speed_gts": speed_gts(found["speed"]),
                "width": width(found["width"]),
                "gbps": float(found["gbps"]),
                "capable_speed_gts": speed_gts(found["cspeed"]),
                "capable_width": width(found["cwidth"]),
                "capable_gbps": float(found["cgbps"]) if found["cgbps"] else None,
            }
    return lines


def slot_table(runner: Runner, root: str = "/sys/bus/pci") -> list[dict]:
    """Return the slots that the kernel knows: ``{"name": "5", "address": "0000:41:00"}`` (a device, no function)."""
    slots = []
    for path in runner.glob(os.path.join(root, "slots", "*", "address")):
        try:
            address = normalise_device(runner.read(path) or "")
        except ValueError:
            continue
        if address:
            slots.append({"name": os.path.basename(os.path.dirname(path)), "address": address})
    return slots
