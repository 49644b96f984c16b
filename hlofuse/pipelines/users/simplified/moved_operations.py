"""Operations ReshapeMover (`xla/hlo/transforms/simplifiers/reshape_mover.cc`) made anew, and their users."""

from __future__ import annotations

from bisect import bisect

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.ages_of_program import is_made_by_pass
from hlofuse.pipelines.calls_in_names import is_in_branch, is_of_called, outermost_call
from hlofuse.pipelines.names import is_of_program, name_before_renaming, operation
from hlofuse.pipelines.users.common.ages import came_behind_its_users, was_division
from hlofuse.pipelines.users.common.holes import last_in_front
from hlofuse.pipelines.users.floats.inserted_converts import was_two_converts
from hlofuse.pipelines.users.simplified.merged_factors import has_merged_factor, product_in_broadcast


def behind_moved_reshapes(computation: Computation) -> frozenset[Instruction]:
    """Element-wise operations that ReshapeMover cloned to compute in front of a reshape.

    A clone is young and asks for the name of what it was cloned of, which is taken; it gets the first
    number that is free, which is lower than those of the program. Ids have to be XLA's. A product that
    took in the number of another, maybe within what is broadcast, is young as well, and took over its name.
    """
    first = min((x.id for x in computation if was_division(x)), default=None)
    young: list[Instruction] = []
    lowest: dict[str, int] = {}
    for x in computation:
        if x.opcode not in ELEMENTWISE_OPCODES or not is_of_program(x):
            continue
        if (first is not None and x.id > first) or (is_made_by_pass(x) and not is_of_called(x)):
            if not was_two_converts(x) and product_in_broadcast(x) is None:
                young.append(x)
        elif not is_of_called(x):
            root, number = name_before_renaming(x)
            lowest[root] = min(number, lowest.get(root, number))
    names = {x: name_before_renaming(x) for x in young}
    return frozenset(
        x
        for x, name in names.items()
        if name.number < lowest.get(name.root, 0 if _is_younger_product(x) else name.number + 1)
    )


def younger_than_results(computation: Computation) -> frozenset[Instruction]:
    """Element-wise operations of a loop's body that ReshapeMover made anew before it came to their users.

    What calls brought in was cloned operands first, one call after the other: what is younger than something
    computed of it was made since. What it moves at once is made together, without a reshape in between.
    Ids have to be XLA's.
    """
    if computation.module is None or computation.module.entry is computation:
        return frozenset()
    oldest: dict[Instruction, int] = {}
    found: set[Instruction] = set()
    for x in reversed(computation.post_order()):
        below = min((oldest[u] for u in x.users if u in oldest), default=x.id)
        if is_of_program(x) and outermost_call(x) and not is_in_branch(x):
            if below < x.id and x.opcode in ELEMENTWISE_OPCODES:
                found.add(x)
            below = min(below, x.id)
        elif below == x.id:
            continue
        oldest[x] = below
    others = sorted(x.id for x in computation if x not in found)
    return frozenset(x for x in found if _is_any_between(others, x.id, min(u.id for u in x.users)))


def with_last_in_place_of_reshape(
    producer: Instruction, users: list[Instruction], moved: frozenset[Instruction]
) -> list[Instruction]:
    """The users of one of `moved`. A reshape was the only one, until it went as well.

    Simplification appended what had read it, and the last took its place (`ReplaceInstruction`,
    `xla/hlo/ir/hlo_computation.cc`); or it went with its last reader, which was moved in front of it. What
    was moved in front of a broadcast was given that (`TryToSinkBroadcastAfterElementwiseOps`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`), and no reshape.
    """
    if any(u.opcode == "broadcast" and u.id == producer.id + 1 for u in users):
        return sorted(users, key=lambda u: u.id != producer.id + 1)
    if came_behind_its_users(producer, users):
        # What calls brought in when they were inlined may be younger than what reads it for no such reason.
        return users if is_of_called(producer) else last_in_front(users)
    *others, last = sorted(users, key=lambda u: u.id)
    if others[0].id < producer.id or last.opcode not in ELEMENTWISE_OPCODES or not is_of_program(last):
        return users
    came_alone = not any(u in moved for u in others) if last in moved else all(u in moved for u in others)
    return [last, *others] if came_alone else users


def _is_any_between(ids: list[int], low: int, high: int) -> bool:
    return bisect(ids, low) < bisect(ids, high - 1)


def _is_younger_product(x: Instruction) -> bool:
    """Was it made anew when it took in a number?

    Where a call alone read it, the last user took its place, but for the derivative of a mean.
    """
    if not has_merged_factor(x):
        return False
    return operation(x) == "broadcast_in_dim" or any(u.op_name and not is_of_called(u) for u in x.users)
