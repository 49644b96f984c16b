"""Rules of FusionWrapper: which operation left alone becomes a fusion of its own. Codes FW…"""

from hlofuse.analysis.convolution import why_not_eigen
from hlofuse.analysis.cpu_predicates import is_tiling_type
from hlofuse.ir.graph import Instruction
from hlofuse.ir.opcodes import with_trait
from hlofuse.ir.record import Record
from hlofuse.releases import Release, Span
from .verdict import Answer, condition

_LATER_WRAPPED = with_trait("wrapped-later")  # Wrapped where `Release.wraps_all_loops`
WRAPPED_OPCODES = _LATER_WRAPPED | with_trait("wrapped")


class WrapCandidate(Record):
    """An operation that XLA of that release may put into a fusion of its own."""

    instruction: Instruction
    release: Release


@condition("FW001", "A scatter is wrapped", allows=True)
def scatter(candidate: WrapCandidate) -> bool:
    return candidate.instruction.opcode == "scatter"


@condition("FW002", "An operation of the fusion emitters is wrapped", allows=True, span=Span("0.8"))
def elemental(candidate: WrapCandidate) -> Answer:
    opcode = candidate.instruction.opcode
    if opcode not in WRAPPED_OPCODES or _is_too_early(candidate):
        return None
    return {"opcode": opcode}


def _is_too_early(candidate: WrapCandidate) -> bool:
    return candidate.instruction.opcode in _LATER_WRAPPED and not candidate.release.wraps_all_loops


@condition("FW005", "A copy that changes nothing stays a memcpy", span=Span("0.9"))
def plain_copy(candidate: WrapCandidate) -> Answer:
    instruction = candidate.instruction
    if instruction.opcode != "copy" or instruction.shape.key != instruction.operand.shape.key:
        return None
    return {"bytes": instruction.byte_size}


@condition("FW006", "A copy of a narrow type is not wrapped", span=Span("0.9"))
def copy_of_narrow_type(candidate: WrapCandidate) -> Answer:
    instruction = candidate.instruction
    if instruction.opcode != "copy":
        return None
    element_type = instruction.element_type
    if is_tiling_type(element_type, instruction.shape.bit_width, candidate.release):
        return None
    return {"element_type": element_type}


@condition("FW003", "A copy that changes the layout is wrapped", allows=True, span=Span("0.9"))
def layout_copy(candidate: WrapCandidate) -> Answer:
    instruction = candidate.instruction
    if instruction.opcode != "copy":
        return None
    return {"from": str(instruction.operand.shape), "to": str(instruction.shape)}


@condition("FW004", "A convolution that Eigen does not support is wrapped", allows=True, span=Span("0.11"))
def slow_convolution(candidate: WrapCandidate) -> Answer:
    instruction = candidate.instruction
    if instruction.opcode != "convolution":
        return None
    reason = why_not_eigen(instruction)
    return None if reason is None else {"because": reason}


@condition("FW007", "A convolution is computed by Eigen", span=Span("0.11"))
def eigen_convolution(candidate: WrapCandidate) -> bool:
    return candidate.instruction.opcode == "convolution"


@condition("FW008", "A concatenate or a dot is faster unfused", span=Span("0.8"))
def better_alone(candidate: WrapCandidate) -> Answer:
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
)  # Asked in order; whatever none of them speaks about is left alone without a word
