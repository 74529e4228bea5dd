# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line of ``nvidia-smi``: choose among what was rendered. Imports little, to start quickly.

Return codes: nvidia-smi(1), section RETURN VALUE; 15 and 18 as seen in the field.
"""

from __future__ import annotations

import os
import time

HANG = (None, "", "")
NO_DRIVER = (
    9,
    (
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
        "Make sure that the latest NVIDIA driver is installed and running.\n\n"
    ),
    "",
)
# The name by which programs load the library, where Debian's package puts it.
LIBRARIES = ("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1")
_LOST, _BAD_ARGUMENT, _NOT_FOUND, _MISMATCH = 15, 2, 6, 18

# -d: the sections of -q that each word keeps.
_DISPLAY = {
    "MEMORY": ("FB Memory Usage", "BAR1 Memory Usage", "Conf Compute Protected Memory Usage"),
    "UTILIZATION": ("Utilization",),
    "ECC": ("ECC Mode", "ECC Errors"),
    "TEMPERATURE": ("Temperature",),
    "POWER": ("GPU Power Readings", "GPU Memory Power Readings", "Module Power Readings"),
    "CLOCK": ("Clocks", "Applications Clocks", "Default Applications Clocks", "Max Clocks"),
    "COMPUTE": ("Compute Mode",),
    "PIDS": ("Processes",),
    "PERFORMANCE": ("Performance State", "Clocks Event Reasons"),
    "PAGE_RETIREMENT": ("Retired Pages",),
    "ROW_REMAPPER": ("Remapped Rows",),
}


def installed_library() -> str:
    """Return the version of the library that the host's packages brought, "" where they brought none."""
    for path in LIBRARIES:
        name = os.path.basename(os.path.realpath(path))
        if name.startswith("libnvidia-ml.so.") and os.path.exists(path):
            return name[len("libnvidia-ml.so.") :]
    return ""


def mismatch(library: str) -> str:
    """Return what the library says of a kernel module of another release; it prints two numbers of its own."""
    short = ".".join(library.split(".")[:2])
    return f"Failed to initialize NVML: Driver/library version mismatch\nNVML library version: {short}\n"


def answer(data: dict, argv: list[str], now: float | None = None) -> tuple[int | None, str, str]:
    """Return rc, stdout, stderr for a command line; rc None: the tool hangs."""
    now = time.time() if now is None else now
    library = installed_library() if data["follows"] else ""
    if library and library != data["driver"]:
        data = {**data, "library": library, "error": mismatch(library)}
    options = _parse(argv)
    if options is None:
        return _BAD_ARGUMENT, "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n\n", ""
    if options["mode"] == "help":
        return (
            0,
            f"NVIDIA System Management Interface -- v{data['library']}\n\nnvidia-smi [OPTION1 [ARG1]] ...\n",
            "",
        )
    if options["mode"] == "help-query-gpu":
        names = {name: [name] for name in data["fields"]}
        for alias, name in data["aliases"].items():
            if name in names:
                names[name].append(alias)
        lines = [" or ".join(f'"{one}"' for one in group) + "\n" for group in names.values()]
        return 0, 'List of valid properties to query for the switch "--query-gpu":\n\n' + "\n".join(lines), ""
    if data["error"]:
        return _MISMATCH, data["error"], ""
    if options["mode"] == "version":
        short = ".".join(data["library"].split(".")[:2])
        return (
            0,
            (
                f"NVIDIA-SMI version  : {data['library']}\nNVML version        : {short}\n"
                f"DRIVER version      : {data['driver']}\nCUDA Version        : {data['cuda']}\n"
            ),
            "",
        )
    cards = _chosen(data, options["ids"])
    if not cards:
        return _NOT_FOUND, "No devices were found\n", ""
    if any(card["state"] == "hung" for card in cards):
        return HANG
    for card in cards:
        if card["state"] == "lost":
            return (
                _LOST,
                (
                    f"Unable to determine the device handle for GPU{card['address'].upper()}: "
                    "GPU is lost.  Reboot the system to recover this GPU\n"
                ),
                "",
            )
    return _MODES[options["mode"]](data, cards, options, now)


def _parse(argv: list[str]) -> dict | None:
    """Return what was asked; None when the tool would not understand it."""
    options: dict = {"mode": "table", "ids": None, "fields": [], "format": [], "display": []}
    words = list(argv)
    query = as_xml = False
    while words:
        word = words.pop(0)
        name, sign, value = word.partition("=")
        if word == "topo":
            if words[:1] not in (["-m"], ["--matrix"]):
                return None
            words.pop(0)
            options["mode"] = "topology"
        elif word == "nvlink":
            if not words or words[0] not in ("-s", "--status"):
                return None
            words.pop(0)
            options["mode"] = "nvlink"
        elif word in ("-h", "--help"):
            options["mode"] = "help"
        elif word == "--help-query-gpu":
            options["mode"] = "help-query-gpu"
        elif word == "--version":
            options["mode"] = "version"
        elif word in ("-L", "--list-gpus"):
            options["mode"] = "list"
        elif word in ("-q", "--query"):
            query = True
        elif word in ("-x", "--xml-format"):
            as_xml = True
        elif name in ("-i", "--id", "-d", "--display", "--query-gpu", "--query-compute-apps", "--format"):
            if not sign:
                if not words:
                    return None
                value = words.pop(0)
            items = [one.strip() for one in value.split(",") if one.strip()]
            if name in ("-i", "--id"):
                options["ids"] = items
            elif name in ("-d", "--display"):
                if any(item not in _DISPLAY for item in items):
                    return None
                options["display"] += items
            elif name == "--format":
                options["format"] = items
            else:
                options["mode"] = "csv" if name == "--query-gpu" else "apps"
                options["fields"] = items
        else:
            return None
    if options["mode"] in ("csv", "apps") and "csv" not in options["format"]:
        return None
    if query:
        options["mode"] = "xml" if as_xml else "text"
    elif as_xml:
        return None
    return options


def _chosen(data: dict, ids: list[str] | None) -> list[dict]:
    """Return the cards named by index, serial, unique id or bus id; all of them without names."""
    if ids is None:
        return data["cards"]
    chosen = []
    for card in data["cards"]:
        short = card["address"].split(":", 1)[1]
        names = (str(card["index"]), card["serial"], card["uuid"], card["address"], card["bus_id"].lower(), short)
        if any(one == name or one.lower() == name for one in ids for name in names):
            chosen.append(card)
    return chosen if len(chosen) == len(set(ids)) else []


def _stamp(now: float) -> str:
    return time.strftime("%a %b %e %H:%M:%S %Y", time.localtime(now))


def _xml(data: dict, cards: list[dict], _options: dict, now: float):
    parts = [
        '<?xml version="1.0" ?>\n',
        f'<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v{data["dtd"]}.dtd">\n',
        f"<nvidia_smi_log>\n\t<timestamp>{_stamp(now)}</timestamp>\n",
        f"\t<driver_version>{data['driver']}</driver_version>\n\t<cuda_version>{data['cuda']}</cuda_version>\n",
        f"\t<attached_gpus>{len(data['cards'])}</attached_gpus>\n",
    ]
    for card in cards:
        parts += [f'\t<gpu id="{card["bus_id"]}">\n', card["xml"], "\t</gpu>\n\n"]
    return 0, "".join(parts) + "</nvidia_smi_log>\n", ""


def _text(data: dict, cards: list[dict], options: dict, now: float):
    column = 55 if data["branch"] >= 580 else 42
    head = (("Timestamp", _stamp(now)), ("Driver Version", data["driver"]), ("CUDA Version", data["cuda"]))
    parts = [
        "\n==============NVSMI LOG==============\n\n",
        *(f"{name:<{column}}: {value}\n" for name, value in head),
        "\n",
    ]
    parts.append(f"{'Attached GPUs':<{column}}: {len(data['cards'])}\n")
    wanted = [label for word in options["display"] for label in _DISPLAY[word]]
    for card in cards:
        parts.append(f"GPU {card['bus_id']}\n")
        keep = not wanted
        for line in card["text"]:
            if wanted and line[4] != " ":  # a section of the card begins
                keep = line.split(":")[0].strip() in wanted
            if keep:
                parts.append(line)
        parts.append("\n")
    return 0, "".join(parts), ""


def _list(_data: dict, cards: list[dict], _options: dict, _now: float):
    return 0, "".join(card["list"] for card in cards), ""


def _table(data: dict, cards: list[dict], _options: dict, now: float):
    rule = "-" * 89
    columns = f"{'-' * 41}+{'-' * 24}+{'-' * 22}"
    edge = "+" if data["branch"] >= 580 else "|"
    process = "CI              PID   Type   Process name                        " if data["branch"] >= 570 else (
        "CI        PID   Type   Process name                              "
    )  # fmt: skip
    parts = [
        f"{_stamp(now)}       \n+{rule}+\n",
        f"| NVIDIA-SMI {data['library']:<23}Driver Version: {data['driver']:<15}CUDA Version: {data['cuda']:<9}|\n",
        f"{edge}{columns}+\n",
        "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n",
        "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |\n",
        f"|{'':41}|{'':24}|{'MIG M.':>21} |\n",
        f"|{'=' * 41}+{'=' * 24}+{'=' * 22}|\n",
        *(card["table"] for card in cards),
        f"{'':89}\n+{rule}+\n",
        f"| {'Processes:':<88}|\n|  GPU   GI   {process}GPU Memory |\n",
        f"|        ID   ID{'':63}Usage      |\n|{'=' * 89}|\n",
        f"| {' No running processes found':<88}|\n+{rule}+\n",
    ]
    return 0, "".join(parts), ""


def _csv(data: dict, cards: list[dict], options: dict, now: float):
    names = []
    for asked in options["fields"]:
        name = data["aliases"].get(asked, asked)
        if name not in data["fields"]:
            return _BAD_ARGUMENT, f'Field "{asked}" is not a valid field to query.\n\n', ""
        names.append(name)
    units = "nounits" not in options["format"]
    lines = []
    if "noheader" not in options["format"]:
        first = cards[0]["csv"]
        lines.append(", ".join(f"{name} [{first[name][1]}]" if units and first[name][1] else name for name in names))
    clock = time.strftime("%Y/%m/%d %H:%M:%S", time.localtime(now)) + f".{int(now * 1000) % 1000:03d}"
    for card in cards:
        cells = []
        for name in names:
            value, unit = card["csv"][name]
            if name == "timestamp":
                value = clock
            cells.append(f"{value} {unit}" if units and unit and not value.startswith("[") else value)
        lines.append(", ".join(cells))
    return 0, "\n".join(lines) + "\n", ""


def _apps(_data: dict, _cards: list[dict], options: dict, _now: float):
    """Answer --query-compute-apps: nothing runs on these cards."""
    known = ("timestamp", "gpu_name", "gpu_bus_id", "gpu_serial", "gpu_uuid", "pid", "process_name", "used_gpu_memory")
    aliases = {"name": "process_name", "used_memory": "used_gpu_memory"}
    names = [aliases.get(name, name) for name in options["fields"]]
    for asked, name in zip(options["fields"], names):
        if name not in known:
            return _BAD_ARGUMENT, f'Field "{asked}" is not a valid field to query.\n\n', ""
    if "noheader" in options["format"]:
        return 0, "", ""
    unit = "" if "nounits" in options["format"] else " [MiB]"
    return 0, ", ".join(name + (unit if name == "used_gpu_memory" else "") for name in names) + "\n", ""


def _topology(data: dict, _cards: list[dict], _options: dict, _now: float):
    return 0, data["topology"], ""


def _nvlink(_data: dict, cards: list[dict], _options: dict, _now: float):
    return 0, "".join(card["nvlink"] for card in cards), ""


_MODES = {
    "nvlink": _nvlink,
    "xml": _xml,
    "text": _text,
    "list": _list,
    "table": _table,
    "csv": _csv,
    "apps": _apps,
    "topology": _topology,
}
