# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The YAML that programs write is read as PyYAML reads it; anything else is refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible_collections.accel.cluster.plugins.module_utils._accel import plain_yaml
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors.base import Unreadable

# Written as the tests of nvidia-container-toolkit expect it of the generator; no real host was seen.
GENERATED = Path(__file__).resolve().parent / "files/nvidia-ctk.yaml"

READ = [
    "a: 1\nb: two words\n",
    "a:\n- 1\n- 2\nb:\n  - x: 1\n    y: 2\n  - x: 3\n",
    "# a comment\n---\na: '1'  \nb: \"x\\ty\"\nc: it''s # not quoted\n",
    "a:\n  b:\n    c: []\n    d: {}\n  e: 'it''s'\n",
    "- - 1\n  - 2\n- - 3\n",
    "-\n  a: 1\n- b\n",
    "a: x:y::z\nb: /dev/a#b\n",
    "'q': 1\n\"r\": 2\n",
    'a:\n    - name: "0"\n      list:\n        - --x\n        - -y\n',
]
REFUSED = [
    ("", 1),
    ("a: &x 1\nb: *x\n", 1),
    ("a: |\n  text\n", 1),
    ("a: >-\n  text\n", 1),
    ("a: [1, 2]\n", 1),
    ("b: 1\na: {x: 1}\n", 2),
    ("a: !!str 1\n", 1),
    ("a: 1\na: 2\n", 2),
    ("a:\n\tb: 1\n", 2),
    ("a: 1\n---\nb: 2\n", 2),
    ("a: one\n  two\n", 2),
    ("a: 'open\n", 1),
    ('a: "open\n', 1),
    ("a: b: c\n", 1),
    ("- a\nb: 1\n", 2),
    ("? a\n: b\n", 1),
    ("a:\n    b: 1\n  c: 2\n", 3),
    ("just words\n", 1),
    ("- " * 100 + "x\n", 1),
]


def texts(value):
    """What PyYAML's BaseLoader says, with its empty text where this says None."""
    if isinstance(value, dict):
        return {key: texts(one) for key, one in value.items()}
    if isinstance(value, list):
        return [texts(one) for one in value]
    return None if value in ("", "null", "~") else value


@pytest.mark.parametrize("text", [*READ, GENERATED.read_text(encoding="utf-8")])
def test_it_is_read_as_any_other_reader_does(text):
    assert plain_yaml.parse(text) == texts(yaml.load(text, Loader=yaml.BaseLoader))


@pytest.mark.parametrize("indent", [2, 4])
@pytest.mark.parametrize("flow_in_lists", [True, False])
def test_what_writers_make_of_the_same_data_is_the_same(indent, flow_in_lists):
    class Dumper(yaml.SafeDumper):
        def increase_indent(self, flow=False, indentless=False):
            return super().increase_indent(flow, indentless and not flow_in_lists)

    data = yaml.load(GENERATED.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    text = yaml.dump(data, Dumper=Dumper, indent=indent, default_flow_style=False, width=10000, sort_keys=False)
    assert plain_yaml.parse(text) == data


@pytest.mark.parametrize(("text", "line"), REFUSED)
def test_what_is_not_read_is_refused_with_its_line(text, line):
    with pytest.raises(Unreadable, match=rf"^line {line}: "):
        plain_yaml.parse(text)
