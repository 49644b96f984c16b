"""Triton's matrix products as the operations they were made of.

GemmFusion (`xla/service/gpu/transforms/gemm_fusion.cc`) takes bitcasts, transposes and converts around a dot
into a fusion after the first LayoutNormalization: that one saw them as users of what the fusion reads now.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.shadow_graph import Node, ShadowGraph


class ExpandedGemms:
    """Takes Triton's matrix products of a shadow graph apart, and puts them together when asked."""

    def __init__(self, graph: ShadowGraph) -> None:
        self._graph = graph
        self._fusions = [x for x in graph.of if _is_triton_gemm(x)]
        for fusion in self._fusions:
            self._expand(graph.of[fusion])

    def _expand(self, node: Node) -> None:
        fusion = node.source
        assert fusion is not None
        inside: dict[Instruction, Node] = {}
        place = {o: o.users.index(node) for o in node.operands}
        for operand in place:
            operand.users.remove(node)
        for x in fusion.fused_computation.post_order():
            if x.opcode == "parameter":
                inside[x] = node.operands[int(x.parameter_number or 0)]
                continue
            operands = [inside[o] for o in x.operands]
            same = _same_bitcast(x, operands)
            if same is None:
                same = self._graph.add(Node(x, x.shape.key, operands, is_bitcast=x.opcode == "bitcast"))
                for operand in set(operands) & place.keys():
                    # It stands where the fusion stood.
                    operand.users.remove(same)
                    operand.users.insert(place[operand], same)
            inside[x] = same
        self._graph.replace_uses(node, inside[fusion.fused_computation.root])
        node.dead, node.operands = True, []

    def put_together(self) -> None:
        """Make fusions of them, in the order of the walk."""
        nodes: dict[Instruction | None, list[Node]] = {}
        for node in self._graph.nodes if self._fusions else ():
            nodes.setdefault(node.source, []).append(node)

        def alive(source: Instruction) -> Node | None:
            return next((n for n in nodes.get(source, ()) if not n.dead), None)

        for fusion in self._fusions:
            root = alive(fusion.fused_computation.root)
            if root is None:
                continue
            read = _boundary(root, set(fusion.operands))
            operands = [read.get(o) or alive(o) for o in fusion.operands]
            made = self._graph.add(Node(fusion, fusion.shape.key, [o for o in operands if o is not None]))
            nodes.setdefault(fusion, []).append(made)
            self._graph.replace(root, made)


def _is_triton_gemm(x: Instruction) -> bool:
    return x.fusion_kind == "kCustom" and '"__triton_gemm"' in (x.attributes.raw("backend_config") or "")


def _same_bitcast(x: Instruction, operands: list[Node]) -> Node | None:
    """The bitcast outside that CSE had made one with this one."""
    if x.opcode != "bitcast":
        return None
    return next((u for u in operands[0].users if u.is_bitcast and u.shape == x.shape.key), None)


def _boundary(root: Node, outside: set[Instruction]) -> dict[Instruction, Node]:
    """What a fusion rooted at `root` reads, by what it was."""
    found: dict[Instruction, Node] = {}
    stack, seen = [root], {root}
    while stack:
        for operand in stack.pop().operands:
            if operand.source in outside:
                found.setdefault(operand.source, operand)
            elif operand not in seen:
                seen.add(operand)
                stack.append(operand)
    return found
