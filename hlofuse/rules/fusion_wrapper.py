"""Rules of FusionWrapper: which operation left alone becomes a fusion of its own. Codes FW…"""

from dataclasses import dataclass
from typing import Any

from hlofuse.analysis.convolution import why_not_eigen
from hlofuse.analysis.cpu_predicates import is_tiling_type
from hlofuse.ir.graph import Instruction
from hlofuse.releases import Release, Span
from hlofuse.rules.verdict import condition

_MIRRORS = "xla/service/cpu/fusion_wrapper.cc: FusionWrapper::MustWrapInstruction"
_WHY = (
    "XLA:CPU generates kernels only from fusions, so an unfused operation gets a fusion of its own. The"
    " kernel is the same."
)

_LATER_WRAPPED = frozenset(
    """
    acos acosh asin asinh atanh cosh dynamic-update-slice mulhi sinh transpose
    """.split()
)
"""Wrapped where `Release.wraps_all_loops`."""
WRAPPED_OPCODES = _LATER_WRAPPED | frozenset(
    """
    abs add and atan2 bitcast-convert broadcast cbrt ceil clamp compare complex convert cosine
    count-leading-zeros divide dynamic-slice erf exponential exponential-minus-one floor gather imag iota
    is-finite log log-plus-one map maximum minimum multiply negate not or pad popcnt power real reduce
    reduce-precision reduce-window remainder reshape reverse round-nearest-afz round-nearest-even rsqrt
    select shift-left shift-right-arithmetic shift-right-logical sign sine slice sqrt subtract tan tanh xor
    """.split()
)


@dataclass(frozen=True, slots=True)
class WrapCandidate:
    """An operation that XLA of that release may put into a fusion of its own."""

    instruction: Instruction
    release: Release


@condition(
    code="FW001",
    title="A scatter is wrapped",
    condition="The operation is a scatter.",
    why=_WHY,
    mirrors=_MIRRORS,
    allows=True,
)
def scatter(candidate: WrapCandidate) -> dict[str, Any] | None:
    return {} if candidate.instruction.opcode == "scatter" else None


@condition(
    code="FW002",
    title="An operation of the fusion emitters is wrapped",
    condition="The operation is elementwise, a data movement (broadcast, transpose, slice, pad, gather…), a"
    " reduce, a reduce-window or a map.",
    why=_WHY,
    advice="XLA_FLAGS=--xla_backend_extra_options=xla_cpu_disable_new_fusion_emitters disables these"
    " emitters.",
    mirrors=_MIRRORS,
    allows=True,
    span=Span(since="0.8"),
    history="transpose, dynamic-update-slice, mulhi and the inverse and hyperbolic functions but tanh "
    "since 0.11.",
)
def elemental(candidate: WrapCandidate) -> dict[str, Any] | None:
    opcode = candidate.instruction.opcode
    if opcode not in WRAPPED_OPCODES or _is_too_early(candidate):
        return None
    return {"opcode": opcode}


def _is_too_early(candidate: WrapCandidate) -> bool:
    """True for an operation that only later releases wrap."""
    return candidate.instruction.opcode in _LATER_WRAPPED and not candidate.release.wraps_all_loops


@condition(
    code="FW005",
    title="A copy that changes nothing stays a memcpy",
    condition="The copy has the shape and layout of its operand.",
    why="A plain memcpy is faster than a generated loop.",
    advice="Copies often separate a donated buffer or a loop's state; donating the argument (jax.jit(...,"
    " donate_argnums=...)) can remove them.",
    mirrors=_MIRRORS,
    span=Span(since="0.9"),
)
def plain_copy(candidate: WrapCandidate) -> dict[str, Any] | None:
    instruction = candidate.instruction
    if instruction.opcode != "copy" or instruction.shape.key != instruction.operands[0].shape.key:
        return None
    return {"bytes": instruction.shape.byte_size}


@condition(
    code="FW006",
    title="A copy of a narrow type is not wrapped",
    condition="The element type is an 8-bit float or narrower than 8 bits (except pred).",
    why="The tiled emitter that would generate the copy does not support these types.",
    mirrors=_MIRRORS + "; xla/backends/cpu/codegen/tiled/tiled_fusion_emitter.cc: IsSupportedTilingType",
    span=Span(since="0.9"),
    history="Until 0.10 also a copy of unsigned integers or of complex numbers; since 0.11.2 only of "
    "8-bit floats.",
)
def copy_of_narrow_type(candidate: WrapCandidate) -> dict[str, Any] | None:
    instruction = candidate.instruction
    if instruction.opcode != "copy":
        return None
    element_type = instruction.shape.element_type
    if is_tiling_type(element_type, instruction.shape.bit_width, candidate.release):
        return None
    return {"element_type": element_type}


@condition(
    code="FW003",
    title="A copy that changes the layout is wrapped",
    condition="The operation is a copy to another layout, of pred or a type of at least 8 bits except 8-bit"
    " floats.",
    why="Such a copy is a transpose in memory, for which the tiled emitter generates good code.",
    advice="The copy itself is the cost: two operations need different layouts, often a transpose before a"
    " matmul or at the function's boundary. Passing the array already transposed avoids it.",
    mirrors=_MIRRORS,
    allows=True,
    span=Span(since="0.9"),
)
def layout_copy(candidate: WrapCandidate) -> dict[str, Any] | None:
    instruction = candidate.instruction
    if instruction.opcode != "copy":
        return None
    return {"from": str(instruction.operands[0].shape), "to": str(instruction.shape)}


@condition(
    code="FW004",
    title="A convolution that Eigen does not support is wrapped",
    condition="The convolution is not f16 or f32, has no or more than 3 spatial dimensions, is reversed or"
    " empty, or is not in NHWC and HWIO order and layout.",
    why="Eigen's convolution is fast but supports only these forms; others run as generated loops, which are"
    " slow.",
    advice="Use float32 and NHWC/HWIO order (jax.lax.conv_general_dilated(..., dimension_numbers=('NHWC',"
    " 'HWIO', 'NHWC'))). For a transposed convolution with a reversed kernel, flip the kernel once instead.",
    mirrors=_MIRRORS + "; xla/service/cpu/ir_emission_utils.cc: CanUseEigenConvolution",
    allows=True,
    span=Span(since="0.11"),
)
def slow_convolution(candidate: WrapCandidate) -> dict[str, Any] | None:
    instruction = candidate.instruction
    if instruction.opcode != "convolution":
        return None
    reason = why_not_eigen(instruction)
    return None if reason is None else {"because": reason}


@condition(
    code="FW007",
    title="A convolution is computed by Eigen",
    condition="The operation is a convolution in a form that Eigen supports (see FW004).",
    why="Eigen's code is faster than generated loops.",
    mirrors=_MIRRORS + "; xla/service/cpu/ir_emission_utils.cc: CanUseEigenConvolution",
    span=Span(since="0.11"),
)
def eigen_convolution(candidate: WrapCandidate) -> dict[str, Any] | None:
    return {} if candidate.instruction.opcode == "convolution" else None


@condition(
    code="FW008",
    title="A concatenate or a dot is faster unfused",
    condition="The operation is a concatenate or a dot.",
    why="A concatenate runs as plain copies and a dot as a library call, both faster than generated loops.",
    mirrors=_MIRRORS,
    span=Span(since="0.8"),
    history="Until 0.10 also what FW002 covers since 0.11.",
)
def better_alone(candidate: WrapCandidate) -> dict[str, Any] | None:
    opcode = candidate.instruction.opcode
    return {"opcode": opcode} if opcode in ("concatenate", "dot") or _is_too_early(candidate) else None


RULES = (
    scatter,
    elemental,
    plain_copy,
    copy_of_narrow_type,
    layout_copy,
    slow_convolution,
    eigen_convolution,
    better_alone,
)
"""Asked in order; whatever none of them speaks about is left alone without a word."""
