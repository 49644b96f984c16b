"""The users of predicates of which an argmax takes the larger, as the played passes leave them."""

from __future__ import annotations

import pytest

from .lists import users_of


@pytest.mark.parametrize(
    ("chosen", "name", "users"),
    [
        ("or", "select_n", ["gt.1", "or.1", "eq.1"]),
        ("or", "or", ["or.1", "gt.1", "eq.1"]),
        ("and", "select_n", ["and.1", "gt.1", "eq.1"]),
    ],
    ids=["the larger", "of the program", "the smaller is chosen by another comparison"],
)
def test_the_larger_of_two_predicates_stands_where_it_was_chosen(
    chosen: str, name: str, users: list[str]
) -> None:
    body = f"""  %p = pred[] parameter(0)
  %q = pred[] parameter(1)
  %{chosen}.1 = pred[] {chosen}(%p, %q), metadata={{op_name="{name}"}}
  %gt.1 = pred[] compare(%p, %q), direction=GT, metadata={{op_name="gt"}}
  %eq.1 = pred[] compare(%p, %q), direction=EQ, metadata={{op_name="eq"}}
  ROOT %r = (pred[], pred[], pred[]) tuple(%{chosen}.1, %gt.1, %eq.1)"""
    assert users_of("p", body) == users
