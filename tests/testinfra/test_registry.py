# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The registry on its host: who may do what, whom its certificate is for, and what the collection gives back."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest

testinfra_hosts = ["ansible://registry_hosts"]

ROOT = Path(__file__).resolve().parents[2]
SECRETS = ROOT / ".cache" / os.environ.get("ACCEL_REHEARSAL_INSTANCE", "molecule") / "secrets"
FOLDER = "/etc/accel/registry-server"
NODE, BUILDER = "registry-node", "registry-builder"
NAMES = {NODE: "node", BUILDER: "builder", None: ""}
# Runs on the host, by its own Python: asks one question, or several in a row, as a client does.
CLIENT = """
import base64, hashlib, json, os, ssl, sys, urllib.error, urllib.request
context = ssl.create_default_context(cafile="/etc/accel/registry-server/ca.crt")
name, password, *rest = json.loads(sys.stdin.read())
def ask(method, url, data=None, **headers):
    if name:
        headers["Authorization"] = "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()
    request = urllib.request.Request(url, data=data, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, context=context, timeout=20) as answer:
            return answer.status, answer.headers
    except urllib.error.HTTPError as error:
        return error.code, error.headers
"""
ONE = CLIENT + "print(ask(*rest)[0])"
# An image of one large layer that nothing else has, then without it.
GONE = (
    CLIENT
    + """
def push(content):
    digest = "sha256:" + hashlib.sha256(content).hexdigest()
    place = ask("POST", rest[0] + "/blobs/uploads/", b"")[1]["Location"]
    assert ask("PUT", place + "&digest=" + digest, content, **{"Content-Type": "application/octet-stream"})[0] == 201
    return {"digest": digest, "size": len(content)}
kind = "application/vnd.oci.image."
layer = {"mediaType": kind + "layer.v1.tar", **push(os.urandom(8 << 20))}
body = {"schemaVersion": 2, "mediaType": kind + "manifest.v1+json", "layers": [layer],
        "config": {"mediaType": kind + "config.v1+json", **push(b"{}")}}
content = json.dumps(body).encode()
assert ask("PUT", rest[0] + "/manifests/1", content, **{"Content-Type": kind + "manifest.v1+json"})[0] == 201
digest = "sha256:" + hashlib.sha256(content).hexdigest()
assert ask("DELETE", rest[0] + "/manifests/" + digest)[0] == 202
print(layer["digest"])
"""
)


def ask(host, who: str | None, *words: str, program: str = ONE) -> str:
    """Return what the registry answers to the account, or to nobody."""
    password = (SECRETS / who).read_text().strip() if who else ""
    question = json.dumps([NAMES[who], password, *words])
    return host.check_output(f"printf %s {shlex.quote(question)} | python3 -c {shlex.quote(program)}")


@pytest.fixture(scope="module")
def places(host) -> tuple[str, str]:
    """Return where to read and where to write, by the names that certificate and images have."""
    return f"https://{host.check_output('hostname')}:5000/v2/", "https://127.0.0.1:5001/v2/"


def test_reader_and_writer_run_and_the_packages_own_service_can_not(host) -> None:
    for unit in ("accel-registry@pull", "accel-registry@push", "accel-registry-gc.timer"):
        assert host.service(unit).is_running and host.service(unit).is_enabled, host.run(f"journalctl -u {unit}").stdout
    assert host.check_output("systemctl show -p LoadState --value docker-registry") == "masked"


def test_the_writer_listens_on_its_own_host_alone(host) -> None:
    name = host.check_output("hostname")
    address = host.check_output(f"getent ahostsv4 {name}").split()[0]
    rows = host.check_output("ss -Hltnp").splitlines()
    assert sorted(row.split()[3] for row in rows if "docker-registry" in row) == [f"{address}:5000", "127.0.0.1:5001"]


@pytest.mark.parametrize(
    ("who", "reads", "writes"), [(NODE, "200", "401"), (BUILDER, "401", "200"), (None, "401", "401")]
)
def test_each_account_is_let_in_where_it_belongs(host, places, who, reads, writes) -> None:
    assert (ask(host, who, "GET", places[0]), ask(host, who, "GET", places[1])) == (reads, writes)


def test_the_nodes_account_changes_nothing(host, places) -> None:
    nothing = "sha256:" + 64 * "0"
    for method, what in (
        ("POST", "a/b/blobs/uploads/"),
        ("PUT", "a/b/manifests/1"),
        ("DELETE", f"a/b/manifests/{nothing}"),
    ):
        assert ask(host, NODE, method, places[0] + what) == "405", what
    storage = "/var/lib/docker-registry"
    pid = host.check_output("systemctl show -p MainPID --value accel-registry@pull")
    tried = host.run(f"nsenter -m -t {pid} touch {storage}/written")
    assert "Read-only file system" in tried.stderr and not host.file(f"{storage}/written").exists


def test_keys_are_read_by_those_who_need_them(host) -> None:
    ca, key = host.file(f"{FOLDER}/ca/ca.key"), host.file(f"{FOLDER}/server.key")
    assert (ca.user, ca.mode, host.file(f"{FOLDER}/ca").mode) == ("root", 0o600, 0o700)
    assert (key.user, key.group, key.mode) == ("root", "docker-registry", 0o640)
    for account in ("pull", "push"):
        file = host.file(f"{FOLDER}/{account}.htpasswd")
        assert (file.group, file.mode) == ("docker-registry", 0o640)
        assert len(file.content_string.splitlines()) == 1


def test_the_certificate_names_what_it_is_asked_by_and_is_the_sites(host) -> None:
    name = host.check_output("hostname")
    shown = host.check_output(f"openssl x509 -in {FOLDER}/server.crt -noout -ext subjectAltName,extendedKeyUsage")
    for word in (f"DNS:{name}", f"IP Address:{host.check_output(f'getent ahostsv4 {name}').split()[0]}", "127.0.0.1"):
        assert word in shown
    assert "TLS Web Server Authentication" in shown
    assert host.check_output(f"openssl verify -CAfile {FOLDER}/ca.crt {FOLDER}/server.crt").endswith("OK")
    host.check_output(f"openssl x509 -in {FOLDER}/server.crt -noout -checkend {30 * 86400}")
    handed = ROOT / "sites" / SECRETS.parent.name / "registry/ca.crt"
    assert handed.read_text() == host.file(f"{FOLDER}/ca.crt").content_string
    assert [one.name for one in handed.parent.iterdir()] == ["ca.crt"]


def test_what_nothing_refers_to_is_removed_and_pushes_go_on_after_it(host, places) -> None:
    digest = ask(host, BUILDER, places[1] + "gone/image", program=GONE)
    path = f"/var/lib/docker-registry/docker/registry/v2/blobs/sha256/{digest[7:9]}/{digest[7:]}/data"
    assert host.file(path).size == 8 << 20
    started = host.check_output("systemctl show -p ActiveEnterTimestampMonotonic --value accel-registry@push")
    reader = host.check_output("systemctl show -p MainPID --value accel-registry@pull")
    host.check_output("systemctl start accel-registry-gc")
    assert not host.file(path).exists
    # The writer was stopped for it and is back; the reader never stopped.
    host.check_output("timeout 20 sh -c 'until systemctl -q is-active accel-registry@push; do sleep 0.1; done'")
    assert host.check_output("systemctl show -p ActiveEnterTimestampMonotonic --value accel-registry@push") != started
    assert host.check_output("systemctl show -p MainPID --value accel-registry@pull") == reader
    assert host.check_output("systemctl show -p Result --value accel-registry-gc") == "success"
