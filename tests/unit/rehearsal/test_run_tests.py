# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The test runner itself: what failed, hung, crashed or never ran must not look like what passed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest


@pytest.fixture
def run(runner, capsys):
    """Run parts given as functions; return the exit status and the last line printed."""

    def run_parts(*functions):
        runner.PARTS = functions
        status = runner.main([function.__name__ for function in functions])
        return status, capsys.readouterr().out.splitlines()[-1]

    return run_parts


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
    child = Path("/proc") / (tmp_path / "child").read_text().strip() / "stat"
    # Its children too: gone, or a zombie that nobody has waited for yet.
    assert not child.exists() or child.read_text().rpartition(")")[2].split()[0] == "Z"


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
