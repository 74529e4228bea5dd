#!/usr/bin/python
# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: conclude
short_description: Give the verdict of a verify run and write its report
version_added: 1.0.0
description:
  - Reads what M(accel.cluster.findings) kept of every host, and adds what only shows across hosts; cards against
    the accepted slots of the whole site, driver versions within a node type, and hosts that said nothing.
  - Writes C(findings.json), C(junit.xml) and C(report.html) below C(reports/<run>) of the site.
  - The verdict is V(fail) when any critical check failed, else V(unknown) when any critical check could not be
    judged, else V(pass). A bad verdict does not fail this task; assert on RV(verdict) after it.
  - A part that is missing or damaged is an V(unknown) finding of its host, never a pass and never a crash.
  - Needs no connection to any host, so it runs when all of them are dead. Run it once, with C(run_once).
author:
  - accel.cluster contributors (@accel-cluster)
extends_documentation_fragment:
  - accel.cluster.attributes.controller
options:
  site:
    description: Name of the site, for the report; where it is empty, that of its directory.
    type: raw
    required: true
  run_id:
    description: Name of the run, as it was given to M(accel.cluster.findings).
    type: str
    required: true
  started_at:
    description:
      - When the run started, as M(accel.cluster.start_run) returns it. Where it is not given, the time in the name of
        the run counts, else that of the first finding.
    type: str
    default: ""
  hosts:
    description: Hosts that the report must speak of, those that did not answer too.
    type: list
    elements: str
    required: true
  expected:
    description: Verifications that each host should have handed over. A host that lacks one is V(unknown).
    type: list
    elements: dict
    required: true
    suboptions:
      role:
        description: Name of the role.
        type: str
        required: true
      layer:
        description: Layer that it reports to.
        type: str
        required: true
        choices: [device, network, storage, application, monitoring]
  language:
    description:
      - Language of the report, V(en) or V(zh). Any other value is named in a warning, and the report is in English;
        findings that were handed over keep their language.
    type: raw
    choices: [en, zh]
    default: en
  template:
    description: Template of the report.
    type: path
    required: true
notes:
  - Declared values (C(cluster_node_type), C(cluster_accelerator_vendor), C(cluster_accelerator_count) and
    C(cluster_driver_version)) are taken from the variables of each host.
seealso:
  - module: accel.cluster.findings
  - module: accel.cluster.accept_baseline
"""

EXAMPLES = r"""
- name: Judge across the hosts and write the report
  accel.cluster.conclude:
    site: "{{ cluster_name }}"
    site_dir: "{{ cluster_site_dir }}"
    run_id: "{{ cluster_run_id }}"
    hosts: "{{ ansible_play_hosts_all }}"
    expected:
      - {role: baseline, layer: device}
      - {role: driver, layer: device}
    template: report.html.j2
  register: run
  run_once: true

- name: Fail where the cluster is not proven
  ansible.builtin.assert:
    that: run.verdict == 'pass'
    fail_msg: "{{ run.lines | join('\n') }}"
  run_once: true
"""

RETURN = r"""
verdict:
  description: Verdict of the run, V(pass), V(fail) or V(unknown).
  returned: success
  type: str
  sample: fail
counts:
  description:
    - Number of findings of each kind; they add up to all. C(fail) and C(unknown) are those that decide the verdict,
      C(warnings) are the fails and unknowns that do not.
  returned: success
  type: dict
  sample: {"pass": 95, "fail": 2, "unknown": 1, "not_applicable": 4, "warnings": 0}
lines:
  description: One line a layer, with the first causes by name.
  returned: success
  type: list
  elements: str
  sample:
    - "device: fail (2 fail, 1 unknown, 0 warnings, 95 pass): gpu-01 SXM5 device.link_width, gpu-02 device.query"
report:
  description: The report for people. C(findings.json) and C(junit.xml) lie beside it.
  returned: success
  type: str
  sample: /srv/sites/one/reports/20261130T010203Z/report.html
"""
