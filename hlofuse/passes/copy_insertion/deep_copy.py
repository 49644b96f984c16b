"""Copies of what an instruction gives, element by element (`HloComputation::DeepCopyInstruction`)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hlofuse.analysis.shape_tree import Index
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import Shape
from hlofuse.passes.common import make


def deep_copy(
    x: Instruction, indices: Collection[Index] | None = None, added: dict[Index, Instruction] | None = None
) -> Instruction:
    """A tuple of copies of the leaves of `x` at `indices` (None: all) and of the others as they are.

    `added` learns of the copies.
    """
    if not x.shape.is_tuple:
        return _leaf(x, (), indices, added)
    levels: list[tuple[Instruction, Index, list[Instruction]]] = [(x, (), [])]
    while True:
        source, index, elements = levels[-1]
        shapes = source.shape.tuple_shapes
        if len(elements) < len(shapes):
            k = len(elements)
            element = make.added(source, "get-tuple-element", shapes[k], [source], index=str(k))
            if element.shape.is_tuple:
                levels.append((element, (*index, k), []))
            else:
                elements.append(_leaf(element, (*index, k), indices, added))
            continue
        levels.pop()
        whole = _tuple(source, elements)
        if not levels:
            return whole
        levels[-1][2].append(whole)


def replace_users(users: Sequence[Instruction], old: Instruction, new: Instruction) -> None:
    """`new` is read where these users read `old`; as a root it takes its place too."""
    for user in users:
        old.replace_use_with(user, new)
    if old.is_root and old.computation is not None:
        old.computation.root = new


def _tuple(source: Instruction, elements: Sequence[Instruction]) -> Instruction:
    return make.added(source, "tuple", Shape.tuple_of([e.shape for e in elements]), elements)


def _leaf(
    leaf: Instruction, index: Index, indices: Collection[Index] | None, added: dict[Index, Instruction] | None
) -> Instruction:
    if not leaf.shape.is_array or (indices is not None and index not in indices):
        return leaf
    copy = make.added(leaf, "copy", leaf.shape, [leaf])
    if added is not None:
        added[index] = copy
    return copy
