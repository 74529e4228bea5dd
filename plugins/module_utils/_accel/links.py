# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Readings of links under load, kept on the node.

An idle card lowers its link speed to save power, so only a reading of a working card can judge it.
``accelctl check --keep`` keeps the last one of each card in ``links.json``:

    {"schema": 1, "links": {"0000:18:00.0": {"identity": "GPU-...", "speed_gts": 32.0, "width": 16,
                                             "at": "2026-11-30T01:02:03Z"}}}
"""

from __future__ import annotations

from . import record

SCHEMA = 1


def load(path: str) -> dict:
    """Return ``{address: reading}``; empty when there is no file yet. Raises RecordError for a bad one."""
    body = record.load(path, problems) if path else None
    return body["links"] if body else {}


def problems(body: dict) -> list[tuple[tuple, str]]:
    """Return what makes a body no readings: (place inside it, sentence)."""
    links = body.get("links")
    if not isinstance(links, dict):
        return [(("links",), f"'links' must be an object, this is {record.kind_of(links)}")]
    return [
        (("links", address), f"the reading of {address} must be an object, this is {record.kind_of(reading)}")
        for address, reading in links.items()
        if not isinstance(reading, dict)
    ]


def merge(readings: dict, observation: dict, now: str) -> dict:
    """Return ``readings`` with a new one for each device that is working now.

    A reading belongs to a card, not to its address: after a replacement the old one is dropped.
    """
    merged = dict(readings)
    for device in observation.get("devices") or []:
        address, link = device.get("pci_address"), device.get("link") or {}
        identity = device.get("uuid") or device.get("serial")
        if address in merged and merged[address].get("identity") != identity:
            del merged[address]
        if address and link.get("under_load") and link.get("speed_gts") is not None:
            merged[address] = {
                "identity": identity,
                "speed_gts": link["speed_gts"],
                "width": link.get("width"),
                "at": now,
            }
    return merged


def save(path: str, readings: dict) -> None:
    """Write the readings. Raises RecordError when that can't be done; an old file stays whole."""
    record.write(path, {"schema": SCHEMA, "links": readings})
