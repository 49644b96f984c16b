"""Instructions that stay outside fusions, each with a thunk of its own."""

from typing import Any

from hlofuse.rules.gpu_emitters.candidate import GpuKernel
from hlofuse.rules.verdict import runner

_COLLECTIVES = frozenset(
    """
    all-gather all-gather-start all-reduce all-reduce-start all-to-all collective-broadcast
    collective-permute collective-permute-start ragged-all-to-all reduce-scatter recv send
    """.split()
)
_HOST = frozenset({"infeed", "outfeed"})
_COPIES = frozenset({"copy", "copy-start"})


@runner("EM010", "A Fourier transform is a cuFFT call", runs="cuFFT")
def fft(kernel: GpuKernel) -> dict[str, Any] | None:
    if kernel.instruction.opcode != "fft":
        return None
    return {"length": (kernel.instruction.attributes.raw("fft_length") or "").strip("{}")}


@runner("EM011", "Devices talk to each other", runs="NCCL")
def collective(kernel: GpuKernel) -> dict[str, Any] | None:
    instruction = kernel.instruction
    if instruction.opcode not in _COLLECTIVES:
        return None
    return {"bytes": sum(o.shape.byte_size for o in instruction.operands)}


@runner("EM012", "A copy is a memcpy", runs="memcpy")
def plain_copy(kernel: GpuKernel) -> dict[str, Any] | None:
    instruction = kernel.instruction
    if instruction.opcode not in _COPIES:
        return None
    source = instruction.operands[0].shape
    same_layout = source.minor_to_major == instruction.shape.minor_to_major
    return {"bytes": source.byte_size} if same_layout or instruction.opcode == "copy-start" else None


@runner("EM013", "A sort is a row of bitonic sorting kernels", runs="bitonic sort")
def sort(kernel: GpuKernel) -> dict[str, Any] | None:
    instruction = kernel.instruction
    if instruction.opcode != "sort":
        return None
    shape = instruction.operands[0].shape
    length = shape.dimensions[instruction.dimensions[0]] if instruction.dimensions else shape.element_count
    return {"length": length, "operands": len(instruction.operands)}


@runner("EM014", "A seed for random numbers", runs="random state kernel")
def random_state(kernel: GpuKernel) -> dict[str, Any] | None:
    return {} if kernel.instruction.opcode == "rng-get-and-update-state" else None


@runner("EM015", "The host is at the other end", runs="host transfer")
def host(kernel: GpuKernel) -> dict[str, Any] | None:
    return {"bytes": kernel.instruction.shape.byte_size} if kernel.instruction.opcode in _HOST else None


@runner("EM016", "An instruction that is rewritten after fusion", runs="not settled yet")
def unsettled(kernel: GpuKernel) -> dict[str, Any] | None:
    return None if kernel.is_generated else {"opcode": kernel.instruction.opcode}


RULES = (fft, collective, plain_copy, sort, random_state, host)
LAST = (unsettled,)
