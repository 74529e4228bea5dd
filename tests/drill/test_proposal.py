# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a survey proposes of the rehearsal hosts is what the rehearsal declares, and a fault is doubted, not learned."""

from __future__ import annotations

import json
import re
from pathlib import Path

import yaml

DECLARED = Path(__file__).resolve().parents[2] / "inventories/rehearsal"
# A host in no other group is one that has nobody like it; the emulated Ascend tool tells no slots.
OF_A_HEALTHY_CLUSTER = {
    ("type.alone", ("gpu-03",), ()),
    ("type.alone", ("npu-01",), ()),
    ("slot.weak", ("npu-01",), tuple("12345678")),
    ("zone.differs", ("npu-01",), ()),
}


class Proposal:
    """A finished survey: what it wrote."""

    def __init__(self, cluster, *arguments: str) -> None:
        self.run = cluster.play("survey", *arguments)
        assert self.run.rc == 0, self.run.output
        found = re.search(r"(/\S+/survey/\d{8}T\d{6}Z(?:-\d+)?)/inventory", self.run.output)
        assert found, f"the survey names no proposal:\n{self.run.output}"
        self.folder = Path(found.group(1))
        self.inventory = self.folder / "inventory"
        body = json.loads((self.folder / "survey.json").read_text(encoding="utf-8"))
        self.hosts = body["hosts"]
        self.doubts = {(one["doubt"], tuple(one["hosts"]), tuple(one["slots"])) for one in body["doubts"]}

    def node_types(self) -> dict[frozenset, dict]:
        return node_types(self.inventory)


def node_types(inventory: Path) -> dict[frozenset, dict]:
    """Return hosts -> values of each node type of an inventory, without the name that a site gives it."""
    groups = yaml.safe_load((inventory / "hosts.yml").read_text(encoding="utf-8"))["cluster_hosts"]["children"]
    found = {}
    for name, group in groups["accelerator_nodes"]["children"].items():
        values = yaml.safe_load((inventory / "group_vars" / name / "cluster.yml").read_text(encoding="utf-8"))
        assert values.pop("cluster_node_type") == name
        # What the rehearsal declares for a node type beside its hardware.
        values.pop("cluster_time_zone", None)
        found[frozenset(group["hosts"])] = values
    return found


def test_the_proposal_for_a_healthy_cluster_is_what_is_declared(cluster) -> None:
    proposal = Proposal(cluster, "--check")
    assert proposal.node_types() == node_types(DECLARED)
    assert proposal.doubts == OF_A_HEALTHY_CLUSTER
    assert {host: row["changed"] for host, row in proposal.run.recap().items() if row["changed"]} == {}
    done = cluster.play("preflight", inventory=proposal.inventory)
    assert done.rc == 0, done.output


def test_a_lost_card_is_counted_and_doubted_with_its_slot(cluster) -> None:
    cluster.inject({"inject_host": "gpu-01", "inject_fault": "card_lost", "inject_slot": "SXM5"})
    try:
        proposal = Proposal(cluster)
    finally:
        cluster.heal("gpu-01")
    assert proposal.node_types() == node_types(DECLARED)
    assert proposal.doubts == {
        *OF_A_HEALTHY_CLUSTER,
        ("card.lost", ("gpu-01",), ("SXM5",)),
        ("tool.failed", ("gpu-01",), ()),
    }


def test_a_dead_host_alone_is_named_and_so_are_those_not_asked(cluster) -> None:
    # Port 1 of the loopback refuses at once, as a machine does whose sshd is gone.
    proposal = Proposal(
        cluster, "--limit", "gpu-02", "--extra-vars", '{"ansible_host": "127.0.0.1", "ansible_port": 1}'
    )
    assert {host for host, about in proposal.hosts.items() if about["state"] == "silent"} == {"gpu-02"}
    kinds = {kind: hosts for kind, hosts, _slots in proposal.doubts}
    assert kinds["host.silent"] == ("gpu-02",)
    assert kinds["host.not_asked"] == ("ctl-01", "gpu-01", "gpu-03", "npu-01")
