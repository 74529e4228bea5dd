# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Ask a container registry as an engine would: name, port, TLS, login, then the manifests of the declared images.

Python's own TLS and HTTP only, with a time limit for the whole of each registry: a name server that never answers
holds a program up longer than any time limit of a connection.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
import socket
import ssl
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from email.message import Message

from . import images
from .model import dict_of
from .text import excerpt

MOST_BYTES = 4 << 20  # what registries allow a manifest

# OpenSSL's numbers of what is wrong with a certificate (x509_vfy.h).
_CERTIFICATES = {9: "not_yet_valid", 10: "expired", 62: "name_mismatch", 64: "name_mismatch"}
_FOREIGN = (2, 18, 19, 20, 21, 24, 26, 27, 28)
# What a TLS client reads in the words of a server that speaks plain HTTP.
_PLAIN = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "RECORD_LAYER_FAILURE")


class _Trouble(Exception):
    """The registry could not be asked: state and words."""

    def __init__(self, state: str, problem: str) -> None:
        super().__init__(problem)
        self.state, self.problem = state, problem


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows nothing: a login must not go where a registry points to."""

    def redirect_request(self, *_unused):
        return None


def check(
    address: str,
    scheme: str = "https",
    ca_files: Sequence[str] = (),
    username: str | None = None,
    password: str | None = None,
    references: Sequence[str] = (),
    timeout_seconds: float = 10,
    ca_content: str | None = None,
) -> dict:
    """Return what a registry says to this host. ``ca_content`` is a CA that is on no disk yet, as PEM.

    ``{"address", "scheme", "state", "problem", "login": none | basic | bearer | None, "images": [{"reference", "state",
    "digest", "header_digest", "problem"}]}``. ``state`` is ok, unreachable (no such name, refused, no answer, broken
    off), plain_http, speaks_tls, ca_file, ca_foreign, expired, not_yet_valid, name_mismatch, tls, login_needed,
    login_refused, forbidden, error or timeout. An image that nobody asked for any more is ``not_asked``.
    """
    told: dict = {"address": address, "scheme": scheme, "state": "timeout", "login": None, "images": []}
    told["problem"] = f"no answer within {timeout_seconds:g} s"
    asking = _Asking(told, ca_files, username, password, timeout_seconds)
    asking.ca_content = ca_content

    def ask() -> None:
        try:
            asking.all_of(references)
        except _Trouble as exc:
            told.update(state=exc.state, problem=exc.problem)

    # Python does not wait for a thread like this one when it ends.
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(timeout_seconds)
    result = {**told, "images": [dict(one) for one in told["images"]]}
    asked = {one["reference"] for one in result["images"]}
    result["images"] += [_not_asked(one, result["problem"]) for one in references if one not in asked]
    return result


def _not_asked(word: str, problem: str | None) -> dict:
    return {"reference": word, "state": "not_asked", "digest": None, "header_digest": None, "problem": problem}


def login_of(output: str, address: str) -> tuple[str, str] | None:
    """Return name and password for a registry out of an auth file of engines, None where it has none.

    ``{"auths": {"ctl-01:5000": {"auth": <base64 of name:password>}}}``, which podman and Docker both read.
    """
    try:
        body = json.loads(output)
        word = dict_of(dict_of(dict_of(body).get("auths")).get(address)).get("auth")
        name, colon, password = base64.b64decode(str(word or ""), validate=True).decode("utf-8").partition(":")
    except (ValueError, RecursionError):
        return None
    return (name, password) if colon else None


class _Asking:
    def __init__(
        self, told: dict, ca_files: Sequence[str], username: str | None, password: str | None, timeout: float
    ) -> None:
        self.told, self.ca_files, self.timeout = told, ca_files, timeout
        self.base = f"{told['scheme']}://{told['address']}"
        self.ca_content: str | None = None
        self.basic = None
        if username is not None:
            pair = f"{username}:{password or ''}".encode()
            self.basic = "Basic " + base64.b64encode(pair).decode("ascii")
        self.opener = urllib.request.OpenerDirector()

    def all_of(self, references: Sequence[str]) -> None:
        """Ask for the registry itself, then for each image."""
        # The node talks to its own registry directly: what a proxy would answer proves nothing.
        handlers: list = [urllib.request.ProxyHandler({}), _NoRedirect()]
        if self.told["scheme"] == "https":
            handlers.append(urllib.request.HTTPSHandler(context=self._context()))
        self.opener = urllib.request.build_opener(*handlers)
        status, _headers, _body = self._with_login("/v2/")
        if status == 401:
            raise _Trouble("login_refused" if self.basic else "login_needed", "HTTP 401")
        if status == 403:
            raise _Trouble("forbidden", "HTTP 403")
        if status != 200:
            raise _Trouble("error", f"HTTP {status} for /v2/")
        for word in references:
            wanted = images.reference(word)
            if wanted is None or wanted.registry != self.told["address"]:
                self.told["images"].append(_not_asked(word, "it is no image of this registry"))
                continue
            path = f"/v2/{wanted.repository}/manifests/{wanted.digest or wanted.tag}"
            status, headers, body = self._with_login(path)
            header = headers.get("Docker-Content-Digest")
            answer = images.read_manifest(status, body, header, wanted)
            self.told["images"].append({"reference": word, **answer})
        self.told.update(state="ok", problem=None)

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        for path in self.ca_files:
            try:
                context.load_verify_locations(path)
            except (OSError, ValueError) as exc:  # ssl.SSLError is an OSError
                raise _Trouble("ca_file", f"{path}: {exc}") from None
        if self.ca_content:
            try:
                context.load_verify_locations(cadata=self.ca_content)
            except (OSError, ValueError) as exc:
                raise _Trouble("ca_file", str(exc)) from None
        return context

    def _with_login(self, path: str) -> tuple[int, Message, bytes]:
        answer = self._get(self.base + path)
        if answer[0] != 401:
            self.told["login"] = self.told["login"] or "none"
            return answer
        challenge = str(answer[1].get("WWW-Authenticate") or "")
        self.told["login"] = "bearer" if challenge.lower().startswith("bearer") else "basic"
        if self.told["login"] == "bearer":
            token = self._token(challenge)
            return self._get(self.base + path, f"Bearer {token}") if token else answer
        return self._get(self.base + path, self.basic) if self.basic else answer

    def _token(self, challenge: str) -> str | None:
        """Return a token as the challenge says where to get it, None where none is given."""
        fields = dict(re.findall(r'(\w+)="([^"]*)"', challenge))
        realm = fields.get("realm", "")
        if not realm.startswith("https://") and not (self.told["scheme"] == "http" and realm.startswith("http://")):
            return None  # a password goes where it is encrypted, or where nothing is
        query = urllib.parse.urlencode({key: fields[key] for key in ("service", "scope") if key in fields})
        status, _headers, body = self._get(f"{realm}?{query}", self.basic)
        try:
            answer = json.loads(body) if status == 200 else None
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            return None
        return str(answer.get("token") or answer.get("access_token") or "") or None

    def _get(self, url: str, authorization: str | None = None) -> tuple[int, Message, bytes]:
        """Return status, headers and body; _Trouble where there is no answer in HTTP."""
        headers = {"Accept": ", ".join(images.MANIFEST_TYPES), "User-Agent": "accel.cluster"}
        if authorization:
            headers["Authorization"] = authorization
        try:
            with self.opener.open(urllib.request.Request(url, headers=headers), timeout=self.timeout) as answer:
                body = answer.read(MOST_BYTES + 1)
                if len(body) > MOST_BYTES:
                    raise _Trouble("error", f"the answer is longer than {MOST_BYTES >> 20} MiB")
                if answer.length:  # a read with a limit says nothing of what is missing
                    raise _Trouble("unreachable", f"the answer broke off {answer.length} bytes before its end")
                return answer.status, answer.headers, body
        except urllib.error.HTTPError as exc:
            body = exc.read(2000)
            if b"HTTPS server" in body or (300 <= exc.code < 400 and self._sent_to_tls(exc)):
                raise _Trouble("speaks_tls", f"HTTP {exc.code}: {excerpt(body.decode('utf-8', 'replace'))}") from None
            return exc.code, exc.headers, body
        except urllib.error.URLError as exc:
            reason = exc.reason if isinstance(exc.reason, Exception) else exc
            raise self._trouble(reason) from None
        except (OSError, http.client.HTTPException, ValueError) as exc:
            raise self._trouble(exc) from None

    def _sent_to_tls(self, answer: urllib.error.HTTPError) -> bool:
        return self.told["scheme"] == "http" and str(answer.headers.get("Location") or "").startswith("https:")

    def _trouble(self, reason: Exception) -> _Trouble:
        words = excerpt(str(reason) or type(reason).__name__, limit=300)
        if isinstance(reason, ssl.SSLCertVerificationError):
            number = reason.verify_code
            words = reason.verify_message or words
            return _Trouble(_CERTIFICATES.get(number, "ca_foreign" if number in _FOREIGN else "tls"), words)
        if isinstance(reason, ssl.SSLError):
            return _Trouble("plain_http" if reason.reason in _PLAIN else "tls", words)
        if isinstance(reason, (http.client.HTTPException, ConnectionResetError)) and self._speaks_tls():
            return _Trouble("speaks_tls", words)
        if isinstance(reason, (OSError, http.client.HTTPException)):
            return _Trouble("unreachable", words)
        return _Trouble("error", words)

    def _speaks_tls(self) -> bool:
        """Tell whether a server that broke off a plain request answers one in TLS."""
        if self.told["scheme"] != "http":
            return False
        host, port = images.split_address(self.told["address"], "80")
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # nothing is believed, or sent
        try:
            plain = socket.create_connection((host, int(port)), self.timeout)
            with plain, context.wrap_socket(plain, server_hostname=host):
                return True
        except (OSError, ValueError):
            return False
