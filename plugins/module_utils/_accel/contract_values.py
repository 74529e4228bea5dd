# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Whether one declared value is right, and in which form it would be.

Types, choices and required keys come from an option of a role's ``meta/argument_specs.yml``; there is
no second list of them here. What a specification can't say is said here, once: what the units in
names mean, and what addresses, versions, networks and slots look like.
"""

from __future__ import annotations

import difflib
import ipaddress
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Union

from . import confidential, declarations, kernel_log, pci, registry
from .model import to_float, to_int

Address = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]
Network = Union[ipaddress.IPv4Network, ipaddress.IPv6Network]

# (names, lowest, highest): the first that matches holds; what matches none must not be negative.
_RANGES: tuple[tuple[str, float, float | None], ...] = (
    (r"^cluster_tolerance_\w+_percent$", 0, 50),
    (r"_percent$", 0, 100),
    (r"_timeout_seconds$", 1, 3600),
    (r"_interval_(seconds|minutes|hours)$", 1, None),
    (r"_max_age_hours$", 1, 8760),
    (r"_milliseconds$", 1, 60000),
    (r"(^cluster_port_|_port$)", 1, 65535),
    (r"^cluster_accelerator_count$", 0, 128),
    (r"^cluster_accelerator_memory_gib$", 0, 4096),
    # Today's cards make eight at most; vNPU numbers leave room for sixteen.
    (r"^cluster_accelerator_partitions$", 0, 16),
    (r"^cluster_fabric_port_count$", 0, 128),
    (r"^cluster_fabric_port_gbps$", 0, 6400),
)
_NUMBER_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
# What a person writes behind a number, by the unit that the name of the variable ends in.
_UNITS = {
    "count": ("cards", "gpus", "npus", "ports"),
    "gbps": ("gbps", "gb/s", "gbit/s", "g"),
    "gib": ("gib", "gb", "g"),
    "gts": ("gt/s", "gts"),
    "hours": ("h", "hours"),
    "milliseconds": ("ms", "milliseconds"),
    "percent": ("%", "percent"),
    "seconds": ("s", "sec", "seconds"),
}
_TRUE = ("yes", "true", "on", "1")
_FALSE = ("no", "false", "off", "0")
_VERSION = re.compile(r"^\d+([.:~+_-]?[0-9A-Za-z]+)*$")
_NAME = re.compile(r"^[a-z0-9]([a-z0-9_-]{0,62}[a-z0-9])?$")
_LABEL = re.compile(r"^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$")

ADDRESS_FORM = "an IP address such as 192.0.2.11 or a host name such as gpu-01.example.org, and nothing else"
_CIDR_FORM = "a network address with prefix length, such as 192.0.2.0/24"
_SLOT_FORM = 'a quoted PCI address and a name, such as "0000:18:00.0": SXM1'
_NAME_FORM = "lower-case letters, digits, - and _, 64 at most, such as lab-2"
_VERSION_FORM = 'a quoted version such as "570.86.15", or "" for whatever is the same on all nodes of the type'
_ZONE_FORM = "a name of the tz database, such as Etc/UTC or Asia/Shanghai"


@dataclass
class Problem:
    """One value that is refused: its name with the path into it, the form that is accepted, what was meant."""

    name: str
    value: object
    accepted: str
    suggestion: str = ""


@dataclass
class Surroundings:
    """What else a value is judged by: known vendors and time zones, and the other values of its host."""

    vendors: tuple[str, ...] = ()
    time_zones: frozenset[str] = frozenset()
    values: dict[str, object] = field(default_factory=dict)

    def number(self, name: str, default: int) -> int:
        """Return a whole number of the same host, the default when it has no usable one."""
        found = to_int(self.values.get(name))
        return default if found is None else found


def problems(name: str, value: object, option: dict, around: Surroundings) -> list[Problem]:
    """Return everything that is wrong with a value: first its type, and only if that is right its meaning."""
    return list(_mismatches(name, value, option)) or list(_details(name, value, around))


def truth_said(value: object, option: dict) -> object:
    """Return what a word on the command line says of a boolean: ``-e name=false`` is a text, and roles read it so."""
    word = plain(value)
    if option.get("type") == "bool" and isinstance(value, str) and word in (*_TRUE, *_FALSE):
        return word in _TRUE
    return value


# Wording


def shown(value: object, name: str = "") -> str:
    """Return a value as one short piece of text; never one that is, or may be, a secret."""
    if value is None:
        return "empty"
    text = json.dumps(value, ensure_ascii=False, default=str)
    if confidential.is_secret_name(name) or confidential.holds_secret(text) or confidential.holds_secret(str(value)):
        return "(not shown)"
    return text if len(text) <= 80 else f"{text[:77]}..."


def similar(name: str, known: Iterable[str], cutoff: float = 0.75) -> str:
    """Return the known name that was probably meant, or an empty text."""
    table = {plain(word): word for word in known}
    found = difflib.get_close_matches(plain(name), table, n=1, cutoff=cutoff)
    return table[found[0]] if found else ""


def plain(name: object) -> str:
    """Return a name as it is compared: lower case, no blanks around it, underscores."""
    return str(name).strip().lower().replace("-", "_")


def accepted_form(option: dict, name: str = "") -> str:
    """Return in words what an option of an argument specification accepts."""
    kind = option.get("type", "str")
    if kind == "list":
        one = accepted_form({"type": option.get("elements", "raw"), "choices": option.get("choices")})
        return f"a list, each entry {one}"
    if option.get("choices"):
        return f"one of {', '.join(str(choice) for choice in option['choices'])}"
    if kind in ("int", "float"):
        low, high = _range(name)
        number = "a whole number" if kind == "int" else "a number"
        span = f"from {low:g} to {high:g}" if high is not None else f"of {low:g} or more"
        return f"{number} {span}, such as {min(max(8, int(low)), int(high or 8))}"
    if name.endswith("_version"):
        return _VERSION_FORM
    words = {"bool": "true or false, unquoted", "dict": "a mapping", "path": "an absolute path", "str": "a text"}
    return words.get(kind, "any value")


# Types, choices, keys and units


def _mismatches(name: str, value: object, option: dict) -> Iterator[Problem]:
    """Yield what an option of an argument specification refuses.

    Stricter than ansible-core where that would convert ("a,b" to a list): what a role gets is not converted.
    """
    kind = option.get("type", "str")
    accepted = accepted_form(option, name)
    choices = option.get("choices") or []
    if kind in ("int", "float"):
        number = to_int(value) if kind == "int" else to_float(value)
        if number is None or not math.isfinite(number) or (choices and number not in choices):
            yield Problem(name, value, accepted, _number_meant(name, value))
            return
        low, high = _range(name)
        if number < low or (high is not None and number > high):
            yield Problem(name, value, accepted)
    elif kind == "bool" and not isinstance(value, bool):
        word = plain(value)
        yield Problem(name, value, accepted, "true" if word in _TRUE else "false" if word in _FALSE else "")
    elif kind == "list" and not isinstance(value, list):
        yield Problem(name, value, accepted, json.dumps([value]) if isinstance(value, str) and value else "")
    elif kind == "list" and isinstance(value, list):
        element = {"type": option.get("elements", "raw"), "options": option.get("options"), "choices": choices}
        for position, entry in enumerate(value):
            yield from _mismatches(f"{name}[{position}]", entry, element)
    elif kind == "dict" and not isinstance(value, dict):
        yield Problem(name, value, accepted)
    elif kind == "dict" and isinstance(value, dict) and option.get("options"):
        yield from _keys(name, value, option["options"])
    elif kind in ("str", "path"):
        # A number does no harm to most texts, but of a version YAML has already cut the zeros off.
        allowed = (str,) if name.endswith("_version") else (str, int)
        if isinstance(value, bool) or not isinstance(value, allowed):
            yield Problem(name, value, accepted)
        elif choices and value not in choices:
            begins = [choice for choice in choices if len(choice) > 1 and plain(value).startswith(choice)]
            yield Problem(name, value, accepted, similar(str(value), choices, 0.5) or "".join(begins[:1]))


def _keys(name: str, value: dict, options: dict) -> Iterator[Problem]:
    """Yield what is wrong with the keys of a mapping that has a specification of its own."""
    for key, entry in value.items():
        if key in options:
            yield from _mismatches(f"{name}.{key}", entry, options[key])
        else:
            yield Problem(f"{name}.{key}", entry, f"only the keys {', '.join(options)}", similar(str(key), options))
    for key, sub in options.items():
        if sub.get("required") and key not in value:
            yield Problem(f"{name}.{key}", None, accepted_form(sub, key))


def _range(name: str) -> tuple[float, float | None]:
    for pattern, low, high in _RANGES:
        if re.search(pattern, name):
            return low, high
    return 0, None


def _number_meant(name: str, value: object) -> str:
    """Return the number that a word ("eight") or a number with its unit ("8 cards", "80GiB") stands for, or nothing."""
    word = plain(value)
    if word in _NUMBER_WORDS:
        return str(_NUMBER_WORDS.index(word))
    found = re.match(r"^x?(\d+)(?:\.0+)?\s*([a-z/%]*)$", word)
    units = _UNITS.get(name.rsplit("_", 1)[-1], ())
    meant = found[1] if found and found[2] in ("", *units) else ""
    return "" if meant == str(value) else meant


# Meaning


def _details(name: str, value: object, around: Surroundings) -> Iterator[Problem]:
    """Yield what no specification can say about a value of the right type."""
    if name in _DETAILS:
        yield from _DETAILS[name](name, value, around)
    elif name.endswith("_version"):
        if value and not _VERSION.match(str(value)):
            meant = re.sub(r"^[^0-9]+", "", str(value).strip())
            yield Problem(name, value, _VERSION_FORM, meant if _VERSION.match(meant) else "")
    elif name.endswith(("_dir", "_path", "_file")):
        if value and not str(value).startswith("/"):
            yield Problem(name, value, "an absolute path")
    elif name.endswith("_subnet"):
        yield from _cidr(name, value)
    elif name.endswith("_networks") and isinstance(value, list):
        for position, entry in enumerate(value):
            yield from _cidr(f"{name}[{position}]", entry)


def is_host_name(text: object) -> bool:
    """Tell whether a text is a host name (RFC 1123); what looks like a broken IPv4 address is none."""
    if not isinstance(text, str) or len(text) > 253:
        return False
    labels = text.split(".")
    return all(_LABEL.match(label) for label in labels) and not labels[-1].isdigit()


def address_of(text: object) -> Address | None:
    """Return an IP address, None when the text is none."""
    try:
        return ipaddress.ip_address(text) if isinstance(text, str) else None
    except ValueError:
        return None


def bare_host(text: object) -> str:
    """Return the host in a URL, user@host, host:port or address/prefix, or nothing."""
    word = re.sub(r"^[a-z][a-z0-9+.-]*://", "", str(text).strip().lower())
    word = re.sub(r"^[^@/]*@", "", word)
    word = re.sub(r"[\s/?#].*$", "", word)
    word = re.sub(r"^\[([^]]*)\](:\d+)?$", r"\1", word)
    word = re.sub(r"^([^:]*):\d+$", r"\1", word)
    return word if word != text and (is_host_name(word) or address_of(word) is not None) else ""


def networks_of(value: object) -> list[tuple[str, Network]]:
    """Return name and network of each entry of ``cluster_networks`` that is sound."""
    found = []
    for entry in value if isinstance(value, list) else []:
        if isinstance(entry, dict):
            try:
                found.append((str(entry.get("name")), ipaddress.ip_network(str(entry.get("cidr")))))
            except ValueError:
                continue
    return found


def _vendor(name: str, value: object, around: Surroundings) -> Iterator[Problem]:
    declared = around.values.get("cluster_vendors")
    known = list(dict.fromkeys([*around.vendors, *(declared if isinstance(declared, dict) else ())]))
    if value and value not in known:
        accepted = f"one of {', '.join(str(one) for one in known)}"
        yield Problem(name, value, accepted, similar(str(value), known, 0.6))


def _vendor_list(name: str, value: object, around: Surroundings) -> Iterator[Problem]:
    for position, entry in enumerate(value if isinstance(value, list) else []):
        yield from _vendor(f"{name}[{position}]", entry, around)


def _vendors(name: str, value: object, _around: Surroundings) -> Iterator[Problem]:
    built_in: dict[str, list[str]] = {}
    for one, vendor in registry.PCI_VENDORS.items():
        built_in.setdefault(vendor, []).append(one)
    for wrong in declarations.problems(value, built_in):
        path = f"{name}.{wrong.path}" if wrong.path else f"a name in {name}"
        yield Problem(path, wrong.value, wrong.accepted, wrong.suggestion)


def _models(name: str, value: object, _around: Surroundings) -> Iterator[Problem]:
    for position, entry in enumerate(value if isinstance(value, list) else []):
        if not str(entry).strip() or str(entry) != str(entry).strip():
            accepted = "a model name as the vendor's tool prints it"
            yield Problem(f"{name}[{position}]", entry, accepted, str(entry).strip())


def _kernel_events(name: str, value: object, _around: Surroundings) -> Iterator[Problem]:
    for code, action in value.items() if isinstance(value, dict) else ():
        if not kernel_log.is_code(code):
            yield Problem(f"a code in {name}", code, kernel_log.CODE_FORM, _code_meant(code))
        if action not in kernel_log.ACTIONS:
            accepted = f"one of {', '.join(kernel_log.ACTIONS)}"
            meant = similar(action, kernel_log.ACTIONS, 0.6) if isinstance(action, str) else ""
            yield Problem(f"the action of {code} in {name}", action, accepted, meant)


def _code_meant(code: object) -> str:
    """Return the code that was probably meant: "Xid-79", 79, "0x80E01801", "AER_fatal"."""
    word = " ".join(plain(code).replace("_", " ").replace(":", " ").split())
    digits = word.rpartition(" ")[2]
    found = re.match(r"^(?:nvidia )?(s?xid)? ?0*(\d{1,6})$", word)
    number = re.match(r"^(?:0x)?([0-9a-f]{8})$", digits)
    if number and word in (digits, f"ascend {digits}", f"huawei {digits}", f"npu {digits}"):
        meant = f"ascend 0x{number[1]}"
    elif found:
        meant = f"{found[1] or 'xid'} {found[2]}"
    else:
        # A name that is nearly one of the words, or that has its number behind another vendor's name.
        head, _blank, tail = word.partition(" ")
        near = similar(head, ("xid", "sxid", "ascend"), 0.6) if tail else ""
        meant = f"{near} {tail}" if near and kernel_log.is_code(f"{near} {tail}") else ""
        meant = meant or similar(word, kernel_log.CODE_WORDS, 0.7)
    return meant if meant != code and kernel_log.is_code(meant) else ""


def _site_name(name: str, value: object, _around: Surroundings) -> Iterator[Problem]:
    if not _NAME.match(str(value)):
        meant = re.sub(r"[^a-z0-9]+", "-", str(value).lower()).strip("-")
        yield Problem(name, value, _NAME_FORM, meant if _NAME.match(meant) else "")


def _run_id(name: str, value: object, _around: Surroundings) -> Iterator[Problem]:
    if value and not re.match(r"^[0-9A-Za-z][0-9A-Za-z_-]*$", str(value)):
        yield Problem(name, value, "letters, digits, - and _, such as 20261130T010203Z")


def _time_zone(name: str, value: object, around: Surroundings) -> Iterator[Problem]:
    # A controller without a tz database can't tell; then only the form is judged.
    zones = around.time_zones
    known = value in zones if zones else bool(re.match(r"^[A-Za-z][\w+/-]*$", str(value)))
    if known:
        return
    word = str(value).strip().replace(" ", "_")
    cities = {zone.rsplit("/", 1)[-1]: zone for zone in sorted(zones, reverse=True) if "/" in zone}
    city = cities.get(similar(word.rsplit("/", 1)[-1], cities, 0.8), "")
    meant = "Etc/UTC" if word.upper() in ("UTC", "GMT") else similar(word, zones, 0.8) or city
    yield Problem(name, value, _ZONE_FORM, meant)


def _time_servers(name: str, value: object, _around: Surroundings) -> Iterator[Problem]:
    entries = value if isinstance(value, list) else []
    for position, entry in enumerate(entries):
        if not is_host_name(entry) and address_of(entry) is None:
            yield Problem(f"{name}[{position}]", entry, ADDRESS_FORM, bare_host(entry))
        elif entry in entries[:position]:
            yield Problem(f"{name}[{position}]", entry, "each server once")


def _cidr(name: str, value: object) -> Iterator[Problem]:
    meant = ""
    if "/" in str(value):
        try:
            meant = str(ipaddress.ip_network(str(value), strict=False))
            ipaddress.ip_network(str(value))
            return
        except ValueError:
            pass
    yield Problem(name, value, _CIDR_FORM, meant)


def _site_networks(name: str, value: object, _around: Surroundings) -> Iterator[Problem]:
    seen: list[tuple[str, Network]] = []
    for position, entry in enumerate(value if isinstance(value, list) else []):
        label = f"{name}[{position}]"
        if entry["name"] in [other for other, _network in seen]:
            yield Problem(f"{label}.name", entry["name"], "a name of its own for each network")
        yield from _cidr(f"{label}.cidr", entry["cidr"])
        for own_name, network in networks_of([entry]):
            for other_name, other in seen:
                if network.version == other.version and network.overlaps(other):
                    yield Problem(f"{label}.cidr", entry["cidr"], f"a network apart from {other_name}, {other}")
            seen.append((own_name, network))


def _slots(name: str, value: object, around: Surroundings) -> Iterator[Problem]:
    addresses: dict[str, object] = {}
    labels: dict[str, list[object]] = {}
    for key, label in value.items() if isinstance(value, dict) else ():
        address = _slot_address(key)
        if not address:
            yield Problem(f"an address in {name}", key, _SLOT_FORM)
        elif address in addresses:
            yield Problem(f"an address in {name}", key, f"each card once; {shown(addresses[address])} is the same card")
        if not isinstance(label, str) or not label.strip():
            yield Problem(f"the slot of {key} in {name}", label, _SLOT_FORM)
        elif not address or address not in addresses:
            labels.setdefault(label.strip().casefold(), []).append(key)
        if address:
            addresses.setdefault(address, key)
    per_slot = around.number("cluster_accelerator_devices_per_slot", 1)
    for keys in labels.values():
        if len(keys) > per_slot:
            accepted = "a slot of its own for each card"
            if per_slot > 1:
                accepted = f"{per_slot} devices in a slot at most (cluster_accelerator_devices_per_slot)"
            cards = ", ".join(str(key) for key in keys)
            yield Problem(f"the slot of {cards} in {name}", dict(value)[keys[0]], accepted)  # type: ignore[call-overload]
    # Fewer are right: the map names only the cards whose slot the host can't tell.
    count = around.number("cluster_accelerator_count", 0)
    if count and len(addresses) > count:
        yield Problem(f"the number of cards in {name}", len(addresses), f"{count} at most (cluster_accelerator_count)")


def _slot_address(key: object) -> str:
    """Return the canonical address of a card, or nothing."""
    try:
        return (pci.normalise(key) or "") if isinstance(key, str) else ""
    except ValueError:
        return ""


_DETAILS: dict[str, Callable[[str, object, Surroundings], Iterator[Problem]]] = {
    "cluster_accelerator_vendor": _vendor,
    "cluster_vendors": _vendors,
    "driver_vendors": _vendor_list,
    "cluster_accelerator_models": _models,
    "cluster_accelerator_slots": _slots,
    "cluster_name": _site_name,
    "cluster_networks": _site_networks,
    "cluster_kernel_event_actions": _kernel_events,
    "acceptance_run_id": _run_id,
    "cluster_run_id": _run_id,
    "cluster_time_servers": _time_servers,
    "cluster_time_zone": _time_zone,
}
