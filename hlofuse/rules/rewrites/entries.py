"""Rewrites of loops, reductions and products, library fusions, expanders and copies."""

from hlofuse.rules.rewrites.outcome import cuts, rewrites

STRENGTH_REDUCED = rewrites(
    "RW010",
    "dot-strength-reduction",
    "A matrix-vector product becomes multiply and reduce",
    condition="An operand of the dot is a vector, and the dot is small, of two vectors, or of types that no"
    " matmul kernel supports.",
    why="It is memory-bound, and multiply and reduce fuse with their neighbours.",
    advice="Batch several vectors into a matrix to get a matmul.",
    mirrors="xla/backends/gpu/transforms/dot_strength_reduction.cc:"
    " DotStrengthReduction::InstructionMatchesPattern",
)
WIDENED = rewrites(
    "RW015",
    "gemv-rewriter",
    "A matrix-vector product becomes a matmul with one column",
    condition="One operand of the dot has no dimension of its own, and all layouts are the default.",
    why="Matmul kernels support matrices only. No data moves.",
    mirrors="xla/hlo/transforms/simplifiers/gemv_rewriter.cc: GemvRewriterVisitor::HandleDot",
)
SPLIT_K = rewrites(
    "RW011",
    "splitk-rewriter",
    "A dot with a long contracting dimension is split (split-K)",
    condition="The dot would leave cores idle, and XLA estimates that a batch of shorter dots and a sum are"
    " faster.",
    why="Few output tiles give few blocks; parts of the contracting dimension give more.",
    advice="The sum is a separate kernel, and operations after the dot fuse with the sum.",
    mirrors="xla/backends/gpu/transforms/splitk_rewriter.cc: ChooseSplitK",
)
TRITON_PRODUCT = rewrites(
    "RW012",
    "triton-gemm-rewriter",
    "A dot becomes a Triton GEMM fusion with its neighbours",
    condition="Triton can generate the dot on this device. Operations on its operands, and its readers one"
    " after the other, are included as long as their dimensions can be propagated.",
    why="Neighbours are computed on the tiles of the dot.",
    mirrors="xla/backends/gpu/transforms/gemm_fusion.cc: CreateDotFusion",
)
EPILOGUE_READERS = cuts(
    "RW013",
    "triton-gemm-rewriter",
    "The GEMM fusion ends at a value with several readers",
    condition="More than one operation reads the fusion's current result, as in v·|v|, silu or gelu. With one"
    " reader, such as tanh or relu, the fusion continues.",
    why="The fusion grows along one chain and writes one result; XLA does not check whether the readers join"
    " again.",
    advice="Use an activation that reads the dot once, such as tanh or maximum, if equivalent; otherwise the"
    " activation is a second kernel.",
    mirrors="xla/backends/gpu/transforms/gemm_fusion.cc: FuseTowardUsers",
)
EPILOGUE_USER = cuts(
    "RW014",
    "triton-gemm-rewriter",
    "The GEMM fusion ends at an operation it cannot contain",
    condition="The one reader cannot be computed on the dot's tiles: Triton does not support it, its"
    " dimensions cannot be propagated, or including it saves nothing.",
    why="The kernel works on tiles of the dot, so every further operation has to work on tiles.",
    advice="Put reductions, transposes and reshapes of the result after the elementwise operations on it.",
    mirrors="xla/backends/gpu/transforms/gemm_fusion.cc: GetUserDimOrdersAndCombinedReqsIfProfitable",
)


LONG_SUM_ON_CPU = rewrites(
    "RW001",
    "tree_reduction_rewriter",
    "A reduction over more than 32 elements runs in two steps",
    condition="A reduction of one array is over a dimension of more than 32 elements and is not left to"
    " YNNPACK. A reduce-window sums windows of 32, and a reduce sums their results.",
    why="Partial sums of similar size lose less to rounding than one growing sum. The cost is a second"
    " kernel, and the producer is not fused: a reduce-window cannot be fused into.",
    advice="If one kernel matters more than the last digits, disable the pass, or reduce over dimensions of"
    " at most 32 elements.",
    mirrors="xla/hlo/transforms/simplifiers/tree_reduction_rewriter.cc: TreeReductionRewriter::RunImpl",
)
LONG_SUM_ON_GPU = rewrites(
    "RW002",
    "tree-reduction-rewriter",
    "A reduction too long for one block runs in two steps",
    condition="The reduced dimension is longer than one block reduces without atomics. It is split into two"
    " dimensions, padded if necessary, and reduced over one after the other.",
    why="Several blocks that add to the same result would race, and one block alone would take long.",
    advice="A shorter reduced dimension stays one step.",
    mirrors="xla/backends/gpu/transforms/tree_reduction_rewriter.cc: ReductionRewriterVisitor::HandleReduce",
)
SPLIT_DIMENSIONS = rewrites(
    "RW003",
    "reduction-splitter",
    "A reduction over non-adjacent dimensions is split in two",
    condition="A reduction is over two or more dimensions that are not adjacent in memory, which the"
    " reduction emitter does not support. The largest dimension is reduced first, the others second.",
    why="Each step is a row or a column reduction, for which there is fast code.",
    advice="Reduce over adjacent dimensions: a transpose of the remaining ones can be cheaper than two"
    " steps.",
    mirrors="xla/backends/gpu/transforms/reduction_splitter.cc: ReductionSplitterVisitor::HandleReduce",
)
GROUPED_DIMENSIONS = rewrites(
    "RW004",
    "reduction-dimension-grouper",
    "Adjacent reduced dimensions become one",
    condition="A reduction is over consecutive dimensions. Its inputs are reshaped so that they are one; no"
    " data moves.",
    why="Later passes and the emitter then handle few forms of reductions.",
    mirrors="xla/backends/gpu/transforms/reduction_dimension_grouper.cc:"
    " ReduceDimensionGroupVisitor::HandleReduce",
)


SINGLE_ITERATION = rewrites(
    "RW050",
    "simplify-while-loops",
    "The body of a loop that runs once replaces the loop",
    condition="The loop runs exactly once and has no side effect.",
    why="No fusion crosses a loop boundary; without the loop, its body fuses with its neighbours.",
    mirrors="xla/service/while_loop_simplifier.cc: TryRemoveWhileLoop",
)
INVARIANT = rewrites(
    "RW051",
    "while-loop-invariant-code-motion",
    "An operation moves out of the loop",
    condition="It computes the same value in each iteration, from values that the loop does not change.",
    why="It is computed once before the loop instead of in every iteration; the loop carries the result.",
    advice="A large result that was fused into its reader is now in memory.",
    mirrors="xla/service/while_loop_invariant_code_motion.cc:"
    " WhileLoopInvariantCodeMotion::TryHoistingInvariantInstructionsFromWhileBody",
)
SMALL_LOOP = rewrites(
    "RW052",
    "small-while-loop-hoisting",
    "A loop over little data is one kernel",
    condition="One iteration accesses fewer than 1,024 bytes, and nothing in it calls a library or"
    " communicates.",
    why="Compiled as one function, its iterations have no launches.",
    mirrors="xla/service/cpu/small_while_loop_hoisting_pass.cc: SmallWhileLoopHoistingPass::RunImpl",
)


TRITON_SOFTMAX = rewrites(
    "RW020",
    "triton-softmax-rewriter",
    "A normalization over rows becomes one Triton kernel",
    condition="A value is combined with its own broadcast reduction over the last dimension, as in a softmax,"
    " and one tiled kernel is faster than the kernels that fusion would create.",
    why="The row stays on chip: it is read once, although two operations need it.",
    mirrors="xla/backends/gpu/transforms/softmax_rewriter_triton.cc: MaybeFuseDiamondImpl",
)
LIBRARY = rewrites(
    "RW021",
    "dot-library-rewriter",
    "Operations move to YNNPACK",
    condition="The operation is a matmul, convolution or reduction that YNNPACK computes faster. Reductions"
    " include supported operations around them.",
    why="The library's code for these is faster than generated loops.",
    advice="`--xla_cpu_experimental_ynn_fusion_type=-reduce` leaves reductions to XLA's own fusion.",
    mirrors="xla/backends/cpu/transforms/library_rewriter.cc: LibraryRewriter::ProcessComputation",
)
LOGISTIC = rewrites(
    "RW030",
    "logistic-expander",
    "The logistic function becomes a division and an exponential",
    condition="The operation is a logistic. It becomes 1 / (1 + exp(-x)).",
    why="No emitter has code for the function itself.",
    mirrors="xla/hlo/transforms/expanders/logistic_expander.cc: LogisticExpander::ExpandInstruction",
)
BATCH_NORM = rewrites(
    "RW031",
    "batchnorm_expander",
    "A batch normalization becomes plain operations",
    condition="The operation is a batch normalization, for training, inference, or its gradient. It becomes"
    " sums, means and elementwise operations.",
    why="No emitter has code for the operation itself.",
    mirrors="xla/service/batchnorm_expander.cc: BatchNormExpanderVisitor",
)
RANDOM_BITS = rewrites(
    "RW032",
    "rng-bit-generator-expander",
    "Random bits become the arithmetic of their generator",
    condition="The operation generates random bits. It becomes a counter and rounds of Philox or ThreeFry.",
    why="Plain operations fuse with the users of the numbers, and give the same numbers on every device.",
    advice="Each kernel that they fuse into computes the rounds again.",
    mirrors="xla/hlo/transforms/expanders/rng_bit_generator_expander.cc:"
    " RngBitGeneratorExpander::ExpandInstruction",
    essential=True,
)
RANDOM_NUMBERS = rewrites(
    "RW033",
    "rng-expander",
    "Random numbers become the arithmetic of Philox",
    condition="The operation is a uniform or normal distribution. It becomes a counter, rounds of Philox and"
    " the conversion from bits to numbers.",
    why="No emitter has code for the operation itself.",
    mirrors="xla/hlo/transforms/expanders/rng_expander.cc: RngExpander::ExpandInstruction",
    essential=True,
)
COPY = rewrites(
    "RW040",
    "copy-insertion",
    "A value is copied because another would overwrite it",
    condition="Two values that are live at the same time would share a buffer: a loop's carry, an in-place"
    " update of an argument that is not donated, or a result that is an argument.",
    why="Without the copy the program would be wrong.",
    advice="Donate the argument (`donate_argnums`), or do not read the old value after the update.",
    mirrors="xla/service/copy_insertion.cc: CopyInsertion::RunImpl",
    essential=True,
)
COPY_IN_FUSION = rewrites(
    "RW041",
    "copy_fusion",
    "A fusion writes the copy of its result itself",
    condition="A result of an elementwise fusion outside loops is copied unchanged, and the fusion has room"
    " for another output.",
    why="A kernel that writes its result twice saves the launch of the copy and a second read.",
    mirrors="xla/backends/gpu/transforms/copy_fusion.cc: CopyFusion::DoCopyFusion",
)
LAYOUT_COPY = rewrites(
    "RW042",
    "layout-assignment",
    "A value is copied to the layout that its reader requires",
    condition="The reader requires another layout of its operand than the value has. Library calls, custom"
    " calls, arguments and results fix layouts; other operations follow.",
    why="An array in memory has one layout. Later passes turn the copy into a transpose, which can fuse with"
    " its neighbours.",
    advice="Transpose where it is cheap, on the weights or once before a loop, or provide the array in the"
    " reader's layout.",
    mirrors="xla/service/layout_assignment.cc: LayoutAssignment::CopyOperandIfLayoutsDiffer",
    essential=True,
)
