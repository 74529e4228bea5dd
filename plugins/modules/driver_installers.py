#!/usr/bin/python
# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: driver_installers
short_description: Bring a driver to its declared version with the programs that install it
version_added: 1.0.0
description:
  - Runs programs such as the C(.run) files of vendors where the installed version is not the declared one, reads the
    version back afterwards and fails where it is another one.
  - Refuses before the first one runs, with every reason; a version that is not known, a wrong checksum, too little
    room, an older version, cards in use, a program that still runs, a program that was ended halfway.
  - A journal is there for as long as a program runs, and stays where it failed or was killed. Then it runs again only
    with O(repeat_allowed).
author:
  - accel.cluster contributors (@accel-cluster)
extends_documentation_fragment:
  - accel.cluster.attributes
  - accel.cluster.attributes.installers
options:
  device_nodes:
    description: Patterns of the device nodes that no process may have open.
    type: list
    elements: str
    default: []
  downgrade_allowed:
    description: Whether an older version may be installed over a newer one.
    type: bool
    default: false
  in_use_allowed:
    description: Whether programs may run while processes hold cards.
    type: bool
    default: false
  repeat_allowed:
    description: Whether a program that failed, or was ended halfway, may run again.
    type: bool
    default: false
  query_timeout_seconds:
    description: How long a command that tells a version may take.
    type: int
    default: 60
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    description: Shows the versions before and after.
seealso:
  - module: accel.cluster.driver_plan_info
  - module: accel.cluster.driver_stack_info
"""

EXAMPLES = r"""
- name: Install the driver of an Ascend node
  accel.cluster.driver_installers:
    installers:
      - name: driver
        file: /srv/Ascend-hdk-910b-npu-driver_25.2.0_linux-aarch64.run
        sha256: "{{ driver_sha256 }}"
        version: 25.2.0
        arguments: [--full, --install-for-all, --quiet]
        upgrade_arguments: [--upgrade, --quiet]
        version_file: /usr/local/Ascend/driver/version.info
    device_nodes: ["/dev/davinci[0-9]*"]
"""

RETURN = r"""
changes:
  description: What ran or would run, a sentence each.
  returned: always
  type: list
  elements: str
  sample: ["driver 24.1.0 -> 25.2.0: /srv/Ascend-hdk-910b-npu-driver_25.2.0_linux-aarch64.run --upgrade --quiet"]
versions:
  description: The installed version of each part; V(none) where nothing is installed.
  returned: always
  type: dict
  sample: {driver: 25.2.0}
refused:
  description: Every reason not to do it.
  returned: always
  type: list
  elements: str
  sample: []
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.accel.cluster.plugins.module_utils._accel import installers
from ansible_collections.accel.cluster.plugins.module_utils._accel.runner import Runner


def argument_spec() -> dict:
    """Return the options of the module."""
    strings = {"type": "list", "elements": "str"}
    one = {
        "name": {"type": "str", "required": True},
        "file": {"type": "path"},
        "sha256": {"type": "str"},
        "version": {"type": "str"},
        "arguments": {**strings, "default": []},
        "upgrade_arguments": {**strings, "default": []},
        "version_file": {"type": "str"},
        "version_command": strings,
        "version_pattern": {"type": "str"},
        "absent_pattern": {"type": "str"},
        "upgrade_first": {"type": "bool", "default": False},
        "success_statuses": {"type": "list", "elements": "int", "default": [0]},
        "target": {"type": "path", "default": "/usr/local"},
        "room_mib": {"type": "int", "default": 0},
        "builds_module": {"type": "bool", "default": False},
        "timeout_seconds": {"type": "int", "default": 1800},
    }
    return {
        "installers": {"type": "list", "elements": "dict", "options": one},
        "state_dir": {"type": "path", "default": installers.STATE_DIR},
        "device_nodes": {**strings, "default": []},
        "downgrade_allowed": {"type": "bool", "default": False},
        "in_use_allowed": {"type": "bool", "default": False},
        "repeat_allowed": {"type": "bool", "default": False},
        "query_timeout_seconds": {"type": "int", "default": 60},
    }


def main() -> None:
    """Plan, refuse, and only then run."""
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    options = module.params
    runner = Runner()
    wanted = installers.declared(options["installers"] or [])
    allowed = installers.Allowed(
        nodes=options["device_nodes"],
        downgrade=options["downgrade_allowed"],
        in_use=options["in_use_allowed"],
        repeat=options["repeat_allowed"],
    )
    seconds, folder = options["query_timeout_seconds"], options["state_dir"]
    plan = installers.plan(runner, wanted, allowed, seconds, folder)
    before = dict(plan.versions)
    result = {"changes": plan.changes, "versions": plan.versions, "refused": plan.refused}
    if plan.refused:
        module.fail_json(msg="nothing was run: " + "; ".join(plan.refused), **result)
    try:
        problem = "" if module.check_mode else installers.carry_out(runner, plan, seconds, folder)
    except OSError as error:
        module.fail_json(msg=f"a journal could not be kept: {error}", **result)
    if problem:
        module.fail_json(msg=problem, **result)
    after = {**before, **{one.installer.name: one.installer.version for one in plan.runs}}
    module.exit_json(changed=bool(plan.runs), diff={"before": _lines(before), "after": _lines(after)}, **result)


def _lines(versions: dict) -> str:
    return "".join(f"{name} {version or '(none)'}\n" for name, version in versions.items())


if __name__ == "__main__":
    main()
