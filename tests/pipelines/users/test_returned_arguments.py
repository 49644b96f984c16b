"""`sum(jnp.pad(x[i:], (0, i)) for i in range(2))`, of which XLA's records show the order."""

from __future__ import annotations

import pytest

from .lists import named, places_in_source, users_of

_TABLES = places_in_source(
    ("program", 1, 1, 60), ("program", 1, 5, 30), ("program", 2, 1, 9), called_from={2: 1}
)
_SUM, _PAD, _ELSEWHERE = 1, 2, 3


def _program(*, frame: int = _SUM, function: str = "jit(_pad)/") -> str:
    return f"""  %p = f32[8]{{0}} parameter(0)
  %zero.1 = f32[] constant(0)
  %x.1 = f32[8]{{0}} sine(%p){named("sin", frame=_ELSEWHERE)}
  %neg.1 = f32[8]{{0}} negate(%x.1){named("neg", frame=_ELSEWHERE)}
  %slice.1 = f32[7]{{0}} slice(%x.1), slice={{[1:8]}}{named("slice", frame=_PAD)}
  %pad.1 = f32[8]{{0}} pad(%slice.1, %zero.1), padding=0_1{named(f"{function}pad", frame=_PAD)}
  %add.1 = f32[8]{{0}} add(%x.1, %pad.1){named("add", frame=frame)}
  ROOT %t = (f32[8]{{0}}, f32[8]{{0}}) tuple(%neg.1, %add.1)"""


def test_who_reads_a_call_that_gives_back_its_argument_takes_its_place() -> None:
    assert users_of("x.1", _program(), tables=_TABLES) == ["neg.1", "add.1", "slice.1"]


@pytest.mark.parametrize(
    "body",
    [_program(frame=_ELSEWHERE), _program(function="")],
    ids=["the sum is not around the call", "no function pads"],
)
def test_a_sum_of_a_value_and_what_is_padded_read_it_at_once(body: str) -> None:
    assert users_of("x.1", body, tables=_TABLES) == ["neg.1", "slice.1", "add.1"]
