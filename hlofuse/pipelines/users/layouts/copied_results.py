"""Results that layout assignment copied to the layout that is asked for.

Where one of them has another layout all are read out of the tuple that returned them, and a new tuple returns
them or their copies (`CreateCopyWithNewLayout`, `xla/service/layout_assignment.cc`).
AlgebraicSimplifier takes the elements away (`HandleGetTupleElement`), once all values have been visited.
"""

from __future__ import annotations

from hlofuse.analysis.custom_calls import is_library_convolution
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import name_before_renaming
from hlofuse.pipelines.shadow_graph import Node, ShadowGraph


class Element(Node):
    """What is read out of the tuple, at the place `index`."""

    __slots__ = ("index",)

    def __init__(self, of: Node, index: int) -> None:
        super().__init__(None, of.shape, [of])
        self.index = index

    @property
    def value(self) -> Node:
        """What the tuple has there."""
        return self.operands[0].operands[self.index]


def put_results_together(graph: ShadowGraph) -> frozenset[Instruction]:
    """Have the root read its operands, or what they copy, out of a tuple, the last user of each.

    Which are copied. Convolutions are left as they are: fused ones were made anew since.
    """
    root = graph.root
    if root.source is None or root.source.opcode != "tuple":
        return frozenset()
    copied = frozenset(o.source.operands[0] for o in root.operands if o.source and _is_copy(o.source))
    if not copied or any(is_library_convolution(u) for x in copied for u in x.users):
        return frozenset()
    readers = {o: (o, o.operands[0]) if o.source and _is_copy(o.source) else (root, o) for o in root.operands}
    for reader, value in readers.values():
        value.users.remove(reader)
    together = graph.add(Node(None, root.shape, [value for _, value in readers.values()]))
    for k, (operand, (reader, _)) in enumerate(readers.items()):
        element = graph.add(Element(together, k))
        if reader is root:
            root.operands = [element if o is operand else o for o in root.operands]
        else:
            reader.operands = [element]
        element.users.append(reader)
    return copied


def _is_copy(x: Instruction) -> bool:
    """A copy bears the name of what it copies, which an element of a tuple does not have."""
    if x.opcode != "transpose" or len(x.users) > 1:
        return False
    return not x.op_name and name_before_renaming(x).root == "transpose"
