"""Broadcasts of one number that were as many as their users."""

from __future__ import annotations

from collections.abc import Collection

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import scope
from hlofuse.pipelines.names import is_of_program, operation, stack_frame
from hlofuse.pipelines.users.common.ages import was_division
from hlofuse.pipelines.users.common.constants import is_made_of_nothing
from hlofuse.pipelines.users.common.holes import without
from hlofuse.pipelines.users.common.visits import Uses
from hlofuse.pipelines.users.duplicates.reshaped_broadcasts import Reshaped
from hlofuse.pipelines.users.duplicates.scalars_for_each import uses_of_scalar
from hlofuse.pipelines.users.duplicates.twins_in_body import calls_of_gone

_SPREAD = {"bitcast", "broadcast"}


def with_merged_broadcasts(
    number: Instruction,
    users: list[Instruction],
    order: dict[Instruction, int],
    for_each: frozenset[Instruction],
    reshaped: Reshaped,
    walk: Uses,
) -> list[Instruction]:
    """The users of a scalar, given that the framework made a broadcast for every use of it.

    HloCSE (`xla/service/hlo_cse.cc`) kept the first of those that are equal, in post-order (`order`): each
    of the others went, and the last user took its place. Where the scalar had been as many as well, a
    broadcast was the last user when it went: the scalar was made one ahead of it. A scalar computed of it
    `for_each` use went in the same way. What was made of `reshaped` ones since comes behind them.

    The body of a loop that was cloned has users as the `walk` came to them then.
    """
    if number.shape.rank or not number.shape.is_array or not any(u.opcode == "broadcast" for u in users):
        return users
    if number in for_each or _was_made_for_each(number, users):
        return users
    if number.opcode == "bitcast" and not _is_read_by_many(users):
        return users  # the call that read it left them in another order than that of a walk
    own = [u for u in users if not _is_of_another_call(u, number)]
    others = [u for u in users if u not in own]
    parts = (_merged(number, part, order, for_each, reshaped, walk) for part in (own, others))
    return [u for part in parts for u in part]


def _is_read_by_many(users: list[Instruction]) -> bool:
    return any(u.opcode == "broadcast" and len(u.users) > 1 for u in users)


def _merged(
    number: Instruction,
    users: list[Instruction],
    order: dict[Instruction, int],
    for_each: frozenset[Instruction],
    reshaped: Reshaped,
    walk: Uses,
) -> list[Instruction]:
    # ReshapeMover would have moved an operation on one that was reshaped instead, to read the number itself.
    spread = _SPREAD if all(u.opcode in _SPREAD for u in users) else {"broadcast"}
    made = {b: u for u in users for b in reshaped.get(u, ())}
    uses = [(made.get(u, u), v) for u in users for v in _served(u, for_each, spread)]
    if users and _is_in_cloned_body(users[0]):
        uses.sort(key=lambda use: _visited(use, walk))
    else:
        uses.sort(key=lambda use: order[use[1]])
    kept: dict[Instruction, tuple[Instruction, Instruction]] = {}
    gone = [use for use in uses if kept.setdefault(use[0], use) != use]
    return [*(u for u, _ in without(_with_calls_of_twins_behind(number, uses), gone)), *made]


def _with_calls_of_twins_behind(
    number: Instruction, uses: list[tuple[Instruction, Instruction]]
) -> list[tuple[Instruction, Instruction]]:
    """The `uses` with those behind that were of another number like it: of the call that computed that."""
    calls = calls_of_gone(number)
    if not calls or number.computation is None or number.computation.module is None:
        return uses
    tables = number.computation.module.stack_frames
    return sorted(uses, key=lambda use: not {*tables.with_callers(stack_frame(use[1]))}.isdisjoint(calls))


def _is_in_cloned_body(x: Instruction) -> bool:
    """Is it of the body of a loop that was cloned: were users listed as the walk came to them?"""
    return x.computation is not None and not x.computation.is_entry and ".clone" in x.computation.name


def _visited(use: tuple[Instruction, Instruction], walk: Uses) -> int:
    """When a walk came to what is read; to the reader itself where it reads that otherwise by now."""
    _, reader = use
    return walk[use] if use in walk else max(walk.get((o, reader), -1) for o in reader.operands)


def _is_of_another_call(user: Instruction, number: Instruction) -> bool:
    """Did it read what another function computed alike? CSE gave it the `number` later, behind the others."""
    there, here = (scope(x) or "" for x in (user, number))
    if is_made_of_nothing(number) or not there or not here:
        return False
    return not any(a.startswith(b) for a, b in ((f"{there}/", f"{here}/"), (f"{here}/", f"{there}/")))


def _was_made_for_each(number: Instruction, users: list[Instruction]) -> bool:
    """Had every broadcast a scalar of its own, which a pass made or its operation converted?"""
    if number.op_name and number.opcode in ELEMENTWISE_OPCODES and not is_of_program(number):
        return not was_division(number) or not all(_is_of_other_place(u, number) for u in users)
    if operation(number) != "convert_element_type" or not stack_frame(number):
        return False
    place = stack_frame(number)
    return all(stack_frame(u) == place and operation(u) != operation(number) for u in users)


def _is_of_other_place(user: Instruction, number: Instruction) -> bool:
    """Is it no part of what `number` was made for? A reshape was put in its place by another pass since."""
    return user.opcode == "bitcast" or (is_of_program(user) and stack_frame(user) != stack_frame(number))


def _served(
    user: Instruction, for_each: frozenset[Instruction], spread: Collection[str]
) -> list[Instruction]:
    if user in for_each:
        return uses_of_scalar(user)
    return user.users if user.opcode in spread and user.users else [user]
