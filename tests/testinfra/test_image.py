# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The images that were built: what the registry has is what the site accepted, and they are what their recipes say."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

testinfra_hosts = ["ansible://registry_hosts"]

ROOT = Path(__file__).resolve().parents[2]
INSTANCE = os.environ.get("ACCEL_REHEARSAL_INSTANCE", "molecule")
SITE = ROOT / "sites" / INSTANCE
STORAGE = "/var/lib/docker-registry/docker/registry/v2"
BASE, LOOP = "ctl-01:5000/train/base:1", "ctl-01:5000/train/loop:1"


@pytest.fixture(scope="module")
def accepted() -> dict:
    """Return what the site accepted."""
    return json.loads((SITE / "baselines/images.json").read_text())["images"]


def blob(host, digest: str) -> str:
    """Return the file of a blob in the registry's own storage."""
    return f"{STORAGE}/blobs/sha256/{digest[7:9]}/{digest[7:]}/data"


def manifest(host, accepted, name: str) -> dict:
    """Return the manifest that the accepted digest means; its bytes are what the digest says."""
    content = host.file(blob(host, accepted[name]["digest"])).content
    assert "sha256:" + hashlib.sha256(content).hexdigest() == accepted[name]["digest"]
    return json.loads(content)


@pytest.mark.parametrize("name", [BASE, LOOP])
def test_the_tag_means_what_was_accepted(host, accepted, name) -> None:
    repository, tag = name.partition("/")[2].split(":")
    link = host.file(f"{STORAGE}/repositories/{repository}/_manifests/tags/{tag}/current/link")
    assert link.content_string.strip() == accepted[name]["digest"]


def test_the_training_image_stands_on_the_base_as_it_was_accepted(host, accepted) -> None:
    base, loop = (manifest(host, accepted, name) for name in (BASE, LOOP))
    assert [one["digest"] for one in loop["layers"]][: len(base["layers"])] == [one["digest"] for one in base["layers"]]
    config = json.loads(host.file(blob(host, loop["config"]["digest"])).content)["config"]
    labels = config["Labels"]
    assert labels["org.opencontainers.image.base.digest"] == accepted[BASE]["digest"]
    assert labels["accel.recipe"] == accepted[LOOP]["recipe"]
    assert labels["accel.version.libnuma1"] == "2.0.16-1"
    assert labels["org.opencontainers.image.title"] == "Training loop of the rehearsal"
    assert "NCCL_DEBUG=WARN" in config["Env"]


def test_every_package_is_in_the_list_inside(host, accepted) -> None:
    layer = manifest(host, accepted, LOOP)["layers"][-1]["digest"]
    shown = host.check_output(f"tar -xzOf {blob(host, layer)} etc/accel/image.lock").splitlines()
    assert shown[0] == f"# Packages of {LOOP}, recipe {accepted[LOOP]['recipe']}"
    assert "deb libnuma1:amd64 2.0.16-1" in shown and [one for one in shown if one.startswith("deb libc6:amd64 ")]
    config = json.loads(host.file(blob(host, manifest(host, accepted, LOOP)["config"]["digest"])).content)["config"]
    assert int(config["Labels"]["accel.packages"]) == len(shown) - 1 > 50
    assert "opt/train/loop.py" in host.check_output(f"tar -tzf {blob(host, layer)}").splitlines()


def test_nothing_of_the_builds_is_left(host) -> None:
    work = "/var/lib/containers/accel-images"
    assert sorted(host.file(work).listdir()) == ["ca.crt", "file-0", "lock"]
    assert work not in host.check_output("cat /proc/mounts")


def test_each_acceptance_is_in_the_history(accepted) -> None:
    events = [json.loads(line) for line in (SITE / "history.jsonl").read_text().splitlines()]
    told = {one["image"]: one["digest"] for one in events if one.get("event") == "image_accepted"}
    assert {name: told.get(name) for name in (BASE, LOOP)} == {name: accepted[name]["digest"] for name in (BASE, LOOP)}
