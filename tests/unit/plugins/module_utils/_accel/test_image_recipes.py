# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recipes of images: what they may say, and what is built, kept or refused."""

from __future__ import annotations

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import image_recipes

REGISTRY = "ctl-01:5000"
SOURCE = "deb http://mirror.example.org/debian bookworm main"
BASE = {"name": f"{REGISTRY}/train/base:1", "base": {"suite": "bookworm", "sources": [SOURCE]}}
TRAIN = {"name": f"{REGISTRY}/train/loop:1", "from": BASE["name"], "packages": {"libnuma1": "2.0.16-1"}}
DIGEST = "sha256:" + 64 * "a"


def planned(*recipes, accepted=None, contents=None) -> dict:
    normal = [image_recipes.normal(one) for one in recipes]
    hashes = {one["name"]: image_recipes.recipe_hash(one, contents or {}) for one in normal}
    return image_recipes.plan(normal, hashes, accepted or {}, REGISTRY)


def hash_of(recipe, **contents) -> str:
    return image_recipes.recipe_hash(image_recipes.normal(recipe), contents)


def row(recipe) -> dict:
    return {"digest": DIGEST, "recipe": hash_of(recipe), "at": "2026-11-30T22:00:00Z"}


def test_what_has_no_digest_is_built_in_order():
    told = planned(BASE, TRAIN)
    assert told["refused"] == [] and told["kept"] == {}
    assert [(one["name"], one["base"]) for one in told["build"]] == [
        (BASE["name"], ""),
        (TRAIN["name"], BASE["name"]),
    ]


def test_what_has_one_is_kept_and_started_from_by_it():
    told = planned(BASE, TRAIN, accepted={BASE["name"]: row(BASE)})
    assert told["kept"] == {BASE["name"]: DIGEST}
    assert [one["base"] for one in told["build"]] == [f"{REGISTRY}/train/base@{DIGEST}"]
    assert planned(BASE, TRAIN, accepted={one["name"]: row(one) for one in (BASE, TRAIN)})["build"] == []


def test_a_changed_recipe_under_an_accepted_tag_is_refused():
    changed = {**TRAIN, "packages": {"libnuma1": "2.0.17-1"}}
    told = planned(BASE, changed, accepted={one["name"]: row(one) for one in (BASE, TRAIN)})
    assert told["build"] == []
    assert [one for one in told["refused"] if "give it a new tag" in one and TRAIN["name"] in one]


def test_what_an_image_is_made_of_is_what_its_hash_counts():
    file = {"src": "/a/loop.py", "dest": "/opt/loop.py"}
    assert hash_of({**TRAIN, "files": [file]}, **{"/a/loop.py": "1"}) != hash_of(
        {**TRAIN, "files": [file]}, **{"/a/loop.py": "2"}
    )
    # Another checkout, the same image.
    moved = {**TRAIN, "files": [{**file, "src": "/b/loop.py"}]}
    assert hash_of(moved, **{"/b/loop.py": "1"}) == hash_of({**TRAIN, "files": [file]}, **{"/a/loop.py": "1"})
    # What is left out and what is empty are the same.
    assert hash_of({**TRAIN, "commands": [], "labels": {}}) == hash_of(TRAIN)
    assert hash_of({**TRAIN, "environment": {"A": 1}}) == hash_of({**TRAIN, "environment": {"A": "1"}})


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        ({**TRAIN, "name": "train/loop:1"}, "name must be an image with registry and tag"),
        ({**TRAIN, "name": f"{REGISTRY}/train/loop"}, "name must be an image with registry and tag"),
        ({**TRAIN, "name": f"{TRAIN['name']}@{DIGEST}"}, "name must be an image with registry and tag"),
        ({"base": BASE["base"]}, "a recipe without a name"),
        ({**TRAIN, "name": "other:5000/train/loop:1"}, "its registry is other:5000"),
        ({**TRAIN, "package": {}}, "package is no key of a recipe"),
        ({**TRAIN, "packages": ["libnuma1"]}, "packages must be a mapping"),
        ({**TRAIN, "packages": {"libnuma1": None}}, "libnuma1 needs an exact version"),
        ({**TRAIN, "packages": {"libnuma1": "*"}}, "libnuma1 needs an exact version"),
        ({**TRAIN, "packages": {"--force": "1"}}, "--force needs an exact version"),
        ({**TRAIN, "python_packages": {"torch": ">=2"}}, "torch needs an exact version"),
        ({**TRAIN, "base": BASE["base"]}, "it needs one of base and from"),
        ({"name": TRAIN["name"]}, "it needs one of base and from"),
        ({**TRAIN, "from": "debian"}, "debian is no image with its registry"),
        (
            {**TRAIN, "from": "registry.example.org/library/debian:12"},
            "has no digest, and the site builds no such image",
        ),
        ({**TRAIN, "files": [{"src": "/a"}]}, "must have src and dest"),
        ({**TRAIN, "files": [{"src": "/a", "dest": "b"}]}, "b must be an absolute path"),
        ({**TRAIN, "files": [{"src": "/a", "dest": "/b", "mode": 493}]}, "its mode a text"),
        ({**TRAIN, "commands": [["true"]]}, "is no text"),
        ({**TRAIN, "environment": {"A-B": "1"}}, "A-B is no name of a variable"),
        ({**BASE, "base": {"suite": "Book worm", "sources": [SOURCE]}}, "suite must be the name of a release"),
        ({**BASE, "base": {"suite": "bookworm", "sources": ["http://one"]}}, "is no line of apt"),
        ({**BASE, "base": {"suite": "bookworm", "sources": [SOURCE], "mirror": "x"}}, "mirror is none of"),
        ({**BASE, "base": {"suite": "bookworm", "sources": [SOURCE], "packages": ["-x"]}}, "is no name of a package"),
    ],
)
def test_a_bad_recipe_is_refused_with_its_reason(recipe, words):
    told = planned(*([] if recipe.get("base") else [BASE]), recipe)
    assert [one for one in told["refused"] if words in one], told["refused"]
    assert recipe.get("name") not in [one["name"] for one in told["build"]]


def test_a_base_may_leave_its_sources_to_the_building_host():
    assert planned({**BASE, "base": {"suite": "bookworm"}})["refused"] == []


def test_an_image_may_start_from_another_registrys_by_digest():
    assert planned({**TRAIN, "from": f"registry.example.org/library/debian@{DIGEST}"})["refused"] == []


def test_what_is_started_from_stands_before_it():
    assert [one for one in planned(TRAIN, BASE)["refused"] if "must stand before it" in one]
    assert [one for one in planned(BASE, BASE)["refused"] if "two recipes have this name" in one]


@pytest.mark.parametrize(
    "body",
    [{}, {"images": []}, {"images": {"a": {}}}, {"images": {"a": {"digest": DIGEST, "recipe": "1"}}},
     {"images": {"a": {"digest": "sha256:1", "recipe": 64 * "a"}}}, {"images": {"a": None}}],
)  # fmt: skip
def test_what_is_no_list_of_digests_is_seen(body):
    assert image_recipes.lock_problems(body)
