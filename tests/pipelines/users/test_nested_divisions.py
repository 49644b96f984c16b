"""The order of users where a quotient was divided again."""

from __future__ import annotations

import pytest

from .lists import users_in

_MODULE = """HloModule m

ENTRY %main (v: f32[4], b: f32[4]) -> (f32[4], f32[4]) {
  %v = f32[4]{0} parameter(0)
  %exp.1 = f32[4]{0} exponential(%v), metadata={op_name="jit(f)/exp"}
  %b = f32[4]{0} parameter(1)
  %sin.1 = f32[4]{0} sine(%exp.1), metadata={op_name="jit(f)/sin"}
  PRODUCT
  %div.9 = f32[4]{0} divide(%exp.1, %product), metadata={op_name="jit(f)/div"}
  ROOT %tuple.1 = (f32[4]{0}, f32[4]{0}) tuple(%div.9, %exp.1)
}
"""
_MADE = "%multiply.3 = f32[4]{0} multiply(%b, %sin.1)"
_WRITTEN = '%mul.3 = f32[4]{0} multiply(%b, %sin.1), metadata={op_name="jit(f)/mul"}'


@pytest.mark.parametrize("ids_known", [False, True])
@pytest.mark.parametrize(
    ("product", "users"),
    [(_MADE, ["div.9", "sin.1", "tuple.1"]), (_WRITTEN, ["sin.1", "div.9", "tuple.1"])],
)
def test_the_division_took_the_place_of_the_first_one(
    product: str, users: list[str], ids_known: bool
) -> None:
    """`(e / b) / sin(e)` became `e / (b * sin(e))`."""
    name = product.split()[0]
    assert (
        users_in(_MODULE.replace("PRODUCT", product).replace("%product", name), "exp.1", ids_known=ids_known)
        == users
    )
