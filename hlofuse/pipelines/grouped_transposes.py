"""Transposes as they were before TransposeDimensionGrouper put bitcasts around them.

It merges dimensions that stay together (`xla/service/gpu/transforms/transpose_dimension_grouper.cc`), and runs
between the last but one LayoutNormalization and the last: for those before, what now reads an array through a
bitcast was a transpose, which they made anew.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.shadow_graph import Node, ShadowGraph


class GroupedTransposes:
    """Takes the bitcasts in front of transposes out of a shadow graph, and puts them back when asked."""

    def __init__(self, graph: ShadowGraph) -> None:
        self._graph = graph
        self._bitcast_of: dict[Instruction, Instruction] = {}
        for transpose, node in graph.of.items():
            if transpose.opcode == "transpose" and _is_grouped(transpose.operands[0]):
                bitcast = node.operands[0]
                self._bitcast_of[transpose] = transpose.operands[0]
                graph.bypass(bitcast)

    def put_back(self) -> None:
        """Read through the bitcasts from here on."""
        for node in list(self._graph.nodes):
            bitcast = None if node.dead or node.source is None else self._bitcast_of.get(node.source)
            if bitcast is not None:
                self._graph.put_between(
                    node.operands[0], node, Node(bitcast, bitcast.shape.key, [], is_bitcast=True)
                )


def _is_grouped(bitcast: Instruction) -> bool:
    """A bitcast with one user that does nothing but merge dimensions."""
    if bitcast.opcode != "bitcast" or len(bitcast.users) != 1:
        return False
    dimensions = [d for d in bitcast.operands[0].shape.dimensions if d != 1]
    for merged in bitcast.shape.dimensions:
        product = 1
        while product < merged and dimensions:
            product *= dimensions.pop(0)
        if product != merged:
            return False
    return not dimensions
