"""Transposes as they were before TransposeDimensionGrouper put bitcasts around them.

It merges dimensions that stay together (`xla/service/gpu/transforms/transpose_dimension_grouper.cc`), and
runs between the last but one LayoutNormalization and the last: for those before, what now reads an array
through a bitcast was a transpose, which they made anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.shadow_graph import Node, ShadowGraph


class GroupedTransposes:
    """Takes the bitcasts around transposes out of a shadow graph, and puts them back when asked."""

    def __init__(self, graph: ShadowGraph) -> None:
        self._graph = graph
        self._in_front: dict[Instruction, Instruction] = {}
        self._behind: dict[Instruction, Instruction] = {}
        place = {node: k for k, node in enumerate(graph.nodes)}
        for transpose, node in graph.of.items():
            bitcast = transpose.operands[0] if transpose.opcode == "transpose" else None
            if bitcast is None or bitcast.opcode != "bitcast" or len(bitcast.users) != 1:
                continue
            array = bitcast.operands[0]
            finer = [array, *(u for u in array.users if u is not bitcast and u.opcode == "bitcast")]
            for read in finer:
                groups = _groups(read.shape.dimensions, bitcast.shape.dimensions)
                if groups is not None:
                    break
            else:
                continue
            self._in_front[transpose] = bitcast
            graph.bypass(graph.of[bitcast])
            if read is not array:
                # Which of the bitcasts was there first is not known; they were one.
                graph.of[array].give_user(node, graph.of[read])
                graph.of[read].users.sort(key=place.__getitem__)
            after = transpose.users[0] if len(transpose.users) == 1 else None
            moved = [d for k in transpose.dimensions for d in groups[k]]
            if (
                after is not None
                and after.opcode == "bitcast"
                and not after.is_root
                and moved == after.shape.true_dimensions
            ):
                self._behind[transpose] = after
                graph.bypass(graph.of[after])

    def put_back(self) -> None:
        """Read and be read through the bitcasts from here on."""
        for node in list(self._graph.nodes):
            if node.dead or node.source is None or node.is_bitcast:
                continue
            bitcast = self._in_front.get(node.source)
            if bitcast is not None:
                self._graph.put_in_front(node, Node(bitcast, bitcast.shape.key, [], is_bitcast=True))
            bitcast = self._behind.get(node.source)
            if bitcast is not None:
                self._graph.put_behind(node, Node(bitcast, bitcast.shape.key, [], is_bitcast=True))


def _groups(dimensions: Sequence[int], merged: Sequence[int]) -> list[list[int]] | None:
    """The neighbours among `dimensions` that each of `merged` is the product of; None if one is not."""
    rest = [d for d in dimensions if d != 1]
    groups: list[list[int]] = []
    for product in merged:
        group: list[int] = []
        found = 1
        while found < product and rest:
            group.append(rest.pop(0))
            found *= group[-1]
        if found != product:
            return None
        groups.append(group)
    return None if rest else groups
