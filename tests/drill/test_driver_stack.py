# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real packages that change behind our back, on hosts with a declared set; the role itself puts them right."""

from __future__ import annotations

import pytest
from test_faults import OF_A_SILENT_CARD, cards

HOST = "gpu-01"
PINNED, NEWER = "535.261.03-1", "535.309.01-0+deb12u1"
SET = ("libnvidia-ml1", "nvidia-alternative", "nvidia-legacy-check", "nvidia-smi")
STACK = "device.driver_stack"


@pytest.fixture
def put_right(cluster):
    """Return nothing; bring the host back to its declared set, whatever a test left."""
    yield
    allowed = '{"driver_downgrade_allowed": true}'
    done = cluster.play("driver", "--limit", HOST, "--extra-vars", allowed)
    assert done.rc == 0, done.output


def turned(before: dict, after: dict) -> dict:
    return {key: after.get(key) for key in before.keys() | after.keys() if after.get(key) != before.get(key)}


def test_a_hold_that_was_removed_is_named_and_put_back(cluster, healthy, put_right) -> None:
    assert cluster.on(HOST, "apt-mark unhold nvidia-smi") == 0
    done, report = cluster.verify()
    assert turned(healthy, report.state()) == {
        ("device.version_lock", HOST, HOST): None,
        ("device.version_lock", HOST, "hold"): ("fail", "not_held", None),
    }
    (finding,) = [one for one in report.findings if one["check"] == "device.version_lock" and one["host"] == HOST]
    assert finding["observed"] == ["nvidia-smi"]
    # An upgrade is still refused, by the preference: a warning does not fail the run.
    assert (done.rc, finding["severity"]) == (0, "warning")
    done = cluster.play("driver")
    assert {host: row["changed"] for host, row in done.recap().items() if row["changed"]} == {HOST: 1}, done.output
    _done, report = cluster.verify()
    assert report.state() == healthy


def test_a_library_upgraded_behind_our_back_is_named_and_put_back(cluster, healthy, put_right) -> None:
    newer = " ".join(f"{name}={NEWER}" for name in SET)
    install = "DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends --allow-change-held-packages"
    assert cluster.on(HOST, f"{install} {newer}") == 0
    done, report = cluster.verify()
    state = turned(healthy, report.state())
    assert state == {
        # The loaded module is the pinned one: the packages drifted, and a reboot would be wrong.
        (STACK, HOST, "library"): ("fail", "library_mismatch", None),
        (STACK, HOST, "module"): None,
        (STACK, HOST, "packages"): None,
        # Whoever upgrades in spite of a hold takes it away, and the preference is for the pinned version.
        ("device.version_lock", HOST, HOST): None,
        ("device.version_lock", HOST, "upgrade"): ("fail", "upgraded", None),
        ("device.driver", HOST, HOST): ("unknown", "follows", STACK),
        ("device.query", HOST, HOST): ("unknown", "blocked", "device.driver"),
        (STACK, HOST, "device_file"): ("unknown", "blocked", STACK),
        # It names libraries that are gone.
        ("container.cdi", HOST, HOST): ("unknown", "follows", STACK),
        ("device.count", HOST, HOST): ("unknown", "blocked", "device.driver"),
        **cards(HOST, *OF_A_SILENT_CARD, blocked_by="device.driver"),
    }
    assert done.rc != 0
    first = report.findings[0]
    assert (first["check"], first["subject"], first["host"]) == (STACK, "library", HOST)
    assert "apt-get install" in first["message"]

    refused = cluster.play("driver", "--limit", HOST)
    assert refused.rc != 0
    assert "would go back from" in refused.output and "driver_downgrade_allowed" in refused.output
    allowed = cluster.play("driver", "--limit", HOST, "--extra-vars", '{"driver_downgrade_allowed": true}')
    assert allowed.rc == 0, allowed.output
    _done, report = cluster.verify()
    assert report.state() == healthy
