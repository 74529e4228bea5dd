# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module as a task sees it: the program is put in its place once, compiled so that modules can take it."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.accel.cluster.plugins.modules import accelctl


@pytest.fixture
def install(tmp_path, capsys):
    """Return a function that runs the module once."""

    def once(check=False):
        arguments = {
            "path": str(tmp_path / "accel"),
            "program": str(tmp_path / "accelctl"),
            "_ansible_check_mode": check,
        }
        with patch_module_args(arguments), pytest.raises(SystemExit) as ended:
            accelctl.main()
        assert not ended.value.code
        return json.loads(capsys.readouterr().out)

    return once


@pytest.fixture
def judge(tmp_path):
    """Return the place of one of the sources, and of its compiled file."""
    source = tmp_path / "accel/_accel/judge.py"
    return source, Path(importlib.util.cache_from_source(str(source)))


def test_the_program_is_installed_once_and_runs(install, tmp_path):
    assert install(check=True)["changed"] is True
    assert not (tmp_path / "accel").exists()
    assert install()["changed"] is True
    assert install()["changed"] is False
    done = subprocess.run(
        [tmp_path / "accelctl", "explain", "device.count"], capture_output=True, text=True, check=True
    )
    assert "device.count" in done.stdout


def test_compiled_files_hold_the_hash_of_their_source(install, judge):
    install()
    source, compiled = judge
    header = compiled.read_bytes()[:16]
    assert header[4] & 1
    assert header[8:] == importlib.util.source_hash(source.read_bytes())


def test_code_of_an_old_release_is_replaced_and_taken_away(install, judge, tmp_path):
    install()
    source, compiled = judge
    text, code = source.read_text(), compiled.read_bytes()
    source.write_text(text + "\n# of an old release\n")
    old = tmp_path / "accel/_accel/old.py"
    old.write_text("")
    assert install()["files"] == ["_accel/judge.py", "_accel/old.py"]
    assert source.read_text() == text
    assert compiled.read_bytes() == code
    assert not old.exists()


@pytest.mark.parametrize("damage", [Path.unlink, lambda compiled: compiled.write_bytes(b"\0" * 16)])
def test_what_is_not_compiled_for_this_python_is_compiled_again(install, judge, damage):
    install()
    _source, compiled = judge
    code = compiled.read_bytes()
    damage(compiled)
    assert install(check=True)["files"] == ["_accel/judge.py"]
    assert install()["files"] == ["_accel/judge.py"]
    assert compiled.read_bytes() == code
    assert install()["changed"] is False
