"""What a call within a call gives back in one tuple: all of it stands in front of whoever reads some.

CallInliner (`xla/service/call_inliner.cc`) takes callees first, so that what a function calls is in it when
the function is cloned, in the order of its text. The tuple of results is there too: who reads one of them
comes behind what gives the others.
"""

from __future__ import annotations

from collections.abc import Collection

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import functions_around, outermost_call
from hlofuse.pipelines.likely_ids.chains import chains_of
from hlofuse.pipelines.likely_ids.order_of_pass import agreed
from hlofuse.pipelines.names import name_before_renaming


def with_results_together(inlined: list[Instruction]) -> list[Instruction]:
    """The order of what was `inlined`, with every call that another one held ahead of its first reader.

    Calls of one function that read each other look like one: numbers must agree more than before.
    """
    order, place = inlined, {x: k for k, x in enumerate(inlined)}
    chains = chains_of(order)
    for call in _nested_calls(inlined):
        late = _behind_first_reader(place, call)
        if late is None:
            continue
        first, moved = late
        at = place[first]
        new = {x: (at, k) for k, x in enumerate(moved, -len(moved))}
        # Of what is named otherwise the order stays.
        roots = {name_before_renaming(x).root for x in moved}
        before = [chains[root] for root in roots]
        after = [sorted(chain, key=lambda x: new.get(x) or (place[x], 0)) for chain in before]
        if agreed(after) > agreed(before):
            order = sorted(order, key=lambda x: new.get(x) or (place[x], 0))
            place, chains = {x: k for k, x in enumerate(order)}, chains_of(order)
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


def _behind_first_reader(
    place: dict[Instruction, int], call: set[Instruction]
) -> tuple[Instruction, list[Instruction]] | None:
    """The first to read a result of the `call`, and what that needs but has behind that; None for nothing."""
    results = [x for x in call if not call.issuperset(x.users)]
    if len(results) < 2:
        return None  # no tuple
    readers = (u for x in results for u in x.users if u in place and u not in call)
    first = min(readers, key=place.__getitem__, default=None)
    if first is None:
        return None
    at = place[first]
    needed = _needed({x for x in call if place[x] > at}, place)
    late = sorted((x for x in needed if place[x] > at), key=place.__getitem__)
    return None if not late or first in needed else (first, late)


def _needed(members: set[Instruction], place: Collection[Instruction]) -> set[Instruction]:
    found = {*members}
    pending = [*members]
    while pending:
        new = {o for o in pending.pop().operands if o in place} - found
        found |= new
        pending += new
    return found
