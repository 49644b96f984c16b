"""Dots as they were before DotDimensionMerger gave them one batch dimension.

It reshapes the operands (`xla/service/gpu/transforms/dot_dimension_merger.cc`) after the first
LayoutNormalization, for which the dots read what now is read through a bitcast.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.shadow_graph import Node, ShadowGraph

_DOTS = frozenset({"custom-call", "dot"})


class MergedBatches:
    """Takes the bitcasts in front of batched dots out of a shadow graph, and puts them back when asked."""

    def __init__(self, graph: ShadowGraph) -> None:
        self._graph = graph
        self._read_through: list[tuple[Node, int, Instruction]] = []
        for node in list(graph.nodes):
            bitcast = node.source
            if node.dead or not node.is_bitcast or bitcast is None or not _merges_batch(bitcast):
                continue
            if node.users and all(u.source is not None and u.source.opcode in _DOTS for u in node.users):
                for user in node.users:
                    self._read_through += [
                        (user, k, bitcast) for k, o in enumerate(user.operands) if o is node
                    ]
                graph.bypass(node)

    def put_back(self) -> None:
        """Read through the bitcasts from here on, each dot through its own."""
        for user, k, bitcast in self._read_through:
            operand = user.operands[k]
            new = self._graph.add(Node(bitcast, bitcast.shape.key, [], is_bitcast=True))
            new.operands, new.users = [operand], [user]
            user.operands[k] = new
            place = operand.users.index(user)
            if operand in user.operands:
                operand.users.insert(place, new)
            else:
                operand.users[place] = new


def _merges_batch(bitcast: Instruction) -> bool:
    """It makes one dimension of the leading ones and leaves the two that are multiplied."""
    before, after = bitcast.operands[0].shape.dimensions, bitcast.shape.dimensions
    return 3 <= len(after) < len(before) and before[-len(after) + 1 :] == after[1:]
