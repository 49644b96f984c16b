"""Products that are summed as well, each case as XLA's records show it."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("name", "epilogue"), [("dot_general", "DEFAULT"), ("add", "BIAS")], ids=["the product", "and a bias"]
)
def test_the_last_user_takes_the_place_of_a_sum_of_the_matrix(name: str, epilogue: str) -> None:
    config = f'"__cublas$lt$matmul", backend_config={{"gemm_backend_config":{{"epilogue":"{epilogue}"}}}}'
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %call = (f32[8,8]{{1,0}}, s8[64]{{0}}) custom-call(%p, %p), custom_call_target={config}
  %matrix = f32[8,8]{{1,0}} get-tuple-element(%call), index=0
  %total.1 = f32[8]{{0}} reduce(SUMMED, %zero), dimensions={{0}}, to_apply=%sum{named("total")}
  %bitcast.1 = f32[2,4,8]{{2,1,0}} bitcast(%matrix){named(name)}
  %mul.1 = f32[2,4,8]{{2,1,0}} sine(%bitcast.1){named("mul")}
  %mul.2 = f32[2,4,8]{{2,1,0}} cosine(%bitcast.1){named("mul")}
  ROOT %r = (f32[8]{{0}}, f32[2,4,8]{{2,1,0}}, f32[2,4,8]{{2,1,0}}) tuple(%total.1, %mul.1, %mul.2)"""
    ids = "p zero mul.1 mul.2 r total.1 bitcast.1 call matrix"
    assert users_of("bitcast.1", body.replace("SUMMED", "%matrix"), ids=ids) == ["mul.2", "mul.1"]
    assert users_of("bitcast.1", body.replace("SUMMED", "%p"), ids=ids) == ["mul.1", "mul.2"]


@pytest.mark.parametrize(
    ("less", "users"), [("broadcast.1", ["mul.1", "sub.1"]), ("q", ["sub.1", "mul.1"])], ids=["mean", "other"]
)
def test_the_last_user_takes_the_place_of_a_mean_that_was_grouped_of_what_was_reshaped(
    less: str, users: list[str]
) -> None:
    body = f"""  %p = f32[8,4,4]{{2,1,0}} parameter(0)
  %q = f32[8,2,16]{{2,1,0}} parameter(1)
  %zero = f32[] constant(0)
  %many = f32[8]{{0}} broadcast(%zero), dimensions={{}}
  %call = (f32[8,2,4,4]{{3,2,1,0}}, s8[64]{{0}}) custom-call(%p), custom_call_target="__cudnn$convForward"
  %image = f32[8,2,4,4]{{3,2,1,0}} get-tuple-element(%call), index=0
  %bitcast.1 = f32[8,2,16]{{2,1,0}} bitcast(%image){named("add")}
  %bitcast.2 = f32[8,32]{{1,0}} bitcast(%image){named("add")}
  %total.1 = f32[8]{{0}} reduce(%bitcast.2, %zero), dimensions={{1}}, to_apply=%sum{named("total")}
  %div.1 = f32[8]{{0}} divide(%total.1, %many){named("div")}
  %broadcast.1 = f32[8,2,16]{{2,1,0}} broadcast(%div.1), dimensions={{0}}{named("sub")}
  %sub.1 = f32[8,2,16]{{2,1,0}} subtract(%bitcast.1, %{less}){named("sub")}
  %mul.1 = f32[8,2,16]{{2,1,0}} sine(%bitcast.1){named("mul")}
  %add.1 = f32[8,2,16]{{2,1,0}} add(%mul.1, %broadcast.1)
  ROOT %r = (f32[8,2,16]{{2,1,0}}, f32[8,2,16]{{2,1,0}}) tuple(%sub.1, %add.1)"""
    assert users_of("bitcast.1", body) == users


@pytest.mark.parametrize(
    ("computed", "users"),
    [
        ("dot(%l, %l), lhs_contracting_dims={1}, rhs_contracting_dims={0}", ["take.1", "sub.1"]),
        ("multiply(%l, %l)", ["sub.1", "take.1"]),
    ],
)
def test_the_largest_of_what_a_gemm_computes_behind_the_product_had_stood_in_front(
    computed: str, users: list[str]
) -> None:
    gemm = f"""%gemm (l: f32[8,8]) -> f32[8,8] {{
  %l = f32[8,8]{{1,0}} parameter(0)
  %d = f32[8,8]{{1,0}} {computed}
  ROOT %n = f32[8,8]{{1,0}} negate(%d)
}}
"""
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %logits = f32[8,8]{{1,0}} fusion(%p), kind=kCustom, calls=%gemm
  %largest.1 = f32[8]{{0}} reduce(%logits, %zero), dimensions={{1}}, to_apply=%sum{named("largest")}
  %bitcast.1 = f32[2,4,8]{{2,1,0}} bitcast(%logits){named("add")}
  %sub.1 = f32[2,4,8]{{2,1,0}} sine(%bitcast.1){named("sub")}
  %take.1 = f32[2,4,8]{{2,1,0}} cosine(%bitcast.1){named("take")}
  ROOT %r = (f32[8]{{0}}, f32[2,4,8]{{2,1,0}}, f32[2,4,8]{{2,1,0}}) tuple(%largest.1, %sub.1, %take.1)"""
    assert users_of("bitcast.1", body, head=gemm) == users


@pytest.mark.parametrize(
    ("readers", "users"),
    [
        (["forward", "dot.1", "sub.1", "mul.1"], ["mul.1", "sub.1"]),
        (["forward", "sub.1", "dot.1", "mul.1"], ["sub.1", "mul.1"]),
        (["backward", "head.1", "sub.1", "mul.1", "dot.1"], ["head.1", "mul.1", "sub.1"]),
    ],
    ids=["in-front", "in-between", "of-derivative"],
)
def test_the_last_user_takes_the_place_of_the_reshape_that_the_next_product_read(
    readers: list[str], users: list[str]
) -> None:
    # With tanh in `jax.grad` of layers over three dimensions XLA has the first and the third.
    way, *listed = readers
    derivative = {"forward": "jvp()", "backward": "transpose(jvp())"}[way]
    gemm = """%gemm (l: f32[8,8]) -> f32[8,8] {
  %l = f32[8,8]{1,0} parameter(0)
  %d = f32[8,8]{1,0} dot(%l, %l), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %n = f32[8,8]{1,0} tanh(%d), metadata={op_name="jit(f)/tanh"}
}
"""
    made = {
        "dot.1": f"f32[8,8]{{1,0}} multiply(%p, %layer){named(derivative + '/dot_general')}",
        "head.1": f"f32[2,4,8]{{2,1,0}} negate(%bitcast.1){named('dot_general')}",
        "sub.1": f"f32[2,4,8]{{2,1,0}} sine(%bitcast.1){named('jvp()/sub')}",
        "mul.1": f"f32[2,4,8]{{2,1,0}} cosine(%bitcast.1){named('transpose(jvp())/mul')}",
    }
    shapes = ", ".join("f32[8,8]{1,0}" if name == "dot.1" else "f32[2,4,8]{2,1,0}" for name in listed)
    body = "\n".join(
        [
            "  %p = f32[8,8]{1,0} parameter(0)",
            "  %layer = f32[8,8]{1,0} fusion(%p), kind=kCustom, calls=%gemm",
            f"  %bitcast.1 = f32[2,4,8]{{2,1,0}} bitcast(%layer){named('tanh')}",
            *(f"  %{name} = {made[name]}" for name in listed),
            f"  ROOT %r = ({shapes}) tuple({', '.join('%' + name for name in listed)})",
        ]
    )
    assert users_of("bitcast.1", body, head=gemm) == users
    # It was not moved if what is reshaped is another operation.
    in_program = [name for name in listed if name != "dot.1"]
    assert users_of("bitcast.1", body, head=gemm.replace("(f)/tanh", "(f)/sin")) == in_program


@pytest.mark.parametrize(
    ("first", "matrix", "moved"),
    [
        ("get-tuple-element", ["back.1", "total.1"], ["mul.2", "mul.1"]),
        ("sine", ["total.1", "back.1"], ["mul.1", "mul.2"]),
    ],
)
def test_products_that_are_added_up_have_one_reshape_behind_all(
    first: str, matrix: list[str], moved: list[str]
) -> None:
    dot = named("dot_general")
    of = {"get-tuple-element": "get-tuple-element(%call), index=0", "sine": "sine(%p)"}[first]
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %call = (f32[8,8]{{1,0}}, s8[64]{{0}}) custom-call(%p, %p), custom_call_target="__cublas$lt$matmul"{dot}
  %one = f32[8,8]{{1,0}} {of}
  %other.1 = f32[8,8]{{1,0}} dot(%p, %p), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}{dot}
  %both.1 = f32[8,8]{{1,0}} add(%one, %other.1){named("add_any")}
  %total.1 = f32[8]{{0}} reduce(%both.1, %zero), dimensions={{0}}, to_apply=%sum{named("total")}
  %back.1 = f32[2,4,8]{{2,1,0}} bitcast(%both.1){named("add_any")}
  %mul.1 = f32[2,4,8]{{2,1,0}} sine(%back.1){named("mul")}
  %mul.2 = f32[2,4,8]{{2,1,0}} cosine(%back.1){named("mul")}
  ROOT %r = (f32[8]{{0}}, f32[2,4,8]{{2,1,0}}, f32[2,4,8]{{2,1,0}}) tuple(%total.1, %mul.1, %mul.2)"""
    ids = "p zero mul.1 mul.2 r one call other.1 both.1 total.1 back.1"
    assert users_of("both.1", body, ids=ids) == matrix
    assert users_of("back.1", body, ids=ids) == moved


@pytest.mark.parametrize(
    ("frame", "read", "users"),
    [
        (2, "sine", ["mul.2", "split.1", "mul.1"]),
        (1, "sine", ["split.1", "mul.1", "mul.2"]),
        (2, "bitcast", ["split.1", "mul.1", "mul.2"]),
    ],
)
def test_the_last_operation_took_the_place_of_the_reshape_that_moved_behind_it(
    frame: int, read: str, users: list[str]
) -> None:
    """The steps of Newton and Schulz, vectorized: the bitcast is for a product that SplitK split."""
    of = 'metadata={op_name="jit(f)/dot_general" stack_frame_id='
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %product = f32[8,8]{{1,0}} dot(%p, %p), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, {of}1}}
  %mul.1 = f32[8,8]{{1,0}} {read}(%product){named("mul")}
  %mul.2 = f32[8,8]{{1,0}} cosine(%product){named("mul")}
  %split.1 = f32[2,4,8]{{2,1,0}} bitcast(%product), {of}{frame}}}
  ROOT %r = (f32[8,8]{{1,0}}, f32[8,8]{{1,0}}, f32[2,4,8]{{2,1,0}}) tuple(%mul.1, %mul.2, %split.1)"""
    assert users_of("product", body) == users


@pytest.mark.parametrize("is_reshaped_back", [True, False])
def test_a_sum_over_dimensions_that_a_reshape_leaves_alone_reads_what_was_reshaped(
    is_reshaped_back: bool,
) -> None:
    """One that the program takes there has the shape that it wants."""
    body = f"""  %p = f32[8,128]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %m = f32[8,128]{{1,0}} sine(%p){named("mul")}
  %total = f32[8]{{0}} reduce(%m, %zero), dimensions={{1}}, to_apply=%sum{named("total")}
  %result = f32[2,4]{{1,0}} bitcast(%total){named("total" if is_reshaped_back else "reshape")}
  %reshaped = f32[2,4,128]{{2,1,0}} bitcast(%m){named("mul")}
  %first = f32[2,3,128]{{2,1,0}} slice(%reshaped), slice={{[0:2],[0:3],[0:128]}}{named("slice")}
  %second = f32[2,1,128]{{2,1,0}} slice(%reshaped), slice={{[0:2],[3:4],[0:128]}}{named("slice")}
  ROOT %r = (f32[2,4]{{1,0}}, f32[2,3,128]{{2,1,0}}, f32[2,1,128]{{2,1,0}}) tuple(%result, %first, %second)"""
    before, behind = (
        (["second", "first"], ["reshaped", "total"])
        if is_reshaped_back
        else (
            ["first", "second"],
            ["total", "reshaped"],
        )
    )
    assert users_of("reshaped", body) == before
    assert users_of("m", body) == behind


def test_a_dimension_of_one_that_a_sum_keeps_says_nothing() -> None:
    body = f"""  %p = f32[8,128]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %m = f32[8,128]{{1,0}} sine(%p){named("exp")}
  %total = f32[8]{{0}} reduce(%m, %zero), dimensions={{1}}, to_apply=%sum{named("total")}
  %kept = f32[8,1]{{1,0}} bitcast(%total){named("total")}
  %reshaped = f32[2,4,128]{{2,1,0}} bitcast(%m){named("exp")}
  ROOT %r = (f32[8,1]{{1,0}}, f32[2,4,128]{{2,1,0}}) tuple(%kept, %reshaped)"""
    assert users_of("m", body) == ["total", "reshaped"]


@pytest.mark.parametrize("kept", ["f32[8,1]{1,0}", "f32[8]{0}"], ids=["kept", "gone"])
def test_a_sum_that_kept_a_dimension_of_one_has_the_last_user_in_its_place(kept: str) -> None:
    """XLA does so in the norms behind the projections of one token at a time."""
    body = f"""  %p = f32[8,64]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %call = (f32[8,64]{{1,0}}, s8[64]{{0}}) custom-call(%p, %p), custom_call_target="__cublas$lt$matmul"
  %matrix = f32[8,64]{{1,0}} get-tuple-element(%call), index=0
  %reduce.1 = f32[8]{{0}} reduce(%matrix, %zero), dimensions={{1}}, to_apply=%sum{named("total")}
  %bitcast.2 = {kept} bitcast(%reduce.1){named("total")}
  %bitcast.1 = f32[8,1,64]{{2,1,0}} bitcast(%matrix){named("add")}
  %sub.1 = f32[8,1,64]{{2,1,0}} sine(%bitcast.1){named("sub")}
  %mul.1 = f32[8,1,64]{{2,1,0}} cosine(%bitcast.1){named("mul")}
  ROOT %r = ({kept}, f32[8,1,64]{{2,1,0}}, f32[8,1,64]{{2,1,0}}) tuple(%bitcast.2, %sub.1, %mul.1)"""
    users = ["mul.1", "sub.1"] if kept.endswith("{1,0}") else ["sub.1", "mul.1"]
    assert users_of("bitcast.1", body) == users


@pytest.mark.parametrize(
    ("computed", "users"),
    [
        ("dot(%l, %l), lhs_contracting_dims={1}, rhs_contracting_dims={1}", ["add.2", "bitcast.1", "mul.1"]),
        ("multiply(%l, %l)", ["bitcast.1", "mul.1", "add.2"]),
    ],
    ids=["gemm", "none"],
)
def test_such_a_sum_came_to_read_what_a_gemm_read_without_the_dimension(
    computed: str, users: list[str]
) -> None:
    gemm = f"""%gemm (l: f32[8,64]) -> f32[8,8] {{
  %l = f32[8,64]{{1,0}} parameter(0)
  ROOT %d = f32[8,8]{{1,0}} {computed}
}}
"""
    gemm = gemm if "dot" in computed else gemm.replace("f32[8,8]", "f32[8,64]")
    result = "f32[8,8]{1,0}" if "dot" in computed else "f32[8,64]{1,0}"
    kinds = f"f32[8,1]{{1,0}}, f32[8,1,64]{{2,1,0}}, {result}, f32[8,1,64]{{2,1,0}}"
    body = f"""  %p = f32[8,1,64]{{2,1,0}} parameter(0)
  %zero = f32[] constant(0)
  %add.1 = f32[8,1,64]{{2,1,0}} sine(%p){named("add")}
  %bitcast.1 = f32[8,64]{{1,0}} bitcast(%add.1){named("dot_general")}
  %reduce.1 = f32[8]{{0}} reduce(%bitcast.1, %zero), dimensions={{1}}, to_apply=%sum{named("total")}
  %bitcast.2 = f32[8,1]{{1,0}} bitcast(%reduce.1){named("total")}
  %mul.1 = f32[8,1,64]{{2,1,0}} cosine(%add.1){named("mul")}
  %gemm.1 = {result} fusion(%bitcast.1), kind=kCustom, calls=%gemm{named("dot_general")}
  %add.2 = f32[8,1,64]{{2,1,0}} negate(%add.1){named("add")}
  ROOT %r = ({kinds}) tuple(%bitcast.2, %mul.1, %gemm.1, %add.2)"""
    assert users_of("add.1", body, head=gemm) == users


@pytest.mark.parametrize(
    ("multiplied", "users"),
    [
        ("%bitcast.1, %bitcast.1", ["bitcast.1", "neg.1", "abs.1", "sin.1"]),
        ("%bitcast.2, %bitcast.2, %bitcast.1", ["bitcast.1", "neg.1", "sin.1", "abs.1"]),
    ],
    ids=["it is multiplied", "the product is added to it"],
)
def test_the_last_is_in_the_place_of_a_sum_behind_a_librarys_product_of_the_same(
    multiplied: str, users: list[str]
) -> None:
    """What was behind the sum took in the bitcast back: a name tells that a pass made the sum anew."""
    body = f"""  %p = f32[1,8,8]{{2,1,0}} parameter(0)
  %q = f32[8,8,1]{{2,1,0}} parameter(1)
  %zero = f32[] constant(0)
  %bitcast.1 = f32[8,8]{{1,0}} bitcast(%p)
  %bitcast.2 = f32[8,8]{{1,0}} bitcast(%q)
  %product.1 = (f32[8,8]{{1,0}}, s8[64]{{0}}) custom-call({multiplied}),\
 custom_call_target="__cublas$lt$matmul"
  %neg.1 = f32[1,8,8]{{2,1,0}} negate(%p){named("neg")}
  %reduce.1 = f32[8]{{0}} reduce(%bitcast.1, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_sum")}
  %sum.1 = f32[1,8,8]{{2,1,0}} broadcast(%reduce.1), dimensions={{2}}{named("sub")}
  %sin.1 = f32[1,8,8]{{2,1,0}} sine(%p){named("sin")}
  %abs.1 = f32[1,8,8]{{2,1,0}} abs(%p){named("abs")}
  ROOT %r = (f32[8,8]{{1,0}}, f32[1,8,8]{{2,1,0}}, f32[1,8,8]{{2,1,0}}, f32[1,8,8]{{2,1,0}},\
 f32[1,8,8]{{2,1,0}}) tuple(%product.1, %neg.1, %sum.1, %sin.1, %abs.1)"""
    ids = "p q zero neg.1 sin.1 abs.1 r bitcast.1 bitcast.2 product.1 reduce.1 sum.1"
    assert users_of("p", body, ids=ids) == users


@pytest.mark.parametrize(("summed", "users"), [(0, ["flat.1", "reduce.1"]), (1, ["reduce.1", "flat.1"])])
def test_the_sum_of_a_product_with_a_vector_takes_the_place_of_its_transpose(
    summed: int, users: list[str]
) -> None:
    """`(a.T @ b).sum()`: both sums read what was multiplied; a dot sums the last dimension itself."""
    of_dot = named("dot_general")
    body = f"""  %p = f32[4,4]{{1,0}} parameter(0)
  %q = f32[4,4]{{1,0}} parameter(1)
  %zero = f32[] constant(0)
  %multiply.1 = f32[4,4]{{1,0}} multiply(%p, %q){of_dot}
  %reduce.1 = f32[4]{{0}} reduce(%multiply.1, %zero), dimensions={{{summed}}}, to_apply=%sum{of_dot}
  %flat.1 = f32[16]{{0}} bitcast(%multiply.1){named("dot_general")}
  %total.1 = f32[] reduce(%flat.1, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_sum")}
  ROOT %r = (f32[4]{{0}}, f32[]) tuple(%reduce.1, %total.1)"""
    assert users_of("multiply.1", body) == users


@pytest.mark.parametrize(("beta", "users"), [(1, ["sin.1", "exp.1"]), (0, ["exp.1", "sin.1"])])
def test_a_sum_that_a_call_took_in_was_summed_in_front(beta: int, users: list[str]) -> None:
    """The bitcast of what the call computes has the name of the addition then."""
    config = f'backend_config={{"gemm_backend_config":{{"beta":{beta}}}}}'
    body = f"""  %p = f32[32,64]{{1,0}} parameter(0)
  %q = f32[64,64]{{1,0}} parameter(1)
  %zero = f32[] constant(0)
  %call = (f32[32,64]{{1,0}}, s8[4]{{0}}) custom-call(%p, %q, %p), \
custom_call_target="__cublas$lt$matmul", {config}
  %z = f32[32,64]{{1,0}} get-tuple-element(%call), index=0
  %reduce_sum.1 = f32[64]{{0}} reduce(%z, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_sum")}
  %bitcast.1 = f32[8,4,64]{{2,1,0}} bitcast(%z){named("add_any")}
  %exp.1 = f32[8,4,64]{{2,1,0}} exponential(%bitcast.1){named("exp")}
  %sin.1 = f32[8,4,64]{{2,1,0}} sine(%bitcast.1){named("sin")}
  ROOT %r = (f32[64]{{0}}, f32[8,4,64]{{2,1,0}}, f32[8,4,64]{{2,1,0}}) tuple(%reduce_sum.1, %exp.1, %sin.1)"""
    ids = "p q zero reduce_sum.1 exp.1 sin.1 r call z bitcast.1"
    assert users_of("bitcast.1", body, ids=ids) == users


@pytest.mark.parametrize(
    ("name", "users"),
    [("dot_general", ["transpose.1", "reduce_sum.1"]), ("sub", ["reduce_sum.1", "transpose.1"])],
)
def test_a_sum_of_what_a_product_was_transposed_to_is_behind_the_transpose(
    name: str, users: list[str]
) -> None:
    total = "reduce_sum"
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %bitcast.1 = f32[2,4,8]{{2,1,0}} bitcast(%p){named(name)}
  %reduce_sum.1 = f32[8]{{0}} reduce(%bitcast.1, %zero), dimensions={{0,1}}, to_apply=%sum{named(total)}
  %transpose.1 = f32[4,2,8]{{2,1,0}} transpose(%bitcast.1), dimensions={{1,0,2}}{named("transpose")}
  %bitcast.2 = f32[8,8]{{1,0}} bitcast(%transpose.1){named("transpose")}
  %dot.1 = f32[8,8]{{1,0}} dot(%bitcast.2, %p), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
  ROOT %r = (f32[8]{{0}}, f32[8,8]{{1,0}}) tuple(%reduce_sum.1, %dot.1)"""
    assert users_of("bitcast.1", body) == users


@pytest.mark.parametrize(("beta", "users"), [(1, ["bitcast.1", "total.1"]), (0, ["total.1", "bitcast.1"])])
def test_a_sum_of_all_but_one_dimension_is_behind_the_reshape_of_what_a_library_added(
    beta: int, users: list[str]
) -> None:
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %call = (f32[8,8]{{1,0}}, s8[4]{{0}}) custom-call(%p, %p, %p), custom_call_target="__cublas$lt$matmul", \
backend_config={{"gemm_backend_config":{{"alpha_real":1,"beta":{beta}}}}}
  %matrix = f32[8,8]{{1,0}} get-tuple-element(%call), index=0
  %total.1 = f32[8]{{0}} reduce(%matrix, %zero), dimensions={{0}}, to_apply=%sum{named("total")}
  %bitcast.1 = f32[2,4,8]{{2,1,0}} bitcast(%matrix){named("add_any")}
  ROOT %r = (f32[8]{{0}}, f32[2,4,8]{{2,1,0}}) tuple(%total.1, %bitcast.1)"""
    assert users_of("matrix", body) == users
