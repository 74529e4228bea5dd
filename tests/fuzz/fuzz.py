# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many mutations of every parser's input (`make fuzz`).

    fuzz.py                           200,000 mutations of each target
    fuzz.py --count 5000 nvidia. amd  fewer, of the targets whose names begin so
    fuzz.py --jobs 2                  two targets at a time
    fuzz.py --engine atheris ascend.read_table
                                      guided by what the code reaches, where atheris is installed (pip install atheris)

Prints a line a target: mutations, seconds, mutations a second, and what broke. An input that breaks a parser is made as
short as it goes and kept in .cache/fuzz/<target>-<number>.txt; it belongs into the tests of the parser. Exit status 1
when anything broke. The seed is printed; --seed repeats a run.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import random
import re
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from checkout import ROOT, make_importable

make_importable()

FOUND = ROOT / ".cache/fuzz"
COUNT = 200_000
# Hypothesis costs a millisecond an example, most parsers a hundredth of that.
BATCH = 100
# So many different ways to break are enough to look at.
KINDS = 5


class InTurn:
    """A pool without threads: here no tool waits for anything, and starting threads takes longer than a query."""

    def __init__(self, max_workers: int) -> None:
        self.map = map

    def __enter__(self) -> InTurn:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def submit(self, action) -> concurrent.futures.Future:
        """Run the action now."""
        done: concurrent.futures.Future = concurrent.futures.Future()
        done.set_result(action())
        return done


def kind_of(wrong: str) -> str:
    """Return what a complaint is about, without the values in it."""
    return re.sub(r"'[^']*'|\"[^\"]*\"|\[[^\]]*\]|\d+", "#", wrong)[:120]


def shortened(target, text: str, tries: int = 3000, seconds: float = 20) -> str:
    """Return a shorter text that breaks the parser in the same way: parts are left out as long as it does."""
    kind = kind_of(target.check(text) or "")
    size = max(1, len(text) // 2)
    end = time.monotonic() + seconds
    while size and tries > 0:
        at = 0
        while at < len(text) and tries > 0 and time.monotonic() < end:
            tries -= 1
            without = text[:at] + text[at + size :]
            if kind_of(target.check(without) or "") == kind:
                text = without
            else:
                at += size
        size //= 2
        if time.monotonic() >= end:
            break
    return text


def keep(target, text: str, broken: dict[str, str], wrong: str) -> None:
    """Write down an input that breaks the target, and say so."""
    kind = kind_of(wrong)
    if kind in broken or len(broken) >= KINDS:
        return
    text = shortened(target, text)
    wrong = target.check(text) or wrong
    broken[kind] = wrong
    FOUND.mkdir(parents=True, exist_ok=True)
    path = FOUND / f"{target.name}-{len(broken)}.txt"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    print(f"  {wrong}\n  {text[:300]!r}\n  kept in {path.relative_to(ROOT)}", flush=True)


def with_hypothesis(name: str, count: int, seed: int) -> dict[str, str]:
    """Run ``count`` mutations of one target; return what broke, by kind."""
    import hypothesis
    import mutations
    import targets
    from hypothesis import strategies as st

    concurrent.futures.ThreadPoolExecutor = InTurn
    target, told = targets.targets()[name], targets.sources(name)
    broken: dict[str, str] = {}
    done = [0]

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=-(-count // BATCH),
        deadline=None,
        database=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(st.integers(0, 2**64 - 1))
    def batch(number: int) -> None:
        rng = random.Random(number)
        for _unused in range(min(BATCH, count - done[0])):
            text = mutations.mutate(rng, told.pick(rng))
            wrong = target.check(text)
            done[0] += 1
            if wrong:
                keep(target, text, broken, wrong)

    started = time.monotonic()
    batch()
    seconds = time.monotonic() - started
    rate = done[0] / max(seconds, 1e-9)
    state = f"{len(broken)} BROKEN" if broken else "ok"
    print(f"{target.name:32} {done[0]:9,} mutations {seconds:7.1f} s {rate:9,.0f}/s  {state}", flush=True)
    return broken


def with_atheris(name: str, count: int, seed: int) -> None:
    """Run one target under libFuzzer; it ends the process itself."""
    try:
        import atheris
    except ImportError:
        sys.exit("atheris is not installed; it has wheels for some versions of Python only: pip install atheris")
    with atheris.instrument_imports(include=["ansible_collections"]):
        import targets
    target = targets.targets()[name]
    corpus = FOUND / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, text in enumerate(targets.sources(name).good):
        (corpus / f"source-{number}").write_bytes(text.encode("utf-8", "surrogatepass"))

    def one(data: bytes) -> None:
        wrong = target.check(data.decode("utf-8", "replace"))
        if wrong:
            raise RuntimeError(f"{name}: {wrong}")

    options = [f"-runs={count}", f"-seed={seed or 1}", f"-artifact_prefix={FOUND}/{name}-", "-max_len=65536"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], one)
    atheris.Fuzz()


def main() -> int:
    """Fuzz what is asked for; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="beginnings of names of targets; all when left out")
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--engine", choices=("hypothesis", "atheris"), default="hypothesis")
    options = parser.parse_args()
    if options.engine == "atheris":
        if len(options.names) != 1:
            parser.error("atheris takes one target at a time")
        with_atheris(options.names[0], options.count, options.seed)
        return 0
    import targets

    chosen = [name for name in targets.targets() if name.startswith(tuple(options.names or [""]))]
    if not chosen:
        parser.error(f"no such target; there are {', '.join(targets.targets())}")
    print(f"seed {options.seed}, {options.count:,} mutations a target, {len(chosen)} targets", flush=True)
    started = time.monotonic()
    with ProcessPoolExecutor(options.jobs, max_tasks_per_child=1) as pool:
        told = pool.map(partial(with_hypothesis, count=options.count, seed=options.seed), chosen)
        broken = dict(zip(chosen, told))
    seconds = time.monotonic() - started
    total = options.count * len(chosen)
    bad = {name: kinds for name, kinds in broken.items() if kinds}
    print(
        f"{total:,} mutations in {seconds:.0f} s, {total / seconds:,.0f}/s; {len(bad)} of {len(chosen)} targets broken"
    )
    for name, kinds in bad.items():
        for wrong in kinds.values():
            print(f"{name}: {wrong[:300]}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
