# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bounded commands and file reads, with real processes and files."""

from __future__ import annotations

import os
import sys
import time

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import runner
from ansible_collections.accel.cluster.plugins.module_utils._accel.runner import BoundedRunner, Runner


def python(code):
    return [sys.executable, "-c", code]


def gone(pid):
    """Tell whether a process is gone, or dead and only waiting to be collected."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as handle:
            return handle.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_streams_and_exit_code_stay_apart():
    result = Runner().run(python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(15)"), 30)
    assert (result.rc, result.stdout, result.stderr, result.hung) == (15, "out\n", "err\n", False)
    assert result.command.endswith("sys.exit(15)")


def test_a_program_that_is_not_there():
    result = Runner().run(["/no/such/program", "-q"], 30)
    assert (result.rc, result.stdout, result.hung) == (127, "", False)
    assert "No such file" in result.stderr


def test_words_come_in_english():
    code = "import os; print(os.environ['LC_ALL'], os.environ['LANGUAGE'])"
    assert Runner().run(python(code), 30).stdout == "C C\n"


def test_bytes_that_are_no_text_do_no_harm():
    result = Runner().run(python("import sys; sys.stdout.buffer.write(b'a\\xff\\xfeb\\x00c')"), 30)
    assert result.stdout == "a\ufffd\ufffdb\x00c"


def test_nothing_is_waited_for_on_the_input():
    assert Runner().run(python("import sys; print(repr(sys.stdin.read()))"), 30).stdout == "''\n"


@pytest.mark.parametrize("told", ["at once", "by looking"])
def test_the_end_of_a_command_is_seen_on_every_kernel(monkeypatch, told):
    if told == "by looking":  # as on Linux before 5.3

        def none_there(pid):
            raise OSError("Function not implemented")

        monkeypatch.setattr(os, "pidfd_open", none_there, raising=False)
    handles = len(os.listdir("/proc/self/fd"))
    done = Runner().run(python("import sys, time; time.sleep(0.3); sys.exit(3)"), 30)
    assert (done.rc, done.hung) == (3, False)
    hung = Runner().run(python("import time; time.sleep(600)"), 0.3)
    assert (hung.rc, hung.hung) == (None, True)
    assert len(os.listdir("/proc/self/fd")) == handles


def test_a_command_that_hangs_is_given_up_with_what_it_said():
    code = "import sys, time; print('begun'); sys.stdout.flush(); time.sleep(600)"
    began = time.monotonic()
    result = Runner().run(python(code), 1)
    assert (result.rc, result.hung, result.stdout) == (None, True, "begun\n")
    assert time.monotonic() - began < 20


def test_children_of_a_hung_command_die_with_it(tmp_path):
    note = tmp_path / "pid"
    code = (
        "import subprocess, sys, time;"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
        f"open({str(note)!r}, 'w').write(str(child.pid)); time.sleep(600)"
    )
    # Long enough for the child to be started on a busy machine.
    assert Runner().run(python(code), 5).hung
    pid = int(note.read_text())
    deadline = time.monotonic() + 20
    while not gone(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert gone(pid)


def test_a_child_that_keeps_the_output_open_does_not_hold_the_answer(tmp_path):
    """A pipe would stay open until the grandchild ends; the answer is in a file instead."""
    note = tmp_path / "pid"
    code = (
        "import os, subprocess, sys;"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True);"
        f"open({str(note)!r}, 'w').write(str(child.pid)); print('done')"
    )
    result = Runner().run(python(code), 60)
    os.kill(int(note.read_text()), 9)
    assert (result.rc, result.stdout, result.hung) == (0, "done\n", False)


def test_a_flood_is_bounded():
    result = Runner().run(python("import sys; sys.stdout.write('x' * 20_000_000)"), 60)
    assert result.rc == 0
    assert len(result.stdout) == 8 << 20


def test_a_command_that_never_stops_writing_does_not_fill_the_disk(monkeypatch):
    monkeypatch.setattr(runner, "FLOOD_BYTES", 4 << 20)
    kept = []
    monkeypatch.setattr(runner, "_size", lambda handle: kept.append(os.fstat(handle.fileno()).st_size) or kept[-1])
    # Its speed is bounded here, so that what is written between two looks is too.
    code = "import sys, time\nwhile True: sys.stdout.write('x' * (1 << 20)); sys.stdout.flush(); time.sleep(0.02)"
    result = Runner().run(python(code), 60)
    assert (result.hung, result.rc) == (False, -9)
    assert "more than 4 MiB" in result.stderr and result.stdout.startswith("xxx")
    assert 4 << 20 < max(kept) < 64 << 20


def test_programs_are_found_outside_the_path(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Runner().which("sh") in ("/bin/sh", "/usr/bin/sh")
    assert Runner().which("no-such-program") is None
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    assert Runner().which("nvidia-smi") == str(tool)


def test_files(tmp_path):
    runner = Runner()
    (tmp_path / "speed").write_text(" 32.0 GT/s PCIe\n")
    (tmp_path / "raw").write_bytes(b"\x00\xff")
    (tmp_path / "link").symlink_to(tmp_path / "speed")
    assert runner.read(str(tmp_path / "speed")) == "32.0 GT/s PCIe"
    assert runner.read_bytes(str(tmp_path / "raw")) == b"\x00\xff"
    assert runner.realpath(str(tmp_path / "link")) == str(tmp_path / "speed")
    assert runner.glob(str(tmp_path / "*")) == [str(tmp_path / name) for name in ("link", "raw", "speed")]


@pytest.mark.parametrize("path", ["missing", "."])
def test_what_can_not_be_read_is_none(tmp_path, path):
    assert Runner().read(str(tmp_path / path)) is None
    assert Runner().read_bytes(str(tmp_path / path)) is None


def test_a_value_is_written_into_a_file_that_is_there(tmp_path):
    path = tmp_path / "attention"
    path.write_text("0\n")
    assert Runner().write(str(path), "1") is None
    assert Runner().read(str(path)) == "1"
    assert Runner().write(str(tmp_path / "missing"), "1") == "No such file or directory"
    assert Runner().write(str(tmp_path), "1")
    assert not (tmp_path / "missing").exists()


def test_commands_share_one_limit():
    bounded = BoundedRunner(0.5)
    assert bounded.run(["true"], 60).rc == 0
    assert bounded.run(["sleep", "30"], 60).hung
    late = bounded.run(["true"], 60)
    assert (late.hung, late.rc) == (True, None)
    assert BoundedRunner(60).run(["sleep", "30"], 0.1).hung
