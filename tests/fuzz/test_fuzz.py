# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Damaged answers of tools: no parser breaks, answers in another shape, or takes long: the short part."""

from __future__ import annotations

import inspect
import os
import pkgutil
import re
from random import Random

import mutations
import pytest
import shapes
import targets
from ansible_collections.accel.cluster.plugins.module_utils._accel import model, registry, vendors
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

EXAMPLES = int(os.environ.get("ACCEL_FUZZ_EXAMPLES", "150"))
# What a parser is called, or what the text that it takes is called.
VERBS = ("parse", "read", "normalise", "identif")
NAMES = (*targets.TEXT_PARAMETERS, "value", "word", "line", "address", "raw", "data", "lines")


# Derandomised: the same texts on every run, so that only a change of the code can turn it. `make fuzz` looks further.
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def survives(name: str, data) -> None:
    """Mutate one text, and hold what the parser makes of it against what it declares."""
    rng = data.draw(st.randoms(use_true_random=False))
    mutated = mutations.mutate(rng, targets.sources(name).pick(rng))
    wrong = targets.targets()[name].check(mutated)
    assert not wrong, f"{name}: {wrong}\n{mutated[:2000]!r}"


@pytest.mark.parametrize("name", targets.targets())
def test_a_damaged_answer_is_survived(name):
    survives(name)


@pytest.mark.parametrize("name", targets.targets())
def test_what_is_not_damaged_is_survived_too(name):
    told = targets.sources(name)
    assert told.good, "nothing to start from: the mutations would only make noise"
    for text in (*told.good, *told.other, "", "\n", "\0"):
        assert not targets.targets()[name].check(text)


# A query is made of the parsers, and costs a hundred times as much.
@pytest.mark.parametrize("name", [name for name in targets.targets() if not name.endswith(".query")])
def test_a_part_that_never_ends_is_read_in_no_time(name):
    """An expression that tries every way to part a run of blanks shows itself only at a long run in the right place."""
    rng = Random(name)
    for text in targets.sources(name).good[:6]:
        parts = list(re.finditer(r"\S+|\s+", text))
        for part in rng.sample(parts, min(16, len(parts))):
            for unit in dict.fromkeys((part[0], part[0][0], " ")):
                long = text[: part.start()] + unit * (20_000 // len(unit)) + text[part.end() :]
                wrong = targets.targets()[name].check(long)
                assert not wrong, f"{name}: {wrong}: {unit!r} {text[max(0, part.start() - 80) : part.end() + 80]!r}"


def test_every_parser_is_a_target():
    known = {*targets.targets(), *targets.EXEMPT}
    missing = []
    for name, function in targets.functions():
        given_first = next(iter(inspect.signature(function).parameters.values()), None)
        verb = name.split(".")[1].startswith(VERBS)
        if given_first is None or given_first.annotation not in ("str", "bytes", "str | None", "object"):
            continue
        if name not in known and (verb or given_first.name in NAMES):
            missing.append(name)
    # A parser of a tool's text needs nothing but a first parameter called `output`; others go into targets.TABLE.
    assert missing == []


def test_every_vendor_is_asked():
    found = {name.split(".")[0] for name in targets.targets()}
    assert set(registry.VENDORS) <= found
    for info in pkgutil.iter_modules(vendors.__path__):
        assert info.name in found or info.name == "base", f"no parser of vendors/{info.name}.py is fuzzed"


def test_what_is_exempt_is_there():
    assert set(targets.EXEMPT) <= {name for name, _function in targets.functions()}


@pytest.mark.parametrize("kind", mutations.ALL + mutations.HEAVY, ids=lambda kind: kind.__name__)
def test_every_mutation_takes_every_text(kind):
    changed = 0
    for seed in range(200):
        for text in (
            "",
            "a",
            "\n",
            '{"a": 1, "b": null}',
            "<a>12</a>",
            "| 0  OK | <tag>12</tag> | N/A |\nGPU 0: name\n",
        ):
            changed += kind(Random(seed), text) != text
    assert changed > 100


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("1", int),
        (True, int),
        (1, bool),
        (1, float),
        (float("nan"), float),
        ("\ud800", str),
        ({"a": "\ud800"}, dict),
        ([1, "a"], list[int]),
        ({1: 2}, dict[str, int]),
        ((1, 2, 3), tuple[int, int]),
        (None, str),
        (1, str | None),
        (model.Device(pci_address=1), model.Device),
        (model.Device(link=None), model.Device),
        (object(), object),
    ],
)
def test_another_shape_is_seen(value, hint):
    assert shapes.problem(value, hint)


def test_the_right_shape_is_none():
    assert shapes.problem(model.Observation(devices=[model.Device(index=1)]), model.Observation) is None
    assert shapes.problem({(1, 2): None}, dict[tuple[int, int], int | None]) is None


def test_a_parser_that_does_not_end_is_stopped():
    def endless(_text):
        while True:
            pass

    assert "no answer" in targets.Target("endless", endless, None).check("x")
