# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Every check, every cause it can end with, and what to say and do about it, in English and Chinese.

``CAUSES`` is the only place that knows the verdict and severity of a cause, its message and its hint.
Reports, alerts and docs/faults.md (``faults_page``) are made from it, so they cannot disagree.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass

from .model import CRITICAL, FAIL, NOT_APPLICABLE, PASS, UNKNOWN, WARNING

LANGUAGES = ("en", "zh")

# What vendors are called whose cards have hints of their own.
VENDORS = {
    "nvidia": {"en": "NVIDIA", "zh": "NVIDIA"},
    "amd": {"en": "AMD", "zh": "AMD"},
    "ascend": {"en": "Ascend", "zh": "昇腾"},
}

# What the program on the node and the pages call verdicts and severities, and how they put them together.
WORDS = {
    "en": {
        PASS: "pass",
        FAIL: "fail",
        UNKNOWN: "unknown",
        NOT_APPLICABLE: "not applicable",
        CRITICAL: "critical",
        WARNING: "warning",
        "label": "{0} ({1})",
        "of": "{0}: {1}",
        "count": "{0} {1}",
        "comma": ", ",
        "more": " (+{0} more)",
        "nothing": "nothing was checked",
    },
    "zh": {
        PASS: "通过",
        FAIL: "不通过",
        UNKNOWN: "无法判定",
        NOT_APPLICABLE: "不适用",
        CRITICAL: "严重",
        WARNING: "警告",
        "label": "{0}（{1}）",
        "of": "{0}：{1}",
        "count": "{1} {0}",
        "comma": "，",
        "more": "（另有 {0} 项）",
        "nothing": "没有检查任何项目",
    },
}


@dataclass(frozen=True)
class Cause:
    """One way a check can end.

    ``message`` is a ``str.format`` template by language; ``hint`` says what to do next, "" where nothing is.
    ``vendors`` says by vendor what holds for its cards alone: the commands of its tool, its error codes.
    """

    verdict: str
    severity: str
    message: dict
    hint: dict
    vendors: dict


def _cause(
    verdict: str,
    en: str,
    zh: str,
    do_en: str = "",
    do_zh: str = "",
    severity: str = CRITICAL,
    **vendors: tuple[str, str],
) -> Cause:
    """Return a cause; ``vendors`` gives English and Chinese of what holds for one vendor."""
    own = {vendor: dict(zip(LANGUAGES, words)) for vendor, words in vendors.items()}
    return Cause(verdict, severity, {"en": en, "zh": zh}, {"en": do_en, "zh": do_zh}, own)


def _check(en: str, zh: str, layer: str = "device") -> dict:
    return {"title": {"en": en, "zh": zh}, "layer": layer}


# In the order in which a person should read them: what explains the rest comes first.
CHECKS = {
    "host.reachable": _check("Host answers", "主机可达"),
    "device.driver": _check("Driver state", "驱动状态"),
    "device.query": _check("Vendor tool answers", "厂商工具可用"),
    "device.count": _check("Number of cards", "加速卡数量"),
    "device.slot": _check("Card in its slot", "加速卡与槽位对应"),
    "device.model": _check("Card model", "加速卡型号"),
    "device.partition": _check("Partitions of the card", "加速卡分区"),
    "device.memory": _check("Device memory", "显存容量"),
    "device.memory_repair": _check("Memory repair", "显存修复"),
    "device.ecc": _check("Memory errors", "显存错误（ECC）"),
    "device.health": _check("Card health", "加速卡健康状态"),
    "device.temperature": _check("Temperature", "温度"),
    "device.throttle": _check("Throttling", "降频原因"),
    "device.ports": _check("Links between cards", "卡间互联"),
    "device.kernel_log": _check("Kernel log", "内核日志"),
    "device.link_width": _check("PCIe link width", "PCIe 链路宽度"),
    "device.link_speed": _check("PCIe link speed", "PCIe 链路速率"),
    "device.processes": _check("Who holds the card", "占用加速卡的进程"),
    "device.driver_stack": _check("Driver stack of one piece", "驱动栈一致"),
    "device.version_lock": _check("Driver stack cannot change by itself", "驱动栈版本锁定"),
    "device.driver_version": _check("One driver version in a node type", "同类节点驱动版本一致"),
    "device.observation": _check("Nothing left unread", "观测完整性"),
    "baseline.clock": _check("Clock", "时钟同步"),
    "baseline.time_zone": _check("Time zone", "时区"),
    "baseline.packages": _check("Required packages", "必需软件包"),
    "baseline.limits": _check("Process limits", "进程资源限制"),
    "baseline.kernel_parameters": _check("Kernel parameters", "内核参数"),
    "baseline.hugepages": _check("Huge pages", "大页内存"),
    "baseline.transparent_hugepages": _check("Transparent huge pages", "透明大页"),
    "baseline.numa_balancing": _check("Automatic NUMA balancing", "自动 NUMA 均衡"),
    "registry.service": _check("Registry on its own host", "仓库主机上的服务"),
    "registry.storage": _check("Room for images", "镜像存储空间"),
    "container.engine": _check("Container engine", "容器引擎"),
    "container.cdi": _check("Cards in containers (CDI)", "容器中的加速卡（CDI）"),
    "container.registry": _check("Image registry", "镜像仓库"),
    "container.image_digest": _check("One image on all nodes", "各节点镜像一致"),
}

# What the fields of the messages stand for where nothing fills them in: in ``accelctl explain``, on the page of faults.
FIELDS = {
    "accepted": {"en": "accepted card", "zh": "已确认的卡"},
    "answer": {"en": "how many answer", "zh": "应答情况"},
    "answered": {"en": "number answering", "zh": "应答数"},
    "brought": {"en": "what brought it", "zh": "变更来源"},
    "candidates": {"en": "what the sources say", "zh": "各来源的说法"},
    "card": {"en": "card", "zh": "加速卡"},
    "cards": {"en": "cards", "zh": "加速卡"},
    "declared": {"en": "value declared", "zh": "声明值"},
    "detail": {"en": "details", "zh": "详情"},
    "elsewhere": {"en": "where that serial was accepted", "zh": "该序列号的确认位置"},
    "engine": {"en": "engine", "zh": "引擎"},
    "expected": {"en": "value expected", "zh": "期望值"},
    "history": {"en": "earlier repairs", "zh": "此前的修复"},
    "home": {"en": "card accepted there", "zh": "该处已确认的卡"},
    "hop": {"en": "bridge", "zh": "网桥"},
    "host": {"en": "host", "zh": "主机"},
    "kernel": {"en": "kernel or its module", "zh": "内核或其模块"},
    "kind": {"en": "kind of device", "zh": "设备类型"},
    "library": {"en": "version of the libraries", "zh": "用户态库版本"},
    "links": {"en": "links", "zh": "链路"},
    "log": {"en": "what its log says", "zh": "其日志内容"},
    "margin": {"en": "margin", "zh": "余量"},
    "missed": {"en": "card that was not found", "zh": "未找到的卡"},
    "names": {"en": "names", "zh": "名称"},
    "next": {"en": "kernel of the next boot", "zh": "下次启动的内核"},
    "note": {"en": "note", "zh": "备注"},
    "number": {"en": "number", "zh": "数量"},
    "observed": {"en": "value seen", "zh": "实测值"},
    "off": {"en": "packages off the pin", "zh": "偏离锁定版本的包"},
    "origin": {"en": "former place", "zh": "原位置"},
    "part": {"en": "part", "zh": "组成部分"},
    "percent": {"en": "tolerance", "zh": "容差"},
    "pin": {"en": "pinned version", "zh": "锁定版本"},
    "place": {"en": "present place", "zh": "现位置"},
    "reason": {"en": "reason", "zh": "原因"},
    "role": {"en": "role", "zh": "角色"},
    "service": {"en": "service", "zh": "服务"},
    "silent": {"en": "card that says nothing", "zh": "无应答的卡"},
    "slot": {"en": "slot", "zh": "槽位"},
    "subject": {"en": "slot or host", "zh": "槽位或主机"},
    "tool": {"en": "tool", "zh": "工具"},
    "version": {"en": "version", "zh": "版本"},
}

# Said of every check that waits for another one.
_WAIT_EN = "Clear the check named in blocked_by first; the next verify judges this one again."
_WAIT_ZH = "请先处理 blocked_by 指出的检查项，下一次验收会重新判定本项。"


def _blocked(en: str, zh: str) -> Cause:
    return _cause(UNKNOWN, en, zh, _WAIT_EN, _WAIT_ZH)


# Who writes the device file of containers, where it is not the container role.
_NVIDIA_CTK = ("The generator is nvidia-ctk cdi generate.", "生成工具为 nvidia-ctk cdi generate。")
_AMD_CTK = ("The generator is amd-ctk cdi generate.", "生成工具为 amd-ctk cdi generate。")


CAUSES = {
    # ------------------------------------------------------------------ host
    "host.reachable.ok": _cause(
        PASS, "{host} answered and every expected check ran", "{host} 可达，应执行的检查均已执行"
    ),
    "host.reachable.unreachable": _cause(
        UNKNOWN,
        "{host} said nothing in this run: no check of it was judged",
        "{host} 在本次运行中没有任何应答，其所有检查均未判定",
        "Ping the management address and try ssh by hand; if both fail, look at power and console through the BMC. "
        "When the host is back, run verify with --limit for it.",
        "先 ping 管理地址并手工 ssh；若均失败，通过 BMC 检查电源与串口控制台。主机恢复后用 --limit 对其重新执行 "
        "verify。",
    ),
    "host.reachable.incomplete": _cause(
        UNKNOWN,
        "verification of {host} did not finish: {detail}",
        "{host} 的验收未完成：{detail}",
        "Look in the output of the run for the task where this host stopped (lost connection, full disk, sudo), "
        "then run verify with --limit for it. A garbled part file is left where it is, for inspection.",
        "在运行输出中查找该主机停在哪个任务（连接中断、磁盘写满、sudo 失败等），处理后用 --limit 重新执行 verify。"
        "损坏的结果文件会原样保留，供检查。",
    ),
    "host.reachable.crashed": _cause(
        UNKNOWN,
        "verification of {host} crashed in role {role}: {detail}",
        "{host} 的验收在角色 {role} 中异常退出：{detail}",
        "The error is in the evidence. If it names a wrong variable, correct the inventory; if it is a traceback, "
        "it is a defect of the collection: report it with the evidence.",
        "错误信息见证据。若是变量错误，请修正清单（inventory）；若是 Python 回溯，则属于本集合的缺陷，请附证据上报。",
    ),
    # ------------------------------------------------------------------ driver
    "device.driver.ok": _cause(PASS, "driver is loaded{version}", "驱动已加载{version}"),
    "device.driver.library_mismatch": _cause(
        FAIL,
        "user-space library {observed} does not fit the loaded kernel module {expected}",
        "用户态库版本 {observed} 与已加载的内核模块版本 {expected} 不匹配",
        "Find what moved the packages (on Debian and Ubuntu /var/log/apt/history.log, often unattended-upgrades). "
        "If the declared version equals the loaded module, install the library packages of that version and hold "
        "the whole set: no reboot is needed. A reboot would load whatever is installed now, which is right only if "
        "that is the version you want.",
        "先查明是什么改动了软件包（Debian/Ubuntu 看 /var/log/apt/history.log，常见原因是 unattended-upgrades）。若声"
        "明的版本与已加载模块一致，应将用户态软件包装回该版本并锁定（hold）整套驱动包，无需重启；重启只会加载当前已"
        "安装的版本，仅当该版本正是所需版本时才可重启。",
    ),
    "device.driver.not_loaded": _cause(
        FAIL,
        "the kernel module of the driver is not loaded",
        "驱动的内核模块未加载",
        "Look with lsmod and dkms status: after a kernel update the module is often not built for the running kernel. "
        "Check that its headers are installed, Secure Boot accepts the module and no other driver (vfio-pci) holds "
        "the cards.",
        "用 lsmod 和 dkms status 检查：内核升级后常因未给当前内核编译模块所致。确认对应的内核头文件已安装、Secure "
        "Boot 接受该模块，且没有其他驱动（vfio-pci）占用加速卡。",
        nvidia=(
            "nouveau is such a driver too.",
            "nouveau 也是这样的驱动。",
        ),
    ),
    "device.driver.not_ready": _cause(
        FAIL,
        "the driver does not initialise: the tool cannot reach it",
        "驱动未初始化完成，工具无法与其通信",
        "Often the driver was upgraded without a reboot, or took no card at boot: look in dmesg for why, see that its "
        "device nodes exist, compare driver and firmware versions, then reboot the drained node.",
        "常见原因是升级驱动后未重启，或启动时驱动没有接管任何卡：在 dmesg 中查找原因，确认其设备节点存在，核对驱动与"
        "固件版本，排空节点后重启。",
        amd=(
            "The tool says that amdgpu is not there although it is loaded: see that /sys/class/kfd and /dev/kfd exist.",
            "amdgpu 已加载，工具却称其不存在：请确认 /sys/class/kfd 与 /dev/kfd 存在。",
        ),
        ascend=(
            "-8005 is told without root and without an installed driver, too; the device node is /dev/davinci_manager.",
            "没有 root 权限或未安装驱动时工具也返回 -8005；设备节点为 /dev/davinci_manager。",
        ),
    ),
    "device.driver.no_library": _cause(
        FAIL,
        "the vendor tool is installed, its library is not",
        "已安装厂商工具，但缺少其所需的库",
        "The kernel module and the user-space libraries come in packages of their own. Install the libraries in "
        "exactly the version of the loaded module, and hold the whole set.",
        "内核模块与用户态库分属不同的软件包。请安装与已加载模块版本完全一致的用户态库，并锁定（hold）整套驱动包。",
    ),
    "device.driver.in_use_elsewhere": _cause(
        UNKNOWN,
        "the devices are held by another container or process, the driver refuses the query",
        "设备被其他容器或进程占用，驱动拒绝查询",
        "Find the holder (fuser -v on the device nodes, running containers) and verify again when it has ended, or "
        "verify from the place that owns the devices.",
        "找出占用者（对设备节点执行 fuser -v、查看正在运行的容器），待其结束后重新验收，或在持有设备的环境中验收。",
        ascend=(
            "The tool's error is -8020, the device nodes are /dev/davinci*.",
            "工具返回的错误为 -8020，设备节点为 /dev/davinci*。",
        ),
    ),
    "device.driver.blocked": _blocked(
        "the driver of the declared vendor could not be judged: the cards are another vendor's",
        "无法判定所声明厂商的驱动：加速卡属于其他厂商",
    ),
    "device.driver.follows": _blocked(
        "the driver does not work; device.driver_stack says which part of it is wrong",
        "驱动无法工作；device.driver_stack 说明其中哪一部分有问题",
    ),
    "device.driver.unknown": _cause(
        UNKNOWN,
        "nothing answered for the driver: neither the kernel nor a vendor tool told its state",
        "无法得知驱动状态：内核与厂商工具均未给出信息",
        "Check that the driver of the declared vendor is installed (lsmod, the vendor's version file) and that the "
        "cards are on the bus at all (lspci).",
        "检查是否安装了所声明厂商的驱动（lsmod、厂商版本文件），以及加速卡是否在总线上可见（lspci）。",
    ),
    # ------------------------------------------------------------------ query
    "device.query.ok": _cause(PASS, "the vendor tool answered{tool}", "厂商工具应答正常{tool}"),
    "device.query.hung": _cause(
        UNKNOWN,
        "the vendor tool gave no answer in time{cards}",
        "厂商工具在时限内没有应答{cards}",
        "Look for a process in state D (ps -eo pid,stat,wchan,cmd) and for errors of the card in the kernel log. A "
        "card that hangs the tool needs a drain and a power cycle of the node (a warm reboot may hang too). If all "
        "cards only answer slowly, raise cluster_query_timeout_seconds.",
        "查找处于 D 状态的进程（ps -eo pid,stat,wchan,cmd）以及内核日志中该卡的报错。使工具挂起的加速卡需要排空节点"
        "后断电重启（热重启也可能卡住）。若只是整体应答较慢，可调大 cluster_query_timeout_seconds。",
    ),
    "device.query.unreadable": _cause(
        UNKNOWN,
        "the answer of {tool} could not be read",
        "无法解析 {tool} 的输出",
        "The raw text is in the evidence. An unknown tool version needs a new parser: report it with the text. If "
        "the text is an error of the driver, treat that one first.",
        "原始输出见证据。若是尚未支持的工具版本，需要新增解析，请附原文上报；若原文是驱动报错，请先处理驱动。",
    ),
    "device.query.failed": _cause(
        UNKNOWN,
        "the vendor tool did not tell how many cards there are{tool}",
        "厂商工具未能给出加速卡数量{tool}",
        "Run the command of the evidence on the host as root: missing rights, a lost card and a broken installation "
        "all show in its own words there.",
        "在主机上以 root 执行证据中的命令：权限不足、掉卡或安装损坏都会在其输出中体现。",
    ),
    "device.query.absent": _cause(
        FAIL,
        "no vendor tool is installed ({tool})",
        "未安装厂商工具（{tool}）",
        "Install the tool that belongs to the declared driver version; without it cards can only be counted on the "
        "bus.",
        "安装与所声明驱动版本配套的管理工具；缺少它就只能在总线上数卡，无法判断状态。",
    ),
    "device.query.blocked": _blocked("the cards could not be queried, because {reason}", "{reason}，无法查询加速卡"),
    # ------------------------------------------------------------------ count
    "device.count.ok": _cause(
        PASS, "{observed} of {expected} cards answer", "{expected} 张加速卡中有 {observed} 张应答"
    ),
    "device.count.lost": _cause(
        FAIL,
        "{answered} of {expected} cards answer; on the bus but lost: {cards}",
        "{expected} 张加速卡中有 {answered} 张应答；在总线上但已掉卡：{cards}",
        "Drain the node and look in the kernel log for the first error of this address. Power-cycle the node; if the "
        "card is lost again, reseat it, then change slots with a good card to tell card from slot, and replace what "
        "is bad. The finding device.slot names the serial that was accepted in this slot: pull that one.",
        "排空节点，在内核日志中查找该地址的首个报错。断电重启节点；若再次掉卡，先重新插拔，再与正常卡互换槽位以区分"
        "是卡还是槽位的问题，然后更换故障件。device.slot 的结果给出该槽位已确认的序列号，按此拔卡。",
        nvidia=(
            "Xid 79 says that the card has fallen off the bus.",
            "Xid 79 表示该卡已从总线上掉落（fallen off the bus）。",
        ),
    ),
    "device.count.missing": _cause(
        FAIL,
        "{observed} cards are on the bus, {expected} are declared",
        "总线上有 {observed} 张加速卡，声明为 {expected} 张",
        "The card is not even on the PCI bus: device.slot names the empty slot. Check its power cables and seating, "
        "the riser or baseboard, and the BIOS (slot disabled, bifurcation, MMIO space above 4G), then cold-boot the "
        "node.",
        "该卡在 PCI 总线上已不可见，空槽位见 device.slot。检查供电线与插接、转接卡或基板，以及 BIOS 设置（槽位禁用、"
        "通道拆分、4G 以上 MMIO 空间），然后冷启动节点。",
    ),
    "device.count.bus_unreadable": _cause(
        UNKNOWN,
        "the PCI bus could not be read, so nobody counted the cards there{answer}",
        "无法读取 PCI 总线，因此没有清点总线上的加速卡{answer}",
        "ls /sys/bus/pci/devices shows nothing, or files there can't be read: /sys is not mounted, a container or a "
        "service hides it, or a security module forbids it. Every machine with cards has bridges at least. Mount it "
        "and verify again; until then a card that does not answer is not proven to be missing.",
        "ls /sys/bus/pci/devices 没有任何内容，或其中的文件不可读：/sys 未挂载、被容器或服务隐藏，或被安全模块禁止访问"
        "。装有加速卡的机器至少能看到网桥。请挂载后重新验收；在此之前，不能认定没有应答的卡已缺失。",
    ),
    "device.count.bus_short": _cause(
        UNKNOWN,
        "{observed} cards are on the bus, but {answered} answer: not all of the bus could be seen",
        "总线上只看到 {observed} 张加速卡，却有 {answered} 张应答：总线未能完整读取",
        "Compare the addresses of the vendor tool with ls /sys/bus/pci/devices: a part of the tree is not mounted or "
        "hidden, or the tool answers for another machine (a wrapper, a copy). Verify again when both show the "
        "same cards.",
        "将厂商工具给出的地址与 ls /sys/bus/pci/devices 对比：可能是 /sys 的一部分未挂载或被隐藏，也可能是工具在替另一"
        "台机器作答（包装脚本、副本）。两者一致后重新验收。",
    ),
    "device.count.no_bus": _cause(
        UNKNOWN,
        "no cards are declared, and {host} has no PCI bus that could be read to see whether there are any",
        "未声明加速卡，且 {host} 没有可读的 PCI 总线，无法确认是否确实没有",
        "No fault of a container or of a virtual machine without PCI. On any other host see why /sys/bus/pci/devices "
        "shows nothing.",
        "对容器或没有 PCI 的虚拟机而言并非故障；其他主机请检查 /sys/bus/pci/devices 为何没有内容。",
        severity=WARNING,
    ),
    "device.count.not_reported": _cause(
        FAIL,
        "{observed} of {expected} cards answer; on the bus but not reported by the vendor tool: {cards}",
        "{expected} 张加速卡中有 {observed} 张应答；在总线上但厂商工具未报告：{cards}",
        "The driver did not bind this card: see the kernel log for its address. Common reasons: failed "
        "initialisation at boot (cold-boot), bound to vfio-pci, excluded by configuration, or a cgroup that hides "
        "it from this session.",
        "驱动未接管该卡，请在内核日志中查其地址。常见原因：启动时初始化失败（需冷启动）、绑定到了 vfio-pci、被配置排"
        "除，或所在 cgroup 不可见。",
    ),
    "device.count.surplus": _cause(
        FAIL,
        "{observed} cards are there, only {expected} are declared",
        "共有 {observed} 张加速卡，声明只有 {expected} 张",
        "Correct cluster_accelerator_count if the cards were added on purpose. Otherwise find out where they come "
        "from; partitions of a card never count as cards.",
        "若确有增加，请修正 cluster_accelerator_count；否则查明来源。卡的分区不计为加速卡。",
    ),
    "device.count.undeclared": _cause(
        UNKNOWN,
        "{observed} cards are seen, but cluster_accelerator_count is {declared}: no number to hold them against",
        "看到 {observed} 张加速卡，但 cluster_accelerator_count 为 {declared}，没有可对照的数量",
        "Declare cluster_accelerator_count as a whole number in group_vars of the node type.",
        "请在该节点类型的 group_vars 中以整数声明 cluster_accelerator_count。",
    ),
    "device.count.blocked": _blocked("the number of working cards could not be told", "无法得知可用加速卡的数量"),
    # ------------------------------------------------------------------ model
    "device.model.ok": _cause(PASS, "{card} is a {observed}", "{card} 型号为 {observed}"),
    "device.model.other": _cause(
        FAIL,
        "{card} is a {observed}, declared is {names}",
        "{card} 型号为 {observed}，声明为 {names}",
        "If the card is right, add its name, exactly as the tool spells it, to cluster_accelerator_models. If not, "
        "the node has a wrong card: swap it, mixed models slow the whole job down to the weakest.",
        "若卡正确，请将工具输出的型号原样加入 cluster_accelerator_models；否则该节点插错了卡，应更换：混插会使整个作"
        "业降到最慢的卡。",
    ),
    "device.model.other_vendor": _cause(
        FAIL,
        "{card} is a card of {observed}, declared is the vendor {expected}",
        "{card} 是 {observed} 的卡，声明的厂商为 {expected}",
        "If the card is right, correct cluster_accelerator_vendor and with it models, memory, link and driver version "
        "of the node type. If not, the node is in the wrong group or has a wrong card. A node type has one vendor: a "
        "second one's cards fail here one by one, and are not told again as cards too many.",
        "若卡正确，请修正 cluster_accelerator_vendor，并一并修正该节点类型的型号、显存、链路与驱动版本；否则是该节点分"
        "错了组，或插错了卡。一个节点类型只有一个厂商：其他厂商的卡在此逐张报告，不再计为多余的卡。",
    ),
    "device.model.unknown": _cause(
        UNKNOWN,
        "the model of {card} could not be judged: {detail}",
        "无法判定 {card} 的型号：{detail}",
        "See the tool's raw answer on the host. Declared models must be a list of names, and the declared vendor one "
        "that the collection knows.",
        "在主机上查看工具的原始输出。声明的型号必须是名称列表，声明的厂商必须是本集合支持的厂商。",
    ),
    "device.model.undeclared": _cause(
        NOT_APPLICABLE,
        "{card} is a {observed}; no models are declared",
        "{card} 型号为 {observed}；未声明型号",
        "Declare cluster_accelerator_models to have the model judged.",
        "如需判定型号，请声明 cluster_accelerator_models。",
    ),
    "device.model.blocked": _blocked("{card} could not be asked for its model", "无法查询 {card} 的型号"),
    # ------------------------------------------------------------------ partitions
    "device.partition.ok": _cause(PASS, "{card} is as declared: {observed}", "{card} 与声明一致：{observed}"),
    "device.partition.split": _cause(
        FAIL,
        "{card} is split, {observed}; whole cards are declared",
        "{card} 已被分区：{observed}；声明为整卡",
        "A job that asks for a card gets a part of it, or none. Drain the node and make the card whole again with the "
        "vendor's tool. If it is split on purpose, declare cluster_accelerator_partitions for the node type.",
        "申请整卡的作业只会得到一部分，甚至得不到。请排空节点，用厂商工具恢复为整卡。若分区是有意为之，请为该节点类"
        "型声明 cluster_accelerator_partitions。",
        nvidia=(
            "Run nvidia-smi mig -dci and -dgi, then nvidia-smi -mig 0 -i <address>, which takes effect with a reset.",
            "依次执行 nvidia-smi mig -dci、-dgi，再执行 nvidia-smi -mig 0 -i <地址>，复位后生效。",
        ),
        amd=(
            "Run amd-smi set --compute-partition SPX.",
            "执行 amd-smi set --compute-partition SPX。",
        ),
        ascend=(
            "Run npu-smi set -t destroy-vnpu.",
            "执行 npu-smi set -t destroy-vnpu。",
        ),
    ),
    "device.partition.whole": _cause(
        FAIL,
        "{card} is whole; {expected} partitions of each card are declared",
        "{card} 为整卡；声明每张卡有 {expected} 个分区",
        "Split the card as the others of its type are; a reset or a reboot may have made it whole. Drain the node "
        "first.",
        "请先排空节点，再按同类型其他卡的方式分区；复位或重启可能使其恢复为整卡。",
    ),
    "device.partition.count": _cause(
        FAIL,
        "{card} is split, {observed}; declared are {expected}",
        "{card} 的分区为 {observed}；声明为 {expected} 个",
        "See which are missing or too many in the evidence, and make the partitions as they are on the other cards of "
        "the type. A partition that exists and is not listed is a fault of the driver: reload it on the drained node.",
        "请在证据中查看缺少或多出的分区，并与同类型的其他卡保持一致。存在却未列出的分区是驱动故障：排空节点后重新加"
        "载驱动。",
        nvidia=(
            "nvidia-smi mig -lgi lists them.",
            "可用 nvidia-smi mig -lgi 列出分区。",
        ),
        amd=(
            "amd-smi partition lists them.",
            "可用 amd-smi partition 列出分区。",
        ),
        ascend=(
            "npu-smi info -t info-vnpu lists them.",
            "可用 npu-smi info -t info-vnpu 列出分区。",
        ),
    ),
    "device.partition.unknown": _cause(
        UNKNOWN,
        "whether {card} is split could not be told: {detail}",
        "无法判断 {card} 是否已分区：{detail}",
        "Not every tool tells it; ask with the vendor's own command. Where cards can't be split, or how they are does "
        "not matter, set cluster_accelerator_partitions to 0 for the node type.",
        "并非所有工具都提供此信息，请用厂商命令查询。若该卡不能分区，或是否分区无关紧要，请将该节点类型的 "
        "cluster_accelerator_partitions 设为 0。",
        severity=WARNING,
    ),
    "device.partition.not_judged": _cause(
        NOT_APPLICABLE,
        "{card}: {observed}; declared not to be judged (cluster_accelerator_partitions is 0)",
        "{card}：{observed}；已声明不判定（cluster_accelerator_partitions 为 0）",
    ),
    "device.partition.blocked": _blocked("{card} could not be asked for its partitions", "无法查询 {card} 的分区"),
    # ------------------------------------------------------------------ memory
    "device.memory.ok": _cause(PASS, "{card} has {observed:.1f} GiB", "{card} 显存为 {observed:.1f} GiB"),
    "device.memory.small": _cause(
        FAIL,
        "{card} has {observed:.1f} GiB of memory, {expected:g} GiB are declared (tolerance {percent:g} %)",
        "{card} 显存为 {observed:.1f} GiB，声明为 {expected:g} GiB（容差 {percent:g} %）",
        "Compare with a card of the same model: a failed memory stack, ECC carve-out or a partition mode reduces "
        "it. If only this card differs after a reboot, replace it.",
        "与同型号的卡对比：显存颗粒失效、ECC 占用或分区模式都会减少容量。若重启后仍只有该卡不同，应更换。",
    ),
    "device.memory.unknown": _cause(
        UNKNOWN,
        "the memory of {card} could not be judged: {detail}",
        "无法判定 {card} 的显存：{detail}",
        "See the tool's raw answer on the host. Declared memory and its tolerance must be plain numbers.",
        "在主机上查看工具的原始输出。声明的显存与容差必须是数字。",
    ),
    "device.memory.undeclared": _cause(
        NOT_APPLICABLE,
        "no memory size is declared for {card}",
        "未声明 {card} 的显存容量",
        "Declare cluster_accelerator_memory_gib to have the memory judged.",
        "如需判定显存，请声明 cluster_accelerator_memory_gib。",
    ),
    "device.memory.blocked": _blocked("{card} could not be asked for its memory", "无法查询 {card} 的显存"),
    # ------------------------------------------------------------------ slot
    "device.slot.ok": _cause(
        PASS, "slot {slot} holds the accepted card ({card})", "槽位 {slot} 中为已确认的卡（{card}）"
    ),
    "device.slot.missing": _cause(
        FAIL,
        "slot {slot} is empty; accepted there: {accepted}",
        "槽位 {slot} 为空；已确认的卡为：{accepted}",
        "If the card was taken out on purpose, record it with accept_baseline and a reason. If not, the card is not "
        "on the bus any more: check power and seating of this slot, then cold-boot.",
        "若是有意拔出，请用 accept_baseline 并注明原因予以确认；否则该卡已从总线上消失，检查此槽位的供电与插接后冷启"
        "动。",
    ),
    "device.slot.new": _cause(
        FAIL,
        "slot {slot} holds a card that no baseline knows: {card}",
        "槽位 {slot} 中有基线未记录的卡：{card}",
        "If it was put in on purpose, accept it with accept_baseline and a reason; otherwise find out who did.",
        "若是有意安装，请用 accept_baseline 并注明原因予以确认；否则查明是谁所为。",
    ),
    "device.slot.duplicate": _cause(
        FAIL,
        "slot {slot} holds {card}, which another place shows too",
        "槽位 {slot} 中为 {card}，而另一处也报告了同一张卡",
        "Two cards can't have one identity: see whether two names of the inventory reach one machine, or a tool "
        "answers from a copy (a cloned disk, a wrapper). Then ask both cards with the vendor tool as root.",
        "两张卡不可能有同一标识：检查清单中是否有两个名称指向同一台机器，或工具的回答来自副本（克隆的磁盘、包装脚本）；"
        "然后以 root 用厂商工具分别查询两张卡。",
    ),
    "device.slot.moved": _cause(
        FAIL,
        "{card} was accepted in {origin} and is now in {place}{missed}",
        "{card} 的确认位置为 {origin}，现位于 {place}{missed}",
        "The card is good, its place is another. Either put it back, or accept the move with accept_baseline and a "
        "reason, so that the history of the card stays true.",
        "卡本身正常，只是换了位置。请放回原处，或用 accept_baseline 并注明原因确认此次移动，使该卡的历史保持真实。",
    ),
    "device.slot.swapped": _cause(
        FAIL,
        "slot {slot} holds the card of {origin}, {card}: the two were exchanged",
        "槽位 {slot} 中是 {origin} 的卡（{card}）：两卡已互换",
        "Usual after a repair or a test of card against slot. Exchange them back, or accept the new order with "
        "accept_baseline and a reason; until then a fault report names the wrong card.",
        "常见于维修或交叉验证之后。请换回，或用 accept_baseline 并注明原因确认新顺序；在此之前故障报告会指向错误的卡。",
    ),
    "device.slot.replaced": _cause(
        FAIL,
        "slot {slot} holds another card: {card} instead of {accepted}",
        "槽位 {slot} 中换成了另一张卡：{card}，原为 {accepted}",
        "If it was replaced on purpose, check that firmware and model fit the others, then accept it with "
        "accept_baseline and the number of the repair as reason. If nobody replaced it, ask who was at the machine.",
        "若是有意更换，确认固件与型号同其他卡一致后，用 accept_baseline 并以维修单号为原因予以确认；若无人更换，请追"
        "查谁操作过该机器。",
    ),
    "device.slot.serial_differs": _cause(
        FAIL,
        "slot {slot} holds the accepted card by its UUID, its serial is {observed} instead of {expected}{elsewhere}",
        "槽位 {slot} 中的卡按 UUID 为已确认的卡，但其序列号为 {observed}，原为 {expected}{elsewhere}",
        "Chip and board tell two stories, and a repair goes by the serial: compare it with the label of the board in "
        "this slot. If the label agrees with what is told now, accept it with accept_baseline and a reason. If it "
        "agrees with what was accepted, the board's memory was programmed wrongly or the tool mixes boards up: ask the "
        "vendor, and name the card by its UUID and slot until then.",
        "芯片与板卡的说法不一致，而维修以序列号为准：请与该槽位板卡上的标签核对。若标签与当前报告的一致，请用 "
        "accept_baseline 并注明原因予以确认；若与已确认的一致，则板卡存储的信息烧录有误，或工具混淆了板卡：请咨询厂"
        "商，在此之前请以 UUID 和槽位指称该卡。",
    ),
    "device.slot.firmware_changed": _cause(
        FAIL,
        "the card in slot {slot} has other firmware: {observed} instead of {expected}",
        "槽位 {slot} 中的卡固件已变化：{observed}，原为 {expected}",
        "If the firmware was updated on purpose, update the other cards of the type too and accept with "
        "accept_baseline.",
        "若是有意升级固件，请将同类型的其他卡一并升级，并用 accept_baseline 确认。",
        severity=WARNING,
    ),
    "device.slot.unplaced": _cause(
        UNKNOWN,
        "no believable slot name for {card}{candidates}",
        "{card} 没有可信的槽位名{candidates}",
        "Neither the vendor tool, sysfs nor the firmware's slot table names it. Declare the place in "
        "cluster_accelerator_slots of the node type ({address: slot}); the server's manual has the map.",
        "厂商工具、sysfs 与固件槽位表均未给出。请在该节点类型的 cluster_accelerator_slots 中声明（{地址: 槽位}），"
        "对应关系见服务器手册。",
        severity=WARNING,
    ),
    "device.slot.no_baseline": _cause(
        UNKNOWN,
        "no accepted slot baseline to hold {host} against: {detail}",
        "{host} 没有可对照的已确认槽位基线：{detail}",
        "Look at the recorded map, compare it with the labels in the rack, and accept it with the accept_baseline "
        "playbook and a reason; commit the baseline.",
        "查看记录的槽位图，与机柜内标签核对后，用 accept_baseline 剧本并注明原因予以确认，并提交基线文件。",
    ),
    "device.slot.unknown": _cause(
        UNKNOWN,
        "{subject} could not be compared with the accepted cards: {detail}",
        "无法将 {subject} 与已确认的卡比较：{detail}",
        "The evidence has the reason. A damaged baseline is restored from the version control of the site; a wrong "
        "cluster_accelerator_slots is corrected in the inventory; a card that tells neither serial nor UUID is asked "
        "again with its vendor tool as root.",
        "原因见证据。损坏的基线文件可从站点的版本库恢复；cluster_accelerator_slots 有误时请修正清单；既无序列号又无 "
        "UUID 的卡请以 root 用厂商工具重新查询。",
    ),
    "device.slot.blocked": _blocked(
        "{silent} could not be identified{home}",
        "无法识别{silent}{home}",
    ),
    # ------------------------------------------------------------------ health
    "device.health.ok": _cause(PASS, "{card} is healthy", "{card} 状态健康"),
    "device.health.warning": _cause(
        FAIL,
        "{card} warns: {observed}",
        "{card} 告警：{observed}",
        "Plan the action that the reason names for the next drain; watch whether it grows.",
        "按原因安排处理，可放到下一次排空时进行；留意是否加重。",
        severity=WARNING,
    ),
    "device.health.critical": _cause(
        FAIL,
        "{card} is not healthy: {observed}",
        "{card} 状态异常：{observed}",
        "Drain the node. Reset the card or reboot, then verify again; if the fault returns, run the vendor's "
        "diagnosis and replace the card under its serial.",
        "排空节点，复位该卡或重启后重新验收；若故障复现，运行厂商诊断工具并按序列号更换该卡。",
    ),
    "device.health.replace": _cause(
        FAIL,
        "replace {card}: {observed}",
        "应更换 {card}：{observed}",
        "The card tells a fault that no reset clears. Drain the node, save the vendor's bug report for the claim, and "
        "pull the card of this slot and serial. A code that means something else here goes into "
        "cluster_kernel_event_actions.",
        "该卡报告了复位无法消除的故障。排空节点，保存厂商诊断报告用于报修，按槽位与序列号拔出该卡。若该代码在本站点另有"
        "含义，可写入 cluster_kernel_event_actions。",
    ),
    "device.health.unknown": _cause(
        UNKNOWN,
        "the health of {card} could not be read: {observed}",
        "无法读取 {card} 的健康状态：{observed}",
        "A card whose health can't be read is not healthy until shown: ask the vendor tool for this card alone.",
        "健康状态不可读不等于健康：请用厂商工具单独查询该卡。",
    ),
    "device.health.blocked": _blocked(
        "the health of {card} is explained by another check or could not be asked",
        "{card} 的健康状态已由其他检查项说明，或无法查询",
    ),
    # ------------------------------------------------------------------ condition
    "device.memory_repair.ok": _cause(
        PASS, "no memory repair of {card} is due{history}", "{card} 没有待处理的显存修复{history}"
    ),
    "device.memory_repair.reset": _cause(
        FAIL,
        "{card} has a memory repair that waits for a reset of the card or a reboot",
        "{card} 有显存修复待生效，需要复位该卡或重启主机",
        "Drain the node and see that nothing holds the card (device.processes), then reset the card or reboot and "
        "verify again. Nothing here resets a card by itself. If the repair is still pending afterwards, or fails, "
        "replace the card.",
        "排空节点并确认没有进程占用该卡（device.processes），然后复位该卡或重启主机，再重新验收。本集合绝不自行复位"
        "。若之后仍待生效或修复失败，应更换该卡。",
        nvidia=(
            "The persistence daemon holds the card as well: stop it before a reset.",
            "persistence 守护进程也会占用该卡：复位前请先停止。",
        ),
    ),
    "device.memory_repair.replace": _cause(
        FAIL,
        "replace {card}: {detail}",
        "应更换 {card}：{detail}",
        "Drain the node, save the vendor's bug report for the claim, and pull the card of this slot and serial. Rows "
        "that were remapped earlier are no reason; a repair that failed, or too many errors in on-chip memory "
        "(cluster_limit_sram_uncorrected), is one.",
        "排空节点，保存厂商诊断报告用于报修，按槽位与序列号拔出该卡。此前已重映射的行不是更换理由；修复失败，或片上 "
        "SRAM 的不可纠正错误超过 cluster_limit_sram_uncorrected 才是。",
    ),
    "device.memory_repair.not_supported": _cause(
        NOT_APPLICABLE, "{card} is a product without memory repair", "{card} 这款产品没有显存修复功能"
    ),
    "device.memory_repair.unknown": _cause(
        UNKNOWN,
        "the memory repair of {card} could not be judged: {detail}",
        "无法判定 {card} 的显存修复状态：{detail}",
        "Ask the vendor tool by hand. Some releases do not tell it; a value that can't be read is a sign of a sick "
        "card.",
        "用厂商工具手工查询。有些版本不提供该信息；若数值无法读取，则可能是卡有问题。",
        severity=WARNING,
        nvidia=(
            "The command is nvidia-smi -q -d ROW_REMAPPER,PAGE_RETIREMENT.",
            "命令为 nvidia-smi -q -d ROW_REMAPPER,PAGE_RETIREMENT。",
        ),
        amd=(
            "The command is amd-smi bad-pages.",
            "命令为 amd-smi bad-pages。",
        ),
        ascend=(
            "The command is npu-smi info -t ecc -i N.",
            "命令为 npu-smi info -t ecc -i N。",
        ),
    ),
    "device.memory_repair.blocked": _blocked(
        "{card} could not be asked for its memory repair", "无法查询 {card} 的显存修复状态"
    ),
    "device.ecc.ok": _cause(
        PASS,
        "{card} has no uncorrected memory errors since the driver was loaded",
        "{card} 自驱动加载以来没有不可纠正的显存错误",
    ),
    "device.ecc.uncorrected": _cause(
        FAIL,
        "{card} has {observed} uncorrected memory errors since the driver was loaded",
        "{card} 自驱动加载以来有 {observed} 次不可纠正的显存错误",
        "Jobs that used the card since then may have computed nonsense or died. Drain the node, reset the card or "
        "reboot, and run the vendor's memory test; replace the card if errors come back.",
        "此后使用该卡的作业可能结果错误或已中断。排空节点，复位该卡或重启主机，运行厂商的显存测试；若错误再次出现，应"
        "更换该卡。",
    ),
    "device.ecc.corrected": _cause(
        FAIL,
        "{card} has {observed} corrected memory errors since the driver was loaded, allowed are {expected:g}",
        "{card} 自驱动加载以来有 {observed} 次已纠正的显存错误，允许值为 {expected:g}",
        "No result is wrong yet. Watch whether the number grows faster than on the other cards; a card that leads by "
        "far "
        "is the next to fail. The limit is cluster_limit_ecc_corrected_volatile.",
        "目前结果尚未受影响。观察其增长是否明显快于其他卡；远高于其他卡者往往最先损坏。上限由 "
        "cluster_limit_ecc_corrected_volatile 设定。",
        severity=WARNING,
    ),
    "device.ecc.not_supported": _cause(
        NOT_APPLICABLE, "{card} is a product that counts no memory errors", "{card} 这款产品不统计显存错误"
    ),
    "device.ecc.unknown": _cause(
        UNKNOWN,
        "the memory errors of {card} could not be judged: {detail}",
        "无法判定 {card} 的显存错误：{detail}",
        "See whether ECC is switched off and whether this release of the vendor's tool tells the counters at all.",
        "检查是否关闭了 ECC，以及当前版本的厂商工具是否提供这些计数。",
        severity=WARNING,
        nvidia=(
            "The command is nvidia-smi -q -d ECC.",
            "命令为 nvidia-smi -q -d ECC。",
        ),
        amd=(
            "The command is amd-smi metric --ecc.",
            "命令为 amd-smi metric --ecc。",
        ),
        ascend=(
            "The command is npu-smi info -t ecc -i N.",
            "命令为 npu-smi info -t ecc -i N。",
        ),
    ),
    "device.ecc.blocked": _blocked(
        "the memory errors of {card} are explained by another check or could not be asked",
        "{card} 的显存错误已由其他检查项说明，或无法查询",
    ),
    "device.temperature.ok": _cause(
        PASS,
        "{card} is at {observed:g} °C and slows down at {expected:g} °C",
        "{card} 温度为 {observed:g} °C，降频温度为 {expected:g} °C",
    ),
    "device.temperature.hot": _cause(
        FAIL,
        "{card} is at {observed:g} °C and slows down at {expected:g} °C; {margin:g} °C below that is too hot",
        "{card} 温度为 {observed:g} °C，距其降频温度 {expected:g} °C 不足 {margin:g} °C 或已超过",
        "Compare with the other cards of the node: one hot card wants a look at its heat sink and seating, all of them "
        "at fans, filters, blanks in empty slots, coolant and the air of the room.",
        "与同节点其他卡比较：仅一张过热应检查其散热器与安装；全部过热则检查风扇、滤网、空槽挡板、冷却液与机房温度。",
        severity=WARNING,
    ),
    "device.temperature.unknown": _cause(
        UNKNOWN,
        "the temperature of {card} could not be judged: {detail}",
        "无法判定 {card} 的温度：{detail}",
        "Read it with the vendor's tool. Where a product tells no limit of its own, watch the trend in the monitoring.",
        "用厂商工具读取。若该产品不提供自身的温度上限，请在监控中关注其趋势。",
        severity=WARNING,
    ),
    "device.temperature.blocked": _blocked("{card} could not be asked for its temperature", "无法查询 {card} 的温度"),
    "device.throttle.ok": _cause(
        PASS, "nothing that is not allowed slows {card} down: {observed}", "{card} 没有不允许的降频原因：{observed}"
    ),
    "device.throttle.hardware": _cause(
        FAIL,
        "the hardware slows {card} down: {observed}",
        "{card} 被硬件强制降频：{observed}",
        "power_brake is a signal of the server: look in the BMC for power supplies that failed or are not redundant "
        "and "
        "for a power cap. hardware without another reason points at power or heat of the board itself. One such card "
        "makes the whole job wait for it.",
        "power_brake 是服务器发出的信号：在 BMC 中检查电源是否故障或失去冗余，以及是否设置了功耗上限。单独出现 "
        "hardware 则"
        "说明板卡自身的供电或散热有问题。只要有一张这样的卡，整个作业都会等它。",
    ),
    "device.throttle.slowed": _cause(
        FAIL,
        "{card} is slowed down: {observed}",
        "{card} 正在降频：{observed}",
        "thermal: look at fans and airflow (device.temperature). Other reasons are settings; if they are wanted, name "
        "them in cluster_throttles_allowed.",
        "thermal：检查风扇与风道（见 device.temperature）。其他原因属于设置；若是有意为之，请加入 "
        "cluster_throttles_allowed。",
        severity=WARNING,
    ),
    "device.throttle.unknown": _cause(
        UNKNOWN,
        "what slows {card} down could not be judged: {detail}",
        "无法判定 {card} 的降频原因：{detail}",
        "Not every vendor's tool tells it; watch the clocks in the monitoring then. cluster_throttles_allowed must be "
        "a list of known reasons.",
        "并非所有厂商的工具都提供此信息，此时请在监控中关注频率。cluster_throttles_allowed 必须是已知原因的列表。",
        severity=WARNING,
        nvidia=(
            "See nvidia-smi -q -d PERFORMANCE.",
            "查看 nvidia-smi -q -d PERFORMANCE。",
        ),
        amd=(
            "See amd-smi metric --throttle.",
            "查看 amd-smi metric --throttle。",
        ),
    ),
    "device.throttle.blocked": _blocked(
        "what slows {card} down is explained by another check or could not be asked",
        "{card} 的降频原因已由其他检查项说明，或无法查询",
    ),
    "device.ports.ok": _cause(PASS, "{observed} links of {card} are up", "{card} 的 {observed} 条互联链路正常"),
    "device.ports.down": _cause(
        FAIL,
        "{observed} of {expected} links of {card} are up; down: {links}",
        "{card} 的 {expected} 条互联链路中有 {observed} 条正常；断开：{links}",
        "Look in the kernel log for link errors. All links of all cards down is a switch or the service that manages "
        "the fabric; one link is a card, a cable or a bridge: reseat it, and see whether the fault follows the card.",
        "在内核日志中查找链路错误。所有卡的链路全断是交换芯片或互联管理服务的问题；单条断开则是卡、线缆或桥接器：重"
        "新插接，并看故障是否随卡而走。",
        nvidia=(
            "Link errors are Xid 74 and 144 to 150, those of switches SXid; see that the fabric manager runs.",
            "链路错误为 Xid 74、144 至 150，交换芯片的为 SXid；并确认 fabric manager 正在运行。",
        ),
    ),
    "device.ports.slow": _cause(
        FAIL,
        "links of {card} run slower than those of its siblings ({expected:g} Gb/s): {links}",
        "{card} 的互联链路慢于同型号的卡（{expected:g} Gb/s）：{links}",
        "A link that came up with fewer lanes: look at its error counters, reset the drained card, and reseat it if "
        "the link stays slow.",
        "链路以较少通道建立：查看其错误计数，排空后复位该卡；若仍慢，重新插接。",
        nvidia=(
            "nvidia-smi nvlink -e shows the counters.",
            "计数可用 nvidia-smi nvlink -e 查看。",
        ),
    ),
    "device.ports.fewer": _cause(
        FAIL,
        "{card} has {observed} links, its siblings {expected}",
        "{card} 有 {observed} 条互联链路，同型号的卡为 {expected} 条",
        "The card does not show all of its links: reset it or cold-boot the drained node; if it stays so, replace it.",
        "该卡未显示全部链路：排空后复位该卡或冷启动节点；若仍如此，应更换。",
    ),
    "device.ports.none": _cause(
        NOT_APPLICABLE, "no card like {card} tells of links to other cards", "没有与 {card} 同型号的卡给出卡间互联信息"
    ),
    "device.ports.split": _cause(
        NOT_APPLICABLE,
        "{card} is split as declared, and tells of no links to other cards",
        "{card} 按声明已分区，不给出卡间互联信息",
    ),
    "device.ports.unused": _cause(
        NOT_APPLICABLE,
        "no link of {card} or its siblings is in use: there is no bridge between them",
        "{card} 及同型号的卡均未使用互联链路：卡间没有桥接器",
    ),
    "device.ports.unknown": _cause(
        UNKNOWN,
        "the links of {card} could not be judged: {detail}",
        "无法判定 {card} 的互联链路：{detail}",
        "A board in a socket always has links: ask the vendor tool for this card alone.",
        "插座式板卡必有互联链路：用厂商工具单独查询该卡。",
        severity=WARNING,
        nvidia=(
            "The command is nvidia-smi nvlink -s -i <address>.",
            "命令为 nvidia-smi nvlink -s -i <地址>。",
        ),
        amd=(
            "The command is amd-smi xgmi; releases before ROCm 6.4 list the links and do not tell their state.",
            "命令为 amd-smi xgmi；ROCm 6.4 之前的版本只列出链路，不给出其状态。",
        ),
        ascend=(
            "The command is npu-smi info -t hccs -i <npu> -c <chip>.",
            "命令为 npu-smi info -t hccs -i <npu> -c <chip>。",
        ),
    ),
    "device.ports.blocked": _blocked("{card} could not be asked for its links", "无法查询 {card} 的互联链路"),
    "device.kernel_log.ok": _cause(
        PASS, "the kernel log of this boot tells of no fault of {card}", "本次启动的内核日志中没有 {card} 的故障"
    ),
    "device.kernel_log.watch": _cause(
        FAIL,
        "the kernel log tells of {card}: {observed}",
        "内核日志中有 {card} 的记录：{observed}",
        "The card works on. Watch whether it comes back; what comes back every day is treated as a fault. A code that "
        "is "
        "known and harmless here goes into cluster_kernel_event_actions.",
        "该卡仍可工作。留意是否再次出现；每天都出现的应按故障处理。若确认该代码在本站点无害，可写入 "
        "cluster_kernel_event_actions。",
        severity=WARNING,
    ),
    "device.kernel_log.reset": _cause(
        FAIL,
        "the kernel log says that {card} needs a reset or reboot: {observed}",
        "内核日志表明 {card} 需要复位或重启主机：{observed}",
        "Drain the node; save the lines of the evidence before they are gone. Reset the card or reboot, then verify "
        "again: only this boot counts. If the same code comes back, run the vendor's diagnosis and replace the card.",
        "排空节点，并先保存证据中的日志。复位该卡或重启主机，再重新验收：只看本次启动的日志。若同一代码再次出现，运"
        "行厂商诊断工具并更换该卡。",
        nvidia=(
            "After Xid 79 power-cycle the node.",
            "Xid 79 后须断电重启节点。",
        ),
    ),
    "device.kernel_log.replace": _cause(
        FAIL,
        "the kernel log says that {card} must be replaced: {observed}",
        "内核日志表明应更换 {card}：{observed}",
        "Drain the node, save the vendor's bug report for the claim, and pull the card of this slot and serial.",
        "排空节点，保存厂商诊断报告用于报修，按槽位与序列号拔出该卡。",
    ),
    "device.kernel_log.unknown": _cause(
        UNKNOWN,
        "the kernel log of {host} could not be judged: {detail}",
        "无法判定 {host} 的内核日志：{detail}",
        "Run journalctl -k -b as root on the host: without the right, or without a log, faults that no tool tells stay "
        "unseen. cluster_kernel_event_actions must map codes to ignore, watch, reset or replace.",
        "在主机上以 root 执行 journalctl -k -b：没有权限或没有日志时，厂商工具不报告的故障将无从得知。"
        "cluster_kernel_event_actions 必须把代码映射为 ignore、watch、reset 或 replace。",
    ),
    "device.kernel_log.shared_kernel": _cause(
        NOT_APPLICABLE,
        "shared kernel: {host} is a container without a kernel log of its own",
        "共享内核：{host} 是容器，没有自己的内核日志",
    ),
    "device.kernel_log.blocked": _blocked(
        "what the kernel log tells of {card} is explained by another check: {observed}",
        "内核日志中 {card} 的记录已由其他检查项说明：{observed}",
    ),
    "device.processes.free": _cause(PASS, "nobody holds {card}", "没有进程占用 {card}"),
    "device.processes.held": _cause(
        FAIL,
        "{card} should be free and is held by {names}",
        "{card} 应空闲，却被占用：{names}",
        "See whose job it is (squeue, the container runtime, ps). Left over from a job that ended: end it; one that "
        "can't "
        "be killed hangs in the driver, and the node wants a reboot. A held card can't be reset.",
        "查明属于哪个作业（squeue、容器运行时、ps）。作业结束后的残留进程应结束；无法杀死的进程挂在驱动中，节点需要重"
        "启。被占用的"
        "卡无法复位。",
    ),
    "device.processes.allowed": _cause(
        NOT_APPLICABLE,
        "{card} may be in use (cluster_processes_allowed)",
        "{card} 允许被使用（cluster_processes_allowed）",
    ),
    "device.processes.unknown": _cause(
        UNKNOWN,
        "not all processes could be asked whether they hold {card}",
        "无法确认是否有进程占用 {card}：部分进程无法查询",
        "Verify as root: the open files of others can't be seen without it.",
        "请以 root 验收：否则看不到其他用户进程打开的文件。",
        severity=WARNING,
    ),
    "device.processes.no_node": _cause(
        UNKNOWN,
        "nothing tells the device node of {card}, so nobody could look who has it open",
        "无法得知 {card} 的设备节点，因此无法查看哪些进程打开了它",
        "The vendor's tool lists what computes only. Look for the node (ls /dev): udev or the driver did not make it, "
        "or a container was not given it.",
        "厂商工具只列出正在计算的进程。请检查设备节点（ls /dev）：可能 udev 或驱动未创建，或容器未获得该节点。",
        severity=WARNING,
    ),
    "device.processes.blocked": _blocked("{card} could not be asked who holds it", "无法查询 {card} 被谁占用"),
    # ------------------------------------------------------------------ link
    "device.link_width.ok": _cause(PASS, "{card}: x{observed}", "{card}：x{observed}"),
    "device.link_width.narrow": _cause(
        FAIL,
        "{card} runs at x{observed}, it can do x{expected}{hop}",
        "{card} 链路宽度为 x{observed}，能力为 x{expected}{hop}",
        "Lanes are missing, at any load. Drain, power off, reseat the card and its riser or cable, look for dust "
        "and bent contacts; check the BIOS for bifurcation. If the width comes back only in another slot, the slot "
        "or riser is bad; if it follows the card, the card is.",
        "链路缺少通道，与负载无关。排空并断电，重新插拔该卡及其转接卡或线缆，检查灰尘与弯曲触点，并检查 BIOS 通道拆"
        "分设置。若换槽位后恢复，则是槽位或转接卡故障；若随卡而走，则是卡故障。",
    ),
    "device.link_width.below_declared": _cause(
        FAIL,
        "{card} can do x{observed} at most, x{expected} are declared",
        "{card} 最大链路宽度只有 x{observed}，声明为 x{expected}",
        "It is another product than declared, or the declaration is wrong: compare the model and correct "
        "cluster_accelerator_link_width or the card.",
        "可能是与声明不同的产品，或声明有误：核对型号后修正 cluster_accelerator_link_width 或更换该卡。",
    ),
    "device.link_width.unknown": _cause(
        UNKNOWN,
        "the link width of {card} could not be judged: {detail}",
        "无法判定 {card} 的链路宽度：{detail}",
        "Read current_link_width and max_link_width of the address under /sys/bus/pci/devices; nothing there means "
        "the card does not answer on the bus, or the address is not known.",
        "查看 /sys/bus/pci/devices 下该地址的 current_link_width 与 max_link_width；若无内容，说明该卡在总线上无应答"
        "或地址未知。",
    ),
    "device.link_width.disabled": _cause(
        NOT_APPLICABLE,
        "the profile does not judge the link width of {card}",
        "硬件配置不要求判定 {card} 的链路宽度",
        "cluster_link_width_judged is false for this node type: right only for products that shed lanes when idle.",
        "该节点类型的 cluster_link_width_judged 为 false：仅适用于空闲时会减少通道的产品。",
    ),
    "device.link_width.blocked": _blocked("the link of {card} could not be read", "无法读取 {card} 的链路"),
    "device.link_speed.ok": _cause(PASS, "{card}: {observed:g} GT/s", "{card}：{observed:g} GT/s"),
    "device.link_speed.slow": _cause(
        FAIL,
        "{card} runs at {observed:g} GT/s under load, it can do {expected:g} GT/s",
        "{card} 带载链路速率为 {observed:g} GT/s，能力为 {expected:g} GT/s",
        "Look for corrected PCIe errors (AER) of the address in the kernel log and for a speed limit of the slot in "
        "the BIOS. Retrain with a cold boot, then reseat card and riser; a card that stays slow in another slot is "
        "bad.",
        "在内核日志中查该地址的 PCIe 可纠正错误（AER），并检查 BIOS 是否限制了槽位速率。冷启动重新训练链路，然后重新"
        "插拔卡与转接卡；换槽位后仍然慢的卡即为故障卡。",
    ),
    "device.link_speed.limited": _cause(
        FAIL,
        "the path to {card} is limited by the bridge {hop}, whatever the load; the card can do {expected:g} GT/s",
        "通往 {card} 的路径受上游网桥 {hop} 限制，与负载无关；该卡能力为 {expected:g} GT/s",
        "The card is not at fault: look at width and speed of the named bridge with lspci -vv (LnkCap, LnkSta). A "
        "slot or riser of an older generation, a BIOS limit or a downtrained switch uplink are the usual reasons.",
        "卡本身没有问题：用 lspci -vv 查看该网桥的宽度与速率（LnkCap、LnkSta）。常见原因是旧一代的槽位或转接卡、"
        "BIOS 限速，或交换芯片上行链路降级。",
    ),
    "device.link_speed.below_declared": _cause(
        FAIL,
        "{card} can do {observed:g} GT/s at most, {expected:g} GT/s are declared",
        "{card} 最大链路速率只有 {observed:g} GT/s，声明为 {expected:g} GT/s",
        "It is another product than declared, or the declaration is wrong: compare the model and correct "
        "cluster_accelerator_link_speed_gts or the card.",
        "可能是与声明不同的产品，或声明有误：核对型号后修正 cluster_accelerator_link_speed_gts 或更换该卡。",
    ),
    "device.link_speed.no_reading": _cause(
        UNKNOWN,
        "there is no reading under load that is young enough of {card}, idle at {observed:g} of {expected:g} GT/s",
        "没有 {card} 足够新的带载读数，空闲时为 {observed:g} GT/s（能力 {expected:g} GT/s）",
        "No fault: an idle card lowers its speed. Let a job use the cards while the node looks (accel-check.timer, or "
        "accelctl check --keep by hand); the reading holds for cluster_link_reading_max_age_hours.",
        "并非故障：空闲的卡会降低链路速率。在作业使用这些卡时让节点读取一次（accel-check.timer，或手工执行 accelctl "
        "check --keep）；读数在 cluster_link_reading_max_age_hours 内有效。",
        severity=WARNING,
    ),
    "device.link_speed.unknown": _cause(
        UNKNOWN,
        "the link speed of {card} could not be judged: {detail}",
        "无法判定 {card} 的链路速率：{detail}",
        "Read current_link_speed and max_link_speed of the address under /sys/bus/pci/devices.",
        "查看 /sys/bus/pci/devices 下该地址的 current_link_speed 与 max_link_speed。",
        severity=WARNING,
    ),
    "device.link_speed.blocked": _blocked("the link of {card} could not be read", "无法读取 {card} 的链路"),
    # ------------------------------------------------------------------ driver stack
    "device.driver_stack.ok": _cause(PASS, "{part} as it should be: {detail}", "{part}正常：{detail}"),
    "device.driver_stack.packages_ok": _cause(
        PASS, "all {number} packages of the set are as declared", "驱动包集合的 {number} 个包均与声明一致"
    ),
    "device.driver_stack.next_boot_ok": _cause(
        PASS, "kernel {kernel} of the next boot has the module", "下次启动的内核 {kernel} 已有驱动模块"
    ),
    "device.driver_stack.fabric_manager_not_required": _cause(
        PASS,
        "no switch between the cards: the fabric manager is not needed",
        "加速卡之间没有交换芯片：不需要 Fabric Manager",
    ),
    "device.driver_stack.shared_kernel": _cause(
        NOT_APPLICABLE,
        "shared kernel: the kernel module belongs to the machine that {host} runs on",
        "共享内核：内核模块属于 {host} 所在的物理机",
    ),
    "device.driver_stack.library_mismatch": _cause(
        FAIL,
        "the libraries are {library}, the loaded module {kernel} is the pinned {pin}: the packages "
        "drifted{off}{brought}",
        "用户态库为 {library}，已加载模块 {kernel} 即锁定版本 {pin}：是软件包发生了偏移{off}{brought}",
        "Do not reboot: that would load what drifted in. Install the packages of the pinned version again (the role "
        "driver does it in one transaction) and hold them; programs that start then work at once. Then close what let "
        "them go: device.version_lock names it.",
        "不要重启：重启会加载偏移后的版本。请将软件包装回锁定版本（driver 角色在一个事务内完成）并 hold，之后启动的程序"
        "即可正常工作。然后堵住其来源：device.version_lock 会指出缺少哪道锁。",
    ),
    "device.driver_stack.reboot_needed": _cause(
        FAIL,
        "module {observed} is loaded, {expected} is pinned, installed and built for the kernel of the next boot",
        "已加载模块为 {observed}；锁定版本 {expected} 已安装，并已为下次启动的内核编译",
        "Drain the node and reboot it, or unload and load the module while nothing holds the cards.",
        "排空节点后重启；或在没有进程占用加速卡时卸载并重新加载模块。",
    ),
    "device.driver_stack.module_not_built": _cause(
        FAIL,
        "module {kernel} is loaded and the libraries are the pinned {pin}, but kernel {next} of the next boot has no "
        "module of that version",
        "已加载模块为 {kernel}，用户态库为锁定版本 {pin}，但下次启动的内核 {next} 没有该版本的模块",
        "Do not reboot yet. Look at dkms status and the end of /var/lib/dkms/*/*/build/make.log: headers of that "
        "kernel are often missing. Build the module (dkms autoinstall -k), then drain and reboot.",
        "先不要重启。查看 dkms status 与 /var/lib/dkms/*/*/build/make.log 末尾：常见原因是缺少该内核的头文件。编译模块"
        "（dkms autoinstall -k）后再排空并重启。",
    ),
    "device.driver_stack.mismatch": _cause(
        FAIL,
        "the libraries are {library}, the loaded module is {kernel}, pinned is {pin}{off}{brought}",
        "用户态库为 {library}，已加载模块为 {kernel}，锁定版本为 {pin}{off}{brought}",
        "Decide which version is right and declare it as cluster_driver_version, then run the driver role on the "
        "drained node. In a container the module is the machine's: there its driver decides.",
        "确定正确的版本并声明为 cluster_driver_version，排空节点后执行 driver 角色。容器内的模块属于物理机，以物理机的"
        "驱动为准。",
    ),
    "device.driver_stack.module_off_pin": _cause(
        FAIL,
        "module {observed} is loaded, {expected} is pinned{brought}",
        "已加载模块为 {observed}，锁定版本为 {expected}{brought}",
        "Run the driver role on the drained node, or correct the declared version. The next boot would not load the "
        "pinned version either.",
        "排空节点后执行 driver 角色，或更正声明的版本。直接重启也不会加载锁定版本。",
    ),
    "device.driver_stack.not_loaded": _cause(
        FAIL,
        "the kernel module {expected} is not loaded{detail}",
        "内核模块 {expected} 未加载{detail}",
        "With a module for the running kernel: modprobe it and read dmesg (Secure Boot refuses unsigned modules). "
        "Without one: install the headers of this kernel and build it (dkms autoinstall), or boot the pinned kernel.",
        "若当前内核已有模块：用 modprobe 加载并查看 dmesg（Secure Boot 会拒绝未签名模块）。若没有：安装当前内核的头文件"
        "并编译（dkms autoinstall），或启动锁定的内核。",
    ),
    "device.driver_stack.wrong_module": _cause(
        FAIL,
        "{observed} is loaded in the place of {expected}",
        "加载的是 {observed}，而不是 {expected}",
        "Blacklist it in /etc/modprobe.d, write the initramfs anew (it may load it early), then reboot the drained "
        "node; the driver role does all but the reboot.",
        "在 /etc/modprobe.d 中将其加入黑名单，重新生成 initramfs（它可能在早期被加载），排空节点后重启；除重启外均由 "
        "driver 角色完成。",
    ),
    "device.driver_stack.kernel_moved": _cause(
        FAIL,
        "kernel {kernel} boots next and has no module of the driver{detail}",
        "下次将启动内核 {kernel}，它没有驱动模块{detail}",
        "Do not reboot. Build the module for that kernel (its headers, then dkms autoinstall -k), or remove it and "
        "boot the pinned one. Hold kernel image and headers with the driver.",
        "不要重启。为该内核编译模块（先装头文件，再 dkms autoinstall -k），或删除该内核并启动锁定的内核。内核与头文件应"
        "与驱动一起 hold。",
    ),
    "device.driver_stack.next_boot_without": _cause(
        FAIL,
        "the declared kernel {kernel} boots next and has no module of the driver{detail}",
        "下次启动的正是声明的内核 {kernel}，但它没有驱动模块{detail}",
        "Do not reboot. Run the driver role, which builds it; where it can't, the end of "
        "/var/lib/dkms/*/*/build/make.log says why.",
        "不要重启。执行 driver 角色进行编译；若失败，原因见 /var/lib/dkms/*/*/build/make.log 末尾。",
    ),
    "device.driver_stack.kernel_off_pin": _cause(
        FAIL,
        "kernel {observed} boots next, {expected} is declared",
        "下次将启动内核 {observed}，声明的内核为 {expected}",
        "Look who installed it (/var/log/apt/history.log) and hold what brings newer ones (the meta "
        "package of linux-image-*). Remove it (the driver role does with driver_kernel_removal_allowed), "
        "or declare it as the kernel of the set.",
        "查明由谁安装（/var/log/apt/history.log），并 hold 会带来新内核的包（如 linux-image-* 元包）。删除该内核"
        "（driver 角色在 driver_kernel_removal_allowed 下会执行），或将其声明为该集合的内核。",
    ),
    "device.driver_stack.kernel_reboot_needed": _cause(
        FAIL,
        "kernel {observed} is running; the declared {expected} is installed, has the module and boots next",
        "当前内核为 {observed}；声明的内核 {expected} 已安装并带有模块，下次启动生效",
        "Drain the node and reboot it; the driver role does with driver_reboot_allowed.",
        "排空节点后重启；在 driver_reboot_allowed 下由 driver 角色完成。",
    ),
    "device.driver_stack.next_boot_differs": _cause(
        FAIL,
        "the next boot (kernel {kernel}) loads module {observed} instead of the pinned {expected}{brought}",
        "下次启动（内核 {kernel}）将加载模块 {observed}，而不是锁定的 {expected}{brought}",
        "Do not reboot. Run the driver role, which brings the pinned version back and builds it for that kernel.",
        "不要重启。执行 driver 角色，它会装回锁定版本并为该内核编译。",
    ),
    "device.driver_stack.next_boot_unknown": _cause(
        UNKNOWN,
        "what the next boot loads could not be told: {detail}",
        "无法得知下次启动将加载什么：{detail}",
        "Look at /boot, the default of the boot loader and modinfo -k KERNEL. A machine that boots over the network "
        "has its kernel elsewhere.",
        "查看 /boot、引导器的默认项与 modinfo -k KERNEL。网络启动的机器，其内核在别处。",
        severity=WARNING,
    ),
    "device.driver_stack.fabric_manager_version": _cause(
        FAIL,
        "fabric manager {observed} does not fit driver {expected}{log}",
        "Fabric Manager {observed} 与驱动 {expected} 不匹配{log}",
        "Install the service of exactly the driver's version, in one transaction with it; hold both.",
        "安装与驱动版本完全一致的服务（与驱动在同一事务中），并将两者一起 hold。",
    ),
    "device.driver_stack.fabric_manager_not_running": _cause(
        FAIL,
        "{service} is {observed}: the cards are listed, but every job fails (error 802){log}",
        "{service} 状态为 {observed}：加速卡能列出，但所有作业都会失败（错误 802）{log}",
        "systemctl enable --now the service; if it ends at once, its log in the evidence says why. Jobs that started "
        "before must be started again.",
        "执行 systemctl enable --now 启动该服务；若立即退出，见证据中的日志。此前启动的作业需重新启动。",
    ),
    "device.driver_stack.cdi_stale": _cause(
        FAIL,
        "the device file of containers (CDI) was made with driver {observed}, {expected} is there",
        "容器设备文件（CDI）由驱动 {observed} 生成，现有驱动为 {expected}",
        "Generate it anew after the driver is loaded, with the container role or with the vendor's generator; a file "
        "in /run as well as in /etc may be read, remove the older one.",
        "驱动加载后重新生成（由 container 角色或厂商的生成工具完成）；/run 与 /etc 下的文件都会被读取，请删除"
        "较旧的那个。",
        nvidia=_NVIDIA_CTK,
        amd=_AMD_CTK,
    ),
    "device.driver_stack.half_configured": _cause(
        FAIL,
        "packages are half installed: {names}",
        "有软件包处于半安装状态：{names}",
        "dpkg --configure -a as root, and look at what it says; nothing can be installed or pinned before.",
        "以 root 执行 dpkg --configure -a 并查看其输出；在此之前无法安装或锁定任何包。",
    ),
    "device.driver_stack.missing": _cause(
        FAIL,
        "packages of the set are not installed: {names}",
        "驱动包集合中有包未安装：{names}",
        "Run the driver role; if it refuses, the repository does not have the declared version.",
        "执行 driver 角色；若被拒绝，说明软件源中没有声明的版本。",
    ),
    "device.driver_stack.off_pin": _cause(
        FAIL,
        "packages are not of the declared version: {names}{brought}",
        "有软件包与声明的版本不符：{names}{brought}",
        "Run the driver role, which brings the whole set to the declared version in one transaction and holds it.",
        "执行 driver 角色，它会在一个事务内将整套包装到声明的版本并 hold。",
    ),
    "device.driver_stack.unknown": _cause(
        UNKNOWN,
        "{part} could not be judged: {detail}",
        "无法判定 {part}：{detail}",
        "The evidence names what could not be read; ask for it by hand as root.",
        "证据中列出了无法读取的内容；请以 root 手工查询。",
    ),
    "device.driver_stack.installers_ok": _cause(
        PASS,
        "all {number} parts that programs installed are of the declared version",
        "由安装程序安装的 {number} 个部分均为声明的版本",
    ),
    "device.driver_stack.installer_unfinished": _cause(
        FAIL,
        "a program that installs the driver did not end well: {names}",
        "驱动安装程序没有正常结束：{names}",
        "What it left may tell the right version and lack half of its files. Read its log below "
        "/var/lib/accel/installers, then have the drained node's part installed again: the driver role with "
        "driver_repeat_allowed.",
        "残留内容可能显示正确的版本号却缺少一半文件。请查看 /var/lib/accel/installers 下的日志，然后在排空的节点上"
        "重新安装该部分：执行 driver 角色并设置 driver_repeat_allowed。",
    ),
    "device.driver_stack.installer_off_pin": _cause(
        FAIL,
        "parts that programs installed are not of the declared version: {names}",
        "由安装程序安装的部分与声明的版本不符：{names}",
        "Driver, firmware and runtime are released as one set. Run the driver role on the drained node, or correct the "
        "declared versions by the vendor's table of releases.",
        "驱动、固件与运行时按配套版本发布。请在排空的节点上执行 driver 角色，或按厂商配套表更正声明的版本。",
    ),
    "device.driver_stack.follows": _blocked(
        "the device file of containers (CDI) was made with driver {observed}; container.cdi says which file it is",
        "容器设备文件（CDI）由驱动 {observed} 生成；container.cdi 说明是哪个文件",
    ),
    "device.driver_stack.blocked": _blocked(
        "{part} follows the kernel module or the libraries, which are not as they should be",
        "{part} 取决于内核模块与用户态库，而它们并不正确",
    ),
    # ------------------------------------------------------------------ version lock
    "device.version_lock.ok": _cause(
        PASS,
        "an upgrade of the {number} packages was tried and refused; each is held and pinned",
        "已对 {number} 个包试升级并被拒绝；每个包均已 hold 并锁定",
    ),
    "device.version_lock.upgraded": _cause(
        FAIL,
        "an upgrade was tried and not refused: {names} would change{detail}",
        "试升级未被拒绝：{names} 会发生变化{detail}",
        "Run the driver role, which writes preference, hold and blacklist. Where all three are there, something "
        "overrules them: APT::Ignore-Hold, a preference with a higher priority, a file in preferences.d whose name apt "
        "ignores.",
        "执行 driver 角色写入优先级、hold 与黑名单。若三者俱在，说明被其他设置覆盖：APT::Ignore-Hold、更高优先级的设"
        "置、或 preferences.d 中文件名被 apt 忽略。",
    ),
    "device.version_lock.not_held": _cause(
        FAIL,
        "packages of the set are not held: {names}",
        "驱动包集合中有包未 hold：{names}",
        "The upgrade was refused by something else. Run the driver role, or apt-mark hold by hand; find out who took "
        "the hold away (/var/log/dpkg.log, shell history).",
        "升级是被其他设置拒绝的。执行 driver 角色，或手工 apt-mark hold；并查明是谁取消了 hold（/var/log/dpkg.log、"
        "shell 历史）。",
        severity=WARNING,
    ),
    "device.version_lock.not_pinned": _cause(
        FAIL,
        "no apt preference keeps the version of: {names}",
        "以下包没有 apt 优先级锁定：{names}",
        "The upgrade was refused by the hold alone, which one command takes away. Run the driver role; apt-cache "
        "policy shows 1001 at the pinned version.",
        "升级仅靠 hold 拒绝，而一条命令即可取消 hold。执行 driver 角色；apt-cache policy 应在锁定版本处显示 1001。",
        severity=WARNING,
    ),
    "device.version_lock.not_blacklisted": _cause(
        FAIL,
        "unattended-upgrade is not told to leave alone: {names}",
        "unattended-upgrade 的黑名单缺少：{names}",
        "Run the driver role, which adds them to Unattended-Upgrade::Package-Blacklist; apt-config dump shows the "
        "list.",
        "执行 driver 角色，将其加入 Unattended-Upgrade::Package-Blacklist；apt-config dump 可查看该列表。",
        severity=WARNING,
    ),
    "device.version_lock.blacklist_unknown": _cause(
        UNKNOWN,
        "whether unattended-upgrade leaves the packages alone could not be told: {detail}",
        "无法得知 unattended-upgrade 是否会放过这些包：{detail}",
        "Run apt-config dump as root and look at what it complains about.",
        "以 root 执行 apt-config dump，查看其报错。",
        severity=WARNING,
    ),
    "device.version_lock.installers_ok": _cause(
        PASS,
        "no package has the files of the {number} parts that programs installed: no package manager upgrades them; "
        "that somebody runs such a program is not forbidden",
        "由安装程序安装的 {number} 个部分不属于任何软件包，包管理器不会升级它们；但无法禁止有人再次运行安装程序",
    ),
    "device.version_lock.installer_owned": _cause(
        FAIL,
        "parts that programs installed belong to packages, which are upgraded with them: {names}",
        "由安装程序安装的部分属于软件包，会随软件包升级：{names}",
        "Two sources have installed the same part. Remove one of them: the package, or the part with its program's own "
        "option for it; then install the other again.",
        "同一部分由两种来源安装。请去掉其一：卸载软件包，或用安装程序自带的卸载选项卸载，然后重新安装另一种。",
    ),
    "device.version_lock.installer_untold": _cause(
        UNKNOWN,
        "whether a package has the files of these parts could not be told: {names}",
        "无法得知以下部分的文件是否属于软件包：{names}",
        "Declare the file that tells the version (version_file): a command does not say where its answer comes from. "
        "See that dpkg-query or rpm answers on the host.",
        "请声明给出版本的文件（version_file）：命令不会说明其答案来自何处。并确认主机上 dpkg-query 或 rpm 可用。",
        severity=WARNING,
    ),
    "device.version_lock.trial": _cause(
        UNKNOWN,
        "whether an upgrade would be refused could not be tried: {detail}",
        "无法试验升级是否会被拒绝：{detail}",
        "Wait for another package manager to end, run dpkg --configure -a and apt-get check as root; then verify "
        "again.",
        "等待其他包管理进程结束，以 root 执行 dpkg --configure -a 与 apt-get check，然后重新验收。",
    ),
    # ------------------------------------------------------------------ driver version
    "device.driver_version.ok": _cause(PASS, "driver {observed} ({reason})", "驱动版本 {observed}（{reason}）"),
    "device.driver_version.differs": _cause(
        FAIL,
        "driver {observed} instead of {expected} ({reason})",
        "驱动版本为 {observed}，应为 {expected}（{reason}）",
        "Declare cluster_driver_version for the node type, drain this node and bring it to that version; hold the "
        "packages so that no unattended upgrade moves one node alone.",
        "为该节点类型声明 cluster_driver_version，排空该节点并安装到该版本；锁定软件包，避免自动升级只改动个别节点。",
    ),
    "device.driver_version.no_majority": _cause(
        UNKNOWN,
        "driver {observed}, and nobody knows whether that is right: {detail}",
        "驱动版本为 {observed}，是否正确无从判定：{detail}",
        "Decide which version the node type is to run and declare it in cluster_driver_version, in full. Where nodes "
        "did not tell theirs, bring them back first.",
        "请决定该节点类型应采用的版本，并在 cluster_driver_version 中完整声明；若有节点未给出版本，请先将其恢复。",
    ),
    "device.driver_version.unknown": _cause(
        UNKNOWN,
        "the driver version of {host} could not be told: {detail}",
        "无法得知 {host} 的驱动版本：{detail}",
        "Check that the driver is loaded (device.driver) and that the variables of this host can be templated. Declare "
        "the full version where several releases fit a short one.",
        "检查驱动是否已加载（device.driver），以及该主机的变量能否正常展开；若简写的版本对应多个发布，请声明完整版本。",
    ),
    "device.driver_version.blocked": _blocked(
        "no card of {host} that is declared told its driver version", "{host} 没有任何所声明的卡给出驱动版本"
    ),
    "device.driver_version.follows": _blocked(
        "the driver is {observed}, not {expected}; device.driver_stack says which part of it is wrong",
        "驱动版本为 {observed}，应为 {expected}；device.driver_stack 说明其中哪一部分有问题",
    ),
    "device.driver_version.not_applicable": _cause(NOT_APPLICABLE, "{host} has no accelerators", "{host} 没有加速卡"),
    # ------------------------------------------------------------------ observation
    "device.observation.ok": _cause(PASS, "everything was read{note}", "所需内容均已读取{note}"),
    "device.observation.errors": _cause(
        UNKNOWN,
        "something could not be read, or is out of the ordinary: {detail}",
        "有内容无法读取或存在异常：{detail}",
        "The other checks were judged without it. Move a damaged or foreign record of the node away: "
        "accel.cluster.driver writes slots.json anew, the timer of the agent links.json. Correct a wrong "
        "cluster_accelerator_slots in the inventory. For what a tool said, run its command as root.",
        "其余检查是在缺少这些内容的情况下判定的。请移走节点上损坏的或属于其他主机的记录：slots.json 由 "
        "accel.cluster.driver 重新写入，links.json 由 agent 的定时器重新写入。cluster_accelerator_slots 有误时请修正清"
        "单；若是工具的输出，请以 root 执行该命令查看。",
        severity=WARNING,
    ),
    # ------------------------------------------------------------------ baseline
    "baseline.clock.ok": _cause(PASS, "the clock is synchronised", "时钟已同步"),
    "baseline.clock.unsynchronised": _cause(
        FAIL,
        "the clock of {host} is not synchronised with a declared server",
        "{host} 的时钟未与声明的服务器同步",
        "chronyc sources -v shows whether the servers answer (a cut network, a firewall on 123/udp) and which is "
        "chosen. Without one time for all, munge refuses credentials, TLS fails and logs can't be put in order.",
        "用 chronyc sources -v 查看服务器是否应答（网络中断、123/udp 被防火墙拦截）及选中了哪一个。时间不统一会使 "
        "munge 拒绝凭据、TLS 失败、日志无法对齐。",
    ),
    "baseline.clock.skewed": _cause(
        FAIL,
        "the clock of {host} is off by {observed[offset_milliseconds]} ms, allowed are "
        "{expected[offset_milliseconds]} ms",
        "{host} 的时钟偏差为 {observed[offset_milliseconds]} 毫秒，允许 {expected[offset_milliseconds]} 毫秒",
        "If only this node is off, step it with chronyc makestep after draining; if several are off by the same "
        "amount, their time server lies.",
        "若只有该节点偏差，排空后执行 chronyc makestep 校正；若多个节点偏差相同，则是时间服务器有误。",
    ),
    "baseline.clock.differs": _cause(
        FAIL,
        "time service of {host} differs from the declaration: {names}",
        "{host} 的时间服务与声明不符：{names}",
        "Run the baseline playbook on this host and look who changed the file in between.",
        "对该主机执行 baseline 剧本，并查明期间谁改动了配置。",
    ),
    "baseline.clock.shared_kernel": _cause(
        NOT_APPLICABLE, "shared kernel: {host} does not own its clock", "共享内核：{host} 不拥有自己的时钟"
    ),
    "baseline.clock.unknown": _cause(
        UNKNOWN,
        "the clock of {host} could not be judged: {names} gave no readable answer",
        "无法判定 {host} 的时钟：{names} 没有可读的应答",
        "Check that the service runs (systemctl status chrony or chronyd) and that chronyc tracking answers as root.",
        "检查服务是否运行（systemctl status chrony 或 chronyd），以及 root 下 chronyc tracking 是否应答。",
    ),
    "baseline.time_zone.ok": _cause(PASS, "the time zone is the declared one", "时区与声明一致"),
    "baseline.time_zone.differs": _cause(
        FAIL,
        "the time zone of {host} is not the declared one: {observed[time_zone]} instead of {expected[time_zone]}",
        "{host} 的时区与声明不符：为 {observed[time_zone]}，应为 {expected[time_zone]}",
        "Run the baseline playbook on this host; timedatectl shows the zone in force.",
        "对该主机执行 baseline 剧本；timedatectl 可查看当前时区。",
    ),
    "baseline.time_zone.unknown": _cause(
        UNKNOWN,
        "the time zone of {host} could not be read",
        "无法读取 {host} 的时区",
        "/etc/localtime should be a link into /usr/share/zoneinfo; timedatectl set-timezone repairs it.",
        "/etc/localtime 应为指向 /usr/share/zoneinfo 的符号链接，可用 timedatectl set-timezone 修复。",
    ),
    "baseline.packages.ok": _cause(PASS, "every required package is installed", "必需软件包均已安装"),
    "baseline.packages.differs": _cause(
        FAIL,
        "packages missing on {host}: {names}",
        "{host} 缺少软件包：{names}",
        "Run the baseline playbook on this host; if it cannot install them, check its package sources.",
        "对该主机执行 baseline 剧本；若无法安装，请检查其软件源。",
    ),
    "baseline.packages.unknown": _cause(
        UNKNOWN,
        "the package database of {host} did not answer",
        "{host} 的软件包数据库没有应答",
        "See whether another package manager holds the lock (ps, lsof /var/lib/dpkg/lock*) or the database is damaged.",
        "检查是否有其他包管理进程持锁（ps、lsof /var/lib/dpkg/lock*），或数据库是否损坏。",
    ),
    # ------------------------------------------------------------------ containers
    "container.engine.ok": _cause(PASS, "{engine} works", "{engine} 工作正常"),
    "container.engine.absent": _cause(
        FAIL,
        "the container engine {engine} is not installed on {host}",
        "{host} 未安装容器引擎 {engine}",
        "Run the container playbook for this host; if it can't install the engine, look at the package sources.",
        "对该主机执行 container 剧本；若无法安装，请检查其软件源。",
    ),
    "container.engine.settings": _cause(
        FAIL,
        "a settings file of {engine} on {host} can't be read: {detail}",
        "{host} 上 {engine} 的配置文件无法解析：{detail}",
        "Correct the line that is named, by hand or from the backup beside the file: the container role never "
        "overwrites a file that it can't read. Docker does not start any more; podman refuses all commands "
        "(containers.conf) or those that pull (registries.conf).",
        "请手工改正所指出的行，或用同目录下的备份恢复：container 角色不会覆盖无法解析的文件。此时 Docker 无法再启动；"
        "podman 会拒绝所有命令（containers.conf）或拉取类命令（registries.conf）。",
    ),
    "container.engine.failed": _cause(
        FAIL,
        "{engine} on {host} does not work: {detail}",
        "{host} 上的 {engine} 无法工作：{detail}",
        "The words of the engine are in the evidence. For Docker look at systemctl status docker and its journal; for "
        "podman at its storage (podman info) and at what changed below /etc/containers.",
        "引擎的报错见证据。Docker 请看 systemctl status docker 及其日志；podman 请检查其存储（podman info）以及 "
        "/etc/containers 下的改动。",
    ),
    "container.engine.hung": _cause(
        UNKNOWN,
        "{engine} on {host} gave no answer in time",
        "{host} 上的 {engine} 在时限内没有应答",
        "Look for a process in state D (ps -eo pid,stat,wchan,cmd), a full or dead file system below its storage, and "
        "for another engine process that holds the lock of the storage.",
        "查找处于 D 状态的进程（ps -eo pid,stat,wchan,cmd），检查其存储所在文件系统是否写满或失联，以及是否有其他引擎进"
        "程持有存储锁。",
    ),
    "container.engine.disk_full": _cause(
        FAIL,
        "{observed} GiB are free in {detail} on {host}, {expected} GiB are needed to pull an image",
        "{host} 的 {detail} 剩余 {observed} GiB，拉取镜像需要 {expected} GiB",
        "Remove images that no job needs (podman image prune, docker image prune), or give the storage a file "
        "system of "
        "its own. A pull that runs out of space leaves nothing behind that can be used.",
        "清理无作业使用的镜像（podman image prune、docker image prune），或为存储单独划分文件系统。空间不足而中断的拉取"
        "不会留下可用的镜像。",
    ),
    "container.engine.unknown": _cause(
        UNKNOWN,
        "what {engine} on {host} can do is not known: {detail}",
        "无法得知 {host} 上 {engine} 的状态：{detail}",
        "Run the engine's info command by hand as root; its answer was not what this collection can read, or the free "
        "space of its storage was not told.",
        "请以 root 手工执行引擎的 info 命令：其输出无法解析，或未能得知存储的剩余空间。",
    ),
    "container.cdi.ok": _cause(PASS, "each card is offered to containers as {kind}", "各卡均以 {kind} 提供给容器"),
    "container.cdi.not_applicable": _cause(
        NOT_APPLICABLE,
        "{host} hands no cards to containers by CDI",
        "{host} 不通过 CDI 向容器提供加速卡",
    ),
    "container.cdi.absent": _cause(
        FAIL,
        "no file in /etc/cdi or /var/run/cdi of {host} defines {detail}",
        "{host} 的 /etc/cdi 与 /var/run/cdi 中没有文件定义 {detail}",
        "Run the container playbook, which writes the file or has the vendor's generator write it. What is in /var/run "
        "is gone after a reboot until its service ran.",
        "执行 container 剧本，由其写入该文件，或由厂商工具生成。/var/run 下的文件重启后会消失，直到相应服务再次运行。",
        nvidia=_NVIDIA_CTK,
        amd=_AMD_CTK,
    ),
    "container.cdi.broken": _cause(
        FAIL,
        "a CDI file on {host} is refused by every engine: {detail}",
        "{host} 上的 CDI 文件会被所有引擎拒绝：{detail}",
        "Have it written again by whoever wrote it: the container playbook for files that begin with accel-, else the "
        "vendor's generator. A file that ends too soon is one whose writing was interrupted or the disk full.",
        "由原来的生成者重新写入：accel- 开头的文件用 container 剧本，其余用厂商工具。文件不完整通常是写入被中断"
        "或磁盘写满。",
    ),
    "container.cdi.conflict": _cause(
        FAIL,
        "two files of one folder on {host} define the same devices, so engines take neither: {detail}",
        "{host} 同一目录下有两个文件定义了相同设备，引擎均不采用：{detail}",
        "Keep one of them. Where the vendor's generator runs, remove the file that begins "
        "with accel- (module cdi_spec, state absent); else remove the vendor's file and disable its service.",
        "只保留其中一个。若使用厂商工具，请删除 accel- 开头的文件（模块 cdi_spec，state 为 absent）；否则删除厂"
        "商文件并停"
        "用其服务。",
    ),
    "container.cdi.permissions": _cause(
        FAIL,
        "wrong owner or mode of what defines devices on {host}: {detail}",
        "{host} 上定义设备的文件属主或权限不当：{detail}",
        "Whoever can write such a file mounts what they like into containers, which is as good as being root: make it "
        "root's with mode 0644 (folders 0755), and find out who changed it. Mode 0600 hides it from users' containers.",
        "能写该文件的人可把任意路径挂入容器，等同于 root：请改为 root 属主、权限 0644（目录 0755），并查明是谁"
        "改动的。权限"
        "为 0600 时普通用户的容器读不到它。",
    ),
    "container.cdi.version": _cause(
        FAIL,
        "a CDI file on {host} is of a newer version than the engine takes: {detail}",
        "{host} 上 CDI 文件的版本高于引擎所支持的版本：{detail}",
        "podman 4.3 takes 0.5.0 and older, Docker before 25 none. "
        "Have the file written in that version (the module cdi_spec does), "
        "or take an "
        "engine that is newer.",
        "podman 4.3 只支持 0.5.0 及更早版本，Docker 25 之前完全不支持。"
        "请按该版本重新生成（模块 cdi_spec 即如此），或升级引擎。",
    ),
    "container.cdi.driver_version": _cause(
        FAIL,
        "a CDI file on {host} was made for another driver than the one that runs (file: made for, running): {detail}",
        "{host} 上的 CDI 文件对应的驱动版本与正在运行的不同（文件：文件版本，运行版本）：{detail}",
        "Settle which driver should run first (device.driver_stack). Then run the container playbook, which writes the "
        "file again; a service that does so at boot must be ordered after the driver.",
        "先确认应运行哪个驱动版本（device.driver_stack），再执行 container 剧本，它会重新生成该文件；开机自动生成的服务"
        "必须排在驱动之后。",
    ),
    "container.cdi.replaced": _cause(
        FAIL,
        "a CDI file on {host} offers cards that are not in this host: {detail}",
        "{host} 上的 CDI 文件提供了本机没有的加速卡：{detail}",
        "A card was replaced, moved or removed after the file was written. See device.slot for which one, then "
        "have the "
        "file written again.",
        "生成该文件之后更换、移动或拆除过加速卡。请先看 device.slot 确认是哪张卡，再重新生成该文件。",
    ),
    "container.cdi.renumbered": _cause(
        FAIL,
        "a CDI file on {host} gives another card than the one that is named: {detail}",
        "{host} 上的 CDI 文件给出的不是所指名的加速卡：{detail}",
        "Device nodes are numbered as cards are found at boot; the file is from before. Have it written again "
        "before the "
        "next job: two jobs would share a card.",
        "设备节点按开机时发现的顺序编号，该文件是之前生成的。请在下一个作业前重新生成，否则两个作业会共用一张卡。",
    ),
    "container.cdi.missing_node": _cause(
        FAIL,
        "a CDI file on {host} names device nodes that are gone: {detail}",
        "{host} 上的 CDI 文件引用了已不存在的设备节点：{detail}",
        "No container with that card starts. If device.count is well, the nodes were renumbered or are made only when "
        "first used; make them, then have the file written again.",
        "使用该卡的容器无法启动。若 device.count 正常，可能是节点重新编号，或首次使用时才创建；请先创建节点，再重新生成"
        "该文件。",
        nvidia=("nvidia-modprobe -u makes the nodes of nvidia-uvm.", "nvidia-modprobe -u 可创建 nvidia-uvm 的节点。"),
    ),
    "container.cdi.missing_library": _cause(
        FAIL,
        "a CDI file on {host} names files that are gone: {detail}",
        "{host} 上的 CDI 文件引用了已不存在的文件：{detail}",
        "The driver's packages were changed after the file was written. Look at device.driver_stack first, "
        "then have the "
        "file written again.",
        "生成该文件之后驱动软件包发生了变化。请先看 device.driver_stack，再重新生成该文件。",
    ),
    "container.cdi.lacking": _cause(
        FAIL,
        "cards of {host} that no CDI file offers: {detail}",
        "{host} 上没有任何 CDI 文件提供的加速卡：{detail}",
        "The file was written while these cards did not answer or were not there. Have it written again.",
        "生成该文件时这些卡没有应答或尚未安装，请重新生成。",
    ),
    "container.cdi.shadowed": _cause(
        FAIL,
        "one CDI file on {host} hides another: {detail}",
        "{host} 上一个 CDI 文件遮盖了另一个：{detail}",
        "Engines take the one in /var/run/cdi, which is gone after a reboot; then the other one counts, and "
        "may be old. "
        "Keep one of them.",
        "引擎采用 /var/run/cdi 中的文件，它重启后消失，届时另一个（可能已过期）会生效。请只保留一个。",
        severity=WARNING,
    ),
    "container.cdi.unreadable": _cause(
        UNKNOWN,
        "a CDI file on {host} could not be read here: {detail}",
        "无法解析 {host} 上的 CDI 文件：{detail}",
        "Engines may take it all the same: it is written in a form of YAML that this collection does not read. Ask the "
        "engine (podman run --device), or have it written as JSON.",
        "引擎可能可以读取：该文件使用了本集合不解析的 YAML 写法。请用引擎验证（podman run --device），或改写为 JSON。",
    ),
    "container.cdi.blocked": _blocked(
        "whether each card of {host} is offered to containers could not be judged: the cards did not answer",
        "加速卡没有应答，无法判定 {host} 的各卡是否都提供给容器",
    ),
    "container.cdi.follows": _blocked(
        "the CDI files of {host} are of another driver than its parts; device.driver_stack says which part is wrong",
        "{host} 的 CDI 文件与其驱动各部分版本不一；device.driver_stack 说明哪一部分有问题",
    ),
    "container.cdi.moved": _blocked(
        "the CDI files of {host} were written for other cards or places; device.slot says which have changed",
        "{host} 的 CDI 文件是为其他加速卡或位置生成的；device.slot 说明哪些发生了变化",
    ),
    "container.cdi.unknown": _cause(
        UNKNOWN,
        "how cards of {host} reach containers is not known: {detail}",
        "无法得知 {host} 的加速卡如何提供给容器：{detail}",
        "For a vendor whose kind the collection does not know, declare container_cdi_kind (vendor.com/class). If the "
        "folders could not be read, look at them by hand as root.",
        "若本集合不知道该厂商的 CDI 类型，请声明 container_cdi_kind（vendor.com/class）；若目录无法读取，请以 "
        "root 手工检查。",
    ),
    "container.registry.ok": _cause(PASS, "{subject} answers {host}", "{subject} 对 {host} 应答正常"),
    "container.registry.not_applicable": _cause(
        NOT_APPLICABLE, "no registry is declared for {host}", "{host} 没有声明镜像仓库"
    ),
    "container.registry.unreachable": _cause(
        FAIL,
        "{host} can't reach the registry {subject}: {detail}",
        "{host} 无法连接镜像仓库 {subject}：{detail}",
        "If all nodes say so, look at the registry: systemctl status of its service, its port, its disk. If this one "
        "alone does, look at name resolution, route and firewall of the node. Jobs whose image is on the node still "
        "run; nothing can be pulled.",
        "若所有节点都如此，请检查仓库服务状态、端口与磁盘；若仅此节点，请检查其域名解析、路由与防火墙。节点上已"
        "有镜像的作"
        "业仍可运行，但无法再拉取。",
    ),
    "container.registry.scheme": _cause(
        FAIL,
        "{subject} is asked in another protocol than it speaks (asked, speaks): {detail}",
        "访问 {subject} 所用协议与其实际协议不符（所用，实际）：{detail}",
        "Declare the scheme that the registry speaks. A registry without TLS needs an entry in registries.conf "
        "(insecure "
        "= true) or daemon.json (insecure-registries) on every node; better give it a certificate of the site's CA.",
        "请按仓库实际使用的协议声明。无 TLS 的仓库需在每个节点的 registries.conf（insecure = true）或 daemon.json（"
        "insecure-registries）中登记；更好的做法是为其签发站点 CA 证书。",
    ),
    "container.registry.ca_foreign": _cause(
        FAIL,
        "{host} does not trust the certificate of {subject}: {detail}",
        "{host} 不信任 {subject} 的证书：{detail}",
        "Put the CA that signed it into /etc/containers/certs.d/<address>/ca.crt (Docker: /etc/docker/certs.d) by the "
        "container playbook. If the CA did not change, another server answers under this name: find out which.",
        "用 container 剧本把签发该证书的 CA 放到 /etc/containers/certs.d/<地址>/ca.crt（Docker 为 "
        "/etc/docker/certs.d）。若 "
        "CA 未变，则说明应答的是另一台服务器，请查明。",
    ),
    "container.registry.ca_file": _cause(
        FAIL,
        "the CA file for {subject} on {host} can't be used: {detail}",
        "{host} 上用于 {subject} 的 CA 文件不可用：{detail}",
        "The file is missing, empty or no certificate in PEM. Run the container playbook, which writes it again.",
        "该文件缺失、为空或不是 PEM 证书。请执行 container 剧本重新写入。",
    ),
    "container.registry.expired": _cause(
        FAIL,
        "the certificate of {subject} has expired: {detail}",
        "{subject} 的证书已过期：{detail}",
        "Run the registry playbook, which renews it and restarts the registry; one of your own has to be "
        "brought anew first. "
        "If only some nodes say so, look at their clocks first (baseline.clock).",
        "请执行 registry 剧本：它会续签证书并重启仓库；自备证书须先更换。若只有部分节点如此，"
        "先检查其时钟（baseline.clock）。",
    ),
    "container.registry.not_yet_valid": _cause(
        FAIL,
        "for the clock of {host}, the certificate of {subject} is not valid yet: {detail}",
        "按 {host} 的时钟，{subject} 的证书尚未生效：{detail}",
        "The clock of the node is behind, or that of the host that made the certificate was ahead: look at "
        "baseline.clock of both before anything is renewed.",
        "节点时钟偏慢，或签发主机的时钟曾偏快：续签之前先看两者的 baseline.clock。",
    ),
    "container.registry.name_mismatch": _cause(
        FAIL,
        "the certificate of {subject} is for another name: {detail}",
        "{subject} 的证书属于其他名称：{detail}",
        "Use the name that is in the certificate, or renew it with this name (and address) among its "
        "alternative names.",
        "请使用证书中的名称，或重新签发，将该名称（及地址）加入备用名称（SAN）。",
    ),
    "container.registry.login": _cause(
        FAIL,
        "{subject} takes no login of {host}: {detail}",
        "{subject} 未接受 {host} 的登录：{detail}",
        "Compare user and password in the vault with those of the registry (htpasswd); after a rotation run the "
        "registry playbook first, then the container playbook. Without a declared login, declare one.",
        "请核对保密库与仓库（htpasswd）中的用户名和密码；轮换密码后先执行 registry 剧本、再执行 container 剧本。未"
        "声明登录信息"
        "的，请声明。",
    ),
    "container.registry.forbidden": _cause(
        FAIL,
        "{subject} forbids {host} what it asks for: {detail}",
        "{subject} 拒绝了 {host} 的访问：{detail}",
        "The login is good, but may not read this: look at the rights of the account and at allow-lists before the "
        "registry (proxy, firewall).",
        "登录有效但无读取权限：请检查该账号的权限，以及仓库前的访问白名单（代理、防火墙）。",
    ),
    "container.registry.no_proxy": _cause(
        FAIL,
        "a proxy is set on {host} and NO_PROXY does not name {subject}: {detail}",
        "{host} 设置了代理，而 NO_PROXY 未包含 {subject}：{detail}",
        "The engine asks the proxy for the internal registry, which can't reach it or hides it: add the "
        "registry's name "
        "to NO_PROXY in the file that is named, and restart the service of Docker.",
        "引擎会经代理访问内部仓库，而代理无法到达或会造成干扰：请在所指文件的 NO_PROXY 中加入仓库名，并重启 "
        "Docker 服务。",
    ),
    "container.registry.image_absent": _cause(
        FAIL,
        "{subject} does not have what is declared: {detail}",
        "{subject} 中没有所声明的镜像：{detail}",
        "Nodes that hold the image still run it, but none can pull it again: a new node, or one that is "
        "reinstalled. Push "
        "it again, and look at the garbage collection of the registry.",
        "已有该镜像的节点仍可运行，但无法再次拉取（新增或重装的节点）。请重新推送，并检查仓库的垃圾回收。",
    ),
    "container.registry.corrupt": _cause(
        FAIL,
        "{subject} delivers other bytes than their digest: {detail}",
        "{subject} 返回的内容与其摘要不符：{detail}",
        "Engines refuse such an image. Look at the registry's disk and for a proxy or cache between that changes "
        "answers; push the image again.",
        "引擎会拒绝这样的镜像。请检查仓库磁盘，以及途中是否有会改动内容的代理或缓存，然后重新推送镜像。",
    ),
    "container.registry.error": _cause(
        FAIL,
        "{subject} does not answer {host} as a registry does: {detail}",
        "{subject} 对 {host} 的应答不像镜像仓库：{detail}",
        "Look at the log of the registry (a full disk gives HTTP 500 or 507), and whether it is a registry "
        "that listens "
        "on this port: curl https://<address>/v2/.",
        "请查看仓库日志（磁盘写满时返回 HTTP 500 或 507），并确认该端口上确实是镜像仓库：curl https://<地址>/v2/。",
    ),
    "container.registry.follows": _blocked(
        "{host} can't pull from {subject}; registry.service says what is wrong with it on its own host",
        "{host} 无法从 {subject} 拉取镜像；registry.service 说明仓库主机上的问题",
    ),
    "container.registry.unknown": _cause(
        UNKNOWN,
        "{host} was not asked whether it reaches {subject}",
        "未检查 {host} 能否访问 {subject}",
        "Give the registry to the module container_info (the verify entry point of the container role does), and look "
        "whether the host answered at all.",
        "请把该仓库交给模块 container_info（container 角色的 verify 入口会这样做），并确认主机是否有应答。",
    ),
    "container.image_digest.ok": _cause(PASS, "{host} holds the declared images", "{host} 持有所声明的镜像"),
    "container.image_digest.not_applicable": _cause(
        NOT_APPLICABLE, "no image is declared for {host}", "{host} 没有声明镜像"
    ),
    "container.image_digest.absent": _cause(
        FAIL,
        "{host} does not hold {detail}",
        "{host} 没有镜像 {detail}",
        "Run the container playbook, which pulls it by its digest; if that fails, look at container.registry "
        "and at the "
        "space that is left (container.engine).",
        "执行 container 剧本按摘要拉取；若失败，请查看 container.registry 与剩余空间（container.engine）。",
    ),
    "container.image_digest.other_digest": _cause(
        FAIL,
        "{host} holds another image under the declared name (declared: held): {detail}",
        "{host} 在所声明的名称下持有另一个镜像（声明：实际）：{detail}",
        "Somebody pulled or built it by hand, or the node missed the last rollout. Run the container playbook for it; "
        "jobs that name the image by its digest are not affected.",
        "可能有人手工拉取或构建过，或该节点错过了上次部署。请对其执行 container 剧本；按摘要引用镜像的作业不受影响。",
    ),
    "container.image_digest.untagged": _cause(
        FAIL,
        "{host} holds a declared image, but not under its tag: {detail}",
        "{host} 持有所声明的镜像，但没有对应的标签：{detail}",
        "Somebody removed the name. Jobs that name the image by its digest run; for the others run the container "
        "playbook, which gives it back.",
        "标签已被删除。按摘要引用镜像的作业不受影响；其他作业请执行 container 剧本恢复标签。",
        severity=WARNING,
    ),
    "container.image_digest.moved": _cause(
        FAIL,
        "the tag means another image in the registry by now than on {host} (held, registry): {detail}",
        "仓库中该标签所指的镜像已与 {host} 上的不同（实际，仓库）：{detail}",
        "A tag can be moved by whoever pushes. Decide which image is right and declare it by its digest "
        "(name@sha256:<digest>), then run the container playbook on all nodes.",
        "标签可被任何推送者改动。请确定正确的镜像并按摘要声明（名称@sha256:<摘要>），"
        "然后对所有节点执行 container 剧本。",
    ),
    "container.image_digest.differs": _cause(
        FAIL,
        "{host} holds another image than the other nodes: {detail}",
        "{host} 持有的镜像与其他节点不同：{detail}",
        "The nodes pulled one tag at different times. Declare the image by its digest and run the container "
        "playbook on "
        "all nodes.",
        "各节点在不同时间拉取了同一标签。请按摘要声明镜像，并对所有节点执行 container 剧本。",
    ),
    "container.image_digest.not_asked": _cause(
        UNKNOWN,
        "an image is declared by a tag and the registry did not say to {host} what the tag means now: {detail}",
        "镜像仅以标签声明，而仓库未告知 {host} 该标签当前所指：{detail}",
        "Clear container.registry first. Better declare the image by its digest: that needs no registry to be judged.",
        "请先处理 container.registry。更好的做法是按摘要声明镜像，判定时便无需询问仓库。",
    ),
    "container.image_digest.unknown": _cause(
        UNKNOWN,
        "which image {host} holds is not known: {detail}",
        "无法得知 {host} 持有哪个镜像：{detail}",
        "An image must be declared with its registry (host:port/name@sha256:<digest>). One that was loaded from a "
        "file or built "
        "on the node has no digest of a registry: pull it. If the engine did not list its images, see the errors.",
        "镜像须带仓库声明（主机:端口/名称@sha256:<摘要>）。从文件导入或在节点上构建的镜像没有仓库摘要，请改为拉取"
        "。若引擎未列"
        "出镜像，请看错误信息。",
    ),
    "container.image_digest.blocked": _blocked(
        "the images of {host} could not be judged: its container engine does not work",
        "容器引擎不可用，无法判定 {host} 的镜像",
    ),
    # registry: its own host
    "registry.service.ok": _cause(
        PASS,
        "the registry {subject} answers its accounts, its certificate for {detail} more days",
        "镜像仓库 {subject} 对其账号应答正常，证书剩余 {detail} 天",
    ),
    "registry.service.down": _cause(
        FAIL,
        "the registry {subject} does not serve nodes: {detail}",
        "镜像仓库 {subject} 无法为节点提供服务：{detail}",
        "On its host: systemctl status accel-registry@pull, journalctl -u accel-registry@pull. Run the "
        "registry playbook, "
        "which starts it and says what stands in its way (port taken, disk full). Jobs whose image is on the "
        "node still run.",
        "在仓库主机上查看：systemctl status accel-registry@pull、journalctl -u accel-registry@pull。请执行 "
        "registry 剧本："
        "它会启动服务并指出障碍（端口被占用、磁盘已满）。镜像已在节点上的作业不受影响。",
    ),
    "registry.service.certificate": _cause(
        FAIL,
        "the certificate that {subject} shows can't be used: {detail}",
        "{subject} 出示的证书不可用：{detail}",
        "Run the registry playbook: it makes certificates anew that have ended or have another name, and restarts the "
        "registry. One of your own has to be replaced in registry_certificate_file first. Look at the clock of "
        "the host too.",
        "请执行 registry 剧本：它会重新签发已过期或名称不符的证书并重启仓库。自备证书须先在 registry_certificate_file "
        "中更换。同时检查该主机的时钟。",
    ),
    "registry.service.certificate_ends_soon": _cause(
        FAIL,
        "{subject}: what its certificate hangs on ends soon: {detail}",
        "{subject}：证书或其 CA 即将到期：{detail}",
        "Run the registry playbook, which renews what ends within registry_renew_days. After a renewed CA run "
        "the container "
        "playbook too, so that nodes trust it. One of your own has to be replaced in registry_certificate_file first.",
        "请执行 registry 剧本，它会续签 registry_renew_days 内到期的证书。CA 续签后还须执行 container 剧本，"
        "使各节点信任新 CA。"
        "自备证书须先在 registry_certificate_file 中更换。",
        severity=WARNING,
    ),
    "registry.service.open": _cause(
        FAIL,
        "{subject} gives images to whoever asks, without a login",
        "{subject} 无需登录即可向任何人提供镜像",
        "Somebody has changed its configuration: run the registry playbook with --diff and look at what it puts back.",
        "其配置已被改动：请带 --diff 执行 registry 剧本，查看它恢复了什么。",
    ),
    "registry.service.push_down": _cause(
        FAIL,
        "nodes can pull from {subject}, but no image can be pushed: {detail}",
        "节点可以从 {subject} 拉取镜像，但无法推送：{detail}",
        "On its host: systemctl status accel-registry@push accel-registry-gc. The collection starts it again "
        "when it ends; "
        "else run the registry playbook.",
        "在仓库主机上查看：systemctl status accel-registry@push accel-registry-gc。"
        "垃圾回收结束后会重新启动该服务；否则请执行 "
        "registry 剧本。",
        severity=WARNING,
    ),
    "registry.service.unknown": _cause(
        UNKNOWN,
        "whether the registry {subject} is well could not be found out: {detail}",
        "无法判断镜像仓库 {subject} 是否正常：{detail}",
        "On its host: systemctl status accel-registry@pull accel-registry@push; then verify again.",
        "在仓库主机上查看：systemctl status accel-registry@pull accel-registry@push；然后重新验收。",
    ),
    "registry.storage.ok": _cause(
        PASS, "images of {subject} use {observed} of what they may", "{subject} 的镜像占用 {observed}，在限额之内"
    ),
    "registry.storage.over_limit": _cause(
        FAIL,
        "images of {subject} use {observed}, {expected} is declared",
        "{subject} 的镜像占用 {observed}，声明为 {expected}",
        "Nothing is built and pushed until it is less. Delete images that nobody declares any more (by digest, at the "
        "service that takes pushes), then systemctl start accel-registry-gc; or raise "
        "cluster_registry_storage_limit_gib.",
        "在降下来之前不会构建和推送新镜像。请删除不再声明的镜像（在推送服务上按摘要删除），然后执行 systemctl start "
        "accel-registry-gc；或提高 cluster_registry_storage_limit_gib。",
        severity=WARNING,
    ),
    "registry.storage.full": _cause(
        FAIL,
        "{observed} are free where the images of {subject} lie ({detail}), {expected} is declared",
        "{subject} 的镜像所在位置（{detail}）剩余 {observed}，声明为 {expected}",
        "Pulls go on, pushes will break off. See what fills the file system (du -x), delete images that nobody "
        "declares any "
        "more, then systemctl start accel-registry-gc; or give it a larger file system.",
        "拉取仍可进行，推送会中断。请查看文件系统被什么占满（du -x），删除不再声明的镜像，然后执行 systemctl start "
        "accel-registry-gc；或更换更大的文件系统。",
        severity=WARNING,
    ),
    "registry.storage.collection_failed": _cause(
        FAIL,
        "the last collection of what no image of {subject} refers to did not end well: {detail}",
        "{subject} 最近一次垃圾回收未正常结束：{detail}",
        "journalctl -u accel-registry-gc says why. Where its time was over (timeout), raise "
        "registry_collect_timeout_seconds; then systemctl start accel-registry-gc.",
        "原因见 journalctl -u accel-registry-gc。若因超时（timeout），请提高 registry_collect_timeout_seconds；"
        "然后执行 systemctl start accel-registry-gc。",
        severity=WARNING,
    ),
    "registry.storage.unknown": _cause(
        UNKNOWN,
        "how much room the images of {subject} have and use could not be read ({detail})",
        "无法读取 {subject} 的镜像空间与占用（{detail}）",
        "df and du of that folder on the registry's host say more; a file system that does not answer is the "
        "reason more "
        "often than not.",
        "请在仓库主机上对该目录执行 df 和 du；多数情况下是文件系统无响应。",
    ),
}


def _baseline(check: str, en: str, zh: str, do_en: str, do_zh: str, shared: bool = True) -> None:
    """Add the causes of a check that only compares named values."""
    CAUSES[f"{check}.ok"] = _cause(PASS, f"{en}: as declared", f"{zh}：与声明一致")
    CAUSES[f"{check}.differs"] = _cause(
        FAIL,
        f"{en} of {{host}} differ from the declaration: {{names}} (see expected and observed)",
        f"{{host}} 的{zh}与声明不符：{{names}}（见期望值与实测值）",
        do_en,
        do_zh,
    )
    CAUSES[f"{check}.unknown"] = _cause(
        UNKNOWN,
        f"{en} of {{host}} could not be read: {{names}}",
        f"无法读取 {{host}} 的{zh}：{{names}}",
        "The evidence names what refused to answer; read the value by hand as root.",
        "证据中列出了未应答的项目；请以 root 手工读取该值。",
    )
    if shared:
        CAUSES[f"{check}.shared_kernel"] = _cause(
            NOT_APPLICABLE,
            f"shared kernel: {en} belong to the machine that {{host}} runs on",
            f"共享内核：{zh}属于 {{host}} 所在的物理机",
        )


_baseline(
    "baseline.limits",
    "process limits",
    "进程资源限制",
    "limits.conf has no effect on services that systemd starts: the drop-in of the baseline role sets them. Run the "
    "baseline playbook, then restart the services that should get the new limits (scheduler, container runtime).",
    "limits.conf 对 systemd 启动的服务无效，由 baseline 角色写入的 systemd 配置片段设置。执行 baseline 剧本后，重启"
    "需要新限制的服务（调度器、容器运行时）。",
)
_baseline(
    "baseline.kernel_parameters",
    "kernel parameters",
    "内核参数",
    "Run the baseline playbook. If the value comes back, another file sets it later: look through sysctl --system.",
    "执行 baseline 剧本。若数值又变回去，说明有其他文件在其后设置，请查看 sysctl --system 的输出。",
)
_baseline(
    "baseline.hugepages",
    "huge pages",
    "大页内存",
    "Memory that is already fragmented can't give them: reboot the drained node so that they are reserved early.",
    "内存碎片化后无法再分配大页：排空节点后重启，使其在启动早期预留。",
)
_baseline(
    "baseline.transparent_hugepages",
    "transparent huge page settings",
    "透明大页策略",
    "Run the baseline playbook; a tuned profile or a kernel argument (transparent_hugepage=) may set it again.",
    "执行 baseline 剧本；tuned 配置或内核参数（transparent_hugepage=）可能会再次改写。",
)
_baseline(
    "baseline.numa_balancing",
    "NUMA balancing settings",
    "自动 NUMA 均衡设置",
    "Run the baseline playbook; automatic balancing moves pages of pinned jobs and costs steps time.",
    "执行 baseline 剧本；自动均衡会迁移已绑核作业的内存页，拖慢训练步。",
)


class _Lenient(string.Formatter):
    """Fills in what it has: a message with a gap is better than a verify that dies while it reports."""

    def get_field(self, field_name, args, kwargs):
        try:
            return super().get_field(field_name, args, kwargs)
        except (KeyError, IndexError, AttributeError, TypeError, ValueError):
            return None, field_name

    def format_field(self, value, format_spec):
        if value is None:
            return "?"
        try:
            return super().format_field(value, format_spec)
        except (ValueError, TypeError):
            return str(value)


_FORMATTER = _Lenient()


def _language(language: str) -> str:
    return language if language in LANGUAGES else "en"


def text(cause: str, language: str = "en", **params: object) -> str:
    """Return the message of ``<check>.<cause>``; KeyError for a cause that does not exist."""
    return tidy(_FORMATTER.vformat(CAUSES[cause].message[_language(language)], (), params))


def tidy(words: str) -> str:
    """Return words without the blank that a template sets around a name, where that name is Chinese too."""
    return re.sub(r"(?<=[\u4e00-\u9fff]) +(?=[\u4e00-\u9fff])", "", words)


def hint_text(cause: str, language: str = "en", vendor: str | None = None) -> str:
    """Return what to do next about ``<check>.<cause>``; "" where nothing is to do or the cause is not known.

    Of what holds for one vendor alone, that of ``vendor`` is told; without one, all of it, each behind its vendor's
    name.
    """
    known, language = CAUSES.get(cause), _language(language)
    if known is None:
        return ""
    told = [known.hint[language]]
    for name, words in known.vendors.items():
        if vendor is None:
            told.append(WORDS[language]["of"].format(VENDORS[name][language], words[language]))
        elif vendor == name:
            told.append(words[language])
    return ("" if language == "zh" else " ").join(told)


def readable(template: str, language: str = "en") -> str:
    """Return a message with words in place of its fields, for who reads what a check can say."""

    def word(field: re.Match) -> str:
        # An addition that may be empty follows its word without a blank ("loaded{version}"); "x{observed}" is one word.
        blank = " " if len(field["before"]) > 1 else ""
        return f"{field['before']}{blank}<{FIELDS[field['name']][_language(language)]}>"

    return re.sub(r"(?P<before>[A-Za-z]*)\{(?P<name>\w+)[^{}]*\}", word, template).replace("><", "> <")


def outcome(cause: str, language: str = "en") -> str:
    """Return verdict and severity of ``<check>.<cause>`` in words; where nothing is wrong, the verdict alone."""
    spec, words = CAUSES[cause], WORDS[_language(language)]
    if spec.verdict not in (FAIL, UNKNOWN):
        return words[spec.verdict]
    return words["comma"].join((words[spec.verdict], words[spec.severity]))


def check_of(cause: str) -> str:
    """Return the check id of ``<check>.<cause>``."""
    return cause.rpartition(".")[0]


_PAGE: dict[str, dict] = {
    "en": {
        "title": "Faults: what a finding means and what to do",
        "intro": "Rendered from plugins/module_utils/_accel/hints.py by tests/render_faults.py; change it there.\n\n"
        "Each finding names its cause in `hint`. Words in angle brackets are filled in by the check. `unknown`\n"
        "means that it could not be measured; it never counts as a pass. A warning is counted and shown, but does\n"
        "not fail a run.",
        "fine": "When all is well: ",
        "line": "{verdict}: {message}",
    },
    "zh": {
        "title": "故障手册：检查结果的含义与处理",
        "intro": "由 tests/render_faults.py 根据 plugins/module_utils/_accel/hints.py 生成，请在源文件中修改。\n\n"
        "每条检查结果的 `hint` 字段指明其原因，尖括号内的内容由检查填入。`无法判定` 表示未能测得，绝不视为通过；\n"
        "`警告` 会计数并显示，但不会使本次运行失败。",
        "fine": "正常时：",
        "line": "{verdict}：{message}",
    },
}


def faults_page(language: str = "en") -> str:
    """Return docs/faults.md: every check, then every cause with what it says and what to do, as Markdown."""
    words = _PAGE[language]
    lines = [f"# {words['title']}", "", words["intro"], ""]
    for check, about in CHECKS.items():
        lines += [f"## {check} - {about['title'][language]}", ""]
        for cause, spec in CAUSES.items():
            if check_of(cause) != check:
                continue
            message = _escaped(readable(spec.message[language], language))
            if spec.verdict == PASS:
                lines += [f"{words['fine']}{message}", ""]
                continue
            verdict = outcome(cause, language)
            lines += [f"### {cause}", "", words["line"].format(verdict=verdict, message=message), ""]
            if spec.hint[language]:
                lines += [_escaped(hint_text(cause, language)), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _escaped(words: str) -> str:
    """Return words so that Markdown does not read them as markup."""
    for sign in "\\`*<|":
        words = words.replace(sign, "\\" + sign)
    return words
