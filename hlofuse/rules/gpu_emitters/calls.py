"""Custom calls: libraries that XLA chose before fusion, and code that comes with the program."""

from typing import Any

from hlofuse.rules.gpu_emitters.candidate import GpuKernel
from hlofuse.rules.verdict import runner

_EMIT = "xla/service/gpu/thunk_emitter.cc: ThunkEmitter::DispatchCustomCall"
_WALL = (
    "XLA does not fuse across a library call: operands are written to memory first, and results are read"
    " back."
)


@runner(
    code="EM001",
    title="A matmul in cuBLASLt",
    condition="A custom call to __cublas$lt$matmul (or its forms for 8-bit floats, groups and block scales).",
    why="GemmRewriter turned the dot into a library call before fusion. cuBLASLt can also add a bias, an"
    " activation or a scale (the epilogue), which the rewriter moves into the call if supported.",
    advice=_WALL
    + (
        " Bias and relu or gelu directly after the matmul become its epilogue. On Ampere and later Triton"
        " takes most matmuls instead, and their neighbours fuse."
    ),
    mirrors=_EMIT + "; xla/backends/gpu/transforms/gemm_rewriter.cc: GemmRewriter",
    runs="cuBLASLt",
    history="Until 0.4.35 most matmuls are EM002.",
)
def cublas_lt(kernel: GpuKernel) -> dict[str, Any] | None:
    return _gemm(kernel) if kernel.target.startswith("__cublas$lt$") else None


@runner(
    code="EM002",
    title="A matmul in cuBLAS",
    condition="A custom call to __cublas$gemm.",
    why="GemmRewriter turned the dot into a library call before fusion.",
    advice=_WALL,
    mirrors=_EMIT + "; xla/backends/gpu/transforms/gemm_rewriter.cc: GemmRewriter",
    runs="cuBLAS",
    history="Until 0.4.35; later releases use cuBLASLt for every matmul (EM001).",
)
def cublas(kernel: GpuKernel) -> dict[str, Any] | None:
    return _gemm(kernel) if kernel.target == "__cublas$gemm" else None


@runner(
    code="EM003",
    title="A convolution, normalization or attention in cuDNN",
    condition="The custom call's target starts with __cudnn$.",
    why="ConvRewriter turns every convolution that cuDNN supports into a call and moves bias, activation and"
    " side input into it if the types allow. Normalization and attention become calls on request.",
    advice=_WALL + " Convolutions need channels last (NHWC) and 16-bit types for tensor cores.",
    mirrors=_EMIT + "; xla/backends/gpu/transforms/conv_rewriter.cc: ConvRewriter",
    runs="cuDNN",
)
def cudnn(kernel: GpuKernel) -> dict[str, Any] | None:
    return _call(kernel) if kernel.target.startswith("__cudnn$") else None


@runner(
    code="EM004",
    title="A radix sort in CUB",
    condition="A custom call to CUB's radix sort (xla.gpu.ext.cub_sort_keys, …_pairs,"
    " __cub$DeviceRadixSort).",
    why="SortRewriter uses CUB for a large sort of numbers by one key in ascending or descending order.",
    advice="Sort by one number, not with a custom comparator: any other order uses XLA's own bitonic sort"
    " (EM013), which is slower for large arrays.",
    mirrors=_EMIT + "; xla/backends/gpu/transforms/sort_rewriter.cc: SortRewriter",
    runs="CUB",
)
def cub(kernel: GpuKernel) -> dict[str, Any] | None:
    is_sort = "cub_sort" in kernel.target or kernel.target.startswith("__cub$")
    return _call(kernel) if is_sort else None


@runner(
    code="EM005",
    title="A decomposition or triangular solve in a solver library",
    condition="A custom call to cuSOLVER, or to cuBLAS's triangular solve.",
    why="XLA has no code of its own for these. The triangular solve is in place, so the right-hand side is"
    " copied first.",
    advice="Batch many small problems into one call.",
    mirrors=_EMIT + "; xla/service/gpu/thunk_emitter.cc: ThunkEmitter::EmitTriangularSolveCustomCall",
    runs="cuSOLVER",
)
def solver(kernel: GpuKernel) -> dict[str, Any] | None:
    is_library = kernel.target.startswith("cusolver_") or kernel.target == "__cublas$triangularSolve"
    return _call(kernel) if is_library else None


@runner(
    code="EM006",
    title="A top-k in XLA's own kernel or in RAFT",
    condition="A custom call to __gpu$TopK.",
    why="TopkSpecializer found k of at most 16 and rows long enough. RAFT's select_k handles the larger k"
    " (f32: 8 and more) unless ties must keep their order.",
    advice="With a larger k, the whole row is sorted instead.",
    mirrors="xla/service/gpu/thunk_emitter.cc: ThunkEmitter::EmitTopKCustomCall",
    runs="top-k kernel",
)
def top_k(kernel: GpuKernel) -> dict[str, Any] | None:
    return _call(kernel) if kernel.target == "__gpu$TopK" else None


@runner(
    code="EM007",
    title="A kernel supplied by the program",
    condition="A custom call with a Triton or PTX kernel.",
    why="Pallas and jax_triton pass XLA a finished kernel.",
    advice="XLA does not fuse into it: write into the kernel what it should fuse.",
    mirrors="xla/service/gpu/thunk_emitter.cc: ThunkEmitter::EmitTritonCustomCall",
    runs="the program's kernel",
)
def own_kernel(kernel: GpuKernel) -> dict[str, Any] | None:
    is_library = kernel.target in ("__gpu$xla.gpu.triton", "__gpu$xla.gpu.ptx")
    return _call(kernel) if is_library else None


@runner(
    code="EM009",
    title="Any other custom call",
    condition="A custom call to any other target.",
    why="XLA looks up the handler by name (FFI) and calls it.",
    advice=_WALL + " XLA knows neither its cost nor its effect.",
    mirrors="xla/service/gpu/thunk_emitter.cc: ThunkEmitter::EmitGenericCustomCall",
    runs="custom call",
)
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
