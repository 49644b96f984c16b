"""Slices that were taken in several places of the program, and slices of what became one operation."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.users.simplified.sunk_slices import in_order_of_sinking

from ...running import find
from .lists import named, places_in_source, users_of

_PLACES = {
    1: ("rotate", 7, 9, 16),
    2: ("rotate", 8, 9, 12),
    3: ("rotate", 9, 9, 12),
    4: ("product", 20, 6, 20),
    5: ("product", 20, 10, 14),
    6: ("rotate", 8, 9, 12),
    7: ("rotate", 9, 9, 12),
}
_CALLED_FROM = {4: 1, 5: 1, 6: 3, 7: 3}
_TABLES = places_in_source(*_PLACES.values(), called_from=_CALLED_FROM)


@pytest.mark.parametrize(
    ("frames", "users"),
    [
        # s = x[0] is read twice, then y[0] * z of another function reads a slice of its own.
        ((1, 2, 3, 4), ["mul.2", "mul.1", "mul.3"]),
        # What is in one place of a call, as the products in one line of a cross product are, shares a slice.
        ((5, 4, 2, 2), ["mul.1", "mul.3", "mul.2"]),
        # Else each place has its own.
        ((5, 4, 6, 7), ["mul.1", "mul.2", "mul.3"]),
    ],
    ids=["named", "in one line", "for each"],
)
def test_a_slice_was_reshaped_in_every_place_it_was_taken_in(
    frames: tuple[int, int, int, int], users: list[str]
) -> None:
    """The last that ReshapeMover made in each place is in front there."""
    own, *places = frames
    body = f"""  %p = f32[8,2]{{1,0}} parameter(0)
  %q = f32[8,1]{{1,0}} parameter(1)
  %slice.1 = f32[8,1]{{1,0}} slice(%p), slice={{[0:8], [0:1]}}{named("slice", frame=own)}
  %mul.1 = f32[8,1]{{1,0}} multiply(%slice.1, %q){named("mul", frame=places[0])}
  %mul.2 = f32[8,1]{{1,0}} multiply(%q, %slice.1){named("mul", frame=places[1])}
  %mul.3 = f32[8,1]{{1,0}} multiply(%slice.1, %slice.1){named("mul", frame=places[2])}
  ROOT %r = (f32[8,1]{{1,0}}, f32[8,1]{{1,0}}, f32[8,1]{{1,0}}) tuple(%mul.1, %mul.2, %mul.3)"""
    assert users_of("slice.1", body, ids="p q slice.1 r mul.1 mul.2 mul.3", tables=_TABLES) == users


@pytest.mark.parametrize(
    ("ids", "users"),
    [
        ("p r mul.1 front back", ["front", "back"]),
        ("p mul.1 r front back", ["back", "front"]),
    ],
    ids=["sunk", "of the program"],
)
def test_slices_that_were_sunk_come_as_they_were_made(ids: str, users: list[str]) -> None:
    body = """  %p = f32[8,4]{1,0} parameter(0)
  %mul.1 = f32[8,4]{1,0} multiply(%p, %p){NAMED}
  %back = f32[8,1]{1,0} slice(%mul.1), slice={[0:8], [3:4]}
  %front = f32[8,3]{1,0} slice(%mul.1), slice={[0:8], [0:3]}
  ROOT %r = (f32[8,1]{1,0}, f32[8,3]{1,0}) tuple(%back, %front)"""
    assert users_of("mul.1", body.replace("{NAMED}", named("mul")), ids=ids) == users


@pytest.mark.parametrize(
    ("age", "users"),
    [
        ("p r front back square row convert", ["front", "back", "square"]),
        ("p r front square back row convert", ["back", "square", "front"]),
        ("p front back square r row convert", ["back", "square", "front"]),
    ],
    ids=["sunk", "with something in between", "of the program"],
)
def test_what_was_sunk_of_the_whole_comes_behind_slices_of_a_convert_that_was_moved(
    age: str, users: list[str]
) -> None:
    module = parse_module(
        """HloModule m
ENTRY %main (p: bf16[4]) -> (f32[1,1], f32[1,4], f32[1,3]) {
  %p = bf16[4]{0} parameter(0)
  %row = bf16[1,4]{1,0} bitcast(%p)
  %convert = f32[1,4]{1,0} convert(%row)
  %back = f32[1,1]{1,0} slice(%convert), slice={[0:1], [3:4]}
  %square = f32[1,4]{1,0} multiply(%convert, %convert)
  %front = f32[1,3]{1,0} slice(%convert), slice={[0:1], [0:3]}
  ROOT %r = (f32[1,1]{1,0}, f32[1,4]{1,0}, f32[1,3]{1,0}) tuple(%back, %square, %front)
}
"""
    )
    module.entry.reorder([find(module, name) for name in age.split()])
    convert, passes = find(module, "convert"), find(module, "r").id + 1
    assert [u.name for u in in_order_of_sinking(convert, convert.users, passes)] == users


@pytest.mark.parametrize(("other", "users"), [(2, ["abs.1", "neg.1"]), (1, ["neg.1", "abs.1"])])
def test_what_is_taken_at_an_index_was_reshaped_in_every_place_too(other: int, users: list[str]) -> None:
    at = named("dynamic_slice", frame=1)
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %i = s32[] parameter(1)
  %dynamic_slice.1 = f32[1]{{0}} dynamic-slice(%p, %i), dynamic_slice_sizes={{1}}{at}
  %abs.1 = f32[1]{{0}} abs(%dynamic_slice.1){named("abs", frame=1)}
  %neg.1 = f32[1]{{0}} negate(%dynamic_slice.1){named("neg", frame=other)}
  ROOT %r = (f32[1]{{0}}, f32[1]{{0}}) tuple(%abs.1, %neg.1)"""
    assert users_of("dynamic_slice.1", body, ids="p i dynamic_slice.1 r abs.1 neg.1") == users


@pytest.mark.parametrize(
    ("name", "users"),
    [
        ("neg", {"i": ["new.1", "old.1", "abs.1"], "x.1": ["new.1", "sin.1", "old.1"]}),
        ("dynamic_slice", {"i": ["old.1", "new.1", "abs.1"], "x.1": ["old.1", "new.1", "sin.1"]}),
    ],
    ids=["a sum of the whole", "a sum of the part"],
)
def test_the_update_with_a_sum_takes_the_place_of_the_sum_with_an_update_of_zeros(
    name: str, users: dict[str, list[str]]
) -> None:
    """The slice has the name of what it is taken of then; the reshape of the index was their own."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = s32[1]{{0}} parameter(1)
  %w = f32[2]{{0}} parameter(2)
  %i = s32[] bitcast(%q)
  %x.1 = f32[8]{{0}} negate(%p){named("neg")}
  %old.1 = f32[2]{{0}} dynamic-slice(%x.1, %i), dynamic_slice_sizes={{2}}{named(name)}
  %add.1 = f32[2]{{0}} add(%old.1, %w){named("dynamic_update_slice")}
  %new.1 = f32[8]{{0}} dynamic-update-slice(%x.1, %add.1, %i){named("add_any")}
  %abs.1 = s32[] abs(%i){named("abs")}
  %sin.1 = f32[8]{{0}} sine(%x.1){named("sin")}
  ROOT %r = (f32[8]{{0}}, s32[], f32[8]{{0}}) tuple(%new.1, %abs.1, %sin.1)"""
    assert {x: users_of(x, body) for x in users} == users
