"""Rules about two kernels that read the same array."""

from typing import Any

from hlofuse.ir.graph import Instruction
from hlofuse.rules.catalogue import essential, outcome, register
from hlofuse.rules.gpu_multi_output_fusion.candidate import SiblingPair
from hlofuse.rules.gpu_multi_output_fusion.shapes import shapes_differ
from hlofuse.rules.priority_fusion.budget import over_budget
from hlofuse.rules.verdict import Verdict, condition

_FILE = "xla/backends/gpu/transforms/multi_output_fusion.cc"
_SMALL_BYTES = 1024

SHARED_READ = outcome(
    code="GM001",
    title="Two kernels that read the same array become one",
    condition="Both read the same array of more than one element, both can be results of one kernel, and all"
    " other conditions hold. No cost is estimated.",
    why="The array is read once instead of twice, and one launch is saved.",
    mirrors=f"{_FILE}: MultiOutputFusion::FuseSiblings",
    allows=True,
)
IS_CONSTANT = register(
    code="GM003",
    title="A shared constant does not merge kernels",
    condition="The shared operand is a constant.",
    why="Constants are part of the code of every kernel that reads them.",
    mirrors=f"{_FILE}: MultiOutputFusion::DoMultiOutputFusion",
    message="… is a constant.",
)
IS_SCALAR = register(
    code="GM004",
    title="A shared scalar does not merge kernels",
    condition="The shared array has a single element.",
    why="Reading it once instead of twice saves nothing.",
    mirrors=f"{_FILE}: IsProfitableOperand",
    message="Operand … is not profitable",
)
CONNECTED = essential(
    code="GM010",
    title="One depends on the other",
    condition="A path leads from one of the two to the other.",
    why="The kernel would depend on its own result.",
    mirrors=f"{_FILE}: CanFuseSiblings",
    message="… are connected",
)


def siblings_connected(pair: SiblingPair) -> Verdict | None:
    a, b, reaches = pair.fusion, pair.other, pair.state.reaches
    if reaches(a, b) or reaches(b, a):
        return Verdict(CONNECTED, {}, f"{a.name} and {b.name} are connected")
    return None


def sibling_shapes_differ(pair: SiblingPair) -> Verdict | None:
    return shapes_differ(pair.fusion, pair.other, pair.state.model, pair.state.settings)


@condition(
    code="GM016",
    title="The two read different parts of the array",
    condition="The shared array has at least 1024 bytes, each of the two reads it through one slice, and the"
    " slices do not overlap.",
    why="No element is read twice, so one kernel would save no traffic.",
    mirrors=f"{_FILE}: ParameterSlicesAreNonOverlapping",
    message="slices are non-overlapping",
)
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


@condition(
    code="GM017",
    title="One updates a slice in place",
    condition="The result of one of the two is a dynamic-update-slice.",
    why="The emitter updates in place only if the update is the kernel's single result.",
    mirrors=f"{_FILE}: LegalToFuse",
    message="can't fuse multiple DUSs",
)
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
