# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Tenstorrent: tt-smi -s, a snapshot as JSON.

A healthy host costs one command, and one that asks nothing of the network. Keys come and go between generations: a
snapshot without telemetry is as whole as one with it. ``board_id`` is the serial number of the board, which the chips
of a board (n300) or of a whole machine (Galaxy) share; newer chips tell a number of their own (ASIC_ID).

The second chip of an n300 has no PCI function (bus_id N/A): it is reached through the first, so both are one device
with two entries in ``logical``.

Not taken: the link, since tt-smi has been seen to say 16 lanes where the bus says 8 (tt-smi issue 67), and, but for the
number of the chip, the raw words of the firmware below smbus_telem, whose bits differ by generation.

Sources: recorded snapshots of tt-smi 3.0 to 5.2 (Wormhole, Blackhole, Galaxy).
"""

from __future__ import annotations

import re

from .. import pci, text
from ..model import Device, Health, Readings
from ..tools import Reply, add_driver, address_of, ask_once, json_documents, nodes_below, sick_words, take_all
from .base import FILE, Answer, Unreadable, Vendor, VersionSource

_REASONS = (
    (r"no tenstorrent driver detected|/dev/tenstorrent.*no such file", "driver_not_loaded"),
    (r"no (?:tenstorrent )?devices? (?:were )?detected", "no_devices"),
)


def read_snapshot(output: str) -> Reply:
    """Return the devices of the snapshot; Unreadable when it is cut off or has no list ``device_info``.

    An entry that is none is named in the notes; the others count.
    """
    documents, around = json_documents(output)
    whole = [one for one in documents if isinstance(one, dict) and isinstance(one.get("device_info"), list)]
    if len(whole) != 1:
        raise Unreadable(f"{len(whole)} documents with device_info in the answer")
    snapshot = whole[0]
    kernel = re.search(r"TT-KMD\s+(\S+)", told(snapshot, "host_info", "Driver") or "")
    reading = Reply(
        around=around,
        tool_version=told(snapshot, "host_sw_vers", "tt_smi"),
        driver_version=text.clean(kernel[1]) if kernel else None,
    )
    guests: list[tuple[int, dict]] = []
    for index, entry in enumerate(snapshot["device_info"]):
        if not told(entry, "board_info", "board_type"):
            reading.notes.append(f"no device: {text.excerpt(str(entry), limit=200)}")
            continue
        address = address_of(told(entry, "board_info", "bus_id"))
        if address:
            reading.devices.append(_device(entry, index, address))
        elif text.state_of(entry["board_info"].get("bus_id")) == text.UNSUPPORTED:
            guests.append((index, entry))
        else:
            reading.notes.append(f"no address: {text.excerpt(str(entry['board_info']), limit=200)}")
    for index, entry in guests:
        _add_guest(reading, index, entry)
    return reading


def told(entry: object, *path: str) -> str | None:
    """Return one value of an entry as text; None for what is not there, null, or no value."""
    for key in path:
        entry = entry.get(key) if isinstance(entry, dict) else None
    return None if isinstance(entry, (dict, list)) else text.clean(entry)


def _device(entry: dict, index: int, address: str) -> Device:
    # One generation names the temperature of slowing down thm_limit and that of switching off therm_trip_l1_limit, the
    # other the reverse; it slows down at the lower one.
    limits = [text.celsius(told(entry, "limits", name)) for name in ("thm_limit", "therm_trip_l1_limit")]
    known = [limit for limit in limits if limit]
    readings = Readings(
        temperature_c=text.celsius(told(entry, "telemetry", "asic_temperature")),
        temperature_limit_c=min(known) if len(known) == len(limits) else None,
        power_watts=text.watts(told(entry, "telemetry", "power")),
        power_limit_watts=text.watts(told(entry, "limits", "tdp_limit")),
    )
    return Device(
        index=index,
        vendor="tenstorrent",
        model=told(entry, "board_info", "board_type"),
        serial=text.identifier(told(entry, "board_info", "board_id")),
        uuid=_chip_number(entry),
        pci_address=address,
        firmware_version=told(entry, "firmwares", "fw_bundle_version"),
        health=_health(entry, readings),
        readings=readings,
    )


def _chip_number(entry: dict) -> str | None:
    """Return the number of the chip, 16 digits as its two halves make it."""
    halves = [told(entry, "smbus_telem", f"ASIC_ID_{half}") or "" for half in ("HIGH", "LOW")]
    if not all(re.fullmatch("0x[0-9a-fA-F]{1,8}", half) for half in halves):
        return None
    return text.identifier("".join(half[2:].lower().zfill(8) for half in halves))


def _health(entry: dict, readings: Readings) -> Health:
    """Return what the memory says of itself (``dram_status``), else what live values prove."""
    status = entry["board_info"].get("dram_status")
    if status is False or str(status).lower() == "false":
        return Health("critical", ["dram_status is false: the memory did not train"])
    parts = [entry.get(part) for part in ("board_info", "telemetry", "limits", "firmwares")]
    sick = sick_words([one for part in parts if isinstance(part, dict) for one in part.values()])
    if sick:
        return Health("warning", [f"can't be read: {', '.join(sick)}"])
    if status not in (None, True):
        return Health("unknown", [f"dram_status is {text.excerpt(str(status), limit=60)}"])
    if status is True or readings.temperature_c is not None or readings.power_watts is not None:
        return Health("ok")
    return Health("unknown", ["no live values in the snapshot"])


def _add_guest(reading: Reply, index: int, entry: dict) -> None:
    """Add a chip without a PCI function to the device of its board."""
    board = text.identifier(told(entry, "board_info", "board_id"))
    hosts = [device for device in reading.devices if board and device.serial == board]
    if len(hosts) != 1:
        reading.notes.append(f"chip {index} of board {board}: {len(hosts)} chips with an address are on that board")
        return
    (host,) = hosts
    if not host.logical:
        host.logical.append({"kind": "chip", "index": host.index, "uuid": host.uuid, "profile": host.model})
    profile = told(entry, "board_info", "board_type")
    host.logical.append({"kind": "chip", "index": index, "uuid": _chip_number(entry), "profile": profile})
    health = _health(entry, Readings(temperature_c=text.celsius(told(entry, "telemetry", "asic_temperature"))))
    if health.state == "critical" or (health.state == "unknown" and host.health.state == "ok"):
        host.health = Health(health.state, [f"chip {index}: {reason}" for reason in health.reasons])


_VERSIONS = (VersionSource("driver_kernel", "tenstorrent", FILE, "/sys/module/tenstorrent/version", r"^(\d\S*)"),)


class Tenstorrent(Vendor):
    """Tenstorrent Wormhole and Blackhole."""

    name = "tenstorrent"
    pci_vendors = ("1e52",)
    pci_classes = ("1200",)
    kernel_modules = ("tenstorrent",)
    versions = _VERSIONS

    def query(self, runner, functions: list[pci.Function], timeout_seconds: float) -> Answer:
        """Ask tt-smi for a snapshot."""
        answer = Answer()
        reading = ask_once(answer, runner, self.name, ["tt-smi", "-s"], read_snapshot, timeout_seconds, _REASONS)
        take_all(answer, reading, functions)
        add_driver(runner, self.name, self.kernel_modules, answer, functions)
        return answer

    def device_nodes(self, runner, device: Device) -> list[str]:
        """Return /dev/tenstorrent/N as the kernel ties it to the card."""
        return nodes_below(runner, device.pci_address, r"tenstorrent/\d+")
