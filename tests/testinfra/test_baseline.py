# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The baseline as an outsider sees it: values in force, read with the system's own tools."""

from __future__ import annotations

import re

testinfra_hosts = ["ansible://cluster_hosts"]


def test_a_service_started_now_has_the_declared_limits(host) -> None:
    limits = host.check_output("systemd-run --quiet --wait --pipe --collect cat /proc/self/limits")
    assert re.search(r"^Max open files +16384 ", limits, re.MULTILINE)
    assert re.search(rf"^Max locked memory +{4096 * 1024} ", limits, re.MULTILINE)


def test_the_network_parameters_are_in_force(host) -> None:
    assert host.sysctl("net.core.somaxconn") == 8192
    assert host.check_output("sysctl -n net.ipv4.ip_local_port_range").split() == ["32768", "65535"]


def test_what_belongs_to_the_machine_is_written_and_not_applied(host) -> None:
    assert "vm.zone_reclaim_mode = 1" in host.file("/etc/sysctl.d/90-accel-kernel.conf").content_string
    assert host.sysctl("vm.zone_reclaim_mode") == 0


def test_every_host_follows_the_controller_host(host) -> None:
    sources = host.check_output("chronyc -c sources").splitlines()
    tracking = host.check_output("chronyc -c tracking").split(",")
    if host.check_output("hostname") == "ctl-01":
        assert sources == []
        assert tracking[0] == "7F7F0101"
    else:
        assert [row.split(",")[:2] for row in sources] == [["^", "*"]]
        assert tracking[13] == "Normal"


def test_chronyd_leaves_the_clock_of_the_machine_alone(host) -> None:
    service = host.service("chrony")
    assert service.is_running
    assert service.is_enabled
    assert "-x" in host.check_output("pgrep -ax chronyd").split()
    # Nor did it ever, from the moment that its package was installed.
    said = host.check_output("journalctl --unit=chrony --output=cat").splitlines()
    starts = sum(line.startswith("chronyd version") for line in said)
    assert starts == said.count("Disabled control of system clock") > 0


def test_the_time_zone_is_set_without_telling_the_kernel(host) -> None:
    """timedated tells it, and the first zone that a kernel is told moves the clock of the machine."""
    zone = "CST +0800" if host.check_output("hostname") == "npu-01" else "UTC +0000"
    assert host.check_output("date '+%Z %z'") == zone
    assert host.check_output("systemctl show --value -p ActiveEnterTimestampMonotonic systemd-timedated") == "0"
