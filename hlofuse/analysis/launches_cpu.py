"""What XLA:CPU launches for an instruction (`EmitHloInstruction`, `xla/service/cpu/thunk_emitter.cc`)."""

from __future__ import annotations

from hlofuse.analysis.async_ops import is_async_end
from hlofuse.analysis.bitcasts import moves_no_data
from hlofuse.analysis.convolution import why_not_eigen
from hlofuse.analysis.cpu_dot import EIGEN, dot_strategy
from hlofuse.analysis.custom_calls import custom_call_target, is_annotation
from hlofuse.analysis.launch_kinds import COLLECTIVE, COPY, HOST, KERNEL, LIBRARY, Launch
from hlofuse.ir.graph import Instruction

SMALL_CALL = "xla_cpu_small_call"
"""The frontend attribute of a call that is compiled whole, as one kernel."""

_NOTHING = frozenset(
    """
    add-dependency after-all bitcast constant domain get-dimension-size get-tuple-element opt-barrier
    parameter tuple
    """.split()
)
# Their computations are launched in their place.
_CONTROL_FLOW = frozenset({"async-start", "conditional", "while"})
_COLLECTIVES = frozenset("all-gather all-reduce all-to-all collective-permute reduce-scatter".split())
_LIBRARY = frozenset({"fft", "sort", "topk"})
_HOST = frozenset("infeed outfeed partition-id recv replica-id rng-get-and-update-state send".split())
_BITS_OF_A_BYTE = 8


def launch_on_cpu(instruction: Instruction) -> Launch | None:
    """What the CPU's runtime starts for `instruction`; None where nothing runs, or what it calls does.

    Nothing runs in fusions and in other computations that a launched instruction calls.
    """
    opcode = instruction.opcode
    if opcode in _NOTHING or opcode in _CONTROL_FLOW or is_async_end(opcode):
        return None
    if opcode == "call":
        return KERNEL if is_small_call(instruction) else None
    if opcode == "fusion":
        return LIBRARY if instruction.fusion_kind == "kCustom" else KERNEL
    if opcode == "custom-call":
        return _custom_call(instruction)
    if opcode in _LIBRARY:
        return LIBRARY
    if opcode == "dot":
        return LIBRARY if dot_strategy(instruction)[0] == EIGEN else KERNEL
    if opcode == "convolution":
        return LIBRARY if why_not_eigen(instruction) is None else KERNEL
    if opcode == "copy":
        return COPY if _has_whole_bytes(instruction) else KERNEL
    if opcode in _COLLECTIVES:
        return COLLECTIVE
    if opcode in _HOST:
        return HOST
    if opcode in ("reshape", "transpose") and moves_no_data(instruction):
        return None  # a bitcast in every final module
    return KERNEL


def is_small_call(instruction: Instruction) -> bool:
    """True for a call that is one kernel: what it calls is compiled into it (`EmitCallThunk`)."""
    if instruction.opcode != "call":
        return False
    attributes: dict[str, str] = instruction.attributes.get("frontend_attributes") or {}
    return attributes.get(SMALL_CALL) == "true"


def _custom_call(call: Instruction) -> Launch | None:
    if is_annotation(call):
        return None
    target = custom_call_target(call)
    if target == "SliceToDynamic":
        return KERNEL
    return HOST if target == "GetRngSeed" else LIBRARY


def _has_whole_bytes(copy: Instruction) -> bool:
    """A library copies whole bytes only (`ShapeUtil::ByteStrides`)."""
    layout = copy.shape.layout
    return layout is None or layout.element_size_in_bits % _BITS_OF_A_BYTE == 0
