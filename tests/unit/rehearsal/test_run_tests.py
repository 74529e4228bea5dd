# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The test runner itself: what failed, hung, crashed or never ran must not look like what passed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[3] / "tools"


@pytest.fixture
def run(runner, capsys):
    """Run parts given as functions; return the exit status and the last line printed."""

    def run_parts(*functions):
        runner.PARTS = functions
        status = runner.main([function.__name__ for function in functions])
        return status, capsys.readouterr().out.splitlines()[-1]

    return run_parts


def gone(pid: str) -> bool:
    """Return whether a process is dead; a zombie is, which nobody has waited for yet."""
    try:
        return (Path("/proc") / pid.strip() / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def wait_for(condition) -> None:
    """Wait for a condition that must come true soon."""
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "it did not happen in 20 s"
        time.sleep(0.05)


def good(part) -> None:
    part.check("true", "true")


def test_what_passes_is_counted(run) -> None:
    def two(part) -> None:
        part.check("one", "true")
        part.check("other", "true")
        part.skip("third", "not on this machine")

    assert run(good, two) == (0, "3 passed, 0 failed, 1 skipped")


def test_one_failure_fails_the_run_and_stops_nothing(run) -> None:
    def bad(part) -> None:
        part.check("false", "false")

    assert run(bad, good) == (1, "1 passed, 1 failed, 0 skipped")


def test_a_run_that_ran_nothing_has_failed(run) -> None:
    def nothing(part) -> None:
        pass

    def skipped(part) -> None:
        part.skip("all", "no machine")

    assert run(nothing) == (1, "0 passed, 0 failed, 0 skipped")
    assert run(skipped) == (1, "0 passed, 0 failed, 1 skipped")


def test_a_command_that_hangs_is_ended_and_fails(run, tmp_path) -> None:
    def slow(part) -> None:
        part.check("slow", "sh", "-c", f"sleep 60 & echo $! > {tmp_path}/child; wait", limit=1)

    assert run(good, slow) == (1, "1 passed, 1 failed, 0 skipped")
    # Its children too.
    wait_for(lambda: gone((tmp_path / "child").read_text()))


def test_an_interrupted_run_leaves_no_process(runner, tmp_path) -> None:
    script = (
        "import importlib.util, sys\n"
        f"found = importlib.util.spec_from_file_location('run_tests', {str(TOOLS / 'run_tests.py')!r})\n"
        "module = importlib.util.module_from_spec(found); found.loader.exec_module(module)\n"
        f"module.ROOT = module.Path({str(tmp_path)!r}); module.LOGS = module.ROOT; module.RESULTS = module.ROOT / 'r'\n"
        f"def slow(part): part.check('slow', 'sh', '-c', 'echo $$ > {tmp_path}/child; exec sleep 60')\n"
        "module.PARTS = (slow,)\n"
        "sys.exit(module.main(['slow']))\n"
    )
    run = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.DEVNULL)
    wait_for(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text())
    run.send_signal(signal.SIGTERM)
    assert run.wait(20) == 130
    wait_for(lambda: gone((tmp_path / "child").read_text()))


def test_a_crash_of_a_part_is_a_failed_case(run, runner) -> None:
    def crash(part) -> None:
        raise RuntimeError("broken")

    assert run(good, crash) == (1, "1 passed, 1 failed, 0 skipped")
    assert runner.failures() == ["crash: crash: RuntimeError: broken"]


def test_results_of_an_earlier_run_are_not_counted(run, runner) -> None:
    runner.RESULTS.mkdir()
    (runner.RESULTS / "old.xml").write_text('<testsuite><testcase name="x"/></testsuite>')
    assert run(good) == (0, "1 passed, 0 failed, 0 skipped")


def test_unreadable_results_are_a_failure(runner) -> None:
    runner.RESULTS.mkdir()
    broken = runner.RESULTS / "cut.xml"
    broken.write_text("<testsuite><testcase")
    assert runner.count([broken, runner.RESULTS / "absent.xml"]) == (0, 2, 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def test_a():\n    pass\n", (0, "1 passed, 0 failed, 0 skipped")),
        ("def test_a():\n    assert False\n", (1, "0 passed, 1 failed, 0 skipped")),
        ("", (1, "0 passed, 1 failed, 0 skipped")),  # pytest found no test
        ("import nothing_like_that\n", (1, "0 passed, 1 failed, 0 skipped")),
        ("import os\ndef test_a():\n    os._exit(0)\n", (1, "0 passed, 1 failed, 0 skipped")),  # ended with 0, no XML
    ],
    ids=["passes", "fails", "no-test", "no-import", "dies"],
)
def test_pytest_is_believed_only_with_its_results(run, tmp_path, text, expected) -> None:
    (tmp_path / "test_it.py").write_text(text)

    def part_of_tests(part) -> None:
        part.pytest("-p", "no:cacheprovider", str(tmp_path / "test_it.py"), limit=60, python=Path(sys.executable))

    assert run(part_of_tests) == expected


def test_an_unknown_part_runs_nothing(runner, capsys) -> None:
    assert runner.main(["molecul"]) == 2
    assert "unknown: molecul" in capsys.readouterr().out
