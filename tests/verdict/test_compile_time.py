"""Constants that XLA evaluates for long while it compiles."""

import pytest

from hlofuse.ir import parse_module
from hlofuse.reports.advice.written import compile_time_notes, generated_code_note

TEXT = """HloModule jit_mean

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

ENTRY main {
  p = f32[ROWS,1000] parameter(0)
  one = f32[] constant(1)
  zero = f32[] constant(0)
  ones = f32[ROWS,1000] broadcast(one), dimensions={}
  twice = f32[ROWS,1000] add(ones, ones)
  ROOT n = f32[ROWS,1000] reduce-window(OPERAND, zero), window={size=5x5 pad=2_2x2_2}, to_apply=add,
    metadata={op_name="jit(mean)/reduce_window" source_file="/home/me/mean.py" source_line=3}
}
"""


def notes(rows: int, operand: str) -> list[str]:
    text = TEXT.replace("ROWS", str(rows)).replace("OPERAND", operand)
    return list(compile_time_notes(parse_module(text)))


@pytest.mark.parametrize("operand", ["ones", "twice"])
def test_a_window_over_a_constant_is_named_with_its_line(operand: str) -> None:
    """40 × 1,000 elements, 25 applications each: 1,000,000 steps, about 2 s of compilation."""
    (note,) = notes(40, operand)
    assert note == (
        "Compile time: reduce-window of a constant, 1.00 M steps (mean.py:3); compute it outside jit"
    )


def test_short_evaluations_and_those_of_an_argument_are_not() -> None:
    assert notes(39, "ones") == []
    assert notes(40, "p") == []
    assert notes(50_000, "ones") == []  # XLA leaves a constant of more than 45,000,000 elements


@pytest.mark.parametrize(("count", "differ"), [(72, 1), (71, 1), (72, 0)])
def test_kernels_of_one_line_that_differ_are_compiled_one_by_one(count: int, differ: int) -> None:
    code = entry = ""
    for k in range(count):
        size = 1 + k * differ
        root = f"ROOT r = f32[{size}] slice(a), slice={{[0:{size}]}}"
        code += f"in{k} {{\n  a = f32[99] parameter(0)\n  {root}\n}}\n"
        entry += f"  k{k} = f32[{size}] fusion(p), kind=kLoop, calls=in{k}"
        entry += ', metadata={source_file="/home/me/net.py" source_line=7}\n'
    module = parse_module(f"HloModule m\n\n{code}\nENTRY e {{\n  p = f32[99] parameter(0)\n{entry}}}\n")
    text = "Compile time: at least 1 s for 72 kernels that differ (net.py:7)"
    assert [n.partition(";")[0] for n in generated_code_note(module)] == [text] * (count * differ == 72)


@pytest.mark.parametrize(("count", "chain"), [(99, ""), (100, ""), (100, "chain")])
def test_what_one_line_writes_out_a_hundred_times_is_named(count: int, chain: str) -> None:
    where = 'metadata={source_file="/home/me/net.py" source_line=7}'
    dot = "dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    products = "".join(f"  d{k} = f32[4,4] {dot}, {where}\n" for k in range(count))
    if chain:
        products = products.replace("d1 = f32[4,4] dot(p, p)", "d1 = f32[4,4] dot(d0, p)")
    module = parse_module(f"HloModule m\n\nENTRY e {{\n  p = f32[4,4] parameter(0)\n{products}}}\n")
    how = "a loop (lax.scan, lax.fori_loop)" if chain else "jax.vmap or lax.scan"
    text = f"100 times the same dot (net.py:7); {how} compiles it once"
    assert list(compile_time_notes(module)) == [f"Compile time: {text}"] * (count == 100)
