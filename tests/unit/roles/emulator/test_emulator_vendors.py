# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Vendors of the catalogue: what the collection observes of their emulated hosts, field by field with the state."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from accel_emulator import catalogue, state
from ansible_collections.accel.cluster.plugins.module_utils._accel import pci, registry
from emulated import Emulated, by_address


@dataclass
class Expected:
    """What a vendor's tool tells, by its documents and recordings; ``told`` are the fields that it has at all.

    ``slot`` and ``address`` are one card's, ``label`` how the collection calls its place and by which source.
    ``alone``: one card can be asked by itself. ``shares``: chips of one board have one serial.
    """

    vendor: str
    count: int
    slot: str
    address: str
    other: str
    label: tuple[str, str]
    told: set[str] = field(default_factory=set)
    alone: bool = False
    shares: int = 1
    healthy: str = "ok"
    width: int = 16
    module: str = ""


IDS = {"index", "model", "serial", "uuid", "memory_bytes", "firmware_version", "driver_version"}
HOSTS = {
    "gaudi_hl225_8": Expected(
        "gaudi", 8, "OAM4", "0000:c7:00.0", "OAM0", ("OAM4", "vendor"), IDS, alone=True, module="habanalabs"
    ),
    "intel_max1550_8": Expected(
        "intel", 8, "OAM4", "0000:c7:00.0", "OAM0", ("OAM4", "vendor"), IDS, alone=True, module="i915"
    ),
    "hygon_k100_8": Expected(
        "hygon", 8, "DCU5", "0000:92:00.0", "DCU3", ("5", "sysfs"), IDS, alone=True, module="hydcu"
    ),
    "iluvatar_biv150s_8": Expected(
        "iluvatar", 8, "GPU5", "0000:a7:00.0", "GPU0", ("6", "sysfs"), IDS, alone=True, shares=2, module="iluvatar"
    ),
    "mthreads_s5000_8": Expected(
        "mthreads", 8, "GPU5", "0000:92:00.0", "GPU3", ("5", "vendor"), IDS, alone=True, module="mtgpu"
    ),
    "metax_c500_8": Expected(
        "metax", 8, "GPU5", "0000:92:00.0", "GPU3", ("5", "sysfs"), IDS - {"serial", "uuid"}, alone=True, module="metax"
    ),
    "cambricon_mlu370_8": Expected(
        "cambricon", 8, "MLU5", "0000:92:00.0", "MLU3", ("5", "sysfs"), IDS - {"serial", "uuid"}, module="cambricon_drv"
    ),
    "enflame_s60_8": Expected(
        "enflame", 8, "GCU5", "0000:92:00.0", "GCU3", ("5", "sysfs"), IDS - {"firmware_version"}, module="enflame"
    ),
    "kunlunxin_p800_8": Expected(
        "kunlunxin", 8, "OAM4", "0000:c7:00.0", "OAM0", ("24", "sysfs"),
        {"model", "serial", "memory_bytes", "driver_version"}, module="kunlun",
    ),
    "neuron_trn2_16": Expected(
        "neuron", 16, "ND13", "0000:a1:00.0", "ND2", ("ND13", "dmi"),
        {"index", "model", "serial", "memory_bytes", "driver_version"}, module="neuron",
    ),
    "tpu_v6e_4": Expected(
        "tpu", 4, "TPU2", "0000:91:00.0", "TPU0", ("TPU2", "dmi"), {"index", "model"}, healthy="unknown",
        module="vfio_pci",
    ),
    "denglin_ks38_8": Expected(
        "denglin", 8, "GPU5", "0000:a7:00.0", "GPU0", ("6", "sysfs"), IDS, shares=4, width=4
    ),
    "tenstorrent_p150_8": Expected(
        "tenstorrent", 8, "PCIE5", "0000:92:00.0", "PCIE3", ("5", "sysfs"), IDS - {"memory_bytes"},
        module="tenstorrent",
    ),
}  # fmt: skip
NAMELESS = [name for name, one in HOSTS.items() if not {"serial", "uuid"} & one.told]


@pytest.fixture(params=sorted(HOSTS))
def profile(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    """Return a function: profile -> its healthy host and what is observed of it, made once for all tests."""
    made: dict = {}

    def make(name: str):
        if name not in made:
            shown = Emulated(tmp_path_factory.mktemp(name), name)
            made[name] = shown, shown.observe()
        return made[name]

    return make


def query(shown, vendor: str):
    """Return the answer of the vendor file alone: without what the probe adds from the bus."""
    one = registry.VENDORS[vendor]
    functions = [function for function in pci.functions(shown, "/sys/bus/pci") if one.owns(function)]
    return one.query(shown, functions, 1)


def fields(host: state.Host, card: state.Card) -> dict:
    return {
        "index": card.index,
        "model": card.model,
        "serial": card.serial,
        "uuid": card.uuid,
        "memory_bytes": card.memory_mib << 20,
        "firmware_version": card.firmware_version,
        "driver_version": host.driver_version,
    }


def test_every_vendor_of_the_collection_has_an_emulated_host() -> None:
    emulated = {one["vendor"] for one in catalogue.PROFILES.values()}
    assert emulated | {"nvidia", "amd", "ascend"} == set(registry.VENDORS)
    assert set(HOSTS) == set(catalogue.PROFILES)
    assert {one.vendor for one in HOSTS.values()} == set(catalogue.MAKERS)


def assert_told(shown, expected: Expected, told: set[str]) -> None:
    answer = query(shown, expected.vendor)
    assert (answer.count, answer.errors, answer.lost, answer.hung) == (expected.count, [], [], [])
    assert [tool.state for tool in answer.tools] == ["ok"] * len(answer.tools)
    devices = {device.pci_address: device for device in answer.devices}
    assert len(devices) == expected.count
    for card in shown.host.cards:
        device = devices[card.address]
        for name, value in fields(shown.host, card).items():
            assert getattr(device, name) == (value if name in told else None), (card.slot, name)


def test_the_tool_tells_each_field_as_the_state_has_it(healthy, profile) -> None:
    assert_told(healthy(profile)[0], HOSTS[profile], HOSTS[profile].told)


# Releases with another form than that of the profile: what they tell then.
RELEASES = [
    ("gaudi_hl225_8", "1.12.1-cb1a2c3", {}, IDS),
    ("gaudi_hl225_8", "1.20.0-ab12cd3", {}, IDS),
    ("hygon_k100_8", "6.3.8-V1.9.2", {}, IDS),
    ("iluvatar_biv150s_8", "4.2.0", {}, IDS - {"firmware_version"}),
    ("mthreads_s5000_8", "2.7.0", {}, IDS - {"serial", "uuid", "firmware_version"}),
    ("mthreads_s5000_8", "5.1.0-server", {}, IDS),
    ("metax_c500_8", "3.0.11", {}, IDS - {"serial", "uuid"}),
    ("metax_c500_8", "3.8.1", {}, IDS - {"serial", "uuid"}),
    ("enflame_s60_8", "1.2.0.301", {}, IDS - {"uuid"}),
    ("kunlunxin_p800_8", "515.58", {}, {"index", "model", "memory_bytes", "driver_version"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "version", "more", "told"), RELEASES)
def test_other_releases_tell_what_they_have(show, name, version, more, told) -> None:
    shown = show(name, driver_version=version, **more)
    if (name, version[:2]) == ("mthreads_s5000_8", "2."):
        # Its refusal of --json is an error, and the table makes up for it.
        answer = query(shown, "mthreads")
        assert (answer.count, [tool.state for tool in answer.tools]) == (8, ["ok"])
        assert {device.serial for device in answer.devices} == {None}
        return
    if version == "515.58":
        shown_answer = query(shown, "kunlunxin")
        assert [(tool.name, tool.state) for tool in shown_answer.tools] == [("xpu_smi", "absent"), ("xpu-smi", "ok")]
        assert (shown_answer.count, shown_answer.errors) == (8, [])
        assert {device.ecc.uncorrected_volatile for device in shown_answer.devices} == {0}
        return
    assert_told(shown, HOSTS[name], told)


def test_the_oldest_cnmon_names_no_card(show) -> None:
    shown = show("cambricon_mlu370_8", driver_version="4.20.11")
    answer = query(shown, "cambricon")
    assert (answer.count, answer.errors) == (8, [])
    # Where there are as many rows as cards, what all say alike is each card's.
    assert {device.model for device in answer.devices} == {"MLU370-X8"}
    assert {device.index for device in answer.devices} == {None}


def test_a_healthy_host_is_whole(healthy, profile) -> None:
    expected = HOSTS[profile]
    shown, told = healthy(profile)
    assert (told.count, told.bus_count, told.unanswered, told.errors) == (expected.count, expected.count, [], [])
    (driver,) = told.drivers
    assert (driver.vendor, driver.loaded) == (expected.vendor, True if expected.module else None)
    assert driver.kernel_version == (None if expected.vendor == "tpu" else shown.host.driver_version)
    devices = by_address(told)
    for card in shown.host.cards:
        device = devices[card.address]
        assert device.vendor == expected.vendor
        assert device.pci_id == card.pci_id
        assert device.numa_node == card.numa_node
        assert device.health.state == expected.healthy, device.health
        link = device.link
        assert (link.speed_gts, link.width) == (card.link_speed_gts, expected.width)
        assert (link.max_speed_gts, link.max_width, link.limited_by) == (card.link_speed_gts, expected.width, None)
    slot = devices[expected.address].slot
    assert (slot.label, slot.source) == expected.label
    labels = {device.slot.label for device in told.devices}
    assert len(labels) == expected.count
    assert None not in labels


# Device nodes of the third card by the vendors' documents; none where nothing ties a node to a card.
NODES = {
    "gaudi_hl225_8": ["/dev/accel/accel2", "/dev/accel/accel_controlD2"],
    "intel_max1550_8": ["/dev/dri/card3", "/dev/dri/renderD130"],
    "hygon_k100_8": ["/dev/dri/card3", "/dev/dri/renderD130"],
    "iluvatar_biv150s_8": ["/dev/iluvatar2"],
    "mthreads_s5000_8": ["/dev/dri/card3", "/dev/dri/renderD130"],
    "metax_c500_8": ["/dev/dri/card3", "/dev/dri/renderD130"],
    "cambricon_mlu370_8": ["/dev/cambricon_dev2"],
    "enflame_s60_8": ["/dev/gcu2"],
    "kunlunxin_p800_8": [],
    "neuron_trn2_16": ["/dev/neuron2"],
    "tpu_v6e_4": ["/dev/vfio/2"],
    "denglin_ks38_8": [],
    "tenstorrent_p150_8": ["/dev/tenstorrent/2"],
}


def test_a_card_has_its_device_nodes(healthy, profile) -> None:
    shown, told = healthy(profile)
    (third,) = [card.address for card in shown.host.cards if card.index == 2]
    assert sorted(by_address(told)[third].device_nodes) == NODES[profile]


def test_a_busy_card_is_seen_at_work(show, profile) -> None:
    expected = HOSTS[profile]
    told = by_address(show(profile, cards=[{"slot": expected.slot, "busy": True}]).observe())
    busy = told.pop(expected.address)
    if expected.vendor in ("kunlunxin", "neuron", "tenstorrent"):
        assert busy.link.under_load is None  # their tools tell no load
        return
    assert (busy.link.under_load, busy.readings.utilization_percent) == (True, 97.0)
    assert {device.link.under_load for device in told.values()} == {False}


def test_a_lost_card_is_on_the_bus_and_does_not_answer(show, profile) -> None:
    expected = HOSTS[profile]
    told = show(profile, {"fault": "card_lost", "slot": expected.slot}).observe()
    assert (told.bus_count, told.count) == (expected.count, expected.count - 1)
    assert [one["pci_address"] for one in told.unanswered] == [expected.address]
    assert {device.health.state for device in told.devices} == {expected.healthy}


def test_a_hung_card_hangs_no_more_than_the_tool_lets_it(show, profile) -> None:
    expected = HOSTS[profile]
    told = show(profile, {"fault": "card_hung", "slot": expected.slot}).observe()
    assert "hung" in {tool.state for tool in told.tools}
    silent = {one["pci_address"]: one["reason"] for one in told.unanswered}
    if expected.alone:
        assert silent == {expected.address: "hung"}
        assert len(told.devices) == expected.count - 1
    else:
        assert (len(silent), len(told.devices), told.count) == (expected.count, 0, None)
        # A device that is driven from user space is its driver's first.
        assert set(silent.values()) == {"bound to vfio-pci" if expected.vendor == "tpu" else "hung"}


def test_swapped_cards_change_places_and_nothing_else(show, healthy, profile) -> None:
    expected = HOSTS[profile]
    before_host, told = healthy(profile)
    before = by_address(told)
    after = by_address(
        show(profile, {"fault": "cards_swapped", "slot": expected.slot, "slot_b": expected.other}).observe()
    )
    places = {card.slot: card.address for card in before_host.host.cards}
    here, there = expected.address, places[expected.other]
    assert (after[here].serial, after[there].serial) == (before[there].serial, before[here].serial)
    if expected.shares == 1:
        assert (after[here].uuid, after[there].uuid) == (before[there].uuid, before[here].uuid)
    # A board takes all its chips along.
    moved = {address for address in before if before[address].serial != after[address].serial}
    assert len(moved) == (0 if profile in NAMELESS else 2 * expected.shares)
    for address, device in before.items():
        assert (after[address].index, after[address].slot, after[address].link) == (
            device.index, device.slot, device.link,
        )  # fmt: skip
        if address not in moved:
            assert after[address] == device


def test_a_replaced_board_has_another_serial(show, healthy, profile) -> None:
    expected = HOSTS[profile]
    before = by_address(healthy(profile)[1])
    after = by_address(show(profile, {"fault": "card_replaced", "slot": expected.slot}).observe())
    changed = {address for address in before if after[address] != before[address]}
    if profile in NAMELESS:
        assert changed == set()  # nothing that their tools tell names a card
        return
    assert expected.address in changed
    assert len(changed) == expected.shares
    known = {device.serial for device in before.values()}
    assert {after[address].serial for address in changed} & known == set()
    assert len({after[address].serial for address in changed}) == 1


def test_a_narrow_link_is_the_only_thing_that_differs(show, healthy, profile) -> None:
    expected = HOSTS[profile]
    before = by_address(healthy(profile)[1])
    after = by_address(show(profile, {"fault": "link_downtrained", "slot": expected.slot}).observe())
    narrow, was = after.pop(expected.address), before.pop(expected.address)
    assert (narrow.link.width, narrow.link.max_width) == (expected.width // 2, expected.width)
    assert (narrow.serial, narrow.slot, narrow.health) == (was.serial, was.slot, was.health)
    assert after == before


# The width that the tool itself tells of a narrow link, where it tells one.
TOLD_WIDTH = {
    "gaudi_hl225_8": 8,
    "iluvatar_biv150s_8": 8,
    "mthreads_s5000_8": 8,
    "enflame_s60_8": 8,
    "denglin_ks38_8": 2,
}


@pytest.mark.parametrize("name", TOLD_WIDTH)
def test_the_tool_tells_the_narrow_link_too(show, name) -> None:
    expected = HOSTS[name]
    answer = query(show(name, {"fault": "link_downtrained", "slot": expected.slot}), expected.vendor)
    widths = {device.pci_address: device.link.width for device in answer.devices}
    assert widths.pop(expected.address) == TOLD_WIDTH[name]
    assert set(widths.values()) == {expected.width}


ECC = ["gaudi_hl225_8", "iluvatar_biv150s_8", "cambricon_mlu370_8", "neuron_trn2_16", "denglin_ks38_8"]


@pytest.mark.parametrize("name", ECC)
def test_an_uncorrected_error_is_counted_on_its_card(show, name) -> None:
    expected = HOSTS[name]
    told = by_address(show(name, {"fault": "ecc", "slot": expected.slot}).observe())
    sick = told.pop(expected.address)
    assert (sick.ecc.uncorrected_volatile, sick.health.state) == (1, "critical")
    assert {device.ecc.uncorrected_volatile or 0 for device in told.values()} == {0}
    assert {device.health.state for device in told.values()} == {"ok"}


def test_only_the_newer_tool_of_kunlunxin_counts_errors(show) -> None:
    fault = {"fault": "ecc", "slot": "OAM4"}
    newer = by_address(show("kunlunxin_p800_8", fault, driver_version="515.58").observe())["0000:c7:00.0"]
    assert (newer.ecc.uncorrected_volatile, newer.health.state) == (1, "critical")
    older = by_address(show("kunlunxin_p800_8", fault).observe())["0000:c7:00.0"]
    assert older.ecc.uncorrected_volatile is None


@pytest.mark.parametrize(
    ("name", "throttles"),
    [("gaudi_hl225_8", ["hardware", "power_brake"]), ("denglin_ks38_8", ["hardware", "power_brake"])],
)
def test_a_card_that_is_slowed_down_says_why(show, name, throttles) -> None:
    expected = HOSTS[name]
    told = by_address(show(name, {"fault": "throttle", "slot": expected.slot}).observe())
    sick = told.pop(expected.address)
    assert (sick.readings.throttles, sick.health.state) == (throttles, "warning")
    assert [device.readings.throttles for device in told.values()] == [[]] * 7


HEALTH = {
    ("gaudi_hl225_8", "warning"): "warning",
    ("gaudi_hl225_8", "critical"): "critical",
    ("intel_max1550_8", "warning"): "warning",
    ("intel_max1550_8", "critical"): "critical",
    ("iluvatar_biv150s_8", "critical"): "critical",
    ("metax_c500_8", "critical"): "critical",
    ("cambricon_mlu370_8", "critical"): "critical",
    ("enflame_s60_8", "critical"): "critical",
    # Its line has no word for it; the newer tool has.
    ("kunlunxin_p800_8", "critical"): "ok",
    ("neuron_trn2_16", "critical"): "critical",
    ("denglin_ks38_8", "critical"): "critical",
    ("tenstorrent_p150_8", "critical"): "critical",
}


def test_every_state_of_health_that_can_be_shown_is_tried() -> None:
    shown = {(name, word) for name, one in HOSTS.items() for word in catalogue.MAKERS[one.vendor].health}
    assert shown == set(HEALTH)


@pytest.mark.parametrize(("name", "word"), HEALTH)
def test_a_sick_card_says_so_and_no_other(show, name, word) -> None:
    expected = HOSTS[name]
    told = by_address(show(name, cards=[{"slot": expected.slot, "health": word}]).observe())
    assert told.pop(expected.address).health.state == HEALTH[name, word]
    assert {device.health.state for device in told.values()} == {"ok"}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("gaudi_hl225_8", "driver_not_loaded"),
        ("mthreads_s5000_8", "driver_not_ready"),
        ("tenstorrent_p150_8", "driver_not_loaded"),
    ],
)
def test_without_its_driver_the_tool_says_so(show, name, reason) -> None:
    expected = HOSTS[name]
    told = show(name, {"fault": "driver_library_mismatch"}).observe()
    assert (told.count, told.bus_count) == (None, expected.count)
    assert [tool.reason for tool in told.tools] == [reason]
    assert [driver.loaded for driver in told.drivers] == [False]


@pytest.mark.parametrize("name", [name for name, nodes in NODES.items() if nodes])
def test_a_held_card_has_a_holder(show, name) -> None:
    expected = HOSTS[name]
    told = by_address(show(name, {"fault": "process_holding", "slot": expected.slot}).observe())
    assert [one["pid"] for one in told.pop(expected.address).processes] == [4711]
    assert not any(device.processes for device in told.values())


@pytest.mark.parametrize(
    ("name", "fault", "slot", "complaint"),
    [
        ("mthreads_s5000_8", "ecc", "GPU5", "ecc is not shown on mthreads; accepted: card_lost, .*, process_holding"),
        ("hygon_k100_8", "throttle", "DCU5", "throttle is not shown on hygon"),
        ("metax_c500_8", "xid79", "GPU5", "xid79 is not shown on metax"),
        ("denglin_ks38_8", "process_holding", "GPU5", "process_holding is not shown on denglin; .*, ecc, throttle$"),
    ],
)
def test_a_fault_that_a_tool_has_no_way_to_show_is_refused(show, name, fault, slot, complaint) -> None:
    with pytest.raises(state.StateError, match=complaint):
        show(name, {"fault": fault, "slot": slot})


def test_chips_of_one_board_cannot_be_swapped(show) -> None:
    with pytest.raises(state.StateError, match="takes two different ones"):
        show("iluvatar_biv150s_8", {"fault": "cards_swapped", "slot": "GPU0", "slot_b": "GPU1"})


def test_health_that_a_tool_has_no_word_for_is_refused(show) -> None:
    with pytest.raises(state.StateError, match="'critical' is unknown; accepted: ok"):
        show("hygon_k100_8", cards=[{"slot": "DCU5", "health": "critical"}])


def test_what_only_has_the_vendors_id_is_no_card(show) -> None:
    shown = show("neuron_trn2_16")
    ids = {one.device for one in pci.functions(shown, "/sys/bus/pci") if one.vendor == "1d0f"}
    assert ids == {"7364", "8061", "ec20", "efa2"}
    assert shown.observe().bus_count == 16
    processors = {one.device for one in pci.functions(show("hygon_k100_8"), "/sys/bus/pci") if one.vendor == "1d94"}
    assert processors == {"6210", "1451", "1453", "1456"}


def test_a_model_of_another_maker_comes_with_its_tool(show) -> None:
    cards = [{"slot": "GPU1", "address": "0000:11:00.0", "model": "Mars X201"}]
    shown = show("", vendor="metax", driver_version="3.8.1", wiring="direct", cards=cards)
    assert list(shown.answers) == ["ht-smi"]
    told = shown.observe()
    assert [(tool.name, tool.state) for tool in told.tools] == [("ht-smi", "ok")]
    assert [(device.model, device.firmware_version) for device in told.devices] == [("Mars X201", "1.31.1.0")]


def test_the_address_of_a_tool_is_only_one_form_of_it(show) -> None:
    first = {
        "iluvatar_biv150s_8": (["ixsmi", "-q", "-x", "-i", "5"], "00000000:A7:00.0"),
        "mthreads_s5000_8": (["mthreads-gmi", "-q", "--json", "-i", "5"], "00000000:92:00.0"),
        "neuron_trn2_16": (["neuron-ls", "-j"], '"a1:00.0"'),
        "enflame_s60_8": (["efsmi"], "00:92:00.0"),
    }
    for name, (argv, word) in first.items():
        rc, out, _err = show(name).smi(*argv)
        assert (rc, word in out) == (0, True), name


# A form that the collection asks only where those before it fail: what is refused, and what the form tells by itself.
# "table" of hy-smi has no addresses; it is only counted.
FORMS = [
    ("gaudi_hl225_8", ("-Q",), IDS),
    ("gaudi_hl225_8", ("-L",), IDS - {"firmware_version"}),
    ("gaudi_hl225_8", ("-Q", "-L"), {"index", "model", "memory_bytes", "driver_version"}),
    ("intel_max1550_8", ("discovery -j",), IDS),
    ("hygon_k100_8", ("--json",), IDS),
    ("iluvatar_biv150s_8", ("-q -x",), {"index", "model", "memory_bytes", "driver_version"}),
    ("mthreads_s5000_8", ("-q --json",), {"index", "model", "memory_bytes", "driver_version"}),
    ("metax_c500_8", ("",), {"index", "model", "memory_bytes", "driver_version"}),
    ("enflame_s60_8", ("-q",), {"index", "model", "serial", "memory_bytes", "firmware_version", "driver_version"}),
    ("kunlunxin_p800_8", ("-m",), {"index", "model", "serial", "memory_bytes", "driver_version"}),
    ("neuron_trn2_16", ("-j",), {"index", "model", "serial", "memory_bytes", "driver_version"}),
]


@pytest.mark.parametrize(("name", "refused", "told"), FORMS, ids=[f"{one[0]} without {one[1]}" for one in FORMS])
def test_every_form_of_a_tool_stands_alone(show, monkeypatch, name, refused, told) -> None:
    shown = show(name)
    vendor, whole = HOSTS[name].vendor, shown.smi

    def smi(*argv: str) -> tuple[int | None, str, str]:
        words = " ".join(argv[1:])
        bad = any(words == one or (one and words.endswith(one)) or words.startswith(f"{one} -i") for one in refused)
        bad = bad or ("-Q" in refused and words.startswith("-Q"))
        return (1, "", "refused for this test\n") if bad else whole(*argv)

    monkeypatch.setattr(shown, "smi", smi)
    answer = query(shown, vendor)
    assert answer.count == HOSTS[name].count, answer.errors
    assert all("refused for this test" in error for error in answer.errors)
    devices = {device.pci_address: device for device in answer.devices}
    for card in shown.host.cards:
        for field_name, value in fields(shown.host, card).items():
            found = getattr(devices[card.address], field_name)
            assert found == (value if field_name in told else None), (card.slot, field_name)


def test_the_table_of_hygon_counts_its_cards(show, monkeypatch) -> None:
    shown = show("hygon_k100_8")
    whole = shown.smi
    monkeypatch.setattr(
        shown, "smi", lambda *argv: whole(*argv) if len(argv) == 1 else (1, "", "refused for this test\n")
    )
    answer = query(shown, "hygon")
    assert (answer.count, [device.index for device in answer.devices]) == (8, list(range(8)))
    assert {device.pci_address for device in answer.devices} == {None}
    assert {device.readings.power_limit_watts for device in answer.devices} == {400.0}


def test_bytes_that_are_no_text_tell_no_card(show, profile) -> None:
    told = show(profile, {"fault": "tool_garbage"}).observe()
    assert (told.count, told.bus_count, told.devices) == (None, HOSTS[profile].count, [])
    assert {tool.state for tool in told.tools} == {"unreadable"}
    assert len(told.unanswered) == HOSTS[profile].count


def test_half_an_answer_tells_no_card_that_is_not_in_it(show, profile) -> None:
    told = show(profile, {"fault": "tool_truncated"}).observe()
    assert (told.count or 0) < told.bus_count == HOSTS[profile].count
    assert len(told.unanswered) == told.bus_count - len(told.devices)
    assert told.devices == [] or told.count == len(told.devices)
    assert told.devices or {tool.state for tool in told.tools} == {"unreadable"}
