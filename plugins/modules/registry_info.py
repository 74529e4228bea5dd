#!/usr/bin/python
# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: registry_info
short_description: Read the host of the image registry
version_added: 1.0.0
description:
  - Reads what decides whether a registry can be set up on this host, and says every reason against it in RV(refused);
    the name of the registry, who listens on its ports, the room for its images, the CA that signs its certificate.
  - Reads its services and, with O(ask), asks them over TLS as nodes and image builders do.
  - Changes nothing. What could not be read is V(none).
author:
  - accel.cluster contributors (@accel-cluster)
options:
  address:
    description: Name and port of the registry, as they stand in the names of images.
    type: str
    required: true
  listen_address:
    description: Address of this host to listen on; when left out, the one that the name has here.
    type: str
    default: ""
  push_address:
    description: Address and port of the service that takes new images.
    type: str
    default: ""
  storage_dir:
    description: Where the images lie.
    type: path
    default: /var/lib/docker-registry
  free_gib:
    description: Room that must be left there.
    type: float
    default: 0
  ca_certificate:
    description: Certificate of the CA that the role makes. When left out, it makes none.
    type: path
  ca_key:
    description: Its private key.
    type: path
  ask:
    description: Whether the services are asked.
    type: bool
    default: false
  ca_file:
    description: CA to trust when they are asked, beside those that the system trusts.
    type: path
  username:
    description: Login of the nodes.
    type: str
    default: ""
  password:
    description: Its password.
    type: str
    default: ""
  push_username:
    description: Login of those who build images.
    type: str
    default: ""
  push_password:
    description: Its password.
    type: str
    default: ""
  images:
    description: Images of this registry to ask for, with the login of the nodes.
    type: list
    elements: str
    default: []
  timeout_seconds:
    description: Time limit of each command, and of each question to a service.
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
- name: Read whether the registry could be set up here
  accel.cluster.registry_info:
    address: ctl-01:5000
    push_address: 127.0.0.1:5001
    free_gib: 5
  register: seen
"""

RETURN = r"""
refused:
  description: Each reason not to set the registry up on this host as it is.
  returned: always
  type: list
  elements: str
  sample: ["192.0.2.11:5000 is taken by nginx (process 812)"]
installed:
  description: Whether the registry's program is there.
  returned: always
  type: bool
  sample: true
names:
  description: What the name of the registry means on this host.
  returned: always
  type: list
  elements: str
  sample: [192.0.2.11]
own_addresses:
  description: Addresses of this host.
  returned: always
  type: list
  elements: str
  sample: [127.0.0.1, 192.0.2.11]
listen_address:
  description: Address that the registry listens on, V(none) where the name means no address that nodes can reach.
  returned: always
  type: str
  sample: 192.0.2.11
ports:
  description: Who listens where; C(own) are the registry's services.
  returned: always
  type: list
  elements: dict
  sample: [{address: 192.0.2.11, port: "5000", process: docker-registry, pid: 812, own: true}]
places:
  description: Address and port of the service that reads and of the one that writes.
  returned: always
  type: dict
  sample: {pull: "192.0.2.11:5000", push: "127.0.0.1:5001"}
units:
  description: State of the services and of the collection of what nothing refers to any more.
  returned: always
  type: dict
  sample:
    accel-registry@pull.service: {load: loaded, active: active, sub: running, result: success, pid: 812}
storage:
  description: Room and use; C(foreign) when something lies there that is no registry.
  returned: always
  type: dict
  sample: {path: /var/lib/docker-registry, size_bytes: 270553174016, free_bytes: 66571993088, used_bytes: 4096,
           foreign: false}
ca:
  description: The CA; C(state) is absent, ok, incomplete, mismatch or unreadable, C(ends) its last moment.
  returned: always
  type: dict
  sample: {state: ok, problem: null, ends: "Nov 28 21:00:00 2036 GMT"}
asked:
  description: What the services said; C(anonymous) is what a login of nobody gets. C(images) as
    M(accel.cluster.container_info) returns them.
  returned: when O(ask)
  type: dict
  sample:
    pull: {state: ok, problem: null}
    push: {state: ok, problem: null}
    anonymous: login_needed
    certificate_ends: "Nov 30 21:00:00 2027 GMT"
    images: []
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.accel.cluster.plugins.module_utils._accel import registry_host
from ansible_collections.accel.cluster.plugins.module_utils._accel.runner import Runner


def argument_spec() -> dict:
    """Return the options of the module."""
    return {
        "address": {"type": "str", "required": True},
        "listen_address": {"type": "str", "default": ""},
        "push_address": {"type": "str", "default": ""},
        "storage_dir": {"type": "path", "default": "/var/lib/docker-registry"},
        "free_gib": {"type": "float", "default": 0},
        "ca_certificate": {"type": "path"},
        "ca_key": {"type": "path", "no_log": False},
        "ask": {"type": "bool", "default": False},
        "ca_file": {"type": "path"},
        "username": {"type": "str", "default": ""},
        "password": {"type": "str", "default": "", "no_log": True},
        "push_username": {"type": "str", "default": ""},
        "push_password": {"type": "str", "default": "", "no_log": True},
        "images": {"type": "list", "elements": "str", "default": []},
        "timeout_seconds": {"type": "int", "default": 20},
    }


def main() -> None:
    """Read, ask where that is wanted, and return."""
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    options = module.params
    wanted = registry_host.Wanted(
        address=options["address"],
        listen_address=options["listen_address"],
        push_address=options["push_address"],
        storage_dir=options["storage_dir"],
        free_gib=options["free_gib"],
        ca_certificate=options["ca_certificate"] or "",
        ca_key=options["ca_key"] or "",
    )
    seen = registry_host.observe(Runner(), wanted, options["timeout_seconds"])
    seen["refused"] = registry_host.refusals(seen, wanted)
    if options["ask"]:
        seen["asked"] = registry_host.ask(
            wanted,
            (options["username"], options["password"]),
            (options["push_username"], options["push_password"]),
            options["ca_file"] or "",
            options["images"],
            options["timeout_seconds"],
        )
    module.exit_json(changed=False, **seen)


if __name__ == "__main__":
    main()
