"""The producer of a softmax, which XLA:CPU computes exactly once."""

from __future__ import annotations

from hlofuse.rules.catalogue import Rule, register

SOFTMAX_SHIFT = register(
    Rule(
        code="CPU017",
        title="The input of a softmax is computed once",
        asks="Is the producer elementwise, and does it feed both a row maximum and the subtraction of that "
        "maximum before an exp?",
        why="Computed twice, the two copies may differ in the last bit (one multiplication and addition "
        "fused, the other not); the maximum is then not the maximum of what is shifted, and exp() can "
        "overflow.",
        advice="Nothing: this is for correct results. The value is stored once and read by both kernels.",
        mirrors="xla/service/cpu/cpu_instruction_fusion.cc: CpuInstructionFusion::ComputeGloballyUnfusible, "
        "IsCoupledReductionShiftExpProducer",
        message="operand can not be duplicated",
        history="Not in jaxlib 0.4.35.",
    )
)
