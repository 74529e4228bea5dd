# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs when a vendor tool is called. Kept short: a real tool is a compiled program and starts at once."""

from __future__ import annotations

import importlib
import marshal
import os
import sys

ANSWERS = "/run/accel-emulator/answers"


def main(tool: str) -> None:
    """Answer as ``tool`` and leave."""
    if tool == "nvidia-smi":
        from .nvidia_smi import NO_DRIVER, answer
    elif tool == "npu-smi":
        from .npu_smi import NO_DRIVER, answer
    elif tool == "amd-smi":
        from .amd_smi import NO_DRIVER, answer
    elif tool == "rocm-smi":
        from .amd_smi import ROCM_NO_DRIVER as NO_DRIVER
        from .amd_smi import rocm_answer as answer
    else:
        NO_DRIVER = (1, "", f"{tool}: the driver is not loaded\n")
    try:
        with open(f"{ANSWERS}/{tool}", "rb") as handle:
            data = marshal.load(handle)
            if "by" in data:
                # Two vendors may have a tool of one name: what was rendered tells whose this is.
                answer = importlib.import_module(f".{data['by']}", __package__).answer
    except (OSError, ValueError, EOFError):
        _leave(*NO_DRIVER)  # nothing was applied since the host started
    answered = answer(data, sys.argv[1:])
    if data["garbage"]:
        from .garbage import damage

        answered = damage(data["garbage"], tool, answered)
    if answered[0] is None:
        _hang()
    _leave(*answered)


def _leave(rc: int, out: str | bytes, err: str | bytes) -> None:
    for number, text in ((1, out), (2, err)):
        content = text.encode() if isinstance(text, str) else text
        try:
            while content:
                content = content[os.write(number, content) :]
        except OSError:  # the reader went away
            break
    os._exit(rc)


def _hang() -> None:
    """Hang as a process does that waits for a sick device: only SIGKILL ends it."""
    import signal
    import time

    for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(one, signal.SIG_IGN)
    while True:
        time.sleep(3600)
