# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``neuron-ls`` of AWS Neuron says, JSON and table, and the driver's files, which know serials and errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import forms

if TYPE_CHECKING:
    from .state import Card, Host

TREE = "/sys/devices/virtual"
_TYPES = {16: ("trn2.48xlarge", 4)}
_HEAD = (("NEURON", "DEVICE"), ("NEURON", "CORES"), ("NEURON", "MEMORY"), ("CONNECTED", "DEVICES"), ("PCI", "BDF"))


def render(host: Host) -> dict:
    """Return what each tool needs to answer."""
    kind, row = _TYPES.get(len(host.cards), ("trn2.3xlarge", 0))
    cards = forms.entries(host, lambda card: {"entry": _entry(card, row)})
    return {"neuron-ls": {"type": kind, "instance": f"i-0{host.serial[2:]:0>16}", "cards": cards}}


def answer(data: dict, argv: list[str], _moment: float | None = None) -> forms.Reply:
    """Return rc, stdout, stderr of ``neuron-ls``."""
    if argv in (["-j"], ["--json-output"]):
        return forms.whole(data, lambda cards: forms.as_json([card["entry"] for card in cards]))
    if not argv:
        return forms.whole(data, lambda cards: _table(data, cards))
    return 1, "", f"flag provided but not defined: {argv[0]}\n"


def peers(index: int, row: int) -> list[int]:
    """Return the neighbours in a torus of ``row`` devices a side: above, left, below, right."""
    if not row:
        return []
    across, down = index % row, index // row
    return [
        (down - 1) % row * row + across,
        down * row + (across - 1) % row,
        (down + 1) % row * row + across,
        down * row + (across + 1) % row,
    ]


def _entry(card: Card, row: int) -> dict:
    return {
        "neuron_device": card.index,
        "bdf": card.address.split(":", 1)[1],
        "cpu_affinity": "0-95" if card.numa_node == 0 else "96-191",
        "numa_node": str(card.numa_node),
        "connected_to": peers(card.index, row) or None,
        "nc_count": 4,
        "logical_neuroncore_config": 2,
        "memory_size": card.memory_mib << 20,
        "neuroncore_ids": [4 * card.index + core for core in range(4)],
        "neuron_processes": [],
    }


def _table(data: dict, cards: list[dict]) -> str:
    rows = [
        [
            str(entry["neuron_device"]),
            str(entry["nc_count"]),
            f"{entry['memory_size'] >> 30} GB",
            ", ".join(str(peer) for peer in entry["connected_to"] or ()),
            entry["bdf"],
        ]
        for entry in (card["entry"] for card in cards)
    ]
    # A column is as wide as its widest cell, the heads centred.
    widths = [max([6, *(len(word) for word in head), *(len(row[at]) for row in rows)]) for at, head in enumerate(_HEAD)]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+\n"

    def line(cells, form: str) -> str:
        return "| " + " | ".join(f"{cell:{form}{width}}" for cell, width in zip(cells, widths)) + " |\n"

    heads = "".join(line([head[number] for head in _HEAD], "^") for number in (0, 1))
    title = f"instance-type: {data['type']}\ninstance-id: {data['instance']}\nlogical-neuroncore-config: 2\n"
    return title + rule + heads + rule + "".join(line(row, "<") for row in rows) + rule


def trees(host: Host) -> list[tuple[str, str, str, dict]]:
    """Return what the driver shows of each device below its number: name, place and kind of a mount, and its files."""
    kind, row = _TYPES.get(len(host.cards), ("trn2.3xlarge", 0))
    tree: dict = {}
    for card in host.cards:
        if card.lost:
            continue
        told = {
            "core_count": 4,
            "connected_devices": ", ".join(str(peer) for peer in peers(card.index, row)),
            "info/serial_number": card.serial,
            "info/notify_delay": 0,
            "info/architecture/arch_type": "NCv3",
            "info/architecture/device_name": card.model,
            "info/architecture/instance_type": kind.split(".")[0].capitalize(),
            "stats/hardware/mem_ecc_uncorrected": forms.errors(card),
            "stats/hardware/mem_ecc_repairable_uncorrected": 0,
            "stats/hardware/sram_ecc_uncorrected": 0,
        }
        for name, value in told.items():
            tree[f"neuron_device/neuron{card.index}/{name}"] = f"{value}\n".encode()
    return [("virtual", TREE, "overlay", tree)]
