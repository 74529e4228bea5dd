# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""What a check can end with and what to do then, on a node without a network."""

from __future__ import annotations

import re

from . import hints

_WORDS = {
    "en": {
        "none": "there is no check {0!r}",
        "near": "; did you mean {0}?",
        "known": "known checks: {0}",
    },
    "zh": {
        "none": "没有检查项 {0!r}",
        "near": "；是否指 {0}？",
        "known": "已有的检查项：{0}",
    },
}


def explain(check: str, language: str = "en") -> str | None:
    """Return a check with its causes and hints, or one cause of it; None for what is neither."""
    language = language if language in _WORDS else "en"
    if check not in hints.CHECKS and check not in hints.CAUSES:
        return None
    about = hints.CHECKS[check if check in hints.CHECKS else hints.check_of(check)]
    lines = [f"{check}: {about['title'][language]}"]
    for cause, spec in hints.CAUSES.items():
        if check not in (cause, hints.check_of(cause)):
            continue
        # What stands in braces is filled in by the check; its number format says nothing to a reader.
        message = re.sub(r"\{([^{}:]+):[^{}]*\}", r"{\1}", spec.message[language])
        lines += ["", f"{cause} ({hints.outcome(cause, language)})", f"    {message}"]
        if spec.hint[language]:
            lines.append(f"    -> {spec.hint[language]}")
    return "\n".join(lines)


def no_such_check(check: str, language: str = "en") -> str:
    """Return the sentence about a check that does not exist, with what may have been meant."""
    import difflib  # for a slip of the fingers only

    words = _WORDS.get(language, _WORDS["en"])
    known = [*hints.CHECKS, *hints.CAUSES]
    near = difflib.get_close_matches(check, known, n=3, cutoff=0.6)
    # A last word alone ("count") is what people remember.
    near += [one for one in hints.CHECKS if check and one.endswith("." + check) and one not in near]
    if near:
        return words["none"].format(check) + words["near"].format(", ".join(near[:3]))
    return words["none"].format(check) + "\n" + words["known"].format(", ".join(hints.CHECKS))
