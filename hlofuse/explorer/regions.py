"""A module cut into parts that can be drawn, each of whole kernels.

A person reads no more than a few dozen boxes at a time, and a layout takes time that grows faster than its
boxes. The parts follow the order in which a computation runs; where there is a choice they end where the
framework's scope does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hlofuse.explorer.boxes import Boxes
from hlofuse.explorer.model import Operation, Region

MOST = 64
"""Operations of a region, unless one kernel alone holds more."""
ENOUGH = 32
"""From here on a region ends with its scope."""
FEW = 12
"""So few operations are no region of their own, whatever comes next."""


def regions_of(boxes: Boxes, operations: Sequence[Operation]) -> tuple[Region, ...]:
    """Every operation in its final kernels, the kernels in the order in which they run, nearly."""
    members: dict[int, dict[int, None]] = {}
    for box in range(boxes.count):
        members.setdefault(boxes.ends_as(box), {}).update(dict.fromkeys(boxes.members(box)))
    order = _order(members, boxes, operations)
    by_computation: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
    for box, members_of in sorted(members.items(), key=lambda pair: (order[pair[0]], pair[0])):
        inside = tuple(sorted(members_of))
        computation = operations[inside[-1]].computation if inside else 0
        by_computation.setdefault(computation, []).append((box, inside))
    found: list[Region] = []
    for computation, kernels in sorted(by_computation.items()):
        found += (Region(computation, tuple(part)) for part in _parts(kernels, operations))
    return tuple(found)


def _order(
    members: dict[int, dict[int, None]], boxes: Boxes, operations: Sequence[Operation]
) -> dict[int, int]:
    """A kernel stands at its last operation, an input that is none where it is first read."""
    order = {box: max(members_of, default=box) for box, members_of in members.items()}
    sources = {
        box
        for box, members_of in members.items()
        if members_of and not any(operations[n].operands for n in members_of)
    }
    first: dict[int, int] = {}
    for n, operation in enumerate(operations):
        reader = boxes.ends_as(n)
        if reader not in sources:
            for operand in operation.operands:
                source = boxes.ends_as(operand)
                if source in sources:
                    first[source] = min(first.get(source, order[reader]), order[reader])
    return order | first


def _parts(
    kernels: Iterable[tuple[int, tuple[int, ...]]], operations: Sequence[Operation]
) -> Iterable[list[tuple[int, tuple[int, ...]]]]:
    part: list[tuple[int, tuple[int, ...]]] = []
    size, scope = 0, ""
    for box, inside in kernels:
        here = scope_of(operations[inside[-1]]) if inside else scope
        leaves = bool(here) and here != scope
        if (size > FEW and size + len(inside) > MOST) or (size >= ENOUGH and leaves):
            yield part
            part, size = [], 0
        part.append((box, inside))
        size += max(1, len(inside))
        scope = here or scope
    if part:
        yield part


def scope_of(operation: Operation, depth: int = 4) -> str:
    """The outer scopes of the framework's name, without the operation itself."""
    return "/".join(operation.op_name.split("/")[:-1][:depth])
