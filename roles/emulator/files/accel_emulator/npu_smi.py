# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line of ``npu-smi``: choose among what was rendered."""

from __future__ import annotations

HANG = (None, "", "")
NO_DRIVER = (1, "DrvMngGetConsoleLogLevel failed. (ret=4)\ndcmi module initialize failed. ret is -8005\n", "")
_WIDE = 96


def answer(data: dict, argv: list[str], _now: float | None = None) -> tuple[int | None, str, str]:
    """Return rc, stdout, stderr of ``npu-smi``; rc None: it hangs."""
    words = list(argv)
    if words[:1] in (["-v"], ["--version"], []):
        return 0, f"npu-smi version: {data['tool']}\n", ""
    if words.pop(0) != "info":
        return 1, "Error parameter of type. Please run 'npu-smi -h' for help.\n", ""
    options: dict[str, str] = {}
    while words:
        word = words.pop(0)
        if word in ("-l", "-m"):
            options[word] = ""
        elif word in ("-t", "-i", "-c") and words:
            options[word] = words.pop(0)
        else:
            return 1, "Error parameter of type. Please run 'npu-smi info -h' for help.\n", ""
    if not data["ready"]:
        return NO_DRIVER
    if "-t" in options:
        return _typed(data, options)
    present = [card for card in data["cards"] if card["state"] != "lost"]
    if any(card["state"] == "hung" for card in present):
        return HANG
    if "-l" in options:
        return 0, f"\t{'Total Count':<30} : {len(present)}\n\n" + "\n".join(card["list"] for card in present) + "\n", ""
    if "-m" in options:
        head = ("NPU ID", "Chip ID", "Chip Logic ID", "Chip Name")
        return 0, "\t" + " ".join(f"{name:<30}" for name in head) + "\n" + "".join(card["map"] for card in present), ""
    return 0, _table(data, present), ""


def _typed(data: dict, options: dict[str, str]) -> tuple[int | None, str, str]:
    named = [card for card in data["cards"] if str(card["npu"]) == options.get("-i")]
    if not named or named[0]["state"] == "lost" or options.get("-c", "0") != "0":
        return 1, "This device does not exist.\n", ""
    if options["-t"] not in named[0]["types"]:
        return 1, f"This device does not support querying {options['-t']}.\n", ""
    if named[0]["state"] == "hung":
        return HANG
    told = named[0]["types"][options["-t"]]["-c" in options]
    if not told:
        return 1, "Error parameter of -c. Please run 'npu-smi info -h' for help.\n", ""
    return 0, told, ""


def _table(data: dict, cards: list[dict]) -> str:
    columns = (27, 15, 52)
    thin, thick = (f"+{'+'.join(mark * width for width in columns)}+\n" for mark in "-=")
    parts = [
        f"+{'-' * _WIDE}+\n| npu-smi {data['tool']:<25}Version: {data['driver']:<53}|\n{thin}",
        "| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|\n",
        "| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |\n",
        thick,
        *(card["row"] + thick for card in cards),
        thin,
        f"| {'NPU':<7} {'Chip':<17} | {'Process id':<13} | {'Process name':<24} | {'Process memory(MB)':<24}|\n{thick}",
    ]
    for card in cards:
        word = f"No running processes found in NPU {card['npu']}"
        parts.append(f"| {word:<95}|\n{thick}")
    return "".join(parts)
