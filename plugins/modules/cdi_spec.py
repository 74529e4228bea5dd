#!/usr/bin/python
# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cdi_spec
short_description: Write the file that hands the cards of a node to containers
version_added: 1.0.0
description:
  - Writes a file of the Container Device Interface (CDI) from the cards that M(accel.cluster.accelerator_info)
    returned, for vendors without a generator of their own and for sites that do without it.
  - A card can be asked for by number, by UUID (by serial where that is its own), by slot, and as C(all). Names that CDI
    does not take are written as it does; slot C(3) is C(slot-3), since C(3) is a card's number. A name that would mean
    two cards is given to neither; RV(left_out) says so.
  - Holds the nodes of each card, the nodes that all cards of the vendor share, and the vendor's libraries as they
    are on this node, under their full name and the one that programs ask for. The version is 0.5.0, which podman
    4.3 takes.
  - Partitions (MIG, vNPU) are not offered on their own.
  - Refuses where another file already defines one of the devices; two would make engines take neither, or hide one.
author:
  - accel.cluster contributors (@accel-cluster)
options:
  devices:
    description: What M(accel.cluster.accelerator_info) returned. Required with O(state=present).
    type: dict
  vendor:
    description: Vendor whose cards are offered.
    type: str
    required: true
  kind:
    description: What the cards are called, such as C(nvidia.com/gpu). The vendor's own kind when left out.
    type: str
  control_nodes:
    description: Device nodes that all cards share, beside those that the collection knows of the vendor.
    type: list
    elements: str
    default: []
  libraries:
    description: Names of libraries to hand over, beside those that the collection knows of the vendor.
    type: list
    elements: str
    default: []
  paths:
    description: Files and directories to hand over, beside those that the collection knows of the vendor.
    type: list
    elements: str
    default: []
  path:
    description: The file. C(/etc/cdi/accel-<vendor>.json) when left out.
    type: path
  state:
    description: Whether the file is there.
    type: str
    choices: [present, absent]
    default: present
attributes:
  check_mode:
    support: full
    description: Can run in check mode and tell what would change.
  diff_mode:
    support: full
    description: Shows the file before and after.
"""

EXAMPLES = r"""
- name: Ask the cards
  accel.cluster.accelerator_info:
  register: cards

- name: Offer them to containers
  accel.cluster.cdi_spec:
    vendor: ascend
    devices: "{{ cards }}"

- name: Leave it to the vendor's generator
  accel.cluster.cdi_spec:
    vendor: nvidia
    state: absent
"""

RETURN = r"""
path:
  description: The file.
  returned: always
  type: str
  sample: /etc/cdi/accel-ascend.json
names:
  description: Names by which devices can be asked for.
  returned: always
  type: list
  elements: str
  sample: ["huawei.com/npu=0", "huawei.com/npu=all"]
left_out:
  description: What is not offered, and why.
  returned: always
  type: list
  elements: str
  sample: ["0000:c1:00.0 has no device node"]
"""

import os
import tempfile

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.accel.cluster.plugins.module_utils._accel import cdi, registry
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import dicts_of
from ansible_collections.accel.cluster.plugins.module_utils._accel.runner import Runner
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors.base import ContainerAccess

MODE = 0o644


def argument_spec() -> dict:
    """Return the options of the module."""
    return {
        "devices": {"type": "dict"},
        "vendor": {"type": "str", "required": True},
        "kind": {"type": "str"},
        "control_nodes": {"type": "list", "elements": "str", "default": []},
        "libraries": {"type": "list", "elements": "str", "default": []},
        "paths": {"type": "list", "elements": "str", "default": []},
        "path": {"type": "path"},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    }


def access_of(options: dict) -> ContainerAccess:
    """Return what a container needs: as known of the vendor, and what the options add; ValueError without a kind."""
    vendor = options["vendor"]
    known = registry.VENDORS[vendor].container if vendor in registry.VENDORS else ContainerAccess()
    kind = options["kind"] or known.kind
    if not kind:
        raise ValueError(f"it is not known what cards of {vendor} are called in containers; kind must say it")
    return ContainerAccess(
        kind=kind,
        control_nodes=(*known.control_nodes, *options["control_nodes"]),
        libraries=(*known.libraries, *options["libraries"]),
        paths=(*known.paths, *options["paths"]),
        library_version=known.library_version,
    )


def build(runner, options: dict) -> tuple[dict, list[str]]:
    """Return the specification and what was left out; ValueError where there can be none."""
    access = access_of(options)
    devices = (options["devices"] or {}).get("devices")
    if not isinstance(devices, list):
        raise ValueError("devices is not what accelerator_info returns: its key 'devices' must be a list of cards")
    cards = [one for one in dicts_of(devices) if one.get("vendor") == options["vendor"]]
    drivers = dicts_of((options["devices"] or {}).get("drivers"))
    told = [one.get("kernel_version") for one in drivers if one.get("vendor") == options["vendor"]]
    versions = [*filter(None, told), *sorted({one["driver_version"] for one in cards if one.get("driver_version")})]
    nodes, mounts = cdi.find(runner, access)
    return cdi.build(access.kind, cards, nodes, mounts, str(versions[0]) if versions else None)


def refuse_doubles(runner, spec: dict, path: str) -> None:
    """Raise ValueError where another file defines the same devices, or may do so and can't be read."""
    mine = cdi.read(cdi.text_of(spec))
    for other in cdi.observe(runner)["files"]:
        if runner.realpath(other["path"]) == runner.realpath(path):
            continue
        if other["spec"] is None:
            if mine["kind"] in (runner.read(other["path"]) or ""):
                raise ValueError(f"{other['path']} may define {mine['kind']} too and can't be read: {other['problem']}")
            continue
        names = cdi.same_devices(mine, other["spec"])
        if names:
            raise ValueError(
                f"{other['path']} defines {mine['kind']} {', '.join(names[:5])} already: remove it, and stop what "
                "writes it, or leave the devices to it with state: absent here"
            )


def read(path: str) -> str | None:
    """Return the text of a file, None when there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            return handle.read()
    except FileNotFoundError:
        return None


def write(module: AnsibleModule, path: str, text: str) -> None:
    """Write a file whole or not at all; engines read the folder at any time."""
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o755, exist_ok=True)
    # Engines read nothing that ends like this.
    handle, temporary = tempfile.mkstemp(prefix=".accel-", suffix=".tmp", dir=folder)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(temporary, MODE)
    module.atomic_move(temporary, path)
    os.chmod(path, MODE)  # atomic_move keeps the mode that the old file had


def main() -> None:
    """Write or remove the file."""
    module = AnsibleModule(
        argument_spec=argument_spec(), required_if=[("state", "present", ["devices"])], supports_check_mode=True
    )
    options = module.params
    path = options["path"] or f"/etc/cdi/{cdi.OWN_PREFIX}{options['vendor']}.json"
    if not path.endswith(".json"):
        module.fail_json(msg=f"{path}: engines read JSON from files that end in .json only")
    runner = Runner()
    spec: dict = {}
    left_out: list[str] = []
    after = None
    try:
        before = read(path)
        if options["state"] == "present":
            spec, left_out = build(runner, options)
            refuse_doubles(runner, spec, path)
            after = cdi.text_of(spec)
        access = runner.access(path)
        changed = before != after or (after is not None and access is not None and access[0] != MODE)
        if changed and not module.check_mode:
            if after is None:
                os.unlink(path)
            else:
                write(module, path, after)
    except (OSError, ValueError) as exc:
        module.fail_json(msg=str(exc), path=path)
    module.exit_json(
        changed=changed,
        path=path,
        names=[f"{spec['kind']}={one['name']}" for one in spec.get("devices", [])],
        left_out=left_out,
        diff={"before": before or "", "after": after or "", "before_header": path, "after_header": path},
    )


if __name__ == "__main__":
    main()
