# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``mthreads-gmi`` of Moore Threads says: JSON (``-q --json``, from driver 3 on) and the table.

Tables are those of recordings of 1.14 and 2.4; the JSON has the keys of samples that users published.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import forms

if TYPE_CHECKING:
    from .state import Card, Host

NO_DRIVER = (255, "Error: failed to initialize mtml\n", "")
_ABSENT = (1, "Error: invalid index\n", "")
# Driver: version of the tool.
_TOOLS = {"2": "1.14.0", "3": "2.2.0", "5": "2.4.1"}


def render(host: Host) -> dict:
    """Return what each tool needs to answer."""
    major = host.driver_version.split(".")[0]
    cards = forms.entries(host, lambda card: {"json": _entry(card), "row": _row(card, major == "2")})
    data = {
        "ready": host.driver_ready,
        "driver": host.driver_version,
        "version": host.tool_version or _TOOLS[major],
        "old": major == "2",
        "cards": cards,
    }
    return {"mthreads-gmi": data}


def answer(data: dict, argv: list[str], moment: float | None = None) -> forms.Reply:
    """Return rc, stdout, stderr of ``mthreads-gmi``."""
    if not data["ready"]:
        return NO_DRIVER
    words = [{"--query": "-q", "-j": "--json"}.get(word, word) for word in argv]
    device = forms.take_option(words, "-i", "--index")
    if sorted(words) == ["--json", "-q"] and not data["old"]:
        return forms.asked(data, device, lambda cards: _document(data, cards, moment), _ABSENT)
    if not words:
        return forms.asked(data, device, lambda cards: _table(data, cards, moment), _ABSENT)
    return 1, "", f"Error: unknown option {words[-1]}\n"


def _document(data: dict, cards: list[dict], moment: float | None) -> str:
    return forms.as_json(
        {
            "Timestamp": forms.clock(moment, "%a %b %d %H:%M:%S %Y"),
            "Driver Version": data["driver"],
            "Attached GPUs": str(len(forms.present(data))),
            "GPU": [card["json"] for card in cards],
        }
    )


def _entry(card: Card) -> dict:
    now = forms.now(card)
    vendor, device = card.pci_id.split(":")
    bus = card.address.split(":")[1]
    return {
        "Index": str(card.index),
        "Product Name": card.model,
        "Product Brand": "MTT",
        "GPU UUID": card.uuid,
        "Serial Number": card.serial,
        "MTBios Version": card.firmware_version,
        "PCI": {
            "Bus": f"0x{bus.upper()}",
            "Bus ID": forms.long_address(card).lower(),
            "Vendor ID": f"0x{vendor.upper()}",
            "Device ID": f"0x{device.upper()}",
            "Slot ID(Name)": f"{card.slot_number}(PEEB Slot {card.slot_number})",
            "GPU Link Info": {
                "PCIe Generation": {
                    "Max": str(forms.generation(card.link_speed_gts)),
                    "Current": str(forms.generation(card.speed_gts)),
                },
                "Link Width": {"Max": f"{card.link_width}x", "Current": f"{card.width}x"},
            },
        },
        "FB Memory Usage": {
            "Total": f"{card.memory_mib}MiB",
            "Used": f"{now.used_mib}MiB",
            "Free": f"{card.memory_mib - now.used_mib}MiB",
        },
        "Utilization": {"Gpu": f"{now.load}%", "Memory": f"{now.used_mib * 100 // card.memory_mib}%"},
        "Temperature": {"GPU Current Temp": f"{now.celsius}C"},
        # The blank at the end is the tool's.
        "Power Readings": {"Power Draw ": f"{now.watts:.2f}W", "Current Power Limit": f"{card.power_watts}.00W"},
    }


def _row(card: Card, old: bool) -> str:
    now = forms.now(card)
    name = 15 if old else 21
    memory = f"{now.used_mib}MiB({card.memory_mib}MiB)"
    kind = "Physical" if old else "Physical      P0"
    lanes = f"{card.width}x({card.link_width}x)"
    rows = [
        f"{card.index:<5}{card.model:<{name}}|{forms.long_address(card).lower():<20}|{f'{now.load}%':<6}{memory}",
        f"     {kind:<{name}}|{lanes:<20}|{f'{now.celsius}C':<6}YES",
        f"{'':<{5 + name + 21}}|      {'N/A' if old else 'On-die, EDC'}",
    ]
    return "".join(f"{row + ' ' * (63 - len(row)) if old else row}\n" for row in rows)


def _table(data: dict, cards: list[dict], moment: float | None) -> str:
    old = data["old"]
    width = 63 if old else 69
    rule, line = "-" * width + "\n", "+" + "-" * (width - 2) + "+\n"
    name = 15 if old else 21
    kind = "Device Type" if old else "Device Type   Perf"
    head = [
        f"ID   {'Name':<{name}}|{'PCIe':<20}|%GPU  Mem",
        f"     {kind:<{name}}|{'Pcie Lane Width':<20}|Temp  MPC Capable",
        f"{'':<{5 + name + 21}}|      ECC Mode",
    ]
    last = width - 11
    processes = [
        rule,
        "Processes:\n",
        f"{'ID   PID       Process name' if old else 'ID   PID           Process name':<{last}}GPU Memory\n",
        f"{'Usage':>{width - 1}}\n",
        line,
        "   No running processes found\n",
        rule,
    ]
    return "".join(
        [
            f"{forms.clock(moment, '%a %b %d %H:%M:%S %Y')}\n",
            rule,
            f"    mthreads-gmi:{data['version']:<16}Driver Version:{data['driver']}\n",
            rule,
            *(f"{row + ' ' * (63 - len(row)) if old else row}\n" for row in head),
            line,
            line.join(card["row"] for card in cards),
            rule,
            "\n",
            *processes,
        ]
    )
