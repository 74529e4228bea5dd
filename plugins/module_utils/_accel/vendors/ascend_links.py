# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""What Ascend tells of links between cards (HCCS) and of virtual NPUs.

``npu-smi info -t hccs -i N -c C`` has one list a line, an entry for each port: lanes in use, the mode (lanes that the
link has), the speed in Gb/s (56 a lane). A port without lanes is down or leads nowhere, which the other cards of the
host tell. vNPUs have device nodes of their own, ``/dev/vdavinciN``: N is 100, and 16 for each chip before, and more.

Sources: the source of npu-smi (npu_smi_info_hccs), the vNPU section of the npu-smi reference.
"""

from __future__ import annotations

import re

from .. import pci, text
from ..model import WHOLE, Device
from ..parallel import command_of, run_all

_NODE = re.compile(r"/vdavinci(\d{3,5})$")
_FIRST_VNPU, _VNPUS_OF_A_CHIP = 100, 16


def parse_hccs(output: str) -> list[dict]:
    """Return the HCCS ports of a chip, as ``Device.ports``; none where the answer tells of none (310P, no HCCS)."""
    told: dict[str, str] = {}
    for line in text.plain(output).splitlines():
        name, value = text.name_and_value(line)
        if value and name.lower().startswith("hccs "):
            told.setdefault(name[5:].strip().lower(), value)
    modes, lanes, speeds = (_items(told.get(name)) for name in ("lane mode", "link lane list", "link speed"))
    if not modes or len(modes) != len(lanes) or len(modes) != len(speeds):
        return []
    ports = [_port(number, *values) for number, values in enumerate(zip(modes, lanes, speeds))]
    if told.get("health status", "").upper() != "OK" and not any(port["state"] == "down" for port in ports):
        # It says that something is wrong with them, and every one of them says that it is well.
        first = text.whole_number(told.get("first error lane"))
        # Ports are counted to 7, and boards with fewer show the last ones.
        place = first - (8 - len(ports)) if first is not None else -1
        for port in ports[place : place + 1] if 0 <= place < len(ports) else ports:
            port["state"] = "down" if 0 <= place < len(ports) else "unknown"
    return ports


def _items(value: str | None) -> list[str]:
    found = re.fullmatch(r"\[([^\[\]]*)\]", value or "")
    return found[1].split() if found else []


def _port(number: int, mode: str, lanes: str, speed: str) -> dict:
    if not (text.whole_number(mode) is not None and re.fullmatch("[01]{1,8}", lanes)):
        state = "unknown"
    else:
        state = "up" if int(mode) and "1" in lanes else "down"
    gbps = text.number(speed) if state == "up" else None
    return {"kind": "hccs", "index": number, "state": state, "speed_gbps": gbps, "peer": None}


def parse_vnpus(output: str) -> dict[int, str]:
    """Return the templates of the vNPUs of a chip by their numbers, from ``npu-smi info -t info-vnpu``."""
    templates = {}
    for line in text.plain(output).splitlines():
        # Number, group, container, status, template: split, for an expression with that many blanks takes minutes.
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        number = text.whole_number(cells[0])
        if len(cells) == 5 and number is not None and re.fullmatch(r"vir\w{1,30}", cells[4]):
            templates[number] = cells[4]
    return templates


def ask_hccs(runner, devices: list[Device], timeout_seconds: float) -> list[str]:
    """Fill in ``ports`` of the training chips; return what went wrong, in words."""
    path = runner.which("npu-smi")
    wanted = [device for device in devices if "910" in (device.model or "") and device.module_id is not None]
    if path is None or len(wanted) < 2:
        return []
    commands = [
        [path, "info", "-t", "hccs", "-i", str(device.module_id), "-c", str(_chip(device, wanted))] for device in wanted
    ]
    problems = []
    for device, result in zip(wanted, run_all(runner, commands, timeout_seconds)):
        device.ports = [] if result.hung else parse_hccs(result.stdout)
        if not device.ports:
            said = "no answer in time" if result.hung else text.excerpt(result.stdout, result.stderr, limit=200)
            problems.append(f"{command_of(result)}: {said or 'no link'}")
    return problems


def _chip(device: Device, devices: list[Device]) -> int:
    """Return the number of a chip on its board: their device numbers stand in the same order."""
    own = [other for other in devices if other.module_id == device.module_id]
    return sorted(own, key=lambda one: (one.index or 0, pci.sort_key(one.pci_address or "0000:00:00.0"))).index(device)


def add_vnpus(runner, devices: list[Device], timeout_seconds: float) -> list[str]:
    """Fill in ``logical`` and ``partition_mode`` by the device nodes; return what went wrong, in words.

    Only chips with vNPUs are asked for their templates. A container that was given no node of a chip knows nothing.
    """
    by_chip = _vnpus_by_chip(runner)
    problems: list[str] = []
    for device in devices:
        # Two chips may share one function; each has a node, and vNPUs, of its own.
        chips = {part["index"]: part["id"] for part in device.logical if part["kind"] == "chip"}
        if all(runner.glob(f"/dev/davinci{index}") for index in chips or [device.index]):
            device.partition_mode = WHOLE
        for index, chip in (chips or {device.index: _chip(device, devices)}).items():
            own = by_chip.get(index if index is not None else -1, [])
            if not own:
                continue
            templates = _templates(runner, device, chip, timeout_seconds, problems)
            device.partition_mode = "vNPU"
            device.logical += [
                {"kind": "vnpu", "index": number, "chip": index, "uuid": None, "profile": templates.get(number)}
                for number in own
            ]
    return problems


def ownerless_vnpus(runner, devices: list[Device]) -> list[int]:
    """Return the numbers of vNPUs that are of none of these devices' chips."""
    chips = {part["index"] for device in devices for part in device.logical if part["kind"] == "chip"}
    chips |= {device.index for device in devices}
    return [number for chip, own in _vnpus_by_chip(runner).items() if chip not in chips for number in own]


def _vnpus_by_chip(runner) -> dict[int, list[int]]:
    """Return the numbers of the vNPUs that have a device node, by the number of their chip."""
    numbers = [int(found[1]) for found in map(_NODE.search, runner.glob("/dev/vdavinci[0-9]*")) if found]
    by_chip: dict[int, list[int]] = {}
    for number in sorted(numbers):
        by_chip.setdefault((number - _FIRST_VNPU) // _VNPUS_OF_A_CHIP, []).append(number)
    return by_chip


def _templates(runner, device: Device, chip: int, timeout_seconds: float, problems: list) -> dict:
    command = [runner.which("npu-smi") or "npu-smi", "info", "-t", "info-vnpu"]
    command += ["-i", str(device.module_id), "-c", str(chip)]
    result = runner.run(command, timeout_seconds)
    templates = {} if result.hung else parse_vnpus(result.stdout)
    if not templates:
        said = "no answer in time" if result.hung else text.excerpt(result.stdout, result.stderr, limit=200)
        problems.append(f"{command_of(result)}: {said}")
    return templates
