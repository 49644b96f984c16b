"""The users of values that layout assignment gave another layout than row-major.

LayoutNormalization (`xla/service/layout_normalization.cc`) makes every operation on such a value anew,
row-major, with a bitcast back behind it, and puts two bitcasts behind every such value that it does not make
anew, its own bitcasts included. AlgebraicSimplifier (`HandleBitcast`) takes them away again one by one. Both
are played here on a shadow of the graph.

What is row-major from the start both leave alone. Until jaxlib 0.4.35 they did so to everything, three times
(`users_order`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.reordering import reorder_users
from hlofuse.pipelines.shadow_graph import Node, ShadowGraph, give_order_of
from hlofuse.pipelines.users.common.copies import was_copy
from hlofuse.pipelines.users.common.grouping import is_grouped
from hlofuse.pipelines.users.common.holes import last_in_front
from hlofuse.pipelines.users.common.visits import Uses
from hlofuse.pipelines.users.floats.distributed_factors import merged_beside_sum
from hlofuse.pipelines.users.floats.inserted_converts import is_inserted_convert, is_narrow, is_widening
from hlofuse.pipelines.users.floats.swapped_broadcasts import (
    give_order_as_swapped,
    swap_back,
    swapped_broadcasts,
)
from hlofuse.pipelines.users.floats.widened import is_read_wide
from hlofuse.pipelines.users.layouts.copied_results import Element, put_results_together
from hlofuse.pipelines.users.layouts.narrow_readers import is_convert_back, read_past, read_through
from hlofuse.pipelines.users.layouts.other_layouts import (
    in_other_layout,
    is_of_product,
    is_transposed_of_product,
    made_anew,
    was_broadcast_for_each,
    was_copied_for_each,
    was_read_transposed,
    was_transposed_in_place,
)
from hlofuse.pipelines.users.products.accumulated_products import is_sum_in_call
from hlofuse.pipelines.users.products.side_inputs import reads_addend_first

_ROW_MAJOR, _OTHER = 0, 1


def restore_normalized_users(
    computation: Computation,
    order: Mapping[Instruction, int],
    uses: Uses,
    wide: frozenset[Instruction],
    *,
    ids_known: bool,
    makers: Mapping[Instruction, Maker] | None = None,
) -> frozenset[Instruction]:
    """Put the users of what had another layout into XLA's order; which those are.

    `order` is the post-order of the computation, `uses` the order in which a walk comes along each use,
    `wide` what was narrow in the program, `makers` who made what if that was guessed.
    """
    anew = made_anew(computation, ids_known=ids_known, makers=makers)
    other = in_other_layout(order, anew)
    if not other:
        return frozenset()
    graph = ShadowGraph(computation)
    accumulating = [node for x, node in graph.of.items() if reads_addend_first(x)]
    for node in accumulating:
        node.operands.insert(0, node.operands.pop())
    swapped = {x.broadcast: x for x in swapped_broadcasts(graph.of) if x.broadcast in other}
    swap_back(graph, swapped.values())
    copied = put_results_together(graph)
    merged = {x: _take_merged(graph, x) for x in anew}
    converts = {x: _take_from_wide(graph, x, wide) for x in _merged_converts(order, anew, other, wide)}
    backs = [x for x in computation if x in other and is_convert_back(x, wide)]
    for back in backs:
        read_through(graph, back, wide, order)
    narrowed = [_narrow_for_wide(graph, x, wide) for x in computation if x in other and _is_narrowed(x, wide)]
    read_wide = [x for x in computation if _is_widened_for_others(x, anew, other, wide)]
    widened = [_widen_for_others(graph, x) for x in read_wide]
    normalization = _Normalization(
        graph, anew, other, copied, frozenset([*converts.values(), *narrowed]), frozenset(widened)
    )
    normalization.run()
    simplification = _Simplification(graph, other, copied, uses)
    simplification.run()
    for node in accumulating:  # GemmRewriter made the addend the last operand
        node.operands.append(node.operands.pop(0))
    simplification.run_again()
    for convert in (*narrowed, *normalization.anew_of.values()):
        graph.bypass(convert)
    for back in backs:
        read_past(graph, back, wide, uses)
    found: set[Instruction] = set()
    for node in graph.nodes:
        x = node.source
        if node.dead or x is None or x not in other:
            continue
        node.users += merged.get(x, ())
        if x in converts:
            listed = [*node.users, *converts[x].users]
            if reorder_users(x, [u.source for u in listed if u.source is not None]):
                found.add(x)
            continue
        if is_widening(x):
            continue
        if was_copied_for_each(x) or was_broadcast_for_each(x):
            # Each use had one of its own; CSE made them one, in the order of the walk.
            x.users.sort(key=lambda user: uses[x, user])
            found.add(x)
            continue
        if len(x.users) < 2:
            continue
        if give_order_as_swapped(node, swapped[x]) if x in swapped else give_order_of(node, x):
            found.add(x)
    for total in filter(is_sum_in_call, order):
        if len(total.users) > 1 and all(_is_elementwise_of(u, other) for u in total.users):
            reorder_users(total, last_in_front(total.users))  # it had been made anew, a bitcast behind it
            found.add(total)
    return frozenset(found)


def _is_elementwise_of(x: Instruction, other: frozenset[Instruction]) -> bool:
    return x in other and x.opcode in ELEMENTWISE_OPCODES


def _merged_converts(
    order: Iterable[Instruction],
    anew: frozenset[Instruction],
    other: frozenset[Instruction],
    wide: frozenset[Instruction],
) -> list[Instruction]:
    """Converts of the program which several read that were made anew, and what was `wide` since CSE.

    One with its name is told apart from those that were put in only by others that read the narrow value.
    """
    converts = [x for x in order if x in other and not wide.isdisjoint(x.users)]
    return [
        x
        for x in converts
        if (is_widening(x) and len(anew & {*x.users} - wide) > 1) or _is_of_narrow_read_by_others(x)
    ]


def _is_of_narrow_read_by_others(x: Instruction) -> bool:
    if x.opcode != "convert" or x.shape.element_type != "f32" or not x.op_name:
        return False
    return is_narrow(x.operands[0]) and len(x.operands[0].users) > 1


def _take_from_wide(graph: ShadowGraph, convert: Instruction, wide: frozenset[Instruction]) -> Node:
    """What was `wide` reads the narrow value as yet, here by a node that stands for the converts to come."""
    node = graph.of[convert]
    apart = graph.add(Node(None, node.shape, list(node.operands)))
    apart.users = [u for u in node.users if u.source in wide]
    node.users = [u for u in node.users if u.source not in wide]
    for user in apart.users:
        user.operands = [apart if o is node else o for o in user.operands]
    return apart


def _is_narrowed(x: Instruction, wide: frozenset[Instruction]) -> bool:
    """Did some read what was in single precision already, and others a convert of it that is gone?"""
    if x in wide or x.opcode == "convert" or x.shape.element_type != "f32" or x.shape.rank == 0:
        return False
    read_wide = [u in wide for u in x.users]
    return any(read_wide) and not all(read_wide) and not any(u.opcode == "convert" for u in x.users)


def _narrow_for_wide(graph: ShadowGraph, x: Instruction, wide: frozenset[Instruction]) -> Node:
    """The convert of the program that those read; SimplifyFPConversions took it away, later."""
    node = graph.of[x]
    later = [u for u in node.users if u.source in wide]
    place = node.users.index(later[0])
    node.users = [u for u in node.users if u not in later]
    convert = graph.add(Node(None, node.shape, [node]))
    node.users.insert(place, node.users.pop())
    convert.users = later
    for user in later:
        user.operands = [convert if o is node else o for o in user.operands]
    return convert


def _is_widened_for_others(
    x: Instruction,
    anew: frozenset[Instruction],
    other: frozenset[Instruction],
    wide: frozenset[Instruction],
) -> bool:
    """Did all that reads it, made anew, read a convert of the program to f32, and was that made anew, too?"""
    if x not in other or x in anew or x.opcode == "convert" or len(x.users) < 2:
        return False
    return is_read_wide(x, wide) and anew.issuperset(x.users)


def _widen_for_others(graph: ShadowGraph, x: Instruction) -> Node:
    """That convert, which FloatNormalization took away, later."""
    node = graph.of[x]
    convert = Node(None, node.shape, [])
    graph.put_behind(node, convert)
    return convert


def with_last_in_place_of_bitcast(x: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such a value, of a reduction with the last in front if it was made anew once more.

    ReductionLayoutNormalizer (`xla/backends/gpu/transforms/reduction_layout_normalizer.cc`) put a bitcast
    behind the new one, which names nothing. When that went its users were appended.

    The bitcast has the name of the reduction where it is left, which was row-major. What is element-wise and
    was made anew read it through a transpose of the program then: the bitcast that this became was the first
    user, and the last of its own took its place.
    """
    if x.opcode == "reduce" and not x.op_name:
        return last_in_front(users)
    if _is_of_reduction(x):
        return sorted(users, key=lambda u: u.opcode not in ELEMENTWISE_OPCODES)
    return sorted(users, key=lambda u: x.opcode == "transpose" and not _brings_back(u))


def with_last_in_place_of_layout(x: Instruction, users: list[Instruction], passes: int) -> list[Instruction]:
    """The users of `x`, where it is a copy to the layout in which a transpose of the program moves nothing.

    The bitcast back to that layout was the first user of the copy that was made anew. What read the transpose
    is older and reads the copy now, of which the layout is row-major already, be it through a convert that
    was put in later. What a library gives in another
    layout, or what is reshaped, was copied for each instead.

    A reshape in such a layout was not made anew; of the two bitcasts behind it the one back went with the
    transpose, and of those that read the other one the last took its place.

    Slices that AlgebraicSimplifier moved in front of a reshape (`HandleSlice`,
    `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) are younger than the first of `passes`; the last
    of them had taken the place of that reshape before.
    """
    if was_read_transposed(x) or is_transposed_of_product(x):
        return last_in_front(users)
    if not was_copy(x) or any(u.opcode == "bitcast" for u in users):
        return users
    if any(u.id > x.id and not is_inserted_convert(u) for u in users):
        return users
    if all(u.opcode == "slice" and u.id >= passes for u in users):
        users = last_in_front(users)
    (source,) = x.operands
    given = source.operands[0] if source.opcode == "get-tuple-element" else source
    return users if given.opcode == "custom-call" else last_in_front(users)


def _take_merged(graph: ShadowGraph, factor: Instruction) -> list[Node]:
    """The products that did not read the `factor` as yet; that they do not is told here, too."""
    node = graph.of[factor]
    later = [graph.of[u] for u in merged_beside_sum(factor)]
    for product in later:
        node.remove_user(product)
        product.operands = [o for o in product.operands if o is not node]
    return later


def _is_of_reduction(x: Instruction) -> bool:
    return (
        x.opcode == "bitcast"
        and bool(x.op_name)
        and x.shape.is_row_major
        and x.operands[0].opcode == "reduce"
        and not x.operands[0].op_name
    )


def _brings_back(x: Instruction) -> bool:
    """Is it the bitcast behind a copy that was made anew, for who wants the other layout?"""
    return x.opcode == "bitcast" and not x.op_name and not x.shape.is_row_major


class _Normalization:
    """`LayoutNormalizationVisitor`."""

    def __init__(
        self,
        graph: ShadowGraph,
        anew: frozenset[Instruction],
        other: frozenset[Instruction],
        copied: frozenset[Instruction],
        converts: frozenset[Node],
        widened: frozenset[Node],
    ) -> None:
        self._graph = graph
        self._anew = anew
        self._other = other
        self._copied = copied
        self._converts = converts
        self._widened = widened
        self.anew_of: dict[Node, Node] = {}
        """By convert that was `widened`, the one made anew."""

    def run(self) -> None:
        for node in self._graph.nodes:
            told = node.value if isinstance(node, Element) else node
            is_other = told.source in self._other or node in self._widened
            node.shape = _OTHER if is_other else _ROW_MAJOR
        self._graph.visit(self._handle)

    def _handle(self, node: Node) -> None:
        source = node.source
        graph = self._graph
        if node not in self._widened and (source is None or source not in self._anew):
            if source is not None and is_of_product(source):
                self._read_row_major(node)
            if node in self._converts:  # what reads it is made anew
                for operand in filter(_is_shadow, node.operands):
                    operand.give_user(node, operand.operands[0])
            if node.shape != _OTHER:
                return
            if source is not None and was_transposed_in_place(source):
                node.shape = _ROW_MAJOR
                graph.put_behind(node, Node(None, _OTHER, [], is_bitcast=True))
            else:
                graph.put_bitcasts_behind(node, _ROW_MAJOR)
            return
        operands = [o.operands[0] if _is_shadow(o) else o for o in node.operands]
        made = graph.add(Node(source, _ROW_MAJOR, operands))
        graph.visited.add(made)
        if node in self._widened:
            self.anew_of[node] = made
        graph.replace(node, graph.add(Node(None, _OTHER, [made], is_bitcast=True)) if node.shape else made)

    def _read_row_major(self, node: Node) -> None:
        """A matrix product reads a transpose of what it is given, which moves nothing."""
        for operand in dict.fromkeys(filter(_is_shadow, node.operands)):
            if operand.operands[0].source in self._copied:
                operand.give_user(node, operand.operands[0])


class _Simplification:
    """`HandleBitcast`: chains become one, what changes nothing goes.

    What is left in the end are bitcasts for those that still wanted another layout; they go when what reads
    them has been made anew in turn (`ReductionLayoutNormalizer`, gemms).
    """

    def __init__(
        self,
        graph: ShadowGraph,
        other: frozenset[Instruction],
        copied: frozenset[Instruction],
        uses: Uses,
    ) -> None:
        self._graph = graph
        self._other = other
        self._copied = copied
        self._uses = uses

    def run(self) -> None:
        self._graph.visit(self._handle)

    def run_again(self) -> None:
        """What is left once matrix products are library calls."""
        graph = self._graph
        left = graph.in_order_of_visit(_is_shadow)
        self._merge_broadcasts()
        sources = {bitcast.operands[0] for bitcast in left}
        only_left = {x: x.is_bitcast and all(map(_is_shadow, x.users)) for x in sources}
        for bitcast in left:
            source = bitcast.operands[0]
            users = list(bitcast.users)
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
        for bitcast in graph.merged_chain(node, _is_shadow):
            if bitcast.source is not None:
                continue
            operand = bitcast.operands[0]
            if operand.shape == bitcast.shape:
                graph.replace(bitcast, operand)
            elif _is_broadcast(operand) and _behind_bitcasts(operand.operands[0]) not in self._other:
                # Where the operand had another layout as well the broadcast would be a transpose, too.
                anew = Node(operand.source, bitcast.shape, list(operand.operands))
                graph.replace(bitcast, graph.add(anew))

    def _is_link(self, node: Node) -> bool:
        """Is it a bitcast of the normalization's, or one of the program's behind such of what was copied?"""
        x = node.source
        if x is None or not node.is_bitcast:
            return node.is_bitcast
        if _brings_back(x) or any(is_grouped(u, x) for u in x.users):
            return False
        (operand,) = node.operands
        return _is_shadow(operand) and operand.operands[0].source in self._copied

    def _merge_broadcasts(self) -> None:
        """`HloCSE`: of the broadcasts that bitcasts became, the one met first stays."""
        graph = self._graph
        count = Counter(node.source for node in graph.nodes if not node.dead and _is_broadcast(node))
        kept: dict[Instruction | None, Node] = {}
        for node in graph.in_order_of_visit(lambda node: count[node.source] > 1):
            first = kept.setdefault(node.source, node)
            if first is not node:
                graph.replace(node, first)


def _is_reduction_anew(node: Node) -> bool:
    """Did ReductionLayoutNormalizer make it, which names nothing?"""
    return node.source is not None and node.source.opcode == "reduce" and not node.source.op_name


def _behind_bitcasts(node: Node) -> Instruction | None:
    while _is_shadow(node):
        node = node.operands[0]
    return node.source


def _is_broadcast(node: Node) -> bool:
    return node.source is not None and node.source.opcode == "broadcast"


def _is_shadow(node: Node) -> bool:
    """A bitcast that the normalization put in."""
    return node.source is None and node.is_bitcast
