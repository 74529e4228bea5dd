# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel of the host would have logged: a few lines of its start, then what its faults make drivers say.

Test hosts share the kernel of their machine, so these lines go into a journal file of the host alone, in the export
format of the journal (systemd.io/JOURNAL_EXPORT_FORMATS), as entries of the kernel in the present boot.
"""

from __future__ import annotations

from . import vendors
from .catalogue import MAKERS
from .state import Card, Host


def messages(host: Host) -> list[str]:
    """Return the lines in their order."""
    found = ["Linux version 6.1.0-28-amd64 (debian-kernel@lists.debian.org) (gcc-12 (Debian 12.2.0-14) 12.2.0)"]
    if host.vendor == "nvidia":
        found.append(
            f"NVRM: loading NVIDIA UNIX x86_64 Kernel Module  {host.driver_version}  Mon Mar  3 02:11:44 UTC 2025"
        )
    elif host.vendor in MAKERS:
        found += vendors.log_lines(host)
    elif host.vendor == "amd":
        found.append("[drm] amdgpu kernel modesetting enabled.")
    else:
        found.append("drv_pcie_host: loading out-of-tree module taints kernel.")
    for card in host.cards:
        found += _of_card(host, card)
    return found


def _of_card(host: Host, card: Card) -> list[str]:
    if host.vendor == "amd":
        return _of_amd(card)
    if host.vendor != "nvidia":
        return []
    head = f"NVRM: Xid (PCI:{card.address.rpartition('.')[0]}):"
    unnamed = "pid='<unknown>', name=<unknown>"
    found = []
    if card.remap_pending:
        found += [
            f"{head} 63, {unnamed}, Row Remapper: New row marked for remapping, reset gpu to activate.",
            f"{head} 94, pid=4711, name=python3, Contained: SM (0x1). RST: No, D-RST: No",
        ]
    if card.lost or card.fallen:
        found += [
            f"{head} 79, {unnamed}, GPU has fallen off the bus.",
            f"{head} 154, {unnamed}, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
        ]
    return found


def _of_amd(card: Card) -> list[str]:
    found = []
    if card.ecc:
        found.append(f"amdgpu {card.address}: amdgpu: 1 new uncorrectable hardware errors detected in umc block")
    if card.lost or card.fallen:
        found.append(f"amdgpu {card.address}: amdgpu: device lost from bus!")
    return found


def export(lines: list[str], machine_id: str, boot_id: str, hostname: str, now: float, uptime: float) -> bytes:
    """Return the lines as entries of the journal's export format, a microsecond apart, the last one now.

    ``now`` is in seconds since 1970, ``uptime`` in seconds since the start; both are written in microseconds.
    """
    entries = []
    for number, line in enumerate(lines):
        before = len(lines) - 1 - number
        fields = (
            ("__REALTIME_TIMESTAMP", int(now * 1e6) - before),
            ("__MONOTONIC_TIMESTAMP", max(0, int(uptime * 1e6) - before)),
            ("_BOOT_ID", boot_id),
            ("_MACHINE_ID", machine_id),
            ("_HOSTNAME", hostname),
            ("_TRANSPORT", "kernel"),
            ("SYSLOG_FACILITY", 0),
            ("SYSLOG_IDENTIFIER", "kernel"),
            ("PRIORITY", 4),
            ("MESSAGE", line),
        )
        entries.append("".join(f"{name}={value}\n" for name, value in fields) + "\n")
    return "".join(entries).encode()
