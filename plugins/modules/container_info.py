#!/usr/bin/python
# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: container_info
short_description: Read what a node has of containers
version_added: 1.0.0
description:
  - Reads the engine (podman or Docker) with its storage, its settings files, its proxies, the images that it holds, and
    the device files of the Container Device Interface (CDI); asks registries as the engine would.
  - Changes nothing. What could not be read is V(none) or has a C(state) that says so, with the reason beside it.
  - Each registry costs at most O(timeout_seconds), whatever it does. It is asked directly, never through a proxy.
author:
  - accel.cluster contributors (@accel-cluster)
options:
  engine:
    description: The engine to read; when left out, podman where it is installed, else Docker.
    type: str
    choices: [podman, docker]
  registries:
    description: Registries to ask whether this node reaches them.
    type: list
    elements: dict
    default: []
    suboptions:
      address:
        description: Name or address and port, as it stands in the names of images.
        type: str
        required: true
      scheme:
        description: What it speaks.
        type: str
        choices: [https, http]
        default: https
      ca_file:
        description:
          - The CA of its certificate, beside those that the system trusts. When left out, all C(*.crt) in the folder of
            the registry where the engine looks, such as C(/etc/containers/certs.d/reg:5000).
        type: path
      ca_content:
        description: The CA as text in PEM, for one that is not on this node yet. Then no file is looked for.
        type: str
      auth_file:
        description:
          - File of an engine with its logins, from which name and password are taken, in place of
            O(registries[].username). Without one for this registry no login is tried.
        type: path
      username:
        description: Name to log in with; no login is tried when left out.
        type: str
      password:
        description: Password to log in with.
        type: str
  images:
    description:
      - Declared images with their registry, such as C(reg:5000/train@sha256:...) or C(reg:5000/train:1). Those of a
        registry in O(registries) are asked for there.
    type: list
    elements: str
    default: []
  timeout_seconds:
    description: Time limit of each command, and of all that is asked of one registry.
    type: int
    default: 20
attributes:
  check_mode:
    support: full
    description: Reads only, so it does the same in check mode.
  diff_mode:
    support: none
    description: Changes nothing, so there is no difference to show.
"""

EXAMPLES = r"""
- name: Read images and device files, and ask the site's registry
  accel.cluster.container_info:
    registries:
      - address: ctl-01:5000
        username: node
        password: "{{ vault_registry_password }}"
    images:
      - ctl-01:5000/train@sha256:9b4ca389f19f1fb28872da07a9f45d7fe3e3d022b005366edb792d30f81da8a1
  register: containers
"""

RETURN = r"""
engine:
  description:
    - The engine. C(state) is ok, absent, failed, hung or unreadable, with the reason in C(problem).
  returned: always
  type: dict
  sample:
    name: podman
    path: /usr/bin/podman
    state: ok
    problem: null
    version: 4.3.1
    storage_driver: overlay
    storage_path: /var/lib/containers/storage
    runtime: crun
    free_bytes: 238319968256
    size_bytes: 270553174016
settings:
  description:
    - Its settings files. C(state) is ok, broken (C(problem) begins with the line), unreadable, or unchecked where
      neither Python (before 3.11, for TOML) nor the engine could say.
  returned: always
  type: list
  elements: dict
  sample: [{path: /etc/containers/registries.conf, state: ok, problem: null}]
proxies:
  description: Where a proxy is set for the engine, without names and passwords.
  returned: always
  type: list
  elements: dict
  sample: [{source: /etc/environment, http: "", https: "http://proxy:3128", none: localhost}]
images:
  description: Images that the engine holds; V(none) where it did not tell.
  returned: always
  type: list
  elements: dict
  sample:
    - id: 0cfd89f1fafef2a5e67049c234862a38aac90969710a77f384633b0b50b4319e
      names: ["ctl-01:5000/train:1"]
      digests: ["ctl-01:5000/train@sha256:9b4ca389f19f1fb28872da07a9f45d7fe3e3d022b005366edb792d30f81da8a1"]
      size_bytes: 11331
      labels: {}
registries:
  description:
    - What each of O(registries) said. C(state) is ok, unreachable, timeout, plain_http, speaks_tls, ca_file,
      ca_foreign, expired, not_yet_valid, name_mismatch, tls, login_needed, login_refused, forbidden or error.
    - Of each image, C(digest) is that of the bytes that came, C(header_digest) what the registry says it is.
      C(state) is ok, absent, refused, corrupt, error or not_asked.
    - C(proxied_by) names what would send the engine to a proxy instead, as its NO_PROXY does not name the registry.
  returned: always
  type: list
  elements: dict
  sample:
    - address: ctl-01:5000
      scheme: https
      state: ok
      problem: null
      login: basic
      ca_files: ["/etc/containers/certs.d/ctl-01:5000/ca.crt"]
      proxied_by: []
      images:
        - reference: ctl-01:5000/train@sha256:9b4ca389f19f1fb28872da07a9f45d7fe3e3d022b005366edb792d30f81da8a1
          state: ok
          digest: sha256:9b4ca389f19f1fb28872da07a9f45d7fe3e3d022b005366edb792d30f81da8a1
          header_digest: sha256:9b4ca389f19f1fb28872da07a9f45d7fe3e3d022b005366edb792d30f81da8a1
          problem: null
cdi:
  description:
    - Files in C(/etc/cdi) and C(/var/run/cdi). C(state) is ok, broken (no engine takes it) or unreadable (YAML of a
      form that is not read here). C(missing) are the paths that they name and this node lacks.
  returned: always
  type: dict
  sample:
    files:
      - path: /etc/cdi/accel-nvidia.json
        folder: /etc/cdi
        state: ok
        problem: null
        mode: "0644"
        owner: 0
        spec:
          version: 0.5.0
          kind: nvidia.com/gpu
          devices: [{name: "0", nodes: [/dev/nvidia0], mounts: [], env: []}]
          nodes: [/dev/nvidiactl]
          mounts: []
          env: [ACCEL_DRIVER_VERSION=570.86.15]
    folders: [{path: /etc/cdi, mode: "0755", owner: 0}]
    missing: []
errors:
  description: What could not be read beside that, and why.
  returned: always
  type: list
  elements: str
  sample: []
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.accel.cluster.plugins.module_utils._accel import containers
from ansible_collections.accel.cluster.plugins.module_utils._accel.runner import Runner


def argument_spec() -> dict:
    """Return the options of the module."""
    return {
        "engine": {"type": "str", "choices": ["podman", "docker"]},
        "registries": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {
                "address": {"type": "str", "required": True},
                "scheme": {"type": "str", "choices": ["https", "http"], "default": "https"},
                "ca_file": {"type": "path"},
                "ca_content": {"type": "str"},
                "auth_file": {"type": "path"},
                "username": {"type": "str"},
                "password": {"type": "str", "no_log": True},
            },
        },
        "images": {"type": "list", "elements": "str", "default": []},
        "timeout_seconds": {"type": "int", "default": 20},
    }


def main() -> None:
    """Read and return; there is nothing to change."""
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    options = module.params
    if options["timeout_seconds"] < 1:
        module.fail_json(msg=f"timeout_seconds must be 1 or more, not {options['timeout_seconds']}")
    observed = containers.observe(
        Runner(), options["engine"], options["registries"], options["images"], options["timeout_seconds"]
    )
    module.exit_json(changed=False, **observed)


if __name__ == "__main__":
    main()
