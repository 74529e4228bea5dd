#!/usr/bin/python
# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: container_images
short_description: Have a node hold images, each by its digest
version_added: 1.0.0
description:
  - Pulls each image that the node lacks by its digest, never by its tag, and gives it its tag on the node. A tag that
    was moved in the registry moves no node.
  - Works the same with podman and Docker. Removes no image and no layer.
  - A pull that is killed or breaks off leaves layers that came whole, which the next run uses, and nothing else. Two
    runs on one node wait for each other.
author:
  - accel.cluster contributors (@accel-cluster)
options:
  engine:
    description: The engine that is to hold them.
    type: str
    choices: [podman, docker]
    default: podman
  images:
    description: Images with registry and digest, C(ctl-01:5000/train/pytorch:1@sha256:...); the tag may be left out.
    type: list
    elements: str
    required: true
  auth_file:
    description: File with the logins of registries. For Docker its name is C(config.json).
    type: path
  free_gib:
    description: What must be free where the engine keeps images, before each pull.
    type: float
    default: 0
  pull_timeout_seconds:
    description: How long one pull may take.
    type: int
    default: 1800
  timeout_seconds:
    description: Time limit of every other command.
    type: int
    default: 60
attributes:
  check_mode:
    support: full
    description: Can run in check mode and tell what would be pulled.
  diff_mode:
    support: full
    description: Shows which images are held before and after.
"""

EXAMPLES = r"""
- name: Hold the training image
  accel.cluster.container_images:
    images:
      - ctl-01:5000/train/pytorch:1@sha256:9b4ca389f19f1fb28872da07a9f45d7fe3e3d022b005366edb792d30f81da8a1
    auth_file: /etc/accel/registry-login/config.json
    free_gib: 20
"""

RETURN = r"""
images:
  description: What was or would be done for each image; C(action) is pull, tag or held.
  returned: when the engine answers
  type: list
  elements: dict
  sample:
    - reference: ctl-01:5000/train:1@sha256:9b4ca389f19f1fb28872da07a9f45d7fe3e3d022b005366edb792d30f81da8a1
      name: ctl-01:5000/train
      tag: "1"
      digest: sha256:9b4ca389f19f1fb28872da07a9f45d7fe3e3d022b005366edb792d30f81da8a1
      action: pull
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.accel.cluster.plugins.module_utils._accel import pulls
from ansible_collections.accel.cluster.plugins.module_utils._accel.runner import Runner


def argument_spec() -> dict:
    """Return the options of the module."""
    return {
        "engine": {"type": "str", "choices": ["podman", "docker"], "default": "podman"},
        "images": {"type": "list", "elements": "str", "required": True},
        "auth_file": {"type": "path"},
        "free_gib": {"type": "float", "default": 0},
        "pull_timeout_seconds": {"type": "int", "default": 1800},
        "timeout_seconds": {"type": "int", "default": 60},
    }


def bring(runner, options: dict, check_mode: bool, done: list[dict]) -> None:
    """Do what is to be done and append each step to ``done``; Refused where it can't be."""
    about, held = pulls.look(runner, options["engine"], options["timeout_seconds"])
    steps = pulls.plan(held, options["images"])
    if check_mode or all(step["action"] == pulls.HELD for step in steps):
        done += steps
        return
    with pulls.Alone(options["pull_timeout_seconds"]):
        pulls.tidy(about)
        # Another run may have brought them meanwhile.
        held = pulls.look(runner, options["engine"], options["timeout_seconds"])[1]
        for step in pulls.plan(held, options["images"]):
            limits = (options["free_gib"], options["pull_timeout_seconds"])
            pulls.carry_out(runner, about, step, options["auth_file"], *limits)
            done.append(step)
        held = pulls.look(runner, options["engine"], options["timeout_seconds"])[1]
    for step in pulls.plan(held, options["images"]):
        if step["action"] != pulls.HELD:
            raise pulls.Refused(f"{step['reference']} was pulled, and {options['engine']} does not hold it")


def shown(steps: list[dict], after: bool) -> str:
    """Return the images that are held before or after, a line each."""
    lines = [
        f"{step['reference']}\n" if after or step["action"] == pulls.HELD else f"# {step['reference']}\n"
        for step in steps
    ]
    return "".join(lines)


def main() -> None:
    """Pull and tag what is missing."""
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    options = module.params
    for name in ("pull_timeout_seconds", "timeout_seconds"):
        if options[name] < 1:
            module.fail_json(msg=f"{name} must be 1 or more, not {options[name]}")
    done: list[dict] = []
    problem = None
    try:
        bring(Runner(), options, module.check_mode, done)
    except (pulls.Refused, OSError, ValueError) as exc:
        problem = str(exc)
    changed = any(step["action"] != pulls.HELD for step in done)
    if problem:
        module.fail_json(msg=problem, changed=changed, images=done)
    module.exit_json(changed=changed, images=done, diff={"before": shown(done, False), "after": shown(done, True)})


if __name__ == "__main__":
    main()
