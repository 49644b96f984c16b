"""LayoutNormalization (`xla/service/layout_normalization.cc`), played on a shadow of the graph."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.shadow_graph import Node, ShadowGraph
from hlofuse.pipelines.users.common.copies import was_copy
from hlofuse.pipelines.users.layouts.copied_results import Element
from hlofuse.pipelines.users.layouts.other_layouts import is_of_product
from hlofuse.pipelines.users.layouts.transposed_in_place import read_transposed, was_transposed_in_place

ROW_MAJOR, OTHER = 0, 1
"""The two shapes of a node."""


class Normalization:
    """`LayoutNormalizationVisitor`."""

    def __init__(
        self,
        graph: ShadowGraph,
        anew: frozenset[Instruction],
        other: frozenset[Instruction],
        copied: frozenset[Instruction],
        converts: frozenset[Node],
        widened: frozenset[Node],
        of_convolutions: frozenset[Instruction],
    ) -> None:
        self._graph = graph
        self._anew = anew
        self._other = other
        self._copied = copied
        self._converts = converts
        self._widened = widened
        self._of_convolutions = of_convolutions
        self._transposes: set[Node] = set()
        """Those of the program that move nothing: what reads them was made anew, what they read was not."""
        self.anew_of: dict[Node, Node] = {}
        """By convert that was `widened`, the one made anew."""

    def run(self) -> None:
        for node in self._graph.nodes:
            told = node.value if isinstance(node, Element) else node
            is_other = told.source in self._other or node in self._widened
            node.shape = OTHER if is_other else ROW_MAJOR
        for x in self._other - self._anew:
            if readers := read_transposed(x, self._anew):
                self._put_transpose_behind(self._graph.of[x], [self._graph.of[u] for u in readers])
        self._graph.visit(self._handle)

    def _put_transpose_behind(self, node: Node, readers: list[Node]) -> None:
        """The `readers` read the `node`, row-major, through a transpose in the place of their first.

        Reductions read that as well, until AlgebraicSimplifier had them read the node itself (`HandleReduce`,
        `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`): they were appended.
        """
        readers = [reader for reader in readers if reader in node.users]
        node.shape = ROW_MAJOR
        if not readers:
            return
        transpose = self._graph.add(Node(None, OTHER, []))
        self._transposes.add(transpose)
        place = min(k for k, u in enumerate(node.users) if u in readers or _is_reduced(u))
        node.users.insert(place, transpose)
        node.users = [u for u in node.users if u not in readers]
        transpose.operands, transpose.users = [node], readers
        for reader in readers:
            reader.operands = [transpose if o is node else o for o in reader.operands]

    def _handle(self, node: Node) -> None:
        source = node.source
        graph = self._graph
        if node in self._transposes:
            graph.replace(node, graph.add(Node(None, OTHER, list(node.operands), is_bitcast=True)))
            return
        if not self._is_made_anew(node):
            if source is not None and is_of_product(source):
                self._read_row_major(node)
            if node in self._converts:  # what reads it is made anew
                for operand in filter(is_shadow, node.operands):
                    operand.give_user(node, operand.operands[0])
            if node.shape != OTHER:
                return
            if source in self._of_convolutions:
                node = self._made_anew_in_tuple(node)
            if source is not None and was_transposed_in_place(source):
                node.shape = ROW_MAJOR
                graph.put_behind(node, Node(None, OTHER, [], is_bitcast=True))
            else:
                graph.put_bitcasts_behind(node, ROW_MAJOR)
            return
        operands = [o.operands[0] if is_shadow(o) else o for o in node.operands]
        made = graph.add(Node(source, ROW_MAJOR, operands))
        graph.visited.add(made)
        if node in self._widened:
            self.anew_of[node] = made
        graph.replace(node, graph.add(Node(None, OTHER, [made], is_bitcast=True)) if node.shape else made)

    def _is_made_anew(self, node: Node) -> bool:
        """Was it? ScatterSimplifier (`xla/service/scatter_simplifier.cc`) made scatters again since.

        One that is copied to the other layout had another.
        """
        x = node.source
        if x is None or x.opcode != "scatter":
            return node in self._widened or x in self._anew
        return not any(map(was_copy, x.users))

    def _made_anew_in_tuple(self, result: Node) -> Node:
        """The bitcast back behind the `result` of a convolution, which was made anew, row-major.

        A tuple has it, of which the old element is taken (`UpdateLayoutForCudnnConvolution`,
        `xla/service/gpu/conv_layout_normalization.cc`).
        """
        result.shape = ROW_MAJOR
        back = Node(None, OTHER, [], is_bitcast=True)
        self._graph.put_behind(result, back)
        self._graph.visited.add(back)
        return back

    def _read_row_major(self, node: Node) -> None:
        """A matrix product reads a transpose of what it is given, which moves nothing."""
        for operand in dict.fromkeys(filter(is_shadow, node.operands)):
            if operand.operands[0].source in self._copied:
                operand.give_user(node, operand.operands[0])


def _is_reduced(node: Node) -> bool:
    """Is it a reduction, or what ReductionDimensionGrouper made for one to read?"""
    readers = node.users if node.is_bitcast else [node]
    return bool(readers) and all(u.source is not None and u.source.opcode == "reduce" for u in readers)


def is_shadow(node: Node) -> bool:
    """A bitcast that the normalization put in."""
    return node.source is None and node.is_bitcast
