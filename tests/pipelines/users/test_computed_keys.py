"""Keys that Threefry computed for Threefry: what `fold_in` gives, and two calls that mix one key."""

from __future__ import annotations

import pytest

from .lists import named, places_in_source, users_of

_PLACES = places_in_source(("fold_in", 5, 8, 20), ("bits", 9, 8, 20))


@pytest.mark.parametrize(("frame", "users"), [(2, ["xor.1", "bitcast.1"]), (1, ["bitcast.1", "xor.1"])])
def test_what_joins_the_words_of_a_computed_key_takes_the_place_of_a_reshape(
    frame: int, users: list[str]
) -> None:
    """The words were stacked and unstacked, in between; that does not happen within one call."""
    body = f"""  %p = u32[2,1]{{1,0}} parameter(0)
  %q = u32[2,1]{{1,0}} parameter(1)
  %add.1 = u32[2,1]{{1,0}} add(%p, %q){named("jit(fold_in)/add", frame=1)}
  %t = u32[2,1]{{1,0}} parameter(2)
  %add.2 = u32[2,1]{{1,0}} add(%t, %t){named("jit(fold_in)/add", frame=1)}
  %bitcast.1 = u32[2]{{0}} bitcast(%add.1){named("jit(fold_in)/add", frame=1)}
  %add.3 = u32[2,8]{{1,0}} broadcast(%bitcast.1), dimensions={{0}}{named("jit(bits)/add", frame=2)}
  %xor.1 = u32[2,1]{{1,0}} xor(%add.1, %add.2){named("jit(bits)/xor", frame=frame)}
  %mul.9 = u32[2,1]{{1,0}} multiply(%xor.1, %xor.1){named("mul")}
  ROOT %r = (u32[2,8]{{1,0}}, u32[2,1]{{1,0}}) tuple(%add.3, %mul.9)"""
    ids = "p q t add.1 add.2 add.3 r mul.9 xor.1 bitcast.1"
    assert users_of("add.1", body, ids=ids, tables=_PLACES) == users


def test_two_calls_in_one_function_that_compute_the_same_read_it_alike() -> None:
    """CSE gave the users in the second to the first, behind its own."""
    own, other = (f"while/body/eval_jaxpr/Dropout_{k}/jit(fold_in)" for k in (0, 1))
    body = f"""  %p = u32[2]{{0}} parameter(0)
  %q = u32[2]{{0}} parameter(1)
  %xor.1 = u32[2]{{0}} xor(%p, %q){named(f"{own}/xor", frame=1)}
  %add.1 = u32[2]{{0}} add(%xor.1, %p){named(f"{own}/add", frame=1)}
  %add.2 = u32[2]{{0}} add(%xor.1, %q){named(f"{own}/add", frame=1)}
  %add.3 = u32[2]{{0}} add(%xor.1, %add.1){named(f"{other}/add", frame=1)}
  %add.4 = u32[2]{{0}} add(%xor.1, %add.2){named(f"{other}/add", frame=1)}
  %not.1 = u32[2]{{0}} not(%add.2){named("while/body/eval_jaxpr/not", frame=2)}
  ROOT %r = (u32[2]{{0}}, u32[2]{{0}}, u32[2]{{0}}) tuple(%add.3, %add.4, %not.1)"""
    assert users_of("xor.1", body, tables=_PLACES) == ["add.1", "add.2", "add.3", "add.4"]
