"""Numbers that what a scan does and the functions it calls had one broadcast of each."""

from __future__ import annotations

import pytest

from .lists import named, users_of

_SCAN = "while/body/eval_jaxpr"
_CLIP = f"{_SCAN}/jit(clip)"


@pytest.mark.parametrize(
    ("scan", "users"),
    [
        (_SCAN, ["exp.1", "neg.1", "sin.1", "max.1", "min.1"]),
        ("jit(f)", ["exp.1", "max.1", "min.1", "neg.1", "sin.1"]),
    ],
)
def test_what_a_scan_does_has_one_however_many_it_calls_have(scan: str, users: list[str]) -> None:
    """Two sums in the scan, between which a function is called; sums have been made of what is gone."""
    call = f"{scan}/jit(clip)"
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %c = f32[] constant(1)
  %one = f32[8]{{0}} broadcast(%c), dimensions={{}}
  %exp.1 = f32[8]{{0}} add(%p, %one){named(f"{scan}/exp", frame=1)}
  %max.1 = f32[8]{{0}} maximum(%exp.1, %one){named(f"{call}/max", frame=2)}
  %min.1 = f32[8]{{0}} minimum(%max.1, %one){named(f"{call}/min", frame=2)}
  %neg.1 = f32[8]{{0}} subtract(%min.1, %one){named(f"{scan}/neg", frame=3)}
  ROOT %sin.1 = f32[8]{{0}} add(%neg.1, %one){named(f"{scan}/sin", frame=3)}"""
    ids = "p c one exp.1 - - max.1 min.1 - - neg.1 - - sin.1"
    assert users_of("one", body, ids=ids) == users


@pytest.mark.parametrize(
    ("between", "users"),
    [("exp.1", ["max.1", "sin.1", "max.2"]), ("p", ["max.1", "max.2", "sin.1"])],
)
def test_a_function_was_called_again_where_something_else_reads_what_it_gives(
    between: str, users: list[str]
) -> None:
    """The walk comes to the second maximum behind the sine, but ahead of it to a call of both."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %c = f32[] constant(1)
  %one = f32[8]{{0}} broadcast(%c), dimensions={{}}
  %max.1 = f32[8]{{0}} maximum(%p, %one){named(f"{_CLIP}/max", frame=2)}
  %exp.1 = f32[8]{{0}} exponential(%max.1){named(f"{_CLIP}/exp", frame=2)}
  %tan.1 = f32[8]{{0}} tanh(%{between}){named(f"{_SCAN}/tan", frame=1)}
  %sin.1 = f32[8]{{0}} add(%one, %tan.1){named(f"{_SCAN}/sin", frame=3)}
  %max.2 = f32[8]{{0}} maximum(%sin.1, %one){named(f"{_CLIP}/max", frame=2)}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%exp.1, %max.2)"""
    assert users_of("one", body, ids="p c one max.1 exp.1 tan.1 max.2 sin.1 r") == users


@pytest.mark.parametrize(
    ("ids", "users"),
    [
        ("max.1 c one max.2 max.3 r", ["max.2", "max.3", "max.1"]),
        ("c one max.1 max.2 max.3 r", ["max.1", "max.2", "max.3"]),
    ],
)
def test_a_broadcast_of_a_call_was_given_what_is_older_by_the_walk(ids: str, users: list[str]) -> None:
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %c = f32[] constant(1){named("a/jit(g)", frame=1)}
  %one = f32[8]{{0}} broadcast(%c), dimensions={{}}{named("a/jit(g)", frame=1)}
  %max.2 = f32[8]{{0}} maximum(%p, %one){named("a/jit(g)/max", frame=1)}
  %max.3 = f32[8]{{0}} maximum(%max.2, %one){named("b/jit(g)/max", frame=2)}
  %max.1 = f32[8]{{0}} maximum(%max.3, %one){named("c/jit(g)/max", frame=3)}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%max.1, %max.3)"""
    assert users_of("one", body, ids=f"p {ids}") == users


_INDEXED = (
    "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,1}"
)


@pytest.mark.parametrize(
    ("shared", "users"),
    [("i", ["lt.1", "lt.2", "abs.1", "lt.3"]), ("n", ["lt.1", "lt.2", "lt.3", "abs.1"])],
)
def test_an_index_of_two_gathers_was_compared_with_zero_for_each(shared: str, users: list[str]) -> None:
    """x[i, j] and x[i, k]: the second comparison of i went, and the last user took its place."""
    again = "m" if shared == "i" else "n"
    spread = f"""
  %m = s32[8,1]{{1,0}} bitcast(%s.1)
  %n = s32[8,1]{{1,0}} bitcast(%p){named("p")}"""
    body = f"""  %x = f32[9,9]{{1,0}} parameter(0)
  %p = s32[8]{{0}} parameter(1)
  %q = s32[8]{{0}} parameter(2)
  %k = s32[8]{{0}} parameter(3)
  %c = s32[] constant(0)
  %zero = s32[8]{{0}} broadcast(%c), dimensions={{}}
  %w = s32[] constant(9)
  %nine = s32[8]{{0}} broadcast(%w), dimensions={{}}
  %lt.1 = pred[8]{{0}} compare(%p, %zero), direction=LT{named("lt")}
  %add.1 = s32[8]{{0}} add(%p, %nine){named("add")}
  %s.1 = s32[8]{{0}} select(%lt.1, %add.1, %p){named("select_n")}
  %lt.2 = pred[8]{{0}} compare(%q, %zero), direction=LT{named("lt")}
  %add.2 = s32[8]{{0}} add(%q, %nine){named("add")}
  %s.2 = s32[8]{{0}} select(%lt.2, %add.2, %q){named("select_n")}{spread}
  %j = s32[8,1]{{1,0}} bitcast(%s.2)
  %ij = s32[8,2]{{1,0}} concatenate(%m, %j), dimensions={{1}}{named("concatenate")}
  %g.1 = f32[8,1]{{1,0}} gather(%x, %ij), {_INDEXED}{named("gather")}
  %lt.3 = pred[8]{{0}} compare(%k, %zero), direction=LT{named("lt")}
  %add.3 = s32[8]{{0}} add(%k, %nine){named("add")}
  %s.3 = s32[8]{{0}} select(%lt.3, %add.3, %k){named("select_n")}
  %l = s32[8,1]{{1,0}} bitcast(%s.3)
  %ik = s32[8,2]{{1,0}} concatenate(%{again}, %l), dimensions={{1}}{named("concatenate")}
  %g.2 = f32[8,1]{{1,0}} gather(%x, %ik), {_INDEXED}{named("gather")}
  %abs.1 = s32[8]{{0}} maximum(%k, %zero){named("abs")}
  ROOT %r = (f32[8,1]{{1,0}}, f32[8,1]{{1,0}}, s32[8]{{0}}) tuple(%g.1, %g.2, %abs.1)"""
    assert users_of("zero", body) == users


@pytest.mark.parametrize(
    ("place", "users"),
    [(2, ["div.1", "sub.2", "sub.1"]), (3, ["div.1", "sub.1", "sub.2"])],
)
def test_each_quotient_by_a_value_has_the_inverse_square_of_its_own_derivative(
    place: int, users: list[str]
) -> None:
    """The one of the second quotient went; where nothing divides in that place there was none."""
    back, again = f"transpose(jvp())/{_SCAN}/checkpoint", f"transpose(jvp())/{_SCAN}/rematted_computation"
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %y = f32[8]{{0}} parameter(1)
  %c = f32[] constant(1)
  %one = f32[8]{{0}} broadcast(%c), dimensions={{}}
  %mul.1 = f32[8]{{0}} multiply(%y, %y){named(f"{again}/mul", frame=7)}
  %div.1 = f32[8]{{0}} divide(%one, %mul.1){named(f"{again}/div", frame=7)}
  %mul.2 = f32[8]{{0}} multiply(%p, %div.1){named(f"{back}/mul", frame=1)}
  %div.2 = f32[8]{{0}} divide(%p, %y){named(f"{back}/div", frame=1)}
  %mul.3 = f32[8]{{0}} multiply(%mul.2, %div.1){named(f"{back}/mul", frame=2)}
  %div.3 = f32[8]{{0}} divide(%mul.3, %y){named(f"{back}/div", frame=place)}
  %sub.1 = f32[8]{{0}} subtract(%one, %div.2){named(f"{again}/sub", frame=8)}
  %sub.2 = f32[8]{{0}} subtract(%one, %div.3){named(f"{again}/sub", frame=9)}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%sub.1, %sub.2)"""
    ids = "p y c one mul.1 div.1 mul.2 div.2 mul.3 div.3 sub.1 sub.2 r"
    assert users_of("one", body, ids=ids) == users
