# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Hold what was observed against what is declared and accepted: findings, and the verdict of a run.

Pure functions. ``declared`` is the mapping of ``cluster_*`` variables as the inventory gives them:
numbers may be text ("8"); one that is no number is judged ``unknown``. The same holds for whatever
the observation lacks: unknown is never a pass. What can't be judged because an earlier check did not
pass is unknown with ``blocked_by``, so that a person reads the cause once, not its consequences.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from . import conditions, hints, registry, slots, together
from .model import (
    FAIL,
    HOST_ERRORS,
    NOT_APPLICABLE,
    PASS,
    SLOT_MAP_ERROR,
    SLOT_TABLE_ERROR,
    TOOL_ABSENT,
    TOOL_HUNG,
    TOOL_OK,
    TOOL_UNREADABLE,
    UNKNOWN,
    WARNING,
    Finding,
    as_dict,
    dict_of,
    dicts_of,
    to_float,
    to_int,
)
from .slot_names import natural, place_of, source_rank
from .text import equal_or_same, majority, one_release, same_version

EXCERPT_LIMIT = 2000
GIB = 1 << 30

# Errors of an observation that its message names, and how much of each; the evidence has all.
_TOLD, _TOLD_LENGTH = 3, 300

# A node's clock may run a little ahead of the controller's; what lies further ahead is no reading of the past.
_CLOCK_SLACK = timedelta(minutes=1)

# Reason that a vendor file gives for a tool that failed -> cause of device.driver
_DRIVER_REASONS = {
    "driver_library_mismatch": "library_mismatch",
    "driver_not_loaded": "not_loaded",
    "driver_not_ready": "not_ready",
    "library_missing": "no_library",
    "in_use_elsewhere": "in_use_elsewhere",
}

_WORDS = {
    "en": {
        "slot": "slot {0}",
        "serial": "serial {0}",
        "uuid": "uuid {0}",
        "card": "{0} ({1})",
        "cards": "{0} cards ({1})",
        "comma": ", ",
        "hop": "; the bridge {0} limits it",
        "aside": " ({0})",
        "list": ": {0}",
        "not_told": "nothing told it",
        "no_number": "{0} is {1!r}, no number",
        "no_list": "{0} is {1!r}, no list of names",
        "no_vendor": "{0} is {1!r}, none of {2}",
        "no_driver": "the driver does not work",
        "strange": "they are another vendor's",
        "no_link": "neither width nor maximum could be read",
        "no_speed": "its speed or its maximum could not be read",
        "unread_hop": "the bridge {} above it did not answer",
        "uncounted": "these counters could not be read: {}",
        "candidates": "; sources disagree or are not unique: {0}",
        "nobody": "a card without serial",
        "as_declared": "declared for the type",
        "most": "what most nodes of the type {0} run: {1} of {2}",
        "no_majority": "no version is that of most nodes of the type {0}: {1}",
        "few": "only {1} of {2} nodes of the type {0} told theirs",
        "several": "several versions on one node",
        "module_and_library": "the loaded module and the library of one node differ",
        "one": "one version",
        "short_form": "{0} may be {1}",
        "none": "none was accepted yet",
        "at": "card at {0}",
        "place": "{0} slot {1}",
        "no_place": "{0}, slot not known",
        "empty": "nothing",
        "anonymous": "the card tells neither serial nor UUID",
        "repair_failed": "the repair failed or its spare rows are used up",
        "sram": "aggregate SRAM uncorrectable {0} > {1}",
        "repaired": "; {0} rows or pages were repaired earlier",
        "no_heat_limit": "the card does not tell at what temperature it slows down",
        "nowhere": "{0} answers, but nothing tells in which slot it sits",
        "no_bus": "the PCI bus could not be read",
        "more": " and {0} more",
        "answer": " ({0} of {1} answer)",
        "some": "an unknown number",
        "not_found": "; {0}, accepted here, was not found",
        "elsewhere": "; {0} was accepted in {1}",
        "in_slot": "the card in slot {0}",
        "home": "; accepted there: {0}",
        "no_home": ", and nothing tells its slot",
        "the_card": "the card at {0}",
        "at_place": "{0} at {1}",
        "parts": "{0} partitions",
        "mode": "{0} ({1})",
        "whole_card": "whole",
    },
    "zh": {
        "slot": "槽位 {0}",
        "serial": "序列号 {0}",
        "uuid": "uuid {0}",
        "card": "{0}（{1}）",
        "cards": "{0} 张卡（{1}）",
        "comma": "，",
        "hop": "；受上游网桥 {0} 限制",
        "aside": "（{0}）",
        "list": "：{0}",
        "not_told": "没有任何来源给出",
        "no_number": "{0} 的值 {1!r} 不是数字",
        "no_list": "{0} 的值 {1!r} 不是名称列表",
        "no_vendor": "{0} 的值 {1!r} 不是 {2} 之一",
        "no_driver": "驱动不可用",
        "strange": "加速卡属于其他厂商",
        "no_link": "无法读取当前宽度或最大宽度",
        "no_speed": "无法读取当前速率或最大速率",
        "unread_hop": "其上级桥 {} 没有响应",
        "uncounted": "无法读取以下计数器：{}",
        "candidates": "；来源不一致或不唯一：{0}",
        "nobody": "无序列号的卡",
        "as_declared": "该类型的声明值",
        "most": "类型 {0} 的多数节点如此：{2} 个中有 {1} 个",
        "no_majority": "类型 {0} 中没有占多数的版本：{1}",
        "few": "类型 {0} 的 {2} 个节点中仅有 {1} 个给出版本",
        "several": "同一节点上有多个版本",
        "module_and_library": "同一节点上已加载的模块与库版本不同",
        "one": "单一版本",
        "short_form": "{0} 可能是 {1}",
        "none": "尚未确认任何基线",
        "at": "位于 {0} 的卡",
        "place": "{0} 槽位 {1}",
        "no_place": "{0}（槽位未知）",
        "empty": "无",
        "anonymous": "该卡既无序列号也无 UUID",
        "repair_failed": "修复失败或备用行已用尽",
        "sram": "SRAM 不可纠正错误累计 {0} > {1}",
        "repaired": "；此前已修复 {0} 行（页）",
        "no_heat_limit": "该卡未给出开始降频的温度",
        "nowhere": "{0} 有应答，但没有任何来源给出其槽位",
        "no_bus": "无法读取 PCI 总线",
        "more": "，另有 {0} 条",
        "answer": "（声明的 {1} 张中有 {0} 张应答）",
        "some": "若干",
        "not_found": "；此处已确认的{0}未找到",
        "elsewhere": "；{0} 的确认位置为 {1}",
        "in_slot": "槽位 {0} 中的卡",
        "home": "；已确认的卡为：{0}",
        "no_home": "，且没有任何来源给出其槽位",
        "the_card": "位于 {0} 的卡",
        "at_place": "{0}（位于 {1}）",
        "parts": "{0} 个分区",
        "mode": "{0}（{1}）",
        "whole_card": "整卡",
    },
}


def words(language: str) -> dict:
    """Return the small words of messages in ``language``, English for one that is not known."""
    return _WORDS.get(language, _WORDS["en"])


def finding(
    cause: str,
    host: str,
    subject: str | None = None,
    language: str = "en",
    now: str | None = None,
    expected: object = None,
    observed: object = None,
    evidence: Iterable[dict] = (),
    blocked_by: str | None = None,
    vendor: str | None = None,
    **params: object,
) -> dict:
    """Return the finding of ``<check>.<cause>`` as a dict; verdict, severity and layer come from ``hints``.

    ``params`` fill the message. Evidence is kept only where there is something to prove.
    """
    spec = hints.CAUSES[cause]
    check = hints.check_of(cause)
    subject = subject or host
    return as_dict(
        Finding(
            check=check,
            host=host,
            subject=subject,
            verdict=spec.verdict,
            hint=cause,
            layer=hints.CHECKS[check]["layer"],
            severity=spec.severity,
            expected=expected,
            observed=observed,
            message=hints.text(
                cause,
                language,
                **{"host": host, "subject": subject, "expected": expected, "observed": observed, **params},
            ),
            evidence=[] if spec.verdict in (PASS, NOT_APPLICABLE) else list(evidence),
            blocked_by=blocked_by,
            vendor=vendor,
            at=now,
        )
    )


def verdict(findings: Iterable[dict]) -> str:
    """Return pass, fail or unknown of a run: any critical fail, else any critical unknown, else pass.

    No finding at all proves nothing: unknown. So is a verdict that nobody knows; what is not plainly a
    warning counts as critical.
    """
    findings = list(findings)
    critical = [one.get("verdict") for one in findings if one.get("severity") != WARNING]
    if FAIL in critical:
        return FAIL
    if not findings or any(one not in (PASS, NOT_APPLICABLE) for one in critical):
        return UNKNOWN
    return PASS


def parse_time(text: object) -> datetime | None:
    """Return a time as UTC from ISO 8601 or 20261130T010203Z, None for anything else."""
    word = str(text or "").strip()
    for form in ("%Y%m%dT%H%M%SZ", "%Y-%m-%dT%H:%M:%SZ"):
        try:
            return datetime.strptime(word, form).replace(tzinfo=timezone.utc)
        except ValueError:
            continue
    try:
        moment = datetime.fromisoformat(word.replace("Z", "+00:00"))
    except ValueError:
        return None
    return moment.astimezone(timezone.utc) if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def now_utc() -> str:
    """Return the time as findings carry it."""
    return _stamp(datetime.now(timezone.utc))


def _stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def has_no_accelerators(declared: dict) -> bool:
    """Tell whether the inventory says that a host has no cards: count 0 (or none) and no vendor."""
    count = declared.get("cluster_accelerator_count")
    return not declared.get("cluster_accelerator_vendor") and (count in (None, "") or to_int(count) == 0)


def excerpt(text: object) -> str:
    """Return raw text short enough to keep; its end stays too, it often says why a tool gave up."""
    raw = str(text or "")
    if len(raw) <= EXCERPT_LIMIT:
        return raw
    mark = "\n[...]\n"
    head = (EXCERPT_LIMIT - len(mark)) * 2 // 3
    return raw[:head] + mark + raw[len(raw) - (EXCERPT_LIMIT - len(mark) - head) :]


def name_card(language: str, address: object, slot: object = None, serial: object = None, uuid: object = None) -> str:
    """Return how a message names a card: ``0000:ba:00.0 (slot SXM5, serial 1650423000128)``."""
    say = words(language)
    about = [say[key].format(value) for key, value in (("slot", slot), ("serial", serial or None)) if value]
    if not serial and uuid:
        about.append(say["uuid"].format(uuid))
    if not address:
        return say["comma"].join(about) or say["nobody"]
    return say["card"].format(address, say["comma"].join(about)) if about else str(address)


def _errors_of(observation: dict) -> list[str]:
    errors = observation.get("errors")
    return [str(error) for error in errors] if isinstance(errors, list) else []


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _true(value: object, default: bool) -> bool:
    """Return an inventory's truth; anything that is no clear "no" keeps a check alive."""
    if value is None or value == "":
        return default
    return str(value).strip().lower() not in ("false", "no", "off", "0", "n", "f")


def _finite(value: object) -> float | None:
    """Return a number; None also for NaN and infinity, which compare so that everything would pass."""
    number = to_float(value)
    return number if number is not None and math.isfinite(number) else None


def _number(declared: dict, name: str) -> tuple[float | None, bool]:
    """Return a declared number and whether it is usable; (None, True) when nothing is declared."""
    raw = declared.get(name)
    if raw is None or raw == "":
        return None, True
    value = _finite(raw)
    if value is None or value < 0:
        return None, False
    return (value or None), True


# ---------------------------------------------------------------------------------------------- one host's cards


@dataclass
class _Card:
    """One card of the host, whether it answered or not.

    ``subject`` is what findings call it: its slot, or its address where the slot is not known or holds several
    devices (a board of two or four), so that each finding of a host has one subject.
    """

    address: str | None
    label: str | None
    device: dict = field(default_factory=dict)
    link: dict = field(default_factory=dict)
    vendor: str = ""
    state: str = "ok"  # ok | lost | hung | not_reported
    name: str = ""
    subject: str = ""


def cards_of(observation: object, language: str = "en") -> list[_Card]:
    """Return every card of an observation by slot, then address: those that answered and those that did not."""
    observation = dict_of(observation)
    unanswered = dicts_of(observation.get("unanswered"))
    missed = {str(entry["pci_address"]): entry for entry in unanswered if entry.get("pci_address")}
    cards = []
    for device in dicts_of(observation.get("devices")):
        entry = missed.pop(str(device.get("pci_address")), {})
        state = _silence(entry) if entry else "ok"
        # What only the bus shows was never told by the vendor's tool.
        if not entry and str(device.get("source") or "sysfs").startswith("sysfs"):
            state = "not_reported"
        cards.append(_card(device, entry, state, language))
    nameless = [entry for entry in unanswered if not entry.get("pci_address")]
    cards += [_card({}, entry, _silence(entry), language) for entry in [*missed.values(), *nameless]]
    shared = Counter(card.label for card in cards)
    for number, card in enumerate(cards):
        if card.label and shared[card.label] == 1:
            card.subject = card.label
        elif card.address:
            card.subject = card.address
        else:
            # Still a card: it must not vanish because nothing can be said of its place.
            index = card.device.get("index")
            card.subject = f"device {number if index is None else index}"
            if not (card.label or card.device.get("serial") or card.device.get("uuid")):
                card.name = card.subject
    # An address is one number in hexadecimal digits; its canonical form sorts as text.
    return sorted(cards, key=lambda card: (natural(card.label), str(card.address or "")))


def identities(observation: object) -> set[str]:
    """Return UUIDs and serials of the cards that answer on a host."""
    answered = {card.address for card in cards_of(observation) if card.state == "ok"}
    devices = dicts_of(dict_of(observation).get("devices"))
    told = [one.get(key) for one in devices if one.get("pci_address") in answered for key in ("uuid", "serial")]
    return {str(name) for name in told if name}


def answering(observations: Mapping[str, object]) -> set[str]:
    """Return UUIDs and serials of the cards that answer on any of the hosts."""
    return set().union(*(identities(observation) for observation in observations.values()))


def without(baseline: dict | None, observation: object, everywhere: Collection[str]) -> dict | None:
    """Return a baseline without the cards that answer on another host: they are not what is silent on this one."""
    own = identities(observation)

    def here(cards: list[dict]) -> list[dict]:
        return [card for card in cards if _identity(card) in own or _identity(card) not in everywhere]

    if not baseline:
        return baseline
    kept = {label: here(cards) for label, cards in baseline["slots"].items()}
    kept = {label: cards for label, cards in kept.items() if cards}
    return {**baseline, "slots": kept, "unplaced": here(baseline["unplaced"])}


def _identity(card: dict) -> str | None:
    # Boards with two chips share their serial, so the chip's own identity goes first.
    return card.get("uuid") or card.get("serial")


def placed(observation: object, baseline: dict | None, everywhere: Collection[str] = ()) -> dict:
    """Return a copy of an observation in which cards whose slot is not told have the one that was accepted for them.

    A card that is lost takes the vendor's name of its place with it, and the kernel's may be another one. What
    tells its slot, and the serial to pull, is the accepted address. A slot in which another card answers is not
    given away. Nor has a card moved, which answers as the accepted one at the accepted address, because a lesser source
    names its place than when it was accepted (the vendor's answer was damaged): "3" may be what was "SXM3".

    ``everywhere`` are the identities that answer on any host. A card that answers, here or there, is not the one that
    is silent: a wrong serial would have the wrong card pulled, so none is told then.
    """
    observation = dict(dict_of(observation))
    known = {*identities(observation), *everywhere}
    observation["unanswered"] = [
        {**entry, "serial": None, "uuid": None, "last": None} if _identity(entry) in known else entry
        for entry in dicts_of(observation.get("unanswered"))
    ]
    if not baseline or slots.problems(baseline):
        return observation
    accepted = {
        card["pci_address"]: (label, card)
        for label, cards in _entries(baseline).items()
        for card in cards
        if card.get("pci_address")
    }
    silent = {card.address for card in cards_of(observation) if card.state != "ok"}
    unmoved = {
        device.get("pci_address")
        for device in dicts_of(observation.get("devices"))
        if device.get("pci_address") not in silent and _only_renamed(device, accepted.get(device.get("pci_address")))
    }
    taken = {card.label for card in cards_of(observation) if card.state == "ok" and card.address not in unmoved}
    for key in ("devices", "unanswered"):
        entries = []
        for entry in dicts_of(observation.get(key)):
            address = entry.get("pci_address")
            label, card = accepted.get(address, (None, {}))
            if (address in silent or address in unmoved) and label and label not in taken:
                old = dict_of(entry.get("slot"))
                entry = dict(entry)
                if old.get("label") != label:
                    others = [{"label": old["label"], "source": old.get("source")}] if old.get("label") else []
                    others += dicts_of(old.get("candidates"))
                    entry["slot"] = {"label": label, "source": "baseline", "candidates": others}
                if key == "unanswered" and _identity(card) not in known:
                    told = {name: entry.get(name) or card.get(name) for name in ("serial", "uuid", "model")}
                    entry.update(told)
            entries.append(entry)
        observation[key] = entries
    return observation


def _only_renamed(device: dict, accepted: tuple[str, dict] | None) -> bool:
    """Tell whether this is the card that was accepted at its address, named by a lesser source than then."""
    label, card = accepted or ("", {})
    same = [card.get(key) == device.get(key) for key in ("uuid", "serial") if card.get(key) and device.get(key)]
    slot = dict_of(device.get("slot"))
    return (
        bool(same)
        and all(same)
        and slot.get("label") != label
        and source_rank(slot.get("source")) > source_rank(card.get("slot_source"))
    )


def _silence(entry: dict) -> str:
    """Return how a card does not answer: lost, hung or not_reported."""
    if "hung" in (entry.get("state"), entry.get("reason")):
        return "hung"
    return "lost" if entry.get("state") == "lost" else "not_reported"


def _card(device: dict, entry: dict, state: str, language: str) -> _Card:
    address = device.get("pci_address") or entry.get("pci_address")
    label = place_of(device) or place_of(entry)
    serial, uuid = device.get("serial") or entry.get("serial"), device.get("uuid") or entry.get("uuid")
    link = {**dict_of(entry.get("link")), **{k: v for k, v in dict_of(device.get("link")).items() if v is not None}}
    return _Card(
        address=address,
        label=str(label) if label else None,
        device=device,
        link=link,
        vendor=_vendor_word(device) or _vendor_word(entry),
        state=state,
        name=name_card(language, address, label, serial, uuid),
    )


def _vendor_word(thing: dict) -> str:
    return str(thing.get("vendor") or "").strip().lower()


def declared_vendor(declared: dict) -> tuple[str, bool]:
    """Return the declared vendor and whether it is usable; "" when none is declared, or it is no vendor's name."""
    raw = declared.get("cluster_accelerator_vendor")
    if raw is None or raw == "":
        return "", True
    word = raw.strip().lower() if isinstance(raw, str) else ""
    return (word, True) if word in _vendors(declared) else ("", False)


def _vendors(declared: dict) -> list[str]:
    """Return the names of all vendors: the collection's, and those that the site declares itself."""
    return [*registry.VENDORS, *dict_of(declared.get("cluster_vendors"))]


@dataclass
class HostState:
    """What the tools of one host could tell at all; each is the cause, without its check.

    ``blocker`` is the check that keeps unanswered cards from being judged, None when there is none. ``vendor`` is
    the declared one, "" where none can be held against; ``strange`` tells that all cards are of another vendor.
    """

    driver: str
    query: str
    count: int | None
    bus_count: int | None
    tools: list[dict]
    drivers: list[dict]
    vendor: str = ""
    strange: bool = False

    def is_stranger(self, card: _Card) -> bool:
        """Tell whether a card is of another vendor than the declared one."""
        return bool(self.vendor and card.vendor and card.vendor != self.vendor)

    @property
    def driver_blocks(self) -> bool:
        return self.driver in _DRIVER_REASONS.values()

    def blocker(self, card: _Card) -> str | None:
        """Return the check that keeps ``card`` from being judged, None when it answered."""
        if card.state == "ok":
            return None
        if card.state == "lost":
            return "device.count"
        if card.state == "hung":
            return "device.query"
        if self.is_stranger(card):
            return "device.model"
        if self.driver_blocks:
            return "device.driver"
        return "device.count" if self.query == "ok" else "device.query"


def state_of(observation: object, declared: dict) -> HostState:
    """Tell whether driver and tool of a host answered, and if not, why.

    Tools and drivers of another vendor than the declared one count only where all cards are that vendor's: what is
    there is judged, and ``device.model`` tells that it is not what was declared.
    """
    observation = dict_of(observation)
    vendor, _usable = declared_vendor(declared)
    cards = cards_of(observation)
    strangers = [card for card in cards if vendor and card.vendor not in ("", vendor)]
    strange = bool(cards) and len(strangers) == len(cards)

    def of_vendor(things: list[dict]) -> list[dict]:
        return things if strange or not vendor else [one for one in things if _vendor_word(one) in ("", vendor)]

    tools = of_vendor(dicts_of(observation.get("tools")))
    drivers = of_vendor(dicts_of(observation.get("drivers")))
    count = _whole(observation.get("count"))
    if count is None and strangers and any(tool.get("state") == TOOL_OK for tool in tools):
        # That the tool of another vendor told no number takes nothing from the one that did.
        count = sum(card.state == "ok" for card in cards)
    return HostState(
        driver=_driver_cause(tools, drivers, count),
        query=_query_cause(tools, of_vendor(dicts_of(observation.get("unanswered"))), count),
        count=count,
        bus_count=_whole(observation.get("bus_count")),
        tools=tools,
        drivers=drivers,
        vendor=vendor,
        strange=strange,
    )


def _driver_cause(tools: list[dict], drivers: list[dict], count: int | None) -> str:
    if not count:
        reasons = {tool.get("reason") for tool in tools}
        for reason, cause in _DRIVER_REASONS.items():
            if reason in reasons:
                return cause
        if count is None and drivers and all(driver.get("loaded") is False for driver in drivers):
            return "not_loaded"
    if drivers and all(driver.get("loaded") is False for driver in drivers):
        return "unknown"  # a tool that answers, and no module that it could have the answer from
    if count or any(tool.get("state") == TOOL_OK for tool in tools):
        return "ok"
    return "ok" if any(driver.get("loaded") is True for driver in drivers) else "unknown"


def _query_cause(tools: list[dict], unanswered: list[dict], count: int | None) -> str:
    states = [tool.get("state") for tool in tools]
    hung = any(_silence(entry) == "hung" for entry in unanswered)
    # A tool that hung and left cards unanswered hung on them; one that another tool made up for did not matter.
    if TOOL_HUNG in states:
        hung = hung or count is None or any(_silence(entry) != "lost" for entry in unanswered)
    if hung:
        return "hung"
    if count is not None:
        return "ok"
    if TOOL_UNREADABLE in states:
        return "unreadable"
    return "absent" if states and all(state == TOOL_ABSENT for state in states) else "failed"


def judge_devices(
    host: str,
    observation: object,
    declared: dict,
    link_readings: object = None,
    now: str | None = None,
    language: str = "en",
) -> list[dict]:
    """Judge the cards of one host: every ``device.*`` check that needs no other host and no baseline.

    ``observation`` is what ``accelerator_info`` returns. ``link_readings`` are the readings under load of
    ``links.json``, ``{address: {speed_gts, width, at, identity}}``; those older than
    ``cluster_link_reading_max_age_hours`` or from the future don't count. Findings of the host come first, what is not
    known of any of its cards among them (``together.py``), then those of each card in the order of the slots.
    """
    return _HostJudge(host, observation, declared, link_readings, now, language).findings()


class _HostJudge:
    """Judges one host; collects findings in ``self.found``."""

    def __init__(
        self, host: str, observation: object, declared: dict, link_readings: object, now: str | None, language: str
    ) -> None:
        self.host = host
        self.observation = dict_of(observation)
        self.declared = dict_of(declared)
        readings = dict_of(link_readings)
        self.readings = dict_of(readings["links"]) if isinstance(readings.get("links"), dict) else readings
        self.now = parse_time(now) or datetime.now(timezone.utc)
        self.at = _stamp(self.now)
        self.language = language
        self.say = words(language)
        self.state = state_of(self.observation, self.declared)
        self.cards = cards_of(self.observation, language)
        vendors = {card.vendor for card in self.cards if card.vendor}
        if self.state.vendor and not self.state.strange:
            vendors = {self.state.vendor}
        # What is told of the host is told of these cards; of several vendors' it is nobody's.
        self.vendor = vendors.pop() if len(vendors) == 1 else None
        self.ports_of_model = conditions.ports_of_model(self.cards)
        self.found: list[dict] = []
        # Subject -> its checks that failed by themselves -> how severe that is.
        self.failed: dict[str, dict[str, str]] = {}

    def add(self, cause: str, card: _Card | None = None, **values) -> None:
        values["card"] = card.name if card is not None else self.host
        values.setdefault("language", self.language)
        values["vendor"] = card.vendor or self.vendor if card is not None else self.vendor
        one = finding(cause, self.host, card.subject if card else None, now=self.at, **values)
        failed = self.failed.setdefault(one["subject"], {})
        if one["verdict"] == FAIL and not one["blocked_by"]:
            failed[one["check"]] = one["severity"]
        if one["verdict"] == UNKNOWN and failed.get(one["blocked_by"]) == WARNING:
            # A consequence weighs no more than what it follows from: a hot card is a warning, not an unknown card.
            one["severity"] = WARNING
        self.found.append(one)

    def findings(self) -> list[dict]:
        bus, count = self.state.bus_count, self.state.count
        if has_no_accelerators(self.declared) and "bus_count" in self.observation:
            seen = max(bus or 0, count or 0)
            cause = "surplus" if seen else "no_bus" if bus is None else "ok"
            self.add(f"device.count.{cause}", expected=0, observed=None if cause == "no_bus" else seen)
            self._errors()
            return self.found
        self._driver()
        self._query()
        self._count()
        log_read = conditions.kernel_log_of_host(self)
        for card in self.cards:
            blocker = self.state.blocker(card)
            self._model(card, blocker)
            conditions.partition(self, card, blocker)
            self._memory(card, blocker)
            conditions.memory_repair(self, card, blocker)
            conditions.ecc(self, card, blocker)
            conditions.health(self, card, blocker, self._evidence())
            conditions.temperature(self, card, blocker)
            conditions.throttle(self, card, blocker)
            conditions.ports(self, card, blocker)
            if log_read:
                conditions.kernel_log_of_card(self, card, blocker)
            self._link_width(card, blocker)
            self._link_speed(card, blocker)
            conditions.processes(self, card, blocker)
        self.found = together.tell(self.found, self.cards, self.say)
        self._errors()
        return self.found

    def _evidence(self) -> list[dict]:
        shown = []
        for tool in self.state.tools:
            command = tool.get("command") or tool.get("name") or ""
            shown.append({"command": str(command), "rc": tool.get("rc"), "excerpt": excerpt(tool.get("excerpt"))})
        for error in _errors_of(self.observation):
            # What a tool said stands beside its command already.
            if not any(one["excerpt"] and error.strip().endswith(one["excerpt"]) for one in shown):
                shown.append({"command": "", "excerpt": excerpt(error)})
        if self.state.bus_count is None:
            shown.append({"command": "/sys/bus/pci/devices", "excerpt": "nothing can be read there"})
        return shown

    def _errors(self) -> None:
        """Tell the errors of the observation: what a tool said only where no other finding has it as evidence."""
        every = _errors_of(self.observation)
        errors = [error for error in every if not error.startswith(SLOT_TABLE_ERROR)]
        common = self._evidence()
        # A finding may have evidence of its own behind it, as what the kernel said of a lost card.
        if common and any(one["evidence"][: len(common)] == common for one in self.found):
            errors = [error for error in errors if error.startswith(HOST_ERRORS)]
            every = errors
        if errors:
            detail = "; ".join(" ".join(error.split())[:_TOLD_LENGTH] for error in errors[:_TOLD])
            if len(errors) > _TOLD:
                detail += self.say["more"].format(len(errors) - _TOLD)
            evidence = [{"command": "", "excerpt": excerpt(error)} for error in errors]
            self.add("device.observation.errors", observed=len(errors), detail=detail, evidence=evidence)
        elif every:
            self.add("device.observation.ok", note=self.say["aside"].format("; ".join(every)))

    def _names(self, cards: Iterable[_Card]) -> str:
        return self.say["comma"].join(card.name for card in cards)

    # -- the host

    def _driver(self) -> None:
        cause, drivers = self.state.driver, self.state.drivers
        if self.state.strange and cause != "ok":
            self.add("device.driver.blocked", evidence=self._evidence(), blocked_by="device.model")
            return
        kernel = [str(one["kernel_version"]) for one in drivers if one.get("kernel_version")]
        library = [str(one["library_version"]) for one in drivers if one.get("library_version")]
        version = self.say["comma"].join(kernel)
        values: dict = {"observed": version or None}
        if cause == "library_mismatch":
            values = {"expected": version or None, "observed": self.say["comma"].join(library) or None}
        self.add(
            f"device.driver.{cause}",
            evidence=self._evidence(),
            version=self.say["aside"].format(version) if version else "",
            **values,
        )

    def _query(self) -> None:
        names = [str(tool["name"]) for tool in self.state.tools if tool.get("name")]
        tool = self.say["comma"].join(names)
        cause = self.state.query
        if self.state.strange and (self.state.driver_blocks or cause != "ok"):
            self._query_blocked("device.model", self.say["strange"])
            return
        if self.state.driver_blocks:
            self._query_blocked("device.driver", self.say["no_driver"])
            return
        if cause in ("ok", "failed"):
            tool = self.say["aside"].format(tool) if tool else ""
        hung = [card for card in self.cards if card.state not in ("ok", "lost")]
        self.add(
            f"device.query.{cause}",
            evidence=self._evidence(),
            tool=tool,
            cards=self.say["list"].format(self._names(hung)) if hung and cause == "hung" else "",
        )

    def _query_blocked(self, blocker: str, reason: str) -> None:
        self.add("device.query.blocked", evidence=self._evidence(), blocked_by=blocker, reason=reason)

    def _count(self) -> None:
        count, bus = self.state.count, self.state.bus_count
        raw = self.declared.get("cluster_accelerator_count")
        declared = to_int(raw)
        declared = declared if declared and declared > 0 else None
        there = None if count is None and bus is None else max(count or 0, bus or 0)
        lost = [card for card in self.cards if card.state == "lost"]
        strangers = [card for card in self.cards if self.state.is_stranger(card)]
        silent = [card for card in self.cards if card.state not in ("ok", "lost", "hung") and card not in strangers]
        answered = count if count is not None else sum(card.state == "ok" for card in self.cards)
        values: dict = {"evidence": self._evidence(), "expected": declared}
        # What the kernel said of a lost card when it went is the first thing that anybody asks for.
        for card in lost:
            values["evidence"] += conditions.kernel_evidence(self, card)
        blocker = "device.driver" if self.state.driver_blocks else "device.query"
        if self.state.strange:
            blocker = "device.model"
        if declared and there is not None and there > declared and not self.state.strange:
            # Each card of another vendor is told by device.model; those that they make too many are not told again.
            excess = min(len(strangers), there - declared)
            there -= excess
            answered -= min(excess, sum(card.state == "ok" for card in strangers))
        # Without the bus nobody knows whom to ask: that none was asked is not that none answers.
        told = None if count is None and bus is None else answered

        if lost:
            values["expected"] = declared or there
            some = self.say["some"] if told is None else told
            self.add("device.count.lost", observed=told, answered=some, cards=self._names(lost), **values)
        elif bus is None and (count or 0) <= (declared or count or 0):
            answer = self.say["answer"].format(told, declared) if declared and told is not None else ""
            self.add("device.count.bus_unreadable", observed=told, answer=answer, **values)
        elif bus is not None and bus < (count or 0):
            self.add("device.count.bus_short", observed=bus, answered=count, **values)
        elif declared and there is not None and bus is not None and there < declared:
            # What isn't even on the bus is missing whatever the tool says.
            self.add("device.count.missing", observed=there, **values)
        elif self.state.query != "ok" or self.state.driver_blocks:
            self.add("device.count.blocked", blocked_by=blocker, **values)
        elif declared is None:
            self.add("device.count.undeclared", observed=there, declared=repr(raw), **values)
        elif there is not None and there > declared:
            self.add("device.count.surplus", observed=there, **values)
        elif silent or answered < declared:
            self.add("device.count.not_reported", observed=answered, cards=self._names(silent) or "?", **values)
        else:
            self.add("device.count.ok", observed=answered, **values)

    # -- one card

    def _blocked(self, check: str, card: _Card, blocker: str) -> None:
        self.add(f"{check}.blocked", card, blocked_by=blocker)

    def _model(self, card: _Card, blocker: str | None) -> None:
        declared = self.declared.get("cluster_accelerator_models")
        declared = [declared] if isinstance(declared, str) and declared else declared
        seen = card.device.get("model")
        seen = " ".join(seen.split()) if isinstance(seen, str) else None
        if not declared_vendor(self.declared)[1]:
            name = "cluster_accelerator_vendor"
            known = self.say["comma"].join(_vendors(self.declared))
            detail = self.say["no_vendor"].format(name, self.declared.get(name), known)
            self.add("device.model.unknown", card, observed=seen, detail=detail)
        elif self.state.is_stranger(card):
            values: dict = {"expected": self.state.vendor, "observed": card.vendor}
            self.add("device.model.other_vendor", card, evidence=self._evidence(), **values)
        elif self.state.vendor and not card.vendor and not blocker:
            values = {"expected": self.state.vendor, "detail": self.say["not_told"]}
            self.add("device.model.unknown", card, evidence=self._evidence(), **values)
        elif not declared and declared in (None, "", [], ()):
            self.add("device.model.undeclared", card, observed=seen)
        elif blocker:
            self._blocked("device.model", card, blocker)
        elif not isinstance(declared, (list, tuple)) or not all(isinstance(name, str) for name in declared):
            detail = self.say["no_list"].format("cluster_accelerator_models", declared)
            self.add("device.model.unknown", card, observed=seen, detail=detail)
        elif not seen:
            evidence = self._evidence()
            self.add("device.model.unknown", card, expected=declared, evidence=evidence, detail=self.say["not_told"])
        elif seen.lower() in [" ".join(name.lower().split()) for name in declared]:
            self.add("device.model.ok", card, expected=list(declared), observed=seen)
        else:
            values = {"expected": list(declared), "names": self.say["comma"].join(declared)}
            self.add("device.model.other", card, observed=seen, evidence=self._evidence(), **values)

    def _of_product(self, card: _Card, name: str) -> tuple[float | None, bool]:
        """Return a number that is declared of the product, as ``_number``; it holds for no other vendor's card."""
        return (None, True) if self.state.is_stranger(card) else _number(self.declared, name)

    def _memory(self, card: _Card, blocker: str | None) -> None:
        declared, usable = self._of_product(card, "cluster_accelerator_memory_gib")
        tolerance, tolerable = _number(self.declared, "cluster_tolerance_memory_percent")
        if "cluster_tolerance_memory_percent" not in self.declared:
            tolerance = 10.0
        seen = _finite(card.device.get("memory_bytes"))
        gib = round(seen / GIB, 2) if seen and seen > 0 else None
        if usable and declared is None:
            self.add("device.memory.undeclared", card, observed=gib)
        elif blocker:
            self._blocked("device.memory", card, blocker)
        elif declared is None or not tolerable:
            name = "cluster_tolerance_memory_percent" if usable else "cluster_accelerator_memory_gib"
            detail = self.say["no_number"].format(name, self.declared.get(name))
            self.add("device.memory.unknown", card, observed=gib, detail=detail)
        elif gib is None or seen is None:
            evidence = self._evidence()
            self.add("device.memory.unknown", card, expected=declared, evidence=evidence, detail=self.say["not_told"])
        elif seen < declared * GIB * (1 - (tolerance or 0) / 100) and conditions.is_failed(
            self, card, conditions.PARTITION
        ):
            # What is there is split: it is the memory of a part.
            self._blocked("device.memory", card, conditions.PARTITION)
        elif seen < declared * GIB * (1 - (tolerance or 0) / 100):
            evidence = self._evidence()
            values = {"expected": declared, "observed": gib, "percent": tolerance or 0.0}
            self.add("device.memory.small", card, evidence=evidence, **values)
        else:
            self.add("device.memory.ok", card, expected=declared, observed=gib)

    def _link_evidence(self, card: _Card) -> list[dict]:
        if not card.address:
            return []
        link = card.link
        numbers = (
            f"width {link.get('width')} of {link.get('max_width')}, "
            f"speed {link.get('speed_gts')} of {link.get('max_speed_gts')} GT/s"
        )
        return [{"command": f"/sys/bus/pci/devices/{card.address}/", "excerpt": numbers}]

    def _link_width(self, card: _Card, blocker: str | None) -> None:
        link, name = card.link, "cluster_accelerator_link_width"
        width, best = to_int(link.get("width")), to_int(link.get("max_width"))
        declared, usable = self._of_product(card, name)
        hop = link.get("limited_by")
        values: dict = {
            "evidence": self._link_evidence(card),
            "hop": self.say["hop"].format(hop) if hop else "",
        }
        if not _true(self.declared.get("cluster_link_width_judged"), default=True):
            self.add("device.link_width.disabled", card, observed=width)
        elif card.state == "lost":
            self._blocked("device.link_width", card, "device.count")
        elif width is None or best is None or width <= 0 or best <= 0:
            if blocker:
                self._blocked("device.link_width", card, blocker)
            else:
                detail = self.say["no_link"]
                self.add("device.link_width.unknown", card, expected=best, observed=width, detail=detail, **values)
        elif width < best:
            self.add("device.link_width.narrow", card, expected=best, observed=width, **values)
        elif not usable:
            detail = self.say["no_number"].format(name, self.declared.get(name))
            self.add("device.link_width.unknown", card, observed=width, detail=detail, **values)
        elif declared is not None and best < declared:
            self.add("device.link_width.below_declared", card, expected=int(declared), observed=best, **values)
        else:
            self.add("device.link_width.ok", card, expected=best, observed=width)

    def _link_speed(self, card: _Card, blocker: str | None) -> None:
        # A driver that does not work leaves sysfs readable; a card that hangs or is gone does not.
        if blocker and blocker != "device.driver":
            self._blocked("device.link_speed", card, blocker)
            return
        link, name = card.link, "cluster_accelerator_link_speed_gts"
        speed, best = _finite(link.get("speed_gts")), _finite(link.get("max_speed_gts"))
        width, widest = to_int(link.get("width")), to_int(link.get("max_width"))
        declared, usable = self._of_product(card, name)
        hop = link.get("limited_by")
        reading = self._reading(card)
        values: dict = {"expected": best, "evidence": self._link_evidence(card)}
        if best is None or best <= 0:
            self.add("device.link_speed.unknown", card, observed=speed, detail=self.say["no_speed"], **values)
        elif not usable:
            detail = self.say["no_number"].format(name, self.declared.get(name))
            self.add("device.link_speed.unknown", card, observed=speed, detail=detail, **values)
        elif declared is not None and best < declared:
            values["expected"] = declared
            self.add("device.link_speed.below_declared", card, observed=best, **values)
        elif hop and not (width and widest and width < widest):
            # With lanes missing the bridge is named by device.link_width already.
            self.add("device.link_speed.limited", card, observed=speed, hop=hop, **values)
        elif link.get("unread_hop"):
            detail = self.say["unread_hop"].format(link["unread_hop"])
            self.add("device.link_speed.unknown", card, observed=speed, detail=detail, **values)
        elif speed is not None and speed >= best:
            self.add("device.link_speed.ok", card, observed=speed, **values)
        elif speed is not None and link.get("under_load") is True:
            self.add("device.link_speed.slow", card, observed=speed, **values)
        elif reading is not None:
            values["evidence"] = [*values["evidence"], {"command": "links.json", "excerpt": str(reading)}]
            cause = "ok" if reading["speed_gts"] >= best else "slow"
            self.add(f"device.link_speed.{cause}", card, observed=reading["speed_gts"], **values)
        elif speed is None:
            self.add("device.link_speed.unknown", card, detail=self.say["no_speed"], **values)
        else:
            self.add("device.link_speed.no_reading", card, observed=speed, **values)

    def _reading(self, card: _Card) -> dict | None:
        """Return the reading under load of this very card, when it is young enough to count."""
        reading = dict_of(self.readings.get(card.address))
        hours = _finite(self.declared.get("cluster_link_reading_max_age_hours", 168))
        taken, speed = parse_time(reading.get("at")), _finite(reading.get("speed_gts"))
        if taken is None or speed is None or hours is None:
            return None
        # A reading belongs to a card, not to its address; an unanswered card can't be told apart.
        known = [card.device.get(key) for key in ("uuid", "serial") if card.device.get(key)]
        if reading.get("identity") and known and reading["identity"] not in known:
            return None
        age = self.now - taken
        if age < -_CLOCK_SLACK or age.total_seconds() > hours * 3600:
            return None
        return {"speed_gts": speed, "width": reading.get("width"), "at": reading.get("at")}


# ---------------------------------------------------------------------------------------------- cards and slots

# What a comparison of slots says of a slot, the strongest first.
_SLOT_CAUSES = ("swapped", "replaced", "moved", "new", "missing", "changed")


def judge_slots(
    baselines: Mapping[str, dict | None],
    records: Mapping[str, dict | None],
    observations: Mapping[str, object],
    declared: Mapping[str, dict] | None = None,
    errors: Mapping[str, str] | None = None,
    now: str | None = None,
    language: str = "en",
) -> list[dict]:
    """Judge the cards of all hosts against the accepted baselines, together, so that a card that changed hosts moved.

    ``baselines`` may hold more hosts than were observed; ``errors`` says of a host why its baseline can't be
    used. ``records`` are slot records; a host without one gets it made from its observation. Judged are the
    hosts that have an observation: one finding a slot, or one for the host where there is nothing to
    compare with. Slots of cards that did not answer are unknown, blocked by the check that says why.
    """
    declared, errors = declared or {}, errors or {}
    moment = _stamp(parse_time(now) or datetime.now(timezone.utc))
    found: list[dict] = []
    usable: dict[str, dict | None] = {}
    for host, baseline in baselines.items():
        usable[host] = baseline if baseline and not slots.problems(baseline) else None
    compared: dict[str, dict | None] = {}
    everywhere = answering(observations)
    looked_at = {host: placed(observation, usable.get(host), everywhere) for host, observation in observations.items()}
    for host in sorted(looked_at, key=natural):
        observation = looked_at[host]
        about = dict_of(declared.get(host))
        if not cards_of(observation) and has_no_accelerators(about) and not usable.get(host):
            continue
        common: dict = {"now": moment, "language": language}
        if host in errors or (baselines.get(host) and not usable.get(host)):
            detail = errors.get(host) or "; ".join(text for dummy, text in slots.problems(dict_of(baselines[host])))
            common.update(evidence=[{"command": "", "excerpt": excerpt(detail)}], detail=detail)
            found.append(finding("device.slot.unknown", host, **common))
            continue
        wrong_map = next((error for error in _errors_of(observation) if error.startswith(SLOT_MAP_ERROR)), None)
        if wrong_map:
            # No slot was named, so that the names which are there are those of the baseline: held against itself.
            common.update(evidence=[{"command": "cluster_accelerator_slots", "excerpt": excerpt(wrong_map)}])
            found.append(finding("device.slot.unknown", host, detail=wrong_map, **common))
            continue
        if not cards_of(observation) and _whole(observation.get("bus_count")) is None:
            # Nobody looked at the bus: no slot is empty for that.
            found.append(finding("device.slot.unknown", host, detail=words(language)["no_bus"], **common))
            continue
        try:
            record = records.get(host) or slots.build_record(
                observation, host, moment, without(usable.get(host), observation, everywhere)
            )
            wrong = slots.problems(record)
        except (ValueError, TypeError, AttributeError, KeyError) as exc:
            wrong = [((), str(exc))]
        if wrong:
            detail = "; ".join(text for dummy, text in wrong)
            common.update(evidence=[{"command": "", "excerpt": excerpt(detail)}], detail=detail)
            found.append(finding("device.slot.unknown", host, **common))
            continue
        compared[host] = record
        if not usable.get(host):
            found.append(finding("device.slot.no_baseline", host, detail=words(language)["none"], **common))
    differences = slots.compare_cluster(usable, compared)
    for host, seen in compared.items():
        accepted = usable.get(host)
        if accepted and seen:
            judge = _SlotJudge(host, accepted, seen, differences[host], moment, language)
            state = state_of(looked_at[host], dict_of(declared.get(host)))
            cards = cards_of(looked_at[host], language)
            if state.bus_count is None:
                cards += _unseen(differences[host])
            found += judge.findings(cards, state)
    return found


def _unseen(differences: dict) -> list[_Card]:
    """Return the accepted cards that do not answer where nobody could look at the bus: silent, not taken out."""
    missed = [event for event in differences["missing"] if event["reason"] in (slots.GONE, slots.NOT_SEEN)]
    labels = dict.fromkeys(event["from_slot"] for event in missed if event["from_slot"] is not None)
    return [_Card(address=None, label=label, state="not_reported") for label in labels]


class _SlotJudge:
    """Judges the slots of one host from what the comparison of all hosts found."""

    def __init__(self, host: str, baseline: dict, record: dict, differences: dict, now: str, language: str) -> None:
        self.host = host
        self.language = language
        self.now = now
        self.say = words(language)
        self.accepted = _entries(baseline)
        self.present = _entries(record)
        self.unplaced = [card for card in record["unplaced"] if card.get("present") is not False]
        self.events: dict[str, dict[str, dict]] = {}
        self.came: dict[str, set[str]] = {}
        # A board has several chips, of which each may have changed otherwise.
        self.changed: dict[str, list[dict]] = {}
        for event in differences.get("changed") or []:
            self.changed.setdefault(event["to_slot"], []).append(event)
        # What came into a slot says more of it than what left it.
        for side in ("to", "from"):
            for kind in _SLOT_CAUSES:
                for event in differences.get(kind) or []:
                    if event[f"{side}_host"] == host and event[f"{side}_slot"] is not None:
                        self.events.setdefault(event[f"{side}_slot"], {}).setdefault(kind, event)
                        if kind == "swapped" or (side == "to" and kind != "changed"):
                            self.came.setdefault(event[f"{side}_slot"], set()).add(kind)

    def findings(self, cards: list[_Card], state: HostState) -> list[dict]:
        blocked: dict[str, str] = {}
        nowhere: list[tuple[_Card, str]] = []
        for card in cards:
            blocker = state.blocker(card)
            if blocker is None:
                continue
            label = card.label or self._slot_at(card.address)
            if label:
                blocked[label] = blocker
            else:
                nowhere.append((card, blocker))
        labels = {*self.accepted, *self.present, *self.events, *blocked}
        found = [self._slot(label, blocked.get(label)) for label in sorted(labels, key=natural)]
        for card, blocker in nowhere:
            values = {"silent": card.name, "home": self.say["no_home"], "blocked_by": blocker}
            found.append(self._finding("device.slot.blocked", card.subject, **values))
        for entry in self.unplaced:
            found.append(self._unplaced(entry))
        return found

    def _finding(self, cause: str, subject: str, **values) -> dict:
        return finding(cause, self.host, subject, self.language, self.now, **values)

    def _slot_at(self, address: str | None) -> str | None:
        """Return the accepted slot of an address: where a card sat that does not tell its slot any more."""
        for label, entries in self.accepted.items():
            if address and any(entry.get("pci_address") == address for entry in entries):
                return label
        return None

    def _slot(self, label: str, blocker: str | None) -> dict:
        events = self.events.get(label, {})
        accepted, present = self.accepted.get(label, []), self.present.get(label, [])
        changed = self.changed.get(label, [])
        told = [(kind, event) for kind, event in events.items() if kind != "changed"]
        told += [("changed", event) for event in changed]
        values: dict = {
            "slot": label,
            "expected": _identities(accepted),
            "observed": _identities(present),
            "accepted": self._names(accepted),
            "card": self._names(present),
            "evidence": [{"command": kind, "excerpt": slots.describe(kind, event)} for kind, event in told],
        }
        kind = next((one for one in _SLOT_CAUSES if one in self.came.get(label, events)), None)
        silent = kind == "missing" and events["missing"]["reason"] != slots.GONE
        if blocker and kind in (None, "missing", "changed"):
            values.update(silent=self.say["in_slot"].format(label), home=self.say["home"].format(values["accepted"]))
            return self._finding("device.slot.blocked", label, blocked_by=blocker, **values)
        if silent:
            # A card is there, it just does not say which one; neither the accepted one nor another is proven.
            return self._finding("device.slot.unknown", label, detail=self.say["anonymous"], **values)
        if kind in (None, "changed") and len(present) < len(accepted):
            # Its card is not gone, it has lost its place: whether it sits here is not proven.
            detail = self.say["nowhere"].format(self._names([card for card in accepted if card not in present]))
            return self._finding("device.slot.unknown", label, detail=detail, **values)
        if kind in (None, "changed"):
            return self._same_cards(label, changed, values)
        event = events[kind]
        # A card that came or went does not hide the one that was here and is nowhere now.
        missed = events.get("missing") if kind != "missing" else None
        values["missed"] = self.say["not_found"].format(self._board(missed["old"])) if missed else ""
        if kind == "moved":
            values["card"] = self._board(event["new"])
        if kind == "swapped":
            here_first = (event["from_host"], event["from_slot"]) == (self.host, label)
            other = "to" if here_first else "from"
            values["origin"] = self._place(event[f"{other}_host"], event[f"{other}_slot"])
            values["card"] = self._board(event["new" if here_first else "old"])
        else:
            values["origin"] = self._place(event["from_host"], event["from_slot"])
            values["place"] = self._place(event["to_host"], event["to_slot"])
        if kind == "new" and event["reason"] == "duplicate":
            kind = "duplicate"
        return self._finding(f"device.slot.{kind}", label, **values)

    def _same_cards(self, label: str, changed: list[dict], values: dict) -> dict:
        """Judge a slot that holds its cards by their identity: what else they tell must not contradict it.

        A serial that was not told before, or is not told now, contradicts nothing.
        """
        serials, firmware = (
            [(one["old"][key], one["new"][key]) for one in changed if key in one["fields"] and one["old"][key]]
            for key in ("serial", "firmware_version")
        )
        if not serials and not firmware:
            return self._finding("device.slot.ok", label, **values)
        cause = "serial_differs" if serials else "firmware_changed"
        old, new = (list(dict.fromkeys(told)) for told in zip(*(serials or firmware)))
        values.update(expected=self.say["comma"].join(old), observed=self.say["comma"].join(new))
        homes = {card["serial"]: other for other, here in self.accepted.items() for card in here if other != label}
        values["elsewhere"] = "".join(
            self.say["elsewhere"].format(one, self.say["slot"].format(homes[one])) for one in new if one in homes
        )
        return self._finding(f"device.slot.{cause}", label, **values)

    def _unplaced(self, entry: dict) -> dict:
        address = entry.get("pci_address")
        labels = [f"{one.get('label')} ({one.get('source')})" for one in entry.get("candidates") or []]
        # By its place it can't be found: nobody knows where that is. An address may be another after the next boot.
        known = entry.get("serial") or entry.get("uuid")
        name = self._name(entry.get("serial"), entry.get("uuid"), address)
        if address:
            name = self.say["at_place"].format(name, address) if known else self.say["the_card"].format(address)
        told = self.say["candidates"].format(self.say["comma"].join(labels)) if labels else ""
        subject = address or entry.get("uuid") or entry.get("serial") or self.host
        return self._finding("device.slot.unplaced", subject, card=name, candidates=told, observed=labels or None)

    def _place(self, host: str | None, slot: str | None) -> str:
        if slot is None:
            return self.say["no_place"].format(host)
        return self.say["slot"].format(slot) if host == self.host else self.say["place"].format(host, slot)

    def _names(self, entries: list[dict]) -> str:
        names = dict.fromkeys(self._name(one.get("serial"), one.get("uuid"), one.get("pci_address")) for one in entries)
        return self.say["comma"].join(names) or self.say["empty"]

    def _board(self, board: dict) -> str:
        uuid = self.say["comma"].join(board.get("uuids") or [])
        return self._name(board.get("serial"), uuid, self.say["comma"].join(board.get("pci_addresses") or []))

    def _name(self, serial: object, uuid: object, address: object) -> str:
        if serial:
            return self.say["serial"].format(serial)
        return self.say["uuid"].format(uuid) if uuid else self.say["at"].format(address or "?")


def _entries(record: dict) -> dict[str, list[dict]]:
    """Return the cards of each slot that are there; a slot that only remembers a card has none."""
    there = {
        label: [card for card in cards if card.get("present") is not False] for label, cards in record["slots"].items()
    }
    return {label: cards for label, cards in there.items() if cards}


def _identities(entries: list[dict]) -> object:
    """Return what identifies the cards of a slot: one text, or a list for a board with several serials."""
    names = [one.get("serial") or one.get("uuid") or one.get("pci_address") for one in entries]
    distinct = list(dict.fromkeys(name for name in names if name))
    return distinct[0] if len(distinct) == 1 else distinct or None


# ---------------------------------------------------------------------------------------------- driver versions


def driver_versions(observation: object, declared: dict) -> list[str]:
    """Return the driver versions that a host shows; the kernel's word counts before that of the tools.

    Those of another vendor than the declared one say nothing of its driver.
    """
    state = state_of(observation, declared)
    if state.strange:
        return []
    kernel = {str(one["kernel_version"]) for one in state.drivers if one.get("kernel_version")}
    own = [card.device for card in cards_of(observation) if not state.is_stranger(card)]
    told = {str(device["driver_version"]) for device in own if device.get("driver_version")}
    versions = kernel or told
    # A short form beside the long one that it begins is no second version.
    return sorted((one for one in versions if not _longer(one, versions)), key=natural)


def _odd_libraries(observation: object, declared: dict) -> list[str]:
    """Return the versions of libraries that are not of the release of the kernel module of their vendor.

    Of a mismatch that keeps the tool from answering ``device.driver`` speaks.
    """
    state = state_of(observation, declared)
    if state.strange or state.driver == "library_mismatch":
        return []
    pairs = [(one.get("kernel_version"), one.get("library_version")) for one in state.drivers]
    return sorted({str(two) for one, two in pairs if one and two and not same_version(str(one), str(two))}, key=natural)


def _longer(version: str, versions: Iterable[str]) -> list[str]:
    """Return the longer ones that a version is a short form of."""
    return [one for one in versions if len(one) > len(version) and same_version(one, version)]


def judge_declared_driver_version(
    host: str, observation: object, declared: dict, now: str | None = None, language: str = "en"
) -> list[dict]:
    """Judge the driver version of one host that knows no other: by the declared version, or not at all."""
    if not str(declared.get("cluster_driver_version") or "").strip():
        return []
    about = {"node_type": declared.get("cluster_node_type"), "declared": declared, "observation": observation}
    return judge_driver_versions({host: about}, now, language)


def judge_driver_versions(hosts: Mapping[str, dict], now: str | None = None, language: str = "en") -> list[dict]:
    """Judge that the nodes of a type run one driver version: the declared one, else that of most of them.

    ``hosts`` is ``{host: {"node_type", "declared", "observation", "error"}}``; ``error`` says why the declared
    values of a host can't be used. The rule is that of ``versions.odd`` (``text.majority``): where no version is that
    of more than half of those that tell theirs, or half of the nodes tell nothing, nobody is the odd one, and nobody
    passes. Hosts without an observation are left to ``host.reachable``.

    A short form is one version with the long one that it begins (``text.same_version``). Nodes that fit a declared
    short form, but differ from each other, are held against what most of these run. A node that tells a short form of
    several that the type runs is unknown, and one whose library is of another release than its kernel module differs.
    """
    say = words(language)
    moment = _stamp(parse_time(now) or datetime.now(timezone.utc))
    types: dict[str, _Nodes] = {}
    seen: dict[str, tuple[str, list[str], list[str]]] = {}
    for host, about in hosts.items():
        declared, observation = dict_of(about.get("declared")), about.get("observation")
        if observation is None:
            continue
        if has_no_accelerators(declared) and not about.get("error"):
            seen[host] = ("", [], [])
            continue
        kind = str(about.get("node_type") or declared.get("cluster_accelerator_vendor") or "?")
        nodes = types.setdefault(kind, _Nodes())
        # Of what type one is whose variables can't be used, nobody knows for sure.
        nodes.count += not about.get("error")
        versions = driver_versions(observation, declared)
        seen[host] = (kind, versions, _odd_libraries(observation, declared) if versions else [])
        if len(versions) == 1 and not about.get("error"):
            nodes.told.append(versions[0])
    found = []
    for host in sorted(seen, key=natural):
        kind, versions, libraries = seen[host]
        about = hosts[host]
        declared = dict_of(about.get("declared"))
        wanted = str(declared.get("cluster_driver_version") or "").strip()
        observed = say["comma"].join([*versions, *libraries])
        common: dict = {"now": moment, "language": language}
        if about.get("error"):
            detail = str(about["error"])
            common.update(
                evidence=[{"command": "", "excerpt": excerpt(detail)}], observed=observed or None, detail=detail
            )
            found.append(finding("device.driver_version.unknown", host, **common))
            continue
        if not kind:
            found.append(finding("device.driver_version.not_applicable", host, **common))
            continue
        if not versions:
            state = state_of(about["observation"], declared)
            blocker = "device.driver" if state.driver_blocks else "device.query" if state.query != "ok" else None
            blocker = "device.model" if state.strange else blocker
            cause = "blocked" if blocker else "unknown"
            common.update(expected=wanted or None, detail=say["not_told"], blocked_by=blocker)
            found.append(finding(f"device.driver_version.{cause}", host, **common))
            continue
        common["observed"] = observed
        common["evidence"] = [{"command": "driver versions", "excerpt": ", ".join([*versions, *libraries])}]
        if len(versions) > 1 or libraries:
            reason = say["several"] if len(versions) > 1 else say["module_and_library"]
            common.update(expected=wanted or say["one"], reason=reason)
            found.append(finding("device.driver_version.differs", host, **common))
            continue
        found.append(finding(host=host, **_held_against(versions[0], wanted, kind, types[kind], say), **common))
    return found


@dataclass
class _Nodes:
    """The nodes of a type: how many there are, and the version of each that told one."""

    count: int = 0
    told: list[str] = field(default_factory=list)


def _held_against(version: str, wanted: str, kind: str, nodes: _Nodes, say: dict) -> dict:
    """Return cause and words of a node that told one version: by the declared one, else by what most nodes run."""
    fits = not wanted or same_version(version, wanted)
    told = {"expected": wanted or None}
    if not fits:
        return {"cause": "device.driver_version.differs", "reason": say["as_declared"], **told}
    releases = {one: nodes.told.count(one) for one in nodes.told if not _longer(one, nodes.told)}
    forms = [release for release in releases if same_version(release, version)]
    if len(forms) > 1:
        detail = say["short_form"].format(version, say["comma"].join(sorted(forms, key=natural)))
        return {"cause": "device.driver_version.unknown", "detail": detail, **told}
    having = [one for one in nodes.told if not wanted or same_version(one, wanted)]
    if wanted and one_release(having):
        return {"cause": "device.driver_version.ok", "reason": say["as_declared"], **told}
    detail = None
    if not wanted and 2 * len(having) <= nodes.count:
        detail = say["few"].format(kind, len(having), nodes.count)
    agreed, most = majority(having)
    if not agreed and detail is None:
        order = sorted(set(having).intersection(releases), key=lambda one: (-releases[one], natural(one)))
        detail = say["no_majority"].format(kind, say["comma"].join(f"{one} x{releases[one]}" for one in order))
    if detail is not None:
        return {"cause": "device.driver_version.no_majority", "detail": detail, **told}
    alike = len([one for one in having if equal_or_same(one, most)])
    cause = "ok" if same_version(version, most) else "differs"
    reason = say["most"].format(kind, alike, len(having) if wanted else nodes.count)
    return {"cause": f"device.driver_version.{cause}", "expected": most, "reason": reason}
