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

    # For modules that know drivers which no package manager knows.
    INSTALLERS = r"""
options:
  installers:
    description: Programs that install parts of the driver, in the order in which they are to run.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the part, such as V(driver) or V(firmware).
        type: str
        required: true
      file:
        description: The program on the host, such as C(/srv/Ascend-hdk-910b-npu-driver_25.2.0_linux-aarch64.run).
        type: path
      sha256:
        description: Its checksum, which is compared before anything of it runs.
        type: str
      version:
        description: The version that is to be installed, as O(installers[].version_file) or
          O(installers[].version_command) tells it.
        type: str
      arguments:
        description: Arguments with which it installs without asking.
        type: list
        elements: str
        default: []
      upgrade_arguments:
        description: Arguments where another version is installed; empty takes O(installers[].arguments).
        type: list
        elements: str
        default: []
      version_file:
        description: File that tells the installed version, or a pattern of it; absent while nothing is installed.
        type: str
      version_command:
        description: Command that tells the installed version, instead of a file.
        type: list
        elements: str
      version_pattern:
        description: Regular expression whose one group is the version.
        type: str
      absent_pattern:
        description: Regular expression that finds in what a failing O(installers[].version_command) says that nothing
          is installed.
        type: str
      success_statuses:
        description: Exit statuses that the vendor documents as success. Any other is a failure.
        type: list
        elements: int
        default: [0]
      upgrade_first:
        description: Whether it runs before the others where another version is installed.
        type: bool
        default: false
      target:
        description: Directory that is installed to; room is wanted on its file system.
        type: path
        default: /usr/local
      room_mib:
        description: Room that is needed there; V(0) takes what the file has unpacked.
        type: int
        default: 0
      builds_module:
        description: Whether it builds a kernel module, and so needs headers of each kernel that may boot next.
        type: bool
        default: false
      timeout_seconds:
        description: How long it may run before it is killed.
        type: int
        default: 1800
  state_dir:
    description: Directory of the journals and of what the programs said.
    type: path
    default: /var/lib/accel/installers
"""
