"""Users of what layout assignment gave another layout than row-major.

LayoutNormalization (`xla/service/layout_normalization.cc`) makes every such instruction anew, row-major, with
a bitcast back behind it that is its first user. The users are made anew in turn, operands first, and read
the new instruction at once. With the last of the old ones the bitcast goes, and the last user takes its place.
"""

from __future__ import annotations

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_made_by_pass, is_of_program

_MADE_ANEW = ELEMENTWISE_OPCODES | {"concatenate", "pad", "slice", "transpose"}


def with_last_normalized_in_front(
    producer: Instruction, users: list[Instruction]
) -> list[Instruction] | None:
    """The users of `producer` as LayoutNormalization left them; None if it did not make them all anew.

    Ids have to be XLA's.
    """
    if not _is_normalized(producer) or not all(_is_normalized(u) and u.op_name for u in users):
        return None
    if not any(_has_lost_its_name(u) for u in users):
        return None
    *others, last = sorted(users, key=lambda u: u.id)
    return [last, *others]


def _is_normalized(x: Instruction) -> bool:
    if not is_made_by_pass(x):
        return False
    if x.opcode == "bitcast":
        # A reshape that drops dimensions a slice left with one element: nothing of its place is kept.
        return not x.op_name and x.operands[0].opcode == "slice"
    return x.opcode in _MADE_ANEW


def _has_lost_its_name(x: Instruction) -> bool:
    """It bears the name of its opcode, and that of an operation of the program stays behind in `op_name`."""
    return bool(x.op_name) and not is_of_program(x)
