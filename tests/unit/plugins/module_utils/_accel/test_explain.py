# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Causes and hints of a check, offline, in both languages."""

from __future__ import annotations

import re

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import hints
from ansible_collections.accel.cluster.plugins.module_utils._accel.explain import explain, no_such_check


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("check", hints.CHECKS)
def test_every_check_lists_every_cause_with_its_hint(check, language):
    text = explain(check, language)
    assert text.startswith(f"{check}: {hints.CHECKS[check]['title'][language]}\n")
    for cause, spec in hints.CAUSES.items():
        if hints.check_of(cause) == check:
            assert f"\n{cause} (" in text
            assert spec.hint[language] in text
    # What the check fills in is told in words; "{address: slot}" in a hint is what a person writes.
    assert not re.search(r"\{\w+[\[:}]", re.sub(r"\{address: slot\}|\{地址: 槽位\}", "", text))


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", "<number answering> of <value expected> cards answer; on the bus but lost: <cards>"),
        ("zh", "<期望值> 张加速卡中有 <应答数> 张应答；在总线上但已掉卡：<加速卡>"),
    ],
)
def test_what_a_check_fills_in_is_told_in_words(language, words):
    assert words in explain("device.count.lost", language)
    assert "<value seen> °C" in explain("device.temperature.ok")
    # What may follow a word has no blank of its own in the template.
    assert "driver is loaded <version>" in explain("device.driver.ok")


def test_one_cause():
    text = explain("device.count.lost", "en")
    assert "device.count.lost (fail, critical)" in text
    assert "device.count.missing" not in text
    assert "加速卡" in explain("device.count.lost", "zh")


def test_another_language_is_english():
    assert explain("device.count", "fr") == explain("device.count", "en")


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("device.counts", "device.count"),
        ("device.conut", "device.count"),
        ("count", "device.count"),
        ("DEVICE.COUNT", "device.count"),
        ("Device.Count.Lost", "device.count.lost"),
        ("device_count", "device.count"),
        ("device.count.", "device.count"),
        ("device.count.los", "device.count.lost"),
        ("device.cou", "device.count"),
        ("temp", "device.temperature"),
        ("link", "device.link_width, device.link_speed"),
        ("COUNT", "device.count"),
    ],
)
def test_what_may_have_been_meant(word, near):
    assert explain(word) is None
    assert no_such_check(word).startswith(f"there is no check {word!r}; did you mean {near}")


@pytest.mark.parametrize(("word", "named"), [("device", "device."), ("Baseline.", "baseline.")])
def test_the_beginning_of_checks_lists_them_with_their_titles(word, named):
    """No name is near enough to it: all that begin so are what was meant."""
    text = no_such_check(word)
    assert text.splitlines()[0] == f"there is no check {word!r}; these begin so:"
    asked = [check for check in hints.CHECKS if check.startswith(named)]
    assert [line.split()[0] for line in text.splitlines()[1:]] == asked
    assert hints.CHECKS[asked[0]]["title"]["en"] in text.splitlines()[1]
    assert hints.CHECKS[asked[0]]["title"]["zh"] in no_such_check(word, "zh")


def test_a_word_like_nothing_lists_what_there_is():
    assert all(check in no_such_check("zzzz") for check in hints.CHECKS)
    assert "没有检查项" in no_such_check("", "zh")
