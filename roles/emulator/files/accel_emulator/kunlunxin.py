# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tools of Kunlunxin say: ``xpu_smi`` (its machine readable line and its table), and the newer ``xpu-smi``.

A host has one of the two, by its driver. What most columns of the line mean is not known; they are as recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import forms

if TYPE_CHECKING:
    from .state import Card, Host

_RULE = "+-------------------------------+----------------------+----------------------+\n"


def render(host: Host) -> dict:
    """Return what each tool needs to answer."""
    newer = host.driver_version.startswith("515")
    describe = _new if newer else _old
    data = {"driver": host.driver_version, "newer": newer, "cards": forms.entries(host, describe)}
    return {"xpu-smi" if newer else "xpu_smi": data}


def answer(data: dict, argv: list[str], moment: float | None = None) -> forms.Reply:
    """Return rc, stdout, stderr of either tool."""
    if argv == ["-m"] and not data["newer"]:
        return forms.whole(data, lambda cards: forms.join("line", cards))
    if not argv:
        return forms.whole(data, lambda cards: (_table if data["newer"] else _old_table)(data, cards, moment))
    return 1, "", f"invalid option: {argv[0]}\n"


def _old(card: Card) -> dict:
    now = forms.now(card)
    clocks = " ".join([str(card.clocks_mhz[0])] * 6)
    head = f"{forms.long_address(card)} {card.index} {card.index} {card.serial} {now.celsius} 0 0 0 {round(now.watts)}"
    memory = f"0 {card.l3_mib} {now.used_mib} {card.memory_mib} {now.load}"
    line = f'{head} {clocks} {memory} {card.firmware_version} "{card.model}" {" ".join("0" * 10)}\n'
    return {
        "line": line,
        "row": [
            str(card.index), card.address, card.model, card.serial, f"/dev/xpu{card.index}", f"{now.load} %",
            f"0 / {card.l3_mib} MB", f"{now.used_mib} / {card.memory_mib} MB",
        ],
        "video": [str(card.index), card.model, *["0 %, 0 fps, 800 MHz"] * 3],
    }  # fmt: skip


def _section(title: str, columns: tuple[str, ...], aligned: str, rows: list[list[str]]) -> str:
    """Return a table without corners; titles are centred, cells stand as ``aligned`` says, one sign a column."""
    widths = [max(len(cell) for cell in cells) for cells in zip(columns, *rows)]
    rule = "-" * (sum(widths) + 3 * len(widths) + 1) + "\n"
    head = "| " + " | ".join(f"{name:^{width}}" for name, width in zip(columns, widths)) + " |\n"
    body = "".join(
        "| " + " | ".join(f"{cell:{sign}{width}}" for cell, sign, width in zip(row, aligned, widths)) + " |\n"
        for row in rows
    )
    return f"  {title}\n{rule}{head}{rule}{body}{rule}"


def _old_table(data: dict, cards: list[dict], _moment: float | None) -> str:
    runtime = f"{data['driver'].split('.')[0]}.31"
    return "".join(
        [
            f"Runtime Version: {runtime}\nDriver Version: {data['driver']}\n",
            _section(
                "DEVICES",
                ("DevID", "PCI Addr", "Model", "SN", "INODE", "UseRate", "L3", "Memory"),
                ">^^^<>^^",
                [card["row"] for card in cards],
            ),
            _section("VIDEO", ("DevID", "Model", "DEC", "ENC", "IMGPROC"), ">^^^^", [card["video"] for card in cards]),
            _section("PROCESSES", ("DevID", "PID", "Streams", "L3", "Memory", "Command"), ">>>^^<", []),
        ]
    )


def _new(card: Card) -> dict:
    now = forms.now(card)
    name = f"{card.index:>3}  {card.model:<18} N/A  "
    memory, level = f"{now.used_mib:>6}MiB / {card.memory_mib}MiB", f"{0:>6}MiB / {card.l3_mib:>5}MiB"
    return {
        "row": f"| {name} | {forms.long_address(card)} N/A | {forms.errors(card):>20} |\n"
        f"| N/A {now.celsius:>4}C  N/A {f'{round(now.watts)}W':>7} / {card.power_watts}W | {memory:>20} "
        f"| {f'{now.load}%':>7} {'Default':>12} |\n"
        f"|{'':31}| {level:>20} | {'Disabled':>20} |\n{_RULE}"
    }


def _table(data: dict, cards: list[dict], moment: float | None) -> str:
    return "".join(
        [
            f"{forms.clock(moment, '%a %b %d %H:%M:%S %Y'):<31}\n",
            "+" + "-" * 77 + "+\n",
            f"| XPU-SMI               Driver Version: {data['driver']:<12} XPU-RT Version: {'N/A':<8} |\n",
            "|" + _RULE[1:],
            "| XPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |\n",
            "| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | XPU-Util  Compute M. |\n",
            "|                               |             L3-Usage |            SR-IOV M. |\n",
            "|===============================+======================+======================|\n",
            forms.join("row", cards),
        ]
    )
