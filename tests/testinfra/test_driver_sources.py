# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drivers from a signed repository, a folder of packages and installers, as the scenario left them; what is refused."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from pathlib import Path

import pytest
import testinfra

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / ".cache/collections"))
from ansible_collections.accel.cluster.plugins.module_utils._accel import stack

MADE = Path(__file__).resolve().parents[2] / ".cache/driver-sources"
AMD = {
    "amdgpu-dkms": "1:6.12.12.60401-2164967.22.04",
    "amdgpu-dkms-firmware": "1:6.12.12.60401-2164967.22.04",
    "amd-smi-lib": "25.4.2.60401-83~22.04",
    "rccl": "2.22.3.60401-83~22.04",
    "rocm-core": "6.4.1.60401-83~22.04",
}
# Beside them in the same set, from the system's own archive: real packages.
SET = {**AMD, "librocm-smi64-1": "5.2.3-2", "rocm-smi": "5.2.3-2"}
PARTS = "/opt/accel-parts"


# Each source has a host of its own in the scenario, so each test has one host.


@pytest.fixture(scope="module")
def get(request):
    return lambda name: testinfra.get_host(
        f"ansible://{name}", ansible_inventory=request.config.option.ansible_inventory
    )


@pytest.fixture(scope="module")
def amd(get):
    return get("gpu-03")


@pytest.fixture(scope="module")
def gaudi(get):
    return get("ctl-01")


@pytest.fixture(scope="module")
def ascend(get):
    return get("npu-01")


def asked(host, module: str, check: bool = False, **options) -> dict:
    """Return what a module of the collection says on a host, also where it refuses something."""
    try:
        return host.ansible(f"accel.cluster.{module}", json.dumps(options), check=check)
    except host.ansible.AnsibleException as error:
        if "refused" not in error.result:
            raise
        return error.result


# ----------------------------------------------------------------------------------------------- a signed repository


def source(host, key: str = "key.asc", port: int = 8790) -> str:
    """Return the repository as the role writes it, with another key or another port."""
    lines = []
    for line in host.file("/etc/apt/sources.list.d/accel-driver.sources").content_string.splitlines():
        if line.startswith("Signed-By:"):
            break
        lines.append(line.replace(":8790/", f":{port}/"))
    if key:
        lines += ["Signed-By:", *(f" {one.strip() or '.'}" for one in (MADE / key).read_text().splitlines())]
    return "\n".join(lines) + "\n"


def refused(host, packages: dict, sources: str) -> list[str]:
    told = asked(host, "driver_plan_info", packages=packages, sources=sources, timeout_seconds=30)
    return told["refused"]


# The same set of the next release: what is asked of a host that has the declared one.
NEXT = {"amd-smi-lib": "*.60402-*", "rccl": "*.60402-*", "rocm-core": "6.4.2"}


def test_the_set_is_installed_pinned_and_held_while_a_newer_one_is_on_offer(amd) -> None:
    told = amd.check_output("dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\\n' " + " ".join(SET))
    assert sorted(told.splitlines()) == sorted(f"{name} {version} hi " for name, version in SET.items())
    policy = amd.check_output("apt-cache policy amd-smi-lib")
    assert "25.5.1.60402-120~22.04 500" in policy and f"*** {AMD['amd-smi-lib']} 1001" in policy
    lines = amd.check_output("apt-get -s dist-upgrade").splitlines()
    assert not set(SET).intersection(line.split()[1] for line in lines if line.startswith("Inst "))


def test_the_key_is_trusted_for_its_repository_alone_and_the_retired_one_is_gone(amd) -> None:
    assert not amd.file("/usr/share/keyrings/accel-retired.asc").exists
    assert "BEGIN PGP PUBLIC KEY BLOCK" in amd.file("/etc/apt/sources.list.d/accel-driver.sources").content_string
    assert amd.check_output("ls /etc/apt/trusted.gpg.d | grep -c -i accel || true") == "0"


def test_the_stack_of_amd_is_of_one_piece_and_an_upgrade_was_refused(amd) -> None:
    wanted = {
        **SET,
        **dict.fromkeys(AMD, "*.60401-*"),
        "amdgpu-dkms": "",
        "amdgpu-dkms-firmware": "",
        "rocm-core": "6.4.1",
    }
    seen = asked(amd, "driver_stack_info", vendor="amd", packages=list(SET))
    found = stack.judge_stack("gpu-03", seen, {"driver_version": "6.12.12", "packages": wanted})
    assert [one["message"] for one in found if one["verdict"] != "pass"] == []
    assert {one["hint"] for one in found} >= {"device.driver_stack.packages_ok", "device.version_lock.ok"}


def test_the_next_release_would_be_one_transaction(amd) -> None:
    told = asked(amd, "driver_plan_info", packages=NEXT, sources=source(amd))
    assert told["refused"] == []
    assert sorted(told["changes"]) == [
        "amd-smi-lib 25.4.2.60401-83~22.04 -> 25.5.1.60402-120~22.04",
        "rccl 2.22.3.60401-83~22.04 -> 2.22.3.60402-120~22.04",
        "rocm-core 6.4.1.60401-83~22.04 -> 6.4.2.60402-120~22.04",
    ]


def test_a_version_that_the_repository_lacks_is_refused_with_those_that_it_has(amd) -> None:
    assert refused(amd, {"rocm-core": "6.5.0"}, source(amd)) == [
        "the repository does not have rocm-core 6.5.0; it has 6.4.2.60402-120~22.04, 6.4.1.60401-83~22.04"
    ]


@pytest.mark.parametrize(("key", "says"), [("foreign.asc", "NO_PUBKEY"), ("", "NO_PUBKEY")])
def test_a_repository_that_is_signed_with_another_key_is_refused(amd, key, says) -> None:
    (said,) = refused(amd, NEXT, source(amd, key))
    assert said.startswith("the repository is signed with a key that it was not declared with")
    assert says in said


def test_a_repository_that_is_down_is_refused(amd) -> None:
    (said,) = refused(amd, NEXT, source(amd, port=8791))
    assert said.startswith("the repository could not be read: apt-get")
    assert "Connection refused" in said


def test_half_configured_packages_are_refused_and_named(amd) -> None:
    try:
        assert amd.run("DEBIAN_FRONTEND=noninteractive apt-get install -qy accel-broken").rc != 0
        assert refused(amd, NEXT, source(amd)) == [
            "packages are half installed: accel-broken (half-configured); run dpkg --configure -a"
        ]
    finally:
        amd.check_output(
            "touch /run/accel-mended && dpkg --configure -a && dpkg --purge accel-broken && rm /run/accel-mended"
        )
    assert refused(amd, NEXT, source(amd)) == []


def test_a_package_manager_at_work_is_refused_with_its_process(amd) -> None:
    lock = "import fcntl, signal; f = open('/var/lib/dpkg/lock-frontend', 'w'); fcntl.lockf(f, fcntl.LOCK_EX)"
    script = f"{lock}; open('/run/accel-locked', 'w'); signal.pause()"
    amd.check_output(f'systemd-run --quiet --unit=accel-locker python3 -c "{script}"')
    try:
        amd.check_output("timeout 20 sh -c 'until test -e /run/accel-locked; do sleep 0.1; done'")
        (said,) = refused(amd, NEXT, source(amd))
        assert said.startswith("another package manager is at work: /var/lib/dpkg/lock-frontend is held by process ")
    finally:
        amd.check_output("systemctl stop accel-locker; rm /run/accel-locked")


def test_a_full_disk_is_refused(amd) -> None:
    amd.check_output("mount -t tmpfs -o size=1m tmpfs /var/cache/apt/archives")
    try:
        (said,) = refused(amd, NEXT, source(amd))
        assert said == "the file system of /var/cache/apt/archives has 1 MiB left, 64 MiB are needed"
    finally:
        amd.check_output("umount /var/cache/apt/archives")


# --------------------------------------------------------------------------------------------------------- a folder


def test_packages_of_a_folder_are_installed_and_held(gaudi) -> None:
    told = gaudi.check_output("dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\\n' 'habanalabs-*'")
    assert len(told.splitlines()) == 8
    assert all(line.endswith(" 1.21.0-555 hi ") for line in told.splitlines())
    assert "1.22.0-740" in gaudi.check_output("apt-cache policy habanalabs-graph")
    assert "habanalabs" not in gaudi.check_output("apt-get -s dist-upgrade")


def test_a_folder_without_an_index_is_refused(gaudi) -> None:
    for folder, says in (("no_index", "has no index"), ("nowhere", "has no index")):
        sources = f"Types: deb\nURIs: file:/srv/accel-sources/{folder}\nSuites: ./\nTrusted: yes\n"
        (said,) = refused(gaudi, {"habanalabs-graph": "1.22.0"}, sources)
        assert says in said, said


# ------------------------------------------------------------------------------------------------------- installers


def part(name: str, version: str, **more) -> dict:
    """Return a declared part; those that are not of the scenario leave their version below PARTS."""
    return {
        "name": name,
        "file": f"/srv/accel-sources/installers/{name}.run",
        "sha256": json.loads((MADE / "installers.json").read_text())[name],
        "version": version,
        "arguments": ["--quiet"],
        "version_file": f"{PARTS}/{name}",
        **more,
    }


FIRMWARE = {"version_file": "/usr/local/Ascend/firmware/version.info"}
TOOLKIT = {"version_file": "/usr/local/Ascend/ascend-toolkit/latest/*/ascend_toolkit_install.info"}


def installed() -> list[dict]:
    return [part("firmware", "7.7.0.6.236", **FIRMWARE), part("toolkit", "8.2.RC1", **TOOLKIT)]


@pytest.fixture
def clean(ascend):
    """Return the host, and leave it as the scenario left it."""
    ascend.check_output("cp /usr/local/Ascend/ran /run/accel-ran")
    yield ascend
    ascend.check_output(
        f"rm -rf {PARTS}; rm -f /var/lib/accel/installers/*.json; mv /run/accel-ran /usr/local/Ascend/ran"
    )


def ran(host) -> list[str]:
    return host.file("/usr/local/Ascend/ran").content_string.splitlines()


def said_by(host, *parts: dict, **options) -> str:
    return asked(host, "driver_installers", installers=list(parts), **options)["msg"]


def judged(host, parts: list[dict], observation: dict | None = None) -> list[tuple]:
    """Return what is said of the parts, and with an observation of the cards whatever is no pass."""
    seen = asked(host, "driver_stack_info", vendor="ascend", installers=parts, observation=observation or {})
    declared = {"driver_version": "25.2.0", "installers": {one["name"]: one["version"] for one in parts}}
    found = stack.judge_stack("npu-01", seen, declared)
    wanted = [one for one in found if one["subject"] == "installers" or (observation and one["verdict"] != "pass")]
    return [(one["hint"], one["verdict"]) for one in wanted]


OK = [("device.driver_stack.installers_ok", "pass")]
ALONE = [("device.version_lock.installers_ok", "pass")]


def test_each_installer_ran_once_and_nothing_owns_what_it_left(ascend) -> None:
    assert ran(ascend) == ["firmware 7.7.0.6.236 --full", "toolkit 8.2.RC1 --full"]
    assert judged(ascend, installed(), asked(ascend, "accelerator_info", timeout_seconds=30)) == [*OK, *ALONE]
    again = asked(ascend, "driver_installers", installers=installed())
    assert (again["changed"], again["changes"]) == (False, [])
    assert len(ran(ascend)) == 2


def test_a_check_run_says_what_would_run_and_runs_nothing(clean) -> None:
    told = asked(clean, "driver_installers", check=True, installers=[part("lying", "1.0")])
    assert told["changed"] and told["changes"] == [
        "lying (none) -> 1.0: /srv/accel-sources/installers/lying.run --quiet"
    ]
    assert len(ran(clean)) == 2 and not clean.file(PARTS).exists


def test_everything_that_speaks_against_it_is_said_before_anything_runs(clean) -> None:
    older = {**part("firmware-older", "7.5.0.1.129", **FIRMWARE), "name": "firmware"}
    wrong = {**part("failing", "1.0"), "sha256": "0" * 64}
    big = part("lying", "0.9", room_mib=1 << 30)
    said = said_by(clean, older, wrong, big, {**part("endless", "1.0"), "file": "/srv/none.run"})
    for words in (
        "firmware would go back from 7.7.0.6.236 to 7.5.0.1.129: set driver_downgrade_allowed",
        f"declared is {'0' * 64}",
        "MiB are needed",
        "/srv/none.run can't be read: No such file or directory",
    ):
        assert words in said, (words, said)
    assert len(ran(clean)) == 2


def test_a_version_that_can_not_be_read_is_refused(clean) -> None:
    clean.check_output(f"mkdir -p {PARTS} && echo nonsense > {PARTS}/lying")
    said = said_by(clean, part("lying", "0.9"))
    assert f"which version of lying is installed is not known: {PARTS}/lying tells no version: nonsense" in said
    assert judged(clean, [part("lying", "0.9")])[0] == ("device.driver_stack.unknown", "unknown")


def test_any_other_status_than_the_documented_is_a_failure_that_stays_known(clean) -> None:
    said = said_by(clean, part("failing", "1.0"))
    assert said.startswith("failing 1.0 ended with 3. It said: no such card")
    # The right version is there; whether the rest is, nobody knows.
    assert clean.check_output(f"tail -n 1 {PARTS}/failing") == "version=1.0"
    said = said_by(clean, part("failing", "1.0"))
    assert "failing was not finished: version 1.0 was started" in said and "and ended with 3" in said
    assert ("device.driver_stack.installer_unfinished", "fail") in judged(clean, [part("failing", "1.0")])
    runs = len(ran(clean))
    assert "ended with 3" in said_by(clean, part("failing", "1.0"), repeat_allowed=True)
    assert len(ran(clean)) == runs + 1
    told = asked(
        clean, "driver_installers", installers=[part("failing", "1.0", success_statuses=[0, 3])], repeat_allowed=True
    )
    assert told["changed"] and told["versions"] == {"failing": "1.0"}
    assert not clean.file("/var/lib/accel/installers/failing.json").exists
    assert judged(clean, [part("failing", "1.0")]) == [*OK, *ALONE]


def test_the_version_is_read_back(clean) -> None:
    said = said_by(clean, part("lying", "1.0"))
    assert said.startswith("lying 1.0 ended well, but then installed is 0.9.")
    assert ("device.driver_stack.installer_off_pin", "fail") in judged(clean, [part("lying", "1.0")])


def test_one_that_does_not_end_is_killed(clean) -> None:
    said = said_by(clean, part("endless", "1.0", timeout_seconds=2))
    assert said.startswith("endless 1.0 did not end within 2 s and was killed.")
    assert clean.run("pgrep -f endless.run").rc == 1


def test_one_that_was_ended_halfway_is_named_although_it_left_the_right_version(clean) -> None:
    endless = part("endless", "1.0")

    def begin() -> None:
        with contextlib.suppress(clean.ansible.AnsibleException):  # its module is killed below
            asked(clean, "driver_installers", installers=[endless])

    first = threading.Thread(target=begin)
    first.start()
    clean.check_output(f"timeout 30 sh -c 'until test -s {PARTS}/endless; do sleep 0.1; done'")
    # A connection that broke leaves it at work.
    said = said_by(clean, endless, repeat_allowed=True)
    assert "endless.run is running already, as process " in said
    process = said.rpartition("as process ")[2].strip()
    parent = clean.check_output(f"sed -n 's/^PPid:\\s*//p' /proc/{process}/status")
    clean.check_output(f"kill -9 {parent}; kill -9 -- -{process}")
    first.join(60)
    assert not first.is_alive()
    assert clean.check_output(f"tail -n 1 {PARTS}/endless") == "version=1.0"
    said = said_by(clean, endless)
    assert "endless was not finished: version 1.0 was started" in said and "and did not end" in said
    assert ("device.driver_stack.installer_unfinished", "fail") in judged(clean, [endless])


def test_what_a_package_has_too_is_no_part_of_its_own(clean) -> None:
    owned = {**part("lying", "6.1"), "version_file": "/etc/debian_version", "version_pattern": "^(.+)$"}
    assert ("device.version_lock.installer_owned", "fail") in judged(clean, [owned])
    by_command = {**part("lying", "6.1"), "version_file": None, "version_command": ["uname", "-r"]}
    assert ("device.version_lock.installer_untold", "unknown") in judged(clean, [by_command])
