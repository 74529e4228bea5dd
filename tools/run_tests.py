# This file is part of the Ansible collection accel.cluster.
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run parts of the tests, side by side where they do not disturb each other, and say what came out.

    run_tests.py lint unit          these parts, one after the other
    run_tests.py core               what `make test` runs: two lanes, because there are two cores
    run_tests.py full               everything

Every part writes its output to .cache/logs/<part>.log and JUnit XML to .cache/results. The last line printed is the sum
of the XML files, "N passed, N failed, N skipped"; the exit status is 0 only when something passed and nothing failed.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
LOGS = CACHE / "logs"
RESULTS = CACHE / "results"
BIN = ROOT / ".venv/bin"
# Molecule's hosts are its own; the drill has others, so that the two lanes can work at the same time.
MOLECULE = "molecule"
DRILL = "drill"
INVENTORY = "--inventory=inventories/rehearsal"

LANES = {
    "core": [["lint", "unit", "browser", "sanity", "molecule"], ["hosts", "drill"]],
    "full": [
        ["lint", "unit", "browser", "sanity", "sanity_oldest", "newer_core", "install", "vendor_tools", "molecule"],
        ["hosts", "drill_full", "fresh"],
    ],
}
# The slower Ansible leg of `full`, and the oldest Python of a target host; used where the interpreter is there.
NEWER_PYTHON = "3.12"
OLDEST_PYTHON = "3.9"


# Process groups of commands that run now; they are ended with this script.
RUNNING: set[int] = set()


def end_group(leader: int) -> None:
    """End a command and all that it started and left."""
    RUNNING.discard(leader)
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Part:
    """One part: its log, its results, and the commands that it runs."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.log = LOGS / f"{name}.log"
        self.cases: list[tuple[str, str, str]] = []  # name, "passed" | "failed" | "skipped", text
        self.summary = ""
        self.seconds = 0.0

    def command(self, *argv: str, limit: float = 300, cwd: Path = ROOT, **environment: str) -> int:
        """Run one command with a time limit, its whole process group ended when it is over; return its status."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("ANSIBLE_", "MOLECULE_", "MAKE", "MFLAGS"))}
        env.update(
            PATH=f"{BIN}:{env['PATH']}",
            VIRTUAL_ENV=str(BIN.parent),
            ACCEL_REHEARSAL_INSTANCE=MOLECULE,
            ANSIBLE_CONFIG=str(ROOT / "ansible.cfg"),
            ANSIBLE_HOME=str(CACHE / "ansible"),
            ANSIBLE_SSH_CONTROL_PATH_DIR="/run/accel-ssh",
            LC_ALL="C.UTF-8",
        )
        env.update(environment)
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"$ {' '.join(argv)}\n")
            log.flush()
            started = time.monotonic()
            process = subprocess.Popen(
                argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
            RUNNING.add(process.pid)
            try:
                status = process.wait(limit)
            except subprocess.TimeoutExpired:
                status = 124
                log.write(f"ended after its limit of {limit} s\n")
            finally:
                end_group(process.pid)
                process.wait()
            log.write(f"status {status}, {time.monotonic() - started:.1f} s\n")
        return status

    def check(self, what: str, *argv: str, says: tuple[str, ...] = (), **more) -> bool:
        """Run a command that is a test case itself: it passes when it ends with 0 and its output has these texts."""
        before = self.log.stat().st_size
        status = self.command(*argv, **more)
        with self.log.open("rb") as log:
            log.seek(before)
            output = log.read().decode("utf-8", "replace")
        missing = [text for text in says if text not in output]
        outcome = "failed" if status or missing else "passed"
        told = f"ended with {status}" + "".join(f"; does not say {text!r}" for text in missing)
        self.cases.append((what, outcome, f"{told}; see {self.log}"))
        return outcome == "passed"

    def pytest(self, *argv: str, limit: float, name: str = "", python: Path = BIN / "python", **environment: str):
        """Run pytest; its XML counts. No XML, or a status that no case in it explains, is one failed case."""
        name = name or self.name
        result = RESULTS / f"pytest-{name}.xml"
        command = [str(python), "-m", "pytest", "-q", f"--junitxml={result}", *argv]
        status = self.command(*command, limit=limit, **environment)
        if not result.exists() or (status and not count([result])[1]):
            self.cases.append((f"pytest {name}", "failed", f"ended with {status}; see {self.log}"))
        text = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        ends = [line for line in text if " in " in line and ("passed" in line or "failed" in line or "error" in line)]
        self.summary = ends[-1].strip("= ") if ends else ""

    def skip(self, what: str, why: str) -> None:
        """Count something that cannot be run here."""
        self.cases.append((what, "skipped", why))

    def write(self) -> None:
        """Write the cases that are no pytest's as JUnit XML."""
        if not self.cases:
            return
        suite = ET.Element("testsuite", name=self.name, tests=str(len(self.cases)))
        for what, outcome, text in self.cases:
            case = ET.SubElement(suite, "testcase", classname=self.name, name=what)
            if outcome != "passed":
                ET.SubElement(case, "failure" if outcome == "failed" else "skipped", message=text)
        ET.ElementTree(suite).write(RESULTS / f"{self.name}.xml", encoding="utf-8", xml_declaration=True)


# --- The parts ------------------------------------------------------------------------------------------------


def lint(part: Part) -> None:
    """Everything that can be told without running anything."""
    part.check("yamllint", "yamllint", "--strict", ".")
    part.check("ruff check", "ruff", "check", "--no-cache", ".")
    part.check("ruff format", "ruff", "format", "--no-cache", "--check", ".")
    part.check("mypy", "mypy", "--cache-dir", str(CACHE / "mypy"))
    part.check("ansible-lint", "ansible-lint", "--offline", "--profile=production", "--strict", limit=600)
    part.check("antsibull-changelog lint", "antsibull-changelog", "lint")


def unit(part: Part) -> None:
    """Parsers, judges, contracts; and the short part of the fuzzing."""
    part.pytest("tests/unit", "tests/fuzz", limit=1200)


def browser(part: Part) -> None:
    """The report as a browser shows it."""
    part.pytest("tests/browser", limit=300)


def sanity_tree() -> tuple[Path, dict[str, str]]:
    """Copy the checkout to where ansible-test works: below ansible_collections, a git repository of its own."""
    home = CACHE / "sanity"
    tree = home / "ansible_collections/accel/cluster"
    tree.mkdir(parents=True, exist_ok=True)
    # Its virtual environments are in the tree and worth minutes.
    for path in tree.iterdir():
        if path.name != "tests":
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    for path in (tree / "tests").glob("*"):
        if path.name != "output":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.rmtree(tree / "tests/output/junit", ignore_errors=True)
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).exists():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name, follow_symlinks=False)
    # Without it ansible-test asks the checkout around it, which ignores .cache.
    subprocess.run(["git", "init", "-q", "."], cwd=tree, check=True)
    subprocess.run(["git", "add", "-A"], cwd=tree, check=True)
    bootstrap = home / "home/.ansible/test/cache"
    bootstrap.mkdir(parents=True, exist_ok=True)
    # The name has the version of pip that this ansible-test wants; only its code tells which.
    code = next(BIN.parent.glob("lib/python3*/site-packages/ansible_test/_internal/python_requirements.py"))
    for version in re.findall(r"pip='([0-9.]+)'", code.read_text(encoding="utf-8")):
        shutil.copy(ROOT / "tools/get_pip.py", bootstrap / f"get_pip_{version.replace('.', '_')}.py")
    settings = Path.home() / ".config/pip"
    if settings.is_dir() and not (home / "home/.config/pip").exists():
        (home / "home/.config").mkdir(exist_ok=True)
        (home / "home/.config/pip").symlink_to(settings)
    return tree, {"HOME": str(home / "home")}


def sanity(part: Part) -> None:
    """ansible-test sanity on the controller's Python; one case for each of its tests."""
    tree, environment = sanity_tree()
    argv = ["ansible-test", "sanity", "--venv", f"--python={version_of(BIN / 'python')}", "--requirements", "--junit"]
    status = part.command(*argv, "--color=no", cwd=tree, limit=1500, **environment)
    found = sorted((tree / "tests/output/junit").glob("*.xml"))
    for path in found:
        shutil.copy(path, RESULTS / path.name)
    if not found or (status and not count(found)[1]):
        part.cases.append(("ansible-test sanity", "failed", f"ended with {status}; see {part.log}"))


def find_python(version: str) -> str:
    """Return the path of a Python that works, from the system or from pyenv, or ""."""
    found = [shutil.which(f"python{version}"), *Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}")]
    for path in filter(None, found):
        # pyenv's stand-in for a Python that is not chosen is there, but does not work.
        if not subprocess.run([str(path), "-m", "ensurepip", "--version"], capture_output=True, check=False).returncode:
            return str(path)
    return ""


def sanity_oldest(part: Part) -> None:
    """What runs on hosts compiles and imports on the oldest Python promised."""
    python = find_python(OLDEST_PYTHON)
    if not python:
        part.skip(f"sanity on Python {OLDEST_PYTHON}", f"no python{OLDEST_PYTHON} on this machine")
        return
    tree, environment = sanity_tree()
    argv = ["ansible-test", "sanity", "--test=compile", "--test=import", "--venv", f"--python={OLDEST_PYTHON}"]
    environment["PATH"] = f"{BIN}:{Path(python).parent}:{os.environ['PATH']}"
    part.check(f"sanity on Python {OLDEST_PYTHON}", *argv, "--requirements", cwd=tree, limit=900, **environment)


def play(part: Part, what: str, playbook: str, *argv: str, **more) -> bool:
    """Run one playbook of the collection on the part's hosts as a case."""
    return part.check(
        what, str(BIN / "ansible-playbook"), INVENTORY, f"accel.cluster.{playbook}", *argv, **{"limit": 600, **more}
    )


def new_hosts(part: Part, instance: str) -> bool:
    """Make hosts that nobody has worked on yet; tell whether they are there."""
    play(part, "old hosts go", "rehearsal.destroy", ACCEL_REHEARSAL_INSTANCE=instance)
    shutil.rmtree(ROOT / "sites" / instance, ignore_errors=True)
    return play(part, "new hosts come", "rehearsal.create", ACCEL_REHEARSAL_INSTANCE=instance)


def hosts_go(part: Part, instance: str) -> None:
    """Remove the hosts of a part, unless a person wants to look at them."""
    if not os.environ.get("ACCEL_KEEP_HOSTS"):
        play(part, "hosts go", "rehearsal.destroy", ACCEL_REHEARSAL_INSTANCE=instance)


def hosts(part: Part) -> None:
    """Making, stopping, killing and removing test hosts; machines that can't have any."""
    part.pytest("tests/rehearsal/test_hosts.py", "tests/rehearsal/test_machine.py", limit=900)


def molecule(part: Part) -> None:
    """New hosts, looked at in check mode first; then every role's scenario, verified by Testinfra."""
    # What Molecule believes of the hosts may be older than the hosts.
    shutil.rmtree(CACHE / "molecule-state", ignore_errors=True)
    if not new_hosts(part, MOLECULE):
        return
    # What is not there yet can't be looked at: that has to be said, for each service.
    would = (
        "would enable chrony and accel-hugepages, not installed yet",
        "would enable accel-check.timer, not installed yet",
    )
    play(part, "site --check --diff on new hosts", "site", "--check", "--diff", says=would)
    scenarios = sorted(path.parent.name for path in (ROOT / "extensions/molecule").glob("*/converge.yml"))
    results = {name: RESULTS / f"testinfra-{name}.xml" for name in scenarios}
    state = {"MOLECULE_EPHEMERAL_DIRECTORY": str(CACHE / "molecule-state"), "NO_COLOR": "1"}
    for name, result in results.items():
        argv = ["molecule", "test", "--scenario-name", name, "--destroy=never"]
        part.check(f"scenario {name}", *argv, limit=900, **state)
        # Molecule only warns when it finds no tests.
        if not result.exists() or not sum(count([result])):
            part.cases.append((f"testinfra {name}", "failed", "no test ran"))
    hosts_go(part, MOLECULE)


def drill(part: Part) -> None:
    """A rollout on new hosts, then every kind of fault."""
    run_drill(part, "-m", "not full", limit=2400)


def drill_full(part: Part) -> None:
    """The same, with every fault of every vendor."""
    run_drill(part, limit=4500)


def run_drill(part: Part, *selection: str, limit: float) -> None:
    """Roll out, accept, and run the drill, or what is selected of it."""
    if not new_hosts(part, DRILL):
        return
    instance = {"ACCEL_REHEARSAL_INSTANCE": DRILL}
    play(part, "site", "site", **instance)
    reason = "accept_reason='The state that the drill starts from'"
    play(part, "accept_baseline", "accept_baseline", "-e", reason, **instance)
    part.pytest("tests/drill", *selection, limit=limit, **instance)
    hosts_go(part, DRILL)


def newer_core(part: Part) -> None:
    """Unit tests on the newest ansible-core, which wants a newer Python."""
    found = find_python(NEWER_PYTHON)
    if not found:
        part.skip("newer ansible-core", f"no python{NEWER_PYTHON} on this machine")
        return
    home = CACHE / "newer-core"
    wanted = (ROOT / "requirements-newer-core.txt").read_text(encoding="utf-8")
    stamp = home / "made-from.txt"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        made = part.check("virtual environment", found, "-m", "venv", "--clear", str(home))
        pip = [str(home / "bin/pip"), "install", "-q", "-r", "requirements-newer-core.txt"]
        if not made or not part.check("packages", *pip, limit=900):
            return
        stamp.write_text(wanted, encoding="utf-8")
    part.pytest("tests/unit", limit=900, python=home / "bin/python")


def install(part: Part) -> None:
    """The built tarball and a git URL, each used from an empty folder."""
    part.pytest("tests/rehearsal/test_install.py", limit=900)


def vendor_tools(part: Part) -> None:
    """The vendors' own tools, as Debian has them, run without silicon."""
    part.pytest("tests/rehearsal/test_vendor_tools.py", limit=1200)


def fresh(part: Part) -> None:
    """The rehearsal from nothing, twice, against its time limits."""
    part.pytest("tests/rehearsal/test_fresh.py", limit=1500)


PARTS = (
    lint,
    unit,
    browser,
    sanity,
    sanity_oldest,
    hosts,
    molecule,
    drill,
    drill_full,
    newer_core,
    install,
    vendor_tools,
    fresh,
)


# --- Running and counting -------------------------------------------------------------------------------------


def version_of(python: Path) -> str:
    """Return "3.11" for an interpreter."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    return subprocess.run([str(python), "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def count(paths: list[Path]) -> tuple[int, int, int]:
    """Return passed, failed and skipped cases of JUnit XML files; a file that cannot be read is a failed case."""
    passed = failed = skipped = 0
    for path in paths:
        try:
            cases = list(ET.parse(path).iter("testcase"))
        except (ET.ParseError, OSError):
            failed += 1
            continue
        for case in cases:
            if case.find("failure") is not None or case.find("error") is not None:
                failed += 1
            elif case.find("skipped") is not None:
                skipped += 1
            else:
                passed += 1
    return passed, failed, skipped


def run_part(function) -> Part:
    """Run one part; a crash of this script inside it is a failed case, not a lost one."""
    part = Part(function.__name__)
    part.log.write_text("", encoding="utf-8")
    started = time.monotonic()
    print(f"{part.name}: started", flush=True)
    try:
        function(part)
    except Exception as exc:
        part.cases.append((part.name, "failed", f"{type(exc).__name__}: {exc}"))
    part.seconds = time.monotonic() - started
    part.write()
    print(f"{part.name}: {part.seconds:.0f} s", flush=True)
    return part


def failures() -> list[str]:
    """Return "part: case: first line" for each failed case in the results."""
    found = []
    for path in sorted(RESULTS.glob("*.xml")):
        try:
            cases = list(ET.parse(path).iter("testcase"))
        except ET.ParseError as exc:
            found.append(f"{path.name}: {exc}")
            continue
        for case in cases:
            for kind in ("failure", "error"):
                fault = case.find(kind)
                if fault is not None:
                    text = (fault.get("message") or fault.text or "").strip().splitlines()
                    found.append(f"{path.stem}: {case.get('name')}: {text[0] if text else ''}"[:300])
    return found


def main(words: list[str]) -> int:
    """Run the parts or lanes named, print the sum, return the exit status."""
    known = {function.__name__: function for function in PARTS}
    lanes = LANES.get(words[0], [words]) if words else []
    wrong = [name for lane in lanes for name in lane if name not in known]
    if not lanes or wrong:
        print(f"usage: run_tests.py {' | '.join(LANES)} | {' '.join(known)}\nunknown: {' '.join(wrong)}")
        return 2
    shutil.rmtree(RESULTS, ignore_errors=True)
    for folder in (LOGS, RESULTS):
        folder.mkdir(parents=True, exist_ok=True)
    done: list[Part] = []
    threads = [
        threading.Thread(target=lambda lane=lane: done.extend(run_part(known[name]) for name in lane)) for lane in lanes
    ]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except KeyboardInterrupt:
        for leader in list(RUNNING):
            end_group(leader)
        # The lanes would go on with their next part.
        os._exit(130)
    faults = failures()
    for part in done:
        if any(fault.startswith((f"{part.name}:", f"pytest-{part.name}:")) for fault in faults):
            print(f"\n--- {part.log.relative_to(ROOT)}, its end")
            print("\n".join(part.log.read_text(encoding="utf-8", errors="replace").splitlines()[-60:]))
    if faults:
        print("\nfailed:\n" + "\n".join(faults))
    print()
    for part in done:
        print(f"{part.name:14} {part.seconds:6.0f} s  {part.summary}")
    passed, failed, skipped = count(sorted(RESULTS.glob("*.xml")))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
