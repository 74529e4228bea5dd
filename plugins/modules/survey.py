#!/usr/bin/python
# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: survey
short_description: Propose an inventory from what all hosts showed
version_added: 1.0.0
description:
  - Groups hosts of equal hardware into node types, compares the hosts of a type card by card, and writes a proposed
    inventory for a person to read, correct and copy, each value with a comment that says where it comes from.
  - A host that differs from its like is proposed with the type of its siblings, and a doubt names host, slot, what was
    seen and what the siblings have. Hosts that did not answer, or were not asked, are named too.
  - The number of cards is taken from the PCI bus, never from a tool alone. What nobody told is left out and listed.
  - The proposal is judged by the code of M(accel.cluster.preflight); what that would refuse is a doubt.
  - Writes C(survey/<time in UTC>) below the directory of the site and nothing else. The folder is a product of the run
    and no state of a host, so this never counts as a change, and check mode writes it too.
  - Needs no connection to any host. Run it once, with C(run_once), after the hosts were asked.
author:
  - accel.cluster contributors (@accel-cluster)
extends_documentation_fragment:
  - accel.cluster.attributes.controller
options:
  site_dir:
    description: Directory of the site on the controller. It must not lie below the inventory.
    type: path
    required: true
  hosts:
    description: All hosts that were to be asked, those that are dead too.
    type: list
    elements: str
    required: true
  cards:
    description: What M(accel.cluster.accelerator_info) returned, by host.
    type: dict
    required: true
  versions:
    description: What M(accel.cluster.version_info) returned, by host.
    type: dict
    default: {}
  baselines:
    description: What M(accel.cluster.baseline_info) returned, by host.
    type: dict
    default: {}
  errors:
    description: What went wrong with a host, in words, by host.
    type: dict
    default: {}
  language:
    description: Language of doubts and comments, V(en) or V(zh). English is used for any other.
    type: raw
    default: en
seealso:
  - module: accel.cluster.accelerator_info
  - module: accel.cluster.preflight
"""

EXAMPLES = r"""
- name: Propose an inventory
  accel.cluster.survey:
    site_dir: /srv/accel/sites/lab
    hosts: "{{ ansible_play_hosts_all }}"
    cards: "{{ dict(ansible_play_hosts_all | zip(ansible_play_hosts_all | map('extract', hostvars, 'cards'))) }}"
  run_once: true
"""

RETURN = r"""
folder:
  description: Where the proposal lies; the inventory is in C(inventory), doubts and what to fill in are in C(TODO.md).
  returned: success
  type: str
  sample: /srv/accel/sites/lab/survey/20261130T010203Z
node_types:
  description: Hosts of each proposed node type.
  returned: success
  type: dict
  sample: {"nvidia_h100_80gb_hbm3_x8": ["gpu-01", "gpu-02"]}
doubts:
  description: What a person has to look at before anything is accepted.
  returned: success
  type: list
  elements: dict
  contains:
    doubt:
      description: What kind of doubt it is, such as V(count.fewer) or V(card.lost).
      type: str
    node_type:
      description: Proposed node type that it is about; V(none) for a host without one.
      type: str
    hosts:
      description: Hosts that it is about; empty where it is about the type as a whole.
      type: list
      elements: str
    slots:
      description: Slots that it is about, addresses where no slot is known.
      type: list
      elements: str
    seen:
      description: What was seen.
      type: str
    siblings:
      description: What the other hosts of the type have.
      type: str
    message:
      description: All of it as one sentence, in O(language).
      type: str
    hint:
      description: What to do about it, in O(language).
      type: str
  sample:
    - doubt: card.lost
      node_type: nvidia_h100_80gb_hbm3_x8
      hosts: [gpu-01]
      slots: [SXM5]
      seen: "0000:ba:00.0, last serial 1650423000128"
      siblings: NVIDIA H100 80GB HBM3 on gpu-02
      message: "gpu-01 slot SXM5: on the bus, but lost (0000:ba:00.0); siblings: NVIDIA H100 80GB HBM3 on gpu-02"
      hint: It is counted, for the bus shows it. Cure it before anything is accepted.
lines:
  description: What to show at the end of the run.
  returned: success
  type: list
  elements: str
  sample: ["The proposed inventory is in /srv/accel/sites/lab/survey/20261130T010203Z/inventory"]
"""
