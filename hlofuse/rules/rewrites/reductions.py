"""Passes that make several reductions of one, or other ones."""

from __future__ import annotations

from hlofuse.rules.rewrites.outcome import rewrites

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
