"""The order of users of matrices that products read as vectors; XLA's log of multi-output fusion has it."""

from __future__ import annotations

import pytest

from .lists import named, users_as_guessed, users_of

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


def test_what_reads_the_matrix_ahead_of_its_products_stays_in_front() -> None:
    body = _WEIGHTS.replace("%vector =", f"%before = f32[256,1]{{1,0}} sine(%w){named('sin')}\n  %vector =")
    body = body.replace("(%forward, ", "(%before, %forward, ").replace(
        "ROOT %r = (", "ROOT %r = (f32[256,1]{1,0}, "
    )
    assert users_as_guessed("w", body.replace("ROWS", "rows")) == ["before", "vector", "step", "decay"]
    assert users_as_guessed("w", body.replace("ROWS", "h")) == ["before", "vector", "decay", "step"]


def test_the_vector_of_a_value_that_was_reshaped_for_its_product_comes_behind() -> None:
    """A scatter takes the derivatives in as well; what was reshaped twice is a reshape made anew."""
    body = f"""  %p = f32[64,32]{{1,0}} parameter(0)
  %w = f32[128]{{0}} parameter(1)
  %x = f32[64,32]{{1,0}} negate(%p){named("transpose(jvp())/neg")}
  %vector = f32[2048]{{0}} bitcast(%x){named("transpose(jvp())/neg")}
  %rows = f32[2048,128]{{1,0}} broadcast(%vector), dimensions={{0}}{named("transpose(jvp())/dot_general")}
  %columns = f32[2048,128]{{1,0}} broadcast(%w), dimensions={{1}}{named("transpose(jvp())/dot_general")}
  %product = f32[2048,128]{{1,0}} multiply(%rows, %columns){named("transpose(jvp())/dot_general")}
  %elements = f32[2048,1]{{1,0}} bitcast(%x){named("transpose(jvp())/neg")}
  ROOT %r = (f32[2048,128]{{1,0}}, f32[2048,1]{{1,0}}) tuple(%product, %elements)"""
    assert users_as_guessed("x", body) == ["elements", "vector"]
    plain = body.replace("dot_general", "mul")
    assert users_as_guessed("x", plain) == ["vector", "elements"]


def _spread(frame: int) -> str:
    """A gradient that one product takes with itself and another with what the first gives."""
    own, other = (named("dot_general", frame=k) for k in (2, 1))
    return f"""  %g = f32[8]{{0}} parameter(0)
  %w = f32[8,8]{{1,0}} parameter(1)
  %broadcast.9 = f32[8,8]{{1,0}} broadcast(%g), dimensions={{0}}{named("dot_general", frame=frame)}
  %columns = f32[8,8]{{1,0}} broadcast(%g), dimensions={{1}}{other}
  %outer = f32[8,8]{{1,0}} multiply(%broadcast.9, %columns){other}
  %root = f32[8,8]{{1,0}} sqrt(%outer)
  ROOT %inner = f32[8,8]{{1,0}} multiply(%broadcast.9, %root){own}"""


def test_the_product_that_a_vector_was_spread_for_comes_first() -> None:
    """XLA does so in optax's Shampoo, where the spread vector that is left is the later product's."""
    assert users_as_guessed("broadcast.9", _spread(2)) == ["inner", "outer"]
    assert users_as_guessed("broadcast.9", _spread(1)) == ["outer", "inner"]


@pytest.mark.parametrize(
    ("vector", "users"),
    [("f32[32]{0}", ["dot.1", "sin.1", "exp.1"]), ("f32[4,8]{1,0}", ["sin.1", "dot.1", "exp.1"])],
    ids=["a vector", "another matrix"],
)
def test_a_product_of_vectors_that_was_moved_ahead_of_those_stands_where_the_first_was(
    vector: str, users: list[str]
) -> None:
    """`jnp.vdot(x, jnp.sin(x))`: a walk comes to the first vector before what the second is made of."""
    body = f"""  %x = f32[8,4]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %sin.1 = f32[8,4]{{1,0}} sine(%x){named("sin")}
  %dot.1 = f32[8,4]{{1,0}} multiply(%x, %sin.1){named("dot_general")}
  %vector.1 = {vector} bitcast(%dot.1){named("dot_general")}
  %sum.1 = f32[] reduce(%vector.1, %zero), dimensions={{DIMENSIONS}}, to_apply=%sum{named("dot_general")}
  %exp.1 = f32[8,4]{{1,0}} exponential(%x){named("exp")}
  ROOT %r = (f32[], f32[8,4]{{1,0}}) tuple(%sum.1, %exp.1)"""
    body = body.replace("{DIMENSIONS}", "{0}" if vector == "f32[32]{0}" else "{0,1}")
    assert users_of("x", body) == users


def test_so_does_a_product_of_a_vector_with_itself() -> None:
    body = f"""  %x = f32[8,4]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %dot.1 = f32[8,4]{{1,0}} multiply(%x, %x){named("dot_general")}
  %vector.1 = f32[32]{{0}} bitcast(%dot.1){named("dot_general")}
  %sum.1 = f32[] reduce(%vector.1, %zero), dimensions={{0}}, to_apply=%sum{named("dot_general")}
  %sin.1 = f32[8,4]{{1,0}} sine(%x){named("sin")}
  %exp.1 = f32[8,4]{{1,0}} exponential(%x){named("exp")}
  ROOT %r = (f32[], f32[8,4]{{1,0}}, f32[8,4]{{1,0}}) tuple(%sum.1, %sin.1, %exp.1)"""
    assert users_of("x", body) == ["dot.1", "exp.1", "sin.1"]
