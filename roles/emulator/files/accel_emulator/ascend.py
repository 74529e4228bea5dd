# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``npu-smi`` says of a host, rendered once when the state changes. The tool has text only.

A card that is lost is missing from the table and the lists; asked by number it does not exist.
"""

from __future__ import annotations

from .state import Card, Host, hexes, peers

_WORDS = {"ok": "OK", "warning": "Warning", "critical": "Critical"}
_MULTI_BIT = ("80E01801", "multi-bit error of the on-chip memory")
_ISOLATION = ("80E18401", "rows of the on-chip memory are to be isolated")
# type: whether it needs a chip, or tells of each chip when none is named
TYPES = ("board", "health", "memory", "usages", "power", "temp", "common", "product", "ecc")
# Templates of the vNPUs that a card is split into: halves of the 20 cores of a 910B3.
_TEMPLATES = ("vir10_3c_32g", "vir10_3c_32g")


def render(host: Host) -> dict:
    """Return everything the tool needs to answer, as plain data."""
    return {
        "driver": host.driver_version,
        "tool": host.tool_version or host.driver_version,
        "ready": host.driver_ready,
        "cards": [
            {
                "npu": card.index,
                "state": "lost" if card.lost else "hung" if card.hung else "ok",
                "row": _row(card),
                "list": _pairs(
                    ("NPU ID", card.index),
                    ("Product Name", card.part_number),
                    ("Serial Number", card.serial),
                    ("Chip Count", 1),
                ),
                # The board's own controller is listed like a chip.
                "map": f"\t{card.index:<30} {0:<30} {card.index:<30} Ascend {card.model}\n"
                f"\t{card.index:<30} {1:<30} {'-':<30} {'Mcu':<30}\n",
                "types": _types(host, card),
            }
            for card in host.cards
        ],
    }


def vnpus(card: Card) -> list[int]:
    """Return the numbers of the vNPUs of a card, as its driver names their device nodes."""
    return [100 + 16 * card.index + number for number in range(len(_TEMPLATES) if card.split else 0)]


def hccs(host: Host, card: Card) -> str:
    """Return ``info -t hccs`` of the one chip of a card; one list a line, an entry for each port."""

    def row(name: str, values: list[object]) -> str:
        return f"\t{'hccs ' + name + ' ':<30} : [{''.join(f'{value!s:<20} ' for value in values)}]\n"

    # The board has room for eight; on a host with eight cards the first is not used and not shown.
    links = list(peers(host, card).values())
    modes = [4 if up else 0 for up in links]
    counts: list[object] = [0] * len(links)
    parts = [
        f"\t{'hccs health status ':<30} : {'OK' if all(links) else 'NOK'}\n",
        row("lane mode", list(modes)),
        row("link lane list", ["1111" if mode else "0000" for mode in modes]),
        row("link speed", [56 * mode for mode in modes]),
        *(row(f"{way} {what}", counts) for way in ("tx", "rx") for what in ("packets", "bytes")),
        row("retry count", counts),
        row("error count", counts),
        f"\t{'hccs first error lane ':<30} : {'NA' if all(links) else 8 - len(links) + links.index(False)}\n",
    ]
    return "".join(parts)


def vnpu_info(card: Card) -> str:
    """Return ``info -t info-vnpu`` of the one chip of a card."""
    rule = f"+{'-' * 79}+\n"

    def line(content: str) -> str:
        return f"| {content:<78}|\n"

    numbers = vnpus(card)
    free = "0/20     0/64      0/7     0/9    0/0    0/2    0/24     0/4      NA/NA"
    whole = "20/20    60/64     6/6     9/9    0/0    2/2    24/24    4/4      NA/NA"
    rows = [
        line(f" {number:<9}|  {at:<13}|  {'ffffffffffff':<14}|  {1:<7}|  {template:<20}")
        for at, (number, template) in enumerate(zip(numbers, _TEMPLATES))
    ]
    return "".join(
        [
            rule,
            line("NPU resource static info as follow:"),
            line("Format:Free/Total                   NA: Currently, query is not supported."),
            line("AICORE    Memory    AICPU    VPC    VENC    VDEC    JPEGD    JPEGE    PNGD"),
            line("           GB"),
            f"|{'=' * 79}|\n",
            line(free if numbers else whole),
            rule,
            line(f"Total number of vnpu: {len(numbers)}"),
            rule,
            line(" Vnpu ID  |  Vgroup ID     |  Container ID  |  Status  |  Template Name"),
            rule,
            *rows,
            rule if rows else "",
        ]
    )


def _pairs(*pairs: tuple[str, object]) -> str:
    """Return lines as every section of the tool has them."""
    return "".join(f"\t{name:<30} : {value}\n" for name, value in pairs)


def _power(card: Card) -> str:
    return f"{(card.power_watts * 0.9 if card.busy else 93.0) + card.index * 0.6:.1f}"


def _temperature(card: Card) -> int:
    return (56 if card.busy else 40) + card.index % 4


def _used(card: Card) -> int:
    return card.memory_mib * 4 // 5 if card.busy else 3310 + card.index


def _sick(card: Card) -> tuple[str, tuple[str, str], dict[str, int]]:
    """Return the word for the health, fault code and its text, and counters of memory errors other than 0."""
    word = _WORDS[card.health]
    if card.remap_pending:
        return "Warning", _ISOLATION, {"Error Count": 1, "Aggregate Total Err Cnt": 1, "Next-Isolated Pages Count": 1}
    if card.ecc or card.health == "critical":
        errors = 4 if card.health == "critical" else 1
        word = word if card.health == "critical" else "Alarm"
        return word, _MULTI_BIT, {"Error Count": errors, "Aggregate Total Err Cnt": errors}
    if card.health == "warning":
        return word, _ISOLATION, {"Next-Isolated Pages Count": 1}
    return word, ("NA", "NA"), {}


def _counters(double: dict[str, int]) -> tuple[tuple[str, int], ...]:
    """Return the counters of ``-t ecc``: a card with HBM has no DDR of its own, and tells its counters all the same."""
    names = ("Error Count", "Aggregate Total Err Cnt", "Isolated Pages Count", "Next-Isolated Pages Count")
    return tuple(
        (f"{kind} {bits} Bit {name}", double.get(name, 0) if (kind, bits) == ("HBM", "Double") else 0)
        for kind in ("DDR", "HBM")
        for name in names
        for bits in ("Single", "Double")
    )


def _row(card: Card) -> str:
    """Return the two lines of a card in the table of ``npu-smi info``."""
    health = _sick(card)[0]
    # The tool pads a word other than OK to a wider field, so that such a row is longer than the rule.
    health = f"{health:<13}" if health == "OK" else f"{health:<18}"
    load = 91 if card.busy else 0
    pages, memory, used = f"{0:<4} / {0:<13}", f"{0:<4} / {0:<10}", f"{_used(card):<4} / {card.memory_mib:<13}"
    return (
        f"| {card.index:<5} {card.model:<19} | {health} | {_power(card):<11} {_temperature(card):<17} {pages} |\n"
        f"| {0:<5} {'':<19} | {card.address.upper():<13} | {load:<11} {memory} {used} |\n"
    )


def _types(host: Host, card: Card) -> dict[str, list[str]]:
    """Return each ``-t`` type: what is told of the card, and what of its one chip."""
    vendor, device = card.pci_id.split(":")
    sub_vendor, sub_device = card.subsystem.split(":")
    npu, count, chip = ("NPU ID", card.index), ("Chip Count", 1), ("Chip ID", 0)
    health, (error, meaning), errors = _sick(card)
    load = 91 if card.busy else 0
    used = _used(card) * 100 // card.memory_mib
    watts, celsius = _power(card), _temperature(card)
    board = _pairs(
        npu,
        ("Product Name", card.part_number),
        ("Model", "NA"),
        ("Manufacturer", "Huawei"),
        ("Serial Number", card.serial),
        ("Software Version", host.driver_version),
        ("Firmware Version", card.firmware_version),
        ("Compatibility", "OK"),
        ("Board ID", "0x65"),
        ("PCB ID", "A"),
        ("BOM ID", 1),
        ("PCIe Bus Info", card.address.upper()),
        ("Slot ID", 0),
        ("Class ID", "NA"),
        ("PCI Vendor ID", f"0x{vendor.upper()}"),
        ("PCI Device ID", f"0x{device.upper()}"),
        ("Subsystem Vendor ID", f"0x{sub_vendor.upper()}"),
        ("Subsystem Device ID", f"0x{sub_device.upper()}"),
        count,
    )
    second = hexes(40, "ndie", card.uuid).upper()
    board_chip = _pairs(
        npu,
        chip,
        ("Chip Type", "Ascend"),
        ("Chip Name", card.model),
        ("Chip Version", card.architecture),
        ("Board ID", "0x65"),
        ("PCB ID", "NA"),
        ("BOM ID", 1),
        ("VDie ID", card.uuid),
        ("NDie ID", " ".join(second[at : at + 8] for at in range(0, 40, 8))),
        ("Chip Position ID", 0),
        ("PCIe Bus Info", card.address.upper()),
        ("Firmware Version", card.firmware_version),
    )
    per_chip = {
        "health": (("Health Status", health), ("Error Code", error), ("Error Information", meaning)),
        "memory": (
            ("DDR Capacity(MB)", 0),
            ("DDR Clock Speed(MHz)", 0),
            ("HBM Capacity(MB)", card.memory_mib),
            ("HBM Clock Speed(MHz)", card.clocks_mhz[1]),
            ("HBM Temperature(C)", celsius),
            ("HBM Manufacturer ID", "0x56"),
        ),
        "usages": (
            ("DDR Capacity(MB)", 0),
            ("DDR Usage Rate(%)", 0),
            ("DDR Hugepages Total(page)", 0),
            ("DDR Hugepages Usage Rate(%)", 0),
            ("HBM Capacity(MB)", card.memory_mib),
            ("HBM Usage Rate(%)", used),
            ("Aicore Usage Rate(%)", load),
            ("Aivector Usage Rate(%)", load // 2),
            ("Aicpu Usage Rate(%)", 0),
            ("Ctrlcpu Usage Rate(%)", 6),
            ("DDR Bandwidth Usage Rate(%)", 0),
            ("HBM Bandwidth Usage Rate(%)", load // 2),
            ("NPU Utilization(%)", load),
            ("Aicube Usage Rate(%)", load),
        ),
        "power": (("NPU Real-time Power(W)", watts),),
        "temp": (("NPU Temperature (C)", celsius),),
        "common": (
            ("Memory Usage Rate(%)", 0),
            ("HBM Usage Rate(%)", used),
            ("Aicore Usage Rate(%)", load),
            ("Aicore Freq(MHZ)", card.clocks_mhz[0]),
            ("Aicore curFreq(MHZ)", card.clocks_mhz[0] if card.busy else 800),
            ("Aicore Count", 20),
            ("Temperature(C)", celsius),
            ("NPU Real-time Power(W)", watts),
        ),
        "product": (("Product Type", f"Atlas 800T A2 ({card.model})"),),
        "ecc": _counters(errors),
    }
    # These two want a chip, and say so where none is named.
    types = {"board": [board, board_chip], "hccs": ["", hccs(host, card)], "info-vnpu": ["", vnpu_info(card)]}
    for name, pairs in per_chip.items():
        # "common" begins a section with the chip, the other types end it with the chip.
        section = _pairs(chip, *pairs) if name == "common" else _pairs(*pairs, chip)
        types[name] = [_pairs(npu, count) + "\n" + section, _pairs(*pairs)]
    return types


def version_info(host: Host) -> str:
    """Return ``/usr/local/Ascend/driver/version.info``."""
    return (
        f"Version={host.driver_version}\nascendhal_version=7.35.23\naicpu_version=1.0\ntdt_version=1.0\nlog_version=1.0\n"
        "prof_version=2.0\ndvppkernels_version=1.1\ntsfw_version=1.0\nInnerversion=V100R001C21SPC002B216\n"
        "compatible_version=[V100R001C19],[V100R001C20],[V100R001C21]\ncompatible_version_fw=[7.2.0,7.7.99]\n"
    )
