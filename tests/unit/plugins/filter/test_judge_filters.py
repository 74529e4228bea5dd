# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters hand on what they were given and refuse what is no observation."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from ansible_collections.accel.cluster.plugins.filter import judge as filters

NOW = "2026-11-30T12:00:00Z"
JUDGES = [filters.judge_devices, filters.judge_baseline, filters.judge_driver_stack, filters.judge_container]
ADDRESS = "0000:18:00.0"
DECLARED = {"cluster_accelerator_vendor": "nvidia", "cluster_accelerator_count": "1"}


def observation(**more):
    link = {"speed_gts": 2.5, "max_speed_gts": 32.0, "width": 16, "max_width": 16, "under_load": False}
    card = {"pci_address": ADDRESS, "source": "nvidia-smi", "health": {"state": "ok"}, "link": link, "uuid": "GPU-1"}
    return {"devices": [card], "count": 1, "bus_count": 1, "tools": [{"name": "nvidia-smi", "state": "ok"}], **more}


def causes(findings):
    return {finding["check"]: finding["hint"].rpartition(".")[2] for finding in findings}


def test_judge_devices_takes_the_readings_that_came_with_the_observation():
    assert (
        causes(filters.judge_devices(observation(), "gpu-01", DECLARED, now=NOW))["device.link_speed"] == "no_reading"
    )
    readings = {ADDRESS: {"speed_gts": 32.0, "at": "2026-11-30T11:00:00Z", "identity": "GPU-1"}}
    judged = filters.judge_devices(observation(link_readings=readings), "gpu-01", DECLARED, now=NOW)
    assert causes(judged)["device.link_speed"] == "ok"


def test_judge_devices_speaks_the_language_asked_for():
    found = filters.judge_devices(observation(), "gpu-01", DECLARED, "zh", NOW)
    assert next(f["message"] for f in found if f["check"] == "device.count") == "1 张加速卡中有 1 张应答"


def test_judge_baseline():
    found = filters.judge_baseline({"time_zone": "Asia/Shanghai"}, "gpu-01", {"time_zone": "Etc/UTC"}, now=NOW)
    zone = next(f for f in found if f["check"] == "baseline.time_zone")
    assert (zone["verdict"], zone["host"], zone["at"]) == ("fail", "gpu-01", NOW)
    assert zone["message"] == "the time zone of gpu-01 is not the declared one: Asia/Shanghai instead of Etc/UTC"


def test_judge_driver_stack():
    seen = {"versions": [{"component": "driver_kernel", "version": "570.72"}], "module": {"loaded": True}}
    found = filters.judge_driver_stack(seen, "gpu-01", {"driver_version": "570.86.15"}, "zh", NOW)
    assert [(f["hint"], f["host"], f["at"]) for f in found] == [("device.driver_stack.module_off_pin", "gpu-01", NOW)]
    assert found[0]["message"] == "已加载模块为 570.72，锁定版本为 570.86.15"


def test_judge_container():
    seen = {"engine": {"name": "podman", "state": "absent"}}
    declared = {**DECLARED, "images": ["reg:5000/train:1"], "registries": ["reg:5000"], "cdi": True}
    found = filters.judge_container(seen, "gpu-01", declared, observation(), now=NOW)
    assert causes(found) == {
        "container.engine": "absent",
        "container.registry": "unknown",
        "container.image_digest": "blocked",
        "container.cdi": "unknown",
    }
    assert {one["at"] for one in found} == {NOW}
    with pytest.raises(AnsibleFilterError, match="accelerator_info returned must be a mapping"):
        filters.judge_container(seen, "gpu-01", declared, "cards")


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("garbage", [None, "", [], 5])
def test_what_is_no_observation_is_refused(judge, garbage):
    with pytest.raises(AnsibleFilterError, match="must be a mapping"):
        judge(garbage, "gpu-01", {})
    with pytest.raises(AnsibleFilterError, match="declared values must be a mapping"):
        judge({}, "gpu-01", garbage)


@pytest.mark.parametrize("judge", JUDGES)
def test_the_result_of_a_dead_host_is_no_observation(judge):
    with pytest.raises(AnsibleFilterError, match=r"stopped answering.*Connection timed out"):
        judge({"unreachable": True, "msg": "Connection timed out"}, "gpu-01", {})


def test_every_filter_is_documented():
    folder = Path(filters.__file__).parent
    for name in filters.FilterModule().filters():
        about = yaml.safe_load((folder / f"{name}.yml").read_text(encoding="utf-8"))
        assert about["DOCUMENTATION"]["name"] == name
        assert about["RETURN"]["_value"]["type"] == "list"
