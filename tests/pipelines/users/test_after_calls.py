"""What passes did to what calls had brought in, each case as XLA's records show it."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.users.simplified.merged_rounds import with_those_of_its_round_in_front

from .lists import named, places_in_source, users_in, users_of


def test_a_product_that_was_a_division_tells_since_when_passes_made_operations() -> None:
    """Of what is of a called function ids alone say nothing."""
    body = f"""  %p = s32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %index.1 = s32[8]{{0}} abs(%p){named("jit(take)/index")}
  %ge.1 = pred[8]{{0}} compare(%index.1, %p), direction=GE{named("jit(take)/ge")}
  %le.1 = pred[8]{{0}} compare(%index.1, %p), direction=LE{named("jit(take)/le")}
  %and.1 = pred[8]{{0}} and(%ge.1, %le.1){named("jit(take)/and")}
  %bitcast.1 = s32[8,1]{{1,0}} bitcast(%index.1){named("jit(take)/index")}
  %multiply.1 = f32[8]{{0}} multiply(%q, %q){named("div")}
  ROOT %r = (pred[8]{{0}}, s32[8,1]{{1,0}}, f32[8]{{0}}) tuple(%and.1, %bitcast.1, %multiply.1)"""
    moved = "p q r index.1 multiply.1 ge.1 le.1 and.1 bitcast.1"
    assert users_of("index.1", body, ids=moved) == ["le.1", "bitcast.1", "ge.1"]
    inlined = "p q r index.1 ge.1 le.1 and.1 multiply.1 bitcast.1"
    assert users_of("index.1", body, ids=inlined) == ["ge.1", "le.1", "bitcast.1"]


def test_a_product_with_two_numbers_stands_where_the_one_with_the_first_was() -> None:
    """AlgebraicSimplifier made it of two operations, of which it has both names; the rest are clones."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %n = f32[] constant(0.25)
  %ns = f32[8]{{0}} broadcast(%n), dimensions={{}}
  %max.1 = f32[8]{{0}} maximum(%p, %q){named("jvp(jit(update))/max")}
  %mul.1 = f32[8]{{0}} multiply(%max.1, %ns){named("jvp(jit(update))/mul;transpose(jvp())/mul")}
  %eq.1 = pred[8]{{0}} compare(%max.1, %p), direction=EQ{named("jvp(jit(update))/eq")}
  %eq.2 = pred[8]{{0}} compare(%q, %max.1), direction=EQ{named("jvp(jit(update))/eq")}
  ROOT %r = (f32[8]{{0}}, pred[8]{{0}}, pred[8]{{0}}) tuple(%mul.1, %eq.1, %eq.2)"""
    ids = "p q r max.1 eq.2 eq.1 n ns mul.1"
    assert users_of("max.1", body, ids=ids) == ["mul.1", "eq.2", "eq.1"]
    once = body.replace(";transpose(jvp())/mul", "")
    assert users_of("max.1", once, ids=ids) == ["eq.2", "eq.1", "mul.1"]


def test_of_indices_that_each_reader_had_reshaped_the_first_stays() -> None:
    """The walk meets the scatter first: the gather's reshape went, and the last user took its place."""
    body = f"""  %p = s32[8]{{0}} parameter(0)
  %q = f32[8,4]{{1,0}} parameter(1)
  %index.1 = s32[8]{{0}} abs(%p){named("index")}
  %bitcast.1 = s32[8,1]{{1,0}} bitcast(%index.1){named("index")}
  %gather.1 = f32[8,1,4]{{2,1,0}} gather(%q, %bitcast.1), offset_dims={{1,2}}, collapsed_slice_dims={{}},\
 start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,4}}{named("gather")}
  %scatter.1 = f32[8,4]{{1,0}} scatter(%q, %bitcast.1, %gather.1), update_window_dims={{1,2}},\
 inserted_window_dims={{}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=%sum{named("s")}
  %neg.1 = s32[8]{{0}} negate(%index.1){named("neg")}
  %not.1 = s32[8]{{0}} not(%index.1){named("not")}
  ROOT %r = (f32[8,4]{{1,0}}, s32[8]{{0}}, s32[8]{{0}}) tuple(%scatter.1, %neg.1, %not.1)"""
    ids = "p q index.1 neg.1 not.1 r gather.1 scatter.1 bitcast.1"
    assert users_of("index.1", body, ids=ids) == ["not.1", "bitcast.1", "neg.1"]
    once = body.replace("%bitcast.1, %gather.1", "%other.1, %gather.1").replace(
        "  %gather.1 =", "  %other.1 = s32[8,1]{1,0} bitcast(%p)\n  %gather.1 ="
    )
    assert users_of("index.1", once, ids=ids + " other.1") == ["bitcast.1", "neg.1", "not.1"]


def test_what_was_moved_in_one_round_reads_the_constant_before_what_was_moved_in_another() -> None:
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %c = f32[] constant(0)
  %broadcast.1 = f32[8]{{0}} broadcast(%c), dimensions={{}}
  %gt.1 = pred[8]{{0}} compare(%p, %broadcast.1), direction=GT{named("gt")}
  %choice.1 = f32[8]{{0}} select(%gt.1, %p, %broadcast.1){named("choice")}
  %gt.2 = pred[8]{{0}} compare(%choice.1, %broadcast.1), direction=GT{named("gt")}
  %choice.2 = f32[8]{{0}} select(%gt.2, %p, %broadcast.1){named("choice")}
  ROOT %r = (f32[8]{{0}}) tuple(%choice.2)"""
    rounds = "p r c gt.1 gt.2 broadcast.1 choice.1 choice.2"
    assert users_of("broadcast.1", body, ids=rounds) == ["gt.1", "gt.2", "choice.1", "choice.2"]
    program = "p c gt.1 gt.2 broadcast.1 choice.1 choice.2 r"
    assert users_of("broadcast.1", body, ids=program) == ["gt.1", "choice.1", "gt.2", "choice.2"]


def test_a_convert_that_was_put_in_since_tells_of_no_round() -> None:
    body = f"""  %p = bf16[8]{{0}} parameter(0)
  %c = bf16[] constant(0)
  %broadcast.1 = bf16[8]{{0}} broadcast(%c), dimensions={{}}
  %convert.1 = f32[8]{{0}} convert(%broadcast.1)
  %gt.1 = pred[8]{{0}} compare(%p, %broadcast.1), direction=GT{named("gt")}
  %choice.1 = bf16[8]{{0}} select(%gt.1, %p, %broadcast.1){named("choice")}
  %gt.2 = pred[8]{{0}} compare(%choice.1, %broadcast.1), direction=GT{named("gt")}
  %choice.2 = bf16[8]{{0}} select(%gt.2, %p, %broadcast.1){named("choice")}
  ROOT %r = (bf16[8]{{0}}) tuple(%choice.2)"""
    entry = parse_module(f"HloModule m\n\nENTRY %main {{\n{body}\n}}\n").entry
    by_name = {x.name: x for x in entry}
    ids = "p r c gt.1 gt.2 broadcast.1 choice.1 choice.2 convert.1"
    entry.reorder([by_name[name] for name in ids.split()])
    walked = [by_name[name] for name in ("convert.1", "gt.1", "choice.1", "gt.2", "choice.2")]
    listed = with_those_of_its_round_in_front(by_name["broadcast.1"], walked, by_name["gt.1"].id)
    assert [u.name for u in listed] == ["convert.1", "gt.1", "gt.2", "choice.1", "choice.2"]


@pytest.mark.parametrize(
    ("operation", "users"),
    [("div", "max.1 select.1 max.2 select.2"), ("select_n", "max.1 max.2 select.1 select.2")],
)
def test_a_choice_that_was_a_product_with_a_predicate_is_of_the_first_round(
    operation: str, users: str
) -> None:
    """The first simplification makes it, and a zero for it."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %c = f32[] constant(0)
  %lt.1 = pred[8]{{0}} compare(%p, %p), direction=LT{named("lt")}
  %zero.1 = f32[8]{{0}} broadcast(%c), dimensions={{}}{named("zero")}
  %max.1 = f32[8]{{0}} maximum(%p, %zero.1){named("max")}
  %select.1 = f32[8]{{0}} select(%lt.1, %max.1, %zero.1){named(operation)}
  %max.2 = f32[8]{{0}} maximum(%select.1, %zero.1){named("max")}
  %select.2 = f32[8]{{0}} select(%lt.1, %max.2, %zero.1){named(operation)}
  ROOT %r = (f32[8]{{0}}) tuple(%select.2)"""
    entry = parse_module(f"HloModule m\n\nENTRY %main {{\n{body}\n}}\n").entry
    by_name = {x.name: x for x in entry}
    ids = "p r c lt.1 max.1 max.2 zero.1 select.1 select.2"
    entry.reorder([by_name[name] for name in ids.split()])
    walked = [by_name[name] for name in ("max.1", "select.1", "max.2", "select.2")]
    listed = with_those_of_its_round_in_front(by_name["zero.1"], walked, by_name["max.1"].id)
    assert [u.name for u in listed] == users.split()


@pytest.mark.parametrize(("operation", "users"), [("div", [1, 0, 2]), ("mul", [1, 2, 0])])
def test_what_was_a_division_read_a_reciprocal_of_its_own_in_any_round(
    operation: str, users: list[int]
) -> None:
    """HloCSE merged those in the order of its walk, whichever are older than the one that is kept."""
    lines = [f"%multiply.{k} = f32[8]{{0}} multiply(%p, %half.1){named(operation)}" for k in range(3)]
    half = "%half.1 = f32[8]{0} broadcast(%c), dimensions={}"
    text = "\n  ".join(["%p = f32[8]{0} parameter(0)", "%c = f32[] constant(0.5)", half, *lines])
    entry = parse_module(f"HloModule m\n\nENTRY %main {{\n  {text}\n}}\n").entry
    by_name = {x.name: x for x in entry}
    ids = ["p", "c", "multiply.0", "half.1", "multiply.1", "multiply.2"]
    entry.reorder([by_name[name] for name in ids])
    products = [by_name[f"multiply.{k}"] for k in range(3)]
    walked = [products[1], products[0], products[2]]
    listed = with_those_of_its_round_in_front(by_name["half.1"], walked, by_name["multiply.0"].id)
    assert listed == [products[k] for k in users]


@pytest.mark.parametrize(
    ("ids", "users"),
    [
        ("sin.1 broadcast.1 mul.1 mul.3 cos.1 multiply.2", ["mul.1", "mul.3", "multiply.2"]),
        ("sin.1 broadcast.1 multiply.2 mul.1 cos.1 mul.3", ["multiply.2", "mul.1", "mul.3"]),
    ],
)
def test_a_factor_made_of_two_is_of_the_round_of_its_product(ids: str, users: list[str]) -> None:
    """That is, if the product was made right behind it: what was made later was given it later."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %c = f32[] constant(0.03125)
  %sin.1 = f32[8]{{0}} sine(%p){named("sin")}
  %cos.1 = f32[8]{{0}} cosine(%p){named("cos")}
  %broadcast.1 = f32[8]{{0}} broadcast(%c), dimensions={{}}{named("mul")}
  %mul.1 = f32[8]{{0}} multiply(%p, %broadcast.1){named("mul")}
  %multiply.2 = f32[8]{{0}} multiply(%sin.1, %broadcast.1){named("transpose(jvp())/mul")}
  %mul.3 = f32[8]{{0}} multiply(%cos.1, %broadcast.1){named("mul")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(%mul.1, %multiply.2, %mul.3)"""
    assert users_of("broadcast.1", body, ids=f"p q c r {ids}") == users


@pytest.mark.parametrize(
    ("ids", "users"),
    [("add.1 r mul.1", ["add.1", "mul.1"]), ("mul.1 add.1 r", ["mul.1", "add.1"])],
)
def test_what_was_moved_in_front_of_a_reshape_had_a_broadcast_of_its_own(ids: str, users: list[str]) -> None:
    body = f"""  %p = f32[] parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %scale.1 = f32[8]{{0}} broadcast(%p), dimensions={{}}{named("scale")}
  %mul.1 = f32[8]{{0}} multiply(%q, %scale.1){named("mul")}
  %add.1 = f32[8]{{0}} add(%q, %scale.1){named("add")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%mul.1, %add.1)"""
    assert users_of("scale.1", body, ids=f"p q scale.1 {ids}") == users


@pytest.mark.parametrize(("other", "users"), [(2, ["div.1", "div.2"]), (1, ["div.2", "div.1"])])
def test_what_two_calls_moved_each_reshaped_a_value_of_its_own(other: int, users: list[str]) -> None:
    """As one call does with its value once for all that read it, the last of which takes the place."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %multiply.1 = f32[8]{{0}} multiply(%p, %q){named("jvp()/div")}
  %negate.2 = f32[8]{{0}} negate(%multiply.1){named("jvp(jit(softmax))/neg")}
  %div.1 = f32[8]{{0}} divide(%negate.2, %p){named("jvp(jit(softmax))/div", frame=1)}
  %div.2 = f32[8]{{0}} divide(%negate.2, %q){named("jvp(jit(softmax))/div", frame=other)}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%div.1, %div.2)"""
    assert users_of("negate.2", body, ids="p q r multiply.1 negate.2 div.1 div.2") == users


_ELEMENT = """HloModule m

%body (t: (f32[4], s32[])) -> (f32[4], s32[]) {
  ROOT %t = (f32[4]{0}, s32[]) parameter(0)
}

%cond (u: (f32[4], s32[])) -> pred[] {
  %u = (f32[4]{0}, s32[]) parameter(0)
  ROOT %go = pred[] constant(true)
}

ENTRY %main (i: (f32[4], s32[])) -> (f32[4], f32[4]) {
  %i = (f32[4]{0}, s32[]) parameter(0)
  %while.1 = (f32[4]{0}, s32[]) while(%i), condition=%cond, body=%body
  %NAME = f32[4]{0} get-tuple-element(%while.1), index=0
  %sin.1 = f32[4]{0} sine(%NAME), metadata={op_name="jit(f)/jit(g)/sin"}
  %cos.1 = f32[4]{0} cosine(%NAME), metadata={op_name="jit(f)/jit(g)/cos"}
  %mul.1 = f32[4]{0} multiply(%sin.1, %cos.1), metadata={op_name="jit(f)/jit(g)/mul"}
  ROOT %tuple.1 = (f32[4]{0}, f32[4]{0}) tuple(%mul.1, %NAME)
}
"""


@pytest.mark.parametrize("ids_known", [False, True])
@pytest.mark.parametrize(
    ("name", "users"),
    [
        ("jit_h_.2", ["cos.1", "tuple.1", "sin.1"]),
        ("get-tuple-element.2", ["sin.1", "cos.1", "tuple.1"]),
    ],
)
def test_a_call_was_given_the_element_of_a_result(name: str, users: list[str], ids_known: bool) -> None:
    """It is named after what the program took it from."""
    assert users_in(_ELEMENT.replace("NAME", name), name, ids_known=ids_known) == users


def test_the_function_that_the_program_is_was_called_by_nothing() -> None:
    """An older JAX names it behind the program, as if it were a call."""
    program = _ELEMENT.replace("NAME", "jit_h_.2").replace("jit(g)", "jit(main)")
    assert users_in(program, "jit_h_.2", ids_known=True) == ["sin.1", "cos.1", "tuple.1"]


@pytest.mark.parametrize(
    ("body", "users"),
    [("body", ["cos.1", "sub.1", "tan.1"]), ("body.sunk.clone", ["cos.1", "tan.1", "sub.1"])],
)
def test_a_body_that_constants_were_sunk_into_has_lists_without_tuples(body: str, users: list[str]) -> None:
    """It was cloned when the results of the call had found their users, so that the last filled no hole."""
    program = f"""HloModule m

%{body} (i: (f32[4], f32[4])) -> (f32[4], f32[4]) {{
  %i = (f32[4]{{0}}, f32[4]{{0}}) parameter(0)
  %e.1 = f32[4]{{0}} get-tuple-element(%i), index=0
  %sin.1 = f32[4]{{0}} sine(%e.1){named("while/body/jit(g)/sin")}
  %cos.1 = f32[4]{{0}} cosine(%sin.1){named("while/body/jit(g)/cos")}
  %tan.1 = f32[4]{{0}} tan(%sin.1){named("while/body/tan")}
  %add.1 = f32[4]{{0}} add(%tan.1, %cos.1){named("while/body/add")}
  %sub.1 = f32[4]{{0}} subtract(%add.1, %sin.1){named("while/body/sub")}
  ROOT %tuple.1.0 = (f32[4]{{0}}, f32[4]{{0}}) tuple(%sub.1, %e.1)
}}

%cond (i: (f32[4], f32[4])) -> pred[] {{
  %i = (f32[4]{{0}}, f32[4]{{0}}) parameter(0)
  ROOT %never = pred[] constant(false)
}}

ENTRY %main (i: (f32[4], f32[4])) -> (f32[4], f32[4]) {{
  %i = (f32[4]{{0}}, f32[4]{{0}}) parameter(0)
  ROOT %while.1 = (f32[4]{{0}}, f32[4]{{0}}) while(%i), condition=%cond, body=%{body}
}}
"""
    assert users_in(program, "sin.1", ids_known=True) == users


def test_the_body_of_a_loop_is_called_in_one_place_wherever_its_lines_are() -> None:
    """jax.lax.map, of what it cut out: the last of the body took the place of the call."""
    body = f"""  %p = f32[5,8]{{1,0}} parameter(0)
  %i = s32[] parameter(1)
  %zero = s32[] constant(0)
  %part.1 = f32[1,8]{{1,0}} dynamic-slice(%p, %i, %zero), dynamic_slice_sizes={{1,8}}{named("jit(get)/part")}
  %exp.1 = f32[1,8]{{1,0}} exponential(%part.1){named("FUNCTION/exp", frame=1)}
  %sin.1 = f32[1,8]{{1,0}} sine(%part.1){named("FUNCTION/sin", frame=2)}
  ROOT %r = f32[1,8]{{1,0}} divide(%exp.1, %sin.1){named("FUNCTION/r", frame=3)}"""
    ids = "p i zero part.1 exp.1 sin.1 r"
    assert users_of("part.1", body.replace("FUNCTION", "eval_jaxpr"), ids=ids) == ["sin.1", "exp.1"]
    assert users_of("part.1", body.replace("FUNCTION", "jit(g)"), ids=ids) == ["exp.1", "sin.1"]


def test_results_of_a_body_are_of_one_call_if_they_were_written_in_several_places() -> None:
    body = f"""  %p = f32[5,8]{{1,0}} parameter(0)
  %i = s32[] parameter(1)
  %k = f32[1,8]{{1,0}} parameter(2)
  %zero = s32[] constant(0)
  %part.1 = f32[1,8]{{1,0}} dynamic-slice(%p, %i, %zero), dynamic_slice_sizes={{1,8}}{named("jit(get)/part")}
  %add.1 = f32[1,8]{{1,0}} add(%k, %part.1){named("eval_jaxpr/add", frame=1)}
  %neg.1 = f32[1,8]{{1,0}} negate(%add.1){named("neg", frame=7)}
  %add.2 = f32[1,8]{{1,0}} add(%neg.1, %part.1){named("eval_jaxpr/add", frame=2)}
  %exp.1 = f32[1,8]{{1,0}} exponential(%add.2){named("eval_jaxpr/exp", frame=4)}
  %add.3 = f32[1,8]{{1,0}} add(%exp.1, %part.1){named("eval_jaxpr/add", frame=3)}
  ROOT %r = (f32[1,8]{{1,0}}, f32[1,8]{{1,0}}, f32[1,8]{{1,0}}) tuple(%add.1, %add.2, %add.3)"""
    assert users_of("part.1", body) == ["add.3", "add.1", "add.2"]


@pytest.mark.parametrize(
    ("line", "start", "users"),
    [
        (3, 0, ["slice.1", "slice.2", "exp.1", "neg.1"]),
        (2, 4, ["slice.1", "slice.2", "exp.1", "neg.1"]),
        (2, 0, ["slice.1", "exp.1", "slice.2", "neg.1"]),
    ],
    ids=["in another place", "of another part", "alike"],
)
def test_only_what_is_alike_in_the_same_place_is_of_two_calls(
    line: int, start: int, users: list[str]
) -> None:
    """Each call ends in a tuple of two values, which goes when the readers outside are given them."""
    callers = ("f", 7, 8, 20), ("f", 8, 8, 20)
    tables = places_in_source(("g", 2, 8, 20), ("g", line, 8, 20), *callers, called_from={1: 3, 2: 4})
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %v.1 = f32[8]{{0}} sine(%p){named("jit(g)/sin")}
  %w.1 = f32[8]{{0}} cosine(%p){named("jit(g)/cos")}
  %slice.1 = f32[4]{{0}} slice(%v.1), slice={{[0:4]}}{named("jit(g)/slice", frame=1)}
  %slice.2 = f32[4]{{0}} slice(%v.1), slice={{[{start}:{start + 4}]}}{named("jit(g)/slice", frame=2)}
  %add.1 = f32[4]{{0}} add(%slice.1, %slice.2){named("jit(g)/add")}
  %neg.1 = f32[8]{{0}} negate(%v.1){named("neg")}
  %exp.1 = f32[8]{{0}} exponential(%v.1){named("exp")}
  %out.1 = f32[8]{{0}} negate(%w.1){named("neg")}
  ROOT %r = (f32[4], f32[8], f32[8], f32[8]) tuple(%add.1, %neg.1, %exp.1, %out.1)"""
    assert users_of("v.1", body, tables=tables) == users


def test_two_choices_by_different_predicates_are_of_one_call() -> None:
    """softplus(x) and what its derivative needs; the last of the call takes the place that it had."""
    call = "jvp(jit(softplus))"
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %x.1 = f32[8]{{0}} sine(%p){named("jvp()/sin")}
  %eq.1 = pred[8]{{0}} compare(%x.1, %q), direction=EQ{named(f"{call}/eq")}
  %choice.2 = f32[8]{{0}} select(%eq.1, %p, %x.1){named(f"{call}/choice")}
  %ne.1 = pred[8]{{0}} compare(%x.1, %x.1), direction=NE{named(f"{call}/ne")}
  %max.1 = f32[8]{{0}} maximum(%x.1, %p){named(f"{call}/max")}
  %choice.1 = f32[8]{{0}} select(%ne.1, %x.1, %max.1){named(f"{call}/choice")}
  %out.1 = f32[8]{{0}} negate(%choice.1){named("jvp()/neg")}
  %out.2 = f32[8]{{0}} multiply(%choice.2, %out.1){named("transpose(jvp())/mul")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%out.1, %out.2)"""
    ids = "p q x.1 out.1 out.2 r ne.1 max.1 choice.1 eq.1 choice.2"
    assert users_of("x.1", body, ids=ids) == ["choice.2", "ne.1", "max.1", "choice.1", "eq.1"]


@pytest.mark.parametrize(
    ("frame", "users"), [(1, ["a.1", "b.1"]), (2, ["b.1", "a.1"])], ids=["within", "another"]
)
def test_the_other_result_may_be_given_to_another_call_of_the_function(frame: int, users: list[str]) -> None:
    where = "transpose(jvp(jit(_where)))/select_n"
    body = f"""  %p = pred[8]{{0}} parameter(0)
  %q = pred[8]{{0}} parameter(1)
  %zero = f32[] constant(0)
  %zeros = f32[8]{{0}} broadcast(%zero), dimensions={{}}
  %v = f32[8]{{0}} parameter(2)
  %x = f32[8]{{0}} sine(%v){named("x")}
  %select_n.1 = f32[8]{{0}} select(%p, %x, %zeros){named(where, frame=1)}
  %select_n.2 = f32[8]{{0}} select(%p, %zeros, %x){named(where, frame=1)}
  %select_n.3 = f32[8]{{0}} select(%q, %select_n.2, %zeros){named(where, frame=frame)}
  %a.1 = f32[8]{{0}} negate(%select_n.1){named("a")}
  %b.1 = f32[8]{{0}} abs(%select_n.1){named("b")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(%a.1, %b.1, %select_n.3)"""
    assert users_of("select_n.1", body) == users


def test_a_reshape_that_was_broadcast_too_stood_in_front_of_who_read_none() -> None:
    """The broadcast was made anew behind all, and then the square took the place of the reshape."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %sqrt.1 = f32[8]{{0}} sqrt(%p){named("sqrt")}
  %div.1 = f32[4,8]{{1,0}} broadcast(%sqrt.1), dimensions={{1}}{named("div")}
  %div.2 = f32[8]{{0}} divide(%q, %sqrt.1){named("div")}
  %mul.1 = f32[8]{{0}} multiply(%sqrt.1, %sqrt.1){named("mul")}
  ROOT %r = (f32[4,8]{{1,0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(%div.1, %div.2, %mul.1)"""
    assert users_of("sqrt.1", body, ids="p q sqrt.1 div.2 r div.1 mul.1") == ["mul.1", "div.2", "div.1"]
    unspread = body.replace("broadcast(%sqrt.1)", "broadcast(%p)")
    assert users_of("sqrt.1", unspread, ids="p q sqrt.1 div.2 r div.1 mul.1") == ["div.2", "mul.1"]


@pytest.mark.parametrize("moved", [["neg.2"], []])
def test_an_argument_that_was_reshaped_back_has_the_last_of_the_function_in_front(moved: list[str]) -> None:
    """The sum was made anew behind the clones of the function, which read it when no reshape was left."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %add.1 = f32[8]{{0}} add(%p, %q){named("add")}
  %abs.1 = f32[8]{{0}} abs(%add.1){named("jit(softplus)/abs")}
  %max.1 = f32[8]{{0}} maximum(%add.1, %q){named("jit(softplus)/max")}
  %eq.1 = pred[8]{{0}} compare(%add.1, %q), direction=EQ{named("jit(softplus)/eq")}
  %neg.2 = f32[8]{{0}} negate({"%add.1" if moved else "%p"}){named("neg")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}, pred[8]{{0}}, f32[8]{{0}}) tuple(%abs.1, %max.1, %eq.1, %neg.2)"""
    anew = "p q r abs.1 max.1 eq.1 add.1 neg.2"
    assert users_of("add.1", body, ids=anew) == [*moved, "max.1", "eq.1", "abs.1"]
    program = "p q add.1 neg.2 r abs.1 max.1 eq.1"
    in_place_of_call = ["eq.1", *moved, "abs.1", "max.1"]
    assert users_of("add.1", body, ids=program) == in_place_of_call


def test_a_call_that_is_given_the_result_of_the_like_of_it_is_another_call() -> None:
    """Each had one result, and so no tuple that the last user might have taken the place of."""
    body = f"""  %p = pred[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %select_n.1 = f32[8]{{0}} select(%p, %q, %q){named("jit(_where)/select_n")}
  %exp.1 = f32[8]{{0}} exponential(%select_n.1){named("exp")}
  %select_n.2 = f32[8]{{0}} select(%p, %exp.1, %select_n.1){named("jit(_where)/select_n")}
  %exp.2 = f32[8]{{0}} exponential(%select_n.2){named("exp")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%exp.2, %select_n.2)"""
    assert users_of("select_n.1", body) == ["exp.1", "select_n.2"]


def test_of_what_calls_compute_of_nothing_none_had_a_tuple_when_cse_made_it_one() -> None:
    body = f"""  %p = u32[8]{{0}} parameter(0)
  %iota.1 = u32[8]{{0}} iota(), iota_dimension=0{named("jit(bits)/iota")}
  %count.1 = u32[8]{{0}} negate(%iota.1){named("jit(bits)/count")}
  %add.1 = u32[8]{{0}} add(%count.1, %p){named("jit(bits)/add")}
  %stack.1 = u32[8]{{0}} not(%add.1){named("jit(bits)/stack")}
  %p.2 = u32[8]{{0}} xor(%stack.1, %p){named("xor")}
  %add.2 = u32[8]{{0}} add(%count.1, %p.2){named("jit(bits)/add")}
  %stack.2 = u32[8]{{0}} not(%add.2){named("jit(bits)/stack")}
  %p.3 = u32[8]{{0}} xor(%stack.2, %p){named("xor")}
  %add.3 = u32[8]{{0}} add(%p.3, %count.1){named("jit(more)/add")}
  %add.4 = u32[8]{{0}} add(%add.3, %count.1){named("jit(others)/add")}
  ROOT %r = (u32[8]{{0}}, u32[8]{{0}}, u32[8]{{0}}) tuple(%p.2, %add.3, %add.4)"""
    assert users_of("count.1", body) == ["add.1", "add.2", "add.3", "add.4"]


def test_what_a_result_is_a_bitcast_of_is_no_other_result() -> None:
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %square.1 = f32[8]{{0}} multiply(%p, %p){named("jit(norm)/square")}
  %sqrt.1 = f32[8]{{0}} sqrt(%square.1){named("jit(norm)/sqrt")}
  %bitcast.1 = f32[2,4]{{1,0}} bitcast(%sqrt.1){named("jit(norm)/sqrt")}
  %a.1 = f32[2,4]{{1,0}} sine(%bitcast.1){named("a")}
  %b.1 = f32[2,4]{{1,0}} cosine(%bitcast.1){named("b")}
  %c.1 = f32[8]{{0}} tanh(%sqrt.1){named("c")}
  ROOT %r = (f32[2,4]{{1,0}}, f32[2,4]{{1,0}}, f32[8]{{0}}) tuple(%a.1, %b.1, %c.1)"""
    assert users_of("bitcast.1", body) == ["a.1", "b.1"]


@pytest.mark.parametrize(
    ("choices", "users"),
    [
        ((6, 7, 4, 5), ["cos.1", "eq.7", "eq.6"]),
        ((4, 5, 6, 7), ["eq.6", "eq.7", "cos.1"]),
    ],
)
def test_of_four_comparisons_of_a_derivative_two_go(choices: tuple[int, ...], users: list[str]) -> None:
    """Which, is told by what the first choice reads: the first or the second half may be the one kept."""
    eq, select = named("jvp(jit(clip))/eq"), named("jvp(jit(clip))/select_n")
    first, second, third, fourth = (f"select_n.{number}.0" for number in choices)
    body = f"""  %x = f32[8]{{0}} parameter(0)
  %y = f32[8]{{0}} parameter(1)
  %max.0 = f32[8]{{0}} maximum(%x, %x){named("jvp(jit(clip))/max")}
  %min.0 = f32[8]{{0}} minimum(%y, %max.0){named("jvp(jit(clip))/min")}
  %eq.6 = pred[8]{{0}} compare(%max.0, %min.0), direction=EQ{eq}
  %{first} = f32[8]{{0}} select(%eq.6, %x, %y){select}
  %eq.7 = pred[8]{{0}} compare(%y, %min.0), direction=EQ{eq}
  %{second} = f32[8]{{0}} select(%eq.7, %y, %x){select}
  %{third} = f32[8]{{0}} select(%eq.7, %x, %y){select}
  %{fourth} = f32[8]{{0}} select(%eq.6, %y, %x){select}
  %div.1 = f32[8]{{0}} divide(%{first}, %{second}){named("jvp(jit(clip))/div")}
  %div.2 = f32[8]{{0}} divide(%{third}, %{fourth}){named("jvp(jit(clip))/div")}
  %cos.1 = f32[8]{{0}} cosine(%min.0){named("jvp()/cos")}
  %mul.1 = f32[8]{{0}} multiply(%cos.1, %div.1){named("mul")}
  %mul.2 = f32[8]{{0}} multiply(%cos.1, %div.2){named("mul")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%mul.1, %mul.2)"""
    assert users_of("min.0", body) == users


@pytest.mark.parametrize(
    ("kind", "function", "users"),
    [
        ("f32", "transpose(jvp(jit(diff)))", ["pad.1", "split.2", "split.1"]),
        ("f32", "jvp(jit(diff))", ["pad.1", "split.1", "split.2"]),
        ("s32", "transpose(jvp(jit(diff)))", ["pad.1", "split.1", "split.2"]),
    ],
)
def test_what_a_derivative_reads_itself_is_none_of_its_results(
    kind: str, function: str, users: list[str]
) -> None:
    """Another negation was given to a call, in whose place the last clone was when CSE made them one.

    In front of a result's users the tuple of the function goes as well.
    """
    body = f"""  %p = {kind}[8]{{0}} parameter(0)
  %zero = {kind}[] constant(0)
  %neg.1 = {kind}[8]{{0}} negate(%p){named(f"{function}/neg", frame=3)}
  %pad.1 = {kind}[9]{{0}} pad(%neg.1, %zero), padding=1_0{named(f"{function}/pad", frame=3)}
  %split.1 = {kind}[1]{{0}} slice(%neg.1), slice={{[7:8]}}{named("transpose(jvp(jit(roll)))/split", frame=5)}
  %split.2 = {kind}[7]{{0}} slice(%neg.1), slice={{[0:7]}}{named("transpose(jvp(jit(roll)))/split", frame=5)}
  %abs.1 = {kind}[9]{{0}} abs(%pad.1){named("abs")}
  ROOT %r = ({kind}[9]{{0}}, {kind}[1]{{0}}, {kind}[7]{{0}}) tuple(%abs.1, %split.1, %split.2)"""
    assert users_of("neg.1", body) == users


@pytest.mark.parametrize(
    ("call", "users"),
    [
        ("transpose(jvp(jit(roll)))/split", ["pad.1", "abs.2", "add_any.1", "abs.1", "neg.1"]),
        ("transpose(jvp())/abs", ["pad.1", "add_any.1", "abs.1", "neg.1", "abs.2"]),
    ],
)
def test_a_negation_that_was_given_to_another_call_has_left_the_last_in_its_place(
    call: str, users: list[str]
) -> None:
    """CSE kept that of the first call, in which it is read as well, so that it was none of the results."""
    diff, roll = "transpose(jvp(jit(diff)))", "transpose(jvp(jit(roll)))"
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %zero = f32[] constant(0)
  %x.1 = f32[8]{{0}} multiply(%p, %p){named("transpose(jvp())/mul")}
  %neg.1 = f32[8]{{0}} negate(%x.1){named(f"{diff}/neg", frame=3)}
  %pad.1 = f32[9]{{0}} pad(%x.1, %zero), padding=1_0{named(f"{diff}/pad", frame=3)}
  %pad.2 = f32[9]{{0}} pad(%neg.1, %zero), padding=0_1{named(f"{diff}/pad", frame=3)}
  %split.1 = f32[8]{{0}} sine(%neg.1){named(call, frame=5)}
  %add_any.1 = f32[8]{{0}} add(%split.1, %x.1){named("transpose(jvp())/add_any", frame=7)}
  %abs.2 = f32[8]{{0}} abs(%x.1){named(f"{roll}/abs", frame=9)}
  %abs.1 = f32[8]{{0}} tanh(%x.1){named(f"{roll}/tanh", frame=9)}
  %pads.1 = f32[9]{{0}} add(%pad.1, %pad.2){named(f"{diff}/add_any", frame=3)}
  ROOT %r = (f32[9]{{0}}, f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(%pads.1, %add_any.1, %abs.1, %abs.2)"""
    ids = "p zero x.1 add_any.1 r pads.1 neg.1 pad.1 pad.2 split.1 abs.2 abs.1"
    assert users_of("x.1", body, ids=ids) == users


@pytest.mark.parametrize(
    ("operation", "users"), [("sub", ["sub.1", "neg.1"]), ("broadcast_in_dim", ["neg.1", "sub.1"])]
)
def test_a_broadcast_that_took_in_a_reshape_is_where_that_had_been(operation: str, users: list[str]) -> None:
    """WhileLoopSimplifier has cloned the body of the loop since, and ids say no more when it was made."""
    call = "while/body/eval_jaxpr"
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8,4]{{1,0}} parameter(1)
  %abs.1 = f32[8]{{0}} abs(%p){named(f"{call}/abs")}
  %sub.1 = f32[8,4]{{1,0}} broadcast(%abs.1), dimensions={{0}}{named(f"{call}/{operation}")}
  %sub.2 = f32[8,4]{{1,0}} subtract(%q, %sub.1){named(f"{call}/sub")}
  %neg.1 = f32[8]{{0}} negate(%abs.1){named(f"{call}/neg")}
  ROOT %r = (f32[8,4]{{1,0}}, f32[8]{{0}}) tuple(%sub.2, %neg.1)"""
    if operation != "sub":
        body, users = body.replace("%sub.1", f"%{operation}.1"), [u.replace("sub", operation) for u in users]
    ids = f"p q r abs.1 neg.1 {operation}.1 sub.2"
    assert users_of("abs.1", body, ids=ids) == users


@pytest.mark.parametrize(
    ("ids", "users"),
    [("multiply.1 ge.2", ["lt.1", "ge.1", "ge.2"]), ("ge.2 multiply.1", ["lt.1", "ge.2", "ge.1"])],
    ids=["moved", "of the call"],
)
def test_what_was_moved_in_a_call_came_behind_what_the_program_compares_with_zeros_too(
    ids: str, users: list[str]
) -> None:
    body = f"""  %p = s32[8]{{0}} parameter(0)
  %zero = s32[] constant(0)
  %broadcast.1 = s32[8]{{0}} broadcast(%zero), dimensions={{}}{named("jit(_take)", frame=1)}
  %lt.1 = pred[8]{{0}} compare(%p, %broadcast.1), direction=LT{named("jit(_take)/lt", frame=1)}
  %ge.2 = pred[8]{{0}} compare(%p, %broadcast.1), direction=GE{named("jit(_take)/ge", frame=1)}
  %ge.1 = pred[8]{{0}} compare(%broadcast.1, %p), direction=GE{named("ge")}
  %multiply.1 = s32[8]{{0}} multiply(%p, %p){named("div")}
  ROOT %r = (pred[8]{{0}}, pred[8]{{0}}, pred[8]{{0}}, s32[8]{{0}}) tuple(%lt.1, %ge.2, %ge.1, %multiply.1)"""
    assert users_of("broadcast.1", body, ids=f"p zero ge.1 r broadcast.1 lt.1 {ids}") == users


@pytest.mark.parametrize(
    ("made", "users"), [("sort", ["made.1", "neg.1"]), ("exponential", ["neg.1", "made.1"])]
)
def test_in_a_call_the_age_of_a_sort_made_anew_tells_nothing(made: str, users: list[str]) -> None:
    """It took the place of the one that was cloned; what else is young was cloned later."""
    how = ", dimensions={0}, to_apply=%sum" if made == "sort" else ""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %sub.1 = f32[8]{{0}} subtract(%p, %p){named("jit(g)/sub")}
  %made.1 = f32[8]{{0}} {made}(%sub.1){how}{named("jit(g)/made")}
  %neg.1 = f32[8]{{0}} negate(%sub.1){named("jit(g)/neg")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%made.1, %neg.1)"""
    assert users_of("sub.1", body, ids="p r sub.1 neg.1 made.1") == users


def test_each_of_equal_calls_had_a_tuple_of_its_own() -> None:
    """leaky_relu(x) in two losses: what the second chose went when its predicate had gone."""
    call = "jvp(jit(leaky_relu))"
    back = f"transpose({call})/select_n"
    line = ("leaky_relu", 2, 8, 20)
    callers = ("f", 4, 8, 20), ("f", 5, 8, 20)
    tables = places_in_source(line, line, *callers, called_from={1: 3, 2: 4})
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %g = f32[8]{{0}} parameter(2)
  %h = f32[8]{{0}} parameter(3)
  %ge.1 = pred[8]{{0}} compare(%p, %q), direction=GE{named(f"{call}/ge", frame=1)}
  %select_n.1 = f32[8]{{0}} select(%ge.1, %p, %q){named(f"{call}/select_n", frame=1)}
  %select_n.2 = f32[8]{{0}} select(%ge.1, %g, %q){named(back, frame=1)}
  %select_n.3 = f32[8]{{0}} select(%ge.1, %q, %g){named(back, frame=1)}
  %select_n.4 = f32[8]{{0}} select(%ge.1, %h, %q){named(back, frame=2)}
  %select_n.5 = f32[8]{{0}} select(%ge.1, %q, %h){named(back, frame=2)}
  %neg.1 = f32[8]{{0}} negate(%select_n.1){named("jvp()/neg")}
  %own = (f32[8], f32[8]) tuple(%select_n.2, %select_n.3)
  ROOT %r = (f32[8], (f32[8], f32[8]), f32[8], f32[8]) tuple(%neg.1, %own, %select_n.4, %select_n.5)"""
    assert users_of("ge.1", body, tables=tables) == [f"select_n.{k}" for k in (1, 2, 3, 5, 4)]


@pytest.mark.parametrize(
    ("name", "users"),
    [
        ("transpose(jvp(jit(softplus)))/mul", ["mul.1", "mul.2"]),
        ("transpose(jvp())/mul", ["mul.2", "mul.1"]),
    ],
)
def test_what_derives_a_function_in_another_place_had_a_result_of_its_own(
    name: str, users: list[str]
) -> None:
    """Two losses call softplus with the same; what else reads a result reads that of the one call."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %g = f32[8]{{0}} parameter(1)
  %h = f32[8]{{0}} parameter(2)
  %max.1 = f32[8]{{0}} maximum(%p, %g){named("jvp(jit(softplus))/max", frame=1)}
  %exp.1 = f32[8]{{0}} exponential(%max.1){named("jvp(jit(softplus))/exp", frame=1)}
  %mul.1 = f32[8]{{0}} multiply(%g, %exp.1){named("transpose(jvp(jit(softplus)))/mul", frame=1)}
  %mul.2 = f32[8]{{0}} multiply(%h, %exp.1){named(name, frame=2)}
  %neg.1 = f32[8]{{0}} negate(%max.1){named("jvp()/neg", frame=1)}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(%neg.1, %mul.1, %mul.2)"""
    tables = places_in_source(("f", 2, 10, 36), ("g", 7, 10, 36))
    assert users_of("exp.1", body, tables=tables) == users


@pytest.mark.parametrize(
    ("read", "users"),
    [
        ("f32[16]{0} reduce(%convert.3, %zero), dimensions={0}, to_apply=%sum", ["convert.2", "bitcast.1"]),
        ('f32[16]{0} custom-call(%convert.3, %zero), custom_call_target="f"', ["bitcast.1", "convert.2"]),
    ],
)
def test_a_narrow_result_is_grouped_for_a_sum_where_that_was(read: str, users: list[str]) -> None:
    """The bitcast bears the name of the result, but no call brought it in; what is widened stood in front."""
    body = f"""  %p = bf16[4,8,16]{{2,1,0}} parameter(0)
  %zero = f32[] constant(0)
  %abs.1 = bf16[4,8,16]{{2,1,0}} abs(%p){named("jit(take)/abs")}
  %convert.2 = f32[4,8,16]{{2,1,0}} convert(%abs.1)
  %mul.2 = f32[4,8,16]{{2,1,0}} multiply(%convert.2, %convert.2){named("mul", frame=1)}
  %bitcast.1 = bf16[32,16]{{1,0}} bitcast(%abs.1){named("jit(take)/abs")}
  %convert.3 = f32[32,16]{{1,0}} convert(%bitcast.1)
  %read = {read}{named("read", frame=2)}
  ROOT %r = (f32[4,8,16]{{2,1,0}}, f32[16]{{0}}) tuple(%mul.2, %read)"""
    assert users_of("abs.1", body, ids="p zero abs.1 mul.2 bitcast.1 read convert.2 convert.3 r") == users


@pytest.mark.parametrize(
    ("operations", "users"),
    [
        (("b/jit(_where)/select_n", "c/jit(_where)/select_n"), ["select_n.1", "select_n.2", "select_n.3"]),
        (("b/select_n", "c/select_n"), ["select_n.1", "select_n.3", "select_n.2"]),
    ],
    ids=["of calls", "outside"],
)
def test_what_calls_of_a_function_make_alike_is_none_of_its_results(
    operations: tuple[str, str], users: list[str]
) -> None:
    """CSE made one of the broadcasts of all calls; of a result the last reader stands where the tuple was."""
    second, third = operations
    body = f"""  %p = pred[] parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %broadcast_in_dim.1 = pred[8]{{0}} broadcast(%p), dimensions={{}}{named("a/jit(_where)/broadcast_in_dim")}
  %neg.1 = f32[8]{{0}} negate(%q){named("neg")}
  %cos.1 = f32[8]{{0}} cosine(%q){named("cos")}
  %select_n.1 = f32[8]{{0}} select(%broadcast_in_dim.1, %q, %neg.1){named("a/jit(_where)/select_n")}
  %select_n.2 = f32[8]{{0}} select(%broadcast_in_dim.1, %neg.1, %cos.1){named(second)}
  %select_n.3 = f32[8]{{0}} select(%broadcast_in_dim.1, %cos.1, %q){named(third)}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(%select_n.1, %select_n.2, %select_n.3)"""
    assert users_of("broadcast_in_dim.1", body) == users


@pytest.mark.parametrize(
    ("reader", "users"),
    [("jit(g)/jit(h)/", ["cos.1", "tan.1", "sub.1"]), ("jit(g)/", ["cos.1", "sub.1", "tan.1"])],
    ids=["one result", "two results"],
)
def test_a_call_within_a_call_that_had_two_results_left_a_place_too(reader: str, users: list[str]) -> None:
    """What called it read both: its tuple stood behind what reads the value in the call itself."""
    body = f"""  %p = f32[4]{{0}} parameter(0)
  %sin.1 = f32[4]{{0}} sine(%p){named("jit(g)/jit(h)/sin")}
  %cos.1 = f32[4]{{0}} cosine(%sin.1){named("jit(g)/jit(h)/cos")}
  %exp.1 = f32[4]{{0}} exponential(%cos.1){named(f"{reader}exp")}
  %tan.1 = f32[4]{{0}} tan(%sin.1){named("jit(g)/tan")}
  %sub.1 = f32[4]{{0}} subtract(%sin.1, %p){named("jit(g)/sub")}
  %add.1 = f32[4]{{0}} add(%tan.1, %sub.1){named("jit(g)/add")}
  ROOT %r = (f32[4]{{0}}, f32[4]{{0}}) tuple(%exp.1, %add.1)"""
    assert users_of("sin.1", body) == users


@pytest.mark.parametrize("ids_known", [True, False])
def test_calls_were_inlined_in_the_order_of_ids_even_if_those_are_a_guess(ids_known: bool) -> None:
    """What a scan goes over: a text has each slice where it is needed first."""
    cut = "f32[1,4]{1,0} dynamic-slice(%p, %sub.1, %zero), dynamic_slice_sizes={1,4}"
    body = f"""
  %i.1 = s32[] parameter(0)
  %p = f32[8,4]{{1,0}} parameter(1)
  %zero = s32[] constant(0)
  %sub.1 = s32[] subtract(%i.1, %zero){named("sub")}
  %dynamic_slice.2 = {cut}{named("jit(dynamic_index_in_dim)/dynamic_slice", frame=1)}
  %dynamic_slice.1 = {cut}{named("jit(other)/dynamic_slice", frame=2)}
  ROOT %add.1 = f32[1,4]{{1,0}} add(%dynamic_slice.2, %dynamic_slice.1){named("add")}"""
    ids = "i.1 p zero sub.1 add.1 dynamic_slice.1 dynamic_slice.2"
    users = users_of("sub.1", body, ids=ids, ids_known=ids_known)
    assert users == ["dynamic_slice.1", "dynamic_slice.2"]


def test_guessed_ids_tell_the_order_of_clones_that_are_together() -> None:
    """CallInliner clones in the order of what was called; where others are between a pass is taken for it."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %max.1 = f32[8]{{0}} maximum(%p, %q){named("jit(update)/max")}
  %eq.1 = pred[8]{{0}} compare(%max.1, %p), direction=EQ{named("jit(update)/eq")}
  %sub.1 = f32[8]{{0}} subtract(%max.1, %q){named("jit(update)/sub")}
  %sin.1 = f32[8]{{0}} sine(%q){named("jit(other)/sin")}
  ROOT %r = (pred[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(%eq.1, %sub.1, %sin.1)"""
    together = "p q r sin.1 max.1 sub.1 eq.1"
    assert users_of("max.1", body, ids=together, ids_known=False) == ["sub.1", "eq.1"]
    torn = "p q r max.1 sub.1 sin.1 eq.1"
    assert users_of("max.1", body, ids=torn, ids_known=False) == ["eq.1", "sub.1"]
    assert users_of("max.1", body, ids=torn) == ["sub.1", "eq.1"]


def test_what_reads_more_than_a_result_of_the_same_function_is_of_a_later_call() -> None:
    """The second choice is given a product of the first: the call it came with stood behind that product."""
    body = f"""  %p = pred[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %c.1 = f32[8]{{0}} abs(%q){named("abs")}
  %select_n.1 = f32[8]{{0}} select(%p, %c.1, %q){named("jit(where)/select_n")}
  %mul.1 = f32[8]{{0}} multiply(%select_n.1, %c.1){named("mul")}
  %select_n.2 = f32[8]{{0}} select(%p, %mul.1, %select_n.1){named("jit(where)/select_n")}
  ROOT %select_n.3 = f32[8]{{0}} select(%p, %c.1, %select_n.2){named("jit(where)/select_n")}"""
    assert users_of("select_n.1", body, ids_known=False) == ["mul.1", "select_n.2"]
    ids = "p q c.1 mul.1 select_n.1 select_n.2 select_n.3"
    assert users_of("select_n.1", body, ids=ids) == ["mul.1", "select_n.2"]
    alone = body.replace("select(%p, %mul.1, %select_n.1)", "select(%p, %q, %select_n.1)")
    alone = alone.replace("select(%p, %c.1, %select_n.2)", "select(%p, %mul.1, %select_n.2)")
    assert users_of("select_n.1", alone, ids=ids) == ["select_n.2", "mul.1"]


def test_a_branch_that_was_inlined_brought_in_its_calls_as_one() -> None:
    """ConditionalSimplifier clones it whole, operands first, when no call is left in it."""
    body = f"""  %p = s32[8]{{0}} parameter(0)
  %neg.1 = s32[8]{{0}} negate(%p){named("cond/branch_0_fun/neg")}
  %sign.1 = s32[8]{{0}} sign(%neg.1){named("cond/branch_0_fun/jit(g)/sign")}
  %rem.1 = s32[8]{{0}} remainder(%neg.1, %sign.1){named("cond/branch_0_fun/jit(g)/rem")}
  ROOT %add.1 = s32[8]{{0}} add(%rem.1, %neg.1){named("cond/branch_0_fun/add")}"""
    assert users_of("neg.1", body) == ["sign.1", "rem.1", "add.1"]
    assert users_of("neg.1", body.replace("/branch_0_fun", "")) == ["rem.1", "add.1", "sign.1"]


@pytest.mark.parametrize(
    ("first", "users"),
    [
        (f"add(%p, %c.1){named('sub')}", ["first", "gt.1", "gt.2"]),
        (f"select(%gt.2, %p, %c.1){named('dot_general')}", ["first", "gt.1", "gt.2"]),
        (f"multiply(%p, %c.1){named('mul')}", ["first", "gt.2", "gt.1"]),
    ],
    ids=["a difference", "a product with a predicate", "what was moved"],
)
def test_a_number_that_the_first_simplification_made_is_of_no_round(first: str, users: list[str]) -> None:
    """It made it for what it made next; CSE merged it with those of the program in the order of its walk."""
    text = f"""HloModule m

ENTRY %main {{
  %p = f32[8]{{0}} parameter(0)
  %c = f32[] constant(-1)
  %c.1 = f32[8]{{0}} broadcast(%c), dimensions={{}}
  %gt.1 = pred[8]{{0}} compare(%p, %c.1), direction=GT{named("gt")}
  %gt.2 = pred[8]{{0}} compare(%c.1, %p), direction=GT{named("gt")}
  %first = f32[8]{{0}} {first}
  ROOT %r = (pred[8]{{0}}, pred[8]{{0}}, f32[8]{{0}}) tuple(%gt.1, %gt.2, %first)
}}
"""
    entry = parse_module(text).entry
    by_name = {x.name: x for x in entry}
    entry.reorder([by_name[name] for name in ("p", "c", "gt.1", "c.1", "first", "gt.2", "r")])
    walked = [by_name[name] for name in ("first", "gt.1", "gt.2")]
    listed = with_those_of_its_round_in_front(by_name["c.1"], walked, by_name["gt.1"].id)
    assert [u.name for u in listed] == users
