"""Which users of a widened value read it converted by the function that CSE met first."""

from __future__ import annotations

import pytest

from .lists import named, places_in_source, users_of


@pytest.mark.parametrize(
    ("caller", "transform", "parts", "users"),
    [
        (4, "jvp()", "", "square.1 residual sub.1 reduce_sum.1"),
        (3, "jvp()", "", "square.1 residual reduce_sum.1 sub.1"),
        (4, "transpose(jvp())", "", "square.1 residual reduce_sum.1 sub.1"),
        (4, "jvp()", "complex(%x, %x)", "parts residual reduce_sum.1 sub.1 square.1"),
    ],
)
def test_each_function_converts_what_it_is_given(caller: int, transform: str, parts: str, users: str) -> None:
    """One function sums and squares, another takes the sum away, and its convert is met first.

    Where they are one function, or `x` is a derivative, there was but one convert; what asked for a part of a
    number does not tell where it was converted.
    """
    places = [
        ("statistics", 7, 3, 9),
        ("normalize", 12, 3, 9),
        ("f", 1, 1, 9),
        ("f", 2, 1, 9),
        ("g", 3, 1, 9),
    ]
    made = f"  %parts = c64[8,4]{{1,0}} {parts}\n" if parts else ""
    body = f"""  %p = bf16[8,4]{{1,0}} parameter(0)
  %q = bf16[8,4]{{1,0}} parameter(1)
  %zero = f32[] constant(0)
  %convert.1 = f32[8,4]{{1,0}} convert(%p)
  %convert.2 = f32[8,4]{{1,0}} convert(%q)
  %x = f32[8,4]{{1,0}} add(%convert.1, %convert.2){named(f"{transform}/add", frame=5)}
  %reduce_sum.1 = f32[8]{{0}} reduce(%x, %zero), dimensions={{1}}, to_apply=%sum{named("reduce_sum", frame=1)}
  %broadcast.1 = f32[8,4]{{1,0}} broadcast(%reduce_sum.1), dimensions={{0}}{named("sub", frame=2)}
  %sub.1 = f32[8,4]{{1,0}} subtract(%x, %broadcast.1){named("sub", frame=2)}
  %square.1 = f32[8,4]{{1,0}} multiply(%x, %x){named("square", frame=1)}
{made}  %residual = f32[8,4]{{1,0}} add(%x, %convert.2){named("add", frame=5)}
  %convert.3 = bf16[8,4]{{1,0}} convert(%residual)
  ROOT %r = (f32[8,4]{{1,0}}, f32[8,4]{{1,0}}, bf16[8,4]{{1,0}}) tuple(%sub.1, %square.1, %convert.3)"""
    tables = places_in_source(*places, called_from={1: 3, 2: caller})
    assert users_of("x", body, tables=tables) == users.split()
