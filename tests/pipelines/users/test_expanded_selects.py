"""The derivative of a maximum over windows, as XLA's record of a residual network shows it."""

from __future__ import annotations

from .lists import named, users_of

_LATER = """%later (a: f32[], i: s32[], b: f32[], j: s32[]) -> (f32[], s32[]) {
  %a = f32[] parameter(0)
  %i = s32[] parameter(1)
  %b = f32[] parameter(2)
  %j = s32[] parameter(3)
  ROOT %t = (f32[], s32[]) tuple(%b, %j)
}
"""


def test_the_search_for_the_maximum_comes_behind_the_maximum() -> None:
    """The pad is of a function that was called, and younger than both."""
    window = "window={size=2 stride=2}"
    body = f"""  %p = f32[6]{{0}} parameter(0)
  %zero = f32[] constant(0)
  %none = s32[] constant(-1)
  %k = s32[8]{{0}} iota(), iota_dimension=0
  %pad.2 = f32[8]{{0}} pad(%p, %zero), padding=1_1{named("jit(_pad)/pad")}
  %search = (f32[4]{{0}}, s32[4]{{0}}) reduce-window(%pad.2, %k, %zero, %none), {window}, to_apply=%later
  %max = f32[4]{{0}} reduce-window(%pad.2, %zero), {window}, to_apply=%sum{named("reduce_window_max")}
  %at = s32[4]{{0}} get-tuple-element(%search), index=1
  ROOT %r = (s32[4]{{0}}, f32[4]{{0}}) tuple(%at, %max)"""
    ids = "p zero none k max r pad.2 search at"
    assert users_of("pad.2", body, head=_LATER, ids=ids) == ["max", "search"]


def test_it_was_the_last_user_when_the_tuple_of_a_call_went() -> None:
    """The call gives back what it derives by, too: it ended in a tuple, the first user."""
    window = "window={size=2 stride=2}"
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %zero = f32[] constant(0)
  %none = s32[] constant(-1)
  %k = s32[8]{{0}} iota(), iota_dimension=0
  %tanh.1 = f32[8]{{0}} tanh(%p){named("jvp(jit(act))/tanh")}
  %mul.1 = f32[8]{{0}} multiply(%p, %tanh.1){named("jvp(jit(act))/mul")}
  %max = f32[4]{{0}} reduce-window(%mul.1, %zero), {window}, to_apply=%sum{named("reduce_window_max")}
  %neg.1 = f32[8]{{0}} negate(%mul.1){named("neg")}
  %search = (f32[4]{{0}}, s32[4]{{0}}) reduce-window(%mul.1, %k, %zero, %none), {window}, to_apply=%later
  %at = s32[4]{{0}} get-tuple-element(%search), index=1
  %back.1 = f32[8]{{0}} multiply(%tanh.1, %neg.1){named("transpose(jvp(jit(act)))/mul")}
  ROOT %r = (s32[4]{{0}}, f32[4]{{0}}, f32[8]{{0}}) tuple(%at, %max, %back.1)"""
    ids = "p zero none k max neg.1 back.1 r tanh.1 mul.1 search at"
    assert users_of("mul.1", body, head=_LATER, ids=ids) == ["search", "max", "neg.1"]
