"""Results of library calls that a text reads without a name."""

from __future__ import annotations

import pytest

from .lists import named, users_of

_SOFTMAX = f"""  %p = f32[4,8]{{1,0}} parameter(0)
  %q = f32[8,8]{{1,0}} parameter(1)
  %least = f32[] constant(-inf)
  %gemm = (f32[4,8]{{1,0}}, s8[64]{{0}}) custom-call(%p, %q), \
custom_call_target="TARGET"{named("dot_general")}
  %get-tuple-element.1 = f32[4,8]{{1,0}} get-tuple-element(%gemm), index=0
  %max.1 = f32[4]{{0}} reduce(%get-tuple-element.1, %least), dimensions={{1}}, \
to_apply=%sum{named("jit(soft)/max")}
  %sub.1 = f32[4,8]{{1,0}} broadcast(%max.1), dimensions={{0}}{named("jit(soft)/sub")}
  %sub.2 = f32[4,8]{{1,0}} subtract(%get-tuple-element.1, %sub.1){named("jit(soft)/sub")}
  ROOT %exp.1 = f32[4,8]{{1,0}} exponential(%sub.2){named("jit(soft)/exp")}"""


@pytest.mark.parametrize(
    ("target", "users"), [("__cublas$gemm", ["sub.2", "max.1"]), ("__other", ["max.1", "sub.2"])]
)
def test_a_call_was_given_the_result_of_a_matrix_product(target: str, users: list[str]) -> None:
    """It was the first user, and the last of what it brought in took its place."""
    ids = "p q least exp.1 max.1 sub.1 sub.2 gemm get-tuple-element.1"
    assert users_of("get-tuple-element.1", _SOFTMAX.replace("TARGET", target), ids=ids) == users


@pytest.mark.parametrize(
    ("operation", "users"),
    [("convert_element_type", ["neg.1", "bitcast.1"]), ("reshape", ["bitcast.1", "neg.1"])],
)
def test_the_convert_of_a_narrow_product_went_once_that_was_wide(operation: str, users: list[str]) -> None:
    body = f"""  %p = f32[4,8]{{1,0}} parameter(0)
  %gemm = (f32[4,8]{{1,0}}, s8[64]{{0}}) custom-call(%p, %p), \
custom_call_target="__cublas$gemm"{named("dot_general")}
  %get-tuple-element.1 = f32[4,8]{{1,0}} get-tuple-element(%gemm), index=0
  %bitcast.1 = f32[32]{{0}} bitcast(%get-tuple-element.1){named(operation)}
  %neg.1 = f32[4,8]{{1,0}} negate(%get-tuple-element.1){named("neg")}
  ROOT %r = (f32[32]{{0}}, f32[4,8]{{1,0}}) tuple(%bitcast.1, %neg.1)"""
    assert users_of("get-tuple-element.1", body) == users
