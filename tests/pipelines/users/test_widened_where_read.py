"""The users of narrow arguments that one operation reads made wide."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("of", "users"),
    [("%wide.2", ["row.1", "wide.1", "last.1"]), ("%q", ["wide.1", "row.1", "last.1"])],
    ids=["of the argument", "of another"],
)
def test_a_convert_stands_where_its_reader_does(of: str, users: list[str]) -> None:
    """`p * exp(p[0])`: the text has the convert ahead of what the other operand is computed of."""
    body = f"""  %p = bf16[4,8]{{1,0}} parameter(0)
  %wide.1 = f32[4,8]{{1,0}} convert(%p)
  %q = f32[1,8]{{1,0}} parameter(1)
  %row.1 = bf16[1,8]{{1,0}} slice(%p), slice={{[0:1], [0:8]}}{named("slice")}
  %wide.2 = f32[1,8]{{1,0}} convert(%row.1)
  %exp.1 = f32[1,8]{{1,0}} exponential({of}){named("exp")}
  %flat.1 = f32[8]{{0}} bitcast(%exp.1)
  %spread.1 = f32[4,8]{{1,0}} broadcast(%flat.1), dimensions={{1}}{named("dot_general")}
  %mul.1 = f32[4,8]{{1,0}} multiply(%wide.1, %spread.1){named("dot_general")}
  %thin.1 = bf16[4,8]{{1,0}} convert(%mul.1)
  %cos.1 = f32[1,8]{{1,0}} cosine(%wide.2){named("cos")}
  %last.1 = bf16[4,1]{{1,0}} slice(%p), slice={{[0:4], [0:1]}}{named("slice")}
  ROOT %r = (bf16[4,8]{{1,0}}, f32[1,8]{{1,0}}, bf16[4,1]{{1,0}}) tuple(%thin.1, %cos.1, %last.1)"""
    assert users_of("p", body) == users


def test_a_convert_that_was_made_anew_had_its_readers_behind_the_bitcast_of_one() -> None:
    """The program transposes the product, which is narrow, and converts it for both that read it now."""
    body = f"""  %p = bf16[4,8,16]{{2,1,0}} parameter(0)
  %x = f32[4,128]{{1,0}} parameter(1)
  %y = f32[4,128]{{1,0}} parameter(2)
  %convert.5 = f32[4,8,16]{{2,1,0}} convert(%p)
  %mul.1 = f32[4,8,16]{{2,1,0}} multiply(%convert.5, %convert.5){named("mul")}
  %bitcast.1 = f32[4,8,16]{{2,1,0}} bitcast(%x)
  %multiply.1 = f32[4,8,16]{{2,1,0}} multiply(%mul.1, %bitcast.1){named("norm/mul")}
  %bitcast.2 = f32[4,8,16]{{2,1,0}} bitcast(%y)
  %multiply.2 = f32[4,8,16]{{2,1,0}} multiply(%bitcast.2, %mul.1){named("norm/mul")}
  ROOT %r = (f32[4,8,16]{{2,1,0}}, f32[4,8,16]{{2,1,0}}) tuple(%multiply.1, %multiply.2)"""
    made = "p x y mul.1 r bitcast.1 bitcast.2 multiply.1 multiply.2 convert.5"
    assert users_of("mul.1", body, ids=made) == ["multiply.1", "multiply.2"]


@pytest.mark.parametrize(
    ("result", "users"),
    [
        ("tuple(%convert.4, %convert.3)", ["sub.1", "mul.1", "broadcast.1"]),
        ("tuple(%convert.3, %convert.4)", ["broadcast.1", "sub.1", "mul.1"]),
    ],
    ids=["met behind the others", "met first"],
)
def test_a_swapped_broadcast_reads_a_convert_that_is_merged_later(result: str, users: list[str]) -> None:
    """`b - (sum(y + b) + b * b)`, all narrow: the other two converts are one by then."""
    narrow, wide = "bf16[8]{0}", "bf16[4,8]{1,0}"
    kinds = f"({narrow}, {wide})" if result.startswith("tuple(%convert.4") else f"({wide}, {narrow})"
    body = f"""  %b = bf16[8]{{0}} parameter(0)
  %convert.1 = f32[8]{{0}} convert(%b)
  %y = bf16[4,8]{{1,0}} parameter(1)
  %convert.2 = f32[4,8]{{1,0}} convert(%y)
  %broadcast.1 = f32[4,8]{{1,0}} broadcast(%convert.1), dimensions={{1}}{named("add", frame=2)}
  %add.1 = f32[4,8]{{1,0}} add(%convert.2, %broadcast.1){named("add", frame=2)}
  %convert.3 = bf16[4,8]{{1,0}} convert(%add.1)
  %zero = f32[] constant(0)
  %reduce_sum.1 = f32[8]{{0}} reduce(%add.1, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_sum")}
  %mul.1 = f32[8]{{0}} multiply(%convert.1, %convert.1){named("mul", frame=4)}
  %add.2 = f32[8]{{0}} add(%reduce_sum.1, %mul.1){named("add", frame=5)}
  %sub.1 = f32[8]{{0}} subtract(%convert.1, %add.2){named("sub", frame=6)}
  %convert.4 = bf16[8]{{0}} convert(%sub.1)
  ROOT %r = {kinds} {result}"""
    assert users_of("convert.1", body) == users
