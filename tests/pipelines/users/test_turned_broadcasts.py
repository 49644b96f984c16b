"""Broadcasts that some readers want in another layout, as XLA's records of dropped paths have them."""

from __future__ import annotations

import pytest

from .lists import named, users_of


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
