"""The users of results that were written over an argument as a whole, as the played passes leave them."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("cache", "users"),
    [("f32[2,4]{1,0}", ["r", "cosine.1"]), ("f32[8]{0}", ["cosine.1", "r"])],
    ids=["as large", "another shape"],
)
def test_a_result_stands_where_it_was_written_over_an_argument(cache: str, users: list[str]) -> None:
    body = f"""  %p = f32[2,4]{{1,0}} parameter(0)
  %cache = {cache} parameter(1)
  %x.1 = f32[2,4]{{1,0}} sine(%p){named("sin")}
  %cosine.1 = f32[2,4]{{1,0}} cosine(%x.1){named("cos")}
  ROOT %r = (f32[2,4]{{1,0}}, f32[2,4]{{1,0}}) tuple(%cosine.1, %x.1)"""
    assert users_of("x.1", body) == users


@pytest.mark.parametrize(
    ("cache", "users"),
    [("f32[1,2,4]{2,1,0}", ["written.1", "read.1"]), ("f32[8]{0}", ["read.1", "written.1"])],
    ids=["as large", "another shape"],
)
def test_what_is_reshaped_to_be_written_is_read_for_that_first(cache: str, users: list[str]) -> None:
    body = f"""  %p = f32[2,4]{{1,0}} parameter(0)
  %cache = {cache} parameter(1)
  %x.1 = f32[2,4]{{1,0}} sine(%p){named("sin")}
  %read.1 = f32[8]{{0}} bitcast(%x.1){named("dot_general")}
  %cosine.1 = f32[8]{{0}} cosine(%read.1){named("cos")}
  %written.1 = f32[1,2,4]{{2,1,0}} bitcast(%x.1){named("dynamic_update_slice")}
  ROOT %r = (f32[8]{{0}}, f32[1,2,4]{{2,1,0}}) tuple(%cosine.1, %written.1)"""
    assert users_of("x.1", body) == users
