# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make a small image and push it to a registry; runs on the host that may push: `python3 - < tiny_image.py`.

    tiny_image.py https://127.0.0.1:5001 train/tiny TAG PASSWORD WORD MEBIBYTES

WORD makes the image another one; MEBIBYTES are bytes that can't be compressed. Prints the digest.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import random
import ssl
import sys
import tarfile
import urllib.request

BUSYBOX = "/bin/busybox"


def layer(word: str, mebibytes: int) -> bytes:
    """Return a layer, the same for the same word and size: a shell, a file with the word, bytes."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name in ("bin", "dev", "etc", "proc", "sys", "tmp"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(folder)
        with open(BUSYBOX, "rb") as file:
            add(tar, "bin/busybox", file.read(), 0o755)
        for name in ("sh", "ls"):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
        add(tar, "etc/word", word.encode(), 0o644)
        add(tar, "etc/bytes", random.Random(word).randbytes(mebibytes << 20), 0o644)
    return out.getvalue()


def add(tar: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    """Add one file."""
    about = tarfile.TarInfo(name)
    about.size, about.mode = len(content), mode
    tar.addfile(about, io.BytesIO(content))


def digest(content: bytes) -> str:
    """Return the digest of bytes."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


class Registry:
    """A registry that takes pushes."""

    def __init__(self, base: str, login: str) -> None:
        """Remember where it is and who asks."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # on its own host
        self.base, self.login = base, "Basic " + base64.b64encode(login.encode()).decode()
        self.opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context))

    def ask(self, method: str, url: str, content: bytes = b"", kind: str = "application/octet-stream") -> str:
        """Return where the answer points to; HTTPError for one that is no success."""
        url = url if url.startswith("http") else self.base + url
        headers = {"Authorization": self.login, "Content-Type": kind}
        with self.opener.open(urllib.request.Request(url, content, headers, method=method), timeout=60) as answer:
            return answer.headers.get("Location", "")

    def blob(self, name: str, content: bytes) -> dict:
        """Push bytes; return how a manifest names them."""
        place = self.ask("POST", f"/v2/{name}/blobs/uploads/")
        self.ask("PUT", f"{place}{'&' if '?' in place else '?'}digest={digest(content)}", content)
        return {"digest": digest(content), "size": len(content)}

    def push(self, name: str, tag: str, content: bytes) -> str:
        """Push an image of one layer; return its digest."""
        kind = "application/vnd.oci.image"
        rootfs = {"type": "layers", "diff_ids": [digest(content)]}
        config = {"architecture": "amd64", "os": "linux", "config": {"Cmd": ["/bin/sh"]}, "rootfs": rootfs}
        body = {
            "schemaVersion": 2,
            "mediaType": f"{kind}.manifest.v1+json",
            "config": {"mediaType": f"{kind}.config.v1+json", **self.blob(name, json.dumps(config).encode())},
            "layers": [{"mediaType": f"{kind}.layer.v1.tar", **self.blob(name, content)}],
        }
        manifest = json.dumps(body).encode()
        self.ask("PUT", f"/v2/{name}/manifests/{tag}", manifest, f"{kind}.manifest.v1+json")
        return digest(manifest)


if __name__ == "__main__":
    _me, where, repository, mark, password, text, size = sys.argv
    print(Registry(where, f"builder:{password}").push(repository, mark, layer(text, int(size))))
