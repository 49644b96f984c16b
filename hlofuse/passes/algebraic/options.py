"""What targets choose differently (`AlgebraicSimplifierOptions`); the defaults are XLA's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hlofuse.ir.graph import Instruction


@dataclass(frozen=True, kw_only=True)
class Options:
    layout_sensitive: bool = False
    dot_strength_reduction: bool = True
    supports_non_canonical_dots: bool = True
    move_dot_param_to_rhs: bool = False
    reduce_of_reshape: bool = True
    window_reduce_to_reduce: bool = True
    negative_padding_replacement: bool = True
    sink_broadcast: bool = True
    unconditional_reduce_of_transpose: bool = False
    very_small_gather_size: int = 4
    minmax_propagate_nan: bool = True
    unconditional_reduce_of_concatenate: bool = True
    bitcast_convert_as_bitcast: bool = False
    executing_on_cpu: bool = False
    fast_math: bool = False
    remove_no_op_reduce_precision: bool = False
    broadcast_degenerate_dimension: bool = True
    reshape_transpose_as_slice_concatenate: bool = True
    conditional_simplification: bool = False
    hoist_transpose_of_reshape: bool = False
    fold_transpose_into_scatter: bool = False
    to_fixed_point: bool = True
    conv_operand_swap: bool = True
    conv_is_lowerable: Callable[[Instruction], bool] | None = None
    dot_to_multiply: bool = True
