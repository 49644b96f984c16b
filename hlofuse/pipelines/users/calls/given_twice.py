"""Elements of an array that the body of a loop is given twice: what it starts with, and what it goes over.

The program takes each of the two out of the array by itself. CallInliner (`xla/service/call_inliner.cc`) puts
the body in the place of its call; HloCSE (`xla/service/hlo_cse.cc`) keeps the one that its walk meets first,
and appends the users of the other.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_called_once
from hlofuse.pipelines.names import stack_frame


def readers_of_second(
    element: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """Those of the `users` that read the second of the two, as another turn of the body tells.

    That reads two values where this one has the `element` twice.
    """
    taken = element.operands[0] if element.opcode == "bitcast" else element
    body = [u for u in users if u.op_name and is_called_once(u)]
    if taken.opcode != "slice" or len(body) < 2:
        return []
    first, *others = sorted(body, key=order.__getitem__)
    return [u for u in others if _read_two_elsewhere(element, first, u)]


def _read_two_elsewhere(element: Instruction, first: Instruction, second: Instruction) -> bool:
    some, others = _turns_of(first), _turns_of(second)
    if len(some) != len(others) or some.index(first) != others.index(second):
        return False
    places = first.operands.index(element), second.operands.index(element)
    return any(
        x.operands[places[0]] is not y.operands[places[1]]
        for x, y in zip(some, others, strict=True)
        if x is not first
    )


def _turns_of(x: Instruction) -> list[Instruction]:
    """The same operation in all turns of the body, the oldest first."""
    assert x.computation is not None
    return _by_operation(x.computation.root)[_operation(x)]


def _operation(x: Instruction) -> Hashable:
    """What tells it in a turn. The body of what is left of the loop is named after that."""
    return (x.op_name or "").replace("/while/body/", "/"), x.opcode, stack_frame(x)


@lru_cache(maxsize=2)  # asked for one computation after the other
def _by_operation(root: Instruction) -> dict[Hashable, list[Instruction]]:
    found: dict[Hashable, list[Instruction]] = {}
    for x in sorted(root.computation or (), key=lambda x: x.id):
        found.setdefault(_operation(x), []).append(x)
    return found
