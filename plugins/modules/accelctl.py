#!/usr/bin/python
# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: accelctl
short_description: Put the program accelctl on a node
version_added: 1.0.0
description:
  - Installs the device query and the judges of this collection as a program that needs nothing but Python 3.9.
  - The code travels with this module, so a node always runs the version of the collection that was applied last.
author:
  - accel.cluster contributors (@accel-cluster)
options:
  path:
    description: Directory that holds the code. It is owned by this module; files of earlier versions are removed.
    type: path
    default: /usr/local/lib/accel
  program:
    description: The program itself, a few lines that start the code.
    type: path
    default: /usr/local/bin/accelctl
attributes:
  check_mode:
    support: full
    description: Can run in check mode and tell what would change.
  diff_mode:
    support: full
    description: Shows which files differ.
"""

EXAMPLES = r"""
- name: Put accelctl on the node
  accel.cluster.accelctl:
"""

RETURN = r"""
files:
  description: Files of the program that were or would be written, compiled or removed, below O(path).
  returned: always
  type: list
  elements: str
  sample: [_accel/judge.py]
"""

import importlib.util
import os
import pkgutil
import py_compile

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.accel.cluster.plugins.module_utils import _accel
from ansible_collections.accel.cluster.plugins.module_utils._accel import cli

START = """# Written by accel.cluster.agent.
# While the program is being read, an interrupt just ends it; then it says itself what happens. The module signal would
# have to be read first.
import _signal

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

from _accel.cli import main

raise SystemExit(main())
"""
PROGRAM = """#!/bin/sh
# Written by accel.cluster.agent. -I: neither the caller's directory nor their environment leads astray.
exec python3 -I {path} "$@"
"""


def sources(package) -> dict[str, str]:
    """Return ``{relative path: text}`` of a package, wherever it was imported from."""
    found = {}
    prefix = package.__name__ + "."
    for info in pkgutil.walk_packages(package.__path__, prefix):
        spec = info.module_finder.find_spec(info.name, None) if info.module_finder else None
        text = spec.loader.get_source(info.name)
        name = info.name[len(prefix) :].replace(".", "/")
        found[f"_accel/{name}/__init__.py" if info.ispkg else f"_accel/{name}.py"] = text
    found["_accel/__init__.py"] = ""
    return found


def read(path: str) -> str | None:
    """Return the text of a file, None when there is none."""
    try:
        with open(path, encoding="utf-8") as handle:
            return handle.read()
    except FileNotFoundError:
        return None


def present(path: str) -> dict[str, str | None]:
    """Return the source files that lie below ``path`` now."""
    return {
        os.path.relpath(os.path.join(folder, name), path): read(os.path.join(folder, name))
        for folder, _dirs, names in os.walk(path)
        for name in names
        if name.endswith(".py")
    }


def is_compiled(path: str, text: str) -> bool:
    """Tell whether the compiled file beside a source is of this Python and of this text."""
    try:
        with open(importlib.util.cache_from_source(path), "rb") as handle:
            header = handle.read(16)
    except OSError:
        return False
    return header == importlib.util.MAGIC_NUMBER + b"\3\0\0\0" + importlib.util.source_hash(text.encode())


def write(module: AnsibleModule, path: str, text: str, mode: int) -> None:
    """Write one file as a whole or not at all."""
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    temporary = os.path.join(module.tmpdir, os.path.basename(path) + ".new")
    with open(temporary, "w", encoding="utf-8") as handle:
        handle.write(text)
    module.atomic_move(temporary, path)
    # After the move: it gives a file that is new the mode of the umask.
    os.chmod(path, mode)


def main() -> None:
    """Compare, then write what differs."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "default": "/usr/local/lib/accel"},
            "program": {"type": "path", "default": "/usr/local/bin/accelctl"},
        },
        supports_check_mode=True,
    )
    path, program = module.params["path"], module.params["program"]
    wanted = {**sources(_accel), "__main__.py": START}
    if f"_accel/{cli.__name__.rsplit('.', 1)[-1]}.py" not in wanted:
        module.fail_json(msg="the code of this collection could not be read on the node")
    now = present(path)
    stale = sorted(set(now) - set(wanted))
    changed = sorted(name for name, text in wanted.items() if now.get(name) != text)
    # Another Python on the host looks for compiled files of its own.
    raw = sorted(name for name, text in wanted.items() if not is_compiled(os.path.join(path, name), text))
    start = PROGRAM.format(path=path)
    program_differs = read(program) != start or not os.access(program, os.X_OK)
    if not module.check_mode:
        for name in changed:
            write(module, os.path.join(path, name), wanted[name], 0o644)
        for name in stale:
            os.unlink(os.path.join(path, name))
        for name in raw:
            # With the hash of the source inside: modules look by it whether they may take the compiled file.
            py_compile.compile(
                os.path.join(path, name),
                doraise=True,
                invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH,
            )
        if program_differs:
            write(module, program, start, 0o755)
    touched = sorted({*changed, *stale, *raw}) + ([program] if program_differs else [])
    module.exit_json(
        changed=bool(touched),
        files=touched,
        diff={"before": "".join(f"{name}\n" for name in now), "after": "".join(f"{name}\n" for name in sorted(wanted))},
    )


if __name__ == "__main__":
    main()
