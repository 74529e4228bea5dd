# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The vendor tools: answers, selections, errors; and their shape against recordings of the real tools."""

from __future__ import annotations

import json
import marshal
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest
from accel_emulator import amd_smi, front, npu_smi, nvidia_smi, state, views

STATES = {
    "nvidia-smi": ("nvidia_h100_8", nvidia_smi.answer),
    "amd-smi": ("amd_mi300x_8", amd_smi.answer),
    "rocm-smi": ("amd_mi300x_8", amd_smi.rocm_answer),
    "npu-smi": ("ascend_910b_8", npu_smi.answer),
}
NOW = 1764500000.25


def ask(command: str, *faults: dict, **more) -> tuple[int | None, str, str]:
    """Return rc, stdout, stderr of a command line on an emulated host."""
    tool, *argv = command.split()
    profile, answer = STATES[tool]
    host = state.expand({"profile": profile, "seed": "unit", "faults": list(faults), **more})
    return answer(views.answers(host)[tool], argv, NOW)


def out(command: str, *faults: dict, **more) -> str:
    rc, text, _err = ask(command, *faults, **more)
    assert rc == 0, text
    return text


LOST = {"fault": "card_lost", "slot": "SXM5"}
HUNG = {"fault": "card_hung", "slot": "SXM5"}
SENTENCE = (
    "Unable to determine the device handle for GPU0000:BA:00.0: GPU is lost.  Reboot the system to recover this GPU\n"
)


@pytest.mark.parametrize(
    "asked", ["", "-L", "-q", "-q -x", "--query-gpu=index --format=csv", "topo -m", "-q -x -i 6,0"]
)
def test_a_lost_card_makes_every_whole_query_fail(asked: str) -> None:
    assert ask(f"nvidia-smi {asked}", LOST) == (15, SENTENCE, "")


@pytest.mark.parametrize(
    "asked", ["", "-L", "-q", "-q -x", "--query-gpu=index --format=csv", "topo -m", "-q -x -i 6,0"]
)
def test_a_hung_card_hangs_every_whole_query(asked: str) -> None:
    assert ask(f"nvidia-smi {asked}", HUNG)[0] is None


@pytest.mark.parametrize("fault", [LOST, HUNG])
def test_the_other_cards_still_answer_by_name(fault: dict) -> None:
    for name in ("3", "0000:5d:00.0", "00000000:5D:00.0", "5d:00.0"):
        assert (
            out(f"nvidia-smi --query-gpu=index,pci.bus_id --format=csv,noheader -i {name}", fault)
            == "3, 00000000:5D:00.0\n"
        )


def test_a_mismatch_silences_the_tool_whatever_is_asked() -> None:
    for asked in ("", "-L", "-q -x -i 3", "--version", "topo -m"):
        told = ask(f"nvidia-smi {asked}", {"fault": "driver_library_mismatch"})
        assert told == (
            18,
            "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.124\n",
            "",
        )


def test_a_card_is_found_by_uuid_and_serial() -> None:
    uuid = re.search(r"^GPU 6: .*\(UUID: (GPU-[0-9a-f-]+)\)$", out("nvidia-smi -L"), re.MULTILINE).group(1)
    serial = out("nvidia-smi --query-gpu=serial --format=csv,noheader -i 6").strip()
    for name in (uuid, serial):
        assert out(f"nvidia-smi -L -i {name}").startswith("GPU 6: NVIDIA H100 80GB HBM3 (UUID: GPU-")


@pytest.mark.parametrize(
    ("asked", "rc", "says"),
    [
        ("--query-gpu=index,colour --format=csv", 2, 'Field "colour" is not a valid field to query.\n\n'),
        (
            "--query-gpu=platform.module_id --format=csv",
            2,
            'Field "platform.module_id" is not a valid field to query.\n\n',
        ),
        ("-i 9 -L", 6, "No devices were found\n"),
        ("-i 0,9 -L", 6, "No devices were found\n"),
        ("--frobnicate", 2, "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n\n"),
        ("--query-gpu=index", 2, "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n\n"),
        ("-x", 2, "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n\n"),
        ("-i", 2, "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n\n"),
    ],
)
def test_nvidia_smi_refuses_what_the_real_one_refuses(asked: str, rc: int, says: str) -> None:
    assert ask(f"nvidia-smi {asked}") == (rc, says, "")


def test_csv_names_the_field_and_not_the_alias_and_has_units() -> None:
    asked = "--query-gpu=gpu_name,memory.total,fan.speed,clocks.sm,temperature.gpu"
    head, first = out(f"nvidia-smi {asked} --format=csv -i 0").splitlines()
    assert head == "name, memory.total [MiB], fan.speed [%], clocks.current.sm [MHz], temperature.gpu"
    assert first == "NVIDIA H100 80GB HBM3, 81559 MiB, [N/A], 345 MHz, 30"
    assert (
        out(f"nvidia-smi {asked} --format=csv,noheader,nounits -i 0")
        == "NVIDIA H100 80GB HBM3, 81559, [N/A], 345, 30\n"
    )


def test_help_lists_what_can_be_queried() -> None:
    told = out("nvidia-smi --help-query-gpu")
    assert '"pci.bus_id" or "gpu_bus_id"' in told
    names = re.findall(r'^"([^"]+)"', told, re.MULTILINE)
    assert out(f"nvidia-smi --query-gpu={','.join(names)} --format=csv,noheader -i 0").count(", ") == len(names) - 1


def test_compute_apps_has_a_header_and_no_rows() -> None:
    told = out("nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv")
    assert told == "pid, process_name, used_gpu_memory [MiB]\n"


def test_a_section_can_be_asked_for_alone() -> None:
    told = out("nvidia-smi -q -d MEMORY,ROW_REMAPPER -i 0")
    assert "FB Memory Usage" in told
    assert "Remapped Rows" in told
    assert "Serial Number" not in told
    assert "Temperature" not in told


def test_the_attached_cards_are_all_counted_when_one_is_asked() -> None:
    root = ElementTree.fromstring(out("nvidia-smi -q -x -i 2"))
    assert root.findtext("attached_gpus") == "8"
    assert [gpu.get("id") for gpu in root.findall("gpu")] == ["00000000:3A:00.0"]


# --- against recordings of the real tools: the shape is theirs, the values are ours


def paths(element, prefix: str = "") -> list[str]:
    """Return every path of tags below an element, once each, in order."""
    found: list[str] = []
    for child in element:
        path = f"{prefix}/{child.tag}"
        found += [one for one in [path, *paths(child, path)] if one not in found]
    return found


@pytest.mark.parametrize(
    ("version", "recording"),
    [("570.86.15", "q-x_570_8xH100-SXM_v12.xml"), ("580.105.08", "q-x_hw_b200.xml")],
)
def test_xml_has_the_tags_of_the_real_one_in_its_order(recordings: Path, version: str, recording: str) -> None:
    text = (recordings / "nvidia" / recording).read_text(encoding="utf-8")
    real, ours = ElementTree.fromstring(text), out("nvidia-smi -q -x", driver_version=version)
    assert ours.split("\n")[1] == text.split("\n")[1]  # the DTD
    assert [child.tag for child in ElementTree.fromstring(ours) if child.tag != "gpu"] == [
        child.tag for child in real if child.tag != "gpu"
    ]
    assert paths(ElementTree.fromstring(ours).find("gpu")) == paths(real.find("gpu"))


def labels(text: str) -> list[str]:
    """Return the left halves of the lines about the first card, colons in their column."""
    lines = text.split("\nGPU ", 2)[1].split("\n")[1:]
    return [line.split(": ")[0] + (":" if ": " in line else "") for line in lines if line.strip()]


def test_text_has_the_labels_of_the_real_one(recordings: Path) -> None:
    capture = (recordings / "nvidia/capture_nvidia-h100-80gb-hbm3__590.48.01.txt").read_text(encoding="utf-8")
    real = capture.split("# $ nvidia-smi -q\n")[1].split("\n\n\n#")[0]
    assert labels(out("nvidia-smi -q -i 0", driver_version="590.48.01")) == labels(real)


def test_table_has_the_columns_of_the_real_one(recordings: Path) -> None:
    real = (recordings / "nvidia/table_565_8xH100SXM.txt").read_text(encoding="utf-8").split("\n")
    ours = out("nvidia-smi", driver_version="550.90.07").split("\n")[1:]  # the real one was kept without its date

    def skeleton(line: str) -> str:
        return re.sub(r"[^|+=-]", " ", re.sub(r"(?<=[A-Za-z0-9])-|-(?=[A-Za-z])", " ", line))

    assert [skeleton(line) for line in ours] == [skeleton(line) for line in real]


def test_csv_fields_are_those_of_the_real_one(recordings: Path) -> None:
    capture = (recordings / "nvidia/capture_nvidia-h100-80gb-hbm3__590.48.01.txt").read_text(encoding="utf-8")
    asked = re.search(r"# \$ nvidia-smi --query-gpu=(\S+)", capture).group(1).split(",")
    header = capture.split(f"--query-gpu={','.join(asked)} --format=csv\n")[1].split("\n")[1].split(", ")
    fields = re.findall(r'^"([^"]+)"', out("nvidia-smi --help-query-gpu", driver_version="590.48.01"), re.MULTILINE)
    assert set(fields) <= set(asked)
    ours = (
        out(f"nvidia-smi --query-gpu={','.join(fields)} --format=csv", driver_version="590.48.01")
        .split("\n")[0]
        .split(", ")
    )
    assert ours == [header[asked.index(field)] for field in fields]


def test_errors_read_as_the_real_ones(recordings: Path) -> None:
    texts = (recordings / "nvidia/err_driver-library-mismatch_570.txt").read_text(encoding="utf-8")
    assert ask("nvidia-smi", {"fault": "driver_library_mismatch"})[1].strip() == texts.strip()
    texts = (recordings / "nvidia/error_texts.txt").read_text(encoding="utf-8")
    assert re.sub(r"\s+", " ", SENTENCE.split(": ", 1)[1]).strip() in re.sub(r"\s+", " ", texts)
    assert nvidia_smi.NO_DRIVER[1].strip() in (recordings / "nvidia/err_driver-not-loaded.txt").read_text(
        encoding="utf-8"
    )


def keys(text: str) -> list[str]:
    return [line.split(":")[0] for line in text.split("\n") if re.match(r"\s*[A-Z0-9_]+:", line)]


@pytest.mark.parametrize("recording", ["amd-smi_static_MI300X_excerpt.txt", "amd-smi_static-g0_7x.txt"])
def test_amd_static_text_has_the_keys_of_the_real_one(recordings: Path, recording: str) -> None:
    real = keys((recordings / "amd" / recording).read_text(encoding="utf-8"))
    ours = keys(out("amd-smi static -g 0 --asic --bus"))
    assert [key for key in ours if key in real] == real


def test_amd_metric_text_has_the_keys_of_the_real_one(recordings: Path) -> None:
    real = keys((recordings / "amd/amd-smi_metric_MI300X_excerpt.txt").read_text(encoding="utf-8"))
    ours = keys(out("amd-smi metric -g 0"))
    kept = [
        key for key in real if key.strip() not in ("POWER_MANAGEMENT", "THROTTLE_STATUS")
    ]  # their order changed since
    assert [key for key in ours if key in kept][: len(kept)] == kept


def test_amd_list_has_the_keys_of_the_real_one(recordings: Path) -> None:
    real = json.loads((recordings / "amd/amd-smi_list_strix-halo_631.json").read_text(encoding="utf-8"))
    assert [list(entry) for entry in json.loads(out("amd-smi list --json"))] == [list(real[0])] * 8


def test_rocm_keys_are_those_of_the_real_one(recordings: Path) -> None:
    real = json.loads((recordings / "amd/rocm-smi_624_rx7800.json").read_text(encoding="utf-8"))["card0"]
    ours = json.loads(out("rocm-smi -i --showuniqueid --showserial -u --showmeminfo vram --showproductname --json"))[
        "card0"
    ]
    # The real one shows a graphics card, which has an edge sensor and no count of activity.
    assert {key for key in real if "Temperature" not in key and "Power" not in key} == set(ours) - {"GFX Activity"}


@pytest.mark.parametrize(
    "recording", ["npu-smi_info_24.1.rc1.b030_8x910B3.txt", "npu-smi_info_25.5.2_3of16x910B2C_footer.txt"]
)
def test_npu_table_has_the_columns_of_the_real_one(recordings: Path, recording: str) -> None:
    real = (recordings / "ascend" / recording).read_text(encoding="utf-8").splitlines()
    ours = out("npu-smi info").splitlines()
    assert ours[2:6] == real[2:6]  # heads and rules

    def bars(line: str) -> list[int]:
        return [at for at, sign in enumerate(line) if sign in "|+"]

    assert [bars(line) for line in ours[:9]] == [bars(line) for line in real[:9]]
    foot = [line for line in real if "Process id" in line or "No running" in line]
    assert not foot or {tuple(bars(line)) for line in foot} == {
        tuple(bars(line)) for line in ours if "Process id" in line or "No running" in line
    }


def test_npu_board_has_the_fields_of_the_real_one(recordings: Path) -> None:
    def fields(text: str) -> list[str]:
        return [line.split(":")[0].strip() for line in text.splitlines() if " : " in line]

    card = fields((recordings / "ascend/npu-smi_t-board_25.5.2_910B2C.txt").read_text(encoding="utf-8"))
    assert fields(out("npu-smi info -t board -i 0"))[: len(card)] == card
    collected = (recordings / "ascend/faultdiag_npu_info_before_910A.txt").read_text(encoding="utf-8")
    chip = collected.split("npu-smi info -i 0 -c 0 -t board\n")[1].split("\n\n")[0]
    assert fields(out("npu-smi info -t board -i 0 -c 0")) == fields(chip)
    for kind in ("usages", "power"):
        real = (recordings / f"ascend/910B_25.5.1_t-{kind}.txt").read_text(encoding="utf-8")
        assert fields(out(f"npu-smi info -t {kind} -i 0")) == fields(real)


def test_npu_not_ready_reads_as_the_real_one(recordings: Path) -> None:
    real = (recordings / "ascend/npu-smi_errors.txt").read_text(encoding="utf-8").split("\n", 1)[1]
    assert ask("npu-smi info", {"fault": "driver_library_mismatch"})[1].strip() == real.strip()


# --- AMD and Ascend: selections and errors


def test_amd_lists_what_is_left_of_the_cards() -> None:
    lost = {"fault": "card_lost", "slot": "OAM3"}
    told = json.loads(out("amd-smi list --json", lost))
    assert [(one["gpu"], one["bdf"]) for one in told][:2] == [(0, "0000:26:00.0"), (1, "0000:46:00.0")]
    assert len(told) == 7


def test_amd_root_became_an_object_for_static_and_metric_only() -> None:
    for version, kind in (("6.10.5", list), ("6.12.12", dict)):
        assert isinstance(json.loads(out("amd-smi static --asic --json", driver_version=version)), kind)
        assert isinstance(json.loads(out("amd-smi metric --usage --json", driver_version=version)), kind)
        assert isinstance(json.loads(out("amd-smi list --json", driver_version=version)), list)


def test_amd_vbios_became_ifwi() -> None:
    assert "VBIOS" in keys_of("6.12.12")
    assert "IFWI" in keys_of("6.14.14")


def keys_of(version: str) -> list[str]:
    return [key.strip() for key in keys(out("amd-smi static -g 0", driver_version=version))]


def test_amd_hangs_for_the_sick_card_only() -> None:
    hung = {"fault": "card_hung", "slot": "OAM3"}
    assert ask("amd-smi list --json", hung)[0] is None
    assert ask("amd-smi metric -g 0 --json", hung)[0] is None
    assert json.loads(out("amd-smi list -g 1 --json", hung))[0]["gpu"] == 1
    assert ask("rocm-smi --showserial --json", hung)[0] is None


def test_amd_refuses_what_it_does_not_know() -> None:
    assert ask("amd-smi frobnicate")[0] == 255
    assert ask("amd-smi list --colour")[0] == 255
    assert ask("amd-smi list -g 9")[0] == 253
    assert ask("rocm-smi --colour")[0] == 2


def test_npu_mapping_has_the_boards_controller_too() -> None:
    lines = out("npu-smi info -m").splitlines()
    assert lines[0].split() == ["NPU", "ID", "Chip", "ID", "Chip", "Logic", "ID", "Chip", "Name"]
    assert [line.split()[-1] for line in lines[1:3]] == ["910B3", "Mcu"]
    assert len(lines) == 17


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("info -t board -i 9", "This device does not exist.\n"),
        ("info -t board", "This device does not exist.\n"),
        ("info -t colour -i 0", "This device does not support querying colour.\n"),
        ("frobnicate", "Error parameter of type. Please run 'npu-smi -h' for help.\n"),
        ("info --frobnicate", "Error parameter of type. Please run 'npu-smi info -h' for help.\n"),
    ],
)
def test_npu_refuses_what_it_does_not_know(asked: str, says: str) -> None:
    assert ask(f"npu-smi {asked}") == (1, says, "")


def test_npu_loses_a_row_and_hangs_for_one() -> None:
    lost, hung = {"fault": "card_lost", "slot": "NPU4"}, {"fault": "card_hung", "slot": "NPU4"}
    assert out("npu-smi info", lost).count("910B3") == 7
    assert ask("npu-smi info -t board -i 0", lost) == (1, "This device does not exist.\n", "")
    assert ask("npu-smi info", hung)[0] is None
    assert ask("npu-smi info -t health -i 0", hung)[0] is None
    assert "OK" in out("npu-smi info -t health -i 1", hung)


# --- the programs themselves

RUN = """
import sys
sys.path.insert(0, {package!r})
from accel_emulator import front
front.ANSWERS = {answers!r}
sys.argv = ["x", *{argv!r}]
front.main({tool!r})
"""


def start(tmp_path: Path, tool: str, *argv: str, data: dict | None = None) -> subprocess.Popen:
    if data is not None:
        (tmp_path / tool).write_bytes(marshal.dumps(data))
    package = str(Path(front.__file__).resolve().parents[1])
    code = RUN.format(package=package, answers=str(tmp_path), argv=list(argv), tool=tool)
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-B", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_a_tool_answers_from_what_was_rendered(tmp_path: Path) -> None:
    for tool, argv in (("nvidia-smi", "-L"), ("amd-smi", "list"), ("rocm-smi", "--showserial"), ("npu-smi", "info")):
        host = state.expand({"profile": STATES[tool][0], "seed": "unit"})
        process = start(tmp_path, tool, argv, data=views.answers(host)[tool])
        told, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, "")
        assert told == out(f"{tool} {argv}")


@pytest.mark.parametrize(
    ("tool", "rc", "says"),
    [
        ("nvidia-smi", 9, "couldn't communicate with the NVIDIA driver"),
        ("amd-smi", 255, "driver not initialized"),
        ("rocm-smi", 0, "Driver not initialized"),
        ("npu-smi", 1, "ret is -8005"),
    ],
)
def test_before_anything_is_applied_there_is_no_driver(tmp_path: Path, tool: str, rc: int, says: str) -> None:
    process = start(tmp_path, tool)
    told = process.communicate(timeout=60)
    assert process.returncode == rc
    assert says in "".join(told)


def test_a_hung_tool_is_ended_by_sigkill_only(tmp_path: Path) -> None:
    host = state.expand({"profile": "nvidia_h100_8", "faults": [HUNG]})
    process = start(tmp_path, "nvidia-smi", "-L", data=views.answers(host)["nvidia-smi"])
    signals = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
    try:
        deadline = time.monotonic() + 60
        while not all(ignored(process.pid) & 1 << (one - 1) for one in signals):
            assert process.poll() is None
            assert time.monotonic() < deadline, "the tool does not hang"
            time.sleep(0.02)
        for one in signals:
            process.send_signal(one)
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL


def ignored(pid: int) -> int:
    """Return the mask of signals that a process ignores."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(re.search(r"SigIgn:\s*([0-9a-f]+)", status).group(1), 16)
