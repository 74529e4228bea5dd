# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every recording of a device tool and of a kernel log is held to values that were read from it by eye.

Most are in the tests of their vendor; the others are here, or named with the reason why nothing is read from them. A
recording that is none of these fails the test: whoever adds one says what is in it. To name or read it is not enough:
held.py changes the files one by one, and a test has to fail.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import dmi, kernel_log, pci, registry
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors import ascend, nvidia
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors.base import FILE
from ansible_collections.accel.cluster.plugins.module_utils._accel.versions import extract
from doubles import OneAnswer

HERE = Path(__file__)
# Not those of the emulator: they hold its answers to the form of a recording, not what is read to its values.
READERS = sorted(path for path in HERE.parent.glob("**/test_*.py") if path.name != "test_garbled_answers.py")
NOT_THIS = "not held and not nobodys_cards"
# Nothing reads what belongs to the fabric and to the scheduler yet.
OTHERS = ("fabric", "slurm")

ELSEWHERE = "another question than the collection asks; what it says is read from another answer"
NETWORK = "of the network, which nothing reads yet"
BUS = "the collection reads sysfs itself, never lspci, udevadm or hwloc; test_pci.py has trees"
NO_TOOL = "a file that nothing reads: the tool tells the same"
TEXT_FORM = "the text form; every release that prints it prints the XML that is asked for"

# file -> why nothing is read from it
LEFT_OUT = {
    "amd/amd-smi_bad-pages.txt": ELSEWHERE,
    "amd/amd-smi_firmware.txt": ELSEWHERE,
    "amd/amd-smi_monitor.txt": ELSEWHERE,
    "amd/amd-smi_partition-g0_7x.txt": ELSEWHERE,
    "amd/amd-smi_partition_NA_63.txt": ELSEWHERE,
    "amd/amd-smi_process.json.txt": ELSEWHERE,
    "amd/amd-smi_process_csv.txt": ELSEWHERE,
    "amd/amd-smi_ras-cper_7x.txt": ELSEWHERE,
    "amd/amd-smi_topology_new-format.json.txt": ELSEWHERE,
    "amd/debugfs_amdgpu_firmware_info.txt": NO_TOOL,
    "amd/kfd-topology_mi210-xgmi-pcie.tar.gz": NO_TOOL,
    "amd/kfd-topology_mi300-cpx.tar.gz": NO_TOOL,
    "amd/kfd-topology_mi308.tar.gz": NO_TOOL,
    "amd/kfd-topology_small.tar.gz": NO_TOOL,
    "amd/rocm-smi-i_641_MI300X_partition-NA.txt": "the text form; JSON is asked for",
    "amd/rocm-smi_showtopo_8x.txt": ELSEWHERE,
    "amd/rocm-smi_table_8xMI308X.txt": "the text form; JSON is asked for",
    "amd/rocminfo_624.txt": ELSEWHERE,
    "amd/sensors_amdgpu_w7900-class.txt": NO_TOOL,
    "ascend/doc_hccn_tool_fec.txt": NETWORK,
    "ascend/doc_hccn_tool_ip.txt": NETWORK,
    "ascend/doc_hccn_tool_link.txt": NETWORK,
    "ascend/doc_hccn_tool_link_stat.txt": NETWORK,
    "ascend/doc_hccn_tool_optical.txt": NETWORK,
    "ascend/doc_hccn_tool_tls.txt": NETWORK,
    "ascend/hccn.conf_4cards": NETWORK,
    "ascend/faultdiag_npu_smi_0_details.csv": "the series that another program kept",
    "ascend/ibmc-vs-npu-smi-numbering_atlas800-9000.txt": "a note on two ways of counting",
    "ascend/npu-smi_info-t-topo_8x910B3.txt": ELSEWHERE,
    "habana/hccl_demo_all_reduce_2x.txt": NETWORK,
    "nvidia/dcgmi-diag-r2_fail_excerpt.txt": ELSEWHERE,
    "nvidia/lspci-nn_8xA100_nvswitch.txt": BUS,
    "nvidia/lspci-nn_a10.txt": BUS,
    "nvidia/lspci_gb200.txt": BUS,
    "nvidia/nvlink-e_H100_excerpt.txt": ELSEWHERE,
    "nvidia/proc_driver_nvidia_gpus_information.txt": NO_TOOL,
    "nvidia/q-d-page-retirement_8gpu_bad.txt": TEXT_FORM,
    "nvidia/q-d-page-retirement_8gpu_orig.txt": TEXT_FORM,
    "nvidia/q_10xA40.txt": TEXT_FORM,
    "nvidia/q_2xH100NVL.txt": TEXT_FORM,
    "nvidia/q_450.51_titan-xp_head.txt": TEXT_FORM,
    "nvidia/q_4xA100SXM.txt": TEXT_FORM,
    "nvidia/q_535.129_a10.txt": TEXT_FORM,
    "nvidia/q_535.161_8xH100.txt": TEXT_FORM,
    "nvidia/q_565_8xH100SXM.txt": TEXT_FORM,
    "nvidia/q_8xV100-SXM2_two-heads.txt": TEXT_FORM,
    "nvidia/query-gpu_vbios_csv.txt": "an excerpt with its command, a header and rows left out, which is not asked for",
    "nvidia/table_375_4xK80.txt": TEXT_FORM,
    "nvidia/table_525.125.txt": TEXT_FORM,
    "nvidia/table_565_8xH100SXM.txt": TEXT_FORM,
    "nvidia/topo-m_2gpu_nvlink.txt": ELSEWHERE,
    "nvidia/topo-m_8xA100.txt": ELSEWHERE,
    "nvidia/topo-p2p_4gpu_ok-ns.txt": ELSEWHERE,
    "nvidia/version_550.54.14.txt": ELSEWHERE,
    "kernel/ghw-snapshot_linux-amd64-8581cf3a529e5d8b97ea876eade2f60d.tar.gz": BUS,
    "kernel/ghw-snapshot_linux-amd64-accel-nvidia.tar.gz": BUS,
    "kernel/ghw-snapshot_linux-amd64-accel.tar.gz": BUS,
    "kernel/hwloc_128arm-2pa2n8cluster4co.tar.bz2": BUS,
    "kernel/hwloc_16intel64-manyVFs.xml": BUS,
    "kernel/hwloc_32em64t-2n8c+dax+nvme+mic+dimms.tar.bz2": BUS,
    "kernel/hwloc_32intel64-2p8co2t+8ve.tar.bz2": BUS,
    "kernel/hwloc_40intel64-2g2n4c+pcilocality.tar.bz2": BUS,
    "kernel/hwloc_40intel64-4n10c+pci-conflicts.tar.bz2": BUS,
    "kernel/hwloc_64amd64-4p2n4ca2co.tar.bz2": BUS,
    "kernel/hwloc_fakepcilocalities.tar.bz2": BUS,
    "kernel/hwloc_nvidia-dgx-gb10.tar.bz2": BUS,
    "kernel/hwloc_nvidiagpunumanodes.tar.bz2": BUS,
    "kernel/hwloc_power8gpudistances.xml": BUS,
    "kernel/lspci-Dnn_3xMTT-S5000.txt": BUS,
    "kernel/lspci-mmv_ubuntu20.10.txt": BUS,
    "kernel/lspci-nnk_hygon-host_2xL20.txt": BUS,
    "kernel/lspci-nnmmv_ubuntu20.10.txt": BUS,
    "kernel/lspci-vvv_8xH100_hgx.txt": BUS,
    "kernel/lspci_8xH20.txt": BUS,
    "kernel/sysfs_procfs-fixtures.ttar": BUS,
    "kernel/udevadm-export-db_dell-r820.txt": BUS,
    "kernel/udevadm-export-db_dgx-a100.txt": BUS,
    "kernel/udevadm-export-db_dgx-station.txt": BUS,
    "kernel/udevadm-export-db_mellanox-40g.txt": BUS,
}
REFUSED = "damaged, or cut by its author: refused"
NOT_OURS = "no answer to what is asked, and not taken for one"
NO_EVENT = "a log that says nothing of a card"
NONE = "a list without any of what is looked for"

# file -> why a test sees that nothing is made of it; no change of its values could turn that
NOTHING = {
    "amd/amd-smi_static_clock_list-root.json.txt": REFUSED,
    "amd/amdsmi_error43_unexpected-data.txt": REFUSED,
    "ascend/npu-smi_info_25.5.2_multirow_odd.txt": REFUSED,
    "enflame/efsmi_topo-m_10xS60.txt": NOT_OURS,
    "habana/hl-smi_table_header_1.20.0.txt": REFUSED,
    "houmo/hm_smi_2xLQ50.txt": NOT_OURS,
    "hygon/rocminfo_dtk24.04.3.txt": NOT_OURS,
    "intel/xpu-smi_diag-l1.txt": NOT_OURS,
    "intel/xpu-smi_ps.txt": NOT_OURS,
    "intel/xpu-smi_topology-d0.txt": NOT_OURS,
    "kernel/dmesg_kernel_mce-pcie_gpud.log": NO_EVENT,
    "kernel/pstore_dmesg-erst.txt": NO_EVENT,
    "metax/mx-smi_topo-m_8xC500.txt": NOT_OURS,
    "nvidia/L_heterogeneous.txt": NONE,
    "nvidia/capture_nvidia-geforce-rtx-4080-super__595.71.05.txt": NONE,
    "nvidia/capture_nvidia-l40s__595.80.txt": NONE,
    "nvidia/fabricmanager.log": NO_EVENT,
    "nvidia/kmsg_peermem.log": NO_EVENT,
    "nvidia/q_535.183_H100_invalid-truncated.txt": REFUSED,
    "xdx/xdxsmi_1.6.21_2xR1900.txt": NOT_OURS,
}
# Answers to other questions, which a tool of another release might give to ours: nobody's cards.
NO_ANSWERS = [
    name for name, why in LEFT_OUT.items() if why in (ELSEWHERE, TEXT_FORM) or why == "the text form; JSON is asked for"
]

# name: driver, count; of the first card: model, serial, uuid, address, id, MiB, firmware, health,
# (link now and at most: GT/s, lanes), (C, limit C, W, limit W, %), throttles
XML = {
    "q-x_515_rtx3060-laptop_v11.xml": (
        "515.65.01", 1, "NVIDIA GeForce RTX 3060 Laptop GPU", None, "GPU-473d8d0f-d462-185c-6b36-6fc23e23e571",
        "0000:01:00.0", "10de:2520", 6144, "94.06.19.00.51", (2.5, 8, 16.0, 16), (45, 102, 8.70, None, 0), ["idle"],
    ),
    "q-x_516_rtx2080_windows_v11.xml": (
        "516.59", 1, "NVIDIA GeForce RTX 2080", None, "GPU-fbd55ed4-1eec-4423-0a47-ad594b4333e3",
        "0000:0a:00.0", "10de:1e87", 8192, "90.04.23.00.db", (8.0, 8, 8.0, 16), (29, 97, 14.50, 275, 2), ["idle"],
    ),
    "q-x_525_quadro-p2000_v12.xml": (
        "525.125.06", 1, "Quadro P2000", "0322218049033", "GPU-396caaed-39ca-3199-2e68-717cdb786ec6",
        "0000:17:00.0", "10de:1c30", 5120, "86.06.3F.00.30", (2.5, 8, 8.0, 16), (34, 101, 4.61, 75, 0), ["idle"],
    ),
    "q-x_525_rtx3090_v12.xml": (
        "525.147.05", 1, "NVIDIA GeForce RTX 3090", None, "GPU-12345678-aaaa-bbbb-cccc-0123456789ab",
        "0000:00:10.0", None, 24576, "94.02.71.40.72", (2.5, 16, 16.0, 16), (37, 95, 27.23, 200, 0), ["idle"],
    ),
    "q-x_550_gtx1070_v12.xml": (
        "550.54.14", 1, "NVIDIA GeForce GTX 1070", None, "GPU-0f28aa42-45b8-2019-1c8b-35a2ccd7ce89",
        "0000:09:00.0", "10de:1b81", 8192, "86.04.50.00.24", (2.5, 16, 8.0, 16), (39, 96, 8.19, 190, 0), ["idle"],
    ),
    "q-x_570_rtx3060_v12.xml": (
        "570.124.04", 1, "NVIDIA GeForce RTX 3060", None, "GPU-d6889ff6-2523-9142-ca3c-1ca3f396a625",
        "0000:2d:00.0", "10de:2487", 12288, "94.04.71.00.69", (2.5, 16, 16.0, 16), (42, 95, 11.63, 170, 0), ["idle"],
    ),
    # Most of it was left out by its author; 56 degrees are left.
    "q-x_580_rtx-pro-6000_fragment.xml": (
        None, 1, "NVIDIA RTX PRO 6000 Blackwell", None, "GPU-11111111-2222-3333-4444-555555555555",
        "0000:01:00.0", None, None, None, (None, None, None, None), (37, 93, 66.84, None, None), None,
    ),
    # Slows down 2 degrees behind the 59 that are left.
    "q-x_hw_l40s.xml": (
        "595.91.07", 1, "NVIDIA L40S", "1650000000001", None,
        "0000:30:00.0", "10de:26b9", 46068, "95.02.66.00.15", (16.0, 8, 16.0, 16), (29, 90, 66.16, 350, 0), ["idle"],
    ),
    "q-x_mocknvml_a100-healthy.xml": (
        "550.163.01", 2, "NVIDIA A100-SXM4-40GB", "1324821083800", "GPU-12345678-1234-1234-1234-123456780000",
        "0000:07:00.0", "10de:20b0", 40960, "92.00.45.00.03", (16.0, 16, 16.0, 16), (63, 87, 259.17, 400, 50), ["idle"],
    ),
    "q-x_mocknvml_gb200-healthy.xml": (
        "580.65.06", 2, "NVIDIA GB200", "1562849103700", "GPU-b200b200-0000-0000-0000-000000000000",
        "0000:0a:00.0", "10de:2341", 196608, "96.00.9E.00.01", (64.0, 16, 64.0, 16), (63, 93, 565.11, 1000, 50),
        ["idle"],
    ),
    "q-x_mocknvml_gb200-throttle-counters.xml": (
        "580.65.06", 2, "NVIDIA GB200", "1562849103700", "GPU-b200b200-0000-0000-0000-000000000000",
        "0000:0a:00.0", "10de:2341", 196608, "96.00.9E.00.01", (64.0, 16, 64.0, 16), (36, 90, 145, 1000, 36),
        ["idle"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", XML)
def test_xml_of_nvidia(recordings, name):
    query = nvidia.parse_query((recordings / "nvidia" / name).read_text())
    one = query.devices[0]
    link, now = one.link, one.readings
    memory = one.memory_bytes and one.memory_bytes // 1024**2
    assert XML[name] == (
        query.driver_version,
        len(query.devices),
        one.model,
        one.serial,
        one.uuid,
        one.pci_address,
        one.pci_id,
        memory,
        one.firmware_version,
        (link.speed_gts, link.width, link.max_speed_gts, link.max_width),
        (
            now.temperature_c,
            now.temperature_limit_c,
            now.power_watts,
            now.power_limit_watts,
            now.utilization_percent,
        ),
        now.throttles,
    )


def section(text: str, command: str) -> str:
    """Return what one command of a capture printed."""
    return text.partition(f"# $ {command}\n")[2].partition("\n\n#")[0].lstrip("#\n")


@pytest.mark.parametrize(
    ("name", "links"),
    [
        ("capture_nvidia-geforce-rtx-4080-super__595.71.05.txt", []),
        ("capture_nvidia-h100-80gb-hbm3__590.48.01.txt", [212.496] * 18),
        ("capture_nvidia-h200-mig__590.48.01.txt", []),
        ("capture_nvidia-h200__590.48.01.txt", [212.496] * 18),
        ("capture_nvidia-l40s__595.80.txt", []),
    ],
)
def test_captures_of_nvidia(recordings, name, links):
    text = (recordings / "nvidia" / name).read_text()
    masked = "GPU-00000000-0000-0000-0000-000000000000"
    told = nvidia.parse_nvlink(section(text, "nvidia-smi nvlink -s"))
    assert [port["speed_gbps"] for port in told.get(masked, [])] == links
    profiles = ["1c.3g.71gb", "2c.3g.71gb", "2g.35gb", "1g.18gb", "1g.18gb"] if "mig" in name else []
    listed = nvidia.parse_list(section(text, "nvidia-smi -L"))
    assert [one["profile"] for one in listed.get(masked, [])] == profiles


def test_lists_and_rows_of_nvidia(recordings):
    folder = recordings / "nvidia"
    # It is asked for the names of partitions only, and neither card has one.
    assert not any(nvidia.parse_list((folder / "L_heterogeneous.txt").read_text()).values())
    links = dict(nvidia.parse_nvlink((folder / "nvlink-s_A100_one-gpu-good.txt").read_text()))
    assert {name: len(ports) for name, ports in links.items()} == {"GPU-c7e253b0-c227-6f10-e860-7482c85e7ce8": 12}
    assert {port["speed_gbps"] for ports in links.values() for port in ports} == {200.0}
    # Field names as the collection asks for them; memory.used stands for the load of the memory, which it does not.
    fields = ("index", "uuid", "name", "pci.bus_id", "temperature.gpu", "utilization.gpu", "memory.used")
    fields += ("memory.total", "power.draw", "power.limit", "pstate")
    rows = nvidia.parse_csv((folder / "query-gpu_2xL20_csv.txt").read_text(), fields)
    assert [(one.index, one.uuid, one.model, one.pci_address) for one in rows] == [
        (0, "GPU-2da85921-1a58-7e3c-5166-47d742d5fe72", "NVIDIA L20", "0000:0c:00.0"),
        (1, "GPU-272445e2-6643-78d8-f636-ba8881fd789d", "NVIDIA L20", "0000:0f:00.0"),
    ]


# name: tool, driver, then of each chip: NPU, chip, name, health, address, power, heat, memory in use and in all (MB)
TABLES = {
    # Rows were left out by its author.
    "doc_npu-smi_info_24.1.rc1_910A.txt": (
        "24.1.rc1", "24.1.rc1", [(7, 0, None, "OK", "0000:3d:00.0", 67.0, 44, 2505, 15567)],
    ),
    "npu-smi_info_25.5.1_0.txt": (
        "25.5.1", "25.5.1",
        [
            (4, 0, "310P3", "OK", "0000:81:00.0", None, 37, 1848, 21525),
            (5, 0, "310P3", "OK", "0000:85:00.0", None, 40, 1849, 21525),
        ],
    ),
    # One card with four chips.
    "npu-smi_info_atlas-800-inference-server_model-3000_version-1.0.0-1.0.10.txt": (
        "20.2.0", "20.2.0",
        [
            (215, 0, "310", "OK", "0000:da:00.0", 12.8, 56, 2703, 8192),
            (215, 1, "310", "OK", "0000:dc:00.0", 12.8, 57, 2703, 8192),
            (215, 2, "310", "OK", "0000:dd:00.0", 12.8, 57, 2703, 8192),
            (215, 3, "310", "OK", "0000:db:00.0", 12.8, 55, 2703, 8192),
        ],
    ),
    "npu-smi_info_atlas-800-training-server_model-9010_version-6.0.RC1.txt": (
        "22.0.3.1", "22.0.3.1",
        [
            (0, 0, "910A", "OK", "0000:61:00.0", 67.2, 43, 1867, 15077),
            (1, 0, "910A", "OK", "0000:db:00.0", 63.3, 38, 1867, 15077),
            (2, 0, "910A", "OK", "0000:b2:00.0", 64.8, 34, 1868, 15077),
            (3, 0, "910A", "OK", "0000:3e:00.0", 191.7, 42, 1866, 15077),
            (4, 0, "910A", "OK", "0000:60:00.0", 66.4, 44, 1867, 15077),
            (5, 0, "910A", "OK", "0000:da:00.0", 62.7, 33, 1865, 15077),
            (6, 0, "910A", "OK", "0000:b1:00.0", 64.5, 35, 1865, 15077),
            (7, 0, "910A", "OK", "0000:3d:00.0", 191.4, 40, 1866, 15077),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_ascend(recordings, name):
    table = ascend.read_table((recordings / "ascend" / name).read_text())
    chips = [
        (
            chip.npu,
            chip.chip,
            chip.name,
            chip.health,
            chip.bdf,
            chip.power_w,
            chip.temp_c,
            chip.memory_used_mb,
            chip.memory_total_mb,
        )
        for chip in table.chips
    ]
    assert (table.state, table.tool_version, table.driver_version, chips) == ("ok", *TABLES[name])


def test_sections_of_ascend(recordings):
    folder = recordings / "ascend"
    name = "npu-smi_info-m_atlas-800-training-server_model-9010_version-6.0.RC1.txt"
    assert ascend.read_map((folder / name).read_text()) == {(npu, 0): npu for npu in range(8)}
    assert ascend.read_memory((folder / "310P3duo_25.5.1_usages.txt").read_text()) == [44278, 43693]
    assert ascend.read_memory((folder / "910B_25.5.1_t-usages.txt").read_text()) == [65536]
    common = ascend.read_fields((folder / "310P3duo_25.5.1_common.txt").read_text())
    assert (common["NPU ID"], common["Chip Count"]) == ("2944", "2")
    power = ascend.read_fields((folder / "910B_25.5.1_t-power.txt").read_text())
    assert (power["NPU ID"], power["NPU Real-time Power(W)"]) == ("0", "103.5")


def sources(component: str, where: str) -> list:
    return [
        one for one in ascend.Ascend.versions if (one.component, one.how) == (component, FILE) and where in one.where
    ]


@pytest.mark.parametrize(
    ("name", "driver", "firmware"),
    [
        ("doc_version.info_24.1.rc1.txt", "24.1.rc1", None),
        ("faultdiag_npu_info_after_910A.txt", "23.0.7", "7.1.0.11.220"),
        ("faultdiag_st_npu_info_before.txt", "23.0.7", "7.1.0.11.220"),
        ("faultdiag_st_npu_info_after.txt", "23.0.7", "7.1.0.11.220"),
    ],
)
def test_version_files_of_ascend(recordings, name, driver, firmware):
    """The files of driver and firmware; in the records of another program they follow "cat <path>"."""
    text = (recordings / "ascend" / name).read_text()
    for kind, version in (("driver", driver), ("firmware", firmware)):
        body = text.partition(f"cat /usr/local/Ascend/{kind}/version.info\n")[2].partition("\n\n")[0] or text
        if version:
            (source,) = sources("driver_library" if kind == "driver" else "firmware_package", kind)
            assert extract(body, source.pattern) == version


def test_a_sick_card_of_ascend(recordings):
    """The state of a chip that lost its heartbeat, from the record of another program."""
    text = (recordings / "ascend/faultdiag_npu_info_after_910A.txt").read_text()
    answer = text[text.index("-t health") :].partition("\n\ncat")[0]
    assert ascend.read_health(answer) == ["Alarm"]


# name: slots, in use, one of them: designation, id, address
SLOTS = {
    "dmidecode_asus_ESC8000-G4.txt": (14, 9, ("PCIE1", 1, "0000:21:00.0")),
    "dmidecode_hpe_BL460c-Gen10-graphics-expansion.txt": (4, 1, ("Mezzanine Slot 1", 1, "0000:5c:00.0")),
    "dmidecode_hpe_DL380-Gen10.txt": (6, 2, ("PCI-E Slot 2", 2, "0000:37:00.0")),
    "dmidecode_hpe_DL380-Gen11.txt": (21, 3, ("PCI-E Slot 2", 2, "0000:26:00.0")),
    "dmidecode_hpe_DL385-Gen10-Plus.txt": (24, 3, ("PCI-E Slot 1", None, "0000:03:00.0")),
    "dmidecode_huawei_Atlas-500-Pro.txt": (5, 1, ("slot5", 5, "0000:0a:00.0")),
    "dmidecode_huawei_TaiShan-200.txt": (24, 7, ("slot7", 7, "0000:85:00.0")),
    "dmidecode_supermicro_AS-4124GS-TNR_a.txt": (11, 10, ("SLOT1 PCI-E 4.0 X16", None, "0000:e1:00.0")),
    "dmidecode_supermicro_AS-4124GS-TNR_b.txt": (9, 9, ("SLOT2 PCI-E 4.0 X16", None, "0000:c1:00.0")),
    "dmidecode_supermicro_AS-4125GS-TNRT2_a.txt": (16, 10, ("SLOT1 PCIe 5.0 x16", 1, "0000:c3:00.0")),
    "dmidecode_supermicro_SYS-4029GP-TRT.txt": (11, 9, ("CPU2 Slot1 PCI-E 3.0 X16", 1, "0000:88:00.0")),
}


@pytest.mark.parametrize("name", SLOTS)
def test_slot_tables(recordings, name):
    count, in_use, one = SLOTS[name]
    slots = dmi.parse_dmidecode((recordings / "kernel" / name).read_text(errors="replace"))
    assert (len(slots), sum(slot.usage == "in_use" for slot in slots)) == (count, in_use)
    assert one in [(slot.designation, slot.id, slot.address) for slot in slots if slot.usage == "in_use"]


@pytest.mark.parametrize(
    "name",
    [
        "kernel/pstore_dmesg-erst.txt",  # a crash of the memory, and the driver of NVIDIA that is loaded
        "nvidia/kmsg_peermem.log",  # a driver that lets a stale request go
        "nvidia/fabricmanager.log",  # of a service, not of the kernel
    ],
)
def test_logs_that_say_nothing_of_a_card(recordings, name):
    assert kernel_log.parse((recordings / name).read_text(errors="replace")) == []


# ------------------------------------------------------------------------------------------------------- the whole


@pytest.mark.parametrize("name", NO_ANSWERS)
def test_the_answer_to_another_question_is_nobodys_cards(recordings, name):
    text = (recordings / name).read_text(errors="replace")
    vendor = registry.VENDORS[name.partition("/")[0]]
    answer = vendor.query(OneAnswer(text), [pci.Function("0000:18:00.0")], 1)
    told = [one for one in answer.devices if one.pci_address or one.serial or one.uuid or one.health.state != "unknown"]
    # An entry of AMD with a number and nothing else answers for no card of the bus.
    assert told == []
    assert answer.devices == [] or vendor.name == "amd"


@pytest.fixture(scope="module")
def held(recordings, tmp_path_factory) -> dict:
    """Return which recordings the tests of what reads them read, and which they hold to values."""
    return ask_which_are_held(recordings, tmp_path_factory.mktemp("held"), [*READERS, "-k", NOT_THIS])


def ask_which_are_held(folder: Path, scratch: Path, tests: list) -> dict:
    command = [sys.executable, str(HERE.parent / "held.py"), str(scratch / "answer.json")]
    command += [f"--basetemp={scratch}/tests", *map(str, tests)]
    environment = {**os.environ, "ACCEL_RECORDINGS": str(folder)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    answer = json.loads((scratch / "answer.json").read_text())
    assert (answer["status"], answer["unsteady"]) == (0, []), done.stdout
    return answer


def test_every_recording_is_held_to_values_or_left_out_for_a_reason(recordings, held):
    files = {str(path.relative_to(recordings)) for path in recordings.glob("*/*")}
    files = {name for name in files if name.partition("/")[0] not in OTHERS}
    assert sorted(files - set(held["held"]) - set(NOTHING) - set(LEFT_OUT)) == []
    # What is said to be nothing, or not to be read, is no longer so once a test holds it; and a name that no file has
    # would hide the next one.
    assert sorted(set(held["held"]) & (set(NOTHING) | set(LEFT_OUT))) == []
    assert sorted((set(NOTHING) | set(LEFT_OUT)) - files) == []
    assert sorted(set(NOTHING) & set(LEFT_OUT)) == []
    # That nothing is made of it has to be seen by a test.
    assert sorted(set(NOTHING) - set(held["read"])) == []


TESTS_OF_FOUR = """
def test_of_a_value(recordings):
    assert "7 cards" in (recordings / "one/held.txt").read_text()

def test_without_one(recordings):
    assert (recordings / "one/read.txt").read_bytes() is not None
    int((recordings / "one/refused.txt").read_text())
    name = "one/named.txt"
"""


def test_a_recording_that_is_only_named_or_read_is_not_held(tmp_path):
    for name in ("held", "read", "refused", "named"):
        (tmp_path / "all/one").mkdir(parents=True, exist_ok=True)
        (tmp_path / f"all/one/{name}.txt").write_text("7" if name == "refused" else "7 cards")
    (tmp_path / "conftest.py").write_text(
        "import os, pathlib, pytest\n\n\n@pytest.fixture\ndef recordings():\n"
        "    return pathlib.Path(os.environ['ACCEL_RECORDINGS'])\n"
    )
    (tmp_path / "test_one.py").write_text(TESTS_OF_FOUR)
    answer = ask_which_are_held(tmp_path / "all", tmp_path, [tmp_path / "test_one.py", f"--rootdir={tmp_path}"])
    assert answer["held"] == ["one/held.txt"]
    assert answer["read"] == ["one/held.txt", "one/read.txt", "one/refused.txt"]
