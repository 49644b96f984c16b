"""Powers with a constant exponent, as XLA's algebraic simplifier writes them."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.ir.graph import Instruction
from hlofuse.passes.algebraic.context import Options
from hlofuse.passes.algebraic.simplifier import AlgebraicSimplifier
from hlofuse.trace import Recorder


def written(x: Instruction) -> str:
    """An instruction as a term of parameters and constants, broadcasts left out."""
    if x.opcode in ("broadcast", "bitcast", "copy"):
        return written(x.operands[0])
    if x.opcode in ("parameter", "constant"):
        return x.payload if x.opcode == "constant" and x.payload is not None else x.name
    return f"{x.opcode}({', '.join(map(written, x.operands))})"


def simplified(base: str, exponent: str) -> str:
    module = parse_module(f"""HloModule m
ENTRY e {{
  x = f32[8] parameter(0)
{base}
  n = f32[] constant({exponent})
  ns = f32[8] broadcast(n), dimensions={{}}
  ROOT p = f32[8] power(b, ns)
}}""")
    recorder = Recorder()
    recorder.begin_pass("algsimp")
    AlgebraicSimplifier(Options()).run(module, recorder)
    return written(module.entry.root)


@pytest.mark.parametrize(
    ("exponent", "expected"),
    [
        ("0", "1"),
        ("1", "sine(x)"),
        ("2", "multiply(sine(x), sine(x))"),
        ("3", "multiply(sine(x), multiply(sine(x), sine(x)))"),
        ("-1", "divide(1, sine(x))"),
        # Others stay: a root of a number that may be negative, and what takes more than two products.
        ("0.5", "power(sine(x), 0.5)"),
        ("-2", "power(sine(x), -2)"),
        ("4", "power(sine(x), 4)"),
    ],
)
def test_a_constant_power_is_products_or_a_quotient(exponent: str, expected: str) -> None:
    assert simplified("  b = f32[8] sine(x)", exponent) == expected


def test_a_power_of_a_half_is_a_root_where_nothing_is_negative() -> None:
    assert simplified("  b = f32[8] abs(x)", "0.5") == "sqrt(abs(x))"


def test_a_power_of_an_exponential_multiplies_the_exponents() -> None:
    assert simplified("  b = f32[8] exponential(x)", "2.5") == "exponential(multiply(x, 2.5))"
