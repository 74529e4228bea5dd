# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One host gets the cards of one vendor after the other, and ``accelctl`` there looks at real files with real commands.

What it must say comes from the emulator's own list of its cards, and from the table below, worked out by hand. The host
has its own cards back when this is over.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass

import pytest
from conftest import INSTANCE, ROOT

HOST = "npu-01"
STATE = "/etc/accel/emulator.yml"


@dataclass
class Vendor:
    """A profile of the emulator: how many cards, what identifies one, one slot with its name and the source of it.

    ``node`` is a card's device node below ``/dev`` by its number, "" where nothing ties one to a card.
    """

    name: str
    count: int
    identity: str
    slot: str
    label: str
    source: str
    node: str
    width: int = 16
    healthy: str = "ok"


RENDER = "dri/renderD{render}"
VENDORS = {
    "gaudi_hl225_8": Vendor("gaudi", 8, "uuid", "OAM4", "OAM4", "vendor", "accel/accel{index}"),
    "intel_max1550_8": Vendor("intel", 8, "uuid", "OAM4", "OAM4", "vendor", RENDER),
    "hygon_k100_8": Vendor("hygon", 8, "uuid", "DCU5", "5", "sysfs", RENDER),
    "iluvatar_biv150s_8": Vendor("iluvatar", 8, "uuid", "GPU5", "6", "sysfs", "iluvatar{index}"),
    "mthreads_s5000_8": Vendor("mthreads", 8, "uuid", "GPU5", "5", "vendor", RENDER),
    "metax_c500_8": Vendor("metax", 8, "address", "GPU5", "5", "sysfs", RENDER),
    "cambricon_mlu370_8": Vendor("cambricon", 8, "address", "MLU5", "5", "sysfs", "cambricon_dev{index}"),
    "enflame_s60_8": Vendor("enflame", 8, "uuid", "GCU5", "5", "sysfs", "gcu{index}"),
    "kunlunxin_p800_8": Vendor("kunlunxin", 8, "serial", "OAM4", "24", "sysfs", ""),
    "neuron_trn2_16": Vendor("neuron", 16, "serial", "ND13", "ND13", "dmi", "neuron{index}"),
    "tpu_v6e_4": Vendor("tpu", 4, "address", "TPU2", "TPU2", "dmi", "vfio/{index}", healthy="unknown"),
    "denglin_ks38_8": Vendor("denglin", 8, "uuid", "GPU5", "6", "sysfs", "", width=4),
    "tenstorrent_p150_8": Vendor("tenstorrent", 8, "uuid", "PCIE5", "5", "sysfs", "tenstorrent/{index}"),
}
# Those of which one card can be asked alone, so that a hung one hides no other.
ALONE = ("gaudi", "intel", "hygon", "iluvatar", "mthreads", "metax")


def on_host(command: str, text: str = "") -> str:
    """Run a shell command on the host and return what it prints; it must end well."""
    config = ROOT / ".cache" / INSTANCE / "ssh/config"
    done = subprocess.run(
        ["ssh", "-F", str(config), HOST, command], input=text, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def look(profile: str, fault: str = "", slot: str = "", limit_seconds: int = 30) -> tuple[dict, dict]:
    """Give the host the cards of a profile; return what the emulator says it shows, and what accelctl sees."""
    fault_lines = f"faults:\n  - fault: {fault}\n    slot: {slot}\n" if fault else "faults: []\n"
    state = f"schema: 1\nprofile: {profile}\nseed: {HOST}\n{fault_lines}"
    # accelctl ends with 3 where it can't tell something, which a lost card is a case of.
    asked = f"accelctl devices --json --timeout {limit_seconds} || [ $? = 3 ]"
    told = on_host(f"cat >{STATE} && accel-emulator apply >/dev/null && accel-emulator show && {{ {asked}; }}", state)
    shown, _blank, rest = told.partition("\n")
    return json.loads(shown), json.loads(rest)


@pytest.fixture(scope="module", autouse=True)
def own_cards(cluster):
    """Put the host's own cards back; it must then say what it said before."""
    command = "accelctl devices --json"
    state, before = on_host(f"cat {STATE}"), json.loads(on_host(command))
    yield
    on_host(f"cat >{STATE} && accel-emulator apply", state)
    assert json.loads(on_host(command)) == before
    assert json.loads(on_host("accel-emulator apply"))["changed"] is False


@pytest.mark.parametrize("profile", VENDORS)
def test_accelctl_sees_the_cards_of_every_vendor(profile: str) -> None:
    vendor = VENDORS[profile]
    shown, told = look(profile)
    assert told["count"] == told["bus_count"] == vendor.count
    assert (told["unanswered"], told["errors"]) == ([], [])
    assert {tool["state"] for tool in told["tools"]} == {"ok"}
    # What Denglin's kernel module is called nobody knows, and that of TPU is the kernel's own, without a version.
    (driver,) = told["drivers"]
    # Of this one nobody knows the name of a module.
    assert driver["loaded"] is (None if vendor.name == "denglin" else True)
    assert driver["kernel_version"] == (None if vendor.name == "tpu" else shown["driver_version"])
    devices = {device["pci_address"]: device for device in told["devices"]}
    assert len(devices) == len(shown["cards"]) == vendor.count
    for card in shown["cards"]:
        device = devices[card["address"]]
        assert (device["vendor"], device["model"], device["identity"]) == (vendor.name, card["model"], vendor.identity)
        if vendor.identity != "address":
            assert device[vendor.identity] == card[vendor.identity]
        link = {key: device["link"][key] for key in card["link"]}
        assert (link, link["width"], device["link"]["limited_by"]) == (card["link"], vendor.width, None)
        assert device["health"]["state"] == vendor.healthy
        node = vendor.node.format(index=card["index"], render=128 + card["index"])
        assert (f"/dev/{node}" in device["device_nodes"]) is bool(vendor.node)
    (address,) = [card["address"] for card in shown["cards"] if card["slot"] == vendor.slot]
    slot = devices[address]["slot"]
    assert (slot["label"], slot["source"]) == (vendor.label, vendor.source)
    assert len({device["slot"]["label"] for device in told["devices"]}) == vendor.count


def silent(told: dict) -> dict[str, str]:
    """Return the reason, or the state where there is none, of each card that did not answer."""
    return {one["pci_address"]: one["reason"] or one["state"] for one in told["unanswered"]}


@pytest.mark.full
@pytest.mark.parametrize("profile", VENDORS)
def test_a_fault_shows_on_its_card(profile: str) -> None:
    vendor = VENDORS[profile]
    shown, healthy = look(profile)
    (address,) = [card["address"] for card in shown["cards"] if card["slot"] == vendor.slot]

    _shown, lost = look(profile, "card_lost", vendor.slot)
    assert (lost["bus_count"], lost["count"]) == (vendor.count, vendor.count - 1)
    assert list(silent(lost)) == [address]

    # Long enough for eight tools that start at the same time on two busy processors.
    _shown, hung = look(profile, "card_hung", vendor.slot, limit_seconds=10)
    assert "hung" in {tool["state"] for tool in hung["tools"]}
    assert (list(silent(hung)) == [address]) is (vendor.name in ALONE)
    assert len(silent(hung)) == (1 if vendor.name in ALONE else vendor.count)

    _shown, narrow = look(profile, "link_downtrained", vendor.slot)
    widths = {device["pci_address"]: device["link"]["width"] for device in narrow["devices"]}
    assert widths.pop(address) == vendor.width // 2
    assert set(widths.values()) == {vendor.width}

    _shown, replaced = look(profile, "card_replaced", vendor.slot)
    serials = [{one["pci_address"]: one["serial"] for one in told["devices"]} for told in (healthy, replaced)]
    if vendor.identity == "address":
        assert serials[0] == serials[1]
    else:
        assert serials[0][address] != serials[1][address]


@pytest.mark.full
@pytest.mark.parametrize(
    "profile", ["gaudi_hl225_8", "iluvatar_biv150s_8", "cambricon_mlu370_8", "neuron_trn2_16", "denglin_ks38_8"]
)
def test_a_memory_error_is_counted_on_its_card(profile: str) -> None:
    vendor = VENDORS[profile]
    shown, told = look(profile, "ecc", vendor.slot)
    (address,) = [card["address"] for card in shown["cards"] if card["slot"] == vendor.slot]
    counts = {device["pci_address"]: device["ecc"]["uncorrected_volatile"] for device in told["devices"]}
    assert {place for place, count in counts.items() if count} == {address}
    assert {device["pci_address"] for device in told["devices"] if device["health"]["state"] != "ok"} == {address}


@pytest.mark.full
@pytest.mark.parametrize("profile", ["gaudi_hl225_8", "denglin_ks38_8"])
def test_a_slowed_card_says_why(profile: str) -> None:
    vendor = VENDORS[profile]
    shown, told = look(profile, "throttle", vendor.slot)
    (address,) = [card["address"] for card in shown["cards"] if card["slot"] == vendor.slot]
    slowed = {device["pci_address"]: device["readings"]["throttles"] for device in told["devices"]}
    assert slowed.pop(address) == ["hardware", "power_brake"]
    assert all(reasons == [] for reasons in slowed.values())
