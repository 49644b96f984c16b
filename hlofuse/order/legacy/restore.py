"""XLA's use-list order before fusion in jaxlib 0.4.35.

FusionMerger and multi-output fusion visit users in list order, and a text does not carry it. XLA's lists were
last rebuilt by LayoutNormalization (`xla/service/layout_normalization.cc`), which puts bitcasts around every
operation, and by AlgebraicSimplifier (`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`,
`HandleBitcast`), which removes them again. `GpuCompiler` runs the two three times. `restore_users_order`
repeats that on a shadow of the graph and takes over the resulting order. Changes by other passes between the
rounds are undone first and repeated in their place (below). The order before the first round is the text's.
"""

from collections.abc import Callable, Iterator, Sequence

from hlofuse.analysis.custom_calls import is_library_convolution
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES, is_broadcast_of_constant
from hlofuse.ir import Computation, Instruction, Ints, Module, Shape, replace_instruction, values, with_trait
from hlofuse.passes.base import visit

# Operations that every user had one of its own of, until the last CSE before fusion merged them: broadcasts
# of constants (HostOffloadLegalize copies them for each use), transposes before library calls, scatters and
# gathers (LayoutAssignment copies an operand for each use).

_ANY_LAYOUT = values("custom-call scatter gather")
_MOVES = values("bitcast transpose")
_GROUPED = values("reduce transpose")

# A graph of bare instructions, to find the use-list order that rewrites leave.


class ShadowGraph:
    """Bare copies of the instructions of one computation, users initially in text order."""

    def __init__(self, computation: Computation) -> None:
        self.computation = Computation(computation.name)
        self.source = dict[Instruction, Instruction]()
        """The instruction that a node stands for; a new one has none at first."""
        self.of = dict[Instruction, Instruction]()
        for x in computation.post_order():
            self.of[x] = self.add(x, x.shape, [self.of[o] for o in x.operands])
        for x, node in self.of.items():
            node.users[:] = [self.of[u] for u in x.users]
        self.computation.root = self.of[computation.root]
        self.visited = set[Instruction]()

    def add(
        self,
        source: Instruction | None,
        shape: Shape,
        operands: Sequence[Instruction],
        opcode: str = "bitcast",
    ) -> Instruction:
        """A new node that stands for `source`; for no instruction yet, one of `opcode`."""
        node = Instruction("", shape, opcode, operands)
        self.computation.append_unnumbered(node)
        if source is not None:
            self.source[node] = source
            node.opcode, node.attributes, node.called = source.opcode, source.attributes, source.called
        return node

    def add_bitcast(self, of: Instruction) -> Instruction:
        return self.add(None, of.shape, [of])

    def bypass(self, node: Instruction) -> None:
        """Let the users of `node` read its only operand, in its place among the users of that."""
        (operand,) = node.operands
        users = [u for user in operand.users for u in (node.users if user is node else [user])]
        node.replace_all_uses_with(operand)
        self.computation.remove_instruction(node)
        operand.users[:] = dict.fromkeys(users)

    def put_bitcasts_after(self, node: Instruction) -> None:
        """Insert two bitcasts between `node` and its users (`LayoutNormalizationVisitor::DefaultAction`)."""
        users = list(node.users)
        if users:
            there = self.add_bitcast(node)
            self.visited.add(there)
            back = self.add_bitcast(there)
            for user in users:
                node.replace_use_with(user, back)

    def merged_chain(self, end: Instruction) -> Iterator[Instruction]:
        """The bitcasts of a chain up to `end`, each reading what the chain reads. The innermost comes first,
        without recursion, since chains can be long. Each rewrite changes the operand of the next."""
        chain = [end]
        while (link := chain[-1].operand).is_bitcast:
            chain.append(link)
        for bitcast in reversed(chain):
            if bitcast.computation is None:
                continue
            operand = bitcast.operand
            if operand.is_bitcast:
                source = self.source.get(bitcast) or self.source.get(operand)
                merged = self.add(source, bitcast.shape, operand.operands)
                self.replace(bitcast, merged)
                bitcast = merged
            yield bitcast

    def replace(self, old: Instruction, new: Instruction) -> None:
        """Replace all uses; then remove the old node and operands that die with it."""
        if old.computation is not None:
            replace_instruction(old, new)

    def visit(self, action: Callable[[Instruction], None]) -> None:
        """Visit operands before users; `action` may add nodes to `visited` to skip them."""
        self.visited = set()
        visit(self.computation, action, visited=self.visited)

    def post_order(self) -> list[Instruction]:
        """Operands before users, from nodes without users in id order (`MakeInstructionPostOrder`)."""
        last = self.computation.next_id
        place = lambda x: self.source[x].id if x in self.source else last  # noqa: E731
        return self.computation.post_order(starts=sorted(self.computation, key=place))

    def take_over(self) -> None:
        """Give the instructions the resulting use-list order, where it is complete."""
        for node in self.computation:
            if (source := self.source.get(node)) is not None:
                users = [self.source[u] for u in node.users if u in self.source]
                # What was found may miss a user or hold one twice: then the text's order stays.
                if len(users) == len(source.users) and set(users) == set(source.users):
                    source.users[:] = users


def split_transposes(graph: ShadowGraph) -> None:
    """Give each use with a layout of its own a transpose with the bitcasts around it."""
    for x, node in reversed(list(graph.of.items())):
        if (
            x.opcode in _MOVES
            and len(node.users) > 1
            and node.through("bitcast").is_transpose
            and all(_wants_layout(graph, u) for u in node.users)
        ):
            _split_uses(graph, node)


def split_groups(graph: ShadowGraph) -> None:
    """Give each reduction or transpose with grouped dimensions its own bitcast that merges them."""
    for x, node in list(graph.of.items()):
        if (
            x.is_bitcast
            and len(node.users) > 1
            and all(u.opcode in _GROUPED for u in node.users)
            and _groups(x.operand.sizes, x.sizes)
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
        source = "bitcast" if node.is_bitcast else graph.source.get(node)
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
        self._before = dict[Instruction | None, Instruction]()
        self._after = dict[Instruction | None, Instruction]()
        for transpose, node in graph.of.items():
            bitcast = transpose.operand if transpose.is_transpose else None
            if bitcast is None or not bitcast.is_bitcast or len(bitcast.users) != 1:
                continue
            array = bitcast.operand
            finer = [array, *(u for u in array.users if u is not bitcast and u.is_bitcast)]
            for read in finer:
                groups = _groups(read.sizes, bitcast.sizes)
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
            after = transpose.user if len(transpose.users) == 1 else None
            moved = [d for k in transpose.dimensions for d in groups[k]]
            if (
                after is not None
                and after.is_bitcast
                and not after.is_root
                and moved == [d for d in after.sizes if d != 1]
            ):
                self._after[transpose] = after
                graph.bypass(graph.of[after])

    def put_back(self) -> None:
        graph = self._graph
        for node in graph.computation.instructions:
            transpose = graph.source.get(node)
            if bitcast := self._before.get(transpose):
                node.replace_operand(0, graph.add(bitcast, bitcast.shape, node.operands))
            if bitcast := self._after.get(transpose):
                node.replace_all_uses_with(graph.add(bitcast, bitcast.shape, [node]))


def _groups(dimensions: Ints, merged: Ints) -> list[list[int]] | None:
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
        new = [x for x in graph.of if x.is_broadcast and x.users]
        for convert in [x for x in graph.of if x.opcode == "convert" and not x.users and not x.is_root]:
            old = convert.operand
            if old.is_broadcast and old.users == [convert]:
                match = next((x for x in new if _origin_of(x, old, convert)), None)
                if match is not None:
                    new.remove(match)
                    remaining = match.operand if old.operand in match.operand.operands else None
                    if remaining is None or remaining.users == [match]:
                        self._sunk[old] = (convert, match, remaining)
                        graph.replace(graph.of[match], graph.of[convert])

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
    for x, node in list(graph.of.items()):
        if is_broadcast_of_constant(x):
            _split_uses(graph, node)
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
        if node.is_bitcast or source is None:
            graph.put_bitcasts_after(node)
        elif source.is_constant:
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
        elif source.is_array or source.element_type == "opaque":
            graph.put_bitcasts_after(node)

    graph.visit(action)


def _is_recreated(source: Instruction) -> bool:
    opcode = source.opcode
    if source.is_tuple and opcode != "scatter":
        return False  # variadic; or a copy or choice of tuples, which no front end writes
    if opcode == "bitcast-convert":
        return source.rank == source.operand.rank
    return opcode in _RECREATED or opcode in ELEMENTWISE_OPCODES


def _simplify_bitcasts(graph: ShadowGraph, *, sunk: SunkBroadcasts | None) -> None:
    """Merge chains of bitcasts, drop identities, and sink due broadcasts (`HandleBitcast`)."""

    def action(node: Instruction) -> None:
        if node.is_bitcast:
            for bitcast in graph.merged_chain(node):
                operand = bitcast.operand
                if operand.shape.key == bitcast.shape.key:
                    graph.replace(bitcast, operand)
        elif sunk is not None:
            sunk.sink(node)

    graph.visit(action)
