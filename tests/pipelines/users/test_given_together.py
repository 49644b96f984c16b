"""Results of one call that were computed of the same, which nothing in the call connects otherwise."""

from __future__ import annotations

import pytest

from .lists import named, users_of

_CALL = "transpose(jvp(jit(silu)))/mul"


@pytest.mark.parametrize(
    ("other", "users"),
    [
        ("multiply(%g, %y)", ["exp.1", "neg.1"]),
        ("multiply(%z, %g)", ["neg.1", "exp.1"]),
    ],
    ids=["of one call", "what another call makes in the same place"],
)
def test_what_is_given_to_both_tells_that_a_call_had_two_results(other: str, users: list[str]) -> None:
    """The call ended in a tuple: the last user took its place."""
    body = f"""  %x = f32[8]{{0}} parameter(0)
  %y = f32[8]{{0}} parameter(1)
  %z = f32[8]{{0}} parameter(2)
  %g = f32[8]{{0}} parameter(3)
  %mul.1 = f32[8]{{0}} multiply(%x, %g){named(_CALL)}
  %mul.2 = f32[8]{{0}} {other}{named(_CALL)}
  %neg.1 = f32[8]{{0}} negate(%mul.1){named("neg")}
  %exp.1 = f32[8]{{0}} exponential(%mul.1){named("exp")}
  %sin.1 = f32[8]{{0}} sine(%mul.2){named("sin")}
  ROOT %r = (f32[8], f32[8], f32[8]) tuple(%neg.1, %exp.1, %sin.1)"""
    assert users_of("mul.1", body, ids="x y z g neg.1 exp.1 sin.1 r mul.1 mul.2") == users
    assert users_of("mul.1", body, ids="x y z g neg.1 exp.1 sin.1 r mul.1 mul.2", ids_known=False) == [
        "neg.1",
        "exp.1",
    ]


@pytest.mark.parametrize(
    ("between", "users"),
    [("jvp(jit(other))/tan", ["neg.1", "exp.1"]), (_CALL.replace("mul", "tan"), ["exp.1", "neg.1"])],
    ids=["another call", "the same"],
)
def test_a_call_that_was_inlined_in_between_tells_two_apart(between: str, users: list[str]) -> None:
    body = f"""  %x = f32[8]{{0}} parameter(0)
  %y = f32[8]{{0}} parameter(1)
  %g = f32[8]{{0}} parameter(2)
  %mul.1 = f32[8]{{0}} multiply(%x, %g){named(_CALL)}
  %tan.1 = f32[8]{{0}} tan(%y){named(between)}
  %mul.2 = f32[8]{{0}} multiply(%g, %y){named(_CALL)}
  %neg.1 = f32[8]{{0}} negate(%mul.1){named("neg")}
  %exp.1 = f32[8]{{0}} exponential(%mul.1){named("exp")}
  %sin.1 = f32[8]{{0}} sine(%mul.2){named("sin")}
  ROOT %r = (f32[8], f32[8], f32[8], f32[8]) tuple(%neg.1, %exp.1, %sin.1, %tan.1)"""
    assert users_of("mul.1", body, ids="x y g neg.1 exp.1 sin.1 r mul.1 tan.1 mul.2") == users


def test_what_a_loop_in_the_call_gives_back_is_a_result_as_well() -> None:
    """The gradients that a solver sums over a batch."""
    kinds = "(f32[4,8], f32[4,8])"
    head = f"""%body (b: {kinds}) -> {kinds} {{
  %b = {kinds} parameter(0)
  %b.0 = f32[4,8]{{1,0}} get-tuple-element(%b), index=0
  ROOT %t = {kinds} tuple(%b.0, %b.0)
}}

%condition (c: {kinds}) -> pred[] {{
  %c = {kinds} parameter(0)
  ROOT %never = pred[] constant(false)
}}
"""
    call = "transpose(jvp(jit(solve)))"
    summed = f"dimensions={{0}}, to_apply=%sum{named(f'{call}/reduce_sum')}"
    body = f"""  %x = {kinds} parameter(0)
  %zero = f32[] constant(0)
  %w.1 = {kinds} while(%x), condition=%condition, body=%body{named(f"{call}/while")}
  %e.0 = f32[4,8]{{1,0}} get-tuple-element(%w.1), index=0
  %e.1 = f32[4,8]{{1,0}} get-tuple-element(%w.1), index=1
  %sum.1 = f32[8]{{0}} reduce(%e.0, %zero), {summed}
  %sum.2 = f32[8]{{0}} reduce(%e.1, %zero), {summed}
  %neg.1 = f32[8]{{0}} negate(%sum.1){named("neg")}
  %exp.1 = f32[8]{{0}} exponential(%sum.1){named("exp")}
  %sin.1 = f32[8]{{0}} sine(%sum.2){named("sin")}
  ROOT %r = (f32[8], f32[8], f32[8]) tuple(%neg.1, %exp.1, %sin.1)"""
    ids = "x neg.1 exp.1 sin.1 r zero w.1 e.0 e.1 sum.1 sum.2"
    assert users_of("sum.1", body, ids=ids, head=head) == ["exp.1", "neg.1"]
