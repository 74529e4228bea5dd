# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is known of cards and servers: models, and profiles of whole hosts.

A profile fixes where cards sit (addresses, slots, NUMA nodes): hosts of one profile are one server
model, so their addresses are equal and only serials and unique ids differ.
"""

from __future__ import annotations

from . import catalogue
from .catalogue import MAKERS

VENDORS = ("nvidia", "amd", "ascend", *MAKERS)

# Sizes of base address registers in MiB, in the order of the registers.
# memory_mib is what the vendor's tool calls the total.
MODELS: dict[str, dict] = {
    "NVIDIA H100 80GB HBM3": {
        "vendor": "nvidia", "pci_id": "10de:2330", "subsystem": "10de:16c1", "pci_class": 0x030200, "revision": 0xA1,
        "memory_mib": 81559, "link_speed_gts": 32.0, "link_width": 16, "bars_mib": (16, 131072, 32),
        "architecture": "Hopper", "part_number": "692-2G520-0200-000", "firmware_version": "96.00.A5.00.01",
        "power_watts": 700, "clocks_mhz": (1980, 2619),
    },
    "NVIDIA H200": {
        "vendor": "nvidia", "pci_id": "10de:2335", "subsystem": "10de:18be", "pci_class": 0x030200, "revision": 0xA1,
        "memory_mib": 143771, "link_speed_gts": 32.0, "link_width": 16, "bars_mib": (16, 262144, 32),
        "architecture": "Hopper", "part_number": "692-2G520-0280-000", "firmware_version": "96.00.BC.00.02",
        "power_watts": 700, "clocks_mhz": (1980, 3201),
    },
    "NVIDIA A100-SXM4-80GB": {
        "vendor": "nvidia", "pci_id": "10de:20b2", "subsystem": "10de:147f", "pci_class": 0x030200, "revision": 0xA1,
        "memory_mib": 81920, "link_speed_gts": 16.0, "link_width": 16, "bars_mib": (16, 131072, 32),
        "architecture": "Ampere", "part_number": "692-2G506-0210-002", "firmware_version": "92.00.45.00.03",
        "power_watts": 400, "clocks_mhz": (1410, 1593),
    },
    "AMD Instinct MI300X": {
        "vendor": "amd", "pci_id": "1002:74a1", "subsystem": "1002:74a1", "pci_class": 0x120000, "revision": 0x00,
        "memory_mib": 196592, "link_speed_gts": 32.0, "link_width": 16, "bars_mib": (262144, 2, 1),
        "architecture": "gfx942", "part_number": "113-M3000100-102", "firmware_version": "022.040.003.042.000001",
        "power_watts": 750, "clocks_mhz": (2100, 1300), "compute_units": 304,
    },
    "AMD Instinct MI210": {
        "vendor": "amd", "pci_id": "1002:740f", "subsystem": "1002:0c34", "pci_class": 0x038000, "revision": 0x02,
        "memory_mib": 65520, "link_speed_gts": 16.0, "link_width": 16, "bars_mib": (65536, 2, 1),
        "architecture": "gfx90a", "part_number": "113-D67301-063", "firmware_version": "017.003.000.014.016967",
        "power_watts": 300, "clocks_mhz": (1700, 1600), "compute_units": 104,
    },
    "910B3": {
        "vendor": "ascend", "pci_id": "19e5:d802", "subsystem": "19e5:3000", "pci_class": 0x120000, "revision": 0x20,
        "memory_mib": 65536, "link_speed_gts": 32.0, "link_width": 16, "bars_mib": (32, 65536, 64),
        "architecture": "V1", "part_number": "IT21HMDB01-B3", "firmware_version": "7.7.0.6.236",
        "power_watts": 400, "clocks_mhz": (1650, 1600),
    },
    "910B4": {
        "vendor": "ascend", "pci_id": "19e5:d802", "subsystem": "19e5:4000", "pci_class": 0x120000, "revision": 0x20,
        "memory_mib": 32768, "link_speed_gts": 32.0, "link_width": 16, "bars_mib": (32, 65536, 64),
        "architecture": "V1", "part_number": "IT21DMDA01-B4", "firmware_version": "7.7.0.6.236",
        "power_watts": 310, "clocks_mhz": (1500, 1600),
    },
    **catalogue.MODELS,
}  # fmt: skip

# Slot label, by the number of the slot.
SLOT_LABELS = {
    "nvidia": "SXM{}", "amd": "OAM{}", "ascend": "NPU{}", **{name: maker.label for name, maker in MAKERS.items()},
}  # fmt: skip

# cards: (index of the tool, address, slot number, NUMA node). The index is not the slot on any of them:
# real servers number modules across the board and enumerate buses by socket.
# wiring: "switched" puts root port, switch and card on buses b-3 .. b, and a NIC on b+1; "direct" puts the
# card right under its root port, two to a host bridge.
# slot_base: what the kernel adds to the vendor's slot number in its own slot names; firmware numbers slots as it likes.
# slot_scheme: what /sys/bus/pci/slots shows. "card": address of the card; "bridge": of the port above it; "none".
PROFILES: dict[str, dict] = {
    "nvidia_h100_8": {
        "vendor": "nvidia", "model": "NVIDIA H100 80GB HBM3", "driver_version": "570.86.15",
        "wiring": "switched", "slot_scheme": "card", "system_bus": 0x00,
        "manufacturer": "Accel Rehearsal", "product": "AR-8200 HGX",
        "cards": (
            (0, "0000:18:00.0", 2, 0), (1, "0000:2a:00.0", 4, 0), (2, "0000:3a:00.0", 3, 0), (3, "0000:5d:00.0", 1, 0),
            (4, "0000:9a:00.0", 7, 1), (5, "0000:ab:00.0", 8, 1), (6, "0000:ba:00.0", 5, 1), (7, "0000:db:00.0", 6, 1),
        ),
    },
    "amd_mi300x_8": {
        "vendor": "amd", "model": "AMD Instinct MI300X", "driver_version": "6.12.12",
        "wiring": "switched", "slot_scheme": "bridge", "system_bus": 0xF0, "slot_base": 20,
        "manufacturer": "Accel Rehearsal", "product": "AR-8300 OAM",
        "cards": (
            (0, "0000:05:00.0", 3, 0), (1, "0000:26:00.0", 1, 0), (2, "0000:46:00.0", 0, 0), (3, "0000:65:00.0", 2, 0),
            (4, "0000:85:00.0", 7, 1), (5, "0000:a6:00.0", 5, 1), (6, "0000:c6:00.0", 4, 1), (7, "0000:e5:00.0", 6, 1),
        ),
    },
    "ascend_910b_8": {
        "vendor": "ascend", "model": "910B3", "driver_version": "25.2.0",
        "wiring": "direct", "slot_scheme": "card", "system_bus": 0x20,
        "manufacturer": "Accel Rehearsal", "product": "AR-8910 NPU",
        "cards": (
            (0, "0000:c1:00.0", 4, 1), (1, "0000:c2:00.0", 3, 1), (2, "0000:81:00.0", 2, 1), (3, "0000:82:00.0", 1, 1),
            (4, "0000:01:00.0", 8, 0), (5, "0000:02:00.0", 7, 0), (6, "0000:41:00.0", 6, 0), (7, "0000:42:00.0", 5, 0),
        ),
    },
    **catalogue.PROFILES,
}  # fmt: skip

# Releases whose output format is known from recordings; another branch would answer in a made-up one.
DRIVERS = {
    "nvidia": ("535", "550", "570", "580", "590"),
    "amd": ("6.8", "6.10", "6.12", "6.14", "6.16"),
    "ascend": ("24", "25"),
    **{name: maker.releases for name, maker in MAKERS.items()},
}

# Branch of the NVIDIA driver: CUDA version, version of the DTD, and a later user library of the same branch
# (what an unattended upgrade would bring).
NVIDIA_BRANCHES = {
    # Debian 12's; of this branch no recording was at hand, its form is that of 550 (the same version of the DTD).
    "535": ("12.2", 12, "535.309.01"),
    "550": ("12.4", 12, "550.163.01"),
    "570": ("12.8", 12, "570.124.06"),
    "580": ("13.0", 13, "580.105.08"),
    "590": ("13.1", 13, "590.52.03"),
}

# Branch of amdgpu: version of amd-smi, of its library, of ROCm.
AMD_BRANCHES = {
    "6.8": ("24.6.3+9578815", "24.6.3.0", "6.2.4"),
    "6.10": ("24.7.1+b446d6c", "24.7.1.0", "6.3.2"),
    "6.12": ("25.3.0+7a1c22e", "25.3.0", "6.4.1"),
    "6.14": ("26.0.0+3c5a9d0", "26.0.0", "7.0.1"),
    "6.16": ("26.2.0+81f0b7d", "26.2.0", "7.1.1"),
}


def branch(vendor: str, version: str) -> str | None:
    """Return the branch of a driver version that this emulator can answer for, None when there is none."""
    for known in DRIVERS.get(vendor, ()):
        if version == known or version.startswith(known + "."):
            return known
    return None
