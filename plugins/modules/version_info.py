#!/usr/bin/python
# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: version_info
short_description: Tell which versions a host runs, from card firmware to container toolkit
version_added: 1.0.0
description:
  - Reads the firmware of the cards, driver, runtime (CUDA, ROCm, CANN and what other vendors have), collective library
    (NCCL, RCCL, HCCL, oneCCL), fabric manager, container toolkit, base image, kernel, operating system and Python, each
    with the file, command or package that told it.
  - What is not installed has no version and no source. What is there and could not be read has a source, no version,
    and a sentence in RV(errors).
  - The filter P(accel.cluster.odd_versions#filter) names the host that differs from the others.
author:
  - accel.cluster contributors (@accel-cluster)
extends_documentation_fragment:
  - accel.cluster.attributes
  - accel.cluster.attributes.info_module
options:
  observation:
    description:
      - What M(accel.cluster.accelerator_info) returned for this host, so that the cards are not asked once more.
      - The cards are asked when it is empty.
    type: dict
    default: {}
  vendors:
    description:
      - Vendors whose software to look for, such as V(nvidia), beside those whose cards the host has.
    type: list
    elements: str
    default: []
  timeout_seconds:
    description: How long one command may take before it counts as hung.
    type: int
    default: 10
seealso:
  - module: accel.cluster.accelerator_info
  - plugin: accel.cluster.odd_versions
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Read the versions of this host
  accel.cluster.version_info:
  register: versions

- name: Show what runs here
  ansible.builtin.debug:
    msg: "{{ versions.versions | items2dict(key_name='component', value_name='version') }}"
"""

RETURN = r"""
versions:
  description: One row a version, cards first.
  returned: always
  type: list
  elements: dict
  contains:
    component:
      description:
        - V(firmware), V(firmware_package), V(driver_kernel), V(driver_library), V(fabric_manager), V(cdi) (the driver
          that the device file of the container runtime was made with), V(runtime), V(collectives),
          V(container_toolkit), V(image) (what the node was installed from), V(kernel), V(os) or V(python).
      type: str
      returned: always
    name:
      description: The product, such as V(cuda) or V(nccl); the model of a card.
      type: str
      returned: always
    subject:
      description: Slot or address of a card; the path where several files tell several versions.
      type: str
      returned: always
    version:
      description: The version; V(none) when it is not installed or could not be read.
      type: str
      returned: always
    source:
      description: What told it, a file or a command; V(none) when it is not installed.
      type: str
      returned: always
  sample:
    - component: firmware
      name: NVIDIA H100 80GB HBM3
      subject: SXM1
      version: 96.00.74.00.01
      source: nvidia-smi 570.86.15
    - {component: driver_kernel, name: nvidia, subject: null, version: 570.86.15, source: /sys/module/nvidia/version}
    - component: driver_library
      name: nvidia
      subject:
      version: 570.86.15
      source: /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1
    - {component: fabric_manager, name: nvidia, subject: null, version: null, source: null}
    - {component: runtime, name: cuda, subject: null, version: 12.8.1, source: /usr/local/cuda/version.json}
    - {component: kernel, name: linux, subject: null, version: 6.1.0-28-amd64, source: /proc/sys/kernel/osrelease}
errors:
  description: What could not be read, and where sources disagree, in words.
  returned: always
  type: list
  elements: str
  sample: []
"""

import platform
import sys

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.accel.cluster.plugins.module_utils._accel import probe, versions
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import as_dict
from ansible_collections.accel.cluster.plugins.module_utils._accel.runner import Runner


def argument_spec() -> dict:
    return {
        "observation": {"type": "dict", "default": {}},
        "vendors": {"type": "list", "elements": "str", "default": []},
        "timeout_seconds": {"type": "int", "default": 10},
    }


def main() -> None:
    """Read and return; there is nothing to change."""
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    options = module.params
    if options["timeout_seconds"] < 1:
        module.fail_json(msg=f"timeout_seconds must be 1 or more, not {options['timeout_seconds']}")
    runner = Runner()
    errors = []
    observation = options["observation"]
    for key in ("devices", "unanswered", "drivers"):
        rows = observation.get(key) or []
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            module.fail_json(msg=f"observation: {key} must be a list of mappings, as accelerator_info returns it")
    if not observation:
        asked = probe.observe(
            runner, vendors=options["vendors"], timeout_seconds=options["timeout_seconds"], gather=["slots"]
        )
        observation, errors = as_dict(asked), list(asked.errors)
    told = versions.observe(
        runner,
        observation,
        (platform.python_version(), sys.executable),
        options["vendors"],
        options["timeout_seconds"],
    )
    module.exit_json(changed=False, versions=told["versions"], errors=list(dict.fromkeys([*errors, *told["errors"]])))


if __name__ == "__main__":
    main()
