#!/usr/bin/python
# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: driver_plan_info
short_description: Tell what installing a driver's packages would change, and why it must not be done
version_added: 1.0.0
description:
  - Looks for the declared versions, simulates the one transaction that would install them, and returns every reason
    not to carry it out.
  - The repositories of O(sources) are read into a temporary directory, beside the lists that the host has. Nothing of
    the host is written, so that the answer in check mode, and before a repository is there, is that of the real run.
  - A host whose packages have the declared versions asks no repository.
author:
  - accel.cluster contributors (@accel-cluster)
extends_documentation_fragment:
  - accel.cluster.attributes
  - accel.cluster.attributes.info_module
options:
  packages:
    description:
      - Packages and their versions. One with a hyphen or an epoch is that of a package; another names a release of the
        driver, or is a pattern such as V(*.60304-*), and must fit exactly one version of the repository.
    type: dict
    required: true
  sources:
    description: Repositories to read besides those of the host, in the form of C(sources.list.d/*.sources).
    type: str
    default: ""
  own_file:
    description: File below C(/etc/apt/sources.list.d) that O(sources) stands for, and that is not read itself.
    type: path
    default: /etc/apt/sources.list.d/accel-driver.sources
  device_nodes:
    description: Patterns of the device nodes that no process may have open.
    type: list
    elements: str
    default: []
  downgrade_allowed:
    description: Whether a package may go back to an older version.
    type: bool
    default: false
  in_use_allowed:
    description: Whether packages may change while processes hold cards.
    type: bool
    default: false
  vendor:
    description:
      - Vendor of the driver. Without one, nothing is looked for that has its cards, and no fabric manager is chosen.
    type: str
    default: ""
  fabric_manager:
    description: Whether a fabric manager is needed; V(auto) lets the switches on the PCI bus tell.
    type: str
    choices: [auto, required, none]
    default: auto
  kernel_removal_allowed:
    description: Whether a kernel that would boot instead of a declared one may be removed.
    type: bool
    default: false
  reboot_allowed:
    description: Whether the node is rebooted afterwards, so that another driver may have its cards until then.
    type: bool
    default: false
  module_signed:
    description: Whether the module is signed with an enrolled key by other means than dkms, where Secure Boot is on.
    type: bool
    default: false
  timeout_seconds:
    description: How long one command may take before it counts as hung.
    type: int
    default: 120
seealso:
  - module: accel.cluster.driver_stack_info
"""

EXAMPLES = r"""
- name: Look before anything is touched
  accel.cluster.driver_plan_info:
    packages:
      libnvidia-ml1: 535.261.03
      nvidia-smi: 535.261.03
    device_nodes: ["/dev/nvidia[0-9]*"]
  register: plan
  failed_when: plan.refused | length > 0
"""

RETURN = r"""
versions:
  description:
    - The exact version of each package, as far as it was found. Where a kernel is declared, also that of the installed
      packages that would bring another one (linux-image-amd64).
  returned: always
  type: dict
  sample: {libnvidia-ml1: 535.261.03-1, nvidia-smi: 535.261.03-1}
changes:
  description: What the transaction would install, with all that the packages need; empty when all are as declared.
  returned: always
  type: list
  elements: str
  sample: ["nvidia-smi (none) -> 535.261.03-1"]
unheld:
  description: Packages of the set that are not held, or not installed yet.
  returned: always
  type: list
  elements: str
  sample: [nvidia-smi]
remove:
  description: Packages of kernels that would boot instead of a declared one, where they may be removed.
  returned: always
  type: list
  elements: str
  sample: [linux-image-6.1.0-57-amd64]
fabric_manager:
  description: The service of the fabric manager where the cards need one and the set has it, else empty.
  returned: always
  type: str
  sample: nvidia-fabricmanager
refused:
  description: Every reason not to do it, a sentence each.
  returned: always
  type: list
  elements: str
  sample: ["the repository does not have nvidia-smi 535.1; it has 535.261.03-1"]
"""

from dataclasses import asdict

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.accel.cluster.plugins.module_utils._accel import driver_plan, registry
from ansible_collections.accel.cluster.plugins.module_utils._accel.runner import Runner


def argument_spec() -> dict:
    return {
        "packages": {"type": "dict", "required": True},
        "sources": {"type": "str", "default": ""},
        "own_file": {"type": "path", "default": "/etc/apt/sources.list.d/accel-driver.sources"},
        "device_nodes": {"type": "list", "elements": "str", "default": []},
        "downgrade_allowed": {"type": "bool", "default": False},
        "in_use_allowed": {"type": "bool", "default": False},
        "vendor": {"type": "str", "default": ""},
        "fabric_manager": {"type": "str", "choices": ["auto", "required", "none"], "default": "auto"},
        "kernel_removal_allowed": {"type": "bool", "default": False},
        "reboot_allowed": {"type": "bool", "default": False},
        "module_signed": {"type": "bool", "default": False},
        "timeout_seconds": {"type": "int", "default": 120},
    }


def main() -> None:
    """Read and return; there is nothing to change."""
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    options = module.params
    wanted = driver_plan.Wanted(
        packages={str(name): str(version or "").strip() for name, version in options["packages"].items()},
        sources=options["sources"],
        own_file=options["own_file"],
        nodes=options["device_nodes"],
        downgrade_allowed=options["downgrade_allowed"],
        in_use_allowed=options["in_use_allowed"],
        vendor=options["vendor"] if options["vendor"] in registry.VENDORS else "",
        fabric_manager={"auto": None, "required": True, "none": False}[options["fabric_manager"]],
        kernel_removal_allowed=options["kernel_removal_allowed"],
        reboot_allowed=options["reboot_allowed"],
        module_signed=options["module_signed"],
    )
    try:
        plan = driver_plan.make(Runner(), wanted, options["timeout_seconds"])
    except OSError as error:
        module.fail_json(msg=f"the installation could not be planned: {error}")
    module.exit_json(changed=False, **asdict(plan))


if __name__ == "__main__":
    main()
