"""What must hold for any program: copies are the same, one change is one change, fusion is seen through."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TypeVar

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hlofuse.diff import Added, Changed, FusionChange, FusionKind, Kind, ModuleDiff, Removed, diff
from hlofuse.ir import parse_module
from .programs import (
    BINARY,
    SHAPE,
    UNARY,
    Program,
    inserted,
    is_clear,
    programs,
    text,
    users,
    with_op,
    without,
)

T = TypeVar("T")
seeds = st.integers(0, 1000)
check = settings(max_examples=60, deadline=None)
FRESH = "cosine"
"""An operation the generator does not use."""


def compare(before: str, after: str) -> ModuleDiff:
    return diff(parse_module(before), parse_module(after))


def only(found: tuple[T, ...]) -> T:
    assert len(found) == 1, found
    return found[0]


@check
@given(programs(), seeds)
def test_renamed_reordered_renumbered_copy_is_the_same(program: Program, seed: int) -> None:
    assert compare(text(program), text(program, seed=seed)).same


@st.composite
def fusions(draw: st.DrawFn, program: Program) -> list[tuple[int, int]]:
    """Ranges of operations to fuse: consecutive ones are always convex."""
    cuts = sorted(draw(st.sets(st.integers(0, len(program)), max_size=6)))
    ranges = [(i, j) for i, j in itertools.pairwise(cuts) if draw(st.booleans())]
    return [(i, j) for i, j in ranges if any(op.opcode != "parameter" for op in program[i:j])]


@check
@given(st.data(), programs(), seeds, st.booleans())
def test_fusing_is_no_edit(data: st.DataObject, program: Program, seed: int, copies: bool) -> None:
    fused = data.draw(fusions(program))
    found = compare(text(program), text(program, seed=seed, fused=fused, copies=copies))
    assert found.same_program
    assert {f.kind for f in found.fusions} <= {FusionKind.NEW}
    assert sum(len(f.after) for f in found.fusions) == found.after.fusions
    back = compare(text(program, seed=seed, fused=fused, copies=copies), text(program))
    assert {f.kind for f in back.fusions} <= {FusionKind.VANISHED}


@check
@given(st.data(), programs(), seeds, st.booleans())
def test_same_fusions_are_the_same(data: st.DataObject, program: Program, seed: int, copies: bool) -> None:
    fused = data.draw(fusions(program))
    found = compare(
        text(program, fused=fused, copies=copies), text(program, seed=seed, fused=fused, copies=copies)
    )
    assert found.same_program
    assert not found.fusions


def is_of_one(change: FusionChange) -> bool:
    return max(len(change.before), len(change.after)) == 1


def mirrored(change: FusionChange) -> FusionKind:
    """The change's kind seen from the other side. A fusion that lost and took in has shrunk on both."""
    shrunk = FusionKind.SHRUNK if change.joined else FusionKind.GROWN
    return {
        FusionKind.NEW: FusionKind.VANISHED,
        FusionKind.VANISHED: FusionKind.NEW,
        FusionKind.GROWN: FusionKind.SHRUNK,
        FusionKind.SHRUNK: shrunk,
    }.get(change.kind, change.kind)


@check
@given(st.data(), programs(), seeds)
def test_every_instruction_is_accounted_for(data: st.DataObject, program: Program, seed: int) -> None:
    """Whatever the two fusings, what was computed is computed, and every changed fusion is told of."""
    one, other = data.draw(fusions(program)), data.draw(fusions(program))
    before = parse_module(text(program, fused=one))
    after = parse_module(text(program, seed=seed, fused=other))
    found = diff(before, after)
    assert found.same_program
    for i in before.entry:
        if i.opcode not in ("fusion", "get-tuple-element", "tuple"):
            assert found.pairs.after_of(i), i
    for side, module, count in (("before", before, found.before), ("after", after, found.after)):
        reported = {f for change in found.fusions for f in getattr(change, side)}
        assert reported <= set(module.entry)
        assert len(reported) + found.fusions_unchanged == count.fusions
    back = diff(after, before).fusions
    assert Counter((mirrored(f), f.after, f.before) for f in found.fusions if is_of_one(f)) == Counter(
        (f.kind, f.before, f.after) for f in back if is_of_one(f)
    )


def pick(data: st.DataObject, program: Program, opcodes: tuple[str, ...]) -> int:
    at = [i for i, op in enumerate(program) if op.opcode in opcodes]
    assume(at)
    return data.draw(st.sampled_from(at))


@check
@given(st.data(), programs(), seeds)
def test_one_opcode(data: st.DataObject, program: Program, seed: int) -> None:
    at = pick(data, program, UNARY)
    found = compare(text(program), text(with_op(program, at, opcode=FRESH), seed=seed))
    edit = only(found.edits)
    assert isinstance(edit, Changed)
    assert [d.kind for d in edit.details] == [Kind.OPCODE]


@check
@given(st.data(), programs(), seeds, st.sampled_from(["f32[8,16]{0,1}", "f32[8,17]{1,0}", "f16[8,16]{1,0}"]))
def test_one_shape(data: st.DataObject, program: Program, seed: int, shape: str) -> None:
    at = pick(data, program, (*UNARY, *BINARY, "reverse"))
    found = compare(text(program), text(with_op(program, at, shape=shape), seed=seed))
    edit = only(found.causes)
    assert isinstance(edit, Changed)
    kinds = {"f32[8,16]{0,1}": Kind.LAYOUT, "f32[8,17]{1,0}": Kind.SHAPE, "f16[8,16]{1,0}": Kind.TYPE}
    assert [d.kind for d in edit.details] == [kinds[shape]]


@check
@given(st.data(), programs(), seeds)
def test_one_attribute(data: st.DataObject, program: Program, seed: int) -> None:
    at = pick(data, program, ("reverse",))
    found = compare(text(program), text(with_op(program, at, attributes=", dimensions={1}"), seed=seed))
    edit = only(found.edits)
    assert isinstance(edit, Changed)
    assert [(d.kind, d.name, d.before, d.after) for d in edit.details] == [
        (Kind.ATTRIBUTE, "dimensions", "{0}", "{1}")
    ]


@check
@given(st.data(), programs(), seeds)
def test_one_literal(data: st.DataObject, program: Program, seed: int) -> None:
    at = pick(data, program, ("constant",))
    found = compare(text(program), text(with_op(program, at, payload="77"), seed=seed))
    edit = only(found.edits)
    assert isinstance(edit, Changed)
    assert [d.kind for d in edit.details] == [Kind.LITERAL]


@check
@given(st.data(), programs(), seeds)
def test_one_operand_swap(data: st.DataObject, program: Program, seed: int) -> None:
    at = pick(data, program, BINARY)
    x, y = program[at].operands
    changed = with_op(program, at, operands=(y, x))
    assume(x != y and is_clear(program, changed, list(range(len(program)))))
    edit = only(compare(text(program), text(changed, seed=seed)).edits)
    assert isinstance(edit, Changed)
    assert [d.kind for d in edit.details] == [Kind.ORDER]


@check
@given(st.data(), programs(), seeds, st.sampled_from([FRESH, *UNARY]))
def test_one_added(data: st.DataObject, program: Program, seed: int, opcode: str) -> None:
    at = pick(data, program, (*UNARY, *BINARY))
    position = data.draw(st.integers(0, len(program[at].operands) - 1))
    changed = inserted(program, at, position, opcode)
    assume(is_clear(program, changed, [*range(at), None, *range(at, len(program))]))
    found = compare(text(program), text(changed, seed=seed))
    edit = only(found.causes)
    assert isinstance(edit, Added)
    (name,) = {p.instruction for p in edit.after}
    assert all(isinstance(e, Changed) and e.because == (name,) for e in found.edits if e is not edit)
    assert len(found.edits) == 2


@check
@given(st.data(), programs(), seeds)
def test_one_removed(data: st.DataObject, program: Program, seed: int) -> None:
    at = pick(data, program, UNARY)
    changed = without(program, at)
    rest = [i for i in range(len(program)) if i != at]
    assume(is_clear(program, changed, list(rest)) and users(program, at))
    found = compare(text(program), text(changed, seed=seed))
    edit = only(found.causes)
    assert isinstance(edit, Removed)
    (name,) = {p.instruction for p in edit.before}
    assert all(isinstance(e, Changed) and e.because == (name,) for e in found.edits if e is not edit)


@pytest.mark.parametrize("inserted_at", [0, 1, 2])
def test_a_new_parameter_moves_the_others(inserted_at: int) -> None:
    def program(shapes: list[str], order: list[int]) -> str:
        lines = [f"p{n} = {s} parameter({n})" for n, s in enumerate(shapes)]
        a, b = order[:2]
        lines += [f"x = {SHAPE} exponential(p{a})", f"y = f32[16]{{0}} tanh(p{b})"]
        lines += [f"z = {SHAPE} broadcast(y), dimensions={{1}}", f"ROOT w = {SHAPE} add(x, z)"]
        return "HloModule m\n\nENTRY e {\n  " + "\n  ".join(lines) + "\n}\n"

    shapes = [SHAPE, "f32[16]{0}"]
    order = [n + (n >= inserted_at) for n in range(2)]
    after = [*shapes[:inserted_at], SHAPE, *shapes[inserted_at:]]
    found = compare(program(shapes, [0, 1]), program(after, order))
    added = only(tuple(e for e in found.edits if isinstance(e, Added)))
    assert added.after[0].instruction.payload == str(inserted_at)
    assert all(isinstance(e, Added | Changed) for e in found.edits)
    numbers = [d for e in found.edits if isinstance(e, Changed) for d in e.details]
    assert all(d.name == "number" for d in numbers)
