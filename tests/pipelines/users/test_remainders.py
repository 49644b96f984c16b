"""Remainders of divisions by a power of two, as XLA's records show them."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("operation", "users"),
    [("rem", ["choice", "exp.1", "sign", "negated"]), ("abs", ["sign", "negated", "choice", "exp.1"])],
)
def test_the_choice_takes_the_place_of_the_remainder(operation: str, users: list[str]) -> None:
    """x % 4, which is (x < 0 ? -x : x) & 3 with the sign of x, ahead of another user."""
    body = f"""  %p = s32[8]{{0}} parameter(0)
  %x.1 = s32[8]{{0}} not(%p){named("not")}
  %zero = s32[8]{{0}} broadcast(%c), dimensions={{}}
  %sign = pred[8]{{0}} compare(%x.1, %zero), direction=LT{named(operation)}
  %negated = s32[8]{{0}} negate(%x.1){named(operation)}
  %choice = s32[8]{{0}} select(%sign, %negated, %x.1){named(operation)}
  %exp.1 = s32[8]{{0}} abs(%x.1){named("exp")}
  ROOT %r = (s32[8]{{0}}, s32[8]{{0}}) tuple(%choice, %exp.1)"""
    body = body.replace("  %zero", "  %c = s32[] constant(0)\n  %zero")
    assert users_of("x.1", body) == users


@pytest.mark.parametrize(
    ("of", "last", "users"),
    [
        ("div", "sign.1", ["negated", "sign.1", "choice", "below"]),
        ("div", "shifted", ["sign.1", "choice", "negated", "below"]),
        ("rem", "sign.1", ["choice", "sign.1", "below", "negated"]),
    ],
    ids=["and divided by it", "the quotient last", "a remainder alone"],
)
def test_what_the_quotient_by_the_same_power_had_is_gone(of: str, last: str, users: list[str]) -> None:
    """x // 2 divides, takes the sign and then the remainder: both of the former and the latter choose."""
    body = f"""  %p = s32[8]{{0}} parameter(0)
  %c = s32[] constant(0)
  %one = s32[8]{{0}} parameter(1)
  %x.1 = s32[8]{{0}} not(%p){named("not")}
  %zero = s32[8]{{0}} broadcast(%c), dimensions={{}}
  %below = pred[8]{{0}} compare(%x.1, %zero), direction=LT{named("rem")}
  %negated = s32[8]{{0}} negate(%x.1){named("rem")}
  %choice = s32[8]{{0}} select(%below, %negated, %x.1){named("rem")}
  %shifted = s32[8]{{0}} shift-right-logical(%choice, %one){named(of)}
  %sign.1 = s32[8]{{0}} sign(%x.1){named("sign")}
  ROOT %r = (s32[8]{{0}}, s32[8]{{0}}) tuple(%shifted, %sign.1)"""
    if last == "shifted":
        (sign,) = (line for line in body.splitlines() if "%sign.1 =" in line)
        body = body.replace(f"{sign}\n", "").replace("  %below", f"{sign}\n  %below")
        body = body.replace("tuple(%shifted, %sign.1)", "tuple(%sign.1, %shifted)")
    assert users_of("x.1", body) == users


@pytest.mark.parametrize(
    ("first", "users"),
    [("max.1", ["max.1", "lt.1", "ne.1", "sign", "sign.2"]), ("sign", ["sign", "lt.1", "ne.1", "sign.2"])],
)
def test_zeros_were_given_the_signs_last(first: str, users: list[str]) -> None:
    """max(0, x) ahead of a % 4 and b % 4; without it, the zeros that stayed are those of a sign."""
    body = f"""  %p = s32[8]{{0}} parameter(0)
  %q = s32[8]{{0}} parameter(1)
  %x = s32[8]{{0}} parameter(2)
  %c = s32[] constant(0)
  %zero = s32[8]{{0}} broadcast(%c), dimensions={{}}
  %max.1 = s32[8]{{0}} maximum(%zero, %x){named("max")}
  %sign = pred[8]{{0}} compare(%p, %zero), direction=LT{named("rem")}
  %rest = s32[8]{{0}} select(%sign, %q, %p){named("rem")}
  %lt.1 = pred[8]{{0}} compare(%rest, %zero), direction=LT{named("lt")}
  %ne.1 = pred[8]{{0}} compare(%rest, %zero), direction=NE{named("ne")}
  %sign.2 = pred[8]{{0}} compare(%q, %zero), direction=LT{named("rem")}
  ROOT %r = (s32[8]{{0}}, pred[8]{{0}}, pred[8]{{0}}, pred[8]{{0}}) tuple(%x, %lt.1, %ne.1, %sign.2)"""
    old, new = ("tuple(%x", "tuple(%max.1") if first == "max.1" else ("%zero, %x", "%x, %x")
    body = body.replace(old, new)
    assert users_of("zero", body) == users


def test_zeros_made_for_a_sign_were_given_the_signs_of_other_calls_last() -> None:
    """(a % 32) and b % 8 of calls: the zeros of both signs are younger than what the calls brought."""
    of = "jit(f)/jit(remainder)"
    body = f"""  %p = s32[8]{{0}} parameter(0)
  %q = s32[8]{{0}} parameter(1)
  %c = s32[] constant(0)
  %zero = s32[8]{{0}} broadcast(%c), dimensions={{}}
  %sign = pred[8]{{0}} compare(%p, %zero), direction=LT{named(f"{of}/rem", frame=1)}
  %rest = s32[8]{{0}} select(%sign, %q, %p){named(f"{of}/rem", frame=1)}
  %lt.1 = pred[8]{{0}} compare(%rest, %zero), direction=LT{named(f"{of}/lt", frame=1)}
  %ne.1 = pred[8]{{0}} compare(%rest, %zero), direction=NE{named(f"{of}/ne", frame=1)}
  %sign.2 = pred[8]{{0}} compare(%q, %zero), direction=LT{named(f"{of}/rem", frame=2)}
  ROOT %r = (pred[8]{{0}}, pred[8]{{0}}, pred[8]{{0}}) tuple(%lt.1, %ne.1, %sign.2)"""
    ids = "p q lt.1 ne.1 r - c zero sign rest - sign.2"
    assert users_of("zero", body, ids=ids) == ["sign", "lt.1", "ne.1", "sign.2"]


@pytest.mark.parametrize(
    ("reader", "users"),
    [("gather", ["ne.1", "max.1", "ne.3", "ne.2"]), ("negate", ["ne.1", "max.1", "ne.2", "ne.3"])],
)
def test_an_index_that_is_not_negative_was_compared_with_zeros(reader: str, users: list[str]) -> None:
    """`take` looks for negative ones behind max(0, i); the last user stands where it did."""
    read = "f32[8,1]{1,0} gather(%x, %at), offset_dims={1}, collapsed_slice_dims={}, start_index_map={0}"
    if reader == "gather":
        read += ", index_vector_dim=1, slice_sizes={1}"
    else:
        read = "s32[8,1]{1,0} negate(%at)"
    body = f"""  %p = s32[8]{{0}} parameter(0)
  %x = f32[8]{{0}} parameter(1)
  %q = s32[8]{{0}} parameter(2)
  %c = s32[] constant(0)
  %zero = s32[8]{{0}} broadcast(%c), dimensions={{}}
  %ne.1 = pred[8]{{0}} compare(%p, %zero), direction=NE{named("ne")}
  %i = s32[8]{{0}} convert(%ne.1){named("convert")}
  %max.1 = s32[8]{{0}} maximum(%zero, %i){named("max")}
  %at = s32[8,1]{{1,0}} bitcast(%max.1)
  %read = {read}
  %ne.2 = pred[8]{{0}} compare(%q, %zero), direction=NE{named("ne")}
  %ne.3 = pred[8]{{0}} compare(%i, %zero), direction=NE{named("ne")}
  ROOT %r = ({read.split(" ")[0]}, pred[8]{{0}}, pred[8]{{0}}) tuple(%read, %ne.2, %ne.3)"""
    assert users_of("zero", body) == users


@pytest.mark.parametrize(
    ("bound", "other", "users"),
    [
        ("le", "lt", ["gather.1", "le.1", "lt.1"]),
        ("lt", "le", ["lt.1", "gather.1", "le.1"]),
        ("le", "ge", ["le.1", "ge.1", "gather.1"]),
    ],
    ids=["one bound", "listed first", "both bounds"],
)
def test_the_last_to_read_an_index_that_is_not_negative_stands_where_its_lower_bound_did(
    bound: str, other: str, users: list[str]
) -> None:
    """`take` compares it with zero first, then with the last row."""
    body = f"""  %x = f32[8]{{0}} parameter(0)
  %q = s32[4,1]{{1,0}} parameter(1)
  %at = s32[4,1]{{1,0}} iota(), iota_dimension=0
  %{bound}.1 = pred[4,1]{{1,0}} compare(%at, %q), direction=LE{named(f"jit(_take)/{bound}")}
  %{other}.1 = pred[4,1]{{1,0}} compare(%at, %q), direction=GE{named(f"jit(_take)/{other}")}
  %gather.1 = f32[4,1]{{1,0}} gather(%x, %at), offset_dims={{1}}, collapsed_slice_dims={{}},\
 start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1}}{named("jit(_take)/gather")}
  ROOT %r = (pred[4,1]{{1,0}}, pred[4,1]{{1,0}}, f32[4,1]{{1,0}}) tuple(%{bound}.1, %{other}.1, %gather.1)"""
    assert users_of("at", body) == users


@pytest.mark.parametrize(
    ("operations", "users"),
    [
        (("rem", "div"), ["select_n.1", "select.1", "select.2"]),
        (("a", "b"), ["select_n.1", "select.2", "select.1"]),
    ],
)
def test_the_sign_that_a_remainder_chooses_by_was_given_to_no_call(
    operations: tuple[str, str], users: list[str]
) -> None:
    """The program looks for negative indices itself: HloCSE had the choices read its comparison."""
    first, second = (named(f"jit(floor_divide)/{x}", frame=1) for x in operations)
    body = f"""  %p = s32[8]{{0}} parameter(0)
  %q = s32[8]{{0}} parameter(1)
  %lt.1 = pred[8]{{0}} compare(%p, %q), direction=LT{named("lt")}
  %select_n.1 = s32[8]{{0}} select(%lt.1, %p, %q){named("select_n")}
  %select.1 = s32[8]{{0}} select(%lt.1, %q, %p){first}
  %select.2 = s32[8]{{0}} select(%lt.1, %q, %q){second}
  ROOT %r = (s32[8]{{0}}, s32[8]{{0}}, s32[8]{{0}}) tuple(%select_n.1, %select.1, %select.2)"""
    assert users_of("lt.1", body, ids="p q lt.1 select_n.1 r select.1 select.2") == users


@pytest.mark.parametrize(
    ("moved", "users"),
    [
        ("add(%p, %other)", ["lt.1", "to.1", "select_n.1"]),
        ("subtract(%p, %other)", ["lt.1", "select_n.1", "to.1"]),
    ],
    ids=["two constants", "another operation"],
)
def test_the_last_to_read_a_sum_with_a_constant_stands_where_another_constant_was_added(
    moved: str, users: list[str]
) -> None:
    """`x[i - 1]` counts from the end where `i - 1` is negative: the two constants are made one."""
    body = f"""  %p = s32[] parameter(0)
  %zero = s32[] constant(0)
  %one = s32[] constant(-1)
  %other = s32[] constant(30)
  %before.1 = s32[] add(%p, %one){named("sub")}
  %lt.1 = pred[] compare(%before.1, %zero), direction=LT{named("lt")}
  %add.1 = s32[] {moved}{named("add")}
  %select_n.1 = s32[] select(%lt.1, %add.1, %before.1){named("select_n")}
  %to.1 = f32[] convert(%before.1){named("convert_element_type")}
  ROOT %r = (s32[], f32[]) tuple(%select_n.1, %to.1)"""
    assert users_of("before.1", body) == users
