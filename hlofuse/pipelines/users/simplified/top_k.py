"""The largest elements, which are slices of what a sort gives."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, operation
from hlofuse.pipelines.users.common.holes import last_in_front


def with_last_in_place_of_tuple(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such a slice with the last of them in front.

    TopkDecomposer (`xla/service/topk_rewriter.cc`) makes a sort, slices and a tuple of these. The tuple goes
    when what was taken out of it has found its users, and the last user takes its place. Where dimensions had
    been made one for it, that was the reshape back; other users were moved in front of that since.
    """
    if producer.opcode != "slice" or is_of_program(producer) or operation(producer) != "top_k":
        return users
    return users if any(_splits(u, producer) for u in users) else last_in_front(users)


def _splits(reshape: Instruction, x: Instruction) -> bool:
    return reshape.opcode == "bitcast" and reshape.shape.true_rank > x.shape.true_rank
