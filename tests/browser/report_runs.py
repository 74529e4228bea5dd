# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs to render, built by hand: what a rehearsal with five hosts shows, a healthy one, and a large one.

The counts the tests expect are written in the tests, not computed here.
"""

from __future__ import annotations

CARD_CHECKS = (
    "device.model",
    "device.memory",
    "device.slot",
    "device.link_width",
    "device.link_speed",
    "device.health",
)
HOST_CHECKS = ("host.reachable", "device.driver", "device.query", "device.count", "device.driver_version")
BASELINE_CHECKS = ("baseline.limits", "baseline.clock", "baseline.time_zone", "baseline.packages")
KERNEL_CHECKS = ("baseline.kernel_parameters", "baseline.hugepages")

# check -> title, English and Chinese
TITLES = {
    "host.reachable": ("Host answers", "主机可达"),
    "device.driver": ("Driver and library fit", "驱动与库匹配"),
    "device.query": ("Vendor tool answers", "厂商工具可用"),
    "device.count": ("Number of cards", "加速卡数量"),
    "device.model": ("Card model", "加速卡型号"),
    "device.memory": ("Card memory", "加速卡显存"),
    "device.slot": ("Card in its slot", "加速卡槽位"),
    "device.link_width": ("PCIe link width", "PCIe 链路宽度"),
    "device.link_speed": ("PCIe link speed", "PCIe 链路速率"),
    "device.health": ("Card health", "加速卡健康状态"),
    "device.driver_version": ("One driver version", "驱动版本一致"),
    "baseline.limits": ("File handles and locked memory", "文件句柄与锁定内存"),
    "baseline.clock": ("Clock", "时钟同步"),
    "baseline.time_zone": ("Time zone", "时区"),
    "baseline.packages": ("Packages", "软件包"),
    "baseline.kernel_parameters": ("Kernel parameters", "内核参数"),
    "baseline.hugepages": ("Huge pages", "大页内存"),
}

# cause -> message and hint, English and Chinese
CAUSES = {
    "device.count.lost": (
        (
            "7 of 8 cards answer; 0000:ba:00.0 (slot SXM5, serial 1650423000105) is on the bus but lost",
            "8 张卡中有 7 张应答；0000:ba:00.0（槽位 SXM5，序列号 1650423000105）在总线上但已丢失",
        ),
        (
            (
                "Drain the node, keep the kernel log of the minute it was lost, then power the node off and on: a "
                "card that fell off the bus comes back with nothing less. If it is lost again, have it replaced."
            ),
            "先排空该节点，保存丢卡时刻的内核日志，然后断电重启：掉出总线的卡只能这样恢复。若再次丢失，请更换该卡。",
        ),
    ),
    "device.link_width.narrow": (
        (
            "The link runs with 8 of 16 lanes; the bridge 0000:40:01.1 above the card holds it down",
            "链路仅以 16 条通道中的 8 条运行；上游桥 0000:40:01.1 限制了它",
        ),
        (
            (
                "Reseat the card or its riser and look at the contacts. The other cards of this switch are at full "
                "width, so the slot of this one is the first suspect."
            ),
            "重新插拔该卡或其转接板并检查金手指。同一交换芯片下的其他卡均为全宽度，应首先怀疑该槽位。",
        ),
    ),
    "device.link_speed.no_reading": (
        ("No reading under load yet: an idle card lowers its speed", "尚无负载下的读数：空闲的卡会降低速率"),
        (
            "While a job uses the cards, run accelctl check --keep on the node.",
            "在作业使用这些卡时，于该节点执行 accelctl check --keep。",
        ),
    ),
    "host.reachable.unreachable": (
        ("No answer over ssh: Connection timed out", "ssh 无应答：连接超时"),
        (
            "Look at the console through the management controller. If the host is up, look at its management network.",
            "请通过带外管理控制器查看控制台。若主机已启动，请检查其管理网络。",
        ),
    ),
}
BLOCKED = ("Not judged: the card does not answer", "未判定：该卡没有应答")
SHARED_KERNEL = ("The host is a container and shares its kernel", "该主机是容器，与宿主机共享内核")

LOST_EXCERPT = """\
==============NVSMI LOG==============

Timestamp                                 : Mon Nov 30 01:02:41 2026
Driver Version                            : 570.86.15
Attached GPUs                             : 8
Unable to determine the device handle for GPU5: 0000:BA:00.0: GPU is lost.  Reboot the system to recover this GPU
"""
LINK_EXCERPT = """\
0000:46:00.0 current_link_width 8
0000:46:00.0 max_link_width 16
0000:40:01.1 current_link_width 8
0000:40:01.1 max_link_width 16
"""

NVIDIA = (
    "0000:18:00.0",
    "0000:2a:00.0",
    "0000:3a:00.0",
    "0000:5d:00.0",
    "0000:9a:00.0",
    "0000:ba:00.0",
    "0000:cb:00.0",
    "0000:db:00.0",
)
OTHER = (
    "0000:05:00.0",
    "0000:26:00.0",
    "0000:46:00.0",
    "0000:65:00.0",
    "0000:85:00.0",
    "0000:a6:00.0",
    "0000:c6:00.0",
    "0000:e5:00.0",
)
# node type -> vendor, model, slot label, addresses
TYPES = {
    "h100_sxm": ("nvidia", "NVIDIA H100 80GB HBM3", "SXM{}", NVIDIA),
    "mi300x": ("amd", "AMD Instinct MI300X", "OAM{}", OTHER),
    "ascend910b": ("ascend", "Ascend 910B2", "NPU{}", OTHER),
}


class Builder:
    """Collects findings of a run; ``change`` turns one of them."""

    def __init__(self, language: str = "en") -> None:
        self.language = language
        self.findings: list[dict] = []
        self.hosts: list[dict] = []

    def words(self, pair: tuple[str, str]) -> str:
        """Return the English or the Chinese of a pair."""
        return pair[1 if self.language == "zh" else 0]

    def add(self, check: str, host: str, subject: str, verdict: str = "pass", cause: str = "ok", **more) -> dict:
        """Add and return a finding."""
        hint = f"{check}.{cause}"
        message, text = CAUSES.get(hint, (("", ""), ("", "")))
        finding = {
            "check": check,
            "title": self.words(TITLES[check]),
            "layer": "device",
            "host": host,
            "subject": subject,
            "verdict": verdict,
            "severity": "critical",
            "expected": None,
            "observed": None,
            "message": self.words(message),
            "hint": hint,
            "hint_text": self.words(text),
            "evidence": [],
            "blocked_by": None,
            "at": "2026-11-30T01:02:41Z",
        }
        finding.update(more)
        self.findings.append(finding)
        return finding

    def host(self, name: str, node_type: str, cards: int = 8) -> None:
        """Add a host on which everything passes, its link speeds not read under load yet."""
        vendor, model, label, addresses = TYPES[node_type]
        for check in HOST_CHECKS:
            seen = {"device.count": cards, "device.driver_version": "570.86.15"}.get(check, "ok")
            self.add(check, name, name, expected=seen, observed=seen)
        for check in BASELINE_CHECKS:
            self.add(check, name, name, expected="as declared", observed="as declared")
        for check in KERNEL_CHECKS:
            self.add(check, name, name, "not_applicable", "shared_kernel", message=self.words(SHARED_KERNEL))
        slots = []
        for number in range(cards):
            slot = label.format(number)
            values = {
                "device.model": model,
                "device.memory": "80 GiB",
                "device.slot": slot,
                "device.link_width": 16,
                "device.health": "ok",
            }
            for check in CARD_CHECKS:
                if check == "device.link_speed":
                    self.add(check, name, slot, "unknown", "no_reading", severity="warning", expected="32 GT/s")
                else:
                    self.add(check, name, slot, expected=values[check], observed=values[check])
            slots.append(
                {
                    "label": slot,
                    "address": addresses[number % 8],
                    "serial": f"16504230001{number:02}",
                    "uuid": None,
                    "model": model,
                    "verdict": None,
                    "checks": [],
                }
            )
        self.hosts.append({"host": name, "node_type": node_type, "vendor": vendor, "reachable": True, "slots": slots})

    def dead_host(self, name: str, node_type: str) -> None:
        """Add a host that does not answer."""
        self.add(
            "host.reachable",
            name,
            name,
            "unknown",
            "unreachable",
            expected="ok",
            evidence=[
                {"command": "ssh", "rc": 255, "excerpt": f"ssh: connect to host {name} port 22: Connection timed out"}
            ],
        )
        self.hosts.append(
            {"host": name, "node_type": node_type, "vendor": TYPES[node_type][0], "reachable": False, "slots": []}
        )

    def change(self, check: str, host: str, subject: str, verdict: str, cause: str, **more) -> dict:
        """Turn the finding of ``check`` on ``subject``."""
        wanted = (check, host, subject)
        (finding,) = [one for one in self.findings if (one["check"], one["host"], one["subject"]) == wanted]
        hint = f"{check}.{cause}"
        message, text = CAUSES.get(hint, (("", ""), ("", "")))
        finding.update({"message": self.words(message), "hint_text": self.words(text), **more})
        finding.update(verdict=verdict, hint=hint)
        return finding

    def read_under_load(self, host: str) -> None:
        """Let the link speeds of a host be known."""
        for finding in self.findings:
            if finding["host"] == host and finding["check"] == "device.link_speed":
                finding.update(
                    verdict="pass",
                    severity="critical",
                    observed="32 GT/s",
                    hint="device.link_speed.ok",
                    message="",
                    hint_text="",
                )

    def run(self, verdict: str) -> dict:
        """Return the run."""
        order = ("fail", "unknown", "pass", "not_applicable")
        for host in self.hosts:
            for slot in host["slots"]:
                slot["checks"] = [
                    {"check": one["check"], "verdict": one["verdict"]}
                    for one in self.findings
                    if one["host"] == host["host"] and one["subject"] == slot["label"]
                ]
                slot["verdict"] = min((one["verdict"] for one in slot["checks"]), key=order.index)
        counts = {name: sum(1 for one in self.findings if one["verdict"] == name) for name in order}
        counts["warnings"] = sum(
            1 for one in self.findings if one["severity"] == "warning" and one["verdict"] in ("fail", "unknown")
        )
        return {
            "schema": 1,
            "site": "rehearsal",
            "run_id": "20261130T010112Z",
            "started_at": "2026-11-30T01:01:12Z",
            "finished_at": "2026-11-30T01:03:25Z",
            "language": self.language,
            "verdict": verdict,
            "layers": [{"layer": "device", "verdict": verdict, "counts": dict(counts)}] if self.findings else [],
            "hosts": self.hosts,
            "findings": self.findings,
            "counts": counts,
        }


def sick(language: str = "en") -> dict:
    """Return a run of five hosts and 32 cards: one card lost, one link narrow, one host without an answer."""
    builder = Builder(language)
    builder.host("gpu-01", "h100_sxm")
    builder.host("gpu-02", "h100_sxm")
    builder.host("gpu-03", "mi300x")
    builder.host("gpu-04", "ascend910b")
    builder.dead_host("gpu-05", "h100_sxm")
    for name in ("gpu-01", "gpu-02", "gpu-04"):
        builder.read_under_load(name)
    evidence = [{"command": "nvidia-smi -q", "rc": 15, "excerpt": LOST_EXCERPT}]
    builder.change("device.count", "gpu-01", "gpu-01", "fail", "lost", expected=8, observed=7, evidence=evidence)
    for check in CARD_CHECKS:
        builder.change(
            check,
            "gpu-01",
            "SXM5",
            "unknown",
            "blocked",
            blocked_by="device.count",
            observed=None,
            severity="critical",
            evidence=evidence,
            message=builder.words(BLOCKED),
        )
    builder.change(
        "device.link_width",
        "gpu-03",
        "OAM2",
        "fail",
        "narrow",
        expected=16,
        observed=8,
        evidence=[{"command": "/sys/bus/pci/devices/0000:46:00.0", "rc": 0, "excerpt": LINK_EXCERPT}],
    )
    return builder.run("fail")


def healthy(language: str = "en") -> dict:
    """Return a run of two hosts on which all is well and everything was read."""
    builder = Builder(language)
    for name in ("gpu-01", "gpu-02"):
        builder.host(name, "h100_sxm")
        builder.read_under_load(name)
    return builder.run("pass")


def empty(language: str = "en") -> dict:
    """Return a run without a host."""
    return Builder(language).run("unknown")


def large(hosts: int = 200, language: str = "en") -> dict:
    """Return a run of many hosts of 8 cards each: every tenth has a narrow link, every fiftieth is dead."""
    builder = Builder(language)
    for number in range(hosts):
        name = f"gpu-{number:03}"
        if number % 50 == 49:
            builder.dead_host(name, "h100_sxm")
            continue
        builder.host(name, "h100_sxm")
        if number % 2:
            builder.read_under_load(name)
        if number % 10 == 3:
            builder.change(
                "device.link_width",
                name,
                "SXM2",
                "fail",
                "narrow",
                expected=16,
                observed=8,
                evidence=[{"command": "/sys/bus/pci/devices", "rc": 0, "excerpt": LINK_EXCERPT}],
            )
    return builder.run("fail")
