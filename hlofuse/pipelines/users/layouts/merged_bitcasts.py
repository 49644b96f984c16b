"""Bitcasts of bitcasts of a value, which became bitcasts of the value itself."""

from __future__ import annotations

from bisect import bisect
from functools import lru_cache

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import operation, stack_frame


def with_merged_bitcasts_behind(value: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of a `value` that is reshaped and nothing else, with such bitcasts behind. Ids are XLA's.

    AlgebraicSimplifier (`HandleBitcast`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) appends
    the new bitcast to the users of what the inner one reads. Those that reshapes of the program became are
    older, as ReshapeDecomposer (`xla/hlo/transforms/expanders/reshape_decomposer.cc`) makes them one after
    the other, each in the place of its reshape: what else came in between tells the two apart.
    """
    if not all(_is_named_bitcast(u) and u.id > value.id for u in users):
        return users
    others = _ids_of_others(value)
    oldest = min(users, key=lambda u: u.id, default=None)
    if oldest is None or oldest.op_name != value.op_name:
        return users  # what reads it in that shape may have asked for that itself
    merged = [u for u in users if bisect(others, u.id) > bisect(others, oldest.id)]
    return [*(u for u in users if u not in merged), *sorted(merged, key=lambda u: u.id)]


def with_transposed_behind(value: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of a `value`, with a bitcast behind that a transpose of it became. Ids are XLA's.

    Layouts have to be assigned for that, and the two row-major: it moved nothing but ones. The bitcast, or
    one of several, AlgebraicSimplifier (`HandleTranspose`) makes when those that reshapes of the program
    became are there.
    """
    if not value.shape.is_array or not value.shape.is_row_major:
        return users
    bitcasts = [u for u in users if u.opcode == "bitcast"]
    youngest = max(users, key=lambda u: u.id)
    if len(bitcasts) < 2 or youngest not in bitcasts or not youngest.shape.is_row_major:
        return users
    if youngest.op_name == value.op_name or not operation(youngest).endswith("transpose"):
        return users
    is_of_several = ";" in (youngest.op_name or "")
    if not is_of_several and youngest.shape.true_dimensions != value.shape.true_dimensions:
        return users  # what was normalized in its place is of another transpose
    return [*(u for u in users if u is not youngest), youngest]


def with_copied_behind(users: list[Instruction]) -> list[Instruction]:
    """The users of what was made anew, with bitcasts that were of another of its bitcasts behind that.

    Some read a reshape of the program as it is, and LayoutAssignment (`xla/service/layout_assignment.cc`) had
    it copied for others: a transpose that bears its name since. The bitcast in front AlgebraicSimplifier
    (`HandleBitcast`) appended when the reshape had come to read the value itself.
    """
    listed = list(users)
    for copied in users:
        copies = [u for u in users if _is_of_copy(u, copied)] if _is_named_bitcast(copied) else []
        for bitcast in copies:
            if listed.index(bitcast) < listed.index(copied):
                listed.remove(bitcast)
                listed.insert(listed.index(copied) + 1, bitcast)
    return listed


def _is_of_copy(x: Instruction, copied: Instruction) -> bool:
    if x.opcode != "bitcast" or x.op_name or not x.users:
        return False
    names = {(u.opcode, u.op_name, stack_frame(u)) for u in x.users}
    return names == {("transpose", copied.op_name, stack_frame(copied))}


def _is_named_bitcast(x: Instruction) -> bool:
    return x.opcode == "bitcast" and bool(x.op_name)


def _ids_of_others(x: Instruction) -> tuple[int, ...]:
    return _ids_but_bitcasts(x.computation.root) if x.computation is not None else ()


@lru_cache(maxsize=2)  # asked for one computation after the other
def _ids_but_bitcasts(root: Instruction) -> tuple[int, ...]:
    return tuple(sorted(x.id for x in root.computation or () if x.opcode != "bitcast"))
