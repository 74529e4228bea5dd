# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file of a dead card blocks whoever reads it: the modules end all the same, and say which one it was.

A named pipe that nobody writes to is such a file.
"""

from __future__ import annotations

import json
import os
import time

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.accel.cluster.plugins.module_utils._accel import judge, runner
from ansible_collections.accel.cluster.plugins.modules import accelerator_info, baseline_info, version_info

CARDS = ("0000:18:00.0", "0000:2a:00.0", "0000:3a:00.0")
FILES = {
    "vendor": "0x10de",
    "device": "0x2330",
    "class": "0x030200",
    "current_link_speed": "32.0 GT/s PCIe",
    "max_link_speed": "32.0 GT/s PCIe",
    "current_link_width": "16",
    "max_link_width": "16",
    "numa_node": "0",
}
SICK = CARDS[1]


class Paths(list):
    """Paths as the host has them."""

    def append(self, path):
        super().append(path[len(Rooted.root) :])


class Rooted(runner.Runner):
    """Reads below a folder what a host would have at its root; no program is installed."""

    root = ""

    def __init__(self):
        super().__init__()
        self.blocked = Paths()

    def which(self, name):
        return None

    def run(self, argv, timeout_seconds):
        return runner.Result(list(argv), 127, "", "not installed")

    def read_ahead(self, paths):
        super().read_ahead([self.root + path for path in paths])

    def read(self, path):
        return super().read(self.root + path)

    def read_bytes(self, path):
        return super().read_bytes(self.root + path)

    def glob(self, pattern):
        return [path[len(self.root) :] for path in super().glob(self.root + pattern)]

    def realpath(self, path):
        return super().realpath(self.root + path)[len(os.path.realpath(self.root)) :]


@pytest.fixture
def host(tmp_path, monkeypatch):
    """Give the modules a host with three cards; return the function that makes one of its files block."""
    monkeypatch.setattr(Rooted, "root", str(tmp_path))
    monkeypatch.setattr(runner, "READ_SECONDS", 0.5)
    for module in (accelerator_info, baseline_info, version_info):
        monkeypatch.setattr(module, "Runner", Rooted)

    def put(path, content):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"{content}\n")

    for address in CARDS:
        for name, content in FILES.items():
            put(f"sys/bus/pci/devices/{address}/{name}", content)
    put("sys/module/nvidia/version", "570.86.15")
    put("proc/sys/kernel/osrelease", "6.1.0-28-amd64")
    put("proc/sys/vm/swappiness", "10")
    put("etc/os-release", 'ID=debian\nVERSION_ID="12"')
    put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never")

    def block(path):
        (tmp_path / path).unlink()
        os.mkfifo(tmp_path / path)

    return block


def run(module, capsys, **options):
    """Run a module; return what it prints, without the folder of the test."""
    began = time.monotonic()
    with patch_module_args(options), pytest.raises(SystemExit) as ended:
        module.main()
    assert ended.value.code == 0
    assert time.monotonic() - began < 20
    return json.loads(capsys.readouterr().out.replace(Rooted.root, ""))


def test_a_host_that_answers_in_full_names_nothing(host, capsys):
    told = run(accelerator_info, capsys)
    assert (told["bus_count"], told["errors"], len(told["devices"])) == (3, [], 3)
    assert {device["link"]["width"] for device in told["devices"]} == {16}


def test_a_link_that_does_not_answer_is_unknown_and_the_other_cards_are_read(host, capsys):
    host(f"sys/bus/pci/devices/{SICK}/current_link_width")
    told = run(accelerator_info, capsys)
    # No vendor tool here: the cards are those of the bus.
    links = {device["pci_address"]: device["link"]["width"] for device in told["devices"]}
    assert links == {CARDS[0]: 16, SICK: None, CARDS[2]: 16}
    assert told["bus_count"] == 3
    (error,) = told["errors"]
    assert error.startswith(f"/sys/bus/pci/devices/{SICK}/current_link_width: no answer in time")
    declared = {"cluster_accelerator_vendor": "nvidia", "cluster_accelerator_count": 3}
    found = judge.judge_devices("box", told, declared)
    widths = {f["subject"]: f["verdict"] for f in found if f["check"] == "device.link_width"}
    assert widths[SICK] == "unknown"
    assert [f["verdict"] for f in found if f["check"] == "device.observation"] == ["unknown"]
    assert judge.verdict(found) != "pass"


def test_a_bridge_that_does_not_answer_is_named_by_its_cards(host, capsys, tmp_path):
    bus = tmp_path / "sys/bus/pci/devices"
    bridge = tmp_path / "sys/devices/pci0000:15/0000:15:01.0"
    bridge.mkdir(parents=True)
    for name, content in {**FILES, "class": "0x060400"}.items():
        (bridge / name).write_text(f"{content}\n")
    (bus / SICK).rename(bridge / SICK)
    (bus / SICK).symlink_to(bridge / SICK)
    (bus / bridge.name).symlink_to(bridge)
    bridges = []
    for _before_and_after in range(2):
        told = run(accelerator_info, capsys)
        bridges.append({device["pci_address"]: device["link"]["unread_hop"] for device in told["devices"]})
        (bridge / "max_link_speed").unlink()
        os.mkfifo(bridge / "max_link_speed")
    assert bridges == [dict.fromkeys(CARDS), {**dict.fromkeys(CARDS), SICK: bridge.name}]


def test_a_function_that_does_not_tell_whose_it_is_leaves_the_number_unknown(host, capsys):
    host(f"sys/bus/pci/devices/{SICK}/vendor")
    told = run(accelerator_info, capsys)
    assert told["bus_count"] is None
    assert {device["pci_address"] for device in told["devices"]} == {CARDS[0], CARDS[2]}
    assert told["errors"] == [f"/sys/bus/pci/devices/{SICK}/vendor: no answer in time; not read either: device, class"]


def test_a_silent_card_whose_files_block_is_hung(host, capsys, monkeypatch):
    """The tool answers, but not for this card: what its files do says why."""
    monkeypatch.setattr(Rooted, "which", lambda self, name: "/usr/bin/nvidia-smi" if name == "nvidia-smi" else None)
    host(f"sys/bus/pci/devices/{SICK}/max_link_width")
    told = run(accelerator_info, capsys)
    reasons = {one["pci_address"]: one["reason"] for one in told["unanswered"]}
    assert reasons[SICK] == "hung"
    assert reasons[CARDS[0]] is None


@pytest.mark.parametrize("path", ["sys/module/nvidia/version", "proc/sys/kernel/osrelease", "etc/os-release"])
def test_a_version_that_does_not_answer_is_there_and_not_known(host, capsys, path):
    host(path)
    told = run(version_info, capsys, observation={"drivers": [{"vendor": "nvidia"}]})
    rows = {row["source"]: row["version"] for row in told["versions"] if row["source"]}
    assert rows.pop(f"/{path}") is None
    assert None not in {rows[source] for source in rows if source != "packages"}
    assert any(error.startswith(f"/{path}: no answer in time") for error in told["errors"])


def test_an_image_that_does_not_answer_is_not_no_image(host, capsys, tmp_path):
    (tmp_path / "etc/cloud").mkdir()
    (tmp_path / "etc/cloud/build.info").touch()
    host("etc/cloud/build.info")
    told = run(version_info, capsys, observation={"drivers": []})
    (row,) = [row for row in told["versions"] if row["component"] == "image"]
    assert (row["version"], row["source"]) == (None, "/etc/cloud/build.info")


def test_the_baseline_ends_too(host, capsys):
    host("proc/sys/vm/swappiness")
    told = run(baseline_info, capsys, kernel_parameters=["vm.swappiness", "kernel.osrelease"])
    assert told["kernel_parameters"] == {"vm.swappiness": None, "kernel.osrelease": "6.1.0-28-amd64"}
    assert told["transparent_hugepages"] == "madvise"
    assert "/proc/sys/vm/swappiness: no answer in time" in told["errors"]
