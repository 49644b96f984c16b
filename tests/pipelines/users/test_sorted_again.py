"""Sorts made anew, as XLA's passes leave them (`jnp.argsort`, `jax.lax.sort`)."""

from __future__ import annotations

import pytest

from .lists import named, users_of

_GREATER = """%greater (a: f32[], b: f32[], i: s32[], j: s32[], m: s32[], n: s32[]) -> pred[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  %i = s32[] parameter(2)
  %j = s32[] parameter(3)
  %m = s32[] parameter(4)
  %n = s32[] parameter(5)
  ROOT %gt = pred[] compare(%a, %b), direction=GT
}
"""


@pytest.mark.parametrize(
    ("counter", "read", "users"),
    [
        ("counted", 0, ["add.1", "lt.1"]),
        ("q", 0, ["lt.1", "add.1"]),
        ("counted", 2, ["lt.1", "add.1"]),
    ],
    ids=["counts since", "of values", "counts in the program"],
)
def test_the_last_reader_of_what_was_sorted_took_the_place_of_a_tuple(
    counter: str, read: int, users: list[str]
) -> None:
    kind = "f32" if not read else "s32"
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = s32[8]{{0}} parameter(1)
  %counted = s32[8]{{0}} iota(), iota_dimension=0
  %zero = s32[8]{{0}} constant({{0,0,0,0,0,0,0,0}})
  %sort.1 = (f32[8]{{0}}, s32[8]{{0}}, s32[8]{{0}}) sort(%p, %q, %{counter}), dimensions={{0}}, \
to_apply=%greater{named("jit(argsort)/sort")}
  %place = s32[8]{{0}} get-tuple-element(%sort.1), index=1
  %other = {kind}[8]{{0}} get-tuple-element(%sort.1), index={read}
  %lt.1 = pred[8]{{0}} compare(%place, %zero), direction=LT{named("lt")}
  %add.1 = s32[8]{{0}} add(%place, %q){named("add")}
  ROOT %r = (pred[8]{{0}}, s32[8]{{0}}, {kind}[8]{{0}}) tuple(%lt.1, %add.1, %other)"""
    assert users_of("place", body, head=_GREATER) == users


@pytest.mark.parametrize(
    ("keys", "values", "users"),
    [("p", "q", ["add.1", "lt.1"]), ("made", "q", ["lt.1", "add.1"])],
    ids=["with values", "keys made for the sake of the order"],
)
def test_a_library_gave_a_tuple_of_what_it_sorted_by_keys(keys: str, values: str, users: list[str]) -> None:
    body = f"""  %p = u32[8]{{0}} parameter(0)
  %q = s32[8]{{0}} parameter(1)
  %zero = s32[8]{{0}} constant({{0,0,0,0,0,0,0,0}})
  %less = pred[8]{{0}} compare(%q, %zero), direction=LT
  %not.1 = u32[8]{{0}} not(%p)
  %xor.1 = u32[8]{{0}} xor(%p, %p)
  %made = u32[8]{{0}} select(%less, %not.1, %xor.1)
  %sort = (u32[8]{{0}}, s32[8]{{0}}, u8[64]{{0}}) custom-call(%{keys}, %{values}), \
custom_call_target="xla.gpu.ext.cub_sort_pairs"
  %place = s32[8]{{0}} get-tuple-element(%sort), index=1
  %lt.1 = pred[8]{{0}} compare(%place, %zero), direction=LT{named("lt")}
  %add.1 = s32[8]{{0}} add(%place, %q){named("add")}
  ROOT %r = (pred[8]{{0}}, s32[8]{{0}}) tuple(%lt.1, %add.1)"""
    assert users_of("place", body) == users


@pytest.mark.parametrize("half", ["packed", "upper"])
def test_the_tuple_was_of_halves_where_keys_and_values_were_packed(half: str) -> None:
    body = f"""  %p = u16[8]{{0}} parameter(0)
  %q = u64[8]{{0}} parameter(1)
  %zero = s32[8]{{0}} constant({{0,0,0,0,0,0,0,0}})
  %sort = (u16[8]{{0}}, u64[8]{{0}}, u8[64]{{0}}) custom-call(%p, %q), \
custom_call_target="xla.gpu.ext.cub_sort_pairs"
  %packed = u64[8]{{0}} get-tuple-element(%sort), index=1
  %upper = u64[8]{{0}} shift-right-logical(%packed, %q)
  %half = u32[8]{{0}} convert(%{half})
  %place = s32[8]{{0}} bitcast(%half)
  %lt.1 = pred[8]{{0}} compare(%place, %zero), direction=LT{named("lt")}
  %add.1 = s32[8]{{0}} add(%place, %zero){named("add")}
  ROOT %r = (pred[8]{{0}}, s32[8]{{0}}) tuple(%lt.1, %add.1)"""
    assert users_of("place", body) == ["add.1", "lt.1"]
