# This file is part of the Ansible collection accel.cluster.
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The test hosts of a rehearsal: podman containers with systemd, sshd and two networks.

    rehearsal_hosts.py create  --instance rehearsal ctl-01 gpu-01 ...   make them or start them; safe to repeat
    rehearsal_hosts.py destroy --instance rehearsal                     remove all but the caches
    rehearsal_hosts.py stop    --instance rehearsal gpu-01              as if a host lost its power
    rehearsal_hosts.py podman  --instance rehearsal -- ps -a            podman with this instance's storage
    rehearsal_hosts.py clean                                            remove all instances and all caches

Why not the modules of containers.podman: this podman (4.3) cannot name a network's bridge, so two checkouts would
meet on "podman1"; and podman cannot remove a container whose processes were all killed (`rm -f` fails with
"container state improper"), which is what a stopped CI run leaves behind. Both need work below podman.

Everything of an instance lives under .cache/<instance> and /run/accel-<id>, where <id> is derived from the
checkout's path and the instance, so checkouts and instances never meet. Standard library only: it runs on the
system's Python, before any virtual environment exists.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import fcntl
import hashlib
import ipaddress
import json
import os
import pathlib
import re
import resource
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time

CHECKOUT = pathlib.Path(__file__).resolve().parent.parent
CACHE = CHECKOUT / ".cache"

# Every instance gets one /23 out of this range: half management, half fabric.
SUBNET_POOL = ipaddress.ip_network("10.64.0.0/10")
# Podman refuses whatever touches its network "podman", which it has in mind without a route of it: containers.conf(5).
PODMAN_OWN = ipaddress.ip_network("10.88.0.0/16")
FIRST_HOST = 11
BOOT_SECONDS = 120
COMMAND_SECONDS = 120
CAP_SYS_RESOURCE = 24  # bit number, linux/capability.h

# Root file system: what a freshly installed server has, and nothing that a role is to install.
PACKAGES = (
    "ca-certificates,dbus,dmidecode,iproute2,kmod,less,numactl,openssh-server,pciutils,procps,python3,"
    "python3-apt,python3-yaml,systemd,systemd-journal-remote,systemd-sysv,udev-"
)
# Text that no program reads; leaving it out makes the image a quarter smaller.
DPKG_OPTIONS = ("path-exclude=/usr/share/man/*", "path-exclude=/usr/share/doc/*", "path-exclude=/usr/share/locale/*")
FILES = {
    # The machine's kernel log is everybody's: a host must show only what its own emulator imports.
    "etc/systemd/journald.conf.d/accel-rehearsal.conf": "[Journal]\nReadKMsg=no\n",
    # The clock is the machine's: nobody who logs in may set it. Podman takes no capability from a privileged container,
    # and chrony refuses to start in one without it, so it is taken from the logins.
    "etc/systemd/system/ssh.service.d/clock.conf": "[Service]\nCapabilityBoundingSet=~CAP_SYS_TIME\n",
    # Host keys are made on first boot, so that no two hosts share one.
    "etc/systemd/system/ssh.service.d/host-keys.conf": (
        "[Service]\nExecStartPre=\nExecStartPre=/usr/bin/ssh-keygen -A\nExecStartPre=/usr/sbin/sshd -t\n"
    ),
    # The kernel is the machine's: at boot only the settings of the host's own network namespace are applied.
    "etc/systemd/system/systemd-sysctl.service.d/own-namespace.conf": (
        "[Service]\nExecStart=\nExecStart=/lib/systemd/systemd-sysctl --prefix=net\n"
    ),
}
# Units that would reach into the machine's kernel from a privileged container, or that ask for passwords at a console:
# each of those takes one of the few inotify instances (128 for all of a machine's root) that hosts share.
MASKED = (
    "proc-sys-fs-binfmt_misc.automount",
    "sys-fs-fuse-connections.mount",
    "sys-kernel-debug.mount",
    "sys-kernel-tracing.mount",
    "systemd-ask-password-console.path",
    "systemd-ask-password-wall.path",
    "systemd-binfmt.service",
    "systemd-modules-load.service",
    "systemd-timedated.service",  # tells the kernel the time zone, which moves the clock
)


class Problem(Exception):
    """Something a person must know; its text is the whole message."""


def run(argv, *, seconds=COMMAND_SECONDS, check=True, env=None, feed=None):
    """Run a command with a time limit; a Problem names it and the end of what it said."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=seconds, env=env, input=feed, check=False)
    except subprocess.TimeoutExpired:
        raise Problem(f"gave no answer in {seconds} s: {' '.join(argv)}") from None
    except OSError as exc:
        raise Problem(f"cannot run {argv[0]}: {exc.strerror}") from None
    if check and done.returncode:
        raise Problem(f"ended with {done.returncode}: {' '.join(argv)}\n{(done.stderr or done.stdout).strip()[-2000:]}")
    return done


def say(text):
    print(text, file=sys.stderr, flush=True)


# --- The root file system -------------------------------------------------------------------------------------


def os_release():
    text = pathlib.Path("/etc/os-release").read_text(encoding="utf-8")
    return {words[0]: words[2].strip('"') for words in (line.partition("=") for line in text.splitlines())}


def limits():
    """Limits to start hosts with: without CAP_SYS_RESOURCE none above this process's own, else podman's choice."""
    status = pathlib.Path("/proc/self/status").read_text(encoding="utf-8")
    effective = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:"))
    if effective >> CAP_SYS_RESOURCE & 1:
        return []
    # Of both the smaller: runc was seen to be refused a number of processes that this process itself has.
    hard = [resource.getrlimit(kind)[1] for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC)]
    most = min(value for value in (*hard, 1048576) if value != resource.RLIM_INFINITY)
    return [f"--ulimit=nofile={most}:{most}", f"--ulimit=nproc={most}:{most}"]


def machine_sources():
    """The machine's own Debian package sources as one-line entries; foreign sources are left out.

    `apt-get indextargets` knows every source in every format together with the Origin that its signed Release
    file states, which is what tells Debian's from a vendor's.
    """
    form = "$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(ORIGIN)|$(CODENAME)"
    suite = os_release()["VERSION_CODENAME"]
    found = {}
    for line in run(["apt-get", "indextargets", "--format", form, "Created-By: Packages"]).stdout.splitlines():
        uri, release, component, origin, codename = line.split("|")
        if origin == "Debian" and codename.split("-")[0] == suite:
            found.setdefault((uri, release), set()).add(component)
    if not found:
        raise Problem("no Debian package source is known here: run 'apt-get update' and look at /etc/apt/sources.list")
    keyring = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
    return [f"deb {keyring} {uri} {release} {' '.join(sorted(parts))}" for (uri, release), parts in found.items()]


def machine_apt_options():
    """How this machine reaches its package sources (proxy, certificates, date checks): its hosts need the same."""
    wanted = ("Acquire::http", "Acquire::https", "Acquire::Check-", "Acquire::Max-ValidTime", "Acquire::ForceIPv")
    lines = run(["apt-config", "dump", "--no-empty", "--format", '%F "%v";%n', "Acquire"]).stdout.splitlines()
    return [line for line in lines if line.startswith(wanted)] + ['Acquire::Languages "none";']


def recipe():
    """Everything the root file system is made from. Its hash is the image's name."""
    authorities = sorted(pathlib.Path("/usr/local/share/ca-certificates").glob("**/*.crt"))
    return {
        "suite": os_release()["VERSION_CODENAME"],
        "packages": PACKAGES,
        "dpkg_options": DPKG_OPTIONS,
        "files": FILES,
        "masked": MASKED,
        "sources": machine_sources(),
        "apt_options": machine_apt_options(),
        "authorities": {path.name: path.read_text(encoding="utf-8") for path in authorities},
    }


def build_rootfs(made_from, target):
    """Build the root file system as a tar file. Package lists stay in it: a host can install without a network."""
    say(f"building the root file system {target.name} (about a minute)")
    target.parent.mkdir(parents=True, exist_ok=True)
    plan = target.with_suffix(".plan")
    shutil.rmtree(plan, ignore_errors=True)
    for path, text in made_from["files"].items():
        (plan / path).parent.mkdir(parents=True, exist_ok=True)
        (plan / path).write_text(text, encoding="utf-8")
    for unit in made_from["masked"]:
        (plan / "etc/systemd/system" / unit).symlink_to("/dev/null")
    store = plan / "usr/local/share/ca-certificates"
    store.mkdir(parents=True)
    for name, text in made_from["authorities"].items():
        (store / name).write_text(text, encoding="utf-8")
    part = target.with_suffix(".part")
    command = ["mmdebstrap", "--variant=minbase", "--format=tar", "--skip=cleanup/apt/lists"]
    command += [f"--include={made_from['packages']}"]
    command += [f"--dpkgopt={option}" for option in made_from["dpkg_options"]]
    command += [f"--aptopt={option.rstrip(';')}" for option in made_from["apt_options"]]
    command += [
        # mmdebstrap splits the line as a shell does, and the path of a checkout may hold a blank.
        "--customize-hook=" + shlex.join(["copy-in", f"{plan}/etc", f"{plan}/usr", "/"]),
        "--customize-hook=chroot $1 update-ca-certificates",
        # What must differ from host to host is made at first boot.
        "--customize-hook=rm -f $1/etc/ssh/ssh_host_* $1/etc/hostname; : > $1/etc/machine-id",
        "--customize-hook=mkdir -m 700 -p $1/root/.ssh",
        made_from["suite"],
        str(part),
        "-",
    ]
    run(command, seconds=900, feed="\n".join(made_from["sources"]) + "\n")
    shutil.rmtree(plan)
    part.rename(target)


# --- One instance ---------------------------------------------------------------------------------------------


class Instance:
    """The hosts of one checkout and one purpose (`rehearsal` for people, `molecule` for tests)."""

    def __init__(self, name):
        self.name = name
        self.dir = CACHE / name
        self.id = hashlib.sha256(f"{self.dir.resolve()}".encode()).hexdigest()[:8]
        self.run_dir = pathlib.Path(f"/run/accel-{self.id}")
        self.podman_dir = self.dir / "podman"
        self.graph = self.podman_dir / "graph"
        self.images = CACHE / "images"
        self.state_file = self.dir / "hosts.json"
        self.ssh_dir = self.dir / "ssh"
        # A bridge's name has 15 characters at most.
        self.bridges = {"management": f"acm{self.id}", "fabric": f"acf{self.id}"}

    def network(self, kind):
        return f"accel-{self.id}-{self.note('generation')}-{kind}"

    def note(self, name, text=None):
        """One line that is kept with podman's storage: the runtime that works, the networks' generation."""
        path = self.podman_dir / name
        if text is not None:
            path.write_text(text, encoding="utf-8")
        return path.read_text(encoding="utf-8") if path.exists() else ""

    # podman, kept apart by its configuration alone: no option has to be repeated on every call

    def environment(self, images_only=False):
        suffix = "-images" if images_only else ""
        return {
            **os.environ,
            "CONTAINERS_CONF": str(self.podman_dir / f"containers{suffix}.conf"),
            "CONTAINERS_STORAGE_CONF": str(self.podman_dir / f"storage{suffix}.conf"),
        }

    def configured(self):
        return pathlib.Path(self.environment()["CONTAINERS_CONF"]).exists()

    def configure(self):
        runtime = self.note("runtime")
        self.podman_dir.mkdir(parents=True, exist_ok=True)
        for suffix, graph, more in (
            ("", self.graph, f'[storage.options]\nadditionalimagestores = ["{self.images}"]\n'),
            ("-images", self.images, ""),
        ):
            run_dir = self.run_dir / f"podman{suffix}"
            storage = f'[storage]\ndriver = "overlay"\ngraphroot = "{graph}"\nrunroot = "{run_dir}"\n{more}'
            (self.podman_dir / f"storage{suffix}.conf").write_text(storage, encoding="utf-8")
            # File locks: shared memory locks are one set a machine, and podman renews them all when it believes
            # that the machine was restarted.
            lines = ["[engine]", 'events_logger = "none"', 'lock_type = "file"', f'tmp_dir = "{run_dir}/libpod"']
            lines += [f'static_dir = "{graph}/libpod"', f'volume_path = "{graph}/volumes"']
            lines += [f'runtime = "{runtime}"'] if runtime else []
            lines += ["[network]", 'network_backend = "netavark"', f'network_config_dir = "{self.podman_dir}/networks"']
            (self.podman_dir / f"containers{suffix}.conf").write_text("\n".join(lines) + "\n", encoding="utf-8")
        self.images.mkdir(parents=True, exist_ok=True)

    def podman(self, *argv, images_only=False, **more):
        return run(["podman", *argv], env=self.environment(images_only), **more)

    def containers(self):
        """Containers of this instance by host name: {"State": ..., "Pid": ..., "Id": ...}."""
        listed = json.loads(self.podman("ps", "--all", "--format", "json").stdout or "[]")
        return {item["Names"][0]: item for item in listed}

    def inside(self, host, *argv, **more):
        return self.podman("exec", *(["--interactive"] if "feed" in more else []), host, *argv, **more)

    # what the machine allows

    def choose_runtime(self, image):
        """Settle on the first container runtime that starts a container here.

        On cgroup v2 podman's own choice comes first. On v1 and hybrid machines runc does: there crun works or
        not ("cgroups in hybrid mode not supported") with what other containers have mounted at the time.
        """
        refused = []
        unified = pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists()
        for runtime in ("", "crun", "runc") if unified else ("runc", "", "crun"):
            if runtime and not shutil.which(runtime):
                continue
            self.note("runtime", runtime)
            self.configure()
            done = self.podman("run", "--rm", "--network=none", "--privileged", "--systemd=always", *limits(),
                               image, "true", check=False)  # fmt: skip
            if done.returncode == 0:
                return
            refused.append(f"{runtime or 'default'}: {done.stderr.strip()}")
        raise Problem("no container runtime starts a container on this machine:\n" + "\n".join(refused))

    def choose_subnets(self):
        """A /23 of the pool that touches no route and no name server of this machine."""
        taken = [ipaddress.ip_network("127.0.0.0/8"), PODMAN_OWN]
        for route in json.loads(run(["ip", "-json", "-4", "route", "show", "table", "all"]).stdout):
            if route.get("dst", "default") != "default" and route.get("dev") not in self.bridges.values():
                taken.append(ipaddress.ip_network(route["dst"], strict=False))
        for line in pathlib.Path("/etc/resolv.conf").read_text(encoding="utf-8").splitlines():
            if line.startswith("nameserver") and ":" not in line:
                taken.append(ipaddress.ip_network(line.split()[1]))
        count = 2 ** (23 - SUBNET_POOL.prefixlen)
        for step in range(count):
            index = (int(self.id, 16) + step) % count
            both = ipaddress.ip_network((int(SUBNET_POOL.network_address) + index * 512, 23))
            if not any(both.overlaps(other) for other in taken):
                management, fabric = both.subnets(1)
                return {"management": management, "fabric": fabric}
        raise Problem(f"no free /23 in {SUBNET_POOL}")

    def create_networks(self):
        subnets = self.choose_subnets()
        # podman remembers addresses by the network's name, in one file a machine, and forgets to give back those of
        # killed containers even when their network is removed: so no network ever has an old one's name.
        self.note("generation", os.urandom(3).hex())
        for kind, subnet in subnets.items():
            name = self.network(kind)
            apart = ["--internal"] if kind == "fabric" else []
            self.podman("network", "create", "--disable-dns", *apart, "--subnet", str(subnet), name)
            # podman 4.3 has no option for the bridge's name and looks for a free one in its own files only.
            path = self.podman_dir / "networks" / f"{name}.json"
            text = json.loads(path.read_text(encoding="utf-8"))
            text["network_interface"] = self.bridges[kind]
            path.write_text(json.dumps(text, indent=1), encoding="utf-8")

    def read_subnets(self):
        found = {}
        for kind in self.bridges:
            path = self.podman_dir / "networks" / f"{self.network(kind)}.json"
            if not path.exists():
                return None
            found[kind] = ipaddress.ip_network(json.loads(path.read_text(encoding="utf-8"))["subnets"][0]["subnet"])
        return found

    # life

    def image(self):
        made_from = recipe()
        key = hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()[:16]
        name = f"localhost/accel-rehearsal:{key}"
        if self.podman("image", "exists", name, images_only=True, check=False).returncode:
            tar = CACHE / "rootfs" / f"{key}.tar"
            if not tar.exists():
                build_rootfs(made_from, tar)
            say("importing the root file system")
            self.podman("import", str(tar), name, images_only=True, seconds=600)
        return name

    def create(self, hosts):
        changed = False
        self.configure()
        present = self.containers() if self.graph.exists() else {}
        broken = [name for name, box in present.items() if box["State"] not in ("exited", "created") and not alive(box)]
        subnets = self.read_subnets()
        if broken or (present and not subnets):
            say(f"cleaning up after hosts that were killed: {' '.join(broken or present)}")
            self.wipe()
            self.configure()
            present, subnets, changed = {}, None, True
        missing = [name for name in hosts if name not in present]
        surplus = [name for name in present if name not in hosts]
        if surplus:
            raise Problem(f"hosts that the inventory no longer names still exist: {' '.join(surplus)}; destroy first")
        image = self.image() if missing else ""
        if missing and not present:
            self.choose_runtime(image)
        if not subnets:
            self.create_networks()
            subnets = self.read_subnets()
        self.make_key()
        addresses = {
            name: {kind: str(subnet[FIRST_HOST + order]) for kind, subnet in subnets.items()}
            for order, name in enumerate(hosts)
        }
        stopped = [name for name, box in present.items() if box["State"] != "running"]
        for name in missing:
            self.run_host(name, image, addresses)
        for name in stopped:
            self.podman("start", name)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(lambda name: self.finish_host(name, addresses[name]["management"]), hosts))
        self.write_state(hosts, addresses, subnets)
        return changed or bool(missing or stopped), missing + stopped

    def run_host(self, name, image, addresses):
        archives = CACHE / "apt" / "hosts" / self.name / name
        shutil.rmtree(archives, ignore_errors=True)
        archives.mkdir(parents=True)
        link_archives(CACHE / "apt" / "pool", archives)
        # Overlays can't be stacked: what engines inside a host keep must lie on the machine's own file system.
        storage = self.dir / "storage" / name
        shutil.rmtree(storage, ignore_errors=True)
        storage.mkdir(parents=True)
        # A host that comes back has its old hardware addresses: its neighbours would talk to a new one's for up to
        # 45 s as to the old one, and reach nobody.
        networks = [
            f"--network={self.network(kind)}:ip={address},mac={mac_of(address)},interface_name={kind}0"
            for kind, address in addresses[name].items()
        ]
        names = [f"--add-host={other}:{where['management']}" for other, where in addresses.items()]
        self.podman("run", "--detach", "--name", name, "--hostname", name, "--privileged", "--systemd=always",
                    "--stop-timeout=20", "--shm-size=512m", *limits(), *networks, *names,
                    f"--volume={archives}:/var/cache/apt/archives", f"--volume={storage}:/var/lib/containers",
                    image, "/sbin/init")  # fmt: skip

    def finish_host(self, name, address):
        """Wait until systemd and sshd of a host are up, then let the rehearsal in."""
        state = ""

        def settled():
            nonlocal state
            # Before systemd listens on its bus there is no answer at all.
            done = self.inside(name, "systemctl", "is-system-running", "--wait", check=False, seconds=BOOT_SECONDS)
            state = done.stdout.strip() or done.stderr.strip()
            return state in ("running", "degraded", "maintenance", "stopping")

        wait_until(settled, BOOT_SECONDS, f"systemd of {name}")
        if state != "running":
            units = self.inside(name, "systemctl", "--failed", "--no-legend", "--plain", check=False).stdout
            raise Problem(f"{name} did not come up, systemd is {state}:\n{units}{inotify_hint()}")
        key = (self.ssh_dir / "id_ed25519.pub").read_text(encoding="utf-8")
        # The marker allows the emulator to work; nothing but this step writes it.
        script = f"mkdir -p /etc/accel; echo {self.id} > /etc/accel/rehearsal; cat > /root/.ssh/authorized_keys"
        self.inside(name, "sh", "-euc", script, feed=key)
        wait_for_sshd(name, address)

    def make_key(self):
        self.ssh_dir.mkdir(parents=True, exist_ok=True)
        os.chmod(self.ssh_dir, 0o700)
        key = self.ssh_dir / "id_ed25519"
        if not key.exists():
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"accel-{self.id}", "-f", str(key)])

    def write_state(self, hosts, addresses, subnets):
        known = []
        for name in hosts:
            # Taken from inside the host, not from the network: this is what makes strict checking mean something.
            public = self.inside(name, "cat", "/etc/ssh/ssh_host_ed25519_key.pub").stdout.split()
            known.append(f"{name},{addresses[name]['management']} {public[0]} {public[1]}\n")
        write(self.ssh_dir / "known_hosts", "".join(known))
        # In quotes, because ssh takes a blank for the start of another file.
        options = f'  User root\n  IdentityFile "{self.ssh_dir}/id_ed25519"\n  IdentitiesOnly yes\n'
        options += f'  UserKnownHostsFile "{self.ssh_dir}/known_hosts"\n  StrictHostKeyChecking yes\n'
        config = "".join(f"Host {name}\n  HostName {addresses[name]['management']}\n{options}" for name in hosts)
        write(self.ssh_dir / "config", config)
        state = {
            "instance": self.name,
            "id": self.id,
            "networks": {kind: str(subnet) for kind, subnet in subnets.items()},
            "ssh": {name: str(self.ssh_dir / name) for name in ("id_ed25519", "known_hosts", "config")},
            "hosts": {
                name: {"address": addresses[name]["management"], "fabric_address": addresses[name]["fabric"]}
                for name in hosts
            },
        }
        write(self.state_file, json.dumps(state, indent=2) + "\n")

    def destroy(self):
        existed = self.graph.exists() or self.run_dir.exists()
        if existed:
            self.configure()
            # Politely first: podman takes down its firewall rules and addresses. What it can't, wipe() does.
            try:
                self.podman("rm", "--all", "--force", "--time=0", check=False)
            except Problem as problem:
                say(str(problem))
            self.wipe()
        shutil.rmtree(self.dir, ignore_errors=True)
        return existed

    def wipe(self):
        """Remove every trace of this instance's containers, whatever state they and podman are in."""
        ids = [path.name for path in (self.graph / "overlay-containers").glob("*") if path.is_dir()]
        subnets = self.read_subnets() or {}
        kill_all(ids)
        wait_until(lambda: not pids_of(ids), 20, "killed processes to end")
        for path in namespaces_of(self.graph, ids):
            run(["umount", "--lazy", str(path)], check=False)
            path.unlink(missing_ok=True)
        unmount_below(self.graph, self.run_dir)
        for place in ("/run/runc", "/run/crun"):
            for name in ids:
                shutil.rmtree(pathlib.Path(place) / name, ignore_errors=True)
        remove_cgroups(ids)
        for path in (self.run_dir, self.graph):
            shutil.rmtree(path, ignore_errors=True)
        for kind, bridge in self.bridges.items():
            self.podman("network", "rm", "--force", self.network(kind), check=False)
            run(["ip", "link", "delete", bridge], check=False)
        for subnet in subnets.values():
            remove_firewall_rules(str(subnet))
        harvest_archives(self.name)
        unmount_below(self.graph, self.run_dir)
        for path in (self.run_dir, self.podman_dir):
            shutil.rmtree(path, ignore_errors=True)
        self.state_file.unlink(missing_ok=True)


# --- Below podman ---------------------------------------------------------------------------------------------


def inotify_hint():
    """A sentence when this machine has few inotify instances left: units then fail that have nothing wrong."""
    limit = int(pathlib.Path("/proc/sys/fs/inotify/max_user_instances").read_text(encoding="utf-8"))
    used = 0
    for entry in pathlib.Path("/proc").glob("[0-9]*/fd/*"):
        try:
            used += os.readlink(entry) == "anon_inode:inotify"
        except OSError:
            continue
    if used < limit * 3 / 4:
        return ""
    return (
        f"{used} of {limit} inotify instances are in use: stop other containers or raise fs.inotify.max_user_instances"
    )


def alive(box):
    """Whether the container's first process is there, no zombie, and in the container's own control group."""
    return box["Pid"] in pids_of([box["Id"]])


def pids_of(ids):
    """Processes of these containers and their monitors; the long ids make a mistake impossible."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            # The field after the name, which may hold anything: Z is a zombie, dead but not yet waited for.
            if (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0] == "Z":
                continue
            text = (entry / "cgroup").read_text(encoding="utf-8")
            if (entry / "comm").read_text(encoding="utf-8").strip() == "conmon":
                text += (entry / "cmdline").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if any(name in text for name in ids):
            found.append(int(entry.name))
    return found


def mac_of(address):
    """A locally administered hardware address that follows from the IPv4 address."""
    return "02:ac:" + ":".join(f"{octet:02x}" for octet in ipaddress.ip_address(address).packed)


def kill_all(ids):
    """Kill every process of these containers with -9, as a stopped CI run does; one may be gone before its turn."""
    victims = pids_of(ids)
    for pid in victims:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return victims


def namespaces_of(graph, ids):
    """Paths of the network namespaces that podman made for these containers."""
    found = []
    for name in ids:
        try:
            text = (graph / "overlay-containers" / name / "userdata" / "config.json").read_text(encoding="utf-8")
        except OSError:
            continue
        for space in json.loads(text).get("linux", {}).get("namespaces", []):
            if space["type"] == "network" and space.get("path", "").startswith("/run/netns/netns-"):
                found.append(pathlib.Path(space["path"]))
    return found


def unmount_below(*places):
    """Unmount everything under these folders, the deepest first."""
    mounts = pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    # The kernel writes a blank as \\040 and leaves letters as they are.
    points = [re.sub(r"\\([0-7]{3})", lambda sign: chr(int(sign[1], 8)), line.split()[4]) for line in mounts]
    for point in sorted(points, key=len, reverse=True):
        if any(point == str(place) or point.startswith(f"{place}/") for place in places):
            run(["umount", "--lazy", point], check=False)


def remove_cgroups(ids):
    for top, folders, _files in os.walk("/sys/fs/cgroup"):
        for folder in list(folders):
            if any(name in folder for name in ids):
                folders.remove(folder)
                for inner, _folders, _inner_files in os.walk(os.path.join(top, folder), topdown=False):
                    try:
                        os.rmdir(inner)
                    except OSError as exc:
                        say(f"left behind: {inner}: {exc.strerror}")


def remove_firewall_rules(subnet):
    """Take out rules that name this subnet; only a killed run leaves any."""
    if not shutil.which("iptables"):
        return
    for table in ("nat", "filter"):
        listed = run(["iptables", "-w", "-t", table, "-S"], check=False).stdout.splitlines()
        chains = set()
        for words in (line.split() for line in listed if subnet in line.split()):
            run(["iptables", "-w", "-t", table, "-D", *words[1:]], check=False)
            chains |= {word for word in words if word.startswith("NETAVARK-")}
        for chain in chains - {"NETAVARK-HOSTPORT-DNAT", "NETAVARK-HOSTPORT-SETMARK", "NETAVARK-HOSTPORT-MASQ"}:
            for action in ("-F", "-X"):
                run(["iptables", "-w", "-t", table, action, chain], check=False)


# --- Package archives -----------------------------------------------------------------------------------------
# One pool a checkout, and a folder of hard links for every host. apt locks its archive folder and downloads into
# it under fixed names, so hosts can't share one; links cost nothing, need no service, and work without a network.


def link_archives(source, target):
    target.mkdir(parents=True, exist_ok=True)
    for path in source.glob("*.deb"):
        if not (target / path.name).exists():
            os.link(path, target / path.name)


def harvest_archives(instance):
    for host in (CACHE / "apt" / "hosts" / instance).glob("*"):
        link_archives(host, CACHE / "apt" / "pool")


# --- Small things ---------------------------------------------------------------------------------------------


def write(path, text):
    part = path.with_suffix(".part")
    part.write_text(text, encoding="utf-8")
    part.rename(path)


def wait_until(condition, seconds, what):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Problem(f"waited {seconds} s for {what}")
        time.sleep(0.1)


def wait_for_sshd(name, address):
    def greets():
        try:
            with socket.create_connection((address, 22), timeout=5) as link:
                return link.recv(4) == b"SSH-"
        except OSError:
            return False

    wait_until(greets, 30, f"sshd of {name} at {address}")


def check_machine():
    release = os_release()
    if release.get("ID") != "debian":
        raise Problem(f"the rehearsal needs a Debian machine; this is {release.get('PRETTY_NAME', 'unknown')}")
    if os.geteuid() != 0:
        raise Problem("the rehearsal needs root: it makes containers with their own systemd and networks")
    absent = [tool for tool in ("podman", "mmdebstrap", "ip", "ssh-keygen") if not shutil.which(tool)]
    if absent:
        raise Problem(f"not installed: {' '.join(absent)}; 'make hosts' installs what is needed")


def clean():
    for path in CACHE.glob("*/podman"):
        Instance(path.parent.name).destroy()
    unmount_below(CACHE)
    shutil.rmtree(CACHE, ignore_errors=True)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("action", choices=("create", "destroy", "stop", "podman", "clean"))
    parser.add_argument("--instance", default=os.environ.get("ACCEL_REHEARSAL_INSTANCE", "rehearsal"))
    parser.add_argument("words", nargs="*", help="host names, or podman's arguments")
    args = parser.parse_intermixed_args(argv)
    try:
        check_machine()
        instance = Instance(args.instance)
        # Without its configuration podman would complain of a file of ours, or take the machine's own storage.
        if args.action in ("podman", "stop") and not instance.configured():
            raise Problem(f"the instance {instance.name} has no test hosts; 'make rehearsal' makes them")
        if args.action == "podman":
            os.execvpe("podman", ["podman", *args.words], instance.environment())
        if args.action == "clean":
            clean()
            return 0
        CACHE.mkdir(exist_ok=True)
        with open(CACHE / f"{instance.name}.lock", "w", encoding="utf-8") as lock:
            # The kernel frees the lock of a killed run.
            fcntl.flock(lock, fcntl.LOCK_EX)
            if args.action == "create":
                changed, touched = instance.create(args.words)
                harvest_archives(instance.name)
                print(json.dumps({"changed": changed, "started": touched, "state": str(instance.state_file)}))
            elif args.action == "destroy":
                print(json.dumps({"changed": instance.destroy()}))
            else:
                for host in args.words:
                    instance.podman("stop", "--time=0", host)
    except Problem as problem:
        say(f"rehearsal hosts: {problem}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
