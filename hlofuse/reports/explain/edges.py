"""Which edges of a module end up inside kernels: what a decision comes to, however it was taken."""

from __future__ import annotations

from typing import TypeAlias

from hlofuse.analysis.bitcasts import without_bitcasts
from hlofuse.reports.explain.facts import Facts

EdgeNames: TypeAlias = tuple[str, str]
"""Producer and consumer in the input."""

_FREE = frozenset({"bitcast", "constant"})


def edges_inside(facts: Facts) -> set[EdgeNames]:
    """Edges between operations of the input, bitcasts passed over, that one kernel holds both ends of."""
    homes: dict[str, set[str]] = {}
    for kernel in facts.launched_after:
        for member in facts.lineage.members(kernel):
            homes.setdefault(member, set()).add(kernel)
    edges = set()
    for consumer in facts.before.values():
        mine = homes.get(consumer.name)
        if mine is None or consumer.opcode in _FREE:
            continue
        for operand in map(without_bitcasts, consumer.operands):
            if operand.opcode not in _FREE and mine & homes.get(operand.name, set()):
                edges.add((operand.name, consumer.name))
    return edges
