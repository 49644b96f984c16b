"""Stable sorts that have come to count, as XLA's passes leave them (`jnp.argsort`, `jax.lax.sort`)."""

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
