"""Parts of what was copied to another layout, once or for each of them."""

from __future__ import annotations

import pytest

from .lists import named, users_of

_GEMM = """
%gemm (g: f32[8,12], h: f32[12,12]) -> f32[8,12] {
  %g = f32[8,12]{1,0} parameter(0)
  %h = f32[12,12]{1,0} parameter(1)
  ROOT %d = f32[8,12]{1,0} dot(%g, %h), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
_BY_LIBRARY = 'custom-call(%p, %q), custom_call_target="__cublas$gemm"'
_BY_TRITON = "fusion(%p, %q), kind=kCustom, calls=%gemm"


@pytest.mark.parametrize("name", ["split", "dot_general"])
@pytest.mark.parametrize(
    ("ids", "product", "is_copied_once"),
    [
        # Reshaped, it was copied once: the last part took the place of that copy.
        ("whole slice.1 slice.2 slice.3 turned.1 turned.2 turned.3", _BY_LIBRARY, True),
        # The bitcast came in front of the parts later: the product was copied for each.
        ("slice.1 slice.2 slice.3 turned.1 turned.2 turned.3 whole", _BY_LIBRARY, False),
        # Out of Triton's fusion a younger one was hoisted.
        ("slice.1 slice.2 slice.3 turned.1 turned.2 turned.3 whole", _BY_TRITON, True),
        # Layout normalization made the parts, each with what had been its copy.
        ("whole slice.1 turned.1 slice.2 turned.2 slice.3 turned.3", _BY_LIBRARY, False),
    ],
)
def test_parts_of_what_a_product_gives(ids: str, product: str, is_copied_once: bool, name: str) -> None:
    parts = "\n".join(
        f"  %slice.{k + 1} = f32[2,4,4]{{2,1,0}} slice(%whole), slice={{[0:2], [0:4], [{4 * k}:{4 * k + 4}]}}"
        f"{named(name)}\n"
        f"  %turned.{k + 1} = f32[2,4,4]{{2,1,0}} transpose(%slice.{k + 1}), dimensions={{0,2,1}}"
        f"{named(name)}"
        for k in range(3)
    )
    body = f"""  %p = f32[8,12]{{1,0}} parameter(0)
  %q = f32[12,12]{{1,0}} parameter(1)
  %product = f32[8,12]{{1,0}} {product}{named("dot_general")}
  %whole = f32[2,4,12]{{2,1,0}} bitcast(%product)
{parts}
  %add.1 = f32[2,4,4]{{2,1,0}} add(%turned.1, %turned.2){named("add")}
  ROOT %add.2 = f32[2,4,4]{{2,1,0}} add(%add.1, %turned.3){named("add")}"""
    users = users_of("whole", body, head=_GEMM, ids=f"p q add.1 add.2 product {ids}")
    assert users == (
        ["slice.3", "slice.1", "slice.2"] if is_copied_once else ["slice.1", "slice.2", "slice.3"]
    )
