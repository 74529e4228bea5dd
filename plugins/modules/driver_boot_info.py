#!/usr/bin/python
# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: driver_boot_info
short_description: Tell whether a node needs a reboot for its driver, and whether the next boot would bring it
version_added: 1.0.0
description:
  - Reads which module of the driver is loaded, which kernel runs and which boots next, and whether that one has the
    module of the declared version; from grubby, GRUB's menu or /boot, and from the files of the module.
  - RV(needed) says why a reboot is needed, RV(refused) why it must not be done, with every reason.
author:
  - accel.cluster contributors (@accel-cluster)
extends_documentation_fragment:
  - accel.cluster.attributes
  - accel.cluster.attributes.info_module
options:
  vendor:
    description: Vendor of the driver, such as V(nvidia).
    type: str
    required: true
  packages:
    description: Names of the packages of the set; those of kernels (linux-image-6.1.0-50-amd64) say which may run.
    type: list
    elements: str
    default: []
  driver_version:
    description: Declared version of the driver; empty does not judge it.
    type: str
    default: ""
  device_nodes:
    description: Patterns of the device nodes that no process may have open when the node is rebooted.
    type: list
    elements: str
    default: []
  timeout_seconds:
    description: How long one command may take before it counts as hung.
    type: int
    default: 30
seealso:
  - module: accel.cluster.driver_stack_info
  - module: accel.cluster.driver_plan_info
"""

EXAMPLES = r"""
- name: Ask what the next boot would bring
  accel.cluster.driver_boot_info:
    vendor: nvidia
    packages: [nvidia-kernel-dkms, linux-image-6.1.0-50-amd64]
    driver_version: 535.261.03
  register: boot
  failed_when: boot.needed | length > 0 and boot.refused | length > 0
"""

RETURN = r"""
needed:
  description: Why a reboot is needed; empty when none is.
  returned: always
  type: list
  elements: str
  sample: ["kernel 6.1.0-47-amd64 runs, 6.1.0-50-amd64 is declared"]
refused:
  description: Why it must not be done; empty when none is needed.
  returned: always
  type: list
  elements: str
  sample: ["kernel 6.1.0-50-amd64 boots next and has no module of the driver"]
unbuilt:
  description:
    - Kernels without the module though a package of the set builds it. Of the declared ones, or where none is declared,
      that of the next boot.
  returned: always
  type: list
  elements: str
  sample: []
loaded:
  description: Whether the module is loaded.
  returned: always
  type: bool
  sample: true
version:
  description: Version of the loaded module, V(none) where nothing tells it.
  returned: always
  type: str
  sample: 535.261.03
taken:
  description: Cards that another driver has, by its name.
  returned: always
  type: dict
  sample: {nouveau: ["0000:18:00.0"]}
shared_kernel:
  description: Whether this host is a container.
  returned: always
  type: bool
  sample: false
kernels:
  description: As M(accel.cluster.driver_stack_info) returns them.
  returned: always
  type: dict
  sample:
    running: 6.1.0-47-amd64
    next: 6.1.0-50-amd64
    modules: {6.1.0-50-amd64: {state: present, version: 535.261.03, signer: null}}
    dkms: []
errors:
  description: What could not be read, and why.
  returned: always
  type: list
  elements: str
  sample: []
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.accel.cluster.plugins.module_utils._accel import boot, driver_plan, registry
from ansible_collections.accel.cluster.plugins.module_utils._accel.runner import Runner


def argument_spec() -> dict:
    return {
        "vendor": {"type": "str", "required": True},
        "packages": {"type": "list", "elements": "str", "default": []},
        "driver_version": {"type": "str", "default": ""},
        "device_nodes": {"type": "list", "elements": "str", "default": []},
        "timeout_seconds": {"type": "int", "default": 30},
    }


def main() -> None:
    """Read and return; there is nothing to change."""
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    options = module.params
    vendor = options["vendor"].lower()
    if vendor not in registry.VENDORS:
        module.fail_json(msg=f"vendor {vendor!r} is not known; known are {', '.join(registry.VENDORS)}")
    runner = Runner()
    seen = boot.observe(runner, vendor, options["timeout_seconds"])
    needed, refused = boot.decide(seen, options["driver_version"], options["packages"])
    unbuilt = boot.unbuilt(seen, options["packages"])
    if needed:
        # Packages may change under a job that is told so; a reboot ends it.
        busy = driver_plan.in_use(runner, options["device_nodes"], allowed=False)
        refused += [one.replace(", or set driver_in_use_allowed", "") for one in busy]
    module.exit_json(changed=False, needed=needed, refused=refused, unbuilt=unbuilt, **seen)


if __name__ == "__main__":
    main()
