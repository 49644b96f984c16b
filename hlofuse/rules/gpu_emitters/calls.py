"""Custom calls: libraries that XLA chose before fusion, and code that comes with the program."""

from typing import Any

from hlofuse.rules.gpu_emitters.candidate import GpuKernel
from hlofuse.rules.verdict import runner


@runner("EM001", "A matrix product is a cuBLASLt call", runs="cuBLASLt")
def cublas_lt(kernel: GpuKernel) -> dict[str, Any] | None:
    return _gemm(kernel) if kernel.target.startswith("__cublas$lt$") else None


@runner("EM002", "A matrix product is a cuBLAS call", runs="cuBLAS")
def cublas(kernel: GpuKernel) -> dict[str, Any] | None:
    return _gemm(kernel) if kernel.target == "__cublas$gemm" else None


@runner("EM003", "A convolution, normalisation or attention is a cuDNN call", runs="cuDNN")
def cudnn(kernel: GpuKernel) -> dict[str, Any] | None:
    return _call(kernel) if kernel.target.startswith("__cudnn$") else None


@runner("EM004", "A sort is a CUB radix sort", runs="CUB")
def cub(kernel: GpuKernel) -> dict[str, Any] | None:
    is_sort = "cub_sort" in kernel.target or kernel.target.startswith("__cub$")
    return _call(kernel) if is_sort else None


@runner("EM005", "A decomposition or triangular solve is a solver library's", runs="cuSOLVER")
def solver(kernel: GpuKernel) -> dict[str, Any] | None:
    is_library = kernel.target.startswith("cusolver_") or kernel.target == "__cublas$triangularSolve"
    return _call(kernel) if is_library else None


@runner("EM006", "A top-k is XLA's own kernel or RAFT's", runs="top-k kernel")
def top_k(kernel: GpuKernel) -> dict[str, Any] | None:
    return _call(kernel) if kernel.target == "__gpu$TopK" else None


@runner("EM007", "A kernel the program brings along", runs="the program's kernel")
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


RULES = (cublas_lt, cublas, cudnn, cub, solver, top_k, own_kernel, other_call)
