# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``tpu-info`` of Google TPU says, after the samples of its documentation: no serial, no unique id, no health."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import forms

if TYPE_CHECKING:
    from .state import Host


def render(host: Host) -> dict:
    """Return what each tool needs to answer."""

    def describe(card) -> dict:
        now = forms.now(card)
        total = card.memory_mib / 1024
        return {
            "chip": [f"/dev/vfio/{card.index}", f"{card.model} chip", "1", "4711" if card.busy else "None"],
            "busy": card.busy,
            "use": [str(card.index), f"{now.used_mib / 1024:.2f} GiB / {total:.2f} GiB", f"{now.load:>8}.00%"],
        }

    data = {
        "driver": host.driver_version,
        "type": host.cards[0].model.removeprefix("TPU "),
        "cards": forms.entries(host, describe),
    }
    return {"tpu-info": data}


def answer(data: dict, argv: list[str], _moment: float | None = None) -> forms.Reply:
    """Return rc, stdout, stderr of ``tpu-info``."""
    if argv:
        return 2, "", f"usage: tpu-info\ntpu-info: error: unrecognized arguments: {' '.join(argv)}\n"
    return forms.whole(data, lambda cards: _tables(data, cards))


def _table(title: str, columns: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(cell) for cell in cells) for cells in zip(columns, *rows)]

    def line(cells: list[str]) -> str:
        return "| " + " | ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths)) + " |\n"

    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|\n"
    return f"{title}\n\n{line(columns)}{rule}{''.join(line(row) for row in rows)}\n"


def _tables(data: dict, cards: list[dict]) -> str:
    text = f"Libtpu version: {data['driver']}\nAccelerator type: {data['type']}\n\n"
    text += _table("TPU Chips", ["Chip", "Type", "Devices", "PID"], [card["chip"] for card in cards])
    if not any(card["busy"] for card in cards):
        return text + "Libtpu metrics unavailable. Is there a framework using the TPU?\n"
    use = ["Chip", "HBM Usage (GiB)", "Duty cycle"]
    return text + _table("TPU Runtime Utilization", use, [card["use"] for card in cards])
