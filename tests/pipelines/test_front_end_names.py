"""Which numbers are the program's, as XLA's dumps of its first and its last pass before fusion have it."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.front_end_names import named_by_front_end


def named(*lines: str) -> set[str]:
    body = "\n".join(f"  {line}" for line in lines)
    module = parse_module(f"HloModule m\n\nENTRY %main {{\n  %p = f32[8]{{0}} parameter(0)\n{body}\n}}\n")
    return {x.name for x in named_by_front_end(module)}


def mul(number: int, path: str = "mul", operand: str = "p") -> str:
    metadata = f'metadata={{op_name="jit(f)/{path}"}}'
    return f"%mul.{number}.0 = f32[8]{{0}} multiply(%{operand}, %p), {metadata}"


def test_the_upper_half_is_the_programs() -> None:
    """Of five operations a pass made one anew, which took the free number 0."""
    lines = [mul(k, operand="p") for k in (0, 6, 7, 8)]
    assert named(*lines, "ROOT " + mul(10)) == {f"mul.{k}.0" for k in (6, 7, 8, 10)}


def test_a_row_of_numbers_from_the_first_one_on_is_all_made_anew() -> None:
    """As the factors of normalizations behind which ReshapeMover puts the reshapes of what they read."""
    lines = [mul(k) for k in range(7)]
    assert named(*lines, "ROOT " + mul(7)) == set()


def test_what_is_left_of_the_program_lies_above_such_a_row() -> None:
    lines = [mul(k) for k in range(7)]
    assert named(*lines, mul(19), "ROOT " + mul(20)) == {"mul.19.0", "mul.20.0"}


def test_numbers_behind_the_programs_are_passes_again() -> None:
    """What was called outnumbers the program: its clones have used up the free numbers."""
    called = [mul(k, "jit(g)/mul") for k in (0, 1, 2, 5, 6, 7)]
    assert named(mul(3), mul(4), *called[:-1], "ROOT " + called[-1]) == {"mul.3.0", "mul.4.0"}


def test_a_branch_that_the_framework_inlined_is_in_the_window() -> None:
    """As where the predicate of jax.lax.cond is a number."""
    branch = [mul(k, "cond/branch_0_fun/mul") for k in (6, 7)]
    assert named(mul(5), *branch, "ROOT " + mul(8)) == {f"mul.{k}.0" for k in (5, 6, 7, 8)}


def test_a_branch_that_the_compiler_inlined_is_not() -> None:
    branch = [mul(k, "cond/branch_0_fun/mul") for k in (0, 9)]
    assert named(mul(5), mul(6), *branch, "ROOT " + mul(8)) == {f"mul.{k}.0" for k in (5, 6, 8)}


EXP = "%exp.1.0 = f32[8]{0} exponential(%mul.6.0)"


def test_what_is_read_by_lower_numbers_is_behind_the_programs() -> None:
    """As where normalization had to be of another layout: it went on behind the program's numbers."""
    lines = [mul(6), EXP, mul(4, operand="exp.1.0"), mul(3)]
    assert named(*lines, "ROOT " + mul(5, operand="mul.4.0")) == {f"mul.{k}.0" for k in (3, 4, 5)}


def test_what_a_lower_number_reads_at_once_may_have_been_found_equal() -> None:
    lines = [mul(6), EXP, mul(4, operand="mul.6.0"), mul(3)]
    assert named(*lines, "ROOT " + mul(5, operand="mul.4.0")) == {f"mul.{k}.0" for k in (4, 5, 6)}


def test_what_goes_back_in_two_roots_is_not_the_programs_data() -> None:
    path = 'metadata={op_name="jit(f)/neg"}'
    lines = [
        mul(6),
        f"%neg.3.0 = f32[8]{{0}} negate(%mul.6.0), {path}",
        "%exp.1.0 = f32[8]{0} exponential(%neg.3.0)",
        f"%neg.2.0 = f32[8]{{0}} negate(%exp.1.0), {path}",
        mul(4, operand="neg.2.0"),
        mul(3),
    ]
    kept = {"mul.4.0", "mul.5.0", "mul.6.0", "neg.2.0", "neg.3.0"}
    assert named(*lines, "ROOT " + mul(5, operand="mul.4.0")) == kept


def test_what_reads_higher_numbers_is_in_front_of_the_programs() -> None:
    """The program's are finished behind those of what it calls, and free numbers lie in front of both."""
    lines = [*map(mul, (16, 17, 18, 19)), EXP.replace("mul.6", "mul.17"), mul(11, operand="exp.1.0")]
    kept = {f"mul.{k}.0" for k in (16, 17, 18, 19, 20)}
    assert named(*lines, "ROOT " + mul(20, operand="mul.11.0")) == kept


def test_one_that_many_lower_numbers_read_is_the_latest_of_equal_ones() -> None:
    """As a step that is converted again and again: CSE keeps the one that its walk meets first."""
    lines = [mul(11), EXP.replace("mul.6", "mul.11"), *(mul(k, operand="exp.1.0") for k in (8, 9, 10))]
    assert named(*lines, "ROOT " + mul(12, operand="mul.10.0")) == {f"mul.{k}.0" for k in range(8, 13)}


def test_constants_have_a_window_as_well() -> None:
    """A broadcast of a constant without op_name is the front end's, one with op_name is not."""
    lines = [
        "%constant.3.0 = f32[] constant(2)",
        "%constant.4.0 = f32[] constant(3)",
        "%broadcast.3.0 = f32[8]{0} broadcast(%constant.3.0), dimensions={}",
        "%broadcast.4.0 = f32[8]{0} broadcast(%constant.4.0), dimensions={}",
        '%broadcast.7.0 = f32[8]{0} broadcast(%constant.4.0), dimensions={}, metadata={op_name="jit(f)/div"}',
    ]
    root = "ROOT %tuple.1.0 = (f32[8]{0}, f32[8]{0}) tuple(%broadcast.3.0, %broadcast.7.0)"
    assert named(*lines, root) == {"constant.3.0", "constant.4.0", "broadcast.3.0", "broadcast.4.0"}


def test_two_that_stand_where_the_front_end_can_have_made_but_one_are_made_anew() -> None:
    """Had there been one, its number would be 1; there were two, so theirs would be 2 and 3."""
    assert named(mul(0), "ROOT " + mul(1)) == set()
    assert named("ROOT " + mul(1)) == {"mul.1.0"}


def named_beside_body(body: list[str], *lines: str, name: str = "body") -> set[str]:
    text = f"HloModule m\n\n%{name} {{\n  %p = f32[8]{{0}} parameter(0)\n"
    text += "\n".join(f"  {line}" for line in body)
    text += "\n}\n\nENTRY %main {\n  %q = f32[8]{0} parameter(0)\n"
    text += f"  %p = f32[8]{{0}} call(%q), to_apply=%{name}\n"
    module = parse_module(text + "\n".join(f"  {line}" for line in lines) + "\n}\n")
    return {x.name for x in named_by_front_end(module)}


IN_LOOP = "while/body/mul"


@pytest.mark.parametrize("calls", [3, 2])
def test_what_was_inlined_fills_the_window_that_a_broadcast_would_have_alone(calls: int) -> None:
    of_call = 'broadcast(%c.0), dimensions={}, metadata={op_name="jit(f)/jit(g)"}'
    lines = [f"%broadcast.{k}.0 = f32[8]{{0}} {of_call}" for k in range(5, 5 + calls)]
    last = "ROOT %broadcast.8.0 = f32[8]{0} broadcast(%c.0), dimensions={}"
    expected = set() if calls == 3 else {"broadcast.8.0"}
    assert named("%c.0 = f32[] constant(1)", *lines, last) - {"c.0"} == expected


def test_a_body_has_a_window_of_its_own() -> None:
    """It is named before what comes behind it in the entry, whose window ends at twice as many."""
    body = [mul(2, IN_LOOP), mul(3, IN_LOOP), "ROOT " + mul(20, IN_LOOP)]
    entry = [mul(k) for k in (1, 10, 11)]
    kept = {f"mul.{k}.0" for k in (2, 3, 10, 11, 12)}
    assert named_beside_body(body, *entry, "ROOT " + mul(12)) == kept


def test_what_reads_higher_numbers_in_a_body_is_not_the_programs() -> None:
    """As where an element of a condition is compared with a number, behind a reshape that was moved."""
    body = [*(mul(k, IN_LOOP) for k in (3, 4, 5)), "%exp.1.0 = f32[8]{0} exponential(%mul.5.0)"]
    entry = [mul(k) for k in (10, 11)]
    kept = {f"mul.{k}.0" for k in (3, 4, 5, 10, 11, 12)}
    assert named_beside_body([*body, "ROOT " + mul(2, IN_LOOP, "exp.1.0")], *entry, "ROOT " + mul(12)) == kept


def test_others_between_do_not_belong_to_the_entry() -> None:
    """What a body has kept was finished first, and what bears less than that was made anew."""
    body = [mul(9, IN_LOOP), "ROOT " + mul(10, IN_LOOP)]
    entry = [mul(k) for k in (8, 11, 12, 13)]
    kept = {f"mul.{k}.0" for k in (9, 10, 11, 12, 13, 14)}
    assert named_beside_body(body, *entry, "ROOT " + mul(14)) == kept


def test_a_clone_has_no_window() -> None:
    body = [mul(6, IN_LOOP), "ROOT " + mul(7, IN_LOOP)]
    assert named_beside_body(body, mul(9), "ROOT " + mul(10), name="body.clone") == {"mul.9.0", "mul.10.0"}


def test_what_a_clone_took_is_behind_the_programs_numbers() -> None:
    """It goes on where the entry's end, and a pass that makes something anew goes on behind that."""
    clone = [mul(k, IN_LOOP) for k in range(15, 19)] + ["ROOT " + mul(19, IN_LOOP)]
    entry = [mul(k) for k in (12, 13, 14)]
    kept = {"mul.12.0", "mul.13.0", "mul.14.0"}
    assert named_beside_body(clone, *entry, "ROOT " + mul(20), name="body.clone") == kept


def test_a_broadcast_may_bear_its_own_name_for_an_op_name() -> None:
    """XLA writes it down when a text is turned into StableHLO; the number is that of the text."""
    constants = [
        f'%broadcast.{k}.0 = f32[8]{{0}} broadcast(%c.0), dimensions={{}}, metadata={{op_name="{name}"}}'
        for k, name in ((4, "broadcast.3"), (5, "broadcast.5"), (6, "broadcast.6"))
    ]
    last = "ROOT %broadcast.7.0 = f32[8]{0} broadcast(%c.0), dimensions={}"
    found = named("%c.0 = f32[] constant(1)", *constants, last)
    assert found - {"c.0"} == {f"broadcast.{k}.0" for k in (4, 5, 6, 7)}


def test_constants_of_a_loop_may_bear_the_name_of_a_call_around() -> None:
    """As CallInliner gives it to what has none; what was inlined within the loop bears that of the loop."""
    around = 'metadata={op_name="jit(f)/jit(g)"}'
    body = [
        f"%constant.3.0 = f32[] constant(2), {around}",
        '%constant.9.0 = f32[] constant(3), metadata={op_name="jit(f)/jit(g)/while/body/jit(h)"}',
        f"%broadcast.3.0 = f32[8]{{0}} broadcast(%constant.3.0), dimensions={{}}, {around}",
        mul(5, "jit(g)/while/body/mul", "broadcast.3.0"),
        "ROOT %tuple.1.0 = (f32[8]{0}, f32[]) tuple(%mul.5.0, %constant.9.0)",
    ]
    kept = {"constant.3.0", "broadcast.3.0", "mul.5.0"}
    assert named_beside_body(body, "ROOT %tuple.2.0 = (f32[8]{0}) tuple(%q)") == kept


def test_constants_of_a_loop_that_bear_a_call_by_name_came_with_that() -> None:
    """In a text that was turned into StableHLO; the loop is not in that call."""
    called = 'metadata={op_name="call.7"}'
    body = [
        f"%constant.3.0 = f32[] constant(2), {called}",
        "%constant.4.0 = f32[] constant(3)",
        f"%broadcast.3.0 = f32[8]{{0}} broadcast(%constant.3.0), dimensions={{}}, {called}",
        mul(5, "while/body/mul", "broadcast.3.0"),
        "ROOT %tuple.1.0 = (f32[8]{0}, f32[]) tuple(%mul.5.0, %constant.4.0)",
    ]
    kept = {"constant.4.0", "mul.5.0"}
    assert named_beside_body(body, "ROOT %tuple.2.0 = (f32[8]{0}) tuple(%q)") == kept


def test_no_window_ends_at_nothing() -> None:
    """What bears no number is a pass's, however many others stand in the program's window."""
    called = [mul(k, "jit(g)/mul") for k in (5, 6)]
    assert named(mul(0), *called, mul(7), "ROOT " + mul(8)) == {"mul.7.0", "mul.8.0"}


def test_a_constant_may_bear_the_name_of_what_it_is_spread_for() -> None:
    """Float normalization has given it the one of the broadcast, which is of the program."""
    lines = [
        '%constant.5.0 = f32[] constant(0), metadata={op_name="jit(f)/mul"}',
        '%mul.4.0 = f32[8]{0} broadcast(%constant.5.0), dimensions={}, metadata={op_name="jit(f)/mul"}',
        'ROOT %mul.5.0 = f32[8]{0} multiply(%mul.4.0, %p), metadata={op_name="jit(f)/mul"}',
    ]
    assert named(*lines) == {"constant.5.0", "mul.4.0", "mul.5.0"}
    lines[0] = lines[0].replace("/mul", "/sub")
    assert "constant.5.0" not in named(*lines)


@pytest.mark.parametrize(
    ("numbers", "program"),
    [((3, 4, 6), {3, 4}), ((1, 4, 8), {8})],
    ids=["as many with one more", "one of each"],
)
def test_of_numbers_spread_as_many_in_a_lower_window_are_the_programs(
    numbers: tuple[int, ...], program: set[int]
) -> None:
    """Passes spread numbers as well, and go on behind those. One alone tells nothing."""
    lines = [line for k in numbers for line in (f"%c.{k} = f32[] constant({k})", spread(k))]
    joined = ", ".join(f"%broadcast.{k}.0" for k in numbers)
    kinds = ", ".join("f32[8]{0}" for _ in numbers)
    found = named(*lines, f"ROOT %tuple.1 = ({kinds}) tuple({joined})")
    assert {n for n in found if n.startswith("broadcast")} == {f"broadcast.{k}.0" for k in program}


def spread(number: int) -> str:
    return f"%broadcast.{number}.0 = f32[8]{{0}} broadcast(%c.{number}), dimensions={{}}"
