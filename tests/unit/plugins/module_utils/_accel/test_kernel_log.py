# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel log says, in each form it comes in: this boot only, each event once, causes before consequences."""

from __future__ import annotations

import json
import time

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import kernel_log
from doubles import HANG, RecordedRunner

XID79 = "NVRM: Xid (PCI:0000:91:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


def told(output):
    """Return (code, address, pid, count, cause) of each event."""
    events = kernel_log.parse(output)
    return [(e["code"], e["pci_address"], e["pid"], e["count"], e["cause"]) for e in events]


@pytest.mark.parametrize(
    ("line", "at"),
    [
        (f"2026-11-30T01:02:03+0000 gpu-01 kernel: {XID79}", "2026-11-30T01:02:03+0000"),
        (f"2026-11-30T01:02:03.123456+08:00 gpu-01 kernel: {XID79}", "2026-11-30T01:02:03.123456+08:00"),
        (f"Nov 30 01:02:03 gpu-01 kernel: {XID79}", "Nov 30 01:02:03"),
        (f"[6781741.548779] {XID79}", "6781741.548779"),
        (f"[Fri Oct 14 14:56:49 2022] {XID79}", "Fri Oct 14 14:56:49 2022"),
        (f"<4>[    2.548779] {XID79}", "2.548779"),
        (f"4,3973,227996636,-;{XID79}", "227.996636"),
        (json.dumps({"__REALTIME_TIMESTAMP": "1764464523000000", "MESSAGE": XID79}), "@1764464523.000"),
        (json.dumps({"MESSAGE": list(XID79.encode())}), None),
        (XID79, None),
    ],
)
def test_every_form_of_a_line(line, at):
    (event,) = kernel_log.parse(line)
    assert event == {
        "at": at,
        "vendor": "nvidia",
        "code": "xid 79",
        "pci_address": "0000:91:00.0",
        "pid": None,
        "message": XID79,
        "count": 1,
        "cause": None,
    }


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("NVRM: Xid (PCI:0000:0f:00): 94, pid=2503421, name=python3, Ch 00000008", ("xid 94", "0000:0f:00.0", 2503421)),
        ("NVRM: Xid (PCI:000d:00:00): 31, pid=3234, Graphics SM Warp", ("xid 31", "000d:00:00.0", 3234)),
        ("NVRM: Xid (PCI:0009:01:00): 13, Graphics SM Warp Exception on", ("xid 13", "0009:01:00.0", None)),
        ("NVRM: Xid (PCI:0000:10:1c): 63, pid=1896, Row Remapper: New row", ("xid 63", "0000:10:1c.0", 1896)),
        (
            "nvidia-nvswitch2: SXid (PCI:0000:85:00.0): 12028, Non-fatal, Link 61 egress",
            ("sxid 12028", "0000:85:00.0", None),
        ),
        # The lines of an SXid that only carry data are no events of their own.
        ("nvidia-nvswitch2: SXid (PCI:0000:07:00.0): 20034, Severity 1 Engine instance 60", None),
        ("nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Data {0x10000000, 0x10000000}", None),
        ("NVRM: GPU 0000:9b:00.0: GPU has fallen off the bus.", ("xid 79", "0000:9b:00.0", None)),
        ("NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.86.15", None),
        (
            "amdgpu 0000:05:00.0: amdgpu: 2 uncorrectable hardware errors detected in umc block",
            ("ras uncorrectable", "0000:05:00.0", None),
        ),
        (
            "amdgpu 0000:05:00.0: amdgpu: socket: 0, die: 0, 1 new uncorrectable hardware errors detected in umc block",
            ("ras uncorrectable", "0000:05:00.0", None),
        ),
        ("amdgpu 0000:05:00.0: amdgpu: 0 uncorrectable hardware errors detected in umc block", None),
        (
            "amdgpu 0000:05:00.0: amdgpu: 7 correctable hardware errors detected in total in umc block",
            ("ras correctable", "0000:05:00.0", None),
        ),
        ("amdgpu 0000:05:00.0: amdgpu: RAS poison consumption handling", ("ras poison", "0000:05:00.0", None)),
        ("amdgpu 0000:05:00.0: amdgpu: GPU reset begin!", ("gpu reset", "0000:05:00.0", None)),
        ("amdgpu 0000:05:00.0: amdgpu: GPU reset(2) succeeded!", None),
        ("amdgpu 0000:05:00.0: amdgpu: GPU reset end with ret = -110", ("gpu reset failed", "0000:05:00.0", None)),
        (
            "amdgpu 0000:05:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=3, emitted seq=5",
            ("ring timeout", "0000:05:00.0", None),
        ),
        ("amdgpu 0000:05:00.0: amdgpu: device lost from bus!", ("bus lost", "0000:05:00.0", None)),
        (
            "amdgpu 0000:05:00.0: amdgpu: RAS records:258 exceed threshold:256",
            ("ras threshold", "0000:05:00.0", None),
        ),
        ("pcieport 0000:16:01.0: AER: Corrected error received: 0000:18:00.0", ("aer corrected", "0000:18:00.0", None)),
        (
            "pcieport 0000:16:01.0: AER: Multiple Uncorrected (Non-Fatal) error received: 0000:18:00.0",
            ("aer nonfatal", "0000:18:00.0", None),
        ),
        (
            "pcieport 0000:16:01.0: AER: Correctable error message received from 0000:18:00.0",
            ("aer corrected", "0000:18:00.0", None),
        ),
        (
            "nvidia 0000:18:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer",
            ("aer fatal", "0000:18:00.0", None),
        ),
        (
            "ascend 0000:c1:00.0: HBM MULTI BIT ECC, device_id=3, event_id=0x80e01801",
            ("ascend 0x80e01801", "0000:c1:00.0", None),
        ),
        ("IPv6: ADDRCONF(NETDEV_CHANGE): eth0: link becomes ready", None),
        ("NVRM: Xid (PCI:0000:zz:00): 79, GPU has", ("xid 79", None, None)),
    ],
)
def test_what_a_line_says(line, expected):
    events = [entry[:3] for entry in told(f"[1.5] {line}")]
    if line.startswith("NVRM: Xid (PCI:0000:zz"):
        # Damaged: no card is blamed for it.
        assert events in ([], [expected])
        return
    assert events == ([expected] if expected else [])


def test_a_card_that_fell_off_the_bus_without_a_number():
    lines = (
        "[10.1] NVRM: The NVIDIA GPU 0000:9b:00.0 (PCI ID: 10de:2330)\n"
        "[10.1] NVRM: installed in this system has\n"
        "[10.1] NVRM: fallen off the bus and is not responding to commands.\n"
    )
    assert told(lines) == [("xid 79", "0000:9b:00.0", None, 1, None)]


def test_only_this_boot_counts():
    old = f"[100.0] {XID79}\n"
    assert told(old + "[    0.000000] Linux version 6.1.0-28-amd64 (debian-kernel@lists.debian.org)\n") == []
    assert told(old + "-- Boot 0123456789abcdef0123456789abcdef --\n") == []
    assert (
        told("2026-11-29T01:02:03+0000 a kernel: " + XID79 + "\n2026-11-30T01:02:03+0000 a kernel: Linux version 6.1\n")
        == []
    )
    # A line that only speaks of a version ends no boot.
    assert len(told(old + "[101.0] nvidia: for Linux version 6 and later\n")) == 1


def test_equal_events_are_one_with_a_count():
    line = "NVRM: Xid (PCI:0000:18:00): 31, pid=7, name=python3, Ch 00000007"
    assert told("\n".join(f"[{n}.0] {line}" for n in range(5))) == [("xid 31", "0000:18:00.0", 7, 5, None)]
    other = line.replace("pid=7", "pid=8")
    assert [entry[2:4] for entry in told(f"[1.0] {line}\n[2.0] {other}")] == [(7, 1), (8, 1)]


def test_what_follows_is_attributed_to_its_cause():
    log = (
        "[100.0] NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus.\n"
        "[100.5] NVRM: Xid (PCI:0000:18:00): 45, pid=12, name=python3, Ch 00000001\n"
        "[101.0] NVRM: Xid (PCI:0000:18:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 "
        "(Node Reboot Required)\n"
        "[101.5] NVRM: Xid (PCI:0000:2a:00): 45, pid=12, name=python3, Ch 00000001\n"
        "[400.0] NVRM: Xid (PCI:0000:18:00): 45, pid=13, name=python3, Ch 00000001\n"
    )
    assert [(code, address, cause) for code, address, _p, _n, cause in told(log)] == [
        ("xid 79", "0000:18:00.0", None),
        ("xid 45", "0000:18:00.0", "xid 79"),
        ("xid 154", "0000:18:00.0", "xid 79"),
        ("xid 45", "0000:2a:00.0", None),  # of another card
        ("xid 45", "0000:18:00.0", None),  # five minutes later
    ]


def test_the_text_may_name_the_cause():
    log = "[1.0] NVRM: Xid (PCI:0000:18:00): 45, pid=12, name=a, Ch 00000001, caused by previous Xid 149\n"
    assert told(log) == [("xid 45", "0000:18:00.0", 12, 1, "xid 149")]


def test_a_reset_after_a_job_that_hung_follows_from_it():
    log = (
        "[1.0] amdgpu 0000:05:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=3, emitted seq=5\n"
        "[1.1] amdgpu 0000:05:00.0: amdgpu: GPU reset begin!\n"
        "[9.0] amdgpu 0000:26:00.0: amdgpu: GPU reset begin!\n"
    )
    assert [(entry[0], entry[4]) for entry in told(log)] == [
        ("ring timeout", None),
        ("gpu reset", "ring timeout"),
        ("gpu reset", None),
    ]


def test_a_flood_is_bounded_and_keeps_what_came_first():
    log = "".join(f"[{n}.0] NVRM: Xid (PCI:0000:18:00): 31, pid={n}, name=a\n" for n in range(1000))
    events = kernel_log.parse(log)
    assert len(events) == kernel_log.EVENTS and events[0]["pid"] == 0
    # It hides nothing that is a fault of the card.
    events = kernel_log.parse(f"{log}[1001.0] NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus.\n")
    assert [events[-1]["code"], len(events)] == ["xid 79", kernel_log.EVENTS + 1]


def test_recorded_lines(recordings):
    lines = (recordings / "nvidia/dmesg_xid-lines_collected.txt").read_text()
    codes = [event["code"] for event in kernel_log.parse(lines)]
    assert codes.count("xid 119") == 1 and codes.count("xid 79") == 1
    # Each of the numbers in the file, and nothing else.
    assert set(codes) == {"xid 94", "xid 64", "sxid 12028", "xid 31", "xid 48", "xid 63", "xid 13", "xid 74", "xid 79",
                          "sxid 20034", "xid 119"}  # fmt: skip
    # The same processes ask three, one and one time; the many lines between them are no events.
    assert told((recordings / "nvidia/dmesg_xid-119_gsp.log").read_text()) == [
        ("xid 119", "0000:9b:00.0", 2024380, 3, None),
        ("xid 119", "0000:9b:00.0", 1263500, 1, None),
        ("xid 119", "0000:9b:00.0", 1240590, 1, None),
    ]
    assert kernel_log.parse((recordings / "kernel/dmesg_kernel_mce-pcie_gpud.log").read_text()) == []


@pytest.mark.parametrize("code", kernel_log.MEANINGS)
def test_every_meaning_is_one(code):
    meant = kernel_log.MEANINGS[code]
    assert meant.action in kernel_log.ACTIONS and meant.words


# ---------------------------------------------------------------------------------------------- reading it

JOURNAL = kernel_log.COMMAND
DMESG = ("dmesg",)
LINE = f"2026-11-30T01:02:03+0000 gpu-01 kernel: {XID79}\n"


def read(answers, files=None):
    runner = RecordedRunner(answers, files)
    log, events = kernel_log.read(runner, 7)
    assert set(log) == {"state", "source", "reason"}
    return log["state"], log["source"], [event["code"] for event in events], log["reason"], runner


def test_the_journal_is_read():
    state, source, codes, reason, runner = read({JOURNAL: (0, LINE, ""), DMESG: (0, "", "")})
    assert (state, source, codes, reason) == ("ok", " ".join(JOURNAL), ["xid 79"], None)
    assert runner.calls == [JOURNAL] and runner.timeouts == [7]


@pytest.mark.parametrize("answer", [(0, "", ""), (1, "", "No journal files were opened"), HANG])
def test_without_a_journal_the_ring_buffer_is_read(answer):
    state, source, codes, _reason, _runner = read({JOURNAL: answer, DMESG: (0, f"[1.0] {XID79}\n", "")})
    assert (state, source, codes) == ("ok", "dmesg", ["xid 79"])


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ({}, "neither journalctl nor dmesg is installed"),
        ({JOURNAL: (0, "", "")}, f"{' '.join(JOURNAL)}: rc 0, nothing printed"),
        ({DMESG: (1, "", "dmesg: read kernel buffer failed: Operation not permitted")}, "dmesg: dmesg: read kernel"),
        ({DMESG: HANG}, "dmesg: no answer in time"),
    ],
)
def test_a_log_that_can_not_be_read_is_unknown(answers, reason):
    state, source, codes, said, _runner = read(answers)
    assert (state, source, codes) == ("unknown", None, [])
    assert said.startswith(reason)


def test_a_container_reads_its_own_journal_and_never_the_ring_buffer_of_its_machine():
    files = {"/run/systemd/container": "podman"}
    assert read({JOURNAL: (0, LINE, "")}, files)[:3] == ("ok", " ".join(JOURNAL), ["xid 79"])
    state, _source, codes, _reason, runner = read({JOURNAL: (0, "", ""), DMESG: (0, LINE, "")}, files)
    assert (state, codes, runner.calls) == ("shared", [], [JOURNAL])


@pytest.mark.parametrize("digits", ["9" * 5000, "\u00b2", "\u0663" * 3, ""])
def test_a_time_that_is_none_ends_nothing(digits):
    xid = "NVRM: Xid (PCI:0000:18:00): 79, pid=1, GPU has fallen off the bus."
    for line in (
        f"6,1,{digits},-;{xid}",
        json.dumps({"MESSAGE": xid, "__REALTIME_TIMESTAMP": digits}),
        f"[{digits}] {xid}",
        f"9999-99-99T99:99:99+00:00 gpu-01 kernel: {xid}",
        f"0001-01-01T00:00:00+23:59 gpu-01 kernel: {xid}",
    ):
        events = kernel_log.parse(f"{line}\n{line.replace('79', '154')}\n")
        assert {event["code"] for event in events} <= {"xid 79", "xid 154"}


def test_json_that_is_nested_without_end_is_no_event():
    assert kernel_log.parse('{"MESSAGE": ' + "[" * 200_000 + "NVRM\n") == []


def test_a_line_longer_than_the_kernel_writes_costs_no_time():
    line = "2026-11-30T01:02:03+0000 box kernel: " + "ascend " * 6000
    started = time.process_time()
    assert kernel_log.parse(f"{line}error code 0x80e01801\n") == []
    assert time.process_time() - started < 0.5
