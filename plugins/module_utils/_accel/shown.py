# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""What ``accelctl`` ends with and what it prints of cards and findings. Pure functions: data in, text out."""

from __future__ import annotations

from .model import CRITICAL, FAIL, UNKNOWN, VERDICTS, WARNING

EXIT_OK, EXIT_WARNING, EXIT_CRITICAL, EXIT_UNKNOWN = 0, 1, 2, 3
STATUS_WORDS = {EXIT_OK: "OK", EXIT_WARNING: "WARNING", EXIT_CRITICAL: "CRITICAL", EXIT_UNKNOWN: "UNKNOWN"}
# The most letters of the line of health.
LINE = 240
_WORST_FIRST = ((FAIL, CRITICAL), (UNKNOWN, CRITICAL), (FAIL, WARNING), (UNKNOWN, WARNING))


def exit_status(findings: list[dict]) -> int:
    """Return the exit status: critical fail > critical unknown > any other fail > ok.

    No finding at all is unknown. What is not known and of severity warning is shown and counted, and no more: the link
    of a card that is idle is such a thing, and a node is not taken out of service for it.
    """
    if not findings:
        return EXIT_UNKNOWN
    serious = [f["verdict"] for f in findings if f["severity"] == CRITICAL]
    if FAIL in serious:
        return EXIT_CRITICAL
    if UNKNOWN in serious:
        return EXIT_UNKNOWN
    return EXIT_WARNING if any(f["verdict"] == FAIL for f in findings) else EXIT_OK


def show_devices(observation: dict) -> str:
    """Return one line a card, in slot order; of one that does not answer, what is known of it."""
    from .slot_names import natural, place_of

    cards = [(device, device["health"]["state"]) for device in observation["devices"]]
    cards += [(card, card["state"]) for card in observation["unanswered"]]
    rows: list[tuple[str, ...]] = [("SLOT", "ADDRESS", "VENDOR", "MODEL", "SERIAL", "STATE")]
    for card, state in sorted(cards, key=lambda one: natural(place_of(one[0]))):
        model = card["model"] or card["pci_id"]
        told = (place_of(card), card["pci_address"], card["vendor"], model, card["serial"], state)
        rows.append(tuple(word or "-" for word in told))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def show_findings(findings: list[dict], language: str) -> str:
    """Return what is not a pass, the worst first, each hint once behind all that it is about, and the counts.

    A line begins with verdict and severity: a warning that failed wants a repair, one that is unknown only a look.
    """
    from . import hints

    words = hints.WORDS[language]
    labels = {one: words["label"].format(*(words[word] for word in one)) for one in _WORST_FIRST}
    column = max(map(_columns, labels.values())) + 2
    causes: dict[tuple[int, bool, str, str | None], list[str]] = {}
    for finding in findings:
        kind = (finding["verdict"], finding["severity"])
        if kind in labels:
            label = labels[kind] + " " * (column - _columns(labels[kind]))
            told = f"{label}{finding['check']}  {finding['subject']}: {finding['message']}"
            # What waits for another check explains less than that one, and has no hint of its own.
            place = (_WORST_FIRST.index(kind), bool(finding["blocked_by"]), finding["hint"], finding["vendor"])
            causes.setdefault(place, []).append(told)
    lines = []
    for (_rank, blocked, cause, vendor), told_all in sorted(causes.items(), key=lambda one: one[0][:2]):
        lines += told_all if blocked else [*told_all, f"        {hints.hint_text(cause, language, vendor)}"]
    return "\n".join([*lines, count_findings(findings, language)])


def count_findings(findings: list[dict], language: str) -> str:
    """Return how many findings there are of each verdict: what is not applicable is no check that did not pass."""
    from . import hints

    words = hints.WORDS[language]
    if not findings:
        return words["nothing"]
    verdicts = [finding["verdict"] for finding in findings]
    return words["comma"].join(words["count"].format(verdicts.count(one), words[one]) for one in VERDICTS)


def _columns(text: str) -> int:
    """Return how wide text is in a terminal, where Chinese letters and signs take two columns."""
    return sum(2 if letter > "\u2e7f" else 1 for letter in text)


def health_line(status: int, findings: list[dict], trouble: str = "", language: str = "en") -> str:
    """Return the judgement in one line: the word for the exit status, the finding that decides it, how many more.

    The first word is English in every language: programs look for it.
    """
    wanted = {EXIT_CRITICAL: (FAIL,), EXIT_UNKNOWN: (UNKNOWN,), EXIT_WARNING: (FAIL,)}.get(status, ())
    bad = [f for f in findings if f["verdict"] in wanted and (status == EXIT_WARNING or f["severity"] == CRITICAL)]
    # What waits for another check says less than that one.
    bad.sort(key=lambda finding: bool(finding["blocked_by"]))
    if bad:
        from . import hints  # not needed to say that everything broke

        more = hints.WORDS[language]["more"].format(len(bad) - 1) if len(bad) > 1 else ""
        text = f"{bad[0]['check']} {bad[0]['subject']}: {bad[0]['message']}"
    else:
        more, text = "", trouble or count_findings(findings, language)
    # One line whatever a tool said, and its end is not what gets lost.
    line = " ".join(f"{STATUS_WORDS[status]} {text}".split())
    return (line if len(line) + len(more) <= LINE else line[: LINE - len(more) - 3] + "...") + more
