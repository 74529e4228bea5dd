# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The vendors' own tools that Debian packages: what test_vendor_tools.py runs, and docs/vendors.md names."""

from __future__ import annotations

# Packages by suite; a point release may move a version within its branch.
SUITES = {
    "bookworm": ("rocm-smi", "nvidia-smi", "nvidia-tesla-470-smi"),
    "trixie": ("rocm-smi", "amd-smi", "nvidia-smi"),
}
# Suite, folder below /usr/lib/nvidia, branch.
NVIDIA = [("bookworm", "tesla-470", "470"), ("bookworm", "current", "535"), ("trixie", "current", "550")]
# Suite, tool, release of ROCm.
AMD = [("bookworm", "rocm-smi", "5.2"), ("trixie", "rocm-smi", "6.1"), ("trixie", "amd-smi", "6.1")]
RAN = {
    "nvidia": [f"nvidia-smi {branch}" for _suite, _folder, branch in NVIDIA],
    "amd": [f"{tool} {release}" for _suite, tool, release in AMD],
}
