"""Where a value comes from, past everything that only hands it on.

A fusion drawn open has no box of its own: its results come out of boxes inside, its parameters are
the operands outside. Tuples and get-tuple-elements only thread values through; arrows skip them.
"""

from __future__ import annotations

from collections.abc import Container

from hlofuse.ir import Instruction

Leaf = tuple[Instruction, tuple[int, ...]]
"""An instruction and which element of its result."""


def sources(
    value: Instruction, open_fusions: Container[Instruction], keep: Container[Instruction]
) -> list[Leaf]:
    """The instructions that compute `value`, with the element each contributes.

    `keep` are those that have a box although they only thread values (the parameters' elements of a
    loop body, a tuple drawn as the result).
    """
    found: dict[Leaf, None] = {}
    seen: set[Leaf] = set()
    stack: list[Leaf] = [(value, ())]
    while stack:
        leaf = stack.pop()
        if leaf in seen:
            continue
        seen.add(leaf)
        i, path = leaf
        if i in keep:
            found[leaf] = None
        elif i.opcode == "get-tuple-element" and i.operands:
            stack.append((i.operands[0], (i.tuple_index, *path)))
        elif i.opcode == "tuple" and path and path[0] < len(i.operands):
            stack.append((i.operands[path[0]], path[1:]))
        elif i.opcode == "tuple" and not path:
            stack.extend((o, ()) for o in reversed(i.operands))
        elif i in open_fusions:
            stack.append((i.fused_root, path))
        elif i.opcode == "parameter" and (fusion := fusion_around(i)) is not None and fusion in open_fusions:
            if i.parameter_number < len(fusion.operands):
                stack.append((fusion.operands[i.parameter_number], path))
        else:
            found[leaf] = None
    return list(found)


def fusion_around(i: Instruction) -> Instruction | None:
    """The fusion whose inside `i` is part of."""
    return i.computation.fusion if i.computation is not None else None


def leaf_bytes(leaf: Leaf) -> int:
    """The size of the element a leaf names."""
    shape = leaf[0].shape
    for n in leaf[1]:
        if n >= len(shape.tuple_shapes):
            break
        shape = shape.tuple_shapes[n]
    return shape.byte_size
