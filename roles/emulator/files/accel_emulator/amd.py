# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``amd-smi`` and ``rocm-smi`` say of a host, rendered once when the state changes.

``amd-smi`` writes one structure as JSON or, upper-cased and indented, as text: both come from the same
dictionaries here. A card that is lost has left the driver: it is missing from every listing.
"""

from __future__ import annotations

from . import models
from .state import Card, Host, asic_serial, hexes, peers, temperature_c, watts_drawn

NA = "N/A"
_BLOCKS = (
    "UMC", "SDMA", "GFX", "MMHUB", "ATHUB", "PCIE_BIF", "HDP", "XGMI_WAFL", "DF", "SMN", "SEM", "MP0", "MP1", "FUSE",
    "MCA", "VCN", "JPEG", "IH", "MPIO",
)  # fmt: skip
_COUNTED = ("UMC", "SDMA", "GFX", "MMHUB", "PCIE_BIF", "HDP", "XGMI_WAFL")


def unit(value: object, name: str) -> dict:
    """Return a number with its unit, as amd-smi writes it from ROCm 6.0 on."""
    return {"value": value, "unit": name}


def render(host: Host) -> dict:
    """Return everything the two tools need to answer, as plain data."""
    branch = models.branch("amd", host.driver_version) or ""
    tool, library, rocm = models.AMD_BRANCHES[branch]
    present = [card for card in host.cards if not card.lost]
    # A card that is split is listed once a partition; all after it count on.
    cards: list[dict] = []
    for card in present:
        cards += [_card(host, card, len(cards) + part, part, branch) for part in range(PARTITIONS if card.split else 1)]
    return {
        "branch": [int(part) for part in branch.split(".")],
        "driver": host.driver_version,
        "tool": host.tool_version or tool,
        "library": library,
        "rocm": rocm,
        "ready": host.driver_ready,
        "cards": cards,
    }


# Mode CPX: one partition for each of the eight dies of an MI300X.
PARTITIONS = 8


def _card(host: Host, card: Card, index: int, part: int, branch: str) -> dict:
    address = f"{card.address[:-1]}{part}"  # PCI knows no such function: it is the number of the partition
    told, measured = static(host, card, branch), metric(card, branch)
    told["bus"]["bdf"] = address
    told["partition"]["partition_id"] = part
    if part:
        # What belongs to the whole card is told of its first partition only.
        told.update({name: NA for name in ("limit", "board", "ras", "vbios", "ifwi") if name in told})
        measured = dict.fromkeys(measured, NA)
    return {
        "gpu": index,
        "address": address,
        "uuid": card.uuid,
        "first": not part,
        "state": "hung" if card.hung else "ok",
        "list": {
            "gpu": index, "bdf": address, "uuid": card.uuid, "kfd_id": kfd_id(card), "node_id": card.index + 2,
            "partition_id": part,
        },
        "static": told,
        "metric": measured,
        "xgmi": xgmi(host, card, branch),
        "rocm": rocm_keys(card),
        "concise": _concise(card),
    }  # fmt: skip


def xgmi(host: Host, card: Card, branch: str) -> dict:
    """Return what ``amd-smi xgmi`` tells of one card: its ports, and the state by the card at the other end.

    Each card of a board has a link to each other one; the eighth port is not wired. Before ROCm 6.4 there is no state.
    """
    if card.pci_class >> 16 != 0x12:
        return {}
    links = {address: "U" if up else "D" for address, up in peers(host, card).items()}
    ports = [*links.values(), *["X"] * (8 - len(links))]
    if tuple(int(part) for part in branch.split(".")) < (6, 12):
        ports, links = [], dict.fromkeys(links, "")
    return {"ports": ports, "peers": links, "rate": 32, "most": 512}


def kfd_id(card: Card) -> int:
    """Return the number that the compute driver gives a card; it follows from the chip."""
    return int(hexes(4, "kfd", card.uuid), 16)


def drm_number(card: Card) -> int:
    """Return N of ``/dev/dri/cardN``: card0 is the display of the management controller."""
    return card.index + 1


def static(host: Host, card: Card, branch: str) -> dict:
    """Return the sections of ``amd-smi static`` for one card."""
    newer = tuple(int(part) for part in branch.split(".")) >= (6, 14)
    vendor, device = card.pci_id.split(":")
    sub_vendor, sub_device = card.subsystem.split(":")
    module = card.pci_class >> 16 == 0x12
    firmware = {
        "name": f"{card.model.upper()}",
        "build_date": "2024/11/08 16:23",
        "part_number": card.part_number,
        "version": card.firmware_version,
    }
    hot = {"slowdown": 100, "shutdown": 110}
    limit: dict = {
        "max_power": unit(card.power_watts, "W"),
        "min_power": unit(0, "W"),
        "socket_power": unit(card.power_watts, "W"),
    }
    for kind, celsius in hot.items():
        limit[f"{kind}_edge_temperature"] = NA
        limit[f"{kind}_hotspot_temperature"] = unit(celsius, "C")
        limit[f"{kind}_vram_temperature"] = unit(celsius + 5, "C")
    return {
        "asic": {
            "market_name": card.model,
            "vendor_id": f"0x{vendor}",
            "vendor_name": "Advanced Micro Devices Inc. [AMD/ATI]",
            "subvendor_id": f"0x{sub_vendor}",
            "device_id": f"0x{device}",
            "subsystem_id": f"0x{sub_device}",
            "rev_id": f"0x{card.revision:02x}",
            "asic_serial": asic_serial(card),
            "oam_id": card.slot_number if module else NA,
            "num_compute_units": card.compute_units,
            "target_graphics_version": card.architecture,
        },
        "bus": {
            "bdf": card.address,
            "max_pcie_width": card.link_width,
            "max_pcie_speed": unit(int(card.link_speed_gts), "GT/s"),
            "pcie_interface_version": f"Gen {({16.0: 4, 32.0: 5}).get(card.link_speed_gts, 3)}",
            "slot_type": "OAM" if module else "PCIE",
        },
        ("ifwi" if newer else "vbios"): firmware,
        "limit": limit,
        "driver": {"name": "amdgpu", "version": host.driver_version},
        "board": {
            "model_number": "102-G30211-0C",
            "product_serial": card.serial,
            "fru_id": f"{card.part_number}-{card.serial}",
            "product_name": card.model,
            "manufacturer_name": "AMD",
        },
        "ras": {
            "eeprom_version": "0x20000",
            "parity_schema": "DISABLED",
            "single_bit_schema": "DISABLED",
            "double_bit_schema": "DISABLED",
            "poison_schema": "ENABLED",
            "ecc_block_state": {block: "ENABLED" if block in _COUNTED else "DISABLED" for block in _BLOCKS},
        },
        "partition": {
            "compute_partition": "CPX" if card.split else "SPX",
            "memory_partition": "NPS1",
            "partition_id": 0,
        },
        "process_isolation": "Disabled",
        "numa": {"node": card.numa_node, "affinity": card.numa_node},
        "vram": {
            "type": "HBM3" if module else "HBM2",
            "vendor": "HYNIX",
            "size": unit(card.memory_mib, "MB"),
            "bit_width": 8192 if module else 4096,
        },
    }


def errors(card: Card) -> tuple[int, int]:
    """Return the counts of uncorrectable and of deferred memory errors: what critical and warning mean here."""
    return (4 if card.health == "critical" else int(card.ecc)), (2 if card.health == "warning" else 0)


# What slows a card down, by what the section "throttle" of ``amd-smi metric`` calls it (ROCm 6.3 and later).
_VIOLATIONS = ("prochot", "ppt", "socket_thermal", "vr_thermal", "hbm_thermal")


def metric(card: Card, branch: str) -> dict:
    """Return the sections of ``amd-smi metric`` for one card."""
    busy = card.busy
    uncorrected, deferred = errors(card)
    graphics, memory = card.clocks_mhz
    used = card.memory_mib * 4 // 5 if busy else 283
    temperature = temperature_c(card)
    activity = unit(96 if busy else 0, "%")

    def clock(now: int, least: int, most: int) -> dict:
        return {
            "clk": unit(now, "MHz"), "min_clk": unit(least, "MHz"), "max_clk": unit(most, "MHz"),
            "clk_locked": "DISABLED", "deep_sleep": "DISABLED" if busy else "ENABLED",
        }  # fmt: skip

    violations = {
        f"{name}_violation_status": "ACTIVE" if card.throttled and name == "prochot" else "NOT ACTIVE"
        for name in _VIOLATIONS
    }
    newer = tuple(int(part) for part in branch.split(".")) >= (6, 10)
    return {
        **({"throttle": violations} if newer else {}),
        "usage": {
            "gfx_activity": activity,
            "umc_activity": unit(60 if busy else 0, "%"),
            "mm_activity": NA,
            "vcn_activity": [unit(0, "%")] * 4,
        },
        "power": {
            "socket_power": unit(watts_drawn(card), "W"),
            "gfx_voltage": unit(NA, "mV"),
            "soc_voltage": unit(NA, "mV"),
            "mem_voltage": unit(NA, "mV"),
            "throttle_status": "THROTTLED" if card.throttled else "UNTHROTTLED",
            "power_management": "ENABLED",
        },
        "clock": {
            **{f"gfx_{number}": clock(graphics if busy else 132, 500, graphics) for number in range(8)},
            "mem_0": clock(memory if busy else 900, 900, memory),
        },
        "temperature": {"edge": NA, "hotspot": unit(temperature, "C"), "mem": unit(temperature - 6, "C")},
        "pcie": {
            "width": card.width,
            "speed": unit(card.speed_gts if card.speed_gts % 1 else int(card.speed_gts), "GT/s"),
            "bandwidth": unit(42 if busy else 0, "Mb/s"),
            "replay_count": 0,
            "l0_to_recovery_count": 0,
            "replay_roll_over_count": 0,
            "nak_sent_count": 0,
            "nak_received_count": 0,
            "current_bandwidth_sent": NA,
            "current_bandwidth_received": NA,
            "max_packet_size": NA,
            "lc_perf_other_end_recovery": 0,
        },
        "ecc": {
            "total_correctable_count": 0,
            "total_uncorrectable_count": uncorrected,
            "total_deferred_count": deferred,
            "cache_correctable_count": 0,
            "cache_uncorrectable_count": 0,
        },
        "ecc_blocks": {
            block: {
                "correctable_count": 0,
                "uncorrectable_count": uncorrected if block == "UMC" else 0,
                "deferred_count": deferred if block == "UMC" else 0,
            }
            for block in _COUNTED
        },
        "fan": {"speed": NA, "max": NA, "rpm": NA, "usage": NA},
        "perf_level": "AMDSMI_DEV_PERF_LEVEL_AUTO",
        "xgmi_err": "AMDSMI_XGMI_STATUS_NO_ERRORS",
        "energy": {"total_energy_consumption": unit(1200000.25 + card.index, "J")},
        "mem_usage": {
            "total_vram": unit(card.memory_mib, "MB"),
            "used_vram": unit(used, "MB"),
            "free_vram": unit(card.memory_mib - used, "MB"),
            "total_visible_vram": unit(card.memory_mib, "MB"),
            "used_visible_vram": unit(used, "MB"),
            "free_visible_vram": unit(card.memory_mib - used, "MB"),
            "total_gtt": unit(1031790, "MB"),
            "used_gtt": unit(14, "MB"),
            "free_gtt": unit(1031776, "MB"),
        },
    }


def rocm_keys(card: Card) -> dict[str, dict[str, str]]:
    """Return what each option of ``rocm-smi`` shows of one card (ROCm 6.1 and later: keys in title case)."""
    vendor_name = "Advanced Micro Devices, Inc. [AMD/ATI]"
    device, sub = f"0x{card.pci_id[5:]}", f"0x{card.subsystem[5:]}"
    used = (card.memory_mib * 4 // 5 if card.busy else 283) << 20
    temperature = temperature_c(card)
    guid = str(kfd_id(card))
    watts = watts_drawn(card)
    identity = {
        "Device Name": card.model,
        "Device ID": device,
        "Device Rev": f"0x{card.revision:02x}",
        "Subsystem ID": sub,
        "GUID": guid,
    }
    return {
        "id": identity,
        "uniqueid": {"Unique ID": asic_serial(card).lower()},
        "serial": {"Serial Number": card.serial},
        "bus": {"PCI Bus": card.address.upper()},
        "vbios": {"VBIOS version": card.part_number},
        "temp": {
            "Temperature (Sensor junction) (C)": f"{temperature}.0",
            "Temperature (Sensor memory) (C)": f"{temperature - 6}.0",
        },
        "power": {"Current Socket Graphics Package Power (W)": f"{watts}.0"},
        "use": {"GPU use (%)": "96" if card.busy else "0", "GFX Activity": str(3100000000 + card.index)},
        "meminfo": {"VRAM Total Memory (B)": str(card.memory_mib << 20), "VRAM Total Used Memory (B)": str(used)},
        "productname": {
            "Card Series": card.model,
            "Card Model": device,
            "Card Vendor": vendor_name,
            "Card SKU": card.part_number.split("-")[1],
            "Subsystem ID": sub,
            "Device Rev": f"0x{card.revision:02x}",
            "Node ID": str(card.index + 2),
            "GUID": guid,
            "GFX Version": card.architecture,
        },
        "toponuma": {"(Topology) Numa Node": str(card.numa_node), "(Topology) Numa Affinity": str(card.numa_node)},
    }


def _concise(card: Card) -> list[str]:
    temperature = temperature_c(card)
    watts = watts_drawn(card)
    clock = card.clocks_mhz[0] if card.busy else 132
    return [
        str(card.index + 2), f"0x{card.pci_id[5:]},", str(kfd_id(card)), f"{temperature}.0°C", f"{watts}.0W",
        "NPS1, SPX, 0", f"{clock}Mhz", f"{card.clocks_mhz[1] if card.busy else 900}Mhz", "0%", "auto",
        f"{card.power_watts}.0W", "80%" if card.busy else "0%", "96%" if card.busy else "0%",
    ]  # fmt: skip
