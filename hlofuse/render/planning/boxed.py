"""What is drawn as a box of its own, and what only threads values to another."""

from collections.abc import Iterable

from hlofuse.ir import Computation, Instruction

# Bookkeeping that is drawn, if at all, as part of the arrows or of another box.
_THREADS = frozenset({"get-tuple-element", "constant", "tuple"})


def units(computation: Computation) -> list[Instruction]:
    """The instructions that get a box, or a share in one, operands first."""
    return [i for i in computation.post_order() if has_box(i)]


def has_box(i: Instruction) -> bool:
    """True for what is drawn as itself: not for what only threads values, nor for numbers."""
    if i.opcode == "constant":
        return i.is_root or not i.shape.is_effective_scalar
    return i.opcode not in _THREADS


def inner_boxes(fusion: Instruction) -> int:
    """How many boxes the inside of a fusion takes."""
    return sum(i.opcode not in ("parameter", "constant", "tuple") for i in fusion.fused_computation)


def drawn(neighbours: Iterable[Instruction], up: bool) -> list[Instruction]:
    """`neighbours`, with what has no box of its own replaced by what lies behind it."""
    found: dict[Instruction, None] = {}
    stack = list(neighbours)[::-1]
    while stack:
        i = stack.pop()
        if has_box(i):
            found[i] = None
        elif up and i.opcode == "get-tuple-element" and i.operands[0].opcode == "tuple":
            stack += i.operands[0].operands[i.tuple_index : i.tuple_index + 1]
        else:
            stack.extend(reversed(i.operands if up else i.users))
    return list(found)
