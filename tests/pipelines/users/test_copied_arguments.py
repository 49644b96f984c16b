"""Parameters that some users read in another layout, as XLA's log of MultiOutputFusion shows their users."""

from __future__ import annotations

import pytest

from .lists import named, users_of

_ARGUMENT = "x['w']"


def _copied(copy_of: str) -> str:
    """The text has the copy ahead of what its reader's other operand is made of."""
    return f"""
  %w = f32[4,8]{{1,0}} parameter(0){named(_ARGUMENT)}
  %copy = f32[8,4]{{1,0}} transpose(%w), dimensions={{1,0}}{named(copy_of) if copy_of else ""}
  %square = f32[4,8]{{1,0}} multiply(%w, %w){named("square")}
  %scale = f32[8,4]{{1,0}} bitcast(%square)
  ROOT %step = f32[8,4]{{1,0}} add(%copy, %scale){named("add")}
"""


@pytest.mark.parametrize("copy_of", [_ARGUMENT, ""])
def test_a_copy_is_where_its_reader_was(copy_of: str) -> None:
    body = _copied(copy_of)
    assert users_of("w", body, ids="w square step copy scale") == ["square", "copy"]


def test_what_the_program_transposes_is_where_it_stands() -> None:
    body = _copied("transpose")
    assert users_of("w", body, ids="w copy square scale step") == ["copy", "square"]


def test_what_a_pass_made_stays_behind() -> None:
    body = _copied(_ARGUMENT)
    assert users_of("w", body, ids="w step copy scale square") == ["copy", "square"]


@pytest.mark.parametrize(
    ("turned", "users"), [("slice", ["slice.1", "copy"]), ("transpose", ["copy", "slice.1"])]
)
def test_what_is_in_front_of_a_copy_that_was_moved_is_where_the_program_had_it(
    turned: str, users: list[str]
) -> None:
    """MoveCopyToUsers made the slice anew, of what was not copied; the copy behind it has its name."""
    body = f"""
  %w = f32[4,8]{{1,0}} parameter(0){named(_ARGUMENT)}
  %copy = f32[8,4]{{1,0}} transpose(%w), dimensions={{1,0}}{named(_ARGUMENT)}
  %slice.1 = f32[2,8]{{1,0}} slice(%w), slice={{[0:2], [0:8]}}{named("slice")}
  %turned.1 = f32[8,2]{{1,0}} transpose(%slice.1), dimensions={{1,0}}{named(turned)}
  ROOT %both = f32[8,6]{{1,0}} concatenate(%copy, %turned.1), dimensions={{1}}{named("concatenate")}
"""
    assert users_of("w", body, ids="w both copy slice.1 turned.1") == users


def test_of_copies_for_several_readers_one_is_left() -> None:
    """Each reader was given one. That of `rest` was met first; each other one went, the last in its place."""
    body = f"""
  %w = f32[4,8]{{1,0}} parameter(0){named(_ARGUMENT)}
  %copy = f32[8,4]{{1,0}} transpose(%w), dimensions={{1,0}}{named(_ARGUMENT)}
  %half = f32[8,4]{{1,0}} multiply(%copy, %copy){named("mul")}
  %rest = f32[8,4]{{1,0}} subtract(%copy, %half){named("sub")}
  %square = f32[4,8]{{1,0}} multiply(%w, %w){named("square")}
  %scale = f32[8,4]{{1,0}} bitcast(%square)
  %third = f32[8,4]{{1,0}} multiply(%scale, %copy){named("mul")}
  ROOT %step = f32[8,4]{{1,0}} subtract(%rest, %third){named("sub")}
"""
    assert users_of("w", body, ids="w half rest square third step copy scale") == ["square", "copy"]


@pytest.mark.parametrize(("reader", "users"), [("fusion", ["copy", "bitcast"]), ("log", ["bitcast", "copy"])])
def test_what_was_hoisted_in_front_of_a_gemm_comes_last(reader: str, users: list[str]) -> None:
    """It took the place of the copy that went with CSE."""
    of_gemm = ", kind=kCustom, calls=%gemm" if reader == "fusion" else named("log")
    head = """
%gemm (g: f32[2,16]) -> f32[2,16] {
  %g = f32[2,16]{1,0} parameter(0)
  ROOT %n = f32[2,16]{1,0} negate(%g)
}
"""
    body = f"""
  %w = f32[4,8]{{1,0}} parameter(0){named(_ARGUMENT)}
  %bitcast = f32[2,16]{{1,0}} bitcast(%w)
  %product = f32[2,16]{{1,0}} {reader}(%bitcast){of_gemm}
  %copy = f32[8,4]{{1,0}} transpose(%w), dimensions={{1,0}}{named(_ARGUMENT)}
  %abs = f32[8,4]{{1,0}} abs(%copy){named("abs")}
  %sign = f32[8,4]{{1,0}} sign(%copy){named("sign")}
  ROOT %r = (f32[2,16]{{1,0}}, f32[8,4]{{1,0}}, f32[8,4]{{1,0}}) tuple(%product, %abs, %sign)
"""
    assert users_of("w", body, ids="w abs sign r copy product bitcast", head=head) == users


def test_what_loops_are_given_was_transposed_once() -> None:
    """By the program, in front of both loops; the place it has in the list is its own."""
    body = f"""
  %w = f32[4,8]{{1,0}} parameter(0){named(_ARGUMENT)}
  %copy = f32[8,4]{{1,0}} transpose(%w), dimensions={{1,0}}{named(_ARGUMENT)}
  %given = (f32[8,4]{{1,0}}) tuple(%copy)
  %square = f32[4,8]{{1,0}} multiply(%w, %w){named("square")}
  %given_again = (f32[8,4]{{1,0}}, f32[4,8]{{1,0}}) tuple(%copy, %square)
  %step = f32[4,8]{{1,0}} add(%w, %square){named("add")}
  ROOT %all = ((f32[8,4]{{1,0}}), (f32[8,4]{{1,0}}, f32[4,8]{{1,0}}), f32[4,8]{{1,0}}) \
tuple(%given, %given_again, %step)
"""
    assert users_of("w", body, ids="w given square given_again step all copy") == ["copy", "square", "step"]


@pytest.mark.parametrize("is_read_narrow", [True, False])
def test_what_a_convolution_reads_through_two_converts_came_last(is_read_narrow: bool) -> None:
    """Of the copies that the step and the decay were given one went, and the last took its place."""
    element_type = "bf16" if is_read_narrow else "f64"
    body = f"""
  %w = f32[4,8,3]{{2,1,0}} parameter(0){named(_ARGUMENT)}
  %x = f32[2,4,9]{{2,1,0}} parameter(1)
  %through = f32[8,4,3]{{2,1,0}} transpose(%w), dimensions={{1,0,2}}
  %forward = (f32[2,8,7]{{2,1,0}}, u8[0]{{0}}) custom-call(%x, %through), window={{size=3}}, \
dim_labels=bf0_oi0->bf0, custom_call_target="__cudnn$convForward"
  %y = f32[2,8,7]{{2,1,0}} get-tuple-element(%forward), index=0
  %square = f32[4,8,3]{{2,1,0}} multiply(%w, %w){named("square")}
  %copy = f32[8,4,3]{{2,1,0}} transpose(%w), dimensions={{1,0,2}}{named(_ARGUMENT)}
  %decay = f32[8,4,3]{{2,1,0}} multiply(%copy, %copy){named("mul")}
  %step = f32[8,4,3]{{2,1,0}} add(%copy, %decay){named("add")}
  %less = {element_type}[4,8,3]{{2,1,0}} convert(%w){named("convert_element_type")}
  %back = {element_type}[4,8,3]{{2,1,0}} reverse(%less), dimensions={{2}}{named("rev")}
  ROOT %all = (f32[2,8,7]{{2,1,0}}, f32[4,8,3]{{2,1,0}}, f32[8,4,3]{{2,1,0}}, \
{element_type}[4,8,3]{{2,1,0}}) tuple(%y, %square, %step, %back)
"""
    told = users_of("w", body, ids="w x square decay step back all forward y copy less through")
    narrow, other = ["less", "square", "through", "copy"], ["through", "square", "less", "copy"]
    assert told == (narrow if is_read_narrow else other)
