# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A card is judged for its link speed by a reading under load, taken before it went idle."""

from __future__ import annotations

import json

import pytest

HOST, SLOT = "gpu-02", "SXM4"
KEY = ("device.link_speed", HOST, SLOT)


@pytest.fixture
def busy_for_a_while(cluster):
    """Let one card work while the node looks at it, then let it rest; leave nothing behind."""

    def show(cards: list[dict]) -> None:
        done = cluster.play(
            "rehearsal.create",
            "--tags",
            "emulator",
            "--limit",
            HOST,
            "--extra-vars",
            json.dumps({"emulator_cards": cards}),
        )
        assert done.rc == 0, done.output

    assert cluster.on(HOST, "grep -q 0000: /var/lib/accel/records/links.json") != 0, "there is a reading already"
    show([{"slot": SLOT, "busy": True}])
    try:
        assert cluster.on(HOST, "accelctl check --keep") == 0
        show([])
        yield
    finally:
        show([])
        assert cluster.on(HOST, "rm -f /var/lib/accel/records/links.json") == 0


def test_an_idle_card_passes_by_its_reading_under_load(cluster, busy_for_a_while) -> None:
    _done, report = cluster.verify("--limit", HOST)
    speeds = {key: value for key, value in report.state().items() if key[0] == "device.link_speed"}
    assert speeds.pop(KEY)[:2] == ("pass", "ok")
    # The others are idle, and told of together.
    assert speeds == {("device.link_speed", HOST, HOST): ("unknown", "no_reading", None)}
    (idle,) = [one["cards"] for one in report.findings if one["check"] == "device.link_speed" and one["cards"]]
    assert sorted([*idle, SLOT]) == [f"SXM{number}" for number in range(1, 9)]
