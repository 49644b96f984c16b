"""What became of a matrix product of the program that is not a library call."""

from __future__ import annotations

from typing import Any

from hlofuse.analysis.reduced_dots import product_as_reduce
from hlofuse.ir.graph import Instruction
from hlofuse.rules.catalogue import Rule
from hlofuse.rules.gpu_emitters.question import GpuKernel
from hlofuse.rules.verdict import asks


@asks(
    Rule(
        code="EM060",
        title="A product with a vector is a multiply and a reduce",
        asks="Was the operation a dot in the program (by its metadata), and are there a multiply and a "
        "reduce, "
        "and no dot, now?",
        why="DotStrengthReduction rewrites a product of a vector and a matrix, before any library is "
        "considered, where it is vector by vector, or small (10 million elements of work), or of a type that "
        "Triton's products do not take: such a product is bound by memory, and as multiply and reduce it "
        "fuses with "
        "what is around it.",
        advice="Usually right as it is. To have a library call, batch the vectors into a matrix.",
        mirrors="xla/backends/gpu/transforms/dot_strength_reduction.cc: "
        "DotStrengthReduction::InstructionMatchesPattern",
        allows=True,
        essential=True,
        runs="multiply and reduce",
    )
)
def strength_reduced(kernel: GpuKernel) -> dict[str, Any] | None:
    return product_as_reduce(kernel.instruction)


@asks(
    Rule(
        code="EM061",
        title="A product no library takes is a loop",
        asks="Is there a dot in a kernel that XLA writes the code for?",
        why="It is tiny (sides times contracted length below 100), or neither cuBLASLt nor Triton takes its "
        "types (32-bit integers, say). Each thread then adds up one element of the result by itself.",
        advice="Convert the operands to a type that a library takes (f32, bf16, or s8 with an s32 result). A "
        "tiny product is right as it is.",
        mirrors="xla/backends/gpu/transforms/gemm_rewriter.cc: GemmRewriter; "
        "xla/backends/gpu/transforms/gemm_fusion.cc: GemmFusion",
        allows=True,
        essential=True,
        runs="loop emitter",
    )
)
def not_a_library_call(kernel: GpuKernel) -> dict[str, Any] | None:
    if not kernel.is_generated or kernel.config_kind:
        return None
    dot = next((i for i in _inside(kernel.instruction) if i.opcode == "dot"), None)
    if dot is None:
        return None
    factors = " × ".join(o.shape.text_without_layout for o in dot.operands[:2])
    return {"product": f"{factors} → {dot.shape.text_without_layout}"}


def _inside(instruction: Instruction) -> list[Instruction]:
    if instruction.opcode != "fusion":
        return [instruction]
    return list(instruction.fused_computation)


RULES = (strength_reduced, not_a_library_call)
