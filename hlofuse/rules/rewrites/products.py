"""Passes that take over matrix products, and how far their kernels reach."""

from __future__ import annotations

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
