#!/usr/bin/python
# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: findings
short_description: Keep the findings of a host on the controller until the run is concluded
version_added: 1.0.0
description:
  - Writes C(reports/<run>/parts/<host>/<layer>.json) below the directory of the site. M(accel.cluster.conclude) reads
    these parts of all hosts and gives the verdict.
  - Roles of one layer share a part. What a role wrote before is replaced, what other roles wrote stays.
  - Findings survive the death of their host, and nothing is judged or asserted here, so one layer never hides another.
  - What is said of a crash is in the language C(cluster_language) of the host, in English where that is none.
  - A finding that is none is refused and named; then nothing is written.
  - A part is a product of the run and no state of the host, so this never counts as a change, and check mode writes
    it too.
author:
  - accel.cluster contributors (@accel-cluster)
extends_documentation_fragment:
  - accel.cluster.attributes.controller
options:
  run_id:
    description: Name of the run, a UTC time such as V(20261130T010203Z). It names a directory, so it holds no slash.
    type: str
    required: true
  layer:
    description: Layer that the findings belong to.
    type: str
    required: true
    choices: [device, network, storage, application, monitoring]
  role:
    description: Role that found them.
    type: str
    required: true
  findings:
    description: Findings of this host, as the filters P(accel.cluster.judge_devices#filter) and its kin return them.
    type: list
    elements: raw
    default: []
  observed:
    description:
      - What the findings were judged from, by kind, where the conclusion across hosts needs it. C(devices) is what
        M(accel.cluster.accelerator_info) returned.
    type: dict
    default: {}
  crashed:
    description:
      - The error with which the verification of the role broke. It becomes an V(unknown) finding, the evidence
        of which it is.
    type: raw
seealso:
  - module: accel.cluster.conclude
"""

EXAMPLES = r"""
- name: Hand over the findings
  accel.cluster.findings:
    site_dir: "{{ cluster_site_dir }}"
    run_id: "{{ cluster_run_id }}"
    layer: device
    role: driver
    findings: "{{ observed | accel.cluster.judge_devices(inventory_hostname, cluster_declared) }}"
    observed:
      devices: "{{ observed }}"
"""

RETURN = r"""
part:
  description: File that was written.
  returned: success
  type: str
  sample: /srv/sites/one/reports/20261130T010203Z/parts/gpu-01/device.json
verdict:
  description: Verdict of what the part holds now, V(pass), V(fail) or V(unknown).
  returned: success
  type: str
  sample: pass
"""
