# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What apt says is read, and an upgrade is tried with the real apt, on a host that is made up in a folder."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import textwrap

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import apt
from ansible_collections.accel.cluster.plugins.module_utils._accel.runner import Runner
from doubles import HANG, RecordedRunner

DRIVER = "535.261.03-1"
REAL = pytest.mark.skipif(not (shutil.which("apt-get") and shutil.which("dpkg-query")), reason="needs apt")


# ------------------------------------------------------------------------------------------------------------ parsers


def test_packages_are_read_with_hold_and_state():
    lines = (
        "hold\tinstalled\tok\tlibnvidia-ml1\tlibnvidia-ml1:amd64\t1:535-1\tnvidia-graphics-drivers",
        "install\thalf-configured\tok\tnvidia-smi\tnvidia-smi\t535-1\tnvidia-graphics-drivers",
        "install\tinstalled\treinstreq\tnvidia-kernel-dkms\tnvidia-kernel-dkms\t535-1\tnvidia-graphics-drivers",
        "deinstall\tconfig-files\tok\told\told\t1\told",
        "a line that is none",
    )
    found = apt.parse_packages("\n".join(lines))
    assert [(one.full, one.status, one.held) for one in found] == [
        ("libnvidia-ml1:amd64", "installed", True),
        ("nvidia-smi", "half-configured", False),
        ("nvidia-kernel-dkms", "half-installed", False),
        ("old", "config-files", False),
    ]
    assert found[0].version == "1:535-1"


def test_policy_is_read():
    output = textwrap.dedent(
        """\
        nvidia-smi:
          Installed: 535.261.03-1
          Candidate: 535.309.01-0+deb12u1
          Version table:
             535.309.01-0+deb12u1 500
                500 http://mirror.example.org/debian-security bookworm-security/non-free amd64 Packages
         *** 535.261.03-1 -10
                100 /var/lib/dpkg/status
        libnvidia-ml1:i386:
          Installed: (none)
          Candidate: (none)
          Version table:
             535.261.03-1 -1
                500 http://mirror.example.org/debian bookworm/non-free i386 Packages
        """
    )
    policy = apt.parse_policy(output)
    assert policy["nvidia-smi"] == apt.Policy(
        "535.261.03-1", "535.309.01-0+deb12u1", {"535.309.01-0+deb12u1": 500, "535.261.03-1": -10}
    )
    assert policy["libnvidia-ml1:i386"] == apt.Policy(None, None, {"535.261.03-1": -1})
    assert apt.parse_policy("N: Unable to locate package nosuch\n") == {}


def test_a_simulated_run_is_read():
    output = (
        "Reading package lists...\nRemv old [1.0-1]\n"
        "Inst libnvidia-ml1:i386 [1:535-1] (1:550-1 Debian:12/stable [i386]) []\n"
        "Inst fresh (2.0 Debian:12/stable [all])\nConf fresh (2.0 Debian:12/stable [all])\n"
    )
    assert apt.parse_simulation(output) == [
        apt.Step("Remv", "old", "1.0-1"),
        apt.Step("Inst", "libnvidia-ml1:i386", "1:535-1", "1:550-1"),
        apt.Step("Inst", "fresh", None, "2.0"),
        apt.Step("Conf", "fresh", None, "2.0"),
    ]


def test_the_blacklist_is_read_and_matches_from_the_beginning():
    output = (
        'Unattended-Upgrade "";\nUnattended-Upgrade::Package-Blacklist "";\n'
        'Unattended-Upgrade::Package-Blacklist:: "nvidia-";\n'
        'Unattended-Upgrade::Package-Blacklist:: "libnvidia-ml1$";\n'
        'Unattended-Upgrade::Package-Blacklist:: "[";\n'
        'Unattended-Upgrade::Package-Whitelist:: "linux-";\n'
    )
    expressions = apt.parse_blacklist(output)
    assert expressions == ["nvidia-", "libnvidia-ml1$", "["]
    assert apt.blacklisted("nvidia-smi", expressions) and apt.blacklisted("libnvidia-ml1", expressions)
    assert not apt.blacklisted("libnvidia-ml1-dbg", expressions)
    assert not apt.blacklisted("xserver-xorg-video-nvidia-x", expressions)
    assert not apt.blacklisted("linux-image", expressions)


def test_the_history_says_what_changed_a_package(cases):
    text = (cases / "03-nvml-version-mismatch/apt_history.txt").read_text()
    (entry,) = apt.parse_history(text)
    assert apt.starter(entry) == "unattended-upgrade 2025-03-11"
    assert entry.changes[0] == apt.Change(
        "Upgrade", "libnvidia-compute-570-server", "570.86.15-0ubuntu0.22.04.4", "570.124.06-0ubuntu0.22.04.1"
    )
    name, version = "nvidia-utils-570-server", "570.124.06-0ubuntu0.22.04.1"
    assert apt.brought([entry], name, version) is entry
    assert apt.brought([entry], name, "570.86.15-0ubuntu0.22.04.4") is None  # it was brought there by nothing known
    later = textwrap.dedent(
        """
        Start-Date: 2025-03-12  10:00:00
        Commandline: apt-get install -y --allow-downgrades nvidia-utils-570-server=570.86.15-0ubuntu0.22.04.4
        Requested-By: alice (1000)
        Install: fresh:amd64 (1.0, automatic), other:amd64 (2.0)
        Downgrade: nvidia-utils-570-server:amd64 (570.124.06-0ubuntu0.22.04.1, 570.86.15-0ubuntu0.22.04.4)
        Remove: libnvidia-compute-570-server:amd64 (570.124.06-0ubuntu0.22.04.1)
        End-Date: 2025-03-12  10:00:09
        """
    )
    history = apt.parse_history(f"{text}\n{later}")
    assert apt.brought(history, name, version) is None  # it is not what is installed any more
    back = apt.brought(history, name, "570.86.15-0ubuntu0.22.04.4")
    assert apt.starter(back).startswith("apt-get install -y --allow-downgrades nvidia-utils-570-server=570")
    assert apt.starter(back).endswith("(alice) 2025-03-12")
    assert apt.brought(history, "libnvidia-compute-570-server", None) is back
    assert apt.brought(history, "fresh", "1.0") is back and apt.brought(history, "nothing", "1") is None
    assert apt.parse_history("Start-Date: 2025-03-11\nEnd-Date: 2025-03-11\n\ngarbage") == []


def test_what_is_offered_asks_for_its_like():
    status = textwrap.dedent(
        f"""\
        Package: nvidia-smi
        Status: hold ok installed
        Version: {DRIVER}
        Depends: libnvidia-ml1 (= 1:{DRIVER}), libc6 (>= 2.36), nvidia-alternative (<= {DRIVER}), old (= 3)
        Conffiles:
         /etc/nvidia newline
        Description: short
         long

        Package: libnvidia-ml1
        Version: 1:{DRIVER}
        Provides: libnvidia-ml.so.1 (= 535)
        """
    )
    offered = apt.offer(status)
    assert f"Version: {DRIVER}+accel.trial\n" in offered and f"Version: 1:{DRIVER}+accel.trial\n" in offered
    assert (
        f"Depends: libnvidia-ml1 (= 1:{DRIVER}+accel.trial), libc6 (>= 2.36), "
        f"nvidia-alternative (<= {DRIVER}+accel.trial), old (= 3)\n"
    ) in offered
    assert "Provides: libnvidia-ml.so.1 (= 535)\n" in offered
    assert "Status" not in offered and "long" not in offered and "hold" not in offered


# -------------------------------------------------------------------------------------------- probes, answers recorded


def test_the_history_is_read_of_both_files():
    gzipped, plain = apt.HISTORY
    old = "Start-Date: 2025-02-01  06:00:00\nCommandline: apt-get upgrade\nUpgrade: a (1, 2)\n"
    new = "Start-Date: 2025-03-01  06:00:00\nCommandline: apt-get upgrade\nUpgrade: a (2, 3)\n"
    answers = {("gzip", "-cd", gzipped): (0, old, ""), ("tail", "-c", str(1 << 19), plain): (0, new, "")}
    runner = RecordedRunner(answers, {gzipped: "", plain: ""})
    assert [entry.changes[0].new for entry in apt.history(runner, 5)] == ["2", "3"]
    assert apt.history(RecordedRunner(), 5) == []


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (HANG, "no answer in time"),
        ((2, "", "dpkg-query: error: parsing file"), "parsing file"),
        ((0, "", ""), "knows no"),
    ],
)
def test_a_database_that_cannot_be_asked_is_a_problem(answer, problem):
    runner = RecordedRunner({("dpkg-query", "-W", f"-f={apt.LIST_FORMAT}"): answer})
    assert problem in apt.installed(runner, 5)[1]
    assert "not installed" in apt.installed(RecordedRunner(), 5)[1]


def test_a_trial_during_another_run_is_none():
    runner = RecordedRunner()
    runner.locks["/var/lib/dpkg/lock"] = 4711
    packages = [apt.Package("a", "a", "1", "installed")]
    trial = apt.try_upgrade(runner, ["a"], packages, 5)
    assert (trial.state, trial.problem) == ("unknown", "/var/lib/dpkg/lock is held by process 4711")
    assert runner.calls == []


def test_a_trial_of_what_is_not_installed_is_none():
    packages = [apt.Package("a", "a", "1", "config-files"), apt.Package("b", "b", "1", "installed")]
    trial = apt.try_upgrade(RecordedRunner(), ["a"], packages, 5)
    assert (trial.state, trial.problem) == ("unknown", "none of the packages is installed")


def test_a_lock_is_seen(tmp_path):
    path = tmp_path / "lock"
    assert Runner().lock_holder(str(path)) is None
    path.touch()
    assert Runner().lock_holder(str(path)) is None
    code = f"import fcntl; f = open({str(path)!r}, 'w'); fcntl.lockf(f, fcntl.LOCK_EX); print(1, flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        assert Runner().lock_holder(str(path)) == other.pid
        other.communicate(b"\n")
    assert Runner().lock_holder(str(path)) is None
    with open(path, "w") as file:  # its own lock keeps nobody from asking: a process never waits for itself
        fcntl.lockf(file, fcntl.LOCK_EX)
        assert Runner().lock_holder(str(path)) is None


# ---------------------------------------------------------------------------------------- the real apt, a made-up host


class Host:
    """A host in a folder: dpkg's database, apt's configuration. apt and dpkg are told of it by their environment."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.stanzas, self.timeout = folder, [], 60
        for name in ("etc/apt/apt.conf.d", "etc/apt/preferences.d", "var/lib/apt/lists/partial",
                     "var/cache/apt/archives/partial", "var/lib/dpkg/info", "var/lib/dpkg/updates"):  # fmt: skip
            (folder / name).mkdir(parents=True)
        self.conf = folder / "host.conf"
        self.conf.write_text(f'Dir "{folder}";\nDir::State::status "{folder}/var/lib/dpkg/status";\n')
        self.status = folder / "var/lib/dpkg/status"
        monkeypatch.setenv("APT_CONFIG", str(self.conf))
        monkeypatch.setenv("DPKG_ADMINDIR", str(folder / "var/lib/dpkg"))
        self.machine = subprocess.check_output(["dpkg", "--print-architecture"], text=True).strip()

    def install(self, name, version=DRIVER, held=False, source="nvidia-graphics-drivers", **fields):
        lines = [f"Package: {name}", f"Status: {'hold' if held else 'install'} ok installed", "Priority: optional",
                 "Section: misc", "Maintainer: Nobody <nobody@example.org>", f"Version: {version}", f"Source: {source}",
                 f"Architecture: {fields.pop('arch', self.machine)}", "Description: made up"]  # fmt: skip
        lines += [f"{key.replace('_', '-')}: {value}" for key, value in fields.items()]
        self.stanzas.append("\n".join(lines) + "\n")
        self.status.write_text("\n".join(self.stanzas))

    def pin(self, name, version=DRIVER, priority=1001, file="accel"):
        text = f"Package: {name}\nPin: version {version}\nPin-Priority: {priority}\n\n"
        with open(self.folder / "etc/apt/preferences.d" / file, "a") as handle:
            handle.write(text)

    def configure(self, line):
        with open(self.conf, "a") as handle:
            handle.write(line + "\n")

    def attempt(self, *names):
        packages, problem = apt.installed(Runner(), 30)
        assert problem == ""
        before = self.everything()
        trial = apt.try_upgrade(Runner(), names, packages, self.timeout)
        assert self.everything() == before, "the trial has written on the host"
        return trial

    def everything(self):
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in files}


@pytest.fixture
def host(tmp_path, monkeypatch):
    monkeypatch.setattr(apt, "LOCKS", ())  # of this machine, which others use
    return Host(tmp_path, monkeypatch)


SET = ("libnvidia-ml1", "nvidia-smi", "nvidia-kernel-dkms")


def install_set(host, held=SET, epoch=""):
    """Packages as Debian's: the tool needs the library of just its version, some other package a virtual one."""
    library = {"Multi_Arch": "same", "Provides": "libnvidia-ml.so.1 (= 535.261.03), nvidia-virtual"}
    host.install("libnvidia-ml1", epoch + DRIVER, "libnvidia-ml1" in held, **library)
    host.install("nvidia-smi", held="nvidia-smi" in held, Depends=f"libnvidia-ml1 (= {epoch}{DRIVER})")
    host.install("nvidia-kernel-dkms", held="nvidia-kernel-dkms" in held, arch="all")
    host.install("monitor", "1.0-1", source="monitor", Depends="libnvidia-ml.so.1 (>= 535), nvidia-virtual")


@REAL
@pytest.mark.parametrize("epoch", ["", "1:"])
def test_held_and_pinned_is_refused(host, epoch):
    install_set(host, epoch=epoch)
    for name in SET:
        host.pin(name, epoch + DRIVER if name == "libnvidia-ml1" else DRIVER)
    trial = host.attempt(*SET)
    assert (trial.state, trial.upgraded, trial.removed, trial.unpinned) == ("refused", [], [], [])
    assert trial.problem == ""


@REAL
@pytest.mark.parametrize("epoch", ["", "1:"])
def test_without_hold_and_preference_all_would_be_upgraded(host, epoch):
    install_set(host, held=(), epoch=epoch)
    trial = host.attempt(*SET)
    assert (trial.state, trial.upgraded) == ("upgraded", sorted(SET))
    assert trial.unpinned == sorted(SET)
    assert f"Inst libnvidia-ml1 [{epoch}{DRIVER}]" in trial.evidence[0]["excerpt"]


@REAL
def test_a_hold_alone_refuses_and_the_missing_preference_is_named(host):
    install_set(host)
    host.pin("nvidia-smi")
    trial = host.attempt(*SET)
    assert (trial.state, trial.unpinned) == ("refused", ["libnvidia-ml1", "nvidia-kernel-dkms"])


@REAL
def test_a_preference_alone_refuses(host):
    install_set(host, held=())
    for name in SET:
        host.pin(name)
    trial = host.attempt(*SET)
    assert (trial.state, trial.unpinned) == ("refused", [])


@REAL
def test_the_package_without_a_hold_is_the_one_that_is_named(host):
    install_set(host, held=("libnvidia-ml1", "nvidia-smi"))
    trial = host.attempt(*SET)
    assert (trial.state, trial.upgraded) == ("upgraded", ["nvidia-kernel-dkms"])


@REAL
def test_a_package_that_would_have_to_go_is_named(host):
    # The library is free, the tool is kept at its version by a preference only: apt takes the tool away.
    install_set(host, held=("nvidia-kernel-dkms",))
    host.pin("nvidia-smi")
    trial = host.attempt(*SET)
    assert (trial.state, trial.upgraded, trial.removed) == ("upgraded", ["libnvidia-ml1"], ["nvidia-smi"])


@REAL
def test_what_reads_well_and_stops_nothing_is_found_out(host):
    install_set(host)
    host.configure('APT::Ignore-Hold "true";')
    for name in SET:
        host.pin(name, file="accel.disabled")  # apt reads no file with such a name
    trial = host.attempt(*SET)
    assert (trial.state, trial.upgraded, trial.unpinned) == ("upgraded", sorted(SET), sorted(SET))


@REAL
def test_a_preference_that_fits_the_next_release_too_pins_nothing(host):
    install_set(host, held=())
    host.pin("*", "535.*")
    trial = host.attempt(*SET)
    assert (trial.state, trial.unpinned) == ("upgraded", sorted(SET))


@REAL
def test_where_something_else_keeps_a_package_the_trial_has_shown_nothing(host):
    install_set(host)
    # Essential, so that it can't be removed, and content with this version only.
    host.install("clinger", "1", source="clinger", Essential="yes", Pre_Depends=f"nvidia-kernel-dkms (= {DRIVER})")
    trial = host.attempt(*SET)
    assert trial.state == "unknown"
    assert "would not upgrade nvidia-kernel-dkms" in trial.problem


@REAL
def test_what_is_built_of_the_same_source_goes_along(host):
    # Not of the set, but a repository has it newer at the same time; else it would keep the library back.
    install_set(host, held=())
    host.install("nvidia-settings", Depends=f"libnvidia-ml1 (= {DRIVER})", Essential="yes")
    trial = host.attempt("libnvidia-ml1")
    assert (trial.state, trial.upgraded) == ("upgraded", ["libnvidia-ml1"])


@REAL
def test_a_broken_database_is_unknown(host):
    install_set(host)
    host.install("broken", "1", source="broken", Depends="nothing-that-exists")
    trial = host.attempt(*SET)
    assert trial.state == "unknown" and "apt-get" in trial.problem


@REAL
@pytest.mark.parametrize(
    ("text", "state"),
    [("Pin: version 1\nPin-Priority: 1001\n", "unknown"), ("Package: nvidia-smi\nPin: x\n", "refused")],
)
def test_broken_preferences_pin_nothing(host, text, state):
    install_set(host)
    (host.folder / "etc/apt/preferences.d/accel").write_text(text)
    trial = host.attempt(*SET)
    assert trial.state == state
    assert "preferences" in trial.problem if state == "unknown" else trial.unpinned == sorted(SET)


@REAL
def test_a_release_that_the_host_prefers_does_not_matter(host):
    install_set(host)
    host.configure('APT::Default-Release "bookworm";')
    assert host.attempt(*SET).state == "refused"


@REAL
def test_apt_that_hangs_is_unknown(host):
    install_set(host)
    host.timeout = 0.0
    trial = host.attempt(*SET)
    assert trial.state == "unknown" and "no answer in time" in trial.problem


@REAL
def test_a_full_disk_is_unknown(host, monkeypatch):
    install_set(host)

    def refuse(**_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(apt.tempfile, "TemporaryDirectory", refuse)
    trial = host.attempt(*SET)
    assert (trial.state, trial.problem) == ("unknown", "[Errno 28] No space left on device")


@REAL
def test_nothing_is_left_in_the_temporary_directory(host, monkeypatch, tmp_path):
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr(apt.tempfile, "tempdir", str(place))
    install_set(host)
    assert host.attempt(*SET).state == "refused"
    assert os.listdir(place) == []


def test_sources_of_a_release_are_those_of_its_distribution():
    output = (
        "Debian bookworm main http://mirror.example.org/debian/\nDebian bookworm contrib http://mirror.example.org/debian/\n"
        "Debian bookworm main http://mirror.example.org/debian/\nDebian bookworm-security main http://s.example.org/\n"
        "Debian bookworm-backports main http://mirror.example.org/debian/\nDebian trixie main http://mirror.example.org/debian/\n"
        "Vendor bookworm stable http://vendor.example.org/\n\nDebian bookworm\n"
    )
    assert apt.parse_sources(output, "bookworm") == [
        "deb http://mirror.example.org/debian/ bookworm main contrib",
        "deb http://s.example.org/ bookworm-security main",
    ]
