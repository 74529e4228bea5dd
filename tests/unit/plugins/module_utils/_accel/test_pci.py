# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses, the sysfs walk, links and the hop that limits them."""

from __future__ import annotations

import json
import re

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import pci, runner
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import Link
from trees import FULL, Tree


def case_04(cases):
    """Return id -> text and id -> right answer of case 04."""
    texts = {}
    for line in (cases / "04-pci-address-forms/addresses.tsv").read_text().splitlines():
        if line and not line.startswith("#"):
            ident, _origin, text = line.split("\t")
            texts[ident] = text
    answer = json.loads(
        re.search(r"```json\n(.*?)```", (cases / "04-pci-address-forms/expected.md").read_text(), re.S)[1]
    )
    return texts, answer


def test_every_spelling_of_case_04(cases):
    texts, answer = case_04(cases)
    assert len(texts) == len(answer) == 19
    for ident, expected in answer.items():
        text = texts[ident]
        if expected == "error":
            with pytest.raises(ValueError, match=re.escape(repr(text.strip()))):
                pci.normalise(text)
            with pytest.raises(ValueError):
                pci.normalise_device(text)
        elif isinstance(expected, dict):
            assert pci.normalise_device(text) == expected["device"]
            with pytest.raises(ValueError, match="no function"):
                pci.normalise(text)
        else:
            assert pci.normalise(text) == expected, ident
            assert pci.normalise_device(text) == (expected and expected.rsplit(".", 1)[0]), ident


@pytest.mark.parametrize("zeros", range(4, 9))
def test_a_domain_may_have_any_number_of_zeros_before_it(zeros):
    """Found by fuzzing: five of them lost all but one."""
    assert pci.normalise(f"{'0' * zeros}:1B:00.0") == "0000:1b:00.0"
    assert pci.normalise(f"{'1'.rjust(zeros, '0')}:1B:00.0") == "0001:1b:00.0"
    assert pci.normalise(f"{'1'.ljust(zeros, '0')}:1b:00.0") == f"{'1'.ljust(zeros, '0')}:1b:00.0"


@pytest.mark.parametrize(
    "text",
    [
        "0000:18:00",
        "garbage",
        "GPU-9a3c0b2e",
        "0000:0000:18:00.0",
        "0:18:00.0",
        "18:0.0",
        "0000:1800.0",
        "123456789:00:00.0",
        "0000:18:00.0 0000:2a:00.0",
        "0000:18:00.0\x00",
    ],
)
def test_malformed_is_never_guessed(text):
    with pytest.raises(ValueError, match=re.escape(repr(text))):
        pci.normalise(text)


@pytest.mark.parametrize("text", ["", "NA", "N/A", "[N/A]", "-", "Not Supported", "[Unknown Error]"])
def test_words_for_none(text):
    assert pci.normalise(text) is None
    assert pci.normalise_device(text) is None


def test_addresses_sort_as_numbers():
    unsorted = ["10000:00:00.0", "0000:db:00.0", "0000:0a:00.0", "0000:0a:00.1", "ffff:00:00.0"]
    assert sorted(unsorted, key=pci.sort_key) == [
        "0000:0a:00.0",
        "0000:0a:00.1",
        "0000:db:00.0",
        "ffff:00:00.0",
        "10000:00:00.0",
    ]


def functions(tree, **options):
    return {f.address: f for f in pci.functions(runner.Runner(), str(tree.root), **options)}


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def test_a_function_is_read_whole(tree):
    tree.add("0000:97:01.0", pci_class="0x060400", link=FULL)
    place = tree.add(
        "0000:97:01.0/0000:9a:00.0", link=FULL, subsystem_vendor="0x10de", subsystem_device="0x16c1", numa_node="1"
    )
    drivers = tree.home / "bus/pci/drivers/vfio-pci"
    drivers.mkdir(parents=True)
    (place / "driver").symlink_to(drivers)
    card = functions(tree)["0000:9a:00.0"]
    assert (card.vendor, card.device, card.pci_class) == ("10de", "2330", "030200")
    assert (card.subsystem_vendor, card.subsystem_device) == ("10de", "16c1")
    assert card.numa_node == 1
    assert card.driver == "vfio-pci"
    assert card.path == str(place)
    assert card.ancestors == ["0000:97:01.0"]
    assert card.link == Link(speed_gts=32.0, width=16, max_speed_gts=32.0, max_width=16)
    assert card.responding


def test_what_is_missing_is_none(tree):
    tree.add("0000:18:00.0", numa_node="-1")
    card = functions(tree)["0000:18:00.0"]
    assert card.numa_node is None
    assert card.driver is None
    assert card.link == Link()
    assert card.ancestors == []


def test_details_only_where_asked(tree):
    tree.add("0000:02:00.0", vendor="0x1a03", device="0x2000", pci_class="0x030000", link=FULL)
    tree.add("0000:18:00.0", link=FULL)
    found = functions(tree, detailed=lambda function: function.vendor == "10de")
    assert found["0000:18:00.0"].link.width == 16
    assert found["0000:02:00.0"].link == Link()


def test_config_space_of_all_ones_is_no_number(tree):
    tree.add("0000:18:00.0", link=("Unknown", "Unknown", "63", "63"))
    tree.add("0000:2a:00.0", link=("Unknown speed", "16.0 GT/s PCIe", "0", "255"))
    found = functions(tree)
    assert found["0000:18:00.0"].link == Link()
    assert not found["0000:18:00.0"].responding
    assert not found["0000:2a:00.0"].responding


# The tree of each row: links of the root port, the switch's upstream and downstream port, the card;
# then the hop that limits when idle or not told, and under load.
SLOWED = ("2.5 GT/s PCIe", "32.0 GT/s PCIe", "16", "16")
NARROW = ("32.0 GT/s PCIe", "32.0 GT/s PCIe", "8", "16")
ROOT, UP, DOWN, CARD = "0000:00:01.0", "0000:01:00.0", "0000:02:00.0", "0000:03:00.0"


@pytest.mark.parametrize(
    ("links", "idle", "loaded"),
    [
        pytest.param((FULL, FULL, FULL, FULL), None, None, id="nothing limits"),
        pytest.param((FULL, FULL, SLOWED, SLOWED), None, None, id="an idle card lowers its own link"),
        pytest.param((SLOWED, SLOWED, SLOWED, SLOWED), None, UP, id="a slow path counts under load"),
        pytest.param((FULL, FULL, NARROW, NARROW), None, None, id="own link narrow: the card's fault, not the port's"),
        pytest.param(
            (FULL, FULL, ("16.0 GT/s", "16.0 GT/s", "16", "16"), ("16.0 GT/s", "32.0 GT/s", "16", "16")),
            DOWN, DOWN, id="the port above can do no more",
        ),
        pytest.param((FULL, FULL, ("32 GT/s", "32 GT/s", "8", "8"), NARROW), DOWN, DOWN, id="the port has fewer lanes"),
        pytest.param((NARROW, NARROW, FULL, FULL), UP, UP, id="uplink of the switch lost lanes"),
        pytest.param(
            (("16.0 GT/s", "16.0 GT/s", "16", "16"), ("16.0 GT/s", "32.0 GT/s", "16", "16"), FULL, FULL),
            ROOT, ROOT, id="a root port of an older generation",
        ),
        pytest.param(
            (("32.0 GT/s", "32.0 GT/s", "4", "16"), ("32.0 GT/s", "32.0 GT/s", "8", "16"), FULL, FULL),
            ROOT, ROOT, id="the worst of two is named",
        ),
        pytest.param(
            (("16.0 GT/s", "16.0 GT/s", "8", "8"), ("16.0 GT/s", "16.0 GT/s", "8", "8"),
             ("16.0 GT/s", "16.0 GT/s", "8", "8"), ("16.0 GT/s", "16.0 GT/s", "8", "8")),
            None, None, id="a small card in a small slot",
        ),
        pytest.param((("Unknown", "Unknown", "63", "63"), None, None, FULL), None, None, id="bridges tell nothing"),
    ],
)  # fmt: skip
def test_the_hop_that_limits(tree, links, idle, loaded):
    path = ""
    for address, link in zip((ROOT, UP, DOWN, CARD), links):
        path = f"{path}/{address}".strip("/")
        tree.add(path, link=link)
    card = functions(tree)[CARD]
    assert card.ancestors == [DOWN, UP, ROOT]
    assert card.link.limited_by == idle
    assert pci.with_load(card, False).limited_by == idle
    assert pci.with_load(card, True).limited_by == loaded
    assert pci.with_load(card, True).under_load is True


def test_a_bridge_is_read_once(tree):
    class Counting(runner.Runner):
        reads = 0

        def read(self, path):
            Counting.reads += path.endswith("00:01.0/max_link_width")
            return super().read(path)

    tree.add("0000:00:01.0", pci_class="0x060400", link=FULL)
    for number in range(8):
        tree.add(f"0000:00:01.0/0000:01:0{number}.0", link=FULL)
    found = pci.functions(Counting(), str(tree.root), detailed=lambda one: one.pci_class == "030200")
    assert len(found) == 9
    assert Counting.reads == 1


def test_the_tree_may_lie_elsewhere_and_holds_other_names(tree):
    tree.add("0000:18:00.0")
    (tree.root / "devices/not-an-address").mkdir()
    assert list(functions(tree)) == ["0000:18:00.0"]


def test_no_bus_at_all(tmp_path):
    assert pci.functions(runner.Runner(), str(tmp_path / "none")) == []
    assert pci.slot_table(runner.Runner(), str(tmp_path / "none")) == []


def test_slots_of_the_kernel(tree):
    for name, address in {
        "5": "0000:41:00",
        "12": "0000:5d:00",
        "odd": "nonsense",
        "empty": "",
        "9-1": "10000:01:00",
    }.items():
        (tree.root / "slots" / name).mkdir()
        (tree.root / "slots" / name / "address").write_text(f"{address}\n")
    assert pci.slot_table(runner.Runner(), str(tree.root)) == [
        {"name": "12", "address": "0000:5d:00"},
        {"name": "5", "address": "0000:41:00"},
        {"name": "9-1", "address": "10000:01:00"},
    ]


def test_the_kernel_line_of_case_07(cases):
    lines = pci.parse_bandwidth_lines((cases / "07-pcie-idle-vs-downtrained/dmesg.txt").read_text())
    assert lines == {
        "0000:9a:00.0": {
            "limited_by": "0000:97:01.0",
            "speed_gts": 16.0,
            "width": 16,
            "gbps": 252.048,
            "capable_speed_gts": 32.0,
            "capable_width": 16,
            "capable_gbps": 504.112,
        }
    }


def test_kernel_lines_of_other_kernels_and_damage():
    log = (
        "[ 1.1] nvidia 0000:01:00.0: 63.008 Gb/s available PCIe bandwidth, limited by 8 GT/s x8 link at 0000:00:01.0 "
        "(capable of 126.016 Gb/s with 8 GT/s x16 link)\n"
        "pci 10000:02:00.0: 2.000 Gb/s available PCIe bandwidth, limited by 2.5 GT/s PCIe x1 link at 10000:00:02.0\n"
        "pci 0000:03:00.0: 2.000 Gb/s available PCIe bandwidth, limited by 2.5 GT/s PCIe x1 link at 0000:00:\n"
        "[ 1.4] amdgpu 0000:04:00.0: something else, limited by fate\n"
    )
    lines = pci.parse_bandwidth_lines(log)
    assert sorted(lines) == ["0000:01:00.0", "10000:02:00.0"]
    assert (lines["0000:01:00.0"]["speed_gts"], lines["0000:01:00.0"]["width"]) == (8.0, 8)
    assert lines["10000:02:00.0"]["capable_width"] is None


def test_a_bandwidth_that_is_no_number_is_no_line():
    line = "pci 0000:03:00.0: {} Gb/s available PCIe bandwidth, limited by 2.5 GT/s PCIe x1 link at 0000:00:02.0"
    assert pci.parse_bandwidth_lines(line.format("2.0"))
    assert pci.parse_bandwidth_lines(line.format("..")) == {}
    told = pci.parse_bandwidth_lines(line.format("2.0") + " (capable of .. Gb/s with 8 GT/s x16 link)")
    assert told["0000:03:00.0"]["capable_gbps"] is None
