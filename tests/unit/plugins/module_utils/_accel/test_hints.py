# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The texts are complete in both languages, and the pages made from them are up to date."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import hints, registry
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import LAYERS, SEVERITIES, VERDICTS

DOCS = Path(__file__).resolve().parents[5] / "docs"
CHINESE = re.compile("[\u4e00-\u9fff]")
FIELDS = re.compile(r"\{(\w+)")


@pytest.mark.parametrize("cause", hints.CAUSES)
def test_a_cause_is_complete(cause):
    spec = hints.CAUSES[cause]
    assert hints.check_of(cause) in hints.CHECKS
    assert spec.verdict in VERDICTS and spec.severity in SEVERITIES
    for texts in (spec.message, spec.hint):
        assert set(texts) == {"en", "zh"}
        assert bool(texts["en"]) == bool(texts["zh"])
        assert not CHINESE.search(texts["en"])
    assert CHINESE.search(spec.message["zh"]) or cause in ("device.link_width.ok", "device.link_speed.ok")
    # What one language tells, the other does too.
    assert set(FIELDS.findall(spec.message["en"])) == set(FIELDS.findall(spec.message["zh"]))
    if spec.verdict in ("fail", "unknown"):
        assert len(spec.hint["en"]) > 40 and CHINESE.search(spec.hint["zh"])


def test_every_check_can_pass_and_can_not():
    for check, about in hints.CHECKS.items():
        verdicts = {spec.verdict for cause, spec in hints.CAUSES.items() if hints.check_of(cause) == check}
        assert {"pass", "unknown"} <= verdicts, check
        assert about["layer"] in LAYERS and set(about["title"]) == {"en", "zh"}


@pytest.mark.parametrize(
    ("cause", "verdict", "severity"),
    [
        ("host.reachable.unreachable", "unknown", "critical"),
        ("host.reachable.incomplete", "unknown", "critical"),
        ("host.reachable.crashed", "unknown", "critical"),
        ("device.query.absent", "fail", "critical"),
        ("device.driver.in_use_elsewhere", "unknown", "critical"),
        ("device.slot.firmware_changed", "fail", "warning"),
        ("device.slot.unplaced", "unknown", "warning"),
        ("device.slot.no_baseline", "unknown", "critical"),
        ("device.link_speed.no_reading", "unknown", "warning"),
        ("device.link_speed.unknown", "unknown", "warning"),
        ("device.health.warning", "fail", "warning"),
        ("device.health.unknown", "unknown", "critical"),
        ("baseline.clock.skewed", "fail", "critical"),
        ("baseline.hugepages.shared_kernel", "not_applicable", "critical"),
    ],
)
def test_how_much_a_cause_weighs(cause, verdict, severity):
    assert (hints.CAUSES[cause].verdict, hints.CAUSES[cause].severity) == (verdict, severity)


def test_a_message_with_a_gap_is_better_than_a_crash():
    assert hints.text("device.count.ok") == "? of ? cards answer"
    assert hints.text("device.memory.small", card="x", observed="a", expected=None, percent=[]) == (
        "x has a GiB of memory, ? GiB are declared (tolerance [] %)"
    )
    skewed = {"observed": {"offset_milliseconds": 73.5}, "expected": {"offset_milliseconds": 50}}
    assert hints.text("baseline.clock.skewed", "en", host="a", **skewed) == (
        "the clock of a is off by 73.5 ms, allowed are 50 ms"
    )
    assert "?" in hints.text("baseline.clock.skewed", "en", host="a", observed=None, expected="soon")
    with pytest.raises(KeyError):
        hints.text("device.count.odd")


def test_the_texts_of_a_language_that_is_not_known_are_english():
    assert hints.text("device.driver.not_loaded", "fr") == "the kernel module of the driver is not loaded"
    assert hints.text("device.driver.not_loaded", "zh") == "驱动的内核模块未加载"
    assert hints.hint_text("device.driver.no_library", "fr") == hints.CAUSES["device.driver.no_library"].hint["en"]
    assert hints.hint_text("no.such.cause") == ""


@pytest.mark.parametrize(("language", "page"), [("en", "faults.md"), ("zh", "zh/faults.md")])
def test_the_page_of_faults_is_what_the_texts_make(language, page):
    assert (DOCS / page).read_text(encoding="utf-8") == hints.faults_page(language), (
        "run python3 tests/render_faults.py"
    )


def test_the_page_of_faults_has_every_cause():
    page = hints.faults_page("en")
    for cause, spec in hints.CAUSES.items():
        assert (f"### {cause}\n" in page) == (spec.verdict != "pass")


def test_every_field_of_a_message_has_words_and_no_words_lack_a_field():
    used = {name for spec in hints.CAUSES.values() for name in FIELDS.findall(spec.message["en"])}
    assert used == set(hints.FIELDS)
    for spec in hints.CAUSES.values():
        for language in hints.LANGUAGES:
            assert not set("{}") & set(hints.readable(spec.message[language], language))
    for words in hints.FIELDS.values():
        assert not CHINESE.search(words["en"]) and CHINESE.search(words["zh"])


def test_fields_in_words():
    assert hints.readable("loaded{version}{note}, x{observed:.1f}, ({names[0]})") == (
        "loaded <version> <note>, x<value seen>, (<names>)"
    )


# What only one vendor has. An error code, a module or a device node sends others astray as a tool does.
OWN = {
    "nvidia": ("nvidia", "nouveau", "xid", "nvlink", "mig ", "fabric manager", "persistence"),
    "amd": ("amd", "rocm", "kfd", "xgmi", "cpx"),
    "ascend": ("npu-smi", "davinci", "ascend", "昇腾", "hccs", "vnpu", "-8005", "-8020"),
    "gaudi": ("hl-smi",),
}
TOOL = re.compile(r"\b(?:[a-z]+[-_]?smi|cnmon|neuron-ls|tpu-info)\b")


@pytest.mark.parametrize("language", hints.LANGUAGES)
@pytest.mark.parametrize("cause", hints.CAUSES)
def test_a_hint_names_no_tool_of_another_vendor_than_the_card(cause, language):
    for vendor in (*registry.VENDORS, "acme"):
        told = hints.hint_text(cause, language, vendor).lower()
        foreign = [word for other, words in OWN.items() if other != vendor for word in words if word in told]
        assert not foreign, (vendor, told)
        assert vendor in OWN or not TOOL.search(told)


def test_what_holds_for_one_vendor_alone_is_told_of_its_cards_and_where_no_card_is_meant_of_all():
    for cause, spec in hints.CAUSES.items():
        for language in hints.LANGUAGES:
            every = hints.hint_text(cause, language)
            assert every.startswith(spec.hint[language])
            for vendor, words in spec.vendors.items():
                assert vendor in registry.VENDORS and set(words) == set(hints.LANGUAGES)
                assert hints.hint_text(cause, language, vendor).endswith(words[language])
                assert words[language] in every and hints.VENDORS[vendor][language] in every
    assert sum(bool(spec.vendors) for spec in hints.CAUSES.values()) >= 10
    assert hints.hint_text("device.throttle.unknown", "en", "nvidia").endswith("See nvidia-smi -q -d PERFORMANCE.")
    assert "NVIDIA: See nvidia-smi -q -d PERFORMANCE. AMD: " in hints.hint_text("device.throttle.unknown")
    assert hints.hint_text("no.such.cause", "en", "nvidia") == ""
