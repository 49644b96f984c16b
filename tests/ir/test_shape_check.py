"""Shapes that do not fit are refused at their place; what XLA's verifier accepts is accepted."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlofuse import load
from hlofuse.ir import HloParseError, parse_module
from hlofuse.ir.shape_check import first_misfit

MODULE = """HloModule m

sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}

ENTRY main {{
  x = f32[8,16] parameter(0)
  y = f32[8,15] parameter(1)
  h = bf16[8,16]{{0,1}} parameter(2)
  d = f32[<=8,16] parameter(3)
  u = f32[?,16] parameter(4)
  i = s32[] parameter(5)
  z = f32[] constant(0)
  p = pred[] constant(true)
  t = (f32[8,16], s32[]) tuple(x, i)
  ROOT r = {0}
}}
"""
WRONG = [
    ("f32[8,16] add(x, y)", "add takes operands of [8,16], the dimensions of its result, but y is f32[8,15]"),
    ("f32[8,15] negate(x)", "negate takes operands of [8,15], the dimensions of its result, but x is"),
    ("f32[] add(z, i)", "add takes operands of f32, the type of its result, but i is s32[]"),
    ("f32[8,16] select(p, x, y)", "select takes operands of [8,16]"),
    ("f32[8,16] clamp(z, x, y)", "clamp takes operands of [8,16]"),
    ("f32[8,8] dot(x, x), lhs_contracting_dims={5}, rhs_contracting_dims={1}", "names a dimension that its"),
    (
        "f32[8,8] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
        "dot of f32[8,16] and f32[8,15]: dimensions that meet differ in size",
    ),
    (
        "f32[8,9] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
        "dot of f32[8,16], f32[8,16] is f32[8,8], not f32[8,9]",
    ),
    ("f32[8,16,2] broadcast(y), dimensions={0,1}", "cannot have f32[8,15] as dimensions [0,1]"),
    ("f32[8,15] broadcast(y), dimensions={0,0}", "names each dimension of f32[8,15] once, not [0,0]"),
    ("s32[8] iota(), iota_dimension=1", "dimensions of s32[8], each once, by iota_dimension, not [1]"),
    ("f32[8,16] broadcast(z), dimensions={0}", "broadcast needs one of dimensions={…} for each of [], not 1"),
    ("f32[8,16] transpose(x), dimensions={1,0}", "transpose of f32[8,16] is f32[16,8], not f32[8,16]"),
    ("f32[16] reduce(x, z), dimensions={1}, to_apply=sum", "of f32[8,16], f32[] is f32[8], not f32[16]"),
    ("(f32[8], f32[8]) reduce(x, h, z, z), dimensions={1}, to_apply=sum", "by a computation with 1 results"),
    ("f32[8] reduce(x, z), dimensions={2}, to_apply=sum", "reduce over dimensions that f32[8,16]"),
    ("f32[16,16] concatenate(x, y), dimensions={0}", "cannot join f32[8,16], f32[8,15] along dimension 0"),
    ("f32[8,30] concatenate(x, y), dimensions={1}", "is f32[8,31], not f32[8,30]"),
    ("f32[8,4] slice(x), slice={[0:8], [0:17:4]}", "slice takes ranges inside f32[8,16], not [0:17:4]"),
    ("f32[9,1] dynamic-slice(x, i, i), dynamic_slice_sizes={9,1}", "takes sizes inside f32[8,16], not [9,1]"),
    ("f32[8,15] dynamic-update-slice(y, x, i, i)", "an update that fits into f32[8,15], not f32[8,16]"),
    ("f32[8,16] pad(x, z), padding=0_0x1_0", "pad of f32[8,16], f32[] is f32[8,17], not f32[8,16]"),
    ("f32[8,15] get-tuple-element(t), index=0", "of (f32[8,16], s32[]) is f32[8,16], not f32[8,15]"),
    ("f32[8,16] get-tuple-element(t), index=2", "has no element 2 to take from (f32[8,16], s32[])"),
    ("(s32[], f32[]) tuple(x, z)", "tuple has s32[] as element 0, but x is f32[8,16]"),
    ("((f32[8,16]" + ", s32[3]" * 6 + ")) tuple(t)", "tuple has (7 elements, number 1: s32[3]"),
    ("f32[] call(x, z), to_apply=sum", "takes f32[], parameter 0 of sum, but x is f32[8,16]"),
    ("f32[] call(z), to_apply=sum", "has 1 operands, but sum has 2 parameters"),
]  # fmt: skip
RIGHT = [
    "f32[8,16] add(x, h)",  # precisions may differ, and layouts
    "bf16[8,16] add(x, h)",
    "f32[8,16] add(x, d)",
    "f32[<=8,16] add(x, d)",
    "f32[8,16] add(x, u)",
    "pred[8,16] compare(x, h), direction=LT",
    "f32[8,16] select(p, x, h)",
    "f32[8,16] clamp(z, x, z)",
    "s8[8,16] convert(x)",
    "f32[128] bitcast(x)",
    "f32[8,8] dot(x, h), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
    "s32[8,8] dot(x, h), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
    "f32[16,8,8] dot(x, x), lhs_batch_dims={1}, rhs_batch_dims={1}",
    "f32[2,8,16] broadcast(x), dimensions={1,2}",
    "f32[8,31] concatenate(x, y), dimensions={1}",
    "f32[4,4] slice(x), slice={[0:8:2], [3:16:4]}",
    "f32[8,33] pad(x, z), padding=0_0x1_1_1",
    "f32[8,14] pad(x, z), padding=0_0x-1_-1",
    "f32[8] reduce(h, z), dimensions={1}, to_apply=sum",
]


def written(snippet: str) -> str:
    return MODULE.format(snippet)


@pytest.mark.parametrize(("snippet", "message"), WRONG)
def test_what_does_not_fit_is_refused_at_its_place(tmp_path: Path, snippet: str, message: str) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(f"a log\n{written(snippet)}")
    with pytest.raises(HloParseError) as caught:
        load(path)
    error = caught.value
    assert message in error.message
    assert error.line == 20
    opcode = error.message.split(" ")[0]
    assert error.source_line[error.column - 1 :].startswith(f"{opcode}(")


@pytest.mark.parametrize("snippet", RIGHT)
def test_what_xla_accepts_is_accepted(snippet: str) -> None:
    assert first_misfit(parse_module(written(snippet))) is None


def test_a_misfit_is_found_after_many_that_fit() -> None:
    """What is like an instruction that fits is passed over; another index is not like it."""
    elements = "".join(f"  g.{n} = f32[{n}] get-tuple-element(t), index={n}\n" for n in range(30))
    shapes = ", ".join(f"f32[{n}]" for n in range(30))
    text = f"HloModule m\n\nENTRY e {{\n  t = ({shapes}) parameter(0)\n{elements}}}\n"
    assert first_misfit(parse_module(text)) is None
    found = first_misfit(parse_module(text.replace("(t), index=21", "(t), index=20")))
    assert found is not None
    assert found[0].name == "g.21"
