"""Operations that every user had one of its own of, until the last CSE before fusion made them one.

The text shows one with many users; the passes in between saw many with one user each, and CSE lists the
users of the one it keeps in the order of its walk. They are:

- broadcasts of constants: HostOffloadLegalize copies them for each use (`DuplicateBroadcastForEachUse`,
  `xla/hlo/transforms/host_offload_legalize.cc`);
- transposes in front of library calls, scatters and gathers: LayoutAssignment copies an operand for each
  use (`CopyOperandIfLayoutsDiffer`, `xla/service/layout_assignment.cc`), and so do the simplifiers of the
  latter two;
- converts in front of what cannot compute in less than single precision
  (`xla/service/float_normalization.cc`), which come before the last of the three layout normalizations.
"""

from __future__ import annotations

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.shadow_graph import Node, ShadowGraph
from hlofuse.pipelines.users.floats.inserted_converts import is_widening

_ANY_LAYOUT = frozenset({"custom-call", "scatter", "gather"})
_MOVES = frozenset({"bitcast", "transpose"})


def split_broadcasts(graph: ShadowGraph) -> None:
    """A broadcast of a constant for each use."""
    for x, node in list(graph.of.items()):
        if is_broadcast_of_constant(x):
            _split(graph, node)


def split_transposes(graph: ShadowGraph) -> None:
    """A transpose, with the bitcasts around it, for each use by something with a layout of its own."""
    for x, node in reversed(list(graph.of.items())):
        if (
            x.opcode in _MOVES
            and len(node.users) > 1
            and _moved(node)
            and all(map(_wants_layout, node.users))
        ):
            _split(graph, node)


def split_widenings(graph: ShadowGraph) -> None:
    """A convert to single precision for each use."""
    for node in list(graph.nodes):
        source = None if node.dead or node.is_bitcast else node.source
        if source is not None and is_widening(source) and source.operands[0].shape.element_type == "bf16":
            _split(graph, node)


def _moved(node: Node) -> bool:
    """It is a transpose or a bitcast of one."""
    while node.is_bitcast and node.operands:
        node = node.operands[0]
    return node.source is not None and node.source.opcode == "transpose"


def _wants_layout(user: Node) -> bool:
    source = user.source
    if source is None:
        return False
    if source.opcode in _MOVES:
        return all(map(_wants_layout, user.users))
    return source.opcode in _ANY_LAYOUT or source.fusion_kind == "kCustom"


def _split(graph: ShadowGraph, node: Node) -> None:
    """Give every use but the first an operation of its own."""
    uses = [(user, k) for user in node.users for k, o in enumerate(user.operands) if o is node]
    for user, k in uses[1:]:
        own = graph.add(Node(node.source, node.shape, list(node.operands), is_bitcast=node.is_bitcast))
        user.operands[k] = own
        own.users = [user]
        if node not in user.operands:
            node.remove_user(user)


def merge_equals(graph: ShadowGraph) -> None:
    """`HloCSE`: the first of equal operations takes the users of all."""
    first: dict[tuple[object, ...], Node] = {}
    for node in graph.post_order():
        if node.dead or not node.operands:
            continue
        source: Instruction | None = None if node.is_bitcast else node.source
        if source is None and not node.is_bitcast:
            continue
        kept = first.setdefault((source, node.shape, *map(id, node.operands)), node)
        if kept is not node:
            graph.replace(node, kept)
