"""The number that reductions and broadcasts share: XLA's order of what it fuses the constant into last."""

from __future__ import annotations

from .lists import named, users_of

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


def test_what_passes_made_anew_is_by_age() -> None:
    """A division by a constant became a product as the passes began: all that is younger they made."""
    half = "  %half = f32[4,8] constant({...})\n"
    body = _BODY.replace(
        "  %early", f"{half}  %multiply.1 = f32[4,8] multiply(%p, %half){named('div')}\n  %early"
    )
    body = body.replace("reduce(%p", "reduce(%multiply.1")
    ids = "p zero first second half multiply.1 late early r"
    assert users_of("zero", body, ids=ids) == ["first", "second", "late", "early"]
