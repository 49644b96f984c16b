"""The age of bitcasts that AlgebraicSimplifier gave the names of others, as XLA's protos have it."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.likely_ids.bitcasts import in_order_of_making
from hlofuse.pipelines.likely_ids.maker import Maker

_SUM = """%sum {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %add.0 = f32[] add(%a, %b)
}"""


def in_order(body: str) -> list[str]:
    module = parse_module(f"HloModule m\n\n{_SUM}\n\nENTRY %main {{\n{body}\n}}\n")
    bitcasts = [x for x in module.entry if x.opcode == "bitcast"]
    return names_of(bitcasts)


def names_of(bitcasts: list[Instruction], normalized: frozenset[Instruction] = frozenset()) -> list[str]:
    turns = in_order_of_making(bitcasts, normalized)
    return [x.name for turn in turns.values() for x in turn]


def reduce(name: str, shape: str, operand: str, dimension: str) -> str:
    return f"  %{name} = f32[{shape}] reduce(%{operand}, %zero), dimensions={{{dimension}}}, to_apply=%sum\n"


def test_what_was_put_behind_a_bitcast_became_one_with_it_in_the_end() -> None:
    """[4,8,16] was made [32,16] and that was made [2,16,16]; [64,16] was made [4,16,16] at once."""
    body = (
        """  %p = f32[4,8,16] parameter(0)
  %q = f32[64,16] parameter(1)
  %zero = f32[] constant(0)
  %bitcast.3.0 = f32[2,16,16] bitcast(%p)
"""
        + reduce("reduce.1.0", "2,16", "bitcast.3.0", "1")
        + reduce("reduce.2.0", "16", "reduce.1.0", "0")
        + "  %bitcast.4.0 = f32[4,16,16] bitcast(%q)\n"
        + reduce("reduce.3.0", "4,16", "bitcast.4.0", "1")
        + reduce("reduce.4.0", "16", "reduce.3.0", "0")
        + """  %bitcast.9.0 = f32[64,4,4] bitcast(%q)
  ROOT %tuple.1.0 = (f32[16], f32[16], f32[64,4,4]) tuple(%reduce.2.0, %reduce.4.0, %bitcast.9.0)"""
    )
    assert in_order(body) == ["bitcast.4.0", "bitcast.3.0", "bitcast.9.0"]


@pytest.mark.parametrize(
    ("given", "order"),
    [("4,8,1", ["bitcast.4.0", "bitcast.3.0"]), ("1,32,1", ["bitcast.3.0", "bitcast.4.0"])],
    ids=["dropped, then joined", "dropped"],
)
def test_dimensions_of_size_one_were_dropped_before_others_were_joined(given: str, order: list[str]) -> None:
    body = (
        f"""  %p = f32[{given}] parameter(0)
  %q = f32[2,16] parameter(1)
  %zero = f32[] constant(0)
  %bitcast.3.0 = f32[32] bitcast(%p)
"""
        + reduce("reduce.1.0", "", "bitcast.3.0", "0")
        + "  %bitcast.4.0 = f32[32] bitcast(%q)\n"
        + reduce("reduce.2.0", "", "bitcast.4.0", "0")
        + "  ROOT %tuple.1.0 = (f32[], f32[]) tuple(%reduce.1.0, %reduce.2.0)"
    )
    assert in_order(body) == order


def test_a_reduction_without_dimensions_of_size_one_gets_them_back_before_others_are_grouped() -> None:
    body = (
        """  %p = f32[4,8] parameter(0)
  %q = f32[2,16] parameter(1)
  %zero = f32[] constant(0)
"""
        + reduce("reduce.1.0", "4", "p", "1")
        + """  %bitcast.1.0 = f32[4,1] bitcast(%reduce.1.0)
  %bitcast.6.0 = f32[8,4] bitcast(%q)
  %bitcast.8.0 = f32[32] bitcast(%q)
"""
        + reduce("reduce.2.0", "", "bitcast.8.0", "0")
        + "  ROOT %tuple.1.0 = (f32[4,1], f32[8,4], f32[]) tuple(%bitcast.1.0, %bitcast.6.0, %reduce.2.0)"
    )
    assert in_order(body) == ["bitcast.6.0", "bitcast.1.0", "bitcast.8.0"]


def test_what_changes_the_type_is_met_among_what_layout_normalization_left() -> None:
    """Those of the program are older, whatever the number; those without a name stand as in the text."""
    body = """  %p = u32[4,8] parameter(0)
  %bitcast.1.0 = u32[32] bitcast(%p), metadata={op_name="jit(f)/reshape"}
  %bitcast.9.0 = f32[4,8] bitcast(%p), metadata={op_name="jit(f)/bitcast_convert_type"}
  %bitcast.3.0 = u32[8,4] bitcast(%p)
  ROOT %tuple.1.0 = (u32[32], f32[4,8], u32[8,4]) tuple(%bitcast.1.0, %bitcast.9.0, %bitcast.3.0)"""
    assert in_order(body) == ["bitcast.1.0", "bitcast.9.0", "bitcast.3.0"]


def _from_numbers(*numbered: str) -> str:
    """A bitcast each: `n` with a name of the program, `-` without, `*` one that changes the type."""
    body, names = "  %p = u32[32] parameter(0)\n", []
    for k, given in enumerate(numbered):
        number, kind = given[:-1], given[-1]
        shape = f"{'f32' if kind == '*' else 'u32'}[{2**k},{32 // 2**k}]"
        named = "" if kind == "-" else ', metadata={op_name="jit(f)/x"}'
        body += f"  %bitcast.{number}.0 = {shape} bitcast(%p){named}\n"
        names.append((f"%bitcast.{number}.0", shape))
    shapes, operands = ", ".join(s for _, s in names), ", ".join(n for n, _ in names)
    return body + f"  ROOT %tuple.1.0 = ({shapes}) tuple({operands})"


@pytest.mark.parametrize(
    ("text", "order"),
    [
        (["1n", "12n", "9*", "3-"], "1 9 3 12"),
        (["1-", "5*", "2n", "3n"], "1 2 3 5"),
        (["1n", "2n", "9*", "8*", "4-"], "1 2 8 9 4"),
        (["1n", "2n", "9*", "3-", "12-"], "1 2 9 3 12"),
    ],
    ids=["made since", "from before LayoutNormalization", "as met", "normalized since"],
)
def test_what_changes_the_type_is_behind_what_the_program_had_and_before_what_was_made_since(
    text: list[str], order: str
) -> None:
    assert in_order(_from_numbers(*text)) == [f"bitcast.{number}.0" for number in order.split()]


def test_numbers_of_several_names_may_be_equal() -> None:
    """Before XLA renames instructions, a bitcast has the name of the operation that it was."""
    body = (
        """  %p = f32[64,16] parameter(0)
  %zero = f32[] constant(0)
  %bitcast.3 = f32[4,16,16] bitcast(%p)
"""
        + reduce("reduce.1", "4,16", "bitcast.3", "1")
        + reduce("reduce.2", "16", "reduce.1", "0")
        + """  %reshape.3 = f32[64,4,4] bitcast(%p)
  ROOT %tuple.1 = (f32[16], f32[64,4,4]) tuple(%reduce.2, %reshape.3)"""
    )
    assert in_order(body) == ["bitcast.3", "reshape.3"]


@pytest.mark.parametrize(
    ("row", "slice_", "made"),
    [
        ("f32[8,1]", "{[0:8], [1:2]}", ["bitcast.2.0", "bitcast.1.0"]),
        ("f32[1,4]", "{[1:2], [0:4]}", ["bitcast.1.0", "bitcast.2.0"]),
    ],
    ids=["transposed", "as it lies"],
)
def test_what_drops_a_dimension_of_a_slice_in_another_layout_was_two(
    row: str, slice_: str, made: list[str]
) -> None:
    flat = "f32[8]" if "8" in row else "f32[4]"
    text = f"""HloModule m

ENTRY %main {{
  %p = f32[8,4] parameter(0)
  %slice.1.0 = {row} slice(%p), slice={slice_}, metadata={{op_name="unstack"}}
  %bitcast.1.0 = {flat} bitcast(%slice.1.0), metadata={{op_name="unstack"}}
  %sine.1.0 = {flat} sine(%bitcast.1.0)
  ROOT %bitcast.2.0 = {row} bitcast(%sine.1.0), metadata={{op_name="reshape"}}
}}
"""
    entry = parse_module(text).entry
    bitcasts = [x for x in entry if x.opcode == "bitcast"]
    normalized = frozenset(x for x in entry if x.opcode == "slice")
    assert names_of(bitcasts) == ["bitcast.1.0", "bitcast.2.0"]
    assert names_of(bitcasts, normalized) == made


def test_a_reduction_of_two_has_a_bitcast_in_front_of_either() -> None:
    """Of numbers and their places, as jax.numpy.argmax has them: what is read had one dimension by then."""
    sum_of_two = "dimensions={1}, to_apply=%sum"
    body = f"""  %p = f32[1,1,64] parameter(0)
  %q = s32[1,64] parameter(1)
  %zero = f32[] constant(0)
  %none = s32[] constant(0)
  %bitcast.3.0 = f32[8,8] bitcast(%p)
  %bitcast.4.0 = s32[8,8] bitcast(%q)
  %reduce.1.0 = (f32[8], s32[8]) reduce(%bitcast.3.0, %bitcast.4.0, %zero, %none), {sum_of_two}
  %x = f32[8] get-tuple-element(%reduce.1.0), index=0
  %y = s32[8] get-tuple-element(%reduce.1.0), index=1
  %reduce.2.0 = (f32[], s32[]) reduce(%x, %y, %zero, %none), dimensions={{0}}, to_apply=%sum
  %bitcast.2.0 = f32[8,8,1] bitcast(%bitcast.3.0)
  ROOT %tuple.1.0 = ((f32[], s32[]), f32[8,8,1]) tuple(%reduce.2.0, %bitcast.2.0)"""
    assert in_order(body) == ["bitcast.2.0", "bitcast.3.0", "bitcast.4.0"]


def test_each_comes_behind_the_turn_that_it_was_made_behind() -> None:
    """Reshapes became bitcasts first; LayoutNormalization put some around what it made anew."""
    reshape = 'metadata={op_name="reshape"}'
    body = f"""  %p = f32[4,8] parameter(0)
  %zero = f32[] constant(0)
  %bitcast.1.0 = f32[32] bitcast(%p), {reshape}
  %bitcast.2.0 = f32[8,4] bitcast(%p), {reshape}
  %bitcast.30.0 = f32[8,4]{{0,1}} bitcast(%p)
  %sine.1.0 = f32[8,4]{{0,1}} sine(%bitcast.30.0)
  %bitcast.31.0 = f32[4,8] bitcast(%sine.1.0)
  %bitcast.40.0 = f32[32] bitcast(%p)
{reduce("reduce.1.0", "", "bitcast.40.0", "0")}  ROOT %tuple.1.0 = (f32[32], f32[8,4], f32[4,8], f32[])
    tuple(%bitcast.1.0, %bitcast.2.0, %bitcast.31.0, %reduce.1.0)"""
    module = parse_module(f"HloModule m\n\n{_SUM}\n\nENTRY %main {{\n{body}\n}}\n")
    turns = in_order_of_making([x for x in module.entry if x.opcode == "bitcast"])
    found = {maker: [x.name for x in turn] for maker, turn in turns.items() if turn}
    assert found == {
        Maker.MOVED_COPIES: ["bitcast.1.0", "bitcast.2.0"],
        Maker.LAYOUT_NORMALIZATION: ["bitcast.31.0"],
        Maker.REDUCTIONS: ["bitcast.40.0"],
        Maker.ANY: ["bitcast.30.0"],
    }
