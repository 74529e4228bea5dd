# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One fact is one finding: what one check says, the others leave to it. Each cause alone is in test_judge.py."""

from __future__ import annotations

import observations as seen
import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import hints, judge, shown
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import THROTTLES
from observations import NOW
from test_judge import PARTITIONS, PARTS, altered, devices, links, one, pcie_only, state, turned


def bad(observation, declared=None, subject="SXM5"):
    """Return {check: (verdict, cause, blocked_by)} of what is not as on a healthy host."""
    changed = turned(devices(seen.healthy(), declared), devices(observation, declared))
    assert {about for _check, about in changed} <= {subject}, changed
    return {check: told for (check, _about), told in changed.items()}


def logged(*events, observation=None):
    return {**(observation or seen.healthy()), "kernel_events": list(events)}


# ---------------------------------------------------------------------------------------------- partitions


def split(**more):
    """Return a host of which one card is split in two, and what else is not as it was."""
    observation = altered("partition_mode", "MIG")
    observation["devices"][6].update(logical=PARTS, **more)
    return observation


def test_a_card_that_is_split_says_so_once_and_its_links_follow():
    assert bad(split(ports=[])) == {
        "device.partition": ("fail", "split", None),
        "device.ports": ("unknown", "blocked", "device.partition"),
    }
    told = one(devices(split()), "device.partition", "SXM5")
    assert told["message"].endswith("is split, MIG (2 partitions); whole cards are declared")
    assert told["evidence"][0]["excerpt"] == "mig 0 3g.40gb MIG-0\nmig 1 3g.40gb MIG-1"


def test_the_memory_of_a_part_is_no_second_fault():
    assert bad(split(memory_bytes=40 << 30)) == {
        "device.partition": ("fail", "split", None),
        "device.memory": ("unknown", "blocked", "device.partition"),
    }
    # Nor is there a reason to look away where the card is whole.
    assert bad(altered("memory_bytes", 40 << 30)) == {"device.memory": ("fail", "small", None)}


def test_partitions_that_are_declared_are_no_fault():
    declared = {PARTITIONS: "2"}
    told = state(devices(split(), declared))
    assert told["device.partition", "SXM5"] == ("pass", "ok", None)
    assert told["device.partition", "SXM6"] == ("fail", "whole", None)
    assert told["device.ports", "SXM5"] == ("pass", "ok", None)
    # With MIG there are no links to tell of.
    told = state(devices(split(ports=[]), declared))
    assert told["device.ports", "SXM5"] == ("not_applicable", "split", None)
    assert told["device.count", "gpu-01"] == ("pass", "ok", None)


def test_partitions_that_do_not_matter_are_not_judged():
    told = state(devices(split(), {PARTITIONS: 0}))
    assert {value for key, value in told.items() if key[0] == "device.partition"} == {
        ("not_applicable", "not_judged", None)
    }


def test_two_chips_on_one_function_are_no_partitions():
    chips = [{"kind": "chip", "index": number, "id": number, "uuid": None} for number in range(2)]
    assert bad(altered("logical", chips)) == {}


@pytest.mark.parametrize("mode", ["whole", "not_splittable"])
def test_a_whole_card_passes_and_one_that_tells_nothing_does_not(mode):
    assert state(devices(altered("partition_mode", mode)))["device.partition", "SXM5"] == ("pass", "ok", None)
    assert bad(altered("partition_mode", None)) == {"device.partition": ("unknown", "unknown", None)}


# ---------------------------------------------------------------------------------------------- memory


def test_errors_that_a_repair_waits_for_are_said_as_the_repair():
    observation = altered("repair.state", "reset")
    observation["devices"][6]["ecc"]["uncorrected_volatile"] = 1
    observation = logged(seen.event("xid 48"), seen.event("xid 63"), seen.event("xid 94"), observation=observation)
    assert bad(observation) == {
        "device.memory_repair": ("fail", "reset", None),
        "device.ecc": ("unknown", "blocked", "device.memory_repair"),
        "device.kernel_log": ("unknown", "blocked", "device.memory_repair"),
    }
    found = devices(observation)
    assert [f["check"] for f in found if (f["verdict"], f["severity"]) == ("fail", "critical")] == [
        "device.memory_repair"
    ]
    assert "xid 48, xid 63, xid 94" in one(found, "device.kernel_log", "SXM5")["message"]


def test_rows_that_were_remapped_earlier_are_history():
    told = one(devices(altered("repair.remapped_rows", 3)), "device.memory_repair", "SXM5")
    assert (told["verdict"], told["observed"]) == ("pass", 3)
    assert told["message"].endswith("is due; 3 rows or pages were repaired earlier")


def test_the_card_to_replace_is_named_with_slot_and_serial():
    told = one(devices(altered("ecc.sram_uncorrected_aggregate", 6)), "device.memory_repair", "SXM5")
    assert told["message"] == (
        "replace 0000:ba:00.0 (slot SXM5, serial 165040100006): aggregate SRAM uncorrectable 6 > 4"
    )


def test_a_product_without_repair_neither_fails_nor_passes():
    told = state(devices(pcie_only(ports=[])))
    for check in ("device.memory_repair", "device.ecc"):
        assert {value for (name, _s), value in told.items() if name == check} == {
            ("not_applicable", "not_supported", None)
        }


@pytest.mark.parametrize("count", [0, 3, 4])
def test_errors_up_to_the_limit_replace_nothing(count):
    assert bad(altered("ecc.sram_uncorrected_aggregate", count)) == {}
    assert bad(altered("ecc.corrected_volatile", 1000)) == {}


# ---------------------------------------------------------------------------------------------- heat and clocks


@pytest.mark.parametrize("limit", [0.0, -273.0])
def test_a_limit_that_is_none_makes_no_card_hot(limit):
    """A threshold that was never set is printed as 0 by some tools."""
    assert bad(altered("readings.temperature_limit_c", limit)) == {"device.temperature": ("unknown", "unknown", None)}


def test_heat_is_said_once():
    observation = altered("readings.temperature_c", 88.0)
    observation["devices"][6]["readings"]["throttles"] = ["thermal"]
    assert bad(observation) == {
        "device.temperature": ("fail", "hot", None),
        "device.throttle": ("unknown", "blocked", "device.temperature"),
    }
    assert bad(altered("readings.temperature_c", 81.9)) == {}


def test_what_follows_from_a_warning_is_no_more_than_a_warning():
    observation = altered("readings.temperature_c", 88.0)
    observation["devices"][6]["readings"]["throttles"] = ["thermal"]
    found = devices(observation)
    assert one(found, "device.throttle", "SXM5")["severity"] == "warning"
    assert (judge.verdict(found), shown.exit_status(found)) == ("pass", shown.EXIT_WARNING)
    # What follows from a fault stays one.
    observation = altered("repair.state", "reset")
    observation["devices"][6]["ecc"]["uncorrected_volatile"] = 2
    found = devices(observation)
    assert one(found, "device.ecc", "SXM5")["severity"] == "critical"


def test_a_power_brake_is_said_besides_the_heat():
    observation = altered("readings.temperature_c", 88.0)
    observation["devices"][6]["readings"]["throttles"] = ["thermal", "power_brake"]
    assert bad(observation)["device.throttle"] == ("fail", "hardware", None)


@pytest.mark.parametrize("word", ["idle", "application_clocks", "display", "sync_boost", "power_cap"])
def test_what_is_allowed_by_default_is_no_fault(word):
    assert bad(altered("readings.throttles", [word])) == {}


def test_a_site_may_allow_everything_and_nothing():
    assert bad(altered("readings.throttles", list(THROTTLES)), {"cluster_throttles_allowed": list(THROTTLES)}) == {}
    found = devices(altered("readings.throttles", ["idle"]), {"cluster_throttles_allowed": []})
    assert one(found, "device.throttle", "SXM5")["hint"] == "device.throttle.slowed"


# ---------------------------------------------------------------------------------------------- links


def test_links_that_are_down_are_named():
    told = one(devices(altered("ports", links(down=[3, 11]))), "device.ports", "SXM5")
    assert "16 of 18 links" in told["message"]
    assert told["message"].endswith("down: nvlink 3 down, nvlink 11 down")


def test_links_of_boards_without_a_bridge_are_no_fault():
    found = devices(pcie_only(ports=links(down=range(18))))
    assert {f["hint"] for f in found if f["check"] == "device.ports"} == {"device.ports.unused"}
    found = devices(pcie_only(ports=[]))
    assert {f["hint"] for f in found if f["check"] == "device.ports"} == {"device.ports.none"}


def test_links_that_were_asked_for_and_not_told_are_not_none():
    found = devices(pcie_only(ports=[], ports_told=False))
    assert {f["hint"] for f in found if f["check"] == "device.ports"} == {"device.ports.unknown"}


def all_cards(ports):
    observation = seen.healthy()
    for card in observation["devices"]:
        card["ports"] = [dict(port) for port in ports]
    return observation


def test_links_that_nobody_can_read_are_not_unused():
    told = [{**link, "state": "unknown", "speed_gbps": None} for link in links(down=())]
    found = devices(pcie_only(ports=told))
    assert {f["hint"] for f in found if f["check"] == "device.ports"} == {"device.ports.unknown"}


def test_links_that_are_down_on_all_boards_in_sockets_are_a_fault():
    found = devices(all_cards(links(down=range(18))))
    assert {f["hint"] for f in found if f["check"] == "device.ports"} == {"device.ports.down"}


def test_a_link_that_leads_nowhere_on_any_card_is_by_design():
    found = devices(all_cards(links(down=[17])))
    assert {f["hint"] for f in found if f["check"] == "device.ports"} == {"device.ports.ok"}


def test_two_cards_can_both_have_lost_the_link_between_them():
    observation = all_cards(links(down=[17]))
    observation["devices"] = observation["devices"][5:7]
    observation.update(count=2, bus_count=2)
    found = devices(observation, {"cluster_accelerator_count": 2})
    assert {f["hint"] for f in found if f["check"] == "device.ports"} == {"device.ports.down"}


def test_a_link_error_in_the_log_of_a_link_that_is_down_is_said_once():
    observation = logged(seen.event("xid 74"), observation=altered("ports", links(down=[3])))
    assert bad(observation) == {
        "device.ports": ("fail", "down", None),
        "device.kernel_log": ("unknown", "blocked", "device.ports"),
    }
    assert bad(logged(seen.event("xid 74"))) == {"device.kernel_log": ("fail", "reset", None)}


# ---------------------------------------------------------------------------------------------- kernel log


@pytest.mark.parametrize(
    ("code", "message", "cause"),
    [
        ("xid 13", "", None),
        ("xid 31", "", None),
        ("xid 43", "", None),
        ("xid 45", "", None),
        ("xid 32", "", "watch"),
        ("xid 999", "", "watch"),  # nobody may drop what he does not know
        ("xid 48", "", "reset"),
        ("xid 62", "", "reset"),
        ("xid 79", "", "reset"),
        ("xid 119", "", "reset"),
        ("xid 64", "", "replace"),
        ("xid 145", "RLW_REMAP Nonfatal XC0 i0 Link 09", "watch"),
        ("xid 145", "RLW_REMAP Fatal XC0 i0 Link 09", "reset"),
        ("xid 154", "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", "reset"),
        ("xid 154", "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", None),
        ("ras uncorrectable", "", "reset"),
        ("ras threshold", "", "replace"),
        ("ras correctable", "", None),
        ("ring timeout", "", "watch"),
        ("ascend 0x80e01801", "", "reset"),
        ("ascend 0x80e18402", "", "replace"),
        # The vendor's own list: no handling, start the job anew, reset, isolate; a code that is not in it is watched.
        ("ascend 0x80e21007", "", None),
        ("ascend 0x80cb8009", "", "watch"),
        ("ascend 0x8c03a000", "", "reset"),
        ("ascend 0x80e3a201", "", "replace"),
        ("ascend 0xa2301001", "", "replace"),  # listed twice: the worse counts
        ("ascend 0x8fffffff", "", "watch"),
        ("aer corrected", "", "watch"),
        ("aer fatal", "", "reset"),
    ],
)
def test_what_a_code_asks_for(code, message, cause):
    expected = {"device.kernel_log": ("fail", cause, None)} if cause else {}
    assert bad(logged(seen.event(code, message))) == expected
    if cause:
        told = one(devices(logged(seen.event(code, message))), "device.kernel_log", "SXM5")
        assert code in told["message"] and told["severity"] == ("warning" if cause == "watch" else "critical")
        assert told["evidence"][0]["command"] == "journalctl -k -b"


def coded(state, *codes, **more):
    """Return a host of which SXM5 tells fault codes, as an Ascend tool does."""
    observation = altered("health.state", state)
    says = [f"NPU 6 chip 0 says {state}: {code.partition(' ')[2]} (words)" for code in codes]
    observation["devices"][6]["health"].update(reasons=says + more.pop("others", []), codes=list(codes))
    observation["devices"][6]["ecc"].update(more)
    return observation


ECC_CODE, ISOLATED, RESET, GONE = "ascend 0x80e01801", "ascend 0x80e18401", "ascend 0x8c03a000", "ascend 0x80e3a201"


@pytest.mark.parametrize(
    ("observation", "declared", "told"),
    [
        # What the code asks for is worse, or not, than the word that the tool has for it.
        (coded("warning", RESET), {}, ("fail", "critical", None)),
        (coded("warning", GONE), {}, ("fail", "replace", None)),
        (coded("warning", RESET, GONE), {}, ("fail", "replace", None)),
        (coded("ok", "ascend 0x80cb8009"), {}, ("fail", "warning", None)),
        (coded("critical", "ascend 0x8fffffff"), {}, ("fail", "critical", None)),
        (coded("unknown", "ascend 0x8fffffff"), {}, ("unknown", "unknown", None)),
        # That the vendor does nothing about a code does not make a card that warns a healthy one; a site may say so.
        (coded("warning", ISOLATED), {}, ("fail", "warning", None)),
        (coded("ok", ISOLATED), {}, None),
        (coded("warning", RESET), {RESET: "ignore"}, None),
        (coded("warning", RESET, GONE), {RESET: "ignore"}, ("fail", "replace", None)),
        (coded("warning", RESET), {RESET: "watch"}, ("fail", "warning", None)),
        # Nor does it hide what else is wrong.
        (coded("warning", RESET, others=["compatibility is NOK"]), {RESET: "ignore"}, ("fail", "warning", None)),
        (coded("critical"), {}, ("fail", "critical", None)),
    ],
)
def test_a_fault_code_of_the_tool_is_judged_as_one_of_the_kernel_log(observation, declared, told):
    expected = {"device.health": told} if told else {}
    assert bad(observation, {"cluster_kernel_event_actions": declared}) == expected


def test_a_fault_code_that_the_counters_show_is_theirs():
    assert bad(coded("critical", ECC_CODE, uncorrected_volatile=1)) == {
        "device.ecc": ("fail", "uncorrected", None),
        "device.health": ("unknown", "blocked", "device.ecc"),
    }
    # It is the same error, so what the vendor does nothing about adds nothing.
    assert bad(coded("critical", ECC_CODE, "ascend 0x80e21007", uncorrected_volatile=1))["device.health"] == (
        "unknown",
        "blocked",
        "device.ecc",
    )
    # Without a counter that shows it, it is a finding of the health.
    assert bad(coded("critical", ECC_CODE)) == {"device.health": ("fail", "critical", None)}
    for more in (coded("critical", ECC_CODE, RESET, uncorrected_volatile=1),
                 coded("critical", ECC_CODE, others=["compatibility is NOK"], uncorrected_volatile=1)):  # fmt: skip
        assert bad(more) == {
            "device.ecc": ("fail", "uncorrected", None),
            "device.health": ("fail", "critical", None),
        }


@pytest.mark.parametrize(("code", "cause"), [("xid 48", "reset"), ("xid 64", "replace")])
def test_a_warning_hides_no_fault_of_the_memory(code, cause):
    """Many corrected errors are a warning; that the repair failed or an error was not corrected is a fault."""
    observation = altered("ecc.corrected_volatile", 5000)
    assert bad(logged(seen.event(code), observation=observation)) == {
        "device.ecc": ("fail", "corrected", None),
        "device.kernel_log": ("fail", cause, None),
    }
    # A warning says what is no more than a warning.
    assert bad(logged(seen.event("xid 92"), observation=observation)) == {
        "device.ecc": ("fail", "corrected", None),
        "device.kernel_log": ("unknown", "blocked", "device.ecc"),
    }


def test_a_warning_hides_no_fault_code_of_the_tool():
    observation = altered("ecc.corrected_volatile", 5000)
    reasons = ["NPU 6 chip 0 says Alarm: 0x80e18402"]
    observation["devices"][6]["health"] = {"state": "critical", "reasons": reasons, "codes": ["ascend 0x80e18402"]}
    assert bad(observation) == {
        "device.ecc": ("fail", "corrected", None),
        "device.health": ("fail", "replace", None),
    }


def test_a_code_that_tool_and_kernel_tell_is_said_once():
    observation = logged(seen.event(RESET), observation=coded("warning", RESET))
    assert bad(observation) == {
        "device.health": ("fail", "critical", None),
        "device.kernel_log": ("unknown", "blocked", "device.health"),
    }
    observation = logged(seen.event(RESET), seen.event(GONE), observation=coded("warning", RESET))
    assert bad(observation)["device.kernel_log"] == ("fail", "replace", None)


@pytest.mark.parametrize("codes", ["ascend 0x8c03a000", None, {"a": 1}])
def test_codes_of_another_type_are_none(codes):
    observation = seen.healthy()
    observation["devices"][6]["health"]["codes"] = codes
    assert bad(observation) == {}


def test_the_worst_wins_and_comes_first():
    found = devices(logged(seen.event("xid 32"), seen.event("xid 62", count=3), seen.event("xid 64")))
    told = one(found, "device.kernel_log", "SXM5")
    assert told["hint"] == "device.kernel_log.replace"
    assert told["observed"] == (
        "xid 64 (memory repair failed); xid 62 (internal micro-controller halt) x3; "
        "xid 32 (invalid or corrupted push buffer stream)"
    )


def test_what_follows_from_another_event_is_not_counted_again():
    events = [seen.event("xid 32"), seen.event("xid 154", "to 0x1 (GPU Reset Required)", cause="xid 32")]
    told = one(devices(logged(*events)), "device.kernel_log", "SXM5")
    assert told["hint"] == "device.kernel_log.watch"
    assert "[follows from xid 32]" in told["evidence"][0]["excerpt"]


def test_a_site_knows_better():
    events = logged(seen.event("xid 62"), seen.event("xid 13"))
    assert bad(events, {"cluster_kernel_event_actions": {"xid 62": "ignore"}}) == {}
    found = devices(events, {"cluster_kernel_event_actions": {"xid 13": "replace"}})
    assert one(found, "device.kernel_log", "SXM5")["hint"] == "device.kernel_log.replace"


@pytest.mark.parametrize(
    "table", ["ignore", ["xid 62"], {"xid 62": "explode"}, {"xid 62": None}, {"Xid 62": "ignore"}, {62: "ignore"}]
)
def test_a_table_that_can_not_be_used_is_no_pass(table):
    found = devices(logged(seen.event("xid 62")), {"cluster_kernel_event_actions": table})
    log = [f for f in found if f["check"] == "device.kernel_log"]
    assert [(f["subject"], f["verdict"], f["severity"]) for f in log] == [("gpu-01", "unknown", "critical")]
    assert judge.verdict(found) == "unknown"


@pytest.mark.parametrize("log", [None, {}, {"state": "unknown", "reason": "denied"}, {"state": "not_gathered"}, "ok"])
def test_a_log_that_was_not_read_is_no_pass(log):
    found = devices({**seen.healthy(), "kernel_log": log})
    assert [(f["subject"], f["hint"]) for f in found if f["check"] == "device.kernel_log"] == [
        ("gpu-01", "device.kernel_log.unknown")
    ]
    assert judge.verdict(found) == "unknown"


def test_a_container_has_no_kernel_log():
    found = devices({**seen.healthy(), "kernel_log": {"state": "shared", "source": None, "reason": "container"}})
    log = [f for f in found if f["check"] == "device.kernel_log"]
    assert [(f["subject"], f["verdict"]) for f in log] == [("gpu-01", "not_applicable")]
    assert log[0]["message"].startswith("shared kernel")
    assert judge.verdict(found) == "pass"


@pytest.mark.parametrize("address", [None, "0000:05:00.0"])
def test_an_event_of_no_card_here_is_the_host_s(address):
    event = seen.event("sxid 20034", "SXid (PCI:0000:05:00.0): 20034, Fatal, Link 63 LTSSM Fault Up", None)
    event["pci_address"] = address
    assert bad(logged(event), subject="gpu-01") == {"device.kernel_log": ("fail", "reset", None)}


def test_errors_of_other_pci_devices_are_not_judged_here():
    event = seen.event("aer fatal", number=None, vendor="pci")
    event["pci_address"] = "0000:41:00.0"
    assert bad(logged(event)) == {}


def test_another_function_of_the_card_is_the_card():
    event = seen.event("aer fatal", vendor="pci")
    event["pci_address"] = "0000:ba:00.1"
    assert bad(logged(event)) == {"device.kernel_log": ("fail", "reset", None)}


def test_what_the_kernel_said_when_the_card_was_lost_is_its_evidence():
    words = "NVRM: Xid (PCI:0000:ba:00): 79, GPU has fallen off the bus."
    found = devices(logged(seen.event("xid 79", words), observation=seen.card_lost(seen.healthy())))
    assert [f["check"] for f in found if f["verdict"] == "fail"] == ["device.count"]
    assert any(words in piece["excerpt"] for piece in one(found, "device.count")["evidence"])
    log = one(found, "device.kernel_log", "SXM5")
    assert (log["verdict"], log["blocked_by"]) == ("unknown", "device.count")
    assert "xid 79" in log["message"]


# ---------------------------------------------------------------------------------------------- who holds the card


def held(*processes):
    return altered("processes", [{"pid": 4711, "name": name, "memory_bytes": None} for name in processes])


def test_daemons_that_only_watch_cards_hold_none():
    assert bad(held("nvidia-persiste", "/usr/bin/nvidia-persistenced", "nv-hostengine")) == {}
    assert bad(held("nv-hostengine", "python3")) == {"device.processes": ("fail", "held", None)}
    assert bad(held(None)) == {"device.processes": ("fail", "held", None)}


def test_a_holder_is_named():
    told = one(devices(held("python3")), "device.processes", "SXM5")
    assert told["message"].endswith("should be free and is held by python3 (pid 4711)")


@pytest.mark.parametrize("allowed", [True, "true", "yes", None, ""])
def test_processes_are_no_fault_unless_somebody_says_so(allowed):
    found = devices(held("python3"), {"cluster_processes_allowed": allowed})
    assert {f["hint"] for f in found if f["check"] == "device.processes"} == {"device.processes.allowed"}


def test_a_card_whose_node_nobody_knows_is_not_free():
    assert bad(altered("device_nodes", [])) == {"device.processes": ("unknown", "no_node", None)}


@pytest.mark.parametrize("complete", [False, None])
def test_an_incomplete_look_at_processes_is_no_pass(complete):
    found = devices({**seen.healthy(), "holders_complete": complete})
    assert {f["hint"] for f in found if f["check"] == "device.processes"} == {"device.processes.unknown"}


def test_every_blocked_finding_names_a_check_that_failed_or_was_unknown_itself():
    observation = logged(seen.event("xid 48"), observation=altered("repair.state", "reset"))
    found = devices(observation)
    for told in found:
        if told["blocked_by"]:
            cause = one(found, told["blocked_by"], told["subject"])
            assert cause["verdict"] == "fail" and hints.check_of(cause["hint"]) == told["blocked_by"]
    assert {f["at"] for f in found} == {NOW}
