# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """What several modules of the collection say alike: of check mode, difference mode and the site."""

    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying target.
  diff_mode:
    description: Will return details on what has changed (or possibly needs changing), when in diff mode.
"""

    # For modules that only read.
    INFO_MODULE = r"""
options: {}
attributes:
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying target.
    support: full
    details:
      - This module only reads, so it does the same in check mode.
  diff_mode:
    description: Will return details on what has changed (or possibly needs changing), when in diff mode.
    support: N/A
    details:
      - This module only reads, so there is no difference to show.
"""

    # For actions that keep what is said of a site, without asking a host.
    CONTROLLER = r"""
options:
  site_dir:
    description: Directory of the site on the controller.
    type: path
    required: true
attributes:
  check_mode:
    support: full
    description: Does the same in check mode.
  diff_mode:
    support: none
    description: Changes nothing that could be shown.
  action:
    support: full
    description: Runs on the controller; nothing is sent to a host.
"""
