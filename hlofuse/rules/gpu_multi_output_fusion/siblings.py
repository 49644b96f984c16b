"""Rules about two kernels that read the same array."""

from typing import Any

from hlofuse.ir.graph import Instruction
from hlofuse.rules.catalogue import essential, outcome, register
from hlofuse.rules.gpu_multi_output_fusion.candidate import SiblingPair
from hlofuse.rules.gpu_multi_output_fusion.shapes import shapes_differ
from hlofuse.rules.priority_fusion.budget import over_budget
from hlofuse.rules.verdict import Verdict, condition

_SMALL_BYTES = 1024

SHARED_READ = outcome("GM001", "Two kernels that read the same array become one", allows=True)
IS_CONSTANT = register("GM003", "A constant is no reason to join kernels", message="… is a constant.")
IS_SCALAR = register(
    "GM004", "One element is no reason to join kernels", message="Operand … is not profitable"
)
CONNECTED = essential("GM010", "One depends on the other", message="… are connected")


def siblings_connected(pair: SiblingPair) -> Verdict | None:
    a, b, reaches = pair.fusion, pair.other, pair.state.reaches
    if reaches(a, b) or reaches(b, a):
        return Verdict(CONNECTED, {}, f"{a.name} and {b.name} are connected")
    return None


def sibling_shapes_differ(pair: SiblingPair) -> Verdict | None:
    return shapes_differ(pair.fusion, pair.other, pair.state.model, pair.state.settings)


@condition("GM016", "The two read different parts of the array", message="slices are non-overlapping")
def differing_slices(pair: SiblingPair) -> dict[str, Any] | None:
    shape = pair.parent.shape
    if shape.is_tuple or shape.byte_size < _SMALL_BYTES:
        return None
    a, b = _only_slice(pair.parent, pair.fusion), _only_slice(pair.parent, pair.other)
    if a is None or b is None:
        return None
    for dimension, (one, two) in enumerate(zip(a.attributes["slice"], b.attributes["slice"], strict=False)):
        if not (one.start < two.limit and two.start < one.limit):
            return {"dimension": dimension, "slices": [[one.start, one.limit], [two.start, two.limit]]}
    return None


@condition("GM017", "One updates a slice in place", message="can't fuse multiple DUSs")
def updates_in_place(pair: SiblingPair) -> dict[str, Any] | None:
    for x in (pair.fusion, pair.other):
        if x.opcode == "fusion" and x.fused_root.opcode == "dynamic-update-slice":
            return {"update": x.name}
    return None


def siblings_over_budget(pair: SiblingPair) -> Verdict | None:
    state = pair.state
    return over_budget(pair.fusion, pair.other, state.model, state.settings, producer_consumer=False)


SIBLING_RULES = (
    siblings_connected,
    sibling_shapes_differ,
    differing_slices,
    updates_in_place,
    siblings_over_budget,
)
"""`CanFuseSiblings`, in its order."""


def _only_slice(parent: Instruction, reader: Instruction) -> Instruction | None:
    """The slice through which `reader` sees all it sees of `parent` (`FindUniqueSlice`)."""
    if reader.opcode == "slice":
        return reader
    if reader.opcode != "fusion":
        return None
    found: Instruction | None = None
    for number, operand in enumerate(reader.operands):
        if operand is parent:
            users = reader.fused_computation.parameters[number].users
            if found is not None or len(users) != 1:
                return None
            found = _only_slice(reader.fused_computation.parameters[number], users[0])
            if found is None:
                return None
    return found
