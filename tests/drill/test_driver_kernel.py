# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kernel that comes behind our back, and a module that goes, on a host whose kernel is declared with its driver."""

from __future__ import annotations

import json

import pytest

HOST = "gpu-02"
KERNEL, NEWER = "6.1.0-50-amd64", "6.1.0-99-amd64"
STACK = "device.driver_stack"
# Beside the rehearsal's inventory, the set of the host: see tests/driver_kernel.
SET = ("--inventory=tests/driver_kernel/inventory",)
REMOVE = ("--extra-vars", '{"driver_kernel_removal_allowed": true}')


@pytest.fixture(scope="module")
def healthy(cluster):
    """Yield the state of a cluster with a host whose kernel is declared."""
    for playbook in ("tests/driver_kernel/packages.yml", "driver"):
        done = cluster.play(playbook, *SET, "--limit", HOST)
        assert done.rc == 0, done.output
    done, report = cluster.verify(*SET)
    assert done.rc == 0, done.output
    state = report.state()
    # In a container what is files is judged, not what is loaded.
    assert state[STACK, HOST, "next_boot"] == ("pass", "next_boot_ok", None)
    assert state[STACK, HOST, "fabric_manager"] == ("pass", "ok", None)
    yield state
    # The other drills know nothing of this set: what it brought stays, pinned is what the rehearsal declares. But the
    # fabric manager goes, which would make this host another than its sibling.
    done = cluster.play("driver", "--limit", HOST)
    assert done.rc == 0, done.output
    purge = "apt-get purge -qy --allow-change-held-packages nvidia-fabricmanager-535"
    assert cluster.on(HOST, f"DEBIAN_FRONTEND=noninteractive {purge}") == 0


def turned(before: dict, after: dict) -> dict:
    return {key: after.get(key) for key in before.keys() | after.keys() if after.get(key) != before.get(key)}


def test_a_kernel_that_moved_is_named_and_removed_when_that_is_allowed(cluster, healthy) -> None:
    install = "DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends"
    assert cluster.on(HOST, f"{install} linux-image-{NEWER}") == 0
    done, report = cluster.verify(*SET)
    assert turned(healthy, report.state()) == {(STACK, HOST, "next_boot"): ("fail", "kernel_moved", None)}
    first = report.findings[0]
    assert (first["check"], first["host"], first["observed"], first["expected"]) == (STACK, HOST, NEWER, KERNEL)
    assert done.rc != 0

    refused = cluster.play("driver", *SET, "--limit", HOST)
    assert refused.rc != 0
    words = f"kernel {NEWER} would boot instead of the pinned {KERNEL}: declare it, remove linux-image-{NEWER}, or"
    assert words in " ".join(refused.output.split())
    would = cluster.play("driver", *SET, "--limit", HOST, *REMOVE, "--check")
    assert would.rc == 0 and f"linux-image-{NEWER} 6.1.999-1+rehearsal -> (none)" in would.output, would.output
    assert cluster.on(HOST, f"test -e /boot/vmlinuz-{NEWER}") == 0

    allowed = cluster.play("driver", *SET, "--limit", HOST, *REMOVE)
    assert allowed.rc == 0, allowed.output
    assert cluster.on(HOST, f"test -e /boot/vmlinuz-{NEWER}") != 0
    _done, report = cluster.verify(*SET)
    assert report.state() == healthy


def test_a_module_that_is_gone_is_named_and_built_again(cluster, healthy) -> None:
    assert cluster.on(HOST, f"dkms uninstall nvidia-current/535.261.03 -k {KERNEL}") == 0
    done, report = cluster.verify(*SET)
    assert turned(healthy, report.state()) == {(STACK, HOST, "next_boot"): ("fail", "next_boot_without", None)}
    assert "dkms: nvidia-current/535.261.03 built" in report.findings[0]["message"]
    assert done.rc != 0
    built = cluster.play("driver", *SET, "--limit", HOST)
    assert built.recap()[HOST]["changed"] == 1, built.output
    _done, report = cluster.verify(*SET)
    assert report.state() == healthy


@pytest.mark.full
def test_a_container_says_that_it_needs_a_reboot_and_is_not_rebooted(cluster, healthy) -> None:
    other = ("--extra-vars", '{"cluster_driver_version": "535.1"}')
    told = cluster.play("driver", *SET, "--limit", HOST, *other)
    assert told.rc == 0 and told.recap()[HOST]["changed"] == 0, told.output
    words = f"{HOST} needs a reboot: module 535.261.03 is loaded, 535.1 is declared"
    assert words in " ".join(told.output.split())
    refused = cluster.play("driver", *SET, "--limit", HOST, *other, "--extra-vars", '{"driver_reboot_allowed": true}')
    assert refused.rc != 0
    assert "must not be rebooted: a container has no kernel of its own to boot" in " ".join(refused.output.split())


@pytest.mark.full
def test_nvidias_own_module_is_built_against_debians_headers(cluster, healthy) -> None:
    """Five modules, four minutes of two processors: in place of the small one that stands for them elsewhere."""
    more = ("nvidia-kernel-dkms", "nvidia-kernel-support", "firmware-nvidia-gsp")
    # The role's own list for the vendor, at the version of the rehearsal.
    own = ("--extra-vars", json.dumps({"driver_packages": {}, "driver_fabric_manager": "none"}))
    purge = "DEBIAN_FRONTEND=noninteractive apt-get purge -qy --allow-change-held-packages"
    assert cluster.on(HOST, f"{purge} nvidia-rehearsal-dkms nvidia-fabricmanager-535") == 0
    try:
        done = cluster.play("driver", *SET, "--limit", HOST, *own, limit_seconds=1500)
        assert done.rc == 0, done.output
        status = f"dkms status | grep -qx 'nvidia-current/535.261.03, {KERNEL}, x86_64: installed'"
        assert cluster.on(HOST, status) == 0
        for module in ("nvidia-current", "nvidia-current-uvm", "nvidia-current-peermem"):
            path = f"modinfo -k {KERNEL} -F filename {module} | grep -q ^/lib/modules/{KERNEL}/updates/dkms/"
            magic = f"modinfo -k {KERNEL} -F vermagic {module} | grep -q '^{KERNEL} '"
            version = f"modinfo -k {KERNEL} -F version {module} | grep -qx 535.261.03"
            assert cluster.on(HOST, f"{path} && {magic} && {version}") == 0, module
        again = cluster.play("driver", *SET, "--limit", HOST, *own)
        assert again.recap()[HOST]["changed"] == 0, again.output
        _done, report = cluster.verify(*SET, "--limit", HOST, *own)
        state = report.state()
        assert state[STACK, HOST, "next_boot"] == ("pass", "next_boot_ok", None)
        assert state["device.version_lock", HOST, HOST] == ("pass", "ok", None)
    finally:
        assert cluster.on(HOST, f"{purge} {' '.join(more)}") == 0
