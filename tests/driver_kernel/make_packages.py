# This file is part of the Ansible collection accel.cluster.
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make small real packages on a test host, and a repository of them: kernels, a module for DKMS, a fabric manager.

    make_packages.py FOLDER SOURCES_FILE      prints "made" or "there"

The kernels cannot boot, but their packages do what Debian's do: files in /boot and /lib/modules, and the hooks of
/etc/kernel, by which DKMS builds modules. The module is compiled against the headers of the kernel that is declared.
"""

from __future__ import annotations

import gzip
import hashlib
import pathlib
import shutil
import subprocess
import sys

VERSION = "535.261.03"
KERNEL, NEWER = "6.1.0-50-amd64", "6.1.0-99-amd64"
IMAGE_VERSION, NEWER_VERSION = "6.1.176-1+rehearsal", "6.1.999-1+rehearsal"

HOOK = """#!/bin/sh
set -e
[ ! -d /etc/kernel/{when}.d ] || DEB_MAINT_PARAMS="$*" run-parts --exit-on-error \\
    --arg={kernel} --arg=/boot/vmlinuz-{kernel} /etc/kernel/{when}.d
"""
DKMS_CONF = f"""PACKAGE_NAME="nvidia-current"
PACKAGE_VERSION="{VERSION}"
AUTOINSTALL=yes
MAKE[0]="make KERNELDIR=/lib/modules/${{kernelver}}/build"
CLEAN="true"
BUILT_MODULE_NAME[0]="nvidia"
DEST_MODULE_NAME[0]="nvidia-current"
DEST_MODULE_LOCATION[0]="/updates/dkms"
"""
MODULE = f"""#include <linux/module.h>
MODULE_DESCRIPTION("Stands for a driver in rehearsals");
MODULE_LICENSE("GPL");
MODULE_VERSION("{VERSION}");
"""
MAKEFILE = "obj-m := nvidia.o\n\nall:\n\t$(MAKE) -C $(KERNELDIR) M=$(CURDIR) modules\n"
DKMS_POSTINST = f"""#!/bin/sh
set -e
[ "$1" != configure ] || /usr/lib/dkms/common.postinst nvidia-current {VERSION} "" "" "$2"
"""
DKMS_PRERM = f"""#!/bin/sh
set -e
[ ! -e /var/lib/dkms/nvidia-current/{VERSION} ] || dkms remove -m nvidia-current -v {VERSION} --all
"""
MANAGER = f"#!/bin/sh\necho 'Fabric Manager version is : {VERSION}'\n"
SERVICE = """[Unit]
Description=Stands for the fabric manager in rehearsals
[Service]
ExecStart=/bin/sleep infinity
[Install]
WantedBy=multi-user.target
"""


def image(kernel: str) -> dict[str, str]:
    return {
        f"boot/vmlinuz-{kernel}": "no kernel\n",
        f"boot/config-{kernel}": "# none\n",
        f"lib/modules/{kernel}/modules.order": "",
        f"lib/modules/{kernel}/modules.builtin": "",
        "DEBIAN/postinst": HOOK.format(when="postinst", kernel=kernel),
        "DEBIAN/prerm": HOOK.format(when="prerm", kernel=kernel),
    }


PACKAGES = {
    (f"linux-image-{KERNEL}", IMAGE_VERSION, ""): image(KERNEL),
    (f"linux-image-{NEWER}", NEWER_VERSION, ""): image(NEWER),
    ("linux-image-amd64", IMAGE_VERSION, f"linux-image-{KERNEL} (= {IMAGE_VERSION})"): {},
    ("linux-image-amd64", NEWER_VERSION, f"linux-image-{NEWER} (= {NEWER_VERSION})"): {},
    ("nvidia-rehearsal-dkms", f"{VERSION}-1", "dkms"): {
        f"usr/src/nvidia-current-{VERSION}/dkms.conf": DKMS_CONF,
        f"usr/src/nvidia-current-{VERSION}/nvidia.c": MODULE,
        f"usr/src/nvidia-current-{VERSION}/Makefile": MAKEFILE,
        "DEBIAN/postinst": DKMS_POSTINST,
        "DEBIAN/prerm": DKMS_PRERM,
    },
    ("nvidia-fabricmanager-535", f"{VERSION}-1", ""): {
        "usr/bin/nv-fabricmanager": MANAGER,
        "lib/systemd/system/nvidia-fabricmanager.service": SERVICE,
        "DEBIAN/prerm": "#!/bin/sh\nsystemctl disable --now nvidia-fabricmanager\n",
    },
}


def make(folder: pathlib.Path, name: str, version: str, depends: str, files: dict[str, str]) -> str:
    """Make one package and return its stanza of the index."""
    tree = folder / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    control = f"Package: {name}\nVersion: {version}\nArchitecture: amd64\nMaintainer: rehearsal <root@localhost>\n"
    control += f"Depends: {depends}\n" if depends else ""
    control += "Description: stands for a package in rehearsals\n"
    for path, text in {"DEBIAN/control": control, **files}.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text, encoding="utf-8")
        script = path.startswith(("DEBIAN/p", "usr/bin"))
        (tree / path).chmod(0o755 if script else 0o644)
    deb = folder / f"{name}_{version}_amd64.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "--build", str(tree), str(deb)], check=True, stdout=2)
    shutil.rmtree(tree)
    data = deb.read_bytes()
    return f"{control}Filename: ./{deb.name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n"


def main(folder: pathlib.Path, sources: pathlib.Path) -> str:
    made_from = hashlib.sha256(pathlib.Path(__file__).read_bytes()).hexdigest()
    stamp = folder / "made-from"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == made_from:
        return "there"
    folder.mkdir(parents=True, exist_ok=True)
    index = [make(folder, name, version, depends, files) for (name, version, depends), files in PACKAGES.items()]
    (folder / "Packages.gz").write_bytes(gzip.compress("\n".join(index).encode()))
    sources.write_text(f"Types: deb\nURIs: file:{folder}\nSuites: ./\nTrusted: yes\n", encoding="utf-8")
    # What else is configured was read before, or is the role's to read.
    only = ["-o", f"Dir::Etc::sourcelist={sources}", "-o", "Dir::Etc::sourceparts=/dev/null"]
    subprocess.run(["apt-get", "-q", "update", "-o", "APT::Get::List-Cleanup=0", *only], check=True, stdout=2)
    stamp.write_text(made_from, encoding="utf-8")
    return "made"


if __name__ == "__main__":
    print(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
