"""What XLA:CPU's tiled emitter refuses (`xla/backends/cpu/codegen/tiled/tiled_fusion_emitter.cc`)."""

from __future__ import annotations

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.ir.graph import Instruction
from hlofuse.releases import AROUND_FUSION, Release

_FREE = frozenset({"iota", "reshape", "transpose", "parameter"})
_REFUSED = frozenset(
    """
    broadcast dot reduce bitcast-convert map popcnt sign round-nearest-afz round-nearest-even shift-left
    shift-right-arithmetic shift-right-logical count-leading-zeros mulhi
    """.split()
)
_COMPLEX = frozenset("add complex imag real subtract multiply divide power abs negate select compare".split())
_MOST_DIMENSIONS = 8


def is_tiling_type(element_type: str, bit_width: int, release: Release) -> bool:
    """`IsSupportedTilingType`: no 8-bit float, and in some releases no narrow, unsigned or complex type."""
    if element_type.startswith(("u", "c")) and not release.tiles_unsigned_and_complex:
        return False
    return (bit_width >= 8 or release.tiles_narrow_types) and not element_type.startswith("f8")


def why_not_tiled(fusion: Instruction) -> str | None:
    """What the emitter does not take about a fusion (`IsSupportedTiledFusion`); None if it takes it."""
    if not fusion.shape.is_array:
        return "it has several outputs"
    if any(not o.shape.is_array for o in fusion.operands):
        return "an input is no array"
    for inner in fusion.fused_computation:
        shape = inner.shape
        if not is_tiling_type(shape.element_type, shape.bit_width, AROUND_FUSION):
            return f"{inner.name} is {shape.element_type}"
        if not _is_supported(inner):
            return f"it does not take {inner.opcode}"
        if any(s.rank > _MOST_DIMENSIONS for s in (shape, *(o.shape for o in inner.operands))):
            return f"{inner.name} has more than {_MOST_DIMENSIONS} dimensions"
    return None


def _is_supported(instruction: Instruction) -> bool:
    """`IsSupportedInstruction`."""
    opcode = instruction.opcode
    if opcode == "convert":
        return (instruction.operands[0].shape.element_type, instruction.shape.element_type) != ("pred", "u8")
    if opcode == "bitcast":
        source, result = instruction.operands[0].shape, instruction.shape
        if source.element_count != result.element_count:
            return False
        return source.element_type == result.element_type or "pred" not in (
            source.element_type,
            result.element_type,
        )
    if opcode in _FREE:
        return True
    if opcode == "constant":
        return instruction.shape.is_effective_scalar
    if opcode in _REFUSED or not is_elementwise(instruction):
        return False
    types = (instruction.shape.element_type, *(o.shape.element_type for o in instruction.operands))
    return opcode in _COMPLEX or not any(t.startswith("c") for t in types)


# ------------------------------------------------------------ cpu emitters
#
# What XLA:CPU's fusion emitters can express (`emitters::IsSupportedElementalOp`).

UNSUPPORTED_OPCODES = frozenset(
    """
    add-dependency after-all all-gather all-gather-done all-gather-start all-reduce all-reduce-done
    all-reduce-start all-to-all async-done async-start async-update batch-norm-grad batch-norm-inference
    batch-norm-training call cholesky collective-permute collective-permute-done collective-permute-start
    conditional copy-done copy-start custom-call domain dynamic-reshape fft fusion get-dimension-size
    infeed opt-barrier outfeed partition-id recv recv-done reduce-scatter replica-id rng rng-bit-generator
    rng-get-and-update-state scatter select-and-scatter send send-done set-dimension-size sort
    stochastic-convert topk triangular-solve while
    """.split()
)


def is_supported_elemental_op(opcode: str) -> bool:
    """True for every opcode XLA has not listed as unsupported."""
    return opcode not in UNSUPPORTED_OPCODES
