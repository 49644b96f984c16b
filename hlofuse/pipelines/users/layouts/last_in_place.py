"""Of users in another layout the last came in front: it took the place of a bitcast that went."""

from __future__ import annotations

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.common.copies import was_copy
from hlofuse.pipelines.users.common.holes import last_in_front
from hlofuse.pipelines.users.floats.inserted_converts import is_inserted_convert
from hlofuse.pipelines.users.layouts.transposed_in_place import is_transposed_of_product, was_read_transposed
from hlofuse.pipelines.users.products.reshaped_products import is_filled_for_split


def with_last_in_place_of_bitcast(x: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such a value, of a reduction with the last in front if it was made anew once more.

    ReductionLayoutNormalizer (`xla/backends/gpu/transforms/reduction_layout_normalizer.cc`) put a bitcast
    behind the new one, which names nothing. When that went its users were appended.

    The bitcast has the name of the reduction where it is left, which was row-major. What is element-wise and
    was made anew read it through a transpose of the program then: the bitcast that this became was the first
    user, and the last of its own took its place.

    SplitkRewriter (`xla/backends/gpu/transforms/splitk_rewriter.cc`) fills up what the bitcast gave back.
    AlgebraicSimplifier has that read `x` itself before it makes bitcasts of what is left.
    """
    if x.opcode == "reduce" and not x.op_name:
        return last_in_front(users)
    if _is_of_reduction(x):
        return sorted(users, key=lambda u: u.opcode not in ELEMENTWISE_OPCODES)
    users = sorted(users, key=lambda u: not is_filled_for_split(u))
    return sorted(users, key=lambda u: x.opcode == "transpose" and not brings_back(u))


def with_last_in_place_of_layout(x: Instruction, users: list[Instruction], passes: int) -> list[Instruction]:
    """The users of `x`, where it is a copy to the layout in which a transpose of the program moves nothing.

    The bitcast back to that layout was the first user of the copy that was made anew. What read the transpose
    is older and reads the copy now, of which the layout is row-major already, be it through a convert that
    was put in later. What a library gives in another
    layout, or what is reshaped, was copied for each instead.

    A reshape in such a layout was not made anew; of the two bitcasts behind it the one back went with the
    transpose, and of those that read the other one the last took its place.

    Slices that AlgebraicSimplifier moved in front of a reshape (`HandleSlice`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) are younger than the first of `passes`; the last
    of them had taken the place of that reshape before.
    """
    if was_read_transposed(x) or is_transposed_of_product(x):
        return last_in_front(users)
    if not was_copy(x) or any(u.opcode == "bitcast" for u in users):
        return users
    if any(u.id > x.id and not is_inserted_convert(u) for u in users):
        return users
    if all(u.opcode == "slice" and u.id >= passes for u in users):
        users = last_in_front(users)
    (source,) = x.operands
    given = source.operands[0] if source.opcode == "get-tuple-element" else source
    return users if given.opcode == "custom-call" else last_in_front(users)


def _is_of_reduction(x: Instruction) -> bool:
    return (
        x.opcode == "bitcast"
        and bool(x.op_name)
        and x.shape.is_row_major
        and x.operands[0].opcode == "reduce"
        and not x.operands[0].op_name
    )


def brings_back(x: Instruction) -> bool:
    """Is it the bitcast behind a copy that was made anew, for who wants the other layout?"""
    return x.opcode == "bitcast" and not x.op_name and not x.shape.is_row_major
