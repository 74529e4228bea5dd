#!/usr/bin/python
# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: registry_account
short_description: Write the one account of a password file
version_added: 1.0.0
description:
  - Writes a file with one name and the bcrypt hash of its password, as C(htpasswd) does, and nothing else, so that an
    account of yesterday is none any more. A file that has them already is left as it is.
  - The module C(community.general.htpasswd) adds accounts to a file and can't be told what a hash may cost. A registry
    works one out for every request, of which a pull makes one a layer, so the cost must fit.
author:
  - accel.cluster contributors (@accel-cluster)
requirements:
  - C(htpasswd), of the package apache2-utils
options:
  path:
    description: The file.
    type: path
    required: true
  username:
    description: The name.
    type: str
    required: true
  password:
    description: The password. A short one is only safe at a higher O(cost).
    type: str
    required: true
  cost:
    description: Cost of bcrypt; each step doubles the time that a login takes.
    type: int
    default: 5
extends_documentation_fragment:
  - ansible.builtin.files
attributes:
  check_mode:
    support: full
    description: Can run in check mode and tell what would change.
  diff_mode:
    support: none
    description: A hash is not shown.
"""

EXAMPLES = r"""
- name: Write the account of the nodes
  accel.cluster.registry_account:
    path: /etc/accel/registry-server/pull.htpasswd
    username: node
    password: "{{ vault_registry_password }}"
    group: docker-registry
    mode: "0640"
"""

RETURN = r"""
path:
  description: The file that is or would be written.
  returned: always
  type: str
  sample: /etc/accel/registry-server/pull.htpasswd
"""

import os
import tempfile

from ansible.module_utils.basic import AnsibleModule


def is_right(module: AnsibleModule, program: str) -> bool:
    """Tell whether the file has this account with this password at this cost, and no other line."""
    options = module.params
    try:
        with open(options["path"], encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return False
    if len(lines) != 1 or not lines[0].startswith(f"{options['username']}:$2y${options['cost']:02}$"):
        return False
    argv = [program, "-v", "-i", options["path"], options["username"]]
    return module.run_command(argv, data=options["password"])[0] == 0


def main() -> None:
    """Write the file where it is not right."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "username": {"type": "str", "required": True},
            "password": {"type": "str", "required": True, "no_log": True},
            "cost": {"type": "int", "default": 5},
        },
        supports_check_mode=True,
        add_file_common_args=True,
    )
    options = module.params
    program = module.get_bin_path("htpasswd", required=True)
    try:
        changed = not is_right(module, program)
        if changed and not module.check_mode:
            argv = [program, "-n", "-i", "-B", "-C", str(options["cost"]), options["username"]]
            code, out, err = module.run_command(argv, data=options["password"])
            if code:
                module.fail_json(msg=f"htpasswd ended with {code}: {err.strip()}", path=options["path"])
            handle, temporary = tempfile.mkstemp(prefix=".accel-", dir=os.path.dirname(options["path"]))
            module.add_cleanup_file(temporary)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(out.strip() + "\n")
            module.atomic_move(temporary, options["path"])
    except OSError as exc:
        module.fail_json(msg=f"{options['path']} can't be written: {exc}", path=options["path"])
    if os.path.exists(options["path"]):
        changed = module.set_fs_attributes_if_different(module.load_file_common_arguments(options), changed)
    module.exit_json(changed=changed, path=options["path"])


if __name__ == "__main__":
    main()
