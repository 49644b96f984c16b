"""Uniform random numbers, to which the program added zero."""

from __future__ import annotations

import pytest

from .lists import named, users_of


def _numbers(bound: str, operation: str) -> str:
    return f"""  %x = f32[8]{{0}} parameter(0)
  %p = pred[8]{{0}} parameter(1)
  %y = f32[8]{{0}} parameter(2)
  %number = f32[] constant({bound})
  %max.1 = f32[8]{{0}} broadcast(%number), dimensions={{}}{named(operation)}
  %max.2 = f32[8]{{0}} maximum(%max.1, %x){named(operation)}
  %select_n.1 = f32[8]{{0}} select(%p, %max.2, %max.1){named("select_n")}
  %max.3 = f32[8]{{0}} maximum(%max.1, %y){named(operation)}
  %select_n.2 = f32[8]{{0}} select(%p, %max.3, %max.1){named("select_n")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%select_n.1, %select_n.2)"""


@pytest.mark.parametrize(
    ("bound", "operation", "users"),
    [
        ("0", "jit(_uniform)/max", ["max.2", "max.3", "select_n.1", "select_n.2"]),
        ("0", "jvp(jit(_uniform))/max", ["max.2", "max.3", "select_n.1", "select_n.2"]),
        ("-1", "jit(_uniform)/max", ["max.2", "select_n.1", "select_n.2", "max.3"]),
        ("0", "vmap()/cond/jit(_uniform)/max", ["max.2", "select_n.1", "select_n.2", "max.3"]),
        ("0", "jit(relu)/max", ["max.2", "select_n.1", "select_n.2", "max.3"]),
    ],
    ids=["zero", "in a derivative", "another bound", "one for each of a batch", "no random numbers"],
)
def test_the_sums_with_zero_are_gone(bound: str, operation: str, users: list[str]) -> None:
    ids = "x p y number max.1 - max.2 select_n.1 max.3 select_n.2 r"
    assert users_of("max.1", _numbers(bound, operation), ids=ids) == users


@pytest.mark.parametrize(("scale", "users"), [("1", ["add.1", "erf_inv.1"]), ("2", ["erf_inv.1", "add.1"])])
def test_the_last_takes_the_place_of_the_product_with_one(scale: str, users: list[str]) -> None:
    """What reads the one in another call had one of its own until CSE."""
    body = f"""  %x = f32[8]{{0}} parameter(0)
  %number = f32[] constant({scale})
  %mul.7.0 = f32[8]{{0}} broadcast(%number), dimensions={{}}{named("jit(_bernoulli)/jit(_uniform)/mul")}
  %erf_inv.1 = pred[8]{{0}} compare(%x, %mul.7.0), direction=EQ{named("jit(_normal)/erf_inv")}
  %add.1 = f32[8]{{0}} add(%x, %mul.7.0){named("add")}
  ROOT %r = (pred[8]{{0}}, f32[8]{{0}}) tuple(%erf_inv.1, %add.1)"""
    assert users_of("mul.7.0", body, ids="x number add.1 r mul.7.0 erf_inv.1") == users


@pytest.mark.parametrize(
    ("added", "users"),
    [(("add.1", "add.2"), ["add.4", "add.3"]), (("k", "j"), ["add.3", "add.4"])],
    ids=["zero", "another word"],
)
def test_calls_whose_keys_begin_with_zero_share_the_sum_of_that_and_the_count(
    added: tuple[str, str], users: list[str]
) -> None:
    """To another word than zero each adds the count for itself."""
    in_one, in_other = named("jit(_normal)/jit(_uniform)/add"), named("jit(_bernoulli)/jit(_uniform)/add")
    count = named("jit(_normal)/jit(_uniform)/iota_2x32_shape")
    body = f"""  %wide.1 = u64[8]{{0}} parameter(0)
  %k = u32[8]{{0}} parameter(1)
  %j = u32[8]{{0}} parameter(2)
  %low.1 = u32[8]{{0}} convert(%wide.1){count}
  %high.1 = u32[8]{{0}} convert(%wide.1){count}
  %add.1 = u32[8]{{0}} add(%low.1, %k){in_one}
  %add.2 = u32[8]{{0}} add(%low.1, %j){in_other}
  %add.3 = u32[8]{{0}} add(%high.1, %{added[0]}){in_one}
  %add.4 = u32[8]{{0}} add(%high.1, %{added[1]}){in_other}
  ROOT %r = (u32[8]{{0}}, u32[8]{{0}}, u32[8]{{0}}, u32[8]{{0}}) tuple(%add.1, %add.2, %add.3, %add.4)"""
    assert users_of("high.1", body) == users
