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


def labels_of_rows(root: str) -> str:
    """Three rows of eight labels, one-hot in six classes."""
    return f"""  l = s32[3,8]{{1,0}} iota(), iota_dimension=1
  y = s32[3,8]{{1,0}} popcnt(l)
  ys = s32[3,6,8]{{2,1,0}} broadcast(y), dimensions={{0,2}}
  k = s32[3,6,8]{{2,1,0}} iota(), iota_dimension=1
  p = pred[3,6,8]{{2,1,0}} compare(ys, k), direction=EQ
  hot = f32[3,6,8]{{2,1,0}} convert(p)
  v = f32[3,8,6]{{2,1,0}} parameter(0)
  ROOT r = {root}"""


COUNTS = "f32[3,6] reduce(hot, zero), dimensions={2}, to_apply=plus"
HEADS = """lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}"""


def product(first: str, second: str, a: str, b: str, rows: int, columns: int) -> str:
    return f"""  ROOT r = f32[{rows},{columns}]{{1,0}} dot({first}, {second}),
    lhs_contracting_dims={{{a}}}, rhs_contracting_dims={{{b}}}"""


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


def last_rows(count: int, of: int, part: str) -> str:
    """Rows of a product of normalized rows with weights, heads apart and transposed."""
    return f"""  x = f32[2,{of},4]{{2,1,0}} parameter(0)
  w = f32[4,6]{{1,0}} parameter(1)
  at = s32[] constant(2)
  none = s32[] constant(0)
  squares = f32[2,{of},4]{{2,1,0}} multiply(x, x)
  sums = f32[2,{of}]{{1,0}} reduce(squares, zero), dimensions={{2}}, to_apply=plus
  spread = f32[2,{of},4]{{2,1,0}} broadcast(sums), dimensions={{0,1}}
  normed = f32[2,{of},4]{{2,1,0}} divide(x, spread)
  y = f32[2,{of},6]{{2,1,0}} dot(normed, w), lhs_contracting_dims={{2}}, rhs_contracting_dims={{0}}
  heads = f32[2,{of},3,2]{{3,2,1,0}} reshape(y)
  t = f32[2,3,{of},2]{{3,2,1,0}} transpose(heads), dimensions={{0,2,1,3}}
  ROOT r = f32[2,3,{count},2]{{3,2,1,0}} {part}"""


END, AT = "slice(t), slice={{[0:2],[0:3],[{}:{}:2],[0:2]}}", "dynamic-slice(t, none, none, at, none)"


def loop(body: str, carried: str = "f32[3]{0}", rows: str = "f32[5,2]{1,0}") -> str:
    """A loop over five rows `x` with weights `w`, a carried `h`, and an array that each iteration writes."""
    state = f"(s32[], {carried}, {rows}, f32[5,2]{{1,0}}, f32[2,3]{{1,0}})"
    return f"""HloModule m
{ADD}test {{ t = {state} parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(5)
  ROOT l = pred[] compare(i, n), direction=LT }}
body {{ t = {state} parameter(0)
  i = s32[] get-tuple-element(t), index=0
  h = {carried} get-tuple-element(t), index=1
  ys = {rows} get-tuple-element(t), index=2
  xs = f32[5,2]{{1,0}} get-tuple-element(t), index=3
  w = f32[2,3]{{1,0}} get-tuple-element(t), index=4
  one = s32[] constant(1)
  c = f32[] constant(0)
  none = s32[] constant(0)
  next = s32[] add(i, one)
  part = f32[1,2]{{1,0}} dynamic-slice(xs, i, none), dynamic_slice_sizes={{1,2}}
  x = f32[2]{{0}} reshape(part)
{body}
  ROOT r = {state} tuple(next, new, out, xs, w) }}
ENTRY e {{
  zero = f32[] constant(0)
  first = s32[] constant(0)
  h = {carried} parameter(0)
  empty = {rows} broadcast(zero), dimensions={{}}
  xs = f32[5,2]{{1,0}} parameter(1)
  w = f32[2,3]{{1,0}} parameter(2)
  s = {state} tuple(first, h, empty, xs, w)
  l = {state} while(s), condition=test, body=body
  end = {carried} get-tuple-element(l), index=1
  all = {rows} get-tuple-element(l), index=2
  sums = f32[2]{{0}} reduce(all, zero), dimensions={{0}}, to_apply=plus
  ROOT t = ({carried}, {rows}, f32[2]{{0}}) tuple(end, all, sums) }}
"""


GATHERED = """  k = s32[2]{0} convert(x)
  rows = f32[2,3]{1,0} gather(w, k), offset_dims={1}, collapsed_slice_dims={0},
    start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}
  k0 = s32[1]{0} slice(k), slice={[0:1]}
  place = s32[] reshape(k0)
  one_of_w = f32[1,3]{1,0} dynamic-slice(w, place, none), dynamic_slice_sizes={1,3}
  sum = f32[3]{0} reduce(rows, c), dimensions={0}, to_apply=plus
  one_row = f32[3]{0} reshape(one_of_w)
  own = f32[1]{0} dynamic-slice(x, place), dynamic_slice_sizes={1}
  part_of_w = f32[1,2]{1,0} dynamic-slice(w, place, place), dynamic_slice_sizes={1,2}
  part_sum = f32[1]{0} reduce(part_of_w, c), dimensions={1}, to_apply=plus
  product = f32[1]{0} multiply(own, part_sum)
  value = f32[] reshape(product)
  values = f32[3]{0} broadcast(value), dimensions={}
  rest = f32[3]{0} add(one_row, values)
  p = f32[3]{0} add(sum, rest)
  small = f32[2]{0} sort(x), dimensions={0}, to_apply=less
  numbers = s32[2]{0} iota(), iota_dimension=0
  weights = f32[1,2]{1,0} slice(w), slice={[0:1], [0:2]}
  filter = f32[2,1,1]{2,1,0} reshape(weights)
  image = f32[1,1,2]{2,1,0} reshape(x)
  filtered = f32[2,1,1]{2,1,0} convolution(image, filter), window={size=2 pad=1_0}, dim_labels=fb0_0io->0bf
  found = (f32[2]{0}, s32[2]{0}) sort(x, numbers), dimensions={0}, to_apply=less_of_two
  order = s32[2]{0} get-tuple-element(found), index=1
  order_value = f32[2]{0} convert(order)
  both = f32[2]{0} add(small, order_value)
  response = f32[2]{0} reshape(filtered)
  y = f32[2]{0} add(both, response)
"""
LESS = """less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT l = pred[] compare(a, b), direction=LT }
less_of_two { a = f32[] parameter(0)
  b = f32[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  ROOT l = pred[] compare(a, b), direction=LT }
"""
WRITES = """  row = f32[1,2]{1,0} reshape(y)
  out = f32[5,2]{1,0} dynamic-update-slice(ys, row, i, none)"""
PRODUCT = """  two = f32[2,2]{1,0} broadcast(x), dimensions={1}
  q = f32[2,3]{1,0} dot(two, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  p = f32[3]{0} reduce(q, c), dimensions={0}, to_apply=plus
"""

AT_PLACES = """  whole = s32[2]{{0}} convert(x)
  k = s32[2,1]{{1,0}} reshape(whole)
  y = f32[2]{{0}} {}
  new = f32[3]{{0}} scatter(h, k, y), update_window_dims={{}}, inserted_window_dims={{0}},
    scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=plus
"""


def recurrence(opcode: str) -> str:
    return f"""  y = f32[2]{{0}} tanh(x)
  a = f32[2]{{0}} {opcode}(y, h)
  new = f32[2]{{0}} add(a, x)
{WRITES.replace("y)", "new)")}"""


def recurrence_of_gradient(opcode: str) -> str:
    return f"""  y = f32[2]{{0}} tanh(x)
  sum = f32[2]{{0}} add(h, x)
  new = f32[2]{{0}} {opcode}(y, sum)
{WRITES.replace("i, none", "j, none").replace("y)", "sum)")}"""


def diagonal(dimension: int) -> str:
    """A diagonal matrix of 4, on the side whose columns the product keeps, or a product along one of them."""
    return f"""  a = s32[4,4]{{1,0}} iota(), iota_dimension=0
  b = s32[4,4]{{1,0}} iota(), iota_dimension={dimension}
  p = pred[4,4]{{1,0}} compare(a, b), direction=EQ
  v = f32[4]{{0}} parameter(0)
  vs = f32[4,4]{{1,0}} broadcast(v), dimensions={{0}}
  no = f32[4,4]{{1,0}} broadcast(zero), dimensions={{}}
  d = f32[4,4]{{1,0}} select(p, vs, no)
  x = f32[5,4]{{1,0}} parameter(1)
{product("x", "d", "1", "0", 5, 4)}"""


def power(exponent: float, form: str = "n") -> str:
    return f"""  x = f32[8]{{0}} parameter(0)
  y = f32[8]{{0}} logistic(x)
  n = f32[] constant({exponent})
  m = f32[] negate(n)
  ns = f32[8]{{0}} broadcast({form}), dimensions={{}}
  ROOT p = f32[8]{{0}} power(y, ns)"""


def sorting(text: str, keys: str = "f32[16]{0}") -> str:
    less = """less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  ROOT l = pred[] compare(a, b), direction=LT }
"""
    less = (
        less if "iota" in text else less.replace("  i = s32[] parameter(2)\n  j = s32[] parameter(3)\n", "")
    )
    return f"HloModule m\n{less}ENTRY e {{\n  x = {keys} parameter(0)\n{text}\n}}\n"


def sorted_end(width: int) -> str:
    return sorting(f"""  s = f32[16]{{0}} sort(x), dimensions={{0}}, to_apply=less
  ROOT r = f32[{width}]{{0}} slice(s), slice={{[{16 - width}:16]}}""")


def sorted_places(first: int, numbers: str = "iota(), iota_dimension=0") -> str:
    """The greatest of sorted columns but those before `first`, and their places."""
    return sorting(
        f"""  n = s32[16,2]{{1,0}} {numbers}
  s = (f32[16,2]{{1,0}}, s32[16,2]{{1,0}}) sort(x, n), dimensions={{0}}, to_apply=less  // iota
  v = f32[16,2]{{1,0}} get-tuple-element(s), index=0
  p = s32[16,2]{{1,0}} get-tuple-element(s), index=1
  few = f32[2,2]{{1,0}} slice(v), slice={{[14:16], [0:2]}}
  few_places = s32[{16 - first},2]{{1,0}} slice(p), slice={{[{first}:16], [0:2]}}
  ROOT r = (f32[2,2]{{1,0}}, s32[{16 - first},2]{{1,0}}) tuple(few, few_places)""",
        "f32[16,2]{1,0}",
    )


def lanes(count: int, join: str) -> str:
    """Products of parts of `a` and `b`, joined or added."""
    parts = "".join(
        f"""  a{k} = f32[2,4]{{1,0}} slice(a), slice={{[{2 * k}:{2 * k + 2}], [0:4]}}
  b{k} = f32[1,4,3]{{2,1,0}} slice(b), slice={{[{k}:{k + 1}], [0:4], [0:3]}}
  c{k} = f32[4,3]{{1,0}} reshape(b{k})
  p{k} = f32[2,3]{{1,0}} dot(a{k}, c{k}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
"""
        for k in range(count)
    )
    return f"""  a = f32[12,4]{{1,0}} parameter(0)
  b = f32[4,4,3]{{2,1,0}} parameter(1)
{parts}  {join}"""


JOINED = "ROOT r = f32[2,9]{1,0} concatenate(p0, p1, p2), dimensions={1}"


def scattered(indices: str, rows: int, combine: str = "plus") -> str:
    """A scatter of rows into 12 at indices computed from `i`, which counts."""
    return f"""  x = f32[12,2]{{1,0}} parameter(0)
  u = f32[{rows},2]{{1,0}} parameter(1)
  i = s32[{rows}]{{0}} iota(), iota_dimension=0
  three = s32[] constant(3)
  c = s32[{rows}]{{0}} broadcast(three), dimensions={{}}
  j = s32[{rows}]{{0}} {indices}
  js = s32[{rows},1]{{1,0}} reshape(j)
  ROOT r = f32[12,2]{{1,0}} scatter(x, js, u), update_window_dims={{1}}, inserted_window_dims={{0}},
    scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply={combine}"""


def columns(rows: int) -> str:
    """A scatter of columns that follow each other."""
    text = scattered("add(i, c)", rows).replace(f"f32[{rows},2]", f"f32[2,{rows}]")
    text = text.replace("f32[12,2]", "f32[2,12]").replace("{1}, inserted_window", "{9}, inserted_window")
    return text.replace("dims={0}", "dims={1}").replace("{9}", "{0}")


def written(places: tuple[int, ...]) -> str:
    lines, last = "  x0 = f32[8,2]{1,0} parameter(0)\n  z = s32[] constant(0)\n", len(places)
    for k, place in enumerate(places, 1):
        lines += f"""  p{k} = s32[] constant({place})
  v{k} = f32[1,2]{{1,0}} parameter({k})
  {"ROOT " if k == last else ""}x{k} = f32[8,2]{{1,0}} dynamic-update-slice(x{k - 1}, v{k}, p{k}, z)
"""
    return lines


def window(read: str, roll: str = "") -> str:
    """A window of four rows that shifts by one in each of five iterations, and what is read of it."""
    return loop(
        f"""  rest = f32[3,2]{{1,0}} slice(h), slice={{[1:4],[0:2]}}
{roll or "  new = f32[4,2]{1,0} concatenate(rest, part), dimensions={0}"}
{read}
{WRITES}""",
        "f32[4,2]{1,0}",
    )


SUMMED = "  y = f32[2]{0} reduce(new, c), dimensions={0}, to_apply=plus"
WEIGHED = """  k = f32[4,2]{1,0} iota(), iota_dimension=0
  m = f32[4,2]{1,0} multiply(new, k)
  y = f32[2]{0} reduce(m, c), dimensions={0}, to_apply=plus"""


def one_row(first: int, last: int) -> str:
    return f"""  o = f32[{last - first},2]{{1,0}} slice(new), slice={{[{first}:{last}],[0:2]}}
  y = f32[2]{{0}} reduce(o, c), dimensions={{0}}, to_apply=plus"""


def rolled(place: int) -> str:
    return f"""  first = f32[1,2]{{1,0}} slice(h), slice={{[0:1],[0:2]}}
  turned = f32[4,2]{{1,0}} concatenate(rest, first), dimensions={{0}}
  place = s32[] constant({place})
  new = f32[4,2]{{1,0}} dynamic-update-slice(turned, part, place, none)"""


def table(value: str, read: str = "h") -> str:
    """A carried table that each iteration reads at one place, before or after it writes another."""
    return loop(
        f"""  one_x = f32[1]{{0}} slice(x), slice={{[0:1]}}
{"" if read == "new" else "  v = f32[1]{0} dynamic-slice(h, next), dynamic_slice_sizes={1}"}
  sum = f32[1]{{0}} add({value}, one_x)
  new = f32[8]{{0}} dynamic-update-slice(h, sum, i)
{"  v = f32[1]{0} dynamic-slice(new, next), dynamic_slice_sizes={1}" if read == "new" else ""}
  w1 = f32[] reshape({"v" if read == "new" else "one_x"})
  y = f32[2]{{0}} broadcast(w1), dimensions={{}}
{WRITES}""",
        "f32[8]{0}",
    )


def states(*opcodes: str) -> str:
    """A loop that carries arrays of one shape, each through its own operation, divided by its sum."""
    numbers = range(len(opcodes))
    state = f"(s32[], {', '.join('f32[3]{0}' for _ in numbers)})"
    body = "".join(
        f"""  e{k} = f32[3]{{0}} get-tuple-element(t), index={k + 1}
  o{k} = f32[3]{{0}} {opcode}(e{k})
  d{k} = f32[] reduce(o{k}, c), dimensions={{0}}, to_apply=plus
  b{k} = f32[3]{{0}} broadcast(d{k}), dimensions={{}}
  n{k} = f32[3]{{0}} subtract(o{k}, b{k})
"""
        for k, opcode in enumerate(opcodes)
    )
    return f"""HloModule m
{ADD}test {{ t = {state} parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(4)
  ROOT l = pred[] compare(i, n), direction=LT }}
body {{ t = {state} parameter(0)
  i = s32[] get-tuple-element(t), index=0
  one = s32[] constant(1)
  c = f32[] constant(0)
  next = s32[] add(i, one)
{body}  ROOT r = {state} tuple(next, {", ".join(f"n{k}" for k in numbers)}) }}
ENTRY e {{
  first = s32[] constant(0)
{"".join(f"  a{k} = f32[3]{{0}} parameter({k})" + chr(10) for k in numbers)}
  s = {state} tuple(first, {", ".join(f"a{k}" for k in numbers)})
  ROOT l = {state} while(s), condition=test, body=body }}
"""


def norms(count: int) -> str:
    lines = "".join(
        f"""  a{k} = f32[{k + 2},3]{{1,0}} parameter({k})
  q{k} = f32[{k + 2},3]{{1,0}} multiply(a{k}, a{k})
  e{k} = f32[] reduce(q{k}, zero), dimensions={{0,1}}, to_apply=plus
  t{k} = f32[] add({f"t{k - 1}" if k else "rest"}, e{k})
"""
        for k in range(count)
    )
    return f"  rest = f32[] parameter({count})\n{lines}  ROOT r = f32[] sqrt(t{count - 1})"


SUMS = "  y = f32[2]{0} tanh(x)\n  new = f32[3]{0} add(p, h)\n"
SOFT = """  e = f32[2,3]{1,0} exponential(w)
  m = f32[2]{0} reduce(e, c), dimensions={1}, to_apply=plus
"""


def moments(shape: str, dimensions: str) -> str:
    """The sum of what iterations write, and of its squares times a number."""
    text = loop(f"{PRODUCT}  y = f32[2]{{0}} tanh(x)\n  new = f32[3]{{0}} add(p, h)\n{WRITES}")
    return f"""{text[: text.rindex("  ROOT")]}  two = f32[] constant(2)
  twos = f32[5,2]{{1,0}} broadcast(two), dimensions={{}}
  squares = f32[5,2]{{1,0}} multiply(all, all)
  doubled = f32[5,2]{{1,0}} multiply(twos, squares)
  energy = {shape} reduce(doubled, zero), dimensions={{{dimensions}}}, to_apply=plus
  ROOT t = (f32[3]{{0}}, {shape}, f32[2]{{0}}) tuple(end, energy, sums) }}
"""


def counting_down(body: str, carried: str = "f32[3]{0}") -> str:
    """The loop with rows that are read from the last on, as the gradient of a loop does."""
    down = """  five = s32[] constant(5)
  left = s32[] subtract(five, i)
  less = s32[] constant(-1)
  j = s32[] add(left, less)
  part = f32[1,2]{1,0} dynamic-slice(xs, j, none)"""
    return loop(body, carried).replace("  part = f32[1,2]{1,0} dynamic-slice(xs, i, none)", down)


def stacked_for(part: str, name: str = "jit(f)/transpose(jvp())/while") -> str:
    """A loop that keeps sines of its carry, and another one that reads a part of them in each iteration; of a
    further such loop it reads the first part."""
    state = "(s32[], f32[2]{0}, f32[5,2]{1,0}, f32[5,2]{1,0})"
    body = f"""{{ t = {state} parameter(0)
  i = s32[] get-tuple-element(t), index=0
  h = f32[2]{{0}} get-tuple-element(t), index=1
  a = f32[5,2]{{1,0}} get-tuple-element(t), index=2
  b = f32[5,2]{{1,0}} get-tuple-element(t), index=3
  one = s32[] constant(1)
  none = s32[] constant(0)
  next = s32[] add(i, one)"""
    forward = f"""{body}
  s = f32[2]{{0}} sine(h)
  row = f32[1,2]{{1,0}} reshape(s)
  out = f32[5,2]{{1,0}} dynamic-update-slice(a, row, i, none)
  new = f32[2]{{0}} subtract(h, s)
  ROOT r = {state} tuple(next, new, out, b) }}"""
    test = f"""{{ t = {state} parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(5)
  ROOT l = pred[] compare(i, n), direction=LT }}"""
    return f"""HloModule m
test {test}
last {test}
forward {forward}
further {forward}
backward {body}
  last = s32[] constant(4)
  j = s32[] subtract(last, i)
  part = f32[1,2]{{1,0}} {part}
  head = f32[1,2]{{1,0}} slice(b), slice={{[0:1],[0:2]}}
  both = f32[1,2]{{1,0}} add(part, head)
  s = f32[2]{{0}} reshape(both)
  new = f32[2]{{0}} multiply(h, s)
  ROOT r = {state} tuple(next, new, a, b) }}
ENTRY e {{
  first = s32[] constant(0)
  zero = f32[] constant(0)
  x = f32[2]{{0}} parameter(0)
  empty = f32[5,2]{{1,0}} broadcast(zero), dimensions={{}}
  s = {state} tuple(first, x, empty, empty)
  l = {state} while(s), condition=test, body=forward
  end = f32[2]{{0}} get-tuple-element(l), index=1
  kept = f32[5,2]{{1,0}} get-tuple-element(l), index=2
  y = f32[2]{{0}} negate(x)
  z = {state} tuple(first, y, empty, empty)
  k = {state} while(z), condition=last, body=further
  other = f32[5,2]{{1,0}} get-tuple-element(k), index=2
  q = {state} tuple(first, end, kept, other)
  m = {state} while(q), condition=test, body=backward, metadata={{op_name="{name}"}}
  ROOT g = f32[2]{{0}} get-tuple-element(m), index=1 }}
"""


TABLE = "  t = f32[6,5]{1,0} parameter(0)\n"
CASES: dict[str, tuple[str, ...]] = {
    "take-not-onehot": (
        onehot("8") + TABLE + product("hot", "t", "1", "0", 8, 5),
        onehot("8").replace("EQ", "LT") + TABLE + product("hot", "t", "1", "0", 8, 5),
    ),
    "take-not-onehot (second operand)": (
        onehot("8") + TABLE + product("t", "hot", "0", "1", 5, 8),
        onehot("8").replace("EQ", "LT") + TABLE + product("t", "hot", "0", "1", 5, 8),
    ),
    "take-not-onehot (gradient)": (
        onehot("6") + TABLE + product("hot", "t", "0", "0", 6, 5),
        onehot("6").replace("EQ", "LT") + TABLE + product("hot", "t", "0", "0", 6, 5),
    ),
    "take-not-onehot (gradient, second operand)": (
        onehot("6") + TABLE + product("t", "hot", "0", "0", 5, 6),
        onehot("6").replace("EQ", "LT") + TABLE + product("t", "hot", "0", "0", 5, 6),
    ),
    "take-not-onehot (count)": (
        f"{onehot('4')}  ROOT r = f32[6]{{0}} reduce(hot, zero), dimensions={{0}}, to_apply=plus",
        f"{onehot('4')}  ROOT r = f32[4]{{0}} reduce(hot, zero), dimensions={{1}}, to_apply=plus",
    ),
    **{
        f"take-not-onehot (of several {k})": (labels_of_rows(r), labels_of_rows(r).replace("EQ", "LT"))
        for k, r in enumerate(
            (COUNTS, f"f32[3,6,6] dot(hot, v), {HEADS}", f"f32[3,8,8] dot(v, hot), {HEADS}")
        )
    },
    "pick-the-label": (picked(1), picked(0)),
    "take-first": (rows(4, 16), rows(5, 16)),
    "take-first (slice)": (last_rows(2, 8, END.format(5, 8)), last_rows(3, 8, END.format(3, 8))),
    "take-first (dynamic slice)": tuple(
        last_rows(n, 8, f"{AT}, dynamic_slice_sizes={{2,3,{n},2}}") for n in (2, 3)
    ),
    "vmap-not-map": (
        loop(f"{PRODUCT}  y = f32[2]{{0}} tanh(x)\n  new = f32[3]{{0}} tanh(p)\n{WRITES}"),
        loop(f"{PRODUCT}  y = f32[2]{{0}} tanh(x)\n  new = f32[3]{{0}} divide(p, h)\n{WRITES}"),
    ),
    "vmap-not-map (the first rows)": tuple(
        loop(
            f"{PRODUCT}  y = f32[2]{{0}} tanh(x)\n  new = f32[3]{{0}} {last}\n{WRITES.replace('[5', '[7')}",
            rows="f32[7,2]{1,0}",
        )
        for last in ("tanh(p)", "divide(p, h)")
    ),
    "vmap-not-map (backward)": (
        counting_down(f"{PRODUCT}{SUMS}{WRITES.replace('i, none', 'j, none')}"),
        counting_down(f"{PRODUCT}{SUMS.replace('add', 'divide')}{WRITES.replace('i, none', 'j, none')}"),
    ),
    "vmap-not-map (read backward)": (
        counting_down(f"{PRODUCT}{SUMS}{WRITES}"),
        counting_down(f"{PRODUCT}{SUMS.replace('add', 'divide')}{WRITES}"),
    ),
    "vmap-not-map (sums)": (
        loop(f"{GATHERED}  new = f32[3]{{0}} add(h, p)\n{WRITES}").replace("test {", f"{LESS}test {{"),
        loop(
            f"{PRODUCT}  y = f32[2]{{0}} slice(h), slice={{[0:2]}}\n  new = f32[3]{{0}} add(p, h)\n{WRITES}"
        ),
    ),
    "vmap-not-map (sums at places)": (
        loop(AT_PLACES.format("tanh(x)") + WRITES),
        loop(AT_PLACES.format("slice(h), slice={[0:2]}") + WRITES),
    ),
    "associative-scan": (loop(recurrence("multiply"), "f32[2]{0}"), loop(recurrence("maximum"), "f32[2]{0}")),
    "associative-scan (gradient)": (
        counting_down(recurrence_of_gradient("multiply"), "f32[2]{0}"),
        counting_down(recurrence_of_gradient("maximum"), "f32[2]{0}"),
    ),
    "compute-before-the-loop": (
        loop(f"{SOFT}  y = f32[2]{{0}} multiply(x, m)\n  new = f32[3]{{0}} tanh(h)\n{WRITES}"),
        loop(f"  y = f32[2]{{0}} multiply(x, x)\n  new = f32[3]{{0}} tanh(h)\n{WRITES}"),
    ),
    "hoist-the-product": (
        loop(f"{PRODUCT}  y = f32[2]{{0}} tanh(x)\n  new = f32[3]{{0}} add(p, h)\n{WRITES}"),
        loop(
            f"  y = f32[2]{{0}} slice(h), slice={{[0:2]}}\n{PRODUCT.replace('(x)', '(y)')}"
            f"  new = f32[3]{{0}} add(p, h)\n{WRITES}"
        ),
    ),
    "sum-in-the-carry": (
        loop(f"{PRODUCT}  y = f32[2]{{0}} tanh(x)\n  new = f32[3]{{0}} add(p, h)\n{WRITES}").replace(
            "tuple(end, all, sums)", "tuple(end, empty, sums)"
        ),
        loop(f"{PRODUCT}  y = f32[2]{{0}} tanh(x)\n  new = f32[3]{{0}} add(p, h)\n{WRITES}"),
        loop(
            f"{PRODUCT}  y = f32[2]{{0}} tanh(x)\n  new = f32[3]{{0}} add(p, h)\n"
            + WRITES.replace("[5", "[7"),
            rows="f32[7,2]{1,0}",
        ).replace("tuple(end, all, sums)", "tuple(end, empty, sums)"),
    ),
    "sum-in-the-carry (moments)": (moments("f32[]", "0,1"), moments("f32[5]{0}", "1")),
    "scale-not-diagonal": (diagonal(1), diagonal(0)),
    "max-not-sort": (sorted_end(1), sorted_end(2)),
    "top-k-not-sort": (sorted_end(2), sorted_end(3)),
    "top-k-not-sort (places)": (sorted_places(14), sorted_places(13)),
    "top-k-not-sort (others)": (sorted_places(15), sorted_places(15, "parameter(1)")),
    "ring-not-shift": (window(SUMMED), window(WEIGHED)),
    "ring-not-shift (one row)": (window(one_row(2, 3)), window(one_row(1, 3))),
    "ring-not-shift (roll)": (window(SUMMED, roll=rolled(3)), window(SUMMED, roll=rolled(2))),
    "barrier-before-the-update": (table("v"), table("one_x")),
    "barrier-before-the-update (gradient)": (
        re.sub("(?m)( while.*)$", r'\1, metadata={op_name="jvp(f)/while"}', table("v")),
        re.sub("(?m)( while.*)$", r'\1, metadata={op_name="transpose(jvp(f))/while"}', table("v")),
    ),
    "barrier-before-the-update (after)": (table("one_x", "new"), table("one_x", "no")),
    "checkpoint-the-body": (
        stacked_for("dynamic-slice(a, j, none), dynamic_slice_sizes={1,2}"),
        stacked_for("slice(a), slice={[0:1],[0:2]}"),
    ),
    "checkpoint-the-body (no gradient)": (
        stacked_for("dynamic-slice(a, j, none), dynamic_slice_sizes={1,2}"),
        stacked_for("dynamic-slice(a, j, none), dynamic_slice_sizes={1,2}", "jit(f)/while"),
    ),
    "stack-the-state": (states("tanh", "tanh", "tanh"), states("tanh", "tanh", "sine")),
    "batch-the-products": (lanes(3, JOINED), lanes(2, JOINED.replace("9", "6").replace(", p2", ""))),
    "reduce-as-one-vector": (norms(3), norms(2)),
}
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
