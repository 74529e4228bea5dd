# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host has of containers: read through a runner, and judged."""

from __future__ import annotations

import base64
import json

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import cdi, containers, hints, registries
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors.base import Unreadable
from doubles import HANG, RecordedRunner

A = "sha256:" + "a" * 64
WORD = f"reg:5000/train@{A}"
INFO = ("podman", "info", "--format", "json")
IMAGES = ("podman", "images", "--format", "json")
DF = ("df", "-B1", "--output=size,avail", "/var/lib/containers/storage")
# podman 4.3.1, the parts that are read.
PODMAN = {
    "host": {"ociRuntime": {"name": "crun"}, "security": {}},
    "store": {"graphDriverName": "overlay", "graphRoot": "/var/lib/containers/storage"},
    "version": {"Version": "4.3.1"},
}
DOCKER_INFO = ("docker", "info", "--format", "{{json .}}")
DOCKER = {
    "ServerVersion": "28.2.2",
    "Driver": "overlay2",
    "DockerRootDir": "/var/lib/docker",
    "DefaultRuntime": "runc",
    "HttpProxy": "http://someone:word@proxy:3128",
    "NoProxy": "localhost",
}
ROW = {"Id": "1" * 64, "Names": ["reg:5000/train:1"], "RepoDigests": [f"reg:5000/train@{A}"], "Size": 5}
ANSWERS = {
    INFO: (0, json.dumps(PODMAN), ""),
    IMAGES: (0, json.dumps([ROW]), ""),
    DF: (0, "   1B-blocks       Avail\n270553174016 238319968256\n", ""),
}


@pytest.fixture
def asked(monkeypatch):
    """Answer for every registry that it is well; return what was asked."""
    calls = []
    contents = []

    def check(address, scheme, ca_files, username, password, references, timeout_seconds, ca_content):
        calls.append((address, scheme, ca_files, username, password, list(references)))
        contents.append(ca_content)
        return {"address": address, "scheme": scheme, "state": "ok", "problem": None, "login": "none", "images": []}

    monkeypatch.setattr(registries, "check", check)
    return calls


def test_podman_is_read(asked):
    told = containers.observe(RecordedRunner(ANSWERS, files={"/etc/containers/registries.conf": "a = 1\n"}))
    assert told["engine"] == {
        "name": "podman",
        "path": "/usr/bin/podman",
        "state": "ok",
        "problem": None,
        "version": "4.3.1",
        "storage_driver": "overlay",
        "storage_path": "/var/lib/containers/storage",
        "runtime": "crun",
        "free_bytes": 238319968256,
        "size_bytes": 270553174016,
    }
    assert [one["digests"] for one in told["images"]] == [[f"reg:5000/train@{A}"]]
    assert told["settings"] == [{"path": "/etc/containers/registries.conf", "state": "ok", "problem": None}]
    assert (told["registries"], told["proxies"], told["errors"], asked) == ([], [], [], [])


def test_docker_is_read_with_the_proxy_of_its_daemon(asked):
    inspected = {"Id": "sha256:" + "1" * 64, "RepoTags": ["reg:5000/train:1"], "RepoDigests": [f"reg:5000/train@{A}"]}
    answers = {
        DOCKER_INFO: (0, json.dumps(DOCKER), ""),
        (*DF[:3], "/var/lib/docker"): (0, "1B-blocks Avail\n10 5\n", ""),
        ("docker", "image", "ls", "--quiet", "--no-trunc"): (0, "sha256:1\nsha256:1\n", ""),
        ("docker", "image", "inspect", "sha256:1"): (0, json.dumps([inspected]), ""),
    }
    checks = [{"address": "reg:5000", "scheme": "http"}, {"address": "localhost:5000", "scheme": "http"}]
    told = containers.observe(RecordedRunner(answers), None, checks)
    assert (told["engine"]["name"], told["engine"]["version"], told["engine"]["free_bytes"]) == ("docker", "28.2.2", 5)
    assert len(told["images"]) == 1
    assert told["proxies"] == [
        {"source": "docker info", "http": "http://proxy:3128", "https": "", "none": "localhost"}
    ], "without the name and password of the proxy"
    assert [one["proxied_by"] for one in told["registries"]] == [["docker info"], []]


@pytest.mark.parametrize(
    ("answer", "state", "words"),
    [
        (HANG, "hung", "in time"),
        ((125, "", 'Error: getting registries: "/etc/containers/registries.conf": toml: line 2'), "failed", "line 2"),
        ((0, "{", ""), "unreadable", "no JSON"),
        ((0, "[]", ""), "unreadable", "no mapping"),
    ],
)
def test_an_engine_that_does_not_answer(asked, answer, state, words):
    told = containers.observe(RecordedRunner({INFO: answer}))
    assert told["engine"]["state"] == state and words in told["engine"]["problem"]
    assert told["images"] is None, "not asked is not none"


def test_a_docker_daemon_that_is_down(asked):
    body = {"ServerErrors": ["Cannot connect to the Docker daemon at unix:///var/run/docker.sock."]}
    told = containers.observe(RecordedRunner({DOCKER_INFO: (1, json.dumps(body), "")}))
    assert told["engine"]["state"] == "failed" and "Cannot connect" in told["engine"]["problem"]


def test_no_engine_at_all(asked):
    told = containers.observe(RecordedRunner())
    assert (told["engine"]["name"], told["engine"]["state"], told["images"]) == ("podman", "absent", None)


def test_the_ca_of_a_registry_is_where_the_engine_looks(asked):
    path = "/etc/containers/certs.d/reg:5000/ca.crt"
    runner = RecordedRunner(ANSWERS, files={path: "x", "/etc/containers/certs.d/other/ca.crt": "x"})
    login = {"username": "node", "password": "secret"}
    told = containers.observe(runner, None, [{"address": "reg:5000", **login}], [WORD, "else/x:1"])
    containers.observe(runner, None, [{"address": "reg:5000", "ca_file": "/own.crt"}])
    assert asked[0] == ("reg:5000", "https", [path], "node", "secret", [WORD])
    assert asked[1][2] == ["/own.crt"]
    assert "secret" not in json.dumps(told)


def test_a_registry_is_asked_with_what_the_node_has_or_with_what_is_to_come(asked):
    path = "/etc/containers/certs.d/reg:5000/ca.crt"
    login = json.dumps({"auths": {"reg:5000": {"auth": base64.b64encode(b"node:secret").decode()}}})
    runner = RecordedRunner(ANSWERS, files={path: "x", "/login.json": login})
    containers.observe(runner, None, [{"address": "reg:5000", "ca_content": "PEM"}])
    containers.observe(runner, None, [{"address": "reg:5000", "auth_file": "/login.json"}])
    # One that lacks the file logs in with nothing, whatever else is known.
    told = {"address": "reg:5000", "auth_file": "/gone.json", "username": "node", "password": "secret"}
    containers.observe(runner, None, [told])
    assert [one[2:5] for one in asked] == [([], None, None), ([path], "node", "secret"), ([path], None, None)]


def test_a_proxy_that_podman_is_told_is_seen(asked):
    text = '[engine]\nenv = ["https_proxy=http://user:pw@proxy:3128", "no_proxy=localhost,reg"]\n'
    runner = RecordedRunner(ANSWERS, files={"/etc/containers/containers.conf.d/50-accel.conf": text})
    (row,) = containers.observe(runner, "podman")["proxies"]
    assert (row["https"], row["none"]) == ("http://proxy:3128", "localhost,reg")


@pytest.mark.parametrize(("version", "newest"), [("20.10.24", (0,)), ("24.0.7", (0,)), ("25.0.0", None), (None, None)])
def test_docker_takes_device_files_from_a_version_on(version, newest):
    assert cdi.newest_for({"name": "docker", "version": version}) == newest


def test_broken_settings_are_named_with_their_line(asked):
    files = {"/etc/docker/daemon.json": '{"a": 1,\n "b": }', "/etc/containers/containers.conf": "[engine]\nx = \n"}
    answers = {DOCKER_INFO: (1, json.dumps({"ServerErrors": ["down"]}), ""), **ANSWERS}
    (row,) = containers.observe(RecordedRunner(answers, files=files), "docker")["settings"]
    assert (row["path"], row["state"]) == ("/etc/docker/daemon.json", "broken")
    assert row["problem"].startswith("line 2 ")
    pytest.importorskip("tomllib")
    (row,) = containers.observe(RecordedRunner(answers, files=files), "podman")["settings"]
    assert (row["state"], row["problem"][:6]) == ("broken", "line 2")


def test_where_python_reads_no_toml_the_engine_says_it(asked, monkeypatch):
    monkeypatch.setattr(containers.settings, "tomllib", None)
    path = "/etc/containers/registries.conf"
    (row,) = containers.observe(RecordedRunner(ANSWERS, files={path: "x = \n"}))["settings"]
    assert row["state"] == "ok", "an engine that works has read it"
    complaint = {INFO: (125, "", f'Error: loading registries configuration "{path}": toml: line 1 (last key "x")')}
    (row,) = containers.observe(RecordedRunner(complaint, files={path: "x = \n"}))["settings"]
    assert row["state"] == "broken" and "line 1" in row["problem"]
    (row,) = containers.observe(RecordedRunner({INFO: HANG}, files={path: "x = \n"}))["settings"]
    assert row["state"] == "unchecked"


@pytest.mark.parametrize("text", ["", "[]", "null", "5", "no"])
def test_info_that_is_none(text):
    with pytest.raises(Unreadable, match="info is no"):
        containers.read_info(text)


def test_proxies_of_files():
    text = '# HTTP_PROXY=http://no\nHTTP_PROXY=http://a:1\nEnvironment="https_proxy=http://b:2" "NO_PROXY=x,y"\n'
    assert containers.read_proxies(text) == {"http": "http://a:1", "https": "http://b:2", "none": "x,y"}
    runner = RecordedRunner(ANSWERS, files={"/etc/environment": "export HTTPS_PROXY='http://u:p@a:1'\n"})
    (row,) = containers.observe(runner)["proxies"]
    assert row == {"source": "/etc/environment", "http": "", "https": "http://a:1", "none": ""}


# Judging

DECLARED = {
    "cluster_accelerator_vendor": "nvidia",
    "cluster_accelerator_count": "1",
    "images": [WORD],
    "registries": ["reg:5000"],
    "storage_free_gib": "20",
    "cdi": True,
}
CARD = {
    "index": 0,
    "vendor": "nvidia",
    "uuid": "GPU-11111111-2222-3333-4444-555555555555",
    "pci_address": "0000:18:00.0",
    "slot": {"label": "SXM1"},
    "device_nodes": ["/dev/nvidia0"],
    "source": "nvidia-smi",
}
DEVICES = {
    "devices": [CARD],
    "count": 1,
    "bus_count": 1,
    "unanswered": [],
    "tools": [{"name": "nvidia-smi", "state": "ok", "vendor": "nvidia"}],
    "drivers": [{"vendor": "nvidia", "kernel_version": "570.86.15", "loaded": True}],
}


def observation(**more):
    spec = cdi.read(cdi.text_of(cdi.build("nvidia.com/gpu", [CARD], ["/dev/nvidiactl"], [], "570.86.15")[0]))
    file = {"path": "/etc/cdi/accel-nvidia.json", "folder": "/etc/cdi", "state": "ok", "mode": "0644", "owner": 0}
    return {
        "engine": {"name": "podman", "version": "4.3.1", "state": "ok", "free_bytes": 200 << 30},
        "settings": [],
        "images": [{"names": [], "digests": [f"reg:5000/train@{A}"]}],
        "registries": [registry()],
        "cdi": {"files": [{**file, "spec": spec}], "folders": [], "missing": []},
        **more,
    }


def registry(state="ok", problem=None, images=(), proxied=()):
    return {
        "address": "reg:5000", "scheme": "https", "state": state, "problem": problem, "images": list(images),
        "proxied_by": list(proxied),
    }  # fmt: skip


def judged(seen, declared=None, devices="ours", language="en"):
    devices = DEVICES if devices == "ours" else devices
    found = containers.judge_host("n1", seen, {**DECLARED, **(declared or {})}, devices, language)
    assert sorted(one["check"] for one in found) == sorted(check for check in hints.CHECKS if "container." in check)
    assert all(one["message"] and "?" not in one["message"] for one in found), [one["message"] for one in found]
    return {one["check"].split(".")[1]: one["hint"].rpartition(".")[2] for one in found}


WELL = {"engine": "ok", "cdi": "ok", "registry": "ok", "image_digest": "ok"}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_host_that_is_well_passes(language):
    assert judged(observation(), language=language) == WELL


def broken(**more):
    return [{"path": "/etc/docker/daemon.json", "state": "broken", "problem": "line 2: x", **more}]


CDI_GONE = {"files": [], "folders": [], "missing": []}


@pytest.mark.parametrize(
    ("more", "changed"),
    [
        ({"settings": broken()}, {"engine": "settings"}),
        ({"settings": broken(state="unreadable")}, {}),
        ({"engine": {"name": "podman", "state": "ok", "free_bytes": 19 << 30}}, {"engine": "disk_full"}),
        ({"engine": {"name": "podman", "state": "ok", "free_bytes": None}}, {"engine": "unknown"}),
        ({"engine": {"name": "podman", "state": "absent"}}, {"engine": "absent", "image_digest": "blocked"}),
        ({"engine": {"name": "podman", "state": "hung"}}, {"engine": "hung", "image_digest": "blocked"}),
        ({"engine": {"name": "docker", "state": "failed"}}, {"engine": "failed", "image_digest": "blocked"}),
        ({"engine": {}}, {"engine": "unknown", "image_digest": "blocked"}),
        ({"registries": []}, {"registry": "unknown"}),
        ({"registries": [registry("timeout", "x")]}, {"registry": "unreachable"}),
        ({"registries": [registry("unreachable", "x")]}, {"registry": "unreachable"}),
        ({"registries": [registry("plain_http", "x")]}, {"registry": "scheme"}),
        ({"registries": [registry("speaks_tls", "x")]}, {"registry": "scheme"}),
        ({"registries": [registry("ca_foreign", "x")]}, {"registry": "ca_foreign"}),
        ({"registries": [registry("ca_file", "x")]}, {"registry": "ca_file"}),
        ({"registries": [registry("expired", "x")]}, {"registry": "expired"}),
        ({"registries": [registry("not_yet_valid", "x")]}, {"registry": "not_yet_valid"}),
        ({"registries": [registry("name_mismatch", "x")]}, {"registry": "name_mismatch"}),
        ({"registries": [registry("login_needed", "x")]}, {"registry": "login"}),
        ({"registries": [registry("login_refused", "x")]}, {"registry": "login"}),
        ({"registries": [registry("forbidden", "x")]}, {"registry": "forbidden"}),
        ({"registries": [registry("error", "x")]}, {"registry": "error"}),
        ({"registries": [registry("a new word", "x")]}, {"registry": "unknown"}),
        ({"registries": [registry(proxied=["/etc/environment"])]}, {"registry": "no_proxy"}),
        ({"registries": [registry(images=[{"reference": WORD, "state": "absent"}])]}, {"registry": "image_absent"}),
        ({"registries": [registry(images=[{"reference": WORD, "state": "corrupt"}])]}, {"registry": "corrupt"}),
        ({"registries": [registry(images=[{"reference": WORD, "state": "refused"}])]}, {"registry": "forbidden"}),
        ({"images": []}, {"image_digest": "absent"}),
        ({"images": None}, {"image_digest": "unknown"}),
        ({"cdi": CDI_GONE}, {"cdi": "absent"}),
        ({"cdi": None}, {"cdi": "unknown"}),
    ],
)  # fmt: skip
def test_each_check_turns_alone(more, changed):
    assert judged(observation(**more)) == {**WELL, **changed}


def test_nothing_declared_is_not_judged():
    nothing = {"images": [], "registries": [], "cdi": False, "storage_free_gib": None}
    empty = observation(registries=[], images=None, cdi=None, engine={"name": "podman", "state": "ok"})
    assert judged(empty, nothing) == {
        "engine": "ok", "cdi": "not_applicable", "registry": "not_applicable", "image_digest": "not_applicable"
    }  # fmt: skip
    bare = {"cluster_accelerator_vendor": "", "cluster_accelerator_count": 0}
    assert judged(observation(), bare)["cdi"] == "not_applicable"


def test_cards_that_do_not_answer_prove_no_file_right():
    dead = {"devices": [], "count": None, "unanswered": [], "tools": [{"name": "nvidia-smi", "state": "hung"}]}
    found = containers.judge_host("n1", observation(), DECLARED, dead)
    assert [(one["hint"], one["blocked_by"]) for one in found if one["check"] == "container.cdi"] == [
        ("container.cdi.blocked", "device.query")
    ]
    assert judged(observation(), devices=None)["cdi"] == "blocked"
    # What is wrong whatever the cards say is still told.
    assert judged(observation(cdi=CDI_GONE), devices=dead)["cdi"] == "absent"


def test_only_cards_of_the_declared_vendor_are_looked_for():
    other = {
        **CARD,
        "vendor": "amd",
        "device_nodes": ["/dev/dri/renderD128"],
        "uuid": None,
        "pci_address": "0000:99:00.0",
    }
    assert judged(observation(), devices={**DEVICES, "devices": [CARD, other], "count": 2}) == WELL


def test_a_vendor_whose_kind_is_not_known_must_declare_it():
    own = {"cluster_accelerator_vendor": "acme"}
    assert judged(observation(), own)["cdi"] == "unknown"
    named = {**own, "cdi_kind": "acme.example/npu"}
    assert judged(observation(), named)["cdi"] == "absent"


def test_the_worst_of_a_file_comes_first_and_all_of_it_is_told():
    seen = observation()
    seen["cdi"]["missing"] = ["/dev/nvidia0"]
    newer = {**DEVICES, "drivers": [{"vendor": "nvidia", "kernel_version": "575.57.08", "loaded": True}]}
    found = {one["check"]: one for one in containers.judge_host("n1", seen, DECLARED, newer)}["container.cdi"]
    assert found["hint"] == "container.cdi.driver_version"
    assert found["observed"] == [
        "driver_version: /etc/cdi/accel-nvidia.json: 570.86.15, 575.57.08",
        "missing_node: /etc/cdi/accel-nvidia.json: /dev/nvidia0",
    ]


def test_the_registry_is_the_subject():
    found = containers.judge_host("n1", observation(), {**DECLARED, "registries": ["reg:5000", "b:1"]}, DEVICES)
    told = {one["subject"]: one["verdict"] for one in found if one["check"] == "container.registry"}
    assert told == {"reg:5000": "pass", "b:1": "unknown"}
