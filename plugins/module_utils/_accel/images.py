# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Container images: what an engine holds, what a registry says, and whether all nodes hold what is declared.

An image is what its digest says. A tag is a name that somebody may move, so an image that is declared by a tag alone
passes only where the registry, asked just now, says that the tag still means what is held.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from . import judge
from .model import dict_of, dicts_of
from .slot_names import natural
from .text import whole_characters
from .vendors.base import Unreadable

MANIFEST_TYPES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_DIGEST = r"sha256:[0-9a-f]{64}"
_REFERENCE = re.compile(
    r"(?P<name>[a-z0-9][a-z0-9._-]*(?:/[a-z0-9][a-z0-9._-]*)*)(?::(?P<tag>\w[\w.-]{0,127}))?(?:@(?P<digest>"
    + _DIGEST
    + r"))?",
    re.ASCII,
)


@dataclass(frozen=True)
class Reference:
    """An image as it is declared: ``registry/repository:tag@digest``; tag or digest may be None, not both."""

    registry: str
    repository: str
    tag: str | None = None
    digest: str | None = None

    @property
    def name(self) -> str:
        """Return registry and repository, as engines write them before tag and digest."""
        return f"{self.registry}/{self.repository}"


def reference(word: str) -> Reference | None:
    """Return a declared image, None for what is none; one without a registry is not taken: engines guess there."""
    if len(word) > 400 or "/" not in word:
        return None
    registry, _slash, rest = word.partition("/")
    found = _REFERENCE.fullmatch(rest)
    host = re.fullmatch(r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(:[0-9]{1,5})?", registry)
    if not found or not host or not ("." in registry or host[1] or registry == "localhost"):
        return None
    tag = found["tag"] or (None if found["digest"] else "latest")
    return Reference(registry, found["name"], tag, found["digest"])


def pinned(words: Iterable[str], accepted: Mapping) -> dict:
    """Return declared images with their digest, and why one has none: ``{"images", "refused", "unbuilt"}``.

    ``accepted`` are the digests that a site accepted, ``{"registry/repository:tag": {"digest": ...}}``. Each image
    comes back as ``registry/repository[:tag]@digest``. ``unbuilt`` are those of ``refused`` that may still be built.
    """
    told: dict[str, list[str]] = {"images": [], "refused": [], "unbuilt": []}
    owner: dict[str, str] = {}
    for word in dict.fromkeys(words):
        wanted = reference(word)
        if wanted is None:
            told["refused"].append(f"{word} is no image with its registry, such as ctl-01:5000/train/pytorch:1")
            continue
        tagged = f"{wanted.name}:{wanted.tag}" if wanted.tag else None
        mine = str(dict_of(accepted.get(tagged)).get("digest") or "")
        if mine and not re.fullmatch(_DIGEST, mine):
            told["refused"].append(f"{word}: what was accepted for it is no digest: {mine[:80]!r}")
            continue
        if wanted.digest and mine and wanted.digest != mine:
            told["refused"].append(f"{word}: another digest was accepted for the tag, {mine}")
            continue
        digest = wanted.digest or mine
        if not digest:
            told["unbuilt"].append(f"{word} has a tag and no accepted digest: build it, or declare it with its digest")
            continue
        if tagged and owner.setdefault(tagged, digest) != digest:
            told["refused"].append(f"{tagged} is declared with two digests, {owner[tagged]} and {digest}")
            continue
        told["images"].append(f"{tagged or wanted.name}@{digest}")
    told["images"] = list(dict.fromkeys(told["images"]))
    told["refused"] += told["unbuilt"]
    return told


def read_images(output: str) -> list[dict]:
    """Return the images of ``podman images --format json``, ``podman image inspect`` or ``docker image inspect``.

    Each ``{"id", "names", "digests", "size_bytes", "labels"}``: names are ``registry/repository:tag``, digests
    ``registry/repository@sha256:...``. podman lists an image once a name; here it is there once.
    """
    try:
        body = json.loads(whole_characters(output))
    except (ValueError, RecursionError) as exc:
        raise Unreadable(f"the list of images is no JSON: {str(exc)[:100]}") from None
    if not isinstance(body, list):
        raise Unreadable("the list of images is no list")
    found: dict[str, dict] = {}
    for entry in dicts_of(body):
        number = str(entry.get("Id") or "").replace("sha256:", "")
        if not number:
            continue
        size = entry.get("Size")
        labels = entry.get("Labels") or dict_of(entry.get("Config")).get("Labels")
        found[number] = {
            "id": number,
            "names": _texts(entry.get("Names") or entry.get("RepoTags")),
            "digests": [one for one in _texts(entry.get("RepoDigests")) if re.search(f"@{_DIGEST}$", one)],
            "size_bytes": size if isinstance(size, int) and not isinstance(size, bool) else None,
            "labels": {str(key): str(value) for key, value in dict_of(labels).items()},
        }
    return list(found.values())


def _texts(value: object) -> list[str]:
    return sorted({str(one) for one in value if one}) if isinstance(value, list) else []


def digest_of(manifest: bytes) -> str:
    """Return the digest of a manifest: that of its bytes, whatever anybody says of it."""
    return "sha256:" + hashlib.sha256(manifest).hexdigest()


def read_manifest(status: int, manifest: bytes, header: str | None, wanted: Reference) -> dict:
    """Return what a registry's answer to a manifest means: ``{"state", "digest", "header_digest", "problem"}``.

    ``state`` is ok, absent, refused, error or corrupt: bytes that are not what was asked for by digest, or not what the
    header Docker-Content-Digest says.
    """
    told = {"digest": None, "header_digest": header, "problem": f"HTTP {status}"}
    if status != 200:
        state = "absent" if status == 404 else "refused" if status in (401, 403) else "error"
        return {"state": state, **told}
    digest = digest_of(manifest)
    said = {"digest": digest, "header_digest": header}
    for other in (wanted.digest, header):
        if other and other != digest:
            return {"state": "corrupt", **said, "problem": f"the bytes are {digest}, not {other}"}
    try:
        body = json.loads(manifest)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict) or not ({"manifests", "layers", "config"} & set(body)):
        return {"state": "error", **said, "problem": "the answer is no manifest"}
    return {"state": "ok", **said, "problem": None}


# ---------------------------------------------------------------------------------------------------------- proxies


def bypasses(no_proxy: str, address: str) -> bool:
    """Tell whether a registry is exempt from a proxy by NO_PROXY, as Go programs (podman, Docker) read it.

    A name stands for itself and all below it, one with a dot before it for what is below it; addresses, networks and
    ports count; ``*`` is everything. This host itself is never asked through a proxy.
    """
    host, port = split_address(address)
    try:
        number = ipaddress.ip_address(host)
    except ValueError:
        number = None
    if host == "localhost" or (number is not None and number.is_loopback):
        return True
    for raw in no_proxy.split(","):
        entry = raw.strip().lower()
        if entry == "*":
            return True
        try:
            if number is not None and number in ipaddress.ip_network(entry, strict=False):
                return True
        except ValueError:
            pass
        name, wanted_port = split_address(entry, "")
        if not name or (wanted_port and wanted_port != port):
            continue
        if host == name.lstrip(".*") and not name.startswith((".", "*.")):
            return True
        if number is None and host.endswith("." + name.lstrip("*").lstrip(".")):
            return True
    return False


def split_address(address: str, port: str = "443") -> tuple[str, str]:
    """Return host and port of ``host:port``, ``[v6]:port`` or a host alone; the name in lower case."""
    found = re.fullmatch(r"\[([^\]]*)\](?::(\d*))?", address)
    if found is None and address.count(":") > 1:
        return address.lower(), port
    host, number = (found[1], found[2]) if found else (address.partition(":")[0], address.partition(":")[2])
    return host.lower().rstrip("."), number or port


# ---------------------------------------------------------------------------------------------------------- judging


def held(images: object, wanted: Reference) -> tuple[bool, set[str]]:
    """Return whether a host has an image of this name (and tag, where no digest is declared), and its digests."""
    mine = []
    for image in dicts_of(images):
        names = [str(one) for one in image.get("names") or []]
        digests = {one.rpartition("@")[2] for one in image.get("digests") or [] if one.startswith(wanted.name + "@")}
        if wanted.digest:
            if digests or any(one.startswith(wanted.name + ":") for one in names):
                mine.append(digests)
        elif f"{wanted.name}:{wanted.tag}" in names:
            mine.append(digests)
    return bool(mine), set().union(*mine) if mine else set()


def digests_of_tag(images: object, wanted: Reference) -> set[str] | None:
    """Return the digests of the image that a host knows by the declared tag; None where the tag names none."""
    for image in dicts_of(images):
        if f"{wanted.name}:{wanted.tag}" in (image.get("names") or []):
            return {one.rpartition("@")[2] for one in image.get("digests") or [] if one.startswith(wanted.name + "@")}
    return None


def upstream(observation: object, word: str) -> dict:
    """Return what the registry said of a declared image in this observation, {} where nobody asked."""
    for registry in dicts_of(dict_of(observation).get("registries")):
        for image in dicts_of(registry.get("images")):
            if image.get("reference") == word:
                return image
    return {}


def _one(observation: Mapping, word: str) -> tuple[str, set[str], str]:
    """Return cause, digests held, and words for one declared image on one host."""
    wanted = reference(word)
    if wanted is None:
        return "unknown", set(), f"{word}: no image with its registry"
    images = observation.get("images")
    if not isinstance(images, list):
        return "unknown", set(), f"{word}: the engine did not list its images"
    there, digests = held(images, wanted)
    told = ", ".join(sorted(digests)) or "-"
    if not there:
        return "absent", set(), word
    if not digests:
        return "unknown", set(), f"{word}: the engine knows no digest of it"
    if wanted.digest:
        if wanted.digest not in digests:
            return "other_digest", digests, f"{word}: {told}"
        tagged = digests_of_tag(images, wanted) if wanted.tag else {wanted.digest}
        if tagged is None:
            return "untagged", digests, word
        # The declared image is there, and its name means another: what a job gets that asks for the name.
        told = ", ".join(sorted(tagged)) or "-"
        return ("ok" if wanted.digest in tagged else "other_digest"), tagged, f"{word}: {told}"
    answer = upstream(observation, word)
    if answer.get("state") != "ok":
        return "not_asked", digests, f"{word}: {answer.get('problem') or '-'}"
    if answer.get("digest") in digests:
        return "ok", digests, f"{word}: {told}"
    return "moved", digests, f"{word}: {told} ({answer.get('digest')})"


# The most telling first.
_CAUSES = ("absent", "other_digest", "moved", "differs", "untagged", "unknown", "not_asked")


def _across(word: str, results: dict[str, dict[str, tuple[str, set[str], str]]]) -> None:
    """Mark the hosts that hold another digest than the others, where a tag is all that is declared."""
    wanted = reference(word)
    if wanted is None or wanted.digest:
        return
    rows = {host: told[word] for host, told in results.items() if word in told}
    told = {host: row for host, row in rows.items() if row[0] in ("ok", "not_asked") and row[1]}
    # What the registry says now is right, unless it said different things to different hosts.
    common = set.intersection(*([row[1] for row in told.values() if row[0] == "ok"] or [set()]))
    if not common:
        count = Counter(digest for _cause, digests, _words in told.values() for digest in digests)
        common = {digest for digest, number in count.items() if 2 * number > len(told)}
    for host, (_cause, digests, _words) in told.items():
        if not digests & common:
            results[host][word] = ("differs", digests, f"{word}: {', '.join(sorted(digests))}")


def across(findings: list[dict], parts: Mapping[str, Mapping[str, dict]], now: str | None, language: str) -> list[dict]:
    """Return findings in which ``container.image_digest`` is judged over all hosts that said what they hold.

    What a host found of itself stays where it handed over nothing, or where its engine did not work.
    """
    asked = {
        host: part["observed"]["containers"]
        for host, layers in parts.items()
        for part in layers.values()
        if isinstance(part["observed"].get("containers"), dict)
    }
    judged = {one["host"]: one for one in judge_hosts(asked, now, language)}
    return [
        judged[one["host"]]
        if one["check"] == "container.image_digest"
        and one["host"] in judged
        and one["hint"] != "container.image_digest.blocked"
        else one
        for one in findings
    ]


def judge_hosts(hosts: Mapping[str, dict], now: str | None = None, language: str = "en") -> list[dict]:
    """Judge ``container.image_digest``: each host holds each declared image, and all hosts hold the same.

    ``hosts`` is ``{host: {"images": declared words, "observation": what container_info returned, "blocked_by": check or
    None}}``. Hosts that declare the same tag are held against each other: those differ that hold another digest than
    the registry tells now, or, where it did not tell, than more than half of them; where none has more than half, all.
    """
    results: dict[str, dict[str, tuple[str, set[str], str]]] = {}
    for host, about in hosts.items():
        seen = dict_of(about.get("observation"))
        results[host] = {str(word): _one(seen, str(word)) for word in about.get("images") or []}
    for word in sorted({word for told in results.values() for word in told}):
        _across(word, results)
    found = []
    for host in sorted(results, key=natural):
        told = results[host]
        values: dict = {"language": language, "now": now, "expected": list(told)}
        blocker = hosts[host].get("blocked_by")
        if not told:
            found.append(judge.finding("container.image_digest.not_applicable", host, **values))
            continue
        if blocker:
            found.append(judge.finding("container.image_digest.blocked", host, blocked_by=blocker, **values))
            continue
        cause = next((one for one in _CAUSES if any(one == cause for cause, _d, _w in told.values())), "ok")
        detail = "; ".join(words for own, _digests, words in told.values() if own == cause)
        values["observed"] = {word: sorted(digests) for word, (_cause, digests, _words) in told.items()}
        values["evidence"] = [
            {"command": own, "excerpt": judge.excerpt(words)} for own, _digests, words in told.values() if own != "ok"
        ]
        if cause == "not_asked":
            values["blocked_by"] = "container.registry"
        found.append(judge.finding(f"container.image_digest.{cause}", host, detail=detail, **values))
    return found
