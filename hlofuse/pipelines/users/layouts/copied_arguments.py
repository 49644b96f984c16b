"""Arguments that some users read in another layout."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.common.holes import without
from hlofuse.pipelines.users.common.visits import Uses


def with_copies_where_read(
    argument: Instruction, users: list[Instruction], order: dict[Instruction, int], uses: Uses, passes: int
) -> list[Instruction]:
    """The users of a parameter, each copy behind the program's own (ids below `passes`) that come first.

    LayoutAssignment (`xla/service/layout_assignment.cc`) copies it for each user that wants another layout,
    and the copy takes that one's place. The copies are one transpose in the end, and a text has it where it
    is first visited: in front of the other operands of the user, and of what these are made of.
    """
    if argument.opcode != "parameter":
        return users
    listed = list(users)
    for copy in [u for u in reversed(users) if _is_copy(argument, u)]:
        if all(u.opcode == "tuple" for u in copy.users):
            continue  # the program transposes it for a loop, which is given it as it is in memory then
        if any(u is not copy.users[0] for u in copy.users):
            listed = _with_one_of_many(listed, copy, order, uses)
            continue
        at = listed.index(copy)
        read = min((order[u] for u in copy.users), default=0)
        behind = [k for k, u in enumerate(listed) if k > at and u.id < passes and order[u] < read]
        if behind:
            listed.insert(behind[-1], listed.pop(at))
    return listed


def _with_one_of_many(
    users: list[Instruction], copy: Instruction, order: dict[Instruction, int], uses: Uses
) -> list[Instruction]:
    """`users` after CSE kept that `copy` which its walk met first of those that were made for each reader."""
    # By what is read and by whom: who reads the copy may read the parameter as well.
    copies = sorted(((copy, u) for u in dict.fromkeys(copy.users)), key=uses.__getitem__)
    reads = sorted([*((u, u) for u in users if u is not copy), *copies], key=lambda read: order[read[1]])
    return [u for u, _ in without(reads, copies[1:])]


def _is_copy(argument: Instruction, user: Instruction) -> bool:
    return user.opcode == "transpose" and user.op_name in (None, "", argument.op_name)
