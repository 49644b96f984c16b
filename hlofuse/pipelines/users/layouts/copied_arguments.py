"""Arguments that some users read in another layout."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.common.holes import behind_last, without
from hlofuse.pipelines.users.common.visits import Uses
from hlofuse.pipelines.users.floats.inserted_converts import is_narrow


def with_copies_where_read(
    argument: Instruction, users: list[Instruction], order: dict[Instruction, int], uses: Uses, passes: int
) -> list[Instruction]:
    """The users of a parameter, each copy behind the program's own (ids below `passes`) that come first.

    LayoutAssignment (`xla/service/layout_assignment.cc`) copies it for each user that wants another layout,
    and the copy takes that one's place. The copies are one transpose in the end, and a text has it where it
    is first visited: in front of the other operands of the user, and of what these are made of.

    What only loops are given, in their tuples, the program itself had transposed, once for all of them.
    """
    if argument.opcode != "parameter":
        return users
    through = _read_through_converts(argument, users)
    if through is not None:
        return _with_one_through_converts(argument, users, *through, order, uses)
    listed = list(users)
    for copy in [u for u in reversed(users) if _is_copy(argument, u)]:
        if all(u.opcode == "tuple" for u in copy.users):
            continue
        if any(u is not copy.users[0] for u in copy.users):
            listed = _with_one_of_many(listed, copy, order, uses)
            continue
        read = min((order[u] for u in copy.users), default=0)
        ahead = {u for u in listed if order[u] < read and (u.id < passes or _is_in_front_of_copy(u))}
        listed = behind_last(listed, copy, ahead.__contains__)
    return listed


def _read_through_converts(
    argument: Instruction, users: list[Instruction]
) -> tuple[Instruction, Instruction] | None:
    """The convert to less of the program that was copied for a convolution, and that copy.

    MoveCopyToUsers (`xla/backends/gpu/transforms/move_copy_to_users.cc`) has the convert in front of the
    copy. The convolution had the copy converted back: what that became reads the argument itself, and has no
    name.
    """
    converts = [u for u in users if u.opcode == "convert" and is_narrow(u) and u.op_name]
    copies = [u for u in users if u.opcode == "transpose" and not u.op_name]
    if len(converts) != 1 or len(copies) != 1 or argument.shape.element_type != "f32":
        return None
    (convert,), (copy,) = converts, copies
    return (convert, copy) if any(u.opcode == "custom-call" for u in copy.users) else None


def _with_one_through_converts(
    argument: Instruction,
    users: list[Instruction],
    convert: Instruction,
    through: Instruction,
    order: dict[Instruction, int],
    uses: Uses,
) -> list[Instruction]:
    """`users` with the `convert` where what is read `through` it was met, and that behind them all.

    SimplifyFPConversions (`xla/hlo/transforms/simplifiers/simplify_fp_conversions.cc`) made it, before CSE
    made one of the copies that there are for others.
    """
    place = order | {convert: min(order[convert], order[through])}
    reads = [(u, place[u]) for u in users if u is not through and not _is_copy(argument, u)]
    gone: list[tuple[Instruction, int]] = []
    for copy in (u for u in users if u is not through and _is_copy(argument, u)):
        each = sorted(dict.fromkeys(copy.users), key=lambda u: uses[copy, u])
        reads += [(copy, order[u]) for u in each]
        gone += [(copy, order[u]) for u in each[1:]]
    reads.sort(key=lambda read: read[1])
    return [u for u, _ in without([*reads, (through, -1)], gone)]


def _with_one_of_many(
    users: list[Instruction], copy: Instruction, order: dict[Instruction, int], uses: Uses
) -> list[Instruction]:
    """`users` after CSE kept that `copy` which its walk met first of those that were made for each reader."""
    # By what is read and by whom: who reads the copy may read the parameter as well.
    copies = sorted(((copy, u) for u in dict.fromkeys(copy.users)), key=uses.__getitem__)
    reads = sorted([*((u, u) for u in users if u is not copy), *copies], key=lambda read: order[read[1]])
    reads.sort(key=lambda read: _is_hoisted(read[0]))
    return [u for u, _ in without(reads, copies[1:])]


def _is_hoisted(x: Instruction) -> bool:
    """Was it put in front of a gemm later on?

    HoistFusedBitcasts did that (`xla/backends/gpu/transforms/hoist_fused_bitcasts.cc`).
    """
    return x.opcode == "bitcast" and not x.op_name and all(u.opcode == "fusion" for u in x.users)


def _is_in_front_of_copy(x: Instruction) -> bool:
    """Did MoveCopyToUsers (`xla/backends/gpu/transforms/move_copy_to_users.cc`) put it there?"""
    if x.opcode == "transpose":
        return False
    while len(x.users) == 1 and x.op_name and x.opcode != "transpose":
        x = x.users[0]
    return x.opcode == "transpose" and bool(x.op_name) and x.op_name == x.operands[0].op_name


def _is_copy(argument: Instruction, user: Instruction) -> bool:
    return user.opcode == "transpose" and user.op_name in (None, "", argument.op_name)
