# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pictures of one verify run: ``report.html`` for people, ``junit.xml`` for CI systems.

Both take the run as ``findings.json`` keeps it (docs/data.md) and judge nothing: they count, sort, fold and cut.
What tools printed is hostile text. It is shown as text, with control characters made visible, and cut when long.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime

from ansible_collections.accel.cluster.plugins.module_utils._accel import hints, judge
from ansible_collections.accel.cluster.plugins.module_utils._accel.model import (
    FAIL,
    LAYERS,
    NOT_APPLICABLE,
    PASS,
    UNKNOWN,
    WARNING,
)
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

# What a reader has to tell apart, worst first. A fail or an unknown of severity warning doesn't fail the run,
# so it is a state of its own; the five states are disjoint and add up to all findings.
STATES = (FAIL, UNKNOWN, WARNING, PASS, NOT_APPLICABLE)
OPEN = (FAIL, UNKNOWN, WARNING)

# One sign a state, so that the map can be read without colour. All are in every common font, none is an emoji.
SIGNS = {FAIL: "×", UNKNOWN: "?", WARNING: "!", PASS: "✓", NOT_APPLICABLE: "–"}

# Characters of one excerpt, one message, one value; and of all excerpts of a page, which keeps a run of hundreds
# of sick hosts small enough to open and to mail. findings.json has what is left out here.
EXCERPT_LIMIT = 4000
JUNIT_EXCERPT_LIMIT = 1000
TEXT_LIMIT = 2000
VALUE_LIMIT = 400
HEAD_LIMIT = 300
NAME_LIMIT = 80
PAGE_EVIDENCE_LIMIT = 1_500_000

# Findings of one cause that are shown before the rest is folded.
GROUP_SHOWN = 6
# Fields in which findings say the same to a reader, apart from the card they name.
SAME = ("host", "expected", "observed", "hint_text", "blocked_by")
# Hosts beyond which the cells of the map are signs only, with their names in the title.
DENSE_HOSTS = 48
# First causes that the head of the page names.
HEAD_SHOWN = 3
# Distinct observed values of a passed check that get a row of their own.
VALUES_SHOWN = 4

# Every word of the page. "one|many": the form is chosen by ``n``.
TEXT: dict[str, dict[str, str]] = {
    "en": {
        "lang": "en",
        "key": "en",
        "product": "Acceptance report",
        "pass": "Pass",
        "fail": "Fail",
        "unknown": "Unknown",
        "warning": "Warning",
        "not_applicable": "Not applicable",
        "why_nothing": "Nothing was checked.",
        "why_fail": "{n} of {checks} failed on {bad} of {hosts}.",
        "why_unknown": "{n} of {checks} could not be judged on {bad} of {hosts}; no critical check failed.",
        "why_pass": "The only check passed on {hosts}.|All {checks} passed on {hosts}.",
        "why_pass_warnings": "No critical check failed: {good} of {checks} passed on {hosts}, {n} warning.|"
        "No critical check failed: {good} of {checks} passed on {hosts}, {n} warnings.",
        "why_layers": "Nothing was judged in: {layers}.",
        "why_other": "The verdict was given for a reason that no single finding shows.",
        "count_fail": "failed",
        "count_unknown": "could not be judged",
        "count_warning": "warning|warnings",
        "count_pass": "passed",
        "count_not_applicable": "not applicable",
        "run": "Run",
        "started": "Started",
        "took": "Took",
        "hosts": "Hosts",
        "cards": "Cards",
        "n_checks": "{n} check|{n} checks",
        "n_hosts": "{n} host|{n} hosts",
        "n_cards": "{n} card|{n} cards",
        "n_findings": "{n} finding|{n} findings",
        "n_folded": "{n} of them is folded under its cause.|{n} of them are folded under their cause.",
        "n_values": "{n} different values",
        "minutes": "{m} min {s} s",
        "seconds": "{s} s",
        "layers": "Layers",
        "layer_device": "Device",
        "layer_network": "Network",
        "layer_storage": "Storage",
        "layer_application": "Application",
        "layer_monitoring": "Monitoring",
        "not_verified": "Not verified",
        "map": "Hosts and cards",
        "map_help": "A cell is a card in its slot, coloured by its worst check. Choose one to see its findings.",
        "map_empty": "The run had no hosts.",
        "legend": "Legend",
        "other_type": "Other hosts",
        "no_answer": "no answer",
        "no_cards": "no cards",
        "findings": "Findings",
        "section_fail": "Failed",
        "section_unknown": "Could not be judged",
        "section_warning": "Warnings",
        "section_pass": "Passed",
        "section_not_applicable": "Not applicable",
        "none_bad": "Nothing failed, nothing is unknown.",
        "none_shown": "No finding matches the filter.",
        "expected": "Expected",
        "observed": "Observed",
        "what_to_do": "What to do",
        "evidence": "Evidence",
        "exit_code": "exit code {n}",
        "no_exit_code": "did not end",
        "cut": "[… {n} characters left out here, findings.json has more …]",
        "left_out": "[left out to keep this page small, see findings.json]",
        "consequences": "{n} check could not be judged because of this|{n} checks could not be judged because of this",
        "blocked_by": "Not judged because this check did not pass:",
        "more": "{n} more",
        "each_card": "Each of these cards",
        "check": "Check",
        "times": "Times",
        "reason": "Reason",
        "filter": "Filter",
        "host": "Host",
        "filter_text": "Text",
        "filter_all": "All",
        "filter_state": "Verdict",
        "filter_reset": "Reset",
        "filter_shown": "{n} of {total} shown",
        "filter_card": "Only {name}, show all cards",
        "link": "Link to this finding",
        "copied": "Link copied",
        "skip": "Skip to the findings",
        "files": "All findings with their evidence",
        "time_zone": "Times are UTC",
    },
    "zh": {
        "lang": "zh-CN",
        "key": "zh",
        "product": "验收报告",
        "pass": "通过",
        "fail": "不通过",
        "unknown": "无法判定",
        "warning": "警告",
        "not_applicable": "不适用",
        "why_nothing": "没有执行任何检查。",
        "why_fail": "{checks}中有 {n} 项不通过，涉及 {hosts}中的 {bad} 台。",
        "why_unknown": "{checks}中有 {n} 项无法判定，涉及 {hosts}中的 {bad} 台；没有关键检查不通过。",
        "why_pass": "{hosts}上的 {checks}全部通过。",
        "why_pass_warnings": "没有关键检查不通过：{hosts}上的 {checks}中 {good} 项通过，{n} 项警告。",
        "why_layers": "以下层次没有任何判定：{layers}。",
        "why_other": "该结论不是由某一条检查结果单独得出的。",
        "count_fail": "项不通过",
        "count_unknown": "项无法判定",
        "count_warning": "项警告",
        "count_pass": "项通过",
        "count_not_applicable": "项不适用",
        "run": "运行编号",
        "started": "开始时间",
        "took": "用时",
        "hosts": "主机",
        "cards": "加速卡",
        "n_checks": "{n} 项检查",
        "n_hosts": "{n} 台主机",
        "n_cards": "{n} 张卡",
        "n_findings": "{n} 条结果",
        "n_folded": "其中 {n} 条折叠在其原因之下。",
        "n_values": "{n} 个不同的值",
        "minutes": "{m} 分 {s} 秒",
        "seconds": "{s} 秒",
        "layers": "层次",
        "layer_device": "设备",
        "layer_network": "网络",
        "layer_storage": "存储",
        "layer_application": "应用",
        "layer_monitoring": "监控",
        "not_verified": "未验证",
        "map": "主机与加速卡",
        "map_help": "每个格子是一个槽位上的一张卡，颜色取其最差的检查结果。点选格子可查看该卡的检查结果。",
        "map_empty": "本次运行没有主机。",
        "legend": "图例",
        "other_type": "其他主机",
        "no_answer": "无应答",
        "no_cards": "无加速卡",
        "findings": "检查结果",
        "section_fail": "不通过",
        "section_unknown": "无法判定",
        "section_warning": "警告",
        "section_pass": "通过",
        "section_not_applicable": "不适用",
        "none_bad": "没有不通过或无法判定的检查。",
        "none_shown": "没有符合筛选条件的结果。",
        "expected": "期望",
        "observed": "实测",
        "what_to_do": "处理方法",
        "evidence": "证据",
        "exit_code": "退出码 {n}",
        "no_exit_code": "未结束",
        "cut": "[… 此处省略 {n} 个字符，更多内容见 findings.json …]",
        "left_out": "[为控制页面大小而省略，见 findings.json]",
        "consequences": "{n} 项检查因此无法判定",
        "blocked_by": "因下列检查未通过而未判定：",
        "more": "其余 {n} 条",
        "each_card": "这些卡",
        "check": "检查",
        "times": "次数",
        "reason": "原因",
        "filter": "筛选",
        "host": "主机",
        "filter_text": "文字",
        "filter_all": "全部",
        "filter_state": "结论",
        "filter_reset": "重置",
        "filter_shown": "显示 {n} / {total}",
        "filter_card": "只看 {name}，点此显示全部卡",
        "link": "此结果的链接",
        "copied": "链接已复制",
        "skip": "跳到检查结果",
        "files": "全部结果及证据",
        "time_zone": "时间均为 UTC",
    },
}

# Control characters, surrogates, non-characters, and the marks that reorder text: none may reach the page or the
# XML as they are. Tab and newline stay.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)


def visible(text: str) -> str:
    """Return ``text`` with every control and reordering character as a visible sign (ESC as ␛)."""
    return _UNSAFE.sub(_sign_of, text.replace("\r\n", "\n"))


def _sign_of(match: re.Match) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)  # the block "Control Pictures" has them in the same order
    return "␡" if code == 0x7F else f"‹U+{code:04X}›"


def cut(text: str, limit: int, note: str) -> str:
    """Return ``text``, without its middle when longer than ``limit``; ``note`` has ``{n}`` for the characters gone.

    The end is kept too: the line that says why a tool gave up is often its last.
    """
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    return f"{text[:head]}\n{note.format(n=format(len(text) - limit, ','))}\n{text[-tail:]}"


def value_text(value: object) -> str:
    """Return an expected or observed value as a person writes it: 16, not 16.0; a, b, not ["a", "b"]."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list) and value and all(isinstance(item, (str, int, float)) for item in value):
        return ", ".join(value_text(item) for item in value)
    return json.dumps(value, ensure_ascii=False, default=str)


def state_of(finding: dict) -> str:
    """Return the state (one of ``STATES``) of a finding; a verdict nobody knows is unknown."""
    verdict = finding.get("verdict")
    if verdict in (PASS, NOT_APPLICABLE):
        return str(verdict)
    if finding.get("severity") == WARNING:
        return WARNING
    return FAIL if verdict == FAIL else UNKNOWN


def worst(states: Iterable[str]) -> str | None:
    """Return the worst of ``states``, None when there is none."""
    return min(states, key=STATES.index, default=None)


def render(run: dict, template_path: str, language: str) -> str:
    """Return the whole HTML page of ``run`` in ``language`` (en or zh; others get en)."""
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_finalize
    )
    # The page's content policy names its own script and style by hash, so nothing else on it can ever run.
    environment.filters["number"] = lambda number: format(number, ",")
    environment.filters["csp_hash"] = lambda text: (
        "sha256-" + base64.b64encode(hashlib.sha256(str(text).encode()).digest()).decode()
    )
    with open(template_path, encoding="utf-8") as handle:
        template = environment.from_string(handle.read())
    return template.render(_Page(run, language).view())


def _finalize(value: object) -> object:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


class _Page:
    """Turns a run into what the template prints. Nothing here is HTML."""

    def __init__(self, run: dict, language: str) -> None:
        self.run = run
        self.words = TEXT.get(language, TEXT["en"])
        self.findings: list[dict] = list(run.get("findings") or [])
        self.hosts: list[dict] = list(run.get("hosts") or [])
        self.states = [state_of(finding) for finding in self.findings]
        self.open_by_check: dict[tuple, list[int]] = {}
        self.open_by_subject: dict[tuple, list[int]] = {}
        self.by_host: dict[str, dict[str, list[int]]] = {}
        for index, (finding, state) in enumerate(zip(self.findings, self.states)):
            cards = self.by_host.setdefault(_name(finding.get("host")), {})
            for subject in dict.fromkeys([finding.get("subject"), *_cards(finding)]):
                cards.setdefault(_name(subject), []).append(index)
            if state in OPEN:
                self.open_by_check.setdefault((finding.get("host"), finding.get("check")), []).append(index)
                self.open_by_subject.setdefault((finding.get("subject"), finding.get("check")), []).append(index)
        # How messages name a card, by what findings call it.
        self.card_names = {
            (host.get("host"), subject): judge.name_card(
                self.words["key"], *(slot.get(key) for key in ("address", "label", "serial", "uuid"))
            )
            for host in self.hosts
            for slot in host.get("slots") or []
            for subject in (slot.get("label"), slot.get("address"))
            if subject
        }
        self.causes = [self._root(index) for index in range(len(self.findings))]
        self.anchors = self._anchors()
        # Where a cell with nothing wrong leads.
        self.passed = "passed" if PASS in self.states else "findings"
        self.evidence_left = PAGE_EVIDENCE_LIMIT

    def say(self, key: str, **values: object) -> str:
        """Return the words of ``key`` with its values; of "one|many" the form that ``n`` asks for."""
        forms = self.words[key].split("|")
        shown = {name: format(value, ",") if isinstance(value, int) else value for name, value in values.items()}
        return (forms[0] if values.get("n") == 1 else forms[-1]).format(**shown)

    def view(self) -> dict:
        """Return everything the template needs."""
        run = self.run
        verdict = run.get("verdict")
        verdict = verdict if verdict in (PASS, FAIL) else UNKNOWN
        counts = Counter(self.states)
        return {
            "t": self.words,
            "say": self.say,
            "signs": SIGNS,
            "states": STATES,
            "site": _text(run.get("site")),
            "run_id": _text(run.get("run_id")),
            "started": _clock(run.get("started_at")),
            "took": self._took(),
            "verdict": verdict,
            "why": self._why(verdict, counts),
            "head": self._head(verdict),
            "dense": len(self.hosts) > DENSE_HOSTS,
            "counts": [(state, counts[state]) for state in STATES if counts[state]],
            "open_count": sum(counts[state] for state in OPEN),
            "host_count": len(self.hosts),
            "card_count": sum(len(host.get("slots") or []) for host in self.hosts),
            "host_names": [_name(host.get("host")) for host in self.hosts],
            "host_width": min(max([len(_name(host.get("host"))) for host in self.hosts], default=0) + 3, 26),
            "check_ids": sorted({_text(finding.get("check")) for finding in self.findings}),
            "layers": self._layers(),
            "types": self._types(),
            "sections": [self._section(state) for state in OPEN],
            "passed": self._summary(PASS, lambda finding: value_text(finding.get("observed"))),
            "not_applicable": self._summary(NOT_APPLICABLE, lambda finding: _text(finding.get("message"))),
        }

    # -- the head of the page

    def _took(self) -> str:
        start, end = _time(self.run.get("started_at")), _time(self.run.get("finished_at"))
        if start is None or end is None or end < start:
            return ""
        minutes, seconds = divmod(int((end - start).total_seconds()), 60)
        return self.say("minutes", m=minutes, s=seconds) if minutes else self.say("seconds", s=seconds)

    def _why(self, verdict: str, counts: Counter) -> str:
        if not self.findings:
            return self.say("why_nothing")
        total = len(self.findings) - counts[NOT_APPLICABLE]
        words = {"checks": self.say("n_checks", n=total), "hosts": self.say("n_hosts", n=len(self.hosts))}
        if verdict == PASS:
            if total == counts[PASS]:
                return self.say("why_pass", n=total, **words)
            return self.say("why_pass_warnings", n=total - counts[PASS], good=counts[PASS], **words)
        bad = {finding.get("host") for finding, state in zip(self.findings, self.states) if state == verdict}
        if bad:
            return self.say("why_" + verdict, n=counts[verdict], bad=len(bad), **words)
        empty = [layer["name"] for layer in self._layers() if layer["verdict"] and not layer["counts"]]
        return self.say("why_layers", layers=", ".join(empty)) if empty else self.say("why_other")

    def _head(self, verdict: str) -> dict:
        """Return the first causes of a bad verdict: who sees only the top of the page still knows what it is about."""
        roots = [
            index
            for index, state in enumerate(self.states)
            if state == verdict and state != PASS and self.causes[index] is None
        ]
        # What explains the most comes first, as in the findings below.
        explained = Counter(cause for cause in self.causes if cause is not None)
        roots.sort(key=lambda index: -explained[index])
        causes = []
        for index in roots[:HEAD_SHOWN]:
            finding = self.findings[index]
            message = _text(finding.get("message")) or _text(finding.get("title"))
            where = dict.fromkeys(_name(finding.get(key)) for key in ("host", "subject"))
            causes.append(
                {"anchor": self.anchors[index], "where": " ".join(where), "message": cut(message, HEAD_LIMIT, "…")}
            )
        return {"causes": causes, "more": max(len(roots) - HEAD_SHOWN, 0)}

    def _layers(self) -> list[dict]:
        told = {_text(layer.get("layer")): layer for layer in self.run.get("layers") or []}
        counts: dict[str, Counter] = {}
        for finding, state in zip(self.findings, self.states):
            counts.setdefault(_text(finding.get("layer")), Counter())[state] += 1
        rows = []
        # All five are always shown: a pass of one layer must not look like a pass of everything.
        for name in [*LAYERS, *(name for name in told if name not in LAYERS)]:
            count = counts.get(name, Counter())
            # Asked for, and nothing judged: that is unknown, whatever it says.
            verdict = "" if name not in told else _text(told[name].get("verdict")) if count else UNKNOWN
            rows.append(
                {
                    "name": self.words.get("layer_" + name, name),
                    "verdict": verdict if verdict in STATES or not verdict else UNKNOWN,
                    "counts": [(state, count[state]) for state in STATES if count[state]],
                }
            )
        return rows

    # -- the map

    def _types(self) -> list[dict]:
        groups: dict[str, list[dict]] = {}
        for host in self.hosts:
            groups.setdefault(_text(host.get("node_type")), []).append(self._host(host))
        return [
            {
                "name": name or self.words["other_type"],
                "vendor": ", ".join(sorted({host["vendor"] for host in hosts if host["vendor"]})),
                "hosts": hosts,
                "cards": sum(len(host["slots"]) for host in hosts),
            }
            for name, hosts in sorted(groups.items(), key=lambda item: not item[0])  # those without a type last
        ]

    def _host(self, host: dict) -> dict:
        name = _name(host.get("host"))
        slots = list(host.get("slots") or [])
        labels = [_name(slot.get("label") or slot.get("address")) for slot in slots]
        subjects = dict(self.by_host.get(name, {}))
        cards = []
        for slot, label, short in zip(slots, labels, short_labels(labels)):
            # Findings name the slot; those made before the slot was known name the address.
            own = [*subjects.pop(label, []), *subjects.pop(_name(slot.get("address")), [])]
            cards.append(self._card(name, slot, label, short, own))
        # The sign of the host is of all that was found on it; its link leads to what is wrong with the host itself.
        everything = [index for indexes in self.by_host.get(name, {}).values() for index in indexes]
        rest = [index for indexes in subjects.values() for index in indexes]
        state = worst([*(self.states[index] for index in everything), *(card["state"] for card in cards)])
        return {
            "name": name,
            "vendor": _text(host.get("vendor")),
            "reachable": bool(host.get("reachable", True)),
            "state": state or NOT_APPLICABLE,
            "href": self._first_open(rest) or self._first_open(everything) or self.passed,
            "title": self._title(name, state or NOT_APPLICABLE, everything),
            "slots": cards,
        }

    def _card(self, host: str, slot: dict, label: str, short: str, own: list[int]) -> dict:
        state = worst(self._card_state(index) for index in own)
        told = _text(slot.get("verdict"))
        if state in (None, PASS, NOT_APPLICABLE) and told in STATES:
            state = worst([told, state or told])  # never better than what the run says
        state = state or UNKNOWN
        model = _text(slot.get("model"))
        return {
            "short": short,
            "label": label,
            "address": _name(slot.get("address")),
            "state": state,
            "href": self._first_open(own) or self.passed,
            "title": self._title(f"{host} {label}", state, own) + (f" ({model})" if model else ""),
        }

    def _card_state(self, index: int) -> str:
        # A failed count blocks exactly the cards that do not answer: the lost card is the fault itself, and
        # must be as red in the map as its finding is. Other causes (a driver, a tool) say nothing of a card.
        finding = self.findings[index]
        cause = self.causes[index]
        if finding.get("blocked_by") == "device.count" and cause is not None:
            return worst([self.states[index], self.states[cause]]) or UNKNOWN
        return self.states[index]

    def _first_open(self, indexes: list[int]) -> str:
        opened = [index for index in indexes if self.states[index] in OPEN]
        return self.anchors[min(opened, key=lambda index: STATES.index(self.states[index]))] if opened else ""

    def _title(self, name: str, state: str, indexes: list[int]) -> str:
        checks = list(
            dict.fromkeys(_text(self.findings[index].get("check")) for index in indexes if self.states[index] in OPEN)
        )
        return f"{name}: {self.words[state]}" + (f", {', '.join(checks)}" if checks else "")

    # -- the findings

    def _root(self, index: int) -> int | None:
        """Return the finding that finding ``index`` is in the end a consequence of, None when it stands alone."""
        seen = {index}
        here = index
        while True:
            above = self._cause(here)
            if above is None:
                # Nothing is folded under what matters less than itself.
                matters = STATES.index(self.states[here]) <= STATES.index(self.states[index])
                return here if here != index and matters else None
            if above in seen:
                return None  # a circle: every one of it is shown on its own, none is lost
            seen.add(above)
            here = above

    def _cause(self, index: int) -> int | None:
        finding = self.findings[index]
        blocked_by = finding.get("blocked_by")
        if not blocked_by or self.states[index] not in OPEN or finding.get("verdict") == FAIL:
            return None  # a fail is never folded, whatever it says
        host, subject = finding.get("host"), finding.get("subject")
        found = [other for other in self.open_by_check.get((host, blocked_by), []) if other != index]
        for wanted in (subject, host):
            for other in found:
                if self.findings[other].get("subject") == wanted:
                    return other
        # What many hosts use, such as a registry, is judged on one of them, under the same subject.
        found = found or self.open_by_subject.get((subject, blocked_by), [])
        return found[0] if found else None

    def _anchors(self) -> list[str]:
        """Return one id a finding, the same in every run, so that a link to it can be compared with tomorrow's."""
        used: Counter = Counter()
        anchors = []
        for finding in self.findings:
            parts = [_name(finding.get(key)) for key in ("check", "host", "subject")]
            if parts[2] == parts[1]:
                parts.pop()
            name = "f-" + "--".join(re.sub(r"[^A-Za-z0-9._]+", "-", part) for part in parts)
            used[name] += 1
            anchors.append(name if used[name] == 1 else f"{name}~{used[name]}")
        return anchors

    def _section(self, state: str) -> dict:
        consequences: dict[int, list[int]] = {}
        for index, cause in enumerate(self.causes):
            if cause is not None:
                consequences.setdefault(cause, []).append(index)
        groups: dict[tuple, list[int]] = {}
        for index, finding in enumerate(self.findings):
            if self.states[index] == state and self.causes[index] is None:
                groups.setdefault((finding.get("verdict") != FAIL, _text(finding.get("hint"))), []).append(index)
        # Of the warnings those that failed first; then what explains the most; else the order of the run.
        order = sorted(
            groups.items(), key=lambda item: (item[0][0], -sum(len(consequences.get(index, [])) for index in item[1]))
        )
        return {
            "state": state,
            "count": sum(1 for other in self.states if other == state),
            "folded": sum(1 for other, cause in zip(self.states, self.causes) if other == state and cause is not None),
            "groups": [self._group(indexes, consequences) for key, indexes in order],
        }

    def _group(self, indexes: list[int], consequences: dict[int, list[int]]) -> dict:
        first = self.findings[indexes[0]]
        hints = {_text(self.findings[index].get("hint_text")) for index in indexes}
        # The same words about several cards of a host are one row that names them all.
        same: dict[tuple, list[int]] = {}
        for index in indexes:
            finding = self.findings[index]
            key = json.dumps([*(finding.get(name) for name in SAME), self._message(index, "")], default=str)
            same.setdefault((key, index if index in consequences else None), []).append(index)
        items = [self._item(row, consequences.get(row[0], []), len(hints) > 1) for row in same.values()]
        folded = items[GROUP_SHOWN:]
        return {
            "title": _text(first.get("title")) or _text(first.get("check")),
            "check": _text(first.get("check")),
            "verdict": FAIL if first.get("verdict") == FAIL else UNKNOWN,
            "hint": _text(first.get("hint")),
            "hint_text": hints.pop() if len(hints) == 1 else "",
            "count": len(indexes),
            "hosts": len({item["host"] for item in items}),
            "shown": items[:GROUP_SHOWN],
            "folded": folded,
            "folded_count": sum(len(item["subjects"]) for item in folded),
        }

    def _message(self, index: int, card: str) -> str:
        """Return the message of a finding, with ``card`` for the full name of the card that it is about."""
        finding = self.findings[index]
        name = self.card_names.get((finding.get("host"), finding.get("subject")))
        message = _text(finding.get("message"))
        if not name:
            return message
        within = card[:1].lower() + card[1:]
        begins = message.startswith(name)
        return hints.tidy((card + message[len(name) :] if begins else message).replace(name, within))

    def _item(self, indexes: list[int], consequences: list[int], own_hint: bool) -> dict:
        finding = self.findings[indexes[0]]
        family = [*indexes, *consequences]
        note = self.words["cut"]
        host = finding.get("host")
        subjects = [self.findings[one].get("subject") for one in indexes]
        message = self._message(indexes[0], self.words["each_card"]) if len(indexes) > 1 else finding.get("message")
        evidence: list = []
        for one in indexes:
            entries = self.findings[one].get("evidence")
            evidence += [entry for entry in entries or [] if entry not in evidence] if isinstance(entries, list) else []
        return {
            "host": _name(host),
            "all_hosts": "|".join(dict.fromkeys(_name(self.findings[one].get("host")) for one in family)),
            "subjects": [
                {"name": "" if subject == host else _name(subject), "anchor": self.anchors[one]}
                for one, subject in zip(indexes, subjects)
            ],
            "message": cut(_text(message), TEXT_LIMIT, note),
            "judged": finding.get("expected") is not None or finding.get("observed") is not None,
            "expected": cut(value_text(finding.get("expected")), VALUE_LIMIT, note),
            "observed": cut(value_text(finding.get("observed")), VALUE_LIMIT, note),
            "hint_text": _text(finding.get("hint_text")) if own_hint else "",
            "blocked_by": _text(finding.get("blocked_by")),
            "evidence": self._evidence(evidence),
            # What a filter looks at: its own and its consequences', which are folded into it.
            "states": " ".join(dict.fromkeys(self.states[one] for one in family)),
            "checks": " ".join(dict.fromkeys(_text(self.findings[one].get("check")) for one in family)),
            "all_subjects": "|".join(
                dict.fromkeys(
                    _name(subject)
                    for one in family
                    for subject in (self.findings[one].get("subject"), *_cards(self.findings[one]))
                )
            ),
            "weight": len(family),
            "consequences": [self._consequence(one, finding) for one in consequences],
        }

    def _consequence(self, index: int, cause: dict) -> dict:
        finding = self.findings[index]
        host, subject = _name(finding.get("host")), _name(finding.get("subject"))
        elsewhere = host != _name(cause.get("host"))
        own = [entry for entry in finding.get("evidence") or [] if entry not in (cause.get("evidence") or [])]
        return {
            "anchor": self.anchors[index],
            "state": self.states[index],
            "check": _text(finding.get("check")),
            "title": _text(finding.get("title")),
            # Elsewhere the subject is that of the cause, or it would not be here.
            "host": host if elsewhere else "",
            "subject": subject if subject != host and not elsewhere else "",
            "message": cut(_text(finding.get("message")), TEXT_LIMIT, self.words["cut"]),
            "evidence": self._evidence(own),
        }

    def _evidence(self, entries: object) -> list[dict]:
        shown = []
        for entry in entries if isinstance(entries, list) else []:
            entry = entry if isinstance(entry, dict) else {"excerpt": entry}
            excerpt = cut(_text(entry.get("excerpt")), EXCERPT_LIMIT, self.words["cut"])
            if len(excerpt) > self.evidence_left:
                excerpt = self.words["left_out"]
            self.evidence_left -= len(excerpt)
            rc = entry.get("rc")
            shown.append(
                {
                    "command": cut(_text(entry.get("command")), VALUE_LIMIT, self.words["cut"]),
                    "rc": "" if "rc" not in entry else self.say("no_exit_code") if rc is None else f"{rc}",
                    "ended": rc is not None,
                    "excerpt": excerpt,
                }
            )
        return shown

    # -- what passed or does not apply: one row a check and value, with the hosts; findings.json has each

    def _summary(self, state: str, text_of: Callable[[dict], str]) -> dict:
        # All checks of the run, for its order: the first host may be the one on which a check did not pass.
        checks: dict[str, dict[str, list[dict]]] = {_text(finding.get("check")): {} for finding in self.findings}
        for finding, own in zip(self.findings, self.states):
            if own == state:
                text = cut(text_of(finding), VALUE_LIMIT, self.words["cut"])
                checks[_text(finding.get("check"))].setdefault(text, []).append(finding)
        rows = []
        for check, values in checks.items():
            if len(values) > VALUES_SHOWN:
                merged = [finding for findings in values.values() for finding in findings]
                values = {self.say("n_values", n=len(values)): merged}
            for number, (text, findings) in enumerate(values.items()):
                rows.append(
                    {
                        "check": check,
                        "title": _text(findings[0].get("title")),
                        "first": number == 0,
                        "text": text,
                        "count": len(findings),
                        "hosts": list(dict.fromkeys(_name(finding.get("host")) for finding in findings)),
                    }
                )
        return {"count": sum(row["count"] for row in rows), "rows": rows}


def short_labels(labels: list[str]) -> list[str]:
    """Return slot labels short enough for a cell: what all of a host begin with goes, at the border of a word."""
    if len(labels) < 2 or max(len(label) for label in labels) <= 6:
        return list(labels)
    common = min(labels)
    while not all(label.startswith(common) for label in labels):
        common = common[:-1]
    end = max(common.rfind(sign) for sign in " :_-./") + 1
    return [label[end:] or label for label in labels]


def _text(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else value_text(value)


def _cards(finding: dict) -> list:
    """Return the cards that a finding of a host is about, where it is about several."""
    cards = finding.get("cards")
    return cards if isinstance(cards, list) else []


def _name(value: object) -> str:
    # A slot label can come from a firmware table, which may hold anything.
    text = _text(value)
    return text if len(text) <= NAME_LIMIT else text[: NAME_LIMIT - 1] + "…"


def _time(value: object) -> datetime | None:
    try:
        return datetime.fromisoformat(_text(value).replace("Z", "+00:00"))
    except ValueError:
        return None


def _clock(value: object) -> str:
    moment = _time(value)
    if moment is None:
        return _text(value)
    zone = moment.tzname() or ""
    return f"{moment:%Y-%m-%d %H:%M:%S} {zone}".rstrip()


def junit(run: dict) -> str:
    """Return ``run`` as JUnit XML: a test suite for each layer of each host, a test case for each finding.

    fail is a failure, unknown an error of type ``unknown`` (so that it is never taken for a pass), not_applicable
    is skipped. An unknown of severity warning is skipped too, with the word: like the verdict of the run, a CI system
    counts it without failing. A warning that failed is a failure of type ``warning``.
    """
    suites: dict[tuple[str, str], list[dict]] = {}
    for finding in run.get("findings") or []:
        suites.setdefault((_text(finding.get("layer")), _name(finding.get("host"))), []).append(finding)
    root = ET.Element("testsuites", {"name": visible(_text(run.get("site"))) or "accel.cluster"})
    total: Counter = Counter()
    for (layer, host), findings in suites.items():
        suite = ET.SubElement(root, "testsuite", {"name": visible(f"{layer}/{host}"), "hostname": visible(host)})
        if _time(run.get("started_at")):
            # The schema of the format knows no time zone in this field.
            suite.set("timestamp", f"{_time(run.get('started_at')):%Y-%m-%dT%H:%M:%S}")
        count = Counter(_testcase(suite, finding) for finding in findings)
        total.update(count)
        _set_counts(suite, len(findings), count)
    _set_counts(root, sum(total.values()), total)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _set_counts(element: ET.Element, tests: int, count: Counter) -> None:
    element.set("tests", str(tests))
    for attribute, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(attribute, str(count[kind]))
    element.set("time", "0")


def _testcase(suite: ET.Element, finding: dict) -> str:
    host, subject = _name(finding.get("host")), _name(finding.get("subject"))
    name = host if subject in ("", host) else f"{host} {subject}"
    case = ET.SubElement(suite, "testcase", {"classname": visible(_text(finding.get("check"))), "name": visible(name)})
    case.set("time", "0")
    verdict = finding.get("verdict")
    if verdict == PASS:
        return "passed"
    message = visible(cut(_text(finding.get("message")), TEXT_LIMIT, TEXT["en"]["cut"]))
    if verdict == NOT_APPLICABLE:
        ET.SubElement(case, "skipped", {"message": message})
        return "skipped"
    if verdict == UNKNOWN and finding.get("severity") == WARNING:
        ET.SubElement(case, "skipped", {"message": f"unknown: {message}"})
        return "skipped"
    kind = "failure" if verdict == FAIL else "error"
    # The type of an error is its verdict; of a failure it is how much it matters.
    types = {"failure": _text(finding.get("severity")) or "critical", "error": "unknown"}
    ET.SubElement(case, kind, {"type": types[kind], "message": message}).text = visible(_body(finding))
    return kind


def _body(finding: dict) -> str:
    lines = [
        f"{name}: {_text(finding.get(key))}"
        for name, key in (
            ("expected", "expected"),
            ("observed", "observed"),
            ("severity", "severity"),
            ("blocked by", "blocked_by"),
            ("hint", "hint"),
            ("what to do", "hint_text"),
        )
        if finding.get(key) is not None
    ]
    for entry in finding.get("evidence") or []:
        entry = entry if isinstance(entry, dict) else {"excerpt": entry}
        lines.append(f"$ {_text(entry.get('command'))} (rc {_text(entry.get('rc'))})")
        lines.append(cut(_text(entry.get("excerpt")), JUNIT_EXCERPT_LIMIT, TEXT["en"]["cut"]))
    return "\n".join(lines)
