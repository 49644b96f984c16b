"""Flops, bytes and operand utilization of one instruction that is not a fusion. Mirrors the handlers of
`hlo_cost_analysis.cc` and `gpu/model/gpu_hlo_cost_analysis.cc`, in single precision as these."""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hlofuse.analysis import flops as count
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES, transpose_is_bitcast
from hlofuse.ir.graph import Computation, Instruction
from hlofuse.releases import Release
from .device import DeviceDescription
from .shapes import ShapeFacts, bytes_of_leaves
from .ticks import fp32

DEFAULT_FLOPS = 3  # FLOP of an operation missing in the table (`GetFlopsPerElementwiseOpElement`)
_DEFAULT_PROFILE = "sm_86"


@cache
def _table(name: str) -> dict[str, dict[str, int]] | None:
    """One table of the file, None where it has none: reading all takes as long as a small replay."""
    text = Path(__file__).with_name("op_profiles.toml").read_text()
    _, found, rest = text.partition(f"\n[{name}]\n")
    return tomllib.loads(rest.partition("\n[")[0]) if found else None


def op_profile(device: DeviceDescription, release: Release) -> dict[str, dict[str, int]]:
    """Cycles by opcode and element type; a device without a table of its own uses that of sm_86."""
    name = device.op_profile
    newer = {"sm_100": release.has_profile_of_b200, "sm_103": release.has_profile_of_b300}
    table = _table(name) if newer.get(name, True) else None
    if table is None:
        table = _table(_DEFAULT_PROFILE)
    assert table is not None
    return table


RegionFlops = Callable[[Computation], float]


@dataclass(slots=True)
class OpCost:
    """The cost of one evaluation of the whole instruction."""

    out_bytes: float
    operand_bytes: list[float]
    utilization: list[float]  # The average reads of an element of each operand
    flops: float = 0.0


def op_cost(
    instruction: Instruction,
    result: ShapeFacts,
    operands: list[ShapeFacts],
    profile: Mapping[str, Mapping[str, int]],
    region_flops: RegionFlops,
    device: DeviceDescription,
    release: Release,
) -> OpCost:
    """The cost by opcode; the default is to read every operand and write the result once."""
    shape = instruction.shape
    if shape.is_tuple and (release.tuples_written_whole or instruction.is_reduce):
        size = bytes_of_leaves(shape)
    else:
        size = fp32(result.size)
    cost = OpCost(size, [o.size_fp32 for o in operands], [1.0] * len(operands))
    opcode = instruction.opcode
    if opcode in ELEMENTWISE_OPCODES and opcode != "copy":
        cycles = profile.get(opcode, {}).get(shape.element_type, DEFAULT_FLOPS)
        cost.flops = fp32(cycles * result.elements)
        return cost
    if (handler := _HANDLERS.get(opcode)) is not None:
        handler(_Context(instruction, result, operands, region_flops, device), cost)
    return cost


@dataclass(slots=True)
class _Context:
    instruction: Instruction
    result: ShapeFacts
    operands: list[ShapeFacts]
    region_flops: RegionFlops
    device: DeviceDescription

    def applied(self) -> float:
        """FLOP of the called computations, each as often as it runs."""
        flops = 0.0
        times = count.applications(self.instruction)
        for (_, called), often in zip(self.instruction.called, times, strict=False):
            flops = fp32(flops + fp32(self.region_flops(called) * fp32(often)))
        return flops


def _ratio(part: int, whole: int) -> float:
    return fp32(part / whole) if whole else 0.0


def _no_result(c: _Context, cost: OpCost) -> None:
    cost.out_bytes = 0.0


def _nothing(c: _Context, cost: OpCost) -> None:
    cost.out_bytes = 0.0
    cost.operand_bytes = [0.0] * len(cost.operand_bytes)


def _first_nothing(c: _Context, cost: OpCost) -> None:
    cost.out_bytes = 0.0
    cost.operand_bytes[0] = 0.0


def _transpose(c: _Context, cost: OpCost) -> None:
    if transpose_is_bitcast(c.instruction):
        _first_nothing(c, cost)


def _set_result_sized_read(c: _Context, cost: OpCost) -> None:
    """A slice or gather reads part of its operand, a broadcast all of it many times."""
    cost.operand_bytes[0] = fp32(c.result.size)
    cost.utilization[0] = _ratio(c.result.elements, c.operands[0].elements)


def _dynamic_update_slice(c: _Context, cost: OpCost) -> None:
    update = c.operands[1]
    cost.out_bytes = cost.operand_bytes[1]
    cost.operand_bytes[0] = 0.0
    cost.utilization[0] = _ratio(c.result.elements - update.elements, c.result.elements)


def _tuple(c: _Context, cost: OpCost) -> None:
    cost.out_bytes = fp32(c.result.size)
    cost.operand_bytes = [0.0] * len(cost.operand_bytes)


def straddles_warps(concatenate: Instruction) -> bool:
    """True where a warp may read on both sides of the first seam."""
    dimension = concatenate.dimension
    return dimension > 0 and concatenate.operand.sizes[dimension] % 32 != 0


def _concatenate(c: _Context, cost: OpCost) -> None:
    straddled = straddles_warps(c.instruction)
    each = c.device.straddled_concatenate_flops if straddled else c.device.concatenate_flops
    cost.flops = fp32(each * c.result.elements)


def _reduce(c: _Context, cost: OpCost) -> None:
    outputs = count.first_leaf(c.instruction.shape).element_count
    cost.flops = c.applied()
    for k in range(len(c.operands) // 2, len(c.operands)):
        cost.operand_bytes[k] = fp32(outputs * c.operands[k].size)
        cost.utilization[k] = fp32(outputs)


def _reduce_window(c: _Context, cost: OpCost) -> None:
    size, _ = count.reduce_window_work(c.instruction)
    source, read = c.operands[0], count.first_leaf(c.instruction.shape).element_count * size
    cost.utilization[0] = _ratio(read, source.elements)
    cost.operand_bytes[0] = fp32(read * source.element_bytes)
    cost.flops = c.applied()


def _scatter(c: _Context, cost: OpCost) -> None:
    n = len(c.operands) // 2
    total = 0
    for k in range(n):
        update = c.operands[n + 1 + k].size
        cost.operand_bytes[k] = fp32(update)
        total += update
    cost.out_bytes = fp32(total)
    cost.flops = c.applied()


def _applies(c: _Context, cost: OpCost) -> None:
    cost.flops = c.applied()


def _custom_call(c: _Context, cost: OpCost) -> None:
    marker = c.instruction.attributes.get("custom_call_target") in (
        "xla.sdy.call_marker_before",
        "xla.sdy.call_marker_after",
    )
    unknown = 0.0 if marker else -1.0
    cost.out_bytes = cost.flops = unknown
    cost.operand_bytes = [unknown] * len(cost.operand_bytes)


def _counted(counter: Callable[[Instruction], int]) -> Callable[[_Context, OpCost], None]:
    def handler(c: _Context, cost: OpCost) -> None:
        cost.flops = fp32(counter(c.instruction))

    return handler


_HANDLERS: dict[str, Callable[[_Context, OpCost], None]] = {
    "parameter": _no_result,
    "constant": _no_result,
    "get-tuple-element": _first_nothing,
    "domain": _nothing,
    "after-all": _nothing,
    "add-dependency": _nothing,
    "bitcast": _first_nothing,
    "transpose": _transpose,
    "slice": _set_result_sized_read,
    "dynamic-slice": _set_result_sized_read,
    "dynamic-update-slice": _dynamic_update_slice,
    "tuple": _tuple,
    "concatenate": _concatenate,
    "broadcast": _set_result_sized_read,
    "reduce": _reduce,
    "reduce-window": _reduce_window,
    "select-and-scatter": _applies,
    "gather": _set_result_sized_read,
    "scatter": _scatter,
    "map": _applies,
    "scan": _applies,
    "custom-call": _custom_call,
    **{opcode: _counted(counter) for opcode, counter in count.FLOPS.items()},
}
