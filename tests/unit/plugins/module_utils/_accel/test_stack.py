# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver stack: states that look alike are told apart, and one fact is one finding."""

from __future__ import annotations

import json
import re

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import apt, hints, stack
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors import nvidia
from doubles import HANG, RecordedRunner

NOW = "2026-11-30T12:00:00Z"
OLD, PIN, NEW = "570.72", "570.86.15", "570.124.06"
RUNNING, NEXT = "6.1.0-28-amd64", "6.1.0-31-amd64"
LIBRARY = "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"
SET = ("libnvidia-ml1", "nvidia-kernel-dkms", "nvidia-smi", "nvidia-fabricmanager-570")
SHOW = ("systemctl", "show", "--property=LoadState", "--property=ActiveState", "nvidia-fabricmanager.service")
JOURNAL = ("journalctl", "--unit", "nvidia-fabricmanager", "--boot", "--lines=20", "--no-pager", "--output=cat")
LIST = ("dpkg-query", "-W", f"-f={apt.LIST_FORMAT}")
METAS = ("dpkg-query", "-W", "-f=${db:Status-Status}\\t${Package}\\t${Version}\\t${Depends}\\n", "linux-*")
HISTORY = ("tail", "-c", str(1 << 19), apt.HISTORY[1])


@pytest.fixture(autouse=True)
def trial(monkeypatch):
    """Stand for the trial: test_apt.py has it, with the real apt."""
    told = apt.Trial(state="refused", evidence=[{"command": "apt-get", "rc": 0, "excerpt": "kept back"}])
    monkeypatch.setattr(apt, "try_upgrade", lambda runner, names, packages, timeout: told)
    return told


class Host:
    """What a host has; ``observe`` reads it through a recorded runner. By default all is well, with switches."""

    def __init__(self):
        self.kernel, self.library, self.cdi, self.manager = PIN, PIN, PIN, PIN
        self.service, self.log, self.switches = "active", "", 4
        self.packages = dict.fromkeys(SET, f"{PIN}-1")
        self.held = set(SET)
        self.states = {}
        self.boot = [RUNNING]
        self.built = {RUNNING: PIN}
        self.history, self.grub, self.container, self.blacklist = (
            "",
            "",
            False,
            ["nvidia-", "libnvidia-", "linux-image-"],
        )
        self.extra, self.drivers, self.bus, self.bound = {}, [], True, "nvidia"
        self.answers, self.links, self.metas = {}, {}, ""

    def runner(self):
        files = {"/proc/sys/kernel/osrelease": RUNNING + "\n", **{f"/boot/vmlinuz-{name}": "" for name in self.boot}}
        if self.kernel:
            files["/sys/module/nvidia/version"] = self.kernel + "\n"
        if self.cdi:
            files["/etc/cdi/nvidia.yaml"] = f"hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so.{self.cdi}\n"
        if self.grub:
            files["/etc/default/grub"] = self.grub
        if self.container:
            files["/run/systemd/container"] = "podman"
        links = {LIBRARY: f"{LIBRARY[:-2]}.{self.library}"} if self.library else {}
        functions = [("0000:18:00.0", "0x2330", "0x030200")] if self.bus else []
        functions += [(f"0000:0{number}:00.0", "0x22a3", "0x068000") for number in range(self.switches)]
        for address, device, kind in functions:
            folder = f"/sys/bus/pci/devices/{address}"
            files.update({f"{folder}/vendor": "0x10de", f"{folder}/device": device, f"{folder}/class": kind})
            if kind == "0x030200" and self.bound:
                links[f"{folder}/driver"] = f"/sys/bus/pci/drivers/{self.bound}"
        rows = [(name, self.states.get(name, "installed"), version) for name, version in self.packages.items()]
        lines = [f"{'hold' if name in self.held else 'install'}\t{state}\tok\t{name}\t{name}:amd64\t{version}\tsource"
                 for name, state, version in [*rows, ("unattended-upgrades", "installed", "2.9")]]  # fmt: skip
        config = "".join(f'Unattended-Upgrade::Package-Blacklist:: "{one}";\n' for one in self.blacklist)
        load, active = ("not-found", "inactive") if self.service == "absent" else ("loaded", self.service)
        answers = {
            LIST: (0, "\n".join(lines), ""),
            ("apt-config", "dump"): (0, config, ""),
            SHOW: (0, f"LoadState={load}\nActiveState={active}\n", ""),
            JOURNAL: (0, self.log, ""),
            METAS: (0, self.metas, ""),
        }  # fmt: skip
        if self.history:
            files[apt.HISTORY[1]] = ""
            answers[HISTORY] = (0, self.history, "")
        if self.manager:
            answers["nv-fabricmanager", "--version"] = (0, f"Fabric Manager version is : {self.manager}\n", "")
        for kernel in {*self.boot, RUNNING}:
            for name in ("nvidia", "nvidia-current", "nvidia-current-open"):
                version = self.built.get(kernel) if name == "nvidia-current" else None
                absent = (1, "", f"modinfo: ERROR: Module {name} not found.\n")
                answers["modinfo", "-k", kernel, name] = (0, self.modinfo(kernel, version), "") if version else absent
        runner = RecordedRunner({**answers, **self.answers}, {**files, **self.extra}, links={**links, **self.links})
        runner.tools |= {"apt-get"}
        return runner

    @staticmethod
    def modinfo(kernel, version):
        path = f"/lib/modules/{kernel}/updates/dkms/nvidia-current.ko"
        return f"filename: {path}\nversion:        {version}\nvermagic:       {kernel} SMP mod_unload\n"

    def observe(self):
        names = sorted({*SET, *self.packages})
        return stack.observe(self.runner(), "nvidia", names, {"drivers": self.drivers}, 5)


def judged(host, language="en", **declared):
    declared = {"driver_version": PIN, "packages": dict.fromkeys(host.packages, ""), **declared}
    seen = json.loads(json.dumps(host.observe()))  # as it comes from the host
    return stack.judge_stack("gpu-01", seen, declared, language, NOW)


def wrong(findings):
    """Return the causes that are no pass, by subject."""
    return {
        one["subject"]: re.sub(r"^device\.(driver_stack|version_lock)\.", "", one["hint"])
        for one in findings
        if one["verdict"] not in ("pass", "not_applicable")
    }


def only(findings, cause):
    (one,) = [one for one in findings if one["hint"] == cause]
    return one


# -------------------------------------------------------------------------------------------------------------- healthy


def test_a_healthy_host_passes_in_every_part():
    found = judged(Host())
    assert wrong(found) == {}
    assert {(one["check"], one["subject"]) for one in found} == {
        *(("device.driver_stack", part) for part in
          ("module", "library", "next_boot", "fabric_manager", "device_file", "packages")),
        ("device.version_lock", "gpu-01"),
    }  # fmt: skip
    assert all(one["verdict"] == "pass" and one["layer"] == "device" and one["at"] == NOW for one in found)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_message_has_a_gap(language):
    for change in CHANGES.values():
        host = Host()
        change(host)
        for one in judged(host, language):
            assert "?" not in one["message"] and "{" not in one["message"], one["message"]


# ----------------------------------------------------------------------------------------------------------- the cases


def case_03(cases):
    folder = cases / "03-nvml-version-mismatch"
    host = Host()
    lines = [line.split() for line in (folder / "dpkg_l.txt").read_text().splitlines()]
    host.packages = {fields[1].partition(":")[0]: fields[2] for fields in lines}
    host.held = set((folder / "apt_mark_showhold.txt").read_text().split())
    host.history = (folder / "apt_history.txt").read_text()
    host.kernel = None
    host.extra = {"/proc/driver/nvidia/version": (folder / "proc_driver_nvidia_version.txt").read_text()}
    host.library = None  # what the tool says is all that is known of the library
    failure = nvidia.parse_failure((folder / "smi_stdout.txt").read_text())
    host.drivers = [{"vendor": "nvidia", "library_version": failure.library_version}]
    host.switches, host.manager, host.cdi = 0, None, None
    return host


def test_case_03(cases, trial):
    trial.state, trial.upgraded = "upgraded", ["libnvidia-compute-570-server"]
    found = judged(case_03(cases))
    one = only(found, "device.driver_stack.library_mismatch")
    assert (one["verdict"], one["expected"], one["observed"]) == ("fail", "570.86.15", "570.124")
    for name in ("libnvidia-compute-570-server", "nvidia-utils-570-server"):
        assert f"{name} 570.124.06-0ubuntu0.22.04.1" in one["message"]
    assert "nvidia-dkms" not in one["message"]
    assert "brought by unattended-upgrade 2025-03-11" in one["message"]
    hint = hints.hint_text(one["hint"])
    assert "Do not reboot" in hint and "Install the packages of the pinned version" in hint
    # The same fact is not told a second time, and nothing else is wrong with the stack.
    assert wrong(found) == {"library": "library_mismatch", "upgrade": "upgraded"}
    lock = only(found, "device.version_lock.upgraded")
    assert "not held: libnvidia-compute-570-server, nvidia-dkms-570-server, nvidia-utils-570-server" in lock["message"]


@pytest.mark.parametrize("library", ["570.124", "570.124.06"])
def test_case_03_the_short_form_is_no_third_version(cases, library):
    host = case_03(cases)
    host.library = "570.124.06"  # the name of the file has it in full, whatever the tool says
    host.drivers = [{"vendor": "nvidia", "library_version": library}]
    assert host.observe()["errors"] == []
    assert only(judged(host), "device.driver_stack.library_mismatch")["observed"] == "570.124.06"


def test_case_03_when_the_newer_one_is_pinned_a_reboot_is_right(cases):
    host = case_03(cases)
    host.packages["nvidia-dkms-570-server"] = "570.124.06-0ubuntu0.22.04.1"
    host.built = {RUNNING: NEW}
    found = judged(host, driver_version=NEW)
    one = only(found, "device.driver_stack.reboot_needed")
    assert (one["expected"], one["observed"]) == (NEW, PIN)
    assert set(wrong(found)) == {"module", "hold"}
    host.built = {RUNNING: PIN}  # the library is new, and nobody built the module
    assert wrong(judged(host, driver_version=NEW))["module"] == "module_not_built"


def test_case_03_without_a_pin_nobody_says_which_side_is_right(cases):
    found = judged(case_03(cases), driver_version="")
    assert wrong(found)["module"] == "mismatch"
    assert wrong(judged(case_03(cases), driver_version=OLD))["module"] == "mismatch"


def test_case_03_drifted_by_hand_is_told_as_such(cases):
    host = case_03(cases)
    host.history = host.history.replace("/usr/bin/unattended-upgrade", "apt-get -y upgrade\nRequested-By: bob (1001)")
    assert (
        "brought by apt-get -y upgrade (bob) 2025-03-11"
        in only(judged(host), "device.driver_stack.library_mismatch")["message"]
    )
    host.history = ""
    assert "brought" not in only(judged(host), "device.driver_stack.library_mismatch")["message"]


def test_case_03_not_loaded_is_another_state(cases):
    host = case_03(cases)
    host.extra, host.packages, host.history = {}, dict.fromkeys(host.packages, f"{PIN}-1"), ""
    host.drivers = [{"vendor": "nvidia", "loaded": False}]
    host.held, host.bound = set(host.packages), None
    assert wrong(judged(host)) == {"module": "not_loaded"}


def case_19(cases, name):
    case = json.loads((cases / "19-driver-stack-versions/nodes.json").read_text())
    node = case["nodes"][name]
    host = Host()
    host.kernel, host.library = None, None
    host.extra = {"/proc/driver/nvidia/version": node["kernel"] + "\n", "/etc/cdi/nvidia.yaml": node["cdi"]}
    host.answers["nv-fabricmanager", "--version"] = (0, node["fm_version"] + "\n", "")
    host.switches, host.service, host.log = node["nvswitch"], node["fm_service"], node["fm_log"]
    host.packages = dict.fromkeys(case["driver_packages"], f"{case['pinned']}-0ubuntu1")
    host.held = set(node["hold"])
    return host


@pytest.mark.parametrize(
    ("node", "problems"),
    [
        ("gpu-n01", {}),
        ("gpu-n02", {"fabric_manager": "fabric_manager_version"}),
        ("gpu-n03", {}),
        ("gpu-n04", {"device_file": "cdi_stale"}),
        ("gpu-n05", {"hold": "not_held"}),
        ("gpu-n06", {"fabric_manager": "fabric_manager_not_running"}),
    ],
)
def test_case_19(cases, node, problems):
    found = judged(case_19(cases, node))
    assert wrong(found) == problems
    if node == "gpu-n03":
        assert only(found, "device.driver_stack.fabric_manager_not_required")["verdict"] == "pass"
    if node == "gpu-n05":
        one = only(found, "device.version_lock.not_held")
        assert one["severity"] == "warning"
        assert one["observed"] == [
            "libnvidia-compute-570-server",
            "nvidia-fabricmanager-570",
            "nvidia-utils-570-server",
        ]


def test_case_19_whether_it_is_needed_is_declared_or_on_the_bus(cases):
    # Later boards show no switches; the profile says so.
    assert wrong(judged(case_19(cases, "gpu-n03"), fabric_manager=True)) == {
        "fabric_manager": "fabric_manager_not_running",
        "hold": "not_held",
    }
    assert wrong(judged(case_19(cases, "gpu-n02"), fabric_manager=False)) == {}
    host = case_19(cases, "gpu-n06")
    host.switches, host.bus = 0, False
    assert wrong(judged(host)) == {"fabric_manager": "unknown"}


def test_case_19_the_log_tells_the_version_of_a_service_that_tells_none(cases):
    host = case_19(cases, "gpu-n02")
    host.answers["nv-fabricmanager", "--version"] = HANG
    one = only(judged(host), "device.driver_stack.fabric_manager_version")
    assert one["observed"] == NEW and "Please update with matching" in one["message"]


@pytest.mark.parametrize("state", ["failed", "inactive", "activating", "absent"])
def test_case_19_any_state_but_active_does_not_run(cases, state):
    host = case_19(cases, "gpu-n01")
    host.service = state
    assert wrong(judged(host)) == {"fabric_manager": "fabric_manager_not_running"}


def test_case_19_after_a_change_of_the_driver(cases):
    host = case_19(cases, "gpu-n01")  # driver changed, device file and fabric manager forgotten
    host.extra["/proc/driver/nvidia/version"] = host.extra["/proc/driver/nvidia/version"].replace(PIN, NEW)
    host.packages = {name: f"{PIN if 'fabric' in name else NEW}-0ubuntu1" for name in host.packages}
    host.built = {RUNNING: NEW}
    assert wrong(judged(host, driver_version=NEW)) == {
        "fabric_manager": "fabric_manager_version",
        "device_file": "cdi_stale",
        "packages": "off_pin",
    }


# ----------------------------------------------------------------------------------------------- states told apart


def library_moved(host):
    host.library, host.cdi = NEW, PIN


def library_moved_and_device_file_made_anew(host):
    host.library, host.cdi = NEW, NEW


def nouveau(host):
    host.kernel, host.bound = None, "nouveau"
    host.extra = {"/sys/module/nouveau/refcnt": "1"}


def nova(host):
    host.kernel, host.bound = None, None
    host.extra = {"/sys/module/nova_core/refcnt": "0"}


def one_card_taken(host):
    host.bound = "nouveau"


def not_loaded(host):
    host.kernel = None


def running_kernel_without_module(host):
    host.kernel, host.built = None, {}


def module_old(host):
    host.kernel, host.library = OLD, PIN


def all_old(host):
    host.kernel = host.library = host.cdi = host.manager = OLD
    host.packages = dict.fromkeys(SET, f"{OLD}-1")
    host.built = {RUNNING: OLD}


def kernel_moved(host):
    host.boot = [RUNNING, NEXT]


def next_module_differs(host):
    host.built = {RUNNING: NEW}
    host.packages["nvidia-kernel-dkms"] = f"{NEW}-1"


def half_configured(host):
    host.states["nvidia-smi"] = "half-configured"


def package_gone(host):
    host.states["nvidia-smi"] = "config-files"


def grub_chosen(host):
    host.boot, host.grub = [RUNNING, NEXT], 'GRUB_DEFAULT="1>2"\n'


def declare_kernel(host, kernel=RUNNING):
    host.packages = {**host.packages, f"linux-image-{kernel}": f"{PIN}-1"}
    host.held |= {f"linux-image-{kernel}"}


def declared_kernel(host):
    declare_kernel(host)


def declared_kernel_moved(host):
    declare_kernel(host)
    host.boot = [RUNNING, NEXT]


def declared_kernel_moved_with_module(host):
    declare_kernel(host)
    host.boot, host.built = [RUNNING, NEXT], {RUNNING: PIN, NEXT: PIN}


def declared_kernel_without_module(host):
    declare_kernel(host)
    host.built = {}


def declared_kernel_not_running(host):
    declare_kernel(host, NEXT)
    host.boot, host.built = [RUNNING, NEXT], {RUNNING: PIN, NEXT: PIN}


CHANGES = {
    change.__name__: change
    for change in (
        library_moved, library_moved_and_device_file_made_anew, nouveau, nova, one_card_taken, not_loaded,
        running_kernel_without_module, module_old, all_old, kernel_moved, next_module_differs, half_configured,
        package_gone, grub_chosen, declared_kernel, declared_kernel_moved, declared_kernel_moved_with_module,
        declared_kernel_without_module, declared_kernel_not_running,
    )
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "problems"),
    [
        ("library_moved", {"library": "library_mismatch"}),
        ("library_moved_and_device_file_made_anew", {"library": "library_mismatch"}),
        ("nouveau", {"module": "wrong_module"}),
        ("nova", {"module": "wrong_module"}),
        ("one_card_taken", {"module": "wrong_module"}),
        ("not_loaded", {"module": "not_loaded"}),
        ("running_kernel_without_module", {"module": "not_loaded"}),
        ("module_old", {"module": "reboot_needed"}),
        ("all_old", {"module": "module_off_pin", "next_boot": "next_boot_differs", "packages": "off_pin"}),
        ("kernel_moved", {"next_boot": "kernel_moved"}),
        ("next_module_differs", {"next_boot": "next_boot_differs", "packages": "off_pin"}),
        ("half_configured", {"packages": "half_configured"}),
        ("package_gone", {"packages": "missing"}),
        ("grub_chosen", {"next_boot": "next_boot_unknown"}),
        ("declared_kernel", {}),
        ("declared_kernel_moved", {"next_boot": "kernel_moved"}),
        ("declared_kernel_moved_with_module", {"next_boot": "kernel_off_pin"}),
        ("declared_kernel_without_module", {"next_boot": "next_boot_without"}),
        ("declared_kernel_not_running", {"kernel": "kernel_reboot_needed"}),
    ],
)
def test_each_state_is_told_apart(change, problems):
    host = Host()
    CHANGES[change](host)
    told = {part: cause for part, cause in wrong(judged(host)).items() if cause != "blocked"}
    assert told == problems


def test_what_follows_from_a_wrong_part_waits_for_it():
    host = Host()
    module_old(host)
    found = judged(host)
    waiting = only(found, "device.driver_stack.blocked")
    assert (waiting["subject"], waiting["blocked_by"]) == ("fabric_manager", "device.driver_stack")
    host = Host()
    library_moved(host)
    assert only(judged(host), "device.driver_stack.blocked")["subject"] == "device_file"


@pytest.mark.parametrize(("built", "words"), [({RUNNING: PIN}, "there is one"), ({}, "there is none")])
def test_a_module_that_is_not_loaded_may_not_be_there(built, words):
    host = Host()
    host.kernel, host.built = None, built
    assert words in only(judged(host), "device.driver_stack.not_loaded")["message"]


def test_a_kernel_is_newer_by_its_numbers():
    host = Host()
    host.boot = ["6.1.0-9-amd64", RUNNING, "0-rescue-4f3c"]
    assert host.observe()["kernels"]["next"] == RUNNING


def test_grubby_says_which_kernel_boots():
    host = Host()
    host.boot = [RUNNING, NEXT]
    host.answers["grubby", "--default-kernel"] = (0, f"/boot/vmlinuz-{RUNNING}\n", "")
    assert host.observe()["kernels"]["next"] == RUNNING


def test_a_container_shares_the_kernel():
    host = Host()
    host.container, host.boot = True, []
    found = judged(host)
    assert wrong(found) == {}  # the machine shows its module, so that the libraries are held against it
    assert "next_boot" not in {one["subject"] for one in found}
    host.kernel = None
    found = judged(host)
    assert only(found, "device.driver_stack.shared_kernel")["verdict"] == "not_applicable"
    assert wrong(found) == {}
    host.kernel = OLD  # the machine's, which this host can't change
    assert wrong(judged(host))["module"] == "mismatch"


def test_of_a_kernel_that_is_installed_in_a_container_the_files_are_judged():
    host = Host()
    host.container = True
    declare_kernel(host)
    found = judged(host)
    assert wrong(found) == {}
    assert only(found, "device.driver_stack.next_boot_ok")["subject"] == "next_boot"
    host.boot = [RUNNING, NEXT]
    assert wrong(judged(host)) == {"next_boot": "kernel_moved"}
    message = only(judged(host), "device.driver_stack.kernel_moved")["message"]
    assert message == f"kernel {NEXT} boots next and has no module of the driver ({RUNNING} is declared)"
    # What is loaded is the machine's: no reboot of this host brings another.
    host.boot, host.kernel = [RUNNING], OLD
    assert wrong(judged(host))["module"] == "mismatch"
    # Nor is anything said of kernels that the set has nothing to do with.
    host = Host()
    host.container, host.boot, host.built = True, [RUNNING, NEXT], {}
    del host.packages["nvidia-kernel-dkms"]
    assert "next_boot" not in {one["subject"] for one in judged(host)}


def test_what_brings_newer_kernels_belongs_to_the_set(trial):
    host = Host()
    declare_kernel(host)
    host.metas = f"installed\tlinux-image-amd64\t6.1.9-1\tlinux-image-{RUNNING} (= 6.1.9-1)\n"
    rows = {**host.packages, "linux-image-amd64": "6.1.9-1"}
    declared = dict(host.packages)
    host.packages = rows
    seen = stack.observe(host.runner(), "nvidia", list(declared), {}, 5)
    assert seen["kernel_metas"] == {"linux-image-amd64": "6.1.9-1"}
    found = stack.judge_stack(
        "gpu-01", seen, {"driver_version": PIN, "packages": dict.fromkeys(declared, "")}, "en", NOW
    )
    assert wrong(found) == {"hold": "not_held"}
    assert only(found, "device.version_lock.not_held")["observed"] == ["linux-image-amd64"]


@pytest.mark.parametrize(
    ("version", "wanted", "fit"),
    [
        ("570.86.15-0ubuntu0.22.04.4", "570.86.15", True),
        ("1:570.86.15-1", "570.86.15", True),
        ("570.86.15-0ubuntu0.22.04.4", "570.86", True),
        ("570.86.150-1", "570.86.15", False),
        ("570.124.06-1", "570.86.15", False),
        ("535.261.03-1", "535.261.03-1", True),
        ("535.261.03-1+deb12u1", "535.261.03-1", False),
        ("1:535.261.03-1", "535.261.03-1", False),
        ("2.25.1-1+cuda12.8", "2.25.1-1+cuda12.8", True),
    ],
)
def test_a_package_fits_a_version(version, wanted, fit):
    assert stack.fits(version, wanted) is fit


# -------------------------------------------------------------------------------------------------------------- locks


def test_the_locks_that_are_open_are_named(trial):
    host = Host()
    host.held.remove("nvidia-smi")
    host.blacklist = ["nvidia-"]
    trial.unpinned = ["libnvidia-ml1"]
    found = judged(host)
    assert wrong(found) == {"hold": "not_held", "preference": "not_pinned", "blacklist": "not_blacklisted"}
    assert [one["observed"] for one in found if one["verdict"] == "fail"] == [
        ["nvidia-smi"], ["libnvidia-ml1"], ["libnvidia-ml1"]
    ]  # fmt: skip
    assert all(one["severity"] == "warning" for one in found if one["verdict"] == "fail")


def test_an_upgrade_that_is_not_refused_fails_and_says_what_is_open(trial):
    host = Host()
    host.held.remove("nvidia-smi")
    trial.state, trial.upgraded, trial.removed, trial.unpinned = (
        "upgraded",
        ["nvidia-smi"],
        ["libnvidia-ml1"],
        ["nvidia-smi"],
    )
    one = only(judged(host), "device.version_lock.upgraded")
    assert (one["verdict"], one["severity"], one["observed"]) == ("fail", "critical", ["nvidia-smi", "libnvidia-ml1"])
    assert "not held: nvidia-smi; no preference: nvidia-smi" in one["message"]
    assert one["evidence"][0]["excerpt"] == "kept back"


def test_a_trial_that_could_not_be_made_is_unknown_though_all_is_held(trial):
    trial.state, trial.problem = "unknown", "/var/lib/dpkg/lock is held by process 4711"
    one = only(judged(Host()), "device.version_lock.trial")
    assert (one["verdict"], one["severity"]) == ("unknown", "critical")
    assert "4711" in one["message"]


def test_what_is_not_needed_need_not_be_held(trial):
    host = Host()
    host.switches, host.service = 0, "failed"
    host.held.remove("nvidia-fabricmanager-570")
    trial.state, trial.upgraded = "upgraded", ["nvidia-fabricmanager-570"]
    assert wrong(judged(host)) == {}


# ---------------------------------------------------------------------------------------------------- what is not told


def test_a_package_database_that_hangs_is_unknown():
    host = Host()
    host.answers[LIST] = HANG
    assert wrong(judged(host)) == {"packages": "unknown", "gpu-01": "trial"}


def test_a_host_without_apt_is_unknown():
    seen = {**Host().observe(), "package_manager": "rpm", "lock": None}
    found = stack.judge_stack("gpu-01", seen, {"driver_version": PIN, "packages": list(SET)}, "en", NOW)
    assert "is rpm; only apt" in only(found, "device.version_lock.trial")["message"]


def test_an_empty_observation_never_passes():
    found = stack.judge_stack("gpu-01", {}, {"driver_version": PIN, "packages": list(SET)}, "en", NOW)
    assert {one["verdict"] for one in found} == {"unknown"}


def test_a_configuration_that_apt_cannot_read_is_unknown():
    host = Host()
    host.answers["apt-config", "dump"] = (100, "", "E: Syntax error")
    found = judged(host)
    assert wrong(found) == {"blacklist": "blacklist_unknown"}


def test_systemd_that_does_not_answer_is_unknown():
    host = Host()
    host.answers[SHOW] = HANG
    assert wrong(judged(host)) == {"fabric_manager": "unknown"}


def test_modinfo_that_does_not_answer_is_unknown():
    host = Host()
    for name in ("nvidia", "nvidia-current", "nvidia-current-open"):
        host.answers["modinfo", "-k", RUNNING, name] = HANG
    assert wrong(judged(host)) == {"next_boot": "next_boot_unknown"}


def test_a_vendor_without_such_facts_is_judged_by_its_module():
    files = {
        "/sys/module/amdgpu/version": "6.10.5\n",
        "/proc/sys/kernel/osrelease": RUNNING,
        "/run/systemd/container": "",
    }
    seen = stack.observe(RecordedRunner({}, files), "amd", [], {}, 5)
    found = stack.judge_stack("amd-01", seen, {"driver_version": "6.10.5"}, "en", NOW)
    assert [(one["subject"], one["verdict"]) for one in found] == [("module", "pass")]


def with_all(host, **changes):
    for name, value in changes.items():
        setattr(host, name, value)
    return host


def test_every_cause_comes_out(trial):
    hosts = [Host() for _change in CHANGES]
    for host, change in zip(hosts, CHANGES.values()):
        change(host)
    silent = {("modinfo", "-k", RUNNING, name): HANG for name in nvidia.Nvidia.stack.modules}
    hosts += [
        with_all(Host(), container=True, boot=[], kernel=None),
        with_all(Host(), container=True, boot=[], kernel=OLD),
        with_all(Host(), cdi=OLD),
        with_all(Host(), manager=OLD),
        with_all(Host(), service="failed"),
        with_all(Host(), switches=0, service="failed"),
        with_all(Host(), kernel=OLD, boot=[RUNNING, NEXT], built={RUNNING: OLD, NEXT: OLD}),
        with_all(Host(), answers={SHOW: HANG}),
        with_all(Host(), answers=silent),
        with_all(Host(), answers={("apt-config", "dump"): (100, "", "E: Syntax error")}),
    ]
    found = [one for host in hosts for one in judged(host)]
    trial.unpinned = trial.upgraded = ["libnvidia-ml1"]
    found += judged(with_all(Host(), held=set(), blacklist=[]))
    for state, problem in (("upgraded", ""), ("unknown", "the lock is held")):
        trial.state, trial.problem = state, problem
        found += judged(Host())
    for row in ROWS.values():
        found += judged_parts(row)
    mine = ("device.driver_stack.", "device.version_lock.")
    # What only shows beside the files of containers, conclude says.
    elsewhere = {"device.driver_stack.follows"}
    assert {one["hint"] for one in found} == {cause for cause in hints.CAUSES if cause.startswith(mine)} - elsewhere


# ---------------------------------------------------------------------------------------------- what programs installed

WELL = {"name": "firmware", "version": "7.7.0", "problem": "", "unfinished": "", "owner": ""}
ROWS = {
    "as declared": {},
    "rc in other letters": {"version": "8.2.RC1"},
    "another version": {"version": "7.5.0"},
    "nothing": {"version": None, "owner": None},
    "unreadable": {"version": None, "problem": "version.info tells no version: it is empty"},
    "ended halfway": {"unfinished": "version 7.7.0 was started 2026-11-30T01:02:03Z and did not end"},
    "a package has it too": {"owner": "npu-firmware"},
    "told by a command": {"owner": None},
}
SAID = {
    "another version": ["driver_stack.installer_off_pin"],
    "nothing": ["driver_stack.installer_off_pin", "version_lock.installer_untold"],
    "unreadable": ["driver_stack.unknown"],
    "ended halfway": ["driver_stack.installer_unfinished"],
    "a package has it too": ["version_lock.installer_owned"],
    "told by a command": ["version_lock.installer_untold"],
}


def judged_parts(row, language="en", version=None, rows=None):
    wanted = "8.2.rc1" if row.get("version") == "8.2.RC1" else version or "7.7.0"
    seen = {**Host().observe(), "installers": [{**WELL, **row}] if rows is None else rows}
    declared = {"driver_version": PIN, "installers": {"firmware": wanted}}
    return [one for one in stack.judge_stack("npu-01", seen, declared, language, NOW) if one["subject"] == "installers"]


@pytest.mark.parametrize("name", ROWS)
def test_parts_that_programs_installed_are_judged_as_one_set(name):
    found = judged_parts(ROWS[name])
    wrong_ones = [one["hint"][len("device.") :] for one in found if one["verdict"] != "pass"]
    assert wrong_ones == SAID.get(name, [])
    # Both checks speak, whatever is wrong: nothing is passed over.
    assert {one["check"] for one in found} == {"device.driver_stack", "device.version_lock"}
    for language in ("en", "zh"):
        assert not any("{" in one["message"] or "?" in one["message"] for one in judged_parts(ROWS[name], language))


def test_a_part_that_the_host_did_not_tell_of_is_unknown():
    found = {one["check"]: one["verdict"] for one in judged_parts({}, rows=[])}
    assert found == {"device.driver_stack": "unknown", "device.version_lock": "unknown"}


def test_a_part_that_is_declared_no_longer_is_named_where_it_was_not_finished():
    left = {**WELL, "name": "toolkit", "unfinished": "its journal can't be read"}
    (one,) = [one for one in judged_parts({}, rows=[WELL, left]) if one["verdict"] != "pass"]
    assert (one["hint"], one["observed"]) == ("device.driver_stack.installer_unfinished", ["toolkit"])


@pytest.mark.parametrize(
    ("version", "wanted", "fits"),
    [
        ("25.1.0.60304-76~24.04", "*.60304-*", True),
        ("25.1.0.60402-76~24.04", "*.60304-*", False),
        ("1:6.12.12.60401-2164967.22.04", "6.12.12", True),
        ("1.21.0-555", "1.21.0", True),
        ("1.21.1-555", "1.21.0", False),
    ],
)
def test_versions_of_vendors_fit(version, wanted, fits):
    assert stack.fits(version, wanted) is fits
