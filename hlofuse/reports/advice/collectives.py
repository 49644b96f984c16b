"""Recipes about collectives between devices."""

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.graph import Instruction
from hlofuse.passes.common import make
from hlofuse.reports.advice.matching import combines_by, each, is_constant, only_reader, source, sum_of
from hlofuse.reports.advice.recipe import Recipe


def _is_mapped_later(x: Instruction) -> bool:
    """True if all that was gathered goes through an operation on each element alone."""
    user = only_reader(x)
    if user is None or user.opcode not in ELEMENTWISE_OPCODES:
        return False
    return all(o is x or is_constant(o) for o in user.operands)


def _is_sliced_later(x: Instruction) -> bool:
    user = only_reader(x)
    return user is not None and user.opcode == "slice" and 4 * user.shape.byte_size <= x.shape.byte_size


def _is_summed_later(x: Instruction) -> bool:
    return combines_by(x, "add") and sum_of(only_reader(x)) is not None


def _move(x: Instruction) -> bool:
    """Have what follows the collective be done before it."""
    user = only_reader(x)
    if user is None or x not in user.operands:
        return False
    part = x.operands[0]
    shape = user.shape if x.opcode == "all-reduce" else part.shape.with_element_type(user.shape.element_type)
    operands = [part if o is x else o for o in user.operands]
    for k, o in enumerate(operands):
        if o is not part and o.shape.dimensions:
            operands[k] = make.broadcast(user, shape, source(o), ())
    user.replace_all_uses_with(make.copy_of(x, [make.copy_of(user, operands, shape)], user.shape))
    return True


_gathers, _sums = each(_is_mapped_later, "all-gather"), each(_is_summed_later, "all-reduce")

COLLECTIVES = (
    Recipe("map-before-the-gather", "Map before the all-gather", _gathers, _move),
    Recipe("slice-before-the-gather", "Slice before the all-gather", each(_is_sliced_later, "all-gather")),
    Recipe("sum-before-the-psum", "Sum on each device before the psum", _sums, _move),
)
