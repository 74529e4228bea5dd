# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The entry of the module, on this machine: it has no cards and no driver."""

from __future__ import annotations

import json

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.accel.cluster.plugins.modules import driver_boot_info


def run(capsys, **options):
    with patch_module_args(options), pytest.raises(SystemExit) as ended:
        driver_boot_info.main()
    return json.loads(capsys.readouterr().out), ended.value.code


def test_a_machine_without_the_driver_needs_a_reboot_that_would_not_bring_it(capsys):
    result, code = run(capsys, vendor="NVIDIA", driver_version="1.2.3", _ansible_check_mode=True)
    assert (code, result["changed"]) == (0, False)
    if not result["shared_kernel"] and not result["loaded"]:
        assert result["needed"] == ["the module of the driver is not loaded"]
        assert len(result["refused"]) == 1


@pytest.mark.parametrize("options", [{}, {"vendor": "acme"}])
def test_wrong_options_are_refused(capsys, options):
    result, code = run(capsys, **options)
    assert (code, result["failed"]) == (1, True)


def test_the_documentation_names_every_option_and_value(capsys):
    documented = yaml.safe_load(driver_boot_info.DOCUMENTATION)["options"]
    for name, option in driver_boot_info.argument_spec().items():
        for key in ("type", "elements", "default", "required"):
            assert documented[name].get(key) == option.get(key), (name, key)
    assert set(documented) == set(driver_boot_info.argument_spec())
    returned = yaml.safe_load(driver_boot_info.RETURN)
    result, _code = run(capsys, vendor="nvidia")
    assert set(returned) == set(result) - {"changed", "invocation"}
    if result["kernels"]:
        assert set(returned["kernels"]["sample"]) == set(result["kernels"])
