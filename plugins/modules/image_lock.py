#!/usr/bin/python
# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: image_lock
short_description: Keep the digests of the images that a site built
version_added: 1.0.0
description:
  - Compares recipes with C(baselines/images.json) below the directory of the site. Says which images have to be built,
    which are kept, and what is refused.
  - With O(digest), accepts it for the image O(name), and adds a line to C(history.jsonl). A tag means one image for
    ever; another digest or another recipe under an accepted tag is refused.
  - Needs no connection to any host.
author:
  - accel.cluster contributors (@accel-cluster)
options:
  site_dir:
    description: Directory of the site.
    type: path
    required: true
  recipes:
    description: All recipes of the site.
    type: list
    elements: dict
    required: true
  registry:
    description: Registry that the names of built images must begin with.
    type: str
    required: true
  name:
    description: Name of one image; with O(digest), the one to accept, else the one whose RV(recipe) is returned.
    type: str
  digest:
    description: Digest to accept.
    type: str
attributes:
  check_mode:
    support: full
    description: Can run in check mode and tell what would be accepted; writes nothing then.
  diff_mode:
    support: full
    description: Shows what was accepted before and after.
"""

EXAMPLES = r"""
- name: Say what is to be built
  accel.cluster.image_lock:
    site_dir: "{{ cluster_site_dir }}"
    recipes: "{{ image_recipes }}"
    registry: "{{ cluster_registry_address }}"
  register: planned
"""

RETURN = r"""
refused:
  description: What must not be done, and why.
  returned: always
  type: list
  elements: str
  sample: []
build:
  description: Images to build, in this order; C(base) is the image to start from.
  returned: always
  type: list
  elements: dict
  sample:
    - name: ctl-01:5000/train/base:1
      hash: 0cfd89f1fafef2a5e67049c234862a38aac90969710a77f384633b0b50b4319e
      base: ""
kept:
  description: Images that were accepted, with their digests.
  returned: always
  type: dict
  sample: {}
recipe:
  description: The recipe of O(name) with all that it leaves out.
  returned: when O(name) has one
  type: dict
  sample: {name: "ctl-01:5000/train/base:1"}
"""
