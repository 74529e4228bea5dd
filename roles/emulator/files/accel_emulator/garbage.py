# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a vendor tool prints that is broken, cut off, or of a release that nobody knows."""

from __future__ import annotations

# A piece of a program, as a full disk or a torn download leaves it: its beginning reads as text.
_BYTES = b"\x7fELF\x02\x01\x01\x00accel\x00\xff\xfe\x80\x81\x00\x07\x1b" * 40
_FOREIGN = {
    "nvidia-smi": (
        '<?xml version="1.0" ?>\n<nvidia_smi_log>\n\t<schema>99</schema>\n\t<accelerators>\n'
        '\t\t<accelerator address="0000:00:00.0">\n\t\t</accelerator>\n\t</accelerators>\n</nvidia_smi_log>\n'
    ),
    "amd-smi": '{"schema": 99, "accelerators": [{"address": "0000:00:00.0"}]}\n',
    "rocm-smi": '{"schema": 99, "accelerators": [{"address": "0000:00:00.0"}]}\n',
    "npu-smi": (
        "+------+\n| npu-smi 99.0  Version: 99.0 |\n+------+\n| NPU  | State |\n+======+\n| 0  ready |\n+------+\n"
    ),
}


def damage(kind: str, tool: str, answer: tuple) -> tuple[int | None, bytes, bytes]:
    """Return rc, stdout and stderr of an answer with a fault worked in; an empty kind leaves it as it is."""
    rc, out, err = answer
    if kind == "tool_garbage":
        return 0, _BYTES, b""
    if kind == "tool_truncated" and rc is not None:
        # Never at the end of a line, where what is left could be taken for whole.
        return 0, out[: len(out) // 2].rstrip().encode(), b""
    if kind == "tool_foreign":
        return 1, _FOREIGN[tool].encode(), b""
    return rc, out.encode(), err.encode()
