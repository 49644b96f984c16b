"""Recipes about how arrays are put together, and about the types of their elements."""

from __future__ import annotations

from math import prod

from hlofuse.ir.attributes.window import PaddingConfig, PaddingDimension
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.shape import COMPLEX_TYPES
from hlofuse.passes.common import make
from hlofuse.passes.common.literals import scalar_of
from hlofuse.reports.advice.pattern import places, reader, value_of
from hlofuse.reports.advice.recipe import Finding, Recipe

_WARP = 32


def _has_odd_parts(x: Instruction) -> bool:
    """True for a concatenate of two arrays in memory order, not of whole warps."""
    (dimension,) = x.dimensions
    sizes = [o.shape.dimensions[dimension] for o in x.operands]
    minor = dimension == x.shape.minor_to_major[0] and x.shape.element_type != "pred"
    return minor and len(sizes) == 2 and any(n % _WARP for n in sizes) and prod(x.shape.dimensions) >= 1 << 16


def _is_shift(x: Instruction) -> bool:
    """True for the parts of one array in another order."""
    sources = {o.operands[0] for o in x.operands if o.opcode == "slice"}
    return _has_odd_parts(x) and len(sources) == 1 and all(o.opcode == "slice" for o in x.operands)


def _is_reduced(x: Instruction) -> bool:
    """True for a concatenate that is reduced where it was concatenated, element by element until then."""
    (dimension,), shape = x.dimensions, x.shape
    while len(x.users) == 1 and next(iter(x.users)).shape == shape:
        x = next(iter(x.users))
    user = reader(next(iter(x.users), x))
    return user.opcode == "reduce" and dimension in user.dimensions


def _pads_for_parts(module: Module, finding: Finding) -> bool:
    x = module.find(finding.at)
    if x is None or x.opcode != "concatenate" or not _has_odd_parts(x):
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


def _is_strided(x: Instruction) -> bool:
    """True for every second element of contiguous ones, of which the others are read, too."""
    minor = x.shape.minor_to_major[0]
    slices = [u for u in x.operands[0].users if u.opcode == "slice"]
    return len(slices) > 1 and x is slices[0] and x.attributes.get("slice", ())[minor].stride == 2


def _is_large_constant(x: Instruction) -> bool:
    return prod(value_of(x.operands[0]).shape.dimensions) >= 1 << 16


def _is_of_complex(x: Instruction) -> bool:
    return x.shape.element_type in COMPLEX_TYPES


def _multiply_by_reciprocal(module: Module, finding: Finding) -> bool:
    x = module.find(finding.at)
    if x is None or x.opcode != "divide" or x.operands[1].opcode != "broadcast":
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


def _root_for_power(module: Module, finding: Finding) -> bool:
    x = module.find(finding.at)
    exponent = _half_integer(x) if x is not None and x.opcode == "power" else None
    if x is None or exponent is None:
        return False
    base = x.operands[0]
    power = make.binary(x, "multiply", base, base) if exponent == 2.5 else base
    x.replace_all_uses_with(make.binary(x, "multiply", power, make.unary(x, "sqrt", base)))
    return True


LAYOUT = (
    Recipe(
        "shift-by-pads",
        "Shift by the sum of two pads, not by jnp.roll or a concatenate",
        places("concatenate(slice, slice)", _is_shift),
        _pads_for_parts,
    ),
    Recipe(
        "join-by-pads",
        "Join the columns by the sum of two pads, not by a concatenate",
        places("concatenate", lambda x: _has_odd_parts(x) and not _is_shift(x) and not _is_reduced(x)),
        _pads_for_parts,
    ),
    Recipe(
        "reduce-the-parts",
        "Reduce the parts before they are concatenated, and add",
        places("concatenate", lambda x: _has_odd_parts(x) and _is_reduced(x)),
    ),
    Recipe(
        "rotate-halves",
        "Rotate halves of the row, not even and odd columns",
        places("slice", _is_strided, backends="gpu"),
    ),
    Recipe(
        "mask-by-position",
        "Compare positions (broadcasted_iota) instead of reading a mask",
        places("select(constant)", _is_large_constant),
    ),
    Recipe(
        "phase-by-cos-and-sin",
        "Write jax.lax.complex(jnp.cos(x), jnp.sin(x)), not jnp.exp(1j * x)",
        places("exponential(real(multiply(convert, broadcast(constant))))", backends="gpu"),
    ),
    Recipe(
        "squared-magnitude",
        "Square the real and the imaginary part, and add",
        places("real(multiply(_, complex(real, negate(imag))))", backends="gpu"),
    ),
    Recipe(
        "reciprocal-of-a-complex-row",
        "Multiply by the reciprocal of the complex row",
        places("divide(_, broadcast)", _is_of_complex, backends="gpu"),
        _multiply_by_reciprocal,
    ),
    Recipe(
        "power-by-a-root",
        "Write a half-integer power with a square root: x * jnp.sqrt(x)",
        places("power(_, broadcast(constant))", lambda x: _half_integer(x) is not None),
        _root_for_power,
    ),
)
