"""The order of the program, of operations that bear its names.

Numbers of one stem grow in that order. How the stems lie among each other follows from the data, from the end
to the front: what is needed only once stands right before its user, as in a program, where a text that begins
with the operands would have it anywhere.
"""

import heapq
from collections.abc import Iterable, Mapping
from itertools import pairwise

from hlofuse.analysis.elementwise import is_constant
from hlofuse.ir.graph import Instruction
from hlofuse.order.names import is_of_derivative, name_before_renaming, stack_frame


def in_program_order(operations: list[Instruction]) -> list[Instruction]:
    """The operations, given in the order of the text, in that of the program.

    The front end has put its constants in front of everything, each before those that were there.
    """
    place = {x: k for k, x in enumerate(operations)}
    number = {x: name_before_renaming(x).number for x in operations}
    chains: dict[object, list[Instruction]] = {}
    for x in operations:
        chains.setdefault(x if x.opcode == "constant" else name_before_renaming(x).stem, []).append(x)
    lower: dict[Instruction, Instruction] = {}
    for chain in chains.values():
        chain.sort(key=lambda x: (-number[x], -place[x]))
        lower.update(pairwise(chain))
    chain_of = {x: k for k, chain in enumerate(chains.values()) for x in chain}
    last_of = [chain[0] for chain in chains.values()]
    """The last one of each chain that is still to come."""
    sources = {x: _sources(x, place) for x in operations}
    for x, needed in sources.items():
        for y in [y for y in needed if chain_of[y] == chain_of[x] and number[y] > number[x]]:
            del needed[y]  # the program has it after its reader: CSE kept the later of two equal ones
    unread = dict.fromkeys(operations, 0)
    """The number of readers that are still to come."""
    for needed in sources.values():
        for source in needed:
            unread[source] += 1
    rank = {
        x: (1, -number.get(_constant(x), 0), place[x]) if _is_in_front(x) else (0, -place[x], 0)
        for x in operations
    }
    heads = {chain[0] for chain in chains.values()}
    of_constants = {0, *(stack_frame(x) for x in operations if is_constant(x))}
    """Places in the source that were numbered early, as constants are written in front."""
    ready = [(rank[x], place[x]) for x in heads if not unread[x]]
    heapq.heapify(ready)
    backwards: list[Instruction] = []
    needed_once = _needed_once(sources)
    pending: list[Instruction] = []
    """What only one that is placed already needs, the latest of which goes first."""

    def latest(found: list[Instruction]) -> Instruction:
        """The one of the latest place in the source, if all that it needs comes later than the others."""
        reported = all(stack_frame(x) not in of_constants and not is_of_derivative(x) for x in found)
        x = min(found, key=lambda x: (-stack_frame(x) if reported else 0, rank[x]))
        others = max((stack_frame(y) for y in found if y is not x), default=0)
        if reported and any(stack_frame(y) < others for y in needed_once[x]):
            return min(found, key=rank.__getitem__)
        return x

    while heads:
        at = len(backwards)
        last = sources[backwards[-1]] if backwards else ()
        if near := [x for x in last if not unread[x] and x in heads and not rank[x][0]]:
            x = latest(near)
        elif later := [
            y for x in last if not unread[x] and not rank[x][0] and not unread[y := last_of[chain_of[x]]]
        ]:  # numbers say that this came later than what is needed next
            x = min(later, key=rank.__getitem__)
            if not sources[x]:  # nothing kept it from standing right before its reader
                reported = (
                    k
                    for k in range(at, 0, -1)
                    if x in sources[y := backwards[k - 1]] or chain_of[y] == chain_of[x]
                )
                at = next(reported, at)
        elif pending and pending[-1] in heads and not unread[pending[-1]]:
            x = pending[-1]
        elif ready:
            x = operations[heapq.heappop(ready)[1]]
            if x not in heads:
                continue
        else:  # a pass has turned the data around
            x = min(heads, key=rank.__getitem__)
        heads.remove(x)
        backwards.insert(at, x)
        unread[x] = -1
        pending += [o for o in needed_once.get(x, ()) if not rank[o][0]]
        while pending and unread[pending[-1]] < 0:
            pending.pop()
        for source in sources[x]:
            unread[source] -= 1
            if unread[source] == 0 and source in heads:
                heapq.heappush(ready, (rank[source], place[source]))
        if x in lower:
            last_of[chain_of[x]] = lower[x]
            heads.add(lower[x])
            if unread[lower[x]] <= 0:
                heapq.heappush(ready, (rank[lower[x]], place[lower[x]]))
    backwards.reverse()
    return sorted(backwards, key=_is_tuple_at_root)


def _needed_once(
    sources: Mapping[Instruction, Iterable[Instruction]],
) -> dict[Instruction, list[Instruction]]:
    """What nothing else needs, the root apart: a text has it right before that, whenever it was made."""
    readers: dict[Instruction, list[Instruction]] = {}
    for x, needed in sources.items():
        if x.computation is not None and x is not x.computation.root:
            for source in needed:
                readers.setdefault(source, []).append(x)
    return {x: [source for source in needed if readers.get(source) == [x]] for x, needed in sources.items()}


def _is_tuple_at_root(x: Instruction) -> bool:
    """The front end makes the root when all else is there, what nothing reads any more included."""
    return x.opcode == "tuple" and x.computation is not None and x is x.computation.root


def _is_in_front(x: Instruction) -> bool:
    """True if it is a constant in front; WhileLoopConstantSinking put others into loops."""
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
