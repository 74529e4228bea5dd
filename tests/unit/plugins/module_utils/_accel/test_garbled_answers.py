# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers with one damaged number in them: never an exception, which would hide all cards of the host."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import pci, registry, slots
from ansible_collections.accel.cluster.plugins.module_utils._accel.judge import judge_devices
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import as_dict
from doubles import OneAnswer

RECORDINGS = Path(__file__).resolve().parents[4] / "recordings"
ADDRESSES = [f"0000:{bus}:00.0" for bus in ("18", "2a", "3a", "5d")]
FILES = [path for path in sorted(RECORDINGS.glob("*/*")) if path.parent.name in registry.VENDORS]
# Too long to be finite, too long for int(), a digit to str.isdigit() but to nothing else, no number in JSON.
DAMAGE = ("9" * 400, "9" * 5000, "\u00b2", "NaN")


def query(vendor, text):
    functions = [pci.Function(address) for address in ADDRESSES]
    return registry.VENDORS[vendor].query(OneAnswer(text), functions, 1)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_one_damaged_number_is_survived(path):
    text = path.read_text(encoding="utf-8")
    numbers = list(re.finditer(r"\d+", text))
    for found in numbers[:: max(1, len(numbers) // 12)]:
        for damage in DAMAGE:
            answer = query(path.parent.name, text[: found.start()] + damage + text[found.end() :])
            seen = {"devices": [as_dict(device) for device in answer.devices], "count": answer.count, "bus_count": 4}
            json.dumps(seen, allow_nan=False)
            assert judge_devices("gpu-01", seen, {"cluster_accelerator_vendor": path.parent.name})
            assert not slots.problems(slots.build_record(seen, "gpu-01", "2026-11-30T01:02:03Z"))


def test_there_are_recordings_of_every_vendor():
    assert {path.parent.name for path in FILES} == set(registry.VENDORS)


# Lists and words that another form of the answer may fill in another way, and a reason in words.
_APART = {"source", "identity", "processes", "ports", "logical", "reasons", "candidates", "index", "state"}
_NO_VALUE = ("N/A", "[Not Supported]", "[Unknown Error]", "ERR!", "-", "NA", "unknown")
# Where one of several sensors for the same can't be read, the next is taken.
_SEVERAL = {("nvidia", "readings.power_watts"), ("amd", "readings.temperature_c"), ("hygon", "readings.temperature_c")}
_WRITTEN = ("1,234", "1.234,5", "12,5", "1'234")
_NUMBERS = {
    "memory_bytes",
    "memory_used_bytes",
    "temperature_c",
    "temperature_limit_c",
    "memory_temperature_c",
    "power_watts",
    "power_limit_watts",
    "utilization_percent",
    "corrected_volatile",
    "uncorrected_volatile",
    "corrected_aggregate",
    "uncorrected_aggregate",
    "remapped_rows",
    "retired_pages",
    "speed_gts",
    "max_speed_gts",
    "width",
    "max_width",
}


def values(device) -> dict:
    """Return the single values of a device by their path."""
    found = {}
    for name, value in as_dict(device).items():
        for key, one in value.items() if isinstance(value, dict) else [(None, value)]:
            if (key or name) not in _APART:
                found[f"{name}.{key}" if key else name] = one
    return found


def pairs(answer, whole) -> list[tuple]:
    """Return each device with the one that it is in the whole answer: by its address, else by its number."""
    known = {device.pci_address: device for device in whole.devices if device.pci_address}
    known.update({device.index: device for device in whole.devices if device.index is not None})
    return [(device, known.get(device.pci_address or device.index)) for device in answer.devices]


def around(text: str, spots: int) -> list[int]:
    """Return places all over a text, and each of its last characters: half a word is worst where nothing follows."""
    step = max(1, len(text) // spots)
    return [*range(0, len(text), step), *range(max(0, len(text) - 30), len(text))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_an_answer_that_was_cut_off_invents_nothing(path):
    """Half a serial would name another card, half a number is another number, half an entry has no bad news."""
    text = path.read_text(encoding="utf-8")
    whole = query(path.parent.name, text)
    for end in around(text, 40):
        for device, meant in pairs(query(path.parent.name, text[:end]), whole):
            assert meant, (end, device)
            told = values(meant)
            wrong = {name: one for name, one in values(device).items() if one not in (None, [], told[name])}
            assert not wrong, (end, text[max(0, end - 40) : end], wrong)
            assert device.health.state != "ok" or meant.health.state == "ok", (end, text[max(0, end - 40) : end])


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_number_as_another_country_writes_it_is_no_other_number(path):
    text = path.read_text(encoding="utf-8")
    whole = query(path.parent.name, text)
    numbers = list(re.finditer(r"(?<![\w.:,-])\d{1,9}(?:\.\d+)?(?![\w:.-])", text))
    for number, found in enumerate(numbers[:: max(1, len(numbers) // 40)]):
        written = _WRITTEN[number % len(_WRITTEN)]
        answer = query(path.parent.name, text[: found.start()] + written + text[found.end() :])
        for device, meant in pairs(answer, whole):
            told = values(meant) if meant else {}
            for name in [name for name in told if name.rpartition(".")[2] in _NUMBERS]:
                if (path.parent.name, name) in _SEVERAL:
                    continue
                right = (None, told[name], 1234, 1234 * 1024**2)
                assert values(device)[name] in right, (written, text[found.start() - 60 : found.end() + 20])
            assert not meant or device.health.state != "ok" or meant.health.state == "ok", (found[0], written)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_word_for_no_value_is_never_a_value(path):
    text = path.read_text(encoding="utf-8")
    words = list(re.finditer(r"(?<=[ \t>\",|/(])[A-Za-z0-9][\w.:-]*(?=[ \t<\",|\n)]|$)", text))
    for place, found in enumerate(words[:: max(1, len(words) // 40)]):
        word = _NO_VALUE[place % len(_NO_VALUE)]
        answer = query(path.parent.name, text[: found.start()] + word + text[found.end() :])
        for device in answer.devices:
            told = {name: one for name, one in values(device).items() if str(one) == word}
            assert not told, (found[0], text[max(0, found.start() - 60) : found.end() + 20])
        versions = [tool.version for tool in answer.tools] + [driver.kernel_version for driver in answer.drivers]
        assert word not in versions, (found[0], text[max(0, found.start() - 60) : found.end() + 20])


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name}")
@pytest.mark.parametrize("word", ["N/A", "", "-", "unknown", "[Not Supported]", "ERR!", "garbage"])
def test_without_a_value_nothing_is_healthy(path, word):
    text = path.read_text(encoding="utf-8")
    unit = r"(?: ?(?:MiB|GiB|MB|GB|KB|W|C|\u2103|%))?"
    blank = re.sub(rf"(?<![\w.:-])\d+(?:\.\d+)?{unit}(?![\w:.-])", lambda _number: word, text)
    for device in query(path.parent.name, blank).devices:
        # NVIDIA and MetaX have words for it.
        assert device.health.state != "ok" or path.parent.name in ("nvidia", "metax")


# vendor, file, what stands there for a card that is well, what stands there instead, the state of that card
ODD_NEWS = [
    ("gaudi", "Q_csv_1.22_3xHL-325L.csv", "850 W, 3, 0, 41, 2\n", "850 W, 3, 0 errors, 41, 2\n", "unknown"),
    (
        "gaudi",
        "L_1.22_3xHL-325L.txt",
        "Module status                   : Operational",
        "Module status : N/A",
        "unknown",
    ),
    (
        "gaudi",
        "L_1.22_3xHL-325L.txt",
        "Module status                   : Operational",
        "Module status : unknown",
        "unknown",
    ),
    ("gaudi", "L_1.22_3xHL-325L.txt", "Pending                 : No", "Pending : ?", "unknown"),
    ("cambricon", "cnmon_5.10_2xMLU370-X8.txt", "73%                 0 |", "73%             1,024 |", "warning"),
    ("cambricon", "cnmon_5.10_2xMLU370-X8.txt", "73%                 0 |", "73%                12*|", "warning"),
    ("cambricon", "cnmon_5.10_2xMLU370-X8.txt", "73%                 0 |", "73%                   |", "warning"),
    ("kunlunxin", "xpu-smi_515_2xP800.txt", "N/A |                    0 |", "N/A |                1,024 |", "warning"),
    ("kunlunxin", "xpu-smi_515_2xP800.txt", "N/A |                    0 |", "N/A |                      |", "warning"),
    ("denglin", "dlsmi-query_2.2_3xKS38-QUAD.xml", "<total>N/A</total>", "<total>2 errors</total>", "warning"),
    ("denglin", "dlsmi-query_2.2_3xKS38-QUAD.xml", "<pending>N/A</pending>", "<pending>Ja</pending>", "warning"),
    ("enflame", "efsmi-q_1.4_2xS60.txt", "Health                  : True", "Health : unknown", "unknown"),
    ("enflame", "efsmi-q_1.4_2xS60.txt", "Health                  : True", "Health : N/A", "unknown"),
    ("enflame", "efsmi-q_1.4_2xS60.txt", "Health                  : True", "Health :", "unknown"),
    ("enflame", "efsmi-q_1.4_2xS60.txt", "Health                  : True", "Health : Degraded", "critical"),
    ("denglin", "dlsmi-query_2.2_3xKS38-QUAD.xml", "double_bit>", "double_bits>", "unknown"),
    ("denglin", "dlsmi-query_2.2_3xKS38-QUAD.xml", "ecc_errors>", "memory_errors>", "unknown"),
    ("enflame", "efsmi-q_1.4_2xS60.txt", "Health                  : True", "Condition : True", "unknown"),
    ("tenstorrent", "tt-smi-s_3.0_n300_p150.json", '"dram_status": true', '"dram_status": "False"', "critical"),
    ("tenstorrent", "tt-smi-s_3.0_n300_p150.json", '"dram_status": true', '"dram_status": "training"', "unknown"),
    ("tenstorrent", "tt-smi-s_3.0_n300_p150.json", '"power": " 14.0"', '"power": "ERR!"', "warning"),
]


@pytest.mark.parametrize(("vendor", "name", "well", "odd", "state"), ODD_NEWS)
def test_what_says_that_a_card_is_well_and_is_odd_is_no_good_news(vendor, name, well, odd, state):
    text = (RECORDINGS / vendor / name).read_text(encoding="utf-8")
    assert well in text
    before, after = query(vendor, text).devices, query(vendor, text.replace(well, odd)).devices
    changed = [
        (one.health.state, other.health.state) for one, other in zip(before, after) if one.health != other.health
    ]
    assert changed and changed[0][1] == state
    assert len(before) == len(after)


def test_a_section_that_is_called_otherwise_hides_no_bad_news():
    text = (RECORDINGS / "enflame/efsmi-q_1.4_2xS60.txt").read_text(encoding="utf-8")
    states = [one.health.state for one in query("enflame", text.replace("Device Info\n", "Card Info\n")).devices]
    assert states == ["ok", "critical"]
