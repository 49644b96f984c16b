"""Custom calls, and instructions that stay outside fusions, each with a thunk of its own."""

from typing import Any

from hlofuse.rules.gpu_emitters.candidate import GpuKernel
from hlofuse.rules.verdict import runner

# Custom calls: libraries that XLA chose before fusion, and code that comes with the program.


@runner("EM001", "A matmul in cuBLASLt", runs="cuBLASLt")
def cublas_lt(kernel: GpuKernel) -> dict[str, Any] | None:
    return _gemm(kernel) if kernel.target.startswith("__cublas$lt$") else None


@runner("EM002", "A matmul in cuBLAS", runs="cuBLAS")
def cublas(kernel: GpuKernel) -> dict[str, Any] | None:
    return _gemm(kernel) if kernel.target == "__cublas$gemm" else None


@runner("EM003", "A convolution, normalization or attention in cuDNN", runs="cuDNN")
def cudnn(kernel: GpuKernel) -> dict[str, Any] | None:
    return _call(kernel) if kernel.target.startswith("__cudnn$") else None


@runner("EM004", "A radix sort in CUB", runs="CUB")
def cub(kernel: GpuKernel) -> dict[str, Any] | None:
    is_sort = "cub_sort" in kernel.target or kernel.target.startswith("__cub$")
    return _call(kernel) if is_sort else None


@runner("EM005", "A decomposition or triangular solve in a solver library", runs="cuSOLVER")
def solver(kernel: GpuKernel) -> dict[str, Any] | None:
    is_library = kernel.target.startswith("cusolver_") or kernel.target == "__cublas$triangularSolve"
    return _call(kernel) if is_library else None


@runner("EM006", "A top-k in XLA's own kernel or in RAFT", runs="top-k kernel")
def top_k(kernel: GpuKernel) -> dict[str, Any] | None:
    return _call(kernel) if kernel.target == "__gpu$TopK" else None


@runner("EM007", "A kernel supplied by the program", runs="the program's kernel")
def own_kernel(kernel: GpuKernel) -> dict[str, Any] | None:
    is_library = kernel.target in ("__gpu$xla.gpu.triton", "__gpu$xla.gpu.ptx")
    return _call(kernel) if is_library else None


@runner("EM009", "Any other custom call", runs="custom call")
def other_call(kernel: GpuKernel) -> dict[str, Any] | None:
    return _call(kernel) if kernel.target else None


def _call(kernel: GpuKernel) -> dict[str, Any]:
    return {"calls": kernel.target}


def _gemm(kernel: GpuKernel) -> dict[str, Any]:
    operands = kernel.instruction.operands[:2]
    found: dict[str, Any] = {"product": " × ".join(o.shape.text_without_layout for o in operands)}
    config = kernel.instruction.attributes.raw("backend_config") or ""
    _, mark, rest = config.partition('"epilogue":"')
    if mark and not rest.startswith("DEFAULT"):
        found["epilogue"] = rest.partition('"')[0]
    return found


# Instructions that stay outside fusions, each with a thunk of its own.

_COLLECTIVES = frozenset(
    """
    all-gather all-gather-start all-reduce all-reduce-start all-to-all collective-broadcast
    collective-permute collective-permute-start ragged-all-to-all reduce-scatter recv send
    """.split()
)
_HOST = frozenset({"infeed", "outfeed"})
_COPIES = frozenset({"copy", "copy-start"})


@runner("EM010", "A Fourier transform in cuFFT", runs="cuFFT")
def fft(kernel: GpuKernel) -> dict[str, Any] | None:
    if kernel.instruction.opcode != "fft":
        return None
    return {"length": (kernel.instruction.attributes.raw("fft_length") or "").strip("{}")}


@runner("EM011", "Communication between devices", runs="NCCL")
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


@runner("EM013", "A sort is a series of bitonic sort kernels", runs="bitonic sort")
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


@runner("EM015", "A transfer between host and device", runs="host transfer")
def host(kernel: GpuKernel) -> dict[str, Any] | None:
    return {"bytes": kernel.instruction.shape.byte_size} if kernel.instruction.opcode in _HOST else None


@runner("EM016", "An instruction that is rewritten after fusion", runs="rewritten later")
def unsettled(kernel: GpuKernel) -> dict[str, Any] | None:
    return None if kernel.is_generated else {"opcode": kernel.instruction.opcode}


RULES = (
    cublas_lt,
    cublas,
    cudnn,
    cub,
    solver,
    top_k,
    own_kernel,
    other_call,
    fft,
    collective,
    plain_copy,
    sort,
    random_state,
    host,
)
LAST = (unsettled,)
