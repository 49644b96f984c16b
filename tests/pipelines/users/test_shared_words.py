"""Words of a key that several calls read, as XLA's record of a masked autoencoder shows it."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("function", "users"),
    [("jit(split)", ["k.2", "joined.1", "k.1"]), ("jit(fold_in)", ["joined.1", "k.2", "k.1"])],
    ids=["another", "the same"],
)
def test_the_call_that_joins_the_words_was_met_first(function: str, users: list[str]) -> None:
    body = f"""  %p = u32[1]{{0}} parameter(0)
  %q = u32[] parameter(1)
  %add.1 = u32[1]{{0}} add(%p, %p){named("jit(fold_in)/add")}
  %word = u32[] bitcast(%add.1){named("jit(fold_in)/add")}
  %k.1 = u32[8,8]{{1,0}} broadcast(%word), dimensions={{}}{named("jit(bits)/add")}
  %joined.1 = u32[] xor(%word, %q){named(f"{function}/xor")}
  %k.2 = u32[8]{{0}} broadcast(%word), dimensions={{}}{named(f"{function}/add")}
  ROOT %r = (u32[8,8]{{1,0}}, u32[], u32[8]{{0}}) tuple(%k.1, %joined.1, %k.2)"""
    assert users_of("word", body, ids="p q r add.1 k.2 joined.1 k.1 word") == users
