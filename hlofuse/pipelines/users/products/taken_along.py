"""Users that fusions which were there before took along."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from typing import TypeAlias

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.common.constants import is_broadcast_of_constant, literal_of
from hlofuse.pipelines.users.common.fusions import LAYOUT_ONLY, has_dot, is_gemm
from hlofuse.pipelines.users.common.holes import without
from hlofuse.pipelines.users.floats.widened import served_by

SoftmaxReaders: TypeAlias = "dict[Hashable, list[tuple[Instruction, Instruction]]]"
"""By the constant that is broadcast: a softmax fusion and what reads its clone of the broadcast there."""


def with_gemms_behind(
    producer: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of `producer`, given that Triton gemms took operations on it along.

    GemmFusion (`xla/backends/gpu/transforms/gemm_fusion.cc`) goes through the dots in post-order (`order`);
    each fusion becomes a user of what the operation had read, and that goes with the last dot it fed.
    Bitcasts in between are hoisted out again, in the same place, and CSE makes equal ones one.
    """
    taken = [(u, gemm, kind) for u in users for gemm, kind in _gemms_with_prologue(u, producer)]
    if not taken:
        return users
    late = {user for user, _, _ in taken}
    # The operations taken along stood where the first of their gemms stands now.
    listed: list[Hashable] = []
    for user in users:
        listed += dict.fromkeys(kind for u, _, kind in taken if u is user and kind not in listed)
        if user not in late:
            listed.append(user)
    taken.sort(key=lambda entry: order[entry[1]])
    left = Counter(kind for _, _, kind in taken)
    left.update(_kind(served_by(user)) for user in users if user not in late)
    entries = dict.fromkeys((user, gemm) for user, gemm, _ in taken)
    for user, gemm, kind in taken:
        if (user, gemm) not in listed:  # a gemm that takes two along is one user
            listed.append((user, gemm))
        left[kind] -= 1
        if not left[kind]:
            listed = without(listed, [kind])
    first: dict[Instruction, Hashable] = {}
    merged = [entry for entry in entries if first.setdefault(entry[0], entry) != entry]
    users_of = {entry: user for user, entry in first.items()} | {u: u for u in users}
    return [users_of[entry] for entry in without(listed, merged) if entry in users_of]


def leads_to_gemm_with_prologue(user: Instruction, producer: Instruction) -> bool:
    """Does a Triton gemm behind `user` compute on `producer` before the dot?"""
    return any(True for _ in _gemms_with_prologue(user, producer))


def _gemms_with_prologue(user: Instruction, producer: Instruction) -> Iterator[tuple[Instruction, Hashable]]:
    """The gemms that read `producer` at `user`, or behind bitcasts, with what they compute on it first."""
    pending = [(producer, user)]
    while pending:
        operand, x = pending.pop()
        if x.opcode == "bitcast":
            pending += [(x, u) for u in x.users]
        elif is_gemm(x):
            inner = x.fused_computation.parameters[x.operands.index(operand)]
            while len(inner.users) == 1 and inner.users[0].opcode in LAYOUT_ONLY:
                inner = inner.users[0]
            first = next((u for u in inner.users if u.opcode not in {"dot", *LAYOUT_ONLY}), None)
            if first is not None:
                yield x, _kind(first)


def _kind(x: Instruction) -> Hashable:
    return (x.opcode, x.op_name)


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
