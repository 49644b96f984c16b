"""Indices that several gathers and scatters read: each had reshaped them for itself."""

from __future__ import annotations

from collections.abc import Hashable

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_of_derivative
from hlofuse.pipelines.names import number_in_name, operation, stack_frame
from hlofuse.pipelines.users.common.extents import extent_of
from hlofuse.pipelines.users.common.holes import without
from hlofuse.pipelines.users.common.visits import Uses

_READERS = frozenset({"gather", "scatter"})


def with_reshapes_of_indices_merged(users: list[Instruction], uses: Uses) -> list[Instruction]:
    """The users of indices, given that each gather and scatter behind a bitcast of theirs had its own.

    GatherSimplifier (`xla/hlo/transforms/simplifiers/gather_simplifier.cc`) and ScatterSimplifier
    (`xla/service/scatter_simplifier.cc`) make a matrix of the indices. HloCSE keeps the reshape that its walk
    meets first; the last user takes the place of each other one.
    """
    listed: list[tuple[Instruction, Instruction]] = []
    gone: list[tuple[Instruction, Instruction]] = []
    for user in users:
        readers = _readers(user)
        listed += ((user, reader) for reader in readers)
        kept = min(readers, key=lambda reader: uses.get((user, reader), 0))
        gone += ((user, reader) for reader in readers if reader is not kept)
    return [user for user, _ in without(listed, gone)]


def _readers(user: Instruction) -> list[Instruction]:
    readers = user.users if user.opcode == "bitcast" else ()
    own = sorted((x for x in readers if x.opcode in _READERS), key=lambda x: x.id)
    return own or [user]


def in_order_of_own_indices(indices: Instruction, users: list[Instruction], uses: Uses) -> list[Instruction]:
    """The users of a bitcast that is the `indices` of several: by what had indices of its own.

    The framework puts a dimension of one behind indices for each place where they are used; the derivative of
    what is written there uses the same, and compares them with the bounds. Where there are more dimensions
    GatherSimplifier and ScatterSimplifier made each reader a matrix of its own. HloCSE keeps the indices that
    its walk meets first and appends the users of others; comparisons among these go in turn.
    """
    readers = [u for u in users if _reads_as_indices(u, indices)]
    is_joined = _is_joined_in_one_place(indices, readers)
    if not (is_joined or indices.opcode == "bitcast") or len(readers) < 2:
        return users
    is_forward = is_joined or indices.operands[0].shape.rank < indices.shape.rank
    first = _forward(readers) if is_forward else {}
    at = {} if is_joined else {stack_frame(r): r for r in readers}
    groups: dict[Instruction, list[Instruction]] = {}
    for user in users:
        reader = user if user in readers else at.get(stack_frame(user), user)
        groups.setdefault(first.get(reader, reader), []).append(user)
    for head, group in groups.items():
        ahead = group[: group.index(head)] if head in group else []
        derivative = next((u for u in ahead if u.opcode == "scatter" and u in first), None)
        if derivative is not None:
            group.remove(head)
            group.insert(group.index(derivative), head)
    met = {head: min(_met(indices, user, uses) for user in group) for head, group in groups.items()}
    behind = _behind_forward(readers, first)
    place = {x: (met[behind.get(x, x)], x in behind, -x.id) for x in groups}
    listed = [groups[x] for x in sorted(groups, key=place.__getitem__)]
    compared = [u for u in listed[0] if u not in readers]
    merged: list[Hashable] = [*listed[0]]
    gone: list[Hashable] = []
    for group in listed[1:]:
        if any(_is_like(u, at[stack_frame(c)]) for c in compared if stack_frame(c) in at for u in group):
            gone += (twins := [(c, group[0]) for c in compared])
            merged += twins
        merged += group
    return [u for u in without(merged, gone) if isinstance(u, Instruction)]


def _is_joined_in_one_place(indices: Instruction, readers: list[Instruction]) -> bool:
    """Were they joined for several gathers that a function mapped over a tree has in one place?"""
    if indices.opcode != "concatenate" or not stack_frame(indices):
        return False
    return all(stack_frame(x) == stack_frame(indices) for x in readers)


def _met(indices: Instruction, user: Instruction, uses: Uses) -> int:
    """When the walk came to this use; to the reader that the indices bear the name of it came first."""
    return -1 if indices.op_name == user.op_name else uses[indices, user]


def _forward(readers: list[Instruction]) -> dict[Instruction, Instruction]:
    """By derivative what it is the derivative of, written in the same place: the last one's comes first.

    One that was made anew may bear the place of what was moved behind it: it has the size of that, alone.
    """
    found: dict[Instruction, Instruction] = {}
    written: dict[Hashable, list[Instruction]] = {}
    for x in sorted(readers, key=lambda x: (is_of_derivative(x), number_in_name(x))):
        into = x.shape if x.opcode == "scatter" else x.operands[0].shape
        width = tuple(sorted(into.dimensions))  # layouts may have put them in another order
        extent = extent_of(x)
        there = written.setdefault((extent and (extent.start, extent.end), width), [])
        if not is_of_derivative(x):
            there.append(x)
        elif there:
            found[x] = there.pop()
    for x in readers:
        if x.opcode == "scatter" and is_of_derivative(x) and not operation(x).startswith(x.opcode):
            left = (r for r in readers if not is_of_derivative(r) and r not in found.values())
            alike = [r for r in left if r.operands[0].shape.element_count == x.shape.element_count]
            if len(alike) == 1:
                found[x] = alike[0]
    return found


def _behind_forward(
    readers: list[Instruction], first: dict[Instruction, Instruction]
) -> dict[Instruction, Instruction]:
    """Derivatives of gathers that CSE made one with older ones, by what had its indices right before theirs.

    Derivatives are taken last ones first: the next one's is of what came right before.
    """
    found: dict[Instruction, Instruction] = {}
    before: Instruction | None = None
    for x in sorted(readers, key=lambda x: -x.id):
        if x in first:
            before = first[x]
        elif before is not None and x.opcode == "scatter" and is_of_derivative(x):
            found[x] = before
    return found


def _is_like(x: Instruction, other: Instruction) -> bool:
    """Is it the same operation, written in the same place?"""
    here, there = extent_of(x), extent_of(other)
    if here is None or there is None or (x.opcode, x.op_name) != (other.opcode, other.op_name):
        return False
    return (here.start, here.end) == (there.start, there.end)


def _reads_as_indices(x: Instruction, indices: Instruction) -> bool:
    return x.opcode in _READERS and indices in x.operands[1:]
