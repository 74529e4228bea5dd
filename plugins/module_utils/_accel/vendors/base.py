# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""What every vendor file offers to the probe."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..model import Device, Driver, Tool
from ..pci import Function
from ..runner import Runner


class Unreadable(ValueError):
    """The answer of a tool is not what it should be; the message says why. A parser raises nothing else."""


@dataclass
class Answer:
    """What a vendor's tools said about the devices of one host.

    ``count`` is the number of physical devices that answered, None when the tools could not tell.
    ``lost`` holds the canonical PCI addresses that a tool named as lost, ``hung`` those for which the
    tool did not come back; ``last`` is what it still tells of such a card (its serial), by address.
    Devices carry what the tool told, ``link.under_load`` among it (True while working, None when not
    told); the probe adds what sysfs knows (NUMA node, link, slot, device nodes).
    ``slot_labels`` are the vendor's own names of places by canonical PCI address ("SXM3", "OAM 6"): only
    what names one place on this host; an unset number (0, N/A, the same for all) is none.
    ``logical_known`` is False where there are parts of a card that did not answer.
    """

    devices: list[Device] = field(default_factory=list)
    count: int | None = None
    lost: list[str] = field(default_factory=list)
    hung: list[str] = field(default_factory=list)
    last: dict[str, Device] = field(default_factory=dict)
    slot_labels: dict[str, str] = field(default_factory=dict)
    tools: list[Tool] = field(default_factory=list)
    drivers: list[Driver] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    logical_known: bool = True


# How a version is told: in the text of a file, in the name that a link resolves to, by a command, by the package
# databases.
FILE, LINK, COMMAND, PACKAGE = "file", "link", "command", "package"
# The version of a package as it is, without the epoch that only orders packages.
PACKAGE_VERSION = r"^(?:\d+:)?(\d\S*)"


@dataclass(frozen=True)
class VersionSource:
    """One place that tells a version; of several for one component the first that tells it counts.

    ``component`` is a word of ``versions.COMPONENTS``, ``name`` the product. ``where`` is a path (``*`` stands for
    anything), a command line or the name of a package, ``pattern`` finds the version in groups that are joined by dots.
    """

    component: str
    name: str
    how: str
    where: str
    pattern: str

    @property
    def words(self) -> list[str]:
        """Return the command as it is run."""
        return self.where.split()


@dataclass(frozen=True)
class FabricManager:
    """The service without which cards behind switches are seen and can't be used.

    ``package`` finds the names of its packages. ``switches`` are PCI device ids. ``log`` is where it writes beside the
    journal. ``mismatch`` finds in its log the version that it has where it refuses that of the driver.
    """

    service: str
    package: str
    switches: tuple[str, ...]
    log: str
    mismatch: str


@dataclass(frozen=True)
class Stack:
    """What of a vendor's driver must be of one piece on a host.

    ``modules`` are the names of the file of the kernel module, one a way of packaging; the loaded one bears the first.
    ``wrong_modules`` are drivers that take the same cards and serve no computation.
    """

    modules: tuple[str, ...] = ()
    wrong_modules: tuple[str, ...] = ()
    fabric_manager: FabricManager | None = None


@dataclass(frozen=True)
class ContainerAccess:
    """What a container needs beside the nodes of a card, and what the vendor calls its cards in CDI.

    ``kind`` is "" where it is not known how containers reach the cards. ``control_nodes`` are common to all cards.
    ``libraries`` are names in the directories of the linker, ``paths`` files or directories that appear in the
    container where they are on the host; ``*`` stands for anything in all of them, and what is not there is left
    out. ``library_version`` finds the driver's version in the name of a library, None where names do not tell it.
    """

    kind: str = ""
    control_nodes: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    library_version: str | None = None


class Vendor:
    """One vendor: what its devices look like on the bus and how to ask its tools.

    Subclasses set the attributes and implement ``query``. ``query`` never raises for what a tool
    answers: an unreadable answer, a hang or a missing tool is a ``Tool`` with that state.
    """

    name = ""
    pci_vendors: tuple[str, ...] = ()  # four lower-case hex digits each
    pci_classes: tuple[str, ...] = ("0300", "0302", "0380", "0b40", "1200")
    # Device ids of these vendors that are no accelerator although the class says so.
    pci_excluded: tuple[str, ...] = ()
    kernel_modules: tuple[str, ...] = ()
    # There are cards of this vendor that can be split: one that tells nothing of it is not taken for whole.
    splits = False
    versions: tuple[VersionSource, ...] = ()
    stack = Stack()
    container = ContainerAccess()

    def owns(self, function: Function) -> bool:
        """Tell whether a ``pci.Function`` is an accelerator of this vendor."""
        return (
            function.vendor in self.pci_vendors
            and function.device not in self.pci_excluded
            and function.pci_class[:4] in self.pci_classes
        )

    def query(self, runner: Runner, functions: list[Function], timeout_seconds: float) -> Answer:
        """Ask the vendor's tools about ``functions`` (this vendor's ``pci.Function`` list)."""
        raise NotImplementedError

    def device_nodes(self, runner: Runner, device: Device) -> list[str]:
        """Return the device nodes of ``device`` that exist on this host."""
        raise NotImplementedError

    def ask_ports(self, runner: Runner, devices: list[Device], timeout_seconds: float, well: bool) -> list[str]:
        """Fill in ``ports`` of devices that answered; return what went wrong, in words. Costs nothing by default.

        ``well`` is False where the tool failed or hung for other devices: each device is then asked alone.
        """
        return []
