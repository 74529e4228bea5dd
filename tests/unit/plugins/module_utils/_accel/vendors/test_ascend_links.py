# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HCCS links and vNPUs of Ascend."""

from __future__ import annotations

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import Device
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors import ascend, ascend_links
from doubles import HANG, RecordedRunner

TOOL = "npu-smi"


def hccs(modes=(4,) * 7, lanes=None, speeds=None, health="OK", first="NA"):
    lanes = ["1111" if mode == 4 else "1100" if mode == 2 else "0000" for mode in modes] if lanes is None else lanes
    speeds = [56 * mode for mode in modes] if speeds is None else speeds
    rows = [f"\thccs health status             : {health}\n"]
    for name, values in (
        ("lane mode", modes),
        ("link lane list", lanes),
        ("link speed", speeds),
        ("retry count", "00"),
    ):
        rows.append(f"\t{'hccs ' + name + ' ':<30} : [{''.join(f'{value!s:<20} ' for value in values)}]\n")
    return "".join(rows) + f"\thccs first error lane          : {first}\n"


def states(ports):
    return [(port["state"], port["speed_gbps"]) for port in ports]


def test_ports_of_a_chip():
    ports = ascend_links.parse_hccs(hccs())
    assert ports[0] == {"kind": "hccs", "index": 0, "state": "up", "speed_gbps": 224.0, "peer": None}
    assert states(ports) == [("up", 224.0)] * 7


def test_a_port_without_lanes_is_down_and_one_with_fewer_is_slower():
    ports = ascend_links.parse_hccs(hccs((4, 0, 2, 1), lanes=["1111", "0000", "1100", "1000"], health="NOK", first=5))
    assert states(ports) == [("up", 224.0), ("down", None), ("up", 112.0), ("up", 56.0)]
    assert states(ascend_links.parse_hccs(hccs((4, 4), lanes=["0000", "1111"]))) == [("down", None), ("up", 224.0)]


@pytest.mark.parametrize(
    ("first", "told"),
    [("3", ["up", "up", "down", *["up"] * 4]), ("NA", ["unknown"] * 7), ("0", ["unknown"] * 7), ("9", ["unknown"] * 7)],
)
def test_a_fault_that_the_tool_tells_is_not_read_as_well(first, told):
    """Seven ports are shown of eight, so that the third lane group is the port with index 2."""
    ports = ascend_links.parse_hccs(hccs(health="NOK", first=first))
    assert [port["state"] for port in ports] == told


@pytest.mark.parametrize(
    "output",
    [
        "",
        "This device does not support querying hccs.\n",
        "\thccs tx packets : [1 2]\n\thccs error count : [0 0]\n",
        hccs(lanes=["1111"]),
        hccs(speeds=[]),
        hccs().replace("[", "("),
        hccs()[:160],
        "\thccs link lane list : [1111" + " " * 500_000 + "\n",
    ],
)
def test_what_tells_of_no_port_has_none(output):
    assert ascend_links.parse_hccs(output) == []


def test_a_damaged_port_is_unknown():
    assert states(ascend_links.parse_hccs(hccs(("4", "x"), lanes=["1111", "1111"], speeds=[224, 224]))) == [
        ("up", 224.0),
        ("unknown", None),
    ]


def chips(*numbers, model="910B3"):
    return [Device(vendor="ascend", model=model, index=index, module_id=npu, pci_address=f"0000:0{index + 1}:00.0")
            for npu, index in numbers]  # fmt: skip


def test_each_chip_is_asked_by_its_number_on_the_board():
    cards = chips((0, 0), (1, 2), (1, 3))
    answers = {
        (TOOL, "info", "-t", "hccs", "-i", "0", "-c", "0"): (0, hccs(), ""),
        (TOOL, "info", "-t", "hccs", "-i", "1", "-c", "0"): (0, hccs((4, 4)), ""),
        (TOOL, "info", "-t", "hccs", "-i", "1", "-c", "1"): HANG,
    }
    assert ascend.Ascend().ask_ports(RecordedRunner(answers), cards, 7, True) == [
        "npu-smi info -t hccs -i 1 -c 1: no answer in time"
    ]
    assert [len(card.ports) for card in cards] == [7, 2, 0]


def test_inference_cards_are_not_asked():
    assert ascend.Ascend().ask_ports(RecordedRunner({}), chips((0, 0), (1, 1), model="310P3"), 7, True) == []


VNPUS = """+-------------------------------------------------------------------------------+
| NPU resource static info as follow:                                           |
| AICORE    Memory    AICPU    VPC    VENC    VDEC    JPEGD    JPEGE    PNGD    |
|===============================================================================|
| 0/20      0/64      0/7     0/9    0/0    0/2    0/24     0/4      NA/NA      |
+-------------------------------------------------------------------------------+
| Total number of vnpu: 2                                                       |
+-------------------------------------------------------------------------------+
|  Vnpu ID  |  Vgroup ID     |  Container ID  |  Status  |  Template Name       |
+-------------------------------------------------------------------------------+
|  116      |  0             |  ffffffffffff  |  1       |  vir10_3c_32g        |
|  117      |  1             |  000000000000  |  0       |  vir05_1c_16g        |
+-------------------------------------------------------------------------------+
"""


def test_vnpus_by_their_numbers():
    assert ascend_links.parse_vnpus(VNPUS) == {116: "vir10_3c_32g", 117: "vir05_1c_16g"}
    assert ascend_links.parse_vnpus(VNPUS.replace("|  116", "  116").replace("32g        |", "32g")) == {
        116: "vir10_3c_32g",
        117: "vir05_1c_16g",
    }
    assert ascend_links.parse_vnpus("") == {}
    assert ascend_links.parse_vnpus("|  116      |" + " " * 500_000 + "|\n") == {}


NODES = ("/dev/davinci0", "/dev/davinci1", "/dev/vdavinci116", "/dev/vdavinci117")
ASK = (TOOL, "info", "-t", "info-vnpu", "-i", "5", "-c", "0")


def test_a_chip_with_vnpus_is_split_and_the_others_are_whole():
    """Chip 1 has the numbers from 116 on."""
    cards = chips((4, 0), (5, 1), (6, 2))
    runner = RecordedRunner({ASK: (0, VNPUS, "")}, dict.fromkeys(NODES, ""))
    assert ascend_links.add_vnpus(runner, cards, 7) == []
    assert [card.partition_mode for card in cards] == ["whole", "vNPU", None]
    assert cards[1].logical == [
        {"kind": "vnpu", "index": 116, "chip": 1, "uuid": None, "profile": "vir10_3c_32g"},
        {"kind": "vnpu", "index": 117, "chip": 1, "uuid": None, "profile": "vir05_1c_16g"},
    ]
    assert cards[0].logical == cards[2].logical == []


def test_vnpus_of_the_second_of_two_chips_on_one_function():
    (card,) = chips((5, 0), model="310P3")
    card.logical = [{"kind": "chip", "index": number, "id": number, "uuid": None} for number in range(2)]
    ask = (*ASK[:-1], "1")
    assert ascend_links.add_vnpus(RecordedRunner({ask: (0, VNPUS, "")}, dict.fromkeys(NODES, "")), [card], 7) == []
    assert card.partition_mode == "vNPU"
    assert [(part["kind"], part["index"]) for part in card.logical] == [
        ("chip", 0), ("chip", 1), ("vnpu", 116), ("vnpu", 117),
    ]  # fmt: skip
    # Of a chip that this container was not given nobody knows.
    (card,) = chips((5, 0), model="310P3")
    card.logical = [{"kind": "chip", "index": number, "id": number, "uuid": None} for number in range(2)]
    assert ascend_links.add_vnpus(RecordedRunner({}, {"/dev/davinci0": ""}), [card], 7) == []
    assert card.partition_mode is None


def test_vnpus_of_a_chip_that_does_not_answer_are_not_forgotten():
    cards = chips((4, 0))
    runner = RecordedRunner({}, dict.fromkeys(NODES, ""))
    assert ascend_links.add_vnpus(runner, cards, 7) == []
    assert ascend_links.ownerless_vnpus(runner, cards) == [116, 117]
    assert ascend_links.ownerless_vnpus(runner, chips((4, 0), (5, 1))) == []


def test_a_chip_is_split_although_the_tool_does_not_say_how():
    cards = chips((5, 1))
    assert ascend_links.add_vnpus(RecordedRunner({ASK: HANG}, {"/dev/vdavinci117": ""}), cards, 7) == [
        "npu-smi info -t info-vnpu -i 5 -c 0: no answer in time"
    ]
    assert (cards[0].partition_mode, len(cards[0].logical)) == ("vNPU", 1)
