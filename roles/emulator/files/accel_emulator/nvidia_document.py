# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The document that ``nvidia-smi -q`` prints of a card, and what of a card changes.

One list of nodes a card gives the XML (``-q -x``) and the text (``-q``): a node is
``(tag, label, value)``, value a text or a list of nodes; a tag or label of None leaves the node out of that form.
"""

from __future__ import annotations

from .forms import long_address
from .state import Card, Host

NA = "N/A"
GONE = "Requested functionality has been deprecated"
PCIE_GENERATION = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}
_ENGINES = (("encoder", "Encoder"), ("decoder", "Decoder"), ("jpeg", "JPEG"), ("ofa", "OFA"))
# The smallest profile, seven to a card, as an administrator makes them with -cgi 19: its share of the multiprocessors.
MIG_INSTANCES, _MIG_MULTIPROCESSORS = 7, 16


def mig_devices(card: Card) -> list:
    """Return the nodes of the MIG instances of a card that is split."""
    return [
        (
            "mig_device",
            "MIG Device",
            [
                ("index", "Index", str(number)),
                ("gpu_instance_id", "GPU Instance ID", str(number + 7)),
                ("compute_instance_id", "Compute Instance ID", "0"),
                (
                    "device_attributes",
                    "Device Attributes",
                    [
                        (
                            "shared",
                            "Shared",
                            [("multiprocessor_count", "Multiprocessor count", str(_MIG_MULTIPROCESSORS))],
                        )
                    ],
                ),
                (
                    "ecc_error_count",
                    "ECC Errors",
                    [("volatile_count", "Volatile", [("sram_uncorrectable", "SRAM Uncorrectable", "0")])],
                ),
                (
                    "fb_memory_usage",
                    "Shared FB Memory Usage",
                    [
                        ("total", "Total", f"{card.memory_mib // 8} MiB"),
                        ("reserved", "Reserved", "0 MiB"),
                        ("used", "Used", "9 MiB"),
                        ("free", "Free", f"{card.memory_mib // 8 - 9} MiB"),
                    ],
                ),
            ],
        )
        for number in range(MIG_INSTANCES)
    ]


def xml(nodes: list, depth: int):
    """Yield the lines of the XML form, indented with tabs as the tool does."""
    pad = "\t" * depth
    for tag, _label, value in nodes:
        if tag is None:
            continue
        if isinstance(value, list):
            yield f"{pad}<{tag}>\n"
            yield from xml(value, depth + 1)
            yield f"{pad}</{tag}>\n"
        elif tag == "mig_devices":
            yield f"{pad}<{tag}>\n{pad}\t{value}\n{pad}</{tag}>\n"
        else:
            yield f"{pad}<{tag}>{value}</{tag}>\n"


def text(nodes: list, depth: int, column: int):
    """Yield the lines of the text form; the colon stands in the same column on every level."""
    pad = "    " * depth
    for _tag, label, value in nodes:
        if label is None:
            continue
        if isinstance(value, list):
            if label:
                yield f"{pad}{label}\n"
            yield from text(value, depth + (1 if label else 0), column)
        else:
            yield f"{pad + label:<{column}}: {value}\n"


def readings(card: Card) -> dict:
    """Return what changes with load."""
    idle_clock = 345
    graphics, memory = card.clocks_mhz
    return {
        "pstate": "P0" if card.busy else "P8",
        "util": 97 if card.busy else 0,
        "mem_util": 62 if card.busy else 0,
        "used": card.memory_mib * 4 // 5 if card.busy else 1,
        "temp": (61 if card.busy else 30) + card.index % 4,
        "power": (card.power_watts * 0.92 if card.busy else 72.0) + card.index * 0.37,
        "graphics": graphics if card.busy else idle_clock,
        "memory": memory,
        "video": 1545 if card.busy else 765,
    }


def health(card: Card) -> dict:
    """Return the counters that say how a card is.

    warning: a row waits for its remapping, which the next reset does on its own. critical: remapping failed,
    memory errors go uncorrected, and the card asks for a reboot.
    """
    bad, waits = card.health == "critical", card.health == "warning" or card.remap_pending
    return {
        "uncorrectable": 4 if bad else 1 if card.remap_pending else 0,
        "sram": 1 if card.ecc else 0,
        "remapped": 8 if bad else 1 if waits else 0,
        "pending": "Yes" if waits else "No",
        "failure": "Yes" if bad else "No",
        "recovery": "Reboot" if bad else "GPU Reset" if card.remap_pending else "None",
    }


def describe(host: Host, card: Card, branch: int) -> list:
    """Return the nodes of one card, in the order of the given driver branch."""
    now, sick = readings(card), health(card)
    total = card.memory_mib
    reserved = 469
    domain, bus, rest = card.address.split(":")
    vendor, device = card.pci_id.upper().split(":")
    sub_vendor, sub_device = card.subsystem.upper().split(":")
    speed, fastest = PCIE_GENERATION[card.speed_gts], PCIE_GENERATION[card.link_speed_gts]
    atomics = "FETCHADD_32 FETCHADD_64 SWAP_32 SWAP_64 CAS_32 CAS_64 "
    atomic_nodes = [
        ("atomic_caps_outbound", "Atomic Caps Outbound", atomics),
        ("atomic_caps_inbound", "Atomic Caps Inbound", atomics),
    ]
    if branch < 570:
        atomic_nodes.reverse()

    def pair(tag: str, label: str, suffix: str, value: str) -> tuple:
        return (tag, label, [(f"current_{suffix}", "Current", value), (f"pending_{suffix}", "Pending", value)])

    def number(tag: str, label: str, value: str) -> tuple:
        return (tag, None, value), (None, label, f"0x{value}")  # only the text form has the prefix

    nodes: list = [
        ("product_name", "Product Name", card.model),
        ("product_brand", "Product Brand", "NVIDIA"),
        ("product_architecture", "Product Architecture", card.architecture),
        ("display_mode", "Display Mode", GONE if branch >= 580 else "Enabled"),
    ]
    if branch >= 580:
        nodes.append(("display_attached", "Display Attached", "No"))
    nodes += [
        ("display_active", "Display Active", "Disabled"),
        ("persistence_mode", "Persistence Mode", "Enabled"),
        ("addressing_mode", "Addressing Mode", "None"),
        pair("mig_mode", "MIG Mode", "mig", "Enabled" if card.split else "Disabled"),
        ("mig_devices", "", mig_devices(card)) if card.split else ("mig_devices", None, "None"),
        ("accounting_mode", "Accounting Mode", "Disabled"),
        ("accounting_mode_buffer_size", "Accounting Mode Buffer Size", "4000"),
        pair("driver_model", "Driver Model", "dm", NA),
        ("serial", "Serial Number", card.serial),
        ("uuid", "GPU UUID", card.uuid),
    ]
    if branch >= 580:
        nodes.append(("pdi", "GPU PDI", "0x" + card.uuid.replace("-", "")[3:19]))
    nodes += [
        ("minor_number", "Minor Number", str(card.index)),
        ("vbios_version", "VBIOS Version", card.firmware_version),
        ("multigpu_board", "MultiGPU Board", "No"),
        ("board_id", "Board ID", f"0x{int(bus, 16) << 8:x}"),
        ("board_part_number", "Board Part Number", card.part_number),
        ("gpu_part_number", "GPU Part Number", f"{card.pci_id[5:].upper()}-885-A1"),
        ("gpu_fru_part_number", "FRU Part Number", NA),
    ]
    if branch < 570:
        nodes.append(("gpu_module_id", "Module ID", str(card.slot_number)))
    else:
        platform = [
            ("chassis_serial_number", "Chassis Serial Number", NA),
            ("slot_number", "Slot Number", NA),
            ("tray_index", "Tray Index", NA),
            ("host_id", "Host ID", NA),
            ("peer_type", "Peer Type", NA),
            ("module_id", "Module Id", str(card.slot_number)),
        ]
        if branch >= 580:
            platform.append(("gpu_fabric_guid", "GPU Fabric GUID", NA))
        nodes.append(("platformInfo", "Platform Info", platform))
    nodes += [
        (
            "inforom_version",
            "Inforom Version",
            [
                ("img_version", "Image Version", "G520.0200.00.05"),
                ("oem_object", "OEM Object", "2.1"),
                ("ecc_object", "ECC Object", "7.16"),
                ("pwr_object", "Power Management Object", NA),
            ],
        ),
        (
            "inforom_bbx_flush",
            "Inforom BBX Object Flush",
            [("latest_timestamp", "Latest Timestamp", NA), ("latest_duration", "Latest Duration", NA)],
        ),
        pair("gpu_operation_mode", "GPU Operation Mode", "gom", NA),
        ("c2c_mode", "GPU C2C Mode", "Disabled"),
        (
            "gpu_virtualization_mode",
            "GPU Virtualization Mode",
            [
                ("virtualization_mode", "Virtualization Mode", "None"),
                ("host_vgpu_mode", "Host VGPU Mode", NA),
                ("vgpu_heterogeneous_mode", "vGPU Heterogeneous Mode", NA),
            ],
        ),
    ]
    if branch < 580:
        answer = GONE if branch >= 570 else "No"
        nodes.append(
            (
                "gpu_reset_status",
                "GPU Reset Status",
                [
                    ("reset_required", "Reset Required", answer),
                    ("drain_and_reset_recommended", "Drain and Reset Recommended", answer),
                ],
            )
        )
    if branch >= 570:
        nodes.append(("gpu_recovery_action", "GPU Recovery Action", sick["recovery"]))
    nodes += [
        ("gsp_firmware_version", "GSP Firmware Version", host.driver_version),
        ("ibmnpu", "IBMNPU", [("relaxed_ordering_mode", "Relaxed Ordering Mode", NA)]),
        (
            "pci",
            "PCI",
            [
                *number("pci_bus", "Bus", bus.upper()),
                *number("pci_device", "Device", rest.split(".")[0].upper()),
                *number("pci_domain", "Domain", domain.upper()),
                *number("pci_base_class", "Base Classcode", f"{card.pci_class >> 16:x}"),
                *number("pci_sub_class", "Sub Classcode", f"{card.pci_class >> 8 & 0xFF:x}"),
                *number("pci_device_id", "Device Id", device + vendor),
                ("pci_bus_id", "Bus Id", long_address(card)),
                *number("pci_sub_system_id", "Sub System Id", sub_device + sub_vendor),
                (
                    "pci_gpu_link_info",
                    "GPU Link Info",
                    [
                        (
                            "pcie_gen",
                            "PCIe Generation",
                            [
                                ("max_link_gen", "Max", str(fastest)),
                                ("current_link_gen", "Current", str(speed)),
                                ("device_current_link_gen", "Device Current", str(speed)),
                                ("max_device_link_gen", "Device Max", str(fastest)),
                                ("max_host_link_gen", "Host Max", str(fastest)),
                            ],
                        ),
                        (
                            "link_widths",
                            "Link Width",
                            [
                                ("max_link_width", "Max", f"{card.link_width}x"),
                                ("current_link_width", "Current", f"{card.width}x"),
                            ],
                        ),
                    ],
                ),
                (
                    "pci_bridge_chip",
                    "Bridge Chip",
                    [("bridge_chip_type", "Type", NA), ("bridge_chip_fw", "Firmware", NA)],
                ),
                ("replay_counter", "Replays Since Reset", "0"),
                ("replay_rollover_counter", "Replay Number Rollovers", "0"),
                ("tx_util", "Tx Throughput", f"{420 + card.index * 13} KB/s"),
                ("rx_util", "Rx Throughput", f"{380 + card.index * 11} KB/s"),
                *atomic_nodes,
            ],
        ),
        ("fan_speed", "Fan Speed", NA),
        ("performance_state", "Performance State", now["pstate"]),
        ("clocks_event_reasons", "Clocks Event Reasons", _event_reasons(card)),
    ]
    if branch >= 580:
        counters = (
            ("sw_power_cap", "SW Power Capping"),
            ("sync_boost", "Sync Boost"),
            ("sw_therm_slowdown", "SW Thermal Slowdown"),
            ("hw_therm_slowdown", "HW Thermal Slowdown"),
            ("hw_power_brake", "HW Power Braking"),
        )
        nodes.append(
            (
                "clocks_event_reasons_counters",
                "Clocks Event Reasons Counters",
                [(f"clocks_event_reasons_counters_{tag}", label, "0 us") for tag, label in counters],
            )
        )
    nodes += [
        ("sparse_operation_mode", "Sparse Operation Mode", "Disabled"),
        (
            "fb_memory_usage",
            "FB Memory Usage",
            [
                ("total", "Total", f"{total} MiB"),
                ("reserved", "Reserved", f"{reserved} MiB"),
                ("used", "Used", f"{now['used']} MiB"),
                ("free", "Free", f"{total - reserved - now['used'] + 1} MiB"),
            ],
        ),
        (
            "bar1_memory_usage",
            "BAR1 Memory Usage",
            [
                ("total", "Total", f"{max(card.bars_mib)} MiB"),
                ("used", "Used", "1 MiB"),
                ("free", "Free", f"{max(card.bars_mib) - 1} MiB"),
            ],
        ),
        (
            "cc_protected_memory_usage",
            "Conf Compute Protected Memory Usage",
            [("total", "Total", "0 MiB"), ("used", "Used", "0 MiB"), ("free", "Free", "0 MiB")],
        ),
        ("compute_mode", "Compute Mode", "Default"),
        (
            "utilization",
            "Utilization",
            [
                ("gpu_util", "GPU" if branch >= 580 else "Gpu", NA if card.split else f"{now['util']} %"),
                ("memory_util", "Memory", NA if card.split else f"{now['mem_util']} %"),
                *((f"{kind}_util", name, NA if card.split else "0 %") for kind, name in _ENGINES),
            ],
        ),
    ]
    for tag, label in (("encoder_stats", "Encoder Stats"), ("fbc_stats", "FBC Stats")):
        nodes.append(
            (
                tag,
                label,
                [
                    ("session_count", "Active Sessions", "0"),
                    ("average_fps", "Average FPS", "0"),
                    ("average_latency", "Average Latency", "0"),
                ],
            )
        )
    if branch >= 570:
        nodes.append(pair("dram_encryption_mode", "DRAM Encryption Mode", "dram_encryption", NA))
    nodes += [
        pair("ecc_mode", "ECC Mode", "ecc", "Enabled"),
        ("ecc_errors", "ECC Errors", _ecc(sick, branch)),
        (
            "retired_pages",
            "Retired Pages",
            [
                ("multiple_single_bit_retirement", None, [("retired_count", None, NA), ("retired_pagelist", None, NA)]),
                ("double_bit_retirement", None, [("retired_count", None, NA), ("retired_pagelist", None, NA)]),
                (None, "Single Bit ECC", NA),
                (None, "Double Bit ECC", NA),
                ("pending_blacklist", "Pending Page Blacklist", NA),
                ("pending_retirement", None, NA),
            ],
        ),
        ("remapped_rows", "Remapped Rows", _remapped(sick)),
        (
            "temperature",
            "Temperature",
            [
                ("gpu_temp", "GPU Current Temp", f"{now['temp']} C"),
                ("gpu_temp_tlimit", "GPU T.Limit Temp", f"{87 - now['temp']} C"),
                ("gpu_temp_max_tlimit_threshold", "GPU Shutdown T.Limit Temp", "-8 C"),
                ("gpu_temp_slow_tlimit_threshold", "GPU Slowdown T.Limit Temp", "-2 C"),
                ("gpu_temp_max_gpu_tlimit_threshold", "GPU Max Operating T.Limit Temp", "0 C"),
                ("gpu_target_temperature", "GPU Target Temperature", NA),
                ("memory_temp", "Memory Current Temp", f"{now['temp'] + 7} C"),
                ("gpu_temp_max_mem_tlimit_threshold", "Memory Max Operating T.Limit Temp", "0 C"),
            ],
        ),
        ("supported_gpu_target_temp", None, [("gpu_target_temp_min", None, NA), ("gpu_target_temp_max", None, NA)]),
        *_power(card, now, branch),
        (
            "clocks",
            "Clocks",
            [
                ("graphics_clock", "Graphics", f"{now['graphics']} MHz"),
                ("sm_clock", "SM", f"{now['graphics']} MHz"),
                ("mem_clock", "Memory", f"{now['memory']} MHz"),
                ("video_clock", "Video", f"{now['video']} MHz"),
            ],
        ),
    ]
    graphics, memory = (f"{value} MHz" for value in card.clocks_mhz)
    applications = [
        ("graphics_clock", "Graphics", GONE if branch >= 590 else graphics),
        ("mem_clock", "Memory", GONE if branch >= 590 else memory),
    ]
    nodes += [
        ("applications_clocks", "Applications Clocks", applications),
        ("default_applications_clocks", "Default Applications Clocks", applications),
        ("deferred_clocks", "Deferred Clocks", [("mem_clock", "Memory", NA)]),
        (
            "max_clocks",
            "Max Clocks",
            [
                ("graphics_clock", "Graphics", graphics),
                ("sm_clock", "SM", graphics),
                ("mem_clock", "Memory", memory),
                ("video_clock", "Video", "1545 MHz"),
            ],
        ),
        ("max_customer_boost_clocks", "Max Customer Boost Clocks", [("graphics_clock", "Graphics", graphics)]),
        (
            "clock_policy",
            "Clock Policy",
            [("auto_boost", "Auto Boost", NA), ("auto_boost_default", "Auto Boost Default", NA)],
        ),
    ]
    if branch < 580:
        nodes.append(("voltage", "Voltage", [("graphics_volt", "Graphics", NA)]))
    nodes += [
        ("fabric", "Fabric", _fabric(branch)),
        ("supported_clocks", None, _supported_clocks(card)),
        ("processes", None, []),
        (None, "Processes", "None"),
        ("accounted_processes", None, []),
    ]
    if branch >= 570:
        nodes.append(("capabilities", "Capabilities", [("egm", "EGM", "disabled")]))
    return nodes


def _event_reasons(card: Card) -> list:
    idle = "Not Active" if card.busy else "Active"
    off = "Not Active"
    brake = "Active" if card.throttled else off
    return [
        ("clocks_event_reason_gpu_idle", "Idle", idle),
        ("clocks_event_reason_applications_clocks_setting", "Applications Clocks Setting", off),
        ("clocks_event_reason_sw_power_cap", "SW Power Cap", off),
        ("clocks_event_reason_hw_slowdown", "HW Slowdown", brake),
        ("clocks_event_reason_hw_thermal_slowdown", "    HW Thermal Slowdown", off),
        ("clocks_event_reason_hw_power_brake_slowdown", "    HW Power Brake Slowdown", brake),
        ("clocks_event_reason_sync_boost", "Sync Boost", off),
        ("clocks_event_reason_sw_thermal_slowdown", "SW Thermal Slowdown", off),
        ("clocks_event_reason_display_clocks_setting", "Display Clock Setting", off),
    ]


def _ecc(sick: dict, branch: int) -> list:
    def counts(uncorrectable: int) -> list:
        return [
            ("sram_correctable", "SRAM Correctable", "0"),
            ("sram_uncorrectable_parity", "SRAM Uncorrectable Parity", str(sick["sram"])),
            ("sram_uncorrectable_secded", "SRAM Uncorrectable SEC-DED", "0"),
            ("dram_correctable", "DRAM Correctable", "0"),
            ("dram_uncorrectable", "DRAM Uncorrectable", str(uncorrectable)),
        ]

    sources = (("l2", "L2"), ("sm", "SM"), ("microcontroller", "Microcontroller"), ("pcie", "PCIE"), ("other", "Other"))
    nodes = [
        ("volatile", "Volatile", counts(sick["uncorrectable"])),
        (
            "aggregate",
            "Aggregate",
            [*counts(sick["uncorrectable"]), ("sram_threshold_exceeded", "SRAM Threshold Exceeded", "No")],
        ),
        (
            "aggregate_uncorrectable_sram_sources",
            "Aggregate Uncorrectable SRAM Sources",
            [(f"sram_{tag}", f"SRAM {label}", "0") for tag, label in sources],
        ),
    ]
    if branch >= 580:
        nodes += [
            ("channel_repair_pending", "Channel Repair Pending", "No"),
            ("tpc_repair_pending", "TPC Repair Pending", "No"),
        ]
    if branch >= 590:
        nodes.append(("unrepairable_memory", "Unrepairable Memory", "No"))
    return nodes


def _remapped(sick: dict) -> list:
    used = 1 if sick["remapped"] else 0
    histogram = (
        ("max", "Max", 2560 - used),
        ("high", "High", used),
        ("partial", "Partial", 0),
        ("low", "Low", 0),
        ("none", "None", 0),
    )
    return [
        ("remapped_row_corr", "Correctable Error", "0"),
        ("remapped_row_unc", "Uncorrectable Error", str(sick["remapped"])),
        ("remapped_row_pending", "Pending", sick["pending"]),
        ("remapped_row_failure", "Remapping Failure Occurred", sick["failure"]),
        (
            "row_remapper_histogram",
            "Bank Remap Availability Histogram",
            [(f"row_remapper_histogram_{tag}", label, f"{count} bank(s)") for tag, label, count in histogram],
        ),
    ]


def _power(card: Card, now: dict, branch: int) -> list:
    draw, cap = f"{now['power']:.2f} W", f"{card.power_watts}.00 W"

    def drawn(value: str) -> list:
        if branch < 580:
            return [("power_draw", "Power Draw", value)]
        return [
            ("average_power_draw", "Average Power Draw", value),
            ("instant_power_draw", "Instantaneous Power Draw", value),
        ]

    def limits(value: str, least: str) -> list:
        return [
            ("current_power_limit", "Current Power Limit", value),
            ("requested_power_limit", "Requested Power Limit", value),
            ("default_power_limit", "Default Power Limit", value),
            ("min_power_limit", "Min Power Limit", least),
            ("max_power_limit", "Max Power Limit", value),
        ]

    state = ("power_state", None, now["pstate"])
    nodes = [
        ("gpu_power_readings", "GPU Power Readings", [state, *drawn(draw), *limits(cap, "200.00 W")]),
        ("gpu_memory_power_readings", "GPU Memory Power Readings ", drawn(f"{now['power'] / 2:.2f} W")),
        ("module_power_readings", "Module Power Readings", [state, *drawn(NA), *limits(NA, NA)]),
    ]
    if branch >= 570:
        nodes += [
            ("power_smoothing", "Power Smoothing", NA),
            (
                "power_profiles",
                "Workload Power Profiles",
                [
                    ("power_profile_requested_profiles", "Requested Profiles", NA),
                    ("power_profile_enforced_profiles", "Enforced Profiles", NA),
                ],
            ),
        ]
    if branch >= 590:
        nodes.append(("edpp_multiplier", "EDPp Multiplier", "100.00%"))
    return nodes


def _fabric(branch: int) -> list:
    health = [("bandwidth", "Bandwidth", NA)]
    if branch >= 570:
        health += [
            ("route_recovery_in_progress", "Route Recovery in progress", NA),
            ("route_unhealthy", "Route Unhealthy", NA),
            ("access_timeout_recovery", "Access Timeout Recovery", NA),
        ]
    if branch >= 580:
        health = [("summary", "Summary", NA), *health, ("incorrect_configuration", "Incorrect Configuration", NA)]
    return [
        ("state", "State", "Completed"),
        ("status", "Status", "Success"),
        ("cliqueId", "CliqueId", "0"),
        ("clusterUuid", "ClusterUUID", "00000000-0000-0000-0000-000000000000"),
        ("health", "Health", health),
    ]


def _supported_clocks(card: Card) -> list:
    highest, memory = card.clocks_mhz
    steps = [("supported_graphics_clock", None, f"{clock} MHz") for clock in range(highest, 344, -15)]
    return [
        ("supported_mem_clock", None, [("value", None, f"{clock} MHz"), *steps]) for clock in (memory, memory * 3 // 5)
    ]
