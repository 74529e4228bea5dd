# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start the emulator. Its files travel as one bundle and are laid out here when the bundle is a new one."""

from __future__ import annotations

import compileall
import json
import os
import shutil
import sys

HOME = "/usr/local/lib/accel-emulator"
# -S: the tools need nothing of site-packages, and start in half the time without.
TOOL = """#!/usr/bin/python3 -IS
import sys

sys.path.insert(0, "{home}")
from accel_emulator.front import main

main("{tool}")
"""


def lay_out() -> None:
    """Write and compile the files of the bundle, unless they are there already."""
    with open(f"{HOME}/bundle.json", encoding="utf-8") as handle:
        text = handle.read()
    laid = f"{HOME}/laid_out.json"
    try:
        with open(laid, encoding="utf-8") as handle:
            if handle.read() == text:
                return
    except OSError:
        pass
    for folder in ("accel_emulator", "bin"):
        shutil.rmtree(f"{HOME}/{folder}", ignore_errors=True)
        os.makedirs(f"{HOME}/{folder}")
    for name, content in json.loads(text).items():
        _write(f"{HOME}/accel_emulator/{name}", content, 0o644)
    compileall.compile_dir(f"{HOME}/accel_emulator", quiet=1)
    from accel_emulator.views import all_tools

    for tool in all_tools():
        _write(f"{HOME}/bin/{tool}", TOOL.format(home=HOME, tool=tool), 0o755)
    with open(laid, "w", encoding="utf-8") as handle:
        handle.write(text)


def _write(path: str, content: str, mode: int) -> None:
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(content)
    os.chmod(path, mode)


if __name__ == "__main__":
    sys.path.insert(0, HOME)
    lay_out()
    from accel_emulator.cli import main

    sys.exit(main())
