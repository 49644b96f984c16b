"""What a call within a call gives back in one tuple: all of it stands in front of whoever reads some.

CallInliner (`xla/service/call_inliner.cc`) takes callees first, so that what a function calls is in it when
the function is cloned, in the order of its text. The tuple of results is there too: who reads one of them
comes behind what gives the others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import functions_around, outermost_call


def with_results_together(
    inlined: list[Instruction], agreed: Callable[[list[Instruction]], int]
) -> list[Instruction]:
    """The order of what was `inlined`, with every call that another one held ahead of its first reader.

    Calls of one function that read each other look like one: numbers must agree more than before.
    """
    order = inlined
    for call in _nested_calls(inlined):
        together = _ahead_of_first_reader(order, call)
        if agreed(together) > agreed(order):
            order = together
    return order


def _nested_calls(inlined: list[Instruction]) -> list[set[Instruction]]:
    """The operations of each call within another one, innermost first; what is connected is one call."""
    paths: dict[str, set[Instruction]] = {}
    for x in inlined:
        outermost = outermost_call(x)
        for path, _ in functions_around(x.op_name or ""):
            if outermost and path.startswith(f"{outermost}/"):
                paths.setdefault(path, set()).add(x)
    found: list[set[Instruction]] = []
    for path in sorted(paths, key=lambda path: -path.count("/")):
        rest = paths[path]
        for start in [x for x in inlined if x in rest]:
            if start in rest:
                found.append(_connected(start, rest))
                rest -= found[-1]
    return found


def _connected(start: Instruction, members: Collection[Instruction]) -> set[Instruction]:
    found = {start}
    pending = [start]
    while pending:
        x = pending.pop()
        near = {y for y in (*x.operands, *x.users) if y in members} - found
        found |= near
        pending += near
    return found


def _ahead_of_first_reader(order: list[Instruction], call: set[Instruction]) -> list[Instruction]:
    results = [x for x in order if x in call and not call.issuperset(x.users)]
    if len(results) < 2:
        return order  # no tuple
    place = {x: k for k, x in enumerate(order)}
    readers = (u for x in results for u in x.users if u in place and u not in call)
    first = min(readers, key=place.__getitem__, default=None)
    if first is None:
        return order
    needed = _needed({x for x in call if place[x] > place[first]}, place)
    late = [x for x in order if x in needed and place[x] > place[first]]
    if not late or first in needed:
        return order
    moved = {*late}
    at = place[first]
    return [*order[:at], *late, *(x for x in order[at:] if x not in moved)]


def _needed(members: set[Instruction], place: Collection[Instruction]) -> set[Instruction]:
    found = {*members}
    pending = [*members]
    while pending:
        new = {o for o in pending.pop().operands if o in place} - found
        found |= new
        pending += new
    return found
