"""Recipes: a module on each side of every number that says where one applies."""

from __future__ import annotations

import pytest

from hlofuse.account import observed_replay
from hlofuse.compilation import CompilationInput, replay_config
from hlofuse.ir import parse_module
from hlofuse.ir.copy import copy_module
from hlofuse.judge.judge import Judge
from hlofuse.reports.advice.catalogue import RECIPES
from hlofuse.reports.advice.loops import unrolled
from ..running import find
from .values import judged, situation_of

COMPUTATIONS = """HloModule m
plus { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
wide { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = s32[] add(a, b) }
second { a = f32[] parameter(0)
  ROOT b = f32[] parameter(1) }
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT }
"""


def entry(lines: str, computations: str = "") -> str:
    return f"{COMPUTATIONS}{computations}ENTRY e {{\n  zero = f32[] constant(0)\n{lines}\n}}\n"


def found(text: str, target: str) -> set[str]:
    """The recipes that apply to a module at the input of fusion."""
    config = replay_config(target, "h100_sxm" if target == "gpu" else None)
    observed = observed_replay(CompilationInput(parse_module(text)), config)
    situation = situation_of(observed)
    return {recipe.name for recipe in RECIPES if list(recipe.find(situation))}


def column_sum(rows: int, columns: int, dimension: int = 0) -> str:
    left = columns if dimension == 0 else rows
    return entry(f"""  x = f32[{rows},{columns}]{{1,0}} parameter(0)
  ROOT r = f32[{left}]{{0}} reduce(x, zero), dimensions={{{dimension}}}, to_apply=plus""")


def joined(rows: int, *columns: int, element_type: str = "f32") -> str:
    shapes = [f"{element_type}[{rows},{n}]{{1,0}}" for n in (*columns, sum(columns))]
    parts = "".join(f"  p{k} = {s} parameter({k})\n" for k, s in enumerate(shapes[:-1]))
    names = ", ".join(f"p{k}" for k in range(len(columns)))
    return entry(f"{parts}  ROOT c = {shapes[-1]} concatenate({names}), dimensions={{1}}")


def read_at(start: str) -> str:
    """Two columns that a gather reads at, or that it takes its elements from."""
    return entry(f"""  i = s32[65536,1]{{1,0}} parameter(0)
  j = s32[65536,1]{{1,0}} parameter(1)
  c = s32[65536,2]{{1,0}} concatenate(i, j), dimensions={{1}}
  t = s32[65536,2]{{1,0}} parameter(2)
  ROOT g = s32[65536]{{0}} gather({start}), offset_dims={{}}, collapsed_slice_dims={{0,1}},
    start_index_map={{0,1}}, index_vector_dim=1, slice_sizes={{1,1}}""")


def read_at_the_largest(rows: str) -> str:
    """An element of each row at the place of the largest of its row, or of these rows."""
    search = """largest { a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  p = pred[] compare(a, b), direction=GT
  v = f32[] select(p, a, b)
  k = s32[] select(p, i, j)
  ROOT both = (f32[], s32[]) tuple(v, k) }
"""
    return entry(
        f"""  x = f32[256,4096]{{1,0}} parameter(0)
  n = s32[256,4096]{{1,0}} iota(), iota_dimension=1
  first = s32[] constant(0)
  m = (f32[256]{{0}}, s32[256]{{0}}) reduce(x, n, zero, first), dimensions={{1}}, to_apply=largest
  k = s32[256]{{0}} get-tuple-element(m), index=1
  column = s32[256,1]{{1,0}} bitcast(k)
  row = s32[256,1]{{1,0}} {rows}
  c = s32[256,2]{{1,0}} concatenate(row, column), dimensions={{1}}
  ROOT g = f32[256]{{0}} gather(x, c), offset_dims={{}}, collapsed_slice_dims={{0,1}},
    start_index_map={{0,1}}, index_vector_dim=1, slice_sizes={{1,1}}""",
        search,
    )


def loop(trips: int, shapes: list[str], body: str, results: list[str], more: str = "") -> str:
    """A loop that carries arrays `v0`, `v1` … of these shapes."""
    state = f"(s32[], {', '.join(shapes)})"
    values = "".join(f"  v{k} = {s} get-tuple-element(s), index={k + 1}\n" for k, s in enumerate(shapes))
    inputs = "".join(f"  p{k} = {s} parameter({k})\n" for k, s in enumerate(shapes))
    names = ", ".join(f"p{k}" for k in range(len(shapes)))
    computations = f"""body {{
  s = {state} parameter(0)
  n = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  next = s32[] add(n, one)
{values}{body}  ROOT t = {state} tuple(next, {", ".join(results)})
}}
condition {{
  s = {state} parameter(0)
  n = s32[] get-tuple-element(s), index=0
  end = s32[] constant({trips})
  ROOT less = pred[] compare(n, end), direction=LT
}}
"""
    return entry(
        f"""{inputs}  begin = s32[] constant(0)
  start = {state} tuple(begin, {names})
  ROOT w = {state} while(start), condition=condition, body=body,
    backend_config={{"known_trip_count":{{"n":"{trips}"}}}}{more}""",
        computations,
    )


def state_of(trips: int, size: int = 64, element_type: str = "f32") -> str:
    shape = f"{element_type}[{size}]{{0}}"
    return loop(trips, [shape], f"  y0 = {shape} add(v0, v0)\n", ["y0"])


def called_python(body: str = 'custom-call(v0), custom_call_target="xla_ffi_python_gpu_callback"') -> str:
    shape = "f32[64]{0}"
    return loop(2, [shape], f"  y0 = {shape} {body}\n", ["y0"])


def called_inside(target: str) -> str:
    inside = f"""f {{ v = f32[64]{{0}} parameter(0)
  ROOT c = f32[64]{{0}} custom-call(v), custom_call_target="{target}" }}
body {{"""
    return called_python("call(v0), to_apply=f").replace("body {", inside)


def gathered_in_a_loop(result: str) -> str:
    body = "  g = f32[64]{0} all-gather(v0), replica_groups={{0,1}}, dimensions={0}\n"
    body += "  y0 = f32[64]{0} add(v1, g)\n  z0 = f32[32]{0} negate(v0)\n"
    return loop(2, ["f32[32]{0}", "f32[64]{0}"], body, [result, "y0"])


def swapped(trips: int, size: int) -> str:
    return loop(trips, [f"f32[{size}]{{0}}"] * 2, "", ["v1", "v0"])


def branches(operations: int, size: int = 64) -> str:
    shape = f"f32[{size}]{{0}}"
    chain = "".join(f"  x{k + 1} = {shape} negate(x{k})\n" for k in range(operations))
    first = f"first {{\n  p = ({shape}) parameter(0)\n  x0 = {shape} get-tuple-element(p), index=0\n{chain}"
    first += f"  ROOT t = ({shape}) tuple(x{operations})\n}}\n"
    second = f"other {{\n  ROOT p = ({shape}) parameter(0)\n}}\n"
    return entry(
        f"""  which = pred[] parameter(0)
  x = {shape} parameter(1)
  given = ({shape}) tuple(x)
  ROOT c = ({shape}) conditional(which, given, given), true_computation=first, false_computation=other""",
        first + second,
    )


def updated(size: int, part: int) -> str:
    return entry(f"""  x = f32[{size}]{{0}} parameter(0)
  u = f32[{part}]{{0}} parameter(1)
  i = s32[] parameter(2)
  first = f32[{size}]{{0}} dynamic-update-slice(x, u, i)
  j = s32[] negate(i)
  ROOT r = f32[{size}]{{0}} dynamic-update-slice(first, u, j)""")


def row_by_mask(rows: int, direction: str = "EQ") -> str:
    shape = f"[{rows},64]{{1,0}}"
    return entry(f"""  old = f32{shape} parameter(0)
  row = f32[64]{{0}} parameter(1)
  at = s32[] parameter(2)
  count = s32{shape} iota(), iota_dimension=0
  place = s32{shape} broadcast(at), dimensions={{}}
  here = pred{shape} compare(count, place), direction={direction}
  new = f32{shape} broadcast(row), dimensions={{1}}
  ROOT r = f32{shape} select(here, new, old)""")


def returned_twice(size: int, again: str = "n") -> str:
    shape = f"f32[{size}]{{0}}"
    return entry(f"""  x = {shape} parameter(0)
  n = {shape} negate(x)
  m = {shape} exponential(x)
  ROOT t = ({shape}, {shape}) tuple(n, {again})""")


def small_sums(count: int, size: int = 64) -> str:
    lines = "".join(
        f"  a{k} = f32[{size}]{{0}} parameter({k})\n  q{k} = f32[{size}]{{0}} multiply(a{k}, a{k})\n"
        f"  r{k} = f32[] reduce(q{k}, zero), dimensions={{0}}, to_apply=plus\n"
        for k in range(count)
    )
    shapes = ", ".join(["f32[]"] * count)
    return entry(f"{lines}  ROOT t = ({shapes}) tuple({', '.join(f'r{k}' for k in range(count))})")


def filtered(taps: int, low: int, high: int) -> str:
    return entry(f"""  x = f32[1,64,1]{{2,1,0}} parameter(0)
  w = f32[{taps},1,1]{{2,1,0}} parameter(1)
  ROOT c = f32[1,{64 + low + high - taps + 1},1]{{2,1,0}} convolution(x, w),
    window={{size={taps} pad={low}_{high}}}, dim_labels=b0f_0io->b0f""")


def gathered_part(count: int) -> str:
    text = entry(f"""  x = f32[64,8]{{1,0}} parameter(0)
  g = f32[512,8]{{1,0}} all-gather(x), dimensions={{0}}, replica_groups={{{{0,1,2,3,4,5,6,7}}}}, channel_id=1,
    use_global_device_ids=true
  ROOT s = f32[{count},8]{{1,0}} slice(g), slice={{[0:{count}], [0:8]}}""")
    return text.replace("HloModule m\n", "HloModule m, num_partitions=8\n")


def scaled_psum(opcode: str) -> str:
    return entry(f"""  x = f32[64,8]{{1,0}} parameter(0)
  p = f32[64,8]{{1,0}} all-reduce(x), to_apply=plus
  y = f32[64,8]{{1,0}} broadcast(zero), dimensions={{}}
  m = f32[64,8]{{1,0}} {opcode}(p, y)
  ROOT s = f32[8]{{0}} reduce(m, zero), dimensions={{0}}, to_apply=plus""")


def from_function(scopes: str, trips: int = 16) -> str:
    """A loop with these scopes, of which a line in function `step` is known."""
    tables = """
FileNames
1 "model.py"

FunctionNames
1 "model.<locals>.step"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=1 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
"""
    metadata = f'body=body, metadata={{op_name="{scopes}/while" stack_frame_id=1}}'
    return state_of(trips).replace("body=body", metadata).replace("HloModule m\n", f"HloModule m\n{tables}\n")


CASES = [
    ("split-a-column-sum", "gpu", column_sum(1024, 64), column_sum(1023, 64)),
    ("split-a-column-sum", "gpu", column_sum(1024, 8192), column_sum(1024, 8193)),
    ("split-a-column-sum", "gpu", column_sum(2048, 64), column_sum(64, 2048, 1)),
    ("join-by-pads", "gpu", joined(256, 100, 156), joined(255, 100, 156)),
    ("join-by-pads", "gpu", joined(256, 97, 159), joined(256, 96, 160)),
    ("join-by-pads", "gpu", joined(512, 96, 33), joined(512, 96, 33, element_type="pred")),
    ("join-by-pads", "gpu", joined(512, *[20] * 8), joined(512, *[20] * 9)),
    ("join-by-pads", "gpu", read_at("c, t"), read_at("t, c")),
    ("join-by-pads", "cpu", joined(256, 100, 156), joined(512, 100, 156, element_type="bf16")),
    ("max-with-argmax", "gpu", *map(read_at_the_largest, ("iota(), iota_dimension=0", "parameter(1)"))),
    ("unroll-the-scan", "gpu", state_of(2), state_of(1)),
    ("unroll-the-scan", "cpu", state_of(11), state_of(1)),
    ("unroll-the-scan", "gpu", gathered_in_a_loop("z0"), gathered_in_a_loop("v0")),
    ("unroll-the-scan", "gpu", called_python('custom-call(v0), custom_call_target="f"'), called_python()),
    ("unroll-the-scan", "gpu", *map(called_inside, ("f", "xla_ffi_python_gpu_callback"))),
    ("unroll-the-scan", "gpu", from_function("jit(f)/jit(step)"), from_function("jit(f)/jit(uniform)")),
    ("unroll-the-scan", "gpu", from_function("jit(f)/jit(g)", 64), from_function("jit(f)/jit(g)", 63)),
    ("unroll-the-short-loop", "gpu", from_function("jit(f)"), from_function("jit(f)/jit(step)/jit(uniform)")),
    ("unroll-the-short-loop", "cpu", state_of(2), state_of(1)),
    ("unroll-the-short-loop", "gpu", state_of(142), state_of(143)),
    ("unroll-the-swap", "gpu", swapped(16, 257), swapped(16, 256)),
    ("unroll-the-swap", "cpu", swapped(16, 257), swapped(15, 257)),
    ("select-not-branch", "gpu", branches(38), branches(39)),
    ("select-not-branch", "cpu", branches(1, (1 << 18) - 1), branches(1, 1 << 18)),
    ("donate-the-argument", "gpu", updated(1 << 14, 64), updated((1 << 14) - 1, 64)),
    ("donate-the-argument", "gpu", updated(1 << 15, (1 << 14) - 1), updated(1 << 15, 1 << 14)),
    ("write-the-row", "gpu", row_by_mask(256), row_by_mask(255)),
    ("write-the-row", "cpu", row_by_mask(256), row_by_mask(256, "NE")),
    ("sum-before-the-psum", "gpu", scaled_psum("multiply"), scaled_psum("add")),
    ("slice-before-the-gather", "gpu", gathered_part(128), gathered_part(129)),
]


@pytest.mark.parametrize(
    ("name", "target", "inside", "beyond"), CASES, ids=[f"{c[0]}-{n}" for n, c in enumerate(CASES)]
)
def test_it_applies_on_one_side_of_its_number(name: str, target: str, inside: str, beyond: str) -> None:
    assert name in found(inside, target)
    assert name not in found(beyond, target)


def test_a_branch_that_passes_on_what_it_gets_becomes_an_operand_of_a_select(judge: Judge) -> None:
    before = parse_module(branches(3))
    after = copy_module(before)
    (recipe,) = (r for r in RECIPES if r.name == "select-not-branch")
    assert recipe.rewrite is not None
    assert recipe.rewrite(next(x for x in after.entry if x.opcode == "conditional"))
    assert [x.opcode for x in after.entry].count("select") == 1
    assert judged(judge, before, after).verdict == "same"


ROWS = """HloModule stacks

body {
  arg = (s32[], f32[8,3]{1,0}, f32[8,3]{1,0}) parameter(0)
  i = s32[] get-tuple-element(arg), index=0
  all = f32[8,3]{1,0} get-tuple-element(arg), index=1
  given = f32[8,3]{1,0} get-tuple-element(arg), index=2
  one = s32[] constant(1)
  zero = s32[] constant(0)
  part = f32[1,3]{1,0} dynamic-slice(given, i, zero), dynamic_slice_sizes={1,3}
  row = f32[1,3]{1,0} sine(part)
  new = f32[8,3]{1,0} dynamic-update-slice(all, row, i, zero)
  next = s32[] add(i, one)
  ROOT out = (s32[], f32[8,3]{1,0}, f32[8,3]{1,0}) tuple(next, new, given)
}

condition {
  arg.1 = (s32[], f32[8,3]{1,0}, f32[8,3]{1,0}) parameter(0)
  i.1 = s32[] get-tuple-element(arg.1), index=0
  end = s32[] constant(8)
  ROOT less = pred[] compare(i.1, end), direction=LT
}

ENTRY main {
  begin = s32[] constant(0)
  none = f32[] constant(0)
  empty = f32[8,3]{1,0} broadcast(none), dimensions={}
  rows = f32[8,3]{1,0} parameter(0)
  first = (s32[], f32[8,3]{1,0}, f32[8,3]{1,0}) tuple(begin, empty, rows)
  loop = (s32[], f32[8,3]{1,0}, f32[8,3]{1,0}) while(first), condition=condition, body=body,
    backend_config={"known_trip_count":{"n":"8"}}
  ROOT found = f32[8,3]{1,0} get-tuple-element(loop), index=1
}
"""


@pytest.mark.parametrize(
    ("text", "root"),
    [
        ("tuple(next, new, given)", "tuple(next, new, given)"),
        ("tuple(next, new, given)", "tuple(next, given, new)"),
        ("tuple(next, new, given)", "tuple(next, new, all)"),
        ("tuple(next, new, given)", "tuple(next, new, new)"),
        ("sine(part)", "slice(given), slice={[2:3], [0:3]}"),
    ],
)
def test_an_unrolled_loop_has_blocks_of_what_each_iteration_has_a_part_of(
    text: str, root: str, judge: Judge
) -> None:
    before, after = (parse_module(ROWS.replace(text, root)) for _ in range(2))
    assert unrolled(find(after, "loop"), 2, nearest=False)
    assert judged(judge, before, after).verdict == "same"


def test_an_unrolled_loop_begins_with_arrays_as_jax_broadcasts_them() -> None:
    """XLA copies equal broadcasts for several loops, and may not copy a bitcast of one."""
    module = parse_module(ROWS)
    assert unrolled(find(module, "loop"), 2, nearest=False)
    (new,) = (x for x in module.entry if x.opcode == "while" and x.name != "loop")
    start = new.operands[0].operands[1]
    assert (start.opcode, start.shape.dimensions) == ("broadcast", (4, 2, 3))
