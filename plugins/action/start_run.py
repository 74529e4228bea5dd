# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Name a run and claim its folder; documented in plugins/modules/start_run.py."""

from __future__ import annotations

import os
import tempfile
from datetime import datetime, timezone

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.accel.cluster.plugins.module_utils._accel import conclude, record

ARGUMENTS = {
    "site_dir": {"type": "path", "required": True},
    "run_id": {"type": "str", "default": ""},
}


# A folder may need no room at all, the parts of a few hosts need this much.
PROBE_BYTES = 256 * 1024


class ActionModule(ActionBase):
    """Makes one folder of the site; no host is connected to."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp=None, task_vars=None):
        """Return the name of the run, after its folder was made."""
        result = super().run(tmp, task_vars)
        options = self.validate_argument_spec(argument_spec=ARGUMENTS)[1]
        reports = os.path.join(str(options["site_dir"]), "reports")
        run_id = str(options["run_id"])
        started_at = record.now_utc()
        try:
            if run_id:
                problem = conclude.path_name_problem(run_id, "run_id")
                if problem:
                    raise AnsibleActionFail(problem)
                ours = not os.path.isdir(os.path.join(reports, run_id))
                record.make_directory(os.path.join(reports, run_id))
            else:
                ours = True
                run_id = claim(reports, datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ"))
            probe(os.path.join(reports, run_id), ours)
        except OSError as exc:
            why = record.reason(exc)
            raise AnsibleActionFail(f"{reports} can't take the report of a run: {why}. No host was asked.") from None
        result.update(changed=False, run_id=run_id, started_at=started_at, folder=os.path.join(reports, run_id))
        return result


def claim(reports: str, name: str) -> str:
    """Make a folder that was not there, named after the time; one more run in the same second gets a number.

    Two runs in one folder would replace each other's findings.
    """
    record.make_directory(reports)
    number = 1
    while True:
        run_id = name if number == 1 else f"{name}-{number}"
        try:
            os.mkdir(os.path.join(reports, run_id))
        except FileExistsError:
            number += 1
            continue
        os.chmod(os.path.join(reports, run_id), 0o755)
        return run_id


def probe(folder: str, ours: bool) -> None:
    """Raise OSError where parts can't be written; then a folder that is ``ours`` goes again.

    On a full disk every host would fail to hand over its findings, and leave the run with nobody to conclude it.
    """
    try:
        with tempfile.TemporaryFile(dir=folder) as handle:
            handle.write(b"\0" * PROBE_BYTES)
            handle.flush()
            os.fsync(handle.fileno())  # some file systems look for room only when they write
    except OSError:
        if ours:
            os.rmdir(folder)
        raise
