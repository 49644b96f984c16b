"""What a function called for every array of a tree writes, and sigmoids, after CSE."""

from __future__ import annotations

import pytest

from .lists import named, places_in_source, users_of

_TREE = f"""  %lr = f32[] parameter(0)
  %x = f32[8]{{0}} parameter(1)
  %y = f32[4]{{0}} parameter(2)
  %z = f32[8]{{0}} parameter(3)
  %one = f32[] constant(1)
  %sub.1 = f32[] subtract(%one, %lr){named("sub", frame=1)}
  %broadcast.1 = f32[8]{{0}} broadcast(%sub.1), dimensions={{}}{named("mul", frame=2)}
  %mul.2 = f32[8]{{0}} multiply(%x, %broadcast.1){named("mul", frame=2)}
  %broadcast.2 = f32[8]{{0}} broadcast(%lr), dimensions={{}}{named("mul", frame=3)}
  %mul.3 = f32[8]{{0}} multiply(%mul.2, %broadcast.2){named("mul", frame=3)}
  %broadcast.3 = f32[4]{{0}} broadcast(%sub.1), dimensions={{}}{named("mul", frame=2)}
  %mul.4 = f32[4]{{0}} multiply(%y, %broadcast.3){named("mul", frame=2)}
  %broadcast.4 = f32[4]{{0}} broadcast(%lr), dimensions={{}}{named("mul", frame=3)}
  %mul.5 = f32[4]{{0}} multiply(%mul.4, %broadcast.4){named("mul", frame=3)}
  %broadcast.5 = f32[2]{{0}} broadcast(%lr), dimensions={{}}{named("mul", frame=3)}
  %mul.6 = f32[8]{{0}} multiply(%z, %broadcast.1){named("mul", frame=2)}
  %mul.7 = f32[8]{{0}} multiply(%mul.6, %broadcast.2){named("mul", frame=3)}
  %n = f32[2]{{0}} negate(%broadcast.5){named("mul", frame=3)}
  ROOT %r = (f32[8]{{0}}, f32[4]{{0}}, f32[8]{{0}}, f32[2]{{0}}) tuple(%mul.3, %mul.5, %mul.7, %n)"""


@pytest.mark.parametrize(
    ("function", "first", "users"),
    [
        ("update", (3, 8, 15), ["sub.1", "broadcast.2", "broadcast.5", "broadcast.4"]),
        ("update", (2, 8, 15), ["sub.1", "broadcast.2", "broadcast.4", "broadcast.5"]),
        ("f.<locals>.<lambda>", (2, 8, 15), ["sub.1", "broadcast.2", "broadcast.5", "broadcast.4"]),
    ],
    ids=["in an expression", "with a name", "in a lambda"],
)
def test_a_difference_without_a_name_is_made_for_every_array(
    function: str, first: tuple[int, int, int], users: list[str]
) -> None:
    tables = places_in_source((function, *first), (function, 3, 7, 19), (function, 3, 7, 26))
    assert users_of("lr", _TREE, tables=tables) == users


def _decayed(products: str) -> str:
    return f"""  %s = f32[] parameter(0)
  %x = f32[8]{{0}} parameter(1)
  %y = f32[8]{{0}} parameter(2)
  %w = f32[] constant(0.5)
  %number.1 = f32[8]{{0}} broadcast(%w), dimensions={{}}
  %two = f32[] constant(2)
  {products}
  %broadcast.1 = f32[8]{{0}} broadcast(%multiply.1), dimensions={{}}
  %mul.1 = f32[8]{{0}} multiply(%x, %broadcast.1){named("mul")}
  %mul.2 = f32[8]{{0}} multiply(%mul.1, %number.1){named("mul")}
  %mul.3 = f32[8]{{0}} multiply(%y, %broadcast.1){named("mul")}
  %mul.4 = f32[8]{{0}} multiply(%mul.3, %number.1){named("mul")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%mul.2, %mul.4)"""


@pytest.mark.parametrize(
    ("name", "users"), [("sub", ["mul.4", "mul.2"]), ("multiply", ["mul.2", "mul.4"])], ids=["merged", "own"]
)
def test_a_division_is_gone_of_which_the_reciprocal_was_multiplied_with_a_scalar(
    name: str, users: list[str]
) -> None:
    product = f"%multiply.1 = f32[] multiply(%s, %two){named(name)}"
    assert users_of("number.1", _decayed(product)) == users


_GATE = f"""  %x = f32[8]{{0}} parameter(0)
  %h = f32[8]{{0}} parameter(1)
  %one = f32[] constant(1)
  %ones = f32[8]{{0}} broadcast(%one), dimensions={{}}
  %div.1 = f32[8]{{0}} divide(%ones, %x){named("div", frame=1)}
  %sub.1 = f32[8]{{0}} subtract(%ones, %div.1){named("sub", frame=2)}
  %mul.1 = f32[8]{{0}} multiply(%sub.1, %h){named("mul", frame=2)}
  %mul.2 = f32[8]{{0}} multiply(%div.1, %sub.1){named("mul", frame=3)}
  %add.1 = f32[8]{{0}} add(%div.1, %h){named("add", frame=2)}
  %sub.2 = f32[8]{{0}} subtract(%ones, %h){named("sub", frame=2)}
  %sub.3 = f32[8]{{0}} subtract(%ones, %add.1){named("sub", frame=2)}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(%mul.1, %mul.2, %sub.2, %sub.3)"""


@pytest.mark.parametrize(
    ("frame", "of_sigmoid", "of_one"),
    [
        (3, ["sub.1", "add.1", "mul.2"], ["div.1", "sub.1", "sub.3", "sub.2"]),
        (2, ["sub.1", "mul.2", "add.1"], ["div.1", "sub.1", "sub.2", "sub.3"]),
    ],
    ids=["of the derivative", "of the program"],
)
def test_the_derivative_of_a_sigmoid_had_a_difference_of_its_own(
    frame: int, of_sigmoid: list[str], of_one: list[str]
) -> None:
    body = _GATE.replace(named("mul", frame=3), named("mul", frame=frame))
    assert users_of("div.1", body) == of_sigmoid
    assert users_of("ones", body) == of_one


def _tangent_derived_twice(path: str) -> str:
    """What reads a tangent and one minus it, along `path` and on the ways back."""
    back, again = path.replace("jvp())", "transpose(jvp()))"), f"transpose({path})"
    return f"""  %x = f32[8]{{0}} parameter(0)
  %one = f32[] constant(1)
  %ones = f32[8]{{0}} broadcast(%one), dimensions={{}}
  %tanh.1 = f32[8]{{0}} tanh(%x){named(f"{path}/tanh", frame=5)}
  %sub.1 = f32[8]{{0}} subtract(%ones, %tanh.1){named(f"{path}/sub", frame=5)}
  %mul.1 = f32[8]{{0}} multiply(%x, %sub.1){named(f"{path}/mul", frame=5)}
  %mul.2 = f32[8]{{0}} multiply(%mul.1, %sub.1){named(f"{back}/mul", frame=5)}
  %integer_pow.1 = f32[8]{{0}} multiply(%tanh.1, %tanh.1){named(f"{path}/integer_pow", frame=5)}
  %mul.3 = f32[8]{{0}} multiply(%mul.2, %integer_pow.1){named(f"{back}/mul", frame=5)}
  %mul.4 = f32[8]{{0}} multiply(%mul.3, %tanh.1){named(f"{back}/mul", frame=5)}
  %mul.5 = f32[8]{{0}} multiply(%mul.4, %sub.1){named(f"{again}/mul", frame=5)}
  %mul.6 = f32[8]{{0}} multiply(%mul.5, %sub.1){named(f"{again}/mul", frame=5)}
  ROOT %r = (f32[8]{{0}}) tuple(%mul.6)"""


@pytest.mark.parametrize(
    ("path", "users"),
    [
        ("jvp(jvp())", ["sub.1", "mul.4", "integer_pow.1"]),
        ("jvp(jvp(jvp()))", ["sub.1", "mul.4", "integer_pow.1"]),
        ("jvp()", ["sub.1", "integer_pow.1", "mul.4"]),
    ],
)
def test_the_last_takes_the_place_of_one_minus_a_tangent_of_which_the_derivative_is_derived(
    path: str, users: list[str]
) -> None:
    """It was made for the first product on the way back."""
    assert users_of("tanh.1", _tangent_derived_twice(path)) == users


@pytest.mark.parametrize(
    ("path", "users"),
    [
        ("jvp(jvp(jvp()))", ["mul.1", "mul.5", "mul.2", "mul.6"]),
        ("jvp()", ["mul.1", "mul.2", "mul.5", "mul.6"]),
    ],
)
def test_of_one_minus_a_tangent_the_ways_back_that_had_another_come_behind(
    path: str, users: list[str]
) -> None:
    """The last of all is the way back of the tangent itself, which had a third one."""
    assert users_of("sub.1", _tangent_derived_twice(path)) == users
