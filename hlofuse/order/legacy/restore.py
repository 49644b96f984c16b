"""XLA's use-list order before fusion in jaxlib 0.4.35.

FusionMerger and multi-output fusion visit users in list order, and a text does not carry it. XLA's lists were
last rebuilt by LayoutNormalization (`xla/service/layout_normalization.cc`), which puts bitcasts around every
operation, and by AlgebraicSimplifier (`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`,
`HandleBitcast`), which removes them again. `GpuCompiler` runs the two three times. `restore_users_order`
repeats that on a shadow of the graph and takes over the resulting order. Changes by other passes between the
rounds are undone first and repeated in their place (below). The order before the first round is the text's.
"""

from collections.abc import Sequence

from hlofuse.analysis.custom_calls import is_library_convolution
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES, is_broadcast_of_constant
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.opcodes import values, with_trait
from .shadow_graph import ShadowGraph

# Operations that every user had one of its own of, until the last CSE before fusion merged them: broadcasts
# of constants (HostOffloadLegalize copies them for each use), transposes before library calls, scatters and
# gathers (LayoutAssignment copies an operand for each use).

_ANY_LAYOUT = values("custom-call scatter gather")
_MOVES = values("bitcast transpose")
_GROUPED = values("reduce transpose")


def split_broadcasts(graph: ShadowGraph) -> None:
    """Give each use a broadcast of a constant of its own."""
    for x, node in list(graph.of.items()):
        if is_broadcast_of_constant(x):
            _split_uses(graph, node)


def split_transposes(graph: ShadowGraph) -> None:
    """Give each use with a layout of its own a transpose with the bitcasts around it."""
    for x, node in reversed(list(graph.of.items())):
        if (
            x.opcode in _MOVES
            and len(node.users) > 1
            and node.through("bitcast").opcode == "transpose"
            and all(_wants_layout(graph, u) for u in node.users)
        ):
            _split_uses(graph, node)


def split_groups(graph: ShadowGraph) -> None:
    """Give each reduction or transpose with grouped dimensions its own bitcast that merges them."""
    for x, node in list(graph.of.items()):
        if (
            x.opcode == "bitcast"
            and len(node.users) > 1
            and all(u.opcode in _GROUPED for u in node.users)
            and _groups(x.operand.shape.dimensions, x.shape.dimensions)
        ):
            _split_uses(graph, node)


def _wants_layout(graph: ShadowGraph, user: Instruction) -> bool:
    if user.opcode in _MOVES:
        return all(_wants_layout(graph, u) for u in user.users)
    return user.opcode in _ANY_LAYOUT or graph.source[user].fusion_kind == "kCustom"


def _split_uses(graph: ShadowGraph, node: Instruction) -> None:
    uses = [(user, k) for user in node.users for k, o in enumerate(user.operands) if o is node]
    for user, k in uses[1:]:
        user.replace_operand(k, graph.add(graph.source[node], node.shape, node.operands))


def merge_equals(graph: ShadowGraph) -> None:
    """Give the first of equal operations the users of all (`HloCSE`)."""
    first = dict[tuple[object, ...], Instruction]()
    for node in graph.post_order():
        source = "bitcast" if node.opcode == "bitcast" else graph.source.get(node)
        if node.operands and source is not None:
            remaining = first.setdefault((source, node.shape.key, *node.operands), node)
            if remaining is not node:
                graph.replace(node, remaining)


# Transposes as they were before TransposeDimensionGrouper put bitcasts around them.
# It merges dimensions that stay together (`xla/service/gpu/transforms/transpose_dimension_grouper.cc`), and
# runs between the last but one LayoutNormalization and the last: for those before, what now reads an array
# through a bitcast was a transpose, which they recreated.


class GroupedTransposes:
    """Takes the bitcasts around transposes out of a shadow graph, and reinserts them."""

    def __init__(self, graph: ShadowGraph) -> None:
        self._graph = graph
        self._before = dict[Instruction, Instruction]()
        self._after = dict[Instruction, Instruction]()
        for transpose, node in graph.of.items():
            bitcast = transpose.operand if transpose.opcode == "transpose" else None
            if bitcast is None or bitcast.opcode != "bitcast" or len(bitcast.users) != 1:
                continue
            array = bitcast.operand
            finer = [array, *(u for u in array.users if u is not bitcast and u.opcode == "bitcast")]
            for read in finer:
                groups = _groups(read.shape.dimensions, bitcast.shape.dimensions)
                if groups is not None:
                    break
            else:
                continue
            self._before[transpose] = bitcast
            graph.bypass(graph.of[bitcast])
            if read is not array:
                # Which of the bitcasts was there first is not known; they were one.
                graph.of[array].replace_use_with(node, graph.of[read])
                graph.of[read].users.sort(key=lambda user: user.id)
            after = transpose.users[0] if len(transpose.users) == 1 else None
            moved = [d for k in transpose.dimensions for d in groups[k]]
            if (
                after is not None
                and after.opcode == "bitcast"
                and not after.is_root
                and moved == after.shape.true_dimensions
            ):
                self._after[transpose] = after
                graph.bypass(graph.of[after])

    def put_back(self) -> None:
        for node in self._graph.computation.instructions:
            transpose = self._graph.source.get(node)
            if transpose in self._before:
                self._graph.put_before(node, self._before[transpose])
            if transpose in self._after:
                self._graph.put_after(node, self._after[transpose])


def _groups(dimensions: Sequence[int], merged: Sequence[int]) -> list[list[int]] | None:
    """The neighbours among `dimensions` whose product each of `merged` is; None if one is not."""
    rest = [d for d in dimensions if d != 1]
    groups = []
    for product in merged:
        group = []
        found = 1
        while found < product and rest:
            group.append(rest.pop(0))
            found *= group[-1]
        if found != product:
            return None
        groups.append(group)
    return None if rest else groups


# Broadcasts that the last simplification before fusion moved after converts.
# In bf16 programs `convert(broadcast(x))` becomes `broadcast(convert(x))`, and where x is a convert itself
# the two cancel out. The old broadcast and convert stay in the module unused, which tells that it happened;
# values have gained users by it that earlier passes did not see. Mirrors
# `AlgebraicSimplifierVisitor::TryToSinkBroadcastAfterOpWithUniqueNonScalarOperand`
# (`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) and `SimplifyFPConversions`.


class SunkBroadcasts:
    """Takes the new broadcasts out of a shadow graph, and reinserts them."""

    def __init__(self, graph: ShadowGraph) -> None:
        self._graph = graph
        self._sunk = dict[Instruction, tuple[Instruction, Instruction, Instruction | None]]()
        """Old broadcast to the old convert, the new broadcast, and the new convert if it remains."""
        new = [x for x in graph.of if x.opcode == "broadcast" and x.users]
        for convert in [x for x in graph.of if x.opcode == "convert" and not x.users and not x.is_root]:
            old = convert.operand
            if old.opcode == "broadcast" and old.users == [convert]:
                match = next((x for x in new if _origin_of(x, old, convert)), None)
                if match is not None:
                    new.remove(match)
                    self._undo(old, convert, match)

    def _undo(self, old: Instruction, convert: Instruction, new: Instruction) -> None:
        of = self._graph.of
        remaining = new.operand if old.operand in new.operand.operands else None
        if remaining is not None and remaining.users != [new]:
            return
        self._sunk[old] = (convert, new, remaining)
        self._graph.replace(of[new], of[convert])

    def sink(self, node: Instruction) -> None:
        """Repeat the simplifier's rewrite of a broadcast."""
        source = self._graph.source
        if (old := source.get(node)) not in self._sunk:
            return
        convert, new, remaining = self._sunk[old]
        user = next((u for u in node.users if source.get(u) is convert), None)
        if user is not None:
            inner = self._graph.add(remaining, user.shape, node.operands, "convert")
            user.replace_all_uses_with(self._graph.add(new, user.shape, [inner]))

    def cancel_converts(self) -> None:
        """Bypass removed converts that `sink` inserted: they read the operand of the convert before them."""
        new = {broadcast for _, broadcast, remaining in self._sunk.values() if remaining is None}
        source = self._graph.source
        for node in self._graph.computation.instructions:
            if source.get(node) in new and node.operand not in source:
                self._graph.replace(node.operand, node.operand.operand.operand)


def _origin_of(new: Instruction, old: Instruction, convert: Instruction) -> bool:
    """True if `new` may have replaced `old` and its convert."""
    if new.shape.key != convert.shape.key or new.dimensions != old.dimensions:
        return False
    narrow, wide = old.operand, new.operand
    return (narrow.opcode == "convert" and narrow.operand is wide) or (
        wide.opcode == "convert" and wide.operand is narrow
    )


_ROUNDS = 3
_RECREATED = with_trait("layout-recreated")
# Operands from this number on are taken as they stand, not in their normalised form.
_UNCHANGED = {
    "dynamic-slice": 1,
    "dynamic-update-slice": 2,
    "pad": 1,
    "reduce-window": 1,
}


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
        _normalize_layouts(graph, looks_at_convolutions=left < _ROUNDS - 1)
        if left == 0:
            merge_equals(graph)
        _simplify_bitcasts(graph, sunk=sunk if left == 0 else None)
    sunk.cancel_converts()
    merge_equals(graph)
    graph.take_over()


def _normalize_layouts(graph: ShadowGraph, *, looks_at_convolutions: bool) -> None:
    """Put bitcasts around every operation on row-major arrays (`LayoutNormalizationVisitor`)."""

    def action(node: Instruction) -> None:
        source = graph.source.get(node)
        if node.opcode == "bitcast" or source is None:
            graph.put_bitcasts_after(node)
        elif source.opcode == "constant":
            node.replace_all_uses_with(graph.add_bitcast(node))
        elif _is_recreated(source):
            first = _UNCHANGED.get(source.opcode, len(node.operands))
            operands = [o.past("bitcast") if k < first else o for k, o in enumerate(node.operands)]
            renewed = graph.add(source, node.shape, operands)
            graph.visited.add(renewed)
            graph.replace(node, graph.add_bitcast(renewed))
        elif looks_at_convolutions and is_library_convolution(source):
            # `UpdateLayoutForCudnnConvolution` (`xla/service/gpu/conv_layout_normalization.cc`)
            for operand in node.operands:
                # Readable by nodes later found to be equal, and without users.
                graph.add_bitcast(operand)
        elif source.shape.is_array or source.element_type == "opaque":
            graph.put_bitcasts_after(node)

    graph.visit(action)


def _is_recreated(source: Instruction) -> bool:
    opcode = source.opcode
    if source.shape.is_tuple and opcode != "scatter":
        return False  # variadic; or a copy or choice of tuples, which no front end writes
    if opcode == "bitcast-convert":
        return source.shape.rank == source.operand.shape.rank
    return opcode in _RECREATED or opcode in ELEMENTWISE_OPCODES


def _simplify_bitcasts(graph: ShadowGraph, *, sunk: SunkBroadcasts | None) -> None:
    """Merge chains of bitcasts, drop identities, and sink due broadcasts (`HandleBitcast`)."""

    def action(node: Instruction) -> None:
        if node.opcode == "bitcast":
            for bitcast in graph.merged_chain(node):
                operand = bitcast.operand
                if operand.shape.key == bitcast.shape.key:
                    graph.replace(bitcast, operand)
        elif sunk is not None:
            sunk.sink(node)

    graph.visit(action)
