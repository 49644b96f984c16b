"""The order in which a front end made the operations of a module, from their names.

The text of a module before optimizations is in an order of XLA's printer. A name that was taken got the next
number of its stem's count (`xla/service/name_uniquer.cc`), so that those with the same stem tell their order.
"""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from itertools import pairwise

from hlofuse.inputs.unread_elements import restore_unread_elements
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.unique_ids import UniqueIds

_NUMBERED = re.compile(r"(.*)\.(\d+)")


def in_creation_order(module: Module, ids: UniqueIds | None) -> None:
    """Put the operations of a module before optimizations in the order of ids, or else of their names, with
    all that the front end made."""
    restore_unread_elements(module, ids)
    if ids is not None:
        ids.apply(module)
    else:
        in_named_order(module)


def in_named_order(module: Module) -> None:
    """Put the operations in the order of their numbers, operands first; what the names contradict stays."""
    for computation in module.computations:
        order = _ordered(computation)
        if order is not None:
            computation.reorder(order)


def _ordered(computation: Computation) -> list[Instruction] | None:
    """As early as possible in the text's order among what may come next; None if there is no such order."""
    after: dict[Instruction, list[Instruction]] = defaultdict(list)
    waits: dict[Instruction, int] = defaultdict(int)
    series: dict[str, list[tuple[int, Instruction]]] = defaultdict(list)
    place = {}
    for k, i in enumerate(computation):
        place[i] = k
        found = _NUMBERED.fullmatch(i.name)
        stem, number = (found[1], int(found[2])) if found else (i.name, 0)
        series[stem].append((number, i))
        for before in (*i.operands, *i.control_predecessors):
            after[before].append(i)
            waits[i] += 1
    for named in series.values():
        named.sort(key=lambda pair: pair[0])
        for (_, a), (_, b) in pairwise(named):
            after[a].append(b)
            waits[b] += 1
    ready = [(k, i) for i, k in place.items() if not waits[i]]
    out = []
    while ready:
        _, i = heapq.heappop(ready)
        out.append(i)
        for j in after[i]:
            waits[j] -= 1
            if not waits[j]:
                heapq.heappush(ready, (place[j], j))
    return out if len(out) == len(place) else None
