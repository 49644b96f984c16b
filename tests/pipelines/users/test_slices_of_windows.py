"""Slices of running sums that were cut to size, as XLA's multi-output fusion of a program shows them."""

from __future__ import annotations

import pytest

from .lists import named, users_of

_SUM = "jit(_var)/reduce_sum"


def _program(taken: str, *, written: str = "slice") -> str:
    """Running sums, given to a function, of which the program also takes a part."""
    return f"""  %p = f32[1008]{{0}} parameter(0)
  %zero.1 = f32[] constant(0)
  %sums.1 = f32[1008]{{0}} sine(%p){named("reduce_window_sum")}
  %cut.1 = f32[1000]{{0}} slice(%sums.1), slice={{[0:1000]}}
  %reduce_sum.1 = f32[] reduce(%cut.1, %zero.1), dimensions={{0}}, to_apply=%sum{named(_SUM)}
  %sub.1 = f32[1000]{{0}} broadcast(%reduce_sum.1), dimensions={{}}{named("jit(_var)/sub")}
  %sub.2 = f32[1000]{{0}} subtract(%cut.1, %sub.1){named("jit(_var)/sub")}
  %{written}.3 = f32[500]{{0}} slice(%sums.1), slice={{[{taken}]}}{named("slice")}
  %neg.1 = f32[1000]{{0}} negate(%cut.1){named("neg")}
  ROOT %t = (f32[1000]{{0}}, f32[500]{{0}}, f32[1000]{{0}}) tuple(%sub.2, %{written}.3, %neg.1)"""


def test_the_last_of_a_function_takes_the_place_of_a_slice_of_the_sums() -> None:
    assert users_of("cut.1", _program("1:501")) == ["sub.2", "reduce_sum.1", "neg.1"]


@pytest.mark.parametrize(
    "body",
    [_program("504:1004"), _program("1:501", written="piece")],
    ids=["it goes beyond them", "a pass made it"],
)
def test_another_slice_was_not_one_of_the_sums(body: str) -> None:
    assert users_of("cut.1", body) == ["sub.2", "neg.1", "reduce_sum.1"]


@pytest.mark.parametrize(
    ("of", "users"),
    [("reduce_window_sum", ["div.1", "sign.1", "rem.1"]), ("add", ["sign.1", "rem.1", "div.1"])],
)
def test_sums_laid_out_again_before_they_were_cut_were_given_to_a_call(of: str, users: list[str]) -> None:
    """Sums of blocks come as one more dimension; the cut bears no name. Other cuts a pass made later."""
    call = "jit(floor_divide)"
    body = f"""  %p = s32[13,16]{{1,0}} parameter(0)
  %sums.1 = s32[13,16]{{1,0}} negate(%p){named(of)}
  %bitcast.1 = s32[208]{{0}} bitcast(%sums.1)
  %cut.1 = s32[200]{{0}} slice(%bitcast.1), slice={{[0:200]}}
  %seven.1 = s32[] constant(7)
  %sevens.1 = s32[200]{{0}} broadcast(%seven.1), dimensions={{}}{named(f"{call}/rem")}
  %sign.1 = s32[200]{{0}} sign(%cut.1){named(f"{call}/sign")}
  %rem.1 = s32[200]{{0}} remainder(%cut.1, %sevens.1){named(f"{call}/rem")}
  %div.1 = s32[200]{{0}} divide(%cut.1, %sevens.1){named(f"{call}/div")}
  ROOT %t = (s32[200]{{0}}, s32[200]{{0}}, s32[200]{{0}}) tuple(%sign.1, %rem.1, %div.1)"""
    assert users_of("cut.1", body) == users
