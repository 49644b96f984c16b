"""The users of values that layout assignment gave another layout than row-major.

LayoutNormalization (`xla/service/layout_normalization.cc`) makes every operation on such a value anew,
row-major, with a bitcast back behind it, and puts two bitcasts behind every such value that it does not make
anew, its own bitcasts included. AlgebraicSimplifier (`HandleBitcast`) takes them away again one by one. Both
are played here on a shadow of the graph.

What is row-major from the start both leave alone. Until jaxlib 0.4.35 they did so to everything, three times
(`users_order`).
"""

from __future__ import annotations

from collections.abc import Mapping

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.reordering import reorder_users
from hlofuse.pipelines.shadow_graph import Node, ShadowGraph, give_order_of
from hlofuse.pipelines.users.common.copies import was_copy
from hlofuse.pipelines.users.common.holes import last_in_front
from hlofuse.pipelines.users.common.visits import Uses
from hlofuse.pipelines.users.floats.distributed_factors import merged_beside_sum
from hlofuse.pipelines.users.floats.inserted_converts import is_widening
from hlofuse.pipelines.users.floats.swapped_broadcasts import (
    give_order_as_swapped,
    swap_back,
    swapped_broadcasts,
)
from hlofuse.pipelines.users.layouts.converts_apart import (
    is_narrowed,
    merged_converts,
    narrow_for_wide,
    take_from_wide,
    widen_for_others,
    widened_for_others,
)
from hlofuse.pipelines.users.layouts.copied_results import put_results_together
from hlofuse.pipelines.users.layouts.merged_copies import users_of_merged_copies
from hlofuse.pipelines.users.layouts.narrow_readers import is_convert_back, read_past, read_through
from hlofuse.pipelines.users.layouts.normalized_convolutions import results_of_normalized
from hlofuse.pipelines.users.layouts.normalized_graph import Normalization
from hlofuse.pipelines.users.layouts.other_layouts import (
    in_other_layout,
    made_anew,
    was_broadcast_for_each,
    was_copied_for_each,
)
from hlofuse.pipelines.users.layouts.simplified_bitcasts import Simplification
from hlofuse.pipelines.users.layouts.widened_readers import read_narrow, with_converts
from hlofuse.pipelines.users.products.accumulated_products import is_sum_in_call
from hlofuse.pipelines.users.products.side_inputs import reads_addend_first


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
    spread = swapped_broadcasts(graph.of)
    graph.later |= {graph.of[x.convert] for x in spread}
    swapped = {x.broadcast: x for x in spread if x.broadcast in other}
    swap_back(graph, swapped.values())
    copied = put_results_together(graph)
    merged = {x: _take_merged(graph, x) for x in anew}
    converts = {x: take_from_wide(graph, x, wide) for x in merged_converts(order, anew, other, wide)}
    backs = [x for x in computation if x in other and is_convert_back(x, wide)]
    for back in backs:
        read_through(graph, back, wide, order)
    narrowed = [narrow_for_wide(graph, x, wide) for x in computation if x in other and is_narrowed(x, wide)]
    read_wide = {x: widened_for_others(x, anew, other, wide) for x in computation}
    widened = [widen_for_others(graph, x, others) for x, others in read_wide.items() if others]
    narrow = read_narrow(graph, (x for x in order if x in anew and x in other), wide)
    normalization = Normalization(
        graph,
        anew,
        other,
        copied,
        frozenset([*converts.values(), *narrowed]),
        frozenset(widened),
        results_of_normalized(computation),
    )
    normalization.run()
    simplification = Simplification(graph, anew, other, copied, uses)
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
        node.users = with_converts(node.users, graph, narrow.get(x, {}))
        if x in converts:
            listed = [*node.users, *converts[x].users]
            if reorder_users(x, [u.source for u in listed if u.source is not None]):
                found.add(x)
            continue
        if is_widening(x):
            continue
        if was_copied_for_each(x):
            reorder_users(x, users_of_merged_copies(x, uses))
            found.add(x)
            continue
        if was_broadcast_for_each(x):
            # Each use had one of its own; CSE made them one, in the order of the walk.
            x.users.sort(key=lambda user: uses[x, user])
            found.add(x)
            continue
        if len(x.users) < 2:
            continue
        if give_order_as_swapped(node, swapped[x]) if x in swapped else give_order_of(node, x):
            found.add(x)
    for copy in order:
        if len(copy.users) > 1 and copy not in other and _is_copied_back(copy, anew, other):
            reorder_users(copy, sorted(copy.users, key=lambda user: uses[copy, user]))
            found.add(copy)
    for total in filter(is_sum_in_call, order):
        if len(total.users) > 1 and all(_is_elementwise_of(u, other) for u in total.users):
            reorder_users(total, last_in_front(total.users))  # it had been made anew, a bitcast behind it
            found.add(total)
    return frozenset(found)


def _is_copied_back(x: Instruction, anew: frozenset[Instruction], other: frozenset[Instruction]) -> bool:
    """Is it a copy of what had another layout, row-major for what reads it?

    LayoutAssignment (`CopyOperandIfLayoutsDiffer`, `xla/service/layout_assignment.cc`) made one for each use.
    """
    if x not in anew or not was_copy(x) or not anew.isdisjoint(x.users):
        return False
    (source,) = x.operands
    return source in anew and source in other


def _is_elementwise_of(x: Instruction, other: frozenset[Instruction]) -> bool:
    return x in other and x.opcode in ELEMENTWISE_OPCODES


def _take_merged(graph: ShadowGraph, factor: Instruction) -> list[Node]:
    """The products that did not read the `factor` as yet; that they do not is told here, too."""
    node = graph.of[factor]
    later = [graph.of[u] for u in merged_beside_sum(factor)]
    for product in later:
        node.remove_user(product)
        product.operands = [o for o in product.operands if o is not node]
    return later
