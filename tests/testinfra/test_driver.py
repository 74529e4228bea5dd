# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The card-to-slot record of a node against what the emulated cards say of themselves."""

from __future__ import annotations

import json

testinfra_hosts = ["ansible://accelerator_nodes"]


def test_the_record_ties_each_serial_to_its_slot(host) -> None:
    record = json.loads(host.file("/var/lib/accel/records/slots.json").content_string)
    shown = json.loads(host.check_output("accel-emulator show"))
    # Ascend modules have no slot number of the vendor's (it says 0): the kernel's names them.
    name = "kernel_slot" if shown["vendor"] == "ascend" else "slot"
    recorded = {slot: [card["serial"] for card in cards] for slot, cards in record["slots"].items()}
    assert recorded == {card[name]: [card["serial"]] for card in shown["cards"]}
    assert record["unplaced"] == []
