#!/usr/bin/python
# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: start_run
short_description: Name a run and claim the folder of its report
version_added: 1.0.0
description:
  - Makes C(reports/<run>) below the directory of the site, which no other run has, and returns its name.
  - Runs that start in the same second, on this controller or on another that shares the directory, get folders of
    their own.
  - Fails where the disk has no room for a report, before any host is asked.
  - The folder is a product of the run and no state of a host, so this never counts as a change, and check mode makes
    it too.
  - Needs no connection to any host. Run it once, with C(run_once).
author:
  - accel.cluster contributors (@accel-cluster)
extends_documentation_fragment:
  - accel.cluster.attributes.controller
options:
  run_id:
    description:
      - Name to use as it is, whether its folder is there or not. It names a directory, so it holds no slash.
      - By default, the time in UTC, such as V(20261130T010203Z), with a number behind it where that is taken, such as
        V(20261130T010203Z-2).
    type: str
    default: ""
seealso:
  - module: accel.cluster.findings
  - module: accel.cluster.conclude
"""

EXAMPLES = r"""
- name: Name the run
  accel.cluster.start_run:
    site_dir: "{{ cluster_site_dir }}"
  run_once: true
  register: started
"""

RETURN = r"""
run_id:
  description: Name of the run.
  returned: success
  type: str
  sample: 20261130T010203Z
started_at:
  description: When the run started, in UTC.
  returned: success
  type: str
  sample: "2026-11-30T01:02:03Z"
folder:
  description: Folder of its report.
  returned: success
  type: str
  sample: /srv/sites/one/reports/20261130T010203Z
"""
