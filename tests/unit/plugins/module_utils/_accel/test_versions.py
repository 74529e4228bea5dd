# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions of one host and the odd one out of many; expected values of the cases by hand, from their expected.md."""

from __future__ import annotations

import itertools
import json

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import packages, registry, versions
from ansible_collections.accel.cluster.plugins.module_utils._accel.runner import Result
from ansible_collections.accel.cluster.plugins.module_utils._accel.text import same_version
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


class Host(RecordedRunner):
    """A host with a dpkg database: ``packages`` are installed, ``database`` answers instead where it is given."""

    def __init__(self, *arguments, packages=None, database=None, program="dpkg-query", **more):
        super().__init__(*arguments, **more)
        self.tools.add(program)
        self.packages, self.database, self.program = packages or {}, database, program

    def run(self, argv, timeout_seconds):
        if not argv[0].endswith(f"/{self.program}"):
            return super().run(argv, timeout_seconds)
        names = argv[3 if self.program == "dpkg-query" else 4 :]
        self.calls.append((self.program, *names))
        if self.database == HANG:
            return Result(argv, None, "", "", hung=True)
        if self.database:
            return Result(argv, *self.database)
        there = "".join(f"installed {name} {self.packages[name]}\n" for name in names if name in self.packages)
        absent = [name for name in names if name not in self.packages]
        if self.program == "rpm":
            return Result(argv, len(absent), there + "".join(f"package {one} is not installed\n" for one in absent), "")
        said = "".join(f"dpkg-query: no packages found matching {name}\n" for name in absent)
        return Result(argv, 1 if absent else 0, there, said)


def observe(observation, answers=None, files=None, links=None, **more):
    runner = Host(answers, HOST if files is None else files, links=links, **more)
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
        ("image", "base"): None,
        ("kernel", "linux"): "6.1.0-28-amd64",
        ("os", "debian"): "12",
        ("python", "python"): "3.11.2",
    }
    assert told["errors"] == []
    assert told["versions"][0]["subject"] == "SXM1"
    assert all(row["source"] for row in told["versions"] if row["component"] != "image")
    assert set(runner.timeouts) == {10}


def test_an_amd_host():
    header = '#define NCCL_MAJOR 2\n#define NCCL_MINOR 21\n#define NCCL_PATCH 5\n#define NCCL_SUFFIX ""\n'
    files = {**HOST, "/sys/module/amdgpu/version": "6.12.12\n", "/opt/rocm/.info/version": "6.4.1-83\n"}
    observation = {"unanswered": [{"vendor": "amd"}]}
    told, _unused = observe(observation, files=files)
    assert short(told)["driver_kernel", "amdgpu"] == "6.12.12"
    assert short(told)["runtime", "rocm"] == "6.4.1"
    empty = [("collectives", "rccl"), ("container_toolkit", "amd-ctk"), ("firmware_package", "amdgpu")]
    assert [short(told)[key] for key in empty] == [None, None, None]
    assert told["errors"] == []
    told, _unused = observe(observation, files={**files, "/opt/rocm/include/rccl/rccl.h": header})
    assert short(told)["collectives", "rccl"] == "2.21.5"
    installed = {
        "rccl": "2.22.3.60401-83~22.04",
        "amdgpu-dkms-firmware": "1:6.12.12.60401-2164967.22.04",
        "amd-container-toolkit": "1.1.0",
        "rocm-core": "6.4.1.60401-83~22.04",
    }
    told, runner = observe(observation, files=HOST, packages=installed)
    assert short(told)["collectives", "rccl"] == "2.22.3"
    assert short(told)["firmware_package", "amdgpu"] == "6.12.12.60401-2164967.22.04"
    assert short(told)["container_toolkit", "amd-ctk"] == "1.1.0"
    assert short(told)["runtime", "rocm"] == "6.4.1"
    assert {row["source"] for row in told["versions"] if row["component"] == "runtime"} == {"dpkg-query rocm-core"}
    assert sum(call[0] == "dpkg-query" for call in runner.calls) == 1  # one question for all packages
    told, _unused = observe(observation, files={**HOST, "/opt/rocm-6.3.0/.info/version": "6.3.0-39\n"})
    assert short(told)["runtime", "rocm"] == "6.3.0"


# vendor -> files, links and packages of a host, and what they tell. Each in the form that its vendor's documents show.
OTHERS = {
    "gaudi": (
        {"/sys/module/habanalabs/version": "1.21.0-ca59b5a\n"},
        {},
        {
            "habanalabs-firmware": "1.21.0-555",
            "habanalabs-thunk": "1.21.0-555",
            "habanalabs-graph": "1.21.0-555",
            "habanalabs-container-runtime": "1.21.0-555",
        },
        {
            ("firmware_package", "habanalabs"): "1.21.0-555",
            ("driver_kernel", "gaudi"): "1.21.0-ca59b5a",
            ("driver_library", "gaudi"): "1.21.0-555",
            ("runtime", "synapse"): "1.21.0-555",
            ("collectives", "hccl-gaudi"): "1.21.0-555",
            ("container_toolkit", "habana-container-runtime"): "1.21.0-555",
        },
    ),
    "intel": (
        {},
        {"/opt/intel/oneapi/ccl/latest": "/opt/intel/oneapi/ccl/2021.15"},
        {"libze1": "1.21.9.0-1136~24.04", "libze-intel-gpu1": "25.18.33578.15-1146~24.04"},
        {
            ("driver_library", "level-zero"): "1.21.9.0-1136~24.04",
            ("runtime", "compute-runtime"): "25.18.33578.15-1146~24.04",
            ("collectives", "oneccl"): "2021.15",
        },
    ),
    "hygon": (
        {"/sys/module/hydcu/version": "6.3.13\n", "/opt/dtk/.info/rocm_version": "25.04.4\n"},
        {},
        {},
        {("driver_kernel", "hygon"): "6.3.13", ("runtime", "dtk"): "25.04.4"},
    ),
    "mthreads": (
        {
            "/sys/module/mtgpu/version": "3.3.1\n",
            "/usr/local/musa/version.json": '{\n "mcc": {"version": "9"},\n "musa_toolkits": {\n  "version": "5.1.0",\n'
            '  "git branch": "x"\n }\n}\n',
        },
        {},
        {"mt-container-toolkit": "2.0.0"},
        {
            ("driver_kernel", "mthreads"): "3.3.1",
            ("runtime", "musa"): "5.1.0",
            ("container_toolkit", "mt-container-toolkit"): "2.0.0",
        },
    ),
    "metax": (
        {"/opt/mxdriver/Version.txt": "Version:2.14.6\n", "/opt/maca/Version.txt": "Version:3.3.0.15\n"},
        {},
        {},
        {("driver_kernel", "metax"): None, ("driver_library", "metax"): "2.14.6", ("runtime", "maca"): "3.3.0.15"},
    ),
    "cambricon": (
        {"/usr/local/neuware/version.txt": "Neuware Version 3.9.0\n"},
        {},
        {},
        {("driver_kernel", "cambricon"): None, ("runtime", "neuware"): "3.9.0"},
    ),
    "neuron": (
        {},
        {},
        {
            "aws-neuronx-dkms": "2.30.2.0",
            "aws-neuronx-runtime-lib": "2.34.10.0-ac18d186d",
            "aws-neuronx-collectives": "2.34.10.0-74eaafac6",
        },
        {
            ("driver_kernel", "neuron"): "2.30.2.0",
            ("runtime", "neuron"): "2.34.10.0-ac18d186d",
            ("collectives", "neuron"): "2.34.10.0-74eaafac6",
            ("container_toolkit", "neuron-oci-hook"): None,
        },
    ),
    "tenstorrent": (
        {"/sys/module/tenstorrent/version": "2.3.0\n"},
        {},
        {},
        {("driver_kernel", "tenstorrent"): "2.3.0"},
    ),
    "iluvatar": ({"/sys/module/iluvatar/version": "4.3.0\n"}, {}, {}, {("driver_kernel", "iluvatar"): "4.3.0"}),
    "kunlunxin": ({"/sys/module/kunlun/version": "5.0.21\n"}, {}, {}, {("driver_kernel", "kunlunxin"): "5.0.21"}),
    "enflame": ({"/sys/module/enflame/version": "1.4.1\n"}, {}, {}, {("driver_kernel", "enflame"): "1.4.1"}),
}


@pytest.mark.parametrize("vendor", OTHERS)
def test_hosts_of_other_vendors(vendor):
    files, links, installed, expected = OTHERS[vendor]
    told, _unused = observe({"drivers": [{"vendor": vendor}]}, {}, {**HOST, **files}, links, packages=installed)
    system = {("image", "base"): None, ("kernel", "linux"): "6.1.0-28-amd64", ("os", "debian"): "12"}
    assert short(told) == {**expected, **system, ("python", "python"): "3.11.2"}
    assert told["errors"] == []


def test_the_vendors_without_software_that_tells_a_version_are_known():
    # Of their cards the firmware and the driver come from the tool.
    assert {name for name in registry.VENDORS if not registry.VENDORS[name].versions} == {"tpu", "denglin"}


@pytest.mark.parametrize(
    ("database", "problem"),
    [
        (HANG, "dpkg-query: no answer in time"),
        ((2, "", "dpkg-query: error: failed to open package info file\n"), "dpkg-query: ended with 2"),
        ((1, "", ""), "dpkg-query: ended with 1"),
        ((127, "", "No such file or directory"), "dpkg-query: ended with 127"),
        # What it said before it broke off holds, what it did not get to is not known.
        ((2, "installed rccl 2.22.3-1\n", "dpkg-query: error: read error\n"), "dpkg-query: ended with 2"),
    ],
)
def test_a_package_database_that_does_not_answer_is_no_empty_one(database, problem):
    told, _unused = observe({"drivers": [{"vendor": "amd"}]}, database=database)
    rows = {row["component"]: (row["version"], row["source"]) for row in told["versions"]}
    assert rows["firmware_package"] == rows["runtime"] == (None, "packages")
    rccl = ("2.22.3", "dpkg-query rccl") if database[0] == 2 and database[1] else (None, "packages")
    assert rows["collectives"] == rccl
    assert len(told["errors"]) == 1 and told["errors"][0].startswith(problem)
    entries = {one["component"]: one["verdict"] for one in versions.odd({"a": told})}
    assert entries["runtime"] == "unknown"


def test_a_host_without_a_package_database_does_not_know():
    runner = RecordedRunner({}, HOST)
    told = versions.observe(runner, {"drivers": [{"vendor": "neuron"}]}, PYTHON)
    assert told["errors"] == ["neither dpkg-query nor rpm is installed"]
    assert {row["source"] for row in told["versions"] if row["component"] == "runtime"} == {"packages"}
    # A file that tells it needs no database.
    runner = RecordedRunner({}, {**HOST, "/opt/rocm/.info/version": "6.4.1-83\n"})
    told = versions.observe(runner, {"drivers": [{"vendor": "amd"}]}, PYTHON)
    assert short(told)["runtime", "rocm"] == "6.4.1"


def test_rpm_is_asked_where_it_is():
    told, _unused = observe(
        {"drivers": [{"vendor": "neuron"}]}, packages={"aws-neuronx-dkms": "2.30.2.0-dkms"}, program="rpm"
    )
    assert short(told)["driver_kernel", "neuron"] == "2.30.2.0-dkms"
    assert short(told)["runtime", "neuron"] is None
    assert told["errors"] == []
    assert [row["source"] for row in told["versions"] if row["component"] == "driver_kernel"] == [
        "rpm aws-neuronx-dkms"
    ]
    told, _unused = observe(
        {"drivers": [{"vendor": "neuron"}]}, database=(1, "", "error: cannot open Packages index\n"), program="rpm"
    )
    assert told["errors"][0].startswith("rpm: ended with 1: error: cannot open")
    assert {row["source"] for row in told["versions"] if row["component"] == "runtime"} == {"packages"}


def test_a_package_of_which_only_the_configuration_is_left_is_not_installed():
    told, _unused = observe(
        {"drivers": [{"vendor": "amd"}]},
        database=(1, "config-files rccl 2.22.3-1\n", "dpkg-query: no packages found matching rocm-core\n"),
    )
    assert short(told)["collectives", "rccl"] is None
    assert told["errors"] == []
    assert packages.parse_packages("config-files rccl 2.22.3-1\ninstalled a 1\n") == {"a": "1"}


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({}, (None, None)),
        (
            {"/etc/os-release": 'ID=sle\nVERSION_ID="15"\nIMAGE_ID=node\nIMAGE_VERSION="2026.11"\n'},
            ("2026.11", "/etc/os-release"),
        ),
        ({"/etc/cloud/build.info": "build_name: server\nserial: 20260901\n"}, ("20260901", "/etc/cloud/build.info")),
        (
            {"/etc/dgx-release": 'DGX_NAME="x"\nDGX_SWBUILD_VERSION="6.0.11"\n'},
            ("6.0.11", "/etc/dgx-release"),
        ),
        (
            {
                "/etc/dgx-release": 'DGX_SWBUILD_VERSION="6.0.11"\nDGX_OTA_VERSION="6.1.0"\nDGX_OTA_DATE="x"\n'
                'DGX_OTA_VERSION="6.2.1"\n'
            },
            ("6.2.1", "/etc/dgx-release"),
        ),
        # Whose os-release can't be read does not know whether it names an image.
        ({"/etc/os-release": ""}, (None, "/etc/os-release")),
    ],
)  # fmt: skip
def test_the_base_image(files, told):
    seen, _unused = observe({}, files={**HOST, **files})
    (row,) = [row for row in seen["versions"] if row["component"] == "image"]
    assert (row["version"], row["source"]) == told


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
        ("container_toolkit", "ascend-docker-runtime"): None,
        ("image", "base"): None,
        ("kernel", "linux"): "6.1.0-28-amd64",
        ("os", "debian"): "12",
        ("python", "python"): "3.11.2",
    }
    assert told["errors"] == []


def test_older_ascend_software_and_its_container_runtime():
    files = {
        "/usr/local/Ascend/ascend-toolkit/latest/aarch64-linux/ascend_toolkit_install.info": "package_name=x\n"
        "version=7.0.0\ninnerversion=V100R001C13B222\ncompatible_version=[V100R001C29]\n",
        "/usr/local/Ascend/nnae/latest/ascend_nnae_install.info": "version=8.0.RC3\n",
        "/usr/local/Ascend/Ascend-Docker-Runtime/ascend_docker_runtime_install.info": "version=v6.0.0\narch=aarch64\n",
    }
    told, _unused = observe({"drivers": [{"vendor": "ascend"}]}, files={**HOST, **files})
    assert short(told)["runtime", "cann"] == "7.0.0"  # the toolkit goes before the engine alone
    assert short(told)["container_toolkit", "ascend-docker-runtime"] == "6.0.0"
    del files["/usr/local/Ascend/ascend-toolkit/latest/aarch64-linux/ascend_toolkit_install.info"]
    told, _unused = observe({"drivers": [{"vendor": "ascend"}]}, files={**HOST, **files})
    assert short(told)["runtime", "cann"] == "8.0.RC3"


def test_what_is_not_installed_is_null_and_no_error():
    told, _unused = observe({"devices": [CARD]})
    empty = {row["component"]: row["source"] for row in told["versions"] if row["version"] is None}
    assert empty == dict.fromkeys(
        [
            "driver_kernel",
            "driver_library",
            "fabric_manager",
            "cdi",
            "runtime",
            "collectives",
            "container_toolkit",
            "image",
        ]
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
    runner = Host({}, HOST)
    told = versions.observe(runner, {}, PYTHON, ["nvidia", "acme"])
    assert ("runtime", "cuda") in short(told)
    assert ["acme" in error for error in told["errors"]] == [True]
    told = versions.observe(runner, {}, PYTHON)
    assert [row["component"] for row in told["versions"]] == ["image", "kernel", "os", "python"]


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


STATES = ("1.2", "1.2.3", "1.2.4", "1.3", None, "?")


@pytest.mark.parametrize("pin", [None, "1.2", "1.2.3", "1.9"])
def test_every_combination_of_a_few_hosts_keeps_the_promises(pin):
    """Short forms, releases of one short form, not installed, unreadable, with and without a declared version."""
    for size in (1, 2, 3, 4):
        for combination in itertools.product(STATES, repeat=size):
            hosts = {f"h{number}": told(runtime=version) for number, version in enumerate(combination)}
            entries = versions.odd(hosts, {"runtime": pin} if pin else None)
            if not entries:
                # Nobody has it and nobody asked for it.
                assert set(combination) == {None} and pin is None
                continue
            (entry,) = entries
            known = [version for version in combination if version != "?"]
            odd = [row["version"] for row in entry["odd"]]
            # What could not be read is equal to nothing, and is named.
            lacking = [f"h{number}" for number, version in enumerate(combination) if version == "?"]
            assert set(lacking) <= set(entry["not_told"])
            assert entry["count"] == len(known)
            if lacking or entry["basis"] == "no_majority":
                assert entry["verdict"] != "pass"
            assert (entry["verdict"] == "fail") == bool(odd)
            if pin:
                fitting = [version for version in known if version and same_version(version, pin)]
                off = [version for version in known if version and version not in fitting]
                alike = [version for version in fitting if _fits(version, entry["expected"])]
                if all(_fits(one, other) for one in fitting for other in fitting):
                    assert (entry["basis"], entry["expected"], odd) == ("pinned", pin, off)
                    assert (entry["verdict"] == "pass") == (not odd and not lacking and None not in known)
                elif entry["basis"] == "pinned":
                    # A short form fits several: those that differ from what more than half of the fitting tell.
                    assert entry["expected"] in fitting and 2 * len(alike) > len(fitting)
                    assert sorted(odd) == sorted(version for version in known if version and version not in alike)
                else:
                    assert (entry["basis"], entry["expected"], odd) == ("no_majority", pin, off)
                continue
            # The expected version is what more than half tell, and those that fit it fit each other; where half of
            # the hosts or more could not be read, there is none.
            assert entry["basis"] == "no_majority" or 2 * len(known) > size
            alike = [version for version in known if _fits(version, entry["expected"])]
            if entry["basis"] == "majority":
                assert 2 * len(alike) > len(known)
                assert all(_fits(one, other) for one in alike for other in alike)
                assert sorted(map(str, odd)) == sorted(str(one) for one in known if not _fits(one, entry["expected"]))
            else:
                assert (odd, entry["expected"]) == ([], None)
            if entry["verdict"] == "pass":
                assert all(_fits(one, other) for one in known for other in known) and known
            # The order of the hosts plays no part.
            turned = versions.odd(dict(reversed(hosts.items())))[0]
            assert (turned["verdict"], turned["expected"], turned["odd"]) == (
                entry["verdict"],
                entry["expected"],
                entry["odd"],
            )


def _fits(one, other):
    return one == other or same_version(one, other)


@pytest.mark.parametrize("pin", ["", None, "570.86.15"])
def test_a_host_that_is_alone_with_a_version_is_not_odd_when_the_others_do_not_know(pin):
    hosts = {"a": told(driver_kernel="570.86.15"), "b": told(driver_kernel="?"), "c": None}
    (entry,) = versions.odd(hosts, {"driver": pin})
    assert (entry["verdict"], entry["odd"], entry["not_told"]) == ("unknown", [], ["b", "c"])


def test_two_cards_of_one_host_may_differ():
    rows = [{**CARD, "slot": {"label": f"SXM{number}"}, "firmware_version": version} for number, version in
            enumerate(["96.00.1", "96.00.1", "96.00.2", None])]  # fmt: skip
    (entry,) = versions.odd({"a": {"versions": versions.card_rows({"devices": rows})}})
    assert (entry["verdict"], [row["subject"] for row in entry["odd"]], entry["not_told"]) == ("fail", ["SXM2"], ["a"])


def test_a_card_that_does_not_answer_is_not_told():
    """Of a card that is lost or hangs nobody read the firmware; those that answer say which model it is one of."""
    well = {**CARD, "pci_id": "10de:2330"}
    lost = {"pci_address": "0000:2a:00.0", "pci_id": "10de:2330", "vendor": "nvidia", "slot": {"label": "SXM2"}}
    unknown = [{**lost, "pci_id": "10de:1eb8"}, {**lost, "pci_id": None}, {**lost, "model": "", "pci_id": ""}]
    rows = versions.card_rows({"devices": [well], "unanswered": [lost, *unknown]})
    assert [tuple(row.values()) for row in rows] == [
        ("firmware", "NVIDIA H100 80GB HBM3", "SXM1", "96.00.74.00.01", "nvidia-smi 570.86.15"),
        ("firmware", "NVIDIA H100 80GB HBM3", "SXM2", None, "sysfs"),
    ]
    (entry,) = versions.odd({"a": {"versions": rows}, "b": {"versions": rows[:1]}})
    assert (entry["verdict"], entry["expected"], entry["not_told"]) == ("unknown", "96.00.74.00.01", ["a"])
    # A card that its tool named before it was lost needs no other to tell its model.
    assert versions.card_rows({"unanswered": [{**lost, "model": "NVIDIA H200"}]})[0]["name"] == "NVIDIA H200"


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


DRIVERLESS = {"versions": [versions._row("kernel", "linux", version="6.1.0", source="a file")], "errors": []}


@pytest.mark.parametrize("pins", [{}, {"driver": "570.86.15"}])
@pytest.mark.parametrize(("having", "basis"), [(3, "majority"), (1, "no_majority")])
def test_a_host_that_has_no_row_of_what_the_others_have_is_not_told(having, basis, pins):
    """Its driver is gone, so that nobody looked for its version; few that tell are no majority of all."""
    hosts = {name: told(driver_kernel="570.86.15", kernel="6.1.0") for name in "abcd"[:having]}
    hosts.update(dict.fromkeys("abcd"[having:], DRIVERLESS))
    entries = {entry["component"]: entry for entry in versions.odd(hosts, pins)}
    found = entries["driver_kernel"]
    assert (found["verdict"], found["odd"], found["not_told"]) == ("unknown", [], list("abcd"[having:]))
    assert (found["basis"], found["count"]) == ("pinned" if pins else basis, having)
    assert found["expected"] == (None if found["basis"] == "no_majority" else "570.86.15")


@pytest.mark.parametrize("answer", [{"versions": []}, {"versions": [None, {"component": "acme"}]}, None])
def test_an_answer_without_a_row_that_is_known_tells_nothing(answer):
    (entry,) = versions.odd({"a": told(runtime="1"), "b": told(runtime="1"), "c": answer})
    assert (entry["verdict"], entry["not_told"]) == ("unknown", ["c"])


def test_a_host_that_observes_no_driver_is_not_told():
    well, _unused = observe({"devices": [CARD]}, NVIDIA_ANSWERS, NVIDIA_FILES, NVIDIA_LINKS)
    bare, _unused = observe({})
    entries = versions.odd({"gpu-01": well, "gpu-02": well, "gpu-03": bare}, {"driver": "570.86.15"})
    lacking = {entry["component"] for entry in entries if entry["not_told"] == ["gpu-03"]}
    assert lacking == {
        "firmware", "driver_kernel", "driver_library", "fabric_manager", "cdi", "runtime", "collectives",
        "container_toolkit",
    }  # fmt: skip
    assert {entry["component"] for entry in entries if entry["verdict"] == "pass"} == {"kernel", "os", "python"}


def test_a_driver_of_another_vendor_tells_nothing_of_this_one():
    row = versions._row("driver_kernel", "amdgpu", version="6.12.12", source="a file")
    hosts = {"a": told(driver_kernel="570.1"), "b": told(driver_kernel="570.1"), "c": {"versions": [row]}}
    found = {entry["name"]: (entry["verdict"], entry["not_told"]) for entry in versions.odd(hosts)}
    assert found == {"x": ("unknown", ["c"]), "amdgpu": ("unknown", ["a", "b"])}


@pytest.mark.parametrize(
    ("pins", "named"),
    [
        ({"driver": "570.86.15"}, [("driver_kernel", None, "570.86.15")]),
        ({"driver_library": "570.86.15"}, [("driver_library", None, "570.86.15")]),
        ({"driver": "570.86.15", "driver_kernel": "570"}, [("driver_kernel", None, "570")]),
        ({"runtime": {"cuda": "12.8", "rocm": "6.4"}}, [("runtime", "cuda", "12.8"), ("runtime", "rocm", "6.4")]),
        ({"driver": None, "cdi": "", "runtime": {}}, []),
    ],
)
@pytest.mark.parametrize("answer", [DRIVERLESS, None])
def test_what_is_declared_and_told_by_nobody_is_unknown(pins, named, answer):
    found = [entry for entry in versions.odd({"a": answer, "b": answer}, pins) if entry["component"] != "kernel"]
    assert [(entry["component"], entry["name"], entry["expected"]) for entry in found] == named
    for entry in found:
        assert (entry["verdict"], entry["basis"], entry["count"]) == ("unknown", "pinned", 0)
        assert entry["not_told"] == ["a", "b"]
    assert versions.odd({}, pins) == []


def system(name, version):
    return {"versions": [versions._row("os", name, version=version, source="/etc/os-release")], "errors": []}


@pytest.mark.parametrize(
    ("systems", "pins", "outcome"),
    [
        # Another system is another version of what the host runs.
        ([("debian", "12")] * 2 + [("ubuntu", "22.04")], {}, ("fail", "debian", "12", {"h2": "ubuntu 22.04"}, [])),
        ([("debian", "12"), ("ubuntu", "22.04")], {}, ("unknown", "debian", None, {}, [])),
        ([("ubuntu", "22.04"), ("debian", "12")], {}, ("unknown", "debian", None, {}, [])),
        # One that counts the same way is another system all the same.
        ([("debian", "12")] * 2 + [("raspbian", "12")], {}, ("fail", "debian", "12", {"h2": "raspbian 12"}, [])),
        (
            [("debian", "12")] * 2 + [("raspbian", "12")],
            {"os": "12"},
            ("fail", "debian", "12", {"h2": "raspbian 12"}, []),
        ),
        # A declared version says which system is meant, even where most run another.
        (
            [("debian", "12")] * 2 + [("ubuntu", "22.04")],
            {"os": 22.04},
            ("fail", "ubuntu", "22.04", {"h0": "debian 12", "h1": "debian 12"}, []),
        ),
        (
            [("debian", "12")] * 2 + [("ubuntu", "22.04")],
            {"os": {"ubuntu": "22.04"}},
            ("fail", "ubuntu", "22.04", {"h0": "debian 12", "h1": "debian 12"}, []),
        ),
        ([("ubuntu", "22.04")], {"os": {"debian": "12"}}, ("fail", "debian", "12", {"h0": "ubuntu 22.04"}, [])),
        ([("ubuntu", "22.04")], {"os": {"debian": "", "rocky": None}}, ("pass", "ubuntu", "22.04", {}, [])),
        # What can't be read is of no other system; what has no version (rolling) still has a name.
        ([("debian", "12")] * 2 + [(None, None)], {}, ("unknown", "debian", "12", {}, ["h2"])),
        ([("debian", "12")] * 2 + [("debian", None)], {}, ("unknown", "debian", "12", {}, ["h2"])),
        ([("debian", "12")] * 2 + [("arch", None)], {}, ("fail", "debian", "12", {"h2": "arch"}, [])),
        ([("arch", None)] * 2, {}, ("unknown", "arch", None, {}, ["h0", "h1"])),
        # os-release(5): a system without a name is called linux.
        ([("debian", "12")] * 2 + [(None, "12")], {}, ("fail", "debian", "12", {"h2": "linux 12"}, [])),
        ([(None, None)] * 2, {}, ("unknown", None, None, {}, ["h0", "h1"])),
    ],
)
def test_a_host_with_another_system_is_odd(systems, pins, outcome):
    hosts = {f"h{number}": system(*one) for number, one in enumerate(systems)}
    (entry,) = versions.odd(hosts, pins)
    odd = {row["host"]: row["version"] for row in entry["odd"]}
    assert (entry["verdict"], entry["name"], entry["expected"], odd, entry["not_told"]) == outcome


def test_systems_that_are_all_declared_stand_side_by_side():
    hosts = {"a": system("debian", "12"), "b": system("ubuntu", "22.04"), "c": system("ubuntu", "24.04")}
    entries = versions.odd(hosts, {"os": {"debian": "12", "ubuntu": "22.04"}})
    assert [(entry["name"], entry["verdict"], entry["not_told"]) for entry in entries] == [
        ("debian", "pass", []),
        ("ubuntu", "fail", []),
    ]
    assert [row["host"] for row in entries[1]["odd"]] == ["c"]


@pytest.mark.parametrize(
    ("hosts", "outcome"),
    [
        ({"a": "570.86.15", "b": "570.86.15"}, ("pass", "pinned", "570.86", [], [])),
        ({"a": "570.86.15", "b": "570.86"}, ("pass", "pinned", "570.86", [], [])),
        ({"a": "570.86.15", "b": "570.86.15", "c": "570.86.10"}, ("fail", "pinned", "570.86.15", ["c"], [])),
        ({"a": "570.86.15", "b": "570.86.10"}, ("unknown", "no_majority", "570.86", [], [])),
        ({"a": "570.86.15", "b": "570.86.10", "c": "580.1"}, ("fail", "no_majority", "570.86", ["c"], [])),
        (
            {"a": "570.86.15", "b": "570.86.15", "c": "570.86.10", "d": "580.1"},
            ("fail", "pinned", "570.86.15", ["c", "d"], []),
        ),
        (
            {"a": "570.86.15", "b": "570.86.15", "c": "570.86.10", "d": "?"},
            ("fail", "pinned", "570.86.15", ["c"], ["d"]),
        ),
        # Those of a driver that nobody wants say nothing of which is meant.
        ({"a": "570.86.15", "b": "580.1", "c": "580.1"}, ("fail", "pinned", "570.86", ["b", "c"], [])),
    ],
)
def test_hosts_that_fit_a_short_pin_are_held_against_each_other(hosts, outcome):
    assert judged({"runtime": "570.86"}, **hosts) == outcome


STACK = ("driver_kernel", "driver_library", "fabric_manager", "cdi")


def stack(*releases):
    """Return the answer of a host by the versions of its driver, library, fabric manager and device file."""
    return told(**dict(zip(STACK, releases)))


def odd_of(hosts, pins=None):
    """Return {component: [(host, version, what it should be)]} of what is odd, and the verdicts that are no pass."""
    entries = versions.odd(hosts, pins)
    odd = {one["component"]: [(row["host"], row["version"], row["expected"]) for row in one["odd"]] for one in entries}
    return {name: rows for name, rows in odd.items() if rows}, {
        one["component"]: one["verdict"] for one in entries if one["verdict"] != "pass"
    }


@pytest.mark.parametrize("pins", [{"driver": "570.124"}, {}])
def test_a_library_that_is_not_of_the_release_of_the_loaded_module_is_odd(pins):
    """A short pin fits both, and so does what all hosts do alike."""
    hosts = {name: stack("570.124.06", "570.124.10") for name in ("a", "b")}
    assert odd_of(hosts, pins) == (
        {"driver_library": [("a", "570.124.10", "570.124.06"), ("b", "570.124.10", "570.124.06")]},
        {"driver_library": "fail"},
    )
    hosts = {"a": stack("570.124.06", "570.124.06", "570.124.06", "570.124.10")}
    assert odd_of(hosts, pins) == ({"cdi": [("a", "570.124.10", "570.124.06")]}, {"cdi": "fail"})


@pytest.mark.parametrize(
    "releases",
    [
        ("570.124.06", "570.124"),  # the short form that NVML prints
        ("570.124", "570.124.06", None, None),
        ("1.21.0-ca59b5a", "1.21.0-555"),  # Gaudi: the commit of the module, the build of the package
        (None, "570.124.06"),
    ],
)
def test_what_may_be_of_the_release_of_the_loaded_module_is_not_odd(releases):
    assert odd_of({"a": stack(*releases)})[0] == {}


def test_one_fact_is_told_once():
    """A module that is not the declared one is odd, not the library that is; nor is one odd twice."""
    assert odd_of({"a": stack("570.1", "570.2")}, {"driver": "570.2"})[0] == {
        "driver_kernel": [("a", "570.1", "570.2")]
    }
    assert odd_of({"a": stack("570.1", "570.2")}, {"driver": "570.1"})[0] == {
        "driver_library": [("a", "570.2", "570.1")]
    }
    # What is declared of the library itself is what it should be.
    assert odd_of({"a": stack("570.1", "570.2")}, {"driver_library": "570.2"}) == ({}, {})


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
