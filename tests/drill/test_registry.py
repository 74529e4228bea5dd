# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The registry is down, or its certificate is over: who says so, and that the role itself puts it right."""

from __future__ import annotations

import pytest

HOST, ADDRESS = "ctl-01", "ctl-01:5000"
NODES = ("gpu-01", "gpu-02", "gpu-03", "npu-01")
UNITS = "accel-registry@pull accel-registry@push"
# Signed by the CA that nodes trust, for the names that they ask by, and over since yesterday. No clock is touched.
EXPIRE = (
    "cd /etc/accel/registry-server && openssl x509 -req -in server.csr -CA ca.crt -CAkey ca/ca.key -set_serial 99 "
    f"-copy_extensions copyall -days -1 -out server.crt && systemctl restart {UNITS}"
)


@pytest.fixture(scope="module")
def put_right(cluster):
    """Return nothing; run the role in the end, whatever a test left."""
    yield
    done = cluster.play("registry")
    assert done.rc == 0, done.output


def turned(before: dict, after: dict) -> dict:
    return {key: after.get(key) for key in before.keys() | after.keys() if after.get(key) != before.get(key)}


def test_the_cluster_is_well_with_it(healthy) -> None:
    assert healthy[("registry.service", HOST, ADDRESS)] == ("pass", "ok", None)
    assert healthy[("registry.storage", HOST, ADDRESS)] == ("pass", "ok", None)
    assert {healthy[("container.registry", node, ADDRESS)] for node in NODES} == {("pass", "ok", None)}
    assert {healthy[("container.image_digest", node, node)] for node in NODES} == {("pass", "ok", None)}


def test_a_registry_that_is_down_is_named_once_and_every_node_follows(cluster, healthy, put_right) -> None:
    assert cluster.on(HOST, "systemctl stop accel-registry@pull") == 0
    done, report = cluster.verify()
    # What nodes hold, they hold: the digest is declared, so nobody has to be asked what a tag means.
    assert turned(healthy, report.state()) == {
        ("registry.service", HOST, ADDRESS): ("fail", "down", None),
        **{("container.registry", node, ADDRESS): ("unknown", "follows", "registry.service") for node in NODES},
    }
    assert done.rc != 0
    assert (report.findings[0]["check"], report.findings[0]["host"]) == ("registry.service", HOST)
    done = cluster.play("registry")
    # That nothing of it has stayed is seen by the next test, which holds all against the same state.
    assert {host: row["changed"] for host, row in done.recap().items()} == {HOST: 1}, done.output


def test_a_certificate_that_is_over_is_named_and_made_anew(cluster, healthy, put_right) -> None:
    assert cluster.on(HOST, EXPIRE) == 0
    done, report = cluster.verify()
    assert turned(healthy, report.state()) == {
        ("registry.service", HOST, ADDRESS): ("fail", "certificate", None),
        **{("container.registry", node, ADDRESS): ("unknown", "follows", "registry.service") for node in NODES},
    }
    assert done.rc != 0
    done = cluster.play("registry")
    # The certificate, and the two services for it; nothing else.
    assert {host: row["changed"] for host, row in done.recap().items()} == {HOST: 2}, done.output
    _done, report = cluster.verify()
    assert report.state() == healthy
