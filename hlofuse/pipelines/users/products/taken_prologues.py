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
    Bitcasts in between are hoisted out again, in the same place, and CSE makes equal ones one. So it is with
    the reshape that dots shared, which a reader other than a gemm keeps.
    """
    if producer.opcode == "bitcast" and any(is_gemm(u) and u.op_name == producer.op_name for u in users):
        return users  # hoisted: HloCSE made one of several, in the order of its walk
    taken = [(u, gemm, kind) for u in users for gemm, kind in _gemms_with_prologue(u, producer)]
    reshaped = [(u, gemm, kind) for u in users for gemm, kind in _gemms_with_reshape(u, producer)]
    kept = {_in_shape(u): u for u in users if _is_row_major(u) and _is_read_by_others(u)}
    shared = Counter([*(kind for _, _, kind in reshaped), *kept])
    reshaped = [entry for entry in reshaped if shared[entry[2]] > 1]
    kept = {kind: kept[kind] for kind in kept if any(kind == k for _, _, k in reshaped)}
    taken += reshaped
    if not taken:
        return _with_transposing_behind(producer, users, order)
    late = {user for user, _, _ in taken}
    # The operations taken along stood where the first of their gemms stands now.
    listed: list[Hashable] = []
    for user in users:
        here = [kind for u, _, kind in taken if u is user] + [kind for kind in kept if kept[kind] is user]
        listed += dict.fromkeys(kind for kind in here if kind not in listed)
        if user not in late and user not in kept.values():
            listed.append(user)
    taken.sort(key=lambda entry: order[entry[1]])
    left = Counter(kind for _, _, kind in taken)
    left.update(_kind(served_by(user)) for user in users if user not in late)
    left.update(kept.keys())
    entries = dict.fromkeys((user, gemm) for user, gemm, _ in taken)
    for user, gemm, kind in taken:
        if (user, gemm) not in listed:  # a gemm that takes two along is one user
            listed.append((user, gemm))
        left[kind] -= 1
        if not left[kind]:
            listed = without(listed, [kind])
    first: dict[Instruction, Hashable] = {user: kind for kind, user in kept.items()}
    merged = [entry for entry in entries if first.setdefault(entry[0], entry) != entry]
    users_of = {entry: user for user, entry in first.items()} | {u: u for u in users}
    return [users_of[entry] for entry in without(listed, merged) if entry in users_of]


def _with_transposing_behind(
    producer: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The same of gemms that took along a transpose of `producer` which is still there, as others read it."""
    transposes = [u.attributes.get("dimensions") for u in users if u.opcode == "transpose"]
    if not transposes:
        return users
    late = [
        u for u in users if is_gemm(u) and any(x in transposes for x in _dimensions_transposed(u, producer))
    ]
    return [*(u for u in users if u not in late), *sorted(late, key=order.__getitem__)]


def _dimensions_transposed(gemm: Instruction, operand: Instruction) -> Iterator[object]:
    """The order into which the `gemm` brings the dimensions of its `operand`, each time that it does."""
    for x in gemm.fused_computation.parameters[gemm.operands.index(operand)].users:
        if x.opcode == "transpose":
            yield x.attributes.get("dimensions")


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


def _gemms_with_reshape(user: Instruction, producer: Instruction) -> Iterator[tuple[Instruction, Hashable]]:
    """The gemms that read `producer` at `user` in another shape, and change nothing else, with that shape."""
    if producer.opcode == "bitcast" or (is_gemm(producer) and user.op_name == producer.op_name):
        return  # hoisted itself, or out of the gemm that gives the value
    if is_gemm(user):
        readers = [(user, producer)]
    else:
        readers = [(u, user) for u in user.users if user.opcode == "bitcast" and is_gemm(u)]
    for gemm, operand in readers:
        shape = _dimensions_before_split(gemm, operand)
        if shape and shape != producer.shape.dimensions:
            yield gemm, ("bitcast", *shape)


def _dimensions_before_split(gemm: Instruction, operand: Instruction) -> tuple[int, ...]:
    """Those of what the dot reads before SplitkRewriter made two of the one it sums over."""
    x = gemm.fused_computation.parameters[gemm.operands.index(operand)]
    # Layout normalization left a transpose as a bitcast of another layout.
    if not x.users or x.users[0].opcode != "dot" or not _is_row_major(x):
        return ()
    dot, found = x.users[0], list(x.shape.dimensions)
    if any(u.opcode == "reduce" and u.op_name == gemm.op_name for u in gemm.users):
        side = "lhs" if dot.operands[0] is x else "rhs"
        k = next(iter(dot.attributes[f"{side}_contracting_dims"]), 0)
        if not k:
            return ()
        found[k - 1 : k + 1] = [found[k - 1] * found[k]]
    return tuple(found)


def _is_row_major(x: Instruction) -> bool:
    return x.shape.is_array and x.shape.is_row_major


def _is_read_by_others(x: Instruction) -> bool:
    """Is it a reshape that not only gemms read? That of a reduction was made later."""
    if x.opcode != "bitcast" or any(u.opcode == "reduce" for u in x.users):
        return False
    return not all(map(is_gemm, x.users))


def _in_shape(x: Instruction) -> Hashable:
    return ("bitcast", *x.shape.dimensions)


def _kind(x: Instruction) -> Hashable:
    return (x.opcode, x.op_name)
