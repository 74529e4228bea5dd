# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module as a task sees it: what it writes, when, and what it refuses."""

from __future__ import annotations

import copy
import json
import os
import subprocess

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.accel.cluster.plugins.module_utils._accel import model
from ansible_collections.accel.cluster.plugins.modules import accelerator_slots

A, B = "0000:18:00.0", "0000:2a:00.0"


def device(slot, address, serial, uuid, firmware="96.1"):
    one = model.Device(
        vendor="nvidia", model="H100", serial=serial, uuid=uuid, pci_address=address, firmware_version=firmware
    )
    one.slot = model.SlotName(slot, "vendor" if slot else None)
    return one


def shown(*devices, unanswered=()):
    tools = [model.Tool("nvidia-smi", "nvidia", "570.86.15")]
    return model.as_dict(model.Observation(devices=list(devices), unanswered=list(unanswered), tools=tools))


TWO = shown(device("SXM1", A, "S1", "U1"), device("SXM2", B, "S2", "U2"))
SWAPPED = shown(device("SXM1", A, "S2", "U2"), device("SXM2", B, "S1", "U1"))


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "records" / "slots.json")


@pytest.fixture
def run(path, capsys, monkeypatch):
    """Return a function that runs the module once; each run has another time."""
    times = iter(f"2026-11-30T01:02:{second:02}Z" for second in range(60))
    monkeypatch.setattr(accelerator_slots.record, "now_utc", lambda: next(times))

    def once(devices="two", check=False, **options):
        devices = copy.deepcopy(TWO if devices == "two" else devices)
        arguments = {"path": path, "host": "gpu-01", "devices": devices, **options}
        arguments = {key: value for key, value in arguments.items() if value is not None}
        arguments["_ansible_check_mode"] = check
        with patch_module_args(arguments), pytest.raises(SystemExit) as ended:
            accelerator_slots.main()
        result = json.loads(capsys.readouterr().out)
        assert bool(ended.value.code) is bool(result.get("failed"))
        return result

    return once


def content(path):
    with open(path, encoding="utf-8") as handle:
        return handle.read()


def test_the_record_is_written_once_and_not_again_for_the_clock(run, path):
    first = run()
    assert first["changed"] is True
    assert first["diff"] == {
        "before": "",
        "after": content(path),
        "before_header": path,
        "after_header": path,
    }
    written = content(path)
    assert [card["serial"] for card in json.loads(written)["slots"]["SXM2"]] == ["S2"]
    second = run()
    assert second["changed"] is False
    assert second["diff"]["before"] == second["diff"]["after"] == written == content(path)
    assert second["record"]["observed_at"] != first["record"]["observed_at"]


def test_check_mode_tells_and_writes_nothing(run, path):
    result = run(check=True)
    assert result["changed"] is True and '"serial": "S2"' in result["diff"]["after"]
    assert not os.path.exists(os.path.dirname(path))
    run()
    before = content(path)
    result = run(SWAPPED, check=True)
    assert result["changed"] is True and result["diff"]["before"] == before != result["diff"]["after"]
    assert content(path) == before
    assert run(check=True)["changed"] is False


def test_a_lost_card_is_not_forgotten(run, path):
    run()
    lost = {"pci_address": B, "vendor": "nvidia", "state": "lost", "slot": model.SlotName()}
    result = run(shown(device("SXM1", A, "S1", "U1"), unanswered=[lost]))
    assert result["changed"] is True
    card = json.loads(content(path))["slots"]["SXM2"][0]
    assert (card["serial"], card["present"], card["state"]) == ("S2", False, "lost")
    assert run(TWO)["record"]["slots"]["SXM2"][0]["present"] is True


def test_a_declared_map_goes_before_what_was_observed(run):
    result = run(slots={"tray-7": B})
    assert sorted(result["record"]["slots"]) == ["SXM1", "tray-7"]
    assert result["record"]["slots"]["tray-7"][0]["candidates"] == [{"label": "SXM2", "source": "vendor"}]
    assert "names no PCI address" in run(slots={"SXM1": "SXM2"})["msg"]


def test_an_invalid_file_is_refused_with_its_line_and_left_untouched(run, path):
    run()
    broken = content(path).replace('"host": "gpu-01",', '"host": "gpu-01"')
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(broken)
    for state in ("present", "compared"):
        result = run(SWAPPED, state=state, baseline=run_baseline())
        assert result["failed"] is True
        assert result["msg"].startswith(f"{path} line 3 column 3: not valid JSON")
        assert "left untouched" in result["msg"]
    assert content(path) == broken


def run_baseline(**changes):
    card = {"serial": "S1", "uuid": "U1", "pci_address": A, "firmware_version": "96.1"}
    other = {"serial": "S2", "uuid": "U2", "pci_address": B, "firmware_version": "96.1"}
    body = {"schema": 1, "host": "gpu-01", "observed_at": "2026", "tool": {}, "unplaced": []}
    return {**body, "slots": {"SXM1": [card], "SXM2": [other]}, **changes}


def test_compared_judges_what_is_there_now_and_changes_nothing(run, path):
    run()
    before = content(path)
    assert run(state="compared", baseline=run_baseline())["difference"] == []
    result = run(SWAPPED, state="compared", baseline=run_baseline())
    assert result["changed"] is False
    assert result["difference"] == ["gpu-01 SXM1 <-> gpu-01 SXM2: serial S1 and serial S2 (swapped)"]
    assert len(result["comparison"]["swapped"]) == 1
    assert result["diff"]["before"] == result["diff"]["after"]
    assert content(path) == before


def test_compared_needs_no_record_and_makes_none(run, path):
    result = run(shown(device("SXM1", A, "S9", "U9"), device("SXM2", B, "S2", "U2", "96.2")), state="compared",
                 baseline=run_baseline())  # fmt: skip
    assert result["difference"] == [
        "gpu-01 SXM1: serial S1 -> S9 (replaced)",
        "gpu-01 SXM2: serial S2, firmware_version 96.1 -> 96.2 (changed)",
    ]
    assert not os.path.exists(path)


@pytest.mark.parametrize(
    ("baseline", "says"),
    [
        (None, "state is compared but all of the following are missing: baseline"),
        ({}, "the baseline has schema None"),
        (run_baseline(schema=2), "the baseline has schema 2"),
        (run_baseline(host="gpu-02"), "the baseline is that of host gpu-02, not of gpu-01"),
        (
            run_baseline(slots={"SXM1": [{}]}),
            "the baseline is not valid: slots SXM1 0 a card's key 'serial' is missing",
        ),
    ],
)
def test_what_is_no_baseline_of_this_host_is_refused(run, baseline, says):
    result = run(state="compared", baseline=baseline)
    assert result["failed"] is True and says in result["msg"]


@pytest.mark.parametrize("devices", [{}, {"devices": []}, {"devices": ["x"], "unanswered": []}])
def test_devices_of_another_shape_are_refused(run, devices, path):
    result = run(devices)
    assert result["failed"] is True and "is not what accelerator_info returns" in result["msg"]
    assert not os.path.exists(path)


def test_a_file_in_the_place_of_the_directory_is_told(run, path):
    with open(os.path.dirname(path), "w", encoding="utf-8"):
        pass
    result = run()
    assert result["failed"] is True
    assert result["msg"] == f"{path} cannot be read: a part of the path is a file, not a directory."


def test_a_full_disk_is_told_and_the_old_record_is_intact(run, path):
    os.mkdir(os.path.dirname(path))
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", os.path.dirname(path)]
    mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.strip()}")
    try:
        run()
        before = content(path)
        many = shown(*(device(f"S{n}", f"0000:{n:02x}:00.0", f"S{n}", f"U{n}") for n in range(1, 99)))
        result = run(many)
        assert result["failed"] is True
        assert "no space is left on the device. What was there before is intact." in result["msg"]
        assert content(path) == before
    finally:
        subprocess.run(["umount", os.path.dirname(path)], check=True)


def test_without_devices_the_module_asks_the_cards(run, monkeypatch):
    asked = {}

    def observe(runner, **options):
        asked.update(options)
        return model.Observation(devices=[device("SXM1", A, "S1", "U1")], errors=["slot table unusable"])

    monkeypatch.setattr(accelerator_slots.probe, "observe", observe)
    result = run(None, vendors=["nvidia"], timeout_seconds=7, slots={A: "SXM1"})
    assert list(result["record"]["slots"]) == ["SXM1"] and result["errors"] == ["slot table unusable"]
    assert asked == {
        "vendors": ["nvidia"],
        "timeout_seconds": 7,
        "gather": ["slots"],
        "declared_slots": {A: "SXM1"},
        "declared_vendors": {},
    }
    assert "acme.pci_vendors" in run(None, declared_vendors={"acme": {}})["msg"]
    assert "timeout_seconds must be 1 or more" in run(timeout_seconds=0)["msg"]


def test_the_host_is_the_node_where_nobody_names_it(run):
    assert run(host=None)["record"]["host"] == os.uname().nodename
