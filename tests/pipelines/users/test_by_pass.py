"""What passes left of the order of users, beyond what names tell, each case as XLA's records show it."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("root", "users"), [("tuple.2", ["sin.1", "cos.1"]), ("tuple.1.0", ["cos.1", "sin.1"])]
)
def test_what_is_younger_than_a_root_that_a_pass_made_may_be_of_the_program(
    root: str, users: list[str]
) -> None:
    """Layout assignment makes the tuple anew where a result is copied. It has no number of the program's."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %multiply.7 = f32[8]{{0}} multiply(%p, %q){named("div")}
  %mul.2 = f32[8]{{0}} multiply(%multiply.7, %q){named("mul")}
  %cos.1 = f32[8]{{0}} cosine(%mul.2){named("cos")}
  %sin.1 = f32[8]{{0}} sine(%mul.2){named("sin")}
  ROOT %{root} = (f32[8]{{0}}, f32[8]{{0}}) tuple(%cos.1, %sin.1)"""
    if root == "tuple.1.0":
        body = body.replace(named("div"), named("mul"))
    assert users_of("mul.2", body, ids=f"p q multiply.7 mul.2 cos.1 sin.1 {root}") == users


@pytest.mark.parametrize(
    ("ids", "users"),
    [
        ("p q sum.1 root select_n.1 other.1 ge.1 le.1 both.1 index", ["le.1", "index", "ge.1"]),
        ("p q sum.1 root select_n.1 ge.1 le.1 both.1 other.1 index", ["ge.1", "le.1", "index"]),
    ],
)
def test_what_stands_behind_another_call_was_moved_out_of_its_own(ids: str, users: list[str]) -> None:
    body = f"""  %p = s32[8]{{0}} parameter(0)
  %q = s32[8]{{0}} parameter(1)
  %select_n.1 = s32[8]{{0}} negate(%p){named("jit(_take)/select_n", frame=1)}
  %other.1 = s32[8]{{0}} negate(%q){named("jit(g)/other", frame=2)}
  %ge.1 = s32[8]{{0}} subtract(%select_n.1, %q){named("jit(_take)/ge", frame=1)}
  %le.1 = s32[8]{{0}} add(%select_n.1, %q){named("jit(_take)/le", frame=1)}
  %index = s32[8,1]{{1,0}} bitcast(%select_n.1){named("jit(_take)/select_n", frame=1)}
  %both.1 = s32[8]{{0}} subtract(%ge.1, %le.1){named("jit(_take)/and", frame=1)}
  %sum.1 = s32[8]{{0}} add(%both.1, %other.1){named("add")}
  ROOT %root = (s32[8,1]{{1,0}}, s32[8]{{0}}) tuple(%index, %sum.1)"""
    assert users_of("select_n.1", body, ids=ids) == users


def test_a_gather_took_the_place_of_the_reshape_of_its_indices() -> None:
    """GatherSimplifier made it anew; the range was looked at in front of another reshape, the first."""
    body = f"""  %p = s32[8,1]{{1,0}} parameter(0)
  %q = s32[8,1]{{1,0}} parameter(1)
  %x = s32[16]{{0}} parameter(2)
  %select_n.1 = s32[8,1]{{1,0}} negate(%p){named("jit(_take)/select_n", frame=1)}
  %other.1 = s32[8,1]{{1,0}} negate(%q){named("jit(g)/other", frame=2)}
  %ge.1 = s32[8,1]{{1,0}} subtract(%select_n.1, %q){named("jit(_take)/ge", frame=1)}
  %le.1 = s32[8,1]{{1,0}} add(%select_n.1, %q){named("jit(_take)/le", frame=1)}
  %both.1 = s32[8,1]{{1,0}} subtract(%ge.1, %le.1){named("jit(_take)/and", frame=1)}
  %gather.1 = s32[8]{{0}} gather(%x, %select_n.1), offset_dims={{}}, collapsed_slice_dims={{0}}, \
start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1}}{named("jit(_take)/gather", frame=1)}
  %sum.1 = s32[8,1]{{1,0}} add(%both.1, %other.1){named("add")}
  ROOT %root = (s32[8,1]{{1,0}}, s32[8]{{0}}) tuple(%sum.1, %gather.1)"""
    ids = "p q x sum.1 root select_n.1 gather.1 other.1 ge.1 le.1 both.1"
    assert users_of("select_n.1", body, ids=ids) == ["le.1", "gather.1", "ge.1"]


_SOFTMAX = """%softmaxK (p.K: f32[8]) -> f32[8] {
  %p.K = f32[8]{0} parameter(0)
  %c.K = f32[] constant(0.5)
  %half.K = f32[8]{0} broadcast(%c.K), dimensions={}
  ROOT %multiply.K = f32[8]{0} multiply(%p.K, %half.K)
}
"""


def test_the_last_softmax_fusion_was_made_first() -> None:
    """Each takes a user of the constant with it, in whose place the last one goes."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %half = f32[] constant(0.5)
  %halves = f32[8]{{0}} broadcast(%half), dimensions={{}}
  %s.1 = f32[8]{{0}} fusion(%p), kind=kCustom, calls=%softmax7
  %s.2 = f32[8]{{0}} fusion(%s.1), kind=kCustom, calls=%softmax8
  %mul.1 = f32[8]{{0}} multiply(%s.2, %halves){named("mul")}
  %mul.2 = f32[8]{{0}} multiply(%mul.1, %halves){named("mul")}
  %mul.3 = f32[8]{{0}} multiply(%mul.2, %halves){named("mul")}
  ROOT %r = (f32[8]{{0}}) tuple(%mul.3)"""
    head = _SOFTMAX.replace("K", "7") + _SOFTMAX.replace("K", "8")
    assert users_of("halves", body, head=head, ids="p half halves s.1 s.2 mul.1 mul.2 mul.3 r") == [
        "mul.2",
        "mul.3",
        "mul.1",
    ]


def test_what_softmax_fusions_took_along_was_of_the_round_of_its_like() -> None:
    """The mean divides by a written number, the variance by one that is computed: CSE merges that later."""
    mean, variance, back = (named(f"{call}/div") for call in ("jvp()", "jvp(jit(_var))", "transpose(jvp())"))
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %half = f32[] constant(0.5)
  %halves = f32[8]{{0}} broadcast(%half), dimensions={{}}
  %s.1 = f32[8]{{0}} fusion(%p), kind=kCustom, calls=%softmax7
  %s.2 = f32[8]{{0}} fusion(%s.1), kind=kCustom, calls=%softmax8
  %multiply.5 = f32[8]{{0}} multiply(%s.2, %halves){variance}
  %multiply.3 = f32[8]{{0}} multiply(%multiply.5, %halves){back}
  %multiply.4 = f32[8]{{0}} multiply(%multiply.3, %halves){back}
  ROOT %r = (f32[8]{{0}}) tuple(%multiply.4)"""
    taken = {"7": mean, "8": variance}
    head = "".join(_SOFTMAX.replace("%half.K)", f"%half.K){taken[k]}").replace("K", k) for k in taken)
    age = "p half multiply.3 multiply.4 halves multiply.5 s.1 s.2 r"
    users = users_of("halves", body, head=head, ids=age)
    assert users == ["multiply.5", "multiply.3", "multiply.4"]


@pytest.mark.parametrize(
    ("call", "users"), [("jvp(jit(silu))", ["late.1", "early.1"]), ("jvp()", ["early.1", "late.1"])]
)
def test_another_result_of_a_call_is_found_behind_converts(call: str, users: list[str]) -> None:
    """The tuple of both results goes, and the last user takes its place."""
    body = f"""  %p = bf16[8]{{0}} parameter(0)
  %exp.1 = f32[8]{{0}} convert(%p)
  %div.1 = f32[8]{{0}} exponential(%exp.1){named(f"{call}/div")}
  %convert.5 = bf16[8]{{0}} convert(%div.1)
  %mul.1 = bf16[8]{{0}} multiply(%p, %convert.5){named(f"{call}/mul")}
  %early.1 = bf16[8]{{0}} negate(%mul.1){named("jvp()/early")}
  %late.1 = bf16[8]{{0}} negate(%mul.1){named("transpose(jvp())/late")}
  %again.1 = bf16[8]{{0}} negate(%convert.5){named("transpose(jvp(jit(silu)))/again")}
  ROOT %r = (bf16[8]{{0}}, bf16[8]{{0}}, bf16[8]{{0}}) tuple(%early.1, %late.1, %again.1)"""
    assert users_of("mul.1", body) == users


@pytest.mark.parametrize(
    ("ids", "users"),
    [
        ("p x.1 half.1 y.1 z.1 r single.1", ["half.1", "single.1"]),
        ("p x.1 half.1 single.1 y.1 z.1 r", ["single.1", "half.1"]),
    ],
)
def test_a_convert_of_a_convert_became_one_behind_all_else(ids: str, users: list[str]) -> None:
    body = f"""  %p = s32[8]{{0}} parameter(0)
  %x.1 = s32[8]{{0}} negate(%p){named("x")}
  %single.1 = f32[8]{{0}} convert(%x.1){named("single")}
  %y.1 = f32[8]{{0}} sine(%single.1){named("y")}
  %half.1 = f16[8]{{0}} convert(%x.1){named("half")}
  %z.1 = f16[8]{{0}} negate(%half.1){named("z")}
  ROOT %r = (f32[8]{{0}}, f16[8]{{0}}) tuple(%y.1, %z.1)"""
    assert users_of("x.1", body, ids=ids) == users


def test_a_convert_of_the_program_was_merged_with_one_put_in() -> None:
    """The sum in single precision read the program's own; the last user takes its place."""
    body = f"""  %p = bf16[8]{{0}} parameter(0)
  %zero = f32[] constant(0)
  %exp.1 = bf16[8]{{0}} negate(%p){named("exp")}
  %convert.5 = f32[8]{{0}} convert(%exp.1)
  %total.1 = f32[] reduce(%convert.5, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_sum")}
  %totals.1 = f32[8]{{0}} broadcast(%total.1), dimensions={{}}
  %div.1 = f32[8]{{0}} divide(%convert.5, %totals.1){named("div")}
  %convert.6 = bf16[8]{{0}} convert(%div.1)
  %a.1 = bf16[8]{{0}} multiply(%convert.6, %exp.1){named("a")}
  %b.1 = bf16[8]{{0}} multiply(%a.1, %exp.1){named("b")}
  ROOT %r = (bf16[8]{{0}}) tuple(%b.1)"""
    assert users_of("exp.1", body) == ["b.1", "convert.5", "a.1"]


_GEMM = """%gemm (p0: f32[64,64], p1: f32[64,64]) -> f32[64,64] {
  %p0 = f32[64,64]{1,0} parameter(0)
  %p1 = f32[64,64]{1,0} parameter(1)
  ROOT %dot = f32[64,64]{1,0} dot(%p0, %p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


@pytest.mark.parametrize(
    ("ids", "users"),
    [
        ("broadcast.5 transpose.5 divide.5 multiply.5 add.5 g bitcast.1", ["divide.5", "multiply.5"]),
        ("bitcast.1 broadcast.5 transpose.5 divide.5 multiply.5 add.5 g", ["multiply.5", "divide.5"]),
    ],
)
def test_what_a_product_gives_is_copied_for_each_that_reads_it_in_another_layout(
    ids: str, users: list[str]
) -> None:
    """CSE made one of the copies, in the order of the walk. What was reshaped is copied once."""
    body = f"""  %p = f32[64,64]{{1,0}} parameter(0)
  %r = f32[8]{{0}} parameter(1)
  %q = f32[8]{{0}} bitcast(%r)
  %broadcast.5 = f32[8,8,64]{{2,1,0}} broadcast(%q), dimensions={{0}}{named("q")}
  %g = f32[64,64]{{1,0}} fusion(%p, %p), kind=kCustom, calls=%gemm
  %bitcast.1 = f32[8,64,8]{{2,1,0}} bitcast(%g){named("dot_general")}
  %transpose.5 = f32[8,8,64]{{2,1,0}} transpose(%bitcast.1), dimensions={{0,2,1}}{named("dot_general")}
  %divide.5 = f32[8,8,64]{{2,1,0}} divide(%transpose.5, %broadcast.5){named("div")}
  %multiply.5 = f32[8,8,64]{{2,1,0}} multiply(%transpose.5, %broadcast.5){named("mul")}
  %add.5 = f32[8,8,64]{{2,1,0}} add(%divide.5, %multiply.5){named("add")}
  ROOT %tuple.1.0 = (f32[8,8,64]{{2,1,0}}) tuple(%add.5)"""
    assert users_of("transpose.5", body, head=_GEMM, ids=f"p r tuple.1.0 q {ids}") == users


@pytest.mark.parametrize(
    ("name", "users"), [("", ["multiply.6", "multiply.5"]), (named("sum"), ["multiply.5", "multiply.6"])]
)
def test_a_reduction_that_was_laid_out_anew_had_a_bitcast_behind_it(name: str, users: list[str]) -> None:
    body = f"""  %p = f32[8,4,64]{{2,1,0}} parameter(0)
  %q = f32[8,2,64]{{2,1,0}} parameter(1)
  %t = f32[8,64]{{1,0}} parameter(2)
  %zero = f32[] constant(0)
  %bitcast.1 = f32[2048]{{0}} bitcast(%p)
  %broadcast.5 = f32[4,8,2,64]{{3,2,1,0}} broadcast(%q), dimensions={{1,2,3}}{named("q")}
  %broadcast.6 = f32[4,8,64]{{2,1,0}} broadcast(%t), dimensions={{1,2}}{named("t")}
  %negate.5 = f32[4,8,2,64]{{3,2,1,0}} negate(%broadcast.5){named("neg")}
  %reduce.5 = f32[4,8,64]{{2,1,0}} reduce(%negate.5, %zero), dimensions={{2}}, to_apply=%sumNAME
  %multiply.5 = f32[4,8,64]{{2,1,0}} multiply(%reduce.5, %broadcast.6){named("mul")}
  %multiply.6 = f32[4,8,64]{{2,1,0}} multiply(%reduce.5, %multiply.5){named("mul")}
  ROOT %tuple.1.0 = (f32[4,8,64]{{2,1,0}}, f32[2048]{{0}}) tuple(%multiply.6, %bitcast.1)"""
    ids = "p q t zero tuple.1.0 bitcast.1 broadcast.5 broadcast.6 negate.5 multiply.5 multiply.6 reduce.5"
    assert users_of("reduce.5", body.replace("NAME", name), ids=ids) == users


_BODY = "while/body/eval_jaxpr"


@pytest.mark.parametrize(
    ("ids", "users"),
    [
        ("p root x.1 y.1 third thirds other.1 multiply.5 multiply.6", ["multiply.6", "multiply.5"]),
        ("p root third thirds x.1 y.1 other.1 multiply.5 multiply.6", ["multiply.5", "multiply.6"]),
    ],
)
def test_in_a_function_a_reciprocal_is_younger_than_what_it_divides(ids: str, users: list[str]) -> None:
    """Its own product is gone, and the last has taken its place."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %third = f32[] constant(0.333333343)
  %thirds = f32[8]{{0}} broadcast(%third), dimensions={{}}, metadata={{op_name="jit(f)/{_BODY}"}}
  %x.1 = f32[8]{{0}} negate(%p){named(f"{_BODY}/x")}
  %y.1 = f32[8]{{0}} cosine(%p){named(f"{_BODY}/y")}
  %other.1 = f32[8]{{0}} sine(%p){named(f"{_BODY}/other")}
  %multiply.5 = f32[8]{{0}} multiply(%x.1, %thirds){named(f"{_BODY}/div")}
  %multiply.6 = f32[8]{{0}} multiply(%y.1, %thirds){named(f"{_BODY}/div")}
  ROOT %root = (f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(%multiply.5, %multiply.6, %other.1)"""
    assert users_of("thirds", body, ids=ids) == users


@pytest.mark.parametrize(
    ("thirds", "ids_known", "users"),
    [
        ("broadcast.3.0", True, ["multiply.6", "multiply.5"]),
        ("broadcast.3.0", False, ["multiply.5", "multiply.6"]),
        ("broadcast.3", False, ["multiply.6", "multiply.5"]),
    ],
    ids=["ids known", "a guess", "a guess, and the first of all"],
)
def test_a_guess_does_not_tell_whether_a_product_was_made_with_a_reciprocal(
    thirds: str, ids_known: bool, users: list[str]
) -> None:
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %third = f32[] constant(0.333333343)
  %{thirds} = f32[8]{{0}} broadcast(%third), dimensions={{}}
  %x.1 = f32[8]{{0}} negate(%p){named("x")}
  %y.1 = f32[8]{{0}} cosine(%p){named("y")}
  %other.1 = f32[8]{{0}} sine(%p){named("other")}
  %abs.9 = f32[8]{{0}} abs(%p)
  %multiply.5.0 = f32[8]{{0}} multiply(%x.1, %{thirds}){named("div")}
  %multiply.6.0 = f32[8]{{0}} multiply(%y.1, %{thirds}){named("div")}
  ROOT %root.1 = f32[8]{{0}} add(%other.1, %abs.9){named("root")}"""
    ids = f"p x.1 y.1 other.1 root.1 third {thirds} abs.9 multiply.5.0 multiply.6.0"
    listed = users_of(thirds, body, ids=ids, ids_known=ids_known)
    assert listed == [f"{name}.0" for name in users]


@pytest.mark.parametrize(
    ("reduced", "users"), [("p q", ["neg.2", "neg.1"]), ("p p", ["neg.1", "neg.2"])], ids=["all", "one"]
)
def test_the_last_takes_the_place_of_a_reduction_that_became_one_of_each_part(
    reduced: str, users: list[str]
) -> None:
    """In `c = concatenate(p, q)`, `max(c)`, `-c`."""
    one, other = reduced.split()
    of_parts = named("reduce_max")
    body = f"""  %none = f32[] constant(-inf)
  %p = f32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %reduce.1 = f32[] reduce(%{one}, %none), dimensions={{0}}, to_apply=%sum{of_parts}
  %reduce.2 = f32[] reduce(%{other}, %none), dimensions={{0}}, to_apply=%sum{of_parts}
  %reduce_max.1 = f32[] maximum(%reduce.1, %reduce.2){of_parts}
  %concatenate.1 = f32[16]{{0}} concatenate(%p, %q), dimensions={{0}}{named("concatenate")}
  %neg.1 = f32[16]{{0}} negate(%concatenate.1){named("neg")}
  %neg.2 = f32[16]{{0}} negate(%concatenate.1){named("neg")}
  ROOT %r = (f32[], f32[16]{{0}}, f32[16]{{0}}) tuple(%reduce_max.1, %neg.1, %neg.2)"""
    assert users_of("concatenate.1", body) == users


@pytest.mark.parametrize(
    ("last", "users"),
    [
        ("mul.3.0", ["mul.2.0", "mul.3.0", "reduce.2", "neg.1"]),
        ("mul.4.0", ["mul.2.0", "reduce.2", "mul.4.0", "neg.1"]),
    ],
    ids=["a part", "a product with one, mul.3"],
)
def test_a_reduction_of_one_part_takes_the_place_of_the_concatenate(last: str, users: list[str]) -> None:
    """In `max(concatenate(p * q, p, p * r))` and `-p`: the concatenate was behind both products."""
    of_parts = named("reduce_max")
    body = f"""  %none = f32[] constant(-inf)
  %p = f32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %mul.2.0 = f32[8]{{0}} multiply(%p, %q){named("mul")}
  %reduce.1 = f32[] reduce(%mul.2.0, %none), dimensions={{0}}, to_apply=%sum{of_parts}
  %reduce.2 = f32[] reduce(%p, %none), dimensions={{0}}, to_apply=%sum{of_parts}
  %reduce_max.1 = f32[] maximum(%reduce.1, %reduce.2){of_parts}
  %{last} = f32[8]{{0}} multiply(%q, %p){named("mul")}
  %reduce.3 = f32[] reduce(%{last}, %none), dimensions={{0}}, to_apply=%sum{of_parts}
  %reduce_max.2 = f32[] maximum(%reduce_max.1, %reduce.3){of_parts}
  %neg.1 = f32[8]{{0}} negate(%p){named("neg")}
  ROOT %r = (f32[], f32[8]{{0}}) tuple(%reduce_max.2, %neg.1)"""
    assert users_of("p", body) == users


def test_what_is_computed_of_elements_in_a_scan_had_a_reshape_behind_it() -> None:
    """Its readers were moved in front of that together, in the order of their ids."""
    index, own = "while/body/jit(dynamic_index_in_dim)/dynamic_slice", "while/body/eval_jaxpr"
    body = f"""  %p = f32[7,16]{{1,0}} parameter(0)
  %i = s32[] parameter(1)
  %zero = s32[] constant(0)
  %q = f32[1,16]{{1,0}} parameter(2)
  %slice.1 = f32[1,16]{{1,0}} dynamic-slice(%p, %i, %zero), dynamic_slice_sizes={{1,16}}{named(index)}
  %mul.1 = f32[1,16]{{1,0}} multiply(%slice.1, %q){named(f"{own}/mul")}
  %sub.1 = f32[1,16]{{1,0}} subtract(%mul.1, %q){named(f"{own}/sub")}
  %div.1 = f32[1,16]{{1,0}} divide(%mul.1, %q){named(f"{own}/div")}
  %neg.1 = f32[1,16]{{1,0}} negate(%mul.1){named(f"{own}/neg")}
  ROOT %r = (f32[1,16]{{1,0}}, f32[1,16]{{1,0}}, f32[1,16]{{1,0}}) tuple(%sub.1, %div.1, %neg.1)"""
    assert users_of("mul.1", body) == ["neg.1", "sub.1", "div.1"]


@pytest.mark.parametrize(
    ("op_name", "users"), [("", "slice.1 convert.1"), ("jit(f)/sin", "convert.1 slice.1")]
)
def test_a_copy_may_be_read_through_a_convert_that_was_put_in_later(op_name: str, users: str) -> None:
    """The bitcast back to the other layout was its first user, and went; the last took its place."""
    convert = f', metadata={{op_name="{op_name}"}}' if op_name else ""
    body = f"""  %p = bf16[4,8]{{1,0}} parameter(0)
  %neg.1.0 = bf16[4,8]{{1,0}} negate(%p){named("neg")}
  %transpose.5 = bf16[8,4]{{1,0}} transpose(%neg.1.0), dimensions={{1,0}}{named("neg")}
  %convert.1 = f32[8,4]{{1,0}} convert(%transpose.5){convert}
  %sin.1 = f32[8,4]{{1,0}} sine(%convert.1){named("sin")}
  %slice.1 = bf16[1,4]{{1,0}} slice(%transpose.5), slice={{[0:1], [0:4]}}{named("slice")}
  ROOT %tuple.1.0 = (f32[8,4]{{1,0}}, bf16[1,4]{{1,0}}) tuple(%sin.1, %slice.1)"""
    ids = "p neg.1.0 sin.1 slice.1 tuple.1.0 transpose.5 convert.1"
    assert users_of("transpose.5", body, ids=ids) == users.split()


@pytest.mark.parametrize(
    ("ids", "users"),
    [
        ("p slice.5 slice.6 add.5 tuple.1.0 bitcast.1 transpose.5", ["slice.6", "slice.5"]),
        ("p add.5 tuple.1.0 slice.5 slice.6 bitcast.1 transpose.5", ["slice.5", "slice.6"]),
    ],
    ids=["of the program", "of a pass"],
)
def test_slices_of_a_copy_that_moved_in_front_of_a_reshape_took_turns(ids: str, users: list[str]) -> None:
    """The last took the place of the reshape, and then the last of a bitcast to the other layout."""
    body = f"""  %p = f32[16,64]{{1,0}} parameter(0)
  %bitcast.1 = f32[2,8,64]{{2,1,0}} bitcast(%p){named("dot_general")}
  %transpose.5 = f32[2,64,8]{{2,1,0}} transpose(%bitcast.1), dimensions={{0,2,1}}{named("dot_general")}
  %slice.5 = f32[1,64,8]{{2,1,0}} slice(%transpose.5), slice={{[0:1], [0:64], [0:8]}}{named("slice")}
  %slice.6 = f32[1,64,8]{{2,1,0}} slice(%transpose.5), slice={{[1:2], [0:64], [0:8]}}{named("slice")}
  %add.5 = f32[1,64,8]{{2,1,0}} add(%slice.5, %slice.6){named("add")}
  ROOT %tuple.1.0 = (f32[1,64,8]{{2,1,0}}) tuple(%add.5)"""
    assert users_of("transpose.5", body, ids=ids) == users


@pytest.mark.parametrize(
    ("ids", "users"),
    [
        ("p x.1 y.1 r multiply.1 single.1", ["y.1", "single.1", "multiply.1"]),
        ("p x.1 y.1 single.1 r multiply.1", ["y.1", "multiply.1", "single.1"]),
    ],
    ids=["of a convert", "of the value"],
)
def test_a_convert_of_one_that_nothing_else_read_took_the_place_of_that(ids: str, users: list[str]) -> None:
    body = f"""  %p = f64[8]{{0}} parameter(0)
  %x.1 = f64[8]{{0}} negate(%p){named("x")}
  %y.1 = f64[8]{{0}} sine(%x.1){named("y")}
  %multiply.1 = f64[8]{{0}} multiply(%x.1, %p){named("dot_general")}
  %single.1 = f32[8]{{0}} convert(%x.1){named("single")}
  ROOT %r = (f64[8]{{0}}, f64[8]{{0}}, f32[8]{{0}}) tuple(%y.1, %multiply.1, %single.1)"""
    assert users_of("x.1", body, ids=ids) == users
