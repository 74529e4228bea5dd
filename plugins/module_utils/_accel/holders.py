# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Who holds a card: processes that have its device node open, which vendor tools do not always list.

A tool lists what computes; a process that only keeps the node open (a monitor, a container's shell, the persistence
daemon) is left out, and still keeps the card from being reset.
"""

from __future__ import annotations

from .model import Device


def add(runner, devices: list[Device]) -> str | None:
    """Add holders to ``processes`` of each device; return why that is not all, None when it is.

    Each entry says in ``source`` who named it: ``tool``, or ``open`` for one that only has the node open.
    """
    for device in devices:
        for process in device.processes:
            process["source"] = "tool"
    by_node: dict[str, list[Device]] = {}
    for device in devices:
        for node in device.device_nodes:
            by_node.setdefault(node, []).append(device)
    if not by_node:
        return None
    found, complete = runner.holders(frozenset(by_node))
    names: dict[int, str | None] = {}
    for node in sorted(found):
        for device in by_node[node]:
            known = {process.get("pid") for process in device.processes}
            for pid in sorted(set(found[node]) - known):
                if pid not in names:
                    names[pid] = runner.read(f"/proc/{pid}/comm") or None
                device.processes.append({"pid": pid, "name": names[pid], "memory_bytes": None, "source": "open"})
    return None if complete else "not all processes could be asked for the device nodes that they have open"
