"""Predicates spread for every select, as XLA's records show them."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("scope", "users"),
    [
        ("transpose(jvp(vmap()))/broadcast_in_dim", ["select_n.2", "select_n.1"]),
        ("jvp(jit(_where))/broadcast_in_dim", ["select_n.1", "select_n.2"]),
    ],
)
def test_a_walk_comes_to_a_predicate_ahead_of_what_is_chosen(scope: str, users: list[str]) -> None:
    """The second select had a predicate of its own, and reads the first one."""
    body = f"""  %p = pred[] parameter(0)
  %x = f32[8]{{0}} parameter(1)
  %q = f32[8]{{0}} parameter(2)
  %broadcast_in_dim.1 = pred[8]{{0}} broadcast(%p), dimensions={{}}{named(scope)}
  %select_n.1 = f32[8]{{0}} select(%broadcast_in_dim.1, %x, %q){named("select_n")}
  %cos.1 = f32[8]{{0}} cosine(%select_n.1){named("cos")}
  ROOT %select_n.2 = f32[8]{{0}} select(%broadcast_in_dim.1, %cos.1, %q){named("select_n")}"""
    assert users_of("broadcast_in_dim.1", body) == users
