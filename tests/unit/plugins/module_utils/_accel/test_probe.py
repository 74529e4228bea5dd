# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One observation from bus, firmware and vendor tools."""

from __future__ import annotations

import csv
import json
import os
import re
from dataclasses import fields

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import dmi, pci, probe, registry, runner
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import (
    Device,
    Driver,
    Health,
    Link,
    Observation,
    Readings,
    SlotName,
    Tool,
    as_dict,
)
from ansible_collections.accel.cluster.plugins.module_utils._accel.runner import Result, Runner
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors.base import Answer, Vendor
from doubles import HANG, RecordedRunner
from trees import END, FULL, Tree, slot_structure

ALL = ("nvidia-smi", "-q", "-x")
LINKS = ("nvidia-smi", "nvlink", "-s")
NVLINK = "".join(f"GPU {n}: NVIDIA H100 80GB HBM3 (UUID: GPU-{n:08}-0001)\n\t Link 0: 26.562 GB/s\n" for n in range(16))
MIB = 1024**2


class HostRunner(RecordedRunner):
    """Reads the tree of the test as the real runner does, everything else from the tables."""

    def __init__(self, tree, answers=None, files=None, tools=None):
        super().__init__(answers, files, tools)
        self.home, self.real = str(tree.home), Runner()
        self.blocked, self.hung_reads = self.real.blocked, self.real.hung_reads

    def run(self, argv, timeout_seconds):
        """Cards in sockets are asked for their links too: what no test records is one link each."""
        key = ("nvidia-smi", *argv[1:])
        if argv[0].endswith("nvidia-smi") and argv[1:3] == ["nvlink", "-s"] and key not in self.answers:
            self.calls.append(key)
            return Result(list(argv), 0, NVLINK, "")
        return super().run(argv, timeout_seconds)

    def _here(self, path):
        return self.real if path.startswith(self.home) else super()

    def read(self, path):
        return self._here(path).read(path)

    def read_bytes(self, path):
        return self._here(path).read_bytes(path)

    def glob(self, pattern):
        return self._here(pattern).glob(pattern)

    def realpath(self, path):
        return self._here(path).realpath(path)


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def observe(tree, answers=None, files=None, tools=None, dmi_table=None, **options):
    """Observe the tree with recorded tools; return the observation as the module does."""
    path = tree.home / "DMI"
    if dmi_table is not None:
        path.write_bytes(dmi_table)
    runner = HostRunner(tree, answers, files, tools)
    seen = probe.observe(runner, root=str(tree.root), dmi_path=str(path), timeout_seconds=7, **options)
    shape(seen)
    return seen


def shape(seen):
    """Types never vary: whatever happened, the same keys and kinds of values come back."""
    told = as_dict(seen)
    json.dumps(told)
    assert list(told) == [field.name for field in fields(Observation)]
    for name in ("devices", "unanswered", "tools", "drivers", "kernel_events", "errors"):
        assert isinstance(told[name], list)
    for device in told["devices"]:
        assert list(device) == [field.name for field in fields(Device)]
        assert "" not in (device["serial"], device["uuid"])
    for entry in told["unanswered"]:
        assert set(entry) == {
            "pci_address", "vendor", "pci_id", "state", "reason", "model", "serial", "uuid", "firmware_version",
            "slot", "link", "numa_node", "last",
        }  # fmt: skip
        assert entry["state"] in ("lost", "not_reported")


def card(address, number, extra=""):
    return (
        f'<gpu id="0000{address.upper()}"><product_name>NVIDIA H100 80GB HBM3</product_name>'
        f"<serial>09901000000{number:02}</serial><uuid>GPU-{number:08}-0001</uuid>"
        f"<gpu_recovery_action>None</gpu_recovery_action>{extra}</gpu>"
    )


def document(*cards):
    count = len(cards)
    body = "".join(cards)
    return (
        "<nvidia_smi_log><driver_version>570.86.15</driver_version>"
        f"<attached_gpus>{count}</attached_gpus>{body}</nvidia_smi_log>"
    )


def healthy(*addresses):
    return {ALL: (0, document(*(card(address, number) for number, address in enumerate(addresses))), "")}


def states(seen):
    return {entry["pci_address"]: entry["state"] for entry in seen.unanswered}


# --------------------------------------------------------------------------------------------------
# The handed cases
# --------------------------------------------------------------------------------------------------


@pytest.fixture
def node_01(cases, tree):
    """Build the bus of case 01 and return the addresses of its eight cards."""
    cards = []
    for line in (cases / "01-nvidia-gpu-lost/pci_devices.tsv").read_text().splitlines():
        if not line.startswith("#"):
            address, vendor, device, pci_class = line.split("\t")
            tree.add(address, vendor, device, pci_class)
            if device == "0x2330":
                cards.append(address)
    assert len(cards) == 8
    return cards


def answer_01(cases, which):
    expected = (cases / "01-nvidia-gpu-lost/expected.md").read_text()
    return (
        (cases / f"01-nvidia-gpu-lost/stdout_{which}.txt").read_text(),
        json.loads(re.search(r"```json\n(.*?)```", expected, re.S)[1])[f"stdout_{which}"],
    )


@pytest.mark.parametrize("rc", [0, 2, 15])
@pytest.mark.parametrize("which", ["a", "b", "c"])
def test_case_01(cases, tree, node_01, which, rc):
    said, expected = answer_01(cases, which)
    answers = {ALL: (rc, said, ""), **{(*ALL, "-i", address): (rc, said, "") for address in node_01}}
    seen = observe(tree, answers)
    assert seen.bus_count == 8  # display, NIC and bridges are no cards
    assert seen.count == expected["usable"]
    assert seen.devices == []
    assert [address for address, state in states(seen).items() if state == "lost"] == expected["lost"]
    assert [address for address, state in states(seen).items() if state == "not_reported"] == expected["not_reported"]
    assert (seen.tools[0].state == "ok") is expected["query_complete"]


def test_case_01_with_cards_that_answer_alone(cases, tree, node_01):
    said, _expected = answer_01(cases, "a")
    others = [address for address in node_01 if address != "0000:ba:00.0"]
    answers = {(*ALL, "-i", a): (0, document(card(a, n)), "") for n, a in enumerate(others)}
    seen = observe(tree, {ALL: (2, said, ""), **answers})
    assert (seen.count, seen.bus_count) == (7, 8)
    assert [device.pci_address for device in seen.devices] == others
    assert states(seen) == {"0000:ba:00.0": "lost"}


@pytest.mark.parametrize(
    ("name", "reason", "library"),
    [
        ("smi_stdout.txt", "driver_library_mismatch", "570.124"),
        ("smi_stdout_not_loaded.txt", "driver_not_loaded", None),
    ],
)
def test_case_03(cases, tree, name, reason, library):
    folder = cases / "03-nvml-version-mismatch"
    tree.add("0000:18:00.0")
    loaded = reason == "driver_library_mismatch"
    version = {"/proc/driver/nvidia/version": (folder / "proc_driver_nvidia_version.txt").read_text()}
    seen = observe(tree, {ALL: (9, (folder / name).read_text(), "")}, files=version if loaded else {})
    assert seen.count is None
    assert seen.logical_count is None
    assert seen.devices == []
    assert states(seen) == {"0000:18:00.0": "not_reported"}
    assert seen.unanswered[0]["reason"] == reason
    assert (seen.tools[0].state, seen.tools[0].reason) == ("failed", reason)
    assert seen.drivers == [Driver("nvidia", "570.86.15" if loaded else None, library, loaded)]


def firmware(cases, which):
    """Return the slot table of case 06 as the firmware holds it."""
    usages = {"in_use": 4, "available": 3}
    table = b""
    for slot in dmi.parse_dmidecode((cases / f"06-dmidecode-slot-bogus/{which}_dmidecode_t9.txt").read_text()):
        domain, bus, device, function = re.split("[:.]", slot.address)
        table += slot_structure(
            slot.designation, usages[slot.usage], slot.id, int(domain, 16), int(bus, 16), int(device, 16), int(function)
        )
    return table + END


@pytest.mark.parametrize("which", ["a", "b", "c", "d"])
def test_case_06(cases, tree, which):
    folder = cases / "06-dmidecode-slot-bogus"
    expected = json.loads(re.search(r"```json\n(.*?)```", (folder / "expected.md").read_text(), re.S)[1])[which]
    for address in (folder / f"{'c' if which == 'd' else which}_cards.txt").read_text().split():
        tree.add(address)
    declared = None
    if which in "cd":
        for line in (folder / "c_sys_bus_pci_slots.tsv").read_text().splitlines()[1:]:
            tree.slot(*line.split("\t"))
    if which == "d":
        declared = {"GPU-3": "0000:5d:00.0"}
        assert '"GPU-3": "0000:5d:00.0"' in (folder / "d_inventory.yml").read_text()
    seen = observe(tree, dmi_table=firmware(cases, which) if which in "ab" else None, declared_slots=declared)
    assert ([expected["warning"]] if "warning" in expected else []) == seen.errors
    for device in seen.devices:
        want = expected[device.pci_address]
        assert device.slot.label == want["slot"]
        if device.slot.label:
            assert device.slot.source == want["source"].replace("dmidecode", "dmi")
        assert [one["label"] for one in device.slot.candidates if one["source"] == "sysfs"] == want.get(
            "candidates", ["12", "13"] if which == "d" and device.pci_address == "0000:5d:00.0" else []
        )
    assert len(seen.devices) == len([key for key in expected if key != "warning"])


def test_case_07(cases, tree):
    """What each card's link shows, under which load, and which bridge the kernel blames."""
    folder = cases / "07-pcie-idle-vs-downtrained"
    load = {}
    with (folder / "pstate.csv").open() as lines:
        for address, pstate, utilisation in csv.reader(lines, skipinitialspace=True):
            if address != "pci.bus_id":
                load[pci.normalise(address)] = (pstate, utilisation)
    cards = []
    for number, address in enumerate(load):
        place = folder / "sysfs" / address.replace(":", "_")
        names = ("current_link_speed", "max_link_speed", "current_link_width", "max_link_width")
        # The bridge of the card that the kernel line is about can do no more than 16 GT/s.
        above = "0000:97:01.0" if address == "0000:9a:00.0" else "0000:00:01.0"
        tree.add(above, pci_class="0x060400", link=("16.0 GT/s", "16.0 GT/s", "16", "16") if "97" in above else FULL)
        tree.add(f"{above}/{address}", link=[(place / name).read_text().strip() for name in names])
        pstate, utilisation = load[address]
        extra = (
            f"<performance_state>{pstate}</performance_state>"
            f"<utilization><gpu_util>{utilisation}</gpu_util></utilization>"
        )
        cards.append(card(address, number, extra))
    seen = observe(tree, {ALL: (0, document(*cards), "")})
    links = {device.pci_address: device.link for device in seen.devices}
    full = {"max_speed_gts": 32.0, "max_width": 16}
    assert links == {
        "0000:18:00.0": Link(speed_gts=2.5, width=16, under_load=False, **full),
        "0000:2a:00.0": Link(speed_gts=32.0, width=16, under_load=True, **full),
        "0000:3a:00.0": Link(speed_gts=32.0, width=8, under_load=True, **full),
        "0000:5d:00.0": Link(speed_gts=5.0, width=16, under_load=True, **full),
        "0000:9a:00.0": Link(speed_gts=32.0, width=16, under_load=True, limited_by="0000:97:01.0", **full),
        "0000:ab:00.0": Link(speed_gts=2.5, width=8, under_load=False, **full),
    }
    blamed = pci.parse_bandwidth_lines((folder / "dmesg.txt").read_text())
    assert {address: line["limited_by"] for address, line in blamed.items()} == {
        address: link.limited_by for address, link in links.items() if link.limited_by
    }


# --------------------------------------------------------------------------------------------------
# Joining
# --------------------------------------------------------------------------------------------------


def test_a_healthy_host(tree):
    tree.add("0000:00:01.0", pci_class="0x060400", link=FULL)
    tree.add("0000:00:01.0/0000:18:00.0", link=FULL, numa_node="1")
    tree.slot("7", "0000:18:00")
    files = {"/sys/module/nvidia/version": "570.86.15", "/dev/nvidia0": ""}
    extra = (
        "<minor_number>0</minor_number><fb_memory_usage><total>81559 MiB</total></fb_memory_usage>"
        "<utilization><gpu_util>90 %</gpu_util></utilization><performance_state>P0</performance_state>"
        "<processes><process_info><pid>12</pid><process_name>train</process_name>"
        "<used_memory>5 MiB</used_memory></process_info></processes>"
    )
    seen = observe(tree, {ALL: (0, document(card("0000:18:00.0", 0, extra)), "")}, files=files)
    assert seen == Observation(
        devices=[
            Device(
                index=0,
                vendor="nvidia",
                model="NVIDIA H100 80GB HBM3",
                serial="0990100000000",
                uuid="GPU-00000000-0001",
                identity="uuid",
                pci_address="0000:18:00.0",
                pci_id="10de:2330",
                slot=SlotName("7", "sysfs", []),
                numa_node=1,
                device_nodes=["/dev/nvidia0"],
                driver_version="570.86.15",
                memory_bytes=81559 * MIB,
                link=Link(32.0, 16, 32.0, 16, None, True),
                health=Health("ok"),
                readings=Readings(utilization_percent=90.0),
                ports=[{"kind": "nvlink", "index": 0, "state": "up", "speed_gbps": 212.496, "peer": None}],
                processes=[{"pid": 12, "name": "train", "memory_bytes": 5 * MIB, "source": "tool"}],
                source="nvidia-smi 570.86.15",
            )
        ],
        count=1,
        bus_count=1,
        # Driver 570 always tells of MIG: this answer lacks it.
        logical_count=None,
        tools=[Tool("nvidia-smi", "nvidia", "570.86.15", "ok", None, 0, "", "nvidia-smi -q -x")],
        drivers=[Driver("nvidia", "570.86.15", "570.86.15", True)],
        kernel_log={"state": "unknown", "source": None, "reason": "neither journalctl nor dmesg is installed"},
        holders_complete=True,
    )


def test_what_is_not_gathered_says_that_nothing_is_known(tree):
    tree.add("0000:18:00.0", link=FULL)
    tree.add("0000:2a:00.0", link=FULL)
    tree.slot("7", "0000:18:00")
    process = "<processes><process_info><pid>12</pid></process_info></processes>"
    seen = observe(tree, {ALL: (0, document(card("0000:18:00.0", 0, process)), "")}, gather=[])
    (device,) = seen.devices
    assert (device.processes, device.link, device.slot, device.health) == ([], Link(), SlotName(), Health("unknown"))
    assert seen.unanswered[0]["link"] == Link()
    assert device.identity == "uuid"


def test_no_vendor_tool_at_all(tree):
    tree.add("0000:18:00.0", link=FULL, numa_node="0")
    tree.slot("7", "0000:18:00")
    seen = observe(tree)
    assert (seen.count, seen.bus_count, seen.logical_count, seen.unanswered) == (None, 1, None, [])
    assert seen.devices == [
        Device(
            vendor="nvidia",
            pci_address="0000:18:00.0",
            pci_id="10de:2330",
            slot=SlotName("7", "sysfs", []),
            numa_node=0,
            link=Link(32.0, 16, 32.0, 16),
            source="sysfs",
        )
    ]
    assert [(tool.name, tool.state) for tool in seen.tools] == [("nvidia-smi", "absent")]


def test_a_host_without_cards(tree):
    tree.add("0000:02:00.0", "0x1a03", "0x2000", "0x030000")
    seen = observe(tree)
    assert seen == Observation(bus_count=0)


def test_a_bus_that_shows_nothing_has_no_number_of_cards(tree):
    """Every machine shows bridges at least: where nothing is, nobody could look, and that is not 0 cards."""
    assert observe(tree).bus_count is None
    seen = observe(tree, healthy("0000:18:00.0"))
    assert (seen.count, seen.bus_count) == (1, None)
    (tree.root / "devices").rmdir()
    assert observe(tree).bus_count is None


def test_a_function_that_can_not_be_read_may_be_a_card(tree):
    tree.add("0000:18:00.0")
    (tree.add("0000:2a:00.0") / "vendor").unlink()
    assert observe(tree, healthy("0000:18:00.0")).bus_count is None


def test_a_function_that_does_not_tell_its_class_may_be_a_card(tree):
    (tree.add("0000:2a:00.0") / "class").unlink()
    assert observe(tree).bus_count is None


@pytest.mark.parametrize("bridge", ["0x8086", "0x1d94"])
def test_a_processor_is_no_reason_to_load_the_vendor_of_its_maker(tree, monkeypatch, bridge):
    made, vendors = [], registry.VENDORS
    makers = {name: lambda name=name: made.append(name) or vendors[name] for name in vendors}
    monkeypatch.setattr(registry, "VENDORS", registry._Vendors(makers))
    tree.add("0000:17:00.0", bridge, "0x1450", "0x060400")
    tree.add("0000:18:00.0")
    assert observe(tree, healthy("0000:18:00.0")).count == 1
    assert made == ["nvidia"]


def test_a_plain_server_has_no_cards(tree):
    tree.add("0000:00:02.0", "0x8086", "0x4690", "0x030000")
    tree.add("0000:6b:00.0", "0x8086", "0x4940", "0x0b4000")
    tree.add("0000:00:00.0", "0x1d94", "0x1450", "0x060000")
    tree.add("0000:02:00.0", "0x1d94", "0x1468", "0x108000")
    assert observe(tree) == Observation(bus_count=0)


def test_a_host_whose_cards_all_left_the_bus(tree):
    tree.add("0000:02:00.0", "0x1a03", "0x2000", "0x030000")
    seen = observe(tree, {ALL: (6, "No devices were found\n", "")})
    assert (seen.count, seen.bus_count) == (0, 0)
    assert [tool.reason for tool in seen.tools] == ["no_devices"]


def test_a_vendor_that_is_named_is_asked_even_when_absent(tree):
    tree.add("0000:18:00.0")
    seen = observe(tree, healthy("0000:18:00.0"), vendors=["amd"])
    assert (seen.count, seen.bus_count, seen.devices) == (None, 0, [])
    assert {tool.state for tool in seen.tools} == {"absent"}
    assert {tool.vendor for tool in seen.tools} == {"amd"}


def test_only_vendors_on_the_bus_are_asked(tree):
    tree.add("0000:18:00.0")
    runner = HostRunner(tree, healthy("0000:18:00.0"), tools={"nvidia-smi", "amd-smi", "rocm-smi", "npu-smi"})
    seen = probe.observe(runner, root=str(tree.root), dmi_path="/none")
    assert runner.calls == [ALL, LINKS]
    assert seen.count == 1


def test_an_unknown_vendor_is_said(tree):
    seen = observe(tree, vendors=["nvidai"])
    assert seen.errors == [f"vendor 'nvidai' is not known; known are {', '.join(registry.VENDORS)}"]
    assert seen.count is None


def test_a_card_of_a_guest(tree):
    place = tree.add("0000:18:00.0")
    guest = tree.add("0000:2a:00.0", link=("Unknown", "Unknown", "63", "63"))
    for where, name in ((place, "nvidia"), (guest, "vfio-pci")):
        (tree.home / "drivers" / name).mkdir(parents=True)
        (where / "driver").symlink_to(tree.home / "drivers" / name)
    seen = observe(tree, healthy("0000:18:00.0"))
    (entry,) = seen.unanswered
    assert (entry["state"], entry["reason"], entry["link"]) == ("not_reported", "bound to vfio-pci", Link())
    assert (seen.count, seen.bus_count) == (1, 2)


def test_a_card_without_a_driver(tree):
    place = tree.add("0000:18:00.0")
    tree.add("0000:2a:00.0")
    (tree.home / "drivers/nvidia").mkdir(parents=True)
    (place / "driver").symlink_to(tree.home / "drivers/nvidia")
    seen = observe(tree, healthy("0000:18:00.0"))
    assert [(entry["state"], entry["reason"]) for entry in seen.unanswered] == [("not_reported", "no driver is bound")]


def test_a_card_whose_config_space_is_gone_is_lost(tree):
    tree.add("0000:18:00.0", link=FULL)
    tree.add("0000:2a:00.0", link=("Unknown", "Unknown", "63", "63"))
    seen = observe(tree, healthy("0000:18:00.0"))
    assert states(seen) == {"0000:2a:00.0": "lost"}
    assert seen.unanswered[0]["link"] == Link()


def test_a_card_that_answers_although_its_config_space_is_gone_is_not_well(tree):
    tree.add("0000:18:00.0", link=FULL)
    tree.add("0000:2a:00.0", link=("Unknown", "Unknown", "63", "63"))
    seen = observe(tree, healthy("0000:18:00.0", "0000:2a:00.0"))
    assert (seen.count, seen.unanswered) == (2, [])
    well, gone = seen.devices
    assert (well.health.state, well.link.width) == ("ok", 16)
    assert (gone.health.state, gone.link.width, gone.link.max_width) == ("unknown", None, None)
    assert "reads as ones" in gone.health.reasons[0]


def test_a_card_that_left_the_bus_but_is_named_as_lost(tree):
    tree.add("0000:18:00.0")
    said = "Unable to determine the device handle for GPU0000:2A:00.0: GPU is lost.\n"
    answers = {ALL: (2, said, ""), (*ALL, "-i", "0000:18:00.0"): (0, document(card("0000:18:00.0", 0)), "")}
    seen = observe(tree, answers)
    assert (seen.count, seen.bus_count) == (1, 1)
    assert states(seen) == {"0000:2a:00.0": "lost"}
    assert seen.unanswered[0]["pci_id"] is None


def test_a_hung_card(tree):
    tree.add("0000:18:00.0")
    tree.add("0000:2a:00.0")
    answers = {
        ALL: HANG,
        (*ALL, "-i", "0000:18:00.0"): (0, document(card("0000:18:00.0", 0)), ""),
        (*ALL, "-i", "0000:2a:00.0"): HANG,
    }
    seen = observe(tree, answers, declared_slots={"0000:2a:00.0": "SXM2"})
    assert (seen.count, seen.tools[0].state) == (1, "hung")
    (entry,) = seen.unanswered
    assert (entry["state"], entry["reason"], entry["slot"].label) == ("not_reported", "hung", "SXM2")


def test_a_lost_card_that_still_has_a_name(tree):
    tree.add("0000:18:00.0", link=FULL)
    tree.add("0000:2a:00.0", link=FULL)
    lost = card("0000:2a:00.0", 1, "<fan_speed>GPU is lost</fan_speed>")
    seen = observe(
        tree, {ALL: (0, document(card("0000:18:00.0", 0), lost), "")}, declared_slots={"SXM2": "0000:2a:00.0"}
    )
    (entry,) = seen.unanswered
    assert (entry["state"], entry["serial"], entry["uuid"]) == ("lost", "0990100000001", "GPU-00000001-0001")
    assert entry["slot"] == SlotName("SXM2", "declared", [])


def test_a_lost_card_whose_files_block_is_lost(tree, monkeypatch):
    """A card that hangs is not known; one that its tool names as lost is a fault, whatever else it does."""
    monkeypatch.setattr(runner, "READ_SECONDS", 0.3)
    tree.add("0000:18:00.0", link=FULL)
    place = tree.add("0000:2a:00.0")
    os.mkfifo(place / "numa_node")
    said = "Unable to determine the device handle for GPU0000:2A:00.0: GPU is lost.\n"
    answers = {ALL: (2, said, ""), (*ALL, "-i", "0000:18:00.0"): (0, document(card("0000:18:00.0", 0)), "")}
    (entry,) = observe(tree, answers).unanswered
    assert (entry["pci_address"], entry["state"], entry["reason"]) == ("0000:2a:00.0", "lost", None)
    # Where no tool says so, it hangs.
    (entry,) = observe(tree, healthy("0000:18:00.0")).unanswered
    assert (entry["pci_address"], entry["state"], entry["reason"]) == ("0000:2a:00.0", "not_reported", "hung")


@pytest.mark.parametrize(("module", "label"), [("", "8"), ("<gpu_module_id>3</gpu_module_id>", None)])
def test_a_silent_card_is_named_as_those_that_answer(tree, module, label):
    """Where the vendor numbers the places, the kernel's number of a silent card's place is another naming."""
    tree.add("0000:18:00.0")
    tree.add("0000:2a:00.0")
    tree.slot("7", "0000:18:00")
    tree.slot("8", "0000:2a:00")
    seen = observe(tree, {ALL: (0, document(card("0000:18:00.0", 0, module)), "")})
    assert seen.devices[0].slot.label == ("SXM3" if module else "7")
    assert seen.unanswered[0]["slot"].label == label
    assert seen.unanswered[0]["slot"].candidates == ([] if label else [{"label": "8", "source": "sysfs"}])


def test_a_wrong_declared_map_names_no_slot(tree):
    tree.add("0000:18:00.0")
    tree.slot("7", "0000:18:00")
    seen = observe(tree, healthy("0000:18:00.0"), declared_slots={"SXM1": "somewhere"})
    assert seen.count == 1
    assert seen.devices[0].slot == SlotName()
    assert any("SXM1" in error and "somewhere" in error for error in seen.errors)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([("S1", "U1"), ("S2", "U2")], [("U1", "uuid"), ("U2", "uuid")]),
        ([("S1", "U1"), ("S1", "U2")], [("U1", "uuid"), ("U2", "uuid")]),
        ([("S1", "U1"), ("S2", "U1")], [(None, "serial"), (None, "serial")]),
        ([("S1", None), ("S2", None)], [(None, "serial"), (None, "serial")]),
        ([("S1", None), ("S1", None)], [(None, "address"), (None, "address")]),
        ([(None, None), (None, "U2")], [(None, "address"), ("U2", "uuid")]),
    ],
)
def test_identity(told, expected):
    devices = [Device(serial=serial, uuid=uuid) for serial, uuid in told]
    errors = probe._identify(devices)
    assert [(device.uuid, device.identity) for device in devices] == expected
    assert errors == (
        ["one UUID, U1, is told of number None, number None"] if told[0][1:] == told[1][1:] == ("U1",) else []
    )


# --------------------------------------------------------------------------------------------------
# Several vendors
# --------------------------------------------------------------------------------------------------


class Fake(Vendor):
    """A vendor whose answer the test gives."""

    pci_classes = ("1200",)

    def __init__(self, name, pci_vendor, answer):
        self.name, self.pci_vendors, self.answer = name, (pci_vendor,), answer

    def query(self, runner, functions, timeout_seconds):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def device_nodes(self, runner, device):
        return []


def two_vendors(monkeypatch, tree, first, second):
    vendors = {"one": Fake("one", "aaaa", first), "two": Fake("two", "bbbb", second)}
    monkeypatch.setattr(registry, "VENDORS", vendors)
    monkeypatch.setattr(registry, "PCI_VENDORS", {"aaaa": "one", "bbbb": "two"})
    tree.add("0000:18:00.0", "0xaaaa", pci_class="0x120000")
    tree.add("0000:2a:00.0", "0xbbbb", pci_class="0x120000")


def good(vendor, address, **options):
    return Answer([Device(vendor=vendor, pci_address=address, uuid=vendor)], 1, tools=[Tool("smi", vendor)], **options)


def test_a_vendor_file_that_breaks_does_not_hide_the_others(monkeypatch, tree):
    two_vendors(monkeypatch, tree, KeyError("surprise"), good("two", "0000:2a:00.0"))
    seen = observe(tree)
    assert [device.pci_address for device in seen.devices] == ["0000:2a:00.0"]
    assert seen.count is None
    assert [(tool.vendor, tool.state) for tool in seen.tools] == [("one", "unreadable"), ("two", "ok")]
    assert seen.errors == ["one: KeyError: 'surprise'"]
    assert states(seen) == {"0000:18:00.0": "not_reported"}


def test_counts_of_vendors_are_added(monkeypatch, tree):
    split = good("one", "0000:18:00.0")
    split.devices[0].logical = [{"index": n} for n in range(8)]
    two_vendors(monkeypatch, tree, split, good("two", "0000:2a:00.0"))
    seen = observe(tree)
    assert (seen.count, seen.bus_count, seen.logical_count) == (2, 2, 9)


CHIPS = [{"kind": "chip", "index": number} for number in (2, 3)]


@pytest.mark.parametrize(
    ("mode", "logical", "count"),
    [
        ("whole", [], 1),
        ("MIG", [{"kind": "mig", "index": number} for number in range(3)], 3),
        # Switched on, and nothing made yet: no program finds a device on it.
        ("MIG", [], 0),
        # Two chips on one function: one of them split is the other and the parts.
        ("whole", CHIPS, 2),
        ("vNPU", [*CHIPS, *({"kind": "vnpu", "index": number, "chip": 3} for number in (148, 149, 150))], 4),
        ("vNPU", [*CHIPS, *({"kind": "vnpu", "index": 132 + 16 * n, "chip": 2 + n} for n in (0, 1))], 2),
    ],
)
def test_the_logical_devices_of_a_card(mode, logical, count):
    assert probe.logical_devices(Device(partition_mode=mode, logical=logical)) == count


@pytest.mark.parametrize(("splits", "known", "count"), [(False, True, 2), (True, True, None), (False, False, None)])
def test_what_nobody_can_tell_of_partitions_makes_no_count(monkeypatch, tree, splits, known, count):
    """A card that may be split and does not say, or parts of one that does not answer."""
    answers = good("one", "0000:18:00.0"), good("two", "0000:2a:00.0")
    answers[0].devices[0].partition_mode = "whole"
    answers[1].logical_known = known
    two_vendors(monkeypatch, tree, *answers)
    registry.VENDORS["two"].splits = splits
    seen = observe(tree)
    assert (seen.count, seen.logical_count) == (2, count)


def test_a_card_that_is_described_twice_is_one_and_hides_no_other(tree):
    """Two entries with one address are no two cards: the other one did not answer, and which is right nobody knows."""
    tree.add("0000:18:00.0", link=FULL)
    tree.add("0000:2a:00.0", link=FULL)
    entries = (card("0000:18:00.0", 0), card("0000:18:00.0", 1, "<fan_speed>ERR!</fan_speed>"))
    seen = observe(tree, {ALL: (0, document(*entries), "")})
    assert (seen.count, seen.bus_count, states(seen)) == (1, 2, {"0000:2a:00.0": "not_reported"})
    (one,) = seen.devices
    assert (one.pci_address, one.serial, one.uuid, one.identity) == ("0000:18:00.0", None, None, "address")
    assert one.health.state == "warning"
    assert "nvidia: 0000:18:00.0 is described twice" in seen.errors
    same = observe(tree, {ALL: (0, document(entries[0], entries[0]), "")})
    assert (same.count, [one.serial for one in same.devices]) == (1, ["0990100000000"])
    assert same.devices[0].health.state == "unknown"


def test_a_function_number_of_the_tools_own(monkeypatch, tree):
    two_vendors(monkeypatch, tree, good("one", "0000:18:00.5"), good("two", "0000:2a:00.0"))
    seen = observe(tree)
    assert [device.pci_address for device in seen.devices] == ["0000:18:00.0", "0000:2a:00.0"]
    assert seen.unanswered == []


def test_the_vendors_own_labels_name_slots(monkeypatch, tree):
    two_vendors(
        monkeypatch,
        tree,
        good("one", "0000:18:00.0", slot_labels={"0000:18:00.0": "OAM 3"}),
        good("two", "0000:2a:00.0"),
    )
    seen = observe(tree)
    assert [device.slot for device in seen.devices] == [SlotName("OAM 3", "vendor", []), SlotName()]


def test_a_card_without_the_number_that_its_like_have_is_not_named_by_the_kernel(tree):
    """Its answer was damaged, and another form that knows no number made up for it: "2" would not be SXM2."""
    for number, address in enumerate(("0000:18:00.0", "0000:2a:00.0")):
        tree.add(address)
        tree.slot(str(number + 1), address[:-2])
    told = [card("0000:18:00.0", 0, "<gpu_module_id>4</gpu_module_id>"), card("0000:2a:00.0", 1)]
    seen = observe(tree, {ALL: (0, document(*told), "")})
    assert [device.slot for device in seen.devices] == [
        SlotName("SXM4", "vendor", [{"label": "1", "source": "sysfs"}]),
        SlotName(None, None, [{"label": "2", "source": "sysfs"}]),
    ]
    # Where no card has one, the kernel's names are those of the place.
    seen = observe(tree, {ALL: (0, document(card("0000:18:00.0", 0), card("0000:2a:00.0", 1)), "")})
    assert [device.slot for device in seen.devices] == [SlotName("1", "sysfs", []), SlotName("2", "sysfs", [])]


def test_two_chips_on_one_board_share_its_slot(recordings, tree):
    for domain in ("0008", "0009", "0018", "0019"):
        tree.add(f"{domain}:06:00.0")
    table = slot_structure("Module A", 4, 1, 8, 6, 0) + END
    seen = observe(tree, {ALL: (0, (recordings / "nvidia/q-x_hw_gb300.xml").read_text(), "")}, dmi_table=table)
    assert (seen.count, seen.bus_count) == (4, 4)
    # The first UUID of this recording is masked with zeros, and its serial is that of a board with two chips.
    assert [device.identity for device in seen.devices] == ["address", "uuid", "uuid", "uuid"]
    assert [device.slot.label for device in seen.devices] == ["MODULE2", "MODULE1", "MODULE4", "MODULE3"]
    assert seen.devices[0].slot.candidates == [{"label": "Module A", "source": "dmi"}]
