"""Reshapes of one value that the program writes several times, or that a pass reshaped again."""

from __future__ import annotations

from collections import defaultdict

from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.pipelines.calls_in_names import is_of_derivative
from hlofuse.pipelines.names import is_of_program, operation, stack_frame
from hlofuse.pipelines.users.common.extents import Extent, extent_of, extent_of_frame, places_of_callers
from hlofuse.pipelines.users.common.holes import without

GonePlaces = dict[tuple[int, int], list[Extent]]
"""Places in the source of which no operation is left, by file and call."""

_PASSED_ON = {"select": 2, "convert": 0, "get-tuple-element": 0, "bitcast": 0}
"""Which operand an operation on a place gives back, maybe counted from the other end or as another type."""


def places_of_gone(module: Module) -> GonePlaces:
    """Those of a `module`; of a reshape, for one, of which layout normalization made a bitcast."""
    tables = module.stack_frames
    left = {stack_frame(x) for c in module.computations for x in c}
    left |= tables.callers()
    found: GonePlaces = defaultdict(list)
    for number in tables.frames:
        extent = extent_of_frame(module, number) if number not in left else None
        if extent is not None:
            found[extent.context].append(extent)
    return found


def with_reshapes_merged(
    producer: Instruction, users: list[Instruction], order: dict[Instruction, int], gone: GonePlaces
) -> list[Instruction]:
    """The users of a value of which HloCSE (`xla/service/hlo_cse.cc`) kept the first of equal reshapes.

    The last user takes the place of each of the others. What is equal is as long in the source.
    AlgebraicSimplifier makes one reshape, which comes last, of the one kept and of one that
    ReduceWindowRewriter (`xla/hlo/transforms/simplifiers/reduce_window_rewriter.cc`) put behind it, and one
    broadcast of that in front of what an operation spreads.
    """
    if not producer.shape.is_array or len(users) < 3:
        return users
    again = [u for u in users if _is_for_scan(u)]
    kept = [u for u in users if u.opcode == "bitcast" and u not in again]
    if not kept:
        kept = [u for u in users if _is_spread_for_each(u)]
        again = [u for u in again if u.shape.rank > producer.shape.rank + 1]  # it has a dimension of one, too
    if len(kept) != 1 or len(again) > 1:
        return users
    listed: list[Instruction | None] = [*users]
    stacked = _stacked_in_front(kept[0], order)
    places = [sum(order[u] <= order[v] for u in users) for v in stacked] or [
        sum(order[u] < order[v] for u in users) for v in _readers_of_others(kept[0], order, gone)
    ]
    for place in sorted(places, reverse=True):
        listed.insert(place, None)
    if again:
        first, own = sorted(map(listed.index, (again[0], kept[0])))
        listed[first] = kept[0]
        del listed[own]
    listed = without(listed, [None for _ in places])
    return [*(u for u in listed if u is not None), *again]


def _is_for_scan(reshape: Instruction) -> bool:
    """Does only a part of a cumulative sum read it?"""
    if reshape.opcode != "bitcast" or reshape.op_name:
        return False
    return bool(reshape.users) and all(u.opcode in {"reduce-window", "pad"} for u in reshape.users)


def _stacked_in_front(kept: Instruction, order: dict[Instruction, int]) -> list[Instruction]:
    """What was computed last in front of each of the others, which are stacked beside the first.

    The framework gives every operand of a stack its new dimension by a reshape.
    """
    found: list[Instruction] = []
    if kept.opcode != "bitcast" or kept.shape.true_dimensions != kept.operands[0].shape.true_dimensions:
        return found
    for stack in kept.users:
        if stack.opcode == "concatenate" and operation(stack) == "stack":
            at = [k for k, o in enumerate(stack.operands) if o is kept]
            found += [max(stack.operands[:k], key=order.__getitem__) for k in at[1:]]
    return found


def _readers_of_others(
    kept: Instruction, order: dict[Instruction, int], gone: GonePlaces
) -> list[Instruction]:
    """The readers that had another reshape than the first, one for each."""
    if kept.opcode == "broadcast":
        return _by_call([kept], order)[1:]
    if kept.users and all(map(_is_spread_for_each, kept.users)) and not _moves_dimensions(kept):
        readers = sorted({v for u in kept.users for v in u.users}, key=order.__getitem__)
        return readers[1:]
    if not _moves_dimensions(kept):
        return _by_call(kept.users, order)[1:]
    again = _windows_written_again(kept, order)
    if again:
        return again
    if operation(kept.operands[0]) == "dot_general":
        return _products(kept, order)[1:]
    by_place: dict[Extent, Instruction] = {}
    for u in sorted(kept.users, key=order.__getitem__):
        here = extent_of(u)
        for place in gone.get(here.context, ()) if here is not None else ():
            if here is not None and _is_about(here, place):
                by_place.setdefault(place, u)
    lengths = defaultdict(list)
    for place in sorted(by_place, key=lambda p: p.start):
        if place.start[0] == place.end[0]:
            lengths[place.end[1] - place.start[1]].append(by_place[place])
    return [u for of_length in lengths.values() for u in of_length[1:]]


def _by_call(spread: list[Instruction], order: dict[Instruction, int]) -> list[Instruction]:
    """The first reader for each call of a function in which operations spread the value themselves."""
    if any(u.opcode != "broadcast" or operation(u) in {"broadcast_in_dim", "dot_general"} for u in spread):
        return []
    readers = {v for u in spread for v in u.users if operation(v) == operation(u) and not is_of_derivative(v)}
    first: dict[int, Instruction] = {}
    for v in sorted(readers, key=order.__getitem__):
        first.setdefault(stack_frame(v), v)
    return list(first.values())


def _windows_written_again(reshape: Instruction, order: dict[Instruction, int]) -> list[Instruction]:
    """All but the first windows of the value that start at one place in it, in further calls of a function.

    It searches the value for that place itself, as for the largest element, which is in one dimension.
    """
    (value,) = reshape.operands
    searches = {u for u in reshape.users if u.opcode == "reduce" and u.shape.is_tuple}
    again: list[Instruction] = []
    seen: set[int] = set()
    for u in sorted(value.users, key=order.__getitem__):
        search = _searched(u.operands[-1]) if u.opcode in {"dynamic-slice", "dynamic-update-slice"} else None
        if search not in searches or search is None:
            continue
        if stack_frame(u) in seen and _is_called_beside(search, u):
            again.append(u)
        seen.add(stack_frame(u))
    return again


def _searched(start: Instruction) -> Instruction | None:
    """The search of which the place is the `start`, counted from the end where that is negative."""
    while start.opcode in _PASSED_ON:
        start = start.operands[_PASSED_ON[start.opcode]]
    return start if start.opcode == "reduce" else None


def _is_called_beside(search: Instruction, u: Instruction) -> bool:
    """Is it called in the same call of the same function that `u` is in?"""
    here = extent_of(u)
    places = (extent_of(search), *places_of_callers(search))
    return here is not None and any(p is not None and p.context == here.context for p in places)


def _products(reshape: Instruction, order: dict[Instruction, int]) -> list[Instruction]:
    """What was multiplied by the vector of a matrix product, spread, that the `reshape` is of.

    Each was reshaped for that, and ReshapeMover (`xla/hlo/transforms/simplifiers/reshape_mover.cc`) put a
    reshape of its own behind the vector instead.
    """
    vector = reshape.operands[0]
    if vector.opcode != "broadcast":
        return []
    readers = [v for u in reshape.users for v in (u.users if u.opcode == "transpose" else [u])]
    found = [u for u in readers if u.opcode == "multiply" and operation(u) == "dot_general"]
    return sorted(dict.fromkeys(found), key=order.__getitem__)


def _is_spread_for_each(x: Instruction) -> bool:
    """Did an operation spread its operand itself? It drops the dimensions of one first, and so does each.

    Where the program reshaped that to have them, it is that reshape which they read, the only one.
    """
    return x.opcode == "broadcast" and is_of_program(x) and operation(x) != "broadcast_in_dim"


def _is_about(here: Extent, place: Extent) -> bool:
    return here.encloses(place) or here.start[0] == place.start[0]


def _moves_dimensions(reshape: Instruction) -> bool:
    before, after = (s.true_dimensions for s in (reshape.operands[0].shape, reshape.shape))
    return before != after and sorted(before) != sorted(after)
