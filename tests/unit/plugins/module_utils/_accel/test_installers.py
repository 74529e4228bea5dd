# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that install drivers: nothing runs that must not, and what did not end well is known afterwards."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import boot, driver_plan, installers
from ansible_collections.accel.cluster.plugins.module_utils._accel.runner import Runner
from doubles import HANG, RecordedRunner

ALLOWED = installers.Allowed()
ALL = installers.Allowed(downgrade=True, in_use=True, repeat=True)


class Place:
    """A host below a folder: installers are real programs of the shell, started by a real runner."""

    def __init__(self, folder):
        self.folder, self.state, self.runner = folder, str(folder / "state"), Runner()

    def installer(self, name="driver", version="25.2.0", leaves="Version=25.2.0", body="", **more):
        script = self.folder / f"{name}.run"
        told = self.folder / f"{name}.info"
        script.write_text(f"echo {name} $* >> {self.folder}/ran\nprintf '{leaves}\\n' > {told}\n{body}\n")
        digest = hashlib.sha256(script.read_bytes()).hexdigest()
        values = {"file": str(script), "sha256": digest, "version": version, "target": str(self.folder)}
        return installers.Installer(name, **{**values, "version_file": str(told), **more})

    def plan(self, *wanted, allowed=ALLOWED):
        return installers.plan(self.runner, wanted, allowed, 5, self.state)

    def go(self, *wanted, allowed=ALLOWED):
        made = self.plan(*wanted, allowed=allowed)
        assert made.refused == []
        return installers.carry_out(self.runner, made, 5, self.state)

    def ran(self):
        path = self.folder / "ran"
        return path.read_text().splitlines() if path.exists() else []

    def journals(self):
        return installers.journals(self.runner, self.state)


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def test_a_new_part_is_installed_once(place):
    one = place.installer(arguments=("--full", "--quiet"), upgrade_arguments=("--upgrade",))
    made = place.plan(one)
    assert made.changes == [f"driver (none) -> 25.2.0: {one.file} --full --quiet"]
    assert (made.versions, place.ran()) == ({"driver": None}, [])
    assert place.go(one) == ""
    assert place.ran() == ["driver --full --quiet"]
    again = place.plan(one)
    assert (again.runs, again.refused, again.versions) == ([], [], {"driver": "25.2.0"})
    assert place.journals() == {}
    # The program is not needed any more: nobody asks for its checksum.
    os.unlink(one.file)
    assert place.plan(one).refused == []


def test_another_version_is_an_upgrade_and_firmware_goes_first(place):
    driver = place.installer(arguments=("--full",), upgrade_arguments=("--upgrade",))
    firmware = place.installer("firmware", leaves="Version=7.7", version="7.7", upgrade_first=True)
    assert [one.installer.name for one in place.plan(driver, firmware).runs] == ["driver", "firmware"]
    (place.folder / "driver.info").write_text("Version=24.1.0\n")
    (place.folder / "firmware.info").write_text("Version=7.5\n")
    assert place.go(driver, firmware) == ""
    assert place.ran() == ["firmware", "driver --upgrade"]


def test_a_wrong_checksum_is_told_before_anything_runs(place):
    good, bad = place.installer(), place.installer("firmware", sha256="0" * 64)
    (said,) = place.plan(good, bad).refused
    assert said.startswith(f"firmware: {bad.file} has the checksum ") and said.endswith(f"declared is {'0' * 64}")
    assert place.ran() == []


def test_a_file_that_is_exchanged_after_the_look_does_not_run(place):
    first, second = place.installer(), place.installer("firmware", leaves="Version=7.7", version="7.7")
    made = place.plan(first, second)
    with open(second.file, "a") as file:
        file.write("echo evil\n")
    assert "has the checksum" in installers.carry_out(place.runner, made, 5, place.state)
    assert place.ran() == ["driver"]
    assert place.journals() == {}


@pytest.mark.parametrize("status", [1, 2, 3, 127])
def test_every_other_status_is_a_failure(place, status):
    one = place.installer(body=f"echo no such card >&2; exit {status}")
    other = place.installer("toolkit")
    said = place.go(one, other)
    assert said.startswith(f"driver 25.2.0 ended with {status}. It said: no such card")
    # What comes after it may need it.
    assert len(place.ran()) == 1
    assert place.journals()["driver"].endswith(f"and ended with {status}")
    # The version is right; the part is still not known to be whole.
    assert "driver was not finished" in place.plan(one).refused[0]
    assert [run.before for run in place.plan(one, allowed=ALL).runs] == ["25.2.0"]
    assert place.go(replace(one, success_statuses=(0, status)), allowed=ALL) == ""
    assert place.journals() == {}


def test_the_version_is_read_back(place):
    said = place.go(place.installer(version="25.3.0"))
    assert said.startswith("driver 25.3.0 ended well, but then installed is 25.2.0.")
    (place.folder / "driver.info").unlink()
    said = place.go(place.installer(leaves="nonsense"), allowed=ALL)
    assert "tells no version: nonsense" in said


def test_one_that_does_not_end_is_killed(place):
    said = place.go(place.installer(body="sleep 600", timeout_seconds=1))
    assert said.startswith("driver 25.2.0 did not end within 1 s and was killed.")
    assert "did not end within 1 s" in place.journals()["driver"]


def test_one_that_was_killed_with_us_is_named_by_its_journal(place):
    one = place.installer(body="kill -9 $PPID")
    code = (
        "import sys; sys.path[:0] = sys.argv[1].split(':')\n"
        "from ansible_collections.accel.cluster.plugins.module_utils._accel import installers, runner\n"
        "import json\n"
        "one, = installers.declared(json.loads(sys.argv[2]))\n"
        "r = runner.Runner(); plan = installers.plan(r, [one], installers.Allowed(), 5, sys.argv[3])\n"
        "installers.carry_out(r, plan, 5, sys.argv[3])\n"
    )
    declared = json.dumps([{name: getattr(one, name) for name in one.__dataclass_fields__}])
    argv = [sys.executable, "-c", code, ":".join(one for one in sys.path if one), declared, place.state]
    assert subprocess.run(argv, check=False, timeout=30).returncode == -9
    (said,) = place.plan(one).refused
    assert "driver was not finished: version 25.2.0 was started" in said and "and did not end" in said


def test_a_journal_that_can_not_be_read_is_one(place):
    os.makedirs(place.state)
    for text in ("", "{", "[]", '{"version": 1}'):
        (place.folder / "state/driver.json").write_text(text)
        assert "its journal can't be read" in place.plan(place.installer()).refused[0]


def test_a_journal_of_what_is_declared_no_longer_stops_the_others(place):
    os.makedirs(place.state)
    (place.folder / "state/toolkit.json").write_text("")
    for allowed in (ALLOWED, ALL):
        (said,) = place.plan(place.installer(), allowed=allowed).refused
        assert said.startswith("toolkit is declared no longer, and was not finished")


def test_an_older_version_is_refused_unless_it_is_allowed(place):
    (place.folder / "driver.info").write_text("Version=25.5.0\n")
    says = "driver would go back from 25.5.0 to 25.2.0: set driver_downgrade_allowed"
    assert place.plan(place.installer()).refused == [says]
    assert place.plan(place.installer(), allowed=ALL).refused == []


def test_a_version_that_can_not_be_read_is_never_guessed(place):
    one = place.installer()
    for text in ("", "Version=\n", "no such thing\n"):
        (place.folder / "driver.info").write_text(text)
        (said,) = place.plan(one, allowed=ALL).refused
        assert said.startswith("which version of driver is installed is not known")


def test_two_that_are_installed_are_not_one(place):
    (place.folder / "a.info").write_text("version=8.2.RC1\n")
    (place.folder / "b.info").write_text("version=8.1.RC1\n")
    told = installers.told(place.runner, place.installer(version_file=f"{place.folder}/*.info"), 5)
    assert told.version is None and told.problem.startswith("several are installed: ")


def test_one_that_still_runs_is_named(place):
    one = place.installer()
    with subprocess.Popen(["/bin/sh", "-c", "read line", one.file], stdin=subprocess.PIPE) as process:
        (said,) = place.plan(one, allowed=ALL).refused
        process.stdin.close()
    assert said == f"{one.file} is running already, as process {process.pid}"


def test_too_little_room_is_told(place):
    (said,) = place.plan(place.installer(room_mib=1 << 30)).refused
    assert said.startswith("the file system of ") and said.endswith(f"{(1 << 30) + 64} MiB are needed")


@pytest.mark.parametrize(
    ("head", "size"),
    [
        (b"#!/bin/sh\nOLDUSKB=2048\n", 2 << 20),
        (b"#!/bin/sh\necho Uncompressed size: 12 KB\n", 12 << 10),
        (b"#!/bin/sh\n" + b"x" * 90, 400),
    ],
)
def test_how_much_it_unpacks_is_read_from_its_head(tmp_path, head, size):
    path = tmp_path / "a.run"
    path.write_bytes(head)
    assert installers._unpacked(str(path)) == size


def test_cards_in_use_and_missing_headers_are_told(place, monkeypatch):
    monkeypatch.setattr(driver_plan, "in_use", lambda runner, nodes, allowed: [f"in use {nodes} {allowed}"])
    monkeypatch.setattr(boot, "missing_headers", lambda runner, names: ["6.1.0-31"] if names else [])
    made = place.plan(place.installer(builds_module=True), allowed=installers.Allowed(nodes=["/dev/davinci*"]))
    assert made.refused == [
        "kernel 6.1.0-31 may boot next and has no headers to build the module of driver with",
        "in use ['/dev/davinci*'] False",
    ]
    # What is as declared changes nothing, so it may be in use.
    (place.folder / "driver.info").write_text("Version=25.2.0\n")
    assert place.plan(place.installer(builds_module=True)).refused == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"name": "a/b"}, "'a/b' is no name of an installer"),
        ({"name": ""}, "'' is no name of an installer"),
        ({"version": ""}, "no version is declared of driver"),
        ({"file": "driver.run"}, "file has to be an absolute path"),
        ({"sha256": "abc"}, "sha256 has to have 64 hexadecimal digits"),
        ({"version_file": ""}, "declare either version_file or version_command"),
        ({"version_command": ("modinfo",)}, "declare either version_file or version_command"),
        ({"version_pattern": "("}, "version_pattern: "),
        ({"version_pattern": "x"}, "version_pattern needs one group"),
        ({"absent_pattern": "["}, "absent_pattern: "),
    ],
)
def test_a_declaration_with_a_hole_is_refused(place, change, says):
    made = place.plan(replace(place.installer(), **change), allowed=ALL)
    assert says in "; ".join(made.refused)
    assert made.runs == []


def test_two_of_one_name_are_refused(place):
    assert "two installers have the name driver" in place.plan(place.installer(), place.installer()).refused


MODINFO = ("modinfo", "-F", "version", "nvidia")


@pytest.mark.parametrize(
    ("answer", "version", "problem"),
    [
        ((0, "570.86.15\n", ""), "570.86.15", ""),
        ((1, "", "modinfo: ERROR: Module nvidia not found.\n"), None, ""),
        ((1, "", "modinfo: ERROR: could not open\n"), None, "modinfo -F version nvidia ended with 1"),
        ((0, "\n", ""), None, "tells no version"),
        (HANG, None, "no answer in time"),
        (None, None, ""),
    ],
)
def test_a_command_tells_the_version_or_that_there_is_none(answer, version, problem):
    one = installers.Installer("driver", version_command=MODINFO, version_pattern=r"(?m)^(\d\S*)$")
    told = installers.told(RecordedRunner({MODINFO: answer} if answer else {}), one, 5)
    assert told.version == version
    assert problem in told.problem and bool(problem) == bool(told.problem)


SEARCH = ("dpkg-query", "--search", "/f")


@pytest.mark.parametrize(
    ("answer", "owner"),
    [
        ((0, "npu-driver: /f\n", ""), "npu-driver"),
        ((1, "", "dpkg-query: no path found matching pattern /f\n"), ""),
        ((2, "", "dpkg-query: error: database is locked\n"), None),
        (HANG, None),
        (None, None),
    ],
)
def test_who_owns_a_file_is_told_or_not_known(answer, owner):
    runner = RecordedRunner({SEARCH: answer} if answer else {}, {"/f": "version=1.0"})
    (row,) = installers.observe(runner, [installers.Installer("driver", version_file="/f")], 5)
    assert (row["version"], row["owner"]) == ("1.0", owner)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("24.1.0", "25.2.0"),
        ("8.2.RC1", "8.2.0"),
        ("8.2.RC1", "8.2"),
        ("25.0.rc1", "25.0.rc1.1"),
        ("25.0.rc1", "25.0.rc2"),
        ("7.7.0.6.236", "7.7.0.6.1000"),
        ("9.0.0-beta.1", "9.0.0"),
    ],
)
def test_versions_of_vendors_have_an_order(earlier, later):
    assert installers.older(earlier, later)
    swapped = (later, earlier)
    assert not installers.older(*swapped)


def test_what_a_mapping_leaves_out_has_its_default():
    (one,) = installers.declared([{"name": "driver", "arguments": ["-q"], "version_pattern": None, "unknown": 1}])
    assert one == installers.Installer("driver", arguments=("-q",))
