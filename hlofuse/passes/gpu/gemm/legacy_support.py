"""What Triton's matrix emitter takes (`xla/backends/gpu/codegen/triton/support_legacy.cc`)."""

from __future__ import annotations

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import INTEGER_TYPES

_FLOATS = frozenset({"f32", "bf16", "f16", "f64"})
_FUNCTIONS = frozenset(
    """
    acos acosh asin asinh atanh cbrt ceil cosine cosh erf exponential exponential-minus-one floor log
    log-plus-one round-nearest-even rsqrt sine sinh sqrt tan tanh
    """.split()
)
_MOVES = frozenset("transpose slice reshape pad concatenate parameter broadcast".split())


def is_elementwise_for_triton(opcode: str, operand_type: str) -> bool:
    """`IsTritonSupportedElementwiseUpToFloatNormalization`."""
    if opcode in ("convert", "select", "clamp"):
        return True
    if operand_type == "pred":
        return opcode in ("not", "and", "or", "xor", "compare")
    if opcode in ("abs", "negate", "add", "compare", "maximum", "minimum", "multiply", "subtract"):
        return True
    if operand_type not in _FLOATS:
        return False
    return (
        opcode in _FUNCTIONS or opcode in ("atan2", "power") or (opcode == "divide" and operand_type != "f16")
    )


def is_supported(hlo: Instruction, device: DeviceDescription) -> bool:
    """`IsTritonSupportedInstruction`, dots and tuples aside."""
    if is_elementwise(hlo):
        types = [hlo.shape.element_type]
        types += [
            o.shape.element_type
            for o in hlo.operands
            if not (hlo.opcode == "convert" and o.shape.element_type == "s4")
        ]
        if not all(_is_data_type(t, device) for t in types):
            return False
        if hlo.opcode == "constant":
            return True
        return bool(hlo.operands) and is_elementwise_for_triton(
            hlo.opcode, hlo.operands[0].shape.element_type
        )
    if hlo.opcode == "bitcast":
        return hlo.shape.element_type == hlo.operands[0].shape.element_type
    return hlo.opcode in _MOVES


def can_handle_gemm(dot: Instruction, device: DeviceDescription) -> bool:
    """Precision and types (`CanTritonHandleGEMM`)."""
    algorithm = dot.attributes.raw("algorithm")
    if algorithm is None:
        if any(p != "default" for p in dot.attributes.get("operand_precision", ())):
            return False
    elif algorithm not in _ALGORITHMS:
        return False
    result = dot.shape.element_type
    left, right = (o.shape.element_type for o in dot.operands)
    if result in ("pred", "s8", "s16") or not _is_data_type(result, device):
        return False
    if result == "s32" and device.compute_capability[0] < 8:
        return False
    if left != right and not (left.startswith("f8") and right.startswith("f8")):
        return False
    if not _is_data_type(left, device) or not _is_data_type(right, device):
        return False
    if result == "s32" and left != "s8":
        return False
    return (left in INTEGER_TYPES) == (result in INTEGER_TYPES)


_ALGORITHMS = frozenset(
    """
    dot_tf32_tf32_f32 dot_tf32_tf32_f32_x3 dot_f32_f32_f32 dot_bf16_bf16_f32 dot_bf16_bf16_f32_x3
    dot_bf16_bf16_f32_x6 dot_bf16_bf16_f32_x9
    """.split()
)


def _is_data_type(element_type: str, device: DeviceDescription) -> bool:
    if element_type in ("f16", "f32", "bf16", "pred", "s8", "s16", "s32"):
        return True
    if element_type == "f8e5m2":
        return device.compute_capability[0] >= 8
    return element_type == "f8e4m3fn" and device.compute_capability[0] >= 9
