"""The context of a rewrite: the options of its target, and the computation it is in."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hlofuse.ir.graph import Computation, Instruction
from hlofuse.ir.shape import Shape
from hlofuse.passes.common.rewriting import replaced


@dataclass(frozen=True, kw_only=True)
class Options:
    """What targets choose differently (`AlgebraicSimplifierOptions`); the defaults are XLA's."""

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


class Context:
    """One run over one computation (`AlgebraicSimplifierVisitor`)."""

    def __init__(self, computation: Computation, options: Options) -> None:
        self.computation = computation
        self.options = options
        self.changed = False

    def replace(self, old: Instruction, new: Instruction, *, preserve_sharding: bool = False) -> bool:
        """`new` takes over from `old` (`ReplaceInstruction`)."""
        done = replaced(old, new, preserve_sharding=preserve_sharding)
        self.changed |= done
        return done

    def same_shape(self, a: Shape, b: Shape) -> bool:
        if self.options.layout_sensitive:
            return a.key == b.key
        return a.key_ignoring_layout == b.key_ignoring_layout

    def replace_if_compatible(self, old: Instruction, new: Instruction) -> bool:
        """Only for an instruction of the same shape that nothing has to run ahead of
        (`ReplaceInstructionIfCompatible`)."""
        if old.control_predecessors or not self.same_shape(old.shape, new.shape):
            return False
        return self.replace(old, new, preserve_sharding=True)


def both_orders(x: Instruction) -> Iterator[tuple[Instruction, Instruction]]:
    """Both orders of two operands."""
    a, b = x.operands
    yield a, b
    yield b, a
