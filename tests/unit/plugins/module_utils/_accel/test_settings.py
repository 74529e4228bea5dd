# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings files of others: merged so that theirs stays, refused with the line where they can't be read."""

from __future__ import annotations

import json

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import settings
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors.base import Unreadable

# As in NVIDIA/nvidia-docker#1346 and its like: what a site had before a role came.
SITE = """{
  "data-root": "/raid/docker",
  "insecure-registries": ["10.0.0.5:5000"],
  "log-opts": {"max-size": "10m"},
  "runtimes": {"habana": {"path": "/usr/bin/habana-container-runtime"}}
}
"""


def test_what_a_site_had_stays():
    old = settings.parse_json(SITE)
    new = {"insecure-registries": ["reg:5000"], "log-opts": {"max-file": "3"}, "live-restore": True}
    merged = settings.merged(old, new)
    assert list(merged) == [*old, "live-restore"]
    assert merged["data-root"] == "/raid/docker" and merged["runtimes"] == old["runtimes"]
    assert merged["insecure-registries"] == ["10.0.0.5:5000", "reg:5000"]
    assert merged["log-opts"] == {"max-size": "10m", "max-file": "3"}
    assert settings.merged(merged, new) == merged, "a second time changes nothing"
    assert settings.merged(old, new, settings.REPLACE)["insecure-registries"] == ["reg:5000"]
    assert old == json.loads(SITE), "what was read is not touched"


def test_another_kind_of_value_is_replaced():
    assert settings.merged({"a": {"b": 1}, "c": [1]}, {"a": 2, "c": {"d": 3}}) == {"a": 2, "c": {"d": 3}}


def test_a_file_keeps_its_indentation():
    assert settings.text_of(json.loads(SITE), SITE).splitlines()[1] == '  "data-root": "/raid/docker",'
    assert settings.text_of({"a": 1}) == '{\n    "a": 1\n}\n'
    assert settings.text_of({"a": 1}, '{\n\t"a": 0\n}\n') == '{\n\t"a": 1\n}\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SITE.replace('docker",', 'docker"'), "line 3 column 3: Expecting ',' delimiter"),
        (SITE.replace("}}\n}", "}},\n}"), r"line (5|6) column \d+: "),
        ('{"a": 1,\n "b": 2,\n "a": 3}', "line 3: the key 'a' stands there twice"),
        ('{"a": NaN}', "line 1: NaN is no JSON number"),
        ('[{"a": 1}]', "line 1: it is a list, not an object"),
        ("\ufeff{}", "line 1 column 1: Unexpected UTF-8 BOM"),
        ('{"a": ' * 5000 + "1" + "}" * 5000, "line 1: RecursionError"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(text, words):
    with pytest.raises(Unreadable, match=words):
        settings.parse_json(text)
    assert settings.problem_of(text, "/etc/docker/daemon.json")


def test_an_empty_file_is_no_fault():
    assert settings.parse_json(" \n") == {}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('[engine]\ncgroup_manager = "cgroupfs"\nruntime = \n', 3),
        ('unqualified-search-registries = ["a"\n[[registry]]\n', 2),
        ("[engine]\n[engine]\n", 2),
        ("a = [\n", 2),
    ],
)
def test_the_line_of_a_fault_in_toml_is_named(text, line):
    pytest.importorskip("tomllib")
    assert settings.problem_of(text, "x.conf").startswith(f"line {line}")


def test_toml_that_can_be_read_is_no_fault():
    pytest.importorskip("tomllib")
    assert settings.problem_of('[[registry]]\nlocation = "reg:5000"\ninsecure = true\n', "x.conf") is None


def test_a_python_that_reads_no_toml_says_so(monkeypatch):
    monkeypatch.setattr(settings, "tomllib", None)
    with pytest.raises(LookupError, match=r"3\.11"):
        settings.problem_of("", "x.conf")
