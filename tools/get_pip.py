# This file is part of the Ansible collection accel.cluster.
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Put pip into a virtual environment of ansible-test without any other server than the package index.

ansible-test downloads a script for this from a server of its own. It uses a file with the script's name where there
is one; tools/run_tests.py puts this one there. Arguments are those of the real script.
"""

from __future__ import annotations

import subprocess
import sys

if __name__ == "__main__":
    wanted = [word for word in sys.argv[1:] if word not in ("--no-setuptools", "--no-wheel")]
    subprocess.run([sys.executable, "-m", "ensurepip", "--default-pip"], check=True)
    sys.exit(subprocess.run([sys.executable, "-m", "pip", "install", *wanted], check=False).returncode)
