# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The four kinds of "no value", numbers with units, versions, excerpts."""

from __future__ import annotations

import time

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import text


@pytest.mark.parametrize(
    ("value", "state"),
    [
        ("NVIDIA H100 80GB HBM3", text.VALUE),
        ("0", text.VALUE),
        ("Enabled", text.VALUE),
        ("10.2", text.VALUE),
        (0, text.VALUE),
        (None, text.UNSUPPORTED),
        ("", text.UNSUPPORTED),
        ("  ", text.UNSUPPORTED),
        ("N/A", text.UNSUPPORTED),
        ("[N/A]", text.UNSUPPORTED),
        ("NA", text.UNSUPPORTED),
        ("-", text.UNSUPPORTED),
        ("[Not Supported]", text.UNSUPPORTED),
        ("0xFFFFFFFF", text.UNSUPPORTED),
        ("Requested functionality has been deprecated", text.UNSUPPORTED),
        ("65535 C", text.UNSUPPORTED),
        ("65535W", text.UNSUPPORTED),
        ("65535.00 W", text.UNSUPPORTED),
        ("4294967295 MiB", text.UNSUPPORTED),
        ("18446744073709551615 B", text.UNSUPPORTED),
        ("65535 MiB", text.VALUE),
        ("65536 W", text.VALUE),
        ("4294967295000", text.VALUE),
        ("655", text.VALUE),
        ("ERR!", text.UNREADABLE),
        ("Unknown Error", text.UNREADABLE),
        ("[Unknown Error]", text.UNREADABLE),
        ("GPU is lost", text.UNREADABLE),
        ("[GPU is lost]", text.UNREADABLE),
        ("GPU requires reset", text.UNREADABLE),
        ("Insufficient Permissions", text.UNREADABLE),
        ("unknown", text.PLACEHOLDER),
        ("REDACTED", text.PLACEHOLDER),
        ("0000000000000", text.PLACEHOLDER),
        ("00000000-0000-0000-0000-000000000000", text.PLACEHOLDER),
        ("xxx", text.PLACEHOLDER),
    ],
)
def test_four_kinds_of_no_value(value, state):
    assert text.state_of(value) == state
    assert text.clean(value) == (str(value).strip() if state == text.VALUE else None)


def test_identifiers():
    assert text.identifier(" 1650423000123 ") == "1650423000123"
    assert text.identifier("GPU-9a3c0b2e-1111-2222-3333-444455556666") == "GPU-9a3c0b2e-1111-2222-3333-444455556666"
    assert text.identifier("0") is None
    assert text.identifier("GPU-00000000-0000-0000-0000-000000000000") is None
    assert text.identifier("N/A") is None


def test_numbers_and_sizes():
    assert text.number("97 %") == 97.0
    assert text.number("-5 C") == -5.0
    assert text.number("[N/A]") is None
    assert text.number("fast") is None
    assert text.integer("16x") == 16
    assert text.integer("Unknown Error") is None
    assert text.size_bytes("81559 MiB") == 85520809984
    assert text.size_bytes("64 GB") == 68719476736
    assert text.size_bytes("65536", unit="MB") == 68719476736
    assert text.size_bytes("0 B") == 0
    assert text.size_bytes("GPU is lost") is None
    assert text.size_bytes("81559") is None
    assert text.size_bytes("many MiB") is None


@pytest.mark.parametrize(
    "word", ["1,234", "1,234 W", "1.234,5 W", "12,5 C", "1'234", "1\u2019234", "0x1f", "1e3", "1.2.3"]
)
def test_a_number_that_can_be_read_in_two_ways_is_none(word):
    assert text.number(word) is None
    assert text.integer(word) is None
    assert text.watts(word) is None


def test_a_number_beside_others_is_read():
    assert text.number("16x") == 16.0
    assert text.number("2, 5, 10") == 2.0
    assert text.number("+3.5 W") == 3.5


@pytest.mark.parametrize(
    ("word", "watts", "celsius"),
    [
        ("95W", 95.0, None),
        ("95.5 W", 95.5, None),
        ("91500 mW", 91.5, None),
        ("0.4 kW", 400.0, None),
        ("44C", None, 44.0),
        ("44.00 \u00b0C", None, 44.0),
        ("39 \u2103", None, 39.0),
        ("-5 C", None, -5.0),
        ("98 F", None, None),
        ("311 K", None, None),
        ("95 V", None, None),
        ("95 J", None, None),
        ("95", 95.0, 95.0),
        (95, 95.0, 95.0),
        (None, None, None),
        ("N/A", None, None),
        ("P0 95", None, None),
    ],
)
def test_a_unit_that_is_another_is_no_value(word, watts, celsius):
    """A tool that prints milliwatts in its next release must not look like a fire."""
    assert (text.watts(word), text.celsius(word)) == (watts, celsius)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("570.124", "570.124.06", True),
        ("570.124.06", "570.124.06", True),
        ("570.86.15", "570.124", False),
        ("570.86.15", "570.86.10", False),
        ("570", "570.124.06", False),
        ("595.80", "595.80", True),
        ("570.12", "570.124", False),
        (None, "570.124", False),
        ("", "", False),
    ],
)
def test_short_and_long_form_of_one_version(one, other, same):
    assert text.same_version(one, other) is same
    assert text.same_version(*reversed((one, other))) is same


def test_excerpts_are_printable_and_bounded():
    assert text.excerpt("one\n", None, "  ", "two") == "one\ntwo"
    assert text.excerpt("a\x00\x1bb\tc") == "a\ufffd\ufffdb\tc"
    long = text.excerpt("head" + "x" * 10_000_000 + "tail")
    assert len(long) < 2100
    assert long.startswith("head") and long.endswith("tail")
    assert "9998008 characters left out" in long


def test_terminal_colours_are_removed():
    assert text.plain("\x1b[4mGPU0\tGPU1\x1b[0m") == "GPU0\tGPU1"


@pytest.mark.parametrize("word", ["9" * 400, "9" * 5000, "\u00b2", "1" * 26])
def test_digits_that_are_no_number(word):
    """A garbled field is no value; it used to end the query of all cards with an exception."""
    assert text.number(word) is None
    assert text.integer(word) is None
    assert text.whole_number(word) is None
    assert text.size_bytes(f"{word} MiB") is None


def test_whole_numbers():
    assert text.whole_number(" 18446744073709551616 ") == 18446744073709551616
    assert text.whole_number(3) == 3
    for other in (None, "", "-1", "1.5", "1 W"):
        assert text.whole_number(other) is None


def test_half_a_character_is_replaced():
    assert (
        text.whole_characters(r'{"a": "x\ud800y", "b": "\uDFFF \u00e9 \\ud"}')
        == r'{"a": "x\ufffdy", "b": "\ufffd \u00e9 \\ud"}'
    )
    assert text.whole_characters("\\u12") == "\\u12"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("  Bus Id   : 0000:18:00.0 ", ("Bus Id", "0000:18:00.0")),
        ("PCI", ("PCI", None)),
        (" : x", ("", "x")),
        ("a:", ("a", "")),
        (" " * 500_000 + "a" + " " * 500_000, ("a", None)),
    ],
)
def test_name_and_value(line, told):
    assert text.name_and_value(line) == told


@pytest.mark.parametrize(
    ("output", "broken"),
    [
        ("", False),
        ("Failed to initialize NVML: Unknown Error\r\n", False),
        ("温度\t45 °C\n", False),
        ("\x1b[4mGPU0\x1b[0m\n", False),
        ("\x7fELF", True),
        ("GPU\x00 0", True),
        ("GPU \ufffd", True),
    ],
)
def test_garbled(output, broken):
    assert text.garbled(output) is broken


def test_a_long_run_of_digits_costs_no_time():
    started = time.process_time()
    assert text.celsius("0" * 40000 + " 12\nx") is None
    assert text.watts("0" * 40000 + " 12\nx") is None
    assert time.process_time() - started < 0.5
