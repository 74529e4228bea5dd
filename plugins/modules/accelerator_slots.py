#!/usr/bin/python
# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: accelerator_slots
short_description: Record which accelerator card sits in which slot
version_added: 1.0.0
description:
  - With O(state=present), keeps the card-to-slot record of a host in a file. A card that is lost stays in it with its
    last serial, until another card sits in its slot.
  - The file is written only when something other than the clock changed, and always as a whole. One that is not a valid
    record is refused with its line and left untouched.
  - With O(state=compared), holds the cards that are there now against a baseline, and changes nothing.
  - A card is known by its UUID, else its serial, else its place; so other indexes or addresses alone are no change.
  - The name of a slot comes from O(slots), the vendor's own number, the kernel's slot table or the firmware's, in this
    order; each card says which in C(slot_source), with what other sources say in C(candidates).
  - Cards that went to another host can only be told where all hosts are judged together; see
    M(accel.cluster.accept_baseline).
author:
  - accel.cluster contributors (@accel-cluster)
extends_documentation_fragment:
  - accel.cluster.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  state:
    description:
      - V(present) keeps the record in O(path).
      - V(compared) compares with O(baseline).
    type: str
    choices: [present, compared]
    default: present
  path:
    description:
      - File of the record. Its directory is made when it is missing.
      - With O(state=compared) it is only read, for the serials of cards that do not answer.
    type: path
    default: /var/lib/accel/records/slots.json
  host:
    description: Name of the host in the record; the name of the node when it is not given.
    type: str
  slots:
    description:
      - Declared slot names, by PCI address or the other way round. They go before what vendor, kernel and firmware say.
    type: dict
    default: {}
  baseline:
    description: The accepted record to compare with, as data. Needed with O(state=compared).
    type: dict
  devices:
    description:
      - What M(accel.cluster.accelerator_info) returned for this host. When it is not given, the module asks the cards
        itself.
    type: dict
  vendors:
    description:
      - Vendors to ask, such as V(nvidia), V(amd) or V(ascend). Empty asks every vendor whose cards the PCI bus shows.
    type: list
    elements: str
    default: []
  declared_vendors:
    description:
      - Vendors that the collection does not know, by name, as the site declares them in C(cluster_vendors). With
        anything wrong in a declaration the module fails before it asks any card.
    type: dict
    default: {}
  timeout_seconds:
    description: How long one command of a vendor tool may take before it counts as hung.
    type: int
    default: 60
seealso:
  - module: accel.cluster.accelerator_info
  - module: accel.cluster.accept_baseline
"""

EXAMPLES = r"""
- name: Keep the record of the node
  accel.cluster.accelerator_slots:
    host: "{{ inventory_hostname }}"
    slots: "{{ cluster_accelerator_slots }}"

- name: Hold the cards against what was accepted
  accel.cluster.accelerator_slots:
    state: compared
    host: "{{ inventory_hostname }}"
    baseline: "{{ lookup('ansible.builtin.file', baseline_file) | from_json }}"
  vars:
    baseline_file: "{{ cluster_site_dir }}/baselines/slots/{{ inventory_hostname }}.json"
  register: compared

- name: Say what differs
  ansible.builtin.debug:
    var: compared.difference
"""

RETURN = r"""
path:
  description: File of the record.
  returned: always
  type: str
  sample: /var/lib/accel/records/slots.json
record:
  description:
    - The record as it is now. When nothing but the clock changed, the file keeps its own, older time.
    - Each slot has a list of cards, because a board may carry several devices.
  returned: always
  type: dict
  sample:
    schema: 1
    host: gpu-01
    observed_at: "2026-11-30T01:02:03Z"
    tool: {name: nvidia-smi, version: "570.86.15"}
    slots:
      SXM1:
        - serial: "1650423000123"
          uuid: GPU-8f0c1e64-1d3a-4a55-9d0e-2f6f3d0c7a11
          identity: uuid
          pci_address: "0000:18:00.0"
          vendor: nvidia
          model: NVIDIA H100 80GB HBM3
          firmware_version: 96.00.74.00.01
          slot_source: vendor
          candidates: []
          present: true
          state: null
    unplaced: []
comparison:
  description:
    - What differs from O(baseline), by kind; all lists are empty with O(state=present).
    - Each entry has the place in the baseline (C(from_host), C(from_slot)), the place now (C(to_host), C(to_slot)), the
      board as it was (C(old)) and as it is (C(new)), a C(reason) where there are several, and the C(fields) that
      changed.
  returned: always
  type: dict
  contains:
    missing:
      description:
        - Cards of the baseline that are not present. The C(reason) is lost, not_reported, not_identified or gone.
      type: list
      elements: dict
    new:
      description: Cards that are in no baseline.
      type: list
      elements: dict
    moved:
      description: Cards that sit in another slot.
      type: list
      elements: dict
    swapped:
      description: Pairs of cards that sit in each other's slot.
      type: list
      elements: dict
    replaced:
      description: Slots with a new card, whose old one is gone.
      type: list
      elements: dict
      sample:
        - from_host: gpu-01
          from_slot: SXM5
          to_host: gpu-01
          to_slot: SXM5
          old:
            serial: "1650423000127"
            uuids: [GPU-1]
            pci_addresses: ["0000:ba:00.0"]
            model: NVIDIA H100 80GB HBM3
            firmware_version: 96.00.74.00.01
          new:
            serial: "1650423000991"
            uuids: [GPU-2]
            pci_addresses: ["0000:ba:00.0"]
            model: NVIDIA H100 80GB HBM3
            firmware_version: 96.00.74.00.01
          reason: null
          fields: []
    changed:
      description: Cards with another firmware, or that tell their identity another way.
      type: list
      elements: dict
    unplaced:
      description: Cards whose slot nobody can tell.
      type: list
      elements: dict
difference:
  description: The comparison in words, one line a difference.
  returned: always
  type: list
  elements: str
  sample: ["gpu-01 SXM5: serial 1650423000127 -> 1650423000991 (replaced)"]
errors:
  description: What could not be read while the cards were asked, and why.
  returned: always
  type: list
  elements: str
  sample: ["slot table unusable: same address for every slot"]
"""

import platform

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.accel.cluster.plugins.module_utils._accel import probe, record, slots
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import as_dict
from ansible_collections.accel.cluster.plugins.module_utils._accel.runner import Runner


def argument_spec() -> dict:
    """Return the options of the module."""
    return {
        "state": {"type": "str", "choices": ["present", "compared"], "default": "present"},
        "path": {"type": "path", "default": "/var/lib/accel/records/slots.json"},
        "host": {"type": "str"},
        "slots": {"type": "dict", "default": {}},
        "baseline": {"type": "dict"},
        "devices": {"type": "dict"},
        "vendors": {"type": "list", "elements": "str", "default": []},
        "declared_vendors": {"type": "dict", "default": {}},
        "timeout_seconds": {"type": "int", "default": 60},
    }


def observe(options: dict) -> dict:
    """Return what the host shows: what was handed in, else what its cards say now."""
    if options["devices"] is None:
        return as_dict(
            probe.observe(
                Runner(),
                vendors=options["vendors"],
                timeout_seconds=options["timeout_seconds"],
                gather=["slots"],
                declared_slots=options["slots"],
                declared_vendors=options["declared_vendors"],
            )
        )
    observation = options["devices"]
    for key in ("devices", "unanswered"):
        entries = observation.get(key)
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise ValueError(f"devices is not what accelerator_info returns: its key {key!r} must be a list of cards")
    slots.apply_declared(observation, options["slots"])
    return observation


def main() -> None:
    """Observe, then keep the record or compare it."""
    module = AnsibleModule(
        argument_spec=argument_spec(),
        required_if=[("state", "compared", ["baseline"])],
        supports_check_mode=True,
    )
    options = module.params
    if options["timeout_seconds"] < 1:
        module.fail_json(msg=f"timeout_seconds must be 1 or more, not {options['timeout_seconds']}")
    wrong = probe.wrong_declarations(options["declared_vendors"])
    if wrong:
        module.fail_json(msg="; ".join(wrong))
    path, host = options["path"], options["host"] or platform.node()
    comparison: dict = {kind: [] for kind in slots.KINDS}
    changed = False
    try:
        slots.declared_slots(options["slots"])
        if options["state"] == "compared":
            slots.check(options["baseline"], "the baseline", host)
        # Read before the cards are asked: an answer that cannot be kept need not be waited for.
        previous = record.load(path, slots.problems)
        observation = observe(options)
        body = slots.build_record(observation, host, record.now_utc(), previous)
        if options["state"] == "compared":
            comparison = slots.compare(options["baseline"], body)
        else:
            changed = not record.same(previous, body)
        if changed and not module.check_mode:
            record.write(path, body)
    except (record.RecordError, ValueError) as exc:
        module.fail_json(msg=str(exc), path=path)
    before = record.canonical(previous) if previous else ""
    module.exit_json(
        changed=changed,
        path=path,
        record=body,
        comparison=comparison,
        difference=slots.difference_lines({host: comparison}),
        errors=observation.get("errors") or [],
        diff={
            "before": before,
            "after": record.canonical(body) if changed else before,
            "before_header": path,
            "after_header": path,
        },
    )


if __name__ == "__main__":
    main()
