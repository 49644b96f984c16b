"""Broadcasts that the framework made for one operation each, as XLA's records show it."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("number", "operation", "listed"),
    [(5, "vmap()/mul", "own other"), (6, "vmap()/mul", "other own"), (5, "mul", "other own")],
)
def test_whoever_a_broadcast_was_made_for_reads_it_first(number: int, operation: str, listed: str) -> None:
    """CSE's walk came to that one first, which the operands of now do not tell."""
    own = f"mul.{number}.0"
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[4,8]{{1,0}} parameter(1)
  %mul.4.0 = f32[4,8]{{1,0}} broadcast(%p), dimensions={{1}}{named("vmap()/mul")}
  %mul.2.0 = f32[4,8]{{1,0}} multiply(%q, %mul.4.0){named("mul")}
  %{own} = f32[4,8]{{1,0}} multiply(%mul.4.0, %mul.2.0){named(operation)}
  ROOT %r = (f32[4,8]{{1,0}}, f32[4,8]{{1,0}}) tuple(%mul.2.0, %{own})"""
    names = {"own": own, "other": "mul.2.0"}
    listed_names = [names[it] for it in listed.split()]
    assert users_of("mul.4.0", body, ids=f"p q mul.4.0 mul.2.0 {own} r") == listed_names


@pytest.mark.parametrize(
    ("operation", "users"), [("mul", ["mul.4", "mul.3"]), ("broadcast_in_dim", ["mul.3", "mul.4"])]
)
def test_the_walk_comes_to_the_broadcast_of_an_operation_ahead_of_what_else_that_reads(
    operation: str, users: list[str]
) -> None:
    """a * (a * x): each product had one of its own; a broadcast of the program was there for both."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %scale = f32[] parameter(1)
  %{operation}.1 = f32[8]{{0}} broadcast(%scale), dimensions={{}}{named(operation)}
  %mul.3 = f32[8]{{0}} multiply(%{operation}.1, %p){named("mul", frame=2)}
  %exp.1 = f32[8]{{0}} exponential(%mul.3){named("exp")}
  ROOT %mul.4 = f32[8]{{0}} multiply(%{operation}.1, %exp.1){named("mul", frame=1)}"""
    assert users_of(f"{operation}.1", body) == users


def test_in_a_function_that_is_called_for_each_turn_it_does_so_as_well() -> None:
    """Younger or older: each call brought its own broadcast along, and what it is of is the same for all."""
    of = [named("jit(step)/mul", frame=frame) for frame in (1, 2, 3)]
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %scale = f32[] parameter(1)
  %mul.1 = f32[8]{{0}} broadcast(%scale), dimensions={{}}{of[0]}
  %mul.3 = f32[8]{{0}} multiply(%mul.1, %p){of[0]}
  %mul.5 = f32[8]{{0}} multiply(%mul.1, %mul.3){of[1]}
  ROOT %mul.7 = f32[8]{{0}} multiply(%mul.1, %mul.5){of[2]}"""
    ids = "p scale mul.1 mul.3 mul.5 mul.7"
    assert users_of("mul.1", body, ids=ids) == ["mul.7", "mul.5", "mul.3"]


@pytest.mark.parametrize(
    ("name", "users"),
    [("min", ["min.2", "select_n.1", "sub.1"]), ("broadcast_in_dim", ["min.2", "sub.1", "select_n.1"])],
    ids=["made for an operation", "written in the program"],
)
def test_operations_of_other_names_had_their_own_too(name: str, users: list[str]) -> None:
    """`where(done, most, most - min(p, most))`: the walk stands at the choice first."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %most = f32[] parameter(1)
  %done = pred[8]{{0}} parameter(2)
  %{name}.1 = f32[8]{{0}} broadcast(%most), dimensions={{}}{named(name)}
  %min.2 = f32[8]{{0}} minimum(%p, %{name}.1){named("min")}
  %exp.1 = f32[8]{{0}} exponential(%min.2){named("exp")}
  %sub.1 = f32[8]{{0}} subtract(%{name}.1, %exp.1){named("sub")}
  %select_n.1 = f32[8]{{0}} select(%done, %{name}.1, %sub.1){named("select_n")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%min.2, %select_n.1)"""
    assert users_of(f"{name}.1", body) == users
