"""What stands in front of the derivative of a choice in a function."""

from __future__ import annotations

import pytest

from .lists import named, users_of

CALL, DERIVATIVE = "jvp(jit(_where))", "transpose(jvp(jit(_where)))"


def _program(*, frame: int = 3, spread: str = CALL) -> str:
    """`y` is read by what the function chooses, and by what reads its derivative, which is a result."""
    return f"""
  %x = f32[4,8] parameter(0)
  %y = f32[4,8] parameter(1)
  %p = pred[8] parameter(2)
  %c = f32[] constant(0)
  %zeros = f32[4,8] broadcast(%c), dimensions={{}}
  %at.1.0 = pred[4,8] broadcast(%p), dimensions={{1}}{named(f"{spread}/broadcast_in_dim", frame=2)}
  %select_n.2.0 = f32[4,8] select(%at.1.0, %x, %zeros){named(f"{DERIVATIVE}/select_n", frame=frame)}
  %div.2.0 = f32[4,8] divide(%select_n.2.0, %y){named("transpose(jvp())/div", frame=1)}
  %log.1.0 = f32[4,8] log(%y){named("jvp()/log", frame=1)}
  %select_n.1.0 = f32[4,8] select(%at.1.0, %zeros, %log.1.0){named(f"{CALL}/select_n", frame=3)}
  ROOT %tuple.1.0 = (f32[4,8], f32[4,8]) tuple(%div.2.0, %select_n.1.0)"""


def test_the_derivative_needs_all_that_the_call_was_given() -> None:
    assert users_of("y", _program()) == ["log.1.0", "div.2.0"]


@pytest.mark.parametrize("other", [_program(frame=4), _program(spread="jvp()")])
def test_no_other_choice_and_no_predicate_of_the_caller_does(other: str) -> None:
    assert users_of("y", other) == ["div.2.0", "log.1.0"]


def test_what_is_chosen_on_tells_where_the_derivative_of_a_number_was_taken_into_a_broadcast() -> None:
    spread = named(f"{CALL}/broadcast_in_dim", frame=2)
    on, back = "jvp(vmap(jit(_where)))/select_n", "transpose(jvp(vmap(jit(_where))))/select_n"
    body = f"""
  %x = f32[4,8] parameter(0)
  %y = f32[4,8] parameter(1)
  %p = pred[8] parameter(2)
  %q = pred[4,8] parameter(3)
  %c = f32[] constant(0)
  %d = f32[] constant(2)
  %none.1.0 = f32[8] broadcast(%c), dimensions={{}}
  %all.1.0 = f32[8] broadcast(%d), dimensions={{}}
  %zeros = f32[4,8] broadcast(%c), dimensions={{}}
  %select_n.5.0 = f32[8] select(%p, %none.1.0, %all.1.0){named(f"{DERIVATIVE}/select_n", frame=3)}
  %broadcast.1.0 = f32[4,8] broadcast(%select_n.5.0), dimensions={{1}}{spread}
  %select_n.2.0 = f32[4,8] select(%q, %broadcast.1.0, %zeros){named(back, frame=5)}
  %div.2.0 = f32[4,8] divide(%select_n.2.0, %y){named("transpose(jvp())/div", frame=1)}
  %at.1.0 = pred[4,8] broadcast(%p), dimensions={{1}}{spread}
  %log.1.0 = f32[4,8] log(%y){named("jvp()/log", frame=1)}
  %select_n.1.0 = f32[4,8] select(%q, %log.1.0, %x){named(on, frame=5)}
  %select_n.3.0 = f32[4,8] select(%at.1.0, %zeros, %select_n.1.0){named(f"{CALL}/select_n", frame=4)}
  ROOT %tuple.1.0 = (f32[4,8], f32[4,8]) tuple(%div.2.0, %select_n.3.0)"""
    assert users_of("y", body) == ["log.1.0", "div.2.0"]
    assert users_of("y", body.replace("at.1.0, %zeros", "q, %zeros")) == ["div.2.0", "log.1.0"]


@pytest.mark.parametrize(
    ("around", "other", "users"),
    [
        ("while/body/", "zeros", ["log.1.0", "div.2.0"]),
        ("while/body/eval_jaxpr/", "zeros", ["div.2.0", "log.1.0"]),
        ("", "zeros", ["div.2.0", "log.1.0"]),
        ("while/body/", "x", ["div.2.0", "log.1.0"]),
    ],
    ids=["in a loop", "in a scan", "outside", "without zeros"],
)
def test_in_loops_the_derivative_is_given_zeros_that_it_does_not_read(
    around: str, other: str, users: list[str]
) -> None:
    body = f"""
  %x = f32[4,8] parameter(0)
  %y = f32[4,8] parameter(1)
  %p = pred[4,8] parameter(2)
  %c = f32[] constant(0)
  %zeros = f32[4,8] broadcast(%c), dimensions={{}}
  %select_n.2.0 = f32[4,8] select(%p, %x, %{other}){named(f"{around}{DERIVATIVE}/select_n", frame=3)}
  %div.2.0 = f32[4,8] divide(%select_n.2.0, %y){named("transpose(jvp())/div", frame=1)}
  %log.1.0 = f32[4,8] log(%y){named("jvp()/log", frame=1)}
  %select_n.1.0 = f32[4,8] select(%p, %zeros, %log.1.0){named(f"{around}{CALL}/select_n", frame=3)}
  ROOT %tuple.1.0 = (f32[4,8], f32[4,8]) tuple(%div.2.0, %select_n.1.0)"""
    assert users_of("y", body) == users


@pytest.mark.parametrize(
    ("around", "users"),
    [("while/body/", ["sin.1.0", "exp.1.0"]), ("", ["exp.1.0", "sin.1.0"])],
    ids=["in a loop", "outside"],
)
def test_the_call_that_computed_such_zeros_ended_in_a_tuple(around: str, users: list[str]) -> None:
    body = f"""
  %x = f32[4,8] parameter(0)
  %p = pred[4,8] parameter(1)
  %c = f32[] constant(0)
  %zeros = f32[4,8] broadcast(%c), dimensions={{}}
  %select_n.1.0 = f32[4,8] select(%p, %x, %zeros){named(f"{around}{CALL}/select_n", frame=3)}
  %exp.1.0 = f32[4,8] exponential(%select_n.1.0){named("jvp()/exp", frame=1)}
  %sin.1.0 = f32[4,8] sine(%select_n.1.0){named("jvp()/sin", frame=1)}
  %select_n.2.0 = f32[4,8] select(%p, %x, %zeros){named(f"{around}{DERIVATIVE}/select_n", frame=3)}
  ROOT %tuple.1.0 = (f32[4,8], f32[4,8], f32[4,8]) tuple(%exp.1.0, %sin.1.0, %select_n.2.0)"""
    ids = "x p c zeros exp.1.0 sin.1.0 tuple.1.0 select_n.1.0 select_n.2.0"
    assert users_of("select_n.1.0", body, ids=ids) == users


def test_a_number_that_no_function_reads_is_the_programs() -> None:
    """What reads it comes in the order of the program."""
    spread = "f32[4,8] broadcast(%d), dimensions={}"
    body = _program().replace("  %x = ", f"  %d = f32[] constant(3)\n  %y = {spread}\n  %x = ", 1)
    body = body.replace("  %y = f32[4,8] parameter(1)\n", "", 1).replace("parameter(2)", "parameter(1)")
    assert users_of("y", body) == ["log.1.0", "div.2.0"]
