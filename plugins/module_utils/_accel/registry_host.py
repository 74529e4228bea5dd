# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""The host that the registry of images runs on: may it be set up there, and is it as it should be.

Two services share one storage: one that only reads, for the nodes, and one that writes, for whoever builds images.
Whether nodes reach it is not told here but by each of them (``container.registry``).
"""

from __future__ import annotations

import json
import posixpath
import re
import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from . import images, judge, registries
from .model import dict_of, dicts_of, to_float
from .text import excerpt

UNITS = {"pull": "accel-registry@pull.service", "push": "accel-registry@push.service"}
COLLECTOR = "accel-registry-gc.service"
GIB = 1 << 30
_PROPERTIES = "Id,LoadState,ActiveState,SubState,Result,MainPID"


@dataclass(frozen=True)
class Wanted:
    """What is declared of the registry: addresses as ``host:port``, folders, room in GiB."""

    address: str
    listen_address: str = ""
    push_address: str = ""
    storage_dir: str = "/var/lib/docker-registry"
    free_gib: float = 0
    ca_certificate: str = ""
    ca_key: str = ""


# ---------------------------------------------------------------------------------------------------------- reading


def observe(runner, wanted: Wanted, timeout_seconds: float = 20) -> dict:
    """Read what matters before the registry is set up, and after; see ``registry_info`` for the shape."""
    host, port = images.split_address(wanted.address)
    named = runner.run(["getent", "ahosts", host], timeout_seconds)
    own = read_own_addresses(runner.run(["ip", "-json", "address"], timeout_seconds).stdout)
    names = sorted({line.split()[0] for line in named.stdout.splitlines() if line.strip()})
    listen = wanted.listen_address or next((one for one in names if one in own and not _is_loopback(one)), None)
    units = read_units(
        runner.run(
            ["systemctl", "show", f"--property={_PROPERTIES}", *UNITS.values(), COLLECTOR], timeout_seconds
        ).stdout
    )
    mine = {units.get(unit, {}).get("pid") for unit in UNITS.values()} - {0, None}
    table = runner.run(["ss", "-Hltnp"], timeout_seconds)
    places = {"pull": f"{listen}:{port}" if listen else None, "push": wanted.push_address or None}
    return {
        "installed": runner.which("docker-registry") is not None,
        "names": names,
        "own_addresses": own,
        "listen_address": listen,
        "ports": None
        if table.rc != 0
        else [{**row, "own": row["pid"] in mine} for row in read_listeners(table.stdout)],
        "places": places,
        "units": units,
        "storage": _storage(runner, wanted.storage_dir, timeout_seconds),
        "ca": _authority(runner, wanted, timeout_seconds),
    }


def read_own_addresses(output: str) -> list[str]:
    """Return the addresses of ``ip -json address``."""
    try:
        body = json.loads(output)
    except (ValueError, RecursionError):
        return []
    rows = [row for link in dicts_of(body) for row in dicts_of(link.get("addr_info"))]
    return sorted({str(row["local"]) for row in rows if row.get("local")})


def read_units(output: str) -> dict[str, dict]:
    """Return units of ``systemctl show`` by their name: load, active, sub, result, pid."""
    found = {}
    for block in output.split("\n\n"):
        told = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        if told.get("Id"):
            number = told.get("MainPID", "")
            found[told["Id"]] = {
                "load": told.get("LoadState"),
                "active": told.get("ActiveState"),
                "sub": told.get("SubState"),
                "result": told.get("Result"),
                "pid": int(number) if re.fullmatch("[0-9]{1,10}", number) else 0,
            }
    return found


def read_listeners(output: str) -> list[dict]:
    """Return who listens, of ``ss -Hltnp``: address, port, process (None where it is not told), pid."""
    found = []
    for line in output.splitlines():
        words = line.split()
        if len(words) < 5:
            continue
        address, _colon, port = words[3].rpartition(":")
        who = re.search(r'\(\("([^"]*)",pid=(\d+)', line, re.ASCII)
        found.append(
            {
                "address": address.partition("%")[0].strip("[]"),
                "port": port,
                "process": who[1] if who else None,
                "pid": int(who[2]) if who else None,
            }
        )
    return found


def _is_loopback(address: str) -> bool:
    return address.startswith("127.") or address == "::1"


def _storage(runner, path: str, timeout_seconds: float) -> dict:
    """Return room and use of a storage; what could not be read is None."""
    there = path
    while there != "/" and not runner.glob(there):
        there = posixpath.dirname(there)
    room = runner.run(["df", "-B1", "--output=size,avail", there], timeout_seconds)
    sizes = re.findall(r"^\s*(\d{1,20})\s+(\d{1,20})\s*$", room.stdout, re.MULTILINE | re.ASCII)
    told: dict = {"path": path, "size_bytes": None, "free_bytes": None, "used_bytes": None, "foreign": False}
    if len(sizes) == 1:
        told["size_bytes"], told["free_bytes"] = int(sizes[0][0]), int(sizes[0][1])
    if there != path:
        return {**told, "used_bytes": 0}
    content = [posixpath.basename(one) for one in runner.glob(path + "/*")]
    told["foreign"] = bool(set(content) - {"docker", "lost+found"})
    used = runner.run(["du", "-sB1", path], timeout_seconds)
    number = re.match(r"(\d{1,20})\s", used.stdout, re.ASCII)
    if number and used.rc == 0:
        told["used_bytes"] = int(number[1])
    return told


def _authority(runner, wanted: Wanted, timeout_seconds: float) -> dict:
    """Return the state of the site's CA: absent, ok, incomplete (one file alone), mismatch or unreadable."""
    told: dict = {"state": "absent", "problem": None, "ends": None}
    if not wanted.ca_certificate:
        return told
    there = [path for path in (wanted.ca_certificate, wanted.ca_key) if runner.glob(path)]
    if not there:
        return told
    if len(there) == 1:
        return {**told, "state": "incomplete", "problem": f"there is {there[0]} alone"}
    certificate = runner.run(
        ["openssl", "x509", "-in", wanted.ca_certificate, "-noout", "-pubkey", "-enddate"], timeout_seconds
    )
    key = runner.run(["openssl", "pkey", "-in", wanted.ca_key, "-passin", "pass:", "-pubout"], timeout_seconds)
    for result, path in ((certificate, wanted.ca_certificate), (key, wanted.ca_key)):
        if result.rc != 0:
            problem = f"{path}: {excerpt(result.stderr, limit=200) or 'no answer'}"
            return {**told, "state": "unreadable", "problem": problem}
    ends = re.search(r"^notAfter=(.*)$", certificate.stdout, re.MULTILINE)
    told["ends"] = ends[1] if ends else None
    if key.stdout.strip() not in certificate.stdout:
        return {**told, "state": "mismatch", "problem": f"{wanted.ca_key} is not the key of {wanted.ca_certificate}"}
    return {**told, "state": "ok"}


def ask(
    wanted: Wanted,
    login: tuple[str, str],
    push_login: tuple[str, str],
    ca_file: str = "",
    references: Sequence[str] = (),
    timeout_seconds: float = 10,
) -> dict:
    """Ask both services over TLS as their users do, the reading one without a login too."""
    files = [ca_file] if ca_file else []
    state = registries.check(wanted.address, "https", files, *login, references, timeout_seconds)
    told: dict = {
        "pull": {key: state[key] for key in ("state", "problem")},
        "anonymous": None,
        "push": None,
        "certificate_ends": None,
        "images": state["images"],
    }
    if state["state"] == "ok":
        told["anonymous"] = registries.check(wanted.address, "https", files, timeout_seconds=timeout_seconds)["state"]
        told["certificate_ends"] = certificate_ends(wanted.address, ca_file, timeout_seconds)
    if wanted.push_address:
        state = registries.check(wanted.push_address, "https", files, *push_login, timeout_seconds=timeout_seconds)
        told["push"] = {key: state[key] for key in ("state", "problem")}
    return told


def certificate_ends(address: str, ca_file: str, timeout_seconds: float) -> str | None:
    """Return until when the certificate is valid that a service shows now, None where it shows none."""
    host, port = images.split_address(address)
    try:
        context = ssl.create_default_context(cafile=ca_file or None)
        plain = socket.create_connection((host, int(port)), timeout_seconds)
        with plain, context.wrap_socket(plain, server_hostname=host) as wrapped:
            shown = wrapped.getpeercert() or {}
    except (OSError, ValueError):  # ssl.SSLError is an OSError
        return None
    return str(shown["notAfter"]) if "notAfter" in shown else None


def days_left(ends: object, now: str) -> float | None:
    """Return the days from ``now`` (UTC, ISO) to a date as OpenSSL writes it, None where that is no date."""
    try:
        end = datetime.fromtimestamp(ssl.cert_time_to_seconds(str(ends)), timezone.utc)
        start = datetime.strptime(now, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
    except (ValueError, OverflowError, OSError):
        return None
    return (end - start) / timedelta(days=1)


# --------------------------------------------------------------------------------------------------------- refusing


def refusals(seen: Mapping, wanted: Wanted) -> list[str]:
    """Return each reason not to set the registry up on this host as it is; nothing was touched yet."""
    return [*_of_names(seen, wanted), *_of_ports(seen), *_of_storage(seen, wanted), *_of_authority(seen)]


def _of_names(seen: Mapping, wanted: Wanted) -> list[str]:
    host = images.split_address(wanted.address)[0]
    names, own = list(seen.get("names") or []), set(seen.get("own_addresses") or [])
    found = []
    if not own:
        found.append("the addresses of the host could not be read (ip address)")
    elif not names:
        found.append(f"the name {host} of cluster_registry_address has no address on this host")
    elif not own & set(names):
        found.append(f"the name {host} of cluster_registry_address is {', '.join(names)}, which is not this host")
    elif seen.get("listen_address") is None:
        found.append(
            f"the name {host} is {', '.join(names)} here, which no node can reach: name the address to listen on in "
            "registry_listen_address, or take the name out of the line with 127. in /etc/hosts"
        )
    if wanted.listen_address and own and wanted.listen_address not in own:
        found.append(f"registry_listen_address {wanted.listen_address} is no address of this host")
    return found


def _of_ports(seen: Mapping) -> list[str]:
    if seen.get("ports") is None:
        return ["who listens on which port could not be read (ss)"]
    found = []
    for place in dict_of(seen.get("places")).values():
        if not place:
            continue
        host, port = images.split_address(place)
        for row in dicts_of(seen["ports"]):
            everywhere = row["address"] in ("*", "0.0.0.0", "::")
            if row["port"] == port and (everywhere or row["address"] == host) and not row["own"]:
                found.append(
                    f"{place} is taken by {row['process'] or 'another program'} (process {row['pid'] or 'unknown'})"
                )
                break
    return found


def _of_storage(seen: Mapping, wanted: Wanted) -> list[str]:
    storage = dict_of(seen.get("storage"))
    free, found = storage.get("free_bytes"), []
    if storage.get("foreign"):
        found.append(f"{wanted.storage_dir} holds something that is no registry")
    if not isinstance(free, int):
        found.append(f"the room for {wanted.storage_dir} could not be read (df)")
    elif free < wanted.free_gib * GIB:
        found.append(
            f"{round(free / GIB, 1):g} GiB are free for {wanted.storage_dir}, cluster_registry_storage_free_gib is "
            f"{wanted.free_gib:g}"
        )
    return found


def _of_authority(seen: Mapping) -> list[str]:
    told = dict_of(seen.get("ca"))
    if told.get("state") in ("absent", "ok"):
        return []
    why = f"the site's CA can't be used, and a new one would be foreign to every node: {told.get('problem')}"
    return [f"{why}; bring the file back, or remove both files and roll out a new CA"]


# ---------------------------------------------------------------------------------------------------------- judging

# What is wrong with the certificate itself: all other states are those of a service that does not do its work.
_CERTIFICATES = {"expired", "not_yet_valid", "name_mismatch", "ca_foreign", "ca_file"}


def judge_host(host: str, seen: Mapping, declared: Mapping, language: str = "en", now: str | None = None) -> list[dict]:
    """Hold what ``observe`` and ``ask`` told against what is declared; return ``registry.*`` findings.

    ``declared``: address, limit_gib, free_gib, renew_days, own_ca (whether the role made the certificates).
    """
    common = {"language": language, "now": now, "subject": str(declared.get("address") or host)}
    return [_service(host, seen, declared, common), _room(host, seen, declared, common)]


def _service(host: str, seen: Mapping, declared: Mapping, common: dict) -> dict:
    asked, units = dict_of(seen.get("asked")), dict_of(seen.get("units"))
    states = {name: dict_of(asked.get(name)) for name in UNITS}
    now = str(common["now"] or judge.now_utc())
    renew = to_float(declared.get("renew_days")) or 0
    ends = asked.get("certificate_ends")
    left = days_left(ends, now)
    authority = days_left(dict_of(seen.get("ca")).get("ends"), now) if declared.get("own_ca") else None
    told = {name: f"{name}: {one.get('state')} {one.get('problem') or ''}".strip() for name, one in states.items()}
    collecting = dict_of(units.get(COLLECTOR)).get("active") in ("activating", "deactivating")
    values: dict = {**common, "observed": {name: one.get("state") for name, one in states.items()}}
    values["evidence"] = [
        {"command": f"systemctl status {unit}", "excerpt": f"{told[name]} {json.dumps(units.get(unit))}"}
        for name, unit in UNITS.items()
    ]
    reading, writing = states["pull"].get("state"), states["push"].get("state")
    values["detail"] = told["pull"]
    if not asked or not reading or not writing:
        cause, values["detail"] = "unknown", "-"
    elif reading in _CERTIFICATES:
        cause = "certificate"
    elif reading != "ok":
        cause = "down"
    elif asked.get("anonymous") == "ok":
        cause = "open"
    elif asked.get("anonymous") != "login_needed":
        cause, values["detail"] = "unknown", f"without a login: {asked.get('anonymous')}"
    elif writing != "ok" and not collecting:
        cause, values["detail"] = "push_down", told["push"]
    elif left is None or (declared.get("own_ca") and authority is None):
        cause, values["detail"] = "unknown", "the end of the certificate"
    elif min(left, authority if authority is not None else left) < renew:
        cause = "certificate_ends_soon"
        soonest = "CA" if authority is not None and authority < left else "certificate"
        values["detail"] = f"{soonest}, {min(left, authority if authority is not None else left):.0f} d"
        values.update(expected=f">= {renew:g} d", observed=round(left, 1))
    else:
        cause = "ok"
        values["detail"] = f"{left:.0f}"
    return judge.finding(f"registry.service.{cause}", host, **values)


def _room(host: str, seen: Mapping, declared: Mapping, common: dict) -> dict:
    storage = dict_of(seen.get("storage"))
    limit, least = to_float(declared.get("limit_gib")) or 0, to_float(declared.get("free_gib")) or 0
    used, free = storage.get("used_bytes"), storage.get("free_bytes")
    collector = dict_of(dict_of(seen.get("units")).get(COLLECTOR))
    values: dict = {**common, "detail": str(storage.get("path") or "-")}
    values["evidence"] = [{"command": f"df, du {storage.get('path')}", "excerpt": json.dumps(dict(storage))}]
    if not isinstance(used, int) or not isinstance(free, int):
        cause = "unknown"
    elif limit and used > limit * GIB:
        cause = "over_limit"
        values.update(expected=f"<= {limit:g} GiB", observed=f"{used / GIB:.1f} GiB")
    elif free < least * GIB:
        cause = "full"
        values.update(expected=f">= {least:g} GiB", observed=f"{free / GIB:.1f} GiB")
    elif collector.get("result") not in ("success", None, ""):
        cause, values["detail"] = "collection_failed", str(collector.get("result"))
    else:
        cause = "ok"
        values["observed"] = f"{used / GIB:.1f} GiB"
    return judge.finding(f"registry.storage.{cause}", host, **values)
