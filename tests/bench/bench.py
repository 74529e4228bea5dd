# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the collection costs, as ratios measured in one run on a rehearsal cluster (`make bench`).

1. `accelerator_info` on eight cards against 1.3 x the bare vendor command + a bare `ping` module. The three are
   measured in turn, round after round, so that a busy machine slows all of them; medians are compared.
2. A second `site` run: changed tasks, number of tasks, seconds a host.

Exit status 1 when a target is missed.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INVENTORY = ROOT / "inventories/rehearsal"
BIN = Path(sys.executable).parent
ROUNDS = 7
ALLOWED = 1.3
VENDOR_COMMANDS = {"gpu-01": "nvidia-smi -q -x", "gpu-03": "amd-smi static --json", "npu-01": "npu-smi info"}


def ansible(program: str, *arguments: str) -> tuple[float, str]:
    """Run one command of Ansible; return its seconds and what it printed. A failure ends the benchmark."""
    environment = dict(
        os.environ, ANSIBLE_NOCOLOR="1", ANSIBLE_LOAD_CALLBACK_PLUGINS="1", ANSIBLE_STDOUT_CALLBACK="default"
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
    timed = f"TIMEFORMAT=%R; time {command} >/dev/null"
    done = subprocess.run(
        ["ssh", "-F", str(config), host, timed], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{command} on {host} ended with {done.returncode}: {done.stderr[-2000:]}")
    return float(done.stderr.split()[-1])


def query_cost(host: str, command: str) -> bool:
    """Print and judge the cost of the device query on one host."""
    pings, queries, vendors = [], [], []
    for _unused in range(ROUNDS):
        pings.append(ansible("ansible", host, "-m", "ansible.builtin.ping")[0])
        vendors.append(vendor_seconds(host, command))
        queries.append(ansible("ansible", host, "-m", "accel.cluster.accelerator_info")[0])
    ping, vendor, query = (statistics.median(values) for values in (pings, vendors, queries))
    allowed = ALLOWED * vendor + ping
    print(
        f"accelerator_info on {host}: {query:.3f} s; "
        f"allowed {ALLOWED} x {vendor:.3f} s ({command}) + {ping:.3f} s (ping)"
        f" = {allowed:.3f} s; ratio {query / allowed:.2f} (at most 1.00)"
    )
    return query <= allowed


def site_cost() -> bool:
    """Print and judge a second run of site; the first of the two only makes sure that it is a second one."""
    ansible("ansible-playbook", "accel.cluster.site")
    seconds, text = ansible("ansible-playbook", "accel.cluster.site")
    rows = re.findall(r"^(\S+)\s+: ok=(\d+)\s+changed=(\d+)", text, re.MULTILINE)
    changed = sum(int(row[2]) for row in rows)
    tasks = len(re.findall(r"^TASK \[", text, re.MULTILINE))
    print(
        f"second site run: changed={changed} on {len(rows)} hosts, {tasks} tasks, {seconds:.1f} s, "
        f"{seconds / max(len(rows), 1):.1f} s a host"
    )
    return bool(rows) and changed == 0


def main() -> int:
    """Run all of it; every figure is printed before the verdict."""
    good = [query_cost(host, command) for host, command in VENDOR_COMMANDS.items()]
    good.append(site_cost())
    print(json.dumps({"targets": len(good), "met": sum(good)}))
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
