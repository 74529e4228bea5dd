# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``nvidia-smi`` says of a host, rendered once when the state changes."""

from __future__ import annotations

from . import models
from .forms import long_address
from .nvidia_document import MIG_INSTANCES, PCIE_GENERATION, describe, health, readings, text, xml
from .nvidia_smi import mismatch
from .state import Card, Host, make_uuid


def render(host: Host) -> dict:
    """Return everything the tool needs to answer, as plain data."""
    branch = int(models.branch("nvidia", host.driver_version) or 0)
    cuda, dtd, _library = models.NVIDIA_BRANCHES[str(branch)]
    error = None
    if host.library_version != host.driver_version:
        error = mismatch(host.library_version)
    return {
        "branch": branch,
        "driver": host.driver_version,
        "library": host.library_version,
        # What the packages of the host have is looked at when the tool is called, as a real one loads its library.
        "follows": host.library_version == host.driver_version,
        "cuda": cuda,
        "dtd": dtd,
        "error": error,
        "cards": [_card(host, card, branch) for card in host.cards],
        "topology": topology(host),
        "fields": list(_fields(host, host.cards[0], branch)),
        "aliases": ALIASES,
    }


def _card(host: Host, card: Card, branch: int) -> dict:
    nodes = describe(host, card, branch)
    return {
        "index": card.index,
        "address": card.address,
        "bus_id": long_address(card),
        "uuid": card.uuid,
        "serial": card.serial,
        "state": "lost" if card.lost else "hung" if card.hung else "ok",
        "xml": "".join(xml(nodes, 2)),
        "text": list(text(nodes, 1, 55 if branch >= 580 else 42)),
        "table": table_rows(card),
        "csv": _fields(host, card, branch),
        "list": listed(card),
        "nvlink": nvlink(card),
    }


# Links of a card and what each carries one way in GB/s, as the tool prints it.
_NVLINKS = {"Hopper": (18, "26.562"), "Ampere": (12, "25")}


def nvlink(card: Card) -> str:
    """Return the lines of one card in ``nvlink -s``."""
    count, speed = _NVLINKS.get(card.architecture, (0, ""))
    head = f"GPU {card.index}: {card.model} (UUID: {card.uuid})\n"
    if card.split:
        return f"{head}Nvlink queries are not supported for Devices in MIG mode\n"
    links = [f"{speed} GB/s"] * count
    if card.port_down and links:
        links[3] = "<inactive>"
    return head + "".join(f"\t Link {number}: {state}\n" for number, state in enumerate(links))


def _mig_memory_gb(card: Card) -> int:
    """Return the size in the name of the smallest profile: an eighth of the memory, rounded (1g.10gb of 80 GB)."""
    return round(card.memory_mib / 8 / 1000)


def listed(card: Card) -> str:
    """Return the lines of one card in ``-L``, its MIG instances below it."""
    lines = [f"GPU {card.index}: {card.model} (UUID: {card.uuid})\n"]
    for number in range(MIG_INSTANCES if card.split else 0):
        uuid = make_uuid("nvidia", card.pci_id, card.uuid, "mig", str(number)).replace("GPU-", "MIG-")
        profile = f"MIG 1g.{_mig_memory_gb(card)}gb"
        lines.append(f"  {profile:<16}Device {number:>2}: (UUID: {uuid})\n")
    return "".join(lines)


def table_rows(card: Card) -> str:
    """Return the three lines of a card in the plain table and the rule below."""
    now = readings(card)
    ecc = health(card)["uncorrectable"] + health(card)["sram"]
    return (
        f"|{card.index:>4}  {card.model:<29}{'On':>4}  |   {long_address(card)} Off |{ecc:>21} |\n"
        f"| N/A   {now['temp']:>2}C    {now['pstate']:<2}{now['power']:>15.0f}W / {card.power_watts:>4}W "
        f"|{now['used']:>8}MiB / {card.memory_mib:>6}MiB |{now['util']:>7}% {'Default':>12} |\n"
        f"|{'':41}|{'':24}|{'Enabled' if card.split else 'Disabled':>21} |\n"
        f"+{'-' * 41}+{'-' * 24}+{'-' * 22}+\n"
    )


# Names that --help-query-gpu gives as second ones; the header of the answer has the first.
ALIASES = {
    "gpu_name": "name",
    "gpu_serial": "serial",
    "gpu_uuid": "uuid",
    "gpu_bus_id": "pci.bus_id",
    "inforom.image": "inforom.img",
    "inforom.power": "inforom.pwr",
    "retired_pages.sbe": "retired_pages.single_bit_ecc.count",
    "retired_pages.dbe": "retired_pages.double_bit.count",
    "remapped_rows.sbe": "remapped_rows.correctable",
    "remapped_rows.dbe": "remapped_rows.uncorrectable",
    "clocks.gr": "clocks.current.graphics",
    "clocks.sm": "clocks.current.sm",
    "clocks.mem": "clocks.current.memory",
    "clocks.video": "clocks.current.video",
    "clocks.max.gr": "clocks.max.graphics",
    "clocks.max.mem": "clocks.max.memory",
    "gpu_operation_mode.current": "gom.current",
    "gpu_operation_mode.pending": "gom.pending",
}
for _reason in (
    "supported", "active", "gpu_idle", "applications_clocks_setting", "sw_power_cap", "hw_slowdown",
    "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown", "sync_boost",
):  # fmt: skip
    ALIASES[f"clocks_throttle_reasons.{_reason}"] = f"clocks_event_reasons.{_reason}"


def _fields(host: Host, card: Card, branch: int) -> dict[str, list[str]]:
    """Return what --query-gpu can be asked: field -> [value, unit]. timestamp is filled in by the tool."""
    now, sick = readings(card), health(card)
    domain, bus, rest = card.address.upper().split(":")
    vendor, device = card.pci_id.upper().split(":")
    sub_vendor, sub_device = card.subsystem.upper().split(":")
    speed, fastest = str(PCIE_GENERATION[card.speed_gts]), str(PCIE_GENERATION[card.link_speed_gts])
    none, draw, cap = "[N/A]", f"{now['power']:.2f}", f"{card.power_watts}.00"
    idle = "Not Active" if card.busy else "Active"
    fields = {
        "timestamp": ["", ""],
        "driver_version": [host.driver_version, ""],
        "count": [str(len(host.cards)), ""],
        "name": [card.model, ""],
        "serial": [card.serial, ""],
        "uuid": [card.uuid, ""],
        "pci.bus_id": [long_address(card), ""],
        "pci.domain": [f"0x{domain}", ""],
        "pci.bus": [f"0x{bus}", ""],
        "pci.device": [f"0x{rest.split('.')[0]}", ""],
        "pci.device_id": [f"0x{device}{vendor}", ""],
        "pci.sub_device_id": [f"0x{sub_device}{sub_vendor}", ""],
        "pcie.link.gen.current": [speed, ""],
        "pcie.link.gen.gpucurrent": [speed, ""],
        "pcie.link.gen.max": [fastest, ""],
        "pcie.link.gen.gpumax": [fastest, ""],
        "pcie.link.gen.hostmax": [fastest, ""],
        "pcie.link.width.current": [str(card.width), ""],
        "pcie.link.width.max": [str(card.link_width), ""],
        "index": [str(card.index), ""],
        "display_active": ["Disabled", ""],
        "persistence_mode": ["Enabled", ""],
        "accounting.mode": ["Disabled", ""],
        "accounting.buffer_size": ["4000", ""],
        "driver_model.current": [none, ""],
        "driver_model.pending": [none, ""],
        "vbios_version": [card.firmware_version, ""],
        "inforom.img": ["G520.0200.00.05", ""],
        "inforom.oem": ["2.1", ""],
        "inforom.ecc": ["7.16", ""],
        "inforom.pwr": [none, ""],
        "gom.current": [none, ""],
        "gom.pending": [none, ""],
        "fan.speed": [none, "%"],
        "pstate": [now["pstate"], ""],
        "clocks_event_reasons.supported": ["0x00000000000001FF", ""],
        "clocks_event_reasons.active": [f"0x{(0 if card.busy else 1) | (0x88 if card.throttled else 0):016X}", ""],
        "clocks_event_reasons.gpu_idle": [idle, ""],
        "memory.total": [str(card.memory_mib), "MiB"],
        "memory.reserved": ["469", "MiB"],
        "memory.used": [str(now["used"]), "MiB"],
        "memory.free": [str(card.memory_mib - 469 - now["used"] + 1), "MiB"],
        "compute_mode": ["Default", ""],
        "compute_cap": ["8.0" if card.architecture == "Ampere" else "9.0", ""],
        "utilization.gpu": ["[N/A]" if card.split else str(now["util"]), "%"],
        "utilization.memory": ["[N/A]" if card.split else str(now["mem_util"]), "%"],
        "ecc.mode.current": ["Enabled", ""],
        "ecc.mode.pending": ["Enabled", ""],
        "retired_pages.single_bit_ecc.count": [none, ""],
        "retired_pages.double_bit.count": [none, ""],
        "retired_pages.pending": [none, ""],
        "remapped_rows.correctable": ["0", ""],
        "remapped_rows.uncorrectable": [str(sick["remapped"]), ""],
        "remapped_rows.pending": [sick["pending"], ""],
        "remapped_rows.failure": [sick["failure"], ""],
        "temperature.gpu": [str(now["temp"]), ""],
        "temperature.memory": [str(now["temp"] + 7), ""],
        "power.draw": [draw, "W"],
        "power.draw.average": [draw, "W"],
        "power.draw.instant": [draw, "W"],
        "power.limit": [cap, "W"],
        "enforced.power.limit": [cap, "W"],
        "power.default_limit": [cap, "W"],
        "power.min_limit": ["200.00", "W"],
        "power.max_limit": [cap, "W"],
        "clocks.current.graphics": [str(now["graphics"]), "MHz"],
        "clocks.current.sm": [str(now["graphics"]), "MHz"],
        "clocks.current.memory": [str(now["memory"]), "MHz"],
        "clocks.current.video": [str(now["video"]), "MHz"],
        "clocks.max.graphics": [str(card.clocks_mhz[0]), "MHz"],
        "clocks.max.sm": [str(card.clocks_mhz[0]), "MHz"],
        "clocks.max.memory": [str(card.clocks_mhz[1]), "MHz"],
        "mig.mode.current": ["Enabled" if card.split else "Disabled", ""],
        "mig.mode.pending": ["Enabled" if card.split else "Disabled", ""],
        "fabric.state": ["Completed", ""],
        "fabric.status": ["Success", ""],
    }
    for reason in (
        "applications_clocks_setting", "sw_power_cap", "hw_slowdown", "hw_thermal_slowdown",
        "hw_power_brake_slowdown", "sw_thermal_slowdown", "sync_boost",
    ):  # fmt: skip
        braked = card.throttled and reason in ("hw_slowdown", "hw_power_brake_slowdown")
        fields[f"clocks_event_reasons.{reason}"] = ["Active" if braked else "Not Active", ""]
    for span in ("volatile", "aggregate"):
        fields[f"ecc.errors.corrected.{span}.dram"] = ["0", ""]
        fields[f"ecc.errors.corrected.{span}.sram"] = ["0", ""]
        fields[f"ecc.errors.corrected.{span}.total"] = ["0", ""]
        fields[f"ecc.errors.uncorrected.{span}.dram"] = [str(sick["uncorrectable"]), ""]
        fields[f"ecc.errors.uncorrected.{span}.sram"] = [str(sick["sram"]), ""]
        fields[f"ecc.errors.uncorrected.{span}.total"] = [str(sick["uncorrectable"] + sick["sram"]), ""]
    if branch >= 570:
        fields["gpu_recovery_action"] = [sick["recovery"], ""]
    if branch >= 580:
        fields["platform.module_id"] = [str(card.slot_number), ""]
    return fields


def topology(host: Host) -> str:
    """Return the matrix of ``topo -m``: NVLink between all cards, one NIC beside each."""
    cards = host.cards
    names = [f"GPU{card.index}" for card in cards] + [f"NIC{number}" for number in range(len(cards))]
    nodes = [card.numa_node for card in cards] * 2
    places = [card.address for card in cards] * 2
    cpus = ("0-47,96-143", "48-95,144-191")
    lines = ["\t\x1b[4m" + "\t".join(names) + "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m"]
    for row, name in enumerate(names):
        cells = []
        for column in range(len(names)):
            if row == column:
                cells.append(" X ")
            elif row < len(cards) and column < len(cards):
                cells.append("NV18")
            elif places[row] == places[column]:
                cells.append("PIX")
            else:
                cells.append("NODE" if nodes[row] == nodes[column] else "SYS")
        affinity = f"\t{cpus[nodes[row] % 2]}\t{nodes[row]}\t\tN/A" if row < len(cards) else "\t\t\t"
        lines.append(f"{name}\t" + "\t".join(cells) + affinity)
    # The legend is the tool's own; readers find the matrix by its end.
    legend = (
        ("X", "Self"),
        ("SYS", "Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)"),
        ("NODE", "Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node"),
        ("PHB", "Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)"),
        ("PXB", "Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)"),
        ("PIX", "Connection traversing at most a single PCIe bridge"),
        ("NV#", "Connection traversing a bonded set of # NVLinks"),
    )
    lines += ["", "Legend:", "", *(f"  {mark:<4} = {meaning}" for mark, meaning in legend), "", "NIC Legend:", ""]
    lines += [f"  NIC{number}: mlx5_{number}" for number in range(len(cards))]
    return "\n".join(lines) + "\n\n"
