# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This module util is PRIVATE to the collection: its names may change in any release.
"""Take this code compiled from where the agent put it, where that is the same code.

A module travels to a host as an archive of source texts, and Python compiles those anew on every run: that takes
longer than reading eight cards. The agent has the same sources on the host, compiled. Each compiled file holds the hash
of its source (PEP 552); where it is that of the text in the archive, the compiled code is taken, else the text is. The
agent itself and the controller import from files, which Python keeps compiled by itself.
"""

from __future__ import annotations

import importlib.util
import marshal
import os
import sys
import zipimport

# Where the agent is unless a site says otherwise (cluster_agent_dir); then modules compile, and are as right.
HOME = "/usr/local/lib/accel/_accel"
# A compiled file begins with the version of the bytecode, flags, and the hash (or a time, which is no source's hash).
HEADER = 16


class Archive(zipimport.zipimporter):
    """Import from an archive what lies below this package."""

    def __init__(self, path: str) -> None:
        if not path.startswith(__path__[0]):
            raise ImportError(f"{path} is not for this importer")
        super().__init__(path)

    def get_filename(self, fullname: str) -> str:
        """Return where a module lies. The importer above compiles the whole text for this answer, and then again."""
        name = self.prefix + fullname.rpartition(".")[2]
        return os.path.join(self.archive, f"{name}/__init__.py" if self.is_package(fullname) else f"{name}.py")

    def get_code(self, fullname: str):
        """Return the code of a module, from the agent's compiled files or by compiling the text."""
        return compiled(fullname, self.get_source(fullname)) or super().get_code(fullname)


def compiled(fullname: str, source: str | None):
    """Return the code that the agent compiled from exactly this source, None where there is none."""
    name = fullname[len(__name__) + 1 :].replace(".", "/")
    try:
        with open(importlib.util.cache_from_source(f"{HOME}/{name}.py"), "rb") as file:
            # Who runs this as root must not run what another user wrote.
            if os.fstat(file.fileno()).st_uid not in (0, os.geteuid()):
                return None
            data = file.read()
    except OSError:
        return None
    version, hashed = data[:4], data[8:HEADER]
    if not source or version != importlib.util.MAGIC_NUMBER or hashed != importlib.util.source_hash(source.encode()):
        return None
    try:
        return marshal.loads(data[HEADER:])
    except (EOFError, ValueError, TypeError):  # cut off
        return None


if isinstance(__spec__.loader, zipimport.zipimporter):
    sys.path_hooks.insert(0, Archive)
