# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for every vendor whose tool answers for all cards at once: silence, refusals, damage, cut answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import model, registry
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import Device
from ansible_collections.accel.cluster.plugins.module_utils._accel.pci import Function
from ansible_collections.accel.cluster.plugins.module_utils._accel.tools import (
    Reply,
    Unreadable,
    ask_each,
    json_documents,
)
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors.base import Answer
from doubles import HANG, RecordedRunner

OWN = Path(__file__).resolve().parents[5] / "recordings"


@dataclass
class Tool:
    """One way to ask a vendor: the commands in their order, our recording of the last of them, its addresses."""

    vendor: str
    commands: list[tuple[str, ...]]
    recording: str
    addresses: tuple[str, ...]
    ids: str = "ffff:ffff"

    @property
    def text(self) -> str:
        return (OWN / self.vendor / self.recording).read_text(encoding="utf-8")

    def ask(self, answer, **more):
        """Return the answer and the runner, where every command but the last prints nothing."""
        answers = dict.fromkeys(self.commands[:-1], (0, "", "")) | {self.commands[-1]: answer}
        runner = RecordedRunner(answers, **more)
        vendor, device = self.ids.split(":")
        functions = [Function(one, vendor=vendor, device=device) for one in self.addresses]
        return registry.VENDORS[self.vendor].query(runner, functions, 10), runner


TOOLS = {
    "cambricon": Tool("cambricon", [("cnmon",)], "cnmon_5.10_2xMLU370-X8.txt", ("0000:5a:00.0", "0000:5e:00.0")),
    "enflame": Tool("enflame", [("efsmi", "-q")], "efsmi-q_1.4_2xS60.txt", ("0000:4b:00.0", "0000:4f:00.0")),
    "enflame-table": Tool(
        "enflame", [("efsmi", "-q"), ("efsmi",)], "efsmi_1.2_2xS60.txt", ("0000:31:00.0", "0000:3a:00.0")
    ),
    "kunlunxin": Tool("kunlunxin", [("xpu_smi", "-m")], "xpu_smi-m_2xP800-OAM.txt", ("0000:1a:00.0", "0000:3c:00.0")),
    "kunlunxin-old": Tool(
        "kunlunxin",
        [("xpu_smi", "-m"), ("xpu_smi",)],
        "xpu_smi_4.31_2xR300.txt",
        ("0000:3e:00.0", "0000:88:00.0"),
    ),
    "kunlunxin-new": Tool("kunlunxin", [("xpu-smi",)], "xpu-smi_515_2xP800.txt", ("0000:1a:00.0", "0000:3c:00.0")),
    "neuron": Tool("neuron", [("neuron-ls", "-j")], "neuron-ls_2xTrn2.json", ("0000:90:00.0", "0000:a7:00.0")),
    "neuron-table": Tool(
        "neuron",
        [("neuron-ls", "-j"), ("neuron-ls",)],
        "neuron-ls_all-procs_2xTrn2.txt",
        ("0000:90:00.0", "0000:a7:00.0"),
    ),
    "tpu": Tool("tpu", [("tpu-info",)], "tpu-info_2xv6e.txt", ("0000:00:04.0", "0000:00:05.0"), "1ae0:006f"),
    "denglin": Tool(
        "denglin",
        [("dlsmi", "query", "--xml-format")],
        "dlsmi-query_2.2_3xKS38-QUAD.xml",
        ("0000:4a:00.0", "0000:4b:00.0", "0000:4c:00.0"),
    ),
    "tenstorrent": Tool(
        "tenstorrent", [("tt-smi", "-s")], "tt-smi-s_3.0_n300_p150.json", ("0000:41:00.0", "0000:82:00.0")
    ),
}
# These have a form that shows where it ends, so a cut one is refused as a whole.
WHOLE_OR_NOTHING = ("cambricon", "neuron", "denglin", "tenstorrent")


@pytest.fixture(params=TOOLS)
def tool(request) -> Tool:
    return TOOLS[request.param]


def identities(devices: list[Device]) -> list[tuple]:
    return [(one.pci_address, one.serial, one.uuid, one.model, one.memory_bytes) for one in devices]


def fallback(tool: Tool, answer):
    """Return answers in which every form of the tool says the same."""
    every = [other.commands for other in TOOLS.values() if other.vendor == tool.vendor]
    names = {command for commands in every for command in commands if command[0] == tool.commands[0][0]}
    return RecordedRunner(dict.fromkeys(names, answer))


def query(tool: Tool, runner):
    functions = [Function(one, vendor=tool.ids[:4], device=tool.ids[5:]) for one in tool.addresses]
    return registry.VENDORS[tool.vendor].query(runner, functions, 10)


def test_healthy_answer(tool):
    answer, runner = tool.ask((0, tool.text, ""))
    assert answer.count == len(answer.devices) == len(tool.addresses)
    assert (answer.tools[-1].state, answer.tools[-1].vendor) == ("ok", tool.vendor)
    assert answer.tools[-1].command == " ".join(tool.commands[-1])
    assert {one.vendor for one in answer.devices} == {tool.vendor}
    assert len(runner.calls) == len(set(runner.calls)) == len(tool.commands)
    assert set(runner.timeouts) == {10}
    assert all(one.source.startswith(tool.commands[-1][0]) for one in answer.devices)
    if tool.vendor != "tpu":
        assert {one.pci_address for one in answer.devices} == set(tool.addresses)


def test_not_installed(tool):
    answer, runner = tool.ask((0, "", ""), tools=())
    assert {one.state for one in answer.tools} == {"absent"}
    assert (answer.count, answer.errors, answer.hung, runner.calls) == (None, [], [], [])


def test_a_tool_that_hangs_leaves_all_cards_hung_and_is_not_asked_again(tool):
    runner = fallback(tool, HANG)
    answer = query(tool, runner)
    assert (answer.count, answer.devices, answer.hung) == (None, [], list(tool.addresses))
    assert [one.state for one in answer.tools if one.state != "absent"] == ["hung"]
    assert len(runner.calls) == 1
    assert answer.errors == [f"{' '.join(runner.calls[0])}: no answer in time"]


def test_no_permission_is_said_once(tool):
    runner = fallback(tool, (1, "", "error: Permission denied: can't open the device\n"))
    answer = query(tool, runner)
    refused = answer.tools[-1]
    assert (refused.state, refused.reason, refused.rc) == ("failed", "no_permission", 1)
    assert "Permission denied" in refused.excerpt
    assert (answer.count, answer.devices, len(runner.calls)) == (None, [], 1)


def test_what_stands_beside_the_answer_of_one_card_is_told():
    runner = RecordedRunner({("smi", "-i", "0"): (0, "0", ""), ("smi", "-i", "1"): (7, "1", "")})
    answer = Answer()
    ask_each(
        runner,
        ["smi"],
        {number: ("-i", str(number)) for number in (0, 1)},
        lambda said: Reply([Device(index=int(said))]),
        [],
        model.Tool("smi"),
        answer,
        10,
    )
    assert (answer.count, answer.errors) == (2, ["smi -i 1: exit code 7 and no text"])


GARBAGE = {
    "empty": "",
    "blank": " \n\n",
    "html": "<html><body>502 Bad Gateway</body></html>\n",
    "binary": bytes(range(256)).decode("latin-1") * 20,
    "not utf-8": "\ufffd" * 500 + "\n| \ufffd | \ufffd |\n",
    "brackets": "[" * 100000,
    "open lines": "[\n" * 20000,
    "lines": "\n" * 200000,
    "frames": "+---+---+\n| a | b |\n+---+---+\n",
    "wrong list": "[1, 2, 3]\n",
    "wrong object": '{"error": "busy"}\n',
    "wrong rows": '{"device_info": [null, 1, {"board_info": "N/A"}, {"board_info": {"board_type": 7}}]}\n',
    "nulls": "\0" * 4000,
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_no_answer_and_kept(tool, name):
    answer = query(tool, fallback(tool, (0, GARBAGE[name], "")))
    assert (answer.count, answer.devices) == (None, [])
    assert {one.state for one in answer.tools if one.state != "absent"} == {"unreadable"}
    if GARBAGE[name].strip("\0 \n"):
        assert answer.tools[-1].excerpt.strip()
    assert answer.errors


def test_exit_code_without_words_is_a_failure(tool):
    answer = query(tool, fallback(tool, (3, "", "")))
    assert (answer.tools[-1].state, answer.tools[-1].reason) == ("failed", None)
    assert answer.errors[-1].endswith("exit code 3 and no text")


def test_warnings_beside_a_whole_answer_hide_nothing(tool):
    answer, _runner = tool.ask((0, tool.text, "WARNING: the firmware is old\n"))
    assert answer.count == len(tool.addresses)
    assert "firmware is old" in answer.tools[-1].excerpt
    before, _runner = tool.ask((0, "[WARN] the firmware is old\n\n" + tool.text, ""))
    assert identities(before.devices) == identities(answer.devices)


def test_terminal_colours_are_no_part_of_it(tool):
    plain, _runner = tool.ask((0, tool.text, ""))
    coloured, _runner = tool.ask((0, "\x1b[1m" + tool.text.replace("\n", "\x1b[0m\n"), ""))
    assert identities(coloured.devices) == identities(plain.devices)


@pytest.mark.parametrize("name", TOOLS)
def test_a_cut_answer_never_makes_a_card_another_one(name):
    tool = TOOLS[name]
    whole, _runner = tool.ask((0, tool.text, ""))
    known = set(identities(whole.devices))
    known |= {(*one[:4], None) for one in known}  # the memory may stand further below than what names the card
    text = tool.text.rstrip()
    for end in range(0, len(text), 13):
        answer = query(tool, fallback(tool, (0, text[:end], "")))
        assert set(identities(answer.devices)) <= known, end
        assert answer.count == (len(answer.devices) or None), end
        if name in WHOLE_OR_NOTHING:
            assert answer.count is None, end
            assert answer.tools[0].state == "unreadable", end


def test_driver_is_told_by_the_kernel():
    tool = TOOLS["tenstorrent"]
    loaded, _runner = tool.ask((0, tool.text, ""), files={"/sys/module/tenstorrent/version": "2.1.0\n"})
    assert [(one.vendor, one.kernel_version, one.loaded) for one in loaded.drivers] == [("tenstorrent", "2.1.0", True)]
    missing, _runner = tool.ask((0, "", ""), tools=())
    assert [(one.kernel_version, one.loaded) for one in missing.drivers] == [(None, False)]


def test_json_with_text_around_it():
    assert json_documents('[note] busy\n{"a": [\n1]}\n[]\nend') == ([{"a": [1]}, []], "[note] busy\nend")
    for cut in ('{"a": [', "[1, ", '{"a": 1}\n{"b"', "no json"):
        with pytest.raises(Unreadable):
            json_documents(cut)


def test_half_characters_of_json_are_replaced():
    """No file and no other tool takes them (found by fuzzing)."""
    assert json_documents('{"sn": "A\\ud800"}')[0] == [{"sn": "A\ufffd"}]


@pytest.mark.parametrize("name", TOOLS)
def test_an_exit_code_beside_a_whole_answer_is_told(name) -> None:
    """Tools end so after a warning that the data does not show (nvidia-smi 14: the infoROM is corrupted)."""
    tool = TOOLS[name]
    answer, _runner = tool.ask((3, tool.text, ""))
    assert len(answer.devices) == answer.count == len(tool.addresses)
    assert any(error.endswith("exit code 3 and no text") for error in answer.errors)
