"""The users of values that layout assignment gave another layout than row-major.

LayoutNormalization (`xla/service/layout_normalization.cc`) makes every operation on such a value anew,
row-major, with a bitcast back behind it, and puts two bitcasts behind every such value that it does not make
anew, its own bitcasts included. AlgebraicSimplifier (`HandleBitcast`) takes them away again one by one. Both
are played here on a shadow of the graph.

Which values had another layout is told from ids: layout normalization runs right behind ReshapeDecomposer,
which makes the first bitcasts, so that what is younger than these and bears the name of its opcode was made
by it; element-wise operations have the layout of their operands.
"""

from __future__ import annotations

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import name_before_renaming, operation
from hlofuse.pipelines.shadow_graph import Node, ShadowGraph, give_order_of
from hlofuse.pipelines.visits import uses_in_order
from hlofuse.pipelines.widened import is_inserted_convert, is_widening

_AS_THEIR_OPERANDS = ELEMENTWISE_OPCODES | frozenset(
    "concatenate dynamic-slice dynamic-update-slice pad reverse slice".split()
)
_MADE_ANEW = _AS_THEIR_OPERANDS | {"broadcast", "iota", "reduce-window", "transpose"}
_ROW_MAJOR, _OTHER = 0, 1


def restore_normalized_users(computation: Computation, *, ids_known: bool) -> frozenset[Instruction]:
    """Put the users of what had another layout into XLA's order; which those are."""
    anew = _made_anew(computation, ids_known=ids_known)
    other = _in_other_layout(computation, anew)
    if not other:
        return frozenset()
    graph = ShadowGraph(computation)
    _Normalization(graph, anew, other).run()
    _Simplification(graph, other).run()
    found: set[Instruction] = set()
    uses = uses_in_order(computation)
    for node in graph.nodes:
        x = node.source
        if node.dead or x is None or x not in other or is_widening(x):
            continue
        if x.opcode == "transpose" and x.operands[0].opcode == "parameter":
            # Layout assignment made a copy for every use; CSE made them one, in the order of the walk.
            x.users.sort(key=lambda user: uses[x, user])
            found.add(x)
            continue
        if len(x.users) > 1 and give_order_of(node, x):
            found.add(x)
    return frozenset(found)


# ---------------------------------------------------------------- what had which layout


def _made_anew(computation: Computation, *, ids_known: bool) -> frozenset[Instruction]:
    """What layout normalization made. It did so with all of what shares a layout or with none of it."""
    first = min((x.id for x in computation if x.opcode == "bitcast" or _was_copied_input(x)), default=None)
    if first is None:
        return frozenset()
    if not ids_known:
        first = -1
    likely = {
        x
        for x in computation
        if x.id > first and x.opcode in _MADE_ANEW and name_before_renaming(x).root == x.opcode
    }
    anew = {x for group in _of_one_layout(computation) for x in _anew_of(group, likely)}
    # Float normalization, later on, put these in front of or behind what had been made anew.
    late = [x for x in computation if is_inserted_convert(x)]
    return frozenset(anew.union(x for x in late if anew.intersection((*x.operands, *x.users))))


def _anew_of(group: list[Instruction], likely: set[Instruction]) -> list[Instruction]:
    for x in group:
        if x.opcode == "parameter" or (
            x.opcode in _AS_THEIR_OPERANDS and x not in likely and not is_inserted_convert(x)
        ):
            return []
    return [x for x in group if x in likely and not is_inserted_convert(x)]


def _of_one_layout(computation: Computation) -> list[list[Instruction]]:
    leader: dict[Instruction, Instruction] = {}

    def find(x: Instruction) -> Instruction:
        up = leader.setdefault(x, x)
        while up is not x:
            leader[x] = leader[up]
            x = leader[x]
            up = leader[x]
        return x

    for x in computation:
        if _may_have_layouts(x):
            find(x)
            for user in x.users:
                if _shares_layout(user, x):
                    leader[find(user)] = find(x)
    groups: dict[Instruction, list[Instruction]] = {}
    for x in leader:
        groups.setdefault(find(x), []).append(x)
    return list(groups.values())


def _may_have_layouts(x: Instruction) -> bool:
    return x.shape.is_array and x.shape.rank > 1 and x.opcode != "constant"


def _shares_layout(user: Instruction, x: Instruction) -> bool:
    return user.opcode in _AS_THEIR_OPERANDS and _may_have_layouts(user) and user.shape.rank == x.shape.rank


def _in_other_layout(computation: Computation, anew: frozenset[Instruction]) -> frozenset[Instruction]:
    other: set[Instruction] = set()
    for x in computation.post_order():
        if _may_have_layouts(x) and _had_other_layout(x, anew, other):
            other.add(x)
    return frozenset(other)


def _had_other_layout(x: Instruction, anew: frozenset[Instruction], other: set[Instruction]) -> bool:
    if x in anew and x.opcode in _AS_THEIR_OPERANDS:
        return True
    same = [u for u in x.users if _shares_layout(u, x) and not is_inserted_convert(u)]
    if same:
        return any(u in anew for u in same)
    if x.opcode == "reduce":
        return x.shape.rank > 2 and x.operands[0] in other
    if x.opcode == "transpose":
        return x in anew and _was_copy(x) and x.operands[0] not in other
    return x in anew and x.opcode in {"broadcast", "iota", "reduce-window"}


# ---------------------------------------------------------------- the two passes


class _Normalization:
    """`LayoutNormalizationVisitor`."""

    def __init__(
        self, graph: ShadowGraph, anew: frozenset[Instruction], other: frozenset[Instruction]
    ) -> None:
        self._graph = graph
        self._anew = anew
        self._other = other

    def run(self) -> None:
        for node in self._graph.nodes:
            node.shape = _OTHER if node.source in self._other else _ROW_MAJOR
        self._graph.visit(self._handle)

    def _handle(self, node: Node) -> None:
        source = node.source
        if source is None or source not in self._anew:
            if node.shape == _OTHER:
                self._graph.put_bitcasts_behind(node, _ROW_MAJOR)
            return
        graph = self._graph
        operands = [o.operands[0] if _is_shadow(o) else o for o in node.operands]
        made = graph.add(Node(source, _ROW_MAJOR, operands))
        graph.visited.add(made)
        graph.replace(node, graph.add(Node(None, _OTHER, [made], is_bitcast=True)) if node.shape else made)


class _Simplification:
    """`HandleBitcast`: chains become one, what changes nothing goes.

    What is left in the end are bitcasts for those that still wanted another layout; they go when what reads
    them has been made anew in turn (`ReductionLayoutNormalizer`, gemms).
    """

    def __init__(self, graph: ShadowGraph, other: frozenset[Instruction]) -> None:
        self._graph = graph
        self._other = other

    def run(self) -> None:
        graph = self._graph
        graph.visit(lambda node: self._handle(node) if _is_shadow(node) else None)
        left: list[Node] = []
        graph.visit(lambda node: left.append(node) if _is_shadow(node) else None)
        self._merge_broadcasts()
        for bitcast in left:
            source = bitcast.operands[0]
            for user in list(bitcast.users):
                user.operands = [source if o is bitcast else o for o in user.operands]
                source.add_user(user)
                bitcast.remove_user(user)
            source.remove_user(bitcast)
            bitcast.dead = True

    def _handle(self, node: Node) -> None:
        graph = self._graph
        for bitcast in graph.merged_chain(node, _is_shadow):
            operand = bitcast.operands[0]
            if operand.shape == bitcast.shape:
                graph.replace(bitcast, operand)
            elif _is_broadcast(operand) and _behind_bitcasts(operand.operands[0]) not in self._other:
                # Where the operand had another layout as well the broadcast would be a transpose, too.
                anew = Node(operand.source, bitcast.shape, list(operand.operands))
                graph.replace(bitcast, graph.add(anew))

    def _merge_broadcasts(self) -> None:
        """`HloCSE`: of the broadcasts that bitcasts became, the one met first stays."""
        nodes: list[Node] = []
        self._graph.visit(lambda node: nodes.append(node) if _is_broadcast(node) else None)
        kept: dict[Instruction | None, Node] = {}
        for node in nodes:
            first = kept.setdefault(node.source, node)
            if first is not node:
                self._graph.replace(node, first)


def _was_copied_input(x: Instruction) -> bool:
    """A parameter that layout assignment copied, before any bitcast was made."""
    if x.opcode != "transpose" or x.operands[0].opcode != "parameter":
        return False
    return _was_copy(x) and x.op_name == x.operands[0].op_name


def _behind_bitcasts(node: Node) -> Instruction | None:
    while _is_shadow(node):
        node = node.operands[0]
    return node.source


def _was_copy(x: Instruction) -> bool:
    """A transpose that is a copy to another layout, normalized: it bears the name of what was copied."""
    return (
        x.opcode == "transpose"
        and name_before_renaming(x).root == "transpose"
        and bool(x.op_name)
        and operation(x) != "transpose"
    )


def _is_broadcast(node: Node) -> bool:
    return node.source is not None and node.source.opcode == "broadcast"


def _is_shadow(node: Node) -> bool:
    """A bitcast that the normalization put in."""
    return node.source is None
