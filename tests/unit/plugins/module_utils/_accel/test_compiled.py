# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the code of a module comes from on a host: an archive of sources, and what the agent compiled beside it."""

from __future__ import annotations

import json
import os
import py_compile
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from ansible_collections.accel.cluster.plugins.module_utils import _accel

HASHED = py_compile.PycInvalidationMode.CHECKED_HASH
WORD = "def say():\n    return 'from the archive'\n"
SOURCES = {"word.py": WORD, "vendors/__init__.py": "", "vendors/one.py": "from ..word import say\n"}
# Prints what was compiled on the way, where the function's code says it is from, and what it returns.
ASK = """
import json, sys
compiled = []
def note(event, arguments):
    if event == "compile" and arguments[0] and b"from the archive" in bytes(arguments[0]):
        compiled.append(str(arguments[1]))
sys.addaudithook(note)
sys.path.insert(0, sys.argv[1])
from collection._accel.vendors import one
print(json.dumps({"compiled": compiled, "file": one.say.__code__.co_filename, "said": one.say(),
                  "place": one.__file__}))
"""


@pytest.fixture
def host(tmp_path):
    """Return what asks the archive with an agent of some sources, and the place of the agent."""
    home = tmp_path / "agent/_accel"
    archive = tmp_path / "module.zip"
    package = Path(_accel.__file__).read_text(encoding="utf-8").replace(_accel.HOME, str(home))
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("collection/__init__.py", "")
        file.writestr("collection/_accel/__init__.py", package)
        for name, text in SOURCES.items():
            file.writestr(f"collection/_accel/{name}", text)

    def install(text: str, mode=HASHED) -> Path:
        home.mkdir(parents=True)
        source = home / "word.py"
        source.write_text(text, encoding="utf-8")
        return Path(py_compile.compile(str(source), doraise=True, invalidation_mode=mode))

    def ask() -> dict:
        done = subprocess.run(
            [sys.executable, "-I", "-c", ASK, str(archive)], capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    return install, ask, home


def test_the_agents_compiled_code_is_taken_where_it_is_the_same(host):
    install, ask, home = host
    install(WORD)
    told = ask()
    assert told["said"] == "from the archive"
    assert told["file"] == str(home / "word.py")
    assert told["compiled"] == []


def test_without_an_agent_a_source_is_compiled_once(host):
    _install, ask, _home = host
    told = ask()
    assert told["said"] == "from the archive"
    assert len(told["compiled"]) == 1
    assert told["place"].endswith("module.zip/collection/_accel/vendors/one.py")


def cut_off(compiled: Path) -> None:
    """Leave the header and a part of the code."""
    compiled.write_bytes(compiled.read_bytes()[:40])


def of_another_python(compiled: Path) -> None:
    """Write another version of the bytecode into the header."""
    compiled.write_bytes(b"\x00\x01" + compiled.read_bytes()[2:])


def of_another_user(compiled: Path) -> None:
    """Give the file to a user whose code nobody else should run."""
    if os.geteuid():
        pytest.skip("only root can give a file away")
    os.chown(compiled, 65534, 65534)


def empty(compiled: Path) -> None:
    """Leave nothing of the file."""
    compiled.write_bytes(b"")


@pytest.mark.parametrize("damage", [cut_off, of_another_python, of_another_user, empty, Path.unlink])
def test_compiled_code_that_cannot_be_read_is_not_taken(host, damage):
    install, ask, _home = host
    damage(install(WORD))
    told = ask()
    assert told["said"] == "from the archive"
    assert len(told["compiled"]) == 1


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        (WORD.replace("archive", "old release"), HASHED),
        # A time says nothing about the text in the archive.
        (WORD.replace("archive", "old release"), py_compile.PycInvalidationMode.TIMESTAMP),
        (WORD, py_compile.PycInvalidationMode.TIMESTAMP),
    ],
)
def test_compiled_code_of_another_release_is_not_taken(host, text, mode):
    install, ask, _home = host
    install(text, mode)
    told = ask()
    assert told["said"] == "from the archive"
    assert len(told["compiled"]) == 1
