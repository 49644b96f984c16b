"""The users of complex numbers that the program orders, as the played passes leave them."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("name", "users"),
    [
        ("real", ["real.4", "imag.2", "select_n.0", "mul.10"]),
        ("max", ["real.4", "imag.2", "mul.10", "select_n.0"]),
    ],
    ids=["compared", "the larger one"],
)
def test_the_last_takes_the_place_of_the_second_real_part(name: str, users: list[str]) -> None:
    """`where(x > 0, x, 2 * x)`, and what is chosen as the larger one, which takes each part once."""
    part = name if name != "real" else "imag"
    body = f"""  %p = c64[4]{{0}} parameter(0)
  %two = c64[4]{{0}} parameter(1)
  %zero = f32[4]{{0}} parameter(2)
  %add.5 = c64[4]{{0}} add(%p, %two){named("add")}
  %real.4 = f32[4]{{0}} real(%add.5){named(name)}
  %eq.3 = pred[4]{{0}} compare(%real.4, %zero), direction=EQ{named("eq")}
  %imag.2 = f32[4]{{0}} imag(%add.5){named(part)}
  %gt.5 = pred[4]{{0}} compare(%imag.2, %zero), direction=GT{named("gt")}
  %gt.7 = pred[4]{{0}} compare(%real.4, %zero), direction=GT{named("gt")}
  %select_n.3 = pred[4]{{0}} select(%eq.3, %gt.5, %gt.7){named("select_n")}
  %mul.10 = c64[4]{{0}} multiply(%add.5, %two){named("mul")}
  ROOT %select_n.0 = c64[4]{{0}} select(%select_n.3, %add.5, %mul.10){named("select_n")}"""
    assert users_of("add.5", body) == users


@pytest.mark.parametrize(
    ("operation", "parts", "comparisons"),
    [
        ("slice", ["imag.0", "real.0"], ["gt.1", "eq.0"]),
        ("dynamic_slice", ["real.0", "imag.0"], ["eq.0", "gt.1"]),
    ],
)
def test_what_reads_an_element_read_its_reshape(
    operation: str, parts: list[str], comparisons: list[str]
) -> None:
    """`v[0] > 0`: ReshapeMover put the reshape behind the parts and behind the comparisons, and it went."""
    body = f"""  %p = c64[4]{{0}} parameter(0)
  %zero = f32[1]{{0}} parameter(1)
  %slice.1 = c64[1]{{0}} slice(%p), slice={{[0:1]}}{named(operation)}
  %real.0 = f32[1]{{0}} real(%slice.1){named("real")}
  %eq.0 = pred[1]{{0}} compare(%real.0, %zero), direction=EQ{named("eq")}
  %imag.0 = f32[1]{{0}} imag(%slice.1){named("imag")}
  %gt.0 = pred[1]{{0}} compare(%imag.0, %zero), direction=GT{named("gt")}
  %gt.1 = pred[1]{{0}} compare(%real.0, %zero), direction=GT{named("gt")}
  ROOT %select_n.0 = pred[1]{{0}} select(%eq.0, %gt.0, %gt.1){named("select_n")}"""
    assert users_of("slice.1", body) == parts
    assert users_of("real.0", body) == comparisons
