"""The order in which a front end made operations, from the numbers in their names."""

from __future__ import annotations

from hlofuse.inputs.ordered import in_named_order
from hlofuse.ir import parse_module

PRINTED = """HloModule m

ENTRY main {{
  x = f32[4,4]{{1,0}} parameter(0)
  w.2 = f32[4,4]{{1,0}} parameter(2)
  {first} = f32[4,4]{{1,0}} dot(x, w.2), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  w.1 = f32[4,4]{{1,0}} parameter(1)
  {second} = f32[4,4]{{1,0}} dot({of}, w.1), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT out = (f32[4,4]{{1,0}}, f32[4,4]{{1,0}}) tuple({first}, {second})
}}
"""


def _names(first: str, second: str, of: str, text: str = PRINTED) -> list[str]:
    module = parse_module(text.format(first=first, second=second, of=of))
    in_named_order(module)
    return [i.name for i in module.entry]


def test_of_one_stem_the_lower_number_was_made_first() -> None:
    assert _names("dot.8", "dot.7", "x") == ["x", "w.1", "w.2", "dot.7", "dot.8", "out"]


def test_other_stems_stay_in_the_order_of_the_text() -> None:
    assert _names("dot.8", "scores.7", "x") == ["x", "w.1", "w.2", "dot.8", "scores.7", "out"]


def test_numbers_that_operands_contradict_say_nothing() -> None:
    assert _names("dot.8", "dot.7", "dot.8") == ["x", "w.2", "dot.8", "w.1", "dot.7", "out"]


def test_a_text_that_xla_would_print_in_another_order_was_written_by_hand() -> None:
    by_hand = PRINTED.replace("tuple({first}, {second})", "tuple({second}, {first})")
    assert _names("dot.8", "dot.7", "x", by_hand) == ["x", "w.2", "dot.8", "w.1", "dot.7", "out"]
