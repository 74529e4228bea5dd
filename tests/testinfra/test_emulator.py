# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The emulated cards, as real programs on the hosts meet them; faults come and go without a trace."""

from __future__ import annotations

import json
import re

import pytest

# One host a vendor: a second one of a profile differs in serials only.
testinfra_hosts = ["ansible://gpu-01", "ansible://gpu-03", "ansible://npu-01"]

# What is in a slot by the profile's design, written down once more: vendor -> (slot, address, port above, kernel slot).
PLACES = {
    "nvidia": ("SXM5", "0000:ba:00.0", "0000:b9:01.0", 5),
    "amd": ("OAM5", "0000:a6:00.0", "0000:a5:01.0", 25),
    "ascend": ("NPU5", "0000:42:00.0", "0000:40:02.0", 5),
}
LISTINGS = {"nvidia": "nvidia-smi -L", "amd": "amd-smi list", "ascend": "npu-smi info"}
# One card alone, by its number in the tool.
ALONE = {"nvidia": "nvidia-smi -L -i {}", "amd": "amd-smi list -g {}", "ascend": "npu-smi info -t health -i {}"}


# Host -> what it shows when it is healthy: the same for all tests, and each question is a login.
_SHOWN: dict[str, dict] = {}


@pytest.fixture
def shown(host) -> dict:
    """Return what the healthy host says that it shows."""
    name = host.backend.get_pytest_id()
    if name not in _SHOWN:
        _SHOWN[name] = json.loads(host.check_output("accel-emulator show"))
        assert _SHOWN[name]["faults"] == [], "something before these tests left a fault behind"
    return _SHOWN[name]


@pytest.fixture
def inject(host):
    """Return a function that injects a fault; leave the host healthy."""

    def run(fault: str, *more: str) -> dict:
        return json.loads(host.check_output(f"accel-emulator inject --fault {fault} {' '.join(more)}"))

    yield run
    assert json.loads(host.check_output("accel-emulator heal"))["faults"] == []


def ask(host, command: str, limit: str = "-s KILL 20") -> tuple[int, str]:
    """Run a command that may hang; return its exit status and all it said.

    The status comes as text: ssh has no way to hand on that of a killed program, nor 255.
    """
    told = host.run(f"timeout {limit} {command} 2>&1; echo status=$?").stdout
    said, _unused, status = told.rpartition("status=")
    return int(status), said


def test_the_host_is_healthy_and_the_service_will_bring_the_cards_back(host) -> None:
    service = host.service("accel-emulator.service")
    assert service.is_enabled
    assert service.is_running
    assert host.check_output("systemctl is-system-running") == "running"


def test_lspci_names_the_card_and_its_slot(host, shown) -> None:
    slot, address, port, number = PLACES[shown["vendor"]]
    card = host.check_output(f"lspci -D -vv -s {address}")
    names = {
        "nvidia": "NVIDIA Corporation GH100",
        "amd": r"\[AMD/ATI\] ",
        "ascend": "Huawei Technologies Co., Ltd. Device d802",
    }
    assert re.search(names[shown["vendor"]], card)
    assert re.search(r"LnkSta:\s+Speed 2\.5GT/s \(downgraded\), Width x16", card)
    named = host.check_output(f"lspci -D -vv -s {port if shown['vendor'] == 'amd' else address}")
    assert f"\tPhysical Slot: {number}\n" in named
    assert {one["slot"]: one["address"] for one in shown["cards"]}[slot] == address


def test_the_path_of_a_card_names_every_bridge(host, shown) -> None:
    _unused, address, port, _unused = PLACES[shown["vendor"]]
    path = host.check_output(f"readlink -f /sys/bus/pci/devices/{address}").split("/")
    assert path[-2:] == [port, address]
    assert path[:4] == ["", "sys", "bus", "pci"]
    above = "/".join(path[:-1])
    told = host.check_output(f"cat {above}/max_link_width {above}/secondary_bus_number").split()
    assert told == ["16", str(int(address.split(":")[1], 16))]


def test_dmidecode_prints_the_slots(host, shown) -> None:
    slot, address, _unused, _unused = PLACES[shown["vendor"]]
    told = host.check_output("dmidecode -t slot").split("\n\n")
    (entry,) = [one for one in told if f"\tDesignation: {slot}\n" in one]
    assert f"\tBus Address: {address}" in entry
    assert host.check_output("dmidecode -s system-product-name").startswith("AR-8")


def test_the_tool_lists_every_card(host, shown) -> None:
    told = host.check_output(LISTINGS[shown["vendor"]])
    for card in shown["cards"]:
        assert (card["uuid"] if shown["vendor"] != "ascend" else card["address"].upper()) in told


def test_device_nodes_lead_to_no_driver(host, shown) -> None:
    names = {
        "nvidia": ["nvidia0", "nvidia7", "nvidiactl", "nvidia-uvm"],
        "amd": ["kfd", "dri/renderD128", "dri/renderD135", "dri/card1"],
        "ascend": ["davinci0", "davinci7", "davinci_manager", "devmm_svm", "hisi_hdc"],
    }
    nodes = [f"/dev/{name}" for name in names[shown["vendor"]]]
    assert host.check_output(f"stat -c '%F %Hr:%Lr' {' '.join(nodes)}").splitlines() == [
        "character special file 1:3"
    ] * len(nodes)


def test_the_driver_is_there_beside_the_machines_own_modules(host, shown) -> None:
    files = {
        "nvidia": ("/sys/module/nvidia/version", "/proc/driver/nvidia/version"),
        "amd": ("/sys/module/amdgpu/version", "/sys/class/kfd/kfd/topology/nodes/2/gpu_id"),
        "ascend": ("/usr/local/Ascend/driver/version.info", "/sys/module/drv_davinci_intf_host/initstate"),
    }
    first, second = files[shown["vendor"]]
    assert shown["driver_version"] in host.file(first).content_string
    assert host.file(second).exists
    assert host.file("/sys/class/net/lo").exists
    assert host.file("/sys/module/kernel").exists or host.file("/sys/module/8250").exists


def test_applying_again_changes_nothing(host, shown) -> None:
    assert json.loads(host.check_output("accel-emulator apply"))["changed"] is False
    before = host.check_output("findmnt -rn -o TARGET | sort")
    host.check_output("systemctl restart accel-emulator.service")
    assert host.check_output("findmnt -rn -o TARGET | sort") == before


def test_what_was_tampered_with_is_put_right(host, shown) -> None:
    _unused, address, _unused, _unused = PLACES[shown["vendor"]]
    host.check_output(f"echo 1 > /sys/bus/pci/devices/{address}/current_link_width")
    host.check_output("umount -l /sys/firmware")
    assert json.loads(host.check_output("accel-emulator apply --check"))["changed"] is True
    assert json.loads(host.check_output("accel-emulator apply"))["changed"] is True
    assert host.file(f"/sys/bus/pci/devices/{address}/current_link_width").content_string == "16\n"
    assert host.check_output("dmidecode -s system-product-name").startswith("AR-8")
    assert json.loads(host.check_output("accel-emulator apply"))["changed"] is False


def test_without_the_mark_of_a_test_host_nothing_is_shown(host, shown) -> None:
    host.check_output("mv /etc/accel/rehearsal /etc/accel/rehearsal.away")
    try:
        done = host.run("accel-emulator apply")
        assert (done.rc, "/etc/accel/rehearsal is missing" in done.stderr) == (1, True)
    finally:
        host.check_output("mv /etc/accel/rehearsal.away /etc/accel/rehearsal")


def test_a_fault_is_injected_once_and_healed_without_a_trace(host, shown, inject) -> None:
    slot, _unused, _unused, number = PLACES[shown["vendor"]]
    before = host.file("/etc/accel/emulator.yml").content_string
    assert inject("card_replaced", "--slot", slot, "--check")["changed"] is True
    assert host.file("/etc/accel/emulator.yml").content_string == before
    assert inject("card_replaced", "--slot", slot)["changed"] is True
    by_number = str(number) if shown["vendor"] == "nvidia" else slot.lower()
    assert inject("card_replaced", "--slot", by_number)["changed"] is False
    assert json.loads(host.check_output("accel-emulator heal --fault card_replaced"))["changed"] is True
    assert json.loads(host.check_output("accel-emulator heal"))["changed"] is False
    assert host.file("/etc/accel/emulator.yml").content_string == before
    assert json.loads(host.check_output("accel-emulator show"))["cards"] == shown["cards"]


def test_a_wrong_fault_is_refused_and_nothing_changes(host, shown) -> None:
    before = host.file("/etc/accel/emulator.yml").content_string
    for asked, says in (
        ("--fault melted --slot 1", "fault: 'melted' is unknown; accepted: card_lost"),
        ("--fault card_lost --slot PSU1", "slot: 'PSU1' names no card; accepted: "),
        ("--fault card_lost", "fault: card_lost takes one slot, given: none"),
    ):
        done = host.run(f"accel-emulator inject {asked}")
        assert (done.rc, done.stdout) == (1, "")
        assert says in done.stderr
    assert host.file("/etc/accel/emulator.yml").content_string == before


def test_a_lost_card_is_missing_from_the_tool_and_not_from_the_bus(host, shown, inject) -> None:
    slot, address, _unused, _unused = PLACES[shown["vendor"]]
    inject("card_lost", "--slot", slot)
    status, said = ask(host, LISTINGS[shown["vendor"]])
    if shown["vendor"] == "nvidia":
        assert status == 15
        assert "GPU0000:BA:00.0: GPU is lost." in said
    else:
        assert status == 0
        assert (address if shown["vendor"] == "amd" else address.upper()) not in said
    assert ask(host, ALONE[shown["vendor"]].format(0))[0] == 0
    assert host.check_output(f"lspci -D -s {address}")
    assert host.file(f"/sys/bus/pci/devices/{address}/current_link_width").content_string == "63\n"
    host.check_output("accel-emulator heal")
    assert ask(host, LISTINGS[shown["vendor"]])[0] == 0


def test_a_hung_card_hangs_the_tool_and_no_other_card(host, shown, inject) -> None:
    slot, address, _unused, _unused = PLACES[shown["vendor"]]
    (sick,) = [card["index"] for card in shown["cards"] if card["address"] == address]
    inject("card_hung", "--slot", slot)
    for command in (LISTINGS[shown["vendor"]], ALONE[shown["vendor"]].format(sick)):
        # TERM first, as a careful caller would: it does not help.
        assert ask(host, command, "-s TERM -k 0.2 2") == (137, "")
    assert ask(host, ALONE[shown["vendor"]].format(0))[0] == 0
    host.check_output("accel-emulator heal")
    assert ask(host, LISTINGS[shown["vendor"]])[0] == 0


def test_swapped_cards_exchange_serials(host, shown, inject) -> None:
    slot, other = PLACES[shown["vendor"]][0], PLACES[shown["vendor"]][0][:3] + "6"
    inject("cards_swapped", "--slot", other, "--slot-b", slot)
    told = {card["slot"]: card for card in json.loads(host.check_output("accel-emulator show"))["cards"]}
    plain = {card["slot"]: card for card in shown["cards"]}
    assert (told[slot]["serial"], told[other]["serial"]) == (plain[other]["serial"], plain[slot]["serial"])
    board = {
        "nvidia": "nvidia-smi --query-gpu=serial --format=csv,noheader -i {}",
        "amd": "amd-smi static --board -g {}",
        "ascend": "npu-smi info -t board -i {}",
    }[shown["vendor"]]
    assert plain[other]["serial"] in host.check_output(board.format(plain[slot]["index"]))


def test_a_narrow_link_shows_in_lspci_and_in_sysfs(host, shown, inject) -> None:
    slot, address, port, _unused = PLACES[shown["vendor"]]
    inject("link_downtrained", "--slot", slot)
    files = [f"/sys/bus/pci/devices/{one}/{name}_link_width" for one in (address, port) for name in ("current", "max")]
    assert host.check_output(f"cat {' '.join(files)}").split() == ["8", "16", "8", "16"]
    assert re.search(r"LnkSta:.*Width x8 \(downgraded\)", host.check_output(f"lspci -D -vv -s {address}"))


def test_a_mismatched_driver_is_no_driver_to_the_tool(host, shown, inject) -> None:
    inject("driver_library_mismatch")
    status, said = ask(host, LISTINGS[shown["vendor"]])
    rc, says = {
        "nvidia": (18, "Driver/library version mismatch\nNVML library version: 535.309\n"),
        "amd": (255, "driver not initialized (amdgpu not found in modules)"),
        "ascend": (1, "dcmi module initialize failed. ret is -8005"),
    }[shown["vendor"]]
    assert status == rc
    assert says in said
    assert host.file("/sys/module/amdgpu").exists is False
    host.check_output("accel-emulator heal")
    assert ask(host, LISTINGS[shown["vendor"]])[0] == 0
    assert host.file("/sys/module/amdgpu/version").exists is (shown["vendor"] == "amd")
