"""Transposes as they were before TransposeDimensionGrouper put bitcasts around them.

It merges dimensions that stay together (`xla/service/gpu/transforms/transpose_dimension_grouper.cc`), and runs
between the last but one LayoutNormalization and the last: for those before, what now reads an array through a
bitcast was a transpose, which they made anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.shadow_graph import Node, ShadowGraph


class GroupedTransposes:
    """Takes the bitcasts in front of transposes out of a shadow graph, and puts them back when asked."""

    def __init__(self, graph: ShadowGraph) -> None:
        self._graph = graph
        self._bitcast_of: dict[Instruction, Instruction] = {}
        place = {node: k for k, node in enumerate(graph.nodes)}
        for transpose, node in graph.of.items():
            bitcast = transpose.operands[0] if transpose.opcode == "transpose" else None
            if bitcast is None or bitcast.opcode != "bitcast" or len(bitcast.users) != 1:
                continue
            array = bitcast.operands[0]
            finer = [array, *(u for u in array.users if u is not bitcast and u.opcode == "bitcast")]
            read = next((x for x in finer if _merges(x.shape.dimensions, bitcast.shape.dimensions)), None)
            if read is not None:
                self._bitcast_of[transpose] = bitcast
                graph.bypass(graph.of[bitcast])
                if read is not array:
                    graph.of[array].give_user(node, graph.of[read])
                    graph.of[read].users.sort(key=place.__getitem__)

    def put_back(self) -> None:
        """Read through the bitcasts from here on."""
        for node in list(self._graph.nodes):
            bitcast = None if node.dead or node.source is None else self._bitcast_of.get(node.source)
            if bitcast is not None:
                self._graph.put_between(
                    node.operands[0], node, Node(bitcast, bitcast.shape.key, [], is_bitcast=True)
                )


def _merges(dimensions: Sequence[int], merged: Sequence[int]) -> bool:
    """Every one of `merged` is a product of neighbours among `dimensions`."""
    rest = [d for d in dimensions if d != 1]
    for product in merged:
        found = 1
        while found < product and rest:
            found *= rest.pop(0)
        if found != product:
            return False
    return not rest
