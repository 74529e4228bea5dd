# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The entry of the module: an observation in, versions out."""

from __future__ import annotations

import json

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.accel.cluster.plugins.module_utils._accel import model, probe, versions
from ansible_collections.accel.cluster.plugins.modules import version_info


def run(capsys, **options):
    with patch_module_args(options), pytest.raises(SystemExit) as ended:
        version_info.main()
    return json.loads(capsys.readouterr().out), ended.value.code


@pytest.fixture
def asked(monkeypatch):
    """Answer for the cards, and count how often they were asked."""
    calls = []

    def observe(runner, **options):
        calls.append(options)
        return model.Observation(
            devices=[model.Device(vendor="amd", model="MI300X", source="amd-smi")], errors=["an error"]
        )

    monkeypatch.setattr(probe, "observe", observe)
    return calls


def test_cards_are_asked_unless_they_were(capsys, asked):
    result, code = run(capsys, timeout_seconds=3, _ansible_check_mode=True)
    assert (code, result["changed"]) == (0, False)
    assert result["errors"][0] == "an error"
    assert {"firmware", "driver_kernel", "kernel", "os", "python"} <= {row["component"] for row in result["versions"]}
    assert [options["timeout_seconds"] for options in asked] == [3]
    result, _code = run(capsys, observation={"devices": [], "drivers": [], "unanswered": []})
    assert len(asked) == 1
    assert [row["component"] for row in result["versions"]] == ["image", "kernel", "os", "python"]


@pytest.mark.parametrize(
    "options", [{"timeout_seconds": 0}, {"observation": {"devices": "none"}}, {"observation": "x"}]
)
def test_wrong_options_are_refused(capsys, asked, options):
    result, code = run(capsys, **options)
    assert (code, result["failed"]) == (1, True)


def test_the_documentation_names_every_option_and_value():
    documented = yaml.safe_load(version_info.DOCUMENTATION)["options"]
    for name, option in version_info.argument_spec().items():
        for key in ("type", "elements", "default"):
            assert documented[name].get(key) == option.get(key), (name, key)
    returned = yaml.safe_load(version_info.RETURN)
    rows = returned["versions"]["sample"]
    assert all(list(row) == list(returned["versions"]["contains"]) for row in rows)
    text = " ".join(returned["versions"]["contains"]["component"]["description"])
    assert all(f"V({component})" in text for component in versions.COMPONENTS)
