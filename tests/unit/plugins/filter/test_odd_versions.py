# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter hands on what it was given and refuses what can be no answer."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from ansible_collections.accel.cluster.plugins.filter import versions as filters

ROW = {"component": "runtime", "name": "cuda", "subject": None, "version": "12.8.1", "source": "a file"}


def test_the_odd_one_is_named():
    hosts = {name: {"versions": [ROW]} for name in ("gpu-01", "gpu-02")}
    hosts["gpu-03"] = {"versions": [{**ROW, "version": "12.4.0"}]}
    (entry,) = filters.odd_versions(hosts)
    assert [row["host"] for row in entry["odd"]] == ["gpu-03"]
    (entry,) = filters.odd_versions(hosts, {"runtime": "12.4"})
    assert [row["host"] for row in entry["odd"]] == ["gpu-01", "gpu-02"]


@pytest.mark.parametrize(("hosts", "pins"), [([], {}), ({}, "570"), ({}, {"drivers": "570"})])
def test_what_can_be_no_answer_is_refused(hosts, pins):
    with pytest.raises(AnsibleFilterError, match="odd_versions"):
        filters.odd_versions(hosts, pins)


@pytest.mark.parametrize("junk", [[], ["cuda"], {"x": 1}, 5, 1.5, True, "", "{{ x }}"])
@pytest.mark.parametrize("key", ROW)
def test_rows_of_any_kind_are_compared_or_left_out(key, junk):
    """A host's row may be anything: a key of another kind is a text like any other."""
    hosts = {name: {"versions": [ROW]} for name in ("gpu-01", "gpu-02")}
    found = filters.odd_versions({**hosts, "gpu-03": {"versions": [{**ROW, key: junk}, junk]}}, {"runtime": junk})
    assert {entry["component"] for entry in found} == {"runtime"}


def test_it_is_documented():
    page = yaml.safe_load((Path(filters.__file__).parent / "odd_versions.yml").read_text(encoding="utf-8"))
    assert list(filters.FilterModule().filters()) == [page["DOCUMENTATION"]["name"]]
    (entry,) = filters.odd_versions({"gpu-01": {"versions": [ROW]}})
    assert list(page["RETURN"]["_value"]["sample"][0]) == list(entry)
