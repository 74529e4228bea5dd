# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import baseline, packages
from doubles import HANG, RecordedRunner

LIMITS = """Limit                     Soft Limit           Hard Limit           Units
Max cpu time              unlimited            unlimited            seconds
Max locked memory         8388608              8388608              bytes
Max open files            20000                20000                files
"""
TRACKING = (
    "0A630A02,10.99.10.2,9,1780000000.123,0.000012000,-0.000003,0.00002,-1.2,0.001,0.05,0.0004,0.0002,64.1,Normal\n"
)
SYSTEMD_RUN = ("systemd-run", "--quiet", "--wait", "--pipe", "--collect", "cat", "/proc/self/limits")
DPKG = ("dpkg-query", "-W", "-f=${db:Status-Status} ${Package} ${Version}\\n")

DECLARED = {
    "kernel_parameters": {
        "vm.swappiness": 10,
        "kernel.numa_balancing": "0",
        "vm.nr_hugepages": "0",
        "net.core.somaxconn": 8192,
        "net.ipv4.ip_local_port_range": "32768 65535",
        "net.core.only_the_machine_has_it": 1,
    },
    "packages": ["chrony", "numactl"],
    "limits": {"nofile": 20000, "memlock_kib": "8192"},
    "transparent_hugepages": "madvise",
    "time_servers": ["10.99.10.2"],
    "time_local_stratum": 0,
    "time_zone": "Etc/UTC",
    "clock_offset_milliseconds": 50,
    "shared_kernel": False,
}
OBSERVED = {
    "kernel_parameters": {
        "vm.swappiness": "10",
        "kernel.numa_balancing": "0",
        "vm.nr_hugepages": "0",
        "net.core.somaxconn": "8192",
        "net.ipv4.ip_local_port_range": "32768 65535",
        "net.core.only_the_machine_has_it": "1",
    },
    "limits": {"nofile": 20000, "memlock_kib": 8192},
    "clock": {
        "reference": "10.99.10.2",
        "stratum": 9,
        "offset_milliseconds": -0.5,
        "synchronised": True,
        "local": False,
    },
    "packages": {"chrony": "4.3", "numactl": "2.0"},
    "time_zone": "Etc/UTC",
    "transparent_hugepages": "madvise",
    "errors": [],
}
CHECKS = {
    "kernel_parameters",
    "numa_balancing",
    "hugepages",
    "transparent_hugepages",
    "limits",
    "time_zone",
    "packages",
    "clock",
}


def judged(observed: dict, declared: dict) -> dict[str, tuple[str, str]]:
    """Return ``{check: (verdict, cause)}``; every check is judged exactly once."""
    findings = baseline.judge("n1", observed, declared)
    assert sorted(f["check"] for f in findings) == sorted(f"baseline.{check}" for check in CHECKS)
    assert {f["subject"] for f in findings} == {"n1"}
    assert all(f["message"] for f in findings)
    return {f["check"].split(".")[1]: (f["verdict"], f["hint"].rsplit(".", 1)[1]) for f in findings}


def parameters(**values: object) -> dict:
    """Return an observation in which some kernel parameters differ; ``__`` stands for the dot."""
    named = {name.replace("__", "."): value for name, value in values.items()}
    return {"kernel_parameters": {**OBSERVED["kernel_parameters"], **named}}


def changed(body: dict, **values: object) -> dict:
    """Return a deep copy with top-level values replaced."""
    return {**copy.deepcopy(body), **values}


def test_limits_are_read_in_the_units_of_their_names() -> None:
    assert baseline.parse_limits(LIMITS) == {"nofile": 20000, "memlock_kib": 8192}
    assert baseline.parse_limits(LIMITS.replace("8388608", "unlimited")) == {
        "nofile": 20000,
        "memlock_kib": "unlimited",
    }
    assert baseline.parse_limits("") == {}


@pytest.mark.parametrize("value", ["", "  ", "\u00b2", "9" * 5000, "-1", "NaN"])
def test_a_damaged_limit_is_none(value: str) -> None:
    assert baseline.parse_limits(f"Max open files{value}\nMax locked memory  64  64  bytes") == {"memlock_kib": 0}


def test_tracking_line() -> None:
    assert baseline.parse_tracking(TRACKING) == {
        "reference": "10.99.10.2",
        "stratum": 9,
        "offset_milliseconds": 0.012,
        "synchronised": True,
        "local": False,
    }
    assert baseline.parse_tracking(TRACKING.replace("Normal", "Not synchronised"))["synchronised"] is False
    fields = TRACKING.strip().split(",")
    assert baseline.parse_tracking(",".join([*fields[:4], "nan", *fields[5:]])) is None
    assert baseline.parse_tracking(TRACKING.replace("0A630A02,10.99.10.2", "7F7F0101,"))["local"] is True


@pytest.mark.parametrize("text", ["", "506 Cannot talk to daemon", TRACKING.replace(",9,", ",nine,"), "a,b,c"])
def test_no_tracking_line_is_no_clock(text: str) -> None:
    assert baseline.parse_tracking(text) is None


def test_huge_page_policy_is_the_marked_word() -> None:
    assert baseline.parse_huge_page_policy("always [madvise] never") == "madvise"
    assert baseline.parse_huge_page_policy("always madvise never") is None


def test_only_installed_packages_count() -> None:
    text = "installed chrony 4.3-2\nconfig-files numactl 2.0\nnot-installed x \n"
    assert packages.parse_packages(text) == {"chrony": "4.3-2"}


def test_observe_reads_what_is_in_force() -> None:
    runner = RecordedRunner(
        answers={
            SYSTEMD_RUN: (0, LIMITS, ""),
            ("chronyc", "-c", "tracking"): (0, TRACKING, ""),
            (*DPKG, "chrony", "none"): (1, "installed chrony 4.3-2\n", "dpkg-query: no packages found matching none"),
        },
        files={
            "/proc/sys/net/ipv4/ip_local_port_range": "32768\t65535\n",
            "/sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]",
        },
        links={"/etc/localtime": "/usr/share/zoneinfo/Asia/Shanghai"},
    )
    observed = baseline.observe(runner, ["net.ipv4.ip_local_port_range", "vm.none"], ["chrony", "none"])
    assert observed == {
        "kernel_parameters": {"net.ipv4.ip_local_port_range": "32768 65535", "vm.none": None},
        "limits": {"nofile": 20000, "memlock_kib": 8192},
        "clock": {
            "reference": "10.99.10.2",
            "stratum": 9,
            "offset_milliseconds": 0.012,
            "synchronised": True,
            "local": False,
        },
        "packages": {"chrony": "4.3-2"},
        "time_zone": "Asia/Shanghai",
        "transparent_hugepages": "never",
        "errors": [],
    }


def test_nothing_answering_is_unknown_never_a_pass() -> None:
    runner = RecordedRunner(
        answers={SYSTEMD_RUN: HANG, (*DPKG, "chrony", "numactl"): HANG}, tools={"systemd-run", "dpkg-query"}
    )
    observed = baseline.observe(runner, list(DECLARED["kernel_parameters"]), DECLARED["packages"])
    assert len(observed["errors"]) == 3
    assert {"chronyc is not installed", "dpkg-query: no answer in time"} <= set(observed["errors"])
    assert judged(observed, DECLARED) == dict.fromkeys(CHECKS, ("unknown", "unknown"))


def test_a_damaged_package_database_is_not_one_without_packages() -> None:
    answers = {(*DPKG, "chrony", "numactl"): (2, "", "dpkg-query: error: failed to open package info file\n")}
    observed = baseline.observe(RecordedRunner(answers), [], DECLARED["packages"])
    assert observed["packages"] is None
    assert judged(observed, DECLARED)["packages"] == ("unknown", "unknown")


def test_a_host_at_the_baseline_passes() -> None:
    assert judged(OBSERVED, DECLARED) == dict.fromkeys(CHECKS, ("pass", "ok"))


@pytest.mark.parametrize(
    ("check", "cause", "values"),
    [
        (
            "kernel_parameters",
            "differs",
            parameters(vm__swappiness="60"),
        ),
        (
            "kernel_parameters",
            "unknown",
            parameters(vm__swappiness=None),
        ),
        (
            "numa_balancing",
            "differs",
            parameters(kernel__numa_balancing="1"),
        ),
        ("hugepages", "differs", parameters(vm__nr_hugepages="7")),
        ("transparent_hugepages", "differs", {"transparent_hugepages": "always"}),
        ("limits", "differs", {"limits": {"nofile": 1024, "memlock_kib": 8192}}),
        ("limits", "unknown", {"limits": {"nofile": 20000}}),
        ("time_zone", "differs", {"time_zone": "Asia/Shanghai"}),
        ("packages", "differs", {"packages": {"chrony": "4.3"}}),
        ("clock", "unknown", {"clock": None}),
        ("clock", "skewed", {"clock": {**OBSERVED["clock"], "offset_milliseconds": -50.001}}),
        ("clock", "unsynchronised", {"clock": {**OBSERVED["clock"], "synchronised": False}}),
        ("clock", "unsynchronised", {"clock": {**OBSERVED["clock"], "local": True}}),
    ],
)
def test_each_check_turns_alone(check: str, cause: str, values: dict) -> None:
    verdicts = judged(changed(OBSERVED, **values), DECLARED)
    assert verdicts.pop(check)[1] == cause
    assert set(verdicts.values()) == {("pass", "ok")}


def test_a_host_that_is_declared_the_clusters_clock_may_follow_itself() -> None:
    declared = changed(DECLARED, time_servers=[], time_local_stratum="8")
    observed = changed(OBSERVED, clock={**OBSERVED["clock"], "local": True})
    assert judged(observed, declared)["clock"] == ("pass", "ok")
    assert judged(observed, changed(DECLARED, time_local_stratum="8"))["clock"] == ("fail", "unsynchronised")


def test_a_container_is_judged_only_for_what_is_its_own() -> None:
    declared = changed(DECLARED, shared_kernel=True)
    seen = {**OBSERVED["kernel_parameters"], "vm.swappiness": "60", "net.core.only_the_machine_has_it": None}
    observed = changed(OBSERVED, kernel_parameters=seen, transparent_hugepages="always")
    verdicts = judged(observed, declared)
    assert verdicts["kernel_parameters"] == ("pass", "ok")
    for check in ("numa_balancing", "hugepages", "transparent_hugepages"):
        assert verdicts[check] == ("not_applicable", "shared_kernel")
    observed["kernel_parameters"]["net.core.somaxconn"] = "128"
    assert judged(observed, declared)["kernel_parameters"] == ("fail", "differs")
