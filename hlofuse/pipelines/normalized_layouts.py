"""Users of what layout assignment gave another layout than row-major.

LayoutNormalization (`xla/service/layout_normalization.cc`) makes every such instruction anew, row-major, with
a bitcast back behind it that is its first user. The users are made anew in turn, operands first, and read
the new instruction at once. With the last of the old ones the bitcast goes, and the last user takes its
place.
"""

from __future__ import annotations

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, name_before_renaming, scope

_MADE_ANEW = ELEMENTWISE_OPCODES | {"concatenate", "pad", "slice", "transpose"}


def made_by_passes(computation: Computation) -> frozenset[Instruction]:
    """What is younger than the program, calls inlined from it left out. Ids have to be XLA's.

    The framework makes the root last; where that was made anew itself, the first instruction that has lost
    its name tells.
    """
    root = computation.root
    first = root.id
    if root.opcode != "tuple" and not is_of_program(root):
        first = min(
            (x.id for x in computation if x.opcode in ELEMENTWISE_OPCODES and _has_lost_its_name(x)),
            default=first,
        )
    return frozenset(x for x in computation if x.id >= first and x is not root and not scope(x))


def with_last_normalized_in_front(
    producer: Instruction, users: list[Instruction], made: frozenset[Instruction]
) -> list[Instruction] | None:
    """The users of `producer` as LayoutNormalization left them; None if it did not make them all anew.

    `made` are those that passes made (`made_by_passes`).
    """
    if not (_is_normalized(producer, made) or _stands_for_normalized(producer, made)) or not all(
        _is_normalized(u, made) and (u.op_name or u.opcode == "transpose") for u in users
    ):
        return None
    if not any(_has_lost_its_name(u) for u in (producer, *users)):
        return None
    if _has_lost_its_name(producer) and all(_is_of_same_expansion(u, producer) for u in users):
        return None
    if producer.opcode != "bitcast" and any(u.operands.count(producer) > 1 for u in users):
        return None  # seen in records: with a square among them the order of before stays, why we do not know
    # What rematerialization repeats has a reshape of its own; CSE made the two one after all this. Seen in
    # records for reshapes only; which pass keeps others together we do not know.
    again = [u for u in users if _is_repeated(u)] if producer.opcode == "bitcast" else []
    return [*_rotated(again), *_rotated([u for u in users if u not in again])]


def _is_of_same_expansion(x: Instruction, other: Instruction) -> bool:
    """Was one operation of the program, such as rng-bit-generator, expanded into both?"""
    return x.op_name == other.op_name and x.opcode not in {other.opcode, "transpose"}


def _rotated(users: list[Instruction]) -> list[Instruction]:
    by_age = sorted(users, key=lambda u: u.id)
    return [*by_age[-1:], *by_age[:-1]]


def _is_repeated(x: Instruction) -> bool:
    return "/rematted_computation/" in (x.op_name or "")


def _is_normalized(x: Instruction, made: frozenset[Instruction]) -> bool:
    if x not in made:
        return False
    return x.opcode in _MADE_ANEW and name_before_renaming(x).root == x.opcode


def _stands_for_normalized(x: Instruction, made: frozenset[Instruction]) -> bool:
    """A bitcast that was a reshape, or that was put behind a Triton gemm and took the users as they were.

    Told from ids and `op_name` as records show them; no pass says so in as many words.
    """
    if x.opcode != "bitcast" or x not in made:
        return False
    if not x.op_name:
        # Of a reshape that drops the dimensions of which a slice left one element nothing is kept.
        # One that is transposed is left as it was, in the records seen.
        return x.operands[0].opcode == "slice" and all(u.opcode != "transpose" for u in x.users)
    return all(u.id < x.id and u.op_name != x.op_name for u in x.users)


def _has_lost_its_name(x: Instruction) -> bool:
    """It bears the name of its opcode, and that of an operation of the program stays behind in `op_name`."""
    return bool(x.op_name) and not is_of_program(x)
