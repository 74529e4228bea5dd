# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every vendor file is listed, complete, and owns only what is its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import registry
from ansible_collections.accel.cluster.plugins.module_utils._accel.pci import Function

PACKAGE = "ansible_collections.accel.cluster.plugins.module_utils._accel"
HOME = Path(registry.__file__).parent


def test_every_vendor_file_is_listed():
    files = {path.stem for path in (HOME / "vendors").glob("*.py")} - {"__init__", "base", "declared"}
    # A part of a vendor is called after it, and the vendor imports it.
    parts = {name for name in files if name.partition("_")[0] in files - {name}}
    assert set(registry.VENDORS) == files - parts
    for part in parts:
        assert part in (HOME / "vendors" / f"{part.partition('_')[0]}.py").read_text()


def test_imports_are_static():
    """What is imported by name at run time is not shipped to the hosts."""
    for path in HOME.rglob("*.py"):
        assert not re.search(r"\bimport_module\b|__import__", path.read_text()), path


def test_the_table_of_pci_vendors_is_that_of_the_files():
    told = {pci_vendor: name for name, vendor in registry.VENDORS.items() for pci_vendor in vendor.pci_vendors}
    assert told == registry.PCI_VENDORS


def test_no_vendor_has_cards_of_a_class_that_is_no_reason_to_load_it():
    for vendor in registry.VENDORS.values():
        if set(vendor.pci_vendors) & set(registry.CHIPSET_IDS):
            assert set(vendor.pci_classes) <= set(registry.Vendor.pci_classes)


def test_a_host_loads_only_its_own_vendor():
    code = (
        "import sys\n"
        f"sys.path[:0] = {sys.path!r}\n"
        f"from {PACKAGE} import registry\n"
        "assert registry.VENDORS['nvidia'].name == 'nvidia'\n"
        "loaded = sorted(name.rpartition('.')[2] for name in sys.modules if '._accel.vendors.' in name)\n"
        "print(loaded)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['base', 'nvidia']\n"


@pytest.mark.parametrize("name", list(registry.VENDORS))
def test_a_vendor_is_complete(name):
    vendor = registry.VENDORS[name]
    assert vendor.name == name
    assert vendor.kernel_modules or name == "denglin"  # no source names that one
    assert vendor.pci_vendors
    assert all(re.fullmatch("[0-9a-f]{4}", one) for one in (*vendor.pci_vendors, *vendor.pci_classes))


@pytest.mark.parametrize(
    ("ids", "pci_class", "owner"),
    [
        ("10de:2330", "030200", "nvidia"),
        ("10de:2b85", "030000", "nvidia"),
        ("10de:22a3", "068000", None),  # NVSwitch
        ("10de:228b", "040300", None),  # audio of a graphics card
        ("1002:74a1", "120000", "amd"),
        ("1002:7408", "038000", "amd"),
        ("1002:1637", "040300", None),
        ("19e5:d802", "120000", "ascend"),
        ("19e5:1711", "030000", None),  # display of the management controller
        ("1da3:1060", "120000", "gaudi"),
        ("1da3:1020", "020000", None),
        ("8086:0bd5", "038000", "intel"),
        ("8086:56c0", "038000", "intel"),
        ("8086:4940", "0b4000", None),  # QuickAssist
        ("8086:7d1d", "120000", None),  # neural processor of a client chip
        ("8086:09a2", "088000", None),
        ("1d94:6210", "038000", "hygon"),
        ("1d94:6320", "0b4000", "hygon"),
        ("1d94:1450", "060000", None),  # the same vendor's processor
        ("1d94:1451", "080600", None),
        ("1d94:1468", "108000", None),
        ("1e3e:0002", "120000", "iluvatar"),
        ("1ed5:0400", "030200", "mthreads"),
        ("1ed5:04ff", "040300", None),
        ("9999:4000", "030200", "metax"),
        ("cabc:0370", "120000", "cambricon"),
        ("1e36:c035", "120000", "enflame"),
        ("1d22:3688", "120000", "kunlunxin"),
        ("1d0f:7364", "088000", "neuron"),
        ("1d0f:8061", "010802", None),  # EBS
        ("1ae0:006f", "ff0000", "tpu"),
        ("1ae0:0042", "020000", None),  # gVNIC
        ("1e27:0006", "030200", "denglin"),
        ("1e52:b140", "120000", "tenstorrent"),
        ("1a03:2000", "030000", None),
        ("102b:0538", "030000", None),
        ("15b3:1021", "020700", None),
        ("1b36:0005", "120000", None),
    ],
)
def test_who_owns_a_function(ids, pci_class, owner):
    vendor, device = ids.split(":")
    function = Function("0000:18:00.0", vendor=vendor, device=device, pci_class=pci_class)
    assert [name for name, one in registry.VENDORS.items() if one.owns(function)] == ([owner] if owner else [])
