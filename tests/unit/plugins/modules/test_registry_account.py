# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A password file with one account: written once, and again where it is another, or where there are more."""

from __future__ import annotations

import json

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.accel.cluster.plugins.modules import registry_account

# Answers as htpasswd does, but for the hash.
HTPASSWD = """#!/bin/sh
read -r password
case $1 in
    -n) echo "$6:\\$2y\\$0$5\\$$(printf %s "$password" | sha256sum | cut -c 1-53)"; echo ;;
    -v) grep -q "^$4:.*\\$$(printf %s "$password" | sha256sum | cut -c 1-53)$" "$3" ;;
esac
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    program = tmp_path / "bin/htpasswd"
    program.parent.mkdir()
    program.write_text(HTPASSWD)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    (tmp_path / "etc").mkdir()
    return tmp_path / "etc/pull.htpasswd"


def run(capsys, file, **options) -> dict:
    options = {"path": str(file), "username": "node", "password": "sixteen-letters-x", "mode": "0640", **options}
    with patch_module_args(options), pytest.raises(SystemExit):
        registry_account.main()
    return json.loads(capsys.readouterr().out)


def test_it_is_written_once(capsys, file):
    assert run(capsys, file)["changed"]
    (line,) = file.read_text().splitlines()
    assert line.startswith("node:$2y$05$") and "sixteen" not in line
    assert file.stat().st_mode & 0o777 == 0o640
    told = run(capsys, file)
    assert not told["changed"] and "sixteen" not in json.dumps(told)
    assert file.read_text().splitlines() == [line]
    assert [one.name for one in file.parent.iterdir()] == [file.name]


@pytest.mark.parametrize("other", [{"password": "another-password-y"}, {"username": "node2"}, {"cost": 6}])
def test_another_account_takes_its_place(capsys, file, other):
    run(capsys, file)
    before = file.read_text()
    assert run(capsys, file, _ansible_check_mode=True, **other)["changed"]
    assert file.read_text() == before
    assert run(capsys, file, **other)["changed"] and not run(capsys, file, **other)["changed"]
    assert len(file.read_text().splitlines()) == 1


def test_an_account_that_somebody_added_goes(capsys, file):
    run(capsys, file)
    file.write_text(file.read_text() + "guest:$2y$05$x\n")
    assert run(capsys, file)["changed"]
    assert "guest" not in file.read_text()


def test_the_mode_is_put_right(capsys, file):
    run(capsys, file)
    file.chmod(0o644)
    assert run(capsys, file)["changed"] and file.stat().st_mode & 0o777 == 0o640


def test_a_program_that_fails_is_named(capsys, file, tmp_path):
    (tmp_path / "bin/htpasswd").write_text("#!/bin/sh\ncat >/dev/null\necho no entropy >&2\nexit 3\n")
    told = run(capsys, file)
    assert told["failed"] and "htpasswd ended with 3: no entropy" in told["msg"]
    assert not file.exists()
