# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bounded commands and file reads, with real processes and files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import reader, runner
from ansible_collections.accel.cluster.plugins.module_utils._accel.runner import BoundedRunner, Runner


def python(code):
    return [sys.executable, "-c", code]


def alone(code):
    """Run code in a process of its own, whose signals are its own; return what it printed."""
    return subprocess.run(python(code), capture_output=True, text=True, timeout=20, check=True)


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


@pytest.fixture
def hasty(monkeypatch):
    """Let a file have less time than on a host."""
    for name, seconds in (("READ_SECONDS", 0.6), ("READ_SECONDS_LOST", 1.0), ("READ_SECONDS_LEAST", 0.1)):
        monkeypatch.setattr(runner, name, seconds)


def cards(tmp_path, *blocking):
    """Make folders with files as below /sys; a named pipe that nobody writes to blocks whoever opens it."""
    for name in ("a", "b", "c", "d", "e"):
        (tmp_path / name).mkdir()
        for file in ("vendor", "width"):
            if name in blocking:
                os.mkfifo(tmp_path / name / file)
            else:
                (tmp_path / name / file).write_text("16\n")


def test_a_file_that_blocks_costs_its_time_once_and_hides_no_other(tmp_path, hasty):
    cards(tmp_path, "b")
    ours = Runner()
    began = time.monotonic()
    read = {(name, file): ours.read(str(tmp_path / name / file)) for name in "abcde" for file in ("vendor", "width")}
    assert {name for (name, _file), told in read.items() if told is None} == {"b"}
    assert {told for (name, _file), told in read.items() if name != "b"} == {"16"}
    assert 0.5 < time.monotonic() - began < 10
    # The second file of the folder was not waited for.
    assert ours._lost == 0.6
    assert ours.blocked == [str(tmp_path / "b/vendor"), str(tmp_path / "b/width")]
    assert ours.hung_reads() == [f"{tmp_path}/b/vendor: no answer in time; not read either: width"]
    assert ours.read_bytes(str(tmp_path / "b/width")) is None
    assert ours.read_bytes(str(tmp_path / "c/width")) == b"16\n"


def test_what_is_read_ahead_is_told_once_and_then_read_again(tmp_path):
    cards(tmp_path)
    ours = Runner()
    paths = [str(tmp_path / name / "width") for name in ("a", "b", "none")]
    ours.read_ahead(paths)
    (tmp_path / "a/width").write_text("8\n")
    assert [ours.read(path) for path in paths] == ["16", "16", None]
    assert ours.read(paths[0]) == "8"
    ours.read_ahead([])
    assert ours.read(paths[0]) == "8"


def test_a_file_that_blocks_leaves_all_that_was_to_be_read_ahead_to_the_reads(tmp_path, hasty):
    cards(tmp_path, "b")
    ours = Runner()
    paths = [str(tmp_path / name / "width") for name in "abc"]
    ours.read_ahead(paths)
    assert ours.blocked == []
    (tmp_path / "a/width").write_text("8\n")
    assert [ours.read(path) for path in paths] == ["8", None, "16"]
    assert ours.blocked == [paths[1]]


def test_many_files_are_read_ahead(tmp_path):
    """More names than a pipe holds, and more content."""
    for number in range(1500):
        (tmp_path / f"{number:0100}").write_text(str(number) * 50)
    ours = Runner()
    paths = [str(tmp_path / f"{number:0100}") for number in range(1500)]
    ours.read_ahead(paths)
    assert len(ours._ahead) == 1500
    assert [ours.read(path) for path in paths] == [str(number) * 50 for number in range(1500)]


def test_many_files_that_block_share_what_may_be_lost(tmp_path, hasty):
    cards(tmp_path, *"abcd")
    ours = Runner()
    began = time.monotonic()
    assert [ours.read(str(tmp_path / name / "width")) for name in "abcde"] == [None, None, None, None, "16"]
    # 0.6, the rest of 1.0, and twice the least; without a limit it would be 2.4.
    assert time.monotonic() - began < 2.0
    assert len(ours.hung_reads()) == 4


def test_a_write_that_blocks_says_so(tmp_path, hasty):
    path = tmp_path / "attention"
    path.write_text("0")
    ours = Runner()
    assert (ours.write(str(path), "1"), path.read_text()) == (None, "1")
    assert ours.write(str(tmp_path / "none"), "1") == "No such file or directory"
    os.mkfifo(tmp_path / "pipe")
    held = os.open(tmp_path / "pipe", os.O_RDWR)
    os.set_blocking(held, False)
    while True:  # until the pipe is full, so that the next one who writes has to wait
        try:
            os.write(held, b"x" * 4096)
        except BlockingIOError:
            break
    assert ours.write(str(tmp_path / "pipe"), "1") == "no answer in time"
    os.close(held)


def test_a_file_that_can_not_be_read_is_not_one_that_blocks(tmp_path):
    ours = Runner()
    assert (ours.read(str(tmp_path / "none")), ours.read(str(tmp_path))) == (None, None)
    assert (ours.blocked, ours.hung_reads()) == ([], [])


def test_a_large_file_is_read_up_to_its_limit(tmp_path):
    (tmp_path / "large").write_bytes(b"x" * ((1 << 20) + 7))
    assert len(Runner().read_bytes(str(tmp_path / "large"))) == 1 << 20


def test_a_reader_that_died_is_replaced(tmp_path):
    (tmp_path / "one").write_text("1")
    ours = Runner()
    assert ours.read(str(tmp_path / "one")) == "1"
    os.kill(ours._reader._pid, 9)
    os.waitpid(ours._reader._pid, 0)
    # That it died says nothing of the file.
    assert ours.read(str(tmp_path / "one")) == "1"
    assert ours.read("/nul\0") is None
    assert ours.read(str(tmp_path / "one")) == "1"


def test_an_interrupted_read_is_no_answer_to_the_next(tmp_path, monkeypatch):
    """Nor is the end of the program one to wait for: a reader that blocks can't be collected."""
    (tmp_path / "one").write_text("1")
    (tmp_path / "two").write_text("2")
    ours = Runner()
    assert ours.read(str(tmp_path / "one")) == "1"

    def interrupt(*_arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(reader.select, "select", interrupt)
        with pytest.raises(KeyboardInterrupt):
            ours.read(str(tmp_path / "one"))
    assert ours._reader._pid == 0
    assert ours.read(str(tmp_path / "two")) == "2"


def test_a_reader_that_can_not_be_killed_holds_neither_the_end_nor_the_output(tmp_path):
    """As one that sleeps in the kernel: the signal does nothing, and whoever reads our output sees its end."""
    os.mkfifo(tmp_path / "pipe")
    folder = os.path.dirname(os.path.dirname(runner.__file__))
    code = (
        f"import os, sys; sys.path.insert(0, {folder!r})\n"
        "from _accel import runner\n"
        "runner.READ_SECONDS = 0.3\n"
        "os.kill = lambda pid, number: print('left behind', pid)\n"
        "ours = runner.Runner()\n"
        f"print(ours.read({str(tmp_path / 'pipe')!r}), ours.read('/proc/self/comm') is not None, flush=True)\n"
    )
    done = alone(code)
    words = done.stdout.split()
    pid = int(words[2])
    try:
        assert words[3:] == ["None", "True"]
        assert not gone(pid)
    finally:
        os.kill(pid, 9)


def test_a_reader_ends_with_its_program(tmp_path):
    folder = os.path.dirname(os.path.dirname(runner.__file__))
    code = (
        f"import os, sys; sys.path.insert(0, {folder!r})\nfrom _accel.runner import Runner\n"
        "one, two = Runner(), Runner()\none.read('/proc/self/comm'), two.read('/proc/self/comm')\n"
        "print(one._reader._pid, two._reader._pid, flush=True)\nos._exit(0)\n"
    )
    done = alone(code)
    deadline = time.monotonic() + 20
    pids = [int(word) for word in done.stdout.split()]
    while not all(gone(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [gone(pid) for pid in pids] == [True, True]


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


# ------------------------------------------------------------------------------------- what ends this ends its commands

FOLDER = os.path.dirname(os.path.dirname(runner.__file__))
ALONE = "Runner().run(commands[0], 60)"
SEVERAL = "run_all(Runner(), commands * 3, 60)"
BESIDE = "ours = Runner(); beside(lambda: [ours.run(commands[0], 60), ours.run(commands[0], 60)]).result()"


def interrupted(tmp_path, asked, commands, number, ready):
    """Send a signal to a program that runs hanging commands; return how it ended, and the processes of those."""
    code = (
        f"import sys; sys.path.insert(0, {FOLDER!r})\nfrom _accel.runner import Runner\n"
        f"from _accel.parallel import beside, run_all\ncommands = {commands!r}\n{asked}\nprint('not ended')\n"
    )
    process = subprocess.Popen(python(code), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    pids = []
    deadline = time.monotonic() + 20
    while len(pids) < ready and time.monotonic() < deadline:
        time.sleep(0.02)
        pids = [int(line) for line in (tmp_path / "pids").read_text().split()] if (tmp_path / "pids").exists() else []
    assert len(pids) == ready
    process.send_signal(number)
    began = time.monotonic()
    try:
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert time.monotonic() - began < 10
    return process.returncode, out, err, pids


def hanging(tmp_path, before=""):
    """Return a command that hangs, with a child that does; it notes both."""
    return [["sh", "-c", f"{before}sleep 300 & echo $$ $! >> {tmp_path}/pids; wait"]]


def all_gone(pids):
    """Tell whether all processes are gone, those that just die among them; end those that are not."""
    deadline = time.monotonic() + 5
    while not all(gone(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    left = [pid for pid in pids if not gone(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return not left


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize(
    ("asked", "ready"), [(ALONE, 2), (SEVERAL, 6), (BESIDE, 2)], ids=["alone", "several", "beside"]
)
def test_a_program_that_is_told_to_end_leaves_no_command_behind(tmp_path, asked, ready, name):
    number = getattr(signal, name)
    ended = interrupted(tmp_path, asked, hanging(tmp_path), number, ready)
    assert all_gone(ended[3])
    assert ended[:3] == (128 + number, "", "")


def test_a_command_that_a_signal_does_not_end_is_killed(tmp_path):
    """As it may come from a terminal to both: the command that ignores it is not left behind."""
    ended = interrupted(tmp_path, ALONE, hanging(tmp_path, "trap '' INT TERM; "), signal.SIGINT, 2)
    assert all_gone(ended[3])
    assert ended[:3] == (130, "", "")


def test_an_exception_while_a_command_runs_ends_the_command(tmp_path, monkeypatch):
    """Whatever it is, also where nobody made anything of signals."""

    def interrupt(_self, _seconds):
        while not (tmp_path / "pids").exists() or len((tmp_path / "pids").read_text().split()) < 2:
            time.sleep(0.02)
        raise KeyboardInterrupt

    monkeypatch.setattr(runner._Ending, "within", interrupt)
    with pytest.raises(KeyboardInterrupt):
        Runner().run(hanging(tmp_path)[0], 60)
    assert all_gone([int(word) for word in (tmp_path / "pids").read_text().split()])


def test_signals_that_somebody_handles_or_ignores_are_left_alone():
    code = (
        f"import signal, sys; sys.path.insert(0, {FOLDER!r})\nfrom _accel.runner import Runner\n"
        "signal.signal(signal.SIGTERM, print)\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\nRunner()\n"
        "print(signal.getsignal(signal.SIGTERM) is print, signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)\n"
    )
    done = alone(code)
    assert done.stdout == "True True\n"


def test_without_a_command_an_interrupt_is_what_python_makes_of_it():
    """Whoever uses a runner in a program of his own catches it as ever."""
    code = (
        f"import os, signal, sys, time; sys.path.insert(0, {FOLDER!r})\nfrom _accel.runner import Runner\nRunner()\n"
        "try:\n    os.kill(os.getpid(), signal.SIGINT)\n    time.sleep(9)\n"
        "except KeyboardInterrupt:\n    print('caught')\n"
    )
    done = alone(code)
    assert (done.stdout, done.stderr) == ("caught\n", "")


def test_a_runner_of_a_thread_that_is_not_the_first_one_works():
    """Only the first may say what happens with signals."""
    code = (
        f"import sys, threading; sys.path.insert(0, {FOLDER!r})\nfrom _accel.runner import Runner\n"
        "told = []\nthread = threading.Thread(target=lambda: told.append(Runner().run(['true'], 20).rc))\n"
        "thread.start()\nthread.join()\nprint(told)\n"
    )
    done = alone(code)
    assert (done.stdout, done.stderr) == ("[0]\n", "")


def test_the_end_of_a_reader_is_not_that_of_the_commands():
    """It is a copy of this process, made while a command runs: a signal for the one is none for the other."""
    code = (
        f"import os, signal, sys, time; sys.path.insert(0, {FOLDER!r})\n"
        "from _accel.runner import RUNNING, Runner\nfrom _accel.parallel import beside\nours = Runner()\n"
        "told = beside(lambda: ours.run(['sh', '-c', 'echo on; sleep 1; echo off'], 20))\n"
        "while not RUNNING._running:\n    time.sleep(0.01)\n"
        "ours.read('/proc/self/comm')\nos.kill(ours._reader._pid, signal.SIGTERM)\n"
        "print(repr(told.result().stdout), ours.read('/proc/self/comm') is not None)\n"
        "print(beside(lambda: Runner().read('/proc/self/comm') is not None).result())\n"
    )
    done = subprocess.run(python(code), capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "'on\\noff\\n' True\nTrue\n", "")


def test_a_reader_that_waits_ends_with_the_program_that_is_told_to_end(tmp_path):
    """One of another thread: nobody comes back to it to end it."""
    os.mkfifo(tmp_path / "pipe")
    code = (
        f"import sys, time; sys.path.insert(0, {FOLDER!r})\nfrom _accel.runner import Runner\n"
        f"from _accel.parallel import beside\nours = Runner()\nours.read('/proc/self/comm')\n"
        f"beside(lambda: ours.read({str(tmp_path / 'pipe')!r}))\ntime.sleep(0.2)\n"
        "print(ours._reader._pid, flush=True)\ntime.sleep(60)\n"
    )
    process = subprocess.Popen(python(code), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    pid = int(process.stdout.readline())
    process.send_signal(signal.SIGTERM)
    began = time.monotonic()
    assert (process.communicate(timeout=20), process.returncode) == (("", ""), 143)
    assert time.monotonic() - began < 3
    assert all_gone([pid])
