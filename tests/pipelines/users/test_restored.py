"""The order of users that passes before fusion leave, each case as XLA's records show it."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.legacy_users.restore import restore_users_order

from ...running import find
from .lists import named, places_in_source, users_as_guessed, users_in, users_of

_SOFTMAX = """  %p = bf16[32]{0} parameter(0)
  %widened = f32[32]{0} convert(%p)KEPT
  %zero = f32[] constant(0)
  %total = f32[] reduce(%widened, %zero), dimensions={0}, to_apply=%sum
  %each = f32[32]{0} broadcast(%total), dimensions={}
  %quotient = f32[32]{0} divide(%widened, %each)
  ROOT %r = bf16[32]{0} convert(%quotient)"""


def test_users_of_an_inserted_convert_come_as_the_walk_met_their_uses() -> None:
    """A convert for each user was merged by CSE, the divide's first: it is operand 0."""
    assert users_as_guessed("widened", _SOFTMAX.replace("KEPT", "")) == ["quotient", "total"]


def test_users_of_a_convert_of_the_program_stay_in_the_order_of_the_text() -> None:
    named = ', metadata={op_name="jit(f)/convert_element_type"}'
    assert users_as_guessed("widened", _SOFTMAX.replace("KEPT", named)) == ["total", "quotient"]


@pytest.mark.parametrize(
    ("target", "users"),
    [("__cublas$lt$matmul", ["first", "total", "turned"]), ("other", ["first", "turned", "total"])],
)
def test_each_matrix_product_had_a_convert_of_its_own(target: str, users: list[str]) -> None:
    """What is not known as one read a convert of the program, the one that the walk meets first."""
    call = f'custom_call_target="{target}"'
    body = f"""  %p = bf16[8,8]{{1,0}} parameter(0)
  %widened = f32[8,8]{{1,0}} convert(%p)
  %zero = f32[] constant(0)
  %first = f32[8,8]{{1,0}} custom-call(%widened, %widened), {call}
  %half = bf16[] constant(0)
  %start = f32[] convert(%half)
  %total = f32[8]{{0}} reduce(%widened, %start), dimensions={{0}}, to_apply=%sum
  %turned = f32[8,8]{{0,1}} bitcast(%widened)
  %second = f32[8,8]{{1,0}} custom-call(%turned, %turned), {call}
  %back = bf16[8]{{0}} convert(%total)
  ROOT %r = (f32[8,8]{{1,0}}, bf16[8]{{0}}, f32[8,8]{{1,0}}) tuple(%first, %back, %second)"""
    assert users_as_guessed("widened", body) == users


_WIDENED = """  %p = bf16[32]{0} parameter(0)
  %convert.1 = f32[32]{0} convert(%p)
  %x = f32[32]{0} multiply(%convert.1, %convert.1)
  %u = f32[32]{0} add(%x, %x)
  %v = f32[32]{0} subtract(%u, %x)
  %w = f32[32]{0} divide(%v, %x)
  %convert.2 = bf16[32]{0} convert(%w)"""


def test_users_of_a_convert_back_from_f16_stay_in_the_order_of_the_text() -> None:
    """What computes in f8 computes in f16; the walk would meet the pad's use first."""
    body = """  %p = f8e5m2[1]{0} parameter(0)
  %wide = f16[1]{0} convert(%p)
  %mul = f16[1]{0} multiply(%wide, %wide)
  %back = f8e5m2[1]{0} convert(%mul)
  %value = f8e5m2[] bitcast(%back)
  ROOT %pad = f8e5m2[2]{0} pad(%back, %value), padding=1_0"""
    assert users_as_guessed("back", body) == ["value", "pad"]


def test_the_convert_behind_what_was_widened_comes_first() -> None:
    body = f"""{_WIDENED}
  %convert.3 = bf16[32]{{0}} convert(%x)
  ROOT %r = (bf16[32]{{0}}, bf16[32]{{0}}) tuple(%convert.2, %convert.3)"""
    assert users_as_guessed("x", body) == ["convert.3", "u", "v", "w"]


def test_the_last_user_takes_the_place_of_a_convert_that_went() -> None:
    body = f"{_WIDENED}\n  ROOT %r = (bf16[32]{{0}}) tuple(%convert.2)"
    assert users_as_guessed("x", body) == ["w", "u", "v"]


def test_a_broadcast_swapped_with_a_convert_comes_last() -> None:
    body = """  %p = f32[32]{0} parameter(0)
  %x = f32[32]{0} rsqrt(%p)
  %new = f32[32,8]{1,0} broadcast(%x), dimensions={0}
  ROOT %r = f32[32,8]{1,0} negate(%new)
  %narrow = bf16[32]{0} convert(%x)
  %old = bf16[32,8]{1,0} broadcast(%narrow), dimensions={0}
  %dead = f32[32,8]{1,0} convert(%old)"""
    assert users_as_guessed("x", body) == ["narrow", "new"]


@pytest.mark.parametrize("new", ["new.1 new.2", "new.2 new.1"])
def test_of_broadcasts_swapped_with_converts_the_youngest_comes_last(new: str) -> None:
    body = """  %p = f32[32]{0} parameter(0)
  %x = f32[32]{0} rsqrt(%p)
  %new.1 = f32[32,8]{1,0} broadcast(%x), dimensions={0}
  %neg.1 = f32[32,8]{1,0} negate(%new.1)
  %new.2 = f32[32,4]{1,0} broadcast(%x), dimensions={0}
  %neg.2 = f32[32,4]{1,0} negate(%new.2)
  ROOT %r = (f32[32,8]{1,0}, f32[32,4]{1,0}) tuple(%neg.1, %neg.2)
  %narrow = bf16[32]{0} convert(%x)
  %old.1 = bf16[32,8]{1,0} broadcast(%narrow), dimensions={0}
  %dead.1 = f32[32,8]{1,0} convert(%old.1)
  %old.2 = bf16[32,4]{1,0} broadcast(%narrow), dimensions={0}
  %dead.2 = f32[32,4]{1,0} convert(%old.2)"""
    ids = f"p x narrow old.1 dead.1 old.2 dead.2 {new} neg.1 neg.2 r"
    assert users_of("x", body, ids=ids) == ["narrow", *new.split()]


def test_a_convert_swapped_with_a_broadcast_comes_last() -> None:
    body = """  %p = bf16[32]{0} parameter(0)
  %x = bf16[32]{0} negate(%p)
  %lifted = f32[32]{0} convert(%x)
  %new = f32[32,8]{1,0} broadcast(%lifted), dimensions={0}
  ROOT %r = f32[32,8]{1,0} negate(%new)
  %old = bf16[32,8]{1,0} broadcast(%x), dimensions={0}
  %dead = f32[32,8]{1,0} convert(%old)"""
    assert users_as_guessed("x", body) == ["old", "lifted"]


def test_parts_of_a_split_reduction_come_last() -> None:
    name = 'metadata={op_name="jit(f)/reduce_sum"}'
    body = f"""  %p = f32[32]{{0}} parameter(0)
  %q = f32[32]{{0}} parameter(1)
  %x = f32[32]{{0}} negate(%p)
  %zero = f32[] constant(0)
  %part.1 = f32[] reduce(%x, %zero), dimensions={{0}}, to_apply=%sum, {name}
  %part.2 = f32[] reduce(%q, %zero), dimensions={{0}}, to_apply=%sum, {name}
  %whole = f32[] add(%part.1, %part.2), {name}
  %c = f32[64]{{0}} concatenate(%x, %q), dimensions={{0}}
  %last = f32[32]{{0}} exponential(%x)
  ROOT %r = (f32[], f32[64]{{0}}, f32[32]{{0}}) tuple(%whole, %c, %last)"""
    assert users_as_guessed("x", body) == ["c", "last", "part.1"]


def test_so_do_those_that_were_reshaped_for_it() -> None:
    """A dimension of one that the reduction kept is gone, in front and behind."""
    name = 'metadata={op_name="jit(f)/reduce_max"}'
    body = f"""  %p = f32[32,1]{{1,0}} parameter(0)
  %q = f32[32,1]{{1,0}} parameter(1)
  %x = f32[32,1]{{1,0}} negate(%p)
  %zero = f32[] constant(0)
  %flat.1 = f32[32]{{0}} bitcast(%x)
  %part.1 = f32[] reduce(%flat.1, %zero), dimensions={{0}}, to_apply=%sum, {name}
  %kept.1 = f32[1]{{0}} bitcast(%part.1), {name}
  %last = f32[32,1]{{1,0}} add(%x, %q)
  %flat.2 = f32[32]{{0}} bitcast(%last)
  %part.2 = f32[] reduce(%flat.2, %zero), dimensions={{0}}, to_apply=%sum, {name}
  %kept.2 = f32[1]{{0}} bitcast(%part.2), {name}
  ROOT %whole = f32[1]{{0}} add(%kept.1, %kept.2), {name}"""
    assert users_as_guessed("x", body) == ["last", "flat.1"]


def test_so_do_those_that_were_grouped_for_it() -> None:
    """A sum and a maximum of `concatenate([x, x])`: of the maximum of both parts only one is left."""
    total, largest, spread = (named(x) for x in ("reduce_sum", "reduce_max", "broadcast_in_dim"))
    body = f"""  %p = f32[8,4]{{1,0}} parameter(0)
  %x = f32[2,8,4]{{2,1,0}} broadcast(%p), dimensions={{1,2}}{spread}
  %zero = f32[] constant(0)
  %flat.1 = f32[64]{{0}} bitcast(%x){spread}
  %most.1 = f32[] reduce(%flat.1, %zero), dimensions={{0}}, to_apply=%sum{largest}
  %part.1 = f32[] reduce(%flat.1, %zero), dimensions={{0}}, to_apply=%sum{total}
  %whole = f32[] add(%part.1, %part.1){total}
  %c = f32[2,8,8]{{2,1,0}} concatenate(%x, %x), dimensions={{2}}{named("concatenate")}
  ROOT %r = (f32[], f32[], f32[2,8,8]{{2,1,0}}) tuple(%most.1, %whole, %c)"""
    assert users_as_guessed("x", body) == ["c", "flat.1"]


def test_parts_that_were_widened_are_behind_what_converts_them_back() -> None:
    """`concatenate([x * 2, x * 3])` in bf16 and its maximum: products and maxima are in f32 now."""
    largest, mul = named("reduce_max", frame=1), named("mul", frame=2)
    spread = named("mul", frame=3)
    body = f"""  %x = bf16[8]{{0}} parameter(0)
  %two = bf16[] parameter(1)
  %three = bf16[] parameter(2)
  %least.1 = bf16[] constant(-inf)
  %wide.1 = f32[8]{{0}} convert(%x)
  %wide.2 = f32[] convert(%two)
  %wide.3 = f32[] convert(%three)
  %least.2 = f32[] convert(%least.1)
  %twos = f32[8]{{0}} broadcast(%wide.2), dimensions={{}}{spread}
  %threes = f32[8]{{0}} broadcast(%wide.3), dimensions={{}}{spread}
  %mul.2 = f32[8]{{0}} multiply(%wide.1, %twos){mul}
  %mul.3 = f32[8]{{0}} multiply(%wide.1, %threes){mul}
  %part.2 = f32[] reduce(%mul.2, %least.2), dimensions={{0}}, to_apply=%sum{largest}
  %part.3 = f32[] reduce(%mul.3, %least.2), dimensions={{0}}, to_apply=%sum{largest}
  %most = f32[] maximum(%part.2, %part.3){largest}
  %most.1 = bf16[] convert(%most)
  %narrow.2 = bf16[8]{{0}} convert(%mul.2)
  %narrow.3 = bf16[8]{{0}} convert(%mul.3)
  %parts = bf16[16]{{0}} concatenate(%narrow.2, %narrow.3), dimensions={{0}}{named("concatenate")}
  ROOT %r = (bf16[], bf16[16]{{0}}) tuple(%most.1, %parts)"""
    assert users_of("mul.2", body) == ["narrow.2", "part.2"]


# ---------------------------------------------------------------- calls


def test_what_a_function_has_in_it_comes_by_age() -> None:
    """It was cloned operands first, whatever the rest of the program made of the order since."""
    body = f"""  %p = f32[32]{{0}} parameter(0)
  %x.1 = f32[32]{{0}} exponential(%p){named("jit(g)/x")}
  %late.1 = f32[32]{{0}} sine(%x.1){named("jit(g)/late")}
  %early.1 = f32[32]{{0}} cosine(%x.1){named("jit(g)/early")}
  ROOT %r = f32[32]{{0}} add(%late.1, %early.1){named("jit(g)/r")}"""
    assert users_as_guessed("x.1", body) == ["late.1", "early.1"]
    assert users_of("x.1", body, ids="p r x.1 early.1 late.1") == ["early.1", "late.1"]


def test_the_last_clone_takes_the_place_of_the_call() -> None:
    body = f"""  %p = f32[32]{{0}} parameter(0)
  %x.1 = f32[32]{{0}} exponential(%p){named("x")}
  %sign.1 = f32[32]{{0}} sign(%x.1){named("jit(g)/sign")}
  %rem.1 = f32[32]{{0}} remainder(%x.1, %sign.1){named("jit(g)/rem")}
  %div.1 = f32[32]{{0}} divide(%x.1, %rem.1){named("jit(g)/div")}
  %own.1 = f32[32]{{0}} negate(%x.1){named("own")}
  ROOT %r = (f32[32]{{0}}, f32[32]{{0}}) tuple(%div.1, %own.1)"""
    assert users_as_guessed("x.1", body) == ["div.1", "own.1", "sign.1", "rem.1"]


def test_two_calls_from_one_place_are_told_apart_by_their_results() -> None:
    body = f"""  %p = f32[32]{{0}} parameter(0)
  %x.1 = f32[32]{{0}} exponential(%p){named("x")}
  %g.1 = f32[32]{{0}} multiply(%x.1, %p){named("jit(g)/g")}
  %g.2 = f32[32]{{0}} multiply(%x.1, %x.1){named("jit(g)/g")}
  ROOT %r = (f32[32]{{0}}, f32[32]{{0}}) tuple(%g.1, %g.2)"""
    assert users_as_guessed("x.1", body) == ["g.1", "g.2"]


def test_the_last_user_takes_the_place_of_the_tuple_of_results() -> None:
    body = f"""  %p = f32[32]{{0}} parameter(0)
  %other.1 = f32[32]{{0}} sine(%p){named("jit(g)/other")}
  %x.1 = f32[32]{{0}} cosine(%other.1){named("jit(g)/x")}
  %a.1 = f32[32]{{0}} negate(%x.1){named("a")}
  %b.1 = f32[32]{{0}} exponential(%x.1){named("b")}
  %c.1 = f32[32]{{0}} tanh(%x.1){named("c")}
  %d.1 = f32[32]{{0}} tanh(%OTHER){named("d")}
  ROOT %r = (f32[32]{{0}}, f32[32]{{0}}, f32[32]{{0}}, f32[32]{{0}}) tuple(%a.1, %b.1, %c.1, %d.1)"""
    assert users_as_guessed("x.1", body.replace("OTHER", "other.1")) == ["c.1", "a.1", "b.1"]
    assert users_as_guessed("x.1", body.replace("OTHER", "p")) == ["a.1", "b.1", "c.1"]


def test_what_a_result_was_before_its_reshape_is_no_other_result() -> None:
    body = f"""  %p = f32[2,16]{{1,0}} parameter(0)
  %x.1 = f32[2,16]{{1,0}} cosine(%p){named("jit(g)/x")}
  %bitcast.1 = f32[32]{{0}} bitcast(%x.1){named("jit(g)/x")}
  %a.1 = f32[32]{{0}} negate(%bitcast.1){named("a")}
  %b.1 = f32[32]{{0}} exponential(%bitcast.1){named("b")}
  ROOT %r = (f32[32]{{0}}, f32[32]{{0}}) tuple(%a.1, %b.1)"""
    assert users_as_guessed("bitcast.1", body) == ["a.1", "b.1"]


def test_the_last_clone_of_a_call_within_a_call_takes_the_place_of_the_outer_one() -> None:
    body = f"""  %p = f32[32]{{0}} parameter(0)
  %x.1 = f32[32]{{0}} exponential(%p){named("x")}
  %first.1 = f32[32]{{0}} sine(%x.1){named("jit(g)/first")}
  %last.1 = f32[32]{{0}} divide(%first.1, %x.1){named("jit(g)/jit(h)/last")}
  ROOT %own.1 = f32[32]{{0}} add(%last.1, %x.1){named("own")}"""
    assert users_as_guessed("x.1", body) == ["last.1", "own.1", "first.1"]


def test_calls_stood_in_the_order_in_which_they_were_inlined() -> None:
    body = f"""  %p = f32[32]{{0}} parameter(0)
  %x.1 = f32[32]{{0}} exponential(%p){named("x")}
  %g.2 = f32[32]{{0}} multiply(%x.1, %p){named("jit(g)/g")}
  %flat.2 = f32[32,1]{{1,0}} bitcast(%g.2){named("jit(g)/g")}
  %g.1 = f32[32]{{0}} multiply(%x.1, %x.1){named("jit(g)/g")}
  %flat.1 = f32[32,1]{{1,0}} bitcast(%g.1){named("jit(g)/g")}
  %sum.1 = f32[32,1]{{1,0}} add(%flat.2, %flat.1){named("sum")}
  ROOT %r = (f32[32,1]{{1,0}}) tuple(%sum.1)"""
    ids = "p x.1 sum.1 r g.1 g.2 flat.1 flat.2"
    assert users_as_guessed("x.1", body) == ["g.2", "g.1"]
    assert users_of("x.1", body, ids=ids) == ["g.1", "g.2"]


def test_the_same_function_reads_its_result_in_another_call() -> None:
    """(p % q) % q, with the first result read in between."""
    body = f"""  %p = f32[32]{{0}} parameter(0)
  %sign.0 = f32[32]{{0}} sign(%p){named("jit(g)/sign")}
  %x.1 = f32[32]{{0}} sine(%sign.0){named("jit(g)/x")}
  %own.1 = f32[32]{{0}} negate(%x.1){named("own")}
  %sign.1 = f32[32]{{0}} sign(%x.1){named("jit(g)/sign")}
  %x.2 = f32[32]{{0}} sine(%sign.1){named("jit(g)/LAST")}
  ROOT %r = (f32[32]{{0}}, f32[32]{{0}}) tuple(%own.1, %x.2)"""
    assert users_as_guessed("x.1", body.replace("LAST", "x")) == ["own.1", "sign.1"]
    assert users_as_guessed("x.1", body.replace("LAST", "other").replace("x.2", "other.1")) == [
        "sign.1",
        "own.1",
    ]


def test_a_bitcast_read_within_the_function_is_of_the_function() -> None:
    body = f"""  %p = f32[1,32]{{1,0}} parameter(0)
  %x.1 = f32[1,32]{{1,0}} sine(%p){named("jit(g)/x")}
  %flat = f32[32]{{0}} bitcast(%x.1){named("jit(g)/x")}
  %a.1 = f32[32]{{0}} negate(%flat){named("READER")}
  %b.1 = f32[1,32]{{1,0}} exponential(%x.1){named("jit(g)/b")}
  ROOT %r = (f32[32]{{0}}, f32[1,32]{{1,0}}) tuple(%a.1, %b.1)"""
    assert users_as_guessed("x.1", body.replace("READER", "jit(g)/a")) == ["flat", "b.1"]
    assert users_as_guessed("x.1", body.replace("READER", "a")) == ["b.1", "flat"]


# ---------------------------------------------------------------- twins


_PLACES = places_in_source(("f", 2, 12, 20), ("f", 2, 11, 26), ("f", 3, 11, 35))


def test_what_is_written_around_a_value_read_it_before_its_twin_was_merged() -> None:
    """(x - mean) ** 2, and (x - mean) * scale a line further."""
    body = f"""  %p = f32[32]{{0}} parameter(0)
  %sub.1.0 = f32[32]{{0}} subtract(%p, %p){named("sub", frame=1)}
  %mul.1 = f32[32]{{0}} multiply(%p, %sub.1.0){named("mul", frame=3)}
  %pow.1 = f32[32]{{0}} negate(%sub.1.0){named("pow", frame=2)}
  ROOT %r = (f32[32]{{0}}, f32[32]{{0}}) tuple(%mul.1, %pow.1)"""
    assert users_as_guessed("sub.1.0", body) == ["mul.1", "pow.1"]
    assert users_as_guessed("sub.1.0", body, tables=_PLACES) == ["pow.1", "mul.1"]


@pytest.mark.parametrize(
    ("operation", "users"),
    [("broadcast_in_dim", ["root.1", "broadcast.7"]), ("atan2", ["broadcast.7", "root.1"])],
)
def test_a_broadcast_made_anew_bears_its_own_place_if_the_program_spread_it(
    operation: str, users: list[str]
) -> None:
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %le.1.0 = f32[8]{{0}} cosine(%p){named("le", frame=1)}
  %broadcast.7 = f32[4,8]{{1,0}} broadcast(%le.1.0), dimensions={{1}}{named(operation, frame=3)}
  %root.1 = f32[8]{{0}} negate(%le.1.0){named("root", frame=2)}
  ROOT %r = (f32[4,8]{{1,0}}, f32[8]{{0}}) tuple(%broadcast.7, %root.1)"""
    assert users_as_guessed("le.1.0", body, tables=_PLACES) == users


def test_what_is_older_than_a_value_was_given_it() -> None:
    body = f"""  %p = f32[32]{{0}} parameter(0)
  %sub.1 = f32[32]{{0}} subtract(%p, %p){named("sub")}
  %older.1 = f32[32]{{0}} negate(%sub.1){named("older")}
  %younger.1 = f32[32]{{0}} sine(%sub.1){named("younger")}
  ROOT %r = (f32[32]{{0}}, f32[32]{{0}}) tuple(%older.1, %younger.1)"""
    assert users_of("sub.1", body, ids="p older.1 sub.1 younger.1 r") == [
        "younger.1",
        "older.1",
    ]


# ---------------------------------------------------------------- holes


def test_one_concatenate_cut_down_beside_the_whole_comes_behind_it() -> None:
    body = """  %p = f32[2,4]{1,0} parameter(0)
  %q = f32[2,4]{1,0} parameter(1)
  %x = f32[2,4]{1,0} negate(%p)
  %left = f32[2,8]{1,0} concatenate(%q, %x), dimensions={1}
  %cut = f32[2,4]{1,0} slice(%left), slice={[0:2], [2:6]}
  %whole = f32[2,12]{1,0} concatenate(%q, %x, %q), dimensions={1}
  ROOT %r = (f32[2,4]{1,0}, f32[2,12]{1,0}) tuple(%cut, %whole)"""
    assert users_of("x", body, ids="p q x whole r left cut") == ["whole", "left"]


def test_who_reads_a_factor_takes_the_place_of_its_product_with_one() -> None:
    """concatenate([x * 0, x * 1, x * 2]): the framework dropped the second product, or XLA did."""
    body = f"""  %p = c64[8]{{0}} parameter(0)
  %x.1 = c64[8]{{0}} negate(%p){named("x")}
  %zero = c64[] constant((0, 0))
  %zeros = c64[8]{{0}} broadcast(%zero), dimensions={{}}
  %mul.1.0 = c64[8]{{0}} multiply(%x.1, %zeros){named("mul")}
  %two = c64[] constant((2, 0))
  %twos = c64[8]{{0}} broadcast(%two), dimensions={{}}
  %mul.NUMBER.0 = c64[8]{{0}} multiply(%x.1, %twos){named("mul")}
  ROOT %all.1 = c64[24]{{0}} concatenate(%mul.1.0, %x.1, %mul.NUMBER.0), dimensions={{0}}{named("all")}"""
    assert users_as_guessed("x.1", body.replace("NUMBER", "3")) == ["mul.1.0", "all.1", "mul.3.0"]
    assert users_as_guessed("x.1", body.replace("NUMBER", "2")) == ["mul.1.0", "mul.2.0", "all.1"]


def test_transposes_for_a_matrix_product_stand_where_the_product_stood() -> None:
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %x.1 = f32[8,8]{{1,0}} negate(%p){named("x")}
  %transpose = f32[8,8]{{1,0}} transpose(%x.1), dimensions={{1,0}}{named("OF")}
  %twice.1 = f32[8,8]{{1,0}} add(%x.1, %x.1){named("twice")}
  %dot = f32[8,8]{{1,0}} dot(%transpose, %twice.1), lhs_contracting_dims={{0}}, rhs_contracting_dims={{1}}
  ROOT %r = (f32[8,8]{{1,0}}) tuple(%dot)"""
    assert users_as_guessed("x.1", body.replace("OF", "x")) == ["twice.1", "transpose"]
    assert users_as_guessed("x.1", body.replace("OF", "transpose")) == ["transpose", "twice.1"]


_LOOP = """%body (s.1: (s32[], f32[32])) -> (s32[], f32[32]) {
  ROOT %s.1 = (s32[], f32[32]{0}) parameter(0)
}

%condition (s.2: (s32[], f32[32])) -> pred[] {
  %s.2 = (s32[], f32[32]{0}) parameter(0)
  ROOT %more = pred[] constant(true)
}
"""


def test_a_loop_with_a_result_nobody_reads_was_written_down_in_front_of_the_root() -> None:
    body = f"""  %p = f32[32]{{0}} parameter(0)
  %x.1 = f32[32]{{0}} negate(%p){named("x")}
  %own.1 = f32[32]{{0}} sine(%x.1){named("own")}
  %start.1 = f32[32]{{0}} exponential(%x.1){named("start")}
  %zero = s32[] constant(0)
  %init = (s32[], f32[32]{{0}}) tuple(%zero, %start.1)
  %while.1 = (s32[], f32[32]{{0}}) while(%init), condition=%condition, body=%body{named("while")}
  %end = f32[32]{{0}} get-tuple-element(%while.1), index=1
  %count = s32[] get-tuple-element(%while.1), index=INDEX
  ROOT %r = (f32[32]{{0}}, f32[32]{{0}}, s32[]) tuple(%own.1, %end, %count)"""
    assert users_as_guessed("x.1", body.replace("INDEX", "0"), head=_LOOP) == ["own.1", "start.1"]
    unread = body.replace(
        "%count = s32[] get-tuple-element(%while.1), index=INDEX", "%count = s32[] constant(7)"
    )
    assert users_as_guessed("x.1", unread, head=_LOOP) == ["start.1", "own.1"]


@pytest.mark.parametrize(
    ("name", "users"), [("mul", ["own.1", "start.1"]), ("broadcast_in_dim", ["start.1", "own.1"])]
)
def test_what_was_broadcast_for_each_was_made_one_when_such_a_result_was_gone(
    name: str, users: list[str]
) -> None:
    """CSE comes behind DCE: its walk starts from the root alone."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %x.1 = f32[32]{{0}} parameter(1)
  %none = f32[] constant(0)
  %{name}.1 = f32[32,8]{{1,0}} broadcast(%p), dimensions={{1}}{named(name)}
  %z.1 = f32[32,8]{{1,0}} broadcast(%x.1), dimensions={{0}}{named("broadcast_in_dim")}
  %own.1 = f32[32,8]{{1,0}} multiply(%{name}.1, %z.1){named("mul")}
  %start.1 = f32[32,8]{{1,0}} multiply(%z.1, %{name}.1){named("mul")}
  %sum.1 = f32[32]{{0}} reduce(%start.1, %none), dimensions={{1}}, to_apply=%sum{named("reduce_sum")}
  %zero = s32[] constant(0)
  %init = (s32[], f32[32]{{0}}) tuple(%zero, %sum.1)
  %while.1 = (s32[], f32[32]{{0}}) while(%init), condition=%condition, body=%body{named("while")}
  %end = f32[32]{{0}} get-tuple-element(%while.1), index=1
  ROOT %r = (f32[32,8]{{1,0}}, f32[32]{{0}}) tuple(%own.1, %end)"""
    assert users_as_guessed(f"{name}.1", body, head=_LOOP) == users


def test_nor_does_a_quotient_that_was_divided_again_stand_elsewhere_then() -> None:
    """`(x / b) / sin(x)`, walked to from an unread result, became `x / (b * sin(x))`."""
    body = f"""  %p = f32[32]{{0}} parameter(0)
  %b = f32[32]{{0}} parameter(1)
  %x.1 = f32[32]{{0}} negate(%p){named("x")}
  %sin.1 = f32[32]{{0}} sine(%x.1){named("sin")}
  %multiply.1 = f32[32]{{0}} multiply(%b, %sin.1)
  %div.1 = f32[32]{{0}} divide(%x.1, %multiply.1){named("div")}
  %zero = s32[] constant(0)
  %init = (s32[], f32[32]{{0}}) tuple(%zero, %div.1)
  %while.1 = (s32[], f32[32]{{0}}) while(%init), condition=%condition, body=%body{named("while")}
  %end = f32[32]{{0}} get-tuple-element(%while.1), index=1
  ROOT %r = (f32[32]{{0}}, f32[32]{{0}}) tuple(%sin.1, %end)"""
    assert users_as_guessed("x.1", body, head=_LOOP) == ["div.1", "sin.1"]
    written = body.replace("multiply(%b, %sin.1)", f"multiply(%b, %sin.1){named('mul')}")
    assert users_as_guessed("x.1", written, head=_LOOP) == ["sin.1", "div.1"]


def test_the_last_narrowed_concatenate_takes_the_place_of_the_whole() -> None:
    body = """  %p = f32[2,4]{1,0} parameter(0)
  %q = f32[2,4]{1,0} parameter(1)
  %x = f32[2,4]{1,0} negate(%p)
  %before = f32[2,4]{1,0} sine(%x)
  %left = f32[2,8]{1,0} concatenate(%q, %x), dimensions={1}
  %cut = f32[2,4]{1,0} slice(%left), slice={[0:2], [2:6]}
  %right = f32[2,8]{1,0} concatenate(%x, %q), dimensions={1}
  %cut.1 = f32[2,4]{1,0} slice(%right), slice={[0:2], [2:6]}
  ROOT %r = (f32[2,4]{1,0}, f32[2,4]{1,0}, f32[2,4]{1,0}) tuple(%before, %cut, %cut.1)"""
    ids = "p q x before r left cut right cut.1"
    assert users_of("x", body, ids=ids) == ["before", "right", "left"]


@pytest.mark.parametrize(
    ("operation", "users"),
    [("concatenate", ["whole", "left", "right"]), ("pad", ["left", "right", "whole"])],
    ids=["narrowed", "of the program"],
)
def test_a_narrowed_concatenate_with_a_constant_is_a_pad(operation: str, users: list[str]) -> None:
    body = f"""  %p = f32[2,4]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %x = f32[2,4]{{1,0}} negate(%p){named("x")}
  %left = f32[2,5]{{1,0}} pad(%x, %zero), padding=0_0x1_0{named(operation)}
  %right = f32[2,5]{{1,0}} pad(%x, %zero), padding=0_0x0_1{named(operation)}
  %ends = f32[2,1]{{1,0}} broadcast(%zero), dimensions={{}}
  %whole = f32[2,6]{{1,0}} concatenate(%ends, %x, %ends), dimensions={{1}}{named("concatenate")}
  ROOT %r = (f32[2,5]{{1,0}}, f32[2,5]{{1,0}}, f32[2,6]{{1,0}}) tuple(%left, %right, %whole)"""
    assert users_of("x", body) == users


def test_keys_of_a_sort_come_behind_what_reads_the_value_itself() -> None:
    body = """  %p = f32[32]{0} parameter(0)
  %x = f32[32]{0} negate(%p)
  %zero = f32[32]{0} constant({...})
  %own = pred[32]{0} compare(%x, %x), direction=NE
  %is_zero = pred[32]{0} compare(%x, %zero), direction=EQ
  %same_zero = f32[32]{0} select(%is_zero, %zero, %x)
  %key = f32[32]{0} select(%own, %zero, %same_zero)
  %bits = u32[32]{0} bitcast(%x)
  ROOT %r = (f32[32]{0}, u32[32]{0}) tuple(%key, %bits)"""
    ids = "p x r zero is_zero same_zero own key bits"
    assert users_of("x", body, ids=ids) == ["bits", "is_zero", "same_zero", "own"]


def test_keys_that_the_program_makes_of_a_value_stay_where_they_are() -> None:
    """As jnp.sort does: nothing took the place of a sort."""
    body = f"""  %p = f32[32]{{0}} parameter(0)
  %x = f32[32]{{0}} negate(%p)
  %zero = f32[32]{{0}} constant({{...}})
  %ne.0 = pred[32]{{0}} compare(%x, %x), direction=NE{named("ne")}
  %eq.0 = pred[32]{{0}} compare(%x, %zero), direction=EQ{named("eq")}
  %select_n.0 = f32[32]{{0}} select(%eq.0, %zero, %x){named("select_n")}
  %select_n.1 = f32[32]{{0}} select(%ne.0, %zero, %select_n.0){named("select_n")}
  %bits = u32[32]{{0}} bitcast(%x)
  ROOT %r = (f32[32]{{0}}, u32[32]{{0}}) tuple(%select_n.1, %bits)"""
    ids = "p x r zero eq.0 select_n.0 ne.0 select_n.1 bits"
    assert users_of("x", body, ids=ids) == ["ne.0", "eq.0", "select_n.0", "bits"]


def test_an_operation_moved_in_front_of_a_reshape_takes_its_place() -> None:
    body = f"""  %p = f32[32,8]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %x = f32[32]{{0}} reduce(%p, %zero), dimensions={{1}}, to_apply=%sum
  %wide = f32[32,8]{{1,0}} broadcast(%x), dimensions={{0}}{named("div")}
  %mul.0 = f32[32]{{0}} multiply(%x, %x){named("mul")}
  ROOT %r = (f32[32,8]{{1,0}}, f32[32]{{0}}) tuple(%wide, %mul.0)"""
    assert users_of("x", body, ids="p zero x r wide mul.0") == ["mul.0", "wide"]


def test_softmax_fusions_took_users_of_a_constant_along() -> None:
    text = """HloModule m

%softmax (p.1: f32[32]) -> f32[32] {
  %p.1 = f32[32]{0} parameter(0)
  %c.1 = f32[] constant(0.5)
  %half.1 = f32[32]{0} broadcast(%c.1), dimensions={}
  ROOT %multiply.9 = f32[32]{0} multiply(%p.1, %half.1)
}

ENTRY %main {
  %p = f32[32]{0} parameter(0)
  %triton_softmax = f32[32]{0} fusion(%p), kind=kCustom, calls=%softmax
  %c = f32[] constant(0.5)
  %half = f32[32]{0} broadcast(%c), dimensions={}
  %multiply.1 = f32[32]{0} multiply(%triton_softmax, %half)
  ROOT %multiply.2 = f32[32]{0} multiply(%multiply.1, %half)
}
"""
    assert users_in(text, "half", ids_known=True) == ["multiply.2", "multiply.1"]


def test_gemms_that_took_an_operation_along_come_behind() -> None:
    text = """HloModule m

%gemm (p.1: f32[8,8]) -> f32[8,8] {
  %p.1 = f32[8,8]{1,0} parameter(0)
  %operand = f32[8,8]{1,0} PROLOGUE(%p.1)
  ROOT %dot = f32[8,8]{1,0} dot(%operand, %operand), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

ENTRY %main {
  %p = f32[8,8]{1,0} parameter(0)
  %x = f32[8,8]{1,0} negate(%p)
  %view = f32[8,8]{1,0} bitcast(%x)
  %product = f32[8,8]{1,0} fusion(%view), kind=kCustom, calls=%gemm
  %scaled = f32[8,8]{1,0} sine(%x)
  ROOT %r = (f32[8,8]{1,0}, f32[8,8]{1,0}) tuple(%product, %scaled)
}
"""
    assert users_in(text.replace("PROLOGUE", "sine"), "x", ids_known=False) == ["scaled", "view"]
    assert users_in(text.replace("PROLOGUE", "bitcast"), "x", ids_known=False) == ["view", "scaled"]


def test_users_of_a_broadcast_that_was_widened_come_as_the_walk_met_their_uses() -> None:
    body = """  %p = f32[32]{0} parameter(0)
  %c = bf16[] constant(1)
  %lifted = f32[] convert(%c)
  %one = f32[32]{0} broadcast(%lifted), dimensions={}
  %add = f32[32]{0} add(%p, %one)
  %div = f32[32]{0} divide(%one, %add)
  ROOT %r = (f32[32]{0}) tuple(%div)
  %narrow = bf16[32]{0} broadcast(%c), dimensions={}"""
    assert users_as_guessed("one", body) == ["div", "add"]


def test_users_of_a_broadcast_between_convolutions_come_as_their_layouts_were_normalized() -> None:
    """As XLA has it on V100, which convolves channels first; on H100 everything stays as it is."""
    text = """HloModule m

ENTRY %main {
  %p = f32[4,4,4,8]{3,2,1,0} parameter(0), metadata={op_name="xs[0]"}
  %transpose.1.0 = f32[4,8,4,4]{3,2,1,0} transpose(%p), dimensions={0,3,1,2}, metadata={op_name="xs[0]"}
  %zero = f32[] constant(0)
  %broadcast.1.0 = f32[4,8,4,4]{3,2,1,0} broadcast(%zero), dimensions={}
  %cudnn-conv.1 = (f32[4,8,4,4]{3,2,1,0}, u8[0]{0}) custom-call(%transpose.1.0), custom_call_target="conv"
  %y = f32[4,8,4,4]{3,2,1,0} get-tuple-element(%cudnn-conv.1), index=0
  %compare.1.0 = pred[4,8,4,4]{3,2,1,0} compare(%y, %broadcast.1.0), direction=GT
  %maximum.1.0 = f32[4,8,4,4]{3,2,1,0} maximum(%y, %broadcast.1.0)
  %cudnn-conv.2 = (f32[4,8,4,4]{3,2,1,0}, u8[0]{0}) custom-call(%maximum.1.0), custom_call_target="conv"
  %z = f32[4,8,4,4]{3,2,1,0} get-tuple-element(%cudnn-conv.2), index=0
  %compare.2.0 = pred[4,8,4,4]{3,2,1,0} compare(%z, %broadcast.1.0), direction=GT
  %maximum.2.0 = f32[4,8,4,4]{3,2,1,0} maximum(%z, %broadcast.1.0)
  %select.1.0 = f32[4,8,4,4]{3,2,1,0} select(%compare.2.0, %maximum.2.0, %broadcast.1.0)
  ROOT %select.2.0 = f32[4,8,4,4]{3,2,1,0} select(%compare.1.0, %select.1.0, %broadcast.1.0)
}
"""
    users = ["compare.1.0", "maximum.1.0", "compare.2.0", "maximum.2.0", "select.1.0", "select.2.0"]
    normalized = ["compare.1.0", "compare.2.0", "maximum.1.0", "select.2.0", "maximum.2.0", "select.1.0"]
    assert users_in(text, "broadcast.1.0", ids_known=False) == normalized
    plain = text.replace('op_name="xs[0]"', 'op_name="jit(f)/transpose"')
    assert users_in(plain, "broadcast.1.0", ids_known=False) == users


# ---------------------------------------------------------------- layouts, clamps

# The first bitcast is ReshapeDecomposer's, LayoutNormalization follows.
_NORMALIZED = f"""  %p = f32[8,32]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %bitcast.1.0 = f32[2,4,32]{{2,1,0}} bitcast(%p)
  %reduce.1.0 = f32[2,4]{{1,0}} reduce(%bitcast.1.0, %zero), dimensions={{2}}, to_apply=%sum
  %broadcast.1.0 = f32[2,4,16]{{2,1,0}} broadcast(%reduce.1.0), dimensions={{0,1}}{named("mul")}
  %exponential.1.0 = f32[2,4,16]{{2,1,0}} exponential(%broadcast.1.0){named("exp")}
  %multiply.1.0 = f32[2,4,16]{{2,1,0}} multiply(%exponential.1.0, %broadcast.1.0){named("mul")}
  %add.1.0 = f32[2,4,16]{{2,1,0}} add(%exponential.1.0, %broadcast.1.0){named("add")}
  %divide.1.0 = f32[2,4,16]{{2,1,0}} divide(%exponential.1.0, %broadcast.1.0){named("div")}
  ROOT %tuple.1.0 = (f32[2,4,16]{{2,1,0}}, f32[2,4,16]{{2,1,0}}, f32[2,4,16]{{2,1,0}}) RESULT"""
_NORMALIZED = _NORMALIZED.replace("RESULT", "tuple(%multiply.1.0, %add.1.0, %divide.1.0)")
_AGE = "p zero tuple.1.0 bitcast.1.0 reduce.1.0 broadcast.1.0 exponential.1.0 multiply.1.0 add.1.0 divide.1.0"


def test_what_one_operation_was_expanded_into_keeps_its_order() -> None:
    """An expanded rng-bit-generator looks like what LayoutNormalization made, but for op_name."""
    body = f"""  %p = u32[8]{{0}} parameter(0)
  %multiply.1.0 = u32[8]{{0}} multiply(%p, %p){named("bits")}
  %and.1.0 = u32[8]{{0}} and(%multiply.1.0, %p){named("bits")}
  %xor.1.0 = u32[8]{{0}} xor(%and.1.0, %multiply.1.0){named("bits")}
  ROOT %tuple.1.0 = (u32[8]{{0}}) tuple(%xor.1.0)"""
    ids = "p tuple.1.0 multiply.1.0 and.1.0 xor.1.0"
    assert users_of("multiply.1.0", body, ids=ids) == ["and.1.0", "xor.1.0"]


def test_the_second_user_of_a_normalized_layout_takes_the_place_of_the_bitcast_behind_it() -> None:
    """The first one had its operand before there was a bitcast; every other one finds bitcasts of its own."""
    assert users_of("exponential.1.0", _NORMALIZED, ids=_AGE) == ["add.1.0", "multiply.1.0", "divide.1.0"]


def test_users_met_on_one_way_all_read_a_normalized_layout_itself() -> None:
    """Only the last takes the place of the bitcast."""
    body = _NORMALIZED.replace(
        "add(%exponential.1.0, %broadcast.1.0)", "add(%multiply.1.0, %exponential.1.0)"
    )
    body = body.replace("divide(%exponential.1.0, %broadcast.1.0)", "divide(%add.1.0, %exponential.1.0)")
    body = body.replace("tuple(%multiply.1.0, %add.1.0, ", "tuple(")
    body = body.replace(
        "(f32[2,4,16]{2,1,0}, f32[2,4,16]{2,1,0}, f32[2,4,16]{2,1,0})", "(f32[2,4,16]{2,1,0})"
    )
    listed = ["divide.1.0", "multiply.1.0", "add.1.0"]
    assert users_of("exponential.1.0", body, ids=_AGE) == listed


def test_values_that_were_row_major_all_along_keep_their_users() -> None:
    ids = _AGE.replace("tuple.1.0 bitcast.1.0 ", "") + " tuple.1.0 bitcast.1.0"
    listed = ["multiply.1.0", "add.1.0", "divide.1.0"]
    assert users_of("exponential.1.0", _NORMALIZED, ids=ids) == listed
    # What shares a layout with an operation of the program was never made anew.
    kept = _NORMALIZED.replace("%divide.1.0", "%div.1.0")
    assert users_of("exponential.1.0", kept, ids=_AGE.replace("divide.1.0", "div.1.0")) == [
        *listed[:2],
        "div.1.0",
    ]


def test_a_reduction_of_a_normalized_layout_comes_behind() -> None:
    """It goes on reading a bitcast until it is made anew itself, in the place of that."""
    body = f"""  %p = f32[8,32]{{1,0}} parameter(0)
  %bitcast.1.0 = f32[2,4,32]{{2,1,0}} bitcast(%p)
  %exponential.1.0 = f32[2,4,32]{{2,1,0}} exponential(%bitcast.1.0){named("exp")}
  %zero = f32[] constant(0)
  %reduce.1.0 = f32[2,4]{{1,0}} reduce(%exponential.1.0, %zero), dimensions={{2}}, to_apply=%sum
  %broadcast.1.0 = f32[2,4,32]{{2,1,0}} broadcast(%reduce.1.0), dimensions={{0,1}}{named("div")}
  %divide.1.0 = f32[2,4,32]{{2,1,0}} divide(%exponential.1.0, %broadcast.1.0){named("div")}
  ROOT %tuple.1.0 = (f32[2,4,32]{{2,1,0}}) tuple(%divide.1.0)"""
    ids = "p zero tuple.1.0 bitcast.1.0 exponential.1.0 broadcast.1.0 divide.1.0"
    assert users_of("exponential.1.0", body, ids=f"{ids} reduce.1.0") == ["divide.1.0", "reduce.1.0"]


def test_the_last_user_of_a_merged_product_takes_the_place_of_its_reshape() -> None:
    product = 'metadata={op_name="jit(f)/dot_general"}'
    body = f"""  %p = f32[16,64]{{1,0}} parameter(0)
  %x = f32[2,8,64]{{2,1,0}} bitcast(%p)
  %slice.1.0 = f32[2,8,32]{{2,1,0}} slice(%x), slice={{[0:2], [0:8], [32:64]}}, {product}
  %exp.1 = f32[2,8,32]{{2,1,0}} exponential(%slice.1.0){named("exp")}
  %add.1 = f32[2,8,32]{{2,1,0}} add(%exp.1, %slice.1.0){named("add")}
  %mul.1 = f32[2,8,32]{{2,1,0}} multiply(%add.1, %slice.1.0){named("mul")}
  ROOT %r = (f32[2,8,32]{{2,1,0}}) tuple(%mul.1)"""
    assert users_as_guessed("slice.1.0", body) == ["mul.1", "exp.1", "add.1"]
    assert users_as_guessed("slice.1.0", body.replace("bitcast(", "copy(")) == ["exp.1", "add.1", "mul.1"]


def test_the_last_user_of_a_number_takes_the_place_of_a_broadcast_that_was_there_already() -> None:
    """The second broadcast to f32[8] went, and what came last stands in its place."""
    body = """  %p = f32[] parameter(0)
  %q = f32[8]{0} parameter(1)
  %n = f32[16]{0} parameter(2)
  %m = f32[32]{0} parameter(3)
  %x = f32[] exponential(%p)
  %b.1 = f32[8]{0} broadcast(%x), dimensions={}
  %first = f32[8]{0} multiply(%q, %b.1)
  %second = f32[8]{0} add(%q, %b.1)
  %b.2 = f32[16]{0} broadcast(%x), dimensions={}
  %third = f32[16]{0} multiply(%n, %b.2)
  %b.3 = f32[32]{0} broadcast(%x), dimensions={}
  %fourth = f32[32]{0} multiply(%m, %b.3)
  ROOT %r = (f32[8]{0}, f32[8]{0}, f32[16]{0}, f32[32]{0}) tuple(%first, %second, %third, %fourth)"""
    assert users_as_guessed("x", body) == ["b.1", "b.3", "b.2"]


def test_the_side_input_of_a_convolution_was_met_before_the_convolution() -> None:
    body = """  %p = f32[8]{0} parameter(0)
  %x = f32[8]{0} exponential(%p)
  %inner = f32[8]{0} negate(%x)
  %side = f32[8]{0} sine(%x)
  %conv = (f32[8]{0}, u8[0]{0}) custom-call(%inner, %p, %p, SIDE), custom_call_target="TARGET"
  ROOT %y = f32[8]{0} get-tuple-element(%conv), index=0"""
    fused = body.replace("TARGET", "__cudnn$convBiasActivationForward")
    assert users_as_guessed("x", fused.replace("SIDE", "%side")) == ["side", "inner"]
    assert users_as_guessed("x", body.replace("SIDE", "%side")) == ["inner", "side"]
    more = "  %more = f32[8]{0} cosine(%x)\n  %conv ="
    assert users_as_guessed("x", fused.replace("  %conv =", more).replace("SIDE", "%side, %more")) == [
        "side",
        "inner",
        "more",
    ]


@pytest.mark.parametrize(
    ("ids", "listed"),
    [
        ("p x.1 inner.1 side.1 y.1 conv", "inner.1 side.1"),
        ("p x.1 side.1 inner.1 y.1 conv", "side.1 inner.1"),
    ],
)
def test_a_convolution_was_met_first_where_its_side_input_is_younger(ids: str, listed: str) -> None:
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %x.1 = f32[8]{{0}} exponential(%p){named("x")}
  %inner.1 = f32[8]{{0}} negate(%x.1){named("inner")}
  %side.1 = f32[8]{{0}} sine(%x.1){named("side")}
  %conv = (f32[8]{{0}}, u8[0]{{0}}) custom-call(%inner.1, %p, %p, %side.1), CALLED
  ROOT %y.1 = f32[8]{{0}} get-tuple-element(%conv), index=0{named("y")}"""
    body = body.replace("CALLED", 'custom_call_target="__cudnn$convBiasActivationForward"')
    assert users_of("x.1", body, ids=ids) == listed.split()


@pytest.mark.parametrize("operands", ["%x, %low", "%low, %x"])
def test_a_clamp_comes_last_and_has_taken_the_minimum_of_the_maximum_away(operands: str) -> None:
    body = f"""  %p = f32[32]{{0}} parameter(0)
  %low = f32[32]{{0}} parameter(1)
  %high = f32[32]{{0}} parameter(2)
  %x = f32[32]{{0}} negate(%p)
  %clamp.1 = f32[32]{{0}} clamp(%low, %x, %high){named("min")}
  %max.1 = f32[32]{{0}} maximum({operands}){named("max")}
  %eq.1 = pred[32]{{0}} compare(%max.1, %clamp.1), direction=EQ{named("eq")}
  %eq.2 = pred[32]{{0}} compare(%x, %max.1), direction=EQ{named("eq")}
  %eq.3 = pred[32]{{0}} compare(%low, %max.1), direction=EQ{named("eq")}
  ROOT %r = (pred[32]{{0}}, pred[32]{{0}}, pred[32]{{0}}) tuple(%eq.1, %eq.2, %eq.3)"""
    assert users_as_guessed("x", body) == ["max.1", "eq.2", "clamp.1"]
    assert users_as_guessed("max.1", body) == ["eq.3", "eq.1", "eq.2"]


def test_a_bound_made_for_the_inner_operation_is_read_by_the_clamp_before_others_are_merged() -> None:
    body = f"""  %p = f32[32]{{0}} parameter(0)
  %high = f32[32]{{0}} parameter(1)
  %none = f32[] constant(0)
  %low = f32[32]{{0}} broadcast(%none), dimensions={{}}{named("max")}
  %x = f32[32]{{0}} negate(%p)
  %clamp.1 = f32[32]{{0}} clamp(%low, %x, %high){named("min")}
  %max.1 = f32[32]{{0}} maximum(%low, %x){named("max")}
  %eq.3 = pred[32]{{0}} compare(%low, %max.1), direction=EQ{named("eq")}
  %eq.1 = pred[32]{{0}} compare(%max.1, %clamp.1), direction=EQ{named("eq")}
  ROOT %r = (pred[32]{{0}}, pred[32]{{0}}) tuple(%eq.3, %eq.1)"""
    assert users_as_guessed("low", body) == ["max.1", "clamp.1", "eq.3"]


def test_a_clamp_of_which_nothing_else_is_left_stands_where_its_inner_operation_stood() -> None:
    body = f"""  %p = f32[32]{{0}} parameter(0)
  %low = f32[32]{{0}} parameter(1)
  %high = f32[32]{{0}} parameter(2)
  %x = f32[32]{{0}} negate(%p)
  %clamp.1 = f32[32]{{0}} clamp(%low, %x, %high){named("min")}
  %gt.1 = pred[32]{{0}} compare(%x, %low), direction=GT{named("gt")}
  ROOT %r = (f32[32]{{0}}, pred[32]{{0}}) tuple(%clamp.1, %gt.1)"""
    assert users_as_guessed("x", body) == ["clamp.1", "gt.1"]
    assert users_as_guessed("low", body) == ["clamp.1", "gt.1"]


def test_copies_and_choices_of_tuples_keep_their_users() -> None:
    for made in ("copy(%a)", "select(%c, %a, %a)"):
        module = parse_module(f"""HloModule m

ENTRY %main {{
  %c = pred[] parameter(0)
  %a = (f32[4]{{0}}, f32[4]{{0}}) parameter(1)
  %pair = (f32[4]{{0}}, f32[4]{{0}}) {made}
  %x = f32[4]{{0}} get-tuple-element(%pair), index=0
  %y = f32[4]{{0}} get-tuple-element(%pair), index=1
  ROOT %r = f32[4]{{0}} add(%x, %y)
}}""")
        restore_users_order(module)
        assert [u.name for u in find(module, "pair").users] == ["x", "y"]
