# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The card-to-slot record of a node against what the emulated cards say of themselves."""

from __future__ import annotations

import json

import yaml

testinfra_hosts = ["ansible://accelerator_nodes"]


def test_the_record_ties_each_serial_to_its_slot(host) -> None:
    record = json.loads(host.file("/var/lib/accel/records/slots.json").content_string)
    state = yaml.safe_load(host.file("/etc/accel/emulator.yml").content_string)
    recorded = {slot: [card["serial"] for card in cards] for slot, cards in record["slots"].items()}
    assert recorded == {str(card["slot"]): [card["serial"]] for card in state["cards"]}
    assert record["unplaced"] == []
