# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``amd-smi xgmi`` of every generation: what it does not tell stays unknown."""

from __future__ import annotations

import json

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import Device
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors import amd, amd_xgmi
from doubles import HANG, RecordedRunner

ADDRESSES = ["0000:05:00.0", "0000:26:00.0", "0000:46:00.0"]
TOOL = "amd-smi"


def metrics(most=512, kind="XGMI"):
    """Return what the releases before ROCm 6.4 print: the links and what they carried."""
    return [
        {
            "gpu": number,
            "bdf": address,
            "link_metrics": {
                "bit_rate": {"value": 32, "unit": "Gb/s"},
                "max_bandwidth": {"value": most, "unit": "Gb/s"},
                "link_type": kind,
                "links": [
                    {
                        "gpu": to,
                        "bdf": peer,
                        "read": "N/A" if to == number else {"value": 7, "unit": "KB"},
                        "write": "N/A",
                    }
                    for to, peer in enumerate(ADDRESSES)
                ],
            },
        }
        for number, address in enumerate(ADDRESSES)
    ]


def status(*rows):
    return [
        {"gpu": number, "bdf": address, "link_status": row.split()}
        for number, (address, row) in enumerate(zip(ADDRESSES, rows))
    ]


PORTS = status("U U X", "U D X", "D U X")
PEERS = status("SELF U U/U", "U SELF D", "U/D D SELF")


def states(ports):
    return [(port["index"], port["state"], port["speed_gbps"], port["peer"]) for port in ports]


def test_links_without_a_state_are_unknown():
    found = amd_xgmi.parse_xgmi(json.dumps(metrics()))
    assert states(found["0000:26:00.0"]) == [
        (0, "unknown", 512.0, "0000:05:00.0"),
        (2, "unknown", 512.0, "0000:46:00.0"),
    ]
    assert {port["kind"] for ports in found.values() for port in ports} == {"xgmi"}


def test_ports_tell_their_state_and_no_peer():
    found = amd_xgmi.parse_xgmi(json.dumps({"xgmi_metric": metrics(), "source_status": PORTS}))
    assert list(found) == ADDRESSES
    assert states(found["0000:26:00.0"]) == [
        (0, "up", 512.0, None),
        (1, "down", None, None),
        (2, "disabled", None, None),
    ]


def test_the_card_at_the_other_end_goes_before_the_port():
    found = amd_xgmi.parse_xgmi(json.dumps([{"a": metrics()}, {"b": PORTS, "c": [{"d": PEERS}]}]))
    assert states(found["0000:05:00.0"]) == [
        (16, "up", 512.0, "0000:26:00.0"),
        (32, "up", 512.0, "0000:46:00.0"),
        (33, "up", 512.0, "0000:46:00.0"),
    ]
    assert states(found["0000:46:00.0"]) == [
        (0, "up", 512.0, "0000:05:00.0"),
        (1, "down", None, "0000:05:00.0"),
        (16, "down", None, "0000:26:00.0"),
    ]


def test_a_guest_that_may_not_see_them_knows_nothing_of_its_links():
    hidden = {"ports": status(*["N/A N/A N/A"] * 3), "peers": status("SELF N/A N/A", "N/A SELF N/A", "N/A N/A SELF")}
    assert amd_xgmi.parse_xgmi(json.dumps(hidden)) == {address: [] for address in ADDRESSES}
    found = amd_xgmi.parse_xgmi(json.dumps({"m": metrics(), **hidden}))
    assert {port["state"] for ports in found.values() for port in ports} == {"unknown"}


def test_cards_without_xgmi_have_no_links():
    assert amd_xgmi.parse_xgmi(json.dumps(metrics(4294967295, "N/A"))) == {}
    assert amd_xgmi.parse_xgmi(json.dumps(metrics(64, "PCIE"))) == {}
    # A bandwidth that is a placeholder is none.
    found = amd_xgmi.parse_xgmi(json.dumps(metrics(4294967295)))
    assert {port["speed_gbps"] for ports in found.values() for port in ports} == {None}


TEXT = """LINK METRIC TABLE:
       bdf           bit_rate  max_bandwidth  link_type  GPU0         GPU1
GPU0   0000:05:00.0  32 Gb/s   512 Gb/s       XGMI
 Read                                                    N/A          4 KB
 Write                                                   N/A          4 KB
GPU1   0000:26:00.0  65535 Gb/s4294967295 Gb/sN/A
"""
OF_PORTS = """
GPU LINK PORT STATUS:
       bdf           port_num
GPU0   0000:05:00.0  U  U  D  X
GPU1   0000:26:00.0  X  X  X  X
"""
OF_PEERS = """
XGMI LINK STATUS:
       bdf           GPU0          GPU1
GPU0   0000:05:00.0  SELF          U/D
GPU1   0000:26:00.0  U/D           SELF
"""


def test_the_text_tells_the_same():
    found = amd_xgmi.parse_xgmi(TEXT + OF_PORTS)
    assert [port["state"] for port in found["0000:05:00.0"]] == ["up", "up", "down", "disabled"]
    assert [port["speed_gbps"] for port in found["0000:05:00.0"]] == [512.0, 512.0, None, None]
    assert [port["state"] for port in found["0000:26:00.0"]] == ["disabled"] * 4
    found = amd_xgmi.parse_xgmi(TEXT + OF_PORTS + OF_PEERS)
    assert states(found["0000:26:00.0"]) == [(0, "up", None, "0000:05:00.0"), (1, "down", None, "0000:05:00.0")]


@pytest.mark.parametrize(
    "output", ["", "{", "[1, 2", "null", '{"bdf": 1, "link_status": 3}', "GPU0 zz U", '[{"bdf": "x"}]']
)
def test_what_is_no_answer_tells_of_no_link(output):
    assert amd_xgmi.parse_xgmi(output) == {}


def devices(*modules):
    return [Device(vendor="amd", pci_address=address, module_id=module) for address, module in zip(ADDRESSES, modules)]


def test_one_command_for_all_cards_and_none_for_cards_in_slots():
    runner = RecordedRunner({(TOOL, "xgmi", "--json"): (0, json.dumps({"p": PORTS}), "")})
    cards = devices(3, 1, 0)
    assert amd.Amd().ask_ports(runner, cards, 7, True) == []
    assert [[port["state"] for port in device.ports] for device in cards] == [
        ["up", "up", "disabled"],
        ["up", "down", "disabled"],
        ["down", "up", "disabled"],
    ]
    assert amd.Amd().ask_ports(RecordedRunner({}), devices(None, None), 7, True) == []
    assert amd.Amd().ask_ports(RecordedRunner({}), devices(0), 7, True) == []


def test_a_card_that_hangs_does_not_take_the_links_of_the_others():
    answers = {(TOOL, "xgmi", "-g", ADDRESSES[0], "--json"): HANG}
    answers[TOOL, "xgmi", "-g", ADDRESSES[1], "--json"] = (0, json.dumps({"p": PORTS[1:2]}), "")
    cards = devices(3, 1)
    assert amd.Amd().ask_ports(RecordedRunner(answers), cards, 7, False) == [
        f"amd-smi xgmi -g {ADDRESSES[0]} --json: no answer in time"
    ]
    assert [len(device.ports) for device in cards] == [0, 3]


def test_a_tool_that_does_not_know_the_command_says_so():
    refused = "Command 'xgmi' is invalid. Run '--help' for more info. Error code: -1"
    runner = RecordedRunner({(TOOL, "xgmi", "--json"): (255, refused, "")})
    assert amd.Amd().ask_ports(runner, devices(1, 2), 7, True) == [f"amd-smi xgmi --json: {refused}"]


def test_recorded_xgmi(recordings):
    """Eight MI300X of ROCm 6.2, of which the author shows two; this release tells no state."""
    output = (recordings / "amd/amd-smi_xgmi_8xMI300X.txt").read_text()
    assert amd_xgmi.parse_xgmi(output) == {"0000:05:00.0": [], "0000:26:00.0": []}


def test_links_of_a_card_that_is_split_are_those_of_its_first_partition():
    """The others have an address with another function, and no link that works."""
    rows = [("0000:05:00.0", "U U"), ("0000:05:00.1", "X X"), ("0000:26:00.0", "U D"), ("0000:26:00.1", "N/A N/A")]
    told = [{"gpu": gpu, "bdf": address, "link_status": row.split()} for gpu, (address, row) in enumerate(rows)]
    cards = [Device(vendor="amd", module_id=oam, pci_address=rows[oam * 2][0]) for oam in range(2)]
    runner = RecordedRunner({(TOOL, "xgmi", "--json"): (0, json.dumps({"link_port_status": told}), "")})
    assert amd_xgmi.ask(runner, cards, 7, True) == []
    assert [[port["state"] for port in card.ports] for card in cards] == [["up", "up"], ["up", "down"]]
