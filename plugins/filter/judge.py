# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters that turn what a module saw into findings; each is documented in the YAML file of its name."""

from __future__ import annotations

import json

from ansible.errors import AnsibleFilterError
from ansible_collections.accel.cluster.plugins.module_utils._accel import (
    baseline,
    containers,
    judge,
    registry_host,
    stack,
)


def _plain(value: object, what: str) -> dict:
    """Return a mapping as plain data: variables arrive as containers that template when they are read."""
    if not isinstance(value, dict):
        raise AnsibleFilterError(f"{what} must be a mapping, not {type(value).__name__}")
    if value.get("unreachable"):
        raise AnsibleFilterError(f"{what} is no answer: the host stopped answering: {value.get('msg')}")
    return json.loads(json.dumps(value, default=str))


def judge_devices(
    observation: object, host: str, declared: object, language: str = "en", now: str | None = None
) -> list[dict]:
    """Return the findings on the cards of a host; see judge_devices.yml."""
    seen = _plain(observation, "judge_devices: what accelerator_info returned")
    about = _plain(declared, "judge_devices: the declared values")
    return judge.judge_devices(str(host), seen, about, seen.get("link_readings"), now, str(language))


def judge_baseline(
    observation: object, host: str, declared: object, language: str = "en", now: str | None = None
) -> list[dict]:
    """Return the findings on the operating system of a host; see judge_baseline.yml."""
    seen = _plain(observation, "judge_baseline: what baseline_info returned")
    about = _plain(declared, "judge_baseline: the declared values")
    return baseline.judge(str(host), seen, about, str(language), now or judge.now_utc())


def judge_driver_stack(
    observation: object, host: str, declared: object, language: str = "en", now: str | None = None
) -> list[dict]:
    """Return the findings on the driver stack of a host; see judge_driver_stack.yml."""
    seen = _plain(observation, "judge_driver_stack: what driver_stack_info returned")
    about = _plain(declared, "judge_driver_stack: the declared values")
    return stack.judge_stack(str(host), seen, about, str(language), now)


def judge_container(
    observation: object,
    host: str,
    declared: object,
    devices: object = None,
    language: str = "en",
    now: str | None = None,
) -> list[dict]:
    """Return the findings on the containers of a host; see judge_container.yml."""
    seen = _plain(observation, "judge_container: what container_info returned")
    about = _plain(declared, "judge_container: the declared values")
    cards = None if devices is None else _plain(devices, "judge_container: what accelerator_info returned")
    return containers.judge_host(str(host), seen, about, cards, str(language), now or judge.now_utc())


def judge_registry(
    observation: object, host: str, declared: object, language: str = "en", now: str | None = None
) -> list[dict]:
    """Return the findings on the host of the registry; see judge_registry.yml."""
    seen = _plain(observation, "judge_registry: what registry_info returned")
    about = _plain(declared, "judge_registry: the declared values")
    return registry_host.judge_host(str(host), seen, about, str(language), now or judge.now_utc())


class FilterModule:
    """Filters of the collection."""

    def filters(self) -> dict:
        """Return name -> function."""
        return {
            "judge_devices": judge_devices,
            "judge_baseline": judge_baseline,
            "judge_driver_stack": judge_driver_stack,
            "judge_container": judge_container,
            "judge_registry": judge_registry,
        }
