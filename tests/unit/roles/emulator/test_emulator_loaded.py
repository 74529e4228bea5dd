# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver follows what packages brought: the library at once, the module when the host starts or is told to."""

from __future__ import annotations

import pytest
from accel_emulator import host, nvidia_smi

DECLARED = "535.261.03"


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return a function that installs the library of a version, as Debian's package lays it out."""
    link = tmp_path / "libnvidia-ml.so.1"
    monkeypatch.setattr(nvidia_smi, "LIBRARIES", (str(link),))
    monkeypatch.setattr(host, "RUN", str(tmp_path))

    def run(version: str) -> None:
        file = tmp_path / f"libnvidia-ml.so.{version}"
        file.touch()
        link.unlink(missing_ok=True)
        link.symlink_to(file.name)

    return run


def test_without_packages_the_module_is_the_declared_one(install, tmp_path):
    assert host.loaded("nvidia", DECLARED) == DECLARED
    assert host.loaded("amd", "6.12.12") == "6.12.12"
    assert (tmp_path / "loaded").read_text() == f"{DECLARED} {DECLARED}\n"


def test_packages_that_come_later_leave_the_module_alone_until_it_is_loaded_anew(install):
    assert host.loaded("nvidia", DECLARED) == DECLARED
    install("535.309.01")
    assert host.loaded("nvidia", DECLARED) == DECLARED
    host.unload()
    assert host.loaded("nvidia", DECLARED, check=True) == "535.309.01"
    assert host.loaded("nvidia", DECLARED) == "535.309.01"
    # Another declaration is another driver, and a release that nobody can answer for is none.
    install("999.1")
    assert host.loaded("nvidia", "570.86.15") == "570.86.15"


def test_the_tool_loads_the_library_that_is_there_when_it_is_called(install, show):
    emulated = show("nvidia_h100_8", driver_version=DECLARED)
    install(DECLARED)
    assert emulated.smi("nvidia-smi", "-L")[0] == 0
    install("535.309.01")
    rc, said, _err = emulated.smi("nvidia-smi", "-L")
    assert (rc, said) == (
        18,
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.309\n",
    )


def test_an_injected_mismatch_is_no_matter_of_packages(install, show):
    install(DECLARED)
    emulated = show("nvidia_h100_8", {"fault": "driver_library_mismatch"}, driver_version=DECLARED)
    assert emulated.smi("nvidia-smi", "-L")[1].endswith("NVML library version: 535.309\n")
