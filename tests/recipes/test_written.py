"""Recipes on the module before optimizations: the same values, and no change where one would alter them."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Iterator
from functools import partial, reduce
from pathlib import Path
from random import Random

import pytest

from hlofuse.ir import parse_module, print_module
from hlofuse.ir.copy import copy_module
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.shape_check import first_misfit
from hlofuse.judge.judge import Judge
from hlofuse.reports.advice import chunks
from hlofuse.reports.advice.catalogue import RECIPES, WRITTEN
from hlofuse.reports.advice.written import Numbers, numbers, prepared
from hlofuse.reports.verdict.candidates import _rewrite
from ..running import find
from .values import judged

ADD = """plus { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
"""


def module(lines: str) -> Module:
    if lines.startswith("HloModule"):
        return parse_module(lines)
    above = ADD.replace("plus", "above").replace("f32[] add(a, b)", "pred[] compare(a, b), direction=GE")
    return parse_module(f"HloModule m\n{ADD}{above}ENTRY e {{\n  zero = f32[] constant(0)\n{lines}\n}}\n")


CASES: dict[str, tuple[str, ...]] = {}
for section in Path(__file__).with_name("written.hlo").read_text().split("\n// CASE ")[1:]:
    title, text = section.split("\n", 1)
    text, *others = text.replace("\n\n", "").removesuffix("\n").split("\n// OTHERWISE ")
    CASES[title] = (text,)
    for other in others:
        pairs = [pair.split(" => ") for pair in other.replace("\\n", "\n").split(" AND ")]
        CASES[title] += (reduce(lambda found, pair: found.replace(pair[0], pair[1]), pairs, text),)


SMALL_ENOUGH = chunks._LEAST
pytestmark = pytest.mark.usefixtures("small_parts")


def rewritten(name: str, after: Module) -> int:
    """The number of places at which the recipe changed the module."""
    return len(_rewrite(after, name.partition(" ")[0]))


def changed(name: str, text: str | Module) -> tuple[Module, Module, int]:
    """The module as it is tried, the same with the recipe, whose shapes fit, and the number of places."""
    before = prepared(module(text) if isinstance(text, str) else text)
    places = rewritten(name, after := copy_module(before))
    assert first_misfit(after) is None
    assert not places or print_module(after) != print_module(before)
    return before, after, places


def keeps_values_on_a_cpu(name: str) -> bool:
    """The recipe neither loses digits nor calls a library that only a GPU has."""
    rewriting = WRITTEN[name.partition(" ")[0]]
    return not rewriting.rounds and not rewriting.rough


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs jax (Python 3.12 or newer)")
@pytest.mark.parametrize("name", [n for n in CASES if keeps_values_on_a_cpu(n)])
def test_the_values_are_the_same(name: str, judge: Judge) -> None:
    before, after, places = changed(name, CASES[name][0])
    assert places
    judgement = judged(judge, before, after)
    assert judgement.verdict == "same", judgement.reason


@pytest.mark.parametrize("name", CASES)
def test_a_second_look_finds_nothing_more(name: str) -> None:
    after = changed(name, CASES[name][0])[1]
    assert not rewritten(name, prepared(copy_module(after)))


COUNTERPARTS = {
    "add": "subtract", "subtract": "add", "multiply": "add", "divide": "multiply", "maximum": "minimum",
    "minimum": "maximum", "and": "or", "or": "and", "exponential": "tanh", "tanh": "exponential",
}  # fmt: skip
Edit = tuple[str, Callable[[], Module]]


def edits_of(original: Module) -> Iterator[Edit]:
    """Operations, each with another opcode, or with an earlier value for one of its operands."""

    def edited(at: str, what: int | None, new: str) -> Module:
        module = copy_module(original)
        if what is None:
            find(module, at).opcode = new
        else:
            find(module, at).replace_operand(what, find(module, new))
        return module

    for computation in original.computations:
        earlier: list[Instruction] = []
        for x in computation.post_order():
            if new := COUNTERPARTS.get(x.opcode):
                yield f"{x.name} opcode {new}", partial(edited, x.name, None, new)
            for k, operand in enumerate(x.operands if x.opcode not in ("tuple", "while") else ()):
                others = (i.name for i in earlier if i.shape == operand.shape and i is not operand)
                if other := next(others, None):
                    yield f"{x.name} {k} {other}", partial(edited, x.name, k, other)
            earlier.append(x)


def constants_of(original: Module) -> Iterator[Edit]:
    text, other = print_module(original), {"EQ": "LE", "LE": "LT", "LT": "LE", "GE": "GT"}
    for found in re.finditer(r"constant\((-?\d+)\)|direction=(EQ|LE|LT|GE)", text):
        new = f"constant({int(found[1]) + 1})" if found[1] else f"direction={other[found[2]]}"
        yield new, partial(parse_module, text[: found.start()] + new + text[found.end() :])


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs jax (Python 3.12 or newer)")
@pytest.mark.parametrize("name", [n for n in CASES if " while(" not in CASES[n][0]])
def test_the_values_are_the_same_with_another_number_operation_or_operand(name: str, judge: Judge) -> None:
    """Either nothing changes or the values stay: what a recipe relies on it has looked at."""
    original = module(CASES[name][0])
    edits = list(edits_of(original))
    for edit, edited in [*constants_of(original), *Random(name).sample(edits, min(len(edits), 2))]:
        before, after, places = changed(name, edited())
        if places and keeps_values_on_a_cpu(name):
            judgement = judged(judge, before, after)
            assert judgement.verdict in ("same", "cannot tell"), f"{edit}: {judgement.reason}"


@pytest.mark.parametrize("name", CASES)
def test_nothing_changes_where_the_values_would(name: str) -> None:
    assert [changed(name, text)[2] for text in CASES[name][1:]] == [0] * len(CASES[name][1:])


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("iota(), iota_dimension=0", Numbers(0, (), 1, 1)),
        ("divide(i, two)", Numbers(0, (), 1, 2)),
        ("add(four, multiply(i, two))", Numbers(4, (), 2, 1)),
        ("add(four, divide(i, two))", Numbers(4, (), 1, 2)),
        ("subtract(two, divide(i, four))", Numbers(2, (), -1, 4)),
        ("multiply(i, i)", None),
        ("remainder(i, four)", None),
        ("broadcast(c), dimensions={}", None),
    ],
)
def test_numbers_of_a_formula(formula: str, expected: Numbers | None) -> None:
    inner, opcode = re.search(r", (\w+\(.*?\))\)", formula), ""
    if inner:
        formula, opcode = formula.replace(inner[1], "inner"), f"  inner = s32[8]{{0}} {inner[1]}\n"
    constants = "".join(
        f"  c{k} = s32[] constant({k})\n  {name} = s32[8]{{0}} broadcast(c{k}), dimensions={{}}\n"
        for k, name in ((2, "two"), (4, "four"))
    )
    lines = f"  c = s32[] constant(1)\n{constants}  i = s32[8]{{0}} iota(), iota_dimension=0\n{opcode}"
    assert numbers(module(f"{lines}  ROOT r = s32[8]{{0}} {formula}").entry.root) == expected


@pytest.mark.parametrize(("rows", "places"), [(4096, 1), (4095, 0)])
def test_an_array_of_64_mib_is_computed_in_parts(
    rows: int, places: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "_LEAST", SMALL_ENOUGH)
    text = CASES["compute-in-parts (the largest of each row)"][0]
    text = re.sub(r"\b64,", f"{rows},", text).replace("5000", "4096")
    assert changed("compute-in-parts", text)[2] == places


def test_a_loop_that_only_counts_down_is_written_without_an_order() -> None:
    """As `jax.vmap` writes the gradient; a gather or a reverse of what is read would be a kernel."""
    opcodes = [
        {x.opcode for x in changed(f"vmap-not-map ({k})", CASES[f"vmap-not-map ({k})"][0])[1].entry}
        for k in ("backward", "read backward")
    ]
    assert opcodes[0].isdisjoint({"gather", "reverse"})
    assert "reverse" in opcodes[1]


def test_a_gather_that_repeats_the_whole_array_stays() -> None:
    gather = """f32[2,5,4] gather(x, none), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={},
    index_vector_dim=1, slice_sizes={5,4}"""
    lines = f"  x = f32[5,4] parameter(0)\n  none = s32[2,0] constant({{ {{}}, {{}} }})\n  ROOT r = {gather}"
    assert prepared(module(lines)).entry.root.opcode == "gather"


def test_each_has_a_page_and_a_case() -> None:
    assert {name.partition(" ")[0] for name in CASES} == set(WRITTEN)
    assert set(WRITTEN) <= {r.name for r in RECIPES}
