# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep the digests of the images that a site built; documented in plugins/modules/image_lock.py."""

from __future__ import annotations

import hashlib
import os
import re

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.accel.cluster.plugins.module_utils._accel import image_recipes, record
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import dicts_of

ARGUMENTS = {
    "site_dir": {"type": "path", "required": True},
    "recipes": {"type": "list", "elements": "dict", "required": True},
    "registry": {"type": "str", "required": True},
    "name": {"type": "str"},
    "digest": {"type": "str"},
}


class ActionModule(ActionBase):
    """Reads and writes files of the site; no host is connected to."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp=None, task_vars=None):
        """Return what is to be built, or accept what was."""
        result = super().run(tmp, task_vars)
        options = self.validate_argument_spec(argument_spec=ARGUMENTS)[1]
        try:
            result.update(answer(options, self._task.check_mode))
        except record.RecordError as exc:
            raise AnsibleActionFail(str(exc)) from None  # Ansible would append the cause, the same text
        return result


def lock_path(site: str) -> str:
    """Return the file of the accepted digests."""
    return os.path.join(site, "baselines", "images.json")


def accepted_images(site: str) -> dict:
    """Return what was accepted, by the names of the images."""
    body = record.load(lock_path(site), image_recipes.lock_problems)
    return body["images"] if body else {}


def contents_of(recipe: dict) -> tuple[dict, list]:
    """Return the hashes of a recipe's files by their path, and a sentence for each that can't be read."""
    hashes, wrong = {}, []
    for one in dicts_of(recipe.get("files")):
        try:
            with open(str(one.get("src")), "rb") as file:
                hashes[one.get("src")] = hashlib.sha256(file.read()).hexdigest()
        except OSError as exc:
            wrong.append(f"{recipe.get('name')}: files: {one.get('src')} can't be read: {record.reason(exc)}")
    return hashes, wrong


def answer(options: dict, check_mode: bool) -> dict:
    """Return the result of the task; write where a digest is to be accepted."""
    site = options["site_dir"]
    recipes = [image_recipes.normal(one) for one in options["recipes"]]
    hashes, unread = {}, []
    for recipe in recipes:
        contents, wrong = contents_of(recipe)
        hashes[recipe["name"]] = image_recipes.recipe_hash(recipe, contents)
        unread += wrong
    told = image_recipes.plan(recipes, hashes, accepted_images(site), options["registry"])
    told = {"changed": False, **told, "refused": unread + told["refused"]}
    mine = [one for one in recipes if one["name"] == options["name"]]
    if mine:
        told["recipe"] = mine[0]
    if options["digest"] is None:
        return told
    if not mine or not re.fullmatch("sha256:[0-9a-f]{64}", options["digest"]):
        raise record.RecordError(f"{options['name']} has no recipe, or {options['digest']!r} is no digest")
    if check_mode:
        return {**told, **accept(options, hashes, accepted_images(site))[0]}
    history = os.path.join(site, "history.jsonl")
    with record.locked_history(history) as handle:
        result, body, event = accept(options, hashes, accepted_images(site))
        if body is not None:
            # The digest counts, so it comes first; a line that a full disk took is only a line.
            record.write(lock_path(site), body)
            record.add_events(handle, history, [event])
    return {**told, **result}


def accept(options: dict, hashes: dict, accepted: dict) -> tuple[dict, dict | None, dict]:
    """Return the result, the list as it is to be written (None: as it is), and the event for the history."""
    name, digest = options["name"], options["digest"]
    before = accepted.get(name)
    row = {"digest": digest, "recipe": hashes[name], "at": record.now_utc()}
    if before and (before["digest"], before["recipe"]) == (row["digest"], row["recipe"]):
        return {"changed": False}, None, {}
    if before:
        raise record.RecordError(f"{name} means {before['digest']} since {before.get('at')}; it can't mean {digest}")
    body = {"schema": 1, "images": {**accepted, name: row}}
    path = lock_path(options["site_dir"])
    diff = {
        "before": record.canonical({"schema": 1, "images": accepted}),
        "after": record.canonical(body),
        "before_header": path,
        "after_header": path,
    }
    event = {"event": "image_accepted", "image": name, **row}
    return {"changed": True, "diff": [diff]}, body, event
