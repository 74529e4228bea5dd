#!/usr/bin/python
# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: accelerator_info
short_description: List the accelerator cards of a host, whatever their vendor
version_added: 1.0.0
description:
  - Asks the tool of each vendor whose cards the PCI bus shows, and joins the answer with what the bus, the firmware and
    the kernel tell.
  - One lost or sick card never hides the others. When the vendor tool fails as a whole, each card is asked alone.
  - With no vendor tool at all, the cards are still listed, as far as PCI shows them.
  - Nothing is judged here and nothing fails for what a host says; what could not be read is in RV(errors), and
    the state of each tool is in RV(tools).
author:
  - accel.cluster contributors (@accel-cluster)
extends_documentation_fragment:
  - accel.cluster.attributes
  - accel.cluster.attributes.info_module
options:
  vendors:
    description:
      - Vendors to ask, such as V(nvidia), V(amd) or V(ascend). Empty asks every vendor whose cards the PCI bus shows.
      - A vendor that is named is asked even when the bus shows none of its cards.
    type: list
    elements: str
    default: []
  timeout_seconds:
    description:
      - How long one command of a vendor tool may take before it counts as hung.
      - When the question for all cards failed, each card is asked alone, with this limit once more.
    type: int
    default: 60
  gather:
    description: What to return beside the cards themselves. What is left out has the value that says nothing is known.
    type: list
    elements: str
    choices: [processes, links, slots, health, kernel_log]
    default: [processes, links, slots, health, kernel_log]
  slots:
    description:
      - Declared slot names, by PCI address or the other way round. They go before what vendor, kernel and firmware say.
    type: dict
    default: {}
  declared_vendors:
    description:
      - Vendors that the collection does not know, by name, as the site declares them in C(cluster_vendors). With
        anything wrong in a declaration the module fails before it asks any card.
    type: dict
    default: {}
  records_dir:
    description:
      - Directory of the records of this host. Nothing is written there.
      - When it is given, the slot record says where a card that does not answer sits, and which serial it had.
      - The readings of links under load that are kept there come back in RV(link_readings), with those of cards that
        are working now.
    type: path
  host:
    description:
      - Name of this host in the inventory. A slot record of another host, as a cloned disk brings it, is not used.
      - The name that the host gives itself is used when it is not set.
    type: str
seealso:
  - module: accel.cluster.accelerator_slots
"""

EXAMPLES = r"""
- name: List the cards
  accel.cluster.accelerator_info:
  register: cards

- name: Ask only the NVIDIA cards, and give their tool two minutes
  accel.cluster.accelerator_info:
    vendors: [nvidia]
    timeout_seconds: 120
    slots:
      "0000:18:00.0": SXM1
      "0000:2a:00.0": SXM2
  register: cards

- name: Show which cards answered, and which did not
  ansible.builtin.debug:
    msg: "{{ cards.count }} of {{ cards.bus_count }}; silent: {{ cards.unanswered | map(attribute='pci_address') }}"
"""

RETURN = r"""
devices:
  description: The cards, in the order of the tool. A value that nothing told is V(none).
  returned: always
  type: list
  elements: dict
  contains:
    index:
      description: Number that the tool gives the card. It changes from boot to boot and identifies nothing.
      type: int
      returned: always
    vendor:
      description: Name of the vendor.
      type: str
      returned: always
    model:
      description: Product name.
      type: str
      returned: always
    serial:
      description: Serial number of the board, which two or four devices may share.
      type: str
      returned: always
    uuid:
      description: Identifier of the chip; V(none) when it is not unique on this host.
      type: str
      returned: always
    identity:
      description: What identifies the card, the first of V(uuid), V(serial) and V(address) that is present and unique.
      type: str
      returned: always
    pci_address:
      description: PCI address as the kernel writes it.
      type: str
      returned: always
    pci_id:
      description: PCI vendor and device id.
      type: str
      returned: always
    slot:
      description:
        - Name of the slot in C(label), where it came from in C(source) (V(declared), V(vendor), V(sysfs) or V(dmi)),
          and names that other sources gave in C(candidates). The label is V(none) when no source is to be believed.
      type: dict
      returned: always
    module_id:
      description: Number of the module as the vendor counts, which names a place only on boards with sockets.
      type: int
      returned: always
    numa_node:
      description: NUMA node that is near the card.
      type: int
      returned: always
    device_nodes:
      description: Device nodes of this card that exist.
      type: list
      elements: str
      returned: always
    driver_version:
      description: Version of the driver that answered.
      type: str
      returned: always
    firmware_version:
      description: Version of the firmware of the card.
      type: str
      returned: always
    memory_bytes:
      description: Size of the memory, in bytes.
      type: int
      returned: always
    link:
      description:
        - PCIe link; speeds in GT/s, widths in lanes. C(limited_by) is the bridge above the card that holds the link
          below what the card can do, C(unread_hop) one that did not answer. C(under_load) tells whether the card was
          working while the link was read; an idle card may lower its speed.
      type: dict
      returned: always
    logical:
      description: Partitions of the card (MIG instances, compute partitions, virtual NPUs).
      type: list
      elements: dict
      returned: always
    partition_mode:
      description:
        - The vendor's word for how the card is split, such as V(MIG), V(CPX) or V(vNPU). V(whole) when it says that
          it is not, V(not_splittable) when this product can't be, V(none) when nothing tells.
      type: str
      returned: always
    health:
      description:
        - C(state) is V(ok), V(warning), V(critical) or V(unknown); C(reasons) say why.
        - C(codes) are the fault codes that the card tells now (Ascend), written as in C(kernel_events).
      type: dict
      returned: always
    ecc:
      description:
        - Memory errors as the card counts them, C(corrected) and C(uncorrected), C(volatile) since the driver was
          loaded and C(aggregate) over the life of the card, and C(sram_uncorrected_aggregate), those where no row
          can be remapped. C(unread) names the counters that the card has and that could not be read.
      type: dict
      returned: always
    repair:
      description:
        - Memory repair. C(state) is V(ok), V(reset) (repaired once the card is reset or the host rebooted),
          V(replace), V(not_supported) or V(unknown); C(remapped_rows) and C(retired_pages) count what was repaired.
      type: dict
      returned: always
    readings:
      description:
        - What the card measured, temperatures in degrees Celsius with the card's own limit, power in watts,
          utilization in percent, memory in bytes. C(throttles) names what keeps the card below its clocks,
          C(throttle_mask) is the vendor's bit mask of the same.
      type: dict
      returned: always
    ports:
      description:
        - Links to other cards (NVLink, xGMI, HCCS), each with C(kind), C(index), C(state) (V(up), V(down),
          V(disabled) or V(unknown)), C(speed_gbps) in gigabits a second and one direction, and C(peer).
      type: list
      elements: dict
      returned: always
    ports_told:
      description:
        - V(false) where the links were asked for and not told, or were not gathered; an empty list does not mean then
          that there are none.
      type: bool
      returned: always
    processes:
      description:
        - Processes that use the card, with C(pid), C(name), C(memory_bytes) and C(source), V(tool) for what the vendor
          tool lists and V(open) for a process that only has the device node open.
      type: list
      elements: dict
      returned: always
    source:
      description: What told of the card, a tool with its version, or V(sysfs).
      type: str
      returned: always
  sample:
    - index: 0
      vendor: nvidia
      model: NVIDIA H100 80GB HBM3
      serial: "1650423000123"
      uuid: GPU-6f3c1a52-8d14-4a0e-9a3b-2b1f6c0d7e11
      identity: uuid
      pci_address: "0000:18:00.0"
      pci_id: "10de:2330"
      slot: {label: SXM1, source: declared, candidates: []}
      module_id: 1
      numa_node: 0
      device_nodes: [/dev/nvidia0]
      driver_version: 570.86.15
      firmware_version: 96.00.74.00.01
      memory_bytes: 85520809984
      link:
        speed_gts: 32.0
        width: 16
        max_speed_gts: 32.0
        max_width: 16
        limited_by:
        under_load: true
        unread_hop:
      logical: []
      partition_mode: whole
      health: {state: ok, reasons: [], codes: []}
      ecc:
        corrected_volatile: 0
        uncorrected_volatile: 0
        corrected_aggregate: 2
        uncorrected_aggregate: 0
        sram_uncorrected_aggregate: 0
        unread: []
      repair: {state: ok, remapped_rows: 0, retired_pages: null}
      readings:
        temperature_c: 34.0
        temperature_limit_c: 87.0
        memory_temperature_c: 41.0
        power_watts: 71.2
        power_limit_watts: 700.0
        utilization_percent: 0.0
        memory_used_bytes: 0
        throttles: [idle]
        throttle_mask: 1
      ports:
        - {kind: nvlink, index: 0, state: up, speed_gbps: 212.5, peer: "0007:00:00.0"}
      ports_told: true
      processes: []
      source: nvidia-smi 570.86.15
count:
  description: Number of cards that answered; V(none) when the tools could not tell.
  returned: always
  type: int
  sample: 8
bus_count:
  description:
    - Number of cards that the PCI bus shows.
    - V(none) when the bus could not be read or shows no function at all, so that nobody could look. That is not 0.
  returned: always
  type: int
  sample: 8
logical_count:
  description:
    - Number of logical devices of the cards that answered. A card that is not split is one, one of two chips on one
      function two, one in MIG mode without instances none.
    - V(none) when the tools could not tell, when a card that may be split does not say whether it is, and when there
      are virtual NPUs of a card that did not answer.
  returned: always
  type: int
  sample: 8
unanswered:
  description:
    - Cards on the bus that did not answer. C(state) is V(lost) when a tool or the bus says that the card is gone, and
      V(not_reported) otherwise, with a C(reason) where one is known. C(model), C(serial), C(uuid) and
      C(firmware_version) are what a tool still tells of a lost card, else what the slot record in O(records_dir) says;
      C(last) is that record.
  returned: always
  type: list
  elements: dict
  sample:
    - pci_address: "0000:ba:00.0"
      vendor: nvidia
      pci_id: "10de:2330"
      state: lost
      reason:
      model:
      serial:
      uuid:
      firmware_version:
      slot: {label: SXM7, source: declared, candidates: []}
      link:
        speed_gts:
        width:
        max_speed_gts: 32.0
        max_width: 16
        limited_by:
        under_load:
        unread_hop:
      numa_node: 1
      last:
tools:
  description:
    - Vendor tools that were asked. C(state) is V(ok), V(absent), V(failed), V(hung) or V(unreadable); C(reason) is a
      word for a known cause, C(excerpt) the raw text that is kept as evidence.
  returned: always
  type: list
  elements: dict
  sample:
    - name: nvidia-smi
      vendor: nvidia
      version: 570.86.15
      state: ok
      reason:
      rc: 0
      excerpt: ""
      command: nvidia-smi -q -x
drivers:
  description: Kernel module and library of each vendor, with the versions that each tells.
  returned: always
  type: list
  elements: dict
  sample: [{vendor: nvidia, kernel_version: 570.86.15, library_version: 570.86.15, loaded: true}]
kernel_log:
  description:
    - Whether the kernel log of this boot could be read. C(state) is V(ok), V(unknown), V(shared) (a container without a
      log of its own) or V(not_gathered); C(source) is the command, C(reason) why not.
  returned: always
  type: dict
  sample: {state: ok, source: journalctl -k -b -o short-iso --no-pager -q -n 50000, reason: null}
kernel_events:
  description:
    - What the kernel log of this boot says of accelerators, equal events put together, with C(at), C(vendor), C(code),
      C(pci_address), C(pid), C(message) and C(count). C(cause) is the code of the event that this one follows from.
  returned: always
  type: list
  elements: dict
  sample:
    - at: "2026-11-30T01:02:03+0000"
      vendor: nvidia
      code: xid 79
      pci_address: "0000:ba:00.0"
      pid:
      message: "NVRM: Xid (PCI:0000:ba:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
      count: 1
      cause:
holders_complete:
  description: Whether all processes could be asked for the device nodes that they have open; V(none) when none were.
  returned: always
  type: bool
  sample: true
errors:
  description: What could not be read or was out of the ordinary, in words. Judged as C(device.observation).
  returned: always
  type: list
  elements: str
  sample: []
link_readings:
  description: Readings of links under load by PCI address, with the time of each.
  returned: when O(records_dir) is given
  type: dict
  sample:
    "0000:18:00.0":
      identity: GPU-6f3c1a52-8d14-4a0e-9a3b-2b1f6c0d7e11
      speed_gts: 32.0
      width: 16
      at: "2026-11-30T01:02:03Z"
"""

import os
import platform

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.accel.cluster.plugins.module_utils._accel import probe, registry
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import as_dict
from ansible_collections.accel.cluster.plugins.module_utils._accel.runner import Runner


def argument_spec() -> dict:
    return {
        "vendors": {"type": "list", "elements": "str", "default": []},
        "timeout_seconds": {"type": "int", "default": 60},
        "gather": {
            "type": "list",
            "elements": "str",
            "choices": list(probe.GATHER),
            "default": list(probe.GATHER),
        },
        "slots": {"type": "dict", "default": {}},
        "declared_vendors": {"type": "dict", "default": {}},
        "records_dir": {"type": "path"},
        "host": {"type": "str"},
    }


def add_records(observation: dict, directory: str, host: str) -> None:
    """Add what the records of this host know; a damaged one hides no card."""
    # Imported when needed: each file costs every host its compilation.
    from ansible_collections.accel.cluster.plugins.module_utils._accel import links, recall, record, slots

    try:
        recall.recall(observation, record.load(os.path.join(directory, "slots.json"), slots.problems), host)
    except record.RecordError as exc:
        observation["errors"].append(str(exc))
    kept = {}
    try:
        kept = links.load(os.path.join(directory, "links.json"))
    except record.RecordError as exc:
        observation["errors"].append(str(exc))
    observation["link_readings"] = links.merge(kept, observation, record.now_utc())


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    options = module.params
    if options["timeout_seconds"] < 1:
        module.fail_json(msg=f"timeout_seconds must be 1 or more, not {options['timeout_seconds']}")
    wrong = probe.wrong_declarations(options["declared_vendors"])
    if wrong:
        module.fail_json(msg="; ".join(wrong))
    strangers = probe.unknown_vendors(options["vendors"], [*registry.VENDORS, *options["declared_vendors"]])
    if strangers:
        module.fail_json(msg="; ".join(strangers))
    observation = as_dict(
        probe.observe(
            Runner(),
            vendors=options["vendors"],
            timeout_seconds=options["timeout_seconds"],
            gather=options["gather"],
            declared_slots=options["slots"],
            declared_vendors=options["declared_vendors"],
        )
    )
    if options["records_dir"]:
        add_records(observation, options["records_dir"], options["host"] or platform.node())
    module.exit_json(changed=False, **observation)


if __name__ == "__main__":
    main()
