# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What installing a driver would change, and each reason not to do it."""

from __future__ import annotations

import os

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import driver_plan
from ansible_collections.accel.cluster.plugins.module_utils._accel.runner import Result
from doubles import RecordedRunner

OLD, NEW = "535.261.03-1", "535.309.01-0+deb12u1"
POLICY = f"""\
nvidia-smi:
  Installed: (none)
  Candidate: {NEW}
  Version table:
     {NEW} 500
        500 http://mirror.example.org/debian-security bookworm-security/non-free amd64 Packages
     {OLD} 500
        500 http://mirror.example.org/debian bookworm/non-free amd64 Packages
"""
SOURCES = "Types: deb\nURIs: http://mirror.example.org/debian\nSuites: bookworm\nComponents: non-free\n"


class Host(RecordedRunner):
    """Answers by program and subcommand: the folder of the trial has another name each time."""

    def __init__(self, dpkg: str = "", files=None, links=None, **answers):
        super().__init__({}, files=files or {}, tools={"dpkg-query"}, links=links)
        self.metas = ""
        self.dpkg, self.told = (
            dpkg,
            {"update": "", "policy": POLICY, "install": "", "show": "Installed-Size: 1\nSize: 1\n"},
        )
        self.told.update(answers)

    def run(self, argv, timeout_seconds):
        self.calls.append(tuple(argv))
        word = next((one for one in argv if one in self.told), argv[0].rsplit("/", 1)[-1])
        if word == "dpkg-query":
            said: object = self.metas if argv[-1] == "linux-*" else self.dpkg
        elif word == "dpkg":
            said = 0 if argv[2] < argv[4] else 1
        else:
            said = self.told[word]
            if word == "update":
                folder = os.path.dirname(argv[argv.index("-c") + 1])
                assert sorted(os.listdir(f"{folder}/own")) == ["accel-driver.sources"]
        if isinstance(said, int):
            return Result(list(argv), said, "", "")
        return Result(list(argv), 100 if said.startswith("E:") else 0, said, said if said.startswith("E:") else "")


def row(name: str, version: str, want: str = "install", status: str = "installed") -> str:
    return f"{want}\t{status}\tok\t{name}\t{name}\t{version}\tnvidia-graphics-drivers\n"


OTHER = row("libc6", "2.36-9")


def plan(host, version="535.261.03", **more):
    return driver_plan.make(host, driver_plan.Wanted({"nvidia-smi": version}, **{"sources": SOURCES, **more}), 10)


def test_a_short_version_becomes_the_one_that_fits():
    made = plan(
        Host(OTHER, install=f"Inst nvidia-smi ({OLD} Debian:12 [amd64])\nConf nvidia-smi ({OLD} Debian:12 [amd64])\n")
    )
    assert made == driver_plan.Plan(
        versions={"nvidia-smi": OLD}, changes=[f"nvidia-smi (none) -> {OLD}"], unheld=["nvidia-smi"], refused=[]
    )


@pytest.mark.parametrize("version", ["535.261.03", OLD])
def test_a_host_that_is_as_declared_asks_no_repository(version):
    host = Host(row("nvidia-smi", OLD, want="hold"))
    assert plan(host, version) == driver_plan.Plan(versions={"nvidia-smi": OLD})
    assert [argv[0].rsplit("/", 1)[-1] for argv in host.calls] == ["dpkg-query"]
    assert plan(Host(row("nvidia-smi", OLD)), version).unheld == ["nvidia-smi"]


@pytest.mark.parametrize(
    ("version", "says"),
    [
        ("535.1", f"the repository does not have nvidia-smi 535.1; it has {NEW}, {OLD}"),
        ("535.261.03-2", f"the repository does not have nvidia-smi 535.261.03-2; it has {NEW}, {OLD}"),
        ("535.x", f"the repository does not have nvidia-smi 535.x; it has {NEW}, {OLD}"),
        ("", "no version is declared of nvidia-smi"),
    ],
)
def test_a_version_that_names_not_exactly_one_is_refused(version, says):
    made = plan(Host(OTHER), version)
    assert made.refused == [says]
    assert made.changes == []


def test_a_short_version_that_fits_two_packages_is_refused():
    rebuilt = POLICY.replace(NEW, "535.261.03-2")
    says = f"nvidia-smi 535.261.03 fits 535.261.03-2 and {OLD}: declare one of them in full"
    assert plan(Host(OTHER, policy=rebuilt)).refused == [says]


def test_a_repository_that_does_not_know_the_package_says_so():
    assert plan(Host(OTHER, policy="")).refused == ["the repository does not have nvidia-smi 535.261.03; it has none"]


def test_a_repository_that_can_not_be_read_is_no_repository_without_the_version():
    (said,) = plan(Host(OTHER, update="E: Failed to fetch http://mirror.example.org/debian/dists: 404")).refused
    assert said.startswith("the repository could not be read: apt-get")
    assert "404" in said and "accel-plan" not in said


def test_half_installed_packages_and_a_lock_are_refused():
    host = Host(row("nvidia-smi", OLD, status="half-configured"), install="")
    host.locks = {"/var/lib/dpkg/lock-frontend": 77}
    made = plan(host)
    assert made.refused == [
        "packages are half installed: nvidia-smi (half-configured); run dpkg --configure -a",
        "another package manager is at work: /var/lib/dpkg/lock-frontend is held by process 77",
    ]


def test_who_holds_a_card_is_named():
    host = Host(OTHER, files={"/dev/nvidia0": "", "/proc/41/comm": "python3\n"})
    host.held = {"/dev/nvidia0": [41]}
    nodes = ["/dev/nvidia[0-9]*"]
    says = "the cards are in use by python3 (41); drain the node, or set driver_in_use_allowed"
    assert plan(host, nodes=nodes).refused == [says]
    assert plan(host, nodes=nodes, in_use_allowed=True).refused == []


def test_a_downgrade_is_refused_unless_it_is_allowed():
    host = Host(row("nvidia-smi", NEW), install=f"Inst nvidia-smi [{NEW}] ({OLD} Debian:12 [amd64])\n")
    assert plan(host).refused == [f"nvidia-smi would go back from {NEW} to {OLD}: set driver_downgrade_allowed"]
    assert plan(host, downgrade_allowed=True).refused == []


def test_what_others_hold_and_what_would_go_is_refused():
    steps = f"Remv old [1.0]\nInst nvidia-smi ({OLD} x [amd64])\nInst theirs [1.0] (2.0 x [amd64])\n"
    made = plan(Host(OTHER + row("theirs", "1.0", want="hold") + row("old", "1.0"), install=steps))
    assert made.refused == ["old 1.0 would be removed", "theirs 1.0 is held by somebody else and would become 2.0"]


def test_a_full_disk_is_refused():
    huge = f"Installed-Size: {1 << 40}\nSize: 1\n"
    (said,) = plan(Host(OTHER, install=f"Inst nvidia-smi ({OLD} x [amd64])\n", show=huge)).refused
    assert said.startswith("the file system of /usr has ")


def test_a_kernel_without_headers_is_refused_where_a_module_is_built():
    files = {"/proc/sys/kernel/osrelease": "6.1.0-1-amd64", "/boot/vmlinuz-6.1.0-2-amd64": ""}
    steps = f"Inst nvidia-kernel-dkms ({OLD} x [amd64])\nInst linux-headers-6.1.0-2-amd64 (1 x [amd64])\n"
    host = Host(OTHER, files=files, install=steps)
    says = "kernel 6.1.0-1-amd64 may boot next and has no headers to build the module with"
    assert plan(host).refused == [says]
    assert plan(Host(OTHER, files={**files, "/run/systemd/container": "podman"}, install=steps)).refused == []


@pytest.mark.parametrize(
    ("said", "means"),
    [
        (
            "W: GPG error: http://a ./ InRelease: not available: NO_PUBKEY 1BCBD4859B775775",
            "a key that it was not declared",
        ),
        ("E: http://a ./ InRelease: EXPKEYSIG 1BCBD4859B775775 vendor", "has expired"),
        ("E: http://a ./ InRelease: REVKEYSIG 1BCBD4859B775775 vendor", "was revoked"),
        ("E: The repository 'http://a ./ Release' is not signed.", "is not signed"),
        ("E: File not found - /srv/debs/./Packages (2: No such file or directory)", "has no index"),
        ("E: Failed to fetch http://a/Release: Connection refused", "could not be read"),
    ],
)
def test_why_a_source_can_not_be_used_is_said_in_words(said, means):
    (told,) = plan(Host(OTHER, update=f"E: {said}")).refused
    assert means in told.partition(": apt-get")[0]
    assert said.split()[-1] in told


KERNEL, NEWER_KERNEL = "6.1.0-50-amd64", "6.1.0-57-amd64"


def with_kernel(host, **more):
    set_of = {"nvidia-smi": OLD, f"linux-image-{KERNEL}": "6.1.176-1"}
    return driver_plan.make(host, driver_plan.Wanted(set_of, **{"sources": SOURCES, **more}), 10)


def test_a_newer_kernel_is_refused_on_a_host_that_is_as_declared_otherwise():
    rows = row("nvidia-smi", OLD, want="hold") + row(f"linux-image-{KERNEL}", "6.1.176-1", want="hold")
    there = {f"/boot/vmlinuz-{KERNEL}": "", "/proc/sys/kernel/osrelease": KERNEL}
    assert with_kernel(Host(rows, files=there)).refused == []
    rows += row(f"linux-image-{NEWER_KERNEL}", "6.1.192-3")
    there[f"/boot/vmlinuz-{NEWER_KERNEL}"] = ""
    (said,) = with_kernel(Host(rows, files=there)).refused
    assert said.startswith(f"kernel {NEWER_KERNEL} would boot instead of the pinned {KERNEL}")
    made = with_kernel(Host(rows, files=there), kernel_removal_allowed=True)
    assert (made.refused, made.remove) == ([], [f"linux-image-{NEWER_KERNEL}"])
    assert made.changes == [f"linux-image-{NEWER_KERNEL} 6.1.192-3 -> (none)"]


def test_what_brings_newer_kernels_is_pinned_and_to_be_held():
    rows = row("nvidia-smi", OLD, want="hold") + row(f"linux-image-{KERNEL}", "6.1.176-1", want="hold")
    host = Host(rows + row("linux-image-amd64", "6.1.176-1"), files={f"/boot/vmlinuz-{KERNEL}": ""})
    host.metas = f"installed\tlinux-image-amd64\t6.1.176-1\tlinux-image-{KERNEL} (= 6.1.176-1)\n"
    made = with_kernel(host)
    assert made.versions == {"nvidia-smi": OLD, f"linux-image-{KERNEL}": "6.1.176-1", "linux-image-amd64": "6.1.176-1"}
    assert made.unheld == ["linux-image-amd64"]


def bus(*functions, driver=None):
    files, links = {}, {}
    for number, (device, kind) in enumerate(functions):
        folder = f"/sys/bus/pci/devices/0000:0{number}:00.0"
        files.update({f"{folder}/vendor": "0x10de", f"{folder}/device": device, f"{folder}/class": kind})
        if driver:
            links[f"{folder}/driver"] = f"/sys/bus/pci/drivers/{driver}"
    return files, links


CARD, SWITCH = ("0x2330", "0x030200"), ("0x22a3", "0x068000")
STEPS = f"Inst nvidia-smi ({OLD} x [amd64])\n"


@pytest.mark.parametrize(
    ("driver", "more", "says"),
    [
        (None, {}, None),
        ("nvidia", {}, None),
        ("nouveau", {}, "nouveau has the cards 0000:00:00.0; only a reboot takes them away"),
        ("nova_core", {}, "nova_core has the cards 0000:00:00.0; only a reboot takes them away"),
        ("nouveau", {"reboot_allowed": True}, None),
        ("vfio-pci", {"reboot_allowed": True}, "vfio-pci has the cards 0000:00:00.0; it hands them on"),
    ],
)
def test_another_driver_that_has_the_cards_is_refused(driver, more, says):
    files, links = bus(CARD, driver=driver)
    made = plan(Host(OTHER, files=files, links=links, install=STEPS), vendor="nvidia", **more)
    assert [one.startswith(says or "-") for one in made.refused] == ([True] if says else [])


def test_no_reboot_of_a_container_takes_another_driver_away():
    files, links = bus(CARD, driver="nouveau")
    host = Host(OTHER, files={**files, "/run/systemd/container": "podman"}, links=links, install=STEPS)
    assert len(plan(host, vendor="nvidia", reboot_allowed=True).refused) == 1


MANAGER = "nvidia-fabricmanager-535"


@pytest.mark.parametrize(
    ("switches", "declared", "named", "kept", "says"),
    [
        (0, None, True, False, None),
        (2, None, True, True, None),
        (0, True, True, True, None),
        (2, False, True, False, None),
        (2, None, False, False, "the board has 2 switches, and no fabric manager is in the set"),
        (2, False, False, False, None),
        (0, True, False, False, "driver_fabric_manager is required, and no package of it is in the set"),
        (None, None, True, False, "the PCI bus could not be read"),
    ],
)
def test_a_fabric_manager_comes_where_there_are_switches(switches, declared, named, kept, says):
    files, _links = bus(CARD, *[SWITCH] * switches) if switches is not None else ({}, {})
    rows = row("nvidia-smi", OLD, want="hold") + (row(MANAGER, OLD, want="hold") if named else "")
    set_of = {"nvidia-smi": OLD, **({MANAGER: OLD} if named else {})}
    wanted = driver_plan.Wanted(set_of, vendor="nvidia", fabric_manager=declared)
    made = driver_plan.make(Host(rows, files=files), wanted, 10)
    assert (MANAGER in made.versions) == kept
    assert made.fabric_manager == ("nvidia-fabricmanager" if kept else "")
    assert [one.startswith(says or "-") for one in made.refused] == ([True] if says else [])


def test_secure_boot_refuses_a_module_that_nobody_trusts():
    efi = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
    there = {
        efi: b"\x06\0\0\0\x01",
        "/lib/modules/6.1.0-1-amd64/build": "",
        "/proc/sys/kernel/osrelease": "6.1.0-1-amd64",
    }
    steps = f"Inst nvidia-kernel-dkms ({OLD} x [amd64])\n"
    (said,) = plan(Host(OTHER, files=there, install=steps)).refused
    assert said.startswith("Secure Boot is on and dkms has no key yet") and "driver_module_signed" in said
    assert plan(Host(OTHER, files=there, install=steps), module_signed=True).refused == []
    assert plan(Host(OTHER, files=there, install=STEPS)).refused == []
