# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``efsmi`` of Enflame says: ``-q``, whose keys grew with 1.4, and the table.

The table writes the domain of an address with two digits, serial numbers are filled up with blanks, and lines below
"Link Info" are not indented, as in recordings of 1.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import forms

if TYPE_CHECKING:
    from .state import Card, Host

_WIDE = 74


def render(host: Host) -> dict:
    """Return what each tool needs to answer."""
    old = host.driver_version.startswith("1.2")
    cards = forms.entries(host, lambda card: {"query": _query(host, card, old), "row": _row(card)})
    return {"efsmi": {"driver": host.driver_version, "old": old, "cards": cards}}


def answer(data: dict, argv: list[str], moment: float | None = None) -> forms.Reply:
    """Return rc, stdout, stderr of ``efsmi``."""
    if argv == ["-q"]:
        return forms.whole(data, lambda cards: _whole_query(data, cards))
    if not argv:
        return forms.whole(data, lambda cards: _table(data, cards, moment))
    return 1, "", f"efsmi: unrecognized option '{argv[0]}'\n"


def _banner(width: int, years: str) -> str:
    rights = f" Enflame Tech, All Rights Reserved. {years} Copyright (C) "
    lines = ("", " Enflame System Management Interface ", rights, "")
    return "".join(f"{line:-^{width}}\n" for line in lines) + "\n"


def _pairs(title: str, *pairs: tuple[str, object]) -> str:
    body = "".join(f"        {name}\n" if value is None else f"        {name:<24}: {value}\n" for name, value in pairs)
    return f"    {title}\n{body}"


def _query(host: Host, card: Card, old: bool) -> str:
    now = forms.now(card)
    vendor, device = card.pci_id.split(":")
    domain, bus, rest = card.address.split(":")
    used = now.used_mib + 1063
    sections = [f"DEV ID {card.index}\n"]
    if not old:
        sections += [
            _pairs("Driver Info", ("Ver", host.driver_version)),
            _pairs(
                "Device Info",
                ("Dev Name", card.model),
                ("Dev UUID", card.uuid),
                ("Dev SN", f"{card.serial:<17}"),
                ("Dev PN", card.part_number),
                ("Dev MFD", "2025-3-18"),
                ("Health", card.health != "critical"),
            ),
        ]
    sections.append(
        _pairs(
            "PCIe Info",
            ("Vendor ID", vendor),
            ("Device ID", device),
            ("Domain", domain),
            ("Bus", bus),
            ("Dev", rest.split(".")[0]),
            ("Func", rest.split(".")[1]),
            ("Link Info", None),
            ("Max Link Speed", f"Gen{forms.generation(card.link_speed_gts)}"),
            ("Max Link Width", f"X{card.link_width}"),
            ("Cur Link Speed", f"Gen{forms.generation(card.speed_gts)}"),
            ("Cur Link Width", f"X{card.width}"),
            ("Tx Throughput", "0 MiB/s"),
            ("Rx Throughput", "0 MiB/s"),
        )
    )
    if old:
        sections.append(
            _pairs(
                "Device Mem Info",
                ("Mem Size", f"{card.memory_mib} MiB"),
                ("Mem Usage", f"{used} MiB"),
                ("Mem Ecc", "enable"),
            )
        )
    else:
        sections += [
            _pairs(
                "Power Info",
                ("Power Capa", f"{card.power_watts} W"),
                ("Cur Power", f"{round(now.watts)} W"),
                ("Dpm Level", "Active" if card.busy else "Sleep"),
            ),
            _pairs(
                "Device Mem Info",
                ("Total Size", f"{card.memory_mib} MiB"),
                ("Reserved Size", "1063 MiB"),
                ("Used Size", f"{now.used_mib} MiB"),
                ("Free Size", f"{card.memory_mib - used} MiB"),
            ),
        ]
    sections += [
        _pairs("Temperature Info", ("GCU Temp", f"{now.celsius} ℃")),
        _pairs("Device Usage Info", ("GCU Usage", f"{now.load}.0 %")),
    ]
    return "".join(sections)


def _whole_query(data: dict, cards: list[dict]) -> str:
    text = _banner(78, "2024-2025") + forms.join("query", cards)
    # The older release ends in the middle of the last line.
    return text.rstrip("\n") if data["old"] else text


def _row(card: Card) -> str:
    now = forms.now(card)
    address = card.address[2:]
    level = "Active" if card.busy else "Sleep"
    line = "|" + "-" * _WIDE + "|\n"
    return (
        f"{line}| {card.index:<6} {card.model:<20}| {card.firmware_version:<16}| {address}  {'Enable':<14}|\n"
        f"| {now.celsius} C   {level:<7} {f'{round(now.watts)}W':>5}  {card.power_watts}W "
        f"| {card.memory_mib}MiB Disable| {f'{now.load}.0%':>6}      {card.serial:<14}|\n"
        f"+{'-' * _WIDE}+\n"
    )


def _table(data: dict, cards: list[dict], moment: float | None) -> str:
    line = "|" + "-" * _WIDE + "|\n"
    return "".join(
        [
            _banner(_WIDE + 2, "2024"),
            f"+{forms.clock(moment, '%Y-%m-%d, %H:%M:%S CST'):-<{_WIDE}}+\n",
            f"|{'EFSMI    V' + data['driver']:<24} {'Driver Ver: ' + data['driver']:<{_WIDE - 25}}|\n",
            line,
            line,
            "| DEV    NAME                | FW VER          | BUS-ID      ECC           |\n",
            "| TEMP   Dpm   Pwr(Usage/Cap)| Mem     GCU Virt| DUsed       SN            |\n",
            forms.join("row", cards),
        ]
    )
