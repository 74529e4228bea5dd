#!/usr/bin/python
# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: driver_stack_info
short_description: Read the driver stack of a node and try whether it could be upgraded
version_added: 1.0.0
description:
  - Reads what belongs together with a vendor's driver; the loaded kernel module, its file for each kernel, the
    libraries, the fabric manager, the device file of containers (CDI), and the packages of the set with their holds.
  - Tries whether apt would upgrade these packages. It is offered a newer version of each, in a temporary directory and
    as a simulation, with the preferences and holds of the host; nothing of the host is written. A control without them
    must upgrade every package, else the trial has shown nothing.
  - What could not be read is V(none) or C(unknown), with the reason in RV(errors).
  - The filter P(accel.cluster.judge_driver_stack#filter) judges it.
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
    description: Names of the packages of the set.
    type: list
    elements: str
    default: []
  installers:
    description:
      - Parts of the driver that programs installed, as M(accel.cluster.driver_installers) has them. Read are the
        version that is installed, a journal that was left, and which package has the file that tells the version.
    type: list
    elements: dict
    default: []
  observation:
    description:
      - What M(accel.cluster.accelerator_info) returned for this host. What the vendor's tool told of driver and library
        is taken from it where no file tells it.
    type: dict
    default: {}
  timeout_seconds:
    description: How long one command may take before it counts as hung.
    type: int
    default: 30
seealso:
  - module: accel.cluster.version_info
  - plugin: accel.cluster.judge_driver_stack
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Read the driver stack
  accel.cluster.driver_stack_info:
    vendor: nvidia
    packages: [libnvidia-ml1, nvidia-smi, nvidia-kernel-dkms]
  register: driver_stack

- name: Show what apt would upgrade in spite of holds and preferences
  ansible.builtin.debug:
    msg: "{{ driver_stack.lock.trial.upgraded }}"
"""

RETURN = r"""
vendor:
  description: The vendor asked for.
  returned: always
  type: str
  sample: nvidia
shared_kernel:
  description: Whether this host is a container, which shares its machine's kernel.
  returned: always
  type: bool
  sample: false
versions:
  description:
    - Rows as M(accel.cluster.version_info) has them, of kernel module, library, fabric manager and device file.
  returned: always
  type: list
  elements: dict
  sample:
    - {component: driver_kernel, name: nvidia, subject: null, version: 535.261.03, source: /sys/module/nvidia/version}
module:
  description: Name of the module, whether it is loaded, and drivers that have its cards or are loaded in its place.
  returned: always
  type: dict
  sample: {name: nvidia, loaded: true, wrong: []}
kernels:
  description:
    - The running kernel (V(none) in a container), that of the next boot (V(none) when it is not known), for each kernel
      whether the module has a file (C(present), C(absent), C(unknown)), of which version and signed by whom, and what
      dkms has of it. V(none) in a container in which no kernel is installed.
  returned: always
  type: dict
  sample:
    running: 6.1.0-28-amd64
    next: 6.1.0-28-amd64
    modules: {6.1.0-28-amd64: {state: present, version: 535.261.03, signer: DKMS module signing key}}
    dkms: [{module: nvidia-current, version: 535.261.03, kernel: 6.1.0-28-amd64, state: installed}]
fabric_manager:
  description:
    - Switches on the bus (V(none) when it could not be read), the service, its state (that of systemd, or C(absent)),
      what it said last where it does not run, and its version where it refuses the driver's. V(none) for a vendor
      without one.
  returned: always
  type: dict
  sample: {switches: 4, service: nvidia-fabricmanager, state: active, log: "", refused: null}
package_manager:
  description: V(apt), V(rpm) or V(none).
  returned: always
  type: str
  sample: apt
packages:
  description:
    - Those of the set that are installed, with the hold (V(none) where it is not known); V(none) when nothing told.
  returned: always
  type: list
  elements: dict
  sample:
    - {name: nvidia-smi, version: 535.261.03-1, held: true}
kernel_metas:
  description: Installed packages that would bring another kernel, and their versions, where the set has a kernel.
  returned: always
  type: dict
  sample: {linux-image-amd64: 6.1.176-1}
broken:
  description: Packages that are half installed, of the whole host.
  returned: always
  type: list
  elements: dict
  sample: []
changes:
  description: What brought the installed version of a package, by name, as far as apt's history reaches.
  returned: always
  type: dict
  sample: {nvidia-smi: {version: 535.261.03-1, by: unattended-upgrade 2025-03-11, at: "2025-03-11 06:21:40"}}
lock:
  description:
    - Whether unattended-upgrades is installed, its blacklist (V(none) when it could not be read), and what came of the
      trial. Its C(state) is C(refused), C(upgraded) or C(unknown) with a C(problem); C(unpinned) are the packages whose
      version no preference keeps. V(none) without apt.
  returned: always
  type: dict
  sample:
    unattended_upgrades: true
    blacklist: ["nvidia-"]
    trial: {state: refused, upgraded: [], removed: [], unpinned: [], problem: "", evidence: []}
installers:
  description:
    - Parts that programs installed, with the version (V(none) where nothing is installed) or the C(problem) that
      kept it from being read, what the journal of an C(unfinished) one says, and the package that is the
      C(owner) of the file that tells the version (empty where there is none, V(none) where that is not known).
  returned: always
  type: list
  elements: dict
  sample:
    - {name: driver, version: 25.2.0, problem: "", unfinished: "", owner: ""}
errors:
  description: What could not be read, and why.
  returned: always
  type: list
  elements: str
  sample: []
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.accel.cluster.plugins.module_utils._accel import installers, registry, stack
from ansible_collections.accel.cluster.plugins.module_utils._accel.runner import Runner


def argument_spec() -> dict:
    return {
        "vendor": {"type": "str", "required": True},
        "packages": {"type": "list", "elements": "str", "default": []},
        "installers": {"type": "list", "elements": "dict", "default": []},
        "observation": {"type": "dict", "default": {}},
        "timeout_seconds": {"type": "int", "default": 30},
    }


def main() -> None:
    """Read and return; there is nothing to change."""
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    options = module.params
    vendor = options["vendor"].lower()
    if vendor not in registry.VENDORS:
        module.fail_json(msg=f"vendor {vendor!r} is not known; known are {', '.join(registry.VENDORS)}")
    if options["timeout_seconds"] < 1:
        module.fail_json(msg=f"timeout_seconds must be 1 or more, not {options['timeout_seconds']}")
    seconds = options["timeout_seconds"]
    wanted = installers.declared(options["installers"])
    seen = stack.observe(Runner(), vendor, options["packages"], options["observation"], seconds, wanted)
    module.exit_json(changed=False, **seen)


if __name__ == "__main__":
    main()
