"""Operations of the program that simplification dropped, and who reads what they read.

The framework numbers operations of one name as it makes them: a constant that is spread, then what reads it.
A number that none has tells of an operation that is gone.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import outermost_call
from hlofuse.pipelines.names import is_of_program, name_before_renaming, operation, stack_frame
from hlofuse.pipelines.users.common.holes import last_at, last_in_front
from hlofuse.pipelines.users.common.keys import is_word_of_key
from hlofuse.pipelines.users.common.numbers import Numbers
from hlofuse.pipelines.users.common.visits import Uses
from hlofuse.pipelines.users.floats.inserted_converts import is_narrow
from hlofuse.pipelines.users.simplified.remainders import is_power_divided_by
from hlofuse.pipelines.users.simplified.uniform_numbers import is_scale_of_one


def with_last_in_place_of_dropped(
    producer: Instruction, users: list[Instruction], uses: Uses, numbers: Numbers
) -> list[Instruction]:
    """The users of `producer`, given that an operation that read it as well is gone.

    The last user took its place (`HandleAdd`, `HandleConvert` and others,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`): of a constant or a convert whoever that was, of
    other values who read `x + 0`, which was appended before.
    """
    users = _with_sum_in_place_of_first_term(producer, users)
    if not is_of_program(producer):
        return users
    if is_power_divided_by(producer) or is_word_of_key(producer):
        return users  # which rules of their own tell of
    if is_broadcast_of_constant(producer):
        return last_in_front(users) if _first_reader_is_gone(producer, users, numbers) else users
    if _bears_name_of_dropped(producer, numbers) and len(users) == 2 and users[-1].opcode == "add":
        return last_in_front(users)
    place = _place_of_convert_back(producer, users, uses, numbers)
    if place is not None:
        return last_at(users, place)
    reader = _reader_of_dropped(producer, users, numbers)
    if reader is None:
        return users
    others = [u for u in users if u is not reader]
    place = sum(uses[producer, u] < uses[producer, reader] for u in others)
    return [*others[:place], reader, *others[place:]]


def _with_sum_in_place_of_first_term(x: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of `x`, of which a loop in Python adds up multiples, beginning with one times `x`.

    `HandleMultiply` gave the first sum `x` itself.
    """
    for u in users:
        if u.opcode != "add" or u.operands[0] is not x or u.operands[1] not in users:
            continue
        second, terms = u.operands[1], [v.operands[-1] for v in u.users if v.opcode == "add"]
        if any(t in users and t is not u and _is_written_with(t, second) for t in terms):
            others = [v for v in users if v is not u]
            place = others.index(second)
            return [*others[:place], u, *others[place:]]
    return users


def _is_written_with(term: Instruction, other: Instruction) -> bool:
    if {term.opcode, other.opcode} != {"multiply"} or not stack_frame(term):
        return False
    return (term.op_name, stack_frame(term)) == (other.op_name, stack_frame(other))


def _first_reader_is_gone(constant: Instruction, users: list[Instruction], numbers: Numbers) -> bool:
    """Is that gone for which the constant was spread? That is numbered right behind it."""
    root, number = name_before_renaming(constant)
    if operation(constant) == "broadcast_in_dim" or not number:
        return False  # the program itself spread it; or it was in a function of its own
    if number + 1 in numbers[root] and not _is_alone_in_clone(constant):
        return False
    place = stack_frame(constant)
    if place and any((u.op_name, stack_frame(u)) == (constant.op_name, place) for u in users):
        return False  # it is there, and was given another number when it was cloned
    if is_scale_of_one(constant):
        return True
    # A constant of a call was each call's own, until CSE made one of them.
    is_of_call = outermost_call(constant) != ""
    calls = {outermost_call(u) if is_of_call else outermost_call(u) == "" for u in users}
    return len(calls) == 1 and all(map(is_of_program, users))


def _is_alone_in_clone(constant: Instruction) -> bool:
    """Is it the only one of its place in a computation that was cloned, where numbers tell nothing?"""
    if constant.computation is None or not _is_in_clone(constant) or outermost_call(constant):
        return False
    return (constant.op_name, stack_frame(constant)) not in _places(constant.computation.root)


def _is_in_clone(x: Instruction) -> bool:
    """Is it in a computation that was cloned, of which the numbers are as free as they were then?"""
    return x.computation is not None and ".clone" in x.computation.name


@lru_cache(maxsize=2)  # asked for one computation after the other
def _places(root: Instruction) -> frozenset[Hashable]:
    """Names and places of what the computation of `root` computes."""
    computed = (x for x in root.computation or () if x.opcode not in {"broadcast", "constant"})
    return frozenset((x.op_name, stack_frame(x)) for x in computed)


def _bears_name_of_dropped(x: Instruction, numbers: Numbers) -> bool:
    """Is it named after the sum of it and zero, as numbered behind its own number and that of the zero?"""
    root, number = name_before_renaming(x)
    if _is_in_clone(x):
        return False
    if x.opcode != "add" or root != x.opcode or {number - 1, number - 2} & numbers[root]:
        return False
    return any(name_before_renaming(o) == (root, number - 3) for o in x.operands)


def _place_of_convert_back(
    wide: Instruction, users: list[Instruction], uses: Uses, numbers: Numbers
) -> int | None:
    """Where a convert of `wide` to what it was before stood, made for a sum of derivatives.

    It is numbered right behind that to `wide`, and the sum reads what both came of.
    """
    if wide.opcode != "convert" or not is_narrow(wide.operands[0]):
        return None
    (narrow,) = wide.operands
    root, number = name_before_renaming(wide)
    if operation(wide) != root or number + 1 in numbers[root]:
        return None
    sums = [uses[narrow, u] for u in narrow.users if operation(u) == "add_any"]
    if len(sums) != 1:
        return None
    place = sum(uses[wide, u] < sums[0] for u in users)
    return place if place < len(users) else None


def _reader_of_dropped(
    producer: Instruction, users: list[Instruction], numbers: Numbers
) -> Instruction | None:
    """The sum that read `producer + 0`: between both are only the zero, that sum and its other operand."""
    root, number = name_before_renaming(producer)
    sums = [
        u for u in users if is_of_program(u) and u.opcode == "add" and name_before_renaming(u).root == root
    ]
    if len(sums) != 1 or {number + 1, number + 2} & numbers[root]:
        return None
    (reader,) = sums
    if name_before_renaming(reader).number < number:
        return None
    if any(_is_stretched(x, root) for x in reader.operands):
        return None
    between = {k for x in reader.operands for r, k in [name_before_renaming(x)] if r == root}
    if set(range(number + 3, name_before_renaming(reader).number)) - between:
        return None
    return None if any(o in users for o in reader.operands) else reader


def _is_stretched(x: Instruction, root: str) -> bool:
    """Was a dimension of one made longer for an operation? It was spread and reshaped for that before."""
    is_spread = x.opcode == "broadcast" and name_before_renaming(x).root == root
    return is_spread and x.operands[0].shape.rank > 0
