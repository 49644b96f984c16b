"""Indices that count from the end where they are negative: `select(i < 0, i + n, i)`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from hlofuse.analysis.constants import is_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import operation, stack_frame
from hlofuse.pipelines.users.common.holes import last_at, without
from hlofuse.pipelines.users.common.numbers import Numbers
from hlofuse.pipelines.users.common.visits import Uses
from hlofuse.pipelines.users.common.whole_windows import dropped_in_front

_OF_INDICES = frozenset({"s8", "s16", "s32", "s64"})


def with_signs_of_index_merged(
    index: Instruction, users: list[Instruction], uses: Uses, numbers: Numbers
) -> list[Instruction]:
    """The users of an `index` of several dimensions, given that each had a comparison with zero.

    The framework writes comparison, sum and select for each of them, wherever it is used. Where a window
    starts at zero instead they went, the select first. HloCSE (`xla/service/hlo_cse.cc`) keeps the comparison
    that its walk meets first, and of what is equal the rest as well; the last user takes the place of each
    other one.
    """
    if index.shape.element_type not in _OF_INDICES:
        return users
    listed: list[Hashable] = [*users]
    for count, place in enumerate(_written_again(index, users, uses)):
        behind = [k for k, u in enumerate(listed) if isinstance(u, Instruction) and uses[index, u] > place]
        at = min(behind, default=len(listed))
        listed[at:at] = [(kind, count) for kind in ("sign", "sum", "select")]
    for sign in users:
        if sign.opcode == "compare" and len(sign.users) > 1 and is_constant(sign.operands[1]):
            sums = {s for u in users for s in [sum_of_index(u, sign, index)] if s in users}
            for moved in sorted(sums, key=lambda s: uses[index, s])[1:]:
                listed.insert(listed.index(moved), ("sign of", moved))
    dropped: list[Hashable] = []
    for select, count in _dropped_in_front(index, users, numbers).items():
        sign, moved = select.operands[:2]
        at = listed.index(moved)
        at -= at > 0 and listed[at - 1] in (sign, ("sign of", moved))
        for k in range(count):
            listed[at:at] = [("sign", select, k), ("sum", select, k), ("select", select, k)]
            dropped += [("select", select, k), ("sign", select, k), ("sum", select, k)]
    listed = without(listed, dropped)
    merged = [x for x in listed if not isinstance(x, Instruction)]
    return [u for u in without(listed, merged) if isinstance(u, Instruction)]


def with_sign_of_bounded_gone(
    zeros: Instruction, users: list[Instruction], order: Mapping[Instruction, int]
) -> list[Instruction]:
    """The users of `zeros`, given that an index that is at least 0 was compared with them.

    AlgebraicSimplifier (`HandleCompare`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) knows that
    it is not negative; the last user takes the place of the comparison.
    """
    for bounded in users:
        if bounded.opcode == "maximum" and bounded.operands[0] is zeros and _is_index(bounded):
            behind = [k for k, u in enumerate(users) if order[u] > order[bounded]]
            users = last_at(users, min(behind, default=len(users)))
    return users


def with_lower_bound_gone(index: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of an `index` that is compared with the upper bound of an array and not with the lower one.

    The framework compares it with zero first. AlgebraicSimplifier (`HandleCompare`) or HloConstantFolding
    (`xla/hlo/transforms/simplifiers/hlo_constant_folding.cc`) found that it is not negative; the last user
    took the place of that comparison.
    """
    bounds = [k for k, u in enumerate(users) if _is_bound(u, index)]
    if len(bounds) != 1 or operation(users[bounds[0]]) != "le" or not _is_index(index):
        return users
    return last_at(users, bounds[0])


def with_last_in_place_of_folded_sum(index: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of an `index` that is a sum with a constant, as `i - 1` is, and is counted from the end.

    AlgebraicSimplifier (`HandleAdd`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) makes
    `(i + c) + n` the sum of `i` and one constant: it is no user of `i + c` any more, and the last one takes
    its place, in front of the select, or behind the comparison where the select had come in front of that (it
    took the place of a call). The tuple of the results of a turn is made anew since.
    """
    if index.opcode != "add" or not is_constant(index.operands[1]):
        return users
    read = users[:-1] if users[-1:] and users[-1].opcode == "tuple" else users
    for k, selected in enumerate(read):
        if selected.opcode == "select" and selected.operands[2] is index:
            sign, moved = selected.operands[:2]
            is_sum = moved.opcode == "add" and moved.operands[0] is index.operands[0]
            if sign in read and is_sum and is_constant(moved.operands[1]):
                place = max(k, read.index(sign) + 1)
                return [*last_at(read, place), *users[len(read) :]]
    return users


def _is_bound(x: Instruction, index: Instruction) -> bool:
    return x.opcode == "compare" and x.operands[0] is index and operation(x) in {"ge", "le"}


def _is_index(x: Instruction) -> bool:
    readers = [v for u in x.users for v in (u.users if u.opcode == "bitcast" else [u])]
    return x.shape.element_type in _OF_INDICES and any(v.opcode in {"gather", "scatter"} for v in readers)


def _dropped_in_front(
    index: Instruction, users: list[Instruction], numbers: Numbers
) -> dict[Instruction, int]:
    """For selects of an `index` how many windows had ahead of them that are gone."""
    selects: dict[Instruction, list[Instruction]] = {}
    for select in users:
        if select.opcode == "select" and sum_of_index(select, select.operands[0], index) in users:
            for reader in select.users:
                selects.setdefault(reader, []).append(select)
    found: dict[Instruction, int] = {}
    for reader, read in selects.items():
        found |= dropped_in_front(read, reader, numbers)
    return found


def _written_again(index: Instruction, users: list[Instruction], uses: Uses) -> list[int]:
    """When the walk met selects that had been written once more: elsewhere, or for another dimension."""
    written: dict[tuple[Instruction, int], int] = {}
    readers: dict[Instruction, int] = {}
    for selected in users:
        if selected.opcode != "select" or not stack_frame(selected) or selected not in index.users:
            continue
        if {selected.operands[0], sum_of_index(selected, selected.operands[0], index)} <= set(users):
            written |= {(selected, 0): 1, (selected, stack_frame(selected)): 1}
            readers |= {reader: uses[selected, reader] for reader in selected.users}
    again: list[int] = []
    for reader in sorted(readers, key=readers.__getitem__):
        frame, place = stack_frame(reader), 0
        for k, operand in enumerate(reader.operands):
            place = max(place, uses[operand, reader])
            times = written.get((operand, frame), 0)
            if (operand, 0) in written and reader.operands[: k + 1].count(operand) > times:
                written[operand, frame] = times + 1
                again.append(place)
    return sorted(again)


def is_sign_of_index(sign: Instruction, index: Instruction) -> bool:
    """Is it the comparison that tells whether the `index` is negative?"""
    return any(sum_of_index(u, sign, index) is not index for u in sign.users)


def sum_of_index(selected: Instruction, sign: Instruction, index: Instruction) -> Instruction:
    """What is selected where the index is negative; `index` itself for another operation."""
    if selected.opcode != "select" or selected.operands[0] is not sign or selected.operands[2] is not index:
        return index
    moved = selected.operands[1]
    return moved if moved.opcode == "add" and moved.operands[0] is index else index
