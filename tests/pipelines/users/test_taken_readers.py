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


_SCALE = """
%gemm (a: f32[16,16], b: f32[16,16], c: f32[], d: f32[], e: f32[]) -> f32[16,16] {
  %a = f32[16,16]{1,0} parameter(0)
  %b = f32[16,16]{1,0} parameter(1)
  %c = f32[] parameter(2)
  %d = f32[] parameter(3)
  %e = f32[] parameter(4)
  %dot.1 = f32[16,16]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %div.2 = f32[] divide(%c, %d)
  %mul.2 = f32[] multiply(%div.2, %e)
  %broadcast.2 = f32[16,16]{1,0} broadcast(%mul.2), dimensions={}
  ROOT %mul.3 = f32[16,16]{1,0} multiply(%dot.1, %broadcast.2)
}
"""


@pytest.mark.parametrize(
    ("operand", "users"),
    [("v", ["mul.1", "sin.1", "cos.1"]), ("w", ["sin.1", "cos.1", "mul.1"])],
    ids=["same", "other"],
)
def test_a_text_without_metadata_tells_of_what_gemms_took_along(operand: str, users: list[str]) -> None:
    """What was computed of a number is found by what computes it; the number may have become another."""
    body = f"""  %p = f32[16,16]{{1,0}} parameter(0)
  %q = f32[16,16]{{1,0}} parameter(1)
  %v = f32[1]{{0}} parameter(2)
  %w = f32[1]{{0}} parameter(3)
  %one.1 = f32[1]{{0}} constant({{1}})
  %div.1 = f32[1]{{0}} divide(%one.1, %{operand})
  %one.2 = f32[] constant(1)
  %bitcast.1 = f32[] bitcast(%v)
  %bitcast.2 = f32[] bitcast(%w)
  %gemm.1 = f32[16,16]{{1,0}} fusion(%p, %q, %one.2, %bitcast.1, %bitcast.2), kind=kCustom, calls=%gemm
  %sin.1 = f32[1]{{0}} sine(%div.1)
  %cos.1 = f32[1]{{0}} cosine(%div.1)
  %mul.1 = f32[1]{{0}} multiply(%div.1, %div.1)
  ROOT %r = (f32[16,16], f32[1], f32[1], f32[1]) tuple(%gemm.1, %sin.1, %cos.1, %mul.1)"""
    ids = "p q v w one.1 div.1 sin.1 cos.1 mul.1 r one.2 bitcast.1 bitcast.2 gemm.1"
    assert users_of("div.1", body, head=_SCALE, ids=ids) == users
