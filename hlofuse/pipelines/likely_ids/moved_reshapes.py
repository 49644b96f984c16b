"""What ReshapeMover made anew, although its name does not tell, and numbers that were spread anew for it.

What it moves in front of a reshape (`xla/hlo/transforms/simplifiers/reshape_mover.cc`) takes the place of
what was there. What reads that, without a bitcast between, has been moved as well. One number everywhere
that it reads is given a reshape, and AlgebraicSimplifier merges the two behind it.
"""

from __future__ import annotations

from collections.abc import Mapping

from hlofuse.analysis.constants import is_broadcast_of_constant, is_constant
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import loops_around
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.names import is_told_of_program, operation

_BEFORE_IT_OR_ALIKE = (Maker.INLINER, Maker.SIMPLIFIER, Maker.LAYOUT_NORMALIZATION)
"""Whose instructions bear the same names as those that it makes in their place."""
_AHEAD_OF_IT = (Maker.FRONT_END, Maker.INLINER, Maker.SIMPLIFIER)
"""Who seem to have made what it made anew, where only what stands around that tells."""


def moved_along(makers: Mapping[Instruction, Maker]) -> list[Instruction]:
    """The elementwise operations that read what was moved."""
    pending = [
        x
        for x, maker in makers.items()
        if maker == Maker.SIMPLIFIER_AGAIN and x.opcode in ELEMENTWISE_OPCODES
    ]
    found = dict.fromkeys(
        x for x, maker in makers.items() if maker == Maker.INLINER and _was_moved(x, makers)
    )
    found |= dict.fromkeys(y for x in [*pending, *found] for y in _read_same_element(x, makers))
    pending += found
    for source in pending:
        for x in source.users:
            if x not in found and x.opcode in ELEMENTWISE_OPCODES and makers.get(x) in _BEFORE_IT_OR_ALIKE:
                found[x] = None
                pending.append(x)
    return [*found]


def _read_same_element(x: Instruction, makers: Mapping[Instruction, Maker]) -> list[Instruction]:
    """What reads the element that `x` reads as it was cut: the reshape of it is moved behind all or none."""
    return [
        u
        for o in x.operands
        if o.opcode == "dynamic-slice" and o.shape.rank and not o.shape.true_rank
        for u in o.users
        if u.opcode in ELEMENTWISE_OPCODES and makers.get(u) in _AHEAD_OF_IT
    ]


def split_behind_product(makers: Mapping[Instruction, Maker]) -> list[Instruction]:
    """What seems to be in another layout, but reads a product as the library gives it and is split then.

    The product of merged dimensions was split first. The reshape is behind now, called as what it is of.
    """
    return [
        x
        for x, maker in makers.items()
        if maker == Maker.LAYOUT_NORMALIZATION and x.opcode in ELEMENTWISE_OPCODES and is_told_of_program(x)
        if any(_is_product(o) for o in x.operands)
        and any(
            u.opcode == "bitcast" and u.op_name == x.op_name and u.shape.true_rank > x.shape.true_rank
            for u in x.users
        )
    ]


def _is_product(x: Instruction) -> bool:
    return x.opcode == "dot" or (x.opcode == "get-tuple-element" and x.operands[0].opcode == "custom-call")


def spread_for_moved(makers: Mapping[Instruction, Maker]) -> list[Instruction]:
    """What was moved as its readers were, and the broadcasts that only what was moved reads."""
    moved = [
        x
        for x, maker in makers.items()
        if maker == Maker.SIMPLIFIER_AGAIN and x.opcode in ELEMENTWISE_OPCODES
    ]
    merged = [x for x, maker in makers.items() if maker == Maker.SIMPLIFIER_AGAIN and x.opcode == "broadcast"]
    found = dict.fromkeys(
        x for x, maker in makers.items() if maker == Maker.SIMPLIFIER and _ends_in_reshape(x)
    )
    pending = [*moved, *merged, *found]
    for reader in pending:
        for x in reader.operands:
            if x in found or makers.get(x) != Maker.SIMPLIFIER or not _reads_one_array(x):
                continue
            if reader.opcode != "broadcast" or _reads_reduction(x):
                found[x] = None
                pending.append(x)
    readers = {*moved, *found}
    spread = (
        o for x in readers for o in x.operands if is_broadcast_of_constant(o) and readers.issuperset(o.users)
    )
    return [*found, *dict.fromkeys(spread)]


def spread_for_moved_alone(makers: Mapping[Instruction, Maker]) -> list[Instruction]:
    """Numbers that seem to be spread in another layout, and which nothing reads but what was moved."""
    return [
        x
        for x, maker in makers.items()
        if maker == Maker.LAYOUT_NORMALIZATION and is_broadcast_of_constant(x) and x.users
        if all(makers.get(u) == Maker.SIMPLIFIER_AGAIN for u in x.users)
    ]


def on_the_way_to_moved(makers: Mapping[Instruction, Maker]) -> list[Instruction]:
    """What stands between a mean that keeps its dimensions and what was moved, the mean included.

    The reshape was in front of all of them. Each has one array to read, and only the next one reads it.
    """
    found: dict[Instruction, None] = {}
    for x, maker in makers.items():
        if maker != Maker.SIMPLIFIER_AGAIN or x.opcode not in ELEMENTWISE_OPCODES:
            continue
        way: list[Instruction] = []
        arrays = arrays_read_by(x)
        while len(arrays) == 1 and makers.get(arrays[0]) in _AHEAD_OF_IT and _has_one_reader(arrays[0]):
            way += arrays
            arrays = arrays_read_by(way[-1])
        if way and way[-1].opcode == "multiply" and _reads_reduction(way[-1]) and len(way) > 1:
            found.update(dict.fromkeys(way))
    return [*found]


def converted_for_moved(makers: Mapping[Instruction, Maker]) -> list[Instruction]:
    """What a sum that keeps its dimensions is converted to, which the framework does behind the reshape.

    The reshape is in what spreads it now.
    """
    return [
        x
        for x, maker in makers.items()
        if maker == Maker.FRONT_END and x.opcode == "convert" and is_told_of_program(x) and x.users
        if x.operands[0].opcode == "reduce"
        if all(u.opcode == "broadcast" and makers.get(u) == Maker.SIMPLIFIER_AGAIN for u in x.users)
    ]


def spread_of_moved(makers: Mapping[Instruction, Maker]) -> list[Instruction]:
    """The broadcasts that AlgebraicSimplifier made anew, as they took in the reshape behind what was moved.

    Where all is reduced, what is made of that has no dimensions to begin with.
    """
    return [
        x
        for x, maker in makers.items()
        if x.opcode == "broadcast" and maker in _AHEAD_OF_IT
        if _is_moved(x.operands[0], makers)
        and (x.operands[0].shape.rank or any(o.opcode != "reduce" for o in arrays_read_by(x.operands[0])))
    ]


def _is_moved(x: Instruction, makers: Mapping[Instruction, Maker]) -> bool:
    return x.opcode in ELEMENTWISE_OPCODES and makers.get(x) == Maker.SIMPLIFIER_AGAIN


def _has_one_reader(x: Instruction) -> bool:
    return x.opcode in ELEMENTWISE_OPCODES and len(x.users) == 1


def arrays_read_by(x: Instruction) -> list[Instruction]:
    """Its operands but for numbers and what is spread of them."""
    return [o for o in x.operands if not is_constant(o)]


def _was_moved(x: Instruction, makers: Mapping[Instruction, Maker]) -> bool:
    """Does what is around an operation of a call tell that a reshape was in front of it?"""
    if not is_told_of_program(x) or x.opcode not in ELEMENTWISE_OPCODES:
        return False
    if any(is_row_of_loop(o) for o in x.operands):  # a reshape of what is spread goes into it behind that
        return not any(o.opcode == "broadcast" and not is_broadcast_of_constant(o) for o in x.operands)
    if any(o.opcode == "reduce" for o in x.operands):
        return _is_only_spread(x)
    return x.opcode == "compare" and (_is_spread_for(x, makers) or _is_bound_of_indices(x))


def _is_spread_for(x: Instruction, makers: Mapping[Instruction, Maker]) -> bool:
    """Was a number spread once more for it? The front end's would bear its name."""
    return any(
        is_broadcast_of_constant(o) and makers.get(o) == Maker.SIMPLIFIER and o.op_name == x.op_name
        for o in x.operands
    )


def is_row_of_loop(x: Instruction) -> bool:
    """Is it one of what a loop goes over? The dimension that is left is dropped before the row is read."""
    return (
        x.opcode == "dynamic-slice"
        and operation(x) == "dynamic_slice"
        and x.shape.dimensions[:1] == (1,)
        and loops_around(x) > 0
        and x.operands[0].opcode in {"get-tuple-element", "parameter"}
    )


def _is_only_spread(x: Instruction) -> bool:
    """Functions of the framework keep the dimensions that they reduce where they spread the result."""
    return bool(x.users) and all(u.opcode == "broadcast" for u in x.users)


def _is_bound_of_indices(x: Instruction) -> bool:
    """Is it of the indices of a jax.numpy.take, a dimension of size one behind theirs?"""
    return (
        operation(x) in {"ge", "le"}
        and any(o.opcode not in {"bitcast", "broadcast", "constant"} for o in x.operands)
        and all(u.opcode == "and" and _is_only_spread(u) for u in x.users)
    )


def _reads_one_array(x: Instruction) -> bool:
    """So that a reshape behind it can only have come from there, and with numbers that tell nothing of it."""
    return x.opcode in ELEMENTWISE_OPCODES and len(arrays_read_by(x)) == 1 < len(x.operands)


def _reads_reduction(x: Instruction) -> bool:
    return any(o.opcode == "reduce" for o in x.operands)


def _ends_in_reshape(x: Instruction) -> bool:
    """A mean that keeps its dimensions: the reshape is behind the quotient now, or in what spreads that."""
    if not (_reads_one_array(x) and x.users and (_reads_reduction(x) or _reads_negated_reduction(x))):
        return False
    if all(u.opcode == "bitcast" for u in x.users):
        return True
    return bool(x.shape.rank) and {u.opcode for u in x.users} <= {"broadcast", "negate"}


def _reads_negated_reduction(x: Instruction) -> bool:
    return any(o.opcode == "negate" and _reads_reduction(o) for o in x.operands)
