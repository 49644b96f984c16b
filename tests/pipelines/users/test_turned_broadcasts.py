"""Broadcasts that some readers want in another layout, as XLA's records of dropped paths have them."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.users.layouts.turned_broadcasts import in_order_of_turning

from .lists import HEAD, named, users_of


@pytest.mark.parametrize(
    ("shape", "listed"),
    [("4,2,8", ["broadcast.2.0", "broadcast.1.0"]), ("4,4,4", ["broadcast.1.0", "broadcast.2.0"])],
    ids=["of the same dimensions", "of others"],
)
def test_a_transpose_that_became_a_broadcast_is_behind_what_it_was_of(shape: str, listed: list[str]) -> None:
    body = f"""  %p = pred[4,1,1]{{2,1,0}} parameter(0)
  %q = f32[{shape}]{{2,1,0}} parameter(1)
  %r = f32[4,8,2]{{2,1,0}} parameter(2)
  %kept = pred[4]{{0}} bitcast(%p){named("lt")}
  %broadcast.1.0 = pred[{shape}]{{2,1,0}} broadcast(%kept), dimensions={{0}}{named("broadcast_in_dim")}
  %select.1 = f32[{shape}]{{2,1,0}} select(%broadcast.1.0, %q, %q){named("select_n")}
  %broadcast.2.0 = pred[4,8,2]{{2,1,0}} broadcast(%kept), dimensions={{0}}
  %select.2 = f32[4,8,2]{{2,1,0}} select(%broadcast.2.0, %r, %r){named("select_n")}
  %neg.1.0 = f32[4,8,2]{{2,1,0}} negate(%select.2){named("neg")}
  ROOT %tuple.5 = (f32[{shape}]{{2,1,0}}, f32[4,8,2]{{2,1,0}}) tuple(%select.1, %neg.1.0)"""
    ids = "p q r kept select.1 select.2 tuple.5 neg.1.0 broadcast.1.0 broadcast.2.0"
    assert users_of("kept", body, ids=ids) == listed


@pytest.mark.parametrize(
    ("of", "name", "second", "listed"),
    [
        ("p", "", "negate", ["second", "first"]),
        ("p", "", "convert", ["first", "second"]),
        ("p", named("broadcast_in_dim"), "negate", ["first", "second"]),
        ("one", "", "negate", ["first", "second"]),
    ],
    ids=["made for each", "a convert is younger", "made anew in its place", "of a constant"],
)
def test_a_broadcast_that_was_made_for_each_reader_is_one_in_the_order_of_the_walk(
    of: str, name: str, second: str, listed: list[str]
) -> None:
    text = f"""{HEAD}
ENTRY %main {{
  %p = f32[4]{{0}} parameter(0)
  %one = f32[] constant(1)
  %spread = f32[4,8]{{1,0}} broadcast(%{of}), dimensions={{{"0" if of == "p" else ""}}}{name}
  %first = f32[4,8]{{1,0}} negate(%spread)
  %second = f32[4,8]{{1,0}} {second}(%spread)
  ROOT %t = (f32[4,8]{{1,0}}, f32[4,8]{{1,0}}) tuple(%first, %second)
}}
"""
    by_name = {x.name: x for x in parse_module(text).entry}
    spread, users = by_name["spread"], [by_name["first"], by_name["second"]]
    uses = {(spread, by_name["first"]): 2, (spread, by_name["second"]): 1}
    assert [u.name for u in in_order_of_turning(spread, users, uses)] == listed
