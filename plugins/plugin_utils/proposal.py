# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This plugin util is PRIVATE to the collection: its names may change in any release.
"""A proposal of ``_accel/survey.py`` as the files of an inventory, and what a person still has to do. Pure functions.

What hosts say lands in files that Ansible reads, so every text is quoted and every comment is one printable line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from ansible_collections.accel.cluster.plugins.module_utils._accel import conclude, doubts
from ansible_collections.accel.cluster.plugins.module_utils._accel.contract import GROUPS
from ansible_collections.accel.cluster.plugins.module_utils._accel.survey import ANSWERED

# What a survey can't know and leaves to a person, by the name that people look for: a product, no unfinished part.
TODO = "TODO.md"
INVENTORY = "inventory"

# Names that YAML takes as they stand; anything else, and what it would read as a boolean or nothing, is quoted.
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_WORDS = ("y", "n", "yes", "no", "on", "off", "true", "false", "null")


def files(proposal: Mapping, run_id: str, connections: Mapping[str, Mapping]) -> dict[str, str]:
    """Return path -> text of all files of the proposed inventory, paths relative to the folder of the run.

    ``connections`` is host -> the variables that it is reached by, as the surveyed inventory has them.
    """
    say = doubts.words(proposal["language"])
    found = {f"{INVENTORY}/hosts.yml": _hosts(proposal, run_id, say)}
    site = f"{INVENTORY}/group_vars/all/cluster.yml"
    found[site] = _text(["---", _head(run_id, say, 3), *_values(proposal["site"])])
    for name, node_type in proposal["node_types"].items():
        path = f"{INVENTORY}/group_vars/{name}/cluster.yml"
        found[path] = _text(["---", _head(run_id, say, 3), *_node_type(name, node_type, say)])
    return {**found, **_connections(proposal, run_id, connections, say)}


def fill_in(proposal: Mapping) -> list[str]:
    """Return what a person has to fill in, one line for each file and reason: file, variables, why nobody told them."""
    places = [(f"{INVENTORY}/group_vars/all/cluster.yml", proposal["site"])]
    places += [
        (f"{INVENTORY}/group_vars/{name}/cluster.yml", node_type) for name, node_type in proposal["node_types"].items()
    ]
    told: dict[tuple[str, str], list[str]] = {}
    for path, one in places:
        for name, why in one["unknown"].items():
            told.setdefault((path, why), []).append(f"`{name}`")
    return [f"`{path}`: {', '.join(names)}: {why}" for (path, why), names in told.items()]


def todo(proposal: Mapping, run_id: str, folder: str) -> str:
    """Return TODO.md: doubts first, then what to fill in, then the next commands."""
    say = doubts.words(proposal["language"])
    site = proposal["site"]["values"]["cluster_name"]["value"]
    hosts = proposal["hosts"].values()
    answered = len([one for one in hosts if one["state"] == ANSWERED])
    intro = say["todo_intro"].format(len(hosts), answered, len(hosts) - answered, len(proposal["node_types"]))
    lines = [f"# {say['todo_title'].format(run_id, site)}", "", *intro.split("\n"), ""]
    told = proposal["doubts"]
    lines += [f"## {say['todo_doubts'].format(len(told))}", ""]
    lines += [
        f"{number}. **{one['doubt']}** {_line(one['message'])}\n   {_line(one['hint'])}"
        for number, one in enumerate(told, 1)
    ] or [say["todo_no_doubts"].format(answered)]
    lines += ["", f"## {say['todo_fill']}", "", *(f"- [ ] {_line(one)}" for one in fill_in(proposal)), ""]
    lines += [*say["todo_copied"].split("\n"), "", f"## {say['todo_next']}", "", say["next_doubts"], ""]
    lines += ["```console", *(f"$ {one}" for one in next_commands(proposal, folder)), "```"]
    return _text(lines)


def next_commands(proposal: Mapping, folder: str) -> list[str]:
    """Return what to run next: judge the proposal, look at what it would change, copy it."""
    say = doubts.words(proposal["language"])
    site = proposal["site"]["values"]["cluster_name"]["value"]
    return [say[name].format(folder, site) for name in ("next_preflight", "next_diff", "next_copy")]


def lines(proposal: Mapping, folder: str) -> list[str]:
    """Return what is shown at the end of the run."""
    say = doubts.words(proposal["language"])
    return [
        say["line_where"].format(folder),
        say["line_doubts"].format(len(proposal["doubts"]), len(fill_in(proposal)), folder),
        *(f"  {_line(one['message'])}" for one in proposal["doubts"]),
        say["line_next"].format(next_commands(proposal, folder)[0]),
    ]


# ------------------------------------------------------------------------------------------------------ files


def _hosts(proposal: Mapping, run_id: str, say: Mapping) -> str:
    """Return hosts.yml: every host of the survey, with the groups of the contract, empty where unused."""
    untyped = [host for host, one in proposal["hosts"].items() if not one["node_type"]]
    doubted = {host for one in proposal["doubts"] for host in one["hosts"]}
    out = ["---", _head(run_id, say, 1), f"{GROUPS[0]}:", "  children:", f"    {GROUPS[1]}:"]
    if proposal["node_types"]:
        out.append("      children:")
    for name, node_type in proposal["node_types"].items():
        out += [f"        {name}:", "          hosts:"]
        for host in node_type["hosts"]:
            about = _comment(_cards(proposal["hosts"][host], host in doubted, say))
            out.append(f"            {_key(host)}:{about}")
    for name in GROUPS[2:]:
        own = [host for host, one in proposal["hosts"].items() if name in one["groups"]]
        out += [f"    {name}:", *(["      hosts:"] if own else [])]
        for host in own:
            out.append(f"        {_key(host)}:{_comment(_untyped(proposal['hosts'][host], say, known=True))}")
    left = [host for host in untyped if not proposal["hosts"][host]["groups"]]
    out += ["  hosts:"] if left else []
    out += [f"    {_key(host)}:{_comment(_untyped(proposal['hosts'][host], say))}" for host in left]
    return _text(out)


def _cards(host: Mapping, doubted: bool, say: Mapping) -> str:
    count = say["unknown"] if host["cards"] is None else host["cards"]
    answered = say["unknown"] if host["answered"] is None else host["answered"]
    text = say["host_cards"].format(count, answered)
    return say["comma"].join([text, say["doubted"].format(f"../{TODO}")] if doubted else [text])


def _untyped(host: Mapping, say: Mapping, known: bool = False) -> str:
    """Return why a host is in no node type; of one that is there for something else, only where it comes from."""
    if host["state"] == ANSWERED:
        why = say["bus_unread"] if host["cards"] is None else say["no_cards"]
        if known:
            return say["comma"].join([say["from_inventory"], *([] if host["node_type"] else [why])])
        return say["belongs"].format(why) if host["cards"] is None else why
    return say["belongs"].format(say[host["state"]])


def _node_type(name: str, node_type: Mapping, say: Mapping) -> list[str]:
    hosts = len(node_type["hosts"])
    out = [f"# {say['type_head'].format(name, hosts)}", *_values(node_type)]
    if node_type["slots"]:
        out += [f"# {line}" for line in say["slot_map"].split("\n")]
        out.append("# cluster_accelerator_slots:")
        for slot in node_type["slots"]:
            label = json.dumps(slot["label"], ensure_ascii=False) if slot["label"] else '"?"'
            source = say["slot_line"].format(slot["source"] or say["unknown"], slot["hosts"], hosts)
            out.append(f"#   {json.dumps(slot['address'])}: {label}{_comment(source)}")
    if node_type["versions"]:
        out.append(f"# {say['versions_seen']}")
    for one in node_type["versions"]:
        told = say["version_line"].format(one["component"], one["name"] or "", one["seen"])
        out.append(f"#   {_line(told)}")
    if node_type["ports"]:
        out.append(f"# {_line(say['links_seen'].format(say['comma'].join(node_type['ports'])))}")
    if node_type["partitions"][0]:
        out.append(f"# {say['partitions_seen'].format(*node_type['partitions'])}")
    return out


def _connections(proposal: Mapping, run_id: str, connections: Mapping[str, Mapping], say: Mapping) -> dict[str, str]:
    """Return the files that say how hosts are reached: what all have alike for all, the rest for each host."""
    found: dict[str, str] = {}
    users = {str(one["ansible_user"]) for one in connections.values() if one.get("ansible_user")}
    common = len(users) == 1 and all(one.get("ansible_user") for one in connections.values())
    if common:
        path = f"{INVENTORY}/group_vars/{GROUPS[0]}/connection.yml"
        found[path] = _text(["---", _head(run_id, say, 3), *_yaml("ansible_user", users.pop(), say["from_inventory"])])
    for host in proposal["hosts"]:
        own = {
            name: value for name, value in connections.get(host, {}).items() if not (common and name == "ansible_user")
        }
        # Such a name can't be one of a folder; Ansible would find no variables of it either.
        if own and conclude.path_name_problem(host, "host") is None:
            out = ["---", _head(run_id, say, 3)]
            for name, value in own.items():
                out += _yaml(name, value, say["from_inventory"])
            found[f"{INVENTORY}/host_vars/{host}/connection.yml"] = _text(out)
    return found


def _head(run_id: str, say: Mapping, depth: int) -> str:
    return f"# {say['head'].format(run_id, '../' * depth + TODO)}"


def _values(one: Mapping) -> list[str]:
    out: list[str] = []
    for name, entry in one["values"].items():
        out += _yaml(name, entry["value"], entry["source"])
    return out + [f"# {name}:{_comment(why)}" for name, why in one["unknown"].items()]


# ------------------------------------------------------------------------------------------------------- YAML


def _yaml(name: str, value: object, source: str) -> list[str]:
    """Return a variable as YAML with its source as a comment; mappings and lists of them as blocks."""
    if isinstance(value, Mapping) or (
        isinstance(value, list) and any(isinstance(one, (Mapping, list)) for one in value)
    ):
        return [f"{_key(name)}:{_comment(source)}", *_block(value, 2)]
    return [f"{_key(name)}: {_flow(value)}{_comment(source)}"]


def _block(value: object, indent: int) -> Iterator[str]:
    """Yield the lines of a mapping or list, each below the other; what is in neither stands behind its key."""
    pad = " " * indent
    if isinstance(value, Mapping):
        for key, entry in value.items():
            below = isinstance(entry, Mapping) and entry
            yield f"{pad}{_key(str(key))}:{'' if below else ' ' + _flow(entry)}"
            if below:
                yield from _block(entry, indent + 2)
        return
    for entry in value:  # type: ignore[attr-defined]
        if isinstance(entry, Mapping) and entry:
            first, *rest = _block(entry, indent + 2)
            yield from (f"{pad}- {first.lstrip()}", *rest)
        else:
            yield f"{pad}- {_flow(entry)}"


def _flow(value: object) -> str:
    # JSON is YAML, with every text quoted: no address, version or word is read as something else.
    return json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) and name.lower() not in _WORDS else json.dumps(name, ensure_ascii=False)


def _comment(text: str) -> str:
    return f"  # {_line(text)}" if text else ""


def _line(text: object) -> str:
    """Return a text as one printable line: a comment with a line break in it would be YAML."""
    return "".join(sign if sign.isprintable() else "?" for sign in " ".join(str(text).split()))


def _text(out: Iterable[str]) -> str:
    return "\n".join(out) + "\n"
