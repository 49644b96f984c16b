"""The pass: which function simplifies which operation, again and again until nothing changes."""

from collections.abc import Callable
from dataclasses import field

from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.passes.base import ReleasePass, attempt, visit
from hlofuse.trace import Recorder
from . import arithmetic, compare_select, dot, gather_scatter, reduce, slice, transpose
from .context import Context, Options

Handler = Callable[[Context, Instruction], bool]
"""Rewrites an instruction; True if that has been replaced. What else changes only `Context.changed` says."""
HANDLERS: dict[str, Handler] = {
    "abs": arithmetic.handle_abs,
    "add": arithmetic.handle_add,
    "and": compare_select.handle_and,
    "bitcast": transpose.handle_bitcast,
    "bitcast-convert": transpose.handle_bitcast_convert,
    "broadcast": transpose.handle_broadcast,
    "clamp": compare_select.handle_clamp,
    "compare": compare_select.handle_compare,
    "complex": arithmetic.handle_complex,
    "concatenate": slice.handle_concatenate,
    "conditional": arithmetic.handle_conditional,
    "constant": transpose.handle_constant,
    "convert": arithmetic.handle_convert,
    "convolution": dot.handle_convolution,
    "copy": transpose.handle_copy,
    "divide": arithmetic.handle_divide,
    "dot": dot.handle_dot,
    "dynamic-slice": slice.handle_dynamic_slice,
    "dynamic-update-slice": slice.handle_dynamic_update_slice,
    "exponential": arithmetic.handle_exponential,
    "gather": gather_scatter.handle_gather,
    "get-tuple-element": arithmetic.handle_get_tuple_element,
    "imag": arithmetic.handle_part,
    "iota": transpose.handle_iota,
    "log": arithmetic.handle_log,
    "map": arithmetic.handle_map,
    "maximum": compare_select.handle_extreme,
    "minimum": compare_select.handle_extreme,
    "multiply": arithmetic.handle_multiply,
    "negate": arithmetic.handle_negate,
    "not": compare_select.handle_not,
    "or": compare_select.handle_or,
    "pad": slice.handle_pad,
    "power": arithmetic.handle_power,
    "real": arithmetic.handle_part,
    "reduce": reduce.handle_reduce,
    "reduce-precision": arithmetic.handle_reduce_precision,
    "reduce-window": reduce.handle_reduce_window,
    "remainder": arithmetic.handle_remainder,
    "reshape": transpose.handle_reshape,
    "reverse": slice.handle_reverse,
    "rsqrt": arithmetic.handle_rsqrt,
    "sqrt": arithmetic.handle_sqrt,
    "scatter": gather_scatter.handle_scatter,
    "select": compare_select.handle_select,
    "slice": slice.handle_slice,
    "sort": arithmetic.handle_sort,
    "subtract": arithmetic.handle_subtract,
    "transpose": transpose.handle_transpose,
    "xor": compare_select.handle_xor,
}
_HANDLED = frozenset(HANDLERS)
_MOST_RUNS = 50


class AlgebraicSimplifier(ReleasePass):
    name = "algsimp"
    options: Options = field(default_factory=Options)

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for computation in module.non_fusion_computations():
            for _ in range(_MOST_RUNS):
                if not self._run_on(computation, recorder):
                    break
                changed = True
                if not self.options.to_fixed_point:
                    break
        return changed

    def _run_on(self, computation: Computation, recorder: Recorder) -> bool:
        context = Context(computation, self.options, self.release)

        def handle(x: Instruction) -> None:
            if x.is_array or x.is_tuple:
                HANDLERS[x.opcode](context, x)

        visit(computation, attempt(handle, recorder), _HANDLED)
        return context.changed
