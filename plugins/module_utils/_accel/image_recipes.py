# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Images that a site builds: what a recipe may say, and which of them must be built, may be, or must not.

A tag means one image for ever. The site keeps, tag by tag, the digest of the image that was built for it and the hash
of its recipe; an image that has a digest is never built again, and a recipe that changed under a tag is refused.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence

from . import images
from .model import dict_of, dicts_of

_BASE = {"suite": str, "sources": list, "packages": list}
_KEYS = {
    "name": str,
    "base": dict,
    "from": str,
    "packages": dict,
    "python_packages": dict,
    "python_index": str,
    "files": list,
    "commands": list,
    "environment": dict,
    "labels": dict,
}
_FILE = {"src": str, "dest": str, "mode": str}
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]*(?::[a-z0-9]+)?", re.ASCII)
_PYTHON = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?", re.ASCII)
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+~:!_-]*", re.ASCII)
_SUITE = re.compile(r"[a-z0-9][a-z0-9.-]*", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_SOURCE = re.compile(r"deb (?:\[[^\]\n]*\] )?\S+://\S+ [^\n]+")


def normal(recipe: Mapping) -> dict:
    """Return a recipe as plain data with all that is left out filled in, so that equal recipes have equal hashes."""
    body = json.loads(json.dumps(dict(recipe), default=str))
    told = {key: body.get(key) or kind() for key, kind in _KEYS.items()}
    told.update({key: value for key, value in body.items() if key not in _KEYS})
    if isinstance(told["base"], dict) and told["base"]:
        told["base"] = {**{key: kind() for key, kind in _BASE.items()}, **told["base"]}
    for key in ("packages", "python_packages", "environment", "labels"):
        if isinstance(told[key], dict):
            told[key] = {str(name): "" if value is None else str(value) for name, value in told[key].items()}
    return told


def problems(recipe: Mapping, registry: str) -> list[str]:
    """Return what is wrong with one recipe in normal form, in words."""
    name = str(recipe.get("name") or "")
    wanted = images.reference(name)
    if wanted is None or not wanted.tag or wanted.digest or not name.endswith(f":{wanted.tag}"):
        example = f"{registry or 'ctl-01:5000'}/train/pytorch:1"
        return [f"{name or 'a recipe without a name'}: name must be an image with registry and tag, such as {example}"]
    found = [f"{key} is no key of a recipe" for key in recipe if key not in _KEYS]
    found += [
        f"{key} must be {_kind(kind)}" for key, kind in _KEYS.items() if not isinstance(recipe.get(key, kind()), kind)
    ]
    if found:
        return [f"{name}: {one}" for one in found]
    if wanted.registry != registry:
        found.append(f"its registry is {wanted.registry}, that of the site (cluster_registry_address) is {registry}")
    if bool(recipe["base"]) == bool(recipe["from"]):
        found.append("it needs one of base and from")
    found += _of_base(recipe["base"]) if recipe["base"] else []
    if recipe["from"] and images.reference(recipe["from"]) is None:
        found.append(f"from: {recipe['from']} is no image with its registry")
    for key, form in (("packages", _PACKAGE), ("python_packages", _PYTHON)):
        for package, version in recipe[key].items():
            if not form.fullmatch(package) or not _VERSION.fullmatch(version):
                found.append(f"{key}: {package} needs an exact version, not {version!r}")
    for one in recipe["files"]:
        if not isinstance(one, dict) or set(one) - set(_FILE) or not {"src", "dest"} <= set(one):
            found.append(f"files: {one!r} must have src and dest, may have mode, and nothing else")
        elif not str(one["dest"]).startswith("/") or not re.fullmatch("0?[0-7]{3}", str(one.get("mode", "0644"))):
            found.append(f"files: {one['dest']} must be an absolute path, its mode a text such as '0644'")
    found += [f"commands: {one!r} is no text" for one in recipe["commands"] if not isinstance(one, str) or not one]
    found += [f"environment: {one} is no name of a variable" for one in recipe["environment"] if not _is_variable(one)]
    return [f"{name}: {one}" for one in found]


def _is_variable(word: str) -> bool:
    return bool(_VARIABLE.fullmatch(word))


def _kind(kind: type) -> str:
    return "a text" if kind is str else "a list" if kind is list else "a mapping"


def _of_base(base: Mapping) -> list[str]:
    found = [f"base: {key} is none of {', '.join(_BASE)}" for key in base if key not in _BASE]
    for key, kind in _BASE.items():
        if not isinstance(base.get(key, kind()), kind):
            found.append(f"base: {key} must be {_kind(kind)}")
    if found:
        return found
    if not _SUITE.fullmatch(base["suite"]):
        found.append("base: suite must be the name of a release, such as bookworm")
    for one in base["sources"]:
        if not isinstance(one, str) or not _SOURCE.fullmatch(one):
            found.append(f"base: sources: {one!r} is no line of apt")
    for one in base["packages"]:
        if not isinstance(one, str) or not _PACKAGE.fullmatch(one):
            found.append(f"base: packages: {one!r} is no name of a package")
    return found


def recipe_hash(recipe: Mapping, contents: Mapping[str, str]) -> str:
    """Return the hash of a recipe in normal form; ``contents`` are the hashes of its files by their ``src``.

    Where a file lies is no part of an image, so only what is in it counts.
    """
    body = dict(recipe)
    body["files"] = [
        {"dest": one.get("dest"), "mode": one.get("mode", "0644"), "content": contents.get(str(one.get("src")))}
        for one in dicts_of(recipe["files"])
    ]
    text = json.dumps(body, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def lock_problems(body: Mapping) -> list[tuple[tuple, str]]:
    """Return what makes a body no list of accepted images, the way ``record.load`` takes it."""
    rows = body.get("images")
    if not isinstance(rows, dict):
        return [(("images",), "'images' must be an object")]
    found: list[tuple[tuple, str]] = []
    for name, row in rows.items():
        digest, recipe = dict_of(row).get("digest"), dict_of(row).get("recipe")
        if not re.fullmatch("sha256:[0-9a-f]{64}", str(digest)) or not re.fullmatch("[0-9a-f]{64}", str(recipe)):
            found.append((("images", name), f"{name} needs the digest of an image and the hash of a recipe"))
    return found


def plan(recipes: Sequence[Mapping], hashes: Mapping[str, str], accepted: Mapping, registry: str) -> dict:
    """Return what is to be done: ``refused`` in words, ``build`` in the order of building, ``kept`` name -> digest.

    ``recipes`` in normal form; ``hashes`` by name; ``accepted`` is the key ``images`` of the list of accepted images.
    Of each image to be built ``base`` is the reference with its digest, or the name of one that is built before it.
    """
    told: dict = {"refused": [], "build": [], "kept": {}}
    names = [str(one.get("name")) for one in recipes]
    refused = told["refused"]
    refused += [f"{one}: two recipes have this name" for one in sorted({one for one in names if names.count(one) > 1})]
    before: set[str] = set()
    for recipe in recipes:
        wrong = problems(recipe, registry)
        refused += wrong
        if wrong:
            continue
        name, row = str(recipe["name"]), dict_of(accepted.get(str(recipe["name"])))
        base = recipe["from"]
        if base and not dict_of(accepted.get(base)) and base not in before and not _has_digest(base):
            late = base in names
            refused.append(
                f"{name}: from {base} "
                + ("must stand before it" if late else "has no digest, and the site builds no such image")
            )
        elif row and row.get("recipe") != hashes[name]:
            refused.append(
                f"{name}: its recipe is not the one that was accepted on {row.get('at')}; a tag means one image for "
                "ever: give it a new tag"
            )
        elif row:
            told["kept"][name] = row["digest"]
        else:
            told["build"].append({"name": name, "hash": hashes[name], "base": resolved(base, accepted)})
        before.add(name)
    return told


def _has_digest(word: str) -> bool:
    wanted = images.reference(word)
    return bool(wanted and wanted.digest)


def resolved(word: str, accepted: Mapping) -> str:
    """Return an image with its digest where it has one, the word itself where not."""
    digest = dict_of(accepted.get(word)).get("digest")
    wanted = images.reference(word)
    return f"{wanted.name}@{digest}" if digest and wanted else word
