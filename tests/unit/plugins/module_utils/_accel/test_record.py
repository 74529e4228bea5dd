# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records as files: what is refused and with which line, what survives a full or read-only disk."""

from __future__ import annotations

import fcntl
import os
import re
import socket
import stat
import subprocess
import time
from pathlib import Path

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import reader, record, slots

GOOD = """{
  "host": "gpu-01",
  "observed_at": "2026-11-30T01:02:03Z",
  "schema": 1,
  "slots": {
    "SXM1": [
      {
        "pci_address": "0000:18:00.0",
        "serial": "1650423000123",
        "uuid": "GPU-1"
      }
    ]
  },
  "tool": {
    "name": "nvidia-smi",
    "version": "570.86.15"
  },
  "unplaced": []
}
"""


@pytest.fixture
def file(tmp_path):
    """Return a function that writes text to a record file and returns its path."""

    def make(text):
        path = tmp_path / "slots.json"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return make


@pytest.fixture
def tiny_disk(tmp_path):
    """Return a mounted file system of 64 KiB; skip where mounting is not allowed."""
    place = tmp_path / "tiny"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_the_time_is_utc_with_seconds():
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", record.now_utc())


def test_canonical_text_sorts_keys_and_ends_with_a_newline():
    assert record.canonical({"b": [1, None], "a": {"d": "é", "c": True}}) == (
        '{\n  "a": {\n    "c": true,\n    "d": "é"\n  },\n  "b": [\n    1,\n    null\n  ]\n}\n'
    )


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ({"observed_at": "1", "a": 1}, {"observed_at": "2", "a": 1}, True),
        ({"a": 1}, {"observed_at": "2", "a": 1}, True),
        ({"a": [{"measured_at": "1", "b": 1}]}, {"a": [{"measured_at": "2", "b": 1}]}, True),
        ({"a": [{"observed_at": "1", "b": 1}]}, {"a": [{"observed_at": "1", "b": 2}]}, False),
        ({"observed_at": "1", "a": 1}, {"observed_at": "1", "a": None}, False),
        (None, {"a": 1}, False),
    ],
)
def test_only_the_clock_is_ignored_at_any_depth(old, new, same):
    assert record.same(old, new) is same


def test_a_good_record_is_read(file):
    assert record.load(file(GOOD), slots.problems)["slots"]["SXM1"][0]["uuid"] == "GPU-1"


def test_no_file_is_no_record(tmp_path):
    assert record.load(str(tmp_path / "none.json")) is None


def refused(path):
    before = Path(path).read_bytes()
    with pytest.raises(record.RecordError) as caught:
        record.load(path, slots.problems)
    assert Path(path).read_bytes() == before
    assert str(caught.value).startswith(path)
    assert "left untouched" in str(caught.value)
    return str(caught.value)[len(path) :]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        # A missing comma is noticed where the next key starts.
        ('"gpu-01",', '"gpu-01"', " line 3 column 3: not valid JSON (Expecting ',' delimiter)"),
        ('"schema": 1', '"schema": 2', " line 4 column 13: schema 2 is not one"),
        ('"schema": 1', '"schema": true', " line 4 column 13: schema true is not one"),
        ('"schema": 1', '"schema": "1"', ' line 4 column 13: schema "1" is not one'),
        ('  "schema": 1,\n', "", " line 1 column 1: the key 'schema' is missing"),
        ('"host": "gpu-01"', '"host": 7', " line 2 column 11: 'host' must be a text, this is a number"),
        ('  "host": "gpu-01",\n', "", " line 1 column 1: the key 'host' is missing"),
        ('"unplaced": []', '"unplaced": null', " line 18 column 15: 'unplaced' must be a list, this is null"),
        ('"uuid": "GPU-1"', '"uuid": ""', " line 10 column 17: 'uuid' is empty"),
        ('"uuid": "GPU-1"', '"uuid": 1', " line 10 column 17: 'uuid' must be a text or null, this is a number"),
        (',\n        "uuid": "GPU-1"', "", " line 7 column 7: a card's key 'uuid' is missing"),
        ("0000:18:00.0", "0000:18:20.0", " line 8 column 24: not a PCI address: '0000:18:20.0'"),
        ('"SXM1": [', '"SXM1": [], "SXM1": [', " line 6 column 17: the key 'SXM1' stands there twice"),
        ('"SXM1": [', '"SXM0": 5, "SXM1": [', " line 6 column 13: slot 'SXM0' must be a list of cards"),
        ('"serial"', '"present": "no", "serial"', " line 9 column 20: 'present' must be true or false"),
        ("[]", "[7]", " line 18 column 16: a card must be an object, this is a number"),
        ('"1650423000123"', "NaN", " line 9 column 19: NaN is no JSON number"),
        ('"1650423000123"', "1e999", " line 9 column 19: 1e999 is too large for a number"),
        ('"1650423000123"', '"\\ud800"', ' line 9 column 19: "\\ud800" holds half a character'),
        ('"SXM1": [', '"\\udc00": [], "SXM1": [', ' line 6 column 5: the key "\\udc00" holds half a character'),
        ('  "tool"', '<<<<<<< HEAD\n  "tool"', " line 14 column 1: not valid JSON"),
    ],
)
def test_what_is_no_record_is_refused_with_its_line(file, old, new, says):
    assert GOOD.count(old) == 1, "the sample no longer holds what this case changes"
    assert refused(file(GOOD.replace(old, new))).startswith(says)


def test_of_several_faults_the_first_is_named_and_the_rest_counted(file):
    message = refused(file(GOOD.replace('"GPU-1"', '""').replace('"1650423000123"', "5")))
    assert message.startswith(" line 9 column 19: 'serial' must be a text or null") and "(1 more after it)" in message


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", " line 1 column 1: not valid JSON"),
        (b"\0" * 40, " line 1 column 1: not valid JSON"),
        (b"[]\n", " line 1 column 1: a record is an object, this is a list"),
        (b'{"schema": 1,\n"host": "\xff"}', " line 2 column 10: not UTF-8 text"),
        (b"[" * 100000, ": nested too deep"),
        (GOOD[: GOOD.index('"uuid"') + 3].encode(), " line 10 column 9: not valid JSON"),
    ],
    ids=["empty", "zeros", "list", "bytes", "deep", "cut"],
)
def test_damage_of_a_power_cut_or_an_editor_is_refused(file, raw, says):
    assert refused(file(raw)).startswith(says)


def test_a_directory_in_the_place_of_a_record_is_refused(tmp_path):
    with pytest.raises(record.RecordError, match="cannot be read: there is a directory of that name"):
        record.load(str(tmp_path))


def no_file(path, kind):
    """Put something that is no file in the place of one."""
    if kind == "a named pipe":
        os.mkfifo(path)
    elif kind == "a socket":
        with socket.socket(socket.AF_UNIX) as end:
            end.bind(str(path))
    else:
        path.symlink_to("/dev/zero")


NO_FILES = ["a named pipe", "a device", "a socket"]


@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_file_is_refused_at_once(tmp_path, kind):
    """Reading it would wait for whoever writes to it, or never end."""
    no_file(tmp_path / "slots.json", kind)
    began = time.monotonic()
    with pytest.raises(record.RecordError) as caught:
        record.load(str(tmp_path / "slots.json"))
    assert str(caught.value) == f"{tmp_path}/slots.json cannot be read: it is {kind}, not a file."
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("kind", NO_FILES)
def test_a_history_that_is_no_file_is_refused_at_once(tmp_path, kind):
    path = tmp_path / "history.jsonl"
    no_file(path, kind)
    with pytest.raises(record.RecordError, match=r"history.jsonl cannot be read: "):
        record.read_history(str(path))
    with pytest.raises(record.RecordError, match=r"history.jsonl cannot be written: "):
        record.append_history(str(path), EVENTS)


@pytest.mark.parametrize("told", ["by its size", "by reading"])
def test_what_is_larger_than_any_record_is_refused(tmp_path, file, monkeypatch, told):
    assert record.MOST_BYTES == 64 << 20
    monkeypatch.setattr(record, "MOST_BYTES", 4096)
    path = file(GOOD + " " * (4096 - len(GOOD)))
    assert record.load(path)["host"] == "gpu-01"
    path = file(GOOD + " " * (4097 - len(GOOD))) if told == "by its size" else "/proc/self/smaps"
    with pytest.raises(record.RecordError) as caught:
        record.load(path)
    assert str(caught.value) == f"{path} cannot be read: it is larger than any record."


def test_what_could_not_be_read_again_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "MOST_BYTES", 4096)
    with pytest.raises(record.RecordError, match=r"slots.json cannot be written: it would be larger than any record"):
        record.write(str(tmp_path / "slots.json"), {"host": "x" * 5000})
    assert os.listdir(tmp_path) == []


def test_a_large_record_is_read(file):
    path = file(GOOD + " " * (32 << 20))
    began = time.monotonic()
    assert record.load(path)["host"] == "gpu-01"
    assert time.monotonic() - began < 8


def test_a_file_system_that_does_not_answer_holds_nobody(file, monkeypatch):
    path = file(GOOD)
    assert record.load(path)
    monkeypatch.setattr(record, "MOST_SECONDS", 0.2)
    monkeypatch.setattr(reader, "_read_whole", lambda _path, _most: time.sleep(60))
    reader._files.close()  # the next one is started with what stands there now
    began = time.monotonic()
    with pytest.raises(record.RecordError) as caught:
        record.load(path)
    assert str(caught.value) == f"{path} cannot be read: no answer within 0.2 s."
    assert time.monotonic() - began < 5
    monkeypatch.undo()
    assert record.load(path)


def test_records_are_read_in_a_process_that_was_copied(file, tmp_path):
    """As Ansible copies itself for each task: two that talk to one reader would read each other's records."""
    path, other = file(GOOD), tmp_path / "other.json"
    other.write_text(GOOD.replace("gpu-01", "gpu-02"))
    assert record.load(path)["host"] == "gpu-01"
    pid = os.fork()
    if not pid:
        try:
            os._exit(0 if all(record.load(str(other))["host"] == "gpu-02" for _time in range(200)) else 1)
        finally:
            os._exit(2)
    assert all(record.load(path)["host"] == "gpu-01" for _time in range(200))
    assert os.waitpid(pid, 0)[1] == 0
    assert record.load(path)["host"] == "gpu-01"


def test_a_record_without_memory_for_it_is_refused(file, monkeypatch):
    def none_left(*_arguments):
        raise MemoryError

    path = file(GOOD)
    monkeypatch.setattr(record, "_walk", none_left)
    with pytest.raises(record.RecordError, match="there is not enough memory"):
        record.load(path)


def test_who_is_interrupted_while_writing_leaves_nothing_behind(tmp_path, monkeypatch):
    def interrupt(_handle):
        raise KeyboardInterrupt

    monkeypatch.setattr(record.os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        record.write(str(tmp_path / "slots.json"), {"schema": 1})
    assert os.listdir(tmp_path) == []


def test_a_record_is_written_whole_with_its_directory(tmp_path):
    path = tmp_path / "a" / "b" / "slots.json"
    old = os.umask(0o077)
    try:
        record.write(str(path), {"schema": 1})
    finally:
        os.umask(old)
    assert path.read_text() == '{\n  "schema": 1\n}\n'
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o755
    assert os.listdir(path.parent) == ["slots.json"]


def test_writing_again_replaces_the_file_not_its_content(tmp_path):
    path = tmp_path / "slots.json"
    record.write(str(path), {"schema": 1})
    with path.open() as reader:  # someone who reads while it is replaced sees the old one to its end
        record.write(str(path), {"schema": 1, "host": "gpu-01"})
        assert reader.read() == '{\n  "schema": 1\n}\n'


def test_a_file_in_the_place_of_the_directory_is_told(tmp_path):
    (tmp_path / "records").write_text("")
    with pytest.raises(record.RecordError, match=r"records/slots.json cannot be written: a part of the path is a file"):
        record.write(str(tmp_path / "records" / "slots.json"), {})


def test_a_directory_in_the_place_of_the_file_is_told(tmp_path):
    (tmp_path / "slots.json").mkdir()
    with pytest.raises(record.RecordError, match="there is a directory of that name"):
        record.write(str(tmp_path / "slots.json"), {})
    assert os.listdir(tmp_path) == ["slots.json"]


def test_a_full_disk_is_told_and_the_old_record_is_intact(tiny_disk):
    path = tiny_disk / "slots.json"
    record.write(str(path), {"schema": 1})
    with pytest.raises(record.RecordError, match=r"no space is left on the device. What was there before is intact"):
        record.write(str(path), {"schema": 1, "host": "x" * 100_000})
    assert path.read_text() == '{\n  "schema": 1\n}\n'
    assert os.listdir(tiny_disk) == ["slots.json"]


def test_a_read_only_disk_is_told_and_the_old_record_is_intact(tiny_disk):
    path = tiny_disk / "slots.json"
    record.write(str(path), {"schema": 1})
    subprocess.run(["mount", "-o", "remount,ro", str(tiny_disk)], check=True)
    with pytest.raises(record.RecordError, match=r"the file system is read-only. What was there before is intact"):
        record.write(str(path), {"schema": 1, "host": "gpu-01"})
    with pytest.raises(record.RecordError, match="the file system is read-only"):
        record.append_history(str(tiny_disk / "history.jsonl"), [{"event": "new"}])
    assert path.read_text() == '{\n  "schema": 1\n}\n'


EVENTS = [
    {"at": "1", "host": "gpu-01", "slot": "SXM1", "event": "installed", "old_serial": None, "new_serial": "A"},
    {"at": "2", "host": "gpu-01", "slot": "SXM1", "event": "replaced", "old_serial": "A", "new_serial": "B"},
    {"at": "2", "host": "gpu-02", "slot": "SXM1", "event": "new", "old_serial": None, "new_serial": None,
     "old_uuids": [], "new_uuids": ["GPU-9"]},
]  # fmt: skip


def test_the_history_grows_and_is_read_by_slot_and_by_card(tmp_path):
    path = str(tmp_path / "site" / "history.jsonl")
    record.append_history(path, EVENTS[:1])
    record.append_history(path, EVENTS[1:])
    assert record.read_history(path) == EVENTS
    assert record.history_of_slot(path, "gpu-01", "SXM1") == EVENTS[:2]
    assert record.history_of_serial(path, "A") == EVENTS[:2]
    assert record.history_of_serial(path, "B") == EVENTS[1:2]
    assert record.history_of_serial(path, "GPU-9") == EVENTS[2:]


def test_no_events_touch_nothing_and_no_file_is_no_history(tmp_path):
    path = tmp_path / "history.jsonl"
    record.append_history(str(path), [])
    assert not path.exists()
    assert record.read_history(str(path)) == []


def test_a_line_cut_by_a_power_failure_swallows_no_new_one(tmp_path):
    path = tmp_path / "history.jsonl"
    path.write_text('{"event": "new", "ho')
    record.append_history(str(path), EVENTS[:1])
    assert path.read_text().split("\n")[0] == '{"event": "new", "ho'
    with pytest.raises(record.RecordError, match=r"history.jsonl line 1: not valid JSON"):
        record.read_history(str(path))


def test_a_history_line_that_is_no_event_is_named(tmp_path):
    path = tmp_path / "history.jsonl"
    path.write_text('{"event": "new"}\n\n7\n')
    with pytest.raises(record.RecordError, match=r"history.jsonl line 3: an event is an object, this is a number"):
        record.read_history(str(path))

    path.write_text("[" * 100000)
    with pytest.raises(record.RecordError, match=r"history.jsonl line 1: not valid JSON"):
        record.read_history(str(path))


def test_a_full_disk_adds_no_half_line_to_the_history(tiny_disk):
    path = tiny_disk / "history.jsonl"
    record.append_history(str(path), EVENTS[:1])
    before = path.read_text()
    with pytest.raises(record.RecordError, match=r"no space is left on the device. No line was added"):
        record.append_history(str(path), [EVENTS[1], {"event": "new", "reason": "x" * 100_000}])
    assert path.read_text() == before


def test_nobody_else_writes_between_the_lines_of_one_call(tmp_path, monkeypatch):
    path = tmp_path / "history.jsonl"
    path.write_text("")
    refusals = []
    write = os.write

    def watched(handle, content):
        with path.open() as other:
            try:
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                refusals.append(content)
        return write(handle, content)

    monkeypatch.setattr(record.os, "write", watched)
    record.append_history(str(path), EVENTS)
    assert len(refusals) == 1, "all lines are one write, under the lock"
    assert record.read_history(str(path)) == EVENTS


def test_events_that_stand_in_the_history_are_not_written_again(tmp_path, monkeypatch):
    path = tmp_path / "history.jsonl"
    twins = [*EVENTS, EVENTS[-1]]  # two boards of one slot that tell neither serial nor UUID look alike
    record.append_history(str(path), twins)
    text = path.read_text()
    monkeypatch.setattr(os, "fsync", lambda _handle: None)
    for cut in range(len(text) + 1):
        path.write_text(text[:cut])
        record.append_history(str(path), twins)
        assert path.read_text() == text, cut
