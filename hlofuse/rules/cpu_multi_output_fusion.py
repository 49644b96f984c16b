"""Rules CpuMultiOutputFusion adds to the shared ones. Codes MO02…"""

from typing import Any

from hlofuse.analysis.cpu_predicates import is_supported_elemental_op
from hlofuse.ir.graph import Instruction
from hlofuse.rules import multi_output_fusion as base
from hlofuse.rules.catalogue import Knob
from hlofuse.rules.multi_output_fusion import Siblings
from hlofuse.rules.verdict import condition, requirement

MAX_OPERANDS = Knob(
    "cpu-multi-output-operands", 20, "operands", "A kernel of so many operands is not extended."
)


@condition(
    "MO021",
    "A kernel with many operands is not extended",
    message="User not legal to fuse",
    knobs=(MAX_OPERANDS,),
)
def many_operands(pair: Siblings) -> dict[str, Any] | None:
    counts = [len(pair.fusion.operands), len(pair.other.operands)]
    return {"operands": counts} if max(counts) >= pair.settings.value(MAX_OPERANDS) else None


@requirement(
    "MO022",
    "A constant is not made a kernel's result",
    message="User is not fusible, or is the instruction itself",
)
def is_constant(instruction: Instruction) -> dict[str, Any] | None:
    return {} if instruction.opcode == "constant" else None


@requirement(
    "MO023",
    "The operation cannot be part of a multi-output kernel",
    message="User is not fusible, or is the instruction itself",
)
def not_emitted(instruction: Instruction) -> dict[str, Any] | None:
    opcode = instruction.opcode
    if instruction.fusion_kind == "kLoop" and instruction.fused_root.opcode != "dot":
        return None
    return {"opcode": opcode} if opcode == "dot" or not is_supported_elemental_op(opcode) else None


CANDIDATE = (is_constant, not_emitted)
"""`CpuMultiOutputFusion::IsFusible`, in its order; its first question (is the computation run inside a
fusion?) is asked once for the computation."""

LEGAL = (many_operands, *base.LEGAL)
"""`CpuMultiOutputFusion::LegalToFuse`, in its order."""
