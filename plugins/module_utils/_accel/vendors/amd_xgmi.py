# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""AMD's links between cards (xGMI), from ``amd-smi xgmi``.

What it tells grew: the links, their speed and the bytes they carried (ROCm 6.1), the state of each of the card's
ports (6.4), and the state by the card at the other end (7.0). The state is ``U``, ``D`` or ``X`` (up, down, disabled),
several of them with a slash between where two cards have several links. Releases without a state list links of which
nothing proves that they work: ``unknown``. Only the first partition of a card is asked for its links.

Sources: the change log and the command line of ROCm/amdsmi, recorded output of ROCm 6.2.
"""

from __future__ import annotations

import re

from .. import pci, text
from ..model import Device
from ..parallel import command_of, run_all
from ..tools import address_of, split_json
from .base import Unreadable

_STATES = {"U": "up", "D": "down", "X": "disabled"}
_SELF = "SELF"
# "GPU0   0000:05:00.0  32 Gb/s  512 Gb/s  XGMI" and "GPU0   0000:05:00.0  U  U  D  X"
_ROW = re.compile(
    r"^GPU\d{1,4}\s+(?P<address>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\s+(?P<rest>\S.*)$", re.I
)
_METRIC = re.compile(r"^(?P<rate>\d{1,10}) Gb/s\s*(?P<most>\d{1,10}) Gb/s\s*(?P<kind>[A-Z/]+)\s*$", re.IGNORECASE)
_STATUS = re.compile(r"^(?:(?:SELF|N/A|[UDX](?:/[UDX]){0,15})\s*){1,256}$")


def parse_xgmi(output: str) -> dict[str, list[dict]]:
    """Return the links of each card by its address, as ``Device.ports``, from ``amd-smi xgmi``, JSON or text."""
    told: dict[str, dict] = {}
    order: list[str] = []
    for address, what, value in _facts(output):
        if address not in told:
            told[address] = {}
            order.append(address)
        told[address].setdefault(what, value)
    return {address: _ports(told[address], address, order) for address in order}


def _facts(output: str):
    """Yield (address, "speed" | "peers" | "states" | "matrix", value) in the order of the answer."""
    try:
        documents, _around = split_json(output)
    except Unreadable:
        return
    for document in documents:
        yield from _of_json(document)
    if not documents:
        for line in output.splitlines():
            row = _ROW.match(line.strip())
            address = address_of(row["address"]) if row else None
            if row and address:
                yield from _of_row(address, row["rest"].strip())


def _of_row(address: str, rest: str):
    metric = _METRIC.match(rest)
    if metric and metric["kind"].upper() == "XGMI":
        yield address, "speed", text.number(metric["most"])
    elif _STATUS.match(rest):
        words = rest.split()
        yield address, "matrix" if _SELF in words else "states", words


def _of_json(part: object):
    """Yield the facts of a document's entries that name a card; what stands around them differs by release."""
    if isinstance(part, list):
        for one in part:
            yield from _of_json(one)
        return
    if not isinstance(part, dict):
        return
    address = address_of(part.get("bdf"))
    status, metrics = part.get("link_status"), part.get("link_metrics")
    if address and isinstance(status, list):
        words = [str(word) for word in status]
        yield address, "matrix" if _SELF in words else "states", words
    if address and isinstance(metrics, dict) and str(metrics.get("link_type")).upper() == "XGMI":
        most = metrics.get("max_bandwidth")
        yield address, "speed", text.number(most.get("value") if isinstance(most, dict) else most)
        links = metrics.get("links")
        yield address, "peers", [_peer(one) for one in links] if isinstance(links, list) else []
    if not address:
        for one in part.values():
            yield from _of_json(one)


def _peer(link: object) -> str | None:
    """Return the card at the other end of a link; None for the card itself and for one without a link to it."""
    if not isinstance(link, dict):
        return None
    read = link.get("read")
    carried = read.get("value") if isinstance(read, dict) else read
    return None if text.number(carried) is None else address_of(link.get("bdf"))


def _ports(told: dict, address: str, order: list[str]) -> list[dict]:
    def port(index: int, state: str, peer: str | None) -> dict:
        speed = told.get("speed") if state in ("up", "unknown") else None
        return {"kind": "xgmi", "index": index, "state": state, "speed_gbps": speed, "peer": peer}

    matrix = told.get("matrix", [])
    if any(word[:1] in _STATES for word in matrix):
        # Several links to one card are told apart by their place: sixteen to a card are more than there are.
        return [
            port(column * 16 + number, _STATES.get(letter, "unknown"), order[column] if column < len(order) else None)
            for column, word in enumerate(matrix)
            if word not in (_SELF, "N/A")
            for number, letter in enumerate(word.split("/"))
        ]
    states = told.get("states", [])
    if any(word in _STATES for word in states):
        return [port(number, _STATES.get(word, "unknown"), None) for number, word in enumerate(states)]
    peers = told.get("peers", [])
    return [port(number, "unknown", peer) for number, peer in enumerate(peers) if peer and peer != address]


def ask(runner, devices: list[Device], timeout_seconds: float, well: bool) -> list[str]:
    """Fill in ``ports`` of the devices on a base board, which always have links; return what went wrong, in words."""
    path = runner.which("amd-smi")
    wanted = [device for device in devices if device.pci_address and device.module_id is not None]
    if path is None or len(wanted) < 2:
        return []
    commands = [[path, "xgmi", "--json"]]
    if not well:
        # A card that hangs must not take the links of the others with it. Alone, each tells of its ports, of no peer.
        commands = [[path, "xgmi", "-g", str(device.pci_address), "--json"] for device in wanted]
    found: dict[str | None, list[dict]] = {}
    said = []
    for result in run_all(runner, commands, timeout_seconds):
        told = {} if result.hung else parse_xgmi(result.stdout)
        for address, ports in told.items():
            # Partitions of a card differ in the function; the first one is the card, and links are its own.
            found.setdefault(pci.normalise_device(address), ports)
        if not told:
            words = "no answer in time" if result.hung else text.excerpt(result.stderr, result.stdout, limit=200)
            said.append(f"{command_of(result)}: {words or 'no link'}")
    for device in wanted:
        device.ports = found.get(pci.normalise_device(device.pci_address or ""), [])
    return said
