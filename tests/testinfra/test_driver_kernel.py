# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host whose kernel is declared with its driver: by dpkg, apt, dkms and modinfo."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / ".cache/collections"))
from ansible_collections.accel.cluster.plugins.module_utils._accel import stack

testinfra_hosts = ["ansible://gpu-02"]

ROOT = Path(__file__).resolve().parents[2]
DECLARED = yaml.safe_load((ROOT / "tests/driver_kernel/inventory/host_vars/gpu-02/driver.yml").read_text("utf-8"))
SET = {**DECLARED["driver_packages"], **DECLARED["driver_kernel_packages"]}
VERSION, KERNEL, NEWER = "535.261.03", "6.1.0-50-amd64", "6.1.0-99-amd64"
META = {"linux-image-amd64": SET[f"linux-image-{KERNEL}"]}
INSTALL = "DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends"


def test_the_module_is_built_for_the_declared_kernel(host) -> None:
    assert (
        host.check_output("dkms status -m nvidia-current") == f"nvidia-current/{VERSION}, {KERNEL}, x86_64: installed"
    )
    told = host.check_output(f"modinfo -k {KERNEL} nvidia-current")
    assert re.search(r"(?m)^filename:\s+/lib/modules/6\.1\.0-50-amd64/updates/dkms/nvidia-current\.ko$", told)
    assert re.search(rf"(?m)^version:\s+{VERSION}$", told)
    assert re.search(rf"(?m)^vermagic:\s+{KERNEL} SMP ", told)


def test_kernel_headers_module_and_what_brings_kernels_are_pinned_and_held(host) -> None:
    held = host.check_output("apt-mark showhold").split()
    assert sorted(held) == sorted({**SET, **META})
    for name, version in {**SET, **META}.items():
        policy = host.check_output(f"apt-cache policy {name}")
        assert f"Installed: {version}\n" in policy and f"*** {version} 1001" in policy, policy
    # Without newer ones on offer nothing would be forbidden: one of these packages, one of Debian's security updates.
    assert "6.1.999-1+rehearsal 500" in host.check_output("apt-cache policy linux-image-amd64")
    assert not re.search("Inst linux-image", host.check_output("apt-get -s dist-upgrade"))


def test_the_other_driver_is_kept_from_the_cards(host) -> None:
    lines = host.file("/etc/modprobe.d/accel-driver.conf").content_string.splitlines()
    assert {"blacklist nouveau", "blacklist nova_core"} <= set(lines)


def test_the_fabric_manager_of_the_set_runs_where_there_are_switches(host) -> None:
    service = host.service("nvidia-fabricmanager")
    assert service.is_enabled and service.is_running


def seen(host) -> dict:
    return host.ansible("accel.cluster.driver_stack_info", f"vendor=nvidia packages={','.join(SET)}", check=False)


def not_passed(host) -> list[tuple]:
    found = stack.judge_stack("host", seen(host), {"driver_version": VERSION, "packages": SET})
    assert {"next_boot", "fabric_manager"} <= {one["subject"] for one in found}
    return [(one["hint"], one["subject"], one["observed"]) for one in found if one["verdict"] != "pass"]


def test_all_of_it_is_as_declared(host) -> None:
    assert not_passed(host) == []
    assert seen(host)["kernels"]["modules"][KERNEL]["signer"] == "DKMS module signing key"


def test_the_hold_of_what_brings_kernels_is_judged_too(host) -> None:
    host.check_output("apt-mark unhold linux-image-amd64")
    try:
        assert not_passed(host) == [("device.version_lock.not_held", "hold", ["linux-image-amd64"])]
    finally:
        host.check_output("apt-mark hold linux-image-amd64")


@pytest.fixture
def grub(host):
    """Return how GRUB's files are written, and take them away."""

    def write(default: str, saved: str = "") -> None:
        entries = "".join(
            f"    menuentry '{one}' $menuentry_id_option 'gnulinux-{one}' {{\n\tlinux /boot/vmlinuz-{one} ro\n}}\n"
            for one in (NEWER, KERNEL)
        )
        text = f"set default=\"{default}\"\nsubmenu 'Advanced' $menuentry_id_option 'adv' {{\n{entries}}}\n"
        host.run_expect([0], "mkdir -p /boot/grub")
        host.run_expect(
            [0], f"cat > /boot/grub/grub.cfg <<'X'\n{text}X\nprintf 'saved_entry={saved}\\n' > /boot/grub/grubenv"
        )

    yield write
    host.check_output("rm -rf /boot/grub")


def test_a_newer_kernel_without_module_is_named_unless_grub_boots_the_declared_one(host, grub) -> None:
    host.check_output(f"{INSTALL} linux-image-{NEWER}")
    try:
        assert not_passed(host) == [("device.driver_stack.kernel_moved", "next_boot", NEWER)]
        grub("adv>gnulinux-" + KERNEL)
        assert not_passed(host) == []
        grub("${saved_entry}", "1>1")
        assert not_passed(host) == [("device.driver_stack.next_boot_unknown", "next_boot", None)]
        grub("${saved_entry}", "0>1")
        assert not_passed(host) == []
        grub("0>0")
        assert not_passed(host) == [("device.driver_stack.kernel_moved", "next_boot", NEWER)]
    finally:
        host.check_output(f"DEBIAN_FRONTEND=noninteractive apt-get purge -qy linux-image-{NEWER}")
