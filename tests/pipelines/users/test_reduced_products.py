"""Products that are summed as well, each case as XLA's records show it."""

from __future__ import annotations

import pytest

from .test_by_age import named, users_of


def test_the_last_user_takes_the_place_of_a_sum_of_the_matrix() -> None:
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %call = (f32[8,8]{{1,0}}, s8[64]{{0}}) custom-call(%p, %p), custom_call_target="__cublas$lt$matmul"
  %matrix = f32[8,8]{{1,0}} get-tuple-element(%call), index=0
  %total.1 = f32[8]{{0}} reduce(SUMMED, %zero), dimensions={{0}}, to_apply=%sum{named("total")}
  %bitcast.1 = f32[2,4,8]{{2,1,0}} bitcast(%matrix){named("dot_general")}
  %mul.1 = f32[2,4,8]{{2,1,0}} sine(%bitcast.1){named("mul")}
  %mul.2 = f32[2,4,8]{{2,1,0}} cosine(%bitcast.1){named("mul")}
  ROOT %r = (f32[8]{{0}}, f32[2,4,8]{{2,1,0}}, f32[2,4,8]{{2,1,0}}) tuple(%total.1, %mul.1, %mul.2)"""
    ids = "p zero mul.1 mul.2 r total.1 bitcast.1 call matrix"
    assert users_of("bitcast.1", body.replace("SUMMED", "%matrix"), ids=ids) == ["mul.2", "mul.1"]
    assert users_of("bitcast.1", body.replace("SUMMED", "%p"), ids=ids) == ["mul.1", "mul.2"]


@pytest.mark.parametrize(
    ("computed", "users"),
    [
        ("dot(%l, %l), lhs_contracting_dims={1}, rhs_contracting_dims={0}", ["take.1", "sub.1"]),
        ("multiply(%l, %l)", ["sub.1", "take.1"]),
    ],
)
def test_the_largest_of_what_a_gemm_computes_behind_the_product_had_stood_in_front(
    computed: str, users: list[str]
) -> None:
    gemm = f"""%gemm (l: f32[8,8]) -> f32[8,8] {{
  %l = f32[8,8]{{1,0}} parameter(0)
  %d = f32[8,8]{{1,0}} {computed}
  ROOT %n = f32[8,8]{{1,0}} negate(%d)
}}
"""
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %logits = f32[8,8]{{1,0}} fusion(%p), kind=kCustom, calls=%gemm
  %largest.1 = f32[8]{{0}} reduce(%logits, %zero), dimensions={{1}}, to_apply=%sum{named("largest")}
  %bitcast.1 = f32[2,4,8]{{2,1,0}} bitcast(%logits){named("add")}
  %sub.1 = f32[2,4,8]{{2,1,0}} sine(%bitcast.1){named("sub")}
  %take.1 = f32[2,4,8]{{2,1,0}} cosine(%bitcast.1){named("take")}
  ROOT %r = (f32[8]{{0}}, f32[2,4,8]{{2,1,0}}, f32[2,4,8]{{2,1,0}}) tuple(%largest.1, %sub.1, %take.1)"""
    assert users_of("bitcast.1", body, head=gemm) == users
