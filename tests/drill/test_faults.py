# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each fault, injected on a healthy cluster, turns exactly the checks it must, and nothing after healing."""

from __future__ import annotations

import pytest

# What can't be told of a card that does not answer. Its link width comes from the bus and still can.
OF_A_SILENT_CARD = (
    "device.model",
    "device.memory",
    "device.slot",
    "device.memory_repair",
    "device.ecc",
    "device.health",
    "device.temperature",
    "device.throttle",
    "device.ports",
    "device.kernel_log",
)


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
    "ecc": (
        {"inject_host": "gpu-01", "inject_fault": "ecc", "inject_slot": "SXM4"},
        {("device.ecc", "gpu-01", "SXM4"): ("fail", "uncorrected", None)},
    ),
    "ecc of an npu": (
        {"inject_host": "npu-01", "inject_fault": "ecc", "inject_slot": "4"},
        {
            ("device.ecc", "npu-01", "4"): ("fail", "uncorrected", None),
            # The fault code that the tool tells is the error that it counts.
            **card("npu-01", "4", "device.health", blocked_by="device.ecc"),
        },
    ),
    "remap_pending": (
        {"inject_host": "gpu-01", "inject_fault": "remap_pending", "inject_slot": "SXM2"},
        {
            ("device.memory_repair", "gpu-01", "SXM2"): ("fail", "reset", None),
            # The errors that the repair is for, and what the kernel said of them.
            **card("gpu-01", "SXM2", "device.ecc", "device.kernel_log", blocked_by="device.memory_repair"),
        },
    ),
    "xid79": (
        {"inject_host": "gpu-02", "inject_fault": "xid79", "inject_slot": "SXM6"},
        {("device.kernel_log", "gpu-02", "SXM6"): ("fail", "reset", None)},
    ),
    "throttle": (
        {"inject_host": "gpu-02", "inject_fault": "throttle", "inject_slot": "SXM7"},
        {("device.throttle", "gpu-02", "SXM7"): ("fail", "hardware", None)},
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


def test_the_report_says_what_the_kernel_said_of_a_lost_card(cluster, healthy) -> None:
    cluster.inject({"inject_host": "gpu-01", "inject_fault": "card_lost", "inject_slot": "SXM5"})
    try:
        _done, report = cluster.verify()
    finally:
        cluster.heal("gpu-01")
    first = report.findings[0]
    assert (first["check"], first["host"]) == ("device.count", "gpu-01")
    assert any("fallen off the bus" in piece["excerpt"] for piece in first["evidence"])


def test_a_held_card_is_a_fault_only_where_cards_must_be_free(cluster, healthy) -> None:
    free = ("--limit", "gpu-01", "--extra-vars", '{"cluster_processes_allowed": false}')
    _done, before = cluster.verify(*free)
    assert {told[:2] for key, told in before.state().items() if key[0] == "device.processes"} == {("pass", "free")}
    cluster.inject({"inject_host": "gpu-01", "inject_fault": "process_holding", "inject_slot": "SXM3"})
    try:
        _done, allowed = cluster.verify()
        done, report = cluster.verify(*free)
    finally:
        cluster.heal("gpu-01")
    assert allowed.state() == healthy
    after = report.state()
    known = before.state()
    turned = {key: after.get(key) for key in known.keys() | after.keys() if after.get(key) != known.get(key)}
    assert turned == {("device.processes", "gpu-01", "SXM3"): ("fail", "held", None)}
    assert done.rc != 0
    assert "sleep" in report.findings[0]["message"]
    _done, healed = cluster.verify(*free)
    assert healed.state() == before.state()
