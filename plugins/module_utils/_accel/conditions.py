# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Judge the condition of cards: memory, heat, throttling, links between cards, kernel log, who holds them.

Pure functions over the judge of one host (``judge.py``), which hands itself over. One fact is one finding: what an
earlier check of the same card says already is ``unknown`` with ``blocked_by`` that check. What a card does not
tell is ``unknown`` with the severity of a warning: some products and releases never tell it.
"""

from __future__ import annotations

import re

from . import kernel_log, pci
from .model import CRITICAL, NOT_SPLITTABLE, THROTTLES, WHOLE, dict_of, dicts_of, to_float, to_int

PARTITION = "device.partition"

# A fault of hardware or power supply, whatever the load; the others only say that the card runs slower.
_HARD_THROTTLES = ("hardware", "power_brake")

# They keep device nodes open on a host that works for nobody. Names as /proc/<pid>/comm cuts them.
DAEMONS = (
    "nvidia-persiste",
    "nv-hostengine",
    "nv-fabricmanage",
    "nvidia-powerd",
    "dcgm-exporter",
    "npu-exporter",
)

# Boards whose links always lead somewhere; on others a link without a bridge is no fault.
_SOCKETED = re.compile(r"SXM|HBM3|OAM|MI[23]\d\d|\b(?:H20|H200|B200|B300|GB200|GB300)\b", re.IGNORECASE)
_NOT_SOCKETED = re.compile(r"PCIe|\bNVL\b|MI210", re.IGNORECASE)
# What tells one partition from another, whatever the vendor calls it.
_PART_WORDS = ("kind", "index", "id", "profile", "mode", "uuid", "pci_address")
# What fails of the memory explains what is said of it elsewhere.
_MEMORY_CHECKS = {"device.ecc", "device.memory_repair"}
# So many cards of one kind that a link which is down on all of them is so by design.
_BY_DESIGN = 3


def _limit(host, name: str, default: float) -> tuple[float | None, str]:
    """Return a declared limit, where 0 is one, and what is wrong with it."""
    raw = host.declared.get(name)
    if raw is None or raw == "":
        return default, ""
    value = to_float(raw)
    if value is None or not 0 <= value < float("inf"):
        return None, host.say["no_number"].format(name, raw)
    return value, ""


def _failed(host, card) -> dict[str, str]:
    """Return the checks of a card that failed by themselves, and how severe that is."""
    return host.failed.get(card.subject, {})


def is_failed(host, card, check: str) -> bool:
    """Tell whether a check of a card failed by itself."""
    return check in _failed(host, card)


def _explaining(meant: kernel_log.Meaning, failed: dict[str, str]) -> str | None:
    """Return the failed check that says already what a code says; a warning says nothing of what needs a reset."""
    checks = [meant.check, *sorted(_MEMORY_CHECKS)] if meant.check in _MEMORY_CHECKS else [meant.check]
    severe = meant.action in ("reset", "replace")
    return next((one for one in checks if one in failed and (not severe or failed[one] == CRITICAL)), None)


def _parts(card) -> list[dict]:
    """Return the partitions of a card. Two chips on one function are none: nobody split them."""
    return [one for one in dicts_of(card.device.get("logical")) if one.get("kind") != "chip"]


def _is_split(card) -> bool:
    return bool(_parts(card)) or card.device.get("partition_mode") not in (None, WHOLE, NOT_SPLITTABLE)


def partition(host, card, blocker: str | None) -> None:
    """Judge into how many logical devices a card is split (MIG, compute partitions, vNPU) against what is declared.

    ``cluster_accelerator_partitions`` is that number: 1 for whole cards, 0 where it is not judged. A split card has
    all its memory and answers for itself, yet a job that asks for a card gets a part of it, or none.
    """
    name = "cluster_accelerator_partitions"
    raw = host.declared.get(name)
    declared = 1 if raw is None or raw == "" else to_int(raw)
    parts, mode = _parts(card), card.device.get("partition_mode")
    named, split = mode not in (None, WHOLE, NOT_SPLITTABLE), _is_split(card)
    shown = host.say["parts"].format(len(parts)) if split else host.say["whole_card"]
    shown = host.say["mode"].format(mode, shown) if named else shown
    listed = "\n".join(" ".join(str(one[key]) for key in _PART_WORDS if one.get(key) is not None) for one in parts)
    values = {"expected": declared, "observed": shown, "evidence": [{"command": "partitions", "excerpt": listed}]}
    if declared == 0:
        host.add(f"{PARTITION}.not_judged", card, observed=shown)
    elif blocker:
        host.add(f"{PARTITION}.blocked", card, blocked_by=blocker)
    elif declared is None or declared < 0:
        host.add(f"{PARTITION}.unknown", card, observed=shown, detail=host.say["no_number"].format(name, raw))
    elif not split and mode is None:
        host.add(f"{PARTITION}.unknown", card, expected=declared, detail=host.say["not_told"])
    elif declared == 1 and not split:
        host.add(f"{PARTITION}.ok", card, expected=declared, observed=shown)
    elif declared == 1:
        host.add(f"{PARTITION}.split", card, **values)
    elif not split:
        host.add(f"{PARTITION}.whole", card, **values)
    elif len(parts) != declared:
        host.add(f"{PARTITION}.count", card, **values)
    else:
        host.add(f"{PARTITION}.ok", card, expected=declared, observed=shown)


def memory_repair(host, card, blocker: str | None) -> None:
    """Judge the repair of the memory: go on, reset or reboot, replace (NVIDIA, "GPU Memory Error Management")."""
    check = "device.memory_repair"
    if blocker:
        host.add(f"{check}.blocked", card, blocked_by=blocker)
        return
    repair, ecc = dict_of(card.device.get("repair")), dict_of(card.device.get("ecc"))
    state, sram = repair.get("state"), to_int(ecc.get("sram_uncorrected_aggregate"))
    limit, problem = _limit(host, "cluster_limit_sram_uncorrected", 4)
    count = to_int(repair.get("remapped_rows"))
    if count is None:
        count = to_int(repair.get("retired_pages"))
    evidence = [{"command": "memory repair", "excerpt": f"{repair} {ecc}"}]
    if state == "replace":
        host.add(f"{check}.replace", card, observed=state, detail=host.say["repair_failed"], evidence=evidence)
    elif limit is not None and sram is not None and sram > limit:
        detail = host.say["sram"].format(sram, f"{limit:g}")
        host.add(f"{check}.replace", card, expected=limit, observed=sram, detail=detail, evidence=evidence)
    elif state == "reset":
        host.add(f"{check}.reset", card, observed=state, evidence=evidence)
    elif problem:
        host.add(f"{check}.unknown", card, observed=state, detail=problem, evidence=evidence)
    elif state == "ok":
        host.add(f"{check}.ok", card, observed=count, history=host.say["repaired"].format(count) if count else "")
    elif state == "not_supported":
        host.add(f"{check}.not_supported", card)
    else:
        host.add(f"{check}.unknown", card, detail=host.say["not_told"], evidence=evidence)


def ecc(host, card, blocker: str | None) -> None:
    """Judge the counters of memory errors since the driver was loaded."""
    check = "device.ecc"
    if blocker:
        host.add(f"{check}.blocked", card, blocked_by=blocker)
        return
    counts = dict_of(card.device.get("ecc"))
    bad, corrected = to_int(counts.get("uncorrected_volatile")), to_int(counts.get("corrected_volatile"))
    limit, problem = _limit(host, "cluster_limit_ecc_corrected_volatile", 1000)
    evidence = [{"command": "memory errors", "excerpt": str(counts)}]
    if bad:
        if "device.memory_repair" in _failed(host, card):
            # The errors are what the repair is for.
            host.add(f"{check}.blocked", card, observed=bad, blocked_by="device.memory_repair", evidence=evidence)
        else:
            host.add(f"{check}.uncorrected", card, expected=0, observed=bad, evidence=evidence)
    elif bad is None:
        if dict_of(card.device.get("repair")).get("state") == "not_supported":
            host.add(f"{check}.not_supported", card)
        else:
            host.add(f"{check}.unknown", card, detail=host.say["not_told"], evidence=evidence)
    elif counts.get("unread"):
        detail = host.say["uncounted"].format(", ".join(str(one) for one in counts["unread"]))
        host.add(f"{check}.unknown", card, detail=detail, evidence=evidence)
    elif limit is None:
        host.add(f"{check}.unknown", card, observed=corrected, detail=problem, evidence=evidence)
    elif corrected is not None and corrected > limit:
        host.add(f"{check}.corrected", card, expected=limit, observed=corrected, evidence=evidence)
    else:
        host.add(f"{check}.ok", card, expected=0, observed=bad)


def health(host, card, blocker: str | None, evidence: list[dict]) -> None:
    """Judge what the vendor's tool concludes, and the fault codes that it tells as the kernel log's are judged."""
    check = "device.health"
    if blocker:
        host.add(f"{check}.blocked", card, blocked_by=blocker)
        return
    told = dict_of(card.device.get("health"))
    state = str(told.get("state"))
    state = state if state in ("ok", "warning", "critical") else "unknown"
    reasons = [str(one) for one in told.get("reasons") or []] if isinstance(told.get("reasons"), list) else []
    shown = "; ".join(reasons) or (host.say["not_told"] if state == "unknown" else state)
    state, blocked_by = _by_codes(host, card, state, reasons)
    if state == "ok":
        shown = "ok"
    values = {"expected": "ok", "observed": shown, "evidence": evidence}
    if blocked_by:
        host.add(f"{check}.blocked", card, blocked_by=blocked_by, **values)
    else:
        host.add(f"{check}.{state}", card, **values)


def _by_codes(host, card, state: str, reasons: list[str]) -> tuple[str, str | None]:
    """Return the state as the fault codes of the card have it, and the failed check that says all of them already."""
    overrides = dict_of(host.declared.get("cluster_kernel_event_actions"))
    failed = _failed(host, card)
    codes, left, explained = _codes(card), [], []
    for code in codes:
        meant = kernel_log.meaning({"code": code}, overrides)
        memory = _explaining(meant, failed) if meant.check in _MEMORY_CHECKS else None
        if memory:
            explained.append(memory)
        elif meant.action != "ignore":
            left.append(meant.action)
    if "replace" in left or "reset" in left:
        return ("replace" if "replace" in left else "critical"), None
    if left:
        return ("warning" if state == "ok" else state), None
    others = [one for one in reasons if not any(code.partition(" ")[2] in one for code in codes)]
    # What only the vendor's list does not act on may still be why its tool warns; what the site ignores is not.
    ignored = bool(codes) and all(overrides.get(code) == "ignore" for code in codes)
    if others or not (explained or ignored):
        return state, None
    return "ok", explained[0] if explained else None


def _codes(card) -> list[str]:
    codes = dict_of(card.device.get("health")).get("codes")
    return [str(one) for one in codes] if isinstance(codes, list) else []


def temperature(host, card, blocker: str | None) -> None:
    """Judge the temperature against the limit at which this very card slows down."""
    check = "device.temperature"
    if blocker:
        host.add(f"{check}.blocked", card, blocked_by=blocker)
        return
    readings = dict_of(card.device.get("readings"))
    now, limit = to_float(readings.get("temperature_c")), to_float(readings.get("temperature_limit_c"))
    limit = limit if limit is not None and limit > 0 else None  # a threshold that nobody set may be printed as 0
    margin, problem = _limit(host, "cluster_margin_temperature_celsius", 5)
    evidence = [{"command": "temperature", "excerpt": f"{now} C, slows down at {limit} C"}]
    if margin is None or now is None or limit is None:
        detail = problem or host.say["not_told" if now is None else "no_heat_limit"]
        host.add(f"{check}.unknown", card, observed=now, detail=detail, evidence=evidence)
    elif now >= limit - margin:
        host.add(f"{check}.hot", card, expected=limit, observed=now, margin=margin, evidence=evidence)
    else:
        host.add(f"{check}.ok", card, expected=limit, observed=now)


def throttle(host, card, blocker: str | None) -> None:
    """Judge what keeps the card below its clocks: a list of reasons against those that are allowed."""
    check = "device.throttle"
    if blocker:
        host.add(f"{check}.blocked", card, blocked_by=blocker)
        return
    readings = dict_of(card.device.get("readings"))
    active, mask = readings.get("throttles"), readings.get("throttle_mask")
    name = "cluster_throttles_allowed"
    allowed = host.declared.get(name, ["idle", "application_clocks", "display", "sync_boost", "power_cap"])
    allowed = [allowed] if isinstance(allowed, str) and allowed else allowed or []
    if not isinstance(allowed, (list, tuple)) or not all(one in THROTTLES for one in allowed):
        host.add(f"{check}.unknown", card, observed=active, detail=host.say["no_list"].format(name, allowed))
        return
    if not isinstance(active, (list, tuple)):
        host.add(f"{check}.unknown", card, detail=host.say["not_told"])
        return
    wrong = [str(one) for one in active if one not in allowed]
    shown = host.say["comma"].join(wrong)
    values = {
        "expected": list(allowed),
        "observed": shown or host.say["comma"].join(str(one) for one in active) or "-",
        "evidence": [{"command": "throttle reasons", "excerpt": f"{active} mask {mask}"}],
    }
    if any(one in _HARD_THROTTLES for one in wrong):
        host.add(f"{check}.hardware", card, **values)
    elif wrong == ["thermal"] and "device.temperature" in _failed(host, card):
        host.add(f"{check}.blocked", card, blocked_by="device.temperature", **values)
    elif wrong:
        host.add(f"{check}.slowed", card, **values)
    else:
        host.add(f"{check}.ok", card, **values)


def ports(host, card, blocker: str | None) -> None:
    """Judge the links to other cards (NVLink, xGMI, HCCS) by their state and by what cards of the same model have."""
    check = "device.ports"
    if blocker:
        host.add(f"{check}.blocked", card, blocked_by=blocker)
        return
    own = dicts_of(card.device.get("ports"))
    model = str(card.device.get("model") or "")
    alike, most = host.ports_of_model.get(str(card.device.get("model")), ([], 0))
    evidence = [{"command": "links", "excerpt": "; ".join(_port(one) for one in own) or "none"}]
    socketed = _SOCKETED.search(model) and not _NOT_SOCKETED.search(model)
    if not most and not socketed:
        if card.device.get("ports_told") is False:
            host.add(f"{check}.unknown", card, detail=host.say["not_told"], evidence=evidence)
        else:
            host.add(f"{check}.none", card)
        return
    if most and not socketed and all(one.get("state") in ("down", "disabled") for group in alike for one in group):
        host.add(f"{check}.unused", card)
        return
    if not own and _is_split(card):
        # nvidia-smi tells no links of a card with MIG, whose instances can't use any.
        if is_failed(host, card, PARTITION):
            host.add(f"{check}.blocked", card, expected=most or None, blocked_by=PARTITION, evidence=evidence)
        else:
            host.add(f"{check}.split", card)
        return
    if not own:
        host.add(f"{check}.unknown", card, expected=most or None, detail=host.say["not_told"], evidence=evidence)
        return
    used = {_key(one) for group in alike for one in group if _up(one)}
    # The same link down on all of several cards leads nowhere, unless none is up at all.
    spared = len(alike) >= _BY_DESIGN and bool(used)
    down = [one for one in own if one.get("state") == "down" and not (spared and _key(one) not in used)]
    unknown = [one for one in own if one.get("state") not in ("up", "down", "disabled")]
    up = sum(_up(one) for one in own)
    most_up = max(sum(_up(one) for one in group) for group in alike)
    best = max((to_float(one.get("speed_gbps")) or 0 for group in alike for one in group if _up(one)), default=0)
    slow = [one for one in own if _up(one) and 0 < (to_float(one.get("speed_gbps")) or best) < best]
    named = host.say["comma"].join(_port(one) for one in [*down, *slow])
    values = {"expected": up + len(down), "observed": up, "links": named, "evidence": evidence}
    if down:
        host.add(f"{check}.down", card, **values)
    elif slow:
        host.add(f"{check}.slow", card, **{**values, "expected": best})
    elif len(own) < most:
        host.add(f"{check}.fewer", card, **{**values, "expected": most, "observed": len(own)})
    elif unknown:
        host.add(f"{check}.unknown", card, detail=host.say["comma"].join(_port(one) for one in unknown), **values)
    elif up < most_up:
        # None of them is down by its own word, yet siblings have more that work.
        host.add(f"{check}.fewer", card, **{**values, "expected": most_up, "observed": up})
    else:
        host.add(f"{check}.ok", card, **values)


def ports_of_model(cards) -> dict[str, tuple[list[list[dict]], int]]:
    """Return the links of each card that answered and the most that one has, by model: once for all cards of a host."""
    groups: dict[str, list[list[dict]]] = {}
    for card in cards:
        if card.state == "ok":
            groups.setdefault(str(card.device.get("model")), []).append(dicts_of(card.device.get("ports")))
    return {model: (group, max(map(len, group))) for model, group in groups.items()}


def _up(port: dict) -> bool:
    return port.get("state") == "up"


def _key(port: dict) -> tuple:
    return port.get("kind"), port.get("index")


def _port(port: dict) -> str:
    speed = to_float(port.get("speed_gbps"))
    told = f"{port.get('kind')} {port.get('index')} {port.get('state')}"
    return f"{told} {speed:g} Gb/s" if speed else told


def processes(host, card, blocker: str | None) -> None:
    """Judge that nobody holds a card that should be free; daemons that only watch cards are nobody."""
    check = "device.processes"
    raw = host.declared.get("cluster_processes_allowed")
    if raw is None or raw == "" or str(raw).strip().lower() not in ("false", "no", "off", "0", "n", "f"):
        host.add(f"{check}.allowed", card)
        return
    if blocker:
        host.add(f"{check}.blocked", card, blocked_by=blocker)
        return
    held = [
        one
        for one in dicts_of(card.device.get("processes"))
        if str(one.get("name") or "").rpartition("/")[2][:15] not in [name[:15] for name in DAEMONS]
    ]
    if held:
        names = host.say["comma"].join(f"{one.get('name') or '?'} (pid {one.get('pid')})" for one in held)
        evidence = [{"command": "processes", "excerpt": str(held)}]
        host.add(f"{check}.held", card, expected=0, observed=len(held), names=names, evidence=evidence)
    elif not card.device.get("device_nodes"):
        host.add(f"{check}.no_node", card)
    elif host.observation.get("holders_complete") is not True:
        host.add(f"{check}.unknown", card)
    else:
        host.add(f"{check}.free", card, expected=0, observed=0)


# ---------------------------------------------------------------------------------------------- kernel log


def kernel_log_of_host(host) -> bool:
    """Judge whether the log could be read, and what it says of no card here; tell whether cards can be judged by it."""
    check = "device.kernel_log"
    log = dict_of(host.observation.get("kernel_log"))
    problem = kernel_log.override_problem(host.declared.get("cluster_kernel_event_actions"))
    if log.get("state") == "shared":
        host.add(f"{check}.shared_kernel")
        return False
    if log.get("state") != "ok" or problem:
        detail = problem or log.get("reason") or host.say["not_told"]
        evidence = [{"command": str(log.get("source") or ""), "excerpt": str(detail)}]
        host.add(f"{check}.unknown", detail=detail, evidence=evidence)
        return False
    known = {_place(card.address) for card in host.cards if card.address}
    # Errors of other PCI devices are not this check's business; those of an accelerator driver are, whomever they name.
    rest = [
        event
        for event in _events(host)
        if _place(event.get("pci_address")) not in known and event.get("vendor") != "pci"
    ]
    _judge_events(host, None, rest, {})
    return True


def kernel_log_of_card(host, card, blocker: str | None) -> None:
    """Judge what the log of this boot says of one card. Says why a silent card is silent, where it knows."""
    events = [one for one in _events(host) if card.address and _place(one.get("pci_address")) == _place(card.address)]
    if blocker:
        host.add(
            "device.kernel_log.blocked",
            card,
            blocked_by=blocker,
            observed=_told(host, events),
            evidence=_lines(host, events),
        )
        return
    _judge_events(host, card, events, _failed(host, card))


def kernel_evidence(host, card) -> list[dict]:
    """Return the lines that the kernel log has of a card, as evidence."""
    place = _place(card.address)
    return _lines(host, [one for one in _events(host) if place and _place(one.get("pci_address")) == place])


def _judge_events(host, card, events: list[dict], failed: dict[str, str]) -> None:
    check = "device.kernel_log"
    overrides = dict_of(host.declared.get("cluster_kernel_event_actions"))
    judged = []
    for event in events:
        meant = kernel_log.meaning(event, overrides)
        if meant.action != "ignore" and (not event.get("cause") or event.get("code") in overrides):
            judged.append((event, meant))
    # The same code, told by the tool and by the kernel, is one fact.
    told = _codes(card) if card is not None and "device.health" in failed else []
    explained = [_explaining(meant, failed) for _event, meant in judged]
    left = [one for one, by in zip(judged, explained) if by is None and str(one[0].get("code")) not in told]
    values: dict = {"evidence": _lines(host, events)}
    if not judged:
        host.add(f"{check}.ok", card, observed=len(events))
        return
    if not left:
        blocker = min((by for by in explained if by), default="device.health")
        host.add(
            f"{check}.blocked", card, blocked_by=blocker, observed=_told(host, [one for one, _m in judged]), **values
        )
        return
    worst = max((meant.action for _event, meant in left), key=kernel_log.ACTIONS.index)
    # The worst first: it is what a person must act on.
    left.sort(key=lambda pair: -kernel_log.ACTIONS.index(pair[1].action))
    words = "; ".join(_words(event, meant) for event, meant in left[:5])
    if len(left) > 5:
        words += f"; +{len(left) - 5}"
    host.add(f"{check}.{worst}", card, observed=words, **values)


def _events(host) -> list[dict]:
    return dicts_of(host.observation.get("kernel_events"))


def _place(address: object) -> str | None:
    """Return domain:bus:device: a Xid line has no function, and AER may name another one of the card."""
    try:
        return pci.normalise_device(str(address)) if address else None
    except ValueError:
        return None


def _words(event: dict, meant: kernel_log.Meaning) -> str:
    count = to_int(event.get("count")) or 1
    return f"{event.get('code')} ({meant.words})" + (f" x{count}" if count > 1 else "")


def _told(host, events: list[dict]) -> str:
    codes = dict.fromkeys(str(one.get("code")) for one in events if not one.get("cause"))
    return host.say["comma"].join(codes) or host.say["empty"]


def _lines(host, events: list[dict]) -> list[dict]:
    if not events:
        return []
    shown = []
    for event in events[:20]:
        line = " ".join(str(part) for part in (event.get("at"), event.get("message")) if part)
        count, cause = to_int(event.get("count")) or 1, event.get("cause")
        line += f" [x{count}]" if count > 1 else ""
        shown.append(line + (f" [follows from {cause}]" if cause else ""))
    source = str(dict_of(host.observation.get("kernel_log")).get("source") or "")
    return [{"command": source, "excerpt": "\n".join(shown)[:2000]}]
