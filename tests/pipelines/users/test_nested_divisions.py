"""The order of users where a quotient was divided again, or divided by."""

from __future__ import annotations

import pytest

from .lists import named, users_in, users_of

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


_BY_QUOTIENT = """HloModule m

ENTRY %main (a: f32[4], v: f32[4], w: f32[4]) -> f32[4] {
  %a = f32[4]{0} parameter(0)
  %v = f32[4]{0} parameter(1)
  %b.1 = f32[4]{0} exponential(%v), metadata={op_name="jit(f)/b"}
  %w = f32[4]{0} parameter(2)
  %c.1 = f32[4]{0} exponential(%w), metadata={op_name="jit(f)/c"}
  %div.1 = f32[4]{0} divide(%b.1, %c.1), metadata={op_name="jit(f)/div"}
  %neg.1 = f32[4]{0} negate(%div.1), metadata={op_name="jit(f)/neg"}
  PRODUCT
  %div.2 = f32[4]{0} divide(%product, %b.1), metadata={op_name="jit(f)/div"}
  %cos.1 = f32[4]{0} add(%b.1, %c.1), metadata={op_name="jit(f)/cos"}
  %abs.1 = f32[4]{0} abs(%div.1), metadata={op_name="jit(f)/abs"}
  %sin.1 = f32[4]{0} sine(%div.1), metadata={op_name="jit(f)/sin"}
  ROOT %r = f32[4]{0} custom-call(%neg.1, %div.2, %cos.1, %abs.1, %sin.1), custom_call_target="f"
}
"""


@pytest.mark.parametrize(
    ("name", "made", "written"),
    [
        ("b.1", ["div.1", "cos.1", "div.2"], ["div.1", "div.2", "cos.1"]),
        ("c.1", ["div.1", "cos.1", "multiply.1"], ["div.1", "mul.1", "cos.1"]),
        ("div.1", ["neg.1", "sin.1", "abs.1"], ["neg.1", "abs.1", "sin.1"]),
    ],
    ids=["dividend", "divisor", "quotient"],
)
@pytest.mark.parametrize("ids_known", [False, True])
def test_a_division_by_a_quotient_reads_what_that_is_of(
    name: str, made: list[str], written: list[str], ids_known: bool
) -> None:
    """`a / (b / c)` became `(a * c) / b`."""
    for product, users in (
        ("%multiply.1 = f32[4]{0} multiply(%a, %c.1)", made),
        ('%mul.1 = f32[4]{0} multiply(%a, %c.1), metadata={op_name="jit(f)/mul"}', written),
    ):
        program = _BY_QUOTIENT.replace("PRODUCT", product).replace("%product", product.split()[0])
        assert users_in(program, name, ids_known=ids_known) == users


@pytest.mark.parametrize(("name", "users"), [("b.1", ["div.2", "cos.1"]), ("c.1", ["multiply.1", "cos.1"])])
def test_a_quotient_that_goes_leaves_a_hole(name: str, users: list[str]) -> None:
    program = """HloModule m

ENTRY %main (a: f32[4], v: f32[4], w: f32[4]) -> (f32[4], f32[4]) {
  %a = f32[4]{0} parameter(0)
  %v = f32[4]{0} parameter(1)
  %b.1 = f32[4]{0} exponential(%v), metadata={op_name="jit(f)/b"}
  %w = f32[4]{0} parameter(2)
  %c.1 = f32[4]{0} exponential(%w), metadata={op_name="jit(f)/c"}
  %cos.1 = f32[4]{0} add(%b.1, %c.1), metadata={op_name="jit(f)/cos"}
  %multiply.1 = f32[4]{0} multiply(%a, %c.1)
  %div.2 = f32[4]{0} divide(%multiply.1, %b.1), metadata={op_name="jit(f)/div"}
  ROOT %r = (f32[4]{0}, f32[4]{0}) tuple(%div.2, %cos.1)
}
"""
    assert users_in(program, name, ids_known=True) == users


_BY_RECIPROCAL = """  %c = f32[] constant(DIVIDEND)
  %b.1 = f32[4]{0} broadcast(%c), dimensions={}
  %x = f32[4]{0} parameter(0)
  %exp.2 = f32[4]{0} exponential(%x), metadata={op_name="jit(f)/exp"}
  %div.2 = f32[4]{0} divide(%b.1, %exp.2), metadata={op_name="jit(f)/div"}
  %sin.1 = f32[4]{0} sine(%div.2), metadata={op_name="jit(f)/sin"}
  %w = f32[4]{0} parameter(1)
  %multiply.1 = f32[4]{0} multiply(%w, %exp.2), metadata={op_name="jit(f)/div"}
  %exp.3 = f32[4]{0} exponential(%multiply.1), metadata={op_name="jit(f)/exp"}
  %cos.1 = f32[4]{0} cosine(%div.2), metadata={op_name="jit(f)/cos"}
  %log.1 = f32[4]{0} log(%div.2), metadata={op_name="jit(f)/log"}
  ROOT %tuple.1 = (f32[4]{0}, f32[4]{0}, f32[4]{0}, f32[4]{0}) tuple(%sin.1, %exp.3, %cos.1, %log.1)"""
_AGES = "c b.1 x w exp.2 div.2 sin.1 exp.3 cos.1 log.1 tuple.1 multiply.1"


@pytest.mark.parametrize(
    ("dividend", "users"), [("1", ["sin.1", "log.1", "cos.1"]), ("2", ["sin.1", "cos.1", "log.1"])]
)
def test_a_division_by_a_reciprocal_leaves_a_hole(dividend: str, users: list[str]) -> None:
    """`w / (1 / e)` became `w * e`, and XLA has the first list; `w / (2 / e)` did not."""
    assert users_of("div.2", _BY_RECIPROCAL.replace("DIVIDEND", dividend), ids=_AGES) == users


@pytest.mark.parametrize(
    ("made", "users"),
    [("", ["multiply.1", "multiply.2"]), (named("mul"), ["multiply.2", "multiply.1"])],
    ids=["of divisors", "of the program"],
)
def test_the_product_of_divisors_is_of_the_call_that_divided(made: str, users: list[str]) -> None:
    """Whoever called the function did not multiply: no tuple of the call was a user of the divisor."""
    body = f"""  %p = f32[] parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %t = f32[8]{{0}} parameter(2)
  %cos.1 = f32[8]{{0}} cosine(%q){named("jit(g)/cos")}
  %sin.1 = f32[] sine(%p){named("jit(g)/sin")}
  %div.1 = f32[8]{{0}} broadcast(%sin.1), dimensions={{}}{named("jit(g)/div")}
  %multiply.1 = f32[8]{{0}} multiply(%div.1, %t){made}
  %div.2 = f32[8]{{0}} divide(%cos.1, %multiply.1){named("jit(g)/div")}
  %multiply.2 = f32[8]{{0}} multiply(%div.1, %q){made}
  %div.3 = f32[8]{{0}} divide(%cos.1, %multiply.2){named("jit(g)/div")}
  %neg.1 = f32[8]{{0}} negate(%div.2){named("neg")}
  %abs.1 = f32[8]{{0}} abs(%div.3){named("abs")}
  %exp.1 = f32[] exponential(%sin.1){named("exp")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}, f32[]) tuple(%neg.1, %abs.1, %exp.1)"""
    assert (
        users_of(
            "div.1", body, ids="p q t neg.1 abs.1 exp.1 r cos.1 sin.1 div.1 div.2 div.3 multiply.1 multiply.2"
        )
        == users
    )
