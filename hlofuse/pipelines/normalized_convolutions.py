"""The users of values between convolutions that run in another layout than the program's.

Layout assignment gives all that a convolution reads or feeds the layout the library wants.
LayoutNormalization then makes it anew, row-major, and AlgebraicSimplifier takes the bitcasts in between
away again; what is row-major from the start both leave alone. Until jaxlib 0.4.35 they did so to
everything, three times (`users_order`).
"""

from __future__ import annotations

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.layout_normalization import was_copy
from hlofuse.pipelines.shadow_graph import Node, ShadowGraph
from hlofuse.pipelines.users_order import normalize_layouts, simplify_bitcasts


def restore_convolution_users(computation: Computation) -> frozenset[Instruction]:
    """Put the users of broadcasts among convolutions into XLA's order; which those are."""
    if not any(x.opcode == "custom-call" and x.name.startswith("cudnn-conv") for x in computation):
        return frozenset()
    normalized = {x.shape.dimensions for x in computation if was_copy(x)}
    if not normalized:
        return frozenset()
    graph = ShadowGraph(computation)
    normalize_layouts(graph)
    simplify_bitcasts(graph, broadcasts_anew=True)
    _merge_broadcasts(graph)
    found: set[Instruction] = set()
    for node in graph.nodes:
        x = node.source
        if node.dead or x is None or x.opcode != "broadcast" or x.shape.dimensions not in normalized:
            continue
        users = [u.source for u in node.users if u.source is not None]
        if len(users) == len(x.users) > 1 and set(users) == set(x.users):
            x.users[:] = users
            found.add(x)
    return frozenset(found)


def _merge_broadcasts(graph: ShadowGraph) -> None:
    """`HloCSE`: of the broadcasts that bitcasts became, the one met first stays."""
    nodes: list[Node] = []
    graph.visit(nodes.append)
    kept: dict[Instruction, Node] = {}
    for node in nodes:
        if node.source is not None and node.source.opcode == "broadcast":
            first = kept.setdefault(node.source, node)
            if first is not node:
                graph.replace(node, first)
