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


def test_what_a_loop_is_given_transposed_the_program_transposed() -> None:
    """No layout was asked for: the one that was transposed stands where it stood, however many read it."""
    body = f"""
  %w = f32[4,8]{{1,0}} parameter(0){named(_ARGUMENT)}
  %transposed = f32[8,4]{{1,0}} transpose(%w), dimensions={{1,0}}{named(_ARGUMENT)}
  %first = (f32[8,4]{{1,0}}) tuple(%transposed)
  %half = f32[4,8]{{1,0}} multiply(%w, %w){named("mul")}
  %step = f32[4,8]{{1,0}} subtract(%w, %half){named("sub")}
  %last = (f32[8,4]{{1,0}}) tuple(%transposed)
  ROOT %r = ((f32[8,4]{{1,0}}), (f32[8,4]{{1,0}}), f32[4,8]{{1,0}}) tuple(%first, %last, %step)
"""
    ids = "w half step r transposed first last"
    assert users_of("w", body, ids=ids) == ["transposed", "half", "step"]
