# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The light at a card: which file, whether it is on, and never a light that is none."""

from __future__ import annotations

import json
import re

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import cli, locate
from doubles import RecordedRunner

BUS = "/sys/bus/pci/devices/"
TREE = "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/"
ONE, TWO = "0000:18:00.0", "0000:2a:00.0"
CARD = {"vendor": "0x10de", "device": "0x2330", "class": "0x030200"}


class Host(RecordedRunner):
    """Two cards below one switch; what is written can be read, unless the file is deaf."""

    def __init__(self, files=None, links=None, deaf=(), readonly=()):
        cards = {f"{BUS}{address}/{name}": text for address in (ONE, TWO) for name, text in CARD.items()}
        paths = {
            f"{BUS}{ONE}": f"{TREE}0000:02:00.0/{ONE}",
            f"{BUS}{TWO}": f"{TREE}0000:02:01.0/{TWO}",
        }
        super().__init__({}, {**cards, **(files or {})}, tools=set(), links={**paths, **(links or {})})
        self.deaf, self.readonly, self.written = deaf, readonly, []

    def write(self, path, text):
        if path in self.readonly:
            return "Permission denied"
        self.written.append((path, text))
        if path not in self.deaf:
            self.files[path] = text
        return None


def slot(name, address):
    return {f"/sys/bus/pci/slots/{name}/address": address, f"/sys/bus/pci/slots/{name}/attention": "0"}


def run(capsys, host, *words, record=None, tmp_path=None):
    node = "/nonexistent"
    if tmp_path:
        body = {"host": "gpu-01", "records_dir": str(tmp_path), "declared": {}}
        (tmp_path / "node.json").write_text(json.dumps(body))
        node = str(tmp_path / "node.json")
        if record:
            (tmp_path / "slots.json").write_text(json.dumps(record))
    status = cli.main(["locate", *words, "--node-file", node], host)
    return status, *capsys.readouterr()


def test_the_slot_of_the_card_itself(capsys):
    host = Host({**slot("5", "0000:18:00"), **slot("6", "0000:2a:00")})
    status, out, err = run(capsys, host, ONE)
    assert (status, err) == (0, "")
    assert out == f"attention indicator of slot 5 of {ONE} is on\n"
    assert host.written == [("/sys/bus/pci/slots/5/attention", "1")]
    status, out, _err = run(capsys, host, "GPU0000:18:00.0", "--off")
    assert (status, host.files["/sys/bus/pci/slots/5/attention"]) == (0, "0")
    assert out.endswith("is off\n")


def test_the_slot_of_a_bridge_above_marks_all_that_is_below_it(capsys):
    status, out, _err = run(capsys, Host(slot("3", "0000:01:00")), ONE)
    assert status == 0
    assert f"it is the light of {TWO} too" in out
    status, out, _err = run(capsys, Host(slot("3", "0000:02:00")), ONE)
    # The switch's port at 02:00.0 has this card alone; that at 02:01.0 is the same device of PCI.
    assert status == 0


def test_the_nearest_light_is_taken(capsys):
    component = "/sys/class/enclosure/0:0:1:0/Slot 07"
    files = {**slot("3", "0000:01:00"), f"{component}/locate": "0", f"{component}/device/x": ""}
    links = {f"{component}/device": f"{TREE}0000:02:00.0"}
    host = Host(files, links)
    assert run(capsys, host, ONE)[:2] == (0, f"enclosure place Slot 07 of {ONE} is on\n")
    led = f"/sys/class/leds/{ONE}:enclosure:locate/brightness"
    host = Host({**files, led: "0"}, links)
    assert run(capsys, host, ONE)[0] == 0
    assert host.written == [(led, "1")]


def test_no_light_is_said_and_nothing_is_written(capsys):
    host = Host({"/sys/bus/pci/slots/5/address": "0000:18:00"})  # a slot without an indicator
    status, out, err = run(capsys, host, ONE)
    assert (status, out, host.written) == (3, "", [])
    assert "no light is known" in err and ONE in err


@pytest.mark.parametrize(("more", "words"), [({"deaf": 1}, "reads '0'"), ({"readonly": 1}, "Permission denied")])
def test_a_light_that_does_not_come_on_is_no_success(capsys, more, words):
    path = "/sys/bus/pci/slots/5/attention"
    status, out, err = run(capsys, Host(slot("5", "0000:18:00"), **dict.fromkeys(more, (path,))), ONE)
    assert (status, out) == (3, "")
    assert words in err


def test_several_lights_for_one_card_are_not_touched(capsys):
    host = Host({**slot("5", "0000:18:00"), **slot("5-1", "0000:18:00")})
    status, _out, err = run(capsys, host, ONE)
    assert (status, host.written) == (3, [])
    assert "none was touched" in err


def test_a_card_that_is_not_there(capsys):
    for word in ("SXM9", "0000:99:00.0", "165042300"):
        status, out, err = run(capsys, Host(), word)
        assert (status, out) == (3, "")
        assert repr(word) in err


def test_a_card_that_is_gone_is_found_by_the_record(capsys, tmp_path):
    card = {"serial": "S7", "uuid": "GPU-7", "pci_address": "0000:ba:00.0", "present": False, "state": "gone"}
    body = {"schema": 1, "host": "gpu-01", "observed_at": "x", "tool": {"name": "t", "version": None}, "unplaced": []}
    body["slots"] = {"SXM5": [card]}
    for word in ("SXM5", "sxm5", "S7", "GPU-7", "0000:ba:00.0"):
        host = Host(slot("9", "0000:ba:00"))
        status, out, _err = run(capsys, host, word, record=body, tmp_path=tmp_path)
        assert (status, out) == (0, "attention indicator of slot 9 of 0000:ba:00.0, slot SXM5, serial S7 is on\n")
    status, _out, err = run(capsys, Host(), "SXM5", record={**body, "host": "gpu-09"}, tmp_path=tmp_path)
    assert status == 3 and "no card" in err


def test_an_exact_name_goes_before_one_in_other_letters():
    seen = {"devices": [{"pci_address": None, "slot": {"label": name}, "serial": None} for name in ("a1", "A1")]}
    assert [place.slot for place in locate.find("A1", seen)] == ["A1"]
    assert [place.slot for place in locate.find("a1", seen)] == ["a1"]


def test_a_card_of_a_vendor_that_the_site_declares(capsys, tmp_path):
    files = {f"{BUS}{ONE}/vendor": "0x1e99", **slot("5", "0000:18:00")}
    body = {"host": "gpu-01", "records_dir": "", "declared": {"cluster_vendors": {"acme": {"pci_vendors": ["1e99"]}}}}
    (tmp_path / "node.json").write_text(json.dumps(body))
    host = Host(files)
    status = cli.main(["locate", ONE, "--node-file", str(tmp_path / "node.json")], host)
    assert (status, capsys.readouterr().err) == (0, "")
    assert host.written == [("/sys/bus/pci/slots/5/attention", "1")]


CHINESE = re.compile("[\u4e00-\u9fff]")


@pytest.mark.parametrize("key", locate.WORDS["en"])
def test_every_text_is_there_in_both_languages(key):
    assert set(locate.WORDS["en"]) == set(locate.WORDS["zh"])
    fields = [sorted(re.findall(r"\{\w*[^{}]*\}", locate.WORDS[language][key])) for language in ("en", "zh")]
    assert fields[0] == fields[1]
    assert not CHINESE.search(locate.WORDS["en"][key])
    assert CHINESE.search(locate.WORDS["zh"][key]) or key in ("comma", "semicolon")


def test_it_speaks_chinese(capsys):
    host = Host({**slot("5", "0000:18:00"), **slot("6", "0000:2a:00")})
    assert run(capsys, host, ONE, "--language", "zh")[1] == f"{ONE} 的槽位 5 提示灯：已点亮\n"
    assert run(capsys, host, ONE, "--off", "--language", "zh")[1] == f"{ONE} 的槽位 5 提示灯：已熄灭\n"
    assert run(capsys, Host(slot("3", "0000:01:00")), ONE, "--language", "zh")[1].endswith(f"；该灯也属于 {TWO}\n")
    path = "/sys/bus/pci/slots/5/attention"
    for host, word in (
        (Host(), "SXM9"),
        (Host(), ONE),
        (Host({**slot("5", "0000:18:00"), **slot("5-1", "0000:18:00")}), ONE),
        (Host(slot("5", "0000:18:00"), deaf=[path]), ONE),
        (Host(slot("5", "0000:18:00"), readonly=[path]), ONE),
    ):
        status, out, err = run(capsys, host, word, "--language", "zh")
        assert (status, out) == (3, "") and CHINESE.search(err), err


def test_a_card_that_is_not_found_while_others_do_not_answer_is_not_said_to_be_absent(capsys):
    """Its serial is what a silent card can't tell: that nobody has it proves nothing."""
    status, _out, err = run(capsys, Host(), "165042300")
    assert status == 3
    assert f"these cards tell neither serial nor UUID: {ONE}, {TWO}. " in err and "give the address" in err


def test_a_card_whose_address_nothing_tells_is_not_said_to_have_no_light(capsys, tmp_path):
    card = {"serial": "S7", "uuid": "GPU-7", "pci_address": None, "present": False, "state": "gone"}
    body = {"schema": 1, "host": "gpu-01", "observed_at": "x", "tool": {"name": "t", "version": None}, "unplaced": []}
    body["slots"] = {"SXM5": [card]}
    status, _out, err = run(capsys, Host(), "SXM5", record=body, tmp_path=tmp_path)
    assert status == 3
    assert "nothing tells the address of slot SXM5, serial S7" in err and "no light is known" not in err


def test_a_light_that_only_root_may_switch_says_so(capsys):
    path = "/sys/bus/pci/slots/5/attention"
    _status, _out, err = run(capsys, Host(slot("5", "0000:18:00"), readonly=[path]), ONE)
    assert err == (
        f"accelctl: attention indicator of slot 5 of {ONE} is not on: {path} can't be written: Permission denied "
        "(try as root)\n"
    )
    _status, _out, err = run(capsys, Host(slot("5", "0000:18:00"), deaf=[path]), ONE)
    assert err == (f"accelctl: attention indicator of slot 5 of {ONE} is not on: {path} was written, but reads '0'\n")
