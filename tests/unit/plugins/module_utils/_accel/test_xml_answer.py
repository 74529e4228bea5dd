# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers that are XML: read line by line where that can be done, as a tree where not, with the same result."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import xml_answer
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors.base import Unreadable
from ansible_collections.accel.cluster.plugins.module_utils._accel.xml_answer import Fields, read_fields, xml_tree

OWN = Path(__file__).resolve().parents[4] / "recordings/nvidia"
PLAIN = """<log>
\t<count>2</count>
\t<card id="0000:01:00.0">
\t\t<name>A</name>
\t\t<pci>
\t\t\t<bus>01</bus>
\t\t\t<gen />
\t\t</pci>
\t\t<parts>
\t\t\tNone
\t\t</parts>
\t</card>
\t<card id="0000:02:00.0">
\t\t<name>B</name>
\t\t<name>C</name>
\t</card>
</log>"""
FIRST = Fields("0000:01:00.0", {"name": "A", "pci": "", "pci/bus": "01", "pci/gen": "", "parts": "None"})
SECOND = Fields("0000:02:00.0", {"name": "B"}, again=[("name", "C")])
WHOLE = Fields("", {"count": "2", "card": ""}, parts={"card": [FIRST, SECOND]})


@pytest.fixture
def no_tree(monkeypatch):
    """Fail the test where a document is read as a tree."""

    def refuse(*_given):
        pytest.fail("the document was read as a tree")

    monkeypatch.setattr(xml_answer, "_tree", refuse)


def test_a_plain_document_is_read_line_by_line(no_tree):
    assert read_fields(PLAIN.replace("<gen />", "<gen></gen>"), "log", ("card",)) == (WHOLE, "")


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,  # it has an element that is empty in one word
        PLAIN.replace("\n", "").replace("\t", ""),
        PLAIN.replace("<bus>01", "<bus>&#48;1"),
        PLAIN.replace("<count>2", '<count unit="1">2'),
        PLAIN.replace("\t\t<name>A", "<!-- - -->\n\t\t<name>A"),
    ],
)
def test_any_other_document_is_read_as_a_tree(text):
    assert read_fields(f"note\n{text}\nend", "log", ("card",)) == (WHOLE, "note\n\nend")


@pytest.mark.parametrize(
    "damaged",
    [
        "",
        "<log><a></log>",
        "<log>\n<a>\n</log>",
        "<log>\n<a>\n</b>\n</a>\n</log>",
        "<log>\n</log>\n</log>",
        "<log>\n</log>\n<log>\n</log>",
        "<log>\n<a>1</b>\n</log>",
        "</log><log>",
    ],
)
def test_what_is_no_document_is_refused(damaged):
    with pytest.raises(Unreadable):
        read_fields(damaged, "log", ())


def test_text_after_an_element_is_nobodys():
    """As in a tree, whose elements have the text before their first child; but it may say something."""
    for given in ("<log>\n<a>\n<b>1</b>\nERR!\n</a>\n</log>", "<log><a><b>1</b>ERR!<c/></a></log>"):
        found = read_fields(given, "log", ())[0]
        assert (found.texts["a"], found.texts["a/b"], found.again) == ("", "1", [("a", "ERR!")])


def test_a_long_run_of_blanks_costs_no_time():
    started = time.process_time()
    assert read_fields(f"<log>\n{' ' * 40000}<!-- - -->\n<a>1</a>\n</log>", "log", ())[0].texts == {"a": "1"}
    assert time.process_time() - started < 0.5


def test_an_empty_element_is_not_found_again():
    for text in ("<log>\n<a>1</a>\n<a>\n</a>\n<a></a>\n</log>", "<log><a>1</a><a/><a></a></log>"):
        assert read_fields(text, "log", ())[0] == Fields("", {"a": "1"})


def test_everything_is_found_again_with_its_path():
    texts = [("count", "2"), ("card", ""), *((f"card/{path}", word) for path, word in FIRST.texts.items())]
    assert list(WHOLE.everything()) == [*texts, ("card/name", "B"), ("card/name", "C")]
    assert WHOLE.words() == {"2", "", "A", "01", "None", "B", "C"}


def test_an_element_as_a_tree_with_text_around_it():
    root, around = xml_tree('warning\n<?xml version="1.0"?>\n<log>\x01<a>1</a></log>\nend', "log")
    assert (root.findtext("a"), around) == ("1", "warning\n\n\nend")
    for cut in ("", "<log><a></log>", "<log><a>1</a>", "</log><log>"):
        with pytest.raises(Unreadable):
            xml_tree(cut, "log")


def both_ways(text: str) -> None:
    names = ("gpu", "mig_device", "process_info")
    tree = xml_tree(text.replace("\t", ""), "nvidia_smi_log")[0]
    assert read_fields(text, "nvidia_smi_log", names)[0] == xml_answer.of_tree(tree, names)


OWN_ANSWERS = {path.name: path.read_text() for path in sorted(OWN.glob("*.xml"))}


@pytest.mark.parametrize("name", [name for name, text in OWN_ANSWERS.items() if "&" not in text])
def test_what_the_tool_prints_needs_no_tree(name, no_tree):
    assert read_fields(OWN_ANSWERS[name], "nvidia_smi_log", ("gpu",))[0].at("gpu")


@pytest.mark.parametrize("name", OWN_ANSWERS)
def test_both_ways_say_the_same(name):
    both_ways(OWN_ANSWERS[name])


def test_both_ways_say_the_same_of_recordings(recordings):
    whole = [path for path in sorted((recordings / "nvidia").glob("*.xml")) if "</nvidia_smi_log>" in path.read_text()]
    assert len(whole) > 5
    for path in whole:
        both_ways(path.read_text())
