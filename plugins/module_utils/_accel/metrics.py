# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""What a node shows of its cards, as Prometheus reads it (text exposition format 0.0.4).

A value that nothing told is left out: 0 would be a good reading, and a rule on it would never fire. Whether a card
answers, and that nobody knows its health, are values of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from .model import THROTTLES
from .slot_names import place_of

LABELS = ("slot", "serial", "uuid", "vendor", "model", "pci_address")
# As the exit status of accelctl, so that one alert rule fits both.
HEALTH = {"ok": 0, "warning": 1, "critical": 2, "unknown": 3}
# Of cards that no label tells apart one series is shown: that of the worst, the last of these.
_WORST = {"health": (0, 3, 1, 2), "up": (1, 0)}
_REPAIR = {"ok": 0, "reset": 1, "replace": 2}


def _at(*path: str) -> Callable[[Mapping], object]:
    def value(device: Mapping) -> object:
        told: object = device
        for key in path:
            told = told.get(key) if isinstance(told, Mapping) else None
        return told

    return value


def _ratio(device: Mapping) -> object:
    percent = _at("readings", "utilization_percent")(device)
    return percent / 100 if isinstance(percent, (int, float)) else None


def _ports(state: str) -> Callable[[Mapping], object]:
    def count(device: Mapping) -> object:
        ports = device.get("ports") or []
        return sum(port.get("state") == state for port in ports) if ports else None

    return count


def _partitions(device: Mapping) -> object:
    # Two chips on one function are no partitions; where nothing tells whether a card is split, it is not 0 either.
    parts = [one for one in device.get("logical") or [] if one.get("kind") != "chip"]
    return len(parts) if parts or device.get("partition_mode") is not None else None


# name, help, value of a card that answered
CARD = (
    ("health", "Health: 0 ok, 1 warning, 2 critical, 3 unknown.", lambda one: HEALTH[_state(one)]),
    ("memory_bytes", "Size of the memory.", _at("memory_bytes")),
    ("memory_used_bytes", "Memory in use.", _at("readings", "memory_used_bytes")),
    ("utilization_ratio", "Share of the time that the card worked, 0 to 1.", _ratio),
    ("temperature_celsius", "Temperature of the chip.", _at("readings", "temperature_c")),
    ("temperature_limit_celsius", "Temperature at which the card slows down.", _at("readings", "temperature_limit_c")),
    ("memory_temperature_celsius", "Temperature of the memory.", _at("readings", "memory_temperature_c")),
    ("power_watts", "Power drawn.", _at("readings", "power_watts")),
    ("power_limit_watts", "Power that the card may draw.", _at("readings", "power_limit_watts")),
    ("link_speed_gts", "Speed of the PCIe link in GT/s; an idle card may lower it.", _at("link", "speed_gts")),
    ("link_max_speed_gts", "Speed that the card can do, in GT/s.", _at("link", "max_speed_gts")),
    ("link_width", "Lanes of the PCIe link.", _at("link", "width")),
    ("link_max_width", "Lanes that the card can do.", _at("link", "max_width")),
    (
        "ecc_corrected_volatile",
        "Corrected memory errors since the driver was loaded.",
        _at("ecc", "corrected_volatile"),
    ),
    (
        "ecc_uncorrected_volatile",
        "Uncorrected memory errors since the driver was loaded.",
        _at("ecc", "uncorrected_volatile"),
    ),
    (
        "ecc_corrected_aggregate",
        "Corrected memory errors over the life of the card.",
        _at("ecc", "corrected_aggregate"),
    ),
    (
        "ecc_uncorrected_aggregate",
        "Uncorrected memory errors over the life of the card.",
        _at("ecc", "uncorrected_aggregate"),
    ),
    (
        "ecc_sram_uncorrected_aggregate",
        "Uncorrected errors in caches and registers over the life of the card.",
        _at("ecc", "sram_uncorrected_aggregate"),
    ),
    ("remapped_rows", "Memory rows that were remapped.", _at("repair", "remapped_rows")),
    ("retired_pages", "Memory pages that were retired.", _at("repair", "retired_pages")),
    (
        "memory_repair",
        "Memory repair: 0 nothing to do, 1 repaired after a reset, 2 the card must be replaced.",
        lambda one: _REPAIR.get(str(_at("repair", "state")(one))),
    ),
    ("ports_up", "Links to other cards that are up.", _ports("up")),
    ("ports_down", "Links to other cards that are down.", _ports("down")),
    (
        "partitions",
        "Partitions that the card is split into, 0 when it is not.",
        _partitions,
    ),
)


def _state(device: Mapping) -> str:
    state = (device.get("health") or {}).get("state")
    return state if state in HEALTH else "unknown"


def render(
    observation: Mapping,
    status: int | None = None,
    findings: Iterable[Mapping] = (),
    declared: int | None = None,
    seconds: float | None = None,
) -> str:
    """Return the exposition of an observation (``as_dict`` of one).

    ``status`` is the exit status of ``accelctl check`` and ``findings`` what it judged, None and nothing where nothing
    is declared; ``seconds`` is how long the question took.
    """
    out = _Page()
    out.node("cards_declared", "Cards that the node should have.", declared)
    out.node("cards_on_bus", "Cards that the PCI bus shows.", observation.get("bus_count"))
    out.node("cards_answered", "Cards that the vendor tools answered for.", observation.get("count"))
    out.node("cards_logical", "Logical devices; a card that is not split is one.", observation.get("logical_count"))
    out.node("query_seconds", "How long the question took.", seconds)
    out.node("node_health", "Judgement of the node: 0 ok, 1 warning, 2 critical, 3 unknown.", status)
    answered = [one for one in observation.get("devices") or [] if one.get("source") != "sysfs"]
    silent = [one for one in observation.get("devices") or [] if one.get("source") == "sysfs"]
    silent += observation.get("unanswered") or []
    up = [(_labels(one), 1) for one in answered] + [(_labels(one), 0) for one in silent]
    out.cards("up", "Whether the card answers.", up)
    for name, about, value in CARD:
        rows = [(_labels(one), value(one)) for one in answered]
        if name == "health":
            # A lost card is no unknown one.
            rows += [(_labels(one), HEALTH["critical" if one.get("state") == "lost" else "unknown"]) for one in silent]
        out.cards(name, about, rows)
    told = [(one, (one.get("readings") or {}).get("throttles")) for one in answered]
    slow = [
        ({**_labels(one), "reason": reason}, int(reason in active))
        for one, active in told
        if active is not None
        for reason in THROTTLES
    ]
    out.cards("throttled", "Whether this reason keeps the card below its clocks.", slow)
    counts: dict[tuple[str, str], int] = {}
    for finding in findings:
        key = (str(finding.get("verdict")), str(finding.get("severity")))
        counts[key] = counts.get(key, 0) + 1
    rows = [
        ({"verdict": verdict, "severity": severity}, count) for (verdict, severity), count in sorted(counts.items())
    ]
    out.family("accel_findings", "Findings of the judgement.", rows)
    tools = [
        ({"tool": str(one.get("name")), "vendor": str(one.get("vendor"))}, int(one.get("state") == "ok"))
        for one in observation.get("tools") or []
    ]
    out.family("accel_tool_up", "Whether the vendor tool answered.", tools)
    return out.text()


def _labels(one: Mapping) -> dict[str, str]:
    values = {**one, "slot": place_of(one)}
    return {name: str(values.get(name) or "") for name in LABELS}


class _Page:
    """Collects families; a family without a value is left out with its header."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def node(self, name: str, about: str, value: object) -> None:
        self.family(f"accel_{name}", about, [({}, value)])

    def cards(self, name: str, about: str, rows: list) -> None:
        if name in _WORST:
            worst: dict[str, int] = {}
            for labels, value in rows:
                key = _braces(labels)
                worst[key] = max(worst.get(key, value), value, key=_WORST[name].index)
            rows = [(labels, worst[_braces(labels)]) for labels, _value in rows]
        self.family(f"accel_card_{name}", about, rows)

    def family(self, name: str, about: str, rows: list) -> None:
        samples: dict[str, str] = {}
        for labels, value in rows:
            number = _number(value)
            if number is not None:
                # Two series with the same labels make the whole page invalid; cards that nothing tells apart are one.
                samples.setdefault(_braces(labels), number)
        if samples:
            self.lines += [f"# HELP {name} {_escape(about, quote=False)}", f"# TYPE {name} gauge"]
            self.lines += [f"{name}{labels} {number}" for labels, number in samples.items()]

    def text(self) -> str:
        return "".join(f"{line}\n" for line in self.lines)


def _number(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return repr(value)


def _braces(labels: Mapping[str, str]) -> str:
    pairs = ",".join(f'{name}="{_escape(value)}"' for name, value in labels.items())
    return f"{{{pairs}}}" if pairs else ""


def _escape(text: str, quote: bool = True) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quote else text
