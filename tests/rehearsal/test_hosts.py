# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The life of test hosts on this machine, on an instance of their own: made, used, stopped, killed, removed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HOSTS = ("node-01", "node-02")


class Proving:
    """The instance `proving`, through the script's command line."""

    def __init__(self, script) -> None:
        self.script = script
        self.instance = script.Instance("proving")

    def do(self, action: str, *words: str) -> dict:
        argv = ["/usr/bin/python3", str(ROOT / "tools/rehearsal_hosts.py"), action, "--instance", "proving", *words]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=400, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout else {}

    def ssh(self, host: str, command: str) -> str:
        argv = ["ssh", "-F", str(self.instance.ssh_dir / "config"), "-o", "ConnectTimeout=10", host, command]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def ids(self) -> list[str]:
        return [path.name for path in (self.instance.graph / "overlay-containers").glob("*") if path.is_dir()]

    def traces(self) -> list[str]:
        """Return what of the instance the machine still holds: mounts, links, rules, run time state."""
        found = [
            line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(self.instance.dir) in line
        ]
        links = json.loads(subprocess.check_output(["ip", "-json", "link"]))
        found += [link["ifname"] for link in links if link["ifname"] in self.instance.bridges.values()]
        found += [str(path) for path in (self.instance.run_dir, self.instance.dir) if path.exists()]
        return found


@pytest.fixture(scope="module")
def proving(script):
    proving = Proving(script)
    proving.do("destroy")
    proving.do("create", *HOSTS)
    yield proving
    proving.do("destroy")


def test_hosts_are_machines_of_their_own(proving) -> None:
    said = {host: proving.ssh(host, "hostname; cat /etc/machine-id; systemctl is-system-running") for host in HOSTS}
    names, machines, states = zip(*(text.splitlines() for text in said.values()))
    assert names == HOSTS
    assert len(set(machines)) == 2
    assert set(states) == {"running"}


def test_hosts_have_an_address_on_each_network_and_know_each_other(proving) -> None:
    state = json.loads(proving.instance.state_file.read_text())
    addresses = proving.ssh("node-02", "ip -4 -brief address")
    for interface, key in (("management0", "address"), ("fabric0", "fabric_address")):
        row = next(line for line in addresses.splitlines() if line.startswith(interface))
        assert row.split()[2] == f"{state['hosts']['node-02'][key]}/24"
    assert proving.ssh("node-02", "getent hosts node-01").split() == [state["hosts"]["node-01"]["address"], "node-01"]
    # The other host's sshd, over the fabric network.
    greeting = f"exec 3<>/dev/tcp/{state['hosts']['node-01']['fabric_address']}/22; head -c 7 <&3"
    assert proving.ssh("node-02", f"timeout 10 bash -c '{greeting}'") == "SSH-2.0"


def test_hosts_can_not_set_the_clock_of_the_machine(proving) -> None:
    assert "Operation not permitted" in proving.ssh("node-01", "date --set=@$(date +%s) 2>&1 || true")


def test_the_machines_kernel_log_is_not_the_hosts(proving) -> None:
    assert proving.ssh("node-01", "journalctl --dmesg --boot --quiet --no-pager") == ""


def test_the_marker_names_the_instance(proving) -> None:
    assert proving.ssh("node-01", "cat /etc/accel/rehearsal") == proving.instance.id


def test_a_second_create_changes_nothing(proving) -> None:
    before = proving.ids()
    assert proving.do("create", *HOSTS)["changed"] is False
    assert proving.ids() == before


def test_a_stopped_host_comes_back_as_it_was(proving) -> None:
    proving.ssh("node-02", "echo kept > /root/kept")
    proving.do("stop", "node-02")
    assert proving.do("create", *HOSTS)["started"] == ["node-02"]
    assert proving.ssh("node-02", "cat /root/kept") == "kept"


def test_packages_of_one_host_are_there_for_the_next_without_a_network(proving) -> None:
    pool = proving.script.CACHE / "apt/pool"
    proving.ssh(
        "node-01", "test -x /usr/bin/tree || { apt-get -q update && apt-get -qy install tree; } >/dev/null 2>&1"
    )
    proving.do("create", *HOSTS)
    assert list(pool.glob("tree_*.deb"))
    proving.do("destroy")
    proving.do("create", *HOSTS)
    # No way out: the default route is what leads to the network.
    proving.ssh("node-02", "ip route del default && apt-get -qy install tree >/dev/null 2>&1 && tree --version")


def test_after_everything_was_killed_at_once_hosts_come_up_clean(proving) -> None:
    proving.ssh("node-01", "echo old > /root/old")
    before = proving.ids()
    assert len(before) == 2
    victims = proving.script.kill_all(before)
    assert len(victims) > 2 * 5, "the processes of two booted hosts and their monitors"
    assert proving.do("create", *HOSTS)["started"] == list(HOSTS)
    assert not set(before) & set(proving.ids())
    assert proving.ssh("node-01", "test -e /root/old || echo clean; systemctl is-system-running") == "clean\nrunning"


def test_nothing_is_left_of_hosts_that_were_killed_and_removed(proving) -> None:
    ids = proving.ids()
    assert proving.script.kill_all(ids)
    proving.do("destroy")
    assert proving.traces() == []
    assert proving.script.pids_of(ids) == []
    assert [path for path in Path("/run").glob("*c/*") if path.name in ids] == []
    assert proving.do("destroy") == {"changed": False}
