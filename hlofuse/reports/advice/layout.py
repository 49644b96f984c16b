"""Recipes about how arrays are put together, and about the types of their elements."""

from __future__ import annotations

from math import prod

from hlofuse.ir.attributes.window import PaddingConfig, PaddingDimension
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import COMPLEX_TYPES
from hlofuse.passes.common import make
from hlofuse.passes.common.literals import scalar_of
from hlofuse.reports.advice.matching import places, value_of, where
from hlofuse.reports.advice.recipe import Recipe

_WARP = 32


def _has_odd_parts(x: Instruction) -> bool:
    """True for a concatenate of two arrays in memory order, not of whole warps."""
    (dimension,) = x.dimensions
    sizes = [o.shape.dimensions[dimension] for o in x.operands]
    minor = dimension == x.shape.minor_to_major[0] and x.shape.element_type != "pred"
    return minor and len(sizes) == 2 and any(n % _WARP for n in sizes) and prod(x.shape.dimensions) >= 1 << 16


@where("concatenate(slice, slice)")
def _shifts(x: Instruction) -> bool:
    """The parts of one array in another order."""
    sources = {o.operands[0] for o in x.operands if o.opcode == "slice"}
    return _has_odd_parts(x) and len(sources) == 1


@where("concatenate")
def _joins(x: Instruction) -> bool:
    return _has_odd_parts(x) and not all(o.opcode == "slice" for o in x.operands)


def _pads_for_parts(x: Instruction) -> bool:
    if x.opcode != "concatenate":
        return False
    (dimension,), (a, b) = x.dimensions, x.operands
    zero, rank = make.zero(x, x.shape.element_type), len(x.shape.dimensions)

    def padded(part: Instruction, low: int, high: int) -> Instruction:
        each = [PaddingDimension(0, 0)] * rank
        each[dimension] = PaddingDimension(low, high)
        return make.pad(x, x.shape, part, zero, PaddingConfig(tuple(each)))

    sizes = [o.shape.dimensions[dimension] for o in (a, b)]
    x.replace_all_uses_with(make.binary(x, "add", padded(a, 0, sizes[1]), padded(b, sizes[0], 0)))
    return True


@where("select(constant)")
def _large_masks(x: Instruction) -> bool:
    return prod(value_of(x.operands[0]).shape.dimensions) >= 1 << 16


@where("divide(_, broadcast)", only="gpu")
def _complex_divisions(x: Instruction) -> bool:
    return x.shape.element_type in COMPLEX_TYPES


def _reciprocal(x: Instruction) -> bool:
    if x.opcode != "divide" or x.operands[1].opcode != "broadcast":
        return False
    spread = x.operands[1]
    divisor = spread.operands[0]
    one = make.scalar_like(divisor, 1)
    reciprocal = make.copy_of(spread, [make.binary(x, "divide", one, divisor)])
    x.replace_all_uses_with(make.binary(x, "multiply", x.operands[0], reciprocal))
    return True


def _half_integer(x: Instruction) -> float | None:
    """The exponent of a power, if it is 1.5 or 2.5."""
    exponent = scalar_of(value_of(x.operands[1]).operands[0])
    return exponent if isinstance(exponent, float) and exponent in (1.5, 2.5) else None


_half_integers = where("power(_, broadcast(constant))")(lambda x: _half_integer(x) is not None)


def _root_for_power(x: Instruction) -> bool:
    if x.opcode != "power":
        return False
    base = x.operands[0]
    power = make.binary(x, "multiply", base, base) if _half_integer(x) == 2.5 else base
    x.replace_all_uses_with(make.binary(x, "multiply", power, make.unary(x, "sqrt", base)))
    return True


_PHASES = places("exponential(real(multiply(convert, broadcast(constant))))", only="gpu")
_MAGNITUDES = places("real(multiply(_, complex(real, negate(imag))))", only="gpu")

LAYOUT = (
    Recipe("shift-by-pads", "Shift by the sum of two pads, not by jnp.roll", _shifts, _pads_for_parts),
    Recipe("join-by-pads", "Join columns by the sum of two pads", _joins, _pads_for_parts),
    Recipe("mask-by-position", "Compare positions instead of reading a mask", _large_masks),
    Recipe("phase-by-cos-and-sin", "Write lax.complex(cos(x), sin(x)), not exp(1j * x)", _PHASES),
    Recipe("squared-magnitude", "Square the real and the imaginary part, and add", _MAGNITUDES),
    Recipe(
        "reciprocal-of-a-complex-row", "Multiply by the row's reciprocal", _complex_divisions, _reciprocal
    ),
    Recipe("power-by-a-root", "Write x**1.5 as x * jnp.sqrt(x)", _half_integers, _root_for_power),
)
