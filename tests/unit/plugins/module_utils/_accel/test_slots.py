# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slot names, the record of a host, and records compared with each other and with a brute-force definition."""

from __future__ import annotations

import copy
import random

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import dmi, model, record, slot_names, slots
from ansible_collections.accel.cluster.plugins.module_utils._accel.pci import Function

AT = "2026-11-30T01:02:03Z"


# ------------------------------------------------------------------ names


def names(functions, declared=None, vendor=None, sysfs=(), dmi_slots=(), boards=None):
    """Return {address: (label, source, [(candidate, its source)])}."""
    functions = [Function(address=one) if isinstance(one, str) else one for one in functions]
    sysfs = [{"name": name, "address": address} for name, address in sysfs]
    found = slot_names.name_slots(functions, declared, vendor or {}, sysfs, dmi_slots, boards)
    return {
        address: (name.label, name.source, [(one["label"], one["source"]) for one in name.candidates])
        for address, name in found.items()
    }


A, B, C = "0000:41:00.0", "0000:5d:00.0", "0000:db:00.0"


class TestCase06:
    """Firmware slot tables that lie: tests/cases/06-dmidecode-slot-bogus, each card and answer from expected.md."""

    @staticmethod
    def cards(cases, which):
        text = (cases / "06-dmidecode-slot-bogus" / f"{which}_cards.txt").read_text()
        return [Function(address=address) for address in text.split()]

    def dmi_names(self, cases, which):
        table = (cases / "06-dmidecode-slot-bogus" / f"{which}_dmidecode_t9.txt").read_text()
        functions = self.cards(cases, which)
        believed, warning = dmi.believable(dmi.parse_dmidecode(table), functions)
        return names(functions, dmi_slots=believed), warning

    def sysfs_names(self, cases, declared=None):
        table = (cases / "06-dmidecode-slot-bogus" / "c_sys_bus_pci_slots.tsv").read_text()
        rows = [tuple(line.split("\t")) for line in table.splitlines() if not line.startswith("#")]
        assert len(rows) == 4
        return names(self.cards(cases, "c"), declared=declared, sysfs=rows)

    def test_a_table_with_one_address_for_all_names_nothing(self, cases):
        found, warning = self.dmi_names(cases, "a")
        assert found == {"0000:18:00.0": (None, None, []), "0000:2a:00.0": (None, None, [])}
        assert warning == "slot table unusable: same address for every slot"

    def test_b_another_function_of_the_same_device_is_the_card(self, cases):
        found, warning = self.dmi_names(cases, "b")
        assert found == {A: ("SLOT 5", "dmi", []), B: ("SLOT 6", "dmi", [])}
        assert warning is None

    def test_c_two_names_for_one_card_are_candidates(self, cases):
        assert self.sysfs_names(cases) == {
            A: ("5", "sysfs", []),
            B: (None, None, [("12", "sysfs"), ("13", "sysfs")]),
            C: (None, None, []),
        }

    def test_d_what_is_declared_wins_whichever_way_round_it_is_written(self, cases):
        # d_inventory.yml, which says it as {label: address}.
        for declared in ({"GPU-3": B}, {B: "GPU-3"}):
            assert self.sysfs_names(cases, declared) == {
                A: ("5", "sysfs", []),
                B: ("GPU-3", "declared", [("12", "sysfs"), ("13", "sysfs")]),
                C: (None, None, []),
            }


def test_the_order_of_trust_and_the_losers_as_candidates():
    table = [dmi.DmiSlot("CPU1 SLOT2", address=A)]
    sources = {"declared": {A: "GPU-1"}, "vendor": {A: "SXM3"}, "sysfs": [("5", "0000:41:00")], "dmi_slots": table}
    assert names([A], **sources)[A] == (
        "GPU-1",
        "declared",
        [("SXM3", "vendor"), ("5", "sysfs"), ("CPU1 SLOT2", "dmi")],
    )
    del sources["declared"]
    assert names([A], **sources)[A] == ("SXM3", "vendor", [("5", "sysfs"), ("CPU1 SLOT2", "dmi")])
    del sources["vendor"]
    assert names([A], **sources)[A] == ("5", "sysfs", [("CPU1 SLOT2", "dmi")])
    del sources["sysfs"]
    assert names([A], **sources)[A] == ("CPU1 SLOT2", "dmi", [])


def test_sources_that_agree_are_no_candidates():
    assert names([A], vendor={A: "5"}, sysfs=[("5", "0000:41:00")])[A] == ("5", "vendor", [])


def test_a_slot_of_a_bridge_above_counts_the_nearest_first():
    card = Function(address="0000:45:00.0", ancestors=["0000:44:00.0", "0000:41:00.0", "0000:40:01.0"])
    assert names([card], sysfs=[("5", "0000:41:00"), ("9", "0000:40:01")])[card.address] == ("5", "sysfs", [])
    assert names([card], sysfs=[("9", "0000:40:01")])[card.address] == ("9", "sysfs", [])
    # The device's own slot is nearer than any bridge's.
    assert names([card], sysfs=[("7", "0000:45:00"), ("5", "0000:41:00")])[card.address] == ("7", "sysfs", [])
    # Two names at the nearest level are not settled by a farther one.
    both = [("5", "0000:41:00"), ("6", "0000:41:00"), ("9", "0000:40:01")]
    assert names([card], sysfs=both)[card.address] == (None, None, [("5", "sysfs"), ("6", "sysfs")])


def test_two_cards_behind_one_slot_have_no_name():
    cards = [Function(address=address, ancestors=["0000:40:01.0"]) for address in (A, B)]
    assert names(cards, sysfs=[("5", "0000:40:01")]) == {
        A: (None, None, [("5", "sysfs")]),
        B: (None, None, [("5", "sysfs")]),
    }
    # The next source is asked instead.
    table = [dmi.DmiSlot("SLOT 1", address=A), dmi.DmiSlot("SLOT 2", address=B)]
    assert names(cards, sysfs=[("5", "0000:40:01")], dmi_slots=table)[A] == ("SLOT 1", "dmi", [("5", "sysfs")])


def test_devices_of_one_board_share_its_slot():
    cards = [Function(address=address, ancestors=["0000:40:01.0"]) for address in (A, B)]
    sysfs = [("5", "0000:40:01")]
    assert names(cards, sysfs=sysfs, boards={A: "S1", B: "S1"}) == {A: ("5", "sysfs", []), B: ("5", "sysfs", [])}
    assert names(cards, sysfs=sysfs, boards={A: "S1", B: "S2"})[A] == (None, None, [("5", "sysfs")])
    # The second chip is lost and cannot tell its serial: the first must not lose its slot for that.
    assert names(cards, sysfs=sysfs, boards={A: "S1", B: None})[A] == ("5", "sysfs", [])
    assert names(cards, vendor={A: "NPU1", B: "NPU1"}, boards={A: "S1", B: "S1"})[B] == ("NPU1", "vendor", [])


def test_functions_of_one_device_share_its_slot():
    assert names([A, "0000:41:00.1"], sysfs=[("5", "0000:41:00")])["0000:41:00.1"] == ("5", "sysfs", [])


def test_a_tool_that_numbers_all_cards_alike_names_none():
    assert names([A, B], vendor={A: "1", B: "1"})[A] == (None, None, [("1", "vendor")])


@pytest.mark.parametrize("nothing", ["0", "0-1", "", None])
def test_number_zero_is_no_slot(nothing):
    assert names([A], vendor={A: nothing}, sysfs=[(nothing or "0", "0000:41:00")])[A] == (None, None, [])


def test_a_name_that_the_kernel_had_to_number_is_not_unique():
    assert names([A, B], sysfs=[("5", "0000:41:00"), ("5-1", "0000:5d:00")]) == {
        A: (None, None, [("5", "sysfs"), ("5-1", "sysfs")]),
        B: (None, None, [("5", "sysfs"), ("5-1", "sysfs")]),
    }
    # Where there is no plain 5, the hyphen is the firmware's own.
    assert names([A], sysfs=[("5-1", "0000:41:00"), ("5-2", "0000:5d:00")])[A] == ("5-1", "sysfs", [])


def test_a_label_declared_for_one_card_is_not_left_to_another():
    # The operator says that the firmware has it the wrong way round for A.
    assert names([A, B], declared={A: "6"}, sysfs=[("5", "0000:41:00"), ("6", "0000:5d:00")]) == {
        A: ("6", "declared", [("5", "sysfs")]),
        B: (None, None, [("6", "sysfs")]),
    }


def test_what_an_operator_declares_is_not_second_guessed():
    # One card in the slot to the operator, two serials to the tool.
    assert names([A, B], declared={A: "tray", B: "tray"}, boards={A: "S1", B: "S2"})[B] == ("tray", "declared", [])


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        ({"GPU-1": "SXM1"}, "'GPU-1': 'SXM1' names no PCI address"),
        ({1080.0: "SXM1"}, "1080.0: 'SXM1' names no PCI address"),  # 18:00.0 without quotes, as YAML 1.1 reads it
        ({A: ""}, "has no name"),
        ({A: None}, "has no name"),
        ({A: "SXM1", "00000000:41:00.0": "SXM2"}, "0000:41:00.0 is declared twice: 'SXM1' and 'SXM2'"),
    ],
)
def test_a_declared_map_that_cannot_be_meant_is_refused(declared, says):
    with pytest.raises(ValueError, match=says):
        slots.declared_slots(declared)


def test_declared_addresses_come_in_any_spelling():
    assert slots.declared_slots({"00000000:41:00.0": 1, "X": "5D:00.0", "0000:db:00": "Y"}) == {
        A: "1",
        B: "X",
        "0000:db:00": "Y",
    }
    assert names([C], declared={"0000:db:00": "Y"})[C] == ("Y", "declared", [])


def test_a_declared_map_put_over_an_observation():
    def device(address, label, serial):
        return {
            "pci_address": address,
            "serial": serial,
            "slot": {"label": label, "source": "vendor", "candidates": []},
        }

    seen = {"devices": [device(A, "1", "S1"), device(B, "2", "S2")], "unanswered": [device(C, None, None)]}
    slots.apply_declared(seen, {A: "2", C: "3"})
    assert [entry["slot"] for entry in [*seen["devices"], *seen["unanswered"]]] == [
        {"label": "2", "source": "declared", "candidates": [{"label": "1", "source": "vendor"}]},
        {"label": None, "source": None, "candidates": [{"label": "2", "source": "vendor"}]},
        {"label": "3", "source": "declared", "candidates": []},
    ]
    again = copy.deepcopy(seen)
    slots.apply_declared(again, {A: "2", C: "3"})
    assert again == seen
    chips = {"devices": [device(A, "NPU1", "S1"), device(B, "NPU1", "S1")], "unanswered": []}
    slots.apply_declared(chips, {A: "NPU1"})
    assert chips["devices"][1]["slot"]["label"] == "NPU1"


def test_slots_sort_as_people_count():
    assert sorted(["SXM10", "SXM2", "SXM1"], key=slots.natural) == ["SXM1", "SXM2", "SXM10"]


# ------------------------------------------------------------------ the record


def device(slot, address, serial="S", uuid="U", **more):
    """Return one entry of ``devices`` or ``unanswered`` as a module returns it."""
    one = model.as_dict(model.Device(vendor="nvidia", model="H100", serial=serial, uuid=uuid, pci_address=address))
    one["slot"] = {"label": slot, "source": "vendor" if slot else None, "candidates": []}
    one.update(source="nvidia-smi", **more)
    return one


def silent(slot, address, state="lost"):
    return {"pci_address": address, "vendor": "nvidia", "state": state, "slot": {"label": slot, "source": None}}


def observation(*devices, unanswered=(), tools=({"name": "nvidia-smi", "version": "570.86.15", "state": "ok"},)):
    return {"devices": list(devices), "unanswered": list(unanswered), "tools": list(tools)}


def built(*devices, previous=None, at=AT, host="gpu-01", **more):
    body = slots.build_record(observation(*devices, **more), host, at, previous)
    assert slots.problems(body) == []
    return body


def told(body):
    """Return what a record says, short: {slot: [(serial, uuid, address, state)]}, unplaced under None."""

    def short(cards):
        return [(card["serial"], card["uuid"], card["pci_address"], card["state"] or "ok") for card in cards]

    assert all(
        card["present"] is (card["state"] is None)
        for one in [*body["slots"].values(), body["unplaced"]]
        for card in one
    )
    found = {label: short(cards) for label, cards in body["slots"].items()}
    return {**found, None: short(body["unplaced"])} if body["unplaced"] else found


def test_a_record_has_the_shape_of_the_contract():
    assert built(device("SXM1", A, "1650423000123", "GPU-1", firmware_version="96.00.74", identity="uuid")) == {
        "schema": 1,
        "host": "gpu-01",
        "observed_at": AT,
        "tool": {"name": "nvidia-smi", "version": "570.86.15"},
        "slots": {
            "SXM1": [
                {
                    "serial": "1650423000123",
                    "uuid": "GPU-1",
                    "identity": "uuid",
                    "pci_address": A,
                    "vendor": "nvidia",
                    "model": "H100",
                    "firmware_version": "96.00.74",
                    "slot_source": "vendor",
                    "candidates": [],
                    "present": True,
                    "state": None,
                }
            ]
        },
        "unplaced": [],
    }


def test_addresses_come_out_canonical_and_boards_as_lists():
    body = built(device("NPU1", "0000:C2:00.0", "S1", "U2"), device("NPU1", "0000:C1:00.0", "S1", "U1"))
    assert told(body) == {"NPU1": [("S1", "U1", "0000:c1:00.0", "ok"), ("S1", "U2", "0000:c2:00.0", "ok")]}


def test_the_tool_that_answered_is_named():
    tools = [
        {"name": "amd-smi", "version": None, "state": "absent"},
        {"name": "rocm-smi", "version": "3.0", "state": "ok"},
    ]
    assert built(tools=tools)["tool"] == {"name": "rocm-smi", "version": "3.0"}
    assert built(tools=tools[:1])["tool"] == {"name": "amd-smi", "version": None}
    assert built(tools=())["tool"] == {"name": "sysfs", "version": None}


def test_a_card_without_a_slot_is_unplaced_with_its_identity_and_candidates():
    one = device(None, A, None, None)
    one["slot"]["candidates"] = [{"label": "12", "source": "sysfs"}, {"label": "13", "source": "sysfs"}]
    body = built(one)
    assert told(body) == {None: [(None, None, A, "ok")]}
    assert body["unplaced"][0]["identity"] == "address"
    assert [one["label"] for one in body["unplaced"][0]["candidates"]] == ["12", "13"]


BOTH = [device("SXM1", A, "S1", "U1", firmware_version="96.1"), device("SXM2", B, "S2", "U2", firmware_version="96.2")]


@pytest.mark.parametrize("slot", ["SXM2", None])  # the vendor's label is unknown once the tool is silent
@pytest.mark.parametrize("state", ["lost", "not_reported"])
def test_a_lost_card_stays_with_its_last_serial(slot, state):
    body = built(BOTH[0], unanswered=[silent(slot, B, state)], previous=built(*BOTH))
    assert told(body) == {"SXM1": [("S1", "U1", A, "ok")], "SXM2": [("S2", "U2", B, state)]}
    assert body["slots"]["SXM2"][0]["firmware_version"] == "96.2"
    assert built(BOTH[0], unanswered=[silent(slot, B, state)], previous=body) == body
    assert told(built(*BOTH, previous=body)) == told(built(*BOTH))


def test_what_the_tool_last_said_of_a_lost_card_counts_more_than_its_place():
    last = {**silent("SXM2", B), "serial": "S9", "uuid": "U9"}
    assert told(built(unanswered=[last])) == {"SXM2": [("S9", "U9", B, "lost")]}
    # It is not the card that was known there, so that one is forgotten, as with any other successor ...
    assert told(built(BOTH[0], unanswered=[last], previous=built(*BOTH)))["SXM2"] == [("S9", "U9", B, "lost")]
    # ... and one that was known elsewhere is not kept there.
    moved = {**silent("SXM9", C), "serial": "S2", "uuid": None}
    assert told(built(BOTH[0], unanswered=[moved], previous=built(*BOTH))) == {
        "SXM1": [("S1", "U1", A, "ok")],
        "SXM9": [("S2", "U2", C, "lost")],
    }


def test_a_lost_card_that_was_never_known_has_no_serial():
    assert told(built(unanswered=[silent("SXM2", B)])) == {"SXM2": [(None, None, B, "lost")]}
    assert told(built(unanswered=[silent(None, B)])) == {None: [(None, None, B, "lost")]}


def test_a_card_that_left_the_bus_stays_as_gone():
    body = built(BOTH[0], previous=built(*BOTH))
    assert told(body) == {"SXM1": [("S1", "U1", A, "ok")], "SXM2": [("S2", "U2", B, "gone")]}
    assert built(BOTH[0], previous=body) == body


def test_a_card_that_does_not_answer_where_nobody_could_look_is_not_gone():
    unread = {**observation(BOTH[0]), "bus_count": None}
    body = slots.build_record(unread, "gpu-01", AT, built(*BOTH))
    assert told(body)["SXM2"] == [("S2", "U2", B, "not_seen")]
    assert slots.problems(body) == []
    # What was seen to be gone is not less so because nobody looks again.
    gone = built(BOTH[0], previous=built(*BOTH))
    assert slots.build_record(unread, "gpu-01", AT, gone) == gone


def test_a_lost_card_is_known_by_its_slot_when_the_addresses_changed():
    # The second card's address now belongs to the third: a bus less is counted.
    three = [*BOTH, device("SXM3", C, "S3", "U3")]
    renumbered = [BOTH[0], device("SXM3", B, "S3", "U3")]
    body = built(*renumbered, unanswered=[silent("SXM2", "0000:99:00.0")], previous=built(*three))
    assert told(body) == {
        "SXM1": [("S1", "U1", A, "ok")],
        "SXM2": [("S2", "U2", "0000:99:00.0", "lost")],
        "SXM3": [("S3", "U3", B, "ok")],
    }


def test_a_card_that_moved_is_not_kept_twice():
    body = built(device("SXM2", B, "S1", "U1"), previous=built(BOTH[0]))
    assert told(body) == {"SXM2": [("S1", "U1", B, "ok")]}
    swapped = built(device("SXM1", A, "S2", "U2"), device("SXM2", B, "S1", "U1"), previous=built(*BOTH))
    assert told(swapped) == {"SXM1": [("S2", "U2", A, "ok")], "SXM2": [("S1", "U1", B, "ok")]}


def test_a_card_whose_slot_another_one_took_is_forgotten():
    assert told(built(device("SXM1", A, "S9", "U9"), previous=built(BOTH[0]))) == {"SXM1": [("S9", "U9", A, "ok")]}


def test_one_lost_chip_of_a_board_stays_beside_its_sister():
    board = [device("NPU1", A, "S1", "U1"), device("NPU1", B, "S1", "U2")]
    lost = built(board[0], unanswered=[silent(None, B)], previous=built(*board))
    assert told(lost) == {"NPU1": [("S1", "U1", A, "ok"), ("S1", "U2", B, "lost")]}
    gone = built(board[1], previous=built(*board))
    assert told(gone) == {"NPU1": [("S1", "U1", A, "gone"), ("S1", "U2", B, "ok")]}
    replaced = built(device("NPU1", A, "S2", "U8"), device("NPU1", B, "S2", "U9"), previous=gone)
    assert told(replaced) == {"NPU1": [("S2", "U8", A, "ok"), ("S2", "U9", B, "ok")]}


def test_a_chip_that_shows_up_late_does_not_push_its_sister_out():
    known = built(device("NPU1", A, "S1", "U1"))
    assert told(built(device("NPU1", B, "S1", "U2"), previous=known)) == {
        "NPU1": [("S1", "U1", A, "gone"), ("S1", "U2", B, "ok")]
    }


def test_two_lost_chips_of_a_board_keep_their_own_identities():
    board = [device("NPU1", A, "S1", "U1"), device("NPU1", B, "S1", "U2")]
    # The one at a new address must not take the identity of the one that stayed where it was.
    lost = [silent("NPU1", "0000:99:00.0"), silent("NPU1", A)]
    assert told(built(unanswered=lost, previous=built(*board))) == {
        "NPU1": [("S1", "U1", A, "lost"), ("S1", "U2", "0000:99:00.0", "lost")]
    }


def test_an_address_does_not_identify_a_card_against_its_slot():
    # What is lost in SXM3 now has the address that SXM2 had before the renumbering.
    body = built(BOTH[0], unanswered=[silent("SXM3", B)], previous=built(*BOTH))
    assert told(body)["SXM2"] == [("S2", "U2", B, "gone")]
    assert told(body)["SXM3"] == [(None, None, B, "lost")]


def test_a_card_whose_slot_a_neighbour_took_is_forgotten():
    assert told(built(device("SXM1", A, "S2", "U2"), previous=built(*BOTH))) == {"SXM1": [("S2", "U2", A, "ok")]}


def test_a_card_whose_tool_is_gone_keeps_its_identity_but_is_not_vouched_for():
    mute = device("SXM1", A, None, None, model=None)
    body = built(mute, previous=built(BOTH[0]))
    assert told(body) == {"SXM1": [("S1", "U1", A, "not_identified")]}
    # Nor where it tells another kind of identity than was known: a chip id, because it lost its serial.
    known = built(device("SXM1", A, "S1", None))
    mute = device("SXM1", A, None, "CHIP-1")
    assert told(built(mute, previous=known)) == {"SXM1": [("S1", None, A, "not_identified")]}
    assert told(built(device("SXM1", A, "S1", "CHIP-1"), previous=known)) == {"SXM1": [("S1", "CHIP-1", A, "ok")]}
    # Another model cannot be the card that was known.
    other = device("SXM1", A, None, None, model="L4")
    assert told(built(other, previous=built(BOTH[0]))) == {"SXM1": [(None, None, A, "ok")]}


def test_a_card_that_never_had_an_identity_is_present():
    mute = device("1", A, None, None)
    assert told(built(mute, previous=built(mute))) == {"1": [(None, None, A, "ok")]}
    # Without a slot name there is nothing to know it by at another address.
    assert told(built(device(None, B, None, None), previous=built(device(None, A, None, None)))) == {
        None: [(None, None, B, "ok")]
    }


def test_a_record_that_has_a_chip_in_two_places_is_none():
    body = built(device("SXM5", A, "S1", "U1"), device("SXM6", B, "S1", "U2"))
    assert slots.problems(body) == []  # two chips of one board
    body["slots"]["SXM6"][0]["uuid"] = "U1"
    assert slots.problems(body) == [(("slots", "SXM6", 0, "uuid"), "U1 is in SXM5 already; a chip is in one place")]


def test_a_uuid_that_two_cards_show_names_neither_in_a_record():
    body = built(device("SXM5", A, "S1", "U1"), device("SXM6", B, "S2", "U1"))
    assert told(body) == {"SXM5": [("S1", None, A, "ok")], "SXM6": [("S2", None, B, "ok")]}


def by_kernel(label, *args, **more):
    """Return a device whose slot only the kernel names."""
    one = device(None, *args, **more)
    one["slot"] = {"label": label, "source": "sysfs", "candidates": []}
    return one


def test_a_card_that_stayed_keeps_the_better_name_of_its_slot():
    """The tool answers only in a short form, without the vendor's number: the kernel calls SXM5 "7"."""
    first = built(device("SXM5", A, "S1", "U1"), device("SXM6", B, "S2", "U2"))
    now = built(by_kernel("7", A, "S1", "U1"), by_kernel("8", B, "S2", "U2"), previous=first)
    assert told(now) == told(first)
    assert now["slots"]["SXM5"][0]["candidates"] == [{"label": "7", "source": "sysfs"}]
    assert now["slots"]["SXM5"][0]["slot_source"] == "vendor"
    assert lines({"gpu-01": first}, {"gpu-01": now}) == []
    # The name comes back as it was.
    assert record.same(built(device("SXM5", A, "S1", "U1"), device("SXM6", B, "S2", "U2"), previous=now), first)


@pytest.mark.parametrize(
    ("now", "where"),
    [
        (by_kernel("7", C, "S1", "U1"), "7"),  # it was put elsewhere
        (by_kernel("7", A, "S9", "U9"), "7"),  # it is another card
        (device("SXM6", A, "S1", "U1"), "SXM6"),  # a source as good says otherwise
    ],
)
def test_a_lesser_name_that_proves_nothing_is_believed(now, where):
    found = built(now, previous=built(device("SXM5", A, "S1", "U1")))
    assert [label for label, (card,) in found["slots"].items() if card["present"]] == [where]


def test_a_better_name_is_not_given_to_two_places():
    first = built(device("SXM5", A, "S1", "U1"))
    now = built(by_kernel("7", A, "S1", "U1"), device("SXM5", B, "S2", "U2"), previous=first)
    assert told(now) == {"7": [("S1", "U1", A, "ok")], "SXM5": [("S2", "U2", B, "ok")]}


def test_a_name_that_is_not_declared_any_more_is_given_up():
    first = device("GPU-1", A, "S1", "U1")
    first["slot"]["source"] = "declared"
    assert list(built(device("SXM5", A, "S1", "U1"), previous=built(first))["slots"]) == ["SXM5"]


def test_the_record_of_another_host_is_no_past_of_this_one():
    assert told(built(BOTH[0], previous=built(*BOTH, host="gpu-99"))) == {"SXM1": [("S1", "U1", A, "ok")]}


def test_only_the_clock_differs_between_two_looks_at_one_state():
    assert record.same(built(*BOTH), built(*reversed(BOTH), at="2026-11-30T09:09:09Z"))


# ------------------------------------------------------------------ comparison


def rec(host="gpu-01", **cards):
    """Return a record from SXM1="serial" or a list of (serial, uuid, {more})."""
    body = {"schema": 1, "host": host, "observed_at": AT, "tool": {}, "slots": {}, "unplaced": []}
    for number, (label, entries) in enumerate(cards.items()):
        for serial, uuid, *more in [(entries, None)] if isinstance(entries, str) else entries:
            card = {
                "serial": serial,
                "uuid": uuid,
                "pci_address": f"0000:{number + 16:02x}:00.0",
                **(more[0] if more else {}),
            }
            if label == "unplaced":
                body["unplaced"].append(card)
            else:
                body["slots"].setdefault(label, []).append(card)
    return body


def lines(baselines, records):
    """Return the differences as lines; what is listed under a host must be the same under the other."""
    if "schema" in records:
        baselines, records = {"gpu-01": baselines}, {"gpu-01": records}
    return slots.difference_lines(slots.compare_cluster(baselines, records))


def test_nothing_differs_when_only_order_addresses_tool_and_clock_do():
    old = rec(SXM1=[("S1", "U1")], SXM2=[("S2", "U2")])
    new = rec(SXM2=[("S2", "U2")], SXM1=[("S1", "U1")])
    new.update(observed_at="2027", tool={"name": "other", "version": "9"})
    assert new["slots"]["SXM1"][0]["pci_address"] == old["slots"]["SXM2"][0]["pci_address"]
    assert lines(old, new) == []
    assert not slots.differs(slots.compare(old, new))


def test_each_kind_on_one_host():
    assert lines(rec(SXM1="A"), rec()) == ["gpu-01 SXM1: serial A (missing, gone)"]
    assert lines(rec(), rec(SXM1="A")) == ["gpu-01 SXM1: serial A (new)"]
    assert lines(None, rec(SXM1="A")) == ["gpu-01 SXM1: serial A (new)"]
    assert lines(rec(SXM1="A"), rec(SXM2="A")) == ["gpu-01 SXM1 -> gpu-01 SXM2: serial A (moved)"]
    assert lines(rec(SXM1="A", SXM2="B"), rec(SXM1="B", SXM2="A")) == [
        "gpu-01 SXM1 <-> gpu-01 SXM2: serial A and serial B (swapped)"
    ]
    assert lines(rec(SXM1="A"), rec(SXM1="B")) == ["gpu-01 SXM1: serial A -> B (replaced)"]
    assert lines(
        rec(SXM1=[("A", "U", {"firmware_version": "1"})]), rec(SXM1=[("A", "U", {"firmware_version": "2"})])
    ) == ["gpu-01 SXM1: serial A, firmware_version 1 -> 2 (changed)"]
    assert lines(rec(SXM1="A"), rec(unplaced="A")) == ["gpu-01: serial A at 0000:10:00.0 (slot not known)"]


def test_an_entry_carries_places_and_cards():
    comparison = slots.compare(rec(SXM1=[("A", "U1")], SXM2=[("B", "U2")]), rec(SXM1=[("B", "U2")], SXM3=[("A", "U1")]))
    card_a = {"serial": "A", "uuids": ["U1"], "model": None, "firmware_version": None}
    assert {kind: len(entries) for kind, entries in comparison.items()} == {
        "missing": 0, "new": 0, "moved": 2, "swapped": 0, "replaced": 0, "changed": 0, "unplaced": 0,
    }  # fmt: skip
    assert comparison["moved"][0] == {
        "from_host": "gpu-01",
        "from_slot": "SXM1",
        "to_host": "gpu-01",
        "to_slot": "SXM3",
        "old": {**card_a, "pci_addresses": ["0000:10:00.0"]},
        "new": {**card_a, "pci_addresses": ["0000:11:00.0"]},
        "reason": None,
        "fields": [],
    }


def test_a_rotation_of_three_is_three_moves():
    assert lines(rec(SXM1="A", SXM2="B", SXM3="C"), rec(SXM1="C", SXM2="A", SXM3="B")) == [
        "gpu-01 SXM1 -> gpu-01 SXM2: serial A (moved)",
        "gpu-01 SXM2 -> gpu-01 SXM3: serial B (moved)",
        "gpu-01 SXM3 -> gpu-01 SXM1: serial C (moved)",
    ]


def test_a_card_whose_old_one_lives_elsewhere_is_not_its_replacement():
    assert lines(rec(SXM1="A"), rec(SXM1="B", SXM2="A")) == [
        "gpu-01 SXM1: serial B (new)",
        "gpu-01 SXM1 -> gpu-01 SXM2: serial A (moved)",
    ]
    # B came from another slot: it moved there, and A is missing; nothing new came into the cluster.
    assert lines(rec(SXM1="A", SXM2="B"), rec(SXM1="B")) == [
        "gpu-01 SXM1: serial A (missing, gone)",
        "gpu-01 SXM2 -> gpu-01 SXM1: serial B (moved)",
    ]


def test_a_card_that_changed_hosts_moved():
    before = {"gpu-01": rec("gpu-01", SXM1="A", SXM2="B"), "gpu-02": rec("gpu-02", SXM1="C")}
    after = {"gpu-01": rec("gpu-01", SXM2="B"), "gpu-02": rec("gpu-02", SXM1="C", SXM5="A")}
    assert lines(before, after) == ["gpu-01 SXM1 -> gpu-02 SXM5: serial A (moved)"]
    result = slots.compare_cluster(before, after)
    assert result["gpu-01"]["moved"] == result["gpu-02"]["moved"]
    # Seen alone, each host tells another story: that is why all are judged together.
    assert lines(before["gpu-01"], after["gpu-01"]) == ["gpu-01 SXM1: serial A (missing, gone)"]


def test_cards_exchanged_between_hosts_are_swapped():
    before = {"gpu-01": rec("gpu-01", SXM1="A"), "gpu-02": rec("gpu-02", SXM1="B")}
    after = {"gpu-01": rec("gpu-01", SXM1="B"), "gpu-02": rec("gpu-02", SXM1="A")}
    assert lines(before, after) == ["gpu-01 SXM1 <-> gpu-02 SXM1: serial A and serial B (swapped)"]
    result = slots.compare_cluster(before, after)
    assert result["gpu-01"]["swapped"] == result["gpu-02"]["swapped"] != []


def test_a_host_that_was_not_observed_misses_nothing_but_its_cards_are_known():
    before = {"gpu-01": rec("gpu-01", SXM1="A", SXM2="B"), "gpu-02": rec("gpu-02", SXM1="C")}
    after = {"gpu-01": None, "gpu-02": rec("gpu-02", SXM1="C", SXM5="A")}
    result = slots.compare_cluster(before, after)
    assert list(result) == ["gpu-02"]
    assert slots.difference_lines(result) == ["gpu-01 SXM1 -> gpu-02 SXM5: serial A (moved)"]
    assert slots.compare_cluster(before, {}) == {}


def test_the_old_baseline_of_a_host_that_was_down_is_told_once_and_only_there():
    before = {"gpu-01": rec("gpu-01", SXM1="A"), "gpu-02": rec("gpu-02", SXM5="A")}
    after = {"gpu-01": rec("gpu-01"), "gpu-02": rec("gpu-02", SXM5="A")}
    result = slots.compare_cluster(before, after)
    assert [entry["reason"] for entry in result["gpu-01"]["moved"]] == ["baseline_outdated"]
    assert not slots.differs(result["gpu-02"])
    assert slots.difference_lines(result) == ["gpu-01 SXM1 -> gpu-02 SXM5: serial A (moved)"]


def test_one_card_in_two_places_is_not_believed():
    before = {"gpu-01": rec("gpu-01", SXM1="A"), "gpu-02": rec("gpu-02")}
    after = {"gpu-01": rec("gpu-01", SXM1="A"), "gpu-02": rec("gpu-02", SXM5="A")}
    assert lines(before, after) == ["gpu-02 SXM5: serial A (new, seen in another place too)"]
    assert slots.compare_cluster(before, after)["gpu-02"]["new"][0]["reason"] == "duplicate"


@pytest.mark.parametrize("state", ["lost", "not_reported", "not_identified", "gone", "not_seen"])
def test_a_card_that_is_not_present_is_missing_for_its_reason(state):
    away = {"present": False, "state": state}
    expected = [f"gpu-01 SXM1: serial A (missing, {state.replace('_', ' ')})"]
    assert lines(rec(SXM1=[("A", "U")]), rec(SXM1=[("A", "U", away)])) == expected
    # A record that begins with the loss (a reinstalled host) does not know the serial; the place tells.
    if state not in ("gone", "not_seen"):
        assert lines(rec(SXM1=[("A", "U")]), rec(SXM1=[(None, None, away)])) == expected
        assert lines(rec(SXM1=[("A", "U")]), rec(unplaced=[(None, None, away)])) == expected


def test_a_memory_of_a_card_does_not_hide_where_it_is_now():
    away = ("A", "U", {"present": False, "state": "gone"})
    before = {"gpu-01": rec("gpu-01", SXM1=[("A", "U")]), "gpu-02": rec("gpu-02")}
    after = {"gpu-01": rec("gpu-01", SXM1=[away]), "gpu-02": rec("gpu-02", SXM3=[("A", "U")])}
    assert lines(before, after) == ["gpu-01 SXM1 -> gpu-02 SXM3: serial A (moved)"]


def test_a_card_that_no_baseline_knows_and_that_is_lost_is_not_new():
    assert lines(rec(), rec(SXM1=[("A", "U", {"present": False, "state": "lost"})])) == []


def test_something_nameless_in_the_place_of_a_known_card_is_not_news():
    assert lines(rec(SXM1=[("A", "U")]), rec(SXM1=[(None, None)])) == [
        "gpu-01 SXM1: serial A (missing, not identified)"
    ]
    # Another model is another card.
    old, new = rec(SXM1=[("A", "U", {"model": "H100"})]), rec(SXM1=[(None, None, {"model": "L4"})])
    assert lines(old, new) == ["gpu-01 SXM1: serial A -> card at 0000:10:00.0 (replaced)"]


def test_an_identity_that_is_told_for_the_first_time_is_a_change_not_a_replacement():
    assert lines(rec(SXM1=[(None, None)]), rec(SXM1=[("A", "U")])) == [
        "gpu-01 SXM1: serial A, serial none -> A, uuid none -> U (changed)"
    ]


def test_another_tool_that_writes_uuids_otherwise_does_not_replace_the_cards():
    assert lines(rec(SXM1=[("A", "U")], SXM2=[("B", "V")]), rec(SXM1=[("A", None)], SXM2=[("B", None)])) == []
    assert lines(rec(SXM1=[("A", "U")], SXM2=[("B", "V")]), rec(SXM1=[("B", None)], SXM2=[("A", None)])) == [
        "gpu-01 SXM1 <-> gpu-01 SXM2: serial A and serial B (swapped)"
    ]
    assert lines(rec(SXM1=[("A", "0x1")]), rec(SXM1=[("A", "1-0-0")])) == [
        "gpu-01 SXM1: serial A, uuid 0x1 -> 1-0-0 (changed)"
    ]


def test_cards_without_any_identity_are_held_by_their_slot():
    old = rec(S1=[(None, None)], S2=[(None, None)])
    assert lines(old, rec(S2=[(None, None)], S1=[(None, None)])) == []  # the addresses changed places
    assert lines(old, rec(S1=[(None, None)])) == ["gpu-01 S2: card at 0000:11:00.0 (missing, gone)"]
    # The same address under another name of the slot: all that can be said is that it is elsewhere.
    assert lines(rec(S1=[(None, None)]), rec(S9=[(None, None)])) == [
        "gpu-01 S1 -> gpu-01 S9: card at 0000:10:00.0 (moved)"
    ]


def test_a_serial_that_all_boards_share_does_not_make_them_one():
    # Engineering samples: the UUID is what tells them apart.
    assert lines(rec(S1=[("123", "U1")]), rec(S2=[("123", "U2")])) == [
        "gpu-01 S1: serial 123 (missing, gone)",
        "gpu-01 S2: serial 123 (new)",
    ]


BOARD_A, BOARD_B = [("A", "A1"), ("A", "A2")], [("B", "B1"), ("B", "B2")]


def test_boards_are_told_as_one():
    assert lines(rec(S1=BOARD_A), rec(S1=BOARD_A[::-1])) == []
    assert lines(rec(S1=BOARD_A), rec(S2=BOARD_A)) == ["gpu-01 S1 -> gpu-01 S2: serial A (moved)"]
    assert lines(rec(S1=BOARD_A), rec(S1=BOARD_B)) == ["gpu-01 S1: serial A -> B (replaced)"]
    assert lines(rec(S1=BOARD_A, S2=BOARD_B), rec(S1=BOARD_B, S2=BOARD_A)) == [
        "gpu-01 S1 <-> gpu-01 S2: serial A and serial B (swapped)"
    ]
    swapped = slots.compare(rec(S1=BOARD_A, S2=BOARD_B), rec(S1=BOARD_B, S2=BOARD_A))["swapped"][0]
    assert (swapped["old"]["uuids"], swapped["new"]["uuids"]) == (["A1", "A2"], ["B1", "B2"])


def test_one_chip_of_a_board_that_died_is_missing_alone():
    comparison = slots.compare(rec(S1=BOARD_A), rec(S1=BOARD_A[:1]))
    assert [entry["old"]["uuids"] for entry in comparison["missing"]] == [["A2"]]
    # ... and one that was dead before and answers now is new, on the same board
    comparison = slots.compare(rec(S1=BOARD_A[:1]), rec(S0=[], S1=BOARD_A[1:]))
    assert [entry["old"]["uuids"] for entry in comparison["missing"]] == [["A1"]]
    assert [entry["new"]["uuids"] for entry in comparison["new"]] == [["A2"]]
    # ... also when the board, or its neighbour, moved at the same time
    assert lines(rec(S1=BOARD_A), rec(S2=BOARD_A[:1])) == [
        "gpu-01 S1: serial A (missing, gone)",
        "gpu-01 S1 -> gpu-01 S2: serial A (moved)",
    ]


def test_chips_without_uuid_are_counted_within_their_board():
    pair, single = [("A", None), ("A", None)], [("A", None)]
    assert lines(rec(S1=pair), rec(S1=pair)) == []
    assert lines(rec(S1=pair), rec(S1=single)) == ["gpu-01 S1: serial A (missing, gone)"]
    assert lines(rec(S1=single), rec(S1=pair)) == ["gpu-01 S1: serial A (new)"]
    assert lines(rec(S1=pair), rec(S2=pair)) == ["gpu-01 S1 -> gpu-01 S2: serial A (moved)"]


def test_a_moved_card_may_have_new_firmware_too():
    old, new = rec(S1=[("A", "U", {"firmware_version": "1"})]), rec(S2=[("A", "U", {"firmware_version": "2"})])
    assert lines(old, new) == [
        "gpu-01 S1 -> gpu-01 S2: serial A (moved)",
        "gpu-01 S2: serial A, firmware_version 1 -> 2 (changed)",
    ]
    # Firmware that nobody could read is not other firmware.
    assert (
        lines(rec(S1=[("A", "U", {"firmware_version": "1"})]), rec(S1=[("A", "U", {"firmware_version": None})])) == []
    )


# ------------------------------------------------------------------ comparison against a brute-force definition


def brute_force(old, new, observed):
    """Return the events by definition, from two maps {board: place}; a place is (host, slot).

    Independent of the code under test: it knows no records, no devices, no keys; only where each board was
    and is.
    """
    events = set()
    for board, place in old.items():
        if board in new:
            if new[board] != place:
                partners = [other for other in old if other in new and (old[other], new[other]) == (new[board], place)]
                if partners:
                    events.add(("swapped", frozenset((board, partners[0]))))
                else:
                    events.add(("moved", board, place, new[board]))
        elif place[0] in observed:
            successors = [other for other in new if new[other] == place and other not in old]
            if successors:
                events.add(("replaced", place, board, successors[0]))
            else:
                events.add(("missing", place, board))
    for board, place in new.items():
        if board not in old:
            predecessors = [other for other in old if old[other] == place and other not in new]
            if not predecessors:
                events.add(("new", place, board))
    return events


def as_records(assignment, hosts, identity, devices, rng):
    """Return {host: record} for {board: place}: devices a board each, shuffled, with random addresses."""
    records = {host: rec(host) for host in hosts}
    free = [f"0000:{bus:02x}:00.0" for bus in range(1, 200)]
    rng.shuffle(free)
    for board, (host, slot) in assignment.items():
        for number in range(devices):
            uuid = f"{board}-{number}" if identity == "uuid" else None
            card = {"serial": board, "uuid": uuid, "pci_address": free.pop(), "index": rng.random()}
            records[host]["slots"].setdefault(slot, []).append(card)
    for body in records.values():
        items = list(body["slots"].items())
        rng.shuffle(items)
        body["slots"] = {slot: rng.sample(cards, len(cards)) for slot, cards in items}
    return records


def events_of(result, devices):
    """Return the comparison in the words of ``brute_force``; each entry must tell whole boards."""
    events = set()
    for host, comparison in result.items():
        for kind, entries in comparison.items():
            for entry in entries:
                start, end = (entry["from_host"], entry["from_slot"]), (entry["to_host"], entry["to_slot"])
                old, new = entry["old"], entry["new"]
                for board in (old, new):
                    assert board is None or len(board["pci_addresses"]) == devices
                    assert board is None or len(board["uuids"]) in (0, devices)
                assert host in (entry["from_host"], entry["to_host"])
                if kind == "swapped":
                    events.add((kind, frozenset((old["serial"], new["serial"]))))
                elif kind == "moved":
                    assert old["serial"] == new["serial"]
                    events.add((kind, old["serial"], start, end))
                elif kind == "replaced":
                    assert start == end
                    events.add((kind, start, old["serial"], new["serial"]))
                elif kind == "missing":
                    events.add((kind, start, old["serial"]))
                else:
                    events.add((kind, end, new["serial"]))
    return events


@pytest.mark.parametrize("identity", ["uuid", "serial"])
@pytest.mark.parametrize("devices", [1, 2, 4])
def test_random_permutations_agree_with_the_definition(identity, devices):
    rng = random.Random(f"{identity} {devices}")
    hosts = ["gpu-01", "gpu-02", "gpu-03"]
    places = [(host, f"SXM{number}") for host in hosts for number in range(1, 5)]
    seen = set()
    for _unused in range(250):
        boards = [f"B{number}" for number in range(rng.randint(0, 12))]
        old = dict(zip(boards, rng.sample(places, len(boards))))
        # Most stay where they are, or all get exchanged: both ends of what happens.
        new = dict(old)
        for _unused in range(rng.choice([0, 1, 1, 2, 5, 20])):
            action = rng.choice(["exchange", "exchange", "rotate", "move", "remove", "add", "replace"])
            free = [place for place in places if place not in new.values()]
            some = rng.sample(sorted(new), min(3, len(new)))
            if action == "exchange" and len(some) >= 2:
                new[some[0]], new[some[1]] = new[some[1]], new[some[0]]
            elif action == "rotate" and len(some) == 3:
                new[some[0]], new[some[1]], new[some[2]] = new[some[1]], new[some[2]], new[some[0]]
            elif action == "move" and some and free:
                new[some[0]] = rng.choice(free)
            elif action == "remove" and some:
                del new[some[0]]
            elif action == "add" and free:
                new[f"N{rng.randint(0, 10**9)}"] = rng.choice(free)
            elif action == "replace" and some:
                new[f"N{rng.randint(0, 10**9)}"] = new.pop(some[0])
        observed = set(hosts) if rng.random() < 0.6 else set(rng.sample(hosts, 2))
        visible = {board: place for board, place in new.items() if place[0] in observed}
        records = as_records(visible, observed, identity, devices, rng)
        result = slots.compare_cluster(as_records(old, hosts, identity, devices, rng), records)
        expected = brute_force(old, visible, observed)
        assert events_of(result, devices) == expected
        assert sorted(result) == sorted(observed)
        seen.update(event[0] for event in expected)
    assert seen == {"missing", "new", "moved", "swapped", "replaced"}, "the sample must show every kind"


# ------------------------------------------------------------------ accepting


def test_a_sound_host_is_not_refused():
    assert slots.refusals({"gpu-01": rec(SXM1="A", SXM2="B")}, {"gpu-01": "2"}) == {}


@pytest.mark.parametrize(
    ("body", "declared", "why"),
    [
        (rec(SXM1="A"), 2, ["1 of 2 declared cards answer"]),
        (rec(SXM1="A", SXM2="B"), 1, ["2 cards answer, only 1 are declared"]),
        (rec(SXM1="A"), None, ["the number of cards is not declared (cluster_accelerator_count)"]),
        (rec(SXM1="A"), "eight", ["the number of cards is not declared (cluster_accelerator_count)"]),
        (
            rec(unplaced="A"),
            1,
            ["serial A at 0000:10:00.0 has no slot name; declare it in cluster_accelerator_slots"],
        ),
        (
            rec(SXM1="A", SXM5=[("B", "U", {"present": False, "state": "lost"})]),
            2,
            ["1 of 2 declared cards answer", "SXM5: serial B at 0000:11:00.0 is lost"],
        ),
        # Declared for fewer cards than there are slots in use: a card that is on the bus and dead is still broken.
        (
            rec(SXM1="A", SXM5=[("B", "U", {"present": False, "state": "lost"})]),
            1,
            ["SXM5: serial B at 0000:11:00.0 is lost"],
        ),
        (
            rec(SXM1=[(None, None, {"present": False, "state": "not_reported"})]),
            0,
            ["SXM1: card at 0000:10:00.0 is not reported"],
        ),
        # Taken out, and the declaration says so.
        (rec(SXM1="A", SXM5=[("B", "U", {"present": False, "state": "gone"})]), 1, None),
        (
            rec(SXM1="A", SXM5=[("B", "U", {"present": False, "state": "gone"})]),
            2,
            ["1 of 2 declared cards answer", "SXM5: serial B at 0000:11:00.0 is gone"],
        ),
    ],
)
def test_a_baseline_is_not_learned_from_a_broken_host(body, declared, why):
    assert slots.refusals({"gpu-01": body}, {"gpu-01": declared}) == ({"gpu-01": why} if why else {})


def test_a_card_that_answers_on_another_host_is_not_lost():
    away = ("A", "U", {"present": False, "state": "lost"})
    records = {"gpu-01": rec("gpu-01", SXM1=[away]), "gpu-02": rec("gpu-02", SXM1=[("A", "U")])}
    assert slots.refusals(records, {"gpu-01": 0, "gpu-02": 1}) == {}
    # The sister chip of a lost one has the same serial and is no excuse for it.
    chips = rec(S1=[("A", "A1"), ("A", "A2", {"present": False, "state": "lost"})])
    assert slots.refusals({"gpu-01": chips}, {"gpu-01": 1}) == {"gpu-01": ["S1: serial A at 0000:10:00.0 is lost"]}
    chips = rec(S1=[("A", None), ("A", None, {"present": False, "state": "lost"})])
    assert slots.refusals({"gpu-01": chips}, {"gpu-01": 1}) == {"gpu-01": ["S1: serial A at 0000:10:00.0 is lost"]}


def test_a_card_that_two_hosts_report_is_refused_on_both():
    records = {"gpu-01": rec("gpu-01", SXM1=[("A", "U")]), "gpu-02": rec("gpu-02", SXM3=[("A", "U")])}
    assert slots.refusals(records, {"gpu-01": 1, "gpu-02": 1}) == {
        "gpu-01": ["SXM1: serial A at 0000:10:00.0 is reported by gpu-02 SXM3 too"],
        "gpu-02": ["SXM3: serial A at 0000:10:00.0 is reported by gpu-01 SXM1 too"],
    }


def test_a_baseline_holds_the_cards_that_are_present():
    body = rec(SXM1="A", SXM5=[("B", "U", {"present": False, "state": "gone"})])
    accepted = {"at": AT, "by": "kim", "reason": "first"}
    baseline = slots.as_baseline(body, accepted)
    assert baseline == {**rec(SXM1="A"), "accepted": accepted}
    assert slots.problems(baseline) == []
    assert list(body["slots"]) == ["SXM1", "SXM5"]


def test_the_history_tells_each_slot_what_left_and_what_came():
    before = {"gpu-01": rec("gpu-01", S1="A", S2="B", S3="C", S4="D"), "gpu-02": rec("gpu-02", S1="E")}
    after = {"gpu-01": rec("gpu-01", S1="B", S2="A", S3="X"), "gpu-02": rec("gpu-02", S1="E", S2="D", S3="Y")}
    result = slots.compare_cluster(before, after)
    told = [
        (event["host"], event["slot"], event["event"], event["old_serial"], event["new_serial"])
        for host, comparison in result.items()
        for event in slots.history_events(host, comparison)
    ]
    assert told == [
        ("gpu-01", "S4", "moved", "D", None),
        ("gpu-01", "S1", "swapped", "A", "B"),
        ("gpu-01", "S2", "swapped", "B", "A"),
        ("gpu-01", "S3", "replaced", "C", "X"),
        ("gpu-02", "S3", "new", None, "Y"),
        ("gpu-02", "S2", "moved", None, "D"),
    ]


def test_the_first_cards_of_a_host_are_installed_and_firmware_is_named():
    events = slots.history_events("gpu-01", slots.compare(None, rec(S1="A")), first=True)
    assert [(event["event"], event["new_serial"]) for event in events] == [("installed", "A")]
    old, new = rec(S1=[("A", "U", {"firmware_version": "1"})]), rec(S1=[("A", "U", {"firmware_version": "2"})])
    assert slots.history_events("gpu-01", slots.compare(old, new)) == [
        {
            "host": "gpu-01",
            "slot": "S1",
            "event": "firmware",
            "old_serial": "A",
            "old_uuids": ["U"],
            "old_firmware_version": "1",
            "new_serial": "A",
            "new_uuids": ["U"],
            "new_firmware_version": "2",
        }
    ]
