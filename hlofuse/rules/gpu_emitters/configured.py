"""Fusions whose backend config names who runs them: made before the fusion passes, or by Triton's check."""

from typing import Any

from hlofuse.cost.gpu import backend_config as config
from hlofuse.ir.graph import Instruction
from hlofuse.rules.gpu_emitters.candidate import GpuKernel
from hlofuse.rules.verdict import runner

_KIND = "xla/service/gpu/hlo_fusion_analysis.cc: GetEmitterFusionKind"


@runner(
    code="EM030",
    title="A fusion around a library call or a kernel of XLA's library",
    condition="Does the backend config say __custom_fusion?",
    why="A slice is computed into where the call reads or writes (dynamic-slice fusion), or one of "
    "XLA's own CUTLASS kernels takes the product.",
    mirrors=_KIND,
    runs="custom fusion",
)
def custom(kernel: GpuKernel) -> dict[str, Any] | None:
    return {} if kernel.config_kind == config.CUSTOM else None


@runner(
    code="EM031",
    title="A matrix product is a Triton kernel",
    condition="Does the backend config say __triton_gemm (or __triton_nested_gemm_fusion)?",
    why="GemmFusion gave the dot and the cheap operations at its inputs to Triton before the fusion "
    "passes. The autotuner, which runs on the device, may still find cuBLASLt or cuDNN faster and "
    "change it back; without a device it stays with a default tiling.",
    advice="Products in bf16 or f16 gain most. --xla_gpu_enable_triton_gemm=false gives all to cuBLASLt.",
    mirrors="xla/backends/gpu/transforms/gemm_fusion.cc: GemmFusion; " + _KIND,
    runs="Triton (product)",
)
def triton_gemm(kernel: GpuKernel) -> dict[str, Any] | None:
    if kernel.config_kind not in ("__triton_gemm", "__triton_nested_gemm_fusion"):
        return None
    found: dict[str, Any] = {}
    if (dot := _dot_in(kernel.instruction)) is not None:
        found["product"] = " × ".join(o.shape.text_without_layout for o in dot.operands[:2])
    return found | _tile(kernel)


@runner(
    code="EM032",
    title="A normalisation is a Triton kernel",
    condition="Does the backend config say __triton?",
    why="SoftmaxRewriterTriton found a row reduced and used again (softmax, layer norm), which one "
    "kernel can keep in registers. PriorityFusion fuses into it what Triton can emit and what pays.",
    advice="Keep what belongs to the row (mask, scale, bias) next to it; PF020 and PF021 say what Triton "
    "does not take.",
    mirrors="xla/backends/gpu/transforms/softmax_rewriter_triton.cc: SoftmaxRewriterTriton; " + _KIND,
    runs="Triton (block)",
)
def triton(kernel: GpuKernel) -> dict[str, Any] | None:
    return _tile(kernel) if kernel.config_kind == config.TRITON else None


@runner(
    code="EM033",
    title="A fusion is a cuDNN graph",
    condition="Does the backend config say __cudnn$fusion?",
    why="The product and its neighbours were given to cuDNN's graph API, as the autotuner chose.",
    mirrors=_KIND,
    runs="cuDNN graph",
)
def cudnn(kernel: GpuKernel) -> dict[str, Any] | None:
    return {} if kernel.config_kind == config.CUDNN else None


@runner(
    code="EM034",
    title="A collective is a Triton kernel",
    condition="Does the backend config say __triton_collective?",
    why="A small all-reduce on directly connected GPUs is faster as one kernel than through NCCL.",
    mirrors=_KIND,
    runs="Triton (collective)",
)
def triton_collective(kernel: GpuKernel) -> dict[str, Any] | None:
    return {} if kernel.config_kind == "__triton_collective" else None


def _tile(kernel: GpuKernel) -> dict[str, Any]:
    found = kernel.summary.config
    if found is None or not found.tile_sizes:
        return {}
    return {"tile": "×".join(map(str, found.tile_sizes[0])), "warps": found.num_warps}


def _dot_in(fusion: Instruction) -> Instruction | None:
    """The dot; in a nested fusion it lies one level deeper."""
    pending = [fusion]
    for kernel in pending:
        for inner in kernel.fused_computation:
            if inner.opcode == "dot":
                return inner
            if inner.opcode == "fusion":
                pending.append(inner)
    return None


RULES = (custom, triton_gemm, triton, cudnn, triton_collective)
