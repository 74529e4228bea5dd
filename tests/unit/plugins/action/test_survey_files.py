# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a proposal: laid out as an inventory, readable, and sound to the real preflight, or told why not."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from ansible import context
from ansible.errors import AnsibleActionFail
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.playbook.task import Task
from ansible.template import Templar
from ansible.utils import vars as ansible_vars
from ansible.vars.hostvars import HostVars
from ansible.vars.manager import VariableManager
from ansible_collections.accel.cluster.plugins.action import preflight
from ansible_collections.accel.cluster.plugins.action import survey as action
from ansible_collections.accel.cluster.plugins.module_utils._accel import doubts, record, survey
from ansible_collections.accel.cluster.plugins.plugin_utils import proposal

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "module_utils/_accel"))
import observations

H100 = "nvidia_h100_80gb_hbm3_x8"
CONNECTION = SimpleNamespace(_shell=SimpleNamespace(tmpdir=None))
HOSTS = """\
login_nodes:
  hosts:
    ctl-01: {ansible_host: 192.0.2.10}
spare:
  hosts:
    gpu-01: {ansible_host: 192.0.2.11}
    gpu-02: {ansible_host: 192.0.2.12, ansible_password: correct-horse}
    gpu-03: {ansible_host: 192.0.2.13}
"""
EMPTY = {"devices": [], "unanswered": [], "count": None, "bus_count": 0, "tools": [], "errors": []}


@pytest.fixture(autouse=True)
def no_options():
    """Leave no options of one test to the next."""
    before = context.CLIARGS
    yield
    context.CLIARGS = preflight.CLIARGS = action.CLIARGS = before
    ansible_vars.load_extra_vars.extra_vars = None


def surroundings(source: Path) -> tuple[DataLoader, Templar, HostVars, InventoryManager]:
    for module in (context, preflight, action):
        module.CLIARGS = context.CLIARGS.__class__({"inventory": [str(source)], "extra_vars": ()})
    ansible_vars.load_extra_vars.extra_vars = None
    loader = DataLoader()
    inventory = InventoryManager(loader=loader, sources=[str(source)])
    hostvars = HostVars(inventory, VariableManager(loader=loader, inventory=inventory), loader)
    return loader, Templar(loader=loader), hostvars, inventory


def run(
    folder: Path, cards: dict, hosts: str = HOSTS, variables: str = "", check_mode: bool = False, **options
) -> dict:
    """Run the action over an inventory in ``folder``/mine, with these answers of accelerator_info."""
    source = folder / "mine/hosts.yml"
    source.parent.mkdir(exist_ok=True)
    source.write_text(hosts, encoding="utf-8")
    if variables:
        (source.parent / "group_vars").mkdir(exist_ok=True)
        (source.parent / "group_vars/all.yml").write_text(variables, encoding="utf-8")
    loader, templar, hostvars, inventory = surroundings(source)
    task = Task()
    task.check_mode = check_mode
    task.args = {
        "site_dir": str(folder / "sites/lab"),
        "hosts": sorted(cards),
        "cards": {host: told for host, told in cards.items() if told},
        **options,
    }
    one = action.ActionModule(task, CONNECTION, None, loader, templar, None)
    return one.run(task_vars={"hostvars": hostvars, "groups": inventory.get_groups_dict()})


def judged(folder: Path, name: str = "inventory") -> list[str]:
    """Return what the real preflight says of a proposal."""
    source = folder / name
    loader, templar, hostvars, _inventory = surroundings(source)
    task = Task()
    task.check_mode = True
    one = preflight.ActionModule(task, CONNECTION, None, loader, templar, None)
    return [found["message"] for found in one.run(task_vars={"hostvars": hostvars})["complaints"]]


def healthy() -> dict:
    return {"ctl-01": dict(EMPTY), **{f"gpu-0{number}": observations.healthy(number) for number in (1, 2, 3)}}


def loaded(folder: Path) -> dict:
    return {
        str(path.relative_to(folder)): yaml.safe_load(path.read_text(encoding="utf-8"))
        for path in folder.rglob("*.yml")
    }


def test_a_proposal_is_laid_out_as_an_inventory(tmp_path):
    told = run(tmp_path, healthy(), variables="cluster_name: lab\nansible_user: kim\n")
    folder = Path(told["folder"])
    assert folder.parent == tmp_path / "sites/lab/survey"
    assert re.fullmatch(r"\d{8}T\d{6}Z", folder.name)
    files = loaded(folder / "inventory")
    assert set(files) == {
        "hosts.yml",
        "group_vars/all/cluster.yml",
        "group_vars/cluster_hosts/connection.yml",
        f"group_vars/{H100}/cluster.yml",
        *(f"host_vars/{host}/connection.yml" for host in healthy()),
    }
    below = files["hosts.yml"]["cluster_hosts"]["children"]
    assert below["accelerator_nodes"]["children"] == {H100: {"hosts": dict.fromkeys(("gpu-01", "gpu-02", "gpu-03"))}}
    assert below["login_nodes"] == {"hosts": {"ctl-01": None}}
    assert below["gateway_nodes"] is None
    assert files["group_vars/all/cluster.yml"]["cluster_name"] == "lab"
    assert files["group_vars/cluster_hosts/connection.yml"] == {"ansible_user": "kim"}
    assert files["host_vars/gpu-01/connection.yml"] == {"ansible_host": "192.0.2.11"}
    assert {path.name for path in (folder / "observed").iterdir()} == {f"{host}.json" for host in healthy()}
    assert told["node_types"] == {H100: ["gpu-01", "gpu-02", "gpu-03"]}
    assert told["changed"] is False


def test_every_proposed_value_says_where_it_comes_from(tmp_path):
    folder = Path(run(tmp_path, healthy())["folder"])
    for path in (folder / "inventory").rglob("*.yml"):
        if path.name != "hosts.yml":
            for line in path.read_text(encoding="utf-8").splitlines():
                assert line.startswith(("#", "---")) or "  # " in line, f"{path}: {line}"


def test_what_the_real_preflight_says_of_a_whole_proposal(tmp_path):
    told = run(tmp_path, healthy())
    assert told["doubts"] == []
    assert judged(Path(told["folder"])) == []


def test_a_proposal_that_preflight_refuses_says_so_first(tmp_path):
    cards = healthy()
    for observed in cards.values():
        observed["bus_count"] = None
        for one in observed["devices"]:
            one["pci_id"] = None
    told = run(tmp_path, cards)
    folder = Path(told["folder"])
    refused = judged(folder)
    assert any("cluster_accelerator_count is not declared" in one for one in refused)
    listed = [one["seen"] for one in told["doubts"] if one["doubt"] == "contract.refused"]
    assert len(listed) == len(refused)
    todo = (folder / "TODO.md").read_text(encoding="utf-8")
    assert "cluster_accelerator_count is not declared" in todo
    assert todo.index("## Doubts") < todo.index("cluster_accelerator_count is not declared") < todo.index("## Still")


def test_dead_hosts_and_hosts_outside_the_limit_are_in_the_inventory_and_named(tmp_path):
    told = run(tmp_path, {"gpu-01": observations.healthy(1), "gpu-02": None})
    folder = Path(told["folder"])
    left = loaded(folder / "inventory")["hosts.yml"]["cluster_hosts"]
    assert left["hosts"] == {"gpu-02": None, "gpu-03": None}
    assert left["children"]["login_nodes"] == {"hosts": {"ctl-01": None}}
    kinds = {one["doubt"]: one["hosts"] for one in told["doubts"]}
    assert kinds["host.silent"] == ["gpu-02"]
    assert kinds["host.not_asked"] == ["ctl-01", "gpu-03"]
    assert judged(folder) == []
    assert any("gpu-02" in line for line in told["lines"])


def test_every_host_dead_still_gives_a_proposal(tmp_path):
    told = run(tmp_path, dict.fromkeys(healthy()))
    assert told["node_types"] == {}
    assert [one["hosts"] for one in told["doubts"]] == [["ctl-01", "gpu-01", "gpu-02", "gpu-03"]]
    assert judged(Path(told["folder"])) == []


def test_no_secret_is_copied(tmp_path):
    folder = Path(run(tmp_path, healthy())["folder"])
    for path in folder.rglob("*"):
        assert path.is_dir() or "correct-horse" not in path.read_text(encoding="utf-8"), path


def test_what_hosts_say_can_not_become_yaml(tmp_path):
    """A line break in a text of a host would end the comment that it stands in."""
    cards = healthy()
    for host in ("gpu-01", "gpu-02"):
        cards[host]["tools"][0]["version"] = "1\ncluster_site_dir: /evil"
        cards[host]["devices"][0]["source"] = "x\ncluster_site_dir: /evil"
        cards[host]["unanswered"] = []
    versions = {
        host: {
            "versions": [{"component": "os", "name": "a\nb: c", "subject": None, "version": "1\nd: e", "source": "f"}]
        }
        for host in cards
    }
    folder = Path(run(tmp_path, cards, versions=versions)["folder"])
    known = re.compile(r"cluster_\w+|ansible_\w+")
    for name, body in loaded(folder / "inventory").items():
        if name != "hosts.yml":
            assert all(known.fullmatch(key) for key in body)
            assert "cluster_site_dir" not in body


def test_the_surveyed_inventory_is_kept_where_no_host_can_tell(tmp_path):
    variables = (
        "cluster_networks:\n  - {name: management, cidr: 192.0.2.0/24}\ncluster_time_servers: [ntp.example.org]\n"
    )
    folder = Path(run(tmp_path, healthy(), variables=variables)["folder"])
    site = loaded(folder / "inventory")["group_vars/all/cluster.yml"]
    assert site["cluster_networks"] == [{"name": "management", "cidr": "192.0.2.0/24"}]
    assert site["cluster_time_servers"] == ["ntp.example.org"]
    assert judged(folder) == []


def test_two_surveys_of_one_second_do_not_meet(tmp_path, monkeypatch):
    class Clock:
        @staticmethod
        def now(_zone):
            return SimpleNamespace(strftime=lambda _form: "20261130T010203Z")

    monkeypatch.setattr(action, "datetime", Clock)
    names = [Path(run(tmp_path, healthy())["folder"]).name for _time in range(2)]
    assert names == ["20261130T010203Z", "20261130T010203Z-2"]


def test_check_mode_writes_the_proposal_too(tmp_path):
    told = run(tmp_path, healthy(), check_mode=True)
    assert (Path(told["folder"]) / "TODO.md").exists()


def test_chinese(tmp_path):
    cards = healthy()
    cards["gpu-02"] = observations.downtrained(cards["gpu-02"], 6)
    told = run(tmp_path, cards, language="zh")
    folder = Path(told["folder"])
    assert told["doubts"][0]["message"] == "gpu-02 槽位 SXM5：PCIe 链路宽度为 x8，同类主机：gpu-01、gpu-03 为 x16"
    assert "## 疑点（1）" in (folder / "TODO.md").read_text(encoding="utf-8")
    assert judged(folder) == []


def test_a_language_that_is_none_gives_english_and_says_so(tmp_path, capsys):
    assert run(tmp_path, healthy(), language="fr")["lines"][0].startswith("The proposed inventory is in ")
    assert "'fr' is no language of proposals (en, zh)" in " ".join(capsys.readouterr().err.split())


def test_nothing_is_written_below_the_inventory(tmp_path):
    with pytest.raises(AnsibleActionFail, match="lies below the inventory"):
        run(tmp_path, healthy(), site_dir=str(tmp_path / "mine/sites"))
    assert sorted(os.listdir(tmp_path / "mine")) == ["hosts.yml"]


def test_nothing_is_left_of_a_proposal_that_could_not_be_written(tmp_path, monkeypatch):
    def full(*_arguments):
        raise record.RecordError("no space is left on the device")

    monkeypatch.setattr(action.record, "write", full)
    with pytest.raises(AnsibleActionFail, match="no space is left"):
        run(tmp_path, healthy())
    assert os.listdir(tmp_path / "sites/lab/survey") == []


def test_a_place_that_can_not_be_written_is_told(tmp_path):
    (tmp_path / "sites").write_text("a file")
    with pytest.raises(AnsibleActionFail, match="can't take the proposal"):
        run(tmp_path, healthy())


def test_survey_json_holds_the_proposal_and_its_doubts(tmp_path):
    cards = healthy()
    cards["gpu-02"] = observations.downtrained(cards["gpu-02"], 6)
    told = run(tmp_path, cards)
    body = json.loads((Path(told["folder"]) / "survey.json").read_text(encoding="utf-8"))
    assert body["schema"] == survey.SCHEMA
    assert body["doubts"] == told["doubts"]
    assert set(body["hosts"]) == set(cards)


@pytest.mark.parametrize(
    ("name", "written"),
    [("gpu-01", "gpu-01"), ("192.0.2.1", '"192.0.2.1"'), ("no", '"no"'), ("fe80::1", '"fe80::1"'), ("a b", '"a b"')],
)
def test_names_are_quoted_where_yaml_would_read_something_else(name, written):
    assert proposal._key(name) == written
    assert yaml.safe_load(f"{written}: 1") == {name: 1}


def test_what_stands_in_a_comment_is_one_printable_line():
    assert proposal._comment("a\n b\x1b[0m\u2028c: d") == "  # a b?[0m c: d"


def test_declared_vendors_survive_as_they_are():
    value = {
        "acme": {
            "pci_vendors": ["1eed"],
            "command": ["acme-smi", "--json"],
            "fields": {"memory": {"key": "m"}},
            "x": {},
        }
    }
    assert yaml.safe_load("\n".join(proposal._yaml("cluster_vendors", value, "source"))) == {"cluster_vendors": value}
    networks = [{"name": "a", "cidr": "192.0.2.0/24"}, {"name": "b", "more": {"c": [1]}}, "d"]
    assert yaml.safe_load("\n".join(proposal._yaml("n", networks, "source"))) == {"n": networks}


@pytest.mark.parametrize(("language", "page"), [("en", "docs/operations.md"), ("zh", "docs/zh/operations.md")])
def test_the_page_and_the_manual_tell_the_same_steps(tmp_path, language, page):
    told = run(tmp_path, healthy(), variables="cluster_name: lab\n", language=language)
    written = (Path(told["folder"]) / "TODO.md").read_text(encoding="utf-8")
    manual = (Path(__file__).resolve().parents[4] / page).read_text(encoding="utf-8")
    written = written.replace(told["folder"], "sites/lab/survey/20261130T010203Z")
    block = written.rpartition("```console\n")[2]
    assert [line.split()[1] for line in block.splitlines()[:-1]] == ["ansible-playbook", "diff", "cp"]
    assert block in manual
    gap = {"en": " ", "zh": ""}[language]
    for name in ("todo_copied", "next_doubts"):
        assert doubts.words(language)[name] in written
        assert gap.join(doubts.words(language)[name].splitlines()) in gap.join(manual.splitlines())
