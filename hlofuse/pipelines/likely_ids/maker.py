"""The parts of the compiler that make instructions, by which likely ids go first."""

from __future__ import annotations

from enum import IntEnum


class Maker(IntEnum):
    """Passes of `GpuCompiler`, in the order of their turns."""

    FRONT_END = 0
    INLINER = 1
    """CallInliner clones what was called behind everything else."""
    INDICES = 2
    """BatchedGatherScatterNormalizer, which tells gathers of their batches by an iota for each dimension."""
    GATHERS = 3
    """GatherSimplifier and ScatterSimplifier, ahead of AlgebraicSimplifier the first time around."""
    SIMPLIFIER = 4
    """AlgebraicSimplifier, the first time around."""
    SIMPLIFIER_AGAIN = 5
    """AlgebraicSimplifier, ReshapeMover and ConvertMover afterwards."""
    CONDITIONALS = 6
    """ConditionalSimplifier, between the first turn of ReshapeMover and the next of AlgebraicSimplifier."""
    DOT_MERGER = 7
    WIDENED_PRODUCTS = 8
    """FloatNormalization of products and convolutions that the device has not."""
    MOVED_CONVERTS = 9
    """ConvertMover, where it runs again behind that."""
    MOVED_COPIES = 10
    """MoveCopyToUsers, right ahead of LayoutNormalization."""
    LAYOUT_NORMALIZATION = 11
    SPLIT_K = 12
    FUSIONS = 13
    """Triton fusions and library calls."""
    REDUCTIONS = 14
    """ReductionLayoutNormalizer, ReductionDimensionGrouper, TreeReductionRewriter."""
    FLOAT_NORMALIZATION = 15
    SIMPLIFIER_LAST = 16
    """AlgebraicSimplifier behind float normalization."""
    CONVERSIONS_LAST = 17
    """SimplifyFPConversions behind that."""
    ANY = 18
    """Whoever makes bitcasts, of which numbers tell the turn."""
