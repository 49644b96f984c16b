"""Values that an operation of the program reads instead of an equal one, made for it, that is gone.

The framework numbers operations of one name as it makes them, operands first.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, name_before_renaming, stack_frame
from hlofuse.pipelines.users.common.holes import without
from hlofuse.pipelines.users.common.numbers import Numbers
from hlofuse.pipelines.users.common.visits import Uses


def with_older_equals_gone(
    producer: Instruction,
    users: list[Instruction],
    uses: Uses,
    numbers: Numbers,
    passes: int,
    wide: frozenset[Instruction],
) -> list[Instruction]:
    """The users of `producer`, given that another one, equal to one that is kept, was among them.

    HloCSE (`xla/service/hlo_cse.cc`) keeps what its walk meets first, which need not have been made first;
    the last user takes the place of the other. What read that has a lower number than the one kept, which is
    older nonetheless, and the number in front of it is missing. What a pass made, as ids tell from `passes`
    on, is younger than what reads it, with a number of its own. It stood where its expansion has it. What is
    `wide` now was not there then, unless `producer` is as well.
    """
    gone = [(p, u) for u in users for p in _read_instead(u, uses, numbers, passes)]
    if not gone:
        return users
    late = frozenset() if producer in wide else wide
    listed = [(u, False) for u in users if u not in late]
    for place, kept in sorted(gone, key=_place):
        behind = [k for k, (u, is_gone) in enumerate(listed) if not is_gone and uses[producer, u] > place]
        own = [k for k in behind if _is_written_with(listed[k][0], kept)]
        listed.insert(min(own or behind, default=len(listed)), (kept, True))
    return [*(u for u, _ in without(listed, [x for x in listed if x[1]])), *(u for u in users if u in late)]


def _place(met: tuple[int, Instruction]) -> int:
    return met[0]


def _read_instead(kept: Instruction, uses: Uses, numbers: Numbers, passes: int) -> list[int]:
    """When the walk met the readers of those that were equal to the one `kept`."""
    root, number = name_before_renaming(kept)
    if not is_of_program(kept):
        return []
    found = []
    for reader in kept.users:
        own = name_before_renaming(reader)
        is_alone = 1 < own.number < number and own.number - 1 not in numbers[root]
        is_of_then = own.root == root and kept.id < max(reader.id, passes)
        if is_of_then and is_alone and _is_of_one_expansion(reader, kept):
            found.append(uses[kept, reader])
    return found


def _is_of_one_expansion(x: Instruction, other: Instruction) -> bool:
    """Are they different operations that came of one of the framework's, which is none of XLA's itself?"""
    if x.opcode == other.opcode or not _is_written_with(x, other):
        return False
    root = name_before_renaming(x).root
    return not any(y.opcode.startswith(root) or root.startswith(y.opcode) for y in (x, other))


def _is_written_with(x: Instruction, other: Instruction) -> bool:
    return (x.op_name, stack_frame(x)) == (other.op_name, stack_frame(other))
