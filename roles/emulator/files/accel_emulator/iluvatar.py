# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``ixsmi`` of Iluvatar CoreX says: XML and the table.

The XML of 4.2 is long, that of 4.4 short and without an address in its PCI part. Two chips of a board have one serial;
the power of a board stands with its second chip.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import forms
from .ids import hexes

if TYPE_CHECKING:
    from .state import Card, Host

NA = "N/A"
_ABSENT = (6, "No devices were found\n", "")
_PAD = " " * 8
_RULE = "+-------------------------------+----------------------+----------------------+\n"


def render(host: Host) -> dict:
    """Return what each tool needs to answer."""
    short = host.driver_version.startswith("4.4")

    def describe(card: Card) -> dict:
        nodes = _short(card) if short else _long(card)
        return {
            "xml": forms.xml([(f'gpu id="{forms.long_address(card)}"', nodes)], _PAD),
            "row": _row(card),
        }

    data = {"driver": host.driver_version, "cards": forms.entries(host, describe)}
    return {"ixsmi": data}


def answer(data: dict, argv: list[str], moment: float | None = None) -> forms.Reply:
    """Return rc, stdout, stderr of ``ixsmi``."""
    words = list(argv)
    device = forms.take_option(words, "-i", "--id")
    if sorted(words) == ["-q", "-x"]:
        return forms.asked(data, device, lambda cards: _document(data, cards, moment), _ABSENT)
    if not words:
        return forms.asked(data, device, lambda cards: _table(data, cards, moment), _ABSENT)
    return 2, "", f"Invalid combination of input arguments: {' '.join(argv)}\n"


def _document(data: dict, cards: list[dict], moment: float | None) -> str:
    head = [
        ("timestamp", forms.clock(moment, "%a %b %e %H:%M:%S %Y")),
        ("driver_version", data["driver"]),
        ("cuda_version", "10.2"),
        ("attached_gpus", str(len(forms.present(data)))),
    ]
    return (
        '<?xml version="1.0" ?>\n<!DOCTYPE ixsmi_log SYSTEM "ixsmi_device.dtd">\n<ixsmi_log>\n'
        f"{forms.xml(head, _PAD)}{forms.join('xml', cards)}</ixsmi_log>\n"
    )


def _parts(card: Card) -> dict:
    """Return the sections that both releases have."""
    now = forms.now(card)
    return {
        "fan_speed": NA,
        "memory_usage": [
            ("total", f"{card.memory_mib} MiB"),
            ("used", f"{now.used_mib} MiB"),
            ("free", f"{card.memory_mib - now.used_mib} MiB"),
        ],
        "utilization": [
            ("gpu_util", f"{now.load} %"),
            ("memory_util", f"{now.used_mib * 100 // card.memory_mib} %"),
            ("encoder_util", "0 %"),
            ("decoder_util", "0 %"),
        ],
        "ecc_errors": [("single_bit", "0"), ("double_bit", str(forms.errors(card)))],
    }


def _link(speed: float, width: int, name: str) -> tuple[tuple, tuple]:
    return (f"{name}_link_gen", str(forms.generation(speed))), (f"{name}_link_width", f"{width}x")


def _long(card: Card) -> list:
    now, parts = forms.now(card), _parts(card)
    domain, bus, rest = card.address.upper().split(":")
    vendor, device = card.pci_id.upper().split(":")
    most, least = (
        _link(card.link_speed_gts, card.link_width, "max"),
        _link(card.speed_gts, card.width, "current"),
    )
    clocks = [("sm_clock", f"{card.clocks_mhz[0]} MHz"), ("mem_clock", f"{card.clocks_mhz[1]} MHz")]
    sub_vendor, sub_device = card.subsystem.split(":")
    return [
        ("product_name", card.model),
        ("serial", card.serial),
        ("uuid", card.uuid),
        ("minor_number", str(card.index)),
        ("multigpu_board", "No" if card.chips == 1 else "Yes"),
        ("board_id", hexes(4, "board", card.serial)),
        ("gpu_position", NA),
        ("gpu_part_number", card.part_number),
        ("gpu_virtualization_mode", [("virtualization_mode", "None"), ("host_vgpu_mode", NA)]),
        (
            "pci",
            [
                ("pci_bus", bus),
                ("pci_device", rest.split(".")[0]),
                ("pci_domain", domain),
                ("pci_device_id", device + vendor),
                ("pci_bus_id", forms.long_address(card)),
                ("pci_sub_system_id", sub_device + sub_vendor),
                ("pci_gpu_link_info", [("pcie_gen", [most[0], least[0]]), ("link_widths", [most[1], least[1]])]),
                ("tx_util", "0 KB/s"),
                ("rx_util", "0 KB/s"),
            ],
        ),
        ("fan_speed", NA),
        ("memory_usage", parts["memory_usage"]),
        ("utilization", parts["utilization"]),
        ("ecc_mode", [("current_ecc", "Enabled"), ("pending_ecc", NA)]),
        ("ecc_errors", parts["ecc_errors"]),
        (
            "temperature",
            [
                ("gpu_temp", f"{now.celsius} C"),
                ("gpu_temp_max_threshold", "105 C"),
                ("gpu_temp_slow_threshold", "100 C"),
                ("gpu_temp_max_gpu_threshold", "95 C"),
            ],
        ),
        (
            "power_readings",
            [
                ("gpu_power_draw", f"{round(now.watts)} W"),
                ("current_gpu_power_limit", f"{card.power_watts} W"),
                ("default_gpu_power_limit", f"{card.power_watts} W"),
                ("board_power_draw", NA),
                ("current_board_power_limit", NA),
                ("default_board_power_limit", NA),
            ],
        ),
        ("clocks", clocks),
        ("max_clocks", clocks),
        ("compute_mode", "Default"),
        ("performance_state", "P0"),
        ("processes", []),
    ]


def _short(card: Card) -> list:
    now, parts = forms.now(card), _parts(card)
    speed, width = _link(card.speed_gts, card.width, "current")
    return [
        ("product_name", card.model),
        ("serial", card.serial),
        ("uuid", card.uuid),
        ("minor_number", str(card.index)),
        ("vbios_version", card.firmware_version),
        ("fan_speed", NA),
        ("memory_usage", parts["memory_usage"]),
        ("utilization", parts["utilization"]),
        ("ecc_mode", [("current_ecc", "Enabled")]),
        ("ecc_errors", parts["ecc_errors"]),
        ("temperature", [("gpu_temp", f"{now.celsius} C"), ("memory_temp", f"{now.celsius - 1} C")]),
        (
            "power_readings",
            [
                ("gpu_power_draw", f"{round(now.watts)} W"),
                ("current_gpu_power_limit", f"{card.power_watts} W"),
                ("board_power_draw", f"{round(now.watts * card.chips) + 27} W"),
                ("current_board_power_limit", f"{card.power_watts * card.chips + 40} W"),
            ],
        ),
        (
            "clocks",
            [
                ("sm_clock", f"{card.clocks_mhz[0] if card.busy else 500} MHz"),
                ("mem_clock", f"{card.clocks_mhz[1]} MHz"),
            ],
        ),
        ("pci", [("pci_gpu_link_info", [("pcie_gen", [speed]), ("link_widths", [width])])]),
        ("compute_mode", "Default"),
        ("performance_state", "P0"),
        ("processes", []),
    ]


def _row(card: Card) -> str:
    now = forms.now(card)
    told = card.slot_number % card.chips == card.chips - 1
    power = f"{round(now.watts * card.chips) + 27}W / {card.power_watts * card.chips + 40}W" if told else f"{NA} / {NA}"
    memory, clock = f"{now.used_mib}MiB / {card.memory_mib}MiB", f"{card.clocks_mhz[0]}MHz"
    return (
        f"| {card.index:<4} {card.model:<24} | {forms.long_address(card):<20} "
        f"| {clock:<9} {f'{card.clocks_mhz[1]}MHz':<10} |\n"
        f"| 0%   {now.celsius}C   P0    {power:<13}| {memory:<20} | {f'{now.load}%':<9} {'Default':<10} |\n{_RULE}"
    )


def _table(data: dict, cards: list[dict], moment: float | None) -> str:
    rule = "+" + "-" * 77 + "+\n"
    version = data["driver"]
    return "".join(
        [
            f"Timestamp    {forms.clock(moment, '%a %b %e %H:%M:%S %Y')}\n",
            rule,
            f"|  IX-ML: {version:<11} Driver Version: {version:<11} CUDA Version: 10.2          |\n",
            _RULE.replace("+\n", "|\n").replace("+-", "|-", 1),
            "| GPU  Name                     | Bus-Id               | Clock-SM  Clock-Mem  |\n",
            "| Fan  Temp  Perf  Pwr:Usage/Cap|      Memory-Usage    | GPU-Util  Compute M. |\n",
            _RULE.replace("-", "=").replace("+=", "|=", 1).replace("+\n", "|\n"),
            forms.join("row", cards),
            "\n",
            rule,
            "| Processes:                                                       GPU Memory |\n",
            "|  GPU        PID      Process name                                Usage(MiB) |\n",
            "|" + "=" * 77 + "|\n",
            f"|  {'No running processes found':<75}|\n",
            rule,
        ]
    )
