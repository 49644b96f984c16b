"""Operations that a GEMM fusion can include, and the profit of it."""

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.shapes import reshape_is_bitcast
from hlofuse.ir import Instruction, Record
from hlofuse.ir.opcodes import values
from hlofuse.ir.shape import INTEGER_TYPES
from hlofuse.releases import Release
from .dimension_order import (
    NO_SPLIT,
    DimensionOrder,
    Orders,
    combined,
    concatenates_free_dimension,
    split_required,
    through_altering,
    through_bitcast,
)

_FLOATS = values("f32 bf16 f16 f64")
_FUNCTIONS = values("""
    acos acosh asin asinh atanh cbrt ceil cosine cosh erf exponential exponential-minus-one floor log
    log-plus-one round-nearest-even rsqrt sine sinh sqrt tan tanh
    """)
_MOVES = values("transpose slice reshape pad concatenate parameter broadcast")


def is_elementwise_for_triton(opcode: str, operand_type: str) -> bool:
    """`IsTritonSupportedElementwiseUpToFloatNormalization` (`support_legacy.cc`)."""
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
        types = [hlo.element_type]
        types += [
            o.element_type for o in hlo.operands if not (hlo.opcode == "convert" and o.element_type == "s4")
        ]
        if not all(_is_data_type(t, device) for t in types):
            return False
        if hlo.opcode == "constant":
            return True
        return bool(hlo.operands) and is_elementwise_for_triton(hlo.opcode, hlo.operand.element_type)
    if hlo.opcode == "bitcast":
        return hlo.element_type == hlo.operand.element_type
    return hlo.opcode in _MOVES


def can_handle_gemm(dot: Instruction, device: DeviceDescription) -> bool:
    """Precision and types (`CanTritonHandleGEMM`)."""
    algorithm = dot.raw("algorithm")
    if algorithm is None:
        if any(p != "default" for p in dot.attributes.get("operand_precision", ())):
            return False
    elif algorithm not in _ALGORITHMS:
        return False
    result = dot.element_type
    left, right = (o.element_type for o in dot.operands)
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


_ALGORITHMS = values("""
    dot_tf32_tf32_f32 dot_tf32_tf32_f32_x3 dot_f32_f32_f32 dot_bf16_bf16_f32 dot_bf16_bf16_f32_x3
    dot_bf16_bf16_f32_x6 dot_bf16_bf16_f32_x9
    """)


def _is_data_type(element_type: str, device: DeviceDescription) -> bool:
    if element_type in ("f16", "f32", "bf16", "pred", "s8", "s16", "s32"):
        return True
    if element_type == "f8e5m2":
        return device.compute_capability[0] >= 8
    return element_type == "f8e4m3fn" and device.compute_capability[0] >= 9


_LONGEST_SLICED = 1024  # elements that a product sums up
_TOLERANCE = 1024  # bytes by which a fusion's traffic may grow


def is_worth_as_input(hlo: Instruction, side: "DotProperties | None" = None) -> bool:
    """`IsInputWorthFusing`; for an operand of any product without `side`."""
    growth = _input_minus_output(hlo)
    if growth is None:
        return False
    if growth <= _TOLERANCE:
        return True
    if len(hlo.users) > 1:
        return False
    if hlo.opcode == "slice":
        if all(o.opcode in ("parameter", "constant") for o in hlo.operands):
            return True
        if _is_worth_slicing(hlo, side):
            return True
    if hlo.opcode == "multiply":
        return False
    return all(o.opcode in ("parameter", "constant") and len(o.users) <= 1 for o in hlo.operands)


def _is_worth_slicing(hlo: Instruction, side: "DotProperties | None") -> bool:
    """True if what is sliced has other users, too, for which it is computed anyhow."""
    operand = hlo.operand
    if side is None or side.release.products_take_cheap_slices:
        while operand.opcode in ("bitcast", "transpose", "reshape") and len(operand.users) == 1:
            operand = operand.operand
        pays = _is_cheap_to_repeat(operand)
    else:
        pays = side.release.products_take_slices and side.contracted <= _LONGEST_SLICED
    same = all(u.opcode == "slice" and u.shape.dimensions == hlo.shape.dimensions for u in operand.users)
    return len(operand.users) > 1 and not same and pays


def is_worth_as_output(hlo: Instruction) -> bool:
    """`IsOutputWorthFusing`."""
    growth = _input_minus_output(hlo)
    if growth is None:
        return False
    reader = hlo.users[0] if len(hlo.users) == 1 else hlo
    if hlo.is_root or (reader.is_root and reader.opcode == "tuple"):
        return True
    return growth >= -_TOLERANCE


def _input_minus_output(hlo: Instruction) -> int | None:
    if hlo.shape.is_tuple or any(o.shape.is_tuple for o in hlo.operands):
        return None
    return sum(o.shape.byte_size for o in hlo.operands) - hlo.shape.byte_size


def _is_cheap_to_repeat(operand: Instruction) -> bool:
    if operand.opcode in ("parameter", "constant") or is_elementwise(operand):
        return True
    return all(u.opcode == "slice" for u in operand.users)


_NEVER = values("tuple get-tuple-element reduce all-reduce all-reduce-start all-reduce-done pad")


class DotProperties(Record):
    """A value of a dot that a fusion grows from (`DotProperties`, `triton_tiling_propagation.cc`)."""

    device: DeviceDescription
    release: Release
    contracted: int  # The number of elements that are summed up
    free: int  # The dimension that is neither batch nor contracted; -1 for the result
    splittable: int  # The dimension that may be split once; -1 for none


def carried(
    hlo: Instruction, source: DimensionOrder, side: DotProperties, *, to_operands: bool
) -> tuple[Orders, int] | None:
    """The orders beyond `hlo` and the split they need (`GetPropagatedDimOrdersAndRequirements`)."""
    orders = _orders(hlo, source, side, to_operands)
    if orders is None:
        return None
    needed: int | None = NO_SPLIT
    for place in (*hlo.operands, hlo):
        if place in orders:
            one = split_required(orders[place], side.splittable)
            needed = combined(needed, one)
            if needed is None:
                return None
    assert needed is not None
    return orders, needed


def carried_if_worth(
    hlo: Instruction, source: DimensionOrder, side: DotProperties, *, operand: int | None = None
) -> tuple[Orders, int] | None:
    """The same if the fusion pays: towards operands, or from `operand` towards the result
    (`GetPropagatedDimOrdersAndRequirementsIfProfitablyFusible`)."""
    repeated = hlo.opcode == "power" and len(hlo.users) > 1 and not side.release.products_repeat_powers
    if hlo.opcode in _NEVER or repeated:
        return None
    if not is_supported(hlo, side.device):
        return None
    found = carried(hlo, source, side, to_operands=operand is None)
    if found is None:
        return None
    if operand is None:
        return found if _has_small_operand(hlo, found[0], side) or is_worth_as_input(hlo, side) else None
    for number, other in enumerate(hlo.operands):
        if number != operand and not _is_small_input(other):
            return None
    return found if is_worth_as_output(hlo) else None


def _has_small_operand(hlo: Instruction, orders: Orders, side: DotProperties) -> bool:
    """A binary operation on something spread that can be fused, too."""
    if not is_elementwise(hlo) or len(hlo.operands) != 2:
        return False
    return any(
        o.opcode == "broadcast"
        and o.operand.opcode in ("parameter", "constant")
        and carried_if_worth(o, orders[o], side) is not None
        for o in hlo.operands
    )


def _is_small_input(operand: Instruction) -> bool:
    if operand.opcode == "broadcast":
        source = operand.operand
        if (source.shape.is_array and not source.shape.rank) or _is_effective_parameter(source):
            return True
    return _is_effective_parameter(operand)


def _is_effective_parameter(hlo: Instruction) -> bool:
    return hlo.through("bitcast", "get-tuple-element").opcode == "parameter"


def _orders(
    hlo: Instruction, source: DimensionOrder, side: DotProperties, to_operands: bool
) -> Orders | None:
    """`GetPropagatedDimOrders`."""
    opcode = hlo.opcode
    readers = (
        ("dynamic-slice",) if side.release.products_enter_concatenates else ("dynamic-slice", "concatenate")
    )
    if opcode != "parameter" and to_operands and any(u.opcode in readers for u in hlo.users):
        return None
    if opcode == "parameter" or (opcode == "constant" and not hlo.shape.rank):
        return {}
    if opcode in ("transpose", "copy"):
        return through_altering(hlo, source, to_operands=to_operands)
    if opcode in ("broadcast", "slice"):
        return through_altering(hlo, source, to_operands=True) if to_operands else None
    if hlo.operands and is_elementwise_for_triton(opcode, hlo.operand.element_type):
        return dict.fromkeys(hlo.operands, source) if to_operands else {hlo: source}
    if opcode == "reshape" and not reshape_is_bitcast(hlo.operand.shape, hlo.shape):
        return None
    if opcode in ("bitcast", "reshape"):
        return through_bitcast(hlo.operand if to_operands else hlo, source)
    if opcode == "concatenate" and to_operands and concatenates_free_dimension(hlo, source, side.free):
        return through_altering(hlo, source, to_operands=True)
    return None


def added_parameters(hlo: Instruction) -> int:
    """`NumAddedParameters`."""
    if hlo.opcode == "parameter" or (hlo.opcode == "constant" and hlo.shape.rank):
        return 0
    return len(hlo.operands) - 1
