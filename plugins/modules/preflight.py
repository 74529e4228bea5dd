#!/usr/bin/python
# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: preflight
short_description: Refuse a bad inventory before any host is touched
version_added: 1.0.0
description:
  - Judges everything that the inventory declares, for all of its hosts, whatever C(--limit) says, and returns all
    complaints at once.
  - Each complaint names the host or group, file and line, the variable, its wrong value and the form that is accepted.
  - Reads the inventory files themselves to find keys that stand twice, files that nothing reads, and secrets in clear.
    Secrets are accepted from ansible-vault, from a lookup, or from a variable made of these. Values are never shown.
  - Types and choices come from the argument specifications of the collection's roles.
  - Runs on the controller only and asks no host. Run it once, with C(run_once).
author:
  - accel.cluster contributors (@accel-cluster)
options:
  scope:
    description:
      - What is judged. V(command_line) is only what this run was given with C(-e), for playbooks that must speak of
        hosts whose inventory is wrong.
    type: str
    choices: [inventory, command_line]
    default: inventory
attributes:
  check_mode:
    support: full
    description: Can run in check mode; then the site directory is looked at and not made.
  diff_mode:
    support: none
    description: Changes nothing that could be shown.
  action:
    support: full
    description: Runs on the controller; nothing is sent to a host.
notes:
  - Makes the site directory (C(cluster_site_dir)) and removes again what it writes there to try it; not with
    O(scope=command_line).
  - An inventory that is a script or a plugin is asked once more.
"""

EXAMPLES = r"""
- name: Refuse a bad inventory
  hosts: localhost:all
  gather_facts: false
  tasks:
    - name: Judge all that is declared
      accel.cluster.preflight:
      run_once: true
"""

RETURN = r"""
complaints:
  description: What is wrong, in the order of the message. Empty when the inventory is sound.
  returned: always
  type: list
  elements: dict
  contains:
    subjects:
      description: Hosts, groups or files that it is about.
      type: list
      elements: str
    variable:
      description: Variable that it is about, or an empty text.
      type: str
    problem:
      description: What is wrong.
      type: str
    accepted:
      description: The form that is accepted.
      type: str
    suggestion:
      description: What was probably meant, or an empty text.
      type: str
    place:
      description: File and line where it stands, or an empty text.
      type: str
    message:
      description: All of it as one line.
      type: str
  sample:
    - subjects: [gpu-01, gpu-02]
      variable: cluster_accelerator_count
      problem: cluster_accelerator_count is "eight"
      accepted: a whole number from 0 to 128, such as 8
      suggestion: "8"
      place: inventories/lab/group_vars/h100_nodes/cluster.yml:4
      message: >-
        gpu-01, gpu-02 (inventories/lab/group_vars/h100_nodes/cluster.yml:4): cluster_accelerator_count is "eight";
        accepted: a whole number from 0 to 128, such as 8; did you mean 8?
notes:
  description: What is worth knowing and refuses nothing.
  returned: always
  type: list
  elements: str
  sample: ["group gateway_nodes is not declared, so nothing is set up for it"]
msg:
  description: The complaints as a numbered list.
  returned: always
  type: str
"""
