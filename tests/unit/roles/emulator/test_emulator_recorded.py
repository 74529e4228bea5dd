# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shape of what emulated tools print, held against recordings of the real ones: a second reading of the formats.

Values differ by design; what is compared is the rest. Of text: lines that hold no number are the same to the letter, of
others the places of the borders and all that is neither letter nor digit. Of JSON and XML: every path and its kind.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from accel_emulator import state, vendors, views

NOW = 1764500000.25


def host_of(vendor: str, driver_version: str, model: str, count: int = 2, **card: object) -> state.Host:
    """Return a host of some cards of one model, right under root ports."""
    label = state.models.SLOT_LABELS[vendor]
    cards = [
        {"slot": label.format(number), "address": f"0000:{0x31 + number:02x}:00.0", "model": model, **card}
        for number in range(count)
    ]
    return state.expand({"vendor": vendor, "driver_version": driver_version, "wiring": "direct", "cards": cards})


def say(host: state.Host, *argv: str) -> str:
    """Return what the host's tool prints."""
    (data,) = views.answers(host).values()
    rc, out, err = vendors.answer(data, list(argv), NOW)
    assert (rc, err) == (0, ""), (out, err)
    return out


def form(line: str) -> tuple:
    """Return where the borders of a line are and what is in it beside letters and digits."""
    borders = tuple(place for place, sign in enumerate(line) if sign in "|+") if line[:1] in "|+" else ()
    return borders, re.sub(r" +", " ", re.sub(r"[0-9A-Za-z]+", "x", line.rstrip()))


def lines_of(text: str, skip: str = "") -> tuple[set[str], set[tuple]]:
    """Return the lines without a number, and the forms of the others; ``skip`` is a pattern of lines left out."""
    found = [line.rstrip("\r\n") for line in text.splitlines() if line.strip() and not (skip and re.search(skip, line))]
    return (
        {line.rstrip() for line in found if not re.search("[0-9]", line)},
        {form(line) for line in found if re.search("[0-9]", line)},
    )


def assert_text(ours: str, recorded: str, skip: str = "") -> None:
    """Fail where a line is in one of the texts only."""
    mine, theirs = lines_of(ours, skip), lines_of(recorded, skip)
    assert mine[0] == theirs[0]
    assert mine[1] == theirs[1]


def read(recordings: Path, name: str) -> str:
    return (recordings / name).read_text(encoding="utf-8")


# recording, vendor, driver, model, arguments, what is left out of the comparison and why
TEXTS = [
    # The last line of the second was cut, and its cards work.
    ("habana/hl-smi_table_1.12.1_8xGaudi2.txt", "gaudi", "1.12.1-ca1b2c3", "HL-225", (), ""),
    ("habana/hl-smi_table_1.21.1_8xGaudi2.txt", "gaudi", "1.21.1-ba1b2c3", "HL-225", (), r"^\+="),
    ("cambricon/cnmon_v5.10.13_2xMLU370-X8.txt", "cambricon", "5.10.13", "MLU370-X8", (), r"Ecc-Error|^\| [0-9]"),
    ("cambricon/cnmon_v4.20.11_3xMLU370-X4.txt", "cambricon", "4.20.11", "MLU370-X4", (), r"^\| [0-9]"),
    ("metax/mx-smi_table_2.2.8_2xN260.txt", "metax", "3.0.11", "MetaX N260", (), ""),
    # The one who recorded it left out the first line and the last.
    ("metax/mx-smi_table_2.2.9_8xC500.txt", "metax", "3.4.4", "MetaX C500", (), r"version:|System Manag|End of Log"),
    ("metax/ht-smi_table_2.3.1_Mars-X201.txt", "metax", "3.8.1", "Mars X201", (), ""),
    ("kunlunxin/xpu-smi_table_515.58_4xP800.txt", "kunlunxin", "515.58", "P800 OAM", (), ""),
    ("kunlunxin/xpu_smi-m_2xP800-OAM.txt", "kunlunxin", "5.0.21.21", "P800 OAM", ("-m",), ""),
    ("mthreads/mthreads-gmi_table_1.14.0_S80_x4-of-x16.txt", "mthreads", "2.7.0", "MTT S80", (), ""),
    ("mthreads/mthreads-gmi_table_2.4.1_8xS5000.txt", "mthreads", "5.1.0-server", "MTT S5000", (), ""),
    ("iluvatar/ixsmi_table_4.1.0_16xBI-V150.txt", "iluvatar", "4.1.0", "Iluvatar BI-V150S", (), ""),
    ("enflame/efsmi-q_older_2xS60.txt", "enflame", "1.2.0.301", "S60", ("-q",), ""),
    ("enflame/efsmi_1.2.0.301_2xS60.txt", "enflame", "1.2.0.301", "S60", (), ""),
    ("hygon/rocm-smi_table_dtk23.10.1_4x.txt", "hygon", "5.16.29", "DCU K100_AI", (), ""),
    ("hygon/hy-smi_table_BW101.txt", "hygon", "6.3.8", "DCU K100_AI", (), ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "vendor", "version", "model", "argv", "skip"), TEXTS, ids=[text[0].partition("/")[2] for text in TEXTS]
)
def test_a_text_has_the_recorded_lines(recordings, name, vendor, version, model, argv, skip) -> None:
    assert_text(say(host_of(vendor, version, model), *argv), read(recordings, name), skip)


def paths(value: object, at: str = "") -> set[tuple[str, str]]:
    """Return every path of a JSON document with the kind of what is there; entries of a list have one path."""
    found = {(at, type(value).__name__)}
    if isinstance(value, dict):
        for key, inner in value.items():
            found |= paths(inner, f"{at}/{key}")
    if isinstance(value, list):
        for inner in value:
            found |= paths(inner, f"{at}[]")
    return found


def elements(element: ElementTree.Element, at: str = "") -> set[str]:
    """Return the path of every element."""
    here = f"{at}/{element.tag}"
    return {here}.union(*(elements(inner, here) for inner in element))


def first_lines(text: str, count: int = 3) -> list[str]:
    """Return the first lines with every value in angle brackets blanked."""
    return [re.sub(r">[^<]+<", "><", line) for line in text.splitlines()[:count]]


@pytest.mark.parametrize(
    ("name", "vendor", "version", "model", "argv", "only"),
    [
        # One of the recorded cards had a process, and nothing else in its list has that form.
        ("iluvatar/ixsmi-q-x_4.2.0_2xMR-V100.xml", "iluvatar", "4.2.0", "Iluvatar MR-V100", ("-q", "-x"), "/process_"),
        ("iluvatar/ixsmi-q-x_4.4.0_2chip_BI-V150S.xml", "iluvatar", "4.4.0", "Iluvatar BI-V150S", ("-q", "-x"), ""),
        ("denglin/dlsmi-query_2.2.1_2xKS38-QUAD.xml", "denglin", "2.2.3", "KS38 QUAD", ("query", "--xml-format"), ""),
    ],
)  # fmt: skip
def test_xml_has_the_recorded_elements(recordings, name, vendor, version, model, argv, only) -> None:
    ours, theirs = say(host_of(vendor, version, model), *argv), read(recordings, name)
    mine, recorded = elements(ElementTree.fromstring(ours)), elements(ElementTree.fromstring(theirs))
    assert mine - recorded == set()
    assert {path for path in recorded - mine if not (only and only in path)} == set()
    assert first_lines(ours) == first_lines(theirs)
    indent = re.search(r"\n(\s+)<driver_version>", theirs)
    assert indent
    assert f"\n{indent[1]}<driver_version>" in ours


def test_xml_says_its_values_as_recorded(recordings) -> None:
    """The form of each value (its unit, its prefix), by the path of its element."""
    for name, vendor, version, model, argv in (
        ("iluvatar/ixsmi-q-x_4.2.0_2xMR-V100.xml", "iluvatar", "4.2.0", "Iluvatar MR-V100", ("-q", "-x")),
        ("iluvatar/ixsmi-q-x_4.4.0_2chip_BI-V150S.xml", "iluvatar", "4.4.0", "Iluvatar BI-V150S", ("-q", "-x")),
        ("denglin/dlsmi-query_2.2.1_2xKS38-QUAD.xml", "denglin", "2.2.3", "KS38 QUAD", ("query", "--xml-format")),
    ):
        kinds: list[dict[str, set[str]]] = []
        for text in (say(host_of(vendor, version, model), *argv), read(recordings, name)):
            found: dict[str, set[str]] = {}
            for element in ElementTree.fromstring(text).findall(".//gpu//*"):
                if element.text and element.text.strip() and element.tag not in ("process_name", "pid", "type"):
                    value = re.sub(r"[0-9A-Fa-f]{6,}", "#", element.text.strip())
                    found.setdefault(element.tag, set()).add(re.sub(r"[0-9]+", "9", value))
            kinds.append(found)
        mine, recorded = kinds
        free = {"uuid", "serial", "serial_number", "board_id", "product_name", "gpu_part_number", "vbios_version"}
        free |= {"bus", "bus_id", "device_id", "sub_system_id"}
        for tag in mine.keys() - free - {f"pci_{tag}" for tag in free}:
            assert mine[tag] <= recorded[tag], (name, tag)


def test_a_snapshot_of_tenstorrent_has_the_recorded_keys(recordings) -> None:
    ours = json.loads(say(host_of("tenstorrent", "2.8.0", "p150b"), "-s"))
    theirs = json.loads(read(recordings, "tenstorrent/tt-smi_s_blackhole_galaxy.json"))
    assert paths(ours) == paths(theirs)


def test_json_of_hygon_has_the_recorded_keys(recordings) -> None:
    theirs = json.loads(read(recordings, "hygon/rocm-smi_dtk24.04.3.json"))["card0"]
    names = ("id", "productname", "serial", "uniqueid", "power", "temp", "use")
    options = [f"--show{name}" for name in names]
    text = say(host_of("hygon", "5.16.29", "DCU K100_AI"), *options, "--showmeminfo", "vram", "--json")
    ours = json.loads(text)
    assert set(ours) == {"card0", "card1"}
    assert set(ours["card0"]) == set(theirs)
    assert {type(value) for value in ours["card0"].values()} == {str}
    # Units stand in the keys, so values are bare numbers.
    for key, value in theirs.items():
        if re.fullmatch(r"[0-9.]+", value):
            assert re.fullmatch(r"[0-9.]+", ours["card0"][key]), key
    assert text.startswith('{\n  "card0": {\n    "Device ID": "0x')


def test_the_newer_json_of_hygon_is_one_line(recordings) -> None:
    asked = (("--showmeminfo", "vram"), (), ("--showmemuse",), ("--showuse",), ("--showbus",))
    host = host_of("hygon", "6.3.8", "DCU K100_AI")
    for words, line in zip(asked, read(recordings, "hygon/hy-smi_separate-calls_BW.jsonl").splitlines()):
        if words:  # the second asks for something that the collection does not
            ours = say(host, *words, "--json").removesuffix("\n")
            assert re.sub(r':"[0-9a-f.:]+"', ':""', ours) == re.sub(r':"[0-9a-f.:]+"', ':""', line)


def test_lines_and_csv_of_hygon_have_the_recorded_form(recordings) -> None:
    newer, older = host_of("hygon", "6.3.8", "DCU K100_AI"), host_of("hygon", "5.16.29", "DCU K100_AI")
    lines = read(recordings, "hygon/rocm-smi_showuse_8xHCU_text.txt").splitlines()
    ours = say(newer, "--showuse", "--showmeminfo", "vram").splitlines()
    assert {re.sub("[0-9.]+", "9", line) for line in lines} <= {re.sub("[0-9.]+", "9", line) for line in ours}
    head = read(recordings, "hygon/rocm-smi_csv_dtk22.10.1_4xDCU.txt").splitlines()[:2]
    assert say(older, "--showuse", "--showmemuse", "--csv").splitlines()[:2] == head


def test_intel_prints_what_its_guide_shows(recordings) -> None:
    host = host_of("intel", "I915_23.10.72_PSB_231129.76", "Intel(R) Data Center GPU Flex 170")
    table = read(recordings, "intel/xpu-smi_discovery-d.txt").splitlines()
    ours = say(host, "discovery", "-d", "0000:31:00.0").splitlines()
    assert ours[:3] == table[1:4]
    assert {len(line) for line in ours} == {len(table[1])}
    labels = [re.search(r"\| ([^|:]+):", line) for line in table]
    known = [found[1] for found in labels if found]
    mine = [found[1] for found in (re.search(r"\| ([^|:]+):", line) for line in ours) if found]
    # It shows less of a card, in the recorded order and words.
    assert mine == [label for label in known if label in mine]
    dump = read(recordings, "intel/xpu-smi_dump.csv.txt").splitlines()
    told = say(host, "dump", "-d", "0", "-m", "1,2", "-n", "2").splitlines()
    assert told[0] == "Timestamp, DeviceId, GPU Power (W), GPU Frequency (MHz)"
    assert dump[1].startswith("Timestamp, DeviceId, ")
    assert dump[1].endswith(", GPU Power (W), GPU Frequency (MHz)")
    assert re.sub("[0-9]", "9", dump[2].split(",")[1]) == re.sub("[0-9]", "9", told[1].split(",")[1])
    csv = read(recordings, "intel/xpu-smi_discovery--dump.csv.txt").splitlines()
    assert say(host, "discovery", "--dump", "1,2,3").splitlines()[0] == csv[1].rpartition(",")[0]
    quoted = re.sub(r'"[^"]*"', '""', csv[2]).rpartition(",")[0]
    assert re.sub(r'"[^"]*"', '""', say(host, "discovery", "--dump", "1,2,3").splitlines()[1]) == quoted
    version = read(recordings, "intel/xpu-smi_version.txt").splitlines()[1:]
    assert [form(line) for line in say(host, "-v").splitlines()] == [form(line) for line in version]


def test_csv_of_gaudi_has_the_recorded_cells(recordings) -> None:
    recorded = read(recordings, "habana/hl-smi_Q_csv_HL-325L_1.22.1.csv").splitlines()[0].split(", ")
    fields = (
        "index", "uuid", "name", "driver_version", "memory.total", "memory.used", "memory.free", "power.draw",
        "power.max", "temperature.aip", "utilization.aip",
    )  # fmt: skip
    host = host_of("gaudi", "1.22.0-5d1e3a7", "HL-325L")
    ours = say(host, "-Q", ",".join(fields), "-f", "csv,noheader").splitlines()
    assert len(ours) == 2
    assert [form(cell) for cell in ours[0].split(", ")] == [form(cell) for cell in recorded]
    listed = read(recordings, "habana/hl-smi_L_spi-firmware.txt").splitlines()[0]
    (line,) = [line for line in say(host, "-L", "-i", "0000:31:00.0").splitlines() if "[SPI]" in line]
    assert line.index(":") == listed.index(":") + 8
    assert form(line.strip().replace("hl-gaudi3", "hl-gaudi2")) == form(listed)


def test_the_listing_of_metax_has_the_recorded_lines(recordings) -> None:
    asked = ("--show-temperature", "--show-memory", "--show-usage")
    for name, version in (("2.2.6_N260", "3.0.11"), ("2.3.4_2xN260", "3.8.1")):
        name = f"metax/mx-smi_show{'-temp-mem-usage' if version == '3.0.11' else ''}_{name}.txt"
        assert_text(say(host_of("metax", version, "MetaX N260"), *asked), read(recordings, name))


def test_tables_of_kunlunxins_older_tool_have_the_recorded_lines(recordings) -> None:
    recorded = read(recordings, "kunlunxin/xpu_smi_4.31_2xR300.txt")
    ours = say(host_of("kunlunxin", "4.0.3", "R300"))

    def columns(text: str) -> list[list[str]]:
        rows = [line for line in text.splitlines() if line.startswith("|")]
        return [[re.sub("[0-9A-Za-z]+", "x", cell.strip()) for cell in row.strip("|").split("|")] for row in rows]

    assert columns(ours) == columns(recorded)
    titles = [line for line in recorded.splitlines() if line.startswith("  ")]
    assert [line for line in ours.splitlines() if line.startswith("  ")] == titles
    heads = [line for line in recorded.splitlines() if "DevID" in line]
    assert [line.split() for line in ours.splitlines() if "DevID" in line] == [line.split() for line in heads]


def test_the_table_of_neuron_is_the_recorded_one(recordings) -> None:
    text = read(recordings, "aws/neuron-ls_topology_trn2n.txt").partition("\n\n")[0]
    recorded = text.splitlines()
    host = state.expand({"profile": "neuron_trn2_16"})
    ours = say(host).splitlines()
    assert ours[3:7] == recorded[3:7]
    assert [line.partition(":")[0] for line in ours[:3]] == [line.partition(":")[0] for line in recorded[:3]]
    # The torus is the same, so all but the addresses is.
    assert [line[:44] for line in ours[7:]] == [line[:44] for line in recorded[7:]]


def test_files_of_the_neuron_driver_lie_where_its_guide_shows_them(recordings) -> None:
    guide = read(recordings, "aws/neuron-sysfs-tree.txt")
    host = state.expand({"profile": "neuron_trn2_16"})
    (view,) = [view for view in views.views(host) if view.name == "virtual"]
    names = {name for path in view.tree for name in path.split("/")[2:]}
    assert names - set(re.findall(r"[a-z_]+", guide)) == set()
    assert view.target + "/neuron_device/" == guide.splitlines()[0]


def test_tables_of_tpu_have_the_recorded_form(recordings) -> None:
    recorded = read(recordings, "google/tpu-info_v6e_4chips.txt").partition("TensorCore Utilization")[0]
    cards = [{"slot": f"TPU{number}", "busy": True} for number in range(4)]
    ours = say(state.expand({"profile": "tpu_v6e_4", "cards": cards}))
    assert ours.splitlines()[1:4] == recorded.splitlines()[1:4]

    def squeezed(text: str) -> list[str]:
        return [re.sub("-+", "-", re.sub(" +", " ", re.sub("[0-9]+", "9", line))) for line in text.splitlines() if line]

    assert squeezed(ours)[1:] == squeezed(recorded)[1:]
