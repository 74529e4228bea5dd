# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a machine that cannot have test hosts is told, before anything on it is touched."""

from __future__ import annotations

import pytest

# A user of its own is refused before the script needs to read or write anything in the checkout.
AS_NOBODY = ("setpriv", "--reuid=65534", "--clear-groups")
# In a mount namespace of its own /etc/os-release is another system's.
AS_FEDORA = ("unshare", "--mount", "bash", "-euc", 'mount --bind "$0" "$(realpath /etc/os-release)"; exec "$@"')


@pytest.mark.parametrize(
    "command", [("tools/setup.sh", "rehearsal"), ("/usr/bin/python3", "tools/rehearsal_hosts.py", "create", "node-01")]
)
def test_another_user_than_root_is_told_so(shell, command) -> None:
    done = shell(*AS_NOBODY, *command)
    if "Permission denied" in done.stderr:
        pytest.skip("this checkout is in a folder that other users can't read")
    assert done.returncode == 1
    assert "needs root" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "command", [("tools/setup.sh", "rehearsal"), ("/usr/bin/python3", "tools/rehearsal_hosts.py", "create", "node-01")]
)
def test_another_system_than_debian_is_told_so(shell, tmp_path, command) -> None:
    release = tmp_path / "os-release"
    release.write_text('ID=fedora\nPRETTY_NAME="Fedora Linux 44"\n')
    done = shell(*AS_FEDORA, release, *command)
    assert done.returncode == 1
    assert "needs a Debian machine" in done.stderr
    assert "Fedora Linux 44" in done.stderr
