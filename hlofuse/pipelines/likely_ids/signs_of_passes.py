"""What an instruction is called, and what stands around it, as signs of the pass that made it."""

from __future__ import annotations

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.opcodes import OPCODES
from hlofuse.pipelines.calls_in_names import is_of_call, is_of_derivative
from hlofuse.pipelines.names import (
    is_told_of_program,
    name_before_renaming,
    opcode_of,
    operation,
    stack_frame,
)

CALLS = frozenset({"custom-call", "dot", "fusion"})


def is_spread_to_reduced(x: Instruction) -> bool:
    """Is it spread to as many elements as were reduced to what it is made of, element by element?"""
    return x.shape.element_count in _counts_reduced(x)


def is_spread_to_one_reduced(x: Instruction) -> bool:
    """The same of one reduction, and not of a ratio or of the norm of many arrays."""
    return _counts_reduced(x) == [x.shape.element_count]


def _counts_reduced(x: Instruction) -> list[int]:
    """How many elements were reduced to each of the numbers that it is made of, element by element."""
    found: list[int] = []
    sources = dict.fromkeys(x.operands)
    pending = [*sources]
    for source in pending:
        if source.shape.is_tuple or source.shape.dimensions:
            continue
        if source.opcode == "reduce":
            found.append(source.operands[0].shape.element_count)
        elif source.opcode in ELEMENTWISE_OPCODES:
            pending += [o for o in source.operands if o not in sources]
            sources.update(dict.fromkeys(source.operands))
    return found


def joins_reductions(x: Instruction) -> bool:
    """Was it in a function that reduces? A reduction of a concatenation, or of windows, was taken apart."""
    return operation(x).startswith("reduce_") and x.opcode in ELEMENTWISE_OPCODES - {"reduce-precision"}


def is_for_missing(users: list[Instruction]) -> bool:
    """Is it what a product with a comparison is where that is false? It was made with the select."""
    return len(users) == 1 and users[0].opcode == "select" and operation(users[0]) == "mul"


def is_for_updates(x: Instruction) -> bool:
    """Is it what a scatter of one update in turn writes? A dimension of size one had been dropped from it."""
    if 1 not in x.shape.dimensions or not x.users:
        return False
    return all(u.opcode == "dynamic-update-slice" and operation(u).startswith("scatter") for u in x.users)


def is_spread_for_operation(x: Instruction) -> bool:
    """Was an iota spread for what reads it, in two broadcasts with a reshape between?"""
    return (
        x.shape.rank > 1
        and bool(x.op_name)
        and any(operation(u) == operation(x) and u.opcode == opcode_of(operation(x)) for u in x.users)
    )


def keeps_one_of_bound(x: Instruction) -> bool:
    """Had what it spreads dimensions of size one, some of which it keeps? The reshape went into it."""
    source = x.operands[0]
    return source.opcode == "bitcast" and source.shape.rank == 0 and 1 in x.shape.dimensions


def is_bound_of_uniform(x: Instruction) -> bool:
    """Is it a bound of jax.random.uniform, one dimension of which is as large as the bound's was?

    A broadcast that keeps a dimension of size one is made anew with what it reads.
    """
    return (
        1 in x.shape.dimensions
        and name_before_renaming(x).root in {"max", "mul"}
        and (x.op_name or "").endswith(("jit(_uniform)/max", "jit(_uniform)/mul"))
    )


def is_of_divisor(x: Instruction) -> bool:
    """Is it the negated sum that the derivative of a division spreads? ReshapeMover made that anew.

    The front end has it with the dimensions of the divisor, between two reshapes.
    """
    return (
        is_told_of_program(x)
        and x.operands[0].opcode == "reduce"
        and len(x.users) == 1
        and x.users[0].opcode == "broadcast"
        and is_told_of_program(x.users[0])
    )


def is_negated_behind_reshape(x: Instruction) -> bool:
    """Is it of the derivative of a difference, one side of which was spread in the same place?

    What is summed for that has the dimensions of the side, one of size one among them: a reshape was between.
    """
    summed = x.operands[0]
    return (
        is_told_of_program(x)
        and is_of_derivative(x)
        and summed.opcode == "reduce"
        and bool(summed.shape.rank)
        and stack_frame(summed) == stack_frame(x) != 0
    )


def is_sum_with_transposed(x: Instruction) -> bool:
    """Does it add a matrix and what had been a copy of it in the other layout, for a decomposition?"""
    return (
        x.opcode == "add"
        and name_before_renaming(x).root == x.opcode
        and is_of_call(x)
        and any(o.opcode == "transpose" and not is_told_of_program(o) for o in x.operands)
    )


def bears_name_of_another(x: Instruction) -> bool:
    """Had it been there when it took the place of an operation of the program (`ReplaceInstruction`)?

    What is made for that has the operation's metadata as well as its name, and its own opcode as a root
    otherwise.
    """
    root = name_before_renaming(x).root
    return (
        x.opcode in ELEMENTWISE_OPCODES and bool(operation(x)) and root not in OPCODES and root.isidentifier()
    )


def is_of_padded_call(x: Instruction) -> bool:
    """Does it cut off what CublasPadForGemms or the padding of convolutions added?"""
    element = x.operands[0]
    return (
        element.opcode == "get-tuple-element"
        and element.operands[0].opcode in CALLS
        and bool(operation(x))
        and operation(x) == operation(element.operands[0])
    )


def is_moved_in_front_of_copies(x: Instruction) -> bool:
    """Does it read what only it has in this layout, and do nothing but copies read it, transpositions today?

    So MoveCopyToUsers leaves it (`xla/backends/gpu/transforms/move_copy_to_users.cc`).
    """
    return (
        x.operands[0].opcode == "bitcast"
        and bool(x.users)
        and all(u.opcode == "transpose" and not is_told_of_program(u) for u in x.users)
    )


def is_widened_behind_reshape(x: Instruction) -> bool:
    """Does it make wide what had been wide already when it was reshaped for another operation?

    ConvertMover (`xla/hlo/transforms/simplifiers/convert_mover.cc`) moves converts to a wider type behind
    reshapes, and makes them anew with their metadata.
    """
    source = x.operands[0]
    is_reshaped = source.opcode == "bitcast" and bool(source.op_name) and source.op_name != x.op_name
    return is_reshaped and x.shape.byte_size > source.shape.byte_size


def adds_in_front(broadcast: Instruction) -> bool:
    """Are all new dimensions in front? Others had been there as dimensions of size one."""
    dimensions = tuple(broadcast.attributes["dimensions"])
    rank = len(broadcast.shape.dimensions)
    return dimensions == tuple(range(rank - len(dimensions), rank))
