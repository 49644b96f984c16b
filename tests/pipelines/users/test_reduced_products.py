"""Products that are summed as well, each case as XLA's records show it."""

from __future__ import annotations

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
