# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``hy-smi`` of Hygon's DCU says: JSON, CSV, lines and the plain table.

Of the two releases the older calls a card DCU and prints JSON over many lines with an empty key in it, the newer calls
it HCU and prints one line.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from . import forms

if TYPE_CHECKING:
    from .state import Card, Host

_WIDE = 96


def render(host: Host) -> dict:
    """Return what each tool needs to answer."""
    word = "HCU" if host.driver_version.startswith("6.") else "DCU"
    cards = forms.entries(host, lambda card: {"keys": _keys(card, word), "row": _row(card, word)})
    return {"hy-smi": {"driver": host.driver_version, "word": word, "cards": cards}}


def answer(data: dict, argv: list[str], _moment: float | None = None) -> forms.Reply:
    """Return rc, stdout, stderr of ``hy-smi``."""
    words = list(argv)
    device = forms.take_option(words, "-d", "--device")
    absent = (1, "", f"ERROR: device {device} does not exist\n")
    form = next((word for word in ("--json", "--csv") if word in words), "")
    asked = [word.removeprefix("--show") for word in words if word.startswith("--show")]
    unknown = [name for name in asked if name not in data["cards"][0]["keys"] and name != "driverversion"]
    others = [word for word in words if not word.startswith("--show") and word not in (form, "vram")]
    if unknown or others:
        return 2, "", f"hy-smi: error: unrecognized arguments: {' '.join(unknown or others)}\n"
    if not asked:
        return forms.asked(data, device, lambda cards: _table(data, cards), absent)
    return forms.asked(data, device, lambda cards: _shown(data, cards, asked, form), absent)


def _keys(card: Card, word: str) -> dict[str, dict[str, str]]:
    """Return what each ``--show`` option tells of a card."""
    now = forms.now(card)
    identity = {"Device ID": f"0x{card.pci_id[5:]}"}
    return {
        "id": identity,
        "productname": {"Card Series": card.model, "Card Vendor": "Chengdu Haiguang IC Design Co., Ltd."},
        "serial": {"Serial Number": card.serial},
        "uniqueid": {"Unique ID": card.uuid},
        "bus": {"PCI Bus": card.address},
        "vbios": {"VBIOS version": card.firmware_version},
        "power": {"Average Graphics Package Power (W)": f"{now.watts:.1f}"},
        "temp": {
            "Temperature (Sensor edge) (C)": f"{now.celsius + 2}.0",
            "Temperature (Sensor junction) (C)": f"{now.celsius}.0",
            "Temperature (Sensor mem) (C)": f"{now.celsius + 5}.0",
        },
        "use": {f"{word} use (%)": f"{now.load}" if word == "DCU" else f"{now.load:.1f}"},
        "memuse": {f"{word} memory use (%)": f"{now.used_mib * 100 // card.memory_mib}"},
        "meminfo": {
            "vram Total Memory (MiB)": f"{card.memory_mib}",
            "vram Total Used Memory (MiB)": f"{now.used_mib}",
        },
    }


def _shown(data: dict, cards: list[dict], asked: list[str], form: str) -> str:
    told = {
        f"card{card['index']}": {
            key: value for name in card["keys"] if name in asked for key, value in card["keys"][name].items()
        }
        for card in cards
    }
    if not any(told.values()):
        told = {}
    older = data["word"] == "DCU"
    if form == "--json":
        if older:
            for values in told.values():
                values[""] = ""
        if "driverversion" in asked:
            told["system"] = {"Driver version": data["driver"]}
        return (json.dumps(told, indent=2) if older else json.dumps(told, separators=(",", ":"))) + "\n"
    if form == "--csv":
        names = list(next(iter(told.values()), {}))
        # Nothing is quoted; commas within a value are dropped.
        rows = [
            ",".join([card, *(value.replace(",", "") for value in values.values())]) for card, values in told.items()
        ]
        return "\n" + "\n".join([",".join(["device", *names]), *rows]) + "\n"
    lines = [
        f"{data['word']}[{card.removeprefix('card')}]\t\t: {key}: {value}\n"
        for card, values in told.items()
        for key, value in values.items()
    ]
    return "".join(lines)


_OLDER = ((5, "DCU"), (7, "Temp"), (8, "AvgPwr"), (6, "Fan"), (6, "Perf"), (8, "PwrCap"), (7, "VRAM%"), (0, "DCU%"))
_NEWER = (
    (8, "HCU"), (9, "Temp"), (11, "AvgPwr"), (9, "Perf"), (11, "PwrCap"), (11, "VRAM%"), (10, "HCU%"), (10, "Dec%"),
    (10, "Enc%"), (9, "Mode"),
)  # fmt: skip


def _line(columns: tuple, cells: list[str]) -> str:
    return "".join(f"{cell:<{width}}" for (width, _name), cell in zip(columns, cells)) + "\n"


def _row(card: Card, word: str) -> str:
    now = forms.now(card)
    share, watts, cap = f"{now.used_mib * 100 // card.memory_mib}%", f"{now.watts:.1f}W", f"{card.power_watts}.0W"
    if word == "DCU":
        cells = [f"{card.index}", f"{now.celsius}.0c", watts, "0.0%", "auto", cap, f"{share:>4}", f"{now.load}%"]
        return _line(_OLDER, cells)
    cells = [
        f"{card.index}", f"{now.celsius}.0C", watts, "auto", cap, share, f"{now.load:.1f}%", "0.0%", "0.0%", "Normal",
    ]  # fmt: skip
    return _line(_NEWER, cells)


def _table(data: dict, cards: list[dict]) -> str:
    older = data["word"] == "DCU"
    columns, width = (_OLDER, 52) if older else (_NEWER, _WIDE)
    rule = "=" * width + "\n"
    top, end = (
        ("System Management Interface ", "End of SMI Log")
        if older
        else (" System Management Interface ", " End of SMI Log ")
    )
    head = _line(columns, [name for _width, name in columns])
    lead = "" if older else "\n"
    return f"{lead}{top:=^{width}}\n{rule}{head}{forms.join('row', cards)}{rule}{end:=^{width}}\n"
