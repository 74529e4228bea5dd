# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics as Prometheus' own parser reads them."""

from __future__ import annotations

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import metrics, model
from prometheus_client.parser import text_string_to_metric_families


def device(number=1, **more):
    told = {
        "vendor": "nvidia",
        "model": "NVIDIA H100 80GB HBM3",
        "serial": f"165042300012{number}",
        "uuid": f"GPU-{number}",
        "pci_address": f"0000:{number}8:00.0",
        "slot": model.SlotName(f"SXM{number}", "vendor"),
        "memory_bytes": 85520809984,
        "health": model.Health("ok"),
        "source": "nvidia-smi 570.86.15",
    }
    return model.Device(**{**told, **more})


def page(*devices, unanswered=(), tools=(), **more):
    observation = model.Observation(
        list(devices), len(devices), len(devices) + len(unanswered), len(devices), list(unanswered), list(tools)
    )
    text = metrics.render(model.as_dict(observation), **more)
    assert text.endswith("\n")
    for line in text.splitlines():
        assert line.isprintable()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    for family in families.values():
        assert (family.type, bool(family.documentation)) == ("gauge", True)
        keys = [tuple(sorted(sample.labels.items())) for sample in family.samples]
        assert len(keys) == len(set(keys)), "two series with the same labels"
        assert text.count(f"# TYPE {family.name} ") == text.count(f"# HELP {family.name} ") == 1
    return {name: [(sample.labels, sample.value) for sample in family.samples] for name, family in families.items()}


def test_a_card_is_one_series_of_each():
    ecc = model.Ecc(corrected_volatile=0, uncorrected_aggregate=2)
    readings = model.Readings(temperature_c=34.0, power_watts=71.25, utilization_percent=50.0, throttles=["thermal"])
    link = model.Link(32.0, 16, 32.0, 16)
    ports = [{"kind": "nvlink", "index": 0, "state": "up"}, {"kind": "nvlink", "index": 1, "state": "down"}]
    one = device(ecc=ecc, readings=readings, link=link, ports=ports, repair=model.Repair("reset", 3))
    told = page(one, device(2))
    labels = {
        "slot": "SXM1",
        "serial": "1650423000121",
        "uuid": "GPU-1",
        "vendor": "nvidia",
        "model": "NVIDIA H100 80GB HBM3",
        "pci_address": "0000:18:00.0",
    }
    assert told["accel_card_health"][0] == (labels, 0)
    values = {name: rows[0][1] for name, rows in told.items() if len(rows) == 1 or rows[0][0] == labels}
    assert values["accel_card_ecc_corrected_volatile"] == 0
    assert values["accel_card_ecc_uncorrected_aggregate"] == 2
    assert values["accel_card_temperature_celsius"] == 34
    assert values["accel_card_power_watts"] == 71.25
    assert values["accel_card_utilization_ratio"] == 0.5
    assert values["accel_card_memory_bytes"] == 85520809984
    assert values["accel_card_link_width"] == 16
    assert values["accel_card_remapped_rows"] == 3
    assert values["accel_card_memory_repair"] == 1
    assert (values["accel_card_ports_up"], values["accel_card_ports_down"]) == (1, 1)
    active = {labels["reason"]: value for labels, value in told["accel_card_throttled"]}
    assert set(active) == set(model.THROTTLES)
    assert [reason for reason, value in active.items() if value] == ["thermal"]


def test_what_is_not_told_is_left_out():
    told = page(model.Device(vendor="amd", pci_address="0000:18:00.0", source="amd-smi"))
    names = {name for name in told if name.startswith("accel_card_")}
    assert names == {"accel_card_up", "accel_card_health"}
    # Nobody knows is a value of its own, and not 0.
    assert told["accel_card_health"][0][1] == 3
    assert told["accel_card_up"][0][0]["serial"] == ""


def test_partitions_are_counted_as_they_are_judged():
    chips = [{"kind": "chip", "index": number} for number in range(2)]
    parts = [{"kind": "vnpu", "index": number} for number in range(3)]
    told = page(
        device(1, partition_mode="whole"),
        device(2, partition_mode="whole", logical=chips),
        device(3, partition_mode="vNPU", logical=[*chips, *parts]),
        device(4),
    )
    values = {labels["slot"]: value for labels, value in told["accel_card_partitions"]}
    assert values == {"SXM1": 0, "SXM2": 0, "SXM3": 3}


def test_cards_that_do_not_answer_have_a_series_that_says_so():
    lost = {
        "pci_address": "0000:28:00.0",
        "vendor": "nvidia",
        "state": "lost",
        "serial": "S2",
        "model": None,
        "uuid": None,
    }
    hung = {
        **lost,
        "pci_address": "0000:38:00.0",
        "state": "not_reported",
        "slot": model.as_dict(model.SlotName("SXM3")),
    }
    told = page(device(), model.Device(vendor="amd", pci_address="0000:48:00.0"), unanswered=[lost, hung])
    up = {labels["pci_address"]: value for labels, value in told["accel_card_up"]}
    assert up == {"0000:18:00.0": 1, "0000:28:00.0": 0, "0000:38:00.0": 0, "0000:48:00.0": 0}
    health = {labels["pci_address"]: value for labels, value in told["accel_card_health"]}
    assert health == {"0000:18:00.0": 0, "0000:28:00.0": 2, "0000:38:00.0": 3, "0000:48:00.0": 3}
    assert {labels["pci_address"] for labels, _value in told["accel_card_memory_bytes"]} == {"0000:18:00.0"}


def test_the_node():
    tools = [model.Tool("nvidia-smi", "nvidia"), model.Tool("npu-smi", "ascend", state="hung")]
    findings = [{"verdict": "pass", "severity": "critical"}] * 3 + [{"verdict": "fail", "severity": "warning"}]
    told = page(device(), tools=tools, status=1, findings=findings, declared=8, seconds=0.25)
    for name, value in (("cards_declared", 8), ("cards_answered", 1), ("cards_on_bus", 1), ("node_health", 1)):
        assert told[f"accel_{name}"] == [({}, value)]
    assert told["accel_query_seconds"] == [({}, 0.25)]
    assert told["accel_findings"] == [
        ({"verdict": "fail", "severity": "warning"}, 1),
        ({"verdict": "pass", "severity": "critical"}, 3),
    ]
    assert [value for _labels, value in told["accel_tool_up"]] == [1, 0]
    nothing = metrics.render({"devices": [], "count": None, "bus_count": 0, "logical_count": None, "tools": []})
    assert "accel_cards_answered" not in nothing and "accel_cards_on_bus 0" in nothing


@pytest.mark.parametrize("odd", ['a"b', "a\\b", "a\nb", "a\\nb", '\\"', "{a=1}", "卡 1", 'a,b="c"} 5'])
def test_labels_are_escaped(odd):
    told = page(device(model=odd, slot=model.SlotName(odd)))
    labels = told["accel_card_up"][0][0]
    assert (labels["model"], labels["slot"]) == (odd, odd)


def test_cards_that_nothing_tells_apart_do_not_spoil_the_page():
    told = page(model.Device(vendor="amd", source="amd-smi"), model.Device(vendor="amd", source="amd-smi"))
    assert len(told["accel_card_up"]) == 1


def test_a_number_that_is_none_is_left_out():
    readings = model.Readings(temperature_c=float("nan"), power_watts=float("inf"), memory_used_bytes=True)
    assert "accel_card_temperature_celsius" not in page(device(readings=readings))
    assert "accel_card_power_watts" not in page(device(readings=readings))
    assert "accel_card_memory_used_bytes" not in page(device(readings=readings))


def test_of_cards_that_nothing_tells_apart_the_worst_is_shown():
    """Their tool tells neither address nor serial: one series, which must not be that of the card that is well."""
    nameless = {"serial": None, "uuid": None, "pci_address": None, "slot": model.SlotName()}
    told = page(
        device(1, **nameless), device(2, **nameless, health=model.Health("critical", ["x"])), device(3, **nameless)
    )
    assert [value for _labels, value in told["accel_card_health"]] == [2]
    told = page(device(1, **nameless), device(2, **nameless, source="sysfs"))
    assert [value for _labels, value in told["accel_card_up"]] == [0]
