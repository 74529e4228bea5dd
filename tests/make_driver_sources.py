# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make sources of drivers for tests: a signed apt repository, a folder of packages, installers (.run).

    python3 tests/make_driver_sources.py FOLDER

Packages have the names and versions that vendors give theirs and next to nothing in them; tools are those that vendors
use: dpkg-deb, apt-ftparchive, gpg, makeself. FOLDER holds repository/ (flat, signed with key.asc), directory/
(unsigned), no_index/, installers/, all.tar of these, key.asc, foreign.asc (a key that signed nothing), and
installers.json (name -> sha256).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

AMD = {
    "amdgpu-dkms": ("1:6.12.12.60401-2164967.22.04", "1:6.14.14.60402-2187269.22.04"),
    "amdgpu-dkms-firmware": ("1:6.12.12.60401-2164967.22.04", "1:6.14.14.60402-2187269.22.04"),
    "amd-smi-lib": ("25.4.2.60401-83~22.04", "25.5.1.60402-120~22.04"),
    "rccl": ("2.22.3.60401-83~22.04", "2.22.3.60402-120~22.04"),
    "rocm-core": ("6.4.1.60401-83~22.04", "6.4.2.60402-120~22.04"),
}
GAUDI = (
    "habanalabs-container-runtime",
    "habanalabs-dkms",
    "habanalabs-firmware",
    "habanalabs-firmware-tools",
    "habanalabs-graph",
    "habanalabs-qual",
    "habanalabs-rdma-core",
    "habanalabs-thunk",
)
GAUDI_VERSIONS = ("1.21.0-555", "1.22.0-740")
# What of a newer release asks for what of the same one, so that apt would upgrade them together.
DEPENDS = {"amd-smi-lib": "rocm-core", "rccl": "rocm-core", "habanalabs-graph": "habanalabs-thunk"}
# Its script fails for as long as this file is not there; what apt leaves then is half configured.
BROKEN, MENDED = "accel-broken", "/run/accel-mended"

# What an installer does: it says that it ran, and leaves a file that tells a version.
PAYLOAD = """\
#!/bin/sh
set -e
mkdir -p "$(dirname {target})" {root}
echo "{name} {version} $*" >> {root}/ran
{body}
"""
ROOT = "/usr/local/Ascend"
LEAVE = "printf 'package_version=0\\n{key}=%s\\n' {version} > {target}"
INSTALLERS = {
    "firmware": (f"{ROOT}/firmware/version.info", "Version", "7.7.0.6.236", LEAVE),
    "firmware-older": (f"{ROOT}/firmware/version.info", "Version", "7.5.0.1.129", LEAVE),
    "toolkit": (
        f"{ROOT}/ascend-toolkit/latest/x86_64-linux/ascend_toolkit_install.info",
        "version",
        "8.2.RC1",
        LEAVE,
    ),
    # Half done in one way each: a status, another version than the declared one, killed in the middle.
    "failing": ("/opt/accel-parts/failing", "version", "1.0", LEAVE + "\necho 'no such card' >&2\nexit 3"),
    "lying": ("/opt/accel-parts/lying", "version", "0.9", LEAVE),
    "endless": ("/opt/accel-parts/endless", "version", "1.0", LEAVE + "\nexec tail -f /dev/null"),
}


def run(*argv: str, **more) -> bytes:
    """Run a command; what it says is shown when it fails."""
    done = subprocess.run(argv, capture_output=True, check=False, **more)
    if done.returncode:
        sys.exit(f"{' '.join(argv)}: {done.returncode}: {done.stderr.decode()}{done.stdout.decode()}")
    return done.stdout


def deb(folder: Path, name: str, version: str, depends: str = "", postinst: str = "") -> None:
    """Make a package with one file in it."""
    with tempfile.TemporaryDirectory() as root:
        inside = Path(root)
        (inside / "DEBIAN").mkdir()
        (inside / "usr/share/doc" / name).mkdir(parents=True)
        (inside / "usr/share/doc" / name / "release").write_text(f"{version}\n")
        lines = [
            f"Package: {name}",
            f"Version: {version}",
            "Architecture: all",
            "Maintainer: tests <tests@example.org>",
            "Installed-Size: 1",
            *([f"Depends: {depends}"] if depends else []),
            f"Description: stands in for {name} in tests",
        ]
        (inside / "DEBIAN/control").write_text("\n".join(lines) + "\n")
        if postinst:
            (inside / "DEBIAN/postinst").write_text(postinst)
            (inside / "DEBIAN/postinst").chmod(0o755)
        inside.chmod(0o755)
        run("dpkg-deb", "--root-owner-group", "-Znone", "--build", root, str(folder))


def debs(folder: Path, packages: dict[str, tuple[str, ...]]) -> None:
    for name, versions in packages.items():
        for version in versions:
            other = DEPENDS.get(name)
            release = packages[other][versions.index(version)] if other else ""
            deb(folder, name, version, f"{other} (= {release})" if other else "")


def index(folder: Path) -> None:
    (folder / "Packages").write_bytes(run("apt-ftparchive", "packages", ".", cwd=folder))


def sign(folder: Path, home: str, who: str) -> None:
    """Write Release and InRelease of a flat repository."""
    release = run("apt-ftparchive", "-o", "APT::FTPArchive::Release::Origin=accel tests", "release", ".", cwd=folder)
    (folder / "Release").write_bytes(release)
    gpg(home, "--local-user", who, "--clearsign", "--output", str(folder / "InRelease"), str(folder / "Release"))


def gpg(home: str, *argv: str) -> bytes:
    return run("gpg", "--homedir", home, "--batch", "--yes", "--pinentry-mode", "loopback", "--passphrase", "", *argv)


def installer(folder: Path, name: str) -> str:
    """Make a .run; return its checksum."""
    target, key, version, body = INSTALLERS[name]
    values = {"target": target, "key": key, "version": version, "name": name, "root": ROOT}
    with tempfile.TemporaryDirectory() as root:
        script = Path(root, "install.sh")
        script.write_text(PAYLOAD.format(**values, body=body.format(**values)))
        script.chmod(0o755)
        path = folder / f"{name}.run"
        run("makeself", "--sha256", "--nox11", root, str(path), name, "./install.sh")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def make(out: Path) -> None:
    for name in ("repository", "directory", "no_index", "installers"):
        (out / name).mkdir(parents=True)
    gaudi = dict.fromkeys(GAUDI, GAUDI_VERSIONS)
    debs(out / "repository", AMD)
    deb(out / "repository", BROKEN, "1.0", postinst=f"#!/bin/sh\ntest -e {MENDED}\n")
    index(out / "repository")
    debs(out / "directory", gaudi)
    index(out / "directory")
    deb(out / "no_index", GAUDI[0], GAUDI_VERSIONS[0])
    # Paths of sockets are short: not below the checkout.
    with tempfile.TemporaryDirectory(prefix="accel-gpg-") as home:
        os.chmod(home, 0o700)
        for who, file in (("vendor@example.org", "key.asc"), ("foreign@example.org", "foreign.asc")):
            gpg(home, "--quick-generate-key", who, "ed25519", "sign", "never")
            (out / file).write_bytes(gpg(home, "--armor", "--export", who))
        sign(out / "repository", home, "vendor@example.org")
        subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=False)
    sums = {name: installer(out / "installers", name) for name in INSTALLERS}
    (out / "installers.json").write_text(json.dumps(sums))
    with tarfile.open(out / "all.tar", "w") as archive:
        for name in ("repository", "directory", "no_index", "installers"):
            archive.add(out / name, name)


if __name__ == "__main__":
    wanted = Path(sys.argv[1]).resolve()
    # Whole or not at all: who was killed in the middle begins anew.
    if not (wanted / "installers.json").exists():
        shutil.rmtree(wanted, ignore_errors=True)
        wanted.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=wanted.parent) as half:
            os.chmod(half, 0o755)
            make(Path(half) / "made")
            os.rename(Path(half) / "made", wanted)
        print("made")
