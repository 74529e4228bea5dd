# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``accelctl`` on the nodes: what it prints, how it ends, what it must not depend on."""

from __future__ import annotations

import json

import pytest

testinfra_hosts = ["ansible://accelerator_nodes"]


def test_devices_lists_all_eight_cards(host) -> None:
    told = json.loads(host.check_output("accelctl devices --json"))
    assert (told["count"], told["bus_count"], len(told["devices"])) == (8, 8, 8)
    assert len({device["serial"] for device in told["devices"]}) == 8


def test_slots_gives_a_record_of_this_host(host) -> None:
    told = json.loads(host.check_output("accelctl slots --json"))
    assert told["schema"] == 1
    assert told["host"] == host.check_output("hostname")
    assert len(told["slots"]) == 8


def test_check_says_what_it_judged_and_ends_well(host) -> None:
    done = host.run("accelctl check --json")
    told = json.loads(done.stdout)
    assert done.rc == told["status"] == 0
    verdicts = {finding["check"]: finding["verdict"] for finding in told["findings"]}
    assert verdicts["device.count"] == verdicts["device.link_width"] == "pass"


def test_health_is_one_line(host) -> None:
    done = host.run("accelctl health")
    assert (done.rc, done.stdout.count("\n")) == (0, 1)
    assert done.stdout.startswith("OK ")


def test_metrics_have_a_series_for_each_card(host) -> None:
    lines = host.check_output("accelctl metrics").splitlines()
    up = [line for line in lines if line.startswith("accel_card_up{")]
    assert len(up) == 8
    assert all(line.endswith(" 1") and 'serial=""' not in line for line in up)
    assert "accel_node_health 0" in lines


def test_explain_needs_nothing(host) -> None:
    assert "device.count.lost" in host.check_output("accelctl explain device.count --node-file /nonexistent")
    assert host.run("accelctl explain device.conut").rc == 3


def test_locate_claims_no_light_that_is_not_there(host) -> None:
    slot = next(iter(json.loads(host.check_output("accelctl slots --json"))["slots"]))
    done = host.run(f"accelctl locate {slot}")
    assert (done.rc, done.stdout) == (3, "")
    assert "no light is known" in done.stderr


def test_check_without_a_declaration_is_unknown_not_ok(host) -> None:
    done = host.run("accelctl check --node-file /nonexistent")
    assert done.rc == 3
    assert "/nonexistent" in done.stderr


@pytest.mark.parametrize("hostile", ["PYTHONPATH=/tmp/hostile", "PYTHONSTARTUP=/tmp/hostile/json.py"])
def test_the_callers_environment_does_not_lead_it_astray(host, hostile: str) -> None:
    host.check_output("mkdir -p /tmp/hostile && echo 'raise SystemExit(99)' > /tmp/hostile/json.py")
    assert host.run(f"cd /tmp/hostile && {hostile} accelctl devices").rc == 0


def test_the_node_looks_by_itself(host) -> None:
    timer = host.service("accel-check.timer")
    assert timer.is_running
    assert timer.is_enabled
    host.check_output("systemctl start accel-check.service")
    assert host.check_output("systemctl show -P Result accel-check.service") == "success"
