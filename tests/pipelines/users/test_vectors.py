"""The order of users of matrices that products read as vectors; XLA's log of multi-output fusion has it."""

from __future__ import annotations

from .lists import named, users_as_guessed

_WEIGHTS = f"""  %w = f32[256,1]{{1,0}} parameter(0)
  %h = f32[64,256]{{1,0}} parameter(1)
  %t = f32[64]{{0}} parameter(2)
  %vector = f32[256]{{0}} bitcast(%w)
  %rows = f32[64,256]{{1,0}} broadcast(%vector), dimensions={{1}}{named("jvp()/dot_general")}
  %forward = f32[64,256]{{1,0}} multiply(%h, %rows){named("jvp()/dot_general")}
  %columns = f32[64,256]{{1,0}} broadcast(%t), dimensions={{0}}
  %backward = f32[64,256]{{1,0}} multiply(%columns, %ROWS){named("transpose(jvp())/dot_general")}
  %decay = f32[256,1]{{1,0}} negate(%w){named("mul")}
  %step = f32[256,1]{{1,0}} subtract(%w, %decay){named("sub")}
  ROOT %r = (f32[64,256]{{1,0}}, f32[64,256]{{1,0}}, f32[256,1]{{1,0}}) tuple(%forward, %backward, %step)"""


def test_the_last_user_took_the_place_of_the_vector_of_another_product() -> None:
    """A product and its derivative."""
    assert users_as_guessed("w", _WEIGHTS.replace("ROWS", "rows")) == ["vector", "step", "decay"]


def test_the_vector_of_one_product_was_alone() -> None:
    assert users_as_guessed("w", _WEIGHTS.replace("ROWS", "h")) == ["vector", "decay", "step"]
