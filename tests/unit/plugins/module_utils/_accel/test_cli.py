# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``accelctl``: exit statuses and what it prints, on a host whose cards show on the bus only."""

from __future__ import annotations

import compileall
import contextlib
import io
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import observations as seen
import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import cli, judge, reader, record, shown
from ansible_collections.accel.cluster.plugins.module_utils._accel import runner as tools_runner
from ansible_collections.accel.cluster.plugins.modules import accelctl
from doubles import HANG, RecordedRunner
from test_probe import LINKS, document
from test_probe_judged import HEALTHY, JOURNAL, card
from test_runner import all_gone

BUS = "/sys/bus/pci/devices/"
CARD = {"vendor": "0x10de", "device": "0x2330", "class": "0x030200", "numa_node": "0"}


def runner(*addresses: str) -> RecordedRunner:
    """Return a host without any vendor tool that shows H100 cards at these addresses."""
    files = {f"{BUS}{address}/{name}": text for address in addresses for name, text in CARD.items()}
    return RecordedRunner(files=files, tools=set())


def node_file(tmp_path, **declared: object) -> str:
    """Write a node file that declares H100 cards; return its path."""
    path = tmp_path / "node.json"
    body = {
        "host": "gpu-01",
        "language": "en",
        "records_dir": str(tmp_path),
        "declared": {"cluster_accelerator_vendor": "nvidia", "cluster_accelerator_count": "2", **declared},
    }
    path.write_text(json.dumps(body))
    return str(path)


RECORD = {
    "schema": 1,
    "host": "gpu-01",
    "observed_at": "2026-11-29T01:02:03Z",
    "tool": {"name": "nvidia-smi", "version": "570.86.15"},
    "slots": {},
    "unplaced": [],
}


def finding(verdict: str, severity: str = "critical") -> dict:
    """Return as much of a finding as the exit status looks at."""
    return {"verdict": verdict, "severity": severity}


@pytest.mark.parametrize(
    ("findings", "status"),
    [
        ([], 3),
        ([finding("pass")], 0),
        ([finding("pass"), finding("not_applicable")], 0),
        ([finding("pass"), finding("unknown", "warning")], 0),
        ([finding("fail", "warning"), finding("pass")], 1),
        ([finding("fail", "warning"), finding("unknown")], 3),
        ([finding("unknown"), finding("fail")], 2),
    ],
)
def test_exit_status(findings: list[dict], status: int) -> None:
    assert shown.exit_status(findings) == status


def test_cards_without_a_tool_are_listed_and_are_no_pass(tmp_path, capsys) -> None:
    host = runner("0000:18:00.0", "0000:2a:00.0")
    assert cli.main(["devices", "--node-file", node_file(tmp_path)], host) == 3
    assert "0000:2a:00.0" in capsys.readouterr().out
    assert cli.main(["check", "--json", "--node-file", node_file(tmp_path)], host) in (2, 3)
    told = json.loads(capsys.readouterr().out)
    verdicts = {one["check"]: one["verdict"] for one in told["findings"]}
    assert verdicts["device.driver"] == "fail"
    assert verdicts["device.count"] != "pass"


@pytest.mark.parametrize(
    ("count", "bus", "status"),
    [(8, 8, 0), (0, 0, 0), (7, 8, 3), (8, 7, 3), (8, None, 3), (None, 8, 3), (None, None, 3)],
)
@pytest.mark.parametrize("command", ["devices", "slots"])
def test_devices_is_ok_only_where_tool_and_bus_told_the_same_number(tmp_path, monkeypatch, command, count, bus, status):
    observation = {"devices": [], "unanswered": [], "tools": [], "errors": [], "count": count, "bus_count": bus}
    monkeypatch.setattr(cli, "observe", lambda *_arguments: observation)
    assert cli.main([command, "--node-file", node_file(tmp_path)], runner()) == status


@pytest.mark.parametrize("command", ["devices", "slots"])
def test_equal_numbers_do_not_hide_a_card_that_does_not_answer(tmp_path, monkeypatch, command) -> None:
    """One card answers without an address, one is on the bus: nothing says that it is the same."""
    told = []
    real = cli.observe
    monkeypatch.setattr(cli, "observe", lambda *arguments: told.append(real(*arguments)) or told[-1])
    host = one_card_answers("0000:18:00.0")
    assert cli.main([command, "--node-file", node_file(tmp_path)], host) == 0
    answer = document(card("0000:18:00.0")).replace('id="00000000:18:00.0"', 'id="N/A"')
    host.answers["nvidia-smi", "-q", "-x"] = (0, answer, "")
    assert cli.main([command, "--node-file", node_file(tmp_path)], host) == 3
    assert (told[1]["count"], told[1]["bus_count"], len(told[1]["unanswered"])) == (1, 1, 1)


def test_devices_needs_no_declaration(capsys) -> None:
    assert cli.main(["devices", "--json", "--node-file", "/nonexistent"], runner("0000:18:00.0")) == 3
    assert json.loads(capsys.readouterr().out)["bus_count"] == 1


def test_a_vendor_of_the_site_is_known_to_the_node(tmp_path, capsys) -> None:
    acme = {
        "pci_vendors": ["1eed"],
        "command": ["acme-smi", "--csv"],
        "format": "csv",
        "fields": {"pci_address": "bus", "serial": "sn"},
    }
    host = runner("0000:18:00.0")
    host.files.update({f"{BUS}0000:18:00.0/vendor": "0x1eed"})
    host.tools, host.answers = {"acme-smi"}, {("acme-smi", "--csv"): (0, "bus,sn\n18:00.0,A1\n", "")}
    assert cli.main(["devices", "--node-file", node_file(tmp_path, cluster_vendors={"acme": acme})], host) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == [
        "-",
        "0000:18:00.0",
        "acme",
        "1eed:2330",
        "A1",
        "unknown",
    ]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"host": "gpu-01"}'])
def test_check_names_a_bad_node_file(tmp_path, capsys, text: str) -> None:
    path = tmp_path / "node.json"
    path.write_text(text)
    assert cli.main(["check", "--node-file", str(path)], runner()) == 3
    assert str(path) in capsys.readouterr().err


def test_a_lost_card_keeps_its_last_serial(tmp_path, capsys) -> None:
    known = {
        "schema": 1,
        "host": "gpu-01",
        "observed_at": "2026-11-29T01:02:03Z",
        "tool": {"name": "nvidia-smi", "version": "570.86.15"},
        "slots": {
            "SXM1": [
                {
                    "serial": "999000000001",
                    "uuid": "GPU-1",
                    "identity": "uuid",
                    "pci_address": "0000:18:00.0",
                    "model": "NVIDIA H100 80GB HBM3",
                    "firmware_version": "96.00",
                }
            ]
        },
        "unplaced": [],
    }
    (tmp_path / "slots.json").write_text(json.dumps(known))
    cli.main(["slots", "--json", "--node-file", node_file(tmp_path)], runner())
    card = json.loads(capsys.readouterr().out)["slots"]["SXM1"][0]
    assert (card["serial"], card["present"]) == ("999000000001", False)


def test_a_bad_record_is_named_not_overwritten(tmp_path, capsys) -> None:
    (tmp_path / "slots.json").write_text('{"schema": 1,')
    assert cli.main(["slots", "--node-file", node_file(tmp_path)], runner("0000:18:00.0")) == 3
    assert "slots.json" in capsys.readouterr().err
    assert (tmp_path / "slots.json").read_text() == '{"schema": 1,'


def test_bad_readings_are_named_not_overwritten_and_hide_no_finding(tmp_path, capsys) -> None:
    """What is kept of links helps one check: the others are judged without it."""
    (tmp_path / "links.json").write_text('{"schema": 1,')
    command = ["check", "--keep", "--json", "--node-file", node_file(tmp_path)]
    assert cli.main(command, runner("0000:18:00.0")) == 2
    told = capsys.readouterr()
    assert "links.json line 1 column 14: not valid JSON" in told.err
    assert "device.count" in {one["check"] for one in json.loads(told.out)["findings"]}
    assert (tmp_path / "links.json").read_text() == '{"schema": 1,'


def told_of(cause: str, subject: str, **more: object) -> dict:
    """Return a finding as ``check`` shows it."""
    return judge.finding(cause, "gpu-01", subject, card=subject, **more)


def test_each_hint_is_told_once_behind_all_that_it_is_about() -> None:
    idle = {"observed": 2.5, "expected": 32.0}
    judged = [
        told_of("device.link_speed.no_reading", "SXM1", **idle),
        told_of("device.health.critical", "SXM2", observed="the card requires a reset", expected="ok"),
        told_of("device.link_speed.no_reading", "SXM2", **idle),
        told_of("device.link_speed.ok", "SXM3", observed=32.0),
    ]
    lines = shown.show_findings(judged, "en").splitlines()
    # What is critical comes first.
    assert lines[0].startswith("fail (critical)     device.health  SXM2: ")
    assert lines[2].startswith("unknown (warning)   device.link_speed  SXM1: ")
    assert lines[3].startswith("unknown (warning)   device.link_speed  SXM2: ")
    assert lines[4].startswith("        No fault: an idle card")
    assert lines[5:] == ["1 pass, 1 fail, 2 unknown, 0 not applicable"]


def test_verdict_and_severity_are_told_apart_the_worst_first() -> None:
    """A warning may be a fault or something that nobody knows: one needs a repair, the other a look."""
    judged = [
        told_of("device.link_speed.no_reading", "SXM1", observed=2.5, expected=32.0),
        told_of("device.temperature.hot", "SXM2", observed=86.0, expected=87.0, margin=3.0),
        told_of("device.memory.blocked", "SXM3", blocked_by="device.query"),
        told_of("device.health.unknown", "SXM3", observed="?"),
        told_of("device.ecc.blocked", "SXM4", blocked_by="device.memory_repair"),
        told_of("device.memory.undeclared", "SXM4"),
        told_of("device.health.critical", "SXM4", observed="the card requires a reset"),
    ]
    lines = [line for line in shown.show_findings(judged, "en").splitlines() if not line.startswith(" ")]
    assert [(line[:20].rstrip(), *line[20:].split()[:2]) for line in lines[:-1]] == [
        ("fail (critical)", "device.health", "SXM4:"),
        ("unknown (critical)", "device.health", "SXM3:"),
        # What waits for another check explains nothing.
        ("unknown (critical)", "device.memory", "SXM3:"),
        ("unknown (critical)", "device.ecc", "SXM4:"),
        ("fail (warning)", "device.temperature", "SXM2:"),
        ("unknown (warning)", "device.link_speed", "SXM1:"),
    ]
    assert lines[-1] == "0 pass, 2 fail, 4 unknown, 1 not applicable"
    chinese = [line for line in shown.show_findings(judged, "zh").splitlines() if not line.startswith(" ")]
    # A Chinese letter is as wide as two others: the checks begin in one column of the terminal.
    assert chinese[0].startswith("不通过（严重）    device.health  SXM4")
    assert chinese[1].startswith("无法判定（严重）  device.health  SXM3")
    assert chinese[-1] == "通过 0，不通过 2，无法判定 4，不适用 1"


def test_no_finding_is_no_count_of_zeros() -> None:
    assert shown.show_findings([], "en") == "nothing was checked"
    assert shown.health_line(3, [], language="zh") == "UNKNOWN 没有检查任何项目"


def test_a_card_that_does_not_answer_is_shown_in_its_slot_with_its_serial() -> None:
    def card(slot, **more):
        return {
            "slot": {"label": slot},
            "pci_address": "0000:18:00.0",
            "pci_id": "10de:2330",
            "vendor": "nvidia",
            **more,
        }

    well = {"model": "H100", "serial": "S2", "health": {"state": "ok"}}
    lost = {"model": "H100", "serial": "S1", "state": "lost"}
    nameless = {"model": None, "serial": None, "state": "not_reported"}
    seen = {
        "devices": [card("SXM10", **well), card("SXM2", **well)],
        "unanswered": [card("SXM1", **lost), card(None, **nameless)],
    }
    rows = [line.split() for line in shown.show_devices(seen).splitlines()]
    assert [(row[0], row[3], row[4], row[5]) for row in rows] == [
        ("SLOT", "MODEL", "SERIAL", "STATE"),
        ("SXM1", "H100", "S1", "lost"),
        ("SXM2", "H100", "S2", "ok"),
        ("SXM10", "H100", "S2", "ok"),
        ("-", "10de:2330", "-", "not_reported"),
    ]


@pytest.mark.parametrize(("severity", "verdict", "status"), [("critical", "fail", 2), ("warning", "fail", 3)])
def test_readings_that_can_not_be_used_are_no_pass(tmp_path, monkeypatch, severity, verdict, status) -> None:
    judged = [finding("pass"), finding(verdict, severity)]
    monkeypatch.setattr(judge, "judge_devices", lambda *_args, **_more: judged)
    (tmp_path / "links.json").write_text("")
    assert cli.main(["check", "--json", "--node-file", node_file(tmp_path)], runner()) == status


@pytest.mark.parametrize(
    "change",
    [
        {"host": 1},
        {"records_dir": None},
        {"records_dir": 5},
        {"declared": "x"},
        {"declared": None},
        {"declared": {"cluster_query_timeout_seconds": "soon"}},
        {"declared": {"cluster_query_timeout_seconds": "nan"}},
        {"declared": {"cluster_query_timeout_seconds": -1}},
        {"declared": {"cluster_accelerator_slots": "SXM1"}},
        {"declared": {"cluster_vendors": ["acme"]}},
    ],
)
@pytest.mark.parametrize("command", ["check", "devices", "slots"])
def test_a_node_file_of_wrong_types_is_unknown_not_a_warning(tmp_path, capsys, command, change) -> None:
    path = node_file(tmp_path)
    body = json.loads((tmp_path / "node.json").read_text())
    (tmp_path / "node.json").write_text(json.dumps({**body, **change}))
    assert cli.main([command, "--node-file", path], runner("0000:18:00.0")) == 3
    assert f"accelctl: {path}: " in capsys.readouterr().err


def test_a_language_that_is_not_known_is_english(tmp_path, capsys) -> None:
    path = node_file(tmp_path)
    body = json.loads((tmp_path / "node.json").read_text())
    (tmp_path / "node.json").write_text(json.dumps({**body, "language": "fr"}))
    assert cli.main(["check", "--node-file", path], runner("0000:18:00.0")) == 2
    assert "cards are on the bus" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [[], ["--frob"], ["frob"], ["check", "--timeout", "0"], ["check", "--timeout", "nan"]]
)
def test_a_wrong_call_is_unknown_not_critical(capsys, arguments) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments, runner())
    assert ended.value.code == 3
    assert "usage: accelctl" in capsys.readouterr().err


def test_without_a_node_file_no_record_is_taken_from_where_one_stands(tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "slots.json").write_text("{")
    monkeypatch.chdir(tmp_path)
    cli.main(["slots", "--node-file", str(tmp_path / "none.json")], runner("0000:18:00.0"))
    out, err = capsys.readouterr()
    assert "0000:18:00.0" in out and not err


def driver(monkeypatch, version: str | None = "570.86.15") -> None:
    """Have two healthy cards answer, with this version of the driver."""
    observation = {**seen.healthy(), "devices": seen.healthy()["devices"][:2], "count": 2, "bus_count": 2}
    observation["drivers"][0]["kernel_version"] = version
    for device in observation["devices"]:
        device["driver_version"] = version
    monkeypatch.setattr(cli, "observe", lambda *_arguments: observation)


@pytest.mark.parametrize(
    ("version", "declared", "cause", "status"),
    [
        ("570.86.15", "570.86.15", "ok", 0),
        ("570.86.15", "570.124.06", "differs", 2),
        (None, "570.86.15", "unknown", 3),
        ("570.86.15", "", None, 0),  # one node has no majority
        (None, "", None, 0),
    ],
)
def test_check_judges_a_declared_driver_version(tmp_path, monkeypatch, capsys, version, declared, cause, status):
    driver(monkeypatch, version)
    path = node_file(tmp_path, cluster_driver_version=declared)
    assert cli.main(["check", "--json", "--node-file", path], runner()) == status
    found = [one for one in json.loads(capsys.readouterr().out)["findings"] if one["check"] == "device.driver_version"]
    assert [one["hint"] for one in found] == ([f"device.driver_version.{cause}"] if cause else [])
    if cause in ("ok", "differs"):
        assert "other nodes" not in found[0]["message"] and found[0]["message"].endswith("(declared for the type)")


def one_card_answers(address: str) -> RecordedRunner:
    """Return a host whose only card answers in full."""
    host = runner(address)
    host.files.update({"/sys/module/nvidia/version": "570.86.15"})
    host.files.update({f"{BUS}{address}/{name}_link_width": "16" for name in ("current", "max")})
    host.files.update({f"{BUS}{address}/{name}_link_speed": "32.0 GT/s PCIe" for name in ("current", "max")})
    host.answers = {("nvidia-smi", "-q", "-x"): (0, document(card(address)), ""), LINKS: HEALTHY[LINKS], **JOURNAL}
    host.tools = {"nvidia-smi", "journalctl"}
    return host


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ('{"schema": 1,', "slots.json line 1 column 14: not valid JSON"),
        (json.dumps({**RECORD, "host": "gpu-07"}), "the slot record is that of gpu-07, not of gpu-01: it is not used"),
    ],
)
def test_check_prints_what_could_not_be_read(tmp_path, capsys, damage, words) -> None:
    path = node_file(tmp_path, cluster_accelerator_count=1)
    assert cli.main(["check", "--node-file", path], one_card_answers("0000:18:00.0")) == 0
    assert "device.observation" not in capsys.readouterr().out
    (tmp_path / "slots.json").write_text(damage)
    assert cli.main(["check", "--node-file", path], one_card_answers("0000:18:00.0")) == 0
    out = capsys.readouterr().out
    assert "unknown (warning)   device.observation  gpu-01: " in out and words in out
    assert " pass, 0 fail, 1 unknown, " in out.splitlines()[-1]


def test_check_prints_that_the_declared_slot_map_is_wrong(tmp_path, capsys) -> None:
    path = node_file(tmp_path, cluster_accelerator_count=1, cluster_accelerator_slots={"0000:18:00.0": ""})
    assert cli.main(["check", "--node-file", path], one_card_answers("0000:18:00.0")) == 0
    assert "declared slot '0000:18:00.0': '' has no name" in capsys.readouterr().out


class Full(io.TextIOBase):
    """A file on a file system without space."""

    def write(self, text) -> None:
        raise OSError(28, "No space left on device")


def test_what_breaks_is_unknown_not_a_warning(tmp_path, capsys, monkeypatch) -> None:
    path = node_file(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(cli.sys, "stdout", Full())
        assert cli.main(["devices", "--node-file", path], runner("0000:18:00.0")) == 3
    assert "accelctl: the answer can't be written: No space left on device" in capsys.readouterr().err
    monkeypatch.setattr(cli, "observe", lambda *_arguments: {}["devices"])
    assert cli.main(["devices", "--node-file", path], runner("0000:18:00.0")) == 3
    assert capsys.readouterr().err == "accelctl: KeyError: 'devices'\n"
    with monkeypatch.context() as patch:
        patch.setattr(cli, "tell", lambda _answer: {}["told"])
        assert cli.main(["devices", "--node-file", path], runner("0000:18:00.0")) == 3
    assert "accelctl: KeyError: 'told'\n" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------- health, metrics, explain


def full(verdict, severity="critical", check="device.count", **more):
    """Return as much of a finding as the line of health shows."""
    told = {"check": check, "subject": "gpu-01", "message": "7 of 8 cards\nanswer", "blocked_by": None}
    return {**finding(verdict, severity), **told, **more}


FEWER = "device.count gpu-01: 7 of 8 cards answer"


@pytest.mark.parametrize(
    ("findings", "line"),
    [
        ([full("pass"), full("not_applicable")], "OK 1 pass, 0 fail, 0 unknown, 1 not applicable"),
        ([full("pass"), full("fail")], f"CRITICAL {FEWER}"),
        ([full("fail", "warning", "a.b"), full("fail"), full("fail")], f"CRITICAL {FEWER} (+1 more)"),
        ([full("fail", "warning", "a.b")], "WARNING a.b gpu-01: 7 of 8 cards answer"),
        ([full("unknown", check="a.b", blocked_by="c"), full("unknown")], f"UNKNOWN {FEWER} (+1 more)"),
        ([], "UNKNOWN nothing was checked"),
    ],
)  # fmt: skip
def test_health_is_one_line(findings, line):
    assert shown.health_line(shown.exit_status(findings), findings) == line


def test_health_counts_in_the_language_of_the_site():
    """Its first word stays: programs look for it."""
    assert shown.health_line(0, [full("pass")], language="zh") == "OK 通过 1，不通过 0，无法判定 0，不适用 0"
    assert shown.health_line(2, [full("fail"), full("fail")], language="zh") == f"CRITICAL {FEWER}（另有 1 项）"


def test_health_is_one_short_line_whatever_a_tool_said():
    findings = [full("fail", message="x\r\n\t" * 900), full("fail")]
    line = shown.health_line(2, findings)
    assert len(line) <= shown.LINE and "\n" not in line and line.endswith("... (+1 more)")


def test_health_judges_as_check_does(tmp_path, capsys):
    path = node_file(tmp_path)
    status = cli.main(["check", "--node-file", path], runner("0000:18:00.0"))
    capsys.readouterr()
    assert cli.main(["health", "--node-file", path], runner("0000:18:00.0")) == status == 2
    out = capsys.readouterr().out
    assert out.startswith("CRITICAL device.driver gpu-01: ") and out.count("\n") == 1
    assert cli.main(["health", "--node-file", path, "--language", "zh"], runner("0000:18:00.0")) == 2
    assert "驱动" in capsys.readouterr().out


def test_health_without_a_declaration_is_unknown(capsys):
    assert cli.main(["health", "--node-file", "/nonexistent"], runner()) == 3
    assert capsys.readouterr().out.startswith("UNKNOWN /nonexistent: ")


def test_commands_get_a_share_of_the_limit(tmp_path):
    class Asked(RecordedRunner):
        def run(self, argv, timeout_seconds):
            self.timeouts.append(timeout_seconds)
            return super().run(argv, timeout_seconds)

    files = {f"{BUS}0000:18:00.0/{name}": text for name, text in CARD.items()}
    for words, most in ((["--limit", "10"], 4), ([], 20), (["--timeout", "3"], 3)):
        host = Asked({("nvidia-smi", "-q", "-x"): HANG, ("nvidia-smi", "-q", "-x", "-i", "0000:18:00.0"): HANG}, files)
        assert cli.main(["health", "--node-file", node_file(tmp_path), *words], host) in (2, 3)
        assert max(host.timeouts) == most


def test_metrics_of_a_silent_host_are_told_and_are_no_error(tmp_path, capsys):
    assert cli.main(["metrics", "--node-file", node_file(tmp_path)], runner("0000:18:00.0")) == 0
    out = capsys.readouterr().out
    for line in ("accel_cards_declared 2", "accel_cards_on_bus 1", "accel_node_health 2"):
        assert line in out.splitlines()
    assert cli.main(["metrics", "--node-file", "/nonexistent"], runner()) == 0
    assert "accel_node_health 3" in capsys.readouterr().out


def test_explain_speaks_the_language_of_the_site(tmp_path, capsys):
    path = node_file(tmp_path)
    assert cli.main(["explain", "device.count", "--node-file", path], runner()) == 0
    assert "Number of cards" in capsys.readouterr().out
    assert cli.main(["explain", "device.count", "--node-file", path, "--language", "zh"], runner()) == 0
    assert "加速卡数量" in capsys.readouterr().out
    assert cli.main(["explain", "device.cuont", "--node-file", "/nonexistent"], runner()) == 3
    out, err = capsys.readouterr()
    assert not out and "did you mean device.count" in err


@pytest.mark.parametrize("words", [["explain"], ["locate"], ["check", "device.count"], ["health", "--limit", "0"]])
def test_what_a_command_takes_is_checked(capsys, words):
    with pytest.raises(SystemExit) as ended:
        cli.main(words, runner())
    assert ended.value.code == 3


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("metrics --json", "metrics takes no --json (only devices, slots, check, health)"),
        ("explain device.count --json", "explain takes no --json "),
        ("explain device.count --timeout 3", "explain takes no --timeout "),
        ("explain device.count --limit 3", "explain takes no --limit "),
        ("health --keep", "health takes no --keep (only check)"),
        ("devices --off", "devices takes no --off (only locate)"),
        ("slots --language en", "slots takes no --language (only check, health, explain, locate)"),
        ("locate SXM1 --json", "locate takes no --json "),
    ],
)
def test_an_option_that_a_command_does_not_use_is_refused(capsys, words, told) -> None:
    """Who writes metrics --json waits for JSON, and would read something else."""
    with pytest.raises(SystemExit) as ended:
        cli.main(words.split(), runner())
    assert ended.value.code == 3
    out, err = capsys.readouterr()
    assert not out and err.startswith("usage: accelctl") and f"accelctl: {told}" in err


def test_every_command_is_told_which_options_it_takes() -> None:
    takes = {
        command: {name for name, commands in cli.TAKEN_BY.items() if command in commands} for command in cli.COMMANDS
    }
    ask = {"timeout", "limit"}
    assert takes == {
        "devices": {"json", *ask},
        "slots": {"json", *ask},
        "check": {"json", "keep", "language", *ask},
        "health": {"json", "language", *ask},
        "metrics": ask,
        "explain": {"language"},
        "locate": {"off", "language", *ask},
    }


@pytest.mark.parametrize("page", ["operations.md", "zh/operations.md"])
def test_the_page_of_operations_has_every_exit_status_and_limit(page) -> None:
    text = (Path(__file__).parents[5] / "docs" / page).read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    for status in (cli.EXIT_INTERRUPTED, 128 + signal.SIGHUP, 128 + signal.SIGTERM):
        assert any(str(status) in row for row in rows), status
    megabytes = (reader.MOST_BYTES, record.MOST_BYTES, tools_runner.READ_BYTES, tools_runner.FLOOD_BYTES)
    told = [f"{number >> 20} MiB" for number in megabytes]
    told += [f"{cli.SHARE * 100:g} %", f"{shown.LINE} "]
    unit = "seconds" if page == "operations.md" else "秒"
    seconds = {*cli.LIMIT_SECONDS.values(), cli.LEAST_SECONDS, cli.GRACE, cli.NODE_FILE_SECONDS, record.MOST_SECONDS}
    told += [f"{number:g} {unit}" for number in {*seconds, tools_runner.READ_SECONDS}]
    assert [words for words in told if not any(words in row for row in rows)] == []


def test_the_example_for_slurm_drains_no_node_whose_check_was_interrupted(tmp_path) -> None:
    """143 is no verdict."""
    pages = [Path(__file__).parents[5] / "docs" / page for page in ("operations.md", "zh/operations.md")]
    for page in pages:
        (script,) = [
            part.partition("```")[0]
            for part in page.read_text(encoding="utf-8").split("```sh\n")
            if "HealthCheck" not in part.partition("```")[0] and "accelctl health" in part.partition("```")[0]
        ]
        for name, text in (("accelctl", 'exit "$STATUS"'), ("scontrol", 'echo "$@" >> "$NOTE"')):
            (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
            (tmp_path / name).chmod(0o755)
        script = script.replace("/usr/local/bin/accelctl", "accelctl")
        for status, drains in ((0, False), (1, False), (2, True), (3, True), (130, False), (143, False)):
            note = tmp_path / f"{page.parent.name}-{status}"
            env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "STATUS": str(status), "NOTE": str(note)}
            subprocess.run(["sh", "-c", script], env=env, check=False, timeout=20)
            assert note.exists() == drains, status


# ------------------------------------------------------------------------------------------------------ the program


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> list[str]:
    """Return the command line of accelctl as a node has it: compiled, isolated."""
    home = tmp_path_factory.mktemp("accel")
    package = Path(cli.__file__).parent
    shutil.copytree(package, home / "_accel", ignore=shutil.ignore_patterns("__pycache__"))
    (home / "__main__.py").write_text(accelctl.START)
    compileall.compile_dir(home, quiet=2)
    return [sys.executable, "-I", str(home)]


def test_explaining_loads_neither_vendors_nor_probes(program):
    argv = [program[0], "-X", "importtime", *program[1:], "explain", "device.count", "--node-file", "/nonexistent"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "_accel.hints" in loaded
    for name in ("_accel.probe", "_accel.judge", "_accel.vendors.nvidia", "xml.etree.ElementTree", "difflib"):
        assert name not in loaded


# How the program may be started; the last one is a reader that has left.
STREAMS = {
    "full": ">/dev/full",
    "both full": ">/dev/full 2>/dev/full",
    "closed": ">&-",
    "all closed": "<&- >&- 2>&-",
    "to read only": "1</dev/null",
    "nobody reads": "| true",
}
COMPLAINTS = {"complaints full": "2>/dev/full", "complaints closed": "2>&-"}


@pytest.fixture(scope="module")
def judged(program, tmp_path_factory) -> dict[int, list[str]]:
    """Return, by the verdict that it comes to, the command line of accelctl on a host of eight cards."""
    home = tmp_path_factory.mktemp("judged")
    healthy = seen.healthy()
    hot = seen.healthy()
    hot["devices"][0]["readings"]["temperature_c"] = 86.0
    lines = {}
    for status, observation in enumerate((healthy, hot, seen.card_lost(healthy), seen.card_hung(healthy))):
        for one in observation["unanswered"]:
            one.update(dict.fromkeys(("model", "pci_id", "serial", "uuid")))
        (home / f"{status}.json").write_text(json.dumps(observation))
        (home / f"{status}.py").write_text(
            f"import json, sys, time\nsys.path.insert(0, {program[-1]!r})\nfrom _accel import cli\n"
            # "| true" is faster.
            "def observe(*_arguments):\n    time.sleep(0.1)\n"
            f"    return json.load(open({str(home / f'{status}.json')!r}))\n"
            "cli.observe = observe\nraise SystemExit(cli.main())\n"
        )
        lines[status] = [sys.executable, "-I", str(home / f"{status}.py")]
    return lines


def with_streams(argv: list[str], streams: str) -> tuple[str, list[str]]:
    """Run a program with its streams as they are told; return its exit status and its complaints."""
    first, pipe, second = streams.partition("|")
    line = f"exec 9>&1; {{ {shlex.join(argv)} {first}; echo $? >&9; }} {pipe} {second}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, timeout=60)
    return done.stdout.splitlines()[-1], done.stderr.splitlines()


@pytest.mark.parametrize("streams", [*STREAMS, *COMPLAINTS])
@pytest.mark.parametrize(
    ("words", "status"),
    [("health", 0), ("health", 1), ("health", 2), ("health", 3), ("check", 2), ("check --json --keep", 0)],
)
def test_the_exit_status_is_the_verdict_when_it_can_not_be_said(judged, tmp_path, words, status, streams) -> None:
    """A log on a full disk made a warning (1) of all of them."""
    argv = [*judged[status], *words.split(), "--node-file", node_file(tmp_path, **seen.DECLARED)]
    told, complaints = with_streams(argv, {**STREAMS, **COMPLAINTS}[streams])
    assert told == str(status)
    assert all(line.startswith("accelctl: the answer can't be written: ") for line in complaints)
    assert len(complaints) == (streams in ("full", "closed", "to read only"))


@pytest.mark.parametrize("streams", STREAMS)
@pytest.mark.parametrize("words", ["devices", "slots --json", "metrics", "explain device.count", "--help"])
def test_an_answer_that_can_not_be_said_is_unknown(judged, tmp_path, words, streams) -> None:
    """Metrics that a full disk cut short must not look like all of them."""
    argv = [*judged[0], *words.split(), "--node-file", node_file(tmp_path, **seen.DECLARED)]
    assert with_streams(argv, "")[0] == "0"
    told, complaints = with_streams(argv, STREAMS[streams])
    assert told == "3"
    assert len(complaints) == (streams in ("full", "closed", "to read only"))


@pytest.mark.parametrize("streams", [*STREAMS, *COMPLAINTS])
@pytest.mark.parametrize(
    "words",
    [
        "frob",
        "health --limit 0",
        "explain device.cuont",
        "check --node-file /nonexistent",
        "locate SXM99",
        "locate SXM1",
    ],
)
def test_a_complaint_that_can_not_be_said_changes_no_exit_status(judged, tmp_path, words, streams) -> None:
    argv = [*judged[0], "--node-file", node_file(tmp_path, **seen.DECLARED), *words.split()]
    told, complaints = with_streams(argv, {**STREAMS, **COMPLAINTS}[streams])
    assert told == "3"
    assert not any("Traceback" in line or "Exception" in line for line in complaints)


def started(argv: list[str], tmp_path, notes: int) -> tuple[subprocess.Popen, list[int]]:
    """Start a program with an nvidia-smi that hangs; return it and the processes of its tool."""
    (tmp_path / "bin").mkdir()
    tool, note = tmp_path / "bin/nvidia-smi", tmp_path / "pids"
    tool.write_text(f"#!/bin/sh\nsleep 300 &\necho $$ $! >> {note}\nwait\n")
    tool.chmod(0o755)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    process = subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PATH": path}
    )
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and (not note.exists() or len(note.read_text().split()) < notes):
        time.sleep(0.02)
    return process, [int(word) for word in note.read_text().split()]


@pytest.mark.parametrize("command", ["devices", "slots", "check", "health", "metrics", "locate"])
@pytest.mark.parametrize(("name", "status"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_program_that_is_interrupted_ends_its_tools_and_says_nothing(program, tmp_path, command, name, status):
    words = [command, "SXM1"] if command == "locate" else [command]
    argv = [*program, *words, "--timeout", "60", "--node-file", node_file(tmp_path)]
    process, tools = started(argv, tmp_path, 2)
    process.send_signal(getattr(signal, name))
    try:
        told = process.communicate(timeout=20)
    finally:
        process.kill()
    assert all_gone(tools)
    assert (process.returncode, *told) == (status, "", "")


def test_an_interrupt_while_the_program_is_read_is_no_traceback_either(tmp_path):
    (tmp_path / "_accel").mkdir()
    (tmp_path / "_accel/cli.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    (tmp_path / "__main__.py").write_text(accelctl.START)
    done = subprocess.run([sys.executable, "-I", str(tmp_path)], capture_output=True, text=True, check=False)
    # By the signal itself: a shell tells that as 130.
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_an_interrupt_between_two_commands_is_no_traceback_either(tmp_path, monkeypatch, capsys):
    def interrupt(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "observe", interrupt)
    assert cli.main(["health", "--node-file", node_file(tmp_path)], runner()) == 130
    assert capsys.readouterr() == ("", "")


def bad(path: Path, kind: str) -> None:
    """Put something that can't be read in the place of a file."""
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "endless":
        path.symlink_to("/dev/zero")
    elif kind == "nested":
        path.write_text("[" * 100_000 + "]" * 100_000)
    else:
        with path.open("wb") as file:
            file.truncate((64 << 20) + 1)


BAD = ["pipe", "endless", "nested", "large"]


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("name", ["slots.json", "links.json"])
def test_a_record_that_can_not_be_read_holds_no_verdict(tmp_path, capsys, name, kind) -> None:
    path = node_file(tmp_path, cluster_accelerator_count=1)
    bad(tmp_path / name, kind)
    began = time.monotonic()
    # Without the record all the rest is judged; without the readings of links that is not said of a pass.
    status = 3 if name == "links.json" else 0
    assert cli.main(["health", "--node-file", path], one_card_answers("0000:18:00.0")) == status
    out = capsys.readouterr().out
    assert out.startswith("OK " if status == 0 else f"UNKNOWN {tmp_path}/links.json") and out.count("\n") == 1
    if name == "slots.json":
        assert cli.main(["slots", "--node-file", path], one_card_answers("0000:18:00.0")) == 3
        assert f"accelctl: {tmp_path}/slots.json" in capsys.readouterr().err
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("kind", BAD)
def test_a_node_file_that_can_not_be_read_is_unknown(tmp_path, capsys, kind) -> None:
    path = node_file(tmp_path)
    bad(tmp_path / "node.json", kind)
    began = time.monotonic()
    assert cli.main(["health", "--node-file", path], runner()) == 3
    out, err = capsys.readouterr()
    assert out.startswith(f"UNKNOWN {path}: ") and out.count("\n") == 1
    assert err.startswith(f"accelctl: {path}: ")
    for command in ("check", "devices", "slots"):
        assert cli.main([command, "--node-file", path], runner("0000:18:00.0")) == 3
        assert capsys.readouterr().err.startswith(f"accelctl: {path}: ")
    assert cli.main(["metrics", "--node-file", path], runner("0000:18:00.0")) == 0
    assert cli.main(["explain", "device.count", "--node-file", path], runner()) == 0
    assert time.monotonic() - began < 10


def test_a_node_file_that_does_not_answer_is_asked_once(tmp_path, capsys, monkeypatch) -> None:
    """Not even whether it is there: that would wait as well."""

    def wait(*_arguments):
        raise reader.Blocked

    path = node_file(tmp_path)
    touched = []
    exists = os.path.exists
    monkeypatch.setattr(cli, "read_whole", wait)
    monkeypatch.setattr(cli.os.path, "exists", lambda one: touched.append(one) or exists(one))
    assert cli.main(["devices", "--node-file", path], runner("0000:18:00.0")) == 3
    assert path not in touched
    assert "node.json: no answer within 10 s" in capsys.readouterr().err


@pytest.mark.parametrize(("exc", "words"), [(MemoryError(), "MemoryError"), (KeyError("a\nb"), "KeyError: 'a\\nb'")])
def test_health_says_its_line_whatever_breaks(tmp_path, capsys, monkeypatch, exc, words) -> None:
    def breaks(*_arguments):
        raise exc

    monkeypatch.setattr(cli, "observe", breaks)
    assert cli.main(["health", "--node-file", node_file(tmp_path)], runner()) == 3
    assert capsys.readouterr() == (f"UNKNOWN accelctl health: {words}\n", f"accelctl: {words}\n")
    assert cli.main(["check", "--node-file", node_file(tmp_path)], runner()) == 3
    assert capsys.readouterr() == ("", f"accelctl: {words}\n")


@pytest.mark.parametrize(
    ("words", "declared", "limit"),
    [
        ("health", {}, 50),
        ("health --limit 7", {}, 7),
        ("metrics", {"cluster_query_timeout_seconds": "200"}, 50),
        ("check", {}, 180),
        ("devices --timeout 20", {}, 60),
        ("slots", {"cluster_query_timeout_seconds": "100"}, 300),
        ("slots --timeout 1", {}, 50),
        ("check --limit 9", {}, 9),
    ],
)
def test_all_that_is_asked_of_a_host_has_a_limit(tmp_path, words, declared, limit) -> None:
    """Less than after what the timer of the agent ends its check: four times the limit of a command."""
    node = cli.load_node(node_file(tmp_path, **declared))
    assert cli.limit_of(cli._options(words.split()), node) == limit


def waiting(program, tmp_path, what: str) -> list[str]:
    """Return the command line of an accelctl that does something else than to look, and ends soon after its limit."""
    (tmp_path / "main.py").write_text(
        f"import json, sys, time\nsys.path.insert(0, {program[-1]!r})\nfrom _accel import cli, runner\n"
        f"cli.observe = lambda *arguments: {what}\ncli.GRACE = 1.0\nraise SystemExit(cli.main())\n"
    )
    return [sys.executable, "-I", str(tmp_path / "main.py")]


@pytest.mark.parametrize("words", ["health", "metrics", "check", "devices", "slots", "locate SXM1"])
def test_what_hangs_ends_at_its_limit(program, tmp_path, words) -> None:
    argv = [*waiting(program, tmp_path, "time.sleep(60)"), *words.split(), "--limit", "0.5"]
    done = subprocess.run(
        [*argv, "--node-file", node_file(tmp_path)], capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == 3
    command = words.split()[0]
    line = f"accelctl {command}: no answer within 0.5 s"
    assert done.stdout == (f"UNKNOWN {line}\n" if command == "health" else "")
    assert done.stderr == f"accelctl: {command}: no answer within 0.5 s\n"


@pytest.mark.parametrize("streams", ["both full", "all closed"])
def test_what_hangs_ends_at_its_limit_though_that_can_not_be_said(program, tmp_path, streams) -> None:
    argv = [*waiting(program, tmp_path, "time.sleep(60)"), "health", "--limit", "0.5"]
    assert with_streams([*argv, "--node-file", node_file(tmp_path)], STREAMS[streams])[0] == "3"


def test_what_hangs_ends_at_its_limit_though_nobody_reads_what_it_says(program, tmp_path) -> None:
    """A pipe that is full, and a reader that only waits."""
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writes, b"x" * 4096)
    os.set_blocking(writes, True)
    argv = [*waiting(program, tmp_path, "cli.complain('x')"), "health", "--limit", "0.5"]
    argv += ["--node-file", node_file(tmp_path)]
    assert subprocess.run(argv, stdout=writes, stderr=writes, check=False, timeout=30).returncode == 3
    os.close(reads)
    os.close(writes)


def test_what_ends_at_its_limit_leaves_no_tool_behind(program, tmp_path) -> None:
    what = "runner.Runner().run(['nvidia-smi'], 60)"
    argv = [*waiting(program, tmp_path, what), "health", "--limit", "2", "--node-file", node_file(tmp_path)]
    process, tools = started(argv, tmp_path, 2)
    try:
        told = process.communicate(timeout=20)
    finally:
        process.kill()
    assert all_gone(tools)
    assert (process.returncode, told[0]) == (3, "UNKNOWN accelctl health: no answer within 2 s\n")


@pytest.mark.parametrize("command", ["health", "check"])
def test_a_terminal_that_has_not_all_letters_changes_no_exit_status(tmp_path, monkeypatch, command) -> None:
    """slurmd starts programs with the locale of the system, which need not know Chinese."""
    path = node_file(tmp_path)
    words = [command, "--language", "zh", "--node-file", path]
    told = []
    for encoding in ("utf-8", "ascii"):
        out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        monkeypatch.setattr(sys, "stdout", out)
        status = cli.main(words, runner("0000:18:00.0"))
        out.flush()
        told.append((status, out.buffer.getvalue().count(b"\n")))
    assert told[0] == told[1]
    assert told[0][1] >= 1
