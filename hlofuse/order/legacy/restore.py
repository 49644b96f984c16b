"""The order in which XLA lists the users of an instruction, as the passes before fusion leave it.

FusionMerger and multi-output fusion go through users in list order, and a text does not carry it. XLA's lists
were last rebuilt by LayoutNormalization (`xla/service/layout_normalization.cc`), which puts every operation
behind bitcasts, and by AlgebraicSimplifier (`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`,
`HandleBitcast`), which takes those away again. `GpuCompiler` runs the two three times. `restore_users_order`
repeats that on a shadow of the graph, and takes over the order that comes out. What other passes did between
the rounds is undone first and repeated in its place (`undone.py`). The order before the first round is the
text's.
"""

from hlofuse.analysis.custom_calls import is_library_convolution
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.order.legacy.shadow_graph import Node, ShadowGraph
from hlofuse.order.legacy.undone import (
    GroupedTransposes,
    SunkBroadcasts,
    merge_equals,
    split_broadcasts,
    split_groups,
    split_transposes,
    split_widenings,
)

_ROUNDS = 3
_RECREATED = frozenset(
    """
    broadcast concatenate dynamic-slice dynamic-update-slice iota pad reduce-window reshape reverse scatter
    slice transpose
    """.split()
)
# Operands from this number on are taken as they stand, not in their normalised form.
_UNCHANGED = {"dynamic-slice": 1, "dynamic-update-slice": 2, "pad": 1, "reduce-window": 1}


def restore_users_order(module: Module) -> None:
    """Bring the users of every instruction outside fusions into XLA's order, as far as it is known."""
    for computation in module.computations:
        if computation.fusion is None:
            _restore(computation)


def _restore(computation: Computation) -> None:
    graph = ShadowGraph(computation)
    sunk = SunkBroadcasts(graph)
    split_groups(graph)
    grouped = GroupedTransposes(graph)
    split_broadcasts(graph)
    split_transposes(graph)
    for left in reversed(range(_ROUNDS)):
        if left == 0:
            grouped.put_back()
            split_widenings(graph)
        _normalize_layouts(graph, looks_at_convolutions=left < _ROUNDS - 1)
        if left == 0:
            merge_equals(graph)
        _simplify_bitcasts(graph, sunk=sunk if left == 0 else None)
    sunk.cancel_converts()
    merge_equals(graph)
    graph.take_over()


def _normalize_layouts(graph: ShadowGraph, *, looks_at_convolutions: bool) -> None:
    """`LayoutNormalizationVisitor`: every operation on row-major arrays, bitcasts around."""

    def action(node: Node) -> None:
        source = node.source
        if node.is_bitcast or source is None:
            graph.put_bitcasts_after(node, node.shape)
        elif source.opcode == "constant":
            graph.replace_uses(node, graph.add_bitcast(node))
        elif _is_recreated(source):
            first = _UNCHANGED.get(source.opcode, len(node.operands))
            operands = [
                o.operands[0] if k < first and o.is_bitcast else o for k, o in enumerate(node.operands)
            ]
            renewed = graph.add(Node(source, node.shape, operands))
            graph.visited.add(renewed)
            graph.replace(node, graph.add_bitcast(renewed))
        elif looks_at_convolutions and is_library_convolution(source):
            # `UpdateLayoutForCudnnConvolution` (`xla/service/gpu/conv_layout_normalization.cc`)
            for operand in node.operands:
                # To be read by what is then found to be the same, and used by nobody.
                graph.add_bitcast(operand)
        elif source.shape.is_array or source.shape.element_type == "opaque":
            graph.put_bitcasts_after(node, node.shape)

    graph.visit(action)


def _is_recreated(source: Instruction) -> bool:
    opcode = source.opcode
    if source.shape.is_tuple and opcode != "scatter":
        return False  # variadic; or a copy or choice of tuples, which no front end writes
    if opcode == "bitcast-convert":
        return source.shape.rank == source.operands[0].shape.rank
    return opcode in _RECREATED or opcode in ELEMENTWISE_OPCODES


def _simplify_bitcasts(graph: ShadowGraph, *, sunk: SunkBroadcasts | None) -> None:
    """`HandleBitcast`: chains become one, what changes nothing goes; broadcasts sink if that is due."""

    def action(node: Node) -> None:
        if node.is_bitcast:
            _simplify_bitcast(graph, node)
        elif sunk is not None:
            sunk.sink(node)

    graph.visit(action)


def _simplify_bitcast(graph: ShadowGraph, node: Node) -> None:
    for bitcast in graph.merged_chain(node, lambda x: x.is_bitcast):
        operand = bitcast.operands[0]
        if operand.shape == bitcast.shape:
            graph.replace(bitcast, operand)
