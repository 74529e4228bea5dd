# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where real software looks, and what it is to find there."""

from __future__ import annotations

from dataclasses import dataclass

from . import amd, ascend, dmi, nvidia, pci, vendors
from .catalogue import MAKERS
from .state import Card, Host, asic_serial

BIND, OVERLAY = "bind", "overlay"
# Kind of a link between nodes of the compute driver (kernel, kfd_crat.h: CRAT_IOLINK_TYPE_PCIEXPRESS).
_PCI_EXPRESS = 2


@dataclass
class View:
    """One mount: what lies under ``target``. An overlay lays the tree over what is there."""

    name: str
    target: str
    kind: str
    tree: dict


def views(host: Host) -> list[View]:
    """Return every mount that the host needs."""
    functions = pci.functions(host)
    found = [
        View("pci", "/sys/bus/pci", BIND, pci.tree(host, functions)),
        View("firmware", "/sys/firmware", BIND, dmi.tree(host)),
        View("module", "/sys/module", OVERLAY, modules(host)),
        View("class", "/sys/class", OVERLAY, classes(host, functions)),
    ]
    if host.vendor == "nvidia":
        found.append(View("proc", "/proc/driver", BIND, proc_driver(host)))
    if host.vendor == "ascend":
        found.append(
            View("ascend", "/usr/local/Ascend/driver", BIND, {"version.info": ascend.version_info(host).encode()})
        )
    if host.vendor in MAKERS:
        found += [View(*tree) for tree in vendors.trees(host)]
    return found


def answers(host: Host) -> dict[str, dict]:
    """Return what each vendor tool of the host needs to answer: tool -> data."""
    if host.vendor in MAKERS:
        return vendors.answers(host)
    if host.vendor == "nvidia":
        data, tools = nvidia.render(host), ["nvidia-smi"]
    elif host.vendor == "amd":
        data, tools = amd.render(host), ["amd-smi", "rocm-smi"]
    else:
        data, tools = ascend.render(host), ["npu-smi"]
    return {tool: {**data, "garbage": host.garbage} for tool in tools}


def device_nodes(host: Host) -> list[str]:
    """Return the character devices under ``/dev`` that the vendor's driver makes."""
    if host.vendor in MAKERS:
        return vendors.nodes(host)
    indexes = [card.index for card in host.cards]
    if host.vendor == "nvidia":
        return [
            *(f"nvidia{index}" for index in indexes),
            "nvidiactl",
            "nvidia-uvm",
            "nvidia-uvm-tools",
            "nvidia-modeset",
        ]
    if host.vendor == "ascend":
        # The number is that of the physical chip, which on one-chip cards is the NPU.
        virtual = [f"vdavinci{number}" for card in host.cards for number in ascend.vnpus(card)]
        return [*(f"davinci{index}" for index in indexes), *virtual, "davinci_manager", "devmm_svm", "hisi_hdc"]
    if not host.driver_ready:
        return []
    present = [card.index for card in host.cards if not card.lost]
    return [
        "kfd",
        *(f"dri/renderD{pci.RENDER + index}" for index in present),
        *(f"dri/card{index + 1}" for index in present),
    ]


def held_nodes(host: Host) -> list[str]:
    """Return the device nodes below ``/dev`` that a process is to have open."""
    if host.vendor in MAKERS:
        return vendors.held(host)
    names = {"nvidia": "nvidia{0}", "ascend": "davinci{0}"}
    held = [card.index for card in host.cards if card.held]
    if host.vendor == "amd":
        return [f"dri/renderD{pci.RENDER + index}" for index in held]
    return [names[host.vendor].format(index) for index in held]


def modules(host: Host) -> dict:
    """Return the kernel modules of the vendor as ``/sys/module`` shows them."""
    names: tuple[str, ...]
    if host.vendor in MAKERS:
        names, version = vendors.modules(host)
    elif host.vendor == "nvidia":
        names, version = ("nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm"), host.driver_version
    elif host.vendor == "ascend":
        names, version = ("drv_davinci_intf_host", "drv_devmm_host", "drv_devmng_host", "drv_pcie_host"), ""
    else:
        # A driver that user space can't use is one that is not there.
        names, version = ("amdgpu",) if host.driver_ready else (), host.driver_version
    tree: dict = {}
    for name in names:
        tree[f"{name}/initstate"] = b"live\n"
        tree[f"{name}/refcnt"] = b"8\n"
        if version:
            tree[f"{name}/version"] = f"{version}\n".encode()
    return tree


def proc_driver(host: Host) -> dict:
    """Return ``/proc/driver``: what NVIDIA's kernel module tells without any library."""
    version = (
        f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {host.driver_version}  Mon Mar  3 02:11:44 UTC 2025\n"
        "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"
    )
    tree: dict = {"nvidia/version": version.encode(), "nvidia/params": b"EnableMSI: 1\n"}
    for card in host.cards:
        pairs = (
            ("Model", card.model),
            ("IRQ", 300 + card.index),
            ("GPU UUID", card.uuid),
            ("Video BIOS", card.firmware_version),
            ("Bus Type", "PCIe"),
            ("DMA Size", "52 bits"),
            ("DMA Mask", "0xfffffffffffff"),
            ("Bus Location", card.address),
            ("Device Minor", card.index),
            ("GPU Firmware", host.driver_version),
            ("GPU Excluded", "No"),
        )
        text = "".join(f"{name + ':':<17}{value}\n" for name, value in pairs)
        tree[f"nvidia/gpus/{card.address}/information"] = text.encode()
    return tree


def classes(host: Host, functions: list[pci.Function]) -> dict:
    """Return what is added under ``/sys/class``: the firmware's identity, AMD's graphics and compute devices."""
    identity = {
        "sys_vendor": host.manufacturer, "product_name": host.product, "product_serial": host.serial,
        "board_vendor": host.manufacturer, "board_name": f"{host.product} base board", "chassis_serial": host.serial,
        "bios_version": "1.4.2",
    }  # fmt: skip
    tree: dict = {f"dmi/id/{name}": f"{value}\n".encode() for name, value in identity.items()}
    if host.vendor != "amd" or not host.driver_ready:
        return tree
    paths = {one.address: one for one in functions}
    for one in functions:
        path, root = one.address, one
        while root.parent:
            path, root = f"{root.parent}/{path}", paths[root.parent]
        below = {tuple(place.split("/")[:2]) for place in one.extra if place.startswith(("drm/", "hwmon/"))}
        for kind, name in sorted(below):
            tree[f"{kind}/{name}"] = f"../../bus/pci/tree/pci{root.address.rsplit(':', 1)[0]}/{path}/{kind}/{name}"
    tree.update(kfd_topology(host))
    return tree


def kfd_topology(host: Host) -> dict:
    """Return the compute driver's nodes: two processors, then the cards."""
    base = "kfd/kfd/topology"
    tree: dict = {f"{base}/generation_id": b"2\n"}
    for number in range(2):
        tree[f"{base}/nodes/{number}/gpu_id"] = b"0\n"
        tree[f"{base}/nodes/{number}/name"] = b"\n"
        tree[f"{base}/nodes/{number}/properties"] = _properties(
            cpu_cores_count=96, simd_count=0, vendor_id=0, device_id=0
        )
        tree.update(_folders(f"{base}/nodes/{number}"))
    for card in host.cards:
        if card.lost:
            continue
        node = f"{base}/nodes/{card.index + 2}"
        tree[f"{node}/gpu_id"] = f"{amd.kfd_id(card)}\n".encode()
        tree[f"{node}/name"] = b"ip discovery\n"
        tree[f"{node}/properties"] = _card_properties(card)
        tree.update(_folders(node))
        # The link to its processor: AMD's library gives up a card without one.
        tree[f"{node}/io_links/0/properties"] = _properties(
            type=_PCI_EXPRESS, version_major=0, version_minor=0, node_from=card.index + 2, node_to=card.numa_node,
            weight=20, min_latency=0, max_latency=0, min_bandwidth=0, max_bandwidth=0, recommended_transfer_size=0,
            flags=1,
        )  # fmt: skip
    return tree


def _folders(node: str) -> dict:
    """Return the folders of a node that the driver always makes; AMD's library ends itself where one is missing."""
    return {f"{node}/{name}": None for name in ("caches", "io_links", "mem_banks", "p2p_links")}


def _card_properties(card: Card) -> bytes:
    domain, bus, rest = card.address.split(":")
    device, function = rest.split(".")
    location = int(bus, 16) << 8 | int(device, 16) << 3 | int(function)
    return _properties(
        cpu_cores_count=0, simd_count=card.compute_units * 4, max_waves_per_simd=8,
        array_count=32, simd_arrays_per_engine=1, cu_per_simd_array=card.compute_units // 32 + 1, simd_per_cu=4,
        gfx_target_version={"gfx942": 90402, "gfx90a": 90010}.get(card.architecture, 0),
        vendor_id=0x1002, device_id=int(card.pci_id[5:], 16), location_id=location, domain=int(domain, 16),
        drm_render_minor=pci.RENDER + card.index, hive_id=7 if card.pci_class >> 16 == 0x12 else 0,
        unique_id=int(asic_serial(card), 16), num_xcc=8 if card.architecture == "gfx942" else 1,
    )  # fmt: skip


def _properties(**told: int) -> bytes:
    return "".join(f"{name} {value}\n" for name, value in told.items()).encode()


def all_tools() -> tuple[str, ...]:
    """Return the tools of every vendor: those of another vendor are taken away."""
    found = ["nvidia-smi", "amd-smi", "rocm-smi", "npu-smi", *(tool for one in MAKERS.values() for tool in one.tools)]
    return tuple(dict.fromkeys(found))
