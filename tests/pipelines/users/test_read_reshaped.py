"""What calls were given through reshapes, of which XLA's records show the order."""

from __future__ import annotations

import pytest

from .lists import named, users_of

_SCAN = "while/body/eval_jaxpr"


@pytest.mark.parametrize(
    ("op", "listed"), [("mul", ["one.1", "two.1"]), ("broadcast_in_dim", ["two.1", "one.1"])]
)
def test_what_each_reader_reshaped_again_is_one_in_the_order_of_the_walk(op: str, listed: list[str]) -> None:
    """A product of `x[4,1]` and `y[4,8]` has a reshape and a broadcast of its own for the former."""
    body = f"""  %p = f32[1,4,1]{{2,1,0}} parameter(0)
  %q = f32[4,8]{{1,0}} parameter(1)
  %x = f32[1,4,1]{{2,1,0}} negate(%p){named("dynamic_slice", frame=1)}
  %flat = f32[4]{{0}} bitcast(%x){named("dynamic_slice", frame=1)}
  %one.1 = f32[4,8]{{1,0}} broadcast(%flat), dimensions={{0}}{named(f"{_SCAN}/{op}", frame=2)}
  %mul.1 = f32[4,8]{{1,0}} multiply(%one.1, %q){named(f"{_SCAN}/mul", frame=2)}
  %two.1 = f32[4,4]{{1,0}} broadcast(%flat), dimensions={{0}}{named(f"{_SCAN}/{op}", frame=3)}
  %mul.2 = f32[4,4]{{1,0}} multiply(%two.1, %two.1){named(f"{_SCAN}/mul", frame=3)}
  ROOT %r = (f32[4,8]{{1,0}}, f32[4,4]{{1,0}}) tuple(%mul.1, %mul.2)"""
    assert users_of("flat", body) == listed


def test_a_choice_that_is_reshaped_and_chosen_from_by_the_next_call_is_no_result_beside_others() -> None:
    """`where(a, x, where(b, y, z))` within a function, which compares what the inner one gives first."""
    where, place = "jit(g)/jit(_where)/select_n", 2
    body = f"""  %p = pred[1,1]{{1,0}} parameter(0)
  %a = s32[1,1]{{1,0}} parameter(1)
  %b = s32[] parameter(2)
  %c = pred[] parameter(3)
  %zero.1 = s32[] constant(0)
  %select_n.1 = s32[1,1]{{1,0}} select(%p, %a, %a){named(where, frame=place)}
  %flat = s32[] bitcast(%select_n.1){named(where, frame=place)}
  %eq.1 = pred[] compare(%flat, %zero.1), direction=EQ{named("jit(g)/eq", frame=1)}
  %and.1 = pred[] and(%eq.1, %c){named("jit(g)/and", frame=1)}
  %select_n.2 = s32[] select(%and.1, %b, %flat){named(where, frame=place)}
  %min.1 = s32[] minimum(%select_n.2, %b){named("jit(g)/min", frame=1)}
  ROOT %t = (s32[]) tuple(%min.1)"""
    assert users_of("flat", body) == ["eq.1", "select_n.2"]
