# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that runs containers: its settings, its trust, its images by digest, its cards one by one."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import registry_images

testinfra_hosts = ["ansible://accelerator_nodes"]

INSTANCE = os.environ.get("ACCEL_REHEARSAL_INSTANCE", "molecule")
LOGIN = "/etc/accel/registry-login/config.json"
REPOSITORY = "train/molecule"
NAME = f"{registry_images.REGISTRY}/{REPOSITORY}"
KINDS = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu", "ascend": "huawei.com/npu"}
# How a container is started on machines with control groups of version 1, where settings have no say in it.
RUN = "podman run --rm --network=none --cgroupns=private"


@pytest.fixture(scope="module")
def digest() -> str:
    """Push the image that nodes are to hold; return its digest."""
    return registry_images.push(INSTANCE, "held", REPOSITORY)


def images(host, word: str, check: bool = False, **more) -> dict:
    """Have a node hold an image, as the role does."""
    told = {"images": [word], "auth_file": LOGIN, "pull_timeout_seconds": 60, **more}
    return host.ansible("accel.cluster.container_images", json.dumps(told), check=check)


def test_no_setting_of_others_is_touched_and_names_without_a_registry_are_looked_up_nowhere(host) -> None:
    # Manuals are not installed here.
    changed = host.run("dpkg --verify golang-github-containers-common").stdout
    assert not [line for line in changed.splitlines() if "/etc/" in line or "/usr/share/containers" in line]
    refused = host.run("podman pull -q accel-nobody-has-this")
    assert refused.rc != 0 and "did not resolve to an alias" in refused.stderr, refused.stderr
    refused = host.run("podman pull -q registry.example.org/busybox")
    assert refused.rc != 0 and "registry registry.example.org is blocked" in refused.stderr, refused.stderr
    assert "192.168.232" in host.check_output("podman network inspect podman")


def test_the_login_is_for_root_alone_and_the_registry_takes_it(host) -> None:
    assert (host.file(LOGIN).mode, host.file(LOGIN).user) == (0o600, "root")
    assert host.file(os.path.dirname(LOGIN)).mode == 0o700
    asked = [{"address": registry_images.REGISTRY, "auth_file": LOGIN}]
    (told,) = host.ansible("accel.cluster.container_info", json.dumps({"registries": asked}))["registries"]
    assert told["state"] == "ok"
    assert told["ca_files"] == [f"/etc/containers/certs.d/{registry_images.REGISTRY}/ca.crt"]
    asked = [{"address": registry_images.REGISTRY}]
    (told,) = host.ansible("accel.cluster.container_info", json.dumps({"registries": asked}))["registries"]
    assert told["state"] == "login_needed"


def test_an_image_comes_by_its_digest_once_and_a_moved_tag_moves_no_node(host, digest) -> None:
    word = f"{NAME}:1@{digest}"
    assert "msg" not in images(host, word)
    held = host.check_output("podman images --digests --no-trunc")
    assert digest in held
    assert images(host, word, check=True)["changed"] is False
    other = registry_images.push(INSTANCE, "moved", REPOSITORY)
    assert other != digest
    assert images(host, word)["changed"] is False
    assert host.check_output(f"podman image inspect --format '{{{{.Digest}}}}' {NAME}:1") == digest
    assert registry_images.push(INSTANCE, "held", REPOSITORY) == digest


def test_a_digest_that_nobody_pushed_brings_nothing(host, digest) -> None:
    listed = "podman images --digests --no-trunc --format '{{.ID}} {{.Repository}} {{.Tag}} {{.Digest}}'"
    before = host.check_output(listed)
    told = images(host, f"{NAME}@sha256:{'0' * 64}")
    assert "did not come" in told["msg"] and "manifest unknown" in told["msg"]
    assert host.check_output(listed) == before
    assert host.run("ls /var/lib/containers/accel-pull-*").rc != 0


def test_a_container_with_one_card_sees_one_card(host, digest) -> None:
    assert "msg" not in images(host, f"{NAME}:1@{digest}")
    shown = json.loads(host.check_output("accel-emulator show"))
    kind = KINDS[shown["vendor"]]
    spec = json.loads(host.file(f"/etc/cdi/accel-{shown['vendor']}.json").content_string)
    nodes = {one["name"]: {node["path"] for node in one["containerEdits"]["deviceNodes"]} for one in spec["devices"]}
    shared = {node["path"] for node in spec.get("containerEdits", {}).get("deviceNodes", [])}
    (observed,) = {
        card["index"]: card
        for card in host.ansible("accel.cluster.accelerator_info", "")["devices"]
        if card["index"] == 2
    }.values()
    slot = str(observed["slot"]["label"])
    names = ["2", slot if not slot.isdigit() else f"slot-{slot}", observed.get("uuid") or observed["serial"]]
    every = nodes["all"]
    for name in names:
        listed = host.check_output(f"{RUN} --device {kind}={name} {NAME}:1 /bin/busybox find /dev ! -type d")
        seen = set(listed.split()) & (every | shared)
        assert seen == set(observed["device_nodes"]) | shared, name
    listed = host.check_output(f"{RUN} {NAME}:1 /bin/busybox find /dev ! -type d")
    assert not set(listed.split()) & every
