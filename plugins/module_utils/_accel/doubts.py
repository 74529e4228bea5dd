# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""What a survey doubts and what to do about it, and the words of its files, in English and Chinese.

``DOUBTS`` is in the order in which a person should read them: what was not seen at all, then what may make a
proposed number wrong, then what is merely odd.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

LANGUAGES = ("en", "zh")


@dataclass(frozen=True)
class Text:
    """Message and hint by language; messages are ``str.format`` templates.

    Every message may use ``where`` (hosts and slots), ``node_type``, ``seen`` and ``siblings``.
    """

    message: dict
    hint: dict


def _text(en: str, zh: str, do_en: str, do_zh: str) -> Text:
    return Text({"en": en, "zh": zh}, {"en": do_en, "zh": do_zh})


DOUBTS = {
    # ------------------------------------------------------------------ not seen
    "host.silent": _text(
        "{where}: did not answer; nothing is known of its cards",
        "{where}：没有应答，其加速卡情况未知",
        "Bring it back and survey it with the others, or put it below its node type by hand if you know what it is.",
        "恢复后与其他主机一起重新勘察；若已知其类型，请手工将其放入相应的节点类型。",
    ),
    "host.failed": _text(
        "{where}: could not be asked: {seen}",
        "{where}：无法查询：{seen}",
        "The message says why (no Python, no rights to become root, a full disk). Cure it and survey again.",
        "原因见错误信息（没有 Python、无法切换到 root、磁盘写满等）。处理后重新勘察。",
    ),
    "host.not_asked": _text(
        "{where}: in the inventory, but not asked in this run (--limit)",
        "{where}：在清单中，但本次运行未查询（--limit）",
        "Survey all hosts together before you accept: what is not asked can't be compared.",
        "确认之前请对全部主机一起勘察：未查询的主机无法参与比较。",
    ),
    "host.bus_unread": _text(
        "{where}: nobody could look at the PCI bus, so the number of cards is unknown; siblings: {siblings}",
        "{where}：无法读取 PCI 总线，加速卡数量未知；同类主机：{siblings}",
        "In a container or a virtual machine without PCI this is ordinary: then leave the host without cards. Else "
        "mount /sys and survey again.",
        "容器或没有 PCI 的虚拟机中属正常现象，此时可视为没有加速卡；否则请挂载 /sys 后重新勘察。",
    ),
    "host.no_cards": _text(
        "{where}: stands below accelerator_nodes in the inventory, but its bus shows no card of a known vendor",
        "{where}：在清单中属于 accelerator_nodes，但其总线上没有已知厂商的加速卡",
        "Look with lspci. All cards may have left the bus; a vendor that the collection does not know is declared in "
        "cluster_vendors.",
        "用 lspci 检查：可能全部掉卡；集合不认识的厂商请在 cluster_vendors 中声明。",
    ),
    "host.no_group": _text(
        "{where}: no cards, and in no group that says what it is for ({seen}); proposed directly below cluster_hosts",
        "{where}：没有加速卡，也不在任何说明其用途的组（{seen}）中；提议中直接列在 cluster_hosts 之下",
        "What a host is for can't be seen from it. Put it below each group that it belongs to: playbooks name groups, "
        "and pass by a host that is in none.",
        "主机的用途无法从主机本身得知。请将其放入所属的各个组：剧本按组执行，不在任何组中的主机会被略过。",
    ),
    # ------------------------------------------------------------------ may make a number wrong
    # What else is not known hangs on it, and is not doubted again.
    "tool.absent": _text(
        "{where}: the vendor's tool is not installed ({seen}); siblings: {siblings}",
        "{where}：未安装厂商工具（{seen}）；同类主机：{siblings}",
        "Only the bus was read. Install driver and tool, then survey again.",
        "仅读取了总线信息。请安装驱动与工具后重新勘察。",
    ),
    "tool.failed": _text(
        "{where}: the vendor's tool did not answer well ({seen}); siblings: {siblings}",
        "{where}：厂商工具未能正常应答（{seen}）；同类主机：{siblings}",
        "Cure the driver first (accelctl check, or the tool by hand), then survey again.",
        "请先处理驱动问题（accelctl check，或手工执行该工具），再重新勘察。",
    ),
    "count.unknown": _text(
        "{where}: the number of cards of {node_type} is unknown: no host shows its bus; the tool says {seen}",
        "{where}：{node_type} 的加速卡数量未知：没有主机能读取总线；工具的回答为 {seen}",
        "Count the cards in the data sheet or in the machine, and write the number down.",
        "请按规格书或实物清点后填写。",
    ),
    "count.fewer": _text(
        "{where}: {seen} on the bus, siblings: {siblings}; proposed is the number of the siblings",
        "{where}：总线上有 {seen}，同类主机：{siblings}；按同类主机的数量提出",
        "Cards left the bus, or this is another server model. If it is whole, make it a node type of its own.",
        "可能掉卡，也可能是另一种服务器型号。若硬件确实完好，请为其单列节点类型。",
    ),
    "count.more": _text(
        "{where}: {seen} on the bus, siblings: {siblings}; proposed is the number of the siblings",
        "{where}：总线上有 {seen}，同类主机：{siblings}；按同类主机的数量提出",
        "Either this host has a card more, or all its siblings lack one. Count before you accept.",
        "或是该主机多一张卡，或是其他主机都少一张。确认前请清点。",
    ),
    "count.several": _text(
        "{node_type}: {seen}, but other hosts have as many cards of the same model as: {siblings}",
        "{node_type}：{seen}，但另有主机的同型号加速卡数量为：{siblings}",
        "Right where these are two server models. If they are one, the hosts with fewer cards have lost some.",
        "若确为两种服务器型号则正确；若是同一型号，则数量较少的主机已掉卡。",
    ),
    "count.odd": _text(
        "{node_type}: {seen} cards a host is a number that servers are seldom built with",
        "{node_type}：每台 {seen} 张，服务器很少采用这种数量",
        "Every host may lack the same card. Compare with the data sheet of the server.",
        "可能每台主机都少同一张卡。请与服务器规格书核对。",
    ),
    "count.gap": _text(
        "{node_type}: slots are numbered {seen}, without {siblings}",
        "{node_type}：槽位编号为 {seen}，缺少 {siblings}",
        "Every host may lack the card of that slot. Compare with the data sheet of the server.",
        "可能每台主机都缺该槽位的卡。请与服务器规格书核对。",
    ),
    "count.tool": _text(
        "{where}: the vendor's tool counts {seen}, the bus shows {siblings}; proposed is what the bus shows",
        "{where}：厂商工具报告 {seen} 张，总线上有 {siblings} 张；按总线数量提出",
        "Find the card that only one of them knows: a card may have left the bus, or the tool may see only some.",
        "请找出只有一方识别的那张卡：可能已掉卡，也可能工具只能看到一部分。",
    ),
    "card.lost": _text(
        "{where}: on the bus, but lost ({seen}); siblings: {siblings}",
        "{where}：在总线上，但已掉卡（{seen}）；同类主机：{siblings}",
        "It is counted, for the bus shows it. Cure it before anything is accepted.",
        "因总线上可见，已计入数量。确认任何内容之前请先处理。",
    ),
    "card.silent": _text(
        "{where}: on the bus, but it does not answer ({seen}); siblings: {siblings}",
        "{where}：在总线上，但没有应答（{seen}）；同类主机：{siblings}",
        "It is counted, for the bus shows it; that it is like its siblings is an assumption.",
        "因总线上可见，已计入数量；其型号、显存与序列号仅按同类主机推定。",
    ),
    "card.off_bus": _text(
        "{where}: the tool still speaks of it, but it is no longer on the bus ({seen}); siblings: {siblings}",
        "{where}：工具仍提到该卡，但它已不在总线上（{seen}）；同类主机：{siblings}",
        "The card fell off the bus. It is not counted on this host; compare the proposed number with the data sheet.",
        "该卡已脱离总线，未计入该主机的数量；请将提出的数量与规格书核对。",
    ),
    "card.no_address": _text(
        "{where}: no address on the bus could be read of a card ({seen}); the slot map lacks it; siblings: {siblings}",
        "{where}：无法读取一张卡（{seen}）的总线地址，槽位表中没有它；同类主机：{siblings}",
        "Ask the vendor's tool by hand. It may be the card at an address where the bus shows one that does not answer.",
        "请手工执行厂商工具。它可能就是总线上可见但没有应答的那张卡。",
    ),
    "card.stranger": _text(
        "{where}: a card of another kind ({seen}), siblings: {siblings}; it is not in the proposal",
        "{where}：其他种类的卡（{seen}），同类主机：{siblings}；未列入提议",
        "Take it out, or declare its model and count it if the host is meant to have it.",
        "请将其取出；若确为设计所需，请声明其型号并计入数量。",
    ),
    "host.several_vendors": _text(
        "{where}: cards of several vendors: {seen}; the node type speaks of {siblings} only",
        "{where}：有多家厂商的加速卡：{seen}；节点类型只描述 {siblings}",
        "A node type has one vendor. The others will be reported by device.model.",
        "一个节点类型只能有一家厂商，其他卡会在 device.model 中报告。",
    ),
    "card.model": _text(
        "{where}: model {seen}, siblings: {siblings}",
        "{where}：型号为 {seen}，同类主机：{siblings}",
        "A wrong card, or another name of the same one after a firmware update. Where both are right, declare both.",
        "可能装错了卡，也可能是固件更新后的另一名称。若两者都正确，请补充型号列表。",
    ),
    "model.unknown": _text(
        "{where}: nothing tells the model of its cards ({seen}); siblings: {siblings}",
        "{where}：无法得知加速卡型号（{seen}）；同类主机：{siblings}",
        "Install the vendor's tool or driver and survey again, or write the model down as the tool would print it.",
        "安装厂商工具或驱动后重新勘察，或按工具的输出格式填写型号。",
    ),
    "card.memory": _text(
        "{where}: {seen} GiB of memory, siblings: {siblings}",
        "{where}：显存 {seen} GiB，同类主机：{siblings}",
        "Another variant of the card, or memory that is switched off. Hosts that differ are a node type of their own.",
        "可能是另一种规格的卡，也可能部分显存被禁用。确有不同的主机请单列节点类型。",
    ),
    "card.twin": _text(
        "{where}: one and the same {seen} is told in several places",
        "{where}：多处报告了同一个{seen}",
        "Serial numbers are unique in the world: a tool answers from a cache, a disk was cloned with its records, or a "
        "board was programmed wrongly. No baseline can be built on it.",
        "序列号应全球唯一：可能是工具返回了缓存、系统盘连同记录被克隆，或板卡烧录有误。不能据此建立基线。",
    ),
    # ------------------------------------------------------------------ nothing to compare with
    "type.alone": _text(
        "{where}: the only host of {node_type} that was seen, so nothing could be compared",
        "{where}：{node_type} 中唯一看到的主机，无从比较",
        "Compare every value with the data sheet of the server: what is broken here is proposed as if it were right.",
        "请将每个值与服务器规格书核对：此处若有故障，也会被当作正常提出。",
    ),
    # ------------------------------------------------------------------ odd
    "link.width": _text(
        "{where}: PCIe link has {seen}, siblings: {siblings}",
        "{where}：PCIe 链路宽度为 {seen}，同类主机：{siblings}",
        "Reseat the card, look at riser and switch. What is proposed is what the siblings have.",
        "请重新插拔该卡，并检查转接卡与交换芯片。提出的值取自同类主机。",
    ),
    "link.narrow": _text(
        "{node_type}: cards can do {siblings} lanes, but most run with {seen}",
        "{node_type}：卡支持 x{siblings}，但多数以 x{seen} 运行",
        "The slots may have no more lanes; then verify reports device.link_width for each card until "
        "cluster_link_width_judged is false. Compare with the data sheet of the server.",
        "槽位可能只有这么宽；此时在将 cluster_link_width_judged 设为 false 之前，每张卡都会报 device.link_width。"
        "请与服务器规格书核对。",
    ),
    "link.limited": _text(
        "{where}: a bridge above it holds its link below what the card can do ({seen}); siblings: {siblings}",
        "{where}：上游网桥使其链路低于卡的能力（{seen}）；同类主机：{siblings}",
        "Look at the riser, switch or slot that the bridge belongs to.",
        "请检查该网桥所属的转接卡、交换芯片或槽位。",
    ),
    "card.sick": _text(
        "{where}: its health is critical: {seen}",
        "{where}：健康状态为严重：{seen}",
        "A sick card tells wrong values. Cure it before anything is accepted.",
        "故障卡给出的值可能有误。确认任何内容之前请先处理。",
    ),
    "card.partitions": _text(
        "{where}: split into {seen}, siblings: {siblings}",
        "{where}：分区数为 {seen}，同类主机：{siblings}",
        "Counted are cards, not partitions. Split all hosts of a type alike, or none.",
        "数量按物理卡计算，不计分区。同类主机应采用相同的分区方式。",
    ),
    "slot.none": _text(
        "{where}: nothing tells in which slot it sits; siblings: {siblings}",
        "{where}：没有来源给出其所在槽位；同类主机：{siblings}",
        "Find the slots (data sheet, serial on the label, locate light) and fill in cluster_accelerator_slots.",
        "查明槽位（规格书、标签上的序列号、定位灯），并填写 cluster_accelerator_slots。",
    ),
    "slot.weak": _text(
        "{where}: slot names come only from a weak source ({seen})",
        "{where}：槽位名称只有弱来源（{seen}）",
        "Firmware is often wrong about slots. Prove one card by its serial or its light before you trust the map.",
        "固件给出的槽位经常有误。采信之前请用序列号或定位灯核实至少一张卡。",
    ),
    "slot.differs": _text(
        "{where}: this address is called {seen}, siblings: {siblings}",
        "{where}：该地址的槽位名称为 {seen}，同类主机：{siblings}",
        "Another firmware or another server model. The map of the type holds the name that most hosts have.",
        "固件版本或服务器型号不同。类型的槽位表采用多数主机的名称。",
    ),
    "layout.differs": _text(
        "{where}: cards at other addresses ({seen}) than on the siblings: {siblings}",
        "{where}：加速卡地址（{seen}）与同类主机不同：{siblings}",
        "Another firmware setting or another server model. The slot map of the type does not hold for these hosts.",
        "固件设置或服务器型号不同。类型的槽位表不适用于这些主机。",
    ),
    "version.differs": _text(
        "{where}: {seen}, siblings: {siblings}",
        "{where}：{seen}，同类主机：{siblings}",
        "Versions are equal within a node type. Proposed is what most hosts have; bring the others to it.",
        "同类节点的版本应一致。提出的是多数主机的版本，请将其余主机调整一致。",
    ),
    "version.no_majority": _text(
        "{node_type}: no version is that of most hosts: {seen}",
        "{node_type}：没有占多数的版本：{seen}",
        "Decide which is right; a driver version that nobody decided on is left out of the proposal.",
        "请决定采用哪个版本；未能决定的驱动版本不会列入提议。",
    ),
    "zone.differs": _text(
        "{where}: time zone {seen}, most hosts: {siblings}",
        "{where}：时区为 {seen}，多数主机：{siblings}",
        "accel.cluster.baseline would set the proposed one everywhere. Declare another for a node type that needs it.",
        "accel.cluster.baseline 会在所有主机上设置所提出的时区。需要不同时区的节点类型请另行声明。",
    ),
    "value.strange": _text(
        "{where}: told something that can't stand in an inventory: {seen}",
        "{where}：给出了不能写入清单的值：{seen}",
        "Template signs and control characters are never copied from a host. Look at the tool that prints them.",
        "绝不会从主机复制模板符号或控制字符。请检查输出这些内容的工具。",
    ),
    "host.unread": _text(
        "{where}: {seen}",
        "{where}：{seen}",
        "What could not be read is not compared. Look at it before you trust the rest.",
        "未能读取的内容没有参与比较。采信其余内容之前请先查看。",
    ),
    "contract.refused": _text(
        "accel.cluster.preflight will refuse the proposal as it stands: {seen}",
        "accel.cluster.preflight 会拒绝当前的提议：{seen}",
        "Fill in or correct what it names.",
        "请补全或更正其指出的内容。",
    ),
}

ORDER = {name: number for number, name in enumerate(DOUBTS)}

WORDS = {
    "en": {
        "comma": ", ",
        "more": "{0} and {1} more",
        "slot": "slot {0}",
        "of": "{0} on {1}",
        "none": "none, nothing to compare with",
        "no_name": "no name",
        "unknown": "unknown",
        "cards": "{0} cards",
        "lanes": "x{0}",
        "index": "index {0}",
        "serial": "serial {0}",
        "uuid": "UUID {0}",
        "last_serial": "last serial {0}",
        "no_reason": "no reason known",
        "as_siblings": "named as on {0}",
        "partitions": "{0} partitions",
        # Where a value comes from
        "from_name": "made of vendor, model and count; the name of this group",
        "from_pci": "PCI id {0}",
        "from_tool": "told by {0} on {1} of {2} hosts",
        "from_last": "last told of cards that do not answer, on {0} of {1} hosts",
        "hangs": "{0}; for that reason nothing is known of: {1}",
        "hangs_cards": "answers of the cards",
        "hangs_model": "model",
        "hangs_slots": "slot names",
        "from_bus": "PCI shows {0}",
        "from_memory": "{0} GiB told by {1} of {2} cards, rounded",
        "from_max_speed": "what {0} of {1} cards can do; was not read under load",
        "from_max_width": "what {0} of {1} cards can do; {2} run with it",
        "from_board": "{0} cards share each serial",
        "from_versions": "{0} of {1} hosts",
        "from_inventory": "as in the surveyed inventory",
        "from_default": "no name was declared: choose one",
        "from_run": "the language of this survey",
        "from_hosts": "{0} of {1} hosts that told it",
        "from_scenario": "hosts with cards: {0}; mixed or inference where it serves models",
        "from_scenario_kinds": "hosts with cards: {0}, of {1} kinds; multi_node where all of them train",
        "from_scenario_gateways": "hosts with cards: {0}, and gateway_nodes; mixed where it trains too",
        "no_model": "no tool told a model",
        "no_count": "no bus could be read",
        "no_memory": "no card told its memory",
        "no_link": "no card told its link",
        "no_driver": "no version is that of most hosts",
        "no_ports": "nothing asks hosts for their ports of the fabric yet; see the data sheet",
        "no_networks": "names and prefixes of the networks can't be seen from a host",
        "no_time_servers": "the servers that this site shall use; seen in use: {0}",
        "no_zone": "no host told its time zone",
        "nobody": "none",
        # Files
        "head": "Proposed by accel.cluster.survey, run {0}: to be read, corrected and copied by a person. Doubts: {1}",
        "type_head": "Node type {0}; hosts: {1}. Every value says where it comes from.",
        "slot_map": "Slot map. Hosts that tell it by themselves (source vendor) need no declared one. Where the\n"
        "source is weak or a name is missing: prove it, correct it, and take the comment signs away.",
        "slot_line": "{0}, {1} of {2} hosts",
        "versions_seen": "Versions seen:",
        "version_line": "{0} {1}: {2}",
        "links_seen": "Links between cards, seen: {0}. No variable of the inventory holds them.",
        "link_kind": "{0} x {1} a card",
        "partitions_seen": "Partitions, seen: {0} on {1} cards. Counted are cards.",
        "silent": "did not answer",
        "failed": "could not be asked",
        "not_asked": "not asked in this run (--limit)",
        "no_cards": "no card of a known vendor on its bus",
        "bus_unread": "its bus could not be read",
        "belongs": "{0}; if it has cards, put it below its node type",
        "doubted": "see {0}",
        "host_cards": "{0} on the bus, {1} answered",
        # The page TODO.md, what a survey leaves to a person
        "todo_title": "Survey {0} of {1}",
        "todo_intro": "Hosts: {0}; {1} answered, {2} did not. Node types proposed in `inventory/`: {3}. Nothing was\n"
        "changed on any host, and nothing was written below your inventory. What the hosts said is in `observed/`.",
        "todo_doubts": "Doubts ({0})",
        "todo_no_doubts": "No doubts ({0} hosts were compared).",
        "todo_fill": "Still to be filled in by a person",
        "todo_copied": "Copied from the surveyed inventory are addresses, ports, users and kinds of connection, the\n"
        "groups that hosts are in, and what it says of the whole site (networks, time servers, vendors of your own).\n"
        "Keys, jump hosts, become, secrets and settings of roles are yours to bring over.",
        "todo_next": "Next",
        "next_preflight": "ansible-playbook -i {0}/inventory accel.cluster.preflight",
        "next_diff": "diff -ruN inventories/{1} {0}/inventory    # where there is an inventory of that name",
        "next_copy": "cp -r {0}/inventory inventories/{1}       # where there is none",
        "next_doubts": "Settle the doubts, fill in what nobody could tell, judge the proposal, then copy it:",
        "line_where": "The proposed inventory is in {0}/inventory",
        "line_doubts": "{0} doubts and {1} things to fill in: {2}/TODO.md",
        "line_next": "Next: {0}",
    },
    "zh": {
        "comma": "、",
        "more": "{0} 等，另有 {1} 个",
        "slot": "槽位 {0}",
        "of": "{1} 为 {0}",
        "none": "无，无从比较",
        "no_name": "无名称",
        "unknown": "未知",
        "cards": "{0} 张卡",
        "lanes": "x{0}",
        "index": "序号 {0}",
        "serial": "序列号 {0}",
        "uuid": " UUID {0}",
        "last_serial": "最后已知序列号 {0}",
        "no_reason": "原因未知",
        "as_siblings": "槽位名取自 {0}",
        "partitions": "{0} 个分区",
        "from_name": "由厂商、型号与数量组成，即本组的名称",
        "from_pci": "PCI 标识 {0}",
        "from_tool": "由 {0} 给出，{2} 台主机中有 {1} 台",
        "from_last": "没有应答的卡最后给出的值，{1} 台主机中有 {0} 台",
        "hangs": "{0}；因此无从得知：{1}",
        "hangs_cards": "卡的应答",
        "hangs_model": "型号",
        "hangs_slots": "槽位名称",
        "from_bus": "PCI 总线：{0}",
        "from_memory": "{2} 张卡中有 {1} 张报告 {0} GiB，已取整",
        "from_max_speed": "{1} 张卡中有 {0} 张支持；未在负载下读取",
        "from_max_width": "{1} 张卡中有 {0} 张支持；{2} 张以此宽度运行",
        "from_board": "每 {0} 张卡共用一个序列号",
        "from_versions": "{1} 台主机中有 {0} 台",
        "from_inventory": "与被勘察的清单相同",
        "from_default": "未声明名称，请自行选定",
        "from_run": "本次勘察的语言",
        "from_hosts": "{1} 台给出该值的主机中有 {0} 台",
        "from_scenario": "有加速卡的主机 {0} 台；若用于推理服务，请改为 mixed 或 inference",
        "from_scenario_kinds": "有加速卡的主机 {0} 台，共 {1} 种；若全部用于训练，请改为 multi_node",
        "from_scenario_gateways": "有加速卡的主机 {0} 台，另有 gateway_nodes；若也用于训练，请改为 mixed",
        "no_model": "没有工具给出型号",
        "no_count": "没有可读的总线",
        "no_memory": "没有卡给出显存容量",
        "no_link": "没有卡给出链路",
        "no_driver": "没有占多数的版本",
        "no_ports": "目前尚不查询主机的高速网端口，请查规格书",
        "no_networks": "网络名称与前缀无法从主机得知",
        "no_time_servers": "本站点应使用的时间服务器；当前在用：{0}",
        "no_zone": "没有主机给出时区",
        "nobody": "无",
        "head": "由 accel.cluster.survey 提出（运行 {0}），须由人阅读、更正后复制；疑点见 {1}。",
        "type_head": "节点类型：{0}，{1} 台主机。每个值均注明来源。",
        "slot_map": "槽位表。主机能自行给出（来源为 vendor）时无需声明；\n"
        "来源较弱或缺少名称时，请核实、更正后去掉注释符号。",
        "slot_line": "{0}，{2} 台主机中有 {1} 台",
        "versions_seen": "所见版本：",
        "version_line": "{0} {1}：{2}",
        "links_seen": "所见卡间互联：{0}。清单中没有对应的变量。",
        "link_kind": "每卡 {1} 个 {0}",
        "partitions_seen": "所见分区：{1} 张卡上共 {0} 个。数量按物理卡计算。",
        "silent": "没有应答",
        "failed": "无法查询",
        "not_asked": "本次运行未查询（--limit）",
        "no_cards": "总线上没有已知厂商的加速卡",
        "bus_unread": "总线无法读取",
        "belongs": "{0}；若有加速卡，请放入其节点类型",
        "doubted": "见 {0}",
        "host_cards": "总线上 {0} 张，应答 {1} 张",
        "todo_title": "站点 {1} 的勘察 {0}",
        "todo_intro": "共 {0} 台主机：{1} 台已应答，{2} 台没有。`inventory/` 中提出了 {3} 个节点类型。\n"
        "没有改动任何主机，也没有在清单目录下写入任何内容。主机的原始回答在 `observed/` 中。",
        "todo_doubts": "疑点（{0}）",
        "todo_no_doubts": "没有疑点（比较了 {0} 台主机）。",
        "todo_fill": "仍须由人填写",
        "todo_copied": "从被勘察的清单复制的有地址、端口、用户与连接类型、主机所属的组，\n"
        "以及全站点的声明（网络、时间服务器、自行声明的厂商）。\n"
        "密钥、跳板机、become、秘密与各角色的设置请自行带入。",
        "todo_next": "下一步",
        "next_preflight": "ansible-playbook -i {0}/inventory accel.cluster.preflight",
        "next_diff": "diff -ruN inventories/{1} {0}/inventory    # 已有同名清单时",
        "next_copy": "cp -r {0}/inventory inventories/{1}       # 尚无清单时",
        "next_doubts": "先处理疑点，填写主机无法得知的内容，再检查提议，然后复制：",
        "line_where": "提出的清单位于 {0}/inventory",
        "line_doubts": "疑点 {0} 个，待填写 {1} 项：{2}/TODO.md",
        "line_next": "下一步：{0}",
    },
}


def words(language: str) -> dict:
    """Return the words of a survey's files, English for a language that is not known."""
    return WORDS.get(language, WORDS["en"])


def listed(names: Iterable, language: str = "en", most: int = 6) -> str:
    """Return names as text; of many only the first ones and how many there are more."""
    told = [str(name) for name in names]
    say = words(language)
    text = say["comma"].join(told[:most])
    return text if len(told) <= most else say["more"].format(text, len(told) - most)


def explain(doubt: dict, language: str = "en") -> dict:
    """Return a doubt with its ``message`` and ``hint`` in words."""
    text, say = DOUBTS[doubt["doubt"]], words(language)
    language = language if language in LANGUAGES else "en"
    slots = say["slot"].format(listed(doubt["slots"], language, 8)) if doubt["slots"] else ""
    where = " ".join(part for part in (listed(doubt["hosts"], language, 20), slots) if part)
    message = text.message[language].format(
        where=where,
        node_type=doubt["node_type"] or say["unknown"],
        seen=doubt["seen"] or say["unknown"],
        siblings=doubt["siblings"] or say["none"],
    )
    return {**doubt, "message": message, "hint": text.hint[language]}
