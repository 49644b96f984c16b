"""Matrix products supported in a generic Triton fusion (`IsTritonSupportedDot` in
`xla/backends/gpu/codegen/triton/support.cc`)."""

from collections.abc import Callable
from typing import TypeAlias

from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import BIT_WIDTH, FLOATING_TYPES
from hlofuse.ir.text.text import values

_FLOATS = values("bf16 f16 f32 f8e4m3fn f8e5m2")
_INTEGERS = values("s4 s8 s16 s32 s64 u4 u8 u16 u32 u64 pred")
# Algorithm: type of the operands, type it accumulates in (`algorithm_util.cc`).
_ALGORITHMS: dict[str, tuple[str, str]] = {
    "dot_f16_f16_f16": ("f16", "f16"),
    "dot_f32_f32_f32": ("f32", "f32"),
    "dot_f16_f16_f32": ("f16", "f32"),
    "dot_bf16_bf16_f32": ("bf16", "f32"),
    "dot_bf16_bf16_f32_x3": ("f32", "f32"),
    "dot_bf16_bf16_f32_x6": ("f32", "f32"),
    "dot_bf16_bf16_f32_x9": ("f32", "f32"),
    "dot_tf32_tf32_f32": ("f32", "f32"),
    "dot_tf32_tf32_f32_x3": ("f32", "f32"),
    "dot_f64_f64_f64": ("f64", "f64"),
    "dot_bf16_bf16_bf16": ("bf16", "bf16"),
}


def dot_refusal(
    dot: Instruction, conversion: Callable[[str, str], str | None], rocm: bool, capability: tuple[int, int]
) -> str | None:
    """XLA's reason against the dot; None if it is supported. `conversion` gives the same for conversions."""
    result = dot.shape.element_type
    lhs, rhs = (o.shape.element_type for o in dot.operands[:2])
    mixed = {lhs, rhs}
    if (
        lhs != rhs
        and mixed != {"f8e5m2", "f8e4m3fn"}
        and not (rocm and mixed == {"f8e5m2fnuz", "f8e4m3fnuz"})
    ):
        return "Dot operation only supports same types for lhs and rhs."
    if result in ("s4", "u4"):
        return "4-bit integer is not supported."
    contracted = dot_dimensions(dot)[2]
    if len(contracted) != 1:
        return f"Exactly one contracting dimension is supported, got {','.join(map(str, contracted))}"
    algorithm = dot.attributes.raw("algorithm") or "unset"
    if algorithm != "unset":
        return _algorithm(algorithm, lhs, rhs, result, conversion, rocm, capability)
    return _types(lhs, result, rocm, capability) or _types(rhs, result, rocm, capability)


def _types(operand: str, result: str, rocm: bool, capability: tuple[int, int]) -> str | None:
    """`AreTypesSupportedByAlgUnsetDot`."""
    if operand == "f64" and result != "f64":
        return "Dot operation only supports F64 result type for F64 input type."
    if "f8e4m3fn" in (operand, result) and not rocm and capability < (9, 0):
        return "Dot operation for F8E4M3FN is not supported before Hopper."
    if operand in _FLOATS or operand in (("f8e4m3fnuz", "f8e5m2fnuz") if rocm else ("f64",)):
        return None
    if operand in ("s8", "u8") and result in ("s32", "u32"):
        return None
    if operand in _INTEGERS:
        if result in _INTEGERS:
            return "Dot operation does not support these integer types."
        if result in FLOATING_TYPES:
            return "Dot operation does not support floating point input and integer result types."
        return None
    return f"Unsupported types: input={operand.upper()}, result={result.upper()}"


def _algorithm(
    name: str,
    lhs: str,
    rhs: str,
    result: str,
    conversion: Callable[[str, str], str | None],
    rocm: bool,
    capability: tuple[int, int],
) -> str | None:
    printed = f"ALG_{name.upper()}"
    algorithm = _ALGORITHMS.get(name)
    if algorithm is None or name == ("dot_f64_f64_f64" if rocm else "dot_bf16_bf16_bf16"):
        return f"Unsupported dot algorithm: {printed}"
    operand, accumulator = algorithm
    ending = f" for dot algorithm {printed}"
    if result != accumulator and (conversion(result, accumulator) or conversion(accumulator, result)):
        return "Unsupported result conversion" + ending
    if name == "dot_f64_f64_f64" and BIT_WIDTH[lhs] < 32 and (rocm or capability < (10, 0)):
        return "Unsupported BF16 on GPUs on ROCm and before Blackwell" + ending
    for side, element_type in (("lhs", lhs), ("rhs", rhs)):
        if element_type != operand and conversion(element_type, operand):
            return f"Unsupported {side} conversion{ending}"
    return None


def scaled_dot_refusal(dot: Instruction) -> str | None:
    """`IsTritonSupportedScaledDot`."""
    types = [o.shape.element_type for o in dot.operands[:4]]
    for side, element_type in zip(("LHS", "RHS"), types, strict=False):
        if element_type not in ("f8e4m3fn", "f4e2m1fn", "f8e5m2", "bf16"):
            return f"Unsupported {side} operand type: {element_type.upper()}"
    for side, element_type, scale in zip(("LHS", "RHS"), types, types[2:], strict=False):
        if element_type != "bf16" and scale not in ("f8e4m3fn", "f8e5m2", "f8e8m0fnu", "s8"):
            return f"Unsupported {side} scale type: {scale.upper()}"
    return None


# Which dimensions of a dot's operands are what.

DotDimensions: TypeAlias = tuple[tuple[int, ...], ...]
"""Left batch, right batch, left contracting, right contracting."""

_NAMES = ("lhs_batch_dims", "rhs_batch_dims", "lhs_contracting_dims", "rhs_contracting_dims")


def dot_dimensions(dot: Instruction) -> DotDimensions:
    """The `DotDimensionNumbers` of a dot."""
    return tuple(tuple(dot.attributes.get(n, ())) for n in _NAMES)
