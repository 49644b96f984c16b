"""Rewrites of loops, reductions and products, library fusions, expanders and copies."""

from hlofuse.rules.rewrites.outcome import cuts, rewrites

STRENGTH_REDUCED = rewrites(
    "RW010",
    "dot-strength-reduction",
    "A product with a vector becomes multiplications and a sum",
    condition="Is an operand of the product a vector, and is the product small, of two vectors, or of types"
    " that no matrix kernel takes?",
    why="Such a product is bound by memory, and as a sum it fuses with what is around it.",
    advice="Several vectors at once, as a matrix, make a real product.",
    mirrors="xla/backends/gpu/transforms/dot_strength_reduction.cc:"
    " DotStrengthReduction::InstructionMatchesPattern",
)
WIDENED = rewrites(
    "RW015",
    "gemv-rewriter",
    "A product with a vector becomes one with a matrix of one column",
    condition="Has one operand of the product no dimension of its own, and are all in the usual layout?",
    why="The kernels of matrix products take matrices only. Nothing is moved for it.",
    mirrors="xla/hlo/transforms/simplifiers/gemv_rewriter.cc: GemvRewriterVisitor::HandleDot",
)
SPLIT_K = rewrites(
    "RW011",
    "splitk-rewriter",
    "A product with a long contracted dimension is summed in parts",
    condition="Would the product leave cores idle, so that by XLA's estimate a batch of shorter products and"
    " a sum behind them are faster?",
    why="Few tiles of output give few blocks; parts of the contracted dimension give more.",
    advice="The sum after it is a kernel of its own, and what follows the product"
    " fuses with the sum instead of the product.",
    mirrors="xla/backends/gpu/transforms/splitk_rewriter.cc: ChooseSplitK",
)
TRITON_PRODUCT = rewrites(
    "RW012",
    "triton-gemm-rewriter",
    "A matrix product becomes a Triton kernel with what is around it",
    condition="Can Triton generate the product on this device? Operations of its operands and of its one"
    " reader after the other go in as long as their dimensions can be followed.",
    why="What is around a product is computed while its tiles are at hand.",
    mirrors="xla/backends/gpu/transforms/gemm_fusion.cc: CreateDotFusion",
)
EPILOGUE_READERS = cuts(
    "RW013",
    "triton-gemm-rewriter",
    "The product's kernel ends at a value with several readers",
    condition="Is the value that the kernel has so far read by exactly one operation? With two, such as"
    " v·|v|, silu or gelu, the kernel ends there; tanh and relu have one.",
    why="The kernel grows along one chain and writes one result; it is not looked at whether the readers"
    " come together again.",
    advice="Write the activation with one reader of the product where that is the same, such as tanh or"
    " maximum; else the activation is a second kernel.",
    mirrors="xla/backends/gpu/transforms/gemm_fusion.cc: FuseTowardUsers",
)
EPILOGUE_USER = cuts(
    "RW014",
    "triton-gemm-rewriter",
    "The product's kernel ends at an operation that it cannot take in",
    condition="Can the one reader of the value be computed on the product's tiles: does Triton know it, can"
    " its dimensions be followed, and does taking it in pay?",
    why="The kernel works on tiles of the product, so that each further operation has to be one on tiles.",
    advice="Put reductions, transposes and reshapes of the result behind the elementwise work on it.",
    mirrors="xla/backends/gpu/transforms/gemm_fusion.cc: GetUserDimOrdersAndCombinedReqsIfProfitable",
)


LONG_SUM_ON_CPU = rewrites(
    "RW001",
    "tree_reduction_rewriter",
    "A reduction over more than 32 elements is made in two steps",
    condition="Does a reduction of one array go over a dimension of more than 32 elements, and is it not left"
    " to YNNPACK? A reduce-window sums windows of 32, a reduce what they leave.",
    why="Partial sums of about the same size lose less to rounding than one sum that grows. The price is a"
    " second kernel, and that the producer is not fused: a reduce-window takes nothing in.",
    advice="Where one kernel matters more than the last digits, switch the pass off, or reduce over"
    " dimensions of at most 32 elements.",
    mirrors="xla/hlo/transforms/simplifiers/tree_reduction_rewriter.cc: TreeReductionRewriter::RunImpl",
)
LONG_SUM_ON_GPU = rewrites(
    "RW002",
    "tree-reduction-rewriter",
    "A reduction longer than one block can do is made in two steps",
    condition="Is the reduced dimension longer than what one block reduces without atomic additions? It is"
    " viewed as two dimensions, padded where it does not divide, and reduced over one after the other.",
    why="Several blocks that add to the same result would race, and one block alone would take long.",
    advice="A shorter reduced dimension stays one step.",
    mirrors="xla/backends/gpu/transforms/tree_reduction_rewriter.cc: ReductionRewriterVisitor::HandleReduce",
)
SPLIT_DIMENSIONS = rewrites(
    "RW003",
    "reduction-splitter",
    "A reduction over dimensions apart from each other is made in two",
    condition="Does a reduction go over two or more dimensions that do not lie side by side in memory, so"
    " that the reduction emitter does not take it? The largest dimension goes first, the others in a"
    " second step.",
    why="Each of the two steps is a row or a column reduction, for which there is fast code.",
    advice="Reduce over neighbouring dimensions: a transpose of what is kept may be cheaper than two steps.",
    mirrors="xla/backends/gpu/transforms/reduction_splitter.cc: ReductionSplitterVisitor::HandleReduce",
)
GROUPED_DIMENSIONS = rewrites(
    "RW004",
    "reduction-dimension-grouper",
    "Reduced dimensions side by side become one",
    condition="Does a reduction go over dimensions that follow each other? Its inputs are viewed with these"
    " dimensions as one; nothing is moved.",
    why="The passes and the emitter behind it only have to know few forms of reductions.",
    mirrors="xla/backends/gpu/transforms/reduction_dimension_grouper.cc:"
    " ReduceDimensionGroupVisitor::HandleReduce",
)


SINGLE_ITERATION = rewrites(
    "RW050",
    "simplify-while-loops",
    "The body of a loop that runs once stands in its place",
    condition="Does the loop run exactly once, and has nothing in it a side effect?",
    why="A loop is a border that no fusion crosses; its body in the open fuses with what is around it.",
    mirrors="xla/service/while_loop_simplifier.cc: TryRemoveWhileLoop",
)
INVARIANT = rewrites(
    "RW051",
    "while-loop-invariant-code-motion",
    "An operation moves out of the loop",
    condition="Does it compute the same in each iteration, from values that the loop does not change?",
    why="Computed once before the loop it costs one iteration instead of all; the loop carries the result.",
    advice="A large result that was fused into its reader is now in memory.",
    mirrors="xla/service/while_loop_invariant_code_motion.cc:"
    " WhileLoopInvariantCodeMotion::TryHoistingInvariantInstructionsFromWhileBody",
)
SMALL_LOOP = rewrites(
    "RW052",
    "small-while-loop-hoisting",
    "A loop over little data is one kernel",
    condition="Does one iteration access fewer than 1,024 bytes, and is nothing in it that calls a library"
    " or communicates?",
    why="Compiled as one function, its iterations cost no launches.",
    mirrors="xla/service/cpu/small_while_loop_hoisting_pass.cc: SmallWhileLoopHoistingPass::RunImpl",
)


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
