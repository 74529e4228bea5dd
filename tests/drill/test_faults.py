# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each fault, injected on a healthy cluster, turns exactly the checks it must, and nothing after healing.

What `make test` runs are ROUNDS; `make test-full` adds those of MORE_ROUNDS, kinds of fault that another vendor showed
already.
"""

from __future__ import annotations

import pytest

# What can't be told of a card that does not answer. Its link width comes from the bus and still can.
OF_A_SILENT_CARD = (
    "device.model",
    "device.partition",
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


SLOTS = {
    "gpu-01": [f"SXM{number}" for number in range(1, 9)],
    "gpu-02": [f"SXM{number}" for number in range(1, 9)],
    "gpu-03": [f"OAM{number}" for number in range(8)],
    "npu-01": [str(number) for number in range(1, 9)],
}


# What no tool tells of idle cards is one finding of the host, as long as it is told of all of them.
IDLE = {"npu-01": ("device.link_speed", "device.temperature", "device.throttle")}


def card(host: str, slot: str, *checks: str, blocked_by: str) -> dict:
    """Return the consequences that a fault has on one card."""
    return {(check, host, slot): ("unknown", "blocked", blocked_by) for check in checks}


def cards(host: str, *checks: str, blocked_by: str) -> dict:
    """Return the consequences that a fault of the whole host has on its eight cards."""
    turned: dict = {}
    for slot in SLOTS[host]:
        turned.update(card(host, slot, *checks, blocked_by=blocked_by))
    return turned


def fault(name: str, host: str, slot: str = "", slot_b: str = "") -> dict:
    """Return what the inject playbook is told."""
    told = {"inject_host": host, "inject_fault": name, "inject_slot": slot, "inject_slot_b": slot_b}
    return {key: value for key, value in told.items() if value}


def unreadable(name: str, host: str) -> tuple[dict, dict]:
    """Return a fault of the vendor tool: nothing is known of any card but what the bus shows, its link width."""
    turned = {
        ("device.query", host, host): ("unknown", "unreadable", None),
        ("device.count", host, host): ("unknown", "blocked", "device.query"),
        ("container.cdi", host, host): ("unknown", "blocked", "device.query"),
        **cards(host, *OF_A_SILENT_CARD, "device.link_speed", blocked_by="device.query"),
        **{(check, host, host): None for check in IDLE.get(host, ("device.link_speed",))},
    }
    if host == "npu-01":
        # What driver runs only the tool tells there, not the kernel.
        turned["device.driver_version", host, host] = ("unknown", "blocked", "device.query")
    return fault(name, host), turned


def alone(name: str, host: str, slot: str, check: str, verdict: str, cause: str) -> tuple[dict, dict]:
    """Return a fault of one card that one check tells, and no other."""
    return fault(name, host, slot), {(check, host, slot): (verdict, cause, None)}


FAULTS = {
    "card_lost": (
        fault("card_lost", "gpu-01", "SXM5"),
        {
            ("device.count", "gpu-01", "gpu-01"): ("fail", "lost", None),
            **card(
                "gpu-01", "SXM5", *OF_A_SILENT_CARD, "device.link_width", "device.link_speed", blocked_by="device.count"
            ),
        },
    ),
    "card_hung": (
        fault("card_hung", "gpu-02", "SXM3"),
        {
            ("device.query", "gpu-02", "gpu-02"): ("unknown", "hung", None),
            ("device.count", "gpu-02", "gpu-02"): ("unknown", "blocked", "device.query"),
            ("container.cdi", "gpu-02", "gpu-02"): ("unknown", "blocked", "device.query"),
            **card("gpu-02", "SXM3", *OF_A_SILENT_CARD, "device.link_speed", blocked_by="device.query"),
        },
    ),
    "cards_swapped": (
        fault("cards_swapped", "gpu-01", "SXM2", "SXM7"),
        {
            ("device.slot", "gpu-01", "SXM2"): ("fail", "swapped", None),
            ("device.slot", "gpu-01", "SXM7"): ("fail", "swapped", None),
            # The device file still names the cards where they were.
            ("container.cdi", "gpu-01", "gpu-01"): ("unknown", "moved", "device.slot"),
        },
    ),
    "card_replaced": (
        fault("card_replaced", "gpu-03", "OAM6"),
        {
            ("device.slot", "gpu-03", "OAM6"): ("fail", "replaced", None),
            ("container.cdi", "gpu-03", "gpu-03"): ("unknown", "moved", "device.slot"),
        },
    ),
    "link_downtrained": alone("link_downtrained", "npu-01", "4", "device.link_width", "fail", "narrow"),
    "ecc": alone("ecc", "gpu-01", "SXM4", "device.ecc", "fail", "uncorrected"),
    "ecc_amd": (
        fault("ecc", "gpu-03", "OAM1"),
        {
            ("device.ecc", "gpu-03", "OAM1"): ("fail", "uncorrected", None),
            # What the kernel said of the same errors.
            **card("gpu-03", "OAM1", "device.kernel_log", blocked_by="device.ecc"),
        },
    ),
    "ecc_ascend": (
        fault("ecc", "npu-01", "7"),
        {
            ("device.ecc", "npu-01", "7"): ("fail", "uncorrected", None),
            # The fault code that the tool tells is the error that it counts.
            **card("npu-01", "7", "device.health", blocked_by="device.ecc"),
        },
    ),
    "remap_pending": (
        fault("remap_pending", "gpu-01", "SXM2"),
        {
            ("device.memory_repair", "gpu-01", "SXM2"): ("fail", "reset", None),
            # The errors that the repair is for, and what the kernel said of them.
            **card("gpu-01", "SXM2", "device.ecc", "device.kernel_log", blocked_by="device.memory_repair"),
        },
    ),
    "xid79": alone("xid79", "gpu-02", "SXM6", "device.kernel_log", "fail", "reset"),
    "bus_lost_amd": alone("xid79", "gpu-03", "OAM7", "device.kernel_log", "fail", "reset"),
    "throttle": alone("throttle", "gpu-02", "SXM7", "device.throttle", "fail", "hardware"),
    "throttle_amd": alone("throttle", "gpu-03", "OAM3", "device.throttle", "fail", "hardware"),
    "port_down": alone("port_down", "gpu-02", "SXM8", "device.ports", "fail", "down"),
    # A link between two cards is down at both its ends.
    "port_down_amd": (
        fault("port_down", "gpu-03", "OAM5"),
        {("device.ports", "gpu-03", slot): ("fail", "down", None) for slot in ("OAM3", "OAM5")},
    ),
    "port_down_ascend": (
        fault("port_down", "npu-01", "8"),
        {("device.ports", "npu-01", slot): ("fail", "down", None) for slot in ("4", "8")},
    ),
    "partitioned": (
        fault("partitioned", "gpu-01", "SXM6"),
        {
            ("device.partition", "gpu-01", "SXM6"): ("fail", "split", None),
            # With MIG the tool refuses to tell of NVLink.
            **card("gpu-01", "SXM6", "device.ports", blocked_by="device.partition"),
        },
    ),
    "partitioned_amd": alone("partitioned", "gpu-03", "OAM2", "device.partition", "fail", "split"),
    "partitioned_ascend": alone("partitioned", "npu-01", "5", "device.partition", "fail", "split"),
    "tool_garbage": unreadable("tool_garbage", "gpu-01"),
    "tool_garbage_amd": unreadable("tool_garbage", "gpu-03"),
    "tool_garbage_ascend": unreadable("tool_garbage", "npu-01"),
    "tool_truncated": unreadable("tool_truncated", "gpu-01"),
    "tool_truncated_amd": unreadable("tool_truncated", "gpu-03"),
    "tool_truncated_ascend": unreadable("tool_truncated", "npu-01"),
    "tool_foreign": unreadable("tool_foreign", "gpu-02"),
    "tool_foreign_amd": unreadable("tool_foreign", "gpu-03"),
    "tool_foreign_ascend": unreadable("tool_foreign", "npu-01"),
    "driver_library_mismatch": (
        fault("driver_library_mismatch", "gpu-01"),
        {
            ("device.driver", "gpu-01", "gpu-01"): ("fail", "library_mismatch", None),
            ("device.query", "gpu-01", "gpu-01"): ("unknown", "blocked", "device.driver"),
            ("device.count", "gpu-01", "gpu-01"): ("unknown", "blocked", "device.driver"),
            ("container.cdi", "gpu-01", "gpu-01"): ("unknown", "blocked", "device.driver"),
            **cards("gpu-01", *OF_A_SILENT_CARD, blocked_by="device.driver"),
        },
    ),
}

# Faults of different hosts are in at once: each must turn what it turns alone, and a round costs as much as a fault.
ROUNDS = (
    ("card_lost", "throttle", "card_replaced", "link_downtrained"),
    ("cards_swapped", "xid79", "partitioned_amd", "tool_garbage_ascend"),
    ("ecc", "card_hung", "tool_truncated_amd", "partitioned_ascend"),
    ("remap_pending", "port_down", "ecc_amd"),
    ("partitioned", "tool_foreign", "port_down_amd"),
    ("tool_garbage",),
    ("driver_library_mismatch",),
)
MORE_ROUNDS = (
    ("tool_truncated", "tool_foreign_amd", "port_down_ascend"),
    ("bus_lost_amd", "ecc_ascend"),
    ("throttle_amd", "tool_truncated_ascend"),
    ("tool_garbage_amd", "tool_foreign_ascend"),
)


def test_every_fault_is_in_one_round() -> None:
    named = [name for names in (*ROUNDS, *MORE_ROUNDS) for name in names]
    assert sorted(named) == sorted(FAULTS)
    for names in (*ROUNDS, *MORE_ROUNDS):
        assert len({FAULTS[name][0]["inject_host"] for name in names}) == len(names)


@pytest.mark.parametrize(
    "names", [*ROUNDS, *(pytest.param(names, marks=pytest.mark.full) for names in MORE_ROUNDS)], ids="+".join
)
def test_faults_turn_exactly_their_checks(names: tuple[str, ...], cluster, healthy) -> None:
    expected: dict = {}
    hosts = {}
    try:
        for name in names:
            injected, turns = FAULTS[name]
            hosts[injected["inject_host"]] = turns
            expected.update(turns)
            cluster.inject(injected)
        done, report = cluster.verify()
    finally:
        cluster.heal(",".join(hosts))
    state = report.state()
    turned = {key: state.get(key) for key in healthy.keys() | state.keys() if state.get(key) != healthy.get(key)}
    assert turned == expected
    assert done.rc != 0, "verify ended well although a fault was in"
    verdicts = {told[0] for told in expected.values() if told}
    assert report.verdict == ("fail" if "fail" in verdicts else "unknown")
    # On each host the cause comes first, its consequences after it.
    for host, turns in hosts.items():
        first = next(one for one in report.findings if one["host"] == host)
        key = (first["check"], first["host"], first["subject"])
        assert key in turns and first["blocked_by"] is None, first
        if first["hint"] == "device.query.unreadable":
            # What the tool printed is kept, and every card that the bus shows is still in the list, with its address.
            assert any("accel" in piece["excerpt"] or "smi" in piece["excerpt"] for piece in first["evidence"])
            listed = report.slots(host)
            assert len(listed) == 8 and None not in listed.values(), listed

    done, report = cluster.verify()
    assert done.rc == 0, done.output
    assert report.state() == healthy


def test_the_report_says_what_the_kernel_said_of_a_lost_card(cluster, healthy) -> None:
    cluster.inject(fault("card_lost", "gpu-01", "SXM5"))
    try:
        _done, report = cluster.verify()
    finally:
        cluster.heal("gpu-01")
    first = report.findings[0]
    assert (first["check"], first["host"]) == ("device.count", "gpu-01")
    assert any("fallen off the bus" in piece["excerpt"] for piece in first["evidence"])


HELD = {"gpu-01": "SXM3", "gpu-03": "OAM4", "npu-01": "6"}


def test_a_held_card_is_a_fault_only_where_cards_must_be_free(cluster, healthy) -> None:
    free = ("--limit", ",".join(HELD), "--extra-vars", '{"cluster_processes_allowed": false}')
    _done, before = cluster.verify(*free)
    assert {told[:2] for key, told in before.state().items() if key[0] == "device.processes"} == {("pass", "free")}
    try:
        for host, slot in HELD.items():
            cluster.inject(fault("process_holding", host, slot))
        _done, allowed = cluster.verify()
        done, report = cluster.verify(*free)
    finally:
        cluster.heal(",".join(HELD))
    assert allowed.state() == healthy
    after = report.state()
    known = before.state()
    turned = {key: after.get(key) for key in known.keys() | after.keys() if after.get(key) != known.get(key)}
    assert turned == {("device.processes", host, slot): ("fail", "held", None) for host, slot in HELD.items()}
    assert done.rc != 0
    assert all("sleep" in one["message"] for one in report.findings[: len(HELD)])
    _done, healed = cluster.verify(*free)
    assert healed.state() == before.state()
