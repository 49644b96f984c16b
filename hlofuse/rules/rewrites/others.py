"""Library fusions, expanders and copies."""

from __future__ import annotations

from hlofuse.rules.catalogue import Rule, register
from hlofuse.rules.rewrites.outcome import rewrites

TRITON_SOFTMAX = rewrites(
    "RW020",
    "triton-softmax-rewriter",
    "A normalization over rows becomes one Triton kernel",
    condition="Does a value meet its own reduction over the last dimension again, spread out, as in a softmax,"
    " and is one tiled kernel faster than those that fusion would make?",
    why="The row stays on the chip: it is read once, though two operations need it.",
    advice="Nothing to do. What follows may still be fused by later passes.",
    mirrors="xla/backends/gpu/transforms/softmax_rewriter_triton.cc: MaybeFuseDiamondImpl",
)
LIBRARY = rewrites(
    "RW021",
    "dot-library-rewriter",
    "Operations are handed to YNNPACK",
    condition="Is it a product, a convolution or a reduction that YNNPACK computes faster? Reductions take in"
    " supported operations around them.",
    why="The library's code for these is faster than generated loops.",
    advice="`--xla_cpu_experimental_ynn_fusion_type=-reduce` leaves reductions to XLA's own fusion.",
    mirrors="xla/backends/cpu/transforms/library_rewriter.cc: LibraryRewriter::ProcessComputation",
)
LOGISTIC = rewrites(
    "RW030",
    "logistic-expander",
    "The logistic function becomes a division and an exponential",
    condition="Is it a logistic operation? It becomes 1 / (1 + exp(-x)).",
    why="No generator of kernels has code for the function itself.",
    advice="Nothing to do: the four operations fuse. A value that only sigmoid read still has one reader.",
    mirrors="xla/hlo/transforms/expanders/logistic_expander.cc: LogisticExpander::ExpandInstruction",
)
COPY = register(
    Rule(
        code="RW040",
        title="A value is copied that another one would overwrite",
        condition="Would two values that live at the same time share memory, as in a loop's carry, an update in"
        " place of an argument that is not donated, or a result that is an argument?",
        why="Without the copy the program would compute something else.",
        advice="Donate the argument (`donate_argnums`), or do not read the old value after the update.",
        mirrors="xla/service/copy_insertion.cc: CopyInsertion::RunImpl",
        allows=True,
        essential=True,
        outcome=True,
        pass_name="copy-insertion",
    )
)
