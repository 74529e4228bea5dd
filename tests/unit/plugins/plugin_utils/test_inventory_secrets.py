# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets in clear: found in every notation, accepted from vault, lookup and variables made of these, never shown."""

# ruff: noqa: E501

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import confidential
from ansible_collections.accel.cluster.plugins.plugin_utils import inventory_files
from ansible_collections.accel.cluster.plugins.plugin_utils.inventory_secrets import secrets_in_clear

CLEAR = "correct-horse-battery"
# Put together here, so that no scanner takes this file for a leak.
PEM_BEGIN = "-----BEGIN " + "OPENSSH PRIVATE KEY-----"
PEM_END = "-----END " + "OPENSSH PRIVATE KEY-----"
VAULT = "!vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  6162636465\n"


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hosts.yml").write_text("cluster_hosts:\n  hosts:\n    ctl-01:\n", encoding="utf-8")
    return tmp_path


def found(folder: Path, files: dict[str, str], *sources: str) -> list[str]:
    """Write the files, read them as an inventory, return place and problem of each complaint."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    read = inventory_files.read([str(folder / source) for source in sources or ("hosts.yml",)])
    complaints = secrets_in_clear(read)
    told = "\n".join(str(one.as_dict()) for one in complaints)
    for secret in (CLEAR, "hunter2", "4711"):
        assert secret not in told, "a complaint shows the secret"
    assert all(
        one.accepted == "!vault (ansible-vault encrypt_string), a lookup, or a variable that is one of these"
        for one in complaints
    )
    return [f"{one.place}: {one.problem}" for one in complaints]


def in_vars(folder: Path, text: str) -> list[str]:
    return [one.removeprefix("group_vars/all/site.yml:") for one in found(folder, {"group_vars/all/site.yml": text})]


# Names


@pytest.mark.parametrize(
    "name",
    [
        "database_password", "databasePassword", "DATABASE_PASSWORD", "db_passwd", "db_pwd", "ansible_become_pass",
        "ansible_password", "key_passphrase", "client_secret", "registry_token", "api_key", "apikey", "tls_private_key",
        "munge_key", "snmp_community", "grafana_admin_password", "storage_credentials", "wifi_psk", "jwt_signing_key",
        "database_pasword", "database_passwort", "session_secrets", "password_hash", "secret_id",
        "数据库密码", "db_密码", "登录口令", "接口密钥", "访问令牌", "云凭证",
    ],
)  # fmt: skip
def test_literal_under_a_secret_name(folder, name):
    assert in_vars(folder, f"{name}: {CLEAR}\n") == [f"1: {name} is a secret in clear"]


@pytest.mark.parametrize(
    "line",
    [
        "password_file: /etc/site/password",
        "token_url: https://sso.example.org/token",
        "secret_path: /run/secrets/db",
        "password_length: 24",
        "password_policy: strict",
        "tls_private_key: /etc/pki/site.key",
        "ssh_private_key_file: ~/.ssh/id_ed25519",
        "ssh_public_key: ssh-ed25519 AAAAC3Nz operator",
        "deploy_ssh_key: ssh-ed25519 AAAAC3Nz operator",
        "password_authentication: false",
        "require_password: yes",
        "database_password: ''",
        "database_password:",
        "max_tokens: 4096",
        "inference_tokens_per_second: 12.5",
        "secret_name: regcred",
        "bypass: yes-please",
        "compass_heading: north",
        "passport_office: none-here",
        "community_edition_url: https://example.org",
        "cluster_secure_logging: true",
        "monkey: banana",
        "keyboard: de",
        "密码文件: /etc/site/password",
        "密码长度: 24",
        "口令策略: strict",
        "主机公钥: ssh-ed25519 AAAAC3Nz operator",
        "主机密钥: /etc/pki/site.key",
    ],
)
def test_what_only_speaks_about_a_secret(folder, line):
    assert in_vars(folder, f"{line}\n") == []


def test_number_is_a_password_all_the_same(folder):
    assert in_vars(folder, "door_password: 4711\n") == ["1: door_password is a secret in clear"]


# Accepted, and what only looks accepted


@pytest.mark.parametrize(
    "value",
    [
        VAULT,
        "\"{{ lookup('ansible.builtin.env', 'SITE_PASSWORD') }}\"",
        "\"{{ lookup('community.hashi_vault.hashi_vault', 'secret/data/db').password }}\"",
        "\"{{ query('ansible.builtin.file', '/run/keys/db') | first | trim }}\"",
        '"{{ vault_database_password }}"',
        '"{{ vault_passwords[inventory_hostname] }}"',
        "\"{{ hostvars['ctl-01'].vault_password | b64encode }}\"",
        '"{{ vault_password | default(omit) }}"',
        "\"{{ vault_password | default('', true) }}\"",
        '"Bearer {{ vault_token }}"',
        "\"{{ vault_user ~ ':' ~ vault_password }}\"",
        '"{{ vault_a if site_blue else vault_b }}"',
        '"$ANSIBLE_VAULT;1.1;AES256"',
    ],
)
def test_accepted(folder, value):
    assert in_vars(folder, f"database_password: {value}\n") == []


@pytest.mark.parametrize(
    "value",
    [
        "\"{{ 'hunter2' }}\"",
        "\"{{ vault_password | default('hunter2') }}\"",
        "\"{{ lookup('ansible.builtin.env', 'SITE_PASSWORD') or 'hunter2' }}\"",
        "\"{{ lookup('ansible.builtin.env', 'SITE_PASSWORD', default='hunter2') }}\"",
        "\"{{ vault_password if site_blue else 'hunter2' }}\"",
        '"hunter2{{ vault_suffix }}"',
        "\"{{ 'hunter' ~ 2 }}\"",
        "\"{{ 'aHVudGVyMg' | b64decode }}\"",
        "\"{{ ['hunter2'] | first }}\"",
        '"{% if site_blue %}hunter2{% endif %}"',
        "\"{% set x = 'hunter2' %}{{ x }}\"",
        "\"{{ vault_passwords.get('db', 'hunter2') }}\"",
        "\"{{ site_blue | ternary(vault_password, 'hunter2') }}\"",
        '"{{ 4711 }}"',
    ],
)
def test_literal_inside_a_template(folder, value):
    assert in_vars(folder, f"database_password: {value}\n") == [
        "1: database_password is a secret of which a part stands in clear in its template"
    ]


def test_template_that_is_none(folder):
    assert in_vars(folder, 'database_password: "{{ hunter2"\n') == [
        "1: database_password is a secret made by a template that can't be read"
    ]


def test_unsafe_text_is_a_literal(folder):
    assert in_vars(folder, 'database_password: !unsafe "{{ vault_password }}hunter2"\n') == [
        "1: database_password is a secret in clear"
    ]


def test_tag_of_vault_alone_encrypts_nothing(folder):
    assert in_vars(folder, f"database_password: !vault {CLEAR}\n") == ["1: database_password is a secret in clear"]
    assert in_vars(folder, f'database_password: "{{{{ door }}}}"\ndoor: !vault {CLEAR}\n') == [
        "1: database_password is a secret that takes its value from door, which is in clear (group_vars/all/site.yml:2)"
    ]


def test_name_of_the_host_is_no_secret(folder):
    assert in_vars(folder, 'database_password: "{{ inventory_hostname }}"\n') == [
        "1: database_password is a secret made of inventory_hostname, which everybody knows"
    ]


# Variables that lead to it


def test_variable_that_is_in_clear(folder):
    assert in_vars(folder, f'database_password: "{{{{ site_door }}}}"\nsite_door: {CLEAR}\n') == [
        "1: database_password is a secret that takes its value from site_door, which is in clear (group_vars/all/site.yml:2)"
    ]


def test_chain_of_variables_over_files(folder):
    files = {
        "group_vars/all/a.yml": 'database_password: "{{ one }}"\n',
        "group_vars/cluster_hosts.yml": 'one: "{{ two }}"\n',
        "host_vars/ctl-01/c.yml": f"two: {CLEAR}\n",
    }
    assert found(folder, files) == [
        "group_vars/all/a.yml:1: database_password is a secret that takes its value from one, which is in clear (group_vars/cluster_hosts.yml:1)"
    ]


def test_lookup_of_a_variable_is_that_variable(folder):
    assert in_vars(
        folder, f"database_password: \"{{{{ lookup('ansible.builtin.vars', 'door') }}}}\"\ndoor: {CLEAR}\n"
    ) == [
        "1: database_password is a secret that takes its value from door, which is in clear (group_vars/all/site.yml:2)"
    ]


@pytest.mark.parametrize("reference", ["site.door", "site['door']", "hostvars['ctl-01'].site.door"])
def test_variable_inside_a_mapping(folder, reference):
    text = f'database_password: "{{{{ {reference} }}}}"\nsite:\n  door: {CLEAR}\n  window: open\n'
    lines = in_vars(folder, text)
    assert len(lines) == 1
    assert lines[0].endswith("which is in clear (group_vars/all/site.yml:2)")


def test_variable_that_is_made_of_vault(folder):
    assert in_vars(folder, f'database_password: "{{{{ door }}}}"\ndoor: {VAULT}') == []
    assert in_vars(folder, "database_password: \"{{ door }}\"\ndoor: \"{{ lookup('env', 'DOOR') }}\"\n") == []


def test_circle_of_variables_ends(folder):
    assert in_vars(folder, 'a_password: "{{ b }}"\nb: "{{ c }}"\nc: "{{ b }}"\n') == []


def test_secret_variable_is_named_once_where_it_stands(folder):
    assert in_vars(folder, f'database_password: "{{{{ other_password }}}}"\nother_password: {CLEAR}\n') == [
        "2: other_password is a secret in clear"
    ]


# Notations


def test_nested_lists_and_mappings(folder):
    text = (
        "accounts:\n"
        "  - user: alice\n"
        f"    password: {CLEAR}\n"
        "  - {user: bob, password: hunter2}\n"
        "registry:\n"
        "  passwords:\n"
        f"    alice: {CLEAR}\n"
        "  secret_file: /etc/x\n"
        "tokens: [hunter2, 'x{{ y }}']\n"
    )
    assert in_vars(folder, text) == [
        "3: accounts.password is a secret in clear",
        "4: accounts.password is a secret in clear",
        "7: registry.passwords.alice is a secret in clear",
        "9: tokens is a secret in clear",
    ]


def test_name_and_value_of_an_environment(folder):
    text = f"environment_of_job:\n  - name: DB_PASSWORD\n    value: {CLEAR}\n  - name: DB_USER\n    value: slurm\n"
    assert in_vars(folder, text) == ["3: environment_of_job.DB_PASSWORD is a secret in clear"]


def test_block_of_text(folder):
    assert in_vars(folder, f"database_password: >-\n  {CLEAR}\n") == ["1: database_password is a secret in clear"]


def test_alias(folder):
    assert in_vars(folder, f"door: &door {CLEAR}\ndatabase_password: *door\n") == [
        "2: database_password is a secret in clear"
    ]


def test_alias_to_itself_ends(folder):
    assert in_vars(folder, f"loop: &loop\n  again: *loop\n  password: {CLEAR}\n") == [
        "3: loop.password is a secret in clear"
    ]


def test_json(folder):
    assert found(folder, {"group_vars/all.json": f'{{\n "database_password": "{CLEAR}"\n}}\n'}) == [
        "group_vars/all.json:2: database_password is a secret in clear"
    ]


def test_inventory_file(folder):
    text = (
        "cluster_hosts:\n"
        f"  vars: {{site_token: {CLEAR}}}\n"
        "  hosts:\n"
        f"    ctl-01: {{ansible_password: {CLEAR}}}\n"
        "  children:\n"
        "    token_servers:\n"
        "      hosts:\n"
        f"        tok-01: {{ansible_become_password: {CLEAR}, door: open}}\n"
    )
    assert found(folder, {"hosts.yml": text}) == [
        "hosts.yml:2: site_token is a secret in clear",
        "hosts.yml:4: ansible_password is a secret in clear",
        "hosts.yml:8: ansible_become_password is a secret in clear",
    ]


def test_ini(folder):
    text = (
        "[login_nodes]\n"
        f"login-01 ansible_host=192.0.2.1 ansible_password={CLEAR}\n"
        f"login-[02:03] ansible_password='{CLEAR}' # a comment\n"
        "login-04 ansible_password='{{ vault_login_password }}'\n"
        "[login_nodes:vars]\n"
        f"site_token = {CLEAR}\n"
        "max_tokens=4711\n"
        "; other_token comes from elsewhere\n"
    )
    assert found(folder, {"hosts.ini": text}, "hosts.ini") == [
        "hosts.ini:2: ansible_password is a secret in clear",
        "hosts.ini:3: ansible_password is a secret in clear",
        "hosts.ini:6: site_token is a secret in clear",
    ]


def test_ini_without_an_extension(folder):
    assert found(folder, {"hosts": f"ctl-01 ansible_password={CLEAR}\n"}, "hosts") == [
        "hosts:1: ansible_password is a secret in clear"
    ]


def test_toml(folder):
    assert found(folder, {"hosts.toml": f'[all.vars]\nansible_password = "{CLEAR}"\n'}, "hosts.toml") == [
        "hosts.toml:2: ansible_password is a secret in clear"
    ]


def test_settings_of_an_inventory_plugin(folder):
    text = f"plugin: openstack.cloud.openstack\nauth:\n  password: {CLEAR}\n"
    assert found(folder, {"cloud.yml": text}, "cloud.yml") == ["cloud.yml:3: auth.password is a secret in clear"]


def test_directory_as_inventory(folder):
    assert found(folder, {"host_vars/ctl-01.yml": f"site_token: {CLEAR}\n"}, ".") == [
        "host_vars/ctl-01.yml:1: site_token is a secret in clear"
    ]


def test_leftover_of_an_editor_or_a_person(folder):
    files = {
        "group_vars/all/site.yml.bak": f"site_token: {CLEAR}\n",
        "group_vars/other_group/x.yml": f"site_token: {CLEAR}\n",
    }
    assert found(folder, files) == [
        "group_vars/all/site.yml.bak:1: site_token is a secret in clear",
        "group_vars/other_group/x.yml:1: site_token is a secret in clear",
    ]


def test_file_that_is_encrypted_as_a_whole(folder):
    assert found(folder, {"group_vars/all/vault.yml": "$ANSIBLE_VAULT;1.1;AES256\n6162636465\n"}) == []


def test_script_is_not_taken_for_an_ini_file(folder):
    (folder / "hosts.py").write_text("#!/usr/bin/python3\npassword = input()\n", encoding="utf-8")
    (folder / "hosts.py").chmod(0o755)
    assert found(folder, {}, "hosts.py") == []


@pytest.mark.parametrize(
    "line", [f"# database_password: {CLEAR}", f"#database_password={CLEAR}", f"  ## - database_password: '{CLEAR}'"]
)
def test_secret_that_was_commented_out(folder, line):
    assert in_vars(folder, f"own: 1\n{line}\n") == ["2: database_password is a secret in clear, in a comment"]


def test_secret_that_was_commented_out_in_chinese(folder):
    assert in_vars(folder, f"own: 1\n# 密码：{CLEAR}\n") == ["2: 密码 is a secret in clear, in a comment"]


@pytest.mark.parametrize(
    "line",
    [
        "# database_password: see the password manager",
        "# database_password: !vault",
        '# database_password: "{{ vault_database_password }}"',
        "# database_password: <from the vault>",
        "# database_password:",
        "# max_tokens: 4096",
        "# user: slurm",
        "# 密码：见密码管理器",
        "# 密码: 存放在vault",
    ],
)
def test_comment_about_a_secret(folder, line):
    assert in_vars(folder, f"own: 1\n{line}\n") == []


# Values that are secrets whatever they are called


@pytest.mark.parametrize(
    "value",
    [
        "http://proxy:hunter2@proxy.example.org:3128",
        "'mysql --user=x --password=hunter2'",
        "'--token hunter2'",
        "ghp_" + "0123456789abcdefghij",
        "AKIA" + "ABCDEFGHIJKLMNOP",
        "hf_" + "0123456789abcdefghij",
        "$6$salt$abcdefghijklmnop",
        "eyJhbGciOiJIUzI1" + ".eyJzdWIiOiIxMjM0" + ".c2lnbmF0dXJl",
    ],
)
def test_value_that_is_a_secret(folder, value):
    assert in_vars(folder, f"site_anything: {value}\n") == ["1: site_anything holds a secret in clear"]


@pytest.mark.parametrize(
    "value",
    [
        "http://proxy.example.org:3128",
        "ssh://git@example.org/site.git",
        '"http://{{ vault_user }}:{{ vault_password }}@proxy.example.org"',
        '"mysql --password={{ vault_password }}"',
        "'mysql --password-file=/etc/x'",
        "0000:18:00.0",
    ],
)
def test_value_that_is_none(folder, value):
    assert in_vars(folder, f"site_anything: {value}\n") == []


def test_private_key_in_a_value(folder):
    text = f"site_anything: |\n  {PEM_BEGIN}\n  abc\n  {PEM_END}\n"
    assert in_vars(folder, text) == ["1: site_anything holds a secret in clear"]


def test_private_key_anywhere_else(folder):
    files = {
        "group_vars/all/notes.yml": f"own: 1\n# {PEM_BEGIN}\n",
        "group_vars/all/id_site": f"{PEM_BEGIN}\nabc\n{PEM_END}\n",
    }
    assert found(folder, files) == [
        "group_vars/all/id_site:1: a private key stands here in clear",
        "group_vars/all/notes.yml:2: a private key stands here in clear",
    ]


def test_words_of_a_name():
    assert confidential.words("dbPassword_file-2") == ["db", "password", "file", "2"]
    assert confidential.words("APIKEY") == ["api", "key"]
