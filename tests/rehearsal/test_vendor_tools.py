# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The vendors' own tools, as Debian packages them, run without silicon: what they say, and what the probe makes of it.

Each suite gets a root file system of its own, unpacked and never installed on this machine. In it the real tools are
asked by the real runner, with a ``/sys`` that is empty or that the emulator filled: AMD's library reads the kernel's
files, so its tools list the emulated cards. NVIDIA's ask the kernel module, which nobody can emulate.
"""

from __future__ import annotations

import gzip
import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / ".cache/vendor-tools"
sys.path[:0] = [str(ROOT / "roles/emulator/files"), str(Path(__file__).parent)]

from accel_emulator import state, tree, views  # noqa: E402
from debian_tools import AMD, NVIDIA, SUITES  # noqa: E402

# What the tools start besides themselves, and what the probe needs.
BASE = ("base-files", "coreutils", "dash", "grep", "libc-bin", "python3", "util-linux")
LIBRARIES = "usr/lib/x86_64-linux-gnu"
# Mounts are seen by the processes of this script alone, and end with them.
ENTER = """
set -eu
root=$1
mount --make-rprivate /
mount -t proc proc "$root/proc"
mount -t tmpfs none "$root/dev"
mkdir "$root/dev/shm" "$root/dev/dri"
mknod -m 666 "$root/dev/null" c 1 3
for node in $3; do mknod -m 666 "$root/dev/$node" c 1 3; done
[ -z "$2" ] || mount --bind "$2" "$root/sys"
exec chroot "$root" /usr/bin/python3 -I /opt/accel/vendor_tool_world.py
"""


def sources(script, suite: str) -> list[str]:
    """Return the package sources of another suite, from where this machine has its own."""
    own = script.os_release()["VERSION_CODENAME"]
    lines = [line.split(" ") for line in script.machine_sources()]
    found = [
        " ".join([*line[:3], suite, "main", "contrib", "non-free"]) for line in lines if line[3] in (own, "stable")
    ]
    assert found, f"no source of {own} to take {suite} from: {lines}"
    return found


@pytest.fixture(scope="session")
def roots(script):
    """Return a function that gives the root file system of a suite, unpacked once for a list of packages."""

    def root(suite: str) -> Path:
        made = HOME / suite
        packages = ",".join((*BASE, *SUITES[suite]))
        stamp = HOME / f"{suite}.made-from"
        if not stamp.exists() or stamp.read_text(encoding="utf-8") != packages:
            shutil.rmtree(made, ignore_errors=True)
            HOME.mkdir(parents=True, exist_ok=True)
            options = [option.rstrip(";") for option in script.machine_apt_options()]
            command = ["mmdebstrap", "--variant=extract", "--format=directory", f"--include={packages}"]
            command += [f"--aptopt={option}" for option in (*options, 'APT::Install-Recommends "false"')]
            command += ["--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr", suite, str(made), "-"]
            subprocess.run(command, input="\n".join(sources(script, suite)) + "\n", text=True, check=True, timeout=900)
            for folder in ("proc", "sys", "dev", "tmp", "opt/accel"):
                (made / folder).mkdir(parents=True, exist_ok=True)
            stamp.write_text(packages, encoding="utf-8")
        for path in (ROOT / "plugins/module_utils/_accel", Path(__file__).parent / "vendor_tool_world.py"):
            subprocess.run(["cp", "-rT", str(path), str(made / "opt/accel" / path.name)], check=True)
        return made

    return root


def put_nvidia(root: Path, flavour: str, library: bool = True) -> None:
    """Make one release of NVIDIA's tool the installed one, as its package's alternatives do; without: take it away."""
    links = {
        "usr/bin/nvidia-smi": f"/usr/lib/nvidia/{flavour}/nvidia-smi" if flavour else "",
        f"{LIBRARIES}/libnvidia-ml.so.1": f"/{LIBRARIES}/nvidia/{flavour}/libnvidia-ml.so.1" if library else "",
    }
    for path, target in links.items():
        (root / path).unlink(missing_ok=True)
        if target and flavour:
            (root / path).symlink_to(target)


@pytest.fixture
def ask(roots, tmp_path):
    """Return a function that asks the probe in a world; see vendor_tool_world.py for what it gives back."""

    def asked(suite, vendor, host=None, without=(), nodes="", commands=(), files=None) -> dict:
        root = roots(suite)
        shown = tmp_path / "sys"
        for view in views.views(host) if host else ():
            if view.target.startswith("/sys/") and view.name not in without:
                place = shown / view.target[len("/sys/") :]
                place.mkdir(parents=True, exist_ok=True)
                tree.sync(str(place), view.tree)
        for path, content in (files or {}).items():
            (shown / path).parent.mkdir(parents=True, exist_ok=True)
            (shown / path).write_text(content)
        declared = {"cluster_accelerator_vendor": vendor, "cluster_accelerator_count": 8}
        given = json.dumps({"vendor": vendor, "declared": declared, "commands": [shlex.split(one) for one in commands]})
        where = str(shown) if shown.exists() else ""
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, "enter"]
        command += [str(root), where, nodes]
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return asked


def tools(told: dict) -> dict[str, dict]:
    """Return the vendor's tools by name."""
    return {tool["name"]: tool for tool in told["observation"]["tools"]}


def verdicts(told: dict) -> dict[str, set[tuple[str, str]]]:
    """Return (verdict, cause) of each check."""
    found: dict[str, set[tuple[str, str]]] = {}
    for finding in told["findings"]:
        cause = finding["hint"].rpartition(".")[2]
        found.setdefault(finding["check"], set()).add((finding["verdict"], cause))
    return found


def no_card_passes(told: dict) -> None:
    """Hold that nothing which needs an answer of the tool was taken for well."""
    assert told["observation"]["count"] is None
    passed = {f["check"] for f in told["findings"] if f["verdict"] == "pass"}
    # The bus tells these without a tool.
    assert passed <= {"device.link_width", "device.observation"}, passed
    assert not any("Traceback" in error for error in told["observation"]["errors"])


def spoken(told: dict) -> str:
    """Return what the commands that were run besides have said, in one text."""
    return "\n".join(f"{one['stdout']}\n{one['stderr']}" for one in told["said"])


def release_of(root: Path, package: str) -> str:
    """Return the version of an unpacked package, as its change log has it."""
    with gzip.open(root / f"usr/share/doc/{package}/changelog.Debian.gz", "rt", encoding="utf-8") as lines:
        return lines.readline().split("(")[1].partition(")")[0]


@pytest.mark.parametrize(("suite", "tool", "release"), AMD)
def test_the_tools_of_amd_are_of_the_release_that_is_said(roots, suite, tool, release):
    assert release_of(roots(suite), tool).startswith(f"{release}.")


# --- NVIDIA --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("suite", "flavour", "version"), NVIDIA)
def test_nvidia_without_its_driver(roots, ask, suite, flavour, version):
    put_nvidia(roots(suite), flavour)
    library = (roots(suite) / f"{LIBRARIES}/nvidia/{flavour}/libnvidia-ml.so.1").resolve().name
    assert library.startswith(f"libnvidia-ml.so.{version}.")
    host = state.expand({"profile": "nvidia_h100_8"})
    told = ask(suite, "nvidia", host, without=("module",), commands=["nvidia-smi -q -x", "nvidia-smi -L"])
    tool = tools(told)["nvidia-smi"]
    assert (tool["state"], tool["reason"], tool["rc"]) == ("failed", "driver_not_loaded", 9)
    # The true text is kept as evidence, where a person looks for it.
    assert tool["excerpt"] and tool["excerpt"] in told["said"][0]["stdout"]
    assert "couldn't communicate with the NVIDIA driver" in tool["excerpt"]
    found = verdicts(told)
    assert found["device.driver"] == {("fail", "not_loaded")}
    assert found["device.query"] == {("unknown", "blocked")}
    evidence = next(f["evidence"] for f in told["findings"] if f["check"] == "device.driver")
    assert any(tool["excerpt"] == one["excerpt"] and one["rc"] == 9 for one in evidence)
    assert told["observation"]["bus_count"] == len(told["observation"]["unanswered"]) == 8
    no_card_passes(told)


@pytest.mark.parametrize(("suite", "flavour", "version"), NVIDIA)
def test_nvidia_without_its_library(roots, ask, suite, flavour, version):
    put_nvidia(roots(suite), flavour, library=False)
    host = state.expand({"profile": "nvidia_h100_8"})
    told = ask(suite, "nvidia", host, commands=["nvidia-smi -q -x"])
    tool = tools(told)["nvidia-smi"]
    assert (tool["state"], tool["reason"], tool["rc"]) == ("failed", "library_missing", 12)
    assert tool["excerpt"].splitlines()[0] in told["said"][0]["stdout"]
    assert len(told["observation"]["errors"]) == 1  # said once, not once a card
    # The kernel module is there.
    assert verdicts(told)["device.driver"] == {("fail", "no_library")}
    no_card_passes(told)


def test_nvidia_on_a_host_without_cards_is_no_host_with_no_cards(roots, ask):
    put_nvidia(roots("trixie"), "current")
    told = ask("trixie", "nvidia")
    assert (told["observation"]["count"], told["observation"]["bus_count"]) == (None, None)
    assert tools(told)["nvidia-smi"]["reason"] == "driver_not_loaded"
    assert verdicts(told)["device.driver"] == {("fail", "not_loaded")}
    no_card_passes(told)


# --- AMD -----------------------------------------------------------------------------------------------------------


def test_amd_without_its_driver(ask):
    host = state.expand({"profile": "amd_mi300x_8"})
    for suite in SUITES:
        told = ask(suite, "amd", host, without=("module",), commands=["rocm-smi --showid --json"])
        name = "amd-smi" if suite == "trixie" else "rocm-smi"
        tool = tools(told)[name]
        assert (tool["state"], tool["reason"]) == ("failed", "driver_not_loaded"), str(tool["excerpt"])
        assert "not found in modules" in tool["excerpt"] and "not found in modules" in spoken(told)
        # rocm-smi ends with 0 all the same.
        assert told["said"][0]["rc"] == 0 and tool["rc"] == {"amd-smi": 255, "rocm-smi": 0}[name]
        assert verdicts(told)["device.driver"] == {("fail", "not_loaded")}
        assert len(told["observation"]["unanswered"]) == 8
        no_card_passes(told)


def test_amd_whose_library_finds_nothing_although_the_driver_is_loaded(ask):
    host = state.expand({"profile": "amd_mi300x_8"})
    told = ask("trixie", "amd", host, without=("class",), commands=["amd-smi list --json", "rocm-smi --showid --json"])
    tool = tools(told)["amd-smi"]
    # It blames the module, which is there.
    assert "amdgpu not found in modules" in tool["excerpt"]
    assert (tool["state"], tool["reason"], tool["rc"]) == ("failed", "driver_not_ready", 255)
    assert verdicts(told)["device.driver"] == {("fail", "not_ready")}
    assert [one["rc"] for one in told["said"]] == [255, 8]
    no_card_passes(told)


@pytest.mark.parametrize("suite", SUITES)
def test_rocm_smi_lists_the_emulated_cards(ask, suite):
    # ROCm 5.2 reads no card that shows no voltage, as MI300X does not.
    models = {"cards": [{"slot": f"OAM{n}", "model": "AMD Instinct MI210"} for n in range(8)]}
    host = state.expand({"profile": "amd_mi300x_8", **models})
    nodes = "kfd " + " ".join(f"dri/renderD{128 + n}" for n in range(8))
    told = ask(suite, "amd", host, nodes=nodes, commands=["rocm-smi --version"])
    tool = tools(told)["rocm-smi"]
    assert tool["state"] == "ok" and told["observation"]["count"] == 8, told["observation"]["errors"]
    expected = {card.address: card for card in host.cards}
    assert {device["pci_address"] for device in told["observation"]["devices"]} == set(expected)
    for device in told["observation"]["devices"]:
        card = expected[device["pci_address"]]
        assert device["uuid"] == "0x" + state.asic_serial(card)[2:].lower().zfill(16)
        assert device["memory_bytes"] == card.memory_mib << 20
        assert device["firmware_version"] == card.part_number
        assert device["readings"]["temperature_c"] == state.temperature_c(card)
        assert device["serial"] is None  # the tool says N/A, as it does of many cards
        assert (device["link"]["width"], device["numa_node"]) == (16, card.numa_node)
        assert device["health"]["state"] == "ok"
    if suite == "trixie":
        # A null device is no render node, and amd-smi dies of it without a word; rocm-smi makes up for it.
        dead = tools(told)["amd-smi"]
        assert (dead["state"], dead["rc"], dead["excerpt"]) == ("failed", -11, "")
        assert any("rc -11, nothing printed" in error for error in told["observation"]["errors"])
