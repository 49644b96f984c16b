"""The users of what matrix products read and give, each case as XLA's records show it."""

from __future__ import annotations

import pytest

from .lists import named, places_in_source, users_of

_GEMM = f"""%gemm (p0: f32[8,8], p1: f32[8,8]) -> f32[8,8] {{
  %p0 = f32[8,8]{{1,0}} parameter(0)
  %p1 = f32[8,8]{{1,0}} parameter(1)
  %ten = f32[] constant(10)
  %tens = f32[8,8]{{1,0}} broadcast(%ten), dimensions={{}}
  %scaled.9 = f32[8,8]{{1,0}} multiply(%p0, %tens){named("jvp()/TAKEN")}
  ROOT %dot = f32[8,8]{{1,0}} dot(%scaled.9, %p1), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}
"""


@pytest.mark.parametrize(
    ("taken", "users"), [("mul", ["mul.1", "mul.2", "view"]), ("div", ["view", "mul.2", "mul.1"])]
)
def test_what_a_gemm_took_along_stood_where_the_dot_stands(taken: str, users: list[str]) -> None:
    """It is still there for others, which the walk comes to later."""
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %q = f32[8,8]{{1,0}} parameter(1)
  %ten.1 = f32[] constant(10)
  %tens.1 = f32[8,8]{{1,0}} broadcast(%ten.1), dimensions={{}}
  %x.1 = f32[8,8]{{1,0}} cosine(%p){named("jvp()/cos")}
  %view = f32[8,8]{{1,0}} bitcast(%x.1){named("jvp()/dot_general")}
  %product = f32[8,8]{{1,0}} fusion(%view, %q), kind=kCustom, calls=%gemm
  %mul.2 = f32[8,8]{{1,0}} multiply(%x.1, %product){named("transpose(jvp())/mul")}
  %mul.1 = f32[8,8]{{1,0}} multiply(%x.1, %tens.1){named("jvp()/mul")}
  ROOT %r = (f32[8,8]{{1,0}}, f32[8,8]{{1,0}}) tuple(%mul.2, %mul.1)"""
    assert users_of("x.1", body, head=_GEMM.replace("TAKEN", taken)) == users


@pytest.mark.parametrize(("taken", "users"), [("div", ["mul.2", "mul.1"]), ("mul", ["mul.1", "mul.2"])])
def test_a_division_that_a_gemm_took_along_is_gone_as_well(taken: str, users: list[str]) -> None:
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %q = f32[8,8]{{1,0}} parameter(1)
  %tenth = f32[] constant(0.1)
  %tenths = f32[8,8]{{1,0}} broadcast(%tenth), dimensions={{}}
  %product = f32[8,8]{{1,0}} fusion(%p, %q), kind=kCustom, calls=%gemm
  %mul.1 = f32[8,8]{{1,0}} multiply(%product, %tenths){named("jvp()/mul")}
  %mul.2 = f32[8,8]{{1,0}} multiply(%mul.1, %tenths){named("transpose(jvp())/mul")}
  ROOT %r = (f32[8,8]{{1,0}}) tuple(%mul.2)"""
    assert users_of("tenths", body, ids=_AS_WRITTEN, head=_GEMM.replace("TAKEN", taken)) == users


_AS_WRITTEN = "p q tenth tenths product mul.1 mul.2 r"


@pytest.mark.parametrize(
    ("inner", "users"),
    [
        ("dot(%p0, %p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}", ["taken", "step"]),
        ("add(%p0, %p1)", ["step", "taken"]),
    ],
)
def test_a_gemm_stands_where_its_dot_stood(inner: str, users: list[str]) -> None:
    """A weight of a step of training: the last user, which the dot left its place to, is the gemm itself."""
    head = f"""%gemm (p0: f32[8,8], p1: f32[8,8]) -> f32[8,8] {{
  %p0 = f32[8,8]{{1,0}} parameter(0)
  %p1 = f32[8,8]{{1,0}} parameter(1)
  ROOT %inner = f32[8,8]{{1,0}} {inner}
}}
"""
    body = """  %x = f32[8,8]{1,0} parameter(0)
  %weight = f32[8,8]{1,0} parameter(1)
  %taken = f32[8,8]{1,0} fusion(%x, %weight), kind=kCustom, calls=%gemm
  ROOT %step = f32[8,8]{1,0} add(%weight, %taken)"""
    assert users_of("weight", body, ids=None, head=head) == users


_SPLIT = """%gemm (p0: bf16[8,8], p1: bf16[8,8]) -> f32[4,64,8] {
  %p0 = bf16[8,8]{1,0} parameter(0)
  %p1 = bf16[8,8]{1,0} parameter(1)
  %dot = f32[8,8]{1,0} dot(%p0, %p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %parts = f32[4,64,8]{2,1,0} broadcast(%dot), dimensions={1,2}
}
"""


def test_the_reshape_of_a_product_stands_in_front_of_others_where_that_was_split() -> None:
    """What is older than the bitcast read the product, too, through a reshape that undid its own."""
    body = f"""  %p = bf16[8,8]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %none = bf16[] constant(0)
  %g = f32[4,64,8]{{2,1,0}} fusion(%p, %p), kind=kCustom, calls=%gemm
  %reduce.3 = f32[64,8]{{1,0}} reduce(%g, %zero), dimensions={{0}}, to_apply=%sum{named("NAME")}
  %convert.3 = bf16[64,8]{{1,0}} convert(%reduce.3){named("NAME")}
  %total.1 = bf16[8]{{0}} reduce(%convert.3, %none), dimensions={{0}}, to_apply=%narrow{named("total")}
  %bitcast.1 = bf16[8,8,8]{{2,1,0}} bitcast(%convert.3){named("dot_general")}
  %a.1 = bf16[8,8,8]{{2,1,0}} negate(%bitcast.1){named("a")}
  ROOT %r = (bf16[8]{{0}}, bf16[8,8,8]{{2,1,0}}) tuple(%total.1, %a.1)"""
    narrow = """
%narrow (a.2: bf16[], b.2: bf16[]) -> bf16[] {
  %a.2 = bf16[] parameter(0)
  %b.2 = bf16[] parameter(1)
  ROOT %s.2 = bf16[] add(%a.2, %b.2)
}
"""
    listed = users_of("convert.3", body.replace("NAME", "dot_general"), head=_SPLIT + narrow)
    assert listed == ["bitcast.1", "total.1"]
    listed = users_of("convert.3", body.replace("NAME", "other"), head=_SPLIT + narrow)
    assert listed == ["total.1", "bitcast.1"]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        pytest.param(
            "x y c scale mul.1 tanh.1 mul.9 add.1 sin.1 r multiply.1 broadcast.1 mul.2",
            ["tanh.1", "sin.1", "add.1"],
            id="made with its broadcast",
        ),
        pytest.param(
            "x y c scale mul.1 tanh.1 mul.9 add.1 sin.1 r mul.2 multiply.1 broadcast.1",
            ["tanh.1", "add.1", "sin.1"],
            id="older than its broadcast",
        ),
    ],
)
def test_a_product_whose_factor_went_into_its_broadcast_left_a_hole(ids: str, expected: list[str]) -> None:
    """`(x * c) * broadcast(y)` became `x * broadcast(y * c)`, the last reader of `x * c` took its place."""
    body = f"""  %x = f32[8,4]{{1,0}} parameter(0)
  %y = f32[8]{{0}} parameter(1)
  %c = f32[] constant(3)
  %scale = f32[8,4]{{1,0}} broadcast(%c), dimensions={{}}
  %mul.1 = f32[8,4]{{1,0}} multiply(%x, %scale){named("jvp()/mul")}
  %tanh.1 = f32[8,4]{{1,0}} tanh(%mul.1){named("jvp()/tanh")}
  %mul.9 = f32[8]{{0}} broadcast(%c), dimensions={{}}{named("jvp()/mul")}
  %multiply.1 = f32[8]{{0}} multiply(%y, %mul.9){named("jvp()/mul")}
  %broadcast.1 = f32[8,4]{{1,0}} broadcast(%multiply.1), dimensions={{0}}{named("jvp()/mul")}
  %mul.2 = f32[8,4]{{1,0}} multiply(%x, %broadcast.1){named("jvp()/mul")}
  %add.1 = f32[8,4]{{1,0}} add(%mul.1, %mul.2){named("jvp()/add")}
  %sin.1 = f32[8,4]{{1,0}} sine(%mul.1){named("jvp()/sin")}
  ROOT %r = (f32[8,4]{{1,0}}, f32[8,4]{{1,0}}, f32[8,4]{{1,0}}) tuple(%tanh.1, %add.1, %sin.1)"""
    assert users_of("mul.1", body, ids=ids) == expected


@pytest.mark.parametrize(
    ("ids", "users"),
    [
        ("x y c scale mul.1 sin.1 r mul.2 mul.9 multiply.1 broadcast.1", ["mul.1", "sin.1", "mul.2"]),
        ("x y c scale mul.1 mul.2 sin.1 r mul.9 multiply.1 broadcast.1", ["mul.1", "mul.2", "sin.1"]),
    ],
    ids=["made by a pass", "of the program"],
)
def test_such_a_product_comes_behind_where_its_broadcast_was_made_anew(ids: str, users: list[str]) -> None:
    body = f"""  %x = f64[8,4]{{1,0}} parameter(0)
  %y = f64[8]{{0}} parameter(1)
  %c = f64[] constant(0.3)
  %scale = f64[8,4]{{1,0}} broadcast(%c), dimensions={{}}
  %mul.1 = f64[8,4]{{1,0}} multiply(%x, %scale){named("mul")}
  %mul.9 = f64[8]{{0}} broadcast(%c), dimensions={{}}{named("mul")}
  %multiply.1 = f64[8]{{0}} multiply(%y, %mul.9){named("mul")}
  %broadcast.1 = f64[8,4]{{1,0}} broadcast(%multiply.1), dimensions={{0}}{named("mul")}
  %mul.2 = f64[8,4]{{1,0}} multiply(%x, %broadcast.1){named("mul")}
  %sin.1 = f64[8,4]{{1,0}} sine(%x){named("sin")}
  ROOT %r = (f64[8,4]{{1,0}}, f64[8,4]{{1,0}}, f64[8,4]{{1,0}}) tuple(%mul.1, %mul.2, %sin.1)"""
    assert users_of("x", body, ids=ids) == users


@pytest.mark.parametrize(
    ("producer", "number", "users"),
    [
        ("multiply.1", 3, ["sum.1", "tanh.1"]),
        ("multiply.1", 2, ["tanh.1", "sum.1"]),
        ("x", 3, ["multiply.1", "mul.2"]),
        ("x", 2, ["mul.2", "multiply.1"]),
    ],
)
def test_so_did_one_whose_divisor_did(producer: str, number: int, users: list[str]) -> None:
    """It came behind the product that the division became; another number is of no such division."""
    body = f"""  %x = f32[8,4]{{1,0}} parameter(0)
  %y = f32[8]{{0}} parameter(1)
  %c = f32[] constant(3)
  %e = f32[] constant({number})
  %scale = f32[8,4]{{1,0}} broadcast(%c), dimensions={{}}
  %mul.9 = f32[8]{{0}} broadcast(%e), dimensions={{}}{named("mul")}
  %multiply.2 = f32[8]{{0}} multiply(%y, %mul.9){named("mul")}
  %broadcast.1 = f32[8,4]{{1,0}} broadcast(%multiply.2), dimensions={{0}}{named("mul")}
  %mul.2 = f32[8,4]{{1,0}} multiply(%x, %broadcast.1){named("mul")}
  %multiply.1 = f32[8,4]{{1,0}} multiply(%x, %scale){named("div")}
  %tanh.1 = f32[8,4]{{1,0}} tanh(%multiply.1){named("tanh")}
  %sum.1 = f32[8,4]{{1,0}} add(%multiply.1, %scale){named("sum")}
  ROOT %r = (f32[8,4]{{1,0}}, f32[8,4]{{1,0}}, f32[8,4]{{1,0}}) tuple(%mul.2, %tanh.1, %sum.1)"""
    ids = "x y c e scale tanh.1 sum.1 r multiply.1 mul.9 multiply.2 broadcast.1 mul.2"
    assert users_of(producer, body, ids=ids) == users


@pytest.mark.parametrize(
    ("first", "expected"),
    [("mul.7", ["cos.1", "tanh.1", "exp.1"]), ("tanh.1", ["tanh.1", "cos.1", "exp.1"])],
)
def test_a_product_whose_factor_went_into_the_next_left_a_hole(first: str, expected: list[str]) -> None:
    """`(x * 3) * 2` became `x * 6`; the last reader of `x * 3` took its place. XLA was asked."""
    results = [*sorted(["mul.7", "tanh.1"], key=first.__ne__), "exp.1", "cos.1"]
    shapes = ", ".join(["f32[8,4]{1,0}"] * 4)
    body = f"""  %x = f32[8,4]{{1,0}} parameter(0)
  %six = f32[] constant(6)
  %broadcast.1 = f32[8,4]{{1,0}} broadcast(%six), dimensions={{}}{named("mul")}
  %mul.7 = f32[8,4]{{1,0}} multiply(%x, %broadcast.1){named("mul")}
  %three = f32[] constant(3)
  %mul.5 = f32[8,4]{{1,0}} broadcast(%three), dimensions={{}}{named("mul")}
  %mul.6 = f32[8,4]{{1,0}} multiply(%x, %mul.5){named("mul")}
  %tanh.1 = f32[8,4]{{1,0}} tanh(%mul.6){named("tanh")}
  %exp.1 = f32[8,4]{{1,0}} exponential(%mul.6){named("exp")}
  %cos.1 = f32[8,4]{{1,0}} cosine(%mul.6){named("cos")}
  ROOT %r = ({shapes}) tuple({", ".join("%" + name for name in results)})"""
    assert users_of("mul.6", body) == expected


def test_a_product_made_anew_with_the_next_number_was_not_moved_past_a_reshape() -> None:
    """Of the derivative of a mean of squares: its readers stay in the order of the program. XLA was asked."""
    name = named("transpose(jvp())/broadcast_in_dim")
    body = f"""  %x = f32[4,8]{{1,0}} parameter(0)
  %add.1 = f32[4,8]{{1,0}} add(%x, %x){named("jvp()/add")}
  %square.1 = f32[4,8]{{1,0}} multiply(%add.1, %add.1){named("jvp()/square")}
  %c = f32[] constant(0.0625)
  %broadcast.1 = f32[4,8]{{1,0}} broadcast(%c), dimensions={{}}{name}
  %broadcast_in_dim.3 = f32[4,8]{{1,0}} multiply(%add.1, %broadcast.1){name}
  %mul.11 = f32[4,8]{{1,0}} multiply(%broadcast_in_dim.3, %x){named("transpose(jvp())/mul")}
  %add_any.1 = f32[4,8]{{1,0}} add(%broadcast_in_dim.3, %mul.11){named("transpose(jvp())/add_any")}
  %mul.10 = f32[4,8]{{1,0}} multiply(%x, %broadcast_in_dim.3){named("transpose(jvp())/mul")}
  ROOT %r = (f32[4,8]{{1,0}}, f32[4,8]{{1,0}}, f32[4,8]{{1,0}}) tuple(%square.1, %add_any.1, %mul.10)"""
    ids = "x add.1 square.1 mul.11 add_any.1 mul.10 r c broadcast.1 broadcast_in_dim.3"
    assert users_of("broadcast_in_dim.3", body, ids=ids) == ["mul.11", "add_any.1", "mul.10"]


@pytest.mark.parametrize(
    ("operand", "users"),
    [
        ("f32[8,8]{1,0} convert(%narrow)", ["square", "div", "mul"]),
        ("f32[8,8]{1,0} cosine(%given)", ["mul", "div", "square"]),
    ],
)
def test_a_product_made_wide_lost_the_convert_of_the_program_and_the_convert_back(
    operand: str, users: list[str]
) -> None:
    """The other operand was made wide outside of the loop."""
    body = f"""  %given = f32[8,8]{{1,0}} parameter(0)
  %narrow = bf16[8,8]{{1,0}} parameter(1)
  %p = f32[8,8]{{1,0}} parameter(2)
  %wide = {operand}
  %call = (f32[8,8]{{1,0}}, s8[4]{{0}}) custom-call(%wide, %given), custom_call_target="__cublas$gemm"
  %product = f32[8,8]{{1,0}} get-tuple-element(%call), index=0
  %mul = f32[8,8]{{1,0}} multiply(%product, %p){named("jvp()/mul")}
  %div = f32[8,8]{{1,0}} divide(%product, %p){named("jvp()/div")}
  %square = f32[8,8]{{1,0}} multiply(%product, %product){named("jvp()/square")}
  ROOT %r = (f32[8,8]{{1,0}}, f32[8,8]{{1,0}}, f32[8,8]{{1,0}}) tuple(%mul, %div, %square)"""
    assert users_of("product", body) == users


@pytest.mark.parametrize(("frame", "users"), [(1, ["square", "mul"]), (2, ["mul", "square"])])
def test_a_derivative_is_as_narrow_as_the_product_of_its_place(frame: int, users: list[str]) -> None:
    call = '(f32[8,8]{1,0}, s8[4]{0}) custom-call(OPERANDS), custom_call_target="__cublas$gemm"'
    body = f"""  %w = f32[8,8]{{1,0}} parameter(0)
  %narrow = bf16[8,8]{{1,0}} parameter(1)
  %wide = f32[8,8]{{1,0}} convert(%narrow)
  %call.1 = {call.replace("OPERANDS", "%wide, %w")}{named("jvp()/dot_general", frame=1)}
  %forward = f32[8,8]{{1,0}} get-tuple-element(%call.1), index=0
  %given = f32[8,8]{{1,0}} cosine(%forward){named("transpose(jvp())/cos")}
  %call.2 = {call.replace("OPERANDS", "%given, %w")}{named("transpose(jvp())/dot_general", frame=frame)}
  %product = f32[8,8]{{1,0}} get-tuple-element(%call.2), index=0
  %mul = f32[8,8]{{1,0}} multiply(%product, %w){named("transpose(jvp())/mul")}
  %square = f32[8,8]{{1,0}} multiply(%product, %product){named("transpose(jvp())/square")}
  ROOT %r = (f32[8,8]{{1,0}}, f32[8,8]{{1,0}}) tuple(%mul, %square)"""
    places = places_in_source(("f", 1, 1, 9), ("f", 2, 1, 9))
    assert users_of("product", body, tables=places) == users


@pytest.mark.parametrize(
    ("result", "back", "users"),
    [
        ("f32[8,8]{1,0}", "f32[8,8]{1,0} transpose(%dot), dimensions={1,0}", ["sin.1", "cos.1"]),
        ("f32[8,8]{0,1}", "f32[8,8]{1,0} bitcast(%dot)", ["cos.1", "sin.1"]),
    ],
    ids=["as written", "swapped"],
)
def test_what_a_gemm_only_reads_keeps_its_place_beside_what_it_took_along(
    result: str, back: str, users: list[str]
) -> None:
    """GemmFusionSwapOperands put the operand that is computed on the right; the walk was there before."""
    head = f"""%gemm (p0: f32[8,8], p1: f32[8,8]) -> f32[8,8] {{
  %p0 = f32[8,8]{{1,0}} parameter(0)
  %p1 = f32[8,8]{{1,0}} parameter(1)
  %exp.9 = f32[8,8]{{1,0}} exponential(%p1){named("exp")}
  %dot = {result} dot(%p0, %exp.9), lhs_contracting_dims={{0}}, rhs_contracting_dims={{1}}
  ROOT %back = {back}
}}
"""
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %x.1 = f32[8,8]{{1,0}} tanh(%p){named("tanh")}
  %cos.1 = f32[8,8]{{1,0}} cosine(%x.1){named("cos")}
  %exp.1 = f32[8,8]{{1,0}} exponential(%cos.1){named("exp")}
  %sin.1 = f32[8,8]{{1,0}} sine(%x.1){named("sin")}
  %g = f32[8,8]{{1,0}} fusion(%sin.1, %cos.1), kind=kCustom, calls=%gemm
  ROOT %r = (f32[8,8]{{1,0}}, f32[8,8]{{1,0}}) tuple(%g, %exp.1)"""
    assert users_of("x.1", body, head=head) == users


@pytest.mark.parametrize(
    ("shape", "users"),
    [
        # Both products read the reshape to a matrix, which went with the last of them.
        ("4,4,8", ["view.2", "view.1"]),
        # Both read the matrix itself.
        ("16,8", ["view.1", "view.2"]),
    ],
    ids=["reshaped", "matrix"],
)
def test_the_last_gemm_takes_the_place_of_the_reshape_they_shared(shape: str, users: list[str]) -> None:
    head = "".join(
        f"""
%gemm.{k} (x: f32[{x}], y: f32[{y}]) -> f32[{r}] {{
  %x = f32[{x}]{{2,1,0}} parameter(0)
  %y = f32[{y}]{{2,1,0}} parameter(1)
  ROOT %dot.{k} = f32[{r}]{{2,1,0}} dot(%x, %y), lhs_batch_dims={{{b}}}, lhs_contracting_dims={{{c}}},\
 rhs_batch_dims={{0}}, rhs_contracting_dims={{1}}
}}
"""
        for k, x, y, r, b, c in (
            (1, "16,2,4", "2,4,8", "2,16,8", 1, 2),
            (2, "2,8,8", "2,8,8", "2,8,8", 0, 1),
        )
    )
    layout = ",".join(map(str, reversed(range(shape.count(",") + 1))))
    body = f"""  %p = f32[{shape}]{{{layout}}} parameter(0)
  %q = f32[2,4,8]{{2,1,0}} parameter(1)
  %t = f32[2,8,8]{{2,1,0}} parameter(2)
  %zero = f32[] constant(0)
  %tanh.1 = f32[{shape}]{{{layout}}} tanh(%p)
  %view.1 = f32[16,2,4]{{2,1,0}} bitcast(%tanh.1){named("jvp()/dot_general")}
  %first = f32[2,16,8]{{2,1,0}} fusion(%view.1, %q), kind=kCustom, calls=%gemm.1{named("jvp()/dot_general")}
  %s.1 = f32[16,8]{{1,0}} reduce(%first, %zero), dimensions={{0}}, to_apply=%sum{named("jvp()/dot_general")}
  %view.2 = f32[2,8,8]{{2,1,0}} bitcast(%tanh.1){named("dot_general")}
  %second = f32[2,8,8]{{2,1,0}} fusion(%view.2, %t), kind=kCustom, calls=%gemm.2{named("dot_general")}
  %s.2 = f32[8,8]{{1,0}} reduce(%second, %zero), dimensions={{0}}, to_apply=%sum{named("dot_general")}
  ROOT %r = (f32[16,8], f32[8,8]) tuple(%s.1, %s.2)"""
    assert users_of("tanh.1", body, head=head) == users


@pytest.mark.parametrize(
    ("name", "users"),
    [("dot_general", ["first", "second"]), ("reshape", ["second", "first"])],
    ids=["hoisted", "of the program"],
)
def test_a_bitcast_hoisted_out_of_gemms_has_them_in_the_order_of_a_walk(name: str, users: list[str]) -> None:
    """One of the program had what both took along as its user, and the last gemm in place of that."""
    head = f"""
%gemm (x: f32[8,8], y: f32[8,8]) -> f32[8,8] {{
  %x = f32[8,8]{{1,0}} parameter(0)
  %y = f32[8,8]{{1,0}} parameter(1)
  %n = f32[8,8]{{1,0}} negate(%x){named("neg")}
  ROOT %d = f32[8,8]{{1,0}} dot(%n, %y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}
"""
    body = f"""  %p = f32[64]{{0}} parameter(0)
  %q = f32[8,8]{{1,0}} parameter(1)
  %t = f32[8,8]{{1,0}} parameter(2)
  %view = f32[8,8]{{1,0}} bitcast(%p){named(name)}
  %first = f32[8,8]{{1,0}} fusion(%view, %q), kind=kCustom, calls=%gemm{named("dot_general")}
  %second = f32[8,8]{{1,0}} fusion(%view, %t), kind=kCustom, calls=%gemm{named("dot_general")}
  ROOT %r = (f32[8,8], f32[8,8]) tuple(%first, %second)"""
    assert users_of("view", body, head=head) == users


@pytest.mark.parametrize(
    ("first", "users"),
    [("", ["multiply.1", "sub.1", "mul.1"]), ("%multiply.1, ", ["multiply.1", "sub.1", "mul.1"])],
    ids=["of the merged one", "by itself"],
)
def test_a_product_that_merged_ones_read_is_where_a_walk_came_to_the_first(
    first: str, users: list[str]
) -> None:
    """`y = x / 3`, of which `y * 2` is read first: that is a product of `x` now, and came behind."""
    kept = f"""  %constant.2 = f16[] constant(0.33)
  %third.1 = f16[8]{{0}} broadcast(%constant.2), dimensions={{}}{named("div")}
  %multiply.1 = f16[8]{{0}} multiply(%x, %third.1){named("div")}
"""
    results = f"{first}%sub.1" if first else "%sub.1, %multiply.1"
    body = f"""  %x = f16[8]{{0}} parameter(0)
{kept if first else ""}  %constant.1 = f16[] constant(0.66)
  %spread.1 = f16[8]{{0}} broadcast(%constant.1), dimensions={{}}{named("mul")}
  %mul.1 = f16[8]{{0}} multiply(%x, %spread.1){named("mul")}
  %sub.1 = f16[8]{{0}} subtract(%mul.1, %x){named("sub")}
{"" if first else kept}  ROOT %r = (f16[8]{{0}}, f16[8]{{0}}) tuple({results})"""
    assert users_of("x", body) == users


@pytest.mark.parametrize(
    ("parts", "summed", "users"),
    [("4,1,8", "%view", ["cos.1", "sin.1"]), ("4,8", "%parts", ["sin.1", "cos.1"])],
    ids=["vector", "matrix"],
)
def test_the_last_user_of_a_split_vector_takes_the_place_of_the_bitcast_that_was_its_user(
    parts: str, summed: str, users: list[str]
) -> None:
    layout = "{2,1,0}" if "1" in parts else "{1,0}"
    view = "  %view = f32[4,8]{1,0} bitcast(%parts)\n" if summed == "%view" else ""
    body = f"""  %p = f32[{parts}]{layout} parameter(0)
  %zero = f32[] constant(0)
  %parts = f32[{parts}]{layout} fusion(%p), kind=kCustom, calls=%gemm
{view}  %reduce.1 = f32[8]{{0}} reduce({summed}, %zero), dimensions={{0}}, to_apply=%sum{named("dot_general")}
  %s = f32[8]{{0}} parameter(1)
  %sin.1 = f32[8]{{0}} subtract(%reduce.1, %s){named("sub")}
  %cos.1 = f32[8]{{0}} multiply(%reduce.1, %s){named("mul")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%sin.1, %cos.1)"""
    head = f"""%gemm (p0: f32[{parts}]) -> f32[{parts}] {{
  %p0 = f32[{parts}]{layout} parameter(0)
  ROOT %n = f32[{parts}]{layout} negate(%p0)
}}
"""
    assert users_of("reduce.1", body, head=head) == users


@pytest.mark.parametrize(
    ("dimensions", "users"),
    [("0,2,1", ["sine", "transpose.1", "product"]), ("1,0,2", ["sine", "product", "transpose.1"])],
    ids=["the same", "another"],
)
def test_a_gemm_that_took_along_a_transpose_which_others_read_stands_behind(
    dimensions: str, users: list[str]
) -> None:
    """The result of an attention, as the gradient by the weights reads it, too."""
    head = """%gemm (p0: f32[8,8,8], p1: f32[8,8,8]) -> f32[8,8,8] {
  %p0 = f32[8,8,8]{2,1,0} parameter(0)
  %p1 = f32[8,8,8]{2,1,0} parameter(1)
  %taken = f32[8,8,8]{2,1,0} transpose(%p0), dimensions={0,2,1}
  ROOT %dot = f32[8,8,8]{2,1,0} dot(%taken, %p1), lhs_batch_dims={0}, lhs_contracting_dims={2},\
 rhs_batch_dims={0}, rhs_contracting_dims={1}
}
"""
    body = f"""  %x = f32[8,8,8]{{2,1,0}} parameter(0)
  %y = f32[8,8,8]{{2,1,0}} parameter(1)
  %value = f32[8,8,8]{{2,1,0}} cosine(%x){named("cos")}
  %sine = f32[8,8,8]{{2,1,0}} sine(%value){named("sin")}
  %product = f32[8,8,8]{{2,1,0}} fusion(%value, %y), kind=kCustom, calls=%gemm
  %transpose.1 = f32[8,8,8]{{2,1,0}} transpose(%value), dimensions={{{dimensions}}}
  %both = f32[8,8,8]{{2,1,0}} add(%product, %transpose.1)
  ROOT %r = f32[8,8,8]{{2,1,0}} add(%sine, %both)"""
    assert users_of("value", body, head=head) == users


@pytest.mark.parametrize(
    ("factor", "users"),
    [("c", ["mul.1", "sub.1", "multiply.1"]), ("d", ["mul.1", "multiply.1", "sub.1"])],
    ids=["of the product", "of another"],
)
def test_a_product_with_a_vector_that_took_the_number_in_comes_behind(factor: str, users: list[str]) -> None:
    """`x * 2` times a vector, which is multiplied by 2 instead."""
    dot = named("dot_general", frame=2)
    body = f"""  %x = f32[4,8]{{1,0}} parameter(0)
  %v = f32[8]{{0}} parameter(1)
  %zero = f32[] constant(0)
  %c = f32[] constant(2)
  %d = f32[] constant(3)
  %by.1 = f32[4,8]{{1,0}} broadcast(%c), dimensions={{}}
  %exp.1 = f32[4,8]{{1,0}} exponential(%x){named("exp")}
  %mul.1 = f32[4,8]{{1,0}} multiply(%exp.1, %by.1){named("mul")}
  %by.2 = f32[8]{{0}} broadcast(%{factor}), dimensions={{}}{dot}
  %multiply.2 = f32[8]{{0}} multiply(%v, %by.2){dot}
  %spread.1 = f32[4,8]{{1,0}} broadcast(%multiply.2), dimensions={{1}}{dot}
  %multiply.1 = f32[4,8]{{1,0}} multiply(%exp.1, %spread.1){dot}
  %reduce.1 = f32[4]{{0}} reduce(%multiply.1, %zero), dimensions={{1}}, to_apply=%sum{dot}
  %sub.1 = f32[4,8]{{1,0}} subtract(%exp.1, %mul.1){named("sub")}
  ROOT %r = (f32[4]{{0}}, f32[4,8]{{1,0}}) tuple(%reduce.1, %sub.1)"""
    ids = "x v zero c d exp.1 by.1 mul.1 sub.1 r by.2 multiply.2 spread.1 multiply.1 reduce.1"
    assert users_of("exp.1", body, ids=ids) == users
