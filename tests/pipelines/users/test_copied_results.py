"""Values that are returned in another layout than they have, each case as XLA's records show it."""

from __future__ import annotations

from .lists import named, users_of


def _results(*values: str) -> str:
    shape = "f32[2,16,4]{2,1,0}"
    copies = "\n".join(
        f"  %transpose.{k} = {shape} transpose(%{value}), dimensions={{1,2,0}}"
        for k, value in enumerate(values, 1)
    )
    names = ", ".join(f"%transpose.{k}" for k in range(1, len(values) + 1))
    return f"{copies}\n  ROOT %r = ({', '.join([shape] * len(values))}) tuple({names})"


_ROWS = "f32[4,2,16]{2,1,0}"


def test_the_copy_reads_the_value_when_all_other_users_do() -> None:
    """What is computed of it for another result comes first."""
    body = f"""  %p = f32[2,16,4]{{2,1,0}} parameter(0)
  %transpose.0 = {_ROWS} transpose(%p), dimensions={{2,0,1}}{named("x")}
  %exponential.1 = {_ROWS} exponential(%transpose.0){named("exp")}
  %add.1 = {_ROWS} add(%transpose.0, %exponential.1){named("add")}
  %multiply.1 = {_ROWS} multiply(%add.1, %add.1){named("mul")}
  %bitcast.1 = f32[2,16,4]{{1,0,2}} bitcast(%multiply.1)
  %optimization_barrier.1 = f32[2,16,4]{{1,0,2}} opt-barrier(%bitcast.1){named("optimization_barrier")}
  %bitcast.2 = {_ROWS} bitcast(%optimization_barrier.1)
  %add.2 = {_ROWS} add(%bitcast.2, %add.1){named("add")}
{_results("exponential.1", "add.1", "add.2")}"""
    assert users_of("add.1", body) == ["add.2", "transpose.2", "multiply.1"]


def test_a_bitcast_of_the_program_reads_it_before() -> None:
    body = f"""  %p = f32[2,16,4]{{2,1,0}} parameter(0)
  %transpose.0 = {_ROWS} transpose(%p), dimensions={{2,0,1}}{named("x")}
  %exponential.1 = {_ROWS} exponential(%transpose.0){named("exp")}
  %bitcast.1 = f32[2,2,2,16]{{3,2,1,0}} bitcast(%exponential.1){named("reshape")}
  %transpose.8 = f32[2,2,16,2]{{3,2,1,0}} transpose(%bitcast.1), dimensions={{2,0,3,1}}{named("transpose")}
  %bitcast.2 = f32[2,16,4]{{2,1,0}} bitcast(%transpose.8){named("transpose")}
  %transpose.9 = {_ROWS} transpose(%bitcast.2), dimensions={{2,0,1}}{named("reshape")}
  %reverse.1 = {_ROWS} reverse(%exponential.1), dimensions={{2}}{named("rev")}
  %add.1 = {_ROWS} add(%transpose.9, %reverse.1){named("add")}
{_results("exponential.1", "add.1")}"""
    assert users_of("exponential.1", body) == ["reverse.1", "transpose.1", "bitcast.1"]


def test_a_product_reads_a_transpose_that_moves_nothing() -> None:
    body = f"""  %p = f32[2,16,4]{{2,1,0}} parameter(0)
  %transpose.0 = {_ROWS} transpose(%p), dimensions={{2,0,1}}{named("x")}
  %exponential.1 = {_ROWS} exponential(%transpose.0){named("exp")}
  %bitcast.1 = f32[8,16]{{1,0}} bitcast(%exponential.1){named("dot_general")}
  %dot.1 = f32[16,16]{{1,0}} dot(%bitcast.1, %bitcast.1), lhs_contracting_dims={{0}},\
 rhs_contracting_dims={{0}}{named("dot_general")}
  %negate.1 = f32[16,16]{{1,0}} negate(%dot.1){named("neg")}
{_results("exponential.1")}"""
    ids = "p bitcast.1 transpose.0 exponential.1 dot.1 negate.1 transpose.1 r"
    assert users_of("exponential.1", body, ids=ids) == ["transpose.1", "bitcast.1"]


def test_a_bitcast_that_was_made_for_a_reduction_reads_it_behind_the_copy() -> None:
    """It came when the element of the tuple had long been gone, where a first one had been."""
    body = f"""  %p = f32[2,16,4]{{2,1,0}} parameter(0)
  %transpose.0 = {_ROWS} transpose(%p), dimensions={{2,0,1}}{named("x")}
  %exponential.1 = {_ROWS} exponential(%transpose.0){named("exp")}
  %add.1 = {_ROWS} add(%transpose.0, %exponential.1){named("add")}
  %bitcast.1 = f32[128]{{0}} bitcast(%add.1){named("add")}
  %zero = f32[] constant(0)
  %total = f32[] reduce(%bitcast.1, %zero), dimensions={{0}}, to_apply=%sum{named("total")}
  %transpose.1 = f32[2,16,4]{{2,1,0}} transpose(%add.1), dimensions={{1,2,0}}
  %transpose.2 = f32[2,16,4]{{2,1,0}} transpose(%exponential.1), dimensions={{1,2,0}}
  ROOT %r = (f32[2,16,4]{{2,1,0}}, f32[], f32[2,16,4]{{2,1,0}}) tuple(%transpose.1, %total, %transpose.2)"""
    assert users_of("add.1", body) == ["bitcast.1", "transpose.1"]
