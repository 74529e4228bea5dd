# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action on whole inventories: each starts as the sound one and gets one thing wrong.

Run in this process; tests/unit/test_inventories.py runs the real ansible-playbook.
"""

# A complaint stands here as it is printed, in one line or in two pieces.
# ruff: noqa: E501, ISC004

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible import context
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.playbook.task import Task
from ansible.template import Templar, trust_as_template
from ansible.utils import vars as ansible_vars
from ansible.vars.hostvars import HostVars
from ansible.vars.manager import VariableManager
from ansible_collections.accel.cluster.plugins.action import preflight
from ansible_collections.accel.cluster.plugins.module_utils._accel.registry import VENDORS

SOUND = Path(__file__).resolve().parents[2] / "inventories/sound"
GROUPS = (
    "cluster_hosts, accelerator_nodes, scheduler_controllers, registry_hosts, storage_servers, monitoring_servers, "
    "login_nodes, gateway_nodes"
)
UNKNOWN_GROUP = f"accepted: one of {GROUPS}, or a node type below accelerator_nodes"
ADDRESS = "accepted: an IP address such as 192.0.2.11 or a host name such as gpu-01.example.org, and nothing else"
SECRET = "accepted: !vault (ansible-vault encrypt_string), a lookup, or a variable that is one of these"
COUNT = "accepted: a whole number from 0 to 128, such as 8"
NODES = "gpu-01, gpu-02"
EVERYBODY = "ctl-01, gpu-01, gpu-02"
NODE_FILE = "group_vars/h100_nodes/cluster.yml"
ALL_FILE = "group_vars/all/cluster.yml"


@pytest.fixture(autouse=True)
def no_options():
    """Leave no options and no -e of one test to the next."""
    before = context.CLIARGS
    yield
    context.CLIARGS = preflight.CLIARGS = before
    ansible_vars.load_extra_vars.extra_vars = None


@pytest.fixture
def site(tmp_path, monkeypatch) -> Path:
    """Return a sound inventory in a folder of its own, which is the current directory."""
    shutil.copytree(SOUND, tmp_path / "inventory")
    monkeypatch.chdir(tmp_path / "inventory")
    return tmp_path / "inventory"


def run(site: Path, *sources: str, extra: tuple[str, ...] = (), check_mode: bool = False, **args) -> dict:
    """Run the action on an inventory; the site directory lies beside it unless the inventory says otherwise."""
    paths = [str(site / source) for source in sources or ("hosts.yml",)]
    if not any("cluster_site_dir" in one for one in extra):
        extra = (f"cluster_site_dir={site.parent}/sites/lab", *extra)
    extra = tuple(trust_as_template(one) for one in extra)  # as the command line does
    preflight.CLIARGS = context.CLIARGS = context.CLIARGS.__class__({"inventory": paths, "extra_vars": extra})
    ansible_vars.load_extra_vars.extra_vars = None
    loader = DataLoader()
    loader.set_basedir(str(site.parent / "playbooks"))
    inventory = InventoryManager(loader=loader, sources=paths)
    hostvars = HostVars(inventory, VariableManager(loader=loader, inventory=inventory), loader)
    task = Task()
    task.check_mode = check_mode
    task.args = args
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir=None))
    action = preflight.ActionModule(task, connection, None, loader, Templar(loader=loader), None)
    return action.run(task_vars={"hostvars": hostvars})


def lines(site: Path, *sources: str, **more) -> list[str]:
    return [one["message"] for one in run(site, *sources, **more)["complaints"]]


def write(site: Path, path: str, text: str) -> None:
    target = site / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")


def add(site: Path, path: str, text: str) -> None:
    write(site, path, (site / path).read_text(encoding="utf-8") + text)


def replace(site: Path, path: str, old: str, new: str) -> None:
    text = (site / path).read_text(encoding="utf-8")
    assert old in text
    write(site, path, text.replace(old, new))


def test_a_sound_inventory_passes(site):
    result = run(site)
    assert result["complaints"] == []
    assert not result.get("failed")
    assert result["msg"] == "The inventory is sound: 3 hosts, 6 files"
    assert "group gateway_nodes is not declared, so nothing is set up for it" in result["notes"]


# Groups


def test_misspelt_group_below_cluster_hosts(site):
    replace(site, "hosts.yml", "scheduler_controllers", "scheduler_controler")
    assert lines(site) == [
        f"group scheduler_controler (hosts.yml:4): no playbook knows this group below cluster_hosts; {UNKNOWN_GROUP}; "
        "did you mean scheduler_controllers?"
    ]


def test_short_name_of_a_group(site):
    replace(site, "hosts.yml", "scheduler_controllers", "schedulers")
    assert lines(site) == [
        f"group schedulers (hosts.yml:4): no playbook knows this group below cluster_hosts; {UNKNOWN_GROUP}; "
        "did you mean scheduler_controllers?"
    ]


def test_group_that_resembles_nothing(site):
    replace(site, "hosts.yml", "scheduler_controllers", "wombats")
    assert lines(site) == [
        f"group wombats (hosts.yml:4): no playbook knows this group below cluster_hosts; {UNKNOWN_GROUP}"
    ]


def test_misspelt_top_group_is_one_complaint_and_not_one_for_each_host(site):
    replace(site, "hosts.yml", "cluster_hosts", "cluster_hots")
    assert lines(site) == [
        "inventory: no host is in the group cluster_hosts; accepted: every host below cluster_hosts",
        f"group cluster_hots (hosts.yml:2): no playbook knows this group; {UNKNOWN_GROUP}; did you mean cluster_hosts?",
    ]


def test_misspelt_group_in_an_ini_inventory(site):
    write(
        site,
        "hosts.ini",
        "[acelerator_nodes]\ngpu-01 ansible_host=192.0.2.11\n\n[cluster_hosts:children]\nacelerator_nodes\n",
    )
    (site / "hosts.yml").unlink()
    assert lines(site, "hosts.ini") == [
        f"group acelerator_nodes (hosts.ini:1): no playbook knows this group below cluster_hosts; {UNKNOWN_GROUP}; "
        "did you mean accelerator_nodes?"
    ]


def test_own_groups_are_left_alone(site):
    add(site, "hosts.yml", "rack_a:\n  hosts:\n    gpu-01:\n")
    result = run(site)
    assert result["complaints"] == []
    assert "group rack_a is none of the collection's and left alone" in result["notes"]


def test_own_group_below_a_group_of_the_contract(site):
    replace(
        site,
        "hosts.yml",
        "      hosts:\n        ctl-01:",
        "      children:\n        ctl_east:\n          hosts:\n            ctl-01:",
    )
    assert lines(site) == []


def test_host_in_no_group_of_the_cluster(site):
    add(site, "hosts.yml", "rack_a:\n  hosts:\n    gpu-09:\n    gpu-10:\n")
    assert lines(site) == [
        "gpu-09, gpu-10 (hosts.yml:15): in no group of the cluster; "
        "accepted: every host below cluster_hosts; other hosts in an inventory of their own"
    ]


def test_group_beside_cluster_hosts(site):
    write(
        site,
        "hosts.yml",
        "cluster_hosts:\n  hosts:\n    ctl-01:\n    gpu-01:\n    gpu-02:\nscheduler_controllers:\n  hosts:\n    ctl-01:\n",
    )
    assert lines(site)[0] == (
        "group scheduler_controllers (hosts.yml:6): is not below cluster_hosts; accepted: a child group of cluster_hosts"
    )


def test_host_in_two_node_types(site):
    add(site, "hosts.yml", "        a100_nodes:\n          hosts:\n            gpu-02:\n")
    assert lines(site) == [
        "gpu-02 (hosts.yml:12): is in the node types h100_nodes and a100_nodes; accepted: one node type for each host"
    ]


def test_host_in_accelerator_nodes_but_no_node_type(site):
    add(site, "hosts.yml", "      hosts:\n        gpu-07:\n")
    assert lines(site) == [
        "gpu-07 (hosts.yml:14): is in accelerator_nodes but in no node type; "
        "accepted: a child group of accelerator_nodes for each type of node"
    ]


def test_variables_of_a_misspelt_group_or_host(site):
    (site / "group_vars/h100_nodes").rename(site / "group_vars/h100_node")
    (site / "host_vars/ctl-01").rename(site / "host_vars/ctrl-01")
    found = lines(site)
    assert found[:2] == [
        "group h100_node (group_vars/h100_node): nothing reads its variables, for the inventory has no such group; "
        "accepted: the name of a group of the inventory; did you mean h100_nodes?",
        "host ctrl-01 (host_vars/ctrl-01): nothing reads its variables, for the inventory has no such host; "
        "accepted: the name of a host of the inventory; did you mean ctl-01?",
    ]
    assert (
        "gpu-01, gpu-02: cluster_accelerator_count is not declared for the node type h100_nodes; "
        "accepted: the number of cards in one host, such as 8, in group_vars/h100_nodes/cluster.yml"
    ) in found


def test_variables_of_a_host_of_another_inventory_are_no_fault(site):
    write(site, "host_vars/gpu-03/connection.yml", "ansible_host: 192.0.2.13\n")
    result = run(site)
    assert result["complaints"] == []
    assert "host_vars/gpu-03: the inventory has no host gpu-03" in result["notes"]


def test_unreadable_inventory_does_not_look_like_success(site):
    write(site, "hosts.yml", "cluster_hosts: [\n")
    found = lines(site)
    assert (
        found[0]
        == "hosts.yml: Ansible can't read it as an inventory and goes on without it; accepted: a readable inventory"
    )
    assert found[1] == "hosts.yml:2: is no YAML that can be read; accepted: a mapping of variables"
    assert "inventory: no host is in the group cluster_hosts; accepted: every host below cluster_hosts" in found


# Addresses


@pytest.mark.parametrize(
    ("address", "meant"),
    [
        ("192.0.2", ""),
        ("192.0.2.1.1", ""),
        ("192.0.2.012", ""),
        ("192.0.2.12/24", "192.0.2.12"),
        ("ssh://192.0.2.12", "192.0.2.12"),
        ("root@192.0.2.12", "192.0.2.12"),
        ("192.0.2.12:22", "192.0.2.12"),
        ("gpu_02.example.org", ""),
        ("gpu-02..example.org", ""),
        ("-gpu-02", ""),
        ("2001:db8::g", ""),
        ("192.0.2.12, 192.0.2.13", ""),
    ],
)
def test_bad_address(site, address, meant):
    write(site, "host_vars/gpu-02/connection.yml", f'ansible_host: "{address}"\n')
    suggestion = f"; did you mean {meant}?" if meant else ""
    assert lines(site) == [
        f'gpu-02 (host_vars/gpu-02/connection.yml:1): ansible_host is "{address}"; {ADDRESS}{suggestion}'
    ]


@pytest.mark.parametrize("address", ["gpu-02", "gpu-02.example.org", "192.0.2.12", "2001:db8::12", "fe80::1%eth0"])
def test_good_address(site, address):
    write(site, "host_vars/gpu-02/connection.yml", f'ansible_host: "{address}"\n')
    assert lines(site) == []


def test_number_where_an_address_should_be(site):
    write(site, "host_vars/gpu-02/connection.yml", "ansible_host: 192.168\n")
    assert lines(site) == [f"gpu-02 (host_vars/gpu-02/connection.yml:1): ansible_host is 192.168; {ADDRESS}"]


def test_address_that_can_not_be_worked_out(site):
    write(site, "group_vars/cluster_hosts/connection.yml", 'ansible_host: "{{ addresses[inventory_hostname] }}"\n')
    (site / "host_vars/gpu-02/connection.yml").unlink()
    assert lines(site) == [
        f"gpu-02 (group_vars/cluster_hosts/connection.yml:1): ansible_host can't be worked out: 'addresses' is undefined; {ADDRESS}"
    ]


def test_two_hosts_with_one_address(site):
    write(site, "host_vars/gpu-02/connection.yml", "ansible_host: 192.0.2.11\n")
    assert lines(site) == [
        'gpu-01, gpu-02 (host_vars/gpu-02/connection.yml:1): ansible_host is "192.0.2.11", port 22, for each of them; '
        "accepted: an address of its own for each host"
    ]


def test_one_address_with_a_port_for_each_host(site):
    write(site, "host_vars/gpu-01/connection.yml", "ansible_host: 192.0.2.11\nansible_port: 2201\n")
    write(site, "host_vars/gpu-02/connection.yml", "ansible_host: 192.0.2.11\nansible_port: 2202\n")
    assert lines(site) == []


def test_address_outside_the_management_network(site):
    write(site, "host_vars/gpu-02/connection.yml", "ansible_host: 198.51.100.12\n")
    assert lines(site) == [
        'gpu-02 (host_vars/gpu-02/connection.yml:1): ansible_host is "198.51.100.12", outside the management network '
        "192.0.2.0/24; accepted: an address in 192.0.2.0/24, or in cluster_networks a management network that holds it"
    ]


def test_address_of_the_network_itself(site):
    write(site, "host_vars/gpu-02/connection.yml", "ansible_host: 192.0.2.255\n")
    assert lines(site) == [
        'gpu-02 (host_vars/gpu-02/connection.yml:1): ansible_host is "192.0.2.255"; '
        "accepted: the address of one host in 192.0.2.0/24"
    ]


def test_port_out_of_range(site):
    add(site, "host_vars/gpu-02/connection.yml", "ansible_port: 70000\n")
    assert lines(site) == [
        "gpu-02 (host_vars/gpu-02/connection.yml:3): ansible_port is 70000; accepted: a whole number from 1 to 65535"
    ]


def test_host_names(site):
    replace(site, "hosts.yml", "            gpu-02:\n", "            gpu_02:\n")
    assert lines(site) == [
        "host gpu_02 (hosts.yml:12): is no host name; accepted: a host name of letters, digits and hyphens, "
        "such as gpu-01; did you mean gpu-02?"
    ]


def test_range_of_hosts_in_another_notation(site):
    # Ansible reads nothing of a file with such a name, and goes on.
    replace(site, "hosts.yml", "            gpu-02:\n", "            gpu[02-04]:\n")
    found = lines(site)
    assert (
        found[0]
        == "hosts.yml: Ansible can't read it as an inventory and goes on without it; accepted: a readable inventory"
    )
    assert (
        "host gpu[02-04] (hosts.yml:12): is no host name; accepted: a host name of letters, digits and hyphens, "
        "such as gpu-01; did you mean gpu[02:04]?"
    ) in found


def test_a_container_has_no_address_to_judge(site):
    write(
        site, "host_vars/gpu-02/connection.yml", "ansible_connection: containers.podman.podman\nansible_host: my_box\n"
    )
    assert lines(site) == []


# Slots


def slots(site: Path, text: str) -> list[str]:
    add(site, NODE_FILE, "cluster_accelerator_slots:\n" + "".join(f"  {line}\n" for line in text.splitlines()))
    return lines(site)


SLOTS = f"{NODES} ({NODE_FILE}:7)"
SLOT_FORM = 'accepted: a quoted PCI address and a name, such as "0000:18:00.0": SXM1'


def test_slot_named_twice(site):
    assert slots(site, '"0000:18:00.0": SXM1\n"0000:2a:00.0": SXM2\n"0000:3a:00.0": SXM1') == [
        f'{SLOTS}: the slot of 0000:18:00.0, 0000:3a:00.0 in cluster_accelerator_slots is "SXM1"; '
        "accepted: a slot of its own for each card"
    ]


def test_slot_named_twice_in_other_letters(site):
    assert slots(site, '"0000:18:00.0": SXM1\n"0000:3a:00.0": "sxm1 "') == [
        f'{SLOTS}: the slot of 0000:18:00.0, 0000:3a:00.0 in cluster_accelerator_slots is "SXM1"; '
        "accepted: a slot of its own for each card"
    ]


def test_card_named_twice(site):
    assert slots(site, '"0000:ba:00.0": SXM1\n"00000000:BA:00.0": SXM2') == [
        f'{SLOTS}: an address in cluster_accelerator_slots is "00000000:BA:00.0"; '
        'accepted: each card once; "0000:ba:00.0" is the same card'
    ]


def test_address_written_twice(site):
    assert slots(site, '"0000:ba:00.0": SXM1\n"0000:ba:00.0": SXM2') == [
        f"group h100_nodes ({NODE_FILE}:9): 0000:ba:00.0 stands twice in one mapping, first in line 8; accepted: each key once"
    ]


def test_addresses_in_two_domains_are_two_cards(site):
    assert slots(site, '"0000:b0:00.0": SXM1\n"0001:b0:00.0": SXM2') == []


@pytest.mark.parametrize("address", ["0000:18:00", "0000:1g:00.0", "0000:18:20.0", "0000:18:00.8", "SXM1", "NA", ""])
def test_malformed_slot_address(site, address):
    assert slots(site, f'"{address}": SXM1') == [
        f'{SLOTS}: an address in cluster_accelerator_slots is "{address}"; {SLOT_FORM}'
    ]


def test_address_that_yaml_reads_as_a_number(site):
    # 0000:18:00.0 unquoted is a number to the base of 60: 18 * 60
    assert slots(site, "0000:18:00.0: SXM1") == [
        f"{SLOTS}: an address in cluster_accelerator_slots is 1080.0; {SLOT_FORM}"
    ]


@pytest.mark.parametrize(("label", "told"), [('""', '""'), ("", "empty"), ("[a]", '["a"]'), ("5", "5")])
def test_slot_without_a_name(site, label, told):
    assert slots(site, f'"0000:18:00.0": {label}') == [
        f"{SLOTS}: the slot of 0000:18:00.0 in cluster_accelerator_slots is {told}; {SLOT_FORM}"
    ]


def test_map_turned_round(site):
    assert slots(site, 'SXM1: "0000:18:00.0"')[0] == (
        f'{SLOTS}: an address in cluster_accelerator_slots is "SXM1"; {SLOT_FORM}'
    )


def test_more_slots_than_cards(site):
    replace(site, NODE_FILE, "cluster_accelerator_count: 8", "cluster_accelerator_count: 2")
    assert slots(site, '"0000:18:00.0": SXM1\n"0000:2a:00.0": SXM2\n"0000:3a:00.0": SXM3') == [
        f"{SLOTS}: the number of cards in cluster_accelerator_slots is 3; accepted: 2 at most (cluster_accelerator_count)"
    ]


def test_map_of_the_one_card_whose_slot_the_host_can_not_tell(site):
    assert slots(site, '"0000:5d:00.0": GPU-3') == []


def test_boards_with_two_devices(site):
    add(site, NODE_FILE, "cluster_accelerator_devices_per_slot: 2\n")
    assert slots(site, '"0000:18:00.0": OAM0\n"0000:19:00.0": OAM0\n"0000:2a:00.0": OAM1') == []


def test_slots_as_a_list(site):
    add(site, NODE_FILE, "cluster_accelerator_slots: [SXM1, SXM2]\n")
    assert lines(site) == [f'{SLOTS}: cluster_accelerator_slots is ["SXM1", "SXM2"]; accepted: a mapping']


# Numbers and other values


@pytest.mark.parametrize(
    ("value", "told", "meant"),
    [
        ("eight", '"eight"', "8"),
        ("Four", '"Four"', "4"),
        ('"8 cards"', '"8 cards"', "8"),
        ("x8", '"x8"', "8"),
        ('"8.0"', '"8.0"', "8"),
        ("8.5", "8.5", ""),
        ("many", '"many"', ""),
        ("true", "true", ""),
        ("[8]", "[8]", ""),
        ("", "empty", ""),
        ("-8", "-8", ""),
        ("800", "800", ""),
    ],
)
def test_count_that_is_no_count(site, value, told, meant):
    replace(site, NODE_FILE, "cluster_accelerator_count: 8", f"cluster_accelerator_count: {value}")
    suggestion = f"; did you mean {meant}?" if meant else ""
    assert lines(site) == [f"{NODES} ({NODE_FILE}:5): cluster_accelerator_count is {told}; {COUNT}{suggestion}"]


@pytest.mark.parametrize(
    ("value", "told"), [("17", "17"), ("-1", "-1"), ("MIG", '"MIG"'), ("1.5", "1.5"), ("", "empty")]
)
def test_partitions_that_no_card_has(site, value, told):
    add(site, NODE_FILE, f"cluster_accelerator_partitions: {value}\n")
    (line,) = lines(site)
    assert f"cluster_accelerator_partitions is {told}; accepted: a whole number from 0 to 16" in line


@pytest.mark.parametrize("value", ["0", "1", '"7"', "8"])
def test_partitions(site, value):
    add(site, NODE_FILE, f"cluster_accelerator_partitions: {value}\n")
    assert lines(site) == []


def test_number_as_text_is_accepted(site):
    replace(site, NODE_FILE, "cluster_accelerator_count: 8", 'cluster_accelerator_count: "8"')
    assert lines(site) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("cluster_accelerator_link_width: 15", "15; accepted: one of 0, 1, 2, 4, 8, 12, 16, 32"),
        ("cluster_accelerator_link_width: x16", '"x16"; accepted: one of 0, 1, 2, 4, 8, 12, 16, 32; did you mean 16?'),
        ("cluster_accelerator_link_speed_gts: 5.5", "5.5; accepted: one of 0, 2.5, 5, 8, 16, 32, 64, 128"),
        ("cluster_accelerator_devices_per_slot: 3", "3; accepted: one of 1, 2, 4"),
        (
            "cluster_fabric_port_gbps: 400Gb/s",
            '"400Gb/s"; accepted: a number from 0 to 6400, such as 8; did you mean 400?',
        ),
        ("cluster_driver_version: 570.10", "570.1; accepted: a quoted version"),
        ("cluster_driver_version: latest", '"latest"; accepted: a quoted version'),
        ("cluster_driver_version: v570.86.15", '"v570.86.15"; accepted: a quoted version'),
        ('cluster_driver_version: ">=570"', '">=570"; accepted: a quoted version'),
    ],
)
def test_wrong_value_of_a_node_type(site, text, told):
    add(site, NODE_FILE, f"{text}\n")
    found = lines(site)
    assert len(found) == 1
    assert found[0].startswith(f"{NODES} ({NODE_FILE}:7): {text.split(':')[0]} is {told}")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("cluster_language: english", 'is "english"; accepted: one of en, zh; did you mean en?'),
        (
            "cluster_scenario: multinode",
            'is "multinode"; accepted: one of single_node, multi_node, inference, mixed; did you mean multi_node?',
        ),
        (
            "cluster_time_zone: Asia/Shangai",
            'is "Asia/Shangai"; accepted: a name of the tz database, such as Etc/UTC or Asia/Shanghai; did you mean Asia/Shanghai?',
        ),
        (
            "cluster_time_zone: Shanghai",
            'is "Shanghai"; accepted: a name of the tz database, such as Etc/UTC or Asia/Shanghai; did you mean Asia/Shanghai?',
        ),
        ("cluster_tolerance_memory_percent: 150", "is 150; accepted: a number from 0 to 50, such as 8"),
        ("cluster_tolerance_memory_percent: -1", "is -1; accepted: a number from 0 to 50, such as 8"),
        ("cluster_tolerance_clock_offset_milliseconds: 0", "is 0; accepted: a number from 1 to 60000, such as 8"),
        ("cluster_query_timeout_seconds: 0", "is 0; accepted: a whole number from 1 to 3600, such as 8"),
        ("cluster_query_timeout_seconds: .inf", "is Infinity; accepted: a whole number from 1 to 3600, such as 8"),
        ("cluster_link_reading_max_age_hours: 1week", 'is "1week"; accepted: a whole number from 1 to 8760, such as 8'),
        (
            "cluster_link_reading_max_age_hours: 24h",
            'is "24h"; accepted: a whole number from 1 to 8760, such as 8; did you mean 24?',
        ),
        ("cluster_link_width_judged: 'yes'", 'is "yes"; accepted: true or false, unquoted; did you mean true?'),
        ("cluster_records_dir: var/lib/accel", 'is "var/lib/accel"; accepted: an absolute path'),
        (
            "cluster_time_servers: ntp.example.org",
            'is "ntp.example.org"; accepted: a list, each entry a text; did you mean ["ntp.example.org"]?',
        ),
    ],
)
def test_wrong_value_of_the_site(site, text, told):
    add(site, ALL_FILE, f"{text}\n")
    assert lines(site) == [f"{EVERYBODY} ({ALL_FILE}:5): {text.split(':')[0]} {told}"]


@pytest.mark.parametrize(
    ("server", "meant"),
    [("ntp://ntp.example.org", "ntp.example.org"), ("ntp.example.org iburst", "ntp.example.org"), ("192.0.2.300", "")],
)
def test_wrong_time_server(site, server, meant):
    add(site, ALL_FILE, f'cluster_time_servers: [192.0.2.1, "{server}"]\n')
    suggestion = f"; did you mean {meant}?" if meant else ""
    assert lines(site) == [f'{EVERYBODY} ({ALL_FILE}:5): cluster_time_servers[1] is "{server}"; {ADDRESS}{suggestion}']


@pytest.mark.parametrize(
    ("networks", "told"),
    [
        (
            "[{name: fabric, cidr: 10.0.0.5/24}]",
            'cluster_networks[0].cidr is "10.0.0.5/24"; accepted: a network address with prefix length, '
            "such as 192.0.2.0/24; did you mean 10.0.0.0/24?",
        ),
        (
            "[{name: fabric, cidr: 10.0.0.0}]",
            'cluster_networks[0].cidr is "10.0.0.0"; accepted: a network address with prefix length, such as 192.0.2.0/24',
        ),
        (
            "[{name: fabric, cidr: 10.0.0.0/33}]",
            'cluster_networks[0].cidr is "10.0.0.0/33"; accepted: a network address with prefix length, such as 192.0.2.0/24',
        ),
        (
            "[{name: fabric, cidr: 10.0.0.0/10}, {name: storage, cidr: 10.1.0.0/16}]",
            'cluster_networks[1].cidr is "10.1.0.0/16"; accepted: a network apart from fabric, 10.0.0.0/10',
        ),
        (
            "[{name: fabric, cidr: 10.0.0.0/24}, {name: fabric, cidr: 10.0.1.0/24}]",
            'cluster_networks[1].name is "fabric"; accepted: a name of its own for each network',
        ),
        ("[{name: fabric}]", "cluster_networks[0].cidr is empty; accepted: a text"),
        (
            "[{name: fabric, cidr: 10.0.0.0/24, gatway: 10.0.0.1}]",
            'cluster_networks[0].gatway is "10.0.0.1"; accepted: only the keys name, cidr',
        ),
        (
            "{fabric: 10.0.0.0/24}",
            'cluster_networks is {"fabric": "10.0.0.0/24"}; accepted: a list, each entry a mapping',
        ),
    ],
)
def test_wrong_networks(site, networks, told):
    write(site, ALL_FILE, f"cluster_name: lab\ncluster_networks: {networks}\n")
    assert lines(site) == [f"{EVERYBODY} ({ALL_FILE}:2): {told}"]


@pytest.mark.parametrize(("name", "meant"), [("Lab 2", "lab-2"), ("../lab", "lab"), ("", ""), ("a/b", "a-b")])
def test_site_name_that_is_no_directory_name(site, name, meant):
    replace(site, ALL_FILE, "cluster_name: lab", f'cluster_name: "{name}"')
    suggestion = f"; did you mean {meant}?" if meant else ""
    assert lines(site) == [
        f'{EVERYBODY} ({ALL_FILE}:2): cluster_name is "{name}"; accepted: lower-case letters, digits, - and _, '
        f"64 at most, such as lab-2{suggestion}"
    ]


CODE = (
    "accepted: xid 79, sxid 20034, ascend 0x80e01801, or one of ras uncorrectable, ras deferred, ras correctable, "
    "ras poison, ras threshold, gpu reset, gpu reset failed, gpu init failed, ring timeout, bus lost, aer corrected, "
    "aer nonfatal, aer fatal"
)
ACTION = "accepted: one of ignore, watch, reset, replace"


def test_kernel_event_actions_that_are_right(site):
    add(
        site,
        ALL_FILE,
        "cluster_kernel_event_actions:\n  xid 79: replace\n  xid 999: ignore\n  sxid 20034: watch\n"
        "  ascend 0x80e21007: reset\n  ascend 0x8fffffff: ignore\n  ras deferred: ignore\n  aer corrected: ignore\n",
    )
    assert lines(site) == []


@pytest.mark.parametrize(
    ("code", "shown", "meant"),
    [
        ("79", "79", "xid 79"),
        ("xid79", '"xid79"', "xid 79"),
        ("XID 79", '"XID 79"', "xid 79"),
        ("Xid-79", '"Xid-79"', "xid 79"),
        ("xid 079", '"xid 079"', "xid 79"),
        ("nvidia xid 79", '"nvidia xid 79"', "xid 79"),
        ("xdi 79", '"xdi 79"', "xid 79"),
        ("SXid 20034", '"SXid 20034"', "sxid 20034"),
        ("ascend 0x80E01801", '"ascend 0x80E01801"', "ascend 0x80e01801"),
        ("ascend 80e01801", '"ascend 80e01801"', "ascend 0x80e01801"),
        ("asend 0x80e01801", '"asend 0x80e01801"', "ascend 0x80e01801"),
        ("'0x80E01801'", '"0x80E01801"', "ascend 0x80e01801"),
        ("aer_fatal", '"aer_fatal"', "aer fatal"),
        ("ras uncorectable", '"ras uncorectable"', "ras uncorrectable"),
        ("xid 1234567", '"xid 1234567"', ""),
        ("ascend 0x80e0", '"ascend 0x80e0"', ""),
        ("gaudi 12", '"gaudi 12"', ""),
        ("xid", '"xid"', ""),
        ("true", "true", ""),
    ],
)
def test_kernel_event_code_that_is_none(site, code, shown, meant):
    add(site, ALL_FILE, f"cluster_kernel_event_actions:\n  {code}: ignore\n")
    suggestion = f"; did you mean {meant}?" if meant else ""
    (told,) = lines(site)
    assert told.endswith(f"a code in cluster_kernel_event_actions is {shown}; {CODE}{suggestion}")


@pytest.mark.parametrize(
    ("action", "shown", "meant"),
    [("ignored", '"ignored"', "ignore"), ("Reset", '"Reset"', "reset"), ("drain", '"drain"', ""), ("", "empty", "")],
)
def test_kernel_event_action_that_is_none(site, action, shown, meant):
    add(site, ALL_FILE, f"cluster_kernel_event_actions:\n  xid 79: {action}\n")
    suggestion = f"; did you mean {meant}?" if meant else ""
    (told,) = lines(site)
    assert told.endswith(f"the action of xid 79 in cluster_kernel_event_actions is {shown}; {ACTION}{suggestion}")


def test_kernel_event_actions_that_are_no_mapping(site):
    add(site, ALL_FILE, "cluster_kernel_event_actions: [xid 79]\n")
    (told,) = lines(site)
    assert told.endswith('cluster_kernel_event_actions is ["xid 79"]; accepted: a mapping')


ACME = """cluster_vendors:
  acme:
    pci_vendors: ["1eed"]
    command: [acme-smi, --json]
    format: json
    fields: {pci_address: bdf, serial: sn}
"""


def test_a_declared_vendor_is_one(site):
    add(site, ALL_FILE, ACME)
    replace(site, NODE_FILE, "nvidia", "acme")
    assert lines(site) == []
    replace(site, NODE_FILE, "acme", "amce")
    assert lines(site)[0].endswith("tenstorrent, acme; did you mean acme?")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            '["1eed"]',
            "[1234]",
            "cluster_vendors.acme.pci_vendors[0] is 1234; accepted: four lower-case hex digits in quotes, such as "
            '"1002", for YAML reads some as numbers; did you mean "1234"?',
        ),
        (
            "[acme-smi, --json]",
            "acme-smi --json",
            'cluster_vendors.acme.command is "acme-smi --json"; accepted: a list of words, the program first; no shell '
            "reads it; did you mean ['acme-smi', '--json']?",
        ),
        (
            "format: json",
            "format: jsn",
            'cluster_vendors.acme.format is "jsn"; accepted: json or csv; did you mean json?',
        ),
        (
            '["1eed"]',
            '["10de"]',
            'cluster_vendors.acme.pci_vendors[0] is "10de"; accepted: an id that is not nvidia\'s, or replaces: nvidia',
        ),
        (
            "  acme:",
            "  nvidia:",
            'a name in cluster_vendors is "nvidia"; accepted: another name; the collection knows nvidia (replaces: nvidia '
            "reads its cards by this declaration)",
        ),
    ],
)
def test_a_vendor_that_is_declared_wrongly(site, old, new, told):
    add(site, ALL_FILE, ACME.replace(old, new))
    assert lines(site) == [f"{EVERYBODY} ({ALL_FILE}:5): {told}"]


def test_all_that_is_wrong_with_a_declared_vendor_is_said_at_once(site):
    add(site, ALL_FILE, 'cluster_vendors: {acme: {pci_vendor: ["1eed"], comand: [x], replaces: nvida}}\n')
    told = lines(site)
    assert [one.rpartition("; did you mean ")[2] for one in told if "did you mean" in one] == [
        "pci_vendors?",
        "command?",
        "nvidia?",
    ]
    assert len(told) == 4


def test_declared_vendors_hold_for_the_whole_site(site):
    add(site, NODE_FILE, ACME)
    assert any("one value for the whole site" in one for one in lines(site))


def test_unknown_vendor(site):
    replace(site, NODE_FILE, "nvidia", "nvida")
    assert lines(site) == [
        f'{NODES} ({NODE_FILE}:3): cluster_accelerator_vendor is "nvida"; accepted: one of {", ".join(VENDORS)}; '
        "did you mean nvidia?"
    ]


def test_value_that_needs_facts(site):
    replace(
        site, NODE_FILE, "cluster_accelerator_count: 8", "cluster_accelerator_count: \"{{ ansible_facts['cards'] }}\""
    )
    found = lines(site)
    assert len(found) == 1
    assert found[0].startswith(f"{NODES} ({NODE_FILE}:5): cluster_accelerator_count can't be worked out: ")
    assert found[0].endswith("; accepted: a whole number from 0 to 128, such as 8, known before any host is asked")


def test_value_made_of_another(site):
    replace(site, NODE_FILE, "cluster_accelerator_count: 8", 'cluster_accelerator_count: "{{ cards }}"\ncards: eight')
    assert lines(site) == [f'{NODES} ({NODE_FILE}:5): cluster_accelerator_count is "eight"; {COUNT}; did you mean 8?']


def test_value_made_of_a_default_is_sound(site):
    add(site, ALL_FILE, 'cluster_agent_dir: "{{ cluster_config_dir }}/agent"\n')
    assert lines(site) == []


def test_variables_of_other_roles_are_judged_by_their_own_description(site):
    add(site, ALL_FILE, "baseline_transparent_hugepages: sometimes\n")
    assert lines(site) == [
        f'{EVERYBODY} ({ALL_FILE}:5): baseline_transparent_hugepages is "sometimes"; accepted: one of always, madvise, never'
    ]


def test_wrong_value_on_the_command_line(site):
    assert lines(site, extra=('{"cluster_query_timeout_seconds": "soon"}',)) == [
        f'{EVERYBODY} (command line): cluster_query_timeout_seconds is "soon"; '
        "accepted: a whole number from 1 to 3600, such as 8"
    ]


# Names of variables


@pytest.mark.parametrize(
    ("name", "role", "meant"),
    [
        ("cluster_acelerator_count", "cluster", "cluster_accelerator_count"),
        ("cluster_accelerator_cont", "cluster", "cluster_accelerator_count"),
        ("Cluster_Accelerator_Count", "cluster", "cluster_accelerator_count"),
        ("clutser_accelerator_count", "cluster", "cluster_accelerator_count"),
        ("baseline_hugepage_2mib_count", "baseline", "baseline_hugepages_2mib_count"),
        ("cluster_zebra", "cluster", ""),
    ],
)
def test_unknown_variable(site, name, role, meant):
    add(site, NODE_FILE, f"{name}: 4\n")
    suggestion = f"; did you mean {meant}?" if meant else ""
    assert lines(site) == [
        f"group h100_nodes ({NODE_FILE}:7): {name} is no variable of the collection, so nothing reads it; "
        f"accepted: one that ansible-doc -t role accel.cluster.{role} lists; for your own another prefix than {role}_{suggestion}"
    ]


def test_unknown_variable_on_the_command_line(site):
    assert lines(site, extra=("cluster_languag=en",)) == [
        "command line: cluster_languag is no variable of the collection, so nothing reads it; "
        "accepted: one that ansible-doc -t role accel.cluster.cluster lists; for your own another prefix than cluster_; "
        "did you mean cluster_language?"
    ]


@pytest.mark.parametrize("scope", ["inventory", "command_line"])
@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("cluster_language=fr", 'cluster_language is "fr"; accepted: one of en, zh'),
        (
            "cluster_scenario=multi",
            'cluster_scenario is "multi"; accepted: one of single_node, multi_node, inference, mixed; did you mean multi_node?',
        ),
        (
            "cluster_accelerator_link_width=15",
            'cluster_accelerator_link_width is "15"; accepted: one of 0, 1, 2, 4, 8, 12, 16, 32',
        ),
        (
            '{"driver_vendors": ["nvidiaa"]}',
            f'driver_vendors[0] is "nvidiaa"; accepted: one of {", ".join(VENDORS)}; did you mean nvidia?',
        ),
        ("cluster_processes_allowed=never", 'cluster_processes_allowed is "never"; accepted: true or false, unquoted'),
    ],
)
def test_wrong_word_on_the_command_line(site, scope, word, told):
    found = [line.partition(": ")[::2] for line in lines(site, extra=(word,), scope=scope)]
    assert (found[0][1], {line for _subject, line in found[1:]}) == (told, set())
    assert "command line" in found[0][0]


# The command line knows no types: whatever is given as name=value is a text.
@pytest.mark.parametrize("scope", ["inventory", "command_line"])
@pytest.mark.parametrize(
    "word",
    ["cluster_processes_allowed=false", "cluster_processes_allowed=yes", "cluster_query_timeout_seconds=5",
     "cluster_language={{ 'zh' }}", '{"driver_vendors": ["nvidia"]}', "accept_reason=replaced", "own=1"],
)  # fmt: skip
def test_sound_value_on_the_command_line(site, scope, word):
    assert lines(site, extra=(word,), scope=scope) == []


def test_only_the_command_line_is_judged_where_only_that_is_asked_for(site):
    add(site, ALL_FILE, "cluster_scenario: multi\n")
    result = run(site, extra=("cluster_languag=zh", "cluster_language=fr"), scope="command_line")
    assert [one["message"] for one in result["complaints"]] == [
        "command line: cluster_languag is no variable of the collection, so nothing reads it; "
        "accepted: one that ansible-doc -t role accel.cluster.cluster lists; for your own another prefix than cluster_; "
        "did you mean cluster_language?",
        'command line: cluster_language is "fr"; accepted: one of en, zh',
    ]
    assert result["failed"]
    assert result["msg"].startswith("2 things are wrong with the command line; nothing was changed, no host was asked.")
    assert not (site.parent / "sites").exists()


@pytest.mark.parametrize(
    "name", ["site_addresses", "accelerator_count", "clusters", "ansible_user", "_private", "my_cluster_name"]
)
def test_own_variables_are_left_alone(site, name):
    add(site, NODE_FILE, f"{name}: something\n")
    assert lines(site) == []


# Node types


@pytest.mark.parametrize(
    "name", ["cluster_accelerator_vendor", "cluster_accelerator_models", "cluster_accelerator_count"]
)
def test_what_a_node_type_has_to_declare(site, name):
    text = (site / NODE_FILE).read_text(encoding="utf-8")
    write(site, NODE_FILE, "".join(line for line in text.splitlines(True) if not line.startswith(name)))
    found = lines(site)
    assert len(found) == 1
    assert found[0].startswith(f"{NODES}: {name} is not declared for the node type h100_nodes; accepted: ")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("vendor: nvidia", 'vendor: ""'),
        ('models: ["NVIDIA H100 80GB HBM3"]', "models: []"),
        ("count: 8", "count: 0"),
        ("count: 8", 'count: "0"'),
    ],
)
def test_node_type_without_cards(site, old, new):
    replace(site, NODE_FILE, old, new)
    found = lines(site)
    assert len(found) == 1
    assert found[0].endswith("; a host without cards is in no node type")


def test_node_type_called_otherwise_than_its_group(site):
    replace(site, NODE_FILE, "cluster_node_type: h100_nodes", "cluster_node_type: h100")
    assert lines(site) == [
        f'{NODES} ({NODE_FILE}:2): cluster_node_type is "h100"; accepted: the name of its group, h100_nodes'
    ]


def test_host_that_differs_within_its_node_type(site):
    write(site, "host_vars/gpu-02/cluster.yml", "cluster_accelerator_count: 4\n")
    assert lines(site) == [
        "gpu-02 (host_vars/gpu-02/cluster.yml:1): cluster_accelerator_count is set for one host; "
        "accepted: one value in group_vars/h100_nodes; hosts that differ are a node type of their own"
    ]


def test_host_variable_in_the_inventory_file(site):
    replace(site, "hosts.yml", "gpu-02:", 'gpu-02: {cluster_driver_version: "575.57.08"}')
    assert lines(site) == [
        "gpu-02 (hosts.yml:12): cluster_driver_version is set for one host; "
        "accepted: one value in group_vars/h100_nodes; hosts that differ are a node type of their own"
    ]


def test_another_group_that_splits_a_node_type(site):
    nested = "            gpu-02:\n            gpu-03:\n          children:\n            new_rack:\n              hosts:\n                gpu-02:\n"
    replace(site, "hosts.yml", "            gpu-02:\n", nested)
    write(site, "group_vars/new_rack/cluster.yml", 'cluster_driver_version: "575.57.08"\n')
    add(site, NODE_FILE, 'cluster_driver_version: "570.86.15"\n')
    assert lines(site) == [
        'gpu-02 (group_vars/new_rack/cluster.yml:1): cluster_driver_version is "575.57.08", but "570.86.15" for '
        "gpu-01, gpu-03; accepted: one value for all of h100_nodes; hosts that differ are a node type of their own"
    ]


def test_slot_map_may_differ_from_host_to_host(site):
    write(site, "host_vars/gpu-02/cluster.yml", 'cluster_accelerator_slots: {"0000:19:00.0": SXM1}\n')
    assert lines(site) == []


def test_cards_outside_accelerator_nodes(site):
    add(site, ALL_FILE, "cluster_accelerator_count: 8\n")
    assert lines(site) == [
        f"ctl-01 ({ALL_FILE}:5): cluster_accelerator_count is 8, but the host is not in accelerator_nodes; "
        "accepted: hosts with cards in a node type below accelerator_nodes, the count in that group's file"
    ]


def test_site_that_differs_from_host_to_host(site):
    write(site, "host_vars/gpu-02/cluster.yml", "cluster_name: other\n")
    assert lines(site) == [
        'gpu-02 (host_vars/gpu-02/cluster.yml:1): cluster_name is "other", but "lab" for ctl-01, gpu-01; '
        "accepted: one value for the whole site, in group_vars/all/cluster.yml"
    ]


def test_single_node_with_two_nodes(site):
    add(site, ALL_FILE, "cluster_scenario: single_node\n")
    assert lines(site) == [
        f"inventory ({ALL_FILE}:5): cluster_scenario is single_node, but 2 hosts are in accelerator_nodes; "
        "accepted: multi_node, inference or mixed for more than one"
    ]


# The site directory


def site_dir(site: Path, path: object, **more) -> list[str]:
    return lines(site, extra=(f"cluster_site_dir={path}",), **more)


FORM = "accepted: a directory outside the inventory that can be written to, such as /srv/accel/sites/lab"


def test_site_directory_is_made_and_left_empty(site):
    assert lines(site) == []
    assert list((site.parent / "sites/lab").iterdir()) == []


def test_site_directory_is_not_made_in_check_mode(site):
    assert lines(site, check_mode=True) == []
    assert not (site.parent / "sites").exists()


def test_site_directory_below_the_inventory(site, monkeypatch):
    monkeypatch.chdir(site.parent)
    path = site / "sites"
    for source in ("hosts.yml", "."):
        assert lines(site, source, extra=(f"cluster_site_dir={path}",)) == [
            f'inventory (command line): cluster_site_dir is "{path}", below the inventory; {FORM}'
        ]
    assert not path.exists()


def test_project_with_its_inventory_in_the_root(site):
    path = site / "sites/lab"
    assert site_dir(site, path) == []
    assert site_dir(site, site / "group_vars/sites") == [
        f'inventory (command line): cluster_site_dir is "{site}/group_vars/sites", below the inventory; {FORM}'
    ]


def test_site_directory_that_is_a_file(site):
    path = site.parent / "file"
    path.write_text("", encoding="utf-8")
    assert site_dir(site, path) == [
        f'inventory (command line): cluster_site_dir is "{path}", but {path} is no directory; {FORM}'
    ]


def test_site_directory_that_can_not_be_written_to(site):
    # Not even root can write here.
    assert site_dir(site, "/proc/accel-sites") == [
        f'inventory (command line): cluster_site_dir is "/proc/accel-sites", but nothing can be written there: '
        f"{os.strerror(2)}; {FORM}"
    ]


def test_relative_site_directory(site):
    assert site_dir(site, "sites/lab") == [
        f'{EVERYBODY} (command line): cluster_site_dir is "sites/lab"; accepted: an absolute path'
    ]


def test_default_of_the_site_directory_is_below_the_current_directory(site, monkeypatch):
    monkeypatch.chdir(site.parent)
    assert lines(site, extra=("own=cluster_site_dir is left to its default",)) == []
    assert (site.parent / "sites/lab").is_dir()


def test_of_a_site_that_is_refused_no_directory_is_made(site):
    replace(site, NODE_FILE, "cluster_accelerator_count: 8", "cluster_accelerator_count: eight")
    assert len(lines(site)) == 1
    assert not (site.parent / "sites").exists()


def test_host_that_takes_the_time_from_itself(site):
    add(site, ALL_FILE, "cluster_time_servers: [ctl-01]\n")
    told = (
        'ctl-01 (group_vars/all/cluster.yml:5): cluster_time_servers is ["ctl-01"]; accepted: another server; or, where '
        "there is none outside, baseline_time_local_stratum: 8 for this host"
    )
    assert lines(site) == [told]


def test_host_that_is_the_clock_of_its_site(site):
    add(site, ALL_FILE, "cluster_time_servers: [ctl-01]\n")
    write(site, "host_vars/ctl-01/baseline.yml", "baseline_time_local_stratum: 8\n")
    assert lines(site) == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("192.0.2.128/25", "a network apart from"),
        ("192.0.0.0/16", "a network apart from"),
        ("10.88.0.1/16", "a network address with prefix length"),
        ("198.51.100.0/24", ""),
    ],
)
def test_bridge_of_containers_in_a_network_of_the_site(site, line, found):
    write(site, "group_vars/h100_nodes/container.yml", f"container_bridge_subnet: {line}\n")
    told = [one for one in lines(site) if found and found in one]
    assert lines(site) == told and bool(told) == bool(found)
    assert all("gpu-01, gpu-02 (group_vars/h100_nodes/container.yml:1): container_bridge_subnet" in one for one in told)


def test_default_bridge_of_containers_in_a_network_of_the_site(site):
    add(site, ALL_FILE, "  - {name: fabric, cidr: 10.64.0.0/10}\n")
    told = (
        'gpu-01, gpu-02: container_bridge_subnet is "10.88.0.0/16"; accepted: a network apart from fabric, 10.64.0.0/10'
    )
    assert lines(site) == [told]


def test_site_without_a_name_is_told_what_it_is_called(site):
    replace(site, ALL_FILE, "cluster_name: lab\n", "")
    assert "cluster_name is not declared, so the site is called cluster" in run(site)["notes"]


def test_number_of_the_right_type_is_not_suggested_again(site):
    add(site, NODE_FILE, "cluster_accelerator_link_width: 17\n")
    (line,) = lines(site)
    assert "cluster_accelerator_link_width is 17" in line
    assert "did you mean" not in line


def test_slot_that_two_cards_have_is_told_beside_a_bad_address(site):
    add(site, NODE_FILE, 'cluster_accelerator_slots: {"0000:18:00.0": SXM1, "nowhere": SXM1}\n')
    assert any("a slot of its own for each card" in line for line in lines(site))


# Files


def test_key_written_twice(site):
    add(site, NODE_FILE, "cluster_accelerator_count: 4\n")
    assert lines(site) == [
        f"group h100_nodes ({NODE_FILE}:7): cluster_accelerator_count stands twice in one mapping, first in line 5; "
        "accepted: each key once"
    ]


def test_host_written_twice(site):
    replace(site, "hosts.yml", "            gpu-02:\n", "            gpu-02:\n            gpu-01:\n")
    assert lines(site) == [
        "inventory (hosts.yml:13): gpu-01 stands twice in one mapping, first in line 11; accepted: each key once"
    ]


def test_variable_in_two_files_of_one_group(site):
    write(site, "group_vars/h100_nodes/more.yml", "cluster_accelerator_count: 8\n")
    assert lines(site) == [
        f"group h100_nodes (group_vars/h100_nodes/more.yml:1): cluster_accelerator_count is defined in {NODE_FILE}:5 too; "
        "accepted: one file for each variable"
    ]


def test_file_that_a_folder_hides(site):
    write(site, "group_vars/h100_nodes.yml", "own: 1\n")
    assert lines(site) == [
        "group_vars/h100_nodes.yml: nothing reads it, for there is a folder h100_nodes beside it; "
        "accepted: its variables in a file in group_vars/h100_nodes"
    ]


# Several things, several sources


def test_all_complaints_come_at_once_and_are_numbered(site):
    replace(site, NODE_FILE, "cluster_accelerator_count: 8", "cluster_accelerator_count: eight")
    write(site, "host_vars/gpu-02/connection.yml", "ansible_host: 192.0.2.256\n")
    add(site, ALL_FILE, "cluster_languag: en\n")
    result = run(site)
    assert result["failed"]
    first, *rest = result["msg"].splitlines()
    assert first == "3 things are wrong with the inventory; nothing was changed, no host was asked."
    assert [line.split(": ")[0] for line in rest] == [
        "1. gpu-02 (host_vars/gpu-02/connection.yml:1)",
        f"2. group all ({ALL_FILE}:5)",
        f"3. {NODES} ({NODE_FILE}:5)",
    ]


def test_directory_as_inventory(site):
    replace(site, NODE_FILE, "cluster_accelerator_count: 8", "cluster_accelerator_count: eight")
    assert len(lines(site, ".")) == 1


def test_two_sources(site):
    write(site, "more/hosts.yml", "cluster_hosts:\n  children:\n    login_nodes:\n      hosts:\n        login-01:\n")
    write(site, "more/host_vars/login-01.yml", "ansible_host: 192.0.2.11\nmirror_pull_token: abcdef\n")
    assert lines(site, "hosts.yml", "more/hosts.yml") == [
        f"login-01 (more/host_vars/login-01.yml:2): mirror_pull_token is a secret in clear; {SECRET}",
        'gpu-01, login-01 (more/host_vars/login-01.yml:1): ansible_host is "192.0.2.11", port 22, for each of them; '
        "accepted: an address of its own for each host",
    ]


def test_ini_inventory_is_judged_like_yaml(site):
    (site / "hosts.yml").unlink()
    write(
        site,
        "hosts",
        "[h100_nodes]\ngpu-[01:02]\n\n[accelerator_nodes:children]\nh100_nodes\n\n"
        "[cluster_hosts:children]\naccelerator_nodes\n\n[h100_nodes:vars]\ncluster_fabric_port_count=eight\n",
    )
    assert lines(site, "hosts") == [
        f'{NODES} (hosts:11): cluster_fabric_port_count is "eight"; {COUNT}; did you mean 8?'
    ]


def test_many_hosts_are_one_complaint(site):
    replace(site, "hosts.yml", "            gpu-01:\n            gpu-02:\n", "            gpu-[01:99]:\n")
    replace(site, NODE_FILE, "cluster_accelerator_count: 8", "cluster_accelerator_count: eight")
    assert lines(site) == [
        f'gpu-01, gpu-02, gpu-03, gpu-04 and 95 more ({NODE_FILE}:5): cluster_accelerator_count is "eight"; {COUNT}; '
        "did you mean 8?"
    ]
