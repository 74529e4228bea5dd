# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report as text: what it says, that hostile text stays text, and that its JUnit file is one."""

from __future__ import annotations

import base64
import hashlib
import re
import string
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest
from ansible_collections.accel.cluster.plugins.plugin_utils import report

ROOT = Path(__file__).resolve().parents[4]
sys.path.insert(0, str(ROOT / "tests/browser"))
import report_runs  # noqa: E402  (the runs are shared with the tests in a browser)

TEMPLATE = str(ROOT / "roles/acceptance/templates/report.html.j2")
VOID = {"meta", "input", "link", "br", "hr", "img"}


class Element:
    """An element of a page: ``text`` is all text in it."""

    def __init__(self, tag: str, attributes: dict, parent: Element | None) -> None:
        self.tag, self.attributes, self.parent = tag, attributes, parent
        self.pieces: list[str] = []

    @property
    def classes(self) -> list[str]:
        return (self.attributes.get("class") or "").split()

    @property
    def text(self) -> str:
        return " ".join("".join(self.pieces).split())


class Page(HTMLParser):
    """Parses strictly: a tag that closes another than the last open one is an error."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self.open: list[Element] = []
        self.feed(html)
        self.close()
        assert not self.open, f"not closed: {[element.tag for element in self.open]}"

    def handle_starttag(self, tag, attrs):
        element = Element(tag, dict(attrs), self.open[-1] if self.open else None)
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}> in line {self.getpos()[0]}"
        self.open.pop()

    def handle_data(self, data):
        for element in self.open:
            element.pieces.append(data)

    def of(self, *classes: str, tag: str | None = None) -> list[Element]:
        return [
            element
            for element in self.elements
            if all(name in element.classes for name in classes) and tag in (None, element.tag)
        ]

    def id(self, name: str) -> Element:
        (element,) = [element for element in self.elements if element.attributes.get("id") == name]
        return element

    def within(self, outer: Element) -> list[Element]:
        found = []
        for element in self.elements:
            above = element.parent
            while above is not None and above is not outer:
                above = above.parent
            if above is outer:
                found.append(element)
        return found


def page(run: dict, language: str = "en") -> Page:
    return Page(report.render(run, TEMPLATE, language))


def one_host(*findings: dict) -> dict:
    """Return a run of the host n1 with just these findings."""
    builder = report_runs.Builder()
    for finding in findings:
        builder.add(finding.pop("check"), finding.pop("host", "n1"), finding.pop("subject", "n1"), **finding)
    builder.hosts.append({"host": "n1", "node_type": "", "vendor": "", "reachable": True, "slots": []})
    return builder.run("fail")


# -- words


def test_both_languages_have_the_same_words_with_the_same_holes():
    english, chinese = report.TEXT["en"], report.TEXT["zh"]
    assert set(english) == set(chinese)
    for key in english:
        holes = [
            {name for form in words[key].split("|") for dummy, name, *rest in string.Formatter().parse(form) if name}
            for words in (english, chinese)
        ]
        assert holes[0] == holes[1], key
        assert english[key].strip() and chinese[key].strip(), key


def test_no_word_is_left_over():
    used = Path(TEMPLATE).read_text() + Path(report.__file__).read_text()
    states = [*report.STATES, *report.LAYERS, "nothing", "other", "pass_warnings"]
    built = {f"{prefix}_{state}" for prefix in ("count", "section", "layer", "why") for state in states}
    for key in set(report.TEXT["en"]) - built - set(report.STATES):
        assert re.search(rf't\.{key}\b|say\("{key}"|words\["{key}"\]|TEXT\["en"\]\["{key}"\]', used), key


def test_the_chinese_page_has_no_english_words_of_ours():
    chinese = page(report_runs.sick("zh"), "zh")
    assert chinese.elements[0].attributes["lang"] == "zh-CN"
    text = chinese.elements[0].text
    for word in ("Expected", "Observed", "What to do", "Evidence", "Passed", "Findings", "Layers", "hosts", "more"):
        assert word not in text.split(), word
    assert "229 项检查中有 2 项不通过，涉及 5 台主机中的 2 台。" in text


# -- the head


@pytest.mark.parametrize(
    ("run", "language", "verdict", "why"),
    [
        (report_runs.sick(), "en", "Fail", "2 of 229 checks failed on 2 of 5 hosts."),
        (report_runs.healthy(), "en", "Pass", "All 114 checks passed on 2 hosts."),
        (report_runs.healthy("zh"), "zh", "通过", "2 台主机上的 114 项检查全部通过。"),
        (report_runs.empty(), "en", "Unknown", "Nothing was checked."),
        (report_runs.healthy(), "fr", "Pass", "All 114 checks passed on 2 hosts."),
    ],
)
def test_the_verdict_and_its_reason(run, language, verdict, why):
    shown = page(run, language)
    assert shown.id("verdict").text == verdict
    assert shown.id("why").text == why


def test_one_of_one_is_said_in_the_singular():
    run = one_host({"check": "device.query", "verdict": "fail", "cause": "failed"})
    assert page(run).id("why").text == "1 of 1 check failed on 1 of 1 host."


def test_unknown_says_that_nothing_critical_failed():
    builder = report_runs.Builder()
    builder.host("gpu-01", "h100_sxm")
    builder.dead_host("gpu-02", "h100_sxm")
    shown = page(builder.run("unknown"))
    assert shown.id("verdict").text == "Unknown"
    assert shown.id("why").text == ("1 of 58 checks could not be judged on 1 of 2 hosts; no critical check failed.")


def test_a_pass_tells_its_warnings():
    builder = report_runs.Builder()
    builder.host("gpu-01", "h100_sxm")
    assert page(builder.run("pass")).id("why").text == (
        "No critical check failed: 49 of 57 checks passed on 1 host, 8 warnings."
    )


def test_a_verdict_without_a_finding_of_its_kind_does_not_invent_a_number():
    run = report_runs.healthy()
    run["verdict"] = "fail"
    assert page(run).id("why").text == "The verdict was given for a reason that no single finding shows."


def test_a_verdict_nobody_knows_is_unknown():
    run = report_runs.healthy()
    run["verdict"] = "excellent"
    assert page(run).id("verdict").text == "Unknown"


def test_the_head_names_the_first_causes():
    (causes,) = page(report_runs.sick()).of("causes")
    assert causes.text == (
        "gpu-01 7 of 8 cards answer; 0000:ba:00.0 (slot SXM5, serial 1650423000105) is on the bus but lost "
        "gpu-03 OAM2 The link runs with 8 of 16 lanes; the bridge 0000:40:01.1 above the card holds it down"
    )


def test_the_head_names_first_what_explains_the_most():
    run = report_runs.sick()
    last = [one for one in run["findings"] if one["verdict"] == "fail" and not one["blocked_by"]][-1]
    run["findings"].remove(last)
    # Of two causes the one of another host, told after all others, explains most of what could not be judged.
    run["findings"].append(
        {**last, "host": "zzz-09", "subject": "zzz-09", "check": "device.driver", "hint": "device.driver.not_loaded"}
    )
    blocked = {
        **last,
        "host": "zzz-09",
        "verdict": "unknown",
        "blocked_by": "device.driver",
        "check": "device.health",
        "hint": "device.health.blocked",
    }
    run["findings"] += [{**blocked, "subject": f"SXM{number}"} for number in range(1, 30)]
    (causes,) = page(run).of("causes")
    assert causes.text.startswith("zzz-09 ")


def test_hosts_without_a_node_type_come_last():
    run = report_runs.sick()
    run["hosts"].insert(0, {"host": "ctl-01", "node_type": None, "vendor": None, "reachable": True, "slots": []})
    titles = [element.text for element in page(run).elements if element.tag == "h3"]
    (last,) = [number for number, title in enumerate(titles) if title.startswith("Other hosts")]
    (first,) = [number for number, title in enumerate(titles) if title.startswith(str(run["hosts"][1]["node_type"]))]
    assert first < last


def test_the_five_counts_add_up_to_all_findings():
    run = report_runs.sick()
    (counts,) = page(run).of("counts")
    assert counts.text == "×2 failed ?7 could not be judged !8 warnings ✓212 passed –8 not applicable"
    assert len(run["findings"]) == 2 + 7 + 8 + 212 + 8


def test_layers_that_were_not_verified_are_shown_as_such():
    shown = page(report_runs.healthy())
    (layers,) = [element for element in shown.elements if element.tag == "section" and "layers" in element.classes]
    items = [element.text for element in shown.within(layers) if element.tag == "li"]
    assert items[0].startswith("Device ✓Pass")
    assert items[1:] == [f"{name} Not verified" for name in ("Network", "Storage", "Application", "Monitoring")]


def test_a_layer_that_was_asked_for_and_not_judged_is_unknown_and_the_reason():
    run = report_runs.healthy()
    run["layers"].append({"layer": "network", "verdict": "pass", "counts": {}})
    run["verdict"] = "unknown"
    shown = page(run)
    assert "Network ?Unknown Not verified" in shown.elements[0].text
    assert shown.id("why").text == "Nothing was judged in: Network."


# -- the map


def cells(shown: Page, host: str) -> dict[str, str]:
    return {
        element.attributes["data-label"]: " ".join(element.classes)
        for element in shown.of("cell")
        if element.attributes["data-host"] == host
    }


def test_the_map_colours_each_card_by_its_worst_check():
    shown = page(report_runs.sick())
    assert len(shown.of("cell")) == 32
    # Lost: its own checks are unknown, but the count failed because of just this card.
    assert cells(shown, "gpu-01") == {**{f"SXM{n}": "cell pass" for n in range(8)}, "SXM5": "cell fail"}
    assert set(cells(shown, "gpu-02").values()) == {"cell pass"}
    assert cells(shown, "gpu-03") == {**{f"OAM{n}": "cell warning" for n in range(8)}, "OAM2": "cell fail"}


def test_a_cell_can_be_read_without_colour():
    shown = page(report_runs.sick())
    (lost,) = [cell for cell in shown.of("cell", "fail") if cell.attributes["data-host"] == "gpu-01"]
    assert lost.text == "× SXM5" or lost.text == "×SXM5"
    assert lost.attributes["aria-label"].startswith("gpu-01 SXM5: Fail, device.model, device.memory")
    assert lost.attributes["title"] == lost.attributes["aria-label"]


def test_cards_behind_a_failed_driver_are_unknown_not_failed():
    builder = report_runs.Builder()
    builder.host("gpu-01", "h100_sxm")
    builder.change("device.driver", "gpu-01", "gpu-01", "fail", "library_mismatch")
    for number in range(8):
        builder.change("device.model", "gpu-01", f"SXM{number}", "unknown", "blocked", blocked_by="device.driver")
    assert set(cells(page(builder.run("fail")), "gpu-01").values()) == {"cell unknown"}


def test_a_cell_is_never_better_than_what_the_run_says():
    run = report_runs.healthy()
    run["hosts"][0]["slots"][3]["verdict"] = "unknown"
    assert cells(page(run), "gpu-01")["SXM3"] == "cell unknown"


def test_a_card_of_which_nothing_is_known_is_unknown():
    run = report_runs.empty()
    run["hosts"] = [
        {
            "host": "n1",
            "node_type": "t",
            "vendor": "x",
            "reachable": True,
            "slots": [{"label": None, "address": "0000:18:00.0", "verdict": None, "checks": []}],
        }
    ]
    assert cells(page(run), "n1") == {"0000:18:00.0": "cell unknown"}


def test_a_finding_about_several_cards_colours_each_of_them_and_no_other():
    builder = report_runs.Builder()
    builder.host("gpu-01", "h100_sxm")
    for number in range(8):
        builder.change("device.link_speed", "gpu-01", f"SXM{number}", "pass", "ok", severity="critical")
    builder.add(
        "device.link_speed", "gpu-01", "gpu-01", "unknown", "no_reading", severity="warning", cards=["SXM1", "SXM2"]
    )
    shown = cells(page(builder.run("pass")), "gpu-01")
    assert {slot for slot, sign in shown.items() if sign == "cell warning"} == {"SXM1", "SXM2"}
    assert set(shown.values()) == {"cell warning", "cell pass"}


def test_findings_that_name_the_address_reach_the_cell_of_the_slot():
    builder = report_runs.Builder()
    builder.host("gpu-01", "h100_sxm")
    builder.add("device.health", "gpu-01", "0000:18:00.0", "fail", "critical")
    assert cells(page(builder.run("fail")), "gpu-01")["SXM0"] == "cell fail"


def test_a_dead_host_and_a_host_without_cards_are_named():
    run = report_runs.sick()
    run["hosts"].append({"host": "ctl-01", "node_type": None, "vendor": None, "reachable": True, "slots": []})
    rows = {element.text for element in page(run).of("row")}
    assert "? gpu-05 no answer" in rows or "?gpu-05no answer" in rows
    assert "– ctl-01 no cards" in rows or "–ctl-01no cards" in rows


def test_every_link_of_the_page_leads_somewhere():
    for run in (report_runs.sick(), report_runs.healthy(), report_runs.empty(), report_runs.large(60)):
        shown = page(run)
        ids = [element.attributes["id"] for element in shown.elements if "id" in element.attributes]
        assert len(ids) == len(set(ids))
        links = {element.attributes["href"] for element in shown.elements if "href" in element.attributes}
        assert {link for link in links if link[:1] != "#"} == {"findings.json", "junit.xml"}
        assert {link[1:] for link in links if link[:1] == "#"} <= set(ids)


@pytest.mark.parametrize(
    ("labels", "short"),
    [
        (["SXM1", "SXM2"], ["SXM1", "SXM2"]),
        (["PCIe Slot 1", "PCIe Slot 12"], ["1", "12"]),
        (["0000:18:00.0", "0000:1b:00.0"], ["18:00.0", "1b:00.0"]),
        (["0000:18:00.0", "0001:18:00.0"], ["0000:18:00.0", "0001:18:00.0"]),
        (["PCIe Slot 5"], ["PCIe Slot 5"]),
        (["a longer label", "a longer label"], ["label", "label"]),
        ([], []),
    ],
)
def test_short_labels_stay_apart(labels, short):
    assert report.short_labels(labels) == short


# -- the findings


def test_consequences_are_folded_under_their_cause_only():
    shown = page(report_runs.sick())
    cause = shown.id("f-device.count--gpu-01")
    inside = [element.attributes.get("id") for element in shown.within(cause)]
    for check in report_runs.CARD_CHECKS:
        assert f"f-{check}--gpu-01--SXM5" in inside
    # Found once on the page, or ``id`` raises; and not as a finding of its own.
    assert "finding" not in shown.id("f-device.model--gpu-01--SXM5").classes
    assert "6 checks could not be judged because of this" in cause.text
    assert "6 of them are folded under their cause." in shown.id("state-unknown").text


def test_a_chain_is_folded_under_its_root():
    shown = page(
        one_host(
            {"check": "device.count", "verdict": "unknown", "cause": "blocked", "blocked_by": "device.query"},
            {"check": "device.query", "verdict": "unknown", "cause": "blocked", "blocked_by": "device.driver"},
            {"check": "device.driver", "verdict": "fail", "cause": "not_loaded"},
        )
    )
    assert [element.attributes["id"] for element in shown.of("finding")] == ["f-device.driver--n1"]


def test_nothing_vanishes():
    shown = page(
        one_host(
            # a circle, a cause that is not in the run, a cause that passed, a cause that matters less
            {"check": "device.query", "verdict": "unknown", "cause": "x", "blocked_by": "device.count"},
            {"check": "device.count", "verdict": "unknown", "cause": "x", "blocked_by": "device.query"},
            {"check": "device.model", "verdict": "unknown", "cause": "x", "blocked_by": "device.nothing"},
            {"check": "device.memory", "verdict": "unknown", "cause": "x", "blocked_by": "host.reachable"},
            {"check": "host.reachable"},
            {"check": "device.slot", "verdict": "unknown", "cause": "x", "blocked_by": "device.link_speed"},
            {"check": "device.link_speed", "verdict": "unknown", "cause": "x", "severity": "warning"},
            # a fail that says it was blocked is still a fail of its own
            {"check": "device.driver", "verdict": "fail", "cause": "x"},
            {"check": "device.health", "verdict": "fail", "cause": "x", "blocked_by": "device.driver"},
        )
    )
    assert {element.attributes["id"] for element in shown.of("finding")} == {
        f"f-device.{name}--n1"
        for name in ("query", "count", "model", "memory", "slot", "link_speed", "driver", "health")
    }
    assert "Not judged because this check did not pass: device.nothing" in shown.id("f-device.model--n1").text


def test_a_cause_on_another_host_does_not_hide_a_finding():
    shown = page(
        one_host(
            {"check": "device.query", "verdict": "fail", "cause": "failed", "host": "n2", "subject": "n2"},
            {"check": "device.count", "verdict": "unknown", "cause": "blocked", "blocked_by": "device.query"},
        )
    )
    assert len(shown.of("finding")) == 2


def test_what_hosts_share_is_one_finding_with_every_host_that_follows():
    follows = {
        "check": "device.query",
        "verdict": "unknown",
        "cause": "follows",
        "blocked_by": "device.driver",
    }
    shown = page(
        one_host(
            {"check": "device.driver", "verdict": "fail", "cause": "down", "host": "ctl", "subject": "ctl:5000"},
            *({**follows, "host": host, "subject": "ctl:5000"} for host in ("n1", "n2")),
            {**follows, "host": "n3", "subject": "other:5000"},
        )
    )
    shared, alone = shown.of("finding")
    assert shared.attributes["id"] == "f-device.driver--ctl--ctl-5000"
    # Whoever filters for one of these hosts finds it.
    assert shared.attributes["data-h"] == "ctl|n1|n2"
    inside = [element for element in shown.within(shared) if element.attributes.get("id")]
    assert [element.attributes["id"] for element in inside] == [f"f-device.query--{n}--ctl-5000" for n in ("n1", "n2")]
    assert all(f" {name} " in element.text for name, element in zip(("n1", "n2"), inside))
    assert alone.attributes["data-h"] == "n3"


def test_a_finding_shows_all_it_has():
    text = page(report_runs.sick()).id("f-device.link_width--gpu-03--OAM2").text
    for part in (
        "gpu-03",
        "OAM2",
        "The link runs with 8 of 16 lanes",
        "Expected 16",
        "Observed 8",
        "Evidence",
        "/sys/bus/pci/devices/0000:46:00.0",
        "exit code 0",
        "0000:40:01.1 current_link_width 8",
    ):
        assert part.replace(" ", "") in text.replace(" ", ""), part
    (group,) = [one for one in page(report_runs.sick()).of("group") if "device.link_width.narrow" in one.text]
    assert "What to do" in group.text and "Reseat the card or its riser" in group.text


def test_fails_come_first_then_unknowns_then_warnings():
    states = [element.attributes["id"] for element in page(report_runs.sick()).of("state")]
    assert states == ["state-fail", "state-unknown", "state-warning"]


def test_of_the_warnings_those_that_failed_come_first():
    shown = page(
        one_host(
            {"check": "device.link_speed", "verdict": "unknown", "cause": "no_reading", "severity": "warning"},
            {"check": "device.slot", "verdict": "fail", "cause": "firmware_changed", "severity": "warning"},
        )
    )
    assert [element.attributes["id"] for element in shown.of("finding")] == [
        "f-device.slot--n1",
        "f-device.link_speed--n1",
    ]


def test_cards_of_a_host_with_the_same_words_are_one_row_with_a_link_each():
    shown = page(report_runs.sick())
    rows = [element for element in shown.of("finding") if "No reading under load" in element.text]
    assert len(rows) == 1
    assert rows[0].attributes["data-n"] == "8"
    for number in range(8):
        assert shown.id(f"f-device.link_speed--gpu-03--OAM{number}").tag == "a"


@pytest.mark.parametrize(
    ("told", "shown_as"),
    [
        ("{} is narrow", "Each of these cards is narrow"),
        ("the repair of {} is not told", "the repair of each of these cards is not told"),
    ],
)
def test_messages_that_differ_only_in_the_name_of_the_card_are_one_row_too(told, shown_as):
    builder = report_runs.Builder()
    builder.host("gpu-01", "h100_sxm", cards=3)
    names = ["0000:18:00.0 (slot SXM0, serial 1650423000100)", "0000:2a:00.0 (slot SXM1, serial 1650423000101)"]
    for number, name in enumerate(names):
        builder.change(
            "device.link_width",
            "gpu-01",
            f"SXM{number}",
            "fail",
            "narrow",
            message=told.format(name),
            evidence=[{"command": f"tool {number}", "rc": 0, "excerpt": "x"}],
        )
    builder.change("device.link_width", "gpu-01", "SXM2", "fail", "narrow", message="SXM2 has another fault")
    shown = page(builder.run("fail"))
    rows = [element for element in shown.of("finding") if element.attributes["data-c"] == "device.link_width"]
    assert [element.attributes["data-s"] for element in rows] == ["SXM0|SXM1", "SXM2"]
    assert shown_as in rows[0].text
    assert "tool 0" in rows[0].text and "tool 1" in rows[0].text
    assert "SXM2 has another fault" in rows[1].text


def test_many_findings_of_one_cause_are_folded_after_the_first():
    shown = page(report_runs.large(100))
    (group,) = [one for one in shown.of("group", "fail") if "device.link_width.narrow" in one.text]
    assert "10 findings · 10 hosts" in group.text
    (more,) = [element for element in shown.within(group) if "more" in element.classes]
    assert more.text.startswith("4 more")


def test_anchors_are_the_same_in_the_next_run():
    first = page(report_runs.sick())
    later = report_runs.sick()
    del later["findings"][0]
    for finding in later["findings"]:
        finding["at"] = "2026-12-24T00:00:00Z"
    anchors = [element.attributes["id"] for element in first.of("finding") if "id" in element.attributes]
    assert anchors == [element.attributes["id"] for element in page(later).of("finding") if "id" in element.attributes]


def test_two_findings_with_one_name_have_two_anchors():
    twice = {"check": "device.query", "verdict": "fail", "cause": "failed"}
    shown = page(one_host({**twice, "message": "one"}, {**twice, "message": "two"}))
    assert [element.attributes["id"] for element in shown.of("finding")] == [
        "f-device.query--n1",
        "f-device.query--n1~2",
    ]


def test_passes_are_summed_up_by_check_and_value():
    shown = page(report_runs.sick())
    rows = [element.text for element in shown.within(shown.id("passed")) if element.tag == "tr"]
    assert "Card model device.model15NVIDIA H100 80GB HBM3gpu-01, gpu-02" in rows
    assert "Card in its slot device.slot3124 different valuesgpu-01, gpu-02, gpu-03, gpu-04" in rows
    shown.id("not-applicable")


# -- hostile text


HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31mred\x00 \u202eevil {{ 7*7 }} &amp; \"' \ud800"


def hostile_run(text: str) -> dict:
    return {
        "site": text,
        "run_id": text,
        "started_at": text,
        "finished_at": text,
        "verdict": text,
        "layers": [{"layer": text, "verdict": text, "counts": {}}],
        "hosts": [
            {
                "host": text,
                "node_type": text,
                "vendor": text,
                "reachable": True,
                "slots": [{"label": text, "address": text, "model": text, "verdict": text, "checks": []}],
            }
        ],
        "findings": [
            {
                "check": text,
                "title": text,
                "layer": text,
                "host": text,
                "subject": text,
                "verdict": verdict,
                "severity": severity,
                "expected": {text: [text]},
                "observed": text,
                "message": text,
                "hint": text,
                "hint_text": text,
                "evidence": [{"command": text, "rc": text, "excerpt": text}, text],
                "blocked_by": text,
            }
            for verdict, severity in (
                ("fail", "critical"),
                ("unknown", "critical"),
                ("fail", "warning"),
                ("pass", "critical"),
                ("not_applicable", "critical"),
                (text, text),
            )
        ],
    }


@pytest.mark.parametrize("language", ["en", "zh"])
def test_hostile_text_is_shown_as_text(language):
    html = report.render(hostile_run(HOSTILE), TEMPLATE, language)
    shown = Page(html)
    assert len([element for element in shown.elements if element.tag == "script"]) == 1
    assert not [element for element in shown.elements if element.tag == "img"]
    assert not [name for element in shown.elements for name in element.attributes if name.startswith("on")]
    assert "<script>alert(1)</script>" in shown.of("message")[0].text
    assert "␛[31mred␀" in shown.of("message")[0].text
    assert "‹U+202E›evil {{ 7*7 }} &amp;" in shown.of("message")[0].text
    html.encode("utf-8")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", html)


def test_the_page_allows_its_own_script_and_style_and_nothing_else():
    html = report.render(report_runs.sick(), TEMPLATE, "en")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html).group(1)
    policy = policy.replace("&#39;", "'")
    for tag in ("script", "style"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", html, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


def test_nothing_outside_the_file_is_asked_for():
    html = report.render(report_runs.sick(), TEMPLATE, "en")
    assert not re.search(r"(?i)https?://|\bsrc=|url\(|@import|<link|<iframe|<object", html)


def test_long_text_is_cut_with_a_note_and_keeps_its_end():
    excerpt = "begin " + "x" * 1_000_000 + " the last line"
    run = one_host(
        {
            "check": "device.query",
            "verdict": "fail",
            "cause": "failed",
            "message": excerpt,
            "observed": excerpt,
            "evidence": [{"command": "tool", "rc": 1, "excerpt": excerpt}],
        }
    )
    html = report.render(run, TEMPLATE, "en")
    assert len(html) < 60_000
    (pre,) = Page(html).of(tag="pre")
    assert pre.text.startswith("begin xxx") and pre.text.endswith("xxx the last line")
    # 6 + 1,000,000 + 14 characters, of which 4,000 stay
    assert "[… 996,020 characters left out here, findings.json has more …]" in pre.text


def test_the_evidence_of_a_page_is_bounded_as_a_whole(monkeypatch):
    monkeypatch.setattr(report, "PAGE_EVIDENCE_LIMIT", 5000)
    findings = [
        {
            "check": "device.query",
            "verdict": "fail",
            "cause": "failed",
            "subject": f"c{number}",
            "evidence": [{"command": "tool", "rc": 1, "excerpt": str(number) * 3000}],
        }
        for number in range(3)
    ]
    texts = [element.text for element in page(one_host(*findings)).of(tag="pre")]
    assert texts == ["0" * 3000, *["[left out to keep this page small, see findings.json]"] * 2]


def test_200_hosts_make_a_page_of_modest_size():
    run = report_runs.large(200)
    assert len(run["findings"]) > 10_000
    html = report.render(run, TEMPLATE, "en")
    assert len(html.encode()) < 1_500_000
    shown = Page(html)
    assert len(shown.of("cell")) == 196 * 8
    assert len(shown.of("cell", "fail")) == 20
    assert len(shown.of("gone")) == 4


def test_a_run_with_missing_fields_is_still_shown():
    shown = page({"findings": [{"verdict": "fail"}, {}], "hosts": [{}]})
    assert shown.id("verdict").text == "Unknown"
    assert len(shown.of("finding")) == 2


# -- small things


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (16.0, "16"),
        (2.5, "2.5"),
        (True, "true"),
        (0, "0"),
        ("", ""),
        (["a", 2, 3.0], "a, 2, 3"),
        ([], "[]"),
        ({"b": ["é"]}, '{"b": ["é"]}'),
    ],
)
def test_values_are_written_as_a_person_would(value, text):
    assert report.value_text(value) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\tb\nc", "a\tb\nc"),
        ("a\r\nb\rc", "a\nb␍c"),
        ("\x1b[0m", "␛[0m"),
        ("\x7f\x85", "␡‹U+0085›"),
        ("\udcff\ufffe", "‹U+DCFF›‹U+FFFE›"),
        ("卡 ✓ é", "卡 ✓ é"),
    ],
)
def test_control_characters_are_made_visible(text, shown):
    assert report.visible(text) == shown


# -- junit


def test_junit_has_a_suite_for_each_layer_of_each_host_and_a_case_for_each_finding():
    run = report_runs.sick()
    root = ET.fromstring(report.junit(run))
    assert root.tag == "testsuites"
    assert {key: root.get(key) for key in ("name", "tests", "failures", "errors", "skipped")} == {
        "name": "rehearsal",
        "tests": "237",
        "failures": "2",
        "errors": "7",
        "skipped": "16",
    }
    suites = {suite.get("name"): suite for suite in root}
    assert list(suites) == [f"device/gpu-0{number}" for number in range(1, 6)]
    assert suites["device/gpu-01"].get("timestamp") == "2026-11-30T01:01:12"
    assert {key: suites["device/gpu-01"].get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "59",
        "failures": "1",
        "errors": "6",
        "skipped": "2",
    }
    assert len(suites["device/gpu-01"].findall("testcase")) == 59


def test_junit_tells_fail_unknown_and_not_applicable_apart():
    root = ET.fromstring(report.junit(report_runs.sick()))
    cases = {(case.get("classname"), case.get("name")): case for case in root.iter("testcase")}
    (failure,) = cases["device.link_width", "gpu-03 OAM2"]
    assert (failure.tag, failure.get("type")) == ("failure", "critical")
    assert failure.get("message").startswith("The link runs with 8 of 16 lanes")
    assert "expected: 16\nobserved: 8\n" in failure.text
    assert "0000:40:01.1 current_link_width 8" in failure.text
    (error,) = cases["device.model", "gpu-01 SXM5"]
    assert (error.tag, error.get("type")) == ("error", "unknown")
    assert "blocked by: device.count" in error.text
    (skipped,) = cases["baseline.hugepages", "gpu-01"]
    assert (skipped.tag, skipped.get("message")) == ("skipped", "The host is a container and shares its kernel")
    (warning,) = cases["device.link_speed", "gpu-03 OAM0"]
    assert warning.tag == "skipped"
    assert warning.get("message").startswith("unknown: ")
    assert not list(cases["device.model", "gpu-01 SXM0"])


def test_junit_of_hostile_text_is_xml():
    text = report.junit(hostile_run(HOSTILE))
    root = ET.fromstring(text.encode("utf-8"))
    (failure, warning) = root.iter("failure")
    assert "<script>alert(1)</script>" in failure.get("message")
    assert "␛[31mred␀" in failure.text
    assert warning.get("type") == "warning"
    # A verdict nobody knows is never a pass.
    assert len(list(root.iter("error"))) == 2


def test_junit_of_nothing_is_an_empty_file_of_its_kind():
    root = ET.fromstring(report.junit(report_runs.empty()))
    assert (root.tag, root.get("tests"), len(root)) == ("testsuites", "0", 0)
