# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The entry of the module: options in, what the host says out, no password in it."""

from __future__ import annotations

import json

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.accel.cluster.plugins.module_utils._accel import containers
from ansible_collections.accel.cluster.plugins.module_utils._accel.runner import Runner
from ansible_collections.accel.cluster.plugins.modules import container_info


def run(capsys, **options):
    with patch_module_args(options), pytest.raises(SystemExit) as ended:
        container_info.main()
    return json.loads(capsys.readouterr().out), ended.value.code


@pytest.fixture
def asked(monkeypatch):
    calls = []

    def observe(runner, *arguments):
        calls.append(arguments)
        return {"engine": {}, "said": f"login {arguments[1][0]['password']}" if arguments[1] else ""}

    monkeypatch.setattr(containers, "observe", observe)
    return calls


def test_the_options_arrive(capsys, asked):
    login = {"address": "reg:5000", "username": "node", "password": "s3cret-word"}
    told, code = run(capsys, engine="docker", registries=[login], images=["reg:5000/x:1"], timeout_seconds=3)
    assert (code, told["changed"]) == (0, False)
    ((engine, registries, images, seconds),) = asked
    assert (engine, images, seconds) == ("docker", ["reg:5000/x:1"], 3)
    assert registries[0]["scheme"] == "https" and registries[0]["password"] == "s3cret-word"
    assert "s3cret-word" not in json.dumps(told)


@pytest.mark.parametrize(
    "options",
    [
        {"timeout_seconds": 0},
        {"engine": "lxc"},
        {"registries": [{"scheme": "http"}]},
        {"registries": [{"address": "a", "scheme": "ftp"}]},
    ],
)
def test_wrong_options_are_refused(capsys, asked, options):
    told, code = run(capsys, **options)
    assert (code, told["failed"], asked) == (1, True, [])


def test_the_documentation_names_every_option_and_value():
    def compare(documented, spec):
        assert set(documented) == set(spec)
        for name, option in spec.items():
            for key in ("type", "elements", "default", "choices", "required"):
                assert documented[name].get(key) == option.get(key), name
            if "options" in option:
                compare(documented[name]["suboptions"], option["options"])

    compare(yaml.safe_load(container_info.DOCUMENTATION)["options"], container_info.argument_spec())


def test_what_is_read_is_what_the_documentation_says(monkeypatch):
    monkeypatch.setattr(Runner, "which", lambda _self, _name: None)
    told = containers.observe(Runner())
    documented = yaml.safe_load(container_info.RETURN)
    assert set(documented) == set(told)
    assert set(documented["engine"]["sample"]) == set(told["engine"])
    assert set(documented["cdi"]["sample"]) == set(told["cdi"])
