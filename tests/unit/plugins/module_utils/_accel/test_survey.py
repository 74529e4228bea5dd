# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is proposed of hosts that are well, sick, alone, mixed or dead, and what is doubted.

Expected values are worked out by hand from the observations below.
"""

from __future__ import annotations

import copy
import json
import random
import re
from pathlib import Path

import observations
import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import contract, doubts, node_types, survey

CHINESE = re.compile("[\u4e00-\u9fff]")
H100 = "nvidia_h100_80gb_hbm3_x8"
LOST = 6  # 0000:ba:00.0, slot SXM5


def card(vendor, address, model, pci_id, **more):
    """Return a card that is well; 64 GiB, PCIe 5.0 with 16 lanes."""
    return {
        "vendor": vendor, "model": model, "pci_address": address, "pci_id": pci_id, "serial": None, "uuid": None,
        "slot": {"label": None, "source": None, "candidates": []}, "memory_bytes": 64 << 30, "logical": [],
        "link": {"speed_gts": 2.5, "width": 16, "max_speed_gts": 32.0, "max_width": 16, "limited_by": None},
        "health": {"state": "ok", "reasons": []}, "ports": [], "driver_version": "25.2.0",
        "source": f"{vendor}-smi 1.0", **more,
    }  # fmt: skip


def host(cards, tool="ok", **more):
    """Return what accelerator_info returns for these cards."""
    vendor = cards[0]["vendor"] if cards else ""
    return {
        "devices": cards, "unanswered": [], "count": len(cards), "bus_count": len(cards), "errors": [],
        "tools": [{"name": f"{vendor}-smi", "vendor": vendor, "version": "1.0", "state": tool, "reason": None}],
        "drivers": [], **more,
    }  # fmt: skip


def ascend(number, count=8, model="910B3"):
    """Return a host with Ascend cards in numbered slots; their PCI id is that of all 910B."""
    buses = ("01", "02", "41", "42", "81", "82", "c1", "c2")
    return host(
        [
            card("ascend", f"0000:{bus}:00.0", model, "19e5:d802", serial=f"A{number}-{place}",
                 uuid=f"DIE-{number}-{place}", slot={"label": str(place), "source": "vendor", "candidates": []})
            for place, bus in enumerate(buses[:count], 1)
        ]
    )  # fmt: skip


def healthy(number):
    return observations.healthy(number)


def without(observed, *numbers):
    """Return the host with cards gone from the bus, and from the tool: nothing speaks of them any more."""
    changed = copy.deepcopy(observed)
    gone = [observations.ADDRESSES[number] for number in numbers]
    changed["devices"] = [one for one in changed["devices"] if one["pci_address"] not in gone]
    changed["count"] = changed["bus_count"] = len(changed["devices"])
    return changed


def lost(observed, number=LOST, slot=True, state="lost", reason=None):
    """Return the host with a card on the bus that does not answer, as accelerator_info tells of it."""
    changed = observations.silence(observed, number, state, link=False)
    changed["unanswered"][0].update(pci_id="10de:2330", reason=reason, model=None, serial=None, uuid=None)
    if not slot:
        changed["unanswered"][0]["slot"] = {"label": None, "source": None, "candidates": []}
    return changed


def no_tool(observed):
    """Return the host as the bus alone shows it."""
    changed = copy.deepcopy(observed)
    for one in changed["devices"]:
        one.update(model=None, serial=None, uuid=None, memory_bytes=None, driver_version=None, source="sysfs",
                   slot={"label": None, "source": None, "candidates": []})  # fmt: skip
    changed["tools"][0].update(state="absent", version=None)
    changed["count"] = None
    return changed


def no_bus(observed):
    changed = copy.deepcopy(observed)
    changed["bus_count"] = None
    for one in changed["devices"]:
        one["pci_id"] = None
    return changed


def propose(hosts, **more):
    return survey.propose({name: told and {"cards": told} for name, told in hosts.items()}, **more)


def told(proposed):
    """Return every doubt as (kind, hosts, slots)."""
    return [(one["doubt"], one["hosts"], one["slots"]) for one in proposed["doubts"]]


def doubt(proposed, kind):
    found = [one for one in proposed["doubts"] if one["doubt"] == kind]
    assert len(found) == 1, told(proposed)
    return found[0]


def value(proposed, node_type, name):
    entry = proposed["node_types"][node_type]["values"].get(f"cluster_{name}")
    return None if entry is None else entry["value"]


# ---------------------------------------------------------------------------------------------------- well


def test_hosts_that_are_well_are_one_type_without_a_doubt():
    proposed = propose({"gpu-01": healthy(1), "gpu-02": healthy(2), "gpu-10": healthy(3)})
    assert told(proposed) == []
    assert list(proposed["node_types"]) == [H100]
    assert proposed["node_types"][H100]["hosts"] == ["gpu-01", "gpu-02", "gpu-10"]
    values = proposed["node_types"][H100]["values"]
    assert {name: entry["value"] for name, entry in values.items()} == {
        "cluster_node_type": H100,
        "cluster_accelerator_vendor": "nvidia",
        "cluster_accelerator_models": ["NVIDIA H100 80GB HBM3"],
        "cluster_accelerator_count": 8,
        "cluster_accelerator_memory_gib": 80,
        "cluster_accelerator_link_speed_gts": 32,
        "cluster_accelerator_link_width": 16,
        "cluster_driver_version": "570.86.15",
    }
    assert values["cluster_accelerator_count"]["source"] == "PCI shows 8 on gpu-01, gpu-02, gpu-10"
    assert values["cluster_accelerator_memory_gib"]["source"] == "79.6 GiB told by 24 of 24 cards, rounded"
    slots = {
        one["address"]: (one["label"], one["source"], one["hosts"]) for one in proposed["node_types"][H100]["slots"]
    }
    assert slots["0000:ba:00.0"] == ("SXM5", "vendor", 3)
    assert len(slots) == 8


def test_two_chips_on_one_function_are_no_partitions():
    duo = ascend(1, model="310P3")
    for one in duo["devices"]:
        one["logical"] = [{"kind": "chip", "index": number} for number in range(2)]
    proposed = propose({"npu-01": duo, "npu-02": ascend(2, model="310P3")})
    assert told(proposed) == []
    assert proposed["node_types"]["ascend_310p3_x8"]["partitions"] == [0, 0]


def test_what_nobody_can_see_is_said_to_be_unknown():
    proposed = propose({"gpu-01": healthy(1), "gpu-02": healthy(2)})
    unknown = proposed["node_types"][H100]["unknown"]
    assert set(unknown) == {"cluster_fabric_port_count", "cluster_fabric_port_gbps"}
    assert set(proposed["site"]["unknown"]) == {"cluster_networks", "cluster_time_servers", "cluster_time_zone"}


def test_a_host_alone_is_doubted_because_nothing_could_be_compared():
    proposed = propose({"gpu-01": healthy(1)})
    assert told(proposed) == [("type.alone", ["gpu-01"], [])]
    assert "nothing could be compared" in proposed["doubts"][0]["message"]
    assert proposed["site"]["values"]["cluster_scenario"]["value"] == "single_node"


def test_different_hardware_is_different_types():
    proposed = propose({"gpu-01": healthy(1), "gpu-02": healthy(2), "npu-01": ascend(1), "npu-02": ascend(2)})
    assert {name: one["hosts"] for name, one in proposed["node_types"].items()} == {
        "ascend_910b3_x8": ["npu-01", "npu-02"],
        H100: ["gpu-01", "gpu-02"],
    }
    assert told(proposed) == []


def test_models_that_share_a_pci_id_are_different_types():
    proposed = propose({f"npu-{n}": ascend(n, model="910B3" if n < 3 else "910B4") for n in (1, 2, 3, 4)})
    assert {name: one["hosts"] for name, one in proposed["node_types"].items()} == {
        "ascend_910b3_x8": ["npu-1", "npu-2"],
        "ascend_910b4_x8": ["npu-3", "npu-4"],
    }
    assert told(proposed) == []


def test_a_vendor_that_the_site_declares_is_a_vendor_like_any_other():
    cards = [card("acme", f"0000:{bus}:00.0", "ACME T1", "1eed:15a3", serial=f"S{bus}") for bus in ("11", "21")]
    other = [dict(one, serial=f"x{one['serial']}") for one in cards]
    vendors = {"acme": {"pci_vendors": ["1eed"]}}
    proposed = propose({"a": host(cards), "b": host(other)}, declared={"cluster_vendors": vendors})
    assert value(proposed, "acme_t1_x2", "accelerator_vendor") == "acme"
    assert proposed["site"]["values"]["cluster_vendors"]["value"] == vendors
    # Its tool tells no slots, and no source is made up.
    assert told(proposed) == [("slot.none", ["a", "b"], ["0000:11:00.0", "0000:21:00.0"])]


# ---------------------------------------------------------------------------------------------------- a card less


@pytest.mark.parametrize("state", ["lost", "not_reported"])
def test_a_card_that_does_not_answer_is_counted_and_doubted(state):
    proposed = propose({"gpu-01": lost(healthy(1), state=state, reason="hung"), "gpu-02": healthy(2)})
    assert value(proposed, H100, "accelerator_count") == 8
    kind = "card.lost" if state == "lost" else "card.silent"
    assert told(proposed) == [(kind, ["gpu-01"], ["SXM5"])]
    assert doubt(proposed, kind)["siblings"] == "NVIDIA H100 80GB HBM3 on gpu-02"


def test_a_silent_card_is_called_as_its_siblings_call_the_place():
    proposed = propose({"gpu-01": lost(healthy(1), slot=False), "gpu-02": healthy(2), "gpu-03": healthy(3)})
    assert told(proposed) == [("card.lost", ["gpu-01"], ["SXM5"])]
    assert doubt(proposed, "card.lost")["seen"] == "0000:ba:00.0, named as on gpu-02 and 1 more"


def test_cards_that_one_cause_silenced_are_one_doubt():
    broken = healthy(1)
    for number in range(8):
        broken = lost(broken, number, state="not_reported", reason="driver_library_mismatch")
    for one in broken["unanswered"]:
        one.update(pci_id="10de:2330", reason="driver_library_mismatch")
    broken["tools"][0].update(state="failed", reason="driver_library_mismatch")
    proposed = propose({"gpu-01": broken, "gpu-02": healthy(2), "gpu-03": healthy(3)})
    assert value(proposed, H100, "accelerator_count") == 8
    # The cause, and what hangs on it, not a doubt for each.
    slots = [f"SXM{number}" for number in range(1, 9)]
    assert told(proposed) == [("tool.failed", ["gpu-01"], slots)]
    assert doubt(proposed, "tool.failed")["message"] == (
        "gpu-01 slot SXM1, SXM2, SXM3, SXM4, SXM5, SXM6, SXM7, SXM8: the vendor's tool did not answer well ("
        "nvidia-smi: driver_library_mismatch; for that reason nothing is known of: answers of the cards, model); "
        "siblings: nvidia-smi 570.86.15 on gpu-02, gpu-03"
    )


def test_what_a_broken_tool_does_not_explain_is_doubted_beside_it():
    broken = observations.driver_library_mismatch(healthy(1))
    broken["devices"] = []
    for one in broken["unanswered"]:
        one.update(pci_id="10de:2330", reason="driver_library_mismatch")
    broken["unanswered"][0].update(reason="bound to vfio-pci")
    broken["unanswered"][1].update(state="lost")
    proposed = propose({"gpu-01": broken, "gpu-02": healthy(2), "gpu-03": healthy(3)})
    assert [(kind, slots) for kind, _hosts, slots in told(proposed)] == [
        ("tool.failed", ["SXM1", "SXM3", "SXM5", "SXM6", "SXM7", "SXM8"]), ("card.lost", ["SXM2"]),
        ("card.silent", ["SXM4"]),
    ]  # fmt: skip


def test_a_host_whose_card_left_the_bus_has_the_type_of_its_siblings():
    proposed = propose({"gpu-01": without(healthy(1), LOST), "gpu-02": healthy(2)})
    assert value(proposed, H100, "accelerator_count") == 8
    assert proposed["node_types"][H100]["hosts"] == ["gpu-01", "gpu-02"]
    found = doubt(proposed, "count.fewer")
    assert (found["hosts"], found["slots"]) == (["gpu-01"], ["SXM5"])
    assert (found["seen"], found["siblings"]) == ("7 cards", "8 cards on gpu-02")


def test_two_broken_hosts_do_not_outvote_a_whole_one():
    proposed = propose({"gpu-01": without(healthy(1), 0), "gpu-02": healthy(2), "gpu-03": without(healthy(3), LOST)})
    assert value(proposed, H100, "accelerator_count") == 8
    assert told(proposed) == [
        ("count.fewer", ["gpu-01"], ["SXM4"]),
        ("count.fewer", ["gpu-03"], ["SXM5"]),
    ]


def test_where_every_host_lacks_the_same_card_the_number_itself_is_doubted():
    proposed = propose({f"gpu-{n}": without(healthy(n), LOST) for n in (1, 2, 3)})
    assert [one[0] for one in told(proposed)] == ["count.odd", "count.gap"]
    assert doubt(proposed, "count.gap")["siblings"] == "SXM5"


def test_a_host_with_fewer_cards_elsewhere_is_a_sibling_too():
    """Firmware numbers buses anew when a card is gone, so nobody can tell which slot it is."""
    moved = without(healthy(1), LOST)
    for one in moved["devices"]:
        one["pci_address"] = one["pci_address"].replace("0000:", "0001:")
    proposed = propose({"gpu-01": moved, "gpu-02": healthy(2), "gpu-03": healthy(3)})
    assert list(proposed["node_types"]) == [H100]
    assert (doubt(proposed, "count.fewer")["hosts"], doubt(proposed, "count.fewer")["slots"]) == (["gpu-01"], [])


def test_servers_with_half_the_cards_are_a_type_of_their_own_and_told():
    half = (1, 3, 5, 7)
    hosts = {f"gpu-{n}": healthy(n) if n < 3 else without(healthy(n), *half) for n in (1, 2, 3, 4)}
    proposed = propose(hosts)
    assert {name: one["hosts"] for name, one in proposed["node_types"].items()} == {
        H100: ["gpu-1", "gpu-2"],
        "nvidia_h100_80gb_hbm3_x4": ["gpu-3", "gpu-4"],
    }
    assert [one["doubt"] for one in proposed["doubts"]].count("count.several") == 2


def test_a_single_host_with_half_the_cards_of_a_whole_one_is_not_believed():
    proposed = propose({"gpu-1": healthy(1), "gpu-2": without(healthy(2), 4, 5, 6, 7)})
    assert list(proposed["node_types"]) == [H100]
    assert doubt(proposed, "count.fewer")["slots"] == ["SXM8", "SXM6", "SXM5", "SXM7"]


def test_one_host_with_a_card_more_does_not_make_the_others_wrong():
    extra = healthy(4)
    extra["devices"].append(dict(observations.device(0, 4), pci_address="0000:f1:00.0", serial="1", uuid="GPU-x"))
    extra["count"] = extra["bus_count"] = 9
    proposed = propose({"gpu-1": healthy(1), "gpu-2": healthy(2), "gpu-3": healthy(3), "gpu-4": extra})
    assert value(proposed, H100, "accelerator_count") == 8
    assert doubt(proposed, "count.more")["hosts"] == ["gpu-4"]
    assert doubt(proposed, "count.more")["seen"] == "9 cards"


def test_a_card_of_another_kind_is_not_counted_and_doubted():
    extra = healthy(2)
    extra["devices"].append(
        dict(observations.device(0, 2), pci_address="0000:f1:00.0", pci_id="10de:1eb8", model="Tesla T4",
             serial="1", uuid="GPU-x", slot={"label": None, "source": None, "candidates": []})
    )  # fmt: skip
    extra["count"] = extra["bus_count"] = 9
    proposed = propose({"gpu-1": healthy(1), "gpu-2": extra})
    assert value(proposed, H100, "accelerator_count") == 8
    assert value(proposed, H100, "accelerator_models") == ["NVIDIA H100 80GB HBM3"]
    assert doubt(proposed, "card.stranger")["slots"] == ["0000:f1:00.0"]
    assert "count.more" not in [one[0] for one in told(proposed)]


def test_the_tool_alone_gives_no_count():
    proposed = propose({"gpu-1": no_bus(healthy(1))})
    name = next(iter(proposed["node_types"]))
    assert value(proposed, name, "accelerator_count") is None
    assert proposed["node_types"][name]["unknown"]["cluster_accelerator_count"] == "no bus could be read"
    assert doubt(proposed, "count.unknown")["seen"] == "8"
    assert not name.endswith("_x8")


def test_a_host_that_can_not_see_its_bus_has_the_count_of_its_siblings():
    proposed = propose({"gpu-1": no_bus(healthy(1)), "gpu-2": healthy(2)})
    assert value(proposed, H100, "accelerator_count") == 8
    assert doubt(proposed, "host.bus_unread")["siblings"] == "8 on gpu-2"


def test_the_bus_wins_where_the_tool_counts_otherwise():
    fewer = healthy(1)
    fewer["count"] = 7
    proposed = propose({"gpu-1": fewer, "gpu-2": healthy(2)})
    assert value(proposed, H100, "accelerator_count") == 8
    assert (doubt(proposed, "count.tool")["seen"], doubt(proposed, "count.tool")["siblings"]) == ("7", "8")


def test_a_card_that_only_the_tool_remembers_is_not_counted():
    gone = lost(healthy(1))
    gone["unanswered"][0]["pci_id"] = None
    gone["bus_count"] = 7
    proposed = propose({"gpu-1": gone, "gpu-2": healthy(2)})
    assert [one[0] for one in told(proposed)] == ["count.fewer", "card.off_bus"]
    assert value(proposed, H100, "accelerator_count") == 8


# ---------------------------------------------------------------------------------------------------- no tool


def test_a_host_without_a_tool_is_grouped_by_its_bus():
    proposed = propose({"gpu-1": no_tool(healthy(1)), "gpu-2": healthy(2)})
    assert proposed["node_types"][H100]["hosts"] == ["gpu-1", "gpu-2"]
    assert value(proposed, H100, "accelerator_models") == ["NVIDIA H100 80GB HBM3"]
    assert [kind for kind, _hosts, _slots in told(proposed)] == ["tool.absent"]
    assert doubt(proposed, "tool.absent")["siblings"] == "nvidia-smi 570.86.15 on gpu-2"
    assert doubt(proposed, "tool.absent")["seen"] == (
        "nvidia-smi; for that reason nothing is known of: model, slot names"
    )


def test_without_any_tool_the_model_is_unknown():
    proposed = propose({"gpu-1": no_tool(healthy(1)), "gpu-2": no_tool(healthy(2))})
    (name,) = proposed["node_types"]
    assert name == "nvidia_2330_x8"
    assert "cluster_accelerator_models" in proposed["node_types"][name]["unknown"]
    assert "cluster_accelerator_memory_gib" in proposed["node_types"][name]["unknown"]
    assert value(proposed, name, "accelerator_count") == 8


def test_a_tool_that_fails_is_doubted_with_its_reason():
    broken = observations.driver_library_mismatch(healthy(1))
    broken["unanswered"] = []
    proposed = propose({"gpu-1": broken, "gpu-2": healthy(2)})
    assert doubt(proposed, "tool.failed")["seen"].startswith("nvidia-smi: driver_library_mismatch; for that reason")


def test_a_model_that_only_silent_cards_had_is_not_told_by_a_tool_without_a_name():
    broken = healthy(1)
    for number in range(8):
        broken = lost(broken, number, state="not_reported", reason="hung")
    for one in broken["unanswered"]:
        one.update(pci_id="10de:2330", reason="hung", model="NVIDIA H100 80GB HBM3")
    broken["tools"][0].update(state="hung")
    values = propose({"gpu-01": broken})["node_types"][H100]["values"]
    assert values["cluster_accelerator_models"]["source"] == "last told of cards that do not answer, on 1 of 1 hosts"
    for one in broken["unanswered"]:
        one["pci_id"] = None
    (node_type,) = propose({"gpu-01": broken})["node_types"].values()
    assert node_type["values"]["cluster_accelerator_vendor"]["source"] == "unknown"


# ------------------------------------------------------------------------------------------------ what a site is for


TRAINS = "hosts with cards: 2; mixed or inference where it serves models"


def scenario(hosts, groups=None):
    return propose(hosts, groups=groups)["site"]["values"]["cluster_scenario"]


def test_the_scenario_is_that_of_the_hosts_that_are_there():
    """As the inventories that the collection brings along have it."""
    two = {"gpu-01": healthy(1), "gpu-02": healthy(2)}
    assert scenario({"gpu-01": healthy(1)})["value"] == "single_node"
    assert scenario(two) == {"value": "multi_node", "source": TRAINS}
    assert scenario({**two, "npu-01": ascend(1)}) == {
        "value": "mixed", "source": "hosts with cards: 3, of 2 kinds; multi_node where all of them train",
    }  # fmt: skip
    # Fewer cards of the same kind are another node type, and no other use.
    assert scenario({"npu-1": ascend(1), "npu-2": ascend(2), "npu-3": ascend(3, 2), "npu-4": ascend(4, 2)})[
        "value"
    ] == ("multi_node")
    assert scenario({**two, "gw-01": host([])}, {"gateway_nodes": ["gw-01"]}) == {
        "value": "inference", "source": "hosts with cards: 2, and gateway_nodes; mixed where it trains too",
    }  # fmt: skip
    assert scenario({**two, "npu-01": ascend(1), "gw-01": host([])}, {"gateway_nodes": ["gw-01"]})["value"] == "mixed"


def test_a_host_without_cards_in_no_group_is_doubted():
    hosts = {"gpu-01": healthy(1), "gpu-02": healthy(2), "ctl-01": host([], tools=[]), "sto-01": None}
    proposed = propose(hosts)
    assert told(proposed) == [("host.silent", ["sto-01"], []), ("host.no_group", ["ctl-01"], [])]
    assert "scheduler_controllers, registry_hosts, storage_servers" in doubt(proposed, "host.no_group")["message"]
    groups = {"scheduler_controllers": ["ctl-01"], "storage_servers": ["sto-01"]}
    assert told(propose(hosts, groups=groups)) == [("host.silent", ["sto-01"], [])]
    # One that should have cards is doubted for having none.
    groups = {"accelerator_nodes": ["ctl-01"]}
    assert told(propose(hosts, groups=groups)) == [("host.silent", ["sto-01"], []), ("host.no_cards", ["ctl-01"], [])]


# ---------------------------------------------------------------------------------------------------- cards that differ


def test_another_link_width_names_host_slot_and_siblings():
    proposed = propose({"gpu-1": observations.downtrained(healthy(1), LOST), "gpu-2": healthy(2)})
    assert value(proposed, H100, "accelerator_link_width") == 16
    assert told(proposed) == [("link.width", ["gpu-1"], ["SXM5"])]
    assert (doubt(proposed, "link.width")["seen"], doubt(proposed, "link.width")["siblings"]) == ("x8", "x16 on gpu-2")


def test_cards_behind_one_bridge_are_one_doubt():
    held = healthy(1)
    for number in (0, 1):
        held["devices"][number]["link"]["limited_by"] = "0000:16:00.0"
    proposed = propose({"gpu-1": held, "gpu-2": healthy(2)})
    assert told(proposed) == [("link.limited", ["gpu-1"], ["SXM2", "SXM4"])]
    assert doubt(proposed, "link.limited")["siblings"] == "none on gpu-2"


def test_links_that_are_all_narrow_are_doubted_once():
    hosts = {"gpu-1": healthy(1), "gpu-2": healthy(2)}
    for observed in hosts.values():
        for one in observed["devices"]:
            one["link"]["width"] = 8
    proposed = propose(hosts)
    assert told(proposed) == [("link.narrow", [], [])]


def test_another_driver_is_doubted():
    hosts = {f"gpu-{n}": healthy(n) for n in (1, 2, 3)}
    for one in hosts["gpu-2"]["devices"]:
        one["driver_version"] = "570.124.06"
    proposed = propose(hosts)
    assert value(proposed, H100, "driver_version") == "570.86.15"
    assert (doubt(proposed, "version.differs")["hosts"], doubt(proposed, "version.differs")["seen"]) == (
        ["gpu-2"],
        "driver_kernel nvidia 570.124.06",
    )


def test_a_host_that_tells_no_version_is_among_the_versions_seen():
    proposed = propose({"gpu-1": no_tool(healthy(1)), "gpu-2": healthy(2)})
    assert proposed["node_types"][H100]["versions"] == [
        {"component": "driver_kernel", "name": "nvidia", "seen": "570.86.15 on gpu-2; unknown on gpu-1"}
    ]
    # Only one tells it, so that nothing differs.
    assert "version.no_majority" not in [one[0] for one in told(proposed)]


def test_a_host_with_another_system_is_doubted():
    systems = {
        "gpu-1": ("debian", "12"),
        "gpu-2": ("debian", "12"),
        "gpu-3": ("ubuntu", "22.04"),
        "gpu-4": (None, None),
    }
    asked = {}
    for number, (name, (system, version)) in enumerate(systems.items(), 1):
        row = {"component": "os", "name": system, "subject": None, "version": version, "source": "/etc/os-release"}
        asked[name] = {"cards": healthy(number), "versions": {"versions": [row], "errors": []}}
    proposed = survey.propose(asked)
    found = doubt(proposed, "version.differs")
    assert (found["hosts"], found["seen"], found["siblings"]) == (["gpu-3"], "os ubuntu 22.04", "debian 12")
    assert proposed["node_types"][H100]["versions"] == [
        {
            "component": "os",
            "name": "debian",
            "seen": "12 on gpu-1, gpu-2; ubuntu 22.04 on gpu-3; unknown on gpu-4",
        }
    ]


def test_a_driver_that_only_the_cards_tell_is_held_against_those_that_files_tell():
    """amdgpu is the driver of AMD's cards, whichever of the two tells its version."""
    row = {"component": "driver_kernel", "name": "amdgpu", "subject": None, "version": "6.12.12", "source": "a file"}
    asked = {}
    for number in (1, 2, 3):
        cards = [card("amd", "0000:11:00.0", "MI300X", "1002:74a1", serial=f"S{number}", driver_version="6.12.12")]
        asked[f"gpu-{number}"] = {"cards": host(cards), "versions": {"versions": [row], "errors": []}}
    del asked["gpu-3"]["versions"]
    asked["gpu-3"]["cards"]["devices"][0]["driver_version"] = "6.10.5"
    found = doubt(survey.propose(asked), "version.differs")
    assert (found["hosts"], found["seen"], found["siblings"]) == (["gpu-3"], "driver_kernel amdgpu 6.10.5", "6.12.12")


def test_where_two_drivers_are_equally_common_none_is_proposed():
    hosts = {"gpu-1": healthy(1), "gpu-2": healthy(2)}
    for one in hosts["gpu-2"]["devices"]:
        one["driver_version"] = "570.124.06"
    proposed = propose(hosts)
    assert "cluster_driver_version" in proposed["node_types"][H100]["unknown"]
    assert doubt(proposed, "version.no_majority")["node_type"] == H100


def test_firmware_of_one_card_that_differs_is_named_by_its_slot():
    rows = {
        name: [
            {"component": "firmware", "name": "H100", "subject": slot, "version": "96.00", "source": "nvidia-smi"}
            for slot in observations.SLOTS
        ]
        for name in ("gpu-1", "gpu-2")
    }
    rows["gpu-2"][6]["version"] = "95.00"
    asked = {
        name: {"cards": healthy(number), "versions": {"versions": rows[name], "errors": []}}
        for number, name in enumerate(rows, 1)
    }
    found = doubt(survey.propose(asked), "version.differs")
    assert (found["hosts"], found["slots"], found["siblings"]) == (["gpu-2"], ["SXM5"], "96.00")


def test_one_serial_in_two_hosts_is_doubted():
    clone = healthy(2)
    clone["devices"][0]["serial"] = healthy(1)["devices"][3]["serial"]
    proposed = propose({"gpu-1": healthy(1), "gpu-2": clone})
    assert told(proposed) == [("card.twin", ["gpu-1", "gpu-2"], ["SXM3", "SXM4"])]
    assert doubt(proposed, "card.twin")["seen"] == "serial 165040100003"


def test_one_serial_twice_in_a_host_is_doubted():
    twin = healthy(1)
    twin["devices"][1]["serial"] = twin["devices"][0]["serial"]
    assert told(propose({"gpu-1": twin, "gpu-2": healthy(2)})) == [("card.twin", ["gpu-1"], ["SXM4", "SXM2"])]


def test_two_devices_on_each_board_are_no_twins():
    hosts = {}
    for number in (1, 2):
        cards = [
            card("denglin", f"0000:{bus}:00.0", "KS38", "1e27:0002", serial=f"S{number}{int(bus) // 2}",
                 slot={"label": str(int(bus) // 2), "source": "vendor", "candidates": []})
            for bus in ("10", "11", "20", "21")
        ]  # fmt: skip
        hosts[f"h-{number}"] = host(cards)
    proposed = propose(hosts)
    assert "card.twin" not in [one[0] for one in told(proposed)]
    assert value(proposed, "denglin_ks38_x4", "accelerator_devices_per_slot") == 2


def test_slot_names_from_a_weak_source_are_doubted():
    hosts = {"gpu-1": healthy(1), "gpu-2": healthy(2)}
    for observed in hosts.values():
        for one in observed["devices"]:
            one["slot"]["source"] = "dmi"
    proposed = propose(hosts)
    assert told(proposed) == [("slot.weak", ["gpu-1", "gpu-2"], [f"SXM{number}" for number in range(1, 9)])]
    assert doubt(proposed, "slot.weak")["seen"] == "dmi"


def test_a_slot_that_one_host_calls_otherwise_is_doubted():
    other = healthy(2)
    other["devices"][0]["slot"]["label"] = "SXM9"
    proposed = propose({"gpu-1": healthy(1), "gpu-2": other, "gpu-3": healthy(3)})
    found = doubt(proposed, "slot.differs")
    assert (found["hosts"], found["slots"], found["seen"]) == (["gpu-2"], ["0000:18:00.0"], "SXM9")
    assert found["siblings"] == "SXM4 on gpu-1, gpu-3"


def test_partitions_are_told_and_not_counted():
    split = healthy(1)
    split["devices"][0]["logical"] = [{"kind": "mig", "index": number} for number in range(7)]
    split["logical_count"] = 14
    proposed = propose({"gpu-1": split, "gpu-2": healthy(2), "gpu-3": healthy(3)})
    assert value(proposed, H100, "accelerator_count") == 8
    assert proposed["node_types"][H100]["partitions"] == [7, 1]
    assert (doubt(proposed, "card.partitions")["hosts"], doubt(proposed, "card.partitions")["seen"]) == (
        ["gpu-1"],
        "7 partitions",
    )


def test_memory_that_differs_by_more_than_verify_tolerates_is_doubted():
    less = healthy(1)
    less["devices"][2]["memory_bytes"] = 40 << 30
    proposed = propose({"gpu-1": less, "gpu-2": healthy(2)})
    assert value(proposed, H100, "accelerator_memory_gib") == 80
    assert told(proposed) == [("card.memory", ["gpu-1"], ["SXM1"])]


def test_a_wrong_card_of_the_same_pci_id_is_named_by_its_slot():
    wrong = ascend(1)
    wrong["devices"][3]["model"] = "910B4"
    proposed = propose({"npu-1": wrong, "npu-2": ascend(2)})
    assert value(proposed, "ascend_910b3_x8", "accelerator_models") == ["910B3"]
    assert told(proposed) == [("card.model", ["npu-1"], ["4"])]


def test_cards_of_two_vendors_are_told():
    mixed = healthy(1)
    mixed["devices"].append(card("amd", "0000:f1:00.0", "AMD Instinct MI210", "1002:740f"))
    mixed["count"] = mixed["bus_count"] = 9
    proposed = propose({"gpu-1": mixed, "gpu-2": healthy(2)})
    assert value(proposed, H100, "accelerator_count") == 8
    assert doubt(proposed, "host.several_vendors")["siblings"] == "nvidia"


def test_a_sick_card_is_doubted():
    sick = healthy(1)
    sick["devices"][4]["health"] = {"state": "critical", "reasons": ["row remapping failed"]}
    assert told(propose({"gpu-1": sick, "gpu-2": healthy(2)})) == [("card.sick", ["gpu-1"], ["SXM8"])]


# ---------------------------------------------------------------------------------------------------- hosts


def test_a_dead_host_a_broken_one_and_one_that_was_not_asked_are_named():
    asked = {
        "gpu-1": {"cards": healthy(1)},
        "gpu-2": None,
        "gpu-3": {"cards": {"unreachable": True, "msg": "timed out"}},
        "gpu-4": {"error": "/bin/sh: 1: python3: not found"},
        "gpu-5": {"cards": {"failed": True, "msg": "no rights"}},
    }
    proposed = survey.propose(asked, not_asked=["gpu-6"])
    assert told(proposed)[:-1] == [
        ("host.silent", ["gpu-2", "gpu-3"], []),
        ("host.failed", ["gpu-4"], []),
        ("host.failed", ["gpu-5"], []),
        ("host.not_asked", ["gpu-6"], []),
    ]
    assert "python3: not found" in proposed["doubts"][1]["message"]
    assert list(proposed["hosts"]) == ["gpu-1", "gpu-2", "gpu-3", "gpu-4", "gpu-5", "gpu-6"]


def test_a_host_without_cards_is_no_doubt_unless_the_inventory_expects_some():
    empty = host([], bus_count=0, count=None, tools=[])
    assert told(propose({"ctl-1": empty}, groups={"login_nodes": ["ctl-1"]})) == []
    proposed = propose({"ctl-1": empty}, groups={"accelerator_nodes": ["ctl-1"], "login_nodes": ["ctl-1"]})
    assert told(proposed) == [("host.no_cards", ["ctl-1"], [])]
    assert proposed["hosts"]["ctl-1"]["groups"] == ["login_nodes"]


def test_a_host_whose_bus_nobody_could_read_is_not_taken_for_one_without_cards():
    proposed = propose({"ctl-1": host([], bus_count=None, count=None, tools=[])})
    assert told(proposed) == [("host.bus_unread", ["ctl-1"], [])]
    assert proposed["hosts"]["ctl-1"]["cards"] is None


def test_what_could_not_be_read_is_told_and_a_bad_slot_table_is_ordinary():
    odd = healthy(1)
    odd["errors"] = ["slot table unusable: all slots have one address", "nvidia: links between cards: ValueError"]
    proposed = propose({"gpu-1": odd, "gpu-2": healthy(2)})
    assert doubt(proposed, "host.unread")["message"] == "gpu-1: nvidia: links between cards: ValueError"


def test_versions_that_could_not_be_read_are_told():
    errors = ["runtime: /usr/local/cuda/version.json tells no version: {"]
    asked = {name: {"cards": healthy(number)} for number, name in enumerate(("gpu-1", "gpu-2"), 1)}
    asked["gpu-2"]["versions"] = {"versions": [], "errors": errors}
    assert doubt(survey.propose(asked), "host.unread")["message"] == f"gpu-2: {errors[0]}"


def test_a_time_zone_that_differs_is_doubted():
    zones = {"gpu-1": "Etc/UTC", "gpu-2": "Etc/UTC", "gpu-3": "Asia/Shanghai"}
    asked = {
        name: {"cards": healthy(number), "baseline": {"time_zone": zone}}
        for number, (name, zone) in enumerate(zones.items(), 1)
    }
    proposed = survey.propose(asked)
    assert proposed["site"]["values"]["cluster_time_zone"]["value"] == "Etc/UTC"
    assert told(proposed) == [("zone.differs", ["gpu-3"], [])]


def test_nothing_that_ansible_would_run_is_taken_from_a_host():
    evil = healthy(1)
    for one in evil["devices"]:
        one["model"] = "{{ lookup('pipe', 'id') }}"
    evil["devices"][0]["slot"]["label"] = "SXM4\n- evil"
    proposed = propose({"gpu-1": evil, "gpu-2": healthy(2)})
    assert value(proposed, H100, "accelerator_models") == ["NVIDIA H100 80GB HBM3"]
    assert [one["seen"] for one in proposed["doubts"] if one["doubt"] == "value.strange"] == [
        "{{ lookup('pipe', 'id') }}",
        "SXM4?- evil",
    ]


# ------------------------------------------------------------------------------------- what can't be read of a card


@pytest.mark.parametrize("address", [None, "", "N/A", "0000:zz:00.0", "0000:ba:00", 186, [], {"bus": "ba"}])
def test_a_card_without_a_readable_address_costs_nobody_the_survey(address):
    blind = healthy(1)
    blind["devices"][LOST]["pci_address"] = address
    hosts = {"gpu-01": blind, "gpu-02": healthy(2), "npu-01": ascend(1), "npu-02": ascend(2)}
    proposed = propose(hosts)
    assert list(proposed["node_types"]) == ["ascend_910b3_x8", H100]
    assert proposed["node_types"][H100]["hosts"] == ["gpu-01", "gpu-02"]
    # The layout is that of the host whose cards all tell where they are.
    slots = {one["address"]: (one["label"], one["hosts"]) for one in proposed["node_types"][H100]["slots"]}
    assert slots == {at: (observations.SLOTS[number], 1 if number == LOST else 2)
                     for number, at in enumerate(observations.ADDRESSES)}  # fmt: skip
    assert value(proposed, H100, "accelerator_count") == 8
    (found,) = [one for one in proposed["doubts"] if one["doubt"] != "host.unread"]
    assert (found["doubt"], found["hosts"], found["slots"]) == ("card.no_address", ["gpu-01"], ["SXM5"])
    assert (found["seen"], found["siblings"]) == ("index 6, serial 165040100006", "0000:ba:00 on gpu-02")
    assert "gpu-01 slot SXM5" in found["message"] and "serial 165040100006" in found["message"]
    # What is there instead of an address is told too, unless it is only not there.
    unread = [one["seen"] for one in proposed["doubts"] if one["doubt"] == "host.unread"]
    assert [repr(address) in one for one in unread] == ([] if address in (None, "", "N/A") else [True])


def test_cards_without_an_address_are_not_taken_for_one_another():
    """They share no place: what one host calls its card says nothing of another's."""
    hosts = {"gpu-01": healthy(1), "gpu-02": healthy(2), "gpu-03": healthy(3)}
    for number, observed in enumerate(hosts.values()):
        observed["devices"][number].update(pci_address=None, index=None, serial=None, uuid=None)
        observed["devices"][number]["slot"] = {"label": None, "source": None, "candidates": []}
    proposed = propose(hosts)
    # Together they tell all places.
    assert [one["address"] for one in proposed["node_types"][H100]["slots"]] == list(observations.ADDRESSES)
    assert value(proposed, H100, "accelerator_count") == 8
    assert {one["doubt"] for one in proposed["doubts"]} == {"card.no_address", "slot.none"}
    found = [one for one in proposed["doubts"] if one["doubt"] == "card.no_address"]
    assert [(one["hosts"], one["seen"], one["siblings"]) for one in found] == [
        (["gpu-01"], "unknown", "0000:18:00 on gpu-02, gpu-03"),
        (["gpu-02"], "unknown", "0000:2a:00 on gpu-01, gpu-03"),
        (["gpu-03"], "unknown", "0000:3a:00 on gpu-01, gpu-02"),
    ]
    assert (doubt(proposed, "slot.none")["slots"], doubt(proposed, "slot.none")["siblings"]) == (["unknown"], "")


def test_a_type_of_which_no_card_tells_its_address_has_no_slots():
    blind = healthy(1)
    for one in blind["devices"]:
        one["pci_address"] = None
    proposed = propose({"gpu-01": blind})
    assert (proposed["node_types"][H100]["slots"], value(proposed, H100, "accelerator_count")) == ([], 8)
    assert len([one for one in proposed["doubts"] if one["doubt"] == "card.no_address"]) == 8


def test_a_silent_card_without_an_address_is_named_by_what_is_known():
    silent = lost(healthy(1))
    silent["unanswered"][0].update(pci_address=None, serial="165040100006", slot=None)
    proposed = propose({"gpu-01": silent, "gpu-02": healthy(2)})
    assert doubt(proposed, "card.no_address")["seen"] == "serial 165040100006"
    assert doubt(proposed, "card.lost")["slots"] == ["serial 165040100006"]


JUNK = (None, "", "garbage", "{{ evil }}", "\x00", 0, -1, 10**400, 1.5, float("nan"), True,
        [], [None], ["x"], [[]], {}, {"x": []}, {"label": {}})  # fmt: skip


def _paths(value, path=()):
    """Return the way to every value of an answer."""
    found = [path] if path else []
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in steps:
        found += _paths(one, (*path, key))
    return found


def _full_answer():
    """Return what the modules say of a host, with something in every list that a survey looks at."""
    cards = lost(healthy(1))
    del cards["devices"][1:], cards["kernel_log"], cards["drivers"]
    for name in ("ecc", "repair", "readings", "device_nodes", "processes"):
        del cards["devices"][0][name]
    cards["devices"][0]["logical"] = [{"kind": "mig", "index": 1}]
    cards["devices"][0]["health"] = {"state": "critical", "reasons": ["hot"]}
    cards["devices"][0]["ports"] = cards["devices"][0]["ports"][:1]
    cards["errors"] = ["something"]
    cards["tools"].append({"name": "x-smi", "vendor": "nvidia", "state": "failed", "reason": "no_devices"})
    row = {"component": "firmware", "name": "H100", "subject": "SXM4", "version": "96.00", "source": "nvidia-smi"}
    rows = [row, {**row, "component": "driver_kernel", "name": "nvidia", "subject": None}]
    clock = {"reference": "10.0.0.1", "synchronised": True, "local": False}
    return {
        "cards": cards,
        "versions": {"versions": rows, "errors": ["something"]},
        "baseline": {"time_zone": "Etc/UTC", "clock": clock},
        "error": "something",
    }


@pytest.mark.parametrize("path", _paths(_full_answer()), ids=lambda path: ".".join(str(step) for step in path))
def test_nothing_in_the_answer_of_one_host_costs_the_others_their_proposal(path):
    well = {f"gpu-{number}": {"cards": healthy(number)} for number in (2, 3)}
    expected = propose({name: one["cards"] for name, one in well.items()})["node_types"][H100]["values"]
    for junk in JUNK:
        sick = _full_answer()
        within = sick
        for step in path[:-1]:
            within = within[step]
        within[path[-1]] = junk
        proposed = survey.propose({"gpu-1": sick, **well})
        values = proposed["node_types"][H100]["values"]
        assert {name: one["value"] for name, one in values.items()} == {
            name: one["value"] for name, one in expected.items()
        }, junk
        assert {"gpu-2", "gpu-3"} <= set(proposed["node_types"][H100]["hosts"])
        assert json.dumps(proposed)


@pytest.mark.parametrize("junk", JUNK, ids=lambda junk: repr(junk)[:20])
def test_an_answer_that_is_none_is_no_answer(junk):
    proposed = survey.propose({"gpu-1": junk, "gpu-2": {"cards": healthy(2)}, "gpu-3": {"cards": junk}})
    assert proposed["node_types"][H100]["hosts"] == ["gpu-2"]
    assert {"gpu-1", "gpu-3"} <= {host for one in proposed["doubts"] for host in one["hosts"]}


@pytest.mark.parametrize(
    ("path", "junk", "told"),
    [
        (("devices", 0, "link"), [], "gpu-1: accelerator_info: link is [], which can't be read"),
        (("devices", 0, "link", "width"), "wide", "gpu-1: accelerator_info: link.width is 'wide', which can't be read"),
        (("devices", 0, "memory_bytes"), "80 GiB", "gpu-1: accelerator_info: memory_bytes is '80 GiB', which can't"),
        (("devices", 0), "card", "gpu-1: accelerator_info: devices has 'card', which can't be read"),
        (("unanswered",), {}, "gpu-1: accelerator_info: unanswered is {}, which can't be read"),
        (("bus_count",), "eight", "gpu-1: accelerator_info: bus_count is 'eight', which can't be read"),
        (("devices", 0, "index"), {}, "gpu-1: accelerator_info: index is {}, which can't be read"),
        (("tools", 0), None, "gpu-1: accelerator_info: tools has None, which can't be read"),
    ],
)
def test_a_value_that_can_not_be_read_is_unknown_and_told(path, junk, told):
    odd = healthy(1)
    within = odd
    for step in path[:-1]:
        within = within[step]
    within[path[-1]] = junk
    proposed = propose({"gpu-1": odd, "gpu-2": healthy(2), "gpu-3": healthy(3)})
    assert told in doubt(proposed, "host.unread")["message"]


# ---------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("vendor", "model", "pci_id", "name"),
    [
        ("nvidia", "NVIDIA H100 80GB HBM3", "10de:2330", "nvidia_h100_80gb_hbm3_x1"),
        ("amd", "AMD Instinct MI300X", "1002:74a1", "amd_instinct_mi300x_x1"),
        ("ascend", "910B3", "19e5:d802", "ascend_910b3_x1"),
        ("3com", "Z9", "1eed:0001", "cards_3com_z9_x1"),
        ("acme", "智能卡", "1eed:15a3", "acme_15a3_x1"),
        ("acme", "X" * 90, "1eed:15a3", f"acme_{'x' * 40}_x1"),
    ],
)
def test_names_are_readable_and_such_as_ansible_takes(vendor, model, pci_id, name):
    proposed = propose({"h": host([card(vendor, "0000:11:00.0", model, pci_id)])})
    assert list(proposed["node_types"]) == [name]
    assert re.fullmatch(r"[a-z_][a-z0-9_]*", name)


def test_names_that_collide_get_a_number():
    hosts = {
        "a": host([card("acme", "0000:11:00.0", "T-1", "1eed:0001")]),
        "b": host([card("acme", "0000:11:00.0", "T 1", "1eed:0002")]),
        "acme_t_1_x1_2": host([], bus_count=0),
    }
    # No group may be called like a host either.
    assert set(propose(hosts)["node_types"]) == {"acme_t_1_x1", "acme_t_1_x1_3"}


# ---------------------------------------------------------------------------------------------------- properties


def _random_host(chance, number):
    faults = [
        lambda one: lost(one, chance.randrange(8), slot=chance.random() < 0.5),
        lambda one: without(one, *chance.sample(range(8), chance.randrange(1, 8))),
        no_tool,
        no_bus,
        lambda one: observations.downtrained(one, chance.randrange(8)),
        lambda one: observations.card_lost(one, chance.randrange(8)),
        observations.driver_library_mismatch,
        lambda one: None,
        lambda one: {"failed": True, "msg": "broken"},
        lambda one: host([], bus_count=chance.choice([0, None]), count=None),
        lambda one: ascend(number, chance.randrange(1, 9), chance.choice(["910B3", "910B4"])),
    ]
    observed = healthy(number)
    return chance.choice(faults)(observed) if chance.random() < 0.7 else observed


@pytest.mark.parametrize("seed", range(150))
def test_no_host_is_lost_and_none_is_in_two_types(seed):
    chance = random.Random(seed)
    hosts = {f"h-{number:02}": _random_host(chance, number) for number in range(chance.randrange(1, 9))}
    proposed = propose(hosts, not_asked=["other-1"], language=chance.choice(["en", "zh"]))
    placed = [name for one in proposed["node_types"].values() for name in one["hosts"]]
    assert len(placed) == len(set(placed))
    assert set(proposed["hosts"]) == {*hosts, "other-1"}
    doubted = {name for one in proposed["doubts"] for name in one["hosts"]}
    for name, about in proposed["hosts"].items():
        cards = (hosts.get(name) or {}).get("devices", []) + (hosts.get(name) or {}).get("unanswered", [])
        assert (about["node_type"] is not None) == bool(cards)
        assert about["node_type"] is None or name in proposed["node_types"][about["node_type"]]["hosts"]
        # Who is in no type has no cards, or is doubted.
        assert about["node_type"] or about["cards"] == 0 or name in doubted
    for name, node_type in proposed["node_types"].items():
        count = value(proposed, name, "accelerator_count")
        for member in node_type["hosts"]:
            # A host that shows another number than proposed is doubted, always.
            assert proposed["hosts"][member]["cards"] == count or member in doubted
        if len(node_type["hosts"]) == 1:
            assert ("type.alone", node_type["hosts"], []) in told(proposed)


# ---------------------------------------------------------------------------------------------------- words


@pytest.mark.parametrize("name", doubts.DOUBTS)
def test_a_doubt_is_complete_in_both_languages(name):
    text = doubts.DOUBTS[name]
    fields = {language: set(re.findall(r"\{(\w+)\}", text.message[language])) for language in ("en", "zh")}
    assert fields["en"] == fields["zh"]
    assert fields["en"] <= {"where", "node_type", "seen", "siblings"} and fields["en"]
    for words in (text.message, text.hint):
        assert not CHINESE.search(words["en"])
    assert CHINESE.search(text.hint["zh"])
    assert CHINESE.search(text.message["zh"]) or name == "host.unread"


def test_the_words_of_both_languages_have_the_same_places():
    assert doubts.WORDS["en"].keys() == doubts.WORDS["zh"].keys()
    for name, text in doubts.WORDS["en"].items():
        assert set(re.findall(r"\{\d\}", text)) == set(re.findall(r"\{\d\}", doubts.WORDS["zh"][name])), name


def test_every_doubt_can_be_raised():
    source = "".join(Path(module.__file__).read_text(encoding="utf-8") for module in (survey, node_types))
    for name in doubts.DOUBTS:
        assert f'"{name}"' in source or name.startswith("host.") or name == "contract.refused", name
    assert {f"host.{state}" for state in (node_types.SILENT, node_types.FAILED, node_types.NOT_ASKED)} <= set(
        doubts.DOUBTS
    )


def test_every_proposed_variable_is_one_of_the_contract():
    proposed = propose({"gpu-1": healthy(1)})
    entries = [*proposed["node_types"].values(), proposed["site"]]
    for one in entries:
        for name, entry in one["values"].items():
            assert entry["source"], name
    assert contract.GROUPS[0] == "cluster_hosts"


def test_only_servers_that_a_clock_follows_are_named():
    clocks = {
        "gpu-01": {"reference": "10.0.0.1", "synchronised": True, "local": False},
        "gpu-02": {"reference": "7F7F0101", "synchronised": True, "local": True},
        "gpu-03": {"reference": "10.0.0.9", "synchronised": False, "local": False},
    }
    proposed = survey.propose(
        {name: {"cards": healthy(int(name[-1])), "baseline": {"clock": clock}} for name, clock in clocks.items()}
    )
    assert proposed["site"]["unknown"]["cluster_time_servers"].endswith("seen in use: 10.0.0.1")
