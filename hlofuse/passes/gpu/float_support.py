"""What a GPU computes on bf16 as it is (`xla/service/gpu/gpu_float_support.cc`, `nvptx_compiler.cc`)."""

from __future__ import annotations

from collections.abc import Callable

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.graph import Instruction

_MOVES = frozenset(
    """
    all-reduce all-reduce-start all-reduce-done reduce-scatter scaled-dot dot convolution ragged-dot
    all-gather all-to-all broadcast collective-permute concatenate copy constant dynamic-slice
    dynamic-update-slice gather pad ragged-all-to-all reshape reverse scatter select select-and-scatter slice
    transpose bitcast bitcast-convert convert compare reduce-precision xor exponential log
    """.split()
)
_AMPERE = frozenset({"abs", "maximum", "minimum", "negate"})
_HOPPER = frozenset({"add", "multiply", "subtract"})

Supports = Callable[[Instruction], bool]


def computes_bf16(device: DeviceDescription) -> Supports:
    """`GpuFloatSupport::IsSupported`."""
    major = device.compute_capability[0]

    def supports(hlo: Instruction) -> bool:
        opcode = hlo.opcode
        if opcode in _MOVES:
            return True
        if opcode in _AMPERE:
            return major >= 8
        if opcode in _HOPPER:
            return major >= 9
        if opcode in ("reduce", "sort"):
            return all(i.opcode == "parameter" or supports(i) for i in hlo.called_computations[0])
        return False

    return supports


def library_takes_bf16(device: DeviceDescription, opcode: str) -> Supports:
    """Everything but convolutions (or dots) of devices older than Ampere."""
    old = device.compute_capability[0] < 8
    return lambda hlo: not (old and hlo.opcode == opcode)
