# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write docs/faults.md and docs/zh/faults.md from the texts of the collection: ``python3 tests/render_faults.py``."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = {"en": ROOT / "docs/faults.md", "zh": ROOT / "docs/zh/faults.md"}


def main() -> None:
    """Write both pages."""
    sys.path.insert(0, str(ROOT / "plugins/module_utils"))
    from _accel import hints

    for language, page in PAGES.items():
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(hints.faults_page(language), encoding="utf-8")


if __name__ == "__main__":
    main()
