"""Rules of the passes before PriorityFusion: VariadicOpSplitter (VS…), SortIotaFusion (SI…)."""

from __future__ import annotations

from hlofuse.rules.catalogue import Knob, Rule, register

MAX_CONCATENATE_OPERANDS = Knob(
    "gpu-max-concatenate-operands", 128, "operands", "A concatenate with more is split into several."
)

MANY_OPERANDS = register(
    Rule(
        code="VS001",
        title="A concatenate of very many arrays is split",
        asks="Has a concatenate more than 128 operands? Batches of 128 are concatenated first, then the "
        "results; "
        "an incomplete last batch waits for the next round.",
        why="Kernel parameters live in a small space on the GPU.",
        advice="Concatenate in two steps yourself to choose what goes together, or stack the parts as "
        "they are made.",
        mirrors="xla/backends/gpu/transforms/variadic_op_splitter.cc: SplitConcatenate",
        allows=True,
        knobs=(MAX_CONCATENATE_OPERANDS,),
    )
)
IOTA_INTO_SORT = register(
    Rule(
        code="SI001",
        title="An iota is made inside the sort that reads it",
        asks="Is an operand of a sort an iota (as for argsort and top-k)?",
        why="The sort's kernel can count by itself; the iota need not be written and read.",
        advice="Nothing to do.",
        mirrors="xla/backends/gpu/transforms/sort_iota_fusion.cc: SortIotaFusionGroupVisitor::HandleSort",
        allows=True,
    )
)
