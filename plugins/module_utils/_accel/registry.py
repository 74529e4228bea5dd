# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""The vendors that the collection knows.

The imports are static: what is loaded by name at run time is not shipped to the hosts.
"""

from __future__ import annotations

from .vendors.amd import Amd
from .vendors.ascend import Ascend
from .vendors.base import Vendor
from .vendors.nvidia import Nvidia

VENDORS: dict[str, Vendor] = {vendor.name: vendor for vendor in (Nvidia(), Amd(), Ascend())}
