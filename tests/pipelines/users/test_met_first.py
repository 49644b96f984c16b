"""Values computed again, of which CSE met the younger one first: the other left a hole."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("first", "call", "users"),
    [
        ("cos.1.0", "", ["cos.3.0", "neg.1", "tan.1", "exp.1"]),
        ("cos.2.0", "", ["cos.3.0", "neg.1", "exp.1", "tan.1"]),
        ("cos.1.0", "jit(g)/", ["cos.3.0", "neg.1", "exp.1", "tan.1"]),
    ],
    ids=["a number is missing", "none is", "in a call"],
)
def test_who_is_older_than_what_it_reads_had_another_one(first: str, call: str, users: list[str]) -> None:
    """`y - cos(x)` and `-x * cos(x)`, of which the walk comes to the latter first."""
    body = f"""  %x = f32[8]{{0}} parameter(0)
  %y = f32[8]{{0}} parameter(1)
  %{first} = f32[8]{{0}} cosine(%y){named("cos")}
  %cos.3.0 = f32[8]{{0}} cosine(%x){named(f"{call}cos")}
  %mul.1 = f32[8]{{0}} multiply(%y, %cos.3.0){named("mul")}
  %neg.1 = f32[8]{{0}} negate(%x){named("neg")}
  %sub.1 = f32[8]{{0}} subtract(%neg.1, %cos.3.0){named("sub")}
  %exp.1 = f32[8]{{0}} exponential(%x){named("exp")}
  %tan.1 = f32[8]{{0}} tan(%x){named("tan")}
  ROOT %r = (f32[8], f32[8], f32[8], f32[8], f32[8]) tuple(%mul.1, %sub.1, %exp.1, %tan.1, %{first})"""
    ids = f"x y {first} neg.1 sub.1 cos.3.0 mul.1 exp.1 tan.1 r"
    assert users_of("x", body, ids=ids) == users


def test_what_it_was_computed_of_was_there_twice_as_well() -> None:
    """`where(x == inf, 0, x)` of both operands of a difference, and of one of them once more."""
    body = f"""  %x = f32[8]{{0}} parameter(0)
  %y = f32[8]{{0}} parameter(1)
  %inf = f32[8]{{0}} parameter(2)
  %eq.4.0 = pred[8]{{0}} compare(%x, %inf), direction=EQ{named("eq")}
  %select_n.4.0 = f32[8]{{0}} select(%eq.4.0, %y, %x){named("select_n")}
  %mul.1 = f32[8]{{0}} multiply(%y, %select_n.4.0){named("mul")}
  %eq.1.0 = pred[8]{{0}} compare(%y, %inf), direction=EQ{named("eq")}
  %select_n.1.0 = f32[8]{{0}} select(%eq.1.0, %inf, %y){named("select_n")}
  %sub.1 = f32[8]{{0}} subtract(%select_n.1.0, %select_n.4.0){named("sub")}
  %exp.1 = f32[8]{{0}} exponential(%inf){named("exp")}
  %tan.1 = f32[8]{{0}} tan(%inf){named("tan")}
  ROOT %r = (f32[8], f32[8], f32[8], f32[8]) tuple(%mul.1, %sub.1, %exp.1, %tan.1)"""
    ids = "x y inf eq.1.0 select_n.1.0 - - sub.1 - - eq.4.0 select_n.4.0 mul.1 exp.1 tan.1 r"
    assert users_of("inf", body, ids=ids) == ["eq.4.0", "eq.1.0", "select_n.1.0", "tan.1", "exp.1"]
