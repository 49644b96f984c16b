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
