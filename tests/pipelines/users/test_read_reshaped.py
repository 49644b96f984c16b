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


@pytest.mark.parametrize(
    ("ids", "listed"),
    [
        ("p x r slice.1 lt.1 ge.1 not.1 flat mul.1.0", ["lt.1", "ge.1"]),
        ("p x slice.1 r lt.1 mul.1.0 ge.1 not.1 flat", ["ge.1", "lt.1"]),
    ],
    ids=["cloned", "made anew"],
)
def test_what_a_call_reads_through_a_reshape_was_cloned_in_order_of_age(ids: str, listed: list[str]) -> None:
    """The reshape became a bitcast, which is younger than all that reads it."""
    body = f"""  %p = f32[8,2]{{1,0}} parameter(0)
  %x = f32[8,2]{{1,0}} negate(%p){named("neg", frame=1)}
  %slice.1 = f32[8,1]{{1,0}} slice(%x), slice={{[0:8], [1:2]}}{named("jit(step)/slice", frame=2)}
  %flat = f32[8]{{0}} bitcast(%slice.1){named("jit(step)/slice", frame=2)}
  %ge.1 = pred[8]{{0}} compare(%flat, %flat), direction=GE{named("jit(step)/ge", frame=3)}
  %not.1 = pred[8]{{0}} not(%ge.1){named("jit(step)/not", frame=3)}
  %lt.1 = pred[8]{{0}} compare(%flat, %flat), direction=LT{named("jit(step)/lt", frame=4)}
  %mul.1.0 = f32[8,2]{{1,0}} multiply(%x, %x){named("mul", frame=1)}
  ROOT %r = (pred[8]{{0}}, pred[8]{{0}}, f32[8,2]{{1,0}}) tuple(%not.1, %lt.1, %mul.1.0)"""
    assert users_of("flat", body, ids=ids) == listed


@pytest.mark.parametrize(
    ("name", "listed"),
    [("reduce_window_sum", ["sub.1", "slice.1"]), ("jit(f)/reduce_window_sum", ["slice.1", "sub.1"])],
)
def test_a_running_sum_of_a_function_that_nothing_tells_was_given_to_no_call(
    name: str, listed: list[str]
) -> None:
    """`jnp.cumsum` within a function: a pass computes it otherwise, and leaves it the name alone."""
    metadata = f', metadata={{op_name="{name}"}}'
    body = f"""  %p = s32[8]{{0}} parameter(0)
  %x = s32[8,1]{{1,0}} bitcast(%p){named("neg", frame=1)}
  %reduce_window_sum.1 = s32[8,1]{{1,0}} negate(%x){metadata}
  %flat = s32[8]{{0}} bitcast(%reduce_window_sum.1){metadata}
  %sub.1 = s32[8]{{0}} subtract(%flat, %p){named("jit(g)/sub", frame=2)}
  %slice.1 = s32[1]{{0}} slice(%flat), slice={{[7:8]}}{named("jit(g)/slice", frame=2)}
  ROOT %r = (s32[8]{{0}}, s32[1]{{0}}) tuple(%sub.1, %slice.1)"""
    assert users_of("flat", body) == listed
