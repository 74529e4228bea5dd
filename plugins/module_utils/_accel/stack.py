# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""The driver stack of a host: is it of one piece, is it what is pinned, and can it change by itself.

What belongs together: the loaded kernel module, its file for the kernel of the next boot, the libraries that programs
load, the fabric manager where there are switches, the device file of containers (CDI), and the packages they come from
(cases 03 and 19 of tests/cases). ``observe`` asks, ``judge`` is pure. What was not told is unknown, never a pass.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence

from . import apt, boot, installers, judge, packages, pci, registry, versions
from .kernel_log import CONTAINER_FILE
from .model import as_dict, dict_of, dicts_of
from .parallel import command_of, run_all
from .runner import Runner
from .text import excerpt, same_version
from .vendors.base import PACKAGE, FabricManager, Stack, Vendor

PRESENT, ABSENT, UNKNOWN = boot.PRESENT, boot.ABSENT, boot.UNKNOWN

_WORDS = {
    "en": {
        "comma": ", ",
        "off": "; off the pin: {0}",
        "brought": "; brought by {0}",
        "is": "{0} {1}",
        "instead": "{0} {1} instead of {2}",
        "held": "not held: {0}",
        "preferred": "no preference: {0}",
        "also": " ({0})",
        "built": "; for the running kernel {0} there is one",
        "not_built": "; for the running kernel {0} there is none",
        "says": "; it says: {0}",
        "no_module": "nothing tells whether the kernel module is loaded",
        "no_version": "nothing tells the version of the {0}",
        "no_switches": "the PCI bus could not be read, and whether it is needed is not declared",
        "no_service": "systemd does not tell the state of {0}",
        "running": "{0} is running",
        "declared": "{0} is declared",
        "no_next": "which kernel boots next is not known",
        "no_file": "modinfo does not tell whether kernel {0} has a module",
        "no_blacklist": "apt-config does not tell the blacklist of unattended-upgrade",
        "manager": "the package manager of this host is {0}; only apt can be tried",
        "module": "kernel module",
        "library": "library",
        "fabric_manager": "fabric manager",
        "device_file": "device file of containers",
        "packages": "package database",
        "installers": "parts that programs installed",
        "of": "{0}: {1}",
        "none": "nothing",
    },
    "zh": {
        "comma": "，",
        "off": "；偏离锁定版本的包：{0}",
        "brought": "；由 {0} 引入",
        "is": "{0} {1}",
        "instead": "{0} {1}（应为 {2}）",
        "held": "未 hold：{0}",
        "preferred": "没有 apt 优先级设置：{0}",
        "also": "（{0}）",
        "built": "；当前内核 {0} 有可用的模块文件",
        "not_built": "；当前内核 {0} 没有模块文件",
        "says": "；其日志：{0}",
        "no_module": "没有任何来源说明内核模块是否已加载",
        "no_version": "没有任何来源给出{0}的版本",
        "no_switches": "无法读取 PCI 总线，也没有声明是否需要",
        "no_service": "systemd 没有给出 {0} 的状态",
        "running": "当前内核为 {0}",
        "declared": "声明的内核为 {0}",
        "no_next": "不知道下次启动使用哪个内核",
        "no_file": "modinfo 没有说明内核 {0} 是否有模块文件",
        "no_blacklist": "apt-config 没有给出 unattended-upgrade 的黑名单",
        "manager": "该主机的包管理器是 {0}，目前只能对 apt 做试升级",
        "module": "内核模块",
        "library": "库",
        "fabric_manager": "Fabric Manager",
        "device_file": "容器设备文件（CDI）",
        "packages": "软件包数据库",
        "installers": "由安装程序安装的部分",
        "of": "{0}：{1}",
        "none": "未安装",
    },
}


# -------------------------------------------------------------------------------------------------------------- observe


def observe(
    runner: Runner,
    vendor: str,
    names: Sequence[str],
    observation: Mapping,
    timeout_seconds: float = 10,
    parts: Sequence[installers.Installer] = (),
) -> dict:
    """Return what is there of a vendor's driver stack; see ``driver_stack_info`` for the shape.

    ``names`` are the packages of the set, ``parts`` what programs installed instead. ``observation`` is what
    ``accelerator_info`` returned: its drivers tell what no file does.
    """
    errors: list[str] = []
    known = registry.VENDORS[vendor]
    facts: Stack = known.stack
    shared = runner.read(CONTAINER_FILE) is not None
    sources = [source for source in known.versions if source.component in versions.DRIVER_SET]
    wanted = [source.where for source in sources if source.how == PACKAGE]
    in_packages = packages.read(runner, wanted, timeout_seconds)
    drivers = dicts_of(observation.get("drivers"))
    rows = versions.of_vendor(runner, vendor, sources, drivers, in_packages, errors, timeout_seconds)
    functions = pci.functions(runner, detailed=known.owns)
    seen = {
        "vendor": vendor,
        "shared_kernel": shared,
        "versions": rows,
        "module": _module(runner, known, functions),
        "kernels": boot.kernels(runner, facts.modules or known.kernel_modules, timeout_seconds, errors),
        "fabric_manager": _fabric_manager(runner, known, facts.fabric_manager, functions, timeout_seconds, errors),
        **_packages(runner, names, timeout_seconds, errors),
        "installers": installers.observe(runner, parts, timeout_seconds) if parts else [],
    }
    errors += [*in_packages.problems, *runner.hung_reads()]
    return {**seen, "errors": list(dict.fromkeys(errors))}


def _module(runner: Runner, known: Vendor, functions: Sequence[pci.Function]) -> dict:
    """Return whether the driver is loaded, and the wrong ones that have its cards or are loaded in its place."""
    # Of several names of one driver's file the first is that of the module; else each is a driver of its own.
    names = known.stack.modules[:1] or known.kernel_modules
    there = [name for name in (*names, *known.stack.wrong_modules) if runner.glob(f"/sys/module/{name}")]
    loaded = any(name in there for name in names)
    bound = {one.driver for one in functions if one.driver and known.owns(one)}
    wrong = [name for name in known.stack.wrong_modules if name in bound or (name in there and not loaded)]
    return {"name": names[0] if names else None, "loaded": loaded if names else None, "wrong": wrong}


def _fabric_manager(
    runner: Runner,
    known: Vendor,
    facts: FabricManager | None,
    functions: Sequence[pci.Function],
    timeout_seconds: float,
    errors: list[str],
) -> dict | None:
    """Return switches on the bus (None: not read), state of the service and what it said last where it does not run."""
    if facts is None:
        return None
    switches = [one for one in functions if one.vendor in known.pci_vendors and one.device in facts.switches]
    seen: dict = {"switches": len(switches) if functions else None, "service": facts.service, "state": None, "log": ""}
    systemctl = runner.which("systemctl")
    if systemctl is None:
        errors.append("systemctl is not installed")
        return {**seen, "refused": None}
    argv = [systemctl, "show", "--property=LoadState", "--property=ActiveState", f"{facts.service}.service"]
    result = runner.run(argv, timeout_seconds)
    told = dict(line.partition("=")[::2] for line in result.stdout.splitlines())
    if result.rc == 0 and told.get("ActiveState"):
        seen["state"] = ABSENT if told.get("LoadState") == "not-found" else told["ActiveState"]
    else:
        errors.append(apt.problem_of(result) or f"{command_of(result)} tells no state")
    if seen["state"] not in (None, ABSENT, "active"):
        unit = ["journalctl", "--unit", facts.service, "--boot", "--lines=20", "--no-pager", "--output=cat"]
        commands = [["tail", "-n", "20", facts.log]] if runner.glob(facts.log) else []
        results = run_all(runner, [*commands, unit], timeout_seconds)
        seen["log"] = excerpt(*(one.stdout for one in results if one.rc == 0))
    refused = re.search(facts.mismatch, seen["log"])
    return {**seen, "refused": refused[1] if refused else None}


def _packages(runner: Runner, names: Sequence[str], timeout_seconds: float, errors: list[str]) -> dict:
    """Return the packages of the set, what is broken, what changed them last, and what keeps them as they are."""
    seen: dict = {
        "package_manager": None,
        "packages": None,
        "kernel_metas": {},
        "broken": [],
        "changes": {},
        "lock": None,
    }
    if not (runner.which("dpkg-query") and runner.which("apt-get")):
        told = packages.read(runner, names, timeout_seconds)
        errors += told.problems
        if runner.which("rpm") and not told.problems:
            rows = [{"name": name, "version": told.versions[name][0], "held": None} for name in told.versions]
            seen.update(package_manager="rpm", packages=rows)
        return seen
    seen["package_manager"] = "apt"
    every, problem = apt.installed(runner, timeout_seconds)
    if problem:
        errors.append(problem)
        return seen
    # What brings newer kernels would move the set as much as a newer package of it.
    seen["kernel_metas"] = {
        name: one["version"] for name, one in boot.metas(runner, names, timeout_seconds, errors).items()
    }
    names = [*names, *seen["kernel_metas"]]
    own = [one for one in every if one.name in names and one.status not in ("config-files", "not-installed")]
    seen["packages"] = [{"name": one.name, "version": one.version, "held": one.held} for one in own]
    seen["broken"] = [{"name": one.full, "state": one.status} for one in every if one.status in apt.BROKEN]
    history = apt.history(runner, timeout_seconds)
    for one in own:
        entry = apt.brought(history, one.name, one.version)
        if entry:
            seen["changes"][one.name] = {"version": one.version, "by": apt.starter(entry), "at": entry.start}
    config = runner.run(["apt-config", "dump"], timeout_seconds)
    readable = not apt.problem_of(config)
    if not readable:
        errors.append(apt.problem_of(config))
    seen["lock"] = {
        "unattended_upgrades": any(one.name == "unattended-upgrades" and one.status == "installed" for one in every),
        "blacklist": apt.parse_blacklist(config.stdout) if readable else None,
        "trial": as_dict(apt.try_upgrade(runner, names, every, timeout_seconds)),
    }
    return seen


# ---------------------------------------------------------------------------------------------------------------- judge


def judge_stack(host: str, observed: dict, declared: dict, language: str = "en", now: str | None = None) -> list[dict]:
    """Judge ``device.driver_stack`` and ``device.version_lock`` of one host.

    ``declared``: ``driver_version`` (full or short, "" for none), ``packages`` {name: version}, where a name without a
    version has that of the driver; ``installers`` {name: version} in their place; ``fabric_manager`` True or False
    where the profile says whether it is needed, else the switches on the bus do. ``device.driver_stack`` has a finding
    for each part that is there (``subject``); one fact is one finding, and what follows from a part that is wrong is
    ``blocked``.
    """
    return _Judge(host, dict_of(observed), dict_of(declared), language, now or judge.now_utc()).findings()


def upstream(version: str) -> str:
    """Return the version of a driver from that of its package: ``1:570.86.15-0ubuntu1`` is 570.86.15."""
    return re.sub(r"-[^-]*$", "", re.sub(r"^\d+:", "", version))


def fits(version: str, wanted: str) -> bool:
    """Tell whether a package has the wanted version: one of the package, one of the driver, or a pattern of the former.

    AMD's packages have the release of ROCm in the middle: ``*.60304-*`` fits ``25.1.0.60304-76~24.04``.
    """
    if "*" in wanted:
        return fnmatch.fnmatchcase(version, wanted)
    if re.search(r"[-:]", wanted):
        return version == wanted
    return version == wanted or same_version(upstream(version), wanted)


class _Judge:
    def __init__(self, host: str, observed: dict, declared: dict, language: str, now: str) -> None:
        self.host, self.seen, self.language, self.now = host, observed, language, now
        self.say = _WORDS.get(language, _WORDS["en"])
        self.pin = str(declared.get("driver_version") or "").strip()
        set_of = declared.get("packages") or {}
        pairs = set_of.items() if isinstance(set_of, Mapping) else [(name, "") for name in set_of]
        self.fabric = dict_of(observed.get("fabric_manager"))
        self.needs_fabric = self._fabric_needed(declared.get("fabric_manager"))
        self.set = {str(name): str(version or self.pin).strip() for name, version in pairs}
        self.parts = {str(name): str(one or "") for name, one in dict_of(declared.get("installers")).items()}
        if self.needs_fabric is False:
            facts = registry.VENDORS[observed["vendor"]].stack.fabric_manager if self.fabric else None
            self.set = {name: one for name, one in self.set.items() if not (facts and re.match(facts.package, name))}
        self.pinned_kernels = boot.releases(self.set)
        self.builds = boot.builds_module(self.set)
        self.set.update(dict_of(observed.get("kernel_metas")))
        self.evidence = [{"command": "", "excerpt": str(error)} for error in observed.get("errors") or []]
        self.shared = bool(observed.get("shared_kernel"))
        self.module, self.kernels = dict_of(observed.get("module")), dict_of(observed.get("kernels"))
        self.found: list[dict] = []
        self.explained: set[str] = set()  # packages that another finding names already

    def findings(self) -> list[dict]:
        sound = self._kernel_module()
        self._next_boot()
        self._fabric_manager(sound)
        self._device_file()
        self._packages()
        self._lock()
        self._installers()
        return self.found

    def add(self, cause: str, subject: str | None = None, check: str = "driver_stack", **values) -> None:
        values["evidence"] = [*values.pop("evidence", []), *self.evidence]
        cause = f"device.{check}.{cause}"
        self.found.append(judge.finding(cause, self.host, subject, self.language, self.now, **values))

    def unknown(self, subject: str, detail: str) -> None:
        self.add("unknown", subject, part=self.say[subject], detail=detail)

    def names(self, words: Iterable[str]) -> str:
        return self.say["comma"].join(words)

    def told(self, component: str) -> tuple[list[str], bool]:
        """Return the versions that a component tells, and whether it is there without telling one."""
        rows = [row for row in dicts_of(self.seen.get("versions")) if row.get("component") == component]
        found = [str(row["version"]) for row in rows if row.get("version")]
        return list(dict.fromkeys(found)), not found and any(row.get("source") for row in rows)

    def _fabric_needed(self, declared: object) -> bool | None:
        if isinstance(declared, bool):
            return declared
        switches = self.fabric.get("switches")
        return None if switches is None else switches > 0

    def _off_pin(self) -> list[dict]:
        rows = dicts_of(self.seen.get("packages"))
        wanted = {name: version for name, version in self.set.items() if version}
        return [one for one in rows if one["name"] in wanted and not fits(one["version"], wanted[one["name"]])]

    def _brought(self, rows: Iterable[dict]) -> str:
        changes = dict_of(self.seen.get("changes"))
        by = dict.fromkeys(changes[one["name"]]["by"] for one in rows if one["name"] in changes)
        return self.say["brought"].format(self.names(by)) if by else ""

    def _module_of(self, kernel: object) -> dict:
        return dict_of(dict_of(self.kernels.get("modules")).get(str(kernel)))

    # -- the parts; each is the subject of its findings

    def _kernel_module(self) -> bool:
        """Judge the loaded module against the libraries and the pin; tell whether it is as it should be."""
        loaded, wrong = self.module.get("loaded"), self.module.get("wrong") or []
        (kernels, _unread), (libraries, library_unread) = self.told("driver_kernel"), self.told("driver_library")
        kernel = kernels[0] if kernels else None
        if wrong:
            self.add("wrong_module", "module", observed=self.names(wrong), expected=self.module.get("name"))
            return False
        if self.shared and not loaded and not kernel:
            self.add("shared_kernel", "module")
            return True
        if not loaded and not kernel:
            if loaded is None:
                self.unknown("module", self.say["no_module"])
                return False
            running = self.kernels.get("running")
            there = self._module_of(running).get("state")
            words = {PRESENT: self.say["built"], ABSENT: self.say["not_built"]}.get(str(there), "").format(running)
            self.add("not_loaded", "module", expected=self.module.get("name"), detail=words)
            return False
        if library_unread:
            self.unknown("library", self.say["no_version"].format(self.say["library"]))
        others = [one for one in libraries if kernel and not same_version(one, kernel)]
        if others:
            return self._mismatch(str(kernel), others)
        if self.pin and kernel is None:
            self.unknown("module", self.say["no_version"].format(self.say["module"]))
            return False
        if self.pin and not same_version(kernel, self.pin):
            # What the next boot loads decides what is to be done.
            cause = "reboot_needed" if self._comes_with_next_boot() else "module_off_pin"
            self.add(cause, "module", expected=self.pin, observed=kernel, brought=self._brought(self._off_pin()))
            return False
        self.add("ok", "module", part=self.say["module"], observed=kernel, detail=kernel or self.module.get("name"))
        if libraries:
            self.add("ok", "library", part=self.say["library"], observed=libraries[0], detail=self.names(libraries))
        return True

    def _comes_with_next_boot(self) -> bool:
        there = same_version(self._module_of(self.kernels.get("next")).get("version"), self.pin)
        return there and not self.shared

    def _mismatch(self, kernel: str, libraries: list[str]) -> bool:
        """Tell which side is off the pin: only where it is the loaded module does a reboot lead to the pin."""
        off = self._off_pin()
        values: dict = {"library": self.names(libraries), "kernel": kernel, "pin": self.pin or None}
        about = [self.say["is"].format(one["name"], one["version"]) for one in off]
        values["off"] = self.say["off"].format(self.names(about)) if about else ""
        values["brought"] = self._brought(off)
        values["evidence"] = [{"command": "dpkg-query", "excerpt": "\n".join(about)}] if about else []
        if self.pin and same_version(kernel, self.pin):
            self.explained |= {one["name"] for one in off}
            self.add("library_mismatch", "library", expected=self.pin, observed=values["library"], **values)
            return True  # of module and pin, all else can be judged
        if self.pin and all(same_version(one, self.pin) for one in libraries):
            if self._comes_with_next_boot():
                cause = "reboot_needed"
            else:
                cause = "mismatch" if self.shared or not self.kernels.get("next") else "module_not_built"
            values["next"] = self.kernels.get("next")
            self.add(cause, "module", expected=self.pin, observed=kernel, **values)
        else:
            self.add("mismatch", "module", expected=self.pin or kernel, observed=values["library"], **values)
        return False

    def _next_boot(self) -> None:
        """Judge the kernel of the next boot and its module; in a container only where the set brings them."""
        if not self.seen.get("kernels") or (self.shared and not (self.pinned_kernels or self.builds)):
            return
        kernel, running = self.kernels.get("next"), self.kernels.get("running")
        if kernel is None:
            self.add("next_boot_unknown", "next_boot", detail=self.say["no_next"])
            return
        state, version = self._module_of(kernel).get("state"), self._module_of(kernel).get("version")
        not_loaded = any(one["hint"] == "device.driver_stack.not_loaded" for one in self.found)
        same_fact = not_loaded and kernel == running
        pinned = not self.pinned_kernels or kernel in self.pinned_kernels
        expected = self.names(self.pinned_kernels) or running
        if state == ABSENT and not same_fact:
            words = [self.say["running"].format(running)] if running else []
            words += [self.say["declared"].format(expected)] if not pinned else []
            detail = (self.say["also"].format(self.names(words)) if words else "") + boot.dkms_says(self.kernels)
            cause = "next_boot_without" if self.pinned_kernels and pinned else "kernel_moved"
            self.add(cause, "next_boot", expected=expected, observed=kernel, kernel=kernel, detail=detail)
        elif not pinned:
            self.add("kernel_off_pin", "next_boot", expected=expected, observed=kernel)
        elif state == PRESENT and version and self.pin and not same_version(version, self.pin):
            brought = self._brought(self._off_pin())
            values = {"expected": self.pin, "observed": version, "kernel": kernel, "brought": brought}
            self.add("next_boot_differs", "next_boot", **values)
        elif state == PRESENT:
            self.add("next_boot_ok", "next_boot", observed=version, kernel=kernel)
            if running and self.pinned_kernels and running not in self.pinned_kernels:
                self.add("kernel_reboot_needed", "kernel", expected=kernel, observed=running)
        elif state != ABSENT:
            self.add("next_boot_unknown", "next_boot", detail=self.say["no_file"].format(kernel))

    def _fabric_manager(self, sound: bool) -> None:
        if not self.fabric:
            return
        if self.needs_fabric is None:
            self.unknown("fabric_manager", self.say["no_switches"])
            return
        if not self.needs_fabric:
            self.add("fabric_manager_not_required", "fabric_manager")
            return
        told, _unread = self.told("fabric_manager")
        version = told[0] if told else self.fabric.get("refused")
        kernel = self.told("driver_kernel")[0]
        wanted = kernel[0] if kernel else self.pin
        state, service = self.fabric.get("state"), self.fabric.get("service")
        said = str(self.fabric.get("log") or "").strip()
        values: dict = {
            "log": self.say["says"].format(said.splitlines()[-1][:300]) if said else "",
            "evidence": [{"command": f"log of {service}", "excerpt": said}] if said else [],
        }
        if version and wanted and not same_version(version, wanted):
            if not sound and self.pin and same_version(version, self.pin):
                self.add("blocked", "fabric_manager", part=self.say["fabric_manager"], blocked_by="device.driver_stack")
            else:
                values.update(expected=wanted, observed=version)
                self.add("fabric_manager_version", "fabric_manager", **values)
        elif state is None:
            self.unknown("fabric_manager", self.say["no_service"].format(service))
        elif state != "active":
            values.update(expected="active", observed=state, service=service)
            self.add("fabric_manager_not_running", "fabric_manager", **values)
        elif not version or not wanted:
            missing = self.say["module" if version else "fabric_manager"]
            self.unknown("fabric_manager", self.say["no_version"].format(missing))
        else:
            self.add("ok", "fabric_manager", part=self.say["fabric_manager"], observed=version, detail=version)

    def _device_file(self) -> None:
        """Judge the device file of containers; it names the libraries that it was made with."""
        made, unread = self.told("cdi")
        if unread:
            self.unknown("device_file", self.say["no_version"].format(self.say["device_file"]))
        current = [*self.told("driver_library")[0], *self.told("driver_kernel")[0]][:1]
        if not made or not (current or self.pin):
            return
        # One that is of the pin is right as soon as the libraries are; one that is of the libraries needs no finding
        # besides that on the libraries.
        accepted = [*([self.pin] if self.pin else []), *current]
        stale = [one for one in made if not any(same_version(one, good) for good in accepted)]
        if stale:
            self.add("cdi_stale", "device_file", expected=accepted[0], observed=self.names(stale))
        elif all(same_version(one, good) for one in made for good in accepted):
            self.add("ok", "device_file", part=self.say["device_file"], observed=made[0], detail=self.names(made))
        else:
            self.add("blocked", "device_file", part=self.say["device_file"], blocked_by="device.driver_stack")

    def _packages(self) -> None:
        rows = self.seen.get("packages")
        if not self.set:
            return
        if rows is None:
            self.unknown("packages", self.names(str(one) for one in self.seen.get("errors") or []) or "?")
            return
        broken = [self.say["is"].format(one["name"], one["state"]) for one in dicts_of(self.seen.get("broken"))]
        if broken:
            self.add("half_configured", "packages", observed=broken, names=self.names(broken))
        missing = sorted(set(self.set) - {one["name"] for one in rows})
        if missing:
            self.add("missing", "packages", expected=missing, names=self.names(missing))
        off = [one for one in self._off_pin() if one["name"] not in self.explained]
        if off:
            words = [self.say["instead"].format(one["name"], one["version"], self.set[one["name"]]) for one in off]
            expected = {one["name"]: self.set[one["name"]] for one in off}
            observed = {one["name"]: one["version"] for one in off}
            values = {"names": self.names(words), "brought": self._brought(off)}
            self.add("off_pin", "packages", expected=expected, observed=observed, **values)
        if not (broken or missing or off or self.explained):
            observed = {one["name"]: one["version"] for one in rows}
            self.add("packages_ok", "packages", observed=observed, number=len(self.set))

    # -- whether it stays as it is

    def _lock(self) -> None:
        """Judge whether the set can change by itself. An upgrade that was refused is proven; what kept it is a warning.

        Any one of hold and preference refuses it today, but a hold goes with one command and a preference does not keep
        unattended-upgrade from removing a package that it needs out of its way.
        """
        if not self.set:
            return
        lock = self.seen.get("lock")
        if not isinstance(lock, Mapping):
            manager = self.seen.get("package_manager")
            errors = self.names(str(one) for one in self.seen.get("errors") or [])
            detail = errors if manager == "apt" else self.say["manager"].format(manager or "?")
            self.add("trial", check="version_lock", detail=detail)
            return
        rows = [one for one in dicts_of(self.seen.get("packages")) if one["name"] in self.set]
        there = list(dict.fromkeys(one["name"] for one in rows))
        trial = dict_of(lock.get("trial"))
        free = list(dict.fromkeys(one["name"] for one in rows if one.get("held") is False))
        unpinned = [name for name in there if name in (trial.get("unpinned") or [])]
        touched = [one for one in [*(trial.get("upgraded") or []), *(trial.get("removed") or [])] if one in self.set]
        values: dict = {"check": "version_lock", "evidence": list(trial.get("evidence") or [])}
        if trial.get("state") == apt.UPGRADED and touched:
            why = [self.say["held"].format(self.names(free))] if free else []
            why += [self.say["preferred"].format(self.names(unpinned))] if unpinned else []
            detail = self.say["also"].format("; ".join(why)) if why else ""
            # A subject of its own: what is wrong already (device.driver_stack) is named before what may go wrong.
            self.add("upgraded", "upgrade", observed=touched, names=self.names(touched), detail=detail, **values)
            return
        if trial.get("state") not in (apt.REFUSED, apt.UPGRADED):
            self.add("trial", detail=trial.get("problem") or "?", **values)
            unpinned = []  # it was not shown
        open_locks = [("hold", "not_held", free), ("preference", "not_pinned", unpinned)]
        blacklist = lock.get("blacklist")
        if lock.get("unattended_upgrades") and blacklist is not None:
            open_locks.append(
                ("blacklist", "not_blacklisted", [name for name in there if not apt.blacklisted(name, blacklist)])
            )
        for subject, cause, names in open_locks:
            if names:
                self.add(cause, subject, observed=names, names=self.names(names), **values)
        if lock.get("unattended_upgrades") and blacklist is None:
            self.add("blacklist_unknown", "blacklist", detail=self.say["no_blacklist"], **values)
        if not any(one["check"] == "device.version_lock" for one in self.found):
            self.add("ok", observed=there, number=len(there), **values)

    # -- what programs installed, which no package manager knows

    def _installers(self) -> None:
        """Judge the parts as one set: a driver and a firmware of two releases are as wrong as two packages."""
        if not self.parts:
            return
        rows = {one["name"]: one for one in dicts_of(self.seen.get("installers"))}
        left = [one for one in rows.values() if one.get("unfinished")]
        if left:
            words = [self.say["of"].format(one["name"], one["unfinished"]) for one in left]
            observed = [one["name"] for one in left]
            self.add("installer_unfinished", "installers", observed=observed, names=self.names(words))
        sure = {name: rows[name] for name in self.parts if name in rows and not rows[name].get("problem")}
        unsure = [name for name in self.parts if name not in sure]
        if unsure:
            words = [self.say["of"].format(name, dict_of(rows.get(name)).get("problem") or "?") for name in unsure]
            self.add("unknown", "installers", part=self.say["installers"], detail=self.names(words))
        off = {name: row for name, row in sure.items() if not installers.equal(row.get("version"), self.parts[name])}
        if off:
            none = self.say["none"]
            words = [
                self.say["instead"].format(name, row.get("version") or none, self.parts[name])
                for name, row in off.items()
            ]
            expected = {name: self.parts[name] for name in off}
            observed_versions = {name: row.get("version") for name, row in off.items()}
            values: dict = {"expected": expected, "observed": observed_versions, "names": self.names(words)}
            self.add("installer_off_pin", "installers", **values)
        if not (left or unsure or off):
            observed_versions = {name: row["version"] for name, row in sure.items()}
            self.add("installers_ok", "installers", observed=observed_versions, number=len(self.parts))
        self._installers_lock({name: row.get("owner") for name, row in rows.items() if name in self.parts})

    def _installers_lock(self, owners: Mapping[str, str | None]) -> None:
        """Tell whether something upgrades what programs installed. A package manager touches what it owns only."""
        owned = [self.say["of"].format(name, owner) for name, owner in owners.items() if owner]
        unsure = [name for name in self.parts if owners.get(name) is None]
        values: dict = {"check": "version_lock"}
        if owned:
            self.add("installer_owned", "installers", observed=owned, names=self.names(owned), **values)
        if unsure:
            self.add("installer_untold", "installers", names=self.names(unsure), **values)
        if not (owned or unsure):
            self.add("installers_ok", "installers", observed=list(owners), number=len(owners), **values)
