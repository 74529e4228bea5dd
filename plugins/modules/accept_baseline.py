#!/usr/bin/python
# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This is a documentation stub: the work is done by the action plugin of the same name.

from __future__ import annotations

DOCUMENTATION = r"""
module: accept_baseline
short_description: Accept records as the baseline of a site
version_added: 1.0.0
description:
  - Compares the records of all hosts with the accepted baselines, together, so that a card that went to another host
    has moved instead of being missing here and new there.
  - Where there is a difference, shows it and asks for a reason; with a reason, writes the baselines that changed and
    appends what happened to the history of the site.
  - Refuses a host that is not sound, because a baseline is not learned from a broken host. Fewer or more cards answer
    than are declared, a card does not answer, a card has no slot name, two hosts report one card. Nothing is written
    then.
  - A run that is killed while it writes leaves its plan, C(acceptance.json), in the directory of the site. The next run
    completes it before it compares, so baselines and history always come to tell the same.
  - Works on files of the controller and connects to no host. Run it once, not once a host.
author:
  - accel.cluster contributors (@accel-cluster)
extends_documentation_fragment:
  - accel.cluster.attributes
attributes:
  check_mode:
    support: full
    details:
      - Shows the difference without asking for a reason, and writes nothing.
  diff_mode:
    support: full
options:
  kind:
    description: What is accepted.
    type: str
    choices: [slots]
    default: slots
  site_dir:
    description:
      - Directory of the site. The baselines are in C(baselines/slots), the history is C(history.jsonl).
    type: path
    required: true
  hosts:
    description: Hosts that should have given a record. One that did not is named and its baseline left alone.
    type: list
    elements: str
    required: true
  records:
    description: Record of each host that gave one, by host, as M(accel.cluster.accelerator_slots) returns it.
    type: dict
    required: true
  declared_counts:
    description:
      - How many cards each host is declared to have, by host. A host without a number is refused.
      - A host that is declared to have none need not give a record.
    type: dict
    default: {}
  reason:
    description: Why the difference is right. Needed when there is one.
    type: str
    default: ""
  by:
    description: Who accepts; the login name of the user on the controller when it is not given.
    type: str
seealso:
  - module: accel.cluster.accelerator_slots
"""

EXAMPLES = r"""
- name: Accept the cards as they are
  accel.cluster.accept_baseline:
    site_dir: "{{ cluster_site_dir }}"
    hosts: [gpu-01, gpu-02]
    records:
      gpu-01: "{{ hostvars['gpu-01'].recorded.record }}"
      gpu-02: "{{ hostvars['gpu-02'].recorded.record }}"
    declared_counts: {gpu-01: 8, gpu-02: 8}
    reason: "{{ accept_reason | default('') }}"
  run_once: true
"""

RETURN = r"""
msg:
  description: The difference and what became of it, in words.
  returned: always
  type: str
  sample: |-
    The cards differ from the accepted baseline:
      gpu-01 SXM5: serial 1650423000127 -> 1650423000991 (replaced)
    Accepted for gpu-01.
difference:
  description: One line a difference; one that concerns two hosts is there once.
  returned: always
  type: list
  elements: str
  sample: ["gpu-01 SXM5: serial 1650423000127 -> 1650423000991 (replaced)"]
comparison:
  description: What differs, by host and kind, as M(accel.cluster.accelerator_slots) returns it for one host.
  returned: always
  type: dict
refused:
  description: Hosts with a difference that are not sound, and why.
  returned: always
  type: dict
  sample: {gpu-01: ["7 of 8 declared cards answer", "SXM5: serial 1650423000127 at 0000:ba:00.0 is lost"]}
fine:
  description: Hosts with a difference that could be accepted.
  returned: always
  type: list
  elements: str
  sample: [gpu-02]
left_alone:
  description: Hosts that should have given a record and did not.
  returned: always
  type: list
  elements: str
  sample: [gpu-03]
completed:
  description: What was said of an acceptance that an earlier run had left half done, if there was one.
  returned: always
  type: list
  elements: str
  sample: []
accepted:
  description: Hosts whose baseline was written, or would be in check mode.
  returned: always
  type: list
  elements: str
  sample: [gpu-01]
history:
  description:
    - What was appended to the history, or would be in check mode; one entry a slot and difference.
    - The C(event) is installed, new, missing, moved, swapped, replaced, firmware or identity. What has C(old) in its
      name left the slot, what has C(new) came into it.
  returned: always
  type: list
  elements: dict
  sample:
    - at: "2026-11-30T01:02:03Z"
      by: kim
      reason: SXM5 replaced, ticket 4711
      host: gpu-01
      slot: SXM5
      event: replaced
      old_serial: "1650423000127"
      old_uuids: [GPU-1]
      old_firmware_version: 96.00.74.00.01
      new_serial: "1650423000991"
      new_uuids: [GPU-2]
      new_firmware_version: 96.00.74.00.01
"""
