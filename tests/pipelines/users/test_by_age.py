"""What passes and calls leave of the order of users, each case as XLA's records show it."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module

from ...running import find
from .lists import HEAD, named, users_in, users_of

# ---------------------------------------------------------------- calls


def test_what_reads_a_loops_index_comes_as_it_was_inlined() -> None:
    """A number without broadcasts: nothing was merged."""
    body = f"""  %p = f32[8,4]{{1,0}} parameter(0)
  %q = f32[8,4]{{1,0}} parameter(1)
  %k = s32[] parameter(2)
  %zero = s32[] constant(0)
  %i.1 = s32[] negate(%k){named("neg")}
  %late.1 = f32[1,4]{{1,0}} dynamic-slice(%p, %i.1, %zero), dynamic_slice_sizes={{1,4}}{named("jit(g)/late")}
  %early.1 = f32[1,4]{{1,0}} dynamic-slice(%q, %i.1, %zero), dynamic_slice_sizes={{1,4}}{named("jit(h)/e")}
  ROOT %r = (f32[1,4]{{1,0}}, f32[1,4]{{1,0}}) tuple(%late.1, %early.1)"""
    assert users_of("i.1", body, ids="p q k zero i.1 r early.1 late.1") == ["early.1", "late.1"]


_BODY_OF_LOOP = "jvp()/while/body/eval_jaxpr"


def test_the_body_of_a_loop_is_a_function() -> None:
    """Who takes its results out comes last, in the place of the tuple."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %t.1 = f32[8]{{0}} tanh(%p){named(f"{_BODY_OF_LOOP}/t")}
  %m.1 = f32[8]{{0}} negate(%t.1){named(f"{_BODY_OF_LOOP}/m")}
  %bitcast.1 = f32[1,8]{{1,0}} bitcast(%t.1){named(f"{_BODY_OF_LOOP}/t")}
  %taken.1 = f32[1,8]{{1,0}} abs(%bitcast.1){named("jvp()/while/body/taken")}
  %s.1 = f32[8]{{0}} sine(%t.1){named(f"{_BODY_OF_LOOP}/s")}
  %o.1 = f32[8]{{0}} abs(%m.1){named("jvp()/while/body/o")}
  ROOT %r = (f32[8]{{0}}, f32[1,8]{{1,0}}, f32[8]{{0}}) tuple(%o.1, %taken.1, %s.1)"""
    ids = "p taken.1 o.1 r t.1 m.1 s.1 bitcast.1"
    assert users_of("t.1", body, ids=ids) == ["m.1", "s.1", "bitcast.1"]


def test_a_bitcast_for_what_has_no_name_is_of_the_function_it_names() -> None:
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %t.1 = f32[8]{{0}} tanh(%p){named(f"{_BODY_OF_LOOP}/t")}
  %bitcast.1 = f32[1,8]{{1,0}} bitcast(%t.1){named(f"{_BODY_OF_LOOP}/t")}
  %copy.1 = f32[1,8]{{1,0}} copy(%bitcast.1)
  %s.1 = f32[8]{{0}} sine(%t.1){named(f"{_BODY_OF_LOOP}/s")}
  ROOT %r = (f32[1,8]{{1,0}}, f32[8]{{0}}) tuple(%copy.1, %s.1)"""
    assert users_of("t.1", body, ids="p r t.1 s.1 bitcast.1 copy.1") == ["bitcast.1", "s.1"]


@pytest.mark.parametrize(
    ("other", "users"), [("t.1", ["concatenate.1", "s.1"]), ("q", ["s.1", "concatenate.1"])]
)
def test_what_merged_products_read_in_the_body_of_a_loop_stands_for_them(
    other: str, users: list[str]
) -> None:
    """DotMerger puts it where the products were; what else is read outside has no place there."""
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %q = f32[8,8]{{1,0}} parameter(1)
  %t.1 = f32[8,8]{{1,0}} tanh(%p){named(f"{_BODY_OF_LOOP}/t")}
  %concatenate.1 = f32[8,16]{{1,0}} concatenate(%t.1, %{other}), dimensions={{1}}
  %product.1 = f32[8,16]{{1,0}} custom-call(%q, %concatenate.1), custom_call_target="x"\
{named(f"{_BODY_OF_LOOP}/dot_general")}
  %s.1 = f32[8,8]{{1,0}} sine(%t.1){named(f"{_BODY_OF_LOOP}/s")}
  ROOT %r = (f32[8,16]{{1,0}}, f32[8,8]{{1,0}}) tuple(%product.1, %s.1)"""
    assert users_of("t.1", body, ids="p q r t.1 s.1 concatenate.1 product.1") == users


def test_of_nested_calls_the_outermost_tells() -> None:
    """The outer function was cloned as a whole, operands first."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %x.1 = f32[8]{{0}} expm1(%p)
  %e.1 = f32[8]{{0}} exponential(%p){named("jit(elu)/e")}
  %choice.1 = f32[8]{{0}} sine(%e.1){named("jit(elu)/jit(_where)/choice")}
  %sum.1 = f32[8]{{0}} negate(%e.1){named("jit(elu)/sum")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%choice.1, %sum.1)""".replace(
        "  %x.1 = f32[8]{0} expm1(%p)\n", ""
    )
    assert users_of("e.1", body, ids="p r e.1 choice.1 sum.1") == ["choice.1", "sum.1"]


@pytest.mark.parametrize(("entry", "users"), [("jit(main)/", ["t.1", "s.1"]), ("jit(g)/", ["s.1", "t.1"])])
def test_the_entry_is_no_call(entry: str, users: list[str]) -> None:
    """Older releases of JAX name it behind the program, as a function that is called."""
    body = f"""  %p = f32[8]{{0}} parameter(0){named("x")}
  %t.1 = f32[8]{{0}} tanh(%p){named(f"{entry}tanh")}
  %s.1 = f32[8]{{0}} sine(%p){named(f"{entry}sin")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%t.1, %s.1)"""
    assert users_of("p", body, ids="p t.1 s.1 r") == users


def test_two_results_of_one_call_read_the_same_values() -> None:
    """The transpose of a choice: one call, of which the last result took the place."""
    body = f"""  %p = pred[8]{{0}} parameter(0)
  %g = f32[8]{{0}} parameter(1)
  %x.1 = f32[8]{{0}} exponential(%g){named("x")}
  %z.1 = f32[8]{{0}} cosine(%g){named("z")}
  %s.1 = f32[8]{{0}} select(%p, %x.1, %z.1){named("transpose(jvp(jit(_where)))/select_n")}
  %s.2 = f32[8]{{0}} select(%p, %z.1, %x.1){named("transpose(jvp(jit(_where)))/select_n")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%s.1, %s.2)"""
    assert users_of("x.1", body, ids="p g x.1 z.1 r s.1 s.2") == ["s.2", "s.1"]


@pytest.mark.parametrize(("call", "users"), [("jit(_where)/", ["b.1", "a.1"]), ("", ["a.1", "b.1"])])
def test_a_call_in_a_call_had_a_tuple_of_its_results_too(call: str, users: list[str]) -> None:
    """The last user of a result took its place before the call around it was inlined."""
    around = "while/body/eval_jaxpr"
    body = f"""  %p = pred[8]{{0}} parameter(0)
  %x.1 = f32[8]{{0}} parameter(1)
  %z.1 = f32[8]{{0}} parameter(2)
  %s.1 = f32[8]{{0}} select(%p, %x.1, %z.1){named(f"{around}/{call}select_n")}
  %s.2 = f32[8]{{0}} select(%p, %z.1, %x.1){named(f"{around}/{call}select_n")}
  %a.1 = f32[8]{{0}} add(%s.1, %x.1){named(f"{around}/a")}
  %b.1 = f32[8]{{0}} subtract(%s.1, %s.2){named(f"{around}/b")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%a.1, %b.1)"""
    assert users_of("s.1", body) == users


# ---------------------------------------------------------------- constants


def test_constants_of_functions_are_merged_call_by_call() -> None:
    """The program's own users of the constant come together, where the first of them is met."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %one = f32[] constant(1)
  %max.4 = f32[8]{{0}} broadcast(%one), dimensions={{}}{named("jit(relu)/max")}
  %max.5 = f32[8]{{0}} maximum(%p, %max.4){named("jit(relu)/max", frame=1)}
  %own.1 = f32[8]{{0}} subtract(%max.5, %max.4){named("own")}
  %max.7 = f32[8]{{0}} maximum(%own.1, %max.4){named("jit(relu)/max", frame=2)}
  %own.2 = f32[8]{{0}} divide(%max.7, %max.4){named("own")}
  ROOT %r = (f32[8]{{0}}) tuple(%own.2)"""
    ids = "p own.1 own.2 r one max.4 max.5 max.7"
    assert users_of("max.4", body, ids=ids) == ["max.5", "own.1", "own.2", "max.7"]


_GEMM = """%gemm (p0: f32[8,8], p1: f32[8,8]) -> f32[8,8] {
  %p0 = f32[8,8]{1,0} parameter(0)
  %p1 = f32[8,8]{1,0} parameter(1)
  %c = f32[] constant(0)
  %none = f32[8,8]{1,0} broadcast(%c), dimensions={}
  %max.9 = f32[8,8]{1,0} maximum(%p0, %none), metadata={op_name="jit(f)/max"}
  ROOT %dot = f32[8,8]{1,0} dot(%max.9, %p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


def test_the_last_user_takes_the_place_of_one_that_a_gemm_took_along() -> None:
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %q = f32[8,8]{{1,0}} parameter(1)
  %zero = f32[] constant(0)
  %zeros = f32[8,8]{{1,0}} broadcast(%zero), dimensions={{}}
  %a.1 = f32[8,8]{{1,0}} add(%p, %zeros){named("a")}
  %g = f32[8,8]{{1,0}} fusion(%p, %q), kind=kCustom, calls=%gemm
  %b.1 = f32[8,8]{{1,0}} subtract(%g, %zeros){named("b")}
  %c.1 = f32[8,8]{{1,0}} divide(%b.1, %zeros){named("c")}
  ROOT %r = (f32[8,8]{{1,0}}, f32[8,8]{{1,0}}) tuple(%a.1, %c.1)"""
    ids = "p q a.1 c.1 b.1 zero zeros r g"
    assert users_of("zeros", body, ids=ids, head=_GEMM) == ["a.1", "c.1", "b.1"]


def test_a_division_of_which_the_constants_were_multiplied_reads_another_now() -> None:
    """It keeps its name; of the reciprocal's users the last took its place."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %c = f32[] constant(0.9)
  %d = f32[] constant(0.3)
  %inverse = f32[8]{{0}} broadcast(%c), dimensions={{}}
  %other = f32[8]{{0}} broadcast(%d), dimensions={{}}
  %multiply.10.0 = f32[8]{{0}} multiply(%p, %inverse){named("div")}
  %multiply.1.0 = f32[8]{{0}} multiply(%p, %other){named("div")}
  %s.1 = f32[8]{{0}} sine(%p){named("s")}
  %multiply.2.0 = f32[8]{{0}} multiply(%s.1, %inverse){named("div")}
  %t.1 = f32[8]{{0}} cosine(%p){named("t")}
  %multiply.5.0 = f32[8]{{0}} multiply(%t.1, %inverse){named("div")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}})\
 tuple(%multiply.10.0, %multiply.1.0, %multiply.2.0, %multiply.5.0)"""
    ids = "p s.1 t.1 r c inverse multiply.10.0 multiply.2.0 multiply.5.0 d other multiply.1.0"
    assert users_of("inverse", body, ids=ids) == ["multiply.10.0", "multiply.5.0", "multiply.2.0"]


# ---------------------------------------------------------------- what is gone


def test_the_last_user_takes_the_place_of_the_first_reader_of_a_constant() -> None:
    body = f"""  %p = f32[2]{{0}} parameter(0)
  %c = f32[] constant(7)
  %x.1 = f32[2]{{0}} negate(%p){named("jit(split)/x")}
  %add.591.0 = f32[2]{{0}} broadcast(%c), dimensions={{}}{named("jit(split)/add")}
  %add.NEXT.0 = f32[2]{{0}} add(%x.1, %add.591.0){named("jit(split)/add")}
  %add.626.0 = f32[2]{{0}} multiply(%add.NEXT.0, %add.591.0){named("jit(split)/add")}
  ROOT %r = (f32[2]{{0}}) tuple(%add.626.0)"""
    ids = "p r c add.591.0 x.1 add.NEXT.0 add.626.0"
    there = body.replace("NEXT", "592"), ids.replace("NEXT", "592")
    assert users_of("add.591.0", there[0], ids=there[1]) == ["add.592.0", "add.626.0"]
    gone = body.replace("NEXT", "599"), ids.replace("NEXT", "599")
    assert users_of("add.591.0", gone[0], ids=gone[1]) == ["add.626.0", "add.599.0"]
    guessed = users_of("add.591.0", gone[0], ids=gone[1], ids_known=False)
    assert guessed == ["add.626.0", "add.599.0"]  # names and places tell it, not ids


def test_who_read_a_sum_with_zero_takes_its_place() -> None:
    """add.551 was the zero, add.552 the sum; the walk met it first."""
    body = f"""  %p = u32[2]{{0}} parameter(0)
  %q = u32[2]{{0}} parameter(1)
  %add.550.0 = u32[2]{{0}} add(%p, %q){named("jit(uniform)/add")}
  %xor.235.0 = u32[2]{{0}} xor(%add.550.0, %q){named("jit(uniform)/xor")}
  %add.553.0 = u32[2]{{0}} add(%xor.235.0, %p){named("jit(uniform)/add")}
  %add.554.0 = u32[2]{{0}} add(%add.550.0, %add.553.0){named("jit(uniform)/add")}
  ROOT %r = (u32[2]{{0}}) tuple(%add.554.0)"""
    assert users_of("add.550.0", body, ids="p q r add.550.0 xor.235.0 add.553.0 add.554.0") == [
        "add.554.0",
        "xor.235.0",
    ]


def test_the_last_user_takes_the_place_of_the_tuple_of_top_k() -> None:
    body = f"""  %p = f32[8,16]{{1,0}} parameter(0)
  %slice.2 = f32[8,2]{{1,0}} slice(%p), slice={{[0:8], [0:2]}}{named("top_k")}
  %a.1 = f32[8,2]{{1,0}} sine(%slice.2){named("a")}
  %b.1 = f32[8,2]{{1,0}} cosine(%slice.2){named("b")}
  ROOT %r = (f32[8,2]{{1,0}}, f32[8,2]{{1,0}}) tuple(%a.1, %b.1)"""
    assert users_of("slice.2", body, ids="p a.1 b.1 r slice.2") == ["b.1", "a.1"]


@pytest.mark.parametrize(
    ("read", "users"), [("%rank", ["a.1", "b.1"]), ("%place", ["b.1", "a.1"])], ids=["elements", "places too"]
)
def test_there_was_no_such_tuple_where_nothing_takes_the_places(read: str, users: list[str]) -> None:
    body = f"""  %p = f32[8,16]{{1,0}} parameter(0)
  %rank = s32[8,16]{{1,0}} parameter(1)
  %sort = (f32[8,16]{{1,0}}, s32[8,16]{{1,0}}) sort(%p, %rank), dimensions={{1}}, to_apply=%less
  %element = f32[8,16]{{1,0}} get-tuple-element(%sort), index=0
  %slice.2 = f32[8,2]{{1,0}} slice(%element), slice={{[0:8], [0:2]}}{named("top_k")}
  %place = s32[8,16]{{1,0}} get-tuple-element(%sort), index=1
  %slice.3 = s32[8,2]{{1,0}} slice({read}), slice={{[0:8], [0:2]}}{named("top_k")}
  %a.1 = f32[8,2]{{1,0}} sine(%slice.2){named("a")}
  %b.1 = f32[8,2]{{1,0}} cosine(%slice.2){named("b")}
  ROOT %r = (f32[8,2]{{1,0}}, f32[8,2]{{1,0}}, s32[8,2]{{1,0}}) tuple(%a.1, %b.1, %slice.3)"""
    head = """%less (v: f32[], w: f32[], i: s32[], j: s32[]) -> pred[] {
  %v = f32[] parameter(0)
  %w = f32[] parameter(1)
  %i = s32[] parameter(2)
  %j = s32[] parameter(3)
  ROOT %less.1 = pred[] compare(%v, %w), direction=LT
}"""
    assert users_of("slice.2", body, head=head) == users


@pytest.mark.parametrize(
    ("read", "users"),
    [("%element", ["b.1", "a.1"]), ("%slice.2", ["b.1", "slice.3.0", "a.1"])],
    ids=["made one", "as in the program"],
)
def test_a_slice_of_the_largest_reads_the_sort_since(read: str, users: list[str]) -> None:
    """The last user took the place of the tuple first, and that of the slice then."""
    body = f"""  %p = f32[8,16]{{1,0}} parameter(0)
  %element = f32[8,16]{{1,0}} exponential(%p){named("exp")}
  %slice.2 = f32[8,2]{{1,0}} slice(%element), slice={{[0:8], [0:2]}}{named("top_k")}
  %slice.3.0 = f32[2,2]{{1,0}} slice({read}), slice={{[0:2], [0:2]}}{named("slice")}
  %a.1 = f32[8,2]{{1,0}} sine(%slice.2){named("a")}
  %b.1 = f32[8,2]{{1,0}} cosine(%slice.2){named("b")}
  ROOT %r = (f32[2,2]{{1,0}}, f32[8,2]{{1,0}}, f32[8,2]{{1,0}}) tuple(%slice.3.0, %a.1, %b.1)"""
    assert users_of("slice.2", body) == users


@pytest.mark.parametrize(
    ("name", "users"),
    [("top_k", ["slice.2", "slice.4.0", "slice.3.0"]), ("slice", ["slice.3.0", "slice.2", "slice.4.0"])],
)
def test_slices_of_the_largest_are_behind_the_largest_as_they_were_made(name: str, users: list[str]) -> None:
    body = f"""  %p = f32[8,16]{{1,0}} parameter(0)
  %element = f32[8,16]{{1,0}} exponential(%p){named("exp")}
  %slice.3.0 = f32[2,2]{{1,0}} slice(%element), slice={{[0:2], [0:2]}}{named("slice")}
  %slice.2 = f32[8,2]{{1,0}} slice(%element), slice={{[0:8], [0:2]}}{named(name)}
  %slice.4.0 = f32[3,2]{{1,0}} slice(%element), slice={{[0:3], [0:2]}}{named("slice")}
  ROOT %r = (f32[2,2]{{1,0}}, f32[8,2]{{1,0}}, f32[3,2]{{1,0}}) tuple(%slice.3.0, %slice.2, %slice.4.0)"""
    assert users_of("element", body, ids="p element slice.2 r slice.4.0 slice.3.0") == users


@pytest.mark.parametrize(("shape", "users"), [("2,4,2", ["b.1", "a.1"]), ("8,2,1", ["a.1", "b.1"])])
def test_that_tuple_was_one_of_reshapes_where_there_are_more_dimensions(shape: str, users: list[str]) -> None:
    kind = f"f32[{shape}]{{2,1,0}}"
    body = f"""  %p = f32[8,16]{{1,0}} parameter(0)
  %slice.2 = f32[8,2]{{1,0}} slice(%p), slice={{[0:8], [0:2]}}{named("top_k")}
  %bitcast.2 = {kind} bitcast(%slice.2){named("top_k")}
  %a.1 = {kind} sine(%bitcast.2){named("a")}
  %b.1 = {kind} cosine(%bitcast.2){named("b")}
  ROOT %r = ({kind}, {kind}) tuple(%a.1, %b.1)"""
    assert users_of("bitcast.2", body) == users


def test_that_tuple_went_when_the_call_that_read_the_largest_had_been_inlined() -> None:
    body = f"""  %p = f32[8,16]{{1,0}} parameter(0)
  %slice.2 = f32[8,2]{{1,0}} slice(%p), slice={{[0:8], [0:2]}}{named("top_k")}
  %a.1 = f32[8,2]{{1,0}} sine(%slice.2){named("jit(g)/a", frame=1)}
  %b.1 = f32[8,2]{{1,0}} cosine(%slice.2){named("jit(g)/b", frame=1)}
  %c.1 = f32[8,2]{{1,0}} negate(%slice.2){named("c")}
  ROOT %r = (f32[8,2]{{1,0}}, f32[8,2]{{1,0}}, f32[8,2]{{1,0}}) tuple(%a.1, %b.1, %c.1)"""
    assert users_of("slice.2", body, ids="p c.1 r a.1 b.1 slice.2") == ["a.1", "b.1", "c.1"]


@pytest.mark.parametrize(("name", "users"), [("a", ["a.1", "b.1"]), ("back", ["b.1", "a.1"])])
def test_a_reshape_was_moved_behind_what_read_the_largest_when_that_tuple_had_gone(
    name: str, users: list[str]
) -> None:
    """What it was moved behind was made anew and took its place; a reshape by that name tells of it."""
    body = f"""  %p = f32[8,16]{{1,0}} parameter(0)
  %slice.2 = f32[8,2]{{1,0}} slice(%p), slice={{[0:8], [0:2]}}{named("top_k")}
  %a.1 = f32[8,2]{{1,0}} sine(%slice.2){named("a")}
  %back.1 = f32[16]{{0}} bitcast(%a.1){named(name)}
  %b.1 = f32[2,4,2]{{2,1,0}} bitcast(%slice.2){named("top_k")}
  ROOT %r = (f32[16]{{0}}, f32[2,4,2]{{2,1,0}}) tuple(%back.1, %b.1)"""
    assert users_of("slice.2", body) == users


# ---------------------------------------------------------------- made anew


@pytest.mark.parametrize("ids_known", [True, False])
def test_of_those_moved_in_front_of_one_reshape_the_last_takes_its_place(ids_known: bool) -> None:
    """In a called function as well: what is younger than what was moved outside was moved, too."""
    body = f"""  %p = f32[8,16]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %total.1 = f32[8]{{0}} reduce(%p, %zero), dimensions={{1}}, to_apply=%sum{named("jvp(jit(g))/total")}
  %log.2 = f32[8]{{0}} log(%total.1){named("jvp(jit(g))/log")}
  %div.1 = f32[8]{{0}} divide(%log.2, %total.1){named("transpose(jvp(jit(g)))/div")}
  %mul.3 = f32[8]{{0}} multiply(%div.1, %div.1){named("mul")}
  ROOT %r = (f32[8]{{0}}) tuple(%mul.3)"""
    ids = "p r zero total.1 mul.3 log.2 div.1"
    assert users_of("total.1", body, ids=ids, ids_known=ids_known) == ["div.1", "log.2"]


@pytest.mark.parametrize(
    ("choice", "users"), [("index.1", ["index.1", "end.1"]), ("p", ["end.1", "index.1"])]
)
def test_an_index_counted_from_the_end_was_not_moved(choice: str, users: list[str]) -> None:
    """It read the index, until the two numbers that were added became one."""
    body = f"""  %p = s32[1]{{0}} parameter(0)
  %scalar = s32[] bitcast(%p)
  %found = s32[1]{{0}} bitcast(%scalar){named("sum")}
  %one = s32[1]{{0}} constant({{-1}})
  %ten = s32[1]{{0}} constant({{10}})
  %zero = s32[1]{{0}} constant({{0}})
  %index.1 = s32[1]{{0}} add(%found, %one){named("sub")}
  %sign.1 = pred[1]{{0}} compare(%index.1, %zero), direction=LT{named("lt")}
  %end.1 = s32[1]{{0}} add(%found, %ten){named("sub")}
  %select.1 = s32[1]{{0}} select(%sign.1, %end.1, %{choice}){named("select_n")}
  %not.1 = s32[1]{{0}} not(%p){named("not")}
  ROOT %r = (s32[1]{{0}}, s32[1]{{0}}) tuple(%select.1, %not.1)"""
    ids = "p sign.1 select.1 r not.1 index.1 one zero end.1 ten scalar found"
    assert users_of("found", body, ids=ids) == users


@pytest.mark.parametrize(
    ("entry", "users"), [("jit(main)/", ["sine.1", "cosine.1"]), ("", ["cosine.1", "sine.1"])]
)
def test_older_releases_name_by_opcodes(entry: str, users: list[str]) -> None:
    """Both were moved in front of the reshape of the quotient, the sine last."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %divide.1 = f32[8]{{0}} divide(%p, %q){named(f"{entry}div")}
  %cosine.1 = f32[8]{{0}} cosine(%divide.1){named(f"{entry}cos")}
  %sine.1 = f32[8]{{0}} sine(%divide.1){named(f"{entry}sin")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%cosine.1, %sine.1)"""
    assert users_of("divide.1", body, ids="p q divide.1 r cosine.1 sine.1") == users


@pytest.mark.parametrize(
    ("made", "users"),
    [
        ("broadcast(%p), dimensions={0}", ["multiply.1", "multiply.2"]),
        ("concatenate(%p, %p), dimensions={0}", ["multiply.2", "multiply.1"]),
    ],
)
def test_what_was_spread_was_reshaped_for_each_that_was_moved(made: str, users: list[str]) -> None:
    """Of what was made otherwise there was one reshape."""
    size = 6 if made.startswith("broadcast") else 3
    body = f"""  %p = f32[{size}]{{0}} parameter(0)
  %q = f32[2,3]{{1,0}} parameter(1)
  %spread.1 = f32[6]{{0}} {made}{named("jit(main)/mul")}
  %bitcast.1 = f32[2,3]{{1,0}} bitcast(%spread.1){named("jit(main)/mul")}
  %multiply.1 = f32[2,3]{{1,0}} multiply(%q, %bitcast.1){named("jit(main)/mul")}
  %multiply.2 = f32[2,3]{{1,0}} multiply(%multiply.1, %bitcast.1){named("jit(main)/mul")}
  ROOT %r = (f32[2,3]{{1,0}}) tuple(%multiply.2)"""
    ids = "p q r multiply.1 multiply.2 spread.1 bitcast.1"
    assert users_of("bitcast.1", body, ids=ids) == users


def test_what_is_younger_than_the_product_that_a_dot_became_was_moved() -> None:
    """In a body that is a call as a whole there may be nothing else by which to tell what passes made."""
    dot = named("jit(g)/dot_general")
    body = f"""  %p = f32[8,3]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %slice.1 = f32[8,1]{{1,0}} slice(%p), slice={{[0:8], [0:1]}}{named("jit(g)/slice")}
  %mul.1 = f32[8,1]{{1,0}} multiply(%slice.1, %slice.1){named("jit(g)/mul")}
  %sub.1 = f32[8,1]{{1,0}} subtract(%slice.1, %slice.1){named("jit(g)/sub")}
  %multiply.1 = f32[8,3]{{1,0}} multiply(%p, %p){dot}
  %reduce.1 = f32[8]{{0}} reduce(%multiply.1, %zero), dimensions={{1}}, to_apply=%sum{dot}
  ROOT %r = (f32[8,1], f32[8,1], f32[8]) tuple(%mul.1, %sub.1, %reduce.1)"""
    ids = "p r zero slice.1 multiply.1 reduce.1 mul.1 sub.1"
    assert users_of("slice.1", body, ids=ids) == ["sub.1", "mul.1"]
    ids = "p r zero slice.1 mul.1 sub.1 multiply.1 reduce.1"
    assert users_of("slice.1", body, ids=ids) == ["mul.1", "sub.1"]


def test_each_reshape_of_its_own_is_replaced_in_its_place() -> None:
    """The framework reshapes what is element-wise for each place in the program that reads it."""
    body = f"""  %p = pred[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %mask.1 = pred[8]{{0}} not(%p){named("mask")}
  %choice.1 = f32[8]{{0}} select(%mask.1, %q, %q){named("choice", frame=1)}
  %choice.2 = f32[8]{{0}} select(%mask.1, %choice.1, %q){named("choice", frame=2)}
  ROOT %r = (f32[8]{{0}}) tuple(%choice.2)"""
    assert users_of("mask.1", body, ids="p q mask.1 r choice.1 choice.2") == ["choice.1", "choice.2"]
    together = body.replace("stack_frame_id=2", "stack_frame_id=1")
    assert users_of("mask.1", together, ids="p q mask.1 r choice.1 choice.2") == ["choice.2", "choice.1"]
    # A scalar it broadcasts for each operation that reads it.
    scalars = together.replace("[8]{0}", "[]")
    assert users_of("mask.1", scalars, ids="p q mask.1 r choice.1 choice.2") == ["choice.1", "choice.2"]


@pytest.mark.parametrize(
    ("ids", "users"),
    [
        ("p q choice.1 r total.1 mask.1 choice.2", ["choice.2", "choice.1"]),
        ("p q total.1 mask.1 choice.1 r choice.2", ["choice.1", "choice.2"]),
    ],
)
def test_what_was_made_anew_was_given_its_reshape_first(ids: str, users: list[str]) -> None:
    """Who read another like it, of the same shape, came behind when CSE made them one."""
    body = f"""  %p = f32[8,1]{{1,0}} parameter(0)
  %q = f32[1]{{0}} parameter(1)
  %zero = f32[] constant(0)
  %total.1 = f32[1]{{0}} reduce(%p, %zero), dimensions={{0}}, to_apply=%sum{named("total")}
  %mask.1 = pred[1]{{0}} compare(%total.1, %q), direction=LE{named("mask")}
  %choice.1 = f32[1]{{0}} select(%mask.1, %q, %q){named("choice", frame=1)}
  %choice.2 = f32[1]{{0}} select(%mask.1, %choice.1, %q){named("choice", frame=2)}
  ROOT %r = (f32[1]{{0}}) tuple(%choice.2)"""
    assert users_of("mask.1", body, ids=f"zero {ids}") == users


def test_what_was_moved_in_front_of_a_reshape_has_the_last_reader_in_front() -> None:
    """Layout normalization makes broadcasts anew later, each where the old one stood."""
    body = f"""  %p = pred[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %mask.1 = pred[8]{{0}} not(%p){named("mask")}
  %choice.1 = f32[8]{{0}} select(%mask.1, %q, %q){named("choice")}
  %broadcast.1 = pred[8,4]{{1,0}} broadcast(%mask.1), dimensions={{0}}{named("spread")}
  ROOT %tuple.2 = (f32[8]{{0}}, pred[8,4]{{1,0}}) tuple(%choice.1, %broadcast.1)"""
    moved, written = ["broadcast.1", "choice.1"], ["choice.1", "broadcast.1"]
    assert users_of("mask.1", body, ids="p q choice.1 tuple.2 mask.1 broadcast.1") == moved
    assert users_of("mask.1", body, ids="p q mask.1 choice.1 tuple.2 broadcast.1") == written


@pytest.mark.parametrize(
    ("back", "users"),
    [
        ("f32[1,1,8]{2,1,0} bitcast(%log.1)", ["mul.1", "multiply.1", "log.1"]),
        ("f32[4,2,8]{2,1,0} broadcast(%log.1), dimensions={2}", ["mul.1", "multiply.1", "log.1"]),
        ("f32[8]{0} sine(%log.1)", ["multiply.1", "log.1", "mul.1"]),
    ],
)
def test_a_sum_that_is_grouped_keeps_the_order_of_what_was_moved(back: str, users: list[str]) -> None:
    """The sum over one dimension is given the users of that over two; what was not reshaped was not moved."""
    body = f"""  %p = f32[4,2,8]{{2,1,0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %zero = f32[] constant(0)
  %bitcast.1 = f32[8,8]{{1,0}} bitcast(%p)
  %total.1 = f32[8]{{0}} reduce(%bitcast.1, %zero), dimensions={{0}}, to_apply=%sum{named("total")}
  %multiply.1 = f32[8]{{0}} multiply(%total.1, %q){named("div")}
  %log.1 = f32[8]{{0}} log(%total.1){named("log")}
  %mul.1 = f32[8]{{0}} multiply(%total.1, %multiply.1){named("mul")}
  %back.1 = {back}
  ROOT %tuple.2 = (f32[8]{{0}}, f32[8]{{0}}) tuple(%mul.1, %back.1)"""
    ids = "p q zero tuple.2 multiply.1 log.1 mul.1 back.1 bitcast.1 total.1"
    assert users_of("total.1", body, ids=ids) == users


@pytest.mark.parametrize(
    ("place", "readers", "users"),
    [
        ("transpose(jvp(norm))", "", ["b.1", "a.1"]),
        ("transpose(jvp(norm))", "transpose(jvp(f))/", ["a.1", "b.1"]),
        ("jvp(norm)", "", ["a.1", "b.1"]),
    ],
)
def test_a_gradient_was_reshaped_once_for_all(place: str, readers: str, users: list[str]) -> None:
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %mul.1 = f32[8]{{0}} multiply(%p, %p){named(f"{place}/mul")}
  %a.1 = f32[8]{{0}} negate(%mul.1){named(f"{readers}a", frame=1)}
  %b.1 = f32[8]{{0}} sine(%mul.1){named(f"{readers}b", frame=2)}
  ROOT %tuple.2 = (f32[8]{{0}}, f32[8]{{0}}) tuple(%a.1, %b.1)"""
    assert users_of("mul.1", body, ids="p mul.1 tuple.2 a.1 b.1") == users


@pytest.mark.parametrize(("place", "users"), [("cond/branch_1_fun/", ["a.1", "b.1"]), ("", ["b.1", "a.1"])])
def test_what_was_cloned_out_of_a_branch_was_not_moved(place: str, users: list[str]) -> None:
    """Both are younger than the program."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %mul.1 = f32[8]{{0}} multiply(%p, %p){named(f"{place}mul")}
  %a.1 = f32[8]{{0}} negate(%mul.1){named(f"{place}a")}
  %b.1 = f32[8]{{0}} sine(%mul.1){named(f"{place}b")}
  ROOT %tuple.2 = (f32[8]{{0}}, f32[8]{{0}}) tuple(%a.1, %b.1)"""
    assert users_of("mul.1", body, ids="p tuple.2 mul.1 a.1 b.1") == users


@pytest.mark.parametrize(("other", "users"), [(1, ["a.1", "b.1"]), (0, ["b.1", "a.1"])])
def test_what_was_cloned_out_of_both_branches_was_not_moved(other: int, users: list[str]) -> None:
    """What one branch alone does may have been moved once that had been inlined."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %exp.1 = f32[8]{{0}} exponential(%p){named("exp")}
  %a.1 = f32[8]{{0}} negate(%exp.1){named("cond/branch_0_fun/a")}
  %b.1 = f32[8]{{0}} sine(%exp.1){named(f"cond/branch_{other}_fun/b")}
  ROOT %tuple.2 = (f32[8]{{0}}, f32[8]{{0}}) tuple(%a.1, %b.1)"""
    assert users_of("exp.1", body, ids="p tuple.2 exp.1 a.1 b.1") == users


def test_what_a_nested_call_kept_for_the_derivative_went_through_two_tuples() -> None:
    around = "jvp(layer)/jit(f)"
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %x.1 = f32[8]{{0}} exponential(%p){named("x")}
  %sum.1 = f32[8]{{0}} add(%x.1, %x.1){named(f"{around}/jit(g)/sum")}
  %multiply.1 = f32[8]{{0}} multiply(%sum.1, %p){named(f"{around}/jit(g)/div")}
  %use.1 = f32[8]{{0}} multiply(%x.1, %multiply.1){named(f"{around}/use")}
  %back.1 = f32[8]{{0}} multiply(%p, %multiply.1){named("transpose(jvp(layer))/jit(f)/back")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%use.1, %back.1)"""
    assert users_of("multiply.1", body, ids="p x.1 r sum.1 multiply.1 use.1 back.1") == ["back.1", "use.1"]


@pytest.mark.parametrize(("opcode", "users"), [("sine", "out.1 use.1"), ("negate", "use.1 out.1")])
def test_the_tuple_of_a_call_took_the_place_of_that_of_a_nested_one(opcode: str, users: str) -> None:
    """Both end in several results. What is negated in the call may be read past that outside."""
    nested = "jit(f)/jit(_where)"
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = pred[8]{{0}} parameter(1)
  %zero = f32[] constant(0)
  %zeros = f32[8]{{0}} broadcast(%zero), dimensions={{}}
  %select_n.1 = f32[8]{{0}} select(%q, %p, %zeros){named(f"{nested}/select_n")}
  %use.1 = f32[8]{{0}} {opcode}(%select_n.1){named("jit(f)/use")}
  %select_n.2 = f32[8]{{0}} select(%q, %zeros, %p){named(f"{nested}/select_n")}
  %other.1 = f32[8]{{0}} cosine(%select_n.2){named("jit(f)/other")}
  %out.1 = f32[8]{{0}} tan(%select_n.1){named("out")}
  %out.2 = f32[8]{{0}} multiply(%use.1, %other.1){named("out")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%out.1, %out.2)"""
    ids = "p q zero zeros out.1 out.2 r select_n.1 select_n.2 use.1 other.1"
    assert users_of("select_n.1", body, ids=ids) == users.split()


def test_older_users_of_a_product_read_a_reshape_behind_it() -> None:
    """Not where the program itself sums over a dimension of one, which a bitcast takes away."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8,1]{{1,0}} parameter(1)
  %flat = f32[8]{{0}} bitcast(%q)
  %rows = f32[8,8]{{1,0}} broadcast(%p), dimensions={{0}}
  %columns = f32[8,8]{{1,0}} broadcast(VECTOR), dimensions={{1}}
  %multiply.4 = f32[8,8]{{1,0}} multiply(%rows, %columns){named("dot_general")}
  %a.1 = f32[8,8]{{1,0}} sine(%multiply.4){named("a")}
  %b.1 = f32[8,8]{{1,0}} cosine(%multiply.4){named("b")}
  ROOT %r = (f32[8,8]{{1,0}}, f32[8,8]{{1,0}}, f32[8]{{0}}) tuple(%a.1, %b.1, %flat)"""
    ids = "p q a.1 b.1 r flat rows columns multiply.4"
    assert users_of("multiply.4", body.replace("VECTOR", "%p"), ids=ids) == ["b.1", "a.1"]
    assert users_of("multiply.4", body.replace("VECTOR", "%flat"), ids=ids) == ["a.1", "b.1"]


def test_older_users_of_what_was_moved_read_the_one_reshape_that_was_left_of_those_of_many_calls() -> None:
    """HloCSE appended those of each further call as it came along them: no call was a user itself."""
    first, second = "jvp(Net)/Dropout_0/jit(bits)", "jvp(Net)/Dropout_1/jit(bits)"
    body = f"""  %p = u32[2]{{0}} parameter(0)
  %q = u32[1]{{0}} parameter(1)
  %unstack.1 = u32[1]{{0}} slice(%p), slice={{[0:1]}}{named(f"{first}/unstack")}
  %unstack.2 = u32[1]{{0}} slice(%p), slice={{[1:2]}}{named(f"{first}/unstack")}
  %xor.1 = u32[1]{{0}} xor(%unstack.1, %unstack.2){named(f"{first}/xor")}
  %a.1 = u32[1]{{0}} add(%xor.1, %q){named(f"{first}/a")}
  %b.1 = u32[1]{{0}} add(%xor.1, %a.1){named(f"{first}/b")}
  %c.1 = u32[1]{{0}} add(%q, %xor.1){named(f"{second}/c")}
  %d.1 = u32[1]{{0}} add(%c.1, %xor.1){named(f"{second}/d")}
  %t = f32[8]{{0}} parameter(2)
  %multiply.1 = f32[8]{{0}} multiply(%t, %t){named("div")}
  ROOT %r = (u32[1]{{0}}, f32[8]{{0}}) tuple(%d.1, %multiply.1)"""
    moved = "p q t unstack.1 unstack.2 r a.1 b.1 c.1 d.1 multiply.1 xor.1"
    assert users_of("xor.1", body, ids=moved) == ["d.1", "a.1", "b.1", "c.1"]


_SPLIT = """%gemm (p0: TYPE[8,8], p1: TYPE[8,8]) -> f32[8,8] {
  %p0 = TYPE[8,8]{1,0} parameter(0)
  %p1 = TYPE[8,8]{1,0} parameter(1)
  ROOT %dot = f32[8,8]{1,0} dot(%p0, %p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


def test_older_users_of_a_narrow_product_that_was_split_read_it_made_wide() -> None:
    body = f"""  %p = TYPE[8,8]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %g = f32[8,8]{{1,0}} fusion(%p, %p), kind=kCustom, calls=%gemm
  %reduce.3 = f32[8]{{0}} reduce(%g, %zero), dimensions={{0}}, to_apply=%sum{named("dot_general")}
  %a.1 = f32[8]{{0}} sine(%reduce.3){named("a")}
  %b.1 = f32[8]{{0}} cosine(%reduce.3){named("b")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%a.1, %b.1)"""
    ids = "p a.1 b.1 r zero g reduce.3"

    def listed(element_type: str) -> list[str]:
        text, head = (x.replace("TYPE", element_type) for x in (body, _SPLIT))
        return users_of("reduce.3", text, ids=ids, head=head)

    assert listed("bf16") == ["b.1", "a.1"]
    assert listed("f32") == ["a.1", "b.1"]


def test_parts_of_merged_products_come_by_age() -> None:
    body = f"""  %p = f32[8,16]{{1,0}} parameter(0)
  %merged = f32[8,16]{{1,0}} exponential(%p)
  %slice.3 = f32[8,8]{{1,0}} slice(%merged), slice={{[0:8], [8:16]}}{named("dot_general")}
  %slice.2 = f32[8,8]{{1,0}} slice(%merged), slice={{[0:8], [0:8]}}{named("dot_general")}
  ROOT %r = (f32[8,8]{{1,0}}, f32[8,8]{{1,0}}) tuple(%slice.3, %slice.2)"""
    assert users_of("merged", body, ids="p r merged slice.2 slice.3") == ["slice.2", "slice.3"]


@pytest.mark.parametrize(("layout", "users"), [("{0,1}", ["exp.1", "sub.2"]), ("{1,0}", ["sub.2", "exp.1"])])
def test_those_moved_in_front_of_a_transpose_come_as_a_walk_meets_them(layout: str, users: list[str]) -> None:
    """The difference met it first, ahead of what it takes off; a gather reads it transposed since."""
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %m = f32[8,8]{{1,0}} parameter(1)
  %sub.1 = f32[8,8]{{1,0}} subtract(%p, %m){named("sub")}
  %exp.1 = f32[8,8]{{1,0}} exponential(%sub.1){named("exp")}
  %total.1 = f32[8]{{0}} reduce(%exp.1, %zero), dimensions={{0}}, to_apply=%sum{named("total")}
  %log.1 = f32[8,8]{{1,0}} broadcast(%total.1), dimensions={{1}}{named("log")}
  %sub.2 = f32[8,8]{{1,0}} subtract(%sub.1, %log.1){named("sub")}
  %t = f32[8,8]{layout} bitcast(%sub.2)
  ROOT %r = (f32[8,8]{layout}) tuple(%t)"""
    ids = "p zero m r - sub.1 exp.1 sub.2 total.1 log.1 t"
    assert users_of("sub.1", body, ids=ids) == users


@pytest.mark.parametrize(("frames", "users"), [((1, 2), ["sub.2", "sub.1"]), ((1, 1), ["sub.1", "sub.2"])])
def test_operations_of_the_program_in_places_of_their_own_were_not_made_together(
    frames: tuple[int, int], users: list[str]
) -> None:
    # What was in between has been made anew. XLA has the first for the derivative of two layers with tanh.
    one, two = frames
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %q = f32[8,8]{{1,0}} parameter(1)
  %c = f32[] constant(1)
  %broadcast.1 = f32[8,8]{{1,0}} broadcast(%c), dimensions={{}}
  %sub.2 = f32[8,8]{{1,0}} subtract(%broadcast.1, %p){named("jvp()/sub", frame=two)}
  %sub.1 = f32[8,8]{{1,0}} subtract(%broadcast.1, %q){named("jvp()/sub", frame=one)}
  ROOT %r = (f32[8,8]{{1,0}}, f32[8,8]{{1,0}}) tuple(%sub.2, %sub.1)"""
    assert users_of("broadcast.1", body, ids="p q c broadcast.1 sub.1 sub.2 r") == users


_SCAN = f"""{HEAD}
%body (arg: (s32[], f32[1,8], f32[1,8])) -> (s32[], f32[1,8], f32[1,8]) {{
  %arg = (s32[], f32[1,8]{{1,0}}, f32[1,8]{{1,0}}) parameter(0)
  %i.1 = s32[] get-tuple-element(%arg), index=0
  %x.1 = f32[1,8]{{1,0}} get-tuple-element(%arg), index=1
  %y.1 = f32[1,8]{{1,0}} get-tuple-element(%arg), index=2
  %mul.1 = f32[1,8]{{1,0}} multiply(%x.1, %y.1){named("while/body/eval_jaxpr/mul")}
  %bitcast.1 = f32[8]{{0}} bitcast(%x.1)
  %neg.1 = f32[8]{{0}} negate(%bitcast.1){named("while/body/eval_jaxpr/neg")}
  %bitcast.2 = f32[1,8]{{1,0}} bitcast(%neg.1)
  %div.1 = f32[1,8]{{1,0}} divide(%mul.1, %bitcast.2){named("while/body/eval_jaxpr/div")}
  %mul.2 = f32[1,8]{{1,0}} multiply(%mul.1, %y.1){named("while/body/eval_jaxpr/mul")}
  %sub.1 = f32[1,8]{{1,0}} subtract(%div.1, %mul.2){named("while/body/jit(g)/sub")}
  ROOT %r = (s32[], f32[1,8]{{1,0}}, f32[1,8]{{1,0}}) tuple(%i.1, %sub.1, %y.1)
}}

%cond (arg.2: (s32[], f32[1,8], f32[1,8])) -> pred[] {{
  %arg.2 = (s32[], f32[1,8]{{1,0}}, f32[1,8]{{1,0}}) parameter(0)
  %i.2 = s32[] get-tuple-element(%arg.2), index=0
  ROOT %lt.1 = pred[] compare(%i.2, %i.2), direction=LT
}}

ENTRY %main {{
  %p = (s32[], f32[1,8]{{1,0}}, f32[1,8]{{1,0}}) parameter(0)
  ROOT %while.1 = (s32[], f32[1,8]{{1,0}}, f32[1,8]{{1,0}}) while(%p), condition=%cond, body=%body
}}
"""


@pytest.mark.parametrize(
    ("young", "users"),
    [
        ("mul.1 bitcast.1 div.1 mul.2 neg.1", ["mul.2", "div.1"]),
        ("bitcast.1 mul.1 div.1 mul.2 neg.1", ["div.1", "mul.2"]),  # moved at once
    ],
)
def test_of_what_the_body_of_a_loop_computes_the_last_took_the_place_of_a_reshape(
    young: str, users: list[str]
) -> None:
    """The call that reads the result came after the one that computes it, and yet is older."""
    module = parse_module(_SCAN)
    age = f"arg i.1 x.1 y.1 r sub.1 {young} bitcast.2".split()
    body = find(module, "sub.1").computation
    assert body is not None
    for x in body:
        x.id = age.index(x.name)
    assert users_in(module, "mul.1", ids_known=True) == users


@pytest.mark.parametrize(("moved", "users"), [("moved", ["mul.1", "mul.2"]), ("", ["mul.2", "mul.1"])])
def test_a_convert_that_was_reshaped_had_the_last_in_front_when_it_went(moved: str, users: list[str]) -> None:
    """FloatNormalization put its last user in its place once more; what was not reshaped is as it was."""
    body = f"""  %p = bf16[8,4]{{1,0}} parameter(0)
  %q = f32[4]{{0}} parameter(1)
  %zero = bf16[] constant(0)
  %wide.1 = f32[8,4]{{1,0}} convert(%p)
  %wide.2 = f32[] convert(%zero)
  %reduce_sum.1 = f32[4]{{0}} reduce(%wide.1, %wide.2), dimensions={{0}}, to_apply=%sum{named("reduce_sum")}
  %mul.1 = f32[4]{{0}} multiply(%reduce_sum.1, %q){named("mul", frame=1)}
  %mul.2 = f32[4]{{0}} divide(%reduce_sum.1, %q){named("mul", frame=1)}
  ROOT %tuple.1 = (f32[4]{{0}}, f32[4]{{0}}) tuple(%mul.1, %mul.2)"""
    made = "tuple.1 mul.1 mul.2" if moved else "mul.1 mul.2 tuple.1"
    assert users_of("reduce_sum.1", body, ids=f"p q zero reduce_sum.1 {made} wide.1 wide.2") == users
