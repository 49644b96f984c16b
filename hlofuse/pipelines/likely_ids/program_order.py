"""The order of the program, of operations that bear its names.

Numbers of one root grow in that order. How the roots lie among each other is told by the data, from the end
to the front: what is needed only once stands right before its user, as in a program, where a text that begins
with the operands would have it anywhere.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from itertools import pairwise

from hlofuse.analysis.constants import is_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_chosen_by_loop, is_of_derivative
from hlofuse.pipelines.likely_ids.call_sites import in_order_of_call_sites
from hlofuse.pipelines.likely_ids.found_equal import found_equal, found_later
from hlofuse.pipelines.likely_ids.numbers_of_program import in_order_of_first_use
from hlofuse.pipelines.likely_ids.places_in_source import as_met
from hlofuse.pipelines.likely_ids.ways_back import with_ways_back_behind
from hlofuse.pipelines.names import name_before_renaming, stack_frame


def in_program_order(operations: list[Instruction]) -> list[Instruction]:
    """The operations, given in the order of the text, in that of the program.

    The front end has put its constants in front of everything, each before those that were there.
    """
    place = {x: k for k, x in enumerate(operations)}
    number = {x: name_before_renaming(x).number for x in operations}
    chains: dict[object, list[Instruction]] = {}
    for x in operations:
        chains.setdefault(x if x.opcode == "constant" else name_before_renaming(x).root, []).append(x)
    lower: dict[Instruction, Instruction] = {}
    for chain in chains.values():
        chain.sort(key=lambda x: (-number[x], -place[x]))
        lower.update(pairwise(chain))
    chain_of = {x: k for k, chain in enumerate(chains.values()) for x in chain}
    last_of = [chain[0] for chain in chains.values()]
    """Of those of a chain that are still to come."""
    sources = {x: _sources(x, place) for x in operations}
    for x, needed in sources.items():
        for source in found_equal(x, needed):
            del needed[source]
    for x, source in found_later(sources, chains.values()):
        del sources[x][source]
    unread = dict.fromkeys(operations, 0)
    """How many of its readers are still to come."""
    for needed in sources.values():
        for source in needed:
            unread[source] += 1
    rank = {
        x: (1, -number.get(_constant(x), 0), place[x]) if _is_number(x) else (0, -place[x], 0)
        for x in operations
    }
    heads = {chain[0] for chain in chains.values()}
    of_numbers = {0, *(stack_frame(x) for x in operations if is_constant(x))}
    """Places that were numbered out of turn, as constants are written in front."""
    ready = [(rank[x], place[x]) for x in heads if not unread[x]]
    heapq.heapify(ready)
    backwards: list[Instruction] = []
    needed_once = _needed_once(sources)
    beside: list[Instruction] = []
    """What only one that stands already needs, the latest of which goes first."""

    def latest(found: list[Instruction]) -> Instruction:
        """By the place in the source, if all it takes along is of later places than the others are."""
        told = all(stack_frame(x) not in of_numbers and not is_of_derivative(x) for x in found)
        x = min(found, key=lambda x: (-stack_frame(x) if told else 0, rank[x]))
        others = max((stack_frame(y) for y in found if y is not x), default=0)
        if told and any(stack_frame(y) < others for y in needed_once[x]):
            return min(found, key=rank.__getitem__)
        return x

    while heads:
        at = len(backwards)
        last = sources[backwards[-1]] if backwards else ()
        if near := [x for x in last if not unread[x] and x in heads and not rank[x][0]]:
            x = latest(near)
        elif behind := [
            y for x in last if not unread[x] and not rank[x][0] and not unread[y := last_of[chain_of[x]]]
        ]:  # of what is needed next the numbers say that this came later
            x = min(behind, key=rank.__getitem__)
            if not sources[x]:  # nothing kept it from standing right before its reader
                told = (
                    k
                    for k in range(at, 0, -1)
                    if x in sources[y := backwards[k - 1]] or chain_of[y] == chain_of[x]
                )
                at = next(told, at)
        elif beside and beside[-1] in heads and not unread[beside[-1]]:
            x = beside[-1]
        elif ready:
            x = operations[heapq.heappop(ready)[1]]
            if x not in heads:
                continue
        else:  # a pass has turned the data around
            x = min(heads, key=rank.__getitem__)
        heads.remove(x)
        backwards.insert(at, x)
        unread[x] = -1
        beside += [o for o in needed_once.get(x, ()) if not rank[o][0]]
        while beside and unread[beside[-1]] < 0:
            beside.pop()
        for source in sources[x]:
            unread[source] -= 1
            if unread[source] == 0 and source in heads:
                heapq.heappush(ready, (rank[source], place[source]))
        if x in lower:
            last_of[chain_of[x]] = lower[x]
            heads.add(lower[x])
            if unread[lower[x]] <= 0:
                heapq.heappush(ready, (rank[lower[x]], place[lower[x]]))
    reads = {x: [*sources[x], lower[x]] if x in lower else [*sources[x]] for x in operations}
    order = in_order_of_first_use(backwards[::-1], chains.values(), sources)
    order = in_order_of_call_sites(as_met(order, reads), reads)
    order = with_ways_back_behind(order, reads)
    return _with_choices_last(_with_root_last(order))


def _needed_once(
    sources: Mapping[Instruction, Iterable[Instruction]],
) -> dict[Instruction, list[Instruction]]:
    """What nothing else needs, the root apart: a text has it right in front of that, whenever it was made."""
    readers: dict[Instruction, list[Instruction]] = {}
    for x, needed in sources.items():
        if x.computation is not None and x is not x.computation.root:
            for source in needed:
                readers.setdefault(source, []).append(x)
    found: dict[Instruction, list[Instruction]] = {}
    for x, needed in sources.items():
        found[x] = [source for source in needed if readers.get(source) == [x]]
    return found


def _with_root_last(order: list[Instruction]) -> list[Instruction]:
    """The front end makes the root when all else is there, what nothing reads any more included.

    A loop over a batch is made of one that computes a turn, and then chooses for all that goes around.
    """
    return sorted(order, key=lambda x: (_is_tuple_at_root(x), is_chosen_by_loop(x)))


def _is_tuple_at_root(x: Instruction) -> bool:
    return x.opcode == "tuple" and x.computation is not None and x is x.computation.root


def _with_choices_last(order: list[Instruction]) -> list[Instruction]:
    """What jax.numpy.argmax reduces with compares numbers and places before it chooses either."""
    computation = order[0].computation if order else None
    caller = computation.first_caller if computation is not None else None
    if computation is None or caller is None or caller.opcode != "reduce":
        return order
    root = computation.root
    chosen = root.operands if root.opcode == "tuple" else ()
    if not all(x.opcode == "select" and x.users == [root] for x in chosen):
        return order
    last = {x: k for k, x in enumerate((*chosen, root))}
    return sorted(order, key=lambda x: last.get(x, -1))


def _is_number(x: Instruction) -> bool:
    """Is it written in front? What WhileLoopConstantSinking put into a loop had been given to that."""
    return is_constant(x) and ".sunk" not in _constant(x).name


def _constant(x: Instruction) -> Instruction:
    return x.operands[0] if x.operands else x


def _sources(x: Instruction, members: dict[Instruction, int]) -> dict[Instruction, None]:
    """Members whose values reach it, others between them or not."""
    found: dict[Instruction, None] = {}
    pending, seen = list(x.operands), set(x.operands)
    while pending:
        source = pending.pop()
        if source in members:
            found[source] = None
            continue
        for operand in source.operands:
            if operand not in seen:
                seen.add(operand)
                pending.append(operand)
    return found
