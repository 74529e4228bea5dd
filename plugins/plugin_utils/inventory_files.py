# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This plugin util is PRIVATE to the collection: its names may change in any release.
"""What only the files of an inventory show: lines, keys written twice, files nobody reads.

The files are read as text, not as Ansible loads them: a loaded value no longer tells whether it
was encrypted, and of a key written twice only the last value is left.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
from dataclasses import dataclass, field

import yaml
from ansible.plugins.inventory import detect_range, expand_hostname_range
from ansible_collections.accel.cluster.plugins.module_utils._accel.contract import GROUP, HOST, Complaint, Mention

# libyaml's loader is ten times faster; both only build nodes here, so unknown tags do no harm.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_YAML = (".yml", ".yaml", ".json")
VAULT_HEADER = "$ANSIBLE_VAULT;"
_LARGEST = 1 << 20

# Order of precedence, lowest first, of what a host's variable can be defined in (Ansible's own order).
_INVENTORY_GROUP, _ALL_FILE, _GROUP_FILE, _INVENTORY_HOST, _HOST_FILE = range(5)


@dataclass
class Definition:
    """A variable as one file defines it. ``node`` is a YAML node, or the text of an INI value."""

    name: str
    node: object
    file: str
    line: int
    kind: str = ""  # GROUP, HOST or "" where the file does not tell
    owner: str = ""
    rank: int = _INVENTORY_GROUP

    @functools.cached_property
    def place(self) -> str:
        """Return where it stands, as ``file:line``."""
        return f"{shorter(self.file)}:{self.line}"

    @property
    def subject(self) -> str:
        """Return the group or host that it belongs to."""
        return f"{'group ' if self.kind == GROUP else ''}{self.owner}" if self.owner else "inventory"


@dataclass
class InventoryFiles:
    """Everything that was read from the files of all inventory sources."""

    texts: dict[str, str] = field(default_factory=dict)  # path -> text, of files that are not encrypted as a whole
    definitions: list[Definition] = field(default_factory=list)
    group_files: list[Mention] = field(default_factory=list)
    host_files: list[Mention] = field(default_factory=list)
    complaints: list[Complaint] = field(default_factory=list)
    stands: dict[tuple[str, str], str] = field(default_factory=dict)  # (GROUP or HOST, name) -> first place

    def places(self, host: str, groups: list[str]) -> dict[str, Definition]:
        """Return for each variable of a host the definition that holds; ``groups`` from general to special."""
        order = {name: position for position, name in enumerate(groups)}
        found: dict[str, tuple[tuple[int, int], Definition]] = {}
        for one in self.definitions:
            if one.kind == HOST and one.owner == host:
                weight = (one.rank, 0)
            elif one.kind == GROUP and one.owner in order:
                weight = (one.rank, order[one.owner])
            else:
                continue
            if one.name not in found or found[one.name][0] <= weight:
                found[one.name] = (weight, one)
        return {name: one for name, (_weight, one) in found.items()}

    def variables(self) -> list[Mention]:
        """Return every variable that the files define, with its place and owner."""
        return [Mention(one.name, one.place, one.subject) for one in self.definitions]


def shorter(path: str) -> str:
    """Return a path as a person would write it: relative when it lies below the current directory."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def inventory_sources(sources: list[str]) -> list[str]:
    """Return the inventory files behind ``-i``; a directory's files as Ansible takes them, host lists left out."""
    # Not imported at the top: the pattern is Ansible's own and private enough to fail late rather than always.
    from ansible.inventory.manager import IGNORED

    found: list[str] = []
    for source in sources:
        if os.path.isdir(source):
            names = [name for name in sorted(os.listdir(source)) if not IGNORED.search(os.fsencode(name))]
            found += inventory_sources([os.path.join(source, name) for name in names])
        elif os.path.isfile(source):
            found.append(os.path.abspath(source))
    return found


def read(sources: list[str]) -> InventoryFiles:
    """Read the files of all sources and of the ``group_vars`` and ``host_vars`` beside them."""
    found = InventoryFiles()
    folders: list[str] = []
    for path in inventory_sources(sources):
        _read_file(found, path, "", "", _INVENTORY_GROUP)
    for source in sources:
        if "," in source or not os.path.exists(source):
            continue
        base = os.path.abspath(source if os.path.isdir(source) else os.path.dirname(os.path.abspath(source)))
        if base not in folders:
            folders.append(base)
            _read_vars(found, os.path.join(base, "group_vars"), GROUP)
            _read_vars(found, os.path.join(base, "host_vars"), HOST)
    _twice_in_files(found)
    return found


def _read_vars(found: InventoryFiles, folder: str, kind: str) -> None:
    """Read ``group_vars`` or ``host_vars``: files and folders that bear the name of a group or host."""
    mentions = found.group_files if kind == GROUP else found.host_files
    entries = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    folders = [entry for entry in entries if os.path.isdir(os.path.join(folder, entry))]
    for entry in entries:
        if entry.startswith(".") or entry.endswith("~"):
            continue
        path = os.path.join(folder, entry)
        stem, extension = os.path.splitext(entry)
        owner = stem if entry not in folders and extension in _YAML else entry
        mentions.append(Mention(owner, shorter(path)))
        if entry not in folders and owner in folders:
            problem = f"nothing reads it, for there is a folder {owner} beside it"
            accepted = f"its variables in a file in {shorter(os.path.join(folder, owner))}"
            found.complaints.append(Complaint([shorter(path)], problem, accepted))
        rank = _HOST_FILE if kind == HOST else _ALL_FILE if owner == "all" else _GROUP_FILE
        for file in _files_below(path):
            _read_file(found, file, kind, owner, rank)


def _files_below(path: str) -> list[str]:
    if os.path.isfile(path):
        return [path]
    found: list[str] = []
    for name in sorted(os.listdir(path)) if os.path.isdir(path) else []:
        if not name.startswith(".") and not name.endswith("~"):
            found += _files_below(os.path.join(path, name))
    return found


def _read_file(found: InventoryFiles, path: str, kind: str, owner: str, rank: int) -> None:
    """Read one file; kind, owner and rank tell whose variables it holds, kind "" is an inventory file."""
    try:
        with open(path, "rb") as handle:
            raw = handle.read(_LARGEST)
    except OSError as exc:
        found.complaints.append(Complaint([shorter(path)], f"can't be read: {exc.strerror}", "a readable file"))
        return
    text = raw.decode("utf-8", "replace")
    if text.startswith(VAULT_HEADER):
        return
    found.texts[path] = text
    extension = os.path.splitext(path)[1]
    script = not kind and (text.startswith("#!") or os.access(path, os.X_OK)) and extension not in _YAML
    if not script:
        _read_text(found, path, text, extension, (kind, owner, rank))


def _read_text(found: InventoryFiles, path: str, text: str, extension: str, whose: tuple[str, str, int]) -> None:
    kind, owner, rank = whose
    if not kind and extension in (".ini", ".cfg", ".toml"):
        _ini(found, path, text, extension == ".toml")
        return
    try:
        roots = [node for node in yaml.compose_all(text, Loader=LOADER) if node is not None]
    except yaml.YAMLError as exc:
        if kind or extension in _YAML:
            mark = getattr(exc, "problem_mark", None)
            # The error's own text quotes the line, which may hold a secret.
            place = f"{shorter(path)}:{mark.line + 1}" if mark else shorter(path)
            found.complaints.append(Complaint([place], "is no YAML that can be read", "a mapping of variables"))
        else:
            _ini(found, path, text, False)
        return
    mappings = [node for node in roots if isinstance(node, yaml.MappingNode)]
    if not kind and not mappings and extension not in _YAML:
        _ini(found, path, text, False)
        return
    for root in mappings:
        _twice(found, path, root, owner if kind != GROUP else f"group {owner}")
        if kind:
            # A leftover (vars.yml.bak) is read by nobody, but the secrets in it are in clear all the same.
            read_by_ansible = extension in ("", *_YAML)
            for key, value in pairs_of(root):
                one = Definition(key.value, value, path, line_of(key), kind, owner, rank)
                found.definitions.append(one if read_by_ansible else Definition(key.value, value, path, line_of(key)))
        elif any(key.value == "plugin" for key, _value in pairs_of(root)):
            found.definitions += [Definition(key.value, value, path, line_of(key)) for key, value in pairs_of(root)]
        else:
            for key, value in pairs_of(root):
                _group(found, path, key, value)


def _group(found: InventoryFiles, path: str, group: yaml.ScalarNode, node: object) -> None:
    """Read a group of a YAML inventory file: the variables of itself and of its hosts, and its child groups."""
    found.stands.setdefault((GROUP, group.value), f"{shorter(path)}:{line_of(group)}")
    for key, value in pairs_of(node):
        if key.value == "vars":
            for variable, content in pairs_of(value):
                one = Definition(variable.value, content, path, line_of(variable), GROUP, group.value)
                found.definitions.append(one)
        elif key.value == "hosts":
            for host, variables in pairs_of(value):
                _host(found, path, host.value, line_of(host))
                for variable, content in pairs_of(variables):
                    _host_variable(found, path, host.value, (variable.value, content, line_of(variable)))
        elif key.value == "children":
            for child, content in pairs_of(value):
                _group(found, path, child, content)


def _host(found: InventoryFiles, path: str, pattern: str, line: int) -> None:
    for host in _expanded(pattern):
        found.stands.setdefault((HOST, host), f"{shorter(path)}:{line}")


def _host_variable(found: InventoryFiles, path: str, pattern: str, variable: tuple[str, object, int]) -> None:
    name, content, line = variable
    for host in _expanded(pattern):
        found.definitions.append(Definition(name, content, path, line, HOST, host, _INVENTORY_HOST))


def _ini(found: InventoryFiles, path: str, text: str, toml: bool) -> None:
    """Read an INI inventory; of TOML only names and values, which is enough for secrets."""
    section, part = "ungrouped", ""
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        heading = re.match(r"^\[([^:\]]+)(?::(\w+))?\]", stripped)
        if heading:
            section, part = heading[1], heading[2] or ""
            found.stands.setdefault((GROUP, section), f"{shorter(path)}:{number}")
        elif not stripped or stripped[0] in "#;":
            continue
        elif toml or part == "vars":
            name, equals, value = stripped.partition("=")
            if equals:
                whose = ("", "") if toml else (GROUP, section)
                found.definitions.append(Definition(name.strip(), _unquoted(value), path, number, *whose))
        elif part == "":
            try:
                host, *assignments = shlex.split(stripped, comments=True)
            except ValueError:
                continue  # Ansible itself refuses such a line and says so
            _host(found, path, host, number)
            for assignment in assignments:
                name, equals, value = assignment.partition("=")
                if equals:
                    _host_variable(found, path, host, (name, _unquoted(value), number))


def _unquoted(value: str) -> str:
    word = value.strip()
    return word[1:-1] if len(word) > 1 and word[0] == word[-1] and word[0] in "\"'" else word


def _expanded(host: str) -> list[str]:
    """Return the hosts that a pattern such as gpu-[01:04] stands for."""
    try:
        return list(expand_hostname_range(host)) if detect_range(host) else [host]
    except Exception:  # a range that Ansible refuses too; its message says so
        return [host]


# YAML nodes


def pairs_of(node: object) -> list[tuple[yaml.ScalarNode, yaml.Node]]:
    """Return the keys and values of a mapping; keys that are no scalars name nothing and are left out."""
    if not isinstance(node, yaml.MappingNode):
        return []
    return [(key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode)]


def line_of(node: yaml.Node) -> int:
    return node.start_mark.line + 1


def _twice(found: InventoryFiles, path: str, root: yaml.Node, subject: str) -> None:
    """Complain about keys that stand twice in one mapping: the last one wins, silently or with a mere warning."""
    waiting, visited = [root], set()
    while waiting:
        node = waiting.pop()
        if id(node) in visited or isinstance(node, yaml.ScalarNode):
            continue
        visited.add(id(node))  # an alias may lead back to where it stands
        first: dict[tuple[str, str], int] = {}
        for key, _value in pairs_of(node):
            written = (key.tag, key.value)
            if written in first:
                problem = f"{key.value} stands twice in one mapping, first in line {first[written]}"
                place = f"{shorter(path)}:{line_of(key)}"
                found.complaints.append(Complaint([subject or "inventory"], problem, "each key once", place=place))
            first.setdefault(written, line_of(key))
        children = [value for _key, value in node.value] if isinstance(node, yaml.MappingNode) else node.value
        waiting += reversed(children)


def _twice_in_files(found: InventoryFiles) -> None:
    """Complain about a variable that two files of one group or host define: the last file wins, silently."""
    first: dict[tuple[str, str, str, str], Definition] = {}
    for one in found.definitions:
        if not one.owner or one.rank in (_INVENTORY_GROUP, _INVENTORY_HOST):
            continue
        key = (one.kind, one.owner, one.name, _vars_folder(one.file))
        known = first.setdefault(key, one)
        if known.file != one.file:
            problem = f"{one.name} is defined in {known.place} too"
            accepted = "one file for each variable"
            found.complaints.append(Complaint([one.subject], problem, accepted, one.name, one.place))


def _vars_folder(path: str) -> str:
    """Return the part of a path up to ``group_vars`` or ``host_vars``: each source may have its own."""
    return re.split(r"/(?=(?:group|host)_vars/)", path)[0]
