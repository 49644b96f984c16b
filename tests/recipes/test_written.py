"""Recipes on the module before optimizations: the same values, and no change where one would alter them."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

from hlofuse.ir import parse_module
from hlofuse.ir.copy import copy_module
from hlofuse.ir.graph import Module
from hlofuse.judge.judge import Judge
from hlofuse.reports.advice.catalogue import RECIPES
from hlofuse.reports.advice.written import WRITTEN, prepared

from .values import judged

ADD = """plus { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
"""


def module(lines: str) -> Module:
    return parse_module(f"HloModule m\n{ADD}ENTRY e {{\n  zero = f32[] constant(0)\n{lines}\n}}\n")


def onehot(labels: str, kind: str = "f32") -> str:
    """Labels below 6, and the one-hot array of as many classes."""
    return f"""  l = s32[{labels}]{{0}} iota(), iota_dimension=0
  two = s32[] constant(2)
  half = s32[{labels}]{{0}} broadcast(two), dimensions={{}}
  y = s32[{labels}]{{0}} divide(l, half)
  ys = s32[{labels},6]{{1,0}} broadcast(y), dimensions={{0}}
  k = s32[6]{{0}} iota(), iota_dimension=0
  ks = s32[{labels},6]{{1,0}} broadcast(k), dimensions={{1}}
  p = pred[{labels},6]{{1,0}} compare(ys, ks), direction=EQ
  hot = {kind}[{labels},6]{{1,0}} convert(p)
"""


def product(first: str, second: str, a: str, b: str, rows: int, columns: int) -> str:
    return f"""  ROOT r = f32[{rows},{columns}]{{1,0}} dot({first}, {second}),
    lhs_contracting_dims={{{a}}}, rhs_contracting_dims={{{b}}}"""


def distances(dimension: int = 2) -> str:
    sizes = [n for d, n in enumerate((4, 5, 3)) if d != dimension]
    return f"""  a = f32[4,3]{{1,0}} parameter(0)
  b = f32[5,3]{{1,0}} parameter(1)
  as = f32[4,5,3]{{2,1,0}} broadcast(a), dimensions={{0,2}}
  bs = f32[4,5,3]{{2,1,0}} broadcast(b), dimensions={{1,2}}
  d = f32[4,5,3]{{2,1,0}} subtract(as, bs)
  s = f32[4,5,3]{{2,1,0}} multiply(d, d)
  ROOT r = f32[{sizes[0]},{sizes[1]}]{{1,0}} reduce(s, zero), dimensions={{{dimension}}}, to_apply=plus"""


def picked(dimension: int) -> str:
    return f"""{onehot("8")}  v = f32[8,6]{{1,0}} parameter(0)
  m = f32[8,6]{{1,0}} multiply(hot, v)
  ROOT r = f32[{8 if dimension else 6}]{{0}} reduce(m, zero), dimensions={{{dimension}}}, to_apply=plus"""


def rows(count: int, of: int) -> str:
    return f"""  x = f32[{of},4]{{1,0}} parameter(0)
  w = f32[4,5]{{1,0}} parameter(1)
  i = s32[{count}]{{0}} iota(), iota_dimension=0
  y = f32[{of},5]{{1,0}} dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  t = f32[{of},5]{{1,0}} tanh(y)
  ROOT r = f32[{count},5]{{1,0}} gather(t, i), offset_dims={{1}}, collapsed_slice_dims={{0}},
    start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,5}}"""


def widened(kind: str) -> str:
    return f"""  a = {kind}[4,8]{{1,0}} parameter(0)
  b = {kind}[8,4]{{1,0}} parameter(1)
  x = f32[4,8]{{1,0}} convert(a)
  y = f32[8,4]{{1,0}} convert(b)
{product("x", "y", "1", "0", 4, 4)}"""


TABLE = "  t = f32[6,5]{1,0} parameter(0)\n"
CASES = {
    "take-not-onehot": (
        onehot("8") + TABLE + product("hot", "t", "1", "0", 8, 5),
        onehot("6") + TABLE + product("hot", "t", "0", "0", 6, 5),  # sums rows, as the gradient does
    ),
    "take-not-onehot (second operand)": (
        onehot("8") + TABLE + product("t", "hot", "0", "1", 5, 8),
        onehot("6") + TABLE + product("t", "hot", "0", "0", 5, 6),
    ),
    "multiply-narrow-sum-wide": (widened("bf16"), widened("s8")),
    "distances-by-a-product": (distances(), distances(1)),
    "pick-the-label": (picked(1), picked(0)),
    "take-first": (rows(4, 16), rows(5, 16)),
}


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(timeout=120) as process:
        yield process


def changed(name: str, text: str) -> tuple[Module, Module, int]:
    """The module as it is tried, the same with the recipe, and the number of places."""
    before = prepared(module(text))
    after = copy_module(before)
    opcode, rewrite = WRITTEN[name.partition(" ")[0]]
    places = [x for c in after.computations for x in c.post_order() if x.opcode == opcode]
    return before, after, sum(map(rewrite, places))


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs jax (Python 3.12 or newer)")
@pytest.mark.parametrize("name", CASES)
def test_the_values_are_the_same(name: str, judge: Judge) -> None:
    before, after, places = changed(name, CASES[name][0])
    assert places == 1
    judgement = judged(judge, before, after)
    assert judgement.verdict == "same", judgement.reason


@pytest.mark.parametrize("name", CASES)
def test_nothing_changes_where_the_values_would(name: str) -> None:
    assert changed(name, CASES[name][1])[2] == 0


def test_each_has_a_page_and_a_case() -> None:
    assert {name.partition(" ")[0] for name in CASES} == set(WRITTEN)
    assert set(WRITTEN) <= {r.name for r in RECIPES}
