# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small images in the registry of a rehearsal, pushed from its own host as the build does."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REGISTRY = "ctl-01:5000"
_SCRIPT = (ROOT / "tests/tiny_image.py").read_text(encoding="utf-8")
_BUSYBOX = "test -x /bin/busybox || DEBIAN_FRONTEND=noninteractive apt-get install -qy busybox-static >/dev/null"


def on(instance: str, host: str, command: str, feed: str = "", limit_seconds: float = 120) -> str:
    """Run a shell command on a host, which must succeed; return what it printed."""
    config = ROOT / ".cache" / instance / "ssh/config"
    done = subprocess.run(
        ["ssh", "-F", str(config), host, command],
        input=feed,
        capture_output=True,
        text=True,
        timeout=limit_seconds,
        check=False,
    )
    assert done.returncode == 0, f"{host}: {command}\n{done.stdout}{done.stderr}"
    return done.stdout


def push(instance: str, word: str, repository: str = "train/drill", tag: str = "1", mebibytes: int = 0) -> str:
    """Push an image under a tag, which may mean another already; return its digest."""
    on(instance, "ctl-01", _BUSYBOX)
    (secret,) = (ROOT / ".cache" / instance).glob("*/registry-builder")
    builder = secret.read_text(encoding="utf-8").split()[0]
    words = ["https://127.0.0.1:5001", repository, tag, builder, word, str(mebibytes)]
    return on(instance, "ctl-01", f"python3 - {' '.join(words)}", feed=_SCRIPT).strip()
