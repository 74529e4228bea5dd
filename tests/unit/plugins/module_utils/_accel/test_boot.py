# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which kernel boots next, whether it has the module, and when a node may be rebooted."""

from __future__ import annotations

import pytest
from ansible_collections.accel.cluster.plugins.module_utils._accel import apt, boot
from doubles import HANG, RecordedRunner

OLD, PIN, NEWER = "6.1.0-47-amd64", "6.1.0-50-amd64", "6.1.0-57-amd64"
VERSION = "535.261.03"
NAMES = (f"linux-image-{PIN}", f"linux-headers-{PIN}", "nvidia-kernel-dkms", "nvidia-smi")
# The form of Debian 12's grub-mkconfig.
GRUB_CFG = f"""\
if [ -s $prefix/grubenv ]; then
  set have_grubenv=true
  load_env
fi
if [ "${{next_entry}}" ] ; then
   set default="${{next_entry}}"
   set next_entry=
   save_env next_entry
   set boot_once=true
else
   set default="DEFAULT"
fi
function load_video {{
  if [ x$feature_all_video_module = xy ]; then
    insmod all_video
  fi
}}
menuentry 'Debian GNU/Linux' --class debian --class os $menuentry_id_option 'gnulinux-simple-4f3c' {{
\tload_video
\techo\t'Loading Linux {NEWER} ...'
\tlinux\t/boot/vmlinuz-{NEWER} root=UUID=4f3c ro  quiet
\tinitrd\t/boot/initrd.img-{NEWER}
}}
submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'gnulinux-advanced-4f3c' {{
\tmenuentry 'Debian GNU/Linux, with Linux {NEWER}' --class os $menuentry_id_option 'gnulinux-{NEWER}-advanced-4f3c' {{
\t\tlinux\t/boot/vmlinuz-{NEWER} root=UUID=4f3c ro  quiet
\t}}
\tmenuentry 'Debian GNU/Linux, with Linux {PIN}' --class os $menuentry_id_option 'gnulinux-{PIN}-advanced-4f3c' {{
\t\tlinux\t/boot/vmlinuz-{PIN} root=UUID=4f3c ro  quiet
\t}}
}}
menuentry 'UEFI Firmware Settings' $menuentry_id_option 'uefi-firmware' {{
\tfwsetup
}}
"""


def files(*kernels, grub=None, environment=None, **more):
    found = {f"/boot/vmlinuz-{one}": "" for one in kernels}
    found["/proc/sys/kernel/osrelease"] = f"{kernels[0]}\n" if kernels else ""
    if grub is not None:
        found["/boot/grub/grub.cfg"] = GRUB_CFG.replace("DEFAULT", grub)
    if environment is not None:
        found["/boot/grub/grubenv"] = f"# GRUB Environment Block\n{environment}\n####"
    return {**found, **more}


def next_one(**more):
    errors: list[str] = []
    runner = RecordedRunner({}, files(PIN, NEWER, **more))
    return boot.next_kernel(runner, boot.in_boot(runner), 5, errors), errors


# --------------------------------------------------------------------------------------------------- the boot loader


@pytest.mark.parametrize(
    ("default", "kernel"),
    [
        ("0", NEWER),
        ("1>1", PIN),
        (f"gnulinux-advanced-4f3c>gnulinux-{PIN}-advanced-4f3c", PIN),
        (f"Advanced options for Debian GNU/Linux>Debian GNU/Linux, with Linux {PIN}", PIN),
        ("1", None),  # a submenu is left to whoever stands there
        ("2", None),  # no kernel
        ("7", None),
        ("gone", None),
        ("0>1", None),
        ("1>9", None),
    ],
)
def test_grubs_default_names_the_kernel_or_nobody_knows(default, kernel):
    told, errors = next_one(grub=default)
    assert told == kernel
    assert bool(errors) == (kernel is None)


def test_what_is_saved_beside_the_menu_counts():
    assert next_one(grub="${saved_entry}", environment="saved_entry=1>1")[0] == PIN
    assert next_one(grub="${saved_entry}", environment="saved_entry=")[0] == NEWER
    assert next_one(grub="${saved_entry}")[0] == NEWER
    # grub-reboot: for one time it goes before all else.
    assert next_one(grub="0", environment="next_entry=1>1\nsaved_entry=0")[0] == PIN


def test_a_kernel_that_is_gone_is_not_the_next_one():
    told, errors = next_one(grub="0")
    assert (told, errors) == (NEWER, [])
    runner = RecordedRunner({}, files(PIN, grub="0"))
    assert boot.next_kernel(runner, [PIN], 5, errors) is None
    assert errors == [f"/boot/grub/grub.cfg boots {NEWER} next, which is not in /boot"]


def test_entries_that_are_files_of_their_own_are_not_guessed():
    assert next_one(**{"/boot/loader/entries/debian.conf": ""})[0] is None
    runner = RecordedRunner({}, {**files(PIN), "/boot/grub2/grub.cfg": "set default=0\nblscfg\n"})
    assert boot.next_kernel(runner, [PIN], 5, []) is None


def test_without_a_boot_loader_it_is_the_newest():
    assert next_one()[0] == NEWER


# ----------------------------------------------------------------------------------------------------------- parsers


def test_what_dkms_says_of_old_and_new_releases():
    assert boot.parse_dkms(
        f"nvidia-current/{VERSION}, {PIN}, x86_64: installed\nnvidia/{VERSION}: added\n"
        f"nvidia, 470.1, {OLD}, x86_64: built (WARNING! Diff between built and installed module!)\nnonsense\n"
    ) == [
        {"module": "nvidia-current", "version": VERSION, "kernel": PIN, "state": "installed"},
        {"module": "nvidia", "version": VERSION, "kernel": None, "state": "added"},
        {"module": "nvidia", "version": "470.1", "kernel": OLD,
         "state": "built (WARNING! Diff between built and installed module!)"},
    ]  # fmt: skip


def test_kernels_are_told_from_their_packages():
    names = ["linux-image-6.8.0-45-generic", "linux-image-unsigned-6.8.0-46-generic", "linux-image-amd64",
             f"linux-image-{PIN}-unsigned", f"linux-headers-{NEWER}", "linux-image-6.1.0-50-amd64"]  # fmt: skip
    assert boot.releases(names) == ["6.8.0-45-generic", "6.8.0-46-generic", PIN]


def modinfo(kernel, magic=None, version=VERSION):
    path = f"/lib/modules/{kernel}/nvidia.ko"
    return f"filename:       {path}\nversion:        {version}\nvermagic:       {magic or kernel} SMP\n"


def test_a_module_of_another_kernel_is_none():
    errors: list[str] = []
    answers = {("modinfo", "-k", PIN, "nvidia"): (0, modinfo(PIN, OLD), "")}
    found = boot.module_files(RecordedRunner(answers), [PIN], ["nvidia"], 5, errors)
    assert found[PIN]["state"] == "absent"
    assert errors == [f"/lib/modules/{PIN}/nvidia.ko was built for kernel {OLD} and lies with those of {PIN}"]


# ------------------------------------------------------------------------------------------------------- secure boot

ON, OFF = b"\x06\0\0\0\x01", b"\x06\0\0\0\0"
KEY = "/var/lib/dkms/mok.pub"
ASK = ("mokutil", "--test-key", KEY)


@pytest.mark.parametrize(
    ("there", "on"),
    [
        ({}, False),
        ({boot.SECURE_BOOT: ON}, True),
        ({boot.SECURE_BOOT: OFF}, False),
        ({boot.SECURE_BOOT: b"\x01"}, None),
        ({"/sys/firmware/efi/efivars/BootOrder-8be4df61": b""}, False),
        ({"/sys/firmware/efi/runtime": ""}, None),  # the variables are not mounted
    ],
)
def test_secure_boot_is_on_off_or_not_known(there, on):
    assert boot.secure_boot(RecordedRunner({}, there)) is on


@pytest.mark.parametrize(
    ("there", "answer", "says"),
    [
        ({boot.SECURE_BOOT: ON, KEY: ""}, (1, f"{KEY} is already enrolled\n", ""), ""),
        ({boot.SECURE_BOOT: ON, KEY: ""}, (0, f"{KEY} is not enrolled\n", ""), "the key of dkms is not enrolled"),
        ({boot.SECURE_BOOT: ON, KEY: ""}, (255, "", "EFI variables are not supported"), "could not be told"),
        ({boot.SECURE_BOOT: ON, KEY: ""}, HANG, "could not be told"),
        ({boot.SECURE_BOOT: ON, KEY: ""}, None, "without mokutil"),
        ({boot.SECURE_BOOT: ON}, None, "dkms has no key yet"),
        ({"/sys/firmware/efi/runtime": ""}, None, "whether Secure Boot is on could not be told"),
        ({boot.SECURE_BOOT: OFF}, None, ""),
    ],
)
def test_a_module_that_would_not_be_loaded_is_told_with_what_to_do(there, answer, says):
    said = boot.unsigned(RecordedRunner({ASK: answer} if answer else {}, there), 5)
    assert (says in said) if says else (said == "")


# ------------------------------------------------------------------------------------------------------ other kernels

METAS = ("dpkg-query", "-W", "-f=${db:Status-Status}\\t${Package}\\t${Version}\\t${Depends}\\n", "linux-*")
ROWS = f"""\
installed\tlinux-image-amd64\t6.1.192-3\tlinux-image-{NEWER} (= 6.1.192-3)
installed\tlinux-headers-amd64\t6.1.176-1\tlinux-headers-{PIN} (= 6.1.176-1)
installed\tlinux-headers-{PIN}\t6.1.176-1\tlinux-headers-6.1.0-50-common (= 6.1.176-1), linux-kbuild-6.1
not-installed\tlinux-image-rt-amd64\t\tlinux-image-6.1.0-57-rt-amd64
installed\tlinux-base\t4.9\tdebconf
"""


def planned(kernels, allowed=False, held=(), running=None, grub=None, names=NAMES, container=False):
    more = {"/run/systemd/container": "podman"} if container else {}
    there = {**files(*kernels, grub=grub), **more}
    there["/proc/sys/kernel/osrelease"] = running or PIN
    installed = {
        f"linux-image-{one}": apt.Package(f"linux-image-{one}", "", "6.1.1", "installed", held=one in held)
        for one in kernels
        if one != "6.9.9-own"
    }
    return boot.plan(RecordedRunner({METAS: (0, ROWS, "")}, there), names, installed, allowed, 5)


def test_what_would_bring_newer_kernels_is_kept():
    made = planned([PIN])
    assert made == boot.Kernels(keep={"linux-image-amd64": "6.1.192-3", "linux-headers-amd64": "6.1.176-1"})
    assert planned([PIN, NEWER], names=["nvidia-smi"]) == boot.Kernels()


def test_a_newer_kernel_is_refused_unless_it_may_go():
    (said,) = planned([PIN, NEWER]).refused
    assert said.startswith(
        f"kernel {NEWER} would boot instead of the pinned {PIN}: declare it, remove linux-image-{NEWER}"
    )
    made = planned([PIN, NEWER], allowed=True)
    assert (made.remove, made.refused) == ({f"linux-image-{NEWER}": "6.1.1"}, [])
    # What asks for it goes with it.
    assert list(made.keep) == ["linux-headers-amd64"]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"running": NEWER}, "is running"),
        ({"held": [NEWER]}, "is held"),
        ({"kernels": [PIN, "6.9.9-own"]}, "is of no package"),
    ],
)
def test_a_kernel_that_must_stay_is_refused_even_then(more, why):
    (said,) = planned(**{"kernels": [PIN, NEWER], "allowed": True, **more}).refused
    assert said.endswith(why)


def test_a_boot_loader_that_boots_the_declared_one_is_content():
    assert planned([PIN, NEWER], grub="1>1").refused == []
    # But not before that one is there: it would be chosen as the newest only.
    assert len(planned([NEWER], grub="1>1").refused) == 2
    (said,) = planned([PIN], grub="7").refused
    assert said.startswith("which kernel boots next is not known")


def headers(kernels, coming, names=(), **more):
    there = {**files(*kernels), **more}
    return boot.missing_headers(RecordedRunner({}, there), coming, names)


def test_headers_are_needed_for_what_may_boot_next():
    assert headers([OLD, PIN], ["nvidia-kernel-dkms"]) == [OLD, PIN]
    assert headers([OLD, PIN], ["nvidia-smi"]) == []
    # Where the kernel is declared, the running one is left behind.
    assert headers([OLD], [*NAMES], NAMES) == []
    assert headers([OLD], [f"linux-image-{PIN}", "nvidia-kernel-dkms"], NAMES) == [PIN]
    assert headers([OLD], [f"linux-image-{PIN}"], NAMES, **{f"/lib/modules/{PIN}/build": ""}) == []
    assert headers([OLD], ["nvidia-kernel-dkms"], **{"/run/systemd/container": ""}) == [OLD]
    assert headers([], ["nvidia-kernel-dkms"], **{"/run/systemd/container": ""}) == []


# ------------------------------------------------------------------------------------------------------------ reboot


def seen(**more):
    row = {"state": "present", "version": VERSION, "signer": None}
    kernels = {"running": PIN, "next": PIN, "modules": {PIN: row}, "dkms": []}
    kernels.update(more.pop("kernels", {}))
    return {
        "shared_kernel": False,
        "loaded": True,
        "version": VERSION,
        "taken": {},
        "errors": [],
        "kernels": kernels,
        **more,
    }


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({}, None),
        ({"version": "535.1"}, f"module 535.1 is loaded, {VERSION} is declared"),
        ({"loaded": False, "version": None}, "the module of the driver is not loaded"),
        ({"kernels": {"running": OLD}}, f"kernel {OLD} runs, {PIN} is declared"),
        ({"taken": {"nouveau": ["0000:18:00.0"]}}, "nouveau has 0000:18:00.0"),
        ({"version": None}, None),  # an in-tree module tells none, and what is not told is no reason to reboot
    ],
)
def test_a_reboot_is_made_only_where_it_is_needed(more, why):
    assert boot.decide(seen(**more), VERSION, NAMES) == ([why] if why else [], [])


@pytest.mark.parametrize(
    ("kernels", "why"),
    [
        ({"next": None}, "which kernel boots next is not known"),
        ({"next": NEWER}, f"kernel {NEWER} boots next, {PIN} is declared"),
        ({"modules": {PIN: {"state": "absent", "version": None}}}, f"kernel {PIN} boots next and has no module"),
        ({"modules": {PIN: {"state": "unknown", "version": None}}}, f"kernel {PIN} boots next and has no module"),
        ({"modules": {PIN: {"state": "present", "version": "535.1"}}}, "its module is 535.1"),
        ({"modules": {PIN: {"state": "present", "version": None}}}, "its module is None"),
    ],
)
def test_a_reboot_that_would_not_bring_what_is_declared_is_refused(kernels, why):
    needed, refused = boot.decide(seen(version="535.1", kernels=kernels), VERSION, NAMES)
    assert len(needed) == 1
    assert [one for one in refused if why in one] == refused != []


def test_a_container_is_never_rebooted():
    about = seen(shared_kernel=True, version="535.1", kernels={"running": None})
    assert boot.decide(about, VERSION, NAMES)[1] == ["a container has no kernel of its own to boot"]
    assert boot.decide(
        seen(shared_kernel=True, loaded=False, version=None, kernels={"running": None}), VERSION, NAMES
    ) == (
        [],
        [],
    )


def test_a_card_that_is_handed_on_does_not_come_back_by_a_reboot():
    refused = boot.decide(seen(taken={"vfio-pci": ["0000:18:00.0"]}), VERSION, NAMES)[1]
    assert refused == ["vfio-pci hands its cards on"]


def test_what_has_no_module_is_built():
    bare = {"state": "absent", "version": None}
    about = seen(kernels={"modules": {PIN: bare, NEWER: bare}, "next": NEWER})
    assert boot.unbuilt(about, NAMES) == [PIN]
    assert boot.unbuilt(about, ["nvidia-kernel-dkms"]) == [NEWER]
    assert boot.unbuilt(about, ["nvidia-smi"]) == []
    assert boot.unbuilt(seen(), NAMES) == []


def test_a_host_is_read():
    address = "/sys/bus/pci/devices/0000:18:00.0"
    there = {
        **files(PIN),
        **{f"{address}/{name}": text for name, text in
           (("vendor", "0x10de"), ("device", "0x2330"), ("class", "0x030200"))},
    }  # fmt: skip
    answers = {
        ("dkms", "status"): (0, f"nvidia-current/{VERSION}, {PIN}, x86_64: built\nother/1: added\n", ""),
        **{("modinfo", "-k", PIN, name): (1, "", f"modinfo: ERROR: Module {name} not found.")
           for name in ("nvidia", "nvidia-current", "nvidia-current-open")},
    }  # fmt: skip
    links = {f"{address}/driver": "/sys/bus/pci/drivers/nouveau"}
    about = boot.observe(RecordedRunner(answers, there, links=links), "nvidia", 5)
    assert (about["loaded"], about["version"], about["taken"]) == (False, None, {"nouveau": ["0000:18:00.0"]})
    needed, refused = boot.decide(about, VERSION, NAMES)
    assert needed == ["the module of the driver is not loaded", "nouveau has 0000:18:00.0"]
    assert refused == [f"kernel {PIN} boots next and has no module of the driver; dkms: nvidia-current/{VERSION} built"]
