# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the collection costs, as ratios measured in one run on a rehearsal cluster (`make bench`).

Each line ends with the ratio to what is allowed, and `pass` or `missed`. A busy machine misses more, so nothing
hangs on it: the exit status is 0 unless something could not be measured at all.

1. `accelerator_info` on eight cards against the bare vendor commands + a bare `ping` module + 0.10 s. They are measured
   in turn, round after round, so that a busy machine slows all of them; medians are compared. The rounds of a host are
   the tasks of one playbook, in which Ansible puts the module together once, however many hosts it has: that first
   time is told apart.
2. `accelerator_info` without a vendor's tool, from sysfs alone, against `ping` + 0.10 s.
3. The start of `accelctl` on a host (0.15 s).
4. A second `site` run: changed tasks, number of tasks, seconds a host.
5. The pull of the same image by all nodes at once, against that of one node (no longer than one after the other), and a
   second run of the playbooks image and container: changed tasks, number of tasks, seconds.

With `--offline` nothing but what needs no cluster, in this process:

6. Reading the answer of each vendor's tool for 64 devices (20 ms), as the emulator prints it.
7. Comparing the slot records of 1,000 hosts with 8,000 cards with their baselines (0.5 s).
8. Loading what `accelctl` loads (0.15 s), in a process of its own.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import copy
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INVENTORY = ROOT / "inventories/rehearsal"
BIN = Path(sys.executable).parent
ROUNDS = 15
OVERHEAD_SECONDS = 0.10
ACCELCTL_SECONDS = 0.15
OFFLINE_ROUNDS = 9
DEVICES, PARSE_SECONDS = 64, 0.020
# The image that the rehearsal's nodes hold
IMAGE, PULL_ROUNDS = "ctl-01:5000/train/loop:1", 3
HOSTS, CARDS_A_HOST, COMPARE_SECONDS = 1000, 8, 0.5
# As a query asks them: what it asks at the same time runs at the same time here.
CARDS = range(8)
VENDOR_COMMANDS = {
    "gpu-01": ["nvidia-smi -q -x", "nvidia-smi nvlink -s"],
    "gpu-03": ["amd-smi static --json & amd-smi metric --json & wait", "amd-smi xgmi --json"],
    "npu-01": [
        "npu-smi info",
        " & ".join([*(f"npu-smi info -t board -i {npu}" for npu in CARDS), "wait"]),
        "npu-smi info -m",
        " & ".join([*(f"npu-smi info -t ecc -i {npu}" for npu in CARDS), "wait"]),
        " & ".join([*(f"npu-smi info -t hccs -i {npu} -c 0" for npu in CARDS), "wait"]),
    ],
}
# A vendor without cards and tool there: the bus is walked, nothing is asked.
SYSFS_ONLY = {"vendors": ["gaudi"], "gather": ["slots"]}
ROUND = [
    {"name": "ping", "ansible.builtin.ping": {}},
    {"name": "query", "accel.cluster.accelerator_info": {}},
    {"name": "walk", "accel.cluster.accelerator_info": SYSFS_ONLY},
]


def judged(what: str, times: list[float], allowed: float, why: str, of_times=statistics.median) -> bool:
    """Print one figure with its spread, what is allowed and why, the ratio, and whether it passes."""
    seconds = of_times(times)
    print(
        f"{what}: {seconds:.3f} s (of {len(times)}: {min(times):.3f} to {max(times):.3f}); allowed {allowed:.3f} s "
        f"({why}); ratio {seconds / allowed:.2f}: {'pass' if seconds <= allowed else 'missed'}"
    )
    return seconds <= allowed


def ansible(program: str, *arguments: str, stdout_callback: str = "default") -> tuple[float, str]:
    """Run one command of Ansible; return its seconds and what it printed. A failure ends the benchmark."""
    environment = dict(
        os.environ, ANSIBLE_NOCOLOR="1", ANSIBLE_LOAD_CALLBACK_PLUGINS="1", ANSIBLE_STDOUT_CALLBACK=stdout_callback
    )
    started = time.monotonic()
    done = subprocess.run(
        [str(BIN / program), f"--inventory={INVENTORY}", *arguments],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(
            f"{program} {' '.join(arguments)} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-2000:]}"
        )
    return time.monotonic() - started, done.stdout


def vendor_seconds(host: str, command: str) -> float:
    """Return what the bare vendor command takes on the host, measured there."""
    instance = os.environ.get("ACCEL_REHEARSAL_INSTANCE", "rehearsal")
    config = ROOT / ".cache" / instance / "ssh/config"
    timed = f"TIMEFORMAT=%R; time {{ {command}; }} >/dev/null"
    done = subprocess.run(
        ["ssh", "-F", str(config), host, timed], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{command} on {host} ended with {done.returncode}: {done.stderr[-2000:]}")
    return float(done.stderr.split()[-1])


def task_seconds(host: str) -> dict[str, list[float]]:
    """Return what each task of ROUNDS rounds in one playbook takes on the host, by its name, in order."""
    with tempfile.TemporaryDirectory() as folder:
        playbook = Path(folder) / "rounds.yml"
        playbook.write_text(json.dumps([{"hosts": host, "gather_facts": False, "tasks": ROUND * ROUNDS}]))
        _seconds, text = ansible("ansible-playbook", str(playbook), stdout_callback="ansible.posix.json")
    seconds: dict[str, list[float]] = {}
    for task in json.loads(text)["plays"][0]["tasks"]:
        begin, end = (datetime.fromisoformat(task["task"]["duration"][when]) for when in ("start", "end"))
        seconds.setdefault(task["task"]["name"], []).append((end - begin).total_seconds())
    return seconds


def query_cost(host: str, commands: list[str]) -> list[bool]:
    """Print and judge the cost of the device query on one host, with the vendor's tool and without."""
    vendor = statistics.median(vendor_seconds(host, "; ".join(commands)) for _unused in range(ROUNDS))
    seconds = task_seconds(host)
    ping = statistics.median(seconds["ping"])
    bare = f"{ping:.3f} s ping + {OVERHEAD_SECONDS} s"
    print(
        f"the first accelerator_info of a run, which puts the module together, on {host}: {seconds['query'][0]:.3f} s"
    )
    return [
        judged(
            f"accelerator_info on {host}",
            seconds["query"],
            vendor + ping + OVERHEAD_SECONDS,
            f"{vendor:.3f} s vendor commands + {bare}",
        ),
        judged(f"accelerator_info from sysfs alone on {host}", seconds["walk"], ping + OVERHEAD_SECONDS, bare),
    ]


def accelctl_cost(host: str) -> bool:
    """Print and judge how long accelctl takes to say how it is used."""
    seconds = [vendor_seconds(host, "accelctl --help") for _unused in range(ROUNDS)]
    return judged(f"accelctl --help on {host}", seconds, ACCELCTL_SECONDS, "start of a command")


def load_cost() -> bool:
    """Print and judge what loading accelctl's code takes, from compiled files as on a host."""
    code = "import sys; sys.path.insert(0, sys.argv[1]); from _accel import cli"
    argv = [sys.executable, "-I", "-c", code, str(ROOT / "plugins/module_utils")]
    seconds = []
    for _unused in range(OFFLINE_ROUNDS):
        started = time.perf_counter()
        subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - started)
    return judged("loading accelctl", seconds, ACCELCTL_SECONDS, "start of a command")


def site_cost() -> bool:
    """Print and judge a second run of site; the first of the two only makes sure that it is a second one."""
    ansible("ansible-playbook", "accel.cluster.site")
    return second_run("site", "accel.cluster.site")


def second_run(what: str, *playbooks: str) -> bool:
    """Print and judge a run that is to change nothing."""
    seconds, text = ansible("ansible-playbook", *playbooks)
    rows = re.findall(r"^(\S+)\s+: ok=(\d+)\s+changed=(\d+)", text, re.MULTILINE)
    changed = sum(int(row[2]) for row in rows)
    tasks = len(re.findall(r"^TASK \[", text, re.MULTILINE))
    print(
        f"second {what} run: changed={changed} on {len(rows)} hosts, {tasks} tasks, {seconds:.1f} s, "
        f"{seconds / max(len(rows), 1):.1f} s a host"
    )
    return bool(rows) and changed == 0


def pull_cost() -> list[bool]:
    """Print and judge what it takes all nodes at once to pull the image that they hold, against one node alone."""
    instance = os.environ.get("ACCEL_REHEARSAL_INSTANCE", "rehearsal")
    accepted = json.loads((ROOT / "sites" / instance / "baselines/images.json").read_text(encoding="utf-8"))["images"]
    digest = accepted[IMAGE]["digest"]
    nodes = json.loads(ansible("ansible-inventory", "--list")[1])["_meta"]["hostvars"]
    nodes = [host for host in nodes if host != "ctl-01"]
    pull = f"podman pull -q --authfile /etc/accel/registry-login/config.json {IMAGE.rpartition(':')[0]}@{digest}"
    alone, together = [], []
    with concurrent.futures.ThreadPoolExecutor(len(nodes)) as pool:
        for _unused in range(PULL_ROUNDS):
            for host in nodes:
                vendor_seconds(host, "podman rmi --all --force")
            alone.append(vendor_seconds(nodes[0], pull))
            vendor_seconds(nodes[0], "podman rmi --all --force")
            started = time.monotonic()
            list(pool.map(lambda host: vendor_seconds(host, pull), nodes))
            together.append(time.monotonic() - started)
    one = statistics.median(alone)
    print(
        f"pull of {IMAGE} by one node: {one:.3f} s; by {len(nodes)} at once: {statistics.median(together) / one:.2f} x"
    )
    why = f"{len(nodes)} x one node's"
    good = [judged(f"pull by {len(nodes)} nodes at once", together, one * len(nodes), why)]
    # It puts the tags back that nodes have beside the digest.
    ansible("ansible-playbook", "accel.cluster.container")
    return [*good, second_run("image and container", "accel.cluster.image", "accel.cluster.container")]


def measured(action: Callable[[], object]) -> list[float]:
    """Return the seconds of several runs, of this process alone: what the code costs, not the machine."""
    seconds = []
    for _unused in range(OFFLINE_ROUNDS):
        started = time.process_time()
        action()
        seconds.append(time.process_time() - started)
    return seconds


def big_host(profile: str):
    """Return an emulated host of 64 cards: eight servers of the profile, each in a PCI domain of its own."""
    from accel_emulator import state

    host = state.expand({"profile": profile, "seed": "bench"})
    cards = []
    for domain in range(DEVICES // len(host.cards)):
        twins = state.expand({"profile": profile, "seed": f"bench {domain}"}).cards
        for card in twins:
            address = f"{domain:04x}{card.address[4:]}"
            cards.append(replace(card, index=len(cards), address=address, slot_number=len(cards)))
    host.cards = cards
    return host


def answers() -> dict[str, tuple[str, Callable[[str], int]]]:
    """Return by command what each vendor's tool says of 64 devices, and what counts them in it."""
    sys.path.insert(0, str(ROOT / "tests"))
    sys.path.insert(0, str(ROOT / "roles/emulator/files"))
    from checkout import make_importable

    make_importable()
    from accel_emulator import amd, amd_smi, ascend, npu_smi, nvidia, nvidia_smi
    from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors import amd as read_amd
    from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors import ascend as read_ascend
    from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors import nvidia as read_nvidia

    hosts = {profile: big_host(profile) for profile in ("nvidia_h100_8", "amd_mi300x_8", "ascend_910b_8")}
    xml = nvidia_smi.answer(nvidia.render(hosts["nvidia_h100_8"]), ["-q", "-x"], 1764500000.0)[1]
    amd_data = amd.render(hosts["amd_mi300x_8"])
    static = amd_smi.answer(amd_data, ["static", "--json"])[1]
    metric = amd_smi.answer(amd_data, ["metric", "--json"])[1]
    table = npu_smi.answer(ascend.render(hosts["ascend_910b_8"]), ["info"])[1]
    known = [card.address for card in hosts["amd_mi300x_8"].cards]

    def of_amd(text: str) -> int:
        return len(read_amd.devices(read_amd.read(text).entries, read_amd.read(metric).entries, known, "amd-smi"))

    def of_ascend(text: str) -> int:
        return len(read_ascend.devices(read_ascend.read_table(text), read_ascend.Told(), "npu-smi"))

    return {
        "nvidia-smi -q -x": (xml, lambda text: len(read_nvidia.parse_query(text).devices)),
        "amd-smi static --json + metric --json": (static, of_amd),
        "npu-smi info": (table, of_ascend),
    }


def parse_cost() -> list[bool]:
    """Print and judge what reading 64 devices costs."""
    good = []
    cases = answers()
    from ansible_collections.accel.cluster.plugins.module_utils._accel import text as values

    def first_time(text: str, count: Callable[[str], int]) -> int:
        values._state.cache_clear()  # a module reads one answer in its life
        return count(text)

    for command, (text, count) in cases.items():
        found = count(text)
        if found != DEVICES:
            sys.exit(f"{command}: {found} devices of {DEVICES} were read; the answer does not fit the parser")
        seconds = measured(lambda text=text, count=count: first_time(text, count))
        what = f"{command}, {DEVICES} devices, {len(text) / 1024:.0f} KiB"
        good.append(judged(what, seconds, PARSE_SECONDS, "the least counts", min))
    return good


def compare_cost() -> bool:
    """Print and judge what comparing 8,000 cards costs: most are where they were, some are not."""
    from ansible_collections.accel.cluster.plugins.module_utils._accel import slots

    def record(host: int) -> dict:
        cards = {
            f"SXM{number}": [
                {
                    "serial": f"165{host:05}{number}",
                    "uuid": f"GPU-{host}-{number}",
                    "identity": "uuid",
                    "pci_address": f"0000:{16 + number * 16:02x}:00.0",
                    "vendor": "nvidia",
                    "model": "NVIDIA H100 80GB HBM3",
                    "firmware_version": "96.00.74.00.01",
                    "slot_source": "vendor",
                    "candidates": [],
                    "present": True,
                    "state": None,
                }
            ]
            for number in range(CARDS_A_HOST)
        }
        tool = {"name": "nvidia-smi", "version": "570.86.15"}
        observed_at = "2026-11-30T01:02:03Z"
        return {"schema": 1, "host": f"gpu-{host:04}", "observed_at": observed_at, "tool": tool, "slots": cards,
                "unplaced": []}  # fmt: skip

    baselines = {f"gpu-{host:04}": record(host) for host in range(HOSTS)}
    records = copy.deepcopy(baselines)
    for host in range(0, HOSTS, 20):  # two cards changed places, one moved to the next host, one is another
        here, there = records[f"gpu-{host:04}"]["slots"], records[f"gpu-{host + 1:04}"]["slots"]
        here["SXM1"], here["SXM2"] = here["SXM2"], here["SXM1"]
        here["SXM3"], there["SXM3"] = there["SXM3"], here["SXM3"]
        here["SXM4"] = [{**here["SXM4"][0], "serial": f"999{host}", "uuid": f"GPU-new-{host}"}]
    found = slots.compare_cluster(baselines, records)
    if sum(slots.differs(one) for one in found.values()) != HOSTS // 10:
        sys.exit("the comparison did not find the cards that changed places")
    seconds = measured(lambda: slots.compare_cluster(baselines, records))
    return judged(
        f"compare {HOSTS * CARDS_A_HOST} cards of {HOSTS} hosts", seconds, COMPARE_SECONDS, "the least counts", min
    )


def main() -> int:
    """Run all of it; every figure is printed before the verdict."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--offline", action="store_true", help="only what needs no cluster")
    offline = parser.parse_args().offline
    good = [*parse_cost(), compare_cost(), load_cost()]
    if not offline:
        for host, commands in VENDOR_COMMANDS.items():
            good += query_cost(host, commands)
        good += [accelctl_cost("gpu-01"), site_cost(), *pull_cost()]
    print(json.dumps({"targets": len(good), "met": sum(good)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
