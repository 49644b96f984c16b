"""The context of a rewrite: the options of its target, the computation it is in, and what is known of a value
(all elements equal to a constant, never negative, and more)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec

from msgspec import Struct

from hlofuse.analysis.elementwise import is_constant_effective_scalar
from hlofuse.cost.gpu.shapes import reshape_is_bitcast
from hlofuse.ir.graph import Computation, Instruction, Predicate
from hlofuse.ir.shape import COMPLEX_TYPES, FLOATING_TYPES, INTEGER_TYPES, Ints, Shape
from hlofuse.passes.base import replaced
from hlofuse.passes.common import make
from hlofuse.passes.common.literals import Real, Value, bounds, scalar_of, values_of
from hlofuse.passes.common.shapes import is_identity, ones_moved, permute
from hlofuse.releases import Release

P = ParamSpec("P")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options that differ between targets (`AlgebraicSimplifierOptions`); the defaults are XLA's."""

    layout_sensitive: bool = False
    dot_strength_reduction: bool = True
    supports_non_canonical_dots: bool = True
    unconditional_reduce_of_transpose: bool = False
    unconditional_reduce_of_concatenate: bool = True
    reduce_of_concatenate: bool = True
    bitcast_convert_as_bitcast: bool = False
    executing_on_cpu: bool = False
    remove_no_op_reduce_precision: bool = False
    conditional_simplification: bool = False
    hoist_transpose_of_reshape: bool = False
    to_fixed_point: bool = True
    conv_operand_swap: bool = True
    conv_is_lowerable: Predicate | None = None
    dot_to_multiply: bool = True
    fold_transpose_into_scatter: bool = False


class Context(Struct):
    """One run over one computation (`AlgebraicSimplifierVisitor`)."""

    computation: Computation
    options: Options
    release: Release
    changed: bool = False

    def replace(
        self,
        old: Instruction,
        new: Instruction,
        *,
        preserve_sharding: bool = False,
    ) -> bool:
        """`new` takes over from `old` (`ReplaceInstruction`)."""
        done = replaced(old, new, preserve_sharding=preserve_sharding)
        self.changed |= done
        return done

    def become(
        self,
        old: Instruction,
        form: Callable[Concatenate[Instruction, P], Instruction],
        *how: P.args,
        **more: P.kwargs,
    ) -> bool:
        """Replace `old` by `form(old, …)`, a function of `make`."""
        return self.replace(old, form(old, *how, **more))

    def binary(self, old: Instruction, opcode: str, a: Instruction, b: Instruction) -> bool:
        """Replace `old` by an operation of its own shape."""
        return self.become(old, make.binary, opcode, a, b, old.shape)

    def broadcast(
        self,
        old: Instruction,
        operand: Instruction,
        dimensions: Ints = (),
    ) -> bool:
        return self.become(old, make.broadcast, old.shape, operand, dimensions)

    def is_absorbed(
        self,
        x: Instruction,
        value: Value,
        *,
        other: bool,
    ) -> bool:
        """Let an operand that is `value` everywhere, or the `other` one, take the place of `x`."""
        return any(
            is_all(constant, value) and self.replace_if_compatible(x, rest if other else constant)
            for rest, constant in both_orders(x)
        )

    def may_reassociate(self, x: Instruction) -> bool:
        """True if the order of operations like `x` may change, and with it how they round."""
        is_rounded = is_floating(x) or is_complex(x)
        return not is_rounded or self.release.floats_reassociated

    def same_shape(self, a: Shape, b: Shape) -> bool:
        if self.options.layout_sensitive:
            return a.key == b.key
        return a.key_ignoring_layout == b.key_ignoring_layout

    def replace_if_compatible(self, old: Instruction, new: Instruction) -> bool:
        """Only for one of the same shape that waits for nothing (`ReplaceInstructionIfCompatible`)."""
        if old.control_predecessors or not self.same_shape(old.shape, new.shape):
            return False
        return self.replace(old, new, preserve_sharding=True)


def both_orders(x: Instruction) -> tuple[tuple[Instruction, Instruction], ...]:
    a, b = x.operands
    return (a, b), (b, a)


def is_all(x: Instruction, value: Value) -> bool:
    """A constant, perhaps broadcast, of nothing but `value` (`IsAll`)."""
    x = x.through("broadcast")
    if not x.is_constant or not x.is_array:
        return False
    if x.element_type == "pred" and value not in (0, 1):
        return False
    values = values_of(x)
    if not values or values.count(value) < len(values):
        return False
    # -0 is not 0: XLA compares the bits of the converted constant.
    return not (value == 0 and any(map(_is_negative_zero, values)))


def _is_negative_zero(value: Value) -> bool:
    if isinstance(value, complex):
        return _is_negative_zero(value.real) or _is_negative_zero(value.imag)
    return isinstance(value, float) and value == 0 and math.copysign(1, value) < 0


def scalar_constant(x: Instruction) -> bool:
    """`ConstantScalar`."""
    return x.is_constant and x.is_array and not x.sizes


def broadcast_constant(x: Instruction, is_constant: Predicate = scalar_constant) -> Instruction | None:
    """The scalar constant that `x` is a broadcast of."""
    return x.operand if x.is_broadcast and is_constant(x.operand) else None


def is_spread_scalar(x: Instruction) -> bool:
    return x.is_broadcast and not x.operand.sizes


def iota_size(iota: Instruction) -> int:
    """The numbers that it counts."""
    return iota.sizes[int(iota.attributes["iota_dimension"])]


def broadcast_effective_constant(x: Instruction) -> Instruction | None:
    return broadcast_constant(x, is_constant_effective_scalar)


def single_value(x: Instruction) -> Real | None:
    """The value of a constant of one element, perhaps broadcast."""
    return scalar_of(x if is_constant_effective_scalar(x) else broadcast_effective_constant(x))


def is_power_of_two(x: Instruction) -> bool:
    """±2^k, or a broadcast of it (`IsAllFpConstantPowerOf2`)."""
    value = single_value(x)
    return value is not None and math.isfinite(value) and abs(math.frexp(value)[0]) == 0.5


def is_integral(x: Instruction) -> bool:
    return x.element_type in INTEGER_TYPES


def is_floating(x: Instruction) -> bool:
    return x.element_type in FLOATING_TYPES


def is_complex(x: Instruction) -> bool:
    return x.element_type in COMPLEX_TYPES


def is_signed_integer(x: Instruction) -> bool:
    return is_integral(x) and x.element_type[0] == "s"


def is_non_negative(x: Instruction) -> bool:
    """`IsNonNegative`."""
    if any(is_complex(o) for o in x.operands):
        return False
    operands = x.operands
    match x.opcode:
        case "multiply":
            return operands[0] is operands[1] and not is_signed_integer(x)
        case "exponential":
            return True
        case "iota":
            if not is_signed_integer(x) or x.shape.bit_width >= 64:
                return True
            return iota_size(x) <= 1 << (x.shape.bit_width - 1)
        case "abs":
            return not is_signed_integer(x) or is_non_negative(operands[0])
        case "broadcast":
            return is_non_negative(operands[0])
        case "constant":
            value = scalar_of(x)
            if value is None or math.isnan(value) or x.element_type == "pred":
                return False
            return math.copysign(1, value) > 0
        case "minimum":
            return is_non_negative(operands[0]) and is_non_negative(operands[1])
        case "maximum":
            return is_non_negative(operands[0]) or is_non_negative(operands[1])
        case "power":
            return not is_signed_integer(x) and is_non_negative(operands[0])
        case "select":
            return is_non_negative(operands[1]) and is_non_negative(operands[2])
    return False  # where XLA proves `IsPositive`, it does so of library results only


def is_scalar_zero(x: Instruction) -> bool:
    """A constant of one element that equals 0, as -0 does."""
    return is_constant_effective_scalar(x) and scalar_of(x) == 0


def is_of_parameters(function: Computation, opcode: str) -> bool:
    """`opcode` of parameters 0 and 1, in any order."""
    root = function.root
    if root.opcode != opcode or any(not o.is_parameter for o in root.operands):
        return False
    return sorted(o.parameter_number for o in root.operands) == [0, 1]


def equivalent(a: Computation, b: Computation) -> bool:
    """The same computation, or the same commutative operation (`ReductionComputationsEquivalent`)."""
    if a is b:
        return True
    return any(is_of_parameters(a, op) and is_of_parameters(b, op) for op in ("add", "multiply", "and", "or"))


def is_argument_of_extreme(reduce: Instruction, *, greatest: bool) -> bool:
    """The greatest (least) element and its index, as JAX writes it (`MatchArgMax`, `MatchArgMin`)."""
    if not reduce.is_reduce or reduce.operand_count != 4 or not reduce.is_tuple:
        return False
    if reduce.second.opcode != "iota" or not is_scalar_zero(reduce.operands[3]):
        return False
    start = scalar_of(reduce.operands[2])
    element_type = reduce.operands[2].element_type
    if start is None or start != bounds(element_type)[not greatest]:
        return False
    better = ("or", ("GT" if greatest else "LT", 0, 2), ("NE", 0, 0))
    tie = ("and", ("EQ", 0, 2), ("LT", 1, 3))
    chosen = ("tuple", ("select", better, 0, 2), ("select", ("or", better, tie), 1, 3))
    return _matches(reduce.to_apply.root, chosen)


def _matches(x: Instruction, pattern: Any) -> bool:
    """True for that parameter, or opcode or direction with such operands, which `or` may exchange."""
    if isinstance(pattern, int):
        return x.is_parameter and x.parameter_number == pattern
    name, *operands = pattern
    if name != x.raw("direction", x.opcode) or len(operands) != x.operand_count:
        return False
    orders = both_orders(x) if name == "or" else (x.operands,)
    return any(all(map(_matches, order, operands)) for order in orders)


def remove_chain(c: Context, last: Instruction) -> bool:
    """Every reshape, or bitcast that is one, moves a single dimension of size 1
    (`TryRemovingBitcastOrReshapeTransposeChain`); at first only before layouts, and not from a transpose."""
    own = not c.options.layout_sensitive and last.is_reshape and c.release.undoes_transposes_past_ones
    if last.is_transpose:
        if is_identity(last.dimensions):
            return False
        permutation = _effective(last)
    elif _moves_a_one(last):
        permutation = list(range(last.shape.true_rank))
    else:
        return False
    first: Instruction | None = None
    current = last.operand
    while current.opcode in ("reshape", "transpose", "bitcast"):
        if not current.is_transpose:
            if not _moves_a_one(current):
                return False
        elif is_identity(current.dimensions):
            return False
        else:
            step = _effective(current)
            if len(step) != len(permutation):
                return False
            permutation = permute(step, permutation)
        first, current = current, current.operand
    if first is None or not (own or c.release.undoes_chains_of_bitcasts) or not is_identity(permutation):
        return False
    source = first.operand
    if c.options.layout_sensitive and reshape_is_bitcast(source.shape, last.shape):
        same = source.shape.key == last.shape.key
        return c.replace(last, source if same else make.add(last, "bitcast", last.shape, [source]))
    return c.same_shape(last.shape, source.shape) and c.replace(last, source)


def _moves_a_one(x: Instruction) -> bool:
    if x.opcode not in ("reshape", "bitcast"):
        return False
    if x.is_bitcast and not reshape_is_bitcast(x.operand.shape, x.shape):
        return False
    if x.sizes.count(1) > 1 or x.operand.sizes.count(1) > 1:
        return False
    return ones_moved(x.operand.shape, x.shape) is not None


def _effective(transpose: Instruction) -> Ints:
    """The permutation without the one dimension of size 1, if there is one."""
    sizes = transpose.operand.sizes
    if sizes.count(1) != 1:
        return transpose.dimensions
    one = sizes.index(1)
    return [p - (p > one) for p in transpose.dimensions if p != one]
