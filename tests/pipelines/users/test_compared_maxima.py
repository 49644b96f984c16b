"""The derivative of a maximum in a scan: what tells whose it is, is given to what the scan does.

Asked of XLA: `jax.grad` of a `jax.lax.scan` over `jnp.maximum(c, t)` has both last choices in front.
"""

import pytest

from .lists import users_of

_CHOICE = 'metadata={op_name="jit(f)/jvp()/while/body/%sselect_n"}'
_COMPARISON = 'metadata={op_name="jit(f)/jvp()/while/body/%seq"}'
_CHOICES = "share_of_c all_of_c share_of_t all_of_t"
_IDS = f"c t one two zero ones twos zeros max of_c of_t {_CHOICES} inverse by_c by_t r"


def _of_maximum(function: str) -> str:
    comparison, choice = _COMPARISON % function, _CHOICE % function
    return f"""
  %c = f32[4,64]{{1,0}} parameter(0)
  %t = f32[4,64]{{1,0}} parameter(1)
  %one = f32[] constant(1)
  %two = f32[] constant(2)
  %zero = f32[] constant(0)
  %ones = f32[4,64]{{1,0}} broadcast(%one), dimensions={{}}
  %twos = f32[4,64]{{1,0}} broadcast(%two), dimensions={{}}
  %zeros = f32[4,64]{{1,0}} broadcast(%zero), dimensions={{}}
  %max = f32[4,64]{{1,0}} maximum(%c, %t)
  %of_c = pred[4,64]{{1,0}} compare(%c, %max), direction=EQ, {comparison}
  %of_t = pred[4,64]{{1,0}} compare(%t, %max), direction=EQ, {comparison}
  %share_of_c = f32[4,64]{{1,0}} select(%of_c, %ones, %zeros), {choice}
  %all_of_c = f32[4,64]{{1,0}} select(%of_t, %twos, %ones), {choice}
  %share_of_t = f32[4,64]{{1,0}} select(%of_t, %ones, %zeros), {choice}
  %all_of_t = f32[4,64]{{1,0}} select(%of_c, %twos, %ones), {choice}
  %inverse = f32[4,64]{{1,0}} divide(%ones, %max)
  %by_c = f32[4,64]{{1,0}} divide(%share_of_c, %all_of_c)
  %by_t = f32[4,64]{{1,0}} divide(%share_of_t, %all_of_t)
  ROOT %r = (f32[4,64]{{1,0}}, f32[4,64]{{1,0}}, f32[4,64]{{1,0}}) tuple(%by_c, %by_t, %inverse)
"""


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        ("ones", ["all_of_t", "share_of_c", "all_of_c", "share_of_t", "inverse"]),
        ("twos", ["all_of_t", "all_of_c"]),
        ("zeros", ["share_of_t", "share_of_c"]),
    ],
)
def test_the_last_choice_takes_the_place_of_the_call_that_was_given_the_numbers(
    literal: str, expected: list[str]
) -> None:
    assert users_of(literal, _of_maximum("eval_jaxpr/"), ids=_IDS) == expected


def test_outside_of_a_scan_there_is_no_such_call() -> None:
    assert users_of("twos", _of_maximum(""), ids=_IDS) == ["all_of_c", "all_of_t"]
