"""Results of library calls that a text reads without a name."""

from __future__ import annotations

import pytest

from .lists import named, users_of

_SOFTMAX = f"""  %p = f32[4,8]{{1,0}} parameter(0)
  %q = f32[8,8]{{1,0}} parameter(1)
  %least = f32[] constant(-inf)
  %gemm = (f32[4,8]{{1,0}}, s8[64]{{0}}) custom-call(%p, %q), custom_call_target="TARGET"{named("dot_general")}
  %get-tuple-element.1 = f32[4,8]{{1,0}} get-tuple-element(%gemm), index=0
  %max.1 = f32[4]{{0}} reduce(%get-tuple-element.1, %least), dimensions={{1}}, to_apply=%sum{named("jit(softmax)/max")}
  %sub.1 = f32[4,8]{{1,0}} broadcast(%max.1), dimensions={{0}}{named("jit(softmax)/sub")}
  %sub.2 = f32[4,8]{{1,0}} subtract(%get-tuple-element.1, %sub.1){named("jit(softmax)/sub")}
  ROOT %exp.1 = f32[4,8]{{1,0}} exponential(%sub.2){named("jit(softmax)/exp")}"""


@pytest.mark.parametrize(
    ("target", "users"), [("__cublas$gemm", ["sub.2", "max.1"]), ("__other", ["max.1", "sub.2"])]
)
def test_a_call_was_given_the_result_of_a_matrix_product(target: str, users: list[str]) -> None:
    """It was the first user, and the last of what it brought in took its place."""
    ids = "p q least exp.1 max.1 sub.1 sub.2 gemm get-tuple-element.1"
    assert users_of("get-tuple-element.1", _SOFTMAX.replace("TARGET", target), ids=ids) == users
