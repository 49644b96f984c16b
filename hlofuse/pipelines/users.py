"""The order of an instruction's users, as far as it can be told from their ids.

XLA appends a user when it is made, or when a pass gives it another operand. A text is in post-order,
and so are the lists a reader builds from it, which is nearly always what XLA has: the passes that
gave out operands last (layout assignment, simplification, CSE) went in that order. What follows are
the exceptions that ids, or what an instruction is, give away.
"""

from __future__ import annotations

import re

from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.pipelines.visits import Uses, uses_in_order
from hlofuse.pipelines.widened import is_inserted_convert, is_narrowing, widened

_NUMBERS = re.compile(r"(\.\d+)+$")


def restore_users(module: Module, *, ids_known: bool) -> None:
    """Put the users of every instruction outside of fusions into their likely order."""
    for computation in module.computations:
        if computation.fusion is not None:
            continue
        uses, wide = uses_in_order(computation), widened(computation)
        for instruction in computation:
            if len(instruction.users) > 1:
                instruction.users[:] = _likely(instruction, instruction.users, uses, wide, ids_known)


def _likely(
    producer: Instruction,
    users: list[Instruction],
    uses: Uses,
    wide: frozenset[Instruction],
    ids_known: bool,
) -> list[Instruction]:
    # Fusions that are there already were made last, around operations that had been there before.
    users = [u for u in users if u.opcode != "fusion"] + [u for u in users if u.opcode == "fusion"]
    if is_inserted_convert(producer) and not is_narrowing(producer):
        # Every user got one of its own; CSE made them one, in the order of the walk.
        return sorted(users, key=lambda user: uses[producer, user])
    if producer in wide:
        users = _of_widened(producer, users, uses, wide)
    users = sorted(users, key=lambda user: _was_swapped_with_convert(producer, user))
    users = _with_split_reductions_behind(users)
    if not ids_known:
        return users
    if all(u.opcode == "concatenate" for u in users) or (producer.opcode == "broadcast" and _made_together(producer, users)):
        return sorted(users, key=_age)
    for square in [u for u in users if u.opcode == "multiply" and u.operands == [producer, producer]]:
        # Simplification made it of a power, so that it comes behind all that are older.
        others = [u for u in users if u is not square]
        older = max((k for k, u in enumerate(others) if u.id < square.id), default=-1)
        place = max(older + 1, users.index(square))
        users = [*others[:place], square, *others[place:]]
    return users


def _made_together(broadcast: Instruction, users: list[Instruction]) -> bool:
    """The users were made one after the other, right behind the broadcast or by one pass for it."""
    if all(_root(u) == "multiply" == u.opcode for u in users):
        return True  # division by a constant became multiplication
    ids = [u.id for u in users]
    return min(ids) > broadcast.id and max(ids) - broadcast.id == len(ids)


def _root(instruction: Instruction) -> str:
    """The name without its numbers."""
    return _NUMBERS.sub("", instruction.name)


def _age(instruction: Instruction) -> int:
    return instruction.id


def _of_widened(
    producer: Instruction, users: list[Instruction], uses: Uses, wide: frozenset[Instruction]
) -> list[Instruction]:
    """The users of what was narrow.

    Float normalization handed all of them to a convert back, and those that it widened got a convert to
    f32 from it; what had used such a convert in the program got the producer at once. Then pairs of
    converts were removed, in the order of the walk. The convert back went when nobody used it any
    more, and the last user took its place.
    """
    back = [u for u in users if is_narrowing(u)]
    at_once = [u for u in users if u not in back and u not in wide]
    later = sorted([u for u in users if u in wide], key=lambda user: uses[producer, user])
    users = [*back, *at_once, *later]
    return users if back or not later else [users[-1], *users[:-1]]


def _with_split_reductions_behind(users: list[Instruction]) -> list[Instruction]:
    """Reductions that simplification made of one of a concatenate are younger than that."""
    split = [u for u in users if _is_split_reduction(u)]
    others = [u for u in users if u not in split]
    place = next((k for k, u in enumerate(others) if u.opcode == "concatenate"), None)
    if place is None:
        return users
    return [*others[: place + 1], *split, *others[place + 1 :]]


def _is_split_reduction(reduce: Instruction) -> bool:
    """Is its result combined with another part's, all under one name of the framework's?"""
    name = reduce.op_name
    return (
        reduce.opcode == "reduce"
        and name is not None
        and any(
            len(u.operands) == 2 and u.opcode != "reduce" and all(x.op_name == name for x in (u, *u.operands))
            for u in reduce.users
        )
    )


def _was_swapped_with_convert(producer: Instruction, user: Instruction) -> bool:
    """Is it the upper half of `broadcast(convert(x))` that simplification made of `convert(broadcast(x))`?

    It was made then, behind all other users. What it stands for is still there: nothing has taken away
    dead instructions since. If `x` was a convert back to single precision, it has gone as well.
    """
    if user.opcode == "convert":
        broadcasts = [u for u in user.users if u.opcode == "broadcast"]
        return any(_is_same_broadcast(b, old) for b in broadcasts for old in producer.users)
    if user.opcode == "broadcast":
        narrow = [u for u in producer.users if u.opcode == "convert"]
        return any(_is_same_broadcast(user, old) for convert in narrow for old in convert.users)
    return False


def _is_same_broadcast(new: Instruction, old: Instruction) -> bool:
    """The same broadcast of another type, with nothing behind it but the convert that was swapped."""
    return (
        old.opcode == "broadcast"
        and old.shape.dimensions == new.shape.dimensions
        and old.attributes.get("dimensions") == new.attributes.get("dimensions")
        and all(u.opcode == "convert" and not u.users for u in old.users)
    )
