"""Operations supported in a Triton fusion, and XLA's reasons against others (`xla/…/support.cc`)."""

from collections.abc import Iterable
from functools import cache
from typing import TypeAlias

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.cost.gpu.backend_config import is_generic_triton_fusion
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.graph import Instruction
from hlofuse.ir.opcodes import values, with_trait
from hlofuse.ir.shape import BIT_WIDTH, COMPLEX_TYPES, FLOATING_TYPES, INTEGER_TYPES
from hlofuse.releases import Release

_DOT_FLOATS = values("bf16 f16 f32 f8e4m3fn f8e5m2")
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


def dot_refusal(dot: Instruction, support: "TritonSupport") -> str | None:
    """XLA's reason against the dot; None if it is supported."""
    result = dot.element_type
    lhs, rhs = (o.element_type for o in dot.operands[:2])
    mixed = {lhs, rhs}
    if (
        lhs != rhs
        and mixed != {"f8e5m2", "f8e4m3fn"}
        and not (support.rocm and mixed == {"f8e5m2fnuz", "f8e4m3fnuz"})
    ):
        return "Dot operation only supports same types for lhs and rhs."
    if result in ("s4", "u4"):
        return "4-bit integer is not supported."
    contracted = dot_dimensions(dot)[2]
    if len(contracted) != 1:
        return f"Exactly one contracting dimension is supported, got {','.join(map(str, contracted))}"
    algorithm = dot.raw("algorithm") or "unset"
    if algorithm != "unset":
        return _algorithm(algorithm, lhs, rhs, result, support)
    return _types(lhs, result, support) or _types(rhs, result, support)


def _types(operand: str, result: str, support: "TritonSupport") -> str | None:
    """`AreTypesSupportedByAlgUnsetDot`."""
    if operand == "f64" and result != "f64":
        return "Dot operation only supports F64 result type for F64 input type."
    if "f8e4m3fn" in (operand, result) and not support.rocm and support.capability < (9, 0):
        return "Dot operation for F8E4M3FN is not supported before Hopper."
    if operand in _DOT_FLOATS or operand in (("f8e4m3fnuz", "f8e5m2fnuz") if support.rocm else ("f64",)):
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
    support: "TritonSupport",
) -> str | None:
    conversion = support.conversion
    rocm = support.rocm
    printed = f"ALG_{name.upper()}"
    algorithm = _ALGORITHMS.get(name)
    if algorithm is None or name == ("dot_f64_f64_f64" if rocm else "dot_bf16_bf16_bf16"):
        return f"Unsupported dot algorithm: {printed}"
    operand, accumulator = algorithm
    ending = f" for dot algorithm {printed}"
    if result != accumulator and (conversion(result, accumulator) or conversion(accumulator, result)):
        return "Unsupported result conversion" + ending
    if name == "dot_f64_f64_f64" and BIT_WIDTH[lhs] < 32 and (rocm or support.capability < (10, 0)):
        return "Unsupported BF16 on GPUs on ROCm and before Blackwell" + ending
    for side, element_type in (("lhs", lhs), ("rhs", rhs)):
        if element_type != operand and conversion(element_type, operand):
            return f"Unsupported {side} conversion{ending}"
    return None


def scaled_dot_refusal(dot: Instruction) -> str | None:
    """`IsTritonSupportedScaledDot`."""
    types = [o.element_type for o in dot.operands[:4]]
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


_UNSUPPORTED_OPCODES = with_trait("not-in-triton")
_MOVES = values("concatenate pad constant bitcast broadcast reshape slice transpose")
_EARLY = values("bitcast broadcast constant iota parameter reduce reshape slice transpose")
_TYPES = values("pred s4 s8 s16 s32 s64 u8 u16 u32 u64 f16 bf16 f32 f64")
_F8 = values("f8e5m2 f8e4m3fn")
_F8_ROCM = values("f8e5m2fnuz f8e4m3fnuz")
# Types of which XLA knows that CUDA or ROCm has them, and what it says of others.
_BY_VENDOR = {
    "bf16": "Unsupported GPU architecture for BF16.",
    **dict.fromkeys(_F8, "Unsupported GPU architecture for F8E4M3FN."),
    **dict.fromkeys(_F8_ROCM, "F8E4M3FNUZ/F8E5M2FNUZ is only supported on ROCm."),
}
_UNSIGNED = values("u8 u16 u32 u64")
_FLOATS = values("bf16 f16 f32 f64")
_FROM_4_BITS = _FLOATS | {"s8"}
_FLOAT_OPCODES = with_trait("triton-float")
_PRED_OPCODES = values("not copy add compare maximum minimum multiply and or xor select clamp")
_COMMON_OPCODES = values("abs copy negate add compare maximum minimum multiply subtract select clamp")
_INTEGER_OPCODES = values("not divide and or xor remainder")
_CONCATENATE_ALIGNMENT = 64
_OUTPUT_TYPE, _INPUT_TYPE = "Unsupported output data type.", "Unsupported input data type."


class TritonSupport:
    """The rules for one device and release. Each method returns XLA's reason, or None if supported."""

    def __init__(self, device: DeviceDescription, release: Release) -> None:
        self._release = release
        self._types = _TYPES if release.triton_takes_unsigned else _TYPES - _UNSIGNED
        if not release.triton_takes_pads:
            self._types -= {"s4"}
        self.rocm = device.is_rocm
        self._cuda = device.platform == "CUDA"
        self.capability = device.compute_capability
        self._cache = dict[Instruction, str | None]()
        self._f8 = _F8 | _F8_ROCM if self.rocm else _F8
        self._bf16 = not self.rocm or not device.gfx_version.startswith(("gfx900", "gfx906", "gfx10"))

    def refusal(self, instruction: Instruction) -> str | None:
        """The reason against one of a pair, by operation but for Triton fusions (`IsTritonSupported`)."""
        if is_generic_triton_fusion(instruction):
            return None
        if not instruction.is_fusion:
            return self.instruction(instruction)
        return self._first(instruction.fused_computation)

    def _first(self, instructions: Iterable[Instruction]) -> str | None:
        cached = self._cache
        for inner in instructions:
            if inner.is_parameter:  # may yet become something else
                reason = self.instruction(inner)
            elif inner in cached:
                reason = cached[inner]
            else:
                reason = cached[inner] = self.instruction(inner)
            if reason is not None:
                return reason
        return None

    def data_type(self, element_type: str) -> str | None:
        """`IsTritonSupportedDataType`."""
        if not self._cuda and not self.rocm and element_type in _BY_VENDOR:
            return _BY_VENDOR[element_type]
        if element_type == "bf16":
            return None if self._bf16 else "BF16 is not supported on ROCm."
        if element_type in self._types or element_type in _F8:
            return None
        if element_type in _F8_ROCM:
            return None if self.rocm else "F8E4M3FNUZ/F8E5M2FNUZ not supported on Cuda."
        return f"Unsupported data type: {element_type}"

    def instruction(self, instruction: Instruction) -> str | None:
        """`IsTritonSupportedInstruction`."""
        opcode, release = instruction.opcode, self._release
        if not release.triton_takes_pads and self._is_beyond_early_triton(instruction):
            return "Unsupported opcode."
        if opcode in _UNSUPPORTED_OPCODES:
            if opcode == "dynamic-slice" and not release.triton_bitcasts_keep_elements:
                return "dynamic slice is supported but not enabled yet"
            return f"Unsupported opcode {opcode}"
        element_type = instruction.element_type
        operands = instruction.operands
        if opcode == "convert":
            return self.conversion(operands[0].element_type, element_type)
        if opcode == "scaled-dot":
            return scaled_dot_refusal(instruction)
        if (reason := self.data_type(element_type)) is not None:
            return f"Unsupported output data type: {reason}" if release.triton_names_types else _OUTPUT_TYPE
        if any(self.data_type(o.element_type) is not None for o in operands):
            word = "allowed" if release.triton_takes_dots else "fusing"
            return f"Unsupported input data type: Not {word}" if release.triton_names_types else _INPUT_TYPE
        if opcode in _MOVES:
            return self._data_movement(instruction)
        if opcode == "iota":
            bad = element_type in self._f8 or element_type == "s4"
            return "F8E4M3FN, F8E5M2 and S4 are not supported for iota." if bad else None
        if opcode == "parameter":
            return None
        if opcode == "reduce":
            return self._reduce(instruction)
        if opcode == "dot":
            if not release.triton_takes_dots:
                return "Dot operation is only supported in nested GEMM fusions."
            return dot_refusal(instruction, self)
        if opcode == "fusion":
            return "Nested fusions are not supported."
        if is_elementwise(instruction):
            # The type of the last operand: compare and select have a fixed type elsewhere.
            last = operands[-1].element_type if operands else element_type
            cached = _elementwise_opcodes(last, self.rocm, release)
            return None if opcode in cached else "Unsupported elementwise operation."
        return f"Unsupported instruction opcode {opcode}"

    def _is_beyond_early_triton(self, instruction: Instruction) -> bool:
        """True for an operation outside the early set: element-wise operations and these."""
        opcode = instruction.opcode
        if opcode == "copy":
            return not self._release.triton_takes_copies
        return opcode == "bitcast-convert" or not (opcode in _EARLY or is_elementwise(instruction))

    def conversion(self, source: str, result: str) -> str | None:
        """`IsTritonSupportedConversion`."""
        message = self._conversion_message(source, result)
        if not self._release.triton_names_types:
            unknown = self.data_type(source) is not None or self.data_type(result) is not None
            named = f"Unsupported conversion in Triton: {source} to {result}"
            return named if message is not None or unknown else None
        if message is not None:
            return f"Unsupported conversion in Triton: {source} to {result} with message:\n{message}"
        for word, element_type in (("input", source), ("output", result)):
            if self.data_type(element_type) is not None:
                return f"Unsupported {word} type for conversion: {element_type}"
        return None

    def _conversion_message(self, source: str, result: str) -> str | None:
        both, ada = (source, result), self._release.triton_converts_f8_on_ada
        early = self._cuda and self.capability < ((8, 9) if ada else (9, 0))
        if early and source != result and "f8e4m3fn" in both:
            return f"F8E4M3FN is not supported before {'Ada' if ada else 'Hopper'}."
        eight_bits = [t in self._f8 for t in both]
        wide = any(t in ("f16", "bf16", "f32") for t in both)
        among_narrow = all(eight_bits) and self._release.triton_takes_pads
        if source != result and any(eight_bits) and not among_narrow and not wide:
            return "Unsupported F8 conversion."
        unsigned = self._release.triton_takes_unsigned
        if source in ("s4", "u4") and result not in (_FROM_4_BITS | {"u8"} if unsigned else _FROM_4_BITS):
            return "Unsupported 4-bit integer conversion." if unsigned else "Unsupported S4 conversion."
        if result in ("s4", "u4"):
            return "Unsupported 4-bit integer output type." if unsigned else "Unsupported S4 output type."
        if unsigned and source == "pred" and result == "u8":
            return "Unsupported PRED to U8 conversion."
        return None

    def _data_movement(self, instruction: Instruction) -> str | None:
        opcode = instruction.opcode
        shape = instruction.shape
        if opcode == "concatenate":
            if not self._release.triton_takes_dots:
                return "Only concatenates in nested GEMM fusions are supported."
            if shape.element_type == "s4":
                return "S4 is not supported."
            if not self._release.triton_aligns_concatenates:
                return None
            along = instruction.dimension
            aligned = all(o.sizes[along] % _CONCATENATE_ALIGNMENT == 0 for o in instruction.operands[:-1])
            return None if aligned else "Concatenate operand is not aligned for tiling."
        if opcode == "pad":
            if self._release.pads_only_in_products:
                return "Pads are only supported within GEMM fusions."
            edges = instruction.attributes.get("padding", ())
            if any(e.low or e.interior for e in edges):
                return "Only high padding is supported."
            if not any(e.high for e in edges):
                return "No-op pad ops are not allowed."
        elif opcode == "constant":
            if shape.element_type != "s4":
                return None if shape.is_effective_scalar else "Only scalar constants are supported in Triton."
        elif opcode == "bitcast":
            source = instruction.operand.shape
            if self._release.triton_bitcasts_keep_elements and source.element_count != shape.element_count:
                return "only bitcasts with the same number of elements are supported"
            both = (source.element_type, shape.element_type)
            if self._release.triton_keeps_predicates and both[0] != both[1] and "pred" in both:
                return "bitcasts with different element types are not supported if PRED is involved"
        return "S4 is not supported." if shape.element_type == "s4" else None

    def _reduce(self, reduce: Instruction) -> str | None:
        if reduce.element_type in self._f8:
            return "F8E4M3FN and F8E5M2 are not supported for reductions."
        if self._first(reduce.to_apply) is not None:
            return "Unsupported reduction computation by Triton."
        if not self._release.triton_takes_unsigned:
            single = reduce.operand_count == 2 and len(reduce.dimensions) == 1
            return None if single else "Reduction is not a row-reduction of a single operand."
        if reduce.operand_count != 2:
            return "Reduction is not a reduction of a single operand."
        if not reduce.dimensions:
            return "Reduction must have at least one dimension."
        if len(reduce.dimensions) > 1:
            return (
                "Multi-dimension reductions are only supported when experimental tiling propagation is "
                "enabled."
            )
        return None


@cache
def _elementwise_opcodes(element_type: str, rocm: bool, release: Release) -> frozenset[str]:
    """Element-wise operations by the type they work on (`IsTritonSupportedElementwise`)."""
    if element_type in COMPLEX_TYPES or element_type in ("s4", "u4"):
        return frozenset()
    if element_type == "pred":
        return _PRED_OPCODES
    if element_type in _F8 or (rocm and element_type in _F8_ROCM):
        return values("abs copy select reduce-precision")
    opcodes = _COMMON_OPCODES
    if element_type in INTEGER_TYPES:
        opcodes |= _INTEGER_OPCODES
        if not release.triton_takes_remainders:
            opcodes -= {"remainder"}
    if element_type in _FLOATS:
        opcodes |= _FLOAT_OPCODES
        if not release.triton_divides_halves:
            opcodes -= {"round-nearest-even"}
            if element_type in ("f16", "bf16") and not rocm:
                opcodes -= {"divide"}
    if element_type in FLOATING_TYPES:
        opcodes |= {"reduce-precision"}
    return opcodes
