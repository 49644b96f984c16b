"""Carrying a dimension order through an operation, if Triton can follow (`triton_tiling_propagation.cc`)."""

from __future__ import annotations

from dataclasses import dataclass

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.shapes import reshape_is_bitcast
from hlofuse.ir.graph import Instruction
from hlofuse.passes.gpu.gemm.dimension_order import (
    NO_SPLIT,
    DimensionOrder,
    Orders,
    combined,
    concatenates_free_dimension,
    split_required,
    through_altering,
    through_bitcast,
)
from hlofuse.passes.gpu.gemm.legacy_support import is_elementwise_for_triton, is_supported
from hlofuse.passes.gpu.gemm.worth import is_worth_as_input, is_worth_as_output

_NEVER = frozenset("tuple get-tuple-element reduce all-reduce all-reduce-start all-reduce-done pad".split())


@dataclass(frozen=True)
class DotProperties:
    """The operand or result of a dot that a fusion grows from (`DotProperties`)."""

    device: DeviceDescription
    free: int
    """The dimension that is neither batch nor contracted; -1 for the result."""
    splittable: int
    """The dimension that may be split once; -1 for none."""


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
            needed = combined(needed, one) if one is not None and needed is not None else None
            if needed is None:
                return None
    assert needed is not None
    return orders, needed


def carried_if_worth(
    hlo: Instruction, source: DimensionOrder, side: DotProperties, *, operand: int | None = None
) -> tuple[Orders, int] | None:
    """The same if the fusion pays: towards operands, or from `operand` towards the result
    (`GetPropagatedDimOrdersAndRequirementsIfProfitablyFusible`)."""
    if hlo.opcode in _NEVER or (hlo.opcode == "power" and len(hlo.users) > 1):
        return None
    if not is_supported(hlo, side.device):
        return None
    found = carried(hlo, source, side, to_operands=operand is None)
    if found is None:
        return None
    if operand is None:
        return found if _has_small_operand(hlo, found[0], side) or is_worth_as_input(hlo) else None
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
        and o.operands[0].opcode in ("parameter", "constant")
        and carried_if_worth(o, orders[o], side) is not None
        for o in hlo.operands
    )


def _is_small_input(operand: Instruction) -> bool:
    if operand.opcode == "broadcast":
        source = operand.operands[0]
        if (source.shape.is_array and not source.shape.rank) or _is_effective_parameter(source):
            return True
    return _is_effective_parameter(operand)


def _is_effective_parameter(hlo: Instruction) -> bool:
    while hlo.opcode in ("bitcast", "get-tuple-element"):
        hlo = hlo.operands[0]
    return hlo.opcode == "parameter"


def _orders(
    hlo: Instruction, source: DimensionOrder, side: DotProperties, to_operands: bool
) -> Orders | None:
    """`GetPropagatedDimOrders`."""
    opcode = hlo.opcode
    if opcode != "parameter" and to_operands and any(u.opcode == "dynamic-slice" for u in hlo.users):
        return None
    if opcode == "parameter" or (opcode == "constant" and not hlo.shape.rank):
        return {}
    if opcode in ("transpose", "copy"):
        return through_altering(hlo, source, to_operands=to_operands)
    if opcode in ("broadcast", "slice"):
        return through_altering(hlo, source, to_operands=True) if to_operands else None
    if hlo.operands and is_elementwise_for_triton(opcode, hlo.operands[0].shape.element_type):
        return dict.fromkeys(hlo.operands, source) if to_operands else {hlo: source}
    if opcode == "reshape" and not reshape_is_bitcast(hlo.operands[0].shape, hlo.shape):
        return None
    if opcode in ("bitcast", "reshape"):
        return through_bitcast(hlo.operands[0] if to_operands else hlo, source)
    if opcode == "concatenate" and to_operands and concatenates_free_dimension(hlo, source, side.free):
        return through_altering(hlo, source, to_operands=True)
    return None
