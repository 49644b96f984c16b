"""Users of results that were made narrow and wide again."""

from __future__ import annotations

import pytest

from .lists import named, places_in_source, users_as_guessed, users_of

_PLACES = places_in_source(("layer", 2, 8, 20), ("layer", 2, 7, 40), ("optimizer", 9, 8, 20))


@pytest.mark.parametrize(
    ("wide", "listed"),
    [("convert_element_type", ["two.1", "one.1"]), ("jvp()/convert_element_type", ["one.1", "two.1"])],
)
def test_a_derivative_was_narrow_if_others_are_made_wide_outside(wide: str, listed: list[str]) -> None:
    """`(x + bias).astype(bf16)`: the derivative of `bias` has the place of that sum and may be wide."""
    body = f"""  %p = f32[32]{{0}} parameter(0)
  %q = bf16[32]{{0}} parameter(1)
  %add.1 = f32[32]{{0}} add(%p, %p){named("jvp()/add", frame=1)}
  %narrow.1 = bf16[32]{{0}} convert(%add.1){named("jvp()/convert_element_type", frame=2)}
  %wide.1 = f32[32]{{0}} convert(%q){named(wide, frame=3)}
  %mul.1 = f32[32]{{0}} multiply(%p, %p){named("transpose(jvp())/mul", frame=1)}
  %one.1 = f32[32]{{0}} negate(%mul.1){named("one", frame=3)}
  %two.1 = f32[32]{{0}} exponential(%mul.1){named("two", frame=3)}
  %sum.1 = f32[32]{{0}} add(%two.1, %wide.1){named("sum", frame=3)}
  ROOT %r = (f32[32]{{0}}, bf16[32]{{0}}, f32[32]{{0}}) tuple(%one.1, %narrow.1, %sum.1)"""
    assert users_as_guessed("mul.1", body, tables=_PLACES) == listed


def test_what_was_narrow_itself_is_told_of_once() -> None:
    """A sum in bf16, made wide, of a function that makes another narrow: only its convert went."""
    body = f"""  %p = f32[32]{{0}} parameter(0)
  %q = bf16[32]{{0}} parameter(1)
  %add.1 = f32[32]{{0}} add(%p, %p){named("jvp()/add", frame=1)}
  %narrow.1 = bf16[32]{{0}} convert(%add.1){named("jvp()/convert_element_type", frame=2)}
  %convert.1 = f32[32]{{0}} convert(%q)
  %add.2 = f32[32]{{0}} add(%convert.1, %convert.1){named("jvp()/add", frame=1)}
  %one.1 = f32[32]{{0}} negate(%add.2){named("one", frame=3)}
  %two.1 = f32[32]{{0}} exponential(%add.2){named("two", frame=3)}
  ROOT %r = (f32[32]{{0}}, bf16[32]{{0}}, f32[32]{{0}}) tuple(%one.1, %narrow.1, %two.1)"""
    assert users_as_guessed("add.2", body, tables=_PLACES) == ["two.1", "one.1"]


_GAP = places_in_source(*(("step", line, 8, 20) for line in range(1, 6)))


@pytest.mark.parametrize(
    ("opcode", "number", "listed"),
    [("real", 9, ["two.1", "one.1"]), ("real", 8, ["one.1", "two.1"]), ("imag", 9, ["one.1", "two.1"])],
    ids=["two numbers are gone", "one is", "no convert"],
)
def test_the_real_part_of_what_was_made_narrow_was_read_by_a_pair(
    opcode: str, number: int, listed: list[str]
) -> None:
    """`z.astype(narrow)` takes the real part, has it made narrow and numbers both as converts."""
    body = f"""  %z = c64[32]{{0}} parameter(0)
  %n = s32[32]{{0}} parameter(1)
  %convert_element_type.6.0 = f32[32]{{0}} {opcode}(%z){named("convert_element_type", frame=1)}
  %one.1 = f32[32]{{0}} negate(%convert_element_type.6.0){named("one", frame=2)}
  %two.1 = f32[32]{{0}} exponential(%convert_element_type.6.0){named("two", frame=3)}
  %convert_element_type.{number}.0 = f32[32]{{0}} convert(%n){named("convert_element_type", frame=4)}
  %add.1 = f32[32]{{0}} add(%two.1, %convert_element_type.{number}.0){named("add", frame=5)}
  ROOT %r = (f32[32]{{0}}, f32[32]{{0}}) tuple(%one.1, %add.1)"""
    assert users_of("convert_element_type.6.0", body, tables=_GAP) == listed


@pytest.mark.parametrize(
    ("places", "behind", "listed"),
    [
        ((2, 4, 1), "", ["sub.1", "total.1"]),
        ((2, 3, 1), "", ["total.1", "sub.1"]),
        ((2, 4, 5), "", ["total.1", "sub.1"]),
        ((2, 4, 1), "convert_element_type.1.0", ["total.1", "sub.1"]),
    ],
    ids=["a place is gone", "none is", "another reads it later", "no numbers are"],
)
def test_a_place_of_which_nothing_is_left_between_a_value_and_its_readers_was_that_of_a_pair(
    places: tuple[int, int, int], behind: str, listed: list[str]
) -> None:
    """A sum has the place of a constant, which is in front of all."""
    value, difference, total = places
    body = f"""  %p = f32[32]{{0}} parameter(0)
  %n = s32[32]{{0}} parameter(1)
  %c = f32[] constant(0)
  %abs.1 = f32[32]{{0}} abs(%p){named("abs", frame=5)}
  %mul.1.0 = f32[32]{{0}} multiply(%abs.1, %abs.1){named("mul", frame=value)}
  %total.1 = f32[] reduce(%mul.1.0, %c), dimensions={{0}}, to_apply=%sum{named("total", frame=total)}
  %spread.1 = f32[32]{{0}} broadcast(%total.1), dimensions={{}}{named("sub", frame=difference)}
  %sub.1 = f32[32]{{0}} subtract(%mul.1.0, %spread.1){named("sub", frame=difference)}
  %{behind or "tan.1"} = f32[32]{{0}} convert(%n){named("convert_element_type" if behind else "tan", frame=5)}
  ROOT %r = (f32[32]{{0}}, f32[32]{{0}}) tuple(%sub.1, %{behind or "tan.1"})"""
    assert users_of("mul.1.0", body, tables=_GAP) == listed


@pytest.mark.parametrize(
    ("of", "reader", "age", "listed"),
    [
        ("", "sub.1", "sub.1 r", ["sub.1", "total.1"]),
        ("jit(_where)/", "sub.1", "sub.1 r", ["total.1", "sub.1"]),
        ("transpose(jvp())/", "sub.1", "sub.1 r", ["total.1", "sub.1"]),
        ("", "sub.1", "r sub.1", ["total.1", "sub.1"]),
        ("", "subtract.1", "subtract.1 r", ["total.1", "subtract.1"]),
    ],
    ids=["of the program", "of a function", "of a derivative", "made by a pass", "named by a pass"],
)
def test_places_tell_of_a_pair_only_between_operations_that_the_framework_made_itself(
    of: str, reader: str, age: str, listed: list[str]
) -> None:
    """A function has places of its own, a derivative those of what it is of, what a pass made any."""
    metadata = named("sub", frame=4) if reader == "sub.1" else ""
    body = f"""  %p = f32[32]{{0}} parameter(0)
  %c = f32[] constant(0)
  %abs.1 = f32[32]{{0}} abs(%p){named("abs", frame=5)}
  %mul.1.0 = f32[32]{{0}} multiply(%abs.1, %abs.1){named(of + "mul", frame=2)}
  %total.1 = f32[] reduce(%mul.1.0, %c), dimensions={{0}}, to_apply=%sum{named("total", frame=4)}
  %{reader} = f32[32]{{0}} subtract(%mul.1.0, %p){metadata}
  ROOT %r = (f32[32]{{0}}, f32[]) tuple(%{reader}, %total.1)"""
    assert users_of("mul.1.0", body, ids=f"p c abs.1 mul.1.0 total.1 {age}", tables=_GAP) == listed


@pytest.mark.parametrize(("name", "listed"), [("", ["sub.1", "flat"]), (named("reshape"), ["flat", "sub.1"])])
def test_what_is_reduced_through_a_reshape_of_a_pass_reads_that_value_itself(
    name: str, listed: list[str]
) -> None:
    """A reshape of the program has a place of its own."""
    body = f"""  %p = f32[32]{{0}} parameter(0)
  %c = f32[] constant(0)
  %abs.1 = f32[32]{{0}} abs(%p){named("abs", frame=5)}
  %mul.1.0 = f32[32]{{0}} multiply(%abs.1, %abs.1){named("mul", frame=2)}
  %flat = f32[4,8]{{1,0}} bitcast(%mul.1.0){name}
  %total.1 = f32[4]{{0}} reduce(%flat, %c), dimensions={{1}}, to_apply=%sum{named("total", frame=1)}
  %sub.1 = f32[32]{{0}} subtract(%mul.1.0, %p){named("sub", frame=4)}
  ROOT %r = (f32[32]{{0}}, f32[4]{{0}}) tuple(%sub.1, %total.1)"""
    assert users_of("mul.1.0", body, tables=_GAP) == listed


def test_a_place_that_was_a_concatenate_s_which_became_reductions_of_its_parts_is_no_pair_s() -> None:
    total = named("reduce_sum", frame=1)
    body = f"""  %p.1 = f32[32]{{0}} parameter(0)
  %sin.1 = f32[32]{{0}} sine(%p.1){named("sin", frame=2)}
  %c = f32[] constant(0)
  %reduce.2 = f32[] reduce(%sin.1, %c), dimensions={{0}}, to_apply=%sum{total}
  %q.1 = f32[32]{{0}} parameter(1)
  %reduce.1 = f32[] reduce(%q.1, %c), dimensions={{0}}, to_apply=%sum{total}
  %reduce_sum.0 = f32[] add(%reduce.2, %reduce.1){total}
  %exp.1 = f32[32]{{0}} exponential(%sin.1){named("exp", frame=4)}
  ROOT %r = (f32[], f32[32]{{0}}) tuple(%reduce_sum.0, %exp.1)"""
    age = "p.1 q.1 sin.1 exp.1 c r reduce.2 reduce.1 reduce_sum.0"
    assert users_of("sin.1", body, ids=age, tables=_GAP) == ["reduce.2", "exp.1"]


@pytest.mark.parametrize(
    ("operation", "listed"), [("add", ["two.1", "one.1"]), ("slice", ["one.1", "two.1"])]
)
def test_of_what_one_call_computes_only_the_like_of_what_is_made_narrow_was(
    operation: str, listed: list[str]
) -> None:
    """`lax.associative_scan(f, x).astype(bf16)`: all that it slices and joins has the place of the call."""
    body = f"""  %p = f32[32]{{0}} parameter(0)
  %add.1 = f32[32]{{0}} add(%p, %p){named("jvp()/add", frame=1)}
  %narrow.1 = bf16[32]{{0}} convert(%add.1){named("jvp()/convert_element_type", frame=2)}
  %part.1 = f32[32]{{0}} subtract(%p, %p){named(f"jvp()/{operation}", frame=1)}
  %one.1 = f32[32]{{0}} negate(%part.1){named("one", frame=3)}
  %two.1 = f32[32]{{0}} exponential(%part.1){named("two", frame=3)}
  ROOT %r = (f32[32]{{0}}, bf16[32]{{0}}, f32[32]{{0}}) tuple(%one.1, %narrow.1, %two.1)"""
    assert users_as_guessed("part.1", body, tables=_PLACES) == listed


@pytest.mark.parametrize(
    ("again", "listed"),
    [("rematted_computation/", ["one.1", "two.1"]), ("", ["two.1", "one.1"])],
)
def test_what_is_computed_again_is_no_derivative_of_that_place(again: str, listed: list[str]) -> None:
    """Where a derivative is made narrow, what it derives was, whatever operation that is."""
    narrow = f"transpose(jvp())/checkpoint/{again}"
    body = f"""  %p = f32[32]{{0}} parameter(0)
  %add.1 = f32[32]{{0}} add(%p, %p){named(f"{narrow}add", frame=1)}
  %narrow.1 = bf16[32]{{0}} convert(%add.1){named(f"{narrow}convert_element_type", frame=2)}
  %part.1 = f32[32]{{0}} subtract(%p, %p){named("jvp()/slice", frame=1)}
  %one.1 = f32[32]{{0}} negate(%part.1){named("one", frame=3)}
  %two.1 = f32[32]{{0}} exponential(%part.1){named("two", frame=3)}
  ROOT %r = (f32[32]{{0}}, bf16[32]{{0}}, f32[32]{{0}}) tuple(%one.1, %narrow.1, %two.1)"""
    assert users_as_guessed("part.1", body, tables=_PLACES) == listed


@pytest.mark.parametrize(
    ("reshaped", "listed"),
    [("mean/convert_element_type", ["back.1", "mul.1"]), ("mean/reshape", ["mul.1", "back.1"])],
)
def test_the_last_takes_the_place_of_a_convert_back(reshaped: str, listed: list[str]) -> None:
    """`y = x.astype(bf16)`, then `y.mean()`, which makes `y` wide: the sum reads `x` since."""
    body = f"""  %p = f32[8,4]{{1,0}} parameter(0)
  %q = bf16[8,4]{{1,0}} parameter(1)
  %x.1 = f32[8,4]{{1,0}} add(%p, %p){named("norm/add", frame=1)}
  %narrow.1 = bf16[8,4]{{1,0}} convert(%x.1){named("norm/convert_element_type", frame=2)}
  %flat.1 = f32[32]{{0}} bitcast(%x.1){named(reshaped, frame=3)}
  %sum.1 = f32[32]{{0}} sine(%flat.1){named("mean/reduce_sum", frame=3)}
  %mul.1 = bf16[8,4]{{1,0}} multiply(%narrow.1, %q){named("jvp()/mul", frame=3)}
  %back.1 = bf16[8,4]{{1,0}} negate(%narrow.1){named("transpose(jvp())/mul", frame=3)}
  ROOT %r = (f32[32], bf16[8,4], bf16[8,4]) tuple(%sum.1, %mul.1, %back.1)"""
    assert users_as_guessed("narrow.1", body, tables=_PLACES) == listed


@pytest.mark.parametrize(
    ("of", "listed"),
    [("jvp()/", ["tanh.1", "sub.1"]), ("", ["sub.1", "tanh.1"])],
    ids=["of what is derived", "of the program"],
)
def test_what_is_derived_in_a_place_of_before_read_the_value_as_it_was(of: str, listed: list[str]) -> None:
    body = f"""  %p = f32[32]{{0}} parameter(0)
  %abs.1 = f32[32]{{0}} abs(%p){named("abs", frame=5)}
  %mul.1.0 = f32[32]{{0}} multiply(%abs.1, %abs.1){named("mul", frame=2)}
  %tanh.1 = f32[32]{{0}} tanh(%mul.1.0){named(f"{of}tanh", frame=1)}
  %sub.1 = f32[32]{{0}} subtract(%mul.1.0, %p){named("sub", frame=4)}
  ROOT %r = (f32[32]{{0}}, f32[32]{{0}}) tuple(%tanh.1, %sub.1)"""
    assert users_of("mul.1.0", body, tables=_GAP) == listed
