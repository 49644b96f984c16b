"""Constants that were divided by, each case as XLA's records show it."""

from __future__ import annotations

import pytest

from .lists import named, places_in_source, users_of


@pytest.mark.parametrize(
    ("alpha", "users"), [("0.25", ["mul.2", "mul.1"]), ("1", ["mul.1", "mul.2"]), ("0.5", ["mul.1", "mul.2"])]
)
def test_a_library_multiplies_by_the_reciprocal_as_well(alpha: str, users: list[str]) -> None:
    """Two quotients of 4 went, of which a gemm has taken along one; each left its place to the last user."""
    config = f'{{"gemm_backend_config":{{"alpha_real":{alpha},"beta":0}}}}'
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %q = f32[8,8]{{1,0}} parameter(1)
  %c = f32[] constant(4)
  %four = f32[8,8]{{1,0}} broadcast(%c), dimensions={{}}
  %d = f32[] constant(0.25)
  %quarter = f32[8,8]{{1,0}} broadcast(%d), dimensions={{}}
  %call = (f32[8,8]{{1,0}}, s8[64]{{0}}) custom-call(%p, %q), custom_call_target="__cublas$lt$matmul",\
 backend_config={config}
  %product = f32[8,8]{{1,0}} get-tuple-element(%call), index=0
  %mul.1 = f32[8,8]{{1,0}} multiply(%product, %four){named("mul")}
  %mul.2 = f32[8,8]{{1,0}} multiply(%mul.1, %four){named("mul")}
  %multiply.1 = f32[8,8]{{1,0}} multiply(%mul.2, %quarter){named("div")}
  ROOT %r = (f32[8,8]{{1,0}}) tuple(%multiply.1)"""
    ids = "p c four q mul.1 mul.2 r d quarter multiply.1 call product"
    assert users_of("four", body, ids=ids) == users


@pytest.mark.parametrize(
    ("again", "users"),
    [(True, ["multiply.1.0", "multiply.2.0"]), (False, ["multiply.2.0", "multiply.1.0"])],
    ids=["made again", "made once"],
)
def test_a_division_with_the_number_of_a_product_merged_comes_behind(again: bool, users: list[str]) -> None:
    """`x * c / d` took over the name of `(x * c) * (1 / d)`, older than what came later."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %c = f32[] constant(0.5)
  %half = f32[8]{{0}} broadcast(%c), dimensions={{}}{named("div")}
  %d = f32[] constant(3)
  %three = f32[8]{{0}} broadcast(%d), dimensions={{}}{named("div")}
  %sub.1 = f32[8]{{0}} subtract(%p, %q){named("sub")}
  %multiply.2.0 = f32[8]{{0}} multiply(%sub.1, %three){named("transpose(jvp())/div")}
  %neg.1 = f32[8]{{0}} negate(%multiply.2.0){named("neg")}
  %multiply.1.0 = f32[8]{{0}} multiply(%sub.1, %half){named("div")}
  %multiply.3.0 = f32[8]{{0}} multiply(%q, %half){named("div")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(%neg.1, %multiply.1.0, %multiply.3.0)"""
    early = "p q c d sub.1 neg.1 r half"
    late = ["three multiply.1.0 multiply.2.0 multiply.3.0", "multiply.1.0 multiply.3.0 three multiply.2.0"][
        again
    ]
    assert users_of("sub.1", body, ids=f"{early} {late}") == users


@pytest.mark.parametrize(
    ("name", "of_value", "of_product"),
    [
        ("transpose(jvp())/mul", ["mul.1", "square.1", "multiply.1.0"], ["sum.1", "neg.1"]),
        ("mul", ["multiply.1.0", "mul.1", "square.1"], ["neg.1", "sum.1"]),
    ],
    ids=["the derivative is read by others", "another product"],
)
def test_a_derivative_of_a_square_that_was_divided_comes_last_where_others_read_it_too(
    name: str, of_value: list[str], of_product: list[str]
) -> None:
    """`(x * c) / d` became `x * (c / d)`, a user of `x * c` no more, which took over a name in the end."""
    body = f"""  %p = f32[8,4]{{1,0}} parameter(0)
  %q = f32[8,4]{{1,0}} parameter(1)
  %zero = f32[] constant(0)
  %c = f32[] constant(2)
  %d = f32[] constant(0.25)
  %cs = f32[8,4]{{1,0}} broadcast(%c), dimensions={{}}
  %ds = f32[8,4]{{1,0}} broadcast(%d), dimensions={{}}
  %multiply.5.0 = f32[8,4]{{1,0}} multiply(%q, %ds){named("div", frame=9)}
  %sub.1 = f32[8,4]{{1,0}} subtract(%p, %multiply.5.0){named("sub", frame=1)}
  %multiply.1.0 = f32[8,4]{{1,0}} multiply(%sub.1, %ds){named("transpose(jvp())/div", frame=2)}
  %mul.1 = f32[8,4]{{1,0}} multiply(%sub.1, %cs){named(name, frame=3)}
  %neg.1 = f32[8,4]{{1,0}} negate(%mul.1){named("transpose(jvp())/neg", frame=4)}
  %sum.1 = f32[4]{{0}} reduce(%mul.1, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_sum")}
  %square.1 = f32[8,4]{{1,0}} multiply(%sub.1, %sub.1){named("integer_pow", frame=5)}
  %all = (f32[4]{{0}}, f32[8,4]{{1,0}}) tuple(%sum.1, %square.1)
  %neg.2 = f32[8,4]{{1,0}} negate(%neg.1)
  %both = f32[8,4]{{1,0}} add(%multiply.1.0, %neg.2)
  ROOT %r = (f32[8,4]{{1,0}}, (f32[4]{{0}}, f32[8,4]{{1,0}})) tuple(%both, %all)"""
    ids = "p q zero c d cs sub.1 mul.1 neg.1 sum.1 square.1 neg.2 both all r ds multiply.5.0 multiply.1.0"
    assert users_of("sub.1", body, ids=ids) == of_value
    assert users_of("mul.1", body, ids=ids) == of_product


@pytest.mark.parametrize(
    ("place", "users"),
    [("first", ["reduce_sum.1", "sub.1"]), ("last", ["sub.1", "reduce_sum.1"])],
)
def test_a_product_gone_had_been_in_front_of_what_was_called(place: str, users: list[str]) -> None:
    """`x * c`, of which `* d` reads `x` since; the call had taken the place of the last in the function."""
    product = f"""  %mul.1 = f32[8]{{0}} multiply(%p, %ds){named("mul")}
  %neg.1 = f32[8]{{0}} negate(%mul.1){named("neg")}
"""
    called = f"""  %reduce_sum.1 = f32[] reduce(%multiply.1, %zero), dimensions={{0}},\
 to_apply=%sum{named("jit(_var)/reduce_sum", frame=1)}
  %sub.3 = f32[8]{{0}} broadcast(%reduce_sum.1), dimensions={{}}{named("jit(_var)/sub", frame=1)}
  %sub.1 = f32[8]{{0}} subtract(%multiply.1, %sub.3){named("jit(_var)/sub", frame=1)}
"""
    read = "%neg.1, %sub.1" if place == "first" else "%sub.1, %neg.1"
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %zero = f32[] constant(0)
  %c = f32[] constant(0.5)
  %div.3 = f32[8]{{0}} broadcast(%c), dimensions={{}}{named("div")}
  %d = f32[] constant(0.25)
  %ds = f32[8]{{0}} broadcast(%d), dimensions={{}}{named("mul")}
  %multiply.1 = f32[8]{{0}} multiply(%p, %div.3){named("div")}
{product if place == "first" else called}{called if place == "first" else product}\
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple({read})"""
    ids = "p zero c d div.3 reduce_sum.1 sub.3 sub.1 neg.1 r multiply.1 ds mul.1"
    tables = places_in_source(("f", 1, 0, 9))
    assert users_of("multiply.1", body, ids=ids, tables=tables) == users


@pytest.mark.parametrize(
    ("epilogue", "users"),
    [("BIAS", ["multiply.3", "multiply.4"]), ("DEFAULT", ["multiply.4", "multiply.3"])],
    ids=["moved behind the sum", "moved at once"],
)
def test_what_divided_a_sum_with_a_bias_left_one_reshape_of_the_reciprocal(
    epilogue: str, users: list[str]
) -> None:
    """Dropout of two dense layers and of something else, with one rate."""
    gemm = f"""custom_call_target="__cublas$lt$matmul",\
 backend_config={{"gemm_backend_config":{{"epilogue":"{epilogue}"}}}}"""
    body = f"""  %lhs = f32[32,2]{{1,0}} parameter(0)
  %rhs = f32[2,2]{{1,0}} parameter(1)
  %bias = f32[2]{{0}} parameter(2)
  %q = f32[4,8,2]{{2,1,0}} parameter(3)
  %half = f32[] constant(0.5)
  %flat = f32[32,2]{{1,0}} broadcast(%half), dimensions={{}}
  %halves = f32[4,8,2]{{2,1,0}} broadcast(%half), dimensions={{}}
  %dot.1 = (f32[32,2]{{1,0}}, s8[16]{{0}}) custom-call(%lhs, %rhs, %bias), {gemm}
  %first = f32[32,2]{{1,0}} get-tuple-element(%dot.1), index=0
  %multiply.1 = f32[32,2]{{1,0}} multiply(%first, %flat){named("div")}
  %dot.2 = (f32[32,2]{{1,0}}, s8[16]{{0}}) custom-call(%multiply.1, %rhs, %bias), {gemm}
  %second = f32[32,2]{{1,0}} get-tuple-element(%dot.2), index=0
  %multiply.2 = f32[32,2]{{1,0}} multiply(%second, %flat){named("div")}
  %multiply.3 = f32[4,8,2]{{2,1,0}} multiply(%q, %halves){named("div")}
  %multiply.4 = f32[4,8,2]{{2,1,0}} multiply(%multiply.3, %halves){named("div")}
  ROOT %r = (f32[32,2]{{1,0}}, f32[4,8,2]{{2,1,0}}) tuple(%multiply.2, %multiply.4)"""
    ids = "lhs rhs bias q half r halves - multiply.3 multiply.4 multiply.1 multiply.2 flat dot.1 first"
    ids += " dot.2 second"
    assert users_of("halves", body, ids=ids) == users


def test_so_did_what_divided_a_sum_that_was_moved_before() -> None:
    """The same where no library takes the sum along. What a pass made later comes by age."""
    body = f"""  %p = f32[32,2]{{1,0}} parameter(0)
  %q = f32[4,8,2]{{2,1,0}} parameter(1)
  %half = f32[] constant(0.5)
  %flat = f32[32,2]{{1,0}} broadcast(%half), dimensions={{}}
  %halves = f32[4,8,2]{{2,1,0}} broadcast(%half), dimensions={{}}
  %add.1 = f32[32,2]{{1,0}} add(%p, %p){named("add")}
  %multiply.1 = f32[32,2]{{1,0}} multiply(%add.1, %flat){named("div")}
  %add.2 = f32[32,2]{{1,0}} add(%multiply.1, %p){named("add")}
  %multiply.2 = f32[32,2]{{1,0}} multiply(%add.2, %flat){named("div")}
  %multiply.3 = f32[4,8,2]{{2,1,0}} multiply(%q, %halves){named("div")}
  %multiply.4 = f32[4,8,2]{{2,1,0}} multiply(%multiply.3, %halves){named("div")}
  ROOT %r = (f32[32,2]{{1,0}}, f32[4,8,2]{{2,1,0}}) tuple(%multiply.2, %multiply.4)"""
    ids = "p q half r halves - multiply.4 multiply.3 add.1 add.2 multiply.1 multiply.2 flat"
    assert users_of("halves", body, ids=ids) == ["multiply.4", "multiply.3"]
