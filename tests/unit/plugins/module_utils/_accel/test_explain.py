# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Causes and hints of a check, offline, in both languages."""

from __future__ import annotations

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
    assert "{" not in text or ":." not in text


def test_one_cause():
    text = explain("device.count.lost", "en")
    assert "device.count.lost (fail, critical)" in text
    assert "device.count.missing" not in text
    assert "加速卡" in explain("device.count.lost", "zh")


def test_another_language_is_english():
    assert explain("device.count", "fr") == explain("device.count", "en")


@pytest.mark.parametrize(
    ("word", "near"),
    [("device.counts", "device.count"), ("device.conut", "device.count"), ("count", "device.count")],
)
def test_what_may_have_been_meant(word, near):
    assert explain(word) is None
    assert near in no_such_check(word).partition("did you mean")[2]


def test_a_word_like_nothing_lists_what_there_is():
    assert all(check in no_such_check("zzzz") for check in hints.CHECKS)
    assert "没有检查项" in no_such_check("", "zh")
