"""Slices of what was given to a function as a slice, and what a scatter of one update became."""

from __future__ import annotations

import pytest

from .lists import named, users_of

_ROLLED = "jit(_roll_static)/slice"


def _rolled(*, kept: str = "") -> str:
    """`jnp.roll` of the second and of the third column, beside a quotient that became a product."""
    parts = [
        f"  %slice.{column}{k}.0 = f32[{end - start},1]{{1,0}} slice(%x.1), slice={{[{start}:{end}], "
        f"[{column}:{column + 1}]}}{named(_ROLLED)}"
        for column in (1, 2)
        for k, (start, end) in enumerate([(7, 8), (0, 7)])
    ]
    lines = "\n".join(parts)
    shapes = ", ".join(f"f32[{size}]{{1,0}}" for size in ("8,1", *["1,1", "7,1"] * 2, *["8,4"] * 2))
    return f"""  %p = f32[8,4]{{1,0}} parameter(0)
  %x.1 = f32[8,4]{{1,0}} sine(%p){named("sin")}
  %slice.1.0 = f32[8,1]{{1,0}} slice(%x.1), slice={{[0:8], [0:1]}}{named("slice")}
{kept}{lines}
  %cos.1 = f32[8,4]{{1,0}} cosine(%x.1){named("cos")}
  %multiply.1 = f32[8,4]{{1,0}} multiply(%p, %p){named("div")}
  ROOT %t = ({shapes}) tuple(%slice.1.0, %slice.10.0, %slice.11.0, %slice.20.0, %slice.21.0, \
%cos.1, %multiply.1)"""


_AGES = "p x.1 slice.1.0 slice.2.0 cos.1 t multiply.1 slice.10.0 slice.11.0 slice.20.0 slice.21.0"


def test_the_last_slice_of_a_slice_takes_its_place() -> None:
    assert users_of("x.1", _rolled(), ids=_AGES) == [
        "slice.1.0",
        "slice.11.0",
        "slice.21.0",
        "cos.1",
        "slice.10.0",
        "slice.20.0",
    ]


def test_a_slice_that_is_read_as_well_stays() -> None:
    kept = f"  %slice.2.0 = f32[8,1]{{1,0}} slice(%x.1), slice={{[0:8], [1:2]}}{named('slice')}\n"
    users = ["slice.1.0", "slice.2.0", "slice.21.0", "cos.1", "slice.10.0", "slice.11.0", "slice.20.0"]
    assert users_of("x.1", _rolled(kept=kept), ids=_AGES) == users


@pytest.mark.parametrize(
    ("operation", "users"), [("scatter", ["cos.1", "neg.1"]), ("dynamic_update_slice", ["neg.1", "cos.1"])]
)
def test_the_last_user_of_a_scattered_update_takes_the_place_of_the_loops_tuple(
    operation: str, users: list[str]
) -> None:
    body = f"""  %p = f32[8,4]{{1,0}} parameter(0)
  %u = f32[1,4]{{1,0}} parameter(1)
  %zero = s32[] constant(0)
  %x.1 = f32[8,4]{{1,0}} dynamic-update-slice(%p, %u, %zero, %zero){named(operation)}
  %neg.1 = f32[8,4]{{1,0}} negate(%x.1){named("neg")}
  %cos.1 = f32[8,4]{{1,0}} cosine(%x.1){named("cos")}
  ROOT %t = (f32[8,4]{{1,0}}, f32[8,4]{{1,0}}) tuple(%neg.1, %cos.1)"""
    assert users_of("x.1", body) == users


def _rotated(*, start: int = 8, named_by: str = "slice", metadata: bool = True) -> str:
    """Both halves of `x` sliced once more, as for a rotation of a part of each."""

    def op(name: str) -> str:
        return named(name) if metadata else ""

    parts = [(0, 2), (start, 10), (2, start), (10, 16)]
    lines = "\n".join(
        f"  %slice.{k}.0 = f32[{end - begin}]{{0}} slice(%x.1), slice={{[{begin}:{end}]}}{op(named_by)}"
        for k, (begin, end) in enumerate(parts)
    )
    shapes = ", ".join(f"f32[{end - begin}]{{0}}" for begin, end in parts)
    return f"""  %p = f32[16]{{0}} parameter(0)
  %x.1 = f32[16]{{0}} sine(%p){op("sin")}
{lines}
  %cos.1 = f32[16]{{0}} cosine(%x.1){op("cos")}
  %multiply.1 = f32[16]{{0}} multiply(%p, %p){op("div")}
  ROOT %t.1 = ({shapes}, f32[16]{{0}}, f32[16]{{0}}) tuple(%slice.0.0, %slice.1.0, %slice.2.0, %slice.3.0, \
%cos.1, %multiply.1)"""


_OF_HALVES = "p x.1 cos.1 t.1 multiply.1 slice.0.0 slice.1.0 slice.2.0 slice.3.0"


@pytest.mark.parametrize("metadata", [True, False])
def test_the_last_slices_of_halves_take_the_places_of_the_halves(*, metadata: bool) -> None:
    users = ["slice.2.0", "slice.3.0", "cos.1", "slice.0.0", "slice.1.0"]
    assert users_of("x.1", _rotated(metadata=metadata), ids=_OF_HALVES) == users


def test_slices_of_no_equal_parts_stay_in_order() -> None:
    users = ["slice.0.0", "slice.1.0", "slice.2.0", "slice.3.0", "cos.1"]
    assert users_of("x.1", _rotated(start=6), ids=_OF_HALVES) == users
