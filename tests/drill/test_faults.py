# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each fault, injected on a healthy cluster, turns exactly the checks it must, and nothing after healing."""

from __future__ import annotations

import pytest

# What can't be told of a card that does not answer. Its link width comes from the bus and still can.
OF_A_SILENT_CARD = ("device.model", "device.memory", "device.slot", "device.health")


def card(host: str, slot: str, *checks: str, blocked_by: str) -> dict:
    """Return the consequences that a fault has on one card."""
    return {(check, host, slot): ("unknown", "blocked", blocked_by) for check in checks}


def cards(host: str, *checks: str, blocked_by: str) -> dict:
    """Return the consequences that a fault of the whole host has on its eight cards."""
    turned: dict = {}
    for slot in SLOTS[host]:
        turned.update(card(host, slot, *checks, blocked_by=blocked_by))
    return turned


SLOTS = {"gpu-01": [f"SXM{number}" for number in range(1, 9)]}

FAULTS = {
    "card_lost": (
        {"inject_host": "gpu-01", "inject_fault": "card_lost", "inject_slot": "SXM5"},
        {
            ("device.count", "gpu-01", "gpu-01"): ("fail", "lost", None),
            **card(
                "gpu-01", "SXM5", *OF_A_SILENT_CARD, "device.link_width", "device.link_speed", blocked_by="device.count"
            ),
        },
    ),
    "card_hung": (
        {"inject_host": "gpu-02", "inject_fault": "card_hung", "inject_slot": "SXM3"},
        {
            ("device.query", "gpu-02", "gpu-02"): ("unknown", "hung", None),
            ("device.count", "gpu-02", "gpu-02"): ("unknown", "blocked", "device.query"),
            **card("gpu-02", "SXM3", *OF_A_SILENT_CARD, "device.link_speed", blocked_by="device.query"),
        },
    ),
    "cards_swapped": (
        {"inject_host": "gpu-01", "inject_fault": "cards_swapped", "inject_slot": "SXM2", "inject_slot_b": "SXM7"},
        {
            ("device.slot", "gpu-01", "SXM2"): ("fail", "swapped", None),
            ("device.slot", "gpu-01", "SXM7"): ("fail", "swapped", None),
        },
    ),
    "card_replaced": (
        {"inject_host": "gpu-03", "inject_fault": "card_replaced", "inject_slot": "OAM6"},
        {("device.slot", "gpu-03", "OAM6"): ("fail", "replaced", None)},
    ),
    "link_downtrained": (
        {"inject_host": "npu-01", "inject_fault": "link_downtrained", "inject_slot": "4"},
        {("device.link_width", "npu-01", "4"): ("fail", "narrow", None)},
    ),
    "driver_library_mismatch": (
        {"inject_host": "gpu-01", "inject_fault": "driver_library_mismatch"},
        {
            ("device.driver", "gpu-01", "gpu-01"): ("fail", "library_mismatch", None),
            ("device.query", "gpu-01", "gpu-01"): ("unknown", "blocked", "device.driver"),
            ("device.count", "gpu-01", "gpu-01"): ("unknown", "blocked", "device.driver"),
            **cards("gpu-01", *OF_A_SILENT_CARD, blocked_by="device.driver"),
        },
    ),
}


@pytest.fixture(scope="module")
def healthy(cluster) -> dict:
    """Return the state of the cluster before any fault; it must be a pass without a single failed check."""
    done, report = cluster.verify()
    assert done.rc == 0, done.output
    assert report.verdict == "pass"
    state = report.state()
    assert not [key for key, (verdict, _cause, _by) in state.items() if verdict == "fail"]
    # An empty report would make every comparison below true.
    assert len([key for key, (verdict, _cause, _by) in state.items() if verdict == "pass"]) > 100
    return state


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_turns_exactly_its_checks(name: str, cluster, healthy) -> None:
    fault, expected = FAULTS[name]
    cluster.inject(fault)
    try:
        done, report = cluster.verify()
    finally:
        cluster.heal(fault["inject_host"])
    state = report.state()
    turned = {key: state.get(key) for key in healthy.keys() | state.keys() if state.get(key) != healthy.get(key)}
    assert turned == expected
    assert done.rc != 0, "verify ended well although a fault was in"
    assert report.verdict == ("fail" if any(verdict == "fail" for verdict, _c, _b in expected.values()) else "unknown")
    # The cause comes first, its consequences after it.
    assert report.findings[0]["blocked_by"] is None
    assert (report.findings[0]["check"], report.findings[0]["host"]) in {(check, host) for check, host, _s in expected}

    done, report = cluster.verify()
    assert done.rc == 0, done.output
    assert report.state() == healthy
