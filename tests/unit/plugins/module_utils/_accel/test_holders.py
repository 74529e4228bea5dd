# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who has a device node open, beside whom the vendor tool lists."""

from __future__ import annotations

import os

from ansible_collections.accel.cluster.plugins.module_utils._accel import holders
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import Device
from ansible_collections.accel.cluster.plugins.module_utils._accel.runner import Runner
from doubles import RecordedRunner


def test_who_only_has_the_node_open_is_added():
    card = Device(device_nodes=["/dev/nvidia0"], processes=[{"pid": 12, "name": "train", "memory_bytes": 5}])
    other = Device(device_nodes=["/dev/nvidia1"])
    runner = RecordedRunner(files={"/proc/77/comm": "bash\n"}, held={"/dev/nvidia0": [77, 12], "/dev/sda": [1]})
    assert holders.add(runner, [card, other]) is None
    assert card.processes == [
        {"pid": 12, "name": "train", "memory_bytes": 5, "source": "tool"},
        {"pid": 77, "name": "bash", "memory_bytes": None, "source": "open"},
    ]
    assert other.processes == []


def test_two_nodes_of_one_card_are_one_holder_and_one_that_ended_has_no_name():
    card = Device(device_nodes=["/dev/dri/card1", "/dev/dri/renderD128"])
    held = {"/dev/dri/card1": [9], "/dev/dri/renderD128": [9]}
    holders.add(RecordedRunner(held=held), [card])
    assert card.processes == [{"pid": 9, "name": None, "memory_bytes": None, "source": "open"}]


def test_what_could_not_be_asked_is_said():
    card = Device(device_nodes=["/dev/nvidia0"])
    assert "not all processes" in holders.add(RecordedRunner(held={"incomplete": []}), [card])


def test_without_nodes_nobody_is_asked():
    assert holders.add(None, [Device()]) is None


def test_the_real_runner_sees_an_open_file(tmp_path):
    path = tmp_path / "node"
    with open(path, "w"):
        found, complete = Runner().holders(frozenset([str(path)]))
    assert found == {str(path): [os.getpid()]}
    assert complete == (os.geteuid() == 0)
    assert Runner().holders(frozenset([str(path)]))[0] == {}


def test_the_look_ends_when_its_time_is_over():
    assert Runner().holders(frozenset(["/dev/null"]), seconds=-1) == ({}, False)


def test_a_node_of_two_cards_is_held_for_both():
    cards = [Device(device_nodes=["/dev/acme"]), Device(device_nodes=["/dev/acme"])]
    holders.add(RecordedRunner(held={"/dev/acme": [9]}), cards)
    assert [[one["pid"] for one in card.processes] for card in cards] == [[9], [9]]
