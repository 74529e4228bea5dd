# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""What a sound inventory is: checks of declared data, all complaints at once.

``judge`` takes a ``Site``, everything that an inventory declares, and returns complaints. It reads
nothing and asks nobody: the action ``accel.cluster.preflight`` fills the ``Site``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field

from .contract_values import (
    ADDRESS_FORM,
    Surroundings,
    accepted_form,
    address_of,
    bare_host,
    is_host_name,
    networks_of,
    plain,
    problems,
    shown,
    similar,
)
from .model import to_float, to_int

ALL_HOSTS = "cluster_hosts"
ACCELERATOR_NODES = "accelerator_nodes"
# The groups that playbooks name, all below ALL_HOSTS; node types are the children of ACCELERATOR_NODES.
GROUPS = (
    ALL_HOSTS,
    ACCELERATOR_NODES,
    "scheduler_controllers",
    "registry_hosts",
    "storage_servers",
    "monitoring_servers",
    "login_nodes",
    "gateway_nodes",
)

HOST = "host"
GROUP = "group"
COMMAND_LINE = "command line"

# Equal on all hosts of a site.
_SITE_WIDE = (
    "cluster_name",
    "cluster_scenario",
    "cluster_language",
    "cluster_site_dir",
    "cluster_networks",
    "cluster_vendors",
)
# Declared for a node type and equal within it. A slot map may differ: firmware numbers buses by what is plugged.
_NODE_TYPE = re.compile(r"^cluster_(accelerator_(?!slots$)\w+|fabric_port_\w+|node_type|\w+_version)$")
# What every node type has to declare.
_NEEDED = {
    "cluster_accelerator_vendor": "the vendor of its cards",
    "cluster_accelerator_models": 'a list of model names such as ["NVIDIA H100 80GB HBM3"]',
    "cluster_accelerator_count": "the number of cards in one host, such as 8",
}
_SSH = {None, "", "smart", "ssh", "paramiko", "paramiko_ssh", "ansible.builtin.ssh", "ansible.builtin.paramiko_ssh"}
_HOST_NAME_FORM = "a host name of letters, digits and hyphens, such as gpu-01"


@dataclass
class Declared:
    """A value as the inventory declares it: where it stands, or why it could not be worked out.

    ``scope`` is HOST, GROUP or "" (command line, dynamic source). ``place`` is ``file:line``.
    """

    value: object
    place: str = ""
    scope: str = ""
    error: str = ""


@dataclass
class Group:
    """A group of the inventory: names of its child groups, and of its hosts at any depth."""

    children: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)


@dataclass
class Mention:
    """A name found in an inventory file: of a variable (``owner`` is its group or host), group or host."""

    name: str
    place: str = ""
    owner: str = ""


@dataclass
class Site:
    """Everything that is declared. ``specs``: role -> variable -> option of its argument specification."""

    groups: dict[str, Group] = field(default_factory=dict)
    hosts: dict[str, dict[str, Declared]] = field(default_factory=dict)
    specs: dict[str, dict[str, dict]] = field(default_factory=dict)
    vendors: tuple[str, ...] = ()
    time_zones: frozenset[str] = frozenset()
    variables: list[Mention] = field(default_factory=list)
    group_files: list[Mention] = field(default_factory=list)
    host_files: list[Mention] = field(default_factory=list)
    stands: dict[tuple[str, str], str] = field(default_factory=dict)  # (GROUP or HOST, name) -> file:line

    def at(self, kind: str, name: str) -> str:
        """Return where a group or host stands first, as ``file:line``, or nothing."""
        return self.stands.get((kind, name), "")

    def known_variables(self) -> dict[str, dict]:
        """Return every public variable of every role with its option."""
        return {name: option for options in self.specs.values() for name, option in options.items()}


@dataclass
class Complaint:
    """One thing that is wrong: about whom, where it stands, what it is, what would be right."""

    subjects: list[str]
    problem: str
    accepted: str
    variable: str = ""
    place: str = ""
    suggestion: str = ""

    def line(self) -> str:
        """Return the complaint as one line."""
        place = f" ({self.place})" if self.place else ""
        suggestion = f"; did you mean {self.suggestion}?" if self.suggestion else ""
        text = f"{listed(self.subjects)}{place}: {self.problem}; accepted: {self.accepted}{suggestion}"
        return " ".join(text.split())

    def as_dict(self) -> dict:
        """Return the complaint as a plain dictionary, its line as ``message``."""
        return dict(asdict(self), message=self.line())


def listed(names: list[str], most: int = 4) -> str:
    """Return names as text; of many only the first ones and how many there are more."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"


def judge(site: Site) -> tuple[list[Complaint], list[str]]:
    """Return all complaints about a site, equal ones about several hosts as one, and notes that refuse nothing."""
    notes: list[str] = []
    if site.hosts and not any("cluster_name" in values for values in site.hosts.values()):
        default = site.known_variables().get("cluster_name", {}).get("default")
        notes.append(f"cluster_name is not declared, so the site is called {default}")
    found = [
        *_groups(site, notes),
        *_files(site, notes),
        *_hosts(site),
        *_variables(site),
        *_values(site),
        *_node_types(site),
        *_clocks(site),
        *_bridges(site),
        *_site_wide(site),
    ]
    return merged(found), notes


def judge_command_line(site: Site) -> list[Complaint]:
    """Return the complaints about names and values alone: of a ``Site`` that holds what was given with ``-e``.

    Runs that must speak of hosts whose inventory is wrong can't be refused for that. A wrong word on their command
    line is a slip of that call, and nobody would see it in their report.
    """
    return merged([*_variables(site), *_values(site)])


def merged(complaints: Iterable[Complaint]) -> list[Complaint]:
    """Return the complaints with those that differ only in their subjects put together, in order."""
    table: dict[tuple, Complaint] = {}
    for one in complaints:
        key = (one.variable, one.problem, one.accepted, one.place, one.suggestion)
        known = table.setdefault(key, Complaint([], one.problem, one.accepted, one.variable, one.place, one.suggestion))
        known.subjects += [subject for subject in one.subjects if subject not in known.subjects]
    return list(table.values())


def _wrong(subjects: list[str], name: str, declared: Declared, accepted: str, suggestion: str = "") -> Complaint:
    """Return a complaint about the value of a variable, or about one that could not be worked out."""
    problem = f"{name} is {shown(declared.value, name)}"
    if declared.error:
        problem = f"{name} can't be worked out: {declared.error}"
    return Complaint(subjects, problem, accepted, name, declared.place, suggestion)


# Groups


def _groups(site: Site, notes: list[str]) -> Iterator[Complaint]:
    everything = site.groups.get(ALL_HOSTS)
    if everything is None or not everything.hosts:
        yield Complaint(["inventory"], f"no host is in the group {ALL_HOSTS}", f"every host below {ALL_HOSTS}")
    strangers = _strangers(site)
    below_strangers = {child for name in strangers for child in _below(site, name)}
    accepted = f"one of {', '.join(GROUPS)}, or a node type below {ACCELERATOR_NODES}"
    for name, (problem, meant) in strangers.items():
        # What is below a misspelt group is where it should be.
        if name not in below_strangers:
            yield Complaint([f"group {name}"], problem, accepted, "", site.at(GROUP, name), meant)
    below = _below(site, ALL_HOSTS)
    subgroups = {child for name in GROUPS for child in _below(site, name)}
    for name in sorted(set(site.groups) - {"all", "ungrouped", *GROUPS, *subgroups, *strangers, *below_strangers}):
        notes.append(f"group {name} is none of the collection's and left alone")
    for name in GROUPS[1:]:
        subject, place, right = [f"group {name}"], site.at(GROUP, name), f"a child group of {ALL_HOSTS}"
        if name not in site.groups:
            notes.append(f"group {name} is not declared, so nothing is set up for it")
        elif name not in below and everything is not None:
            yield Complaint(subject, f"is not below {ALL_HOSTS}", right, place=place)
        elif name in _below(site, ACCELERATOR_NODES):
            yield Complaint(subject, f"stands below {ACCELERATOR_NODES}", right, place=place)


def _strangers(site: Site) -> dict[str, tuple[str, str]]:
    """Return name -> (problem, what was meant) of the groups that no playbook knows but that should be known."""
    subgroups = {child for name in GROUPS[1:] for child in _below(site, name)}
    below = _below(site, ALL_HOSTS)
    found = {}
    for name in site.groups:
        if name in ("all", "ungrouped") or name in GROUPS or name in subgroups:
            continue
        if name in below:
            meant = similar(name, GROUPS) or _first_word(name)
            found[name] = (f"no playbook knows this group below {ALL_HOSTS}", meant)
        elif similar(name, GROUPS, 0.8):
            found[name] = ("no playbook knows this group", similar(name, GROUPS, 0.8))
    return found


def _below(site: Site, name: str) -> set[str]:
    """Return the names of all groups below a group."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        group = site.groups.get(waiting.pop())
        for child in group.children if group else ():
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found


def _first_word(name: str) -> str:
    """Return the group of the contract that a short name (gateways, storage) stands for, or nothing."""
    word = plain(name).partition("_")[0].rstrip("s")
    found = [group for group in GROUPS if len(word) > 4 and group.startswith(word)]
    return found[0] if len(found) == 1 else ""


def _files(site: Site, notes: list[str]) -> Iterator[Complaint]:
    """Find files of variables that nothing reads because their name is misspelt."""
    kinds: tuple[tuple[str, list[Mention], Iterable[str]], ...] = (
        (GROUP, site.group_files, site.groups),
        (HOST, site.host_files, site.hosts),
    )
    for kind, mentions, names in kinds:
        for mention in mentions:
            if mention.name in names or mention.name == "localhost":
                continue
            # gpu-04 is not a misspelt gpu-03: several inventories may share a folder of variables.
            rivals = [name for name in names if _letters(name) != _letters(mention.name)]
            meant = similar(mention.name, rivals, 0.8)
            if meant:
                problem = f"nothing reads its variables, for the inventory has no such {kind}"
                accepted = f"the name of a {kind} of the inventory"
                subject = f"{kind} {mention.name}"
                yield Complaint([subject], problem, accepted, place=mention.place, suggestion=meant)
            else:
                notes.append(f"{mention.place}: the inventory has no {kind} {mention.name}")


def _letters(name: str) -> str:
    return re.sub(r"\d+", "", plain(name))


# Hosts and their addresses


def _hosts(site: Site) -> Iterator[Complaint]:
    everything = set(site.groups.get(ALL_HOSTS, Group()).hosts)
    reached: dict[tuple[str, str], list[str]] = {}
    misplaced = {host for name in _strangers(site) for host in site.groups[name].hosts}
    outside = [host for host in site.hosts if host != "localhost" and host not in everything | misplaced]
    if outside:
        accepted = f"every host below {ALL_HOSTS}; other hosts in an inventory of their own"
        yield Complaint(outside, "in no group of the cluster", accepted, place=site.at(HOST, outside[0]))
    # Of a file with such a name Ansible reads nothing at all, so the host is only written somewhere.
    for kind, host in site.stands:
        if kind == HOST and host not in site.hosts and not is_host_name(host):
            yield _no_host_name(site, host)
    for host, values in site.hosts.items():
        connection = values.get("ansible_connection", Declared(None))
        if connection.error:
            yield _wrong([host], "ansible_connection", connection, "the name of a connection plugin, such as ssh")
        elif host == "localhost" or connection.value not in _SSH:
            continue  # a container's name, or no address at all
        if not is_host_name(host) and address_of(host) is None:
            yield _no_host_name(site, host)
            if "ansible_host" not in values:
                continue
        declared = values.get("ansible_host", Declared(host))
        yield from _address(host, declared, values.get("cluster_networks"))
        port = values.get("ansible_port", Declared(22))
        if port.error or not 1 <= (to_int(port.value) or 0) <= 65535:
            yield _wrong([host], "ansible_port", port, "a whole number from 1 to 65535")
        if not declared.error:
            reached.setdefault((str(declared.value).lower(), str(port.value)), []).append(host)
    for (address, port_number), hosts in reached.items():
        if len(hosts) > 1:
            problem = f"ansible_host is {shown(address)}, port {port_number}, for each of them"
            place = site.hosts[hosts[-1]].get("ansible_host", Declared("")).place
            yield Complaint(hosts, problem, "an address of its own for each host", "ansible_host", place)


def _no_host_name(site: Site, host: str) -> Complaint:
    word = host.replace("_", "-").strip("-. ")
    meant = word if is_host_name(word) else bare_host(host)
    span = re.match(r"^(.*)\[(\d+)-(\d+)\](.*)$", host)
    if span:
        meant = f"{span[1]}[{span[2]}:{span[3]}]{span[4]}"
    return Complaint([f"host {host}"], "is no host name", _HOST_NAME_FORM, "", site.at(HOST, host), meant)


def _address(host: str, declared: Declared, site_networks: Declared | None) -> Iterator[Complaint]:
    address = address_of(declared.value)
    if declared.error or (address is None and not is_host_name(declared.value)):
        meant = "" if declared.error else bare_host(declared.value)
        yield _wrong([host], "ansible_host", declared, ADDRESS_FORM, meant)
        return
    if address is None:
        return
    if address.is_unspecified or address.is_multicast or str(address) == "255.255.255.255":
        yield _wrong([host], "ansible_host", declared, "the address of one host")
        return
    for name, network in networks_of(site_networks.value) if site_networks else ():
        if name != "management" or network.version != address.version:
            continue
        if address not in network:
            problem = f"ansible_host is {shown(declared.value)}, outside the management network {network}"
            accepted = f"an address in {network}, or in cluster_networks a management network that holds it"
            yield Complaint([host], problem, accepted, "ansible_host", declared.place)
        elif network.num_addresses > 2 and address in (network.network_address, network.broadcast_address):
            yield _wrong([host], "ansible_host", declared, f"the address of one host in {network}")


# Names of variables


def _variables(site: Site) -> Iterator[Complaint]:
    known = site.known_variables()
    for mention in site.variables:
        if mention.name in known or mention.name.startswith(("_", "ansible_")):
            continue
        role = _role_of(mention.name, site.specs)
        meant = similar(mention.name, known) if role else _misspelt_role(mention.name, known, site.specs)
        if role or meant:
            role = role or _role_of(meant, site.specs)
            problem = f"{mention.name} is no variable of the collection, so nothing reads it"
            accepted = (
                f"one that ansible-doc -t role accel.cluster.{role} lists; for your own another prefix than {role}_"
            )
            subject = mention.owner or "inventory"
            yield Complaint([subject], problem, accepted, mention.name, mention.place, meant)


def _role_of(name: str, roles: Iterable[str]) -> str:
    """Return the role whose prefix a name has, or nothing."""
    found = [role for role in roles if plain(name).startswith(f"{role}_")]
    return max(found, key=len) if found else ""


def _misspelt_role(name: str, known: Iterable[str], roles: Iterable[str]) -> str:
    """Return the known variable that a name with a misspelt prefix (clutser_name) stands for, or nothing."""
    head, _mark, rest = plain(name).partition("_")
    role = similar(head, roles, 0.8)
    if not role or not rest:
        return ""
    found = similar(rest, [word[len(role) + 1 :] for word in known if word.startswith(f"{role}_")], 0.8)
    return f"{role}_{found}" if found else ""


# Values


def _values(site: Site) -> Iterator[Complaint]:
    known = site.known_variables()
    for host, values in site.hosts.items():
        around = Surroundings(site.vendors, site.time_zones, {name: one.value for name, one in values.items()})
        for name, declared in values.items():
            option = known.get(name)
            if option is None:
                continue
            if declared.error:
                # Values of other roles may be made of facts, which nobody has gathered yet.
                if name in site.specs.get("cluster", {}):
                    accepted = f"{accepted_form(option, name)}, known before any host is asked"
                    yield _wrong([host], name, declared, accepted)
                continue
            for one in problems(name, declared.value, option, around):
                problem = f"{one.name} is {shown(one.value, one.name)}"
                yield Complaint([host], problem, one.accepted, name, declared.place, one.suggestion)


# Node types, and what must be equal


def _node_types(site: Site) -> Iterator[Complaint]:
    parent = site.groups.get(ACCELERATOR_NODES, Group())
    types = {name: site.groups[name].hosts for name in parent.children if name in site.groups}
    # Of a host in a misspelt group it can't be told what it should declare.
    misplaced = {host for name in _strangers(site) for host in site.groups[name].hosts}
    for host, values in site.hosts.items():
        mine = [name for name, hosts in types.items() if host in hosts]
        if len(mine) > 1:
            problem = f"is in the node types {' and '.join(mine)}"
            yield Complaint([host], problem, "one node type for each host", place=site.at(HOST, host))
        elif mine:
            yield from _with_cards(host, mine[0], values)
        elif host in parent.hosts:
            accepted = f"a child group of {ACCELERATOR_NODES} for each type of node"
            problem = f"is in {ACCELERATOR_NODES} but in no node type"
            yield Complaint([host], problem, accepted, place=site.at(HOST, host))
        elif host not in misplaced:
            yield from _without_cards(host, values)
    for name, hosts in types.items():
        yield from _unequal_types(site, name, [host for host in hosts if host in site.hosts])


def _unequal_types(site: Site, name: str, hosts: list[str]) -> Iterator[Complaint]:
    variables = {variable for host in hosts for variable in site.hosts[host] if _NODE_TYPE.match(variable)}
    accepted = f"one value for all of {name}; hosts that differ are a node type of their own"
    for variable in sorted(variables - {"cluster_node_type"}):
        # What is set for one host is refused for that reason already, and so is what is missing and needed.
        compared = [host for host in hosts if site.hosts[host].get(variable, Declared("")).scope != HOST]
        if variable in _NEEDED:
            compared = [host for host in compared if variable in site.hosts[host]]
        yield from _unequal(site, variable, compared, accepted)


def _without_cards(host: str, values: dict[str, Declared]) -> Iterator[Complaint]:
    count = values.get("cluster_accelerator_count", Declared(0))
    if (to_int(count.value) or 0) > 0:
        problem = f"cluster_accelerator_count is {shown(count.value)}, but the host is not in {ACCELERATOR_NODES}"
        accepted = f"hosts with cards in a node type below {ACCELERATOR_NODES}, the count in that group's file"
        yield Complaint([host], problem, accepted, "cluster_accelerator_count", count.place)


def _with_cards(host: str, name: str, values: dict[str, Declared]) -> Iterator[Complaint]:
    wanted = dict(_NEEDED, cluster_node_type=name)
    for variable, accepted in wanted.items():
        declared = values.get(variable)
        if declared is None:
            problem = f"{variable} is not declared for the node type {name}"
            yield Complaint([host], problem, f"{accepted}, in group_vars/{name}/cluster.yml", variable)
        elif declared.error or declared.value is None:
            continue  # refused for that reason already
        elif variable == "cluster_node_type":
            if declared.value != name:
                yield _wrong([host], variable, declared, f"the name of its group, {name}")
        elif declared.value in ("", [], "0") or (declared.value == 0 and declared.value is not False):
            yield _wrong([host], variable, declared, f"{accepted}; a host without cards is in no node type")
    for variable, declared in values.items():
        if declared.scope == HOST and _NODE_TYPE.match(variable):
            accepted = f"one value in group_vars/{name}; hosts that differ are a node type of their own"
            yield Complaint([host], f"{variable} is set for one host", accepted, variable, declared.place)


def _clocks(site: Site) -> Iterator[Complaint]:
    """Find hosts that would have to take the time from themselves, and may not."""
    for host, values in site.hosts.items():
        servers, stratum = values.get("cluster_time_servers"), values.get("baseline_time_local_stratum", Declared(0))
        own = {host, str(values.get("ansible_host", Declared(host)).value)}
        named = servers.value if servers and isinstance(servers.value, list) else []
        if servers and named and all(str(name) in own for name in named) and not to_int(stratum.value):
            accepted = "another server; or, where there is none outside, baseline_time_local_stratum: 8 for this host"
            yield _wrong([host], "cluster_time_servers", servers, accepted)


def _bridges(site: Site) -> Iterator[Complaint]:
    """Find nodes whose bridge of containers would take the way to other hosts; the default of the role counts too.

    Podman's own is 10.88.0.0/16 and Docker's 172.17.0.0/16; both are in ranges that sites use.
    """
    default = Declared(site.known_variables().get("container_bridge_subnet", {}).get("default"))
    for host in site.groups.get(ACCELERATOR_NODES, Group()).hosts:
        values = site.hosts.get(host, {})
        declared = values.get("container_bridge_subnet", default)
        networks = values.get("cluster_networks")
        address = address_of(values.get("ansible_host", Declared(host)).value)
        found = networks_of([{"name": "bridge", "cidr": declared.value}])
        for _name, bridge in found if not declared.error else ():
            taken = [
                f"{name}, {network}"
                for name, network in (networks_of(networks.value) if networks else ())
                if network.version == bridge.version and network.overlaps(bridge)
            ]
            if not taken and address is not None and address in bridge:
                taken = [f"the address of the host, {address}"]
            if taken:
                accepted = f"a network apart from {'; '.join(taken)}"
                yield _wrong([host], "container_bridge_subnet", declared, accepted)


def _site_wide(site: Site) -> Iterator[Complaint]:
    hosts = [host for host in site.groups.get(ALL_HOSTS, Group()).hosts if host in site.hosts]
    nodes = [host for host in hosts if host in site.groups.get(ACCELERATOR_NODES, Group()).hosts]
    for host in nodes[:1] if len(nodes) > 1 else ():
        scenario = site.hosts[host].get("cluster_scenario", Declared(None))
        if scenario.value == "single_node":
            problem = f"cluster_scenario is single_node, but {len(nodes)} hosts are in {ACCELERATOR_NODES}"
            accepted = "multi_node, inference or mixed for more than one"
            yield Complaint(["inventory"], problem, accepted, "cluster_scenario", scenario.place)
    for variable in _SITE_WIDE:
        yield from _unequal(site, variable, hosts, "one value for the whole site, in group_vars/all/cluster.yml")


def _unequal(site: Site, variable: str, hosts: list[str], accepted: str) -> Iterator[Complaint]:
    """Complain about the hosts whose value of a variable is not the one that most hosts have."""
    found: list[tuple[Declared, list[str]]] = []
    default = Declared(site.known_variables().get(variable, {}).get("default"))
    for host in hosts:
        declared = site.hosts[host].get(variable, default)
        if declared.error:
            continue
        like = [with_it for one, with_it in found if _same(one.value, declared.value)]
        if like:
            like[0].append(host)
        else:
            found.append((declared, [host]))
    found.sort(key=lambda one: len(one[1]), reverse=True)
    for declared, differing in found[1:]:
        usual = f"{shown(found[0][0].value, variable)} for {listed(found[0][1])}"
        problem = f"{variable} is {shown(declared.value, variable)}, but {usual}"
        yield Complaint(differing, problem, accepted, variable, declared.place)


def _same(one: object, other: object) -> bool:
    """Tell whether two values are equal; a number may be written as text."""
    numbers = to_float(one), to_float(other)
    return one == other or (numbers[0] is not None and numbers[0] == numbers[1])
