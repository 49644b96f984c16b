"""The order of the program, of operations that bear its names."""

from __future__ import annotations

import heapq

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.front_end_names import is_hoisted_constant
from hlofuse.pipelines.names import name_before_renaming, stack_frame


def in_program_order(operations: list[Instruction], *, hoisted: bool) -> list[Instruction]:
    """By source line as far as data and numbers allow; constants are in front."""
    place = {x: k for k, x in enumerate(operations)}
    members = set(operations)
    needs = {x: _sources(x, members) for x in operations}
    chains: dict[str, list[Instruction]] = {}
    for x in operations:
        chains.setdefault(name_before_renaming(x).root, []).append(x)
    for chain in chains.values():
        chain.sort(key=lambda x: (name_before_renaming(x).number, place[x]))
        for lower, x in zip(chain, chain[1:], strict=False):
            needs[x].add(lower)
    waiting: dict[Instruction, list[Instruction]] = {}
    for x, sources in needs.items():
        for source in sources:
            waiting.setdefault(source, []).append(x)
    missing = {x: len(sources) for x, sources in needs.items()}
    rank = {x: (not (hoisted and _spreads_constant(x)), stack_frame(x) if hoisted else 0, place[x]) for x in operations}
    ready = [rank[x] for x, count in missing.items() if count == 0]
    heapq.heapify(ready)
    rest = sorted(operations, key=rank.__getitem__, reverse=True)
    order: dict[Instruction, None] = {}
    while len(order) < len(operations):
        if not ready:  # numbers contradict the data
            while rest[-1] in order:
                rest.pop()
            ready = [rank[rest[-1]]]
        x = operations[heapq.heappop(ready)[2]]
        if x in order:
            continue
        order[x] = None
        for user in waiting.get(x, ()):
            missing[user] -= 1
            if missing[user] == 0:
                heapq.heappush(ready, rank[user])
    return list(order)


def _spreads_constant(x: Instruction) -> bool:
    return x.opcode == "constant" or (x.opcode == "broadcast" and x.operands[0].opcode == "constant")


def _sources(x: Instruction, members: set[Instruction]) -> set[Instruction]:
    """Members whose values reach it, others between them or not."""
    found: set[Instruction] = set()
    pending, seen = list(x.operands), set(x.operands)
    while pending:
        source = pending.pop()
        if source in members:
            found.add(source)
            continue
        for operand in source.operands:
            if operand not in seen:
                seen.add(operand)
                pending.append(operand)
    return found
