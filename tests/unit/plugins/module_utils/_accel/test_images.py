# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images by their digest: what an engine holds, what a registry says, one host and many."""

from __future__ import annotations

import json

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import images
from ansible_collections.accel.cluster.plugins.module_utils._accel.vendors.base import Unreadable

A, B = ("sha256:" + one * 64 for one in "ab")
NAME = "reg.example:5000/ai/train"
PINNED, TAGGED = f"{NAME}@{A}", f"{NAME}:1"

# podman 4.3.1 images --format json, as it printed: an image once for each of its names.
PODMAN_ROW = {
    "Id": "0cfd89f1fafef2a5e67049c234862a38aac90969710a77f384633b0b50b4319e",
    "RepoTags": None,
    "RepoDigests": [f"localhost/other@{A}", f"{NAME}@{A}"],
    "Size": 11331,
    "Labels": None,
    "Names": [TAGGED, "localhost/other:2"],
    "Digest": A,
    "CreatedAt": "2026-11-30T19:06:39Z",
}
# docker image inspect, the fields that are read.
DOCKER_ROW = {
    "Id": "sha256:0cfd89f1fafef2a5e67049c234862a38aac90969710a77f384633b0b50b4319e",
    "RepoTags": [TAGGED],
    "RepoDigests": [f"{NAME}@{A}"],
    "Size": 11331,
    "Config": {"Labels": {"org.opencontainers.image.version": "1"}},
}


def test_images_of_both_engines_are_one_shape():
    (podman,) = images.read_images(json.dumps([PODMAN_ROW, PODMAN_ROW]))
    assert podman == {
        "id": PODMAN_ROW["Id"],
        "names": ["localhost/other:2", TAGGED],
        "digests": [f"localhost/other@{A}", f"{NAME}@{A}"],
        "size_bytes": 11331,
        "labels": {},
    }
    (docker,) = images.read_images(json.dumps([DOCKER_ROW]))
    assert docker["id"] == podman["id"] and docker["digests"] == [f"{NAME}@{A}"]
    assert docker["labels"] == {"org.opencontainers.image.version": "1"}
    assert images.read_images("[]") == []


@pytest.mark.parametrize("text", ["", "{}", "null", "Error: something", '[{"Id": "1"'])
def test_no_list_is_not_an_empty_list(text):
    with pytest.raises(Unreadable, match="list of images"):
        images.read_images(text)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (TAGGED, ("reg.example:5000", "ai/train", "1", None)),
        (PINNED, ("reg.example:5000", "ai/train", None, A)),
        (f"{NAME}:1@{A}", ("reg.example:5000", "ai/train", "1", A)),
        ("10.0.0.1/train", ("10.0.0.1", "train", "latest", None)),
        ("localhost/x", ("localhost", "x", "latest", None)),
        ("[fd00::1]:5000/x:2", ("[fd00::1]:5000", "x", "2", None)),
        ("train:1", None),
        ("library/debian:12", None),
        ("reg:5000/Train", None),
        ("reg:5000/x@sha256:12", None),
        ("reg:5000/", None),
        ("reg:5000/a:b:c", None),
        ("", None),
    ],
)
def test_references(word, expected):
    told = images.reference(word)
    assert (told and (told.registry, told.repository, told.tag, told.digest)) == expected


# As small as a manifest gets.
MANIFEST = b'{"schemaVersion": 2, "config": {}, "layers": []}'


def test_a_digest_is_that_of_the_bytes():
    assert images.digest_of(b"") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.mark.parametrize(
    ("status", "body", "header", "word", "state"),
    [
        (200, MANIFEST, None, TAGGED, "ok"),
        (200, MANIFEST, images.digest_of(MANIFEST), TAGGED, "ok"),
        (200, MANIFEST, A, TAGGED, "corrupt"),
        (200, MANIFEST, A, PINNED, "corrupt"),  # header and name agree, the bytes do not
        (200, MANIFEST, None, f"{NAME}@{images.digest_of(MANIFEST)}", "ok"),
        (200, b"<html>welcome</html>", None, TAGGED, "error"),
        (404, b"", None, TAGGED, "absent"),
        (401, b"", None, TAGGED, "refused"),
        (403, b"", None, TAGGED, "refused"),
        (500, b"", None, TAGGED, "error"),
    ],
)
def test_what_a_registry_says_of_a_manifest(status, body, header, word, state):
    told = images.read_manifest(status, body, header, images.reference(word))
    assert told["state"] == state
    assert (told["digest"] is None) == (status != 200)
    assert (told["problem"] is None) == (state == "ok")


@pytest.mark.parametrize(
    ("no_proxy", "address", "exempt"),
    [
        ("", "reg.example:5000", False),
        ("*", "reg.example:5000", True),
        ("reg.example", "reg.example:5000", True),
        ("reg.example:5000", "reg.example:5000", True),
        ("reg.example:5001", "reg.example:5000", False),
        ("example", "reg.example:5000", True),
        (".example", "reg.example", True),
        (".reg.example", "reg.example", False),
        ("xample", "reg.example", False),
        ("a, 10.0.0.0/8", "10.1.2.3:5000", True),
        ("10.0.0.0/8", "reg.example", False),
        ("10.1.2.3", "10.1.2.3:5000", True),
        ("2.3", "10.1.2.3:5000", False),
        ("REG.Example", "reg.EXAMPLE", True),
        ("", "localhost:5000", True),
        ("", "127.0.0.1:5000", True),
        ("fd00::/8", "[fd00::1]:5000", True),
    ],
)
def test_no_proxy_as_engines_read_it(no_proxy, address, exempt):
    assert images.bypasses(no_proxy, address) is exempt


def image(*digests, names=(TAGGED,)):
    return {"id": "1", "names": list(names), "digests": [f"{NAME}@{one}" for one in digests]}


def seen(*held, says=None, state="ok"):
    """Return what ``container_info`` returns of images, and what the registry said of the tag."""
    answer = {"reference": TAGGED, "state": state, "digest": says, "problem": None if state == "ok" else "HTTP 500"}
    return {"images": list(held), "registries": [{"address": "reg.example:5000", "images": [answer] if says else []}]}


def judged(hosts, word=PINNED):
    about = {host: {"images": [word], "observation": told, "blocked_by": None} for host, told in hosts.items()}
    found = images.judge_hosts(about, "2026-11-30T12:00:00Z")
    assert [one["host"] for one in found] == sorted(hosts)
    return {one["host"]: (one["verdict"], one["hint"].rpartition(".")[2]) for one in found}


@pytest.mark.parametrize(
    ("observation", "word", "expected"),
    [
        (seen(image(A)), PINNED, ("pass", "ok")),
        (seen(image(B, A)), PINNED, ("pass", "ok")),  # the list of platforms and the own one
        (seen(image(B)), PINNED, ("fail", "other_digest")),
        (seen(), PINNED, ("fail", "absent")),
        (seen(image(A, names=[])), PINNED, ("pass", "ok")),
        (seen(image()), PINNED, ("unknown", "unknown")),
        ({"images": None}, PINNED, ("unknown", "unknown")),
        ({}, PINNED, ("unknown", "unknown")),
        (seen(image(A)), "train", ("unknown", "unknown")),
        # A tag alone proves nothing.
        (seen(image(A), says=A), TAGGED, ("pass", "ok")),
        (seen(image(A), says=B), TAGGED, ("fail", "moved")),
        (seen(image(A)), TAGGED, ("unknown", "not_asked")),
        (seen(image(A), says=A, state="error"), TAGGED, ("unknown", "not_asked")),
        (seen(image(A, names=[f"{NAME}:2"]), says=A), TAGGED, ("fail", "absent")),
        # The declared image is there, and its name means another one here.
        ({"images": [image(A, names=[f"{NAME}@{A}"]), image(B)]}, f"{TAGGED}@{A}", ("fail", "other_digest")),
        ({"images": [image(A, names=[f"{NAME}@{A}"])]}, f"{TAGGED}@{A}", ("fail", "untagged")),
        # With a digest, a tag that moved does not matter.
        (seen(image(A), says=B), f"{TAGGED}@{A}", ("pass", "ok")),
    ],
)
def test_one_host(observation, word, expected):
    assert judged({"gpu-01": observation}, word) == {"gpu-01": expected}


def test_the_finding_says_what_is_held():
    about = {"gpu-01": {"images": [PINNED], "observation": seen(image(B))}}
    (found,) = images.judge_hosts(about, language="zh")
    assert found["observed"] == {PINNED: [B]} and found["expected"] == [PINNED]
    assert found["message"] == f"gpu-01 在所声明的名称下持有另一个镜像（声明：实际）：{PINNED}: {B}"


def test_nodes_that_hold_different_images_behind_one_tag_differ():
    one, other = seen(image(A)), seen(image(B))
    assert judged({"n1": one, "n2": one, "n3": other}, TAGGED) == {
        "n1": ("unknown", "not_asked"),
        "n2": ("unknown", "not_asked"),
        "n3": ("fail", "differs"),
    }
    assert set(judged({"n1": one, "n2": other}, TAGGED).values()) == {("fail", "differs")}
    # What the registry says now is right, however few hold it.
    assert judged({"n1": one, "n2": one, "n3": seen(image(B), says=B)}, TAGGED) == {
        "n1": ("fail", "differs"),
        "n2": ("fail", "differs"),
        "n3": ("pass", "ok"),
    }
    # It was moved while they were asked: each was right, they are not one.
    moving = {"n1": seen(image(A), says=A), "n2": seen(image(A), says=A), "n3": seen(image(B), says=B)}
    assert judged(moving, TAGGED)["n3"] == ("fail", "differs")


def test_the_majority_does_not_make_a_wrong_digest_right():
    hosts = {"n1": seen(image(A)), "n2": seen(image(B)), "n3": seen(image(B))}
    assert judged(hosts) == {"n1": ("pass", "ok"), "n2": ("fail", "other_digest"), "n3": ("fail", "other_digest")}


def test_nothing_declared_and_an_engine_that_does_not_work():
    hosts = {
        "n1": {"images": [], "observation": {}},
        "n2": {"images": [PINNED], "observation": {"images": None}, "blocked_by": "container.engine"},
    }
    found = images.judge_hosts(hosts)
    assert [(one["verdict"], one["blocked_by"]) for one in found] == [
        ("not_applicable", None),
        ("unknown", "container.engine"),
    ]


ACCEPTED = {TAGGED: {"digest": A, "recipe": "x"}}


@pytest.mark.parametrize(
    ("words", "expected", "says"),
    [
        ([], [], ""),
        ([TAGGED], [f"{TAGGED}@{A}"], ""),
        ([PINNED], [PINNED], ""),
        ([f"{TAGGED}@{A}", TAGGED], [f"{TAGGED}@{A}"], ""),
        ([f"{NAME}:2@{B}"], [f"{NAME}:2@{B}"], ""),
        ([f"{NAME}:2"], [], "has a tag and no accepted digest"),
        ([NAME], [], "has a tag and no accepted digest"),  # that is :latest
        ([f"{TAGGED}@{B}"], [], "another digest was accepted"),
        ([f"{NAME}:2@{A}", f"{NAME}:2@{B}"], [f"{NAME}:2@{A}"], "is declared with two digests"),
        (["train"], [], "is no image with its registry"),
    ],
)
def test_an_image_is_what_its_digest_says(words, expected, says):
    told = images.pinned(words, ACCEPTED)
    assert told["images"] == expected
    assert [says in one for one in told["refused"]] == [True] * bool(says)
    assert told["unbuilt"] == (told["refused"] if "no accepted digest" in says else [])


@pytest.mark.parametrize("accepted", [{TAGGED: {"digest": "sha256:12"}}, {TAGGED: {"digest": 7}}])
def test_what_was_accepted_must_be_a_digest(accepted):
    told = images.pinned([TAGGED], accepted)
    assert told["images"] == [] and "is no digest" in told["refused"][0]


def part(observation, word, blocked_by=None):
    return {"device": {"observed": {"containers": {"images": [word], "observation": observation}}}}


def test_hosts_are_held_against_each_other_when_all_have_spoken():
    told = {"n1": seen(image(A)), "n2": seen(image(A)), "n3": seen(image(B))}
    alone = [
        one for host in told for one in images.judge_hosts({host: {"images": [TAGGED], "observation": told[host]}})
    ]
    assert [one["hint"] for one in alone] == ["container.image_digest.not_asked"] * 3
    parts = {host: part(one, TAGGED) for host, one in told.items()}
    found = images.across(alone, parts, "2026-11-30T12:00:00Z", "en")
    assert {one["host"]: one["hint"].rpartition(".")[2] for one in found} == {
        "n1": "not_asked",
        "n2": "not_asked",
        "n3": "differs",
    }


def test_what_a_host_could_not_judge_stays_so():
    blocked = images.judge_hosts({"n1": {"images": [PINNED], "observation": {}, "blocked_by": "container.engine"}})
    assert images.across(blocked, {"n1": part(seen(image(A)), PINNED)}, None, "en") == blocked
    alone = images.judge_hosts({"n1": {"images": [PINNED], "observation": seen(image(B))}})
    assert images.across(alone, {"n1": {"device": {"observed": {}}}}, None, "en") == alone
