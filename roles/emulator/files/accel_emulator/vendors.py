# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The vendors of the catalogue on a host: answers of their tools, device nodes, kernel modules, files of the driver.

A vendor's module renders ``{tool: data}`` and answers a command line from that data; ``trees`` it has only where its
driver shows files of its own.
"""

from __future__ import annotations

from . import (
    cambricon,
    denglin,
    enflame,
    gaudi,
    hygon,
    iluvatar,
    intel,
    kunlunxin,
    metax,
    mthreads,
    neuron,
    tenstorrent,
    tpu,
)
from .catalogue import MAKERS
from .state import Card, Host

_MODULES = {
    "gaudi": gaudi, "intel": intel, "hygon": hygon, "iluvatar": iluvatar, "mthreads": mthreads, "metax": metax,
    "cambricon": cambricon, "enflame": enflame, "kunlunxin": kunlunxin, "neuron": neuron, "tpu": tpu,
    "denglin": denglin, "tenstorrent": tenstorrent,
}  # fmt: skip
RENDER = 128  # the first render node of the kernel's graphics devices


def answers(host: Host) -> dict[str, dict]:
    """Return what each tool of the host needs to answer; ``by`` names the module that does."""
    rendered = _MODULES[host.vendor].render(host)
    return {tool: {**data, "by": host.vendor, "garbage": host.garbage} for tool, data in rendered.items()}


def answer(data: dict, argv: list[str], moment: float | None = None) -> tuple:
    """Return rc, stdout, stderr of the tool that the data was rendered for."""
    return _MODULES[data["by"]].answer(data, argv, moment)


def trees(host: Host) -> list[tuple[str, str, str, dict]]:
    """Return the driver's own files: name, place and kind of a mount, and its tree."""
    of_vendor = getattr(_MODULES[host.vendor], "trees", None)
    return of_vendor(host) if of_vendor else []


def numbered(card: Card, word: str) -> str:
    """Return a name or content with the numbers of a card filled in; card0 is the management controller's display."""
    return word.format(index=card.index, drm=card.index + 1, render=RENDER + card.index)


def nodes(host: Host) -> list[str]:
    """Return the device nodes below ``/dev``."""
    maker = MAKERS[host.vendor]
    if not host.driver_ready:
        return []
    of_cards = [numbered(card, node) for card in host.cards if not card.lost for node in maker.nodes]
    return [*of_cards, *maker.common]


def held(host: Host) -> list[str]:
    """Return the nodes that a process is to have open: the first of each held card."""
    return [numbered(card, MAKERS[host.vendor].nodes[-1]) for card in host.cards if card.held]


def modules(host: Host) -> tuple[tuple[str, ...], str]:
    """Return the kernel modules that are loaded, and the version that they tell."""
    maker = MAKERS[host.vendor]
    return (maker.modules, host.driver_version if maker.versioned else "") if host.driver_ready else ((), "")


def files(host: Host, card: Card) -> dict[str, bytes | str | None]:
    """Return what the driver adds to the directory of a card in sysfs."""
    if card.lost or not host.driver_ready:
        return {}
    found: dict[str, bytes | str | None] = {
        numbered(card, path): numbered(card, content).encode() for path, content in MAKERS[host.vendor].files
    }
    if host.vendor == "tpu":
        # Driven from user space: the number of the node is that of the group.
        found["iommu_group"] = f"/sys/kernel/iommu_groups/{card.index}"
    return found


def log_lines(host: Host) -> list[str]:
    """Return what the kernel says when the modules are loaded that are none of its own."""
    names, version = modules(host)
    return [f"{name}: loading out-of-tree module taints kernel." for name in names[:1] if version]
