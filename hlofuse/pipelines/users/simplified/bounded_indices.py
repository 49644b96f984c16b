"""What is read at an index that was bounded, so that it is known not to be negative, and at the one before.

`interp` looks for the two points around what it is given. For `xs[i]` the framework compares the index with
zero, adds the size and chooses, each time that it is written.
"""

from __future__ import annotations

from collections.abc import Hashable

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import scope
from hlofuse.pipelines.users.common.ages import was_subtraction
from hlofuse.pipelines.users.common.holes import without
from hlofuse.pipelines.users.common.visits import Uses

_INTERPOLATE = frozenset({"jit(_interp)", "jit(interp)"})
_READS = 2
"""Of places and of values: other functions of the same places have the places in common."""


def with_reads_where_comparisons_were(index: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such an `index`: `i - 1` was the last of them when the comparisons went.

    AlgebraicSimplifier (`HandleCompare` and `HandleSelect`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) has each read take the index at once, and the
    comparison, the sum and the choice go, the last user filling each hole. `(i - 1) + n` became one sum with
    the index in another run (`HandleAdd`), which comes behind all.
    """
    before = [u for u in users if was_subtraction(u)]
    if index.opcode != "minimum" or index.operands[1].opcode != "maximum" or len(before) != 1:
        return users
    merged = [u for u in users if u.opcode == "add" and any(_chooses(v, u, before[0]) for v in u.users)]
    reads = [u for u in users if u.opcode == "dynamic-slice" and index in u.operands[1:]]
    if len(reads) < _READS or len(merged) != 1 or len(users) != len(reads) + len(merged) + 1:
        return users
    listed: list[Hashable] = [(r, made) for r in reads[:_READS] for made in ("sign", "sum", "choice")]
    listed += before
    for read in reads[:_READS]:
        listed = [*without(listed, [(read, "sign")]), read]
        listed = without(listed, [(read, "choice"), (read, "sum")])
    return [*(u for u in listed if isinstance(u, Instruction)), *reads[_READS:], *merged]


def with_points_where_met(value: Instruction, users: list[Instruction], uses: Uses) -> list[Instruction]:
    """The users of a `value` that `interp` reads: it reads it anew for each.

    HloCSE (`xla/service/hlo_cse.cc`) keeps the reading that its walk meets first.
    """
    if value.opcode != "bitcast" or value.operands[0].opcode != "dynamic-slice":
        return users
    if (scope(value) or "").rpartition("/")[2] not in _INTERPOLATE:
        return users
    return sorted(users, key=lambda u: uses[value, u])


def _chooses(x: Instruction, moved: Instruction, index: Instruction) -> bool:
    """Does it choose what is counted from the end where the `index` is negative?"""
    return x.opcode == "select" and x.operands[1:] == [moved, index] and index in x.operands[0].operands
