"""What becomes of the bitcasts that LayoutNormalization put in, played on the same shadow of the graph.

AlgebraicSimplifier, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`, and HloCSE.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.shadow_graph import Node, ShadowGraph
from hlofuse.pipelines.users.common.grouping import is_grouped
from hlofuse.pipelines.users.common.holes import last_in_front
from hlofuse.pipelines.users.common.visits import Uses
from hlofuse.pipelines.users.layouts.copied_results import Element
from hlofuse.pipelines.users.layouts.last_in_place import brings_back
from hlofuse.pipelines.users.layouts.normalized_graph import is_shadow


class Simplification:
    """`HandleBitcast`: chains become one, what changes nothing goes.

    What is left in the end are bitcasts for those that still wanted another layout; they go when what reads
    them has been made anew in turn (`ReductionLayoutNormalizer`, gemms).
    """

    def __init__(
        self,
        graph: ShadowGraph,
        anew: frozenset[Instruction],
        other: frozenset[Instruction],
        copied: frozenset[Instruction],
        uses: Uses,
    ) -> None:
        self._graph = graph
        self._anew = anew
        self._other = other
        self._copied = copied
        self._uses = uses

    def run(self) -> None:
        self._graph.visit(self._handle)

    def run_again(self) -> None:
        """What is left once matrix products are library calls."""
        graph = self._graph
        left = graph.in_order_of_visit(is_shadow)
        self._merge_broadcasts()
        sources = {bitcast.operands[0] for bitcast in left}
        only_left = {x: x.is_bitcast and all(map(is_shadow, x.users)) for x in sources}
        for bitcast in left:
            source = bitcast.operands[0]
            users = self._as_met(bitcast)
            if _is_reduction_anew(source):
                self._have_read(source, bitcast)
                continue
            if source.is_bitcast and not only_left[source]:
                self._put_together(source, bitcast)
                continue
            for user in users:
                user.operands = [source if o is bitcast else o for o in user.operands]
                source.add_user(user)
                bitcast.remove_user(user)
            if only_left[source]:
                # A bitcast of a bitcast became one, made anew; CSE gave the users of others to the first.
                source.users = [u for u in source.users if u is not bitcast]
            else:
                source.remove_user(bitcast)
            bitcast.dead = True

    def _as_met(self, bitcast: Node) -> list[Node]:
        """Its users, in the order of the walk if all are reductions.

        ReductionLayoutNormalizer (`xla/backends/gpu/transforms/reduction_layout_normalizer.cc`) has given
        each a bitcast of its own, and those go one by one.
        """
        users = list(bitcast.users)
        if len(users) < 2 or any(u.source is None or u.source.opcode != "reduce" for u in users):
            return users
        return self._graph.in_order_of_visit(lambda node: node in users)

    def _have_read(self, reduction: Node, bitcast: Node) -> None:
        """Have what reads the `bitcast` read the `reduction`, behind what does so already.

        All bitcasts read the one that ReductionLayoutNormalizer put behind the reduction, and each became
        one of the reduction, made anew, when `HandleBitcast` met it.
        """
        reduction.users = [u for u in reduction.users if u is not bitcast]
        users = last_in_front(bitcast.users)
        for user in users:
            user.operands = [reduction if o is bitcast else o for o in user.operands]
            reduction.add_user(user)
        bitcast.users, bitcast.dead = [], True

    def _put_together(self, source: Node, bitcast: Node) -> None:
        """Have what reads a `bitcast` of the bitcast `source` read that one, with those that did already.

        `HandleBitcast` made both anew, of what `source` is a bitcast of, and HloCSE gave the users of the one
        met last to the other.
        """
        source.remove_user(bitcast)
        own, others = source.users, bitcast.users
        for user in others:
            user.operands = [source if o is bitcast else o for o in user.operands]
        source.users, bitcast.users, bitcast.dead = [], [], True
        first, last = sorted((own, others), key=lambda users: self._first_use(source, users))
        for user in [*first, *last]:
            source.add_user(user)

    def _first_use(self, source: Node, users: Iterable[Node]) -> int:
        x = source.source
        read = [(x, u.source) for u in users if u.source is not None] if x is not None else []
        return min((self._uses.get(use, -1) for use in read), default=-1)

    def _handle(self, node: Node) -> None:
        graph = self._graph
        if isinstance(node, Element):
            graph.replace(node, node.value)
        if not self._is_link(node):
            return
        for bitcast in graph.merged_chain(node, is_shadow):
            if bitcast.source is not None:
                continue
            operand = bitcast.operands[0]
            if operand.shape == bitcast.shape:
                graph.replace(bitcast, operand)
            elif _is_broadcast(operand) and not self._had_other_layout(operand.operands[0]):
                # Where the operand had another layout as well the broadcast would be a transpose, too.
                anew = Node(operand.source, bitcast.shape, list(operand.operands))
                graph.replace(bitcast, graph.add(anew))

    def _is_link(self, node: Node) -> bool:
        """Is it a bitcast of the normalization's, or one of the program's behind such of what was copied?"""
        x = node.source
        if x is None or not node.is_bitcast:
            return node.is_bitcast
        if brings_back(x) or any(is_grouped(u, x) for u in x.users):
            return False
        (operand,) = node.operands
        return is_shadow(operand) and operand.operands[0].source in self._copied

    def _had_other_layout(self, node: Node) -> bool:
        """Had it, whatever became of the bitcasts behind it, or is it a copy to another layout?

        Dimensions of one that are last where it was made anew, as behind a convolution, are all that moved.
        """
        is_reshaped = node.source is not None and node.is_bitcast
        while node.is_bitcast:
            (node,) = node.operands
        x = node.source
        if x is None:
            return False
        if x in self._other:
            return not (is_reshaped and x.shape.dimensions[-1] == 1)
        if x.opcode == "transpose":
            return x in self._anew and x.operands[0] not in self._other
        return x.shape.is_array and not x.shape.is_row_major

    def _merge_broadcasts(self) -> None:
        """`HloCSE`: of the broadcasts that bitcasts became, the one met first stays."""
        graph = self._graph
        count = Counter(node.source for node in graph.nodes if not node.dead and _is_broadcast(node))
        kept: dict[Instruction | None, Node] = {}
        several = {source for source, nodes in count.items() if nodes > 1}
        for node in [x for x in graph.post_order() if x.source in several] if several else []:
            first = kept.setdefault(node.source, node)
            if first is not node:
                graph.replace(node, first)


def _is_reduction_anew(node: Node) -> bool:
    """Did ReductionLayoutNormalizer make it, which names nothing?"""
    return node.source is not None and node.source.opcode == "reduce" and not node.source.op_name


def _is_broadcast(node: Node) -> bool:
    return node.source is not None and node.source.opcode == "broadcast"
