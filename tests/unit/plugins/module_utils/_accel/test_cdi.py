# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of the Container Device Interface: made, read and judged."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import cdi, registry
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors.base import ContainerAccess, Unreadable
from doubles import RecordedRunner

# Written as the tests of nvidia-container-toolkit expect it of the generator; no real host was seen.
GENERATED = Path(__file__).resolve().parent / "files/nvidia-ctk.yaml"
NVIDIA = registry.VENDORS["nvidia"].container
KIND = "nvidia.com/gpu"
UUIDS = [f"GPU-{number}1111111-2222-3333-4444-555555555555" for number in range(4)]
PODMAN = {"name": "podman", "version": "4.3.1"}
LIB = "/usr/lib/x86_64-linux-gnu"


def card(number, **more):
    return {
        "index": number,
        "vendor": "nvidia",
        "uuid": UUIDS[number],
        "serial": f"165042300012{number}",
        "identity": "uuid",
        "pci_address": f"0000:{number}8:00.0",
        "slot": {"label": f"SXM{number + 1}"},
        "device_nodes": [f"/dev/nvidia{number}"],
        **more,
    }


def host(count=2, **more):
    drivers = [{"vendor": "nvidia", "kernel_version": "570.86.15", "library_version": "570.86.15"}]
    return {"devices": [card(number) for number in range(count)], "unanswered": [], "drivers": drivers, **more}


def spec_of(devices, version="570.86.15"):
    made, _left_out = cdi.build(KIND, devices, ["/dev/nvidiactl"], [(f"{LIB}/libcuda.so.{version}",) * 2], version)
    return cdi.read(cdi.text_of(made))


def file_of(spec, path="/etc/cdi/accel-nvidia.json", **more):
    folder = path.rpartition("/")[0]
    return {
        "path": path, "folder": folder, "state": "ok", "problem": None, "mode": "0644", "owner": 0, "spec": spec, **more
    }  # fmt: skip


def seen(*files, missing=()):
    folders = [{"path": one, "mode": "0755", "owner": 0} for one in sorted({file["folder"] for file in files})]
    return {"files": list(files), "folders": folders, "missing": list(missing)}


def problems(files, observation=None, engine="podman 4", **more):
    engine = PODMAN if engine == "podman 4" else engine
    return cdi.problems(seen(*files, **more), observation or host(), KIND, NVIDIA, engine)


# Making


def test_a_card_has_a_name_by_number_identity_and_slot():
    spec, left_out = cdi.build(KIND, host()["devices"], ["/dev/nvidia-uvm", "/dev/nvidiactl"], [], "570.86.15")
    assert left_out == []
    assert (spec["cdiVersion"], spec["kind"]) == ("0.5.0", KIND)
    nodes = {one["name"]: [node["path"] for node in one["containerEdits"]["deviceNodes"]] for one in spec["devices"]}
    own = {0: ["/dev/nvidia0"], 1: ["/dev/nvidia1"]}
    assert nodes == {
        "0": own[0], "1": own[1], UUIDS[0]: own[0], UUIDS[1]: own[1], "SXM1": own[0], "SXM2": own[1],
        "all": [*own[0], *own[1]],
    }  # fmt: skip
    assert spec["containerEdits"]["env"] == ["ACCEL_DRIVER_VERSION=570.86.15"]
    assert [one["path"] for one in spec["containerEdits"]["deviceNodes"]] == ["/dev/nvidia-uvm", "/dev/nvidiactl"]


def test_the_order_in_which_cards_and_files_were_found_makes_no_difference():
    mounts = [("/a/x", "/a/x"), ("/a/b", "/a/b")]
    one = cdi.build(KIND, host(4)["devices"], ["/dev/b", "/dev/a"], mounts)
    other = cdi.build(KIND, host(4)["devices"][::-1], ["/dev/a", "/dev/b"], mounts[::-1])
    assert cdi.text_of(one[0]) == cdi.text_of(other[0])


def test_a_name_that_would_mean_two_cards_is_given_to_neither():
    devices = [card(0, index=3), card(1, index=3), card(2, device_nodes=[])]
    named, left_out = cdi.names_of(devices)
    assert "3" not in named and {"SXM1", "SXM2", "all"} <= set(named) and "SXM3" not in named
    assert left_out == ["0000:28:00.0 has no device node", "the name 3 would mean several cards"]
    named, left_out = cdi.names_of([card(0, slot={"label": "A 1"}), card(1, slot={"label": "A-1"})])
    assert "A-1" not in named and left_out == ["the name A-1 would mean several cards"]


def test_a_slot_with_a_board_of_two_chips_gives_both():
    named, left_out = cdi.names_of([card(0, slot={"label": "7"}), card(1, slot={"label": "7"})])
    assert named["slot-7"] == ["/dev/nvidia0", "/dev/nvidia1"] and left_out == []


@pytest.mark.parametrize(
    ("label", "name"),
    [("SXM5", "SXM5"), ("PCIe Slot 3", "PCIe-Slot-3"), ("3", "slot-3"), ("all", "slot-all"), (None, None), ("#", None)],
)
def test_slots_are_called_as_cdi_takes_it_and_never_as_a_number(label, name):
    assert cdi.slot_name(label) == name
    assert name is None or cdi.valid_name(name)


@pytest.mark.parametrize(
    ("device", "name"),
    [
        (card(0), UUIDS[0]),
        (card(0, uuid=None, identity="serial"), "1650423000120"),
        (card(0, uuid=None, identity="address"), None),  # two chips of a board share the serial
        (card(0, uuid="a b"), None),
    ],
)
def test_what_goes_with_the_card(device, name):
    assert cdi.identity_name(device) == name


@pytest.mark.parametrize("kind", ["nvidia.com", "nvidia.com/a/b", "1.com/gpu", "nvidia.com/g.pu", "/gpu", "a./gpu", ""])
def test_a_wrong_kind_is_refused(kind):
    with pytest.raises(ValueError, match="CDI kind"):
        cdi.build(kind, host()["devices"])


def test_no_card_is_no_file():
    with pytest.raises(ValueError, match=r"no card with a device node; 0000:08:00\.0 has no"):
        cdi.build(KIND, [card(0, device_nodes=[])])


@pytest.mark.parametrize("name", sorted(registry.VENDORS))
def test_what_a_vendor_says_of_containers_can_be_used(name):
    access = registry.VENDORS[name].container
    assert cdi.valid_kind(access.kind) or access == ContainerAccess()
    assert all(path.startswith("/dev/") for path in access.control_nodes)
    assert all(path.startswith("/") for path in access.paths)
    assert not any("/" in one for one in access.libraries)


def test_libraries_are_found_under_both_names_even_behind_debians_alternatives():
    real = f"{LIB}/nvidia/current/libcuda.so.535.261.03"
    runner = RecordedRunner(
        files={real: "", "/dev/nvidiactl": "", "/usr/bin/nvidia-smi": "", "/usr/bin/smi.real": ""},
        links={
            f"{LIB}/libcuda.so.1": real,
            f"{LIB}/libnvidia-ml.so.1": "/gone",
            "/usr/bin/nvidia-smi": "/usr/bin/smi.real",
        },
    )  # fmt: skip
    nodes, mounts = cdi.find(runner, NVIDIA)
    assert nodes == ["/dev/nvidiactl"]
    assert mounts == [
        ("/usr/bin/smi.real", "/usr/bin/nvidia-smi"),
        (real, f"{LIB}/libcuda.so.1"),
        (real, f"{LIB}/libcuda.so.535.261.03"),
    ]


# Reading


def test_a_file_of_the_vendors_generator_is_read():
    told = cdi.read(GENERATED.read_text(encoding="utf-8"))
    assert (told["version"], told["kind"]) == ("0.5.0", KIND)
    assert [one["name"] for one in told["devices"]] == ["0", "GPU-11111111-2222-3333-4444-555555555555", "all"]
    assert told["nodes"] == ["/dev/nvidia-uvm", "/dev/nvidiactl"]
    assert cdi.driver_versions(told, NVIDIA) == ["570.86.15"]


def test_what_is_written_is_read():
    assert spec_of(host()["devices"])["devices"][0] == {
        "name": "0", "nodes": ["/dev/nvidia0"], "mounts": [], "env": []
    }  # fmt: skip


GOOD = {"cdiVersion": "0.5.0", "kind": KIND, "devices": [{"name": "0"}]}


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        (json.dumps(GOOD)[:-5], cdi.Broken, "line 1: not JSON"),
        (json.dumps({**GOOD, "kind": "gpu"}), cdi.Broken, "kind 'gpu'"),
        (json.dumps({**GOOD, "devices": []}), cdi.Broken, "no device"),
        (json.dumps({**GOOD, "devices": [{"name": "a b"}]}), cdi.Broken, "'a b' is no name"),
        (json.dumps({**GOOD, "devices": [{"name": "a"}, {"name": "a"}]}), cdi.Broken, "a is defined twice"),
        (json.dumps({**GOOD, "cdiVersion": "new"}), cdi.Broken, "'new' is no version"),
        (json.dumps(GOOD).replace("}]", "},]"), Unreadable, "line 1: not JSON"),  # YAML takes that comma
        ("a: &x 1\n", Unreadable, "line 1"),
        ("", Unreadable, "line 1"),
    ],
)
def test_what_no_engine_takes_is_told_from_what_is_only_not_read_here(text, kind, words):
    with pytest.raises(Unreadable, match=words) as told:
        cdi.read(text)
    assert told.type is kind


def test_a_host_is_looked_through():
    good = cdi.text_of(cdi.build(KIND, host()["devices"], ["/dev/nvidiactl"])[0])
    runner = RecordedRunner(
        files={
            "/etc/cdi/accel-nvidia.json": good,
            "/etc/cdi/b.yaml": "x: |\n  y\n",
            "/etc/cdi/notes.txt": "no engine reads this",
            "/dev/nvidia0": "",
            "/dev/nvidiactl": "",
        },
        modes={"/etc/cdi/b.yaml": (0o666, 1000)},
    )
    told = cdi.observe(runner)
    assert [(one["path"], one["state"], one["mode"], one["owner"]) for one in told["files"]] == [
        ("/etc/cdi/accel-nvidia.json", "ok", "0644", 0),
        ("/etc/cdi/b.yaml", "unreadable", "0666", 1000),
    ]
    assert told["missing"] == ["/dev/nvidia1"]
    assert [one["path"] for one in told["folders"]] == ["/etc/cdi"]


# Judging


def test_a_file_that_is_up_to_date_has_no_problem():
    assert problems([file_of(spec_of(host()["devices"]))]) == []


def test_the_vendors_file_is_judged_too():
    devices = [card(0, uuid="GPU-11111111-2222-3333-4444-555555555555", slot={"label": None})]
    spec = cdi.read(GENERATED.read_text(encoding="utf-8"))
    assert problems([file_of(spec, "/var/run/cdi/nvidia.yaml")], host(devices=devices)) == []
    found = problems([file_of(spec, "/var/run/cdi/nvidia.yaml")], host(devices=[card(0)]))
    assert found == [("replaced", "/var/run/cdi/nvidia.yaml: GPU-11111111-2222-3333-4444-555555555555")]


OWN = "/etc/cdi/accel-nvidia.json"


def causes(*arguments, **more):
    return [cause for cause, _words in problems(*arguments, **more)]


def test_each_way_to_be_stale_is_told_apart():
    spec = spec_of(host()["devices"])
    files = [file_of(spec)]
    newer = [{"vendor": "nvidia", "kernel_version": "575.57.08", "library_version": "575.57.08"}]
    assert problems(files, host(drivers=newer)) == [("driver_version", f"{OWN}: 570.86.15, 575.57.08")]
    short = [{"vendor": "nvidia", "kernel_version": "570.86", "library_version": None}]
    assert problems(files, host(drivers=short)) == []
    assert problems(files, missing=["/dev/nvidia1"]) == [("missing_node", f"{OWN}: /dev/nvidia1")]
    library = f"{LIB}/libcuda.so.570.86.15"
    assert problems(files, missing=[library]) == [("missing_library", f"{OWN}: {library}")]
    assert problems(files, host(3)) == [("lacking", "0000:28:00.0 (/dev/nvidia2)")]
    replaced = host(devices=[card(0), card(1, uuid=UUIDS[3])])
    assert problems(files, replaced) == [("replaced", f"{OWN}: {UUIDS[1]}")]


def test_nodes_that_changed_places_give_the_wrong_card():
    swapped = [card(0, device_nodes=["/dev/nvidia1"]), card(1, device_nodes=["/dev/nvidia0"])]
    found = problems([file_of(spec_of(host()["devices"]))], host(devices=swapped))
    assert {cause for cause, _words in found} == {"renumbered"}
    assert ("renumbered", f"{OWN}: {UUIDS[0]} -> /dev/nvidia0") in found


def test_a_card_that_does_not_answer_was_not_replaced():
    spec = spec_of(host()["devices"])
    lost = host(1, unanswered=[{"pci_address": "0000:18:00.0", "state": "lost", "uuid": None}])
    assert problems([file_of(spec)], lost) == []
    assert causes([file_of(spec)], host(1)) == ["replaced", "replaced"]  # its UUID and its slot


def test_two_files_of_one_folder_and_two_folders():
    spec = spec_of(host()["devices"])
    assert causes([file_of(spec), file_of(spec, "/etc/cdi/nvidia.yaml")])[0] == "conflict"
    late = file_of(spec, "/var/run/cdi/nvidia.yaml")
    assert causes([file_of(spec), late]) == ["shadowed"]
    # What is hidden is not what containers get.
    old = file_of(spec_of(host()["devices"], "535.261.03"))
    assert causes([old, late]) == ["shadowed"]
    assert causes([file_of(spec), {**late, "spec": old["spec"]}])[0] == "driver_version"
    other = copy.deepcopy(spec)
    other["kind"] = "amd.com/gpu"
    assert problems([file_of(spec), file_of(other, "/etc/cdi/amd.json")]) == []


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"mode": "0664"}, "its mode 0664 lets others write"),
        ({"mode": "0600"}, "its mode 0600 hides it from all but root"),
        ({"owner": 1000}, "its owner is the user 1000, not root"),
    ],
)
def test_wrong_permissions(more, words):
    assert problems([file_of(spec_of(host()["devices"]), **more)]) == [("permissions", f"{OWN}: {words}")]


def test_podman_of_debian_12_takes_no_newer_version():
    spec = {**spec_of(host()["devices"]), "version": "0.6.0"}
    assert problems([file_of(spec)]) == [("version", f"{OWN}: 0.6.0 (podman 4.3.1)")]
    assert problems([file_of(spec)], engine={"name": "podman", "version": "5.4.2"}) == []
    assert problems([file_of(spec)], engine={"name": "docker", "version": "28.2.2"}) == []


def test_no_file_is_absent_unless_one_could_not_be_read():
    assert problems([]) == [("absent", KIND)]
    assert causes([file_of(None, state="unreadable", problem="line 3: not read here")]) == ["unreadable"]
    assert causes([file_of(None, state="broken", problem="it defines no device")]) == ["broken"]
