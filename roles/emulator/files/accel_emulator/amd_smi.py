# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command lines of ``amd-smi`` and ``rocm-smi``: choose among what was rendered."""

from __future__ import annotations

import json

HANG = (None, "", "")

# Python's logging writes to the error stream; rocm-smi calls its failure a success.
NO_DRIVER = (
    255,
    "",
    (
        "ERROR:root:Unable to get devices, driver not initialized (amdgpu not found in modules)\n"
        "ERROR:root:Unable to detect any GPU devices, check amdgpu version and module status"
        " (sudo modprobe amdgpu)\n"
    ),
)
ROCM_NO_DRIVER = (0, "", "ERROR:root:Driver not initialized (amdgpu not found in modules)\n")

# Long and short options of the sections, as amd-smi --help names them.
_STATIC = {
    "--asic": "asic",
    "-a": "asic",
    "--bus": "bus",
    "-b": "bus",
    "--vbios": "vbios",
    "-V": "vbios",
    "--ifwi": "ifwi",
    "-I": "ifwi",
    "--limit": "limit",
    "-l": "limit",
    "--driver": "driver",
    "-d": "driver",
    "--vram": "vram",
    "-v": "vram",
    "--ras": "ras",
    "-r": "ras",
    "--board": "board",
    "-B": "board",
    "--numa": "numa",
    "-u": "numa",
    "--partition": "partition",
    "-p": "partition",
    "--process-isolation": "process_isolation",
    "-R": "process_isolation",
}
_METRIC = {
    "--usage": "usage",
    "-u": "usage",
    "--power": "power",
    "-p": "power",
    "--clock": "clock",
    "-c": "clock",
    "--temperature": "temperature",
    "-t": "temperature",
    "--pcie": "pcie",
    "-P": "pcie",
    "--ecc": "ecc",
    "-e": "ecc",
    "--ecc-blocks": "ecc_blocks",
    "-k": "ecc_blocks",
    "--fan": "fan",
    "-f": "fan",
    "--perf-level": "perf_level",
    "-l": "perf_level",
    "--xgmi-err": "xgmi_err",
    "-x": "xgmi_err",
    "--energy": "energy",
    "-E": "energy",
    "--mem-usage": "mem_usage",
    "-m": "mem_usage",
}


def answer(data: dict, argv: list[str], _now: float | None = None) -> tuple[int | None, str, str]:
    """Return rc, stdout, stderr of ``amd-smi``; rc None: it hangs."""
    if not data["ready"]:
        return NO_DRIVER
    words = list(argv)
    command = words.pop(0) if words else "help"
    if command in ("help", "-h", "--help"):
        head = f"AMD System Management Interface | Version: {data['tool']} | ROCm version: {data['rocm']}"
        return 0, f"usage: amd-smi [-h]  ...\n\n{head}\n", ""
    if command not in ("version", "list", "static", "metric", "xgmi"):
        return 255, f"Command '{command}' is invalid. Run '--help' for more info. Error code: -1\n", ""
    sections = {"static": _STATIC, "metric": _METRIC}.get(command, {})
    as_json, ids, wanted = False, None, []
    while words:
        word = words.pop(0)
        if word == "--json":
            as_json = True
        elif word in ("-g", "--gpu"):
            ids = []
            while words and not words[0].startswith("-"):
                ids.append(words.pop(0))
        elif word in sections:
            wanted.append(sections[word])
        else:
            return 255, f"Parameter '{word}' is invalid. Run 'amd-smi {command} -h' for more info. Error code: -2\n", ""
    if command == "version":
        return 0, _version(data, as_json), ""
    cards = data["cards"]
    if ids is not None and "all" not in ids:
        cards = [
            card for card in cards if {str(card["gpu"]), card["address"], card["uuid"]} & {one.lower() for one in ids}
        ]
        if len(cards) != len(set(ids)):
            return (
                253,
                f"Can not find a device with the corresponding identifier: '{' '.join(ids)}' Error code: -3\n",
                "",
            )
    if any(card["state"] == "hung" for card in cards):
        return HANG
    if command == "xgmi":
        return 0, _xgmi(data, [card for card in cards if card["first"]], as_json), ""
    entries = []
    for card in cards:
        if command == "list":
            entries.append(dict(card["list"]))
            continue
        told = card[command]
        entries.append({"gpu": card["gpu"], **{key: told[key] for key in told if not wanted or key in wanted}})
    if not as_json:
        return 0, "\n".join(_block(entry) for entry in entries) + "\n", ""
    # From ROCm 6.4 on static and metric have an object as root; list stayed a list.
    root = {"gpu_data": entries} if command != "list" and data["branch"] >= [6, 12] else entries
    return 0, json.dumps(root, indent=4) + "\n", ""


def _xgmi(data: dict, cards: list[dict], as_json: bool) -> str:
    """Return the links between the cards asked for; of one alone, its ports and no peer."""
    shown = [card for card in cards if card["xgmi"]]
    metrics, ports, peers = [], [], []
    for card in shown:
        about, name = card["xgmi"], {"gpu": card["gpu"], "bdf": card["address"]}
        links = [
            {
                "gpu": other["gpu"],
                "bdf": other["address"],
                "read": {"value": 4, "unit": "KB"} if other["address"] in about["peers"] else "N/A",
                "write": {"value": 4, "unit": "KB"} if other["address"] in about["peers"] else "N/A",
            }
            for other in shown
        ]
        rate, most = ({"value": about[key], "unit": "Gb/s"} for key in ("rate", "most"))
        told = {"bit_rate": rate, "max_bandwidth": most, "link_type": "XGMI", "links": links}
        metrics.append({**name, "link_metrics": told})
        ports.append({**name, "link_status": about["ports"]})
        row = ["SELF" if other is card else about["peers"].get(other["address"], "N/A") for other in shown]
        peers.append({**name, "link_status": row})
    stateful = data["branch"] >= [6, 12]
    by_peer = data["branch"] >= [6, 14]
    if as_json:
        if not stateful:
            return json.dumps(metrics, indent=4) + "\n"
        root = {"xgmi_metric": metrics, "source_status": ports, **({"link_status": peers} if by_peer else {})}
        return json.dumps(root, indent=4) + "\n"
    head = "".join(f"GPU{card['gpu']}".ljust(13) for card in shown)
    lines = ["LINK METRIC TABLE:", f"{'':7}{'bdf':<14}{'bit_rate':<10}{'max_bandwidth':<15}{'link_type':<11}{head}"]
    for entry in metrics:
        carried = "".join(f"{'N/A' if one['read'] == 'N/A' else '4 KB':<13}" for one in entry["link_metrics"]["links"])
        lines.append(f"{'GPU' + str(entry['gpu']):<7}{entry['bdf']:<14}{'32 Gb/s':<10}{'512 Gb/s':<15}{'XGMI':<11}")
        lines += [f"{' Read':<57}{carried}".rstrip(), f"{' Write':<57}{carried}".rstrip()]
    if stateful:
        title = "GPU LINK PORT STATUS:" if by_peer else "XGMI LINK STATUS:"
        lines += ["", title, f"{'':7}{'bdf':<14}{'port_num' if by_peer else 'link_status'}"]
        lines += [f"{'GPU' + str(one['gpu']):<7}{one['bdf']:<14}{'  '.join(one['link_status'])}" for one in ports]
    if by_peer:
        lines += ["", "XGMI LINK STATUS:", f"{'':7}{'bdf':<14}{head}"]
        for one in peers:
            row = "".join(word.ljust(14) for word in one["link_status"])
            lines.append(f"{'GPU' + str(one['gpu']):<7}{one['bdf']:<14}{row}".rstrip())
    if stateful:
        lines += ["", "* U:Up D:Down X:Disabled"]
    return "\n".join(lines) + "\n"


def _version(data: dict, as_json: bool) -> str:
    told = {
        "tool": "AMDSMI Tool",
        "version": data["tool"],
        "amdsmi_library_version": data["library"],
        "rocm_version": data["rocm"],
    }
    newer = data["branch"] >= [6, 12]
    if as_json:
        if newer:
            told["amdgpu_version"] = data["driver"]
        return json.dumps([told], indent=4) + "\n"
    line = f"AMDSMI Tool: {data['tool']} | AMDSMI Library version: {data['library']} | ROCm version: {data['rocm']}"
    return line + (f" | amdgpu version: {data['driver']} | amd_hsmp version: N/A" if newer else "") + "\n"


def _block(entry: dict) -> str:
    lines = [f"GPU: {entry['gpu']}"]
    lines += _lines({key: value for key, value in entry.items() if key != "gpu"}, 1)
    return "\n".join(lines) + "\n"


def _lines(told: dict, depth: int) -> list[str]:
    lines = []
    for key, value in told.items():
        name = "    " * depth + key.upper()
        if isinstance(value, dict) and set(value) != {"value", "unit"}:
            lines += [f"{name}:", *_lines(value, depth + 1)]
        elif isinstance(value, list):
            lines.append(f"{name}: [{', '.join(_word(one) for one in value)}]")
        else:
            lines.append(f"{name}: {_word(value)}")
    return lines


def _word(value: object) -> str:
    if isinstance(value, dict):
        unit = "°C" if value["unit"] == "C" else value["unit"]
        return f"{value['value']} {unit}"
    return str(value)


# rocm-smi: options and the sections they show.
_ROCM = {
    "--showid": "id", "-i": "id", "--showuniqueid": "uniqueid", "--showserial": "serial", "--showbus": "bus",
    "--showvbios": "vbios", "-v": "vbios", "--showtemp": "temp", "-t": "temp", "--showpower": "power", "-P": "power",
    "--showuse": "use", "-u": "use", "--showproductname": "productname", "--showtoponuma": "toponuma",
}  # fmt: skip
_TITLES = {
    "id": "ID", "uniqueid": "Unique ID", "serial": "Serial Number", "bus": "PCI Bus ID", "vbios": "VBIOS",
    "temp": "Temperature", "power": "Power Consumption", "use": "% time GPU is busy", "meminfo": "Memory Usage (Bytes)",
    "productname": "Product Info", "toponuma": "Numa Nodes",
}  # fmt: skip


def rocm_answer(data: dict, argv: list[str], _now: float | None = None) -> tuple[int | None, str, str]:
    """Return rc, stdout, stderr of ``rocm-smi``; rc None: it hangs."""
    if not data["ready"]:
        return ROCM_NO_DRIVER
    words, wanted, as_json, driver, ids = list(argv), [], False, False, None
    while words:
        word = words.pop(0)
        if word == "--json":
            as_json = True
        elif word in ("-d", "--device"):
            ids = []
            while words and words[0].isdigit():
                ids.append(int(words.pop(0)))
        elif word == "--showmeminfo":
            while words and not words[0].startswith("-"):
                words.pop(0)
            wanted.append("meminfo")
        elif word in ("--showallinfo", "-a"):
            wanted, driver = list(_TITLES), True
        elif word in ("--showdriverversion", "-S"):
            driver = True
        elif word in _ROCM:
            wanted.append(_ROCM[word])
        else:
            return 2, "", f"usage: rocm-smi [-h] ...\nrocm-smi: error: unrecognized arguments: {word}\n"
    cards = [card for card in data["cards"] if card["first"] and (ids is None or card["gpu"] in ids)]
    if any(card["state"] == "hung" for card in cards):
        return HANG
    if not wanted and not driver:
        return 0, _concise(cards), ""
    if as_json:
        root: dict = {}
        for card in cards:
            keys: dict[str, str] = {}
            for section in wanted:
                keys.update(card["rocm"][section])
            if keys:
                root[f"card{card['gpu']}"] = keys
        if driver:
            root["system"] = {"Driver version": data["driver"]}
        return 0, json.dumps(root) + "\n", ""
    lines = [" ROCm System Management Interface ".center(90, "=")]
    for section in wanted:
        lines.append(f" {_TITLES[section]} ".center(90, "="))
        for card in cards:
            lines += [f"GPU[{card['gpu']}]\t\t: {key}: {value}" for key, value in card["rocm"][section].items()]
        lines.append("=" * 90)
    if driver:
        lines += [" Version of System Component ".center(90, "="), f"Driver version: {data['driver']}", "=" * 90]
    lines.append(" End of ROCm SMI Log ".center(90, "="))
    return 0, "\n".join(lines) + "\n", ""


def _concise(cards: list[dict]) -> str:
    """Return the table that rocm-smi prints without options."""
    heads = (
        ("Device", ""), ("Node", ""), ("IDs", "(DID,"), ("", "GUID)"), ("Temp", "(Junction)"), ("Power", "(Socket)"),
        ("Partitions", "(Mem, Compute, ID)"), ("SCLK", ""), ("MCLK", ""), ("Fan", ""), ("Perf", ""), ("PwrCap", ""),
        ("VRAM%", ""), ("GPU%", ""),
    )  # fmt: skip
    rows = [[str(card["gpu"]), *card["concise"]] for card in cards]
    widths = [max(len(cell) for cell in (*head, *(row[at] for row in rows))) for at, head in enumerate(heads)]
    table = [[head[0] for head in heads], [head[1] for head in heads], *rows]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in table]
    wide = max(len(line) for line in lines)
    rule = "=" * wide
    return (
        "\n".join(
            [
                " ROCm System Management Interface ".center(wide, "="),
                " Concise Info ".center(wide, "="),
                *lines[:2],
                rule,
                *lines[2:],
                rule,
                " End of ROCm SMI Log ".center(wide, "="),
            ]
        )
        + "\n"
    )
