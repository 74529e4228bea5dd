# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``mx-smi`` of MetaX says, and ``ht-smi``, its name with another maker: the table and the listing.

The table has one column for a card up to 2.2.8 and columns for board and chip from 2.2.9 on; the listing writes degrees
with a sign up to 2.2 and without from 2.3 on. That an unusable card is "Not Available" is plausible, not recorded.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from . import forms

if TYPE_CHECKING:
    from .state import Card, Host

_LISTING = {"--show-temperature": "temperature", "--show-memory": "memory", "--show-usage": "usage"}
_ABSENT = (1, "", "invalid device id\n")
# Driver: versions of the tool and of the libraries.
_TOOLS = {"3.0": ("2.2.8", "3.1.0.14"), "3.4": ("2.2.9", "3.3.0.15"), "3.8": ("2.3.4", "3.7.1.5")}
_RULES = {
    True: "+------------------------------------+---------------------+----------------------+\n",
    False: "+------------------+-----------------+---------------------+----------------------+\n",
}


def render(host: Host) -> dict:
    """Return what each tool needs to answer; the model tells which maker's tool it is."""
    version, libraries = _TOOLS[".".join(host.driver_version.split(".")[:2])]
    other = host.cards[0].model.startswith("Mars")
    old = version == "2.2.8"
    cards = forms.entries(
        host,
        lambda card: {
            "row": _old_row(card) if old else _new_row(card),
            **_sections(card, version.startswith("2.2")),
            "head": f"GPU#{card.index}  {re.sub('^MetaX ', 'MX', card.model)}  {card.address}\n",
        },
    )
    data = {
        "tool": "ht-smi" if other else "mx-smi",
        "maker": "Mars" if other else "MetaX",
        "library": "HPCC" if other else "MACA",
        "version": host.tool_version or version,
        "libraries": libraries,
        "driver": host.driver_version,
        "bios": host.cards[0].firmware_version,
        "old": old,
        "cards": cards,
    }
    return {data["tool"]: data}


def answer(data: dict, argv: list[str], moment: float | None = None) -> forms.Reply:
    """Return rc, stdout, stderr of the tool."""
    words = list(argv)
    device = forms.take_option(words, "-i", "--index")
    if not words:
        return forms.asked(data, device, lambda cards: _table(data, cards, moment), _ABSENT)
    if set(words) <= set(_LISTING):
        parts = [part for word, part in _LISTING.items() if word in words]
        return forms.asked(data, device, lambda cards: _listing(data, cards, parts, moment), _ABSENT)
    return 1, "", f"unknown option: {words[0]}\n"


def _top(data: dict, moment: float | None) -> str:
    attached = len(forms.present(data))
    return (
        f"{data['tool']}  version: {data['version']}\n\n"
        f"=================== {data['maker']} System Management Interface Log ===================\n"
        f"{'Timestamp':<50}: {forms.clock(moment, '%a %b %e %H:%M:%S %Y')}\n\n{'Attached GPUs':<50}: {attached}\n"
    )


def _power(card: Card) -> str:
    return f"{round(forms.now(card).watts)}W / {card.power_watts}W"


def _state(card: Card) -> str:
    return "Not Available" if card.health == "critical" else "Available"


def _memory(card: Card) -> str:
    return f"{forms.now(card).used_mib + 760}/{card.memory_mib} MiB"


def _old_row(card: Card) -> str:
    now = forms.now(card)
    return (
        f"| {card.index:<7} {card.model:<14} {'Off':>11} | {card.address:<19} | {f'{now.load}%':<13} {'Native':>6} |\n"
        f"| {f'{now.celsius}C':<7} {_power(card):<16} {'P0':>9} | {_memory(card):<19} | {_state(card):<20} |\n"
        f"{_RULES[True]}"
    )


def _new_row(card: Card) -> str:
    now = forms.now(card)
    return (
        f"| {card.index:<5} {card.model:>10} | {card.index:<11} Off | {card.address:<19} "
        f"| {f'{now.load}%':<11} Disabled |\n"
        f"| {_power(card):<16} | {f'{now.celsius}C':<12} P0 | {_memory(card):<19} | {_state(card):<20} |\n"
        f"{_RULES[False]}"
    )


def _table(data: dict, cards: list[dict], moment: float | None) -> str:
    old = data["old"]
    wide = "-" * 81
    rule = _RULES[old]
    first = f"{data['tool'].upper()} {data['version']}"
    libraries = f"{data['library']} Version: {data['libraries']}"
    titles = (
        "| GPU     NAME         Persistence-M | Bus-id              | GPU-Util      sGPU-M |\n"
        "| Temp    Pwr:Usage/Cap         Perf | Memory-Usage        | GPU-State            |\n"
        if old
        else "| Board       Name | GPU   Persist-M | Bus-id              | GPU-Util      sGPU-M |\n"
        "| Pwr:Usage/Cap    | Temp       Perf | Memory-Usage        | GPU-State            |\n"
    )
    at = 35 if old else 34
    return "".join(
        [
            _top(data, moment),
            f"+{wide}+\n",
            f"| {first:<{at}} {'Kernel Mode Driver Version: ' + data['driver']:<{79 - at}}|\n",
            f"| {libraries:<{at}} {'BIOS Version: ' + data['bios']:<{79 - at}}|\n",
            "|" + rule[1:-2] + ("+\n" if old else "|\n"),
            titles,
            "|" + rule[1:-2].replace("-", "=") + "|\n",
            forms.join("row", cards),
            f"\n+{wide}+\n",
            f"| {'Process:':<80}|\n",
            "|  GPU                    PID         Process Name                 GPU Memory     |\n",
            f"|{'Usage(MiB)':>76}     |\n",
            "|" + "=" * 81 + "|\n",
            f"|  {'no process found':<79}|\n",
            f"+{wide}+\n\nEnd of Log\n",
        ]
    )


def _pairs(*pairs: tuple[str, str]) -> str:
    return "".join(f"{'':8}{name:<42}:  {value}\n" for name, value in pairs)


def _sections(card: Card, older: bool) -> dict[str, str]:
    """Return the sections of the listing."""
    now = forms.now(card)

    def heat(value: float) -> str:
        return f"{value:.2f} {'°C' if older else 'C'}"

    def share(value: float) -> str:
        return f"{value:.2f} %" if older else f"{value:.0f} %"

    total, used = card.memory_mib << 10, (now.used_mib + 760) << 10
    part = share(used * 100 / total)
    return {
        "temperature": "    Chip Temperature\n"
        + _pairs(("hotspot" if older else "hotspot(sensor1)", heat(now.celsius + 0.25)))
        + "    Board Temperature\n"
        + _pairs(
            ("DrMOS_soc", heat(now.celsius - 5)),
            ("DrMOS_core", heat(now.celsius - 7)),
            ("tdiode", heat(now.celsius - 4.5)),
            ("air-inlet", heat(now.celsius - 6.25)),
            ("air-outlet", heat(now.celsius - 7)),
        ),
        "memory": "    Memory\n"
        + _pairs(
            ("vis_vram total", f"{total} KB"),
            ("vis_vram used", f"{used} KB"),
            ("vis_vram usage", part),
            ("vram total", f"{total} KB"),
            ("vram used", f"{used} KB"),
            ("vram usage", part),
            ("xtt total", "98673909 KB"),
            ("xtt used", "34312 KB"),
            ("xtt usage", share(0)),
        ),
        "usage": "    Utilization\n" + _pairs(("GPU", f"{now.load} %"), ("VPUE", "0 %"), ("VPUD", "0 %")),
    }


def _listing(data: dict, cards: list[dict], parts: list[str], moment: float | None) -> str:
    blocks = "".join(card["head"] + "\n".join(card[part] for part in parts) + "\n" for card in cards)
    return f"{_top(data, moment)}{blocks}End of Log\n"
