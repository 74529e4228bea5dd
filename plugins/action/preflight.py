# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge the whole inventory on the controller; plugins/modules/preflight.py has the documentation."""

from __future__ import annotations

import os
import tempfile

from ansible import constants
from ansible.context import CLIARGS
from ansible.plugins.action import ActionBase
from ansible.utils.vars import load_extra_vars
from ansible_collections.accel.cluster.plugins.module_utils._accel import contract
from ansible_collections.accel.cluster.plugins.plugin_utils import inventory_site

ARGUMENTS = {"scope": {"type": "str", "choices": ["inventory", "command_line"], "default": "inventory"}}
_SITE_DIR_FORM = "a directory outside the inventory that can be written to, such as /srv/accel/sites/lab"


class ActionModule(ActionBase):
    """Refuses a bad inventory: reads, judges and writes nothing but a probe in the site directory."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp=None, task_vars=None):
        """Return ``complaints`` and ``notes``; fail when there is any complaint."""
        result = super().run(tmp, task_vars)
        options = self.validate_argument_spec(argument_spec=ARGUMENTS)[1]
        extra_vars = load_extra_vars(self._loader)
        if options["scope"] == "command_line":
            found = inventory_site.judge_command_line(self._loader, self._templar, task_vars, extra_vars)
            return self._concluded(result, found, [], "the command line", "The command line is sound")
        sources = [str(source) for source in CLIARGS.get("inventory") or constants.DEFAULT_HOST_LIST]
        judged = inventory_site.judge(sources, self._loader, self._templar, task_vars["hostvars"], extra_vars)
        everything = list(judged.complaints)
        # Of a site that is refused anyway, not even its directory is made.
        look_only = self._task.check_mode or bool(everything)
        everything += self._site_directory(judged.site, judged.defaults, sources, look_only)
        sound = f"The inventory is sound: {len(judged.site.hosts)} hosts, {len(judged.files.texts)} files"
        result = self._concluded(result, contract.merged(everything), judged.notes, "the inventory", sound)
        if not everything:
            self._display.display("\n".join([f"{sound}.", *judged.notes]))
        return result

    def _concluded(self, result, complaints, notes, subject, sound):
        """Return the result of the task, which has failed when there is any complaint."""
        result.update(changed=False, msg=sound, complaints=[one.as_dict() for one in complaints], notes=notes)
        if complaints:
            result.update(failed=True, msg=_message(result["complaints"], subject))
        return result

    def _site_directory(self, site, defaults, sources, look_only):
        """Yield what is wrong with the directories that hosts write records and reports to; one, if all is well."""
        seen = set()
        for values in site.hosts.values():
            declared = values.get("cluster_site_dir")
            if declared is None:
                own = {name: one.value for name, one in values.items() if not one.error}
                templar = self._templar.copy_with_new_env(available_variables={**defaults, **own})
                declared = inventory_site.templated(templar, defaults["cluster_site_dir"])
            # A wrong type or a relative path is complained about as such.
            path = declared.value
            if declared.error or not isinstance(path, str) or not path.startswith("/") or path in seen:
                continue
            seen.add(path)
            problem = inventory_site.below_inventory(path, sources) or _not_writable(path, look_only)
            if problem:
                text = f'cluster_site_dir is "{path}", {problem}'
                yield contract.Complaint(["inventory"], text, _SITE_DIR_FORM, "cluster_site_dir", declared.place)


def _not_writable(path, look_only):
    """Return why a directory can't be written to, or nothing; where it is only looked at, without making it."""
    existing = path
    while not os.path.exists(existing):
        existing = os.path.dirname(existing)
    if not os.path.isdir(existing):
        return f"but {existing} is no directory"
    if look_only:
        return "" if os.access(existing, os.W_OK | os.X_OK) else f"but {existing} can't be written to"
    try:
        os.makedirs(path, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path, prefix=".preflight-") as probe:
            probe.write(b"\0" * 4096)  # a full file system shows only when something is written
            probe.flush()
    except OSError as exc:
        return f"but nothing can be written there: {exc.strerror}"
    return ""


def _message(complaints, subject):
    lines = [f"{number}. {one['message']}" for number, one in enumerate(complaints, 1)]
    count = "1 thing is" if len(lines) == 1 else f"{len(lines)} things are"
    return "\n".join([f"{count} wrong with {subject}; nothing was changed, no host was asked.", *lines])
