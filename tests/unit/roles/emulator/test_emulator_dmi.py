# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The SMBIOS table: structures read back by hand, by the collection, and by the real dmidecode."""

from __future__ import annotations

import shutil
import struct
import subprocess

import pytest
from accel_emulator import dmi as emulated_dmi
from ansible_collections.accel.cluster.plugins.module_utils._accel import dmi


def structures(raw: bytes) -> list[tuple[int, int, bytes, list[str]]]:
    """Read type, handle, formatted area and strings of each structure, as DSP0134 lays them out."""
    found, at = [], 0
    while at < len(raw):
        kind, length, handle = struct.unpack_from("<BBH", raw, at)
        assert length >= 4
        end = raw.index(b"\0\0", at + length)
        found.append(
            (kind, handle, raw[at : at + length], [one.decode() for one in raw[at + length : end].split(b"\0") if one])
        )
        at = end + 2
    return found


def test_the_table_holds_what_firmware_gives(show) -> None:
    host = show("nvidia_h100_8").host
    found = structures(emulated_dmi.table(host))
    assert [kind for kind, _unused, _unused, _unused in found[:4]] == [0, 1, 2, 3]
    assert found[-1][0] == 127
    assert len({handle for _unused, handle, _unused, _unused in found}) == len(found)
    system = found[1]
    assert system[3] == [host.manufacturer, host.product, "1.0", host.serial]
    # A string number points at a string that is there.
    assert max(system[2][4:8]) <= len(system[3])


def test_a_slot_names_its_card(show) -> None:
    found = structures(emulated_dmi.table(show("nvidia_h100_8").host))
    (slot,) = [one for one in found if one[0] == 9 and one[3] == ["SXM5"]]
    area = slot[2]
    assert area[4] == 1  # designation: the first string
    assert area[7] == 4  # in use
    assert struct.unpack_from("<H", area, 9)[0] == 5
    segment, bus, device = struct.unpack_from("<HBB", area, 0x0D)
    assert (segment, bus, device >> 3, device & 7) == (0, 0xBA, 0, 0)


def test_the_device_and_the_domain_of_an_address_are_told_too(show) -> None:
    card = {"slot": "SXM5", "address": "0001:ba:03.0"}
    found = structures(emulated_dmi.table(show("nvidia_h100_8", cards=[card]).host))
    (area,) = [area for kind, _unused, area, strings in found if kind == 9 and strings == ["SXM5"]]
    assert struct.unpack_from("<HBB", area, 0x0D) == (1, 0xBA, 3 << 3)


def test_the_empty_slot_has_no_address(show) -> None:
    found = structures(emulated_dmi.table(show("nvidia_h100_8").host))
    empty = [one for one in found if one[0] == 9 and one[2][7] == 3]
    assert [(one[3], one[2][0x0F], one[2][0x10]) for one in empty] == [(["PCIe Slot 49"], 0xFF, 0xFF)]


def test_the_entry_point_sums_to_zero_and_tells_the_size(show) -> None:
    raw = emulated_dmi.table(show("amd_mi300x_8").host)
    entry = emulated_dmi.entry_point(len(raw))
    assert entry[:5] == b"_SM3_"
    assert len(entry) == entry[6] == 24
    assert sum(entry) & 0xFF == 0
    assert struct.unpack_from("<I", entry, 0x0C)[0] == len(raw)


def test_the_collection_reads_the_slots(show) -> None:
    shown = show("ascend_910b_8")
    table = dmi.parse_slots(shown.read_bytes("/sys/firmware/dmi/tables/DMI"))
    slots = {slot.designation: slot.address for slot in table}
    assert slots["NPU4"] == "0000:c1:00.0"
    assert sum(name.startswith("NPU") for name in slots) == 8


def test_the_real_dmidecode_prints_the_slots(show, tmp_path) -> None:
    program = shutil.which("dmidecode") or shutil.which("dmidecode", path="/usr/sbin")
    if not program:
        pytest.skip("dmidecode is not installed")
    raw = emulated_dmi.table(show("nvidia_h100_8").host)
    # The file form of dmidecode: entry point first, the table at 0x20, where the entry point says it is.
    entry = bytearray(emulated_dmi.entry_point(len(raw)))
    struct.pack_into("<Q", entry, 0x10, 0x20)
    entry[5] = (entry[5] - sum(entry)) & 0xFF
    dump = tmp_path / "dump"
    dump.write_bytes(bytes(entry).ljust(0x20, b"\0") + raw)
    told = subprocess.run(
        [program, "--from-dump", str(dump), "-t", "slot"], capture_output=True, text=True, check=True
    ).stdout
    (slot,) = [one for one in told.split("\n\n") if "Designation: SXM5\n" in one]
    for line in ("Type: x16 PCI Express 5 x16", "Current Usage: In Use", "ID: 5", "Bus Address: 0000:ba:00.0"):
        assert f"\t{line}\n" in slot + "\n"
    assert "Designation: PCIe Slot 49" in told
