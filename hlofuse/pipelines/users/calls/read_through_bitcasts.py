"""Values of which bitcasts tell whether calls were given them.

ReshapeDecomposer (`xla/hlo/transforms/expanders/reshape_decomposer.cc`) made a bitcast in place of a reshape,
which was as old as what is computed around it.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.common.ages import is_in_nameless_function, is_of_reshaped


def behind_bitcasts(x: Instruction) -> Instruction:
    """What `x` is a bitcast of, through however many."""
    while x.opcode == "bitcast":
        x = x.operands[0]
    return x


def is_read_row_major(x: Instruction) -> bool:
    """Was `x` given another layout, and do nothing but bitcasts of it read it since?

    LayoutNormalization (`xla/service/layout_normalization.cc`) puts two bitcasts behind it, through which all
    read it. AlgebraicSimplifier (`HandleBitcast`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) makes those of the users anew, in the order of
    its walk: where calls had been is not told by that any more.
    """
    return not x.shape.is_row_major and all(u.opcode == "bitcast" for u in x.users)


def is_read_reshaped(x: Instruction) -> bool:
    """Was `x` reshaped once more for each that reads it, as an element of a scan that is spread in sums?

    AlgebraicSimplifier (`HandleReshape`) makes one of both reshapes, and HloCSE one of all of those, in the
    order of its walk: where calls had been is not told by that any more.
    """
    return x.opcode == "bitcast" and all(is_of_reshaped(u) for u in x.users)


def is_of_unnamed_call(x: Instruction) -> bool:
    """Is it a running sum of which nothing tells where it was called?

    One function was around it and its users.
    """
    running = behind_bitcasts(x)
    return "/" not in (running.op_name or "/") and is_in_nameless_function(running)
