# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drill works on a rehearsal cluster that is up, converged and accepted (`make rehearsal`)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INVENTORY = ROOT / "inventories/rehearsal"
INSTANCE = os.environ.get("ACCEL_REHEARSAL_INSTANCE", "rehearsal")


@dataclass
class Run:
    """One finished ansible-playbook: its exit status, all it printed, how long it took."""

    rc: int
    output: str
    seconds: float

    def recap(self) -> dict[str, dict[str, int]]:
        """Return ``{host: {"ok": 12, "changed": 0, ...}}`` from the play recap."""
        rows = re.findall(r"^(\S+)\s+: (ok=.*)$", self.output, re.MULTILINE)
        return {host: {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", row)} for host, row in rows}


class Cluster:
    """Runs the collection's playbooks on the rehearsal hosts, as an operator would."""

    def play(self, playbook: str, *arguments: str, limit_seconds: float = 600, inventory: Path = INVENTORY) -> Run:
        """Run one playbook, of the collection or a file of the tests, and return what became of it."""
        environment = dict(os.environ, ANSIBLE_NOCOLOR="1", ANSIBLE_FORCE_COLOR="0")
        command = [
            str(Path(sys.executable).parent / "ansible-playbook"),
            f"--inventory={inventory}",
            playbook if playbook.endswith(".yml") else f"accel.cluster.{playbook}",
            *arguments,
        ]
        started = time.monotonic()
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=limit_seconds,
            check=False,
        )
        return Run(done.returncode, done.stdout, time.monotonic() - started)

    def inject(self, fault: dict) -> None:
        """Put a fault in; the play must succeed."""
        done = self.play("rehearsal.inject", "--extra-vars", json.dumps(fault))
        assert done.rc == 0, done.output

    def heal(self, host: str) -> None:
        """Take every fault out of a host, or several with commas between them; the play must succeed."""
        done = self.play(
            "rehearsal.inject", "--extra-vars", json.dumps({"inject_host": host, "inject_state": "absent"})
        )
        assert done.rc == 0, done.output

    def on(self, host: str, command: str) -> int:
        """Run a shell command on a host and return how it ended."""
        config = ROOT / ".cache" / INSTANCE / "ssh/config"
        return subprocess.run(
            ["ssh", "-F", str(config), host, command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            check=False,
        ).returncode

    def verify(self, *arguments: str) -> tuple[Run, Report]:
        """Run verify and return the report that this very run wrote."""
        done = self.play("verify", *arguments)
        found = re.search(r"(/\S+/reports/\d{8}T\d{6}Z(?:-\d+)?)/report\.html", done.output)
        assert found, f"verify names no report:\n{done.output}"
        return done, Report(Path(found.group(1)))


class Report:
    """A written report."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        body = json.loads((folder / "findings.json").read_text(encoding="utf-8"))
        self.verdict = body["run"]["verdict"]
        self.hosts = body["run"]["hosts"]
        self.findings = body["findings"]

    def slots(self, host: str) -> dict[str, str | None]:
        """Return the address by slot of the cards that the report lists for a host."""
        about = next(one for one in self.hosts if one["host"] == host)
        return {slot["label"]: slot["address"] for slot in about["slots"]}

    def state(self) -> dict[tuple[str, str, str], tuple]:
        """Return ``{(check, host, subject): (verdict, cause, blocked_by)}``; each key exists once."""
        state: dict[tuple[str, str, str], tuple] = {}
        for finding in self.findings:
            key = (finding["check"], finding["host"], finding["subject"])
            assert key not in state, f"two findings for {key}"
            cause = finding["hint"].removeprefix(finding["check"] + ".")
            state[key] = (finding["verdict"], cause, finding["blocked_by"])
        return state


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """Return the rehearsal cluster; the session fails where it is not up."""
    state = ROOT / ".cache" / INSTANCE / "hosts.json"
    if not state.exists():
        pytest.fail(f"the rehearsal cluster '{INSTANCE}' is not up: run `make rehearsal` first")
    return Cluster()


@pytest.fixture(scope="module")
def healthy(cluster) -> dict:
    """Return the state of the cluster before any fault; it must be a pass without a single failed check."""
    done, report = cluster.verify()
    assert done.rc == 0, done.output
    assert report.verdict == "pass"
    state = report.state()
    assert not [key for key, (verdict, _cause, _by) in state.items() if verdict == "fail"]
    # An empty report would make every comparison below true.
    assert len([key for key, (verdict, _cause, _by) in state.items() if verdict == "pass"]) > 100
    return state
