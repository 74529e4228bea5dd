# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""The vendors that the collection knows.

The import statements are literal: what is loaded by a computed name is not shipped to the hosts. They stand in
functions, because every file costs each host its compilation (a module arrives as source), and a host needs
the one or two vendors whose cards it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from .vendors.base import Vendor


def _nvidia() -> Vendor:
    from .vendors.nvidia import Nvidia

    return Nvidia()


def _amd() -> Vendor:
    from .vendors.amd import Amd

    return Amd()


def _ascend() -> Vendor:
    from .vendors.ascend import Ascend

    return Ascend()


def _gaudi() -> Vendor:
    from .vendors.gaudi import Gaudi

    return Gaudi()


def _intel() -> Vendor:
    from .vendors.intel import Intel

    return Intel()


def _hygon() -> Vendor:
    from .vendors.hygon import Hygon

    return Hygon()


def _iluvatar() -> Vendor:
    from .vendors.iluvatar import Iluvatar

    return Iluvatar()


def _mthreads() -> Vendor:
    from .vendors.mthreads import Mthreads

    return Mthreads()


def _metax() -> Vendor:
    from .vendors.metax import Metax

    return Metax()


def _cambricon() -> Vendor:
    from .vendors.cambricon import Cambricon

    return Cambricon()


def _enflame() -> Vendor:
    from .vendors.enflame import Enflame

    return Enflame()


def _kunlunxin() -> Vendor:
    from .vendors.kunlunxin import Kunlunxin

    return Kunlunxin()


def _neuron() -> Vendor:
    from .vendors.neuron import Neuron

    return Neuron()


def _tpu() -> Vendor:
    from .vendors.tpu import Tpu

    return Tpu()


def _denglin() -> Vendor:
    from .vendors.denglin import Denglin

    return Denglin()


def _tenstorrent() -> Vendor:
    from .vendors.tenstorrent import Tenstorrent

    return Tenstorrent()


class _Vendors(Mapping[str, Vendor]):
    """Vendors by name, each made when it is first asked for."""

    def __init__(self, makers: dict[str, Callable[[], Vendor]]) -> None:
        self._makers = makers
        self._made: dict[str, Vendor] = {}

    def __getitem__(self, name: str) -> Vendor:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


VENDORS: Mapping[str, Vendor] = _Vendors(
    {
        "nvidia": _nvidia,
        "amd": _amd,
        "ascend": _ascend,
        "gaudi": _gaudi,
        "intel": _intel,
        "hygon": _hygon,
        "iluvatar": _iluvatar,
        "mthreads": _mthreads,
        "metax": _metax,
        "cambricon": _cambricon,
        "enflame": _enflame,
        "kunlunxin": _kunlunxin,
        "neuron": _neuron,
        "tpu": _tpu,
        "denglin": _denglin,
        "tenstorrent": _tenstorrent,
    }
)

# Ids that processors and chipsets carry too, in every server: only functions of an accelerator's class are a reason to
# load these vendors.
CHIPSET_IDS = ("8086", "1d94")

# PCI vendor id -> name: tells whom to load. A test keeps it equal to what the vendor files say.
PCI_VENDORS = {
    "10de": "nvidia",
    "1002": "amd",
    "19e5": "ascend",
    "1da3": "gaudi",
    "8086": "intel",
    "1d94": "hygon",
    "1e3e": "iluvatar",
    "1ed5": "mthreads",
    "9999": "metax",
    "cabc": "cambricon",
    "1e36": "enflame",
    "1d22": "kunlunxin",
    "1d0f": "neuron",
    "1ae0": "tpu",
    "1e27": "denglin",
    "1e52": "tenstorrent",
}
