# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/vendors.md is what the vendors' code makes of the recordings, and the generator tells the truth."""

from __future__ import annotations

import pytest
import render_vendors
from ansible_collections.accel.cluster.plugins.module_utils._accel import registry
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors import gaudi


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_is_what_the_code_makes(language):
    made = render_vendors.page(language)
    assert render_vendors.PAGES[language].read_text(encoding="utf-8") == made, "run python3 tests/render_vendors.py"


def test_every_vendor_and_every_recording_is_in_it():
    assert list(render_vendors.SHOTS) == list(registry.VENDORS)
    used = set()
    for name, shots in render_vendors.SHOTS.items():
        for one in shots:
            shown = [content for files in one.files.values() for content in files.values()]
            used |= {f"{name}/{file}" for file in (*one.answers.values(), *shown)}
    kept = {f"{path.parent.name}/{path.name}" for path in render_vendors.RECORDINGS.glob("*/*")}
    assert kept <= used


@pytest.mark.parametrize(
    ("name", "value", "sources"),
    [
        ("nvidia", "links between cards", ["nvidia-smi nvlink -s"]),
        ("amd", "temperature", ["amd-smi metric --json", render_vendors._ROCM]),
        ("amd", "serial number", ["amd-smi static --json", render_vendors._ROCM]),
        ("amd", "links between cards", ["amd-smi xgmi --json"]),
        ("ascend", "serial number", ["npu-smi info -t board -i <n>"]),
        ("ascend", "memory errors", ["npu-smi info -t ecc -i <n>"]),
        ("gaudi", "memory repair", [f"hl-smi {' '.join(gaudi.LISTING)}"]),
        ("neuron", "serial number", ["/sys/devices/virtual/neuron_device/neuron<n>/"]),
        ("enflame", "serial number", ["efsmi -q", "efsmi"]),
        ("metax", "serial number", None),
        ("tpu", "UUID or chip number", None),
        ("tpu", "model", None),
    ],
)
def test_who_tells_a_value(name, value, sources):
    """Worked out by reading the recordings."""
    assert render_vendors.reading(name).tool.get(value) == sources


def test_what_needs_no_tool():
    for name in registry.VENDORS:
        assert {"PCI address", "NUMA node", "PCIe link"} <= render_vendors.reading(name).bus
    assert "model" in render_vendors.reading("tpu").bus
    assert "model" not in render_vendors.reading("nvidia").bus


def test_commands_stand_in_the_order_in_which_they_are_asked():
    found = render_vendors.reading("nvidia")
    assert found.calls == ["nvidia-smi -q -x"]
    assert found.for_more == ["nvidia-smi nvlink -s", "nvidia-smi -L"]
    assert found.after_failure[0] == "nvidia-smi -q -x -i <address>"
    assert render_vendors.reading("neuron").after_failure == ["neuron-ls"]
    assert render_vendors.reading("ascend").nodes == {"/dev/davinciN"}


def test_nothing_was_tried_on_a_real_card_and_the_page_says_so():
    for language in ("en", "zh"):
        assert (render_vendors.WORDS[language]["never"] in render_vendors.page(language)) == (not render_vendors.TRIED)
