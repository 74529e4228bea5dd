# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images and device files that are not what they should be; what the role refuses, and what it recovers from."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import registry_images

INSTANCE = os.environ.get("ACCEL_REHEARSAL_INSTANCE", "rehearsal")
HOST, OTHER = "gpu-01", "gpu-02"
REPOSITORY = "train/drill"
NAME = f"{registry_images.REGISTRY}/{REPOSITORY}"
CDI = "/etc/cdi/accel-nvidia.json"


def on(host: str, command: str) -> str:
    return registry_images.on(INSTANCE, host, command)


def declared(*words: str, **more) -> tuple[str, str]:
    return "--extra-vars", json.dumps({"cluster_images": list(words), **more})


def turned(before: dict, after: dict) -> dict:
    return {key: after.get(key) for key in before.keys() | after.keys() if after.get(key) != before.get(key)}


@pytest.fixture(scope="module")
def digests(cluster) -> dict[str, str]:
    """Push two images; return their digests. The tag means the second by now."""
    return {word: registry_images.push(INSTANCE, word, REPOSITORY) for word in ("one", "two")}


@pytest.fixture(scope="module")
def holding(cluster, digests) -> dict:
    """Have every node hold the first image under its tag, and return the state of the cluster then."""
    done = cluster.play("container", *declared(f"{NAME}:1@{digests['one']}"))
    assert done.rc == 0, done.output
    _done, report = cluster.verify(*declared(f"{NAME}:1@{digests['one']}"))
    state = report.state()
    assert {state[("container.image_digest", host, host)] for host in (HOST, OTHER, "gpu-03", "npu-01")} == {
        ("pass", "ok", None)
    }
    return state


@pytest.fixture
def files_put_right(cluster):
    """Return nothing; have device files that a failed test left written again."""
    yield
    for host in (HOST, OTHER):
        on(host, f"test ! -e {CDI}.before || mv {CDI}.before {CDI}")


def test_stale_device_files_are_one_finding_each_and_are_written_again(cluster, healthy, files_put_right) -> None:
    gone = "GPU-00000000-0000-4000-8000-000000000000"
    for host in (HOST, OTHER):
        on(host, f"cp -p {CDI} {CDI}.before")
    on(HOST, f"sed -i 's/ACCEL_DRIVER_VERSION=[0-9.]*/ACCEL_DRIVER_VERSION=525.60.13/' {CDI}")
    on(OTHER, f'sed -i \'0,/"GPU-[^"]*"/s//"{gone}"/\' {CDI}')
    done, report = cluster.verify()
    assert turned(healthy, report.state()) == {
        ("container.cdi", HOST, HOST): ("fail", "driver_version", None),
        ("device.driver_stack", HOST, "device_file"): ("unknown", "follows", "container.cdi"),
        ("container.cdi", OTHER, OTHER): ("fail", "replaced", None),
    }
    assert done.rc != 0
    told = {one["host"]: one["message"] for one in report.findings if one["check"] == "container.cdi"}
    assert "525.60.13" in told[HOST] and gone in told[OTHER]
    done = cluster.play("container", "--limit", f"{HOST},{OTHER}")
    changed = {host: row["changed"] for host, row in done.recap().items() if row["changed"]}
    assert changed == {HOST: 1, OTHER: 1}, done.output
    for host in (HOST, OTHER):
        on(host, f"cmp {CDI}.before {CDI}")


def test_a_node_with_another_image_under_the_tag_is_named_and_nobody_else(cluster, digests, holding) -> None:
    words = declared(f"{NAME}:1@{digests['one']}")
    on(OTHER, f"podman pull -q --authfile /etc/accel/registry-login/config.json {NAME}:1")
    _done, report = cluster.verify(*words)
    assert turned(holding, report.state()) == {
        ("container.image_digest", OTHER, OTHER): ("fail", "other_digest", None),
    }
    # Declared by the tag alone, the registry tells which is right: those that did not follow it are named.
    _done, report = cluster.verify(*declared(f"{NAME}:1"))
    state = report.state()
    assert state[("container.image_digest", OTHER, OTHER)] == ("pass", "ok", None)
    assert state[("container.image_digest", HOST, HOST)] == ("fail", "moved", None)
    done = cluster.play("container", *words, "--limit", f"{HOST},{OTHER}")
    assert {host: row["changed"] for host, row in done.recap().items() if row["changed"]} == {OTHER: 1}, done.output
    # What was pulled by hand is nobody's business but the one's who did.
    assert digests["two"] in on(OTHER, "podman images --digests")


def test_what_can_not_be_right_is_refused_before_anything_is_touched(cluster, digests, holding, tmp_path) -> None:
    listed = "podman images --no-trunc --format '{{.ID}} {{.Repository}} {{.Tag}} {{.Digest}}'"
    looked_at = f"find /etc/containers /etc/accel /etc/cdi -printf '%p %T@ %s\\n' | sort; {listed}"
    before = on(HOST, looked_at)
    foreign = tmp_path / "foreign.crt"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=foreign -days 2 -keyout /dev/null 2>/dev/null"
    foreign.write_text(on("ctl-01", command), encoding="utf-8")
    wrong = f"{NAME}@sha256:{'0' * 64}"
    cases = {
        "does not have what is declared": declared(wrong),
        "does not trust the certificate": declared(wrong, cluster_registry_ca_file=str(foreign)),
        "takes no login": declared(wrong, cluster_registry_password="wrong"),
        "has a tag and no accepted digest": declared(f"{NAME}:nobody-built-this", "pytorch"),
    }
    (secret,) = (registry_images.ROOT / ".cache" / INSTANCE).glob("*/registry-node")
    for says, words in cases.items():
        done = cluster.play("container", "--limit", HOST, *words)
        assert done.rc != 0 and says in " ".join(done.output.split()), done.output
        assert done.recap()[HOST]["changed"] == 0
        assert secret.read_text(encoding="utf-8").split()[0] not in done.output
    assert "pytorch is no image with its registry" in " ".join(done.output.split())
    assert on(HOST, looked_at) == before


@pytest.mark.parametrize(
    ("path", "text", "says", "more"),
    [
        (
            "/etc/docker/daemon.json",
            '{\n "bip": "10.9.0.1/24",,\n}\n',
            "line 2",
            {"container_engine": "docker", "container_blocked_registries": []},
        ),
        ("/etc/containers/containers.conf.d/10-site.conf", "[engine]\nruntime = runc\n", "line 2", {}),
    ],
)
def test_a_broken_settings_file_is_refused_with_its_line(cluster, path, text, says, more) -> None:
    on(HOST, f"mkdir -p {os.path.dirname(path)}; printf '%s' '{text}' > {path}")
    try:
        done = cluster.play("container", "--limit", HOST, *declared(**more))
        told = " ".join(done.output.split())
        assert done.rc != 0 and f"{path} {says}" in told, done.output
        assert done.recap()[HOST]["changed"] == 0
        assert on(HOST, f"cat {path}") == text
        assert on(HOST, "dpkg-query -W -f '${Status}' docker.io 2>/dev/null || true") in (
            "",
            "unknown ok not-installed",
        )
    finally:
        on(HOST, f"rm {path}")


def test_a_registry_that_dies_during_a_pull_leaves_nothing_half_done(cluster, holding) -> None:
    big = registry_images.push(INSTANCE, "big", REPOSITORY, "big", 48)
    words = declared(f"{NAME}:big@{big}", container_pull_timeout_seconds=60)
    scratch = "ls -d /var/lib/containers/accel-pull-* 2>/dev/null || true"
    received = "cat /var/lib/containers/accel-pull-*/*/* /var/lib/containers/accel-pull-*/* 2>/dev/null | wc -c"
    watch = f"for i in $(seq 300); do test $({received}) -gt 1000000 && exit 0; sleep 0.1; done; exit 1"
    # Slow enough to be in the middle of it: 16 Mbit/s is 24 s for it all.
    on("ctl-01", "tc qdisc add dev management0 root tbf rate 16mbit burst 64kb latency 400ms")
    try:
        told = {}
        run = threading.Thread(
            target=lambda: told.update(done=cluster.play("container", "--limit", OTHER, *words)), daemon=True
        )
        run.start()
        on(OTHER, watch)
        on("ctl-01", "systemctl kill -s KILL accel-registry@pull; systemctl stop accel-registry@pull")
        run.join(200)
        assert told["done"].rc != 0 and "did not come" in told["done"].output, told["done"].output
        assert on(OTHER, scratch) == ""
        assert big not in on(OTHER, "podman images --digests")
        refused = cluster.play("container", "--limit", OTHER, *words)
        assert refused.rc != 0 and "reach the registry" in " ".join(refused.output.split()), refused.output
    finally:
        on("ctl-01", "tc qdisc del dev management0 root; systemctl start accel-registry@pull")
    done = cluster.play("container", "--limit", OTHER, *words)
    assert done.rc == 0, done.output
    assert big in on(OTHER, "podman images --digests")


def test_a_full_disk_is_refused_or_named_and_leaves_nothing(cluster, digests, holding) -> None:
    big = registry_images.push(INSTANCE, "bigger", REPOSITORY, "bigger", 48)
    on(OTHER, "mount -t tmpfs -o size=32m,mode=755 tmpfs /var/lib/containers")
    try:
        done = cluster.play("container", "--limit", OTHER, *declared(f"{NAME}@{big}"))
        told = " ".join(done.output.split())
        assert done.rc != 0 and "GiB" in told and "images are left" not in told, done.output
        assert "free" in told
        words = declared(f"{NAME}@{big}", container_storage_free_gib=0)
        done = cluster.play("container", "--limit", OTHER, *words)
        assert done.rc != 0 and "no space left on device" in done.output, done.output
        assert "accel-pull-" not in on(OTHER, "ls /var/lib/containers")
        assert big not in on(OTHER, "podman images --digests")
    finally:
        on(OTHER, "umount /var/lib/containers")
    assert digests["one"] in on(OTHER, "podman images --digests")
