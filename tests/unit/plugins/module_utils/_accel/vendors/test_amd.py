# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""AMD: what amd-smi and rocm-smi print, refuse, cut off or hang on."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import Device, Ecc, Link, Readings, Repair
from ansible_collections.accel.cluster.plugins.module_utils._accel.pci import Function
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors.amd import (
    ROCM_SMI_OPTIONS,
    Amd,
    count_render_nodes,
    devices,
    read,
    read_bad_pages,
    read_rocm,
    short_cards,
    told,
)
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors.base import Unreadable
from doubles import HANG, RecordedRunner

OWN = Path(__file__).resolve().parents[5] / "recordings/amd"
MIB = 1024**2
STATIC, METRIC, LIST = (("amd-smi", what, "--json") for what in ("static", "metric", "list"))
ROCM = ("rocm-smi", *ROCM_SMI_OPTIONS)
MI300X = ("0000:05:00.0", "0000:c6:00.0")
MI350X = ("0000:05:00.0", "0000:15:00.0")
NOT_LOADED = "ERROR:root:Driver not initialized (amdgpu not found in modules)\n"


def own(name: str) -> str:
    return (OWN / name).read_text()


def mi300x(**changes) -> dict:
    """Return the answers of a healthy host with two MI300X; ``changes`` by command (static, metric, list)."""
    answers = {
        STATIC: (0, own("amd-smi_static_list-root_2xMI300X.json"), ""),
        METRIC: (0, own("amd-smi_metric_list-root_2xMI300X.json"), ""),
    }
    answers.update({("amd-smi", what, "--json"): answer for what, answer in changes.items()})
    return answers


def alone(what: str, answer, addresses=MI300X) -> dict:
    """Return one answer to the question for each card by its address."""
    return {("amd-smi", what, "-g", address, "--json"): answer for address in addresses}


def ask(answers: dict, addresses=MI300X, files=None, **more):
    runner = RecordedRunner(answers, files, **more)
    functions = [Function(address, vendor="1002", device="74a1", pci_class="120000") for address in addresses]
    return Amd().query(runner, functions, 10), runner


# --------------------------------------------------------------------------------------------------- partitions


def listed(cases: Path, name: str) -> list[str]:
    lines = (cases / "09-amd-partition-count" / name).read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def partitioned(cases: Path, count: int) -> tuple[dict, dict, dict, list[str]]:
    """Return the answers, files and links of the case's host, whose tool lists ``count`` of 64 partitions."""
    modes = dict(line.split("\t") for line in listed(cases, "compute_partition.tsv"))
    entries = read((cases / "09-amd-partition-count/tool_list_63.txt").read_text()).entries
    if count == 64:
        entries[63] = {"bdf": "0000:df:00.7"}
    gpus = [
        {
            "gpu": index,
            "bus": {"bdf": entry["bdf"]},
            # Only the first partition tells what the card is; the others may not even say their mode.
            "asic": {"market_name": "AMD Instinct MI300X", "asic_serial": f"0x{index + 1:x}"}
            if index % 8 == 0
            else "N/A",
            "partition": {"compute_partition": "N/A", "partition_id": index % 8},
        }
        for index, entry in entries.items()
    ]
    live = [{"gpu": gpu["gpu"], "temperature": {"hotspot": {"value": 40, "unit": "C"}}} for gpu in gpus]
    files = {f"/sys/bus/pci/devices/{bdf}/current_compute_partition": f"{mode}\n" for bdf, mode in modes.items()}
    nodes = dict(line.split("\t") for line in listed(cases, "render_nodes_dot.tsv"))
    links = {f"/sys/class/drm/{node}/device": path for node, path in nodes.items()}
    return {STATIC: (0, json.dumps(gpus), ""), METRIC: (0, json.dumps(live), "")}, files, links, list(modes)


def test_case_09(cases):
    folder = cases / "09-amd-partition-count"
    expected = json.loads(re.search(r"```json\n(.*?)```", (folder / "expected.md").read_text(), re.DOTALL)[1])
    nodes = {}
    for spelling in ("underscore", "dot"):
        paths = [line.split("\t")[1] for line in listed(cases, f"render_nodes_{spelling}.tsv")]
        nodes[spelling] = dict(zip(("physical", "logical"), count_render_nodes(paths)))
    answers, files, links, cards = partitioned(cases, 63)
    answer, _unused = ask(answers, cards, files, links=links)
    (mode,) = {part["mode"] for device in answer.devices for part in device.logical}
    warned = [device for device in answer.devices if device.health.state == "warning"]
    entries = read((folder / "tool_list_63.txt").read_text()).entries
    counts = {device.pci_address: len(device.logical) for device in devices(entries, {}, [], "list")}
    missing = short_cards(counts, nodes["dot"]["logical"])
    seen = {
        "render_nodes_underscore": nodes["underscore"],
        "render_nodes_dot": nodes["dot"],
        "mode": mode,
        "count_check_against_8": "ok" if answer.count == 8 else "fail",
        "tool_list_63": {
            "physical": len(counts),
            "logical": sum(counts.values()),
            "expected_logical": sum(counts.values()) + sum(missing.values()),
            "verdict": "warn" if len(warned) == 1 else "ok",
            "incomplete_card": warned[0].pci_address if warned else None,
        },
    }
    assert seen == expected
    assert missing == {"0000:df:00.0": 1}
    assert warned[0].health.reasons == ["7 of 8 partitions are listed"]
    assert answer.errors == ["0000:df:00.0: 7 of 8 partitions are listed"]


def test_partitions_that_are_all_there_are_no_warning(cases):
    answers, files, links, cards = partitioned(cases, 64)
    answer, runner = ask(answers, cards, files, links=links)
    assert answer.count == 8
    assert [len(device.logical) for device in answer.devices] == [8] * 8
    assert {device.health.state for device in answer.devices} == {"ok"}
    assert answer.errors == []
    last = answer.devices[7]
    assert (last.index, last.pci_address, last.uuid) == (56, "0000:df:00.0", "0x0000000000000039")
    assert last.logical[7] == {
        "kind": "partition",
        "index": 63,
        "id": 7,
        "mode": "CPX",
        "memory_mode": None,
        "pci_address": "0000:df:00.7",
    }
    assert len(runner.calls) == 2


@pytest.mark.parametrize("short", [["0000:22:00.0"], None], ids=["one card", "all cards"])
def test_cards_that_list_only_their_first_partition_are_named(cases, short):
    """The tool tells no mode; that a card with one entry is split is known from the kernel alone."""
    answers, files, links, cards = partitioned(cases, 64)
    short = short or cards
    left_out = [index for index in range(64) if index % 8 and cards[index // 8] in short]
    for command in (STATIC, METRIC):
        entries = [one for one in json.loads(answers[command][1]) if one["gpu"] not in left_out]
        answers[command] = (0, json.dumps(entries), "")
    answer, _unused = ask(answers, cards, files, links=links)
    assert answer.count == 8
    warned = {device.pci_address: device.health.reasons for device in answer.devices if device.health.reasons}
    assert warned == {address: ["1 of 8 partitions are listed"] for address in short}
    assert {device.health.state for device in answer.devices if device.pci_address in short} == {"warning"}
    assert {part["mode"] for device in answer.devices for part in device.logical} == {"CPX"}


def test_render_nodes_of_other_vendors_do_not_count():
    paths = [
        "/sys/devices/pci0000:00/0000:0c:00.0",
        "/sys/devices/platform/amdgpu_xcp_0",
        "/sys/devices/pci0000:00/0000:17:00.0",
    ]
    assert count_render_nodes(paths, ["0000:0c:00.0"]) == (1, 2)
    assert count_render_nodes(paths) == (2, 3)


def test_cards_in_different_modes_are_not_compared(cases):
    gpus = [{"gpu": 0, "bus": {"bdf": MI300X[0]}, "partition": {"compute_partition": "SPX", "partition_id": 0}}]
    gpus += [
        {
            "gpu": 1 + n,
            "bus": {"bdf": f"0000:c6:00.{n}"},
            "partition": {"accelerator_partition": "DPX", "partition_id": n},
        }
        for n in range(2)
    ]
    live = [{"gpu": n, "power": {"socket_power": {"value": 140, "unit": "W"}}} for n in range(3)]
    answer, _unused = ask({STATIC: (0, json.dumps({"gpu_data": gpus}), ""), METRIC: (0, json.dumps(live), "")})
    assert [(one.pci_address, len(one.logical), one.health.state) for one in answer.devices] == [
        ("0000:05:00.0", 0, "ok"),
        ("0000:c6:00.0", 2, "ok"),
    ]


def test_function_that_pci_knows_is_a_device_of_its_own():
    gpus = [{"gpu": n, "bus": {"bdf": f"0000:05:02.{n}"}} for n in range(2)]
    found = devices({gpu["gpu"]: gpu for gpu in gpus}, {}, ["0000:05:02.0", "0000:05:02.1"], "x")
    assert [one.pci_address for one in found] == ["0000:05:02.0", "0000:05:02.1"]


# ---------------------------------------------------------------------------------------------------- recordings


def rows(path: Path, reader=read) -> list[tuple]:
    reading = reader(path.read_text())
    assert reading.whole
    return [
        (one.index, one.model, one.serial, one.uuid, one.pci_address, one.pci_id, one.module_id, one.memory_bytes)
        for one in devices(reading.entries, reading.entries, [], "x")
    ]


def test_recorded_amd_smi(recordings):
    folder = recordings / "amd"
    # Expected values were read by eye from the files.
    assert rows(folder / "amd-smi_static_MI300X_excerpt.txt") == [
        (0, "MI300X-O", None, "0xaf54e92b0a5d57c8", "0000:05:00.0", "1002:74a1", 7, None)
    ]
    assert rows(folder / "amd-smi_static-g0_7x.txt") == [
        (0, "AMD Instinct Mi325X VF", None, "0x9f444a2fb30adeb0", "0000:83:00.0", "1002:74b9", 6, None)
    ]
    # Four CPUs stand before the GPUs; each GPU is in a domain of its own.
    assert rows(folder / "amd-smi_static_4xMI300A.txt") == [
        (0, "MI300A", None, "0x7e8f7e20764e2714", "0000:01:00.0", "1002:74a0", 0, 64289 * MIB),
        (1, "MI300A", None, "0xb6ae7c8cefe1f084", "0001:01:00.0", "1002:74a0", 1, 64289 * MIB),
        (2, "MI300A", None, "0x367125d815189854", "0002:01:00.0", "1002:74a0", 2, 64289 * MIB),
        (3, "MI300A", None, "0xf4c44c2be5e66537", "0003:01:00.0", "1002:74a0", 3, 64289 * MIB),
    ]
    assert rows(folder / "amd-smi_static-asic_granite-ridge.json") == [
        (0, "Granite Ridge [Radeon Graphics]", None, None, None, "1002:13c0", None, None)
    ]
    assert rows(folder / "amd-smi_list_63_kfd.txt") == [
        (0, None, None, None, "0000:23:00.0", None, None, None),
        (1, None, None, None, "0000:26:00.0", None, None, None),
    ]
    # The network card below is no GPU.
    assert rows(folder / "amd-smi_list_with-AINIC.txt") == [(0, None, None, None, "0000:23:00.0", None, None, None)]
    # Its uuid is made of the device id alone, so it names no card.
    assert rows(folder / "amd-smi_list_strix-halo_631.json") == [
        (0, None, None, None, "0000:c4:00.0", None, None, None)
    ]
    newest = devices(read((folder / "amd-smi_static_MI350X_excerpt.txt").read_text()).entries, {}, [], "x")[0]
    assert (newest.model, newest.firmware_version, newest.driver_version) == (
        "AMD Instinct MI350X",
        "00154951",
        "6.18.3",
    )
    assert newest.link == Link(max_speed_gts=32.0, max_width=16)
    assert not read((folder / "amd-smi_static_clock_list-root.json.txt").read_text()).whole  # cut by its author
    assert not read((folder / "amdsmi_error43_unexpected-data.txt").read_text()).whole
    busy = read((folder / "amd-smi_metric_MI300X_excerpt.txt").read_text()).entries
    assert devices(busy, busy, [], "x")[0].link.under_load is True
    assert devices(busy, busy, [], "x")[0].health.state == "ok"
    now = devices(busy, busy, [], "x")[0].readings
    assert (now.utilization_percent, now.power_watts) == (100, 234)


def test_recorded_rocm_smi(recordings):
    folder = recordings / "amd"
    assert rows(folder / "rocm-smi_624_rx7800.json", read_rocm) == [
        (0, "Navi 32 [Radeon RX 7700 XT / 7800 XT]", None, "0x5c88007d760374f3", None, "1002:747e", None, 17163091968)
    ]
    old = rows(folder / "rocm-smi_mi100_rocm571.json", read_rocm)
    assert [row[0] for row in old] == [0, 1, 2, 3, 4, 5]
    assert [row[4] for row in old] == [f"0000:{bus}:00.0" for bus in ("1e", "22", "3f", "43", "46", "49")]
    # Serial "0" and unique id N/A name nothing.
    assert {row[1:4] for row in old} == {("Arcturus GL-XL [Instinct MI100]", None, None)}
    navi = (0, "Navi 22 [Radeon RX 6700/6700 XT / 6800M]", None, None, "0000:07:00.0", "1002:73df", None, 12868124672)
    assert rows(folder / "rocm-smi_rx6700xt_rocm602.json", read_rocm) == [navi]
    assert rows(folder / "rocm-smi_rx6700xt_rocm612.json", read_rocm) == [navi]  # keys in another case
    assert rows(folder / "rocm-smi_vega-10-XT.json", read_rocm) == [
        (0, None, None, "0x02150e7d042a1124", "0000:04:00.0", "1002:6861", None, 17163091968)
    ]
    both = rows(folder / "rocm-smi_vega-20-WKS-GL-XE.json", read_rocm)
    assert both[0][1:5] == ("Radeon Instinct MI50 32GB", "692024000810", "0x02f048617326b1ea", "0000:63:00.0")


# ----------------------------------------------------------------------------------------------------- the query


def test_healthy_host_up_to_6():
    files = {"/opt/rocm-6.3.1/.info/version": "6.3.1-48\n", "/sys/module/amdgpu/version": "6.10.5\n"}
    answer, runner = ask(mi300x(), files=files, links={"/usr/bin/amd-smi": "/opt/rocm-6.3.1/bin/amd-smi"})
    assert (answer.count, answer.errors, answer.hung, answer.lost) == (2, [], [], [])
    assert answer.devices[0] == Device(
        index=0,
        vendor="amd",
        model="AMD Instinct MI300X",
        serial="692406A10311",
        uuid="0x51d02f7a6b3ec944",
        pci_address="0000:05:00.0",
        pci_id="1002:74a1",
        module_id=7,
        numa_node=0,
        driver_version="6.10.5",
        firmware_version="022.040.009.043.000777",
        memory_bytes=196592 * MIB,
        partition_mode="whole",
        link=Link(speed_gts=32.0, width=16, max_speed_gts=32.0, max_width=16, under_load=False),
        health=answer.devices[0].health,
        ecc=Ecc(corrected_volatile=3, uncorrected_volatile=0),
        # This release tells neither whether the threshold of retired pages is passed nor a limit.
        repair=Repair("unknown"),
        readings=Readings(
            temperature_c=41.0,
            memory_temperature_c=34.0,
            power_watts=139.0,
            utilization_percent=0.0,
            memory_used_bytes=285 * MIB,
            throttles=[],
        ),
        source="amd-smi 6.3.1",
    )
    assert [(one.health.state, one.health.reasons) for one in answer.devices] == [("ok", []), ("ok", [])]
    assert answer.devices[1].link.under_load is True
    assert answer.devices[1].uuid == "0x0a73e1f5098c2d10"
    assert answer.slot_labels == {"0000:05:00.0": "OAM7", "0000:c6:00.0": "OAM2"}
    (tool,) = answer.tools
    assert (tool.name, tool.version, tool.state, tool.rc, tool.excerpt) == ("amd-smi", "6.3.1", "ok", 0, "")
    (driver,) = answer.drivers
    assert (driver.vendor, driver.kernel_version, driver.library_version, driver.loaded) == (
        "amd",
        "6.10.5",
        None,
        True,
    )
    # The promise of the module's docstring.
    assert sorted(runner.calls) == sorted([STATIC, METRIC])
    assert set(runner.timeouts) == {10}


def test_what_stands_beside_a_whole_answer_is_told():
    (rc, static, _none), metric = mi300x()[STATIC], mi300x()[METRIC][1]
    answer, _unused = ask(mi300x(static=(3, static, ""), metric=(rc, metric, "W: sensor 4 is slow\n")))
    assert answer.count == 2
    assert answer.errors == [
        "amd-smi static --json: exit code 3 and no text",
        "amd-smi metric --json: W: sensor 4 is slow",
    ]


def test_healthy_host_of_7_whose_static_has_no_addresses():
    answers = {
        STATIC: (0, own("amd-smi_static_gpu-data_2xMI350X.json"), ""),
        METRIC: (0, own("amd-smi_metric_gpu-data_2xMI350X.json"), ""),
        LIST: (0, own("amd-smi_list_several-documents_2xMI350X.txt"), ""),
    }
    answer, _unused = ask(answers, MI350X)
    assert (answer.count, answer.errors) == (2, [])
    first, second = answer.devices
    assert (first.pci_address, first.serial, first.uuid) == ("0000:05:00.0", "692512B20007", "0xc0ffee0012345678")
    assert (first.firmware_version, first.driver_version, first.memory_bytes) == ("00150042", "6.16.6", 294896 * MIB)
    assert (second.pci_address, second.serial, second.uuid) == ("0000:15:00.0", None, None)
    assert second.link == Link(speed_gts=32.0, width=16, max_speed_gts=32.0, max_width=16, under_load=False)
    assert (first.numa_node, first.logical) == (None, [])
    assert [one.health.state for one in answer.devices] == ["ok", "ok"]
    assert answer.slot_labels == {"0000:05:00.0": "OAM6", "0000:15:00.0": "OAM3"}


def test_uncorrectable_errors_are_counted_on_the_right_card():
    metric = own("amd-smi_metric_list-root_2xMI300X_ecc.json")
    answer, _unused = ask(mi300x(metric=(0, metric, "")))
    assert [one.ecc.uncorrected_volatile for one in answer.devices] == [0, 2]
    assert [one.health.state for one in answer.devices] == ["ok", "ok"]  # device.ecc says it
    deferred = own("amd-smi_metric_list-root_2xMI300X.json").replace(
        '"total_deferred_count": 0', '"total_deferred_count": 4', 1
    )
    answer, _unused = ask(mi300x(metric=(0, deferred, "")))
    assert [one.health.state for one in answer.devices] == ["warning", "ok"]


@pytest.mark.parametrize("word", ["-1", "ERR!", 4294967295, "1" * 26])
def test_counts_that_can_not_be_read_are_named(word):
    live = json.loads(own("amd-smi_metric_list-root_2xMI300X.json"))
    live[0]["ecc"]["total_correctable_count"] = word
    answer, _unused = ask(mi300x(metric=(0, json.dumps(live), "")))
    assert [one.ecc.unread for one in answer.devices] == [["total_correctable_count"], []]
    assert answer.devices[0].ecc.corrected_volatile is None


def test_card_whose_values_are_all_missing_is_unknown():
    live = [{"gpu": 0, "temperature": "N/A", "power": {"socket_power": "N/A"}, "usage": {"gfx_activity": "N/A"}}]
    answer, _unused = ask(mi300x(metric=(0, json.dumps(live), "")))
    assert [one.health.state for one in answer.devices] == ["unknown", "unknown"]
    assert answer.devices[0].health.reasons == ["no live values: temperature, power and use cannot be read"]
    assert answer.devices[1].health.reasons == ["no live values: the tool gave none for this card"]
    assert answer.count == 2


def test_retired_pages_beyond_the_limit_mean_replace():
    static = own("amd-smi_static_gpu-data_2xMI350X.json").replace('exceeded": "False"', 'exceeded": "True"', 1)
    answers = {
        STATIC: (0, static, ""),
        METRIC: (0, own("amd-smi_metric_gpu-data_2xMI350X.json"), ""),
        LIST: (0, own("amd-smi_list_several-documents_2xMI350X.txt"), ""),
    }
    answer, _unused = ask(answers, MI350X)
    assert [one.repair.state for one in answer.devices] == ["replace", "ok"]


UNEXPECTED = (
    "Traceback (most recent call last):\n  ...\namdsmi.amdsmi_exception.AmdSmiLibraryException: Error code:\n"
    "\t43 | AMDSMI_STATUS_UNEXPECTED_DATA - The data read or provided was unexpected\n"
)


BAD_PAGES = "/sys/bus/pci/devices/{}/ras/gpu_vram_bad_pages"


@pytest.mark.parametrize(
    ("pages", "expected"),
    [
        ("", ("ok", 0)),
        # Of the five in the file, three are retired.
        (own("gpu_vram_bad_pages_3R_1P_1F.txt"), ("reset", 3)),
        ("0x01f2a4c0 : 0x00001000 : R\n0x01f2a4c8 : 0x00001000 : R\n", ("ok", 2)),
        ("0x01f2a4c0 : 0x00001000 : P\n", ("reset", 0)),
        ("0x01f2a4c0 : 0x00001000 : F\n", ("reset", 0)),
    ],
)
def test_bad_pages_of_the_memory(pages, expected):
    answer, runner = ask(mi300x(), files={BAD_PAGES.format(MI300X[1]): pages})
    # The other card has no such file: what is not told is no proof.
    assert [(one.repair.state, one.repair.retired_pages) for one in answer.devices] == [("unknown", None), expected]
    assert len(runner.calls) == 2


def test_too_many_bad_pages_stay_a_reason_to_replace():
    static = json.loads(own("amd-smi_static_list-root_2xMI300X.json"))
    static[1]["ras"]["bad_page_threshold_exceeded"] = "True"
    answer, _unused = ask(
        mi300x(static=(0, json.dumps(static), "")),
        files={BAD_PAGES.format(MI300X[1]): own("gpu_vram_bad_pages_3R_1P_1F.txt")},
    )
    assert (answer.devices[1].repair.state, answer.devices[1].repair.retired_pages) == ("replace", 3)


@pytest.mark.parametrize(
    "damage",
    ["0x01f2a4c0 : 0x00001000 : X", "0x01f2a4c0 : 0x00001000 : r", "0x01f2a4c0 : 0x0000", "Input/output error"],
)
def test_bad_pages_that_cannot_be_read_prove_nothing(damage):
    pages = "0x01f2a4c0 : 0x00001000 : R\n" + damage
    with pytest.raises(Unreadable):
        read_bad_pages(pages)
    answer, _unused = ask(mi300x(), files={BAD_PAGES.format(MI300X[0]): pages})
    assert (answer.devices[0].repair.state, answer.devices[0].repair.retired_pages) == ("unknown", None)
    assert [error for error in answer.errors if "gpu_vram_bad_pages" in error]


@pytest.mark.parametrize("damage", ["0x01f2a4c0 : 0x0000", None])
def test_a_threshold_that_is_not_passed_proves_nothing_of_pages_that_can_not_be_read(damage):
    """A page may wait for a reset; None: the file is there and can't be read."""
    static = json.loads(own("amd-smi_static_list-root_2xMI300X.json"))
    for entry in static:
        entry["ras"]["bad_page_threshold_exceeded"] = "False"
    path = BAD_PAGES.format(MI300X[0])
    answers = mi300x(static=(0, json.dumps(static), ""))
    answer, _runner = ask(answers, files={path: damage})
    assert [one.repair.state for one in answer.devices] == ["unknown", "ok"]
    assert any(error.startswith(path) for error in answer.errors)


def each(what: str, entries: list[dict]) -> dict:
    return {("amd-smi", what, "-g", str(one["gpu"]), "--json"): (0, json.dumps([one]), "") for one in entries}


def test_library_error_of_metric_leaves_only_the_sick_card_unknown():
    live = json.loads(own("amd-smi_metric_list-root_2xMI300X.json"))
    answers = {**mi300x(metric=(1, "", UNEXPECTED)), **each("metric", live)}
    answers["amd-smi", "metric", "-g", "0", "--json"] = (1, "", UNEXPECTED)
    answer, _unused = ask(answers)
    assert answer.count == 2
    assert [one.health.state for one in answer.devices] == ["unknown", "ok"]
    assert any("0000:05:00.0" in error and "AMDSMI_STATUS_UNEXPECTED_DATA" in error for error in answer.errors)


def test_library_error_of_static_is_asked_card_by_card():
    listing = [{"gpu": n, "bdf": bdf, "uuid": "x", "partition_id": 0} for n, bdf in enumerate(MI300X)]
    static = json.loads(own("amd-smi_static_list-root_2xMI300X.json"))
    answers = {**mi300x(static=(1, "", UNEXPECTED), list=(0, json.dumps(listing), "")), **each("static", static)}
    answers["amd-smi", "static", "-g", "1", "--json"] = (1, UNEXPECTED, "")
    answer, _unused = ask(answers)
    assert answer.count == 2
    assert [(one.pci_address, one.serial) for one in answer.devices] == [
        ("0000:05:00.0", "692406A10311"),
        ("0000:c6:00.0", None),
    ]
    assert answer.tools[0].state == "ok"
    assert any("0000:c6:00.0" in error for error in answer.errors)


def test_one_hung_card_is_named_and_the_others_answer():
    # Where one card hangs, everything that asks for all of them does.
    answers = {
        **mi300x(static=HANG, metric=HANG, list=HANG),
        **alone("static", (0, json.dumps(json.loads(own("amd-smi_static_list-root_2xMI300X.json"))[:1]), "")),
        **each("metric", json.loads(own("amd-smi_metric_list-root_2xMI300X.json"))),
    }
    answers["amd-smi", "static", "-g", "0000:c6:00.0", "--json"] = HANG
    answer, runner = ask(answers)
    assert answer.hung == ["0000:c6:00.0"]
    assert (answer.count, [one.serial for one in answer.devices]) == (1, ["692406A10311"])
    assert answer.devices[0].health.state == "ok"
    assert (answer.tools[0].state, len(answer.tools)) == ("hung", 1)
    assert "static -g 0000:c6:00.0 --json: no answer within 10 s" in answer.tools[0].excerpt
    assert ("amd-smi", "metric", "-g", "1", "--json") not in runner.calls  # it would only hang once more


def test_card_that_hangs_on_its_live_values_keeps_what_it_told_before():
    answers = {**mi300x(metric=HANG), **each("metric", json.loads(own("amd-smi_metric_list-root_2xMI300X.json")))}
    answers["amd-smi", "metric", "-g", "1", "--json"] = HANG
    answer, _unused = ask(answers)
    assert (answer.count, answer.hung) == (1, ["0000:c6:00.0"])
    assert answer.last["0000:c6:00.0"].serial == "692406A10298"


def test_static_and_list_fail_but_each_card_answers():
    static = json.loads(own("amd-smi_static_list-root_2xMI300X.json"))
    for entry in static:
        del entry["bus"]["bdf"]  # then the address is the one that was asked for
    answers = mi300x(static=(1, "", UNEXPECTED), list=(1, "", UNEXPECTED))
    for address, entry in zip(MI300X, static):
        answers.update(alone("static", (0, json.dumps({"gpu_data": [entry]}), ""), [address]))
    answer, _unused = ask(answers)
    assert [(one.pci_address, one.index, one.serial) for one in answer.devices] == [
        ("0000:05:00.0", 0, "692406A10311"),
        ("0000:c6:00.0", 1, "692406A10298"),
    ]
    assert answer.tools[0].state == "ok"
    assert "AMDSMI_STATUS_UNEXPECTED_DATA" in answer.tools[0].excerpt


def test_everything_hangs():
    answer, runner = ask({STATIC: HANG, METRIC: HANG, LIST: HANG, ROCM: HANG, **alone("static", HANG)})
    assert (answer.count, answer.devices, answer.hung) == (None, [], list(MI300X))
    assert [(tool.name, tool.state) for tool in answer.tools] == [("amd-smi", "hung")]
    assert len(runner.calls) == 4  # two at a time: two time limits in all


@pytest.mark.parametrize("rc", [0, 255])
@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (NOT_LOADED, "driver_not_loaded"),
        ("ERROR:root:Drivers not loaded (amdgpu, amd_hsmp drivers not found in modules)\n", "driver_not_loaded"),
        ("ERROR: Unable to detect any GPU devices, check amdgpu version and module status\n", "no_devices"),
        ("PermissionError: [Errno 13] Permission denied: '/dev/kfd'\n", "no_permission"),
    ],
)
def test_known_errors_are_an_unknown_count(said, reason, rc):
    refused = (rc, "", said)
    answer, _unused = ask({STATIC: refused, METRIC: refused, LIST: refused, ROCM: (0, "", NOT_LOADED)})
    assert (answer.count, answer.devices) == (None, [])
    assert (answer.tools[0].state, answer.tools[0].reason) == ("failed", reason)
    assert said.strip() in answer.tools[0].excerpt
    # A missing driver is missing for rocm-smi too.
    assert [tool.name for tool in answer.tools] == ["amd-smi"] + ([] if reason == "driver_not_loaded" else ["rocm-smi"])


def test_empty_listing_says_that_there_is_no_card():
    for empty in ("[]\n", '{"gpu_data": []}\n'):
        answer, _unused = ask(mi300x(static=(0, empty, ""), metric=(0, empty, "")))
        assert (answer.count, answer.devices, answer.tools[0].reason) == (0, [], "no_devices")


def test_rocm_smi_where_amd_smi_is_absent():
    files = {
        "/opt/rocm/.info/version": "5.7.1-98",
        "/sys/bus/pci/devices/0000:83:00.0/ras/umc_err_count": "ue: 3\nce: 11\n",
        "/sys/bus/pci/devices/0000:83:00.0/ras/gfx_err_count": "ue: 0\nce: 0\n",
        "/sys/bus/pci/devices/0000:23:00.0/ras/umc_err_count": "ue: 0\nce: 2\n",
    }
    answer, runner = ask({ROCM: (0, own("rocm-smi_57_2xMI100.json"), "")}, ("0000:23:00.0", "0000:83:00.0"), files)
    assert [(tool.name, tool.state, tool.version) for tool in answer.tools] == [
        ("amd-smi", "absent", None),
        ("rocm-smi", "ok", "5.7.1"),
    ]
    assert answer.count == 2
    assert [(one.index, one.pci_address, one.serial, one.uuid) for one in answer.devices] == [
        (0, "0000:23:00.0", None, None),
        (1, "0000:83:00.0", "692151000077", "0x003f19c2a4d7e0b8"),
    ]
    assert answer.devices[0].driver_version == "5.18.13"
    assert answer.devices[0].memory_bytes == 34342961152
    assert [one.link.under_load for one in answer.devices] == [True, False]
    assert [one.health.state for one in answer.devices] == ["ok", "ok"]
    assert [one.ecc for one in answer.devices] == [Ecc(2, 0), Ecc(11, 3)]
    assert len(runner.calls) == 1
    # A block that can't be read (EIO, no answer, a reset that goes on) may have errors: 0 of the others is no proof.
    for damage in ("", "Query currently inaccessible\n"):
        files["/sys/bus/pci/devices/0000:23:00.0/ras/sdma_err_count"] = damage
        files["/sys/bus/pci/devices/0000:83:00.0/ras/sdma_err_count"] = damage
        answer, _runner = ask({ROCM: (0, own("rocm-smi_57_2xMI100.json"), "")}, ("0000:23:00.0", "0000:83:00.0"), files)
        assert [one.ecc for one in answer.devices] == [Ecc(2, None), Ecc(11, 3)]


def test_rocm_smi_with_a_warning_before_and_a_silent_card():
    addresses = ("0000:63:00.0", "0000:64:00.0")
    answers = dict.fromkeys([STATIC, METRIC, LIST, *alone("static", None, addresses)], (1, "oops", ""))
    answers[ROCM] = (0, own("rocm-smi_62_2xMI210_warning.txt"), "")
    answer, _unused = ask(answers, addresses)
    assert [(tool.name, tool.state) for tool in answer.tools] == [("amd-smi", "failed"), ("rocm-smi", "ok")]
    assert "low-power state" in answer.tools[1].excerpt
    assert [(one.model, one.serial, one.health.state) for one in answer.devices] == [
        ("AMD Instinct MI210", "692231500412", "ok"),
        (None, None, "unknown"),
    ]


def test_no_tool():
    answer, _unused = ask({})
    assert [(tool.name, tool.state) for tool in answer.tools] == [("amd-smi", "absent"), ("rocm-smi", "absent")]
    assert (answer.count, answer.devices, answer.drivers[0].loaded) == (None, [], False)


def test_socket_numbers_that_name_no_place():
    def labels(*numbers):
        gpus = [
            {"gpu": n, "bus": {"bdf": f"0000:{n:02x}:00.0"}, "asic": {"oam_id": oam}} for n, oam in enumerate(numbers)
        ]
        return ask({STATIC: (0, json.dumps(gpus), ""), METRIC: (0, json.dumps(gpus), "")}, ())[0].slot_labels

    assert labels("N/A", 4294967295, 65535, "0xFFFFFFFF", 3) == {"0000:04:00.0": "OAM3"}
    assert labels(0, 0, 0) == {}
    assert labels(0) == {}
    assert labels(0, 1) == {"0000:00:00.0": "OAM0", "0000:01:00.0": "OAM1"}


def test_values_with_and_without_unit():
    entry = {
        "a": {"value": 16, "unit": "GT/s"},
        "b": 16,
        "c": "N/A",
        "d": {"value": "N/A", "unit": "W"},
        "e": [1],
        "f": {},
    }
    assert [told(entry, key) for key in "abcdefg"] == ["16 GT/s", "16", "N/A", "N/A", None, None, None]
    assert told("N/A", "a") is None
    assert told(entry, "c", "deeper") is None


def test_device_nodes():
    files = {"/dev/dri/card1": "", "/dev/dri/renderD129": "", "/dev/kfd": ""}
    files.update(
        {f"/sys/bus/pci/devices/0000:05:00.0/drm/{name}/dev": "" for name in ("card1", "renderD129", "controlD65")}
    )
    runner = RecordedRunner(files=files)
    nodes = Amd().device_nodes(runner, Device(pci_address="0000:05:00.0"))
    assert nodes == ["/dev/dri/card1", "/dev/dri/renderD129"]
    assert Amd().device_nodes(runner, Device()) == []


# --------------------------------------------------------------------------------------------- unpleasant answers

GARBAGE = {
    "empty": "",
    "blank": " \n\n",
    "html": "<html><head><title>502 Bad Gateway</title></head><body>GPU: 0</body></html>\n",
    "binary": bytes(range(256)).decode("latin-1") * 20,
    "brackets": "[" * 100000,
    "open_lines": "[\n" * 20000,
    "wrong_list": "[1, 2, 3]\n",
    "wrong_object": '{"error": "AMDSMI_STATUS_BUSY", "code": 30}\n',
    "wrong_rows": '[{"gpu": "N/A"}, {"gpu": {"x": 1}}, {"gpu": null}]\n',
    "wrong_data": '{"gpu_data": "N/A"}\n',
    "cards": '{"card0": "N/A", "cardX": {}}\n',
    "nulls": "\0" * 4000,
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_no_answer_and_kept(name):
    junk = GARBAGE[name]
    answer, _unused = ask(dict.fromkeys([STATIC, METRIC, LIST, ROCM, *alone("static", None)], (0, junk, "")))
    assert (answer.count, answer.devices) == (None, [])
    assert [(tool.name, tool.state) for tool in answer.tools] == [("amd-smi", "unreadable"), ("rocm-smi", "unreadable")]
    if junk.strip("\0 \n"):
        assert all(tool.excerpt.strip() for tool in answer.tools)


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ('{"gpu_data": [{"gpu": 0, "asic"', "unreadable"),
        ('{"schema": 99}', "unreadable"),
        ("\x7fELF\x02", "unreadable"),
        ("Traceback (most recent call last):\n  Segmentation fault\n", "failed"),
        ("", "failed"),
    ],
)
def test_damaged_is_not_refused(said, state):
    """What was begun or is no text is damaged, whatever the exit code says; words are the tool's reason."""
    answer, _unused = ask(dict.fromkeys([STATIC, METRIC, LIST, ROCM, *alone("static", None)], (1, said, "")))
    assert (answer.count, [tool.state for tool in answer.tools]) == (None, [state, state])


@pytest.mark.parametrize(
    ("model", "partition", "kernel", "mode"),
    [
        ("AMD Instinct MI300X", {"compute_partition": "SPX", "partition_id": 0}, None, "whole"),
        ("AMD Instinct MI300X", {"compute_partition": "CPX", "partition_id": 0}, None, "CPX"),
        ("AMD Instinct MI300X", {"accelerator_partition": "DPX"}, None, "DPX"),
        ("AMD Instinct MI300X", {"compute_partition": "N/A"}, "SPX", "whole"),
        ("AMD Instinct MI300X", {"compute_partition": "N/A"}, "QPX", "QPX"),
        ("AMD Instinct MI300X", {"compute_partition": "N/A"}, None, None),
        ("AMD Instinct MI210", {"compute_partition": "N/A"}, None, "not_splittable"),
        ("AMD Instinct MI210", None, None, "not_splittable"),
    ],
)
def test_whether_a_card_is_split(model, partition, kernel, mode):
    entry = {"gpu": 0, "asic": {"market_name": model}, "bus": {"bdf": MI300X[0]}}
    entry.update({} if partition is None else {"partition": partition})
    files = {f"/sys/bus/pci/devices/{MI300X[0]}/current_compute_partition": f"{kernel}\n"} if kernel else {}
    told = {STATIC: (0, json.dumps([entry]), ""), METRIC: (0, '[{"gpu": 0, "usage": "N/A"}]', "")}
    answer, _unused = ask(told, MI300X[:1], files)
    assert answer.devices[0].partition_mode == mode
    assert bool(answer.devices[0].logical) == (mode not in (None, "whole", "not_splittable"))


NONSENSE = [
    {"gpu": 0, "bus": {"bdf": "nonsense"}, "asic": ["x"], "vram": {"size": {"value": [], "unit": "MB"}}, "numa": 3},
    {"gpu": 0, "bus": {"bdf": 17}, "asic": {"oam_id": {}, "asic_serial": 12}, "partition": {"partition_id": "0,1,2"}},
    {"gpu": 0, "bus": {"bdf": None}, "board": {"product_serial": True}, "driver": None, "usage": {"gfx_activity": []}},
    {
        "gpu": 0,
        "ecc": {"total_uncorrectable_count": "ERR!"},
        "temperature": [],
        "power": 7,
        "pcie": {"width": {"value": {}}},
    },
]


@pytest.mark.parametrize("entry", NONSENSE)
def test_wrong_types_are_no_traceback_and_never_healthy(entry):
    whole = (0, json.dumps([entry]), "")
    answer, _unused = ask({STATIC: whole, METRIC: whole, LIST: whole})
    assert answer.count == 1
    assert answer.devices[0].pci_address is None
    assert answer.devices[0].health.state == "unknown"


@pytest.mark.parametrize(
    "name",
    [
        "amd-smi_static_list-root_2xMI300X.json",
        "amd-smi_static_gpu-data_2xMI350X.json",
        "amd-smi_metric_list-root_2xMI300X.json",
        "rocm-smi_57_2xMI100.json",
    ],
)
def test_json_that_was_cut_off_is_unreadable(name):
    whole = own(name).rstrip()
    for end in range(0, len(whole), 40):
        answer, _unused = ask(dict.fromkeys([STATIC, METRIC, LIST, ROCM, *alone("static", None)], (0, whole[:end], "")))
        assert (answer.count, answer.devices) == (None, []), end
        assert {tool.state for tool in answer.tools} == {"unreadable"}, end
        if end:
            assert answer.tools[0].excerpt.startswith(whole[:20].strip())


def test_cut_metric_is_no_health():
    whole = own("amd-smi_metric_list-root_2xMI300X.json").rstrip()
    for end in range(0, len(whole), 40):
        cut = (0, whole[:end], "")
        answer, _unused = ask({**mi300x(metric=cut), **alone("metric", cut, ["0", "1"])})
        assert answer.count == 2
        assert {one.health.state for one in answer.devices} == {"unknown"}, end


def test_sound_document_behind_one_that_was_cut_off_is_not_the_whole_answer():
    cut = own("amd-smi_static_list-root_2xMI300X.json")[:1000]
    assert not read(cut + '\n[{"gpu": 5, "bdf": "0000:05:00.0"}]\n').whole
    assert not read_rocm(own("rocm-smi_57_2xMI100.json")[:200] + '\n{"card5": {"PCI Bus": "0000:05:00.0"}}\n').whole
    assert read('[output follows]\n[{"gpu": 5, "bdf": "0000:05:00.0"}]\n').whole


def test_half_a_character_is_replaced():
    """JSON can name one, and no record could be written with it."""
    static = own("amd-smi_static_list-root_2xMI300X.json").replace("AMD Instinct MI300X", "MI300X\\ud800")
    answer, _unused = ask(mi300x(static=(0, static, "")))
    assert {device.model for device in answer.devices} == {"MI300X\ufffd"}


# ------------------------------------------------------------------------- what real tools said, run without a card


def test_the_module_that_is_blamed_may_be_loaded():
    """Debian's amd-smi 6.1 says so whenever its library can't start, its JSON asked for or not."""
    said = "ERROR: Driver not loaded (amdgpu not found in modules)\n"
    answers = dict.fromkeys((STATIC, METRIC), (255, "", said))
    absent, _unused = ask(answers)
    assert (absent.tools[0].reason, absent.drivers[0].loaded) == ("driver_not_loaded", False)
    answer, runner = ask(answers, files={"/sys/module/amdgpu/initstate": "live"}, tools={"amd-smi", "rocm-smi"})
    assert (answer.tools[0].state, answer.tools[0].reason) == ("failed", "driver_not_ready")
    assert answer.drivers[0].loaded is True
    assert set(runner.calls) == {STATIC, METRIC}  # rocm-smi would say the same
    assert said.strip() in answer.tools[0].excerpt


@pytest.mark.parametrize(
    "said",
    [
        "ERROR: Unable to get devices, driver not initialized (amdgpu not found in modules)\n",
        "ERROR:root:Drivers not loaded (amdgpu, amd_hsmp, ionic, bnxt_en drivers not found in modules)\n",
    ],
)
def test_every_release_says_in_its_own_words_that_the_driver_is_not_there(said):
    answer, _runner = ask(dict.fromkeys((STATIC, METRIC), (255, "", said)))
    assert (answer.count, answer.tools[0].reason) == (None, "driver_not_loaded")


def test_a_tool_that_dies_without_a_word_is_made_up_for():
    """amd-smi 6.1 does so on a render node that is none; rocm-smi reads the kernel's files."""
    dead = (-11, "", "")
    answers = {
        **dict.fromkeys((STATIC, METRIC, LIST), dead),
        **alone("static", dead),
        ROCM: (2, json.dumps({"card0": {"PCI Bus": MI300X[0]}, "card1": {"PCI Bus": MI300X[1]}}), ""),
    }
    answer, _runner = ask(answers)
    assert [(tool.name, tool.state, tool.rc) for tool in answer.tools] == [
        ("amd-smi", "failed", -11),
        ("rocm-smi", "ok", 2),
    ]
    assert answer.count == 2
    assert answer.errors[0] == "amd-smi static --json: rc -11, nothing printed"


def test_rocm_smi_tells_temperatures_and_memory_in_use():
    places = ("0000:23:00.0", "0000:83:00.0")
    answer, _runner = ask({ROCM: (0, own("rocm-smi_57_2xMI100.json"), "")}, places)
    told = {device.pci_address: device.readings for device in answer.devices}
    # The first has no sensor at its hottest place, so that of its edge counts.
    assert [(told[place].temperature_c, told[place].memory_used_bytes) for place in places] == [
        (31.0, 6782976),
        (38.0, 7331840),
    ]
    hot = json.dumps({"card0": {"PCI Bus": places[0], "Temperature (Sensor memory) (C)": "44.0"}})
    (device,) = ask({ROCM: (0, hot, "")}, places[:1])[0].devices
    assert (device.readings.temperature_c, device.readings.memory_temperature_c) == (None, 44.0)
