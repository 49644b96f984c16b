"""What expressions that the program writes twice were computed of."""

from __future__ import annotations

import pytest

from .lists import named, places_in_source, users_of

ALONG = "dimensions={0}" + named("concatenate", frame=5)
# One line has `where(x > 0, x, x * 2)`, the next `concatenate([x * 2, x * 3, x * 4])`.
PLACES = [("f", 1, 11, 16), ("f", 1, 21, 26), ("f", 1, 5, 27), ("f", 2, 21, 26), ("f", 2, 5, 40)]
CONSTANTS = "".join(
    f"""
  %c{k} = f32[] constant({k})
  %b{k} = f32[8] broadcast(%c{k}), dimensions={{}}"""
    for k in (0, 2, 3, 4)
)
BODY = f"""
  %x = f32[8] parameter(0){CONSTANTS}
  %gt.1.0 = pred[8] compare(%x, %b0), direction=GT{named("gt", frame=1)}
  %mul.1.0 = f32[8] multiply(%x, %b2){named("mul", frame=2)}
  %select_n.1.0 = f32[8] select(%gt.1.0, %x, %mul.1.0){named("select_n", frame=3)}
  %mul.3.0 = f32[8] multiply(%x, %b3){named("mul", frame=4)}
  %mul.4.0 = f32[8] multiply(%x, %b4){named("mul", frame=4)}
  %concatenate.1.0 = f32[24] concatenate(%mul.1.0, %mul.3.0, %mul.4.0), {ALONG}
  ROOT %tuple.1.0 = (f32[8], f32[24]) tuple(%select_n.1.0, %concatenate.1.0)"""
AS_READ = ["gt.1.0", "mul.1.0", "select_n.1.0", "mul.3.0", "mul.4.0"]


def test_the_last_takes_the_place_of_an_expression_that_is_written_twice() -> None:
    users = users_of("x", BODY, tables=places_in_source(*PLACES))
    assert users == ["gt.1.0", "mul.1.0", "select_n.1.0", "mul.4.0", "mul.3.0"]


def test_what_is_written_once_has_readers_around_it_alone() -> None:
    around = [*PLACES[:4], ("f", 1, 1, 80)]
    assert users_of("x", BODY, tables=places_in_source(*around)) == AS_READ


def test_what_a_bitcast_is_left_of_was_there_for_each() -> None:
    start = "%x = f32[8] parameter(0)"
    of_element = BODY.replace(start, "%y = f32[8,1] parameter(0)\n  %x = f32[8] bitcast(%y)")
    assert users_of("x", of_element, tables=places_in_source(*PLACES)) == AS_READ


def test_derivatives_stand_where_what_they_derive_does() -> None:
    derived = BODY.replace("f)/concatenate", "f)/jvp()/concatenate")
    assert users_of("x", derived, tables=places_in_source(*PLACES)) == AS_READ


def test_a_concatenate_that_another_was_merged_into_read_that_one() -> None:
    body = f"""
  %x = f32[8] parameter(0){CONSTANTS}
  %mul.1.0 = f32[8] multiply(%x, %b2){named("mul", frame=2)}
  %mul.3.0 = f32[8] multiply(%x, %b3){named("mul", frame=2)}
  %concatenate.1.0 = f32[16] concatenate(%mul.1.0, %mul.3.0), {ALONG.replace("=5", "=3")}
  %abs.1.0 = f32[16] abs(%concatenate.1.0){named("abs", frame=4)}
  %add.1.0 = f32[8] add(%x, %b0){named("add", frame=4)}
  %add.2.0 = f32[8] add(%x, %b4){named("add", frame=4)}
  ROOT %concatenate.2.0 = f32[48] concatenate(%mul.1.0, %mul.3.0, %add.1.0, %add.2.0, %abs.1.0), {ALONG}"""
    users = users_of("x", body, tables=places_in_source(*PLACES))
    assert users == ["mul.1.0", "mul.3.0", "add.1.0", "add.2.0"]


INTEGERS = f"""
  %x = s32[8] parameter(0)
  %convert_element_type.2.0 = f32[8] convert(%x){named("convert_element_type", frame=1)}
  %c0 = f32[] constant(0)
  %reduce_sum.1.0 = f32[] reduce(%convert_element_type.2.0, %c0), dimensions={{0}}, to_apply=%sum{named("reduce_sum", frame=2)}
  %b = f32[8] broadcast(%reduce_sum.1.0), dimensions={{}}
  %sub.1.0 = f32[8] subtract(%convert_element_type.2.0, %b){named("sub", frame=1)}
  %neg.1.0 = s32[8] negate(%x){named("neg", frame=3)}
  %abs.1.0 = s32[8] abs(%x){named("abs", frame=4)}
  ROOT %tuple.1.0 = (f32[8], s32[8], s32[8]) tuple(%sub.1.0, %neg.1.0, %abs.1.0)"""  # noqa: E501


def test_what_is_reduced_within_an_expression_was_converted_for_that() -> None:
    within, behind = ("f", 1, 21, 26), ("f", 3, 21, 26)
    places = [("f", 1, 5, 30), within, *PLACES[3:]]
    assert users_of("x", INTEGERS, tables=places_in_source(*places)) == [
        "convert_element_type.2.0",
        "abs.1.0",
        "neg.1.0",
    ]
    places[1] = behind
    assert users_of("x", INTEGERS, tables=places_in_source(*places))[1:] == ["neg.1.0", "abs.1.0"]


@pytest.mark.parametrize(
    ("function", "gone", "users"),
    [
        ("f", (), ["mul.1", "sub.1"]),
        ("run.<locals>.<lambda>", (), ["sub.1", "mul.1"]),
        ("run.<locals>.<lambda>", (("g", 3, 6, 8),), ["mul.1", "sub.1"]),
    ],
    ids=["which converts what it is given", "which may be several", "of which another converted it too"],
)
def test_other_lines_of_a_function_are_of_it_but_for_lambdas(
    function: str, gone: tuple[tuple[str, int, int, int], ...], users: list[str]
) -> None:
    """All lambdas that are written in one function have the same name."""
    tables = places_in_source((function, 7, 5, 9), ("g", 3, 5, 9), (function, 9, 5, 9), *gone)
    body = f"""  %p = f16[8]{{0}} parameter(0)
  %x = f32[8]{{0}} convert(%p){named("convert_element_type", frame=1)}
  %sub.1 = f32[8]{{0}} negate(%x){named("sub", frame=2)}
  %mul.1 = f32[8]{{0}} multiply(%x, %x){named("mul", frame=3)}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%sub.1, %mul.1)"""
    assert users_of("x", body, tables=tables) == users
