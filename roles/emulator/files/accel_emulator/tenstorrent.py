# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``tt-smi -s`` of Tenstorrent says: a snapshot as JSON, in the form of a Blackhole with tt-smi 5.2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import forms
from .ids import hexes

if TYPE_CHECKING:
    from .state import Card, Host

# The colours are the tool's.
_SAID = "No Tenstorrent driver detected! Please install driver using tt-kmd: https://github.com/tenstorrent/tt-kmd"
NO_DRIVER = (1, f"\x1b[31m {_SAID}  \x1b[0m\n", "")
_WORDS = {
    "ASIC_ID": None, "HARVESTING_STATE": 0x0, "UPDATE_TELEM_SPEED": 0x64, "VCORE": 0x2E2, "TDC": 0x35,
    "VDD_LIMITS": 0x38402BC, "THM_LIMIT_SHUTDOWN": 0x6E, "VREG_TEMPERATURE": 0x0, "BOARD_TEMPERATURE": 0x0,
    "AXICLK": 0x3C0, "ARCCLK": 0x320, "L2CPUCLK0": 0x320, "L2CPUCLK1": 0x320, "L2CPUCLK2": 0x320, "L2CPUCLK3": 0x320,
    "ETH_LIVE_STATUS": 0x0, "DDR_STATUS": 0x5555, "DDR_SPEED": 0x36B0, "ETH_FW_VERSION": 0x0,
    "GDDR_FW_VERSION": 0x2000B, "DM_APP_FW_VERSION": 0x0, "DM_BL_FW_VERSION": 0x0, "FLASH_BUNDLE_VERSION": 0x13050000,
    "CM_FW_VERSION": 0x1B0000, "L2CPU_FW_VERSION": 0x0, "FAN_SPEED": 0x0, "TIMER_HEARTBEAT": 0x62DF9,
    "TELEMETRY_ENUM_COUNT": 0x45, "ENABLED_TENSIX_COL": 0x2FFF, "ENABLED_ETH": 0x3EDF, "ENABLED_GDDR": 0xFF,
    "ENABLED_L2CPU": 0xF, "PCIE_USAGE": 0x4, "NOC_TRANSLATION": 0x1, "FAN_RPM": 0x0, "GDDR_0_1_TEMP": 0x36363834,
    "GDDR_2_3_TEMP": 0x36363838, "GDDR_4_5_TEMP": 0x36323432, "GDDR_6_7_TEMP": 0x36323634,
    "GDDR_0_1_CORR_ERRS": 0x0, "GDDR_2_3_CORR_ERRS": 0x0, "GDDR_4_5_CORR_ERRS": 0x0, "GDDR_6_7_CORR_ERRS": 0x0,
    "GDDR_UNCORR_ERRS": 0x0, "MAX_GDDR_TEMP": 0x38, "ASIC_LOCATION": 0x1, "BOARD_POWER_LIMIT": 0x0,
    "TDC_LIMIT_MAX": 0x1F4, "THM_LIMIT_THROTTLE": 0x5A, "TT_FLASH_VERSION": None, "THERM_TRIP_COUNT": 0x0,
    "NUMBER_OF_TAGS": 0x320,
}  # fmt: skip


def render(host: Host) -> dict:
    """Return what each tool needs to answer."""
    cards = forms.entries(host, lambda card: {"entry": _entry(card)})
    data = {
        "ready": host.driver_ready,
        "driver": host.driver_version,
        "version": host.tool_version or "5.2.0",
        "host": hexes(12, "name", host.seed),
        "cards": cards,
    }
    return {"tt-smi": data}


def answer(data: dict, argv: list[str], moment: float | None = None) -> forms.Reply:
    """Return rc, stdout, stderr of ``tt-smi``."""
    if not data["ready"]:
        return NO_DRIVER
    if argv not in (["-s"], ["--snapshot"]):
        return 2, "", f"usage: tt-smi\ntt-smi: error: unrecognized arguments: {' '.join(argv)}\n"
    return forms.whole(data, lambda cards: forms.as_json(_snapshot(data, cards, moment)))


def _snapshot(data: dict, cards: list[dict], moment: float | None) -> dict:
    return {
        "time": forms.clock(moment, "%Y-%m-%dT%H:%M:%S.084906"),
        "host_info": {
            "OS": "Linux",
            "Distro": "Debian GNU/Linux 12",
            "Kernel": "6.1.0-28-amd64",
            "Hostname": data["host"],
            "Platform": "x86_64",
            "Python": "3.11.2",
            "Memory": "503.45 GB",
            "Driver": f"TT-KMD {data['driver']}",
        },
        "host_sw_vers": {"tt_smi": data["version"], "pyluwen": "0.8.5", "tt_umd": "0.9.5"},
        "device_info": [card["entry"] for card in cards],
    }


def _hex(value: int | None) -> str | None:
    return None if value is None else f"0x{value:x}"


def _entry(card: Card) -> dict:
    now = forms.now(card)
    clock = card.clocks_mhz[0] if card.busy else card.clocks_mhz[1]
    words = {
        "BOARD_ID_HIGH": int(card.serial[:8], 16), "BOARD_ID_LOW": int(card.serial[8:], 16), **_WORDS,
        "TDP": round(now.watts), "ASIC_TEMPERATURE": now.celsius << 16, "AICLK": clock,
        "ASIC_ID_HIGH": int(card.uuid[:8], 16), "ASIC_ID_LOW": int(card.uuid[8:], 16),
        "AICLK_LIMIT_MAX": card.clocks_mhz[0], "TDP_LIMIT_MAX": card.power_watts,
    }  # fmt: skip
    return {
        "smbus_telem": {name: _hex(value) for name, value in words.items()},
        "board_info": {
            "bus_id": card.address,
            "board_type": card.model,
            "board_id": card.serial,
            "coords": "N/A",
            "dram_status": card.health != "critical",
            "dram_speed": "16G",
            "pcie_speed": forms.generation(card.speed_gts),
            "pcie_width": str(card.width),
        },
        "telemetry": {
            "voltage": "0.74",
            "current": " 53.0",
            "power": f"{now.watts:5.1f}",
            "aiclk": f"{clock:>4}",
            "asic_temperature": f"{now.celsius + 0.4:.1f}",
            "fan_speed": "  0",
            "heartbeat": "67497",
        },
        "firmwares": {
            "fw_bundle_version": card.firmware_version,
            "tt_flash_version": "N/A",
            "cm_fw": "0.27.0.0",
            "cm_fw_date": "2020-00-27",
            "eth_fw": "0.0.0",
            "dm_bl_fw": "0.0.0.0",
            "dm_app_fw": "0.0.0.0",
            "gddr_fw": "2.11",
        },
        "limits": {
            "vdd_min": "0.70",
            "vdd_max": "0.90",
            "tdp_limit": str(card.power_watts),
            "tdc_limit": "500",
            "asic_fmax": str(card.clocks_mhz[0]),
            "therm_trip_l1_limit": "90",
            "thm_limit": "110",
            "bus_peak_limit": 0,
        },
    }
