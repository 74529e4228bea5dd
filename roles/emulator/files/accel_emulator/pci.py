# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The PCI tree of a host: functions, their config space, and the files that sysfs shows of them.

Offsets and bits: PCI Local Bus 3.0 chapter 6, PCI Express Base 5.0 section 7.5.
A tree maps a relative path to bytes (a file), text (a symbolic link) or None (a directory).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from . import vendors
from .catalogue import MAKERS
from .state import Card, Host, asic_serial, bus_of, temperature_c, watts_drawn

# Kinds of PCI Express functions, as the flags of the capability number them.
ENDPOINT, ROOT_PORT, UPSTREAM, DOWNSTREAM, TO_PCI = 0, 4, 5, 6, 7
CONVENTIONAL = -1

SPEED_CODES = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}

_POWER_CAP, _EXPRESS_CAP = 0x40, 0x60
_MIB = 1 << 20
# What is behind a card's bridges is laid out from here, half a TiB for each card.
_WINDOW, _WINDOW_STEP = 0x2000_0000_0000, 0x80_0000_0000
_MEM64_PREFETCH = 0x14220C
RENDER = 128  # the first render node of the kernel's graphics devices
CPU_LISTS = ("0-47,96-143", "48-95,144-191")
_CPU_MASKS = ("ffff,ffffffff,00000000,0000ffff,ffffffff", "ffffffff,ffff0000,00000000,ffffffff,ffff0000,00000000")


@dataclass
class Function:
    """One PCI function: where it hangs, what it is, and the state of its link."""

    address: str
    parent: str | None
    pci_id: str
    pci_class: int
    kind: int = ENDPOINT
    subsystem: str = "0000:0000"
    revision: int = 0
    driver: str | None = None
    numa_node: int = 0
    irq: int = 0
    bars: list[tuple[int, int, int]] = field(default_factory=list)  # register, start, size in bytes
    speed_gts: float = 32.0
    max_speed_gts: float = 32.0
    width: int = 16
    max_width: int = 16
    slot_number: int | None = None
    secondary: int = 0
    subordinate: int = 0
    window: tuple[int, int] | None = None
    responding: bool = True
    extra: dict[str, bytes | str | None] = field(default_factory=dict)

    @property
    def is_bridge(self) -> bool:
        """Tell whether buses lie behind this function."""
        return self.kind in (ROOT_PORT, UPSTREAM, DOWNSTREAM, TO_PCI)


def functions(host: Host) -> list[Function]:
    """Return every function of a host, bridges before what is behind them."""
    found: list[Function] = []
    for position, card in enumerate(sorted(host.cards, key=lambda one: one.address)):
        found += (_switched if host.wiring == "switched" else _direct)(host, card, position)
    found += _rest_of_server(host)
    by_address = {one.address: one for one in found}
    for number, one in enumerate(found):
        one.irq = 40 + number
    for one in found:  # the windows of a bridge span all that is behind it
        if not one.bars:
            continue
        low = min(start for _register, start, _size in one.bars)
        high = max(start + size for _register, start, size in one.bars)
        above = one.parent
        while above:
            bridge = by_address[above]
            bridge.window = (min(low, bridge.window[0]), max(high, bridge.window[1])) if bridge.window else (low, high)
            above = bridge.parent
    return found


def _root_port(vendor: str) -> dict:
    if vendor in MAKERS:
        ids = MAKERS[vendor].root_port
    else:
        ids = {"amd": ("1022:14ab", "1022:1453")}.get(vendor, ("8086:352a", "8086:0000"))
    return {"pci_id": ids[0], "subsystem": ids[1], "pci_class": 0x060400, "revision": 4, "driver": "pcieport"}


_SWITCH = {
    "pci_id": "1000:c030",
    "subsystem": "1000:100b",
    "pci_class": 0x060400,
    "revision": 0xB0,
    "driver": "pcieport",
}
_NIC = {"pci_id": "15b3:1021", "subsystem": "15b3:0041", "pci_class": 0x020700, "driver": "mlx5_core"}


def _at(domain: str, bus: int, device: int, function: int = 0) -> str:
    return f"{domain}:{bus:02x}:{device:02x}.{function}"


def _card_function(host: Host, card: Card, parent: str, position: int) -> Function:
    start = _WINDOW + position * _WINDOW_STEP
    bars: list[tuple[int, int, int]] = []
    # The biggest first: then each is aligned to its own size, as a register demands.
    for size, register in sorted(((size * _MIB, 2 * at) for at, size in enumerate(card.bars_mib)), reverse=True):
        bars.append((register, start, size))
        start += size
    driver: str | None
    if host.vendor in MAKERS:
        driver, extra = MAKERS[host.vendor].driver, vendors.files(host, card)
    else:
        driver = {"nvidia": "nvidia", "amd": "amdgpu", "ascend": "devdrv_device_driver"}[host.vendor]
        extra = amd_files(card) if driver == "amdgpu" and host.driver_ready and not card.lost else {}
    if host.vendor not in ("nvidia", "ascend") and not host.driver_ready:
        driver = None
    return Function(
        card.address,
        parent,
        card.pci_id,
        card.pci_class,
        extra=extra,
        subsystem=card.subsystem,
        revision=card.revision,
        driver=driver,
        numa_node=card.numa_node,
        bars=sorted(bars),
        speed_gts=card.speed_gts,
        max_speed_gts=card.link_speed_gts,
        width=card.width,
        max_width=card.link_width,
        responding=not card.lost,
    )


def amd_files(card: Card) -> dict[str, bytes | str | None]:
    """Return what the amdgpu driver adds to the directory of a card."""
    used = card.memory_mib * 4 // 5 if card.busy else 283
    uncorrectable, deferred = (4 if card.health == "critical" else int(card.ecc)), 2 if card.health == "warning" else 0
    # Sensors of the machine itself have the first numbers.
    sensors = f"hwmon/hwmon{card.index + 40}"
    told = {
        "ras/umc_err_count": f"ue: {uncorrectable}\nce: 0\nde: {deferred}",
        "ras/gpu_vram_bad_pages": f"{0x01F2A000 + card.index:#010x} : 0x00001000 : P" if card.remap_pending else "",
        "unique_id": asic_serial(card)[2:].lower(),
        "vbios_version": card.part_number,
        "mem_info_vram_total": card.memory_mib << 20,
        "mem_info_vram_used": used << 20,
        "gpu_busy_percent": 96 if card.busy else 0,
        "current_compute_partition": "CPX" if card.split else "SPX",
        "current_memory_partition": "NPS1",
        # card0 is the display of the management controller
        f"drm/card{card.index + 1}/dev": f"226:{card.index + 1}",
        f"drm/renderD{RENDER + card.index}/dev": f"226:{RENDER + card.index}",
        # Thousandths of a degree, millionths of a watt (kernel, hwmon/sysfs-interface).
        f"{sensors}/name": "amdgpu",
        f"{sensors}/temp2_label": "junction",
        f"{sensors}/temp2_input": temperature_c(card) * 1000,
        f"{sensors}/temp3_label": "mem",
        f"{sensors}/temp3_input": (temperature_c(card) - 6) * 1000,
        f"{sensors}/power1_average": watts_drawn(card) * 1_000_000,
        f"{sensors}/power1_cap": card.power_watts * 1_000_000,
    }
    if card.architecture == "gfx90a":
        # Later ones show neither; ROCm 5 reads no sensor of a card without a voltage.
        told.update({f"{sensors}/temp1_label": "edge", f"{sensors}/temp1_input": (temperature_c(card) - 4) * 1000})
        told.update({f"{sensors}/in0_label": "vddgfx", f"{sensors}/in0_input": 800})
    # What these devices hang below: AMD's library goes this way to the vendor id.
    below = (f"drm/card{card.index + 1}", f"drm/renderD{RENDER + card.index}", sensors)
    links = {f"{name}/device": "../.." for name in below}
    return {**{name: f"{value}\n".encode() for name, value in told.items()}, **links}


def _switched(host: Host, card: Card, position: int) -> list[Function]:
    """Root port, switch, card and its NIC, as HGX and OAM base boards are wired."""
    domain, bus = card.address.split(":")[0], bus_of(card.address)
    root, upstream = _at(domain, bus - 3, 1), _at(domain, bus - 2, 0)
    port, nic_port, nic = _at(domain, bus - 1, 1), _at(domain, bus - 1, 2), _at(domain, bus + 1, 0)
    above = {"numa_node": card.numa_node, "speed_gts": card.link_speed_gts, "max_speed_gts": card.link_speed_gts}
    below = {**above, "speed_gts": card.speed_gts, "width": card.width, "max_width": card.link_width}
    start = _WINDOW + position * _WINDOW_STEP + _WINDOW_STEP // 2 + _WINDOW_STEP // 4
    return [
        Function(
            root, None, kind=ROOT_PORT, secondary=bus - 2, subordinate=bus + 1, **_root_port(host.vendor), **above
        ),
        Function(upstream, root, kind=UPSTREAM, secondary=bus - 1, subordinate=bus + 1, **_SWITCH, **above),
        Function(
            port,
            upstream,
            kind=DOWNSTREAM,
            secondary=bus,
            subordinate=bus,
            slot_number=_slot(host, card),
            **_SWITCH,
            **below,
        ),
        _card_function(host, card, port, position),
        Function(
            nic_port,
            upstream,
            kind=DOWNSTREAM,
            secondary=bus + 1,
            subordinate=bus + 1,
            slot_number=nic_slot(host, position),
            **_SWITCH,
            **above,
        ),
        Function(nic, nic_port, bars=[(0, start, 32 * _MIB)], **_NIC, **above),
    ]


def _direct(host: Host, card: Card, position: int) -> list[Function]:
    """Root port and card, nothing between."""
    domain, bus = card.address.split(":")[0], bus_of(card.address)
    bridge = (bus - 1) & 0xF0
    root = _at(domain, bridge, bus - bridge)
    return [
        Function(
            root, None, kind=ROOT_PORT, secondary=bus, subordinate=bus, slot_number=_slot(host, card),
            numa_node=card.numa_node, speed_gts=card.speed_gts, max_speed_gts=card.link_speed_gts, width=card.width,
            max_width=card.link_width, **_root_port(host.vendor),
        ),
        _card_function(host, card, root, position),
    ]  # fmt: skip


def _slot(host: Host, card: Card) -> int | None:
    return None if host.slot_scheme == "none" else card.sysfs_slot


def nic_slot(host: Host, position: int) -> int | None:
    """Return the kernel's slot number of the NIC beside a card, by the position of the card on the bus."""
    return None if host.slot_scheme == "none" else 41 + position


def _rest_of_server(host: Host) -> list[Function]:
    """What a server has besides cards, and what no count of cards may include."""
    bus, domain, found = host.system_bus, "0000", []
    root = _root_port(host.vendor)
    slow = {"speed_gts": 5.0, "max_speed_gts": 5.0, "width": 1, "max_width": 1}
    start = _WINDOW - _WINDOW_STEP
    console = _at(domain, bus, 0x1C)
    if host.vendor == "ascend":
        # Huawei's own management controller has the vendor id of the cards and a display class.
        found += [
            Function(console, None, kind=ROOT_PORT, secondary=bus + 1, subordinate=bus + 1, **root, **slow),
            Function(
                _at(domain, bus + 1, 0), console, "19e5:1711", 0x030000, subsystem="19e5:1711", revision=1,
                driver="hibmc-drm", bars=[(0, start, 32 * _MIB)], **slow,
            ),
        ]  # fmt: skip
    else:
        found += [
            Function(console, None, kind=ROOT_PORT, secondary=bus + 1, subordinate=bus + 2, **root, **slow),
            Function(
                _at(domain, bus + 1, 0),
                console,
                "1a03:1150",
                0x060400,
                TO_PCI,
                "1a03:1150",
                6,
                secondary=bus + 2,
                subordinate=bus + 2,
                **slow,
            ),
            Function(
                _at(domain, bus + 2, 0),
                _at(domain, bus + 1, 0),
                "1a03:2000",
                0x030000,
                CONVENTIONAL,
                "1a03:2000",
                0x52,
                driver="ast",
                bars=[(0, start, 64 * _MIB)],
                extra={"drm/card0/dev": b"226:0\n", "drm/card0/device": "../.."},
            ),
        ]
    if host.vendor == "nvidia" and host.wiring == "switched":
        links = _at(domain, bus, 5)
        found += [
            Function(links, None, kind=ROOT_PORT, secondary=bus + 3, subordinate=bus + 8, **root),
            Function(_at(domain, bus + 3, 0), links, kind=UPSTREAM, secondary=bus + 4, subordinate=bus + 8, **_SWITCH),
        ]
        for number in range(4):
            port = _at(domain, bus + 4, number)
            at = bus + 5 + number
            found += [
                Function(
                    port,
                    _at(domain, bus + 3, 0),
                    kind=DOWNSTREAM,
                    secondary=at,
                    subordinate=at,
                    max_width=2,
                    width=2,
                    **_SWITCH,
                ),
                Function(
                    _at(domain, at, 0),
                    port,
                    "10de:22a3",
                    0x068000,
                    subsystem="10de:1796",
                    revision=0xA1,
                    max_width=2,
                    width=2,
                    driver="nvidia-nvswitch",
                    bars=[(0, start + (8 + number) * 32 * _MIB, 32 * _MIB)],
                ),
            ]
    found += [
        # Parts of the root complex: no bridge leads to them.
        Function(_at(domain, bus, 0x08 + number), None, pci_id, pci_class, CONVENTIONAL, pci_id, driver=driver)
        for number, (pci_id, pci_class, driver) in enumerate(
            MAKERS[host.vendor].others if host.vendor in MAKERS else ()
        )
    ]
    network = _at(domain, bus, 0x1D)
    found.append(
        Function(
            network,
            None,
            kind=ROOT_PORT,
            secondary=bus + 9,
            subordinate=bus + 9,
            max_speed_gts=8.0,
            speed_gts=8.0,
            width=4,
            max_width=4,
            **root,
        )
    )
    found += [
        Function(
            _at(domain, bus + 9, 0, number),
            network,
            "8086:1563",
            0x020000,
            subsystem="8086:0001",
            revision=1,
            speed_gts=8.0,
            max_speed_gts=8.0,
            width=4,
            max_width=4,
            driver="ixgbe",
            bars=[(0, start + (16 + number) * 32 * _MIB, 4 * _MIB)],
        )
        for number in range(2)
    ]
    if host.wiring == "direct":
        fabric = _at(domain, bus, 2)
        found += [
            Function(
                fabric,
                None,
                kind=ROOT_PORT,
                secondary=bus + 0xA,
                subordinate=bus + 0xA,
                slot_number=nic_slot(host, 0),
                **root,
            ),
            Function(_at(domain, bus + 0xA, 0), fabric, bars=[(0, start + 20 * 32 * _MIB, 32 * _MIB)], **_NIC),
        ]
    return found


def config_space(one: Function) -> bytes:
    """Return the 4096 bytes of a function's config space; all ones when it no longer answers."""
    if not one.responding:
        return b"\xff" * 4096
    space = bytearray(4096 if one.kind != CONVENTIONAL else 256)
    vendor, device = (int(part, 16) for part in one.pci_id.split(":"))
    multi = one.address.endswith(".1") or one.pci_id == "8086:1563"
    header = (1 if one.is_bridge else 0) | (0x80 if multi else 0)
    # Memory and bus mastering on, no legacy interrupt; "capabilities list" set.
    struct.pack_into("<HHHH", space, 0x00, vendor, device, 0x0406, 0x0010)
    struct.pack_into("<I", space, 0x08, one.pci_class << 8 | one.revision)
    struct.pack_into("<BBBB", space, 0x0C, 0x10, 0, header, 0)
    space[0x34] = _POWER_CAP
    space[0x3C], space[0x3D] = one.irq & 0xFF, 1
    for register, start, _size in one.bars:
        struct.pack_into("<Q", space, 0x10 + 4 * register, start | 0x0C)
    if one.is_bridge:
        bus = bus_of(one.address)
        struct.pack_into("<BBBB", space, 0x18, bus, one.secondary, one.subordinate, 0)
        struct.pack_into("<BBH", space, 0x1C, 0xF1, 0x01, 0)  # no I/O behind: base above limit
        struct.pack_into("<HH", space, 0x20, 0xFFF0, 0x0000)  # no 32-bit memory either
        low, high = one.window or (0xFFFF_FFF0_0000, 0x1)
        last = high - 1
        struct.pack_into("<HH", space, 0x24, (low >> 16 & 0xFFF0) | 1, (last >> 16 & 0xFFF0) | 1)
        struct.pack_into("<II", space, 0x28, low >> 32, last >> 32)
    else:
        sub_vendor, sub_device = (int(part, 16) for part in one.subsystem.split(":"))
        struct.pack_into("<HH", space, 0x2C, sub_vendor, sub_device)
    express = one.kind != CONVENTIONAL
    struct.pack_into("<BBHHH", space, _POWER_CAP, 0x01, _EXPRESS_CAP if express else 0, 0x0003, 0x0008, 0)
    if express:
        _express(space, one)
    return bytes(space)


def _express(space: bytearray, one: Function) -> None:
    """Write the PCI Express capability, version 2."""
    speed, fastest = SPEED_CODES[one.speed_gts], SPEED_CODES[one.max_speed_gts]
    is_port = one.kind in (ROOT_PORT, DOWNSTREAM)
    slot = one.slot_number if is_port else None
    port = int(one.address[-4:-2], 16) if one.is_bridge else 0
    link = speed | one.width << 4 | 1 << 12 | (1 << 13 if is_port else 0)
    struct.pack_into("<BBH", space, _EXPRESS_CAP, 0x10, 0, 2 | one.kind << 4 | (1 << 8 if slot else 0))
    struct.pack_into("<IHH", space, _EXPRESS_CAP + 0x04, 0x8001, 0x2810, 0)  # payload 256 bytes, role-based errors
    struct.pack_into("<IHH", space, _EXPRESS_CAP + 0x0C, fastest | one.max_width << 4 | port << 24, 0x0040, link)
    if slot:
        struct.pack_into("<IHH", space, _EXPRESS_CAP + 0x14, slot << 19, 0, 0x0040)  # a card is present
    struct.pack_into("<IHH", space, _EXPRESS_CAP + 0x2C, ((1 << fastest) - 1) << 1, fastest, 0)


def _speed_text(speed: float) -> bytes:
    return f"{speed:.1f} GT/s PCIe\n".encode()


def files(one: Function) -> dict[str, bytes | str | None]:
    """Return what the directory of a function holds."""
    vendor, device = one.pci_id.split(":")
    sub_vendor, sub_device = one.subsystem.split(":")
    alias = (
        f"pci:v0000{vendor.upper()}d0000{device.upper()}sv0000{sub_vendor.upper()}sd0000{sub_device.upper()}"
        f"bc{one.pci_class >> 16:02X}sc{one.pci_class >> 8 & 0xFF:02X}i{one.pci_class & 0xFF:02X}"
    )
    uevent = (
        (f"DRIVER={one.driver}\n" if one.driver else "")
        + f"PCI_CLASS={one.pci_class:X}\nPCI_ID={one.pci_id.upper()}\nPCI_SUBSYS_ID={one.subsystem.upper()}\n"
        + f"PCI_SLOT_NAME={one.address}\nMODALIAS={alias}\n"
    )
    entries: dict[str, bytes | str | None] = {
        "vendor": f"0x{vendor}\n".encode(),
        "device": f"0x{device}\n".encode(),
        "subsystem_vendor": f"0x{sub_vendor}\n".encode(),
        "subsystem_device": f"0x{sub_device}\n".encode(),
        "class": f"0x{one.pci_class:06x}\n".encode(),
        "revision": f"0x{one.revision:02x}\n".encode(),
        "irq": f"{one.irq}\n".encode(),
        "enable": b"1\n" if one.driver else b"0\n",
        "numa_node": f"{one.numa_node}\n".encode(),
        "local_cpulist": f"{CPU_LISTS[one.numa_node % 2]}\n".encode(),
        "local_cpus": f"{_CPU_MASKS[one.numa_node % 2]}\n".encode(),
        "modalias": f"{alias}\n".encode(),
        "uevent": uevent.encode(),
        "resource": _resource(one),
        "config": config_space(one),
        **one.extra,
    }
    if one.kind != CONVENTIONAL:
        # The kernel reads the link from the config space each time: ones give "Unknown" and 63 lanes.
        entries["current_link_speed"] = _speed_text(one.speed_gts) if one.responding else b"Unknown\n"
        entries["current_link_width"] = f"{one.width if one.responding else 63}\n".encode()
        # What a device can do is known from the start for the speed only.
        entries["max_link_speed"] = _speed_text(one.max_speed_gts)
        entries["max_link_width"] = f"{one.max_width if one.responding else 63}\n".encode()
    if one.is_bridge:
        entries["secondary_bus_number"] = f"{one.secondary}\n".encode()
        entries["subordinate_bus_number"] = f"{one.subordinate}\n".encode()
    return entries


def _resource(one: Function) -> bytes:
    """Return the ranges of the registers: a bridge has four windows after those and six of virtual functions."""
    lines = [(0, 0, 0)] * (17 if one.is_bridge else 13)
    for register, start, size in one.bars:
        lines[register] = (start, start + size - 1, _MEM64_PREFETCH)
    if one.is_bridge and one.window:
        lines[15] = (one.window[0], one.window[1] - 1, _MEM64_PREFETCH)
    return "".join(f"0x{start:016x} 0x{end:016x} 0x{flags:016x}\n" for start, end, flags in lines).encode()


def tree(host: Host, found: list[Function] | None = None) -> dict[str, bytes | str | None]:
    """Return what lies under ``/sys/bus/pci``.

    ``devices`` holds links, as on a real host; their targets lie inside (``tree``) and not under
    ``/sys/devices``, so that one bind mount shows it all and a real path still names every bridge.
    """
    found = functions(host) if found is None else found
    entries: dict[str, bytes | str | None] = {
        "devices": None,
        "drivers": None,
        "slots": None,
        "drivers_autoprobe": b"1\n",
    }
    paths: dict[str, str] = {}
    for one in found:
        domain, bus = one.address.split(":")[:2]
        path = paths[one.address] = (
            f"{paths[one.parent]}/{one.address}" if one.parent else f"tree/pci{domain}:{bus}/{one.address}"
        )
        up = "../" * (path.count("/") + 1)
        for name, content in files(one).items():
            # Links are relative, as the kernel's are.
            leads_out = isinstance(content, str) and content.startswith("/sys/")
            entries[f"{path}/{name}"] = f"{up}../../{content[5:]}" if leads_out else content
        entries[f"devices/{one.address}"] = f"../{path}"
        entries[f"{path}/subsystem"] = up.rstrip("/")
        if one.driver:
            entries[f"{path}/driver"] = f"{up}drivers/{one.driver}"
            entries[f"drivers/{one.driver}/{one.address}"] = f"../../{path}"
    for number, address in slots(host, found).items():
        entries[f"slots/{number}/address"] = f"{address.rsplit('.', 1)[0]}\n".encode()
    return entries


def slots(host: Host, found: list[Function]) -> dict[int, str]:
    """Return the kernel's slots: number and the address of the function that the slot names."""
    if host.slot_scheme == "none":
        return {}
    named = {}
    below = {one.parent: one.address for one in found if one.parent}
    for one in found:
        if one.slot_number:
            named[one.slot_number] = one.address if host.slot_scheme == "bridge" else below[one.address]
    return named
