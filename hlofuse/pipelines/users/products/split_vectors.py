"""The users of a matrix by vector product that was split in parts, which a reduction adds up.

GemvRewriter (`xla/backends/gpu/transforms/gemv_rewriter.cc`) gives the product a dimension of one, and a
bitcast behind it that takes it away. SplitkRewriter adds the parts up with that dimension;
ReductionDegenerateDimRemover (`xla/backends/gpu/transforms/reduction_degenerate_dim_remover.cc`) does so
without, and puts it back behind with a bitcast of its own. The two go (`HandleBitcast`,
`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`): the sum is given the users, and the last of them
takes the place of the bitcast.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.common.holes import last_in_front
from hlofuse.pipelines.users.products.reshaped_products import split_of


def with_last_in_place_of_bitcasts(total: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The `users` of the `total` of such a product, which read it as it is."""
    parts = split_of(total)
    if parts is None or total.opcode != "reduce" or total.shape.rank != 1 or total.operands[0] is parts:
        return users
    return users if any(u.opcode == "bitcast" for u in users) else last_in_front(users)
