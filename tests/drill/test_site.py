# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running again, looking only, and a host that is dead."""

from __future__ import annotations

HOSTS = {"ctl-01", "gpu-01", "gpu-02", "gpu-03", "npu-01"}


def test_a_second_run_changes_nothing(cluster) -> None:
    done = cluster.play("site")
    assert done.rc == 0, done.output
    recap = done.recap()
    assert recap.keys() >= HOSTS
    assert {host: row["changed"] for host, row in recap.items() if row["changed"]} == {}, done.output


def test_check_mode_on_finished_hosts_finds_nothing_to_change(cluster) -> None:
    done = cluster.play("site", "--check", "--diff")
    assert done.rc == 0, done.output
    assert {host: row["changed"] for host, row in done.recap().items() if row["changed"]} == {}, done.output


def test_a_dead_host_alone_still_gets_a_true_report(cluster) -> None:
    # Port 1 of the loopback refuses at once, as a machine does whose sshd is gone.
    done, report = cluster.verify(
        "--limit", "gpu-02", "--extra-vars", '{"ansible_host": "127.0.0.1", "ansible_port": 1}'
    )
    assert done.rc != 0
    assert report.verdict == "unknown"
    assert report.state() == {("host.reachable", "gpu-02", "gpu-02"): ("unknown", "unreachable", None)}


def test_one_dead_host_hides_no_other(cluster) -> None:
    done, report = cluster.verify(
        "--extra-vars", '{"ansible_port": "{{ 1 if inventory_hostname == \\"gpu-02\\" else 22 }}"}'
    )
    assert done.rc != 0
    state = report.state()
    assert state[("host.reachable", "gpu-02", "gpu-02")] == ("unknown", "unreachable", None)
    assert {host for _check, host, _subject in state} == HOSTS
    assert state[("device.count", "gpu-01", "gpu-01")][0] == "pass"
