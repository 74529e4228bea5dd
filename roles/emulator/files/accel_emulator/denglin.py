# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``dlsmi`` of Denglin says: XML without a declaration. Four chips of a board have one serial number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import forms

if TYPE_CHECKING:
    from .state import Card, Host

NA = "N/A"
_THROTTLES = (
    "idle", "applications_clocks_setting", "sw_power_cap", "hw_slowdown", "hw_thermal_slowdown",
    "hw_power_brake_slowdown", "sync_boost", "sw_thermal_slowdown", "display_clock_setting",
)  # fmt: skip
_BLOCKS = ("device_memory", "register_file", "l1_cache", "l2_cache", "texture_memory", "texture_shared", "cbu")


def render(host: Host) -> dict:
    """Return what each tool needs to answer."""
    cards = forms.entries(
        host,
        lambda card: {"xml": forms.xml([(f'gpu id="{forms.long_address(card)}"', _nodes(card))], "\t")},
    )
    return {"dlsmi": {"driver": host.driver_version, "cards": cards}}


def answer(data: dict, argv: list[str], moment: float | None = None) -> forms.Reply:
    """Return rc, stdout, stderr of ``dlsmi``."""
    if argv != ["query", "--xml-format"]:
        return 2, "", f"Invalid combination of input arguments: {' '.join(argv)}\n"
    return forms.whole(data, lambda cards: _document(data, cards, moment))


def _document(data: dict, cards: list[dict], moment: float | None) -> str:
    head = [
        ("timestamp", forms.clock(moment, "%a %b %d %H:%M:%S %Y")),
        ("driver_version", data["driver"]),
        ("attached_gpus", str(len(forms.present(data)))),
    ]
    return f"<dlsmi_log>\n{forms.xml(head, chr(9))}{forms.join('xml', cards)}</dlsmi_log>\n"


def _unset(*names: str) -> list:
    return [(name, NA) for name in names]


def _samples(name: str, *values: str) -> tuple:
    return name, list(zip(("duration", "max", "min", "avg"), values))


def _counts(total: int | None) -> list:
    """Return the blocks of one kind of errors; the tool counts in total only."""
    return [*_unset(*_BLOCKS), ("total", NA if total is None else str(total))]


def _nodes(card: Card) -> list:
    now = forms.now(card)
    domain, bus, rest = card.address.upper().split(":")
    vendor, device = card.pci_id.upper().split(":")
    sub_vendor, sub_device = card.subsystem.upper().split(":")
    # Positions count down where addresses count up.
    position = card.chips - 1 - card.slot_number % card.chips
    clocks = [(name, f"{card.clocks_mhz[0]} MHz") for name in ("fe", "cu", "tu")]
    clocks = [*clocks, ("memory", f"{card.clocks_mhz[1]} MHz"), ("video", f"{card.clocks_mhz[0]} MHz")]
    slowed = {"hw_slowdown", "hw_power_brake_slowdown"} if card.throttled else set()
    # The cards that were recorded say of every count that they have none; a card with errors has to count.
    bad = forms.errors(card)
    current, most = str(forms.generation(card.speed_gts)), str(forms.generation(card.link_speed_gts))
    use, share = f"{now.load} %", f"{now.used_mib * 100 // card.memory_mib} %"
    memory = [("total", card.memory_mib), ("used", now.used_mib), ("free", card.memory_mib - now.used_mib)]
    return [
        ("product_name", f"{card.model}-{position}" if card.chips > 1 else card.model),
        ("product_brand", "Goldwasser"),
        ("product_architecture", card.architecture),
        *_unset("display_mode", "display_active", "persistence_mode", "accounting_mode"),
        ("driver_model", _unset("current", "pending")),
        ("serial_number", card.serial),
        ("uuid", card.uuid),
        ("minor_number", str(card.index)),
        ("vbios_version", NA),
        ("fw_version", card.firmware_version),
        ("multigpu_board", "Yes" if card.chips > 1 else "No"),
        ("board_id", str(card.slot_number // card.chips)),
        ("board_part_number", card.part_number),
        (
            "inforom_version",
            [
                ("image_version", "D0010000000"),
                ("oem_object", "10"),
                ("ecc_object", NA),
                ("power_management_object", "1/"),
            ],
        ),
        ("gpu_operation_mode", _unset("current", "pending")),
        (
            "pci",
            [
                ("domain", f"0x{domain}"),
                ("bus", f"0x{bus}"),
                ("device", f"0x{rest.split('.')[0]}"),
                ("bus_id", forms.long_address(card)),
                ("device_id", f"0x{device}{vendor}"),
                ("sub_system_id", f"0x{sub_device}{sub_vendor}"),
                (
                    "gpu_link_info",
                    [
                        ("pcie_generation", [("max", most), ("current", current)]),
                        ("link_width", [("max", f"{card.link_width}x"), ("current", f"{card.width}x")]),
                    ],
                ),
                ("bridge_chip", _unset("type", "firmware")),
                *_unset("replays_since_reset", "tx_throughput", "rx_throughput"),
            ],
        ),
        ("fan_speed", "0 %"),
        ("performance_state", "P0"),
        ("clocks_throttle_reasons", [(name, "Active" if name in slowed else "Not Active") for name in _THROTTLES]),
        (
            "memory_usage",
            [
                *((name, f"{value} MiB") for name, value in memory),
                (
                    "cluster_memory_usage",
                    [
                        (f'cluster physical_id="{number}"', [("used", f"{0 if number else now.used_mib} MiB")])
                        for number in range(4)
                    ],
                ),
            ],
        ),
        ("compute_mode", "Default"),
        ("utilization", [("gpu", use), ("memory", share), ("encoder", "0 %"), ("decoder", "0 %")]),
        _samples("gpu_utilization_samples", "9900 msec", use, use, use),
        _samples("memory_utilization_samples", "9900 msec", share, share, share),
        _samples("encoder_utilization_samples", NA, NA, NA, NA),
        _samples("decoder_utilization_samples", NA, NA, NA, NA),
        ("encoder_stats", _unset("active_sessions", "average_fps", "average_latency")),
        ("ecc_mode", _unset("current", "pending")),
        (
            "ecc_errors",
            [
                (kind, [("single_bit", _counts(None)), ("double_bit", _counts(bad or None))])
                for kind in ("volatile", "aggregate")
            ],
        ),
        ("retired_pages", _unset("single_bit_ecc", "double_bit_ecc", "pending")),
        (
            "temperature",
            [
                ("gpu_current_temp", f"{now.celsius} C"),
                ("gpu_shutdown_temp", "111 C"),
                ("gpu_slowdown_temp", "106 C"),
                ("gpu_max_operating_temp", "108 C"),
                ("memory_current_temp", f"{now.celsius} C"),
                ("memory_max_operating_temp", "108 C"),
            ],
        ),
        (
            "power_readings",
            [
                ("power_management", "Supported"),
                ("power_draw", f"{now.watts:.2f} W"),
                *((f"{name}power_limit", f"{card.power_watts:.2f} W") for name in ("", "default_", "enforced_")),
                ("min_power_limit", "15.00 W"),
                ("max_power_limit", f"{card.power_watts:.2f} W"),
            ],
        ),
        _samples("power_samples", "83555 msec", *[f"{now.watts:.2f} W"] * 3),
        ("clocks", clocks),
        ("default_clocks", clocks),
        ("max_clocks", clocks),
        ("max_customer_boost_clocks", _unset("fe", "cu", "tu", "memory", "video")),
        _samples("core_clock_samples", "115855 msec", *[f"{card.clocks_mhz[0]} MHz"] * 3),
        _samples("memory_clock_samples", "115855 msec", *[f"{card.clocks_mhz[1]} MHz"] * 3),
        ("clock_policy", [("auto_boost", "Disabled"), ("auto_boost_default", "Disabled")]),
        *_unset("supported_clocks", "accounting_mode", "accounting_buffer_size", "accounting_processes"),
        ("processes", "None"),
    ]
