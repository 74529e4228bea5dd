# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file of a host's cards: written whole, once, and never beside another that defines the same."""

from __future__ import annotations

import json

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.accel.cluster.plugins.module_utils._accel import cdi
from ansible_collections.accel.cluster.plugins.modules import cdi_spec

CARDS = {
    "devices": [
        {
            "index": number,
            "vendor": "ascend",
            "uuid": f"chip-{number}",
            "identity": "uuid",
            "pci_address": f"0000:{number}8:00.0",
            "slot": {"label": str(number)},
            "device_nodes": [f"/dev/davinci{number}"],
            "driver_version": "24.1.rc2",
        }
        for number in range(2)
    ],
    "drivers": [],
}


def run(capsys, **options):
    with patch_module_args(options), pytest.raises(SystemExit) as ended:
        cdi_spec.main()
    return json.loads(capsys.readouterr().out), ended.value.code


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(cdi, "FOLDERS", (str(tmp_path / "etc"), str(tmp_path / "run")))
    return tmp_path / "etc"


def options(folder, **more):
    return {"vendor": "ascend", "devices": CARDS, "path": str(folder / "accel-ascend.json"), **more}


def test_it_is_written_once(capsys, folder):
    told, code = run(capsys, **options(folder))
    assert (code, told["changed"], told["left_out"]) == (0, True, [])
    assert told["names"][:3] == ["huawei.com/npu=0", "huawei.com/npu=1", "huawei.com/npu=chip-0"]
    file = folder / "accel-ascend.json"
    assert file.read_text() == told["diff"]["after"] and told["diff"]["before"] == ""
    assert file.stat().st_mode & 0o777 == 0o644
    assert [one.name for one in folder.iterdir()] == ["accel-ascend.json"]
    assert json.loads(file.read_text())["containerEdits"]["env"] == ["ACCEL_DRIVER_VERSION=24.1.rc2"]
    number = file.stat().st_ino
    told, _code = run(capsys, **options(folder))
    assert told["changed"] is False and file.stat().st_ino == number
    file.chmod(0o666)
    told, _code = run(capsys, **options(folder))
    assert told["changed"] is True and file.stat().st_mode & 0o777 == 0o644


def test_check_mode_says_so_and_writes_nothing(capsys, folder):
    told, _code = run(capsys, **options(folder), _ansible_check_mode=True, _ansible_diff=True)
    assert told["changed"] is True and "davinci1" in told["diff"]["after"]
    assert not folder.exists()
    run(capsys, **options(folder))
    told, _code = run(capsys, **options(folder, state="absent"), _ansible_check_mode=True)
    assert told["changed"] is True and (folder / "accel-ascend.json").exists()


def test_it_is_removed_once(capsys, folder):
    run(capsys, **options(folder))
    for changed in (True, False):
        told, code = run(capsys, vendor="ascend", path=str(folder / "accel-ascend.json"), state="absent")
        assert (code, told["changed"], (folder / "accel-ascend.json").exists()) == (0, changed, False)


@pytest.mark.parametrize("place", ["etc", "run"])
def test_devices_that_another_file_defines_are_refused(capsys, folder, place):
    other = folder.parent / place / "ascend.yaml"
    other.parent.mkdir()
    other.write_text("cdiVersion: 0.5.0\nkind: huawei.com/npu\ndevices:\n- name: all\n")
    told, code = run(capsys, **options(folder))
    assert code == 1 and f"{other} defines huawei.com/npu all already" in told["msg"]
    assert not (folder / "accel-ascend.json").exists()
    other.write_text("kind: huawei.com/npu\nx: |\n  y\n")
    told, code = run(capsys, **options(folder))
    assert code == 1 and "can't be read: line 2" in told["msg"]
    other.write_text("cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n- name: all\n")
    assert run(capsys, **options(folder))[1] == 0


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"vendor": "acme"}, "kind must say it"),
        ({"kind": "npu"}, "no CDI kind"),
        ({"devices": {}}, "not what accelerator_info returns"),
        ({"devices": {"devices": [{**CARDS["devices"][0], "device_nodes": []}]}}, "no card with a device node"),
        ({"devices": {"devices": [{**CARDS["devices"][0], "vendor": "amd"}]}}, "no card with a device node"),
        ({"path": "/etc/cdi/x.yaml"}, "end in .json"),
    ],
)
def test_what_can_not_be_is_refused(capsys, folder, more, words):
    told, code = run(capsys, **options(folder, **more))
    assert (code, told["failed"]) == (1, True) and words in told["msg"]


def test_a_vendor_that_a_site_declares_says_all_itself(capsys, folder, tmp_path):
    (tmp_path / "acme_ctl").write_text("")
    cards = {"devices": [{**one, "vendor": "acme"} for one in CARDS["devices"]]}
    more = {"vendor": "acme", "devices": cards, "kind": "acme.example/npu"}
    told, code = run(capsys, **options(folder, **more, control_nodes=[str(tmp_path / "acme_c*")]))
    assert code == 0 and told["names"][0] == "acme.example/npu=0"
    spec = json.loads((folder / "accel-ascend.json").read_text())
    assert [one["path"] for one in spec["containerEdits"]["deviceNodes"]] == [str(tmp_path / "acme_ctl")]


def test_the_documentation_names_every_option_and_value():
    documented = yaml.safe_load(cdi_spec.DOCUMENTATION)["options"]
    assert set(documented) == set(cdi_spec.argument_spec())
    for name, option in cdi_spec.argument_spec().items():
        for key in ("type", "elements", "default", "choices", "required"):
            assert documented[name].get(key) == option.get(key), name
