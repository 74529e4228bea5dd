# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host of the registry: what is read there, why nothing is set up on it, what is told of it."""

from __future__ import annotations

import json

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import registry_host
from ansible_collections.accel.cluster.plugins.module_utils._accel.registry_host import COLLECTOR, UNITS, Wanted
from doubles import HANG, RecordedRunner

STORAGE = "/var/lib/docker-registry"
CA, KEY = "/etc/accel/registry-server/ca.crt", "/etc/accel/registry-server/ca/ca.key"
WANTED = Wanted("ctl-01:5000", "", "127.0.0.1:5001", STORAGE, 5, CA, KEY)
NAMES = ("getent", "ahosts", "ctl-01")
PORTS = ("ss", "-Hltnp")
OWN = [{"addr_info": [{"local": "127.0.0.1"}]}, {"addr_info": [{"local": "192.0.2.11"}, {"local": "fe80::1"}]}]
LISTENING = (
    'LISTEN 0 128 0.0.0.0:22 0.0.0.0:* users:(("sshd",pid=87,fd=3))\n'
    'LISTEN 0 4096 192.0.2.11:5000 0.0.0.0:* users:(("docker-registry",pid=812,fd=3))\n'
    'LISTEN 0 4096 127.0.0.1:5001 0.0.0.0:* users:(("docker-registry",pid=813,fd=3))\n'
)
SHOWN = "\n".join(
    f"Id={unit}\nLoadState=loaded\nActiveState=active\nSubState=running\nResult=success\nMainPID={pid}\n"
    for unit, pid in (*zip(UNITS.values(), (812, 813)), (COLLECTOR, 0))
)
PUBLIC = "-----BEGIN PUBLIC KEY-----\nMHYw\n-----END PUBLIC KEY-----\n"


def host(files=(STORAGE, f"{STORAGE}/docker/registry", CA, KEY), **changed) -> RecordedRunner:
    """Return a registry's host that is as it should be, but for what is named."""
    show = ("systemctl", "show", f"--property={registry_host._PROPERTIES}", *UNITS.values(), COLLECTOR)
    answers = {
        NAMES: (0, "192.0.2.11      STREAM ctl-01\n192.0.2.11      DGRAM\n", ""),
        ("ip", "-json", "address"): (0, json.dumps(OWN), ""),
        show: (0, SHOWN, ""),
        PORTS: (0, LISTENING, ""),
        ("df", "-B1", "--output=size,avail", STORAGE): (0, "1B-blocks Avail\n 100000000000 60000000000\n", ""),
        ("df", "-B1", "--output=size,avail", "/"): (0, "1B-blocks Avail\n 100000000000 60000000000\n", ""),
        ("du", "-sB1", STORAGE): (0, f"53000000\t{STORAGE}\n", ""),
        ("openssl", "x509", "-in", CA, "-noout", "-pubkey", "-enddate"): (
            0,
            f"{PUBLIC}notAfter=Nov 27 21:55:03 2036 GMT\n",
            "",
        ),
        ("openssl", "pkey", "-in", KEY, "-passin", "pass:", "-pubout"): (0, PUBLIC, ""),
    }
    words = {"names": NAMES, "ports": PORTS, "show": show}
    for key, value in changed.items():
        found = [argv for argv in answers if argv == words.get(key) or argv[0] == key or argv[:2] == ("openssl", key)]
        answers.update(dict.fromkeys(found, value))
    return RecordedRunner(answers, files=dict.fromkeys(files, ""))


def refused(wanted=WANTED, **changed) -> list[str]:
    return registry_host.refusals(registry_host.observe(host(**changed), wanted), wanted)


def test_a_host_that_has_its_registry_is_taken():
    seen = registry_host.observe(host(), WANTED)
    assert registry_host.refusals(seen, WANTED) == []
    assert seen["places"] == {"pull": "192.0.2.11:5000", "push": "127.0.0.1:5001"}
    assert [row["own"] for row in seen["ports"]] == [False, True, True]
    assert seen["storage"]["used_bytes"] == 53000000
    assert (seen["ca"]["state"], seen["ca"]["ends"]) == ("ok", "Nov 27 21:55:03 2036 GMT")


def test_a_host_that_has_nothing_is_taken_too():
    seen = registry_host.observe(host(files=(), show=(0, "", ""), ports=(0, "", "")), WANTED)
    assert registry_host.refusals(seen, WANTED) == []
    assert seen["ca"]["state"] == "absent"
    assert seen["storage"]["used_bytes"] == 0


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"names": (2, "", "")}, "has no address on this host"),
        ({"names": (0, "192.0.2.99 STREAM ctl-01\n", "")}, "is 192.0.2.99, which is not this host"),
        ({"names": (0, "127.0.0.1 STREAM ctl-01\n", "")}, "which no node can reach"),
        ({"ip": (1, "", "")}, "the addresses of the host could not be read"),
        ({"ports": HANG}, "who listens on which port could not be read"),
        ({"show": (0, "", "")}, "192.0.2.11:5000 is taken by docker-registry (process 812)"),
        (
            {"ports": (0, 'LISTEN 0 9 *:5001 *:* users:(("nginx",pid=9,fd=1))\n', "")},
            "127.0.0.1:5001 is taken by nginx",
        ),
        ({"df": (0, "1B-blocks Avail\n 100 1\n", "")}, "0 GiB are free for"),
        ({"df": HANG}, "the room for /var/lib/docker-registry could not be read"),
        ({"files": (STORAGE, f"{STORAGE}/mail")}, "holds something that is no registry"),
        ({"files": (CA,)}, f"there is {CA} alone"),
        ({"pkey": (1, "", "unable to load key")}, f"{KEY}: unable to load key"),
        ({"pkey": (0, PUBLIC.replace("MHYw", "MHYx"), "")}, "is not the key of"),
    ],
)
def test_each_reason_is_told(changed, words):
    assert [one for one in refused(**changed) if words in one], refused(**changed)


def test_all_reasons_are_told_at_once():
    assert len(refused(names=(2, "", ""), df=HANG, files=(STORAGE, f"{STORAGE}/mail", CA))) == 4


def test_an_address_to_listen_on_goes_before_the_name():
    wanted = Wanted("ctl-01:5000", "192.0.2.11", "127.0.0.1:5001", STORAGE)
    both = (0, "127.0.1.1 STREAM ctl-01\n192.0.2.11 STREAM\n", "")
    assert refused(wanted, names=both) == []
    assert refused(Wanted("ctl-01:5000", "192.0.2.12", "", STORAGE)) == [
        "registry_listen_address 192.0.2.12 is no address of this host"
    ]


# ---------------------------------------------------------------------------------------------------------- judging

NOW = "2026-11-30T22:00:00Z"
DECLARED = {"address": "ctl-01:5000", "limit_gib": 1, "free_gib": 5, "renew_days": 30, "own_ca": True}
ASKED = {
    "pull": {"state": "ok", "problem": None},
    "push": {"state": "ok", "problem": None},
    "anonymous": "login_needed",
    "certificate_ends": "Nov 30 21:55:03 2027 GMT",
}


def told(seen=None, declared=None, **asked) -> dict[str, str]:
    """Return check -> cause of what is said of a host that is well, but for what is named."""
    seen = {**registry_host.observe(host(), WANTED), "asked": {**ASKED, **asked}, **(seen or {})}
    found = registry_host.judge_host("ctl-01", seen, declared or DECLARED, "en", NOW)
    assert {one["subject"] for one in found} == {"ctl-01:5000"}
    assert all("{" not in one["message"] for one in found)
    return {one["check"]: one["hint"].rsplit(".", 1)[1] for one in found}


def test_a_registry_that_is_well_passes():
    assert told() == {"registry.service": "ok", "registry.storage": "ok"}


@pytest.mark.parametrize(
    ("asked", "cause"),
    [
        ({"pull": {"state": "unreachable", "problem": "refused"}}, "down"),
        ({"pull": {"state": "login_refused", "problem": "HTTP 401"}}, "down"),
        ({"pull": {"state": "expired", "problem": "certificate has expired"}}, "certificate"),
        ({"pull": {"state": "name_mismatch", "problem": "x"}}, "certificate"),
        ({"push": {"state": "unreachable", "problem": "refused"}}, "push_down"),
        ({"anonymous": "ok"}, "open"),
        ({"anonymous": "timeout"}, "unknown"),
        ({"anonymous": None}, "unknown"),
        ({"certificate_ends": "Dec 20 21:55:03 2026 GMT"}, "certificate_ends_soon"),
        ({"certificate_ends": None}, "unknown"),
        ({"certificate_ends": "soon"}, "unknown"),
        ({"pull": None}, "unknown"),
        ({"push": None}, "unknown"),
    ],
)
def test_what_the_services_say_is_judged(asked, cause):
    assert told(**asked) == {"registry.service": cause, "registry.storage": "ok"}


def test_a_ca_that_ends_before_the_certificate_is_told():
    seen = {"ca": {"state": "ok", "problem": None, "ends": "Dec 10 00:00:00 2026 GMT"}}
    assert told(seen)["registry.service"] == "certificate_ends_soon"
    assert told({"ca": {"state": "unreadable", "ends": None}})["registry.service"] == "unknown"
    # That of a certificate of one's own is nowhere to be read; the certificate alone counts.
    assert told({"ca": {"state": "absent", "ends": None}}, {**DECLARED, "own_ca": False})["registry.service"] == "ok"


def test_nobody_misses_the_writer_while_it_is_collected():
    units = registry_host.read_units(SHOWN)
    units[COLLECTOR]["active"] = "activating"
    down = {"push": {"state": "unreachable", "problem": "refused"}}
    assert told({"units": units}, **down)["registry.service"] == "ok"


@pytest.mark.parametrize(
    ("storage", "cause"),
    [
        ({"used_bytes": 2 << 30}, "over_limit"),
        ({"free_bytes": 1 << 30}, "full"),
        ({"used_bytes": None}, "unknown"),
        ({"free_bytes": None}, "unknown"),
    ],
)
def test_the_room_is_judged(storage, cause):
    seen = registry_host.observe(host(), WANTED)["storage"]
    assert told({"storage": {**seen, **storage}}) == {"registry.service": "ok", "registry.storage": cause}


def test_a_collection_that_failed_is_told():
    units = registry_host.read_units(SHOWN)
    units[COLLECTOR]["result"] = "timeout"
    assert told({"units": units}) == {"registry.service": "ok", "registry.storage": "collection_failed"}


def test_nothing_read_is_no_pass():
    found = registry_host.judge_host("ctl-01", {}, DECLARED, "zh", NOW)
    assert [one["verdict"] for one in found] == ["unknown", "unknown"]
