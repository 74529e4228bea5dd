# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state: what is accepted, what follows from it, and that faults leave no trace."""

from __future__ import annotations

import pytest
import yaml
from accel_emulator import models, state

H100 = {"profile": "nvidia_h100_8", "seed": "gpu-01"}


def cards(declared: dict) -> dict[str, state.Card]:
    return {card.slot: card for card in state.expand(declared).cards}


@pytest.mark.parametrize("profile", sorted(models.PROFILES))
def test_cards_of_a_profile_have_ids_of_their_own_that_follow_from_the_seed(profile: str) -> None:
    first = state.expand({"profile": profile, "seed": "one"}).cards
    again = state.expand({"profile": profile, "seed": "one"}).cards
    other = state.expand({"profile": profile, "seed": "two"}).cards
    assert first == again
    assert len({card.uuid for card in first + other}) == 2 * len(first)
    # Chips of one board share its serial.
    assert len({card.serial for card in first + other}) == 2 * len(first) // first[0].chips
    # One server model: the places are equal, whatever the seed.
    assert [(card.slot, card.address) for card in first] == [(card.slot, card.address) for card in other]


@pytest.mark.parametrize(
    ("profile", "serial", "uuid"),
    [
        ("nvidia_h100_8", 13, "GPU-"),
        ("amd_mi300x_8", 12, ""),
        ("ascend_910b_8", 12, ""),
    ],
)
def test_ids_look_like_the_vendors(profile: str, serial: int, uuid: str) -> None:
    for card in state.expand({"profile": profile}).cards:
        assert card.serial.isdigit()
        assert len(card.serial) == serial
        assert card.uuid.startswith(uuid)


def test_an_amd_uuid_holds_the_chips_serial_and_the_device_id() -> None:
    declared = {"profile": "amd_mi300x_8", "cards": [{"slot": "OAM0", "uuid": "67ff74a1-0000-1000-80e6-b5bb3c3ce0db"}]}
    assert state.asic_serial(cards(declared)["OAM0"]) == "0x67E6B5BB3C3CE0DB"


def test_the_order_of_indexes_is_not_the_order_of_slots() -> None:
    host = state.expand(H100)
    assert [card.index for card in host.cards] == list(range(8))
    assert [card.slot_number for card in host.cards] == [2, 4, 3, 1, 7, 8, 5, 6]
    assert cards(H100)["SXM5"].address == "0000:ba:00.0"


def test_a_declared_card_is_laid_over_the_profile() -> None:
    laid = cards({**H100, "cards": [{"slot": "SXM3", "serial": "1650000000001", "health": "warning", "busy": True}]})
    plain = cards(H100)
    assert (laid["SXM3"].serial, laid["SXM3"].health, laid["SXM3"].speed_gts) == ("1650000000001", "warning", 32.0)
    assert laid["SXM3"].uuid == plain["SXM3"].uuid
    assert {name: card for name, card in laid.items() if name != "SXM3"} == {
        name: card for name, card in plain.items() if name != "SXM3"
    }


def test_cards_need_no_profile() -> None:
    host = state.expand(
        {
            "vendor": "nvidia",
            "driver_version": "550.90.07",
            "wiring": "direct",
            "cards": [
                {"slot": "PCIE1", "address": "0000:41:00.0", "model": "NVIDIA A100-SXM4-80GB"},
                {"slot": "PCIE2", "address": "0001:41:00.0", "model": "NVIDIA A100-SXM4-80GB", "link_width": 8},
            ],
        }
    )
    assert [(card.index, card.address, card.link_width) for card in host.cards] == [
        (0, "0000:41:00.0", 16),
        (1, "0001:41:00.0", 8),
    ]


def test_idle_links_are_slow_and_wide_busy_ones_fast() -> None:
    assert {(card.speed_gts, card.width) for card in cards(H100).values()} == {(2.5, 16)}
    busy = cards({**H100, "cards": [{"slot": "SXM1", "busy": True}]})
    assert (busy["SXM1"].speed_gts, busy["SXM2"].speed_gts) == (32.0, 2.5)


@pytest.mark.parametrize(
    ("declared", "complaint"),
    [
        ({}, "vendor: '' is unknown; accepted: nvidia, amd, ascend"),
        ({"profile": "nvidia_h100"}, "profile: 'nvidia_h100' is unknown; accepted: nvidia_h100_8"),
        ({"profile": "nvidia_h100_8", "vendor": "amd"}, "vendor: 'amd', but profile nvidia_h100_8 is of nvidia"),
        ({"vendor": "nvidia", "driver_version": "570.86.15"}, "cards: neither a profile nor a card is declared"),
        ({**H100, "driver_version": "510.47.03"}, "driver_version: '510.47.03' has no known output format"),
        ({**H100, "slot_scheme": "both"}, "slot_scheme: 'both' is unknown; accepted: card, bridge, none"),
        ({**H100, "gpus": 8}, "gpus: not a key of the state; accepted: "),
        ({**H100, "schema": 2}, "schema: 2 is not known here; accepted: 1"),
        ({**H100, "cards": {"slot": "SXM1"}}, "cards: not a list of mappings"),
        ({**H100, "cards": [{"slot": "SXM9"}]}, "cards[0].slot: 'SXM9' is not in profile nvidia_h100_8; it has: SXM2"),
        ({**H100, "cards": [{"slot": 5}]}, "cards[0].slot: '5' is no slot; accepted: letters and then a number"),
        ({**H100, "cards": [{"slot": "SXM1"}, {"slot": "SXM1"}]}, "cards[1].slot: 'SXM1' is declared twice"),
        ({**H100, "cards": [{"slot": "SXM1", "colour": "green"}]}, "cards[0].colour: not a key of a card; accepted: "),
        ({**H100, "cards": [{"slot": "SXM1", "health": "bad"}]}, "cards SXM1.health: 'bad' is unknown; accepted: ok"),
        ({**H100, "cards": [{"slot": "SXM1", "index": "one"}]}, "cards SXM1.index: 'one'; accepted: a whole number"),
        ({**H100, "cards": [{"slot": "SXM1", "index": 0}]}, "cards: SXM1 and SXM2 have the same index, 0"),
        ({**H100, "cards": [{"slot": "SXM1", "address": "18:00.0"}]}, "cards SXM1.address: '18:00.0' is no address"),
        ({**H100, "cards": [{"slot": "SXM1", "address": "0000:18:00.0"}]}, "have the same address, '0000:18:00.0'"),
        (
            {**H100, "cards": [{"slot": "SXM1", "address": "0000:17:00.0"}]},
            "cards SXM1.address: bus 15 is taken by SXM2",
        ),
        ({**H100, "cards": [{"slot": "SXM1", "address": "0000:02:00.0"}]}, "bus 02 leaves no room for the bridges"),
        (
            {**H100, "cards": [{"slot": "SXM1", "model": "H100"}]},
            "cards SXM1.model: 'H100' is unknown; accepted for nvidia",
        ),
        (
            {**H100, "cards": [{"slot": "SXM1", "uuid": "GPU-1"}]},
            "cards SXM1.uuid: 'GPU-1' is no nvidia id; accepted: like",
        ),
        ({**H100, "cards": [{"slot": "SXM1", "link_width": 12}]}, "cards SXM1.link_width: 12; accepted: 1 2 4 8 16"),
        (
            {**H100, "cards": [{"slot": "SXM1", "link_speed_gts": 30}]},
            "cards SXM1.link_speed_gts: 30; accepted: 2.5 5 8",
        ),
        (
            {**H100, "faults": [{"fault": "melted", "slot": "SXM1"}]},
            "faults[0].fault: 'melted' is unknown; accepted: card_lost",
        ),
        ({**H100, "faults": [{"fault": "card_lost"}]}, "faults[0].fault: card_lost takes one slot, given: none"),
        (
            {**H100, "faults": [{"fault": "card_lost", "slot": "SXM9"}]},
            "faults[0].slot: 'SXM9' names no card; accepted: SXM1, SXM2",
        ),
        (
            {**H100, "faults": [{"fault": "card_lost", "place": "SXM1"}]},
            "faults[0]: place: accepted keys are fault, slot, slot_b",
        ),
        ({**H100, "faults": ["card_lost"]}, "faults: not a list of mappings"),
    ],
)
def test_a_wrong_state_is_refused_with_what_is_accepted(declared: dict, complaint: str) -> None:
    with pytest.raises(state.StateError) as caught:
        state.expand(declared)
    assert complaint in str(caught.value)


def test_all_complaints_come_at_once() -> None:
    with pytest.raises(state.StateError) as caught:
        state.expand({**H100, "driver_version": "1.2", "colour": 1, "cards": [{"slot": "SXM1", "health": "bad"}]})
    assert [text.split(":")[0] for text in caught.value.complaints] == ["colour", "driver_version", "cards SXM1.health"]


def test_text_that_is_no_mapping_is_refused() -> None:
    for text in ("- a\n- b\n", "a: [\n", ""):
        with pytest.raises(state.StateError):
            state.load(text)


def test_swapped_cards_exchange_what_goes_with_the_card_and_nothing_of_the_place() -> None:
    plain = cards({**H100, "cards": [{"slot": "SXM5", "health": "warning", "link_width": 8}]})
    swapped = cards(
        {
            **H100,
            "cards": [{"slot": "SXM5", "health": "warning", "link_width": 8}],
            "faults": [{"fault": "cards_swapped", "slot": "SXM5", "slot_b": "SXM6"}],
        }
    )
    for here, there in (("SXM5", "SXM6"), ("SXM6", "SXM5")):
        assert (swapped[here].serial, swapped[here].uuid) == (plain[there].serial, plain[there].uuid)
        assert (swapped[here].health, swapped[here].width) == (plain[there].health, plain[there].width)
        assert (swapped[here].address, swapped[here].index) == (plain[here].address, plain[here].index)
    assert swapped["SXM1"] == plain["SXM1"]


def test_a_swap_is_the_same_in_both_directions_and_counts_once() -> None:
    both = [
        {"fault": "cards_swapped", "slot": "SXM6", "slot_b": "SXM5"},
        {"fault": "cards_swapped", "slot": "0000:ba:00.0", "slot_b": "6"},
    ]
    host = state.expand({**H100, "faults": both})
    assert host.faults == [{"fault": "cards_swapped", "slot": "SXM5", "slot_b": "SXM6"}]


def test_a_replaced_card_has_another_serial_and_uuid_in_the_same_place() -> None:
    plain, fault = cards(H100), {"fault": "card_replaced", "slot": "SXM5"}
    replaced = cards({**H100, "faults": [fault]})
    assert replaced["SXM5"].serial not in {card.serial for card in plain.values()}
    assert replaced["SXM5"].uuid not in {card.uuid for card in plain.values()}
    assert (replaced["SXM5"].address, replaced["SXM5"].model) == (plain["SXM5"].address, plain["SXM5"].model)
    assert cards({**H100, "faults": [fault]}) == replaced  # the replacement is the same card each time


def test_what_ails_a_slot_stays_there_when_the_cards_are_swapped() -> None:
    faults = [
        {"fault": "link_downtrained", "slot": "SXM5"},
        {"fault": "cards_swapped", "slot": "SXM5", "slot_b": "SXM6"},
    ]
    shown = cards({**H100, "faults": faults})
    assert (shown["SXM5"].width, shown["SXM6"].width) == (8, 16)
    assert shown["SXM5"].serial == cards(H100)["SXM6"].serial


def test_a_mismatch_moves_the_library_within_the_branch() -> None:
    for version, library in (("570.86.15", "570.124.06"), ("570.124.06", "570.133.02"), ("580.65.06", "580.105.08")):
        host = state.expand({**H100, "driver_version": version, "faults": [{"fault": "driver_library_mismatch"}]})
        assert (host.driver_version, host.library_version) == (version, library)
    for profile in ("amd_mi300x_8", "ascend_910b_8"):
        host = state.expand({"profile": profile, "faults": [{"fault": "driver_library_mismatch"}]})
        assert not host.driver_ready


def test_a_fault_without_a_slot_takes_none_and_a_swap_two_different_ones() -> None:
    all_cards = state.expand(H100).cards
    for fault, slot, other, words in (
        ("driver_library_mismatch", "SXM1", "", "driver_library_mismatch takes no slot, given: SXM1"),
        ("cards_swapped", "SXM1", "", "cards_swapped takes two slots (slot and slot_b), given: SXM1"),
        ("cards_swapped", "SXM4", "0000:2a:00.0", "is the same card as slot"),
        ("card_lost", "SXM1", "SXM2", "card_lost takes one slot, given: SXM1, SXM2"),
    ):
        with pytest.raises(state.StateError, match=r"fault|slot_b") as caught:
            state.make_fault("nvidia", all_cards, fault, slot, other)
        assert words in str(caught.value)


def test_a_slot_is_named_by_label_number_or_address() -> None:
    all_cards = state.expand(H100).cards
    for word in ("SXM5", "sxm5", "5", "0000:ba:00.0", "0000:BA:00.0"):
        assert state.find_slot(all_cards, word) == "SXM5"
    assert state.find_slot(all_cards, "9") is None


TEXT = """# a comment of somebody
profile: nvidia_h100_8
seed: gpu-01
cards:
- slot: SXM1   # the noisy one
  busy: true
faults: []
"""


def test_injecting_and_healing_leave_the_file_as_it_was() -> None:
    declared = yaml.safe_load(TEXT)
    fault = {"fault": "cards_swapped", "slot": "SXM5", "slot_b": "SXM6"}
    injected = state.with_faults(TEXT, {**declared, "faults": [fault]})
    assert injected == TEXT.replace(
        "faults: []\n", "faults:\n  - fault: cards_swapped\n    slot: SXM5\n    slot_b: SXM6\n"
    )
    assert yaml.safe_load(injected)["faults"] == [fault]
    assert state.with_faults(injected, {**declared, "faults": []}) == TEXT


def test_faults_in_the_middle_of_a_file_or_none_at_all_are_found() -> None:
    for text in ("faults: []\nprofile: nvidia_h100_8\nseed: a\n", "profile: nvidia_h100_8\nseed: a\n"):
        declared = {**yaml.safe_load(text), "faults": [{"fault": "card_lost", "slot": "SXM1"}]}
        assert yaml.safe_load(state.with_faults(text, declared)) == declared
