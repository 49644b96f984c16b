"""Who read what another call of a Python function had computed, each case as XLA's records show it."""

from __future__ import annotations

import pytest

from .lists import named, places_in_source, users_of

# `check(x)` calls `positive(x)` in its line 2 and reads that in line 3. Lines 8 and 9 of f call it, as does
# its line 4.
PLACES = places_in_source(
    ("f", 8, 1, 9),
    ("f", 9, 1, 9),
    ("check", 2, 5, 20),
    ("positive", 20, 5, 20),
    *3 * [("check", 3, 5, 20)],
    ("check", 4, 5, 20),
    called_from={3: 1, 4: 3, 5: 1, 6: 2, 7: 8, 8: 1},
)
IDS = "x y p gt.1 or.1 and.1 xor.1 r"


def _readers(second: int, *, operation: str = "gt", source: int = 4) -> str:
    return f"""  %x = f32[8]{{0}} parameter(0)
  %y = f32[8]{{0}} parameter(1)
  %p = pred[8]{{0}} parameter(2)
  %gt.1 = pred[8]{{0}} compare(%x, %y), direction=GT{named(operation, frame=source)}
  %or.1 = pred[8]{{0}} or(%gt.1, %p){named("or", frame=5)}
  %and.1 = pred[8]{{0}} and(%gt.1, %p){named("and", frame=second)}
  %xor.1 = pred[8]{{0}} xor(%gt.1, %p){named("xor", frame=5)}
  ROOT %r = (pred[8]{{0}}, pred[8]{{0}}, pred[8]{{0}}) tuple(%or.1, %and.1, %xor.1)"""


@pytest.mark.parametrize(
    ("second", "operation", "users"),
    [
        (6, "gt", "or.1 xor.1 and.1"),
        (5, "gt", "or.1 and.1 xor.1"),
        (7, "gt", "or.1 and.1 xor.1"),
        (6, "jit(mask)/gt", "or.1 and.1 xor.1"),
    ],
    ids=["another call", "the same call", "a call within that call", "computed in a call of the program's"],
)
def test_what_another_call_reads_is_of_that_call(second: int, operation: str, users: str) -> None:
    assert users_of("gt.1", _readers(second, operation=operation), ids=IDS, tables=PLACES) == users.split()


def test_what_both_calls_are_given_is_read_in_order() -> None:
    assert users_of("gt.1", _readers(6, source=1), ids=IDS, tables=PLACES) == ["or.1", "and.1", "xor.1"]
