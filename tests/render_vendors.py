# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write docs/vendors.md and docs/zh/vendors.md by running the code: ``python3 tests/render_vendors.py``.

Ids, modules and commands are those of the vendor objects. Which value comes out of which answer is found by trying: the
probe observes a host whose tools answer what tests/recordings holds, with all answers, with one alone, with one left
out, and without any tool. Only where a format is known from is written by hand: ``SHOTS``.
"""

from __future__ import annotations

import fnmatch
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent / "rehearsal")]

from checkout import ROOT, make_importable  # noqa: E402

make_importable()
sys.path.append(str(ROOT / "tests/unit/plugins/module_utils/_accel"))

from ansible_collections.accel.cluster.plugins.module_utils._accel import (  # noqa: E402
    kernel_log,
    pci,
    probe,
    registry,
)
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import as_dict  # noqa: E402
from ansible_collections.accel.cluster.plugins.module_utils._accel.runner import Result  # noqa: E402
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors import amd, gaudi, hygon, nvidia  # noqa: E402
from debian_tools import RAN  # noqa: E402
from doubles import RecordedRunner  # noqa: E402

PAGES = {"en": ROOT / "docs/vendors.md", "zh": ROOT / "docs/zh/vendors.md"}
RECORDINGS = ROOT / "tests/recordings"
ADDRESSES = ("0000:18:00.0", "0000:2a:00.0")
GATHER = tuple(one for one in probe.GATHER if one != "kernel_log")

# What the recordings of tests/recordings were shaped after; their values are made up.
RECORDED, GUIDE, REPORTED = "recorded", "guide", "reported"
# In place of a recording: the command is there and fails.
DAMAGED = "damaged"


@dataclass
class Shot:
    """The answers of one host in one format generation.

    ``answers``: command (``*`` stands for anything) -> recording; ``origin`` of each format, RECORDED unless named.
    ``files``: what the vendor's driver shows in sysfs -> path -> content, or the recording that has it.
    """

    generation: str
    answers: dict[str, str]
    origin: str | dict[str, str] = RECORDED
    files: dict[str, dict[str, str]] = field(default_factory=dict)


def _line(*words: str) -> str:
    return " ".join(words)


_ROCM = _line("rocm-smi", *amd.ROCM_SMI_OPTIONS)
_HYGON = _line("hy-smi", *hygon.OPTIONS)
_CSV = _line("nvidia-smi", f"--query-gpu={','.join(nvidia.CSV_FIELDS)}", "--format=csv,noheader,nounits")
_NEURON = "/sys/devices/virtual/neuron_device/neuron"
_NEURON_FILES = {
    f"{_NEURON}0/info/serial_number": "0123456789abcdef",
    f"{_NEURON}0/info/architecture/device_name": "Trainium2",
    f"{_NEURON}0/stats/hardware/mem_ecc_uncorrected": "0",
    f"{_NEURON}0/stats/hardware/sram_ecc_uncorrected": "0",
}
# Kernel files that a vendor file reads below a card; shown below every card.
_BELOW_CARD = "<card>"
SHOTS: dict[str, list[Shot]] = {
    "nvidia": [
        Shot("390", {"nvidia-smi -q -x": "q-x_390_1xV100_v9.xml"}),
        Shot("470", {"nvidia-smi -q -x": "q-x_470_2xA100-SXM4_v11.xml",
                     "nvidia-smi nvlink -s": "nvlink-s_470_2xA100-SXM4.txt"}),
        Shot("550", {"nvidia-smi -q -x": "q-x_550_2xL40S_v12.xml"}),
        Shot("580", {"nvidia-smi -q -x": "q-x_580_2xH200_mig_v13.xml", "nvidia-smi -L": "L_580_2xH200_mig.txt"}),
        # The XML of each card is damaged: the last resort.
        Shot("580 CSV", {"nvidia-smi -q -x": DAMAGED, "nvidia-smi -q -x -i *": DAMAGED,
                         _CSV: "query-gpu_580_3xH200.csv"}),
    ],
    "amd": [
        Shot("ROCm 6", {"amd-smi static --json": "amd-smi_static_list-root_2xMI300X.json",
                        "amd-smi metric --json": "amd-smi_metric_list-root_2xMI300X.json",
                        "amd-smi xgmi --json": "amd-smi_xgmi_2xMI300X.json"},
             origin={"amd-smi xgmi --json": GUIDE}),
        Shot("ROCm 6", {"amd-smi static --json": "amd-smi_static_list-root_2xMI300X.json",
                        "amd-smi metric --json": "amd-smi_metric_list-root_2xMI300X_ecc.json"}),
        Shot("ROCm 7", {"amd-smi static --json": "amd-smi_static_gpu-data_2xMI350X.json",
                        "amd-smi metric --json": "amd-smi_metric_gpu-data_2xMI350X.json"}),
        Shot("ROCm 7, list", {"amd-smi list --json": "amd-smi_list_several-documents_2xMI350X.txt"}),
        Shot("ROCm 6, 64 partitions", {"amd-smi list --json": "../../cases/09-amd-partition-count/tool_list_63.txt"},
             REPORTED),
        Shot("ROCm 5.7", {_ROCM: "rocm-smi_57_2xMI100.json"},
             files={"ras/*_err_count": {f"{_BELOW_CARD}/ras/umc_err_count": "ue: 0\nce: 0\nde: 0"},
                    "ras/gpu_vram_bad_pages": {
                        f"{_BELOW_CARD}/ras/gpu_vram_bad_pages": "gpu_vram_bad_pages_3R_1P_1F.txt"},
                    "current_compute_partition": {f"{_BELOW_CARD}/current_compute_partition": "CPX"}}),
        Shot("ROCm 6.2", {_ROCM: "rocm-smi_62_2xMI210_warning.txt"}),
    ],
    "ascend": [
        Shot("24.1", {"npu-smi info": "info_24.1_8x910B3.txt", "npu-smi info -m": "info-m_24.1_8x910B3.txt",
                      "npu-smi info -l": "info-l_24.1_8x910B3.txt",
                      "npu-smi info -t board -i *": "t-board_24.1_910B3.txt",
                      "npu-smi info -t ecc -i *": "t-ecc_24.1_910B3.txt",
                      "npu-smi info -t hccs -i * -c *": "t-hccs_24.1_910B3.txt"},
             origin={"npu-smi info -t ecc -i *": GUIDE, "npu-smi info -t hccs -i * -c *": GUIDE}),
        Shot("25.2", {"npu-smi info": "info_25.2_2x910C.txt", "npu-smi info -m": "info-m_25.2_2x910C.txt",
                      "npu-smi info -t board -i 0 -c 0": "t-board-chip_25.2_910C_0.txt",
                      "npu-smi info -t board -i 0 -c 1": "t-board-chip_25.2_910C_1.txt",
                      "npu-smi info -t board -i 0": "t-board_25.2_910C.txt"}),
        Shot("25.5", {"npu-smi info": "info_25.5_2x310P3-duo.txt",
                      "npu-smi info -t board -i *": "t-board_25.5_310P3-duo.txt"}),
        Shot("1.9.3", {"npu-smi info": "info_1.9.3_2x910A.txt",
                       "npu-smi info -t board -i * -c *": "t-board-chip_1.9.3_910A.txt",
                       "npu-smi info -t board -i *": "t-board_1.9.3_910A.txt"}),
    ],
    "gaudi": [
        Shot("1.22", {_line("hl-smi", *gaudi.QUERY): "Q_csv_1.22_3xHL-325L.csv",
                      _line("hl-smi", *gaudi.LISTING): "L_1.22_3xHL-325L.txt"},
             origin={_line("hl-smi", *gaudi.QUERY): GUIDE}),
        Shot("1.19", {"hl-smi": "table_1.19_2xHL-225.txt"}),
    ],
    "intel": [
        Shot("1.x", {"xpu-smi -v": "version.txt", "xpu-smi discovery -j": "discovery_1.2_2xMax1550.json",
                     "xpu-smi health -l -j": "health-l.json", "xpu-smi dump *": "dump.csv",
                     "xpu-smi discovery -d 0 -j": "discovery-d0.json",
                     "xpu-smi discovery -d 1 -j": "discovery-d1.json"}, origin=GUIDE),
        Shot("1.x CSV", {"xpu-smi -v": "version.txt", "xpu-smi discovery --dump *": "discovery--dump.csv"}, GUIDE),
        Shot("1.x table", {"xpu-smi -v": "version.txt", "xpu-smi discovery -d 0000:??:00.0": "discovery-d_table.txt"},
             GUIDE),
    ],
    "hygon": [
        Shot("1.26", {f"{_HYGON} --json": "all_1.26_2xBW.json"}),
        Shot("DTK 22.10", {f"{_HYGON} --csv": "all_dtk22.10_2xZ100.csv"}),
        Shot("DTK 24.04", {"hy-smi": "table_dtk24.04_2x.txt"}),
    ],
    "iluvatar": [
        Shot("4.3", {"ixsmi -q -x": "q-x_4.3.0_2chip_BI-V150.xml"}),
        Shot("4.2", {"ixsmi": "table_4.2.0_2xBI-V150.txt"}),
    ],
    "mthreads": [
        Shot("3.3", {"mthreads-gmi -q --json": "q_3.3_3xS5000.json"}, REPORTED),
        Shot("2.3", {"mthreads-gmi": "table_2.3_2xS4000.txt"}),
    ],
    "metax": [
        Shot("2.2.7", {"mx-smi": "table_2.2.7_2xN260.txt"}),
        Shot("2.3.1", {"mx-smi": "table_2.3.1_3xC500X.txt"}),
        Shot("2.3.1, listing",
             {"mx-smi --show-temperature --show-memory --show-usage": "show_2.3.1_2xN260.txt"}),
    ],
    "cambricon": [Shot("4.20", {"cnmon": "cnmon_4.20_2xMLU370-X4.txt"}),
                  Shot("5.10", {"cnmon": "cnmon_5.10_2xMLU370-X8.txt"})],
    "enflame": [
        Shot("1.4", {"efsmi -q": "efsmi-q_1.4_2xS60.txt"}, REPORTED),
        Shot("1.2", {"efsmi -q": "efsmi-q_1.2_2xS60.txt", "efsmi": "efsmi_1.2_2xS60.txt"}),
    ],
    "kunlunxin": [
        Shot("P800", {"xpu_smi -m": "xpu_smi-m_2xP800-OAM.txt"}),
        Shot("4.31", {"xpu_smi": "xpu_smi_4.31_2xR300.txt"}),
        Shot("515", {"xpu-smi": "xpu-smi_515_2xP800.txt"}),
    ],
    "neuron": [
        Shot("JSON", {"neuron-ls -j": "neuron-ls_2xTrn2.json"}, GUIDE, files={f"{_NEURON}<n>/": _NEURON_FILES}),
        Shot("table", {"neuron-ls": "neuron-ls_all-procs_2xTrn2.txt"}, GUIDE),
    ],
    "tpu": [Shot("v6e", {"tpu-info": "tpu-info_2xv6e.txt"}, GUIDE),
            Shot("idle", {"tpu-info": "tpu-info_idle_lines.txt"}, GUIDE)],
    "denglin": [Shot("2.2", {"dlsmi query --xml-format": "dlsmi-query_2.2_3xKS38-QUAD.xml"})],
    "tenstorrent": [Shot("3.0", {"tt-smi -s": "tt-smi-s_3.0_n300_p150.json"})],
}  # fmt: skip
# Vendor -> on which cards, when, by whom. Empty is the truth of today.
TRIED: dict[str, str] = {}
# The device id of a card, where not any will do.
DEVICE_IDS = {"intel": "0bd5", "neuron": "7364", "tpu": "006f"}
# Every node that a driver could make of card N: below its PCI function (class/name), and in /dev.
NODES = (
    ("drm/card{}", "dri/card{}"), ("drm/renderD{}", "dri/renderD{}"), ("accel/accel{}", "accel/accel{}"),
    ("accel/accel{}", "accel{}"), ("habanalabs/hl{}", "hl{}"), ("tenstorrent/tenstorrent!{}", "tenstorrent/{}"),
    ("cambricon/cambricon_dev{}", "cambricon_dev{}"), ("gcu/gcu{}", "gcu{}"), ("xpu/xpu{}", "xpu{}"),
    (None, "nvidia{}"), (None, "davinci{}"), (None, "neuron{}"), (None, "iluvatar{}"),
    (None, "mtgpu.{}"), (None, "vfio/{}"), (None, "kfd"),
)  # fmt: skip


# A line of each driver whose errors are read from the kernel log.
LOG = (
    "[1.0] NVRM: Xid (PCI:0000:18:00): 79, pid=77, GPU has fallen off the bus.\n"
    "[2.0] amdgpu 0000:18:00.0: amdgpu: 3 uncorrectable hardware errors detected in umc block\n"
    "[3.0] ascend 0000:18:00.0: HBM MULTI BIT ECC, device_id=3, event_id=0x80e01801\n"
)


def _some(*path: str) -> Callable[[dict], bool]:
    def told(device: dict) -> bool:
        value: object = device
        for key in path:
            value = value[key]  # type: ignore[index]
        return value not in (None, [], "unknown")

    return told


def _any(*paths: tuple[str, ...]) -> Callable[[dict], bool]:
    return lambda device: any(_some(*path)(device) for path in paths)


# What a device can tell, in the order of the page: English, Chinese, whether a device tells it.
FIELDS: list[tuple[str, str, Callable[[dict], bool]]] = [
    ("model", "型号", _some("model")),
    ("UUID or chip number", "UUID 或芯片编号", _some("uuid")),
    ("serial number", "序列号", _some("serial")),
    ("slot or module number", "槽位或模块号",
     lambda one: one["slot"]["source"] == "vendor" or one["module_id"] is not None),
    ("PCI address", "PCI 地址", _some("pci_address")),
    ("NUMA node", "NUMA 节点", _some("numa_node")),
    ("firmware", "固件", _some("firmware_version")),
    ("driver version", "驱动版本", _some("driver_version")),
    ("memory size", "显存容量", _some("memory_bytes")),
    ("memory in use", "已用显存", _some("readings", "memory_used_bytes")),
    ("PCIe link", "PCIe 链路", _any(("link", "speed_gts"), ("link", "width"))),
    ("links between cards", "卡间互联", _some("ports")),
    ("memory errors", "显存错误（ECC）", _any(("ecc", "corrected_volatile"), ("ecc", "uncorrected_volatile"),
                                        ("ecc", "corrected_aggregate"), ("ecc", "uncorrected_aggregate"))),
    ("memory repair", "显存修复", lambda one: one["repair"]["state"] not in ("unknown", "not_supported")),
    ("temperature", "温度", _some("readings", "temperature_c")),
    ("temperature limit", "温度上限", _some("readings", "temperature_limit_c")),
    ("power", "功耗", _some("readings", "power_watts")),
    ("utilization", "利用率", _some("readings", "utilization_percent")),
    ("throttling", "降频原因", lambda one: one["readings"]["throttles"] is not None),
    ("processes", "进程", _some("processes")),
    ("partitions", "分区", _some("logical")),
    ("health", "健康状态", _some("health", "state")),
]  # fmt: skip

WORDS = {
    "en": {
        "title": "# Vendors: what is read, and from where",
        "made": "Made by tests/render_vendors.py, which runs the vendors' code over tests/recordings. Do not edit.",
        "never": "**No card of any vendor listed here has been read by this collection yet.** All of it was proven on "
        "answers in the formats of the tools, never against a card. These samples have made-up values and release "
        "numbers near those of the output that they were shaped after; what a card says that no sample holds, nobody "
        "knows.",
        "tried": "Tried on real cards: {}.",
        "how": "**T**: the vendor's tool tells it. **K**: no tool is needed, the PCI bus or the kernel driver's files "
        "tell it. **-**: none of the answers held here tells it; a check that needs it never passes. A "
        "tool that tells a value in one release may not in another: the tables below name the answer. Who holds a card "
        "is also read from `/proc/*/fd`, where the card has a device node of its own; errors that the driver logs come "
        "from the kernel log, for {logged}.",
        "vendor": "vendor", "ids": "PCI vendor id", "classes": "classes", "devices": "device ids",
        "any": "any", "any_class": "any", "elsewhere": "any; on bus 00 only {}", "modules": "kernel modules",
        "not_known": "not known", "nodes": "device nodes", "none": "none whose name is known",
        "order": "Commands, in the order in which they are asked:",
        "more": "where something is still missing, or another tool is not installed: ",
        "failed": "after a failure: ", "formats": "Formats", "format": "command", "release": "release in the sample",
        "origin": "known from", "value": "value", "source": "from", "bus": "bus or kernel",
        "unread": "Told by none of these answers: {}.", "all": "Everything in the overview is told by something.",
        RECORDED: "output of real tools that others published",
        GUIDE: "the vendor's documentation, or published source; no output of a real tool was seen",
        REPORTED: "excerpts of users, or programs of third parties that read it; no whole output was seen",
        "ran": "The real tools were run without cards, for their failures: {} (`make test-full` runs them).",
        "declared": "A vendor that is not listed can be declared in the inventory ([inventory.md](inventory.md)).",
        "join": ", ",
    },
    "zh": {
        "title": "# 各厂商：读取哪些信息，来自何处",
        "made": "由 tests/render_vendors.py 对 tests/recordings 运行各厂商的代码生成，请勿手工修改。",
        "never": "**本集合尚未在任何一家厂商的真实加速卡上运行过。** 以下内容均由符合工具格式的输出验证，从未与真实的卡"
        "对照。这些样本中的数值为虚构，版本号与其所依据的输出相近；样本之外的内容，尚无法保证读取正确。",
        "tried": "已在真实的卡上验证：{}。",
        "how": "**T**：由厂商工具给出。**K**：无需工具，由 PCI 总线或内核驱动的文件给出。**-**：此处保存的输出均未给出"
        "，依赖它的检查绝不会通过。同一工具在某一版本给出的值，在另一版本未必给出，各表注明了来自哪条输出。"
        "卡有自己的设备节点时，占用它的进程还会从 `/proc/*/fd` 读取；驱动记录的错误取自内核日志（{logged}）。",
        "vendor": "厂商", "ids": "PCI 厂商 id", "classes": "类别", "devices": "设备 id",
        "any": "任意", "any_class": "任意", "elsewhere": "任意；在总线 00 上仅限 {}", "modules": "内核模块",
        "not_known": "未知", "nodes": "设备节点", "none": "名称均未知",
        "order": "按询问顺序排列的命令：",
        "more": "以上有所缺失或未安装其他工具时：", "failed": "失败之后：",
        "formats": "格式", "format": "命令", "release": "样本中的版本",
        "origin": "格式依据", "value": "内容", "source": "来源", "bus": "总线或内核",
        "unread": "以上输出均未给出：{}。", "all": "总表中的各项均有来源。",
        RECORDED: "他人公开的真实工具输出",
        GUIDE: "厂商文档或公开的源代码，未见过真实工具的输出",
        REPORTED: "用户摘录或读取该格式的第三方程序，未见过完整输出",
        "ran": "曾在没有卡的情况下运行真实工具，以取得其失败时的输出：{}（由 `make test-full` 运行）。",
        "declared": "未列出的厂商可在清单中声明（[inventory.md](inventory.md)）。",
        "join": "、",
    },
}  # fmt: skip


# --- Asking --------------------------------------------------------------------------------------------------------


class _InTurn:
    """Runs what ``run_all`` would run at the same time one after the other, so that the order of calls is one."""

    def __init__(self, max_workers: int) -> None:
        """Take the number of workers, and need none."""

    def __enter__(self) -> _InTurn:
        return self

    def __exit__(self, *_unused: object) -> None:
        """Nothing to end."""

    def map(self, function: Callable, values: Iterable) -> Iterator:
        """Return the results in turn."""
        return map(function, values)


class Host(RecordedRunner):
    """A host whose tools answer by pattern; what is not among the answers fails without a word."""

    def __init__(self, answers: dict[str, str], tools: Iterable[str], files: dict, links: dict) -> None:
        """``answers``: pattern of a command -> its text."""
        super().__init__({}, files, tools, links)
        self.texts = answers
        self.failed_at: int | None = None  # which call was the first that got no answer

    def run(self, argv: list[str], timeout_seconds: float) -> Result:
        """Return the first answer whose pattern fits."""
        line = " ".join([Path(argv[0]).name, *argv[1:]])
        self.calls.append(tuple(line.split(" ")))
        for pattern, said in self.texts.items():
            if line == pattern or (("*" in pattern or "?" in pattern) and fnmatch.fnmatchcase(line, pattern)):
                if said == DAMAGED:
                    break
                return Result(list(argv), 0, said, "")
        if self.failed_at is None:
            self.failed_at = len(self.calls) - 1
        return Result(list(argv), 1, "", "")


def _bus(name: str, addresses: Iterable[str], whole: bool) -> tuple[dict, dict]:
    """Return files and links of the vendor's cards on the bus; ``whole``: with link, NUMA node and driver."""
    vendor = registry.VENDORS[name]
    pci_class = (vendor.pci_classes or ("ff00",))[0]
    pci_class = "1200" if "1200" in vendor.pci_classes else pci_class
    files: dict[str, str] = {}
    links: dict[str, str] = {}
    for number, address in enumerate(addresses):
        place = f"/sys/bus/pci/devices/{address}"
        files[f"{place}/vendor"] = f"0x{vendor.pci_vendors[0]}"
        files[f"{place}/device"] = f"0x{DEVICE_IDS.get(name, '0001')}"
        files[f"{place}/class"] = f"0x{pci_class}00"
        for below, node in NODES:
            if below:
                files[f"{place}/{below.format(number)}/dev"] = "1:1"
            files[f"/dev/{node.format(number)}"] = ""
        if whole:
            files.update({f"{place}/{one}_link_speed": "16.0 GT/s PCIe" for one in ("current", "max")})
            files.update({f"{place}/{one}_link_width": "16" for one in ("current", "max")})
            files[f"{place}/numa_node"] = "0"
    if whole and vendor.kernel_modules:
        files[f"/sys/module/{vendor.kernel_modules[0]}/version"] = "1.2.3"
    return files, links


def _text(folder: Path, content: str) -> str:
    """Return the recording of that name, or the content itself."""
    return (folder / content).read_text(encoding="utf-8") if (folder / content).is_file() else content


def _observe(name: str, shot: Shot, addresses: Iterable[str], sources: Iterable[str], whole=False, tools=True):
    """Return the observation of a host of which only ``sources`` answer, and the runner."""
    folder = RECORDINGS / name
    files, links = _bus(name, addresses, whole)
    for label, shown in shot.files.items():
        if label in sources:
            for path, content in shown.items():
                places = [f"/sys/bus/pci/devices/{one}" for one in addresses] if _BELOW_CARD in path else [""]
                files.update({path.replace(_BELOW_CARD, place): _text(folder, content) for place in places})
    answers = {line: _text(folder, file) for line, file in shot.answers.items() if general(line) in sources}
    runner = Host(answers, {line.split(" ")[0] for line in shot.answers} if tools else (), files, links)
    return as_dict(probe.observe(runner, [name], 10, GATHER)), runner


def _sources(shot: Shot) -> list[str]:
    """Return what answers: commands, those to several cards as one, and files of the driver."""
    return [*dict.fromkeys(general(line) for line in shot.answers), *shot.files]


def _addresses(name: str, shot: Shot) -> list[str]:
    """Return the addresses of the cards in the answers; made up ones where the answers hold none."""
    seen, _runner = _observe(name, shot, (), _sources(shot))
    named = [device["pci_address"] for device in seen["devices"] if device["pci_address"]]
    return sorted(named, key=pci.sort_key) or [*ADDRESSES]


def _told(observation: dict) -> set[str]:
    """Return the fields that at least one device tells."""
    return {english for english, _chinese, told in FIELDS if any(told(device) for device in observation["devices"])}


@dataclass
class Reading:
    """What was found about one vendor: who tells a field, the calls in their order, the nodes of its cards."""

    tool: dict[str, list[str]] = field(default_factory=dict)
    bus: set[str] = field(default_factory=set)
    # Always asked; asked where an answer lacks something or a tool is not installed; asked after a failure.
    calls: list[str] = field(default_factory=list)
    for_more: list[str] = field(default_factory=list)
    after_failure: list[str] = field(default_factory=list)
    nodes: set[str] = field(default_factory=set)


@cache
def reading(name: str) -> Reading:
    """Ask one vendor in every generation, in every way."""
    pool, futures.ThreadPoolExecutor = futures.ThreadPoolExecutor, _InTurn  # type: ignore[misc]
    try:
        return _reading(name)
    finally:
        futures.ThreadPoolExecutor = pool  # type: ignore[misc]


def _reading(name: str) -> Reading:
    found = Reading()
    for shot in SHOTS[name]:
        everything = _sources(shot)
        addresses = _addresses(name, shot)
        seen, runner = _observe(name, shot, addresses, everything)
        if not seen["devices"]:
            raise SystemExit(f"{name} {shot.generation}: no device in its recordings: {seen['errors']}")
        well = runner.failed_at if runner.failed_at is not None else len(runner.calls)
        _note(found, found.calls if shot is SHOTS[name][0] else found.for_more, runner.calls[: well + 1])
        _note(found, found.after_failure, runner.calls)
        bus, _unused = _observe(name, shot, addresses, (), tools=False)
        new = _told(seen) - _told(bus)
        for value, sources in _tellers(name, shot, addresses, everything, new).items():
            named = found.tool.setdefault(value, [])
            named += [one for one in sources if one not in named]
        whole, _unused = _observe(name, shot, addresses, (), whole=True, tools=False)
        found.bus |= _told(whole)
        if any(driver["kernel_version"] for driver in whole["drivers"]):
            found.bus.add("driver version")
        for one in (*seen["devices"], *bus["devices"]):
            found.nodes |= {re.sub(r"\d+$", "N", node) for node in one["device_nodes"]}
    _failed, runner = _observe(name, SHOTS[name][0], ADDRESSES, ())
    _note(found, found.after_failure, runner.calls)
    return found


def _tellers(
    name: str, shot: Shot, addresses: list[str], everything: list[str], values: set[str]
) -> dict[str, list[str]]:
    """Return the answers that tell each value: those that do alone, else those without which it is missing."""
    alone = {one: _told(_observe(name, shot, addresses, [one])[0]) for one in everything}
    rests = {}
    for one in everything:
        rest, _unused = _observe(name, shot, addresses, [other for other in everything if other != one])
        # Without the list of cards nothing is told: that does not make it the teller.
        rests[one] = _told(rest) if rest["count"] else values
    return {
        value: [one for one in everything if value in alone[one]]
        or [one for one in everything if value not in rests[one]]
        or everything
        for value in values
    }


def _note(found: Reading, into: list[str], calls: list[tuple[str, ...]]) -> None:
    for call in calls:
        line = general(" ".join(call))
        if line not in (*found.calls, *found.for_more, *found.after_failure):
            into.append(line)


def general(line: str) -> str:
    """Return a command without what differs from card to card."""
    line = re.sub(r"[0-9a-f]{4}:[0-9a-f?]{2}:[0-9a-f]{2}\.[0-7]", "<address>", line)
    return re.sub(r"(?<= -[dic] )(?:\d+|\*)(?= |$)|(?<= -g )\d+", "<n>", line).replace(" -i *", " -i <address>")


# --- Writing -------------------------------------------------------------------------------------------------------


def _short(line: str) -> str:
    """Return a command as a cell holds it: long lists of options are cut."""
    words = line.split(" ")
    if len(words) > 9:
        words = [*words[:3], "...", words[-1]]
    return f"`{' '.join(word if len(word) < 60 or word.startswith('/') else word[:24] + '...' for word in words)}`"


@cache
def _owned(name: str, address: str) -> list[int]:
    """Return the device ids that are a card at this address, by trying all of them."""
    vendor = registry.VENDORS[name]
    pci_class = (vendor.pci_classes or ("ff00",))[0] + "00"
    one = pci.Function(address, vendor=vendor.pci_vendors[0], pci_class=pci_class)
    ids = []
    for number in range(1 << 16):
        one.device = f"{number:04x}"
        if vendor.owns(one):
            ids.append(number)
    return ids


def _devices(name: str, say: dict) -> str:
    """Return the device ids that are a card."""
    anywhere, first_bus = _owned(name, "0000:18:00.0"), _owned(name, "0000:00:02.0")
    told = say["any"] if len(anywhere) > 0xFF00 else _ranges(anywhere)
    return told if anywhere == first_bus else say["elsewhere"].format(_ranges(first_bus))


def _ranges(numbers: list[int]) -> str:
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(f"{a:04x}" if a == b else f"{a:04x}-{b:04x}" for a, b in parts)


def page(language: str) -> str:
    """Return the whole page in one language."""
    say = WORDS[language]
    names = {english: {"en": english, "zh": chinese}[language] for english, chinese, _told_by in FIELDS}
    logged = say["join"].join(f"`{name}`" for name in registry.VENDORS if name in kernel_log_vendors())
    lines = [say["title"], "", say["made"], "", say["never"] if not TRIED else "", ""]
    lines += [say["how"].format(logged=logged), "", say["declared"], ""]
    lines += [f"| {say['value']} | " + " | ".join(registry.VENDORS) + " |", "|---" * (len(registry.VENDORS) + 1) + "|"]
    for english, shown in names.items():
        marks = []
        for name in registry.VENDORS:
            found = reading(name)
            mark = ("T" if english in found.tool else "") + ("K" if english in found.bus else "")
            marks.append(mark or "-")
        lines.append(f"| {shown} | " + " | ".join(marks) + " |")
    for name in registry.VENDORS:
        lines += ["", *_vendor(name, language, say, names)]
    return "\n".join(lines) + "\n"


def kernel_log_vendors() -> set[str]:
    """Return the vendors whose events are found in a log."""
    return {event["vendor"] for event in kernel_log.parse(LOG) if event["vendor"]}


def _vendor(name: str, language: str, say: dict, names: dict[str, str]) -> list[str]:
    vendor, found = registry.VENDORS[name], reading(name)
    mark = {"en": ": ", "zh": "："}[language]
    lines = [f"## {name}", ""]
    if name in TRIED:
        lines += [say["tried"].format(TRIED[name]), ""]
    facts = (
        ("ids", ", ".join(vendor.pci_vendors)),
        ("classes", ", ".join(vendor.pci_classes) or say["any_class"]),
        ("devices", _devices(name, say)),
        ("modules", ", ".join(f"`{one}`" for one in vendor.kernel_modules) or say["not_known"]),
        ("nodes", ", ".join(f"`{one}`" for one in sorted(found.nodes)) or say["none"]),
    )
    lines += [f"- {say[key]}{mark}{text}" for key, text in facts]
    lines += ["", say["order"], ""]
    lines += [f"1. `{line}`" for line in found.calls]
    lines += [f"1. {say['more']}`{line}`" for line in found.for_more]
    lines += [f"1. {say['failed']}`{line}`" for line in found.after_failure]
    lines += ["", f"| {say['format']} | {say['release']} | {say['origin']} |", "|---|---|---|"]
    for shot in SHOTS[name]:
        for command, file in shot.answers.items():
            origin = shot.origin if isinstance(shot.origin, str) else shot.origin.get(command, RECORDED)
            line = f"| {_short(general(command))} | {shot.generation} | {say[origin]} |"
            if file != DAMAGED and line not in lines:
                lines.append(line)
    lines += ["", f"| {say['value']} | {say['source']} |", "|---|---|"]
    for english, shown in names.items():
        sources = [_short(one) for one in found.tool.get(english, ())]
        sources += [say["bus"]] if english in found.bus else []
        if sources:
            lines.append(f"| {shown} | {', '.join(dict.fromkeys(sources))} |")
    missing = [shown for english, shown in names.items() if english not in found.tool and english not in found.bus]
    lines += ["", say["unread"].format(say["join"].join(missing)) if missing else say["all"]]
    if name in RAN:
        lines += ["", say["ran"].format(say["join"].join(RAN[name]))]
    return lines


def main() -> None:
    """Write both pages."""
    for language, path in PAGES.items():
        path.write_text(page(language), encoding="utf-8")


if __name__ == "__main__":
    main()
