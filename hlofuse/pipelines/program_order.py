"""The order of the program, of operations that bear its names."""

from __future__ import annotations

import heapq

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import name_before_renaming, stack_frame


def in_program_order(operations: list[Instruction], *, hoisted: bool) -> list[Instruction]:
    """What has one root by its numbers; of different roots by source line, as far as data allow.

    Constants are in front if `hoisted`. A place in the source means nothing across calls.
    """
    place = {x: k for k, x in enumerate(operations)}
    chains: dict[object, list[Instruction]] = {}
    for x in operations:
        chains.setdefault(x if x.opcode == "constant" else name_before_renaming(x).root, []).append(x)
    behind: dict[Instruction, Instruction] = {}
    for chain in chains.values():
        chain.sort(key=lambda x: (-name_before_renaming(x).number, -place[x]))
        behind.update(zip(chain, chain[1:], strict=False))
    sources = {x: _sources(x, place) for x in operations}
    missing = dict.fromkeys(operations, 0)
    for needed in sources.values():
        for source in needed:
            missing[source] += 1
    rank = {
        # Every constant was put in front of those that were there.
        x: (1, -name_before_renaming(x if x.opcode == "constant" else x.operands[0]).number, place[x])
        if hoisted and _spreads_constant(x)
        else (0, 0, -place[x])
        for x in operations
    }
    heads = {chain[0] for chain in chains.values()}
    ready = [(rank[x], place[x]) for x in heads if not missing[x]]
    heapq.heapify(ready)
    order: list[Instruction] = []
    while heads:
        recent = [u for u in sources[order[-1]] if not missing[u] and u in heads and not rank[u][0]] if order else []
        if recent:
            x = min(recent, key=rank.__getitem__)
        elif ready:
            x = operations[heapq.heappop(ready)[1]]
            if missing[x] < 0:
                continue
        else:  # a pass has turned the data around
            x = min(heads, key=rank.__getitem__)
        heads.remove(x)
        order.append(x)
        missing[x] = -1
        for user in sources[x]:
            missing[user] -= 1
            if missing[user] == 0 and user in heads:
                heapq.heappush(ready, (rank[user], place[user]))
        if x in behind:
            head = behind[x]
            heads.add(head)
            if missing[head] <= 0:
                heapq.heappush(ready, (rank[head], place[head]))
    order.reverse()
    return order


def _spreads_constant(x: Instruction) -> bool:
    return x.opcode == "constant" or (x.opcode == "broadcast" and x.operands[0].opcode == "constant")


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
