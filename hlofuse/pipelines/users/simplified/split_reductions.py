"""Reductions of a concatenate that became one of each part.

Mirrors `HandleReduce` (`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`).
"""

from __future__ import annotations

from collections.abc import Mapping

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_one_missing
from hlofuse.pipelines.users.common.grouping import is_reduced
from hlofuse.pipelines.users.common.holes import last_at


def with_split_reductions_behind(
    producer: Instruction, users: list[Instruction], order: Mapping[Instruction, int]
) -> list[Instruction]:
    """Reductions that simplification made of one of a concatenate are younger than that.

    They were appended to the users, or stand in its place if nothing reads it any more: behind all that its
    parts are made of. Where the part was a product with one, of which only the missing number tells, that was
    its place already.
    """
    split = {u: reduce for u in users if is_split_reduction(reduce := _behind_reshape(u))}
    if not split:
        return users
    others = [u for u in users if u not in split]
    if any(u.opcode == "concatenate" for u in others):
        return [*others, *split]
    others = users
    for reader, reduce in split.items():
        if reader.operands[0] is not producer or _is_in_place_of_product(reader, others):
            continue
        others = [u for u in others if u is not reader]
        gone = max(order[part.operands[0]] for part in _all_parts(reduce))
        place = max((k for k, u in enumerate(others) if order[u] <= gone), default=-1)
        others.insert(place + 1, reader)
    return others


def _behind_reshape(user: Instruction) -> Instruction:
    """The reduction of what `user` is, if that was reshaped for it: it had dimensions of one, or was grouped.

    A bitcast for several kinds of reductions bears the name of what it is of.
    """
    if user.opcode != "bitcast" or not is_reduced(user):
        return user
    if len(user.users) == 1 and not user.op_name:
        return user.users[0]
    is_for_some = len(user.users) > 1 and user.op_name == user.operands[0].op_name
    return next(filter(is_split_reduction, user.users), user) if is_for_some else user


def _is_in_place_of_product(reader: Instruction, users: list[Instruction]) -> bool:
    k = users.index(reader)
    return 0 < k < len(users) - 1 and is_one_missing(users[k - 1], users[k + 1])


def with_last_in_place_of_split(
    producer: Instruction, users: list[Instruction], order: Mapping[Instruction, int]
) -> list[Instruction]:
    """The users of the concatenate, of which the reduction is gone."""
    if producer.opcode != "concatenate":
        return users
    split = [set(filter(is_split_reduction, part.users)) for part in producer.operands]
    gone = []
    for reduce in producer.operands[0].users:
        if reduce in split[0] and all(any(r.op_name == reduce.op_name for r in rs) for rs in split):
            gone.append(_all_combined(reduce))
    gone = [x for x in dict.fromkeys(gone) if x not in users]
    for x in gone:
        # It was computed where what all parts were combined to is now.
        users = last_at(users, sum(order[u] < order[x] for u in users))
    return users


def _all_combined(reduce: Instruction) -> Instruction:
    combined = reduce
    while (further := _combination(combined)) is not None:
        combined = further
    return combined


def _all_parts(reduce: Instruction) -> list[Instruction]:
    """The reductions of all parts of the concatenate."""
    combined = {_all_combined(reduce): None}
    waiting = list(combined)
    while waiting:
        x = waiting.pop()
        if x.opcode != "reduce" and x.op_name == reduce.op_name:
            waiting += [o for o in x.operands if o not in combined]
            combined.update(dict.fromkeys(x.operands))
    return [x for x in combined if x.opcode == "reduce"]


def is_split_reduction(reduce: Instruction) -> bool:
    """Is its result combined with another part's, all under one name of the framework's?"""
    return reduce.opcode == "reduce" and _combination(reduce) is not None


def _combination(part: Instruction) -> Instruction | None:
    name = part.op_name
    for u in part.users:
        if u.opcode == "bitcast" and u.op_name == name and len(part.users) == 1:
            return _combination(u)  # with the dimension of one that the reduction had kept
        if len(u.operands) == 2 and u.opcode != "reduce" and all(x.op_name == name for x in (u, *u.operands)):
            return u if name is not None else None
    return None
