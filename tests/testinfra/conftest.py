# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts of a single test: pytest-testinfra knows those of a whole file only."""

from __future__ import annotations

import pytest
import testinfra


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "testinfra_hosts(*hosts): of the hosts of the file, run on these only")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what a test is not meant for: deselected, for a skipped test would be one that could not run."""
    inventory = config.getoption("ansible_inventory")
    kept, left = [], []
    for item in items:
        mark = item.get_closest_marker("testinfra_hosts")
        host = getattr(item, "callspec", None) and item.callspec.params.get("_testinfra_host")
        if not (mark and host):
            kept.append(item)
            continue
        wanted = {one.backend.host for one in testinfra.get_hosts(mark.args, ansible_inventory=inventory)}
        if not wanted:
            raise pytest.UsageError(f"{item.nodeid} is meant for hosts that are not there: {', '.join(mark.args)}")
        (kept if host.backend.host in wanted else left).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept
