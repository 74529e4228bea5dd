# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The entry of the module: options in, observation out."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.accel.cluster.plugins.module_utils._accel import model, probe
from ansible_collections.accel.cluster.plugins.modules import accelerator_info


def run(capsys, **options):
    """Run the module; return what it prints and its exit status."""
    with patch_module_args(options), pytest.raises(SystemExit) as ended:
        accelerator_info.main()
    return json.loads(capsys.readouterr().out), ended.value.code


@pytest.fixture
def asked(monkeypatch):
    """Answer with one card under load, and keep what the probe was asked."""
    options = {}

    def observe(runner, **given):
        options.update(given)
        link = model.Link(speed_gts=32.0, width=16, under_load=True)
        return model.Observation(
            devices=[model.Device(vendor="nvidia", uuid="GPU-1", pci_address="0000:18:00.0", link=link)], count=1
        )

    monkeypatch.setattr(probe, "observe", observe)
    return options


def test_options_reach_the_probe(capsys, asked):
    result, code = run(
        capsys,
        vendors=["nvidia"],
        timeout_seconds=5,
        gather=["slots"],
        slots={"SXM1": "0000:18:00.0"},
        _ansible_check_mode=True,
    )
    assert code == 0
    assert result["changed"] is False
    assert result["count"] == 1
    assert result["devices"][0]["pci_address"] == "0000:18:00.0"
    assert asked == {
        "vendors": ["nvidia"],
        "timeout_seconds": 5,
        "gather": ["slots"],
        "declared_slots": {"SXM1": "0000:18:00.0"},
        "declared_vendors": {},
    }


def test_a_vendor_of_the_site_reaches_the_probe(capsys, asked):
    acme = {"acme": {"pci_vendors": ["1eed"]}}
    assert run(capsys, declared_vendors=acme)[1] == 0
    assert asked["declared_vendors"] == acme


def test_a_vendor_that_is_declared_wrongly_is_refused_before_a_card_is_asked(capsys, asked):
    result, code = run(capsys, declared_vendors={"acme": {"pci_vendors": ["10de"]}})
    assert (code, asked) == (1, {})
    assert "declared vendor acme.pci_vendors[0]: 10de; accepted: an id that is not nvidia's" in result["msg"]


def test_defaults(capsys, asked):
    result, _code = run(capsys)
    assert asked == {
        "vendors": [],
        "timeout_seconds": 60,
        "gather": ["processes", "links", "slots", "health", "kernel_log"],
        "declared_slots": {},
        "declared_vendors": {},
    }
    keys = {field.name for field in fields(model.Observation)}
    assert keys <= set(result)
    # Newer ansible-core adds the invocation where it runs the module, not in the module's answer.
    assert set(result) - keys - {"invocation"} == {"changed"}


@pytest.mark.parametrize(
    "options",
    [{"timeout_seconds": 0}, {"gather": ["everything"]}, {"timeout_seconds": "soon"}, {"vendors": ["nvidea"]}],
)
def test_wrong_options_are_refused(capsys, asked, options):
    result, code = run(capsys, **options)
    assert code == 1
    assert result["failed"] is True
    assert asked == {}


def test_readings_of_links_are_joined(capsys, asked, tmp_path):
    kept = {"identity": "GPU-2", "speed_gts": 16.0, "width": 16, "at": "2026-11-01T00:00:00Z"}
    (tmp_path / "links.json").write_text(json.dumps({"schema": 1, "links": {"0000:2a:00.0": kept}}))
    before = (tmp_path / "links.json").read_text()
    result, _code = run(capsys, records_dir=str(tmp_path))
    assert result["link_readings"]["0000:2a:00.0"] == kept
    assert result["link_readings"]["0000:18:00.0"]["speed_gts"] == 32.0
    assert (tmp_path / "links.json").read_text() == before


def test_the_slot_record_names_silent_cards(capsys, monkeypatch, tmp_path):
    entry = {
        **dict.fromkeys(("model", "serial", "uuid", "firmware_version", "last")),
        "pci_address": "0000:2a:00.0",
        "slot": {"label": None, "source": None, "candidates": []},
    }
    monkeypatch.setattr(probe, "observe", lambda runner, **given: model.Observation(unanswered=[entry]))
    known = {
        "serial": "0990100000001",
        "uuid": "GPU-1",
        "pci_address": "0000:2a:00.0",
        "slot_source": "vendor",
        "candidates": [],
        "present": True,
    }
    body = {
        "schema": 1,
        "host": "gpu-01",
        "observed_at": "2026-11-01T00:00:00Z",
        "tool": {"name": "nvidia-smi", "version": "570.86.15"},
        "slots": {"SXM2": [known]},
        "unplaced": [],
    }
    (tmp_path / "slots.json").write_text(json.dumps(body))
    result, _code = run(capsys, records_dir=str(tmp_path), host="gpu-07")
    assert (result["unanswered"][0]["serial"], len(result["errors"])) == (None, 1)
    result, _code = run(capsys, records_dir=str(tmp_path), host="gpu-01")
    assert result["errors"] == []
    assert result["unanswered"][0]["slot"]["label"] == "SXM2"
    assert result["unanswered"][0]["serial"] == "0990100000001"
    (tmp_path / "slots.json").write_text('{"schema": 1, "slots": []}')
    result, code = run(capsys, records_dir=str(tmp_path))
    assert code == 0
    assert "slots.json" in result["errors"][0]


def test_a_damaged_file_of_readings_hides_no_card(capsys, asked, tmp_path):
    (tmp_path / "links.json").write_text("{")
    result, code = run(capsys, records_dir=str(tmp_path))
    assert code == 0
    assert result["count"] == 1
    assert "links.json" in result["errors"][0]
    assert list(result["link_readings"]) == ["0000:18:00.0"]


def test_documentation_names_every_option_and_value():
    documented = yaml.safe_load(accelerator_info.DOCUMENTATION)["options"]
    spec = accelerator_info.argument_spec()
    assert list(documented) == list(spec)
    for name, option in spec.items():
        for key in ("type", "elements", "choices", "default"):
            assert documented[name].get(key) == option.get(key), (name, key)
    returned = yaml.safe_load(accelerator_info.RETURN)
    assert [name for name in returned if name != "link_readings"] == [field.name for field in fields(model.Observation)]
    device = [field.name for field in fields(model.Device)]
    assert list(returned["devices"]["contains"]) == device
    assert list(returned["devices"]["sample"][0]) == device
