"""The order in which passes went through the clone of a loop's body, as XLA numbered such ones."""

from __future__ import annotations

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.turns_in_clones import in_turns


def turns(*lines: str) -> list[str]:
    text = "\n".join(f"  {line}" for line in lines)
    entry = "  %x = s32[] parameter(0)\n  ROOT %call = s32[] call(%x), to_apply=%body.3.clone"
    module = parse_module(
        f"HloModule m\n\n%body.3.clone {{\n  %p.1 = s32[] parameter(0)\n{text}\n}}\n\n"
        f"ENTRY %main {{\n{entry}\n}}\n"
    )
    body = next(c for c in module.computations if c is not module.entry)
    return [x.name for x in in_turns(body, [x for x in body if x.opcode != "parameter"])]


def named(op_name: str) -> str:
    return f', metadata={{op_name="jit(f)/jit(main)/while/body/{op_name}"}}'


def test_what_has_a_higher_number_than_one_behind_it_came_in_a_later_turn() -> None:
    assert turns(
        f"%add.5.0 = s32[] add(%p.1, %p.1){named('add')}",
        f"%add.3.0 = s32[] add(%p.1, %add.5.0){named('add')}",
        f"%add.6.0 = s32[] add(%p.1, %add.3.0){named('add')}",
        f"ROOT %add.4.0 = s32[] add(%p.1, %add.6.0){named('add')}",
    ) == ["add.3.0", "add.4.0", "add.5.0", "add.6.0"]


def test_the_first_of_a_root_is_of_the_turn_that_needs_it() -> None:
    body = (
        f"%negate.7.0 = s32[] negate(%p.1){named('neg')}",
        f"%add.NUMBER.0 = s32[] add(%negate.7.0, %p.1){named('rem')}",
        f"%add.3.0 = s32[] add(%p.1, %add.NUMBER.0){named('add')}",
        f"ROOT %add.4.0 = s32[] add(%p.1, %add.3.0){named('add')}",
    )
    late = turns(*(line.replace("NUMBER", "5") for line in body))
    assert late == ["add.3.0", "add.4.0", "negate.7.0", "add.5.0"]
    first = turns(*(line.replace("NUMBER", "2") for line in body))
    assert first == ["negate.7.0", "add.2.0", "add.3.0", "add.4.0"]


def test_what_a_pass_expanded_is_not_of_the_clone() -> None:
    """It bears no name of the framework's operation."""
    xor = "%xor.1.0 = s32[] xor(%p.1, %p.1)"
    add = f"ROOT %add.1.0 = s32[] add(%xor.1.0, %p.1){named('add')}"
    assert turns(xor, add) == ["add.1.0", "xor.1.0"]
    assert turns(xor + named("xor"), add) == ["xor.1.0", "add.1.0"]


def test_calls_are_inlined_behind_the_clone_where_a_root_of_both_tells() -> None:
    """CallInliner numbers what was called in turns of its own: what only it needs was there before."""
    body = (
        f"%tanh.1.0 = s32[] negate(%p.1){named('tanh')}",
        f"%sine.1.0 = s32[] negate(%tanh.1.0){named('jit(inner)/sine')}",
        f"%add.NUMBER.0 = s32[] add(%sine.1.0, %p.1){named('jit(inner)/add')}",
        f"ROOT %add.4.0 = s32[] add(%p.1, %add.NUMBER.0){named('add')}",
    )
    behind = turns(*(line.replace("NUMBER", "5") for line in body))
    assert behind == ["tanh.1.0", "add.4.0", "sine.1.0", "add.5.0"]
    with_it = turns(*(line.replace("NUMBER", "3") for line in body))
    assert with_it == ["tanh.1.0", "sine.1.0", "add.3.0", "add.4.0"]
