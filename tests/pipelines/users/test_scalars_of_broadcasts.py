"""The order of users of a scalar that was an array of equal numbers in the program."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("age", "name", "users"),
    [
        ("p w c n r mul sub broadcast.1", "mul", ["broadcast.1", "sub"]),
        ("p w c mul n sub r broadcast.1", "mul", ["sub", "broadcast.1"]),
        ("p w c n r mul sub broadcast.1", "product", ["sub", "broadcast.1"]),
    ],
    ids=["made with what simplification made", "of the program", "of a pass"],
)
def test_the_last_takes_the_place_of_the_broadcast_made_with_the_scalar(
    age: str, name: str, users: list[str]
) -> None:
    """The other broadcast read that; a subtraction of equal numbers did, and reads the scalar since."""
    body = f"""  %p = f32[] parameter(0)
  %w = f32[16]{{0}} parameter(1)
  %c = f32[] constant(20)
  %n = f32[] constant(-20)
  %mul = f32[] multiply(%p, %c){named(name)}
  %sub = f32[] add(%mul, %n){named("sub")}
  %broadcast.1 = f32[16]{{0}} broadcast(%mul), dimensions={{}}{named("mul")}
  ROOT %r = (f32[], f32[16]{{0}}) tuple(%sub, %broadcast.1)"""
    assert users_of("mul", body, ids=age) == users


@pytest.mark.parametrize("ids_known", [True, False])
@pytest.mark.parametrize(
    ("shape", "users"), [("f32[]", ["div.1", "broadcast.9"]), ("f32[4]", ["broadcast.9", "div.1"])]
)
def test_a_reshaped_broadcast_of_a_scalar_comes_behind_that_of_the_program(
    shape: str, users: list[str], ids_known: bool
) -> None:
    read = "{}" if shape == "f32[]" else "{0}"
    body = f"""  %p = {shape} parameter(0)
  %sub.1 = {shape} sine(%p){named("sin")}
  %broadcast.9 = f32[4,8]{{1,0}} broadcast(%sub.1), dimensions={read}{named("div")}
  %div.1 = f32[4,4,2]{{2,1,0}} broadcast(%sub.1), dimensions={read}{named("div")}
  ROOT %r = (f32[4,8]{{1,0}}, f32[4,4,2]{{2,1,0}}) tuple(%broadcast.9, %div.1)"""
    age = "p sub.1 div.1 r broadcast.9"
    assert users_of("sub.1", body, ids=age, ids_known=ids_known) == users


@pytest.mark.parametrize(
    ("number", "operation", "name", "users"),
    [
        (5, "broadcast_in_dim", "sin", ["broadcast.8.0", "broadcast.5.0", "broadcast.3.0"]),
        (4, "broadcast_in_dim", "sin", ["broadcast.3.0", "broadcast.8.0", "broadcast.4.0"]),
        (5, "add", "sin", ["broadcast.3.0", "broadcast.5.0", "broadcast.8.0"]),
        (5, "broadcast_in_dim", "", ["broadcast.3.0", "broadcast.5.0", "broadcast.8.0"]),
    ],
    ids=["each with one that is gone", "one with none", "reshaped earlier", "of what a pass made"],
)
def test_the_last_takes_the_place_of_what_was_made_for_a_reshape_that_was_gone(
    number: int, operation: str, name: str, users: list[str]
) -> None:
    """Each number was reshaped after it was spread, and a number is missing behind that of what is left."""
    other = f"broadcast.{number}.0"
    shapes = "f32[1,4]{1,0}, f32[1,8]{1,0}, f32[1,2]{1,0}"
    body = f"""  %p = f32[] parameter(0)
  %x = f32[] sine(%p){named(name) if name else ""}
  %broadcast.3.0 = f32[1,4]{{1,0}} broadcast(%x), dimensions={{}}{named(operation)}
  %{other} = f32[1,8]{{1,0}} broadcast(%x), dimensions={{}}{named(operation)}
  %broadcast.8.0 = f32[1,2]{{1,0}} broadcast(%x), dimensions={{}}{named(operation)}
  ROOT %r = ({shapes}) tuple(%broadcast.3.0, %{other}, %broadcast.8.0)"""
    ids = f"p r x broadcast.3.0 {other} broadcast.8.0"
    assert users_of("x", body, ids=ids) == users
