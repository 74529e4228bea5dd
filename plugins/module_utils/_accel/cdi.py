# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Container Device Interface (CDI): the file that tells a container engine what a card consists of.

Made from our own list of devices where the vendor has no generator, and read and judged whoever made it. The rules of
names and versions are those of the CDI specification (cncf-tags/container-device-interface, SPEC.md). Version 0.5.0 is
written: the podman of Debian 12 (4.3) refuses a newer one, and a name that begins with a digit needs it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from . import plain_yaml
from .model import dict_of, dicts_of
from .slot_names import natural
from .text import same_version, whole_characters
from .vendors.base import ContainerAccess, Unreadable

VERSION = "0.5.0"
# In the order in which engines read them: a device of a later folder hides one of the same name of an earlier.
FOLDERS = ("/etc/cdi", "/var/run/cdi")
# What engines read of these folders.
SUFFIXES = (".json", ".yaml")
# How a file that this collection wrote is called, and where it keeps what nothing else in it tells.
OWN_PREFIX = "accel-"
DRIVER_ENV = "ACCEL_DRIVER_VERSION"
# Where the linker looks on Debian, Ubuntu, Red Hat and openEuler.
LIBRARY_FOLDERS = ("/usr/lib/*-linux-gnu", "/usr/lib64", "/lib64")
_MOUNT_OPTIONS = ("ro", "nosuid", "nodev", "bind")

_KIND = re.compile(r"([A-Za-z][A-Za-z0-9_.-]{0,251}[A-Za-z0-9])/([A-Za-z](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.:-]*[A-Za-z0-9])?")
_VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})\.(\d{1,4})")
_UUID = re.compile(r"(?:[A-Za-z]+-)?[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class Broken(Unreadable):
    """A file that no engine takes either."""


# ------------------------------------------------------------------------------------------------------------ making


def valid_kind(kind: str) -> bool:
    """Tell whether a kind is ``vendor.com/class`` as CDI 0.5.0 wants it: no dot in the class (that came with 0.6.0)."""
    found = _KIND.fullmatch(kind)
    return found is not None and "." not in found[2]


def valid_name(name: str) -> bool:
    """Tell whether a device may have this name."""
    return bool(_NAME.fullmatch(name))


def slot_name(label: object) -> str | None:
    """Return the name of a slot as CDI takes it: "PCIe Slot 3" is PCIe-Slot-3, "3" is slot-3 (3 is a card's number)."""
    word = re.sub(r"[^A-Za-z0-9_.:-]+", "-", str(label or "")).strip("_.:-")
    if not word:
        return None
    return word if word[0].isalpha() and word != "all" else f"slot-{word}"


def identity_name(device: Mapping) -> str | None:
    """Return the name that goes with the card when it moves: UUID, else a serial that is its own; None without."""
    name = device.get("uuid") or (device.get("serial") if device.get("identity") == "serial" else None)
    return str(name) if name and valid_name(str(name)) else None


def names_of(devices: Sequence[Mapping]) -> tuple[dict[str, list[str]], list[str]]:
    """Return the device nodes by name (number, identity, slot, ``all``), and what was left out, in words.

    A slot that holds a board with several devices gives all of them: a slot is a place. Any other name that would mean
    two cards is given to neither.
    """
    left_out: list[str] = []
    meant: dict[str, list[tuple[tuple[str, object], list[str]]]] = {}
    usable: list[tuple[Mapping, list[str]]] = []
    for device in devices:
        nodes = [str(node) for node in device.get("device_nodes") or []]
        if nodes:
            usable.append((device, nodes))
        else:
            left_out.append(f"{_title(device)} has no device node")
    for number, (device, nodes) in enumerate(usable):
        label = dict_of(device.get("slot")).get("label")
        index = device.get("index")
        named: dict[str | None, tuple[str, object]] = {None if index is None else str(index): ("index", number)}
        named[identity_name(device)] = ("identity", number)
        named.setdefault(slot_name(label), ("slot", label))
        for name, owner in named.items():
            if name is not None:
                meant.setdefault(name, []).append((owner, nodes))
    found = {}
    for name in sorted(meant, key=natural):
        owners = {owner for owner, _nodes in meant[name]}
        if len(owners) > 1:
            left_out.append(f"the name {name} would mean several cards")
            continue
        found[name] = sorted({node for _owner, nodes in meant[name] for node in nodes}, key=natural)
    if usable:
        found["all"] = sorted({node for _device, nodes in usable for node in nodes}, key=natural)
    return found, left_out


def _title(device: Mapping) -> str:
    return str(device.get("pci_address") or device.get("uuid") or device.get("serial") or device.get("index"))


def build(
    kind: str,
    devices: Sequence[Mapping],
    control_nodes: Iterable[str] = (),
    mounts: Iterable[tuple[str, str]] = (),
    driver_version: str | None = None,
) -> tuple[dict, list[str]]:
    """Return the specification of the devices of ``accelerator_info``, and what was left out of it, in words.

    ``mounts`` are paths on the host and in the container. ValueError for a kind that CDI does not take and where there
    is no device at all: a file without one is refused by every engine.
    """
    if not valid_kind(kind):
        raise ValueError(f"{kind!r} is no CDI kind: it must look like vendor.com/class")
    named, left_out = names_of(devices)
    if not named:
        raise ValueError("; ".join(["there is no card with a device node", *left_out]))
    shared: dict = {}
    if driver_version:
        shared["env"] = [f"{DRIVER_ENV}={driver_version}"]
    nodes = sorted(set(control_nodes), key=natural)
    if nodes:
        shared["deviceNodes"] = [_node(path) for path in nodes]
    pairs = sorted(set(mounts), key=lambda pair: (pair[1], pair[0]))
    if pairs:
        shared["mounts"] = [
            {"hostPath": source, "containerPath": target, "options": list(_MOUNT_OPTIONS)} for source, target in pairs
        ]
    listed = [{"name": name, "containerEdits": {"deviceNodes": [_node(p) for p in named[name]]}} for name in named]
    spec: dict = {"cdiVersion": VERSION, "kind": kind, "devices": listed}
    if shared:
        spec["containerEdits"] = shared
    return spec, left_out


def _node(path: str) -> dict:
    # Without "m": making a node is no part of using one.
    return {"path": path, "permissions": "rw"}


def text_of(spec: Mapping) -> str:
    """Return the one text of a specification."""
    return json.dumps(spec, indent=2, ensure_ascii=False) + "\n"


def find(runner, access: ContainerAccess) -> tuple[list[str], list[tuple[str, str]]]:
    """Return what this host has of the nodes and files that a container needs: nodes, and paths here and there.

    A library is mounted under the name that programs ask for (its soname) too: then the container needs no hook that
    makes links or runs the linker's configuration.
    """
    nodes = [path for pattern in access.control_nodes for path in runner.glob(pattern)]
    mounts = {}
    for pattern in [f"{folder}/{name}" for folder in LIBRARY_FOLDERS for name in access.libraries]:
        for path in runner.glob(pattern):
            real = runner.realpath(path)
            if exists(runner, real):  # a link may lead nowhere
                mounts[path] = real
                mounts[f"{path.rpartition('/')[0]}/{real.rpartition('/')[2]}"] = real
    for path in [path for pattern in access.paths for path in runner.glob(pattern)]:
        real = runner.realpath(path)
        if exists(runner, real):
            mounts[path] = real
    # Where /lib64 is /usr/lib64, one of them is enough.
    doubles = {path for path in mounts if path.startswith("/lib64/") and "/usr" + path in mounts}
    return sorted(set(nodes), key=natural), sorted((mounts[path], path) for path in mounts if path not in doubles)


def exists(runner, path: str) -> bool:
    """Tell whether there is something of that name; a link that leads nowhere counts as well."""
    return bool(runner.glob(re.sub(r"([*?[])", r"[\1]", path)))


# ----------------------------------------------------------------------------------------------------------- reading


def read(output: str) -> dict:
    """Return what a CDI file, JSON or YAML, says.

    ``{"version", "kind", "devices": [{"name", "nodes"}], "nodes", "mounts", "env"}``: nodes and mounts are paths on
    the host. Broken for what no engine takes, Unreadable for what only this does not read; both name the line where
    there is one.
    """
    spec = dict_of(_document(output))
    if not spec:
        raise Broken("it is no mapping")
    version, kind = str(spec.get("cdiVersion") or ""), str(spec.get("kind") or "")
    if not _VERSION.fullmatch(version):
        raise Broken(f"cdiVersion {version!r} is no version")
    if not _KIND.fullmatch(kind):
        raise Broken(f"kind {kind!r} is none: it must look like vendor.com/class")
    devices: list[dict] = []
    for entry in dicts_of(spec.get("devices")):
        name = str(entry.get("name") or "")
        if not valid_name(name):
            raise Broken(f"{name!r} is no name of a device")
        if any(one["name"] == name for one in devices):
            raise Broken(f"the device {name} is defined twice")
        devices.append({"name": name, **_edits(entry.get("containerEdits"))})
    if not devices:
        raise Broken("it defines no device")
    return {"version": version, "kind": kind, "devices": devices, **_edits(spec.get("containerEdits"))}


def _document(output: str) -> object:
    if not output.lstrip().startswith("{"):
        return plain_yaml.parse(output)
    try:
        return json.loads(whole_characters(output))
    except json.JSONDecodeError as exc:
        # A file that ends too soon is no YAML either; engines take more than JSON where this is not the reason.
        ends = exc.pos >= len(output.rstrip()) or exc.msg.startswith("Unterminated string")
        kind = Broken if ends else Unreadable
        raise kind(f"line {exc.lineno}: not JSON ({exc.msg})") from None
    except (ValueError, RecursionError) as exc:
        raise Unreadable(f"not JSON ({type(exc).__name__})") from None


def _edits(value: object) -> dict:
    edits = dict_of(value)
    nodes = [str(one.get("hostPath") or one.get("path") or "") for one in dicts_of(edits.get("deviceNodes"))]
    mounts = [str(one.get("hostPath") or "") for one in dicts_of(edits.get("mounts"))]
    env = edits.get("env")
    return {
        "nodes": [path for path in nodes if path],
        "mounts": [path for path in mounts if path],
        "env": [str(one) for one in env] if isinstance(env, list) else [],
    }


def observe(runner) -> dict:
    """Return the CDI files of this host.

    ``{"files": [{"path", "folder", "state": ok | broken | unreadable, "problem", "mode", "owner", "spec"}],
    "folders": [{"path", "mode", "owner"}], "missing": [paths that files name and this host lacks]}``. ``mode`` is as
    text, such as "0644"; ``spec`` is what ``read`` returns, None where it can't be read.
    """
    folders: dict[str, str] = {}
    for folder in FOLDERS:
        if runner.glob(folder):
            folders.setdefault(runner.realpath(folder), folder)
    files = []
    for folder in folders.values():
        for path in runner.glob(f"{folder}/*"):
            if path.endswith(SUFFIXES):
                files.append({"path": path, "folder": folder, **_access(runner, path), **_content(runner, path)})
    named = {path for one in files if one["spec"] for path in paths_of(one["spec"])}
    return {
        "files": files,
        "folders": [{"path": folder, **_access(runner, folder)} for folder in folders.values()],
        "missing": sorted(path for path in named if not exists(runner, runner.realpath(path))),
    }


def _access(runner, path: str) -> dict:
    told = runner.access(path)
    return {"mode": None if told is None else f"{told[0]:04o}", "owner": None if told is None else told[1]}


def _content(runner, path: str) -> dict:
    text = runner.read(path)
    if text is None:
        return {"state": "unreadable", "problem": "it can't be read", "spec": None}
    try:
        return {"state": "ok", "problem": None, "spec": read(text)}
    except Unreadable as exc:
        return {"state": "broken" if isinstance(exc, Broken) else "unreadable", "problem": str(exc), "spec": None}


def paths_of(spec: Mapping) -> list[str]:
    """Return all paths of the host that a specification names."""
    parts = [spec, *dicts_of(spec.get("devices"))]
    return [str(path) for part in parts for path in [*(part.get("nodes") or []), *(part.get("mounts") or [])]]


def driver_versions(spec: Mapping, access: ContainerAccess) -> list[str]:
    """Return the versions of the driver that a file was made for, as its libraries or its own note tell them."""
    told = [one.partition("=")[2] for one in spec.get("env") or [] if str(one).startswith(DRIVER_ENV + "=")]
    if access.library_version:
        found = (re.search(access.library_version, path) for path in paths_of(spec))
        told += [one[1] for one in found if one]
    return sorted(set(told), key=natural)


def same_devices(spec: Mapping, other: Mapping) -> list[str]:
    """Return the names that two specifications both define."""
    if spec.get("kind") != other.get("kind"):
        return []
    names = {str(one.get("name")) for one in dicts_of(other.get("devices"))}
    return [str(one.get("name")) for one in dicts_of(spec.get("devices")) if str(one.get("name")) in names]


# ----------------------------------------------------------------------------------------------------------- judging

# What explains the others comes first. "unreadable" is unknown, "shadowed" a warning.
ORDER = (
    "absent",
    "broken",
    "conflict",
    "permissions",
    "version",
    "driver_version",
    "replaced",
    "renumbered",
    "missing_node",
    "missing_library",
    "lacking",
    "unreadable",
    "shadowed",
)


def problems(
    seen: Mapping, observation: Mapping, kind: str, access: ContainerAccess, engine: Mapping
) -> list[tuple[str, str]]:
    """Return what is wrong with the CDI files of a host as (cause, words), the most telling first.

    ``seen`` is what ``observe`` returned, ``observation`` what ``accelerator_info`` returned, ``engine`` the ``engine``
    of ``container_info``.
    """
    found: list[tuple[str, str]] = []
    files = dicts_of(seen.get("files"))
    for one in files:
        if one.get("state") != "ok":
            cause = "broken" if one.get("state") == "broken" else "unreadable"
            found.append((cause, f"{one.get('path')}: {one.get('problem')}"))
    found += [("permissions", words) for words in _permissions(seen)]
    own = [one for one in files if one.get("state") == "ok" and dict_of(one.get("spec")).get("kind") == kind]
    if not own:
        unread = any(cause in ("unreadable", "broken") for cause, _words in found)
        return _sorted(found if unread else [*found, ("absent", kind)])
    hidden, between = _doubles(own)
    found += between
    cards = [one for one in dicts_of(observation.get("devices")) if one.get("device_nodes")]
    # The name of a card that does not answer is no name of a card that was taken out.
    silent = dicts_of(observation.get("unanswered"))
    drivers = [one for one in dicts_of(observation.get("drivers")) if _owns(one, cards)]
    used = [one for one in own if one["path"] not in hidden]
    for one in used:
        found += _file_problems(one, cards, not silent, drivers, access, set(seen.get("missing") or []), engine)
    offered = {path for one in used for device in one["spec"]["devices"] for path in device["nodes"]}
    for card in cards:
        lacking = [path for path in card["device_nodes"] if path not in offered]
        if lacking:
            found.append(("lacking", f"{_title(card)} ({', '.join(lacking)})"))
    return _sorted(found)


def _owns(driver: Mapping, cards: Sequence[Mapping]) -> bool:
    return not cards or any(card.get("vendor") == driver.get("vendor") for card in cards)


def _sorted(found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return sorted(dict.fromkeys(found), key=lambda one: ORDER.index(one[0]))


def _permissions(seen: Mapping) -> list[str]:
    """Return who else can change what containers get: that is as good as being root on the host."""
    words = []
    for one in [*dicts_of(seen.get("folders")), *dicts_of(seen.get("files"))]:
        mode, owner = one.get("mode"), one.get("owner")
        if mode is None:
            continue
        bits = int(str(mode), 8)
        if owner not in (0, None):
            words.append(f"{one.get('path')}: its owner is the user {owner}, not root")
        elif bits & 0o022:
            words.append(f"{one.get('path')}: its mode {mode} lets others write")
        elif not bits & 0o004:
            words.append(f"{one.get('path')}: its mode {mode} hides it from all but root")
    return words


def _doubles(files: Sequence[Mapping]) -> tuple[set[str], list[tuple[str, str]]]:
    """Return the files that another folder hides whole, and what is said of devices that two files define."""
    hidden, found = set(), []
    for number, one in enumerate(files):
        for other in files[number + 1 :]:
            names = same_devices(one["spec"], other["spec"])
            if not names:
                continue
            told = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
            if one["folder"] == other["folder"]:
                found.append(("conflict", f"{one['path']} and {other['path']}: {told}"))
                continue
            found.append(("shadowed", f"{other['path']} hides {one['path']}: {told}"))
            if len(names) == len(one["spec"]["devices"]):
                hidden.add(one["path"])
    return hidden, found


def _file_problems(
    file: Mapping,
    cards: Sequence[Mapping],
    all_told: bool,
    drivers: Sequence[Mapping],
    access: ContainerAccess,
    missing: set[str],
    engine: Mapping,
) -> list[tuple[str, str]]:
    spec, path = file["spec"], file["path"]
    found = []
    if _number(spec["version"]) > (newest_for(engine) or _number(spec["version"])):
        found.append(("version", f"{path}: {spec['version']} ({engine.get('name')} {engine.get('version')})"))
    running = [str(one["kernel_version"]) for one in drivers if one.get("kernel_version")]
    running = running or sorted({str(one["driver_version"]) for one in cards if one.get("driver_version")})
    for version in driver_versions(spec, access):
        if running and not any(same_version(version, one) for one in running):
            found.append(("driver_version", f"{path}: {version}, {', '.join(running)}"))
    gone = [one for one in dict.fromkeys(paths_of(spec)) if one in missing]
    for one in gone:
        found.append(("missing_node" if one.startswith("/dev/") else "missing_library", f"{path}: {one}"))
    expected, _left_out = names_of(cards)
    whole = {node for card in cards for node in card["device_nodes"]}
    identities = {identity_name(card) for card in cards}
    ours = path.rpartition("/")[2].startswith(OWN_PREFIX)
    for device in spec["devices"]:
        name, nodes = device["name"], set(device["nodes"])
        if name not in expected:
            # A number or a partition may be the vendor's own way to count; a UUID is one card.
            if all_told and cards and (ours or _UUID.fullmatch(name)) and not name.isdigit():
                found.append(("replaced", f"{path}: {name}"))
        elif (ours or name in identities) and name != "all" and nodes & whole != set(expected[name]):
            found.append(("renumbered", f"{path}: {name} -> {', '.join(sorted(nodes & whole)) or '-'}"))
    return found


def _number(version: object) -> tuple[int, ...]:
    found = _VERSION.match(str(version) + (".0" if str(version).count(".") == 1 else ""))
    return tuple(int(part) for part in found.groups()) if found else (0,)


def newest_for(engine: Mapping) -> tuple[int, ...] | None:
    """Return the newest CDI version that an engine takes, None where that is not known.

    Tried: podman 4.3.1 (Debian 12) refuses 0.6.0. Docker reads none before version 25 (its release notes).
    """
    if engine.get("name") == "docker" and engine.get("version") and _number(engine["version"]) < (25, 0, 0):
        return (0,)
    if engine.get("name") == "podman" and engine.get("version") and _number(engine["version"]) < (4, 4, 0):
        return _number(VERSION)
    return None
