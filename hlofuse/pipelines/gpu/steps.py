"""Passes with the options that XLA:GPU gives them, where it runs them more than once."""

from dataclasses import replace
from typing import Any

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.passes.algebraic.context import Options
from hlofuse.passes.algebraic.simplifier import AlgebraicSimplifier
from hlofuse.passes.base import FixedPoint
from hlofuse.passes.dot.dot_operands import TransposeFolding, never
from hlofuse.passes.gpu.convolutions.rewriter import is_lowerable, normalized_call
from hlofuse.passes.gpu.layout_assignment import can_fold_transpose
from hlofuse.passes.layout.layout_normalization import LayoutNormalization
from hlofuse.passes.registry import PassLists
from hlofuse.releases import AROUND_FUSION, Release

_COMMON = Options(
    dot_strength_reduction=False,
    supports_non_canonical_dots=False,
    unconditional_reduce_of_concatenate=False,
    conditional_simplification=True,
    fold_transpose_into_scatter=True,
    bitcast_convert_as_bitcast=True,
    to_fixed_point=False,
)
# `GetAlgebraicSimplifierOptions`, by mode.
_LAYOUT_INSENSITIVE = replace(
    _COMMON,
    unconditional_reduce_of_transpose=True,
    reshape_transpose_as_slice_concatenate=False,
    hoist_transpose_of_reshape=True,
    conv_is_lowerable=is_lowerable,
)
ALGSIMP = AlgebraicSimplifier(_LAYOUT_INSENSITIVE)
ALGSIMP_AFTER_FUSION = AlgebraicSimplifier(replace(_LAYOUT_INSENSITIVE, layout_sensitive=True))
ALGSIMP_CONVOLUTIONS = AlgebraicSimplifier(
    replace(_COMMON, conv_operand_swap=False, minmax_propagate_nan=True)
)
_LAYOUT_SENSITIVE = replace(_COMMON, conv_operand_swap=False, layout_sensitive=True)
ALGSIMP_LAYOUTS = FixedPoint(AlgebraicSimplifier(_LAYOUT_SENSITIVE))
ALGSIMP_LAST = FixedPoint(AlgebraicSimplifier(replace(_LAYOUT_SENSITIVE, remove_no_op_reduce_precision=True)))
NORMALIZATION = LayoutNormalization(normalized_call)
FOLDING = TransposeFolding(can_fold_transpose)
FOLDING_ALL = TransposeFolding(can_fold_transpose, into_convolutions=True)
FOLDING_CONVOLUTIONS = TransposeFolding(never, into_convolutions=True)


def pass_lists(device: DeviceDescription, release: Release = AROUND_FUSION, **context: Any) -> PassLists:
    """Builds lists of passes for one device and release."""
    return PassLists("gpu", {"device": device, "release": release, **context})
