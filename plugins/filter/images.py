# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that gives declared images their digest; documented in pinned_images.yml."""

from __future__ import annotations

from ansible.errors import AnsibleFilterError
from ansible_collections.accel.cluster.plugins.module_utils._accel import images


def pinned_images(declared: object, accepted: object) -> dict:
    """Return ``{"images": [...], "refused": [...], "unbuilt": [...]}``; see pinned_images.yml."""
    if not isinstance(declared, (list, tuple)):
        raise AnsibleFilterError(f"pinned_images: the images must be a list, not {type(declared).__name__}")
    if not isinstance(accepted, dict):
        raise AnsibleFilterError(f"pinned_images: what was accepted must be a mapping, not {type(accepted).__name__}")
    return images.pinned([str(one) for one in declared], accepted)


class FilterModule:
    """Filters of the collection."""

    def filters(self) -> dict:
        """Return name -> function."""
        return {"pinned_images": pinned_images}
