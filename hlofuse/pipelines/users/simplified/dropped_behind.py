"""Values made anew with something behind them that changed nothing in the end and was dropped."""

from __future__ import annotations

from hlofuse.analysis.bitcasts import without_bitcasts
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.ages_of_program import is_made_by_pass
from hlofuse.pipelines.names import is_of_program, operation
from hlofuse.pipelines.users.common.holes import last_in_front
from hlofuse.pipelines.users.floats.inserted_converts import is_narrow, was_two_converts
from hlofuse.pipelines.users.simplified.reshaped_once import was_scalar


def with_last_of_older_in_front(
    producer: Instruction, users: list[Instruction], passes: int
) -> list[Instruction]:
    """The users of such a value, which are older than it is, with the last of them in front.

    They read what came behind it. When that was dropped they were appended to the users of the value, of
    which it had been the only one, and the last took its place. `passes` is the first id that a pass gave.
    """
    if not _is_younger(producer, users, passes):
        return users
    if not (_was_product(producer) or _was_moved(producer) or _was_widened_product(producer)):
        return users
    return last_in_front(users)


def is_moved_with_reshape_dropped(producer: Instruction, users: list[Instruction], passes: int) -> bool:
    """Were the users those of a reshape, of which HloCSE made one of many? No call had it for an operand."""
    return _is_younger(producer, users, passes) and _was_moved(producer)


def _is_younger(producer: Instruction, users: list[Instruction], passes: int) -> bool:
    if producer.id < passes and not is_made_by_pass(producer):
        return False
    return all(u.id <= producer.id for u in users)


def _was_product(x: Instruction) -> bool:
    """A matrix product that sums over nothing, which is a product of broadcasts now.

    DotDecomposer (`xla/hlo/transforms/expanders/dot_decomposer.cc`) gave it a dimension to sum over and put a
    reshape behind it. Where the program has such a dimension itself the broadcasts are of bitcasts.
    """
    if x.opcode != "multiply" or operation(x) != "dot_general":
        return False
    return all(o.opcode == "broadcast" and o.operands[0].opcode != "bitcast" for o in x.operands)


def _was_moved(x: Instruction) -> bool:
    """A convert, or what was computed of scalars, that ReshapeMover moved, with a reshape behind it."""
    return is_of_program(x) and ((x.opcode == "convert" and not was_two_converts(x)) or was_scalar(x))


def _was_widened_product(x: Instruction) -> bool:
    """The sum of what a narrow product was split in: it is not narrowed any more before it is read.

    SplitK (`xla/backends/gpu/transforms/splitk_rewriter.cc`) rounds it to the type of the product. Where the
    program makes it wide again SimplifyFPConversions drops both converts.
    """
    if x.opcode != "reduce" or is_of_program(x):
        return False
    product = without_bitcasts(x.operands[0])
    return product.opcode == "fusion" and any(map(is_narrow, product.operands))
