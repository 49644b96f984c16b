"""Broadcasts that the last simplification before fusion moved behind converts.

In bf16 programs `convert(broadcast(x))` becomes `broadcast(convert(x))`, and where x is a convert itself
the two cancel out. The old broadcast and convert stay in the module unused, which tells that it happened;
values have gained users by it that earlier passes did not see. Mirrors
`AlgebraicSimplifierVisitor::TryToSinkBroadcastAfterOpWithUniqueNonScalarOperand`
(`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) and `SimplifyFPConversions`.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.shadow_graph import Node, ShadowGraph


class SunkBroadcasts:
    """Takes the new broadcasts out of a shadow graph, and puts them in again when asked."""

    def __init__(self, graph: ShadowGraph) -> None:
        self._graph = graph
        self._sunk: dict[Instruction, tuple[Instruction, Instruction, Instruction | None]] = {}
        """Old broadcast to the old convert, the new broadcast, and the new convert if it is still there."""
        new = [x for x in graph.of if x.opcode == "broadcast" and x.users]
        for convert in [x for x in graph.of if x.opcode == "convert" and not x.users and not x.is_root]:
            old = convert.operands[0]
            if old.opcode == "broadcast" and old.users == [convert]:
                match = next((x for x in new if _came_of(x, old, convert)), None)
                if match is not None:
                    new.remove(match)
                    self._undo(old, convert, match)

    def _undo(self, old: Instruction, convert: Instruction, new: Instruction) -> None:
        of = self._graph.of
        kept = new.operands[0] if old.operands[0] in new.operands[0].operands else None
        if kept is not None and kept.users != [new]:
            return
        self._sunk[old] = (convert, new, kept)
        self._graph.replace(of[new], of[convert])

    def sink(self, node: Node) -> None:
        """What the simplifier does when it comes to a broadcast."""
        found = self._sunk.get(node.source) if node.source is not None else None
        if found is None:
            return
        convert, new, kept = found
        user = next((u for u in node.users if u.source is convert), None)
        if user is None:
            return
        inner = self._graph.add(Node(kept, user.shape, [node.operands[0]]))
        outer = self._graph.add(Node(new, user.shape, [inner]))
        self._graph.replace_uses(user, outer)

    def cancel_converts(self) -> None:
        """Converts put in by `sink` and no longer there read what the convert before them read."""
        new = {broadcast for _, broadcast, kept in self._sunk.values() if kept is None}
        for node in list(self._graph.nodes):
            if not node.dead and node.source in new and node.operands[0].source is None:
                self._graph.replace(node.operands[0], node.operands[0].operands[0].operands[0])


def _came_of(new: Instruction, old: Instruction, convert: Instruction) -> bool:
    """`new` may be what became of `old` and its convert."""
    if new.shape.key != convert.shape.key or new.dimensions != old.dimensions:
        return False
    narrow, wide = old.operands[0], new.operands[0]
    return (narrow.opcode == "convert" and narrow.operands[0] is wide) or (
        wide.opcode == "convert" and wide.operands[0] is narrow
    )
