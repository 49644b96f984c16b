"""The instructions of a final module that are launched, and as what (XLA calls these thunks)."""

import json
from dataclasses import dataclass
from typing import Literal, TypeAlias

from hlofuse.analysis.async_ops import is_async_end, wrapped_opcode
from hlofuse.analysis.convolution import why_not_eigen
from hlofuse.analysis.cpu_predicates import EIGEN, dot_strategy
from hlofuse.analysis.custom_calls import custom_call_target, is_annotation
from hlofuse.analysis.elementwise import moves_no_data
from hlofuse.analysis.kernels import CONTROL_FLOW, NO_KERNEL, is_kernel, is_small_call, launched_computations
from hlofuse.analysis.slice_copies import copied_dynamic_slice, copied_slice
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.opcodes import with_trait

LaunchKind: TypeAlias = Literal["kernel", "library", "copy", "memset", "collective", "host"]
"""Code that XLA writes; a library's; a memcpy on the device; setting memory to one value; talking to other
devices; talking to the host."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch of an instruction that its computation runs."""

    kind: LaunchKind
    note: str = ""
    """Its library or its parts, where the kind does not name them."""


_KERNEL, _LIBRARY, _COPY = Launch("kernel"), Launch("library"), Launch("copy")
_COLLECTIVE, _HOST = Launch("collective"), Launch("host")


def launch_of(instruction: Instruction, backend: str) -> Launch | None:
    """The launch of `instruction` when its computation runs; None for none.

    Views, constants and parameters launch nothing, nor do instructions that run other computations: the
    launches of a loop are those of its body.
    """
    if backend in ("cpu", "gpu"):
        return _of_cpu(instruction) if backend == "cpu" else _of_gpu(instruction)
    if not is_kernel(instruction):
        return None
    if instruction.opcode in ("copy", "copy-start"):
        return _COPY
    if _is_collective(instruction.opcode):
        return _COLLECTIVE
    return _LIBRARY if instruction.opcode == "custom-call" else _KERNEL


def launches(module: Module, backend: str) -> list[tuple[Instruction, Launch]]:
    """Everything that a module launches, each once however often its loop runs."""
    found = []
    for computation in launched_computations(module):
        for instruction in computation:
            if (launch := launch_of(instruction, backend)) is not None:
                found.append((instruction, launch))
    return found


_NOTHING_ON_CPU = NO_KERNEL - {"partition-id", "replica-id"}
_COLLECTIVES_OF_CPU = with_trait("collective") - {"collective-broadcast", "ragged-all-to-all"}
_OF_LIBRARIES = frozenset({"fft", "sort", "topk"})
_ON_HOST = frozenset("infeed outfeed partition-id recv replica-id rng-get-and-update-state send".split())
_BITS_OF_A_BYTE = 8


def _of_cpu(instruction: Instruction) -> Launch | None:
    """By `EmitHloInstruction` (`xla/service/cpu/thunk_emitter.cc`).

    Nothing runs in fusions and in other computations that a launched instruction calls.
    """
    opcode = instruction.opcode
    if opcode in CONTROL_FLOW:
        return _KERNEL if is_small_call(instruction) else None
    if opcode in _NOTHING_ON_CPU or is_async_end(opcode):
        return None
    if opcode == "fusion":
        return _LIBRARY if instruction.fusion_kind == "kCustom" else _KERNEL
    if opcode == "custom-call":
        return _cpu_call(instruction)
    if opcode in _OF_LIBRARIES:
        return _LIBRARY
    if opcode == "dot":
        return _LIBRARY if dot_strategy(instruction)[0] == EIGEN else _KERNEL
    if opcode == "convolution":
        return _LIBRARY if why_not_eigen(instruction) is None else _KERNEL
    if opcode == "copy":
        return _COPY if _has_whole_bytes(instruction) else _KERNEL
    if opcode in _COLLECTIVES_OF_CPU:
        return _COLLECTIVE
    if opcode in _ON_HOST:
        return _HOST
    if opcode in ("reshape", "transpose") and moves_no_data(instruction):
        return None  # a bitcast in every final module
    return _KERNEL


def _cpu_call(call: Instruction) -> Launch | None:
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


_SORT = Launch("kernel", "several sorting kernels, after copies of operands that stay")
_BY_OPCODE = {
    "sort": _SORT,
    "copy": _COPY,
    "copy-start": _COPY,
    "fft": Launch("library", "cuFFT"),
    "cholesky": Launch("library", "cuSOLVER"),
    "infeed": _HOST,
    "outfeed": _HOST,
    # The number of the device is written by a memset.
    "partition-id": Launch("memset"),
    "replica-id": Launch("memset"),
}
_COLLECTIVES = with_trait("collective") | with_trait("collective-start")


def _is_collective(opcode: str) -> bool:
    return opcode in _COLLECTIVES or wrapped_opcode(opcode) in _COLLECTIVES


_NOT_LAUNCHED = frozenset({"AllocateBuffer", "CreateBuffer", "Pin", "Unpin"})
"""Custom calls whose meaning is in how buffers are assigned."""
_OWN_KERNELS = frozenset(
    {"__gpu$TopK", "__gpu$xla.gpu.triton", "__gpu$xla.gpu.ptx", "PadToStatic", "SliceToDynamic"}
)
_LIBRARIES = {
    "__cublas$triangularSolve": "cuBLAS, after a copy of the right-hand side",
    "__cublas$": "cuBLAS",
    "__cudnn$": "cuDNN",
    "__cub$": "CUB",
    "xla.gpu.ext.cub_": "CUB",
    "cusolver_": "cuSOLVER",
}
_CALLBACKS = frozenset(
    {"xla_python_gpu_callback", "xla_ffi_python_gpu_callback", "xla_ffi_partitioned_python_gpu_callback"}
)


def _of_gpu(instruction: Instruction) -> Launch | None:
    """By `xla/service/gpu/thunk_emitter.cc` and `xla/backends/gpu/codegen/fusions.cc`."""
    opcode = instruction.opcode
    if opcode == "fusion":
        return _fusion(instruction)
    if opcode == "custom-call":
        return _custom_call(instruction)
    if opcode in _BY_OPCODE:
        return _BY_OPCODE[opcode]
    if _is_collective(opcode):
        return _COLLECTIVE
    if opcode in ("send", "recv"):
        to_host = instruction.attributes.raw("is_host_transfer") == "true"
        return _HOST if to_host else _COLLECTIVE
    return _KERNEL if is_kernel(instruction) else None


def _fusion(fusion: Instruction) -> Launch:
    if fusion.fusion_kind == "kCustom":
        return _SORT if fusion.fused_root.opcode == "sort" else _custom_fusion(fusion)
    if copied_slice(fusion) is not None:
        return _COPY
    if copied_dynamic_slice(fusion) is not None:
        return Launch("copy", "of a slice whose place the host works out")
    if fusion.fused_root.opcode == "sort":
        return _SORT
    copies = _plain_copies(fusion)
    return Launch("copy", f"{copies} copies" if copies > 1 else "") if copies else _KERNEL


def _plain_copies(fusion: Instruction) -> int:
    """The results, where each is a copy of an input with the same layout; 0 for any other fusion."""
    root = fusion.fused_root
    outputs = root.operands if root.opcode == "tuple" else [root]
    for output in outputs:
        if output.opcode != "copy" or output.operands[0].opcode != "parameter":
            return 0
        if output.operands[0].shape.minor_to_major != output.shape.minor_to_major:
            return 0
    return len(outputs)


def _custom_fusion(fusion: Instruction) -> Launch:
    config = _fusion_config(fusion)
    kind = config.get("kind")
    if kind == "__cudnn$fusion":
        return Launch("library", "cuDNN")
    if kind == "__custom_fusion":
        # A library call that reads or writes slices in place.
        for inner in fusion.fused_computation:
            if inner.opcode == "custom-call":
                return _custom_call(inner) or _KERNEL
    return _KERNEL


def _fusion_config(fusion: Instruction) -> dict[str, object]:
    try:
        config = json.loads(fusion.attributes.raw("backend_config") or "{}")
    except ValueError:
        return {}
    found = config.get("fusion_backend_config") if isinstance(config, dict) else None
    return found if isinstance(found, dict) else {}


def _custom_call(call: Instruction) -> Launch | None:
    target = custom_call_target(call)
    if target in _NOT_LAUNCHED or is_annotation(call):
        return None
    if target in _OWN_KERNELS:
        return _KERNEL
    if target in _CALLBACKS or target == "GetRngSeed":
        return Launch("host", target)
    for prefix, name in _LIBRARIES.items():
        if target.startswith(prefix):
            return Launch("library", name)
    return Launch("library", target)


# What is started together.

_IN_COMMAND_BUFFERS = frozenset({"kernel", "copy", "memset"})


def command_buffers(module: Module, smallest: int = 5) -> list[list[Instruction]] | None:
    """The instructions of each CUDA graph of a final GPU module, of at least `smallest` launches.

    By `CommandBufferConversionPass` (`xla/backends/gpu/runtime/command_buffer_conversion_pass.cc`) by
    default. Of libraries only cuBLAS counts, since XLA queries others at run time. None where it depends on
    an order that the module does not have yet, on the version of CUDA, on a branch, or on the number of
    launches of a sort.
    """
    found: list[list[Instruction]] = []
    conditions = {c for i in module.instructions() for name, c in i.called if name == "condition"}
    for computation in launched_computations(module):
        if computation in conditions:
            continue
        depends, runs, several = False, list[list[Instruction]]([[]]), set[Instruction]()
        for instruction in computation:
            launch = launch_of(instruction, "gpu")
            if instruction.opcode in ("async-start", "conditional"):
                depends = True
            elif launch is not None and _in_command_buffers(instruction, launch):
                runs[-1].append(instruction)
                if launch.note and launch.kind != "library":
                    several.add(instruction)
            elif launch is not None or instruction.opcode in CONTROL_FLOW:
                depends |= copied_dynamic_slice(instruction) is not None or not module.is_scheduled
                runs.append([])
        if depends and sum(map(len, runs)) + len(several) >= smallest:
            return None
        for run in runs:
            if len(run) >= smallest:
                found.append(run)
            elif not several.isdisjoint(run):
                return None
    return found


def _in_command_buffers(instruction: Instruction, launch: Launch) -> bool:
    if launch.kind == "library":
        return instruction.opcode == "custom-call" and launch.note == "cuBLAS"
    return launch.kind in _IN_COMMAND_BUFFERS and copied_dynamic_slice(instruction) is None
