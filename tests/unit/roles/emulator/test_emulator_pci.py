# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The PCI tree: bytes read back by hand, the collection's walk over it, and the real lspci."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess

import pytest
from accel_emulator import pci as emulated_pci
from ansible_collections.accel.cluster.plugins.module_utils._accel import pci

SXM5 = "0000:ba:00.0"


def read_config(shown, address: str) -> dict:
    """Read a config space as PCI and PCI Express lay it out, from nothing but the bytes."""
    with open(f"{shown.root}/sys/bus/pci/devices/{address}/config", "rb") as handle:
        raw = handle.read()
    told: dict = {"size": len(raw)}
    told["vendor"], told["device"], told["command"], told["status"] = struct.unpack_from("<HHHH", raw, 0)
    told["revision"] = raw[8]
    told["class"] = raw[11] << 16 | raw[10] << 8 | raw[9]
    told["header"] = raw[0x0E] & 0x7F
    if told["header"] == 1:
        told["buses"] = tuple(raw[0x18:0x1B])
        low, high = struct.unpack_from("<HH", raw, 0x24)
        low_upper, high_upper = struct.unpack_from("<II", raw, 0x28)
        told["window"] = (low_upper << 32 | (low & 0xFFF0) << 16, high_upper << 32 | (high & 0xFFF0) << 16 | 0xFFFFF)
    else:
        told["subsystem"] = struct.unpack_from("<HH", raw, 0x2C)
        told["bars"] = [value & ~0xF for value in struct.unpack_from("<QQQ", raw, 0x10)]
    at, seen = raw[0x34], []
    while at:
        seen.append(raw[at])
        if raw[at] == 0x10:
            flags = struct.unpack_from("<H", raw, at + 2)[0]
            told["kind"], told["has_slot"] = flags >> 4 & 0xF, bool(flags & 0x100)
            capable = struct.unpack_from("<I", raw, at + 0x0C)[0]
            running = struct.unpack_from("<H", raw, at + 0x12)[0]
            told["max"] = (capable & 0xF, capable >> 4 & 0x3F)
            told["now"] = (running & 0xF, running >> 4 & 0x3F)
            told["slot"] = struct.unpack_from("<I", raw, at + 0x14)[0] >> 19
            told["speeds"] = struct.unpack_from("<I", raw, at + 0x2C)[0] >> 1 & 0x7F
        at = raw[at + 1]
        assert len(seen) < 16, "the chain of capabilities does not end"
    told["capabilities"] = seen
    return told


def test_config_space_of_a_card(show) -> None:
    told = read_config(show("nvidia_h100_8"), SXM5)
    assert told["size"] == 4096
    assert (told["vendor"], told["device"], told["revision"], told["class"]) == (0x10DE, 0x2330, 0xA1, 0x030200)
    assert told["subsystem"] == (0x10DE, 0x16C1)
    assert told["header"] == 0
    assert told["status"] & 0x10  # a list of capabilities follows
    assert told["capabilities"] == [0x01, 0x10]
    assert told["kind"] == 0
    assert told["max"] == (5, 16)  # 32 GT/s
    assert told["now"] == (1, 16)  # idle: 2.5 GT/s
    assert told["speeds"] == 0b11111
    assert all(start % (1 << 20) == 0 for start in told["bars"])


def test_config_space_of_the_bridges_above_it(show) -> None:
    shown = show("nvidia_h100_8")
    root, upstream, port = (read_config(shown, one) for one in ("0000:b7:01.0", "0000:b8:00.0", "0000:b9:01.0"))
    assert [one["kind"] for one in (root, upstream, port)] == [4, 5, 6]
    assert root["buses"] == (0xB7, 0xB8, 0xBB)
    assert upstream["buses"] == (0xB8, 0xB9, 0xBB)
    assert port["buses"] == (0xB9, 0xBA, 0xBA)
    assert (port["has_slot"], port["slot"]) == (True, 5)
    assert (root["has_slot"], root["slot"]) == (False, 0)
    assert port["now"] == (1, 16)  # the port's link is the card's
    assert root["now"] == (5, 16)
    card = read_config(shown, SXM5)
    for bridge in (root, upstream, port):
        low, high = bridge["window"]
        assert all(low <= start < high for start in card["bars"])


def test_registers_do_not_overlap_and_lie_on_their_size(show) -> None:
    for profile in ("nvidia_h100_8", "amd_mi300x_8", "ascend_910b_8"):
        taken = sorted(
            (start, start + size, size)
            for one in emulated_pci.functions(show(profile).host)
            for _unused, start, size in one.bars
        )
        assert all(start % size == 0 for start, _end, size in taken)
        assert all(before[1] <= after[0] for before, after in zip(taken, taken[1:]))


def test_a_narrow_link_shows_on_both_its_ends(show) -> None:
    shown = show("nvidia_h100_8", {"fault": "link_downtrained", "slot": "SXM5"})
    assert read_config(shown, SXM5)["now"] == read_config(shown, "0000:b9:01.0")["now"] == (1, 8)
    assert read_config(shown, SXM5)["max"] == (5, 16)
    assert read_config(shown, "0000:db:00.0")["now"] == (1, 16)


def test_a_lost_card_reads_as_ones_and_stays_on_the_bus(show) -> None:
    shown = show("nvidia_h100_8", {"fault": "card_lost", "slot": "SXM5"})
    with open(f"{shown.root}/sys/bus/pci/devices/{SXM5}/config", "rb") as handle:
        assert handle.read() == b"\xff" * 4096
    (found,) = [one for one in pci.functions(shown) if one.address == SXM5]
    assert (found.vendor, found.device, found.pci_class, found.responding) == ("10de", "2330", "030200", False)


@pytest.mark.parametrize(
    ("profile", "address", "ancestors", "node"),
    [
        ("nvidia_h100_8", SXM5, ["0000:b9:01.0", "0000:b8:00.0", "0000:b7:01.0"], 1),
        ("amd_mi300x_8", "0000:05:00.0", ["0000:04:01.0", "0000:03:00.0", "0000:02:01.0"], 0),
        ("ascend_910b_8", "0000:c2:00.0", ["0000:c0:02.0"], 1),
    ],
)
def test_the_collection_walks_to_the_root_port(show, profile, address, ancestors, node) -> None:
    (found,) = [one for one in pci.functions(show(profile)) if one.address == address]
    assert found.ancestors == ancestors
    assert found.numa_node == node
    assert found.link.limited_by is None
    assert (found.link.speed_gts, found.link.width) == (2.5, 16)
    assert (found.link.max_speed_gts, found.link.max_width) == (32.0, 16)


@pytest.mark.parametrize(
    ("profile", "vendor", "others"),
    [
        # NVSwitch bridges, the display of the management controller, NICs: on the bus, but no cards.
        (
            "nvidia_h100_8",
            "10de",
            {("10de", "22a3", "068000"): 4, ("1a03", "2000", "030000"): 1, ("15b3", "1021", "020700"): 8},
        ),
        ("amd_mi300x_8", "1002", {("1a03", "2000", "030000"): 1, ("15b3", "1021", "020700"): 8}),
        ("ascend_910b_8", "19e5", {("19e5", "1711", "030000"): 1, ("15b3", "1021", "020700"): 1}),
    ],
)
def test_what_is_no_card_is_on_the_bus_and_not_counted(show, profile, vendor, others) -> None:
    shown = show(profile)
    found = [(one.vendor, one.device, one.pci_class) for one in pci.functions(shown)]
    for ids, count in others.items():
        assert found.count(ids) == count
    assert shown.observe().bus_count == 8


@pytest.mark.parametrize(
    ("scheme", "slots"),
    [("card", {"5": "0000:ba:00"}), ("bridge", {"5": "0000:b9:01"}), ("none", {})],
)
def test_slots_of_the_kernel_name_the_card_or_the_port_above(show, scheme, slots) -> None:
    table = {one["name"]: one["address"] for one in pci.slot_table(show("nvidia_h100_8", slot_scheme=scheme))}
    assert {name: address for name, address in table.items() if name == "5"} == slots
    assert len(table) == (16 if slots else 0)  # eight cards, eight NICs


def lspci(shown, *argv: str) -> str:
    if not shutil.which("lspci"):
        pytest.skip("lspci is not installed")
    command = ["lspci", "-O", f"sysfs.path={shown.root}/sys/bus/pci", *argv]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_real_lspci_names_the_card_and_its_slot(show) -> None:
    told = lspci(show("nvidia_h100_8"), "-vv", "-s", SXM5)
    assert re.match(r"ba:00\.0 3D controller: NVIDIA Corporation GH100.*H100 SXM5 80GB", told)
    assert "\tPhysical Slot: 5\n" in told
    assert re.search(r"LnkCap:.*Speed 32GT/s, Width x16", told)
    assert re.search(r"LnkSta:\s+Speed 2\.5GT/s \(downgraded\), Width x16", told)
    assert "[size=128G]" in told
    assert "Kernel driver in use: nvidia\n" in told


def test_the_real_lspci_shows_the_slot_on_the_port_and_a_narrow_link(show) -> None:
    shown = show("amd_mi300x_8", {"fault": "link_downtrained", "slot": "OAM3"})
    port = lspci(shown, "-vv", "-s", "0000:04:01.0")
    assert "\tPhysical Slot: 23\n" in port
    assert "Slot #23, " in port
    assert re.search(r"LnkSta:.*Width x8 \(downgraded\)", lspci(shown, "-vv", "-s", "0000:05:00.0"))


def test_the_real_lspci_draws_the_tree_down_to_the_card(show) -> None:
    assert re.search(
        r"\[0000:b7\]---01\.0-\[b8-bb\]----00\.0-\[b9-bb\]--\+-01\.0-\[ba\]----00\.0",
        lspci(show("nvidia_h100_8"), "-t"),
    )
