# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings are kept and concluded on the controller, through ansible-playbook, with every host dead."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml
from ansible_collections.accel.cluster.plugins.action import conclude as conclude_action
from ansible_collections.accel.cluster.plugins.action import findings as findings_action
from ansible_collections.accel.cluster.plugins.module_utils._accel import conclude, judge, record, slots

NOW = "2026-11-30T12:00:00Z"
RUN_ID = "20261130T115800Z"
GOOD = judge.finding("baseline.clock.ok", "gpu-01", now=NOW)


def options(site_dir, **more):
    return {
        "site_dir": str(site_dir),
        "run_id": RUN_ID,
        "layer": "device",
        "role": "baseline",
        "findings": [GOOD],
        "observed": {},
        "crashed": None,
        **more,
    }


def test_two_roles_hand_over_to_one_part(tmp_path):
    path = findings_action.hand_over(options(tmp_path), "gpu-01", "en")[0]
    assert path == str(tmp_path / "reports" / RUN_ID / "parts/gpu-01/device.json")
    driver = judge.finding("device.driver.ok", "gpu-01", now=NOW, version="")
    findings_action.hand_over(
        options(tmp_path, role="driver", findings=[driver], observed={"devices": {"count": 8}}), "gpu-01", "en"
    )
    findings_action.hand_over(options(tmp_path), "gpu-01", "en")
    kept = json.loads(Path(path).read_text())
    assert (kept["schema"], kept["host"], kept["layer"]) == (1, "gpu-01", "device")
    assert sorted(kept["roles"]) == ["baseline", "driver"]
    assert sorted(f["check"] for f in kept["findings"]) == ["baseline.clock", "device.driver"]
    assert kept["observed"] == {"devices": {"count": 8}}
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o644
    # Written whole: nothing is left beside it.
    assert os.listdir(os.path.dirname(path)) == ["device.json"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"findings": [GOOD, {**GOOD, "verdict": "green"}]}, "verdict 'green'"),
        ({"findings": [{**GOOD, "hint": "baseline.clock.late"}]}, "'baseline.clock.late' is no cause"),
        ({"findings": [{**GOOD, "host": "gpu-02", "subject": "gpu-02"}]}, "speaks of 'gpu-02', this is 'gpu-01'"),
        ({"findings": [{**GOOD, "observed": {1, 2}}]}, "can't be written as JSON"),
        ({"findings": ["clock"]}, "a finding is an object"),
        ({"run_id": "../../etc"}, "must not hold a slash"),
        ({"run_id": ""}, "can't name a directory"),
        ({"role": ""}, "role is empty"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_written(tmp_path, change, words):
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        findings_action.hand_over(options(tmp_path, **change), "gpu-01", "en")
    assert list(tmp_path.rglob("*.json")) == []


@pytest.mark.parametrize("host", ["../gpu-01", "..", "a/b"])
def test_a_host_name_can_not_leave_the_reports(tmp_path, host):
    with pytest.raises(ValueError, match="host"):
        findings_action.hand_over(options(tmp_path, findings=[]), host, "en")
    assert list(tmp_path.iterdir()) == []


def test_a_part_that_is_garbled_is_refused_with_its_line_and_left_as_it_is(tmp_path):
    path = findings_action.hand_over(options(tmp_path), "gpu-01", "en")[0]
    Path(path).write_text('{\n  "schema": 1,\n  oops')
    with pytest.raises(record.RecordError, match=r"device\.json line 3"):
        findings_action.hand_over(options(tmp_path), "gpu-01", "en")
    assert Path(path).read_text().endswith("oops")


def test_a_crash_is_an_unknown_finding_and_takes_nothing_away(tmp_path):
    findings_action.hand_over(options(tmp_path), "gpu-01", "zh")
    crash = options(tmp_path, findings=[], crashed="KeyError: 'devices'\n  at line 5")
    findings_action.hand_over(crash, "gpu-01", "zh")
    part = findings_action.hand_over(crash, "gpu-01", "zh")[1]
    assert [f["hint"] for f in part["findings"]] == ["baseline.clock.ok", "host.reachable.crashed"]
    told = part["findings"][1]
    assert told["message"] == "gpu-01 的验收在角色 baseline 中异常退出：KeyError: 'devices'"
    assert "at line 5" in told["evidence"][0]["excerpt"]
    assert judge.verdict(part["findings"]) == "unknown"


def test_a_site_directory_that_can_not_be_written_is_a_clear_error(tmp_path):
    (tmp_path / "site").write_text("a file, not a directory")
    with pytest.raises(record.RecordError, match=r"device\.json cannot be (read|written)"):
        findings_action.hand_over(options(tmp_path / "site"), "gpu-01", "en")


# ---------------------------------------------------------------------------------------------- reading


def put(folder, host, text, layer="device"):
    path = folder / "parts" / host / f"{layer}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else json.dumps(text).encode())


def test_parts_that_are_none_are_told_by_file(tmp_path):
    good = conclude.merge_part(None, "gpu-01", "device", "baseline", [GOOD])
    put(tmp_path, "gpu-01", good)
    put(tmp_path, "gpu-02", b"{ not json")
    put(tmp_path, "gpu-03", b"\xff\xfe\x00")
    put(tmp_path, "gpu-04", b"")
    put(tmp_path, "gpu-05", good)  # the part of another host
    put(tmp_path, "gpu-06", {**good, "host": "gpu-06"})  # findings of another host
    put(tmp_path, "gpu-07", {**good, "host": "gpu-07", "layer": "cellar"}, "cellar")
    put(tmp_path, "gpu-08", {**good, "host": "gpu-08", "schema": 2})
    put(tmp_path, "gpu-09", {**good, "host": "gpu-09", "findings": [{"check": "?"}]})
    put(tmp_path, "gpu-10", ["a list"])
    parts, errors = conclude_action.read_parts(str(tmp_path))
    assert list(parts) == ["gpu-01"]
    assert sorted(errors) == [f"gpu-{number:02}" for number in range(2, 11)]
    assert all(
        list(files) == [f"parts/{host}/{'cellar' if host == 'gpu-07' else 'device'}.json"]
        for host, files in errors.items()
    )
    assert "line 1" in errors["gpu-02"]["parts/gpu-02/device.json"]
    assert "another host" in errors["gpu-06"]["parts/gpu-06/device.json"]


def test_baselines_that_are_none_are_told_by_host(tmp_path):
    folder = tmp_path / "baselines/slots"
    folder.mkdir(parents=True)
    body = slots.build_record({"devices": []}, "gpu-01", NOW)
    (folder / "gpu-01.json").write_text(json.dumps(body))
    (folder / "gpu-02.json").write_text("{")
    (folder / "gpu-03.json").write_text(json.dumps(body))
    baselines, errors = conclude_action.read_baselines(str(tmp_path))
    assert list(baselines) == ["gpu-01"]
    assert "line 1" in errors["gpu-02"] and "baseline of gpu-01" in errors["gpu-03"]


# ---------------------------------------------------------------------------------------------- end to end

DEVICE = {
    "pci_address": "0000:18:00.0",
    "vendor": "nvidia",
    "model": "Card",
    "serial": "1650401000123",
    "uuid": "GPU-1",
    "slot": {"label": "SXM1", "source": "vendor", "candidates": []},
    "memory_bytes": 85899345920,
    "health": {"state": "ok", "reasons": []},
    "link": {"speed_gts": 32.0, "width": 16, "max_speed_gts": 32.0, "max_width": 16, "under_load": True},
    "source": "nvidia-smi 570.86.15",
}
OBSERVED = {
    "devices": [DEVICE],
    "count": 1,
    "bus_count": 1,
    "unanswered": [],
    "tools": [{"name": "nvidia-smi", "vendor": "nvidia", "state": "ok"}],
    "drivers": [{"vendor": "nvidia", "kernel_version": "570.86.15", "loaded": True}],
}
PLAYBOOK = """
- name: Hand over
  hosts: gpu-01:gpu-02
  gather_facts: false
  tasks:
    - name: Baseline
      accel.cluster.findings:
        site_dir: "{{ site_dir }}"
        run_id: "{{ run_id }}"
        layer: device
        role: baseline
        findings: "{{ {'time_zone': 'Etc/UTC'} | accel.cluster.judge_baseline(inventory_hostname, {'time_zone': zone}) |
          selectattr('check', 'eq', 'baseline.time_zone') }}"
    - name: Driver
      accel.cluster.findings:
        site_dir: "{{ site_dir }}"
        run_id: "{{ run_id }}"
        layer: device
        role: driver
        findings: "{{ observed | accel.cluster.judge_devices(inventory_hostname, declared, cluster_language) }}"
        observed: {devices: "{{ observed }}"}
      register: handed
    - name: A part is no change
      ansible.builtin.assert:
        that: handed is not changed

- name: Conclude
  hosts: all
  gather_facts: false
  tasks:
    - name: Conclude
      accel.cluster.conclude:
        site: "{{ site }}"
        site_dir: "{{ site_dir }}"
        run_id: "{{ run_id }}"
        hosts: "{{ ansible_play_hosts_all }}"
        expected: [{role: baseline, layer: device}, {role: driver, layer: device}]
        language: "{{ cluster_language }}"
        template: "{{ template }}"
      register: outcome
      run_once: true
    - name: Tell
      ansible.builtin.copy:
        content: "{{ outcome | to_json }}"
        dest: "{{ told }}"
        mode: "0600"
      run_once: true
      delegate_to: localhost
      check_mode: false
"""


def inventory(tmp_path, language="en", bad="{{ no_such_variable }}"):
    dead = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}
    hosts = {name: dict(dead) for name in ("dead-01", "gpu-01", "gpu-02")}
    hosts["gpu-02"]["cluster_driver_version"] = bad
    return {
        "all": {
            "hosts": hosts,
            "vars": {
                "site": "drill",
                "site_dir": str(tmp_path / "site"),
                "run_id": RUN_ID,
                "template": str(tmp_path / "page.j2"),
                "told": str(tmp_path / "told.json"),
                "cluster_language": "{{ wanted_language }}",
                "wanted_language": language,
                "zone": "{{ 'Etc/UTC' }}",
                "cluster_node_type": "{{ 'h100' }}",
                "cluster_accelerator_vendor": "nvidia",
                "cluster_accelerator_count": "1",
                "declared": {"cluster_accelerator_vendor": "{{ cluster_accelerator_vendor }}",
                             "cluster_accelerator_count": "{{ cluster_accelerator_count }}"},
                "observed": OBSERVED,
            },
        }
    }  # fmt: skip


def play(tmp_path, *arguments, playbook=PLAYBOOK, values=None, **more):
    hosts = inventory(tmp_path, **more)
    hosts["all"]["vars"].update(values or {})
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump(hosts))
    (tmp_path / "play.yml").write_text(playbook)
    (tmp_path / "ansible.cfg").write_text("[defaults]\n")  # not that of the checkout, nor of the user
    if not (tmp_path / "page.j2").exists():
        (tmp_path / "page.j2").write_text("<p>{{ verdict }}</p>\n")
    collections = Path(judge.__file__).absolute().parents[6]
    environment = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(collections),
        "ANSIBLE_CONFIG": str(tmp_path / "ansible.cfg"),
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_HOME": str(tmp_path / "ansible"),
        "ANSIBLE_INJECT_FACT_VARS": "false",
    }
    command = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "hosts.yml", "play.yml", *arguments]
    return subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture
def accepted(tmp_path):
    for host in ("gpu-01", "gpu-02"):
        card = {**DEVICE, "uuid": "GPU-2", "serial": "1650402000123"} if host == "gpu-02" else DEVICE
        body = slots.as_baseline(
            slots.build_record({"devices": [card]}, host, NOW), {"at": NOW, "by": "me", "reason": "x"}
        )
        record.write(str(tmp_path / f"site/baselines/slots/{host}.json"), body)


@pytest.mark.usefixtures("accepted")
def test_a_run_with_every_host_dead_ends_with_a_true_report_in_check_mode_too(tmp_path):
    done = play(tmp_path, "--check", "--diff")
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads((tmp_path / "told.json").read_text())
    folder = tmp_path / "site/reports" / RUN_ID
    assert told["report"] == str(folder / "report.html")
    assert (told["verdict"], told["changed"]) == ("fail", False)

    body = json.loads((folder / "findings.json").read_text())
    state = {(f["check"], f["host"]): f["hint"].rpartition(".")[2] for f in body["findings"]}
    assert state["host.reachable", "dead-01"] == "unreachable"
    assert state["host.reachable", "gpu-01"] == "ok"
    assert state["device.count", "gpu-01"] == "ok"
    assert state["baseline.time_zone", "gpu-01"] == "ok"
    assert state["device.slot", "gpu-01"] == "ok"
    assert state["device.driver_version", "gpu-01"] == "ok"
    # gpu-02 shows the very card of gpu-01, and one of its variables can't be templated.
    assert state["device.driver_version", "gpu-02"] == "unknown"
    assert state["device.slot", "gpu-02"] == "duplicate"
    assert "no_such_variable" in next(
        f["message"] for f in body["findings"] if (f["check"], f["host"]) == ("device.driver_version", "gpu-02")
    )
    assert body["run"]["verdict"] == told["verdict"] and "findings" not in body["run"]
    assert body["run"]["hosts"][1]["node_type"] == "h100"
    assert body["run"]["started_at"] == "2026-11-30T11:58:00Z"

    assert (folder / "report.html").read_text() == "<p>fail</p>"
    cases = ET.parse(folder / "junit.xml").getroot().iter("testcase")
    assert len(list(cases)) == len(body["findings"])


@pytest.mark.usefixtures("accepted")
def test_a_page_that_can_not_be_made_loses_no_finding(tmp_path):
    (tmp_path / "page.j2").write_text("{{ no_such_thing }}")
    done = play(tmp_path, language="zh", bad="570.86.15")
    assert done.returncode != 0
    assert "report.html could not be written" in done.stdout + done.stderr
    body = json.loads((tmp_path / "site/reports" / RUN_ID / "findings.json").read_text())
    assert body["run"]["language"] == "zh"
    assert not (tmp_path / "site/reports" / RUN_ID / "report.html").exists()
    assert [f["message"] for f in body["findings"] if f["check"] == "device.count"] == ["1 张加速卡中有 1 张应答"] * 2


WRONG = """
- name: Verify as the roles do
  hosts: all
  gather_facts: false
  vars:
    cluster_site_dir: "{{ site_dir }}"
    cluster_run_id: "{{ run_id }}"
    acceptance_hosts: "{{ ansible_play_hosts_all }}"
  tasks:
    - name: Say that the role broke
      accel.cluster.findings:
        site_dir: "{{ site_dir }}"
        run_id: "{{ run_id }}"
        layer: device
        role: baseline
        crashed: it broke
    - name: Conclude
      ansible.builtin.include_role:
        name: accel.cluster.acceptance
        tasks_from: conclude
"""


@pytest.mark.parametrize("wrong", ["fr", ["zh"], {"a": 1}, None, 7, "{{ no_such_variable }}"])
def test_a_wrong_language_or_name_of_the_site_costs_no_report(tmp_path, wrong):
    done = play(tmp_path, playbook=WRONG, values={"cluster_language": wrong, "cluster_name": wrong})
    told = done.stdout + done.stderr
    assert done.returncode == 2 and "Fail where the cluster is not proven" in told, told
    folder = tmp_path / "site/reports" / RUN_ID
    body = json.loads((folder / "findings.json").read_text())
    assert (body["run"]["language"], body["run"]["verdict"]) == ("en", "unknown")
    assert isinstance(body["run"]["site"], str) and body["run"]["site"]
    assert {one["host"] for one in body["findings"]} == {"dead-01", "gpu-01", "gpu-02"}
    assert any("broke" in one["message"] for one in body["findings"])
    assert 'lang="en"' in (folder / "report.html").read_text()
    assert "the report is in English" in told
