"""Library fusions, expanders and copies."""

from __future__ import annotations

from hlofuse.rules.rewrites.outcome import rewrites

TRITON_SOFTMAX = rewrites(
    "RW020",
    "triton-softmax-rewriter",
    "A normalization over rows becomes one Triton kernel",
    condition="Does a value meet its own reduction over the last dimension again, spread out, as in a"
    " softmax, and is one tiled kernel faster than those that fusion would make?",
    why="The row stays on the chip: it is read once, though two operations need it.",
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
    mirrors="xla/hlo/transforms/expanders/logistic_expander.cc: LogisticExpander::ExpandInstruction",
)
BATCH_NORM = rewrites(
    "RW031",
    "batchnorm_expander",
    "A batch normalization becomes plain operations",
    condition="Is it a batch normalization, for training, for inference, or its gradient? It becomes the"
    " sums, means and elementwise operations that compute it.",
    why="No generator of kernels has code for the operation itself.",
    mirrors="xla/service/batchnorm_expander.cc: BatchNormExpanderVisitor",
)
RANDOM_BITS = rewrites(
    "RW032",
    "rng-bit-generator-expander",
    "Random bits become the arithmetic of their generator",
    condition="Is it an operation that gives random bits? It becomes a counter and the rounds of Philox or"
    " ThreeFry on it.",
    why="Plain operations fuse with what uses the numbers, and give the same numbers on every device.",
    advice="The rounds are computed again in each kernel that they fuse into.",
    mirrors="xla/hlo/transforms/expanders/rng_bit_generator_expander.cc:"
    " RngBitGeneratorExpander::ExpandInstruction",
    essential=True,
)
RANDOM_NUMBERS = rewrites(
    "RW033",
    "rng-expander",
    "Random numbers become the arithmetic of Philox",
    condition="Is it a uniform or normal distribution? It becomes a counter, the rounds of Philox and the"
    " arithmetic from bits to numbers.",
    why="No generator of kernels has code for the operation itself.",
    mirrors="xla/hlo/transforms/expanders/rng_expander.cc: RngExpander::ExpandInstruction",
    essential=True,
)
COPY = rewrites(
    "RW040",
    "copy-insertion",
    "A value is copied that another one would overwrite",
    condition="Would two values that live at the same time share memory, as in a loop's carry, an update"
    " in place of an argument that is not donated, or a result that is an argument?",
    why="Without the copy the program would compute something else.",
    advice="Donate the argument (`donate_argnums`), or do not read the old value after the update.",
    mirrors="xla/service/copy_insertion.cc: CopyInsertion::RunImpl",
    essential=True,
)
COPY_IN_FUSION = rewrites(
    "RW041",
    "copy_fusion",
    "A fusion writes the copy of its result itself",
    condition="Is a result of an elementwise fusion copied as it is, outside loops, and is there room for"
    " another output?",
    why="A kernel that writes its result twice saves the launch of the copy and reading it again.",
    mirrors="xla/backends/gpu/transforms/copy_fusion.cc: CopyFusion::DoCopyFusion",
)
LAYOUT_COPY = rewrites(
    "RW042",
    "layout-assignment",
    "A value is copied into the layout that its reader requires",
    condition="Does the reader take its operand in one order of dimensions in memory, and has the value"
    " another? Library calls, custom calls, arguments and results fix layouts; other operations follow.",
    why="The same array is in memory in one order only. Passes behind make the copy a transpose, which may"
    " fuse with its neighbours.",
    advice="Transpose where it is cheap, on the weights or once before a loop, or give the array in the"
    " order that the reader takes.",
    mirrors="xla/service/layout_assignment.cc: LayoutAssignment::CopyOperandIfLayoutsDiffer",
    essential=True,
)
