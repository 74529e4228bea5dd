#!/usr/bin/python
# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: image_build
short_description: Build one container image as its recipe says and push it
version_added: 1.0.0
description:
  - Makes a base with mmdebstrap, or starts from an image by its digest. Adds files, packages at exact versions and
    commands, writes the list of all packages into the image (C(/etc/accel/image.lock)), and labels it.
  - Pushes it, and reads its digest back from the registry, worked out from the bytes.
  - Fails with the reason where any of it does not come out as declared. What was pushed before that means nothing, for
    no digest was accepted for its tag; the next build goes over it.
  - Leaves nothing on the host. What a killed build has left is removed by the next one. Of two at the same time, one is
    refused.
author:
  - accel.cluster contributors (@accel-cluster)
requirements:
  - buildah and, for a recipe with a base, mmdebstrap
options:
  recipe:
    description: The recipe, as M(accel.cluster.image_lock) returned it.
    type: dict
    required: true
  recipe_hash:
    description: Its hash.
    type: str
    required: true
  base:
    description: Image to start from, with its digest; empty where the recipe makes one.
    type: str
    default: ""
  files:
    description: Files of the recipe on this host, in the order of the recipe.
    type: list
    elements: path
    default: []
  work_dir:
    description: Folder for all that a build needs.
    type: path
    required: true
  push_address:
    description: Where the image is pushed to, address and port.
    type: str
    required: true
  push_username:
    description: Name to push with; no login is tried when it is empty.
    type: str
    default: ""
  push_password:
    description: Its password.
    type: str
    default: ""
  username:
    description: Name to read with.
    type: str
    default: ""
  password:
    description: Its password.
    type: str
    default: ""
  scheme:
    description: What the registry speaks.
    type: str
    choices: [https, http]
    default: https
  ca_file:
    description: CA of its certificate, beside those that the system trusts.
    type: path
  room_bytes:
    description: How large the image may be; any size when left out.
    type: int
  free_gib:
    description: What must be free in O(work_dir) before anything is done.
    type: float
    default: 0
  timeout_seconds:
    description: Time limit of each step.
    type: int
    default: 3600
attributes:
  check_mode:
    support: full
    description: Says that it would build.
  diff_mode:
    support: none
    description: An image that is not built yet can't be shown.
"""

EXAMPLES = r"""
- name: Build a base
  accel.cluster.image_build:
    recipe: "{{ planned.recipe }}"
    recipe_hash: "{{ planned.hash }}"
    work_dir: /var/lib/containers/accel-images
    push_address: 127.0.0.1:5001
    push_username: builder
    push_password: "{{ vault_push_password }}"
    username: node
    password: "{{ vault_registry_password }}"
    ca_file: /etc/accel/registry-server/ca.crt
"""

RETURN = r"""
digest:
  description: Digest of the image, as the registry gives it.
  returned: when it was built
  type: str
  sample: sha256:9b4ca389f19f1fb28872da07a9f45d7fe3e3d022b005366edb792d30f81da8a1
size_bytes:
  description: Size of its layers, not compressed.
  returned: when it was built
  type: int
  sample: 151590400
lock:
  description: Every package of the image with its version.
  returned: when it was built
  type: list
  elements: str
  sample: [deb bash 5.2.15-2+b13]
"""

import fcntl
import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.accel.cluster.plugins.module_utils._accel import image_build, judge
from ansible_collections.accel.cluster.plugins.module_utils._accel.runner import Runner


def argument_spec() -> dict:
    """Return the options of the module."""
    return {
        "recipe": {"type": "dict", "required": True},
        "recipe_hash": {"type": "str", "required": True},
        "base": {"type": "str", "default": ""},
        "files": {"type": "list", "elements": "path", "default": []},
        "work_dir": {"type": "path", "required": True},
        "push_address": {"type": "str", "required": True},
        "push_username": {"type": "str", "default": ""},
        "push_password": {"type": "str", "default": "", "no_log": True},
        "username": {"type": "str", "default": ""},
        "password": {"type": "str", "default": "", "no_log": True},
        "scheme": {"type": "str", "choices": ["https", "http"], "default": "https"},
        "ca_file": {"type": "path"},
        "room_bytes": {"type": "int"},
        "free_gib": {"type": "float", "default": 0},
        "timeout_seconds": {"type": "int", "default": 3600},
    }


def main() -> None:
    """Build, alone on this host."""
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    options = module.params
    if module.check_mode:
        module.exit_json(changed=True)
    work = image_build.Work(
        folder=options["work_dir"],
        recipe=options["recipe"],
        recipe_hash=options["recipe_hash"],
        base=options["base"],
        files=options["files"],
        push_address=options["push_address"],
        push_login=(options["push_username"], options["push_password"]),
        login=(options["username"], options["password"]),
        scheme=options["scheme"],
        ca_file=options["ca_file"] or "",
        room_bytes=options["room_bytes"],
        free_gib=options["free_gib"],
        timeout_seconds=options["timeout_seconds"],
        created=judge.now_utc(),
    )
    name = options["recipe"].get("name")
    try:
        os.makedirs(work.folder, mode=0o700, exist_ok=True)
        # Held as long as this process lives, whatever ends it.
        with open(os.path.join(work.folder, "lock"), "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            result = image_build.build(Runner(), work)
    except BlockingIOError:
        module.fail_json(msg=f"{name}: another build is running on this host ({work.folder}/lock)")
    except OSError as exc:
        module.fail_json(msg=f"{name}: {work.folder} can't be used: {exc.strerror or exc}")
    except image_build.Problem as exc:
        module.fail_json(msg=f"{name}: {exc}")
    module.exit_json(changed=True, **result)


if __name__ == "__main__":
    main()
