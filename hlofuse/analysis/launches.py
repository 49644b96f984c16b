"""The instructions of a final module that are launched, and as what (XLA calls these thunks)."""

import json
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from hlofuse.ir.graph import Instruction, Instructions, InstructionSequence, Module
from hlofuse.ir.opcodes import values, with_trait
from .async_ops import ends_of, fused_collective, is_async_end, wrapped_opcode
from .convolution import why_not_eigen
from .cpu_predicates import EIGEN, dot_strategy
from .custom_calls import custom_call_target, is_annotation
from .elementwise import moves_no_data
from .kernels import COLLECTIVES, CONTROL_FLOW, NO_KERNEL, is_kernel, is_small_call, launched_computations
from .slice_copies import copied_dynamic_slice, copied_slice, has_byte_strides

LaunchKind: TypeAlias = Literal["kernel", "library", "copy", "memset", "collective", "host"]
"""Code that XLA writes; a library's; a memcpy; setting memory to one value; talk to devices, to the host."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch of an instruction that its computation runs."""

    kind: LaunchKind
    note: str = ""  # Its library or its parts, where the kind does not name them


_KERNEL, _LIBRARY, _COPY = Launch("kernel"), Launch("library"), Launch("copy")
_MOVING_COPY = Launch("copy", "of a slice whose place the host works out")
_COLLECTIVE, _HOST = Launch("collective"), Launch("host")


def launch_of(instruction: Instruction, backend: str) -> Launch | None:
    """The launch of `instruction` when its computation runs; None for none. Views, constants and parameters
    launch nothing, nor do instructions that run other computations: a loop's launches are its body's."""
    if backend in ("cpu", "gpu"):
        return _of_cpu(instruction) if backend == "cpu" else _of_gpu(instruction)
    if not is_kernel(instruction):
        return None
    if backend == "tpu" and custom_call_target(instruction) in _NOTHING_ON_TPU:
        return None
    if instruction.opcode == "copy" or is_asynchronous(instruction):
        return _COPY
    if _is_collective(instruction.opcode) or fused_collective(instruction)[1] in ("start", "whole"):
        return _COLLECTIVE
    return _LIBRARY if instruction.opcode == "custom-call" else _KERNEL


_NOTHING_ON_TPU = values("AllocateBuffer ConcatBitcast")  # custom calls that name a place in memory
_ASYNCHRONOUS_COPIES = values("copy dynamic-slice dynamic-update-slice slice")


def is_asynchronous(instruction: Instruction) -> bool:
    """True for what copies, slices or updates while other kernels run."""
    if instruction.called_by("async-start") is not None:
        return instruction.opcode in _ASYNCHRONOUS_COPIES
    wrapped, is_start, _ = instruction.opcode.partition("-start")
    return bool(is_start) and wrapped in _ASYNCHRONOUS_COPIES


def launches(module: Module, backend: str) -> list[tuple[Instruction, Launch]]:
    """Everything that a module launches, each once however often its loop runs."""
    found = []
    for computation in launched_computations(module):
        for instruction in computation:
            if (launch := launch_of(instruction, backend)) is not None:
                found.append((instruction, launch))
    return found


_NOTHING_ON_CPU = NO_KERNEL - {"partition-id", "replica-id"}
COLLECTIVES_OF_CPU = with_trait("collective") - {"collective-broadcast", "ragged-all-to-all"}
_OF_LIBRARIES = values("fft sort topk")
_ON_HOST = values("infeed outfeed partition-id recv replica-id rng-get-and-update-state send")


def _of_cpu(instruction: Instruction) -> Launch | None:
    """By `EmitHloInstruction` (`xla/service/cpu/thunk_emitter.cc`). Nothing runs in what a launch calls."""
    opcode = instruction.opcode
    if opcode in CONTROL_FLOW:
        return _KERNEL if is_small_call(instruction) else None
    if opcode in _NOTHING_ON_CPU or is_async_end(opcode):
        return None
    if opcode == "fusion":
        return _LIBRARY if instruction.fusion_kind == "kCustom" else _KERNEL
    if opcode == "custom-call":
        if is_annotation(instruction):
            return None
        target = custom_call_target(instruction)
        return _KERNEL if target == "SliceToDynamic" else _HOST if target == "GetRngSeed" else _LIBRARY
    if opcode in _OF_LIBRARIES:
        return _LIBRARY
    if opcode == "dot":
        return _LIBRARY if dot_strategy(instruction)[0] == EIGEN else _KERNEL
    if opcode == "convolution":
        return _LIBRARY if why_not_eigen(instruction) is None else _KERNEL
    if opcode == "copy":
        return _COPY if has_byte_strides(instruction.shape) else _KERNEL
    if opcode in COLLECTIVES_OF_CPU:
        return _COLLECTIVE
    if opcode in _ON_HOST:
        return _HOST
    if opcode in ("reshape", "transpose") and moves_no_data(instruction):
        return None  # a bitcast in every final module
    return _KERNEL


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


def _is_collective(opcode: str) -> bool:
    return opcode in COLLECTIVES or wrapped_opcode(opcode) in COLLECTIVES


_NOT_LAUNCHED = values("AllocateBuffer CreateBuffer Pin Unpin")
"""Custom calls whose meaning is in how buffers are assigned."""
_OWN_KERNELS = values("__gpu$TopK __gpu$xla.gpu.triton __gpu$xla.gpu.ptx PadToStatic SliceToDynamic")
_LIBRARIES = {
    "__cublas$triangularSolve": "cuBLAS, after a copy of the right-hand side",
    "__cublas$": "cuBLAS",
    "__cudnn$": "cuDNN",
    "__cub$": "CUB",
    "xla.gpu.ext.cub_": "CUB",
    "cusolver_": "cuSOLVER",
}
_CALLBACKS = values(
    "xla_python_gpu_callback xla_ffi_python_gpu_callback xla_ffi_partitioned_python_gpu_callback"
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
        to_host = instruction.raw("is_host_transfer") == "true"
        return _HOST if to_host else _COLLECTIVE
    return _KERNEL if is_kernel(instruction) else None


def _fusion(fusion: Instruction) -> Launch:
    if fusion.fusion_kind == "kCustom":
        return _SORT if fusion.fused_root.opcode == "sort" else _custom_fusion(fusion)
    if copied_slice(fusion) is not None:
        return _COPY
    config = parsed_fusion_config(fusion.raw("backend_config"))
    if config.get("kind") == "__dynamic_memcpy" or copied_dynamic_slice(fusion) is not None:
        return _MOVING_COPY
    if fusion.fused_root.opcode == "sort":
        return _SORT
    copies = plain_copies(fusion)
    return Launch("copy", f"{copies} copies" if copies > 1 else "") if copies else _KERNEL


def plain_copies(fusion: Instruction) -> int:
    """The results, where each is a copy of an input with the same layout; 0 for any other fusion."""
    outputs = fusion.fused_root.outputs
    for output in outputs:
        if output.opcode != "copy" or not output.operand.is_parameter:
            return 0
        if output.operand.minor_to_major != output.minor_to_major:
            return 0
    return len(outputs)


def _custom_fusion(fusion: Instruction) -> Launch:
    config = parsed_fusion_config(fusion.raw("backend_config"))
    kind = config.get("kind")
    if kind == "__cudnn$fusion":
        return Launch("library", "cuDNN")
    if kind == "__custom_fusion":
        # A library call, or in 0.10 a copy, that reads or writes slices in place.
        inside = {inner.opcode: inner for inner in fusion.fused_computation}
        if "custom-call" in inside:
            return _custom_call(inside["custom-call"]) or _KERNEL
        if "copy" in inside:
            return _MOVING_COPY
    return _KERNEL


def parsed_fusion_config(text: str | None) -> dict[str, Any]:
    """The fields about the fusion in a backend config; empty without them."""
    try:
        config = json.loads(text or "{}")
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


_DYNAMIC_SLICE = "DYNAMIC_SLICE_FUSION"
COMMANDS = frozenset({"FUSION", "CUBLAS", "CUBLASLT", "CUDNN", "CUSTOM_CALL", _DYNAMIC_SLICE, "CONDITIONAL"})
"""Types of commands (`DebugOptions::CommandBufferCmdType`) that command buffers hold by default."""
_COMMAND_OF_KIND = {
    "kernel": "FUSION",
    "copy": "FUSION",
    "memset": "FUSION",
    "collective": "COLLECTIVES",
}
_COMMAND_OF_CONTROL = {"while": "WHILE", "conditional": "CONDITIONAL"}
_Fit: TypeAlias = Literal["in", "out", "open", "nothing"]


def command_buffers(
    module: Module, commands: Container[str] = COMMANDS, smallest: int = 5
) -> list[Instructions] | None:
    """The launches of each CUDA graph of a final GPU module, of at least `smallest` commands.

    By `CommandBufferConversionPass` (`xla/backends/gpu/runtime/command_buffer_conversion_pass.cc`), where
    `commands` are enabled. Of libraries only cuBLAS counts, since XLA queries others at run time. None where
    it hangs on an order that the module lacks yet, on CUDA's version, or on the launches of a sort."""
    found = list[Instructions]()
    conditions = {c for i in module.instructions() for name, c in i.called if name == "condition"}
    for computation in launched_computations(module):
        if computation in conditions:
            continue
        order = list(computation)
        fits = {x: _fit(x, commands) for x in order}
        apart = _apart(order, fits)
        depends, runs, several = False, list[Instructions]([[]]), set[Instruction]()
        for x in order:
            if fits[x] in ("out", "open") or x in apart:
                depends |= fits[x] == "open" or not module.is_scheduled
                runs.append([])
            elif fits[x] == "in" or is_async_end(x.opcode):
                runs[-1].append(x)
                launch = launch_of(x, "gpu")
                if launch is not None and launch.note and launch.kind != "library":
                    several.add(x)
        if depends and sum(map(len, runs)) + len(several) >= smallest:
            return None
        for run in runs:
            if len(run) >= max(smallest, 1):
                found.append([x for x in run if not is_async_end(x.opcode)])
            elif not several.isdisjoint(run):
                return None
    return found


@dataclass(frozen=True, slots=True)
class CommandBuffers:
    """The CUDA graphs that a release makes, and the time that the host needs for launches, in microseconds:
    medians of a profile on an H200 with jaxlib 0.11.2. A GPU with less to do than that waits."""

    commands: frozenset[str] = COMMANDS
    smallest: int = 5
    launch_us: float = 6.5  # From one launch outside a command buffer to the next
    buffer_us: float = 12.5  # From one launch of a command buffer to the next
    condition_us: float = 9.0
    """For a condition to be copied to the host and read there, launches not included."""

    def holds(self, x: Instruction) -> bool:
        """True for what a command buffer may hold."""
        return _fit(x, self.commands) != "out"

    def host_us(self, launched: Iterable[Instruction]) -> float:
        """The time for the launches of one run of a computation, at least: all that command buffers can hold
        are in one, whatever their order and number, where that is faster."""
        fits = [self.holds(x) for x in launched]
        alone = self.launch_us * fits.count(False)
        return alone + min(self.launch_us * fits.count(True), self.buffer_us)


def _fit(x: Instruction, commands: Container[str]) -> _Fit:
    """`in` for a command, `out` for what ends their sequence, `open` where the version of CUDA decides."""
    if x.opcode == "async-start":
        return "open"
    if x.opcode in CONTROL_FLOW:
        if _COMMAND_OF_CONTROL.get(x.opcode) not in commands:
            return "out"
        inside = {_fit(y, commands) for c in x.called_computations for y in c}
        return "out" if "out" in inside else "open"
    launch = launch_of(x, "gpu")
    if launch is None:
        return "nothing"
    if copied_dynamic_slice(x) is not None:
        return "open" if _DYNAMIC_SLICE in commands else "out"
    if launch.kind != "library":
        return "in" if _COMMAND_OF_KIND.get(launch.kind) in commands else "out"
    if x.opcode != "custom-call" or launch.note != "cuBLAS":
        return "out"
    return "in" if ("CUBLASLT" if "$lt$" in custom_call_target(x) else "CUBLAS") in commands else "out"


def _apart(order: InstructionSequence, fits: Mapping[Instruction, _Fit]) -> set[Instruction]:
    """Asynchronous operations and their ends around what is no command (`CheckAsyncRegion`)."""
    place = {x: k for k, x in enumerate(order)}
    found = set[Instruction]()
    for x in order:
        ends = [e for e in ends_of(x) if e in place] if x.opcode.endswith("-start") else []
        last = max((place[e] for e in ends), default=0)
        if any(fits[y] in ("out", "open") for y in order[place[x] : last + 1]):
            found.update((x, *ends))
    return found
