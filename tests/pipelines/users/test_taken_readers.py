"""The users of values of which Triton gemms took copies along, each case as XLA's records show it."""

from __future__ import annotations

import pytest

from .lists import named, users_of

_GEMM = f"""
%gemm (x: f32[16,16], y: f32[16,16], w: f32[16,16]) -> f32[16,16] {{
  %x = f32[16,16]{{1,0}} parameter(0)
  %y = f32[16,16]{{1,0}} parameter(1)
  %sum.2 = f32[16,16]{{1,0}} add(%x, %y){named("add")}
  %w = f32[16,16]{{1,0}} parameter(2)
  {{BEHIND}}
  ROOT %dot.1 = f32[16,16]{{1,0}} dot(%w, %{{OPERAND}}), lhs_contracting_dims={{1}},\
 rhs_contracting_dims={{0}}
}}
"""
_MUL = f"%mul.2 = f32[16,16]{{1,0}} multiply(%sum.2, %y){named('mul')}"


@pytest.mark.parametrize(
    ("behind", "operand", "users"),
    [
        # The product was the first user of the sum.
        ("", "sum.2", ["cos.1", "sin.1"]),
        # So was a multiplication behind it, which went with the product.
        (_MUL, "mul.2", ["cos.1", "sin.1"]),
        # The gemm read what it reads in the program as well.
        ("", "y", ["sin.1", "cos.1"]),
    ],
    ids=["product", "behind", "none"],
)
def test_the_last_takes_the_place_of_what_a_gemm_took_along(
    behind: str, operand: str, users: list[str]
) -> None:
    head = _GEMM.replace("{BEHIND}", behind).replace("{OPERAND}", operand)
    body = f"""  %p = f32[16,16]{{1,0}} parameter(0)
  %q = f32[16,16]{{1,0}} parameter(1)
  %v = f32[16,16]{{1,0}} parameter(2)
  %gemm.1 = f32[16,16]{{1,0}} fusion(%p, %q, %v), kind=kCustom, calls=%gemm{named("dot_general")}
  %add.1 = f32[16,16]{{1,0}} add(%p, %q){named("add")}
  %sin.1 = f32[16,16]{{1,0}} sine(%add.1){named("sin")}
  %cos.1 = f32[16,16]{{1,0}} cosine(%add.1){named("cos")}
  ROOT %r = (f32[16,16], f32[16,16], f32[16,16]) tuple(%gemm.1, %sin.1, %cos.1)"""
    ids = "p q v add.1 sin.1 cos.1 r gemm.1"
    assert users_of("add.1", body, head=head, ids=ids) == users


@pytest.mark.parametrize(
    ("call", "users"),
    [("transpose(jvp())/", ["concatenate.1", "sin.1"]), ("jvp()/", ["sin.1", "concatenate.1"])],
)
def test_what_products_merged_of_derivatives_read_is_behind(call: str, users: list[str]) -> None:
    """The gradient of weights comes behind that of a bias; forward the product comes first, as written."""
    head = _GEMM.replace("{BEHIND}", "").replace("{OPERAND}", "sum.2").replace("/add", f"/{call}add")
    body = f"""  %p = f32[16,16]{{1,0}} parameter(0)
  %q = f32[16,16]{{1,0}} parameter(1)
  %v = f32[16,16]{{1,0}} parameter(2)
  %gemm.1 = f32[16,16]{{1,0}} fusion(%p, %q, %v), kind=kCustom, calls=%gemm{named("dot_general")}
  %add.1 = f32[16,16]{{1,0}} add(%p, %q){named(f"{call}add")}
  %concatenate.1 = f32[16,32]{{1,0}} concatenate(%add.1, %v), dimensions={{1}}
  %sin.1 = f32[16,16]{{1,0}} sine(%add.1){named("sin")}
  ROOT %r = (f32[16,16], f32[16,32], f32[16,16]) tuple(%gemm.1, %concatenate.1, %sin.1)"""
    ids = "p q v add.1 sin.1 r concatenate.1 gemm.1"
    assert users_of("add.1", body, head=head, ids=ids) == users
