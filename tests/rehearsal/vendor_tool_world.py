# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask the probe within a root file system that has a vendor's own tools; run by test_vendor_tools.py.

It runs in that root with its Python, so nothing but the standard library and ``_accel`` is there. On standard input a
JSON object: ``declared`` for the judgement, ``commands`` to run besides. On standard output one too: ``observation``,
``findings``, and ``said``, what each command answered.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

sys.path.insert(0, "/opt/accel")

from _accel import judge, probe
from _accel.model import as_dict
from _accel.runner import Runner

TIMEOUT_SECONDS = 20
# The kernel log in reach is that of the machine that runs the tests.
GATHER = ("processes", "links", "slots", "health")


def main() -> None:
    """Observe, judge, and run the commands as they are."""
    asked = json.load(sys.stdin)
    runner = Runner()
    observation = as_dict(probe.observe(runner, [asked["vendor"]], TIMEOUT_SECONDS, GATHER))
    told = {
        "observation": observation,
        "findings": judge.judge_devices("gpu-01", observation, asked["declared"]),
        "said": [asdict(runner.run(command, TIMEOUT_SECONDS)) for command in asked["commands"]],
    }
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
