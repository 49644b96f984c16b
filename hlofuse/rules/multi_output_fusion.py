"""Rules of MultiOutputFusion, codes MO…: two kernels that read the same array become one with two results."""

from hlofuse.analysis.components import Reachability
from hlofuse.analysis.cpu_predicates import UNSUPPORTED_OPCODES
from hlofuse.analysis.elementwise import is_constant_effective_scalar
from hlofuse.analysis.in_place import in_place_pairs
from hlofuse.ir.graph import Instruction
from hlofuse.ir.record import Record
from hlofuse.ir.shape import Shape
from hlofuse.releases import Release
from .catalogue import Knob, outcome
from .settings import Settings
from .verdict import Answer, condition, requirement

USERS_CONSIDERED = Knob("multi-output-user-block", 128)


class Siblings(Record):
    """A candidate: `other` merged into `fusion`, both reading the same array."""

    fusion: Instruction
    other: Instruction
    reachability: Reachability
    release: Release
    settings: Settings


def is_profitable_operand(instruction: Instruction) -> bool:
    """Reading it once instead of twice saves something (`IsProfitableOperand`)."""
    return instruction.user_count >= 2 and not is_constant_effective_scalar(instruction)


def element_shape(instruction: Instruction) -> Shape:
    """The shape a kernel loops over: of a multi-output fusion, its first result's."""
    return instruction.fused_root.outputs[0].shape if instruction.is_fusion else instruction.shape


def shared_bytes(a: Instruction, b: Instruction) -> int:
    """Bytes of `b`'s operands that `a` reads as well; a tuple counts as its table of pointers."""
    common = {o for o in a.operands if is_profitable_operand(o)}
    return sum(8 * o.tuple_size if o.is_tuple else o.byte_size for o in b.operands if o in common)


SAVES_READS = outcome("MO001", "The two kernels read the same array", allows=True)
NOTHING_SHARED = outcome("MO002", "Nothing is saved")
LATER_FUSION = outcome(
    "MO003", "The pair is considered from the other side", message="User ID for user is higher"
)


@requirement("MO011", "The first of the two is not a fusion", message="User not legal to fuse")
def first_is_no_fusion(pair: Siblings) -> Answer:
    return {"opcode": pair.fusion.opcode} if not pair.fusion.is_fusion else None


@requirement("MO012", "One of the two is unused", message="User not legal to fuse")
def same_or_dead(pair: Siblings) -> Answer:
    dead = next((x for x in (pair.fusion, pair.other) if not x.users and not x.is_root), None)
    if dead is not None:
        return {"dead": dead.name}
    return {} if pair.fusion is pair.other else None


@requirement(
    "MO013", "The results of a multi-output fusion are used as a whole", message="User not legal to fuse"
)
def results_used_as_a_whole(pair: Siblings) -> Answer:
    for x in (pair.fusion, pair.other):
        if x.is_multi_output_fusion:
            user = next((u for u in x.users if not u.is_get_tuple_element), None)
            if user is not None:
                return {"fusion": x.name, "user": user.name}
    return None


@requirement("MO014", "One depends on the other", message="User is connected")
def connected(pair: Siblings) -> bool:
    return pair.reachability.connected(pair.fusion, pair.other)


@requirement("MO015", "The two loop over different shapes", message="User not legal to fuse")
def shapes_differ(pair: Siblings) -> Answer:
    a, b = element_shape(pair.fusion), element_shape(pair.other)
    return None if a.key == b.key else {"shape": str(a), "other_shape": str(b)}


@condition("MO016", "Both overwrite the same array", message="User not legal to fuse")
def both_in_place(pair: Siblings) -> Answer:
    a, b = pair.fusion, pair.other
    own = {a.operands[p.operand_number] for p in in_place_pairs(a, pair.release)}
    for p in in_place_pairs(b, pair.release) if own else ():
        if b.operands[p.operand_number] in own:
            return {"buffer": b.operands[p.operand_number].name}
    return None


LEGAL = (first_is_no_fusion, same_or_dead, results_used_as_a_whole, connected, shapes_differ, both_in_place)
"""`MultiOutputFusion::LegalToFuse`, in its order."""


# The rules that CpuMultiOutputFusion adds: codes MO02….

MAX_OPERANDS = Knob("cpu-multi-output-operands", 20)


@condition(
    "MO021",
    "A kernel with many operands is not extended",
    message="User not legal to fuse",
    knobs=(MAX_OPERANDS,),
)
def many_operands(pair: Siblings) -> Answer:
    counts = [pair.fusion.operand_count, pair.other.operand_count]
    return {"operands": counts} if max(counts) >= pair.settings.value(MAX_OPERANDS) else None


@requirement(
    "MO022",
    "A constant does not become a kernel's result",
    message="User is not fusible, or is the instruction itself",
)
def is_constant(instruction: Instruction) -> bool:
    return instruction.is_constant


@requirement(
    "MO023",
    "The operation cannot be part of a multi-output kernel",
    message="User is not fusible, or is the instruction itself",
)
def not_emitted(instruction: Instruction) -> Answer:
    opcode = instruction.opcode
    if instruction.fusion_kind == "kLoop" and not instruction.fused_root.is_dot:
        return None
    return {"opcode": opcode} if opcode == "dot" or opcode in UNSUPPORTED_OPCODES else None


CPU_CANDIDATE = (is_constant, not_emitted)
"""`CpuMultiOutputFusion::IsFusible`, in its order; its first question is asked for the computation."""
CPU_LEGAL = (many_operands, *LEGAL)  # `CpuMultiOutputFusion::LegalToFuse`, in its order
