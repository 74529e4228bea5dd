# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Which names say "secret", and which texts are one whatever their name is.

Judging by name errs on the side of refusing: what is no secret can be given another name, a secret
that was committed can't be taken back.
"""

from __future__ import annotations

import difflib
import re

_WORDS = {
    "community",
    "credential",
    "credentials",
    "pass",
    "passphrase",
    "passwd",
    "password",
    "passwords",
    "psk",
    "pw",
    "pwd",
    "secret",
    "secrets",
    "token",
    "tokens",
}
# "key" alone names many things; with one of these before it, it is a secret.
_KEY_KINDS = {
    "access",
    "account",
    "api",
    "auth",
    "deploy",
    "encryption",
    "host",
    "hmac",
    "jwt",
    "license",
    "master",
    "munge",
    "private",
    "secret",
    "service",
    "session",
    "shared",
    "signing",
    "ssh",
    "ssl",
    "tls",
    "wireguard",
}
_JOINED = {
    "accesskey": "access_key",
    "apikey": "api_key",
    "authtoken": "auth_token",
    "mungekey": "munge_key",
    "privatekey": "private_key",
    "secretkey": "secret_key",
}
# A last word that makes the name speak about a secret instead of being one.
_ABOUT = {
    "age",
    "algorithm",
    "allowed",
    "authentication",
    "backend",
    "budget",
    "checksum",
    "class",
    "comment",
    "count",
    "days",
    "description",
    "dest",
    "dir",
    "directory",
    "enabled",
    "endpoint",
    "expiry",
    "file",
    "files",
    "fingerprint",
    "format",
    "group",
    "header",
    "host",
    "hours",
    "interval",
    "label",
    "length",
    "lifetime",
    "limit",
    "max",
    "method",
    "min",
    "minutes",
    "mode",
    "mount",
    "name",
    "names",
    "owner",
    "path",
    "paths",
    "policy",
    "port",
    "prefix",
    "prompt",
    "provider",
    "ref",
    "required",
    "rotation",
    "rounds",
    "seconds",
    "size",
    "src",
    "store",
    "suffix",
    "timeout",
    "ttl",
    "type",
    "uri",
    "url",
    "user",
    "username",
    "variable",
    "version",
}
# Chinese joins words without a blank, and says what a name is about at its end: 密码文件 is a file.
_CHINESE = ("密码", "口令", "密钥", "秘钥", "私钥", "令牌", "凭证", "凭据")
_CHINESE_ABOUT = (
    *("上限", "个数", "位置", "公钥", "名称", "周期", "天数", "期限", "数量", "文件", "有效期", "策略", "类型", "路径"),
    *("目录", "说明", "长度", "指纹", "格式", "算法"),
)
# In an inference cluster most "tokens" are counted, not kept.
_COUNTED = {"token", "tokens"}

_TEXTS = (
    re.compile(r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"),
    re.compile(r"\b[a-z][a-z0-9+.-]*://[^/\s:@{}]*:(?!\{\{)[^/\s@{}]+@"),  # user:password@ in a URL
    re.compile(r"(?:^|\s)--?(?:password|passwd|passphrase|secret|token|api-?key)[= ](?!\{\{|-|\s)\S+", re.IGNORECASE),
    re.compile(r"\b(?:gh[pousr]_|github_pat_|glpat-|hf_|nvapi-|xox[abprs]-)[A-Za-z0-9_-]{16,}"),
    re.compile(r"\bAKIA[0-9A-Z]{16}\b"),
    re.compile(r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\."),  # JSON Web Token
    re.compile(r"^\$(?:1|2[aby]|5|6|7|y|gy|argon2[a-z]*)\$\S{8,}"),  # crypt(3) password hash
)


def words(name: str) -> list[str]:
    """Return the lower-case words of ``snake_case``, ``kebab-case`` and ``camelCase`` names."""
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", str(name))
    found = [word for word in re.split(r"[^a-z0-9]+", spaced.lower()) if word]
    return [part for word in found for part in _JOINED.get(word, word).split("_")]


def is_about(name: str) -> bool:
    """Tell whether a name speaks about a secret (its file, its length) instead of being one."""
    parts = words(name)
    if str(name).endswith(_CHINESE_ABOUT):
        return True
    return bool(parts) and (parts[-1] in _ABOUT or "public" in parts)


def is_secret_name(name: str) -> bool:
    """Tell whether a variable of this name should hold a secret; misspelt ones (pasword) too."""
    parts = words(name)
    if is_about(name):
        return False
    if any(word in str(name) for word in _CHINESE):
        return True
    if any(word in _WORDS for word in parts):
        return True
    if any(word == "key" and before in _KEY_KINDS for before, word in zip(parts, parts[1:])):
        return True
    return any(
        len(word) > 5 and difflib.SequenceMatcher(None, word, wanted).ratio() >= 0.85
        for word in parts
        for wanted in ("password", "secret")
    )


def is_counted_name(name: str) -> bool:
    """Tell whether a secret name may as well count something (max_tokens), so that a number is no secret."""
    parts = words(name)
    return any(word in _COUNTED for word in parts) and not any(word in _WORDS - _COUNTED for word in parts)


def is_open_value(name: str, text: str) -> bool:
    """Tell whether a literal value under a secret name is none: the path of a key's file, or a public key."""
    key = words(name)[-1:] == ["key"] or str(name).endswith(("密钥", "秘钥", "私钥"))
    return key and text.startswith(("/", "~/", "ssh-", "ecdsa-", "sk-ssh-"))


def holds_secret(text: str) -> bool:
    """Tell whether a text is or contains a secret, whatever the name of its variable."""
    return any(pattern.search(text) for pattern in _TEXTS)
