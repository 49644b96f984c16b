"""Transposes that moved nothing in the layouts they were given, of which nothing is left.

LayoutNormalization (`xla/service/layout_normalization.cc`) makes a bitcast of such a one.
"""

from __future__ import annotations

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import operation
from hlofuse.pipelines.users.floats.inserted_converts import is_inserted_convert
from hlofuse.pipelines.users.layouts.other_layouts import (
    AS_THEIR_OPERANDS,
    is_of_product,
    may_have_layouts,
    shares_layout,
)
from hlofuse.pipelines.users.products.reshaped_products import is_product


def read_transposed(x: Instruction, anew: frozenset[Instruction]) -> list[Instruction]:
    """The users that read `x` through a transpose of the program that moved nothing.

    They were made anew. So would `x` have been if it had not been row-major. A copy to another layout, which
    has no name, is one of the transpose then.
    """
    if x in anew or not may_have_layouts(x):
        return []
    if x.opcode not in AS_THEIR_OPERANDS and x.opcode != "parameter":
        return []
    if is_inserted_convert(x) or (is_of_product(x) and x.opcode != "slice"):
        return []
    young = [u for u in x.users if u in anew and not is_inserted_convert(u)]
    if not any(shares_layout(u, x) for u in young):
        return []
    return [u for u in young if shares_layout(u, x) or (u.opcode == "transpose" and not u.op_name)]


def was_transposed_in_place(x: Instruction) -> bool:
    """Is it what a matrix product gives, row-major, which was read through a transpose?

    The transpose moved nothing, so that a bitcast is all that became of it. A bitcast that bears the name of
    the product is of DotDimensionMerger, which came later. The slices that DotMerger cut of it do so, too.
    """
    names = set()
    users = x.users
    while x.opcode == "bitcast":
        names.add(x.op_name)
        x = x.operands[0]
    made = x.operands[0] if x.opcode == "get-tuple-element" else x
    if any(u.opcode == "slice" and u.op_name == made.op_name for u in users):
        return False
    return is_product(x) and names <= {made.op_name}


def was_read_transposed(x: Instruction) -> bool:
    """Is it a cumulative sum along another dimension than the last, transposed back?

    ReduceWindowRewriter (`xla/hlo/transforms/simplifiers/reduce_window_rewriter.cc`) puts the dimension last
    and takes it apart; what it puts together in the end is a reshape in the layout in which the transpose
    behind it moves nothing.
    """
    if x.opcode != "bitcast" or x.op_name or x.shape.rank < 2 or not x.shape.is_row_major:
        return False
    (source,) = x.operands
    return source.opcode in ELEMENTWISE_OPCODES and any(map(_is_part_of_window, source.operands))


def is_transposed_of_product(x: Instruction) -> bool:
    """Is it what a product gives in another layout, with dimensions told apart, and transposed in place?

    The gradient by a kernel of several dimensions is. ReshapeMover
    (`xla/hlo/transforms/simplifiers/reshape_mover.cc`) may have moved both behind an operation.
    """
    if x.opcode != "bitcast" or not x.shape.is_row_major or x.shape.rank < 3:
        return False
    (source,) = x.operands
    if source.shape.rank >= x.shape.rank:
        return False
    if source.opcode in ELEMENTWISE_OPCODES and source.op_name == x.op_name:
        source = next((o for o in source.operands if o.opcode in {"bitcast", "slice"}), source)
        while source.opcode in {"bitcast", "slice"}:
            source = source.operands[0]
    elif operation(x) != "transpose":
        return False
    if source.opcode != "get-tuple-element" or source.shape.is_row_major:
        return False
    return is_product(source)


def _is_part_of_window(x: Instruction) -> bool:
    while x.opcode in {"convert", "transpose"}:
        x = x.operands[0]
    return x.opcode == "reduce-window"
