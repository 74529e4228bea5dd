# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The entry of the module: it says what it would do, does it once, and says everything that speaks against it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.accel.cluster.plugins.doc_fragments.attributes import ModuleDocFragment
from ansible_collections.accel.cluster.plugins.module_utils._accel import installers
from ansible_collections.accel.cluster.plugins.modules import driver_installers

ROOT = Path(__file__).resolve().parents[4]


def run(capsys, **options):
    with patch_module_args(options), pytest.raises(SystemExit) as ended:
        driver_installers.main()
    return json.loads(capsys.readouterr().out), ended.value.code


@pytest.fixture
def options(tmp_path):
    script = tmp_path / "driver.run"
    script.write_text(f"echo version=1.0 > {tmp_path}/info\n")
    digest = hashlib.sha256(script.read_bytes()).hexdigest()
    one = {
        "name": "driver",
        "file": str(script),
        "sha256": digest,
        "version": "1.0",
        "version_file": f"{tmp_path}/info",
        "target": str(tmp_path),
    }
    return {"installers": [one], "state_dir": str(tmp_path / "state")}


def test_a_check_run_writes_nothing_and_the_real_one_runs_once(capsys, options, tmp_path):
    before = sorted(tmp_path.iterdir())
    told, code = run(capsys, **options, _ansible_check_mode=True)
    assert (code, told["changed"], told["versions"]) == (0, True, {"driver": None})
    assert told["diff"] == {"before": "driver (none)\n", "after": "driver 1.0\n"}
    assert sorted(tmp_path.iterdir()) == before
    told, code = run(capsys, **options)
    assert (code, told["changed"], told["versions"]) == (0, True, {"driver": "1.0"})
    told, code = run(capsys, **options)
    assert (code, told["changed"], told["changes"]) == (0, False, [])


@pytest.mark.parametrize("check", [True, False])
def test_what_speaks_against_it_fails_in_check_mode_too(capsys, options, tmp_path, check):
    options["installers"][0]["sha256"] = "0" * 64
    told, code = run(capsys, **options, _ansible_check_mode=check)
    assert (code, told["failed"]) == (1, True)
    assert told["msg"].startswith("nothing was run: driver: ") and len(told["refused"]) == 1
    assert not (tmp_path / "info").exists()


def test_a_failure_says_what_is_there_now(capsys, options):
    options["installers"][0]["version"] = "2.0"
    told, code = run(capsys, **options)
    assert (code, told["versions"]) == (1, {"driver": "1.0"})
    assert told["msg"].startswith("driver 2.0 ended well, but then installed is 1.0.")


def test_the_documentation_names_every_option():
    documented = yaml.safe_load(driver_installers.DOCUMENTATION)["options"]
    documented.update(yaml.safe_load(ModuleDocFragment.INSTALLERS)["options"])

    def same(spec, options):
        assert set(spec) == set(options)
        for name, option in spec.items():
            for key in ("type", "elements", "default", "required"):
                assert options[name].get(key) == option.get(key), (name, key)
            if "options" in option:
                same(option["options"], options[name]["suboptions"])

    same(driver_installers.argument_spec(), documented)
    known = driver_installers.argument_spec()["installers"]["options"]
    assert set(known) == set(installers.Installer.__dataclass_fields__)
    # The role hands on what is declared there, with the same names.
    role = yaml.safe_load((ROOT / "roles/driver/meta/argument_specs.yml").read_text(encoding="utf-8"))
    declared = role["argument_specs"]["main"]["options"]["driver_installers"]["options"]
    assert {name: (one["type"], one.get("elements")) for name, one in declared.items() if one["type"] != "str"} == {
        name: (one["type"], one.get("elements")) for name, one in known.items() if one["type"] not in ("str", "path")
    }
    assert set(declared) == set(known)
