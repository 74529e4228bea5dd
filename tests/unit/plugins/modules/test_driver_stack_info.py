# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The entry of the module, on this machine: it has no cards, but packages."""

from __future__ import annotations

import json
import shutil

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.accel.cluster.plugins.modules import driver_stack_info


def run(capsys, **options):
    with patch_module_args(options), pytest.raises(SystemExit) as ended:
        driver_stack_info.main()
    return json.loads(capsys.readouterr().out), ended.value.code


@pytest.mark.skipif(not (shutil.which("apt-get") and shutil.which("dpkg-query")), reason="needs apt")
def test_a_package_of_this_machine_is_tried(capsys):
    result, code = run(capsys, vendor="NVIDIA", packages=["tar", "no-such-package"], _ansible_check_mode=True)
    assert (code, result["changed"], result["vendor"]) == (0, False, "nvidia")
    assert [one["name"] for one in result["packages"]] == ["tar"]
    trial = result["lock"]["trial"]
    # Another run of apt may be under way; else nothing keeps it, unless it is held here.
    assert trial["problem"] or trial["state"] == ("refused" if result["packages"][0]["held"] else "upgraded")
    assert trial["problem"] or (trial["upgraded"] == ["tar"]) == (trial["state"] == "upgraded")


@pytest.mark.parametrize("options", [{}, {"vendor": "acme"}, {"vendor": "nvidia", "timeout_seconds": 0}])
def test_wrong_options_are_refused(capsys, options):
    result, code = run(capsys, **options)
    assert (code, result["failed"]) == (1, True)


def test_the_documentation_names_every_option_and_value(capsys):
    documented = yaml.safe_load(driver_stack_info.DOCUMENTATION)["options"]
    for name, option in driver_stack_info.argument_spec().items():
        for key in ("type", "elements", "default", "required"):
            assert documented[name].get(key) == option.get(key), (name, key)
    returned = yaml.safe_load(driver_stack_info.RETURN)
    result, _code = run(capsys, vendor="nvidia")
    assert set(returned) == set(result) - {"changed", "invocation"}
    for name in ("module", "fabric_manager"):
        assert set(returned[name]["sample"]) == set(result[name])
    if result["lock"]:
        assert set(returned["lock"]["sample"]) == set(result["lock"])
        assert set(returned["lock"]["sample"]["trial"]) == set(result["lock"]["trial"])
