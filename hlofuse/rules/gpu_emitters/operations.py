"""Instructions that stay outside fusions, each with a thunk of its own."""

from typing import Any

from hlofuse.rules.gpu_emitters.candidate import GpuKernel
from hlofuse.rules.verdict import runner

_EMIT = "xla/service/gpu/thunk_emitter.cc: ThunkEmitter::EmitHloInstruction"
_COLLECTIVES = frozenset(
    """
    all-gather all-gather-start all-reduce all-reduce-start all-to-all collective-broadcast
    collective-permute collective-permute-start ragged-all-to-all reduce-scatter recv send
    """.split()
)
_HOST = frozenset({"infeed", "outfeed"})
_COPIES = frozenset({"copy", "copy-start"})


@runner(
    code="EM010",
    title="A Fourier transform in cuFFT",
    condition="The operation is an fft.",
    why="XLA has no Fourier transform of its own on GPU.",
    advice="Batch transforms of one length.",
    mirrors="xla/service/gpu/thunk_emitter.cc: ThunkEmitter::EmitFft",
    runs="cuFFT",
)
def fft(kernel: GpuKernel) -> dict[str, Any] | None:
    if kernel.instruction.opcode != "fft":
        return None
    return {"length": (kernel.instruction.attributes.raw("fft_length") or "").strip("{}")}


@runner(
    code="EM011",
    title="Communication between devices",
    condition="The operation is a collective, a send or a receive.",
    why="NCCL (or a copy between neighbouring GPUs) moves the data. Computation continues in parallel if the"
    " operation is split into start and done.",
    advice="XLA combines small collectives; see the flags xla_gpu_*_combine_threshold_bytes.",
    mirrors="xla/service/gpu/thunk_emitter.cc: ThunkEmitter::EmitCollective",
    runs="NCCL",
)
def collective(kernel: GpuKernel) -> dict[str, Any] | None:
    instruction = kernel.instruction
    if instruction.opcode not in _COLLECTIVES:
        return None
    return {"bytes": sum(o.shape.byte_size for o in instruction.operands)}


@runner(
    code="EM012",
    title="A copy is a memcpy",
    condition="A copy with the layout of its operand.",
    why="The device's copy engine or a driver kernel copies; XLA generates no code.",
    advice="Such copies separate a loop's state or an argument from the result: donate the argument"
    " (jax.jit(..., donate_argnums=...)) and do not return an argument unchanged.",
    mirrors="xla/service/gpu/thunk_emitter.cc: ThunkEmitter::EmitCopy",
    runs="memcpy",
)
def plain_copy(kernel: GpuKernel) -> dict[str, Any] | None:
    instruction = kernel.instruction
    if instruction.opcode not in _COPIES:
        return None
    source = instruction.operands[0].shape
    same_layout = source.minor_to_major == instruction.shape.minor_to_major
    return {"bytes": source.byte_size} if same_layout or instruction.opcode == "copy-start" else None


@runner(
    code="EM013",
    title="A sort is a series of bitonic sort kernels",
    condition="The operation is a sort.",
    why="XLA's own sort compares elements a power of two apart, in many passes: the first in shared memory,"
    " each later one a separate kernel. It sorts in place, so the operands are copied first.",
    advice="A large sort by one number uses CUB (EM004).",
    mirrors="xla/service/gpu/thunk_emitter.cc: ThunkEmitter::EmitSort",
    runs="bitonic sort",
)
def sort(kernel: GpuKernel) -> dict[str, Any] | None:
    instruction = kernel.instruction
    if instruction.opcode != "sort":
        return None
    shape = instruction.operands[0].shape
    length = shape.dimensions[instruction.dimensions[0]] if instruction.dimensions else shape.element_count
    return {"length": length, "operands": len(instruction.operands)}


@runner(
    code="EM014",
    title="A seed for random numbers",
    condition="The operation is an rng-get-and-update-state.",
    why="One thread adds to the device's counter.",
    advice="jax.random keys need no such state.",
    mirrors="xla/service/gpu/thunk_emitter.cc: ThunkEmitter::EmitRngGetAndUpdateState",
    runs="random state kernel",
)
def random_state(kernel: GpuKernel) -> dict[str, Any] | None:
    return {} if kernel.instruction.opcode == "rng-get-and-update-state" else None


@runner(
    code="EM015",
    title="A transfer between host and device",
    condition="The operation is an infeed or an outfeed.",
    why="Data moves between host and device, driven by the host.",
    advice="Everything after it waits for the host.",
    mirrors="xla/service/gpu/thunk_emitter.cc: ThunkEmitter::EmitInfeed",
    runs="host transfer",
)
def host(kernel: GpuKernel) -> dict[str, Any] | None:
    return {"bytes": kernel.instruction.shape.byte_size} if kernel.instruction.opcode in _HOST else None


@runner(
    code="EM016",
    title="An instruction that is rewritten after fusion",
    condition="No emitter supports the instruction as it is.",
    why="A later pass rewrites it (into a call, a loop or a fusion) before code generation.",
    advice="A dump after optimizations shows the result.",
    mirrors=_EMIT,
    runs="rewritten later",
)
def unsettled(kernel: GpuKernel) -> dict[str, Any] | None:
    return None if kernel.is_generated else {"opcode": kernel.instruction.opcode}


RULES = (fft, collective, plain_copy, sort, random_state, host)
LAST = (unsettled,)
