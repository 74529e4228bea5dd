# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the script of the test hosts decides; what it does to a machine is in tests/rehearsal."""

from __future__ import annotations

import ipaddress
import json
import os
import resource
import shlex
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

TOOLS = Path(__file__).resolve().parents[3] / "tools"


@pytest.fixture
def answers(hosts, monkeypatch):
    """Answer the script's commands from a table `{first words: stdout}`; keep what it ran in `ran`."""
    table: dict[str, str] = {}
    ran: list[str] = []

    def run(argv, **_more):
        line = " ".join(str(word) for word in argv)
        ran.append(line)
        for start, text in table.items():
            if line.startswith(start):
                return SimpleNamespace(stdout=text, stderr="", returncode=0)
        return SimpleNamespace(stdout="", stderr="", returncode=0)

    monkeypatch.setattr(hosts, "run", run)
    return SimpleNamespace(table=table, ran=ran)


def routes(*networks: str) -> str:
    return json.dumps([{"dst": network, "dev": "eth0"} for network in networks])


def test_instances_and_checkouts_never_meet(hosts, tmp_path) -> None:
    names = set()
    for checkout in ("one", "two"):
        hosts.CACHE = tmp_path / checkout
        for instance in ("rehearsal", "molecule"):
            made = hosts.Instance(instance)
            names |= {made.id, str(made.run_dir), str(made.graph), *made.bridges.values()}
    assert len(names) == 4 * 5


def test_a_bridge_has_a_name_that_the_kernel_takes(hosts) -> None:
    assert {len(name) for name in hosts.Instance("rehearsal").bridges.values()} == {11}  # IFNAMSIZ allows 15


def test_the_subnets_stay_the_same_while_nothing_is_in_the_way(hosts, answers) -> None:
    answers.table["ip -json -4 route"] = routes("192.0.2.0/24")
    instance = hosts.Instance("rehearsal")
    first = instance.choose_subnets()
    assert first == instance.choose_subnets()
    assert {network.prefixlen for network in first.values()} == {24}
    assert first["management"].supernet() == first["fabric"].supernet()
    assert first["management"].subnet_of(ipaddress.ip_network("10.64.0.0/10"))


@pytest.mark.parametrize("kind", ["management", "fabric"])
def test_a_subnet_that_the_machine_routes_is_left_alone(hosts, answers, kind) -> None:
    answers.table["ip -json -4 route"] = routes()
    instance = hosts.Instance("rehearsal")
    before = instance.choose_subnets()
    answers.table["ip -json -4 route"] = routes(str(before[kind]))
    after = instance.choose_subnets()
    assert not any(ours.overlaps(before[kind]) for ours in after.values())


@pytest.mark.parametrize("index", [0, 1, 127])
def test_podmans_own_network_is_left_alone(hosts, answers, index) -> None:
    answers.table["ip -json -4 route"] = routes()
    instance = hosts.Instance("rehearsal")
    # The number that a checkout has is the hash of its path: one in 64 leads there.
    instance.id = f"{(24 << 16 >> 9) + index:x}"
    nets = instance.choose_subnets()
    assert [str(one) for one in nets.values()] == ["10.89.0.0/24", "10.89.1.0/24"]


def test_a_machine_that_routes_the_whole_range_gets_a_sentence(hosts, answers) -> None:
    answers.table["ip -json -4 route"] = routes("10.64.0.0/11", "10.96.0.0/11")
    with pytest.raises(hosts.Problem, match=r"no free /23 in 10\.64\.0\.0/10"):
        hosts.Instance("rehearsal").choose_subnets()


def test_a_bridge_of_its_own_is_no_obstacle(hosts, answers) -> None:
    answers.table["ip -json -4 route"] = routes()
    instance = hosts.Instance("rehearsal")
    before = instance.choose_subnets()
    own = [{"dst": str(before["fabric"]), "dev": instance.bridges["fabric"]}]
    answers.table["ip -json -4 route"] = json.dumps(own)
    assert instance.choose_subnets() == before


def test_a_hardware_address_follows_from_the_address(hosts) -> None:
    assert hosts.mac_of("10.86.134.11") == "02:ac:0a:56:86:0b"


def test_only_the_debian_sources_of_the_own_release_are_taken(hosts, answers, monkeypatch) -> None:
    monkeypatch.setattr(hosts, "os_release", lambda: {"VERSION_CODENAME": "bookworm"})
    answers.table["apt-get indextargets"] = "\n".join(
        [
            "http://mirror.invalid/debian/|bookworm|main|Debian|bookworm",
            "http://mirror.invalid/debian/|bookworm|contrib|Debian|bookworm",
            "http://mirror.invalid/debian-security/|bookworm-security|main|Debian|bookworm-security",
            "http://mirror.invalid/debian/|trixie|main|Debian|trixie",
            "http://vendor.invalid/node/|nodistro|main|. nodistro|nodistro",
            "http://mirror.invalid/debian/|bookworm-backports|main|Debian Backports|bookworm-backports",
        ]
    )
    keyring = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
    assert hosts.machine_sources() == [
        f"deb {keyring} http://mirror.invalid/debian/ bookworm contrib main",
        f"deb {keyring} http://mirror.invalid/debian-security/ bookworm-security main",
    ]


def test_a_machine_without_package_lists_gets_a_sentence(hosts, answers) -> None:
    with pytest.raises(hosts.Problem, match="run 'apt-get update'"):
        hosts.machine_sources()


def test_hosts_reach_packages_as_the_machine_does_and_take_nothing_else_of_it(hosts, answers) -> None:
    answers.table["apt-config dump"] = "\n".join(
        [
            'Acquire::AllowInsecureRepositories "0";',
            'Acquire::Check-Valid-Until "false";',
            'Acquire::http::Proxy "http://proxy.invalid:3128";',
            'Acquire::IndexTargets::deb::Packages::MetaKey "x";',
        ]
    )
    assert hosts.machine_apt_options() == [
        'Acquire::Check-Valid-Until "false";',
        'Acquire::http::Proxy "http://proxy.invalid:3128";',
        'Acquire::Languages "none";',
    ]


@pytest.mark.parametrize(
    ("effective", "hard", "expected"),
    [
        ("000001ffffffffff", (20000, 96365), []),
        ("000001fffeffffff", (20000, 96365), ["--ulimit=nofile=20000:20000", "--ulimit=nproc=20000:20000"]),
        ("000001fffeffffff", (-1, 4096), ["--ulimit=nofile=4096:4096", "--ulimit=nproc=4096:4096"]),
        ("0000000000000000", (-1, -1), ["--ulimit=nofile=1048576:1048576", "--ulimit=nproc=1048576:1048576"]),
    ],
    ids=["may-raise", "may-not", "one-unlimited", "both-unlimited"],
)
def test_limits_are_lowered_only_where_they_must_be(hosts, monkeypatch, effective, hard, expected) -> None:
    kinds = (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC)
    monkeypatch.setattr(hosts.resource, "getrlimit", lambda kind: (hard[kinds.index(kind)],) * 2)
    monkeypatch.setattr(hosts.pathlib.Path, "read_text", lambda _path, **_more: f"Name:\tx\nCapEff:\t{effective}\n")
    assert hosts.limits() == expected


@pytest.mark.parametrize(
    ("release", "user", "said"),
    [
        ({"ID": "fedora", "PRETTY_NAME": "Fedora Linux 44"}, 0, "needs a Debian machine; this is Fedora Linux 44"),
        ({"ID": "debian"}, 1000, "needs root"),
    ],
)
def test_a_machine_that_cannot_have_hosts_is_told_why(hosts, monkeypatch, capsys, release, user, said) -> None:
    monkeypatch.setattr(hosts, "os_release", lambda: release)
    monkeypatch.setattr(hosts.os, "geteuid", lambda: user)
    assert hosts.main(["create", "gpu-01"]) == 1
    assert said in capsys.readouterr().err


def test_archives_are_shared_by_links_and_partial_downloads_are_not(hosts, tmp_path) -> None:
    downloads = hosts.CACHE / "apt/hosts/rehearsal/gpu-01"
    (downloads / "partial").mkdir(parents=True)
    (downloads / "chrony_4.3_amd64.deb").write_text("whole")
    (downloads / "partial/numactl_2_amd64.deb").write_text("half")
    hosts.harvest_archives("rehearsal")
    other = tmp_path / "gpu-02"
    hosts.link_archives(hosts.CACHE / "apt/pool", other)
    assert [path.name for path in other.iterdir()] == ["chrony_4.3_amd64.deb"]
    assert os.path.samefile(other / "chrony_4.3_amd64.deb", downloads / "chrony_4.3_amd64.deb")


def test_only_firewall_rules_of_the_own_subnet_go(hosts, answers, monkeypatch) -> None:
    monkeypatch.setattr(hosts.shutil, "which", lambda _name: "/usr/sbin/iptables")
    answers.table["iptables -w -t nat -S"] = "\n".join(
        [
            "-N NETAVARK-AAAA",
            "-N NETAVARK-BBBB",
            "-A POSTROUTING -s 10.70.0.0/24 -j NETAVARK-AAAA",
            "-A POSTROUTING -s 10.80.0.0/24 -j NETAVARK-BBBB",
            "-A NETAVARK-AAAA -d 10.70.0.0/24 -j ACCEPT",
        ]
    )
    hosts.remove_firewall_rules("10.70.0.0/24")
    assert [line for line in answers.ran if " -S" not in line] == [
        "iptables -w -t nat -D POSTROUTING -s 10.70.0.0/24 -j NETAVARK-AAAA",
        "iptables -w -t nat -D NETAVARK-AAAA -d 10.70.0.0/24 -j ACCEPT",
        "iptables -w -t nat -F NETAVARK-AAAA",
        "iptables -w -t nat -X NETAVARK-AAAA",
    ]


def test_a_command_that_hangs_becomes_a_sentence(hosts) -> None:
    with pytest.raises(hosts.Problem, match=r"gave no answer in 0\.1 s: sleep 30"):
        hosts.run(["sleep", "30"], seconds=0.1)


def test_a_command_that_fails_brings_its_own_words_along(hosts) -> None:
    with pytest.raises(hosts.Problem, match="ended with 2: sh -c echo what is wrong >&2; exit 2\nwhat is wrong"):
        hosts.run(["sh", "-c", "echo what is wrong >&2; exit 2"])


# Blanks and letters of any script are quoted, never split.
ODD_PATH = "a b/机 房"


def test_the_hook_of_mmdebstrap_takes_any_path(hosts, monkeypatch, tmp_path) -> None:
    ran = []

    def run(argv, **_more):
        ran.append(argv)
        (tmp_path / ODD_PATH / "root.part").write_text("")

    monkeypatch.setattr(hosts, "run", run)
    made_from = {"files": {"etc/x": ""}, "masked": [], "authorities": {}, "packages": "", "dpkg_options": [],
                 "apt_options": [], "suite": "bookworm", "sources": []}  # fmt: skip
    hosts.build_rootfs(made_from, tmp_path / ODD_PATH / "root.tar")
    (hook,) = [word.partition("=")[2] for word in ran[0] if "copy-in" in word]
    plan = tmp_path / ODD_PATH / "root.plan"
    # What mmdebstrap itself splits the line with.
    split = ["perl", "-MText::ParseWords", "-e", 'print join "\\n", shellwords $ARGV[0]', hook]
    told = subprocess.run(split, capture_output=True, text=True, check=True).stdout.split("\n")
    assert told == ["copy-in", f"{plan}/etc", f"{plan}/usr", "/"]


def test_ssh_finds_its_files_below_any_path(hosts, answers, tmp_path) -> None:
    hosts.CACHE = tmp_path / ODD_PATH
    instance = hosts.Instance("rehearsal")
    instance.ssh_dir.mkdir(parents=True)
    answers.table["podman exec"] = "ssh-ed25519 AAAA comment"
    addresses = {"gpu-01": {"management": "10.64.0.11", "fabric": "10.64.1.11"}}
    instance.write_state(["gpu-01"], addresses, {"management": "10.64.0.0/24", "fabric": "10.64.1.0/24"})
    files = {"identityfile": f"{instance.ssh_dir}/id_ed25519", "userknownhostsfile": f"{instance.ssh_dir}/known_hosts"}
    by_inventory = (TOOLS.parent / "inventories/rehearsal/group_vars/cluster_hosts/rehearsal.yml").read_text()
    common = yaml.safe_load(by_inventory)["ansible_ssh_common_args"]
    common = common.replace("{{ rehearsal_state.ssh.known_hosts }}", files["userknownhostsfile"])
    for arguments, wanted in (
        (["-F", str(instance.ssh_dir / "config")], files),
        (["-F", "none", *shlex.split(common)], {"userknownhostsfile": files["userknownhostsfile"]}),
    ):
        done = subprocess.run(["ssh", "-G", *arguments, "gpu-01"], capture_output=True, text=True, check=True)
        told = dict(line.partition(" ")[::2] for line in done.stdout.splitlines())
        assert {key: told[key] for key in wanted} == wanted


def test_what_is_mounted_below_any_path_is_found(hosts, answers, monkeypatch) -> None:
    text = "36 35 98:0 / /x/a\\040b/机\\040房/merged rw - overlay overlay rw\n37 35 98:0 / /x/else rw - tmpfs t rw\n"
    monkeypatch.setattr(hosts.pathlib.Path, "read_text", lambda *_args, **_more: text)
    hosts.unmount_below(f"/x/{ODD_PATH}")
    assert answers.ran == [f"umount --lazy /x/{ODD_PATH}/merged"]


@pytest.mark.parametrize("sign", [*":,\"'\\%${}`", "\n"])
def test_a_path_that_podman_or_ssh_can_not_take_is_refused_before_anything_is_made(tmp_path, sign) -> None:
    place = tmp_path / f"a{sign}b/tools"
    place.mkdir(parents=True)
    shutil.copy(TOOLS / "setup.sh", place)
    done = subprocess.run([str(place / "setup.sh"), "rehearsal"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.startswith("set-up: the path of the checkout, "), done.stderr
    assert [path.name for path in place.parent.iterdir()] == ["tools"]


def test_make_works_in_any_locale() -> None:
    """Ansible refuses to start in one that is not UTF-8, as a bare server's or that of a script."""
    show = ["make", "-s", "-C", str(TOOLS.parent), "--eval", "show: ; @echo $$LC_ALL", "show"]
    done = subprocess.run(show, env={**os.environ, "LC_ALL": "C"}, capture_output=True, text=True, check=True)
    assert done.stdout == "C.UTF-8\n"


@pytest.mark.parametrize("words", [["podman", "ps"], ["podman", "--", "ps", "-a"], ["stop", "gpu-01"]])
@pytest.mark.parametrize("instance", [[], ["--instance", "molecule"]], ids=["usual", "named"])
def test_without_test_hosts_a_command_ends_in_one_line(hosts, monkeypatch, capsys, words, instance) -> None:
    monkeypatch.setattr(hosts, "check_machine", lambda: None)
    monkeypatch.setattr(hosts.os, "execvpe", lambda *_words: pytest.fail("podman would have complained of our files"))
    monkeypatch.delenv("ACCEL_REHEARSAL_INSTANCE", raising=False)
    assert hosts.main(instance + words) == 1
    name = instance[1] if instance else "rehearsal"
    told = capsys.readouterr()
    assert told.err == f"rehearsal hosts: the instance {name} has no test hosts; 'make rehearsal' makes them\n"
    assert told.out == ""
    assert not hosts.CACHE.exists() or list(hosts.CACHE.iterdir()) == []


def test_with_test_hosts_podman_is_asked(hosts, monkeypatch) -> None:
    asked = []

    def become(*words) -> None:
        asked.append(words)
        raise KeyboardInterrupt  # the program is another one from here on

    monkeypatch.setattr(hosts, "check_machine", lambda: None)
    monkeypatch.setattr(hosts.os, "execvpe", become)
    hosts.Instance("rehearsal").configure()
    with pytest.raises(KeyboardInterrupt):
        hosts.main(["--instance", "rehearsal", "podman", "ps"])
    ((_program, words, environment),) = asked
    assert words == ["podman", "ps"]
    assert Path(environment["CONTAINERS_CONF"]).exists()


def test_there_is_nothing_to_destroy_twice(hosts, monkeypatch, capsys) -> None:
    monkeypatch.setattr(hosts, "check_machine", lambda: None)
    assert hosts.main(["destroy"]) == 0
    assert json.loads(capsys.readouterr().out) == {"changed": False}
