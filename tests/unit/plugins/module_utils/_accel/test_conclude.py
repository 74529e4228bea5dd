# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From parts to a run: what is missing is unknown, one fault is one cause, the worst comes first."""

from __future__ import annotations

import copy
import json

import observations as seen
import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import conclude, judge, recall, slots
from observations import DECLARED, NOW, SLOTS

EXPECTED = [{"role": "baseline", "layer": "device"}, {"role": "driver", "layer": "device"}]
RUN_ID = "20261130T115800Z"


def part(host, observation, language="en", declared=None):
    """Return the part that the baseline and driver roles of a host hand over."""
    clock = judge.finding("baseline.clock.ok", host, language=language, now=NOW)
    made = conclude.merge_part(None, host, "device", "baseline", [clock])
    found = judge.judge_devices(host, observation, declared or DECLARED, now=NOW, language=language)
    return conclude.merge_part(made, host, "device", "driver", found, {"devices": observation})


def baseline(host, observation):
    return slots.build_record(observation, host, NOW)


def cluster(language="en", **observed):
    """Conclude a run of gpu-01 and gpu-02, on which all is well but what ``observed`` says (None: no part)."""
    hosts = {"gpu_01": seen.healthy(1), "gpu_02": seen.healthy(2), **observed}
    shown = {name.replace("_", "-"): observation for name, observation in hosts.items()}
    return conclude.conclude(
        site="drill",
        run_id=RUN_ID,
        hosts=["gpu-01", "gpu-02"],
        expected=EXPECTED,
        parts={h: {"device": part(h, o, language)} for h, o in shown.items() if o is not None},
        declared=dict.fromkeys(shown, DECLARED),
        baselines={"gpu-01": baseline("gpu-01", seen.healthy(1)), "gpu-02": baseline("gpu-02", seen.healthy(2))},
        now=NOW,
        language=language,
    )


def state(outcome):
    told = {}
    for one in outcome["run"]["findings"]:
        key = (one["check"], one["host"], one["subject"])
        assert key not in told, f"two findings for {key}"
        told[key] = (one["verdict"], one["hint"].rpartition(".")[2], one["blocked_by"])
    return told


def turned(outcome):
    before, after = state(cluster()), state(outcome)
    return {key: after.get(key) for key in before.keys() | after.keys() if before.get(key) != after.get(key)}


def test_a_healthy_cluster():
    outcome = cluster()
    assert outcome["verdict"] == "pass"
    # of each host: reachable, clock, driver, query, count, kernel log, driver version, and 14 checks of 8 cards
    assert outcome["counts"] == {"pass": 2 * (7 + 8 * 14), "fail": 0, "unknown": 0, "not_applicable": 0, "warnings": 0}
    assert outcome["lines"] == ["device: pass (0 fail, 0 unknown, 0 warnings, 238 pass)"]


def test_the_run_that_the_report_takes():
    run = cluster()["run"]
    assert {
        key: run[key] for key in ("schema", "site", "run_id", "started_at", "finished_at", "language", "verdict")
    } == {
        "schema": 1,
        "site": "drill",
        "run_id": RUN_ID,
        "started_at": "2026-11-30T11:58:00Z",
        "finished_at": NOW,
        "language": "en",
        "verdict": "pass",
    }
    assert [(layer["layer"], layer["verdict"]) for layer in run["layers"]] == [("device", "pass")]
    host = run["hosts"][0]
    assert (host["host"], host["node_type"], host["vendor"], host["reachable"]) == ("gpu-01", "h100", "nvidia", True)
    assert [slot["label"] for slot in host["slots"]] == sorted(SLOTS)
    card = host["slots"][4]
    assert {key: card[key] for key in ("label", "address", "serial", "uuid", "model", "verdict")} == {
        "label": "SXM5",
        "address": "0000:ba:00.0",
        "serial": "165040100006",
        "uuid": "GPU-01-6",
        "model": "NVIDIA H100 80GB HBM3",
        "verdict": "pass",
    }
    assert len(card["checks"]) == 14
    finding = run["findings"][0]
    assert finding["title"] and finding["hint_text"] == "" and "role" not in finding
    json.dumps(run, allow_nan=False)


BLOCKED_BY_COUNT = ("unknown", "blocked", "device.count")
TOLD_BY_THE_CARD = (
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
    "device.processes",
)
CARD_CHECKS = (
    *TOLD_BY_THE_CARD,
    "device.link_width",
    "device.link_speed",
)


def true_to_life(observation):
    """Take from silent cards what real ones take with them: the vendor's name of the place."""
    changed = copy.deepcopy(observation)
    for number, entry in enumerate(changed["unanswered"]):
        entry["slot"] = {"label": str(21 + number), "source": "sysfs", "candidates": []}
    return changed


@pytest.mark.parametrize("shape", [copy.deepcopy, true_to_life])
def test_card_lost(shape):
    outcome = cluster(gpu_01=shape(seen.card_lost(seen.healthy())))
    assert outcome["verdict"] == "fail"
    assert turned(outcome) == {
        ("device.count", "gpu-01", "gpu-01"): ("fail", "lost", None),
        **{(check, "gpu-01", "SXM5"): BLOCKED_BY_COUNT for check in CARD_CHECKS},
    }
    first = outcome["run"]["findings"][0]
    assert first["message"] == (
        "7 of 8 cards answer; on the bus but lost: 0000:ba:00.0 (slot SXM5, serial 165040100006)"
    )
    assert "Drain the node" in first["hint_text"]
    assert outcome["lines"] == ["device: fail (1 fail, 14 unknown, 0 warnings, 223 pass): gpu-01 device.count"]
    # The lost card is still in the map, in its place, with the serial to look for.
    card = outcome["run"]["hosts"][0]["slots"][4]
    assert (card["label"], card["serial"], card["verdict"]) == ("SXM5", "165040100006", "unknown")
    assert len(outcome["run"]["hosts"][0]["slots"]) == 8


@pytest.mark.parametrize("shape", [copy.deepcopy, true_to_life])
def test_card_hung(shape):
    outcome = cluster(gpu_02=shape(seen.card_hung(seen.healthy(2))))
    by_query = ("unknown", "blocked", "device.query")
    assert turned(outcome) == {
        ("device.query", "gpu-02", "gpu-02"): ("unknown", "hung", None),
        ("device.count", "gpu-02", "gpu-02"): by_query,
        **{(check, "gpu-02", "SXM3"): by_query for check in CARD_CHECKS if check != "device.link_width"},
    }
    assert outcome["verdict"] == "unknown"
    assert "SXM3" in outcome["run"]["findings"][0]["message"]


@pytest.mark.parametrize("shape", [copy.deepcopy, true_to_life])
def test_driver_library_mismatch(shape):
    broken = seen.driver_library_mismatch(seen.healthy())
    broken["devices"] = []
    outcome = cluster(gpu_01=shape(broken))
    by_driver = ("unknown", "blocked", "device.driver")
    expected = {
        ("device.driver", "gpu-01", "gpu-01"): ("fail", "library_mismatch", None),
        ("device.query", "gpu-01", "gpu-01"): by_driver,
        ("device.count", "gpu-01", "gpu-01"): by_driver,
    }
    for slot in SLOTS:
        for check in TOLD_BY_THE_CARD:
            expected[check, "gpu-01", slot] = by_driver
    assert turned(outcome) == expected
    assert outcome["run"]["findings"][0]["check"] == "device.driver"


def test_cards_swapped_card_replaced_link_downtrained():
    assert turned(cluster(gpu_01=seen.swapped(seen.healthy(), 1, 7))) == {
        ("device.slot", "gpu-01", "SXM2"): ("fail", "swapped", None),
        ("device.slot", "gpu-01", "SXM7"): ("fail", "swapped", None),
    }
    outcome = cluster(gpu_02=seen.replaced(seen.healthy(2), 6))
    assert turned(outcome) == {("device.slot", "gpu-02", "SXM5"): ("fail", "replaced", None)}
    assert outcome["run"]["hosts"][1]["slots"][4]["serial"] == "1659999000001"
    assert outcome["run"]["hosts"][1]["slots"][4]["verdict"] == "fail"
    assert turned(cluster(gpu_01=seen.downtrained(seen.healthy(), 6))) == {
        ("device.link_width", "gpu-01", "SXM5"): ("fail", "narrow", None)
    }


def test_a_slot_in_which_another_card_answers_is_not_given_to_a_silent_one():
    observation = true_to_life(seen.card_lost(seen.healthy()))
    # The card of SXM6 was put into SXM5, the lost one sits at the old address of SXM5.
    observation["devices"][5]["slot"]["label"] = "SXM5"
    told = state(cluster(gpu_01=observation))
    assert told["device.health", "gpu-01", "21"] == BLOCKED_BY_COUNT
    assert told["device.slot", "gpu-01", "SXM5"] == ("fail", "moved", None)
    assert told["device.health", "gpu-01", "SXM5"] == ("pass", "ok", None)


def test_cards_of_an_unread_bus_keep_their_findings_on_the_map():
    """No slot is proven, so there is no label; findings call the cards as the record of the host does."""
    observation = seen.healthy()
    observation["bus_count"] = None
    for card in observation["devices"]:
        recorded = {"label": card["slot"]["label"], "source": "record"}
        card["slot"] = {"label": None, "source": None, "candidates": [recorded]}
    outcome = conclude.conclude(
        "drill", RUN_ID, ["gpu-01"], EXPECTED, {"gpu-01": {"device": part("gpu-01", observation)}},
        {"gpu-01": DECLARED}, {"gpu-01": None}, now=NOW,
    )  # fmt: skip
    shown = outcome["run"]["hosts"][0]["slots"]
    assert {slot["label"]: slot["address"] for slot in shown} == dict(zip(SLOTS, seen.ADDRESSES))
    assert {(slot["verdict"], len(slot["checks"])) for slot in shown} == {("pass", 13)}


def with_its_record(observation, host, number=1):
    """Return an observation as the node tells it, which knows from its own record what sat where."""
    told = true_to_life(observation)
    recall.recall(told, baseline(host, seen.healthy(number)), host)
    return told


def spoken(outcome):
    """Return everything that a run says of cards in words, and the serials of its map by host and slot."""
    words = [one["message"] for one in outcome["run"]["findings"] if one["verdict"] != "pass"]
    places = {(h["host"], s["label"]): s["serial"] for h in outcome["run"]["hosts"] for s in h["slots"]}
    return " | ".join(words), places


def test_a_lost_card_is_not_called_by_the_name_of_one_that_answers_in_another_slot():
    """SXM5 and SXM6 were exchanged, then the card that came to SXM5 was lost: nobody may pull the other one."""
    observation = seen.swapped(seen.healthy(), 6, 5)
    outcome = cluster(gpu_01=with_its_record(seen.card_lost(observation), "gpu-01"))
    words, places = spoken(outcome)
    told = state(outcome)
    assert told["device.slot", "gpu-01", "SXM6"] == ("fail", "moved", None)
    assert (
        "serial 165040100006 was accepted in slot SXM5 and is now in slot SXM6; "
        "serial 165040100005, accepted here, was not found"
    ) in words
    (lost,) = [one for one in outcome["run"]["findings"] if one["hint"] == "device.count.lost"]
    assert "165040100006" not in lost["message"] and "0000:ba:00.0" in lost["message"]
    assert places["gpu-01", "SXM6"] == "165040100006"
    assert list(places.values()).count("165040100006") == 1


def test_a_lost_card_is_not_called_by_the_name_of_one_that_answers_on_another_host():
    """SXM5 of two hosts were exchanged, then the one in gpu-02 was lost."""
    first, second = seen.healthy(1), seen.healthy(2)
    for key in ("serial", "uuid"):
        first["devices"][6][key], second["devices"][6][key] = second["devices"][6][key], first["devices"][6][key]
    outcome = cluster(gpu_01=first, gpu_02=with_its_record(seen.card_lost(second), "gpu-02", 2))
    words, places = spoken(outcome)
    (lost,) = [one for one in outcome["run"]["findings"] if one["hint"] == "device.count.lost"]
    assert lost["host"] == "gpu-02" and "1650402" not in lost["message"]
    assert state(outcome)["device.slot", "gpu-01", "SXM5"] == ("fail", "moved", None)
    assert (
        "serial 165040200006 was accepted in gpu-02 slot SXM5 and is now in slot SXM5; "
        "serial 165040100006, accepted here, was not found"
    ) in words
    assert places["gpu-01", "SXM5"] == "165040200006"
    assert list(places.values()).count("165040200006") == 1


# ---------------------------------------------------------------------------------------------- what is missing


def test_a_host_that_said_nothing():
    outcome = cluster(gpu_02=None)
    assert [key for key in state(outcome) if key[1] == "gpu-02"] == [("host.reachable", "gpu-02", "gpu-02")]
    first = outcome["run"]["findings"][0]
    assert (first["hint"], first["severity"]) == ("host.reachable.unreachable", "critical")
    assert outcome["verdict"] == "unknown"
    host = outcome["run"]["hosts"][1]
    assert (host["host"], host["reachable"]) == ("gpu-02", False)
    # What was accepted there is known, how it is now is not.
    assert {slot["verdict"] for slot in host["slots"]} == {"unknown"} and len(host["slots"]) == 8
    assert outcome["lines"] == ["device: unknown (0 fail, 1 unknown, 0 warnings, 119 pass): gpu-02 host.reachable"]


def concluded(parts, part_errors=None, hosts=("gpu-01",), expected=None, **more):
    return conclude.conclude(
        site="drill",
        run_id=RUN_ID,
        hosts=list(hosts),
        expected=EXPECTED if expected is None else expected,
        parts=parts,
        declared={"gpu-01": DECLARED},
        baselines={"gpu-01": baseline("gpu-01", seen.healthy())},
        part_errors=part_errors,
        now=NOW,
        **more,
    )


def test_a_host_on_which_a_role_did_not_finish():
    half = conclude.merge_part(None, "gpu-01", "device", "baseline", [])
    outcome = concluded({"gpu-01": {"device": half}})
    assert state(outcome) == {("host.reachable", "gpu-01", "gpu-01"): ("unknown", "incomplete", None)}
    assert "no result of driver" in outcome["run"]["findings"][0]["message"]


def test_a_part_that_is_garbled_is_unknown_and_names_the_file():
    outcome = concluded({}, {"gpu-01": {"parts/gpu-01/device.json": "line 3 column 9: not valid JSON"}})
    assert state(outcome) == {("host.reachable", "gpu-01", "gpu-01"): ("unknown", "incomplete", None)}
    finding = outcome["run"]["findings"][0]
    assert "parts/gpu-01/device.json" in finding["message"] and "line 3" in finding["message"]
    assert "no result of baseline, driver" in finding["message"]
    assert finding["evidence"][0]["excerpt"] == "line 3 column 9: not valid JSON"


def test_a_role_that_crashed_says_so_itself():
    crash = judge.finding("host.reachable.crashed", "gpu-01", now=NOW, role="driver", detail="KeyError: 'devices'")
    made = conclude.merge_part(part("gpu-01", seen.healthy()), "gpu-01", "device", "driver", [crash])
    outcome = concluded({"gpu-01": {"device": made}})
    told = state(outcome)
    assert told["host.reachable", "gpu-01", "gpu-01"] == ("unknown", "crashed", None)
    assert "KeyError" in outcome["run"]["findings"][0]["message"]
    assert outcome["verdict"] == "unknown"


@pytest.mark.parametrize(("second", "words"), [("crashed", "role driver: Timed out"), ("missing", "result of driver")])
def test_two_roles_that_broke_are_one_finding(second, words):
    made = None
    for role in ("baseline", "driver") if second == "crashed" else ("baseline",):
        crash = judge.finding("host.reachable.crashed", "gpu-01", now=NOW, role=role, detail="Timed out")
        made = conclude.merge_part(made, "gpu-01", "device", role, [crash])
    found = concluded({"gpu-01": {"device": made}})["run"]["findings"]
    assert [(one["check"], one["hint"]) for one in found] == [("host.reachable", "host.reachable.crashed")]
    assert "role baseline: Timed out" in found[0]["message"] and words in found[0]["message"]


def test_nothing_at_all():
    outcome = concluded({}, hosts=[])
    assert outcome["verdict"] == "unknown"
    assert outcome["lines"] == ["device: unknown (nothing was judged)"]


def test_a_layer_that_was_expected_and_not_judged_keeps_the_run_from_passing():
    also = [*EXPECTED, {"role": "fabric", "layer": "network"}]
    made = {
        "device": part("gpu-01", seen.healthy()),
        "network": conclude.merge_part(None, "gpu-01", "network", "fabric", []),
    }
    outcome = concluded({"gpu-01": made}, expected=also)
    assert outcome["verdict"] == "unknown"
    assert outcome["lines"][1] == "network: unknown (nothing was judged)"


def test_a_part_of_a_host_that_nobody_named_is_judged_too():
    outcome = concluded({"gpu-01": {"device": part("gpu-01", seen.card_lost(seen.healthy()))}}, hosts=[])
    assert outcome["verdict"] == "fail"
    assert [host["host"] for host in outcome["run"]["hosts"]] == ["gpu-01"]


def test_an_observation_that_is_garbage_empties_no_slot():
    made = part("gpu-01", "\x00\x01")
    told = state(concluded({"gpu-01": {"device": made}}))
    assert told["device.slot", "gpu-01", "gpu-01"][:2] == ("unknown", "unknown")
    assert told["device.driver_version", "gpu-01", "gpu-01"][0] == "unknown"


def test_variables_that_could_not_be_read_are_unknown_for_that_host():
    outcome = concluded(
        {"gpu-01": {"device": part("gpu-01", seen.healthy())}}, declared_errors={"gpu-01": "'rack' is undefined"}
    )
    assert state(outcome)["device.driver_version", "gpu-01", "gpu-01"] == ("unknown", "unknown", None)


# ---------------------------------------------------------------------------------------------- order, counts, lines


def test_the_worst_comes_first_and_causes_come_before_consequences():
    sick = seen.card_lost(seen.healthy())
    sick["devices"][0]["health"] = {"state": "warning", "reasons": ["hot"]}
    sick["devices"][1]["link"].update(width=8)
    findings = cluster(gpu_01=sick, gpu_02=seen.card_hung(seen.healthy(2)))["run"]["findings"]
    order = [(f["verdict"], f["severity"], f["blocked_by"] is not None) for f in findings]
    assert list(dict.fromkeys(order)) == [
        ("fail", "critical", False),
        ("unknown", "critical", False),
        ("unknown", "critical", True),
        ("fail", "warning", False),
        ("pass", "critical", False),
    ]
    assert [(f["host"], f["subject"]) for f in findings[:3]] == [
        ("gpu-01", "gpu-01"), ("gpu-01", "SXM2"), ("gpu-02", "gpu-02")
    ]  # fmt: skip


def test_a_warning_is_counted_and_fails_nothing():
    hot = seen.healthy()
    hot["devices"][6]["health"] = {"state": "warning", "reasons": ["hot"]}
    outcome = cluster(gpu_01=hot)
    assert outcome["verdict"] == "pass"
    assert outcome["counts"]["warnings"] == 1 and outcome["counts"]["fail"] == 0
    assert outcome["lines"] == ["device: pass (0 fail, 0 unknown, 1 warnings, 237 pass)"]
    card = outcome["run"]["hosts"][0]["slots"][4]
    assert card["verdict"] == "pass"
    assert [c["check"] for c in card["checks"] if c["verdict"] == "fail"] == ["device.health"]


def test_a_line_names_only_the_first_causes():
    bad = seen.healthy()
    for card in bad["devices"]:
        card["link"]["width"] = 8
    line = cluster(gpu_01=bad)["lines"][0]
    assert line == (
        "device: fail (8 fail, 0 unknown, 0 warnings, 230 pass): gpu-01 SXM1 device.link_width, "
        "gpu-01 SXM2 device.link_width, gpu-01 SXM3 device.link_width, gpu-01 SXM4 device.link_width, "
        "gpu-01 SXM5 device.link_width, 3 more"
    )


def test_chinese():
    outcome = cluster(language="zh", gpu_01=true_to_life(seen.card_lost(seen.healthy())))
    assert outcome["lines"] == ["device：不通过（不通过 1，无法判定 14，警告 0，通过 223）：gpu-01 device.count"]
    first = outcome["run"]["findings"][0]
    assert first["title"] == "加速卡数量"
    assert (
        first["message"] == "8 张加速卡中有 7 张应答；在总线上但已掉卡：0000:ba:00.0（槽位 SXM5，序列号 165040100006）"
    )
    assert "排空节点" in first["hint_text"]


# ---------------------------------------------------------------------------------------------- parts


def test_two_roles_share_a_part_and_each_replaces_only_its_own():
    one = judge.finding("baseline.clock.ok", "gpu-01", now=NOW)
    two = judge.finding("device.driver.ok", "gpu-01", now=NOW, version="")
    made = conclude.merge_part(None, "gpu-01", "device", "baseline", [one], {"baseline": {"a": 1}})
    made = conclude.merge_part(made, "gpu-01", "device", "driver", [two], {"devices": {"count": 8}})
    assert made["roles"] == ["baseline", "driver"]
    worse = judge.finding("baseline.clock.unsynchronised", "gpu-01", now=NOW)
    made = conclude.merge_part(made, "gpu-01", "device", "baseline", [worse])
    assert sorted((f["role"], f["hint"]) for f in made["findings"]) == [
        ("baseline", "baseline.clock.unsynchronised"),
        ("driver", "device.driver.ok"),
    ]
    assert made["observed"] == {"baseline": {"a": 1}, "devices": {"count": 8}}
    assert conclude.part_problems(made) == []


GOOD = judge.finding("device.count.ok", "gpu-01", now=NOW, expected=8, observed=8)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"check": "device.colour"}, "no such check"),
        ({"verdict": "green"}, "verdict 'green'"),
        ({"severity": "bad"}, "severity 'bad'"),
        ({"layer": "roof"}, "layer 'roof'"),
        ({"hint": "device.count.odd"}, "no cause of this check"),
        ({"hint": "device.model.ok"}, "no cause of this check"),
        ({"host": None}, "host must be text"),
        ({"evidence": "text"}, "evidence must be a list"),
        ({"blocked_by": "the weather"}, "blocked_by"),
        ({"blocked_by": {}}, "blocked_by"),
        ({"at": {}}, "at must be text"),
        ({"observed": float("nan")}, "JSON"),
        ({"observed": {1, 2}}, "JSON"),
    ],
)
def test_a_finding_that_is_none_is_named(change, words):
    assert conclude.finding_problem(GOOD) is None
    problem = conclude.finding_problem({**GOOD, **change})
    assert words in problem and "'gpu-01'" in (problem if change != {"host": None} else "'gpu-01'")
    assert "an object" in conclude.finding_problem("device.count")


def test_a_part_that_is_none_is_named():
    good = conclude.merge_part(None, "gpu-01", "device", "driver", [GOOD])
    assert conclude.part_problems(good) == []
    assert conclude.part_problems({**good, "roles": "driver"}) == [(("roles",), "'roles' must be list")]
    bad = {**good, "findings": [GOOD, {**GOOD, "verdict": "green"}]}
    assert [where for where, sentence in conclude.part_problems(bad)] == [("findings", 1)]


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "a\\b", "a\nb", "a\x00", None, 5, "x" * 201])
def test_names_that_would_leave_the_reports(name):
    assert conclude.path_name_problem(name, "run_id")


@pytest.mark.parametrize("name", ["20261130T010203Z", "gpu-01.example.com", "fe80::1%eth0", "节点-1", "..a"])
def test_names_that_are_fine(name):
    assert conclude.path_name_problem(name, "host") is None


def stack_says(cause, subject, **more):
    """Return the state of a run in which gpu-01 hands over one finding on its driver stack besides its cards."""
    observation = seen.healthy(1)
    for device in observation["devices"]:
        device["driver_version"] = "550.1.1"
    for driver in observation["drivers"]:
        driver.update(kernel_version="550.1.1", library_version="550.1.1")
    declared = {**DECLARED, "cluster_driver_version": "570.86.15"}
    made = part("gpu-01", observation, declared=declared)
    found = judge.finding(f"device.driver_stack.{cause}", "gpu-01", subject, now=NOW, **more)
    made["findings"].append({**found, "role": "driver"})
    return conclude.conclude(
        site="drill", run_id=RUN_ID, hosts=["gpu-01"], expected=EXPECTED, parts={"gpu-01": {"device": made}},
        declared={"gpu-01": declared}, baselines={"gpu-01": baseline("gpu-01", seen.healthy(1))}, now=NOW,
    )  # fmt: skip


def test_the_stack_speaks_for_a_version_that_it_has_judged():
    outcome = stack_says("module_off_pin", "module", expected="570.86.15", observed="550.1.1", brought="")
    told = state(outcome)
    assert told["device.driver_version", "gpu-01", "gpu-01"] == ("unknown", "follows", "device.driver_stack")
    first = outcome["run"]["findings"][0]
    assert (first["check"], first["verdict"]) == ("device.driver_stack", "fail")


def test_the_stack_does_not_speak_for_what_it_did_not_judge():
    told = state(stack_says("missing", "packages", expected=["a"], names="a"))
    assert told["device.driver_version", "gpu-01", "gpu-01"] == ("fail", "differs", None)


def files_say(cause, *stack):
    """Conclude one host whose device files say one thing and whose driver stack others."""
    made = part("gpu-01", seen.healthy(1))
    found = [judge.finding(f"container.cdi.{cause}", "gpu-01", now=NOW, detail="x", kind="nvidia.com/gpu")]
    values = {"expected": "1.2", "observed": "1.1", "brought": "", "names": "a"}
    found += [
        judge.finding(f"device.driver_stack.{one}", "gpu-01", subject, now=NOW, **values) for one, subject in stack
    ]
    made["findings"] += [{**one, "role": "driver"} for one in found]
    outcome = conclude.conclude(
        site="drill", run_id=RUN_ID, hosts=["gpu-01"], expected=EXPECTED, parts={"gpu-01": {"device": made}},
        declared={"gpu-01": DECLARED}, baselines={"gpu-01": baseline("gpu-01", seen.healthy(1))}, now=NOW,
    )  # fmt: skip
    return {(check, subject): told for (check, _host, subject), told in state(outcome).items()}


@pytest.mark.parametrize("cause", ["driver_version", "missing_library"])
def test_a_stale_device_file_is_one_finding(cause):
    told = files_say(cause, ("cdi_stale", "device_file"))
    assert told["container.cdi", "gpu-01"] == ("fail", cause, None)
    assert told["device.driver_stack", "device_file"] == ("unknown", "follows", "container.cdi")


@pytest.mark.parametrize(
    "stack", [("library_mismatch", "library"), ("reboot_needed", "module"), ("off_pin", "packages")]
)
@pytest.mark.parametrize("cause", ["driver_version", "missing_library"])
def test_a_driver_that_is_not_of_one_piece_explains_a_stale_device_file(cause, stack):
    told = files_say(cause, stack)
    assert told["container.cdi", "gpu-01"] == ("unknown", "follows", "device.driver_stack")


def test_a_device_file_that_is_broken_is_not_explained_by_the_driver():
    told = files_say("broken", ("library_mismatch", "library"), ("cdi_stale", "device_file"))
    assert told["container.cdi", "gpu-01"] == ("fail", "broken", None)
    assert told["device.driver_stack", "device_file"] == ("fail", "cdi_stale", None)


@pytest.mark.parametrize("cause", ["replaced", "renumbered", "lacking"])
def test_a_card_that_moved_explains_a_device_file_that_gives_another(cause):
    made = part("gpu-01", seen.healthy(2))
    found = judge.finding(f"container.cdi.{cause}", "gpu-01", now=NOW, detail="x", kind="nvidia.com/gpu")
    made["findings"].append({**found, "role": "container"})
    accepted = baseline("gpu-01", seen.healthy(2))
    for spot in accepted["slots"].values():
        spot[0]["serial"] = "another"
    for record, expected in ((accepted, ("unknown", "moved", "device.slot")), (None, ("fail", cause, None))):
        outcome = conclude.conclude(
            site="drill", run_id=RUN_ID, hosts=["gpu-01"], expected=EXPECTED, parts={"gpu-01": {"device": made}},
            declared={"gpu-01": DECLARED}, baselines={"gpu-01": record or baseline("gpu-01", seen.healthy(2))}, now=NOW,
        )  # fmt: skip
        assert state(outcome)["container.cdi", "gpu-01", "gpu-01"] == expected


def nodes_of_registry(says, *, own_host, subject="reg-01:5000"):
    """Conclude a registry's own host and a node that asks it; return what is left of the node's finding."""
    made = {"gpu-01": part("gpu-01", seen.healthy(1)), "reg-01": {**part("reg-01", seen.healthy(1)), "observed": {}}}
    told = judge.finding(f"container.registry.{says}", "gpu-01", "reg-01:5000", now=NOW, detail="x")
    own = judge.finding(f"registry.service.{own_host}", "reg-01", subject, now=NOW, detail="x")
    made["gpu-01"]["findings"].append({**told, "role": "container"})
    made["reg-01"]["findings"] = [{**own, "role": "registry"}]
    outcome = conclude.conclude(
        site="drill", run_id=RUN_ID, hosts=["gpu-01", "reg-01"], expected=EXPECTED,
        parts={host: {"device": one} for host, one in made.items()}, declared={"gpu-01": DECLARED, "reg-01": {}},
        baselines={"gpu-01": baseline("gpu-01", seen.healthy(1))}, now=NOW,
    )  # fmt: skip
    found = state(outcome)
    assert found["registry.service", "reg-01", subject][1] == own_host
    return found["container.registry", "gpu-01", "reg-01:5000"]


@pytest.mark.parametrize(
    ("own_host", "says"),
    [("down", "unreachable"), ("down", "error"), ("certificate", "expired"), ("certificate", "name_mismatch")],
)
def test_what_is_wrong_with_a_registry_is_told_by_its_own_host(own_host, says):
    assert nodes_of_registry(says, own_host=own_host) == ("unknown", "follows", "registry.service")


@pytest.mark.parametrize(
    ("own_host", "says", "subject"),
    [
        ("ok", "unreachable", "reg-01:5000"),  # the network of this node
        ("certificate", "ca_foreign", "reg-01:5000"),  # the trust of this node
        ("down", "login", "reg-01:5000"),  # its account
        ("down", "unreachable", "reg-02:5000"),  # another registry
        ("ok", "expired", "reg-01:5000"),  # the clock of this node
    ],
)
def test_what_only_a_node_finds_of_a_registry_stays_with_the_node(own_host, says, subject):
    assert nodes_of_registry(says, own_host=own_host, subject=subject) == ("fail", says, None)
