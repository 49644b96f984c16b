"""What XLA:CPU launches for an instruction (`EmitHloInstruction`, `xla/service/cpu/thunk_emitter.cc`)."""

from hlofuse.analysis.async_ops import is_async_end
from hlofuse.analysis.bitcasts import moves_no_data
from hlofuse.analysis.convolution import why_not_eigen
from hlofuse.analysis.cpu_predicates import EIGEN, dot_strategy
from hlofuse.analysis.custom_calls import custom_call_target, is_annotation
from hlofuse.analysis.kernels import CONTROL_FLOW, NO_KERNEL, is_small_call
from hlofuse.analysis.launches.launch import Launch
from hlofuse.ir.graph import Instruction

_KERNEL, _LIBRARY, _COPY = Launch("kernel"), Launch("library"), Launch("copy")
_COLLECTIVE, _HOST = Launch("collective"), Launch("host")

_NOTHING = NO_KERNEL - {"partition-id", "replica-id"}
_COLLECTIVES = frozenset("all-gather all-reduce all-to-all collective-permute reduce-scatter".split())
_OF_LIBRARIES = frozenset({"fft", "sort", "topk"})
_ON_HOST = frozenset("infeed outfeed partition-id recv replica-id rng-get-and-update-state send".split())
_BITS_OF_A_BYTE = 8


def launch_of(instruction: Instruction) -> Launch | None:
    """What the CPU's runtime starts for `instruction`; None where nothing runs, or what it calls does.

    Nothing runs in fusions and in other computations that a launched instruction calls.
    """
    opcode = instruction.opcode
    if opcode in CONTROL_FLOW:
        return _KERNEL if is_small_call(instruction) else None
    if opcode in _NOTHING or is_async_end(opcode):
        return None
    if opcode == "fusion":
        return _LIBRARY if instruction.fusion_kind == "kCustom" else _KERNEL
    if opcode == "custom-call":
        return _custom_call(instruction)
    if opcode in _OF_LIBRARIES:
        return _LIBRARY
    if opcode == "dot":
        return _LIBRARY if dot_strategy(instruction)[0] == EIGEN else _KERNEL
    if opcode == "convolution":
        return _LIBRARY if why_not_eigen(instruction) is None else _KERNEL
    if opcode == "copy":
        return _COPY if _has_whole_bytes(instruction) else _KERNEL
    if opcode in _COLLECTIVES:
        return _COLLECTIVE
    if opcode in _ON_HOST:
        return _HOST
    if opcode in ("reshape", "transpose") and moves_no_data(instruction):
        return None  # a bitcast in every final module
    return _KERNEL


def _custom_call(call: Instruction) -> Launch | None:
    if is_annotation(call):
        return None
    target = custom_call_target(call)
    if target == "SliceToDynamic":
        return _KERNEL
    return _HOST if target == "GetRngSeed" else _LIBRARY


def _has_whole_bytes(copy: Instruction) -> bool:
    """A library copies whole bytes only (`ShapeUtil::ByteStrides`)."""
    layout = copy.shape.layout
    return layout is None or layout.element_size_in_bits % _BITS_OF_A_BYTE == 0
