#!/usr/bin/python
# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: merged_json
short_description: Merge settings into a JSON file that others write too
version_added: 1.0.0
description:
  - Merges mappings key by key, at any depth; keys that O(values) does not name stay as they are and where they are.
    Meant for C(/etc/docker/daemon.json), for which there are no drop-in files.
  - A file that is not valid JSON, or has a key twice, is refused with its line and left as it is.
  - podman needs no merging. Version 4.3 and newer read drop-in files in C(/etc/containers/containers.conf.d) and
    C(/etc/containers/registries.conf.d).
author:
  - accel.cluster contributors (@accel-cluster)
options:
  path:
    description: The file. Where it is a link, what it leads to is written.
    type: path
    required: true
  values:
    description: What is to be in it.
    type: dict
    required: true
  lists:
    description: Whether lists get the entries that they lack, or are taken from O(values) as they are.
    type: str
    choices: [append, replace]
    default: append
  backup:
    description: Keep the file as it was, with the time in its name.
    type: bool
    default: true
  validate:
    description: A command that checks the new file before it is put in place; C(%s) stands for its name.
    type: str
  mode:
    description: Mode of a file that is made new. One that is there keeps its own.
    type: str
    default: "0644"
attributes:
  check_mode:
    support: full
    description: Can run in check mode and tell what would change.
  diff_mode:
    support: full
    description: Shows the file before and after.
"""

EXAMPLES = r"""
- name: Tell Docker where to find device files, and to keep containers over its own restart
  accel.cluster.merged_json:
    path: /etc/docker/daemon.json
    values:
      features: {cdi: true}
      live-restore: true
    validate: dockerd --validate --config-file=%s
"""

RETURN = r"""
path:
  description: The file that is or would be written.
  returned: always
  type: str
  sample: /etc/docker/daemon.json
backup_file:
  description: The file as it was.
  returned: when it was changed and kept
  type: str
  sample: /etc/docker/daemon.json.4711.2026-11-30@01:02:03~
"""

import os
import shlex
import tempfile

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.accel.cluster.plugins.module_utils._accel import settings
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors.base import Unreadable


def argument_spec() -> dict:
    """Return the options of the module."""
    return {
        "path": {"type": "path", "required": True},
        "values": {"type": "dict", "required": True},
        "lists": {"type": "str", "choices": ["append", "replace"], "default": "append"},
        "backup": {"type": "bool", "default": True},
        "validate": {"type": "str"},
        "mode": {"type": "str", "default": "0644"},
    }


def read(path: str) -> str | None:
    """Return the text of a file, None when there is none; ValueError for what is no text."""
    try:
        with open(path, encoding="utf-8") as handle:
            return handle.read()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as exc:
        raise ValueError(f"{path} is not UTF-8 text ({exc.reason} at byte {exc.start}); it is left as it is") from None


def write(module: AnsibleModule, path: str, text: str, new: bool) -> str | None:
    """Check and write a file, whole or not at all; return the backup. ValueError where the check refuses it."""
    options = module.params
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o755, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=".accel-", dir=folder)
    module.add_cleanup_file(temporary)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    if options["validate"]:
        words = [word.replace("%s", temporary) for word in shlex.split(options["validate"])]
        code, out, err = module.run_command(words)
        if code:
            raise ValueError(
                f"{' '.join(words)} ended with {code}: {(err or out).strip()[:1000]}; {path} is left as it is"
            )
    backup = module.backup_local(path) if options["backup"] and not new else None
    module.atomic_move(temporary, path)
    if new:
        os.chmod(path, int(options["mode"], 8))
    return backup


def main() -> None:
    """Merge, and write where that changes anything."""
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    options = module.params
    path = os.path.realpath(options["path"])
    result: dict = {}
    try:
        before = read(path)
        old = settings.parse_json(before or "")
        new = settings.merged(old, options["values"], options["lists"])
        # As text: to Python, true and 1 are the same.
        changed = before is None or settings.text_of(old) != settings.text_of(new)
        after = settings.text_of(new, before or "") if changed else before
        if changed and not module.check_mode:
            backup = write(module, path, after, before is None)
            result = {"backup_file": backup} if backup else {}
    except Unreadable as exc:
        module.fail_json(msg=f"{path} {exc}. It is left as it is; correct it first.", path=path)
    except (OSError, ValueError) as exc:
        module.fail_json(msg=str(exc), path=path)
    module.exit_json(
        changed=changed,
        path=path,
        diff={"before": before or "", "after": after or "", "before_header": path, "after_header": path},
        **result,
    )


if __name__ == "__main__":
    main()
