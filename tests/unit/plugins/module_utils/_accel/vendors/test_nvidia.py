# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA: what nvidia-smi prints, refuses, cuts off or hangs on."""

from __future__ import annotations

import time
from pathlib import Path
from xml.etree import ElementTree

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import (
    TOOL_ABSENT,
    TOOL_FAILED,
    TOOL_HUNG,
    TOOL_OK,
    TOOL_UNREADABLE,
    Device,
    Driver,
    Ecc,
    Health,
    Link,
    Readings,
    Repair,
    as_dict,
)
from ansible_collections.accel.cluster.plugins.module_utils._accel.pci import Function
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors import nvidia
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors.base import Unreadable
from doubles import HANG, RecordedRunner

OWN = Path(__file__).resolve().parents[5] / "recordings/nvidia"
MIB = 1024**2
ALL = ("nvidia-smi", "-q", "-x")
CSV = ("nvidia-smi", f"--query-gpu={','.join(nvidia.CSV_FIELDS)}", "--format=csv,noheader,nounits")


def own(name):
    return (OWN / name).read_text()


def alone(address):
    return (*ALL, "-i", address)


def functions(*addresses, **options):
    return [Function(address, vendor="10de", device="2330", pci_class="030200", **options) for address in addresses]


def ask(answers, *addresses, files=None, **options):
    """Query with recorded answers; return the answer, the only tool and the runner."""
    runner = RecordedRunner(answers, files=files, tools={"nvidia-smi"})
    answer = nvidia.Nvidia().query(runner, functions(*addresses, **options), 7)
    (tool,) = answer.tools
    assert set(runner.timeouts) <= {7}
    return answer, tool, runner


def card(bus="18", serial="0990100000001", uuid="GPU-0a0a0a0a-0000-4000-8000-000000000001", **fields):
    """Return the smallest believable <gpu> element; fields replace or add elements by their path."""
    values = {
        "product_name": "NVIDIA H100 80GB HBM3",
        "serial": serial,
        "uuid": uuid,
        "pci/pci_bus_id": f"00000000:{bus}:00.0",
        "fb_memory_usage/total": "81559 MiB",
        **{path.replace("__", "/"): value for path, value in fields.items()},
    }
    lines = []
    for path, value in values.items():
        parts = path.split("/")
        opened = "".join(f"<{part}>" for part in parts[:-1])
        closed = "".join(f"</{part}>" for part in reversed(parts[:-1]))
        lines.append(f"{opened}<{parts[-1]}>{value}</{parts[-1]}>{closed}")
    # Elements of one parent, each wrapped alone, are put together again.
    text = "\n".join(lines)
    for parent in (
        "pci",
        "fb_memory_usage",
        "ecc_errors",
        "volatile",
        "remapped_rows",
        "utilization",
        "clocks_event_reasons",
    ):
        text = text.replace(f"</{parent}>\n<{parent}>", "\n")
    return f'<gpu id="00000000:{bus}:00.0">\n{text}\n</gpu>\n'


def document(*cards, attached=None, driver="570.86.15"):
    count = len(cards) if attached is None else attached
    return (
        '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n<nvidia_smi_log>\n'
        f"<driver_version>{driver}</driver_version>\n<attached_gpus>{count}</attached_gpus>\n"
        f"{''.join(cards)}</nvidia_smi_log>\n"
    )


def test_the_bus_owns_what_is_a_gpu():
    vendor = nvidia.Nvidia()
    for pci_class, mine in (("030200", True), ("030000", True), ("068000", False), ("040300", False)):
        assert vendor.owns(Function("0000:18:00.0", vendor="10de", pci_class=pci_class)) is mine
    assert not vendor.owns(Function("0000:02:00.0", vendor="1a03", pci_class="030000"))


# --------------------------------------------------------------------------------------------------
# The XML, by driver generation
# --------------------------------------------------------------------------------------------------


def test_generation_390():
    (device,) = nvidia.parse_query(own("q-x_390_1xV100_v9.xml")).devices
    assert device == Device(
        index=0,
        vendor="nvidia",
        model="Tesla V100-PCIE-32GB",
        serial="0990118800041",
        uuid="GPU-7d1e5a90-33c2-41f7-b0ce-90a1c2d3e4f5",
        pci_address="0000:3b:00.0",
        pci_id="10de:1db6",
        device_nodes=["/dev/nvidia0"],
        driver_version="390.116",
        firmware_version="88.00.7E.00.03",
        memory_bytes=32480 * MIB,
        partition_mode="not_splittable",
        link=Link(speed_gts=8.0, width=16, max_speed_gts=8.0, max_width=16, under_load=False),
        health=Health("ok"),
        ecc=Ecc(corrected_volatile=0, uncorrected_volatile=0, corrected_aggregate=2, uncorrected_aggregate=0),
        repair=Repair("reset", retired_pages=1),
        readings=Readings(
            temperature_c=31.0,
            power_watts=26.11,
            power_limit_watts=250.0,
            utilization_percent=0.0,
            memory_used_bytes=11 * MIB,
            throttles=["idle"],
            throttle_mask=1,
        ),
        source="nvidia-smi 390.116",
    )


def test_generation_470():
    query = nvidia.parse_query(own("q-x_470_2xA100-SXM4_v11.xml"))
    first, second = query.devices
    assert query.driver_version == "470.141.03"
    assert query.attached == 2
    assert first.health == Health("ok")
    assert (first.repair, second.repair) == (Repair("ok", 0), Repair("reset", 1))
    assert second.ecc == Ecc(0, 1, 0, 1, 0)
    assert second.health == Health("ok")  # device.memory_repair and device.ecc say it
    assert [device.module_id for device in query.devices] == [2, 0]
    assert nvidia.slot_labels(query.devices) == {"0000:07:00.0": "SXM2", "0000:0f:00.0": "SXM0"}


def test_generation_550():
    first, second = nvidia.parse_query(own("q-x_550_2xL40S_v12.xml")).devices
    assert first.link == Link(speed_gts=16.0, width=16, max_speed_gts=16.0, max_width=16, under_load=True)
    assert second.link == Link(speed_gts=2.5, width=8, max_speed_gts=16.0, max_width=16, under_load=False)
    assert first.processes == [
        {"pid": 4711, "name": "/usr/bin/python3", "memory_bytes": 20838 * MIB},
        {"pid": 65535, "name": "/opt/train & go/worker", "memory_bytes": 512 * MIB},
    ]
    # The minor number, not the place in the answer.
    assert [device.device_nodes for device in (first, second)] == [["/dev/nvidia1"], ["/dev/nvidia0"]]
    assert first.health == second.health == Health("ok")
    # Cards in ordinary slots have a module number too, and it names nothing.
    assert first.module_id == second.module_id == 1
    assert nvidia.slot_labels([first, second]) == {}
    assert nvidia.slot_labels([first]) == {}


def test_generation_580_and_split_cards():
    answer, tool, runner = ask(
        {ALL: (0, own("q-x_580_2xH200_mig_v13.xml"), ""), ("nvidia-smi", "-L"): (0, own("L_580_2xH200_mig.txt"), "")},
        "0000:1b:00.0",
        "0000:43:00.0",
    )
    whole, split = answer.devices
    assert runner.calls == [ALL, ("nvidia-smi", "-L")]
    assert answer.slot_labels == {"0000:1b:00.0": "SXM7", "0000:43:00.0": "SXM3"}
    assert whole.logical == []
    assert split.logical == [
        {
            "kind": "mig",
            "index": 0,
            "uuid": "MIG-8d1c0f5e-1111-5aaa-9bbb-000000000001",
            "profile": "3g.71gb",
            "memory_bytes": 71424 * MIB,
        },
        {
            "kind": "mig",
            "index": 1,
            "uuid": "MIG-8d1c0f5e-2222-5aaa-9bbb-000000000002",
            "profile": "2g.35gb",
            "memory_bytes": 35200 * MIB,
        },
        {
            "kind": "mig",
            "index": 2,
            "uuid": "MIG-8d1c0f5e-3333-5aaa-9bbb-000000000003",
            "profile": "1g.18gb",
            "memory_bytes": 17920 * MIB,
        },
    ]
    assert split.link.under_load is None  # the utilisation of a split card is not told
    assert whole.link.under_load is False
    assert whole.health == split.health == Health("ok")
    assert answer.count == 2
    assert (tool.state, tool.version, tool.rc) == (TOOL_OK, "580.95.05", 0)


def test_module_numbers_that_repeat_name_no_place():
    cards = [Device(model="NVIDIA H200", pci_address=f"0000:1{n}:00.0", module_id=m) for n, m in enumerate((1, 2, 2))]
    assert nvidia.slot_labels(cards[:2]) == {"0000:10:00.0": "SXM1", "0000:11:00.0": "SXM2"}
    assert nvidia.slot_labels(cards) == {"0000:10:00.0": "SXM1"}
    # A card that is described twice is one.
    assert nvidia.slot_labels([cards[0], *cards[:2]]) == {"0000:10:00.0": "SXM1", "0000:11:00.0": "SXM2"}


@pytest.mark.parametrize(
    ("model", "label"),
    [
        ("NVIDIA H100 80GB HBM3", "SXM4"),
        ("NVIDIA A100-SXM4-80GB", "SXM4"),
        ("Tesla V100-SXM2-16GB", "SXM4"),
        ("NVIDIA B200", "SXM4"),
        ("NVIDIA GB200", "MODULE4"),
        ("NVIDIA H100 NVL", None),
        ("NVIDIA H200 NVL", None),
        ("NVIDIA H100 PCIe", None),
        ("NVIDIA A40", None),
        ("Tesla T4", None),
        (None, None),
    ],
)
def test_only_boards_in_sockets_have_a_socket(model, label):
    labels = nvidia.slot_labels([Device(model=model, pci_address="0000:18:00.0", module_id=4)])
    assert labels == ({"0000:18:00.0": label} if label else {})


# --------------------------------------------------------------------------------------------------
# Health: ok needs evidence
# --------------------------------------------------------------------------------------------------

HEALTH = [
    ({}, "unknown", []),
    ({"remapped_rows": "N/A", "gpu_recovery_action": "N/A"}, "unknown", []),
    ({"gpu_recovery_action": "None"}, "ok", []),
    ({"ecc_errors__volatile__dram_uncorrectable": "0"}, "ok", []),
    # Said by checks of their own; here they only prove that the card tells about itself.
    ({"ecc_errors__volatile__dram_uncorrectable": "3"}, "ok", []),
    ({"ecc_errors__volatile__sram_uncorrectable_secded": "1", "gpu_recovery_action": "None"}, "ok", []),
    ({"remapped_rows__remapped_row_pending": "Yes"}, "ok", []),
    ({"remapped_rows__remapped_row_failure": "Yes"}, "ok", []),
    # The reset that a repair waits for is said once, as the repair.
    ({"remapped_rows__remapped_row_pending": "Yes", "gpu_recovery_action": "GPU Reset"}, "ok", []),
    ({"gpu_recovery_action": "GPU Reset"}, "critical", ["gpu_recovery_action: GPU Reset"]),
    ({"gpu_reset_status__reset_required": "Yes"}, "critical", ["gpu_reset_status/reset_required: Yes"]),
    ({"clocks_event_reasons__clocks_event_reason_hw_thermal_slowdown": "Active"}, "ok", []),
    ({"clocks_throttle_reasons__clocks_throttle_reason_hw_power_brake_slowdown": "Active"}, "ok", []),
    ({"clocks_event_reasons__clocks_event_reason_sw_power_cap": "Active"}, "unknown", []),
    ({"fabric__health__summary": "Unhealthy"}, "warning", ["fabric/health/summary: Unhealthy"]),
    # What is neither yes nor no proves nothing.
    ({"remapped_rows__remapped_row_failure": "Unknown"}, "unknown", []),
    ({"remapped_rows__remapped_row_failure": "1"}, "unknown", []),
    ({"clocks_event_reasons__clocks_event_reason_hw_slowdown": "Yes"}, "ok", []),
    ({"power_smoothing": "Insufficient Permissions", "gpu_recovery_action": "None"}, "ok", []),
    (
        {"ecc_mode__current_ecc": "Reset Required", "gpu_recovery_action": "None"},
        "critical",
        ["Reset Required: current_ecc"],
    ),
    ({"processes": "Unknown Error", "gpu_recovery_action": "None"}, "warning", ["Unknown Error: processes"]),
    # Supported but not readable now: a sign of a sick card, wherever it stands.
    ({"fan_speed": "ERR!", "gpu_recovery_action": "None"}, "warning", ["ERR!: fan_speed"]),
    ({"remapped_rows": "Unknown Error", "gpu_recovery_action": "None"}, "warning", ["Unknown Error: remapped_rows"]),
    (
        {"temperature__gpu_temp": "GPU requires reset", "utilization__gpu_util": "GPU requires reset"},
        "critical",
        ["GPU requires reset: gpu_temp, gpu_util"],
    ),
    # Seen on healthy cards: a field for other eyes is no sign.
    ({"power_smoothing": "Insufficient Permissions", "gpu_recovery_action": "None"}, "ok", []),
    # Names of programs may say anything.
    ({"processes__process_info__process_name": "Unknown Error", "gpu_recovery_action": "None"}, "ok", []),
]


@pytest.mark.parametrize(("fields", "state", "reasons"), HEALTH)
def test_health(fields, state, reasons):
    (device,) = nvidia.parse_query(document(card(**fields))).devices
    assert device.health == Health(state, reasons)


@pytest.mark.parametrize(
    ("pstate", "utilisation", "expected"),
    [
        ("P0", "97 %", True),
        ("P2", "3 %", True),
        ("P0", "0 %", False),
        ("P8", "0 %", False),
        ("P8", "12 %", False),
        ("P8", "N/A", False),
        ("P0", "N/A", None),
        (None, "40 %", True),
        (None, None, None),
        ("Unknown Error", "GPU is lost", None),
    ],
)
def test_under_load(pstate, utilisation, expected):
    assert nvidia.under_load(pstate, utilisation) is expected


@pytest.mark.parametrize(
    ("section", "driver", "mode"),
    [
        (
            "<mig_mode><current_mig>Enabled</current_mig><pending_mig>Enabled</pending_mig></mig_mode>",
            "570.86.15",
            "MIG",
        ),
        (
            "<mig_mode><current_mig>Disabled</current_mig><pending_mig>Enabled</pending_mig></mig_mode>",
            "570.86.15",
            "whole",
        ),
        ("<mig_mode><current_mig>N/A</current_mig></mig_mode>", "570.86.15", "not_splittable"),
        ("<mig_mode><current_mig>[Not Supported]</current_mig></mig_mode>", "470.82", "not_splittable"),
        ("<mig_mode><current_mig>Unknown Error</current_mig></mig_mode>", "570.86.15", None),
        ("<mig_mode><current_mig>On</current_mig></mig_mode>", "570.86.15", None),
        ("<mig_mode></mig_mode>", "570.86.15", None),
        ("", "450.51.06", None),
        ("", "418.87", "not_splittable"),
        ("", "", None),
    ],
)
def test_whether_a_card_is_split(section, driver, mode):
    (device,) = nvidia.parse_query(document(card().replace("</gpu>", f"{section}</gpu>"), driver=driver)).devices
    assert (device.partition_mode, device.logical) == (mode, [])


@pytest.mark.parametrize("count", ["", "N/A"])
def test_an_answer_without_cards_is_no_host_without_cards(count):
    """A generation to come may call them something else."""
    with pytest.raises(Unreadable, match="no gpu in the answer"):
        nvidia.parse_query(document(attached=count))
    assert nvidia.parse_query(document(attached=0)).devices == []


def test_values_that_are_none():
    fields = {
        "product_name": "N/A",
        "fb_memory_usage__total": "Not Supported",
        "vbios_version": "N/A",
        "minor_number": "N/A",
        "gpu_module_id": "N/A",
        "pci__pci_device_id": "[REDACTED]",
        "performance_state": "N/A",
    }
    (device,) = nvidia.parse_query(document(card(serial="0", uuid="[N/A]", **fields))).devices
    assert device == Device(
        index=0,
        vendor="nvidia",
        pci_address="0000:18:00.0",
        driver_version="570.86.15",
        source="nvidia-smi 570.86.15",
    )


def test_a_card_with_a_damaged_address_stays_a_card():
    text = document(card().replace("00000000:18:00.0", "000:BA:80.0"))
    (device,) = nvidia.parse_query(text).devices
    assert device.pci_address is None
    assert device.serial == "0990100000001"


# --------------------------------------------------------------------------------------------------
# One command on a healthy host
# --------------------------------------------------------------------------------------------------


def test_a_healthy_host_costs_one_command():
    files = {
        "/sys/module/nvidia/version": "550.54.15\n",
        "/dev/nvidia0": "",
        "/dev/nvidia1": "",
        "/dev/nvidiactl": "",
    }
    answer, tool, runner = ask(
        {ALL: (0, own("q-x_550_2xL40S_v12.xml"), "")}, "0000:3d:00.0", "0000:bd:00.0", files=files
    )
    assert runner.calls == [ALL]
    assert answer.count == 2
    assert [device.device_nodes for device in answer.devices] == [["/dev/nvidia1"], ["/dev/nvidia0"]]
    assert answer.drivers == [Driver("nvidia", "550.54.15", "550.54.15", True)]
    assert (tool.name, tool.vendor, tool.state, tool.version) == ("nvidia-smi", "nvidia", TOOL_OK, "550.54.15")
    assert (tool.rc, tool.reason, tool.excerpt, tool.command) == (0, None, "", "nvidia-smi -q -x")
    assert (answer.errors, answer.lost, answer.hung) == ([], [], [])


def test_nodes_that_do_not_exist_are_not_listed():
    answer, _tool, _runner = ask({ALL: (0, own("q-x_550_2xL40S_v12.xml"), "")}, files={"/dev/nvidia1": ""})
    assert [device.device_nodes for device in answer.devices] == [["/dev/nvidia1"], []]


def test_nodes_of_a_card_that_only_the_kernel_tells_of():
    path = "/proc/driver/nvidia/gpus/0000:06:00.0/information"
    runner = RecordedRunner(
        files={
            path: "Model: \t NVIDIA H200\nDevice Minor: \t 11\nGPU Excluded:\t No\n",
            "/dev/nvidia11": "",
            "/dev/nvidia1": "",
        }
    )
    assert nvidia.Nvidia().device_nodes(runner, Device(pci_address="0000:06:00.0")) == ["/dev/nvidia11"]
    assert nvidia.Nvidia().device_nodes(runner, Device(pci_address="0000:07:00.0")) == []


def test_no_tool():
    runner = RecordedRunner(files={"/sys/module/nvidia/version": "570.86.15"})
    answer = nvidia.Nvidia().query(runner, functions("0000:18:00.0"), 7)
    assert [tool.state for tool in answer.tools] == [TOOL_ABSENT]
    assert answer.count is None
    assert answer.drivers == [Driver("nvidia", "570.86.15", None, True)]
    assert runner.calls == []


def test_the_exit_code_decides_nothing():
    text = document(card(gpu_recovery_action="None"))
    answer, tool, runner = ask({ALL: (14, text, "WARNING: infoROM is corrupted at gpu 0000:18:00.0\n")}, "0000:18:00.0")
    assert runner.calls == [ALL]
    assert (answer.count, tool.state, tool.rc) == (1, TOOL_OK, 14)
    assert tool.excerpt == "WARNING: infoROM is corrupted at gpu 0000:18:00.0"
    assert answer.errors == ["nvidia-smi -q -x: WARNING: infoROM is corrupted at gpu 0000:18:00.0"]


def test_words_after_the_document_concern_their_card():
    text = document(card(gpu_recovery_action="None"), card("2a", gpu_recovery_action="None"))
    answer, tool, _runner = ask({ALL: (14, text + "WARNING: infoROM is corrupted at gpu 0000:2A:00.0\n", "")})
    assert [device.health for device in answer.devices] == [
        Health("ok"),
        Health("warning", ["infoROM is corrupted"]),
    ]
    assert tool.state == TOOL_OK
    assert "infoROM" in tool.excerpt


def test_an_exit_code_without_a_word_is_told():
    text = document(card(gpu_recovery_action="None"))
    answer, tool, _runner = ask({ALL: (14, text, "")}, "0000:18:00.0")
    assert (tool.state, answer.count) == (TOOL_OK, 1)
    assert answer.errors == ["nvidia-smi -q -x: exit code 14 and no text"]


# --------------------------------------------------------------------------------------------------
# Lost and hung cards
# --------------------------------------------------------------------------------------------------

NO_HANDLE = "Unable to determine the device handle for"
BUSES = ["18", "2a", "3a", "5d", "9a", "ab", "ba", "db"]
ADDRESSES = [f"0000:{bus}:00.0" for bus in BUSES]
OTHERS = [address for address in ADDRESSES if address != "0000:ba:00.0"]


def answers_alone(*addresses):
    return {
        alone(address): (
            0,
            document(card(address[5:7], serial=f"09901000000{n:02}", uuid=f"GPU-{n:08}-0001"), attached=1),
            "",
        )
        for n, address in enumerate(addresses)
    }


@pytest.mark.parametrize("which", ["a", "b"])
@pytest.mark.parametrize("rc", [0, 2, 15])
def test_case_01_one_lost_card_does_not_hide_the_others(cases, which, rc):
    said = (cases / f"01-nvidia-gpu-lost/stdout_{which}.txt").read_text()
    answer, tool, runner = ask({ALL: (rc, said, ""), **answers_alone(*OTHERS)}, *ADDRESSES)
    assert answer.lost == ["0000:ba:00.0"]
    assert [device.pci_address for device in answer.devices] == OTHERS
    assert answer.count == 7
    assert {device.index for device in answer.devices} == {None}
    assert (tool.state, tool.rc, tool.excerpt) == (TOOL_FAILED, rc, said.strip())
    assert len(runner.calls) == 8  # the lost one is not asked again


@pytest.mark.parametrize("which", ["a", "b"])
def test_case_01_nobody_answers_alone_either(cases, which):
    said = (cases / f"01-nvidia-gpu-lost/stdout_{which}.txt").read_text()
    answer, tool, _runner = ask({ALL: (15, said, ""), **{alone(a): (15, said, "") for a in OTHERS}}, *ADDRESSES)
    assert answer.lost == ["0000:ba:00.0"]
    assert answer.devices == []
    assert answer.count is None
    assert tool.state == TOOL_FAILED


@pytest.mark.parametrize("which", ["a", "b"])
def test_a_lost_card_is_told_and_then_that_there_are_none(cases, which):
    """The rest of the answer is about the rest of the answer: the seven others are asked all the same."""
    said = (cases / f"01-nvidia-gpu-lost/stdout_{which}.txt").read_text() + "No devices were found\n"
    answer, tool, _runner = ask({ALL: (6, said, ""), **answers_alone(*OTHERS)}, *ADDRESSES)
    assert answer.lost == ["0000:ba:00.0"]
    assert [device.pci_address for device in answer.devices] == OTHERS
    assert (answer.count, tool.state, tool.reason) == (7, TOOL_FAILED, None)


def test_case_01_the_driver_lists_nothing(cases):
    said = (cases / "01-nvidia-gpu-lost/stdout_c.txt").read_text()
    answer, tool, runner = ask({ALL: (6, said, "")}, *ADDRESSES)
    assert (answer.count, answer.devices, answer.lost) == (0, [], [])
    assert (tool.state, tool.reason) == (TOOL_OK, "no_devices")
    assert runner.calls == [ALL]


@pytest.mark.parametrize(
    ("said", "lost"),
    [
        (
            f"{NO_HANDLE} GPU 0000:02:00.0: GPU is lost. Reboot the system",
            ["0000:02:00.0"],
        ),
        (f"{NO_HANDLE} GPU0000:17:00.0: Unknown Error", ["0000:17:00.0"]),
        (f"{NO_HANDLE} GPU1: 0000:34:00.0: Unknown Error", ["0000:34:00.0"]),
        (
            f"{NO_HANDLE} GPU 0000:03:00.0: GPU is lost.  Reboot\n the system",
            ["0000:03:00.0"],
        ),
        ("unable to determine the device handle for gpu 00000009:01:00.0: Unknown Error", ["0009:01:00.0"]),
        (
            "\n".join(f"{NO_HANDLE} GPU{n}: 0000:0{n}:00.0: Unknown Error" for n in (1, 2)),
            ["0000:01:00.0", "0000:02:00.0"],
        ),
        (f"{NO_HANDLE} GPU 000:BA:80.0: Unknown Error", []),
        (f"{NO_HANDLE} GPU1: Unknown Error", []),
        ("", []),
    ],
)
def test_lost_addresses_in_every_spelling(said, lost):
    assert nvidia.parse_failure(said).lost == lost


def test_a_damaged_address_is_found_by_asking_each_card():
    said = f"{NO_HANDLE} GPU 000:BA:80.0: Unknown Error\n"
    known = f"{NO_HANDLE} GPU 0000:BA:00.0: Unknown Error\n"
    answer, tool, _runner = ask(
        {ALL: (2, said, ""), **answers_alone(*OTHERS), alone("0000:ba:00.0"): (2, known, "")}, *ADDRESSES
    )
    assert answer.lost == ["0000:ba:00.0"]
    assert answer.count == 7
    assert said.strip() in tool.excerpt


def test_newer_drivers_name_the_lost_card_and_go_on():
    said = f"{NO_HANDLE} GPU1: 0000:2A:00.0: Unknown Error\n"
    answer, tool, runner = ask({ALL: (0, said + document(card(), attached=2), "")}, "0000:18:00.0", "0000:2a:00.0")
    assert runner.calls == [ALL]
    assert (answer.count, answer.lost, tool.state) == (1, ["0000:2a:00.0"], TOOL_OK)
    assert tool.excerpt == said.strip()


def test_a_card_that_says_itself_that_it_is_lost():
    text = document(card(), card("2a", serial="0990100000002", uuid="GPU-2", fb_memory_usage__total="GPU is lost"))
    answer, tool, _runner = ask({ALL: (0, text, "")}, "0000:18:00.0", "0000:2a:00.0")
    assert [device.pci_address for device in answer.devices] == ["0000:18:00.0"]
    assert (answer.count, answer.lost, tool.state) == (1, ["0000:2a:00.0"], TOOL_OK)
    assert (answer.last["0000:2a:00.0"].serial, answer.last["0000:2a:00.0"].uuid) == ("0990100000002", "GPU-2")


def test_one_card_hangs():
    answer, tool, runner = ask({ALL: HANG, **answers_alone(*OTHERS), alone("0000:ba:00.0"): HANG}, *ADDRESSES)
    assert answer.hung == ["0000:ba:00.0"]
    assert answer.lost == []
    assert (answer.count, tool.state, tool.rc) == (7, TOOL_HUNG, None)
    assert "0000:ba:00.0" in tool.excerpt
    assert "nvidia-smi -q -x -i 0000:ba:00.0: no answer in time" in answer.errors
    assert len(runner.calls) == 9


def test_a_card_is_lost_and_another_hangs():
    said = f"{NO_HANDLE} GPU 0000:BA:00.0: Unknown Error\n"
    healthy = [address for address in OTHERS if address != "0000:18:00.0"]
    answer, tool, _runner = ask(
        {ALL: (2, said, ""), **answers_alone(*healthy), alone("0000:18:00.0"): HANG}, *ADDRESSES
    )
    assert (answer.lost, answer.hung, answer.count) == (["0000:ba:00.0"], ["0000:18:00.0"], 6)
    assert tool.state == TOOL_HUNG


def test_everything_hangs():
    answer, tool, _runner = ask({ALL: HANG, **{alone(a): HANG for a in ADDRESSES}}, *ADDRESSES)
    assert (answer.count, answer.devices, answer.hung) == (None, [], ADDRESSES)
    assert tool.state == TOOL_HUNG


def test_a_tool_that_hangs_where_the_bus_shows_nothing():
    answer, tool, runner = ask({ALL: HANG})
    assert (answer.count, tool.state, runner.calls) == (None, TOOL_HUNG, [ALL])


def test_a_card_given_to_a_guest_is_not_asked():
    cards = functions("0000:18:00.0") + functions("0000:2a:00.0", driver="vfio-pci")
    runner = RecordedRunner({ALL: HANG, **answers_alone("0000:18:00.0")})
    answer = nvidia.Nvidia().query(runner, cards, 7)
    assert runner.calls == [ALL, alone("0000:18:00.0")]
    assert answer.count == 1


def test_an_answer_that_describes_too_few_is_completed():
    answer, tool, _runner = ask(
        {ALL: (0, document(card(), attached=2), ""), **answers_alone("0000:2a:00.0")}, "0000:18:00.0", "0000:2a:00.0"
    )
    assert [device.pci_address for device in answer.devices] == ["0000:18:00.0", "0000:2a:00.0"]
    assert (answer.count, tool.state) == (2, TOOL_FAILED)
    assert "2 cards are attached, 1 described" in answer.errors[0]


# --------------------------------------------------------------------------------------------------
# The driver is the trouble
# --------------------------------------------------------------------------------------------------


def test_case_03_library_moved_on(cases):
    folder = cases / "03-nvml-version-mismatch"
    answer, tool, runner = ask(
        {ALL: (18, (folder / "smi_stdout.txt").read_text(), "")},
        *ADDRESSES,
        files={"/proc/driver/nvidia/version": (folder / "proc_driver_nvidia_version.txt").read_text()},
    )
    assert runner.calls == [ALL]  # asking each card alone would only say the same eight times
    assert (tool.state, tool.reason) == (TOOL_FAILED, "driver_library_mismatch")
    assert (answer.count, answer.devices, answer.lost) == (None, [], [])
    assert answer.drivers == [Driver("nvidia", kernel_version="570.86.15", library_version="570.124", loaded=True)]


def test_case_03_not_loaded(cases):
    said = (cases / "03-nvml-version-mismatch/smi_stdout_not_loaded.txt").read_text()
    answer, tool, runner = ask({ALL: (9, said, "")}, *ADDRESSES)
    assert runner.calls == [ALL]
    assert (tool.state, tool.reason) == (TOOL_FAILED, "driver_not_loaded")
    assert (answer.count, answer.devices) == (None, [])
    assert answer.drivers == [Driver("nvidia", None, None, False)]


def test_kernel_version_of_the_open_module():
    line = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (dvs-builder)\n"
    runner = RecordedRunner(files={"/proc/driver/nvidia/version": line})
    answer = nvidia.Nvidia().query(runner, [], 7)
    assert answer.drivers == [Driver("nvidia", "580.95.05", None, True)]


def test_errors_may_come_on_the_other_stream():
    answer, tool, _runner = ask({ALL: (4, "", "Failed to initialize NVML: Insufficient Permissions\n")}, "0000:18:00.0")
    assert (answer.count, tool.state, tool.reason) == (None, TOOL_FAILED, "no_permission")


# --------------------------------------------------------------------------------------------------
# Unpleasant answers: never an exception, never a device, the raw text kept
# --------------------------------------------------------------------------------------------------

GOOD = own("q-x_470_2xA100-SXM4_v11.xml")
UNPLEASANT = {
    "empty": "",
    "blank": "  \n\t\n",
    "half": GOOD[: len(GOOD) // 2],
    "only the head": GOOD[:60],
    "other XML": "<?xml version='1.0'?><html><body>502 Bad Gateway</body></html>",
    "HTML": "<!DOCTYPE html><html><head><title>Sign in</title></head><body>Please sign in<br></body></html>",
    "binary": bytes(range(256)).decode("utf-8", "replace") * 20,
    "zeros": "\0" * 4096,
    "UTF-16 read as UTF-8": GOOD.encode("utf-16").decode("utf-8", "replace"),
    "ten megabytes": "NVIDIA " * 1_500_000,
    "ten megabytes of XML": "<nvidia_smi_log>" + "<gpu>" * 2_000_000,
    "JSON": '{"gpu": []}',
    "tags crossed": GOOD.replace("</pci>", "</gpu>", 1),
    "two documents interleaved": GOOD[:5000] + GOOD,
    "a table": "| N/A   31C    P0    70W / 700W |      0MiB / 81559MiB |      0%      Default |",
}


@pytest.mark.parametrize("name", UNPLEASANT)
@pytest.mark.parametrize("rc", [0, 1])
def test_unpleasant_answers(name, rc):
    text = UNPLEASANT[name]
    answers = {ALL: (rc, text, ""), alone("0000:07:00.0"): (rc, text, ""), CSV: (rc, text, "")}
    answer, tool, _runner = ask(answers, "0000:07:00.0")
    assert tool.state in (TOOL_UNREADABLE, TOOL_FAILED)
    if rc == 0:
        assert tool.state == TOOL_UNREADABLE
    assert (answer.count, answer.devices, answer.lost) == (None, [], [])
    assert answer.errors
    assert len(tool.excerpt) < 2100
    if text.strip(" \n\t"):
        assert tool.excerpt
        assert all(character.isprintable() or character in "\n\t" for character in tool.excerpt)


@pytest.mark.parametrize(
    "name",
    ["q-x_390_1xV100_v9.xml", "q-x_470_2xA100-SXM4_v11.xml", "q-x_550_2xL40S_v12.xml", "q-x_580_2xH200_mig_v13.xml"],
)
def test_a_cut_answer_is_never_taken_for_a_whole_one(name):
    text = own(name)
    whole = text.rstrip()
    for length in range(0, len(text), 50):
        if length >= len(whole):
            continue
        with pytest.raises(nvidia.Unreadable):
            nvidia.parse_query(text[:length])


def test_a_cut_list_or_table_gives_no_more_than_it_holds():
    text = own("L_580_2xH200_mig.txt")
    for length in range(0, len(text), 50):
        for uuid, instances in nvidia.parse_list(text[:length]).items():
            assert f"(UUID: {uuid})" in text
            assert len(instances) <= 3
    table = own("query-gpu_580_3xH200.csv")
    for length in range(0, len(table), 50):
        try:
            found = nvidia.parse_csv(table[:length])
        except nvidia.Unreadable:
            continue
        assert all(device.pci_address in ("0000:1b:00.0", "0000:43:00.0", "0000:ba:00.0") for device in found)


def test_a_damaged_answer_is_made_up_for_by_asking_each_card():
    answer, tool, _runner = ask(
        {ALL: (0, document(card(), card("2a"))[:-30], ""), **answers_alone("0000:18:00.0", "0000:2a:00.0")},
        "0000:18:00.0",
        "0000:2a:00.0",
    )
    assert answer.count == 2
    assert tool.state == TOOL_UNREADABLE


BOTH = ("0000:18:00.0", "0000:2a:00.0")


def test_csv_is_the_last_resort():
    half = document(card())[:-30]
    addresses = ["0000:1b:00.0", "0000:43:00.0", "0000:ba:00.0"]
    answer, tool, runner = ask(
        {
            ALL: (0, half, ""),
            **{alone(address): (0, half, "") for address in addresses},
            CSV: (0, own("query-gpu_580_3xH200.csv"), ""),
        },
        *addresses,
    )
    assert runner.calls[-1] == CSV
    assert (answer.count, tool.state) == (3, TOOL_UNREADABLE)
    assert [device.serial for device in answer.devices] == ["0990825000311", None, "0990825000325"]


def test_csv_rows():
    first, second, third = nvidia.parse_csv(own("query-gpu_580_3xH200.csv"))
    assert first == Device(
        index=0,
        vendor="nvidia",
        model="NVIDIA H200",
        serial="0990825000311",
        uuid="GPU-2c3d4e5f-6071-4822-9333-444455556666",
        pci_address="0000:1b:00.0",
        driver_version="580.95.05",
        firmware_version="96.00.A5.00.03",
        memory_bytes=143771 * MIB,
        link=Link(under_load=True),
        health=Health("ok"),
        ecc=Ecc(uncorrected_volatile=0),
        source="nvidia-smi",
    )
    assert (second.serial, second.memory_bytes, second.link.under_load) == (None, None, False)
    assert second.health == Health("warning", ["can't be read: [Unknown Error]"])
    assert third.health == Health("critical", ["the card requires a reset"])


@pytest.mark.parametrize(
    "row",
    [
        "",
        "index, name, serial",
        "0, NVIDIA H200, 0990825000311, GPU-2c3d, 0000:1B:00.0, 580.95.05, 96.00, 143771, P0, 97",
        "0, NVIDIA, H200, 0990825000311, GPU-2c3d, 0000:1B:00.0, 580.95.05, 96.00, 143771, P0, 97, 0",
        "0, NVIDIA H200, 0990825000311, GPU-2c3d, nowhere, 580.95.05, 96.00, 143771, P0, 97, 0",
        'Field "serial" is not a valid field to query.',
    ],
)
def test_csv_that_is_none(row):
    with pytest.raises(nvidia.Unreadable):
        nvidia.parse_csv(f"{row}\n")


def test_csv_without_an_end_is_cut_off():
    """Half of "12" errors is another number."""
    with pytest.raises(nvidia.Unreadable, match="the last row has no end: 2, NVIDIA H200"):
        nvidia.parse_csv(own("query-gpu_580_3xH200.csv").rstrip("\n"))


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_a_card_whose_answer_nobody_can_read_is_not_counted_as_missing(rows):
    half = document(card())[:-30]
    addresses = ["0000:1b:00.0", "0000:43:00.0", "0000:ba:00.0"]
    table = "".join(own("query-gpu_580_3xH200.csv").splitlines(keepends=True)[:rows])
    answer, tool, _runner = ask(
        {ALL: (0, half, ""), **{alone(address): (0, half, "") for address in addresses}, CSV: (0, table, "")},
        *addresses,
    )
    assert (answer.count, tool.state, len(answer.devices)) == (None, TOOL_UNREADABLE, rows)


def test_one_answer_that_nobody_can_read_leaves_the_number_open():
    answers = answers_alone("0000:18:00.0", "0000:2a:00.0")
    answers[alone("0000:2a:00.0")] = (1, "\x7fELF\x02\x01", "")
    answer, tool, _runner = ask({ALL: (1, "\x7fELF\x02\x01", ""), CSV: (1, "\x7fELF", ""), **answers}, *BOTH)
    assert (answer.count, tool.state) == (None, TOOL_UNREADABLE)
    assert [device.pci_address for device in answer.devices] == ["0000:18:00.0"]


def test_a_card_that_fails_in_words_is_counted_as_one_that_did_not_answer():
    answers = answers_alone("0000:18:00.0", "0000:2a:00.0")
    answers[alone("0000:2a:00.0")] = (1, "Something new went wrong\n", "")
    answer, _tool, _runner = ask({ALL: (1, "Something new went wrong\n", ""), CSV: (1, "", ""), **answers}, *BOTH)
    assert (answer.count, [device.pci_address for device in answer.devices]) == (1, ["0000:18:00.0"])


@pytest.mark.parametrize(
    ("rc", "said", "state"),
    [
        (1, "Segmentation fault\n", TOOL_FAILED),
        (139, "", TOOL_FAILED),
        (1, "\x7fELF\x02", TOOL_UNREADABLE),
        (0, "\ufffd\ufffd", TOOL_UNREADABLE),
        (1, document(card())[:-30], TOOL_UNREADABLE),
        (0, "Segmentation fault\n", TOOL_UNREADABLE),
    ],
)
def test_damaged_is_not_refused(rc, said, state):
    """What is readable and comes with an exit code is the tool's reason; what is not is damaged."""
    answers = {alone(address): (rc, said, "") for address in BOTH}
    answer, tool, _runner = ask({ALL: (rc, said, ""), CSV: (rc, said, ""), **answers}, *BOTH)
    assert (tool.state, answer.count, answer.devices) == (state, None, [])
    assert tool.excerpt == said.replace("\x7f", "\ufffd").replace("\x02", "\ufffd").strip()


def test_names_of_programs_may_break_the_document():
    name = "python3 -c 'a && b < c' \x1b[31m \x00"
    fields = {"processes__process_info__process_name": name, "gpu_recovery_action": "None"}
    (device,) = nvidia.parse_query(document(card(**fields))).devices
    assert device.serial == "0990100000001"
    assert device.health == Health("ok")


def test_words_in_fields_are_not_the_tools_words():
    """A cut document with "Insufficient Permissions" in a field is damaged, not forbidden."""
    text = document(card(power_smoothing="Insufficient Permissions", fan_speed="No devices were found"))
    answer, tool, _runner = ask({ALL: (0, text[:-30], ""), **answers_alone("0000:18:00.0")}, "0000:18:00.0")
    assert (answer.count, tool.state, tool.reason) == (1, TOOL_UNREADABLE, None)


# --------------------------------------------------------------------------------------------------
# Recordings of real tools; expected values are read from the files by eye
# --------------------------------------------------------------------------------------------------

RECORDED = {
    # name: driver, count, first card: model, serial, uuid, address, id, module, MiB, firmware, health
    "q-x_418_quadro-p400.xml": (
        "418.43", 1, "Quadro P400", "0424418054852", "GPU-8f750be4-dfbc-23b9-b33f-da729a536494",
        "0000:43:00.0", "10de:1cb3", None, 1998, "86.07.3B.00.4A", "ok",
    ),
    "q-x_4xx_gtx1070ti_v10_minimal.xml": (
        None, 1, "GeForce GTX 1070 Ti", None, "GPU-f9ba66fc-a7f5-94c5-da19-019ef2f9c665",
        "0000:01:00.0", None, None, 4096, None, "unknown",
    ),
    "q-x_515_a10g_ec2_v11.xml": (
        "515.105.01", 1, "NVIDIA A10G", None, "GPU-9a9a6c50-2a47-2f51-a902-b82c3b127e94",
        "0000:00:1e.0", None, 0, 23028, "94.02.75.00.01", "ok",
    ),
    "q-x_536_rtx3080_windows_v12.xml": (
        "536.40", 1, "NVIDIA GeForce RTX 3080", None, "GPU-19d6d965-2acc-f646-00f8-4c76979aabb4",
        "0000:04:00.0", "10de:2216", 1, 10240, "94.02.71.40.72", "ok",
    ),
    "q-x_570_8xH100-SXM_v12.xml": (
        "570.86.15", 8, "NVIDIA H100 80GB HBM3", "1652923034028", "GPU-ab6ab95d-8259-5551-5962-e4a7a710fbae",
        "0000:04:00.0", "10de:2330", 4, 81559, "96.00.A5.00.01", "ok",
    ),
    "q-x_595_rtx4000-sff-ada_v13.xml": (
        "595.84", 1, "NVIDIA RTX 4000 SFF Ada Generation", None, "GPU-37037c3f-65c8-ec4d-24a9-420204ad8026",
        "0000:06:00.0", "10de:27b0", 1, 20475, "95.04.53.00.01", "ok",
    ),
    "q-x_hw_gb300.xml": (
        "580.173.02", 4, "NVIDIA GB300", "1650000000001", None,
        "0008:06:00.0", "10de:31c2", 2, 284208, "97.10.4A.00.1A", "ok",
    ),
    "q-x_hw_t4.xml": (
        "595.91.07", 1, "Tesla T4", "1650000000001", None,
        "0000:00:1e.0", "10de:1eb8", 1, 15360, "90.04.96.00.02", "ok",
    ),
    "q-x_mocknvml_gb200-ecc-injected.xml": (
        "580.65.06", 2, "NVIDIA GB200", "1562849103700", "GPU-b200b200-0000-0000-0000-000000000000",
        "0000:0a:00.0", "10de:2341", 1, 196608, "96.00.9E.00.01", "ok",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_xml(recordings, name):
    driver, count, *expected = RECORDED[name]
    query = nvidia.parse_query((recordings / "nvidia" / name).read_text())
    first = query.devices[0]
    assert (query.driver_version, len(query.devices), query.lost) == (driver, count, {})
    assert [
        first.model, first.serial, first.uuid, first.pci_address, first.pci_id, first.module_id,
        first.memory_bytes // MIB, first.firmware_version, first.health.state,
    ] == expected  # fmt: skip


def test_recorded_module_numbers(recordings):
    devices = nvidia.parse_query((recordings / "nvidia/q-x_570_8xH100-SXM_v12.xml").read_text()).devices
    assert [device.module_id for device in devices] == [4, 2, 1, 3, 8, 6, 5, 7]
    assert nvidia.slot_labels(devices)["0000:8c:00.0"] == "SXM7"
    devices = nvidia.parse_query((recordings / "nvidia/q-x_hw_b200.xml").read_text()).devices
    assert [device.module_id for device in devices] == [6, 8, 7, 5, 2, 4, 3, 1]


def test_recorded_boards_with_two_chips(recordings):
    devices = nvidia.parse_query((recordings / "nvidia/q-x_hw_gb300.xml").read_text()).devices
    assert [device.serial for device in devices] == ["1650000000001"] * 2 + ["1650000000002"] * 2
    assert [device.pci_address for device in devices] == [
        f"{domain}:06:00.0" for domain in ("0008", "0009", "0018", "0019")
    ]
    assert {device.link.max_speed_gts for device in devices} == {64.0}


def test_recorded_lost_card(recordings):
    answer, tool, _runner = ask(
        {ALL: (0, (recordings / "nvidia/q-x_mocknvml_gb200-lost.xml").read_text(), "")}, "0000:0a:00.0", "0000:0b:00.0"
    )
    assert [device.pci_address for device in answer.devices] == ["0000:0a:00.0"]
    assert (answer.lost, answer.count, tool.state) == (["0000:0b:00.0"], 1, TOOL_OK)
    assert answer.last["0000:0b:00.0"].serial == "1562849103701"


def test_recorded_fabric_trouble(recordings):
    text = (recordings / "nvidia/q-x_mocknvml_gb200-fabric-degraded.xml").read_text()
    first, second = nvidia.parse_query(text).devices
    assert (first.serial, first.health) == ("1562849103700", Health("ok"))
    assert second.serial == "1562849103701"
    assert second.health == Health("warning", ["fabric/health/summary: Unhealthy"])


def test_recorded_text_that_is_no_xml(recordings):
    text = (recordings / "nvidia/q_535.183_H100_invalid-truncated.txt").read_text()
    with pytest.raises(nvidia.Unreadable):
        nvidia.parse_query(text)


def test_recorded_errors(recordings):
    folder = recordings / "nvidia"
    mismatch = nvidia.parse_failure((folder / "err_driver-library-mismatch_570.txt").read_text())
    assert (mismatch.reason, mismatch.library_version) == ("driver_library_mismatch", "570.124")
    assert nvidia.parse_failure((folder / "err_driver-not-loaded.txt").read_text()).reason == "driver_not_loaded"
    assert nvidia.parse_failure((folder / "error_texts.txt").read_text()).lost == [
        "0000:02:00.0",
        "0000:03:00.0",
        "0000:0b:00.0",
        "0000:17:00.0",
        "0000:07:00.0",
    ]


def test_recorded_csv(recordings):
    fields = ("index", "name", "memory.total", "memory.used", "utilization.gpu", "temperature.gpu", "pci.bus_id")
    # Who copied these left out the end of the last line.
    rows = nvidia.parse_csv((recordings / "nvidia/query-gpu_4xL20_csv.txt").read_text().rstrip() + "\n", fields)
    assert [row.pci_address for row in rows] == ["0000:16:00.0", "0000:19:00.0", "0000:1a:00.0", "0000:1d:00.0"]
    assert {row.model for row in rows} == {"NVIDIA L20"}
    fields = ("index", "uuid", "name", "pci.bus_id", *("x",) * 7)
    sick = (recordings / "nvidia/query-gpu_edge_reset-required_csv.txt").read_text().rstrip() + "\n"
    rows = nvidia.parse_csv(sick, fields)
    assert [(row.index, row.pci_address, row.health.state) for row in rows] == [
        (0, "0000:03:00.0", "unknown"),
        (1, "0000:04:00.0", "warning"),
        (2, "0000:05:00.0", "critical"),
    ]


def test_recorded_list_of_split_cards(recordings):
    cards = nvidia.parse_list((recordings / "nvidia/capture_nvidia-h200-mig__590.48.01.txt").read_text())
    assert [instance["profile"] for instance in cards["GPU-00000000-0000-0000-0000-000000000000"]] == [
        "1c.3g.71gb",
        "2c.3g.71gb",
        "2g.35gb",
        "1g.18gb",
        "1g.18gb",
    ]


def test_recorded_links_of_a_split_card(recordings):
    """With MIG the tool names the card and tells no link of it."""
    cards = nvidia.parse_nvlink((recordings / "nvidia/capture_nvidia-h200-mig__590.48.01.txt").read_text())
    assert cards == {"GPU-00000000-0000-0000-0000-000000000000": []}


def test_recorded_xml_cut_anywhere(recordings):
    for path in sorted((recordings / "nvidia").glob("q-x_hw_*.xml")):
        text = path.read_text()
        end = text.rindex("</nvidia_smi_log>")
        for length in range(0, end, 5003):
            with pytest.raises(nvidia.Unreadable):
                nvidia.parse_query(text[:length])


def test_the_order_of_answers_does_not_matter():
    """Cards that answer alone are put in the order of the bus, whichever answered first."""
    answer, _tool, _runner = ask({ALL: HANG, **answers_alone(*ADDRESSES)}, *reversed(ADDRESSES))
    assert [device.pci_address for device in answer.devices] == ADDRESSES


@pytest.mark.parametrize("filler", ["<!", "<process_name>", "<process_name>&", "<", " ", "&", "GPU 0000:"])
def test_a_long_run_of_one_sign_is_read_at_once(filler):
    started = time.process_time()
    long = filler * (200_000 // len(filler))
    for text in (long + document(card()), document(card(), long), long):
        nvidia.parse_failure(text)
        try:
            nvidia.parse_query(text)
        except nvidia.Unreadable:
            pass
    assert time.process_time() - started < 3


def test_lists_of_clocks_are_passed_over():
    clocks = "<supported_clocks><supported_mem_clock><value>ERR!</value></supported_mem_clock></supported_clocks>"
    one = card().replace("</gpu>", f"{clocks}</gpu>")
    two = card("2a", uuid="GPU-0a0a0a0a-0000-4000-8000-000000000002").replace("<serial>", f"{clocks}<serial>")
    with_clocks, without = (
        nvidia.parse_query(document(one, two)),
        nvidia.parse_query(document(one, two).replace(clocks, "")),
    )
    assert with_clocks.devices == without.devices
    assert len(with_clocks.devices) == 2
    assert with_clocks.devices[0].health.state == "unknown"
    cut = document(one, two).replace("</supported_clocks>", "")
    try:
        assert len(nvidia.parse_query(cut).devices) <= 2
    except nvidia.Unreadable:
        pass


@pytest.mark.parametrize("generation", ["-1", "-9999999999", "0", "8", "9" * 25, "N/A"])
def test_a_generation_of_the_bus_that_there_is_not_is_none(generation):
    place = "pci/pci_gpu_link_info/pcie_gen/current_link_gen"
    (device,) = nvidia.parse_query(document(card(**{place: generation}))).devices
    assert device.link.speed_gts is None
    (device,) = nvidia.parse_query(document(card(**{place: "5"}))).devices
    assert device.link.speed_gts == 32.0


# --------------------------------------------------------------------------------------------------
# Memory repair, errors, readings, links
# --------------------------------------------------------------------------------------------------

# Labels of the text form -> names of the XML, for the case that was recorded as text.
_XML_NAMES = {
    "GPU": "gpu",
    "Serial Number": "serial",
    "ECC Errors": "ecc_errors",
    "Aggregate": "aggregate",
    "SRAM Correctable": "sram_correctable",
    "SRAM Uncorrectable": "sram_uncorrectable",
    "Remapped Rows": "remapped_rows",
    "Correctable Error": "remapped_row_corr",
    "Uncorrectable Error": "remapped_row_unc",
    "Pending": "remapped_row_pending",
    "Remapping Failure Occurred": "remapped_row_failure",
}


def as_xml(text):
    """Return the text form of the tool as the XML that it stands for."""
    root = ElementTree.Element("nvidia_smi_log")
    stack = [(-1, root)]
    for line in text.splitlines():
        if line.startswith(("=", "Attached")) or not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        name, _colon, value = line.strip().partition(" : ")
        while stack[-1][0] >= indent:
            stack.pop()
        if not indent:
            gpu = ElementTree.SubElement(root, "gpu", id=line.split()[1])
            stack.append((indent, gpu))
            continue
        element = ElementTree.SubElement(stack[-1][1], _XML_NAMES[name.strip()])
        element.text = value.strip() or None
        stack.append((indent, element))
    return ElementTree.tostring(root, encoding="unicode")


def test_case_12(cases):
    """Go on, reset or reboot, replace, or not supported; the limit of 4 is the default of a variable."""
    from ansible_collections.accel.cluster.plugins.module_utils._accel import judge

    found = nvidia.parse_query(as_xml((cases / "12-row-remap-actions/smi_q.txt").read_text())).devices
    observation = {"devices": [as_dict(device) for device in found], "count": 6, "bus_count": 6}

    def verdicts(limit):
        declared = {"cluster_accelerator_count": 6, "cluster_limit_sram_uncorrected": limit}
        told = judge.judge_devices("gpu-01", observation, declared)
        return {one["subject"]: one for one in told if one["check"] == "device.memory_repair"}

    right = {
        "0000:18:00.0": ("pass", "ok"),
        "0000:2a:00.0": ("fail", "reset"),
        "0000:3a:00.0": ("fail", "replace"),
        "0000:5d:00.0": ("fail", "replace"),
        "0000:9a:00.0": ("not_applicable", "not_supported"),
        "0000:ab:00.0": ("pass", "ok"),
    }
    told = verdicts("4")
    assert {a: (one["verdict"], one["hint"].rpartition(".")[2]) for a, one in told.items()} == right
    assert "serial 9990000000103" in told["0000:3a:00.0"]["message"]
    assert "serial 9990000000104" in told["0000:5d:00.0"]["message"]
    assert "aggregate SRAM uncorrectable 6 > 4" in told["0000:5d:00.0"]["message"]
    assert "3 rows" in told["0000:ab:00.0"]["message"]
    assert verdicts(6)["0000:5d:00.0"]["verdict"] == "pass"


@pytest.mark.parametrize(
    ("fields", "repair"),
    [
        ({}, Repair("unknown")),
        ({"remapped_rows": "N/A"}, Repair("not_supported")),
        ({"remapped_rows": "Unknown Error"}, Repair("unknown")),
        ({"remapped_rows__remapped_row_pending": "Unknown Error"}, Repair("unknown")),
        ({"retired_pages__pending_retirement": "N/A"}, Repair("not_supported")),
        *(
            (
                {"remapped_rows__remapped_row_pending": "No", "remapped_rows__remapped_row_failure": word},
                Repair("unknown"),
            )
            for word in ("Unknown", "Failed", "1", "True", "Yes (3)", "N/A")
        ),
        ({"remapped_rows__remapped_row_pending": "No", "retired_pages__pending_retirement": "N/A"}, Repair("ok")),
        ({"retired_pages__pending_retirement": "No"}, Repair("ok")),
        ({"retired_pages__pending_blacklist": "Yes"}, Repair("reset")),
        (
            {"remapped_rows__remapped_row_pending": "Yes", "remapped_rows__remapped_row_failure": "Yes"},
            Repair("replace"),
        ),
        ({"remapped_rows__remapped_row_pending": "No", "remapped_rows__remapped_row_unc": "2"}, Repair("ok", 2)),
        ({"ecc_errors__aggregate__sram_threshold_exceeded": "Yes"}, Repair("replace")),
        ({"ecc_errors__channel_repair_pending": "Yes"}, Repair("reset")),
    ],
)
def test_memory_repair(fields, repair):
    (device,) = nvidia.parse_query(document(card(**fields))).devices
    assert device.repair == repair


@pytest.mark.parametrize("word", ["4294967295", "18446744073709551615", "-1", "1" * 26, "Unknown Error"])
@pytest.mark.parametrize("counter", ["volatile__sram_correctable", "aggregate__dram_uncorrectable"])
def test_a_counter_that_cannot_be_read_is_named(counter, word):
    fields = {"ecc_errors__volatile__dram_uncorrectable": "0", f"ecc_errors__{counter}": word}
    (device,) = nvidia.parse_query(document(card(**fields))).devices
    assert (device.ecc.uncorrected_volatile, device.ecc.unread) == (0, [f"ecc_errors/{counter.replace('__', '/')}"])


def test_a_counter_may_hold_what_stands_for_none_elsewhere():
    (device,) = nvidia.parse_query(document(card(ecc_errors__volatile__dram_correctable="65535"))).devices
    assert (device.ecc.corrected_volatile, device.ecc.unread) == (65535, [])


@pytest.mark.parametrize("word", ["N/A", ""])
def test_a_counter_that_only_one_of_several_cards_does_not_tell_is_not_read(word):
    dram, sram = (f"ecc_errors__volatile__{name}_uncorrectable" for name in ("dram", "sram"))
    whole, less, off = {dram: "0", sram: "0"}, {dram: "0", sram: word}, {dram: "N/A", sram: "N/A"}
    cards = [card(bus=f"1{n}", uuid=f"GPU-{n}", **fields) for n, fields in enumerate((whole, less, off))]
    found = nvidia.parse_query(document(*cards)).devices
    assert [one.ecc.unread for one in found] == [[], ["ecc_errors/volatile/sram_uncorrectable"], []]
    (other,) = nvidia.parse_query(document(card(**less))).devices
    assert other.ecc.unread == []


@pytest.mark.parametrize("odd", ["1,024", "Unknown Error", "?"])
def test_a_counter_that_cannot_be_read_makes_no_sum(odd):
    """The errors of the other memories alone look like good news."""
    part = "ecc_errors__volatile__{0}_uncorrectable"
    both = {part.format("sram"): "0", part.format("dram"): odd}
    (device,) = nvidia.parse_query(document(card(**both))).devices
    assert device.ecc.uncorrected_volatile is None
    (device,) = nvidia.parse_query(document(card(**{**both, part.format("dram"): "N/A"}))).devices
    assert device.ecc.uncorrected_volatile == 0


def test_recorded_memory_errors(recordings):
    path = recordings / "nvidia/q-x_mocknvml_gb200-ecc-injected.xml"
    first = nvidia.parse_query(path.read_text()).devices[0]
    assert first.ecc == Ecc(0, 5, 0, 8, None)
    assert first.repair == Repair("replace", 1, 0)
    # 30 degrees are left of which the last 0 slow it down.
    assert (first.readings.temperature_c, first.readings.temperature_limit_c) == (63.0, 93.0)
    assert (first.readings.power_watts, first.readings.power_limit_watts) == (565.11, 1000.0)
    assert (first.readings.throttles, first.readings.throttle_mask) == (["idle"], 1)


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (0x0, []),
        (0x1, ["idle"]),
        (0x4, ["power_cap"]),
        (0x8, ["hardware"]),
        (0x48, ["thermal"]),  # hw_slowdown comes with what it stands for
        (0x88, ["power_brake"]),
        (0x80, ["power_brake"]),
        (0x60, ["thermal"]),
        (0x112, ["application_clocks", "sync_boost", "display"]),
    ],
)
def test_throttle_masks(mask, words):
    assert nvidia.throttle_words(mask) == words


def test_throttles_of_both_spellings():
    for kind in ("event", "throttle"):
        path = f"clocks_{kind}_reasons__clocks_{kind}_reason_hw_power_brake_slowdown"
        (device,) = nvidia.parse_query(document(card(**{path: "Active"}))).devices
        assert (device.readings.throttles, device.readings.throttle_mask) == (["power_brake"], 0x80)
    (device,) = nvidia.parse_query(document(card())).devices
    assert (device.readings.throttles, device.readings.throttle_mask) == (None, None)


@pytest.mark.parametrize("word", ["Unknown", "Yes", "N/A", "ERR!"])
def test_a_throttle_reason_that_is_not_told_leaves_it_open(word):
    path = "clocks_event_reasons__clocks_event_reason_{}"
    fields = {path.format("gpu_idle"): "Active", path.format("hw_slowdown"): word}
    (device,) = nvidia.parse_query(document(card(**fields))).devices
    assert (device.readings.throttles, device.readings.throttle_mask) == (None, None)
    fields[path.format("hw_thermal_slowdown")] = "Active"
    (device,) = nvidia.parse_query(document(card(**fields))).devices
    assert device.readings.throttles == ["idle", "thermal"]


def test_links():
    output = (
        "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-a)\n\t Link 0: 26.562 GB/s\n\t Link 1: <inactive>\n"
        "GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-b)\n         Link 0: 25 GB/s\n"
        "GPU 2: NVIDIA L40S (UUID: GPU-c)\n"
    )
    assert nvidia.parse_nvlink(output) == {
        "GPU-a": [
            {"kind": "nvlink", "index": 0, "state": "up", "speed_gbps": 212.496, "peer": None},
            {"kind": "nvlink", "index": 1, "state": "down", "speed_gbps": None, "peer": None},
        ],
        "GPU-b": [{"kind": "nvlink", "index": 0, "state": "up", "speed_gbps": 200.0, "peer": None}],
        "GPU-c": [],
    }


def test_recorded_links(recordings):
    links = nvidia.parse_nvlink((recordings / "nvidia/nvlink-s_8xA100.txt").read_text())
    assert len(links) == 8
    assert {len(ports) for ports in links.values()} == {12}
    assert {port["speed_gbps"] for ports in links.values() for port in ports} == {200.0}


def socketed(uuid, address, model="NVIDIA H100 80GB HBM3"):
    return Device(vendor="nvidia", uuid=uuid, pci_address=address, model=model)


NVLINK = ("nvidia-smi", "nvlink", "-s")
ONE_LINK = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: {0})\n\t Link 0: 26.562 GB/s\n"


def test_links_cost_one_command_where_all_is_well():
    cards = [socketed("GPU-a", "0000:18:00.0"), socketed("GPU-b", "0000:2a:00.0")]
    runner = RecordedRunner({NVLINK: (0, ONE_LINK.format("GPU-a") + ONE_LINK.format("GPU-b"), "")})
    assert nvidia.Nvidia().ask_ports(runner, cards, 7, True) == []
    assert [len(device.ports) for device in cards] == [1, 1]
    assert runner.calls == [NVLINK]


def test_a_sick_card_does_not_take_the_links_of_the_others_with_it():
    cards = [socketed("GPU-a", "0000:18:00.0"), socketed("GPU-b", "0000:2a:00.0")]
    answers = {
        (*NVLINK, "-i", "0000:18:00.0"): (0, ONE_LINK.format("GPU-a"), ""),
        (*NVLINK, "-i", "0000:2a:00.0"): HANG,
    }
    problems = nvidia.Nvidia().ask_ports(RecordedRunner(answers), cards, 7, False)
    assert problems == ["nvidia-smi nvlink -s -i 0000:2a:00.0: no answer in time"]
    assert [len(device.ports) for device in cards] == [1, 0]


def test_boards_without_sockets_are_not_asked_for_links():
    cards = [
        socketed("GPU-a", "0000:18:00.0", model) for model in ("NVIDIA L40S", "NVIDIA H100 PCIe", "NVIDIA H100 NVL")
    ]
    runner = RecordedRunner({}, tools={"nvidia-smi"})
    assert nvidia.Nvidia().ask_ports(runner, cards, 7, True) == []
    assert runner.calls == []


def test_a_missing_library_is_told_once():
    """nvidia-smi 470, 535 and 550 say so alike, and end with 12."""
    said = "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.\n"
    runner = RecordedRunner({("nvidia-smi", "-q", "-x"): (12, said, "")}, {"/sys/module/nvidia/version": "550.163.01"})
    functions = [Function(address, vendor="10de", device="2330") for address in ("0000:18:00.0", "0000:2a:00.0")]
    answer = nvidia.Nvidia().query(runner, functions, 10)
    assert (answer.tools[0].state, answer.tools[0].reason, answer.count) == ("failed", "library_missing", None)
    assert runner.calls == [("nvidia-smi", "-q", "-x")]
    assert len(answer.errors) == 1 and answer.tools[0].excerpt == said.strip()
