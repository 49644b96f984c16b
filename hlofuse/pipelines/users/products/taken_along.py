"""Readers of broadcast constants that softmax fusions took along."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeAlias

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.common.constants import is_broadcast_of_constant, literal_of
from hlofuse.pipelines.users.common.fusions import has_dot
from hlofuse.pipelines.users.common.holes import without

SoftmaxReaders: TypeAlias = "dict[Hashable, list[tuple[Instruction, Instruction]]]"
"""By the constant that is broadcast: a softmax fusion and what reads its clone of the broadcast there."""


def softmax_readers(order: Iterable[Instruction]) -> SoftmaxReaders:
    """What softmax fusions among the instructions `order` read of each constant that is broadcast in them."""
    found: SoftmaxReaders = {}
    for fusion in order:
        if fusion.opcode == "fusion" and fusion.fusion_kind == "kCustom" and not has_dot(fusion):
            for x in fusion.fused_computation:
                if is_broadcast_of_constant(x):
                    found.setdefault(_value_of(x), []).extend((fusion, user) for user in x.users)
    return found


def without_those_in_softmax(
    constant: Instruction,
    users: list[Instruction],
    order: dict[Instruction, int],
    readers: SoftmaxReaders,
) -> list[Instruction]:
    """The users of a broadcast `constant`, given that softmax fusions took some others along.

    SoftmaxRewriterTriton (`xla/backends/gpu/transforms/softmax_rewriter_triton.cc`) clones the broadcast as
    well. What it took, of `readers`, was among the users behind those that come in front in `order`, the
    post-order.
    """
    listed, gone = with_those_in_softmax(constant, users, order, readers)
    return without(listed, gone)


def with_those_in_softmax(
    constant: Instruction,
    users: list[Instruction],
    order: dict[Instruction, int],
    readers: SoftmaxReaders,
) -> tuple[list[Instruction], list[Instruction]]:
    """The users of a broadcast `constant` with what fusions took along in between, and what that is.

    The last fusion is made first.
    """
    taken = readers.get(_value_of(constant), []) if is_broadcast_of_constant(constant) else []
    listed, place = list(users), {u: order.get(u, -1) for u in users}
    for fusion, user in taken:
        place[user] = order[fusion]
        in_front = [k for k, u in enumerate(listed) if place[u] < place[user]]
        listed.insert(in_front[-1] + 1 if in_front else 0, user)
    return listed, [user for _, user in reversed(taken)]


def _value_of(broadcast: Instruction) -> Hashable:
    """The same for equal broadcasts."""
    return broadcast.shape.key, literal_of(broadcast)
