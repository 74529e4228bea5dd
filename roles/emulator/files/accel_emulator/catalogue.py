# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Vendors whose emulated tool is one module of this package: what is known of them, their models, whole hosts of them.

Device ids are those of recordings and public id lists; where no source tells one, the number is made up within the
vendor's range and marked so. Tools, modules and nodes are those that vendors' documents and public programs name.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Maker:
    """One vendor. Its tool is in the module of the vendor's name.

    ``label`` names a slot by its number. ``driver`` is bound to a card, ``modules`` show under ``/sys/module``, with
    their version where ``versioned``. ``releases`` are beginnings of driver versions whose output format is known.
    ``serial`` and ``uuid`` are templates of ``ids``. ``nodes`` of a card and ``common`` of the host are below ``/dev``,
    ``files`` (path, content) below the card in sysfs; ``{index}``, ``{drm}`` and ``{render}`` stand for its numbers.
    ``faults`` and ``health`` are what can be shown beyond what every vendor shows. ``others`` are functions with the
    vendor's id that are no cards: (id, class, driver).
    """

    label: str
    driver: str
    modules: tuple[str, ...]
    releases: tuple[str, ...]
    tools: tuple[str, ...]
    serial: str
    uuid: str
    nodes: tuple[str, ...] = ()
    common: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    versioned: bool = True
    faults: tuple[str, ...] = ()
    health: tuple[str, ...] = ()
    others: tuple[tuple[str, int, str | None], ...] = ()
    root_port: tuple[str, str] = ("8086:352a", "8086:0000")

    @property
    def shows(self) -> tuple[str, ...]:
        """Return all faults that can be shown."""
        return (*_EVERYWHERE, *self.faults)


_EVERYWHERE = (
    "card_lost", "card_hung", "cards_swapped", "card_replaced", "link_downtrained", "tool_garbage", "tool_truncated",
)  # fmt: skip

_DRM = ("dri/card{drm}", "dri/renderD{render}")
_DRM_FILES = (("drm/card{drm}/dev", "226:{drm}\n"), ("drm/renderD{render}/dev", "226:{render}\n"))
_HOLD = "process_holding"
_GPU = "{h8}-{h4}-{h4}-{h4}-{h12}"

MAKERS: dict[str, Maker] = {
    "gaudi": Maker(
        label="OAM{}", driver="habanalabs", modules=("habanalabs", "habanalabs_cn", "habanalabs_en", "habanalabs_ib"),
        releases=("1.12", "1.17", "1.20", "1.21", "1.22"), tools=("hl-smi",),
        serial="AM5{d7}", uuid="01P0-HL2080A0-15-T{H5}-{d2}-{d2}-{d2}",
        nodes=("accel/accel{index}", "accel/accel_controlD{index}"),
        files=(("accel/accel{index}/dev", "261:{index}\n"), ("accel/accel_controlD{index}/dev", "261:{render}\n")),
        faults=(_HOLD, "ecc", "throttle", "driver_library_mismatch"), health=("warning", "critical"),
    ),
    "intel": Maker(
        label="OAM{}", driver="i915", modules=("i915",), releases=("I915_23",), tools=("xpu-smi",),
        serial="LQAC{d8}", uuid="01000000-0000-0000-{h4}-{h12}",
        nodes=_DRM, files=_DRM_FILES, versioned=False, faults=(_HOLD,), health=("warning", "critical"),
    ),
    "hygon": Maker(
        label="DCU{}", driver="hydcu", modules=("hydcu",), releases=("5.16", "6.3"), tools=("hy-smi",),
        serial="TPX{d9}", uuid="{h16}",
        nodes=_DRM, common=("kfd", "mkfd"), files=_DRM_FILES, faults=(_HOLD,),
        # The vendor's processors: input/output memory management, encryption.
        others=(("1d94:1451", 0x080600, None), ("1d94:1456", 0x108000, "ccp")),
        root_port=("1d94:1453", "1d94:1453"),
    ),
    "iluvatar": Maker(
        label="GPU{}", driver="iluvatar", modules=("iluvatar",), releases=("4.1", "4.2", "4.4"), tools=("ixsmi",),
        serial="2426{d9}E", uuid=f"GPU-{_GPU}",
        nodes=("iluvatar{index}",), common=("itrctl",), faults=(_HOLD, "ecc"), health=("critical",),
    ),
    "mthreads": Maker(
        label="GPU{}", driver="mtgpu", modules=("mtgpu",), releases=("2.7", "3.3", "5.1"), tools=("mthreads-gmi",),
        serial="MY10YL225BF{d5}", uuid=_GPU,
        nodes=("mtgpu.{index}", *_DRM), files=_DRM_FILES, faults=(_HOLD, "driver_library_mismatch"),
    ),
    "metax": Maker(
        label="GPU{}", driver="metax", modules=("metax",), releases=("3.0", "3.4", "3.8"), tools=("mx-smi", "ht-smi"),
        serial="MX{d10}", uuid=f"GPU-{_GPU}",
        nodes=_DRM, common=("mxcd", "mxnd", "mxgd"), files=_DRM_FILES, faults=(_HOLD,), health=("critical",),
    ),
    "cambricon": Maker(
        label="MLU{}", driver="cambricon-pci-drv", modules=("cambricon_drv",), releases=("4.20", "5.10"),
        tools=("cnmon",), serial="102{d11}", uuid=f"MLU-{_GPU}",
        nodes=("cambricon_dev{index}",), common=("cambricon_ctl",), faults=(_HOLD, "ecc"), health=("critical",),
    ),
    "enflame": Maker(
        label="GCU{}", driver="enflame", modules=("enflame",), releases=("1.2", "1.4"), tools=("efsmi",),
        serial="B{d3}5405{d5}", uuid="TR7C{d8}", nodes=("gcu{index}",), faults=(_HOLD,), health=("critical",),
    ),
    "kunlunxin": Maker(
        label="OAM{}", driver="kunlun", modules=("kunlun",), releases=("4.0", "5.0", "515"),
        tools=("xpu_smi", "xpu-smi"), serial="02K15K624CV{d5}", uuid=f"XPU-{_GPU}",
        nodes=("xpu{index}",), common=("xpuctrl",), faults=(_HOLD, "ecc"), health=("critical",),
    ),
    "neuron": Maker(
        label="ND{}", driver="neuron", modules=("neuron",), releases=("2",), tools=("neuron-ls",),
        serial="{h16}", uuid="{h16}", nodes=("neuron{index}",), faults=(_HOLD, "ecc"), health=("critical",),
        # Disks and network functions of the cloud machine.
        others=(("1d0f:8061", 0x010802, "nvme"), ("1d0f:ec20", 0x020000, "ena"), ("1d0f:efa2", 0x020000, "efa")),
    ),
    "tpu": Maker(
        label="TPU{}", driver="vfio-pci", modules=("vfio_pci",), releases=("0.0",), tools=("tpu-info",),
        serial="{d12}", uuid=_GPU, nodes=("vfio/{index}",), common=("vfio/vfio",), versioned=False, faults=(_HOLD,),
        others=(("1ae0:0042", 0x020000, "gvnic"), ("1ae0:001f", 0x010802, "nvme")),
    ),
    "denglin": Maker(
        # How its kernel module and device nodes are called is not known.
        label="GPU{}", driver="denglin", modules=(), releases=("2.2",), tools=("dlsmi",),
        serial="GDF00189C01DE253{d5}", uuid=f"GPU-{_GPU}", faults=("ecc", "throttle"), health=("critical",),
    ),
    "tenstorrent": Maker(
        label="PCIE{}", driver="tenstorrent", modules=("tenstorrent",), releases=("2.8",), tools=("tt-smi",),
        serial="0000041{d9}", uuid="{h16}", nodes=("tenstorrent/{index}",),
        files=(("tenstorrent/tenstorrent!{index}/dev", "240:{index}\n"),),
        faults=(_HOLD, "driver_library_mismatch"), health=("critical",),
    ),
}  # fmt: skip


def _model(
    vendor: str, pci_id: str, pci_class: int, memory_mib: int, power_watts: int, firmware: str, **more: object
) -> dict:
    """Return a model: what most have in common is filled in."""
    visible = 1 << max(memory_mib - 1, 1).bit_length()
    model: dict[str, object] = {
        "vendor": vendor, "pci_id": pci_id, "subsystem": pci_id, "pci_class": pci_class, "revision": 1,
        "memory_mib": memory_mib, "link_speed_gts": 32.0, "link_width": 16, "bars_mib": (visible, 64, 1),
        "architecture": "", "part_number": "", "firmware_version": firmware, "power_watts": power_watts,
        "clocks_mhz": (1500, 1600),
    }  # fmt: skip
    return {**model, **more}


# Model, as the vendor's tool calls it. "chips": how many functions of one board sit in slots that follow each other.
MODELS: dict[str, dict] = {
    "HL-225": _model(
        "gaudi", "1da3:1020", 0x120000, 98304, 600, "hl-gaudi2-1.22.0-fw-61.0.2-sec-9", link_speed_gts=16.0,
        part_number="F08GL0AIG032A", clocks_mhz=(1650, 1800),
    ),
    "HL-325L": _model(
        "gaudi", "1da3:1060", 0x120000, 131072, 850, "hl-gaudi3-1.22.0-fw-61.0.2-sec-9", part_number="F12HL3AIG011A",
        clocks_mhz=(1600, 1600),
    ),
    "Intel(R) Data Center GPU Max 1550": _model(
        "intel", "8086:0bd5", 0x038000, 131072, 600, "PVC2_1.23374", subsystem="8086:0000", revision=0x2F,
        clocks_mhz=(1600, 1565),
    ),
    "Intel(R) Data Center GPU Flex 170": _model(
        "intel", "8086:56c0", 0x038000, 16384, 150, "DG02_1.3271", link_speed_gts=16.0, revision=5,
        clocks_mhz=(2050, 1200),
    ),
    "DCU K100_AI": _model("hygon", "1d94:6210", 0x120000, 65520, 400, "113-K100AI-05", link_speed_gts=16.0),
    "Iluvatar MR-V100": _model(
        "iluvatar", "1e3e:0002", 0x120000, 32768, 150, "1.8.2", link_speed_gts=16.0, part_number="MR-V100-00",
        subsystem="0000:0001",
    ),
    "Iluvatar BI-V150S": _model(  # the device id is made up
        "iluvatar", "1e3e:0003", 0x120000, 32768, 205, "2.0.0", link_speed_gts=16.0, part_number="BI-V150S-00",
        subsystem="0000:0001", chips=2,
    ),
    "MTT S5000": _model("mthreads", "1ed5:0400", 0x030200, 81920, 950, "4.3.41"),
    "MTT S80": _model("mthreads", "1ed5:0201", 0x030000, 16384, 255, "3.0.4", link_speed_gts=32.0),
    "MetaX C500": _model("metax", "9999:4001", 0x030200, 65536, 350, "1.30.0.0"),
    "MetaX N260": _model("metax", "9999:4011", 0x030200, 65536, 225, "1.26.1.0", link_speed_gts=16.0),
    "Mars X201": _model("metax", "9999:4001", 0x030200, 65536, 350, "1.31.1.0"),
    "MLU370-X8": _model("cambricon", "cabc:0370", 0x120000, 23374, 250, "1.1.6", link_speed_gts=16.0),
    "MLU370-X4": _model("cambricon", "cabc:0370", 0x120000, 23308, 150, "1.1.6", link_speed_gts=16.0),
    "S60": _model("enflame", "1e36:c035", 0x120000, 42976, 300, "33.6.5", part_number="EFB-0091000-00"),
    "P800 OAM": _model(  # the device id is made up
        "kunlunxin", "1d22:3686", 0x120000, 98304, 400, "1.0:2.6:1.39.1.7", clocks_mhz=(1450, 1450), l3_mib=96,
    ),
    "R300": _model(
        "kunlunxin", "1d22:3684", 0x120000, 32768, 300, "1.0:2.6:1.31.0.2", link_speed_gts=16.0,
        clocks_mhz=(1300, 1300), l3_mib=63,
    ),
    "Trainium2": _model("neuron", "1d0f:7364", 0x088000, 98304, 500, ""),
    "TPU v6e": _model("tpu", "1ae0:006f", 0x120000, 32000, 300, ""),
    "KS38 QUAD": _model(
        "denglin", "1e27:0006", 0x120000, 32768, 26, "0.3.16", subsystem="1e27:1026", link_speed_gts=16.0,
        link_width=4, architecture="DLIv2", part_number="GDF00189C02", clocks_mhz=(1000, 6336), chips=4,
    ),
    "p150b": _model("tenstorrent", "1e52:b140", 0x120000, 32768, 130, "19.5.0.0", clocks_mhz=(1350, 800)),
}  # fmt: skip

# Places of cards, as in models.PROFILES: (index of the tool, address, slot number, NUMA node).
_MODULES = (
    (0, "0000:43:00.0", 2, 0), (1, "0000:4d:00.0", 0, 0), (2, "0000:1a:00.0", 3, 0), (3, "0000:28:00.0", 1, 0),
    (4, "0000:b3:00.0", 6, 1), (5, "0000:c7:00.0", 4, 1), (6, "0000:9a:00.0", 7, 1), (7, "0000:da:00.0", 5, 1),
)  # fmt: skip
_RISERS = (
    (0, "0000:11:00.0", 3, 0), (1, "0000:12:00.0", 1, 0), (2, "0000:51:00.0", 4, 0), (3, "0000:52:00.0", 2, 0),
    (4, "0000:91:00.0", 7, 1), (5, "0000:92:00.0", 5, 1), (6, "0000:d1:00.0", 8, 1), (7, "0000:d2:00.0", 6, 1),
)  # fmt: skip
# Chips of one board follow each other on the bus.
_BOARDS = tuple((number, f"0000:{bus:02x}:00.0", number, number // 4) for number, bus in enumerate((
    0x26, 0x27, 0x2A, 0x2B, 0xA6, 0xA7, 0xAA, 0xAB,
)))  # fmt: skip
_TORUS = tuple((number, f"0000:{bus:02x}:00.0", number, number // 8) for number, bus in enumerate((
    0x34, 0x21, 0x22, 0x33, 0x54, 0x41, 0x42, 0x53, 0x94, 0x81, 0x82, 0x93, 0xB4, 0xA1, 0xA2, 0xB3,
)))  # fmt: skip
_CLOUD = ((0, "0000:11:00.0", 0, 0), (1, "0000:12:00.0", 1, 0), (2, "0000:91:00.0", 2, 1), (3, "0000:92:00.0", 3, 1))


def _profile(vendor: str, model: str, driver_version: str, product: str, cards: tuple, **more: object) -> dict:
    profile: dict[str, object] = {
        "vendor": vendor, "model": model, "driver_version": driver_version, "wiring": "direct", "slot_scheme": "card",
        "system_bus": 0xF0, "manufacturer": "Accel Rehearsal", "product": product, "cards": cards,
    }  # fmt: skip
    return {**profile, **more}


_OAM = {"wiring": "switched", "slot_scheme": "bridge", "slot_base": 20, "system_bus": 0x60}
_FROM_ZERO = {"slot_base": 1}

PROFILES: dict[str, dict] = {
    "gaudi_hl225_8": _profile("gaudi", "HL-225", "1.22.0-5d1e3a7", "AR-8225 OAM", _MODULES, **_OAM),
    "intel_max1550_8": _profile(
        "intel", "Intel(R) Data Center GPU Max 1550", "I915_23.10.72_PSB_231129.76", "AR-8550 OAM", _MODULES, **_OAM
    ),
    "hygon_k100_8": _profile("hygon", "DCU K100_AI", "5.16.29-V1.8.2", "AR-8100 DCU", _RISERS),
    "iluvatar_biv150s_8": _profile(
        "iluvatar", "Iluvatar BI-V150S", "4.4.0", "AR-8150 GPU", _BOARDS, **_FROM_ZERO
    ),
    "mthreads_s5000_8": _profile("mthreads", "MTT S5000", "3.3.5-server", "AR-8500 GPU", _RISERS),
    "metax_c500_8": _profile("metax", "MetaX C500", "3.4.4", "AR-8501 GPU", _RISERS),
    "cambricon_mlu370_8": _profile("cambricon", "MLU370-X8", "5.10.13", "AR-8370 MLU", _RISERS),
    "enflame_s60_8": _profile("enflame", "S60", "1.4.1.7", "AR-8060 GCU", _RISERS),
    "kunlunxin_p800_8": _profile("kunlunxin", "P800 OAM", "5.0.21.21", "AR-8800 OAM", _MODULES, **_OAM),
    "neuron_trn2_16": _profile("neuron", "Trainium2", "2.19.64.0", "AR-1602 Cloud", _TORUS, slot_scheme="none"),
    "tpu_v6e_4": _profile("tpu", "TPU v6e", "0.0.19", "AR-4006 Cloud", _CLOUD, slot_scheme="none"),
    "denglin_ks38_8": _profile("denglin", "KS38 QUAD", "2.2.3", "AR-8038 GPU", _BOARDS, **_FROM_ZERO),
    "tenstorrent_p150_8": _profile("tenstorrent", "p150b", "2.8.0", "AR-8015 PCIe", _RISERS),
}  # fmt: skip
