"""Constants that were divided by, each case as XLA's records show it."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("alpha", "users"), [("0.25", ["mul.2", "mul.1"]), ("1", ["mul.1", "mul.2"]), ("0.5", ["mul.1", "mul.2"])]
)
def test_a_library_multiplies_by_the_reciprocal_as_well(alpha: str, users: list[str]) -> None:
    """Two quotients of 4 went, of which a gemm has taken along one; each left its place to the last user."""
    config = f'{{"gemm_backend_config":{{"alpha_real":{alpha},"beta":0}}}}'
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %q = f32[8,8]{{1,0}} parameter(1)
  %c = f32[] constant(4)
  %four = f32[8,8]{{1,0}} broadcast(%c), dimensions={{}}
  %d = f32[] constant(0.25)
  %quarter = f32[8,8]{{1,0}} broadcast(%d), dimensions={{}}
  %call = (f32[8,8]{{1,0}}, s8[64]{{0}}) custom-call(%p, %q), custom_call_target="__cublas$lt$matmul",\
 backend_config={config}
  %product = f32[8,8]{{1,0}} get-tuple-element(%call), index=0
  %mul.1 = f32[8,8]{{1,0}} multiply(%product, %four){named("mul")}
  %mul.2 = f32[8,8]{{1,0}} multiply(%mul.1, %four){named("mul")}
  %multiply.1 = f32[8,8]{{1,0}} multiply(%mul.2, %quarter){named("div")}
  ROOT %r = (f32[8,8]{{1,0}}) tuple(%multiply.1)"""
    ids = "p c four q mul.1 mul.2 r d quarter multiply.1 call product"
    assert users_of("four", body, ids=ids) == users
