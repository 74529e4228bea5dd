# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file that others write too is merged, kept beside itself, and left as it is where anything is wrong."""

from __future__ import annotations

import json

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.accel.cluster.plugins.modules import merged_json

SITE = '{\n  "data-root": "/raid/docker",\n  "log-opts": {\n    "max-size": "10m"\n  }\n}\n'
VALUES = {"log-opts": {"max-file": "3"}, "features": {"cdi": True}}


def run(capsys, **options):
    with patch_module_args(options), pytest.raises(SystemExit) as ended:
        merged_json.main()
    return json.loads(capsys.readouterr().out), ended.value.code


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "daemon.json"
    path.write_text(SITE)
    path.chmod(0o600)
    return path


def test_it_is_merged_once_and_kept(capsys, file):
    told, code = run(capsys, path=str(file), values=VALUES)
    assert (code, told["changed"]) == (0, True)
    body = json.loads(file.read_text())
    assert body == {
        "data-root": "/raid/docker", "log-opts": {"max-size": "10m", "max-file": "3"}, "features": {"cdi": True}
    }  # fmt: skip
    assert file.stat().st_mode & 0o777 == 0o600, "the mode is its owner's affair"
    with open(told["backup_file"]) as backup:
        assert backup.read() == SITE == told["diff"]["before"]
    told, _code = run(capsys, path=str(file), values=VALUES)
    assert told["changed"] is False and "backup_file" not in told
    assert told["diff"]["before"] == told["diff"]["after"]


def test_what_is_there_already_is_not_written_again_however_it_is_laid_out(capsys, file):
    file.write_text('{"features":{"cdi":true},"log-opts":{"max-file":"3"}}')
    told, _code = run(capsys, path=str(file), values=VALUES)
    assert told["changed"] is False and file.read_text().startswith('{"features":{')
    file.write_text('{"features":{"cdi":1},"log-opts":{"max-file":"3"}}')
    assert run(capsys, path=str(file), values=VALUES)[0]["changed"] is True


def test_check_mode_shows_it_and_writes_nothing(capsys, file, tmp_path):
    told, _code = run(capsys, path=str(file), values=VALUES, _ansible_check_mode=True)
    assert told["changed"] is True and '"cdi": true' in told["diff"]["after"]
    assert file.read_text() == SITE and len(list(tmp_path.iterdir())) == 1


def test_a_file_that_is_not_there_is_made(capsys, tmp_path):
    path = tmp_path / "docker/daemon.json"
    told, code = run(capsys, path=str(path), values=VALUES, mode="0640")
    assert (code, told["changed"]) == (0, True) and json.loads(path.read_text()) == VALUES
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SITE.replace('docker",', 'docker"'), "line 3 column 3: Expecting ',' delimiter. It is left as it is"),
        (SITE.replace("log-opts", "data-root"), "line 3: the key 'data-root' stands there twice"),
        ("[]", "line 1: it is a list"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(capsys, file, text, words):
    file.write_text(text)
    told, code = run(capsys, path=str(file), values=VALUES)
    assert code == 1 and f"{file} {words}" in told["msg"]
    assert file.read_text() == text


def test_bytes_that_are_no_text_are_refused(capsys, file):
    file.write_bytes(b'{"a": "\xff"}')
    told, code = run(capsys, path=str(file), values=VALUES)
    assert code == 1 and "UTF-8" in told["msg"] and file.read_bytes() == b'{"a": "\xff"}'


def test_what_the_check_refuses_is_not_put_in_place(capsys, file, tmp_path):
    told, code = run(capsys, path=str(file), values=VALUES, validate="grep -q no-such-word %s")
    assert code == 1 and "ended with 1" in told["msg"]
    assert file.read_text() == SITE and [one.name for one in tmp_path.iterdir()] == ["daemon.json"]
    assert run(capsys, path=str(file), values=VALUES, validate="grep -q max-file %s")[1] == 0


def test_a_link_stays_a_link(capsys, file, tmp_path):
    link = tmp_path / "link.json"
    link.symlink_to(file)
    told, _code = run(capsys, path=str(link), values=VALUES, backup=False)
    assert link.is_symlink() and told["path"] == str(file) and "cdi" in file.read_text()
    assert "backup_file" not in told


def test_the_documentation_names_every_option_and_value():
    documented = yaml.safe_load(merged_json.DOCUMENTATION)["options"]
    assert set(documented) == set(merged_json.argument_spec())
    for name, option in merged_json.argument_spec().items():
        for key in ("type", "elements", "default", "choices", "required"):
            assert documented[name].get(key) == option.get(key), name
