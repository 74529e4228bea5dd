# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters on the versions of many hosts; each is documented in the YAML file of its name."""

from __future__ import annotations

import json

from ansible.errors import AnsibleFilterError
from ansible_collections.accel.cluster.plugins.module_utils._accel import versions


def odd_versions(hosts: object, pins: object = None) -> list[dict]:
    """Return which host differs from the others, a component at a time; see odd_versions.yml."""
    for value, what in ((hosts, "the hosts"), (pins or {}, "the pins")):
        if not isinstance(value, dict):
            raise AnsibleFilterError(f"odd_versions: {what} must be a mapping, not {type(value).__name__}")
    # Variables arrive as containers that template when they are read.
    plain_hosts, plain_pins = json.loads(json.dumps([hosts, pins or {}], default=str))
    unknown = sorted(set(plain_pins) - {*versions.COMPONENTS, "driver"})
    if unknown:
        known = ", ".join(["driver", *versions.COMPONENTS])
        raise AnsibleFilterError(f"odd_versions: no such component: {', '.join(unknown)}; there are {known}")
    return versions.odd(plain_hosts, plain_pins)


class FilterModule:
    """Filters on versions."""

    def filters(self) -> dict:
        """Return name -> function."""
        return {"odd_versions": odd_versions}
