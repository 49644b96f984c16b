"""Rules of MultiOutputFusion, the sibling fusion that targets build on. Codes MO…

Two kernels that read the same array become one kernel with several results.
"""

from dataclasses import dataclass
from typing import Any

from hlofuse.analysis.components import Reachability
from hlofuse.analysis.elementwise import is_constant_effective_scalar
from hlofuse.analysis.in_place import in_place_pairs
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import Shape
from hlofuse.releases import Release
from hlofuse.rules.catalogue import Knob, outcome
from hlofuse.rules.settings import Settings
from hlofuse.rules.verdict import condition, requirement

_FILE = "xla/service/multi_output_fusion.cc"
_PRELIMINARY = f"{_FILE}: MultiOutputFusion::LegalToFusePreliminaryConstraints"
_MAIN = f"{_FILE}: MultiOutputFusion::LegalToFuseMainConstraints"
_WORK_LIST = f"{_FILE}: MultiOutputFusion::CreateFusionWorkListForCurrentComputation"

USERS_CONSIDERED = Knob(
    "multi-output-user-block",
    128,
    "users",
    "Users of an array are considered together only in blocks of this size.",
)


@dataclass(frozen=True, slots=True)
class Siblings:
    """A candidate: `other` merged into `fusion`, both reading the same array."""

    fusion: Instruction
    other: Instruction
    reachability: Reachability
    release: Release
    settings: Settings


def is_profitable_operand(instruction: Instruction) -> bool:
    """Reading it once instead of twice saves something (`IsProfitableOperand`)."""
    return len(instruction.users) >= 2 and not is_constant_effective_scalar(instruction)


def element_shape(instruction: Instruction) -> Shape:
    """The shape a kernel loops over: of a multi-output fusion, its first result's."""
    if instruction.opcode != "fusion":
        return instruction.shape
    root = instruction.fused_root
    return root.operands[0].shape if root.opcode == "tuple" else root.shape


def shared_bytes(a: Instruction, b: Instruction) -> int:
    """Bytes of `b`'s operands that `a` reads as well; a tuple counts as its table of pointers."""
    common = {o for o in a.operands if is_profitable_operand(o)}
    return sum(
        8 * len(o.shape.tuple_shapes) if o.shape.is_tuple else o.shape.byte_size
        for o in b.operands
        if o in common
    )


SAVES_READS = outcome(
    code="MO001",
    title="The two kernels read the same array",
    condition="Both read one array, and all other conditions hold. The pair that shares most bytes is fused"
    " first; of equal pairs, the one found last.",
    why="One kernel reads the shared array once, two would read it twice.",
    mirrors=f"{_FILE}: MultiOutputFusion::Perform, GetProfit",
    allows=True,
)

NOTHING_SHARED = outcome(
    code="MO002",
    title="Nothing is saved",
    condition="The two share no array of more than one element with two or more users.",
    why="Without a shared read, a common kernel saves only a launch, which this pass does not count.",
    mirrors=f"{_FILE}: MultiOutputFusion::GetProfit, IsProfitableOperand",
)

LATER_FUSION = outcome(
    code="MO003",
    title="The pair is considered from the other side",
    condition="The other one is a fusion that comes later in the computation.",
    why="A pair of fusions enters the work list once, when the later of the two is visited.",
    mirrors=_WORK_LIST,
    message="User ID for user is higher",
)


@requirement(
    code="MO011",
    title="The first of the two is not a fusion",
    condition="The instruction that the other one would be fused into is not a fusion.",
    why="This pass extends fusions; it does not create one from two single operations.",
    mirrors=f"{_FILE}: MultiOutputFusion::LegalToFuse",
    message="User not legal to fuse",
)
def first_is_no_fusion(pair: Siblings) -> dict[str, Any] | None:
    return {"opcode": pair.fusion.opcode} if pair.fusion.opcode != "fusion" else None


@requirement(
    code="MO012",
    title="One of the two is unused",
    condition="The two are the same instruction, or one of them has no users and is not the result.",
    why="Dead code is removed soon; as a kernel's output it would stay alive.",
    mirrors=_PRELIMINARY,
    message="User not legal to fuse",
)
def same_or_dead(pair: Siblings) -> dict[str, Any] | None:
    dead = next((x for x in (pair.fusion, pair.other) if not x.users and not x.is_root), None)
    if dead is not None:
        return {"dead": dead.name}
    return {} if pair.fusion is pair.other else None


@requirement(
    code="MO013",
    title="The results of a multi-output fusion are used as a whole",
    condition="One of the two is a multi-output fusion with a user that is not a get-tuple-element.",
    why="Another result changes the tuple's shape, and only get-tuple-elements can adapt to that.",
    mirrors=_PRELIMINARY,
    message="User not legal to fuse",
)
def results_used_as_a_whole(pair: Siblings) -> dict[str, Any] | None:
    for x in (pair.fusion, pair.other):
        if x.is_multi_output_fusion:
            user = next((u for u in x.users if u.opcode != "get-tuple-element"), None)
            if user is not None:
                return {"fusion": x.name, "user": user.name}
    return None


@requirement(
    code="MO014",
    title="One depends on the other",
    condition="A path leads from one of the two to the other, including through earlier fusions.",
    why="The kernel would depend on its own result.",
    advice="If only an earlier multi-output fusion connects them, the order of fusions decided; pairs that"
    " share a larger array come first.",
    mirrors=_PRELIMINARY,
    message="User is connected",
)
def connected(pair: Siblings) -> dict[str, Any] | None:
    return {} if pair.reachability.connected(pair.fusion, pair.other) else None


@requirement(
    code="MO015",
    title="The two loop over different shapes",
    condition="The results differ in type, dimensions or layout. For a multi-output fusion the first result"
    " counts.",
    why="One loop nest computes one element of each result per iteration.",
    advice="If the results differ only in type or layout, convert or transpose afterwards, in the consumer.",
    mirrors="xla/service/cpu/cpu_multi_output_fusion.cc: CpuMultiOutputFusion::ShapesCompatibleForFusion",
    message="User not legal to fuse",
)
def shapes_differ(pair: Siblings) -> dict[str, Any] | None:
    a, b = element_shape(pair.fusion), element_shape(pair.other)
    return None if a.key == b.key else {"shape": str(a), "other_shape": str(b)}


@condition(
    code="MO016",
    title="Both overwrite the same array",
    condition="The two share an operand that each would update in place.",
    why="Only one of the two can use the buffer; in a common kernel neither could.",
    advice="Apply the updates one after the other, or to copies.",
    mirrors=_MAIN,
    message="User not legal to fuse",
)
def both_in_place(pair: Siblings) -> dict[str, Any] | None:
    a, b = pair.fusion, pair.other
    own = {a.operands[p.operand_number] for p in in_place_pairs(a, pair.release)}
    for p in in_place_pairs(b, pair.release) if own else ():
        if b.operands[p.operand_number] in own:
            return {"buffer": b.operands[p.operand_number].name}
    return None


LEGAL = (first_is_no_fusion, same_or_dead, results_used_as_a_whole, connected, shapes_differ, both_in_place)
"""`MultiOutputFusion::LegalToFuse`, in its order."""
