"""The number that reductions and broadcasts share: XLA's order of what it fuses the constant into last."""

from __future__ import annotations

from .lists import users_of

# By the ids, the program has the two broadcasts first and then `late`, which it computes ahead of `early`.
_BODY = """
  %p = f32[4,8] parameter(0)
  %zero = f32[] constant(0)
  %second = f32[4] broadcast(%zero), dimensions={}
  %first = f32[8] broadcast(%zero), dimensions={}
  %early = f32[4] reduce(%p, %zero), dimensions={1}, to_apply=%sum
  %late = f32[8] reduce(%p, %zero), dimensions={0}, to_apply=%sum
  ROOT %r = (f32[4], f32[8], f32[4], f32[8]) tuple(%second, %first, %early, %late)
"""
_IDS = "p zero first second late early r"


def test_broadcasts_are_by_age_and_reductions_as_cse_met_them() -> None:
    assert users_of("zero", _BODY, ids=_IDS) == ["first", "second", "early", "late"]
