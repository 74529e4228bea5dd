# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A registry is asked over real sockets: TLS of a site's CA, logins, and every way in which it can fail."""

from __future__ import annotations

import base64
import datetime
import http.server
import json
import socket
import ssl
import threading
import time

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import images, registries
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

MANIFEST = b'{"schemaVersion": 2, "config": {}, "layers": []}'
DIGEST = images.digest_of(MANIFEST)
LOGIN = "Basic " + base64.b64encode(b"node:secret").decode()
DAY = datetime.timedelta(days=1)


def certificate(folder, name, signer=None, starts=-2, ends=2, host="localhost"):
    """Write a key and a certificate, signed by ``signer`` (key, certificate) or by itself; return both and paths."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signer[1].subject if signer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + starts * DAY)
        .not_valid_after(now + ends * DAY)
        .add_extension(x509.BasicConstraints(ca=signer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .sign(signer[0] if signer else key, hashes.SHA256())
    )
    path = folder / f"{name}.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = made.public_bytes(serialization.Encoding.PEM)
    path.write_bytes(public + private)
    (folder / f"{name}.crt").write_bytes(public)
    return key, made, path


class Registry(http.server.BaseHTTPRequestHandler):
    """As much of a registry as is asked; what it does is set on the server."""

    def do_GET(self):
        self.server.seen.append((self.path, self.headers.get("Authorization")))
        status, headers, body = self.server.answer(self.path, self.headers.get("Authorization"))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_unused):
        pass


def healthy(path, _login):
    if path == "/v2/":
        return 200, {}, b"{}"
    if path in ("/v2/train/manifests/1", f"/v2/train/manifests/{DIGEST}"):
        return 200, {"Docker-Content-Digest": DIGEST}, MANIFEST
    return 404, {}, b"{}"


@pytest.fixture
def serve():
    """Start servers; each is stopped at the end."""
    running = []

    def start(answer=healthy, chain=None):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry)
        server.answer, server.seen = answer, []
        if chain:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(chain)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        # Handshakes that are refused are part of these tests, not news.
        server.handle_error = lambda *_unused: None
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        running.append(server)
        return server, f"localhost:{server.server_address[1]}"

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ca")
    key, made, _path = certificate(folder, "ca")
    return folder, (key, made)


def test_a_registry_with_the_sites_ca_and_an_image(serve, site):
    folder, ca = site
    _server, address = serve(chain=certificate(folder, "good", ca)[2])
    words = [f"{address}/train:1", f"{address}/train@{DIGEST}", f"{address}/train:2", "other:5000/x:1"]
    told = registries.check(address, ca_files=[str(folder / "ca.crt")], references=words)
    assert (told["state"], told["problem"], told["login"]) == ("ok", None, "none")
    assert [(one["reference"], one["state"], one["digest"]) for one in told["images"]] == [
        (words[0], "ok", DIGEST),
        (words[1], "ok", DIGEST),
        (words[2], "absent", None),
        (words[3], "not_asked", None),
    ]


@pytest.mark.parametrize(
    ("more", "state"),
    [
        ({"ends": -1}, "expired"),
        ({"starts": 1}, "not_yet_valid"),
        ({"host": "registry.example"}, "name_mismatch"),
    ],
)
def test_what_is_wrong_with_a_certificate(serve, site, more, state):
    folder, ca = site
    server, address = serve(chain=certificate(folder, state, ca, **more)[2])
    told = registries.check(address, ca_files=[str(folder / "ca.crt")], username="node", password="secret")
    assert told["state"] == state and told["problem"]
    assert server.seen == [], "no login goes to who is not trusted"


def test_a_foreign_ca_and_none(serve, site, tmp_path):
    folder, _ca = site
    other = certificate(tmp_path, "other")
    _server, address = serve(chain=certificate(tmp_path, "theirs", other[:2])[2])
    assert registries.check(address, ca_files=[str(folder / "ca.crt")])["state"] == "ca_foreign"
    assert registries.check(address)["state"] == "ca_foreign"
    assert registries.check(address, ca_files=[str(tmp_path / "other.crt")])["state"] == "ok"
    (tmp_path / "empty.crt").write_text("")
    assert registries.check(address, ca_files=[str(tmp_path / "empty.crt")])["state"] == "ca_file"
    assert registries.check(address, ca_files=[str(tmp_path / "none.crt")])["state"] == "ca_file"


def test_a_ca_that_is_on_no_disk_yet(serve, site):
    folder, ca = site
    _server, address = serve(chain=certificate(folder, "undisked", ca)[2])
    content = (folder / "ca.crt").read_text()
    assert registries.check(address, ca_content=content)["state"] == "ok"
    assert registries.check(address, ca_content="no certificate")["state"] == "ca_file"
    assert registries.check(address, ca_content=None)["state"] == "ca_foreign"


@pytest.mark.parametrize(
    ("text", "login"),
    [
        (
            json.dumps({"auths": {"reg:5000": {"auth": base64.b64encode(b"node:se:cret").decode()}}}),
            ("node", "se:cret"),
        ),
        (json.dumps({"auths": {"other:5000": {"auth": base64.b64encode(b"a:b").decode()}}}), None),
        (json.dumps({"auths": {"reg:5000": {"auth": base64.b64encode(b"nocolon").decode()}}}), None),
        (json.dumps({"auths": {"reg:5000": {"auth": "%%%"}}}), None),
        (json.dumps({"auths": {"reg:5000": {"auth": base64.b64encode(bytes([255, 58])).decode()}}}), None),
        (json.dumps({"auths": []}), None),
        ("", None),
        ("[" * 100000, None),
    ],
)
def test_the_login_that_a_node_has(text, login):
    assert registries.login_of(text, "reg:5000") == login


def test_the_wrong_scheme_is_told_in_both_directions(serve, site):
    folder, ca = site
    _server, plain = serve()
    assert registries.check(plain, ca_files=[str(folder / "ca.crt")])["state"] == "plain_http"
    assert registries.check(plain, "http")["state"] == "ok"
    _server, encrypted = serve(chain=certificate(folder, "tls", ca)[2])
    assert registries.check(encrypted, "http")["state"] == "speaks_tls"
    # Servers written in Go answer in plain text; others send to the other scheme.
    words = b"Client sent an HTTP request to an HTTPS server.\n"
    _server, golang = serve(lambda _path, _login: (400, {}, words))
    assert registries.check(golang, "http")["state"] == "speaks_tls"
    _server, sending = serve(lambda path, _login: (301, {"Location": "https://localhost" + path}, b""))
    assert registries.check(sending, "http")["state"] == "speaks_tls"


def guarded(path, login):
    if login != LOGIN:
        return 401, {"WWW-Authenticate": 'Basic realm="x"'}, b""
    return healthy(path, login)


def test_a_login_with_a_password(serve):
    _server, address = serve(guarded)
    assert registries.check(address, "http")["state"] == "login_needed"
    assert registries.check(address, "http", username="node", password="wrong")["state"] == "login_refused"
    told = registries.check(address, "http", (), "node", "secret", [f"{address}/train:1"])
    assert (told["state"], told["login"], told["images"][0]["state"]) == ("ok", "basic", "ok")
    assert "secret" not in json.dumps(told)


def test_a_login_with_a_token(serve):
    def answer(path, login):
        if path.startswith("/token"):
            if login != LOGIN or "service=reg" not in path:
                return 401, {}, b"{}"
            return 200, {}, b'{"token": "t1"}'
        if login != "Bearer t1":
            return 401, {"WWW-Authenticate": f'Bearer realm="http://{where[0]}/token",service="reg"'}, b""
        return healthy(path, login)

    where = []
    _server, address = serve(answer)
    where.append(address)
    told = registries.check(address, "http", (), "node", "secret", [f"{address}/train:1"])
    assert (told["state"], told["login"], told["images"][0]["state"]) == ("ok", "bearer", "ok")
    assert registries.check(address, "http", (), "node", "wrong")["state"] == "login_refused"


def test_a_password_never_leaves_tls_for_a_token(serve, site):
    folder, ca = site
    thief, stolen = serve(lambda _path, _login: (200, {}, b'{"token": "t"}'))
    challenge = {"WWW-Authenticate": f'Bearer realm="http://{stolen}/token"'}
    _server, address = serve(lambda _path, _login: (401, challenge, b""), certificate(folder, "token", ca)[2])
    told = registries.check(address, "https", [str(folder / "ca.crt")], "node", "secret")
    assert told["state"] == "login_refused" and thief.seen == []


def test_a_login_is_not_sent_on(serve):
    thief, stolen = serve()
    _server, address = serve(lambda path, _login: (302, {"Location": f"http://{stolen}{path}"}, b""))
    assert registries.check(address, "http", (), "node", "secret")["state"] == "error"
    assert thief.seen == []


@pytest.mark.parametrize(
    ("status", "state"), [(403, "forbidden"), (404, "error"), (500, "error"), (507, "error"), (503, "error")]
)
def test_answers_that_are_no_registrys(serve, status, state):
    _server, address = serve(lambda _path, _login: (status, {}, b""))
    told = registries.check(address, "http")
    assert told["state"] == state and str(status) in told["problem"]


def test_bytes_that_are_not_what_their_digest_says(serve):
    def answer(path, login):
        status, headers, body = healthy(path, login)
        return (status, headers, body + b" ") if "manifests" in path else (status, headers, body)

    _server, address = serve(answer)
    told = registries.check(address, "http", references=[f"{address}/train@{DIGEST}"])
    assert told["images"][0]["state"] == "corrupt"


def test_nobody_is_there():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"localhost:{free.getsockname()[1]}"
        told = registries.check(address, references=[f"{address}/train:1"])
    assert told["state"] == "unreachable" and "refused" in told["problem"]
    assert told["images"][0]["state"] == "not_asked"
    assert registries.check("no-such-host.invalid:5000", timeout_seconds=5)["state"] in ("unreachable", "timeout")


def test_one_that_says_nothing_costs_its_time_and_no_more():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        start = time.monotonic()
        told = registries.check(f"localhost:{silent.getsockname()[1]}", "http", timeout_seconds=0.5)
    assert told["state"] in ("timeout", "unreachable") and time.monotonic() - start < 2


def test_one_that_goes_on_for_ever_costs_its_time_and_no_more(serve):
    def answer(path, login):
        if "manifests" in path:
            time.sleep(1.5)
        return healthy(path, login)

    _server, address = serve(answer)
    start = time.monotonic()
    words = [f"{address}/train:{number}" for number in range(1, 9)]
    told = registries.check(address, "http", references=words, timeout_seconds=0.8)
    assert time.monotonic() - start < 2
    assert [one["state"] for one in told["images"]] == ["not_asked"] * 8


def test_one_that_breaks_off_in_the_middle(serve):
    def answer(path, login):
        if "manifests" in path:
            return 200, {"Content-Length": "9999"}, MANIFEST
        return healthy(path, login)

    _server, address = serve(answer)
    told = registries.check(address, "http", references=[f"{address}/train:1"], timeout_seconds=3)
    assert told["state"] != "ok" and told["images"][0]["state"] == "not_asked"
