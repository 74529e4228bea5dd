# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``hl-smi`` of Intel Gaudi says: the table, the listing (``-L``) and CSV (``-Q``).

The table is that of recordings of 1.12, 1.20 and 1.21, CSV cells those of 1.22 and of the vendor's guide, the listing
that of a published 1.12. What a sick card looks like was never recorded: the words for it are those of the healthy one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import forms
from .ids import hexes

if TYPE_CHECKING:
    from .state import Card, Host

NO_DRIVER = (1, "", "hl-smi: no AIPs available\n")
_ABSENT = (1, "", "hl-smi: the requested AIP was not found\n")
_RULE = "|-------------------------------+----------------------+----------------------+\n"
_FIRMWARE = {
    "1.12": "hl-1.12.1-fw-46.0.5.0", "1.17": "hl-1.17.0-fw-51.3.0.0", "1.20": "hl-1.20.0-fw-58.1.1.1",
    "1.21": "hl-1.21.1-fw-59.2.3.0", "1.22": "hl-1.22.0-fw-61.0.2.0",
}  # fmt: skip


def render(host: Host) -> dict:
    """Return what each tool needs to answer."""
    release = ".".join(host.driver_version.split(".")[:2])
    newest = tuple(int(part) for part in release.split(".")) >= (1, 21)
    head = {"driver": host.driver_version, "version": host.tool_version or _FIRMWARE[release], "newest": newest}
    if release in ("1.12", "1.17"):
        nic = ""
    else:
        nic = host.driver_version.split("-")[0] + "-" + hexes(7, "nic", host.driver_version)
    data = {
        **head,
        "nic": nic,
        "ready": host.driver_ready,
        "cards": forms.entries(
            host, lambda card: {"row": _row(card, newest), "list": _listing(card), "csv": _csv(host, card)}
        ),
    }
    return {"hl-smi": data}


def answer(data: dict, argv: list[str], moment: float | None = None) -> forms.Reply:
    """Return rc, stdout, stderr of ``hl-smi``."""
    if not data["ready"]:
        return NO_DRIVER
    words = list(argv)
    address = forms.take_option(words, "-i", "--id")
    fields = forms.take_option(words, "-Q", "--query-aip")
    form = forms.take_option(words, "-f", "--format")
    if fields is not None and form is not None and not words:
        return _query(data, address, fields.split(","), form.split(","))
    if words in (["-L"], ["--query"], ["-q"]):
        return forms.asked(data, address, lambda cards: _list_head(data, moment) + forms.join("list", cards), _ABSENT)
    if not words:
        return forms.asked(data, address, lambda cards: _table(data, cards), _ABSENT)
    return 1, "", f"hl-smi: unrecognized option '{words[0]}'\n"


def _query(data: dict, address: str | None, fields: list[str], form: list[str]) -> forms.Reply:
    unknown = [name for name in fields if name not in data["cards"][0]["csv"]]
    if unknown or form[0] != "csv":
        return 1, "", f"hl-smi: field '{(unknown or form)[0]}' is not a valid field to query\n"
    head = "" if "noheader" in form else ", ".join(fields) + "\n"

    def say(cards: list[dict]) -> str:
        return head + "".join(", ".join(card["csv"][name] for name in fields) + "\n" for card in cards)

    return forms.asked(data, address, say, _ABSENT)


def _csv(host: Host, card: Card) -> dict[str, str]:
    now = forms.now(card)
    used = 672 + now.used_mib
    return {
        "index": f"{card.index}",
        "module_id": f"{card.slot_number}",
        "bus_id": card.address,
        "serial": card.serial,
        "uuid": card.uuid,
        "name": card.model,
        "driver_version": host.driver_version,
        "memory.total": f"{card.memory_mib} MiB",
        "memory.used": f"{used} MiB",
        "memory.free": f"{card.memory_mib - used} MiB",
        "temperature.aip": f"{now.celsius} C",
        "utilization.aip": f"{now.load} %",
        "power.draw": f"{round(now.watts)} W",
        "power.max": f"{card.power_watts} W",
        "ecc.errors.corrected.volatile.total": "0",
        "ecc.errors.uncorrected.volatile.total": f"{forms.errors(card)}",
        "ecc.errors.corrected.aggregate.total": "0",
        "ecc.errors.uncorrected.aggregate.total": f"{forms.errors(card)}",
    }


def _row(card: Card, newest: bool) -> str:
    now = forms.now(card)
    used = 672 + now.used_mib
    if newest:
        power, memory = f"{round(now.watts)}W / {card.power_watts:>4}W", f"{used}MiB / {card.memory_mib:>6}MiB"
        perf, mode = "P0 ", f"{used * 100 // card.memory_mib}%"
    else:
        power, memory = f"{round(now.watts)}W / {card.power_watts}W", f"{used}MiB / {card.memory_mib}MiB"
        perf, mode = "N/A", "N/A"
    return (
        f"| {card.index:>3}  {card.model:<19} N/A  | {card.address}     N/A | {forms.errors(card):>19}  |\n"
        f"| N/A {now.celsius:>4}C   {perf} {power:>13} | {memory:>20} | {f'{now.load}%':>6} {mode:>13} |\n" + _RULE
    )


def _table(data: dict, cards: list[dict]) -> str:
    events = "Volatile Uncor-Events|" if data["newest"] else "Volatile Uncorr. ECC |"
    lines = [
        "+" + "-" * 77 + "+\n",
        f"| HL-SMI Version: {data['version']:>50}          |\n",
        f"| Driver Version: {data['driver']:>50}          |\n",
        f"| Nic Driver Version: {data['nic']:>46}          |\n" if data["nic"] else "",
        _RULE,
        f"| AIP  Name        Persistence-M| Bus-Id        Disp.A | {events}\n",
        "| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | AIP-Util  Compute M. |\n",
        _RULE.replace("-", "=").replace("+\n", "|\n"),
        forms.join("row", cards),
        "| Compute Processes:                                               AIP Memory |\n",
        "|  AIP       PID   Type   Process name                             Usage      |\n",
        "|" + "=" * 77 + "|\n",
        *(f"| {card['index']:>3}        N/A   N/A    N/A {'N/A':>40}        |\n" for card in cards),
        "+" + "=" * 77 + "+\n",
    ]
    return "".join(lines)


def _list_head(data: dict, moment: float | None) -> str:
    pairs = (
        ("Timestamp", forms.clock(moment, "%a %b %d %H:%M:%S UTC %Y")),
        ("Driver Version", data["driver"]),
        ("HL-SMI Version", f"{data['version']} (Jul 02 2025 - 09:10:11)"),
    )
    body = "".join(f"{name:<40}: {value}\n" for name, value in pairs)
    attached = len(forms.present(data))
    return f"\n================ HL-SMI LOG ================\n\n{body}\n{'Attached AIPs':<40}: {attached}\n\n"


def _listing(card: Card) -> str:
    """Return the block of one card: names are indented by eight, a name that is too long has its value below."""
    now = forms.now(card)
    used = 672 + now.used_mib
    domain, bus, rest = card.address.split(":")
    first = int(hexes(6, "mac", card.uuid), 16) & 0xFFFF00
    lines: list[tuple[int, str, object]] = [
        (1, "Product Name", card.model),
        (1, "Model Number", card.part_number),
        (1, "Serial Number", card.serial),
        (1, "Module status", "Operational"),
        (1, "Module ID", card.slot_number),
        (1, "PCB Assembly Version", "V2A"),
        (1, "PCB Version", "R0F"),
        (1, "HL Revision", 1),
        (1, "AIP UUID", card.uuid),
        (1, "AIP Status", "Production Level"),
        (1, "Firmware [SPI] Version", f"Preboot version {card.firmware_version} (Jul 02 2025 - 09:01:12)"),
        (1, "CPLD Version", "0x0000000d"),
        (1, "PCI", None),
        (2, "Bus", f"0x{bus}"),
        (2, "Device", f"0x{rest.split('.')[0]}"),
        (2, "Domain", f"0x{domain}"),
        (2, "Rev", f"{card.revision:02x}"),
        (2, "Device Id", "0x" + card.pci_id.replace(":", "")),
        (2, "Bus Id", card.address),
        (2, "Sub System Id", "0x" + card.subsystem.replace(":", "")),
        (2, "AIP Link Info", None),
        (3, "Link Speed", None),
        (4, "Max", f"{card.link_speed_gts:g}GT/s"),
        (4, "Current", f"{card.speed_gts:g}GT/s"),
        (3, "Link Width", None),
        (4, "Max", f"x{card.link_width}"),
        (4, "Current", f"x{card.width}"),
        (1, "Fan Speed", ["N/A"]),
        (1, "Clocks Throttle Reasons", None),
        (2, "HW Slowdown", "Active" if card.throttled else "Not Active"),
        (3, "Thermal Slowdown", ["Not Active"]),
        (3, "Power Slowdown", ["Active" if card.throttled else "Not Active"]),
        (1, "Memory Type", "HBM"),
        (1, "Memory Usage", None),
        (2, "Total", f"{card.memory_mib} MB"),
        (2, "Used", f"{used} MB"),
        (2, "Free", f"{card.memory_mib - used} MB"),
        (1, "Temperature", None),
        *((2, f"[{number + 1:>2}] On Chip {number}", f" {now.celsius - number % 2} C") for number in range(4)),
        *((2, f"[{number + 5:>2}] HBM {number} Temp", f" {now.celsius + 2 - number % 3} C") for number in range(6)),
        (2, "[20] CPLD Temp", f" {now.celsius + 4} C"),
        (1, "Power Readings (54V PSU)", None),
        (2, "Power Management", "auto"),
        (2, "Power Draw", f"{round(now.watts) - 31} W"),
        (2, "Power Max", f"{card.power_watts - 50} W"),
        (2, "Power Limit", f"{card.power_watts - 50} W"),
        (1, "Power Readings (12V PSU)", None),
        (2, "Power Management", "N/A"),
        (2, "Power Draw", "31 W"),
        (2, "Power Max", "50 W"),
        (2, "Power Limit", "50 W"),
        (1, "Clocks", None),
        (2, "[1] soc", f"{card.clocks_mhz[0]} MHz"),
        (1, "Clocks Max", None),
        (2, "[1] soc", f"{card.clocks_mhz[0]} MHz"),
        (1, "Clocks Limit", None),
        (2, "[1] soc", f"{card.clocks_mhz[0]} MHz"),
        (2, "[2] tpc", f"{card.clocks_mhz[1]} MHz"),
        (1, "Network Information", None),
        *((2, f"[{number + 1:>2}] MAC", _mac(first + number)) for number in range(48)),
        (1, "Replaced Rows", None),
        (2, "Single Bit ECC", 1 if card.health == "warning" else 0),
        (2, "Double Bit ECC", 2 if card.health == "critical" else 0),
        (2, "Pending", "Yes" if card.health == "warning" else "No"),
    ]
    block = f"[{card.index}] AIP (accel{card.index}) {card.address}\n"
    for depth, name, value in lines:
        label = " " * 8 * depth + name
        if value is None:
            block += f"{label}\n"
        elif isinstance(value, list):
            block += f"{label}\n{'':<40}: {value[0]}\n"
        else:
            block += f"{label:<40}: {value}\n"
    return block + "\n"


def _mac(number: int) -> str:
    return f"b0:fd:0b:{number >> 16:02x}:{number >> 8 & 0xFF:02x}:{number & 0xFF:02x}"
