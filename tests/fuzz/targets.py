# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every parser, what it may raise, and the texts that mutations start from.

A public function of ``_accel`` whose first parameter is a text called ``output``, ``text``, ``kernel_log`` or
``table`` is a target by itself, so a new vendor file is fuzzed from its first day; so is ``query`` of every vendor in
the registry, with mutated answers. ``TABLE`` has the parsers that take something else or may raise something else.
test_fuzz.py holds it complete.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import pkgutil
import random
import signal
import sys
import typing
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import shapes
from ansible_collections.accel.cluster.plugins.module_utils import _accel
from ansible_collections.accel.cluster.plugins.module_utils._accel import (
    apt,
    cdi,
    conclude,
    dmi,
    images,
    judge,
    links,
    model,
    pci,
    record,
    registries,
    registry,
    settings,
    slot_names,
    slots,
    text,
    tools,
    versions,
    xml_answer,
)
from ansible_collections.accel.cluster.plugins.module_utils._accel.runner import Result
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors import base, declared

ROOT = Path(__file__).resolve().parents[2]
TEXT_PARAMETERS = ("output", "text", "kernel_log", "table")
ADDRESSES = [f"0000:{bus}:00.0" for bus in ("18", "2a", "3a", "5d")]
NOW = "2026-11-30T01:02:03Z"
# A parser that thinks longer than this about one text (processor time) would hold up the whole host.
SECONDS = 2.0
# Texts longer than this are taken from only now and then: they cost the time of hundreds of short ones.
LONG = 24_000

# What a text may be called that no tool wrote: names in an inventory, words of this collection.
NO_TOOL = ("cli", "confidential", "contract", "contract_values", "hints")


class TooLong(BaseException):
    """The time for one text is over. Not an Exception: no parser may catch it."""


@dataclass(frozen=True)
class Target:
    """One parser: the types that it returns, the exceptions that it declares, the kind of text that it takes.

    ``kind`` is the folder of recordings, ``""`` for all of them, ``-`` for none. ``texts`` are its
    own starting points.
    """

    name: str
    parse: Callable
    returns: object
    errors: tuple = (base.Unreadable,)
    kind: str = ""
    texts: tuple[str, ...] = ()

    def check(self, given: str) -> str | None:
        """Return what is wrong with the answer to one text, None when nothing is."""
        old = signal.signal(signal.SIGPROF, _ring)
        # Again and again: an exception within a callback of the garbage collector is lost.
        signal.setitimer(signal.ITIMER_PROF, SECONDS, 0.1)
        try:
            result = self.parse(given)
        except TooLong:
            return f"no answer within {SECONDS} s of processor time"
        except Exception as exc:
            return None if isinstance(exc, self.errors) else f"{type(exc).__name__}: {exc}"[:500]
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, old)
        return shapes.problem(result, self.returns)


def _ring(_number, _frame) -> None:
    raise TooLong


# --- The vendors' tools --------------------------------------------------------------------------------------------


class Answers:
    """A runner whose tools answer with the mutated text, now and then with another one, or not at all."""

    def __init__(self, given: str, others: list[str]) -> None:
        self.given = given
        self.others = others
        self.blocked: list[str] = []
        self.seed = zlib.crc32(given.encode("utf-8", "replace"))

    def _rng(self, *words: str) -> random.Random:
        # By command, not in turn: several are asked at the same time.
        return random.Random(f"{self.seed} {' '.join(words)}")

    def which(self, name: str) -> str | None:
        return "/usr/bin/" + name if self._rng(name).randrange(5) else None

    def run(self, argv: list[str], timeout_seconds: float) -> Result:
        rng = self._rng(*argv)
        said = self.given if rng.randrange(4) else rng.choice(self.others)
        if not rng.randrange(10):
            return Result(list(argv), None, said, "", hung=True)
        error = rng.choice(self.others)[:2000] if not rng.randrange(5) else ""
        return Result(list(argv), rng.choice((0, 0, 0, 1, 15, 255)), said, error)

    def read_ahead(self, paths: list[str]) -> None:
        pass

    def read(self, path: str) -> str | None:
        rng = self._rng(path)
        return self.given[:200].strip() if not rng.randrange(4) else rng.choice((None, "", "570.86.15", "16"))

    def read_bytes(self, path: str) -> bytes | None:
        return None

    def glob(self, pattern: str) -> list[str]:
        one = pattern.replace("*", "0")
        return [one] if self._rng(pattern).randrange(2) else []

    def realpath(self, path: str) -> str:
        return path


def _query(vendor: base.Vendor, others: list[str]) -> Callable[[str], base.Answer]:
    def query(given: str) -> base.Answer:
        """Ask the vendor; what it says must fit a record, and be judged."""
        functions = [pci.Function(address) for address in ADDRESSES]
        answer = vendor.query(Answers(given, others), functions, 1)
        seen = {"devices": [model.as_dict(one) for one in answer.devices], "count": answer.count, "bus_count": 4}
        json.dumps(seen, allow_nan=False)
        body = slots.build_record(seen, "gpu-01", NOW)
        assert not slots.problems(body), slots.problems(body)
        judge.judge_devices("gpu-01", seen, {"cluster_accelerator_vendor": vendor.name})
        return answer

    return query


def sysfs(given: str) -> list[pci.Function]:
    """Return the functions of a bus whose files hold the lines of the text, one after the other."""
    lines = given.split("\n")

    class Files(Answers):
        def read(self, path: str) -> str | None:
            return lines[zlib.crc32(path.encode()) % len(lines)].strip()

        def glob(self, pattern: str) -> list[str]:
            return [pattern.replace("*", name) for name in (*ADDRESSES, "nonsense", lines[0].replace("/", ""))]

        def realpath(self, path: str) -> str:
            return path.replace("/0000:2a:00.0", "/0000:29:00.0/0000:2a:00.0")

    found = pci.functions(Files(given, [given]))
    pci.slot_table(Files(given, [given]))
    for function in found:
        pci.limiting_hop(function, True)
    return found


# --- Records -------------------------------------------------------------------------------------------------------


def slot_record(given: str) -> dict:
    """Return a slot record that a file holds; what is taken as one must be comparable with another."""
    body = record.parse(given, "slots.json", slots.problems)
    _writable(body)
    one = json.loads(SLOT_RECORD)
    assert not slots.differs(slots.compare(body, body)) or slots.cards(body)
    slots.difference_lines(slots.compare_cluster({"gpu-01": one, "gpu-02": body}, {"gpu-01": body, "gpu-02": one}))
    seen = {"devices": [], "unanswered": [], "tools": [], "count": 0, "bus_count": 0}
    assert not slots.problems(slots.build_record(seen, "gpu-01", NOW, body))
    return body


def any_record(given: str) -> dict:
    """Return what a file holds as a record of no kind; what is taken as one must be writable."""
    return _writable(record.parse(given, "x"))


def link_readings(given: str) -> dict:
    """Return the readings of links that a file holds."""
    return _writable(record.parse(given, "links.json", links.problems))


def part(given: str) -> dict:
    """Return a part of a report that a file holds; a run must be concluded with whatever is taken as one."""
    body = _writable(record.parse(given, "part.json", conclude.part_problems))
    expected = [{"role": "driver", "layer": "device"}]
    declared = {"gpu-01": {"cluster_accelerator_vendor": "nvidia", "cluster_node_type": "h100"}}
    run = conclude.conclude("s", "r", ["gpu-01"], expected, {"gpu-01": {"device": body}}, declared, {}, now=NOW)
    assert run["verdict"] in model.VERDICTS
    return body


def _writable(body: dict) -> dict:
    record.canonical(body).encode("utf-8")
    return body


SLOT_RECORD = json.dumps(
    {
        "schema": 1,
        "host": "gpu-01",
        "observed_at": "2026-11-30T01:02:03Z",
        "tool": {"name": "nvidia-smi", "version": "570.86.15"},
        "slots": {
            f"SXM{number}": [
                {
                    "serial": f"165042300012{number}", "uuid": f"GPU-{number}", "identity": "uuid",
                    "pci_address": address, "vendor": "nvidia", "model": "NVIDIA H100 80GB HBM3",
                    "firmware_version": "96.00.74.00.01", "slot_source": "vendor",
                    "candidates": [{"label": "5", "source": "sysfs"}], "present": number != 3, "state": None,
                }
            ]
            for number, address in enumerate(ADDRESSES, 1)
        },
        "unplaced": [{"serial": None, "uuid": None, "pci_address": "0000:9a:00.0"}],
    },
    indent=2,
)  # fmt: skip
LINKS = '{"schema": 1, "links": {"0000:18:00.0": {"identity": "GPU-1", "speed_gts": 32.0, "width": 16, "at": "x"}}}'
PART = json.dumps(
    {
        "schema": 1, "host": "gpu-01", "layer": "device", "roles": ["driver"],
        "findings": [{"role": "driver", "check": "device.count", "layer": "device", "host": "gpu-01",
                      "subject": "gpu-01", "verdict": "fail", "severity": "critical", "expected": 8, "observed": 7,
                      "message": "7 of 8", "hint": "device.count.lost", "evidence": [], "blocked_by": None, "at": "x"}],
        "observed": {"devices": {"count": 7, "bus_count": 8, "devices": [], "unanswered": []}},
    },
    indent=1,
)  # fmt: skip
WORDS = (
    "16 GT/s", "32.0 GT/s PCIe", "97 %", "1x", "81559 MiB", "64 GB", "1.5 TiB", "0000:18:00.0", "GPU 0000:BA:00.0",
    "PCI:0019:01:00", "00000000:18:00.0", "10000:e1:00", "570.86.15", "GPU-00000000-0000", "[Unknown Error]", "N/A",
    "SXM10", "2026-11-30T01:02:03Z", "2026-11-30T01:02:03+08:00", "8",
)  # fmt: skip
LIMITS = "Limit                     Soft Limit           Hard Limit           Units\n"
LIMITS += "Max open files            1048576              1048576              files\n"
LIMITS += "Max locked memory         unlimited            unlimited            bytes\n"
TRACKING = "0A000001,10.0.0.1,9,1764500000.25,0.000000021,0.0,0.1,-3.2,0.0,0.1,0.001,0.002,64.2,Normal\n"


@cache
def firmware_table() -> str:
    """Return the SMBIOS table of an emulated host, a byte a character."""
    sys.path.append(str(ROOT / "roles/emulator/files"))
    from accel_emulator import dmi as table
    from accel_emulator import state

    return table.table(state.expand({"profile": "nvidia_h100_8"})).decode("latin-1")


def _raw(given: str) -> bytes:
    return given.encode("latin-1", "replace")


def _dmi(given: str) -> list[dmi.DmiSlot]:
    found = dmi.parse_slots(_raw(given))
    dmi.believable(found, [pci.Function(address) for address in ADDRESSES])
    return found


def _versions(given: str) -> list[str | None]:
    """Look for the version of every component of every vendor."""
    patterns = {source.pattern for vendor in registry.VENDORS.values() for source in vendor.versions}
    return [versions.extract(given, pattern) for pattern in sorted(patterns)]


def _fields_both_ways(given: str) -> str:
    """Read an XML answer line by line, where that can be done, and as a tree: both say the same."""
    names = ("gpu", "mig_device", "process_info")
    found, around = xml_answer.read_fields(given, "nvidia_smi_log", names)
    assert found == xml_answer.of_tree(xml_answer.xml_tree(given.replace("\t", ""), "nvidia_smi_log")[0], names)
    return around


def _two(given: str) -> bool:
    half = len(given) // 2
    return text.same_version(given[:half], given[half:])


def _declared(given: str) -> dict[str, str]:
    """Take the lines of the text as a declared map of slots."""
    return slot_names.declared_slots(dict(line.split(" ", 1) for line in given.split("\n") if " " in line))


def _site_vendor(layout: str) -> Callable[[str], base.Answer]:
    """Ask a vendor that a site declares, whose tool answers in this layout."""
    fields = {
        "pci_address": "bdf",
        "serial": "sn",
        "health": "state",
        "index": "n",
        "memory_bytes": {"key": "memory", "unit": "MiB"},
        "temperature_c": {"key": "heat", "unit": "mC"},
        "utilization_percent": {"key": "load", "unit": "fraction"},
        "uncorrected_volatile": "errors",
    }
    about = {"pci_vendors": ["1eed"], "command": ["acme-smi"], "format": layout, "healthy": ["OK"], "fields": fields}
    return _query(declared.known({}, {"acme": about})["acme"], [SITE_JSON, SITE_CSV])


SITE_JSON = json.dumps(
    [
        {
            "bdf": "0000:18:00.0",
            "sn": "A1",
            "state": "OK",
            "n": 0,
            "memory": 65536,
            "heat": 41000,
            "load": 0.5,
            "errors": 0,
        },
        {
            "bdf": "0000:2A:00.0",
            "sn": "A2",
            "state": "bad",
            "n": 1,
            "memory": "64",
            "heat": "N/A",
            "load": 1,
            "errors": "2",
        },
    ]
)
SITE_CSV = (
    "bdf,sn,state,n,memory,heat,load,errors\n0000:18:00.0,A1,OK,0,65536,41000,0.5,0\n0000:2a:00.0,A2,bad,1,64,N/A,1,2\n"
)
_SITE = {"errors": (), "kind": "-"}
_WORD = {"errors": (), "texts": WORDS, "kind": "-"}
_VALUE = {"errors": (ValueError,), "texts": WORDS, "kind": "-"}
_RECORD = {"errors": (record.RecordError,), "kind": "-"}
MAP = "0000:18:00.0 SXM1\n0000:2a:00.0 SXM2\nSXM3 0000:3a:00.0"

VERSIONS = (
    '{"cuda": {"name": "CUDA SDK", "version": "12.8.1"}, "nccl": {"version": "2.26.2"}}',
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Thu Jan 23 23:05:30 UTC 2025\nGCC version:  12.3.0\n",
    "# version: 1.0\nruntime_running_version=[7.7.0.1.231:8.2.RC1]\ntoolkit_running_version=[7.7.0.1.231:8.2.RC1]\n",
    "#define NCCL_MAJOR 2\n#define NCCL_MINOR 21\n#define NCCL_PATCH 5\n",
    "Fabric Manager version is : 570.86.15\n",
    "  - hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so.570.86.15\n",
    "NVIDIA Container Toolkit CLI version 1.17.4\ncommit: abc\n",
)
JOURNAL = (
    '{"version": "25.2.0", "file": "/srv/a.run", "sha256": "ab", "started": "2026-11-30T01:02:03Z", "ended": "no"}'
)
LOGIN = '{"auths": {"ctl-01:5000": {"auth": "bm9kZTpzZWNyZXQ="}, "other": {}}}'
# Answers that the repository has no recording of.
TEXTS = {
    "amd_xgmi.parse_xgmi": (
        "XGMI LINK STATUS:\nGPU0   0000:05:00.0  SELF  U/D\nGPU1   0000:26:00.0  U/D  SELF\n",
        "GPU0   05:00.0      32 Gb/s  512 Gb/s      XGMI\nGPU0   05:00.0  U  U  D  X\n",
        '{"link_status": [{"gpu": 0, "bdf": "0000:05:00.0", "link_status": ["SELF", "U"]}]}',
        (
            '[{"gpu": 0, "bdf": "0000:05:00.0", "link_metrics": {"max_bandwidth": {"value": 512},\n"link_type": "XGMI",'
            ' "links": [{"bdf": "0000:26:00.0", "read": {"value": 4}}]}}]'
        ),
    ),
    "apt.parse_packages": ("hold\tinstalled\tok\tnvidia-smi\tnvidia-smi\t535-1\tnvidia-graphics-drivers\n",),
    "apt.parse_policy": (
        (
            "tar:\n  Installed: 1.34-1\n  Candidate: 1.35-1\n  Version table:\n     1.35-1 500\n        500 Packages\n"
            " *** 1.34-1 1001\n        100 /var/lib/dpkg/status\n"
        ),
    ),
    "apt.parse_simulation": ("Inst tar [1.34-1] (1.35-1 Debian:12 [amd64])\nRemv old [1.0-1]\nConf tar (1.35-1)\n",),
    "apt.parse_blacklist": ('Unattended-Upgrade::Package-Blacklist:: "nvidia-";\n',),
    "apt.parse_history": (
        (
            "Start-Date: 2025-03-11  06:21:40\nCommandline: apt-get upgrade\nRequested-By: bob (1001)\n"
            "Upgrade: tar:amd64 (1.34-1, 1.35-1)\nInstall: a:amd64 (1, automatic), b (2)\nEnd-Date: 2025-03-11\n"
        ),
    ),
    "ascend_links.parse_hccs": (
        (
            "\thccs health status : NOK\n\thccs lane mode : [4 2 0]\n\thccs link lane list : [1111 1100 0000]\n"
            "\thccs link speed : [224 112 0]\n\thccs first error lane : 6\n"
        ),
    ),
    "ascend_links.parse_vnpus": (
        "|  116      |  0             |  ffffffffffff  |  1       |  vir10_3c_32g        |\n",
    ),
    "ascend.error_code": ("dcmi module initialize failed. ret is -8005\n",),
    "ascend.read_health": ("\tHealth Status                  : OK\n\tHealth : Alarm\n\tChip ID : 0\n",),
    "ascend.read_codes": (
        "\tHealth Status : Alarm\n\tError Code : 80E01801 8C084E00\n\tError Information : 1\n\n\t : 2\n\tChip ID : 0\n",
    ),
    "ascend.read_ecc": (
        "\tChip Count : 1\n\tHBM Double Bit Error Count : 1\n\tHBM Double Bit Isolated Pages Count : 1\n\tChip ID : 0",
    ),
    "ascend.read_memory": ("\tNPU ID : 2\n\tDDR Capacity(MB) : 15171\n\tHBM Capacity(MB) : 65536\n\tChip ID : 0\n",),
    "boot.parse_grub": (
        (
            'set default="${saved_entry}"\nfunction a {\n}\n'
            "menuentry 'Debian' --class os $menuentry_id_option 'simple' {\n"
            "\tlinux\t/boot/vmlinuz-6.1.0-50-amd64 root=/dev/sda1 ro\n}\nsubmenu 'More' $menuentry_id_option 'more' {\n"
            'menuentry "Debian, old" --id old {\nlinux /vmlinuz-6.1.0-31-amd64 ro\n}\n}\nset default=1>0\nblscfg\n'
        ),
    ),
    "boot.parse_dkms": (
        (
            "nvidia-current/535.261.03, 6.1.0-50-amd64, x86_64: installed\n"
            "nvidia, 535.1, 6.1.0-1-amd64, x86_64: built\nmft/4.1: added\n"
        ),
    ),
    "boot.parse_modinfo": (
        "filename: /lib/modules/a/nvidia.ko\nversion: 535.1\nvermagic: 6.1.0-50-amd64 SMP mod_unload \n",
    ),
    "registry_host.read_own_addresses": (
        '[{"ifname": "lo", "addr_info": [{"family": "inet", "local": "127.0.0.1"}]}, {"ifname": "eth0"}]',
    ),
    "registry_host.read_units": (
        "Id=a.service\nLoadState=loaded\nActiveState=active\nSubState=running\nResult=success\nMainPID=77\n\nId=b.service\n",
    ),
    "kernel_log.parse": (
        "2026-11-30T11:00:00+0000 gpu-01 kernel: NVRM: Xid (PCI:0000:ba:00): 79, pid=77, GPU has fallen off the bus.\n",
        "[   12.345678] amdgpu 0000:05:00.0: amdgpu: 3 uncorrectable hardware errors detected in umc block\n",
        "pcieport 0000:17:01.0: AER: Corrected error received: 0000:18:00.0\n",
    ),
    "nvidia.parse_failure": (
        "Unable to determine the device handle for GPU 0000:BA:00.0: Unknown Error\n",
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.124\n",
        "Unable to determine the device handle for GPU1: 0000:34:00.0: GPU is lost. Reboot the system.\n",
    ),
}


def _cdi(given: str) -> dict:
    """Read a CDI file, and judge it beside the cards of a host."""
    spec = cdi.read(given)
    access = registry.VENDORS["nvidia"].container
    file = {"path": "/etc/cdi/accel-x.json", "folder": "/etc/cdi", "state": "ok", "mode": "0644", "owner": 0}
    seen = {"files": [{**file, "spec": spec}], "folders": [], "missing": cdi.paths_of(spec)[:1]}
    card = {"vendor": "nvidia", "uuid": "GPU-1", "index": 0, "device_nodes": ["/dev/nvidia0"]}
    found = cdi.problems(seen, {"devices": [card]}, "nvidia.com/gpu", access, {"name": "podman", "version": "4.3.1"})
    assert all(cause in cdi.ORDER for cause, _words in found)
    return spec


def _merged(given: str) -> dict:
    """Read a settings file, and merge into it what it holds: nothing changes."""
    body = settings.parse_json(given)
    assert settings.parse_json(settings.text_of(settings.merged(body, body), given)) == body
    return body


def _problem(given: str) -> list[str | None]:
    """Name the fault of a settings file of either form, where this Python can."""
    found = [settings.problem_of(given, "daemon.json")]
    return found if settings.tomllib is None else [*found, settings.problem_of(given, "x.conf")]


CDI = """{"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": [{"name": "0", "containerEdits": {"deviceNodes":
[{"path": "/dev/nvidia0"}]}}], "containerEdits": {"env": ["ACCEL_DRIVER_VERSION=570.86.15"], "mounts": [{"hostPath":
"/usr/lib/libcuda.so.570.86.15"}]}}"""
NVIDIA_CTK = (ROOT / "tests/unit/plugins/module_utils/_accel/files/nvidia-ctk.yaml").read_text(encoding="utf-8")
REFERENCES = ("reg.example:5000/ai/train:1", "reg:5000/x@sha256:" + "a" * 64, "localhost/x", "[::1]:5000/x:1")
IMAGES = json.dumps(
    [{"Id": "1", "Names": ["reg:5000/x:1"], "RepoDigests": ["reg:5000/x@sha256:" + "a" * 64], "Size": 1}]
)
PODMAN_INFO = (
    '{"host": {"ociRuntime": {"name": "crun"}}, "store": {"graphRoot": "/x"}, "version": {"Version": "4.3.1"}}'
)
DOCKER_INFO = '{"ServerVersion": "28.2.2", "Driver": "overlay2", "DockerRootDir": "/x", "HttpProxy": "http://p:1"}'
PROXIES = '# HTTP_PROXY=x\nHTTP_PROXY=http://u:p@a:1\nEnvironment="https_proxy=http://b:2" "NO_PROXY=x,y"\n'
TOML = '[engine]\nruntime = "crun"\n[[registry]]\nlocation = "reg:5000"\ninsecure = true\n'
# name: (function, what it returns if its own signature does not tell, what differs from the usual)
TABLE: dict[str, tuple[Callable, object, dict]] = {
    "text.state_of": (text.state_of, None, _WORD),
    "text.clean": (text.clean, None, _WORD),
    "text.identifier": (text.identifier, None, _WORD),
    "text.number": (text.number, None, _WORD),
    "text.integer": (text.integer, None, _WORD),
    "text.whole_number": (text.whole_number, None, _WORD),
    "text.counted": (text.counted, None, _WORD),
    "text.count": (text.count, None, _WORD),
    "text.uncounted": (text.uncounted, None, _WORD),
    "text.watts": (text.watts, None, _WORD),
    "text.celsius": (text.celsius, None, _WORD),
    "text.size_bytes": (text.size_bytes, None, _WORD),
    "text.name_and_value": (text.name_and_value, None, _WORD),
    "text.garbled": (text.garbled, None, _WORD),
    "text.excerpt": (text.excerpt, str, {"errors": ()}),
    "text.same_version": (_two, None, {**_WORD, "texts": ("570.124570.124.06", "1.21.2", "a.bb.a")}),
    "tools.address_of": (tools.address_of, None, _WORD),
    "tools.percent": (tools.percent, None, _WORD),
    "tools.cells_of": (tools.cells_of, None, _WORD),
    "xml_answer.xml_tree": (lambda given: xml_answer.xml_tree(given, "dlsmi_log")[1], str, {"kind": "denglin"}),
    "xml_answer.read_fields": (_fields_both_ways, str, {"kind": "nvidia"}),
    "xml_answer.leave_out": (
        lambda given: xml_answer.leave_out(given, "supported_clocks"),
        str,
        {"errors": (), "kind": "nvidia"},
    ),
    "declared.json": (_site_vendor("json"), base.Answer, {**_SITE, "texts": (SITE_JSON,)}),
    "declared.csv": (_site_vendor("csv"), base.Answer, {**_SITE, "texts": (SITE_CSV,)}),
    "tools.generation_gts": (tools.generation_gts, None, _WORD),
    "model.to_int": (model.to_int, None, _WORD),
    "model.dict_of": (model.dict_of, None, _WORD),
    "model.dicts_of": (model.dicts_of, None, _WORD),
    # Declared values; who asks for one judges whether it is finite.
    "model.to_float": (lambda given: str(model.to_float(given)), str, _WORD),
    "pci.normalise": (pci.normalise, None, _VALUE),
    "pci.normalise_device": (pci.normalise_device, None, _VALUE),
    "pci.speed_gts": (pci.speed_gts, None, _WORD),
    "pci.width": (pci.width, None, _WORD),
    "pci.functions": (
        sysfs,
        None,
        {**_WORD, "texts": ("\n".join(("0x10de", "16", "32.0 GT/s PCIe", "0x030200", "63")),)},
    ),
    "pci.parse_bandwidth_lines": (pci.parse_bandwidth_lines, None, {"errors": (), "kind": "kernel"}),
    "dmi.parse_slots": (_dmi, None, {"errors": (), "kind": "-", "texts": (firmware_table(),)}),
    "dmi.parse_dmidecode": (dmi.parse_dmidecode, None, {"errors": (), "kind": "kernel"}),
    "versions.extract": (_versions, None, {"errors": (), "kind": "-", "texts": VERSIONS}),
    "versions.parse_os_release": (
        versions.parse_os_release,
        None,
        {**_WORD, "texts": ('ID=debian\nVERSION_ID="12"\n',)},
    ),
    "slot_names.natural": (slot_names.natural, tuple, _WORD),
    "slot_names.declared_slots": (_declared, None, {**_VALUE, "texts": (MAP,)}),
    "judge.parse_time": (lambda given: str(judge.parse_time(given)), str, _WORD),
    "slots.json": (slot_record, dict, {**_RECORD, "texts": (SLOT_RECORD,)}),
    "links.json": (link_readings, dict, {**_RECORD, "texts": (LINKS,)}),
    "part.json": (part, dict, {**_RECORD, "texts": (PART,)}),
    "record.parse": (any_record, dict, {**_RECORD, "texts": (SLOT_RECORD, LINKS, PART)}),
    "baseline.parse_limits": (None, None, {"errors": (), "kind": "-", "texts": (LIMITS,)}),
    "baseline.parse_tracking": (None, None, {"errors": (), "kind": "-", "texts": (TRACKING,)}),
    "packages.parse_packages": (None, None, {"errors": (), "kind": "-", "texts": ("installed chrony 4.3-2\n",)}),
    # What YAML holds, and what is made of a file: it must be judged, whatever it says.
    "cdi.read": (_cdi, dict, {"kind": "-", "texts": (CDI, NVIDIA_CTK)}),
    "plain_yaml.parse": (None, None, {"kind": "-", "texts": (NVIDIA_CTK,)}),
    "images.read_images": (None, None, {"kind": "-", "texts": (IMAGES,)}),
    "images.reference": (images.reference, None, {"errors": (), "kind": "-", "texts": REFERENCES}),
    "images.digest_of": (lambda given: images.digest_of(_raw(given)), str, _WORD),
    "images.bypasses": (
        lambda given: images.bypasses(given, "reg.example:5000") or images.bypasses("a, 10.0.0.0/8, .b", given),
        bool,
        {"errors": (), "kind": "-", "texts": ("localhost,.example,10.0.0.0/8", "*", "10.1.2.3:5000", "[::1]:443")},
    ),
    "images.split_address": (
        images.split_address,
        tuple,
        {"errors": (), "kind": "-", "texts": ("reg:5000", "[::1]:1")},
    ),
    "containers.read_info": (None, None, {"kind": "-", "texts": (PODMAN_INFO, DOCKER_INFO)}),
    "containers.read_proxies": (None, None, {"errors": (), "kind": "-", "texts": (PROXIES,)}),
    "settings.parse_json": (_merged, dict, {"kind": "-", "texts": (DOCKER_INFO,)}),
    "settings.problem_of": (_problem, None, {"errors": (), "kind": "-", "texts": (TOML, DOCKER_INFO)}),
    "apt.parse_sources": (
        lambda given: apt.parse_sources(given, "bookworm"),
        list[str],
        {
            **_WORD,
            "texts": (
                "Debian bookworm main http://mirror.example.org/debian/\nDebian bookworm-security main http://m\n",
            ),
        },
    ),
    "installers.read_journal": (None, None, {**_WORD, "texts": (JOURNAL, "")}),
    "registries.login_of": (
        lambda given: registries.login_of(given, "ctl-01:5000"),
        (tuple | None),
        {**_WORD, "texts": (LOGIN,)},
    ),
    "baseline.parse_huge_page_policy": (None, None, {**_WORD, "texts": ("always [madvise] never",)}),
}
# Public functions that take a text which no tool wrote, or that are reached through a target.
EXEMPT = {
    "record.kind_of": "takes what JSON made",
    "record.read_history": "reads a file, line by line; test_record.py",
    "locate.find": "takes what a person typed",
    "locate.is_address": "only asks pci.normalise",
    "image_recipes.resolved": "takes what a site declares; test_image_recipes.py",
    "registry_host.certificate_ends": "takes what a site declares; a socket answers",
    "registries.check": "takes what a site declares; test_registries.py",
    "reader.read_whole": "reads a file; test_record.py",
    "links.load": "reads a file; its parser is links.json",
    "pci.sort_key": "takes canonical addresses only",
    "slot_names.device_of": "takes canonical addresses only",
    "slot_names.source_rank": "takes words of this collection",
    "judge.excerpt": "keeps what text.excerpt made",
    "nvidia.under_load": "reached through nvidia.parse_query and nvidia.parse_csv",
    "amd.told": "reached through amd.query",
}


# --- Discovery -----------------------------------------------------------------------------------------------------


def modules() -> Iterator[tuple[str, object]]:
    """Return short name and module of everything in ``_accel``."""
    for info in pkgutil.walk_packages(_accel.__path__, _accel.__name__ + "."):
        short = info.name.rsplit(".", 1)[-1]
        if not info.ispkg and short not in NO_TOOL:
            yield short, importlib.import_module(info.name)


def functions() -> Iterator[tuple[str, Callable]]:
    """Return ``module.function`` and every public function of ``_accel``."""
    for short, module in modules():
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if not name.startswith("_") and function.__module__ == module.__name__:
                yield f"{short}.{name}", function


def takes_text(function: Callable) -> bool:
    """Tell whether a function is a parser by its first parameter, and needs no other."""
    given = list(inspect.signature(function).parameters.values())
    needed = [one for one in given if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]
    return len(needed) == 1 and given[0].name in TEXT_PARAMETERS and given[0].annotation == "str"


@cache
def targets() -> dict[str, Target]:
    """Return every target by name."""
    found: dict[str, Target] = {}
    public = dict(functions())
    for name, function in public.items():
        if takes_text(function) and name not in TABLE:
            kind = name.split(".")[0]
            kind = kind if kind in registry.VENDORS else ""
            found[name] = Target(name, function, _returns(function), kind=kind, texts=TEXTS.get(name, ()))
    for name, (function, returns, more) in TABLE.items():
        function = function or public[name]
        found[name] = Target(name, function, returns or _returns(function), **more)
    for name, vendor in registry.VENDORS.items():
        query = _query(vendor, recorded(name))
        found[f"{name}.query"] = Target(f"{name}.query", query, base.Answer, errors=(), kind=name)
    return dict(sorted(found.items()))


def _returns(function: Callable) -> object:
    return typing.get_type_hints(function)["return"]


# --- Starting points -----------------------------------------------------------------------------------------------


@dataclass
class Sources:
    """Texts to start from: those that the parser makes something of, long ones of them, and all others."""

    good: list[str] = field(default_factory=list)
    long: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)

    def pick(self, rng: random.Random) -> str:
        """Return one, mostly a good one."""
        chance = rng.randrange(400)
        for pool, below in ((self.long, 1), (self.other, 40), (self.good, 400), (self.other, 400), (self.long, 400)):
            if pool and chance < below:
                return pool[rng.randrange(len(pool))]
        return ""


@cache
def recorded(kind: str) -> list[str]:
    """Return the texts of a folder of recordings ("" for every folder), those of real tools too where they are."""
    folders = [ROOT / "tests/recordings"]
    if os.environ.get("ACCEL_RECORDINGS"):
        folders.append(Path(os.environ["ACCEL_RECORDINGS"]))
    paths = [path for folder in folders for path in sorted(folder.glob(f"{kind or '*'}/*")) if path.is_file()]
    if kind in ("", "kernel"):
        paths += sorted((ROOT / "tests/cases").glob("*/*.txt"))
    texts = []
    for path in paths:
        raw = path.read_bytes()[:400_000]
        if b"\0" not in raw[:1000] and path.suffix not in (".gz", ".bz2", ".ttar"):
            texts.append(raw.decode("utf-8", "replace"))
    return texts


@cache
def sources(name: str) -> Sources:
    """Return the starting points of a target, sorted by whether it makes something of them."""
    target = targets()[name]
    found = Sources(good=list(target.texts))
    if target.kind == "-":
        return found
    try:
        nothing = target.parse("")
    except target.errors:
        nothing = None
    for one in recorded(target.kind):
        try:
            useful = target.name.endswith(".query") or target.parse(one) != nothing
        except target.errors:
            useful = False
        pool = found.other if not useful else found.long if len(one) > LONG else found.good
        if len(one) <= LONG or useful:
            pool.append(one)
    if not found.good:
        # A part of a long text is better than none at all.
        found.good = [one[:LONG] for one in found.long]
    return found
