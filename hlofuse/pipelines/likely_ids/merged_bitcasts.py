"""Which bitcasts AlgebraicSimplifier made of two in a row, as far as shapes and neighbours tell.

One takes the name of the one that it replaces (`HandleBitcast` of
`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`), but is as young as the pass that merges.
"""

from __future__ import annotations

from collections.abc import Mapping

from hlofuse.analysis.custom_calls import is_library_convolution
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.shape import Shape
from hlofuse.pipelines.likely_ids.reduced_bitcasts import is_only_reduced, splits
from hlofuse.pipelines.users.floats.inserted_converts import is_inserted_convert


def only_changes_layout(x: Instruction) -> bool:
    """Is it one that LayoutNormalization put between a layout and the same in descending order?

    Nothing was merged into it: dimensions are in the same order in memory on both sides. One of both layouts
    is another than the default.
    """
    source = x.operands[0].shape
    is_same_layout = source.minor_to_major == x.shape.minor_to_major
    return not is_same_layout and _in_memory(source) == _in_memory(x.shape)


def moves_ones(x: Instruction) -> bool:
    """Does it only permute dimensions, of which those of size one move?

    Of such a transposition AlgebraicSimplifier makes a reshape, and of that a bitcast the next time.
    """
    given, made = x.operands[0].shape, x.shape
    return given.dimensions != made.dimensions and sorted(given.dimensions) == sorted(made.dimensions)


def changes_type(x: Instruction) -> bool:
    """Was it a bitcast-convert, which BitcastDtypesExpander leaves to AlgebraicSimplifier?"""
    return x.shape.element_type != x.operands[0].shape.element_type


def reads_normalized(x: Instruction, normalized: frozenset[Instruction]) -> bool:
    """Had LayoutNormalization put a bitcast between it and what it reads?

    That had dimensions of size one elsewhere: an operation of the program that was laid out otherwise, a copy
    made for a reshape, or a convolution, whose library has dimensions in its own order. A gather it leaves in
    the layout that it has, and puts the bitcast behind it.
    """
    source = x.operands[0]
    if source.opcode == "gather" and not source.shape.is_row_major and not only_changes_layout(x):
        return True
    if 1 not in source.shape.dimensions:
        return False
    if source.opcode == "get-tuple-element" and is_library_convolution(source.operands[0]):
        return True
    if is_inserted_convert(source):
        source = source.operands[0]
    if _moves_one_in_front(source):
        return True
    if source not in normalized:
        return False
    match source.opcode:
        case "gather" | "reduce":
            return False  # LayoutNormalization does not make them anew
        case "slice":  # the names of clones tell less
            is_told = x.computation is not None and x.computation.is_entry and bool(x.op_name)
            return is_told and source.shape.dimensions[0] != 1
        case "transpose":
            # Dimensions are joined or split in the default layout.
            return source.shape.dimensions[0] == 1 and source.shape.true_dimensions == x.shape.true_dimensions
    if source.shape.true_rank < 2:
        return any(o.opcode == "bitcast" and only_changes_layout(o) for o in source.operands)
    return source.shape.dimensions != (*x.shape.dimensions, 1)


def _moves_one_in_front(x: Instruction) -> bool:
    """Is it a transposition of what was reshaped, laid out with a dimension of size one as the outermost?

    Where that stands makes no difference in memory: LayoutNormalization makes it the first one. An argument,
    or what is computed without a reshape, is laid out as it comes.
    """
    if x.opcode != "transpose" or x.operands[0].opcode != "bitcast":
        return False
    return x.shape.dimensions[0] == 1 != x.operands[0].shape.dimensions[0]


def is_merged_for_reduction(x: Instruction, reads_matmul: bool, normalized: frozenset[Instruction]) -> bool:
    """Had something been between what drops or joins dimensions for a reduction and what it reads?"""
    source = x.operands[0]
    if reads_normalized(x, normalized) or (reads_matmul and x.shape.rank < source.shape.rank):
        return True
    is_other = not x.op_name and source.shape.true_dimensions != x.shape.true_dimensions
    return is_other and (is_only_reduced(x) or splits(x)) and not _is_narrow_between(x)


def _is_narrow_between(x: Instruction) -> bool:
    """Does it take apart what was computed wide and was made narrow again, and is widened to be reduced?

    What it reads was of one layout with the rest: only a product that was widened has a bitcast of its own in
    front of the convert.
    """
    source = x.operands[0]
    is_narrowed = is_inserted_convert(source) and source.operands[0].opcode in ELEMENTWISE_OPCODES
    return is_narrowed and splits(x) and all(u.opcode == "convert" for u in x.users)


def is_merged_again(x: Instruction, number: Mapping[Instruction, int]) -> bool:
    """Has it an old name, but was made between the fusions of products and the grouping of reductions?

    Then something new was put between it and what it reads: the bitcast around a product that
    HoistFusedBitcasts left behind, the dimensions of size one of a reduction (ReductionDegenerateDimRemover)
    or the layout of its result (ReductionLayoutNormalizer).
    """
    source = x.operands[0]
    match source.opcode:
        case "fusion":
            batches = len(source.shape.dimensions) > 2 and x.shape.dimensions[0] != source.shape.dimensions[0]
            hoisted = any(number.get(o, 0) > number[x] + _MOST_OF_A_FUSION for o in source.operands)
            return bool(x.op_name) and batches and hoisted
        case "reduce" if not source.shape.is_tuple and not source.shape.is_row_major:
            return not only_changes_layout(x)
        case "reduce":
            dropped = x.shape.true_dimensions == source.shape.true_dimensions
            # ScatterExpander asks so whether indices are in bounds.
            is_check = source.operands[0].opcode in ("and", "compare")
            return dropped and not is_check and not x.op_name and not source.op_name
    return False


def reads_decomposed(x: Instruction) -> bool:
    """Does it read the transposition of what a reduction gives, without a name of the program?

    ReduceDecomposer copies the result of a reduction into the layout in which it was, LayoutNormalization
    makes a transposition of that, and AlgebraicSimplifier merges what is behind it at once.
    """
    source = x.operands[0]
    if source.opcode != "transpose" or x.op_name:
        return False
    read = source.operands[0]
    return (read.operands[0] if read.opcode == "convert" else read).opcode == "reduce"


def in_order_of_old_text(bitcasts: list[Instruction]) -> list[Instruction]:
    """Given in the order of the text, in that in which they were met when they were merged for the last time.

    What nothing reads LayoutNormalization left behind. As XLA's dumps show, it is met with the last that
    reads the same of the same source.
    """
    computation = bitcasts[0].computation if bitcasts else None
    if computation is None:
        return bitcasts
    place = {x: k for k, x in enumerate(computation)}
    root = computation.root

    def old_place(x: Instruction) -> float:
        if x.users or x is root:
            return place[x]
        same = (y for y in x.operands[0].users if y.opcode == "bitcast" and y.shape == x.shape)
        return max((place[u] - 0.5 for y in same for u in y.users), default=place[x])

    return sorted(bitcasts, key=old_place)


def _in_memory(shape: Shape) -> tuple[int, ...]:
    """The dimensions from the outermost in memory to the innermost."""
    return tuple(shape.dimensions[d] for d in reversed(shape.minor_to_major))


_MOST_OF_A_FUSION = 20
"""HoistFusedBitcasts names what it puts around one fusion in a row."""
