"""Operations that simplification dropped or made others of, each case as XLA's records show it."""

from __future__ import annotations

import pytest

from .test_by_age import named, users_of


@pytest.mark.parametrize(
    ("frames", "users"), [((5, 5), ["select.2", "select.1"]), ((5, 6), ["select.1", "select.2"])]
)
def test_of_products_with_one_predicate_the_last_choice_takes_the_place_of_its_number(
    frames: tuple[int, int], users: list[str]
) -> None:
    """Products of two places in the source had a number each."""
    first, second = (named("mul", frame=frame) for frame in frames)
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %zero = f32[] constant(0)
  %zeros = f32[8]{{0}} broadcast(%zero), dimensions={{}}
  %eq.1 = pred[8]{{0}} compare(%p, %p), direction=EQ{named("eq")}
  %select.1 = f32[8]{{0}} select(%eq.1, %p, %zeros){first}
  %exp.1 = f32[8]{{0}} exponential(%select.1){named("exp")}
  %select.2 = f32[8]{{0}} select(%eq.1, %exp.1, %zeros){second}
  ROOT %r = (f32[8]{{0}}) tuple(%select.2)"""
    assert users_of("eq.1", body) == users


def test_a_choice_of_the_program_is_no_product() -> None:
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %eq.1 = pred[8]{{0}} compare(%p, %p), direction=EQ{named("eq")}
  %select_n.1 = f32[8]{{0}} select(%eq.1, %p, %p){named("select_n", frame=5)}
  %select_n.2 = f32[8]{{0}} select(%eq.1, %select_n.1, %p){named("select_n", frame=5)}
  ROOT %r = (f32[8]{{0}}) tuple(%select_n.2)"""
    assert users_of("eq.1", body) == ["select_n.1", "select_n.2"]


@pytest.mark.parametrize(
    ("reduction", "users"),
    [("reduce_max", ["select_n.1", "is_finite.1"]), ("reduce_sum", ["is_finite.1", "select_n.1"])],
)
def test_a_maximum_that_may_not_be_finite_was_bounded(reduction: str, users: list[str]) -> None:
    """`max(x, -inf)` went, and the last user took its place."""
    body = f"""  %p = f32[8,4]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %zeros = f32[8]{{0}} broadcast(%zero), dimensions={{}}
  %top.1 = f32[8]{{0}} reduce(%p, %zero), dimensions={{1}}, to_apply=%sum{named(reduction)}
  %is_finite.1 = pred[8]{{0}} is-finite(%top.1){named("is_finite")}
  %select_n.1 = f32[8]{{0}} select(%is_finite.1, %top.1, %zeros){named("select_n")}
  ROOT %r = (f32[8]{{0}}) tuple(%select_n.1)"""
    assert users_of("top.1", body) == users


@pytest.mark.parametrize("later", [True, False])
def test_in_random_bits_of_count_zero_the_last_reader_of_the_sum_takes_its_place(later: bool) -> None:
    """What is read in one round only is no word of the key."""
    body = f"""  %k = u32[] parameter(0)
  %word.1 = u32[] negate(%k)
  %few = u32[] constant(13)
  %many = u32[] constant(19)
  %add.1 = u32[] add(%k, %word.1){named("add")}
  %shift_left.1 = u32[] shift-left(%word.1, %few){named("shift_left")}
  %shift_right_logical.1 = u32[] shift-right-logical(%word.1, %many){named("shift_right_logical")}
  %or.1 = u32[] or(%shift_left.1, %shift_right_logical.1){named("or")}
  %xor.1 = u32[] xor(%add.1, %or.1){named("xor")}
  %add.2 = u32[] add(%xor.1, {"%word.1" if later else "%k"}){named("add")}
  ROOT %r = (u32[]) tuple(%add.2)"""
    in_order = ["add.1", "shift_left.1", "shift_right_logical.1"]
    moved = ["shift_right_logical.1", "add.2", "add.1", "shift_left.1"]
    assert users_of("word.1", body) == (moved if later else in_order)
