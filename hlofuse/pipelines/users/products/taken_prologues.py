"""Operations that Triton gemms took along ahead of the dot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.common.fusions import LAYOUT_ONLY, is_gemm
from hlofuse.pipelines.users.common.holes import without
from hlofuse.pipelines.users.floats.widened import served_by


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
