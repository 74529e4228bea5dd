# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host as the emulator shows it, for the collection's own readers: trees on disk, tools in this process."""

from __future__ import annotations

import os

from accel_emulator import amd_smi, garbage, kernel_log, npu_smi, nvidia_smi, state, views
from accel_emulator.tree import sync
from accel_emulator.vendors import MAKERS, answer
from ansible_collections.accel.cluster.plugins.module_utils._accel import probe
from ansible_collections.accel.cluster.plugins.module_utils._accel.runner import Result, Runner

_TOOLS = {
    "nvidia-smi": nvidia_smi.answer,
    "npu-smi": npu_smi.answer,
    "amd-smi": amd_smi.answer,
    "rocm-smi": amd_smi.rocm_answer,
    **{tool: answer for maker in MAKERS.values() for tool in maker.tools},
}


def by_address(observation) -> dict:
    """Return the devices of an observation by their PCI address."""
    return {device.pci_address: device for device in observation.devices}


class Emulated(Runner):
    """Runs the emulated tools, and reads under a folder what a host would have at its root."""

    def __init__(self, root, profile: str, *faults: dict, **more) -> None:
        super().__init__()
        self.state = {"profile": profile, "seed": "unit", "faults": list(faults), **more}
        self.host = state.expand(self.state)
        self.root = str(root)
        self.asked: list[list[str]] = []
        for view in views.views(self.host):
            sync(self.root + view.target, view.tree)
        for name in views.device_nodes(self.host):
            path = f"{self.root}/dev/{name}"
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb"):
                pass
        self.answers = views.answers(self.host)

    def observe(self, **more):
        """Return what the collection's probe makes of this host."""
        return probe.observe(self, timeout_seconds=1, **more)

    def smi(self, *argv: str) -> tuple[int | None, str, str]:
        """Return what a tool answers: rc (None: it hangs), stdout, stderr."""
        answered = _TOOLS[argv[0]](self.answers[argv[0]], list(argv[1:]), 1764500000.25)
        rc, out, err = garbage.damage(self.answers[argv[0]]["garbage"], argv[0], answered)
        return rc, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")

    def which(self, name: str) -> str | None:
        return f"/usr/local/bin/{name}" if name in self.answers or name == "journalctl" else None

    def run(self, argv: list[str], timeout_seconds: float) -> Result:
        words = list(argv)
        if os.path.basename(words[0]) == "journalctl":
            lines = [f"2026-11-30T01:02:03+0000 box kernel: {line}\n" for line in kernel_log.messages(self.host)]
            return Result(words, 0, "".join(lines), "")
        self.asked.append(words)
        rc, out, err = self.smi(os.path.basename(words[0]), *words[1:])
        return Result(words, rc, out, err, hung=rc is None)

    def holders(self, wanted, seconds=5.0):
        """Return what the host's own look into /proc would: one process a node that is held."""
        held = {f"/dev/{name}": [4711] for name in views.held_nodes(self.host)}
        return {node: pids for node, pids in held.items() if node in wanted}, True

    def read_ahead(self, paths: list[str]) -> None:
        super().read_ahead([self.root + path for path in paths])

    def read(self, path: str) -> str | None:
        return super().read(self.root + path)

    def read_bytes(self, path: str) -> bytes | None:
        return super().read_bytes(self.root + path)

    def glob(self, pattern: str) -> list[str]:
        return [path[len(self.root) :] for path in super().glob(self.root + pattern)]

    def realpath(self, path: str) -> str:
        return super().realpath(self.root + path)[len(os.path.realpath(self.root)) :]
