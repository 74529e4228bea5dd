# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""What a check can end with and what to do then, on a node without a network."""

from __future__ import annotations

from . import hints

_WORDS = {
    "en": {
        "none": "there is no check {0!r}",
        "near": "; did you mean {0}?",
        "begin": "; these begin so:",
        "known": "known checks: {0}",
    },
    "zh": {
        "none": "没有检查项 {0!r}",
        "near": "；是否指 {0}？",
        "begin": "；以此开头的检查项：",
        "known": "已有的检查项：{0}",
    },
}

# As many names fit into a sentence.
_FEW = 3


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
        message = hints.readable(spec.message[language], language)
        lines += ["", f"{cause} ({hints.outcome(cause, language)})", f"    {message}"]
        if spec.hint[language]:
            lines.append(f"    -> {hints.hint_text(cause, language)}")
    return "\n".join(lines)


def no_such_check(check: str, language: str = "en") -> str:
    """Return the sentence about a check that does not exist, with what may have been meant."""
    language = language if language in _WORDS else "en"
    words = _WORDS[language]
    none = words["none"].format(check)
    near = _near(check.strip().strip(".").lower())
    if not near:
        return none + "\n" + words["known"].format(", ".join(hints.CHECKS))
    if len(near) <= _FEW:
        return none + words["near"].format(", ".join(near))
    column = max(map(len, near)) + 2
    return "\n".join(
        [none + words["begin"], *(one.ljust(column) + hints.CHECKS[one]["title"][language] for one in near)]
    )


def _near(word: str) -> list[str]:
    """Return what a word in small letters may stand for; more than a few only where all these checks begin so."""
    if not word:
        return []
    if word in hints.CHECKS or word in hints.CAUSES:
        return [word]
    begin = [one for one in hints.CHECKS if one.startswith(word)]
    if begin:
        return begin
    begin = [one for one in hints.CAUSES if one.startswith(word)]
    # A last word alone ("count"), or the beginning of it, is what people remember.
    last = [one for one in hints.CHECKS if one.rpartition(".")[2].startswith(word)]
    if begin or last:
        return (begin or last)[:_FEW]
    import difflib  # for a slip of the fingers only

    return difflib.get_close_matches(word, [*hints.CHECKS, *hints.CAUSES], n=_FEW, cutoff=0.6)
