# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Kernel, headers and module as one set: which kernel boots next, whether it has the module, whether it may be booted.

Which kernel boots next is what the boot loader will do, so its own files are read: grubby where it is, else GRUB's
menu with its default and the choices that are saved beside it (grub.cfg, grubenv: "Simple configuration" and "The GRUB
environment block" in GNU GRUB's manual). Where nothing of a boot loader is in /boot, it is the newest kernel, as GRUB
takes it. Anything else is not known. A container has kernels only where their packages are installed in it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from . import apt, packages, pci, registry, versions
from .kernel_log import CONTAINER_FILE
from .parallel import command_of, run_all
from .runner import Runner
from .slot_names import natural
from .text import excerpt, same_version
from .vendors.base import FILE

PRESENT, ABSENT, UNKNOWN = "present", "absent", "unknown"
GRUB_DEFAULT = "/etc/default/grub"
# Debian and most others; those that also have GRUB 0.97.
_GRUB = ("/boot/grub", "/boot/grub2")
_LOADER_ENTRIES = "/boot/loader/entries/*.conf"
# A host keeps two or three kernels; each costs a command a name of the module.
_MOST_KERNELS = 6
EFI, EFI_VARIABLES = "/sys/firmware/efi", "/sys/firmware/efi/efivars"
SECURE_BOOT = f"{EFI_VARIABLES}/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
# What dkms signs with, by what its packages call it.
MOK = ("/var/lib/dkms/mok.pub", "/var/lib/shim-signed/mok/MOK.der")
# Drivers that hand a card to a virtual machine or to a program: neither a reboot nor a blacklist gives it back.
_HANDED_ON = ("vfio-pci", "pci-stub", "uio_pci_generic", "xen-pciback")


# ------------------------------------------------------------------------------------------------------------- parsers


@dataclass
class Entry:
    """One entry of GRUB's menu; ``entries`` are those of a submenu, ``kernel`` is the release that it boots."""

    title: str
    id: str = ""
    kernel: str = ""
    entries: list[Entry] | None = None


@dataclass
class Menu:
    """GRUB's menu, and its default as the file has it: a place, a title, an id, or ``${saved_entry}``."""

    entries: list[Entry] = field(default_factory=list)
    default: str = "0"
    listed_elsewhere: bool = False  # entries are files of their own (blscfg)


def parse_grub(text: str) -> Menu:
    """Return the menu of a grub.cfg."""
    menu = Menu()
    places: list[Entry | None] = []  # what is open: submenus, an entry, functions (None)
    for line in text.splitlines():
        words = line.strip()
        opened = re.match(r"(menuentry|submenu)\s+(?:'([^']*)'|\"([^\"]*)\"|(\S+))", words)
        if opened and words.endswith("{"):
            told = re.search(r"(?:\$\{?menuentry_id_option\}?|--id)[ =]+['\"]?([^'\"\s]+)", words)
            entry = Entry(opened[2] or opened[3] or opened[4] or "", told[1] if told else "")
            entry.entries = [] if opened[1] == "submenu" else None
            above = places[-1] if places else None
            (menu.entries if above is None or above.entries is None else above.entries).append(entry)
            places.append(entry)
        elif words.endswith("{") and words.startswith("function"):
            places.append(None)
        elif words == "}" and places:
            places.pop()
        elif words.split(" ")[0] == "blscfg":
            menu.listed_elsewhere = True
        else:
            loaded = re.match(r"linux(?:efi|16)?\s+(\S+)", words)
            if loaded and places and places[-1] is not None:
                places[-1].kernel = loaded[1].partition("vmlinuz-")[2]
            chosen = re.match(r"set\s+default=[\"']?([^\"']*)", words)
            if chosen and "next_entry" not in chosen[1]:
                menu.default = chosen[1].strip()
    return menu


def parse_environment(text: str) -> dict[str, str]:
    """Return the settings of a grubenv."""
    pairs = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
    return {name.strip(): value.strip() for name, found, value in pairs if found}


def entry_of(entries: Sequence[Entry], place: str) -> Entry | None:
    """Return the entry that ``place`` means, such as ``0``, ``1>2``, a title or an id; None where there is none."""
    first, _deeper, rest = place.partition(">")
    found = next((one for one in entries if first in (one.title, one.id)), None)
    if found is None and re.fullmatch(r"[0-9]{1,4}", first) and int(first) < len(entries):
        found = entries[int(first)]
    if found is None or found.entries is None:
        return None if rest else found
    return entry_of(found.entries, rest) if rest else None


def parse_dkms(output: str) -> list[dict]:
    """Return the rows of ``dkms status``: module, version, kernel (None where it is for none) and state.

    dkms 3 says ``nvidia/535.1, 6.1.0-1-amd64, x86_64: installed``, dkms 2 ``nvidia, 535.1, 6.1.0-1-amd64...``.
    """
    rows = []
    for line in output.splitlines():
        about, found, state = line.strip().partition(": ")
        words = [word.strip() for word in about.replace("/", ", ", 1).split(",")]
        if found and len(words) >= 2:
            kernel = words[2] if len(words) > 2 else None
            rows.append({"module": words[0], "version": words[1], "kernel": kernel, "state": state.strip()})
    return rows


def parse_modinfo(output: str) -> dict[str, str]:
    """Return the fields of ``modinfo``; of one that comes several times, the first."""
    told: dict[str, str] = {}
    for line in output.splitlines():
        name, found, value = line.partition(":")
        if found:
            told.setdefault(name.strip(), value.strip())
    return told


def releases(names: Iterable[str]) -> list[str]:
    """Return the kernels whose images are among packages: ``linux-image-6.1.0-50-amd64`` is 6.1.0-50-amd64."""
    found = (re.match(r"linux-image-(?:unsigned-)?(\d\S*?)(?:-unsigned)?$", name) for name in names)
    return list(dict.fromkeys(one[1] for one in found if one))


def builds_module(names: Iterable[str]) -> bool:
    """Tell whether packages bring a module that is built on the host."""
    return any("-dkms" in name for name in names)


# -------------------------------------------------------------------------------------------------------------- probes


def shared_kernel(runner: Runner) -> bool:
    """Tell whether this is a container."""
    return runner.read(CONTAINER_FILE) is not None


def in_boot(runner: Runner) -> list[str]:
    """Return the kernels in /boot, the newest first."""
    names = [path.partition("vmlinuz-")[2] for path in runner.glob("/boot/vmlinuz-*")]
    return sorted((name for name in names if name and "rescue" not in name), key=natural, reverse=True)


def kernels(runner: Runner, modules: Sequence[str], timeout_seconds: float, errors: list[str]) -> dict | None:
    """Return the running kernel, that of the next boot, and the file of the driver's module for each.

    None in a container without kernels. The running one is None in a container: it is the machine's.
    """
    there = in_boot(runner)
    shared = shared_kernel(runner)
    if shared and not there:
        return None
    running = None if shared else runner.read(versions.KERNEL_RELEASE)
    next_one = next_kernel(runner, there, timeout_seconds, errors)
    names = list(dict.fromkeys(one for one in (running, next_one, *there[:_MOST_KERNELS]) if one))
    found = module_files(runner, names, modules, timeout_seconds, errors)
    built = _dkms(runner, modules, timeout_seconds)
    return {"running": running or None, "next": next_one, "modules": found, "dkms": built}


def module_files(
    runner: Runner, names: Sequence[str], modules: Sequence[str], timeout_seconds: float, errors: list[str]
) -> dict[str, dict]:
    """Return by kernel whether the module has a file for it, of which version, and by whom it is signed.

    A file whose version magic names another kernel is none for this one: it would not be loaded.
    """
    program = runner.which("modinfo") or ""
    found: dict[str, dict] = {
        name: {"state": ABSENT if program else UNKNOWN, "version": None, "signer": None} for name in names
    }
    if not program:
        errors.append("modinfo is not installed")
        return found
    asked = [(kernel, [program, "-k", kernel, name]) for kernel in names for name in modules]
    for (kernel, _argv), result in zip(asked, run_all(runner, [argv for _kernel, argv in asked], timeout_seconds)):
        row = found[kernel]
        if result.rc == 0 and row["state"] != PRESENT:
            told = parse_modinfo(result.stdout)
            magic = told.get("vermagic", "").split(" ")[0]
            if magic and magic != kernel:
                errors.append(
                    f"{told.get('filename', '?')} was built for kernel {magic} and lies with those of {kernel}"
                )
                continue
            found[kernel] = {"state": PRESENT, "version": told.get("version"), "signer": told.get("signer")}
        elif result.rc != 0 and "not found" not in result.stderr:
            errors.append(f"{command_of(result)}: {excerpt(result.stderr, limit=200) or 'no answer'}")
            if row["state"] == ABSENT:
                row["state"] = UNKNOWN
    return found


def _dkms(runner: Runner, modules: Sequence[str], timeout_seconds: float) -> list[dict]:
    """Return what dkms has of the driver. Only words beside the files, which are the truth: nothing is missed."""
    program = runner.which("dkms")
    rows = parse_dkms(runner.run([program, "status"], timeout_seconds).stdout) if program else []
    return [row for row in rows if row["module"] in modules]


def next_kernel(runner: Runner, there: Sequence[str], timeout_seconds: float, errors: list[str]) -> str | None:
    """Return the kernel that boots next, None when it is not known; ``there`` are those in /boot, the newest first."""
    grubby = runner.which("grubby")
    if grubby:
        result = runner.run([grubby, "--default-kernel"], timeout_seconds)
        if result.rc == 0 and "vmlinuz-" in result.stdout:
            return result.stdout.strip().partition("vmlinuz-")[2]
    for folder in _GRUB:
        text = runner.read(f"{folder}/grub.cfg")
        if text is not None:
            return _of_grub(folder, text, runner.read(f"{folder}/grubenv") or "", there, errors)
    if runner.glob(_LOADER_ENTRIES):
        errors.append("/boot/loader/entries: which of these entries boots next is the boot loader's choice")
        return None
    settings = runner.read(GRUB_DEFAULT) or ""
    chosen = re.search(r"(?m)^\s*GRUB_DEFAULT=[\"']?([^\"'\n]*)", settings)
    if chosen and chosen[1].strip() not in ("", "0"):
        errors.append(f"{GRUB_DEFAULT} has GRUB_DEFAULT={chosen[1]}: the kernel of the next boot is not the newest one")
        return None
    return there[0] if there else None


def _of_grub(folder: str, text: str, environment: str, there: Sequence[str], errors: list[str]) -> str | None:
    menu, saved = parse_grub(text), parse_environment(environment)
    place = saved.get("next_entry") or menu.default
    if "saved_entry" in place:
        place = saved.get("saved_entry") or "0"
    entry = entry_of(menu.entries, place)
    if menu.listed_elsewhere or entry is None or not entry.kernel:
        errors.append(f"{folder}/grub.cfg: the default {place!r} names no entry with a kernel")
        return None
    if entry.kernel not in there:
        errors.append(f"{folder}/grub.cfg boots {entry.kernel} next, which is not in /boot")
        return None
    return entry.kernel


def secure_boot(runner: Runner) -> bool | None:
    """Tell whether the firmware lets signed kernels only boot, and these signed modules only; None: not known."""
    if not runner.glob(EFI):
        return False
    value = runner.read_bytes(SECURE_BOOT)
    if value is not None and len(value) == 5:
        return value[4] == 1  # four bytes of attributes go before: kernel, Documentation/filesystems/efivarfs.rst
    # A firmware that has other variables and not this one knows no Secure Boot.
    return False if value is None and runner.glob(f"{EFI_VARIABLES}/*") else None


def unsigned(runner: Runner, timeout_seconds: float) -> str:
    """Return why a module that dkms builds would not be loaded, "" where it would.

    dkms makes a key of its own and signs with it, but only what a person has enrolled at the console is trusted.
    """
    on = secure_boot(runner)
    if on is False:
        return ""
    if on is None:
        return "whether Secure Boot is on could not be told; it refuses modules that are not signed"
    key = next((path for path in MOK if runner.glob(path)), "")
    if not key:
        return (
            "Secure Boot is on and dkms has no key yet: install dkms, run dkms generate_mok and mokutil --import "
            f"{MOK[0]}, and enrol the key at the console at the next boot"
        )
    program = runner.which("mokutil")
    if program is None:
        return f"Secure Boot is on, and without mokutil nothing tells whether {key} is enrolled"
    result = runner.run([program, "--test-key", key], timeout_seconds)
    said = f"{result.stdout}\n{result.stderr}"
    # Its exit status says the opposite in some releases; the words do not.
    if re.search(r"is already enrolled", said):
        return ""
    if re.search(r"is not enrolled", said):
        return f"Secure Boot is on and the key of dkms is not enrolled: mokutil --import {key}, reboot, enrol it"
    return f"Secure Boot is on, and whether {key} is enrolled could not be told: {excerpt(said, limit=200)}".rstrip(
        ": "
    )


def taken(runner: Runner, vendor: str) -> dict[str, list[str]]:
    """Return the cards that another driver has, by its name: those that leave them, and those that hand them on."""
    known = registry.VENDORS[vendor]
    wrong = (*known.stack.wrong_modules, *_HANDED_ON)
    found: dict[str, list[str]] = {}
    for one in pci.functions(runner, detailed=known.owns):
        if one.driver in wrong and known.owns(one):
            found.setdefault(str(one.driver), []).append(one.address)
    return found


def metas(runner: Runner, names: Collection[str], timeout_seconds: float, errors: list[str]) -> dict[str, dict]:
    """Return the installed packages that bring newer kernels with them (linux-image-amd64, linux-headers-generic).

    By name: their version and the kernels that they ask for. Only where ``names`` have a kernel.
    """
    if not releases(names):
        return {}
    program = runner.which("dpkg-query") or "dpkg-query"
    form = "${db:Status-Status}\\t${Package}\\t${Version}\\t${Depends}\\n"
    result = runner.run([program, "-W", f"-f={form}", "linux-*"], timeout_seconds)
    problem = apt.problem_of(result)
    if problem:
        errors.append(problem)
    found = {}
    for line in result.stdout.splitlines():
        status, name, version, depends = (line.split("\t") + [""] * 4)[:4]
        asked = re.findall(r"(?:^|[,|]\s*)linux-(?:image|headers)-(?:unsigned-)?(\d[^\s,(|]*)", depends)
        own = re.match(r"linux-(?:image|headers|kbuild|compiler)\S*-\d", name)
        if status == "installed" and name not in names and asked and not own:
            found[name] = {"version": version, "kernels": list(dict.fromkeys(asked))}
    return found


# --------------------------------------------------------------------------------------------------------------- plan


@dataclass
class Kernels:
    """What is to be done so that a pinned kernel boots next.

    ``keep`` are packages that would bring a newer one, with their versions; ``remove`` those of kernels that would boot
    in its place, with their versions; ``refused`` says what must be settled first.
    """

    keep: dict[str, str] = field(default_factory=dict)
    remove: dict[str, str] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)


def plan(
    runner: Runner,
    names: Collection[str],
    installed: Mapping[str, apt.Package],
    removal_allowed: bool,
    timeout_seconds: float,
) -> Kernels:
    """Return what has to be done to kernels besides the declared ones; nothing where none is declared."""
    made = Kernels()
    pinned = releases(names)
    if not pinned:
        return made
    there = in_boot(runner)
    running = None if shared_kernel(runner) else runner.read(versions.KERNEL_RELEASE)
    errors: list[str] = []
    next_one = next_kernel(runner, there, timeout_seconds, errors)
    wanted = max(pinned, key=natural)
    newer = [one for one in there if natural(one) > natural(wanted) and one not in pinned]
    # One that is not there yet becomes the default only as the newest.
    settled = next_one in pinned and all(one in there for one in pinned)
    for kernel in [] if settled else newer:
        package = next((one for one in installed if releases([one]) == [kernel]), None)
        if package is None or kernel == running or installed[package].held:
            why = "is running" if kernel == running else "is held" if package else "is of no package"
            made.refused.append(f"kernel {kernel} would boot instead of the pinned {wanted}, and {why}")
        elif removal_allowed:
            made.remove[package] = installed[package].version
        else:
            made.refused.append(
                f"kernel {kernel} would boot instead of the pinned {wanted}: declare it, remove {package}, or set "
                "driver_kernel_removal_allowed"
            )
    if next_one is None and there:
        made.refused.append(f"which kernel boots next is not known: {'; '.join(errors)}")
    gone = set(releases(made.remove))
    about = metas(runner, names, timeout_seconds, made.refused)
    made.keep = {name: one["version"] for name, one in about.items() if not gone.intersection(one["kernels"])}
    return made


def missing_headers(runner: Runner, coming: Collection[str], names: Collection[str] = ()) -> list[str]:
    """Return the kernels that may boot next and have no headers to build a module with; none where nothing is built.

    ``coming`` are packages to be installed, ``names`` those that are declared: where a kernel is among them, it is the
    one that boots next.
    """
    if not builds_module([*coming, *names]):
        return []
    wanted = releases(names)
    if not wanted:
        shared = shared_kernel(runner)
        there = in_boot(runner)
        running = None if shared else runner.read(versions.KERNEL_RELEASE)
        newest = sorted([*there, *releases(coming)], key=natural)[-1:]
        told = next_kernel(runner, there, 10, [])
        wanted = list(dict.fromkeys(one for one in (running, told, *newest) if one))
    return [
        one for one in wanted if f"linux-headers-{one}" not in coming and not runner.glob(f"/lib/modules/{one}/build")
    ]


# -------------------------------------------------------------------------------------------------------------- reboot


def observe(runner: Runner, vendor: str, timeout_seconds: float) -> dict:
    """Return what is loaded, what runs, and what the next boot would load; see ``driver_boot_info``."""
    errors: list[str] = []
    known = registry.VENDORS[vendor]
    modules = known.stack.modules or known.kernel_modules
    sources = [one for one in known.versions if one.component == "driver_kernel" and one.how == FILE]
    rows = versions.of_vendor(runner, vendor, sources, [], packages.Installed(), errors, timeout_seconds)
    names = known.stack.modules[:1] or known.kernel_modules
    return {
        "shared_kernel": shared_kernel(runner),
        "loaded": any(runner.glob(f"/sys/module/{name}") for name in names) or any(row["version"] for row in rows),
        "version": next((row["version"] for row in rows if row["version"]), None),
        "taken": taken(runner, vendor),
        "kernels": kernels(runner, modules, timeout_seconds, errors),
        "errors": errors,
    }


def decide(seen: Mapping, version: str, names: Collection[str]) -> tuple[list[str], list[str]]:
    """Return why a reboot is needed, and why it must not be done, from what ``observe`` returned.

    ``version`` is the declared one of the driver, ``names`` are the packages of the set.
    """
    needed, refused = [], []
    pinned, loaded = releases(names), seen["version"]
    about: Mapping = seen["kernels"] or {}
    running, next_one = about.get("running"), about.get("next")
    shared = seen["shared_kernel"]
    if not seen["loaded"] and not shared:
        needed.append("the module of the driver is not loaded")
    elif loaded and version and not same_version(loaded, version):
        needed.append(f"module {loaded} is loaded, {version} is declared")
    needed += [f"{name} has {', '.join(cards)}" for name, cards in seen["taken"].items()]
    if pinned and running and running not in pinned:
        needed.append(f"kernel {running} runs, {' or '.join(pinned)} is declared")
    if not needed:
        return [], []
    if shared:
        return needed, ["a container has no kernel of its own to boot"]
    row = about.get("modules", {}).get(next_one, {})
    if next_one is None:
        refused.append(f"which kernel boots next is not known: {'; '.join(seen['errors']) or 'none is in /boot'}")
    elif pinned and next_one not in pinned:
        refused.append(f"kernel {next_one} boots next, {' or '.join(pinned)} is declared")
    elif row.get("state") != PRESENT:
        refused.append(f"kernel {next_one} boots next and has no module of the driver{dkms_says(about)}")
    elif version and not same_version(row.get("version"), version):
        refused.append(f"kernel {next_one} boots next, its module is {row.get('version')}, {version} is declared")
    refused += [f"{name} hands its cards on" for name in seen["taken"] if name in _HANDED_ON]
    return needed, refused


def unbuilt(seen: Mapping, names: Collection[str]) -> list[str]:
    """Return the kernels for which the module is to be built: those declared, or that of the next boot, without one."""
    about: Mapping = seen["kernels"] or {}
    if not builds_module(names):
        return []
    wanted = releases(names) or [str(about.get("next"))]
    modules = about.get("modules") or {}
    return [one for one in wanted if one in modules and modules[one]["state"] == ABSENT]


def dkms_says(about: Mapping) -> str:
    """Return in words what dkms has of the module for the kernel of the next boot."""
    rows = [row for row in about.get("dkms") or [] if row["kernel"] in (None, about.get("next"))]
    return "; dkms: " + ", ".join(f"{row['module']}/{row['version']} {row['state']}" for row in rows) if rows else ""
