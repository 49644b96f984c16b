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
    title="A Fourier transform is a cuFFT call",
    condition="Is it an fft?",
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
    title="Devices talk to each other",
    condition="Is it a collective operation, a send or a receive?",
    why="NCCL (or a copy between neighbouring GPUs) moves the data; the computation goes on beside it "
    "where the operation is split into a start and a done.",
    advice="Small collectives are combined by XLA; see the flags xla_gpu_*_combine_threshold_bytes.",
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
    condition="Is it a copy with the layout of its operand?",
    why="The device's copy engine or a driver kernel does it; XLA generates no code.",
    advice="Such copies keep a loop's state or an argument apart from the result: donate the argument "
    "(jax.jit(..., donate_argnums=...)) and avoid returning an argument unchanged.",
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
    title="A sort is a row of bitonic sorting kernels",
    condition="Is it a sort?",
    why="XLA's own sort compares elements a power of two apart, in many passes: the first ones in "
    "shared memory, each later one a kernel of its own. The operands are copied first, because it works "
    "in place.",
    advice="A sort by one number is CUB's where it is large enough (EM004).",
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
    condition="Is it an rng-get-and-update-state?",
    why="One thread adds to the device's counter.",
    advice="JAX's own keys (jax.random) need no such state.",
    mirrors="xla/service/gpu/thunk_emitter.cc: ThunkEmitter::EmitRngGetAndUpdateState",
    runs="random state kernel",
)
def random_state(kernel: GpuKernel) -> dict[str, Any] | None:
    return {} if kernel.instruction.opcode == "rng-get-and-update-state" else None


@runner(
    code="EM015",
    title="The host is at the other end",
    condition="Is it an infeed or an outfeed?",
    why="Data goes between host and device; the host drives it.",
    advice="Everything behind it waits for the host.",
    mirrors="xla/service/gpu/thunk_emitter.cc: ThunkEmitter::EmitInfeed",
    runs="host transfer",
)
def host(kernel: GpuKernel) -> dict[str, Any] | None:
    return {"bytes": kernel.instruction.shape.byte_size} if kernel.instruction.opcode in _HOST else None


@runner(
    code="EM016",
    title="An instruction that is rewritten after fusion",
    condition="Is it an instruction that no emitter takes as it is?",
    why="A later pass turns it into something else (a call, a loop, a fusion) before code is made.",
    advice="A dump after optimizations shows what became of it.",
    mirrors=_EMIT,
    runs="not settled yet",
)
def unsettled(kernel: GpuKernel) -> dict[str, Any] | None:
    return None if kernel.is_generated else {"opcode": kernel.instruction.opcode}


RULES = (fft, collective, plain_copy, sort, random_state, host)
LAST = (unsettled,)
