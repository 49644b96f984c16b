"""Readers of broadcast constants that softmax fusions took along."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeAlias

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.common.constants import literal_of
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

    The last fusion is made first. The `users` come in rounds, each in `order`: what a pass had made before
    HloCSE ran and what it made of the rest before HloCSE ran again (`xla/service/hlo_cse.cc`). An operation
    is of one round wherever it is done.
    """
    taken = readers.get(_value_of(constant), []) if is_broadcast_of_constant(constant) else []
    place = {u: order.get(u, -1) for u in users} | {user: order[fusion] for fusion, user in taken}
    rounds: list[list[Instruction]] = [[]]
    for user in users:
        if rounds[-1] and place[user] < place[rounds[-1][-1]]:
            rounds.append([])
        rounds[-1].append(user)
    round_of = {_operation_of(u): own for own in reversed(rounds) for u in own}
    for _, user in taken:
        round_of.get(_operation_of(user), rounds[0]).append(user)
    listed = [user for own in rounds for user in sorted(own, key=place.__getitem__)]
    return listed, [user for _, user in reversed(taken)]


def _operation_of(x: Instruction) -> Hashable:
    """The same wherever it is done: a variance divides the sum of squares, the mean in it another sum."""
    total = x.operands[0]
    return x.op_name, total.opcode == "reduce" and total.operands[0].opcode


def _value_of(broadcast: Instruction) -> Hashable:
    """The same for equal broadcasts."""
    return broadcast.shape.key, literal_of(broadcast)
