# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``cnmon`` of Cambricon says: its table, which names no addresses before 5.10."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import forms

if TYPE_CHECKING:
    from .state import Card, Host

_RULE = "+-------------------------------+----------------------+-----------------------+\n"
_TITLES_END = "|===============================+======================+=======================|\n"
_WIDE = 78


def render(host: Host) -> dict:
    """Return what each tool needs to answer."""
    old = host.driver_version.startswith("4.")
    cards = forms.entries(host, lambda card: {"row": _row(host, card, old)})
    return {"cnmon": {"driver": host.driver_version, "old": old, "cards": cards}}


def answer(data: dict, argv: list[str], _moment: float | None = None) -> forms.Reply:
    """Return rc, stdout, stderr of ``cnmon``."""
    if argv:
        return 1, "", f"cnmon: unknown option '{argv[0]}'\n"
    return forms.whole(data, lambda cards: _table(data, cards))


def _row(host: Host, card: Card, old: bool) -> str:
    now = forms.now(card)
    used = now.used_mib if card.busy else 0
    memory = f"{used:>5} MiB/ {card.memory_mib} MiB"
    power = f"{round(now.watts):>3} W/ {card.power_watts} W"
    errors = str(forms.errors(card))
    place = f"On{'v' + host.driver_version:>18}" if old else f"{card.address.upper():>20}"
    state = f"{f'{now.load}%':<12}{errors:<9}" if old else f"{f'{now.load}%':<12}{errors:>9}"
    mode = f"{10240:>5} MiB/{1048576} MiB" if old else f"{'N/A':<8}{'Default':>13}"
    return (
        f"| {card.index:<6}/   {card.model:<11} {'v' + card.firmware_version:>7} | {place} | {state} |\n"
        f"|  0%   {now.celsius}C {power:>19} | {memory:>20} | {mode} |\n{_RULE}"
    )


def _table(data: dict, cards: list[dict]) -> str:
    old = data["old"]
    rule = f"+{'-' * _WIDE}+\n"
    title = f"CNMON v{data['driver']}"
    driver = "" if old else f"Driver v{data['driver']}"
    upper = "Inited        Driver" if old else "              Bus-Id"
    lower = "        vMemory-Usage" if old else "SR-IOV   Compute-Mode"
    instance, gap, end = ("VF", "", "  ") if old else ("MI", " ", " ")
    return "".join(
        [
            rule,
            f"| {title}{driver:>{_WIDE - 2 - len(title)}} |\n",
            _RULE,
            f"| Card  VF  Name       Firmware | {upper} | Util        Ecc-Error |\n",
            f"| Fan   Temp      Pwr:Usage/Cap |         Memory-Usage | {lower} |\n",
            _TITLES_END,
            forms.join("row", cards),
            "\n",
            rule,
            f"| {'Processes:':<{_WIDE - 1}}|\n",
            f"|  Card  {instance}  PID   {gap} Command Line                             MLU Memory Usage{end}|\n",
            f"|{'=' * _WIDE}|\n",
            f"|  {'No running processes found':<{_WIDE - 2}}|\n",
            rule,
        ]
    )
