# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``xpu-smi`` of Intel's data centre GPUs says: JSON, CSV and the table of one card.

Table, CSV and ``-v`` are those of the vendor's guide; the JSON has the keys of its published program and of users'
samples. The words of a sick component are plausible, not recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import forms

if TYPE_CHECKING:
    from .state import Card, Host

_VERSION = "1.2.39.20241120"
_BUILD = "09bf1f48"
_DUMPED = {
    "0": ("GPU Utilization (%)", "load"), "1": ("GPU Power (W)", "watts"), "2": ("GPU Frequency (MHz)", "clock"),
    "3": ("GPU Core Temperature (Celsius Degree)", "heat"),
    "4": ("GPU Memory Temperature (Celsius Degree)", "memory_heat"),
    "5": ("GPU Memory Utilization (%)", "share"), "18": ("GPU Memory Used (MiB)", "used"),
}  # fmt: skip
# Number of a column of "discovery --dump" -> its name and the key of the JSON that it shows.
_COLUMNS = {
    "1": ("Device ID", "device_id"), "2": ("Device Name", "device_name"), "3": ("Vendor Name", "vendor_name"),
    "4": ("UUID", "uuid"), "5": ("Serial Number", "serial_number"), "6": ("Core Clock Rate", "core_clock_rate_mhz"),
    "7": ("Stepping", "device_stepping"), "8": ("Driver Version", "driver_version"),
    "9": ("GFX Firmware Version", "gfx_firmware_version"),
    "10": ("GFX Data Firmware Version", "gfx_data_firmware_version"), "11": ("PCI BDF Address", "pci_bdf_address"),
    "12": ("PCI Slot", "pci_slot"), "13": ("PCIe Generation", "pcie_generation"),
    "14": ("PCIe Max Link Width", "pcie_max_link_width"), "15": ("OAM Socket ID", "oam_socket_id"),
    "16": ("Memory Physical Size", "memory_physical_size"),
}  # fmt: skip
_NOT_FOUND = {"error": "device not found", "errno": 6}
_RULE = f"+{'-' * 11}+{'-' * 86}+\n"


def render(host: Host) -> dict:
    """Return what each tool needs to answer."""
    cards = forms.entries(host, lambda card: _card(host, card))
    return {"xpu-smi": {"version": host.tool_version or _VERSION, "cards": cards}}


def answer(data: dict, argv: list[str], moment: float | None = None) -> forms.Reply:
    """Return rc, stdout, stderr of ``xpu-smi``."""
    words = list(argv)
    if words in (["-v"], ["--version"]):
        part = f"    Version: {data['version']}\n    Build ID: {_BUILD}\n"
        return 0, f"CLI:\n{part}\nService:\n{part}    Level Zero Version: 1.17.42\n", ""
    command = words.pop(0) if words else ""
    in_json = "-j" in words
    words = [word for word in words if word != "-j"]
    device = forms.take_option(words, "-d", "--device")
    absent = (6, forms.as_json(_NOT_FOUND), "") if in_json else (6, "Error: device not found\n", "")
    if command == "discovery":
        return _discovery(data, words, device, in_json, absent)
    if command == "health" and words == ["-l"] and in_json:
        return forms.whole(data, lambda cards: forms.as_json({"device_list": [card["health"] for card in cards]}))
    if command == "dump" and device is not None:
        return _dump(data, words, device, absent, moment)
    return 1, "", f"The following argument was not expected: {' '.join(argv)}\nRun with --help for more information.\n"


def _discovery(data: dict, words: list[str], device: str | None, in_json: bool, absent: forms.Reply) -> forms.Reply:
    columns = forms.take_option(words, "--dump")
    if columns is not None:
        return forms.whole(data, lambda cards: _csv(cards, columns.split(",")))
    if device is not None and in_json:
        return forms.alone(data, device, lambda cards: forms.as_json(cards[0]["detail"]), absent)
    if device is not None:
        return forms.alone(data, device, lambda cards: cards[0]["table"], absent)
    if in_json:
        return forms.whole(data, lambda cards: forms.as_json({"device_list": [card["brief"] for card in cards]}))
    head = f"{_RULE}| Device ID | {'Device Information':<84} |\n{_RULE}"
    return forms.whole(data, lambda cards: head + forms.join("short", cards))


def _csv(cards: list[dict], columns: list[str]) -> str:
    known = [_COLUMNS[column] for column in columns if column in _COLUMNS]
    lines = [",".join(name for name, _key in known)]
    for card in cards:
        values = [card["detail"].get(key, "") for _name, key in known]
        lines.append(",".join(str(value) if isinstance(value, int) else f'"{value}"' for value in values))
    return "\n".join(lines) + "\n"


def _dump(data: dict, words: list[str], device: str, absent: forms.Reply, moment: float | None) -> forms.Reply:
    metrics = (forms.take_option(words, "-m", "--metrics") or "").split(",")
    count = forms.take_option(words, "-n") or "1"
    forms.take_option(words, "-i")
    known = [_DUMPED[metric] for metric in metrics if metric in _DUMPED]
    head = ", ".join(["Timestamp", "DeviceId", *(name for name, _key in known)]) + "\n"
    time = forms.clock(moment, "%H:%M:%S.000")

    def say(cards: list[dict]) -> str:
        rows = [
            ", ".join([time, f"{card['index']:>4}", *(card["measured"][key] for _name, key in known)]) + "\n"
            for card in cards
        ]
        return head + "".join(rows) * int(count)

    return forms.asked(data, None if device == "-1" else device, say, absent)


def _card(host: Host, card: Card) -> dict:
    now = forms.now(card)
    brief = {
        "device_function_type": "physical",
        "device_id": card.index,
        "device_name": card.model,
        "device_type": "GPU",
        "drm_device": f"/dev/dri/card{card.index + 1}",
        "pci_bdf_address": card.address,
        "pci_device_id": f"0x{int(card.pci_id[5:], 16):x}",
        "uuid": card.uuid,
        "vendor_name": "Intel(R) Corporation",
    }
    detail = _detail(host, card, brief, now)
    return {
        "brief": brief,
        "detail": detail,
        "health": _health(card),
        "table": _table(detail),
        "short": _block(
            card.index,
            [f"Device Name: {card.model}", "Vendor Name: Intel(R) Corporation", f"UUID: {card.uuid}",
             f"PCI BDF Address: {card.address}", f"DRM Device: /dev/dri/card{card.index + 1}",
             "Function Type: physical"],
        ),
        "measured": {
            "load": f"{now.load:.2f}", "watts": f"{now.watts:.2f}",
            "clock": f"{card.clocks_mhz[0] if card.busy else 0:>4}", "heat": f"{now.celsius:.2f}",
            "memory_heat": f"{now.celsius - 3:.2f}", "share": f"{now.used_mib * 100 / card.memory_mib:.2f}",
            "used": f"{now.used_mib:.2f}",
        },
    }  # fmt: skip


def _detail(host: Host, card: Card, brief: dict, now: forms.Now) -> dict:
    size = card.memory_mib << 20
    tiles = 2 if card.power_watts > 300 else 1
    told = {
        **{key: value for key, value in brief.items() if key != "device_function_type"},
        "core_clock_rate_mhz": f"{card.clocks_mhz[0]}",
        "device_stepping": "B4",
        "driver_version": host.driver_version,
        "gfx_data_firmware_name": "GFX_DATA",
        "gfx_data_firmware_version": "",
        "gfx_firmware_name": "GFX",
        "gfx_firmware_status": "normal",
        "gfx_firmware_version": card.firmware_version,
        "gfx_pscbin_firmware_name": "GFX_PSCBIN",
        "gfx_pscbin_firmware_version": "",
        "kernel_version": "6.1.0-28-amd64",
        "max_command_queue_priority": "0",
        "max_hardware_contexts": "65536",
        "max_mem_alloc_size_byte": str(size * 19 // 20),
        "memory_bus_width": "128",
        "memory_ecc_state": "enabled",
        "memory_free_size_byte": str(size - (now.used_mib << 20)),
        "memory_physical_size": f"{card.memory_mib:.2f} MiB",
        "memory_physical_size_byte": str(size),
        "number_of_tiles": str(tiles),
        "oam_socket_id": str(card.slot_number),
        "pci_slot": card.slot,
        "pci_vendor_id": "0x8086",
        "pcie_generation": str(forms.generation(card.link_speed_gts)),
        "pcie_max_link_width": str(card.link_width),
        "serial_number": card.serial,
        "sku_type": "",
    }
    return dict(sorted(told.items()))


def _block(index: int, lines: list[str]) -> str:
    body = "".join(f"| {index if not number else '':<9} | {line:<84} |\n" for number, line in enumerate(lines))
    return body + _RULE


def _table(detail: dict) -> str:
    lines = [
        "Device Type: GPU",
        *(
            f"{name}: {detail[key]}"
            for name, key in (
                ("Device Name", "device_name"), ("Vendor Name", "vendor_name"), ("UUID", "uuid"),
                ("Serial Number", "serial_number"),
            )
        ),
        f"Core Clock Rate: {detail['core_clock_rate_mhz']} MHz",
        f"Stepping: {detail['device_stepping']}",
        "",
        f"Driver Version: {detail['driver_version']}",
        "Firmware Name: GFX",
        f"Firmware Version: {detail['gfx_firmware_version']}",
        "",
        f"PCI BDF Address: {detail['pci_bdf_address']}",
        f"PCI Slot: {detail['pci_slot']}",
        f"PCIe Generation: {detail['pcie_generation']}",
        f"PCIe Max Link Width: {detail['pcie_max_link_width']}",
        "",
        f"Memory Physical Size: {detail['memory_physical_size']}",
        f"Max Mem Alloc Size: {int(detail['max_mem_alloc_size_byte']) / (1 << 20):.2f} MiB",
        "ECC State: enabled",
        f"Number of Tiles: {detail['number_of_tiles']}",
    ]  # fmt: skip
    head = f"{_RULE}| Device ID | {'Device Information':<84} |\n{_RULE}"
    return head + _block(detail["device_id"], lines)


def _health(card: Card) -> dict:
    def component(what: str, **limits: int) -> dict:
        return {"description": f"All {what} are healthy.", "status": "Ok", **limits}

    told = {
        "device_id": card.index,
        "core_temperature": component("temperature sensors", shutdown_threshold=130, throttle_threshold=105),
        "memory_temperature": component("temperature sensors", shutdown_threshold=100, throttle_threshold=85),
        "power": component("power domains", throttle_threshold=card.power_watts),
        "memory": component("memory channels"),
        "xe_link_port": {"description": "All ports are healthy.", "status": "Ok"},
        "frequency": {"description": "The device frequency is not throttled.", "status": "Ok"},
    }
    if card.health == "warning":
        told["xe_link_port"] = {"description": "Some ports are degraded.", "status": "Warning"}
    if card.health == "critical":
        told["memory"] = {"description": "The memory of the device failed.", "status": "Critical"}
    return told
