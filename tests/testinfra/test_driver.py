# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The card-to-slot record of a node against what the emulated cards say of themselves; its driver, by dpkg and apt."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / ".cache/collections"))
from ansible_collections.accel.cluster.plugins.module_utils._accel import stack

testinfra_hosts = ["ansible://accelerator_nodes"]

VERSION = "535.261.03"
PINNED, NEWER = f"{VERSION}-1", "535.309.01-0+deb12u1"
SET = ("libnvidia-ml1", "nvidia-alternative", "nvidia-legacy-check", "nvidia-smi")
# The other nodes have no packages of a driver.
with_a_set = pytest.mark.testinfra_hosts("ansible://h100_nodes")


@pytest.fixture
def shown(host) -> dict:
    """Return what the host says that it shows."""
    return json.loads(host.check_output("accel-emulator show"))


def test_the_record_ties_each_serial_to_its_slot(host, shown) -> None:
    record = json.loads(host.file("/var/lib/accel/records/slots.json").content_string)
    # Ascend modules have no slot number of the vendor's (it says 0): the kernel's names them.
    name = "kernel_slot" if shown["vendor"] == "ascend" else "slot"
    recorded = {slot: [card["serial"] for card in cards] for slot, cards in record["slots"].items()}
    assert recorded == {card[name]: [card["serial"]] for card in shown["cards"]}
    assert record["unplaced"] == []


@with_a_set
def test_the_declared_versions_are_installed_held_and_pinned(host) -> None:
    told = host.check_output("dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\\n' " + " ".join(SET))
    assert told.splitlines() == [f"{name} {PINNED} hi " for name in SET]
    policy = host.check_output("apt-cache policy nvidia-smi")
    assert f"Candidate: {PINNED}" in policy and f"*** {PINNED} 1001" in policy
    # Without a newer one on offer, nothing would be forbidden.
    assert NEWER in policy


@with_a_set
def test_nothing_of_the_set_would_be_upgraded(host) -> None:
    assert not [line for line in host.check_output("apt-get -s dist-upgrade").splitlines() if "nvidia" in line]
    blacklist = host.check_output("apt-config dump Unattended-Upgrade::Package-Blacklist")
    assert all(f'"{name}$";' in blacklist.replace("\\", "") for name in SET)


@with_a_set
def test_module_library_and_tool_are_of_one_version(host) -> None:
    assert host.file("/sys/module/nvidia/version").content_string.strip() == VERSION
    library = host.check_output("readlink -f /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1")
    assert library.endswith(f"libnvidia-ml.so.{VERSION}")
    assert f"Driver Version: {VERSION}" in host.check_output("nvidia-smi")


@with_a_set
def test_the_real_tool_is_put_aside_and_the_emulated_one_answers_under_its_name(host) -> None:
    path = "/usr/lib/nvidia/current/nvidia-smi"
    assert host.check_output(f"dpkg-divert --truename {path}") == f"{path}.real"
    assert host.check_output(f"head -c 4 {path}.real").endswith("ELF")
    assert f"Driver Version: {VERSION}" in host.check_output("/usr/bin/nvidia-smi")


def not_passed(host) -> list[tuple]:
    """Return what the collection says of the host's driver stack and its locks that is no pass."""
    seen = host.ansible("accel.cluster.driver_stack_info", f"vendor=nvidia packages={','.join(SET)}", check=False)
    declared = {"driver_version": VERSION, "packages": dict.fromkeys(SET, ""), "fabric_manager": False}
    found = stack.judge_stack("host", seen, declared)
    assert {one["check"] for one in found} == {"device.driver_stack", "device.version_lock"}
    return [(one["hint"], one["verdict"], one["observed"]) for one in found if one["verdict"] != "pass"]


@with_a_set
def test_an_upgrade_is_tried_and_refused(host) -> None:
    assert not_passed(host) == []


@with_a_set
def test_a_removed_hold_is_the_one_thing_that_is_named(host) -> None:
    host.check_output("apt-mark unhold nvidia-smi")
    try:
        assert not_passed(host) == [("device.version_lock.not_held", "fail", ["nvidia-smi"])]
    finally:
        host.check_output("apt-mark hold nvidia-smi")
    assert not_passed(host) == []


@with_a_set
def test_a_library_that_was_upgraded_is_named_with_what_brought_it(host) -> None:
    install = "DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends --allow-change-held-packages"
    try:
        host.check_output(f"{install} {' '.join(f'{name}={NEWER}' for name in SET)}")
        # A device file of containers, where there is one, waits for the libraries to be of one piece with the module.
        named = [one for one in not_passed(host) if one[0].startswith("device.driver_stack.") and one[1] == "fail"]
        assert named == [("device.driver_stack.library_mismatch", "fail", NEWER.split("-", maxsplit=1)[0])]
        assert host.run("nvidia-smi").rc == 18
    finally:
        host.check_output(f"{install} --allow-downgrades {' '.join(f'{name}={PINNED}' for name in SET)}")
        host.check_output(f"apt-mark hold {' '.join(SET)}")
    assert not_passed(host) == []
    assert host.run("nvidia-smi").rc == 0
