"""A value that is reshaped in several places of an expression; XLA was asked for all of these."""

from __future__ import annotations

import pytest

from .lists import named, places_in_source, users_of

_TWICE, _ONCE, _OF_OTHER_LENGTH = 20, 0, 19


def _places(length: int) -> str:
    """An expression of which one operation is left: a reshape has gone, and another of a `length`."""
    other = [("f", 2, 32, 32 + length)] if length else []
    return places_in_source(("f", 2, 1, 60), ("f", 2, 9, 29), *other)


@pytest.mark.parametrize(
    ("length", "users"),
    [
        (_TWICE, ["reshape", "maximum", "double", "sum"]),
        (_ONCE, ["reshape", "double", "sum", "maximum"]),
        (_OF_OTHER_LENGTH, ["reshape", "double", "sum", "maximum"]),
    ],
)
def test_the_last_user_took_the_place_of_an_equal_reshape(length: int, users: list[str]) -> None:
    body = f"""  %p = f32[256,2,8]{{2,1,0}} parameter(0)
  %zero = f32[] constant(0)
  %x = f32[256,2,8]{{2,1,0}} sine(%p){named("sin")}
  %reshape = f32[512,8]{{1,0}} bitcast(%x){named("sin")}
  %sort = f32[512,8]{{1,0}} sort(%reshape), dimensions={{0}}, to_apply=%sum{named("sort")}
  %add = f32[512,8]{{1,0}} add(%sort, %reshape){named("add", frame=1)}
  %double = f32[256,2,8]{{2,1,0}} add(%x, %x){named("add")}
  %sum = f32[256,8]{{1,0}} reduce(%x, %zero), dimensions={{1}}, to_apply=%sum{named("reduce_sum")}
  %maximum = f32[2,8]{{1,0}} reduce(%x, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_max")}
  ROOT %r = (f32[512,8], f32[256,2,8], f32[256,8], f32[2,8]) tuple(%add, %double, %sum, %maximum)"""
    assert users_of("x", body, tables=_places(length)) == users


@pytest.mark.parametrize(
    ("length", "users"),
    [
        (_TWICE, ["reshape", "sum", "double", "for.scan"]),
        (_ONCE, ["reshape", "double", "sum", "for.scan"]),
    ],
)
def test_what_a_cumulative_sum_is_split_in_reshapes_last(length: int, users: list[str]) -> None:
    window = "window={size=1x16x1 pad=0_0x15_0x0_0}"
    body = f"""  %p = f32[256,2,8]{{2,1,0}} parameter(0)
  %zero = f32[] constant(0)
  %x = f32[256,2,8]{{2,1,0}} sine(%p){named("sin")}
  %for.scan = f32[32,16,8]{{2,1,0}} bitcast(%x)
  %scan = f32[32,16,8]{{2,1,0}} reduce-window(%for.scan, %zero), {window}, to_apply=%sum
  %scanned = f32[512,8]{{1,0}} bitcast(%scan)
  %reshape = f32[512,8]{{1,0}} bitcast(%x){named("sin")}
  %add = f32[512,8]{{1,0}} add(%scanned, %reshape){named("add", frame=1)}
  %double = f32[256,2,8]{{2,1,0}} add(%x, %x){named("add")}
  %sum = f32[256,8]{{1,0}} reduce(%x, %zero), dimensions={{1}}, to_apply=%sum{named("reduce_sum")}
  ROOT %r = (f32[512,8], f32[256,2,8], f32[256,8]) tuple(%add, %double, %sum)"""
    assert users_of("x", body, tables=_places(length)) == users


@pytest.mark.parametrize(
    ("spread", "users"),
    [("mul", ["bitcast.1", "mul.3", "sub.3"]), ("broadcast_in_dim", ["bitcast.1", "sub.3", "mul.3"])],
)
def test_a_derivative_spreads_what_it_reads_once_more(spread: str, users: list[str]) -> None:
    """The reshape ahead of its broadcast went, and the last user took the place of that."""
    body = f"""  %p = f32[4,1,8]{{2,1,0}} parameter(0)
  %q = f32[4,2,8]{{2,1,0}} parameter(1)
  %g = f32[4,2,8]{{2,1,0}} parameter(2)
  %one = f32[4,1,8]{{2,1,0}} parameter(3)
  %div.1 = f32[4,1,8]{{2,1,0}} negate(%p){named("div")}
  %bitcast.1 = f32[4,8]{{1,0}} bitcast(%div.1){named("div")}
  %{spread}.1 = f32[4,2,8]{{2,1,0}} broadcast(%bitcast.1), dimensions={{0,2}}{named(spread)}
  %mul.7 = f32[4,2,8]{{2,1,0}} multiply(%q, %{spread}.1){named("mul")}
  %mul.8 = f32[4,2,8]{{2,1,0}} multiply(%g, %{spread}.1){named("mul")}
  %sub.3 = f32[4,1,8]{{2,1,0}} subtract(%one, %div.1){named("sub")}
  %mul.3 = f32[4,1,8]{{2,1,0}} multiply(%div.1, %sub.3){named("mul")}
  ROOT %r = (f32[4,2,8]{{2,1,0}}, f32[4,2,8]{{2,1,0}}, f32[4,1,8]{{2,1,0}}) tuple(%mul.7, %mul.8, %mul.3)"""
    assert users_of("div.1", body) == users


def test_what_the_program_reshaped_is_reshaped_once_however_often_that_is_spread() -> None:
    body = f"""  %q = f32[4,2,8]{{2,1,0}} parameter(0)
  %g = f32[4,2,8]{{2,1,0}} parameter(1)
  %v = f32[32]{{0}} parameter(2)
  %bitcast.1 = f32[4,8]{{1,0}} bitcast(%v)
  %mul.1 = f32[4,2,8]{{2,1,0}} broadcast(%bitcast.1), dimensions={{0,2}}{named("mul")}
  %mul.7 = f32[4,2,8]{{2,1,0}} multiply(%q, %mul.1){named("mul")}
  %mul.8 = f32[4,2,8]{{2,1,0}} multiply(%g, %mul.1){named("mul")}
  %mul.2 = f32[32]{{0}} multiply(%v, %v){named("square")}
  %sub.3 = f32[32]{{0}} subtract(%v, %mul.2){named("sub")}
  ROOT %r = (f32[4,2,8]{{2,1,0}}, f32[4,2,8]{{2,1,0}}, f32[32]{{0}}) tuple(%mul.7, %mul.8, %sub.3)"""
    assert users_of("v", body) == ["bitcast.1", "mul.2", "sub.3"]


@pytest.mark.parametrize(
    ("second", "users"),
    [
        ("dot_general", ["reshape", "of.first", "of.third", "of.second"]),
        ("mul", ["reshape", "of.first", "of.second", "of.third"]),
    ],
)
def test_the_vector_of_each_product_is_reshaped_until_cse(second: str, users: list[str]) -> None:
    """As a network that ends in one value for every example has it, which is called for two batches."""
    back = named("transpose(jvp())/dot_general")
    body = f"""  %p = f32[4,2,8]{{2,1,0}} parameter(0)
  %q = f32[4,2,8]{{2,1,0}} parameter(1)
  %g = f32[4,16]{{1,0}} parameter(2)
  %w = f32[16]{{0}} parameter(3)
  %vector = f32[4,16]{{1,0}} broadcast(%w), dimensions={{1}}{named("dot_general")}
  %reshape = f32[4,2,8]{{2,1,0}} bitcast(%vector){named("dot_general")}
  %first = f32[4,2,8]{{2,1,0}} multiply(%p, %reshape){named("dot_general")}
  %of.first = f32[4,16]{{1,0}} multiply(%g, %vector){back}
  %second = f32[4,2,8]{{2,1,0}} multiply(%q, %reshape){named(second)}
  %of.second = f32[4,16]{{1,0}} add(%g, %vector){back}
  %of.third = f32[4,16]{{1,0}} subtract(%g, %vector){back}
  %firsts = (f32[4,2,8], f32[4,16]) tuple(%first, %of.first)
  %seconds = (f32[4,2,8], f32[4,16]) tuple(%second, %of.second)
  %both = ((f32[4,2,8], f32[4,16]), (f32[4,2,8], f32[4,16])) tuple(%firsts, %seconds)
  ROOT %r = (((f32[4,2,8], f32[4,16]), (f32[4,2,8], f32[4,16])), f32[4,16]) tuple(%both, %of.third)"""
    assert users_of("vector", body) == users


@pytest.mark.parametrize(
    ("frame", "users"),
    [
        (2, ["add.1", "negate", "double"]),
        (1, ["add.1", "double", "negate"]),
    ],
)
def test_each_call_of_a_function_reshapes_what_it_spreads(frame: int, users: list[str]) -> None:
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %x = f32[64,8]{{1,0}} parameter(1)
  %y = f32[64,8]{{1,0}} parameter(2)
  %add.1 = f32[64,8]{{1,0}} broadcast(%p), dimensions={{1}}{named("add", frame=1)}
  %first = f32[64,8]{{1,0}} add(%x, %add.1){named("add", frame=1)}
  %again = f32[64,8]{{1,0}} add(%y, %add.1){named("add", frame=frame)}
  %double = f32[8]{{0}} add(%p, %p){named("add")}
  %negate = f32[8]{{0}} negate(%p){named("neg")}
  ROOT %r = (f32[64,8], f32[64,8], f32[8], f32[8]) tuple(%first, %again, %double, %negate)"""
    assert users_of("p", body, tables=_places(_TWICE)) == users


@pytest.mark.parametrize(
    ("stacked", "name", "users"),
    [
        ("%row, %row, %other", "stack", ["row", "total", "double"]),
        ("%row, %other, %row", "stack", ["row", "double", "total"]),
        ("%row, %row, %other", "concatenate", ["row", "double", "total"]),
    ],
    ids=["next to it", "behind the other", "stacked by no function"],
)
def test_what_is_stacked_twice_was_reshaped_for_each_place(stacked: str, name: str, users: list[str]) -> None:
    """`jnp.stack([x, x, x + x])`, of which HloCSE kept the first reshape."""
    body = f"""  %x = f32[256]{{0}} parameter(0)
  %zero = f32[] constant(0)
  %row = f32[1,256]{{1,0}} bitcast(%x)
  %double = f32[256]{{0}} add(%x, %x){named("add")}
  %other = f32[1,256]{{1,0}} bitcast(%double){named("add")}
  %stack = f32[3,256]{{1,0}} concatenate({stacked}), dimensions={{0}}{named(name)}
  %total = f32[] reduce(%x, %zero), dimensions={{0}}, to_apply=%sum{named("reduce_sum")}
  ROOT %r = (f32[3,256]{{1,0}}, f32[]) tuple(%stack, %total)"""
    assert users_of("x", body) == users


@pytest.mark.parametrize(
    ("frames", "users"),
    [((1, 3, 3), ["flat.1", "set.1", "cos.1", "sin.1", "set.2"]), ((1, 3, 4), None), ((2, 3, 3), None)],
    ids=["of two calls", "of two places", "searched elsewhere"],
)
def test_each_call_of_a_function_searched_for_the_place_of_its_window(
    frames: tuple[int, int, int], users: list[str] | None
) -> None:
    """`x.at[argmax(x)].set(...)` in a function that is called twice: CSE keeps the reshape of the first."""
    search, first, second = frames
    body = f"""  %x = f32[2,8]{{1,0}} parameter(0)
  %one = f32[1,1]{{1,0}} parameter(1)
  %i = s32[16]{{0}} iota(), iota_dimension=0
  %c = f32[] constant(0)
  %zero = s32[] constant(0)
  %flat.1 = f32[16]{{0}} bitcast(%x){named("x")}
  %reduce.1 = (f32[], s32[]) reduce(%flat.1, %i, %c, %zero), dimensions={{0}}, to_apply=%search\
{named("reduce", frame=search)}
  %place.1 = s32[] get-tuple-element(%reduce.1), index=1
  %set.1 = f32[2,8]{{1,0}} dynamic-update-slice(%x, %one, %zero, %place.1){named("set", frame=first)}
  %cos.1 = f32[2,8]{{1,0}} cosine(%x){named("cos", frame=5)}
  %set.2 = f32[2,8]{{1,0}} dynamic-update-slice(%x, %one, %zero, %place.1){named("set", frame=second)}
  %add.1 = f32[2,8]{{1,0}} add(%cos.1, %set.2){named("add", frame=5)}
  %sin.1 = f32[2,8]{{1,0}} sine(%x){named("sin", frame=5)}
  ROOT %r = (f32[2,8]{{1,0}}, f32[2,8]{{1,0}}, f32[2,8]{{1,0}}) tuple(%set.1, %add.1, %sin.1)"""
    head = """%search (v: f32[], i: s32[], w: f32[], j: s32[]) -> (f32[], s32[]) {
  %v = f32[] parameter(0)
  %i = s32[] parameter(1)
  %w = f32[] parameter(2)
  %j = s32[] parameter(3)
  ROOT %r = (f32[], s32[]) tuple(%v, %i)
}"""
    places = (
        ("find", 2, 8, 20),
        ("main", 7, 8, 30),
        ("find", 3, 8, 20),
        ("find", 4, 8, 20),
        ("main", 9, 8, 30),
    )
    tables = places_in_source(*places, called_from={1: 5, 3: 5, 4: 5})
    expected = users or ["flat.1", "set.1", "cos.1", "set.2", "sin.1"]
    assert users_of("x", body, head=head, tables=tables) == expected
