#!/usr/bin/python
# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: baseline_info
short_description: Read the operating system baseline of a node
version_added: 1.0.0
description:
  - Reads what is in force now, not what a file says; kernel parameters, limits that a service gets, clock, packages,
    time zone and huge page policy.
  - Changes nothing. What could not be read is V(none), with the reason in RV(errors).
author:
  - accel.cluster contributors (@accel-cluster)
options:
  kernel_parameters:
    description: Names of the kernel parameters to read, such as V(vm.swappiness).
    type: list
    elements: str
    default: []
  packages:
    description: Names of the packages to look for.
    type: list
    elements: str
    default: []
  timeout_seconds:
    description: Time limit of each command.
    type: int
    default: 10
attributes:
  check_mode:
    support: full
    description: Reads only, so it does the same in check mode.
  diff_mode:
    support: none
    description: Changes nothing, so there is no difference to show.
"""

EXAMPLES = r"""
- name: Read limits, clock and two kernel parameters
  accel.cluster.baseline_info:
    kernel_parameters: [vm.swappiness, net.core.somaxconn]
    packages: [chrony]
  register: baseline
"""

RETURN = r"""
kernel_parameters:
  description: Value of each parameter asked for as the kernel tells it, V(none) when it has no such parameter.
  returned: always
  type: dict
  sample: {"vm.swappiness": "10"}
limits:
  description: Soft limits of a service that systemd starts now; empty when they could not be read.
  returned: always
  type: dict
  sample: {"nofile": 1048576, "memlock_kib": "unlimited"}
clock:
  description: What chrony says of the clock, V(none) when it did not answer.
  returned: always
  type: dict
  sample: {"reference": "10.0.0.1", "stratum": 9, "offset_milliseconds": 0.02, "synchronised": true, "local": false}
packages:
  description: Version of each package asked for that is installed.
  returned: always
  type: dict
  sample: {"chrony": "4.3-2+deb12u1"}
time_zone:
  description: Name of the time zone, V(none) when C(/etc/localtime) is no link into the zone database.
  returned: always
  type: str
  sample: Etc/UTC
transparent_hugepages:
  description: Policy in force.
  returned: always
  type: str
  sample: madvise
errors:
  description: What could not be read, and why.
  returned: always
  type: list
  elements: str
  sample: []
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.accel.cluster.plugins.module_utils._accel import baseline
from ansible_collections.accel.cluster.plugins.module_utils._accel.runner import Runner


def main() -> None:
    """Read and return; there is nothing to change."""
    module = AnsibleModule(
        argument_spec={
            "kernel_parameters": {"type": "list", "elements": "str", "default": []},
            "packages": {"type": "list", "elements": "str", "default": []},
            "timeout_seconds": {"type": "int", "default": 10},
        },
        supports_check_mode=True,
    )
    observed = baseline.observe(
        Runner(),
        module.params["kernel_parameters"],
        module.params["packages"],
        module.params["timeout_seconds"],
    )
    module.exit_json(changed=False, **observed)


if __name__ == "__main__":
    main()
