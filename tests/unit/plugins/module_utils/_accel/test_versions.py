# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions of one host and the odd one out of many; expected values of the cases by hand, from their expected.md."""

from __future__ import annotations

import json

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import registry, versions
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors import nvidia
from doubles import HANG, RecordedRunner

PYTHON = ("3.11.2", "/usr/bin/python3")
HOST = {"/proc/sys/kernel/osrelease": "6.1.0-28-amd64\n", "/etc/os-release": 'ID=debian\nVERSION_ID="12"\n'}
LIBRARY = "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so"
CARD = {
    "vendor": "nvidia",
    "model": "NVIDIA H100 80GB HBM3",
    "pci_address": "0000:18:00.0",
    "slot": {"label": "SXM1"},
    "firmware_version": "96.00.74.00.01",
    "source": "nvidia-smi 570.86.15",
}
NVIDIA_FILES = {
    **HOST,
    "/sys/module/nvidia/version": "570.86.15\n",
    "/etc/cdi/nvidia.yaml": "- hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so.570.86.15\n",
    "/usr/local/cuda/version.json": json.dumps({"cuda": {"name": "CUDA SDK", "version": "12.8.1"}, "cuda_cccl": {}}),
}
NVIDIA_LINKS = {
    f"{LIBRARY}.1": f"{LIBRARY}.570.86.15",
    "/usr/lib/x86_64-linux-gnu/libnccl.so.2": "/usr/lib/x86_64-linux-gnu/libnccl.so.2.26.2",
}
NVIDIA_ANSWERS = {
    ("nv-fabricmanager", "--version"): (0, "\n\n\tFabric Manager version is : 570.86.15\n\n", ""),
    ("nvidia-ctk", "--version"): (0, "NVIDIA Container Toolkit CLI version 1.17.4\ncommit: 9b69590c\n", ""),
}


def observe(observation, answers=None, files=None, links=None, **more):
    runner = RecordedRunner(answers, HOST if files is None else files, links=links, **more)
    told = versions.observe(runner, observation, PYTHON)
    for row in told["versions"]:
        assert list(row) == ["component", "name", "subject", "version", "source"]
    return told, runner


def short(told):
    return {(row["component"], row["name"]): row["version"] for row in told["versions"]}


def test_an_nvidia_host():
    told, runner = observe({"devices": [CARD]}, NVIDIA_ANSWERS, NVIDIA_FILES, NVIDIA_LINKS)
    assert short(told) == {
        ("firmware", "NVIDIA H100 80GB HBM3"): "96.00.74.00.01",
        ("driver_kernel", "nvidia"): "570.86.15",
        ("driver_library", "nvidia"): "570.86.15",
        ("fabric_manager", "nvidia"): "570.86.15",
        ("cdi", "nvidia"): "570.86.15",
        ("runtime", "cuda"): "12.8.1",
        ("collectives", "nccl"): "2.26.2",
        ("container_toolkit", "nvidia-ctk"): "1.17.4",
        ("kernel", "linux"): "6.1.0-28-amd64",
        ("os", "debian"): "12",
        ("python", "python"): "3.11.2",
    }
    assert told["errors"] == []
    assert told["versions"][0]["subject"] == "SXM1"
    assert all(row["source"] for row in told["versions"])
    assert set(runner.timeouts) == {10}


def test_an_amd_host():
    header = '#define NCCL_MAJOR 2\n#define NCCL_MINOR 21\n#define NCCL_PATCH 5\n#define NCCL_SUFFIX ""\n'
    files = {**HOST, "/sys/module/amdgpu/version": "6.12.12\n", "/opt/rocm/.info/version": "6.4.1-83\n"}
    missing = {("dpkg-query", "-W", "-f=${Version}", "rccl"): (1, "", "dpkg-query: no packages found matching rccl\n")}
    observation = {"unanswered": [{"vendor": "amd"}]}
    told, _unused = observe(observation, missing, files)
    assert short(told)["driver_kernel", "amdgpu"] == "6.12.12"
    assert short(told)["runtime", "rocm"] == "6.4.1"
    assert short(told)["collectives", "rccl"] is None
    assert told["errors"] == []
    told, _unused = observe(observation, missing, {**files, "/opt/rocm/include/rccl/rccl.h": header})
    assert short(told)["collectives", "rccl"] == "2.21.5"
    package = {("dpkg-query", "-W", "-f=${Version}", "rccl"): (0, "2.22.3.60401-83~22.04", "")}
    told, _unused = observe(observation, package, files)
    assert short(told)["collectives", "rccl"] == "2.22.3"


def test_an_ascend_host():
    files = {
        **HOST,
        "/usr/local/Ascend/driver/version.info": "Version=24.1.rc1\nascendhal_version=7.35.19\n",
        "/usr/local/Ascend/firmware/version.info": "Version=7.1.0.11.220\n",
        "/usr/local/Ascend/ascend-toolkit/latest/version.cfg": "# version: 1.0\n"
        "runtime_running_version=[7.7.T20.0.B210:8.1.RC1]\nhccl_running_version=[7.7.T20.0.B210:8.1.RC1]\n"
        "toolkit_running_version=[7.7.T20.0.B210:8.1.RC1]\n",
    }
    drivers = [{"vendor": "ascend", "kernel_version": "24.1.rc1", "library_version": "24.1.rc1"}]
    told, _unused = observe({"drivers": drivers}, files=files)
    assert short(told) == {
        ("firmware_package", "ascend"): "7.1.0.11.220",
        ("driver_kernel", "ascend"): "24.1.rc1",
        ("driver_library", "ascend"): "24.1.rc1",
        ("runtime", "cann"): "8.1.RC1",
        ("collectives", "hccl"): "8.1.RC1",
        ("kernel", "linux"): "6.1.0-28-amd64",
        ("os", "debian"): "12",
        ("python", "python"): "3.11.2",
    }
    assert told["errors"] == []


def test_what_is_not_installed_is_null_and_no_error():
    told, _unused = observe({"devices": [CARD]})
    empty = {row["component"]: row["source"] for row in told["versions"] if row["version"] is None}
    assert empty == dict.fromkeys(
        ["driver_kernel", "driver_library", "fabric_manager", "cdi", "runtime", "collectives", "container_toolkit"]
    )
    assert told["errors"] == []


@pytest.mark.parametrize("answer", [HANG, (127, "", "not found"), (0, "no number here", "")])
def test_what_can_not_be_read_is_named(answer):
    command = ("nv-fabricmanager", "--version")
    files = {**NVIDIA_FILES, "/usr/local/cuda/version.json": "{", "/etc/os-release": ""}
    told, _unused = observe({"devices": [CARD]}, {**NVIDIA_ANSWERS, command: answer}, files, NVIDIA_LINKS)
    rows = {row["component"]: row for row in told["versions"]}
    assert (rows["fabric_manager"]["version"], rows["fabric_manager"]["source"]) == (None, "nv-fabricmanager --version")
    assert (rows["runtime"]["version"], rows["runtime"]["source"]) == (None, "/usr/local/cuda/version.json")
    assert rows["os"]["version"] is None
    for word in ("fabric_manager: nv-fabricmanager --version", "/usr/local/cuda/version.json", "/etc/os-release"):
        assert any(word in error for error in told["errors"])


def test_several_files_with_several_versions_are_all_told():
    files = {
        **NVIDIA_FILES,
        "/etc/cdi/nvidia-old.yaml": "libcuda.so.550.54.15",
        "/etc/cdi/nvidia.yaml": "libcuda.so.570.1",
    }
    told, _unused = observe({"devices": [CARD]}, NVIDIA_ANSWERS, files, NVIDIA_LINKS)
    rows = [(row["subject"], row["version"]) for row in told["versions"] if row["component"] == "cdi"]
    assert rows == [("/etc/cdi/nvidia-old.yaml", "550.54.15"), ("/etc/cdi/nvidia.yaml", "570.1")]


def test_a_host_without_cards_and_a_vendor_that_is_not_known():
    runner = RecordedRunner({}, HOST)
    told = versions.observe(runner, {}, PYTHON, ["nvidia", "acme"])
    assert ("runtime", "cuda") in short(told)
    assert ["acme" in error for error in told["errors"]] == [True]
    assert [row["component"] for row in versions.observe(runner, {}, PYTHON)["versions"]] == ["kernel", "os", "python"]


def test_every_source_is_of_a_known_component_and_has_groups():
    assert {"nvidia", "amd", "ascend"} <= {name for name in registry.VENDORS if registry.VENDORS[name].versions}
    for name in registry.VENDORS:
        for source in registry.VENDORS[name].versions:
            assert source.component in versions.COMPONENTS
            assert "(" in source.pattern


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('ID=ubuntu\nVERSION_ID="22.04"\n', ("ubuntu", "22.04")),
        ("ID=debian\nVERSION_CODENAME=forky\n", ("debian", "forky")),
        ("", (None, None)),
        ("nonsense", (None, None)),
    ],
)
def test_os_release(text, told):
    assert versions.parse_os_release(text) == told


# ----------------------------------------------------------------------------------------------------- many hosts


def told(**by_component):
    """Return the answer of a host with these versions; "?" is one that could not be read."""
    rows = []
    for component, version in by_component.items():
        known = None if version in (None, "?") else version
        rows.append(versions._row(component, "x", version=known, source=None if version is None else "a file"))
    return {"versions": rows, "errors": []}


def judged(pins=None, **hosts):
    (entry,) = versions.odd({name: told(runtime=version) for name, version in hosts.items()}, pins)
    return entry["verdict"], entry["basis"], entry["expected"], [row["host"] for row in entry["odd"]], entry["not_told"]


@pytest.mark.parametrize(
    ("hosts", "outcome"),
    [
        ({"a": "1.2", "b": "1.2"}, ("pass", "majority", "1.2", [], [])),
        ({"a": "1.2", "b": "1.2", "c": "1.3"}, ("fail", "majority", "1.2", ["c"], [])),
        ({"a": "1.2", "b": "1.3"}, ("unknown", "no_majority", None, [], [])),
        ({"a": "1", "b": "2", "c": "3"}, ("unknown", "no_majority", None, [], [])),
        # More than half, not only the most: two of four say nothing about the others.
        ({"a": "1.2", "b": "1.2", "c": "1.3", "d": "1.4"}, ("unknown", "no_majority", None, [], [])),
        ({"a": "1.2"}, ("pass", "majority", "1.2", [], [])),
        # Not installed is a state like any other.
        ({"a": "1.2", "b": "1.2", "c": None}, ("fail", "majority", "1.2", ["c"], [])),
        ({"a": None, "b": None, "c": "1.2"}, ("fail", "majority", None, ["c"], [])),
        # What could not be read proves nothing, and is no pass.
        ({"a": "1.2", "b": "1.2", "c": "?"}, ("unknown", "majority", "1.2", [], ["c"])),
        ({"a": "1.2", "b": "1.2", "c": "1.3", "d": "?"}, ("fail", "majority", "1.2", ["c"], ["d"])),
        ({"a": "?", "b": "?"}, ("unknown", "no_majority", None, [], ["a", "b"])),
        # Short forms are the version that they begin.
        ({"a": "570.124", "b": "570.124.06"}, ("pass", "majority", "570.124.06", [], [])),
        ({"a": "570.124.06", "b": "570.124", "c": "570.86.15"}, ("fail", "majority", "570.124.06", ["c"], [])),
        # One that would fit two releases does not decide between them.
        (
            {"a": "570.124", "b": "570.124", "c": "570.124.04", "d": "570.124.06"},
            ("unknown", "no_majority", None, [], []),
        ),
        (
            {"a": "570.124.04", "b": "570.124.04", "c": "570.124", "d": "570.124.06"},
            ("fail", "majority", "570.124.04", ["d"], []),
        ),
    ],
)
def test_the_majority(hosts, outcome):
    assert judged(**hosts) == outcome


def test_a_pin_goes_before_the_majority():
    pins = {"runtime": "1.3"}
    assert judged(pins, a="1.2", b="1.2", c="1.3") == ("fail", "pinned", "1.3", ["a", "b"], [])
    assert judged({"runtime": {"x": "1.2", "y": "9"}}, a="1.2", b="1.2.1") == ("pass", "pinned", "1.2", [], [])
    assert judged({"runtime": {"y": "9"}}, a="1.2", b="1.2")[1] == "majority"
    # Not there is not another version.
    assert judged(pins, a="1.3", b=None) == ("unknown", "pinned", "1.3", [], ["b"])


def test_hosts_without_an_answer_are_no_pass():
    (entry,) = versions.odd({"a": told(runtime="1"), "b": {"failed": True}, "c": None, "d": "x"})
    assert (entry["verdict"], entry["not_told"]) == ("unknown", ["b", "c", "d"])
    assert versions.odd({"a": None}) == []


def test_cards_are_held_against_cards_of_their_model():
    rows = [{**CARD, "slot": {"label": f"SXM{number}"}} for number in range(1, 9)]
    odd = [{**row, "firmware_version": "96.00.5E.00.01"} if row["slot"]["label"] == "SXM3" else row for row in rows]
    other = [{**CARD, "model": "NVIDIA H200", "firmware_version": "96.00.BC.00.02"}]
    hosts = {host: {"versions": versions.card_rows({"devices": cards})} for host, cards in
             {"gpu-01": rows, "gpu-02": odd, "gpu-03": other}.items()}  # fmt: skip
    first, second = versions.odd(hosts)
    assert (first["name"], first["expected"], first["count"]) == ("NVIDIA H100 80GB HBM3", "96.00.74.00.01", 16)
    assert [(row["host"], row["subject"], row["version"]) for row in first["odd"]] == [
        ("gpu-02", "SXM3", "96.00.5E.00.01")
    ]
    assert (second["name"], second["verdict"]) == ("NVIDIA H200", "pass")


def test_case_03(cases):
    """The library moved on, the module did not: the library is off the pin, and there is no third version."""
    folder = cases / "03-nvml-version-mismatch"
    failure = nvidia.parse_failure((folder / "smi_stdout.txt").read_text())
    # The package libnvidia-compute 570.124.06 (dpkg_l.txt) brings this name.
    links = {f"{LIBRARY}.1": f"{LIBRARY}.570.124.06"}
    files = {**HOST, "/proc/driver/nvidia/version": (folder / "proc_driver_nvidia_version.txt").read_text()}
    drivers = [{"vendor": "nvidia", "kernel_version": "570.86.15", "library_version": failure.library_version}]
    seen, _unused = observe({"drivers": drivers}, files=files, links=links)
    assert failure.library_version == "570.124"
    assert short(seen)["driver_kernel", "nvidia"] == "570.86.15"
    assert short(seen)["driver_library", "nvidia"] == "570.124.06"
    assert seen["errors"] == []
    entries = {entry["component"]: entry for entry in versions.odd({"gpu-01": seen}, {"driver": "570.86.15"})}
    assert entries["driver_kernel"]["verdict"] == "pass"
    assert entries["driver_library"]["verdict"] == "fail"
    assert [row["version"] for row in entries["driver_library"]["odd"]] == ["570.124.06"]
    assert "fabric_manager" not in entries


def test_a_library_that_is_another_than_the_tool_says_is_told():
    links = {f"{LIBRARY}.1": f"{LIBRARY}.570.124.06"}
    drivers = [{"vendor": "nvidia", "kernel_version": "570.86.15", "library_version": "570.86.15"}]
    seen, _unused = observe({"drivers": drivers}, files=NVIDIA_FILES, links=links)
    assert any("570.124.06" in error and "570.86.15" in error for error in seen["errors"])


def test_case_19(cases):
    """The fabric manager of n02 and the device file of n04 are off. Holds and services are no versions."""
    case = json.loads((cases / "19-driver-stack-versions/nodes.json").read_text())
    hosts = {}
    for name, node in case["nodes"].items():
        answers = {("nv-fabricmanager", "--version"): (0, node["fm_version"] + "\n", "")}
        files = {**HOST, "/proc/driver/nvidia/version": node["kernel"] + "\n", "/etc/cdi/nvidia.yaml": node["cdi"]}
        hosts[name], _unused = observe({"drivers": [{"vendor": "nvidia"}]}, answers, files)
        assert hosts[name]["errors"] == []
    for pins in ({"driver": case["pinned"]}, {}):  # five of six are right, so the majority tells the same
        entries = {entry["component"]: entry for entry in versions.odd(hosts, pins)}
        odd = {name: [(row["host"], row["version"]) for row in entry["odd"]] for name, entry in entries.items()}
        assert odd["driver_kernel"] == []
        assert odd["fabric_manager"] == [("gpu-n02", "570.124.06")]
        assert odd["cdi"] == [("gpu-n04", "570.124.06")]
        assert {entries[name]["expected"] for name in ("driver_kernel", "fabric_manager", "cdi")} == {"570.86.15"}
        assert [name for name, entry in entries.items() if entry["verdict"] == "fail"] == ["fabric_manager", "cdi"]
