# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A healthy host of eight cards, as ``accelerator_info`` returns it, and the faults that change it."""

from __future__ import annotations

import copy

NOW = "2026-11-30T12:00:00Z"
ADDRESSES = ("0000:18:00.0", "0000:2a:00.0", "0000:3a:00.0", "0000:5d:00.0",
             "0000:9a:00.0", "0000:ab:00.0", "0000:ba:00.0", "0000:db:00.0")  # fmt: skip
# The tool's order is not the order of the slots, as on real boards.
SLOTS = ("SXM4", "SXM2", "SXM1", "SXM3", "SXM8", "SXM6", "SXM5", "SXM7")

DECLARED = {
    "cluster_accelerator_vendor": "nvidia",
    "cluster_accelerator_models": ["NVIDIA H100 80GB HBM3"],
    "cluster_accelerator_count": "8",
    "cluster_accelerator_memory_gib": "80",
    "cluster_accelerator_link_speed_gts": 32,
    "cluster_accelerator_link_width": "16",
    "cluster_accelerator_partitions": "1",
    "cluster_accelerator_slots": {},
    "cluster_driver_version": "",
    "cluster_tolerance_memory_percent": "10",
    "cluster_link_width_judged": True,
    "cluster_link_reading_max_age_hours": "168",
    "cluster_limit_sram_uncorrected": "4",
    "cluster_limit_ecc_corrected_volatile": "1000",
    "cluster_margin_temperature_celsius": 5,
    "cluster_throttles_allowed": ["idle", "application_clocks", "display", "sync_boost", "power_cap"],
    "cluster_processes_allowed": False,
    "cluster_kernel_event_actions": {},
    "cluster_node_type": "h100",
}


def device(number: int, host: int = 1) -> dict:
    """Return card ``number`` (0..7) of a host; serials of two hosts never meet."""
    return {
        "index": number,
        "vendor": "nvidia",
        "model": "NVIDIA H100 80GB HBM3",
        "serial": f"16504{host:02}00{number:03}",
        "uuid": f"GPU-{host:02}-{number}",
        "identity": "uuid",
        "pci_address": ADDRESSES[number],
        "pci_id": "10de:2330",
        "slot": {"label": SLOTS[number], "source": "vendor", "candidates": []},
        "module_id": int(SLOTS[number][3:]),
        "numa_node": number // 4,
        "device_nodes": [f"/dev/nvidia{number}"],
        "driver_version": "570.86.15",
        "firmware_version": "96.00.74.00.01",
        "memory_bytes": 85520809984,
        "link": {
            "speed_gts": 32.0,
            "width": 16,
            "max_speed_gts": 32.0,
            "max_width": 16,
            "limited_by": None,
            "unread_hop": None,
            "under_load": True,
        },
        "logical": [],
        "partition_mode": "whole",
        "health": {"state": "ok", "reasons": []},
        "ecc": {"corrected_volatile": 3, "uncorrected_volatile": 0, "corrected_aggregate": 8,
                "uncorrected_aggregate": 2, "sram_uncorrected_aggregate": 0},
        "repair": {"state": "ok", "remapped_rows": 2, "retired_pages": None},
        "readings": {"temperature_c": 61.0, "temperature_limit_c": 87.0, "memory_temperature_c": 70.0,
                     "power_watts": 512.0, "power_limit_watts": 700.0, "utilization_percent": 97.0,
                     "memory_used_bytes": 64000000000, "throttles": ["power_cap"], "throttle_mask": 4},
        "ports": [{"kind": "nvlink", "index": link, "state": "up", "speed_gbps": 212.5, "peer": None}
                  for link in range(18)],
        "ports_told": True,
        "processes": [],
        "source": "nvidia-smi 570.86.15",
    }  # fmt: skip


def healthy(host: int = 1) -> dict:
    """Return the observation of a host on which all is well."""
    return {
        "devices": [device(number, host) for number in range(8)],
        "count": 8,
        "bus_count": 8,
        "logical_count": 8,
        "unanswered": [],
        "tools": [
            {"name": "nvidia-smi", "vendor": "nvidia", "version": "570.86.15", "state": "ok", "reason": None, "rc": 0,
             "excerpt": "<nvidia_smi_log>", "command": "nvidia-smi -q -x"}
        ],
        "drivers": [
            {"vendor": "nvidia", "kernel_version": "570.86.15", "library_version": "570.86.15", "loaded": True}
        ],
        "kernel_log": {"state": "ok", "source": "journalctl -k -b", "reason": None},
        "kernel_events": [],
        "holders_complete": True,
        "errors": [],
    }  # fmt: skip


def silence(observation: dict, number: int, state: str, link: bool) -> dict:
    """Return the observation with card ``number`` not answering; ``link``: sysfs still tells its link."""
    changed = copy.deepcopy(observation)
    card = next(one for one in changed["devices"] if one["pci_address"] == ADDRESSES[number])
    changed["devices"].remove(card)
    entry = {"pci_address": card["pci_address"], "vendor": "nvidia", "state": state, "slot": card["slot"]}
    if link:
        entry["link"] = dict(card["link"], under_load=None)
    changed["unanswered"].append(entry)
    changed["count"] -= 1
    return changed


def card_lost(observation: dict, number: int = 6) -> dict:
    """Card fell off the bus: the tool names it, its config space reads as ones."""
    changed = silence(observation, number, "lost", link=False)
    changed["tools"][0].update(
        excerpt=f"Unable to determine the device handle for GPU {ADDRESSES[number]}: Unknown Error"
    )
    return changed


def card_hung(observation: dict, number: int = 3) -> dict:
    """The tool does not come back when asked for this card; asked one by one, the others answer."""
    changed = silence(observation, number, "hung", link=True)
    changed["tools"][0].update(state="hung", rc=None, excerpt="")
    return changed


def event(code: str, message: str = "", number: int | None = 6, **more) -> dict:
    """Return a kernel event of a card, of none for None."""
    address = None if number is None else ADDRESSES[number]
    return {"at": "2026-11-30T11:58:00+00:00", "vendor": "nvidia", "code": code, "pid": None, "count": 1, "cause": None,
            "pci_address": address, "message": message or code, **more}  # fmt: skip


def driver_library_mismatch(observation: dict) -> dict:
    """The library was upgraded under the loaded module: no card answers, sysfs still tells of each."""
    changed = copy.deepcopy(observation)
    for card in changed["devices"]:
        card.update(model=None, serial=None, uuid=None, identity="address", memory_bytes=None, driver_version=None,
                    partition_mode=None, firmware_version=None, health={"state": "unknown", "reasons": []},
                    source="sysfs")  # fmt: skip
        changed["unanswered"].append(
            {"pci_address": card["pci_address"], "vendor": "nvidia", "state": "not_reported", "slot": card["slot"],
             "link": card["link"]}
        )  # fmt: skip
    changed["count"] = None
    changed["tools"][0].update(
        state="failed",
        reason="driver_library_mismatch",
        rc=18,
        excerpt="Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.124",
    )
    changed["drivers"][0]["library_version"] = "570.124"
    return changed


def swapped(observation: dict, one: int, other: int) -> dict:
    """Two cards were exchanged: each has the other's address and slot."""
    changed = copy.deepcopy(observation)
    first, second = changed["devices"][one], changed["devices"][other]
    for key in ("serial", "uuid"):
        first[key], second[key] = second[key], first[key]
    return changed


def replaced(observation: dict, number: int) -> dict:
    """Another card of the same model sits in the slot."""
    changed = copy.deepcopy(observation)
    changed["devices"][number].update(serial="1659999000001", uuid="GPU-99-9")
    return changed


def downtrained(observation: dict, number: int) -> dict:
    """The link of a card came up with eight lanes."""
    changed = copy.deepcopy(observation)
    changed["devices"][number]["link"]["width"] = 8
    return changed
